//! Tables of other programs as sources: they give what their files give, and rows that change are refused.

use std::collections::HashMap;
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{ArrayRef, Int64Array, ListBuilder, RecordBatch, StringArray, StringDictionaryBuilder};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::arrow::csv::Writer;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{MemTable, Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::error::Result as EngineResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use datafusion_kanon::internals::answer::check::check;
use datafusion_kanon::internals::answer::risk::risk;
use datafusion_kanon::internals::answer::search::search;
use datafusion_kanon::internals::engine::{Resources, Run, map_error};
use datafusion_kanon::internals::error::{Error, ErrorKind};
use datafusion_kanon::internals::input::{Input, PolicySource, Source, open};
use datafusion_kanon::internals::policy::{Folder, PolicySpec};
use datafusion_kanon::internals::progress::{CancelToken, Phase, Progress};
use datafusion_kanon::internals::release::publish::record::{PrivateRecord, PublicRecord};
use datafusion_kanon::internals::release::{
    LocalRelease, Needed, Place, Released, anonymize, check_release, release, release_again,
};
use futures::StreamExt;
use serde_json::{Value, to_value};

const POLICY: &str = r#"
k = 3
suppression_limit = 0.2
rows_are_individuals = true
accept_homogeneity = ["diagnosis"]
others = "drop"

[columns]
age       = { role = "quasi", hierarchy = { range = [5, 10, 20] } }
sex       = { role = "quasi" }
zip       = { role = "quasi", hierarchy = { prefix = [4, 3, 2] } }
ward      = { role = "insensitive" }
diagnosis = { role = "sensitive" }
"#;

/// People with these numbers, under a schema with a column that is never NULL and metadata that must stay behind.
fn people(numbers: Range<i64>) -> RecordBatch {
    let texts = |text: fn(i64) -> String| -> ArrayRef {
        Arc::new(numbers.clone().map(|number| Some(text(number))).collect::<StringArray>())
    };
    let ages: Int64Array =
        numbers.clone().map(|number| (number % 17 != 0).then_some(20 + number * 7 % 60)).collect();
    let columns: Vec<ArrayRef> = vec![
        texts(|number| format!("person {number}")),
        Arc::new(ages),
        texts(|number| ["F", "M"][usize::from(number % 3 == 0)].to_owned()),
        texts(|number| format!("02{:03}", number * 13 % 40)),
        texts(|number| ["north", "south"][usize::from(number % 4 == 1)].to_owned()),
        texts(|number| ["flu", "gout", "asthma"][usize::try_from(number % 3).unwrap()].to_owned()),
    ];
    let field = |name: &str, data_type, nullable| {
        let metadata = HashMap::from([("note".to_owned(), "of the provider".to_owned())]);
        Field::new(name, data_type, nullable).with_metadata(metadata)
    };
    let mut fields = vec![field("name", DataType::Utf8, true), field("age", DataType::Int64, true)];
    fields.push(field("sex", DataType::Utf8, false));
    fields.extend(["zip", "ward", "diagnosis"].map(|name| field(name, DataType::Utf8, true)));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

/// A table of two partitions.
fn table(rows: &RecordBatch) -> Arc<MemTable> {
    let half = rows.num_rows() / 2;
    let halves = [rows.slice(half, rows.num_rows() - half), rows.slice(0, half)];
    Arc::new(MemTable::try_new(rows.schema(), halves.map(|rows| vec![rows]).to_vec()).unwrap())
}

fn parquet(path: &Path, rows: &RecordBatch) -> Input {
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), rows.schema(), None).unwrap();
    writer.write(rows).unwrap();
    writer.close().unwrap();
    Input::find(path.to_str().unwrap()).unwrap()
}

fn csv(path: &Path, rows: &RecordBatch) -> Input {
    Writer::new(File::create(path).unwrap()).write(rows).unwrap();
    Input::find(path.to_str().unwrap()).unwrap()
}

fn one_thread() -> Run {
    Run { resources: Resources { threads: 1, memory: 1 << 28, spill: None }, ..Run::default() }
}

async fn released(run: &Run, input: impl Into<Source>, out: &Path) -> Result<Released, Error> {
    let spec = PolicySpec::parse(POLICY).unwrap();
    let source = PolicySource { spec: &spec, files: &Folder(".".into()) };
    release(run, input, &source, &Place::beside(out).unwrap(), false).await
}

fn read(place: &Place) -> LocalRelease {
    LocalRelease::read(place, Needed::All, &CancelToken::default()).unwrap()
}

/// The rows of a release.
fn rows_of(out: &Path, public: &PublicRecord) -> RecordBatch {
    let batches = public.files().flat_map(|file| {
        let file = File::open(out.join(&file.name)).unwrap();
        ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().map(Result::unwrap)
    });
    let batches: Vec<RecordBatch> = batches.collect();
    concat_batches(&batches[0].schema(), &batches).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_released_as_its_file_is() {
    let (folder, rows, run) = (tempfile::tempdir().unwrap(), people(0..200), one_thread());
    let place = |name: &str| folder.path().join(name);
    let file = parquet(&place("in.parquet"), &rows);
    let session = SessionContext::new();
    let path = place("in.parquet").display().to_string();
    session.register_parquet("listed", &path, ParquetReadOptions::new()).await.unwrap();
    session.register_table("in_memory", table(&rows)).unwrap();
    let in_memory: Arc<dyn TableProvider> = table(&rows);
    let view = session.sql("SELECT * FROM in_memory WHERE diagnosis IS NOT NULL").await.unwrap().into_view();
    let listed = session.table_provider("listed").await.unwrap();
    let of_file = released(&run, &file, &place("of_file")).await.unwrap();
    let of_csv = released(&run, csv(&place("in.csv"), &rows), &place("of_csv")).await.unwrap();
    assert_eq!(of_csv.public, of_file.public);
    assert!(of_file.after.min() >= Some(3) && of_file.public.rows() >= 160);

    for (name, provider) in [("memory", in_memory), ("view", view), ("listed", listed)] {
        let source = Source::table(name, provider);
        let out = place(&format!("of_{name}"));
        let of_table = released(&run, &source, &out).await.unwrap();
        assert_eq!(of_table.public, of_file.public, "{name}");
        assert_eq!(rows_of(&out, &of_table.public), rows_of(&place("of_file"), &of_file.public), "{name}");
        let PrivateRecord { input, files, digest_key, .. } = of_table.private.clone();
        assert_eq!((input.as_str(), files.len(), of_file.private.files.len()), (name, 0, 1));
        let named = PrivateRecord { input, files, digest_key, ..of_file.private.clone() };
        assert!(named == of_table.private, "{name}: the private record holds other facts");

        let at = Place::beside(&out).unwrap();
        let alone = check_release(&run, &read(&at), None, None).await.unwrap();
        assert!(!alone.with_input);
        for input in
            [&source, &(&file).into(), &Input::find(place("in.csv").to_str().unwrap()).unwrap().into()]
        {
            assert!(check_release(&run, &read(&at), Some(input), None).await.unwrap().with_input);
        }
        let other = Source::table(name, table(&people(0..199)));
        let refused = check_release(&run, &read(&at), Some(&other), None).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unmet);

        let again = Place::beside(&place(&format!("again_{name}"))).unwrap();
        let again = release_again(&run, &source, &of_file.private, None, &again, false).await.unwrap();
        assert_eq!(again.public, of_file.public, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_judged_as_its_file_is() {
    let (folder, rows, run) = (tempfile::tempdir().unwrap(), people(0..200), one_thread());
    let spec = PolicySpec::parse(POLICY).unwrap();
    let mut answers: Vec<[Value; 3]> = Vec::new();
    let file = parquet(&folder.path().join("in.parquet"), &rows);
    for source in [file.into(), Source::table("people", table(&rows))] {
        let loaded =
            open(&run, source, &PolicySource { spec: &spec, files: &Folder(".".into()) }).await.unwrap();
        answers.push([
            to_value(check(&run, &loaded).await.unwrap()).unwrap(),
            to_value(risk(&run, &loaded).await.unwrap()).unwrap(),
            to_value(search(&run, &loaded, 3).await.unwrap()).unwrap(),
        ]);
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[1][0]["rows"], 200);
    assert_eq!(answers[1][2]["best"].as_array().unwrap().len(), 3);
}

/// A table that has other rows from one of its scans on.
#[derive(Debug)]
struct Changing {
    before: Arc<MemTable>,
    after: Arc<MemTable>,
    /// How many scans give the rows before.
    lasts: usize,
    scans: AtomicUsize,
}

impl Changing {
    fn new(before: &RecordBatch, after: &RecordBatch, lasts: usize) -> Arc<Self> {
        Arc::new(Self { before: table(before), after: table(after), lasts, scans: AtomicUsize::new(0) })
    }

    fn scans(&self) -> usize {
        self.scans.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl TableProvider for Changing {
    fn schema(&self) -> SchemaRef {
        self.before.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let is_before = self.scans.fetch_add(1, Ordering::SeqCst) < self.lasts;
        let now = if is_before { &self.before } else { &self.after };
        now.scan(session, projection, filters, limit).await
    }
}

/// Does something when a phase begins.
struct At<F>(Phase, F);

impl<F: Fn() + Send + Sync> Progress for At<F> {
    fn begin(&self, phase: Phase, _total: u64) {
        if phase == self.0 {
            (self.1)();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_changes_is_refused() {
    let rows = people(0..200);
    let mut columns = rows.columns().to_vec();
    columns[5] = Arc::clone(people(1..201).column(5));
    let others = [
        ("a row more", people(0..201)),
        ("a row less", people(0..199)),
        ("other cells", RecordBatch::try_new(rows.schema(), columns).unwrap()),
    ];
    for (what, other) in others {
        let folder = tempfile::tempdir().unwrap();
        let changing = Changing::new(&rows, &other, 1);
        let source = Source::table("people", Arc::<Changing>::clone(&changing));
        let refused = released(&one_thread(), &source, &folder.path().join("out")).await.unwrap_err();
        let text = refused.to_string();
        assert_eq!(refused.kind(), ErrorKind::Unmet, "{what}: {text}");
        assert!(!text.contains("person"), "{what}: {text}");
        assert_eq!(changing.scans(), 2, "{what}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reading_scans_a_table_once() {
    let (folder, run, rows, other) =
        (tempfile::tempdir().unwrap(), one_thread(), people(0..200), people(300..700));
    let spec = PolicySpec::parse(POLICY).unwrap();
    let policy = PolicySource { spec: &spec, files: &Folder(".".into()) };
    let mut releases = Vec::new();
    for lasts in [2, usize::MAX] {
        let changing = Changing::new(&rows, &other, lasts);
        let source = Source::table("people", Arc::<Changing>::clone(&changing));
        let place = Place::beside(&folder.path().join(format!("out{lasts}"))).unwrap();
        releases.push(release(&run, &source, &policy, &place, false).await.unwrap().public);
        assert_eq!(changing.scans(), 2);
    }
    assert_eq!(releases[0], releases[1]);

    let changing = Changing::new(&rows, &other, 1);
    let source = Source::table("people", Arc::<Changing>::clone(&changing));
    let loaded = open(&run, &source, &policy).await.unwrap();
    assert_eq!(check(&run, &loaded).await.unwrap().rows, 200);
    assert_eq!(risk(&run, &loaded).await.unwrap().rows, 200);
    assert_eq!(search(&run, &loaded, 1).await.unwrap().best.len(), 1);
    assert_eq!(changing.scans(), 1);
}

/// The rows in many partitions and in batches that have dictionaries of their own, beside columns that no release can have.
fn odd(rows: &RecordBatch) -> Arc<MemTable> {
    let text = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let nested = DataType::List(Arc::new(Field::new_list_field(text.clone(), true)));
    let mut fields: Vec<Field> = rows.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    for (name, data_type) in [("sex", &text), ("diagnosis", &text)] {
        let at = rows.schema().index_of(name).unwrap();
        fields[at] = fields[at].clone().with_data_type(data_type.clone());
    }
    fields.push(Field::new("notes", nested, true));
    let schema = Arc::new(Schema::new(fields));
    let batch = |at: usize| {
        let rows = rows.slice(at * 5, 5);
        let mut columns = rows.columns().to_vec();
        let mut notes = ListBuilder::new(StringDictionaryBuilder::<Int32Type>::new());
        for row in 0..5 {
            notes.append_value((0..row).map(|note| Some(format!("note {at} {note}"))));
        }
        columns.push(Arc::new(notes.finish()));
        let columns = columns
            .iter()
            .zip(schema.fields())
            .map(|(column, field)| cast(column, field.data_type()).unwrap());
        RecordBatch::try_new(Arc::clone(&schema), columns.collect()).unwrap()
    };
    let partitions = (0..rows.num_rows() / 10).map(|at| vec![batch(2 * at), batch(2 * at + 1)]).collect();
    Arc::new(MemTable::try_new(Arc::clone(&schema), partitions).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_without_rows_is_refused() {
    let (folder, none) = (tempfile::tempdir().unwrap(), people(0..0));
    for partitions in [vec![vec![]], vec![vec![none.clone()], vec![]]] {
        let source = Source::table("people", Arc::new(MemTable::try_new(none.schema(), partitions).unwrap()));
        let refused = released(&one_thread(), &source, &folder.path().join("out")).await.unwrap_err();
        assert_eq!((refused.kind(), refused.code()), (ErrorKind::Data, "empty_input"), "{refused}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

/// A stream of small batches whose columns have changed places since the schema.
#[derive(Debug)]
struct Swapped(SchemaRef, RecordBatch);

impl PartitionStream for Swapped {
    fn schema(&self) -> &SchemaRef {
        &self.0
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batches: Vec<EngineResult<RecordBatch>> =
            (0..self.1.num_rows()).map(|at| Ok(self.1.slice(at, 1))).collect();
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.0), futures::stream::iter(batches)))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn small_batches_of_other_names_are_refused() {
    let (folder, rows) = (tempfile::tempdir().unwrap(), people(0..200));
    let swapped = rows.project(&[0, 1, 2, 3, 5, 4]).unwrap();
    for partitions in [1, 3] {
        let part = || Arc::new(Swapped(rows.schema(), swapped.clone())) as Arc<dyn PartitionStream>;
        let parts = (0..partitions).map(|_| part()).collect();
        let source =
            Source::table("people", Arc::new(StreamingTable::try_new(rows.schema(), parts).unwrap()));
        let refused = released(&one_thread(), &source, &folder.path().join("out")).await.unwrap_err();
        assert!(refused.to_string().contains("columns of other names"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dictionaries_and_nested_columns_are_read() {
    let (folder, rows) = (tempfile::tempdir().unwrap(), people(0..200));
    let (source, out) = (Source::table("people", table(&rows)), folder.path().join("plain"));
    let plain = released(&one_thread(), source, &out).await.unwrap();
    for threads in [1, 3] {
        let run = Run { resources: Resources { threads, memory: 1 << 28, spill: None }, ..Run::default() };
        let source = Source::table("people", odd(&rows));
        let odd = released(&run, &source, &folder.path().join(format!("odd{threads}"))).await.unwrap();
        assert_eq!(odd.public.tables, plain.public.tables, "{threads} threads");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_has_the_rows_and_the_record_of_a_release() {
    let (folder, rows, run) = (tempfile::tempdir().unwrap(), people(0..200), one_thread());
    let out = folder.path().join("out");
    let source = Source::table("people", table(&rows));
    let released = released(&run, &source, &out).await.unwrap();
    let spec = PolicySpec::parse(POLICY).unwrap();
    let policy = PolicySource { spec: &spec, files: &Folder(".".into()) };
    let streamed = anonymize(&run, &source, &policy).await.unwrap();

    let mut tables = released.public.tables.clone();
    tables[0].files.clear();
    let expected = PublicRecord { tables, ..released.public.clone() }.sealed().unwrap();
    assert_eq!(streamed.public, expected);
    assert_eq!((streamed.before, streamed.after), (released.before, released.after));
    assert_eq!((streamed.costs, streamed.remarks), (released.costs, released.remarks));
    assert_eq!((streamed.doubts, streamed.warnings), (released.doubts, released.warnings));
    let schema = streamed.rows.schema();
    assert!(schema.fields().iter().all(|field| field.metadata().is_empty()));
    let batches: Vec<RecordBatch> = streamed.rows.map(Result::unwrap).collect().await;
    let streamed = concat_batches(&schema, &batches).unwrap();
    let written = rows_of(&out, &released.public);
    assert_eq!(streamed.num_rows() as u64, released.public.rows());
    assert_eq!(streamed.columns(), written.columns());

    let anatomy = "k = 3\nmethod = \"anatomy\"\nrows_are_individuals = true\nothers = \"drop\"\n[[require]]\nmodel = \
                   \"l_diversity\"\nl = 2\nsensitive = \"diagnosis\"\n[columns]\nage = { role = \"quasi\" }\ndiagnosis = { role \
                   = \"sensitive\" }\n";
    let spec = PolicySpec::parse(anatomy).unwrap();
    let policy = PolicySource { spec: &spec, files: &Folder(".".into()) };
    let refused = anonymize(&run, &source, &policy).await.unwrap_err();
    assert!(refused.to_string().contains("`anatomy` makes two tables"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_run_gives_no_row() {
    let (folder, source) = (tempfile::tempdir().unwrap(), Source::table("people", table(&people(0..200))));
    let spec = PolicySpec::parse(POLICY).unwrap();
    let policy = PolicySource { spec: &spec, files: &Folder(".".into()) };
    for phase in [Phase::Profile, Phase::Search, Phase::Write, Phase::Verify] {
        let stop = CancelToken::default();
        let token = stop.clone();
        let run = Run { stop, progress: Arc::new(At(phase, move || token.cancel())), ..one_thread() };
        let stopped = released(&run, &source, &folder.path().join("out")).await.unwrap_err();
        assert_eq!(stopped.kind(), ErrorKind::Interrupted, "{}", phase.name());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{}", phase.name());
        let run = Run { stop: CancelToken::default(), ..run };
        run.stop.cancel();
        let stopped = anonymize(&run, &source, &policy).await.unwrap_err();
        assert_eq!(stopped.kind(), ErrorKind::Interrupted, "{}", phase.name());
    }
    let run = one_thread();
    let mut streamed = anonymize(&run, &source, &policy).await.unwrap();
    run.stop.cancel();
    let stopped = streamed.rows.next().await.unwrap().unwrap_err();
    assert_eq!(map_error(&stopped, "reading").kind(), ErrorKind::Interrupted);
}

/// Returns a future that any runtime takes.
fn sent<T: Future + Send + 'static>(task: T) -> T {
    task
}

#[test]
fn futures_are_sent_and_need_one_thread() {
    let folder = tempfile::tempdir().unwrap();
    let (out, source) = (folder.path().join("out"), Source::table("people", table(&people(0..200))));
    let (run, spec) = (one_thread(), PolicySpec::parse(POLICY).unwrap());
    let task = sent(async move {
        let files = Folder(".".into());
        let policy = PolicySource { spec: &spec, files: &files };
        let place = Place::beside(&out).unwrap();
        let loaded = open(&run, &source, &policy).await.unwrap();
        assert!(!check(&run, &loaded).await.unwrap().models[0].holds);
        assert_eq!(risk(&run, &loaded).await.unwrap().rows, 200);
        assert_eq!(search(&run, &loaded, 1).await.unwrap().best.len(), 1);
        let released = release(&run, &source, &policy, &place, false).await.unwrap();
        let checked = check_release(&run, &read(&place), Some(&source), None).await.unwrap();
        assert_eq!(checked.public.to_json().unwrap(), released.public.to_json().unwrap());
        let again = Place::beside(&out.with_file_name("again")).unwrap();
        release_again(&run, &source, &released.private, None, &again, false).await.unwrap();
        let streamed = anonymize(&run, &source, &policy).await.unwrap();
        let rows = streamed.rows.fold(0, |rows, batch| async move { rows + batch.unwrap().num_rows() }).await;
        assert_eq!(rows as u64, released.public.rows());
        rows
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let rows = runtime.block_on(async { tokio::spawn(task).await.unwrap() });
    assert!(rows >= 160);
}
