//! Files as other programs write them: INT96 timestamps, encrypted and empty files, folders of tables of another
//! format, and addresses instead of paths.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};

use crate::command::{Place, table};
use crate::house::root;

/// A place with a file of `tests/fixtures/parquet`.
fn with_fixture(name: &str) -> Place {
    let place = Place::new();
    fs::copy(root().join("tests/fixtures/parquet").join(name), place.path(name)).unwrap();
    place
}

fn people() -> RecordBatch {
    let ages: ArrayRef = Arc::new(Int64Array::from(vec![31, 31, 32, 32]));
    let zips: ArrayRef = Arc::new(StringArray::from(vec!["02139", "02139", "02140", "02140"]));
    table([("age", ages), ("zip", zips)])
}

const POLICY: &str =
    "k = 2\nrows_are_individuals = true\nothers = \"drop\"\n[columns]\nage = { role = \"quasi\" }\n";

/// The rows of a query, as lines of CSV without their names.
fn rows(place: &Place, query: &str) -> Vec<String> {
    let ran = place.run_on("sql --output csv -c", Some(query), "").exit(0);
    ran.out.lines().skip(1).map(str::to_owned).collect()
}

/// How commands name an input, with `NAME` for it.
const COMMANDS: [&str; 6] = [
    "check NAME --quasi age --k 2",
    "risk NAME --quasi age",
    "init NAME",
    "search NAME --policy p.toml",
    "release NAME --policy p.toml --to out",
    "link p.csv NAME --on age",
];

/// Checks that every way to name an input refuses it with these parts in one line.
#[track_caller]
fn refused(place: &Place, name: &str, exit: i32, parts: &[&str]) {
    place.write("p.toml", POLICY);
    place.write("p.csv", "age\n31\n");
    let quoted = format!("'{name}'");
    let said = |ran: crate::command::Ran| {
        let ran = parts.iter().fold(ran, |ran, part| ran.says(part));
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
        ran
    };
    for line in COMMANDS {
        said(place.run(&line.replace("NAME", &quoted))).exit(exit);
    }
    for query in [format!("SELECT count(*) FROM {quoted}"), format!("SELECT * FROM classes({quoted}, age)")] {
        let ran = said(place.run_on("sql -c", Some(&query), ""));
        assert!([2, 3].contains(&ran.code), "{query}: {ran:?}");
    }
    // As the population of a policy.
    let of_population = format!("population = \"{name}\"\n[[require]]\nmodel = \"k_map\"\nk = 2\n[columns]");
    place.write("of.toml", POLICY.replace("k = 2\n", "").replace("[columns]", &of_population));
    let ran = said(place.run("search p.csv --policy of.toml"));
    assert!([2, 3].contains(&ran.code), "{ran:?}");
    assert!(!place.path("out").exists());
}

#[test]
fn int96_keeps_its_years() {
    let place = with_fixture("int96.parquet");
    let written = [
        "0001-01-01T00:00:00",
        "0001-01-01T00:00:00",
        "1816-06-01T00:00:00",
        "2024-02-29T12:30:00",
        "2024-02-29T12:30:00",
        "9999-12-31T23:59:59.999999",
        "9999-12-31T23:59:59.999999",
        "\"\"",
    ];
    assert_eq!(rows(&place, "SELECT open FROM 'int96.parquet' ORDER BY ward"), written);
    let external = "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'int96.parquet'; ";
    assert_eq!(rows(&place, &format!("{external}SELECT open FROM t ORDER BY ward")), written);
    let late = "SELECT ward FROM 'int96.parquet' WHERE open > arrow_cast('9000-01-01', 'Timestamp(Microsecond, None)') \
                ORDER BY ward";
    assert_eq!(rows(&place, late), ["f", "g"]);
    // The engine would compare in nanoseconds, which have no such years.
    for late in [
        "open > '9000-01-01'",
        "'9000-01-01T00:00:00' <= open",
        "open BETWEEN TIMESTAMP '9000-01-01' AND '9999-12-31 23:59:59.999999'",
    ] {
        let late = format!("SELECT ward FROM 'int96.parquet' WHERE {late} ORDER BY ward");
        assert_eq!(rows(&place, &late), ["f", "g"]);
    }
    // Read in nanoseconds, three people are of 1816.
    let k = "SELECT k_anonymity(generalize_date(open, 'year')) FROM 'int96.parquet' WHERE open IS NOT NULL";
    assert_eq!(rows(&place, k), ["1"]);
    let classes = "SELECT count(*) FROM classes('int96.parquet', open)";
    assert_eq!(rows(&place, classes), ["5"]);

    place.write(
        "p.toml",
        "k = 2\nrows_are_individuals = true\nothers = \"drop\"\nsuppression_limit = 0.3\n\
         [columns]\nopen = { role = \"quasi\", hierarchy = { date = [\"year\"] }, min_level = 1, max_level = 1 }\n",
    );
    let checked = place.run("check int96.parquet --policy p.toml --format json");
    assert_eq!((&checked.json()["rows"], &checked.json()["classes"]), (&8.into(), &5.into()));
    place.run("release int96.parquet --policy p.toml --to out").exit(0);
    let released = "SELECT DISTINCT open, count(*) FROM 'out' GROUP BY open ORDER BY open";
    let years = ["0001-01-01T00:00:00,2", "2024-01-01T00:00:00,2", "9999-01-01T00:00:00,2"];
    assert_eq!(rows(&place, released), years);
    place.run("verify out").exit(0);
    place.run("verify out --input int96.parquet").exit(0);
}

#[test]
fn int96_keeps_its_time_zone() {
    let place = with_fixture("int96_zone.parquet");
    let query = "SELECT arrow_typeof(open), CAST(open AS BIGINT) AS at, \
                 CAST(generalize_date(open, 'month') AS BIGINT) AS month FROM 'int96_zone.parquet' ORDER BY open";
    // Months begin in Berlin: 53 minutes 28 seconds before those of UTC in the year 1, two hours in July 2024.
    let moments = [
        (-62_122_550_400_i64, -62_122_553_608_i64),
        (1_722_465_000, 1_722_463_200),
        (253_402_257_600, 253_399_618_800),
    ];
    let expected = moments.map(|(open, month)| format!("{open}000000,{month}000000"));
    for (row, expected) in rows(&place, query).iter().zip(&expected) {
        assert!(row.contains("Europe/Berlin") && row.ends_with(expected), "{row}");
    }
    assert_eq!(rows(&place, query).len(), 3);
}

#[test]
fn int96_in_a_hierarchy_file() {
    let place = with_fixture("int96.parquet");
    fs::copy(root().join("tests/fixtures/parquet/int96_tree.parquet"), place.path("tree.parquet")).unwrap();
    place.write(
        "p.toml",
        "k = 2\nrows_are_individuals = true\nothers = \"drop\"\nsuppression_limit = 0.2\n[columns]\n\
         open = { role = \"quasi\", hierarchy = { file = \"tree.parquet\" }, min_level = 1, max_level = 1 }\n",
    );
    place.run("release int96.parquet --policy p.toml --to out").exit(0);
    let query = "SELECT open, count(*) FROM 'out' GROUP BY open ORDER BY open";
    assert_eq!(rows(&place, query), ["new,4", "old,3"]);
}

#[test]
fn an_encrypted_file_is_called_so() {
    let no_keys = "kanon takes no keys";
    let place = with_fixture("encrypted_footer.parquet");
    let parts = ["encrypted_footer.parquet: the file is encrypted, its footer too", no_keys];
    refused(&place, "encrypted_footer.parquet", 3, &parts);
    let bytes = fs::read(place.path("encrypted_footer.parquet")).unwrap();
    assert!(bytes.starts_with(b"PARE") && bytes.ends_with(b"PARE"));
    place.write("zip.csv", "age\n31\n31\n");
    place.write("h.toml", POLICY.replace("}", ", hierarchy = { file = \"encrypted_footer.parquet\" } }"));
    place
        .run("check zip.csv --policy h.toml")
        .exit(2)
        .says("encrypted_footer.parquet: the file is encrypted");

    let place = with_fixture("encrypted_column.parquet");
    let parts = ["encrypted_column.parquet: these columns are encrypted: `illness`; ", no_keys];
    refused(&place, "encrypted_column.parquet", 3, &parts);
    // Beside a file that is not, in a folder.
    place.parquet("lake/a.parquet", &people());
    fs::rename(place.path("encrypted_column.parquet"), place.path("lake/b.parquet")).unwrap();
    refused(&place, "lake", 3, &["b.parquet: these columns are encrypted: `illness`"]);
}

#[test]
fn an_empty_file_is_called_so() {
    let place = Place::new();
    place.parquet("lake/part-0.parquet", &people());
    place.write("lake/_SUCCESS", "");
    place.run("check lake --quasi age --k 2").exit(0);
    place.write("lake/part-1.parquet", "");
    let parts = ["part-1.parquet: the file is empty (0 bytes)", "write it again, or remove it"];
    refused(&place, "lake", 3, &parts);
    refused(&place, "lake/*.parquet", 3, &parts);
    refused(&place, "lake/part-1.parquet", 3, &parts);
    let ran = place.run("check lake --quasi age --k 2 --format json").exit(3);
    assert!(ran.err.contains("\"damaged_file\""), "{ran:?}");
    place.write("zip.csv", "age\n31\n31\n");
    place.write("h.toml", POLICY.replace("}", ", hierarchy = { file = \"lake/part-1.parquet\" } }"));
    place.run("check zip.csv --policy h.toml").exit(2).says("part-1.parquet: the file is empty (0 bytes)");
}

#[test]
fn a_table_of_another_format_is_no_folder_of_parquet() {
    for (mark, format) in [
        ("_delta_log/00000000000000000000.json", "Delta Lake"),
        ("metadata/v1.metadata.json", "Apache Iceberg"),
        (".hoodie/hoodie.properties", "Apache Hudi"),
    ] {
        let place = Place::new();
        place.parquet("dt/data/part-0.parquet", &people());
        place.parquet("dt/part-1.parquet", &people());
        place.run("check dt --quasi age --k 4").exit(0);
        place.write(&format!("dt/{mark}"), "{}");
        let part = format!("dt: it belongs to a table of {format}");
        let parts = [part.as_str(), "deleted or replaced rows", "export the current version"];
        refused(&place, "dt", 3, &parts);
        // Its parts, and a folder around it.
        for name in ["dt/data", "dt/*.parquet", "dt/*/*.parquet", "d*/part-1.parquet", "**/*.parquet", "."] {
            refused(&place, name, 3, &parts);
        }
        // A file that is named is that file.
        place.run("check dt/part-1.parquet --quasi age --k 2").exit(0);
        assert_eq!(rows(&place, "SELECT count(*) FROM 'dt/data/part-0.parquet'"), ["4"]);
    }
    // From inside, and through a link.
    let place = Place::new();
    place.parquet("dt/part-1.parquet", &people());
    place.write("dt/_delta_log/0.json", "{}");
    for name in ["*.parquet", ".", "../dt"] {
        let mut command = place.command(&format!("check '{name}' --quasi age --k 2"));
        let ran = command.current_dir(place.path("dt")).output().unwrap();
        assert_eq!(ran.status.code(), Some(3), "{name}");
        assert!(String::from_utf8(ran.stderr).unwrap().contains("a table of Delta Lake"), "{name}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(place.path("dt"), place.path("link")).unwrap();
        refused(&place, "link", 3, &["a table of Delta Lake"]);
    }
    // Folders of Hive transactions are known by their names.
    let place = Place::new();
    place.parquet("t/delta_0000001_0000001_0000/bucket_00000.parquet", &people());
    refused(&place, "t", 3, &["t: it belongs to a table of Apache Hive with transactions"]);
}

#[test]
fn an_address_is_no_path() {
    let place = Place::new();
    place.parquet("s3:/bucket/a.parquet", &people());
    for (address, way) in [
        ("s3://key:word@bucket/a.parquet", "no key or password"),
        ("abfss://c:d@a.dfs.core.windows.net/x.csv", "no key or password"),
        ("hdfs://host:8020/x", "hdfs://... is an address of a store that kanon does not know"),
        ("https://example.org/a.parquet?x=y", "no `?`"),
        ("file://host/a.parquet", "expected file:/// and an absolute path"),
    ] {
        refused(&place, address, 2, &[way]);
    }
    let ran = place.run("check hdfs://bucket/a.parquet --quasi age --k 2 --format json").exit(2);
    assert!(ran.err.contains("\"address\""), "{ran:?}");
    // A folder that has such a name.
    place.run("check ./s3:/bucket/a.parquet --quasi age --k 2").exit(0);
    place.write("p.toml", POLICY);
    place.write("h.toml", POLICY.replace("}", ", hierarchy = { file = \"hdfs://bucket/tree.csv\" } }"));
    place
        .run("check ./s3:/bucket/a.parquet --policy h.toml")
        .exit(2)
        .says("hierarchy file: hdfs://... is an address");

    place.parquet("a b%/ä.parquet", &people());
    let here = fs::canonicalize(place.path("")).unwrap();
    let address = format!("file://localhost{}/a%20b%25/%C3%A4.parquet", here.display());
    for name in [address.replace("localhost", ""), address.clone(), address.replace("%C3%A4", "*")] {
        place.run(&format!("check {name} --quasi age --k 2")).exit(0);
        assert_eq!(rows(&place, &format!("SELECT count(*) FROM '{name}'")), ["4"]);
        assert_eq!(rows(&place, &format!("SELECT count(*) FROM classes('{name}', age)")), ["2"]);
    }
    // A release by its address.
    place.run(&format!("release {address} --policy p.toml --to out")).exit(0);
    let out = format!("file://{}/out", here.display());
    place.run(&format!("verify {out} --input {address}")).exit(0);
    place.run(&format!("explain {out}")).exit(0);
    place.run(&format!("check {out} --k 2")).exit(0);
    // What is written, and what a statement names.
    place.parquet("lake/a.parquet", &people());
    let lake = format!("file://{}/lake", here.display());
    place
        .run(&format!("release {lake} --policy p.toml --to lake/out"))
        .exit(2)
        .says("is inside the input folder");
    let before = place.tree();
    for line in [
        "release lake --policy p.toml --to new --private gs://bucket/secret",
        "release lake --policy p.toml --to new --report https://example.org/r.json",
        "release lake --policy hdfs://bucket/p.toml --to new",
        "init lake --to s3://bucket/p.toml",
        "hierarchy lake zip --by 'prefix = [4]' --to s3://bucket/zip.csv",
        "generate --rows 10 --to s3://bucket/visits.parquet",
        "sql --file s3://bucket/x.sql",
    ] {
        place.run(line).exit(2).says("is an address");
    }
    place.write(
        "o.toml",
        POLICY.replace("[columns]", "[output]\nprivate = \"s3://bucket/secret\"\n[columns]"),
    );
    place.run("release lake --policy o.toml --to new").exit(2).says("is an address");
    let table = "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'hdfs://bucket/lake'";
    place.run_on("sql -c", Some(table), "").exit(2).says("is an address");
    fs::remove_file(place.path("o.toml")).unwrap();
    assert_eq!(place.tree(), before);
}
