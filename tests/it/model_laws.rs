//! Every model against its definition in SQL without this crate, the view `by_definition` of its
//! page: random tables, counted in rows and in individuals. Models that look at a population have a
//! random one beside each table.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_kanon::internals::model::{ClassModel, MODELS, ModelRow, Needs};
use datafusion_kanon::internals::parameter::Kind;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::command::table;
use crate::house::root;

/// The value of every constant of a model in the views.
const CONSTANT: i64 = 2;

const TABLES: i64 = 3_000;

/// Tables of one to thirty visits, of few people, few values and few classes: the table, the class,
/// the person and the value of each visit. In every class some visit has a person.
fn visits() -> RecordBatch {
    let mut random = ChaCha8Rng::seed_from_u64(17);
    let mut below = move |end: u64| (random.next_u64() % end) as i64;
    let mut rows: Vec<(i64, Option<i64>, Option<i64>, Option<i64>)> = Vec::new();
    for sample in 0..TABLES {
        let (classes, people, values) = (1 + below(4) as u64, 1 + below(8) as u64, 1 + below(6) as u64);
        for visit in 0..1 + below(30) {
            let class = below(classes + 1);
            // Values that are small are frequent.
            let value = below(values).min(below(values + 1));
            let who = (below(9) > 0).then(|| below(people));
            let value = Some(value).filter(|_| below(9) > 0);
            rows.push((sample, Some(class).filter(|class| *class > 0), who, value));
            if visit == 0 || who.is_none() {
                rows.push((sample, Some(class).filter(|class| *class > 0), Some(below(people)), value));
            }
        }
    }
    let column = |of: fn(&(i64, Option<i64>, Option<i64>, Option<i64>)) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Int64Array>())
    };
    table([
        ("sample", column(|row| Some(row.0))),
        ("class", column(|row| row.1)),
        ("who", column(|row| row.2)),
        ("value", column(|row| row.3)),
    ])
}

/// The statement of the page that creates the view.
fn definition(model: &str) -> String {
    let page: PathBuf = root().join("sql/model").join(format!("{model}.slt"));
    let text = std::fs::read_to_string(page).unwrap();
    let blocks = text.split("\n\n").filter_map(|block| block.strip_prefix("statement ok\n"));
    let views: Vec<&str> = blocks.filter(|block| block.starts_with("CREATE VIEW by_definition AS")).collect();
    let [view] = views.as_slice() else { panic!("{model}: no definition in SQL, or several") };
    (*view).to_owned()
}

async fn numbers(session: &SessionContext, sql: &str) -> Vec<Option<f64>> {
    let batches = session.sql(sql).await.unwrap().collect().await.unwrap();
    let mut all = Vec::new();
    for batch in &batches {
        let floats = cast(batch.column(0), &DataType::Float64).unwrap();
        all.extend(floats.as_primitive::<Float64Type>().iter());
    }
    all
}

fn model_of(row: &ModelRow) -> Box<dyn ClassModel> {
    let given = row.parameters.iter().map(|parameter| {
        (parameter.name.to_owned(), datafusion_kanon::internals::decimal::Decimal::integer(1).into())
    });
    row.with(&given.collect::<Vec<_>>()).unwrap()
}

/// Returns the argument that a call passes for a constant: a number, or the name of the loaded hierarchy.
fn constant(kind: Kind) -> String {
    match kind {
        Kind::File => "'levels'".into(),
        _ => CONSTANT.to_string(),
    }
}

/// Creates the labels of the values 0 to 5 as the table `levels`, and loads them as a hierarchy of this name.
async fn load_levels(session: &SessionContext) {
    let labels = "SELECT value, 1 AS level, concat('half ', CAST(value / 2 AS VARCHAR)) AS label FROM generate_series(0, 5) AS t (value)
                  UNION ALL SELECT value, 2, concat('quarter ', CAST(value / 4 AS VARCHAR)) FROM generate_series(0, 5) AS t (value)
                  UNION ALL SELECT value, 3, '*' FROM generate_series(0, 5) AS t (value)";
    run(session, &format!("CREATE TABLE levels AS {labels}")).await;
    run(session, "SELECT * FROM load_hierarchy('levels', levels)").await;
}

async fn run(session: &SessionContext, sql: &str) {
    session.sql(sql).await.unwrap().collect().await.unwrap();
}

/// A session with the random tables `visits`, and `pairs` of the rows or the individuals in their classes.
async fn session_of(people: bool) -> SessionContext {
    let pairs = if people {
        "SELECT DISTINCT sample, class, who, value FROM visits WHERE who IS NOT NULL"
    } else {
        "SELECT sample, class, row_number() OVER () AS who, value FROM visits"
    };
    let session = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    datafusion_kanon::internals::sql::register_all(&session).unwrap();
    session.register_batch("visits", visits()).unwrap();
    let pairs = format!(
        "CREATE TABLE pairs AS SELECT sample, coalesce(class, -1) AS class, who, value, {people} AS people FROM ({pairs})"
    );
    run(&session, &pairs).await;
    session
}

/// Returns what a model reached for every table by the definition of its page.
async fn by_definition(session: &SessionContext, model: &str, samples: i64) -> Vec<Option<f64>> {
    run(session, &definition(model)).await;
    let sql = format!("SELECT reached FROM by_definition WHERE sample < {samples} ORDER BY sample");
    let expected = numbers(session, &sql).await;
    run(session, "DROP VIEW by_definition").await;
    assert_eq!(expected.len(), samples as usize, "{model}");
    expected
}

fn assert_same(call: &str, reached: &[Option<f64>], expected: &[Option<f64>]) {
    assert_eq!(reached.len(), expected.len(), "{call}");
    for (sample, (found, expected)) in reached.iter().zip(expected).enumerate() {
        let is_right = match (found, expected) {
            (Some(a), Some(b)) => a == b || (a - b).abs() <= 1e-9 * b.abs().max(1e-3),
            (a, b) => a == b,
        };
        assert!(is_right, "{call} of table {sample}: {found:?}, by its definition {expected:?}");
    }
    // Neither all holds nor nothing: the tables are no easy ones.
    let different: std::collections::BTreeSet<u64> =
        reached.iter().map(|value| value.unwrap_or(f64::NAN).to_bits()).collect();
    assert!(different.len() > 2, "{call}: {} values", different.len());
}

#[tokio::test]
async fn every_model_reaches_what_its_definition_says() {
    for people in [false, true] {
        let session = session_of(people).await;
        load_levels(&session).await;
        let mut all: Vec<(String, Vec<Option<f64>>)> = Vec::new();
        for row in MODELS {
            let (name, model) = (row.doc.name, model_of(row));
            // A population is a second table, so these models are table functions: see below.
            if model.needs() == Needs::Population {
                continue;
            }
            let expected = by_definition(&session, name, TABLES).await;
            let constants = row.constants.iter().map(|parameter| constant(parameter.kind));
            let columns = [(people, "who"), (model.needs().reads_column(), "value"), (true, "class")];
            let columns =
                columns.iter().filter(|(is_there, _)| *is_there).map(|(_, name)| (*name).to_owned());
            let arguments: Vec<String> = constants.chain(columns).collect();
            let function = if people { format!("{name}_individuals") } else { name.to_owned() };
            let call = format!("{function}({})", arguments.join(", "));
            let reached =
                numbers(&session, &format!("SELECT {call} FROM visits GROUP BY sample ORDER BY sample"))
                    .await;
            assert_same(&call, &reached, &expected);
            all.push((call, expected));
        }
        all_in_one_query(&session, &all).await;
    }
}

/// Asks for all models of one sensitive column at once, in groups and without, by the rule and by
/// the accumulators.
async fn all_in_one_query(session: &SessionContext, all: &[(String, Vec<Option<f64>>)]) {
    // What looks at each individual's smallest class has a plan of its own.
    let all: Vec<_> = all.iter().filter(|(call, _)| !call.contains("average_risk_individuals")).collect();
    let calls: Vec<&str> = all.iter().map(|(call, _)| call.as_str()).collect();
    let (calls, ends) = (calls.join(", "), "GROUP BY sample ORDER BY sample");
    let (of_groups, of_one) =
        (format!("SELECT {calls} FROM visits {ends}"), format!("SELECT {calls} FROM visits WHERE sample = "));
    let plan =
        session.sql(&of_groups).await.unwrap().into_optimized_plan().unwrap().display_indent().to_string();
    assert_eq!(plan.matches("TableScan").count(), 1, "{plan}");
    for rewrite in [true, false] {
        run(session, &format!("SET kanon.rewrite_measures = {rewrite}")).await;
        let groups = session.sql(&of_groups).await.unwrap().collect().await.unwrap();
        let groups = concat_batches(&groups[0].schema(), &groups).unwrap();
        let mut ones = Vec::new();
        for sample in 0..20 {
            ones.extend(session.sql(&format!("{of_one}{sample}")).await.unwrap().collect().await.unwrap());
        }
        let ones = concat_batches(&groups.schema(), &ones).unwrap();
        for (at, (call, expected)) in all.iter().enumerate() {
            for (batch, samples) in [(&groups, TABLES as usize), (&ones, 20)] {
                let floats = cast(batch.column(at), &DataType::Float64).unwrap();
                let reached: Vec<Option<f64>> = floats.as_primitive::<Float64Type>().iter().collect();
                assert_same(call, &reached, &expected[..samples]);
            }
        }
    }
    run(session, "SET kanon.rewrite_measures = true").await;
}

/// The number of tables of the models that look at a population: each is a query of its own.
const TABLES_WITH_POPULATION: i64 = 60;

/// Every table has a population of all its visits, most of them twice or more; some tables lack one
/// of their people in it.
#[tokio::test]
async fn every_model_of_a_population_reaches_what_its_definition_says() {
    for people in [false, true] {
        let session = session_of(people).await;
        let census = "CREATE TABLE census AS
            SELECT sample, class, who FROM visits WHERE sample % 3 > 0 OR who > 0
            UNION ALL SELECT sample, class, who + 10 FROM visits WHERE who % 2 = sample % 2
            UNION ALL SELECT sample, coalesce(class, 0) + 1, who FROM visits WHERE sample % 4 = 0";
        run(&session, census).await;
        let who = if people { "who" } else { "row_number() OVER ()" };
        let of_census = format!(
            "CREATE TABLE population_pairs AS SELECT sample, coalesce(class, -1) AS class, {who} AS who FROM census
             WHERE {}",
            if people { "who IS NOT NULL" } else { "true" }
        );
        run(&session, &of_census).await;
        for row in MODELS.iter().filter(|row| model_of(row).needs() == Needs::Population) {
            let name = row.doc.name;
            let expected = by_definition(&session, name, TABLES_WITH_POPULATION).await;
            let individual = if people { ", individual => who" } else { "" };
            let mut reached = Vec::new();
            for sample in 0..TABLES_WITH_POPULATION {
                let of_sample = |table: &str| format!("(SELECT * FROM {table} WHERE sample = {sample})");
                let (table, population) = (of_sample("visits"), of_sample("census"));
                let call = format!("SELECT reached FROM {name}({table}, {population}, 'class'{individual})");
                reached.extend(numbers(&session, &call).await);
            }
            assert_same(name, &reached, &expected);
        }
    }
}
