//! Work directories that kanon did not make, or that hold foreign entries: refused, and left as
//! they are.

use super::*;
use crate::release::publish::disk::fault;
use crate::release::publish::folder_place::FolderPlace;
use crate::release::publish::staging::Staging;
use crate::release::publish::staging::faults::{belongs, names, nothing, run, there};
#[cfg(unix)]
use crate::release::publish::staging::faults::{pipe, tree};

const PART: &str = "part-00000.parquet";

/// Fills a folder with foreign files under names that kanon also uses.
#[cfg(unix)]
fn precious(folder: &Path) {
    fs::create_dir_all(folder.join("release")).unwrap();
    fs::write(folder.join("release").join(PART), "years of work").unwrap();
    fs::write(folder.join("lock"), "combination: 1234").unwrap();
}

/// Asserts that a run to OUT is refused with a policy error that contains `parts`, and changes
/// nothing.
#[cfg(unix)]
#[track_caller]
fn refused_untouched(folder: &Path, parts: &[&str]) {
    let before = tree(folder);
    let refused = run(&folder.join("out"), true, 2).unwrap_err();
    assert_eq!(refused.kind(), crate::error::ErrorKind::Policy, "{refused}");
    for part in [".out.kanon-work", "move it away"].iter().chain(parts) {
        assert!(refused.to_string().contains(part), "{part}: {refused}");
    }
    assert_eq!(tree(folder), before, "{refused}");
}

#[cfg(unix)]
#[test]
fn a_work_directory_that_is_no_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (target, work) = (folder.path().join("target"), folder.path().join(".out.kanon-work"));
    precious(&target);
    for to in [target, folder.path().join("nowhere")] {
        std::os::unix::fs::symlink(to, &work).unwrap();
        refused_untouched(folder.path(), &["found a symbolic link"]);
        fs::remove_file(&work).unwrap();
    }
    fs::write(&work, "years of work").unwrap();
    refused_untouched(folder.path(), &["found a file"]);
}

#[cfg(unix)]
#[test]
fn a_work_directory_of_another_user_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join(".out.kanon-work");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("lock"), "").unwrap();
    // Only root may give a folder away.
    if std::os::unix::fs::chown(&work, Some(12_345), None).is_ok() {
        refused_untouched(folder.path(), &["another user"]);
    }
}

#[cfg(unix)]
#[test]
fn a_work_directory_with_foreign_files_is_refused() {
    type Make = fn(&Path);
    let cases: [(Make, &str); 10] = [
        (|work| fs::write(work.join("thesis.txt"), "years of work").unwrap(), "`thesis.txt`"),
        (|work| fs::create_dir(work.join("thesis")).unwrap(), "`thesis`"),
        (|work| fs::write(work.join("line\nbreak"), "").unwrap(), "`line\\nbreak`"),
        (|work| fs::create_dir_all(work.join("lock/thesis")).unwrap(), "`lock`"),
        (|work| std::os::unix::fs::symlink("../target/lock", work.join("lock")).unwrap(), "`lock`"),
        (|work| std::os::unix::fs::symlink("../target/release", work.join("old")).unwrap(), "`old`"),
        (|work| fs::write(work.join("spill"), "years of work").unwrap(), "`spill`"),
        (|work| pipe(&work.join("private.json")), "`private.json`"),
        (|work| fs::create_dir_all(work.join("release/thesis")).unwrap(), "`release/thesis`"),
        (|work| fs::create_dir_all(work.join("old").join(PART)).unwrap(), "`old/part-00000.parquet`"),
    ];
    for (make, name) in cases {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join(".out.kanon-work");
        precious(&folder.path().join("target"));
        fs::create_dir(&work).unwrap();
        make(&work);
        refused_untouched(folder.path(), &[name, "kanon did not make"]);
    }
}

#[test]
fn the_lock_of_another_run_is_not_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let (out, work) = (folder.path().join("out"), folder.path().join(".out.kanon-work"));
    fs::create_dir(&work).unwrap();
    fs::write(work.join("lock"), "text").unwrap();
    let lock = File::open(work.join("lock")).unwrap();
    lock.try_lock().unwrap();
    assert!(run(&out, false, 1).unwrap_err().to_string().contains("another run is writing to"));
    assert_eq!(fs::read_to_string(work.join("lock")).unwrap(), "text");
    drop(lock);
    run(&out, false, 1).unwrap();
    assert_eq!(names(folder.path()), ["out", "out.private.json"]);
}

#[test]
fn a_lock_that_is_soon_free_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let (out, work) = (folder.path().join("out"), folder.path().join(".out.kanon-work"));
    fs::create_dir(&work).unwrap();
    fs::write(work.join("lock"), "").unwrap();
    let lock = File::open(work.join("lock")).unwrap();
    lock.try_lock().unwrap();
    std::thread::scope(|scope| {
        let next = scope.spawn(|| run(&out, false, 1));
        std::thread::sleep(Duration::from_millis(50));
        drop(lock);
        next.join().unwrap().unwrap();
    });
}

#[test]
fn a_foreign_file_in_the_work_directory_outlives_the_run() {
    for foreign in ["thesis.txt", "release/thesis.txt"] {
        let folder = tempfile::tempdir().unwrap();
        let (out, other) = (folder.path().join("out"), folder.path().join("other"));
        let thesis = folder.path().join(".out.kanon-work").join(foreign);
        let staging = Staging::begin(&FolderPlace::beside(&out).unwrap(), false, &nothing()).unwrap();
        fs::write(&thesis, "years of work").unwrap();
        drop(staging);
        assert_eq!(fs::read_to_string(&thesis).unwrap(), "years of work");
        assert_eq!(names(thesis.parent().unwrap()), ["thesis.txt"]);
        let refused = run(&out, false, 1).unwrap_err().to_string();
        assert!(refused.contains(&format!("`{foreign}`, which kanon did not make")), "{refused}");
        fs::rename(&thesis, &other).unwrap();
        run(&out, false, 1).unwrap();

        // After the release is published, the failure is a warning.
        let (work, from) = (folder.path().join(".out.kanon-work"), other.clone());
        fault::meanwhile(2, move || {
            fs::rename(from, work.join(foreign)).unwrap();
        });
        let warnings = run(&out, true, 2).unwrap();
        assert_eq!((there(&out), belongs(&out), warnings.len()), (Some(2), Some(true), 1), "{warnings:?}");
        assert!(warnings[0].contains(&format!("`{foreign}`, which kanon did not make")), "{warnings:?}");
        assert_eq!(fs::read_to_string(&thesis).unwrap(), "years of work");
    }
}
