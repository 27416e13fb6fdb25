//! Class keys from the dictionaries of Parquet files: the same answers as from the same rows in memory, whatever the files
//! hold.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Int64Array, RecordBatch, StringArray, StringDictionaryBuilder, StringViewArray,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Int32Type};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
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
    datafusion_kanon::sql::register_all(&session).unwrap();
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
    for (measures, is_in_scan) in [
        ("k_anonymity(zip, job, sex)", true),
        ("k_anonymity(generalize_prefix(zip, 2), generalize_prefix(job, 34), sex, age)", true),
        ("k_anonymity(generalize_range(age, 10), sex, generalize_prefix(zip, 1)), count(*)", true),
        ("k_anonymity(zip, sex, job), l_diversity(name, zip, sex, job)", true),
        ("k_anonymity_individuals(who, zip, sex, job), sample_uniqueness(sex, zip, job)", true),
        // A column that something else looks at is read as it was.
        ("l_diversity(zip, zip, sex, job)", true),
        ("k_anonymity(upper(zip), sex, job)", true),
        ("k_anonymity(zip, sex, job) FILTER (WHERE age > 50), max(job)", false),
        ("k_anonymity(zip, sex)", false),
        ("k_anonymity(age, who, generalize_range(age, 5))", false),
    ] {
        for of in ["", " WHERE zip > '00300'", " WHERE age IS NOT NULL"] {
            let sql = |table: &str| format!("SELECT {measures} FROM {table}{of}");
            let plan = physical(&session, &sql("t")).await;
            let scan = plan.lines().find(|line| line.contains("DataSourceExec")).unwrap();
            // A filter stands between the scan and the count.
            assert_eq!(
                scan.contains("kanon_class_key("),
                is_in_scan && of.is_empty(),
                "{measures}{of}\n{plan}"
            );
            assert_eq!(
                answer(&session, &sql("t")).await.unwrap(),
                answer(&session, &sql("m")).await.unwrap(),
                "{measures}{of}"
            );
        }
    }
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
        let batches = session.sql(&sql).await.unwrap().collect().await.unwrap();
        assert_eq!(array_value_to_string(batches[0].column(0), 0).unwrap(), "1");
    }
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
