//! What every kind of release must do: it is written and verified, its records can be read back, forgeries are refused, and the
//! commands that read releases answer. A kind of which nothing is said here does not compile.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use arrow::record_batch::RecordBatch;
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use datafusion_kanon::internals::method::{METHODS, ReleaseKind};
use datafusion_kanon::internals::release::publish::record::{
    FileRecord, PrivateRecord, PublicRecord, RECORD, RecodingRecord,
};
use datafusion_kanon::internals::release::publish::write;

use crate::command::Place;
use crate::releases::{as_kanon_writes, picked, read_parquet, write_parquet};

const PEOPLE: usize = 240;

/// The kinds that some method makes.
fn kinds() -> Vec<ReleaseKind> {
    let mut kinds: Vec<ReleaseKind> = Vec::new();
    for method in METHODS {
        if !kinds.contains(&method.kind) {
            kinds.push(method.kind);
        }
    }
    assert!(kinds.len() >= 5, "{kinds:?}");
    kinds
}

/// A policy whose release is of a kind.
fn policy(kind: ReleaseKind) -> String {
    let accepted = match kind {
        ReleaseKind::Levels | ReleaseKind::Regions | ReleaseKind::Centroids => {
            "accept_homogeneity = [\"diagnosis\"]\n"
        }
        ReleaseKind::Noise | ReleaseKind::Groups => "",
    };
    let (method, models, columns) = match kind {
        ReleaseKind::Levels => ("\"auto\"", "k = 4", CLASSES),
        ReleaseKind::Regions => ("\"mondrian\"", "k = 4", CLASSES),
        ReleaseKind::Centroids => ("\"mdav\"", "k = 4", CLASSES),
        ReleaseKind::Noise => ("{ dp_centroids = { epsilon = 50 } }", "k = 20", NUMBERS),
        ReleaseKind::Groups => {
            ("\"anatomy\"", "[[require]]\nmodel = \"l_diversity\"\nl = 2\nsensitive = \"diagnosis\"", GROUPS)
        }
    };
    format!(
        "method = {method}\nrows_are_individuals = true\n{accepted}{models}\n[columns]\nname = {{ role = \"identifier\" }}\n{columns}"
    )
}

const CLASSES: &str = r#"
age       = { role = "quasi", hierarchy = { range = [5, 10, 20, 40] } }
stay      = { role = "quasi", hierarchy = { range = [4, 8, 16] } }
ward      = { role = "insensitive" }
diagnosis = { role = "sensitive" }
"#;
const NUMBERS: &str = r#"
age       = { role = "quasi", clip = [18, 80] }
stay      = { role = "quasi", clip = [0, 20] }
ward      = { role = "text" }
diagnosis = { role = "text" }
"#;
const GROUPS: &str = r#"
age       = { role = "quasi" }
stay      = { role = "quasi" }
ward      = { role = "text" }
diagnosis = { role = "sensitive", allow_unique = true }
"#;

/// People, each with a row, who stay for so many days.
fn people(count: usize, stay: fn(usize) -> usize) -> String {
    let mut text = String::from("name,age,stay,ward,diagnosis\n");
    for row in 0..count {
        let (age, stay) = (18 + row * 7 % 50, stay(row));
        let (ward, diagnosis) = (["north", "south"][row % 2], ["flu", "gout", "HIV", "asthma"][row / 2 % 4]);
        writeln!(text, "CANARY-{row},{age},{stay},{ward},{diagnosis}").unwrap();
    }
    text
}

/// A folder with `in.csv`, `policy.toml` and the release `out`.
fn released(policy: String) -> Place {
    let place = Place::new();
    place.write("in.csv", people(PEOPLE, |row| row * row % 17));
    place.write("policy.toml", policy);
    let ran = place.run("release in.csv --policy policy.toml --to out --format json").exit(0);
    assert!(!ran.out.contains("CANARY"), "{ran:?}");
    place
}

/// Runs a test for each kind.
fn each(test: impl Fn(ReleaseKind, &Place)) {
    for kind in kinds() {
        test(kind, &released(policy(kind)));
    }
}

/// Runs a test for each kind, also where a column names the individuals.
fn each_in_both_units(test: impl Fn(ReleaseKind, &Place)) {
    each(&test);
    for kind in kinds() {
        let policy = policy(kind).replace("rows_are_individuals = true\n", "");
        test(kind, &released(policy.replace("\"identifier\"", "\"individual\"")));
    }
}

const ALONE: &str = "verify out";
const AGAINST: &str = "verify out --input in.csv";
const OF_ORDER: &str = "not in the order in which kanon writes them";
const WITH_POLICY: &str = "verify out --input in.csv --policy policy.toml";

#[test]
fn a_release_verifies_and_its_records_are_read_back() {
    each_in_both_units(|kind, place| {
        for line in [ALONE, AGAINST, WITH_POLICY] {
            place.run(line).exit(0);
            let json = place.run(&format!("{line} --format json")).exit(0).json();
            assert_eq!(json["rows"], PEOPLE, "{kind:?} {json}");
        }
        let public = public(place);
        assert_eq!(public.recoding.kind(), Some(kind));
        let text = fs::read_to_string(place.path("out").join(RECORD)).unwrap();
        assert_eq!(public.to_json().unwrap(), text, "{kind:?}");
        let text = fs::read_to_string(place.path("out.private.json")).unwrap();
        assert!(!text.contains("CANARY"), "{kind:?}");
        let private = private(place);
        let secrets = [&private.assignment, &private.dealing_key, &private.noise_key];
        let has = secrets.map(Option::is_some);
        match kind {
            ReleaseKind::Levels => assert_eq!(has, [false; 3]),
            ReleaseKind::Regions | ReleaseKind::Centroids => assert_eq!(has, [true, false, false]),
            ReleaseKind::Groups => assert_eq!(has, [false, true, false]),
            ReleaseKind::Noise => assert_eq!(has, [false, false, true]),
        }
    });
}

#[test]
fn the_commands_that_read_releases_answer() {
    each_in_both_units(|kind, place| {
        place.write("voters.csv", "name,age,stay\nCANARY-x,25,3\nCANARY-y,40,9\n");
        for line in ["explain out", "risk out", "link voters.csv out --private out.private.json"] {
            let text = place.run(line).exit(0).out;
            let json = place.run(&format!("{line} --format json")).exit(0);
            assert!(
                !text.is_empty() && !text.contains("CANARY") && !json.out.contains("CANARY"),
                "{kind:?} {line}"
            );
            assert!(json.json().is_object(), "{kind:?} {line}");
        }
        let query = "SELECT count(*) AS rows FROM anonymize('in.csv', 'policy.toml')";
        let queried = place.run_on("sql --format json -c", Some(query), "");
        if kind == ReleaseKind::Groups {
            queried.exit(2).says("makes two tables, and one is returned here");
        } else {
            assert_eq!(queried.exit(0).json(), serde_json::json!([{ "rows": PEOPLE }]), "{kind:?}");
        }
        // What a kind cannot do again it refuses by name.
        let before = place.tree();
        let again = place.run("release in.csv --recoding out.private.json --to again");
        match kind {
            ReleaseKind::Levels | ReleaseKind::Regions => {
                again.exit(0);
                place.run("verify again --input in.csv").exit(0);
            }
            ReleaseKind::Centroids | ReleaseKind::Noise | ReleaseKind::Groups => {
                again.exit(2).says("--recoding");
                assert_eq!(place.tree(), before, "{kind:?}");
            }
        }
    });
}

#[test]
fn what_cannot_be_released_leaves_nothing() {
    each(|kind, place| {
        let more =
            policy(kind).replace("k = 4", "k = 1000").replace("k = 20", "k = 1000").replace("l = 2", "l = 5");
        place.write("more.toml", more);
        let before = place.tree();
        place.run("release in.csv --policy more.toml --to more").exit(1);
        assert_eq!(place.tree(), before, "{kind:?}");
        // Too little memory is refused; clusters with noise need no table of all classes.
        place.write("many.csv", people(60_000, |row| row));
        let before = place.tree();
        let ran = place.run("release many.csv --policy policy.toml --to little --memory-limit 16M");
        if kind == ReleaseKind::Noise {
            assert_eq!(ran.code, 0, "{ran:?}");
            place.run("verify little --input many.csv --memory-limit 16M").exit(0);
        } else {
            ran.exit(3).says("--memory-limit");
            assert_eq!(place.tree(), before, "{kind:?}");
        }
    });
}

#[test]
fn a_release_that_is_interrupted_leaves_nothing() {
    each(|kind, place| {
        place.write("many.csv", people(60_000, |row| row % 300));
        let before = place.tree();
        let run = place.start_until("release many.csv --policy policy.toml --to ended", ".ended.kanon-work");
        run.signal("INT");
        let ran = run.end();
        assert_eq!(ran.code, 130, "{kind:?} {ran:?}");
        assert_eq!(place.tree(), before, "{kind:?}");
    });
}

#[test]
fn forged_releases_are_refused_for_their_reason() {
    let recodings: BTreeMap<String, RecodingRecord> = kinds()
        .into_iter()
        .map(|kind| (format!("{kind:?}"), public(&released(policy(kind))).recoding))
        .collect();
    each(|kind, place| {
        let whole = place.tree();
        let forged = |what: &str, lines: &[&str], why: &str| {
            for line in lines {
                let ran = place.run(line);
                assert_eq!(ran.code, 1, "{kind:?}, {what}, {line}: {ran:?}");
                assert!(ran.err.contains(why), "{kind:?}, {what}, {line}: no `{why}` in {ran:?}");
                assert_eq!(ran.err.contains(OF_ORDER), why == OF_ORDER, "{kind:?}, {what}, {line}: {ran:?}");
            }
            fs::remove_dir_all(place.path("out")).unwrap();
            for (name, bytes) in whole.iter().filter(|(name, _)| name.starts_with("out")) {
                if name.ends_with(".parquet") || name.ends_with(".json") {
                    place.write(name, bytes);
                }
            }
        };
        let all = [ALONE, AGAINST, WITH_POLICY];
        for table in 0..public(place).tables.len() {
            let part = part(place, table);
            fs::remove_file(&part).unwrap();
            forged("a missing file", &all, "is missing");
            fs::write(part.with_file_name("more.parquet"), "").unwrap();
            forged("one more file", &all, "that the record does not list");
            let mut bytes = fs::read(&part).unwrap();
            bytes[20] ^= 1;
            fs::write(&part, bytes).unwrap();
            forged("a changed byte", &all, "is not the file that the record describes");

            let rows = read_parquet(&part);
            let last = u32::try_from(rows.num_rows()).unwrap() - 1;
            write_again(place, table, &rows.slice(0, rows.num_rows() - 1));
            forged("a missing row", &all, "verification refused");
            write_again(place, table, &picked(&rows, &(0..=last).rev().collect::<Vec<_>>()));
            // Nothing but the means tells the rows of noise apart, whose order only the policy knows.
            let lines = if kind == ReleaseKind::Noise { &all[1..] } else { &all[..] };
            forged("another order", lines, OF_ORDER);
            // The first row that differs from the one above it becomes the same, which keeps the order.
            let is_other = |row: &u32| rows.slice(*row as usize, 1) != rows.slice(*row as usize - 1, 1);
            let other = (1..=last).find(is_other).unwrap();
            let places = (0..=last).map(|row| if row == other { other - 1 } else { row });
            write_again(place, table, &picked(&rows, &places.collect::<Vec<_>>()));
            forged("another row", &all[1..], "verification refused");
        }
        for (other, recoding) in recodings.iter().filter(|(other, _)| **other != format!("{kind:?}")) {
            let mut public = public(place);
            public.recoding = recoding.clone();
            seal(place, public);
            forged(&format!("the recoding of {other}"), &all, "verification refused");
        }
        lie(kind, place);
        forged("a lie about what is shown", &all[1..], "verification refused");
    });
}

/// Changes what the records say of the released values.
fn lie(kind: ReleaseKind, place: &Place) {
    let (mut public, mut private) = (public(place), private(place));
    let other = |key: &Option<String>| {
        let key = key.as_ref().unwrap();
        Some(format!("{}{}", if key.starts_with('0') { 1 } else { 0 }, &key[1..]))
    };
    match kind {
        ReleaseKind::Levels => {
            let RecodingRecord::Levels(levels) = &mut public.recoding else { panic!("no levels") };
            levels[0].level = if levels[0].level == 1 { 2 } else { 1 };
        }
        ReleaseKind::Regions | ReleaseKind::Centroids => {
            let foreign = released(policy(kind).replace("k = 4", "k = 24"));
            private.assignment = self::private(&foreign).assignment;
        }
        ReleaseKind::Noise => private.noise_key = other(&private.noise_key),
        ReleaseKind::Groups => private.dealing_key = other(&private.dealing_key),
    }
    fs::write(place.path("out.private.json"), private.to_json().unwrap()).unwrap();
    seal(place, public);
}

fn public(place: &Place) -> PublicRecord {
    PublicRecord::read(&place.path("out")).unwrap()
}

fn private(place: &Place) -> PrivateRecord {
    serde_json::from_slice(&fs::read(place.path("out.private.json")).unwrap()).unwrap()
}

/// The first file of a table.
fn part(place: &Place, table: usize) -> std::path::PathBuf {
    public(place).tables[table].path(&place.path("out")).join("part-00000.parquet")
}

/// Writes rows in place of those of a table, as kanon writes them, and makes the record say so.
fn write_again(place: &Place, table: usize, rows: &RecordBatch) {
    let path = part(place, table);
    let footer = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
    let footer = footer.metadata().file_metadata().key_value_metadata().cloned().unwrap_or_default();
    let footer: Vec<(String, String)> = footer
        .into_iter()
        .filter(|one| one.key != "ARROW:schema")
        .map(|one| (one.key, one.value.unwrap()))
        .collect();
    let footer: Vec<(&str, &str)> =
        footer.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    write_parquet(&path, rows, as_kanon_writes(&footer, write::CREATED_BY));
    let mut public = public(place);
    let folder = path.parent().unwrap();
    public.tables[table].rows = rows.num_rows() as u64;
    public.tables[table].files =
        vec![FileRecord::of(folder, "part-00000.parquet", rows.num_rows() as u64).unwrap()];
    seal(place, public);
}

/// Writes a record with its digest, and binds the private record to it.
fn seal(place: &Place, record: PublicRecord) {
    let record = record.sealed().unwrap();
    fs::write(place.path("out").join(RECORD), record.to_json().unwrap()).unwrap();
    let mut private = private(place);
    private.release = record.digest;
    fs::write(place.path("out.private.json"), private.to_json().unwrap()).unwrap();
}
