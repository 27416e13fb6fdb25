//! Tidy hierarchies: tables with a row for each value and level, instead of a column for each level.

use std::collections::BTreeSet;

use arrow::array::{Array, ArrayRef};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema};
use arrow::record_batch::RecordBatch;
use hashbrown::HashMap;

use super::Value;
use crate::error::{Error, Result};
use crate::plural::plural;

/// The columns of a tidy hierarchy, in any order.
const COLUMNS: [&str; 3] = ["value", "level", "label"];

/// Returns the positions of value, level and label, if these are all columns of a table.
pub(super) fn columns_of(schema: &Schema) -> Option<[usize; 3]> {
    let position = |name: &str| schema.fields().iter().position(|field| field.name() == name);
    match (schema.fields().len(), COLUMNS.map(position)) {
        (3, [Some(value), Some(level), Some(label)]) => Some([value, level, label]),
        _ => None,
    }
}

/// The wide form of a tidy hierarchy.
pub(super) struct Wide {
    /// The value and its labels, finest first, in the order in which the values first appear.
    pub(super) rows: Vec<Vec<String>>,
    /// The tidy row, counted from 1, in which each value first appears.
    pub(super) first_rows: Vec<usize>,
}

/// The rows of one value.
struct Entry {
    value: String,
    first_row: usize,
    /// Level, row and label.
    labels: Vec<(u64, usize, String)>,
}

/// Converts a tidy table without NULLs to its wide form, given the [positions](columns_of) of its
/// columns.
///
/// # Errors
/// A policy error that names rows or counts values, and shows no cell.
pub(super) fn wide(batches: &[RecordBatch], [value, level, label]: [usize; 3]) -> Result<Wide> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut row_number = 0;
    for batch in batches {
        let [values, levels, labels] = [value, level, label].map(|at| unpacked(batch.column(at)));
        let (values, levels, labels) = (values?, levels?, labels?);
        check_types(&levels, &labels)?;
        for row in 0..batch.num_rows() {
            row_number += 1;
            let cell = Value::read(&values, row).map_err(|error| error.at("column `value`"))?;
            let text = cell.text_form().unwrap_or_default();
            let label = Value::read(&labels, row)?.text_form().unwrap_or_default();
            let level = match Value::read(&levels, row)? {
                Value::Int(level) => u64::try_from(level).ok(),
                _ => None,
            };
            let Some(level) = level else {
                return Err(Error::policy(format!(
                    "row {row_number} has a level below 0; levels begin at 1"
                )));
            };
            if level == 0 && text != label {
                return Err(Error::policy(format!(
                    "row {row_number} has level 0 and a label that is not the value; level 0 is the value \
                     itself, so remove the row or count levels from 1"
                )));
            }
            let at = *known.entry_ref(text.as_str()).or_insert(entries.len());
            if at == entries.len() {
                entries.push(Entry { value: text, first_row: row_number, labels: Vec::new() });
            }
            if let Some(entry) = entries.get_mut(at).filter(|_| level > 0) {
                entry.labels.push((level, row_number, label));
            }
        }
    }
    let levels = check_levels(&entries)?;
    let mut wide = Wide { rows: Vec::with_capacity(entries.len()), first_rows: Vec::new() };
    let mut lacking = 0;
    for Entry { value, first_row, mut labels } in entries {
        labels.sort_unstable();
        for pair in labels.windows(2) {
            if let [(level, row, _), (same, other, _)] = pair
                && level == same
            {
                return Err(Error::policy(format!(
                    "row {other} repeats the value and the level of row {row}"
                )));
            }
        }
        lacking += u64::from(labels.len() != levels);
        wide.first_rows.push(first_row);
        wide.rows.push(std::iter::once(value).chain(labels.into_iter().map(|(.., label)| label)).collect());
    }
    match lacking {
        0 => Ok(wide),
        lacking => Err(Error::policy(format!(
            "{} a label at some level; give every value one row for each level from 1 to {levels}",
            plural(lacking, "value lacks", "values lack")
        ))),
    }
}

/// Returns a column without its dictionary, so that reading a cell takes constant time.
fn unpacked(column: &ArrayRef) -> Result<ArrayRef> {
    match column.data_type() {
        DataType::Dictionary(_, plain) => cast(column, plain)
            .map_err(|_| Error::internal("tidy hierarchy: a dictionary cannot be unpacked")),
        _ => Ok(ArrayRef::clone(column)),
    }
}

fn check_types(levels: &ArrayRef, labels: &ArrayRef) -> Result<()> {
    let wrong = |name: &str, wanted: &str, found: &ArrayRef| {
        Error::policy(format!(
            "a table of the columns value, level and label has a row for each value and level: expected \
             {wanted} in `{name}`, found {}; if its columns are the value and two labels, rename them",
            found.data_type()
        ))
    };
    if !levels.data_type().is_integer() {
        return Err(wrong("level", "integers", levels));
    }
    if !labels.data_type().is_string() {
        return Err(wrong("label", "text", labels));
    }
    Ok(())
}

/// Returns n if the levels of all values together are 1 to n.
fn check_levels(entries: &[Entry]) -> Result<usize> {
    let levels = entries.iter().flat_map(|entry| entry.labels.iter().map(|(level, ..)| *level));
    let levels: BTreeSet<u64> = levels.collect();
    if levels.is_empty() && !entries.is_empty() {
        return Err(Error::policy("no row has a level of 1 or more"));
    }
    match (1..).zip(&levels).find(|(expected, level)| expected != *level) {
        None => Ok(levels.len()),
        Some((missing, _)) => Err(Error::policy(format!(
            "no row has level {missing}, but one has a higher level; number the levels 1, 2, 3 and so on"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int64Array, StringArray};
    use proptest::prelude::*;

    use super::super::hierarchy_file::{csv_of_batches, parse_table, table_of_batches};
    use super::*;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap()
    }

    fn texts(cells: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(cells.to_vec()))
    }

    fn tidy(values: &[&str], levels: &[i64], labels: &[&str]) -> RecordBatch {
        let levels: ArrayRef = Arc::new(Int64Array::from(levels.to_vec()));
        batch(vec![("value", texts(values)), ("level", levels), ("label", texts(labels))])
    }

    fn refused(values: &[&str], levels: &[i64], labels: &[&str]) -> String {
        let error = table_of_batches(&[tidy(values, levels, labels)]).unwrap_err().to_string();
        assert!(!error.contains("SECRET"), "{error}");
        error
    }

    #[test]
    fn rows_become_columns() {
        let table =
            tidy(&["b", "a", "a", "b", "a"], &[2, 1, 0, 1, 2], &["all", "vowel", "a", "consonant", "all"]);
        let expected = [["b", "consonant", "all"], ["a", "vowel", "all"]];
        assert_eq!(table_of_batches(&[table.slice(0, 2), table.slice(2, 3)]).unwrap().rows(), expected);
        assert_eq!(parse_table(&csv_of_batches(&[table]).unwrap()).unwrap().rows(), expected);
        // Columns in another order, packed labels, values that are numbers.
        let packed = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        let numbers = |cells: &[i64]| Arc::new(Int64Array::from(cells.to_vec())) as ArrayRef;
        let table = batch(vec![
            ("label", cast(&texts(&["odd", "even"]), &packed).unwrap()),
            ("value", numbers(&[7, 8])),
            ("level", cast(&numbers(&[1, 1]), &DataType::UInt8).unwrap()),
        ]);
        assert_eq!(table_of_batches(&[table]).unwrap().rows(), [["7", "odd"], ["8", "even"]]);
    }

    #[test]
    fn other_names_are_labels_of_levels() {
        let level = texts(&["x", "y"]);
        let table = batch(vec![("Value", texts(&["a", "b"])), ("level", level), ("label", texts(&["z"; 2]))]);
        assert_eq!(table_of_batches(&[table]).unwrap().rows(), [["a", "x", "z"], ["b", "y", "z"]]);
    }

    #[test]
    fn tables_that_are_not_complete_are_refused() {
        let lacks =
            "1 value lacks a label at some level; give every value one row for each level from 1 to 2";
        assert_eq!(refused(&["SECRET", "b", "b"], &[1, 1, 2], &["x", "x", "*"]), lacks);
        assert!(
            refused(&["SECRET", "b", "c"], &[0, 1, 1], &["SECRET", "x", "x"]).starts_with("1 value lacks")
        );
        assert_eq!(
            refused(&["SECRET", "b", "SECRET"], &[1, 1, 1], &["x", "x", "y"]),
            "row 3 repeats the value and the level of row 1"
        );
        assert!(refused(&["SECRET"; 2], &[1, 3], &["x", "y"]).starts_with("no row has level 2, but one has"));
        assert!(refused(&["SECRET"], &[i64::MAX], &["x"]).starts_with("no row has level 1, but one has"));
        assert!(refused(&["SECRET"], &[-1], &["x"]).starts_with("row 1 has a level below 0"));
        assert!(refused(&["SECRET"], &[0], &["x"]).starts_with("row 1 has level 0 and a label that is not"));
        assert_eq!(refused(&["SECRET"], &[0], &["SECRET"]), "no row has a level of 1 or more");
        assert_eq!(refused(&[], &[], &[]), "a hierarchy needs at least one row");
        // A tree is named by the rows in which its values first appear.
        let forest = refused(&["a", "a", "SECRET", "SECRET"], &[1, 2, 1, 2], &["x", "y", "x", "SECRET"]);
        assert_eq!(forest, "row 3 and row 1 agree at level 1 but not at level 2");
    }

    #[test]
    fn cells_of_other_types_are_refused() {
        let error = |level: ArrayRef, label: ArrayRef| {
            let table = batch(vec![("value", texts(&["SECRET"])), ("level", level), ("label", label)]);
            table_of_batches(&[table]).unwrap_err().to_string()
        };
        let one: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let float: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
        assert!(error(float, texts(&["x"])).contains("expected integers in `level`, found Float64; if its"));
        assert!(error(Arc::clone(&one), one).contains("expected text in `label`, found Int64"));
        let nulls: ArrayRef = Arc::new(Int64Array::from(vec![None]));
        assert!(error(nulls, texts(&["x"])).starts_with("column `level` has 1 NULL"));
    }

    proptest! {
        #[test]
        fn both_forms_are_one_table(
            cells in prop::collection::btree_map("[a-c;\"]{0,3}", ("[xy]", "[pq]"), 1..6),
            order in prop::collection::vec(any::<u32>(), 15),
        ) {
            // The grandparent is that of the first value with the same parent.
            let rows: Vec<[String; 3]> = cells.iter().map(|(value, (label, _))| {
                let above = cells.values().find(|(other, _)| other == label).unwrap().1.clone();
                [value.clone(), label.clone(), above]
            }).collect();
            let columns = [0, 1, 2].map(|at| rows.iter().map(|row| row[at].as_str()).collect::<Vec<_>>());
            let wide = batch(vec![("v", texts(&columns[0])), ("1", texts(&columns[1])), ("2", texts(&columns[2]))]);
            let mut cells: Vec<(&str, i64, &str)> = Vec::new();
            for row in &rows {
                cells.extend([0, 1, 2].map(|level| (row[0].as_str(), level as i64, row[level].as_str())));
            }
            let mut keyed: Vec<_> = order.iter().zip(cells).collect();
            keyed.sort();
            let cells: Vec<_> = keyed.into_iter().map(|(_, cell)| cell).collect();
            let tidy = tidy(
                &cells.iter().map(|cell| cell.0).collect::<Vec<_>>(),
                &cells.iter().map(|cell| cell.1).collect::<Vec<_>>(),
                &cells.iter().map(|cell| cell.2).collect::<Vec<_>>(),
            );
            let (mut wide, mut tidy) =
                (table_of_batches(&[wide]).unwrap().rows().to_vec(), table_of_batches(&[tidy]).unwrap().rows().to_vec());
            wide.sort();
            tidy.sort();
            prop_assert_eq!(wide, tidy);
        }
    }
}
