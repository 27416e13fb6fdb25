//! Releases that `kanon verify` must refuse. Each was forged by somebody who can do everything but calculate
//! other rows: files are written as kanon writes them, digests, counts and risks are right.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Date32Array, Float64Array, LargeStringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{Date32Type, Field, Float64Type, Schema};
use arrow::record_batch::RecordBatch;
use datafusion_kanon::internals::class::{Budget, EvaluatedNode, Unlimited};
use datafusion_kanon::internals::engine::{self, Resources, Run};
use datafusion_kanon::internals::input::{Input, PolicySource, open};
use datafusion_kanon::internals::model::{Requirement, k_anonymity::KAnonymity};
use datafusion_kanon::internals::policy::{CsvOptions, CsvType, Folder, PolicySpec};
use datafusion_kanon::internals::release::apply::{ClassKeys, ClassNumbers};
use datafusion_kanon::internals::release::kind::classes::{KeptClasses, labelled};
use datafusion_kanon::internals::release::kind::levels;
use datafusion_kanon::internals::release::kind::ordered_rows::ordered_rows;
use datafusion_kanon::internals::release::publish::record::{PublicRecord, RECORD};
use datafusion_kanon::internals::release::publish::write;
use datafusion_kanon::internals::release::{apply, profile_classes};
use datafusion_kanon::internals::verify::{self, Expected};

use crate::releases::{
    FOOTER, Lab, MARITAL, OUT, PART, POLICY, SUPPRESSED, as_kanon_writes, classes, edited, forge, levels,
    people, picked, read_parquet, record, reseal, shuffled, texts, unique_together, with, write_parquet,
};

/// Whether a release is refused, and the words that say why.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Must {
    Pass,
    Refuse(&'static str),
}
use Must::{Pass, Refuse};

/// Verifies the release by itself and in the two forms that hold it against its input.
#[track_caller]
pub(crate) fn verify(lab: &Lab, what: &str, alone: Must, against: Must) {
    let before = lab.files();
    for (ran, must) in lab.verify().into_iter().zip([alone, against, against]) {
        match must {
            Pass => assert_eq!(ran.code, Some(0), "{what}: {ran:?}"),
            Refuse(why) => {
                assert_eq!(ran.code, Some(1), "{what}: {ran:?}");
                assert!(ran.said.contains(why), "{what}: no `{why}` in {ran:?}");
            }
        }
    }
    assert!(lab.files() == before, "{what}: verify changed something");
}

/// The released rows with what a forger looks at.
pub(crate) struct Rows {
    pub(crate) rows: RecordBatch,
    /// The class of every row.
    pub(crate) class: Vec<usize>,
    pub(crate) lab: Lab,
}

impl Rows {
    pub(crate) fn of(lab: Lab) -> Self {
        let rows = read_parquet(&lab.out().join(PART));
        let class = classes(&rows, &record(&lab));
        Self { rows, class, lab }
    }

    fn all(&self) -> Vec<u32> {
        (0..u32::try_from(self.class.len()).unwrap()).collect()
    }

    /// The rows of a class.
    pub(crate) fn of_class(&self, class: usize) -> Vec<u32> {
        self.all().into_iter().filter(|row| self.class[*row as usize] == class).collect()
    }

    /// A class of exactly k rows.
    pub(crate) fn smallest(&self) -> usize {
        (0..=26).find(|class| self.of_class(*class).len() == 5).unwrap()
    }

    /// A class with rows to spare.
    fn large(&self) -> usize {
        (0..=26).find(|class| self.of_class(*class).len() > 9).unwrap()
    }

    /// The whole row as text, but for `without`.
    fn row(&self, row: usize, without: &str) -> Vec<String> {
        let columns = self.rows.schema();
        let names = columns.fields().iter().map(|field| field.name()).filter(|name| *name != without);
        names.map(|name| format!("{:?}", self.rows.column_by_name(name).unwrap().slice(row, 1))).collect()
    }

    /// Two rows of which `right` is true; they hold different diagnoses.
    fn pair(&self, right: impl Fn(usize, usize) -> bool) -> (usize, usize) {
        let diagnosis = texts(&self.rows, "diagnosis");
        let rows = self.class.len();
        let pairs = (0..rows).flat_map(|a| (0..rows).map(move |b| (a, b)));
        pairs.into_iter().find(|(a, b)| diagnosis[*a] != diagnosis[*b] && right(*a, *b)).unwrap()
    }

    fn swapped(&self, (a, b): (usize, usize)) -> RecordBatch {
        edited(&self.rows, "diagnosis", |cells| cells.swap(a, b))
    }

    /// The identifiers of as many people.
    fn ssn(&self) -> ArrayRef {
        let people = read_parquet(&self.lab.path("people.parquet"));
        Arc::clone(picked(&people, &self.all()).column_by_name("ssn").unwrap())
    }

    /// The people that were suppressed, generalized like all others.
    fn suppressed(&self) -> RecordBatch {
        let lab = Lab::new(&people(1));
        fs::write(lab.path("policy.toml"), POLICY.replace("k = 5", "k = 3")).unwrap();
        lab.release("policy.toml", OUT).exit(0, "3 reached");
        let weak = Rows::of(lab);
        let failing: Vec<u32> =
            weak.all().into_iter().filter(|row| weak.of_class(weak.class[*row as usize]).len() < 5).collect();
        assert_eq!(failing.len(), SUPPRESSED);
        picked(&weak.rows, &failing)
    }
}

/// Row by row forgeries: name, forgery, what the release alone tells, what the input tells.
#[track_caller]
fn forged(mutants: &[(&str, fn(&Rows) -> RecordBatch, Must, Must)]) {
    for (what, forgery, alone, against) in mutants {
        let rows = Rows::of(Lab::released());
        verify(&rows.lab, "before", Pass, Pass);
        let honest = rows.lab.files();
        forge(&rows.lab, &forgery(&rows));
        verify(&rows.lab, what, *alone, *against);
        rows.lab.restore(&honest);
        verify(&rows.lab, "after", Pass, Pass);
    }
}

#[test]
fn the_forger_is_good() {
    let rows = Rows::of(Lab::released());
    let honest = rows.lab.files();
    forge(&rows.lab, &rows.rows);
    assert!(rows.lab.files() == honest, "the same rows must forge to the same bytes");
    let [_, _, last] = rows.lab.verify();
    last.exit(
        0,
        &format!("against the input: all {} rows come from it, {SUPPRESSED} rows", rows.class.len()),
    );
}

#[test]
fn rows_that_came_or_went() {
    const MISS: Must = Refuse("1 class misses rows of the input");
    const MORE: Must = Refuse("more rows than the input");
    const FAIL: Must = Refuse("1 class fails a required model");
    forged(&[
        ("a class doubled", |r| picked(&r.rows, &[r.all(), r.of_class(3)].concat()), Pass, MORE),
        ("every class doubled", |r| picked(&r.rows, &[r.all(), r.all()].concat()), Pass, MORE),
        ("a row added", |r| picked(&r.rows, &[r.all(), vec![9]].concat()), Pass, MORE),
        (
            "a row removed",
            |r| {
                let gone = r.of_class(r.large())[0];
                picked(&r.rows, &r.all().into_iter().filter(|row| *row != gone).collect::<Vec<_>>())
            },
            Pass,
            MISS,
        ),
        (
            "a row removed and another of its class doubled",
            |r| {
                let class = r.of_class(r.large());
                let other = class.iter().find(|b| r.row(**b as usize, "") != r.row(class[0] as usize, ""));
                let double = |row| if row == class[0] { *other.unwrap() } else { row };
                picked(&r.rows, &r.all().into_iter().map(double).collect::<Vec<_>>())
            },
            Pass,
            Refuse("differ from the input's"),
        ),
        (
            "a class at k - 1",
            |r| {
                let gone = r.of_class(r.smallest())[0];
                picked(&r.rows, &r.all().into_iter().filter(|row| *row != gone).collect::<Vec<_>>())
            },
            FAIL,
            MISS,
        ),
        (
            "a class at k - 1, its row in another class",
            |r| {
                // All but the quasi-identifiers of the row stay.
                let (moved, to) = (r.of_class(r.smallest())[0], r.of_class(r.large())[0]);
                let order = r.all().into_iter().map(|row| if row == moved { to } else { row });
                let mut forged = picked(&r.rows, &order.collect::<Vec<_>>());
                for name in ["diagnosis", "ward", "stay", "weight"] {
                    forged = with(&forged, name, Arc::clone(r.rows.column_by_name(name).unwrap()));
                }
                forged
            },
            FAIL,
            Refuse("1 class misses rows of the input; 1 class has more rows"),
        ),
        (
            "a small class that holds dropped",
            |r| {
                picked(
                    &r.rows,
                    &r.all()
                        .into_iter()
                        .filter(|row| r.class[*row as usize] != r.smallest())
                        .collect::<Vec<_>>(),
                )
            },
            Pass,
            MISS,
        ),
        (
            "so many classes that hold dropped that the limit is passed",
            |r| {
                picked(
                    &r.rows,
                    &r.all().into_iter().filter(|row| r.class[*row as usize] > 4).collect::<Vec<_>>(),
                )
            },
            Pass,
            Refuse("classes miss rows of the input"),
        ),
    ]);
}

#[test]
fn suppressed_people_smuggled_back() {
    const NOWHERE: Must = Refuse("that no input row generalizes to");
    forged(&[
        (
            "as their own classes",
            |r| concat_batches(&r.rows.schema(), [&r.rows, &r.suppressed()]).unwrap(),
            Refuse("fail a required model"),
            Refuse("2 classes fail a required model"),
        ),
        (
            "as one class of coarser labels",
            |r| {
                let mut coarse = r.suppressed();
                for column in ["zip", "age", "sex", "marital"] {
                    coarse = edited(&coarse, column, |cells| cells.fill(Some("*".into())));
                }
                coarse = with(&coarse, "dob", Arc::new(Date32Array::new_null(coarse.num_rows())));
                concat_batches(&r.rows.schema(), [&r.rows, &coarse]).unwrap()
            },
            Refuse("1 class holds a value that is not a label of its level"),
            NOWHERE,
        ),
        (
            "within a class that holds",
            |r| {
                let mut there = r.suppressed();
                let like = picked(&r.rows, &vec![r.of_class(r.large())[0]; there.num_rows()]);
                for column in ["dob", "zip", "age", "sex", "marital"] {
                    there = with(&there, column, Arc::clone(like.column_by_name(column).unwrap()));
                }
                concat_batches(&r.rows.schema(), [&r.rows, &there]).unwrap()
            },
            Pass,
            Refuse("1 class has more rows than the input"),
        ),
    ]);
}

#[test]
fn raw_values_among_generalized_ones() {
    const FAIL: Must = Refuse("1 class fails a required model");
    const NOWHERE: Must = Refuse("that no input row generalizes to");
    const NO_LABEL: Must = Refuse("not a label of its level");
    fn raw(r: &Rows, column: &str, class: usize, value: &str) -> RecordBatch {
        let of_class = r.of_class(class);
        let rows = if class == r.large() { &of_class[..1] } else { &of_class[..] };
        edited(&r.rows, column, |cells| rows.iter().for_each(|row| cells[*row as usize] = Some(value.into())))
    }
    fn birthday(r: &Rows, rows: &[u32]) -> RecordBatch {
        let dob = r.rows.column_by_name("dob").unwrap().as_primitive::<Date32Type>();
        let edited = dob
            .iter()
            .enumerate()
            .map(|(row, day)| if rows.contains(&u32::try_from(row).unwrap()) { Some(137) } else { day });
        with(&r.rows, "dob", Arc::new(edited.collect::<Date32Array>()))
    }
    forged(&[
        ("one zip", |r| raw(r, "zip", r.large(), "02139"), FAIL, NO_LABEL),
        ("the zip of a class", |r| raw(r, "zip", r.smallest(), "02139"), NO_LABEL, NO_LABEL),
        ("one zip that looks like a label", |r| raw(r, "zip", r.large(), "021"), FAIL, NO_LABEL),
        ("one age", |r| raw(r, "age", r.large(), "37"), FAIL, NO_LABEL),
        ("an interval of another width", |r| raw(r, "age", r.smallest(), "[35,40)"), NO_LABEL, NO_LABEL),
        ("one marital status", |r| raw(r, "marital", r.large(), "widowed"), FAIL, NO_LABEL),
        ("one birthday", |r| birthday(r, &r.of_class(r.large())[..1]), FAIL, NO_LABEL),
        ("the birthday of a class", |r| birthday(r, &r.of_class(r.smallest())), NO_LABEL, NO_LABEL),
        ("a label of nobody", |r| raw(r, "zip", r.smallest(), "777*"), Pass, NOWHERE),
        ("a finer label", |r| raw(r, "zip", r.smallest(), "0213*"), NO_LABEL, NO_LABEL),
        ("a coarser label", |r| raw(r, "zip", r.smallest(), "02*"), Pass, NOWHERE),
    ]);
}

#[test]
fn identifiers_under_other_names() {
    const DIFFER: Must = Refuse("differ from the input's");
    forged(&[
        ("as diagnosis", |r| with(&r.rows, "diagnosis", r.ssn()), Pass, DIFFER),
        ("as ward", |r| with(&r.rows, "ward", r.ssn()), Pass, DIFFER),
        (
            "as one ward",
            |r| edited(&r.rows, "ward", |cells| cells[7] = Some("999-00000007".into())),
            Pass,
            DIFFER,
        ),
        ("as zip", |r| with(&r.rows, "zip", r.ssn()), Refuse("fail a required model"), Refuse("not a label")),
    ]);

    let rows = Rows::of(Lab::released());
    let honest = rows.lab.files();
    let mut fields: Vec<Field> = rows.rows.schema().fields().iter().map(|field| (**field).clone()).collect();
    fields.push(Field::new("ssn", arrow::datatypes::DataType::Utf8, true));
    let columns = [rows.rows.columns(), &[rows.ssn()]].concat();
    let longer = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    forge(&rows.lab, &longer);
    verify(
        &rows.lab,
        "a column more than the record says",
        Refuse("the columns are not those of the record"),
        Refuse("the schema is not the planned one"),
    );
    reseal(&rows.lab, |record| {
        let columns = &mut record.tables[0].columns;
        let mut column = columns.last().unwrap().clone();
        (column.name, column.data_type) = ("ssn".into(), "Utf8".into());
        columns.push(column);
        record.unique = unique_together(&longer, record);
    });
    verify(&rows.lab, "a column more, in the record too", Pass, Refuse("the schema is not the planned one"));
    rows.lab.restore(&honest);
    verify(&rows.lab, "after", Pass, Pass);
}

#[test]
fn swapped_diagnoses() {
    const DIFFER: Must = Refuse("differ from the input's");
    forged(&[
        (
            "between two classes",
            |r| r.swapped(r.pair(|a, b| r.class[a] != r.class[b])),
            Pass,
            Refuse("2 classes have rows that differ"),
        ),
        (
            "between two classes, the rest of the rows being equal",
            |r| {
                let rest = |row| -> Vec<String> { r.row(row, "diagnosis").into_iter().skip(5).collect() };
                r.swapped(r.pair(|a, b| r.class[a] != r.class[b] && rest(a) == rest(b)))
            },
            Pass,
            DIFFER,
        ),
        (
            "within a class",
            |r| {
                let other = |a, b| r.row(a, "diagnosis") != r.row(b, "diagnosis");
                r.swapped(r.pair(|a, b| r.class[a] == r.class[b] && other(a, b)))
            },
            Pass,
            Refuse("1 class has rows that differ"),
        ),
    ]);
}

#[test]
fn nulls_and_floats_are_what_they_are() {
    const DIFFER: Must = Refuse("differ from the input's");
    fn weights(r: &Rows, from: fn(&f64) -> bool, to: f64) -> RecordBatch {
        let weights = r.rows.column_by_name("weight").unwrap().as_primitive::<Float64Type>();
        let first = weights.iter().position(|weight| weight.as_ref().is_some_and(from)).unwrap();
        let edited = weights.iter().enumerate().map(|(row, w)| if row == first { Some(to) } else { w });
        with(&r.rows, "weight", Arc::new(edited.collect::<Float64Array>()))
    }
    fn text(r: &Rows, column: &str, from: Option<&str>, to: Option<&str>) -> RecordBatch {
        let first = texts(&r.rows, column).iter().position(|cell| cell.as_deref() == from).unwrap();
        edited(&r.rows, column, |cells| cells[first] = to.map(str::to_owned))
    }
    forged(&[
        ("NULL becomes empty", |r| text(r, "diagnosis", None, Some("")), Pass, DIFFER),
        ("NULL becomes a word", |r| text(r, "diagnosis", None, Some("NULL")), Pass, DIFFER),
        ("a word becomes NULL", |r| text(r, "diagnosis", Some("NULL"), None), Pass, DIFFER),
        (
            "NULL becomes empty in a quasi-identifier",
            |r| {
                edited(&r.rows, "sex", |cells| {
                    cells.iter_mut().for_each(|sex| {
                        sex.get_or_insert_default();
                    })
                })
            },
            Pass,
            Refuse("that no input row generalizes to"),
        ),
        (
            "NULL becomes the star in a quasi-identifier",
            |r| {
                edited(&r.rows, "zip", |cells| {
                    cells.iter_mut().for_each(|zip| {
                        zip.get_or_insert("*".into());
                    })
                })
            },
            Pass,
            Refuse("that no input row generalizes to"),
        ),
        ("another zero", |r| weights(r, |w| *w == 0.0, -0.0), Pass, DIFFER),
        // 51 bits of a NaN are free: enough for a social security number.
        ("another NaN", |r| weights(r, |w| w.is_nan(), f64::from_bits(0x7ff8_0000_3b9a_c9ff)), Pass, DIFFER),
    ]);
}

#[test]
fn the_released_multiset_of_rows_is_judged() {
    // Two rows that differ in nothing but the diagnosis, exchanged, and all rows shuffled: the same
    // rows in another order, which could say something of the input.
    let rows = Rows::of(Lab::released());
    let same = |a, b| rows.row(a, "diagnosis") == rows.row(b, "diagnosis");
    let forgery = rows.swapped(rows.pair(same));
    let honest = rows.lab.files();
    const ORDER: Must = Refuse("the rows are not in the order in which kanon writes them");
    for (what, rows_of) in [("exchanged", forgery), ("shuffled", shuffled(&rows.rows, 3))] {
        write_parquet(&rows.lab.out().join(PART), &rows_of, as_kanon_writes(&FOOTER, write::CREATED_BY));
        reseal(&rows.lab, |_| {});
        assert!(rows.lab.files() != honest);
        verify(&rows.lab, what, ORDER, ORDER);
    }
    rows.lab.restore(&honest);
    // The order of the input does not matter.
    let input = rows.lab.path("people.parquet");
    write_parquet(&input, &shuffled(&people(1), 5), Default::default());
    verify(&rows.lab, "the input in another order", Pass, Pass);
    write_parquet(&input, &picked(&people(1), &rows.all()), Default::default());
    verify(&rows.lab, "another input", Pass, Refuse("verification refused"));
}

/// A schema and rows whose types are forged.
#[test]
fn forged_schemas() {
    let rows = Rows::of(Lab::released());
    let honest = rows.lab.files();
    let schema = rows.rows.schema();
    let with_field = |name: &str, edit: fn(Field) -> Field| -> Vec<Field> {
        let fields = schema.fields().iter();
        fields.map(|f| if f.name() == name { edit((**f).clone()) } else { (**f).clone() }).collect()
    };
    fn said(field: Field, key: &str, value: &str) -> Field {
        field.with_metadata([(key.into(), value.into())].into())
    }
    const RECORD: &str = "the columns are not those of the record";
    const SCHEMA: &str = "the schema is not the planned one";
    let mutants = [
        ("another label", with_field("dob", |f| said(f, "kanon.generalized", "date:decade")), RECORD),
        ("no label", with_field("dob", |f| f.with_metadata([].into())), RECORD),
        ("one label more", with_field("ward", |f| said(f, "kanon.generalized", "999-00000007")), RECORD),
        ("metadata of a field", with_field("ward", |f| said(f, "ssn", "999-00000007")), SCHEMA),
        ("never NULL", with_field("ward", |f| f.with_nullable(false)), SCHEMA),
        ("another name", with_field("ward", |f| f.with_name("wart")), RECORD),
    ];
    for (what, fields, alone) in mutants {
        let schema = Arc::new(Schema::new(fields));
        forge(&rows.lab, &RecordBatch::try_new(schema, rows.rows.columns().to_vec()).unwrap());
        verify(&rows.lab, what, Refuse(alone), Refuse(SCHEMA));
        rows.lab.restore(&honest);
    }
    let ward: LargeStringArray = texts(&rows.rows, "ward").into_iter().collect();
    let mut columns = rows.rows.columns().to_vec();
    columns[schema.index_of("ward").unwrap()] = Arc::new(ward);
    let fields = with_field("ward", |f| f.with_data_type(arrow::datatypes::DataType::LargeUtf8));
    forge(&rows.lab, &RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap());
    verify(
        &rows.lab,
        "another type",
        Refuse("the columns are not those of the record"),
        Refuse("the schema is not the planned one"),
    );
    let order: Vec<usize> = (0..schema.fields().len()).rev().collect();
    forge(&rows.lab, &rows.rows.project(&order).unwrap());
    verify(
        &rows.lab,
        "another order of columns",
        Refuse("the columns are not those of the record"),
        Refuse("the schema is not the planned one"),
    );
    rows.lab.restore(&honest);
    verify(&rows.lab, "after", Pass, Pass);
}

#[test]
fn forged_footers() {
    const FORGED: Must = Refuse("the footer holds metadata that kanon did not write");
    let rows = Rows::of(Lab::released());
    let honest = rows.lab.files();
    let part = rows.lab.out().join(PART);
    let kanon = write::CREATED_BY;
    let models = FOOTER[0];
    let footers: [(&str, &[(&str, &str)], &str); 6] = [
        ("another key", &[models, ("pandas", "999-00000007")], kanon),
        ("the same key twice", &[models, models], kanon),
        ("another promise", &[("kanon.models", "k_anonymity(50)")], kanon),
        ("no promise", &[], kanon),
        ("another writer", &[models], "parquet-mr 999-00000007"),
        ("another version", &[models], "kanon 0.0.0"),
    ];
    for (what, keys, created_by) in footers {
        write_parquet(&part, &rows.rows, as_kanon_writes(keys, created_by));
        reseal(&rows.lab, |_| {});
        verify(&rows.lab, what, FORGED, FORGED);
    }
    // What only `ARROW:schema` holds: metadata of the schema as a whole, under a new key and under ours.
    for key in ["pandas", "kanon.models"] {
        let schema =
            Schema::clone(&rows.rows.schema()).with_metadata([(key.into(), "999-00000007".into())].into());
        let forged = RecordBatch::try_new(Arc::new(schema), rows.rows.columns().to_vec()).unwrap();
        forge(&rows.lab, &forged);
        verify(&rows.lab, "metadata of the schema", FORGED, FORGED);
    }
    // The writer replaces the first of these, the last one counts for readers.
    let twice = [models, ("ARROW:schema", "999-00000006"), ("ARROW:schema", "999-00000007")];
    write_parquet(&part, &rows.rows, as_kanon_writes(&twice, kanon));
    reseal(&rows.lab, |_| {});
    verify(&rows.lab, "a second ARROW:schema", FORGED, FORGED);
    rows.lab.restore(&honest);
    verify(&rows.lab, "after", Pass, Pass);
}

#[test]
fn files_that_came_or_went() {
    let rows = Rows::of(Lab::released());
    let (lab, honest) = (&rows.lab, rows.lab.files());
    let part = lab.out().join(PART);
    let second = lab.out().join("part-00001.parquet");
    let unlisted = Refuse("the release contains a file or a folder that the record does not list");
    let missing = Refuse("part-00000.parquet is missing");
    let numbers = Refuse("not numbered from part-00000.parquet");
    let no_file = Refuse("is not a plain file");

    fs::remove_file(&part).unwrap();
    verify(lab, "a missing part", missing, missing);
    fs::create_dir(&part).unwrap();
    verify(lab, "a folder in its place", no_file, no_file);
    lab.restore(&honest);

    for extra in
        ["part-00001.parquet", "_people.parquet", ".people.parquet", "README", "part-00000.parquet.crc"]
    {
        fs::copy(lab.path("people.parquet"), lab.out().join(extra)).unwrap();
        verify(lab, extra, unlisted, unlisted);
        lab.restore(&honest);
    }
    fs::create_dir(lab.out().join("sub")).unwrap();
    verify(lab, "a folder", unlisted, unlisted);
    lab.restore(&honest);

    // What a link or a pipe leads to is not what is published.
    for name in [PART, RECORD] {
        let path = lab.out().join(name);
        fs::rename(&path, lab.path(name)).unwrap();
        std::os::unix::fs::symlink(lab.path(name), &path).unwrap();
        verify(lab, "a link", no_file, no_file);
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        for ran in lab.verify() {
            ran.exit(1, "is not a plain file");
        }
        fs::remove_file(&path).unwrap();
        lab.restore(&honest);
    }

    fs::rename(&part, &second).unwrap();
    verify(lab, "a renamed part", missing, missing);
    reseal(lab, |_| {});
    verify(lab, "a renamed part, in the record too", numbers, numbers);
    lab.restore(&honest);

    // Two files of half the rows: kanon would not have begun a second one.
    let properties = || as_kanon_writes(&FOOTER, write::CREATED_BY);
    write_parquet(&part, &rows.rows.slice(0, 100), properties());
    write_parquet(&second, &rows.rows.slice(100, rows.class.len() - 100), properties());
    reseal(lab, |_| {});
    let cut = Refuse("part-00000.parquet does not end where kanon begins a new file");
    verify(lab, "two parts", cut, cut);
    fs::copy(&part, &second).unwrap();
    verify(lab, "one part twice", Refuse("is not the file"), Refuse("is not the file"));
    reseal(lab, |_| {});
    verify(lab, "one part twice, in the record too", cut, cut);
    lab.restore(&honest);

    // The record lists the one file twice: classes of 3 would count as 6.
    reseal(lab, |record| {
        let table = &mut record.tables[0];
        table.files.push(table.files[0].clone());
        table.rows *= 2;
        let sizes = classes(&rows.rows, record);
        let sizes = (0..=26).map(|class| 2 * sizes.iter().filter(|c| **c == class).count() as u64);
        let sizes = sizes.filter(|size| *size > 0).collect();
        record.risk = datafusion_kanon::internals::release::risks(&sizes).unwrap();
        record.models[0].reached = Some(10.0);
    });
    verify(lab, "one file listed twice", numbers, numbers);
    lab.restore(&honest);

    let bytes = fs::read(&part).unwrap();
    fs::write(&part, &bytes[..bytes.len() - 1]).unwrap();
    verify(lab, "a cut part", Refuse("is not the file"), Refuse("is not the file"));
    lab.restore(&honest);
    verify(lab, "after", Pass, Pass);
}

#[test]
fn edited_records() {
    let lab = Lab::released();
    let honest = lab.files();
    let path = lab.out().join(RECORD);
    let text = fs::read_to_string(&path).unwrap();
    let edited = Refuse("was edited or damaged");
    let swap = |from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        text.replacen(from, to, 1)
    };
    let edits = [
        ("k", swap("\"required\": 5", "\"required\": 2")),
        ("reached", swap("\"reached\": 5", "\"reached\": 50")),
        ("parameter", swap("\"k\": \"5\"", "\"k\": \"2\"")),
        ("model", swap("\"k_anonymity\"", "\"l_diversity\"")),
        ("rows", swap("\"rows\": ", "\"rows\": 1")),
        ("classes", swap("\"classes\": ", "\"classes\": 1")),
        ("risk", swap("\"prosecutor_risk_max\": 0.2", "\"prosecutor_risk_max\": 0.1")),
        ("level", swap("\"level\": 2", "\"level\": 3")),
        ("label", swap("\"year\"", "\"decade\"")),
        ("role", swap("\"insensitive\"", "\"sensitive\"")),
        ("file digest", swap("\"sha256\": \"", "\"sha256\": \"0")),
        ("own digest", swap("\"digest\": \"", "\"digest\": \"0")),
        ("a space", text.replacen(": ", ":  ", 1)),
        ("a space in the end", format!("{text} ")),
        ("no last newline", text.trim_end().to_owned()),
        ("an unknown key", text.replacen("{\n", "{\n  \"note\": \"999-00000007\",\n", 1)),
        ("a key twice", text.replacen("{\n", "{\n  \"format\": 2,\n", 1)),
        ("nothing", String::new()),
        ("no JSON", "x".into()),
        ("another number of the same value", swap("\"required\": 5", "\"required\": 5.0")),
    ];
    for (what, forged) in edits {
        fs::write(&path, forged).unwrap();
        verify(&lab, what, edited, edited);
    }
    lab.restore(&honest);
    verify(&lab, "after", Pass, Pass);
}

/// The same edits by somebody who knows how a record gets its digest.
#[test]
fn resealed_records() {
    const ROWS: Must = Refuse("the number of rows or classes differs from the record");
    const COUNTED: Must = Refuse("individuals, risks or homogeneous classes differ from the record");
    const UNIQUE: Must = Refuse("the unique share on all columns differs from the record");
    const COLUMNS: Must = Refuse("the columns are not those of the record");
    const POLICYS: Must = Refuse("the columns of the record are not those of the policy");
    const OTHER: Must = Refuse("is not the file that the record describes");
    const FORM: Must = Refuse("verification refused");
    let lab = Lab::released();
    let honest = lab.files();
    type Edit = fn(&mut PublicRecord);
    let edits: &[(&str, Edit, Must, Must)] = &[
        ("unique", |r| r.unique.count += 1, UNIQUE, UNIQUE),
        ("unique in other columns", |r| r.unique.columns.push("999-00000007".into()), UNIQUE, UNIQUE),
        ("rows", |r| r.tables[0].rows += 1, ROWS, ROWS),
        ("classes", |r| r.classes -= 1, ROWS, ROWS),
        ("risk", |r| _ = r.risk.insert("prosecutor_risk_max".into(), 0.1), COUNTED, COUNTED),
        ("a risk more", |r| _ = r.risk.insert("of 999-00000007".into(), 0.1), COUNTED, COUNTED),
        ("no risk", |r| r.risk.clear(), COUNTED, COUNTED),
        (
            "reached",
            |r| r.models[0].reached = Some(50.0),
            Refuse("reaches another value"),
            Refuse("reaches another value"),
        ),
        (
            "required",
            |r| r.models[0].required = 2.0,
            Refuse("contradicts itself"),
            Refuse("contradicts itself"),
        ),
        (
            "parameter",
            |r| drop(r.models[0].parameters.insert("k".into(), "2".into())),
            Refuse("contradicts itself"),
            Refuse("contradicts itself"),
        ),
        (
            "k",
            |r| {
                r.models[0].required = 2.0;
                r.models[0].parameters.insert("k".into(), "2".into());
            },
            Refuse("the footer"),
            Refuse("the models of the record are not those of the policy"),
        ),
        (
            "values of no column",
            |r| r.models[0].values = Some(vec!["999-00000007".into()]),
            Refuse("contradicts itself"),
            Refuse("contradicts itself"),
        ),
        (
            "a level of no column",
            |r| r.models[0].level = Some(7),
            Refuse("contradicts itself"),
            Refuse("contradicts itself"),
        ),
        ("a k with a tail", |r| drop(r.models[0].parameters.insert("k".into(), "5.000".into())), FORM, FORM),
        ("no model", |r| r.models.clear(), Refuse("names no model"), Refuse("names no model")),
        ("the model twice", |r| r.models.push(r.models[0].clone()), FORM, FORM),
        ("file digest", |r| r.tables[0].files[0].sha256 = "0".repeat(64), OTHER, OTHER),
        ("file length", |r| r.tables[0].files[0].bytes += 1, OTHER, OTHER),
        (
            "file rows",
            |r| r.tables[0].files[0].rows += 1,
            Refuse("counts other rows"),
            Refuse("counts other rows"),
        ),
        ("file name", |r| r.tables[0].files[0].name = "../people.parquet".into(), FORM, FORM),
        ("no file", |r| r.tables[0].files.clear(), FORM, FORM),
        ("column name", |r| r.tables[0].columns[1].name = "ssn".into(), FORM, FORM),
        (
            "column name, in its level too",
            |r| {
                r.tables[0].columns[1].name = "ssn".into();
                levels(r)[1].column = "ssn".into();
            },
            COLUMNS,
            Refuse("names no level of `zip`"),
        ),
        ("column type", |r| r.tables[0].columns[0].data_type = "Utf8".into(), COLUMNS, POLICYS),
        ("label", |r| levels(r)[0].by = "date:decade".parse().unwrap(), COLUMNS, POLICYS),
        (
            "a level that the policy forbids",
            |r| levels(r)[0].level = 1,
            Pass,
            Refuse("names no level of `dob`"),
        ),
        ("height", |r| levels(r)[0].of = 9, Pass, POLICYS),
        (
            "role of a column released as it is",
            |r| r.tables[0].columns[5].role = "insensitive".into(),
            COUNTED,
            POLICYS,
        ),
        // A quasi-identifier that is called otherwise is not counted.
        ("role of a quasi-identifier", |r| r.tables[0].columns[4].role = "insensitive".into(), FORM, FORM),
        ("a role of no name", |r| r.tables[0].columns[5].role = "999-00000007".into(), FORM, FORM),
        ("a role that is not released", |r| r.tables[0].columns[5].role = "identifier".into(), FORM, FORM),
        // Texts that nothing counts, in which anything could be written.
        ("tool", |r| r.tool = "kanon 999-00000007".into(), FORM, FORM),
        ("counted in", |r| r.counted_in = "individuals".into(), FORM, FORM),
        ("individuals", |r| r.individuals = Some(9), FORM, FORM),
        (
            "individuals that are counted",
            |r| (r.individuals, r.counted_in) = (Some(r.rows()), "individuals".into()),
            Refuse("the record's statement is wrong about what is counted"),
            Refuse("the record counts another unit than the policy"),
        ),
        ("no homogeneous classes", |r| r.homogeneous.clear(), COUNTED, COUNTED),
        ("fewer homogeneous classes", |r| r.homogeneous[0].classes += 1, COUNTED, COUNTED),
        ("two tables", |r| r.tables.push(r.tables[0].clone()), FORM, FORM),
        ("no table", |r| r.tables.clear(), FORM, FORM),
        ("a level less", |r| drop(levels(r).pop()), FORM, FORM),
        ("a level twice", |r| levels(r)[1] = levels(r)[0].clone(), FORM, FORM),
        ("levels in another order", |r| levels(r).swap(0, 1), FORM, FORM),
    ];
    for (what, edit, alone, against) in edits {
        reseal(&lab, edit);
        verify(&lab, what, *alone, *against);
        lab.restore(&honest);
    }
    verify(&lab, "after", Pass, Pass);
}

#[test]
fn records_of_other_releases() {
    let lab = Lab::released();
    let honest = lab.files();
    fs::write(lab.path("weaker.toml"), POLICY.replace("k = 5", "k = 3")).unwrap();
    lab.release("weaker.toml", "weak").exit(0, "3 reached");
    let (own, other) = (lab.out().join(RECORD), lab.path("weak").join(RECORD));
    fs::copy(&other, &own).unwrap();
    verify(&lab, "the public record of another", Refuse("is not the file"), Refuse("is not the file"));
    fs::copy(lab.path("weak").join(PART), lab.out().join(PART)).unwrap();
    // Now OUT is the weak release; only a policy tells that it should be the strong one.
    let before = lab.files();
    lab.run(&["verify", OUT]).exit(0, "k_anonymity 3 required, 3 reached");
    let give = "give the policy with --policy";
    lab.run(&["verify", OUT, "--input", "people.parquet"]).exit(2, give);
    let with = |policy| lab.run(&["verify", OUT, "--input", "people.parquet", "--policy", policy]);
    with("policy.toml").exit(1, "the models of the record are not those of the policy");
    with("weaker.toml").exit(0, "0 rows suppressed");
    assert!(lab.files() == before, "something changed");
    // And says that it is strong.
    let rows = read_parquet(&lab.out().join(PART));
    fs::write(&own, &honest[Path::new("out/_kanon.json")]).unwrap();
    forge(&lab, &rows);
    verify(&lab, "a weak release called strong", Refuse("2 classes fail"), Refuse("2 classes fail"));

    // The private record: exchanged, damaged, gone.
    lab.restore(&honest);
    fs::write(lab.path("weaker.toml"), POLICY.replace("k = 5", "k = 3")).unwrap();
    lab.release("weaker.toml", "weak").exit(0, "");
    let private = lab.path("out.private.json");
    for what in ["exchanged", "damaged", "gone"] {
        match what {
            "exchanged" => _ = fs::copy(lab.path("weak.private.json"), &private).unwrap(),
            "damaged" => fs::write(&private, "{").unwrap(),
            _ => fs::remove_file(&private).unwrap(),
        }
        let before = lab.files();
        let [alone, without, with] = lab.verify();
        alone.exit(0, "by themselves");
        match what {
            "gone" => without.exit(0, "policy.toml, which fits the public record"),
            _ => without.exit(2, give),
        };
        with.exit(0, "against the input");
        assert!(lab.files() == before, "something changed");
    }
    lab.restore(&honest);
    verify(&lab, "after", Pass, Pass);
}

#[test]
fn other_policies() {
    let lab = Lab::released();
    let policies = [
        ("k = 5", "k = 3", 1, "the models of the record are not those of the policy"),
        ("k = 5", "k = 6", 1, "the models of the record are not those of the policy"),
        ("0.05", "0", 1, "7 rows are suppressed, at most 0 allowed"),
        ("min_level = 2, max_level = 2", "min_level = 3, max_level = 3", 1, "names no level of `dob`"),
        ("\"year\"", "\"quarter\"", 1, "the schema is not the planned one"),
        (
            "ward      = { role = \"insensitive\" }",
            "ward = { role = \"text\" }",
            1,
            "the schema is not the planned",
        ),
        (
            "stay      = { role = \"insensitive\" }",
            "stay = { role = \"quasi\" }",
            1,
            "names no level of `stay`",
        ),
        ("[\"diagnosis\"]\n", "[\"diagnosis\", \"ward\"]\n", 2, "accept_homogeneity"),
        (
            "notes     = { role = \"text\" }",
            "notes = { role = \"insensitive\" }",
            1,
            "the schema is not the planned",
        ),
    ];
    for (from, to, code, why) in policies {
        assert!(POLICY.contains(from), "{from}");
        fs::write(lab.path("other.toml"), POLICY.replacen(from, to, 1)).unwrap();
        let before = lab.files();
        lab.run(&["verify", OUT, "--input", "people.parquet", "--policy", "other.toml"]).exit(code, why);
        assert!(lab.files() == before, "something changed");
    }
    // The same file name with other labels in it.
    fs::write(lab.path("marital.csv"), MARITAL.replace("widowed,alone", "widowed,not alone")).unwrap();
    let all = ["verify", OUT, "--input", "people.parquet", "--policy", "policy.toml"];
    lab.run(&all).exit(1, "verification refused");
    lab.run(&all[..4]).exit(0, "against the input");
    fs::write(lab.path("marital.csv"), MARITAL.replace("alone", "single living")).unwrap();
    lab.run(&all).exit(1, "not a label of its level");
}

#[test]
fn a_key_twice_in_a_hierarchy_file() {
    let lab = Lab::released();
    for again in ["single,not alone,*\n", "single,alone,*\n"] {
        fs::write(lab.path("marital.csv"), format!("{MARITAL}{again}")).unwrap();
        let before = lab.files();
        lab.release("policy.toml", "doubled").exit(2, "marital.csv");
        lab.release("policy.toml", OUT).exit(2, "marital.csv");
        lab.run(&["verify", OUT, "--input", "people.parquet", "--policy", "policy.toml"])
            .exit(2, "marital.csv");
        assert!(lab.files() == before, "something changed");
    }
}

/// Bytes that no reader reads: the footer's place is counted from the end of the file.
#[test]
fn dead_bytes_in_a_part() {
    let lab = Lab::released();
    let part = lab.out().join(PART);
    let bytes = fs::read(&part).unwrap();
    let length = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap());
    let footer = bytes.len() - 8 - length as usize;
    fs::write(&part, [&bytes[..footer], b"999-00000007", &bytes[footer..]].concat()).unwrap();
    reseal(&lab, |_| {});
    verify(&lab, "dead bytes", Refuse("verification refused"), Refuse("verification refused"));
}

/// What the method says must hold, applied wrongly: the verification inside a run refuses it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_recoding_is_refused_inside_a_run() {
    let lab = Lab::new(&people(1));
    let said = PolicySpec::parse(POLICY).unwrap();
    let resources = Resources { threads: 2, memory: 1 << 28, spill: None };
    let run = Run { resources, ..Run::default() };
    let input = Input::find(lab.path("people.parquet").to_str().unwrap()).unwrap();
    let files = Folder(lab.path(""));
    let loaded = open(&run, &input, &PolicySource { spec: &said, files: &files }).await.unwrap();
    let (policy, table) = (&loaded.policy, profile_classes(&run, &loaded).await.unwrap());
    let levels: Vec<usize> = policy.ranges().into_iter().map(|range| *range.start()).collect();
    let rolled = table.roll_up(table.base(), &[0; 5], &levels).unwrap();
    let choose = |models: &[Requirement]| {
        levels::label_kept(policy, &EvaluatedNode::new(&table, &levels, &rolled, models).unwrap()).unwrap()
    };
    let (generalizers, kept) = choose(&policy.requirements);
    let schema = levels::schema(policy, loaded.schema(), &generalizers).unwrap();
    let weak = [Requirement::of_sizes(KAnonymity::new(3).unwrap())];

    let only = |which: &[u32]| -> KeptClasses {
        let take = |values: &ArrayRef| {
            arrow::compute::take(values, &arrow::array::UInt32Array::from(which.to_vec()), None).unwrap()
        };
        let rows = which.iter().map(|class| kept.rows[*class as usize]).collect();
        let codes = which.iter().map(|class| kept.keys.classes[*class as usize].0.clone());
        let keys = ClassKeys {
            levels: levels.clone(),
            classes: codes.zip((0..).map(Some)).collect(),
            is_complete: false,
        };
        KeptClasses { labels: kept.labels.iter().map(take).collect(), keys, rows }
    };
    let all: Vec<u32> = (0..u32::try_from(kept.rows.len()).unwrap()).collect();
    let altered = |from: &str, to: &str| -> KeptClasses {
        let mut kept = kept.clone();
        let zips = kept.labels[1].as_string_view();
        assert!(zips.iter().any(|zip| zip == Some(from)));
        let zips = zips.iter().map(|zip| if zip == Some(from) { Some(to) } else { zip });
        kept.labels[1] = Arc::new(zips.collect::<arrow::array::StringViewArray>());
        kept
    };
    let swapped: Vec<u32> = all
        .iter()
        .map(|class| match class {
            3 => 4,
            4 => 3,
            other => *other,
        })
        .collect();
    let doubled: Vec<u32> = all.iter().map(|class| if *class == 3 { 4 } else { *class }).collect();
    let mut finer = levels.clone();
    finer[1] = 1;
    assert_ne!(finer, levels);

    // The levels at which rows find their class, the classes they find, the labels they get, how
    // often the rows are taken, and what verification finds.
    let recodings: [(&str, &[usize], KeptClasses, KeptClasses, usize, Must); 9] = [
        ("the right one", &levels, kept.clone(), kept.clone(), 1, Pass),
        ("all rows twice", &levels, kept.clone(), kept.clone(), 2, Refuse("classes have more rows")),
        ("a class forgotten", &levels, only(&all[1..]), only(&all[1..]), 1, Refuse("1 class misses rows")),
        (
            "a failing class kept",
            &levels,
            choose(&weak).1,
            choose(&weak).1,
            1,
            Refuse("2 classes fail a required model"),
        ),
        ("a label altered", &levels, kept.clone(), altered("021*", "022*"), 1, Refuse("no input row")),
        (
            "no label at all",
            &levels,
            kept.clone(),
            altered("021*", "02139"),
            1,
            Refuse("not a label of its level"),
        ),
        ("two classes exchanged", &levels, kept.clone(), only(&swapped), 1, Refuse("verification refused")),
        (
            "a class in another's place",
            &levels,
            kept.clone(),
            only(&doubled),
            1,
            Refuse("verification refused"),
        ),
        ("another level applied", &finer, kept.clone(), kept.clone(), 1, Refuse("verification refused")),
    ];
    for (what, applied, mut found, labels, times, must) in recodings {
        found.keys.levels = applied.to_vec();
        let budget: Arc<dyn Budget> = Arc::new(Unlimited);
        let numbers = || ClassNumbers::new(&table, found.keys.clone(), &budget).unwrap();
        let rows = || apply::apply(loaded.table.clone(), policy, numbers()).unwrap();
        let mut plan = rows();
        for _ in 1..times {
            plan = plan.union(rows()).unwrap();
        }
        let order = [apply::CLASS, "kanon_hash"].map(|name| engine::column(name).sort(true, true));
        let plan = plan.sort(order.to_vec()).unwrap();
        let out = tempfile::tempdir().unwrap();
        let footer = write::footer("k_anonymity(5)");
        let rows = plan.execute_stream().await.unwrap();
        let rows = ordered_rows(rows, Vec::new(), labelled(policy, &schema, &labels).unwrap());
        let written = write::Table {
            folder: out.path(),
            schema: &schema,
            partitioning: &Default::default(),
            footer: &footer,
            layout: Default::default(),
            memory: &budget,
        };
        write::write_table(rows, &written, &run.stop, &|_| {}).await.unwrap();

        let session = run.resources.session(engine::counting_rules()).unwrap();
        let parts = Input::find(out.path().to_str().unwrap()).unwrap();
        let found = parts.table(&session, &CsvOptions::default(), &|_| CsvType::Text).await.unwrap();
        let columns = policy.released().map(|(name, _)| {
            (name.to_owned(), policy.quasi_index(name).map(|index| Arc::clone(&generalizers[index])))
        });
        let expected = Expected {
            columns: columns.collect(),
            assignment: None,
            requirements: &policy.requirements,
            sensitive: policy.sensitive().map(str::to_owned).collect(),
            preferences: Vec::new(),
            population: None,
            individual: policy.individual().map(str::to_owned),
            suppression_limit: Some(policy.spec.suppression_limit()),
        };
        let again = open(&run, &input, &PolicySource { spec: &said, files: &files }).await.unwrap();
        let verified = verify::verify(&again.session, found, Some(again.table), &expected, &run.stop).await;
        match (must, verified) {
            (Pass, verified) => {
                assert_eq!(verified.unwrap().suppressed_rows, Some(SUPPRESSED as u64), "{what}")
            }
            (Refuse(why), verified) => {
                let error = verified.unwrap_err().to_string();
                assert!(error.contains(why), "{what}: {error}");
            }
        }
    }
}
