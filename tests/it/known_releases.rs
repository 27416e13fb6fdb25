//! Every known hierarchy in a release: what is written is, row by row, what the naive rule says of the input.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Date32Array, Float64Array, Int64Array, StringArray, TimestampSecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use arrow::record_batch::RecordBatch;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use datafusion_kanon::internals::known::{Input, KNOWN, KnownRow, OTHER, find};

use crate::command::{Place, table, texts};
use crate::house::root;

/// The k of the releases.
const K: usize = 3;

/// A column, and the text that stands for each of its values.
struct Column {
    texts: Vec<Option<String>>,
    values: ArrayRef,
}

/// Each example in one to five rows, so that some labels are rare, then values outside the list and NULLs.
fn rows(examples: Vec<String>, outside: &[&str]) -> Vec<Option<String>> {
    let repeated = examples.into_iter().enumerate().flat_map(|(at, text)| vec![Some(text); at % 5 + 1]);
    let outside = outside.iter().map(|text| Some((*text).to_owned()));
    repeated.chain(outside).chain([const { None }; 4]).collect()
}

/// Examples as values of each type that the hierarchy reads; the first column is the one that is
/// tried at all levels.
fn columns(row: &KnownRow) -> Vec<Column> {
    let examples = (row.rule)().examples();
    let column = |texts: Vec<Option<String>>, of: &dyn Fn(&[Option<String>]) -> ArrayRef| Column {
        values: of(&texts),
        texts,
    };
    let number = |text: &Option<String>| text.as_ref().map(|text| text.parse::<i64>().unwrap());
    let text = || {
        column(rows(examples.clone(), &["nowhere at all", "", "?", "?"]), &|texts| {
            Arc::new(StringArray::from(texts.to_vec()))
        })
    };
    match row.input {
        Input::Text => vec![text()],
        Input::TextOrIntegers(digits) => {
            // An integer stands for itself with leading zeros.
            let is_integer = |text: &&String| {
                text.parse::<i64>().is_ok_and(|n| n >= 0 && format!("{n:0>digits$}") == **text)
            };
            let integers = examples.iter().filter(is_integer).cloned().collect();
            let integers = column(rows(integers, &["-1", "-1", "-2", "-777"]), &|texts| {
                Arc::new(texts.iter().map(number).collect::<Int64Array>())
            });
            vec![text(), integers]
        }
        Input::TextOrNumbers => {
            let is_number = |text: &&String| text.parse::<f64>().is_ok_and(|n| n.to_string() == **text);
            let numbers = examples.iter().filter(is_number).cloned().collect();
            let numbers = column(rows(numbers, &["500", "500", "1000.5"]), &|texts| {
                let number = |text: &Option<String>| text.as_ref().map(|text| text.parse::<f64>().unwrap());
                Arc::new(texts.iter().map(number).collect::<Float64Array>())
            });
            vec![text(), numbers]
        }
        Input::Weekday => {
            // 2024-01-01 was a Monday, the day 19,723; the same day of other weeks.
            let day = |at: usize, text: &Option<String>| {
                number(text).map(|weekday| 19_722 + weekday + 7 * (at as i64 % 9))
            };
            let dates = column(rows(examples.clone(), &[]), &|texts| {
                let days = texts.iter().enumerate().map(|(at, text)| day(at, text).map(|day| day as i32));
                Arc::new(days.collect::<Date32Array>())
            });
            let moments = column(rows(examples, &[]), &|texts| {
                // Two hours before midnight in UTC it is the day after in Tokyo.
                let moment = |(at, text)| day(at, text).map(|day| day * 86_400 - 7_200);
                let moments: TimestampSecondArray = texts.iter().enumerate().map(moment).collect();
                Arc::new(moments.with_timezone("Asia/Tokyo"))
            });
            vec![dates, moments]
        }
        Input::Hour => {
            let hours = examples.iter().filter(|text| text.len() < 3).cloned().collect();
            let moments = column(rows(hours, &[]), &|texts| {
                let moment = |(at, text)| number(text).map(|hour| 86_400 * at as i64 + hour * 3_600 + 3_599);
                Arc::new(texts.iter().enumerate().map(moment).collect::<TimestampSecondArray>())
            });
            vec![text(), moments]
        }
    }
}

/// The label of a text, as the naive rule says; NULL is `-`.
fn label(row: &KnownRow, text: Option<&String>, level: usize) -> String {
    text.map_or("-".to_owned(), |text| {
        (row.rule)().label_naively(text, level).unwrap_or_else(|| OTHER.to_owned())
    })
}

/// Labels in at least [`K`] rows, and their rows.
fn kept(labels: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = counts(labels);
    counts.retain(|_, rows| *rows >= K);
    counts
}

fn counts(labels: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    labels.for_each(|label| *counts.entry(label).or_default() += 1);
    counts
}

/// Releases and verifies a column at a level, and compares the labels of all rows.
#[track_caller]
fn releases(row: &KnownRow, column: &Column, level: usize) {
    let (place, name) = (Place::new(), row.doc.name);
    place.parquet("in.parquet", &table([("v", Arc::clone(&column.values))]));
    let policy = format!(
        "k = {K}\nsuppression_limit = 0.99\nrows_are_individuals = true\n[columns]\n\
         v = {{ role = \"quasi\", hierarchy = {{ known = \"{name}\", outside = \"join\" }}, \
         min_level = {level}, max_level = {level} }}"
    );
    place.write("p.toml", policy);
    let ran = place.run("release in.parquet --policy p.toml --to out").exit(0);
    assert!(ran.out.contains(&format!("\nchosen    v {}", row.levels[level - 1])), "{name}: {ran:?}");
    place.run("verify out --input in.parquet --policy p.toml").exit(0);
    let expected = kept(column.texts.iter().map(|text| label(row, text.as_ref(), level)));
    assert!(expected.len() > 1 && expected.contains_key("-"), "{name} {level}: {expected:?}");
    assert_eq!(counts(texts(&place.released("out"), "v").into_iter()), expected, "{name} {level}");
}

#[test]
fn every_known_hierarchy_is_released_at_every_level() {
    for row in KNOWN {
        let columns = columns(row);
        for level in 1..=row.levels.len() {
            releases(row, &columns[0], level);
        }
        columns[1..].iter().for_each(|column| releases(row, column, 1));
    }
}

/// Values outside a list are refused without `outside`, and none of them is shown.
#[test]
fn no_value_outside_is_released_by_mistake() {
    for row in KNOWN.iter().filter(|row| row.input != Input::Weekday) {
        let place = Place::new();
        let values = (row.rule)().examples().into_iter().take(3).chain(["CANARY".to_owned()]);
        let values: ArrayRef = Arc::new(values.map(Some).collect::<StringArray>());
        place.parquet("in.parquet", &table([("v", values)]));
        place.write(
            "p.toml",
            format!(
                "k = 2\nsuppression_limit = 0.9\nrows_are_individuals = true\n[columns]\n\
                 v = {{ role = \"quasi\", hierarchy = {{ known = \"{}\" }} }}",
                row.doc.name
            ),
        );
        let ran = place.run("release in.parquet --policy p.toml --to out");
        assert!(
            ran.code == 2 && ran.err.contains("1 distinct value is outside"),
            "{}: {ran:?}",
            row.doc.name
        );
        assert!(!ran.err.contains("CANARY") && !place.path("out").exists(), "{ran:?}");
    }
}

/// The diagnoses of the made-up visits and codes for them.
const CODES: &[(&str, &str)] = &[
    ("Alcohol dependence", "F10.2"),
    ("Anemia", "D64.9"),
    ("Anxiety disorder", "F41.9"),
    ("Appendicitis", "K35.8"),
    ("Asthma", "J45.9"),
    ("Atrial fibrillation", "I48"),
    ("Back pain", "M54.5"),
    ("Birth", "Z38.0"),
    ("Breast cancer", "C50.9"),
    ("COPD", "J44.9"),
    ("Cataract", "H26.9"),
    ("Chlamydia infection", "A56.0"),
    ("Chronic kidney disease", "N18.9"),
    ("Colorectal cancer", "C18.9"),
    ("Congenital heart defect", "Q24.9"),
    ("Coronary artery disease", "I25.1"),
    ("Dementia", "F03"),
    ("Depression", "F32.9"),
    ("Epilepsy", "G40.9"),
    ("Gallstones", "K80.2"),
    ("Gastroenteritis", "A09.9"),
    ("HIV infection", "B24"),
    ("Heart failure", "I50.9"),
    ("Hepatitis C", "B18.2"),
    ("Hip fracture", "S72.0"),
    ("Hypertension", "I10"),
    ("Injury", "T14.9"),
    ("Lung cancer", "C34.9"),
    ("Migraine", "G43.9"),
    ("Multiple sclerosis", "G35"),
    ("Opioid dependence", "F11.2"),
    ("Osteoarthritis", "M19.9"),
    ("Pneumonia", "J18.9"),
    ("Pregnancy and childbirth", "O80.9"),
    ("Prostate cancer", "C61"),
    ("Schizophrenia", "F20.9"),
    ("Sepsis", "A41.9"),
    ("Stroke", "I64"),
    ("Type 1 diabetes", "E10.9"),
    ("Type 2 diabetes", "E11.9"),
    ("Upper respiratory infection", "J06.9"),
    ("Urinary tract infection", "N39.0"),
];

/// Writes the visits of every fifth patient with a column `icd10` to a Parquet file, and returns them.
fn visits_with_codes(place: &Place) -> RecordBatch {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let visits = runtime.block_on(async {
        let session = SessionContext::new();
        let path = root().join("data/visits.parquet").display().to_string();
        session.register_parquet("visits", &path, ParquetReadOptions::default()).await.unwrap();
        let mut codes = String::new();
        CODES.iter().for_each(|(name, code)| write!(codes, "('{name}', '{code}'),").unwrap());
        let sql = format!(
            "SELECT patient_id, sex, zip, icd10 FROM visits LEFT JOIN (VALUES {}) AS c (named, icd10) ON diagnosis = named \
             WHERE patient_id % 5 = 0",
            codes.trim_end_matches(',')
        );
        let visits = session.sql(&sql).await.unwrap();
        let schema = Arc::clone(visits.schema().inner());
        arrow::compute::concat_batches(&schema, &visits.collect().await.unwrap()).unwrap()
    });
    place.parquet("visits.parquet", &visits);
    visits
}

/// Each row of `visits` by its labels, and those classes that hold at least `k` patients.
fn kept_visits(visits: &RecordBatch, levels: [usize; 2], k: usize) -> BTreeMap<String, usize> {
    let [zip, icd10] = ["zip", "icd10"].map(|name| {
        let column = visits.column_by_name(name).unwrap();
        let column = cast(column, &DataType::Utf8View).unwrap();
        column.as_string_view().iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
    });
    let rows = [find("us_zip").unwrap(), find("icd10").unwrap()];
    let patients = visits.column_by_name("patient_id").unwrap().as_primitive::<Int64Type>();
    let (mut classes, mut people) = (BTreeMap::new(), BTreeMap::<String, HashSet<i64>>::new());
    // The naive rule reads the whole list for each value.
    let mut known = BTreeMap::new();
    for (at, sex) in texts(visits, "sex").into_iter().enumerate() {
        let mut class = sex;
        for (column, text) in [&zip[at], &icd10[at]].into_iter().enumerate() {
            let of = |(column, text): &(usize, Option<String>)| {
                label(rows[*column], text.as_ref(), levels[*column])
            };
            let key = (column, text.clone());
            let label = known.entry(key.clone()).or_insert_with(|| of(&key));
            write!(class, " {label}").unwrap();
        }
        *classes.entry(class.clone()).or_default() += 1;
        people.entry(class).or_default().insert(patients.value(at));
    }
    classes.retain(|class, _| people[class].len() >= k);
    classes
}

#[test]
fn visits_by_areas_and_chapters() {
    let place = Place::new();
    let visits = visits_with_codes(&place);
    let without_code = visits.column_by_name("icd10").unwrap().null_count();
    assert!(visits.num_rows() > 10_000 && without_code * 50 < visits.num_rows(), "every name has a code");
    let policy = "k = 5\nsuppression_limit = 0.05\nothers = \"drop\"\n[columns]\n\
                  patient_id = { role = \"individual\" }\nsex = { role = \"quasi\" }\n\
                  zip = { role = \"quasi\", hierarchy = { known = \"us_zip\", outside = \"join\" } ZIP }\n\
                  icd10 = { role = \"quasi\", hierarchy = { known = \"icd10\" } ICD }\n";
    // The levels that the search takes by itself, then others: prefixes, states; categories,
    // blocks, chapters.
    let cases = [
        (None, [2, 3], "zip state outside:join | icd10 chapter"),
        (Some("0.5"), [1, 2], "zip area outside:join | icd10 block"),
        (Some("0.5"), [4, 1], "zip region outside:join | icd10 category"),
    ];
    for (limit, [zip, icd10], chosen) in cases {
        let fixed = |level| format!(", min_level = {level}, max_level = {level}");
        let policy = match limit {
            None => policy.replace(" ZIP", "").replace(" ICD", ""),
            Some(limit) => {
                policy.replace("0.05", limit).replace(" ZIP", &fixed(zip)).replace(" ICD", &fixed(icd10))
            }
        };
        place.write("p.toml", policy);
        let ran = place.run("release visits.parquet --policy p.toml --to out --overwrite").exit(0);
        assert!(ran.out.contains(chosen), "{ran:?}");
        place.run("verify out --input visits.parquet --policy p.toml").exit(0);
        let released = place.released("out");
        let columns = ["sex", "zip", "icd10"].map(|name| texts(&released, name));
        let found = (0..released.num_rows()).map(|at| columns.each_ref().map(|c| &*c[at]).join(" "));
        assert_eq!(counts(found), kept_visits(&visits, [zip, icd10], 5), "{chosen}");
    }
    // The last release shows regions and categories.
    let released = place.released("out");
    let zips: HashSet<String> = texts(&released, "zip").into_iter().collect();
    assert!(zips.contains("Northeast") && zips.iter().all(|zip| !zip.contains('*')), "{zips:?}");
    let codes: HashSet<String> = texts(&released, "icd10").into_iter().collect();
    assert!(codes.contains("I10") && codes.contains("E11") && !codes.contains("E11.9"), "{codes:?}");
}
