//! Methods that partition the base classes into classes of their own, so that values of a column need not share a level.

mod cell;
pub(super) mod cuts;
mod least_loss;
mod medians;
pub mod mondrian;

use std::sync::Arc;

use self::cuts::Finished;
use super::{Candidate, Method, Problem, Recoding};
use crate::class::{ClassTable, EvaluatedRegions, Held, Region, ReleasedClasses};
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::parameter::{Parameter, Setting, Settings};

/// A row of [`METHODS`](super::METHODS) for a method that makes classes of its own.
pub struct Row {
    /// Name and documentation.
    pub doc: &'static Doc,
    /// Its parameters; each has a default.
    pub parameters: &'static [Parameter],
    /// Makes the method.
    pub make: fn(&Settings) -> Result<Box<dyn Method>>,
}

impl Row {
    /// Makes the method with these settings; the others have their defaults.
    ///
    /// # Errors
    /// A policy error for a wrong or an unknown parameter.
    pub fn with(&self, given: &[(String, Setting)]) -> Result<Box<dyn Method>> {
        (self.make)(&Settings::by_name(self.doc, self.parameters, given)?)
    }
}

/// Evaluates released classes; failing ones are suppressed. `None` if that suppresses more than the problem allows.
pub(super) fn candidate(problem: &Problem<'_>, released: ReleasedClasses) -> Result<Option<Candidate>> {
    let Some(loss) = problem.objective.for_any_recoding() else {
        let name = problem.objective.doc().name;
        return Err(Error::policy(format!(
            "objective: `{name}` measures levels, which this method does not choose"
        )));
    };
    let merged = problem.table.merge(&released)?;
    let evaluated = EvaluatedRegions::new(problem.table, &released, &merged, problem.requirements);
    if evaluated.suppressed_individuals() > problem.limit {
        return Ok(None);
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
    Ok(Some(candidate))
}

/// Makes a released class of each part: it shows what the cuts left to it, or the finest regions around its values.
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
        regions.push(shown.map_or_else(|| around(table, &classes), Ok)?);
    }
    ReleasedClasses::new(table, class_of_base, regions)
}

/// Returns the finest regions around the values of base classes.
fn around(table: &ClassTable, classes: &[u32]) -> Result<Box<[Region]>> {
    let shown = table.columns().iter().enumerate().map(|(at, column)| {
        let mut codes: Vec<u32> =
            classes.iter().map(|class| table.code(table.base(), *class as usize, at)).collect();
        codes.sort_unstable();
        codes.dedup();
        Region::around(column, codes)
    });
    shown.collect()
}
