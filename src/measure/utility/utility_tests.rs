//! Utility against a naive computation over rows.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::class::ClassTable;
use crate::generalize::{Ends, Value};
use crate::method::Problem;
use crate::method::Recoding;
use crate::method::best;
use crate::method::lattice::Options;
use crate::method::partition::mondrian::tests::{problem, requirements, rows, table_with};

/// A row of the input: its codes, and the values that its region may stand for, by column; `None`
/// for a suppressed row.
type NaiveRow = (Vec<u32>, Option<Vec<Vec<u32>>>);

/// Returns every row of a table with what it shows under released classes; the rows of failing ones
/// are suppressed.
fn naive_rows(table: &ClassTable, evaluated: &EvaluatedPartition<'_>) -> Vec<NaiveRow> {
    let released = evaluated.released();
    let kept: Vec<usize> = evaluated.kept().map(|(class, _)| class).collect();
    let mut all = Vec::new();
    for base in 0..table.base().len() {
        let codes: Vec<u32> =
            (0..table.columns().len()).map(|at| table.code(table.base(), base, at)).collect();
        let class =
            released.class_of_base()[base].map(|class| class as usize).filter(|class| kept.contains(class));
        let shown = class.map(|class| {
            let columns = released.regions()[class].iter().zip(table.columns());
            let held = columns.map(|(region, column)| {
                (0u32..).take(column.distinct()).filter(|code| region.holds(column, *code)).collect()
            });
            held.collect::<Vec<Vec<u32>>>()
        });
        for _ in 0..table.base().rows_of(base) {
            all.push((codes.clone(), shown.clone()));
        }
    }
    all
}

fn entropy<K: Ord>(keys: impl Iterator<Item = K>) -> f64 {
    let mut counts: BTreeMap<K, f64> = BTreeMap::new();
    keys.for_each(|key| *counts.entry(key).or_default() += 1.0);
    let all: f64 = counts.values().sum();
    -counts.values().map(|count| count / all * (count / all).log2()).sum::<f64>()
}

/// `I(X; R) / H(X)` by `I(X; R) = H(X) + H(R) - H(X, R)`.
fn information(rows: &[NaiveRow], columns: &[usize]) -> f64 {
    let value = |row: &NaiveRow| columns.iter().map(|at| row.0[*at]).collect::<Vec<u32>>();
    let shown = |row: &NaiveRow| {
        row.1.as_ref().map(|shown| columns.iter().map(|at| shown[*at].clone()).collect::<Vec<_>>())
    };
    let of_values = entropy(rows.iter().map(value));
    if of_values < 1e-12 {
        return 1.0;
    }
    let joint = entropy(rows.iter().map(|row| (value(row), shown(row))));
    (of_values + entropy(rows.iter().map(shown)) - joint) / of_values
}

/// All values that the kept rows may have in one column, each with its weight.
fn read(rows: &[NaiveRow], at: usize) -> Vec<(u32, f64)> {
    let shown = rows.iter().filter_map(|row| row.1.as_ref());
    shown.flat_map(|shown| shown[at].iter().map(|code| (*code, 1.0 / shown[at].len() as f64))).collect()
}

fn numbers(table: &ClassTable, at: usize) -> Option<Vec<Option<f64>>> {
    let column = &table.columns()[at];
    column.has_intervals().then(|| {
        let number = |code: u32| {
            let at = column.level(0).of_value().iter().position(|other| *other == code).unwrap();
            if let Value::Int(number) = Value::read(column.values(), at).unwrap() {
                Some(number as f64)
            } else {
                None
            }
        };
        (0u32..).take(column.distinct()).map(number).collect()
    })
}

fn close(found: Option<f64>, expected: Option<f64>) -> bool {
    match (found, expected) {
        (Some(found), Some(expected)) => (found - expected).abs() < 1e-6,
        (found, expected) => found.is_none() && expected.is_none(),
    }
}

/// The mean and the variance of numbers with weights.
fn moments(values: &[(f64, f64)]) -> Option<(f64, f64)> {
    let all: f64 = values.iter().map(|(_, weight)| weight).sum();
    let mean = values.iter().map(|(value, weight)| value * weight).sum::<f64>() / all;
    let variance = values.iter().map(|(value, weight)| (value - mean).powi(2) * weight).sum::<f64>() / all;
    (all > 0.0).then_some((mean, variance))
}

/// The correlation of pairs with weights.
fn correlation(pairs: &[(f64, f64, f64)]) -> Option<f64> {
    let (x, vx) = moments(&pairs.iter().map(|(x, _, weight)| (*x, *weight)).collect::<Vec<_>>())?;
    let (y, vy) = moments(&pairs.iter().map(|(_, y, weight)| (*y, *weight)).collect::<Vec<_>>())?;
    let all: f64 = pairs.iter().map(|(_, _, weight)| weight).sum();
    let joint = pairs.iter().map(|(a, b, weight)| (a - x) * (b - y) * weight).sum::<f64>() / all;
    (vx > 1e-9 && vy > 1e-9).then(|| joint / (vx * vy).sqrt())
}

fn agrees(table: &ClassTable, evaluated: &EvaluatedPartition<'_>) -> Utility {
    let utility = Utility::of_partition(evaluated).unwrap();
    let rows = naive_rows(table, evaluated);
    let n = rows.len() as f64;
    for (at, column) in utility.columns.iter().enumerate() {
        assert!((column.information_kept - information(&rows, &[at])).abs() < 1e-6, "{column:?}");
        let released = read(&rows, at);
        let all: f64 = released.iter().map(|(_, weight)| weight).sum();
        let distance = (0u32..).take(table.columns()[at].distinct()).map(|code| {
            let p = rows.iter().filter(|row| row.0[at] == code).count() as f64 / n;
            let q =
                released.iter().filter(|(other, _)| *other == code).map(|(_, weight)| weight).sum::<f64>();
            (p - q / all).abs()
        });
        let distance = if all > 0.0 { distance.sum::<f64>() / 2.0 } else { 1.0 };
        assert!((column.total_variation - distance).abs() < 1e-6, "{column:?}");
        let Some(numbers) = numbers(table, at) else {
            assert!(column.wasserstein.is_none() && column.mean_change.is_none());
            continue;
        };
        let number = |(code, weight): (u32, f64)| Some((numbers[code as usize]?, weight));
        let before: Vec<(f64, f64)> = rows.iter().filter_map(|row| number((row.0[at], 1.0))).collect();
        let after: Vec<(f64, f64)> = released.into_iter().filter_map(number).collect();
        let change = moments(&before).zip(moments(&after)).and_then(|((before, variance), (after, _))| {
            (variance > 1e-9).then(|| (after - before) / variance.sqrt())
        });
        assert!(close(column.mean_change, change), "{column:?} {change:?}");
        let errors = rows.iter().filter_map(|(codes, shown)| {
            let value = numbers[codes[at] as usize]?;
            let read: Vec<f64> =
                shown.as_ref()?[at].iter().filter_map(|code| numbers[*code as usize]).collect();
            let errors = read.iter().map(|read| (value - read).powi(2)).sum::<f64>();
            (!read.is_empty()).then(|| errors / read.len() as f64)
        });
        let errors: Vec<f64> = errors.collect();
        let error = moments(&before).and_then(|(_, variance)| {
            let mean = errors.iter().sum::<f64>() / errors.len() as f64;
            (variance > 1e-9 && !errors.is_empty()).then(|| mean / variance)
        });
        assert!(close(column.squared_error, error), "{column:?} {error:?}");
        // The area between the distribution functions, value by value.
        let mut values: Vec<f64> = before.iter().map(|(value, _)| *value).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let below = |of: &[(f64, f64)], end: f64| {
            let all: f64 = of.iter().map(|(_, weight)| weight).sum();
            of.iter().filter(|(value, _)| *value <= end).map(|(_, weight)| weight).sum::<f64>() / all
        };
        let area = values
            .windows(2)
            .map(|ends| (below(&before, ends[0]) - below(&after, ends[0])).abs() * (ends[1] - ends[0]));
        let span = values.last().zip(values.first()).map_or(0.0, |(last, first)| last - first);
        let area = (!before.is_empty() && !after.is_empty())
            .then(|| area.sum::<f64>() / if span > 0.0 { span } else { 1.0 });
        assert!(close(column.wasserstein, area), "{column:?} {area:?}");
    }
    let mut pairs = utility.pairs.iter();
    for x in 0..table.columns().len() {
        for y in x + 1..table.columns().len() {
            let pair = pairs.next().unwrap();
            assert!((pair.information_kept - information(&rows, &[x, y])).abs() < 1e-6, "{pair:?}");
            let change = numbers(table, x).zip(numbers(table, y)).and_then(|(a, b)| {
                let before =
                    rows.iter().filter_map(|row| Some((a[row.0[x] as usize]?, b[row.0[y] as usize]?, 1.0)));
                let shown = rows.iter().filter_map(|row| row.1.as_ref());
                let after = shown.flat_map(|shown| {
                    let weight = 1.0 / (shown[x].len() * shown[y].len()) as f64;
                    let codes =
                        shown[x].iter().flat_map(|one| shown[y].iter().map(move |other| (*one, *other)));
                    codes
                        .filter_map(|(one, other)| Some((a[one as usize]?, b[other as usize]?, weight)))
                        .collect::<Vec<_>>()
                });
                Some(correlation(&after.collect::<Vec<_>>())? - correlation(&before.collect::<Vec<_>>())?)
            });
            assert!(close(pair.correlation_change, change), "{pair:?} {change:?}");
        }
    }
    assert!(pairs.next().is_none());
    utility
}

/// The figures of numbers, where each row of a class shows the mean of those that have a value.
fn centroids_agree(table: &ClassTable, evaluated: &EvaluatedPartition<'_>) {
    let utility = Utility::of_partition(evaluated).unwrap();
    let released = evaluated.released();
    for (at, column) in utility.columns.iter().enumerate() {
        let Some(numbers) = numbers(table, at) else {
            assert!(column.mean_change.is_none() && column.squared_error.is_none());
            continue;
        };
        let (mut before, mut after, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for base in 0..table.base().len() {
            let value = numbers[table.code(table.base(), base, at) as usize];
            let rows = table.base().rows_of(base) as f64;
            before.extend(value.map(|value| (value, rows)));
            let Some(class) = released.class_of_base()[base] else { continue };
            if !evaluated.kept().any(|(kept, _)| kept == class as usize) {
                continue;
            }
            let shown: Option<f64> =
                released.centroid(class as usize, at).unwrap().map(|text| text.parse().unwrap());
            after.extend(shown.map(|shown| (shown, rows)));
            errors.extend(value.zip(shown).map(|(value, shown)| ((value - shown).powi(2), rows)));
        }
        let Some((mean, variance)) = moments(&before).filter(|(_, variance)| *variance > 1e-9) else {
            assert!(column.mean_change.is_none() && column.squared_error.is_none());
            continue;
        };
        let change = moments(&after).map(|(after, _)| (after - mean) / variance.sqrt());
        assert!(close(column.mean_change, change), "{column:?} {change:?}");
        let error = moments(&errors).map(|(error, _)| error / variance);
        assert!(close(column.squared_error, error), "{column:?} {error:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_is_that_of_the_rows(
        rows in rows(),
        k in 1..6u64,
        limit in 0..20u64,
        counts_individuals in any::<bool>(),
    ) {
        let table = table_with(&rows, counts_individuals, true);
        let requirements = requirements(k, 1);
        let problem = Problem { limit, ..problem(&table, &requirements) };
        let ranges: Vec<_> = table.heights().into_iter().map(|height| 0..=height).collect();
        let options = Options { ranges, top: 1, effort: None, global: Vec::new() };
        for tried in best::compare(&problem, &options, None).unwrap() {
            let best::Attempt::Found { best, .. } = tried.result else { continue };
            match &best.recoding {
                Recoding::Classes(released) if released.shows_centroids() => {
                    let merged = table.merge(released).unwrap();
                    centroids_agree(&table, &EvaluatedPartition::new(&table, released, &merged, &requirements).unwrap());
                }
                Recoding::Classes(released) => {
                    let merged = table.merge(released).unwrap();
                    agrees(&table, &EvaluatedPartition::new(&table, released, &merged, &requirements).unwrap());
                }
                // The quasi-identifiers are as they were.
                Recoding::Groups(_) | Recoding::Clusters(_) => {}
                Recoding::Levels(levels) => {
                    // The same, said as classes.
                    let rolled = table.roll_up(table.base(), &vec![0; levels.len()], levels).unwrap();
                    let of_levels = Utility::of_node(&EvaluatedNode::new(&table, levels, &rolled, &requirements).unwrap()).unwrap();
                    let released = best::as_regions(&Problem { ends: Ends::Cuts, ..problem }, levels, &[]).unwrap();
                    let merged = table.merge(&released).unwrap();
                    let evaluated = EvaluatedPartition::new(&table, &released, &merged, &requirements).unwrap();
                    let of_classes = agrees(&table, &evaluated);
                    for (one, other) in of_levels.columns.iter().zip(&of_classes.columns) {
                        prop_assert!((one.information_kept - other.information_kept).abs() < 2e-6);
                        prop_assert!((one.total_variation - other.total_variation).abs() < 2e-6);
                        prop_assert!(close(one.mean_change, other.mean_change));
                    }
                    let errors = of_levels.queries.zip(of_classes.queries);
                    let are_close = errors.is_none_or(|(one, other)| {
                        let difference = one.median_relative_error - other.median_relative_error;
                        one.queries == other.queries && difference.abs() < 2e-6
                    });
                    prop_assert!(are_close, "queries");
                }
            }
        }
    }
}

#[test]
fn the_values_themselves_lose_nothing() {
    let all =
        [(Some(1), 2, 3, 0, None), (None, 1, 0, 1, None), (Some(7), 2, 0, 1, None), (Some(7), 0, 0, 1, None)];
    let table = table_with(&all, false, true);
    let requirements = requirements(1, 1);
    let levels = vec![0; table.columns().len()];
    let rolled = table.roll_up(table.base(), &levels, &levels).unwrap();
    let utility =
        Utility::of_node(&EvaluatedNode::new(&table, &levels, &rolled, &requirements).unwrap()).unwrap();
    for column in &utility.columns {
        assert_eq!((column.information_kept, column.total_variation), (1.0, 0.0), "{column:?}");
        assert!(column.mean_change.is_none_or(|change| change == 0.0), "{column:?}");
    }
    assert!(utility.pairs.iter().all(|pair| pair.information_kept == 1.0));
    let queries = utility.queries.unwrap();
    assert_eq!((queries.queries, queries.median_relative_error), (500, 0.0));
}
