//! From the recoding that a method found to what the rest of a release needs of it: what is shown,
//! the kept classes, what a verification expects.

use std::sync::Arc;

use arrow::datatypes::Schema;

use crate::class::{Budget, ClassTable, EvaluatedClasses, EvaluatedNode, EvaluatedRegions};
use crate::error::{Error, Result};
use crate::generalize::AsIs;
use crate::measure::granularity;
use crate::measure::utility::Utility;
use crate::method::Recoding;
use crate::policy::Policy;
use crate::release::released_recoding::{Chosen, KeptClasses, Shown, choose};
use crate::release::released_regions;
use crate::verify::as_is::Finer;
use crate::verify::assignment::{Assignment, LinesShow};
use crate::verify::expected::Expected;

/// A recoding as the rest of a release needs it.
pub(super) struct Concrete {
    pub(super) chosen: Chosen,
    pub(super) kept: KeptClasses,
    /// The loss of each quasi-identifier.
    pub(super) costs: Vec<f64>,
    /// What is kept, if it is recorded.
    pub(super) utility: Option<Utility>,
}

/// Builds the recoding that was found.
pub(super) fn concrete(
    policy: &Policy,
    schema: &Schema,
    classes: &ClassTable,
    recoding: &Recoding,
    is_recorded: bool,
) -> Result<Concrete> {
    match recoding {
        Recoding::Levels(levels) => {
            if !levels.iter().zip(policy.ranges()).all(|(level, allowed)| allowed.contains(level)) {
                return Err(Error::internal(
                    "release: the method chose a level that the policy does not allow",
                ));
            }
            let rolled = classes.roll_up(classes.base(), &vec![0; levels.len()], levels)?;
            let node = EvaluatedNode::new(classes, levels, &rolled, &policy.requirements)?;
            check_not_empty(policy, &node)?;
            let (chosen, kept) = choose(policy, schema, &node)?;
            let utility = is_recorded.then(|| Utility::of_node(&node)).transpose()?;
            Ok(Concrete { chosen, kept, costs: granularity::of_columns(&node), utility })
        }
        Recoding::Classes(released) => {
            let merged = classes.merge(released)?;
            let evaluated = EvaluatedRegions::new(classes, released, &merged, &policy.requirements)?;
            check_not_empty(policy, &evaluated)?;
            let (chosen, kept) = released_regions::choose(policy, schema, &evaluated)?;
            let utility = is_recorded.then(|| Utility::of_regions(&evaluated)).transpose()?;
            Ok(Concrete { chosen, kept, costs: granularity::of_columns(&evaluated), utility })
        }
        Recoding::Groups(_) | Recoding::Clusters(_) => {
            Err(Error::internal("concrete_recoding: groups and clusters have pipelines of their own"))
        }
    }
}

fn check_not_empty(policy: &Policy, classes: &EvaluatedClasses<'_>) -> Result<()> {
    if classes.kept_classes() > 0 {
        return Ok(());
    }
    Err(Error::unmet(format!(
        "the best release by `{}` would be empty: every row is suppressed; nothing was published; lower \
         suppression_limit, so that the search prefers levels that keep rows, or add coarser levels",
        policy.objective.doc().name
    )))
}

/// Returns for each generalized quasi-identifier the level below the released one, or the values
/// themselves where classes show regions.
pub(super) fn finer(policy: &Policy, shown: &Shown) -> Vec<Finer> {
    let columns = policy.released().enumerate().filter_map(|(index, (name, _))| {
        let quasi = policy.quasi_index(name)?;
        let level = match shown {
            Shown::Levels { levels, .. } => levels.get(quasi)?.checked_sub(1)?,
            Shown::Regions { .. } | Shown::Noise { .. } => 0,
        };
        let generalizer = policy.quasi[quasi].hierarchy.levels().get(level)?;
        Some((index, Arc::clone(generalizer)))
    });
    columns.collect()
}

/// Returns the properties that a verification expects of a release that shows this. The assignment
/// of regions is read for the hierarchies of `naive`, the same policy resolved for the
/// verification.
///
/// # Errors
/// An unmet error if there are no regions in the assignment, a data error when memory runs out.
pub(super) fn expected<'a>(
    policy: &'a Policy,
    naive: &Policy,
    shown: &Shown,
    budget: &Arc<dyn Budget>,
) -> Result<Expected<'a>> {
    let columns = policy.released().map(|(name, _)| {
        let generalizer = policy.quasi_index(name).map(|index| match shown {
            Shown::Levels { generalizers, .. } => Arc::clone(&generalizers[index]),
            Shown::Regions { .. } | Shown::Noise { .. } => Arc::new(AsIs { text: true }),
        });
        (name.to_owned(), generalizer)
    });
    let assignment = match shown {
        Shown::Levels { .. } | Shown::Noise { .. } => None,
        Shown::Regions { assignment, is_of_earlier } => {
            let quasi = policy.released().filter_map(|(name, _)| naive.quasi_index(name));
            let hierarchies = quasi.map(|index| naive.quasi[index].hierarchy.clone()).collect();
            let lines_show = policy.centroid.map_or(LinesShow::Regions(policy.ends), LinesShow::Centroids);
            let mut assignment = Assignment::read(assignment.clone(), hierarchies, lines_show, budget)?;
            assignment.is_of_earlier = *is_of_earlier;
            Some(Arc::new(assignment))
        }
    };
    Ok(Expected {
        columns: columns.collect(),
        assignment,
        requirements: &policy.requirements,
        sensitive: policy.sensitive().map(str::to_owned).collect(),
        preferences: policy.preferences().map(str::to_owned).collect(),
        population: None,
        individual: policy.individual().map(str::to_owned),
        suppression_limit: Some(policy.suppression_limit),
    })
}
