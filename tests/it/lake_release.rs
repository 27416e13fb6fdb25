//! Releases in stores by the command line: published, verified, refused, replaced, read; and what a failing store leaves.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::collections::BTreeSet;
use std::fs;
use std::process::Child;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::lake::Lake;
use crate::s3_server::{Fault, Request};

const RELEASE: &str = "release in.parquet --policy p.toml --to s3://lake/safe --private p.json";

/// The keys of the release, but for the record.
fn objects(lake: &Lake) -> Vec<String> {
    let keys = lake.server.keys("lake").into_iter();
    keys.filter(|key| key.starts_with("safe/") && key != "safe/_kanon.json").collect()
}

fn record(lake: &Lake) -> Option<Value> {
    lake.server.get("lake", "safe/_kanon.json").map(|text| serde_json::from_slice(&text).unwrap())
}

/// The store has a release that verifies with its private record, or no record at all.
fn is_whole_or_not_there(lake: &Lake) -> bool {
    let Some(record) = record(lake) else { return false };
    lake.run("verify s3://lake/safe --input in.parquet --private p.json").exit(0);
    let listed = record["tables"][0]["files"].as_array().unwrap().iter();
    let listed: BTreeSet<String> =
        listed.map(|file| format!("safe/{}", file["name"].as_str().unwrap())).collect();
    assert!(objects(lake).iter().all(|key| listed.contains(key)), "more objects than the record lists");
    true
}

#[test]
fn a_release_appears_in_a_store_and_every_command_reads_it() {
    let lake = Lake::new();
    let released = lake.run(&format!("{RELEASE} --format json")).exit(0).json();
    assert_eq!(released["folder"], "s3://lake/safe");
    let keys = objects(&lake);
    assert_eq!(keys.len(), 1);
    let name = record(&lake).unwrap()["tables"][0]["files"][0]["name"].as_str().unwrap().to_owned();
    assert_eq!(keys[0], format!("safe/{name}"));
    let run = name.strip_prefix("part-00000-").and_then(|name| name.strip_suffix(".parquet")).unwrap();
    assert!(run.len() == 16 && run.chars().all(|c| c.is_ascii_hexdigit()), "{name}");

    // The same rows as on this machine, and the same record but for the names of the files.
    lake.run("release in.parquet --policy p.toml --to near").exit(0);
    let near = fs::read(lake.place.path("near/part-00000.parquet")).unwrap();
    assert_eq!(lake.server.get("lake", &keys[0]).unwrap(), near);
    let mut far = record(&lake).unwrap();
    let mut own: Value =
        serde_json::from_slice(&fs::read(lake.place.path("near/_kanon.json")).unwrap()).unwrap();
    far["tables"][0]["files"][0]["name"] = "part-00000.parquet".into();
    far["digest"] = Value::Null;
    own["digest"] = Value::Null;
    assert_eq!(far, own);

    for line in [
        "verify s3://lake/safe",
        "verify s3://lake/safe --input in.parquet --private p.json",
        "verify s3://lake/safe/ --input in.parquet --policy p.toml",
        "explain s3://lake/safe",
        "risk s3://lake/safe",
        "link in.parquet s3://lake/safe --private p.json",
    ] {
        let far = lake.run(line).exit(0);
        let line = line.replace("s3://lake/safe", "near").replace("p.json", "near.private.json");
        let near = lake.run(&line).exit(0);
        let same = |text: &str| {
            text.replace("s3://lake/safe/", "OUT").replace("s3://lake/safe", "OUT").replace("near", "OUT")
        };
        assert_eq!(same(&far.out), same(&near.out), "{line}");
    }
    let count = lake.run("sql -c 'SELECT count(*) AS n FROM \"s3://lake/safe\"' --format json").exit(0);
    assert_eq!(count.json()[0]["n"], released["public"]["tables"][0]["rows"]);
    // A copy on this machine is a release, too.
    for key in lake.server.keys("lake") {
        lake.place.write(&key, lake.server.get("lake", &key).unwrap());
    }
    lake.run("verify safe --input in.parquet --private p.json").exit(0);
}

/// The first commands of docs/lake.md, as they stand there.
#[test]
fn the_page_about_stores_is_true() {
    let page = fs::read_to_string(crate::house::root().join("docs/lake.md")).unwrap();
    let block = page.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let lake = Lake::with_people();
    for key in ["a", "b"] {
        let object = lake.server.get("lake", &format!("in/{key}.parquet")).unwrap();
        lake.server.put("lake", &format!("visits/{key}.parquet"), object);
    }
    fs::remove_file(lake.place.path("p.toml")).unwrap();
    let mut commands = 0;
    for line in block.lines().filter_map(|line| line.strip_prefix("kanon ")) {
        let line = line.replace(
            "\"SELECT count(*) FROM 's3://lake/safe'\"",
            "'SELECT count(*) FROM \"s3://lake/safe\"'",
        );
        lake.run(&line).exit(0);
        if line.starts_with("init") {
            // Whoever has read the proposal decides.
            lake.place.write("p.toml", crate::formats::POLICY);
        }
        commands += 1;
    }
    assert_eq!(commands, 5);
}

#[test]
fn a_release_in_a_store_is_forged_in_vain() {
    let lake = Lake::new();
    lake.run(RELEASE).exit(0);
    let part = objects(&lake).remove(0);
    let bytes = lake.server.get("lake", &part).unwrap();
    let verify = "verify s3://lake/safe";

    lake.server.put("lake", "safe/more.parquet", bytes.clone());
    lake.run(verify).exit(1).says("an object that the record does not list");
    lake.server.remove("lake", "safe/more.parquet");
    // What a killed run left is said.
    lake.server.put("lake", "safe/part-00001-0123456789abcdef.parquet", bytes.clone());
    assert!(lake.run(verify).exit(0).out.contains("1 object beside the release"));
    let count = |of: &str| {
        lake.run(&format!("sql -c 'SELECT count(*) AS n FROM \"{of}\"' --format json")).exit(0).out
    };
    assert_eq!(
        count("s3://lake/safe"),
        count(&format!("s3://lake/{part}")),
        "only what the record lists is read"
    );
    lake.server.remove("lake", "safe/part-00001-0123456789abcdef.parquet");

    let mut other = bytes.clone();
    other[9] ^= 1;
    lake.server.put("lake", &part, other);
    lake.run(verify).exit(1).says("is not the file that the record describes");
    lake.server.put("lake", &part, [&*bytes, b"x"].concat());
    lake.run(verify).exit(1).says("is not the file that the record describes");
    lake.server.remove("lake", &part);
    lake.run(verify).exit(1).says("is missing");
    lake.server.put("lake", &part, bytes);
    lake.run(verify).exit(0);

    let text = String::from_utf8(lake.server.get("lake", "safe/_kanon.json").unwrap()).unwrap();
    lake.server.put("lake", "safe/_kanon.json", text.replace("\"format\": 2", "\"format\":  2"));
    lake.run(verify).exit(1).says("s3://lake/safe/_kanon.json was edited or damaged");
    for line in ["risk s3://lake/safe", "sql -c 'SELECT * FROM \"s3://lake/safe\"'"] {
        lake.server.put("lake", "safe/_kanon.json", text.replace("tables", "chairs"));
        assert_ne!(lake.run(line).code, 0, "{line}");
    }
    lake.server.remove("lake", "safe/_kanon.json");
    lake.run(verify).exit(3).says("s3://lake/safe/_kanon.json: no such object; is this a release of kanon?");
}

#[test]
fn what_a_release_in_a_store_may_not_do_is_refused_before_anything_is_written() {
    let lake = Lake::with_people();
    lake.server.put("lake", "taken/x.txt", "x");
    lake.server.put("lake", "other/_kanon.json", "{}");
    let before = lake.server.keys("lake");
    for (options, code, why) in [
        ("in.parquet --to s3://lake/safe", 2, "needs a place for its private record"),
        ("in.parquet --to s3://lake/safe --private s3://lake/safe/p.json", 2, "is inside the release"),
        ("in.parquet --to s3://lake/safe --private s3://lake/safe", 2, "is inside the release"),
        ("in.parquet --to s3://lake/safe --private s3a://lake/safe/p.json", 2, "is inside the release"),
        ("in.parquet --to s3://lake/safe --private s3://lake/other/x/p.json", 2, "is inside a release"),
        ("in.parquet --to s3://lake/safe --private 's3://lake/safe\\p.json'", 2, "expected no backslash"),
        ("s3a://lake/in --to s3://lake/in/safe --private p.json", 2, "would read the release"),
        ("in.parquet --to s3://lake --private p.json", 2, "expected a folder of the store"),
        (
            "in.parquet --to https://127.0.0.1:1/safe --private p.json",
            2,
            "is on a web server, which is only read",
        ),
        ("in.parquet --to s3://lake/taken --private p.json", 2, "other objects are there"),
        ("in.parquet --to s3://lake/other/safe --private p.json", 2, "is inside another release"),
        (
            "in.parquet --to s3://lake/safe.parquet --private p.json",
            2,
            "name a folder, such as s3://lake/safe",
        ),
        ("in.parquet --to near --private s3://lake/p.json", 2, "give a path"),
        ("in.parquet --to s3://lake/safe --private in.parquet/p.json", 2, "cannot be used"),
        ("s3://lake/in --to s3://lake/in/safe --private p.json", 2, "would read the release"),
        ("s3://lake/in --to s3://lake/in --private p.json", 2, "holds the input"),
        ("s3://lake/*/*.parquet --to s3://lake/safe --private p.json", 2, "would read the release"),
        (
            "s3://lake/in --to s3://lake/safe --private s3://lake/in/p.json",
            2,
            "would read the private record",
        ),
        ("in.parquet --to s3://nowhere/safe --private p.json", 3, "no such bucket"),
    ] {
        let ran = lake.run(&format!("release --policy p.toml {options}")).exit(code);
        assert!(ran.err.contains(why), "{options}: {ran:?}");
        assert_eq!(lake.server.keys("lake"), before, "{options}");
        assert!(!lake.place.path("p.json").exists(), "{options}");
    }
    assert_eq!(lake.server.open_uploads(), 0);
    // A refusal by the policy leaves nothing.
    assert!([1, 2].contains(&lake.run(&format!("{RELEASE} --set k=50")).code));
    assert_eq!(lake.server.keys("lake"), before);
    assert!(!lake.place.path("p.json").exists());
}

#[test]
fn a_release_replaces_another_one_only_if_it_may() {
    let lake = Lake::new();
    lake.run(RELEASE).exit(0);
    let (first, private) = (lake.server.keys("lake"), fs::read(lake.place.path("p.json")).unwrap());
    lake.run(&format!("{RELEASE} --set k=4"))
        .exit(2)
        .says("a release already exists; --overwrite replaces it");
    assert_eq!(
        (lake.server.keys("lake"), fs::read(lake.place.path("p.json")).unwrap()),
        (first.clone(), private)
    );
    lake.run(&format!("{RELEASE} --set k=4 --overwrite")).exit(0);
    assert!(is_whole_or_not_there(&lake));
    assert_eq!(lake.server.keys("lake").len(), first.len(), "the objects of the first one are removed");
    assert_eq!(record(&lake).unwrap()["models"][0]["required"], 4);
    // The same again changes nothing, and says so.
    let before = (lake.server.keys("lake"), fs::read(lake.place.path("p.json")).unwrap());
    for options in ["", " --overwrite"] {
        let again = lake.run(&format!("{RELEASE} --set k=4{options} --format json")).exit(0).json();
        assert_eq!(again["unchanged"], true);
        assert_eq!(again["public"], record(&lake).unwrap());
        assert_eq!((lake.server.keys("lake"), fs::read(lake.place.path("p.json")).unwrap()), before);
    }
    // A damaged one is no such release, and is replaced.
    let part = objects(&lake).remove(0);
    let mut bytes = lake.server.get("lake", &part).unwrap();
    bytes[9] ^= 1;
    lake.server.put("lake", &part, bytes);
    lake.run(&format!("{RELEASE} --set k=4")).exit(2).says("a release already exists");
    lake.run(&format!("{RELEASE} --set k=4 --overwrite")).exit(0);
    assert!(is_whole_or_not_there(&lake));
    // A private record of another release stays.
    lake.run("release in.parquet --policy p.toml --to s3://lake/third --private p.json")
        .exit(2)
        .says("belongs to another release");
    // It may be in a store, too.
    let far = "release in.parquet --policy p.toml --to s3://lake/fourth --private s3://lake/private/";
    lake.run(far).exit(0);
    assert!(lake.server.get("lake", "private/fourth.private.json").is_some());
    lake.run("verify s3://lake/fourth --input in.parquet --private s3://lake/private").exit(0);
    lake.run(&format!("{far} --set k=4 --overwrite")).exit(0);
    lake.run("verify s3://lake/fourth --input in.parquet --private s3://lake/private").exit(0);
    let of_private: Vec<String> =
        lake.server.keys("lake").into_iter().filter(|key| key.starts_with("private/")).collect();
    assert_eq!(of_private, ["private/fourth.private.json"]);
}

/// Other releases of the same columns beside it, also where their folders are those of years.
#[test]
fn a_second_extract_in_a_store_is_said() {
    let lake = Lake::new();
    let release = |to: &str, more: &str| {
        let line = format!("release in.parquet --policy p.toml --to s3://lake/{to} --private {more}");
        lake.run(&line).exit(0).err
    };
    assert_eq!(release("safe", "safe.json"), "");
    assert_eq!(release("safe", "safe.json --overwrite --set k=4"), "", "it is compared with itself");
    assert_eq!(release("years/2024/year=2024/month=01", "01.json"), "");
    for (to, private, other) in [
        ("other", "other.json", "s3://lake/safe "),
        ("years/2024/year=2024/month=02", "02.json", "s3://lake/years/2024/year=.../month=... "),
        ("years/2024/year=2025/month=01", "03.json", "s3://lake/years/2024/year=.../month=... "),
    ] {
        let said = release(to, private);
        assert!(said.contains(&format!("{other}is of the same columns")), "{to}: {said}");
    }
}

/// A release of two tables, each in a folder.
#[test]
fn groups_are_released_to_a_store() {
    let lake = Lake::new();
    lake.place.write("groups.toml", crate::anatomy::POLICY);
    lake.place.parquet("people.parquet", &crate::releases::people(1));
    let release = "release people.parquet --policy groups.toml --to s3://lake/safe --private g.json";
    lake.run(release).exit(0);
    assert_eq!(objects(&lake).len(), 2);
    lake.run("verify s3://lake/safe --input people.parquet --private g.json").exit(0);
    for line in [
        "risk s3://lake/safe",
        "explain s3://lake/safe",
        "link people.parquet s3://lake/safe --private g.json",
    ] {
        lake.run(line).exit(0);
    }
    // What a killed run left in the folder of a table is not read.
    let risk = lake.run("risk s3://lake/safe").exit(0).out;
    let part = objects(&lake).into_iter().find(|key| key.contains("/quasi_identifiers/")).unwrap();
    let left = part.replace("part-00000-", "part-00001-");
    lake.server.put("lake", &left, lake.server.get("lake", &part).unwrap());
    assert_eq!(lake.run("risk s3://lake/safe").exit(0).out, risk);
    assert!(lake.run("verify s3://lake/safe").exit(0).out.contains("1 object beside the release"));
    lake.server.remove("lake", &left);
    assert_eq!(lake.run(&format!("{release} --format json")).exit(0).json()["unchanged"], true);
    lake.run(&format!("{release} --overwrite --released-on 2026-11-29")).exit(0);
    assert_eq!(objects(&lake).len(), 2);
    lake.run("verify s3://lake/safe --input people.parquet --private g.json").exit(0);
    // A part of a release is not read as if it was all of it.
    lake.run(RELEASE.replace("/safe", "/other").as_str()).exit(0);
    let part = lake.server.keys("lake").into_iter().find(|key| key.starts_with("other/part-")).unwrap();
    lake.server.remove("lake", &part);
    lake.run("risk s3://lake/other")
        .exit(3)
        .says("objects that s3://lake/other/_kanon.json lists are missing");
}

#[test]
fn of_runs_at_the_same_time_exactly_one_publishes() {
    for race in 0..6 {
        let lake = Lake::new();
        let others = ["one", "two", "three"].map(|name| {
            let folder = lake.place.path(name);
            fs::create_dir(&folder).unwrap();
            folder
        });
        // Two of them make the same release; each is as if on a machine of its own.
        let start = |at: usize| -> Child {
            let k = 3 + at / 2;
            let line = format!(
                "release in.parquet --policy p.toml --set k={k} --to s3://lake/safe --private p{at}.json"
            );
            lake.start(&line, &[("TMPDIR", others[at].to_str().unwrap())])
        };
        let runs: Vec<Child> = (0..3).map(start).collect();
        let ended: Vec<(i32, String)> = runs
            .into_iter()
            .map(|run| {
                let output = run.wait_with_output().unwrap();
                (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
            })
            .collect();
        let winners: Vec<usize> = (0..3).filter(|at| ended[*at].0 == 0).collect();
        assert_eq!(winners.len(), 1, "race {race}: {ended:?}");
        for (code, err) in ended.iter().filter(|(code, _)| *code != 0) {
            assert!(*code == 3 && err.contains("another run") || err.contains("already exists"), "{err}");
        }
        let winner = winners[0];
        lake.run(&format!("verify s3://lake/safe --input in.parquet --private p{winner}.json")).exit(0);
        let private: Vec<usize> =
            (0..3).filter(|at| lake.place.path(&format!("p{at}.json")).exists()).collect();
        assert_eq!(private, [winner], "race {race}");
        assert_eq!(objects(&lake).len(), 1, "race {race}");
    }
}

/// A later extract is released like an earlier one, whose private record lies in the store.
#[test]
fn a_recoding_is_repeated_in_a_store() {
    let lake = Lake::new();
    let release = "release in.parquet --policy p.toml --to s3://lake/one --private s3://lake/private";
    lake.run(release).exit(0);
    let again = "release in.parquet --recoding s3://lake/private/one.private.json --to s3://lake/two";
    lake.run(again).exit(0);
    lake.run(&format!("{again} --overwrite")).exit(0);
    lake.run("verify s3://lake/two --input in.parquet --private s3://lake/private").exit(0);
    assert!(lake.server.get("lake", "private/two.private.json").is_some());
}

#[test]
fn copy_writes_to_a_store_but_into_no_release() {
    let lake = Lake::new();
    lake.run(&RELEASE.replace("--private p.json", "--private s3://lake/p.private.json")).exit(0);
    let sql = |text: &str| {
        lake.place.write("x.sql", text);
        lake.run("sql --file x.sql --format json")
    };
    let signed = sql("COPY (SELECT 1) TO 's3://lake/x.parquet?X-Amz-Signature=test-secret'");
    signed.exit(2).says("no signature in the address");
    for to in ["s3://lake/copy/a.parquet", "s3://lake/copy b/c.csv", "s3://lake/copies/"] {
        sql(&format!(
            "COPY (SELECT age, zip FROM 'in.parquet') TO '{to}'{}",
            match to.ends_with('/') {
                true => " STORED AS PARQUET",
                false => "",
            }
        ))
        .exit(0);
        let sum = |of: &str| sql(&format!("SELECT count(*) AS n, sum(age) AS s FROM '{of}'")).exit(0).out;
        assert_eq!(sum(to), sum("in.parquet"), "{to}");
    }
    let before = lake.server.keys("lake");
    for (to, why) in [
        ("s3://lake/safe", "is a release, which COPY would damage"),
        ("s3://lake/safe/more.parquet", "is inside a release"),
        ("s3://lake/safe/x/more.parquet", "is inside a release"),
        ("s3://lake/p.private.json", "is the private record of a release"),
        ("s3://lake/50%/x.csv", "expected none of `%`"),
        ("https://127.0.0.1:1/x.csv", "is on a web server, which is only read"),
    ] {
        let ran = sql(&format!("COPY (SELECT age FROM 'in.parquet') TO '{to}' STORED AS CSV"));
        assert!(ran.code == 2 && ran.err.contains(why), "{to}: {ran:?}");
        assert_eq!(lake.server.keys("lake"), before, "{to}");
    }
    sql("COPY (SELECT age FROM 'in.parquet') TO 's3://nowhere/x.csv'").exit(3).says("no such bucket");
}

/// Kills a run while the store works on its first request of this kind. What is asked is still done.
fn kill_at(lake: &Lake, line: &str, is_there: impl Fn(&Request) -> bool) {
    // The requests of a run are those of any other one.
    let twin = Lake::new();
    for key in lake.server.keys("lake") {
        twin.server.put("lake", &key, lake.server.get("lake", &key).unwrap());
    }
    for (name, bytes) in lake.place.tree().into_iter().filter(|(name, _)| name.ends_with(".json")) {
        twin.place.write(&name, bytes);
    }
    twin.run(line).exit(0);
    let nth = twin.server.requests().iter().position(is_there).unwrap();
    let (arrives, arrived) = channel();
    lake.server.before(
        nth,
        Box::new(move |_| {
            arrives.send(()).unwrap();
            thread::sleep(Duration::from_secs(1));
        }),
    );
    let mut run = lake.start(line, &[]);
    arrived.recv_timeout(Duration::from_secs(60)).unwrap();
    run.kill().unwrap();
    assert_eq!(run.wait().unwrap().code(), None, "the run ended before it was killed");
}

/// The number of files that are pending private records, in a folder and in the store.
fn pending(lake: &Lake) -> usize {
    let names = fs::read_dir(lake.place.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.chain(lake.server.keys("lake")).filter(|name| name.contains(".json.pending")).count()
}

/// What a killed run left, a private record that is pending among it, is removed by the next run that publishes, also if runs
/// that fail come between.
#[test]
fn what_a_killed_run_left_is_not_forgotten_by_runs_that_fail() {
    for private in ["p.json", "s3://lake/private/p.json"] {
        let lake = Lake::new();
        lake.run("release in.parquet --policy p.toml --to s3://lake/other --private other.json").exit(0);
        let release = RELEASE.replace("p.json", private);
        kill_at(&lake, &release, |request| request.method == "PUT" && request.path.starts_with("safe/part"));
        assert!(record(&lake).is_none());
        assert_eq!((pending(&lake), objects(&lake).len()), (1, 1), "{private}");
        lake.run(&RELEASE.replace("p.json", "other.json")).exit(2).says("belongs to another release");
        lake.run(&format!("{release} --set k=1000").replace("p.json", "q.json")).exit(1);
        assert_eq!(pending(&lake), 1);
        lake.run(&release.replace("p.json", "q.json")).exit(0);
        assert_eq!((pending(&lake), objects(&lake).len()), (0, 1), "{private}: raw facts remain");
        assert_eq!(fs::read_dir(lake.place.path("tmp")).unwrap().count(), 0);
    }
}

/// A run was killed when its release was there, and that which it replaced was, too.
#[test]
fn the_next_run_removes_the_objects_that_a_killed_one_replaced() {
    let lake = Lake::new();
    lake.run(RELEASE).exit(0);
    let first = objects(&lake);
    kill_at(&lake, &format!("{RELEASE} --overwrite --set k=4"), |request| {
        request.path == "safe/_kanon.json" && request.method == "PUT"
    });
    let second = record(&lake).unwrap()["digest"].clone();
    assert_eq!(objects(&lake).len(), 2, "{first:?}");
    lake.run(&format!("{RELEASE} --overwrite --set k=5")).exit(0);
    assert_ne!(record(&lake).unwrap()["digest"], second);
    assert_eq!(objects(&lake).len(), 1);
    assert!(is_whole_or_not_there(&lake));
    assert_eq!((pending(&lake), fs::read_dir(lake.place.path("tmp")).unwrap().count()), (0, 0));
}

/// Credentials that expire while a release is published.
#[test]
fn credentials_that_expire_in_mid_run_publish_nothing() {
    let counted = Lake::new();
    counted.run(RELEASE).exit(0);
    let requests = counted.server.requests();
    let put = requests.iter().position(|request| request.method == "PUT").unwrap();
    let is_of_record = |path: &str| path == "safe/_kanon.json";
    let last =
        requests.iter().position(|request| request.method == "PUT" && is_of_record(&request.path)).unwrap();
    assert!(put < last);
    for after in put..=last {
        let lake = Lake::new();
        lake.server.expire_credentials_after(after);
        let ran =
            lake.run(RELEASE).exit(3).says("the credentials have expired").says("nothing was published");
        assert!(record(&lake).is_none(), "after {after}: {ran:?}");
        assert!(!lake.place.path("p.json").exists());
    }
}

/// Each request of a small release fails in each way, for a first release and for one that replaces it.
#[test]
fn a_store_that_fails_shows_a_whole_release_or_none() {
    let faults = [
        Fault::Status(403, "AccessDenied"),
        Fault::ActThenClose,
        Fault::ActThenStatus(500, "InternalError"),
        Fault::Cut,
    ];
    let counted = Lake::new();
    counted.run(RELEASE).exit(0);
    let first = counted.server.requests().len();
    assert!(first > 8, "{first} requests");
    thread::scope(|scope| {
        for fault in faults {
            scope.spawn(move || {
                for nth in 0..first {
                    let lake = Lake::new();
                    lake.server.fault(nth, fault);
                    let ran = lake.run(RELEASE);
                    let is_there = is_whole_or_not_there(&lake);
                    assert_eq!(ran.code == 0, is_there, "{fault:?} at {nth}: {ran:?}");
                    if !is_there {
                        assert!(
                            objects(&lake).is_empty() || ran.err.contains("may remain"),
                            "{fault:?} at {nth}: {ran:?}"
                        );
                        assert_eq!(ran.code, 3, "{fault:?} at {nth}: {ran:?}");
                        lake.run(RELEASE).exit(0);
                        assert!(is_whole_or_not_there(&lake));
                    }
                }
            });
        }
    });
}
