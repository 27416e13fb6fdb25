//! The classes that a private record assigns to values: what a person matches if somebody knows the
//! person's own class.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::recode::AttackerRecoding;
use crate::class::{Budget, Held};
use crate::error::{Error, Result};
use crate::generalize::{Hierarchy, Value};
use crate::input::PolicySource;
use crate::release::publish::record::PrivateRecord;
use crate::verify::assignment::Assignment;

/// The classes of a release by the values that its private record assigns to them, in some of the
/// quasi-identifiers.
pub(super) struct Assigned {
    assignment: Assignment,
    /// The place of each linked column among the quasi-identifiers.
    places: Vec<usize>,
    /// The classes, by the numbers of the level-0 labels in the linked columns; in order.
    classes: HashMap<Box<[u32]>, Vec<u32>>,
    _held: Held,
}

impl Assigned {
    /// Reads the assignment of a private record; `None` if there is none. `class_of` finds a class
    /// by what it shows in the linked columns.
    ///
    /// # Errors
    /// An unmet error for a damaged assignment, or one of other classes than those of the release;
    /// a data error when memory runs out.
    pub(super) fn read(
        private: Option<&PrivateRecord>,
        recoding: &AttackerRecoding<'_>,
        on: &[String],
        class_of: impl Fn(&[Option<&str>]) -> Option<u32>,
        budget: &Arc<dyn Budget>,
    ) -> Result<Option<Self>> {
        let recorded = private.and_then(|private| private.assignment.as_ref());
        let (Some(recorded), Some(public), Some(PolicySource { spec, files })) =
            (recorded, recoding.public, recoding.policy)
        else {
            return Ok(None);
        };
        let quasi = public.recoding.columns();
        let Some(lines_show) = public.recoding.lines_show() else { return Ok(None) };
        let other = || {
            Error::unmet("the private record assigns other classes than the release has; run `kanon verify`")
        };
        let hierarchies = quasi.iter().map(|name| {
            let column = spec.column(name).ok_or_else(|| {
                Error::policy(format!("column `{name}`: the policy is not that of the release"))
            })?;
            column.levels(&recoding.value_type(name)?.ok_or_else(other)?, files)
        });
        let hierarchies: Vec<Hierarchy> = hierarchies.collect::<Result<_>>()?;
        let place = |name: &String| quasi.iter().position(|column| column == name);
        let places = on.iter().map(place).collect::<Option<Vec<usize>>>().ok_or_else(other)?;
        let bytes = STANDARD.decode(recorded).map_err(|_| other())?;
        let assignment = Assignment::read(bytes.into(), hierarchies, lines_show, budget)?;

        let shown = |class: usize| {
            let text = |at: &usize| {
                let (shown, by_class) = assignment.shown(*at);
                shown[by_class[class] as usize].0.as_deref()
            };
            class_of(&places.iter().map(text).collect::<Vec<_>>()).ok_or_else(other)
        };
        let shown = (0..assignment.classes()).map(shown).collect::<Result<Vec<u32>>>()?;
        let mut held = Held::new(budget);
        let mut classes: HashMap<Box<[u32]>, Vec<u32>> = HashMap::new();
        let of_line = 2 * (size_of::<(Box<[u32]>, Vec<u32>)>() + (places.len() + 4) * size_of::<u32>());
        for (number, (labels, class)) in assignment.kept_lines().enumerate() {
            held.at_least((number + 1) * of_line)?;
            let all = classes.entry(places.iter().map(|at| labels[*at]).collect()).or_default();
            let class = shown[class as usize];
            if let Err(at) = all.binary_search(&class) {
                all.insert(at, class);
            }
        }
        Ok(Some(Self { assignment, places, classes, _held: held }))
    }

    /// Returns the number of a value's level-0 label in a linked column; `None` if no row of the
    /// input has it.
    ///
    /// # Errors
    /// An internal error for a hierarchy without levels, errors of its level 0.
    pub(super) fn number_of(
        &self,
        column: usize,
        hierarchy: &Hierarchy,
        value: &Value,
    ) -> Result<Option<u32>> {
        let as_is = hierarchy.levels().first().ok_or_else(|| Error::internal("assigned: no level 0"))?;
        let label = as_is.generalize_value(value)?.text_form();
        Ok(self.assignment.number_of(self.places[column], label.as_deref()))
    }

    /// Returns the classes that hold rows with these level-0 labels, in order.
    pub(super) fn classes(&self, labels: &[u32]) -> &[u32] {
        self.classes.get(labels).map_or(&[], Vec::as_slice)
    }
}
