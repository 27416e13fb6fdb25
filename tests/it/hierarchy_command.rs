//! `kanon hierarchy` and `kanon hierarchy check`: what they write is what the rule does, end to end.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::DataType;
use datafusion_kanon::internals::engine::{Resources, Run};
use datafusion_kanon::internals::generalize::{Generalizer, Value, apply};
use datafusion_kanon::internals::input::{Input, PolicySource, open};
use datafusion_kanon::internals::policy::{Folder, PolicySpec};

use crate::command::{Place, table, texts};

const ROWS: i64 = 60;
/// The columns that the CSV file has.
const CSV_COLUMNS: [&str; 5] = ["age", "bmi", "dob", "zip", "country"];

/// Values of every kind, NULLs among them.
fn people() -> RecordBatch {
    let maybe = |n: i64| (n % 13 > 0).then_some(n);
    let rows = || (0..ROWS).map(maybe);
    let zips = rows().map(|n| n.map(|n| format!("0{}", 2_130 + n % 9 * 100)));
    let towns = rows().map(|n| n.map(|n| ["town", "a;b", "Ol\"ym", "x\ny", ""][n as usize % 5]));
    let prices: Decimal128Array = rows().map(|n| n.map(|n| i128::from(n * 129 % 5_000))).collect();
    table([
        ("age", Arc::new(rows().map(|n| n.map(|n| (n * 7) % 90 - 20)).collect::<Int64Array>()) as ArrayRef),
        ("bmi", Arc::new(rows().map(|n| n.map(|n| 15.0 + (n % 11) as f64 / 4.0)).collect::<Float64Array>())),
        ("dob", Arc::new(rows().map(|n| n.map(|n| (n * 301 - 900) as i32)).collect::<Date32Array>())),
        (
            "seen",
            Arc::new(rows().map(|n| n.map(|n| n * 3_600_000_123)).collect::<TimestampMicrosecondArray>()),
        ),
        ("price", Arc::new(prices.with_precision_and_scale(9, 2).unwrap())),
        ("zip", Arc::new(zips.collect::<StringArray>())),
        ("town", Arc::new(towns.collect::<StringArray>())),
        (
            "country",
            Arc::new(
                rows()
                    .map(|n| n.map(|n| ["DE", "Germany", "FR", "Peru"][n as usize % 4]))
                    .collect::<StringArray>(),
            ),
        ),
    ])
}

/// The people as Parquet, and as CSV with the columns whose values need no quotes.
fn place() -> Place {
    let place = Place::new();
    let people = people();
    place.parquet("in.parquet", &people);
    let names = CSV_COLUMNS;
    let mut csv = names.join(",") + "\n";
    for row in 0..people.num_rows() {
        let cells = names.map(|name| texts(&people, name)[row].clone());
        csv += &(cells.map(|cell| if cell == "-" { String::new() } else { cell }).join(",") + "\n");
    }
    place.write("in.csv", csv);
    place
}

/// The rows of a hierarchy file as this test reads it.
fn rows_of(csv: &str) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().delimiter(b';').has_headers(false).from_reader(csv.as_bytes());
    reader.records().map(|record| record.unwrap().iter().map(str::to_owned).collect()).collect()
}

/// The labels of a column at each level, row by row, under a policy with this hierarchy.
async fn labels(place: &Place, input: &str, column: &str, hierarchy: &str) -> Vec<Vec<String>> {
    let text = format!(
        "k = 2\nothers = \"drop\"\n[columns]\n{column} = {{ role = \"quasi\", hierarchy = {hierarchy} }}\n"
    );
    let spec = PolicySpec::parse(&text).unwrap();
    let resources = Resources { threads: 1, ..Resources::default_of_machine() };
    let input = Input::find(place.path(input).to_str().unwrap()).unwrap();
    let run = Run { resources, ..Run::default() };
    let loaded =
        open(&run, &input, &PolicySource { spec: &spec, files: &Folder(place.path("")) }).await.unwrap();
    let values = loaded.table.select_columns(&[column]).unwrap().collect().await.unwrap();
    let values = Arc::clone(concat_batches(&values[0].schema(), &values).unwrap().column(0));
    let hierarchy = &loaded.policy.quasi[0].hierarchy;
    let of_level = |level: &Arc<dyn Generalizer>| {
        let labels = apply(&**level, &values).unwrap();
        let cell = |row| Value::read(&labels, row).unwrap().text_form();
        let is_top = level.is_top();
        (0..labels.len()).map(|row| cell(row).unwrap_or(if is_top { "*" } else { "-" }.to_owned())).collect()
    };
    hierarchy.levels().iter().skip(1).map(of_level).collect()
}

/// Columns, rules, and the first row of the file.
const RULES: [(&str, &str, &[&str]); 14] = [
    ("age", "{ range = [10, 20], origin = 5 }", &["-13", "[-15,-5)", "[-15,5)", "*"]),
    ("age", "{ floor = [10] }", &["-13", "-20", "*"]),
    ("age", "bands = [[18, 30, 60]]", &["-13", "<18", "*"]),
    ("bmi", "range = [2.5]", &["15", "[15.0,17.5)", "*"]),
    ("bmi", "floor = [5]", &["15", "15", "*"]),
    ("dob", "date = [\"month\", \"year\"]", &["1968-05-12", "1968-05-01", "1968-01-01", "*"]),
    ("dob", "weekday", &["1968-05-12", "Sunday", "weekend", "*"]),
    ("seen", "date = [\"day\"]", &["1970-01-01T01:00:00.000123", "1970-01-01T00:00:00", "*"]),
    ("price", "range = [10]", &["1.29", "[0,10)", "*"]),
    ("zip", "{ prefix = [4, 2] }", &["02130", "0213*", "02*", "*"]),
    ("zip", "prefix = [2]", &["02130", "02*", "*"]),
    ("town", "prefix = [1]", &["", "*", "*"]),
    ("country", "country", &["DE", "Western Europe", "Europe", "*"]),
    ("country", "{ file = \"areas.csv\" }", &["Peru", "South", "*"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_file_gives_the_labels_of_the_rule() {
    let place = place();
    place.write("areas.csv", "Peru;South\nFR;North\nSpain;North\nDE;North\nGermany;North\n");
    for input in ["in.parquet", "in.csv"] {
        for (column, rule, first) in RULES {
            if input == "in.csv" && !CSV_COLUMNS.contains(&column) {
                continue;
            }
            let ran =
                place.run(&format!("hierarchy {input} {column} --by '{rule}' --to made.csv --overwrite"));
            let levels = first.len() - 1;
            assert!(ran.exit(0).out.contains(&format!("values, {levels} level")), "{column} {rule}");
            let rows = rows_of(&fs::read_to_string(place.path("made.csv")).unwrap());
            // A CSV file may write a value in another way.
            let from = usize::from(input == "in.csv");
            assert_eq!(rows[0][from..], first[from..], "{input} {column} {rule}");
            let distinct: BTreeSet<String> =
                texts(&people(), column).into_iter().filter(|t| t != "-").collect();
            assert_eq!(rows.len(), distinct.len(), "{column} {rule}");
            let braced = match rule {
                rule if rule.starts_with('{') => rule.to_owned(),
                rule if rule.contains('=') => format!("{{ {rule} }}"),
                name => format!("{{ known = \"{name}\" }}"),
            };
            let by_rule = labels(&place, input, column, &braced).await;
            let by_file = labels(&place, input, column, "{ file = \"made.csv\" }").await;
            assert_eq!(by_rule, by_file, "{input} {column} {rule}");
            let checked = format!("hierarchy check made.csv --input {input} --column {column} --format json");
            let checked = place.run(&checked).exit(0).json();
            let nulls = texts(&people(), column).iter().filter(|text| *text == "-").count();
            assert_eq!((&checked["unused_values"], &checked["nulls"]), (&0.into(), &nulls.into()));
            assert_eq!(checked["levels"].as_array().unwrap().len(), levels);
        }
    }
}

/// A policy with a file reads the cells of a CSV column as they are written, however a rule reads them.
#[tokio::test(flavor = "multi_thread")]
async fn cells_are_written_as_a_file_matches_them() {
    let place = Place::new();
    place.write("in.csv", "n,day\n07,2020-05-01\n7,2020-05-01T00:00:00\n7.0,2020-06-30\n 11,2020-05-01\n,\n");
    let numbers = place.run("hierarchy in.csv n --by 'range = [5, 10]'").exit(0).out;
    assert_eq!(
        numbers,
        "\"07\";\"[5,10)\";\"[0,10)\";\"*\"\n\"7\";\"[5,10)\";\"[0,10)\";\"*\"\n\
         \"7.0\";\"[5,10)\";\"[0,10)\";\"*\"\n\" 11\";\"[10,15)\";\"[10,20)\";\"*\"\n"
    );
    place.write("made.csv", numbers);
    let by_rule = labels(&place, "in.csv", "n", "{ range = [5, 10] }").await;
    assert_eq!(by_rule, labels(&place, "in.csv", "n", "{ file = \"made.csv\" }").await);
    let days = place.run("hierarchy in.csv day --by 'date = [\"month\"]'").exit(0).out;
    assert_eq!(rows_of(&days).len(), 3);
    place.write("made.csv", days);
    place.run("hierarchy check made.csv --input in.csv --column day").exit(0);
    // JSON: a text is a number for the rule only, a number is one for both.
    place.write("in.json", "{\"a\": \"07\", \"b\": 7}\n{\"a\": \"8\", \"b\": 8.5}\n");
    for (column, first) in [("a", "07"), ("b", "7")] {
        let made = place.run(&format!("hierarchy in.json {column} --by 'range = [5]'")).exit(0).out;
        assert_eq!(rows_of(&made)[0][0], first);
        place.write("made.csv", made);
        place.run(&format!("hierarchy check made.csv --input in.json --column {column}")).exit(0);
    }
}

#[test]
fn it_is_printed_or_written_whole() {
    let place = place();
    let line = "hierarchy in.parquet country --by country";
    let printed = place.run(line).exit(0).out;
    assert!(printed.starts_with("\"DE\";\"Western Europe\";\"Europe\";\"*\"\n\"FR\";"), "{printed}");
    let written = place.run(&format!("{line} --to country.csv")).exit(0);
    assert_eq!(
        written.out,
        "wrote     country.csv (4 values, 3 levels: known:country level:1, known:country level:2, suppress)\n\
         keep      country.csv to yourself: it holds every value of `country`\n\
         next      edit country.csv, then kanon hierarchy check country.csv --input in.parquet --column country\n"
    );
    assert_eq!(fs::read_to_string(place.path("country.csv")).unwrap(), printed);
    let mode = fs::metadata(place.path("country.csv")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let json = place.run(&format!("{line} --format json")).exit(0).json();
    assert_eq!((&json["column"], &json["values"]), (&"country".into(), &4.into()));
    assert_eq!(json["rows"][0], serde_json::json!(["DE", "Western Europe", "Europe", "*"]));
    assert_eq!(json["levels"].as_array().unwrap().len(), 3);
    let json = place.run(&format!("{line} --format json --to again.csv")).exit(0).json();
    assert_eq!((&json["file"], &json["rows"]), (&"again.csv".into(), &serde_json::Value::Null));

    // Values with every character a cell can have.
    let towns = place.run("hierarchy in.parquet town --by 'prefix = [9]'").exit(0).out;
    let values: BTreeSet<String> = rows_of(&towns).into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(values, ["", "Ol\"ym", "a;b", "town", "x\ny"].map(str::to_owned).into());
    assert!(!towns.contains("\"level 1\""), "{towns}");

    // What is there stays, unless it may be replaced.
    let before = place.tree();
    place
        .run(&format!("{line} --to country.csv"))
        .exit(2)
        .says("--to country.csv: already exists; --overwrite");
    place.run(&format!("{line} --to in.parquet --overwrite")).exit(2).says("choose a name such as zip.csv");
    place
        .run("hierarchy in.csv zip --by 'prefix = [2]' --to in.csv --overwrite")
        .exit(2)
        .says("a file of the input");
    place
        .run(&format!("{line} --to no/such/a.csv"))
        .exit(3)
        .says("--to no/such/a.csv: expected the name of a file");
    fs::create_dir(place.path("folder")).unwrap();
    place.run(&format!("{line} --to folder --overwrite")).exit(2).says("expected a plain file");
    fs::remove_dir(place.path("folder")).unwrap();
    place.run("hierarchy in.parquet age --by country --to country.csv --overwrite").exit(2);
    assert!(place.tree() == before, "something was left or changed");
    place.run("hierarchy in.parquet zip --by 'prefix = [4]' --to country.csv --overwrite").exit(0);
    assert!(fs::read_to_string(place.path("country.csv")).unwrap().starts_with("\"02130\";\"0213*\""));
}

#[test]
fn a_value_that_is_the_columns_name_is_no_header() {
    let place = Place::new();
    place.write("in.csv", "a\na\nb\n");
    let made = place.run("hierarchy in.csv a --by 'prefix = [1]'").exit(0).out;
    assert_eq!(made, "\"a\";\"level 1\";\"level 2\"\n\"a\";\"a*\";\"*\"\n\"b\";\"b*\";\"*\"\n");
    place.write("a.csv", made);
    place.run("hierarchy check a.csv --input in.csv").exit(0);
}

#[test]
fn rules_that_do_not_fit_are_refused() {
    let place = place();
    let refused = |line: &str, code: i32, part: &str| {
        let ran = place.run(&format!("hierarchy {line}")).exit(code).says(part);
        assert!(!ran.err.contains("Peru") && !ran.err.contains("02130"), "{ran:?}");
    };
    refused(
        "in.parquet zip --by 'rnge = [1]'",
        2,
        "--by rnge = [1]: hierarchy.rnge: unknown key; did you mean `range`?",
    );
    refused(
        "in.parquet zip --by contry",
        2,
        "--by contry: expected a rule such as 'range = [10, 20]' or the name",
    );
    refused("in.parquet zip --by contry", 2, "did you mean `country`?");
    refused("in.parquet zip --by 'range = [1'", 2, "--by range = [1: expected TOML such as");
    refused("in.parquet zipp --by country", 2, "the input has no column `zipp`; did you mean `zip`?");
    refused("in.csv nothing --by country", 2, "the input has no column `nothing`; it has 5 columns");
    refused(
        "in.parquet zip --by 'range = [10]'",
        2,
        "--by range = [10]: columns.zip.hierarchy.range: values of type",
    );
    refused("in.csv zip --by 'date = [\"year\"]'", 3, "rows do not hold a date");
    refused("in.parquet zip --by '{ file = \"none.csv\" }'", 3, "there is no such file");
    refused("in.parquet zip --by country", 2, "column `zip`: 9 distinct values are outside `country`");
    refused("in.parquet zip --by country", 2, "let `outside = \"join\"` make them one label");
    refused("none.parquet zip --by country", 3, "no such file");
    refused("in.parquet zip", 2, "--by <RULE>");
    refused("in.parquet --by country", 2, "<COLUMN>");
    refused("in.parquet zip --by country --overwrite", 2, "--to <FILE>");
    let shown = place.run("hierarchy in.parquet zip --by country --show-values").exit(2);
    assert!(shown.err.contains("make them one label: 02130, 02230, "), "{shown:?}");
    place.write("towns.csv", "town;x\n");
    refused("in.parquet town --by '{ file = \"towns.csv\" }'", 2, "at least one row");
    let bytes = arrow::array::BinaryArray::from_iter_values(["Peru"]);
    let none = StringArray::from(vec![None::<&str>]);
    place.parquet("other.parquet", &table([("x", Arc::new(bytes) as ArrayRef), ("y", Arc::new(none))]));
    refused("other.parquet x --by country", 2, "column `x`: values of type Binary cannot be used here");
    refused("other.parquet y --by country", 3, "column `y`: it has no values, so there is nothing to write");
}

#[test]
fn csv_is_read_as_a_policy_says() {
    let place = Place::new();
    place.write("in.csv", "zip;town\n02139;Cambridge\n?;Olympia\n");
    let found = place.run("hierarchy in.csv zip --by 'prefix = [2]'").exit(0);
    assert_eq!(found.out, "\"02139\";\"02*\";\"*\"\n\"?\";\"?*\";\"*\"\n");
    place.write(
        "p.toml",
        "k = 2\n[columns]\nzip = { role = \"quasi\" }\n[input]\ndelimiter = \";\"\nnulls = [\"?\"]\n",
    );
    let made = place.run("hierarchy in.csv zip --by 'prefix = [2]' --policy p.toml").exit(0).out;
    assert_eq!(made, "\"02139\";\"02*\";\"*\"\n");
    place.write("zip.csv", made);
    let json =
        place.run("hierarchy check zip.csv --input in.csv --policy p.toml --format json").exit(0).json();
    assert_eq!((&json["rows"], &json["nulls"]), (&1.into(), &1.into()));
}

#[test]
fn more_values_than_a_person_can_edit() {
    let place = Place::new();
    let rows = 1_000_001;
    place.parquet(
        "in.parquet",
        &table([("x", Arc::new((0..rows).map(Some).collect::<Int64Array>()) as ArrayRef)]),
    );
    let error = "column `x`: it has more than 1,000,000 distinct values, too many to edit by hand";
    place.run("hierarchy in.parquet x --by 'range = [10]'").exit(3).says(error);
    place.run("hierarchy in.parquet x --by 'range = [10]' --memory-limit 16M").exit(3);
}

#[test]
fn an_input_named_check() {
    let place = Place::new();
    fs::create_dir(place.path("check")).unwrap();
    place.write("check/a.csv", "zip\n02139\n");
    place.run("hierarchy ./check zip --by 'prefix = [2]'").exit(0);
    place.run("hierarchy check zip --by 'prefix = [2]'").exit(2);
}

const SHOP: &str = "fruit,weight\napple,1\npear,1\npear,2\nplum,1\nleek,3\n,3\napple,2\n";
const FOOD: &str = "\u{feff}fruit;kind;group;all\r\napple;pome;sweet;*\r\npear;pome;sweet;*\r\n\
                    plum;stone;sweet;*\r\nleek;allium;savoury;*\r\nonion;allium;savoury;*\r\n\r\n\r\n";

#[test]
fn a_file_that_covers_the_column() {
    let place = Place::new();
    place.write("in.csv", SHOP);
    place.write("food.csv", FOOD);
    let ran = place.run("hierarchy check food.csv --input in.csv").exit(0);
    assert_eq!(
        ran.out,
        "\
read      6 rows with a value of `fruit`, 1 without one
tree      food.csv: 5 values in 3 levels
covers    every value of `fruit`
unused    1 value of the file does not occur in the input

               values of a label    rows of a label
level  labels  least  mean  most  least  mean  most
    1       3      1   1.7     2      1   2.0     4
    2       2      2   2.5     3      1   3.0     5
    3       1      5   5.0     5      6   6.0     6

*             5 values  ██████████████████████████████ 100 %
├─ sweet      3 values  █████████████████████████ 83 %
│  ├─ pome    2 values  ████████████████████ 67 %
│  └─ stone    1 value  █████ 17 %
└─ savoury    2 values  █████ 17 %
   └─ allium  2 values  █████ 17 %
"
    );
    let json = place.run("hierarchy check food.csv --input in.csv --format json").exit(0).json();
    let spread = |least: u64, mean: f64, greatest: u64| serde_json::json!({ "least": least, "mean": mean, "greatest": greatest });
    assert_eq!(
        json["levels"][0],
        serde_json::json!({
            "level": 1, "labels": 3, "values": spread(1, 5.0 / 3.0, 2), "rows": spread(1, 2.0, 4)
        })
    );
    for (key, value) in
        [("values", 5), ("rows", 6), ("nulls", 1), ("missing_values", 0), ("unused_values", 1)]
    {
        assert_eq!(json[key], value, "{key}");
    }
    assert_eq!((&json["column"], &json["covers"]), (&"fruit".into(), &true.into()));
    assert!(json.get("unused").is_none());
    let shown = place.run("hierarchy check food.csv --input in.csv --show-values").exit(0).out;
    assert!(shown.contains("not occur in the input: onion\n"), "{shown}");
}

#[test]
fn a_file_that_lacks_values() {
    let place = Place::new();
    place.write("in.csv", SHOP);
    // No top of its own.
    place.write("food.csv", "fruit;kind\napple;pome\nonion;allium\n");
    let ran = place.run("hierarchy check food.csv --input in.csv").exit(1);
    let lacks =
        "LACKS     3 values of `fruit`, which 4 rows hold; add a line for each (--show-values lists them)\n";
    assert!(ran.out.contains(lacks), "{ran:?}");
    assert!(!["pear", "plum", "leek", "onion"].iter().any(|value| ran.out.contains(value)), "{ran:?}");
    let tree = "*          2 values  ██████████ 33 %\n├─ pome     1 value  ██████████ 33 %\n└─ allium   1 value  0 %\n";
    assert!(ran.out.ends_with(tree), "{ran:?}");
    let shown = place.run("hierarchy check food.csv --input in.csv --show-values").exit(1);
    assert!(shown.out.contains("add a line for each: leek, pear, plum\n"), "{shown:?}");
    let json = place.run("hierarchy check food.csv --input in.csv --format json").exit(1).json();
    assert_eq!(
        (&json["missing_values"], &json["missing_rows"], &json["covers"]),
        (&3.into(), &4.into(), &false.into())
    );
    assert!(json.get("missing").is_none());
    let json =
        place.run("hierarchy check food.csv --input in.csv --format json --show-values").exit(1).json();
    assert_eq!(json["missing"], serde_json::json!(["leek", "pear", "plum"]));
    assert_eq!(json["unused"], serde_json::json!(["onion"]));
}

#[test]
fn a_file_that_is_no_tree() {
    let place = Place::new();
    place.write("in.csv", SHOP);
    let refused = |text: &str, part: &str| {
        place.write("fruit.csv", text);
        let ran = place.run("hierarchy check fruit.csv --input in.csv").exit(2).says(part);
        assert!(ran.err.starts_with("kanon: hierarchy file fruit.csv: "), "{ran:?}");
        assert!(!ran.err.contains("apple") && !ran.err.contains("pome"), "{ran:?}");
    };
    refused("apple;pome;sweet\n\npear;pome;sour\n", "line 3 and line 1 agree at level 1 but not at level 2");
    refused("apple;pome\nfruit;x\napple;pome\n", "line 3 repeats the value of line 1");
    refused("apple;pome\npear\n", "line 2 has 1 column, line 1 has 2");
    refused("fruit;kind\n", "at least one row");
    refused("\"apple;pome\n", "a quote in the hierarchy file is never closed");
    place
        .run("hierarchy check none.csv --input in.csv")
        .exit(3)
        .says("hierarchy file none.csv: there is no such file");
    place.run("hierarchy check fruit.csv").exit(2).says("--input <INPUT>");
}

#[test]
fn the_column_of_a_file() {
    let place = Place::new();
    place.write("in.csv", SHOP);
    let run = |name: &str, text: &str, more: &str| {
        place.write(name, text);
        place.run(&format!("hierarchy check {name} --input in.csv {more}"))
    };
    // By the file's name, by its header, as told.
    run("fruit.csv", "apple,x\npear,x\nplum,x\nleek,x\n", "").exit(0);
    run("x.csv", "fruit,kind\napple,x\npear,x\nplum,x\nleek,x\n", "").exit(0);
    run("x.csv", "apple,x\npear,x\nplum,x\nleek,x\n", "--column fruit").exit(0);
    run("x.csv", "apple,x\npear,x\n", "").exit(2).says("give the column with --column: neither");
    run("weight.csv", "fruit,kind\napple,x\n", "").exit(2).says("name two columns of the input");
    run("x.csv", "apple,x\n", "--column friut")
        .exit(2)
        .says("the input has no column `friut`; did you mean `fruit`?");
    // A header of another name is a value.
    let json = run("x.csv", "name,kind\napple,x\npear,x\nplum,x\nleek,x\n", "--column fruit --format json");
    assert_eq!(json.exit(0).json()["unused_values"], 1);
}

/// A file as ARX exports it: no header, `;`, quotes where they are needed, CRLF, `*` last.
#[test]
fn files_of_arx_are_read_without_a_word() {
    let place = Place::new();
    let values = ["Never-married", "Married; abroad", "say \"x\"", "Widowed"];
    place.parquet(
        "in.parquet",
        &table([("marital", Arc::new(StringArray::from(values.repeat(3))) as ArrayRef)]),
    );
    let rows = "Never-married;alone;*\r\n\"Married; abroad\";together;*\r\n\"say \"\"x\"\"\";together;*\r\nWidowed;alone;*\r\n";
    let policy = "k = 2\nrows_are_individuals = true\n[columns]\nmarital = { role = \"quasi\", hierarchy = { file = \"arx.csv\" }, min_level = 1 }\n";
    place.write("p.toml", policy);
    for text in [rows.to_owned(), format!("\u{feff}{rows}\r\n\r\n"), rows.trim_end().to_owned()] {
        place.write("arx.csv", text);
        let ran = place.run("release in.parquet --policy p.toml --to out --overwrite").exit(0);
        assert!(!ran.out.contains("warning"), "{ran:?}");
        assert_eq!(
            texts(&place.released("out"), "marital"),
            ["alone"; 6].into_iter().chain(["together"; 6]).collect::<Vec<_>>()
        );
        place.run("verify out --input in.parquet").exit(0);
        place.run("hierarchy check arx.csv --input in.parquet --column marital").exit(0);
    }
    // The first line is a value, unless it begins with the column's name.
    for (first, unused) in [("marital;x;*\r\n", 0), ("Marital;alone;*\r\n", 1)] {
        place.write("arx.csv", format!("\u{feff}{first}{rows}"));
        let json = place.run("hierarchy check arx.csv --input in.parquet --column marital --format json");
        assert_eq!(json.exit(0).json()["unused_values"], unused, "{first}");
    }
}

/// A Parquet file with a row for each value and level, instead of a column for each level.
#[test]
fn tidy_parquet_files() {
    let place = Place::new();
    let strings = |cells: &[&str]| Arc::new(StringArray::from(cells.to_vec())) as ArrayRef;
    place.parquet(
        "in.parquet",
        &table([("zip", Arc::new(Int64Array::from(vec![2138, 2139, 2139, 98512])) as ArrayRef)]),
    );
    let zips: ArrayRef = Arc::new(Int64Array::from(vec![98512, 2138, 2139, 2139, 2138, 98512, 2138]));
    let levels: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 1, 2, 2, 2, 0]));
    let labels = ["Olympia", "Cambridge", "Cambridge", "MA", "MA", "WA", "2138"];
    let tidy = table([
        ("label", strings(&labels)),
        ("level", cast(&levels, &DataType::UInt16).unwrap()),
        ("value", Arc::clone(&zips)),
    ]);
    place.parquet("zip.parquet", &tidy);
    let ran = place.run("hierarchy check zip.parquet --input in.parquet").exit(0);
    assert!(ran.out.contains("zip.parquet: 3 values in 2 levels"), "{ran:?}");
    place.write("p.toml", "k = 3\nsuppression_limit = 0.25\nrows_are_individuals = true\n[columns]\nzip = { role = \"quasi\", hierarchy = { file = \"zip.parquet\" } }\n");
    place.run("release in.parquet --policy p.toml --to out").exit(0);
    assert_eq!(texts(&place.released("out"), "zip"), ["Cambridge"; 3]);
    place.run("verify out --input in.parquet").exit(0);
    // In SQL, from the file and from a query.
    let by_file =
        "SELECT * FROM load_hierarchy('zip', 'zip.parquet'); SELECT generalize('zip', 98512, 2) AS area";
    let ran = place.run_on("sql --output csv -c", Some(by_file), "").exit(0);
    assert!(ran.out.contains("zip,4,3") && ran.out.contains("WA"), "{ran:?}");
    let query = "SELECT * FROM load_hierarchy('sex', (SELECT * FROM (VALUES (1, 'x', 'f'), (1, 'y', 'm')) AS t(level, label, value))); \
                 SELECT generalize('sex', 'm', 1) AS sex";
    let ran = place.run_on("sql --output csv -c", Some(query), "").exit(0);
    assert!(ran.out.contains("sex,3,2") && ran.out.ends_with("y\n"), "{ran:?}");

    let refused = |values: &[i64], levels: &[Option<i64>], labels: &[&str], part: &str| {
        let tidy = table([
            ("value", Arc::new(Int64Array::from(values.to_vec())) as ArrayRef),
            ("level", Arc::new(Int64Array::from(levels.to_vec()))),
            ("label", strings(labels)),
        ]);
        place.parquet("zip.parquet", &tidy);
        for line in
            ["release in.parquet --policy p.toml --to new", "hierarchy check zip.parquet --input in.parquet"]
        {
            let ran = place.run(line).exit(2).says(part);
            assert!(!ran.err.contains("2138") && !ran.err.contains("Cambridge"), "{ran:?}");
        }
    };
    let one = Some(1);
    refused(
        &[2138, 2139, 2139],
        &[one, one, Some(2)],
        &["Cambridge"; 3],
        "1 value lacks a label at some level",
    );
    refused(&[2138, 2138], &[one; 2], &["Cambridge"; 2], "row 2 repeats the value and the level of row 1");
    refused(&[2138, 2138], &[one, Some(3)], &["Cambridge"; 2], "no row has level 2");
    refused(&[2138], &[None], &["Cambridge"], "column `level` has 1 NULL");
    refused(&[2138], &[Some(0)], &["Cambridge"], "row 1 has level 0 and a label that is not the value");
}
