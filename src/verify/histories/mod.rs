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
//! Both sorts spill. A row that is not shown was suppressed or was not there, and no file tells which, unless a date of the row that is
//! released as it is lies outside of those of the input (`dates.rs`): then it was not there. A date that is generalized tells no rows of
//! one class apart.
//!
//! Who knows whose rows changed since a release showed them tells these from the others, so that they are another history
//! ([`Matching::compared`]).
//!
//! A row that changed is the same row: it is found again by the columns that tell the rows of a person apart, or because its person
//! has no other. Where neither helps, a row that is gone and one that is new may be one, and there is no verdict
//! ([`Counts::unmatched`]).
//!
//! Somebody who takes values for constant also compares what the same row shows twice. So the values that a history shows in *all*
//! its releases have to satisfy the models of values, too, but for columns that are known to change ([`Matching::changes`]).

mod dates;
mod equal_rows;
mod judge;
mod recorded;
pub(crate) mod shown_classes;
mod shown_rows;
mod spelling;
mod trace;
mod tracks;

use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::scalar::ScalarValue;

use super::Expected;
use super::row_lines::RowNames;
use crate::engine::pseudonym::{PseudonymKey, pseudonym};
use crate::engine::{Context, column};
use crate::error::Result;
use crate::progress::CancelToken;
pub(crate) use dates::times_in;
pub(crate) use equal_rows::equal_rows;
pub(crate) use judge::{FailedModel, Histories, Pattern, PeopleFound};
pub(crate) use recorded::{RecordedRows, row_lines};
pub(crate) use shown_rows::{ShownRows, WithoutPerson};
pub(crate) use spelling::spelled_in_two_ways;
pub use trace::ReturningPeople;
pub(crate) use trace::{Counts, EarlierTrack, RowNow, trace_earlier};

const DOING: &str = "comparing releases";

/// The most releases that are judged together: their pattern is a word.
pub(crate) const MOST_RELEASES: usize = 64;

/// A release among those that are judged together.
pub(crate) struct Member<'a> {
    /// The session of the tables.
    pub(crate) session: &'a SessionContext,
    /// The input, by the second way of reading it.
    pub(crate) input: DataFrame,
    /// The released rows, with texts for the quasi-identifiers; `None` for a release that is only planned.
    pub(crate) output: Option<DataFrame>,
    pub(crate) expected: &'a Expected<'a>,
    /// The columns released as they are that are quasi-identifiers of another release: an attacker knows them.
    pub(crate) known_elsewhere: Vec<String>,
}

/// What tells people and their rows apart in all inputs, and what is known of their values.
pub(crate) struct Matching {
    /// The column that names the person of a row over time.
    pub(crate) person: String,
    /// The columns by which the rows of a person are matched.
    pub(crate) row: Vec<String>,
    /// Whether these tell the rows of a person apart, as somebody says who knows. Otherwise they are all columns that every release
    /// shows, and a row that changed is matched with itself only if its person has no other.
    pub(crate) row_is_named: bool,
    /// The sensitive columns whose values change from one release to the next, as everybody knows.
    pub(crate) changes: Vec<String>,
    /// The columns that releases show as they are, by the releases that do: between two of them, everybody sees whether a row
    /// changed there.
    pub(crate) compared: Vec<Vec<String>>,
    /// Whether attackers do not know whose rows change, and so cannot tell changed rows from the others.
    pub(crate) changes_are_unknown: bool,
    /// The columns whose values tell that a row was not in an input, where they lie outside of its values.
    pub(crate) dates: Vec<String>,
    /// The key of the pseudonyms of people, rows and values.
    pub(crate) key: PseudonymKey,
}

impl Matching {
    /// Returns how rows are named.
    pub(crate) fn names(&self) -> RowNames {
        RowNames { person: self.person.clone(), row: self.row.clone(), key: self.key.clone() }
    }

    /// Returns the columns [`shown_rows::ROW`], [`shown_rows::LOOSE`] and [`shown_rows::compared_name`] of the rows of an input. The first
    /// is NULL without a person.
    fn row_of(&self, input: &DataFrame, shows_as_it_is: impl Fn(&String) -> bool) -> Result<Vec<Expr>> {
        let nothing = || lit(ScalarValue::UInt64(None));
        let names = self.names().expressions()?.into_iter().zip(shown_rows::ROW);
        let field = input.schema().as_arrow().field_with_name(&self.person).context(DOING)?;
        let loose = spelling::loosely(field.data_type(), &self.person);
        let loose = loose.map_or_else(nothing, |text| pseudonym(&self.key, "person loosely", vec![text]));
        let mut all: Vec<Expr> = names.map(|(part, name)| part.alias(name)).collect();
        all.push(loose.alias(shown_rows::LOOSE));
        for (at, columns) in self.compared.iter().enumerate() {
            let values = match columns.iter().all(&shows_as_it_is) {
                true => pseudonym(&self.key, &format!("values {at}"), columns.iter().map(column).collect()),
                false => nothing(),
            };
            all.push(values.alias(shown_rows::compared_name(at)));
        }
        Ok(all)
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
    releases: &[&ShownRows<'_>],
    matching: &Matching,
    view: usize,
    people_found: &mut PeopleFound,
    stop: &CancelToken,
) -> Result<Histories> {
    let traced = trace::trace(session, releases, matching, view, stop).await?;
    judge::judge(session, releases, view, traced, people_found, stop).await
}

#[cfg(test)]
#[path = "histories_tests.rs"]
mod histories_tests;
