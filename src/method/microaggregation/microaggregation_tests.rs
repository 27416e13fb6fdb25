//! Laws of microaggregation, against naive implementations over lists of rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, Int32Array, StringViewArray};
use proptest::prelude::*;

use super::mdav::mdav;
use super::ona::ona;
use super::points::Remaining;
use super::*;
use crate::class::ClassTable;
use crate::class::tests::{quasi, table};
use crate::generalize::clip::Clip;
use crate::generalize::{Hierarchy, Value, hierarchy};
use crate::method::partition::mondrian::tests::{options, problem, requirements, rows, table_with};
use crate::method::{METHODS, Recoding, ReleaseKind};
use crate::parameter::TextTable;

/// A table of numbers, one row each.
fn numbers(columns: &[Vec<f64>]) -> ClassTable {
    let names: Vec<String> = (0..columns.len()).map(|at| format!("c{at}")).collect();
    let arrays = columns.iter().map(|values| Arc::new(Float64Array::from(values.clone())) as ArrayRef);
    table(arrays.zip(&names).map(|(values, name)| (quasi(name, &values, None), values)).collect())
}

/// The numbers of each base class, scaled to a variance of 1 as the paper wants.
fn standardized(table: &ClassTable) -> Vec<Vec<f64>> {
    let rows: Vec<f64> = table.base().rows().map(|rows| ratio(rows.into(), 1)).collect();
    let all: f64 = rows.iter().sum();
    let mut points = vec![Vec::new(); rows.len()];
    for (at, column) in table.columns().iter().enumerate() {
        let value =
            |class: usize| match Value::read(column.values(), table.code(table.base(), class, at) as usize) {
                Ok(Value::Float(value)) => value,
                _ => panic!("a number"),
            };
        let mean = rows.iter().enumerate().map(|(class, n)| n * value(class)).sum::<f64>() / all;
        let variance =
            rows.iter().enumerate().map(|(class, n)| n * (value(class) - mean).powi(2)).sum::<f64>() / all;
        for (class, point) in points.iter_mut().enumerate() {
            point.push(if variance > 0.0 { (value(class) - mean) / variance.sqrt() } else { 0.0 });
        }
    }
    points
}

fn squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

fn mean_of(points: &[Vec<f64>], classes: &[usize]) -> Vec<f64> {
    let count = ratio(classes.len() as u128, 1);
    (0..points[0].len())
        .map(|at| classes.iter().map(|class| points[*class][at]).sum::<f64>() / count)
        .collect()
}

/// MDAV as the paper says it, over rows that all differ.
fn naive_mdav(points: &[Vec<f64>], k: usize) -> Vec<Vec<usize>> {
    let mut left: Vec<usize> = (0..points.len()).collect();
    let mut clusters = Vec::new();
    let farthest = |left: &[usize], from: &[f64]| {
        let mut best = left[0];
        for one in left {
            if squared(&points[*one], from) > squared(&points[best], from) + 1e-12 {
                best = *one;
            }
        }
        best
    };
    let gather = |left: &mut Vec<usize>, seed: usize| {
        left.sort_by(|a, b| {
            let distance = |one: &usize| squared(&points[*one], &points[seed]);
            distance(a).total_cmp(&distance(b)).then(a.cmp(b))
        });
        let cluster: Vec<usize> = left.drain(..k).collect();
        left.sort_unstable();
        cluster
    };
    while left.len() >= 2 * k {
        let pair = left.len() >= 3 * k;
        let first = farthest(&left, &mean_of(points, &left));
        clusters.push(gather(&mut left, first));
        if pair {
            let second = farthest(&left, &points[first]);
            clusters.push(gather(&mut left, second));
        }
    }
    if !left.is_empty() {
        clusters.push(left);
    }
    clusters
}

fn naive_squares(points: &[Vec<f64>], clusters: &[Vec<usize>]) -> f64 {
    let of_cluster = |cluster: &Vec<usize>| {
        let mean = mean_of(points, cluster);
        cluster.iter().map(|class| squared(&points[*class], &mean)).sum::<f64>()
    };
    clusters.iter().map(of_cluster).sum()
}

fn sorted(clusters: Vec<Vec<u32>>) -> Vec<Vec<usize>> {
    let mut clusters: Vec<Vec<usize>> = clusters
        .into_iter()
        .map(|cluster| {
            let mut cluster: Vec<usize> = cluster.into_iter().map(|class| class as usize).collect();
            cluster.sort_unstable();
            cluster
        })
        .collect();
    clusters.sort();
    clusters
}

fn all(table: &ClassTable) -> Vec<u32> {
    (0u32..).take(table.base().len()).collect()
}

/// Numbers without ties of distances.
fn draw(seed: u64, count: usize, columns: usize) -> Vec<Vec<f64>> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ratio(u128::from(state >> 11), 1 << 53)
    };
    (0..columns).map(|_| (0..count).map(|_| next() + next() + next()).collect()).collect()
}

#[test]
fn mdav_makes_the_clusters_of_a_naive_one() {
    for seed in 1..400u64 {
        let (count, columns, k) = (3 + seed % 41, 1 + seed % 4, 1 + seed % 6);
        let table = numbers(&draw(seed, count as usize, columns as usize));
        let points = Points::new(&table).unwrap();
        let requirements = &requirements(k, 1)[..1];
        let problem = problem(&table, requirements);
        if count < k {
            continue;
        }
        let found =
            mdav(&points, &all(&table), ratio(k.into(), 1), &mut Judge::new(&problem).unwrap()).unwrap();
        let naive_points = standardized(&table);
        let mut naive = naive_mdav(&naive_points, k as usize);
        let squares = naive_squares(&naive_points, &naive);
        naive.iter_mut().for_each(|cluster| cluster.sort_unstable());
        naive.sort();
        let ours: f64 = found.iter().map(|one| points.squares(one, &points.center(one))).sum();
        assert_eq!(sorted(found), naive, "seed {seed}");
        assert!((ours - squares).abs() < 1e-9 * (1.0 + squares), "seed {seed}");
    }
}

#[test]
fn ona_loses_less_than_mdav() {
    for seed in 1..120u64 {
        let (count, columns, k) = (20 + seed % 150, 1 + seed % 5, 2 + seed % 5);
        let table = numbers(&draw(seed, count as usize, columns as usize));
        let points = Points::new(&table).unwrap();
        let requirements = &requirements(k, 1)[..1];
        let problem = problem(&table, requirements);
        let mut judge = Judge::new(&problem).unwrap();
        let least = ratio(k.into(), 1);
        let gathered = mdav(&points, &all(&table), least, &mut judge).unwrap();
        let moved = ona(&points, &all(&table), least, &mut judge).unwrap();
        let squares = |clusters: &[Vec<u32>]| -> f64 {
            clusters.iter().map(|one| points.squares(one, &points.center(one))).sum()
        };
        assert!(squares(&moved) <= squares(&gathered) * (1.0 + 1e-9), "seed {seed}");
        assert!(moved.iter().all(|cluster| cluster.len() >= k as usize), "seed {seed}");
        let mut members: Vec<u32> = moved.into_iter().flatten().collect();
        members.sort_unstable();
        assert_eq!(members, all(&table), "seed {seed}");
    }
}

/// The squared distance through the hierarchy is that of coordinates, so that centers have distances.
#[test]
fn labels_are_as_far_apart_as_they_meet() {
    let zip: ArrayRef = Arc::new(StringViewArray::from(vec!["94138", "94139", "94141", "10001", "10001"]));
    let age: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), None, Some(4), Some(4)]));
    let of_zip = || (quasi("zip", &zip, Some(("prefix", &[4, 3]))), Arc::clone(&zip));
    let alone = table(vec![of_zip()]);
    let place = |text: &str| {
        let values = alone.columns()[0].values();
        let code = (0..values.len())
            .find(|at| Value::read(values, *at).unwrap().text_form().as_deref() == Some(text));
        let code = code.unwrap() as u32;
        (0u32..4).find(|class| alone.code(alone.base(), *class as usize, 0) == code).unwrap()
    };
    let [one, same_four, same_three, other] = ["94138", "94139", "94141", "10001"].map(place);
    let points = Points::new(&alone).unwrap();
    let [near, far, farther] = [same_four, same_three, other].map(|class| points.distance(one, class));
    // They differ at one, two and three of the levels below the top.
    assert!((far - 2.0 * near).abs() < 1e-12 && (farther - 3.0 * near).abs() < 1e-12);

    let table = table(vec![of_zip(), (quasi("age", &age, None), age)]);
    let points = Points::new(&table).unwrap();
    // By definition, the mean squared distance of two rows is twice the variance, whose sum is the weights'.
    let rows: f64 = (0..4).map(|class| points.rows(class)).sum();
    let pairs = (0..4).flat_map(|a| (0..4).map(move |b| (a, b)));
    let mean: f64 = pairs.map(|(a, b)| points.rows(a) * points.rows(b) * points.distance(a, b)).sum::<f64>()
        / (rows * rows);
    let center = points.center(&[0, 1, 2, 3]);
    let variance = points.squares(&[0, 1, 2, 3], &center) / rows;
    assert!((mean - 2.0 * variance).abs() < 1e-12);
    // A missing age counts beside the others, so the variance of `age` is split between both.
    assert!((variance - 2.0).abs() < 1e-12, "{variance}");
    // What joining and leaving adds and saves is what the squares change by.
    let (some, class) = ([0u32, 1, 2], 3u32);
    let before = points.center(&some);
    let distance = points.distance_from(&before, class, f64::INFINITY);
    let added = before.added(points.rows(class), distance);
    let squares = |classes: &[u32]| points.squares(classes, &points.center(classes));
    assert!((squares(&[0, 1, 2, 3]) - squares(&some) - added).abs() < 1e-12);
    let from_all = points.distance_from(&center, class, f64::INFINITY);
    assert!((center.saved(points.rows(class), from_all) - added).abs() < 1e-12);
    let mut remaining = Remaining::new(&points, &[0, 1, 2, 3]);
    remaining.take(&[3]);
    let distances = remaining.distances();
    let shift = points.distance_from(&before, 0, f64::INFINITY) - distances(0);
    for class in 1..4 {
        let other = points.distance_from(&before, class, f64::INFINITY) - distances(class);
        assert!((shift - other).abs() < 1e-12);
    }
}

/// The centroids of a class, computed from a list of its rows: numbers are whole here.
fn naive_centroids(table: &ClassTable, members: &[u32], is_median: bool) -> Vec<Option<String>> {
    let columns = table.columns().iter().enumerate().map(|(at, column)| {
        let mut rows: Vec<Value> = Vec::new();
        for class in members {
            let value = Value::read(column.values(), table.code(table.base(), *class as usize, at) as usize);
            let count = table.base().rows_of(*class as usize) as usize;
            rows.extend(std::iter::repeat_n(value.unwrap(), count));
        }
        let mut numbers: Vec<i128> = rows
            .iter()
            .filter_map(|value| if let Value::Int(number) = value { Some(*number) } else { None })
            .collect();
        numbers.sort_unstable();
        if column.has_intervals() {
            return match (numbers.is_empty() || 2 * numbers.len() < rows.len(), is_median) {
                (true, _) => None,
                (_, true) => Some(numbers[(numbers.len() - 1) / 2].to_string()),
                _ => Some((numbers.iter().sum::<i128>() as f64 / numbers.len() as f64).to_string()),
            };
        }
        let mut counts: BTreeMap<Option<String>, usize> = BTreeMap::new();
        rows.iter().for_each(|value| *counts.entry(value.text_form()).or_default() += 1);
        let most = counts.values().copied().max().unwrap();
        counts.into_iter().find(|(_, count)| *count == most).unwrap().0
    });
    columns.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_class_holds_and_shows_its_centroids(
        rows in rows(),
        k in 1..6u64,
        l in 1..3u64,
        counts_individuals in any::<bool>(),
        is_median in any::<bool>(),
        limit in 0..6u64,
    ) {
        let table = table_with(&rows, counts_individuals, true);
        let requirements = requirements(k, l);
        let problem = Problem { limit, ..problem(&table, &requirements) };
        let can_be_one = Judge::new(&problem).unwrap().holds(&all(&table)).unwrap();
        for row in METHODS {
            let Some(row) = row.of_own().filter(|_| row.kind == ReleaseKind::Centroids) else { continue };
            let word = if is_median { "median" } else { "mean" };
            let given = [(CENTROID.name.to_owned(), Setting::Word(word.into()))];
            let found = row.with(&given, &options(&table)).unwrap().search(&problem).unwrap();
            let threads = Problem { threads: 3, ..problem };
            prop_assert_eq!(&row.with(&given, &options(&table)).unwrap().search(&threads).unwrap(), &found);
            let Some(best) = found.best.first() else {
                prop_assert!(!can_be_one, "{}", row.doc.name);
                continue;
            };
            prop_assert!(best.suppressed_individuals <= limit);
            let Recoding::Classes(released) = &best.recoding else { panic!("levels") };
            let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for (base, class) in (0u32..).zip(released.class_of_base()) {
                if let Some(class) = class {
                    members.entry(*class).or_default().push(base);
                }
            }
            let (mut shown, mut failing) = (Vec::new(), Vec::new());
            for (class, members) in &members {
                let texts: Vec<Option<String>> = (0..table.columns().len())
                    .map(|at| released.centroid(*class as usize, at).unwrap().map(str::to_owned))
                    .collect();
                prop_assert_eq!(&texts, &naive_centroids(&table, members, is_median));
                shown.push(texts);
                let holds = Judge::new(&problem).unwrap().holds(members).unwrap();
                failing.extend(if holds { Vec::new() } else { members.clone() });
            }
            let left_out = (0u32..).zip(released.class_of_base()).filter(|(_, class)| class.is_none());
            failing.extend(left_out.map(|(base, _)| base));
            prop_assert_eq!(table.base().size_of(&failing), best.suppressed_individuals);
            shown.sort();
            let count = shown.len();
            shown.dedup();
            prop_assert_eq!(shown.len(), count, "two classes show the same");
        }
    }
}

/// Numbers count as the clip says, also for who is near; codes of a hierarchy file are no numbers.
#[test]
fn clipped_numbers_and_codes() {
    let released = |greatest: i32| {
        let income: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 50, 51, greatest]));
        let mut column = quasi("income", &income, None);
        let clip = Clip::new(None, Some(Decimal::integer(100))).unwrap();
        column.hierarchy = column.hierarchy.clipped(&clip).unwrap();
        let table = table(vec![(column, income)]);
        let requirements = &requirements(3, 1)[..1];
        let found =
            mdav::ROW.with(&[], &options(&table)).unwrap().search(&problem(&table, requirements)).unwrap();
        let Recoding::Classes(released) = &found.best[0].recoding else { panic!("levels") };
        let classes = 0..released.regions().len();
        classes.map(|class| released.centroid(class, 0).unwrap().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(released(101), [Some("2".to_owned()), Some("67".to_owned())]);
    assert_eq!(released(101), released(i32::MAX));

    let code: ArrayRef = Arc::new(Int32Array::from(vec![101, 102, 102, 900]));
    let mut column = quasi("code", &code, None);
    let rows = [("101", "a"), ("102", "a"), ("900", "b")];
    let rows: Vec<Vec<String>> =
        rows.iter().map(|(one, other)| vec![(*one).to_owned(), (*other).to_owned()]).collect();
    column.hierarchy =
        Hierarchy::new(code.data_type(), hierarchy::ROW.of(TextTable::from(rows)).unwrap()).unwrap();
    let table = table(vec![(column, code)]);
    let found = mdav::ROW
        .with(&[], &options(&table))
        .unwrap()
        .search(&problem(&table, &requirements(4, 1)[..1]))
        .unwrap();
    let Recoding::Classes(released) = &found.best[0].recoding else { panic!("levels") };
    assert_eq!(released.centroid(0, 0), Some(Some("102")));
}
