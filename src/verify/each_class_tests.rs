//! The two ways to see the classes of a table: a plain GROUP BY here, keys and rules in the engine.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringViewArray};
use arrow::record_batch::RecordBatch;
use datafusion::prelude::DataFrame;

use super::{CountedColumn, InClasses, each_class};
use crate::class::{Budget, Unlimited};
use crate::decimal::Decimal;
use crate::engine::functions::random_keys;
use crate::engine::{Resources, Rules, column, counting_rules, each_class as by_keys};
use crate::model::t_closeness_ordered::TClosenessOrdered;
use crate::model::{ClassModel, Quantity, ReadFacts, SeenClass, SensitiveColumn};
use crate::progress::CancelToken;
use crate::verify::per_class::individual;

/// Rows that depend on the seed alone, in several batches; one in eight cells is NULL.
fn rows(seed: u64) -> Vec<RecordBatch> {
    let mut state = seed;
    let mut below = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let mut batch = |rows: u64| {
        let mut draw = |end: u64| -> Vec<Option<u64>> {
            (0..rows).map(|_| Some(below(end)).filter(|_| below(8) > 0)).collect()
        };
        let texts = |cells: Vec<Option<u64>>| -> ArrayRef {
            Arc::new(
                cells
                    .iter()
                    .map(|cell| cell.map(|cell| format!("a text of some length {cell}")))
                    .collect::<StringViewArray>(),
            )
        };
        let numbers = |cells: Vec<Option<u64>>| -> ArrayRef {
            Arc::new(cells.iter().map(|cell| cell.map(|cell| cell as i64 - 2)).collect::<Int64Array>())
        };
        let floats = |cells: Vec<Option<u64>>| -> ArrayRef {
            Arc::new(cells.iter().map(|cell| cell.map(|cell| cell as f64 / 4.0)).collect::<Float64Array>())
        };
        let columns = [
            ("zip", texts(draw(4))),
            ("age", numbers(draw(3))),
            ("diagnosis", texts(draw(5))),
            ("weight", floats(draw(6))),
            ("who", texts(draw(40))),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
    };
    vec![batch(70), batch(1), batch(50)]
}

/// A class without the numbers that are given to values and individuals.
type Described = (u64, u64, u64, Vec<Vec<(bool, u64)>>, Option<usize>, Quantity);

fn describe(class: &SeenClass<'_>) -> Described {
    let model = TClosenessOrdered::new(Decimal::parse("0.5").unwrap()).unwrap();
    let counts = class.values.iter().map(|counts| {
        let mut counts: Vec<(bool, u64)> =
            counts.iter().map(|count| (count.value.is_none(), count.count)).collect();
        counts.sort_unstable();
        counts
    });
    let individuals = class.individuals.map(<[u32]>::len);
    let value = model.value(&class.of_column(Some(1)));
    (class.rows, class.size, class.unowned_rows, counts.collect(), individuals, value)
}

fn in_order(mut classes: Vec<Described>) -> Vec<String> {
    let mut texts: Vec<String> = classes.drain(..).map(|class| format!("{class:?}")).collect();
    texts.sort_unstable();
    texts
}

#[tokio::test(flavor = "multi_thread")]
async fn both_ways_see_the_same_classes() {
    let resources = Resources { threads: 3, memory: 1 << 28, spill: None };
    let (budget, stop): (Arc<dyn Budget>, _) = (Arc::new(Unlimited), CancelToken::default());
    let reads = ReadFacts { order: true, ..ReadFacts::default() };
    let sensitive =
        [(SensitiveColumn::new("diagnosis"), false), (SensitiveColumn::new("weight").reading(reads), true)];
    let labels = || vec![column("zip"), column("age")];
    for seed in 0..12 {
        for counts_individuals in [false, true] {
            let open = |rules: Rules| -> DataFrame {
                resources.session(rules).unwrap().read_batches(rows(seed)).unwrap()
            };
            let (mut plainly, mut keyed) = (Vec::new(), Vec::new());
            let table = &open(counting_rules());
            let individual_column = counts_individuals.then(|| column("who"));
            let of = by_keys::InClasses {
                table,
                labels: labels(),
                sensitive: &sensitive,
                individual: individual_column,
            };
            let mut see = |class: &SeenClass<'_>| keyed.push(describe(class));
            by_keys::each_class(of, &budget, &stop, "testing", &mut see).await.unwrap();
            let of = InClasses {
                table: &open(Rules::new()),
                labels: labels(),
                sensitive: sensitive
                    .iter()
                    .map(|(of, reads_whole)| CountedColumn::of(of, column(of.name()), *reads_whole))
                    .collect(),
                individual: match counts_individuals {
                    true => individual(column("who"), random_keys("testing").unwrap()).unwrap(),
                    false => Vec::new(),
                },
            };
            let mut see = |class: &SeenClass<'_>| plainly.push(describe(class));
            each_class(of, &budget, &stop, "testing", &mut see).await.unwrap();
            assert!(plainly.len() > 10, "{} classes", plainly.len());
            assert_eq!(in_order(plainly), in_order(keyed), "seed {seed}, {counts_individuals}");
        }
    }
}
