//! What a recoding loses and keeps, as `kanon search` shows it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::class::{ClassTable, EvaluatedNode};
use crate::error::Result;
use crate::measure::utility::Utility;
use crate::measure::{self, LossRow};
use crate::method::{Candidate, ReleaseKind};
use crate::model::Needs;
use crate::policy::Policy;
use crate::release::kind::kind_row;
use crate::role::Role;

/// A recoding that a search of a policy's classes found.
pub struct Searched<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// The classes.
    pub classes: &'a ClassTable,
    /// What was found.
    pub found: &'a Candidate,
}

/// A recoding that was measured.
#[derive(Debug)]
pub struct Measured {
    /// What it is, in a few words.
    pub text: String,
    /// What it consists of.
    pub parts: RecodingParts,
    /// The value of every loss measure that applies to it, and of those of its kind.
    pub losses: Vec<(&'static str, f64)>,
    /// What it keeps, if that was asked for and applies.
    pub utility: Option<Utility>,
}

/// What a recoding consists of, by its kind: one of these.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RecodingParts {
    /// The level of each quasi-identifier, for methods with one level per column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<BTreeMap<String, usize>>,
    /// The number of classes, suppressed ones included, for methods whose classes show regions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regions: Option<usize>,
    /// The number of groups, for methods that make two tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<usize>,
    /// The number of clusters, for methods that add noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<u64>,
}

impl Searched<'_> {
    /// Measures the recoding, which a method of this kind found, also what it keeps if that is asked for.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub fn measure(&self, kind: ReleaseKind, with_utility: bool) -> Result<Measured> {
        kind_row(kind).measure(self, with_utility)
    }
}

/// Returns the losses of a node of a policy's classes.
pub(super) fn losses_of_node(
    policy: &Policy,
    node: &EvaluatedNode<'_>,
) -> impl Iterator<Item = (&'static str, f64)> {
    applicable_losses(policy, node.table()).map(|loss| (loss.doc().name, loss.value(node)))
}

/// Returns the loss measures whose inputs the table has counted.
pub(super) fn applicable_losses(policy: &Policy, classes: &ClassTable) -> impl Iterator<Item = LossRow> {
    let sensitive = policy.columns.iter().filter(|(_, role)| *role == Role::Sensitive).count();
    let one_column = sensitive == 1 && classes.sensitive().len() == 1;
    measure::losses().filter(move |loss| loss.needs() == Needs::Size || one_column)
}
