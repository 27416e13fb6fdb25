//! `kanon release --recoding`: the recoding of an earlier release, applied to other rows.

use std::collections::BTreeSet;
use std::fs;

use arrow::array::Array;
use arrow::record_batch::RecordBatch;
use arrow::util::display::array_value_to_string;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion_kanon::internals::method::{MethodSpec, ReleaseKind, variants};
use datafusion_kanon::internals::release::publish::record::{PrivateRecord, PublicRecord};

use crate::regions::{Line, assignment, write_assignment};
use crate::releases::{Lab, OUT, PART, people, read_parquet, texts, write_parquet};

const QUASI: [&str; 5] = ["dob", "zip", "age", "sex", "marital"];
const AGAIN: &str = "again";
const RECORD: &str = "out.private.json";

fn policy(method: &MethodSpec, ends: &str) -> String {
    let makes_intervals = method.kind() == ReleaseKind::Regions;
    let output = if makes_intervals { format!("[output]\nends = \"{ends}\"\n") } else { String::new() };
    format!(
        r#"
k = 5
method = {method}
suppression_limit = 0.95
rows_are_individuals = true
accept_homogeneity = ["diagnosis"]
others = "drop"
{output}
[columns]
dob       = {{ role = "quasi", hierarchy = {{ date = ["month", "year", "decade"] }} }}
zip       = {{ role = "quasi", hierarchy = {{ prefix = [4, 3, 2] }} }}
age       = {{ role = "quasi", hierarchy = {{ range = [5, 10, 20] }} }}
sex       = {{ role = "quasi" }}
marital   = {{ role = "quasi", hierarchy = {{ file = "marital.csv" }} }}
diagnosis = {{ role = "sensitive", allow_unique = true }}
"#
    )
}

/// What the classes of a release show.
fn shown(rows: &RecordBatch) -> BTreeSet<Vec<Option<String>>> {
    let cell = |name: &str, row| {
        let column = rows.column_by_name(name).unwrap();
        column.is_valid(row).then(|| array_value_to_string(column, row).unwrap())
    };
    (0..rows.num_rows()).map(|row| QUASI.iter().map(|name| cell(name, row)).collect()).collect()
}

fn written(lab: &Lab, out: &str) -> RecordBatch {
    read_parquet(&lab.path(out).join(PART))
}

/// Other people, and three times as many.
fn tonight() -> RecordBatch {
    people(6)
}

#[test]
fn other_rows_show_what_the_earlier_ones_did() {
    // Groups are refused: see anatomy.rs.
    let methods = variants().into_iter().filter(|method| method.kind() != ReleaseKind::Groups);
    for method in methods.chain([MethodSpec::named("best")]) {
        let lab = Lab::new(&people(2));
        fs::write(lab.path("policy.toml"), policy(&method, "closed")).unwrap();
        lab.release("policy.toml", OUT).exit(0, "");
        write_parquet(&lab.path("tonight.parquet"), &tonight(), WriterProperties::default());
        if method.kind().facts().shows_centroids {
            lab.run(&["release", "tonight.parquet", "--recoding", RECORD, "--to", AGAIN])
                .exit(2, "centroids of the rows of its own input");
            assert!(!lab.path(AGAIN).exists(), "{method}");
            continue;
        }
        lab.run(&["release", "tonight.parquet", "--recoding", RECORD, "--to", AGAIN])
            .exit(0, "none: the recoding of the earlier release again");
        lab.run(&["verify", AGAIN]).exit(0, "");
        lab.run(&["verify", AGAIN, "--input", "tonight.parquet"]).exit(0, "against the input");
        lab.run(&["verify", AGAIN, "--input", "people.parquet"]).exit(1, "");

        let (before, after) = (written(&lab, OUT), written(&lab, AGAIN));
        assert_eq!(before.schema(), after.schema(), "{method}");
        let (before, after) = (shown(&before), shown(&after));
        // Levels are those of other values, too.
        let is_known = method.name == "auto" || after.is_subset(&before);
        assert!(is_known, "{method}: {:?}", after.difference(&before).next());
        assert!(after.len() > 1 || before.len() == 1, "{method}");
        let records = [OUT, AGAIN].map(|out| {
            let public: PublicRecord =
                serde_json::from_slice(&fs::read(lab.path(out).join("_kanon.json")).unwrap()).unwrap();
            public
        });
        assert_eq!(records[0].recoding, records[1].recoding, "{method}");
        let private = fs::read(lab.path("again.private.json")).unwrap();
        let private: PrivateRecord = serde_json::from_slice(&private).unwrap();
        assert_eq!(private.recoding_of.as_ref(), Some(&records[0].digest), "{method}");
        assert_eq!(private.release, records[1].digest, "{method}");
        // The same rows again are the same release, and so is the recoding of the recoding.
        lab.run(&["release", "people.parquet", "--recoding", RECORD, "--to", "same"]).exit(0, "");
        let file = |out: &str| fs::read(lab.path(out).join(PART)).unwrap();
        assert_eq!(file(OUT), file("same"), "{method}");
        lab.run(&["release", "tonight.parquet", "--recoding", "again.private.json", "--to", "twice"])
            .exit(0, "");
        assert_eq!(file(AGAIN), file("twice"), "{method}");
    }
}

/// With the default ends an end at the least or the greatest of the new rows is written open, and
/// verification demands it.
#[test]
fn ends_are_those_of_the_new_rows() {
    for (method, ends) in
        [("best", "values"), ("mondrian", "values"), ("mondrian", "cuts"), ("local", "cuts")]
    {
        let lab = Lab::new(&people(2));
        fs::write(lab.path("policy.toml"), policy(&MethodSpec::named(method), ends)).unwrap();
        lab.release("policy.toml", OUT).exit(0, "");
        write_parquet(&lab.path("tonight.parquet"), &tonight(), WriterProperties::default());
        lab.run(&["release", "tonight.parquet", "--recoding", RECORD, "--to", AGAIN]).exit(0, "");
        lab.run(&["verify", AGAIN, "--input", "tonight.parquet"]).exit(0, "against the input");
        let ages = texts(&written(&lab, AGAIN), "age");
        assert!(ages.len() > 100 && ages.iter().any(Option::is_some), "{method}");
    }
}

#[test]
fn a_recoding_that_does_not_hold_is_refused() {
    for method in ["auto", "mondrian"] {
        let lab = Lab::new(&people(2));
        fs::write(lab.path("policy.toml"), policy(&MethodSpec::named(method), "closed")).unwrap();
        lab.release("policy.toml", OUT).exit(0, "");
        write_parquet(&lab.path("few.parquet"), &people(2).slice(0, 9), WriterProperties::default());
        let names = lab.names();
        lab.run(&["release", "few.parquet", "--recoding", RECORD, "--to", AGAIN])
            .exit(1, "the recoding of the earlier release does not hold for these rows");
        assert_eq!(lab.names(), names, "{method}");
        let again = ["release", "few.parquet", "--recoding", "policy.toml", "--to", AGAIN];
        lab.run(&again).exit(2, "--recoding policy.toml: expected the private record of a release");
        let again = ["release", "few.parquet", "--recoding", "none.json", "--to", AGAIN];
        lab.run(&again).exit(3, "--recoding none.json: no such file");
        let both = ["release", "few.parquet", "--recoding", RECORD, "--policy", "policy.toml", "--to", AGAIN];
        lab.run(&both).exit(2, "cannot be used with");
        assert_eq!(lab.names(), names, "{method}");
    }
}

/// Whoever edits the private record decides what the classes show, but not what holds: the rows are
/// judged and verified again.
#[test]
fn an_edited_record_promises_no_less() {
    const REFUSED: [&str; 2] =
        ["is not the canonical text of its region", "assigns a combination of values twice"];
    type Edit = fn(&mut Vec<Line>);
    let edits: [(&str, Edit, Option<&str>); 5] = [
        ("a text that is no region", |lines| show(lines, "[07,90]"), Some(REFUSED[0])),
        ("a combination twice", |lines| lines.push(lines[0].clone()), Some(REFUSED[1])),
        ("a region that does not hold its values", |lines| show(lines, "[0,1]"), None),
        ("more than its values", |lines| show(lines, "*"), None),
        (
            "each combination shows itself",
            |lines| lines.iter_mut().for_each(|line| line.shown[0].clone_from(&line.values[0])),
            Some("does not hold for these rows"),
        ),
    ];
    let lab = Lab::new(&people(2));
    fs::write(lab.path("policy.toml"), policy(&MethodSpec::named("mondrian"), "closed")).unwrap();
    lab.release("policy.toml", OUT).exit(0, "");
    let honest = fs::read(lab.path(RECORD)).unwrap();
    let again = ["release", "people.parquet", "--recoding", RECORD, "--to", AGAIN, "--overwrite"];
    for (what, edit, refusal) in edits {
        let mut lines = assignment(&lab);
        let before = lines.clone();
        edit(&mut lines);
        assert!(lines != before, "{what}: nothing was edited");
        write_assignment(&lab, &lines);
        match refusal {
            Some(why) => {
                lab.run(&again).exit(1, why);
            }
            None => {
                lab.run(&again).exit(0, "k_anonymity 5 required");
                lab.run(&["verify", AGAIN, "--input", "people.parquet"]).exit(0, "against the input");
                let sizes = shown(&written(&lab, AGAIN));
                assert!(!sizes.is_empty(), "{what}");
            }
        }
        fs::write(lab.path(RECORD), &honest).unwrap();
    }
    // Levels that the policy does not allow.
    fs::write(lab.path("policy.toml"), policy(&MethodSpec::named("auto"), "")).unwrap();
    lab.run(&["release", "people.parquet", "--policy", "policy.toml", "--to", OUT, "--overwrite"])
        .exit(0, "");
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(lab.path(RECORD)).unwrap()).unwrap();
    record["search"]["best"][0]["recoding"]["levels"][0] = 99.into();
    fs::write(lab.path(RECORD), record.to_string()).unwrap();
    lab.run(&again).exit(1, "holds no recoding that could be applied");
}

/// Lets the first class show another age.
fn show(lines: &mut [Line], age: &str) {
    let first = lines.iter().find(|line| line.kept).unwrap().shown.clone();
    lines.iter_mut().filter(|line| line.shown == first).for_each(|line| line.shown[2] = Some(age.to_owned()));
}
