//! The same rows give the same bytes: whatever their order, their files, their encodings, the threads and the
//! memory. Every file of a release is compared, the public record too.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "a test may, and its numbers are small"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{
    ArrayRef, Date32Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array,
    new_null_array,
};
use arrow::compute::{cast, take_record_batch};
use arrow::datatypes::DataType;
use datafusion::parquet::basic::{Compression, Encoding, ZstdLevel};
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use datafusion_kanon::internals::method::{MethodSpec, ReleaseKind, variants};

use crate::command::{Place, table, texts};

const POLICY: &str = r#"
    k = 5
    suppression_limit = 0.05
    rows_are_individuals = true
    accept_homogeneity = ["disease"]
    [columns]
    id      = { role = "identifier" }
    zip     = { role = "quasi", hierarchy = { prefix = [4, 3, 2, 1] } }
    age     = { role = "quasi", hierarchy = { range = [5, 10, 20, 40] } }
    dob     = { role = "quasi", hierarchy = { date = ["month", "year", "decade"] } }
    sex     = { role = "quasi" }
    weight  = { role = "quasi", hierarchy = { floor = [0.5, 5, 50] } }
    disease = { role = "sensitive" }
    remark  = { role = "insensitive" }
"#;

/// A person, or a line about one: people come more than once.
#[derive(Clone)]
struct Visit {
    id: i64,
    zip: Option<String>,
    age: Option<i64>,
    dob: Option<i32>,
    sex: Option<&'static str>,
    weight: Option<f64>,
    disease: Option<&'static str>,
    remark: Option<&'static str>,
}

const DISEASES: [&str; 5] = ["flu", "Krebs, Lunge", "\"unknown\"", "ÎÖ ☂", "gastritis"];
const REMARKS: [&str; 4] = ["came by foot", "two\nlines, one comma", " spaces ", "the \"other\" door"];

/// Numbers that look like chance and are the same every time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    /// One of `n`, or nothing in one of sixteen cases.
    fn maybe(&mut self, n: u64) -> Option<u64> {
        (self.below(16) > 0).then(|| self.below(n))
    }

    fn one_of<T: Copy, const N: usize>(&mut self, values: [T; N]) -> Option<T> {
        self.maybe(N as u64).map(|at| values[at as usize])
    }

    fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

fn visits(n: usize) -> Vec<Visit> {
    let mut draw = Draw(7);
    let mut all: Vec<Visit> = Vec::new();
    while all.len() < n {
        let years = draw.maybe(80);
        let visit = Visit {
            id: draw.below(1_000_000) as i64,
            zip: draw.maybe(60).map(|zip| format!("{:05}", 2130 + zip * 7)),
            age: years.map(|years| years as i64 - 3),
            dob: years.map(|years| 15_000 - 365 * years as i32 - draw.below(365) as i32),
            sex: draw.one_of(["m", "f"]),
            weight: draw.maybe(400).map(|quarters| quarters as f64 / 4.0 - 1.0),
            disease: draw.one_of(DISEASES),
            remark: draw.one_of(REMARKS),
        };
        // Whole rows come twice and thrice.
        let times = 1 + [0, 0, 0, 1, 2][draw.below(5) as usize];
        all.extend(std::iter::repeat_n(visit, times));
    }
    all.truncate(n);
    all
}

/// The visits with their texts in an Arrow type.
fn batch_as(visits: &[Visit], text: &DataType) -> RecordBatch {
    fn column<T, A: FromIterator<T>>(visits: &[Visit], of: impl Fn(&Visit) -> T) -> A {
        visits.iter().map(of).collect()
    }
    let texts = |of: fn(&Visit) -> Option<&str>| -> ArrayRef {
        let plain: StringArray = visits.iter().map(of).collect();
        cast(&plain, text).unwrap()
    };
    table([
        ("id", Arc::new(column::<_, Int64Array>(visits, |v| Some(v.id))) as ArrayRef),
        ("zip", texts(|v| v.zip.as_deref())),
        ("age", Arc::new(column::<_, Int64Array>(visits, |v| v.age))),
        ("dob", Arc::new(column::<_, Date32Array>(visits, |v| v.dob))),
        ("sex", texts(|v| v.sex)),
        ("weight", Arc::new(column::<_, Float64Array>(visits, |v| v.weight))),
        ("disease", texts(|v| v.disease)),
        ("remark", texts(|v| v.remark)),
    ])
}

fn batch(visits: &[Visit]) -> RecordBatch {
    batch_as(visits, &DataType::Utf8)
}

/// The visits as CSV; cells that need no quotes have some all the same if `quoted`.
fn csv(visits: &[Visit], delimiter: char, quoted: bool, line_end: &str) -> String {
    let cell = |text: String| {
        let must = text.contains(['"', '\n', ',', ';']);
        if must || quoted { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
    };
    let line = |cells: Vec<String>| cells.join(&delimiter.to_string()) + line_end;
    let names = ["id", "zip", "age", "dob", "sex", "weight", "disease", "remark"];
    let mut text = line(names.map(str::to_owned).into());
    for v in visits {
        let date =
            |days: i32| texts(&table([("d", Arc::new(Date32Array::from(vec![days])) as _)]), "d").remove(0);
        let cells = vec![
            v.id.to_string(),
            v.zip.clone().unwrap_or_default(),
            v.age.map(|n| n.to_string()).unwrap_or_default(),
            v.dob.map(date).unwrap_or_default(),
            v.sex.unwrap_or_default().to_owned(),
            v.weight.map(|n| n.to_string()).unwrap_or_default(),
            v.disease.unwrap_or_default().to_owned(),
            v.remark.unwrap_or_default().to_owned(),
        ];
        text += &line(cells.into_iter().map(cell).collect());
    }
    text
}

type Files = BTreeMap<String, Vec<u8>>;

/// Releases `input` of `place` and returns the files of the release.
#[track_caller]
fn release(place: &Place, input: &str, more: &str) -> Files {
    if !place.path("policy.toml").exists() {
        place.write("policy.toml", POLICY);
    }
    place.run(&format!("release {input} --policy policy.toml --to out {more}")).exit(0);
    let files = place.files("out");
    std::fs::remove_dir_all(place.path("out")).unwrap();
    std::fs::remove_file(place.path("out.private.json")).unwrap();
    files
}

#[track_caller]
fn release_of(batch: &RecordBatch) -> Files {
    let place = Place::new();
    place.parquet("in.parquet", batch);
    release(&place, "in.parquet", "")
}

#[track_caller]
fn same(expected: &Files, found: &Files) {
    let sizes =
        |files: &Files| files.iter().map(|(name, bytes)| (name.clone(), bytes.len())).collect::<Vec<_>>();
    let record = |files: &Files| String::from_utf8_lossy(&files["_kanon.json"]).into_owned();
    assert_eq!(sizes(expected), sizes(found));
    assert_eq!(record(expected), record(found));
    assert!(expected == found, "the parts differ");
}

const ROWS: usize = 4_000;

static VISITS: LazyLock<Vec<Visit>> = LazyLock::new(|| visits(ROWS));
static EXPECTED: LazyLock<Files> = LazyLock::new(|| release_of(&batch(&VISITS)));

#[test]
fn the_comparison_sees_one_row() {
    let files = EXPECTED.clone();
    assert_eq!(files.keys().collect::<Vec<_>>(), ["_kanon.json", "part-00000.parquet"]);
    let rows = record_rows(&files);
    assert!(rows > ROWS as u64 * 9 / 10 && rows < ROWS as u64, "{rows} rows are no release to compare with");
    // One duplicate less is another table.
    let place = Place::new();
    place.write("out/part-00000.parquet", &files["part-00000.parquet"]);
    let kept = place.released("out");
    let sexes = texts(&kept, "disease");
    assert!(DISEASES.iter().all(|disease| sexes.iter().any(|found| found == disease)));
    let mut less = VISITS.clone();
    let twice = (1..less.len()).find(|at| less[*at].id == less[*at - 1].id).unwrap();
    less.remove(twice);
    assert!(release_of(&batch(&less)) != files);
}

fn record_rows(files: &Files) -> u64 {
    let record: serde_json::Value = serde_json::from_slice(&files["_kanon.json"]).unwrap();
    record["tables"][0]["rows"].as_u64().unwrap()
}

#[test]
fn rows_in_any_order() {
    for seed in [1, 2] {
        let mut visits = VISITS.clone();
        Draw(seed).shuffle(&mut visits);
        same(&EXPECTED, &release_of(&batch(&visits)));
    }
    // In the order of nothing but chance, and in that of a column, the last file of which is all NULL.
    let mut visits = VISITS.clone();
    visits.sort_by(|a, b| b.zip.cmp(&a.zip));
    same(&EXPECTED, &release_of(&batch(&visits)));
}

#[test]
fn rows_in_any_files() {
    let whole = batch(&VISITS);
    for (cuts, names) in [
        (vec![0, 1_300, 2_600, ROWS], ["a.parquet", "b.parquet", "c.parquet"]),
        (vec![0, 1_300, 2_600, ROWS], ["c.parquet", "a.parquet", "deep/er/b.parquet"]),
        (vec![0, 1, 1, ROWS], ["one.parquet", "none.parquet", "rest.parquet"]),
    ] {
        let place = Place::new();
        for (cut, name) in cuts.windows(2).zip(names) {
            place.parquet(&format!("lake/{name}"), &whole.slice(cut[0], cut[1] - cut[0]));
        }
        same(&EXPECTED, &release(&place, "lake", ""));
        same(&EXPECTED, &release(&place, "lake/", "--threads 3"));
    }
}

#[test]
fn row_groups_pages_and_encodings() {
    let form = WriterProperties::builder;
    let zstd = Compression::ZSTD(ZstdLevel::try_new(3).unwrap());
    let forms = [
        form().set_max_row_group_row_count(Some(97)).set_compression(Compression::SNAPPY),
        form().set_max_row_group_row_count(Some(1_000)).set_data_page_row_count_limit(50),
        form().set_dictionary_enabled(false).set_compression(zstd),
        form().set_writer_version(WriterVersion::PARQUET_2_0).set_statistics_enabled(EnabledStatistics::Page),
        form()
            .set_dictionary_enabled(false)
            .set_encoding(Encoding::PLAIN)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_created_by("somebody else".into()),
    ];
    for form in forms {
        let place = Place::new();
        place.parquet_with("in.parquet", &batch(&VISITS), form.build());
        same(&EXPECTED, &release(&place, "in.parquet", ""));
    }
}

#[test]
fn texts_in_any_arrow_type() {
    let dictionary = |keys, values| DataType::Dictionary(Box::new(keys), Box::new(values));
    for text in [
        DataType::LargeUtf8,
        DataType::Utf8View,
        dictionary(DataType::Int32, DataType::Utf8),
        dictionary(DataType::UInt8, DataType::LargeUtf8),
    ] {
        same(&EXPECTED, &release_of(&batch_as(&VISITS, &text)));
    }
}

#[test]
fn entries_of_a_dictionary_that_no_row_uses() {
    // An Arrow dictionary may hold what no row refers to, and NULL twice over.
    let text = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let more = [VISITS.clone(), vec![Visit { zip: Some("unused".into()), ..VISITS[0].clone() }]].concat();
    same(&EXPECTED, &release_of(&batch_as(&more, &text).slice(0, ROWS)));
}

#[test]
fn metadata_of_the_input_is_left_behind() {
    let whole = batch(&VISITS);
    let marked =
        |name: &str| [("PARQUET:field_id".to_owned(), "7".to_owned()), (name.into(), "x".into())].into();
    let plain = whole.schema();
    let fields = plain.fields().iter().map(|f| f.as_ref().clone().with_metadata(marked("comment")));
    let schema = arrow::datatypes::Schema::new(fields.collect::<Vec<_>>()).with_metadata(marked("pandas"));
    let marked = RecordBatch::try_new(Arc::new(schema), whole.columns().to_vec()).unwrap();
    same(&EXPECTED, &release_of(&marked));
}

#[test]
fn any_number_of_threads() {
    let place = Place::new();
    let whole = batch(&VISITS);
    for (name, (from, rows)) in ["a", "b", "c"].iter().zip([(0, 500), (500, 3_000), (3_500, ROWS - 3_500)]) {
        let small = WriterProperties::builder().set_max_row_group_row_count(Some(300)).build();
        place.parquet_with(&format!("lake/{name}.parquet"), &whole.slice(from, rows), small);
    }
    for threads in [1, 2, 7, 32] {
        same(&EXPECTED, &release(&place, "lake", &format!("--threads {threads}")));
    }
}

#[test]
fn csv_or_parquet() {
    let mut shuffled = VISITS.clone();
    Draw(3).shuffle(&mut shuffled);
    let place = Place::new();
    place.write("plain.csv", csv(&VISITS, ',', false, "\n"));
    same(&EXPECTED, &release(&place, "plain.csv", ""));
    place.write("two/a.csv", csv(&shuffled[..700], ',', true, "\r\n"));
    place.write("two/b.csv", csv(&shuffled[700..], ',', false, "\n"));
    same(&EXPECTED, &release(&place, "two", "--threads 2"));
    same(&EXPECTED, &release(&place, "'two/*.csv'", "--threads 1"));
    let place = Place::new();
    place.write("policy.toml", format!("{POLICY}\n[input]\ndelimiter = \";\""));
    place.write("in.csv", csv(&shuffled, ';', true, "\n"));
    same(&EXPECTED, &release(&place, "in.csv", ""));
}

/// Classes of a method's own, with one region a column, depend on the multiset of rows alone too,
/// by whatever method.
#[test]
fn regions_of_rows_in_any_order_and_files() {
    let mut shuffled = VISITS.clone();
    Draw(4).shuffle(&mut shuffled);
    let place = Place::new();
    place.parquet("in.parquet", &batch(&VISITS));
    let whole = batch(&shuffled);
    place.parquet("lake/a.parquet", &whole.slice(0, 700));
    place.parquet("lake/b.parquet", &whole.slice(700, ROWS - 700));
    place.write("in.csv", csv(&shuffled, ',', true, "\n"));
    // Rows are dealt to groups under a new key each time.
    let methods =
        variants().into_iter().filter(|method| method.name != "auto" && method.kind() != ReleaseKind::Groups);
    let methods = methods.chain([MethodSpec::named("best")]).map(|method| (method, ""));
    let as_columns = (MethodSpec::named("mondrian"), "\n[output]\nintervals = \"columns\"\n");
    let mut all = Vec::new();
    for (method, output) in methods.chain([as_columns]) {
        place.write("policy.toml", format!("method = {method}\n{POLICY}{output}"));
        let expected = release(&place, "in.parquet", "--threads 1");
        let kind = if method.kind() == ReleaseKind::Regions { "\"regions\"" } else { "\"centroids\"" };
        assert!(String::from_utf8_lossy(&expected["_kanon.json"]).contains(kind), "{method}");
        // Levels may suppress some.
        assert!(record_rows(&expected) >= ROWS as u64 * 9 / 10, "{method}");
        same(&expected, &release(&place, "lake", "--threads 7"));
        same(&expected, &release(&place, "in.csv", "--threads 2"));
        all.push(expected);
    }
    assert!(all.len() > 1 && all[0] != all[1], "every method gave the same rows");
}

/// More rows than a row group of the release holds, and long texts that the sort must carry.
#[test]
fn memory_that_spills() {
    let rows = 270_000;
    let mut draw = Draw(11);
    let long = |n: u64| format!("{n:03} {}", "remark ".repeat(30));
    // So many that Parquet holds them as they are: what shares a dictionary would not spill.
    let remarks: StringArray = (0..rows).map(|_| draw.maybe(20_000).map(long)).collect();
    let ages: Int32Array = (0..rows).map(|_| draw.maybe(90).map(|n| n as i32)).collect();
    let whole = table([
        ("age", Arc::new(ages) as ArrayRef),
        ("remark", Arc::new(remarks)),
        ("empty", new_null_array(&DataType::Int8, rows)),
    ]);
    let mut order: Vec<u32> = (0..rows as u32).collect();
    draw.shuffle(&mut order);
    let shuffled = take_record_batch(&whole, &UInt32Array::from(order)).unwrap();
    let place = Place::new();
    place.write(
        "policy.toml",
        "k = 5\nrows_are_individuals = true\n[columns]\nage = { role = \"quasi\", hierarchy = { range = [10, 50] } }\n\
         remark = { role = \"insensitive\" }\nempty = { role = \"insensitive\" }",
    );
    place.parquet("in.parquet", &whole);
    place.parquet("shuffled.parquet", &shuffled);
    let ample = release(&place, "in.parquet", "--memory-limit 4G");
    assert_eq!(record_rows(&ample), rows as u64);

    let line = "release shuffled.parquet --policy policy.toml --to out --memory-limit 32M --threads 1";
    let spill = place.path(".out.kanon-work/spill");
    let mut run = place.start_until(line, ".out.kanon-work/spill");
    let mut spilled = false;
    while run.goes_on() {
        spilled |= walk(&spill) > 1 << 20;
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    run.end().exit(0);
    assert!(spilled, "nothing was spilled");
    same(&ample, &place.files("out"));
}

/// The bytes of the files below a folder that may go away meanwhile.
fn walk(folder: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.metadata().map_or(0, |facts| facts.len()) + walk(&entry.path())).sum()
}
