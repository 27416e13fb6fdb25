//! Releases that end in the middle: killed, interrupted, out of disk, two at once. What lies at OUT is then
//! nothing, the old release, or the new one, whole and verified.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use datafusion_kanon::internals::release::publish::record::{FileRecord, RECORD};

use crate::releases::{Lab, OUT, PART, POLICY, Ran, Random, people, record, seal};

const KILLS: usize = 60;
/// What a run makes beside OUT while it runs.
const WORK: &str = ".out.kanon-work";
/// The signals of `kill -9`, and of the system to whoever writes a file that becomes too large.
const SIGKILL: i32 = 9;
const SIGXFSZ: i32 = 25;

/// A policy whose release has a part smaller than the public record, with half a kibibyte between them.
const FEW: &str = r#"
k = 5
suppression_limit = 0.05
rows_are_individuals = true
others = "drop"

[[require]]
model = "l_diversity"
l = 2
sensitive = "ward"

[columns]
sex  = { role = "quasi", max_level = 0 }
ward = { role = "sensitive" }
"#;

/// Two policies, so that what lies at OUT says which run it is of.
fn lab(times: usize) -> Lab {
    lab_of(times, POLICY)
}

fn lab_of(times: usize, policy: &str) -> Lab {
    let lab = Lab::new(&people(times));
    fs::write(lab.path("old.toml"), policy.replace("k = 5", "k = 3")).unwrap();
    fs::write(lab.path("new.toml"), policy).unwrap();
    lab
}

const RELEASE: [&str; 7] = ["release", "people.parquet", "--policy", "new.toml", "--to", OUT, "--overwrite"];

/// Spins until `happened`, so that the moment is met to the microsecond. False when the run ended before.
fn wait_for(run: &mut Child, mut happened: impl FnMut() -> bool) -> bool {
    while !happened() {
        if run.try_wait().unwrap().is_some() {
            return false;
        }
    }
    true
}

/// Lets the run go on for so many polls of its state.
fn poll(run: &mut Child, times: usize) {
    for _ in 0..times {
        if run.try_wait().unwrap().is_some() {
            return;
        }
    }
}

/// Kills a run that waits, so that the kill is what ends it.
#[track_caller]
fn kill(mut run: Child) {
    run.kill().unwrap();
    let ran = run.wait_with_output().unwrap();
    assert_eq!(ran.status.signal(), Some(SIGKILL), "{ran:?}");
}

/// Makes a pipe.
fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The end of a pipe for writing, where a run has opened the other: it then waits for what is written.
fn read_by_another(pipe: &Path) -> Option<File> {
    let at_once = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().write(true).custom_flags(at_once).open(pipe).ok()
}

/// Runs [`RELEASE`] with files of at most so many blocks, after these shell commands.
fn limited(lab: &Lab, commands: &str, blocks: usize) -> Output {
    let line = format!("{commands}; ulimit -f {blocks}; exec \"$@\"");
    let kanon = lab.command(&RELEASE);
    let mut shell = Command::new("sh");
    shell.args(["-c", &line, "sh"]).arg(kanon.get_program()).args(kanon.get_args());
    shell.current_dir(lab.path("")).output().unwrap()
}

/// Whether the release of `new.toml` lies in a folder.
fn is_new(folder: &Path) -> bool {
    fs::read_to_string(folder.join(RECORD)).is_ok_and(|text| text.contains("\"k\": \"5\""))
}

/// What only its owner may read.
fn private_paths(lab: &Lab) -> [PathBuf; 3] {
    [lab.path(WORK), lab.path(WORK).join("private.json"), lab.path("out.private.json")]
}

/// The work folder and the private records, where they are, can be read by their owner only.
#[track_caller]
fn is_private(lab: &Lab) {
    for path in private_paths(lab) {
        if let Ok(facts) = fs::symlink_metadata(&path) {
            let mode = facts.permissions().mode();
            assert_eq!(mode & 0o077, 0, "{} can be read by others: {mode:o}", path.display());
        }
    }
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

/// [`Lab::restore`], with the permissions that a run gives.
fn restore(lab: &Lab, files: &BTreeMap<PathBuf, Vec<u8>>) {
    lab.restore(files);
    for path in private_paths(lab) {
        if path.exists() {
            let mode = if path.is_dir() { 0o700 } else { 0o600 };
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
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
    is_private(lab);
    // The private record belongs to it, so that no policy is needed.
    lab.run(&["verify", OUT, "--input", "people.parquet"]).exit(0, "against the input");
}

/// The run waits at a pipe and is killed there: at its policy, before it has made anything, and at
/// its report, when the release is published and all is cleaned up.
#[test]
fn killed_before_the_work_and_after_it() {
    for over in [true, false] {
        let lab = lab(1);
        if over {
            lab.release("old.toml", OUT).exit(0, "");
        }
        let before = lab.files();
        let policy = lab.path("pipe.toml");
        pipe(&policy);
        let mut from_pipe = RELEASE;
        from_pipe[3] = "pipe.toml";
        let mut run = lab.command(&from_pipe).spawn().unwrap();
        let mut held = None;
        let waits = wait_for(&mut run, || {
            held = read_by_another(&policy);
            held.is_some()
        });
        assert!(waits, "the run ended without its policy");
        kill(run);
        drop(held);
        fs::remove_file(policy).unwrap();
        assert!(lab.files() == before, "a run leaves something before it has its policy");
        assert_eq!(state(&lab, true), over.then_some(3.0));

        let report = lab.path("report.json");
        pipe(&report);
        let mut run = lab.command(&[&RELEASE[..], &["--report", "report.json"]].concat()).spawn().unwrap();
        // The work folder is the last to go.
        let waits = wait_for(&mut run, || is_new(&lab.out()) && !lab.path(WORK).exists());
        assert!(waits, "the run ended without its report");
        kill(run);
        fs::remove_file(report).unwrap();
        assert_eq!(state(&lab, true), Some(5.0));
        assert!(!lab.path(WORK).exists());
        is_private(&lab);
        lab.run(&["verify", OUT, "--input", "people.parquet"]).exit(0, "against the input");
        succeeds(&lab);
    }
}

/// The three files of a run in the order in which it writes them: in the work folder, and where
/// they are published.
const WRITTEN: [(&str, &str); 3] = [
    ("release/part-00000.parquet", "out/part-00000.parquet"),
    ("release/_kanon.json", "out/_kanon.json"),
    ("private.json", "out.private.json"),
];

/// The file that a killed run was writing: the files before it are whole, those after it do not exist.
#[track_caller]
fn cut(lab: &Lab, whole: &[Vec<u8>; 3]) -> &'static str {
    let found = WRITTEN.map(|(staged, _)| fs::read(lab.path(WORK).join(staged)).ok());
    let last = found.iter().rposition(Option::is_some).unwrap();
    for (at, (found, whole)) in found.iter().zip(whole).enumerate().take(last) {
        assert!(found.as_ref() == Some(whole), "{} is not whole", WRITTEN[at].0);
    }
    let (name, half) = (WRITTEN[last].0, found[last].as_ref().unwrap());
    assert!(half.len() < whole[last].len(), "{name} is whole");
    // The private record has another key for its digests in every run.
    assert!(name == "private.json" || whole[last].starts_with(half), "{name}");
    name
}

/// The system kills the run at the first byte beyond a file size limit. As the limit grows, that is
/// in the part, while the rows are written; in the record, while they are verified; in the private
/// record, right before the release is published; and then nowhere.
#[test]
fn killed_in_each_file() {
    for over in [true, false] {
        // A long private record.
        let lab = lab_of(1, &format!("{FEW}# {}\n", "long ".repeat(300)));
        lab.run(&RELEASE).exit(0, "");
        let whole = WRITTEN.map(|(_, published)| fs::read(lab.path(published)).unwrap());
        fs::remove_dir_all(lab.out()).unwrap();
        fs::remove_file(lab.path("out.private.json")).unwrap();
        if over {
            lab.release("old.toml", OUT).exit(0, "");
        }
        let before = lab.files();
        let mut met = BTreeSet::new();
        for blocks in 0.. {
            let ran = limited(&lab, "ulimit -c 0", blocks);
            if ran.status.code() == Some(0) {
                break;
            }
            assert_eq!(ran.status.signal(), Some(SIGXFSZ), "{blocks} blocks: {ran:?}");
            met.insert(cut(&lab, &whole));
            is_private(&lab);
            let mut beside = lab.files();
            beside.retain(|name, _| !name.starts_with(WORK));
            assert!(beside == before, "{blocks} blocks: something was changed beside the work folder");
            assert_eq!(state(&lab, true), over.then_some(3.0));
            // What every second run left stays for the next run, which is killed as well.
            if blocks % 2 == 0 {
                succeeds(&lab);
                restore(&lab, &before);
            }
        }
        assert_eq!(met, WRITTEN.map(|(staged, _)| staged).into(), "the files at which a run was killed");
        assert!(!lab.path(WORK).exists());
        is_private(&lab);
        assert_eq!(state(&lab, true), Some(5.0));
        succeeds(&lab);
    }
}

/// Kills at arbitrary moments: after a step and a random number of polls, when the run is wherever
/// it happens to be, or has ended. The two tests above meet a run at work for certain, and a unit
/// test of the staging kills before each of its steps.
#[test]
fn killed_at_any_moment() {
    let (lab, mut random) = (lab(40), Random(50));
    succeeds(&lab);
    lab.release("old.toml", OUT).exit(0, "");
    let old = lab.files();

    for kill in 0..KILLS {
        // In one half of the runs an old release is there, in the other nothing; what an earlier
        // run left stays.
        let over = kill % 2 == 0;
        if over {
            let work: Vec<_> = lab.files().into_iter().filter(|(name, _)| name.starts_with(WORK)).collect();
            restore(
                &lab,
                &old.iter().map(|(name, bytes)| (name.clone(), bytes.clone())).chain(work).collect(),
            );
        } else {
            drop((fs::remove_dir_all(lab.out()), fs::remove_file(lab.path("out.private.json"))));
        }
        let aside = lab.path(WORK).join("old");
        let may_be_old = over || aside.exists();
        let mut run = lab.command(&RELEASE).spawn().unwrap();
        // Moments anywhere, of every order of magnitude, and moments right after a step: the end of
        // a run is short.
        let work = lab.path(WORK);
        let has_reached = |step: &str| work.join(step).exists();
        let step = match kill % 10 {
            0..4 => true,
            4 => wait_for(&mut run, || has_reached("spill")),
            5 => wait_for(&mut run, || has_reached(&format!("release/{PART}"))),
            6 => wait_for(&mut run, || has_reached("release/_kanon.json")),
            7 => wait_for(&mut run, || has_reached("private.json")),
            // The names are exchanged, and then the private record has its own.
            8 if over => wait_for(&mut run, || {
                fs::read_to_string(work.join("release").join(RECORD))
                    .is_ok_and(|text| text.contains("\"k\": \"3\""))
            }),
            _ if over => {
                wait_for(&mut run, || has_reached("private.json"))
                    && wait_for(&mut run, || !has_reached("private.json"))
            }
            _ => wait_for(&mut run, || has_reached("private.json") && !has_reached("release")),
        };
        if step {
            let most = match kill % 10 {
                0..4 => 1 << random.below(23),
                4..7 => 1 << 13,
                _ => 1 << 9,
            };
            poll(&mut run, random.below(most));
        }
        run.kill().unwrap();
        let code = run.wait().unwrap().code();
        assert!(matches!(code, None | Some(0)), "kill {kill}: {code:?}");
        is_private(&lab);

        let found = state(&lab, kill % 5 == 0);
        match found {
            None => {}
            // In a fresh OUT only what an earlier run had moved aside.
            Some(3.0) if may_be_old => {}
            Some(k) => assert_eq!(k, 5.0, "kill {kill}"),
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
}

/// Kills while the rows of partition folders are written, and after that. An old release has other folders.
#[test]
fn killed_among_partition_folders() {
    let lab = lab_of(40, &format!("{POLICY}\n[output]\npartition_by = [\"sex\", \"diagnosis\"]"));
    let old = fs::read_to_string(lab.path("old.toml")).unwrap().replace("\"sex\", ", "");
    fs::write(lab.path("old.toml"), old).unwrap();
    lab.release("old.toml", OUT).exit(0, "");
    let old = lab.files();
    lab.run(&RELEASE).exit(0, "");
    let new = record(&lab).tables[0].files.clone();
    restore(&lab, &old);

    let (staged, mut random, mut met) = (lab.path(WORK).join("release"), Random(51), BTreeSet::new());
    for kill in 0..2 * new.len() {
        let mut run = lab.command(&RELEASE).spawn().unwrap();
        let file = &new[kill % new.len()].name;
        if wait_for(&mut run, || staged.join(file).exists()) {
            poll(&mut run, random.below(1 << 10));
        }
        run.kill().unwrap();
        let ended = run.wait().unwrap().code();
        assert!(matches!(ended, None | Some(0)), "kill {kill}: {ended:?}");
        is_private(&lab);
        // What a killed run left stays for the next one.
        let written = new.iter().filter(|file| staged.join(&file.name).exists()).count();
        match state(&lab, kill % 4 == 0) {
            Some(3.0) => drop(met.insert(written)),
            found => {
                assert_eq!(found, Some(5.0), "kill {kill}");
                restore(&lab, &old);
            }
        }
    }
    assert!(met.iter().any(|written| (1..new.len()).contains(written)), "only {met:?} files were written");
    lab.run(&RELEASE).exit(0, "k_anonymity 5 required");
    assert!(!lab.path(WORK).exists());
    assert_eq!(record(&lab).tables[0].files, new);
    assert_eq!(state(&lab, true), Some(5.0));
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
        .exit(2, ".out.kanon-work belongs to a run that is still active or was killed");
    // Killed where names cannot be exchanged.
    fs::rename(lab.out(), lab.path(WORK).join("old")).unwrap();
    let gone = lab.run(&["verify", OUT]).exit(3, "out: no such folder; ");
    gone.exit(3, "(the previous release is in its `old` folder); the next `kanon release` to the same place");
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
        let sent = Command::new("kill").args(["-s", signal, &run.id().to_string()]).status();
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
            fs::remove_file(lab.private()).unwrap();
        }
    }
    succeeds(&lab);
}

#[test]
fn a_full_disk() {
    let lab = lab(1);
    let begin = lab.files();
    // No old release, then one that must stay; files of at most so many blocks, until all fit.
    for old in [false, true] {
        lab.restore(&begin);
        if old {
            lab.release("old.toml", OUT).exit(0, "");
        }
        let before = lab.files();
        let mut refused = 0;
        for blocks in 0..64 {
            let ran = Ran::new(limited(&lab, "trap '' XFSZ", blocks));
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
        let ran = lab.run(&RELEASE).exit(2, "out.private.json: a folder has this name; move it away");
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
    fails("no policy", &[&input[..], &["--policy", "no.toml"]].concat(), &[3]);
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
    let file = &mut forged.tables[0].files[0];
    *file = FileRecord::of(&lab.out(), PART, file.rows).unwrap();
    seal(lab, forged);
}
