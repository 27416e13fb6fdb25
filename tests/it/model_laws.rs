//! Every class model against its definition in SQL without this crate, the view `by_definition` of its page: random
//! tables, counted in rows and in people.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_kanon::model::{ClassModel, MODELS, ModelRow, Needs};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::command::table;
use crate::house::root;

/// The value of every constant of a model in the views.
const CONSTANT: i64 = 2;

const TABLES: i64 = 3_000;

/// Tables of one to thirty visits, of few people, few values and few classes: the table, the class, the person and the
/// value of each visit. In every class some visit has a person.
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
    let given = row
        .parameters
        .iter()
        .map(|parameter| (parameter.name.to_owned(), datafusion_kanon::decimal::Decimal::integer(1).into()));
    row.with(&given.collect::<Vec<_>>()).unwrap()
}

#[tokio::test]
async fn every_model_reaches_what_its_definition_says() {
    for (people, pairs) in [
        (false, "SELECT sample, class, row_number() OVER () AS who, value FROM visits"),
        (true, "SELECT DISTINCT sample, class, who, value FROM visits WHERE who IS NOT NULL"),
    ] {
        let session = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
        datafusion_kanon::sql::register_all(&session).unwrap();
        session.register_batch("visits", visits()).unwrap();
        let pairs = format!(
            "CREATE TABLE pairs AS SELECT sample, coalesce(class, -1) AS class, who, value, {people} AS people FROM ({pairs})"
        );
        session.sql(&pairs).await.unwrap().collect().await.unwrap();
        for row in MODELS {
            let (name, model) = (row.doc.name, model_of(row));
            session.sql(&definition(name)).await.unwrap().collect().await.unwrap();
            let by_definition = "SELECT reached FROM by_definition ORDER BY sample";
            let expected = numbers(&session, by_definition).await;
            session.sql("DROP VIEW by_definition").await.unwrap().collect().await.unwrap();
            assert_eq!(expected.len(), TABLES as usize, "{name}");

            let constants = row.constants.iter().map(|_| CONSTANT.to_string());
            let columns = [(people, "who"), (model.needs() != Needs::Size, "value"), (true, "class")];
            let columns =
                columns.iter().filter(|(is_there, _)| *is_there).map(|(_, name)| (*name).to_owned());
            let arguments: Vec<String> = constants.chain(columns).collect();
            let function = if people { format!("{name}_individuals") } else { name.to_owned() };
            let call = format!("{function}({})", arguments.join(", "));
            let reached =
                numbers(&session, &format!("SELECT {call} FROM visits GROUP BY sample ORDER BY sample"))
                    .await;
            for (sample, (found, expected)) in reached.iter().zip(&expected).enumerate() {
                let is_right = match (found, expected) {
                    (Some(a), Some(b)) => a == b || (a - b).abs() <= 1e-9 * b.abs().max(1e-3),
                    (a, b) => a == b,
                };
                assert!(is_right, "{call} of table {sample}: {found:?}, by its definition {expected:?}");
            }
            // Neither all holds nor nothing: the tables are no easy ones.
            let different: std::collections::BTreeSet<u64> =
                reached.iter().map(|value| value.unwrap_or(f64::NAN).to_bits()).collect();
            assert!(different.len() > 2, "{name}: {} values", different.len());
        }
    }
}
