//! Pairs of inputs whose released folders must be the same to the last byte: whatever of an input
//! is not in the kept rows (the suppressed rows, the order, the files, the encodings, the metadata)
//! must leave no trace.
//!
//! Small random tables under random policies. Each is released from one Parquet file, from some of
//! its other forms, and, with the levels that were chosen, from its kept rows alone. A few cases in
//! every run; with `KANON_FUZZ_CASES` a tenth of that number.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow::compute::{cast, take_record_batch};
use arrow::datatypes::{DataType, Schema};
use datafusion::parquet::file::properties::WriterProperties;
use datafusion_kanon::internals::error::{Error, ErrorKind};
use datafusion_kanon::internals::input::{Input, PolicySource};
use datafusion_kanon::internals::policy::PolicySpec;
use datafusion_kanon::internals::release::publish::record::RecodingRecord;
use datafusion_kanon::internals::release::{self, Released, release};

use crate::command::{Place, table, texts};
use crate::fuzz::random::Random;
use crate::shared::with_run;

const TEXTS: [&str; 4] = ["sex", "zip", "dx", "row"];

/// People with one to three rows each; every cell but the last may be NULL.
fn rows(random: &mut Random) -> RecordBatch {
    let people = 5 + random.below(40) as i64;
    let mut pids = Vec::new();
    for person in 0..people {
        let times = random.pick(&[1, 1, 1, 2, 3]);
        pids.extend(std::iter::repeat_n((!random.once_in(30)).then_some(person), times));
    }
    let mut some = |end: usize| (!random.once_in(20)).then(|| random.below(end) as i64);
    let mut column = |end: usize| pids.iter().map(|_| some(end)).collect::<Vec<Option<i64>>>();
    let text = |numbers: Vec<Option<i64>>, of: &dyn Fn(i64) -> String| -> ArrayRef {
        Arc::new(numbers.into_iter().map(|n| n.map(of)).collect::<StringArray>())
    };
    let days = column(9_000).into_iter().map(|day| day.map(|day| day as i32 - 2_000));
    let costs = column(60).into_iter().map(|n| n.map(|n| n as f64 * 2.25 - 20.0));
    let rows = (0..pids.len() as i64).map(Some).collect();
    table([
        ("age", Arc::new(Int64Array::from(column(90))) as ArrayRef),
        ("dob", Arc::new(days.collect::<Date32Array>())),
        ("sex", text(column(2), &|n| ["f", "m"][n as usize].to_owned())),
        ("zip", text(column(40), &|n| format!("{:05}", 2_130 + n * 7))),
        ("cost", Arc::new(costs.collect::<Float64Array>())),
        ("dx", text(column(4), &|n| ["flu", "gout, \"foot\"", "a\nb", "ü ☂"][n as usize].to_owned())),
        // Names each row, so that the kept ones are known.
        ("row", text(rows, &|n| format!("r{n}"))),
        ("pid", Arc::new(Int64Array::from(pids.clone()))),
    ])
}

/// The columns of a policy and what else it says.
struct Policy {
    head: String,
    columns: Vec<(&'static str, String)>,
}

impl Policy {
    fn random(random: &mut Random) -> Self {
        let mut head = format!(
            "k = {}\nsuppression_limit = {}\n",
            random.pick(&[2, 2, 3, 4]),
            random.pick(&["0", "0.05", "0.2", "0.5"])
        );
        let counts_individuals = random.once_in(2);
        if !counts_individuals {
            head += "rows_are_individuals = true\n";
        }
        head += match random.once_in(2) {
            true => "accept_homogeneity = [\"dx\"]\n",
            false => "[[require]]\nmodel = \"l_diversity\"\nl = 2\nsensitive = \"dx\"\n",
        };
        let hierarchies: [(&str, &[&str]); 5] = [
            ("age", &["range = [5, 10, 50]", "floor = [10, 30]", "bands = [[18, 40, 65], [40]]"]),
            ("dob", &["date = [\"month\", \"year\", \"decade\"]", "date = [\"year\"]"]),
            ("sex", &["prefix = [1]"]),
            ("zip", &["prefix = [4, 3]", "prefix = [2]"]),
            ("cost", &["floor = [5, 50]", "range = [25]"]),
        ];
        let first = random.below(hierarchies.len());
        let mut columns = Vec::new();
        for (at, (name, levels)) in hierarchies.into_iter().enumerate() {
            let is_quasi = at == first || random.once_in(3);
            let column = match is_quasi {
                true => format!("role = \"quasi\", hierarchy = {{ {} }}", random.pick(levels)),
                false => "role = \"identifier\"".to_owned(),
            };
            columns.push((name, column));
        }
        let allowed = if random.once_in(3) { "" } else { ", allow_unique = true" };
        columns.push(("dx", format!("role = \"sensitive\"{allowed}")));
        columns.push(("row", "role = \"insensitive\", allow_unique = true".to_owned()));
        let pid = if counts_individuals { "individual" } else { "identifier" };
        columns.push(("pid", format!("role = \"{pid}\"")));
        Self { head, columns }
    }

    /// The policy, each quasi-identifier at the level of a release if one is given.
    fn text(&self, levels: &BTreeMap<String, usize>) -> String {
        let columns = self.columns.iter().map(|(name, column)| {
            let level = levels.get(*name).map(|level| format!(", min_level = {level}, max_level = {level}"));
            format!("{name} = {{ {column}{} }}\n", level.unwrap_or_default())
        });
        format!("{}[columns]\n{}", self.head, columns.collect::<String>())
    }
}

/// Releases the input `name` of a place; the files of the release, and what is told of it.
fn released(place: &Place, name: &str, policy: &str) -> Result<(BTreeMap<String, Vec<u8>>, Released), Error> {
    let said = PolicySpec::parse(policy).unwrap();
    let input = Input::find(place.path(name).to_str().unwrap())?;
    let source = PolicySource { spec: &said, files: &BTreeMap::new() };
    let out = release::Place::beside(&place.path("out")).unwrap();
    let done = with_run(async |run| release(run, &input, &source, &out, false).await);
    let done = done.map(|told| (place.files("out"), told));
    for path in ["out", "out.private.json"] {
        let path = place.path(path);
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
    done
}

fn in_order(rows: &RecordBatch, order: &[u32]) -> RecordBatch {
    take_record_batch(rows, &UInt32Array::from(order.to_vec())).unwrap()
}

fn shuffled(rows: &RecordBatch, random: &mut Random) -> RecordBatch {
    let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last + 1));
    }
    in_order(rows, &order)
}

/// The rows with their texts in another type.
fn encoded(rows: &RecordBatch, text: &DataType) -> RecordBatch {
    let schema = rows.schema();
    let columns = schema.fields().iter().zip(rows.columns());
    table(columns.map(|(field, column)| match TEXTS.contains(&field.name().as_str()) {
        true => (field.name().as_str(), cast(column, text).unwrap()),
        false => (field.name().as_str(), Arc::clone(column)),
    }))
}

fn cells(rows: &RecordBatch) -> Vec<Vec<(String, Option<String>)>> {
    let schema = rows.schema();
    let names = schema.fields().iter().map(|field| field.name().clone());
    let columns: Vec<(String, Vec<String>)> = names.map(|name| (name.clone(), texts(rows, &name))).collect();
    let cell = |at: usize, row: usize| (!rows.column(at).is_null(row)).then(|| columns[at].1[row].clone());
    let line =
        |row| columns.iter().enumerate().map(|(at, (name, _))| (name.clone(), cell(at, row))).collect();
    (0..rows.num_rows()).map(line).collect()
}

fn csv(rows: &RecordBatch) -> String {
    let names: Vec<String> = rows.schema().fields().iter().map(|field| field.name().clone()).collect();
    let cell = |cell: &Option<String>| match cell {
        Some(cell) => format!("\"{}\"", cell.replace('"', "\"\"")),
        None => String::new(),
    };
    let lines = cells(rows);
    let lines =
        lines.iter().map(|line| line.iter().map(|(_, text)| cell(text)).collect::<Vec<_>>().join(","));
    names.join(",") + "\n" + &lines.map(|line| line + "\n").collect::<String>()
}

fn json_lines(rows: &RecordBatch) -> String {
    let cell = |(name, text): &(String, Option<String>)| {
        let text = match text {
            None => "null".to_owned(),
            Some(text) if ["age", "cost", "pid"].contains(&name.as_str()) => text.clone(),
            Some(text) => serde_json::to_string(text).unwrap(),
        };
        format!("\"{name}\":{text}")
    };
    let line = |line: &Vec<_>| format!("{{{}}}\n", line.iter().map(cell).collect::<Vec<_>>().join(","));
    cells(rows).iter().map(line).collect()
}

/// Writes the rows in another form; returns the name of the input.
fn another_form(place: &Place, rows: &RecordBatch, random: &mut Random) -> &'static str {
    let rows = &shuffled(rows, random);
    let small = || WriterProperties::builder().set_max_row_group_row_count(Some(7)).build();
    let dictionary = |keys, values| DataType::Dictionary(Box::new(keys), Box::new(values));
    match random.below(8) {
        0 => place.parquet_with("form.parquet", rows, small()),
        1 => {
            let (a, b) = (random.below(rows.num_rows()), random.below(rows.num_rows()));
            for (name, from, to) in
                [("b", 0, a.min(b)), ("a", a.min(b), a.max(b)), ("deep/c", a.max(b), rows.num_rows())]
            {
                place.parquet(&format!("lake/{name}.parquet"), &rows.slice(from, to - from));
            }
            return "lake";
        }
        2 => {
            let text = random.pick(&[0, 1, 2]);
            let text = [DataType::LargeUtf8, DataType::Utf8View, dictionary(DataType::Int32, DataType::Utf8)]
                [text]
                .clone();
            place.parquet_with("form.parquet", &encoded(rows, &text), small());
        }
        3 => {
            let marked = |name: &str| [(name.to_owned(), "x".to_owned())].into();
            let schema = rows.schema();
            let fields =
                schema.fields().iter().map(|field| field.as_ref().clone().with_metadata(marked("comment")));
            let schema = Schema::new(fields.collect::<Vec<_>>()).with_metadata(marked("pandas"));
            let marked = RecordBatch::try_new(Arc::new(schema), rows.columns().to_vec()).unwrap();
            place.parquet("form.parquet", &marked);
        }
        4 => {
            // A dictionary of the whole table, of which the slice uses a part.
            let more = arrow::compute::concat_batches(&rows.schema(), [rows, rows]).unwrap();
            let encoded = encoded(&more, &dictionary(DataType::UInt16, DataType::LargeUtf8));
            place.arrow_file("form.arrow", &encoded.slice(rows.num_rows(), rows.num_rows()));
            return "form.arrow";
        }
        5 => {
            place.arrow_stream("form.arrows", rows);
            return "form.arrows";
        }
        6 => {
            place.write("form.csv", csv(rows));
            return "form.csv";
        }
        _ => {
            place.write("form.jsonl", json_lines(rows));
            return "form.jsonl";
        }
    }
    "form.parquet"
}

/// What was compared.
#[derive(Default, Debug)]
struct Seen {
    refused: usize,
    forms: usize,
    kept_alone: usize,
}

fn case(seed: u64, seen: &mut Seen) {
    let random = &mut Random::new(seed);
    let (rows, policy) = (rows(random), Policy::random(random));
    let free = policy.text(&BTreeMap::new());
    let told = |what: &str| format!("seed {seed}, {what}, under\n{free}");
    let place = Place::new();
    place.parquet("in.parquet", &rows);
    let base = released(&place, "in.parquet", &free);
    let kind = base.as_ref().err().map(Error::kind);
    assert!(
        matches!(kind, None | Some(ErrorKind::Unmet | ErrorKind::Data | ErrorKind::Policy)),
        "{}: {:?}",
        told("the base"),
        base.err()
    );
    for _ in 0..2 {
        let place = Place::new();
        let form = another_form(&place, &rows, random);
        match (released(&place, form, &free), &base) {
            (Ok((found, _)), Ok((files, _))) => assert!(found == *files, "{}", told(form)),
            (Err(error), _) => assert_eq!(Some(error.kind()), kind, "{}: {error}", told(form)),
            (Ok(_), Err(error)) => panic!("{}: {error} before", told(form)),
        }
        seen.forms += 1;
    }
    let Ok((files, base)) = base else {
        seen.refused += 1;
        return;
    };
    if base.private.suppressed_rows == 0 {
        return;
    }
    let RecodingRecord::Levels(chosen) = &base.chosen else { panic!("{}: no levels", told("base")) };
    let levels: BTreeMap<String, usize> =
        chosen.iter().map(|chosen| (chosen.column.clone(), chosen.level)).collect();
    let pinned = policy.text(&levels);
    let whole =
        released(&place, "in.parquet", &pinned).unwrap_or_else(|error| panic!("{}: {error}", told("pinned")));
    place.write("kept/part.parquet", &files["part-00000.parquet"]);
    let kept: BTreeSet<String> = texts(&place.released("kept"), "row").into_iter().collect();
    let names = texts(&rows, "row");
    let order: Vec<u32> =
        (0..).zip(&names).filter(|(_, name)| kept.contains(*name)).map(|(at, _)| at).collect();
    assert_eq!(order.len() as u64, base.public.rows());
    place.parquet("kept.parquet", &in_order(&rows, &order));
    match released(&place, "kept.parquet", &pinned) {
        Ok((found, _)) => assert!(found == whole.0, "{}", told("kept rows alone")),
        // A guard may look at the whole input.
        Err(error) => {
            assert!(error.to_string().contains("allow_unique"), "{}: {error}", told("kept rows alone"))
        }
    }
    seen.kept_alone += 1;
}

#[test]
fn what_is_not_kept_leaves_no_trace() {
    let cases = std::env::var("KANON_FUZZ_CASES").map_or(16, |cases| cases.parse::<u64>().unwrap() / 10);
    let mut seen = Seen::default();
    for seed in 0..cases {
        case(seed, &mut seen);
        if seed % 1_000 == 999 {
            eprintln!("metamorphic: {} cases, {seen:?}", seed + 1);
        }
    }
    assert!(cases < 16 || seen.kept_alone >= 3 && seen.refused < seen.forms / 4, "{seen:?}");
}
