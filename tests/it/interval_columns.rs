//! Releases that write the ends of intervals as columns: what they hold beside the same release as
//! text, and forgeries.

use std::fs;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Date32Array};
use arrow::datatypes::{DataType, Date32Type};
use arrow::record_batch::RecordBatch;
use datafusion_kanon::internals::release::publish::record::{FileRecord, PublicRecord};
use datafusion_kanon::internals::release::publish::write;

use crate::mutants::Must::{self, Pass, Refuse};
use crate::mutants::verify;
use crate::regions::{cell, regions};
use crate::releases::{
    FOOTER, Lab, OUT, PART, as_kanon_writes, ordered, people, read_parquet, record, seal, with, write_parquet,
};

const COLUMNS: &str = r#"
[columns]
ssn       = { role = "identifier" }
dob       = { role = "quasi", hierarchy = { date = ["month", "year", "decade"] } }
zip       = { role = "quasi", hierarchy = { prefix = [4, 3, 2] } }
age       = { role = "quasi", clip = [25, 80], hierarchy = { range = [5, 10, 20] } }
sex       = { role = "quasi" }
marital   = { role = "quasi", hierarchy = { file = "marital.csv" } }
diagnosis = { role = "sensitive" }
ward      = { role = "insensitive" }
stay      = { role = "insensitive" }
weight    = { role = "insensitive" }
notes     = { role = "text" }
"#;

/// The quasi-identifiers that are written as three columns.
const TRIPLES: [&str; 2] = ["dob", "age"];

fn released(method: &str, output: &str) -> Lab {
    let lab = Lab::new(&people(1));
    let top = "k = 5\nrows_are_individuals = true\naccept_homogeneity = [\"diagnosis\"]";
    fs::write(lab.path("policy.toml"), format!("{top}\nmethod = {method}\n[output]\n{output}{COLUMNS}"))
        .unwrap();
    lab.release("policy.toml", OUT).exit(0, "each class shows its own dob, zip, age, sex, marital");
    lab
}

fn rows(lab: &Lab) -> RecordBatch {
    read_parquet(&lab.out().join(PART))
}

/// Every row as text, in order; `cells` gives those of a quasi-identifier that is written as three columns.
fn all_rows(
    rows: &RecordBatch,
    cells: impl Fn(&str, usize) -> Vec<Option<String>>,
) -> Vec<Vec<Option<String>>> {
    let of_row = |row: usize| {
        let others = ["zip", "sex", "marital", "diagnosis", "ward", "stay", "weight"];
        let others = others.iter().map(|name| cell(rows, name, row));
        TRIPLES.iter().flat_map(|name| cells(name, row)).chain(others).collect()
    };
    let mut all: Vec<_> = (0..rows.num_rows()).map(of_row).collect();
    all.sort();
    all
}

/// The three columns of a text, read without the library; ends are included.
fn triple(text: Option<String>) -> Vec<Option<String>> {
    let Some(text) = text else { return vec![None, None, Some("true".into())] };
    if text == "*" {
        return vec![None; 3];
    }
    let (text, missing) = match text.strip_suffix(" or missing") {
        Some(text) => (text, None),
        None => (&*text, Some("false".to_owned())),
    };
    let some = |end: &str| Some(end.to_owned());
    // Of whole numbers, the value beside an end that is not included.
    let beside = |end: &str, step: i64| some(&(end.parse::<i64>().unwrap() + step).to_string());
    let (from, to) = match text.split_at(1) {
        ("[", rest) => match rest.strip_suffix(']') {
            Some(rest) => rest.split_once(',').map(|(from, to)| (some(from), some(to))).unwrap(),
            None => {
                let (from, to) = rest.strip_suffix(')').unwrap().split_once(',').unwrap();
                (some(from), beside(to, -1))
            }
        },
        ("<", end) => (None, end.strip_prefix('=').map_or_else(|| beside(end, -1), some)),
        (">", end) => (end.strip_prefix('=').map_or_else(|| beside(end, 1), some), None),
        _ => (some(text), some(text)),
    };
    vec![from, to, missing]
}

#[test]
fn they_hold_what_the_texts_say() {
    for method in ["\"mondrian\"", "\"local\"", "{ mondrian = { split = \"relaxed\" } }", "\"clusters\""] {
        let (as_text, as_columns) = (
            released(method, "ends = \"closed\""),
            released(method, "ends = \"closed\"\nintervals = \"columns\""),
        );
        let (texts, columns) = (rows(&as_text), rows(&as_columns));
        let schema = columns.schema();
        let type_of = |name: &str| schema.field_with_name(name).unwrap().data_type().clone();
        assert_eq!(
            ["dob_from", "age_to", "age_missing"].map(type_of),
            [DataType::Date32, DataType::Int64, DataType::Boolean]
        );
        let expected = all_rows(&texts, |name, row| triple(cell(&texts, name, row)));
        let found = all_rows(&columns, |name, row| {
            ["from", "to", "missing"].map(|part| cell(&columns, &format!("{name}_{part}"), row)).into()
        });
        assert_eq!(found, expected, "{method}");
        verify(&as_columns, method, Pass, Pass);
    }
}

#[test]
fn every_kind_of_end_is_verified() {
    for ends in ["values", "closed", "cuts"] {
        for method in
            ["\"best\"", "\"mondrian\"", "{ mondrian = { split = \"loss\" } }", "\"subtree\"", "\"cells\""]
        {
            let lab = released(method, &format!("ends = \"{ends}\"\nintervals = \"columns\""));
            verify(&lab, &format!("{method}, {ends}"), Pass, Pass);
            lab.run(&["risk", OUT]).exit(0, "dob_from");
            lab.run(&["link", "people.parquet", OUT, "--k", "5"]).exit(0, "holds");
        }
    }
}

/// Writes other rows into the release, in the order of kanon, with the digests that they need.
fn forge(lab: &Lab, rows: &RecordBatch) {
    let mut like = record(lab);
    let columns = &mut like.tables[0].columns;
    for name in TRIPLES {
        let at = columns.iter().position(|column| column.name == name).unwrap();
        let one = columns.remove(at);
        for part in ["missing", "to", "from"] {
            let name = format!("{name}_{part}");
            columns.insert(
                at,
                datafusion_kanon::internals::release::publish::record::ColumnRecord { name, ..one.clone() },
            );
        }
    }
    write_parquet(&lab.out().join(PART), &ordered(rows, &like), as_kanon_writes(&FOOTER, write::CREATED_BY));
    let mut record = record(lab);
    record.tables[0].files = vec![FileRecord::of(&lab.out(), PART, rows.num_rows() as u64).unwrap()];
    seal(lab, record);
}

/// The rows with other dates of birth in the rows where `applies`.
fn with_dob(
    rows: &RecordBatch,
    applies: impl Fn([Option<i32>; 2], Option<bool>) -> bool,
    to: impl Fn([Option<i32>; 2], Option<bool>) -> ([Option<i32>; 2], Option<bool>),
) -> RecordBatch {
    let ends = |part: &str| {
        rows.column_by_name(&format!("dob_{part}")).unwrap().as_primitive::<Date32Type>().clone()
    };
    let (from, until) = (ends("from"), ends("to"));
    let missing = rows.column_by_name("dob_missing").unwrap().as_boolean().clone();
    let changed = (0..rows.num_rows()).map(|row| {
        let end = |ends: &Date32Array| ends.is_valid(row).then(|| ends.value(row));
        let (ends, missing) = ([end(&from), end(&until)], missing.is_valid(row).then(|| missing.value(row)));
        if applies(ends, missing) { to(ends, missing) } else { (ends, missing) }
    });
    let changed: Vec<_> = changed.collect();
    let column = |at: usize| -> ArrayRef {
        Arc::new(changed.iter().map(|(ends, _)| ends[at]).collect::<Date32Array>())
    };
    let missing: ArrayRef = Arc::new(changed.iter().map(|(_, missing)| *missing).collect::<BooleanArray>());
    let rows = with(&with(rows, "dob_from", column(0)), "dob_to", column(1));
    with(&rows, "dob_missing", missing)
}

#[test]
fn other_ends_are_refused() {
    const NO_CLASS: &str = "that no input row generalizes to";
    const CONTRADICT: Must = Refuse("the columns of `dob` contradict one another in a row");
    let lab = released("\"mondrian\"", "intervals = \"columns\"");
    let honest = lab.files();
    forge(&lab, &rows(&lab));
    assert!(lab.files() == honest, "the same rows must forge to the same bytes");
    let is_interval =
        |ends: [Option<i32>; 2], _: Option<bool>| matches!(ends, [Some(from), Some(to)] if from < to);
    let is_missing = |_: [Option<i32>; 2], missing: Option<bool>| missing == Some(true);
    let honest_rows = rows(&lab);
    let forgeries: [(&str, RecordBatch, Must, Must); 7] = [
        (
            "ends exchanged",
            with_dob(&honest_rows, is_interval, |[from, to], missing| ([to, from], missing)),
            Refuse("`dob` holds a text that kanon would not write for a region"),
            Refuse(NO_CLASS),
        ),
        (
            "an end moved outward",
            with_dob(&honest_rows, is_interval, |[from, to], missing| {
                ([from.map(|from| from - 1), to], missing)
            }),
            Pass,
            Refuse(NO_CLASS),
        ),
        (
            "nothing is missing any more",
            with_dob(
                &honest_rows,
                |ends, missing| ends != [None, None] && missing.is_none(),
                |ends, _| (ends, Some(false)),
            ),
            Pass,
            Refuse(NO_CLASS),
        ),
        (
            "no end, and yet not missing",
            with_dob(&honest_rows, is_missing, |ends, _| (ends, Some(false))),
            CONTRADICT,
            CONTRADICT,
        ),
        (
            "an end where nothing is known",
            with_dob(&honest_rows, is_missing, |_, _| ([Some(30), None], None)),
            Pass,
            Refuse(NO_CLASS),
        ),
        (
            "missing, and between two ends",
            with_dob(&honest_rows, is_interval, |ends, _| (ends, Some(true))),
            CONTRADICT,
            CONTRADICT,
        ),
        (
            "missing no more",
            with_dob(&honest_rows, is_missing, |_, _| ([None, None], None)),
            Pass,
            Refuse(NO_CLASS),
        ),
    ];
    for (what, rows, alone, against) in forgeries {
        assert_ne!(rows, honest_rows, "{what}: nothing was forged");
        forge(&lab, &rows);
        verify(&lab, what, alone, against);
        lab.restore(&honest);
    }
    verify(&lab, "after", Pass, Pass);
}

#[test]
fn records_that_contradict_their_columns() {
    const OTHER: Must = Refuse("the record contradicts itself on the columns of `age`");
    let edits: [(&str, fn(&mut PublicRecord), Must); 4] = [
        (
            "as text",
            |record| *written_as(record) = None,
            Refuse("the record contradicts itself on what `age` shows"),
        ),
        ("other names", |record| written_as(record).iter_mut().for_each(|names| names.swap(0, 1)), OTHER),
        (
            "labels",
            |record| {
                regions(record).columns[2].shows =
                    datafusion_kanon::internals::release::publish::record::Regions::Labels
            },
            OTHER,
        ),
        (
            "another type",
            |record| regions(record).columns[2].value_type = "Int32".into(),
            Refuse("the record contradicts itself on what `age` shows"),
        ),
    ];
    let lab = released("\"mondrian\"", "intervals = \"columns\"");
    let honest = lab.files();
    for (what, edit, must) in edits {
        let mut record = record(&lab);
        edit(&mut record);
        seal(&lab, record);
        verify(&lab, what, must, must);
        lab.restore(&honest);
    }
}

fn written_as(record: &mut PublicRecord) -> &mut Option<[String; 3]> {
    &mut regions(record).columns[2].written_as
}
