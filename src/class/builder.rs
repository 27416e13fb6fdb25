//! Builds a [`ClassTable`] from the batches of a GROUP BY.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array, new_empty_array};
use arrow::compute::take;

use super::base_classes::{GroupHolders, GroupedCodes, SensitiveCodes};
use super::encoded_column::EncodedColumn;
use super::encoder::{Encoder, ranks};
use super::held::HeldList;
use super::histograms::Histograms;
use super::packing::Packing;
use super::value_classes::ValueClasses;
use super::{Budget, ClassTable, Held, Individuals, QuasiColumn, for_combinations, too_many_classes};
use crate::error::{Error, Result};
use crate::generalize::Hierarchy;
use crate::model::{Distribution, SensitiveColumn};

/// Builds a [`ClassTable`] from the batches of a GROUP BY over the quasi-identifiers, the counted
/// sensitive columns and the individual column, if there is one. Batches may come in any order.
pub struct ClassTableBuilder {
    columns: Vec<QuasiColumn>,
    sensitive: Vec<SensitiveColumn>,
    counts_individuals: bool,
    /// The encodings of the quasi-identifiers, then of the sensitive columns, then of the
    /// individual.
    coding: Vec<Coding>,
    rows: HeldList<u64>,
    budget: Arc<dyn Budget>,
    show_values: bool,
}

/// One column while its values are being encoded.
struct Coding {
    coder: Encoder,
    codes: HeldList<u32>,
}

impl Coding {
    fn new(budget: &Arc<dyn Budget>) -> Self {
        Self { coder: Encoder::new(budget), codes: HeldList::new(budget) }
    }

    /// Returns the distinct values in order and turns each code into its value's position in that
    /// order; `None` without a row.
    fn finish(&mut self) -> Result<Option<ArrayRef>> {
        let Some((values, ranks)) = self.coder.finish_sorted()? else { return Ok(None) };
        self.codes.iter_mut().for_each(|code| *code = ranks[*code as usize]);
        Ok(Some(values))
    }

    /// Returns the `values` in the order of their positions, values without a position (NULL) first and
    /// those with one position in the order that they have, and changes their codes accordingly.
    fn order_by(&mut self, values: &ArrayRef, positions: &UInt32Array) -> Result<ArrayRef> {
        let mut order: Vec<u32> = (0u32..).take(values.len()).collect();
        order.sort_by_key(|at| positions.is_valid(*at as usize).then(|| positions.value(*at as usize)));
        let order = UInt32Array::from(order);
        let ranks = ranks(order.values());
        self.codes.iter_mut().for_each(|code| *code = ranks[*code as usize]);
        take(values, &order, None).map_err(Error::internal)
    }
}

impl ClassTableBuilder {
    /// Creates an empty table over these quasi-identifiers that counts the values of these
    /// sensitive columns.
    ///
    /// # Errors
    /// A policy error without a quasi-identifier.
    pub fn new(
        columns: Vec<QuasiColumn>,
        sensitive: Vec<SensitiveColumn>,
        budget: &Arc<dyn Budget>,
    ) -> Result<Self> {
        if columns.is_empty() {
            return Err(Error::policy("no quasi-identifier: give at least one column the role `quasi`"));
        }
        Ok(Self {
            coding: (0..columns.len() + sensitive.len()).map(|_| Coding::new(budget)).collect(),
            columns,
            sensitive,
            counts_individuals: false,
            rows: HeldList::new(budget),
            budget: Arc::clone(budget),
            show_values: false,
        })
    }

    /// Counts individuals instead of rows; the individual column is the last of every batch.
    #[must_use]
    pub fn counting_individuals(mut self) -> Self {
        self.coding.push(Coding::new(&self.budget));
        self.counts_individuals = true;
        self
    }

    /// Sets whether an error may show the values that a hierarchy does not cover; no other error
    /// shows a cell.
    #[must_use]
    pub fn showing_values(mut self, show_values: bool) -> Self {
        self.show_values = show_values;
        self
    }

    /// Returns the encoders for [`add_coded`](Self::add_coded): one per quasi-identifier, then one
    /// per sensitive column, in order, then the individual's.
    pub fn coders(&self) -> Vec<Encoder> {
        self.coding.iter().map(|coding| coding.coder.clone()).collect()
    }

    /// Adds groups: one array per quasi-identifier, then one per sensitive column, in order, then
    /// the individual's, and the number of rows of each group. Every group must be added only once.
    ///
    /// # Errors
    /// A data error when memory runs out or a type cannot be grouped.
    pub fn add(&mut self, values: &[ArrayRef], rows: &[u64]) -> Result<()> {
        let coded = self.coding.iter().zip(values).map(|(coding, values)| coding.coder.code(values));
        let coded: Vec<Vec<u32>> = coded.collect::<Result<_>>()?;
        self.add_coded(&coded.iter().map(Vec::as_slice).collect::<Vec<_>>(), rows)
    }

    /// Adds groups as [`add`](Self::add) does, given the codes of the [`coders`](Self::coders)
    /// instead of values.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub fn add_coded(&mut self, codes: &[&[u32]], rows: &[u64]) -> Result<()> {
        if codes.len() != self.coding.len() || codes.iter().any(|codes| codes.len() != rows.len()) {
            return Err(Error::internal("class table: a batch with the wrong number of columns or codes"));
        }
        let groups = self.rows.len() + rows.len();
        let mut codings = self.coding.iter_mut().zip(codes);
        codings
            .try_for_each(|(coding, codes)| coding.codes.extend(codes))
            .and_then(|()| self.rows.extend(rows))
            .map_err(|error| for_combinations(error, groups))
    }

    /// Encodes every level and packs the base classes.
    ///
    /// # Errors
    /// The errors of the generalizers (values not covered, overflow), each with its column's name;
    /// a data error when memory runs out.
    pub fn finish(self) -> Result<ClassTable> {
        let groups = self.rows.len();
        self.finished().map_err(|error| for_combinations(error, groups))
    }

    fn finished(mut self) -> Result<ClassTable> {
        let budget = self.budget;
        let mut codes_held = Held::new(&budget);
        let heaviest = self.columns.iter().map(|c| c.weight).fold(0.0, f64::max);
        let mut columns: Vec<EncodedColumn> = Vec::with_capacity(self.columns.len());
        let mut values_of_groups = Vec::with_capacity(self.columns.len());
        let mut values_held = Held::new(&budget);
        let of_values = 2 * self.columns.len() * self.rows.len() * size_of::<u32>();
        let mut quasi = Vec::with_capacity(self.columns.len());
        let holders =
            if self.counts_individuals { self.coding.pop().map(holders).transpose()? } else { None };
        let mut codings = self.coding.into_iter();
        for (column, mut coding) in self.columns.into_iter().zip(&mut codings) {
            let values = coding.finish()?;
            let values = values.unwrap_or_else(|| new_empty_array(column.hierarchy.input_type()));
            let values = match column.hierarchy.leaf_positions(&values)? {
                Some(positions) => coding.order_by(&values, &positions)?,
                None => values,
            };
            codes_held.at_least(codes_of(&columns) + values.len() * size_of::<u64>())?;
            let mut frequency = vec![0; values.len()];
            coding.codes.iter().zip(&*self.rows).for_each(|(code, rows)| frequency[*code as usize] += rows);
            let uncovered =
                if self.show_values { uncovered(&column.hierarchy, &values)? } else { String::new() };
            let coded = EncodedColumn::new(column, values, &frequency, heaviest, &budget)
                .map_err(|e| e.and(&uncovered))?;
            // Base classes are at level 0, which may merge values.
            let level_0 = coded.level(0).of_value();
            if coded.joins_values() {
                values_held.at_least(of_values)?;
            }
            values_of_groups.push(coded.joins_values().then(|| coding.codes.to_vec()));
            coding.codes.iter_mut().for_each(|code| *code = level_0[*code as usize]);
            columns.push(coded);
            codes_held.exactly(codes_of(&columns))?;
            quasi.push(coding.codes);
        }
        let packing = Packing::new(columns.iter().map(EncodedColumn::distinct)).ok_or_else(|| {
            Error::policy(format!("{} quasi-identifiers are too many to group by", columns.len()))
        })?;
        let individuals =
            holders.as_ref().map(|holders| holders.individuals(&self.rows, &budget)).transpose()?;
        let (mut sensitive, mut distinct) = (Vec::new(), Vec::new());
        for mut coding in codings {
            let Some(values) = coding.finish()? else { continue };
            let null = u32::from(values.null_count() > 0);
            let all = u32::try_from(values.len()).map_err(|_| too_many_classes())?;
            sensitive.push(SensitiveCodes { codes: coding.codes, null, values: all });
            // The encoder holds the memory of the values.
            distinct.push((values, coding.coder));
        }
        let values_of_groups = match values_of_groups.iter().any(Option::is_some) {
            true => {
                let all = values_of_groups.into_iter().zip(&quasi);
                Some(all.map(|(values, codes)| values.unwrap_or_else(|| codes.to_vec())).collect::<Vec<_>>())
            }
            false => None,
        };
        let groups =
            GroupedCodes { packing: &packing, quasi, sensitive, holders: holders.as_ref(), rows: &self.rows };
        let mut base = groups.base(&budget)?;
        base.sensitive.resize(self.sensitive.len(), Histograms::default());
        drop(holders);
        let by_value = values_of_groups
            .map(|values| ValueClasses::new(&columns, &values, &self.rows, (&base, &packing), &budget));
        let by_value = by_value.transpose()?;
        let total_rows = self.rows.iter().sum();
        let people = individuals.as_ref().map_or(0, |individuals: &Individuals| individuals.count);
        let distribution = |(at, column): (usize, &SensitiveColumn)| {
            let counts = base.distribution(at, people);
            match distinct.get(at) {
                Some((values, _)) => column.facts(values)?.add_to(counts),
                None => Ok(counts),
            }
        };
        let sensitive = self.sensitive;
        let distributions: Vec<Distribution> =
            sensitive.iter().enumerate().map(distribution).collect::<Result<_>>()?;
        let sensitive = sensitive.iter().map(SensitiveColumn::to_string).collect();
        let of_values = by_value.as_ref().map_or(0, ValueClasses::bytes);
        let of_distributions: usize = distributions.iter().map(Distribution::bytes).sum();
        codes_held.exactly(codes_of(&columns) + of_distributions + of_values)?;
        Ok(ClassTable {
            columns,
            sensitive,
            packing,
            base,
            by_value,
            total_rows,
            individuals,
            distributions,
            population: None,
            is_part: false,
            _codes: codes_held,
        })
    }
}

/// Returns the individual of each group.
fn holders(mut coding: Coding) -> Result<GroupHolders> {
    let (null, all) = match coding.finish()? {
        None => (0, 0),
        Some(values) => {
            let null = u32::from(values.null_count() > 0);
            (null, u32::try_from(values.len()).map_err(|_| too_many_classes())? - null)
        }
    };
    Ok(GroupHolders { codes: coding.codes, null, all })
}

fn codes_of(columns: &[EncodedColumn]) -> usize {
    columns.iter().map(EncodedColumn::bytes).sum()
}

/// Lists the values that no level covers, for the error of a user who asked to see them.
fn uncovered(hierarchy: &Hierarchy, values: &ArrayRef) -> Result<String> {
    let texts = hierarchy.uncovered(values)?;
    Ok(if texts.is_empty() { String::new() } else { format!(": {}", texts.join(", ")) })
}
