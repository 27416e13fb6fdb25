//! Releases whose classes show regions of their own: forgeries of rows, of the assignment in the
//! private record and of both together, by somebody who writes files and records as kanon does.
//! `kanon verify` must refuse them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use arrow::record_batch::RecordBatch;
use arrow::util::display::array_value_to_string;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion_kanon::internals::generalize::{Ends, RegionLabel, Value};
use datafusion_kanon::internals::policy::{Folder, PolicySpec};
use datafusion_kanon::internals::release::publish::record::{PrivateRecord, PublicRecord, RecodingRecord};

use crate::command::Place;
use crate::mutants::Must::{self, Pass, Refuse};
use crate::mutants::verify;
use crate::releases::{
    Lab, OUT, PART, edited, forge, people, picked, read_parquet, record, seal, texts, with, write_parquet,
};

pub(crate) const POLICY: &str = r#"
k = 5
method = "mondrian"
rows_are_individuals = true
accept_homogeneity = ["diagnosis"]

[columns]
ssn       = { role = "identifier" }
dob       = { role = "quasi", hierarchy = { date = ["month", "year", "decade"] } }
zip       = { role = "quasi", hierarchy = { prefix = [4, 3, 2] } }
age       = { role = "quasi", hierarchy = { range = [5, 10, 20] } }
sex       = { role = "quasi" }
marital   = { role = "quasi", hierarchy = { file = "marital.csv" } }
diagnosis = { role = "sensitive" }
ward      = { role = "insensitive" }
stay      = { role = "insensitive" }
weight    = { role = "insensitive" }
notes     = { role = "text" }
"#;

/// The quasi-identifiers, in the order of the release.
pub(crate) const QUASI: [&str; 5] = ["dob", "zip", "age", "sex", "marital"];

fn released() -> Lab {
    let lab = Lab::new(&people(1));
    fs::write(lab.path("policy.toml"), POLICY).unwrap();
    lab.release("policy.toml", OUT).exit(0, "each class shows its own dob, zip, age, sex, marital");
    lab
}

pub(crate) type Texts = Vec<Option<String>>;

/// A line of the assignment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub(crate) kept: bool,
    pub(crate) values: Texts,
    pub(crate) shown: Texts,
}

fn private(lab: &Lab) -> PrivateRecord {
    let path = lab.private();
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn write_private(lab: &Lab, private: &PrivateRecord) {
    fs::write(lab.private(), private.to_json().unwrap()).unwrap();
}

pub(crate) fn assignment(lab: &Lab) -> Vec<Line> {
    let file = lab.path("assignment.parquet");
    fs::write(&file, STANDARD.decode(private(lab).assignment.unwrap()).unwrap()).unwrap();
    let lines = read_parquet(&file);
    fs::remove_file(file).unwrap();
    let kept = lines.column_by_name("kept").unwrap().as_boolean().clone();
    let text = |name: String| {
        let texts = cast(lines.column_by_name(&name).unwrap(), &DataType::Utf8).unwrap();
        texts.as_string::<i32>().clone()
    };
    let columns = |name: &str| (0..QUASI.len()).map(|at| text(format!("{name}_{at}"))).collect::<Vec<_>>();
    let (values, shown) = (columns("value"), columns("shown"));
    let of_row = |all: &[StringArray], row: usize| -> Texts {
        all.iter().map(|column| column.is_valid(row).then(|| column.value(row).to_owned())).collect()
    };
    let line = |row| Line { kept: kept.value(row), values: of_row(&values, row), shown: of_row(&shown, row) };
    (0..lines.num_rows()).map(line).collect()
}

pub(crate) fn write_assignment(lab: &Lab, lines: &[Line]) {
    let kept: ArrayRef = Arc::new(BooleanArray::from_iter(lines.iter().map(|line| Some(line.kept))));
    let mut columns = vec![("kept".to_owned(), kept, false)];
    for (name, of_line) in
        [("value", (|line| &line.values) as fn(&Line) -> &Texts), ("shown", |line: &Line| &line.shown)]
    {
        for at in 0..QUASI.len() {
            let texts: StringArray = lines.iter().map(|line| of_line(line)[at].clone()).collect();
            columns.push((format!("{name}_{at}"), Arc::new(texts), true));
        }
    }
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let mut private = private(lab);
    private.assignment = Some(STANDARD.encode(writer.into_inner().unwrap()));
    write_private(lab, &private);
}

/// A cell as text.
pub(crate) fn cell(rows: &RecordBatch, column: &str, row: usize) -> Option<String> {
    let values = rows.column_by_name(column).unwrap();
    values.is_valid(row).then(|| array_value_to_string(values, row).unwrap())
}

/// What each row shows.
fn shown(rows: &RecordBatch) -> Vec<Texts> {
    let columns = QUASI.map(|name| texts(rows, name));
    (0..rows.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect()
}

/// The rows of each class.
fn classes(rows: &RecordBatch) -> BTreeMap<Texts, Vec<usize>> {
    let mut classes: BTreeMap<Texts, Vec<usize>> = BTreeMap::new();
    shown(rows).into_iter().enumerate().for_each(|(row, shown)| classes.entry(shown).or_default().push(row));
    classes
}

/// The rows with other texts in the quasi-identifiers.
fn relabelled(rows: &RecordBatch, label: impl Fn(usize, Texts) -> Texts) -> RecordBatch {
    let labels: Vec<Texts> =
        shown(rows).into_iter().enumerate().map(|(row, shown)| label(row, shown)).collect();
    QUASI.iter().enumerate().fold(rows.clone(), |rows, (at, name)| {
        let texts: StringArray = labels.iter().map(|label| label[at].clone()).collect();
        with(&rows, name, Arc::new(texts))
    })
}

/// A forgery of the rows and of the assignment.
type Forgery = fn(&RecordBatch, &mut Vec<Line>) -> Option<RecordBatch>;

#[track_caller]
fn forged(mutants: &[(&str, Forgery, Must, Must)]) {
    let lab = released();
    let honest = lab.files();
    verify(&lab, "before", Pass, Pass);
    for (what, forgery, alone, against) in mutants {
        let mut lines = assignment(&lab);
        if let Some(rows) = forgery(&read_parquet(&lab.out().join(PART)), &mut lines) {
            forge(&lab, &rows);
        }
        write_assignment(&lab, &lines);
        verify(&lab, what, *alone, *against);
        lab.restore(&honest);
    }
    verify(&lab, "after", Pass, Pass);
}

#[test]
fn the_forger_is_good() {
    let lab = released();
    let honest = lab.files();
    forge(&lab, &read_parquet(&lab.out().join(PART)));
    assert!(lab.files() == honest, "the same rows must forge to the same bytes");
    let lines = assignment(&lab);
    write_assignment(&lab, &lines);
    assert_eq!(assignment(&lab), lines);
    verify(&lab, "the same assignment", Pass, Pass);
    // Every kind of region is there, and NULL where it is shown.
    let all: Texts = shown(&read_parquet(&lab.out().join(PART))).concat();
    for part in ["[", "<=", ">=", "{", " or missing", "*", "alone"] {
        assert!(all.iter().flatten().any(|text| text.contains(part)), "no `{part}`");
    }
    assert!(all.contains(&None), "no NULL");
}

/// What a level leaves to a class ends at values of kept rows: 57 and 69 are suppressed, alone in their tens.
#[test]
fn cuts_show_no_value_of_a_suppressed_row() {
    let place = Place::new();
    let ages = [24, 25, 26, 40, 41, 42, 57, 61, 62, 63, 64, 65, 79];
    let rows: String = ages.iter().map(|age| format!("{age}\n")).collect();
    place.write("in.csv", format!("age\n{rows}"));
    for (ends, shown) in [("cuts", ["(26,42]", "<=26", ">42"]), ("values", ["<=26", ">=61", "[40,42]"])] {
        place.write(
            "policy.toml",
            format!(
                "k = 3\nsuppression_limit = 0.2\nmethod = \"best\"\nrows_are_individuals = true\n[output]\nends = \"{ends}\"\n\
                 [columns]\nage = {{ role = \"quasi\", hierarchy = {{ range = [10, 100] }}, max_level = 1 }}\n"
            ),
        );
        let released = place.run("release in.csv --policy policy.toml --to out --overwrite").exit(0);
        assert!(released.out.contains("2 rows (15 %, limit "), "{}", released.out);
        let labels: BTreeSet<String> =
            texts(&read_parquet(&place.path("out").join(PART)), "age").into_iter().flatten().collect();
        assert_eq!(labels.iter().map(String::as_str).collect::<Vec<_>>(), shown, "{ends}");
        place.run("verify out --input in.csv").exit(0);
    }
}

/// The text `Other` is a label of jobs and a job itself, so the label becomes the set of its jobs:
/// without that of the one row that is suppressed.
#[test]
fn sets_show_no_value_of_a_suppressed_row() {
    let place = Place::new();
    let jobs =
        ["nurse,f", "doctor,f"].repeat(3).join("\n") + "\n" + &["Other,f", "none,f"].repeat(3).join("\n");
    place.write("in.csv", format!("job,sex\n{jobs}\nspy,m\n"));
    place.write("h.csv", "nurse,Other,*\ndoctor,Other,*\nspy,Other,*\nOther,Unknown,*\nnone,Unknown,*\n");
    for method in ["best", "local", "subtree"] {
        for ends in ["values", "closed", "cuts"] {
            place.write(
                "policy.toml",
                format!(
                    "k = 4\nsuppression_limit = 0.1\nmethod = \"{method}\"\nrows_are_individuals = true\n[output]\n\
                     ends = \"{ends}\"\n[columns]\njob = {{ role = \"quasi\", hierarchy = {{ file = \"h.csv\" }} }}\n\
                     sex = {{ role = \"quasi\", max_level = 0 }}\n"
                ),
            );
            place.run("release in.csv --policy policy.toml --to out --overwrite").exit(0);
            let jobs = texts(&read_parquet(&place.path("out").join(PART)), "job");
            let jobs: BTreeSet<String> = jobs.into_iter().flatten().collect();
            let jobs: Vec<&str> = jobs.iter().map(String::as_str).collect();
            assert_eq!(jobs, ["Unknown", "{nurse; doctor}"], "{method}, {ends}");
            place.run("verify out --input in.csv").exit(0);
        }
    }
}

#[test]
fn rows_that_are_not_those_of_their_classes() {
    const NO_CLASS: &str = "that no input row generalizes to";
    forged(&[
        (
            "a row removed",
            |rows, _| {
                let gone = classes(rows).into_values().find(|rows| rows.len() > 5).unwrap()[0];
                let all = (0..rows.num_rows()).filter(|row| *row != gone);
                Some(picked(rows, &all.map(|row| row as u32).collect::<Vec<_>>()))
            },
            Pass,
            Refuse("1 class misses rows of the input"),
        ),
        (
            "a row moved to another class",
            |rows, _| {
                let classes = classes(rows);
                let from = classes.values().find(|rows| rows.len() > 5).unwrap()[0];
                let to = classes.keys().find(|shown| !classes[*shown].contains(&from)).unwrap();
                Some(relabelled(rows, |row, shown| if row == from { to.clone() } else { shown }))
            },
            Pass,
            Refuse("1 class misses rows of the input; 1 class has more rows than the input"),
        ),
        (
            "two rows of two classes exchanged",
            |rows, _| {
                let classes = classes(rows);
                let diagnoses = texts(rows, "diagnosis");
                let mut firsts = classes.values().map(|rows| rows[0]);
                let a = firsts.next().unwrap();
                let b = firsts.find(|row| diagnoses[*row] != diagnoses[a]).unwrap();
                Some(edited(rows, "diagnosis", |cells| cells.swap(a, b)))
            },
            Pass,
            Refuse("2 classes have rows that differ from the input's"),
        ),
        (
            "a class that shows less",
            |rows, _| {
                let (one, _) = classes(rows).pop_last().unwrap();
                let wide = |shown: Texts| vec![Some("*".to_owned()); shown.len()];
                Some(relabelled(rows, |_, shown| if shown == one { wide(shown) } else { shown }))
            },
            Pass,
            Refuse(NO_CLASS),
        ),
        (
            "a text that is no region as kanon writes it",
            |rows, _| {
                let (one, _) = classes(rows).into_iter().find(|(shown, _)| shown[2].is_some()).unwrap();
                Some(relabelled(rows, |_, mut shown| {
                    if shown == one {
                        shown[2] = Some("[07,90]".into());
                    }
                    shown
                }))
            },
            Refuse("`age` holds a text that kanon would not write for a region"),
            Refuse(NO_CLASS),
        ),
    ]);
}

#[test]
fn assignments_that_are_not_those_of_the_input() {
    forged(&[
        (
            "a line less",
            |_, lines| {
                lines.pop();
                None
            },
            Pass,
            Refuse("assigns no class to an input row"),
        ),
        (
            "a line twice",
            |_, lines| {
                lines.push(lines[0].clone());
                None
            },
            Pass,
            Refuse("assigns a combination of values twice"),
        ),
        (
            "a combination of values that exist",
            |_, lines| {
                let (mut line, other) = (lines[0].clone(), lines[1].values[0].clone());
                assert!(
                    line.values[0] != other
                        && lines.iter().all(|l| l.values[1..] != line.values[1..] || l.values[0] != other)
                );
                line.values[0] = other;
                lines.push(line);
                None
            },
            Pass,
            Refuse("that no input row has"),
        ),
        (
            "a set with a value that no row has",
            |rows, lines| {
                let is_woman = |line: &&Line| line.kept && line.shown[3].as_deref() == Some("F");
                let one = lines.iter().find(is_woman).unwrap().shown.clone();
                let mut wide = one.clone();
                wide[3] = Some("{F; X}".into());
                lines.iter_mut().filter(|line| line.shown == one).for_each(|line| line.shown = wide.clone());
                Some(relabelled(rows, |_, shown| if shown == one { wide.clone() } else { shown }))
            },
            Pass,
            Refuse("a set names a value that no released row has"),
        ),
        (
            "a line that suppresses rows which are there",
            |_, lines| {
                lines[0] = Line { kept: false, shown: vec![None; QUASI.len()], ..lines[0].clone() };
                None
            },
            Pass,
            Refuse("1 class has more rows than the input"),
        ),
        (
            "a suppressed line that shows something",
            |_, lines| {
                lines[0].kept = false;
                None
            },
            Pass,
            Refuse("the private record's assignment is damaged"),
        ),
        (
            "rows suppressed beyond the limit",
            |rows, lines| {
                let (one, gone) = classes(rows).pop_first().unwrap();
                for line in lines.iter_mut().filter(|line| line.shown == one) {
                    *line = Line { kept: false, shown: vec![None; QUASI.len()], ..line.clone() };
                }
                let all = (0..rows.num_rows()).filter(|row| !gone.contains(row));
                Some(picked(rows, &all.map(|row| row as u32).collect::<Vec<_>>()))
            },
            Pass,
            Refuse("suppressed, at most 0 allowed"),
        ),
        (
            "a class of fewer than k",
            |rows, lines| {
                // A person who can be found in the release by the other columns has everything to himself.
                let people = people(1);
                let others = ["diagnosis", "ward", "stay", "weight"];
                let of = |rows: &RecordBatch, names: &[&str], row: usize| {
                    let cells = names.iter().map(|name| cell(rows, name, row));
                    cells.collect::<Texts>()
                };
                let (line, row) = lines.iter_mut().find_map(|line| {
                    let person =
                        (0..people.num_rows()).filter(|row| of(&people, &QUASI, *row) == line.values);
                    let [person] = person.collect::<Vec<_>>()[..] else { return None };
                    let of_class = classes(rows)[&line.shown].clone();
                    let found = of_class
                        .into_iter()
                        .find(|row| of(rows, &others, *row) == of(&people, &others, person))?;
                    Some((line, found))
                })?;
                let alone: Texts = vec![Some("*".into()); QUASI.len()];
                line.shown.clone_from(&alone);
                Some(relabelled(rows, |at, shown| if at == row { alone.clone() } else { shown }))
            },
            Refuse("1 class fails a required model"),
            Refuse("1 class fails a required model"),
        ),
        (
            "two classes that show each other's regions",
            |rows, lines| {
                let all: Vec<Texts> = classes(rows).into_keys().collect();
                let (a, b) = (all[0].clone(), all[all.len() - 1].clone());
                let swapped = |shown: &Texts| match shown {
                    shown if *shown == a => b.clone(),
                    shown if *shown == b => a.clone(),
                    shown => shown.clone(),
                };
                lines.iter_mut().for_each(|line| line.shown = swapped(&line.shown));
                Some(relabelled(rows, |_, shown| swapped(&shown)))
            },
            Pass,
            Refuse("a label does not cover the value of an input row"),
        ),
        (
            "an interval that ends at the greatest value of all",
            |rows, lines| {
                let ages = people(1).column_by_name("age").unwrap().as_primitive::<Int64Type>().clone();
                let most = ages.iter().flatten().max().unwrap();
                let closed =
                    |text: &Option<String>| match text.as_deref().and_then(|text| text.strip_prefix(">=")) {
                        Some(least) => Some(format!("[{least},{most}]")),
                        None => text.clone(),
                    };
                let label = |shown: &Texts| {
                    let mut shown = shown.clone();
                    if let Some(age) = shown.get_mut(2) {
                        *age = closed(age);
                    }
                    shown
                };
                assert!(lines.iter().any(|line| label(&line.shown) != line.shown));
                lines.iter_mut().for_each(|line| line.shown = label(&line.shown));
                Some(relabelled(rows, |_, shown| label(&shown)))
            },
            Pass,
            Refuse("an interval ends at the least or the greatest released value"),
        ),
        (
            "a value written as an interval",
            |rows, lines| {
                let label = |shown: &Texts| {
                    let mut shown = shown.clone();
                    if let Some(Some(sex)) = shown.get_mut(3) {
                        *sex = format!("{{{sex}; {sex}}}");
                    }
                    shown
                };
                lines.iter_mut().for_each(|line| line.shown = label(&line.shown));
                Some(relabelled(rows, |_, shown| label(&shown)))
            },
            Refuse("`sex` holds a text that kanon would not write for a region"),
            Refuse("a label is not the canonical text of its region"),
        ),
        (
            "a region written otherwise",
            |rows, lines| {
                let other = |text: &Option<String>| {
                    text.as_ref().map(|text| text.replace("or missing", "or  missing"))
                };
                let label = |shown: &Texts| shown.iter().map(other).collect::<Texts>();
                lines.iter_mut().for_each(|line| line.shown = label(&line.shown));
                Some(relabelled(rows, |_, shown| label(&shown)))
            },
            Refuse("holds a text that kanon would not write for a region"),
            Refuse("a label is not the canonical text of its region"),
        ),
    ]);
}

#[test]
fn private_records_without_a_good_assignment() {
    let lab = released();
    for (damaged, code, why) in [
        (None, 2, "its private record is needed"),
        (Some("not base64".to_owned()), 1, "the private record is damaged"),
        (Some(STANDARD.encode("PAR1 but no more")), 1, "the private record's assignment is damaged"),
        (
            Some(STANDARD.encode(fs::read(lab.out().join(PART)).unwrap())),
            1,
            "the private record's assignment is damaged",
        ),
    ] {
        let mut record = private(&lab);
        record.assignment = damaged;
        write_private(&lab, &record);
        let [alone, against, with_policy] = lab.verify();
        alone.exit(0, "by themselves");
        against.exit(code, why);
        with_policy.exit(code, why);
    }
    fs::remove_file(lab.private()).unwrap();
    let [alone, against, with_policy] = lab.verify();
    alone.exit(0, "by themselves");
    against.exit(2, "its private record is needed");
    with_policy.exit(2, "its private record is needed");
}

#[test]
fn a_policy_of_another_kind_of_recoding() {
    const OTHER: &str = "the record describes another kind of recoding than";
    let lab = released();
    fs::write(lab.path("levels.toml"), crate::releases::POLICY).unwrap();
    lab.run(&["verify", OUT, "--input", "people.parquet", "--policy", "levels.toml"]).exit(1, OTHER);
    let lab = Lab::released();
    fs::write(lab.path("mondrian.toml"), POLICY).unwrap();
    lab.run(&["verify", OUT, "--input", "people.parquet", "--policy", "mondrian.toml"]).exit(1, OTHER);
}

#[test]
fn public_records_that_contradict_their_regions() {
    const OTHER: Must = Refuse("the columns of the record are not those of the policy");
    let edits: [(&str, fn(&mut PublicRecord), Must, Must); 4] = [
        ("other ends", |record| regions(record).ends = Ends::Closed, Pass, OTHER),
        (
            "no type",
            |record| regions(record).columns[2].value_type = "Int65".into(),
            Refuse("no type of the values of `age`"),
            Refuse("no type of the values of `age`"),
        ),
        ("texts as dates", |record| regions(record).columns[3].value_type = "Date32".into(), Pass, OTHER),
        (
            "a column less",
            |record| {
                regions(record).columns.pop();
            },
            Refuse("what each quasi-identifier shows"),
            Refuse("what each quasi-identifier shows"),
        ),
    ];
    let lab = released();
    let honest = lab.files();
    for (what, edit, alone, against) in edits {
        let mut record = record(&lab);
        edit(&mut record);
        seal(&lab, record);
        verify(&lab, what, alone, against);
        lab.restore(&honest);
    }
}

pub(crate) fn regions(
    record: &mut PublicRecord,
) -> &mut datafusion_kanon::internals::release::publish::record::RegionsRecord {
    match &mut record.recoding {
        RecodingRecord::Regions(regions) => regions,
        _ => panic!("the release has no regions"),
    }
}

/// What the attack finds: how many people match how many rows, and for how many all of these share
/// a diagnosis. By the `assignment` people match the rows of the classes that it names for their
/// values, else all whose regions hold these.
fn found_naively(
    lab: &Lab,
    list: &RecordBatch,
    on: &[&str],
    assignment: Option<&[Line]>,
) -> (BTreeMap<u64, u64>, u64, u64) {
    let rows = read_parquet(&lab.out().join(PART));
    let text = fs::read_to_string(lab.path("policy.toml")).unwrap();
    let policy = PolicySpec::parse(&text).unwrap().resolve(&list.schema(), &Folder(lab.path(""))).unwrap();
    let columns = on.iter().map(|name| {
        let hierarchy = policy.quasi[policy.quasi_index(name).unwrap()].hierarchy.clone();
        let values = list.column_by_name(name).unwrap();
        let values = cast(values, hierarchy.input_type()).unwrap();
        let parse = |text: &Option<String>| RegionLabel::parse(text.as_deref(), hierarchy.input_type());
        let regions: Vec<RegionLabel> = texts(&rows, name).iter().map(parse).collect();
        (hierarchy, values, regions)
    });
    let columns: Vec<_> = columns.collect();
    let diagnoses = texts(&rows, "diagnosis");
    let places: Vec<usize> =
        on.iter().map(|name| QUASI.iter().position(|quasi| quasi == name).unwrap()).collect();
    let linked = |all: &Texts| -> Texts { places.iter().map(|at| all[*at].clone()).collect() };
    let shown = shown(&rows);
    let (mut matches, mut unmatched, mut learnt) = (BTreeMap::new(), 0, 0);
    for person in 0..list.num_rows() {
        let covers = |row: &usize| {
            columns.iter().all(|(hierarchy, values, regions)| {
                regions[*row].covers(hierarchy, &Value::read(values, person).unwrap()).unwrap_or(false)
            })
        };
        let own: Texts = on.iter().map(|name| cell(list, name, person)).collect();
        let is_own = |row: &usize| {
            assignment.is_none_or(|lines| {
                let mut lines = lines.iter().filter(|line| line.kept && linked(&line.values) == own);
                lines.any(|line| linked(&line.shown) == linked(&shown[*row]))
            })
        };
        let found: Vec<usize> = (0..rows.num_rows()).filter(covers).filter(is_own).collect();
        match found.len() as u64 {
            0 => unmatched += 1,
            rows => *matches.entry(rows).or_default() += 1,
        }
        let first = found.first().and_then(|row| diagnoses[*row].as_ref());
        learnt += u64::from(first.is_some() && found.iter().all(|row| diagnoses[*row].as_ref() == first));
    }
    (matches, unmatched, learnt)
}

#[test]
fn an_attack_matches_rows_whose_regions_hold_its_values() {
    let lab = released();
    let people = people(1);
    // Strangers: each has the zip code of one person and the age of another; some values are nowhere else.
    let order: Vec<u32> = (0..people.num_rows() as u32).rev().collect();
    let ages = picked(&people, &order).column_by_name("age").unwrap().as_primitive::<Int64Type>().clone();
    let ages: Int64Array =
        ages.iter().map(|age| age.map(|age| if age % 7 == 0 { age + 60 } else { age })).collect();
    let strangers =
        edited(&with(&people, "age", Arc::new(ages)), "marital", |cells| cells[3] = Some("divorced".into()));
    let (lines, honest) = (assignment(&lab), lab.files());
    let lists = [(&people, &QUASI[..]), (&strangers, &QUASI), (&strangers, &["zip", "age"])];
    let mut found_both = Vec::new();
    for ((list, on), by_assignment) in lists.iter().flat_map(|list| [(*list, true), (*list, false)]) {
        if by_assignment {
            lab.restore(&honest);
        } else {
            fs::remove_file(lab.private()).unwrap();
        }
        write_parquet(&lab.path("list.parquet"), list, WriterProperties::default());
        let on_argument = on.join(",");
        let mut arguments = vec!["link", "list.parquet", OUT, "--on", &on_argument, "--format", "json"];
        if !by_assignment {
            arguments.extend(["--policy", "policy.toml"]);
        }
        let output = lab.command(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let histogram = found["histogram"].as_array().unwrap().iter();
        let histogram =
            histogram.map(|bar| (bar["matches"].as_u64().unwrap(), bar["individuals"].as_u64().unwrap()));
        let learnt = found["homogeneous"][0]["individuals"].as_u64().unwrap();
        let unmatched = found["unmatched"].as_u64().unwrap();
        let naive = found_naively(&lab, list, on, by_assignment.then_some(&lines));
        assert_eq!((histogram.collect::<BTreeMap<_, _>>(), unmatched, learnt), naive, "{on:?}");
        assert_eq!(found["by_assignment"], by_assignment);
        found_both.push(naive);
        let is_of_the_release = std::ptr::eq(list, &raw const people);
        assert!(!is_of_the_release || (unmatched == 0 && found["least_matches"].as_u64().unwrap() >= 5));
        let uncovered = u64::from(on.len() == QUASI.len() && !is_of_the_release);
        assert_eq!(found["uncovered"].as_u64().unwrap(), uncovered);
    }
    assert!(found_both.chunks(2).any(|both| both[0] != both[1]), "no region overlaps another");
    // Without the private record and the policy labels are read as texts. Prefixes say what they
    // cover, so nothing is missed.
    let found = |arguments: &[&str]| -> serde_json::Value {
        let arguments = [&["link", "list.parquet", OUT, "--format", "json"], arguments].concat();
        let output = lab.command(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let (mut alone, by_policy) =
        (found(&["--on", "zip,age"]), found(&["--on", "zip,age", "--policy", "policy.toml"]));
    assert_eq!(alone["read_as_texts"].take(), serde_json::json!(["zip"]));
    alone["read_as_texts"] = serde_json::json!([]);
    assert_eq!(alone, by_policy);
    // A label of the file names no value, so it matches nothing.
    let (alone, by_policy) = (found(&[]), found(&["--policy", "policy.toml"]));
    assert!(alone["read_as_texts"].as_array().unwrap().contains(&"marital".into()), "{alone}");
    assert!(alone["matched"].as_u64() < by_policy["matched"].as_u64(), "{alone} {by_policy}");
    assert!(alone["least_matches"].as_u64().unwrap() >= 5, "{alone}");
    lab.run(&["link", "list.parquet", OUT])
        .exit(0, "marital: read without the publisher's hierarchies. A value, values in braces");
    lab.run(&["link", "list.parquet", OUT, "--policy", "policy.toml"]).exit(0, "on dob region | zip region");
    lab.run(&["link", "list.parquet", OUT, "--on", "age"]).exit(0, "on age region");
    let words = Arc::new(StringArray::from(vec![Some("30"); strangers.num_rows()]));
    let columns = [("age", words as ArrayRef)];
    let wrong =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, values)| (name, values, true))).unwrap();
    write_parquet(&lab.path("list.parquet"), &wrong, WriterProperties::default());
    lab.run(&["link", "list.parquet", OUT, "--on", "age"]).exit(2, "these cannot be compared");
}

/// `<=1 or missing` and `>1` both lose their end at the least value and become `*`: one class, in
/// which p1 and p2 have both diseases. The search says what the release does.
#[test]
fn classes_that_show_the_same_are_judged_as_one() {
    let place = Place::new();
    let rows = ",X,p1,flu 1,X,p2,gout 2,X,p1,gout 3,X,p2,flu ,Y,p3,flu 1,Y,p4,gout 2,Y,p5,flu 3,Y,p6,gout";
    place.write("in.csv", format!("age,zip,pid,disease\n{}\n", rows.replace(' ', "\n")));
    for method in ["mondrian", "local", "cells", "best"] {
        for ends in ["values", "cuts"] {
            place.write(
                "policy.toml",
                format!(
                    "k = 2\nmethod = \"{method}\"\n[output]\nends = \"{ends}\"\n[[require]]\nmodel = \"l_diversity\"\nl = 2\n\
                     [columns]\nage = {{ role = \"quasi\", hierarchy = {{ range = [2] }} }}\nzip = {{ role = \"quasi\" }}\n\
                     pid = {{ role = \"individual\" }}\ndisease = {{ role = \"sensitive\", allow_unique = true }}\n"
                ),
            );
            let search = place.run("search in.csv --policy policy.toml --format json");
            let release = place.run("release in.csv --policy policy.toml --to out --overwrite --format json");
            assert_eq!(search.code, release.code, "{method}, {ends}: {search:?} {release:?}");
            assert!(!release.err.contains("verification refused"), "{method}, {ends}: {}", release.err);
            if release.code == 0 {
                assert_eq!(
                    search.json()["best"][0]["classes"],
                    release.json()["public"]["classes"],
                    "{method}, {ends}"
                );
                place.run("verify out --input in.csv").exit(0);
            }
        }
    }
}

#[test]
fn extremes_beside_missing_values_and_nan() {
    let lab = released();
    let policy = |hierarchy: &str| {
        format!(
            "k = 2\nmethod = \"mondrian\"\nrows_are_individuals = true\naccept_homogeneity = [\"d\"]\n[columns]\nx = {{ role = \
             \"quasi\"{hierarchy} }}\nd = {{ role = \"sensitive\", allow_unique = true }}\n"
        )
    };
    for (cells, hierarchy, expected) in [
        // The text of the lower bound stands for all values below it, too.
        (
            ["-1", "-2", "0", "0", "-1", "0"],
            ", clip = { from = 0 }, hierarchy = { floor = [5] }",
            ["*", "*", "*", "*", "*", "*"],
        ),
        // One row has the least value of all, beside a missing one.
        (
            ["", "-99", "10", "10", "11", "11"],
            ", hierarchy = { range = [10] }",
            ["*", "*", "10", "10", "11", "11"],
        ),
        (
            ["", "99", "99", "10", "10", "99"],
            ", hierarchy = { range = [10] }",
            ["*", "*", "*", "99", "99", "99"],
        ),
        (
            ["1", "1", "1", "1", "NaN", "NaN"],
            ", hierarchy = { range = [0.5] }",
            ["1", "1", "1", "1", "NaN", "NaN"],
        ),
        (
            ["1", "2", "3", "4", "NaN", "5"],
            ", hierarchy = { floor = [0.5] }",
            ["<=3", "<=3", "<=3", "[4,NaN]", "[4,NaN]", "[4,NaN]"],
        ),
    ] {
        let rows = cells.iter().enumerate().map(|(row, cell)| format!("{cell},{row}\n"));
        fs::write(lab.path("x.csv"), format!("x,d\n{}", rows.collect::<String>())).unwrap();
        fs::write(lab.path("x.toml"), policy(hierarchy)).unwrap();
        lab.run(&["release", "x.csv", "--policy", "x.toml", "--to", "x", "--overwrite"])
            .exit(0, "k_anonymity 2 required");
        lab.run(&["verify", "x", "--input", "x.csv"]).exit(0, "against the input");
        let mut found: Texts = texts(&read_parquet(&lab.path("x").join(PART)), "x");
        found.sort();
        assert_eq!(found.into_iter().flatten().collect::<Vec<_>>(), expected, "{cells:?}");
    }
}
