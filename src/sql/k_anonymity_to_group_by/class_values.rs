//! What measures of sensitive values compute of each class, from the counts of its values.
//!
//! Measures that read the values of their whole group look at a list of counts for each class. Those
//! with the same list are one call, whose result lists a number for each of them.
//!
//! # Limits
//! The engine's lists have 32-bit offsets: a partition that lists more than 2^31 counts fails.

use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::functions::core::named_struct;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_nested::expr_fn::array_element;
use datafusion::logical_expr::{AggregateUDF, Expr, lit};

use super::KAnonymityToGroupBy;
use super::branch::Measure;
use super::layer::{Layer, call};
use crate::engine::into_engine;
use crate::model::Worst;

/// The columns of the lowest layer that the classes of a branch are counted from.
pub(super) struct ClassValues {
    individual: Option<Expr>,
    sensitive: Option<Expr>,
    /// Whether a list of all counts is kept for each class.
    lists_all: bool,
    /// The measures that read the values of their whole group, by the list of counts that they read.
    compared: Vec<Compared>,
}

/// Measures that read the same list of counts.
struct Compared {
    function: Arc<AggregateUDF>,
    counts: Expr,
    /// The name and the constants of each different measure.
    measures: Vec<Vec<Expr>>,
    /// The index of each call in the `Aggregate`'s list, and the place of its measure.
    calls: Vec<(usize, usize)>,
}

impl Compared {
    fn add(&mut self, call: usize, measure: Vec<Expr>) {
        let known = self.measures.iter().position(|other| *other == measure);
        let place = known.unwrap_or(self.measures.len());
        if known.is_none() {
            self.measures.push(measure);
        }
        self.calls.push((call, place));
    }
}

impl ClassValues {
    /// Chooses what is kept for these measures.
    ///
    /// # Errors
    /// When a model cannot be made with every parameter 1.
    pub(super) fn new(
        measures: &[Measure],
        individual: Option<Expr>,
        sensitive: Option<Expr>,
    ) -> Result<Self> {
        let mut lists_all = false;
        for measure in measures.iter().filter(|measure| measure.of_classes.is_none()) {
            lists_all |= !measure.row.reads_extremes_only().map_err(into_engine)? && measure.is_of_values();
        }
        Ok(Self { individual, sensitive, lists_all, compared: Vec::new() })
    }

    /// Adds what a measure of sensitive values needs to the layer of `classes`, and returns the value
    /// above it; `None` for one that [`compared`](Self::compared) returns. `rows` has the rows of each
    /// value, `size` those of each class.
    ///
    /// # Errors
    /// An internal error for a measure without its functions.
    pub(super) fn value(
        &mut self,
        measure: &Measure,
        classes: &mut Layer,
        rows: &Expr,
        size: &Expr,
        rule: &KAnonymityToGroupBy,
    ) -> Result<Option<Expr>> {
        let sensitive = self.sensitive.clone();
        let sensitive =
            sensitive.ok_or_else(|| DataFusionError::Internal("a measure without its column".into()))?;
        let individual = self.individual.iter().filter(|_| measure.individual.is_some()).cloned();
        let are_counted = measure.filter.is_some().then(|| rows.clone().gt(lit(0i64)));
        let mut arguments = measure.constants.clone();
        if let Some(of_classes) = &measure.of_classes {
            let fields = individual.map(|column| ("individual", column));
            let fields = fields.chain([("value", sensitive), ("rows", rows.clone())]);
            let fields = fields.flat_map(|(name, column)| [lit(name), column]).collect();
            let counts = call(&array_agg_udaf(), vec![named_struct().call(fields)], are_counted);
            let counts = classes.value(counts);
            arguments.insert(0, lit(measure.row.doc().name));
            let is_it = |other: &&mut Compared| other.function == *of_classes && other.counts == counts;
            match self.compared.iter_mut().find(is_it) {
                Some(compared) => compared.add(measure.at, arguments),
                None => {
                    let function = Arc::clone(of_classes);
                    let mut compared = Compared { function, counts, measures: Vec::new(), calls: Vec::new() };
                    compared.add(measure.at, arguments);
                    self.compared.push(compared);
                }
            }
            return Ok(None);
        }
        let of_class = if self.individual.is_some() {
            // The rows below are one per individual, too.
            let end = if measure.individual.is_some() { "_individuals_of_class" } else { "_of_class" };
            arguments.extend(individual.chain([sensitive, rows.clone()]));
            classes.value(call(&rule.upper(measure.row, end)?, arguments, None))
        } else {
            arguments.push(size.clone());
            let has_value = sensitive.clone().is_not_null();
            if self.lists_all {
                let only = are_counted.map_or(has_value.clone(), |counted| counted.and(has_value));
                arguments.push(classes.value(call(&array_agg_udaf(), vec![rows.clone()], Some(only))));
            } else {
                arguments.push(classes.value(call(&count_udaf(), vec![sensitive], are_counted)));
                arguments.push(classes.value(call(&max_udaf(), vec![rows.clone()], Some(has_value))));
            }
            rule.of_counts(measure.row)?.call(arguments)
        };
        let end = match measure.row.worst()? {
            Worst::Least => min_udaf(),
            Worst::Greatest => max_udaf(),
        };
        Ok(Some(call(&end, vec![of_class], None)))
    }

    /// Adds the measures that read the values of their whole group to the layer of `answers`; returns
    /// each call with its value.
    pub(super) fn compared(self, answers: &mut Layer) -> Vec<(usize, Expr)> {
        let mut values = Vec::new();
        for Compared { function, counts, measures, calls } in self.compared {
            // Elements are counted from 1.
            let places = (1i64..).take(measures.len());
            let arguments = measures.into_iter().flatten().chain([counts]).collect();
            let all = answers.value(call(&function, arguments, None));
            let elements: Vec<Expr> = places.map(|place| array_element(all.clone(), lit(place))).collect();
            let element = |(at, place): (usize, usize)| Some((at, elements.get(place)?.clone()));
            values.extend(calls.into_iter().filter_map(element));
        }
        values
    }
}
