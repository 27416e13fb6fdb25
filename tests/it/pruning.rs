//! Filters on generalized columns prune row groups, and find the same rows.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Date32Array, Float64Array, Int32Array, Int64Array, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::Int64Type;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};

/// Ten row groups of a hundred people, sorted by age and by date of birth.
fn people(folder: &Path) -> String {
    let path = folder.join("people.parquet");
    let mut writer: Option<ArrowWriter<File>> = None;
    for group in 0..10 {
        let rows = || group * 100..(group + 1) * 100;
        let ages = Int32Array::from_iter(rows().map(|row| (row % 25 > 0).then_some(row / 10)));
        let births = Date32Array::from_iter_values(rows().map(|row| row * 30));
        let floats = Float64Array::from_iter_values(
            rows().map(|row| if row == 42 { f64::NAN } else { f64::from(row / 10) }),
        );
        let columns: [(&str, ArrayRef, bool); 3] = [
            ("age", Arc::new(ages), true),
            ("dob", Arc::new(births), false),
            ("income", Arc::new(floats), false),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let writer = writer.get_or_insert_with(|| {
            ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap()
        });
        writer.write(&batch).unwrap();
        writer.flush().unwrap();
    }
    writer.unwrap().close().unwrap();
    path.to_str().unwrap().to_owned()
}

async fn session(path: &str, pruning: bool) -> SessionContext {
    let mut config = SessionConfig::new().with_parquet_pruning(pruning);
    // Pages are pruned apart from row groups.
    config.options_mut().execution.parquet.enable_page_index = pruning;
    let session = SessionContext::new_with_config(config);
    datafusion_kanon::internals::sql::register_all(&session).unwrap();
    session.register_parquet("t", path, ParquetReadOptions::default()).await.unwrap();
    session
}

async fn count(session: &SessionContext, filter: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM t WHERE {filter}");
    let batches = session.sql(&sql).await.unwrap().collect().await.unwrap();
    let one = concat_batches(&batches[0].schema(), &batches).unwrap();
    one.column(0).as_primitive::<Int64Type>().value(0)
}

/// `N total → M matched` of a metric.
async fn row_groups(session: &SessionContext, filter: &str) -> String {
    let sql = format!("EXPLAIN ANALYZE SELECT count(*) FROM t WHERE {filter}");
    let text = session.sql(&sql).await.unwrap().to_string().await.unwrap();
    let metric = text.split("row_groups_pruned_statistics=").nth(1).unwrap_or_else(|| panic!("{text}"));
    metric.split([',', ']']).next().unwrap().split(" ->").next().unwrap().to_owned()
}

#[tokio::test]
async fn a_filter_on_labels_prunes_row_groups() {
    let folder = tempfile::tempdir().unwrap();
    let path = people(folder.path());
    let (pruned, whole) = (session(&path, true).await, session(&path, false).await);
    for (filter, kept, opaque) in [
        ("generalize_floor(age, 10) = 30", 1, "CAST(generalize_floor(age, 10) AS VARCHAR) = '30'"),
        ("generalize_floor(age, 10, 5) = 35", 2, "CAST(generalize_floor(age, 10, 5) AS VARCHAR) = '35'"),
        ("generalize_floor(age, 20) < 40", 4, "CAST(generalize_floor(age, 20) AS VARCHAR) IN ('0', '20')"),
        ("40 >= generalize_floor(age, 20)", 6, "age < 60"),
        ("generalize_floor(age, 10) IN (10, 70)", 2, "age / 10 IN (1, 7)"),
        (
            "generalize_date(dob, 'year') = DATE '1990-01-01'",
            1,
            "CAST(generalize_date(dob, 'year') AS VARCHAR) = '1990-01-01'",
        ),
        ("generalize_date(dob, 'decade') > DATE '2030-01-01'", 2, "dob >= DATE '2040-01-01'"),
    ] {
        let found = row_groups(&pruned, filter).await;
        assert_eq!(found, format!("10 total → {kept} matched"), "{filter}");
        let rows = count(&pruned, filter).await;
        assert!(rows > 0, "{filter}");
        assert_eq!(rows, count(&whole, filter).await, "{filter}");
        assert_eq!(rows, count(&pruned, opaque).await, "{filter}");
    }
}

/// What is no label, or is compared with an expression, is compared row by row.
#[tokio::test]
async fn other_filters_are_evaluated() {
    let folder = tempfile::tempdir().unwrap();
    let session = session(&people(folder.path()), true).await;
    assert_eq!(count(&session, "generalize_floor(age, 10) = 35").await, 0);
    assert_eq!(count(&session, "generalize_floor(age, 10) = generalize_floor(age, 20)").await, 480);
    assert_eq!(count(&session, "generalize_range(age, 10) = '[30,40)'").await, 96);
    let column = Int64Array::from(vec![5, 15]);
    let batch = RecordBatch::try_from_iter([("v", Arc::new(column) as ArrayRef)]).unwrap();
    session.register_batch("u", batch).unwrap();
    // Computed once: `random` twice would be another predicate.
    let sql = "EXPLAIN SELECT * FROM u WHERE generalize_floor(CAST(random() * 100 AS INT), 10) = 30";
    let plan = session.sql(sql).await.unwrap().to_string().await.unwrap();
    assert!(plan.contains("generalize_floor"), "{plan}");
}

/// Why floats have no preimage: the statistics of a row group pass NaN over, so the engine loses it
/// where it prunes. When it no longer does, `Floor::preimage_end` can answer for floats.
#[tokio::test]
async fn floats_are_not_pruned_because_nan_would_be_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = people(folder.path());
    let (pruned, whole) = (session(&path, true).await, session(&path, false).await);
    assert_eq!((count(&whole, "income >= 90").await, count(&pruned, "income >= 90").await), (101, 100));
    for session in [&pruned, &whole] {
        assert_eq!(count(session, "generalize_floor(income, 10) > 80").await, 101);
    }
}
