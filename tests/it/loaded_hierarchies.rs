//! `generalize('hierarchy', value, level)` over loaded hierarchies.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::execution::registry::MemoryFunctionRegistry;
use datafusion::execution::{FunctionRegistry, SessionStateBuilder};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use datafusion_kanon::internals::sql::{
    configure, load_hierarchy, load_hierarchy_file, register_all, register_functions,
};

fn table(columns: &[&[&str]]) -> Vec<RecordBatch> {
    let columns = columns
        .iter()
        .enumerate()
        .map(|(index, cells)| (format!("c{index}"), Arc::new(StringArray::from(cells.to_vec())) as ArrayRef));
    vec![RecordBatch::try_from_iter(columns).unwrap()]
}

/// `marital`: value, `was married`, no single label at the end; `zip`: numbers, a top of its own.
fn session() -> SessionContext {
    let session = SessionContext::new();
    register_all(&session).unwrap();
    let marital = table(&[&["divorced", "widowed", "single"], &["once", "once", "never"]]);
    load_hierarchy(&session, "marital", &marital).unwrap();
    let zip = RecordBatch::try_from_iter([
        ("zip", Arc::new(Int64Array::from(vec![2138, 2139, 98512])) as ArrayRef),
        ("town", Arc::new(StringArray::from(vec!["Cambridge", "Cambridge", "Olympia"]))),
        ("any", Arc::new(StringArray::from(vec!["USA"; 3]))),
    ]);
    load_hierarchy(&session, "zip", &[zip.unwrap()]).unwrap();
    session
}

fn register(session: &SessionContext, values: ArrayRef) {
    let batch = RecordBatch::try_from_iter_with_nullable([("v", values, true)]).unwrap();
    session.deregister_table("t").unwrap();
    session.register_batch("t", batch).unwrap();
}

async fn run(session: &SessionContext, sql: &str) -> Result<RecordBatch, String> {
    let shown = |error: datafusion::error::DataFusionError| error.strip_backtrace();
    let batches = session.sql(sql).await.map_err(shown)?.collect().await.map_err(shown)?;
    Ok(concat_batches(&batches[0].schema(), &batches).unwrap())
}

/// The one text column of an answer.
async fn texts(session: &SessionContext, sql: &str) -> Vec<Option<String>> {
    let batch = run(session, sql).await.unwrap();
    batch.column(0).as_string_view().iter().map(|text| text.map(str::to_owned)).collect()
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

#[tokio::test]
async fn labels_of_every_level() {
    let session = session();
    let values: ArrayRef = Arc::new(StringArray::from(vec![Some("widowed"), None, Some("single")]));
    for to in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View] {
        register(&session, cast(&values, &to).unwrap());
        let level = |level: usize| format!("SELECT generalize('marital', v, {level}) FROM t");
        let expect = |first: &str, last: &str| vec![Some(first.to_owned()), None, Some(last.to_owned())];
        assert_eq!(texts(&session, &level(0)).await, expect("widowed", "single"));
        assert_eq!(texts(&session, &level(1)).await, expect("once", "never"));
        assert_eq!(texts(&session, &level(2)).await, some(&["*"; 3])); // the top takes NULL too
    }
    // Numbers by their text; the file's own top.
    register(&session, Arc::new(Int64Array::from(vec![Some(2139), None, Some(98512)])));
    let level = |level: usize| format!("SELECT generalize('zip', v, {level}) FROM t");
    assert_eq!(texts(&session, &level(0)).await[0].as_deref(), Some("2139"));
    assert_eq!(texts(&session, &level(1)).await[2].as_deref(), Some("Olympia"));
    assert_eq!(texts(&session, &level(2)).await, some(&["USA"; 3]));
    // Literals, and a NULL without a type.
    let sql = "SELECT concat(generalize('zip', 2138, 1), '!'), generalize('zip', NULL, 1)";
    let row = run(&session, sql).await.unwrap();
    assert_eq!(row.column(0).as_string_view().value(0), "Cambridge!");
    assert!(row.column(1).is_null(0) && row.column(1).data_type() == &DataType::Utf8View);
}

/// An entry that no row uses is not looked up: a dictionary is generalized by its used, distinct values.
#[tokio::test]
async fn dictionaries() {
    let session = session();
    let entries = StringArray::from(vec!["unknown", "widowed", "single"]);
    let keys = vec![Some(2), Some(1), None, Some(2)].into_iter().collect();
    register(&session, Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(entries))));
    let expected: Vec<Option<String>> =
        [Some("never"), Some("once"), None, Some("never")].map(|label| label.map(str::to_owned)).into();
    assert_eq!(texts(&session, "SELECT generalize('marital', v, 1) FROM t").await, expected);
}

#[tokio::test]
async fn groups_and_filters() {
    let session = session();
    register(&session, Arc::new(StringArray::from(vec!["widowed", "divorced", "single", "widowed"])));
    let grouped = "SELECT generalize('marital', v, 1), count(*) AS n, max(generalize('marital', v, 1))
        FROM t GROUP BY generalize('marital', v, 1) HAVING generalize('marital', v, 1) <> 'x' ORDER BY n DESC";
    let rows = run(&session, grouped).await.unwrap();
    assert_eq!(rows.schema().field(0).name(), "generalize(Utf8(\"marital\"),t.v,Int64(1))");
    assert_eq!(rows.column(0), rows.column(2));
    let filtered = "SELECT v FROM t WHERE generalize('marital', v, 1) = 'never'";
    assert_eq!(run(&session, filtered).await.unwrap().num_rows(), 1);
    let k = "SELECT k_anonymity(generalize('marital', v, 1)) AS a, k_anonymity(generalize('marital', v, 2)) FROM t";
    let k = run(&session, k).await.unwrap();
    let k =
        [0, 1].map(|column| datafusion::common::ScalarValue::try_from_array(k.column(column), 0).unwrap());
    assert_eq!(k.map(|k| k.to_string()), ["1", "4"]);
}

#[tokio::test]
async fn wrong_constants_are_errors_of_the_plan() {
    let session = session();
    register(&session, Arc::new(StringArray::from(vec!["widowed"])));
    let level = "has the levels 0 (the value) to 2 (the top), not";
    for (arguments, expected) in [
        (
            "'martial', v, 1",
            "argument 1 (hierarchy): no hierarchy `martial` is loaded; did you mean `marital`?",
        ),
        ("'x', v, 1", "no hierarchy `x` is loaded; valid: marital, zip; `load_hierarchy` loads one"),
        ("v, v, 1", "argument 1 (hierarchy): expected a literal text, found a column or an expression"),
        ("NULL, v, 1", "argument 1 (hierarchy): expected a literal text, found NULL"),
        ("7, v, 1", "argument 1 (hierarchy): expected a literal text, found a literal of type Int64"),
        ("'marital', v, 3", &format!("argument 3 (level): hierarchy `marital` {level} 3")),
        ("'marital', v, -1", &format!("argument 3 (level): hierarchy `marital` {level} -1")),
        ("'marital', v, 0.5", &format!("argument 3 (level): hierarchy `marital` {level} 0.5")),
        ("'marital', v, NULL", "argument 3 (level): expected a literal number, found NULL"),
        ("'marital', v, length(v)", "argument 3 (level): expected a literal number, found a column"),
        ("'marital', v", "generalize('hierarchy', value, level) takes 3 arguments, found 2"),
        ("'marital', arrow_cast(v, 'Binary'), 0", "argument 2 (value): values of type Binary"),
    ] {
        let sql = format!("SELECT generalize({arguments}) FROM t");
        let error = session.sql(&sql).await.unwrap_err().strip_backtrace();
        assert!(
            error.starts_with("Error during planning: generalize") && error.contains(expected),
            "{error}"
        );
    }
    let empty = SessionContext::new();
    register_all(&empty).unwrap();
    let error = empty.sql("SELECT generalize('zip', 1, 1)").await.unwrap_err().strip_backtrace();
    assert!(error.contains("no hierarchy `zip` is loaded; none is; `load_hierarchy`"), "{error}");
}

#[tokio::test]
async fn what_is_not_covered_is_counted_and_not_shown() {
    let session = session();
    register(&session, Arc::new(StringArray::from(vec!["SECRET", "widowed", "SECRET", "HIDDEN"])));
    for (sql, refused) in [
        ("SELECT generalize('marital', v, 1) FROM t", "2 distinct values"),
        (
            "SELECT generalize('marital', 'SECRET', 1)",
            "1 distinct value is not in the hierarchy file; add a line for it",
        ),
        ("SELECT generalize('zip', v, 2) FROM t", "3 distinct values"),
    ] {
        let error = run(&session, sql).await.unwrap_err();
        assert!(error.contains("generalize: hierarchy `") && error.contains(refused), "{error}");
        assert!(!error.contains("HIDDEN") && !error.contains("widowed"), "{error}");
        assert!(sql.contains("SECRET") || !error.contains("SECRET"), "{error}");
    }
    // Level 0 and a top that the table lacks take any.
    for level in [0, 2] {
        run(&session, &format!("SELECT generalize('marital', v, {level}) FROM t")).await.unwrap();
    }
}

/// What is counted by codes instead of labels is refused where labels are, and two classes where
/// they are two.
#[tokio::test]
async fn classes_of_levels_that_nobody_sees() {
    let session = session();
    let packed = |texts: &[&str], keys: &[i32]| -> ArrayRef {
        let keys = keys.iter().copied().map(Some).collect();
        Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(StringArray::from(texts.to_vec()))))
    };
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN]));
    for (values, level, expected) in [
        (packed(&["2139", "9"], &[0, 0, 0, 0]), 2, Ok(4)),
        (packed(&["2139", "9"], &[0, 1, 0, 0]), 2, Err("1 distinct value is not")),
        (packed(&["2139", "9"], &[0, 1, 0, 0]), 1, Err("1 distinct value is not")),
        (Arc::clone(&floats), 0, Ok(1)),
        (cast(&floats, &DataType::Float32).unwrap(), 0, Ok(1)),
    ] {
        let rows = values.len();
        let same = Arc::new(StringArray::from(vec!["x"; rows])) as ArrayRef;
        let columns = [("v", values), ("a", Arc::clone(&same)), ("b", same)];
        let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, true))).unwrap();
        session.deregister_table("t").unwrap();
        session.register_batch("t", batch).unwrap();
        for others in ["", ", a", ", a, b"] {
            for rewrite in [true, false] {
                session.sql(&format!("SET kanon.rewrite_measures = {rewrite}")).await.unwrap();
                let sql = format!("SELECT k_anonymity(generalize('zip', v, {level}){others}) FROM t");
                match (run(&session, &sql).await, expected) {
                    (Ok(k), Ok(expected)) => {
                        assert_eq!(
                            k.column(0).as_primitive::<Int64Type>().value(0),
                            expected,
                            "{sql} {rewrite}"
                        );
                    }
                    (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
                    (found, expected) => panic!("{sql} {rewrite}: {found:?}, not {expected:?}"),
                }
            }
        }
    }
}

#[tokio::test]
async fn a_plan_keeps_the_table_that_it_found() {
    let session = session();
    register(&session, Arc::new(StringArray::from(vec!["widowed", "single"])));
    let sql = "SELECT generalize('marital', v, 1) FROM t";
    let planned = session.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let other = table(&[&["widowed", "single"], &["alone", "alone"]]);
    load_hierarchy(&session, "marital", &other).unwrap();
    let found = collect(planned, session.task_ctx()).await.unwrap();
    assert_eq!(found[0].column(0).as_string_view().iter().collect::<Vec<_>>(), [Some("once"), Some("never")]);
    assert_eq!(texts(&session, sql).await, some(&["alone", "alone"]));
    // The new table's last column is its top.
    let error = session.sql("SELECT generalize('marital', v, 2) FROM t").await.unwrap_err();
    assert!(error.to_string().contains("to 1 (the top), not 2"), "{error}");
}

#[tokio::test]
async fn registering_again_keeps_what_is_loaded() {
    let session = session();
    register_all(&session).unwrap();
    assert_eq!(texts(&session, "SELECT generalize('zip', 2138, 1)").await, some(&["Cambridge"]));
    let again = SessionStateBuilder::new_from_existing(session.state());
    let again = SessionContext::new_with_state(configure(again).unwrap().build());
    assert_eq!(texts(&again, "SELECT generalize('zip', 2138, 1)").await, some(&["Cambridge"]));
    let mut registry = MemoryFunctionRegistry::new();
    let error = load_hierarchy(&registry, "zip", &[]).unwrap_err().strip_backtrace();
    assert!(error.contains("call `register_all` first"), "{error}");
    register_functions(&mut registry).unwrap();
    load_hierarchy(&registry, "zip", &table(&[&["1"], &["a"]])).unwrap();
}

#[tokio::test]
async fn tables_that_are_no_hierarchy_are_refused() {
    let session = session();
    for (columns, expected) in [
        (vec![&["SECRET", "SECRET"][..], &["a", "a"]], "row 2 repeats the value of row 1"),
        (vec![&["1", "2"][..], &["a", "a"], &["SECRET", "c"]], "row 2 and row 1 agree at level 1"),
        (vec![&["SECRET"][..]], "at least two columns"),
    ] {
        let error = load_hierarchy(&session, "zip", &table(&columns)).unwrap_err().strip_backtrace();
        assert!(error.starts_with("Error during planning: hierarchy `zip`: "), "{error}");
        assert!(error.contains(expected) && !error.contains("SECRET"), "{error}");
    }
    let error = load_hierarchy_file(&session, "zip", "no/such.csv").unwrap_err().strip_backtrace();
    assert!(error.contains("hierarchy `zip`: hierarchy file no/such.csv: there is no such file"), "{error}");
    // What was loaded stays.
    assert_eq!(texts(&session, "SELECT generalize('zip', 2138, 1)").await, some(&["Cambridge"]));
}

#[tokio::test]
async fn files_are_loaded_like_those_of_a_policy() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let (csv, parquet) = (folder.path().join("zip.csv"), folder.path().join("zip.parquet"));
    std::fs::write(&csv, "zip;town\n2138;Cambridge\n98512;Olympia\n").unwrap();
    load_hierarchy_file(&session, "zip", &csv).unwrap();
    assert_eq!(texts(&session, "SELECT generalize('zip', 98512, 1)").await, some(&["Olympia"]));
    assert!(run(&session, "SELECT generalize('zip', 'zip', 1)").await.is_err());
    let sql = format!("COPY (VALUES (1, 'one'), (2, 'two')) TO '{}'", parquet.display());
    run(&session, &sql).await.unwrap();
    load_hierarchy_file(&session, "numbers", &parquet).unwrap();
    assert_eq!(texts(&session, "SELECT generalize('numbers', 2, 1)").await, some(&["two"]));
}

#[tokio::test]
async fn nothing_that_is_printed_shows_a_cell() {
    let session = session();
    register(&session, Arc::new(StringArray::from(vec!["widowed"])));
    let frame = session.sql("SELECT generalize('marital', v, 1) FROM t").await.unwrap();
    let optimized = session.state().optimize(frame.logical_plan()).unwrap();
    let function = session.udf("generalize").unwrap();
    let physical = frame.create_physical_plan().await.unwrap();
    for shown in [format!("{optimized:?}"), format!("{function:?}"), format!("{physical:?}")] {
        assert!(!shown.contains("once") && !shown.contains("divorced"), "{shown}");
    }
    let bound = "generalize(Utf8(\"marital\"), t.v, Int64(1), Utf8(\"";
    assert!(format!("{optimized}").contains(bound), "{optimized}");
    assert!(function.documentation().is_some());
}

#[tokio::test]
async fn a_worker_with_another_table_of_that_name_refuses() {
    let session = session();
    register(&session, Arc::new(StringArray::from(vec!["widowed", "single"])));
    let frame = session.sql("SELECT generalize('marital', v, 1) AS label FROM t").await.unwrap();
    let optimized = frame.into_optimized_plan().unwrap();
    // A plan travels as the function's name and its arguments.
    let mut travelling = None;
    optimized
        .apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                expr.apply(|inner| {
                    if let Expr::ScalarFunction(call) = inner {
                        travelling = Some(call.args.clone());
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })
        .unwrap();
    let arguments = travelling.unwrap();
    assert_eq!(arguments.len(), 4);
    let unqualified = |expr: Expr| {
        expr.transform(|e| {
            Ok(match e {
                Expr::Column(column) => Transformed::yes(Expr::Column(Column::from_name(column.name))),
                other => Transformed::no(other),
            })
        })
    };
    let arguments: Vec<Expr> = arguments.into_iter().map(|e| unqualified(e).data().unwrap()).collect();
    let worker = self::session();
    register(&worker, Arc::new(StringArray::from(vec!["widowed", "single"])));
    let run = async || {
        let call = worker.udf("generalize").unwrap().call(arguments.clone());
        worker.table("t").await?.select(vec![call])?.collect().await
    };
    let labels = run().await.unwrap();
    assert_eq!(
        labels[0].column(0).as_string_view().iter().collect::<Vec<_>>(),
        [Some("once"), Some("never")]
    );
    let other = table(&[&["widowed", "single"], &["alone", "alone"]]);
    load_hierarchy(&worker, "marital", &other).unwrap();
    let error = run().await.unwrap_err().strip_backtrace();
    assert!(
        error.contains("argument 4 (digest): the plan was made with another hierarchy `marital`"),
        "{error}"
    );
}
