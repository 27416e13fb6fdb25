//! The operator that counts the rows of classes, and of values and individuals in them: the same answers as
//! from the engine's GROUP BY, for both halves and for either beside the engine's other half, with little
//! memory, too.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool, UnboundedMemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::expressions::col;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::command::table;

/// The halves of a GROUP BY that this crate's operator computes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Halves {
    None,
    First,
    Last,
    Both,
}

const OPERATOR: &str = "CountClassesExec";
const OF_SIZES: &str = "SELECT k_anonymity(a, b, c), prosecutor_risk_mean(a, b, c), sample_uniqueness(a, b, c), \
                        share_at_risk(0.2, a, b, c) FROM t";
const K: &str = "SELECT k_anonymity(a, b, c) FROM t";

/// What looks at the values or the individuals of each class, with the number of values beside the class.
const OF_VALUES: [(&str, usize); 6] = [
    ("k_anonymity(a, b, c), l_diversity(d, a, b, c), recursive_l_diversity(2, d, a, b, c)", 1),
    ("entropy_l_diversity(d, a, b, c), alpha_k_anonymity(d, a, b, c), prosecutor_risk_mean(a, b, c)", 1),
    ("l_diversity(p, a, b, c), recursive_l_diversity(3, p, a, b, c)", 1),
    ("k_anonymity_individuals(p, a, b, c)", 1),
    ("k_anonymity(a, b, c), k_anonymity_individuals(p, a, b, c), l_diversity(d, a, b, c)", 2),
    ("l_diversity_individuals(p, d, a, b, c), k_anonymity_individuals(p, a, b, c)", 2),
];

fn session(threads: usize, pool: Arc<dyn MemoryPool>) -> SessionContext {
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
    let mut config = SessionConfig::new().with_target_partitions(threads).with_batch_size(1000);
    config.options_mut().execution.sort_spill_reservation_bytes = 1000;
    let builder = SessionStateBuilder::new().with_default_features().with_runtime_env(runtime);
    let builder = datafusion_kanon::internals::sql::configure(builder.with_config(config)).unwrap();
    SessionContext::new_with_state(builder.build())
}

fn unbounded() -> Arc<dyn MemoryPool> {
    Arc::new(UnboundedMemoryPool::default())
}

/// Registers `t (a, b, c, d, p)` with at most `classes` classes of `a, b, c`, of which some are far larger
/// than others, sensitive texts `d` and individuals `p`.
fn register(session: &SessionContext, rows: u64, classes: u64, random: &mut ChaCha8Rng) {
    let class = |number: u64| number % if number % 10 < 3 { classes.div_ceil(100) } else { classes };
    let class: Vec<u64> = (0..rows).map(|_| class(random.next_u64() >> 3)).collect();
    let number = |number: u64| i64::try_from(number).unwrap();
    let a = class.iter().map(|class| (class % 7 > 0).then_some(number(class / 10)));
    let b = class.iter().map(|class| Some(format!("{:03}", class % 10)));
    let c = class.iter().map(|class| number(class % 7));
    let d = (0..rows).map(|_| random.next_u64() % 50).map(|text| (text > 0).then(|| format!("text {text}")));
    let d: ArrayRef = Arc::new(d.collect::<StringArray>());
    let p = (0..rows).map(|_| number(random.next_u64() % (rows / 2 + 1)) - 3);
    let p: ArrayRef = Arc::new(p.map(|person| (person != 0).then_some(person)).collect::<Int64Array>());
    let columns: [ArrayRef; 5] = [
        Arc::new(a.collect::<Int64Array>()),
        Arc::new(b.collect::<StringArray>()),
        Arc::new(Int64Array::from_iter_values(c)),
        d,
        p,
    ];
    session.register_batch("t", table(["a", "b", "c", "d", "p"].into_iter().zip(columns))).unwrap();
}

/// Leaves our operator in these halves, and gives the others back to the engine.
fn only(plan: Arc<dyn ExecutionPlan>, halves: Halves) -> Arc<dyn ExecutionPlan> {
    let changed = plan.transform_up(|node| {
        let aggregate = node.downcast_ref::<AggregateExec>().filter(|_| node.name() == OPERATOR);
        let Some(aggregate) = aggregate else { return Ok(Transformed::no(node)) };
        let half = match aggregate.mode().input_mode() {
            AggregateInputMode::Raw => Halves::First,
            AggregateInputMode::Partial => Halves::Last,
        };
        Ok(match halves == Halves::Both || halves == half {
            true => Transformed::no(node),
            false => Transformed::yes(Arc::new(aggregate.clone())),
        })
    });
    changed.data().unwrap()
}

/// What a query returned, the plan, the rows that our operators returned, and how often they spilled.
struct Ran {
    rows: String,
    plan: String,
    returned: Vec<usize>,
    spills: usize,
    /// The parts that were counted.
    parts: usize,
}

async fn run(session: &SessionContext, sql: &str, halves: Halves) -> Ran {
    let plan = only(session.sql(sql).await.unwrap().create_physical_plan().await.unwrap(), halves);
    let rows = collect(Arc::clone(&plan), session.task_ctx()).await.unwrap();
    let (mut returned, mut spills, mut parts) = (Vec::new(), 0, 0);
    let mut nodes = vec![Arc::clone(&plan)];
    while let Some(node) = nodes.pop() {
        if let Some(metrics) = node.metrics().filter(|_| node.name() == OPERATOR) {
            returned.extend(metrics.output_rows());
            spills += metrics.spill_count().unwrap_or_default();
            parts += metrics.sum_by_name("counted_parts").map_or(0, |parts| parts.as_usize());
        }
        nodes.extend(node.children().into_iter().cloned());
    }
    let rows = arrow::util::pretty::pretty_format_batches(&rows).unwrap().to_string();
    Ran { rows, plan: displayable(&*plan).indent(false).to_string(), returned, spills, parts }
}

#[tokio::test]
async fn either_half_works_beside_the_engines_other_half() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for (rows, classes) in [(1, 1), (3, 1), (3_000, 5), (30_000, 400), (60_000, 100_000)] {
        for threads in [1, 3] {
            let session = session(threads, unbounded());
            register(&session, rows, classes, &mut random);
            for sql in [OF_SIZES, K] {
                let expected = run(&session, sql, Halves::None).await;
                assert!(!expected.plan.contains(OPERATOR), "{}", expected.plan);
                for halves in [Halves::First, Halves::Last, Halves::Both] {
                    let ran = run(&session, sql, halves).await;
                    assert_eq!(
                        ran.rows, expected.rows,
                        "{rows} {classes} {threads} {halves:?}\n{}",
                        ran.plan
                    );
                    // One thread needs one GROUP BY, which begins with rows, and so does one row.
                    let operators = match (threads > 1 && rows > 1, halves) {
                        (false, Halves::Last) => 0,
                        (true, Halves::Both) => 2,
                        _ => 1,
                    };
                    assert_eq!(ran.plan.matches(OPERATOR).count(), operators, "{halves:?}\n{}", ran.plan);
                }
            }
        }
    }
}

/// The engine groups the classes above without a table of them, because they come in order.
#[tokio::test]
async fn values_and_individuals_are_counted_in_the_order_of_the_classes() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let pool = |bytes| -> Arc<dyn MemoryPool> { Arc::new(FairSpillPool::new(bytes)) };
    let mut spilled = 0;
    for (rows, classes) in [(1, 1), (3_000, 5), (60_000, 400), (60_000, 100_000)] {
        for threads in [1, 3] {
            let (session, small) = (session(threads, unbounded()), session(threads, pool(3 << 20)));
            register(&session, rows, classes, &mut random);
            small.register_table("t", session.table_provider("t").await.unwrap()).unwrap();
            for (measures, values) in OF_VALUES {
                let sql = format!("SELECT {measures} FROM t");
                let expected = run(&session, &sql, Halves::None).await;
                for halves in [Halves::First, Halves::Last, Halves::Both] {
                    let ran = run(&session, &sql, halves).await;
                    assert_eq!(ran.rows, expected.rows, "{rows} {classes} {halves:?}\n{}", ran.plan);
                    if threads > 1 && rows > 1 && halves != Halves::First {
                        assert!(ran.plan.contains("CountClassesExec, in order"), "{}", ran.plan);
                        assert!(ran.plan.contains("ordering_mode=Sorted"), "{}", ran.plan);
                        let lines =
                            ran.plan.lines().filter(|line| line.contains("CountClassesExec, in order"));
                        let keys = lines.map(|line| line.matches("_1_key_").count() / 2).max();
                        assert_eq!(keys, Some(values), "{}", ran.plan);
                    }
                }
                let ran = run(&small, &sql, Halves::Both).await;
                assert_eq!(ran.rows, expected.rows, "{rows} {classes}\n{}", ran.plan);
                spilled += usize::from(ran.spills > 0);
                assert_eq!(small.runtime_env().memory_pool.reserved(), 0);
            }
        }
    }
    // Where classes and values hardly repeat.
    assert!(spilled >= 5, "{spilled}");
}

/// The least size is known of each partition, and more is not returned.
#[tokio::test]
async fn k_alone_needs_one_class() {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    for (rows, classes) in [(20_000, 5), (20_000, 100_000)] {
        let session = session(2, unbounded());
        register(&session, rows, classes, &mut random);
        let ran = run(&session, K, Halves::Last).await;
        assert!(ran.returned.len() == 1 && ran.returned[0] <= 2, "{:?}\n{}", ran.returned, ran.plan);
        assert!(ran.plan.contains("CountClassesExec, of the least size"), "{}", ran.plan);
        // Of 100,000 possible classes, 20,000 rows leave one of one row in the first part of each thread.
        assert_eq!(ran.parts, if classes == 5 { 2 * 256 } else { 2 });
        let ran = run(&session, OF_SIZES, Halves::Last).await;
        assert!(ran.returned[0] >= 5 && !ran.plan.contains("of the least size"), "{}", ran.plan);
    }
}

/// Whatever needs more than the rows of each class is left to the engine.
#[tokio::test]
async fn other_groupings_stay_the_engines() {
    let session = session(2, unbounded());
    register(&session, 3_000, 50, &mut ChaCha8Rng::seed_from_u64(3));
    for (measures, is_counted) in [
        ("k_anonymity(a, b, c)", true),
        ("average_risk(a, b, c)", true),
        ("k_anonymity(a, c)", false),
        ("k_anonymity(a, b, c), max(a)", false),
        ("k_anonymity(a, b, c) FILTER (WHERE c > 2), average_risk(a, b, c)", false),
        ("l_diversity(d, a, b, c)", true),
        ("l_diversity(CAST(p AS DOUBLE), a, b, c)", false),
        ("l_diversity(d, a, b, c) FILTER (WHERE c > 2), k_anonymity(a, b, c)", false),
        ("k_anonymity_individuals(p, a, b, c)", true),
        ("k_anonymity_individuals(CAST(p AS DOUBLE), a, b, c)", false),
    ] {
        for (of, each) in [("", is_counted), (" GROUP BY c", false)] {
            let sql = format!("SELECT {measures} FROM t{of}");
            let ours = run(&session, &sql, Halves::Both).await;
            assert_eq!(ours.plan.contains(OPERATOR), each, "{sql}\n{}", ours.plan);
        }
    }
}

#[tokio::test]
async fn with_little_memory_it_spills_and_counts_the_same() {
    let mut random = ChaCha8Rng::seed_from_u64(4);
    for threads in [1, 2] {
        let pool = |bytes| -> Arc<dyn MemoryPool> { Arc::new(FairSpillPool::new(bytes)) };
        let (large, small) = (session(threads, pool(1 << 30)), session(threads, pool(4 << 20)));
        register(&large, 300_000, 1_000_000, &mut random);
        small.register_table("t", large.table_provider("t").await.unwrap()).unwrap();
        for sql in [OF_SIZES, K] {
            let expected = run(&large, sql, Halves::None).await;
            let ran = run(&small, sql, Halves::Both).await;
            assert_eq!(ran.rows, expected.rows, "{}", ran.plan);
            assert!(ran.spills > 0, "{}", ran.plan);
            assert_eq!(small.runtime_env().memory_pool.reserved(), 0);
        }
    }
}

/// A user's column can have the name of ours, and any values.
#[tokio::test]
async fn a_column_of_this_name_is_counted_like_any_other() {
    let session = session(2, unbounded());
    // Multiples of 2^64 + 2^32, and NULL.
    let key = "CASE WHEN value % 5 = 0 THEN NULL ELSE value / 3 * 18446744078004518912 END";
    let values =
        format!("SELECT CAST({key} AS DECIMAL(38, 0)) AS kanon_class_key_0 FROM generate_series(1, 20000)");
    let sql = format!(
        "SELECT kanon_class_key_0, count(1) AS n FROM ({values}) GROUP BY 1 ORDER BY 2 DESC, 1 NULLS FIRST LIMIT 20"
    );
    let (ours, engines) = (run(&session, &sql, Halves::Both).await, run(&session, &sql, Halves::None).await);
    assert!(
        ours.plan.contains(OPERATOR) && engines.rows.contains("| 4000 "),
        "{}{}",
        ours.plan,
        engines.rows
    );
    assert_eq!(ours.rows, engines.rows);
}

const OF_COLUMN: &str = "SELECT CAST(value % 9 AS DECIMAL(38, 0)) AS kanon_class_key_0, value AS b \
                         FROM generate_series(1, 20000)";

/// The name alone is not enough: anything but a count of all rows is left to the engine.
#[tokio::test]
async fn other_counts_stay_the_engines() {
    let session = session(2, unbounded());
    for (count, is_counted) in [
        ("count(*)", true),
        ("count(7)", true),
        ("count(*) FILTER (WHERE b > 5)", false),
        ("count(DISTINCT 1)", false),
        ("count(CASE WHEN b > 5 THEN 1 END)", false),
        ("count(NULL)", false),
        ("count(*), count(b / 2)", false),
        ("sum(1)", false),
    ] {
        let sql = format!("SELECT kanon_class_key_0, {count} FROM ({OF_COLUMN}) GROUP BY 1 ORDER BY 1");
        let (ours, engines) =
            (run(&session, &sql, Halves::Both).await, run(&session, &sql, Halves::None).await);
        assert_eq!(ours.plan.contains(OPERATOR), is_counted, "{sql}\n{}", ours.plan);
        assert_eq!(ours.rows, engines.rows, "{sql}");
    }
}

/// A worker may run the rules over a plan again.
#[tokio::test]
async fn the_rule_leaves_a_plan_of_its_own_as_it_is() {
    let session = session(3, unbounded());
    register(&session, 3000, 50, &mut ChaCha8Rng::seed_from_u64(7));
    let of_values = OF_VALUES.map(|(measures, _)| format!("SELECT {measures} FROM t"));
    for sql in [OF_SIZES, K].into_iter().chain(of_values.iter().map(String::as_str)) {
        let state = session.state();
        let rule = state.physical_optimizers().iter().find(|rule| rule.name() == "count_classes").unwrap();
        let once = session.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        let twice = rule.optimize(Arc::clone(&once), state.config_options()).unwrap();
        let [once_shown, twice_shown] =
            [&once, &twice].map(|plan| displayable(&**plan).indent(true).to_string());
        assert!(once_shown.contains(OPERATOR), "{once_shown}");
        assert_eq!(twice_shown, once_shown);
        // They share nodes that run once.
        let expected = session.sql(sql).await.unwrap().collect().await.unwrap();
        assert_eq!(collect(twice, session.task_ctx()).await.unwrap(), expected);
    }
}

/// Over rows in the order of the classes the engine's GROUP BY returns them in this order, and ours would not.
#[tokio::test]
async fn over_an_ordered_child_it_becomes_the_engines() {
    let session = session(2, unbounded());
    let sql = format!("SELECT kanon_class_key_0, count(*) FROM ({OF_COLUMN}) GROUP BY 1");
    let plan = session.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
    let mut nodes = vec![plan];
    let operator = loop {
        let node = nodes.pop().unwrap();
        nodes.extend(node.children().into_iter().cloned());
        if node.name() == OPERATOR && nodes[0].name() != "RepartitionExec" {
            break node;
        }
    };
    let [child] = &operator.children()[..] else { panic!("{operator:?}") };
    let column = col("kanon_class_key_0", &child.schema()).unwrap();
    let sorted = SortExec::new([PhysicalSortExpr::new_default(column)].into(), Arc::clone(child));
    let over = |child| {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        Arc::clone(&operator).replace_children(vec![child], options).unwrap()
    };
    assert_eq!(over(Arc::new(sorted)).name(), "AggregateExec");
    assert_eq!(over(Arc::clone(child)).name(), OPERATOR);
    assert_eq!(Arc::clone(&operator).reset_state().unwrap().name(), OPERATOR);
}

/// What promised the order of the classes keeps it where the engine's GROUP BY takes its place.
#[tokio::test]
async fn the_order_of_the_classes_stays_over_another_child() {
    let session = session(2, unbounded());
    register(&session, 3000, 50, &mut ChaCha8Rng::seed_from_u64(6));
    let plan = session.sql("SELECT l_diversity(p, a, b, c) FROM t").await.unwrap();
    let mut nodes = vec![plan.create_physical_plan().await.unwrap()];
    let operator = loop {
        let node = nodes.pop().unwrap();
        nodes.extend(node.children().into_iter().cloned());
        if node.name() == OPERATOR && displayable(&*node).one_line().to_string().contains("in order") {
            break node;
        }
    };
    let child = Arc::clone(operator.children()[0]);
    let value = child.schema().field(1).name().clone();
    let by_value = PhysicalSortExpr::new_default(col(&value, &child.schema()).unwrap());
    let sorted = SortExec::new([by_value].into(), child).with_preserve_partitioning(true);
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    let replaced = Arc::clone(&operator).replace_children(vec![Arc::new(sorted)], options).unwrap();
    assert_eq!(replaced.name(), "SortExec");
    let ordering = |plan: &Arc<dyn ExecutionPlan>| plan.output_ordering().unwrap().to_string();
    assert_eq!(ordering(&replaced), ordering(&operator));
}
