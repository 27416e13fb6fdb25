//! Where the private record goes: it replaces nothing that the run does not replace, it can be kept apart, and a
//! publisher is told what lies beside a release.

use std::fs;
use std::path::Path;

use crate::releases::{Lab, OUT, people};

const RELEASE: &[&str] = &["release", "people.parquet", "--policy", "policy.toml", "--to", OUT];

fn released(lab: &Lab, more: &[&str]) -> crate::releases::Ran {
    lab.run(&[RELEASE, more].concat())
}

/// Edits the policy, so that the next release is another one.
fn other_policy(lab: &Lab) {
    let policy = fs::read_to_string(lab.path("policy.toml")).unwrap();
    fs::write(
        lab.path("policy.toml"),
        policy.replacen("suppression_limit = 0.05", "suppression_limit = 0.06", 1),
    )
    .unwrap();
}

#[test]
fn what_has_the_name_of_the_private_record_is_not_replaced() {
    let lab = Lab::new(&people(1));
    for overwrite in [&[][..], &["--overwrite"]] {
        fs::write(lab.private(), "precious\n").unwrap();
        released(&lab, overwrite).exit(2, "a file of this name exists and is no private record");
        assert_eq!(fs::read_to_string(lab.private()).unwrap(), "precious\n");
        fs::remove_file(lab.private()).unwrap();
        fs::create_dir(lab.private()).unwrap();
        released(&lab, overwrite).exit(2, "a folder has this name; move it away");
        fs::remove_dir(lab.private()).unwrap();
        #[cfg(unix)]
        for target in ["policy.toml", "nowhere"] {
            std::os::unix::fs::symlink(target, lab.private()).unwrap();
            released(&lab, overwrite).exit(2, "a symbolic link has this name; move it away");
            assert_eq!(fs::read_link(lab.private()).unwrap(), Path::new(target));
            fs::remove_file(lab.private()).unwrap();
        }
        assert!(!lab.out().exists());
    }
}

#[test]
fn the_record_of_a_release_that_was_moved_away_is_kept() {
    let lab = Lab::released();
    let record = fs::read(lab.private()).unwrap();
    fs::rename(lab.out(), lab.path("published")).unwrap();
    for overwrite in [&[][..], &["--overwrite"]] {
        released(&lab, overwrite).exit(2, "exists, and belongs to another release");
        assert_eq!(fs::read(lab.private()).unwrap(), record);
        assert!(!lab.out().exists());
    }
    // A release that came there since is replaced, the record of the other one is not.
    other_policy(&lab);
    released(&lab, &["--private", "kept"]).exit(0, "kept/out.private.json to yourself");
    released(&lab, &["--overwrite"]).exit(2, "exists, and belongs to another release");
    assert_eq!(fs::read(lab.private()).unwrap(), record);
    // Its own record is replaced.
    released(&lab, &["--private", "kept", "--overwrite"]).exit(0, "verified");
    lab.run(&["verify", OUT, "--input", "people.parquet", "--private", "kept"]).exit(0, "verified");
}

#[test]
fn a_record_that_is_kept_apart_is_found_where_it_is_named() {
    let lab = Lab::new(&people(1));
    let verify: &[&str] = &["verify", OUT, "--input", "people.parquet"];
    let next = "kanon verify out --input people.parquet --private deep/secret/out.private.json";
    released(&lab, &["--private", "deep/secret"]).exit(0, next);
    assert!(!lab.private().exists());
    let record = lab.path("deep/secret/out.private.json");
    #[cfg(unix)]
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&record).unwrap().permissions()) & 0o777,
        0o600
    );
    fs::remove_file(lab.path("policy.toml")).unwrap();
    lab.run(verify).exit(2, "name it with --private");
    for private in ["deep/secret", "deep/secret/", "deep/secret/out.private.json"] {
        lab.run(&[verify, &["--private", private]].concat()).exit(0, "verified");
    }
    lab.run(&["link", "people.parquet", OUT, "--private", "deep/secret"]).exit(0, "read");
    // The same recoding again, with a place of its own.
    let again = ["release", "people.parquet", "--recoding", "deep/secret/out.private.json", "--to", "again"];
    lab.run(&[&again[..], &["--private", "b.json"]].concat()).exit(0, "b.json to yourself");
    lab.run(&["verify", "again", "--input", "people.parquet", "--private", "b.json"]).exit(0, "verified");
}

#[test]
fn the_policy_keeps_records_apart_from_its_own_folder_on() {
    let lab = Lab::new(&people(1));
    let policy = fs::read_to_string(lab.path("policy.toml")).unwrap();
    fs::create_dir(lab.path("conf")).unwrap();
    fs::copy(lab.path("marital.csv"), lab.path("conf/marital.csv")).unwrap();
    let (top, columns) = policy.split_once("[columns]").unwrap();
    fs::write(lab.path("conf/p.toml"), format!("{top}[output]\nprivate = \"../secret\"\n[columns]{columns}"))
        .unwrap();
    let release: &[&str] = &["release", "people.parquet", "--policy", "conf/p.toml", "--to", OUT];
    lab.run(release).exit(0, "secret/out.private.json to yourself");
    assert!(lab.path("secret/out.private.json").is_file() && !lab.private().exists());
    let verify = ["verify", OUT, "--input", "people.parquet", "--policy", "conf/p.toml"];
    lab.run(&verify).exit(0, "verified");
    // The record of a repeated recoding goes beside the earlier one.
    let again = ["release", "people.parquet", "--recoding", "secret/out.private.json", "--to", "again"];
    lab.run(&again).exit(0, "secret/again.private.json to yourself");
    assert!(lab.path("secret/again.private.json").is_file() && !lab.path("again.private.json").exists());
}

#[test]
fn a_private_record_is_neither_in_the_release_nor_among_the_input() {
    let lab = Lab::new(&people(1));
    released(&lab, &["--private", "out/x.json"]).exit(2, "is inside the release");
    released(&lab, &["--private", OUT]).exit(2, "is inside the release");
    fs::create_dir(lab.path("other")).unwrap();
    fs::write(lab.path("other/_kanon.json"), "{}").unwrap();
    for private in ["other", "other/records/x.json"] {
        released(&lab, &["--private", private]).exit(2, "is inside another release");
    }
    fs::remove_dir_all(lab.path("other")).unwrap();
    fs::create_dir(lab.path("lake")).unwrap();
    fs::rename(lab.path("people.parquet"), lab.path("lake/people.parquet")).unwrap();
    let release: &[&str] = &["release", "lake", "--policy", "policy.toml", "--to", OUT];
    lab.run(&[release, &["--private", "lake"]].concat()).exit(2, "the next run with this input would read");
    lab.run(&[release, &["--private", "policy.toml/x"]].concat()).exit(2, "--private policy.toml/x");
    assert!(!lab.out().exists() && lab.names() == ["lake", "marital.csv", "policy.toml"]);
    // What is not named by a pattern is not read.
    lab.run(&["release", "lake/*.parquet", "--policy", "policy.toml", "--to", OUT]).exit(0, "verified");
}

/// A private record goes to another device as a copy.
#[cfg(target_os = "linux")]
#[test]
fn a_record_on_another_device() {
    let Ok(apart) = tempfile::tempdir_in("/dev/shm") else { return };
    let lab = Lab::new(&people(1));
    let private = apart.path().to_str().unwrap();
    for overwrite in [&[][..], &["--overwrite"]] {
        released(&lab, &[overwrite, &["--private", private]].concat()).exit(0, "verified");
        let names: Vec<_> =
            fs::read_dir(apart.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["out.private.json"]);
        assert_eq!(lab.names(), ["marital.csv", OUT, "people.parquet", "policy.toml"]);
        lab.run(&["verify", OUT, "--input", "people.parquet", "--private", private]).exit(0, "verified");
    }
}

#[test]
fn releases_and_records_of_the_same_columns_nearby_are_told() {
    let same = "is of the same columns";
    let among = "its private record lies in";
    let lab = Lab::new(&people(1));
    let first = released(&lab, &[]).exit(0, "verified").said;
    assert!(!first.contains(same) && !first.contains(among), "{first}");
    let again = released(&lab, &["--overwrite"]).exit(0, "verified").said;
    assert!(!again.contains(same) && !again.contains(among), "{again}");
    // A release beside it.
    let copy = lab.release("policy.toml", "copy").exit(0, among).said;
    assert!(!copy.contains(same), "the same release again tells nothing: {copy}");
    fs::remove_dir_all(lab.path("copy")).unwrap();
    fs::remove_file(lab.path("copy.private.json")).unwrap();
    other_policy(&lab);
    let second = lab.release("policy.toml", "second").exit(0, same).said;
    assert!(second.contains(among) && second.contains("but out is of the same columns"), "{second}");
    let apart = lab.run(&[
        "release",
        "people.parquet",
        "--policy",
        "policy.toml",
        "--to",
        "third",
        "--private",
        "kept",
    ]);
    assert!(!apart.exit(0, same).said.contains(among));
    // Only the record of one that was published elsewhere.
    let lab = Lab::released();
    fs::rename(lab.out(), lab.path("away")).unwrap();
    fs::remove_dir_all(lab.path("away")).unwrap();
    other_policy(&lab);
    let second = lab.release("policy.toml", "second").exit(0, "out.private.json is of the same columns").said;
    assert!(!second.contains(among), "{second}");
    // Folders of partitions are one tree.
    let lab = Lab::new(&people(1));
    lab.release("policy.toml", "rel/year=2023/month=12").exit(0, "verified");
    other_policy(&lab);
    let second = lab.release("policy.toml", "rel/year=2024/month=1").exit(0, same).said;
    assert!(second.contains(among), "{second}");
    // Other columns are another matter.
    let lab = Lab::released();
    fs::write(lab.path("other.csv"), "colour,x\nred,1\nred,2\nblue,3\nblue,4\n").unwrap();
    let policy = "k = 2\nrows_are_individuals = true\n[columns]\ncolour = { role = \"quasi\" }\nx = { role = \"identifier\" }\n";
    fs::write(lab.path("other.toml"), policy).unwrap();
    let other =
        lab.run(&["release", "other.csv", "--policy", "other.toml", "--to", "other"]).exit(0, among).said;
    assert!(!other.contains(same), "{other}");
}

#[test]
fn a_release_is_a_folder_whatever_its_name_says() {
    let lab = Lab::new(&people(1));
    for (out, copy) in [("x.csv", true), ("x.parquet", true), ("deep/x.xlsx", false), ("x.sas7bdat", false)] {
        let said = lab.run(&["release", "people.parquet", "--policy", "policy.toml", "--to", out]);
        let said = said.exit(2, "a release is a folder of Parquet files").said;
        assert_eq!(said.contains("COPY (SELECT * FROM"), copy, "{said}");
    }
    assert_eq!(lab.names(), ["marital.csv", "people.parquet", "policy.toml"]);
    // A dot in a name is none of an extension.
    lab.run(&["release", "people.parquet", "--policy", "policy.toml", "--to", "v1.2"])
        .exit(0, "v1.2.private.json");
}
