//! The population of a release, counted by the naive generalizers: how many of its individuals have
//! each combination of labels.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::UInt32Type;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::lit;
use datafusion::prelude::DataFrame;
use futures::StreamExt;

use super::Expected;
use super::counting::{column_name, number_of};
use super::labels::Labels;
use crate::class::{Budget, Held};
use crate::engine::functions::counted;
use crate::engine::{Context, column};
use crate::error::{Error, Result};
use crate::progress::CancelToken;

const DOING: &str = "counting the population";

/// The individuals of a population by the numbers of their labels.
pub(crate) struct LabelledPopulation {
    individuals: HashMap<Vec<u32>, u64>,
    _held: Held,
}

impl LabelledPopulation {
    /// Counts the rows of a population, or its distinct individuals, by the labels that the
    /// quasi-identifiers are released with.
    ///
    /// # Errors
    /// A data error when reading fails or memory runs out.
    pub(super) async fn count(
        (table, individual): &(DataFrame, Option<String>),
        expected: &Expected<'_>,
        labels: &[Option<Arc<Labels>>],
        budget: &Arc<dyn Budget>,
        stop: &CancelToken,
    ) -> Result<Self> {
        let mut names = Vec::new();
        let mut columns = Vec::new();
        for index in expected.quasi() {
            let (name, generalizer) = &expected.columns[index];
            if let Some(labels) = &labels[index] {
                let number = number_of("kanon_label_of_population", name, generalizer.as_ref(), labels);
                columns.push(number.alias(column_name(index)));
                names.push(column(column_name(index)));
            }
        }
        let width = names.len();
        let mut rows = table.clone();
        if let Some(name) = individual {
            rows = rows.filter(column(name).is_not_null()).context(DOING)?;
            columns.push(column(name).alias("kanon_individual"));
        }
        rows = rows.select(columns).context(DOING)?;
        if individual.is_some() {
            rows = rows.distinct().context(DOING)?;
        }
        let groups = rows.aggregate(names, vec![count(lit(1i64))]).context(DOING)?;
        let mut stream = groups.execute_stream().await.context(DOING)?;
        let (mut individuals, mut held) = (HashMap::new(), Held::new(budget));
        let wrong = || Error::internal("population: a label has no number");
        while let Some(batch) = stream.next().await {
            stop.check()?;
            let batch = batch.context(DOING)?;
            let (counts, numbers) = batch.columns().split_last().ok_or_else(wrong)?;
            let numbers: Option<Vec<_>> =
                numbers.iter().map(|numbers| numbers.as_primitive_opt::<UInt32Type>()).collect();
            let numbers = numbers.ok_or_else(wrong)?;
            for (row, count) in counted(counts)?.into_iter().enumerate() {
                individuals
                    .insert(numbers.iter().map(|numbers| numbers.value(row)).collect::<Vec<u32>>(), count);
            }
            let each = size_of::<(Vec<u32>, u64)>() + 1 + width * size_of::<u32>();
            held.at_least(individuals.capacity() * each)?;
        }
        Ok(Self { individuals, _held: held })
    }

    /// Returns how many individuals have these labels.
    pub(super) fn of(&self, labels: &[u32]) -> u64 {
        self.individuals.get(labels).copied().unwrap_or(0)
    }

    /// Returns how many combinations of labels somebody has.
    pub(super) fn tuples(&self) -> u64 {
        self.individuals.len() as u64
    }
}
