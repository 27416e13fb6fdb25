//! No cell is ever shown: not on a terminal, not in a log, not in a record, not in a backtrace.
//!
//! Every cell of these tables is a canary. Commands succeed and fail in every way that can be
//! provoked, and nothing they say may contain one. The rows of a release are the one place for
//! cells, and there no value may be found that occurs in suppressed rows only.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test may, and its numbers are small"
)]

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, Date32Array, Date64Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, TimestampSecondArray,
};
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use datafusion_kanon::internals::class::{EvaluatedNode, Unlimited};
use datafusion_kanon::internals::engine::{Resources, Run};
use datafusion_kanon::internals::generalize::{GENERALIZERS, GeneralizerRow, Value as Cell};
use datafusion_kanon::internals::input::{Input, PolicySource, open};
use datafusion_kanon::internals::parameter::{Kind, Setting, TextTable};
use datafusion_kanon::internals::policy::{Folder, PolicySpec};
use datafusion_kanon::internals::release::{self, profile_classes, release, search};
use serde_json::Value;

use crate::command::{Place, Ran, read, table, texts};

/// What every canary of these tables contains: texts, numbers (as people write them too), dates, timestamps.
const CANARIES: [&str; 6] = ["canary", "918273645", "918,273,645", "9.18273645", "7391-", "7392-"];

#[track_caller]
fn clean(what: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).to_lowercase();
    for canary in CANARIES {
        assert!(!text.contains(canary), "`{canary}` in {what}: {text:.2000}");
    }
}

/// Days from 1970 to a day of the year 7391.
const YEAR_7391: i32 = 1_979_985;
/// A number that no other text holds by chance.
const NUMBER: i64 = 918_273_645_000;

const ROWS: i32 = 40;

fn canaries() -> RecordBatch {
    canaries_of(ROWS)
}

/// A table without an innocent cell: no value comes twice.
fn canaries_of(rows: i32) -> RecordBatch {
    fn texts_of(rows: i32, what: &str) -> ArrayRef {
        Arc::new((0..rows).map(|n| Some(format!("{n:03}-Canary-{what}"))).collect::<StringArray>())
    }
    let day = |n: i32| YEAR_7391 + 30 + (n * 7) % 300;
    let micros = |n: i32| (i64::from(day(n) + 366) * 86_400 + 7) * 1_000_000 + i64::from(n);
    table([
        ("name", texts_of(rows, "name")),
        ("zip", texts_of(rows, "zip")),
        ("town", texts_of(rows, "town")),
        ("age", Arc::new((0..rows).map(|n| Some(NUMBER + 17 * i64::from(n))).collect::<Int64Array>()) as _),
        (
            "weight",
            Arc::new(
                (0..rows)
                    .map(|n| Some(NUMBER as f64 + 0.125 + 13.0 * f64::from(n)))
                    .collect::<Float64Array>(),
            ),
        ),
        ("born", Arc::new((0..rows).map(|n| Some(day(n))).collect::<Date32Array>())),
        ("seen", Arc::new((0..rows).map(|n| Some(micros(n))).collect::<TimestampMicrosecondArray>())),
        ("note", texts_of(rows, "note")),
        ("diagnosis", texts_of(rows, "diagnosis")),
    ])
}

/// `town` to one letter; the file holds what the column holds.
fn towns() -> String {
    (0..ROWS).map(|n| format!("{n:03}-Canary-town,{}\n", if n % 2 == 0 { "even" } else { "odd" })).collect()
}

const POLICY: &str = r#"
    k = 5
    suppression_limit = 0.05
    rows_are_individuals = true
    accept_homogeneity = ["diagnosis"]
    [columns]
    name = { role = "identifier" }
    zip  = { role = "quasi", hierarchy = { prefix = [8, 2, 1] } }
    town = { role = "quasi", hierarchy = { file = "towns.csv" } }
    age  = { role = "quasi", hierarchy = { range = [10, 1000000000] } }
    weight = { role = "quasi", hierarchy = { floor = [10, 1000000000] } }
    born = { role = "quasi", hierarchy = { date = ["decade"] } }
    seen = { role = "quasi", hierarchy = { date = ["decade"] } }
    note = { role = "text" }
    diagnosis = { role = "sensitive", allow_unique = true }
"#;

/// The inputs and policies that every case starts from.
fn scene() -> Place {
    let place = Place::new();
    place.parquet("in.parquet", &canaries());
    place.write("towns.csv", towns());
    place.write("p.toml", POLICY);
    let batch = canaries();
    let columns: Vec<(String, Vec<String>)> =
        batch.schema().fields().iter().map(|f| (f.name().clone(), texts(&batch, f.name()))).collect();
    let mut csv = columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(",") + "\n";
    for row in 0..batch.num_rows() {
        csv += &(columns.iter().map(|(_, cells)| cells[row].as_str()).collect::<Vec<_>>().join(",") + "\n");
    }
    place.write("in.csv", csv);
    place
}

/// How a command is run: what it prints and what surrounds it.
const WAYS: [(&str, &[(&str, &str)]); 3] = [
    ("--format text", &[]),
    ("--format json", &[]),
    ("--format text", &[("RUST_LOG", "trace"), ("RUST_BACKTRACE", "full"), ("RUST_LIB_BACKTRACE", "1")]),
];

/// Runs a command in every way; none may show a canary.
#[track_caller]
fn run_clean(place: &Place, line: &str, code: i32) -> Ran {
    let mut last = None;
    for (form, variables) in WAYS {
        let ran = place.run_with(&format!("{line} {form}"), variables).exit(code);
        clean(line, ran.out.as_bytes());
        clean(line, ran.err.as_bytes());
        if form.ends_with("json") && code > 1 {
            let error: Value = serde_json::from_str(&ran.err).unwrap();
            assert!(error["error"].is_string(), "{ran:?}");
        }
        last = Some(ran);
    }
    last.unwrap()
}

/// A private record without what it keeps word for word.
fn without_verbatim(record: &mut Value) {
    let record = record.as_object_mut().unwrap();
    assert_eq!(record.remove("policy"), Some(Value::String(POLICY.into())));
    let hierarchies = record.remove("hierarchies").unwrap();
    assert_eq!(hierarchies["towns.csv"], towns());
    assert_eq!(hierarchies.as_object().unwrap().len(), 1);
}

#[test]
fn commands_that_succeed() {
    for input in ["in.parquet", "in.csv"] {
        let place = scene();
        run_clean(&place, &format!("init {input}"), 0);
        run_clean(&place, &format!("check {input} --policy p.toml"), 1);
        run_clean(
            &place,
            &format!("check {input} --quasi zip,age,born,seen,name --require 'k_anonymity(2)'"),
            1,
        );
        run_clean(&place, &format!("search {input} --policy p.toml --top 50"), 0);
        run_clean(&place, &format!("risk {input} --policy p.toml"), 0);
        run_clean(&place, &format!("risk {input} --quasi name,weight"), 0);
        run_clean(&place, "list", 0);
        run_clean(&place, &format!("hierarchy {input} zip --by 'prefix = [2]' --to zip.csv --overwrite"), 0);
        run_clean(&place, &format!("hierarchy check towns.csv --input {input} --column town"), 0);
        run_clean(&place, &format!("hierarchy check towns.csv --input {input} --column zip"), 1);
        run_clean(&place, &format!("hierarchy {input} name --by country"), 2);
        fs::remove_file(place.path("zip.csv")).unwrap();
        let release = format!("release {input} --policy p.toml --to out --report report.json --overwrite");
        run_clean(&place, &release, 0);
        run_clean(&place, "verify out", 0);
        run_clean(&place, &format!("verify out --input {input}"), 0);
        run_clean(&place, &format!("verify out --input {input} --policy p.toml"), 0);
        run_clean(&place, "risk out", 0);
        run_clean(&place, "check out --quasi zip,age --k 5", 0);
        run_clean(
            &place,
            &format!("link {input} {input} --on zip,age,born --individual name --sensitive note"),
            0,
        );
        run_clean(&place, &format!("link {input} out --individual name"), 0);
        run_clean(&place, &format!("link {input} out --policy p.toml --k 41"), 1);

        // Only the rows hold cells, and of them only what the policy releases.
        let released = place.released("out");
        assert!(texts(&released, "diagnosis").iter().all(|cell| cell.contains("Canary")));
        for name in ["zip", "town", "age", "weight", "born", "seen"] {
            clean(name, texts(&released, name).join(" ").as_bytes());
        }
        clean("_kanon.json", &fs::read(place.path("out/_kanon.json")).unwrap());
        for (name, bytes) in place.tree() {
            clean("a name", name.as_bytes());
            match name.as_str() {
                "out.private.json" => {
                    let mut record: Value = serde_json::from_slice(&bytes).unwrap();
                    without_verbatim(&mut record);
                    clean(&name, record.to_string().as_bytes());
                }
                "report.json" => {
                    let mut report: Value = serde_json::from_slice(&bytes).unwrap();
                    without_verbatim(&mut report["private"]);
                    clean(&name, report.to_string().as_bytes());
                }
                "out/_kanon.json" | "out" | "p.toml" => clean(&name, &bytes),
                "in.parquet" | "in.csv" | "towns.csv" | "out/part-00000.parquet" => {}
                other => panic!("{other} is left"),
            }
        }
        for secret in ["out.private.json", "report.json"] {
            let mode = fs::metadata(place.path(secret)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{secret}");
        }
    }
}

/// A failing release: nothing is left, nothing is shown, by no command that reads the same.
#[track_caller]
fn fails(place: &Place, input: &str, code: i32, part: &str) {
    let before = place.tree();
    run_clean(place, &format!("release {input} --policy p.toml --to out"), code).says(part);
    run_clean(place, &format!("search {input} --policy p.toml"), code);
    assert!(before == place.tree(), "something is left");
}

/// The lines of the CSV input with one cell replaced.
fn csv_with(place: &Place, from: &str, to: &[u8]) {
    let text = fs::read_to_string(place.path("in.csv")).unwrap();
    let at = text.find(from).unwrap();
    let bytes = [&text.as_bytes()[..at], to, &text.as_bytes()[at + from.len()..]].concat();
    place.write("bad.csv", bytes);
}

#[test]
fn csv_that_does_not_fit() {
    let place = scene();
    let born = format!("{},", texts(&canaries(), "born")[3]);
    for (from, to, part) in [
        ("918273645017,", &b"canary-no-number,"[..], "column `age`: 1 row does not hold a number"),
        (&born, b"7391-02-canary,", "column `born`: 1 row does not hold a date"),
        (",003-Canary-diagnosis", b"", "fields, the first line has"),
        ("003-Canary-name,", b"003-Canary-name,918273645111,", "fields, the first line has"),
        ("003-Canary-name,", b"\"003-Canary-name,", "fields, the first line has"),
        ("003-Canary-name,", b"003-Canary-\xff\xfe,", "is not UTF-8; save the file as UTF-8"),
        ("name,zip,", b"name,\xffcanary,", "the first line is not UTF-8"),
    ] {
        csv_with(&place, from, to);
        fails(&place, "bad.csv", 3, part);
        // A cell that does not fit its column is none that cannot be read; of another encoding
        // `init` takes the likeliest, and it shows names.
        let is_read = part.starts_with("column") || part.starts_with("is not UTF-8");
        if !part.starts_with("the first line") {
            run_clean(&place, "init bad.csv", if is_read { 0 } else { 3 });
        }
        if !part.starts_with("column") {
            run_clean(&place, "check bad.csv --quasi zip,town --k 5", 3);
            run_clean(&place, "risk bad.csv --quasi zip,town", 3);
        }
    }
}

#[test]
fn parquet_that_is_damaged() {
    let place = scene();
    let form = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    place.parquet_with("in.parquet", &canaries(), form);
    let whole = fs::read(place.path("in.parquet")).unwrap();
    place.write("half.parquet", &whole[..whole.len() / 2]);
    fails(&place, "half.parquet", 3, "damaged");
    place.write("text.parquet", "918273645000,Canary\n");
    fails(&place, "text.parquet", 3, "damaged");
    place.write("empty.parquet", "");
    fails(&place, "empty.parquet", 3, "is empty (0 bytes)");
    // Every page in turn, behind a footer that is as it was.
    for at in (4..whole.len() - 3_000).step_by(401) {
        let mut bytes = whole.clone();
        bytes[at..at + 12].fill(0xAA);
        place.write("page.parquet", bytes);
        let ran = place.run_with("release page.parquet --policy p.toml --to out", &[("RUST_BACKTRACE", "1")]);
        clean("a damaged page", ran.err.as_bytes());
        clean("a damaged page", ran.out.as_bytes());
        // Some bytes are in no page that is read.
        assert!([0, 1, 2, 3].contains(&ran.code), "{at}: {ran:?}");
        let _ = (fs::remove_dir_all(place.path("out")), fs::remove_file(place.path("out.private.json")));
    }
    // A second file of the input that does not match the first.
    place.parquet("lake/a.parquet", &canaries());
    let other = table([("zip", Arc::new(Int64Array::from(vec![NUMBER])) as ArrayRef)]);
    place.parquet("lake/b.parquet", &other);
    fails(&place, "lake", 3, "column `zip`");
}

#[test]
fn hierarchy_files_that_do_not_fit() {
    let place = scene();
    let good = towns();
    let without = good.split_once('\n').unwrap().1;
    for (text, code, part) in [
        (without.to_owned(), 2, "columns.town.hierarchy"),
        (format!("{good}003-Canary-town,even\n"), 2, "towns.csv"),
        (good.replace(",even\n", ",even,Canary\n"), 2, "towns.csv"),
        (good.replace(",odd\n", ",odd,canary-1\n").replace(",even\n", ",odd,canary-2\n"), 2, "towns.csv"),
        (format!("{good}\"Canary,even\n"), 2, "towns.csv"),
        (String::new(), 2, "towns.csv"),
        ("Canary\n".to_owned(), 2, "towns.csv"),
    ] {
        place.write("towns.csv", text);
        fails(&place, "in.parquet", code, part);
        fails(&place, "in.csv", code, part);
    }
    place.write("towns.csv", b"Canary-\xff,even\n");
    fails(&place, "in.parquet", 2, "towns.csv");
    fs::remove_file(place.path("towns.csv")).unwrap();
    fails(&place, "in.parquet", 3, "towns.csv");
}

#[test]
fn requirements_that_cannot_be_met() {
    let place = scene();
    place.write("p.toml", POLICY.replace("k = 5", "k = 1000"));
    fails(&place, "in.parquet", 1, "cannot be met");
    place.write("p.toml", POLICY.replace("[8, 2, 1] }", "[8, 2, 1] }, max_level = 1"));
    let ran = run_clean(&place, "release in.parquet --policy p.toml --to out", 1);
    assert!(ran.err.contains("no combination of levels"), "{ran:?}");
    let ran = run_clean(&place, "search in.parquet --policy p.toml", 1);
    assert!(ran.err.is_empty(), "{ran:?}");
}

#[test]
fn places_that_cannot_be_written() {
    let place = scene();
    place.write("out/thesis.txt", "Canary");
    run_clean(&place, "release in.parquet --policy p.toml --to out", 2);
    run_clean(&place, "release in.parquet --policy p.toml --to out --overwrite", 2);
    run_clean(&place, "release in.parquet --policy p.toml --to in.parquet/out", 2);
    run_clean(&place, "release in.parquet --policy p.toml --to in.parquet", 2);
    run_clean(&place, "release nothing.parquet --policy p.toml --to new", 3);
    run_clean(&place, "release in.parquet --policy nothing.toml --to new", 3);
    run_clean(&place, "release in.parquet --policy towns.csv --to new", 2);
    run_clean(&place, "check in.parquet --policy p.toml --k 0", 2);
    assert_eq!(place.files("out").len(), 1);
    assert!(!place.path("new").exists());
}

/// Names of folders hold cells; nothing that is said names them.
#[test]
fn folders_that_are_named_by_cells() {
    let by = "partition_by = [\"diagnosis\"]";
    let place = scene();
    place.write("p.toml", format!("{POLICY}\n[output]\n{by}"));
    // The record lists the files, whose names are as public as the rows.
    for line in ["release in.parquet --policy p.toml --to out --overwrite", "explain out"] {
        for (form, variables) in WAYS {
            let ran = place.run_with(&format!("{line} {form}"), variables).exit(0);
            let is_of_file = |line: &&str| !line.trim_start().starts_with("\"name\": \"diagnosis=");
            let said: String = ran.out.lines().filter(is_of_file).collect();
            clean(line, said.as_bytes());
            clean(line, ran.err.as_bytes());
        }
    }
    let mut good = place.tree();
    good.retain(|name, _| name.starts_with("out/") && place.path(name).is_file());
    assert_eq!(good.len(), ROWS as usize + 1);
    let first = "out/diagnosis=000-Canary-diagnosis/part-00000.parquet";
    for line in ["verify out", "verify out --input in.parquet", "risk out"] {
        run_clean(&place, line, 0);
    }
    run_clean(&place, "check out --quasi zip,diagnosis --k 1", 0);
    run_clean(&place, "link in.parquet out --individual name", 0);
    run_clean(&place, "release in.parquet --policy p.toml --set k=4 --to out", 2);

    // Files and folders that were changed; they are input as well.
    let says_nothing = |line: &str, codes: &[i32]| {
        for (form, variables) in WAYS {
            let ran = place.run_with(&format!("{line} {form}"), variables);
            assert!(codes.contains(&ran.code), "{line}: {ran:?}");
            clean(line, ran.out.as_bytes());
            clean(line, ran.err.as_bytes());
        }
    };
    let other = &good["out/diagnosis=001-Canary-diagnosis/part-00001.parquet"];
    let renamed = |to: &str| {
        let to = place.path("out").join(to);
        fs::rename(place.path("out/diagnosis=000-Canary-diagnosis"), to).unwrap();
    };
    let changes: [&dyn Fn(); 8] = [
        &|| fs::remove_file(place.path(first)).unwrap(),
        &|| place.write(first, "Canary"),
        &|| place.write(first, other),
        &|| place.write("out/diagnosis=000-Canary-diagnosis/extra.parquet", "Canary"),
        &|| place.write("out/town=Canary/part-00000.parquet", &good[first]),
        &|| renamed("diagnosis=Canary%"),
        &|| renamed("diagnosis=999-Canary"),
        &|| renamed("Diagnosis=999-Canary"),
    ];
    for change in changes {
        change();
        says_nothing("verify out", &[1]);
        says_nothing("verify out --input in.parquet", &[1]);
        says_nothing("check out --quasi zip,diagnosis --k 1", &[0, 3]);
        says_nothing("init out", &[0, 3]);
        fs::remove_dir_all(place.path("out")).unwrap();
        good.iter().for_each(|(name, bytes)| place.write(name, bytes));
    }

    // Values that cannot name folders.
    let before = place.tree();
    for to in ["Canary\t", &"Canary".repeat(50)] {
        csv_with(&place, "003-Canary-diagnosis", to.as_bytes());
        run_clean(&place, "release bad.csv --policy p.toml --to new", 3).says("output.partition_by");
        fs::remove_file(place.path("bad.csv")).unwrap();
        assert!(before == place.tree(), "something is left");
    }
}

/// Values at the ends of their types.
#[test]
fn values_that_no_level_takes() {
    let extreme = |array: ArrayRef, hierarchy: &str, part: &str| {
        let place = Place::new();
        place.parquet("in.parquet", &table([("x", array)]));
        let policy = format!(
            "k = 2\nrows_are_individuals = true\n[columns]\nx = {{ role = \"quasi\", hierarchy = {{ {hierarchy} }} }}"
        );
        place.write("p.toml", policy);
        match part {
            "" => {
                for (form, variables) in WAYS {
                    let line = format!("release in.parquet --policy p.toml --to out --overwrite {form}");
                    clean(hierarchy, place.run_with(&line, variables).err.as_bytes());
                }
            }
            part => fails(&place, "in.parquet", 2, part),
        }
    };
    let far = Float64Array::from(vec![9.182_736_45e300, -9.182_736_45e300, 1.0, 1.0]);
    extreme(Arc::new(far.clone()), "range = [0.1]", "columns.x.hierarchy");
    extreme(Arc::new(far), "floor = [10]", "columns.x.hierarchy");
    for unit in ["month", "quarter", "year", "decade"] {
        let hierarchy = format!("date = [{unit:?}]");
        extreme(Arc::new(Date32Array::from(vec![i32::MAX, i32::MIN, 0, 0])), &hierarchy, "");
        extreme(Arc::new(Date64Array::from(vec![i64::MAX, i64::MIN, 0, 0])), &hierarchy, "");
        extreme(Arc::new(TimestampSecondArray::from(vec![i64::MAX, i64::MIN, 0, 0])), &hierarchy, "");
        extreme(Arc::new(TimestampMicrosecondArray::from(vec![i64::MAX, i64::MIN, 0, 0])), &hierarchy, "");
    }
    for numbers in ["range = [7]", "floor = [7]"] {
        extreme(Arc::new(Int64Array::from(vec![i64::MAX, i64::MIN, NUMBER, NUMBER])), numbers, "");
    }
    let place = scene();
    let bytes = BinaryArray::from_iter_values((0..ROWS).map(|n| format!("Canary {n}")));
    place.parquet("in.parquet", &table([("x", Arc::new(bytes) as ArrayRef)]));
    place.write("p.toml", "k = 2\n[columns]\nx = { role = \"quasi\" }");
    run_clean(&place, "release in.parquet --policy p.toml --to out", 2);
    run_clean(&place, "check in.parquet --quasi x --k 2", 2);
}

#[test]
fn releases_that_were_changed() {
    let place = scene();
    place.run("release in.parquet --policy p.toml --to out").exit(0);
    let good = place.files("out");
    let part = "out/part-00000.parquet";
    let verify = |code: i32| {
        run_clean(&place, "verify out", code);
        run_clean(&place, "verify out --input in.parquet", code);
    };
    verify(0);
    place.write(part, fs::read(place.path("in.parquet")).unwrap());
    verify(1);
    place.write(part, &good["part-00000.parquet"][..200]);
    verify(1);
    place.write(part, &good["part-00000.parquet"]);
    place.write("out/Canary.parquet", "Canary");
    verify(1);
    fs::remove_file(place.path("out/Canary.parquet")).unwrap();
    let record = String::from_utf8(good["_kanon.json"].clone()).unwrap();
    for edited in [
        record.replace("zip", "Canary"),
        record.replace("quasi", "918273645"),
        "Canary".to_owned(),
        record.replace("\"rows\"", "\"Canary\""),
    ] {
        place.write("out/_kanon.json", edited);
        verify(1);
        run_clean(&place, "risk out --quasi zip", 0);
    }
    place.write("out/_kanon.json", record);
    verify(0);
    // Other rows, and rows fewer.
    place.parquet("other.parquet", &canaries_of(ROWS - 3));
    run_clean(&place, "verify out --input other.parquet --policy p.toml", 1);
    place.write("out.private.json", "{\"Canary\": 918273645000}");
    run_clean(&place, "verify out --input in.parquet", 2);
}

#[test]
fn memory_that_is_too_small() {
    let place = scene();
    place.parquet("big.parquet", &canaries_of(200_000));
    let policy = POLICY.lines().filter(|line| !line.contains("town"));
    let policy = policy.collect::<Vec<_>>().join("\n").replace("k = 5", "k = 5\nothers = \"drop\"");
    place.write("p.toml", policy);
    let before = place.tree();
    for (form, variables) in WAYS {
        for line in [
            "release big.parquet --policy p.toml --to out",
            "search big.parquet --policy p.toml",
            "check big.parquet --quasi name,zip,note,diagnosis --k 2",
        ] {
            let ran = place.run_with(&format!("{line} --memory-limit 16M {form}"), variables);
            clean(line, ran.err.as_bytes());
            clean(line, ran.out.as_bytes());
            if !line.starts_with("check") {
                ran.exit(3).says("out of memory");
            }
        }
    }
    assert!(before == place.tree(), "something is left");
}

#[test]
fn runs_that_are_stopped() {
    let place = scene();
    let whole = canaries_of(300_000);
    place.parquet("big.parquet", &whole);
    let policy = POLICY.lines().filter(|line| !line.contains("town"));
    let policy = policy.collect::<Vec<_>>().join("\n").replace("k = 5", "k = 5\nothers = \"drop\"");
    place.write("p.toml", policy);
    let line = "release big.parquet --policy p.toml --to out";
    let work = ".out.kanon-work";
    let before = place.tree();
    for signal in ["INT", "TERM"] {
        let run = place.start_until(line, work);
        std::thread::sleep(std::time::Duration::from_millis(50));
        run.signal(signal);
        let ran = run.end().exit(130).says("interrupted; nothing was published");
        clean(signal, ran.err.as_bytes());
        assert!(before == place.tree(), "{signal}: something is left");
    }

    // Killed, a run leaves its work directory, which is for its owner alone and goes with the next run.
    let run = place.start_until(line, work);
    std::thread::sleep(std::time::Duration::from_millis(50));
    run.signal("KILL");
    let ran = run.end();
    assert_eq!((ran.code, ran.err.as_str()), (-1, ""), "{ran:?}");
    assert!(!place.path("out").exists());
    let mode = fs::metadata(place.path(work)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    place.tree().keys().for_each(|name| clean("a name", name.as_bytes()));
    place.write("p.toml", POLICY);
    place.run("release in.parquet --policy p.toml --to out").exit(0);
    assert!(!place.path(work).exists());
}

/// Whether any of `needles` is in the bytes of a release, decompressed or not.
fn found_in(place: &Place, out: &str, needles: &[Vec<u8>]) -> Vec<String> {
    let mut found = Vec::new();
    let mut look = |what: String, bytes: &[u8]| {
        for needle in needles {
            if bytes.windows(needle.len()).any(|window| window == needle) {
                found.push(format!("{} in {what}", String::from_utf8_lossy(needle)));
            }
        }
    };
    for (name, bytes) in place.files(out) {
        look(name.clone(), &bytes);
        if !name.ends_with(".parquet") {
            continue;
        }
        let path = place.path(out).join(&name);
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        look(format!("{name}, footer"), format!("{:?}", reader.metadata()).as_bytes());
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group).unwrap();
            for column in 0..group.num_columns() {
                let mut pages = group.get_column_page_reader(column).unwrap();
                while let Some(page) = pages.get_next_page().unwrap() {
                    let what = format!("{name}, column {column}, {:?}", page.page_type());
                    look(what, page.buffer());
                }
            }
        }
        for batch in read(&path) {
            for field in batch.schema().fields() {
                look(
                    format!("{name}, column {}", field.name()),
                    texts(&batch, field.name()).join("\n").as_bytes(),
                );
            }
        }
    }
    found
}

/// A table of ordinary people, and a few far out behind them if `outliers`.
fn people(outliers: bool) -> RecordBatch {
    let far = if outliers { 3 } else { 0 };
    let rows = 60 + far;
    let pick = |n: i64| usize::try_from(n % 3).unwrap();
    let common = |n: i64| n < 60;
    let text = |ordinary: [&'static str; 3], far: &'static str| -> ArrayRef {
        Arc::new(
            (0..rows).map(|n| Some(if common(n) { ordinary[pick(n)] } else { far })).collect::<StringArray>(),
        )
    };
    let far_age = [NUMBER, -NUMBER, 918_273];
    let age = |n: i64| if common(n) { 30 + n % 10 } else { far_age[pick(n)] };
    let day = |n: i64| if common(n) { 3_000 + n as i32 } else { YEAR_7391 + n as i32 };
    let weight = |n: i64| if common(n) { 60.5 + (n % 7) as f64 } else { NUMBER as f64 + 0.125 };
    table([
        ("zip", text(["02139", "02142", "02141"], "Canary Street 7")),
        ("age", Arc::new((0..rows).map(|n| Some(age(n))).collect::<Int64Array>())),
        ("years", Arc::new((0..rows).map(|n| Some(age(n))).collect::<Int64Array>())),
        ("born", Arc::new((0..rows).map(|n| Some(day(n))).collect::<Date32Array>())),
        ("weight", Arc::new((0..rows).map(|n| Some(weight(n))).collect::<Float64Array>())),
        ("town", text(["a", "b", "a"], "Canary town")),
        ("sex", text(["m", "m", "m"], "Canary sex")),
        (
            "stay",
            Arc::new(
                (0..rows).map(|n| Some(if common(n) { n % 4 } else { NUMBER + 7 })).collect::<Int64Array>(),
            ),
        ),
        ("diagnosis", text(["flu", "cough", "flu"], "Canary diagnosis")),
    ])
}

const LEVELS: &str = r#"
    k = 5
    suppression_limit = 0.05
    rows_are_individuals = true
    accept_homogeneity = ["diagnosis"]
    [columns]
    zip       = { role = "quasi", hierarchy = { prefix = [4, 3] }, min_level = 2, max_level = 2 }
    age       = { role = "quasi", hierarchy = { range = [10] }, min_level = 1, max_level = 1 }
    years     = { role = "quasi", hierarchy = { floor = [10] }, min_level = 1, max_level = 1 }
    born      = { role = "quasi", hierarchy = { date = ["year", "decade"] }, min_level = 2, max_level = 2 }
    weight    = { role = "quasi", hierarchy = { range = [2.5, 10] }, min_level = 2, max_level = 2 }
    town      = { role = "quasi", hierarchy = { file = "towns.csv" }, min_level = 1, max_level = 1 }
    sex       = { role = "quasi", max_level = 0 }
    stay      = { role = "insensitive" }
    diagnosis = { role = "sensitive", allow_unique = true }
"#;

#[test]
fn suppressed_rows_leave_no_trace() {
    let mut releases = Vec::new();
    for outliers in [false, true] {
        let place = Place::new();
        place.write("p.toml", LEVELS);
        place.write("towns.csv", "a,known\nb,known\nCanary town,Canary land\n");
        place.parquet("in.parquet", &people(outliers));
        let ran = place.run("release in.parquet --policy p.toml --to out").exit(0);
        assert!(ran.out.contains(if outliers { "3 rows (" } else { " 0 rows (" }), "{ran:?}");
        place.run("verify out --input in.parquet").exit(0);
        let released = place.released("out");
        assert_eq!(texts(&released, "age")[0], "[30,40)");
        assert_eq!(texts(&released, "weight")[0], "[60,70)");
        let mut needles: Vec<Vec<u8>> =
            ["Canary", "918273", "7391-", "7390-"].map(|text| text.as_bytes().to_vec()).into();
        for number in [NUMBER, -NUMBER, NUMBER + 7, NUMBER - NUMBER % 10] {
            needles.push(number.to_le_bytes().to_vec());
        }
        needles.push(918_273i64.to_le_bytes().to_vec());
        needles.push((NUMBER as f64 + 0.125).to_le_bytes().to_vec());
        needles.extend((60..63).map(|n| (YEAR_7391 + n).to_le_bytes().to_vec()));
        assert_eq!(found_in(&place, "out", &needles), Vec::<String>::new());
        // The search sees what is there: the same needles in the input, and a kept value in the release.
        assert!(!found_in(&place, "out", &[b"cough".to_vec()]).is_empty());
        place.write("raw/in.parquet", fs::read(place.path("in.parquet")).unwrap());
        assert_eq!(found_in(&place, "raw", &needles).is_empty(), !outliers);
        releases.push(place.files("out"));
    }
    // More than that: the release is what it would be had they never come.
    let record = |at: usize| String::from_utf8(releases[at]["_kanon.json"].clone()).unwrap();
    assert_eq!(record(0), record(1));
    assert!(releases[0] == releases[1], "the parts differ");
}

/// `Debug` is for logs, so it shows no cell either: of policies, class tables, hierarchies and records.
#[test]
fn debug_shows_no_cell() {
    let place = scene();
    let said = PolicySpec::parse(POLICY).unwrap();
    let folder = Folder(place.path(""));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let resources = Resources { threads: 1, memory: 1 << 28, spill: None };
    let run = Run { resources, ..Run::default() };
    let shown = |what: &dyn std::fmt::Debug, name: &str| {
        clean(name, format!("{what:?}").as_bytes());
        clean(name, format!("{what:#?}").as_bytes());
    };
    runtime.block_on(async {
        let input = Input::find(place.path("in.parquet").to_str().unwrap()).unwrap();
        let loaded = open(&run, &input, &PolicySource { spec: &said, files: &folder }).await.unwrap();
        let classes = profile_classes(&run, &loaded).await.unwrap();
        shown(&said, "PolicySpec");
        shown(&loaded.policy, "Policy");
        shown(&classes, "ClassTable");
        shown(&classes.columns(), "EncodedColumn");
        shown(classes.base(), "Classes");
        let (_, outcome) = search(&run, &loaded.policy, &classes, 5).unwrap();
        shown(&outcome, "Outcome");
        let levels = classes.heights();
        let rolled = classes.roll_up(classes.base(), &vec![0; levels.len()], &levels).unwrap();
        shown(
            &EvaluatedNode::new(&classes, &levels, &rolled, &loaded.policy.requirements).unwrap(),
            "EvaluatedNode",
        );
        shown(&Unlimited, "Unlimited");
        let source = PolicySource { spec: &said, files: &folder };
        let released =
            release(&run, &input, &source, &release::Place::beside(&place.path("out")).unwrap(), false)
                .await
                .unwrap();
        shown(&released.public, "PublicRecord");
        shown(&released.private, "PrivateRecord");
        shown(&released, "Released");
        shown(&input, "Input");
    });
    let ordered = r#"hierarchy = { merge = { levels = 1, order = ["001-Canary-zip", "002-Canary-zip"] } }"#;
    let ordered = POLICY.replace("hierarchy = { prefix = [8, 2, 1] }", ordered);
    shown(&PolicySpec::parse(&ordered).unwrap(), "PolicySpec with an order of values");
    shown(&Cell::Text("Canary".into()), "Value");
    shown(&[Cell::Int(NUMBER.into()), Cell::Float(NUMBER as f64)], "Value");
    let file =
        TextTable::from(vec![vec!["Canary".into(), "Canary's".into()], vec!["other".into(), "one".into()]]);
    shown(&file, "a table of 2 columns");
    shown(&Setting::from(file.clone()), "Table");
    assert_eq!(Setting::from(file.clone()).to_string(), "a table of 2 columns");
    let of_file = |row: &&GeneralizerRow| row.parameters.iter().any(|parameter| parameter.kind == Kind::File);
    for row in GENERALIZERS.iter().filter(of_file) {
        shown(&row.of(file.clone()).unwrap(), row.doc.name);
    }
}
