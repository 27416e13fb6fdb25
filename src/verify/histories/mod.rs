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
//! outside of those of the input ([`Dates`]): then it was not there.
//!
//! Somebody who takes values for constant also compares what the same row shows twice. So the values that a history shows in *all*
//! its releases have to satisfy the models of values, too, but for columns that are known to change ([`Matching::changes`]).

mod dates;
mod judge;
mod shown_rows;
mod spelling;
mod trace;

use datafusion::prelude::{DataFrame, SessionContext};

use super::Expected;
use crate::engine::functions::random_keys;
use crate::error::Result;
use crate::progress::CancelToken;
pub(crate) use dates::Dates;
pub(crate) use judge::{FailedModel, Histories, Pattern};
pub(crate) use shown_rows::ShownRows;
pub(crate) use spelling::spelled_in_two_ways;

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
    /// The dates that tell that a row was not in an input.
    pub(crate) dates: Dates,
    /// The quasi-identifiers that the attacker knows; `None` for all.
    pub(crate) over: Option<Vec<String>>,
    /// The keys of the hashes of people.
    of_people: [[u64; 2]; 2],
    /// The keys of the hashes of rows, and of values that last.
    of_rows: [[u64; 2]; 2],
}

impl Matching {
    /// Matches the rows of people by these columns.
    ///
    /// # Errors
    /// A data error when the system has no random numbers.
    pub(crate) fn new(person: String, row: Vec<String>, changes: Vec<String>, dates: Dates) -> Result<Self> {
        let (of_people, of_rows) = (random_keys(DOING)?, random_keys(DOING)?);
        Ok(Self { person, row, changes, dates, over: None, of_people, of_rows })
    }
}

/// Judges releases together, in the order in which they were published.
///
/// # Errors
/// A data error when reading fails or memory runs out, an interruption.
pub(crate) async fn judge(
    session: &SessionContext,
    releases: &[&ShownRows<'_>],
    stop: &CancelToken,
) -> Result<Histories> {
    let traced = trace::trace(session, releases, stop).await?;
    judge::judge(session, releases, traced, stop).await
}

#[cfg(test)]
#[path = "histories_tests.rs"]
mod histories_tests;
