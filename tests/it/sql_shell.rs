//! `kanon sql` from outside: statements and commands, what is printed, files by name, and what errors say.

use std::io::Read;
use std::process::Stdio;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray, UInt64Array};
use serde_json::{Value, json};

use crate::command::{Place, Ran, table};
use crate::house::root;

/// A folder with the printed tables of the papers.
fn place() -> Place {
    let place = Place::new();
    for name in ["scores.csv", "marital.csv", "patients_age.csv"] {
        place.write(name, std::fs::read(root().join("data/papers").join(name)).unwrap());
    }
    place
}

fn ask(place: &Place, line: &str, text: &str) -> Ran {
    place.run_on(&format!("sql {line} -c"), Some(text), "")
}

const SCORES: &str = "SELECT age, CAST(\"preTestScore\" AS INT) AS pre FROM 'scores.csv' WHERE age > 40 ORDER BY CAST(age AS INT)";

#[test]
fn results_are_tables_csv_or_json() {
    let place = place();
    assert_eq!(
        ask(&place, "", SCORES).exit(0).out,
        "+-----+-----+\n\
         | age | pre |\n\
         +-----+-----+\n\
         | 42  | 4   |\n\
         | 52  | 24  |\n\
         | 73  | 3   |\n\
         +-----+-----+\n\
         (3 rows)\n"
    );
    assert_eq!(ask(&place, "--output csv", SCORES).exit(0).out, "age,pre\n42,4\n52,24\n73,3\n");
    let json = "[\n{\"age\":42,\"pre\":4},\n{\"age\":52,\"pre\":24},\n{\"age\":73,\"pre\":3}\n]\n";
    assert_eq!(ask(&place, "--output json", SCORES).exit(0).out, json);
    assert_eq!(ask(&place, "--format json", SCORES).exit(0).out, json);
    assert_eq!(ask(&place, "--format json --output csv", "SELECT 1 AS n").exit(0).out, "n\n1\n");
}

#[test]
fn empty_results_null_and_odd_values() {
    let place = place();
    let nothing = "SELECT 1 AS a, 'x' AS b WHERE false";
    assert_eq!(
        ask(&place, "", nothing).exit(0).out,
        "+---+---+\n| a | b |\n+---+---+\n+---+---+\n(0 rows)\n"
    );
    assert_eq!(ask(&place, "--output csv", nothing).exit(0).out, "a,b\n");
    assert_eq!(ask(&place, "--output json", nothing).exit(0).json(), json!([]));
    // Neither a cell nor a name commands the terminal.
    let ran = ask(&place, "", "SELECT a FROM (SELECT 1 AS \"b\u{1b}[2J\")").exit(2);
    assert!(ran.err.contains("b\u{FFFD}[2J") && !ran.err.contains('\u{1b}'), "{}", ran.err);
    let ran = ask(&place, "", "SELECT chr(27) || '[2J' AS a").exit(0);
    assert_eq!(ran.out, "+------+\n| a    |\n+------+\n| \u{FFFD}[2J |\n+------+\n(1 row)\n");

    let columns: [(&str, ArrayRef); 4] = [
        (
            "float",
            Arc::new(Float64Array::from(vec![Some(0.1), Some(f64::NAN), Some(f64::NEG_INFINITY), None])),
        ),
        ("big", Arc::new(UInt64Array::from(vec![Some(u64::MAX), Some((1 << 53) + 1), Some(0), None]))),
        ("small", Arc::new(Int64Array::from(vec![Some(i64::MIN), Some(-1), Some(0), None]))),
        ("text", Arc::new(StringArray::from(vec![Some("a,b"), Some("say \"so\"\nü"), Some(""), None]))),
    ];
    place.parquet("odd.parquet", &table(columns));
    let odd = "SELECT * FROM 'odd.parquet' ORDER BY big DESC NULLS LAST";
    assert_eq!(
        ask(&place, "--output csv", odd).exit(0).out,
        "float,big,small,text\n\
         0.1,18446744073709551615,-9223372036854775808,\"a,b\"\n\
         NaN,9007199254740993,-1,\"say \"\"so\"\"\nü\"\n\
         -inf,0,0,\n\
         ,,,\n"
    );
    // JSON has no NaN and no infinity; its integers are written with all their digits.
    assert_eq!(
        ask(&place, "--output json", odd).exit(0).out,
        "[\n\
         {\"float\":0.1,\"big\":18446744073709551615,\"small\":-9223372036854775808,\"text\":\"a,b\"},\n\
         {\"float\":null,\"big\":9007199254740993,\"small\":-1,\"text\":\"say \\\"so\\\"\\nü\"},\n\
         {\"float\":null,\"big\":0,\"small\":0,\"text\":\"\"},\n\
         {\"float\":null,\"big\":null,\"small\":null,\"text\":null}\n\
         ]\n"
    );
    let drawn = ask(&place, "", "SELECT NULL AS a, '' AS b").exit(0).out;
    assert!(drawn.contains("| NULL |   |"), "{drawn}");

    let twice = "SELECT * FROM (SELECT 1 AS a) AS x JOIN (SELECT 1 AS a) AS y ON x.a = y.a";
    ask(&place, "--output json", twice).exit(2).says("two columns are named `a`");
    ask(&place, "--output csv", twice).exit(0);
    ask(&place, "--output csv", "SELECT struct(1, 2) AS s").exit(2).says("column `s` is nested");
    assert_eq!(ask(&place, "--output json", "SELECT struct(1) AS s").exit(0).json()[0]["s"]["c0"], 1);
}

#[test]
fn statements_come_from_words_files_and_standard_input() {
    let place = place();
    place.write("one.sql", "-- the first; not a statement\nSELECT ';' AS a;;\nSELECT 2 AS b");
    place.write("two.sql", "\\timing\n\\timing\n  \\o json\n/* a\n\\q\n*/ SELECT\n1 AS c;\n\\o csv;\n");
    assert_eq!(place.run("sql -f one.sql --output csv").exit(0).out, "a\n;\nb\n2\n");
    // Files first; what they set stays.
    let ran = place.run_on("sql -f two.sql -f one.sql -c", Some("SELECT 3 AS d"), "SELECT 4;");
    assert_eq!((ran.code, ran.out.as_str()), (0, "[\n{\"c\":1}\n]\na\n;\nb\n2\nd\n3\n"), "{ran:?}");
    assert_eq!(ran.err, "timing is on\ntiming is off\n");
    let read = |input: &str| place.run_on("sql --output csv", None, input).exit(0).out;
    assert_eq!(read("SELECT 1 AS a; SELECT 2 AS b;"), "a\n1\nb\n2\n");
    assert_eq!(read(""), "");
    assert_eq!(read("SELECT 1 AS a;\n\\q\nSELECT 2 AS b;"), "a\n1\n");
    assert_eq!(
        read("CREATE TABLE t AS SELECT 7 AS n; SET datafusion.execution.batch_size = 10;SELECT * FROM t"),
        "n\n7\n"
    );

    let timed = place.run_on("sql --output csv", None, "\\timing\nSELECT 1 AS a;");
    assert_eq!((timed.code, timed.out.as_str()), (0, "a\n1\n"));
    assert!(timed.err.starts_with("timing is on\n0.") && timed.err.ends_with(" s\n"), "{timed:?}");
    let help = place.run_on("sql", None, "\\?\n\\h\n");
    assert!(help.out.is_empty() && help.err.matches("\\d NAME").count() == 2, "{help:?}");
}

#[test]
fn tables_are_expanded() {
    let place = place();
    let rows = "SELECT age, 'x' AS \"a name\" FROM 'scores.csv' WHERE CAST(age AS INT) > 50 ORDER BY CAST(age AS INT)";
    let block = |number: i32, age: &str| {
        let head = format!("-[ RECORD {number} ]");
        format!("{head:-<40}\nage    | {age}\na name | x\n")
    };
    let expanded = [block(1, "52"), block(2, "73"), "(2 rows)\n".to_owned()].concat();
    let text = format!("\\x\n{rows};\nSELECT 1 AS a WHERE false;\n\\x\nSELECT 1 AS a;");
    let ran = place.run_on("sql", None, &text);
    let table = "+---+\n| a |\n+---+\n| 1 |\n+---+\n(1 row)\n";
    assert_eq!((ran.code, ran.out), (0, format!("{expanded}(0 rows)\n{table}")));
    assert_eq!(ran.err, "expanded is on\nexpanded is off\n");
    // Of tables only; the switch stays.
    let ran =
        place.run_on("sql --output csv -c \\x -c", Some(&format!("SELECT 1 AS a;\n\\o table\n{rows}")), "");
    assert_eq!((ran.code, ran.out), (0, format!("a\n1\n{expanded}")));
    let ran = place.run_on("sql -c \\x -c", Some("SELECT value FROM range(20000) ORDER BY value"), "");
    assert!(ran.out.ends_with("-\nvalue | 19999\n(20,000 rows)\n"), "{}", ran.err);
    assert!(ran.out.contains("\n-[ RECORD 9000 ]-"));
}

/// The result is the same; names are only a reason to say how the arguments are read.
#[test]
fn swapped_arguments_are_noted() {
    let place = place();
    let from = "FROM (VALUES ('a', 'x', '1'), ('a', 'x', '2')) AS t(patient_id, diagnosis, zip)";
    let note = |call: &str| {
        let ran = ask(&place, "--output csv", &format!("SELECT {call} AS n {from}"));
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.err
    };
    assert_eq!(
        note("k_anonymity_individuals(zip, diagnosis, CAST(patient_id AS VARCHAR))"),
        "note: k_anonymity_individuals takes `zip` as the individual and `patient_id` as a quasi-identifier; the order is \
         k_anonymity_individuals(individual, quasi-identifiers...)\n"
    );
    assert_eq!(
        note("l_diversity_individuals(diagnosis, patient_id, zip) + 1"),
        "note: l_diversity_individuals takes `diagnosis` as the individual and `patient_id` as the sensitive column; the \
         order is l_diversity_individuals(individual, sensitive, quasi-identifiers...)\n"
    );
    assert!(
        note("share_at_risk_individuals(0.2, zip, patient_id)")
            .contains("the order is share_at_risk_individuals(r, ")
    );
    for right in [
        "k_anonymity_individuals(patient_id, zip)",
        "l_diversity_individuals(patient_id, diagnosis, zip)",
        "k_anonymity_individuals(diagnosis, zip)",
        "k_anonymity(patient_id, zip)",
    ] {
        assert_eq!(note(right), "", "{right}");
    }
    // Not about an aggregate that only the table function calls.
    place.write("visits.csv", "patient_id,sex\n1,w\n2,m\n");
    let risk = "SELECT k FROM risk('visits.csv', patient_id, individual => 'sex')";
    assert_eq!(ask(&place, "--output csv", risk).exit(0).out, "k\n1\n");
}

/// The result is the engine's; the note says how text compares, once per column. Numbers with zeros before them are text.
#[test]
fn comparisons_of_text_of_csv_files_are_noted() {
    let place = place();
    place.write("num.csv", "age,Full Income,name\n09,0900,x\n10,1000,y\n55,20000,z\n");
    place.write("in/num.csv", "age\n09\n10\n");
    place.write("typed.csv", "age,born,name\n9,1999-01-31,x\n10,2000-01-01,y\n55,1980-12-31,z\n");
    place.parquet("num.parquet", &table([("age", Arc::new(StringArray::from(vec!["9", "10"])) as ArrayRef)]));
    let note = |column: &str, file: &str, written: &str| {
        format!(
            "note: `{column}` of {file} is text, so it is compared letter by letter: '10' comes before '9'; CAST({written} AS \
             DOUBLE) compares numbers, to_date({written}, '%d.%m.%Y') dates\n"
        )
    };
    let noted = |text: &str| {
        let ran = ask(&place, "--output csv", text);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.err
    };
    let (age, income) = (note("age", "num.csv", "age"), note("Full Income", "num.csv", "\"Full Income\""));
    assert_eq!(noted("SELECT max(age), min(\"Full Income\") FROM 'num.csv'"), format!("{age}{income}"));
    for text in [
        "SELECT * FROM 'num.csv' ORDER BY age",
        "SELECT age AS a FROM 'num.csv' ORDER BY a DESC",
        "SELECT age FROM 'num.csv' ORDER BY 1; SELECT max(age) FROM 'num.csv'",
        "SELECT * FROM 'num.csv' WHERE age > '50'",
        "SELECT * FROM 'num.csv' AS t WHERE '5' >= t.age",
        "SELECT age BETWEEN '5' AND '60' FROM 'num.csv'",
        "SELECT max(age) OVER () FROM 'num.csv'",
        "SELECT rank() OVER (ORDER BY age) AS n FROM 'num.csv'",
        "SELECT array_to_string(array_agg(name ORDER BY age), ' ') AS names FROM 'num.csv'",
        "SELECT greatest(age, '20') FROM 'num.csv'",
        "SELECT age FROM 'num.csv' GROUP BY age HAVING age < '5'",
        "SELECT 1 AS n FROM 'num.parquet' AS p JOIN 'num.csv' AS c ON c.age < p.age",
        "SELECT 1 AS n FROM 'num.parquet' WHERE age IN (SELECT max(age) FROM 'num.csv')",
        "WITH t AS (SELECT DISTINCT age FROM (SELECT * FROM 'num.csv' LIMIT 2)) SELECT max(age) FROM t",
        "SELECT max(age) FROM (SELECT age FROM 'num.csv' UNION ALL SELECT age FROM 'num.parquet')",
        "CREATE VIEW v AS SELECT age AS a FROM 'num.csv'; SELECT max(a) FROM v",
        "CREATE TABLE t AS SELECT name, age AS a FROM 'num.csv'; SELECT max(a) FROM t",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'num.csv'; SELECT max(age) FROM t",
    ] {
        assert_eq!(noted(text), age, "{text}");
    }
    let external =
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'in/' OPTIONS ('format.has_header' 'true'); ";
    assert_eq!(noted(&format!("{external} SELECT min(age) FROM t")), note("age", "t", "age"));
    for text in [
        "SELECT max(CAST(age AS INT)), count(DISTINCT age) AS n FROM 'num.csv'",
        "SELECT name FROM 'num.csv' WHERE age > 50 AND age = '55' AND name > 'm' ORDER BY CAST(age AS DOUBLE)",
        "SELECT max(age) FROM 'num.parquet'",
        "SELECT max(n) FROM (SELECT count(*) AS n FROM 'num.csv' GROUP BY age)",
        "SELECT max(age), min(born), greatest(age, 20) FROM 'typed.csv' WHERE age > '5' GROUP BY age ORDER BY age",
        "CREATE VIEW v AS SELECT age AS a FROM 'typed.csv'; SELECT max(a) FROM v",
        "CREATE TABLE t AS SELECT age AS a FROM 'typed.csv'; SELECT max(a) FROM t",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'typed.csv'; SELECT max(age) FROM t",
        "SELECT max(age) FROM (SELECT age FROM 'typed.csv' UNION ALL SELECT age FROM 'typed.csv')",
    ] {
        assert_eq!(noted(text), "", "{text}");
    }
    ask(&place, "--quiet", "SELECT max(age) FROM 'num.csv'").exit(0);
    assert_eq!(ask(&place, "--quiet", "SELECT max(age) FROM 'num.csv'").err, "");
}

#[test]
fn quiet_and_verbose() {
    let place = place();
    let text = "\\x\n\\timing\n\\timing\n\\d\nSELECT k_anonymity_individuals(z, user_id) AS k \
                FROM (SELECT 1 AS z, 2 AS user_id);";
    assert_eq!(place.run_on("sql", None, text).err.lines().count(), 5);
    let quiet = place.run_on("sql --quiet", None, text).exit(0);
    assert!(quiet.out.contains("\nk | 1\n"), "{quiet:?}");
    // What was asked for is no note.
    assert!(place.run_on("sql --quiet", None, "\\?").err.contains("\\d NAME"));
    let ran = place.run_on("sql --verbose", None, "SELECT 1; SELECT 2;");
    let lines: Vec<_> = ran.err.lines().collect();
    assert!(lines.len() == 3 && lines.iter().all(|line| line.ends_with(" s")), "{ran:?}");
    assert!(lines[2].starts_with("kanon: total: "), "{ran:?}");
}

/// In a pipe, no cell is cut.
#[test]
fn a_wide_table_is_whole_in_a_pipe() {
    let wide = ask(&place(), "", "SELECT repeat('ab', 500) AS a, repeat('cd', 500) AS b").exit(0).out;
    assert!(wide.contains(&"ab".repeat(500)) && wide.contains(&"cd".repeat(500)) && !wide.contains('…'));
}

#[test]
fn the_first_error_ends_it() {
    let place = place();
    // Nothing of a text runs whose form is wrong; what ran before an error stays.
    let ran = place.run_on("sql --output csv", None, "SELECT 1 AS a;\nSELEC 2;\n");
    ran.exit(2).says("Expected: an SQL statement, found: SELEC at Line: 2, Column: 1");
    let ran = place.run_on("sql --output csv", None, "SELECT 1 AS a;\n\\o csv\nSELEC 2;\nSELECT 3;");
    assert_eq!((ran.code, ran.out.as_str()), (2, "a\n1\n"));
    ran.says("at Line: 3, Column: 1");
    let ran = place.run_on("sql --output csv", None, "SELECT 1 AS a; SELECT b; SELECT 3;");
    assert_eq!((ran.code, ran.out.as_str()), (2, "a\n1\n"));
    place.write("wrong.sql", "SELECT 1 +;");
    place.run("sql -f wrong.sql").exit(2).says("kanon: wrong.sql: sql parser error");
    place.run("sql -f nothing.sql").exit(3).says("nothing.sql: there is no such file");
    place.run_on("sql", None, "\\y\n").exit(2).says("unknown command `\\y`; expected \\d");
    place.run_on("sql", None, "\\o xml\n").exit(2).says("unknown command `\\o xml`");
    let error = ask(&place, "--format json", "SELECT x").exit(2).err;
    assert!(serde_json::from_str::<Value>(&error).unwrap()["error"].is_string(), "{error}");
}

#[test]
fn files_are_tables_by_their_names() {
    let place = place();
    let one = |n: i64| table([("n", Arc::new(Int64Array::from(vec![n, 10 * n])) as ArrayRef)]);
    place.parquet("lake/a.parquet", &one(1));
    place.parquet("lake/sub/b.parquet", &one(2));
    place.arrow_file("n.arrow", &one(3));
    place.write("n.jsonl", "{\"n\": 4}\n{\"n\": 40}\n");
    place.write("Upper Case.csv", "n\n5\n");
    let sum = |from: &str| {
        let ran = ask(&place, "--output csv", &format!("SELECT sum(CAST(n AS INT)) AS n FROM {from}"));
        ran.exit(0).out
    };
    assert_eq!(sum("'lake/a.parquet'"), "n\n11\n");
    assert_eq!(sum("\"lake/a.parquet\""), "n\n11\n");
    assert_eq!(sum("'lake/*.parquet'"), "n\n11\n");
    assert_eq!(sum("'lake/**/*.parquet'"), "n\n33\n");
    assert_eq!(sum("lake"), "n\n33\n");
    assert_eq!(sum("'lake/'"), "n\n33\n");
    assert_eq!(sum("'n.arrow'"), "n\n33\n");
    assert_eq!(sum("'n.jsonl'"), "n\n44\n");
    assert_eq!(sum("'Upper Case.csv'"), "n\n5\n");
    assert_eq!(sum(&format!("'{}'", place.path("lake").display())), "n\n33\n");
    // Several at once, in a view and under a name; a table hides a folder.
    let text = "CREATE VIEW v AS SELECT n FROM lake; CREATE TABLE lake AS SELECT 1 AS n; \
                SELECT sum(v.n + t.n) AS n FROM v CROSS JOIN 'n.arrow' AS t CROSS JOIN lake;";
    assert_eq!(ask(&place, "--output csv", text).exit(0).out, "n\n198\n");
    // A folder without data has a name by chance.
    std::fs::create_dir(place.path("empty")).unwrap();
    let text = "CREATE TABLE empty AS SELECT 2 AS n; SELECT n FROM empty";
    assert_eq!(ask(&place, "--output csv", text).exit(0).out, "n\n2\n");
    ask(&place, "", "SELECT * FROM empty").exit(2).says("table 'empty' not found");
    place.write("empty/notes.md", "none");
    ask(&place, "", "SELECT * FROM empty").exit(2).says("table 'empty' not found");
    place.write("mixed/a.csv", "n\n1\n");
    place.parquet("mixed/a.parquet", &one(1));
    ask(&place, "", "SELECT * FROM mixed").exit(3).says("input `mixed`: CSV and Parquet files are mixed");
    // Cells are text, as in `kanon check`; the functions of this crate are there.
    let text = "SELECT k_anonymity(generalize_prefix(zip, 2)) AS k FROM 'patients_age.csv'";
    assert_eq!(ask(&place, "--output csv", text).exit(0).out, "k\n3\n");

    ask(&place, "", "SELECT * FROM 'nothing.csv'").exit(3).says("input `nothing.csv`: no such file");
    ask(&place, "", "SELECT * FROM 'scores.xml'").exit(3).says("scores.xml");
    ask(&place, "", "SELECT * FROM scores").exit(2).says("file names are quoted: FROM 'visits.parquet'");
    ask(&place, "", "SELECT * FROM scores.csv").exit(2).says("file names are quoted");
    ask(&place, "", "SELECT nothing FROM 'scores.csv'").exit(2).says("there is no column `nothing`");
    place.write("broken.parquet", "PAR1 no PAR1");
    ask(&place, "", "SELECT * FROM 'broken.parquet'").exit(3).says("input file broken.parquet: ");
}

/// Statistics of Parquet files leave NaN out: a column of 1.5 and NaN looks like one of 1.5 only.
#[test]
fn nan_is_not_lost() {
    let place = place();
    let floats = |values: Vec<f64>| table([("x", Arc::new(Float64Array::from(values)) as ArrayRef)]);
    place.parquet("nan/a.parquet", &floats(vec![1.5, 1.5, f64::NAN]));
    place.parquet("nan/b.parquet", &floats(vec![0.5; 3]));
    let made = "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'nan/'; ";
    for (table, text) in [("nan", ""), ("t", made)] {
        let text = format!(
            "{text} SELECT k_anonymity(x) AS k FROM {table}; SELECT count(*) AS n FROM {table} WHERE x > 1; \
             SELECT min(size) AS n FROM classes({table}, 'x');"
        );
        assert_eq!(ask(&place, "--output csv", &text).exit(0).out, "k\n1\nn\n3\nn\n1\n", "{table}");
    }
}

#[test]
fn tables_and_columns_are_listed() {
    let place = place();
    let list = |text: &str| place.run_on("sql --output csv", None, text).exit(0).out;
    let files = "marital.csv,CSV file\npatients_age.csv,CSV file\nscores.csv,CSV file\n";
    assert_eq!(list("\\d"), format!("name,kind\n{files}"));
    let made = "CREATE TABLE t AS SELECT 1 AS a; CREATE VIEW v AS SELECT 2 AS b; CREATE SCHEMA s; CREATE TABLE s.u AS SELECT 1 AS a;\n";
    assert_eq!(list(&format!("{made}\\d")), format!("name,kind\ns.u,table\nt,table\nv,view\n{files}"));
    let ran = place.run_on("sql", None, "CREATE TABLE t AS SELECT 1 AS a;\n\\d");
    assert!(ran.code == 0 && ran.out.contains("| t                | table    |"), "{ran:?}");
    assert_eq!(
        list("CREATE TABLE t AS SELECT 1 AS a; SHOW TABLES;"),
        "table_schema,table_name,table_type\npublic,t,BASE TABLE\n"
    );
    ran.says("\\d NAME lists the columns of a table or file: \\d 'visits.parquet'");
    let columns = "column_name,data_type,is_nullable\nmarital_status,Utf8View,YES\nwas_married,Utf8View,YES\n\
                   any,Utf8View,YES\n";
    assert_eq!(list("\\d marital.csv"), columns);
    assert_eq!(list("\\d 'marital.csv';"), columns);
    assert_eq!(
        list("CREATE TABLE t AS SELECT 1 AS a;\n\\d t"),
        "column_name,data_type,is_nullable\na,Int64,NO\n"
    );
    place.run_on("sql", None, "\\d nothing").exit(2).says("\\d lists the tables");
    place.run_on("sql", None, "\\d nothing.csv").exit(3).says("no such file");
}

/// Names decide: no file is opened, and what no query can name is not listed.
#[test]
fn files_of_every_format_are_listed() {
    let place = Place::new();
    for name in [
        "it's.CSV",
        "a.tsv",
        "a.parquet",
        "a.jsonl",
        "a.feather",
        "a.xlsx",
        "notes.md",
        "_hidden.csv",
        ".hidden.csv",
        "out.private.json",
        "out/part-0.parquet",
        "out/_kanon.json",
        "mixed/a.csv",
        "mixed/a.parquet",
        "other/notes.md",
        "deep/er/a.csv",
    ] {
        place.write(name, "damaged");
    }
    assert_eq!(
        place.run_on("sql --output csv", None, "\\d").exit(0).out,
        "name,kind\na.feather,Arrow file\na.jsonl,JSON lines file\na.parquet,Parquet file\na.tsv,CSV file\nit's.CSV,CSV file\n\
         out,folder of Parquet files\n"
    );
    assert_eq!(Place::new().run_on("sql --output csv", None, "\\d").exit(0).out, "name,kind\n");
}

#[test]
fn no_error_of_a_running_query_shows_a_cell() {
    let place = place();
    place.write("in.csv", "a,b\n1,2\nCANARY,0\n");
    let fails = |text: &str, part: &str| {
        let ran = ask(&place, "--output csv", text).exit(3).says(part);
        assert!(!ran.err.contains("CANARY") && !ran.out.contains("CANARY"), "{ran:?}");
    };
    let read = "running the query over in.csv: ";
    fails(
        "SELECT CAST(a AS INT) FROM 'in.csv'",
        &format!("{read}a value cannot be cast to the type that is asked for"),
    );
    fails("SELECT sum(CAST(a AS DOUBLE)) FROM 'in.csv'", read);
    let not_iso = &format!(
        "{read}a text is not a date in ISO form such as 1992-04-02; for other forms write to_date(x, '%d.%m.%Y')"
    );
    fails("SELECT CAST(a AS DATE) FROM 'in.csv'", not_iso);
    fails("SELECT to_date(a) FROM 'in.csv'", not_iso);
    fails("SELECT to_timestamp(a) FROM 'in.csv'", not_iso);
    fails("SELECT date_trunc('year', a) FROM 'in.csv'", not_iso);
    fails("SELECT a > DATE '1990-01-01' AS late FROM 'in.csv'", not_iso);
    let not_format = &format!("{read}a text does not have the format that the query gives: ");
    fails("SELECT to_date(a, '%Y-%m-%d') FROM 'in.csv'", not_format);
    fails("SELECT to_timestamp(a, '%H:%M') FROM 'in.csv'", not_format);
    fails("CREATE TABLE t AS SELECT CAST(a AS INT) FROM 'in.csv'", read);
    fails("SELECT 1 / CAST(b AS INT) FROM 'in.csv'", "division by zero");
    fails(
        "CREATE VIEW v AS SELECT CAST(a AS INT) AS a FROM 'in.csv'; SELECT * FROM v",
        "running the query: ",
    );
    fails("COPY (SELECT CAST(a AS INT) FROM 'in.csv') TO 'out.csv'", read);
    place.write("ragged.csv", "a,b\n1,2\nCANARY\n");
    fails("SELECT * FROM 'ragged.csv'", "ragged.csv");
}

#[test]
fn arithmetic_on_text_is_refused_with_the_cast() {
    let place = place();
    place.write("codes.csv", "age\n09\n10\n");
    for (call, named) in [("age + 1", "+"), ("2 * age", "*"), ("sum(age)", "sum"), ("abs(age)", "abs")] {
        let why = format!(
            "kanon: `{named}` does not take arguments of these types: a column of a CSV file is text if one cell is, nulls in --csv \
             names the words for missing values, CAST(x AS INT) or CAST(x AS DOUBLE) makes numbers of texts, CAST(x AS VARCHAR) texts \
             of numbers\n"
        );
        let why = if call.contains(' ') { why.replace("arguments", "operands") } else { why };
        let query = format!("SELECT {call} FROM 'codes.csv'");
        assert_eq!(ask(&place, "", &query).exit(2).err, why);
        let query = format!("SET kanon.csv_types = 'text'; SELECT {call} FROM 'scores.csv'");
        assert_eq!(ask(&place, "", &query).exit(2).err, why);
        ask(&place, "", &format!("SELECT {call} FROM 'scores.csv'")).exit(0);
    }
}

/// Columns that are text have no forms of numbers and dates.
#[test]
fn forms_of_numbers_and_dates_are_refused_for_texts() {
    let place = place();
    for key in ["decimal = \",\"", "thousands = \",\"", "date_format = \"%d.%m.%Y\""] {
        let name = key.split(' ').next().unwrap();
        let why =
            format!("{name} has no effect where columns of CSV files are text (kanon.csv_types); write ");
        let text = "SET kanon.csv_types = 'text'";
        ask(&place, &format!("--csv '{key}'"), text).exit(2).says(&why);
        ask(&place, "", &format!("{text}; SET kanon.csv = '{key}'")).exit(2).says(&why);
        ask(&place, "", &format!("SET kanon.csv = '{key}'; {text}")).exit(2).says(&why);
        ask(&place, "", &format!("SET kanon.csv = '{key}'")).exit(0);
    }
    let both =
        ask(&place, "--csv 'decimal = \",\", thousands = \".\"'", "SET kanon.csv_types = text").exit(2);
    both.says("write CAST(replace(replace(x, '.', ''), ',', '.') AS DOUBLE)");
    let ran = ask(&place, "--csv 'decimal = \".\"'", "SELECT count(*) AS n FROM 'scores.csv'");
    ran.exit(0);
    ask(&place, "", "SET kanon.csv_types = 'some'").exit(2).says("kanon.csv_types: expected infer or text");
    place.run("sql --csv 'decimal = \"x\"' -c 'SELECT 1'").exit(2).says("decimal");
}

#[test]
fn settings_tables_and_names_that_are_taken() {
    let place = place();
    let taken = "CREATE TABLE t AS SELECT 1 AS a; CREATE TABLE t AS SELECT 2 AS a";
    ask(&place, "", taken).exit(2).says("table `t` already exists; CREATE OR REPLACE TABLE");
    let replaced =
        "CREATE TABLE t AS SELECT 1 AS a; CREATE OR REPLACE TABLE t AS SELECT 2 AS a; SELECT * FROM t";
    assert_eq!(ask(&place, "--output csv", replaced).exit(0).out, "a\n2\n");
    ask(&place, "", "DROP TABLE t").exit(2).says("doesn't exist");
    ask(&place, "", "SET datafusion.no_such = 1").exit(2).says("no_such");
    ask(&place, "", "SET datafusion.execution.batch_size = 'many'").exit(2).says("batch_size");
    let shown =
        ask(&place, "--threads 3 --output csv", "SHOW datafusion.execution.target_partitions").exit(0);
    assert_eq!(shown.out, "name,value\ndatafusion.execution.target_partitions,3\n");
    let external =
        "CREATE EXTERNAL TABLE m STORED AS CSV LOCATION 'marital.csv'; SELECT count(*) AS n FROM m";
    assert_eq!(ask(&place, "--output csv", external).exit(0).out, "n\n4\n");
    ask(&place, "", "CREATE EXTERNAL TABLE m STORED AS NONSENSE LOCATION 'x'").exit(2).says("NONSENSE");
}

#[test]
fn memory_has_a_limit() {
    let place = place();
    let many = "SELECT value, repeat(CAST(value AS VARCHAR), 8) AS text FROM generate_series(1, 3000000)";
    let limit = "--memory-limit 16M";
    // Few rows: thousands of spill files take a minute.
    let group = "SELECT count(*) FROM (SELECT repeat(CAST(value AS VARCHAR), 8) AS text FROM generate_series(1, 200000)) \
                 GROUP BY text ORDER BY text LIMIT 1";
    let spilt = ask(&place, &format!("{limit} --threads 2"), group);
    assert!([0, 3].contains(&spilt.code), "{spilt:?}");
    let listed = format!("SELECT array_agg(text) FROM ({many})");
    ask(&place, limit, &listed).exit(3).says("raise --memory-limit");
    // A table holds its rows; CSV holds none.
    ask(&place, limit, many).exit(3).says("use --output csv or json, which stream rows");
    let streamed = format!("SELECT value FROM ({many})");
    assert_eq!(
        ask(&place, &format!("{limit} --output csv"), &streamed).exit(0).out.lines().count(),
        3_000_001
    );
}

#[test]
fn a_reader_may_leave_and_a_user_may_stop_it() {
    let place = place();
    let endless = "SELECT value FROM generate_series(1, 100000000000)";
    for output in ["csv", "json"] {
        let mut command = place.command(&format!("sql --output {output} -c"));
        command.arg(format!("{endless}; SELECT 1")).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        out.read_exact(&mut [0; 100]).unwrap();
        drop(out);
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""), "{output}");
    }
    // A join of hours whose one thread gives no way to anything else.
    let endless =
        "SELECT count(*) AS n FROM range(1000000) a JOIN range(100000000) b ON sin(a.value) > b.value + 10";
    for (index, slow) in [endless.to_owned(), format!("CREATE TABLE t AS {endless}")].iter().enumerate() {
        let begun = format!("begun{index}.csv");
        place.write("slow.sql", format!("COPY (SELECT 1 AS n) TO '{begun}'; {slow};"));
        let mut run = place.start_until("sql --threads 1 -f slow.sql", &begun);
        assert!(run.goes_on());
        run.signal("INT");
        let ran = run.end();
        assert!(ran.code == 130 && ran.err.contains("interrupted; a file that COPY"), "{ran:?}");
    }
    if std::path::Path::new("/dev/full").exists() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = place.command("sql --output csv -c");
        let ended = command.arg("SELECT 1").stdout(full).stderr(Stdio::piped()).output().unwrap();
        let err = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(3), "{err}");
        assert!(err.contains("writing the result: no space left on the device"), "{err}");
    }
}
