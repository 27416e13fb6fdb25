//! Models over a subset of the quasi-identifiers: a release holds them, says so, and a forged one is refused.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use arrow::array::{AsArray, Int32Array, StringArray};
use arrow::datatypes::Int32Type;
use arrow::record_batch::RecordBatch;
use datafusion_kanon::internals::release::publish::record::PublicRecord;
use datafusion_kanon::internals::release::publish::write;
use serde_json::Value;

use crate::command::Place;
use crate::mutants::Must::{Pass, Refuse};
use crate::mutants::verify;
use crate::releases::{
    Lab, OUT, PART, POLICY, as_kanon_writes, people, read_parquet, record, reseal, seal, texts, with,
    write_parquet,
};

/// Four rows of a third sex, which no subset with a large k can show.
fn with_a_rare_sex() -> RecordBatch {
    let people = people(2);
    let mut rare = 0;
    let sex = texts(&people, "sex").into_iter().map(|sex| {
        rare += usize::from(sex.as_deref() == Some("F"));
        if rare <= 4 && sex.as_deref() == Some("F") { Some("X".to_owned()) } else { sex }
    });
    let people = with(&people, "sex", Arc::new(sex.collect::<StringArray>()));
    let rows = i32::try_from(people.num_rows()).unwrap();
    let visit = Int32Array::from_iter_values(0..rows);
    let people = with(&people, "stay", Arc::new(visit));
    with(
        &people,
        "ssn",
        Arc::new((0..rows).map(|row| Some(format!("p{}", row / 2))).collect::<StringArray>()),
    )
}

const COLUMNS: &str = r#"
accept_homogeneity = ["diagnosis"]
others = "drop"
suppression_limit = 0.1
k = 2

[[require]]
model = "k_anonymity"
k = 30
quasi = ["sex", "marital"]

[[require]]
model = "l_diversity"
l = 3
quasi = ["zip"]

[columns]
dob = { role = "quasi", hierarchy = { date = ["month", "year", "decade"] } }
zip = { role = "quasi", hierarchy = { prefix = [4, 3, 2] } }
sex = { role = "quasi", max_level = 0 }
marital = { role = "quasi", max_level = 0 }
diagnosis = { role = "sensitive" }
stay = { role = "insensitive", allow_unique = true }
"#;

/// The least number of different holders of what the released rows show in some columns.
fn least(rows: &RecordBatch, columns: &[&str], holder: &dyn Fn(usize) -> Option<String>) -> usize {
    let labels: Vec<Vec<Option<String>>> = columns.iter().map(|column| texts(rows, column)).collect();
    let mut holders: BTreeMap<Vec<Option<String>>, BTreeSet<String>> = BTreeMap::new();
    for row in 0..rows.num_rows() {
        let tuple = labels.iter().map(|labels| labels[row].clone()).collect();
        holders.entry(tuple).or_default().extend(holder(row));
    }
    holders.values().map(BTreeSet::len).min().unwrap()
}

#[test]
fn every_method_satisfies_models_over_subsets() {
    let place = Place::new();
    place.parquet("in.parquet", &with_a_rare_sex());
    for method in ["optimal", "exhaustive", "auto", "mondrian", "clusters", "local"] {
        for of_people in [false, true] {
            let unit = if of_people { "ssn = { role = \"individual\" }\n" } else { "" };
            let asserts = if of_people { "" } else { "rows_are_individuals = true\n" };
            // Methods that choose no levels keep a column as it is where they hold it to one level.
            let columns = match method {
                "mondrian" | "clusters" | "local" => {
                    COLUMNS.replace("max_level", "recode = \"global\", max_level")
                }
                _ => COLUMNS.to_owned(),
            };
            place.write("p.toml", format!("method = \"{method}\"\n{asserts}{columns}{unit}"));
            place.run("release in.parquet --policy p.toml --to out --overwrite").exit(0);
            let (rows, record) =
                (place.released("out"), place.run("explain out --format json").exit(0).json());
            let visits = rows.column_by_name("stay").unwrap().as_primitive::<Int32Type>();
            let visit = |row: usize| visits.value(row);
            let person = |row: usize| Some(if of_people { visit(row) / 2 } else { visit(row) }.to_string());
            let k = least(&rows, &["sex", "marital"], &person);
            assert!(k >= 30, "{method}: {k}");
            assert_eq!(record["models"][1]["reached"], k, "{method}");
            assert_eq!(record["models"][1]["quasi"], serde_json::json!(["sex", "marital"]));
            let values = texts(&rows, "diagnosis");
            let l = least(&rows, &["zip"], &|row| values[row].clone());
            let reached = record["models"][2]["reached"].as_u64().unwrap();
            assert!((3..=l as u64).contains(&reached), "{method}: {reached} of {l}");
            assert!(of_people || reached == l as u64, "{method}: {reached} of {l}");
            assert!(!texts(&rows, "sex").contains(&Some("X".to_owned())), "{method} released the four rows");
            let verified = place.run("verify out").exit(0).out;
            assert!(verified.contains("k_anonymity over (sex, marital) 30 required"), "{verified}");
            place.run("verify out --input in.parquet --policy p.toml").exit(0);
            let page = place.run("explain out").exit(0).out;
            assert!(page.contains("`k_anonymity` over `sex`, `marital` alone"), "{page}");
        }
    }
    // The check of the input: the four rows are a class over these columns.
    let checked = place.run("check in.parquet --policy p.toml --format json").exit(1).json();
    let models = checked["models"].as_array().unwrap();
    assert_eq!((&models[1]["quasi"][0], &models[1]["holds"]), (&Value::from("sex"), &Value::from(false)));
    assert!(models[1]["reached"].as_u64().unwrap() <= 4, "{}", models[1]);
}

#[test]
fn forged_subset_records_are_refused() {
    let over = "[[require]]\nmodel = \"k_anonymity\"\nk = 8\nquasi = [\"sex\", \"marital\"]\n\n[columns]";
    let lab = Lab::new(&people(1));
    fs::write(lab.path("policy.toml"), POLICY.replace("[columns]", over)).unwrap();
    lab.release("policy.toml", OUT).exit(0, "k_anonymity over (sex, marital) 8 required");
    verify(&lab, "before", Pass, Pass);
    let (honest, rows) = (lab.files(), read_parquet(&lab.out().join(PART)));
    let footer = |models: &str| {
        let properties = as_kanon_writes(&[("kanon.models", models)], write::CREATED_BY);
        write_parquet(&lab.out().join(PART), &rows, properties);
    };
    let others = Refuse("the models of the record are not those of the policy");
    footer("k_anonymity(5), k_anonymity(5000) over (sex, marital)");
    reseal(&lab, |record| {
        let model = &mut record.models[1];
        (model.required, model.reached) = (5000.0, Some(5000.0));
        model.parameters.insert("k".into(), "5000".into());
    });
    verify(&lab, "a larger k", Refuse("k_anonymity(5000) over (sex, marital) does not hold"), others);
    lab.restore(&honest);

    footer("k_anonymity(5), k_anonymity(8)");
    reseal(&lab, |record| record.models[1].quasi = None);
    verify(&lab, "of all columns", Refuse("fail a required model"), others);
    lab.restore(&honest);

    let contradicts = "the record contradicts itself on k_anonymity";
    let names: [(&str, &[&str]); 4] = [
        ("another column", &["sex", "ward"]),
        ("none", &[]),
        ("one twice", &["sex", "sex"]),
        ("all", &["dob", "zip", "age", "sex", "marital"]),
    ];
    for (what, names) in names {
        footer(&format!("k_anonymity(5), k_anonymity(8) over ({})", names.join(", ")));
        reseal(&lab, |record| {
            record.models[1].quasi = Some(names.iter().map(|name| (*name).to_owned()).collect());
        });
        verify(&lab, what, Refuse(contradicts), Refuse(contradicts));
        lab.restore(&honest);
    }

    reseal(&lab, |record| record.models[1].reached = Some(9.0));
    let other = Refuse("reaches another value than the recorded one");
    verify(&lab, "another value", other, other);
    lab.restore(&honest);
    verify(&lab, "after", Pass, Pass);
}

/// Individuals are not in the rows, but what the rows rule out is refused without the input, too.
#[test]
fn records_that_the_rows_rule_out_are_refused() {
    let lab = Lab::new(&with_a_rare_sex());
    let alpha = "[[require]]\nmodel = \"alpha_k_anonymity\"\nalpha = 0.99\nquasi = [\"sex\"]\n[columns]";
    let policy = COLUMNS.replace("[columns]", alpha).replace("max_level = 0", "recode = \"global\"");
    fs::write(lab.path("policy.toml"), policy + "ssn = { role = \"individual\" }\n").unwrap();
    lab.release("policy.toml", OUT).exit(0, "alpha_k_anonymity of diagnosis over (sex) 0.99 required");
    verify(&lab, "before", Pass, Pass);
    let honest = lab.files();
    let individuals = record(&lab).individuals.unwrap() as f64;
    let differs = Refuse("reaches another value than the recorded one");
    let edits: [(&str, fn(&mut PublicRecord, f64)); 3] = [
        ("more than everybody", |record, all| record.models[1].reached = Some(all + 1.0)),
        ("a share below 0", |record, _| record.models[3].reached = Some(-1.0)),
        ("as many values", |record, all| record.models[2].reached = Some(all + 1.0)),
    ];
    for (what, edit) in edits {
        let mut forged = record(&lab);
        edit(&mut forged, individuals);
        seal(&lab, forged);
        verify(&lab, what, Refuse("that its classes cannot reach"), differs);
        lab.restore(&honest);
    }
    verify(&lab, "after", Pass, Pass);
}

#[test]
fn policies_name_quasi_identifiers() {
    let place = Place::new();
    place.parquet("in.parquet", &people(1));
    let refuse = |require: &str, why: &str| {
        let head = "k = 2\nothers = \"drop\"\naccept_homogeneity = [\"diagnosis\"]\n";
        let columns = "[columns]\nsex = { role = \"quasi\" }\nage = { role = \"quasi\" }\n\
                       diagnosis = { role = \"sensitive\" }\n";
        place.write("p.toml", format!("{head}[[require]]\n{require}\n{columns}"));
        place.run("check in.parquet --policy p.toml").exit(2).says(why);
    };
    let k = |quasi: &str| format!("model = \"k_anonymity\"\nk = 3\nquasi = {quasi}");
    let place_of = "require[0].quasi: ";
    for (quasi, why) in [
        ("[]", "expected at least one quasi-identifier, found an empty list"),
        ("[\"sex\", \"sex\"]", "`sex` is named twice"),
        ("[\"sex\", \"age\"]", "these are all quasi-identifiers; remove the key"),
        ("[\"sexx\"]", "unknown quasi-identifier `sexx`; did you mean `sex`?"),
        ("[\"diagnosis\"]", "the role of `diagnosis` is `sensitive`, not `quasi`"),
    ] {
        refuse(&k(quasi), &format!("{place_of}{why}"));
    }
    let t = "model = \"t_closeness\"\nt = 0.5\nquasi = [\"sex\"]";
    refuse(t, "require[0].quasi: `t_closeness` holds for the classes over all quasi-identifiers only");
    let twice = format!("{}\n[[require]]\n{}", k("[\"sex\"]"), k("[\"sex\"]"));
    refuse(&twice, "`k_anonymity` is required by `require[0]` too");
    // It protects nobody who is known by the other columns.
    place.write(
        "p.toml",
        "others = \"drop\"\n[[require]]\nmodel = \"k_anonymity\"\nk = 3\nquasi = [\"sex\"]\n[columns]\n\
         sex = { role = \"quasi\" }\nage = { role = \"quasi\" }\n",
    );
    place
        .run("release in.parquet --policy p.toml --to out")
        .exit(2)
        .says("a class of one individual over all quasi-identifiers satisfies k_anonymity(3) over (sex)");
}
