//! Columns released as they are that each single individuals out by themselves. They are reported
//! together, because without one of them the next would be reported.

use super::as_is::{ReleasedRows, UniqueTogether, is_above_a_tenth};
use crate::error::Result;

/// The columns released as they are that suffice alone, together with the quasi-identifiers, to single
/// out more than a tenth of the released individuals (rows, where none are counted).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sufficient {
    /// The columns with the number of individuals that each singles out, most first.
    pub columns: Vec<(String, u64)>,
    /// The number that is still unique without all of them; `None` if no column suffices alone, or all do.
    pub without: Option<u64>,
}

impl ReleasedRows<'_> {
    /// Finds the columns that suffice alone for what is unique `together`.
    ///
    /// # Errors
    /// A data error when reading fails or memory runs out.
    pub(crate) async fn sufficient(&self, together: &UniqueTogether) -> Result<Sufficient> {
        if !together.is_alarming() {
            return Ok(Sufficient::default());
        }
        let each: Vec<usize> = self.expected().as_is().collect();
        let sets: Vec<&[usize]> = each.iter().map(std::slice::from_ref).collect();
        let counts = self.unique_on_each(&sets).await?;
        let (mut alone, others): (Vec<_>, Vec<_>) =
            each.into_iter().zip(counts).partition(|(_, count)| is_above_a_tenth(*count, self.all()));
        alone.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let others: Vec<usize> = others.into_iter().map(|(index, _)| index).collect();
        let without = match (alone.as_slice(), others.as_slice()) {
            ([], _) | (_, []) => None,
            (_, others) => self.unique_on_each(&[others]).await?.first().copied(),
        };
        let name = |index: usize| self.expected().columns[index].0.clone();
        Ok(Sufficient {
            columns: alone.into_iter().map(|(index, count)| (name(index), count)).collect(),
            without,
        })
    }
}
