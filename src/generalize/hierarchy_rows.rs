//! The rows of a hierarchy file for some values, made by the levels of any hierarchy.

use arrow::array::{Array, ArrayRef, StringViewArray};

use super::hierarchy_file::{check, csv_of_rows};
use super::{Generalizer, Hierarchy, apply, text_forms};
use crate::error::{Error, Result};

/// The label of the top of a hierarchy of numbers or dates, whose own top is NULL.
const TOP: &str = "*";

/// Returns the labels of `values` at a level as text; none is NULL.
///
/// # Errors
/// The errors of the generalizer: values are not covered or overflow.
pub fn label_texts(level: &dyn Generalizer, values: &ArrayRef) -> Result<StringViewArray> {
    let texts = text_forms(&apply(level, values)?)?;
    if texts.null_count() == 0 {
        return Ok(texts);
    }
    if !level.is_top() {
        return Err(Error::data("a value has no label at some level, so it cannot be in a hierarchy file"));
    }
    Ok(texts.iter().map(|text| Some(text.unwrap_or(TOP))).collect())
}

/// Returns the rows of a hierarchy file: for each value its cells of `columns`, which are the texts
/// of the values and then their labels, finest first. Rows are in the order of the values, or of the
/// hierarchy's leaves if it enumerates them.
///
/// # Errors
/// A data error when two values have one text or the labels are not a tree.
pub fn rows_of(
    hierarchy: &Hierarchy,
    values: &ArrayRef,
    columns: &[StringViewArray],
) -> Result<Vec<Vec<String>>> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    if let Some(positions) = hierarchy.leaf_positions(values)? {
        order.sort_by_key(|row| positions.values().get(*row).copied());
    }
    let cells =
        |row: usize| columns.iter().map(|column| column.value(row).to_owned()).collect::<Vec<String>>();
    let rows: Vec<Vec<String>> = order.into_iter().map(cells).collect();
    check(&rows, |row| format!("row {}", row + 1)).map_err(|error| {
        Error::data(format!("the values and their labels cannot be a hierarchy file: {error}"))
    })?;
    Ok(rows)
}

/// Writes rows as the hierarchy file of a column. It has no header, unless its first value would be
/// taken for one because it is the column's name.
///
/// # Errors
/// An internal error when a row cannot be written.
pub fn csv_for_column(rows: &[Vec<String>], column: &str) -> Result<String> {
    let csv = csv_of_rows(rows)?;
    match rows.first() {
        Some(first) if first.first().is_some_and(|value| value == column) => {
            let levels = (1..first.len()).map(|level| format!("level {level}"));
            Ok(csv_of_rows(&[std::iter::once(column.to_owned()).chain(levels).collect()])? + &csv)
        }
        _ => Ok(csv),
    }
}

/// Returns the bytes that the cells of these columns take as rows of texts.
pub fn size_as_rows(columns: &[StringViewArray]) -> usize {
    let cells = |column: &StringViewArray| {
        column.iter().flatten().map(|text| text.len() + size_of::<String>()).sum::<usize>()
    };
    let rows = columns.first().map_or(0, Array::len);
    columns.iter().map(cells).sum::<usize>() + rows * size_of::<Vec<String>>()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Date32Array, Float64Array, Int64Array, StringArray};
    use arrow::datatypes::DataType;

    use super::*;
    use crate::decimal::Decimal;
    use crate::generalize::{Value, date, floor, hierarchy, known, period, prefix, range};
    use crate::parameter::Setting;

    fn written(hierarchy: &Hierarchy, values: &ArrayRef) -> Vec<Vec<String>> {
        let labels = hierarchy.levels().iter().skip(1).map(|level| label_texts(&**level, values));
        let columns = std::iter::once(text_forms(values)).chain(labels).collect::<Result<Vec<_>>>();
        rows_of(hierarchy, values, &columns.unwrap()).unwrap()
    }

    fn numbers(list: &[i64]) -> Vec<Decimal> {
        list.iter().map(|n| Decimal::integer(*n)).collect()
    }

    #[test]
    fn the_file_gives_the_labels_of_the_rule() {
        let words = |list: &[&str]| {
            Setting::List(list.iter().map(|word| Setting::Word((*word).to_owned().into())).collect())
        };
        let ages: ArrayRef = Arc::new(Int64Array::from(vec![-3, 7, 12, 25]));
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![-0.5, 1.0, 7.25, f64::INFINITY, f64::NAN]));
        let days: ArrayRef = Arc::new(Date32Array::from(vec![-1, 0, 40, 9_999]));
        let zips: ArrayRef = Arc::new(StringArray::from(vec!["", "02138", "02139", "98512", "a;\"b\""]));
        let countries: ArrayRef = Arc::new(StringArray::from(vec!["DE", "Germany", "fr"]));
        for (values, levels) in [
            (&ages, range::ROW.of(numbers(&[10, 20])).unwrap()),
            (&ages, floor::ROW.of(numbers(&[10, 20])).unwrap()),
            (&ages, vec![]),
            (&floats, range::ROW.of(numbers(&[5])).unwrap()),
            (&days, date::ROW.of(words(&["month", "year", "decade"])).unwrap()),
            (&days, period::ROW.of(words(&["month", "year", "decade"])).unwrap()),
            (&zips, prefix::ROW.of(numbers(&[4, 2])).unwrap()),
            (&countries, known::ROW.of("country").unwrap()),
        ] {
            let rule = Hierarchy::new(values.data_type(), levels).unwrap();
            let rows = written(&rule, values);
            let texts = text_forms(values).unwrap();
            assert_eq!(
                rows.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(),
                texts.iter().flatten().collect::<Vec<_>>()
            );
            assert!(rows.iter().all(|row| row.len() == rule.levels().len() && row.last().unwrap() == "*"));
            let file = hierarchy::parse_csv(&csv_for_column(&rows, "v").unwrap(), "v").unwrap();
            let file = Hierarchy::new(values.data_type(), hierarchy::ROW.of(file).unwrap()).unwrap();
            assert_eq!(file.height(), rule.height());
            for (level, of_file) in rule.levels().iter().zip(file.levels()).skip(1) {
                let expected = label_texts(&**level, values).unwrap();
                assert_eq!(&label_texts(&**of_file, values).unwrap(), &expected);
                // One value at a time, naively.
                for row in 0..values.len() {
                    let label = level.generalize_value(&Value::read(values, row).unwrap()).unwrap();
                    assert_eq!(label.text_form().unwrap_or("*".to_owned()), expected.value(row));
                }
            }
        }
    }

    #[test]
    fn rows_of_a_file_keep_its_order() {
        let file = "c;x;all\na;y;all\nb;x;all\n";
        let levels = hierarchy::ROW.of(hierarchy::parse_csv(file, "v").unwrap()).unwrap();
        let rule = Hierarchy::new(&DataType::Utf8View, levels).unwrap();
        let values: ArrayRef = Arc::new(StringViewArray::from(vec!["a", "b", "c"]));
        assert_eq!(written(&rule, &values), [["c", "x", "all"], ["b", "x", "all"], ["a", "y", "all"]]);
    }

    #[test]
    fn a_first_value_that_is_the_columns_name_gets_a_header() {
        let rows = vec![vec!["town".to_owned(), "*".to_owned()], vec!["village".to_owned(), "*".to_owned()]];
        let csv = csv_for_column(&rows, "town").unwrap();
        assert_eq!(csv, "\"town\";\"level 1\"\n\"town\";\"*\"\n\"village\";\"*\"\n");
        assert_eq!(hierarchy::parse_csv(&csv, "town").unwrap().rows(), rows);
        assert_eq!(csv_for_column(&rows, "place").unwrap(), "\"town\";\"*\"\n\"village\";\"*\"\n");
    }

    #[test]
    fn two_values_with_one_text_are_refused() {
        let rule = Hierarchy::new(&DataType::Utf8View, vec![]).unwrap();
        let values: ArrayRef = Arc::new(StringViewArray::from(vec!["SECRET", "SECRET"]));
        let columns = [text_forms(&values).unwrap(), label_texts(&*rule.levels()[1], &values).unwrap()];
        let error = rows_of(&rule, &values, &columns).unwrap_err().to_string();
        assert_eq!(
            error,
            "the values and their labels cannot be a hierarchy file: row 2 repeats the value of row 1"
        );
        assert!(size_as_rows(&columns) > 4 * size_of::<String>());
    }
}
