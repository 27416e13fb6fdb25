//! Forged releases under a model that looks at a sensitive column: `kanon verify` must refuse them
//! like those of `mutants`, by the same good forger.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::collections::{HashMap, HashSet};
use std::fs;

use arrow::array::{AsArray, StringArray};
use arrow::datatypes::Date32Type;
use arrow::record_batch::RecordBatch;
use datafusion_kanon::internals::release::publish::record::{ModelRecord, PublicRecord};
use datafusion_kanon::internals::release::publish::write;

use crate::mutants::Must::{self, Pass, Refuse};
use crate::mutants::{Rows, verify};
use crate::releases::{
    Lab, OUT, PART, POLICY, SUPPRESSED, as_kanon_writes, classes, edited, ordered, people, read_parquet,
    reseal, texts, with, write_parquet,
};

const CONSENT: &str = "accept_homogeneity = [\"diagnosis\"]\n";
const REQUIRE: &str = "[[require]]\nmodel = \"l_diversity\"\nl = 2\nsensitive = \"diagnosis\"\n\n";
const MODELS: &str = "k_anonymity(5), l_diversity(2, diagnosis)";
const FAILS: Must = Refuse("1 class fails a required model");
const OTHER_MODELS: Must = Refuse("the models of the record are not those of the policy");

/// The policy of the small release with 2-diversity in place of consent.
fn diverse() -> String {
    assert!(POLICY.contains(CONSENT));
    POLICY.replace(CONSENT, "").replace("[columns]", &format!("{REQUIRE}[columns]"))
}

fn released(people: &RecordBatch) -> Rows {
    let lab = Lab::new(people);
    fs::write(lab.path("policy.toml"), diverse()).unwrap();
    lab.release("policy.toml", OUT).exit(0, "l_diversity of diagnosis 2 required");
    Rows::of(lab)
}

/// The least number of different texts, NULL left out, in a class.
fn diversity(rows: &RecordBatch, record: &PublicRecord, column: &str) -> u32 {
    let mut of_class: HashMap<usize, HashSet<String>> = HashMap::new();
    for (class, text) in classes(rows, record).into_iter().zip(texts(rows, column)) {
        of_class.entry(class).or_default().extend(text);
    }
    of_class.values().map(|texts| u32::try_from(texts.len()).unwrap()).min().unwrap()
}

/// Writes `rows` in place of the release's and makes footer and record say so.
fn forge(lab: &Lab, rows: &RecordBatch, footer: &str, edit: impl FnOnce(&mut PublicRecord)) {
    let properties = as_kanon_writes(&[("kanon.models", footer)], write::CREATED_BY);
    let rows = &ordered(rows, &crate::releases::record(lab));
    write_parquet(&lab.out().join(PART), rows, properties);
    reseal(lab, |record| {
        record.models[1].reached = Some(diversity(rows, record, "diagnosis").into());
        edit(record);
    });
}

#[test]
fn the_forger_is_good() {
    let rows = released(&people(1));
    let honest = rows.lab.files();
    verify(&rows.lab, "before", Pass, Pass);
    forge(&rows.lab, &rows.rows, MODELS, |_| {});
    assert!(rows.lab.files() == honest, "the same rows must forge to the same bytes");
    let [alone, ..] = rows.lab.verify();
    alone.exit(0, "l_diversity of diagnosis 2 required, 3 reached");
}

/// The rows with everybody of a class of five having one diagnosis: the others', each from a class
/// of its own.
fn homogeneous(r: &Rows) -> RecordBatch {
    let class = r.of_class(r.smallest());
    edited(&r.rows, "diagnosis", |cells| {
        let shared = class.iter().find_map(|row| cells[*row as usize].clone());
        let mut asked: HashSet<usize> = [r.smallest()].into();
        for row in class.iter().map(|row| *row as usize) {
            if cells[row] != shared {
                let gives = |other: &usize| {
                    let of = r.class[*other];
                    cells[*other] == shared && !asked.contains(&of) && r.of_class(of).len() > 7
                };
                let other = (0..cells.len()).find(gives).unwrap();
                asked.insert(r.class[other]);
                cells.swap(row, other);
            }
        }
    })
}

#[test]
fn classes_that_lost_their_diversity() {
    const DIFFER: Must = Refuse("differ from the input's");
    fn of_smallest(r: &Rows, keep: usize) -> RecordBatch {
        let class = r.of_class(r.smallest());
        edited(&r.rows, "diagnosis", |cells| {
            let value = class.iter().find_map(|row| cells[*row as usize].clone());
            for (at, row) in class.iter().enumerate() {
                cells[*row as usize] = value.clone().filter(|_| at < keep);
            }
        })
    }
    let mutants: [(&str, fn(&Rows) -> RecordBatch); 4] = [
        ("diagnoses swapped until a class shares one", homogeneous),
        ("a class given one diagnosis", |r| of_smallest(r, 5)),
        ("a class of one diagnosis and NULL", |r| of_smallest(r, 1)),
        ("a class without diagnoses", |r| of_smallest(r, 0)),
    ];
    let rows = released(&people(1));
    let honest = rows.lab.files();
    for (what, mutant) in mutants {
        forge(&rows.lab, &mutant(&rows), MODELS, |_| {});
        verify(&rows.lab, what, FAILS, DIFFER);
        // A record that claims what was required does not help.
        forge(&rows.lab, &mutant(&rows), MODELS, |record| record.models[1].reached = Some(2.0));
        verify(&rows.lab, what, FAILS, DIFFER);
        rows.lab.restore(&honest);
    }
    verify(&rows.lab, "after", Pass, Pass);
}

/// The people, of whom one class of five all have the flu.
fn one_class_with_the_flu() -> RecordBatch {
    let people = people(1);
    let (zip, sex) = (texts(&people, "zip"), texts(&people, "sex"));
    let born = people.column_by_name("dob").unwrap().as_primitive::<Date32Type>().clone();
    let with_flu = |row: usize| {
        let there = zip[row].as_deref().is_some_and(|zip| zip.starts_with("021"));
        there && sex[row].as_deref() == Some("F") && born.iter().nth(row).unwrap().is_some_and(|d| d < -3288)
    };
    let cells = texts(&people, "diagnosis").into_iter().enumerate();
    let mut changed = 0;
    let cells = cells.map(|(row, cell)| {
        changed += usize::from(with_flu(row));
        if with_flu(row) { Some("flu".to_owned()) } else { cell }
    });
    let forged = with(&people, "diagnosis", std::sync::Arc::new(cells.collect::<StringArray>()));
    assert_eq!(changed, 5);
    forged
}

#[test]
fn a_homogeneous_class_smuggled_back() {
    let rows = released(&one_class_with_the_flu());
    let lab = &rows.lab;
    let [_, against, _] = lab.verify();
    against.exit(0, &format!("{} rows suppressed", SUPPRESSED + 5));
    let honest = lab.files();
    fs::write(lab.path("weak.toml"), POLICY).unwrap();
    lab.release("weak.toml", "weak").exit(0, "");
    let weak = read_parquet(&lab.path("weak").join(PART));
    lab.restore(&honest);
    assert_eq!(weak.num_rows(), rows.rows.num_rows() + 5);

    forge(lab, &weak, MODELS, |_| {});
    verify(lab, "as it is", FAILS, FAILS);
    // What the input says of the class counts, not what the release says.
    let record = crate::releases::record(lab);
    let of_class = classes(&weak, &record);
    let mut known: HashMap<usize, HashSet<Option<String>>> = HashMap::new();
    of_class.iter().zip(texts(&weak, "diagnosis")).for_each(|(class, cell)| {
        known.entry(*class).or_default().insert(cell);
    });
    let row = (0..of_class.len()).find(|row| known[&of_class[*row]].len() == 1).unwrap();
    let mended = edited(&weak, "diagnosis", |cells| cells[row] = Some("gout".into()));
    forge(lab, &mended, MODELS, |_| {});
    verify(lab, "with another diagnosis", Pass, FAILS);
    lab.restore(&honest);
    verify(lab, "after", Pass, Pass);
}

/// Records that say another model of the same rows. The footer is the old one, then one that agrees.
/// No model looks at the sensitive column any more, and the publisher did not accept that.
const UNPROTECTED: Must = Refuse("wrong about the accepted homogeneity");

#[test]
fn records_of_other_models() {
    const COLUMN: Must = Refuse("the record contradicts itself on l_diversity");
    const FOOTER: Must = Refuse("the footer holds metadata that kanon did not write");
    const CONTRADICTS: Must = Refuse("the record contradicts itself on");
    fn of(record: &mut PublicRecord, column: &str) {
        record.models[1].sensitive = Some(column.into());
    }
    fn at(record: &mut PublicRecord, l: u32) {
        let model: &mut ModelRecord = &mut record.models[1];
        model.required = l.into();
        model.parameters.insert("l".into(), l.to_string());
    }
    let rows = released(&people(1));
    let honest = rows.lab.files();
    type Edit = fn(&mut PublicRecord);
    // What, edit, the footer that agrees, then what old and agreeing footers are refused for, without input.
    let records: [(&str, Edit, &str, Must, Must); 12] = [
        ("another column", |r| of(r, "ward"), "k_anonymity(5), l_diversity(2, ward)", COLUMN, COLUMN),
        ("an identifier", |r| of(r, "ssn"), "k_anonymity(5), l_diversity(2, ssn)", COLUMN, COLUMN),
        ("a quasi-identifier", |r| of(r, "zip"), "k_anonymity(5), l_diversity(2, zip)", COLUMN, COLUMN),
        ("a smaller l", |r| at(r, 1), "k_anonymity(5), l_diversity(1, diagnosis)", FOOTER, UNPROTECTED),
        (
            "a larger l",
            |r| at(r, 4),
            "k_anonymity(5), l_diversity(4, diagnosis)",
            FOOTER,
            Refuse("fail a required model"),
        ),
        (
            "l without what is required",
            |r| drop(r.models[1].parameters.insert("l".into(), "1".into())),
            MODELS,
            CONTRADICTS,
            CONTRADICTS,
        ),
        (
            "an l with a tail",
            |r| drop(r.models[1].parameters.insert("l".into(), "2.0".into())),
            MODELS,
            CONTRADICTS,
            CONTRADICTS,
        ),
        ("no column", |r| r.models[1].sensitive = None, MODELS, CONTRADICTS, CONTRADICTS),
        (
            "a column of k-anonymity",
            |r| r.models[0].sensitive = Some("diagnosis".into()),
            MODELS,
            CONTRADICTS,
            CONTRADICTS,
        ),
        ("no such model any more", |r| drop(r.models.pop()), "k_anonymity(5)", FOOTER, UNPROTECTED),
        ("another order", |r| r.models.reverse(), "l_diversity(2, diagnosis), k_anonymity(5)", FOOTER, Pass),
        (
            "reached more",
            |r| r.models[1].reached = Some(4.0),
            MODELS,
            Refuse("reaches another value"),
            Refuse("reaches another value"),
        ),
    ];
    for (what, edit, agreeing, old, new) in records {
        // With the input the policy is asked first; what a record says of itself must agree before that.
        let against = |alone: Must| match alone {
            Refuse(why) if why.contains("contradicts") || agreeing == MODELS => Refuse(why),
            _ => OTHER_MODELS,
        };
        forge(&rows.lab, &rows.rows, MODELS, edit);
        verify(&rows.lab, what, old, against(old));
        rows.lab.restore(&honest);
        forge(&rows.lab, &rows.rows, agreeing, |_| {});
        reseal(&rows.lab, edit);
        verify(&rows.lab, &format!("{what}, in the footer too"), new, against(new));
        rows.lab.restore(&honest);
    }
    verify(&rows.lab, "after", Pass, Pass);
}

#[test]
fn other_policies() {
    let lab = released(&people(1)).lab;
    let two = diverse().replace("ward      = { role = \"insensitive\" }", "ward = { role = \"sensitive\" }");
    let of_ward = "[[require]]\nmodel = \"l_diversity\"\nl = 2\nsensitive = \"ward\"\n\n[columns]";
    let other = "the models of the record are not those of the policy";
    for (policy, code, why) in [
        (diverse().replace("sensitive = \"diagnosis\"\n", ""), 0, "against the input"),
        (
            diverse().replace("l = 2", "l = 1"),
            2,
            "columns.diagnosis: l_diversity(1, diagnosis) promises nothing: it holds for a class of one individual; no model protects",
        ),
        (
            diverse().replace("l = 2", "l = 1").replace("[[require]]", &format!("{CONSENT}[[require]]")),
            1,
            other,
        ),
        (diverse().replace("l = 2", "l = 3"), 1, other),
        (POLICY.to_owned(), 1, other),
        (two.replace("[columns]", of_ward), 1, other),
        (two, 2, "columns.ward: no model protects this sensitive column"),
    ] {
        fs::write(lab.path("other.toml"), policy).unwrap();
        let before = lab.files();
        lab.run(&["verify", OUT, "--input", "people.parquet", "--policy", "other.toml"]).exit(code, why);
        assert!(lab.files() == before, "something changed");
    }
}
