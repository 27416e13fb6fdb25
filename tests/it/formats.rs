//! The formats that are read beside Parquet, and the tables that people have in them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Date32Array, Float64Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use arrow::record_batch::RecordBatch;

use crate::command::{Place, table, texts};

pub(crate) const POLICY: &str = r#"
    k = 3
    suppression_limit = 0.3
    rows_are_individuals = true
    accept_homogeneity = ["disease"]
    [columns]
    dob     = { role = "quasi", hierarchy = { date = ["year", "decade"] } }
    zip     = { role = "quasi", hierarchy = { prefix = [3, 2] } }
    age     = { role = "quasi", hierarchy = { range = [10, 20] } }
    disease = { role = "sensitive" }
    cost    = { role = "quasi", hierarchy = { floor = [100] }, min_level = 1 }
"#;

/// Sixty people; every seventh cell is NULL.
pub(crate) fn people() -> RecordBatch {
    let rows = || 0..60i64;
    let known = |n: i64| n % 7 != 0;
    let words = |of: &dyn Fn(i64) -> String| -> ArrayRef {
        Arc::new(rows().map(|n| known(n).then(|| of(n))).collect::<StringArray>())
    };
    table([
        (
            "dob",
            Arc::new(
                rows()
                    .map(|n| known(n + 1).then_some(i32::try_from(n).unwrap() * 97))
                    .collect::<Date32Array>(),
            ) as ArrayRef,
        ),
        ("zip", words(&|n| format!("021{}{}", n % 2, n % 5))),
        ("age", Arc::new(rows().map(|n| known(n + 2).then_some(20 + n % 30)).collect::<Int64Array>())),
        ("disease", words(&|n| ["flu", "gout \"foot\"", "a, b\nü"][n as usize % 3].to_owned())),
        ("cost", Arc::new(rows().map(|n| known(n + 3).then_some(n as f64 * 12.5)).collect::<Float64Array>())),
    ])
}

pub(crate) fn json_lines(rows: &RecordBatch) -> String {
    let schema = rows.schema();
    let columns: Vec<Vec<String>> = schema.fields().iter().map(|field| texts(rows, field.name())).collect();
    let lines = (0..rows.num_rows()).map(|row| {
        // The first row says the order of the columns; later a key may be missing.
        let is_said = |at: usize| row == 0 || rows.column(at).is_valid(row);
        let cells = schema.fields().iter().enumerate().filter(|(at, _)| is_said(*at));
        let cells = cells.map(|(at, field)| {
            let cell = &columns[at][row];
            let number = matches!(field.data_type(), DataType::Int64 | DataType::Float64);
            let value = if rows.column(at).is_null(row) {
                "null".to_owned()
            } else if number {
                cell.clone()
            } else {
                serde_json::to_string(cell).unwrap()
            };
            format!("{:?}: {value}", field.name())
        });
        format!("{{{}}}\n", cells.collect::<Vec<_>>().join(", "))
    });
    lines.collect()
}

fn csv(rows: &RecordBatch, delimiter: &str) -> String {
    let schema = rows.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let columns: Vec<Vec<String>> = names.iter().map(|name| texts(rows, name)).collect();
    let cell = |at: usize, row: usize| match rows.column(at).is_valid(row) {
        true => format!("\"{}\"", columns[at][row].replace('"', "\"\"")),
        false => String::new(),
    };
    let line = |row| (0..names.len()).map(|at| cell(at, row)).collect::<Vec<_>>().join(delimiter) + "\n";
    names.join(delimiter) + "\n" + &(0..rows.num_rows()).map(line).collect::<String>()
}

#[test]
fn the_same_rows_in_every_format_give_the_same_bytes() {
    let (place, rows) = (Place::new(), people());
    place.write("p.toml", POLICY);
    place.parquet("in.parquet", &rows);
    place.arrow_file("in.feather", &rows);
    place.arrow_file("in.arrow", &rows);
    place.arrow_stream("in.arrows", &rows);
    place.arrow_file("lake/a.arrow", &rows.slice(0, 21));
    place.arrow_file("lake/b.ipc", &rows.slice(21, 39));
    let lines = json_lines(&rows);
    place.write("in.json", &lines);
    place.write("in.ndjson", lines.replace('\n', "\r\n\n"));
    let (first, second) = lines.split_at(lines.match_indices('\n').nth(30).unwrap().0 + 1);
    place.write("json/a.jsonl", first);
    place.write("json/b.jsonl", second);
    place.write("in.csv", csv(&rows, ","));
    place.write("in.tsv", csv(&rows, "\t"));
    place.run("release in.parquet --policy p.toml --to whole").exit(0);
    let whole = place.files("whole");
    assert!(place.released("whole").num_rows() > 30);
    for input in
        ["in.feather", "in.arrow", "in.arrows", "lake", "in.json", "in.ndjson", "json", "in.csv", "in.tsv"]
    {
        for threads in [1, 3] {
            let line = format!("release {input} --policy p.toml --to out --overwrite --threads {threads}");
            place.run(&line).exit(0);
            assert!(place.files("out") == whole, "{input}: other bytes");
        }
        place.run(&format!("verify out --input {input}")).exit(0);
        place.run("verify whole --input in.parquet").exit(0);
        let risk =
            |input: &str| place.run(&format!("risk {input} --policy p.toml --format json")).exit(0).json();
        assert_eq!(risk(input), risk("in.parquet"), "{input}");
        place.run(&format!("check {input} --quasi zip --k 3")).exit(0);
        place.run(&format!("search {input} --policy p.toml")).exit(0);
    }
    // A release of the same columns is no release of other rows.
    place.write("less.json", lines.split_once('\n').unwrap().1);
    place.run("verify out --input less.json").exit(1).says("verification refused");
}

#[test]
fn json_rows_as_they_are_found() {
    let place = Place::new();
    place.write("p.toml", "k = 2\nrows_are_individuals = true\n[columns]\nx = { role = \"quasi\" }\ny = { role = \"insensitive\", allow_unique = true }");
    let released = |json: &str| {
        place.write("in.json", json);
        place.run("release in.json --policy p.toml --to out --overwrite").exit(0);
        place.run("verify out --input in.json").exit(0);
        let rows = place.released("out");
        let names: Vec<String> = rows.schema().fields().iter().map(|field| field.name().clone()).collect();
        let mut x = texts(&rows, "x");
        x.sort();
        (names, x, rows.column_by_name("y").unwrap().data_type().clone())
    };
    let (names, x, y) = released("{\"y\":1,\"x\":\"a\"}\n{\"x\":\"a\",\"y\":2.5}\n");
    assert_eq!(
        (names, x, y),
        (vec!["y".to_owned(), "x".to_owned()], vec!["a".to_owned(); 2], DataType::Float64)
    );
    let late = "{\"x\":true}\n".repeat(3_000) + "{\"x\":true,\"y\":18446744073709551615}\n";
    assert_eq!(released(&late).2, DataType::UInt64);
    let (_, x, y) = released("{\"x\":1,\"y\":null}\n{}\n{\"x\":1}\n{\"y\":null}");
    assert_eq!((x, y), (["-", "-", "1", "1"].map(str::to_owned).to_vec(), DataType::Utf8));
    let (_, x, _) =
        released("{\"x\":\"\\u00fc \\ud83d\\ude00 \\\"\",\"y\":1}\n{\"x\":\"ü 😀 \\\"\",\"y\":1}");
    assert_eq!(x, ["ü 😀 \""; 2]);

    for (json, code, part) in [
        ("", 3, "no rows"),
        ("\n\n", 3, "no rows"),
        ("[{\"x\":1}]\n", 3, "in.json: line 1: expected one JSON object per line"),
        ("{\"x\":1,\"y\":1}\n{\"x\":\"SECRET\"}\n", 3, "in.json: line 2: column `x` holds numbers and texts"),
        ("{\"x\":[1],\"y\":1}\n", 2, "columns.x: a list cannot have the role `quasi`"),
        ("{\"x\":{\"z\":1},\"y\":1}\n", 2, "columns.x: a struct cannot have the role `quasi`"),
        ("{\"x\":1}\n", 2, "the input has no column `y`"),
        ("{\"x\":1,\"y\":1,\"z\":1}\n", 2, "1 column of the input without a role: z"),
    ] {
        place.write("in.json", json);
        let ran = place.run("release in.json --policy p.toml --to new").exit(code).says(part);
        assert!(!ran.err.contains("SECRET"), "{ran:?}");
    }
    // Nested keys that are dropped are not read, whatever they hold.
    place.write("in.json", "{\"x\":1,\"y\":1,\"z\":[1,{\"a\":null}]}\n{\"x\":1,\"y\":1,\"z\":\"text\"}\n");
    place.write(
        "q.toml",
        "k = 2\nrows_are_individuals = true\nothers = \"drop\"\n[columns]\nx = { role = \"quasi\" }",
    );
    place.run("release in.json --policy q.toml --to new").exit(0);
    place.write(
        "q.toml",
        "k = 2\nothers = \"drop\"\n[columns]\nx = { role = \"quasi\" }\nz = { role = \"identifier\" }",
    );
    place.run("release in.json --policy q.toml --to none").exit(2).says("`z` holds lists or objects");
}

#[test]
fn files_that_do_not_go_together() {
    let (place, rows) = (Place::new(), people());
    place.write("p.toml", POLICY);
    let refused = |input: &str, code: i32, part: &str| {
        for command in ["search", "check", "risk"] {
            place.run(&format!("{command} {input} --policy p.toml")).exit(code).says(part);
        }
        place.run(&format!("release {input} --policy p.toml --to out")).exit(code).says(part);
    };
    place.parquet("a/a.parquet", &rows);
    place.write("a/b.json", json_lines(&rows));
    refused("a", 3, "Parquet and JSON lines files are mixed; give files of one kind");
    place.arrow_file("b/a.arrow", &rows);
    place.arrow_stream("b/b.arrow", &rows);
    refused("b", 3, "b/b.arrow: Arrow files and Arrow streams are mixed");
    place.write("c/a.csv", csv(&rows, ","));
    place.write("c/b.tsv", csv(&rows, "\t"));
    refused("c", 2, ".tsv files are mixed with others");
    place.write("d/a.csv", csv(&rows, ","));
    place.write("d/b.csv", "zip,dob,age,disease,cost\n02139,2024-01-01,1,flu,1\n");
    refused("d", 3, "d/b.csv: column 1 does not have the name that it has in d/a.csv");
    place.write("d/b.csv", csv(&rows, ",").replace("disease,cost\n", "disease,price\n"));
    refused("d", 3, "d/b.csv: column 5 does not have the name that it has in d/a.csv");
    place.write("d/b.csv", "dob,zip,age,disease\n2024-01-01,02139,1,flu\n");
    refused("d", 3, "d/b.csv: the first line has 4 cells, that of d/a.csv has 5");
    place.write("e/a.json", json_lines(&rows));
    place.write("e/b.json", "{\"dob\": 3}");
    refused("e", 3, "e/b.json: line 1: column `dob` holds numbers and texts");
    place.write("damaged.arrow", "ARROW1 and nothing else");
    refused("damaged.arrow", 3, "damaged.arrow: the file is damaged");
    place.write("damaged.arrows", "no stream");
    refused("damaged.arrows", 3, "damaged.arrows: the file is damaged");
    place.write("one.feather", "FEA1....FEA1");
    refused("one.feather", 3, "Feather version 1");
    place.write("empty.arrow", "");
    refused("empty.arrow", 3, "empty.arrow: the file is empty");
    // How CSV is written does not matter to other formats: one policy serves a table in all of them.
    place.write("p.toml", format!("{POLICY}\n[input]\ndelimiter = \";\""));
    place.parquet("in.parquet", &rows);
    place.run("release in.parquet --policy p.toml --to semicolon").exit(0);
}

#[test]
fn csv_lines_that_are_wrong_are_named() {
    let place = Place::new();
    place.write("p.toml", "k = 2\nrows_are_individuals = true\n[columns]\nx = { role = \"quasi\" }\ny = { role = \"insensitive\", allow_unique = true }");
    for (csv, part) in [
        (&b"x,y\n1,2\n1\n"[..], "in.csv: line 3: 1 fields, the first line has 2"),
        (b"x,y\r\n1,2\r\n1,2,SECRET\r\n", "in.csv: line 3: 3 fields"),
        (b"x,y\n1,2\n\"SECRET,2\n1,2\n", "in.csv: line 3: 1 fields"),
        (b"x,y\n1,SECRET\xff\n", "in.csv: line 2: field 2 is not UTF-8"),
        (b"x,y\n1,2\n1,\0\n", "in.csv: line 3: field 2 holds a NUL byte"),
        (b"x\0,\0y\0", "in.csv: the first line holds a NUL byte"),
        (b"\xff\xfex\0,\0y\0", "no rows"),
        (b"\xff\xfex\0,\0y", "in.csv: holds bytes that are no text in UTF-16LE"),
        (b"", "in.csv: the file is empty"),
        (b"x,y\n", "no rows"),
        (b"x,x\n1,2\n", "columns 1 and 2 of the input have the same name"),
        (b"x,,\n1,2,3\n", "columns 2 and 3 of the input have the same name"),
    ] {
        place.write("in.csv", csv);
        for line in ["release in.csv --policy p.toml --to out", "check in.csv --policy p.toml"] {
            let ran = place.run(line).exit(3).says(part);
            assert!(!ran.err.contains("SECRET"), "{ran:?}");
        }
    }
    // A column without a name can be dropped; very long cells and many columns are read.
    place.write("q.toml", "k = 2\nrows_are_individuals = true\nothers = \"drop\"\n[columns]\nx = { role = \"quasi\" }\n\"\" = { role = \"insensitive\", allow_unique = true }");
    let long = "l".repeat(1 << 20);
    place.write("in.csv", format!("x,,z\n{long},a,1\n{long},\"b\nc\",2\n"));
    place.run("release in.csv --policy q.toml --to out").exit(0);
    place.run("verify out --input in.csv").exit(0);
    let rows = place.released("out");
    assert_eq!((rows.num_columns(), texts(&rows, "x")[0].len()), (2, 1 << 20));
}

#[test]
fn tables_of_odd_sizes() {
    let place = Place::new();
    let policy = |k: u32| {
        format!(
            "k = {k}\nrows_are_individuals = true\nothers = \"drop\"\n[columns]\nc0 = {{ role = \"quasi\" }}"
        )
    };
    place.write("p.toml", policy(2));
    let wide = |columns: usize, rows: usize| {
        let names: Vec<String> = (0..columns).map(|n| format!("c{n}")).collect();
        let column = |n: usize| -> ArrayRef { Arc::new(StringArray::from(vec![format!("v{n}"); rows])) };
        let columns = names.iter().enumerate().map(|(n, name)| (name.as_str(), column(n)));
        table(columns.collect::<Vec<_>>())
    };
    let write = |columns: usize, rows: usize| {
        let rows = wide(columns, rows);
        place.parquet("in.parquet", &rows);
        place.arrow_file("in.arrow", &rows);
        place.arrow_stream("in.arrows", &rows);
        place.write("in.csv", csv(&rows, ","));
        place.write("in.json", json_lines(&rows));
    };
    let inputs = ["in.parquet", "in.arrow", "in.arrows", "in.csv", "in.json"];
    write(2, 0);
    for input in inputs {
        for command in ["search", "check", "risk"] {
            place.run(&format!("{command} {input} --policy p.toml")).exit(3).says("no rows");
        }
        place.run(&format!("release {input} --policy p.toml --to out")).exit(3).says("no rows");
    }
    write(1, 1);
    for input in inputs {
        place.run(&format!("release {input} --policy p.toml --to out")).exit(1).says("only 1 row");
        place.run(&format!("risk {input} --policy p.toml")).exit(0);
        place.run(&format!("check {input} --policy p.toml")).exit(1);
    }
    write(500, 2);
    for input in inputs {
        place.run(&format!("release {input} --policy p.toml --to out --overwrite")).exit(0);
        place.run(&format!("verify out --input {input}")).exit(0);
        let all =
            (0..500).map(|n| format!("c{n} = {{ role = \"insensitive\" }}\n")).skip(1).collect::<String>();
        place.write("all.toml", format!("{}\n{all}", policy(2)));
        place.run(&format!("release {input} --policy all.toml --to out --overwrite")).exit(0);
        assert_eq!(place.released("out").num_columns(), 500);
    }
}

const STAYS: &str = r#"
    k = 2
    rows_are_individuals = true
    accept_homogeneity = ["died"]
    [columns]
    admission = { role = "identifier" }
    discharge = { role = "quasi", relative_to = "admission", hierarchy = { range = [7] }, min_level = 1 }
    scan      = { role = "insensitive", relative_to = "admission" }
    died      = { role = "sensitive", relative_to = "admission" }
"#;

#[test]
fn dates_become_days_since_another_date() {
    let place = Place::new();
    place.write("p.toml", STAYS);
    let dates = |days: [Option<i32>; 4]| -> ArrayRef { Arc::new(Date32Array::from(days.to_vec())) };
    let rows = table([
        ("admission", dates([Some(19_000), Some(18_000), Some(10), None])),
        ("discharge", dates([Some(19_008), Some(18_013), Some(9), Some(5)])),
        ("scan", dates([Some(18_999), None, Some(10), Some(5)])),
        ("died", dates([None, Some(18_400), Some(11), Some(5)])),
    ]);
    // The third was discharged a day before, the fourth has no admission: both are alone, so add their like.
    let rows = arrow::compute::concat_batches(&rows.schema(), [&rows, &rows]).unwrap();
    place.parquet("in.parquet", &rows);
    place.arrow_file("in.arrow", &rows);
    place.write("in.csv", csv(&rows, ","));
    place.write("in.json", json_lines(&rows));
    for input in ["in.parquet", "in.arrow", "in.csv", "in.json"] {
        place.run(&format!("release {input} --policy p.toml --to out --overwrite")).exit(0);
        place.run(&format!("verify out --input {input}")).exit(0);
        place.run("verify out").exit(0);
        let out = place.released("out");
        let schema = out.schema();
        let label =
            |name: &str| schema.field_with_name(name).unwrap().metadata().get("kanon.generalized").cloned();
        assert_eq!(label("discharge").unwrap(), "days_since:admission range:7");
        assert_eq!([label("scan").unwrap(), label("died").unwrap()], ["days_since:admission"; 2]);
        assert!(out.column_by_name("admission").is_none());
        let scan = out.column_by_name("scan").unwrap().as_primitive::<Int64Type>().clone();
        let scan: Vec<Option<i64>> = scan.iter().collect();
        let mut found: Vec<_> =
            texts(&out, "discharge").into_iter().zip(scan).zip(texts(&out, "died")).collect();
        found.sort();
        let row = |discharge: &str, scan, died: &str| ((discharge.to_owned(), scan), died.to_owned());
        let expected = [
            row("-", None, "-"),
            row("[-07,00)", Some(0), "1"),
            row("[07,14)", None, "400"),
            row("[07,14)", Some(-1), "-"),
        ];
        assert_eq!(found, expected.into_iter().flat_map(|row| [row.clone(), row]).collect::<Vec<_>>());
    }
    // Another admission, other days: the release is none of that input.
    let moved = |by: i32| -> ArrayRef { Arc::new(Date32Array::from(vec![Some(19_000 + by); 8])) };
    let mut columns = rows.columns().to_vec();
    columns[0] = moved(1);
    place.parquet("moved.parquet", &RecordBatch::try_new(rows.schema(), columns).unwrap());
    place.run("verify out --input moved.parquet").exit(1).says("verification refused");
    place.write("p.toml", STAYS.replace("relative_to = \"admission\" }", "relative_to = \"admision\" }"));
    place.run("release in.csv --policy p.toml --to new").exit(2).says("did you mean `admission`?");
    place.write("p.toml", STAYS.replace("\"identifier\"", "\"insensitive\", relative_to = \"scan\""));
    place.run("release in.csv --policy p.toml --to new").exit(2).says("is itself relative to another column");
    place.write("p.toml", STAYS);
    place.write("in.csv", "admission,discharge,scan,died\nSECRET,2024-01-01,,\n");
    let ran = place
        .run("release in.csv --policy p.toml --to new")
        .exit(3)
        .says("column `admission`: 1 row does not hold a date");
    assert!(!ran.err.contains("SECRET"), "{ran:?}");
}

/// A writer that changes the unit leaves the zone in the Arrow schema of the footer only: days are
/// the zone's all the same.
#[test]
fn zones_of_parquet_files_whose_writer_changed_the_unit() {
    use arrow::array::{AsArray, TimestampMillisecondArray};
    use arrow::datatypes::{DataType, Field, Schema, TimeUnit, TimestampMillisecondType};
    use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
    use datafusion::parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowWriter, encode_arrow_schema};
    use datafusion::parquet::file::metadata::KeyValue;
    use datafusion::parquet::file::properties::WriterProperties;

    let place = Place::new();
    // 2024-06-30 12:00 and 23:30 in UTC: two days in Berlin.
    let moments = [1_719_748_800_000, 1_719_790_200_000].map(|moment| [moment; 2]).concat();
    let moments = TimestampMillisecondArray::from(moments).with_timezone("UTC");
    let rows = table([("seen", Arc::new(moments) as ArrayRef)]);
    let berlin = DataType::Timestamp(TimeUnit::Nanosecond, Some("Europe/Berlin".into()));
    let written = encode_arrow_schema(&Schema::new(vec![Field::new("seen", berlin, true)]));
    let footer = vec![KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), written)];
    let properties = WriterProperties::builder().set_key_value_metadata(Some(footer)).build();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let file = std::fs::File::create(place.path("in.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new_with_options(file, rows.schema(), options).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();

    let hierarchy = "hierarchy = { date = [\"day\"] }, min_level = 1, max_level = 1";
    let policy = format!(
        "k = 2\nrows_are_individuals = true\n[columns]\nseen = {{ role = \"quasi\", {hierarchy} }}\n"
    );
    place.write("p.toml", policy);
    place.run("release in.parquet --policy p.toml --to out").exit(0);
    place.run("verify out --input in.parquet").exit(0);
    let released = place.released("out");
    let seen = released.column_by_name("seen").unwrap();
    assert_eq!(*seen.data_type(), DataType::Timestamp(TimeUnit::Millisecond, Some("Europe/Berlin".into())));
    let days: Vec<i64> = seen.as_primitive::<TimestampMillisecondType>().values().to_vec();
    assert_eq!(days, [1_719_698_400_000, 1_719_698_400_000, 1_719_784_800_000, 1_719_784_800_000]);
}

/// Texts in another zone than UTC, or that a reader would round, are refused with their cause;
/// those in UTC are days of UTC.
#[test]
fn texts_that_are_not_what_they_seem() {
    let place = Place::new();
    let levels = |column: &str, hierarchy: &str| {
        format!(
            "k = 2\nrows_are_individuals = true\n[columns]\n{column} = {{ role = \"quasi\", hierarchy = {{ {hierarchy} }}, \
             min_level = 1, max_level = 1 }}\n"
        )
    };
    let refused = |cells: &[&str], causes: &[&str]| {
        let lines: String = cells.iter().map(|cell| format!("\"{cell}\"\n")).collect();
        place.write("in.csv", format!("q\n{lines}{lines}"));
        let lines: String = cells.iter().map(|cell| format!("{{\"q\": \"{cell}\"}}\n")).collect();
        place.write("in.json", lines.repeat(2));
        for input in ["in.csv", "in.json"] {
            let mut ran =
                place.run(&format!("release {input} --policy p.toml --to out")).exit(3).says("column `q`: ");
            for cause in causes {
                ran = ran.says(cause);
            }
            assert!(cells.iter().all(|cell| !ran.err.contains(cell) || cell.len() < 5), "{ran:?}");
        }
    };
    place.write("p.toml", levels("q", "date = [\"month\"]"));
    let zone = "; 2 have a time zone other than UTC";
    for cell in ["America/New_York", "EST", "Asia/Tokyo"] {
        let cell = format!("2020-06-30T23:00:00 {cell}");
        refused(&[&cell, "2020-06-30T23:00:00"], &["2 rows do not hold a date", zone]);
    }
    refused(&["2020-06-30T23:00:00-05:00"], &["2 rows do not hold a date", zone]);
    refused(&["2020-06-30T23:59:60"], &["2 rows do not hold a date (such as 2020-12-31"]);
    place.write("p.toml", levels("q", "floor = [10]"));
    refused(
        &["1e400", "5"],
        &["2 rows do not hold a number", "; 2 have a number beyond the range of a double"],
    );
    refused(&["1234567890123456789", "0.5"], &["; 2 have an integer beyond 2^53"]);
    // The same as days since another date.
    let days = "k = 2\nrows_are_individuals = true\n[columns]\nq = { role = \"identifier\" }\n\
                d = { role = \"quasi\", relative_to = \"q\", hierarchy = { range = [7] } }\n";
    place.write("p.toml", days);
    place.write(
        "in.csv",
        "q,d\n2020-06-30,2020-06-30T23:00:00 America/New_York\n2020-06-30,2020-06-30T23:00:00Z\n",
    );
    let ran = place.run("release in.csv --policy p.toml --to out").exit(3);
    assert!(
        ran.err.contains("column `d`: 1 row does not hold a date") && ran.err.contains("; 1 has a time zone"),
        "{ran:?}"
    );
    place.write("in.csv", "q,d\n2020-06-30,2020-06-30T23:59:59.999Z\n2020-06-30 00:00:00,2020-06-30\n");
    place.run("release in.csv --policy p.toml --to out").exit(0);
    place.run("verify out --input in.csv").exit(0);
    assert_eq!(texts(&place.released("out"), "d"), ["0", "0"]);
    // What is in UTC, in all forms.
    place.write("p.toml", levels("q", "date = [\"month\"]"));
    place.write("in.csv", "q\n2020-06-30T23:00:00Z\n2020-06-30 23:00:00+00:00\n2020-06-30 23:00:00 UTC\n2020-06-30t23:00:00.5\n");
    place.run("release in.csv --policy p.toml --to out --overwrite").exit(0);
    place.run("verify out --input in.csv").exit(0);
    assert_eq!(texts(&place.released("out"), "q"), ["2020-06-01T00:00:00"; 4]);
}

#[test]
fn anonymize_verifies_a_file_by_the_other_way_of_reading_texts() {
    let place = Place::new();
    place.write("in.csv", "age,dob,dx\n30,2001-02-03,a\n31,2001-02-04,b\n32,2001-05-03,a\n33,2001-05-04,b\n");
    let policy = "k = 2\nrows_are_individuals = true\naccept_homogeneity = [\"dx\"]\n[columns]\n\
                  age = { role = \"quasi\", hierarchy = { range = [10] } }\n\
                  dob = { role = \"quasi\", hierarchy = { date = [\"year\"] } }\ndx = { role = \"sensitive\" }\n";
    place.write("p.toml", policy);
    // Once each for the profile, the rows and the verification; only the last reads the texts one by one.
    let explain = "EXPLAIN SELECT * FROM anonymize('in.csv', 'p.toml')";
    let plan = place.run_on("sql -c", Some(explain), "").exit(0).out;
    assert_eq!(plan.matches("kanon_plain_value").count(), 2, "{plan}");
    let rows = place.run_on("sql -c", Some("SELECT * FROM anonymize('in.csv', 'p.toml')"), "");
    assert_eq!((rows.code, rows.out.matches("[30,40)").count()), (0, 4), "{rows:?}");
}
