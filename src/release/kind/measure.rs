//! What a recoding loses and keeps, as `kanon search` shows it.

use serde_json::Value;

use crate::class::ClassTable;
use crate::error::Result;
use crate::measure::utility::Utility;
use crate::measure::{LOSSES, LossRow};
use crate::method::Candidate;
use crate::model::Needs;
use crate::policy::Policy;
use crate::release::kind::kind_of;
use crate::role::Role;

/// A recoding that was measured.
#[derive(Debug)]
pub struct Measured {
    /// What it is, in a few words.
    pub text: String,
    /// The word for what it consists of, and that: the level of each column, or a number of sets of rows.
    pub parts: (&'static str, Value),
    /// The value of every loss measure that applies to it, and of those of its kind.
    pub losses: Vec<(&'static str, f64)>,
    /// What it keeps, if that was asked for and applies.
    pub utility: Option<Utility>,
}

/// Measures a recoding that a search found, also what it `keeps`.
///
/// # Errors
/// A data error when memory runs out.
pub fn measure(policy: &Policy, classes: &ClassTable, found: &Candidate, keeps: bool) -> Result<Measured> {
    kind_of(found.recoding.kind()).measure(policy, classes, found, keeps)
}

/// Returns the loss measures of which a table knows what they need.
pub(super) fn known_losses(policy: &Policy, classes: &ClassTable) -> impl Iterator<Item = LossRow> {
    let sensitive = policy.columns.iter().filter(|(_, role)| *role == Role::Sensitive).count();
    let one_column = sensitive == 1 && classes.sensitive().len() == 1;
    LOSSES.iter().copied().filter(move |loss| loss.needs() == Needs::Size || one_column)
}
