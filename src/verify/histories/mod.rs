//! Several releases of the same people, judged together.
//!
//! The *history* of a row is, for each release, the class that shows it, or that none does. A set of releases is safe if the rows
//! of every history belong to at least k distinct people, k being the greatest that a release promises which shows them, and if
//! every model of such a release holds for these rows as for a class.
//!
//! Why this protects: exchange two rows of one history, in all releases at once, and no released file changes. So somebody who
//! has all files, and knows the quasi-identifiers of everybody, cannot tell the people of a history apart, nor which of its values
//! is whose. That the classes of a person share many values is not enough: what two classes do not share is found by subtraction,
//! and such a remainder is a history, too.
//!
//! ```text
//! of each release   person, row, class (or none), values     one scan of its input (`shown_rows.rs`)
//! UNION ALL         sorted by person and row  -> histories   a hash of the classes (`trace.rs`)
//! sorted by history and release               -> verdict     counted like classes (`judge.rs`)
//! ```
//! Both sorts spill. A row that is not shown was suppressed or was not there, and no file tells which, unless a date of the row lies
//! outside of those of the input (`dates.rs`): then it was not there.
//!
//! Who knows whose rows changed since a release showed them tells these from the others, so that they are another history
//! ([`Matching::known_changes`]).
//!
//! Somebody who takes values for constant also compares what the same row shows twice. So the values that a history shows in *all*
//! its releases have to satisfy the models of values, too, but for columns that are known to change ([`Matching::changes`]).

mod dates;
mod judge;
mod recorded;
pub(crate) mod shown_classes;
mod shown_rows;
mod spelling;
mod trace;

use datafusion::logical_expr::{Expr, lit, when};
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::scalar::ScalarValue;

use super::Expected;
use crate::engine::pseudonym::{PseudonymKey, pseudonym};
use crate::engine::{Context, column};
use crate::error::Result;
use crate::progress::CancelToken;
pub(crate) use judge::{FailedModel, Histories, Pattern, PeopleFound};
pub(crate) use recorded::RecordedRows;
pub(crate) use shown_rows::ShownRows;
pub(crate) use spelling::spelled_in_two_ways;
pub use trace::ReturningPeople;

const DOING: &str = "comparing releases";

/// The most releases that are judged together: their pattern is a word.
pub(crate) const MOST_RELEASES: usize = 64;

/// A release among those that are judged together.
pub(crate) struct Member<'a> {
    /// The session of the tables.
    pub(crate) session: &'a SessionContext,
    /// The input, by the second way of reading it.
    pub(crate) input: DataFrame,
    /// The released rows, with texts for the quasi-identifiers.
    pub(crate) output: DataFrame,
    pub(crate) expected: &'a Expected<'a>,
    /// The columns released as they are that are quasi-identifiers of another release: an attacker knows them.
    pub(crate) known_elsewhere: Vec<String>,
}

/// What tells people and their rows apart in all inputs, and what is known of their values.
pub(crate) struct Matching {
    /// The column that names the person of a row over time.
    pub(crate) person: String,
    /// The columns that tell the rows of a person apart.
    pub(crate) row: Vec<String>,
    /// The sensitive columns whose values change from one release to the next, as everybody knows.
    pub(crate) changes: Vec<String>,
    /// The columns that all releases show as they are, where attackers know whose rows change and so tell changed rows from the
    /// others. Empty where they do not know, or where rows are matched by their values.
    pub(crate) known_changes: Vec<String>,
    /// The columns whose values tell that a row was not in an input, where they lie outside of its values.
    pub(crate) dates: Vec<String>,
    /// The key of the pseudonyms of people, rows and values.
    pub(crate) key: PseudonymKey,
}

impl Matching {
    /// Returns the pseudonyms of a row's person, the first NULL without one, of the row among those of the person, and of its values.
    fn row_of(&self) -> Result<Vec<Expr>> {
        let person = || column(&self.person);
        let of_person = |half: &str| pseudonym(&self.key, &format!("person {half}"), vec![person()]);
        let nobody = lit(ScalarValue::UInt64(None));
        let known = when(person().is_null(), nobody).otherwise(of_person("a")).context(DOING)?;
        let row = pseudonym(&self.key, "row", self.row.iter().map(column).collect());
        let values = match self.known_changes.as_slice() {
            [] => lit(0u64),
            columns => pseudonym(&self.key, "values", columns.iter().map(column).collect()),
        };
        let [a, b, of_row, of_values] = shown_rows::ROW;
        Ok(vec![known.alias(a), of_person("b").alias(b), row.alias(of_row), values.alias(of_values)])
    }
}

/// The quasi-identifiers that an attacker knows; `None` for all.
pub(crate) type View = Option<Vec<String>>;

/// Returns whether the attacker of a view knows a column.
fn knows(view: &View, column: &String) -> bool {
    view.as_ref().is_none_or(|known| known.contains(column))
}

/// Judges releases together, in the order in which they were published, as the attacker of a view sees them. The people of
/// histories that are not safe are added to `people_found`.
///
/// # Errors
/// A data error when reading fails or memory runs out, an interruption.
pub(crate) async fn judge(
    session: &SessionContext,
    releases: &[ShownRows<'_>],
    view: usize,
    people_found: &mut PeopleFound,
    stop: &CancelToken,
) -> Result<Histories> {
    let traced = trace::trace(session, releases, view, stop).await?;
    judge::judge(session, releases, view, traced, people_found, stop).await
}

#[cfg(test)]
#[path = "histories_tests.rs"]
mod histories_tests;
