//! The linkage attack: what it finds is what a naive loop over all pairs of rows finds, on tables
//! and on releases.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    UInt8Array,
};
use datafusion_kanon::internals::input::{Input, PolicySource};
use datafusion_kanon::internals::linkage::{Attack, Linked, link};
use datafusion_kanon::internals::policy::{CsvOptions, Folder, PolicySpec};
use datafusion_kanon::internals::release::publish::record::{PublicRecord, RECORD};
use datafusion_kanon::internals::release::{self, release};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::command::{Place, table, texts};
use crate::house::root;
use crate::releases::levels;
use crate::shared::with_run;

/// Health and voters of the papers, and a policy for two alike.
fn scene() -> Place {
    let place = Place::new();
    for name in ["health.csv", "voter.csv", "marital.csv"] {
        place.write(name, fs::read(root().join("data/papers").join(name)).unwrap());
    }
    place.write("policy.toml", POLICY);
    place
}

const POLICY: &str = r#"
    k = 2
    suppression_limit = 0.2
    rows_are_individuals = true
    accept_homogeneity = ["problem"]
    others = "drop"
    [columns]
    dob = { role = "quasi", hierarchy = { date = ["month", "year"] } }
    sex = { role = "quasi" }
    zip = { role = "quasi", hierarchy = { prefix = [3, 2] } }
    problem = { role = "sensitive", allow_unique = true }
"#;

#[test]
fn voters_are_found_in_the_table_as_it_is() {
    let place = scene();
    let line = "link voter.csv health.csv --on dob,sex,zip --sensitive problem";
    let found = place.run(&format!("{line} --format json")).exit(0).json();
    let on = ["dob", "sex", "zip"].map(|name| json!({ "column": name, "generalized": null }));
    let expected = json!({
        "on": on, "not_used": [], "read_as_texts": [],
        "individuals": 10, "matched": 10, "unmatched": 0, "apart": 0, "never_equal": [], "unique": 10, "least_matches": 1,
        "histogram": [{ "matches": 1, "individuals": 10 }],
        "homogeneous": [{ "column": "problem", "individuals": 10, "share": 1 }],
        "uncovered": 0, "rows_without_individual": 0, "suppressed_rows": null, "by_assignment": false,
    });
    assert_eq!(found, expected);
    place.run(&format!("{line} --k 1")).exit(0);
    let text = place.run(&format!("{line} --k 2")).exit(1).out;
    assert!(text.contains("unique    10 individuals match exactly one row: re-identified (100 %)"), "{text}");
    assert!(text.contains("FAILS     2 matches required, 1 reached"), "{text}");
}

#[test]
fn voters_are_not_found_in_a_release() {
    let place = scene();
    place.run("release health.csv --policy policy.toml --to safe").exit(0);
    let found = place.run("link voter.csv safe --k 2 --format json").exit(0).json();
    let suppressed =
        place.run("verify safe --input health.csv --format json").exit(0).json()["suppressed_rows"]
            .as_u64()
            .unwrap();
    assert_eq!(found["suppressed_rows"], suppressed);
    // All are in the table: who is not suppressed matches the rows of a class of at least two.
    assert!(found["matched"].as_u64().unwrap() >= 10 - suppressed, "{found}");
    assert!(found["least_matches"].as_u64().unwrap() >= 2, "{found}");
    assert_eq!((&found["individuals"], &found["unique"]), (&json!(10), &json!(0)));
    assert_eq!(found["on"].as_array().unwrap().len(), 3);
    let text = place.run("link voter.csv safe").exit(0).out;
    let told = format!("suppressed {suppressed} row in B: any match of these individuals is wrong");
    assert!(text.contains("unique    0 individuals") && text.contains(&told), "{text}");
    place.run("link voter.csv safe --on sex --k 5").exit(1);
    place.run("link voter.csv safe --on sex --k 2").exit(0);
}

/// Rows as they are under the record of a release, which is sealed again.
fn forge(place: &Place, recoded: &[(&str, &str)]) {
    let released = place.released("safe");
    let health = fs::read_to_string(place.path("health.csv")).unwrap();
    let lines: Vec<Vec<&str>> = health.lines().map(|line| line.split(',').collect()).collect();
    let columns = released.schema().fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>();
    let columns = columns.iter().map(|name| {
        let at = lines[0].iter().position(|cell| cell == name).unwrap();
        let cells: StringArray = lines[1..].iter().map(|line| Some(line[at])).collect();
        let cells = arrow::compute::cast(&cells, released.column_by_name(name).unwrap().data_type());
        (name.as_str(), cells.unwrap())
    });
    place.parquet("safe/part-00000.parquet", &table(columns));
    let mut public = PublicRecord::read(&place.path("safe")).unwrap();
    for (name, by) in recoded {
        let level = levels(&mut public).iter_mut().find(|level| level.column == *name).unwrap();
        (level.level, level.by) = (0, by.parse().unwrap());
    }
    place.write("safe/_kanon.json", public.sealed().unwrap().to_json().unwrap());
}

#[test]
fn a_forged_release_is_linkable_or_refused() {
    let place = scene();
    place.run("release health.csv --policy policy.toml --to safe").exit(0);
    fs::remove_file(place.path("safe.private.json")).unwrap();
    forge(&place, &[("dob", "as_is"), ("zip", "as_is"), ("sex", "as_is")]);
    let found = place.run("link voter.csv safe --k 2 --format json").exit(1).json();
    assert_eq!((&found["unique"], &found["least_matches"]), (&json!(10), &json!(1)));
    // The same rows under a record of coarser levels: an attack that believed it would find nobody.
    for by in ["date:year", "suppress"] {
        forge(&place, &[("dob", by)]);
        place
            .run("link voter.csv safe")
            .exit(1)
            .says("column `dob`: the release holds values that are not labels");
    }
}

/// Every command that reads a record refuses one whose tables, columns and levels do not fit.
#[test]
fn records_of_another_shape_are_believed_by_no_command() {
    let place = scene();
    place.run("release health.csv --policy policy.toml --to safe").exit(0);
    let honest = PublicRecord::read(&place.path("safe")).unwrap();
    let edits: [fn(&mut PublicRecord); 5] = [
        |record| record.tables.clear(),
        |record| record.tables.push(record.tables[0].clone()),
        |record| {
            let first = levels(record)[0].clone();
            levels(record).insert(0, first);
        },
        |record| drop(levels(record).pop()),
        |record| {
            let column = record.tables[0].columns[0].clone();
            record.tables[0].columns.insert(0, column);
            let first = levels(record)[0].clone();
            levels(record).insert(0, first);
        },
    ];
    for edit in edits {
        let mut forged = honest.clone();
        edit(&mut forged);
        place.write("safe/_kanon.json", forged.sealed().unwrap().to_json().unwrap());
        for line in ["verify safe", "verify safe --input health.csv", "link voter.csv safe", "risk safe"] {
            place
                .run(line)
                .exit(1)
                .says("does not list the tables of its recoding, with distinct columns, and what each quasi-identifier shows");
        }
    }
}

#[test]
fn labels_that_cannot_be_made_again_need_the_policy() {
    let place = scene();
    let marital = "marital_status = { role = \"quasi\", min_level = 1, max_level = 1, hierarchy = { file = \"marital.csv\" } }";
    let head = POLICY.split("dob").next().unwrap();
    place.write(
        "policy.toml",
        format!("{head}\n{marital}\nproblem = {{ role = \"sensitive\", allow_unique = true }}\n"),
    );
    place.run("release health.csv --policy policy.toml --to safe").exit(0);
    place.write("people.csv", "marital_status\nDivorced\nSingle\nNobody's\nNobody's\n");
    let line = "link people.csv safe --format json";
    let found = place.run(line).exit(0).json();
    assert_eq!((&found["individuals"], &found["uncovered"]), (&json!(4), &json!(2)));
    assert_eq!((&found["unmatched"], &found["on"][0]["generalized"]), (&json!(2), &json!("hierarchy:1")));

    fs::remove_file(place.path("safe.private.json")).unwrap();
    place
        .run(line)
        .exit(2)
        .says("cannot be attacked: only the publisher's hierarchy says which values its labels hold; add columns to A");
    place.run(&format!("{line} --on marital_status")).exit(2).says(
        "column `marital_status` of the release is `hierarchy:1`: only the publisher's hierarchy says which values its labels \
         hold; leave it out of --on, or give the publisher's policy, with its hierarchy files, by --policy FILE",
    );
    let mut by_policy = place.run(&format!("{line} --policy policy.toml")).exit(0).json();
    assert_eq!(by_policy["suppressed_rows"].take(), Value::Null);
    by_policy["suppressed_rows"] = found["suppressed_rows"].clone();
    assert_eq!(by_policy, found);
    place.write("other.toml", POLICY);
    place.run(&format!("{line} --policy other.toml")).exit(2).says("the policy is not that of the release");

    let mut public = PublicRecord::read(&place.path("safe")).unwrap();
    levels(&mut public).iter_mut().for_each(|level| level.by = "range:10 later:5".parse().unwrap());
    place.write("safe/_kanon.json", public.sealed().unwrap().to_json().unwrap());
    place.run(line).exit(2).says("is `range:10 later:5`, which this version cannot restore");
}

/// A reviewer has the folder of the release and a list, and no policy: the attack runs, and says
/// what it could not use.
#[test]
fn a_reviewer_attacks_with_the_release_alone() {
    let place = scene();
    let marital = "marital_status = { role = \"quasi\", min_level = 1, max_level = 1, hierarchy = { file = \"marital.csv\" } }";
    let policy = POLICY.replace("    [columns]", &format!("    [columns]\n    {marital}"));
    place.write("policy.toml", policy.replace("    k = 2", "    k = 2\n    method = \"optimal\""));
    place.run("release health.csv --policy policy.toml --to safe").exit(0);
    fs::remove_file(place.path("safe.private.json")).unwrap();
    let rows = fs::read_to_string(place.path("health.csv")).unwrap();
    place.write("people.csv", rows);
    let text = place.run("link people.csv safe --k 2").exit(0).out;
    for part in [
        "not used  marital_status: only the publisher's hierarchy says which values its labels hold\n",
        "holds     2 matches required, ",
        ", on 3 of 4 quasi-identifiers; an attacker who also knows the others may have fewer\n",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let text = place.run("link people.csv safe --on sex --k 2").exit(0).out;
    assert!(text.contains("not used  zip: --on does not name it\n"), "{text}");
    assert!(text.contains(", on 1 of 4 quasi-identifiers;"), "{text}");
    assert!(
        text.contains("learnt    problem of no individual: nowhere do all matches hold one value\n"),
        "{text}"
    );
    assert!(!text.contains("of 0 individuals"), "{text}");
    // Dates in another form: the key stands in --csv, because there is no policy.
    place.write("german.csv", "dob;sex\n21.12.1995;Male\n");
    place.run("link german.csv safe").exit(3).says(
        "german.csv: column `dob`: 1 row does not hold a date (such as 2020-12-31 or 2020-12-31T23:59:59); 1 is written in another \
         form: under [input] of the policy, set date_format = \"%d.%m.%Y\"; without a policy, --csv takes the keys of [input]",
    );
    place.run("link german.csv safe --csv 'date_format = \"%d.%m.%Y\"'").exit(0);
    // Strangers match nothing, so the required number is neither reached nor missed, and nothing is shown.
    place.write("strangers.csv", "sex,ZIP\nunknown,02141\n");
    let text = place.run("link strangers.csv safe --k 2").exit(1).out;
    assert!(
        text.contains("no answer 2 matches required; no individual of A has a match, on 1 of 4"),
        "{text}"
    );
    assert!(text.contains("hint      sex: no value of A occurs in B;"), "{text}");
    assert!(text.contains("not used  zip: A has `ZIP`; rename that column\n"), "{text}");
}

/// Where classes show regions, texts are read as a person reads them.
#[test]
fn labels_are_read_as_texts_without_the_policy() {
    let place = Place::new();
    let rows: String =
        (0..60).map(|n| format!("{},0{},flu{}\n", ["m", "w"][n % 2], 1067 + n % 9, n % 4)).collect();
    place.write("in.csv", format!("sex,zip,illness\n{rows}"));
    place.write(
        "p.toml",
        "k = 4\nmethod = \"mondrian\"\nrows_are_individuals = true\naccept_homogeneity = [\"illness\"]\n[columns]\n\
         sex = { role = \"quasi\" }\nzip = { role = \"quasi\", hierarchy = { prefix = [4, 3] } }\n\
         illness = { role = \"sensitive\" }\n",
    );
    place.run("release in.csv --policy p.toml --to safe").exit(0);
    let line = "link in.csv safe --k 4";
    let mut known = place.run(&format!("{line} --policy p.toml --format json")).exit(0).json();
    fs::remove_file(place.path("safe.private.json")).unwrap();
    let by_policy = place.run(&format!("{line} --policy p.toml --format json")).exit(0).json();
    let mut alone = place.run(&format!("{line} --format json")).exit(0).json();
    assert_eq!(alone["read_as_texts"].take(), json!(["sex", "zip"]));
    alone["read_as_texts"] = json!([]);
    assert_eq!(alone, by_policy);
    assert_eq!((known["matched"].take(), &by_policy["matched"]), (json!(60), &json!(60)));
    let text = place.run(line).exit(0).out;
    assert!(text.contains("as texts  sex, zip: read without the publisher's hierarchies."), "{text}");
}

#[test]
fn a_row_of_b_without_an_individual_is_no_match_and_tells_its_value() {
    let place = Place::new();
    place.write("a.csv", "zip\n02139\n02141\n02142\n");
    place.write("b.csv", "zip,patient,diagnosis\n02139,1,flu\n02141,,gout\n02141,,gout\n");
    let line = "link a.csv b.csv --on zip --sensitive diagnosis --individual-of-b patient";
    let found = place.run(&format!("{line} --format json")).exit(0).json();
    assert_eq!((&found["matched"], &found["unmatched"], &found["unique"]), (&json!(1), &json!(2), &json!(1)));
    assert_eq!(found["homogeneous"][0]["individuals"], 2);
    let text = place.run(line).exit(0).out;
    for said in [
        "matched   1 individual (33 %); 2 match no individual\n",
        "unique    1 individual matches exactly one individual: re-identified (33 %)\n",
        "learnt    diagnosis of 2 individuals (67 %): all their matches hold one value\n",
    ] {
        assert!(text.contains(said), "no `{said}` in {text}");
    }
    // Rows are counted without the column: both of them match.
    let rows = place.run("link a.csv b.csv --on zip --format json").exit(0).json();
    assert_eq!((&rows["matched"], &rows["unmatched"]), (&json!(2), &json!(1)));
}

/// Each row of w has two candidates; only x is in both. Without the column of B's individuals the rows of
/// B are nobody's, and cannot be intersected.
#[test]
fn rows_that_are_harmless_one_by_one_single_a_person_out_together() {
    let place = Place::new();
    place.write("a.csv", "who,age,zip\nw,41,A\nw,41,B\n");
    place.write("b.csv", "person,age,zip,ill\nx,41,A,flu\nx,41,B,flu\ny,41,A,gout\nz,41,B,cold\n");
    let rows = "link a.csv b.csv --on age,zip --individual who --sensitive ill";
    let line = format!("{rows} --individual-of-b person");
    let text = place.run(&line).exit(0).out;
    for said in [
        "unique    1 individual matches exactly one individual: re-identified (100 %)\n",
        "learnt    ill of 1 individual (100 %): all their matches hold one value\n",
    ] {
        assert!(text.contains(said), "no `{said}` in {text}");
    }
    let by_rows = place.run(&format!("{rows} --format json")).exit(0).json();
    assert_eq!((&by_rows["unique"], &by_rows["least_matches"]), (&json!(0), &json!(2)));
    assert_eq!(by_rows["homogeneous"][0]["individuals"], 0);

    // A row that matches nobody says nothing, nor does one that only rows without an individual match;
    // a row that says the same again counts once.
    place.write("a.csv", "who,age,zip\nw,41,A\nw,41,B\nw,41,B\nw,41,C\nw,41,D\n,41,A\n");
    place.write("b.csv", "person,age,zip,ill\nx,41,A,flu\nx,41,B,flu\ny,41,A,gout\nz,41,B,cold\n,41,C,flu\n");
    let found = place.run(&format!("{line} --format json")).exit(0).json();
    assert_eq!((&found["unique"], &found["apart"], &found["unmatched"]), (&json!(1), &json!(0), &json!(0)));

    // Two rows of different individuals: whoever w is, B does not hold w.
    place.write("b.csv", "person,age,zip,ill\ny,41,A,gout\nz,41,B,cold\n");
    let found = place.run(&format!("{line} --format json")).exit(0).json();
    assert_eq!((&found["unmatched"], &found["apart"]), (&json!(1), &json!(1)));
    assert_eq!((&found["matched"], &found["never_equal"]), (&json!(0), &json!([])));
    assert_eq!(found["homogeneous"][0]["individuals"], 0);
    let text = place.run(&line).exit(0).out;
    let said =
        "apart     1 of these has rows that match individuals, but no individual matches all of them\n";
    assert!(text.contains(said), "{text}");
}

/// The classes of a release by regions are counted by rows, so individuals of B would be rows.
#[test]
fn individuals_of_a_release_by_regions_are_refused() {
    let place = scene();
    let policy =
        POLICY.replace("k = 2", "k = 2\nmethod = \"mondrian\"").replace("suppression_limit = 0.2\n", "");
    place.write("policy.toml", policy);
    place.run("release health.csv --policy policy.toml --to safe").exit(0);
    place
        .run("link voter.csv safe --individual-of-b problem")
        .exit(2)
        .says("--individual-of-b: the classes of safe show regions or centroids, whose rows are counted; leave it out");
}

#[test]
fn mistakes_are_told() {
    let place = scene();
    place.run("release health.csv --policy policy.toml --to safe").exit(0);
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![2139, 2141]));
    place.parquet("numbers.parquet", &table([("zip", Arc::clone(&numbers)), ("dob", numbers)]));
    place.parquet("words.parquet", &table([("zip", Arc::new(StringArray::from(vec!["2139"])) as ArrayRef)]));
    place.write("empty.csv", "zip\n");
    place.write("nobody.csv", "name,zip\n,2139\n");
    place.write("other.csv", "a\nb\n");
    for (line, says) in [
        ("voter.csv health.csv", "name the columns that the attacker knows: --on dob,sex,zip"),
        ("voter.csv health.csv --on zipp", "--on: voter.csv has no column `zipp`; did you mean `zip`?"),
        ("voter.csv health.csv --on name", "--on: health.csv has no column `name`; it has 6 columns"),
        ("voter.csv health.csv --on zip,zip", "--on: `zip` is named twice"),
        ("voter.csv health.csv --on zip --individual nam", "--individual: voter.csv has no column `nam`"),
        (
            "voter.csv health.csv --on zip --individual-of-b ssn",
            "--individual-of-b: health.csv has no column",
        ),
        ("voter.csv health.csv --on zip --sensitive problems", "did you mean `problem`?"),
        ("voter.csv health.csv --on zip --sensitive zip", "--sensitive: `zip` is in --on"),
        ("other.csv safe", "other.csv has none of the quasi-identifiers of safe: sex, dob, zip"),
        ("voter.csv safe --on race", "--on: voter.csv has no column `race`"),
        ("words.parquet numbers.parquet --on zip", "Utf8View in words.parquet and Int64 in numbers.parquet"),
        ("numbers.parquet safe --on dob", "values of type Int64 cannot be used here; expected dates"),
    ] {
        place.run(&format!("link {line}")).exit(2).says(says);
    }
    place.run("link empty.csv health.csv --on zip").exit(3).says("empty.csv has no rows");
    place
        .run("link nobody.csv health.csv --on zip --individual name")
        .exit(3)
        .says("no row that names a person");
    place.run("link voter.csv numbers.parquet --on sex").exit(2).says("numbers.parquet has no column `sex`");
    // Numbers and texts of a CSV file are compared as the other side has them.
    let found = place.run("link voter.csv numbers.parquet --on zip --format json").exit(0).json();
    assert_eq!((&found["matched"], &found["unique"]), (&json!(6), &json!(6)));
    let found = place.run("link voter.csv words.parquet --on zip --format json").exit(0).json();
    assert_eq!(found["matched"], 4);
}

/// A random row: what links it, whose it is, what is sensitive in it. A cell is the place of a value.
#[derive(Debug, Clone)]
struct Row {
    cells: [Option<u8>; 3],
    person: Option<u8>,
    sensitive: Option<u8>,
}

fn rows(values: u8, most: usize) -> impl Strategy<Value = Vec<Row>> {
    let cell = move || prop::option::weighted(0.8, 0..values);
    let row =
        ([cell(), cell(), cell()], prop::option::weighted(0.9, 0..6u8), prop::option::weighted(0.8, 0..3u8));
    let row = row.prop_map(|(cells, person, sensitive)| Row { cells, person, sensitive });
    prop::collection::vec(row, 1..most)
}

/// What a naive loop over all pairs finds. Where B names individuals, a person's matches are those who
/// match all of the person's rows that match anybody.
fn naive(
    people: &[Row],
    table: &[Row],
    same: impl Fn(usize, &Row) -> bool,
    individuals: (bool, bool),
) -> (BTreeMap<u64, u64>, u64, u64) {
    let mut by_person: BTreeMap<(usize, Option<u8>), Vec<&Row>> = BTreeMap::new();
    for (at, row) in people.iter().enumerate() {
        match individuals.0 {
            true if row.person.is_none() => {}
            true => by_person.entry((0, row.person)).or_default().push(row),
            false => by_person.entry((at, None)).or_default().push(row),
        }
    }
    let (mut matches, mut unmatched, mut homogeneous) = (BTreeMap::new(), 0, 0);
    for rows in by_person.values() {
        let (mut least, mut learnt) = (None, false);
        let matched = |row: &Row| -> Vec<&Row> {
            table.iter().enumerate().filter(|(at, _)| same(*at, row)).map(|(_, row)| row).collect()
        };
        let whose =
            |row: &Row| -> BTreeSet<u8> { matched(row).iter().filter_map(|row| row.person).collect() };
        let candidates = rows.iter().map(|row| whose(row)).filter(|whose| !whose.is_empty());
        let candidates = candidates.reduce(|all, whose| all.intersection(&whose).copied().collect());
        for row in rows {
            let mut matched = matched(row);
            let mut count = matched.len() as u64;
            if individuals.1 {
                let candidates = candidates.clone().unwrap_or_default();
                count = candidates.len() as u64;
                // Rows without an individual are no matches, but what they say is learnt.
                matched.retain(|row| row.person.is_none_or(|person| candidates.contains(&person)));
            }
            if count > 0 {
                least = Some(least.map_or(count, |least: u64| least.min(count)));
            }
            if let Some(first) = matched.first() {
                learnt |=
                    first.sensitive.is_some() && matched.iter().all(|row| row.sensitive == first.sensitive);
            }
        }
        match least {
            Some(least) => *matches.entry(least).or_default() += 1,
            None => unmatched += 1,
        }
        homogeneous += u64::from(learnt);
    }
    (matches, unmatched, homogeneous)
}

fn found(linked: &Linked) -> (BTreeMap<u64, u64>, u64, u64) {
    (linked.matches.clone(), linked.unmatched, linked.homogeneous[0].1)
}

/// Attacks `b` of a folder with `a` of it.
fn attack(place: &Place, a: &str, b: &str, on: &[String], individuals: (bool, bool)) -> Option<Linked> {
    let path = |name: &str| place.path(name).to_str().unwrap().to_owned();
    let (people, table) = (Input::find(&path(a)).unwrap(), Input::find(&path(b)).unwrap());
    let out = path(b);
    let is_release = Path::new(&out).join(RECORD).is_file();
    let release = is_release.then(|| release::Place::beside(Path::new(&out)).unwrap());
    let attack = Attack {
        list: &people,
        individual: individuals.0.then_some("person"),
        table: &table,
        release: release.as_ref(),
        individual_of_table: individuals.1.then_some("person"),
        on,
        sensitive: &["sensitive".to_owned()],
        policy: None,
        csv: CsvOptions::default(),
    };
    match with_run(async |run| link(run, &attack).await) {
        Ok(linked) => Some(linked),
        Err(error) if error.to_string().contains("no row that names a person") => None,
        Err(error) => panic!("{error}"),
    }
}

const ZIPS: [&str; 5] = ["02139", "2139", "", "021", "0213"];
const AGES: [i64; 5] = [0, 7, 38, 100, 255];
const DAYS: [i32; 5] = [-1, 0, 31, 366, 9_131];

fn column<T>(rows: &[Row], at: usize, value: impl Fn(usize) -> T) -> Vec<Option<T>> {
    rows.iter().map(|row| row.cells[at].map(|cell| value(usize::from(cell)))).collect()
}

fn batch(rows: &[Row], linked: [ArrayRef; 3]) -> RecordBatch {
    let [zip, age, day] = linked;
    let person: StringArray = rows.iter().map(|row| row.person.map(|p| format!("P{p}"))).collect();
    let sensitive: Float64Array = rows.iter().map(|row| row.sensitive.map(f64::from)).collect();
    let (person, sensitive) = (Arc::new(person) as ArrayRef, Arc::new(sensitive) as ArrayRef);
    table([("zip", zip), ("age", age), ("day", day), ("person", person), ("sensitive", sensitive)])
}

/// The rows as a CSV file: a NULL text is an empty cell, and so is NULL.
fn csv(rows: &[Row]) -> String {
    let cell = |text: Option<String>| text.unwrap_or_default();
    let day = |at: u8| {
        let days = DAYS[usize::from(at)];
        (chrono::NaiveDate::default() + chrono::Duration::days(days.into())).to_string()
    };
    let lines = rows.iter().map(|row| {
        let zip = row.cells[0].map(|at| ZIPS[usize::from(at)].to_owned());
        let age = row.cells[1].map(|at| AGES[usize::from(at)].to_string());
        let person = row.person.map(|p| format!("P{p}"));
        format!("{},{},{},{}\n", cell(zip), cell(age), cell(row.cells[2].map(day)), cell(person))
    });
    ["zip,age,day,person\n".to_owned()].into_iter().chain(lines).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_table_is_linked_as_by_a_loop(
        people in rows(5, 30),
        table in rows(4, 30),
        individuals in (any::<bool>(), any::<bool>()),
        ways in (0..3usize, any::<bool>(), any::<bool>()),
        on in prop::sample::subsequence(vec![0usize, 1, 2], 1..=3),
    ) {
        let place = Place::new();
        let zips = |rows: &[Row]| Arc::new(StringArray::from(column(rows, 0, |at| ZIPS[at]))) as ArrayRef;
        let of_a: [ArrayRef; 3] = [
            zips(&people),
            Arc::new(Int64Array::from(column(&people, 1, |at| AGES[at]))),
            Arc::new(Date32Array::from(column(&people, 2, |at| DAYS[at]))),
        ];
        let of_b: [ArrayRef; 3] = [
            zips(&table),
            match ways.1 {
                true => Arc::new(Float64Array::from(column(&table, 1, |at| AGES[at] as f64))),
                false => Arc::new(UInt8Array::from(column(&table, 1, |at| AGES[at] as u8))),
            },
            match ways.2 {
                true => Arc::new(TimestampMicrosecondArray::from(column(&table, 2, |at| i64::from(DAYS[at]) * 86_400_000_000))),
                false => Arc::new(Date32Array::from(column(&table, 2, |at| DAYS[at]))),
            },
        ];
        place.parquet("a.parquet", &batch(&people, of_a));
        place.parquet("b.parquet", &batch(&table, of_b));
        place.write("a.csv", csv(&people));
        let from_csv = ways.0 == 0;
        let on_names: Vec<String> = on.iter().map(|at| ["zip", "age", "day"][*at].to_owned()).collect();
        // In CSV the empty zip is NULL.
        let value = |at: usize, row: &Row| row.cells[at].filter(|cell| !(from_csv && at == 0 && *cell == 2));
        let same = |b: usize, a: &Row| on.iter().all(|at| value(*at, a) == table[b].cells[*at]);
        let linked = attack(&place, if from_csv { "a.csv" } else { "a.parquet" }, "b.parquet", &on_names, individuals);
        let expected = naive(&people, &table, same, individuals);
        let nobody = people.iter().filter(|row| individuals.0 && row.person.is_none()).count() as u64;
        match linked {
            Some(linked) => {
                prop_assert_eq!(found(&linked), expected);
                prop_assert_eq!((linked.uncovered, linked.rows_without_individual), (0, nobody));
            }
            None => prop_assert!(individuals.0 && people.iter().all(|row| row.person.is_none())),
        }
    }
}

/// Whether a released label covers a value, by what the label says.
fn covers(by: &str, label: &str, at: usize, cell: Option<u8>) -> bool {
    let cell = cell.map(usize::from);
    match (by, cell) {
        ("suppress", _) => true,
        (_, None) => label == "-",
        (_, Some(_)) if label == "-" => false,
        ("as_is", Some(cell)) if at == 0 => label == ZIPS[cell],
        ("as_is", Some(cell)) if at == 1 => label == AGES[cell].to_string(),
        ("as_is", Some(cell)) => label == FILE[cell].0,
        (by, Some(cell)) if by.starts_with("prefix:") => {
            let kept: String = ZIPS[cell].chars().take(by[7..].parse().unwrap()).collect();
            label == format!("{kept}*")
        }
        (by, Some(cell)) if by.starts_with("range:") => {
            let (from, to) = label.trim_matches(['[', ')']).split_once(',').unwrap();
            (from.parse::<i64>().unwrap()..to.parse::<i64>().unwrap()).contains(&AGES[cell])
        }
        ("hierarchy:1", Some(cell)) => FILE.get(cell).is_some_and(|(_, coarse)| label == *coarse),
        other => panic!("{other:?}"),
    }
}

/// A hierarchy file; the value `e`, which only A has, is not in it.
const FILE: [(&str, &str); 5] = [("a", "ab"), ("b", "ab"), ("c", "cd"), ("d", "cd"), ("e", "none")];

const ROLES: &str = r#"
    rows_are_individuals = true
    accept_homogeneity = ["sensitive"]
    [columns]
    zip = { role = "quasi", hierarchy = { prefix = [4, 3, 2] } }
    age = { role = "quasi", hierarchy = { range = [10, 50] } }
    day = { role = "quasi", hierarchy = { file = "file.csv" } }
    person = { role = "text" }
    sensitive = { role = "sensitive" }
"#;

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn a_release_is_linked_as_by_a_loop_over_labels(
        people in rows(5, 30),
        table in rows(4, 30),
        k in 2..4u64,
        limit in 0..9u8,
        by_person in any::<bool>(),
        on in prop::sample::subsequence(vec![0usize, 1, 2], 1..=3),
    ) {
        let place = Place::new();
        let columns = |rows: &[Row]| -> [ArrayRef; 3] {
            [
                Arc::new(StringArray::from(column(rows, 0, |at| ZIPS[at]))),
                Arc::new(Int64Array::from(column(rows, 1, |at| AGES[at]))),
                Arc::new(StringArray::from(column(rows, 2, |at| FILE[at].0))),
            ]
        };
        place.parquet("a.parquet", &batch(&people, columns(&people)));
        place.parquet("b.parquet", &batch(&table, columns(&table)));
        place.write("file.csv", FILE[..4].iter().map(|(value, label)| format!("{value},{label}\n")).collect::<String>());
        let text = format!("k = {k}\nsuppression_limit = 0.{limit}\n{ROLES}");
        let said = PolicySpec::parse(&text).unwrap();
        let source = PolicySource { spec: &said, files: &Folder(place.path("")) };
        let input = Input::find(place.path("b.parquet").to_str().unwrap()).unwrap();
        let out = release::Place::beside(&place.path("out")).unwrap();
        let released = with_run(async |run| release(run, &input, &source, &out, false).await);
        prop_assume!(released.is_ok());

        let rows = place.released("out");
        let names = ["zip", "age", "day"];
        let labels = names.map(|name| texts(&rows, name));
        let record = released.unwrap().public;
        let level = |name: &str| {
            record.recoding.level(name).unwrap().by.to_string()
        };
        let by = names.map(level);
        let sensitive = texts(&rows, "sensitive").into_iter();
        let sensitive = sensitive.map(|text| Row {
            cells: [None; 3],
            person: None,
            sensitive: text.parse::<f64>().ok().map(|value| value as u8),
        });
        let rows: Vec<Row> = sensitive.collect();
        let uncovered = |row: &Row| row.cells[2] == Some(4) && on.contains(&2) && by[2] == "hierarchy:1";
        let same = |b: usize, a: &Row| {
            !uncovered(a) && on.iter().all(|at| covers(&by[*at], &labels[*at][b], *at, a.cells[*at]))
        };
        let on_names: Vec<String> = on.iter().map(|at| names[*at].to_owned()).collect();
        let linked = attack(&place, "a.parquet", "out", &on_names, (by_person, false));
        match linked {
            Some(linked) => {
                prop_assert_eq!(found(&linked), naive(&people, &rows, same, (by_person, false)));
                prop_assert_eq!(linked.uncovered, people.iter().filter(|row| uncovered(row)).count() as u64);
                // A match of whoever it is is a match of at least k: the promise of the release, if
                // all are known.
                prop_assert!(linked.least().is_none_or(|least| least >= k));
            }
            None => prop_assert!(by_person && people.iter().all(|row| row.person.is_none())),
        }
    }
}
