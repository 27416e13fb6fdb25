//! A fault at each step of a release, and a kill before each: what lies at OUT is then nothing, the old release or the new
//! one, and the next run puts everything right.

use std::collections::BTreeMap;

use super::super::disk::fault::{self, Faults};
use super::super::record::{FileRecord, PublicRecord, SearchRecord};
use super::*;
use crate::input::Format;
use crate::verify::as_is::UniqueTogether;

const PART: &str = "part-00000.parquet";

fn nothing() -> Input {
    Input { said: "x.csv".into(), files: vec![], format: Format::Csv }
}

fn private(release: &str) -> PrivateRecord {
    PrivateRecord {
        format: 1,
        release: release.to_owned(),
        policy: String::new(),
        hierarchies: BTreeMap::new(),
        input: String::new(),
        files: Vec::new(),
        digest_key: String::new(),
        input_rows: 1,
        input_individuals: None,
        duplicate_rows: 0,
        suppressed_rows: 0,
        suppressed_individuals: None,
        suppression_limit: 0,
        risk_before: BTreeMap::new(),
        as_is: Vec::new(),
        search: SearchRecord {
            method: String::new(),
            objective: String::new(),
            nodes: 1,
            evaluated: 1,
            proven: true,
            bound: None,
            best: Vec::new(),
        },
    }
}

/// A whole run that publishes the release of this number.
fn run(out: &Path, overwrite: bool, number: u64) -> Result<Vec<String>> {
    let staging = Staging::begin(out, overwrite, &nothing())?;
    fs::write(staging.release().join(PART), format!("rows of {number}")).doing("writing")?;
    fs::write(staging.spill().join("rows"), "spilled").doing("writing")?;
    let public = PublicRecord {
        format: 1,
        tool: String::new(),
        models: Vec::new(),
        counted_in: String::new(),
        columns: Vec::new(),
        rows: number,
        individuals: None,
        classes: 1,
        unique: UniqueTogether::default(),
        homogeneous: Vec::new(),
        risk: BTreeMap::new(),
        files: vec![FileRecord::of(&staging.release(), PART, number)?],
        digest: String::new(),
    }
    .sealed()?;
    staging.write_record(&public)?;
    staging.publish(&private(&public.digest))
}

/// The number of the release at OUT, which must be whole.
fn there(out: &Path) -> Option<u64> {
    if is_absent(out) {
        return None;
    }
    let public = PublicRecord::read(out).unwrap();
    assert_eq!(public.files, [FileRecord::of(out, PART, public.rows).unwrap()]);
    assert_eq!(fs::read_dir(out).unwrap().count(), 2);
    Some(public.rows)
}

/// Whether the private record beside OUT is that of the release there; `None` where there is none.
fn belongs(out: &Path) -> Option<bool> {
    let path = PrivateRecord::path(out).unwrap();
    let text = fs::read_to_string(path).ok()?;
    let private: PrivateRecord = serde_json::from_str(&text).unwrap();
    Some(PublicRecord::read(out).is_ok_and(|public| public.digest == private.release))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// One run with faults and the run after it, which is whole or refused; whether a fault was met.
fn faulty(old: bool, faults: Faults, deep: bool, next_overwrites: bool) -> bool {
    let case = format!("old {old}, {faults:?}, deep {deep}, next {next_overwrites}");
    let folder = tempfile::tempdir().unwrap();
    let above = if deep { folder.path().join("a").join("b") } else { folder.path().to_path_buf() };
    let out = above.join("out");
    if old {
        run(&out, false, 1).unwrap();
    }
    let (done, met) = fault::with(faults, || run(&out, true, 2));
    let found = there(&out);
    let aside = above.join(".out.kanon-work").join("old");
    match (&done, found) {
        (Ok(warnings), found) => {
            assert_eq!((found, belongs(&out)), (Some(2), Some(true)), "{case}");
            assert!(!met || !warnings.is_empty() || deep, "{case}: a step that failed is not told");
        }
        (Err(_), Some(1)) => assert!(old, "{case}"),
        (Err(_), None) => assert!(!old || faults.no_exchange && is_release(&aside), "{case}"),
        // What undoes a publication failed as well; the error says so.
        (Err(error), Some(2)) => {
            assert!(faults.dead && error.to_string().contains("undoing it failed too"), "{case}: {error}");
        }
        (Err(_), Some(_)) => panic!("{case}"),
    }
    if let (Err(error), false) = (&done, faults.dead) {
        // One fault is undone by the steps that follow it.
        assert_eq!((found, belongs(&out)), (old.then_some(1), old.then_some(true)), "{case}: {error}");
        if deep && !old {
            assert!(
                names(folder.path()).len() <= usize::from(is_absent(&above) || !names(&above).is_empty())
            );
        }
    }

    let next = run(&out, next_overwrites, 3);
    let expected = match (next_overwrites, found) {
        (false, Some(number)) => Some(number),
        // Put back, and so in the way.
        (false, None) if old => Some(1),
        _ => Some(3),
    };
    assert_eq!((there(&out), belongs(&out)), (expected, Some(true)), "{case}: {next:?}");
    assert_eq!(next.is_ok(), expected == Some(3), "{case}: {next:?}");
    assert!(next.is_err() || next.is_ok_and(|warnings| warnings.is_empty()), "{case}");
    assert_eq!(names(&above), ["out", "out.private.json"], "{case}");
    met
}

#[test]
fn a_fault_or_a_kill_at_each_step() {
    let mut least = usize::MAX;
    for case in 0..32 {
        let is = |bit: usize| case >> bit & 1 == 1;
        let (old, dead, no_exchange, deep, next_overwrites) = (is(0), is(1), is(2), is(3), is(4));
        let mut first = 1;
        while faulty(old, Faults { first, dead, no_exchange }, deep, next_overwrites) {
            first += 1;
        }
        least = least.min(first);
    }
    assert!(least > 15, "a run has only {least} steps that can fail");
}

#[test]
fn a_release_comes_back_to_an_empty_folder_only() {
    let folder = tempfile::tempdir().unwrap();
    let (out, work) = (folder.path().join("out"), folder.path().join(".out.kanon-work"));
    run(&out, false, 1).unwrap();
    fs::create_dir(&work).unwrap();
    fs::write(work.join("lock"), "").unwrap();
    fs::rename(&out, work.join("old")).unwrap();
    fs::create_dir(&out).unwrap();
    fs::write(out.join("thesis.txt"), "years of work").unwrap();
    let refused = Staging::begin(&out, true, &nothing()).unwrap_err();
    assert!(refused.to_string().contains("no release of kanon"), "{refused}");
    assert!(is_release(&work.join("old")), "the old release is lost");
    fs::remove_file(out.join("thesis.txt")).unwrap();
    assert!(Staging::begin(&out, false, &nothing()).unwrap_err().to_string().contains("--overwrite"));
    assert_eq!((there(&out), belongs(&out), work.exists()), (Some(1), Some(true), false));
}

/// Somebody else's release appears while this one is made.
#[test]
fn a_release_that_appeared_meanwhile_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (out, other) = (folder.path().join("out"), folder.path().join("other"));
    run(&other, false, 1).unwrap();
    let staging = Staging::begin(&out, false, &nothing()).unwrap();
    fs::rename(&other, &out).unwrap();
    let refused = staging.publish(&private("")).unwrap_err();
    assert!(refused.to_string().contains("a release is there"), "{refused}");
    assert_eq!(there(&out), Some(1));
}

#[test]
fn an_empty_folder_stays_when_the_private_record_cannot_take_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    let staging = Staging::begin(&out, false, &nothing()).unwrap();
    fs::create_dir_all(folder.path().join("out.private.json").join("in the way")).unwrap();
    assert!(staging.publish(&private("")).is_err());
    assert!(is_empty_folder(&out));
}
