//! A private record that is kept apart is not lost when a run is killed; what is no file is not opened.

use super::*;
use crate::release::publish::disk::fault::{self, Faults};
use crate::release::publish::out_folder::is_release;
use crate::release::publish::record::RECORD;
use crate::release::publish::staging::faults::{names, pipe, run_at};

/// A private record that is kept apart gets its name there, also by a next run that keeps its own elsewhere.
#[test]
fn a_kill_at_each_step_of_a_run_that_keeps_its_record_apart() {
    for no_exchange in [false, true] {
        let mut steps = 0;
        for first in 1.. {
            let folder = tempfile::tempdir().unwrap();
            let (out, secret) = (folder.path().join("out"), folder.path().join("secret"));
            let place = FolderPlace::apart(&out, &secret).unwrap();
            run_at(&place, false, 1).unwrap();
            let faults = Faults { first, dead: true, no_exchange, ..Faults::default() };
            let (_, met) = fault::with(faults, || run_at(&place, true, 2));
            let refused = run_at(&FolderPlace::beside(&out).unwrap(), false, 3).unwrap_err().to_string();
            assert!(refused.contains("a release already exists"), "killed at {first}: {refused}");
            assert!(belongs(place.private(), &out), "killed at {first}: the record is lost");
            assert_eq!(names(folder.path()), ["out", "secret"], "killed at {first}");
            assert_eq!(names(&secret), ["out.private.json"], "killed at {first}");
            if !met {
                break;
            }
            steps = first;
        }
        assert!(steps > 15, "a run has only {steps} steps that can fail");
    }
}

/// Opening a pipe would block forever.
#[cfg(unix)]
#[test]
fn records_that_are_no_files_are_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let place = FolderPlace::beside(&out).unwrap();
    run_at(&place, false, 1).unwrap();
    let public = PublicRecord::read(&out).unwrap();
    let private = place.private();
    assert!(place.private_record(&public).unwrap().is_some());
    let makes: [(fn(&Path), &str); 2] =
        [(pipe, "a pipe, a socket or a device"), (|path| fs::create_dir(path).unwrap(), "a folder")];
    for (make, found) in makes {
        drop((fs::remove_file(private), fs::remove_file(out.join(RECORD))));
        make(private);
        let refused = place.private_record(&public).unwrap_err().to_string();
        assert!(refused.ends_with(&format!("expected a plain file, found {found}")), "{refused}");
        make(&out.join(RECORD));
        let refused = PublicRecord::read(&out).unwrap_err().to_string();
        assert!(refused.ends_with("is not a plain file"), "{refused}");
        assert!(!is_release(&out));
    }
}
