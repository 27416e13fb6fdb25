//! `[output] partition_by`: releases whose columns the names of folders hold.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray};
use serde_json::Value;

use datafusion_kanon::records::{FileRecord, PublicRecord};

use crate::command::{Place, table};
use crate::lake::Lake;

const POLICY: &str = r#"
    k = 3
    suppression_limit = 0.3
    rows_are_individuals = true
    accept_homogeneity = ["disease", "alive"]
    [columns]
    age     = { role = "quasi", hierarchy = { range = [10, 20] } }
    city    = { role = "quasi" }
    year    = { role = "insensitive" }
    day     = { role = "insensitive", allow_unique = true }
    alive   = { role = "sensitive" }
    disease = { role = "sensitive" }
    weight  = { role = "insensitive", allow_unique = true }
"#;

/// 240 rows; some cities, years, days and flags are NULL, and one city has too few people.
fn rows() -> RecordBatch {
    let n = || 0..240i64;
    let cities = [Some("Köln"), Some("a b"), Some("x/y"), Some("100%"), Some("[1, 2["), None];
    let city = |n: i64| if n == 239 { Some("Rare") } else { cities[n as usize % 6] };
    let columns: [(&str, ArrayRef); 7] = [
        ("age", Arc::new(n().map(|n| Some(20 + n % 20)).collect::<Int64Array>())),
        ("city", Arc::new(n().map(city).collect::<StringArray>())),
        ("year", Arc::new(n().map(|n| (n % 11 > 0).then_some(2020 + n % 3)).collect::<Int64Array>())),
        (
            "day",
            Arc::new(n().map(|n| (n % 13 > 0).then_some(19_000 + n as i32 % 4)).collect::<Date32Array>()),
        ),
        ("alive", Arc::new(n().map(|n| (n % 17 > 0).then_some(n % 2 == 0)).collect::<BooleanArray>())),
        ("disease", Arc::new(n().map(|n| Some(["flu", "gout"][n as usize % 2])).collect::<StringArray>())),
        ("weight", Arc::new(n().map(|n| Some(50.5 + n as f64)).collect::<Float64Array>())),
    ];
    table(columns)
}

fn place() -> Place {
    let place = Place::new();
    place.parquet("in.parquet", &rows());
    place.write("p.toml", POLICY);
    place
}

/// The rows of a release as SQL reads them, in an order of their own, with all values as texts.
fn rows_of(place: &Place, out: &str) -> Value {
    let columns = ["age", "city", "year", "day", "alive", "disease", "weight"];
    let texts = columns.map(|name| format!("CAST({name} AS VARCHAR) AS {name}")).join(", ");
    let order = columns.join(", ");
    let sql = format!("SELECT {texts} FROM \"{out}\" ORDER BY {order}");
    place.run_on("sql --format json -c", Some(&sql), "").exit(0).json()
}

fn record(place: &Place, out: &str) -> PublicRecord {
    PublicRecord::read(&place.path(out)).unwrap()
}

fn partition_by(columns: &[&str]) -> String {
    format!("--set 'output.partition_by={columns:?}'")
}

#[test]
fn folders_hold_columns_and_the_release_is_the_same() {
    let place = place();
    for method in ["optimal", "mondrian", "mdav"] {
        let plain = format!("plain_{method}");
        let release = format!("release in.parquet --policy p.toml --set method={method}");
        place.run(&format!("{release} --to {plain}")).exit(0);
        for columns in [
            &["year"][..],
            &["city"],
            &["year", "city"],
            &["city", "year"],
            &["alive", "city", "day"],
            &["disease", "age"],
        ] {
            let what = format!("{method} {columns:?}");
            let ran = place.run(&format!("{release} --to out --overwrite {}", partition_by(columns)));
            if method == "mdav" && columns.contains(&"age") {
                ran.exit(2).says("`age` has the type Float64; expected a column of text, whole numbers");
                continue;
            }
            ran.exit(0);
            assert_eq!(rows_of(&place, "out"), rows_of(&place, &plain), "{what}");
            place.run("verify out").exit(0);
            place.run("verify out --input in.parquet").exit(0);
            place.run("explain out").exit(0);
            place.run("risk out").exit(0);
            let (record, flat) = (record(&place, "out"), record(&place, &plain));
            assert_eq!((&record.risk, record.classes), (&flat.risk, flat.classes), "{what}");
            assert_eq!(record.tables[0].columns, flat.tables[0].columns, "{what}");
            assert_eq!(record.tables[0].partition_by, columns, "{what}");
            // Each folder has one value of each column, and one file.
            let folders: Vec<&str> =
                record.files().map(|file| file.name.rsplit_once('/').unwrap().0).collect();
            let names = |folder: &str| {
                folder.split('/').map(|part| part.split_once('=').unwrap().0.to_owned()).collect::<Vec<_>>()
            };
            assert!(folders.iter().all(|folder| names(folder) == columns), "{what}: {folders:?}");
            assert_eq!(folders.iter().collect::<BTreeSet<_>>().len(), folders.len(), "{what}");
            // A region may show it.
            let shows_rare = folders.iter().any(|folder| folder.contains("Rare"));
            assert!(!shows_rare || method != "optimal", "{what}: a suppressed value");
            // The same rows, the same bytes.
            let again = format!("{release} --to again --overwrite --threads 1 {}", partition_by(columns));
            place.run(&again).exit(0);
            assert_eq!(
                fs::read(place.path("out/_kanon.json")).unwrap(),
                fs::read(place.path("again/_kanon.json")).unwrap()
            );
        }
    }
    let names: BTreeSet<String> =
        record(&place, "plain_optimal").files().map(|file| file.name.clone()).collect();
    assert_eq!(names, BTreeSet::from(["part-00000.parquet".to_owned()]));
}

#[test]
fn what_is_read_of_a_release_has_the_types_of_its_record() {
    let place = place();
    place.write(
        "n.toml",
        POLICY.replace("rows_are_individuals", "method = \"mondrian\"\n    rows_are_individuals"),
    );
    for (policy, columns) in [
        ("p.toml", &["year", "alive", "day"][..]),
        ("p.toml", &["city", "age"]),
        ("n.toml", &["age", "year"]),
    ] {
        place.run(&format!("release in.parquet --policy {policy} --to flat --overwrite")).exit(0);
        place
            .run(&format!(
                "release in.parquet --policy {policy} --to out --overwrite {}",
                partition_by(columns)
            ))
            .exit(0);
        for line in ["link in.parquet OUT", "risk OUT", "check OUT --quasi age,city --k 3"] {
            let ran = |out: &str| place.run(&line.replace("OUT", out)).exit(0).out.replace("flat", "out");
            assert_eq!(ran("out"), ran("flat"), "{line} {columns:?}");
        }
        let types = |out: &str| {
            let columns = ["age", "city", "year", "day", "alive"]
                .map(|name| format!("arrow_typeof({name}) AS {name}"))
                .join(", ");
            place
                .run_on("sql --format json -c", Some(&format!("SELECT {columns} FROM '{out}' LIMIT 1")), "")
                .exit(0)
                .out
        };
        assert_eq!(
            types("out").replace("Utf8View", "Utf8"),
            types("flat").replace("Utf8View", "Utf8"),
            "{columns:?}"
        );
        // However it is named.
        assert_eq!(types("out/*"), types("out"), "{columns:?}");
    }
    let count = |of: &str| {
        let sql = format!("SELECT count(*) AS n FROM '{of}' WHERE year = 2021 AND age <> '*'");
        place.run_on("sql --format json -c", Some(&sql), "").exit(0).out
    };
    assert_eq!(count("out"), count("flat"));
}

#[test]
fn a_release_is_not_read_by_the_pattern_of_its_input() {
    let place = place();
    let all = rows();
    for year in [2021, 2022] {
        let columns: Vec<usize> = (0..7).filter(|at| *at != 2).collect();
        place.parquet(&format!("k/src/year={year}/in.parquet"), &all.project(&columns).unwrap());
    }
    place.write(
        "p.toml",
        POLICY.replace(
            "year    = { role = \"insensitive\" }",
            "year = { role = \"quasi\", hierarchy = { range = [10] } }",
        ),
    );
    for pattern in ["year=202[12]", "year=2021", "*2021", "[y]ear=2021", "year*"] {
        let line = format!(
            "release 'k/*/{pattern}/*.parquet' --policy p.toml --to k/out {} --set suppression_limit=0.5",
            partition_by(&["year"])
        );
        place.run(&line).exit(2).says("pattern matches");
        assert!(!place.path("k/out").exists(), "{pattern}");
    }
}

#[test]
fn names_of_folders_are_those_of_hive() {
    let place = place();
    place
        .run(&format!("release in.parquet --policy p.toml --to out {}", partition_by(&["city", "day"])))
        .exit(0);
    let folders: BTreeSet<String> =
        record(&place, "out").files().map(|file| file.name.split('/').next().unwrap().to_owned()).collect();
    let expected = [
        "city=100%25",
        "city=%5B1, 2%5B",
        "city=Köln",
        "city=__HIVE_DEFAULT_PARTITION__",
        "city=a b",
        "city=x%2Fy",
    ];
    assert_eq!(folders, expected.map(str::to_owned).into());
    assert!(place.path("out/city=Köln/day=2022-01-10").is_dir());
    assert!(place.path("out/city=Köln/day=__HIVE_DEFAULT_PARTITION__").is_dir());
    // Large folders have several files; each folder begins a new one.
    let keys = "--set output.file_bytes=10000 --set output.row_group_rows=1000";
    place.run("generate --rows 30000 --to many.parquet").exit(0);
    place.write(
        "many.toml",
        "k = 5\nrows_are_individuals = true\nothers = \"drop\"\n[columns]\nsex = { role = \"quasi\" }\n\
         cost = { role = \"insensitive\", allow_unique = true }",
    );
    let sex = partition_by(&["sex"]);
    place.run(&format!("release many.parquet --policy many.toml --to many {sex} {keys}")).exit(0);
    place.run("verify many --input many.parquet").exit(0);
    let record = record(&place, "many");
    let mut files = std::collections::BTreeMap::<&str, usize>::new();
    for file in record.files() {
        *files.entry(file.name.rsplit_once('/').unwrap().0).or_default() += 1;
    }
    assert!(files.len() > 1 && files["sex=F"] > 1, "{files:?}");
}

#[test]
fn folders_that_were_forged_are_refused() {
    let place = place();
    let policy =
        POLICY.replace("[columns]", "[output]\n    partition_by = [\"year\", \"city\"]\n    [columns]");
    place.write("p.toml", policy);
    let release = || {
        let _ = fs::remove_file(place.path("out.private.json"));
        let _ = fs::remove_dir_all(place.path("out"));
        place.run("release in.parquet --policy p.toml --to out").exit(0);
    };
    let at = |name: &str| place.path(&format!("out/{name}"));
    let refused = |why: &str| {
        place.run("verify out").exit(1).says(why);
        place.run("verify out --input in.parquet --policy p.toml").exit(1).says(why);
    };
    let forged = |change: &dyn Fn(&mut PublicRecord)| {
        let mut record = record(&place, "out");
        change(&mut record);
        place.write("out/_kanon.json", record.sealed().unwrap().to_json().unwrap());
    };
    let is_of = |file: &FileRecord, folder: &str| file.name.starts_with(folder);

    release();
    fs::create_dir(at("year=1999")).unwrap();
    refused("a file or a folder that the record does not list");
    fs::remove_dir(at("year=1999")).unwrap();
    fs::write(at("year=2021/note"), "x").unwrap();
    refused("a file or a folder that the record does not list");
    fs::remove_file(at("year=2021/note")).unwrap();
    place.run("verify out").exit(0);

    // The rows of one year under the name of another.
    let rename = |from: &str, to: &str| {
        fs::rename(at(from), at(to)).unwrap();
        forged(&|record| {
            for file in record.tables[0].files.iter_mut().filter(|file| is_of(file, from)) {
                file.name = file.name.replace(from, to);
            }
        });
    };
    rename("year=2022", "year=2023");
    place.run("verify out --input in.parquet --policy p.toml").exit(1).says("verification refused");
    rename("year=2023", "year=2019");
    place.run("verify out --input in.parquet --policy p.toml").exit(1).says("verification refused");
    for (name, why) in [
        ("year=02022", "in a folder that kanon does not write"),
        ("year=%32022", "in a folder that kanon does not write"),
        ("year=x", "in a folder that kanon does not write"),
        ("year=2022-01-01", "in a folder that kanon does not write"),
        ("years=2022", "in folders of other columns than the record says"),
        ("year=", "in a folder that kanon does not write"),
        ("../year=2022", "in a folder that kanon does not write"),
        ("year=2022/x", "in a folder that kanon does not write"),
    ] {
        release();
        forged(&|record| {
            for file in record.tables[0].files.iter_mut().filter(|file| is_of(file, "year=2022")) {
                file.name = file.name.replace("year=2022", name);
            }
        });
        refused(why);
    }

    // The names of folders are texts, but the footers of the files tell the types.
    release();
    forged(&|record| record.tables[0].columns[2].data_type = "Utf8".to_owned());
    refused("the footer holds metadata that kanon did not write");
    for (change, why) in [
        (
            (|table| table.partition_by.clear()) as fn(&mut datafusion_kanon::records::TableRecord),
            "in folders of other columns",
        ),
        (|table| table.partition_by.reverse(), "in folders of other columns"),
        (|table| table.partition_by.push("age".to_owned()), "in folders of other columns"),
        (|table| table.partition_by[0] = "city".to_owned(), "contradicts itself on the folders"),
        (|table| table.partition_by[0] = "weight".to_owned(), "contradicts itself on the folders"),
        (|table| table.partition_by[0] = "nobody".to_owned(), "contradicts itself on the folders"),
        (|table| table.files.swap(0, 1), "not numbered from"),
        (|table| table.columns[2].data_type = "Int8".to_owned(), "in a folder that kanon does not write"),
    ] {
        release();
        forged(&|record| change(&mut record.tables[0]));
        refused(why);
    }

    // An empty file would show a value that no released row has.
    release();
    let first = record(&place, "out").tables[0].files[0].clone();
    let empty = table([("age", Arc::new(StringArray::from(Vec::<&str>::new())) as ArrayRef)]);
    let last = record(&place, "out").tables[0].files.len();
    let name = format!("year=2099/city=a b/part-{last:05}.parquet");
    place.parquet(&format!("out/{name}"), &empty);
    let added = FileRecord { name: name.clone(), ..FileRecord::of(&place.path("out"), &name, 0).unwrap() };
    forged(&|record| record.tables[0].files.push(added.clone()));
    refused("a file in the folder of a value has no rows");

    // A folder whose files are listed in two places, and folders in another order.
    let sorted = |record: &PublicRecord| {
        record.tables[0].files.iter().map(|file| file.name.clone()).collect::<Vec<_>>()
    };
    release();
    let names = sorted(&record(&place, "out"));
    let other: Vec<String> = (0..names.len())
        .map(|at| {
            let from = if at < 2 { 1 - at } else { at };
            format!("{}/part-{at:05}.parquet", names[from].rsplit_once('/').unwrap().0)
        })
        .collect();
    fs::rename(at(&names[0]), place.path("first")).unwrap();
    fs::rename(at(&names[1]), at(&other[0])).unwrap();
    fs::rename(place.path("first"), at(&other[1])).unwrap();
    forged(&|record| {
        let files = &mut record.tables[0].files;
        files.swap(0, 1);
        files.iter_mut().zip(&other).for_each(|(file, name)| file.name.clone_from(name));
    });
    place.run("verify out --input in.parquet --policy p.toml").exit(1).says("not in the order");
    let line = "release in.parquet --policy p.toml --to years --set 'output.partition_by=[\"year\"]'";
    place.run(line).exit(0);
    let mut record_of_years = record(&place, "years");
    let files = &mut record_of_years.tables[0].files;
    assert!(files.len() > 2);
    files.swap(1, 2);
    for (number, file) in files.iter_mut().enumerate() {
        let name = format!("{}/part-{number:05}.parquet", file.name.rsplit_once('/').unwrap().0);
        fs::rename(place.path(&format!("years/{}", file.name)), place.path(&format!("years/{name}")))
            .unwrap();
        file.name = name;
    }
    place.write("years/_kanon.json", record_of_years.sealed().unwrap().to_json().unwrap());
    place.run("verify years").exit(1).says("the folders of the release are not in the order");

    // A link to a folder is none.
    release();
    let folder = first.name.split('/').next().unwrap();
    fs::rename(at(folder), place.path("elsewhere")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(place.path("elsewhere"), at(folder)).unwrap();
    refused("a file or a folder that the record does not list");
}

#[test]
fn a_release_with_folders_is_replaced_and_what_is_foreign_stays() {
    let place = place();
    let release = |columns: &[&str]| {
        let line =
            format!("release in.parquet --policy p.toml --to out --overwrite {}", partition_by(columns));
        place.run(&line)
    };
    release(&["year"]).exit(0);
    release(&["city", "year"]).exit(0);
    assert!(!place.path("out/year=2021").exists());
    place.run("verify out --input in.parquet").exit(0);
    place.write("out/city=Köln/year=2021/mine.txt", "x");
    let before = place.tree();
    release(&[]).exit(2).says("a file there does not belong to the release");
    assert_eq!(place.tree(), before);
    fs::remove_file(place.path("out/city=Köln/year=2021/mine.txt")).unwrap();
    release(&[]).exit(0);
    assert!(place.path("out/part-00000.parquet").is_file() && !place.path("out/city=Köln").exists());
    // What Spark wrote there is no file of a release.
    release(&["year"]).exit(0);
    place.write("out/year=2021/part-00000-1b2c.c000.snappy.parquet", "x");
    release(&["year"]).exit(2).says("a file there does not belong to the release");
    fs::remove_file(place.path("out/year=2021/part-00000-1b2c.c000.snappy.parquet")).unwrap();
    place.run("release in.parquet --recoding out.private.json --to next").exit(0);
    assert_eq!(record(&place, "next").tables[0].partition_by, ["year"]);
    place.run("verify next --input in.parquet").exit(0);
}

#[test]
fn columns_that_name_no_folders_are_refused() {
    let place = place();
    for (columns, why) in [
        (&["nobody"][..], "expected released columns, found `nobody`"),
        (&["year", "year"], "`year` is named twice"),
        (&["weight"], "`weight` has the type Float64; expected a column of text"),
        (&["age", "city", "year", "day", "alive", "disease", "weight"], "`weight` has the type"),
    ] {
        let line = format!("release in.parquet --policy p.toml --to out {}", partition_by(columns));
        place.run(&line).exit(2).says(why).says("output.partition_by");
    }
    for (name, why) in
        [("_x", "begins with `_`"), ("a/b", "holds a character"), ("Age", "differ only in case")]
    {
        let (ages, notes): (ArrayRef, ArrayRef) =
            (Arc::new(Int64Array::from(vec![7; 9])), Arc::new(StringArray::from(vec!["x"; 9])));
        place.parquet("names.parquet", &table([("age", ages), (name, notes)]));
        place.write("names.toml", format!("k = 2\nrows_are_individuals = true\n[output]\npartition_by = [\"{name}\"]\n[columns]\nage = {{ role = \"quasi\" }}\n\"{name}\" = {{ role = \"insensitive\" }}"));
        place.run("release names.parquet --policy names.toml --to names").exit(2).says(why);
    }
    let few = r#"--set 'columns={age={role="quasi"},city={role="identifier"}}' --set others=drop --set accept_homogeneity=[]"#;
    let release = format!("release in.parquet --policy p.toml --to out {few}");
    place
        .run(&format!("{release} {}", partition_by(&["city"])))
        .exit(2)
        .says("not released (role identifier)");
    place.run(&format!("{release} {}", partition_by(&["age"]))).exit(2).says("at least one released column");
    let ends = "--set output.intervals=columns --set method=mondrian";
    let line = format!("release in.parquet --policy p.toml --to out {ends} {}", partition_by(&["age"]));
    place.run(&line).exit(2).says("`age` is written as several columns");
    let line = format!("release in.parquet --policy p.toml --to out {ends} {}", partition_by(&["city"]));
    place.run(&line).exit(0);
    place.run("verify out --input in.parquet").exit(0);
    for (text, why) in [
        ("", "is an empty text"),
        ("a\nb", "holds a control character"),
        ("__HIVE_DEFAULT_PARTITION__", "by which Hive writes NULL"),
        (&"x".repeat(300), "is too long"),
    ] {
        let notes: ArrayRef = Arc::new(StringArray::from(vec![text; 9]));
        let ages: ArrayRef = Arc::new(Int64Array::from(vec![7; 9]));
        place.parquet("notes.parquet", &table([("age", ages), ("note", notes)]));
        place.write("notes.toml", "k = 2\nrows_are_individuals = true\n[output]\npartition_by = [\"note\"]\n[columns]\nage = { role = \"quasi\" }\nnote = { role = \"insensitive\" }");
        let ran = place.run("release notes.parquet --policy notes.toml --to notes").exit(3).says(why);
        assert!(text.is_empty() || !ran.err.contains(text), "{ran:?}");
        assert!(!place.path("notes").exists());
    }
    // Readers would take the texts `1` and `01` for one number.
    let notes: ArrayRef = Arc::new(StringArray::from(vec!["1", "1", "1", "1", "01", "01", "01", "01", "01"]));
    let ages: ArrayRef = Arc::new(Int64Array::from(vec![7; 9]));
    place.parquet("notes.parquet", &table([("age", ages), ("note", notes)]));
    place
        .run("release notes.parquet --policy notes.toml --to notes")
        .exit(3)
        .says("two released values for one");
    place.write("anatomy.toml", "method = \"anatomy\"\nrows_are_individuals = true\n[[require]]\nmodel = \"l_diversity\"\nl = 2\nsensitive = \"disease\"\n[output]\npartition_by = [\"city\"]\n[columns]\nage = { role = \"quasi\" }\ncity = { role = \"quasi\" }\ndisease = { role = \"sensitive\" }");
    place.run("release in.parquet --policy anatomy.toml --to out2").exit(2).says("makes two tables");
}

#[test]
fn a_store_holds_folders_too() {
    let lake = Lake::new();
    lake.place.parquet("in.parquet", &rows());
    lake.place.write("p.toml", POLICY);
    let release = |columns: &[&str]| {
        lake.run(&format!(
            "release in.parquet --policy p.toml --to s3://lake/safe --private p.json --overwrite {}",
            partition_by(columns)
        ))
    };
    release(&["year", "city"]).exit(0);
    for line in [
        "verify s3://lake/safe",
        "verify s3://lake/safe --input in.parquet --private p.json",
        "explain s3://lake/safe",
        "risk s3://lake/safe",
        "link in.parquet s3://lake/safe --private p.json",
    ] {
        lake.run(line).exit(0);
    }
    let keys = lake.server.keys("lake");
    assert!(keys.iter().any(|key| key.starts_with("safe/year=2021/city=%5B1, 2%5B/part-")), "{keys:?}");
    // Its rows are those of a local release, also read folder by folder.
    lake.run(&format!("release in.parquet --policy p.toml --to near {}", partition_by(&["year", "city"])))
        .exit(0);
    let count = |of: &str, filter: &str| {
        let sql = format!(
            "SELECT city, count(*) AS n, sum(weight) AS w FROM \"{of}\" {filter} GROUP BY city ORDER BY city"
        );
        let mut command = lake.place.command("sql --format json -c");
        command.arg(sql).envs(lake.server.environment());
        let ran = crate::command::Ran::new(command.output().unwrap());
        ran.exit(0).json()
    };
    for filter in ["", "WHERE year = 2021", "WHERE year IS NULL AND city = '[1, 2['"] {
        assert_eq!(count("s3://lake/safe", filter), count("near", filter), "{filter}");
    }
    assert!(release(&["year", "city"]).exit(0).out.contains("unchanged"));
    // A new release removes the objects of the old one; an object that is not a release's stays, and is refused.
    release(&["city"]).exit(0);
    let keys = lake.server.keys("lake");
    assert!(keys.iter().all(|key| !key.contains("year=")), "{keys:?}");
    lake.run("verify s3://lake/safe --input in.parquet --private p.json").exit(0);
    lake.server.put("lake", "safe/city=a b/mine.txt", b"x".to_vec());
    lake.run("verify s3://lake/safe").exit(1).says("an object that the record does not list");
    release(&["year"]).exit(2).says("an object there does not belong to the release");
    lake.server.remove("lake", "safe/city=a b/mine.txt");
    lake.server.put("lake", "safe/city=left/part-00000-0123456789abcdef.parquet", b"x".to_vec());
    assert!(lake.run("verify s3://lake/safe").exit(0).out.contains("1 object beside the release"));
    let before = count("near", "");
    assert_eq!(count("s3://lake/safe", ""), before);
    // Nor is it in a folder of two columns, or among several releases.
    release(&["year", "city"]).exit(0);
    let part = |keys: Vec<String>| keys.into_iter().find(|key| key.contains("/year=2021/city=a b/")).unwrap();
    let bytes = lake.server.get("lake", &part(lake.server.keys("lake"))).unwrap();
    let rows = |of: &str| {
        count(of, "").as_array().unwrap().iter().map(|row| row["n"].as_u64().unwrap()).sum::<u64>()
    };
    let places = ["s3://lake/safe/year=2021", "s3://lake/safe/*/city=a b", "s3://lake/*/year=2021/city=a b"];
    let counted = places.map(rows);
    let counted_of_year = counted[0];
    let one = "s3://lake/safe/year=2021/city=a b";
    let sql = |of: &str| {
        let mut command = lake.place.command("sql --format json -c");
        command.arg(format!("SELECT count(*) AS n FROM \"{of}\"")).envs(lake.server.environment());
        crate::command::Ran::new(command.output().unwrap())
    };
    let (of_one, all) = (sql(one).exit(0).out, sql("s3://lake/safe").exit(0).out);
    for folder in ["year=2021/city=a b", "year=2021/city=left", "year=1999/city=a b"] {
        lake.server.put("lake", &format!("safe/{folder}/part-00000-0123456789abcdef.parquet"), bytes.clone());
    }
    assert_eq!((places.map(rows), sql(one).exit(0).out), (counted, of_one.clone()));
    sql("s3://lake/safe/year=1999").exit(3).says("no such object");
    // Another object is no part of a release; a folder below it that is not of it is read whole.
    lake.server.put("lake", "safe/extra.parquet", bytes.clone());
    assert_eq!(rows("s3://lake/safe/year=2021"), counted_of_year);
    assert_eq!(sql("s3://lake/safe").exit(0).out, all);
    lake.server.put("lake", "safe/raw/part-00000-1b2c.c000.snappy.parquet", bytes);
    assert_eq!(sql("s3://lake/safe/raw").exit(0).out, of_one);
}
