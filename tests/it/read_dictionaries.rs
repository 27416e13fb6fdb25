//! Class keys from the dictionaries of Parquet files: the same answers as from the same rows in
//! memory, whatever the files hold.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex};

use arrow::array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int8Array, Int64Array, RecordBatch, StringArray,
    StringDictionaryBuilder, StringViewArray,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Int32Type, SchemaRef};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use tempfile::TempDir;

use crate::command::table;
use crate::sql_measures::answer;

/// Rows from a number on: short and long texts, many and few, NULL, integers.
fn rows(from: i64, rows: i64) -> RecordBatch {
    let numbers = from..from + rows;
    let texts = |of: &dyn Fn(i64) -> Option<String>| -> ArrayRef {
        Arc::new(numbers.clone().map(of).collect::<StringArray>())
    };
    table([
        ("zip", texts(&|n| (n % 7 > 0).then(|| format!("{:05}", n % 900)))),
        ("job", texts(&|n| Some(format!("a name of more than twelve bytes {}", n * n % 11)))),
        ("sex", texts(&|n| Some(if n % 3 == 0 { "f" } else { "m" }.into()))),
        ("name", texts(&|n| Some(format!("{n}")))),
        ("age", Arc::new(numbers.clone().map(|n| (n % 5 > 0).then_some(n % 90)).collect::<Int64Array>())),
        ("who", Arc::new(Int64Array::from_iter_values(numbers.map(|n| n / 2)))),
    ])
}

fn write(folder: &Path, name: &str, rows: &RecordBatch, properties: WriterProperties) {
    let file = File::create(folder.join(name)).unwrap();
    let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(properties)).unwrap();
    writer.write(rows).unwrap();
    writer.close().unwrap();
}

/// A folder of files that encode the same kind of rows in different ways, and all rows.
fn folder() -> (TempDir, RecordBatch) {
    let folder = TempDir::new().unwrap();
    let plain = WriterProperties::builder().set_dictionary_enabled(false).build();
    // Dictionaries that are too large are given up in the middle of a column.
    let given_up =
        WriterProperties::builder().set_dictionary_page_size_limit(200).set_data_page_size_limit(400);
    let groups = WriterProperties::builder().set_max_row_group_row_count(Some(700)).build();
    let kinds = [WriterProperties::default(), plain, given_up.set_write_batch_size(50).build(), groups];
    let mut all = Vec::new();
    for (kind, (file, properties)) in
        kinds.into_iter().enumerate().map(|(kind, it)| (kind as i64, (kind, it)))
    {
        all.push(rows(kind * 2_500, 3_000));
        write(folder.path(), &format!("{file}.parquet"), &all[file], properties);
    }
    let whole = concat_batches(&all[0].schema(), &all).unwrap();
    (folder, whole)
}

/// A session with the files as `t` and their rows as `m`.
async fn session() -> (SessionContext, TempDir) {
    let (folder, whole) = folder();
    let session = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(3));
    datafusion_kanon::internals::sql::register_all(&session).unwrap();
    let path = folder.path().display().to_string();
    session.register_parquet("t", path, Default::default()).await.unwrap();
    session.register_batch("m", whole).unwrap();
    (session, folder)
}

async fn physical(session: &SessionContext, sql: &str) -> String {
    let plan = session.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    datafusion::physical_plan::displayable(&*plan).indent(false).to_string()
}

#[tokio::test]
async fn files_of_all_encodings_have_the_classes_of_their_rows() {
    let (session, _folder) = session().await;
    for (quasi, filter, others, is_in_scan) in [
        ("zip, job, sex", "", "", true),
        ("generalize_prefix(zip, 4), generalize_prefix(job, 34), sex, age", "", "", true),
        ("generalize_range(age, 10), sex, generalize_prefix(zip, 3)", "", ", count(*)", true),
        ("zip, sex, job", "", ", l_diversity(name, zip, sex, job)", true),
        ("sex, zip, job", "", ", k_anonymity_individuals(who, zip, sex, job)", true),
        ("zip, sex, job", "", ", k_anonymity_individuals(zip, zip, sex, job)", true),
        ("upper(zip), sex, job", "", "", true),
        ("zip, sex, job", " FILTER (WHERE age > 50)", ", max(job)", true),
        ("zip, sex, job", "", ", avg(age), count(DISTINCT name)", true),
        ("zip, sex, job", "", ", array_agg(who ORDER BY who DESC), min(zip)", true),
        ("zip, sex", "", "", false),
        ("age, who, generalize_range(age, 5)", "", "", false),
    ] {
        // Where k is 1 whatever the classes are, their number and that of unique rows tell them apart.
        let measures = ["k_anonymity", "sample_uniqueness", "average_risk"];
        let measures = measures.map(|measure| format!("{measure}({quasi}){filter}")).join(", ") + others;
        for of in ["", " WHERE zip > '00300'", " WHERE age IS NOT NULL"] {
            let sql = |table: &str| format!("SELECT {measures} FROM {table}{of}");
            let plan = physical(&session, &sql("t")).await;
            let scan = plan.lines().find(|line| line.contains("DataSourceExec")).unwrap();
            assert_eq!(scan.contains("kanon_class_key("), is_in_scan, "{measures}{of}\n{plan}");
            assert_eq!(
                answer(&session, &sql("t")).await.unwrap(),
                answer(&session, &sql("m")).await.unwrap(),
                "{measures}{of}"
            );
        }
    }
}

/// Adapters that note the columns of each file.
#[derive(Debug)]
struct Noted {
    adapters: Arc<dyn PhysicalExprAdapterFactory>,
    files: Arc<Mutex<Vec<SchemaRef>>>,
}

impl PhysicalExprAdapterFactory for Noted {
    fn create(&self, table: SchemaRef, file: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        self.files.lock().unwrap().push(Arc::clone(&file));
        self.adapters.create(table, file)
    }
}

/// The columns that a query gets as dictionaries, together for each file that has any; equal files once.
async fn dictionaries(session: &SessionContext, sql: &str) -> String {
    let files = Arc::new(Mutex::new(Vec::new()));
    let plan = session.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let plan = plan.transform_up(|node| {
        let source = node.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
        let scan = source.and_then(|source| source.downcast_ref::<FileScanConfig>());
        let noted = scan.cloned().map(|scan| -> Arc<dyn ExecutionPlan> {
            let adapters = scan.expr_adapter_factory.clone();
            let adapters = adapters.unwrap_or_else(|| Arc::new(DefaultPhysicalExprAdapterFactory));
            let noted = Noted { adapters, files: Arc::clone(&files) };
            let scan = FileScanConfigBuilder::from(scan).with_expr_adapter(Some(Arc::new(noted)));
            DataSourceExec::from_data_source(scan.build())
        });
        Ok(noted.map_or_else(|| Transformed::no(node), Transformed::yes))
    });
    collect(plan.unwrap().data, session.task_ctx()).await.unwrap();
    let of_file = |file: &SchemaRef| {
        let packed = file.fields().iter().filter(|of| matches!(of.data_type(), DataType::Dictionary(..)));
        packed.map(|of| of.name().as_str()).collect::<Vec<_>>().join(" ")
    };
    let files: BTreeSet<String> = files.lock().unwrap().iter().map(of_file).collect();
    files.into_iter().filter(|packed| !packed.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Two files have a dictionary of each column, one has none, and one has given up all but a small one.
#[tokio::test]
async fn columns_of_text_that_only_a_key_looks_at_arrive_as_dictionaries() {
    let (session, _folder) = session().await;
    for (measures, expected) in [
        ("k_anonymity(zip, job, sex)", "sex, zip job sex"),
        ("k_anonymity(generalize_prefix(zip, 2), job, age)", "zip job"),
        ("k_anonymity(zip, sex, job), l_diversity(name, zip, sex, job)", "sex, zip job sex name"),
        ("k_anonymity(upper(zip), sex, job)", "sex, zip job sex"),
        ("l_diversity(zip, zip, sex, job)", "sex, zip job sex"),
        ("k_anonymity_individuals(zip, zip, sex, job)", "sex, zip job sex"),
        // A column that something else looks at is read as it was.
        ("k_anonymity(zip, sex, job), max(job)", "sex, zip sex"),
        ("k_anonymity(zip, sex, job) FILTER (WHERE sex = 'f')", "zip job"),
        ("k_anonymity(zip, sex)", ""),
        ("k_anonymity(age, who, generalize_range(age, 5))", ""),
    ] {
        let sql = format!("SELECT {measures} FROM t");
        assert_eq!(dictionaries(&session, &sql).await, expected, "{measures}");
    }
    let filtered = "SELECT k_anonymity(zip, job, sex) FROM t WHERE zip > '00300'";
    assert_eq!(dictionaries(&session, filtered).await, "job sex, sex");
}

/// The keys of all files together may be too many for the type of those of one.
#[tokio::test]
async fn individuals_and_values_in_dictionaries_of_numbers_are_unpacked() {
    let session = SessionContext::new();
    datafusion_kanon::internals::sql::register_all(&session).unwrap();
    let folder = TempDir::new().unwrap();
    let ones = || Arc::new(Int64Array::from(vec![1; 100])) as ArrayRef;
    for file in 0..2 {
        let values = Arc::new(Int64Array::from_iter_values(100 * file..100 * file + 100));
        let packed = DictionaryArray::new(Int8Array::from_iter_values(0..100), values);
        let rows =
            table([("who", Arc::new(packed) as ArrayRef), ("a", ones()), ("b", ones()), ("c", ones())]);
        write(folder.path(), &format!("{file}.parquet"), &rows, WriterProperties::default());
    }
    session.register_parquet("t", folder.path().display().to_string(), Default::default()).await.unwrap();
    for measure in ["k_anonymity_individuals(who, a, b, c)", "l_diversity(who, a, b, c)"] {
        let found = answer(&session, &format!("SELECT {measure} FROM t")).await.unwrap();
        assert_eq!(found, answer(&session, "SELECT 200").await.unwrap(), "{measure}");
    }
}

/// Of a row that a filter removes no key is made: it may have none.
#[tokio::test]
async fn keys_that_fail_on_rows_without_them_are_not_made() {
    let session = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(3));
    datafusion_kanon::internals::sql::register_all(&session).unwrap();
    let folder = TempDir::new().unwrap();
    let texts = |of: [&str; 2]| -> ArrayRef {
        Arc::new((0..4_000).map(|n| Some(of[n % 2])).collect::<StringArray>())
    };
    let cost = |n: usize| if n.is_multiple_of(5) { f64::MAX } else { (n % 50) as f64 };
    let cost: ArrayRef = Arc::new(Float64Array::from_iter_values((0..4_000).map(cost)));
    let all_huge: ArrayRef = Arc::new(Float64Array::from_iter_values(std::iter::repeat_n(f64::MAX, 4_000)));
    let (zip, sex) = (texts(["021", "100"]), texts(["f", "m"]));
    for (file, cost) in [("some.parquet", cost), ("all.parquet", all_huge)] {
        let rows = table([("zip", Arc::clone(&zip)), ("sex", Arc::clone(&sex)), ("cost", cost)]);
        write(folder.path(), file, &rows, WriterProperties::default());
    }
    session.register_parquet("t", folder.path().display().to_string(), Default::default()).await.unwrap();
    let of = |filter: &str| {
        format!("SELECT k_anonymity(generalize_range(cost, 10), zip, sex) AS k FROM t {filter}")
    };
    assert!(answer(&session, &of("")).await.is_err());
    let also = of("WHERE cost < 1000").replace("AS k", "AS k, avg(CAST(cost AS SMALLINT)) AS mean");
    assert!(
        session.sql(&also).await.unwrap().collect().await.is_ok(),
        "a cast fails on rows that are filtered out"
    );
    let filtered = of("WHERE cost < 1000");
    assert!(physical(&session, &filtered).await.contains("CASE WHEN"));
    // 3,200 rows in five decades and two of zip codes and sexes, of which one in five is huge.
    let found = answer(&session, &filtered).await.unwrap();
    assert_eq!(found, answer(&session, &of("WHERE cost < 1000 AND sex IN ('f', 'm')")).await.unwrap());
    let batches = session.sql(&filtered).await.unwrap().collect().await.unwrap();
    assert_eq!(array_value_to_string(batches[0].column(0), 0).unwrap(), "320");
    // Nothing passes.
    let nothing = session.sql(&of("WHERE cost < 0")).await.unwrap().collect().await.unwrap();
    assert_eq!(array_value_to_string(nothing[0].column(0), 0).unwrap(), "");
}

#[tokio::test]
async fn no_text_of_a_dictionary_is_made() {
    let (session, _folder) = session().await;
    let plan = physical(&session, "SELECT k_anonymity(generalize_prefix(zip, 2), job, sex) FROM t").await;
    assert!(!plan.contains("CAST("), "{plan}");
    assert!(plan.contains("kanon_prefix_codes(zip"), "{plan}");
    // Of a column that is a dictionary in the table, neither.
    let mut packed = StringDictionaryBuilder::<Int32Type>::new();
    ["a", "b", "a", "c"].into_iter().for_each(|text| packed.append_value(text));
    let packed: ArrayRef = Arc::new(packed.finish());
    let batch = table([("d", packed), ("x", Arc::new(Int64Array::from(vec![1, 2, 1, 1])))]);
    session.register_batch("d", batch).unwrap();
    for quasi in ["d", "d, x", "d, x, generalize_prefix(d, 1)"] {
        let sql = format!("SELECT k_anonymity({quasi}) FROM d");
        let plan =
            session.sql(&sql).await.unwrap().into_optimized_plan().unwrap().display_indent().to_string();
        assert!(!plan.contains("CAST(") && plan.contains("kanon_class_key("), "{plan}");
        let sql = format!("SELECT k_anonymity({quasi}), sample_uniqueness({quasi}) FROM d");
        let batches = session.sql(&sql).await.unwrap().collect().await.unwrap();
        let found = [0, 1].map(|at| array_value_to_string(batches[0].column(at), 0).unwrap());
        assert_eq!(found, ["1", "0.5"], "{quasi}");
    }
}

/// Returns what the scans of a query counted under a name.
async fn counted(session: &SessionContext, sql: &str, name: &str) -> usize {
    let plan = session.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    collect(Arc::clone(&plan), session.task_ctx()).await.unwrap();
    let (mut found, mut plans) = (0, vec![plan]);
    while let Some(plan) = plans.pop() {
        found += plan.metrics().and_then(|metrics| metrics.sum_by_name(name)).map_or(0, |sum| sum.as_usize());
        plans.extend(plan.children().into_iter().map(Arc::clone));
    }
    found
}

/// A metric of the scan says which texts of a class key are made for each row: none where a file has dictionaries.
#[tokio::test]
async fn a_metric_counts_columns_of_texts() {
    let (session, folder) = session().await;
    for (at, file) in ["0", "1", "2", "3"].into_iter().enumerate() {
        let path = folder.path().join(format!("{file}.parquet")).display().to_string();
        session.register_parquet(format!("f{at}"), path, Default::default()).await.unwrap();
    }
    let query = |of: &str| {
        format!(
            "SELECT k_anonymity(generalize_prefix(zip, 2), job, sex, age), l_diversity(job, zip, sex) FROM {of}"
        )
    };
    let [dictionaries, texts] = ["kanon_key_columns_as_dictionaries", "kanon_key_columns_as_texts"];
    for (of, has_dictionaries, has_texts) in
        [("f0", true, false), ("f1", false, true), ("f2", true, true), ("f3", true, false), ("t", true, true)]
    {
        assert_eq!(counted(&session, &query(of), dictionaries).await > 0, has_dictionaries, "{of}");
        assert_eq!(counted(&session, &query(of), texts).await > 0, has_texts, "{of}");
    }
    // Without texts there is nothing to count.
    assert_eq!(counted(&session, "SELECT k_anonymity(age, who, age % 2) FROM f0", dictionaries).await, 0);
}

/// A function of a user whose name ends like ours gets the texts that it asks for.
#[tokio::test]
async fn functions_of_others_see_no_dictionary() {
    let (session, _folder) = session().await;
    let text = DataType::Utf8View;
    let first = |arguments: &[ColumnarValue]| {
        let texts = arguments[0].to_array(1)?;
        assert_eq!(texts.data_type(), &DataType::Utf8View);
        let first =
            |row| texts.is_valid(row).then(|| array_value_to_string(&texts, row).unwrap()[..1].to_owned());
        let first: StringViewArray = (0..texts.len()).map(first).collect();
        Ok(ColumnarValue::Array(Arc::new(first)))
    };
    let udf: ScalarUDF =
        create_udf("kanon_first_codes", vec![text.clone()], text, Volatility::Immutable, Arc::new(first));
    session.register_udf(udf);
    let sql = |table: &str| {
        format!("SELECT k_anonymity(kanon_first_codes(zip), sex, kanon_first_codes(job)) FROM {table}")
    };
    assert_eq!(answer(&session, &sql("t")).await.unwrap(), answer(&session, &sql("m")).await.unwrap());
}

/// Labels of a subquery are columns of the measures, which need only their codes.
#[tokio::test]
async fn measures_see_through_a_subquery_that_generalizes() {
    let (session, _folder) = session().await;
    let measures = "SELECT k_anonymity(z, a, sex), l_diversity(job, z, a, sex), average_risk(z, a, sex), min(z) AS least";
    for (from, is_in_scan) in [
        ("(SELECT generalize_prefix(zip, 4) AS z, generalize_range(age, 20) AS a, sex, job FROM {t})", true),
        (
            "(SELECT z, a, sex, job || '' AS job FROM (SELECT generalize_prefix(zip, 3) AS z, age AS a, sex, job FROM {t}))",
            true,
        ),
        (
            "(SELECT generalize_prefix(zip, 4) AS z, age + CAST(random() AS BIGINT) * 0 AS a, sex, job FROM {t})",
            false,
        ),
        (
            "(SELECT generalize_prefix(zip, 4) AS z, generalize_range(age, 20) AS a, sex, job FROM {t}) AS q",
            true,
        ),
    ] {
        let measures =
            if is_in_scan { measures.replace(", min(z) AS least", "") } else { measures.to_owned() };
        for groups in ["", " GROUP BY sex"] {
            let sql = |table: &str| format!("{measures} FROM {}{groups}", from.replace("{t}", table));
            let plan = physical(&session, &sql("t")).await;
            let has_codes = plan.contains("kanon_prefix_codes(");
            assert_eq!(has_codes, !from.contains("random"), "{plan}");
            let scan = plan.lines().find(|line| line.contains("DataSourceExec")).unwrap();
            assert_eq!(scan.contains("kanon_class_key("), is_in_scan, "{plan}");
            session.sql("SET kanon.rewrite_measures = false").await.unwrap();
            let expected = answer(&session, &sql("m")).await.unwrap();
            session.sql("SET kanon.rewrite_measures = true").await.unwrap();
            for table in ["t", "m"] {
                assert_eq!(answer(&session, &sql(table)).await.unwrap(), expected, "{}", sql(table));
            }
        }
    }
}
