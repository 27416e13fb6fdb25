//! The table of some base classes of a table, for methods that search again among those.

use super::classes::Classes;
use super::histograms::Histograms;
use super::{ClassTable, EncodedColumn, Held};
use crate::error::Result;
use crate::model::ValueCount;

impl ClassTable {
    /// Returns the table of these base classes alone, numbered in this order. Codes, weights and
    /// leaves stay those of the whole table, and so do the distributions that a model compares
    /// classes with and the number of individuals.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(crate) fn only(&self, base: &[u32]) -> Result<Self> {
        let mut codes = Held::new(self.budget());
        codes.at_least(self.columns.iter().map(EncodedColumn::bytes).sum())?;
        let classes = self.base.only(base)?;
        let columns = self.columns.iter().enumerate().map(|(at, column)| {
            let mut rows = vec![0u64; column.distinct()];
            for (class, n) in classes.rows().enumerate() {
                rows[self.code(&classes, class, at) as usize] += n;
            }
            column.among(&rows)
        });
        Ok(Self {
            columns: columns.collect(),
            sensitive: self.sensitive.clone(),
            packing: self.packing.clone(),
            total_rows: classes.rows().sum(),
            individuals: self.individuals.clone(),
            distributions: self.distributions.clone(),
            base: classes,
            by_value: None,
            population: self.population.clone(),
            is_part: true,
            _codes: codes,
        })
    }
}

impl ClassTable {
    /// Gives these columns the weight 0, so that no loss looks at them.
    pub(crate) fn weigh_nothing(&mut self, columns: &[usize]) {
        columns.iter().for_each(|column| self.columns[*column].weigh_nothing());
    }
}

impl Classes {
    fn only(&self, classes: &[u32]) -> Result<Self> {
        let mut held = Held::new(self.held.budget());
        held.at_least(self.bytes().min(classes.len() * (self.bytes() / self.len().max(1) + 1) * 2))?;
        let width = self.words + 1;
        let entries = classes.iter().flat_map(|class| &self.entries[*class as usize * width..][..width]);
        let mut only = Self {
            entries: entries.copied().collect(),
            words: self.words,
            sensitive: self.sensitive.iter().map(|values| values.only(classes)).collect(),
            members: self.members.as_ref().map(|members| members.only(classes)),
            held,
        };
        only.account()?;
        Ok(only)
    }
}

impl Histograms {
    pub(super) fn only(&self, classes: &[u32]) -> Self {
        let counts: Vec<&[ValueCount]> = classes.iter().map(|class| self.of(*class as usize)).collect();
        let starts = std::iter::once(0).chain(counts.iter().scan(0, |end, counts| {
            *end += counts.len();
            Some(*end)
        }));
        Self { starts: starts.collect(), counts: counts.concat(), values: self.values }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::class::Classes;
    use crate::method::partition::mondrian::tests::{rows, table_with};

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_subset_is_the_table_of_its_rows(rows in rows(), counts_individuals in any::<bool>(), part in 1..4usize) {
            let whole = table_with(&rows, counts_individuals, true);
            let chosen: Vec<u32> = (0u32..).take(whole.base().len()).step_by(part).collect();
            let only = whole.only(&chosen).unwrap();
            prop_assert_eq!(only.base().len(), chosen.len());
            let facts = |classes: &Classes, class: usize| {
                let mut individuals = classes.individuals(class).map(<[u32]>::to_vec);
                individuals.iter_mut().for_each(|all| all.sort_unstable());
                (classes.rows_of(class), individuals, classes.by_value(class, 0).to_vec(), classes.sensitive(class, 0).to_vec())
            };
            for (number, class) in chosen.iter().enumerate() {
                prop_assert_eq!(facts(only.base(), number), facts(whole.base(), *class as usize));
                for column in 0..whole.columns().len() {
                    let codes = (only.code(only.base(), number, column), whole.code(whole.base(), *class as usize, column));
                    prop_assert_eq!(codes.0, codes.1);
                }
            }
            let all: Vec<u32> = (0u32..).take(whole.base().len()).collect();
            let same = whole.only(&all).unwrap();
            for (column, again) in whole.columns().iter().zip(same.columns()) {
                for level in 0..=column.height() {
                    prop_assert_eq!(column.covered(level), again.covered(level));
                    prop_assert_eq!(column.most_leaves(level), again.most_leaves(level));
                    prop_assert_eq!(column.level(level).rows(), again.level(level).rows());
                    prop_assert!((column.entropy(level) - again.entropy(level)).abs() < 1e-9);
                }
            }
        }
    }
}
