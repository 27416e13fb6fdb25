//! The trees of merged columns in a private record.

use std::collections::BTreeMap;

use datafusion::prelude::{DataFrame, SessionContext};

use crate::error::{Error, Result};
use crate::generalize::hierarchy::{csv_of_rows, parse_table};
use crate::generalize::merge::MergedTree;
use crate::known::OTHER;
use crate::model::least_holders;
use crate::policy::Policy;
use crate::progress::CancelToken;
use crate::release::check_record::refused;
use crate::release::publish::record::PrivateRecord;
use crate::verify::merged_values::{MergedColumn, check_listed};

/// Returns the trees of a policy's merged columns as a private record holds them.
///
/// # Errors
/// An internal error when one cannot be written.
pub(crate) fn recorded(policy: &Policy) -> Result<BTreeMap<String, String>> {
    of_policy(policy).map(|(name, tree)| Ok((name.to_owned(), csv_of_rows(tree.rows.rows())?))).collect()
}

/// Returns the labels of the values that few hold as a private record holds them.
pub(crate) fn recorded_labels(policy: &Policy) -> BTreeMap<String, String> {
    let labels = of_policy(policy).filter(|(_, tree)| tree.label != OTHER);
    labels.map(|(name, tree)| (name.to_owned(), tree.label.clone())).collect()
}

fn of_policy(policy: &Policy) -> impl Iterator<Item = (&str, &MergedTree)> {
    policy.quasi.iter().filter_map(|quasi| Some((quasi.name.as_str(), quasi.tree.as_ref()?)))
}

/// Checks that enough individuals of the input hold each value that the trees of a policy list, and
/// that these lack no other value.
///
/// # Errors
/// Those of [`check_listed`].
pub(crate) async fn check_holders(
    session: &SessionContext,
    input: &DataFrame,
    policy: &Policy,
    stop: &CancelToken,
) -> Result<()> {
    let least = least_holders(&policy.requirements);
    for (name, tree) in of_policy(policy) {
        let column = MergedColumn { name, tree, individual: policy.individual(), least };
        check_listed(session, input, &column, stop).await?;
    }
    Ok(())
}

impl PrivateRecord {
    /// Returns the trees of the merged columns, by the columns' names.
    ///
    /// # Errors
    /// An unmet error for a damaged tree.
    #[doc(hidden)]
    pub fn trees(&self) -> Result<BTreeMap<String, MergedTree>> {
        let label = |name: &String| self.merged_labels.get(name).map_or(OTHER, String::as_str).to_owned();
        let tree = |(name, csv): (&String, &String)| match parse_table(csv) {
            Ok(rows) => Ok((
                name.clone(),
                MergedTree { label: label(name), rows, is_followed: self.recoding_of.is_some() },
            )),
            Err(_) => Err(Error::unmet(format!("the private record's tree of column `{name}` is damaged"))),
        };
        self.merged.iter().map(tree).collect()
    }

    /// Returns the trees that the release followed rather than made, because it repeats an earlier recoding.
    ///
    /// # Errors
    /// Those of [`trees`](Self::trees).
    pub(super) fn followed_trees(&self) -> Result<BTreeMap<String, MergedTree>> {
        if self.recoding_of.is_some() { self.trees() } else { Ok(BTreeMap::new()) }
    }

    /// Checks that the record's trees are those of a policy that was resolved against the input.
    ///
    /// # Errors
    /// An unmet error.
    pub(super) fn check_trees(&self, policy: &Policy) -> Result<()> {
        match self.merged == recorded(policy)? && self.merged_labels == recorded_labels(policy) {
            true => Ok(()),
            false => Err(refused("the private record merges other values than the policy and the input")),
        }
    }
}
