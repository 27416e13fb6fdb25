use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Float64Array, Int64Array, StringViewArray};

use crate::class::tests::{quasi, table};
use crate::class::{ClassTable, GrowingRegion, Held, QuasiColumn, Region};
use crate::decimal::Decimal;
use crate::generalize::hierarchy::parse_csv;
use crate::generalize::merge::{FrequentValues, Merge};
use crate::generalize::{Hierarchy, Value, hierarchy};
use crate::parameter::Setting;

/// Returns the labels of each level in code order.
fn labels(table: &ClassTable) -> Vec<Vec<String>> {
    let column = &table.columns()[0];
    let text = |values: &ArrayRef, row| Value::read(values, row).unwrap().text_form();
    (0..=column.height())
        .map(|level| {
            let labels = column.level(level).labels();
            (0..labels.len()).map(|row| text(labels, row).unwrap_or("NULL".into())).collect()
        })
        .collect()
}

/// Returns whether no value has a smaller code than the value before it, at any level.
fn is_in_order(table: &ClassTable) -> bool {
    let column = &table.columns()[0];
    (0..=column.height()).all(|level| column.level(level).of_value().is_sorted())
}

#[test]
fn numbers_are_in_the_order_of_numbers_also_as_text() {
    let values: ArrayRef =
        Arc::new(Int64Array::from(vec![Some(100), Some(9), None, Some(-15), Some(10), Some(-5)]));
    let ranges = table(vec![(quasi("n", &values, Some(("range", &[10, 100]))), values)]);
    assert_eq!(
        labels(&ranges),
        [
            vec!["NULL", "-15", "-5", "9", "10", "100"],
            vec!["NULL", "[-20,-10)", "[-10,0)", "[0,10)", "[10,20)", "[100,110)"],
            vec!["NULL", "[-100,0)", "[0,100)", "[100,200)"],
            vec!["*"],
        ]
    );
    assert!(is_in_order(&ranges));
    let values: ArrayRef = Arc::new(Float64Array::from(vec![10.5, 9.25, -0.5]));
    let ranges = table(vec![(quasi("x", &values, Some(("range", &[2]))), values)]);
    assert_eq!(labels(&ranges)[0], ["-0.5", "9.25", "10.5"]);
    assert!(is_in_order(&ranges));
}

#[test]
fn dates_are_in_the_order_of_dates() {
    let values: ArrayRef = Arc::new(Date32Array::from(vec![Some(365), Some(-1), None, Some(0)]));
    let dates = table(vec![(quasi("day", &values, None), values)]);
    assert_eq!(labels(&dates)[0], ["NULL", "1969-12-31", "1970-01-01", "1971-01-01"]);
    assert!(is_in_order(&dates));
}

#[test]
fn values_of_a_hierarchy_file_are_in_its_order_with_subtrees_together() {
    let file = "none;low;*\nmild;low;*\nsevere;high;*\nfaint;low;*\ncritical;high;*\n";
    let levels = hierarchy::ROW.of(parse_csv(file, "grade").unwrap()).unwrap();
    let values: ArrayRef = Arc::new(StringViewArray::from(vec![
        Some("critical"),
        Some("faint"),
        Some("severe"),
        None,
        Some("none"),
        Some("mild"),
    ]));
    let hierarchy = Hierarchy::new(values.data_type(), levels).unwrap();
    let grade = QuasiColumn { name: "grade".into(), hierarchy, weight: 1.0 };
    let grades = table(vec![(grade, values)]);
    assert_eq!(
        labels(&grades),
        [vec!["NULL", "none", "mild", "faint", "severe", "critical"], vec!["NULL", "low", "high"], vec!["*"],]
    );
    assert!(is_in_order(&grades));
}

#[test]
fn values_that_merge_joins_count_each_for_itself() {
    let cells = ["a", "e", "b", "a", "a", "d", "a", "b", "c", "b", "b"];
    let values: ArrayRef = Arc::new(StringViewArray::from_iter_values(cells));
    let mut counted = FrequentValues::new(3);
    for (value, holders) in [("a", 4), ("b", 4), ("c", 1), ("d", 1), ("e", 1)] {
        counted.add(value.to_owned(), holders);
    }
    let merge = Merge::of(&[("levels".into(), Setting::Number(Decimal::integer(1)))]).unwrap();
    let levels = merge.levels(&merge.tree(&counted).unwrap()).unwrap();
    let hierarchy = Hierarchy::merged(values.data_type(), levels).unwrap();
    let table = table(vec![(QuasiColumn { name: "v".into(), hierarchy, weight: 1.0 }, values)]);
    let column = &table.columns()[0];
    assert_eq!(labels(&table)[0], ["a", "b", "other"]);
    assert_eq!((column.level(0).leaves(), column.leaves(), column.covered(0)), ([1, 1, 3].as_slice(), 5, 17));
    assert_eq!((column.level(2).leaves(), column.most_leaves(0)), ([5].as_slice(), 3));
    // Of the rows of `other`, each lost one of three values.
    assert!((column.entropy(0) - 3.0 * 3f64.log2()).abs() < 1e-12);
    assert_eq!([0, 2].map(|level| column.steps(level)), [[1, 3], [3, 3]]);
    assert_eq!(Region::Set([0, 2].into()).leaves(column), 4);
    let mut growing = GrowingRegion::new(column).unwrap();
    [2, 0, 2].into_iter().for_each(|code| growing.add(code));
    let grown = Region::of_one(column, 2);
    assert_eq!((growing.leaves(), grown.leaves(column), grown.leaves_with(column, 0)), (4, 3, 4));
    let by_value = table.value_classes(&mut Held::new(table.budget())).unwrap();
    assert_eq!((by_value.rows, by_value.base), (vec![4, 4, 1, 1, 1], vec![0, 1, 2, 2, 2]));
    assert_eq!(by_value.codes, [[0, 1, 2, 3, 4]]);
}
