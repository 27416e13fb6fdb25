//! Objects of stores as input: what every command reads, what it leaves alone, and what it says when a store fails.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array};
use datafusion::arrow::csv::Writer;
use serde_json::Value;

use crate::command::{Place, Ran, table};
use crate::formats::{POLICY, json_lines, people};
use crate::s3_server::{ACCESS_KEY, Fault, Request, S3Server, Store};

/// A folder with a policy, and a store with a bucket `lake`.
pub(crate) struct Lake {
    pub(crate) place: Place,
    pub(crate) server: S3Server,
}

impl Lake {
    pub(crate) fn new() -> Self {
        let (place, server) = (Place::new(), S3Server::start());
        server.add_bucket("lake");
        fs::create_dir(place.path("tmp")).unwrap();
        place.write("p.toml", POLICY);
        place.parquet("in.parquet", &people());
        Self { place, server }
    }

    /// The store with the people in a folder of two objects.
    pub(crate) fn with_people() -> Self {
        let lake = Self::new();
        let rows = people();
        for (at, key) in ["in/a.parquet", "in/b.parquet"].into_iter().enumerate() {
            lake.place.parquet("part.parquet", &rows.slice(at * 30, 30));
            lake.put(key, &lake.place.path("part.parquet"));
        }
        lake
    }

    fn put(&self, key: &str, file: &std::path::Path) {
        self.server.put("lake", key, fs::read(file).unwrap());
    }

    /// Runs `kanon` with the store in its environment; no output may hold the secret.
    pub(crate) fn run(&self, line: &str) -> Ran {
        self.run_with(line, &[])
    }

    fn run_with(&self, line: &str, variables: &[(&str, &str)]) -> Ran {
        let ran = Ran::new(self.command(line, variables).output().unwrap());
        for secret in ["test-secret", ACCESS_KEY] {
            assert!(!ran.out.contains(secret) && !ran.err.contains(secret), "{ran:?}");
        }
        ran
    }

    /// `kanon` with the store in its environment, and its own folder for temporary files.
    fn command(&self, line: &str, variables: &[(&str, &str)]) -> Command {
        let mut command = self.place.command(line);
        command.envs(self.server.environment()).env("NO_PROXY", "127.0.0.1");
        command.env("TMPDIR", self.place.path("tmp")).envs(variables.iter().copied());
        command
    }

    /// Starts `kanon`, as [`run`](Self::run) runs it.
    pub(crate) fn start(&self, line: &str, variables: &[(&str, &str)]) -> Child {
        let mut command = self.command(line, variables);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The number of the first request for bytes of an object that a command makes.
    fn first_read(&self, line: &str) -> usize {
        self.server.clear_requests();
        self.run(line).exit(0);
        let requests = self.server.requests();
        requests.iter().position(|request| request.range.is_some()).unwrap()
    }
}

/// An answer without what differs between a store and a folder.
fn without_names(answer: &Ran) -> Value {
    let mut answer = answer.json();
    for key in ["input", "table", "list", "file"] {
        answer.as_object_mut().unwrap().remove(key);
    }
    answer
}

#[test]
fn every_command_reads_an_address_as_it_reads_a_path() {
    let lake = Lake::with_people();
    let place = &lake.place;
    for line in [
        "check IN --policy p.toml --format json",
        "risk IN --policy p.toml --format json",
        "search IN --policy p.toml --format json",
        "link IN IN --individual zip --on age,cost --format json",
        "hierarchy IN age --by 'range = [10, 20]' --format json",
        "sql -c 'SELECT count(*) AS n, min(age) AS a, max(dob) AS d FROM ''IN''' --format json",
    ] {
        let line = line.replace("''", "\"");
        let with = |input: &str| lake.run(&line.replace("IN", input));
        let (local, remote) = (with("in.parquet"), with("s3://lake/in"));
        assert!(local.code < 2, "{line}: {local:?}");
        assert_eq!(local.code, remote.code, "{line}: {remote:?}");
        let same = |ran: &Ran| ran.out.replace("s3://lake/in", "IN").replace("in.parquet", "IN");
        assert_eq!(same(&local), same(&remote), "{line}");
    }
    lake.run("init s3://lake/in --to i.toml").exit(0);
    let proposed = fs::read_to_string(place.path("i.toml")).unwrap();
    assert!(proposed.contains("[columns]") && !proposed.contains("test-secret"));
    lake.run("release s3://lake/in --policy p.toml --to far").exit(0);
    place.run("release in.parquet --policy p.toml --to near").exit(0);
    assert_eq!(place.files("far"), place.files("near"));
    lake.run("verify far --input s3://lake/in").exit(0);
    let private = fs::read_to_string(place.path("far.private.json")).unwrap();
    let private: Value = serde_json::from_str(&private).unwrap();
    let files: Vec<&str> =
        private["files"].as_array().unwrap().iter().map(|f| f["path"].as_str().unwrap()).collect();
    assert_eq!(files, ["s3://lake/in/a.parquet", "s3://lake/in/b.parquet"]);
    lake.run("release s3://lake/in --recoding far.private.json --to again").exit(0);
    lake.server.put("lake", "in/b.parquet", fs::read(place.path("in.parquet")).unwrap());
    lake.run("verify far --input s3://lake/in").exit(1);
}

#[test]
fn every_format_is_read_from_a_store() {
    let lake = Lake::new();
    let (place, rows) = (&lake.place, people());
    place.arrow_file("in.arrow", &rows);
    place.arrow_stream("in.arrows", &rows);
    place.write("in.jsonl", json_lines(&rows));
    let mut csv = Vec::new();
    Writer::new(&mut csv).write(&rows).unwrap();
    place.write("in.csv", csv);
    let policy = format!("{POLICY}[columns.dob.x]").replace("[columns.dob.x]", "");
    place.write(
        "p.toml",
        policy.replace(
            "role = \"quasi\", hierarchy = { date",
            "role = \"quasi\", csv_type = \"date\", hierarchy = { date",
        ),
    );
    for name in ["in.parquet", "in.arrow", "in.arrows", "in.jsonl", "in.csv"] {
        lake.put(name, &place.path(name));
        let check = |input: &str| lake.run(&format!("check {input} --policy p.toml --format json"));
        let (near, far) = (check(name), check(&format!("s3://lake/{name}")));
        assert_eq!(
            (near.code, &near.err),
            (far.code, &far.err.replace("s3://lake/", "").replace("input object", "input file"))
        );
        if near.code != 3 && near.code != 2 {
            assert_eq!(without_names(&near), without_names(&far), "{name}");
        }
    }
}

#[test]
fn what_jobs_leave_and_what_neighbours_hold_is_not_read() {
    let lake = Lake::with_people();
    let other = fs::read(lake.place.path("in.parquet")).unwrap();
    let rows = |input: &str| {
        let sql = format!("sql -c 'SELECT count(*) AS n FROM \"{input}\"' --format json");
        lake.run(&sql).exit(0).json()[0]["n"].as_u64().unwrap()
    };
    for key in [
        "in2/a.parquet",
        "a1/a.parquet",
        "a[1]/b.parquet",
        "in.parquet",
        "in/_temporary/0/a.parquet",
        "in/.staging/a.parquet",
        "in/.a.parquet.crc",
        "in/_SUCCESS",
        "in/_started.parquet",
    ] {
        lake.server.put("lake", key, other.clone());
    }
    for marker in ["in", "in/empty", "in/sub"] {
        lake.server.put("lake", marker, "");
    }
    for (input, expected) in [
        ("s3://lake/in", 60),
        ("s3://lake/in/", 60),
        ("s3a://lake/in", 60),
        ("s3://lake/in/*.parquet", 60),
        ("s3://lake/in/a.parquet", 30),
        ("s3://lake/in*/[a]*.parquet", 90),
        ("s3://lake/i?/b.parquet", 30),
        ("s3://lake/**/b.parquet", 90),
        ("s3://lake/in.parquet", 60),
        ("s3://lake/in*/", 120),
        ("s3://lake/a[1]/", 60),
    ] {
        assert_eq!(rows(input), expected, "{input}");
    }
    // More than one page of a listing, and names that a URL would change.
    lake.place.parquet("one.parquet", &people().slice(0, 1));
    for at in 0..1_200 {
        lake.put(&format!("many/{at} %2F+#é&.parquet"), &lake.place.path("one.parquet"));
    }
    assert_eq!(rows("s3://lake/many/"), 1_200);
    assert_eq!(rows("s3://lake/many/7 %2F+#é&.parquet"), 1);
}

#[test]
fn a_table_of_another_format_is_refused_in_a_store() {
    let lake = Lake::with_people();
    for (mark, key, table) in [
        ("d/_delta_log/0.json", "d/a.parquet", "Delta Lake"),
        ("i/metadata/v1.metadata.json", "i/data/a.parquet", "Apache Iceberg"),
        ("h/.hoodie/hoodie.properties", "h/eu/a.parquet", "Apache Hudi"),
    ] {
        lake.server.put("lake", mark, "{}");
        lake.put(key, &lake.place.path("in.parquet"));
        let (folder, _) = key.rsplit_once('/').unwrap();
        let ran = lake.run(&format!("check s3://lake/{folder} --quasi age --k 2"));
        ran.exit(3).says(&format!("belongs to a table of {table}"));
        // A single object may be named.
        assert_ne!(lake.run(&format!("check s3://lake/{key} --quasi age --k 2")).code, 3);
    }
}

#[test]
fn an_object_that_changes_is_refused_with_its_address() {
    let lake = Lake::with_people();
    let other = fs::read(lake.place.path("in.parquet")).unwrap();
    let line = "release s3://lake/in --policy p.toml --to out --overwrite";
    let read = lake.first_read(line);
    let before = lake.place.tree();
    // Between the listing and the reading.
    let changed = other.clone();
    lake.server.before(read, Box::new(move |store| store.put("lake", "in/a.parquet", changed)));
    lake.run(line).exit(3).says("input object s3://lake/in/").says("it changed since it was listed");
    assert_eq!(lake.place.tree(), before);
    // After it was read.
    lake.server.clear_requests();
    lake.run(line).exit(0);
    let is_listing = |request: &Request| request.query.get("prefix").is_some_and(|prefix| prefix == "in/");
    let last = lake.server.requests().iter().rposition(is_listing).unwrap();
    let before = lake.place.tree();
    lake.server.before(last, Box::new(|store| store.remove("lake", "in/b.parquet")));
    lake.run(line).exit(3).says("input object s3://lake/in/b.parquet disappeared during the run");
    assert_eq!(lake.place.tree(), before);
    // What appears is not read, and said.
    lake.server.put("lake", "in/b.parquet", other.clone());
    lake.server.before(last, Box::new(move |store| store.put("lake", "in/c.parquet", other)));
    let ran = lake.run(line);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("1 object that appeared during the run"), "{ran:?}");
}

#[test]
fn errors_of_stores_are_told_in_words() {
    let lake = Lake::with_people();
    lake.server.put("lake", "empty/a.parquet", "");
    lake.server.put("lake", "hidden/_SUCCESS", "x");
    let refused = "check s3://lake//in --quasi age --k 2";
    lake.run(refused).exit(2).says("no empty part");
    lake.server.put("lake", "year=2024/a.parquet", fs::read(lake.place.path("in.parquet")).unwrap());
    lake.server.put("lake", "mixed/a.parquet", fs::read(lake.place.path("in.parquet")).unwrap());
    lake.server.put("lake", "mixed/b.csv", "a\n1\n");
    let one = people();
    lake.place.parquet("one.parquet", &one.project(&[0, 1]).unwrap());
    lake.put("schemas/a.parquet", &lake.place.path("in.parquet"));
    lake.put("schemas/b.parquet", &lake.place.path("one.parquet"));
    let before = lake.place.tree();
    let release = |input: &str, variables: &[(&str, &str)]| {
        let ran = lake.run_with(&format!("release {input} --policy p.toml --to out"), variables);
        assert_eq!(lake.place.tree(), before);
        ran
    };
    for (input, part) in [
        ("s3://laek/in", "no such bucket"),
        ("s3://lake/inn", "no such object, folder or glob"),
        ("s3://lake/inn/", "no such object, folder or glob"),
        ("s3://lake/in/x.parquet", "no such object"),
        ("s3://lake/in/x*", "no file found"),
        ("s3://lake/hidden", "no file found"),
        ("s3://lake/empty", "input object s3://lake/empty/a.parquet: the file is empty"),
        ("s3://lake/mixed", "Parquet and CSV files are mixed"),
        ("s3://lake/schemas", "column `"),
        ("s3://lake/year=2024/../x", "cannot be read; rename it"),
    ] {
        release(input, &[])
            .exit(3)
            .says(part)
            .says(input.split('*').next().unwrap().trim_end_matches("inn/"));
    }
    release("s3://lake/*/a.parquet", &[]).exit(3).says("`empty/a.parquet` lies beside the folders of `year`");
    let denied = "the store refuses the credentials; check AWS_ACCESS_KEY_ID";
    release("s3://lake/in", &[("AWS_ACCESS_KEY_ID", "other")]).exit(3).says(denied).says("s3://lake/in");
    let refused = |variable: &str, value: &str, part: &str| {
        let ran = lake.run_with("check s3://lake/in --quasi age --k 2", &[(variable, value)]);
        ran.exit(2).says(variable).says(part);
    };
    refused("AWS_ENDPOINT", "127.0.0.1:9000", "expected an address such as");
    refused("AWS_REGION", "eu-central-1\r", "a line break");
    refused("AWS_SESSION_TOKEN", "to ken", "a blank");
    refused("AWS_ALLOW_HTTP", "test-secret", "a switch such as allow_http is `true` or `false`");
    refused("AWS_TIMEOUT", "", "a time such as timeout `30 seconds`");
    refused("AWS_ENDPOINT_URL_S3", "127.0.0.1:9000", "expected an address such as");
    let down = [("AWS_ENDPOINT", "http://127.0.0.1:1")];
    release("s3://lake/in", &down).exit(3).says("the store cannot be reached").says("s3://lake/in");
    release("s3://lake/in", &[("AWS_ALLOW_HTTP", "false")])
        .exit(3)
        .says("http://, which sends everything unencrypted");
    // Credentials that expire in mid-run.
    let read = lake.first_read("check s3://lake/in --quasi zip --k 1");
    lake.server.expire_credentials_after(read);
    release("s3://lake/in", &[]).exit(3).says("the credentials have expired").says("s3://lake/in");
    let lake = Lake::with_people();
    lake.run("check s3://lake/in --quasi age --k 1").exit(0);
    let list = lake.server.requests().iter().position(|request| request.query.contains_key("list-type"));
    for (fault, part) in [
        (Fault::Status(403, "AccessDenied"), "the store denies access"),
        (Fault::Status(301, "PermanentRedirect"), "another region"),
        (Fault::Status(403, "RequestTimeTooSkewed"), "the clock"),
    ] {
        lake.server.fault(list.unwrap(), fault);
        lake.run("check s3://lake/in --quasi age --k 1").exit(3).says(part).says("s3://lake/in");
    }
    lake.run("check s3://key:test-secret@lake/in --quasi age --k 1").exit(2).says("no key or password");
    lake.run("check s3://lake/in --quasi age --k 1 --option aws_regoin=x")
        .exit(2)
        .says("--option aws_regoin: no store has it");
    lake.run("check s3://lake/in --quasi age --k 1 --option test-secret").exit(2).says("expected KEY=VALUE");
}

#[test]
fn what_passes_by_itself_is_tried_again() {
    let lake = Lake::with_people();
    let line = "check s3://lake/in --policy p.toml --format json";
    let expected = lake.run(line).exit(1).out;
    lake.server.clear_requests();
    lake.run(line).exit(1);
    for at in 0..lake.server.requests().len() {
        for fault in [
            Fault::Status(503, "SlowDown"),
            Fault::CutBeforeActing,
            Fault::Cut,
            Fault::Wait(Duration::from_millis(20)),
        ] {
            lake.server.fault(at, fault);
            let ran = lake.run(line);
            // A listing that is cut is not repeated: it fails.
            assert!(ran.code == 1 && ran.out == expected || ran.code == 3, "{at} {fault:?}: {ran:?}");
            assert!(ran.code == 1 || fault == Fault::Cut, "{at} {fault:?}: {ran:?}");
        }
    }
}

#[test]
fn options_go_before_the_environment() {
    let lake = Lake::with_people();
    let endpoint = lake.server.endpoint();
    let wrong = [("AWS_ENDPOINT", "http://127.0.0.1:1"), ("AWS_ALLOW_HTTP", "false")];
    let line = format!(
        "check s3://lake/in --quasi age --k 1 --option aws_endpoint={endpoint} --option ALLOW_HTTP=true"
    );
    lake.run_with(&line, &wrong).exit(0);
}

#[test]
fn a_policy_and_its_files_may_lie_in_a_store() {
    let lake = Lake::with_people();
    let place = &lake.place;
    let hierarchy = "age,wide\n".to_owned() + &(20..50).map(|age| format!("{age},all\n")).collect::<String>();
    let policy = |file: &str| POLICY.replace("range = [10, 20]", &format!("file = \"{file}\""));
    lake.server.put("lake", "policies/p.toml", policy("levels/age.csv"));
    lake.server.put("lake", "policies/levels/age.csv", hierarchy.as_str());
    place.write("age.csv", &hierarchy);
    place.write("near.toml", policy("age.csv"));
    place.write("far.toml", policy("s3://lake/policies/levels/age.csv"));
    let check = |policy: &str| lake.run(&format!("check in.parquet --policy {policy} --format json"));
    let expected = check("near.toml");
    for policy in ["s3://lake/policies/p.toml", "far.toml"] {
        let found = check(policy);
        assert_eq!((found.code, found.out), (expected.code, expected.out.clone()), "{policy}: {}", found.err);
    }
    lake.run("check in.parquet --policy s3://lake/policies/x.toml")
        .exit(3)
        .says("policy s3://lake/policies/x.toml: no such object");
    lake.run("check in.parquet --policy s3://laek/p.toml")
        .exit(3)
        .says("policy s3://laek/p.toml: there is no such bucket");
    // A population, beside the policy or at an address.
    let k_map = "[[require]]\n    model = \"k_map\"\n    k = 3\n    [columns]";
    let of = |population: &str| {
        let policy = POLICY.replace("k = 3\n", "").replace("[columns]", k_map);
        format!("population = \"{population}\"\n{policy}")
    };
    lake.server.put("lake", "policies/all.parquet", fs::read(place.path("in.parquet")).unwrap());
    lake.server.put("lake", "policies/of.toml", of("all.parquet"));
    place.write("of.toml", of("in.parquet"));
    place.write("of_far.toml", of("s3://lake/in"));
    let search =
        |policy: &str| lake.run(&format!("search in.parquet --policy {policy} --format json")).exit(0);
    let expected = search("of.toml").out;
    for policy in ["s3://lake/policies/of.toml", "of_far.toml"] {
        assert_eq!(search(policy).out, expected, "{policy}");
    }
    lake.server.remove("lake", "policies/levels/age.csv");
    check("far.toml").exit(3).says("hierarchy file s3://lake/policies/levels/age.csv: no such object");
    lake.run("release s3://lake/in --policy p.toml --to s3://lake/out")
        .exit(2)
        .says("needs a place for its private record");
}

#[test]
fn a_web_server_is_read() {
    let lake = Lake::new();
    lake.server.add_bucket("public");
    lake.server.put("public", "in 1.parquet", fs::read(lake.place.path("in.parquet")).unwrap());
    let address = format!("{}/public/in%201.parquet", lake.server.endpoint());
    let check = |input: &str| lake.run(&format!("check {input} --policy p.toml --format json"));
    assert_eq!(without_names(&check(&address)), without_names(&check("in.parquet")));
    let folder = format!("{}/public/", lake.server.endpoint());
    check(&folder).exit(3).says("of a web server each file is named");
    check(&format!("{address}?sig=test-secret")).exit(2).says("a query may hold a signature");
    check(&format!("{}/public/x.parquet", lake.server.endpoint())).exit(3).says("no such object");
    check(&format!("{}/lake/x.parquet", lake.server.endpoint())).exit(3).says("without a login");
    for line in [
        "risk IN --policy p.toml",
        "search IN --policy p.toml",
        "link IN IN --individual zip --on age,cost",
        "hierarchy IN age --by 'range = [10, 20]'",
        "sql -c 'SELECT count(*) AS n FROM \"IN\"'",
    ] {
        let of = |input: &str| lake.run(&line.replace("IN", input));
        let (far, near) = (of(&address), of("in.parquet"));
        assert_eq!(far.code, near.code, "{line}: {far:?}");
        // The address is shown without its escapes.
        let shown = address.replace("%20", " ");
        assert_eq!(
            far.out.replace(&shown, "IN").replace(&address, "IN"),
            near.out.replace("in.parquet", "IN")
        );
    }
    lake.run(&format!("release {address} --policy p.toml --to of_web")).exit(0);
    lake.run(&format!("verify of_web --input {address}")).exit(0);
}

#[test]
fn sql_reads_a_copy_once_and_no_changed_object() {
    let lake = Lake::with_people();
    lake.server.clear_requests();
    let sql = "SELECT count(*) FROM ''s3://lake/in''; SELECT count(*) FROM ''s3://lake/in''; \
               CREATE VIEW v AS SELECT * FROM ''s3://lake/in''; SELECT max(age) FROM v; \
               SELECT count(*) AS n FROM anonymize(''s3://lake/in'', ''p.toml'')"
        .replace("''", "\"");
    let sql = sql.replace("anonymize(\"s3://lake/in\", \"p.toml\")", "anonymize('s3://lake/in', 'p.toml')");
    lake.place.write("q.sql", &sql);
    let ran = lake.run("sql -f q.sql");
    assert_eq!(ran.code, 0, "{ran:?}");
    let reads = lake.server.requests().iter().filter(|request| request.range.is_some()).count();
    assert_eq!(reads, 2, "each object is copied once");
}

/// Numbers that are hard to compress.
fn noise(seed: i64) -> ArrayRef {
    let number = |n: i64| {
        n.wrapping_add(seed)
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .rotate_left(29)
            .wrapping_mul(0x1405_7b7e_f767_814f)
    };
    Arc::new((0..100_000).map(|n| Some(number(n))).collect::<Int64Array>())
}

/// Objects of about 3 MB in two folders, whose columns have about 800 kB each.
fn large() -> Lake {
    let lake = Lake::new();
    for year in [2021, 2024] {
        let columns = ["a", "b", "c", "d"].into_iter().enumerate();
        let columns = columns.map(|(at, name)| (name, noise(year * 10 + at as i64)));
        lake.place.parquet("large.parquet", &table(columns));
        lake.put(&format!("large/year={year}/x.parquet"), &lake.place.path("large.parquet"));
    }
    lake
}

/// The bytes that were asked for, by the folder of the object.
fn bytes_read(lake: &Lake, folder: &str) -> u64 {
    let requests = lake.server.requests();
    let ranges = requests
        .iter()
        .filter(|request| request.path.contains(folder))
        .filter_map(|request| request.range.clone());
    let bytes = ranges.map(|range| {
        let (start, end) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        end.parse::<u64>().unwrap() - start.parse::<u64>().unwrap() + 1
    });
    bytes.sum()
}

#[test]
fn of_parquet_what_a_query_needs_is_read_once() {
    let lake = large();
    let query = |sql: &str| {
        lake.server.clear_requests();
        let sql = sql.replace("IN", "\"s3://lake/large\"");
        let ran = lake.run(&format!("sql --threads 1 --format json -c '{sql}'"));
        assert_eq!(ran.code, 0, "{ran:?}");
        (ran, bytes_read(&lake, "year=2021"), bytes_read(&lake, "year=2024"))
    };
    let size = fs::metadata(lake.place.path("large.parquet")).unwrap().len();
    let (answer, first, second) = query("SELECT count(*) AS n FROM IN WHERE year = 2024 AND b IS NOT NULL");
    assert_eq!(answer.json()[0]["n"], 100_000);
    assert!(first <= 256 << 10, "of the other folder only the footer is read: {first}");
    let ranges: Vec<_> = lake.server.requests().iter().map(|r| (r.path.clone(), r.range.clone())).collect();
    assert!(second > 800_000 && second < size / 2, "{second} of {size}: {ranges:?}");
    let (_, first, second) =
        query("SELECT max(a), max(d) FROM IN; SELECT min(a), min(d) FROM IN; SELECT max(b + c) FROM IN");
    assert_eq!((first, second), (size, size), "each byte is read once");
    // A release is of what was listed, too, where the bytes come later.
    let policy =
        "k = 2\nrows_are_individuals = true\nothers = \"drop\"\n[columns]\nyear = { role = \"quasi\" }\n";
    lake.place.write("p.toml", policy);
    lake.server.clear_requests();
    let line = "release s3://lake/large --policy p.toml --to out --overwrite --threads 1";
    assert_eq!(lake.run(line).code, 0);
    assert_eq!(bytes_read(&lake, "year=2021"), size, "its digest is of all bytes");
    let before = lake.place.tree();
    let footers = lake.server.requests().iter().filter(|request| request.range.is_some()).count();
    let first = lake.server.requests().iter().position(|request| request.range.is_some()).unwrap();
    assert!(footers > 2);
    // Before the columns are read, and in the middle of them.
    for at in [first + 2, first + 4] {
        let lake = large();
        lake.place.write("p.toml", policy);
        let empty = lake.place.tree();
        let change = |store: &mut Store| {
            for year in [2021, 2024] {
                store.put("lake", &format!("large/year={year}/x.parquet"), "PAR1");
            }
        };
        lake.server.before(at, Box::new(change));
        let ran = lake.run(line).exit(3).says("input object s3://lake/large/year=.../x.parquet");
        assert!(ran.err.contains("changed"), "{ran:?}");
        assert_eq!(lake.place.tree(), empty);
    }
    assert_eq!(lake.place.tree(), before);
}
