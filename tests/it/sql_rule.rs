//! The rule `k_anonymity_to_group_by` beyond answers on random rows: prepared statements, FILTER,
//! what is read once, memory.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::sync::Arc;

use arrow::array::{Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use datafusion_kanon::internals::sql::{load_hierarchy, register_all};

use crate::command::table;
use crate::sql_measures::answer;

fn session() -> SessionContext {
    let session = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    register_all(&session).unwrap();
    let rows = table([
        ("id", Arc::new(Int64Array::from(vec![1, 1, 2, 3, 3, 4, 5])) as _),
        (
            "x",
            Arc::new(Int64Array::from(vec![Some(0), Some(1), Some(1), Some(2), Some(2), None, Some(1)])) as _,
        ),
        ("y", Arc::new(Float64Array::from(vec![0.5, f64::NAN, 1.5, -0.0, 0.0, 2.5, 1.5])) as _),
        ("s", Arc::new(StringArray::from(vec!["one", "1", "1", "2", "2", "4", "5"])) as _),
        ("z", Arc::new(StringArray::from(vec!["a", "a", "b", "b", "b", "a", "a"])) as _),
    ]);
    session.register_batch("t", rows).unwrap();
    session
}

async fn plan(session: &SessionContext, sql: &str) -> String {
    let plan = session.sql(sql).await.unwrap().into_optimized_plan().unwrap();
    plan.display_indent().to_string()
}

async fn physical(session: &SessionContext, sql: &str) -> String {
    let plan = session.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    datafusion::physical_plan::displayable(&*plan).indent(false).to_string()
}

/// The answer with the rule and the one without.
async fn both(session: &SessionContext, sql: &str) -> [Result<Vec<Vec<String>>, String>; 2] {
    let mut all = [Ok(Vec::new()), Ok(Vec::new())];
    for (rewrite, found) in [true, false].into_iter().zip(&mut all) {
        session.sql(&format!("SET kanon.rewrite_measures = {rewrite}")).await.unwrap();
        *found = answer(session, sql).await.map_err(|error| error.to_string());
    }
    session.sql("SET kanon.rewrite_measures = true").await.unwrap();
    all
}

#[tokio::test]
async fn a_prepared_statement_has_a_new_seed_each_time() {
    let session = session();
    answer(&session, "PREPARE p AS EXPLAIN SELECT k_anonymity(x, y, z) FROM t").await.unwrap();
    let [first, second] =
        [answer(&session, "EXECUTE p").await.unwrap(), answer(&session, "EXECUTE p").await.unwrap()];
    assert!(format!("{first:?}").contains("kanon_class_key("), "{first:?}");
    assert_ne!(first, second);
}

#[tokio::test]
async fn prepared_statements_compare_values_as_direct_queries_do() {
    let session = session();
    for (of, more, expected) in [
        ("arrow_cast(a, 'Dictionary(Int32, Float64)')", "", "2.000000000e0"),
        ("arrow_cast(a, 'Dictionary(Int32, Float64)')", ", b, b + 1", "2.000000000e0"),
        ("arrow_cast(a, 'Float16')", "", "2.000000000e0"),
        ("arrow_cast(a, 'Float16')", ", b, b + 1", "2.000000000e0"),
    ] {
        let from = "FROM (VALUES (0.0, 1), (-0.0, 1), (1.0, 1), (1.0, 1)) t(a, b) WHERE a >= ";
        let query = format!("SELECT k_anonymity({of}{more}), min({of}), count(*) {from}");
        let direct = answer(&session, &format!("{query}0")).await.unwrap();
        assert_eq!(direct[0][0], expected, "{query}");
        answer(&session, &format!("PREPARE p AS {query}$1")).await.unwrap();
        assert_eq!(answer(&session, "EXECUTE p(0)").await.unwrap(), direct, "{query}");
        answer(&session, "DEALLOCATE p").await.unwrap();

        // The rule alone, without the analyzer, which coerces types.
        let state = session.state();
        let planned = state.create_logical_plan(&format!("{query}0")).await.unwrap();
        let optimized = state.optimizer().optimize(planned, &state, |_, _| {}).unwrap();
        assert!(optimized.display_indent().to_string().contains("kanon_0_1"), "{optimized}");
        let found = DataFrame::new(state, optimized).collect().await.unwrap();
        assert_eq!(number(&found[0]), 2, "{query}");
    }
}

/// The engine gives two expressions one name when it optimizes a statement twice.
#[tokio::test]
async fn prepared_statements_compute_common_expressions_apart() {
    let session = session();
    for query in [
        "SELECT avg(x), stddev(x), min(id * 2), max(id * 2) FROM t WHERE 1 = ",
        "SELECT k_anonymity(id + 1, z, s), sample_uniqueness(s, id + 1, z), avg(x) FROM t WHERE 1 = ",
    ] {
        let direct = answer(&session, &format!("{query}1")).await.unwrap();
        answer(&session, &format!("PREPARE p AS {query}$1")).await.unwrap();
        assert_eq!(answer(&session, "EXECUTE p(1)").await.unwrap(), direct, "{query}");
        answer(&session, "DEALLOCATE p").await.unwrap();
    }
}

fn number(batch: &RecordBatch) -> i64 {
    let text = arrow::util::display::array_value_to_string(batch.column(0), 0).unwrap();
    text.parse().unwrap()
}

#[tokio::test]
async fn filter_keeps_rows_from_arguments_that_fail() {
    let session = session();
    let hierarchy = RecordBatch::clone(&table([
        ("value", Arc::new(StringArray::from(vec!["1", "2"])) as _),
        ("label", Arc::new(StringArray::from(vec!["few", "few"])) as _),
    ]));
    load_hierarchy(&session, "sizes", &[hierarchy]).unwrap();
    // Whether the rule rewrites is written out: None where an error is right.
    for (measures, rewritten) in [
        ("k_anonymity(10 / x) FILTER (WHERE x <> 0)", true),
        ("k_anonymity(10 / x, z) FILTER (WHERE x <> 0), count(*) FILTER (WHERE x <> 0)", true),
        ("k_anonymity(10 / x) FILTER (WHERE x <> 0), count(*)", true),
        ("k_anonymity(10 / x) FILTER (WHERE x <> 0), k_anonymity(z)", true),
        ("k_anonymity(10 / x) FILTER (WHERE x <> 0), k_anonymity(20 / x) FILTER (WHERE x = 1)", true),
        ("k_anonymity(z), sum(10 / x) FILTER (WHERE x <> 0)", true),
        ("k_anonymity(z) FILTER (WHERE x <> 0), sum(10 / x) FILTER (WHERE x <> 0)", true),
        ("k_anonymity(10 / x) FILTER (WHERE 10 / (x + 1) > 0 AND x <> 0)", false),
        ("k_anonymity(CAST(s AS INT)) FILTER (WHERE s <> 'one')", true),
        ("l_diversity(CAST(s AS INT), z) FILTER (WHERE s <> 'one')", true),
        ("k_anonymity_individuals(CAST(s AS INT), z) FILTER (WHERE s <> 'one')", true),
        ("share_at_risk_individuals(0.4, CAST(s AS INT), z) FILTER (WHERE s <> 'one')", true),
        ("k_anonymity(generalize('sizes', x, 1)) FILTER (WHERE x IN (1, 2))", true),
        ("k_anonymity(generalize('sizes', x, 1), z) FILTER (WHERE x IN (1, 2)), max(y)", true),
        ("k_anonymity(x, z) FILTER (WHERE 10 / (x + 1) > 3)", true),
    ] {
        let sql = format!("SELECT {measures} FROM t");
        let [with, without] = both(&session, &sql).await;
        assert!(without.is_ok(), "{sql}: {without:?}");
        assert_eq!(with, without, "{sql}");
        let plan = plan(&session, &sql).await;
        assert_eq!(plan.contains("kanon_0_"), rewritten, "{sql}\n{plan}");
    }
    // The engine evaluates the arguments of a grouped aggregate for all rows, with the rule and without.
    let [with, without] =
        both(&session, "SELECT z, k_anonymity(10 / x) FILTER (WHERE x <> 0) FROM t GROUP BY z").await;
    assert!(with.is_err() && without.is_err(), "{with:?} {without:?}");
    let [with, without] =
        both(&session, "SELECT z, k_anonymity(y) FILTER (WHERE x = 2) FROM t GROUP BY z").await;
    assert_eq!(with.unwrap(), without.unwrap());
}

#[tokio::test]
async fn a_common_filter_is_a_filter_below_where_the_input_cannot_fail() {
    let session = session();
    for (sql, is_below) in [
        ("SELECT k_anonymity(z) FILTER (WHERE x > 0), count(*) FILTER (WHERE x > 0) FROM t", true),
        ("SELECT k_anonymity(z) FILTER (WHERE x > 0), count(*) FROM t", false),
        ("SELECT y, k_anonymity(z) FILTER (WHERE x > 0) FROM t GROUP BY y", false),
        // The engine would merge both conditions and divide before it looks whether x is 0.
        ("SELECT k_anonymity(q) FILTER (WHERE q > 1) FROM (SELECT 10 / x AS q FROM t WHERE x <> 0)", false),
    ] {
        let plan = plan(&session, sql).await;
        assert_eq!(plan.contains("Filter: t.x > Int64(0)"), is_below, "{sql}\n{plan}");
        assert!(plan.contains("kanon_0_1"), "{plan}");
        let [with, without] = both(&session, sql).await;
        assert_eq!(with.unwrap(), without.unwrap(), "{sql}");
    }
    // No row passes: there is still a row.
    let [with, without] =
        both(&session, "SELECT k_anonymity(z) FILTER (WHERE x > 9), count(*) FILTER (WHERE x > 9) FROM t")
            .await;
    assert_eq!(with.clone().unwrap(), [["NULL", "0.000000000e0"]]);
    assert_eq!(with, without);
}

#[tokio::test]
async fn risks_of_individuals_keep_no_table_in_memory() {
    let session = session();
    for sql in [
        "SELECT share_at_risk_individuals(0.4, id, x, z) FROM t",
        "SELECT z, share_at_risk_individuals(0.4, id, x), sample_uniqueness_individuals(id, x) FILTER (WHERE y > 0), \
         count(*) FROM t GROUP BY z",
        "SELECT y, prosecutor_risk_mean_individuals(id, x) FROM t GROUP BY y",
        "SELECT * FROM risk(t, 'x', 'z', 'y', individual => 'id')",
    ] {
        let plan = physical(&session, sql).await;
        assert!(plan.contains("SortMergeJoinExec") && !plan.contains("WindowAggExec"), "{sql}\n{plan}");
        let [with, without] = both(&session, sql).await;
        assert_eq!(with.unwrap(), without.unwrap(), "{sql}");
    }
    // Only our join changes.
    let plan = physical(&session, "SELECT count(*) FROM t AS a JOIN t AS b ON a.z = b.z").await;
    assert!(plan.contains("HashJoinExec") && !plan.contains("SortMergeJoinExec"), "{plan}");
    for of in [
        "classes(t, 'x', sensitive => 's', sensitive => 'z', individual => 'id')",
        "link(t, t, 'x', sensitive => 's', individual_of_b => 'id')",
    ] {
        let plan = physical(&session, &format!("SELECT * FROM {of}")).await;
        assert!(!plan.contains("WindowAggExec"), "{plan}");
    }
}

#[tokio::test]
async fn aggregates_without_layers_get_a_branch() {
    let session = session();
    for (others, groups) in [
        ("max(y)", ""),
        ("count(DISTINCT x), stddev(y), avg(x)", ""),
        ("avg(CAST(x AS DECIMAL(10, 2))), median(x)", ""),
        ("array_agg(x ORDER BY x, y), first_value(s ORDER BY id, s)", ""),
        ("max(y), count(*), count(DISTINCT z) FILTER (WHERE x > 0)", " GROUP BY x"),
        ("count(DISTINCT x), max(y) + 1", " GROUP BY z, s"),
    ] {
        let keys = groups.strip_prefix(" GROUP BY ").map(|keys| format!("{keys}, ")).unwrap_or_default();
        let sql = format!("SELECT {keys}k_anonymity(x, s), {others}, sample_uniqueness(s) FROM t{groups}");
        let plan = plan(&session, &sql).await;
        assert!(plan.contains("kanon_0_1") && plan.contains("kanon_2_1"), "{sql}\n{plan}");
        let [with, without] = both(&session, &sql).await;
        assert_eq!(with.unwrap(), without.unwrap(), "{sql}");
    }
    // Input that may change is read once, by the accumulator.
    let once = "SELECT k_anonymity(x), max(y) FROM (SELECT * FROM t LIMIT 5)";
    assert!(!plan(&session, once).await.contains("kanon_0_1"));
    assert!(
        plan(&session, "SELECT k_anonymity(x), max(x) FROM (SELECT * FROM t LIMIT 5)")
            .await
            .contains("kanon_0_1")
    );
}

#[tokio::test]
async fn rows_are_repartitioned_once_for_two_layers() {
    let session = session();
    for (measures, groups, layers) in [
        ("k_anonymity(x, s, z), l_diversity(y, z, x, s)", "", 2),
        ("k_anonymity_individuals(id, x, s)", "", 2),
        ("t_closeness(y, x, s), k_anonymity(s, x)", " GROUP BY z", 3),
    ] {
        let sql = format!("SELECT {measures} FROM t{groups}");
        let plan = physical(&session, &sql).await;
        // The rows of the lowest layer once, and those of the answers where they are grouped.
        assert_eq!(plan.matches("RepartitionExec: partitioning=Hash").count(), layers - 1, "{plan}");
        assert_eq!(plan.matches("mode=SinglePartitioned").count(), 1, "{plan}");
        let [with, without] = both(&session, &sql).await;
        assert_eq!(with.unwrap(), without.unwrap(), "{sql}");
    }
}

#[tokio::test]
async fn plans_are_reproducible_and_follow_the_call() {
    let sql = "SELECT k_anonymity(z, x), l_diversity(s, x, z) FROM t";
    let first = plan(&session(), sql).await;
    assert!(first.contains("groupBy=[[t.z AS kanon_0_1_key_0, t.x AS kanon_0_1_key_1, t.s"), "{first}");
    for _ in 0..5 {
        assert_eq!(plan(&session(), sql).await, first);
    }
}

#[tokio::test]
async fn inputs_that_are_correlated_deep_inside_are_left_alone() {
    let session = session();
    for sql in [
        "SELECT a.id, (SELECT k_anonymity(b.x) FROM (SELECT * FROM t AS c WHERE c.z = a.z) AS b) FROM t AS a",
        "SELECT DISTINCT z FROM t AS a WHERE a.x < (SELECT k_anonymity(b.s) FROM (SELECT * FROM t AS c WHERE c.z = a.z) AS b)",
    ] {
        let [with, without] = both(&session, sql).await;
        assert_eq!(with, without, "{sql}");
        assert!(without.is_ok(), "{sql}: {without:?}");
    }
}
