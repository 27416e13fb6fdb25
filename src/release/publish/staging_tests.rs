//! A fault at each step of a release, and a kill before each: OUT is absent, old or new, and the next run repairs everything.

use std::collections::BTreeMap;

use super::super::disk::fault::{self, Faults};
use super::*;
use crate::input::{Input, InputFormat};
use crate::release::publish::record::{
    FORMAT, FileRecord, PublicRecord, RecodingRecord, SearchRecord, TableRecord,
};
use crate::verify::as_is::UniqueTogether;

const PART: &str = "part-00000.parquet";

pub(in super::super) fn nothing() -> Source {
    Input::of_objects("x.csv", vec![], InputFormat::Csv).into()
}

fn private(release: &str) -> PrivateRecord {
    PrivateRecord {
        assignment: None,
        dealing_key: None,
        noise_key: None,
        format: 1,
        release: release.to_owned(),
        policy: String::new(),
        hierarchies: BTreeMap::new(),
        merged: BTreeMap::new(),
        merged_labels: BTreeMap::new(),
        input: String::new(),
        files: Vec::new(),
        digest_key: String::new(),
        input_columns: Vec::new(),
        input_rows: 1,
        input_individuals: None,
        input_rows_without_individual: None,
        duplicate_rows: 0,
        suppressed_rows: 0,
        suppressed_individuals: None,
        suppressed_rows_without_individual: None,
        suppression_limit: 0,
        risk_before: BTreeMap::new(),
        compared_with_input: Vec::new(),
        as_is: Vec::new(),
        utility: None,
        recoding_of: None,
        history: None,
        search: SearchRecord {
            method: String::new(),
            objective: String::new(),
            nodes: Some(1),
            evaluated: 1,
            proven: true,
            bound: None,
            best: Vec::new(),
        },
    }
}

/// Runs from start to end and publishes the release of this number.
pub(in super::super) fn run(out: &Path, overwrite: bool, number: u64) -> Result<Vec<String>> {
    run_at(&FolderPlace::beside(out)?, overwrite, number)
}

pub(in super::super) fn run_at(place: &FolderPlace, overwrite: bool, number: u64) -> Result<Vec<String>> {
    let mut staging = Staging::begin(place, overwrite, &nothing())?;
    fs::write(staging.release().join(PART), format!("rows of {number}")).context("writing")?;
    fs::write(staging.spill().join("rows"), "spilled").context("writing")?;
    let files = vec![FileRecord::of(&staging.release(), PART, number)?];
    let public = PublicRecord {
        format: FORMAT,
        tool: String::new(),
        statement: None,
        models: Vec::new(),
        counted_in: String::new(),
        recoding: RecodingRecord::Levels(Vec::new()),
        layout: Default::default(),
        tables: vec![TableRecord {
            folder: None,
            columns: Vec::new(),
            partition_by: Vec::new(),
            rows: number,
            files,
        }],
        individuals: None,
        classes: 1,
        unique: UniqueTogether::default(),
        homogeneous: Vec::new(),
        risk: BTreeMap::new(),
        history: None,
        digest: String::new(),
    }
    .sealed()?;
    let public = staging.complete(public)?;
    staging.publish_folder(&private(&public.digest))
}

/// Returns the number of the release at OUT, which must be whole.
pub(in super::super) fn there(out: &Path) -> Option<u64> {
    if is_absent(out) {
        return None;
    }
    let public = PublicRecord::read(out).unwrap();
    assert_eq!(public.tables[0].files, [FileRecord::of(out, PART, public.rows()).unwrap()]);
    assert_eq!(fs::read_dir(out).unwrap().count(), 2);
    Some(public.rows())
}

/// Returns whether the private record beside OUT belongs to the release there; `None` without one.
pub(in super::super) fn belongs(out: &Path) -> Option<bool> {
    let path = FolderPlace::beside(out).unwrap().private().to_path_buf();
    let text = fs::read_to_string(path).ok()?;
    let private: PrivateRecord = serde_json::from_str(&text).unwrap();
    Some(PublicRecord::read(out).is_ok_and(|public| public.digest == private.release))
}

pub(in super::super) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Runs with faults, then runs again, which succeeds or is refused; returns whether one occurred.
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
        // Undoing the publication failed as well; the error says so.
        (Err(error), Some(2)) => {
            assert!(faults.dead && error.to_string().contains("undoing it failed too"), "{case}: {error}");
        }
        (Err(_), Some(_)) => panic!("{case}"),
    }
    if let (Err(error), false) = (&done, faults.dead) {
        // The following steps undo a single fault.
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
        // The old release was put back, so it is in the way.
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
        while faulty(old, Faults { first, dead, no_exchange, ..Faults::default() }, deep, next_overwrites) {
            first += 1;
        }
        least = least.min(first);
    }
    assert!(least > 15, "a run has only {least} steps that can fail");
}

/// Another process is killed before each step. It is this test program, which runs this test only
/// and finds its task in the environment.
#[cfg(unix)]
#[test]
fn a_process_killed_before_each_step() {
    use std::collections::BTreeSet;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::ExitStatusExt;

    const TASK: &str = "KANON_TEST_KILLED";
    if let Ok(task) = std::env::var(TASK) {
        let [first, no_exchange, out] = task.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{task}") };
        let (first, no_exchange) = (first.parse().unwrap(), no_exchange.parse().unwrap());
        let faults = Faults { first, kills: true, no_exchange, ..Faults::default() };
        assert_eq!(fault::with(faults, || run(Path::new(out), true, 2)).0.unwrap(), Vec::<String>::new());
        return;
    }
    let test = concat!(module_path!(), "::a_process_killed_before_each_step").split_once("::").unwrap().1;
    for (old, no_exchange) in [(false, false), (true, false), (true, true)] {
        let mut seen = BTreeSet::new();
        for first in 1.. {
            let case = format!("old {old}, no_exchange {no_exchange}, killed before step {first}");
            let folder = tempfile::tempdir().unwrap();
            let (out, work) = (folder.path().join("out"), folder.path().join(".out.kanon-work"));
            if old {
                run(&out, false, 1).unwrap();
            }
            let mut process = std::process::Command::new(std::env::current_exe().unwrap());
            process.args(["--exact", test]).env(TASK, format!("{first} {no_exchange} {}", out.display()));
            let ran = process.output().unwrap();
            let is_killed = ran.status.signal() == Some(9);
            assert!(is_killed || ran.status.success(), "{case}: {ran:?}");

            let (found, aside) = (there(&out), is_release(&work.join("old")));
            assert!(found.is_some() || !old || aside, "{case}: the old release is lost");
            for path in [
                work.clone(),
                work.join("private.json"),
                FolderPlace::beside(&out).unwrap().private().to_path_buf(),
            ] {
                let mode = fs::metadata(&path).map_or(0, |facts| facts.permissions().mode());
                assert_eq!(mode & 0o077, 0, "{case}: {}", path.display());
            }
            seen.insert((found, belongs(&out), is_absent(&work)));
            let next = run(&out, true, 3);
            assert!(next.as_ref().is_ok_and(Vec::is_empty), "{case}: {next:?}");
            assert_eq!((there(&out), belongs(&out)), (Some(3), Some(true)), "{case}");
            assert_eq!(names(folder.path()), ["out", "out.private.json"], "{case}");
            if !is_killed {
                assert_eq!(found, Some(2), "{case}");
                break;
            }
        }
        // Before the work, at work, when OUT has its release, and when that has its private record;
        // then it is done.
        let (before, its) = if old { (Some(1), Some(true)) } else { (None, None) };
        let mut expected = BTreeSet::from([
            (before, its, true),
            (before, its, false),
            (Some(2), old.then_some(false), false),
            (Some(2), Some(true), false),
            (Some(2), Some(true), true),
        ]);
        if no_exchange {
            // The old release lies aside.
            expected.insert((None, Some(false), false));
        }
        assert_eq!(seen, expected, "old {old}, no_exchange {no_exchange}");
    }
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
    let refused = Staging::begin(&FolderPlace::beside(&out).unwrap(), true, &nothing()).unwrap_err();
    assert!(refused.to_string().contains("not a kanon release"), "{refused}");
    assert!(is_release(&work.join("old")), "the old release is lost");
    fs::remove_file(out.join("thesis.txt")).unwrap();
    assert!(
        Staging::begin(&FolderPlace::beside(&out).unwrap(), false, &nothing())
            .unwrap_err()
            .to_string()
            .contains("--overwrite")
    );
    assert_eq!((there(&out), belongs(&out), work.exists()), (Some(1), Some(true), false));
}

/// Another program's release that appears during a run is not replaced.
#[test]
fn a_release_that_appeared_meanwhile_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (out, other) = (folder.path().join("out"), folder.path().join("other"));
    run(&other, false, 1).unwrap();
    let mut staging = Staging::begin(&FolderPlace::beside(&out).unwrap(), false, &nothing()).unwrap();
    fs::rename(&other, &out).unwrap();
    let refused = staging.publish_folder(&private("")).unwrap_err();
    assert!(refused.to_string().contains("a release already exists"), "{refused}");
    assert_eq!(there(&out), Some(1));
}

#[test]
fn an_empty_folder_stays_when_the_private_record_cannot_take_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    let mut staging = Staging::begin(&FolderPlace::beside(&out).unwrap(), false, &nothing()).unwrap();
    fs::create_dir_all(folder.path().join("out.private.json").join("in the way")).unwrap();
    assert!(staging.publish_folder(&private("")).is_err());
    assert!(is_empty_folder(&out));
}

/// Returns every path below a folder, with the text of each file and the target of each link.
#[cfg(unix)]
pub(in super::super) fn tree(folder: &Path) -> BTreeMap<PathBuf, Option<String>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let (path, kind) = entry.map(|entry| (entry.path(), entry.file_type().unwrap())).unwrap();
            if kind.is_dir() {
                folders.push(path.clone());
            }
            let text = if kind.is_symlink() {
                Some(fs::read_link(&path).unwrap().display().to_string())
            } else {
                kind.is_file().then(|| fs::read_to_string(&path).unwrap())
            };
            found.insert(path, text);
        }
    }
    found
}

/// Entries that another process might put at OUT.
#[cfg(unix)]
const APPEARING: [fn(&Path); 6] = [
    |out| fs::create_dir(out).unwrap(),
    |out| drop(run(out, false, 9).unwrap()),
    |out| fs::write(out, "years of work").unwrap(),
    |out| {
        fs::create_dir(out).unwrap();
        fs::write(out.join("thesis.txt"), "years of work").unwrap();
    },
    |out| {
        run(out, false, 9).unwrap();
        fs::write(out.join("thesis.txt"), "years of work").unwrap();
    },
    |out| {
        fs::create_dir(out.with_extension("target")).unwrap();
        std::os::unix::fs::symlink(out.with_extension("target"), out).unwrap();
    },
];

/// Publishes while `act` replaces OUT right before the `nth` rename. Returns the error of the run,
/// and whether everything outside the work directory is as `act` left it.
#[cfg(unix)]
fn disturbed(out: &Path, overwrite: bool, faults: Faults, nth: usize, act: fn(&Path)) -> (Error, bool) {
    let mut staged = Staging::begin(&FolderPlace::beside(out).unwrap(), overwrite, &nothing()).unwrap();
    fs::write(staged.release().join(PART), "rows").unwrap();
    let (place, folder) = (out.to_path_buf(), out.parent().unwrap().to_path_buf());
    let seen = std::rc::Rc::new(std::cell::RefCell::new(BTreeMap::new()));
    let acted = std::rc::Rc::clone(&seen);
    fault::meanwhile(nth, move || {
        let aside = place.with_extension("aside");
        act(&aside);
        drop((fs::remove_dir_all(&place), fs::remove_file(&place)));
        fs::rename(&aside, &place).unwrap();
        *acted.borrow_mut() = tree(&folder);
    });
    let (done, _) = fault::with(faults, move || staged.publish_folder(&private("")));
    let is_work = |path: &Path| path.components().any(|part| part.as_os_str() == ".out.kanon-work");
    let mut expected = seen.take();
    assert!(!expected.is_empty(), "the act did not happen");
    let mut found = tree(out.parent().unwrap());
    expected.retain(|path, _| !is_work(path));
    found.retain(|path, _| !is_work(path));
    (done.expect_err("published"), found == expected)
}

#[cfg(unix)]
#[test]
fn whatever_appears_at_out_meanwhile_is_left() {
    for (case, act) in APPEARING.into_iter().enumerate() {
        for no_exchange in [false, true] {
            let faults = Faults { no_exchange, ..Faults::default() };
            for begin in ["nothing", "an empty folder", "a release"] {
                // An empty folder or a release may take the place of the replaced release.
                if case == 0 && begin != "nothing" || case == 1 && begin == "a release" {
                    continue;
                }
                let folder = tempfile::tempdir().unwrap();
                let out = folder.path().join("out");
                match begin {
                    "nothing" => {}
                    "an empty folder" => fs::create_dir(&out).unwrap(),
                    _ => drop(run(&out, false, 1).unwrap()),
                }
                let (refused, same) = disturbed(&out, begin == "a release", faults, 1, act);
                let case = format!("{case} over {begin}, no_exchange {no_exchange}: {refused}");
                assert!(same, "{case}");
                assert_eq!(refused.kind(), crate::error::ErrorKind::Policy, "{case}");
                assert!(refused.to_string().contains("something else appeared there"), "{case}");
                assert!(!names(folder.path()).contains(&".out.kanon-work".to_owned()), "{case}");
            }
        }
    }
}

/// If names cannot be exchanged, another entry may appear while the old release is moved aside.
#[cfg(unix)]
#[test]
fn whatever_appears_while_the_old_release_lies_aside_is_left() {
    for (case, act) in APPEARING.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        run(&out, false, 1).unwrap();
        let faults = Faults { no_exchange: true, ..Faults::default() };
        let (refused, same) = disturbed(&out, true, faults, 2, act);
        assert!(same, "{case}: {refused}");
        let old = folder.path().join(".out.kanon-work").join("old");
        assert!(refused.to_string().contains("something else appeared there"), "{case}: {refused}");
        assert!(refused.to_string().contains(&old.display().to_string()), "{case}: {refused}");
        assert_eq!(there(&old), Some(1), "{case}");
    }
}

#[cfg(unix)]
#[test]
fn an_empty_folder_at_out_is_what_it_was_when_a_step_fails() {
    use std::os::unix::fs::PermissionsExt;
    for (no_exchange, dead) in [(false, false), (true, false), (false, true), (true, true)] {
        for first in 1.. {
            let folder = tempfile::tempdir().unwrap();
            let out = folder.path().join("out");
            fs::create_dir(&out).unwrap();
            fs::set_permissions(&out, Permissions::from_mode(0o750)).unwrap();
            let (done, met) =
                fault::with(Faults { first, dead, no_exchange, ..Faults::default() }, || run(&out, false, 1));
            if done.is_ok() {
                assert_eq!((there(&out), belongs(&out)), (Some(1), Some(true)));
            } else if !dead {
                assert!(is_empty_folder(&out), "{first}");
                assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o750, "{first}");
            }
            // A killed run may have published already.
            let next = run(&out, true, 2);
            assert!(next.as_ref().is_ok_and(Vec::is_empty), "{first}: {next:?}");
            assert_eq!((there(&out), belongs(&out)), (Some(2), Some(true)), "{first}");
            if !met {
                break;
            }
        }
    }
}

/// The run after the test above removes neither of the two releases.
#[cfg(unix)]
#[test]
fn a_release_that_lies_aside_is_kept_while_a_foreign_one_is_at_out() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    run(&out, false, 1).unwrap();
    let faults = Faults { no_exchange: true, ..Faults::default() };
    disturbed(&out, true, faults, 2, APPEARING[1]);
    let before = tree(folder.path());
    let refused = run(&out, true, 3).unwrap_err();
    assert!(refused.to_string().contains("move one of them away"), "{refused}");
    assert_eq!(tree(folder.path()), before);
    fs::rename(&out, folder.path().join("foreign")).unwrap();
    assert!(run(&out, false, 3).unwrap_err().to_string().contains("--overwrite"));
    assert_eq!((there(&out), belongs(&out)), (Some(1), Some(true)));
}

/// A cancelled task goes on for a moment after its run: it still makes and removes files.
#[test]
fn a_task_that_still_writes_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let staging =
            Staging::begin(&FolderPlace::beside(&folder.path().join("out")).unwrap(), false, &nothing())
                .unwrap();
        let spill = staging.spill();
        let (begins, begun) = std::sync::mpsc::channel();
        let task = std::thread::spawn(move || {
            for file in 0..200 {
                let path = spill.join(file.to_string());
                if fs::write(&path, "spilled").is_ok() && file % 2 == round % 2 {
                    // The run may have removed it.
                    let _ = fs::remove_file(&path);
                }
                if file == 5 {
                    begins.send(()).unwrap();
                }
            }
        });
        begun.recv().unwrap();
        drop(staging);
        task.join().unwrap();
        assert_eq!(names(folder.path()), Vec::<String>::new(), "round {round}");
    }
}

#[cfg(unix)]
pub(in super::super) fn pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}
