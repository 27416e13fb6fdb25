//! A small release to attack, and the tools of a clever forger: whatever a record says of a release is made
//! anew after a forgery, so that only a judgement of what is in it can refuse.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, OnceLock};

use arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, Float64Array, Int32Array, Int64Array, StringArray, UInt32Array,
};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use arrow::row::{RowConverter, SortField};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::metadata::KeyValue;
use datafusion::parquet::file::properties::{WriterProperties, WriterVersion};
use datafusion_kanon::internals::class::ClassSizes;
use datafusion_kanon::internals::release::publish::record::{
    FileRecord, LevelRecord, PrivateRecord, PublicRecord, RECORD, RecodingRecord,
};
use datafusion_kanon::internals::release::publish::write;
use datafusion_kanon::internals::release::risks;
use datafusion_kanon::internals::verify::as_is::UniqueTogether;
use datafusion_kanon::internals::verify::homogeneous::Homogeneous;
use siphasher::sip::SipHasher13;
use tempfile::TempDir;

/// The policy of the small release; every level is fixed, so that its classes are those of [`people`].
pub(crate) const POLICY: &str = r#"
k = 5
suppression_limit = 0.05
rows_are_individuals = true
accept_homogeneity = ["diagnosis"]

[columns]
ssn       = { role = "identifier" }
dob       = { role = "quasi", hierarchy = { date = ["month", "year", "decade"] }, min_level = 2, max_level = 2 }
zip       = { role = "quasi", hierarchy = { prefix = [4, 3, 2] }, min_level = 2, max_level = 2 }
age       = { role = "quasi", hierarchy = { range = [5, 10, 20] }, min_level = 2, max_level = 2 }
sex       = { role = "quasi", max_level = 0 }
marital   = { role = "quasi", hierarchy = { file = "marital.csv" }, min_level = 1, max_level = 1 }
diagnosis = { role = "sensitive" }
ward      = { role = "insensitive" }
stay      = { role = "insensitive" }
weight    = { role = "insensitive" }
notes     = { role = "text" }
"#;

/// The hierarchy file of [`POLICY`].
pub(crate) const MARITAL: &str =
    "marital,alone,any\nsingle,alone,*\nwidowed,alone,*\nmarried,not alone,*\npartner,not alone,*\n";

/// Classes that fail k = 5 hold so many rows together: numbers 1 and 2 of [`people`].
pub(crate) const SUPPRESSED: usize = 3 + 4;
/// The name of the release in a [`Lab`].
pub(crate) const OUT: &str = "out";
/// The one file of the release.
pub(crate) const PART: &str = "part-00000.parquet";

/// People in 27 classes at the levels of [`POLICY`]: two hold exactly 5 rows, one 3 and one 4, the
/// others 8 to 14. `times` multiplies the classes of 8 and more.
pub(crate) fn people(times: usize) -> RecordBatch {
    let mut random = Random(7);
    let (mut ssn, mut dob, mut zip, mut age, mut sex) = (vec![], vec![], vec![], vec![], vec![]);
    let (mut marital, mut diagnosis, mut ward, mut stay, mut weight) =
        (vec![], vec![], vec![], vec![], vec![]);
    for class in 0..27usize {
        let rows = match class {
            0 | 26 => 5,
            1 => 3,
            2 => 4,
            _ => (8 + class % 7) * times,
        };
        for _ in 0..rows {
            ssn.push(Some(format!("999-{:08}", ssn.len())));
            // 1960-01-01, 1970-01-01 and 1980-01-01, each with the year behind it.
            let year = [-3653, 0, 3652][class % 3];
            dob.push((class != 13).then(|| year + i32::try_from(random.below(365)).unwrap()));
            let digits = random.below(100);
            zip.push(
                [Some("021"), Some("100"), None][class / 3 % 3].map(|first| format!("{first}{digits:02}")),
            );
            age.push(Some(
                20 + 10 * i64::try_from(class % 4).unwrap() + i64::try_from(random.below(10)).unwrap(),
            ));
            sex.push([Some("F"), Some("M"), None][class / 9 % 3]);
            marital.push(Some(random.of(&[["single", "widowed"], ["married", "partner"]][class % 2])));
            diagnosis.push(random.of(&[
                Some("flu"),
                Some("asthma"),
                Some("gout"),
                Some("HIV"),
                Some("NULL"),
                None,
            ]));
            ward.push(Some(random.of(&["north", "south"])));
            stay.push(Some(i32::try_from(1 + random.below(3)).unwrap()));
            weight.push(random.of(&[Some(0.0), Some(-0.0), Some(f64::NAN), Some(61.5), None]));
        }
    }
    let notes = StringArray::from(vec![Some("called twice"); ssn.len()]);
    let columns: [(&str, ArrayRef); 11] = [
        ("ssn", Arc::new(StringArray::from(ssn))),
        ("dob", Arc::new(Date32Array::from(dob))),
        ("zip", Arc::new(StringArray::from(zip))),
        ("age", Arc::new(Int64Array::from(age))),
        ("sex", Arc::new(StringArray::from(sex))),
        ("marital", Arc::new(StringArray::from(marital))),
        ("diagnosis", Arc::new(StringArray::from(diagnosis))),
        ("ward", Arc::new(StringArray::from(ward))),
        ("stay", Arc::new(Int32Array::from(stay))),
        ("weight", Arc::new(Float64Array::from(weight))),
        ("notes", Arc::new(notes)),
    ];
    let people = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, values)| (name, values, true)));
    shuffled(&people.unwrap(), 1)
}

/// The rows in another order.
pub(crate) fn shuffled(rows: &RecordBatch, seed: u64) -> RecordBatch {
    let mut random = Random(seed);
    let mut order: Vec<(usize, u32)> =
        (0..rows.num_rows()).map(|row| (random.below(1 << 30), u32::try_from(row).unwrap())).collect();
    order.sort_unstable();
    picked(rows, &order.into_iter().map(|(_, row)| row).collect::<Vec<_>>())
}

/// Numbers that are the same in every run: splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// The program under test: cargo's, unless a run of the tests by hand names another one.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("CARGO_BIN_EXE_kanon")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_kanon")), PathBuf::from)
}

/// How a run ended and what it said.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The exit code; `None` for a signal.
    pub(crate) code: Option<i32>,
    /// Standard output and error.
    pub(crate) said: String,
}

impl Ran {
    pub(crate) fn new(output: Output) -> Self {
        let said = [output.stdout, output.stderr].concat();
        let ran = Self { code: output.status.code(), said: String::from_utf8(said).unwrap() };
        assert!(!["panicked", "internal error at"].iter().any(|words| ran.said.contains(words)), "{ran:?}");
        assert!(!ran.said.contains("999-"), "a cell is told: {ran:?}");
        ran
    }

    /// The run, which must have ended with `code` and said `part`.
    #[track_caller]
    pub(crate) fn exit(self, code: i32, part: &str) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.said.contains(part), "no `{part}` in {self:?}");
        self
    }
}

/// A folder with `people.parquet`, `policy.toml`, `marital.csv` and, once released, `out` and
/// `out.private.json`.
pub(crate) struct Lab(TempDir);

impl Lab {
    /// The input and the policy.
    pub(crate) fn new(people: &RecordBatch) -> Self {
        let lab = Self(tempfile::tempdir().unwrap());
        write_parquet(&lab.path("people.parquet"), people, WriterProperties::default());
        fs::write(lab.path("policy.toml"), POLICY).unwrap();
        fs::write(lab.path("marital.csv"), MARITAL).unwrap();
        lab
    }

    /// The small release, whole and good.
    pub(crate) fn released() -> Self {
        static MADE_ONCE: OnceLock<BTreeMap<PathBuf, Vec<u8>>> = OnceLock::new();
        let files = MADE_ONCE.get_or_init(|| {
            let lab = Self::new(&people(1));
            lab.release("policy.toml", OUT).exit(0, "k_anonymity 5 required, 5 reached");
            lab.files()
        });
        let lab = Self(tempfile::tempdir().unwrap());
        lab.restore(files);
        lab
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The release.
    pub(crate) fn out(&self) -> PathBuf {
        self.path(OUT)
    }

    /// The private record of the release.
    pub(crate) fn private(&self) -> PathBuf {
        self.path(OUT).with_extension("private.json")
    }

    /// `kanon` with its arguments, in this folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).args(["--threads", "2"]).current_dir(self.0.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs `kanon` to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::new(self.command(arguments).output().unwrap())
    }

    /// `kanon release` of the people.
    pub(crate) fn release(&self, policy: &str, out: &str) -> Ran {
        self.run(&["release", "people.parquet", "--policy", policy, "--to", out, "--overwrite"])
    }

    /// `kanon verify` in its three forms: the release by itself, with the input, with input and policy.
    pub(crate) fn verify(&self) -> [Ran; 3] {
        let input = ["verify", OUT, "--input", "people.parquet"];
        let all = ["verify", OUT, "--input", "people.parquet", "--policy", "policy.toml"];
        [self.run(&["verify", OUT]), self.run(&input), self.run(&all)]
    }

    /// All files with their content; folders end in `/`.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.0.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(self.0.path()).unwrap().to_path_buf();
                if path.is_dir() {
                    files.insert(name.join(""), Vec::new());
                    folders.push(path);
                } else {
                    files.insert(name, fs::read(path).unwrap());
                }
            }
        }
        files
    }

    /// The names at the top of the folder.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Makes the folder hold what [`Lab::files`] found.
    pub(crate) fn restore(&self, files: &BTreeMap<PathBuf, Vec<u8>>) {
        for name in self.names() {
            let path = self.path(&name);
            if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
        }
        for (name, bytes) in files {
            let path = self.0.path().join(name);
            if name.as_os_str().to_str().unwrap().ends_with('/') {
                fs::create_dir_all(path).unwrap();
            } else {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
        }
    }
}

/// All rows of a Parquet file; the schema is without the footer's keys.
pub(crate) fn read_parquet(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = Arc::new(Schema::new(reader.schema().fields().clone()));
    let batches: Vec<RecordBatch> = reader
        .build()
        .unwrap()
        .map(|batch| RecordBatch::try_new(Arc::clone(&schema), batch.unwrap().columns().to_vec()).unwrap())
        .collect();
    concat_batches(&schema, &batches).unwrap()
}

/// Writes a Parquet file.
pub(crate) fn write_parquet(path: &Path, rows: &RecordBatch, properties: WriterProperties) {
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), rows.schema(), Some(properties)).unwrap();
    writer.write(rows).unwrap();
    writer.close().unwrap();
}

/// The settings of kanon's writer.
pub(crate) fn as_kanon_writes(footer: &[(&str, &str)], created_by: &str) -> WriterProperties {
    let footer = footer.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned()));
    WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(created_by.to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap()))
        .set_max_row_group_row_count(Some(262_144))
        .set_key_value_metadata(Some(footer.collect()))
        .build()
}

/// What kanon writes into the footer of the small release.
pub(crate) const FOOTER: [(&str, &str); 1] = [("kanon.models", "k_anonymity(5)")];

/// The rows as kanon orders them: by class, then by a hash of what else is released.
pub(crate) fn ordered(rows: &RecordBatch, record: &PublicRecord) -> RecordBatch {
    let is_quasi = |name: &str| record.columns().any(|c| c.name == name && c.role == "quasi");
    let in_rows = |quasi: bool| -> Vec<Vec<u8>> {
        let schema = rows.schema();
        let columns = schema.fields().iter().zip(rows.columns());
        let columns: Vec<ArrayRef> = columns
            .filter(|(f, _)| is_quasi(f.name()) == quasi)
            .map(|(_, values)| Arc::clone(values))
            .collect();
        let fields = columns.iter().map(|values| SortField::new(values.data_type().clone())).collect();
        let keys = RowConverter::new(fields).unwrap().convert_columns(&columns).unwrap();
        keys.iter().map(|key| key.data().to_vec()).collect()
    };
    let hash =
        |row: &Vec<u8>| SipHasher13::new_with_keys(0x6b61_6e6f_6e2d_6f72, 0x6465_722d_6f66_2d72).hash(row);
    let (labels, others) = (in_rows(true), in_rows(false));
    let mut order: Vec<u32> = (0..u32::try_from(rows.num_rows()).unwrap()).collect();
    // Without other columns there are no hashes.
    order.sort_by_key(|row| (&labels[*row as usize], others.get(*row as usize).map(hash)));
    picked(rows, &order)
}

/// Writes `rows` in place of the release's, ordered, and makes the record say so.
pub(crate) fn forge(lab: &Lab, rows: &RecordBatch) {
    let rows = &ordered(rows, &record(lab));
    write_parquet(&lab.out().join(PART), rows, as_kanon_writes(&FOOTER, write::CREATED_BY));
    reseal(lab, |_| {});
}

/// The levels of a record.
pub(crate) fn levels(record: &mut PublicRecord) -> &mut Vec<LevelRecord> {
    match &mut record.recoding {
        RecodingRecord::Levels(levels) => levels,
        _ => panic!("the release has no levels"),
    }
}

/// The public record as it lies there.
pub(crate) fn record(lab: &Lab) -> PublicRecord {
    serde_json::from_slice(&fs::read(lab.out().join(RECORD)).unwrap()).unwrap()
}

/// Makes the record of what the folder holds now, edits it, gives it its digest, and binds the
/// private record to it.
pub(crate) fn reseal(lab: &Lab, edit: impl FnOnce(&mut PublicRecord)) {
    let mut record = record(lab);
    let sizes: Vec<RecordBatch> = parts(lab).iter().map(|part| read_parquet(&lab.out().join(part))).collect();
    record.tables[0].files = parts(lab)
        .iter()
        .zip(&sizes)
        .map(|(part, rows)| FileRecord::of(&lab.out(), part, rows.num_rows() as u64).unwrap())
        .collect();
    let all = concat_batches(&sizes[0].schema(), &sizes).unwrap();
    record.homogeneous = homogeneous(&all, &record);
    record.unique = unique_together(&all, &record);
    let sizes = class_sizes(&all, &record);
    record.tables[0].rows = sizes.individuals();
    record.classes = sizes.classes();
    record.risk = risks(&sizes).unwrap();
    record.models[0].reached = Some(u32::try_from(sizes.min().unwrap_or(0)).unwrap().into());
    edit(&mut record);
    seal(lab, record);
}

/// Writes a record with its digest, and binds the private record to it where there is one.
pub(crate) fn seal(lab: &Lab, record: PublicRecord) {
    let record = record.sealed().unwrap();
    fs::write(lab.out().join(RECORD), record.to_json().unwrap()).unwrap();
    let path = lab.private();
    if let Ok(text) = fs::read(&path) {
        let mut private: PrivateRecord = serde_json::from_slice(&text).unwrap();
        private.release = record.digest;
        fs::write(path, private.to_json().unwrap()).unwrap();
    }
}

/// The rows that are unique on all columns, and the columns that do it: those with the most values first.
pub(crate) fn unique_together(rows: &RecordBatch, record: &PublicRecord) -> UniqueTogether {
    // As rows of bytes, which tell one NaN from another; a forged schema may have lost a column.
    let cells = record.columns().map(|column| {
        let column = rows.column_by_name(&column.name)?;
        let field = SortField::new(column.data_type().clone());
        let bytes = RowConverter::new(vec![field]).unwrap().convert_columns(std::slice::from_ref(column));
        Some((Arc::clone(column), bytes.unwrap()))
    });
    let cells: Vec<_> = cells.collect();
    let cell = |column: usize, row: usize| {
        let (column, bytes) = cells[column].as_ref()?;
        column.is_valid(row).then(|| bytes.row(row).data().to_vec())
    };
    let unique = |columns: &[usize]| {
        let mut seen: HashMap<Vec<Option<Vec<u8>>>, u64> = HashMap::new();
        for row in 0..rows.num_rows() {
            *seen.entry(columns.iter().map(|column| cell(*column, row)).collect()).or_default() += 1;
        }
        seen.values().filter(|rows| **rows == 1).count() as u64
    };
    let columns = &record.tables[0].columns;
    let (quasi, mut others): (Vec<usize>, Vec<usize>) =
        (0..columns.len()).partition(|column| columns[*column].role == "quasi");
    let all = |others: &[usize]| unique(&[quasi.as_slice(), others].concat());
    let of = rows.num_rows() as u64;
    let mut found = UniqueTogether { count: all(&others), of, columns: Vec::new() };
    if found.count * 10 > of {
        let values = |column: &usize| {
            (0..rows.num_rows()).filter_map(|row| cell(*column, row)).collect::<HashSet<_>>()
        };
        others.sort_by_key(|column| std::cmp::Reverse(values(column).len()));
        let enough = (1..=others.len()).find(|first| all(&others[..*first]) * 10 > of).unwrap();
        found.columns = others[..enough].iter().map(|column| columns[*column].name.clone()).collect();
    }
    found
}

/// The names of the release's Parquet files.
fn parts(lab: &Lab) -> Vec<String> {
    let entries = fs::read_dir(lab.out()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.starts_with("part-"));
    names.sort();
    names
}

fn class_sizes(rows: &RecordBatch, record: &PublicRecord) -> ClassSizes {
    let mut sizes: HashMap<usize, u64> = HashMap::new();
    for class in classes(rows, record) {
        *sizes.entry(class).or_default() += 1;
    }
    sizes.into_values().collect()
}

/// For each sensitive column, which holds texts, the classes whose rows all have one.
fn homogeneous(rows: &RecordBatch, record: &PublicRecord) -> Vec<Homogeneous> {
    let class = classes(rows, record);
    let sensitive = record.columns().filter(|column| column.role == "sensitive");
    let of_column = |column: &String| {
        let mut known: HashMap<usize, Vec<Option<String>>> = HashMap::new();
        class.iter().zip(texts(rows, column)).for_each(|(class, text)| {
            known.entry(*class).or_default().push(text);
        });
        let shared =
            known.into_values().filter(|all| all[0].is_some() && all.iter().all(|one| *one == all[0]));
        let sizes: Vec<u64> = shared.map(|all| all.len() as u64).collect();
        Homogeneous { column: column.clone(), classes: sizes.len() as u64, individuals: sizes.iter().sum() }
    };
    sensitive.map(|column| of_column(&column.name)).collect()
}

/// The class of every row, counted from the first row on.
pub(crate) fn classes(rows: &RecordBatch, record: &PublicRecord) -> Vec<usize> {
    let quasi: Vec<ArrayRef> = record
        .columns()
        .filter(|column| column.role == "quasi")
        .filter_map(|column| rows.column_by_name(&column.name).cloned())
        .collect();
    let fields = quasi.iter().map(|values| SortField::new(values.data_type().clone())).collect();
    let keys = RowConverter::new(fields).unwrap().convert_columns(&quasi).unwrap();
    let mut numbers = HashMap::new();
    keys.iter()
        .map(|key| {
            let next = numbers.len();
            *numbers.entry(key.owned()).or_insert(next)
        })
        .collect()
}

/// Some of the rows, in that order.
pub(crate) fn picked(rows: &RecordBatch, which: &[u32]) -> RecordBatch {
    take_record_batch(rows, &UInt32Array::from(which.to_vec())).unwrap()
}

/// The rows with other values in one column.
pub(crate) fn with(rows: &RecordBatch, column: &str, values: ArrayRef) -> RecordBatch {
    let mut columns = rows.columns().to_vec();
    columns[rows.schema().index_of(column).unwrap()] = values;
    RecordBatch::try_new(rows.schema(), columns).unwrap()
}

/// The cells of a text column.
pub(crate) fn texts(rows: &RecordBatch, column: &str) -> Vec<Option<String>> {
    let values = rows.column_by_name(column).unwrap().as_string::<i32>();
    values.iter().map(|text| text.map(str::to_owned)).collect()
}

/// The rows with an edited text column.
pub(crate) fn edited(
    rows: &RecordBatch,
    column: &str,
    edit: impl FnOnce(&mut Vec<Option<String>>),
) -> RecordBatch {
    let mut cells = texts(rows, column);
    edit(&mut cells);
    with(rows, column, Arc::new(StringArray::from(cells)))
}
