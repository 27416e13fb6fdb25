//! The measures over one set of quasi-identifiers and at most one sensitive and one individual
//! column, as GROUP BYs.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, lit,
};

use super::super::codes::coded;
use super::super::measure_state::Row;
use super::super::udaf::{ClassAggregate, compared_column};
use super::class_values::ClassValues;
use super::infallible::{cannot_fail, nothing_can_fail};
use super::layer::{Layer, call};
use super::plain::Plain;
use super::{Answered, Rewrite, Stop};
use crate::engine::class_key::{is_key, keyed, value_key};

/// A call of a measure.
pub(super) struct Measure {
    /// The index of the call in the `Aggregate`'s list.
    pub(super) at: usize,
    pub(super) row: Row,
    pub(super) constants: Vec<Expr>,
    pub(super) individual: Option<Expr>,
    sensitive: Option<Expr>,
    /// Whether the measure reads more of the sensitive values than which are equal.
    reads_values: bool,
    /// The function over lists of counts, if the measure reads the values of its whole group.
    pub(super) of_classes: Option<Arc<AggregateUDF>>,
    /// Whether the measure looks at each individual's smallest class rather than at classes.
    pub(super) is_of_individuals: bool,
    /// The distinct quasi-identifiers, in the order of the call.
    quasi: Vec<Expr>,
    pub(super) filter: Option<Expr>,
    /// Whether FILTER protects arguments that can fail from some rows.
    guarded: bool,
}

impl Measure {
    /// Reads a call; `None` when it has too few arguments.
    pub(super) fn read(
        at: usize,
        function: &ClassAggregate,
        call: &AggregateFunction,
        aggregate: &Aggregate,
    ) -> Result<Option<Self>> {
        let Some(arguments) = function.arguments(&call.params.args) else { return Ok(None) };
        let row = function.row();
        let schema = aggregate.input.schema();
        let key = |expr: &Expr| compared_column(expr.clone().unalias(), schema);
        let mut quasi: Vec<Expr> = Vec::with_capacity(arguments.quasi.len());
        for expr in arguments.quasi {
            let expr = key(expr)?;
            if !quasi.contains(&expr) {
                quasi.push(expr);
            }
        }
        Ok(Some(Self {
            at,
            row,
            constants: arguments.constants.to_vec(),
            of_classes: function.of_classes().map(|function| Arc::new(function.into())),
            is_of_individuals: function.is_of_table() && arguments.individual.is_some(),
            individual: arguments.individual.map(key).transpose()?,
            sensitive: arguments.sensitive.map(key).transpose()?,
            reads_values: function.reads_values(),
            quasi,
            filter: call.params.filter.as_deref().cloned(),
            guarded: is_guarded(call, aggregate)?,
        }))
    }
}

/// Returns whether the FILTER of a call protects arguments that can fail from some rows. With GROUP
/// BY it does not: there the engine evaluates arguments for all rows.
fn is_guarded(call: &AggregateFunction, aggregate: &Aggregate) -> Result<bool> {
    if call.params.filter.is_none() || !aggregate.group_expr.is_empty() {
        return Ok(false);
    }
    for argument in &call.params.args {
        if !cannot_fail(argument, aggregate.input.schema())? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Measure {
    /// Returns whether the measure looks at a sensitive column.
    pub(super) fn is_of_values(&self) -> bool {
        self.sensitive.is_some()
    }

    fn has_quasi(&self, other: &Self) -> bool {
        self.quasi.len() == other.quasi.len() && self.quasi.iter().all(|expr| other.quasi.contains(expr))
    }
}

/// Measures that are computed from one grouping.
pub(super) struct Branch {
    pub(super) number: usize,
    pub(super) measures: Vec<Measure>,
    pub(super) plain: Vec<(usize, Plain)>,
    /// The FILTER shared by all its calls, where it stands below the layers.
    condition: Option<Expr>,
}

/// The lowest layer of a branch, and its columns.
struct Layers {
    rows: Layer,
    groups: Vec<Expr>,
    quasi: Vec<Expr>,
    individual: Option<Expr>,
    sensitive: Option<Expr>,
}

impl Branch {
    pub(super) fn new(number: usize, measure: Measure) -> Self {
        Self { number, measures: vec![measure], plain: Vec::new(), condition: None }
    }

    pub(super) fn individual(&self) -> Option<&Expr> {
        self.measures.iter().find_map(|measure| measure.individual.as_ref())
    }

    fn sensitive(&self) -> Option<&Expr> {
        self.measures.iter().find_map(|measure| measure.sensitive.as_ref())
    }

    /// Returns whether the grouping can also compute `other`.
    pub(super) fn takes(&self, other: &Measure) -> bool {
        let fits =
            |own: Option<&Expr>, other: Option<&Expr>| own.is_none() || other.is_none() || own == other;
        let same = |own: &Measure| own.has_quasi(other) && own.is_of_individuals == other.is_of_individuals;
        self.measures.iter().all(same)
            && fits(self.individual(), other.individual.as_ref())
            && fits(self.sensitive(), other.sensitive.as_ref())
            && self.shares_rows(other.filter.as_ref(), other.guarded)
    }

    /// Returns whether a call with this FILTER can stand in the same layers: a guarded call only
    /// beside calls with the same FILTER.
    fn shares_rows(&self, filter: Option<&Expr>, guarded: bool) -> bool {
        let shares = |own: &Measure| !(guarded || own.guarded) || own.filter.as_ref() == filter;
        self.measures.iter().all(shares)
    }

    pub(super) fn add(&mut self, measure: Measure) {
        self.measures.push(measure);
    }

    /// Returns whether the layers can also compute an ordinary aggregate.
    pub(super) fn takes_plain(&self, call: &AggregateFunction, aggregate: &Aggregate) -> Result<bool> {
        Ok(self.shares_rows(call.params.filter.as_deref(), is_guarded(call, aggregate)?))
    }

    pub(super) fn add_plain(&mut self, at: usize, plain: Plain) {
        self.plain.push((at, plain));
    }

    /// Moves the FILTER that all calls share below the layers, where that is safe: there are no
    /// outer groups, which would be lost, and neither the FILTER nor the `input` can fail.
    pub(super) fn filter_first(&mut self, aggregate: &Aggregate) -> std::result::Result<(), Stop> {
        let mut filters = self.measures.iter().map(|measure| measure.filter.as_ref());
        let first = filters.next().flatten().cloned();
        let is_common = filters.all(|filter| filter == first.as_ref())
            && self.plain.iter().all(|(_, plain)| plain.filter() == first.as_ref());
        let input = &aggregate.input;
        if let Some(filter) = first
            && is_common
            && aggregate.group_expr.is_empty()
            && cannot_fail(&filter, input.schema())?
            && nothing_can_fail(input)?
        {
            self.measures.iter_mut().for_each(|measure| measure.filter = None);
            self.plain.iter_mut().for_each(|(_, plain)| plain.forget_filter());
            self.condition = Some(filter);
            return Ok(());
        }
        match self.measures.iter().any(|measure| measure.guarded) {
            true => Err(Stop::Declined("FILTER keeps rows from arguments that can fail")),
            false => Ok(()),
        }
    }

    /// Returns the rows that the lowest layer reads.
    pub(super) fn input(&self, rewrite: &Rewrite<'_>) -> Result<LogicalPlan> {
        let input = LogicalPlan::clone(&rewrite.aggregate.input);
        match &self.condition {
            Some(filter) => LogicalPlanBuilder::from(input).filter(filter.clone())?.build(),
            None => Ok(input),
        }
    }

    /// Returns the columns that classes are counted by: each quasi-identifier once, in the order of
    /// the calls, with codes in place of text labels.
    pub(super) fn quasi(&self, schema: &DFSchema) -> Result<Vec<Expr>> {
        // All measures of a branch have the same quasi-identifiers.
        let quasi = self.measures.iter().take(1).flat_map(|measure| measure.quasi.iter().cloned());
        quasi.map(|column| without_unpacking(coded(column, schema)?, schema)).collect()
    }

    /// Returns the layer that groups by all columns, without values.
    fn lowest(&self, rewrite: &Rewrite<'_>) -> Result<Layers> {
        let mut rows = Layer::new(self.number, 1);
        let groups = rewrite.groups().map(|key| rows.key(key)).collect();
        let schema = rewrite.aggregate.input.schema();
        let quasi = keyed(self.quasi(schema)?, rewrite.seed, schema)?;
        // Beside a class key, texts that are only compared for equality are replaced by value keys.
        let value = |column: &Expr, is_compared_only: bool| -> Result<Expr> {
            let key = match is_key(&quasi) && is_compared_only {
                true => value_key(without_unpacking(column.clone(), schema)?, rewrite.seed, schema)?,
                false => None,
            };
            Ok(key.unwrap_or_else(|| column.clone()))
        };
        let reads_values = self.measures.iter().any(|measure| measure.reads_values);
        let individual = self.individual().map(|column| value(column, true)).transpose()?;
        let sensitive = self.sensitive().map(|column| value(column, !reads_values)).transpose()?;
        let quasi = quasi.into_iter().map(|key| rows.key(key)).collect();
        let [individual, sensitive] = [individual, sensitive].map(|column| column.map(|key| rows.key(key)));
        Ok(Layers { rows, groups, quasi, individual, sensitive })
    }

    /// Builds the plan over the input of `aggregate`, with its groups.
    pub(super) fn plan(self, rewrite: &Rewrite<'_>) -> std::result::Result<Answered, Stop> {
        let input = self.input(rewrite)?;
        if self.measures.iter().any(|measure| measure.is_of_individuals) {
            return self.plan_of_individuals(rewrite, input);
        }
        let Layers { mut rows, groups, quasi, individual, sensitive } = self.lowest(rewrite)?;
        let (mut classes, mut answers) = (Layer::new(self.number, 2), Layer::new(self.number, 3));
        groups.iter().chain(&quasi).for_each(|key| classes.keep(key));
        groups.iter().for_each(|key| answers.keep(key));
        let has_classes = individual.is_some() || sensitive.is_some();
        let mut of_values = ClassValues::new(&self.measures, individual.clone(), sensitive.clone())?;

        let mut values = Vec::new();
        for measure in self.measures {
            let filter = measure.filter.clone();
            let counted = rows.value(call(&count_udaf(), vec![lit(1i64)], filter.clone()));
            let size = match has_classes {
                true => classes.value(call(&sum_udaf(), vec![counted.clone()], None)),
                false => counted.clone(),
            };
            // A class none of whose rows passes the filter does not count.
            let only = |rows: &Expr| filter.is_some().then(|| rows.clone().gt(lit(0i64)));
            let value = if measure.is_of_values() {
                match of_values.value(&measure, &mut classes, &counted, &size, rewrite.rule)? {
                    Some(value) => value,
                    None => continue,
                }
            } else {
                let of_sizes = rewrite.rule.upper(measure.row, "_of_sizes")?;
                let individuals = match individual.iter().find(|_| measure.individual.is_some()) {
                    None => size.clone(),
                    Some(column) => {
                        classes.value(distinct(column.clone(), sensitive.is_some(), only(&counted)))
                    }
                };
                let arguments = measure.constants.iter().cloned().chain([individuals]).collect();
                call(&of_sizes, arguments, only(&size))
            };
            values.push((measure.at, answers.value(value)));
        }
        values.extend(of_values.compared(&mut answers));
        for (at, plain) in self.plain {
            let value = match has_classes {
                true => plain.lay(&mut [&mut rows, &mut classes, &mut answers])?,
                false => plain.lay(&mut [&mut rows, &mut answers])?,
            };
            values.push((at, value));
        }
        let mut plan = rows.over(input)?;
        if has_classes {
            plan = classes.over(plan)?;
        }
        Ok(Answered { plan: answers.over(plan)?, keys: groups, values })
    }
}

/// Returns a dictionary in the place of its unpacked values: a key is made of its entries.
fn without_unpacking(column: Expr, schema: &DFSchema) -> Result<Expr> {
    if let Expr::Cast(cast) = &column
        && let DataType::Dictionary(_, entries) = cast.expr.get_type(schema)?
        && *entries == column.get_type(schema)?
    {
        return Ok((*cast.expr).clone());
    }
    Ok(column)
}

/// Counts the individuals of a class over rows that are one per individual, or one per individual
/// and value if `also_values`.
fn distinct(individual: Expr, also_values: bool, filter: Option<Expr>) -> Expr {
    let filter = filter.map(Box::new);
    let count = AggregateFunction::new_udf(count_udaf(), vec![individual], also_values, filter, vec![], None);
    Expr::AggregateFunction(count)
}
