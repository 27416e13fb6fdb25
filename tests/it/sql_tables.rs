//! Table functions: what a query sees of them, and what `anonymize` lets through.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{TableFunction, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::displayable;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use futures::StreamExt;
use tokio::sync::watch;

use crate::command::{Place, table};
use crate::house::root;

fn session() -> SessionContext {
    let session = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(3));
    datafusion_kanon::internals::sql::register_all(&session).unwrap();
    session
}

async fn with_files() -> SessionContext {
    let session = session();
    session.sql("SET kanon.allow_files = true").await.unwrap();
    session
}

async fn rows(session: &SessionContext, sql: &str) -> Result<Vec<Vec<String>>, String> {
    let answer = session.sql(sql).await.map_err(|e| e.strip_backtrace())?;
    Ok(cells(&answer.collect().await.map_err(|e| e.strip_backtrace())?))
}

fn cells(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let rows = |batch: &RecordBatch| {
        let columns: Vec<_> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        (0..batch.num_rows())
            .map(|row| columns.iter().map(|column| column.value(row).to_string()).collect())
            .collect::<Vec<Vec<String>>>()
    };
    batches.iter().flat_map(rows).collect()
}

fn sorted(mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    rows.sort();
    rows
}

/// Ages and ZIP codes of 60 people.
fn people() -> RecordBatch {
    let ages = (0..60).map(|n| 20 + (n * 7) % 40);
    let zips: Vec<String> = (0..60).map(|n| format!("021{:02}", (n * 3) % 8)).collect();
    let flu: Vec<&str> = (0..60).map(|n| ["flu", "gout", "asthma"][n % 3]).collect();
    table([
        ("age", Arc::new(ages.collect::<Int64Array>()) as ArrayRef),
        ("zip", Arc::new(StringArray::from(zips)) as ArrayRef),
        ("diagnosis", Arc::new(StringArray::from(flu)) as ArrayRef),
    ])
}

const POLICY: &str = "k = 3
suppression_limit = 0.1
rows_are_individuals = true
accept_homogeneity = [''diagnosis'']
[columns]
age = { role = ''quasi'', hierarchy = { range = [10, 20] } }
zip = { role = ''quasi'', hierarchy = { prefix = [4, 3] } }
diagnosis = { role = ''sensitive'' }
";

fn anonymized(of: &str) -> String {
    format!("anonymize({of}, '{POLICY}')")
}

#[tokio::test]
async fn anonymize_gives_what_a_release_has() {
    let place = Place::new();
    place.run("generate --rows 3000 --seed 3 --to visits.parquet").exit(0);
    let policy = std::fs::read_to_string(root().join("data/visits.toml")).unwrap();
    for file in ["education.csv", "marital_status.csv"] {
        place.write(file, std::fs::read(root().join("data").join(file)).unwrap());
    }
    place.write("visits.toml", &policy);
    place.run("release visits.parquet --policy visits.toml --to out").exit(0);
    let path = |name: &str| place.path(name).display().to_string();
    // On a runtime of one thread, which nothing may block.
    let session = with_files().await;
    session.register_parquet("visits", path("visits.parquet"), ParquetReadOptions::default()).await.unwrap();
    session.register_parquet("released", path("out"), ParquetReadOptions::default()).await.unwrap();
    let sql = format!("SELECT * FROM anonymize(visits, '{}')", path("visits.toml"));
    let found = rows(&session, &sql).await.unwrap();
    let released = rows(&session, "SELECT * FROM released").await.unwrap();
    assert!(found.len() > 2000, "{}", found.len());
    assert_eq!(sorted(found.clone()), sorted(released));
    // The same order each time, and the same through the file's name.
    let by_name = sql.replace("visits,", &format!("'{}',", path("visits.parquet")));
    assert_eq!(rows(&session, &by_name).await.unwrap(), found);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_pushed_below_anonymize() {
    let session = session();
    session.register_batch("people", people()).unwrap();
    let from = anonymized("people");
    let below = async |sql: String| {
        let plan = session.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
        let text = displayable(plan.as_ref()).indent(true).to_string();
        let at =
            text.lines().position(|line| line.trim_start().starts_with("TaskExec: anonymize(policy sha256:"));
        let at = at.unwrap_or_else(|| panic!("{text}"));
        let line = text.lines().nth(at).unwrap();
        let depth = line.len() - line.trim_start().len();
        let inside =
            text.lines().skip(at + 1).take_while(|line| line.len() - line.trim_start().len() > depth);
        inside.map(|line| line.trim_start().to_owned()).collect::<Vec<String>>()
    };
    let all = below(format!("SELECT * FROM {from}")).await;
    assert!(all.iter().any(|line| line.starts_with("AggregateExec")), "{all:?}");
    // The profile, the rows and the verification each read the table.
    assert_eq!(all.iter().filter(|line| line.contains("DataSourceExec")).count(), 3, "{all:?}");
    let whole = rows(&session, &format!("SELECT zip, age FROM {from}")).await.unwrap();
    for above in [
        "SELECT zip FROM {} WHERE diagnosis = 'flu'",
        "SELECT age FROM {} LIMIT 1",
        "SELECT age FROM {} ORDER BY age LIMIT 1",
        "SELECT count(*) FROM {}",
        "SELECT max(age) FROM {} GROUP BY zip HAVING zip = '0210*'",
        "SELECT a.zip FROM {} AS a JOIN (SELECT zip FROM people WHERE age > 50) AS b ON a.zip = b.zip",
        "SELECT a.zip FROM {} AS a WHERE a.zip IN (SELECT zip FROM people)",
        "WITH w AS (SELECT * FROM {}) SELECT DISTINCT zip FROM w WHERE zip LIKE '02%' OFFSET 1",
    ] {
        assert_eq!(below(above.replace("{}", &from)).await, all, "{above}");
    }
    let part = rows(&session, &format!("SELECT zip, age FROM {from} WHERE age = '[020,040)'")).await;
    let expected: Vec<_> = whole.into_iter().filter(|row| row[1] == "[020,040)").collect();
    assert_eq!(part.unwrap(), expected);
}

/// Rows of `people`, others from execution number `changes` on; counts executions.
#[derive(Debug)]
struct Counted {
    schema: SchemaRef,
    executed: Arc<AtomicUsize>,
    changes: usize,
}

impl PartitionStream for Counted {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let number = self.executed.fetch_add(1, Ordering::SeqCst);
        let batch = if number >= self.changes { people().slice(0, 59) } else { people() };
        let schema = Arc::clone(&self.schema);
        Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter([Ok(batch)])))
    }
}

fn counted(session: &SessionContext, changes: usize) -> Arc<AtomicUsize> {
    let executed = Arc::new(AtomicUsize::new(0));
    let stream = Counted { schema: people().schema(), executed: Arc::clone(&executed), changes };
    register(session, stream);
    executed
}

fn register(session: &SessionContext, stream: impl PartitionStream + 'static) {
    let table = StreamingTable::try_new(people().schema(), vec![Arc::new(stream)]).unwrap();
    session.register_table("people", Arc::new(table)).unwrap();
}

/// Rows of `people` without end, and what is known of their readers.
#[derive(Debug)]
struct Endless {
    schema: SchemaRef,
    known: Arc<watch::Sender<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    /// The batches that were read.
    batches: usize,
    /// The readers that are left.
    readers: usize,
}

struct Reader(Arc<watch::Sender<Known>>);

impl Reader {
    fn new(known: &Arc<watch::Sender<Known>>) -> Self {
        known.send_modify(|known| known.readers += 1);
        Self(Arc::clone(known))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.send_modify(|known| known.readers -= 1);
    }
}

impl PartitionStream for Endless {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let reader = Reader::new(&self.known);
        let batches = futures::stream::repeat(people()).then(move |batch| {
            reader.0.send_modify(|known| known.batches += 1);
            async move {
                tokio::task::yield_now().await;
                Ok(batch)
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_runs_when_it_is_executed_and_never_for_explain() {
    let session = session();
    let executed = counted(&session, usize::MAX);
    let from = anonymized("people");
    let lattice = from.replace("anonymize(", "lattice(");
    for explained in [&from, &lattice] {
        rows(&session, &format!("EXPLAIN SELECT * FROM {explained}")).await.unwrap();
        rows(&session, &format!("EXPLAIN VERBOSE SELECT * FROM {explained}")).await.unwrap();
        assert_eq!(executed.load(Ordering::SeqCst), 0);
    }
    let twice = session.sql(&format!("SELECT * FROM {from}")).await.unwrap();
    let first = cells(&twice.clone().collect().await.unwrap());
    assert!(executed.load(Ordering::SeqCst) > 0 && !first.is_empty());
    assert_eq!(cells(&twice.collect().await.unwrap()), first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_changes_is_refused_before_the_first_row() {
    let from = anonymized("people");
    let stable = {
        let session = session();
        let executed = counted(&session, usize::MAX);
        rows(&session, &format!("SELECT * FROM {from}")).await.unwrap();
        executed.load(Ordering::SeqCst)
    };
    assert!(stable > 2, "{stable}");
    for changes in 1..stable {
        let session = session();
        counted(&session, changes);
        let answer = session.sql(&format!("SELECT * FROM {from}")).await.unwrap();
        let mut stream = answer.execute_stream().await.unwrap();
        let first = stream.next().await.unwrap();
        // The last reading is the verification's: what it sees must be what was made.
        assert!(first.is_err(), "execution {changes} of {stable} gave other rows, and rows came out");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_longer_wanted_ends() {
    let session = session();
    let known = Arc::new(watch::Sender::new(Known::default()));
    register(&session, Endless { schema: people().schema(), known: Arc::clone(&known) });
    let mut told = known.subscribe();
    let answer = session.sql(&format!("SELECT * FROM {}", anonymized("people"))).await.unwrap();
    let mut stream = answer.execute_stream().await.unwrap();
    // However much it has read, it has no answer.
    tokio::select! {
        biased;
        first = stream.next() => panic!("a table without end has an answer: {first:?}"),
        reads = told.wait_for(|known| known.batches >= 1000) => drop(reads.unwrap()),
    }
    assert!(known.borrow().readers > 0);
    drop(stream);
    let pool = Arc::clone(&session.runtime_env().memory_pool);
    let ends = async {
        drop(told.wait_for(|known| known.readers == 0).await.unwrap());
        // The memory is given back by whoever held the reader, right behind it.
        while pool.reserved() > 0 {
            tokio::task::yield_now().await;
        }
    };
    // So long only where it never ends: a failure instead of a test that hangs.
    if tokio::time::timeout(Duration::from_secs(300), ends).await.is_err() {
        panic!("{} readers are left, {} bytes are still held", known.borrow().readers, pool.reserved());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_that_may_differ_at_each_reading_are_refused() {
    let session = session();
    session.register_batch("people", people()).unwrap();
    rows(&session, "CREATE VIEW some AS SELECT * FROM people WHERE random() > 0.5").await.unwrap();
    for table in [
        "(SELECT * FROM people LIMIT 50)",
        "(SELECT * FROM people WHERE random() < 2)",
        "some",
        "(SELECT age, zip, diagnosis FROM (SELECT *, row_number() OVER () AS n FROM people))",
        "(SELECT CAST(round(sum(age + 0.5)) AS BIGINT) AS age, zip, diagnosis FROM people GROUP BY zip, diagnosis)",
    ] {
        let error = rows(&session, &format!("SELECT * FROM {}", anonymized(table))).await.unwrap_err();
        assert!(error.contains("may return different rows when it is read again"), "{table}: {error}");
    }
    let fine = "(SELECT age, zip, max(diagnosis) AS diagnosis FROM people WHERE age > 20 GROUP BY age, zip)";
    assert!(!rows(&session, &format!("SELECT * FROM {}", anonymized(fine))).await.unwrap().is_empty());
}

#[tokio::test]
async fn files_are_read_only_where_an_option_allows_it() {
    let place = Place::new();
    place.parquet("people.parquet", &people());
    place.write("policy.toml", POLICY.replace("''", "'"));
    place.write("h.csv", "zip,area\n02100,a\n02103,a\n");
    let path = |name: &str| place.path(name).display().to_string();
    let (file, policy) = (path("people.parquet"), path("policy.toml"));
    let of_file = POLICY.replace("prefix = [4, 3]", &format!("file = ''{}''", path("h.csv")));
    let session = session();
    session.register_batch("people", people()).unwrap();
    let queries = [
        format!("SELECT * FROM classes('{file}', 'age')"),
        format!("SELECT * FROM risk('{file}', 'age')"),
        format!("SELECT * FROM link(people, '{file}', 'age')"),
        format!("SELECT * FROM lattice('{file}', '{POLICY}')"),
        format!("SELECT * FROM anonymize(people, '{policy}')"),
        format!("SELECT * FROM anonymize(people, '{of_file}')"),
        format!("SELECT * FROM load_hierarchy('h', '{}')", path("h.csv")),
    ];
    for query in &queries {
        let error = rows(&session, query).await.unwrap_err();
        assert!(error.contains("kanon.allow_files is false"), "{query}: {error}");
    }
    let session = with_files().await;
    session.register_batch("people", people()).unwrap();
    for query in queries {
        match rows(&session, &query).await {
            Ok(rows) => assert!(!rows.is_empty(), "{query}"),
            // The little file does not cover the table.
            Err(error) => {
                assert!(query.contains("h.csv") && error.contains("not in the hierarchy"), "{query}: {error}")
            }
        }
    }
}

#[tokio::test]
async fn a_budget_that_is_too_small_is_an_error_and_nothing_else() {
    let place = Place::new();
    place.run("generate --rows 30000 --to visits.parquet").exit(0);
    let runtime = RuntimeEnvBuilder::new().with_memory_limit(2 << 20, 1.0).build_arc().unwrap();
    let session = SessionContext::new_with_config_rt(SessionConfig::new(), runtime);
    datafusion_kanon::internals::sql::register_all(&session).unwrap();
    session.sql("SET kanon.allow_files = true").await.unwrap();
    let (file, policy) = (place.path("visits.parquet"), root().join("data/visits.toml"));
    let sql = format!("SELECT * FROM anonymize('{}', '{}')", file.display(), policy.display());
    let error = rows(&session, &sql).await.unwrap_err();
    assert!(error.contains("memory"), "{error}");
    assert_eq!(session.runtime_env().memory_pool.reserved(), 0);
}

#[tokio::test]
async fn tables_are_names_ctes_subqueries_functions_and_views() {
    let session = session();
    session.register_batch("people", people()).unwrap();
    rows(&session, "CREATE VIEW v AS SELECT * FROM people").await.unwrap();
    rows(&session, "CREATE SCHEMA other").await.unwrap();
    rows(&session, "CREATE TABLE other.\"Odd Name\" AS SELECT * FROM people").await.unwrap();
    let plain = rows(&session, "SELECT count(*) FROM (SELECT DISTINCT age, zip FROM people)").await.unwrap();
    for table in [
        "people",
        "public.people",
        "datafusion.public.people",
        "v",
        "other.\"Odd Name\"",
        "(SELECT * FROM people)",
        "(WITH p AS (SELECT * FROM people) SELECT * FROM p)",
        "(SELECT p.age, p.zip FROM people AS p JOIN (SELECT 1 AS one) AS o ON o.one = 1)",
    ] {
        let sql = format!("SELECT count(*) FROM classes({table}, 'age', 'zip')");
        assert_eq!(rows(&session, &sql).await.unwrap(), plain, "{table}");
    }
    let cte = "WITH p AS (SELECT * FROM people) SELECT count(*) FROM classes(p, age, zip) AS c";
    assert_eq!(rows(&session, cte).await.unwrap(), plain);
    let of_released = format!("SELECT min(size) >= 3 FROM classes({}, 'age', 'zip')", anonymized("people"));
    assert_eq!(rows(&session, &of_released).await.unwrap(), [["true"]]);
    let prepared = "PREPARE q AS SELECT count(*) FROM classes(people, 'age', 'zip') WHERE size >= $1";
    rows(&session, prepared).await.unwrap();
    assert_eq!(rows(&session, "EXECUTE q(1)").await.unwrap(), plain);
    for (wrong, why) in [
        ("nobody", "nobody"),
        ("people, 'agee'", "no column `agee`; did you mean `age`"),
        ("people", "expected at least one column"),
        ("people, 'age', size => 'zip'", "unknown argument `size`"),
        ("5, 'age'", "expected a table"),
        ("people, 'age', sensitive => 'x'", "no column `x`"),
    ] {
        let error = rows(&session, &format!("SELECT * FROM classes({wrong})")).await.unwrap_err();
        assert!(error.contains(why), "{wrong}: {error}");
    }
}

#[tokio::test]
async fn measures_over_a_search_or_a_stream_read_it_once() {
    let session = session();
    let executed = counted(&session, usize::MAX);
    let from = anonymized("people");
    for measures in [
        "k_anonymity(age), k_anonymity(zip)",
        "k_anonymity(age), max(zip)",
        "sample_uniqueness_individuals(zip, age)",
    ] {
        let sql = format!("SELECT {measures} FROM {from}");
        let plan = session.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
        let text = displayable(&*plan).indent(false).to_string();
        assert_eq!(text.matches("TaskExec").count(), 1, "{text}");
        rows(&session, &sql).await.unwrap();
        let before = executed.load(Ordering::SeqCst);
        rows(&session, &format!("SELECT {measures} FROM people")).await.unwrap();
        assert_eq!(executed.load(Ordering::SeqCst) - before, 1, "{measures}");
    }
}

/// A table function of somebody else.
#[derive(Debug)]
struct Theirs;

impl TableFunctionImpl for Theirs {
    fn call_with_args(
        &self,
        _arguments: TableFunctionArgs,
    ) -> Result<Arc<dyn TableProvider>, DataFusionError> {
        let batch = table([("theirs", Arc::new(Int64Array::from(vec![7])) as ArrayRef)]);
        Ok(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?))
    }
}

#[tokio::test]
async fn a_table_function_of_the_session_goes_before_ours() {
    let session = session();
    session.register_batch("people", people()).unwrap();
    let ours = rows(&session, "SELECT k FROM risk(people, 'age')").await.unwrap();
    session.register_udtf("risk", Arc::new(Theirs));
    assert_eq!(rows(&session, "SELECT theirs FROM risk(1)").await.unwrap(), [["7"]]);
    session.deregister_udtf("risk");
    assert_eq!(rows(&session, "SELECT k FROM risk(people, 'age')").await.unwrap(), ours);

    let mut builder = SessionStateBuilder::new().with_default_features();
    let theirs = TableFunction::new("risk".to_owned(), Arc::new(Theirs));
    builder.table_functions().get_or_insert_default().insert("risk".to_owned(), Arc::new(theirs));
    let built =
        SessionContext::new_with_state(datafusion_kanon::internals::sql::configure(builder).unwrap().build());
    assert_eq!(rows(&built, "SELECT theirs FROM risk(1)").await.unwrap(), [["7"]]);
}
