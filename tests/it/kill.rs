//! Releases that end in the middle: killed, interrupted, out of disk, two at once. What lies at OUT is then
//! nothing, the old release, or the new one, whole and verified.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use datafusion_kanon::release::publish::record::{FileRecord, RECORD};

use crate::releases::{Lab, OUT, PART, POLICY, Ran, Random, people, record, seal};

const KILLS: usize = 50;
/// What a run makes beside OUT while it runs.
const WORK: &str = ".out.kanon-work";

/// Two policies, so that what lies at OUT says which run it is of.
fn lab(times: usize) -> Lab {
    let lab = Lab::new(&people(times));
    fs::write(lab.path("old.toml"), POLICY.replace("k = 5", "k = 3")).unwrap();
    fs::write(lab.path("new.toml"), POLICY).unwrap();
    lab
}

const RELEASE: [&str; 7] = ["release", "people.parquet", "--policy", "new.toml", "--to", OUT, "--overwrite"];

/// Spins until `happened`, so that the moment is met to the microsecond. False when the run ended before.
fn wait_for(run: &mut Child, happened: impl Fn() -> bool) -> bool {
    while !happened() {
        if run.try_wait().unwrap().is_some() {
            return false;
        }
    }
    true
}

/// What lies at OUT: nothing, or a whole release that verifies, and its k.
#[track_caller]
fn state(lab: &Lab, against_input: bool) -> Option<f64> {
    if !lab.out().exists() {
        return None;
    }
    lab.run(&["verify", OUT]).exit(0, "by themselves");
    let k = record(lab).models[0].required;
    if against_input {
        let policy = if k == 5.0 { "new.toml" } else { "old.toml" };
        lab.run(&["verify", OUT, "--input", "people.parquet", "--policy", policy])
            .exit(0, "against the input");
    }
    Some(k)
}

/// A run succeeds and leaves OUT, its private record and nothing else.
#[track_caller]
fn succeeds(lab: &Lab) {
    lab.run(&RELEASE).exit(0, "k_anonymity 5 required");
    let mut names = lab.names();
    names.retain(|name| {
        !["marital.csv", "new.toml", "old.toml", "people.parquet", "policy.toml"].contains(&name.as_str())
    });
    assert_eq!(names, [OUT, "out.private.json"]);
    let mut parts: Vec<_> =
        fs::read_dir(lab.out()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    parts.sort();
    assert_eq!(parts, [RECORD, PART]);
    // The private record belongs to it, so that no policy is needed.
    lab.run(&["verify", OUT, "--input", "people.parquet"]).exit(0, "against the input");
}

#[test]
fn killed_at_any_moment() {
    let (lab, mut random) = (lab(40), Random(50));
    let begun = Instant::now();
    succeeds(&lab);
    let whole = begun.elapsed();
    lab.release("old.toml", OUT).exit(0, "");
    let old = lab.files();

    let (mut ended, mut left_work, mut states) = (0, 0, [0; 3]);
    for kill in 0..KILLS {
        // In one half of the runs an old release is there, in the other nothing; what an earlier run left stays.
        let over = kill % 2 == 0;
        if over {
            let work: Vec<_> = lab.files().into_iter().filter(|(name, _)| name.starts_with(WORK)).collect();
            lab.restore(&old.iter().map(|(name, bytes)| (name.clone(), bytes.clone())).chain(work).collect());
        } else {
            drop((fs::remove_dir_all(lab.out()), fs::remove_file(lab.path("out.private.json"))));
        }
        let aside = lab.path(WORK).join("old");
        let may_be_old = over || aside.exists();
        let mut run = lab.command(&RELEASE).spawn().unwrap();
        // Moments by the clock over the whole run, and moments right behind a step: the end of a run is short.
        let work = lab.path(WORK);
        let behind = |step: &str| work.join(step).exists();
        let step = match kill % 10 {
            0..4 => {
                sleep(whole.mul_f64((kill as f64 + random.below(100) as f64 / 100.0) / KILLS as f64));
                true
            }
            4 => wait_for(&mut run, || behind("spill")),
            5 => wait_for(&mut run, || behind(&format!("release/{PART}"))),
            6 => wait_for(&mut run, || behind("release/_kanon.json")),
            7 => wait_for(&mut run, || behind("private.json")),
            // The names are exchanged, and then the private record has its own.
            8 if over => wait_for(&mut run, || {
                fs::read_to_string(work.join("release").join(RECORD))
                    .is_ok_and(|text| text.contains("\"k\": \"3\""))
            }),
            _ if over => {
                wait_for(&mut run, || behind("private.json"))
                    && wait_for(&mut run, || !behind("private.json"))
            }
            _ => wait_for(&mut run, || behind("private.json") && !behind("release")),
        };
        if step && kill % 10 >= 4 {
            let wait = Duration::from_micros(random.below(if kill % 10 < 7 { 5_000 } else { 300 }) as u64);
            let begun = Instant::now();
            while begun.elapsed() < wait {}
        }
        run.kill().unwrap();
        let code = run.wait().unwrap().code();
        assert!(matches!(code, None | Some(0)), "kill {kill}: {code:?}");
        ended += usize::from(code.is_some());
        left_work += usize::from(work.exists());

        let found = state(&lab, kill % 5 == 0);
        match found {
            None => states[0] += 1,
            // In a fresh OUT only what an earlier run had moved aside.
            Some(3.0) if may_be_old => states[1] += 1,
            Some(k) => {
                assert_eq!(k, 5.0, "kill {kill}");
                states[2] += 1;
            }
        }
        assert!(
            found.is_some() || !over || work.join("old").exists(),
            "kill {kill}: the old release is lost"
        );
        if code.is_some() {
            assert!(found == Some(5.0) && !work.exists(), "kill {kill}");
        }
        if kill % 5 == 4 {
            succeeds(&lab);
        }
    }
    succeeds(&lab);
    assert!(
        left_work >= KILLS / 4,
        "only {left_work} kills met a run at work ({ended} ended before, {states:?})"
    );
}

#[test]
fn an_old_release_that_was_moved_aside_comes_back() {
    let lab = lab(1);
    lab.release("old.toml", OUT).exit(0, "");
    fs::create_dir(lab.path(WORK)).unwrap();
    fs::rename(lab.out(), lab.path(WORK).join("old")).unwrap();
    // A run that fails for a reason of its own has already put it back.
    let run = lab.run(&["release", "people.parquet", "--policy", "new.toml", "--to", OUT]);
    run.exit(2, "--overwrite");
    assert_eq!(state(&lab, true), Some(3.0));
    assert!(!lab.path(WORK).exists());
}

#[test]
fn what_a_killed_run_left_is_said() {
    let lab = lab(1);
    lab.release("old.toml", OUT).exit(0, "");
    fs::create_dir(lab.path(WORK)).unwrap();
    lab.run(&["verify", OUT]).exit(0, "by themselves");
    // Killed before the private record got its name.
    fs::rename(lab.path("out.private.json"), lab.path(WORK).join("private.json")).unwrap();
    let input = ["verify", OUT, "--input", "people.parquet"];
    lab.run(&input)
        .exit(2, "--policy; ")
        .exit(2, ".out.kanon-work is of a run that is still at work, or was killed");
    // Killed where names cannot be exchanged.
    fs::rename(lab.out(), lab.path(WORK).join("old")).unwrap();
    let gone = lab.run(&["verify", OUT]).exit(3, "out: there is no such folder; ");
    gone.exit(
        3,
        "(the release that was there lies in its folder `old`); the next `kanon release` to the same place",
    );
    lab.run(&RELEASE[..6]).exit(2, "--overwrite");
    lab.run(&input).exit(0, "against the input");
    fs::remove_dir_all(lab.out()).unwrap();
    lab.run(&["verify", OUT]).exit(3, "there is no such file or folder; is this a release of kanon?");
}

/// Folders above OUT are made, and stay only with a release in them.
#[test]
fn folders_above_out() {
    let lab = lab(1);
    let before = lab.files();
    let to = |policy: &str, to: &str| lab.run(&["release", "people.parquet", "--policy", policy, "--to", to]);
    fs::write(lab.path("strong.toml"), POLICY.replace("k = 5", "k = 5000")).unwrap();
    to("strong.toml", "a/b/out").exit(1, "");
    fs::remove_file(lab.path("strong.toml")).unwrap();
    assert!(lab.files() == before, "a refused run leaves folders");
    to("new.toml", "people.parquet/out").exit(2, "people.parquet cannot be used: it is a file");
    to("new.toml", "a/../out").exit(2, "the folder a/.. cannot be used: there is no such file or folder");
    assert!(lab.files() == before, "a refused run leaves folders");
    to("new.toml", "a/b/out").exit(0, "a/b/out/part-00000.parquet");
    lab.run(&["verify", "a/b/out", "--input", "people.parquet"]).exit(0, "against the input");
}

/// A release takes the place of a name: a link there would be lost.
#[test]
fn links_in_the_place_of_out() {
    let lab = lab(1);
    let link = ["release", "people.parquet", "--policy", "new.toml", "--to", "link", "--overwrite"];
    for to in ["nowhere", "empty", OUT] {
        fs::create_dir_all(lab.path("empty")).unwrap();
        lab.release("old.toml", OUT).exit(0, "");
        std::os::unix::fs::symlink(to, lab.path("link")).unwrap();
        let ran = lab
            .run(&link)
            .exit(2, "is a symbolic link, which a release would replace; name the folder itself");
        assert_eq!(fs::read_link(lab.path("link")).unwrap().to_str(), Some(to), "{ran:?}");
        fs::remove_file(lab.path("link")).unwrap();
    }
}

#[test]
fn interrupted() {
    let lab = lab(200);
    lab.release("old.toml", OUT).exit(0, "");
    let old = lab.files();
    let mut random = Random(130);
    let mut interrupted = 0;
    for signal in ["INT", "TERM", "INT", "INT", "INT", "TERM"] {
        let mut run = lab.command(&RELEASE).spawn().unwrap();
        let work = lab.path(WORK);
        assert!(wait_for(&mut run, || work.join("spill").exists()));
        sleep(Duration::from_millis(10 + random.below(100) as u64));
        let sent = std::process::Command::new("kill").args(["-s", signal, &run.id().to_string()]).status();
        assert!(sent.unwrap().success());
        let begun = Instant::now();
        let ran = Ran::new(run.wait_with_output().unwrap());
        assert!(begun.elapsed() < Duration::from_secs(20));
        assert!(!work.exists(), "{ran:?}");
        if ran.code == Some(0) {
            // It was done already.
            lab.restore(&old);
            continue;
        }
        interrupted += 1;
        ran.exit(130, "interrupted; nothing was published");
        assert!(lab.files() == old, "something was left or changed");
    }
    assert!(interrupted > 0, "no run was met at work");
    succeeds(&lab);
}

#[test]
fn two_runs_at_once() {
    let lab = lab(20);
    let free = ["release", "people.parquet", "--policy", "new.toml", "--to", OUT];
    for round in 0..6 {
        let arguments = if round % 2 == 0 { &free[..] } else { &RELEASE[..] };
        let runs = [0, 1].map(|_| lab.command(arguments).spawn().unwrap());
        let ran = runs.map(|run| Ran::new(run.wait_with_output().unwrap()));
        assert!(ran.iter().any(|run| run.code == Some(0)), "{ran:?}");
        for run in ran {
            match run.code {
                Some(0) => {}
                Some(2) if round % 2 == 0 => drop(run.exit(2, "a release is there")),
                _ => drop(run.exit(3, "another run is writing to")),
            }
        }
        assert_eq!(state(&lab, true), Some(5.0));
        assert!(!lab.path(WORK).exists());
        if round % 2 == 1 {
            fs::remove_dir_all(lab.out()).unwrap();
        }
    }
    succeeds(&lab);
}

#[test]
fn a_full_disk() {
    let lab = lab(1);
    let begin = lab.files();
    let limited = |blocks: usize| {
        let line = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        let kanon = lab.command(&RELEASE);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &line, "sh"]).arg(kanon.get_program()).args(kanon.get_args());
        Ran::new(shell.current_dir(lab.path("")).output().unwrap())
    };
    // No old release, then one that must stay; files of at most so many blocks, until all fit.
    for old in [false, true] {
        lab.restore(&begin);
        if old {
            lab.release("old.toml", OUT).exit(0, "");
        }
        let before = lab.files();
        let mut refused = 0;
        for blocks in 0..64 {
            let ran = limited(blocks);
            if ran.code == Some(0) {
                break;
            }
            refused += 1;
            let ran = ran.exit(3, "the file would become larger than the system allows");
            assert!(lab.files() == before, "{blocks} blocks: {ran:?}");
        }
        assert!((4..64).contains(&refused), "{refused}");
        assert_eq!(state(&lab, true), Some(5.0));
        succeeds(&lab);
    }
}

/// The private record cannot take its place: said before the run.
#[test]
fn the_private_record_cannot_be_written() {
    let lab = lab(1);
    for old in [false, true] {
        if old {
            lab.release("old.toml", OUT).exit(0, "");
            fs::remove_file(lab.path("out.private.json")).unwrap();
        }
        fs::create_dir_all(lab.path("out.private.json").join("in the way")).unwrap();
        let before = lab.files();
        let ran = lab.run(&RELEASE).exit(2, "out.private.json, which is a folder; move it away");
        assert!(lab.files() == before, "{ran:?}");
        fs::remove_dir_all(lab.path("out.private.json")).unwrap();
    }
    succeeds(&lab);
}

/// `--report` holds raw facts: it is written where one asks for it, and never into the release.
#[test]
fn reports_that_cannot_or_must_not_be_written() {
    let lab = lab(1);
    let report = |path: &str| lab.run(&[&RELEASE[..], &["--report", path]].concat());
    for old in [false, true] {
        if old {
            lab.release("old.toml", OUT).exit(0, "");
        }
        let before = lab.files();
        for path in
            ["no such folder/report.json", "out/report.json", "out/_kanon.json", "./out/../out/x.json"]
        {
            let ran = report(path);
            assert!(matches!(ran.code, Some(2 | 3)), "{path}: {ran:?}");
            assert!(lab.files() == before, "{path}: a run that fails publishes nothing");
        }
    }
    // A file that others may read does not stay so.
    fs::write(lab.path("report.json"), "").unwrap();
    fs::set_permissions(lab.path("report.json"), fs::Permissions::from_mode(0o644)).unwrap();
    report("report.json").exit(0, "");
    for name in ["report.json", "out.private.json"] {
        let mode = fs::metadata(lab.path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name} can be read by others: {mode:o}");
    }
}

/// A verification that cannot run never passes.
#[test]
fn verifications_that_cannot_run() {
    let lab = Lab::released();
    let honest = lab.files();
    let part = lab.out().join(PART);
    let fails = |what: &str, arguments: &[&str], codes: &[i32]| {
        let ran = lab.run(arguments);
        assert!(codes.iter().any(|code| ran.code == Some(*code)), "{what}: {ran:?}");
        lab.restore(&honest);
    };
    let (alone, input) = (["verify", OUT], ["verify", OUT, "--input", "people.parquet"]);
    let both: [&[&str]; 2] = [&alone, &input];

    fails("no release", &["verify", "nowhere"], &[3]);
    fails("a file instead of a release", &["verify", "people.parquet"], &[3]);
    fails("no input", &["verify", OUT, "--input", "nobody.parquet"], &[3]);
    fails("no policy", &[&input[..], &["--policy", "no.toml"]].concat(), &[2]);
    let bytes = fs::read(&part).unwrap();
    for arguments in both {
        // The digest is right, the file is not.
        for cut in [0, 1, 8, 100, bytes.len() / 2, bytes.len() - 1] {
            fs::write(&part, &bytes[..cut]).unwrap();
            resealed_blindly(&lab);
            fails("a cut part", arguments, &[1, 3]);
        }
        for at in [4, 40, 400] {
            let mut damaged = bytes.clone();
            damaged[at..at + 16].iter_mut().for_each(|byte| *byte = !*byte);
            fs::write(&part, damaged).unwrap();
            resealed_blindly(&lab);
            fails("a damaged page", arguments, &[1, 3]);
        }
        fs::remove_file(&part).unwrap();
        std::os::unix::fs::symlink("nowhere", &part).unwrap();
        fails("a link to nowhere", arguments, &[1]);
        fs::remove_file(lab.out().join(RECORD)).unwrap();
        fails("no record", arguments, &[3]);
        fs::remove_file(lab.out().join(RECORD)).unwrap();
        fs::create_dir(lab.out().join(RECORD)).unwrap();
        fails("a folder as record", arguments, &[1]);
    }
    let people = fs::read(lab.path("people.parquet")).unwrap();
    fs::write(lab.path("people.parquet"), &people[..people.len() / 2]).unwrap();
    fails("a cut input", &input, &[3]);
    fs::write(lab.path("people.parquet"), "").unwrap();
    fails("an empty input", &input, &[3]);
    fs::remove_file(lab.path("people.parquet")).unwrap();
    fs::create_dir(lab.path("people.parquet")).unwrap();
    fails("a folder as input", &input, &[3]);
    lab.run(&input).exit(0, "against the input");
}

/// Makes the record and its digest right for the part as it lies there, without reading rows.
fn resealed_blindly(lab: &Lab) {
    let mut forged = record(lab);
    forged.files[0] = FileRecord::of(&lab.out(), PART, forged.files[0].rows).unwrap();
    seal(lab, forged);
}
