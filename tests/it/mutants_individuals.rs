//! Edited records of a release that counts individuals: without the input nobody can recount them,
//! but a record may say neither what cannot be nor what kanon never writes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::fs;

use arrow::compute::concat_batches;
use datafusion_kanon::internals::release::publish::record::{PublicRecord, recorded};
use datafusion_kanon::internals::verify::homogeneous::Homogeneous;

use crate::mutants::Must::{self, Pass, Refuse};
use crate::mutants::verify;
use crate::releases::{Lab, OUT, POLICY, levels, people, record, seal};

/// The small release of people with two rows each.
fn released() -> Lab {
    let people = people(1);
    let lab = Lab::new(&concat_batches(&people.schema(), [&people, &people]).unwrap());
    let policy = POLICY.replace("rows_are_individuals = true\n", "");
    let policy = policy.replace("ssn       = { role = \"identifier\" }", "ssn = { role = \"individual\" }");
    fs::write(lab.path("policy.toml"), policy).unwrap();
    lab.release("policy.toml", OUT).exit(0, "k_anonymity 5 required, 5 reached");
    lab
}

/// Edits the record, gives it its digest and binds the private record to it.
fn reseal(lab: &Lab, edit: impl FnOnce(&mut PublicRecord)) {
    let mut forged = record(lab);
    edit(&mut forged);
    seal(lab, forged);
}

fn risk(record: &mut PublicRecord, name: &str, value: f64) {
    record.risk.insert(name.into(), value);
}

fn homogeneous(column: &str, classes: u64, individuals: u64) -> Homogeneous {
    Homogeneous { column: column.into(), classes, individuals }
}

#[test]
fn what_cannot_be_is_refused_without_the_input() {
    const REACHED: Must = Refuse("states a value of k_anonymity that its classes cannot reach");
    const RISKS: Must = Refuse("the record contradicts itself on its risks");
    const COLUMNS: Must = Refuse("the homogeneous classes of the record do not match its sensitive columns");
    const CLASSES: Must = Refuse("states an impossible number of homogeneous classes for `diagnosis`");
    const LEVEL: Must = Refuse("the record contradicts itself on the level of");
    const ANY: Must = Refuse("verification refused");
    let lab = released();
    let honest = lab.files();
    verify(&lab, "before", Pass, Pass);
    type Edit = fn(&mut PublicRecord);
    let edits: &[(&str, Edit, Must)] = &[
        ("less than required", |r| r.models[0].reached = Some(1.0), REACHED),
        ("more than the risks say", |r| r.models[0].reached = Some(30.0), REACHED),
        ("half an individual", |r| r.models[0].reached = Some(5.5), REACHED),
        ("fewer than nobody", |r| r.models[0].reached = Some(-5.0), REACHED),
        (
            "more than there are rows in the smallest class",
            |r| {
                let expected = r.risk["expected_reidentifications"];
                r.individuals = Some(400);
                r.models[0].reached = Some(11.0);
                risk(r, "prosecutor_risk_max", recorded(1.0 / 11.0));
                risk(r, "prosecutor_risk_mean", recorded(expected / 400.0));
            },
            Refuse("more individuals than there are rows for"),
        ),
        ("too many individuals", |r| r.individuals = Some(999_999), RISKS),
        (
            "more individuals than rows",
            |r| {
                let expected = r.risk["expected_reidentifications"];
                r.individuals = Some(999_999);
                risk(r, "prosecutor_risk_mean", recorded(expected / 999_999.0));
            },
            Refuse("more individuals than there are rows for"),
        ),
        ("another individual", |r| r.individuals = r.individuals.map(|all| all + 1), RISKS),
        ("nobody", |r| r.individuals = Some(0), RISKS),
        ("one risk only", |r| r.risk = [("prosecutor_risk_max".to_owned(), 0.2)].into(), RISKS),
        ("a text among the risks", |r| risk(r, "Dr. Smith has HIV", 7.0), RISKS),
        ("no risks", |r| r.risk.clear(), RISKS),
        ("a small highest risk", |r| risk(r, "prosecutor_risk_max", 0.0001), RISKS),
        ("a highest risk of no class", |r| risk(r, "prosecutor_risk_max", 0.19), RISKS),
        ("no highest risk", |r| risk(r, "prosecutor_risk_max", 0.0), RISKS),
        ("a negative risk", |r| risk(r, "prosecutor_risk_mean", -0.1), RISKS),
        ("another mean", |r| risk(r, "prosecutor_risk_mean", 0.01), RISKS),
        ("a mean above the highest", |r| risk(r, "prosecutor_risk_mean", 0.9), RISKS),
        ("another expectation", |r| risk(r, "expected_reidentifications", 7.0), RISKS),
        (
            "an expectation above the classes",
            |r| {
                let classes = r.classes as f64;
                risk(r, "expected_reidentifications", 2.0 * classes);
                risk(r, "prosecutor_risk_mean", recorded(2.0 * classes / r.individuals.unwrap() as f64));
            },
            RISKS,
        ),
        ("unique ones in no class of one", |r| risk(r, "sample_uniqueness", 0.5), RISKS),
        ("a share at risk in no small class", |r| risk(r, "share_at_risk", 0.5), RISKS),
        ("a share above one", |r| risk(r, "share_at_risk", 1.5), RISKS),
        ("no homogeneous classes", |r| r.homogeneous.clear(), COLUMNS),
        ("a text as homogeneous column", |r| r.homogeneous = vec![homogeneous("Bob has HIV", 7, 3)], COLUMNS),
        ("one column more", |r| r.homogeneous.push(homogeneous("ward", 0, 0)), COLUMNS),
        ("more than all classes", |r| r.homogeneous[0] = homogeneous("diagnosis", r.classes + 1, 9), CLASSES),
        ("classes of nobody", |r| r.homogeneous[0] = homogeneous("diagnosis", 2, 0), CLASSES),
        ("a class of too few", |r| r.homogeneous[0] = homogeneous("diagnosis", 1, 4), CLASSES),
        ("somebody in no class", |r| r.homogeneous[0] = homogeneous("diagnosis", 0, 4), CLASSES),
        ("more than all", |r| r.homogeneous[0] = homogeneous("diagnosis", 1, 9_999), CLASSES),
        (
            "all classes, not all people",
            |r| r.homogeneous[0] = homogeneous("diagnosis", r.classes, 9),
            CLASSES,
        ),
        ("a role", |r| r.tables[0].columns[6].role = "sensitive".into(), COLUMNS),
        (
            "a level above the top",
            |r| (levels(r)[0].level, levels(r)[0].of, levels(r)[0].by) = (77, 3, "suppress".parse().unwrap()),
            LEVEL,
        ),
        (
            "suppressed below the top",
            |r| (levels(r)[0].level, levels(r)[0].of, levels(r)[0].by) = (2, 4, "suppress".parse().unwrap()),
            LEVEL,
        ),
        ("the top that is not suppressed", |r| levels(r)[0].level = 4, LEVEL),
        ("level 0 that is not as is", |r| levels(r)[0].level = 0, LEVEL),
        ("a text as level", |r| levels(r)[0].by.generalizer = "Bob has HIV".into(), LEVEL),
        ("a text as argument", |r| levels(r)[0].by.argument.push("Bob has HIV".into()), LEVEL),
        ("a text as option", |r| drop(levels(r)[0].by.options.insert("Bob".into(), "HIV".into())), LEVEL),
        ("a text as clip", |r| levels(r)[0].by.clip = Some([None, Some("Bob has HIV".into())]), LEVEL),
        ("a text in a level", |r| levels(r)[4].by = "hierarchy:1 Bob".parse().unwrap(), LEVEL),
        ("another level of a file", |r| levels(r)[4].by = "hierarchy:2".parse().unwrap(), LEVEL),
        ("another name of a level", |r| levels(r)[1].by = "prefix:03".parse().unwrap(), LEVEL),
    ];
    for (what, edit, alone) in edits {
        reseal(&lab, edit);
        verify(&lab, what, *alone, ANY);
        lab.restore(&honest);
    }
    verify(&lab, "after", Pass, Pass);
}

/// What is possible is believed, and called so: only the input tells whose rows they are.
#[test]
fn what_can_be_is_told_as_recorded() {
    let lab = released();
    reseal(&lab, |r| {
        r.models[0].reached = Some(6.0);
        risk(r, "prosecutor_risk_max", recorded(1.0 / 6.0));
    });
    verify(
        &lab,
        "a larger smallest class",
        Pass,
        Refuse("individuals, risks or homogeneous classes differ from the record"),
    );
    let alone = lab.run(&["verify", OUT]).exit(0, "recorded  k_anonymity 5 required, 6 reached");
    let alone = alone.exit(0, "--input INPUT recounts them");
    assert!(!alone.said.contains("holds"), "{alone:?}");
}

/// Models that accept a class of one promise nothing, whatever rows lie beside them.
#[test]
fn a_release_promises_something() {
    const NOTHING: Must = Refuse("the models of the record guarantee nothing");
    let lab = Lab::released();
    let forged = |r: &mut PublicRecord| {
        r.models[0].required = 1.0;
        r.models[0].parameters.insert("k".into(), "1".into());
    };
    reseal(&lab, forged);
    verify(&lab, "k = 1", NOTHING, NOTHING);
}
