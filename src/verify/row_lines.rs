//! Which class shows each row of a release that follows others.
//!
//! Rows with the same values may be in different classes there: those that an earlier release showed stay in their class, and those that
//! are new have others. So a line of the private record is of a row, by the pseudonyms of its person and of itself, and not of a
//! combination of values as in [`assignment`](super::assignment).

use arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use datafusion::logical_expr::{Expr, lit, when};
use datafusion::scalar::ScalarValue;

use crate::engine::pseudonym::{PseudonymKey, pseudonym};
use crate::engine::{Context, column};
use crate::error::{Error, Result};

/// What names a row: the pseudonym of its person as two numbers, and its own.
pub(crate) type RowName = [u64; 3];

/// Returns the names of rows from what [`RowNames::expressions`] gives; `None` for one without a person.
///
/// # Errors
/// An internal error if these are not the parts of names.
pub(crate) fn names_of(parts: &[ArrayRef]) -> Result<Vec<Option<RowName>>> {
    let parts: Option<Vec<&UInt64Array>> = parts.iter().map(|part| part.as_primitive_opt()).collect();
    let Some([a, b, of_row]) = parts.as_deref() else {
        return Err(Error::internal("row lines: a row without a name"));
    };
    let name = |row: usize| a.is_valid(row).then(|| [a.value(row), b.value(row), of_row.value(row)]);
    Ok((0..a.len()).map(name).collect())
}

/// How rows are named.
#[derive(Debug, Clone)]
pub(crate) struct RowNames {
    /// The column that names the person of a row.
    pub(crate) person: String,
    /// The columns by which the rows of a person are told apart.
    pub(crate) row: Vec<String>,
    /// The key of the pseudonyms.
    pub(crate) key: PseudonymKey,
}

impl RowNames {
    /// Returns the expressions of a row's name. The first is NULL without a person.
    ///
    /// # Errors
    /// When they cannot be planned.
    pub(crate) fn expressions(&self) -> Result<[Expr; 3]> {
        let person = || column(&self.person);
        let of_person = |half: &str| pseudonym(&self.key, &format!("person {half}"), vec![person()]);
        let nobody = lit(ScalarValue::UInt64(None));
        let known = when(person().is_null(), nobody).otherwise(of_person("a")).context("naming the rows")?;
        let row = pseudonym(&self.key, "row", self.row.iter().map(column).collect());
        Ok([known, of_person("b"), row])
    }
}

/// Which class shows each row that has a person. The others are not shown.
pub(crate) struct RowLines {
    pub(crate) names: RowNames,
    /// What each class shows, in the order of the released quasi-identifiers.
    pub(crate) classes: Vec<Vec<Option<String>>>,
    /// Whether an earlier release has such a class, whose ends and sets stay.
    pub(crate) are_earlier: Vec<bool>,
    /// The class of each row; `None` for one that is not shown.
    pub(crate) rows: Vec<(RowName, Option<u32>)>,
}
