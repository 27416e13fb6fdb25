//! The records of real releases have the fields that the page lists, and no others.

use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Int64Array, RecordBatch, StringArray};
use serde_json::Value;

use super::kinds::{Field, Kinds, difference, kinds_of, observe};
use super::records::{PRIVATE, PUBLIC};
use super::type_docs::fields;
use crate::command::{Place, table};
use crate::house::root;
use crate::releases::{MARITAL, people};

const LEVELS: &str = r#"
    k = 5
    suppression_limit = 0.5
    rows_are_individuals = true
    accept_homogeneity = ["diagnosis"]
    [[require]]
    model = "t_closeness"
    t = 0.9
    sensitive = "diagnosis"
    [output]
    left_out = "names"
    compression = "snappy"
    [columns]
    ssn       = { role = "identifier" }
    dob       = { role = "quasi", hierarchy = { date = ["decade"] } }
    zip       = { role = "quasi", hierarchy = { prefix = [2] } }
    age       = { role = "quasi", hierarchy = { range = [10] }, clip = { from = 25 }, min_level = 1 }
    sex       = { role = "quasi" }
    marital   = { role = "quasi", hierarchy = { merge = { levels = 1 } } }
    diagnosis = { role = "sensitive" }
    ward      = { role = "insensitive" }
    stay      = { role = "insensitive" }
    weight    = { role = "insensitive", allow_unique = true }
    notes     = { role = "text" }
"#;

/// The same people by regions, counted as individuals.
const REGIONS: &str = r#"
    k = 5
    method = "mondrian"
    accept_homogeneity = ["diagnosis"]
    [output]
    intervals = "columns"
    released_on = "2026-11-24"
    row_group_rows = 5000
    partition_by = ["zip"]
    [columns]
    ssn       = { role = "individual" }
    dob       = { role = "quasi" }
    zip       = { role = "quasi", hierarchy = { prefix = [4, 3, 2] } }
    age       = { role = "quasi" }
    sex       = { role = "quasi" }
    marital   = { role = "quasi", hierarchy = { file = "marital.csv" } }
    diagnosis = { role = "sensitive" }
    ward      = { role = "insensitive" }
    stay      = { role = "insensitive" }
    weight    = { role = "insensitive", allow_unique = true }
    notes     = { role = "text" }
"#;

/// The city gives the finer level of every quasi-identifier away. No column is left out.
const CITIES: &str = r#"
    k = 20
    rows_are_individuals = true
    [[require]]
    model = "k_anonymity"
    k = 40
    quasi = ["zip"]
    [columns]
    zip  = { role = "quasi", hierarchy = { prefix = [4] }, min_level = 1 }
    town = { role = "quasi", hierarchy = { prefix = [2, 1] }, min_level = 2 }
    age  = { role = "quasi", hierarchy = { range = [10, 20], origin = 5 }, clip = { from = 20 }, min_level = 2, max_level = 2 }
    city = { role = "insensitive" }
"#;

const STAYS: &str = r#"
    k = 2
    rows_are_individuals = true
    [columns]
    admission = { role = "identifier" }
    discharge = { role = "quasi", relative_to = "admission", hierarchy = { range = [7] }, min_level = 1 }
    scan      = { role = "insensitive", relative_to = "admission", allow_unique = true }
"#;

fn cities() -> RecordBatch {
    let texts = |of: [&'static str; 4]| -> ArrayRef {
        Arc::new((0..80).map(|row| Some(of[row % 4])).collect::<StringArray>())
    };
    let age = |row: usize| [21, 31, 28, 39][row % 4];
    let ages: Int64Array = (0..80).map(|row| Some(age(row))).collect();
    table([
        ("zip", texts(["02138", "02139", "02141", "02142"])),
        ("town", texts(["ab", "ac", "ad", "ae"])),
        ("age", Arc::new(ages) as ArrayRef),
        ("city", texts(["Boston", "Salem", "Lynn", "Quincy"])),
    ])
}

fn stays() -> RecordBatch {
    let dates = |days: [i32; 4]| -> ArrayRef { Arc::new(Date32Array::from(days.to_vec())) };
    table([
        ("admission", dates([19_000, 19_000, 18_000, 18_000])),
        ("discharge", dates([19_008, 19_009, 18_001, 18_002])),
        ("scan", dates([19_001, 19_001, 18_001, 18_001])),
    ])
}

/// New people get classes of their own.
const NEXT: &str = r#"
    k = 2
    method = "mondrian"
    accept_homogeneity = ["diagnosis"]
    [columns]
    person    = { role = "individual" }
    age       = { role = "quasi" }
    diagnosis = { role = "sensitive" }
    [history]
"#;

/// No random count of these rows counts enough of them.
const CODES: &str = r#"
    k = 2
    rows_are_individuals = true
    [columns]
    code = { role = "quasi" }
"#;

fn codes() -> RecordBatch {
    let codes: StringArray = (0..2_001).map(|row| Some(format!("c{row}"))).collect();
    table([("code", Arc::new(codes) as ArrayRef)])
}

/// What is kept breaks the cap of enhanced beta-likeness, so among the released rows it reaches no
/// number. Two more models look at areas, and at one of them.
const WARDS: &str = r#"
    k = 2
    rows_are_individuals = true
    suppression_limit = 0.4
    [[require]]
    model = "enhanced_beta_likeness"
    beta = 1
    [[require]]
    model = "t_closeness"
    t = 0.9
    level = 1
    [[require]]
    model = "alpha_k_anonymity"
    alpha = 0.9
    values = ["flu"]
    [columns]
    ward      = { role = "quasi" }
    diagnosis = { role = "sensitive", hierarchy = { prefix = [1] }, allow_unique = true }
"#;

fn wards() -> RecordBatch {
    let rows = [(4, "a", "flu"), (1, "a", "gout"), (8, "b", "flu"), (39, "b", "gout"), (28, "c", "flu")];
    let all = || rows.iter().flat_map(|(times, ward, of)| std::iter::repeat_n((*ward, *of), *times));
    let texts = |texts: Vec<&str>| -> ArrayRef { Arc::new(StringArray::from(texts)) };
    table([
        ("ward", texts(all().map(|(ward, _)| ward).collect())),
        ("diagnosis", texts(all().map(|(_, of)| of).collect())),
    ])
}

/// Two of the towns have too few rows; the policy names their label.
const TOWNS: &str = r#"
    k = 4
    method = "mondrian"
    rows_are_individuals = true
    [columns]
    town = { role = "quasi", hierarchy = { merge = { levels = 1, label = "elsewhere" } } }
"#;

fn towns() -> RecordBatch {
    let rows = [(4, "Bern"), (4, "Oslo"), (2, "Pisa"), (2, "Rome")];
    let all = rows.iter().flat_map(|(times, town)| std::iter::repeat_n(Some(*town), *times));
    table([("town", Arc::new(all.collect::<StringArray>()) as ArrayRef)])
}

/// Fields of a struct that serves both records, in a form that only one of them has.
const IN_ONE: [&str; 5] = [
    "compared_with_input[].compared_with (missing)",
    "compared_with_input[].sensitive (missing)",
    "compared_with_input[].reached (null)",
    "compared_with_input[].values",
    "compared_with_input[].quasi",
];

/// Both records of releases of every kind.
fn records() -> (Vec<Value>, Vec<Value>) {
    let place = Place::new();
    place.parquet("people.parquet", &people(1));
    place.parquet("cities.parquet", &cities());
    place.parquet("stays.parquet", &stays());
    place.parquet("codes.parquet", &codes());
    place.parquet("wards.parquet", &wards());
    place.parquet("towns.parquet", &towns());
    place.write("marital.csv", MARITAL);
    let best =
        REGIONS.replace("\"mondrian\"", "\"best\"").replace("intervals = \"columns\"", "ends = \"cuts\"");
    let means = REGIONS
        .replace("\"mondrian\"", "\"ona\"")
        .replace("intervals = \"columns\"", "left_out = \"counts\"");
    let means = means
        .replace("age       = { role = \"quasi\" }", "age       = { role = \"quasi\", clip = [25, 60] }");
    let medians = means.replace("clip = [25, 60]", "clip = { to = 60 }");
    let medians = medians.replace("\"ona\"", "{ mdav = { centroid = \"median\" } }");
    let diverse =
        "[[require]]\n    model = \"l_diversity\"\n    l = 2\n    sensitive = \"diagnosis\"\n    [output]";
    let diverse = REGIONS.replace("[output]", diverse);
    let followed = format!("{diverse}[history]\nrow = [\"stay\"]\ndates = [\"stay\"]\n");
    let changing = "[history]\ndates = []\nchanges = [\"diagnosis\"]\nchanges_known = false\nreason = \"no reader knows\"\n";
    let changing = format!("{REGIONS}{changing}");
    for (name, input, policy) in [
        ("followed", "people", followed.as_str()),
        ("changing", "people", changing.as_str()),
        ("levels", "people", LEVELS),
        ("means", "people", &means),
        ("groups", "people", crate::anatomy::POLICY),
        ("noise", "people", crate::dp_centroids::POLICY),
        ("medians", "people", &medians),
        ("regions", "people", REGIONS),
        ("best", "people", &best),
        ("cities", "cities", CITIES),
        ("stays", "stays", STAYS),
        ("codes", "codes", CODES),
        ("wards", "wards", WARDS),
        ("towns", "towns", TOWNS),
    ] {
        place.write(&format!("{name}.toml"), policy);
        place.run(&format!("release {input}.parquet --policy {name}.toml --to {name}")).exit(0);
    }
    place.run("release people.parquet --recoding levels.private.json --to again").exit(0);
    let csv = |people: std::ops::Range<u32>| -> String {
        let row = |person: u32| format!("p{person},{},flu\n", 20 + person / 2);
        "person,age,diagnosis\n".to_owned() + &people.map(row).collect::<String>()
    };
    place.write("first.csv", csv(0..8));
    place.write("next.csv", csv(0..12) + "q0,,flu\nq1,,flu\n");
    place.write("next.toml", NEXT);
    place.run("release first.csv --policy next.toml --to first").exit(0);
    place.run("release next.csv --after first --to next").exit(0);
    let ours = [
        "next", "followed", "changing", "levels", "means", "medians", "groups", "noise", "regions", "best",
        "cities", "stays", "codes", "wards", "towns", "again",
    ]
    .map(|name| place.path(name));
    let earlier = root().join("tests/fixtures/format_2/safe");
    let read = |path| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap();
    ours.into_iter()
        .chain([earlier])
        .map(|out| (read(out.join("_kanon.json")), read(out.with_extension("private.json"))))
        .unzip()
}

#[test]
fn real_records_have_the_fields_of_the_page() {
    let page = fs::read_to_string(root().join("docs/reference.md")).unwrap();
    let (public, private) = records();
    for (record, documents) in [(PUBLIC, public), (PRIVATE, private)] {
        let fields: Vec<Field> = fields(record).into_iter().map(|found| found.field).collect();
        for Field { path, kind, .. } in &fields {
            assert!(page.contains(&format!("\n- `{path}` ({kind}): ")), "{path} is not on the page");
        }
        let (listed, mut seen) = (kinds_of(&fields), Kinds::new());
        documents.iter().for_each(|document| observe(&mut seen, &listed, "", document));
        assert_eq!(difference(&seen, &listed), [""; 0], "{record}: not on the page");
        let unseen = difference(&listed, &seen).into_iter();
        let unseen: Vec<String> =
            unseen.filter(|field| !IN_ONE.iter().any(|known| field.starts_with(known))).collect();
        assert_eq!(unseen, [""; 0], "{record}: in no record");
    }
}

#[test]
fn words_of_real_records_are_on_the_page() {
    let (public, _) = records();
    for found in fields(PUBLIC).iter().filter(|found| !found.words.is_empty()) {
        let pointers = match found.field.path.as_str() {
            "recoding.regions.ends" => ["/recoding/regions/ends"].as_slice(),
            "recoding.regions.columns[].shows" => {
                &["/recoding/regions/columns/0/shows", "/recoding/regions/columns/1/shows"]
            }
            "recoding.centroids[].centroid" => {
                &["/recoding/centroids/0/centroid", "/recoding/centroids/1/centroid"]
            }
            "layout.compression" => &["/layout/compression"],
            other => panic!("`{other}` holds one of some words, too"),
        };
        let mut count = 0;
        for value in public.iter().flat_map(|record| pointers.iter().filter_map(|at| record.pointer(at))) {
            count += 1;
            assert!(found.words.iter().any(|(word, _)| value == word), "{}: {value}", found.field.path);
        }
        assert!(count > 1, "{}", found.field.path);
    }
}
