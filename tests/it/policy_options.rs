//! `--policy -` and `--set` in every command that takes a policy; what is wrong with one, all at once; the
//! names of columns on the command line; files that are not there.

use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use datafusion_kanon::internals::error::{Error, ErrorKind};
use datafusion_kanon::internals::sql::register_all;
use serde_json::{Value, json};

use crate::command::{Place, Ran};

const ROWS: &str = "age,zip,ill\n31,02138,flu\n32,02138,flu\n33,02139,gout\n34,02139,flu\n51,02138,gout\n52,02138,flu\n53,02139,flu\n54,02139,gout\n";

const POLICY: &str = "\
k = 2 # few
rows_are_individuals = true
accept_homogeneity = [\"ill\"]
[columns]
zip = { role = \"quasi\", hierarchy = { file = \"zips.csv\" } }
age = { role = \"quasi\", hierarchy = { range = [10, 20] } }
ill = { role = \"sensitive\", allow_unique = true }
";

fn place() -> Place {
    let place = Place::new();
    place.write("in.csv", ROWS);
    place.write("p.toml", POLICY);
    place.write("zips.csv", "02138,0213*\n02139,0213*\n");
    place
}

/// The error as JSON.
fn error(ran: Ran, exit: i32) -> Value {
    serde_json::from_str(&ran.exit(exit).err).unwrap()
}

#[test]
fn a_policy_may_come_from_standard_input() {
    let place = place();
    place.write("deeper/p.toml", POLICY);
    let from_file = place.run("release in.csv --policy p.toml --to by_file").exit(0).out;
    let piped = place.run_on("release in.csv --policy - --to piped", None, POLICY).exit(0).out;
    assert_eq!(place.files("by_file"), place.files("piped"));
    assert_eq!(from_file.replace("by_file", "piped"), piped);
    // Its hierarchy files are relative to the current folder, not to some other one.
    place.run("search in.csv --policy deeper/p.toml").exit(3).says("deeper/zips.csv: there is no such file");
    for line in [
        "check in.csv --policy -",
        "risk in.csv --policy -",
        "search in.csv --policy -",
        "verify piped --input in.csv --policy -",
        "link in.csv piped --policy -",
        "hierarchy in.csv age --by 'range = [10]' --policy -",
        "hierarchy check zips.csv --input in.csv --column zip --policy -",
    ] {
        let exit = i32::from(line.starts_with("check"));
        let piped = place.run_on(line, None, POLICY).exit(exit).out;
        let by_file = place.run(&line.replace("--policy -", "--policy p.toml")).exit(exit).out;
        assert_eq!(piped, by_file.replace("--policy p.toml", "--policy -"), "{line}");
        place.run_on(line, None, "k = 2\n[colums]\n").exit(2).says("policy -: colums: unknown key");
    }
    for line in [
        "check - --policy -",
        "risk - --policy -",
        "search - --policy -",
        "release - --policy - --to out",
        "verify piped --input - --policy -",
        "link - piped --policy -",
        "hierarchy - age --by 'range = [10]' --policy -",
        "hierarchy check zips.csv --input - --policy -",
    ] {
        let why = "policy -: standard input holds the table; give a file for one of the two";
        place.run_on(line, None, POLICY).exit(2).says(why);
    }
    place.run_on("check - --policy p.toml", None, ROWS).exit(1);
}

#[test]
fn keys_of_a_policy_are_set() {
    let place = place();
    // As if the file said so; the last of two says it.
    place.write("other.toml", POLICY.replace("k = 2", "k = 4").replace("[10, 20]", "[5, 40]"));
    let set = "--set k=3 --set 'columns.age.hierarchy = { range = [5, 40] }' --set k=4";
    let (of_file, of_set) = ("--policy other.toml", format!("--policy p.toml {set}"));
    place.run("release in.csv --policy other.toml --to out").exit(0);
    for line in [
        "check in.csv",
        "risk in.csv",
        "search in.csv",
        "search in.csv --minimal",
        "verify out --input in.csv",
        "link in.csv out",
        "hierarchy in.csv age --by 'range = [10]'",
        "hierarchy check zips.csv --input in.csv --column zip",
    ] {
        let [by_file, by_set] = [of_file, &of_set].map(|policy| place.run(&format!("{line} {policy}")));
        let exit = i32::from(line.starts_with("check"));
        // The command that is shown next has the keys, too.
        let by_file = by_file.exit(exit).out.replace(of_file, &of_set);
        assert_eq!(by_file, by_set.exit(exit).out, "{line}");
    }
    // The record holds the policy that was used.
    place.run("release in.csv --policy other.toml --to by_file").exit(0);
    place.run(&format!("release in.csv {of_set} --to by_set")).exit(0);
    place.run("verify by_set --input in.csv").exit(0);
    place.run("verify by_set --input in.csv --policy other.toml").exit(0);
    place.run("release in.csv --recoding by_set.private.json --to again").exit(0);
    let parts = |out: &str| place.files(out).remove("part-00000.parquet").unwrap();
    assert_eq!(parts("by_set"), parts("by_file"));
    assert_eq!(parts("again"), parts("by_file"));
    // A word is a text, a new table appears, a column of any name is reached.
    place.write("dots.csv", ROWS.replace("zip", "z.ip"));
    place.write("dots.toml", POLICY.replace("zip =", "\"z.ip\" ="));
    let line = "search dots.csv --policy dots.toml --set method=mondrian --set 'input.delimiter=\",\"'";
    let text = place.run_on(line, Some("--set=columns.\"z.ip\".weight=2"), "").exit(0).out;
    assert!(text.contains("mondrian"), "{text}");
}

#[test]
fn a_wrong_key_points_to_its_option() {
    let place = place();
    let line = "search in.csv --policy p.toml";
    for (set, why) in [
        ("k=0", "--set k=0: k: expected an integer of at least 1, found 0"),
        (
            "columns.age.wieght=3",
            "--set columns.age.wieght=3: columns.age.wieght: unknown key; did you mean `weight`?",
        ),
        (
            "columns.age.max_level=9",
            "--set columns.age.max_level=9: columns.age.max_level: expected a level from 0 to",
        ),
        ("k.l=1", "--set k.l=1: `k` is not a table"),
        ("k", "expected KEY=VALUE, such as k=10 or columns.age.weight=3"),
        ("k=", "expected KEY=VALUE"),
        ("'k=two words'", "the value is not TOML"),
        ("k..l=1", "`k..l` is no key"),
    ] {
        place.run(&format!("{line} --set {set}")).exit(2).says(why);
    }
    // What the file says stays the file's.
    place.write("p.toml", POLICY.replace("range", "rnge"));
    let said = place.run(&format!("{line} --set k=0")).exit(2).err;
    let places: Vec<&str> = said.lines().filter_map(|line| line.split(": ").nth(1)).collect();
    assert_eq!(places, ["--set k=0", "policy p.toml"], "{said}");
    place.run("search in.csv --set k=3").exit(2).says("--policy");
    place.run("check in.csv --quasi age --k 2 --set k=3").exit(2).says("--policy");
    let again = "release in.csv --recoding x.private.json --to out --set k=3";
    place.run(again).exit(2).says("--policy");
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let place = place();
    place.write(
        "p.toml",
        POLICY
            .replace("k = 2", "k = 0")
            .replace("hierarchy", "hierachy")
            .replace("[columns]", "[input]\nheadr = true\n[columns]"),
    );
    let expected = [
        "k: expected an integer of at least 1, found 0",
        "columns.zip.hierachy: unknown key; did you mean `hierarchy`?",
        "columns.age.hierachy: unknown key; did you mean `hierarchy`?",
        "input.headr: unknown key; did you mean `header`?",
    ]
    .map(|why| format!("policy p.toml: {why}"));
    let text = place.run("search in.csv --policy p.toml").exit(2).err;
    assert_eq!(text, expected.iter().map(|why| format!("kanon: {why}\n")).collect::<String>());
    let said = error(place.run("search in.csv --policy p.toml --format json"), 2);
    let all: Vec<Value> = expected.iter().map(|why| json!({ "error": why, "code": "policy" })).collect();
    assert_eq!(said, json!({ "error": expected[0], "code": "policy", "exit_code": 2, "errors": all }));
    // Against the table.
    let wrong = POLICY.replace("age =", "agee =").replace("zip =", "zipp =");
    place.write("p.toml", wrong.replace("accept_homogeneity = [\"ill\"]\n", ""));
    let text = place.run("search in.csv --policy p.toml").exit(2).err;
    for said in [
        "columns.zipp: the input has no",
        "columns.agee: the input has no",
        "without a role: age, zip",
        "columns.ill: no model",
    ] {
        assert!(
            text.lines().any(|line| line.starts_with("kanon: ") && line.contains(said)),
            "no `{said}` in {text}"
        );
    }
    // One alone keeps its shape.
    place.write("p.toml", POLICY.replace("k = 2", "k = 0"));
    let said = error(place.run("search in.csv --policy p.toml --format json"), 2);
    assert_eq!(said.as_object().unwrap().len(), 3, "{said}");
}

/// `init` shows where the key that a refusal names goes.
#[test]
fn the_proposed_policy_has_a_place_for_what_is_accepted() {
    let place = place();
    place.write("in.csv", ROWS.replace("ill", "diagnosis"));
    let policy = place.run("init in.csv").exit(0).out;
    let at = |part: &str| policy.find(part).unwrap_or_else(|| panic!("no `{part}` in {policy}"));
    assert!(at("\n# accept_homogeneity = []\n") < at("\n["), "{policy}");
}

#[test]
fn a_comma_in_a_name_stands_in_quotes() {
    let place = Place::new();
    place.write("in.csv", "\"a,b\",sex,\"who, where\",ill\n1,f,x,flu\n1,f,y,flu\n1,m,z,gout\n");
    place.write("list.csv", "\"who, where\",\"a,b\",sex\nw,1,f\nv,1,m\n");
    place.run("check in.csv --quasi '\"a,b\",sex' --k 1").exit(0);
    let found = place.run("risk in.csv --quasi '\"a,b\",sex' --format json").exit(0).json();
    assert_eq!(found["classes"], 2);
    let found =
        place.run("risk in.csv --quasi 'sex,\"a,b\"' --individual 'who, where' --format json").exit(0);
    assert_eq!(found.json()["classes"], 2);
    place.run("check in.csv --quasi sex --require 'l_diversity(2, \"a,b\")'").exit(1);
    place.run("check in.csv --quasi '\"a,b\"' --require 'l_diversity(2, \"sex\")'").exit(0);
    let linked = "link list.csv in.csv --on '\"a,b\",sex' --individual '\"who, where\"' --individual-of-b 'who, where' --sensitive '\"ill\"'";
    let found = place.run(&format!("{linked} --format json")).exit(0).json();
    assert_eq!((&found["individuals"], &found["unique"]), (&json!(2), &json!(1)));
    assert_eq!(found["homogeneous"][0]["individuals"], 2);
    place.run("hierarchy in.csv 'who, where' --by 'prefix = [1]'").exit(0);
    place.run("hierarchy in.csv '\"who, where\"' --by 'prefix = [1]'").exit(0);
    place.run("check in.csv --quasi a,b --k 1").exit(2).says("`a`");
    place.run("check in.csv --quasi '\"a,b' --k 1").exit(2).says("a quote is not closed");
    for command in ["check", "risk", "link"] {
        let help = place.run(&format!("{command} --help")).exit(0).out;
        assert!(help.contains("'\"a,b\",sex'"), "{help}");
    }
}

#[test]
fn a_file_that_is_not_there_has_one_code() {
    let place = place();
    place.write("q.toml", POLICY.replace("zips.csv", "zips.parquet"));
    let k_map = "[[require]]\nmodel = \"k_map\"\nk = 2\n";
    let population = POLICY.replace("hierarchy = { file = \"zips.csv\" }", "weight = 2");
    place.write("population.toml", format!("population = \"nobody.csv\"\n{population}{k_map}"));
    place.run("release in.csv --policy p.toml --to out").exit(0);
    std::fs::remove_file(place.path("zips.csv")).unwrap();
    for line in [
        "search none.csv --policy p.toml",
        "search in.csv --policy none.toml",
        "search in.csv --policy p.toml",
        "search in.csv --policy q.toml",
        "search in.csv --policy population.toml",
        "check in.csv --policy none.toml",
        "link none.csv in.csv --on age",
        "link in.csv out --policy none.toml",
        "verify out --input none.csv",
        "verify out --input in.csv --policy none.toml",
        "release in.csv --recoding none.json --to again",
        "release in.csv --policy p.toml --to again --report none/report.json",
        "hierarchy check none.csv --input in.csv",
        "hierarchy in.csv age --by 'range = [10]' --policy none.toml",
        "explain none",
        "sql -f none.sql",
    ] {
        let said = error(place.run(&format!("{line} --format json")), 3);
        assert_eq!((&said["code"], &said["exit_code"]), (&json!("not_found"), &json!(3)), "{line}: {said}");
    }
}

/// A service tells a wrong policy from wrong SQL by the kind and the code of our error.
#[tokio::test]
async fn a_wrong_policy_in_sql_is_an_error_of_ours() {
    let session = SessionContext::new();
    register_all(&session).unwrap();
    let table = "CREATE TABLE t AS VALUES (31, 'flu'), (32, 'flu'), (33, 'gout'), (34, 'flu')";
    session.sql(table).await.unwrap().collect().await.unwrap();
    let columns = "[columns]\ncolumn1 = { role = \"quasi\" }\n";
    for function in ["anonymize", "lattice"] {
        for (policy, code, lines) in [
            ("k = 0\nmethods = 1", "policy", &["policy: methods: unknown key", "policy: k: expected"][..]),
            ("k = ", "policy", &["policy: line 1, column "]),
            (
                "k = 2\n[columns]\nage = { role = \"quasi\" }",
                "other_columns",
                &["columns.age: the input has no", "columns: 2 columns"],
            ),
            (
                &format!("k = 2\n{columns}column2 = {{ role = \"sensitive\" }}"),
                "policy",
                &["columns.column2: no model"],
            ),
            (
                &format!("k = 2\n{columns}column2 = {{ role = \"quasi\", hierarchy = {{ range = [5] }} }}"),
                "policy",
                &["columns.column2.hierarchy"],
            ),
        ] {
            let error = session.sql(&format!("SELECT * FROM {function}(t, '{policy}')")).await.unwrap_err();
            let DataFusionError::External(own) = error.find_root() else { panic!("{policy}: {error:?}") };
            let own = own.downcast_ref::<Error>().unwrap();
            assert_eq!((own.kind(), own.code()), (ErrorKind::Policy, code), "{policy}: {own}");
            let said: Vec<&str> = own.each().map(Error::message).collect();
            assert_eq!(said.len(), lines.len(), "{said:?}");
            for (said, line) in said.iter().zip(lines) {
                assert!(said.starts_with(&format!("{function}: {line}")), "{said}");
            }
        }
        let error = session.sql(&format!("SELECT * FROM {function}(t)")).await.unwrap_err();
        assert!(matches!(error.find_root(), DataFusionError::Plan(_)), "{error:?}");
    }
}
