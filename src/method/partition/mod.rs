//! Methods that partition the base classes into classes of their own, so that values of a column
//! need not share a level.
//!
//! A method here returns sets of base classes, with the regions that they show where these are not the finest
//! ones around their values. `found` makes a released class of each set and one candidate of all classes.

mod cell;
pub mod cells;
pub mod clusters;
pub(super) mod cuts;
pub(super) mod global;
mod in_parts;
mod least_loss;
pub mod local;
mod medians;
pub mod mondrian;
mod near;
pub(super) mod nodes;
pub mod subtree;

use std::sync::Arc;

use self::cell::Cell;
use self::cuts::Finished;
use super::lattice::Options;
use super::{Candidate, Method, Outcome, Problem, Recoding};
use crate::class::{ClassTable, EncodedColumn, EvaluatedPartition, Held, Region, ReleasedClasses};
use crate::decimal::ratio;
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::parameter::{Parameter, Setting, Settings};

/// A row of [`METHODS`](super::METHODS) for a method that makes classes of its own.
pub struct Row {
    /// Name and documentation.
    pub doc: &'static Doc,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Whether no class shows anything coarser than a label of a level that the policy allows.
    pub keeps_max_level: bool,
    /// Whether classes can show what a choice that does not look at single values leaves to them:
    /// cuts, or labels.
    pub shows_cuts: bool,
    /// Makes the method.
    pub make: fn(&Settings, &Options) -> Result<Box<dyn Method>>,
}

impl Row {
    /// Makes the method with these settings; the others have their defaults.
    ///
    /// # Errors
    /// A policy error for a wrong or an unknown parameter.
    pub fn with(&self, given: &[(String, Setting)], options: &Options) -> Result<Box<dyn Method>> {
        (self.make)(&Settings::by_name(self.doc, self.parameters, given)?, options)
    }
}

/// Refuses individuals with several rows, and rows without an individual, for a method that protects rows.
pub(crate) fn check_people(method: &str, table: &ClassTable) -> Result<()> {
    if table.most_rows_of_one() <= 1 && table.unowned_rows() == 0 {
        return Ok(());
    }
    let why = format!(
        "`{method}` takes one row for each individual, and some have several, or a row has none; aggregate the rows of each individual \
         first, or use another method"
    );
    Err(Error::policy(why).at("method"))
}

/// Evaluates released classes; failing ones are suppressed. `None` if that suppresses more than the
/// problem allows, or a table model fails.
pub(crate) fn candidate(problem: &Problem<'_>, mut released: ReleasedClasses) -> Result<Option<Candidate>> {
    let Some(loss) = problem.objective.for_any_recoding() else {
        let name = problem.objective.doc().name;
        return Err(Error::policy(format!(
            "objective: `{name}` measures levels, which this method does not choose"
        )));
    };
    loop {
        let merged = problem.table.merge(&released)?;
        let evaluated = EvaluatedPartition::new(problem.table, &released, &merged, problem.requirements)?;
        if !evaluated.is_anonymous(problem.limit) {
            return Ok(None);
        }
        let mut is_kept = vec![false; released.regions().len()];
        evaluated.kept().for_each(|(class, _)| is_kept[class] = true);
        // What a class shows depends on the others that are kept, and classes that show the same
        // are one: again until none is.
        if let Some(as_shown) = released.as_shown(problem.table, &is_kept, problem.ends)? {
            released = as_shown;
            continue;
        }
        let candidate = Candidate {
            loss: loss.of(&evaluated),
            suppressed_rows: evaluated.suppressed_rows(),
            suppressed_individuals: evaluated.suppressed_individuals(),
            classes: evaluated.kept_classes(),
            min_class: evaluated.min_class(),
            recoding: Recoding::Classes(Arc::new(released)),
            by: None,
        };
        return Ok(Some(candidate));
    }
}

/// Returns what each leaf beyond the first that a row shows in a column costs it, by
/// `granularity_mean` of one row and column.
fn of_leaf(column: &EncodedColumn) -> f64 {
    column.weight() / ratio(u128::from(column.leaves()).saturating_sub(1).max(1), 1)
}

/// Returns the classes of the parts, or [one class](best_or_one_class) if there are none, or too many of them fail once
/// those that show the same are one.
fn found(problem: &Problem<'_>, options: &Options, parts: Vec<Finished>, evaluated: u64) -> Result<Outcome> {
    let best = if parts.is_empty() { None } else { candidate(problem, released(problem.table, parts)?)? };
    best_or_one_class(problem, options, best, evaluated)
}

/// Returns the best candidate; without one, all rows are one class, where `options` allow every column to be suppressed.
fn best_or_one_class(
    problem: &Problem<'_>,
    options: &Options,
    mut best: Option<Candidate>,
    evaluated: u64,
) -> Result<Outcome> {
    let table = problem.table;
    let can_be_one = table
        .columns()
        .iter()
        .zip(&options.ranges)
        .all(|(column, allowed)| *allowed.end() == column.height());
    if best.is_none() && can_be_one && !table.base().is_empty() {
        let classes = (0u32..).take(table.base().len()).collect();
        let shown = Cell::whole(table, problem.ends).map(|cell| cell.regions(table)).transpose()?;
        let all = candidate(problem, released(table, vec![Finished { classes, shown }])?)?;
        best = all.filter(|all| all.classes > 0);
    }
    Ok(Outcome { best: best.into_iter().collect(), nodes: None, evaluated, proven: false, bound: None })
}

/// Makes a released class of each part: it shows what the cuts left to it, or the finest regions
/// around its values.
///
/// # Errors
/// A data error when memory runs out.
pub(super) fn released(table: &ClassTable, parts: Vec<Finished>) -> Result<ReleasedClasses> {
    let mut held = Held::new(table.budget());
    held.at_least(parts.len() * table.columns().len() * size_of::<Region>())?;
    let mut class_of_base = vec![None; table.base().len()];
    let mut regions = Vec::with_capacity(parts.len());
    for (number, Finished { classes, shown }) in (0u32..).zip(parts) {
        for class in &classes {
            class_of_base[*class as usize] = Some(number);
        }
        regions.push(shown.map_or_else(|| table.regions_around(&classes), Ok)?);
    }
    ReleasedClasses::new(table, class_of_base, regions)
}

#[cfg(test)]
mod methods_tests;
