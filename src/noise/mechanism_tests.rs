use arrow::datatypes::{DataType, i256};
use proptest::prelude::*;

use super::*;
use crate::generalize::clip::Clip;

fn hierarchy(data_type: &DataType, low: &str, high: &str) -> Hierarchy {
    let end = |text: &str| (!text.is_empty()).then(|| Decimal::parse(text).unwrap());
    let clip = Clip::new(end(low), end(high)).unwrap();
    Hierarchy::new(data_type, Vec::new()).unwrap().clipped(&clip).unwrap()
}

fn column(data_type: &DataType, low: &str, high: &str) -> NoisyColumn {
    NoisyColumn::new("x", &hierarchy(data_type, low, high), Decimal::integer(1)).unwrap()
}

/// A mechanism over columns whose values are from 0 to so many units.
fn mechanism(order: Order, k: u64, most: &[u64]) -> Mechanism {
    let column = |most: &u64| NoisyColumn {
        range: *most,
        scale: 0,
        ..column(&DataType::Int64, "0", &most.to_string())
    };
    Mechanism::from_columns(order, k, most.iter().map(column).collect())
}

#[test]
fn values_are_counted_in_units() {
    // Twelve digits of the range, whatever the type, and at least the digits of the bounds.
    const UNIT: u64 = 10_000_000_000;
    for data_type in [DataType::Int64, DataType::Float64, DataType::Decimal128(20, 3)] {
        let ages = column(&data_type, "17", "90");
        assert_eq!((ages.scale, ages.range), (10, 73 * UNIT));
        let of = |value: Value| ages.units(&value).unwrap();
        let years = [17, 18, 90, 91, -5];
        let expected = [0, UNIT, 73 * UNIT, 73 * UNIT, 0];
        assert_eq!(years.map(|age| of(Value::Int(age))), expected);
        assert_eq!(years.map(|age| of(Value::Float(age.to_string().parse().unwrap()))), expected);
        assert_eq!(years.map(|age| of(Value::Decimal(i256::from_i128(age * 100), 2))), expected);
        assert_eq!(of(Value::Decimal(i256::from(2), -1)), 3 * UNIT);
        assert_eq!([i128::MAX, i128::MIN].map(|age| of(Value::Int(age))), [73 * UNIT, 0]);
        let far = [f64::INFINITY, 1e300, -1e300, f64::NEG_INFINITY];
        assert_eq!(far.map(|age| of(Value::Float(age))), [73 * UNIT, 73 * UNIT, 0, 0]);
        assert_eq!([Value::Null, Value::Float(f64::NAN)].map(of), [73 * UNIT / 2; 2]);
    }
    let floats = column(&DataType::Float64, "-0.5", "99.5");
    assert_eq!((floats.scale, floats.range), (10, 1_000_000_000_000));
    let of = |value: f64| floats.units(&Value::Float(value)).unwrap();
    assert_eq!([0.0, -0.0, 0.1, -0.4999999999].map(of), [UNIT / 2, UNIT / 2, 6 * UNIT / 10, 1]);
    // More digits than a unit has are dropped.
    assert_eq!(floats.units(&Value::Decimal(i256::from(-4_999_999_999_999i64), 13)).unwrap(), 1);
    assert_eq!(floats.units(&Value::Decimal(i256::from(7), 13)).unwrap(), UNIT / 2);
    assert_eq!(column(&DataType::Float64, "0.123456789012345", "0.2").scale, 15);
}

#[test]
fn what_cannot_get_noise_is_refused() {
    let why = |hierarchy: &Hierarchy| NoisyColumn::new("x", hierarchy, Decimal::integer(1)).unwrap_err();
    for data_type in [DataType::Utf8View, DataType::Boolean, DataType::Date32] {
        let why = why(&Hierarchy::new(&data_type, Vec::new()).unwrap());
        assert!(why.contains("adds noise to numbers"), "{why}");
        assert_eq!(why.contains("days since"), data_type == DataType::Date32);
    }
    assert!(why(&Hierarchy::new(&DataType::Int64, Vec::new()).unwrap()).contains("needs both bounds"));
    assert!(why(&hierarchy(&DataType::Int64, "", "9")).contains("needs both bounds"));
    let far = hierarchy(&DataType::Float64, "-100000000000000000", "0.000000000000000001");
    assert!(why(&far).contains("too many digits"));
}

#[test]
fn epsilon_is_split_by_weight_and_all_of_it() {
    let number = hierarchy(&DataType::Int64, "0", "9");
    let split = |epsilon: &str, weights: &[f64]| {
        let columns = weights.iter().map(|weight| ("x", &number, *weight));
        let mechanism = Mechanism::new(Decimal::parse(epsilon).unwrap(), Order::Hilbert, 5, columns);
        mechanism
            .map(|mechanism| mechanism.columns.iter().map(|one| one.epsilon.to_string()).collect::<Vec<_>>())
    };
    assert_eq!(split("1", &[1.0]).unwrap(), ["1"]);
    assert_eq!(split("1", &[1.0, 1.0, 1.0]).unwrap(), ["0.333333", "0.333333", "0.333334"]);
    assert_eq!(split("0.5", &[1.0, 0.25]).unwrap(), ["0.4", "0.1"]);
    for weights in [&[1.0, 0.1, 0.7][..], &[1.0, 1e-3], &[0.3, 0.9, 1.0, 0.2], &[0.1; 7]] {
        let shares = split("2.000001", weights).unwrap();
        let all: i128 = shares.iter().map(|share| Decimal::parse(share).unwrap().units(6)).sum();
        assert_eq!(all, 2_000_001, "{shares:?}");
    }
    assert!(
        split("1e-7", &[1.0])
            .unwrap_err()
            .to_string()
            .contains("at most 6 digits after the point, found 0.0000001")
    );
    assert!(
        split("1e-6", &[1.0, 1.0]).unwrap_err().to_string().contains("the share of `x` is below 0.000001")
    );
    assert!(split("1", &[1.0; 65]).unwrap_err().to_string().contains("at most 64"));
}

#[test]
fn means_stay_within_the_bounds_and_are_those_of_the_rows() {
    let ages = column(&DataType::Int64, "-10", "90");
    let year = |years: u128| years * 10u128.pow(ages.scale);
    assert_eq!([0, 100, 31].map(|sum| ages.shown(year(sum), 0, 1)), [-10.0, 90.0, 21.0]);
    let noise = [i128::MIN, -i128::try_from(year(23)).unwrap(), 0, i128::MAX];
    assert_eq!(noise.map(|noise| ages.shown(year(22), noise, 3)), [-10.0, -10.0, -8.0 / 3.0, 90.0]);
    let zero = column(&DataType::Int64, "0", "9");
    assert!(zero.shown(0, -3, 4).is_sign_positive());
    let shares = column(&DataType::Float64, "0", "0.3");
    assert_eq!(shares.shown(u128::from(shares.range) * 7, 0, 7), 0.3);
}

/// Sums of units in the clusters of rows, by the definition.
fn naive_sums(mechanism: &Mechanism, rows: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| (mechanism.place(row), row.clone()));
    let all = rows.len() as u64;
    let mut sums = vec![vec![0; mechanism.columns.len()]; usize::try_from(mechanism.clusters(all)).unwrap()];
    for (number, row) in (0u64..).zip(&rows) {
        let cluster = usize::try_from(mechanism.cluster_of(number, all)).unwrap();
        sums[cluster].iter_mut().zip(row).for_each(|(sum, units)| *sum += units);
    }
    sums
}

/// Returns the most that each column's sums change together when one row is replaced, over all tables of
/// so many rows and all their neighbours.
fn most_change(mechanism: &Mechanism, most: &[u64], rows: usize) -> Vec<u64> {
    let mut values: Vec<Vec<u64>> = vec![Vec::new()];
    for most in most {
        let longer =
            |row: &Vec<u64>| (0..=*most).map(|unit| [&row[..], &[unit]].concat()).collect::<Vec<_>>();
        values = values.iter().flat_map(longer).collect();
    }
    // Multisets, because the order of a table does not matter.
    let mut tables: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..rows {
        let longer = |table: &Vec<usize>| {
            let first = table.last().copied().unwrap_or(0);
            (first..values.len()).map(|next| [&table[..], &[next]].concat()).collect::<Vec<_>>()
        };
        tables = tables.iter().flat_map(longer).collect();
    }
    let row = |of: &usize| values[*of].clone();
    let mut found = vec![0; most.len()];
    for table in &tables {
        let sums = naive_sums(mechanism, &table.iter().map(row).collect::<Vec<_>>());
        for replaced in 0..rows {
            for value in &values {
                let mut other: Vec<Vec<u64>> = table.iter().map(row).collect();
                other[replaced].clone_from(value);
                let others = naive_sums(mechanism, &other);
                for (at, found) in found.iter_mut().enumerate() {
                    let change = sums.iter().zip(&others).map(|(a, b)| a[at].abs_diff(b[at])).sum();
                    *found = (*found).max(change);
                }
            }
        }
    }
    found
}

/// No neighbour changes the sums by more than the noise is made for; with one column exactly that occurs.
#[test]
fn sensitivities_hold_for_all_neighbours_of_small_tables() {
    for order in [Order::Hilbert, Order::Distance] {
        for k in 1..4 {
            let alone = mechanism(order, k, &[4]);
            assert_eq!(most_change(&alone, &[4], 5), [4], "{order:?} {k}");
            assert_eq!(alone.sensitivities(5).unwrap(), [4]);
            for (most, rows) in
                [(&[2, 1][..], 4usize), (&[2, 2], 4), (&[1, 1, 1], 4), (&[1, 3], 4), (&[3, 2], 4)]
            {
                let mechanism = mechanism(order, k, most);
                let change = most_change(&mechanism, most, rows);
                let bounds = mechanism.sensitivities(rows as u64).unwrap();
                for (bound, change) in bounds.iter().zip(&change) {
                    assert!(u128::from(*change) <= *bound, "{order:?} {k} {most:?}: {change} above {bound}");
                }
            }
        }
    }
}

/// The rows that clusters exchange are a chain in the order: by dynamic programming over all chains of points, a chain
/// goes up and down in a column by no more than the sensitivity, and nearly as much occurs.
#[test]
fn sensitivities_hold_for_all_chains_and_are_no_larger_than_they_must_be() {
    for (most, clusters) in [
        (&[15u64, 15][..], 1usize),
        (&[15, 15], 4),
        (&[15, 15], 12),
        (&[15, 15], 40),
        (&[7, 30], 9),
        (&[5, 5, 5], 10),
        (&[5, 5, 5], 30),
        (&[3, 3, 3, 3], 20),
    ] {
        let mechanism = mechanism(Order::Hilbert, 1, most);
        let bounds = mechanism.sensitivities(clusters as u64).unwrap();
        let points: usize = most.iter().map(|most| usize::try_from(*most).unwrap() + 1).product();
        let mut order: Vec<(u64, Vec<u64>)> = (0..points)
            .map(|number| {
                let mut rest = number as u64;
                let mut row = Vec::new();
                for most in most {
                    row.push(rest % (most + 1));
                    rest /= most + 1;
                }
                (mechanism.place(&row), row)
            })
            .collect();
        order.sort();
        for (at, bound) in bounds.iter().enumerate() {
            // The most that a chain of so many steps goes which ends at a point.
            let mut ending = vec![0u64; points];
            for _ in 0..clusters {
                let longer = |end: usize| {
                    (0..=end)
                        .map(|before| ending[before] + order[before].1[at].abs_diff(order[end].1[at]))
                        .max()
                        .unwrap()
                };
                ending = (0..points).map(longer).collect();
            }
            let found = u128::from(*ending.iter().max().unwrap());
            assert!(found <= *bound, "{most:?} {clusters}: {found} above {bound}");
            assert!(
                *bound <= found * 3 / 2 + u128::from(most[at]),
                "{most:?} {clusters}: {bound} for {found}"
            );
        }
        let largest = bounds.iter().zip(most).map(|(bound, most)| *bound / u128::from(*most)).max().unwrap();
        assert!(clusters < 12 || largest < clusters as u128 * 3 / 4, "{most:?} {clusters}: {bounds:?}");
    }
}

/// The noise of k = `least_k` is little enough, that of a smaller k is not.
#[test]
fn the_least_k_is_the_least() {
    for most in [&[1_000u64][..], &[1_000, 500], &[90, 1_000, 1_000]] {
        let of = |k: u64| mechanism(Order::Hilbert, k, most);
        let is_enough = |k: u64| {
            let scales = of(k).scales_in_units(50_000).unwrap();
            scales.iter().zip(most).all(|(scale, most)| *scale <= 0.1 * ratio((*most).into(), 1))
        };
        let least = of(1).least_k(50_000, 0.1).unwrap().unwrap();
        assert!(is_enough(least) && !is_enough(least - 1), "{least}");
    }
    assert_eq!(mechanism(Order::Hilbert, 5, &[9, 9]).least_k(50, 1e-3).unwrap(), None);
    assert_eq!(mechanism(Order::Hilbert, 5, &[9, 9]).least_k(0, 1.0).unwrap(), None);
}

/// With many columns each exchange may be as long as a range.
#[test]
fn many_columns_need_a_range_for_each_cluster() {
    for columns in [17usize, 40, 64] {
        let most = vec![1_000; columns];
        let bounds = mechanism(Order::Hilbert, 2, &most).sensitivities(80).unwrap();
        assert_eq!(bounds, vec![40_000; columns]);
    }
}

/// Beyond the cells that are counted, the bound still follows the root of the number of clusters.
#[test]
fn many_clusters_need_few_ranges_each() {
    for (most, power, factor) in
        [(&[1_000_000u64, 1_000_000][..], 0.5, 1.6), (&[1_000_000; 3], 2.0 / 3.0, 1.8)]
    {
        for clusters in [1_000u64, 100_000, 10_000_000] {
            let bounds = mechanism(Order::Hilbert, 1, most).sensitivities(clusters).unwrap();
            let ranges = bounds.iter().map(|bound| ratio(*bound, 1_000_000)).fold(0.0, f64::max);
            assert!(ranges < factor * ratio(clusters.into(), 1).powf(power), "{clusters}: {ranges}");
        }
    }
}

proptest! {
    #[test]
    fn clusters_share_all_rows(k in 1..40u64, rows in 0..400u64) {
        let mechanism = mechanism(Order::Hilbert, k, &[3]);
        let clusters = mechanism.clusters(rows);
        prop_assert_eq!(clusters, rows / k);
        let mut counted = vec![0; usize::try_from(clusters).unwrap()];
        if clusters > 0 {
            (0..rows).for_each(|row| counted[usize::try_from(mechanism.cluster_of(row, rows)).unwrap()] += 1);
        }
        for (cluster, counted) in (0u64..).zip(&counted) {
            prop_assert_eq!(mechanism.size(cluster, rows), *counted);
            prop_assert!(*counted >= k && *counted < 2 * k);
        }
    }

    /// A row's place depends on its own values alone, and of one column on their order.
    #[test]
    fn one_column_is_ordered_by_its_values(a in 0..1_000_000u64, b in 0..1_000_000u64) {
        for order in [Order::Hilbert, Order::Distance] {
            let mechanism = mechanism(order, 5, &[1_000_000]);
            prop_assert!(a > b || (mechanism.place(&[a]), a) <= (mechanism.place(&[b]), b));
        }
    }
}
