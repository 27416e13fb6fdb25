//! What the commands print with `--format json` has the keys that the page lists, and no others.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Int64Array, ListArray, StringArray};
use arrow::datatypes::Int64Type;
use serde_json::{Value, json};

use super::kinds::{Kinds, difference, kinds_of, observe};
use super::records::{PRIVATE, PUBLIC};
use super::type_docs::{Listed, Places, fields, write};
use super::{COMMANDS, NESTED};
use crate::command::{Place, table};
use crate::releases::{MARITAL, people};

/// What a command prints.
struct Output {
    /// The command, with the options that change what it prints.
    call: &'static str,
    /// What it prints, in one sentence.
    summary: &'static str,
    /// The struct that it prints; `None` if the sentence says it all.
    answer: Option<&'static str>,
}

const fn output(call: &'static str, summary: &'static str, answer: &'static str) -> Output {
    Output { call, summary, answer: Some(answer) }
}

/// The outputs of all commands.
const OUTPUTS: &[Output] = &[
    output("init", "The proposal.", "InitAnswer"),
    output("check", "The verdict on the table as it is.", "CheckAnswer"),
    output("search", "The best recodings.", "SearchAnswer"),
    output("search --minimal", "The minimal nodes.", "MinimalAnswer"),
    output("search --compare", "What each method finds.", "MethodsAnswer"),
    output(
        "release",
        "What was released; all but `public` is for the publisher only, as it holds raw facts about the input.",
        "ReleaseAnswer",
    ),
    output("verify", "What was verified; a release that does not pass is an error.", "VerifyAnswer"),
    output(
        "verify --chain",
        "What was verified of releases that follow one another; those that do not pass are an error.",
        "ChainAnswer",
    ),
    Output {
        call: "explain",
        summary: "The public record of the release, as in `_kanon.json`.",
        answer: None,
    },
    output("risk", "The risks.", "RiskAnswer"),
    output("link", "What the attacker learns.", "LinkAnswer"),
    output("compare", "The verdict on releases of the same people.", "CompareAnswer"),
    output("plan", "What lives of releases would cost.", "PlanAnswer"),
    Output {
        call: "sql",
        summary: "For each result a list of tables: the rows, by the columns' names.",
        answer: None,
    },
    output("hierarchy", "The hierarchy of the column's values.", "HierarchyAnswer"),
    output("hierarchy --to", "The file that was written.", "HierarchyFileAnswer"),
    output("hierarchy check", "The verdict on the hierarchy file.", "HierarchyCheckAnswer"),
    output("list", "Everything that can stand in a policy or in SQL.", "ListAnswer"),
    output("generate", "The file that was written.", "GenerateAnswer"),
];

impl Output {
    /// Returns the command, without options.
    fn command(&self) -> &'static str {
        self.call.split(" --").next().unwrap()
    }
}

/// Returns the outputs, each with the fields that it lists: not those of a record or of an earlier output.
fn outputs() -> Vec<(&'static Output, Vec<Listed>)> {
    let mut places = Places::default();
    places.add_document(PUBLIC, "_kanon.json");
    places.add_document(PRIVATE, "OUT.private.json");
    let listed = |output: &'static Output| {
        let document = format!("kanon {}", output.call);
        (output, output.answer.map_or(Vec::new(), |answer| places.fields(answer, &document)))
    };
    OUTPUTS.iter().map(listed).collect()
}

/// Writes what a command prints as JSON.
pub(super) fn section(page: &mut String, command: &str) {
    for (output, fields) in outputs().iter().filter(|(output, _)| output.command() == command) {
        let Output { call, summary, .. } = output;
        let below = if fields.is_empty() { "" } else { "\n" };
        write!(page, "\nJSON of `kanon {call}`: {summary}\n{below}").unwrap();
        write(page, fields);
    }
}

/// Checks that these documents have the keys of an output, of every kind that it lists, and no others.
#[track_caller]
fn agrees(call: &str, documents: &[Value]) {
    let (output, listed) = outputs().into_iter().find(|(output, _)| output.call == call).unwrap();
    let kinds = |fields: &[Listed]| kinds_of(fields.iter().map(|listed| &listed.field));
    let (own, all) = (kinds(&listed), kinds(&fields(output.answer.unwrap())));
    let mut seen = Kinds::new();
    documents.iter().for_each(|document| observe(&mut seen, &all, "", document));
    assert_eq!(difference(&seen, &all), [""; 0], "kanon {call}: not listed");
    assert_eq!(difference(&own, &seen), [""; 0], "kanon {call}: listed and never printed");
}

#[test]
fn every_command_has_an_output() {
    let commands: BTreeSet<&str> = COMMANDS.iter().chain(NESTED).copied().collect();
    assert_eq!(OUTPUTS.iter().map(Output::command).collect::<BTreeSet<_>>(), commands);
    for (output, fields) in outputs() {
        let paths: BTreeSet<&str> = fields.iter().map(|listed| listed.field.path.as_str()).collect();
        assert_eq!(paths.len(), fields.len(), "{}", output.call);
    }
}

const LEVELS: &str = r#"
    k = 5
    suppression_limit = 0.5
    rows_are_individuals = true
    accept_homogeneity = ["diagnosis"]
    others = "drop"
    [columns]
    zip       = { role = "quasi", hierarchy = { prefix = [4, 3, 2] } }
    age       = { role = "quasi", hierarchy = { range = [5, 10, 20] } }
    sex       = { role = "quasi" }
    diagnosis = { role = "sensitive", allow_unique = true }
"#;

fn scene() -> Place {
    let place = Place::new();
    place.parquet("in.parquet", &people(1));
    place.write("marital.csv", MARITAL);
    // An individual column that is contradicted, and a city in two spellings.
    let rows = (0..40).map(|n| format!("{n},{},{}\n", n / 20, ["Ulm", "ulm", "Bonn", "Bonn"][n % 4]));
    place.write("odd.csv", "visit,ssn,city\n".to_owned() + &rows.collect::<String>());
    let odd = "k = 2\n[columns]\nvisit = { role = \"individual\" }\nssn = { role = \"identifier\" }\n\
               city = { role = \"quasi\" }\n";
    place.write("odd.toml", odd);
    let model = "[[require]]\nmodel = \"l_diversity\"\nl = 2\nsensitive = \"diagnosis\"\n[columns]";
    let close = "[[require]]\nmodel = \"t_closeness\"\nt = 0.9\nsensitive = \"diagnosis\"\n[columns]";
    let counted = |policy: &str| {
        policy
            .replace("rows_are_individuals = true", "")
            .replace("[columns]", "[columns]\nssn = { role = \"individual\" }")
    };
    let method = |name: &str| LEVELS.replacen("k = 5", &format!("k = 5\nmethod = \"{name}\""), 1);
    for (name, policy) in [
        ("levels", LEVELS.to_owned()),
        ("models", LEVELS.replace("[columns]", model)),
        ("counted", counted(LEVELS)),
        ("followed", format!("{}\n[history]\n", counted(LEVELS))),
        ("regions", method("mondrian")),
        ("best", method("best")),
        ("close", LEVELS.replace("[columns]", close)),
        ("groups", method("anatomy").replace("[columns]", model)),
        ("noise", crate::dp_centroids::POLICY.to_owned()),
        ("alone", LEVELS.replace("k = 5", "").replace("[columns]", &model.replace("l = 2", "l = 1"))),
        // Nothing but suppression satisfies it.
        ("all", LEVELS.replace("suppression_limit = 0.5", "suppression_limit = 1")),
        ("none", LEVELS.replace("suppression_limit = 0.5", "").replace("quasi\"", "quasi\", max_level = 0")),
    ] {
        place.write(&format!("{name}.toml"), policy);
    }
    place
}

/// Runs commands, whatever their exit code, and returns what they print.
fn run(place: &Place, lines: &[&str]) -> Vec<Value> {
    lines.iter().map(|line| place.run(&format!("{line} --format json")).json()).collect()
}

#[test]
fn init() {
    let place = scene();
    let latin1: Vec<u8> = "Geburtsdatum;Größe;Betrag;Postleitzahl\n".chars().map(|c| c as u8).collect();
    let rows: String = (0..40)
        .map(|n| format!("{}.03.1970;1,{};1.2{},5;8{}33{}\n", 1 + n % 28, 50 + n, 10 + n, n % 3, n % 7))
        .collect();
    place.write("german.csv", [latin1, rows.into_bytes()].concat());
    let rows: String = (0..40).map(|n| format!("{n},0{}/0{}/1970,{}.5\n", 1 + n % 9, 1 + n % 7, n)).collect();
    place.write("plain.csv", format!("patient_id,date_of_birth,amount\n{rows}"));
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>((0..4).map(|n| Some(vec![Some(n)])));
    let numbers: Int64Array = (0..4).map(Some).collect();
    place.parquet(
        "list.parquet",
        &table([("x", Arc::new(lists) as ArrayRef), ("y", Arc::new(numbers) as ArrayRef)]),
    );
    place.write(
        "visits.csv",
        "patient_id,age\n".to_owned() + &(0..40).map(|n| format!("{},{}\n", n / 2, n)).collect::<String>(),
    );
    let rows: String = (0..400).map(|n| format!("w{},v{},u{}\n", n % 20, n / 20, n % 7)).collect();
    place.write("open.csv", format!("q1,q2,q3\n{rows}"));
    agrees(
        "init",
        &run(
            &place,
            &[
                "init open.csv",
                "init odd.csv",
                "init german.csv",
                "init plain.csv",
                "init list.parquet",
                "init in.parquet",
                "init visits.csv",
            ],
        ),
    );
}

#[test]
fn check() {
    let place = scene();
    let level = "[[require]]\nmodel = \"l_diversity\"\nl = 2\nlevel = 1\n";
    let values =
        "[[require]]\nmodel = \"alpha_k_anonymity\"\nalpha = 0.9\nvalues = [\"flu\"]\nquasi = [\"age\"]\n";
    let sensitive = "{ role = \"sensitive\", hierarchy = { prefix = [1] } }";
    let policy = LEVELS.replace("[columns]", &format!("{level}{values}[columns]"));
    let policy: String = policy
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("diagnosis"))
        .fold(String::new(), |policy, line| policy + line + "\n");
    place.write("looks.toml", format!("{policy}diagnosis = {sensitive}\n"));
    let lines = ["models", "alone", "looks"].map(|name| format!("check in.parquet --policy {name}.toml"));
    let mut documents = run(&place, &lines.each_ref().map(String::as_str));
    documents.extend(run(&place, &["check odd.csv --policy odd.toml"]));
    agrees("check", &documents);
}

#[test]
fn search() {
    let place = scene();
    let search = |names: &[&str], option: &str| -> Vec<Value> {
        let line = |name: &&str| format!("search in.parquet --policy {name}.toml {option}");
        let odd = format!("search odd.csv --policy odd.toml {option}");
        let lines: Vec<String> = names.iter().map(line).chain([odd]).collect();
        run(&place, &lines.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let names = ["levels", "models", "counted", "regions", "best", "groups", "noise", "alone", "none"];
    let mut documents = search(&names, "");
    documents.extend(search(&["all"], "--top 1000"));
    agrees("search", &documents);
    agrees("search --minimal", &search(&["levels", "alone", "none"], "--minimal"));
    agrees("search --compare", &search(&["levels", "counted", "noise", "alone", "none"], "--compare"));
}

#[test]
fn releases_and_their_verification() {
    let place = scene();
    let (mut released, mut verified) = (Vec::new(), Vec::new());
    for name in ["levels", "models", "counted", "close", "followed"] {
        released.extend(run(&place, &[&format!("release in.parquet --policy {name}.toml --to {name}")]));
        let written: Value =
            serde_json::from_slice(&fs::read(place.path(&format!("{name}/_kanon.json"))).unwrap()).unwrap();
        assert_eq!(released.last().unwrap()["public"], written);
        assert_eq!(run(&place, &[&format!("explain {name}")])[0], written);
        verified
            .extend(run(&place, &[&format!("verify {name}"), &format!("verify {name} --input in.parquet")]));
    }
    released.extend(run(
        &place,
        &["release odd.csv --policy odd.toml --to odd", "release in.parquet --after followed --to next"],
    ));
    agrees("release", &released);
    // Without its private record, the policy is found.
    fs::remove_file(place.path("models.private.json")).unwrap();
    verified.extend(run(&place, &["verify models --input in.parquet"]));
    agrees("verify", &verified);
    let mut chains = run(
        &place,
        &[
            "verify --chain followed next",
            "verify --chain followed next --input in.parquet --input in.parquet",
        ],
    );
    for name in ["followed", "next"] {
        fs::remove_file(place.path(&format!("{name}.private.json"))).unwrap();
    }
    chains.extend(run(&place, &["verify --chain followed next"]));
    agrees("verify --chain", &chains);
}

#[test]
fn plan() {
    let lines =
        ["--versions 3", "--versions 2 --leave 5% --k 4,5", "--versions 2 --arrive 0 --leave 0.95 --k 5"];
    let lines = lines.map(|line| format!("plan in.parquet --policy followed.toml {line}"));
    let documents = run(&scene(), &lines.each_ref().map(String::as_str));
    assert_eq!(documents[1]["lives"][0]["versions"].as_array().unwrap().len(), 2);
    agrees("plan", &documents);
}

#[test]
fn risk() {
    agrees(
        "risk",
        &run(
            &scene(),
            &[
                "risk in.parquet --quasi zip,age",
                "risk in.parquet --policy counted.toml",
                "risk odd.csv --policy odd.toml",
            ],
        ),
    );
}

#[test]
fn link() {
    let place = scene();
    run(&place, &["release in.parquet --policy levels.toml --to safe"]);
    place.write("list.csv", "zip,age\n02134,22\n99999,1\n");
    let lines = [
        "link in.parquet in.parquet --on zip,age --sensitive diagnosis",
        "link list.csv in.parquet --on age,zip --sensitive diagnosis",
        "link list.csv safe",
        "link in.parquet safe",
    ];
    let mut documents = run(&place, &lines);
    place.write("list.csv", "zip,age\nabcde,1\n");
    documents.extend(run(&place, &["link list.csv in.parquet --on age,zip"]));
    // Without the private record labels are read as texts.
    run(&place, &["release in.parquet --policy regions.toml --to regions"]);
    fs::remove_file(place.path("regions.private.json")).unwrap();
    documents.extend(run(&place, &["link in.parquet regions"]));
    agrees("link", &documents);
}

#[test]
fn compare() {
    const POLICY: &str = r#"
        k = 2
        suppression_limit = 0.9
        others = "drop"
        accept_homogeneity = ["disease"]
        [[require]]
        model = "k_anonymity"
        k = 3
        quasi = ["zip"]
        [[require]]
        model = "l_diversity"
        l = 2
        sensitive = "disease"
        [columns]
        person = { role = "individual" }
        zip = { role = "quasi", hierarchy = { prefix = [2] }, min_level = 1 }
        age = { role = "quasi", hierarchy = { range = [50] }, min_level = 1 }
        sex = { role = "quasi" }
        disease = { role = "sensitive", allow_unique = true }
        since = { role = "insensitive", allow_unique = true }
        ward = { role = "insensitive", allow_unique = true }
    "#;
    let place = Place::new();
    let age_as_it_is = "age = { role = \"insensitive\", allow_unique = true }";
    let other = POLICY.lines().filter(|line| !line.trim().starts_with("ward"));
    let other = other.map(|line| if line.trim().starts_with("age") { age_as_it_is } else { line });
    place.write("a.toml", POLICY);
    place.write("b.toml", other.collect::<Vec<_>>().join("\n"));
    let rows = |count: usize| {
        let texts = |text: &dyn Fn(usize) -> String| {
            Arc::new((0..count).map(|n| Some(text(n))).collect::<StringArray>()) as ArrayRef
        };
        let numbers = |first: i64| (0..count).map(move |n| first + n as i64);
        let days = numbers(19_000).map(|day| i32::try_from(day).unwrap());
        table([
            ("person", texts(&|n| format!("p{n}"))),
            ("zip", texts(&|n| ["1001", "1002", "2001", "2002"][n % 4].to_owned())),
            ("age", Arc::new(numbers(20).map(Some).collect::<Int64Array>()) as ArrayRef),
            ("sex", texts(&|_| "f".to_owned())),
            ("disease", texts(&|n| ["flu", "gout", "HIV", "cold"][n / 4].to_owned())),
            ("since", Arc::new(days.map(Some).collect::<Date32Array>()) as ArrayRef),
            ("ward", texts(&|n| format!("w{}", n % 2))),
        ])
    };
    for (name, count) in [("a", 12), ("b", 13)] {
        place.parquet(&format!("{name}.parquet"), &rows(count));
    }
    for (input, policy, out) in [("a", "a", "first"), ("b", "a", "second"), ("b", "b", "other")] {
        run(&place, &[&format!("release {input}.parquet --policy {policy}.toml --to {out}")]);
    }
    let lines = [
        "compare first second --input a.parquet --input b.parquet --prove",
        "compare first second other --input a.parquet --input b.parquet --input b.parquet",
        "compare first first --input a.parquet --input a.parquet",
        "compare first second",
    ];
    agrees("compare", &run(&place, &lines));
}

#[test]
fn sql_prints_rows() {
    let rows = scene().run_on("sql --format json -c", Some("SELECT 1 AS a, 'x' AS b"), "").exit(0).json();
    assert_eq!(rows, json!([{ "a": 1, "b": "x" }]));
}

#[test]
fn hierarchies() {
    let place = scene();
    let line = "hierarchy in.parquet zip --by 'prefix = [4, 2]'";
    agrees("hierarchy", &run(&place, &[line]));
    agrees("hierarchy --to", &run(&place, &[&format!("{line} --to zip.csv")]));
    let text = fs::read_to_string(place.path("zip.csv")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.remove(1);
    place.write("zip.csv", lines.join("\n") + "\n99999;9999*;99***;*\n");
    let line = "hierarchy check zip.csv --input in.parquet";
    agrees("hierarchy check", &run(&place, &[line, &format!("{line} --show-values")]));
}

#[test]
fn list_and_generate() {
    let place = Place::new();
    agrees("list", &run(&place, &["list"]));
    agrees("generate", &run(&place, &["generate --rows 10 --to v.parquet"]));
}
