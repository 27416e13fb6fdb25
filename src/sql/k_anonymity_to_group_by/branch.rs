//! The measures over one set of quasi-identifiers, at most one sensitive and one individual column, as GROUP BYs.

use std::collections::HashSet;

use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, lit};

use super::super::answers::Row;
use super::super::udaf::ClassAggregate;
use super::layer::{Layer, call};
use super::plain::Plain;
use super::{Answered, Rewrite};
use crate::model::Worst;
use crate::release::class_key::keyed;
use crate::release::functions::canonical_float;

/// A call of a measure.
pub(super) struct Measure {
    /// Its place in the `Aggregate`'s list.
    pub(super) at: usize,
    pub(super) row: Row,
    pub(super) constants: Vec<Expr>,
    individual: Option<Expr>,
    sensitive: Option<Expr>,
    quasi: HashSet<Expr>,
    pub(super) filter: Option<Expr>,
}

impl Measure {
    /// Reads a call; `None` where no GROUP BY can answer.
    pub(super) fn read(
        at: usize,
        function: &ClassAggregate,
        call: &AggregateFunction,
        schema: &DFSchema,
    ) -> Result<Option<Self>> {
        let Some(arguments) = function.arguments(&call.params.args) else { return Ok(None) };
        let row = function.row();
        let key = |expr: &Expr| {
            let expr = expr.clone().unalias();
            Ok(if expr.get_type(schema)?.is_floating() { canonical_float(expr) } else { expr })
        };
        Ok(Some(Self {
            at,
            row,
            constants: arguments.constants.to_vec(),
            individual: arguments.individual.map(key).transpose()?,
            sensitive: arguments.sensitive.map(key).transpose()?,
            quasi: arguments.quasi.iter().map(key).collect::<Result<_>>()?,
            filter: call.params.filter.as_deref().cloned(),
        }))
    }
}

impl Measure {
    /// Whether it looks at everybody's smallest class, not at classes.
    pub(super) fn is_of_people(&self) -> bool {
        matches!(self.row, Row::Risk(_)) && self.individual.is_some()
    }
}

/// Measures that one grouping answers.
pub(super) struct Branch {
    pub(super) number: usize,
    pub(super) measures: Vec<Measure>,
    pub(super) plain: Vec<(usize, Plain)>,
}

/// The lowest layer of a branch, and its columns.
pub(super) struct Layers {
    pub(super) rows: Layer,
    pub(super) groups: Vec<Expr>,
    pub(super) quasi: Vec<Expr>,
    pub(super) individual: Option<Expr>,
    sensitive: Option<Expr>,
}

impl Branch {
    pub(super) fn new(number: usize, measure: Measure) -> Self {
        Self { number, measures: vec![measure], plain: Vec::new() }
    }

    fn individual(&self) -> Option<&Expr> {
        self.measures.iter().find_map(|measure| measure.individual.as_ref())
    }

    fn sensitive(&self) -> Option<&Expr> {
        self.measures.iter().find_map(|measure| measure.sensitive.as_ref())
    }

    /// Whether the grouping answers another measure, too.
    pub(super) fn takes(&self, other: &Measure) -> bool {
        let fits =
            |own: Option<&Expr>, other: Option<&Expr>| own.is_none() || other.is_none() || own == other;
        let same = |own: &Measure| own.quasi == other.quasi && own.is_of_people() == other.is_of_people();
        self.measures.iter().all(same)
            && fits(self.individual(), other.individual.as_ref())
            && fits(self.sensitive(), other.sensitive.as_ref())
    }

    pub(super) fn add(&mut self, measure: Measure) {
        self.measures.push(measure);
    }

    pub(super) fn add_plain(&mut self, plain: Vec<(usize, Plain)>) {
        self.plain = plain;
    }

    /// The layer that groups by all columns, without values.
    pub(super) fn lowest(&self, rewrite: &Rewrite<'_>) -> Result<Layers> {
        let mut rows = Layer::new(self.number, 1);
        let groups: Vec<Expr> =
            rewrite.aggregate.group_expr.iter().map(|key| rows.key(key.clone().unalias())).collect();
        // In the order of the call, which a set does not keep.
        let mut quasi: Vec<&Expr> = self.measures.iter().flat_map(|measure| &measure.quasi).collect();
        quasi.sort_by_cached_key(ToString::to_string);
        quasi.dedup();
        let quasi =
            keyed(quasi.into_iter().cloned().collect(), rewrite.seed, rewrite.aggregate.input.schema())?;
        let quasi: Vec<Expr> = quasi.into_iter().map(|key| rows.key(key)).collect();
        let individual = self.individual().cloned().map(|who| rows.key(who));
        let sensitive = self.sensitive().cloned().map(|value| rows.key(value));
        Ok(Layers { rows, groups, quasi, individual, sensitive })
    }

    /// The plan over the input of `aggregate`, with its groups.
    pub(super) fn plan(self, rewrite: &Rewrite<'_>) -> Result<Answered> {
        if self.measures.iter().any(Measure::is_of_people) {
            return self.plan_of_people(rewrite);
        }
        let Layers { mut rows, groups, quasi, individual, sensitive } = self.lowest(rewrite)?;
        let (mut classes, mut answers) = (Layer::new(self.number, 2), Layer::new(self.number, 3));
        groups.iter().chain(&quasi).for_each(|key| classes.keep(key));
        groups.iter().for_each(|key| answers.keep(key));
        let has_classes = individual.is_some() || sensitive.is_some();

        let mut values = Vec::new();
        for measure in self.measures {
            let filter = measure.filter.clone();
            let counted = rows.value(call(&count_udaf(), vec![lit(1i64)], filter.clone()));
            let size = match has_classes {
                true => classes.value(call(&sum_udaf(), vec![counted.clone()], None)),
                false => counted.clone(),
            };
            // A class without a row that passes the filter is none.
            let only = |rows: &Expr| filter.is_some().then(|| rows.clone().gt(lit(0i64)));
            let mut arguments = measure.constants.clone();
            let value = if measure.sensitive.is_some() {
                let end = if measure.individual.is_some() { "_individuals_of_class" } else { "_of_class" };
                let of_class = rewrite.rule.upper(measure.row, end)?;
                arguments.extend(individual.iter().filter(|_| measure.individual.is_some()).cloned());
                arguments.extend(sensitive.iter().cloned());
                arguments.push(counted);
                let value = classes.value(call(&of_class, arguments, None));
                let end = match measure.row.worst()? {
                    Worst::Least => min_udaf(),
                    Worst::Greatest => max_udaf(),
                };
                call(&end, vec![value], None)
            } else {
                let of_sizes = rewrite.rule.upper(measure.row, "_of_sizes")?;
                let people = match individual.iter().find(|_| measure.individual.is_some()) {
                    None => size.clone(),
                    Some(who) => classes.value(distinct(who.clone(), sensitive.is_some(), only(&counted))),
                };
                arguments.push(people);
                call(&of_sizes, arguments, only(&size))
            };
            values.push((measure.at, answers.value(value)));
        }
        for (at, plain) in self.plain {
            let value = match has_classes {
                true => plain.lay(&mut [&mut rows, &mut classes, &mut answers])?,
                false => plain.lay(&mut [&mut rows, &mut answers])?,
            };
            values.push((at, value));
        }
        let mut plan = rows.over(LogicalPlan::clone(&rewrite.aggregate.input))?;
        if has_classes {
            plan = classes.over(plan)?;
        }
        Ok(Answered { plan: answers.over(plan)?, keys: groups, values })
    }
}

/// The people of a class, from rows that tell them apart, and maybe values, too.
fn distinct(who: Expr, also_values: bool, filter: Option<Expr>) -> Expr {
    let filter = filter.map(Box::new);
    let count = AggregateFunction::new_udf(count_udaf(), vec![who], also_values, filter, vec![], None);
    Expr::AggregateFunction(count)
}
