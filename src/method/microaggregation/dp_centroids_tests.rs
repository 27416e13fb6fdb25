use arrow::array::{ArrayRef, Int64Array};
use proptest::prelude::*;

use super::*;
use crate::class::QuasiColumn;
use crate::class::tests::table;
use crate::generalize::clip::Clip;
use crate::generalize::{Hierarchy, Value};
use crate::measure::LOSSES;
use crate::model::k_anonymity::KAnonymity;
use crate::noise::seeded;
use crate::progress::{CancelToken, Silent};

const MOST: i64 = 20;

/// A table of rows with two numbers from 0 to 20; those outside count as the bounds.
fn table_of(rows: &[(i64, i64)]) -> ClassTable {
    let clip = Clip::new(Some(Decimal::integer(0)), Some(Decimal::integer(MOST))).unwrap();
    let column = |name: &str, values: ArrayRef| {
        let hierarchy = Hierarchy::new(values.data_type(), Vec::new()).unwrap().clipped(&clip).unwrap();
        (QuasiColumn { name: name.into(), hierarchy, weight: 1.0 }, values)
    };
    let [a, b]: [ArrayRef; 2] = [
        Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>()),
    ];
    table(vec![column("a", a), column("b", b)])
}

fn search(table: &ClassTable, k: u64, order: &str) -> Outcome {
    let requirements = [Requirement::of_sizes(KAnonymity::new(k).unwrap())];
    let problem = Problem {
        table,
        requirements: &requirements,
        objective: *LOSSES.iter().find(|loss| loss.doc().name == "granularity").unwrap(),
        ends: crate::generalize::Ends::Values,
        limit: 0,
        threads: 1,
        progress: &Silent,
        stop: &CancelToken::default(),
    };
    let settings = [
        ("epsilon".to_owned(), Setting::Number(Decimal::integer(2))),
        ("order".to_owned(), Setting::Word(order.to_owned().into())),
    ];
    let options = crate::method::lattice::Options {
        ranges: table.heights().into_iter().map(|height| 0..=height).collect(),
        top: 1,
        effort: None,
        global: Vec::new(),
    };
    ROW.with(&settings, &options).unwrap().search(&problem).unwrap()
}

fn clusters(outcome: &Outcome) -> &Clusters {
    match &outcome.best[0].recoding {
        Recoding::Clusters(clusters) => clusters,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Rows one by one make the same clusters as base classes with their rows.
    #[test]
    fn clusters_are_those_of_single_rows(
        rows in prop::collection::vec((-2..MOST + 3, -2..MOST + 3), 1..60),
        k in 1..9u64,
        by_distance in any::<bool>(),
    ) {
        let table = table_of(&rows);
        let outcome = search(&table, k, if by_distance { "distance" } else { "hilbert" });
        let all = rows.len() as u64;
        prop_assert_eq!(outcome.best.len(), usize::from(all >= k));
        if all < k {
            return Ok(());
        }
        let found = clusters(&outcome);
        let mechanism = found.mechanism();
        let units = |value: i64| mechanism.columns()[0].units(&Value::Int(value.into())).unwrap();
        let mut rows: Vec<[u64; 2]> = rows.iter().map(|(a, b)| [units(*a), units(*b)]).collect();
        rows.sort_by_key(|row| (mechanism.place(row), *row));
        let mut sums = vec![[0u128; 2]; usize::try_from(all / k).unwrap()];
        for (number, row) in (0u64..).zip(&rows) {
            let cluster = usize::try_from(mechanism.cluster_of(number, all)).unwrap();
            sums[cluster].iter_mut().zip(row).for_each(|(sum, unit)| *sum += u128::from(*unit));
        }
        prop_assert_eq!(&found.sums, &sums.concat());
        let shown: Vec<(Vec<f64>, u64)> = found.noisy_means(&vec![0; found.sums.len()]).collect();
        prop_assert_eq!(shown.iter().map(|(_, rows)| rows).sum::<u64>(), all);
        prop_assert!(shown.iter().all(|(_, rows)| *rows >= k));
        // The spread within clusters by its definition, and the noise by its scale.
        let scales = mechanism.scales_in_units(all).unwrap();
        for at in 0..2 {
            let values: Vec<f64> = rows.iter().map(|row| ratio(row[at].into(), 1)).collect();
            let mean_of = |values: &[f64]| values.iter().sum::<f64>() / ratio(values.len() as u128, 1);
            let mean = mean_of(&values);
            let total: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            if total == 0.0 {
                continue;
            }
            let clusters: Vec<&[f64]> = {
                let (first, last) = values.split_at(usize::try_from((all / k - 1) * k).unwrap());
                first.chunks(usize::try_from(k).unwrap()).chain([last]).collect()
            };
            let within = |cluster: &&[f64]| cluster.iter().map(|value| (value - mean_of(cluster)).powi(2)).sum::<f64>();
            let expected = clusters.iter().map(within).sum::<f64>() / total
                + 2.0 * scales[at].powi(2) * ratio(all.into(), 1) / total;
            let found = found.squared_errors()[at];
            prop_assert!((found - expected).abs() <= 1e-6 * expected.max(1.0), "{} {}", found, expected);
        }
    }
}

/// Returns the mean squared error of released rows and the error that the search expects of them, both in
/// variances of the columns.
fn error(rows: &[(i64, i64)], k: u64, order: &str, seed: u64) -> (f64, f64) {
    let table = table_of(rows);
    let outcome = search(&table, k, order);
    let found = clusters(&outcome);
    let (mechanism, all) = (found.mechanism(), rows.len() as u64);
    let units = |value: i64| mechanism.columns()[0].units(&Value::Int(value.into())).unwrap();
    let mut rows: Vec<(i64, i64)> = rows.to_vec();
    rows.sort_by_key(|(a, b)| (mechanism.place(&[units(*a), units(*b)]), *a, *b));
    let noise = mechanism.draw(all, &mut seeded(seed)).unwrap();
    let shown: Vec<Vec<f64>> = found.noisy_means(&noise).map(|(shown, _)| shown).collect();
    let mut errors = 0.0;
    for at in 0..2 {
        let values: Vec<f64> =
            rows.iter().map(|row| [row.0, row.1][at].to_string().parse().unwrap()).collect();
        let mean = values.iter().sum::<f64>() / ratio(all.into(), 1);
        let total: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let of_rows = (0u64..).zip(&values).map(|(number, value)| {
            let cluster = usize::try_from(mechanism.cluster_of(number, all)).unwrap();
            (value - shown[cluster][at]).powi(2)
        });
        errors += of_rows.sum::<f64>() / total / 2.0;
    }
    (errors, found.squared_errors().iter().sum::<f64>() / 2.0)
}

/// The shape of the paper's figures: without clusters there is little but noise; the error falls with k, and
/// rises again where clusters are too large.
#[test]
fn clusters_lower_the_error_of_the_same_noise() {
    let mut random = seeded(7);
    let mut draw = |below: u64| i64::try_from(random().unwrap() % below).unwrap();
    let rows: Vec<(i64, i64)> = (0..4_000)
        .map(|_| {
            let a = draw(21);
            (a, (a + draw(9) - 4).clamp(0, MOST))
        })
        .collect();
    let mean = |k: u64, order: &str| (0..3).map(|seed| error(&rows, k, order, seed).0).sum::<f64>() / 3.0;
    for order in Order::NAMES {
        let errors = [1, 10, 63, 200, 500, 4_000].map(|k| mean(k, order));
        assert!(errors[0] > 1.3 && errors[1] > 0.9, "{order}: {errors:?}");
        let least = errors.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(least < 0.5 && least == errors[3].min(errors[4]), "{order}: {errors:?}");
        assert!((errors[5] - 1.0).abs() < 0.01, "{order}: {errors:?}");
    }
    // Noise that does not reach the bounds has the variance of the formula.
    let (measured, expected) = error(&rows, 500, "hilbert", 5);
    assert!((measured - expected).abs() < 0.2 * expected, "{measured} {expected}");
}

#[test]
fn models_of_values_are_refused() {
    let l = crate::model::l_diversity::LDiversity::new(2).unwrap();
    let requirement = Requirement::new(Box::new(l), Some("disease".into()));
    let why = check_models(&[requirement]).unwrap_err().to_string();
    assert!(why.starts_with("method: `dp_centroids` takes only `k`, over all"), "{why}");
}
