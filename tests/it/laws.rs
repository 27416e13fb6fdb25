//! Laws over the tables: what every row promises, attacked with random values, and the search against a naive
//! recomputation on generalized rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Date32Array, Float64Array, Int32Array, Int64Array, StringArray,
    TimestampMillisecondArray, UInt8Array,
};
use arrow::datatypes::DataType;
use datafusion_kanon::class::{Budget, ClassTable, ClassTableBuilder, QuasiColumn, Unlimited};
use datafusion_kanon::decimal::Decimal;
use datafusion_kanon::generalize::{Argument, GENERALIZERS, GeneralizerRow, Hierarchy, Takes, Value, apply};
use datafusion_kanon::measure::{Grows, LOSSES};
use datafusion_kanon::method::lattice::exhaustive::for_every_node;
use datafusion_kanon::method::{Effort, METHODS, Problem, Unwatched};
use datafusion_kanon::model::k_anonymity::KAnonymity;
use datafusion_kanon::model::{Class, MODELS, Merge, Model, Needs, Parameters, Requirement};
use proptest::prelude::*;

/// Arguments to try a row with: enough levels to nest.
fn arguments(row: &GeneralizerRow) -> Vec<Argument> {
    let numbers =
        |list: &[&str]| Argument::Numbers(list.iter().map(|n| Decimal::parse(n).unwrap()).collect());
    match row.takes {
        Takes::Nothing => vec![Argument::Numbers(vec![])],
        Takes::Numbers => {
            vec![numbers(&["2", "10", "100"]), numbers(&["0.1", "0.5", "10"]), numbers(&["4", "3", "1"])]
        }
        Takes::Words => vec![
            Argument::Words(
                ["day", "month", "quarter", "year", "decade", "century"].map(str::to_owned).to_vec(),
            ),
            Argument::Words(["day", "week"].map(str::to_owned).to_vec()),
        ],
        Takes::Table => {
            let line = |n: i32| [n.to_string(), (n.div_euclid(10)).to_string(), "any".to_owned()].to_vec();
            vec![Argument::Table((-300..300).map(line).collect())]
        }
    }
}

fn columns(seed: Vec<Option<i32>>) -> Vec<ArrayRef> {
    let wide = |n: i32| i64::from(n) * 86_400_123;
    vec![
        Arc::new(Int32Array::from(seed.clone())),
        Arc::new(UInt8Array::from_iter(seed.iter().map(|n| n.map(|n| n.unsigned_abs() as u8)))),
        Arc::new(Float64Array::from_iter(seed.iter().map(|n| n.map(|n| f64::from(n) / 8.0)))),
        Arc::new(StringArray::from_iter(seed.iter().map(|n| n.map(|n| n.to_string())))),
        Arc::new(Date32Array::from_iter(seed.iter().map(|n| n.map(|n| n * 97)))),
        Arc::new(TimestampMillisecondArray::from_iter(seed.iter().map(|n| n.map(wide)))),
        Arc::new(BooleanArray::from_iter(seed.iter().map(|n| n.map(|n| n > 0)))),
    ]
}

fn cell(values: &ArrayRef, row: usize) -> Option<String> {
    Value::read(values, row).unwrap().text_form()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generalizers_keep_their_promises(seed in prop::collection::vec(prop::option::weighted(0.9, -300..300i32), 1..60)) {
        let mut tried = BTreeSet::new();
        for (row, values) in GENERALIZERS.iter().flat_map(|row| columns(seed.clone()).into_iter().map(move |c| (row, c))) {
            for argument in arguments(row) {
                let Ok(levels) = (row.levels)(&argument) else { continue };
                let Ok(hierarchy) = Hierarchy::new(values.data_type(), levels) else { continue };
                let mut finer: Option<ArrayRef> = None;
                for (number, level) in hierarchy.levels().iter().enumerate() {
                    let Ok(labels) = apply(&**level, &values) else { continue };
                    tried.insert(row.doc.name);
                    prop_assert_eq!(labels.data_type(), hierarchy.output_type(), "{} {}", row.doc.name, level.label());
                    for at in 0..values.len() {
                        let naive = level.one(&Value::read(&values, at).unwrap()).unwrap();
                        prop_assert!(naive == Value::read(&labels, at).unwrap(), "{} on {}", level.label(), values.data_type());
                        prop_assert!(level.is_label(&naive), "{} is no label of {}", values.data_type(), level.label());
                        if values.is_null(at) && number < hierarchy.height() {
                            prop_assert!(labels.is_null(at), "{} names NULL", level.label());
                        }
                    }
                    if let Some(finer) = &finer {
                        let mut above = BTreeMap::new();
                        for at in 0..values.len() {
                            let known = above.entry(cell(finer, at)).or_insert_with(|| cell(&labels, at)).clone();
                            prop_assert_eq!(known, cell(&labels, at), "{} separates what is one below", level.label());
                        }
                    }
                    let top = (0..values.len()).map(|at| cell(&labels, at)).collect::<BTreeSet<_>>();
                    prop_assert!(number < hierarchy.height() || top.len() == 1);
                    finer = Some(labels);
                }
            }
        }
        prop_assert_eq!(tried.len(), GENERALIZERS.len(), "not every generalizer was tried: {:?}", tried);
    }

    #[test]
    fn models_survive_merging_as_declared(a in 0..40u64, b in 0..40u64, parameter in 1..20i64) {
        for row in MODELS {
            let parameters = row.parameters.iter().map(|name| ((*name).to_owned(), Decimal::integer(parameter)));
            let Model::Class(model) = (row.make)(Parameters::new(parameters.collect())).unwrap() else { continue };
            let holds = |size| model.holds(model.value(&Class::of_size(size)));
            match model.merge() {
                Merge::Any => prop_assert!(!holds(a) || holds(a + b), "{}", row.doc.name),
                Merge::Both => prop_assert!(!(holds(a) && holds(b)) || holds(a + b), "{}", row.doc.name),
                Merge::None => {}
            }
            prop_assert!(!holds(a) || a >= model.min_size(), "{} implies no size", row.doc.name);
        }
    }

    #[test]
    fn a_search_finds_what_rows_say(table in tables(), k in 1..6u64, limit in 0..20u64) {
        search_as_rows_say(&table, k, limit)?;
    }
}

/// Rows of age, zip and visit with NULLs, and the weights of the three columns.
#[derive(Debug, Clone)]
struct Rows {
    age: Vec<Option<i64>>,
    zip: Vec<Option<String>>,
    visit: Vec<Option<i32>>,
    weights: [f64; 3],
}

fn tables() -> impl Strategy<Value = Rows> {
    let row = (
        prop::option::weighted(0.9, prop::sample::select(vec![-7i64, 3, 9, 10, 11, 35, 99, 100, 104])),
        prop::option::weighted(0.9, prop::sample::select(vec!["021", "0213", "02139", "9é8", "9é", ""])),
        prop::option::weighted(0.9, prop::sample::select(vec![-40_000, -1, 0, 30, 31, 3_653])),
    );
    (prop::collection::vec(row, 1..40), [0.5..2.0f64, 0.5..2.0f64, 0.5..2.0f64]).prop_map(
        |(rows, weights)| Rows {
            age: rows.iter().map(|r| r.0).collect(),
            zip: rows.iter().map(|r| r.1.map(str::to_owned)).collect(),
            visit: rows.iter().map(|r| r.2).collect(),
            weights,
        },
    )
}

fn hierarchy(key: &str, argument: &Argument, data_type: &DataType) -> Hierarchy {
    let row = GENERALIZERS.iter().find(|row| row.key == Some(key)).unwrap();
    Hierarchy::new(data_type, (row.levels)(argument).unwrap()).unwrap()
}

/// The class table, and for every column and level the label of every row, made by the naive generalizers.
fn table_of(rows: &Rows) -> (ClassTable, Vec<Vec<Vec<Option<String>>>>) {
    let numbers = |list: &[i64]| Argument::Numbers(list.iter().map(|n| Decimal::integer(*n)).collect());
    let words = Argument::Words(["month", "year"].map(str::to_owned).to_vec());
    let columns: [(&str, Hierarchy, ArrayRef); 3] = [
        (
            "age",
            hierarchy("range", &numbers(&[10, 50]), &DataType::Int64),
            Arc::new(Int64Array::from(rows.age.clone())),
        ),
        (
            "zip",
            hierarchy("prefix", &numbers(&[3, 2]), &DataType::Utf8View),
            Arc::new(StringArray::from(rows.zip.clone())),
        ),
        (
            "visit",
            hierarchy("date", &words, &DataType::Date32),
            Arc::new(Date32Array::from(rows.visit.clone())),
        ),
    ];
    let mut labels = Vec::new();
    for (_, hierarchy, values) in &columns {
        let of_level = |level: &Arc<dyn datafusion_kanon::generalize::Generalizer>| {
            (0..values.len())
                .map(|at| level.one(&Value::read(values, at).unwrap()).unwrap().text_form())
                .collect::<Vec<_>>()
        };
        labels.push(hierarchy.levels().iter().map(of_level).collect::<Vec<_>>());
    }
    let mut first: BTreeMap<Vec<Option<String>>, (u32, u64)> = BTreeMap::new();
    for at in 0..rows.age.len() {
        let tuple = columns.iter().map(|(_, _, values)| cell(values, at)).collect();
        first.entry(tuple).or_insert((at as u32, 0)).1 += 1;
    }
    let at = arrow::array::UInt32Array::from_iter_values(first.values().map(|(at, _)| *at));
    let quasi = columns.iter().zip(rows.weights).map(|((name, hierarchy, _), weight)| QuasiColumn {
        name: (*name).to_owned(),
        hierarchy: hierarchy.clone(),
        weight,
    });
    let budget: Arc<dyn Budget> = Arc::new(Unlimited);
    let mut builder = ClassTableBuilder::new(quasi.collect(), vec![], &budget).unwrap();
    let canonical = |values: &ArrayRef| match values.data_type() {
        DataType::Utf8 => arrow::compute::cast(values, &DataType::Utf8View).unwrap(),
        _ => Arc::clone(values),
    };
    let taken: Vec<ArrayRef> = columns
        .iter()
        .map(|(_, _, values)| canonical(&arrow::compute::take(values, &at, None).unwrap()))
        .collect();
    builder.add(&taken, &first.values().map(|(_, n)| *n).collect::<Vec<_>>()).unwrap();
    (builder.finish().unwrap(), labels)
}

/// What a node is, from its rows: suppressed rows, kept classes and the formula of `granularity`.
fn of_rows(rows: &Rows, labels: &[Vec<Vec<Option<String>>>], levels: &[usize], k: u64) -> (u64, u64, f64) {
    let n = rows.age.len();
    let tuple = |at: usize| -> Vec<Option<String>> {
        levels.iter().enumerate().map(|(column, level)| labels[column][*level][at].clone()).collect()
    };
    let mut sizes: BTreeMap<Vec<Option<String>>, u64> = BTreeMap::new();
    (0..n).for_each(|at| *sizes.entry(tuple(at)).or_default() += 1);
    let kept: Vec<usize> = (0..n).filter(|at| sizes[&tuple(*at)] >= k).collect();
    let suppressed = (n - kept.len()) as f64;
    let heaviest = rows.weights.iter().copied().fold(0.0, f64::max);
    let mut product = 1.0;
    for (column, level) in levels.iter().enumerate() {
        let leaves: BTreeSet<&Option<String>> = labels[column][0].iter().collect();
        let below = |label: &Option<String>| {
            let of: BTreeSet<&Option<String>> = (0..n)
                .filter(|at| labels[column][*level][*at] == *label)
                .map(|at| &labels[column][0][at])
                .collect();
            of.len() as f64 / leaves.len() as f64
        };
        let covered: f64 =
            kept.iter().map(|at| below(&labels[column][*level][*at])).sum::<f64>() + suppressed;
        let (least, most) = (n as f64 / leaves.len() as f64, n as f64);
        let x = if leaves.len() == 1 { 0.0 } else { ((covered - least) / (most - least)).max(0.0) };
        product *= 1.0 + rows.weights[column] / heaviest * x;
    }
    let classes = sizes.values().filter(|size| **size >= k).count();
    (suppressed as u64, classes as u64, product.powf(1.0 / levels.len() as f64) - 1.0)
}

fn search_as_rows_say(rows: &Rows, k: u64, limit: u64) -> Result<(), TestCaseError> {
    let (table, labels) = table_of(rows);
    let requirements = [Requirement::of_sizes(KAnonymity::new(k).unwrap())];
    let ranges: Vec<_> = table.heights().into_iter().map(|height| 0..=height).collect();
    for objective in LOSSES.iter().filter(|loss| loss.needs() == Needs::Size) {
        let problem = Problem {
            table: &table,
            requirements: &requirements,
            objective: *objective,
            limit,
            ranges: &ranges,
            top: 5,
            effort: Effort::Nodes(1_000),
            threads: 2,
            watch: &Unwatched,
        };
        let mut at_node: BTreeMap<Vec<usize>, (u64, f64)> = BTreeMap::new();
        for_every_node(&problem, &mut |node| {
            let (suppressed, classes, granularity) = of_rows(rows, &labels, node.levels(), k);
            assert_eq!(
                (node.suppressed_rows(), node.kept_classes()),
                (suppressed, classes),
                "{:?}",
                node.levels()
            );
            let value = objective.value(node);
            if objective.doc().name == "granularity" {
                assert!(
                    (value - granularity).abs() < 1e-9,
                    "{value} is not {granularity} at {:?}",
                    node.levels()
                );
            }
            at_node.insert(node.levels().to_vec(), (suppressed, value));
        })
        .unwrap();
        for (low, (suppressed, value)) in &at_node {
            for (high, (above, higher)) in
                at_node.iter().filter(|(high, _)| low.iter().zip(*high).all(|(l, h)| l <= h))
            {
                prop_assert!(above <= suppressed, "suppressed rows grow from {low:?} to {high:?}");
                let grows = match objective.grows() {
                    Grows::Always => true,
                    Grows::WithoutSuppression => *suppressed == 0 && *above == 0,
                    Grows::No => false,
                };
                prop_assert!(!grows || *value <= higher + 1e-12, "{} shrinks", objective.doc().name);
            }
        }
        let found: Vec<_> = METHODS.iter().map(|method| method.search(&problem).unwrap().best).collect();
        prop_assert_eq!(&found[0], &found[1], "{}", objective.doc().name);
        let anonymous = at_node.values().filter(|(suppressed, _)| *suppressed <= limit);
        let least = anonymous.map(|(_, value)| *value).min_by(f64::total_cmp);
        prop_assert_eq!(found[0].first().map(|best| best.loss), least, "{}", objective.doc().name);
    }
    Ok(())
}
