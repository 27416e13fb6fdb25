//! Files as people have them: other delimiters, encodings, dates and numbers; found by `init`,
//! released, verified, or refused with the key that mends it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::process::Stdio;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};

use crate::command::{Place, read, texts};

/// A hospital's table in German form.
fn german(separator: char) -> String {
    let mut text = ["Fall", "Geburtsdatum", "Straße", "PLZ", "Gewicht", "Kosten", "Diagnose"]
        .join(&separator.to_string());
    text += "\r\n";
    for n in 0..120 {
        let cells = [
            format!("F{n}"),
            format!("{:02}.{:02}.{}", 1 + n * 7 % 28, 1 + n * 5 % 12, 1940 + n % 60),
            format!("Müllerstraße {n}"),
            format!("0{}", 1067 + n % 9),
            format!("{},{}", 55 + n % 40, n % 10),
            format!("{}.{:03},50", 1 + n % 8, n * 37 % 1000),
            ["Grippe", "Asthma", "Herzschwäche"][n % 3].to_owned(),
        ];
        text += &(cells.join(&separator.to_string()) + "\r\n");
    }
    text
}

const GERMAN: &str = r#"
k = 5
suppression_limit = 0.05
rows_are_individuals = true
others = "drop"
accept_homogeneity = ["Diagnose"]
[columns]
Geburtsdatum = { role = "quasi", hierarchy = { date = ["month", "year", "decade"] } }
PLZ = { role = "quasi", hierarchy = { prefix = [4, 3] } }
Gewicht = { role = "quasi", hierarchy = { range = [10, 100] } }
Kosten = { role = "quasi", hierarchy = { floor = [5000, 100000] } }
Diagnose = { role = "sensitive" }
[input]
"#;

fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect()
}

fn utf16(text: &str) -> Vec<u8> {
    "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

fn released(place: &Place, out: &str) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in read(&place.path(&format!("{out}/part-00000.parquet"))) {
        let columns: Vec<Vec<String>> =
            batch.schema().fields().iter().map(|field| texts(&batch, field.name())).collect();
        let row = |at: usize| columns.iter().map(|column| column[at].as_str()).collect::<Vec<_>>().join("|");
        rows.extend((0..batch.num_rows()).map(row));
    }
    rows
}

/// The same table in five encodings and forms is the same release; each is verified.
#[test]
fn one_table_however_it_is_written() {
    let place = Place::new();
    let comma = |text: String| {
        // The plain form of the same cells.
        let mut lines = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let mut cells: Vec<String> = line.split(';').map(str::to_owned).collect();
            if at > 0 {
                let date: Vec<&str> = cells[1].split('.').collect();
                cells[1] = format!("{}-{}-{}", date[2], date[1], date[0]);
                cells[4] = cells[4].replace(',', ".");
                cells[5] = cells[5].replace('.', "").replace(',', ".");
            }
            lines.push(cells.join(","));
        }
        lines.join("\n") + "\n"
    };
    let form = "date_format = \"%d.%m.%Y\"\ndecimal = \",\"\nthousands = \".\"\n";
    let files: [(&str, Vec<u8>, String); 5] = [
        ("plain.csv", comma(german(';')).into_bytes(), String::new()),
        ("latin.csv", latin1(&german(';')), format!("{form}encoding = \"latin1\"\n")),
        ("mark.csv", format!("\u{feff}{}", german(';')).into_bytes(), form.to_owned()),
        ("excel.txt", utf16(&german('\t')), form.to_owned()),
        ("pipe.csv", german('|').into_bytes(), format!("{form}delimiter = \"|\"\n")),
    ];
    let mut rows = BTreeSet::new();
    for (name, bytes, input) in files {
        place.write(name, bytes);
        place.write("p.toml", format!("{GERMAN}{input}"));
        place.run(&format!("release {name} --policy p.toml --to out --overwrite")).exit(0);
        place.run(&format!("verify out --input {name}")).exit(0);
        rows.insert(released(&place, "out"));
    }
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert!(rows.first().unwrap().iter().any(|row| row.contains("010")), "{rows:?}");
}

/// `init` finds all of it out, and its policy releases.
#[test]
fn what_init_finds_out() {
    for (bytes, encoding) in
        [(latin1(&german(';')), true), (format!("\u{feff}{}", german(';')).into_bytes(), false)]
    {
        let place = Place::new();
        place.write("patienten.csv", bytes);
        let policy = place.run("init patienten.csv").exit(0).out;
        for key in ["delimiter = \";\"", "date_format = \"%d.%m.%Y\"", "decimal = \",\"", "thousands = \".\""]
        {
            assert!(policy.contains(key), "no {key} in {policy}");
        }
        assert_eq!(policy.contains("encoding = \"windows-1252\""), encoding, "{policy}");
        assert!(policy.contains("written DD.MM.YYYY") && !policy.contains("Müller"), "{policy}");
        let answered = policy
            .replace("{ role = \"?\" }", "{ role = \"text\" }")
            .replace("role = \"?\"", "role = \"quasi\"")
            .replace("role = \"sensitive\"", "role = \"sensitive\", allow_unique = true")
            .replace("# rows_are_individuals", "rows_are_individuals");
        place.write("p.toml", answered);
        place.run("release patienten.csv --policy p.toml --to out").exit(0);
        place.run("verify out --input patienten.csv").exit(0);
    }
}

/// Another form without its key is refused with the key; and a wrong one is no other number or day.
#[test]
fn another_form_is_told_with_its_key() {
    let place = Place::new();
    place.write("in.csv", german(';'));
    let refused = |input: &str, line: &str, why: &str| {
        place.write("p.toml", format!("{GERMAN}{input}"));
        place.run(line).exit(3).says(why);
    };
    let line = "release in.csv --policy p.toml --to out";
    refused(
        "",
        line,
        "120 rows do not hold a date (such as 2020-12-31 or 2020-12-31T23:59:59); 120 are written in another form: under \
        [input] of the policy, set date_format = \"%d.%m.%Y\"",
    );
    let dates = "date_format = \"%d.%m.%Y\"\n";
    refused(
        dates,
        line,
        "column `Gewicht`: 120 rows do not hold a number (such as 1234.5); 120 are written in another form: under \
        [input] of the policy, set decimal = \",\"",
    );
    refused(
        &format!("{dates}decimal = \",\"\n"),
        line,
        "column `Kosten`: 120 rows do not hold a number (such as 1234,5)",
    );
    refused("date_format = \"%m.%d.%Y\"", line, "rows do not hold a date (written as \"%m.%d.%Y\")");
    assert!(!place.path("out").exists());
    place.write("latin.csv", latin1(&german(';')));
    place.run("check latin.csv --quasi PLZ --k 5").exit(3).says("not UTF-8").says("\"windows-1252\"");
    place.write("both.csv", "d,age,sex\n01/02/2020,30,f\n03/04/2020,31,m\n");
    let policy = place.run("init both.csv").exit(0).out;
    let said = policy.replace("\n# ", " ");
    assert!(said.contains("dates that fit several formats: \"%d/%m/%Y\" and \"%m/%d/%Y\""), "{policy}");
    place.write("unclear.csv", "cost;age\n1,234;30\n2,500;31\n");
    let said = place.run("init unclear.csv").exit(0).out.replace("\n# ", " ");
    assert!(said.contains("fit decimal = \",\" as well as decimal = \".\" with thousands = \",\""), "{said}");
    assert!(toml::from_str::<toml::Table>(&policy).is_ok(), "{policy}");
    for (name, why) in [("in.xlsx", "CSV UTF-8"), ("in.sav", "export the table"), ("in.csv.gz", "unpack")] {
        place.write(name, "x");
        place.run(&format!("init {name}")).exit(3).says(why);
    }
}

/// Every command finds the delimiter, and takes the keys of `[input]`.
#[test]
fn commands_without_a_policy() {
    let place = Place::new();
    place.write("in.csv", german(';'));
    let holds = |line: &str| place.run(line).exit(0);
    holds("check in.csv --quasi PLZ --k 13");
    let risk = holds("risk in.csv --quasi PLZ --format json").json();
    assert_eq!(risk["classes"], 9);
    let linked = holds("link in.csv in.csv --on PLZ,Diagnose --format json").json();
    assert_eq!(linked["unique"], 0);
    let query = "SELECT min(\"PLZ\") AS least, count(*) AS rows FROM 'in.csv'";
    let found = place.run_on("sql --format json -c", Some(query), "").exit(0).json();
    assert_eq!((&found[0]["least"], &found[0]["rows"]), (&"01067".into(), &120.into()));
    // Codes keep their zeros in external tables.
    let query = "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'in.csv' OPTIONS ('format.has_header' 'true', 'format.delimiter' ';'); \
                 SELECT min(\"PLZ\") AS least FROM t";
    assert_eq!(place.run_on("sql --format json -c", Some(query), "").exit(0).json()[0]["least"], "01067");
    // Without options they are read as any file: with the delimiter that is found.
    for made in ["TABLE t", "TABLE IF NOT EXISTS t", "TABLE \"T t\""] {
        let name = made.trim_start_matches("TABLE ").trim_start_matches("IF NOT EXISTS ");
        let query = format!(
            "CREATE EXTERNAL {made} STORED AS CSV LOCATION 'in.csv'; SELECT min(\"PLZ\") AS least FROM {name}"
        );
        let ran = place.run_on("sql --output csv -c", Some(&query), "");
        assert_eq!((ran.code, ran.out.as_str()), (0, "least\n01067\n"), "{made}");
        assert!(ran.err.contains("is text, so it is compared letter by letter"), "{}", ran.err);
    }
    let twice = "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'in.csv'; CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'in.csv'";
    place.run_on("sql -c", Some(twice), "").exit(2).says("table `t` already exists");

    place.write("latin.csv", latin1(&german(';')));
    let keys = "--csv 'encoding = \"latin1\", delimiter = \";\"'";
    holds(&format!("check latin.csv --quasi PLZ --k 13 {keys}"));
    let query = "SET kanon.csv = 'encoding = \"latin1\"'; CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'latin.csv'; \
                 SELECT count(*) AS n FROM t WHERE \"Straße\" LIKE 'Müller%'";
    assert_eq!(place.run_on("sql --output csv -c", Some(query), "").exit(0).out, "n\n120\n");
    holds(&format!("risk latin.csv --quasi PLZ {keys}"));
    holds(&format!("link latin.csv latin.csv --on PLZ {keys}"));
    let made = holds(&format!("hierarchy latin.csv PLZ --by 'prefix = [4]' {keys}")).out;
    assert!(made.contains("\"01067\";\"0106*\";\"*\""), "{made}");
    let query = "SELECT count(*) AS rows FROM 'latin.csv' WHERE \"Diagnose\" = 'Herzschwäche'";
    let found = place.run_on(&format!("sql {keys} --format json -c"), Some(query), "").exit(0).json();
    assert_eq!(found[0]["rows"], 40);
    let query =
        "SET kanon.csv = 'encoding = \"latin1\"'; SELECT count(*) AS rows FROM risk('latin.csv', \"PLZ\")";
    assert!(
        place.run_on("sql --format json -c", Some(query), "").exit(0).json()[0]["rows"].as_u64() > Some(0)
    );
    place
        .run(&format!("check latin.csv --quasi PLZ --k 13 {}", "--csv 'delimeter = \";\"'"))
        .exit(2)
        .says("did you mean `delimiter`");
    place
        .run("check latin.csv --quasi PLZ --k 13 --csv 'delimiter'")
        .exit(2)
        .says("expected keys of [input]");
}

#[test]
fn standard_input() {
    let place = Place::new();
    place.write("in.csv", german(';'));
    let form = "date_format = \"%d.%m.%Y\"\ndecimal = \",\"\nthousands = \".\"\n";
    place.write("p.toml", format!("{GERMAN}{form}"));
    place.run("release in.csv --policy p.toml --to expected").exit(0);
    let text = fs::read_to_string(place.path("in.csv")).unwrap();
    place.run_on("release - --policy p.toml --to", Some("out"), &text).exit(0);
    assert_eq!(released(&place, "out"), released(&place, "expected"));
    // Parquet is known by its first bytes.
    let mut command = place.command("risk - --quasi PLZ --format json");
    let file = File::open(place.path("out/part-00000.parquet")).unwrap();
    let ran = command.stdin(Stdio::from(file)).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    place.run_on("check - --quasi", Some("a"), "").exit(2);
    place.run_on("check - --k 2 --quasi", Some("a"), "").exit(3).says("empty");
    place.run_on("link - - --on", Some("PLZ"), &text).exit(2).says("standard input holds one table");
}

/// Words for "missing" in columns of texts, too; but not what may be a value.
#[test]
fn missing_words_among_texts() {
    let place = Place::new();
    let mut text = "town,country,allergy\n".to_owned();
    for n in 0..60 {
        let (town, country) = (["Rome", "n/a", "Oslo"][n % 3], ["NA", "DE", "FR"][n % 3]);
        text += &format!("{town},{country},{}\n", ["none", "nuts", "pollen"][n % 3]);
    }
    place.write("in.csv", text);
    let policy = place.run("init in.csv").exit(0).out;
    assert!(policy.contains("nulls = [\"\", \"n/a\"]"), "{policy}");
}

/// A nightly job tells by codes what happened.
#[test]
fn codes_of_errors() {
    let place = Place::new();
    place.parquet("in.parquet", &crate::releases::people(1));
    let policy =
        "k = 2\nothers = \"drop\"\nrows_are_individuals = true\n[columns]\nsex = { role = \"quasi\" }\n";
    place.write("p.toml", policy);
    place.write("empty.csv", "");
    place.write("names.csv", "sex,age\n");
    place.write("damaged.parquet", "PAR1 and no footer PAR1");
    place.write("cut.csv", "sex,age\nf,3\nm");
    place.write("other.csv", "gender,age\nf,3\n");
    place.write("two/a.csv", "sex,age\nf,3\n");
    place.write("two/b.csv", "sex,years\nf,3\n");
    let line = |input: &str| format!("release {input} --policy p.toml --to out --format json");
    let code = |line: &str, exit: i32, code: &str| {
        let error: serde_json::Value = serde_json::from_str(&place.run(line).exit(exit).err).unwrap();
        assert_eq!((&error["code"], &error["exit_code"]), (&code.into(), &exit.into()), "{error}");
    };
    code(&line("empty.csv"), 3, "empty_input");
    code(&line("names.csv"), 3, "empty_input");
    code(&line("damaged.parquet"), 3, "damaged_file");
    code(&line("cut.csv"), 3, "damaged_file");
    code(&line("other.csv"), 2, "other_columns");
    code(&line("two"), 3, "other_columns");
    code(&line("absent.csv"), 3, "not_found");
    code("release in.parquet --format json", 2, "usage");
    code("release in.parquet --policy absent.toml --to out --format json", 3, "not_found");
    place.write("k.toml", policy.replace("k = 2", "k = 5000"));
    code("release in.parquet --policy k.toml --to out --format json", 1, "not_met");
    place.write("wrong.toml", policy.replace("quasi", "quasy"));
    code("release in.parquet --policy wrong.toml --to out --format json", 2, "policy");
    code("check in.parquet --policy p.toml --memory-limit 1 --format json", 2, "usage");
    // A run that is at work holds the place.
    place.write(".out.kanon-work/lock", "");
    let lock = File::open(place.path(".out.kanon-work/lock")).unwrap();
    lock.lock().unwrap();
    code(&line("in.parquet"), 3, "concurrent_run");
}

/// The script of docs/nightly.md: a good night, an empty one, a damaged load, other columns, people
/// who are not protected.
#[test]
#[cfg(unix)]
fn nights_by_the_script() {
    let page = fs::read_to_string(crate::house::root().join("docs/nightly.md")).unwrap();
    let script = page.split("```sh\n").nth(2).unwrap().split("```").next().unwrap();
    let place = Place::new();
    place.write("nightly.sh", script);
    let people = crate::releases::people(1);
    place.parquet("lake/2026-01-01.parquet", &people);
    place.parquet("lake/2026-01-02.parquet", &people.slice(0, people.num_rows() - 1));
    place.parquet("lake/2026-01-03.parquet", &people.slice(0, 0));
    place.write("lake/2026-01-04.parquet", "PAR1, and then the transfer ended");
    let columns: Vec<usize> = (1..people.num_columns()).collect();
    place.parquet("lake/2026-01-05.parquet", &people.project(&columns).unwrap());
    place.parquet("lake/2026-01-06.parquet", &people.slice(0, 3));
    let numbers: ArrayRef =
        Arc::new(Int64Array::from_iter_values((0..people.num_rows() as i64).map(|row| row % 2)));
    let schema = people.schema();
    let columns = schema.fields().iter().zip(people.columns()).map(|(field, column)| {
        let column = if field.name() == "sex" { Arc::clone(&numbers) } else { Arc::clone(column) };
        (field.name().clone(), column)
    });
    let columns: Vec<(String, ArrayRef)> = columns.collect();
    let other = crate::command::table(columns.iter().map(|(name, array)| (name.as_str(), Arc::clone(array))));
    place.parquet("lake/2026-01-07.parquet", &other);
    let policy = "k = 3\nothers = \"drop\"\nrows_are_individuals = true\n[columns]\nssn = { role = \"identifier\" }\n\
                  sex = { role = \"quasi\", max_level = 0 }\n";
    place.write("p.toml", policy);
    place.run("release lake/2026-01-01.parquet --policy p.toml --to out/2026-01-01 --private secret").exit(0);
    let folder = crate::command::program().parent().unwrap().to_path_buf();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let night = |day: &str| {
        let mut shell = std::process::Command::new("sh");
        let ran = shell
            .args(["nightly.sh", day, "2026-01-01"])
            .current_dir(place.path(""))
            .env("PATH", &path)
            .output()
            .unwrap();
        let said = String::from_utf8(ran.stdout).unwrap() + &String::from_utf8(ran.stderr).unwrap();
        (ran.status.code(), said)
    };
    for (day, exit, part) in [
        ("2026-01-02", 0, "verified"),
        ("2026-01-03", 0, "3: nothing came in"),
        ("2026-01-04", 3, "ALARM 2026-01-04: the load is damaged"),
        ("2026-01-05", 2, "ALARM 2026-01-05: the columns have changed: columns.ssn"),
        ("2026-01-06", 1, "ALARM 2026-01-06: tonight's people are not protected"),
        (
            "2026-01-07",
            2,
            "ALARM 2026-01-07: the columns have changed: columns.sex: the column has the type Int64",
        ),
    ] {
        let (found, said) = night(day);
        assert!(found == Some(exit) && said.contains(part), "{day}: {found:?} {said}");
        assert_eq!(place.path(&format!("out/{day}")).exists(), day == "2026-01-02", "{day}");
    }
    let record = fs::read_to_string(place.path("out/2026-01-02/_kanon.json")).unwrap();
    assert!(record.contains("\"released_on\": \"2026-01-02\""), "{record}");
}

/// A night of CSV whose column holds something else has the code of a changed schema, with what
/// mends it; a cell or two do not.
#[test]
fn nights_whose_columns_changed() {
    let place = Place::new();
    let night =
        |name: &str, sex: [&str; 2], day: &dyn Fn(usize) -> String, minutes: &dyn Fn(usize) -> String| {
            let row = |n: usize| format!("{},{},{}\n", sex[n % 2], day(n), minutes(n));
            place.write(name, "sex,day,minutes\n".to_owned() + &(0..60).map(row).collect::<String>());
        };
    let iso = |n: usize| format!("2020-01-{:02}", 1 + n % 9);
    let number = |n: usize| (10 + n % 7).to_string();
    let sex = ["f", "m"];
    place.write(
        "p.toml",
        "k = 3\nmethod = \"mondrian\"\nrows_are_individuals = true\n[columns]\nsex = { role = \"quasi\" }\n\
         day = { role = \"quasi\", hierarchy = { date = [\"month\"] } }\n\
         minutes = { role = \"quasi\", hierarchy = { range = [10] } }\n",
    );
    night("first.csv", sex, &iso, &number);
    place.run("release first.csv --policy p.toml --to first").exit(0);
    night("unit.csv", sex, &iso, &|n| format!("{} min", number(n)));
    night("percent.csv", sex, &iso, &|n| number(n) + "%");
    night("words.csv", sex, &iso, &|n| ["short", "long"][n % 2].to_owned());
    night("dates.csv", sex, &|n| format!("{:02}.01.2020", 1 + n % 9), &number);
    night("cell.csv", sex, &iso, &|n| if n == 7 { "ask".to_owned() } else { number(n) });
    night("sex.csv", ["female", "male"], &iso, &number);
    let changed = "the policy is that of the earlier release, whose input it fitted, so the load has changed: correct the load";
    let unit = "column `minutes`: 60 rows do not hold a number (such as 1234.5); 60 have a number and then letters or a sign, \
                such as a unit: write the number alone; ";
    for (name, exit, code, parts) in [
        ("unit", 3, "other_columns", [unit, changed]),
        ("percent", 3, "other_columns", [unit, changed]),
        (
            "words",
            3,
            "other_columns",
            ["column `minutes`: 60 rows do not hold a number", "the column holds something else: correct"],
        ),
        (
            "dates",
            3,
            "other_columns",
            [
                "60 are written in another form: under [input] of the policy, set date_format = \"%d.%m.%Y\"",
                changed,
            ],
        ),
        (
            "cell",
            3,
            "data",
            ["column `minutes`: 1 row does not hold a number", "name the texts that mean \"missing\""],
        ),
        (
            "sex",
            2,
            "other_columns",
            [
                "column `sex`: 60 of 60 rows hold values that the earlier input did not have",
                "without --recoding",
            ],
        ),
    ] {
        let line = format!("release {name}.csv --recoding first.private.json --to out --format json");
        let error: serde_json::Value = serde_json::from_str(&place.run(&line).exit(exit).err).unwrap();
        assert_eq!(error["code"], code, "{name}: {error}");
        let text = error["error"].as_str().unwrap();
        for part in parts {
            assert!(text.contains(part), "{name}: no `{part}` in {text}");
        }
        assert!(!text.contains("female") && !text.contains("short") && !place.path("out").exists(), "{text}");
    }
    night("good.csv", sex, &iso, &number);
    place.run("release good.csv --recoding first.private.json --to out").exit(0);

    // Values that a hierarchy file lacks: not the policy is wrong, but the load.
    place.write("file.csv", "f,any\nm,any\n");
    let policy = "k = 3\nrows_are_individuals = true\nothers = \"drop\"\n[columns]\n\
                  sex = { role = \"quasi\", hierarchy = { file = \"file.csv\" } }\n";
    place.write("file.toml", policy);
    place.run("release first.csv --policy file.toml --to by_file").exit(0);
    let refused =
        place.run("release sex.csv --recoding by_file.private.json --to again --format json").exit(2);
    let error: serde_json::Value = serde_json::from_str(&refused.err).unwrap();
    assert_eq!(error["code"], "other_columns", "{error}");
    let text = error["error"].as_str().unwrap();
    assert!(
        text.starts_with("columns.sex.hierarchy: 2 distinct values are not in the hierarchy file"),
        "{text}"
    );
    assert!(text.contains(changed), "{text}");
    place
        .run("release sex.csv --policy file.toml --to again --format json")
        .exit(2)
        .says("\"code\": \"policy\"");
}

/// A copy in UTF-8 is for its owner alone, and goes with the run, also if that is stopped.
#[test]
#[cfg(unix)]
fn copies_are_private_and_go() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let rows: String = (0..400_000).map(|n| format!("{n};0{};M\u{fc}ller\n", 1067 + n % 900)).collect();
    place.write("big.csv", latin1(&format!("Nr;PLZ;Name\n{rows}")));
    place.write("tmp/other", "");
    let folders = || -> Vec<std::path::PathBuf> {
        let entries = fs::read_dir(place.path("tmp")).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    };
    let mut met = 0;
    for pause in [0, 50, 300, 900, 2000] {
        let line = "risk big.csv --quasi PLZ,Name --csv 'encoding = \"latin1\"'";
        let mut command = place.command(line);
        command.env("TMPDIR", place.path("tmp")).stdout(Stdio::null()).stderr(Stdio::null());
        let mut run = command.spawn().unwrap();
        while folders().is_empty() && run.try_wait().unwrap().is_none() {}
        for folder in folders() {
            let mode = fs::metadata(&folder).map_or(0o700, |facts| facts.permissions().mode());
            assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
            met += 1;
        }
        std::thread::sleep(std::time::Duration::from_millis(pause));
        let sent =
            std::process::Command::new("kill").args(["-s", "INT", &run.id().to_string()]).output().unwrap();
        drop(sent);
        run.wait().unwrap();
        assert_eq!(folders(), Vec::<std::path::PathBuf>::new(), "after {pause} ms");
    }
    assert!(met > 0, "no copy was met");
}

/// What is not read as another number, day or letter: the rows that do not fit are counted, with
/// the key that helps.
#[test]
fn cells_that_do_not_fit() {
    let place = Place::new();
    let german = "[input]\ndate_format = \"%d.%m.%Y\"\ndecimal = \",\"\nthousands = \".\"\n";
    let policy = "k = 2\nrows_are_individuals = true\n[columns]\nd = { role = \"quasi\", hierarchy = { date = [\"year\"] } }\n\
                  n = { role = \"quasi\", hierarchy = { floor = [10] } }\n";
    place.write("p.toml", format!("{policy}{german}"));
    let good = "d;n\n31.12.2020;1,5\n30.11.2020;2.500\n";
    for (row, why) in [
        (
            "k.A.;1",
            "1 row does not hold a date (written as \"%d.%m.%Y\"); name the texts that mean \"missing\"",
        ),
        ("31.02.2020;1", "1 row does not hold a date"),
        ("31.12.20;1", "1 row does not hold a date"),
        ("01.12.2020 10:30;1", "set date_format = [\"%d.%m.%Y\", \"%d.%m.%Y %H:%M\"]"),
        ("01.12.2020;0.125", "1 row does not hold a number (such as 1234,5); 1 is written in another form"),
        ("01.12.2020;1.23", "1 row does not hold a number"),
    ] {
        place.write("in.csv", format!("{good}{row}\n"));
        place.run("check in.csv --policy p.toml").exit(3).says(why);
    }
    // Files of an input in different encodings.
    place.write("mixed/a.csv", "name\nM\u{fc}ller\n");
    place.write("mixed/b.csv", latin1("name\nM\u{fc}ller\n"));
    place.run("init mixed").exit(3).says("save all files in UTF-8");
    place.write("marks/a.csv", "PLZ;x\n01067;\u{e4}\n");
    place.write("marks/b.csv", utf16("PLZ;x\n01067;\u{e4}\n"));
    place.run("check marks --quasi PLZ,x --k 2").exit(0);
    // Excel's note on the delimiter, and its empty columns.
    place.write("sep.csv", "sep=;\nPLZ;x\n01067;1\n");
    place.run("check sep.csv --quasi PLZ --k 1").exit(3).says("delete this line");
}

/// A workbook or an archive that was renamed, and Excel's note in capitals.
#[test]
fn files_that_are_no_text_whatever_their_name() {
    let place = Place::new();
    let workbook = [&b"PK\x03\x04\x14\0\x06\0"[..], &[0xd0; 300]].concat();
    let old = [&b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"[..], &[0; 300]].concat();
    for (bytes, why) in [
        (workbook, "\"CSV UTF-8\""),
        (old, "\"CSV UTF-8\""),
        (b"\x1f\x8b\x08\0\0".to_vec(), "unpack the file first"),
    ] {
        place.write("in.csv", bytes);
        place.run("init in.csv").exit(3).says(why).says("whatever its name");
        place.run("check in.csv --quasi a --k 2").exit(3).says(why);
        place.run("check in.csv --quasi a --k 2 --csv 'encoding = \"latin1\"'").exit(3).says(why);
    }
    place.write("in.csv", "PKabc;def\n1;2\n");
    place.run("check in.csv --quasi def --k 1").exit(0);
    place.write("in.csv", "SEP=;\nPLZ;x\n01067;1\n");
    place.run("check in.csv --quasi PLZ --k 1").exit(3).says("delete this line");
}
