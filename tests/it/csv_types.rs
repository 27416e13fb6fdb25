//! The types of the columns of CSV files in `kanon sql`, and the checks of external tables.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};

use crate::command::{Place, Ran, table};

fn ask(place: &Place, line: &str, text: &str) -> Ran {
    place.run_on(&format!("sql --output csv {line} -c"), Some(text), "")
}

/// Returns the rows of an answer, without the header.
fn rows(place: &Place, text: &str) -> String {
    let answer = ask(place, "", text).exit(0).out;
    answer.split_once('\n').map_or(String::new(), |(_, rows)| rows.to_owned())
}

const ONE_OF_EACH: &str = "whole,fraction,day,moment,code,truth,blank,word,large\n\
                           9,1.5,2020-01-31,2020-01-31T10:00:00,01067,true,,x,9223372036854775808\n\
                           10,NaN,2020-02-01,2020-02-01 00:00:00.5Z,1067,false,,\"\",1\n\
                           ,,,,,,,,\n";

/// By hand: of the values 9, 10, 11, 100 one class holds the first two, the other the last two. The shares of the
/// first exceed those of all rows by 1/4, 2/4, 1/4 from value to value: 1/3 of the widest step, by 3 steps. In the
/// order of letters, 10, 100, 11, 9, these are 1/4, 0, 1/4, 0, which makes 1/6.
#[test]
fn order_is_that_of_the_values_as_in_other_commands() {
    let place = Place::new();
    place.write("in.csv", "grade,sex\n9,f\n10,f\n11,m\n100,m\n");
    let query = "SELECT round(t_closeness_ordered(grade, sex), 6) AS t FROM 'in.csv'";
    assert_eq!(rows(&place, query), "0.333333\n");
    let external = "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'in.csv'; ";
    assert_eq!(rows(&place, &format!("{external}{}", query.replace("'in.csv'", "t"))), "0.333333\n");
    let checked = place.run("check in.csv --quasi sex --require 't_closeness_ordered(0.5, grade)'").exit(0);
    assert!(checked.out.contains("0.333333 reached"), "{checked:?}");
    let query =
        "SELECT max(grade) AS a, avg(grade) AS b, min(grade + 1) AS c FROM 'in.csv' WHERE grade < '99'";
    assert_eq!(rows(&place, query), "11,10.0,10\n");
    assert_eq!(rows(&place, "SELECT grade FROM 'in.csv' ORDER BY grade"), "9\n10\n11\n100\n");
    let ran = ask(&place, "", "SET kanon.csv_types = 'text'; SELECT max(grade) AS a FROM 'in.csv'");
    assert_eq!((ran.code, ran.out.as_str()), (0, "a\n9\n"), "{ran:?}");
    ran.says("`grade` of in.csv is text, so it is compared letter by letter");
}

#[test]
fn each_column_has_the_type_of_all_its_cells() {
    let place = Place::new();
    place.write("in.csv", ONE_OF_EACH);
    place.write("folder/in.csv", ONE_OF_EACH);
    let typed = "column_name,data_type,is_nullable\nwhole,Int64,YES\nfraction,Float64,YES\nday,Date32,YES\n\
                 moment,Timestamp(µs),YES\ncode,Utf8View,YES\ntruth,Utf8View,YES\nblank,Utf8View,YES\nword,Utf8View,YES\n\
                 large,Utf8View,YES\n";
    let described = |made: &str, name: &str| {
        ask(&place, "", &format!("{made}DESCRIBE {name}")).exit(0).out.replace("Utf8,", "Utf8View,")
    };
    let external = "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION ";
    assert_eq!(described("", "\"in.csv\""), typed);
    assert_eq!(described(&format!("{external}'in.csv'; "), "t"), typed);
    assert_eq!(described(&format!("{external}'folder/'; "), "t"), typed);
    for location in ["in.csv", "folder/", "folder/*.csv"] {
        let options = "OPTIONS ('format.has_header' 'true')";
        assert_eq!(described(&format!("{external}'{location}' {options}; "), "t"), typed, "{location}");
    }
    let texts = described("SET kanon.csv_types = 'text'; ", "\"in.csv\"");
    assert_eq!(texts.matches(",Utf8View,YES").count(), 9, "{texts}");
    let all = "SELECT * FROM 'in.csv'";
    let expected = "9,1.5,2020-01-31,2020-01-31T10:00:00,01067,true,,x,9223372036854775808\n\
                    10,NaN,2020-02-01,2020-02-01T00:00:00.500,1067,false,,,1\n,,,,,,,,\n";
    assert_eq!(rows(&place, all).replace(".500000", ".500"), expected);
    // Empty cells are NULL as before, quoted ones too.
    assert_eq!(rows(&place, "SELECT count(whole) AS a, count(word) AS b FROM 'in.csv'"), "2,1\n");

    // A number in one file, a word in another: text in both.
    place.write("lake/a.csv", "n\n9\n10\n");
    place.write("lake/b.csv", "n\nten\n");
    let types = "SELECT DISTINCT arrow_typeof(n) AS t FROM ";
    assert_eq!(rows(&place, &format!("{types}'lake/a.csv'")), "Int64\n");
    assert_eq!(rows(&place, &format!("{types}lake")), "Utf8View\n");
    assert_eq!(rows(&place, &format!("{external}'lake/*'; {types}t")), "Utf8View\n");
    assert!(ask(&place, "", "SELECT max(n) AS n FROM lake").err.contains("`n` of lake is text"));
    // One thread is enough, also within a table function.
    assert_eq!(ask(&place, "--threads 1", "SELECT k FROM risk(\"in.csv\", whole)").exit(0).out, "k\n1\n");
}

#[test]
fn the_keys_of_csv_say_how_numbers_and_dates_are_written() {
    let place = Place::new();
    place.write("in.csv", "größe;kosten;tag;plz\n1,5;1.234;31.12.2020;01067\nNA;12;01.02.1999;10115\n");
    let keys =
        "--csv 'decimal = \",\", thousands = \".\", date_format = \"%d.%m.%Y\", nulls = [\"\", \"NA\"]'";
    let query = "SELECT max(\"größe\") AS a, max(kosten) AS b, min(tag) AS c, min(plz) AS d FROM 'in.csv'";
    let ran = ask(&place, keys, query);
    assert_eq!((ran.code, ran.out.as_str()), (0, "a,b,c,d\n1.5,1234,1999-02-01,01067\n"), "{ran:?}");
    // The forms are found out anew for other keys.
    let twice = format!(
        "SELECT max(kosten) AS b FROM 'in.csv'; SET kanon.csv = 'decimal = \",\", thousands = \".\"'; {query}"
    );
    let ran = ask(&place, "", &twice);
    assert_eq!((ran.code, ran.out.as_str()), (0, "b\n12.0\na,b,c,d\nNA,1234,01.02.1999,01067\n"), "{ran:?}");
    // A file in another encoding is read from a copy.
    place.write("latin.csv", b"gr\xf6\xdfe\n9\n10\n");
    let query = "SELECT max(\"größe\") AS a FROM 'latin.csv'";
    assert_eq!(ask(&place, "--csv 'encoding = \"latin1\"'", query).exit(0).out, "a\n10\n");
}

/// Neither NULL nor another value where a file is no longer what the types were found for.
#[test]
fn a_file_that_changed_is_not_read_with_the_types_that_it_had() {
    for made in [
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'in.csv'",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'in.csv' OPTIONS ('format.has_header' 'true')",
        "CREATE VIEW t AS SELECT * FROM 'in.csv'",
    ] {
        for new in ["'CANARY'", "1234567", "'01067'"] {
            let place = Place::new();
            place.write("in.csv", "age\n9\n10\n");
            let changed = format!("{made}; COPY (SELECT {new} AS age) TO 'in.csv'");
            let ran = ask(&place, "", &format!("{changed}; SELECT max(age) AS age FROM t"));
            let says = "in.csv: it changed after the table was opened";
            assert!(ran.code == 3 && ran.err.contains(says), "{ran:?}");
            assert!(!ran.err.contains("CANARY"), "{ran:?}");
            let again = format!("{changed}; SELECT age FROM 'in.csv'");
            let ran = ask(&place, "", &again);
            let ends = format!("age\n{}\n", new.trim_matches('\''));
            assert!(ran.code == 0 && ran.out.ends_with(&ends), "{ran:?}");
        }
    }
}

/// Whatever the statement says, a table has the files of `FROM 'folder'`: not the hidden ones, and those of folders and
/// links.
#[test]
fn external_tables_read_the_files_of_their_folder() {
    let place = Place::new();
    let number = |n: i64| table([("n", Arc::new(Int64Array::from(vec![n])) as ArrayRef)]);
    for (at, name) in ["a", "_old", ".b", "below/c", "_tmp/d", "elsewhere/e"]
        .into_iter()
        .enumerate()
        .map(|(at, name)| (1 << at, name))
    {
        let folder = if name.starts_with("elsewhere") { "" } else { "f/" };
        place.parquet(&format!("parquet/{folder}{name}.parquet"), &number(at));
        place.write(&format!("csv/{folder}{name}.csv"), format!("n\n{at}\n"));
        place.write(&format!("json/{folder}{name}.json"), format!("{{\"n\": {at}}}\n"));
    }
    for (end, options) in [
        ("parquet", "'format.pruning' 'true'"),
        ("csv", "'format.delimiter' ','"),
        ("csv", "'format.compression' 'uncompressed'"),
        ("json", "'format.compression' 'uncompressed'"),
    ] {
        let link = place.path(&format!("{end}/f/link.{end}"));
        if !link.exists() {
            std::os::unix::fs::symlink(format!("../elsewhere/e.{end}"), link).unwrap();
        }
        for (columns, options) in [("", ""), ("(n INT)", ""), ("", options)] {
            let options = if options.is_empty() { String::new() } else { format!("OPTIONS ({options})") };
            for location in [format!("{end}/f"), format!("{end}/f/"), format!("{end}/f/**/*.{end}")] {
                let made = format!(
                    "CREATE EXTERNAL TABLE t {columns} STORED AS {end} LOCATION '{location}' {options}"
                );
                assert_eq!(rows(&place, &format!("{made}; SELECT sum(n) AS n FROM t")), "41\n", "{made}");
                let later =
                    format!("{made}; COPY (SELECT 64 AS n) TO '{end}/f/new.{end}'; SELECT sum(n) FROM t");
                let ran = ask(&place, "", &later);
                assert_eq!(ran.code, 3, "{ran:?}");
                ran.says("it appeared after the table was opened");
                std::fs::remove_file(place.path(&format!("{end}/f/new.{end}"))).unwrap();
            }
        }
    }
    let made = "CREATE EXTERNAL TABLE t (n BIGINT) STORED AS PARQUET LOCATION 'parquet/f'";
    ask(&place, "", &format!("{made}; INSERT INTO t VALUES (1)"))
        .exit(2)
        .says("write a new file with COPY ... TO and create the table again");
    for (clauses, says) in [
        ("(n BIGINT) STORED AS CSV LOCATION 'none/'", "no such file, folder or glob"),
        ("(n BIGINT) STORED AS CSV LOCATION 'csv/*.none'", "no file found"),
        ("(n BIGINT, PRIMARY KEY (n)) STORED AS CSV LOCATION 'csv/f'", "nothing checks keys and WITH ORDER"),
        ("(n BIGINT) STORED AS CSV WITH ORDER (n) LOCATION 'csv/f'", "nothing checks keys and WITH ORDER"),
    ] {
        let ran = ask(&place, "", &format!("CREATE EXTERNAL TABLE t {clauses}; SELECT * FROM t"));
        assert!(ran.code > 1 && ran.err.contains(says), "{clauses}: {ran:?}");
    }
    // The engine takes this for an address, too.
    let short = format!(
        "CREATE EXTERNAL TABLE t (n INT) STORED AS CSV LOCATION 'file:{}'",
        place.path("csv/f").display()
    );
    assert_eq!(rows(&place, &format!("{short}; SELECT sum(n) AS n FROM t")), "41\n");
    // The engine lists the folder of a partitioned table by itself.
    let clauses = "(n BIGINT, year BIGINT) STORED AS PARQUET PARTITIONED BY (year) LOCATION 'years/'";
    let years = format!("CREATE EXTERNAL TABLE t {clauses}");
    for (name, says) in [
        ("years/year=2020/a", ""),
        ("years/year=2021/_b", "_b.parquet: it is hidden by its name"),
        ("years/year=2021/.b", ".b.parquet: it is hidden by its name"),
    ] {
        place.parquet(&format!("{name}.parquet"), &number(1));
        let ran = ask(&place, "", &format!("{years}; SELECT n, year FROM t"));
        match says {
            "" => assert_eq!(ran.exit(0).out, "n,year\n1,2020\n"),
            says => drop(ran.exit(3).says(says)),
        }
        // Without the clause it is read as `FROM 'years/'` is.
        let plain = "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'years/'; SELECT n, year FROM t";
        assert_eq!(ask(&place, "", plain).exit(0).out, "n,year\n1,2020\n");
        if !says.is_empty() {
            std::fs::remove_file(place.path(&format!("{name}.parquet"))).unwrap();
        }
    }
}

/// Rows of new files are not left out without a word.
#[test]
fn a_file_that_appeared_is_not_left_out() {
    let place = Place::new();
    place.parquet("rows/a.parquet", &table([("n", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]));
    place.write("texts/a.csv", "n\n1\n");
    for (folder, made) in [
        ("texts", "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'texts/'"),
        (
            "texts",
            "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'texts/' OPTIONS ('format.has_header' 'true')",
        ),
        ("texts", "CREATE VIEW t AS SELECT * FROM 'texts'"),
        ("texts", "CREATE VIEW t AS SELECT * FROM 'texts/*.csv'"),
        ("rows", "CREATE VIEW t AS SELECT * FROM 'rows'"),
    ] {
        let ends = if folder == "rows" { "parquet" } else { "csv" };
        let changed = format!("{made}; COPY (SELECT 2 AS n) TO '{folder}/new.{ends}'");
        let ran = ask(&place, "", &format!("{changed}; SELECT sum(n) FROM t"));
        assert_eq!(ran.code, 3, "{ran:?}");
        ran.says(&format!("new.{ends}: it appeared after the table was opened"));
        std::fs::remove_file(place.path(&format!("{folder}/new.{ends}"))).unwrap();
    }
}

#[test]
fn external_tables_go_through_the_checks_of_files() {
    let place = Place::new();
    let numbers = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let words = |values: Vec<&str>| Arc::new(StringArray::from(values)) as ArrayRef;
    let twice: [(&str, ArrayRef); 3] =
        [("id", numbers(vec![1])), ("v", numbers(vec![2])), ("v", numbers(vec![3]))];
    place.parquet("twice.parquet", &RecordBatch::try_from_iter(twice.clone()).unwrap());
    place.parquet("folder/twice.parquet", &RecordBatch::try_from_iter(twice).unwrap());
    let external = |format: &str, location: &str, more: &str| {
        let made = format!("CREATE EXTERNAL TABLE t {more} STORED AS {format} LOCATION '{location}'");
        ask(&place, "", &format!("{made}; SELECT * FROM t"))
    };
    let by_name = ask(&place, "", "SELECT * FROM 'twice.parquet'")
        .exit(3)
        .says("columns 2 and 3 of the input have the same name");
    for (location, more) in [
        ("twice.parquet", ""),
        ("folder/", ""),
        ("folder/*.parquet", ""),
        ("twice.parquet", "(id INT, v INT)"),
    ] {
        assert_eq!(external("PARQUET", location, more).exit(3).err, by_name.err, "{location} {more}");
    }
    let absolute = format!("file://{}", place.path("twice.parquet").display());
    external("PARQUET", &absolute, "").exit(3).says("columns 2 and 3 of the input have the same name");

    // Types over all files, in partition folders, too.
    for folder in ["types", "years/year=2020"] {
        place.parquet(&format!("{folder}/a.parquet"), &table([("n", numbers(vec![1]))]));
    }
    place.parquet("years/year=2021/b.parquet", &table([("n", numbers(vec![2]))]));
    let by_year = external("PARQUET", "years/", "").exit(0).out;
    assert!(by_year.contains("1,2020\n") && by_year.contains("2,2021\n"), "{by_year}");
    place.parquet("years/year=2021/c.parquet", &table([("n", words(vec!["3"]))]));
    place.parquet("types/b.parquet", &table([("n", words(vec!["2"]))]));
    external("PARQUET", "years/", "").exit(3).says("column `n` is Utf8View here and Int64 in");
    external("PARQUET", "types/", "").exit(3).says("column `n` is Utf8View here and Int64 in");

    // Other formats, and names that a folder would leave out.
    place.write("texts/a.csv", "n\n1\n");
    external("PARQUET", "texts/", "").exit(3).says("it holds CSV files, not Parquet files");
    external("CSV", "types/", "").exit(3).says("it holds Parquet files, not CSV files");
    place.parquet("ends/a.parquet", &table([("n", numbers(vec![1]))]));
    place.parquet("ends/b.pq", &table([("n", numbers(vec![2]))]));
    for (location, more) in [("ends/", ""), ("ends/*", ""), ("ends/", "(n BIGINT)")] {
        let read = external("PARQUET", location, more).exit(0).out;
        assert!(["n\n1\n2\n", "n\n2\n1\n"].contains(&read.as_str()), "{location} {more}: {read}");
    }
    external("PARQUET", "none/", "").exit(3).says("no such file, folder or glob");

    // CSV: one set of names, whatever the options.
    place.write("names/a.csv", "a,b\n1,2\n");
    place.write("names/b.csv", "b,a\n3,4\n");
    external("CSV", "names/", "").exit(3).says("column 1 does not have the name");
    let options = "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'names/' OPTIONS ('format.delimiter' ','); SELECT * FROM t";
    ask(&place, "", options).exit(3).says("column 1 does not have the name");
    place.write("twice.csv", "id,v,v\n1,2,3\n");
    let options =
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'twice.csv' OPTIONS ('format.delimiter' ',')";
    ask(&place, "", options).exit(3).says("columns 2 and 3 of the input have the same name");

    external("CSV", "names/", "(a INT, b INT)").exit(3).says("column 1 does not have the name");
    external("CSV", "names/b.csv", "(a INT, b INT)")
        .exit(3)
        .says("`a` is declared as column 1 and is column 2 of the header");
    assert_eq!(external("CSV", "names/b.csv", "(b INT, a INT)").exit(0).out, "b,a\n3,4\n");

    // JSON: all rows say what a column is.
    let lines: String = (0..2000).map(|n| format!("{{\"n\": {n}}}\n")).collect();
    place.write("n.json", lines + "{\"n\": 0.5, \"late\": 7}\n");
    let json = "CREATE EXTERNAL TABLE t STORED AS JSON LOCATION 'n.json'; SELECT sum(n) AS n, max(late) AS late FROM t";
    assert_eq!(rows(&place, json), "1999000.5,7\n");
}

/// Cells that differ may be codes: they stay apart.
#[test]
fn different_cells_are_no_one_value() {
    let place = Place::new();
    for cells in [
        ["250.0", "250.00"],
        ["1.10", "1.1"],
        ["+49301", "49301"],
        ["1E3", "1000"],
        ["12345678901234567890.5", "12345678901234567890.6"],
        ["2020-01-01T10:00:00.123456789", "2020-01-01T10:00:00.123456788"],
    ] {
        place.write("in.csv", format!("code\n{}\n{}\n", cells[0], cells[1]));
        let checked = place.run("check in.csv --quasi code --k 2 --format json").exit(1).json();
        assert_eq!(checked["classes"], 2, "{cells:?}");
        assert_eq!(
            rows(&place, "SELECT k_anonymity(code), count(DISTINCT code) FROM 'in.csv'"),
            "1,2\n",
            "{cells:?}"
        );
    }
    place.write("in.csv", "price,one\n9.50,1\n10.00,1\n");
    assert_eq!(rows(&place, "SELECT avg(price), sum(one) FROM 'in.csv'"), "9.75,2\n");
}

/// Also those that the engine, which compares moments and texts in nanoseconds, does not reach.
#[test]
fn moments_of_any_year_are_compared_with_texts() {
    let place = Place::new();
    place.write(
        "in.csv",
        "id,valid_to\n1,9999-12-31T00:00:00\n2,2020-06-30T10:00:00.5\n3,\n4,0001-01-01T00:00:00\n",
    );
    for (condition, ids) in [
        ("valid_to = '9999-12-31T00:00:00'", "1\n"),
        ("valid_to = '9999-12-31'", "1\n"),
        ("valid_to <> '9999-12-31'", "2\n4\n"),
        ("valid_to IS DISTINCT FROM '9999-12-31'", "2\n3\n4\n"),
        ("'1000-01-01' > valid_to", "4\n"),
        ("valid_to = TIMESTAMP '9999-12-31 00:00:00'", "1\n"),
        ("valid_to BETWEEN '2020-01-01' AND '9999-12-31T00:00:00'", "1\n2\n"),
        ("valid_to IN ('2020-06-30T10:00:00.500', '9999-12-31')", "1\n2\n"),
        ("valid_to NOT IN ('9999-12-31')", "2\n4\n"),
        ("id < 3 AND valid_to < '2020-06-30T10:00:00.500001'", "2\n"),
        ("valid_to < DATE '9999-12-31'", "2\n4\n"),
        ("DATE '9999-12-31' = valid_to", "1\n"),
        ("nullif(valid_to, '9999-12-31') IS NULL", "1\n3\n"),
        ("CASE valid_to WHEN '9999-12-31' THEN 1 WHEN '0001-01-01' THEN 2 ELSE id END = 2", "2\n4\n"),
    ] {
        let query = format!("SELECT id FROM 'in.csv' WHERE {condition} ORDER BY id");
        assert_eq!(rows(&place, &query), ids, "{condition}");
    }
    // Where the engine needs nanoseconds, the error says so.
    for wrong in [
        "valid_to + INTERVAL '1 day' < CAST(valid_to AS TIMESTAMP)",
        "coalesce(valid_to, TIMESTAMP '9999-12-31') > 'x'",
    ] {
        ask(&place, "", &format!("SELECT id FROM 'in.csv' WHERE {wrong}"))
            .exit(3)
            .says("outside of the years 1678 to 2261");
    }
    let mended = "SELECT count(*) FROM 'in.csv' WHERE valid_to = arrow_cast(valid_to, 'Timestamp(us)')";
    assert_eq!(rows(&place, mended), "3\n");
    // In the zone of the column, unless the text has its own.
    let zoned = "COPY (SELECT id, arrow_cast(valid_to, 'Timestamp(ms, \"+02:00\")') AS at FROM 'in.csv') TO 'z.parquet'";
    ask(&place, "", zoned).exit(0);
    for text in ["'9999-12-31'", "TIMESTAMP '9999-12-31'", "'9999-12-31T02:00:00+04:00'"] {
        let query = format!("SELECT id FROM 'z.parquet' WHERE at = {text}");
        assert_eq!(rows(&place, &query), "1\n", "{text}");
    }
    let case = "SELECT count(*), max(CASE WHEN valid_to = '9999-12-31' THEN id END) AS id FROM 'in.csv'";
    assert_eq!(rows(&place, case), "4,1\n");
    // Days, too, are compared with the whole text.
    place.write("days.csv", "id,day\n1,9999-12-31\n2,2024-01-01\n");
    for (condition, ids) in [
        ("day = '2024-01-01T23:59:59'", ""),
        ("day < '2024-01-01T23:59:59'", "2\n"),
        ("day >= '2024-01-01T00:00:00.4'", "1\n"),
        ("day <> '2024-01-01T00:00:00.000001'", "1\n2\n"),
        ("day BETWEEN '2024-01-01T00:00:01' AND '2024-01-02'", ""),
        ("day = '2024-01-02T01:00:00+02:00'", ""),
        ("day = '2024-01-01' OR day = TIMESTAMP '9999-12-31'", "1\n2\n"),
        ("nullif(day, '2024-01-01T10:00:00') IS NULL", ""),
        ("day < '9999-12-31T00:00:00.0000000001'", "1\n2\n"),
    ] {
        let query = format!("SELECT id FROM 'days.csv' WHERE {condition} ORDER BY id");
        assert_eq!(rows(&place, &query), ids, "{condition}");
    }
    let finer = "SELECT id FROM 'in.csv' WHERE valid_to < '9999-12-31T00:00:00.0000000001' ORDER BY id";
    assert_eq!(rows(&place, finer), "1\n2\n4\n");
    // Texts between two moments of the column's unit; 0 and -1 are seconds around 1970, 2 is NULL.
    let seconds = "COPY (SELECT id, arrow_cast(NULLIF(id, 2), 'Timestamp(s)') AS at FROM (VALUES (0), (-1), (2)) AS t (id)) TO 's.parquet'";
    ask(&place, "", seconds).exit(0);
    for (text, before) in [
        ("1970-01-01T00:00:00.5", "-1\n0\n"),
        ("1969-12-31T23:59:59.0000001", "-1\n"),
        ("1969-12-31T23:59:58.9", ""),
    ] {
        let all = "-1\n0\n";
        let after = all.replace(before, "");
        for (condition, ids) in [
            (format!("at < '{text}'"), before),
            (format!("'{text}' >= at"), before),
            (format!("at > '{text}'"), after.as_str()),
            (format!("at BETWEEN '{text}' AND '1971-01-01T00:00:00.1'"), after.as_str()),
            (format!("at NOT BETWEEN '1960-01-01' AND '{text}'"), after.as_str()),
            (format!("at = '{text}' OR at IN ('{text}')"), ""),
            (format!("at <> '{text}' AND at NOT IN ('{text}')"), all),
            (format!("(at IS DISTINCT FROM '{text}') AND id < 1"), all),
            (format!("at IS NOT DISTINCT FROM '{text}'"), ""),
            (format!("at IN ('{text}', '1970-01-01', NULL)"), "0\n"),
            ("at = '1970-01-01T00:00:00.9'::TIMESTAMP(0)".to_owned(), "0\n"),
            (format!("at NOT IN ('{text}', '1970-01-01')"), "-1\n"),
        ] {
            let query = format!("SELECT id FROM 's.parquet' WHERE {condition} ORDER BY id");
            assert_eq!(rows(&place, &query), ids, "{condition}");
        }
    }
}

/// Threads divide a file at line breaks, but not inside of quotes.
#[test]
fn cells_of_several_lines_are_whole_whatever_the_threads() {
    let place = Place::new();
    let note = "1,2,3\n4,5,6\n7,8,9\n".repeat(900);
    let lines: String = (0..200).map(|n| format!("{n},{},\"{note}\"\n", n % 7)).collect();
    place.write("in.csv", format!("id,n,note\n{lines}"));
    for table in [
        "(id TEXT, n TEXT, note TEXT) STORED AS CSV LOCATION 'in.csv'",
        "STORED AS CSV LOCATION 'in.csv' OPTIONS ('format.has_header' 'true')",
    ] {
        let text = format!("CREATE EXTERNAL TABLE t {table}; SELECT count(*), k_anonymity(n) FROM t");
        assert_eq!(ask(&place, "--threads 4", &text).exit(0).out.lines().last(), Some("200,28"), "{table}");
    }
}

const IN_RELEASE: &str = "is inside a release, which is published and would no longer verify";

/// COPY replaces files, but no release and no private record, and makes no folder of an address.
#[test]
fn copies_damage_no_release() {
    let place = Place::new();
    place.write("p.toml", "k = 2\nrows_are_individuals = true\n[columns]\nq = { role = \"quasi\" }\n");
    place.write("in.csv", "q\na\na\n");
    place.run("release in.csv --policy p.toml --to out").exit(0);
    std::fs::create_dir(place.path("out/folder")).unwrap();
    std::os::unix::fs::symlink("out/folder", place.path("inside")).unwrap();
    place.write("x.csv", "x\n1\n");
    let before = place.tree();
    for (to, code, why) in [
        ("out.private.json", 2, "is the private record of a release"),
        ("out/part-00000.parquet", 2, "is inside a release"),
        ("out", 2, "is a release"),
        ("out/new/deep/x.parquet", 2, "is inside a release"),
        ("inside/x.parquet", 2, "is inside a release"),
        ("inside", 2, "is inside a release"),
        ("x.csv/x.parquet", 2, "the folder x.csv cannot be used: it is a file"),
    ] {
        ask(&place, "", &format!("COPY (SELECT 1 AS x) TO '{to}' STORED AS PARQUET")).exit(code).says(why);
    }
    assert_eq!(place.tree(), before);
    for to in ["x.parquet", "out/../y.parquet"] {
        ask(&place, "", &format!("COPY (SELECT 1 AS x) TO '{to}'")).exit(0);
    }
    let hierarchy = "hierarchy in.csv q --by 'prefix = [1]' --to out/q.csv";
    place.run(hierarchy).exit(2).says(IN_RELEASE);
    let report = "release in.csv --policy p.toml --to other --private keys --report out/report.json";
    place.run(report).exit(2).says(IN_RELEASE);
    place.run("init in.csv --to out/p.toml").exit(2).says(IN_RELEASE);
    place.run("generate --rows 10 --to out/v.parquet").exit(2).says(IN_RELEASE);
}
