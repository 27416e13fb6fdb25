//! What several base classes hold together, counted again each time: individuals may have rows in
//! several of them.

use super::individuals::IndividualsByValue;
use super::{ClassTable, Held};
use crate::error::Result;
use crate::model::{Class, Counted, Requirement, SensitiveColumn, ValueCount, min_size};

/// Counts the rows, individuals and sensitive values of sets of base classes, in memory that it reuses.
pub struct Union<'a> {
    table: &'a ClassTable,
    /// For each requirement the sensitive column that it looks at.
    looks_at: Vec<Option<usize>>,
    requirements: &'a [Requirement],
    /// The round in which each individual was last seen.
    seen: Vec<u32>,
    /// The same for each pair of an individual and a value, per sensitive column.
    seen_pairs: Vec<Vec<u32>>,
    round: u32,
    values: Vec<Vec<ValueCount>>,
    _held: Held,
}

impl std::fmt::Debug for Union<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Union(..)")
    }
}

impl<'a> Union<'a> {
    /// Prepares counting for these requirements.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub fn new(table: &'a ClassTable, requirements: &'a [Requirement]) -> Result<Self> {
        let column = |column: &SensitiveColumn| table.sensitive_index(column).unwrap_or(usize::MAX);
        let looks_at = requirements.iter().map(|requirement| requirement.sensitive.as_ref().map(column));
        let members = table.base.members.as_ref();
        let individuals = members.map_or(0, |members| members.individuals.all());
        let pairs = members
            .map_or(Vec::new(), |members| members.by_value.iter().map(IndividualsByValue::all).collect());
        let mut held = Held::new(table.base.held.budget());
        // At first the values of all base classes stand beside one another.
        let counts = (0..table.base.len()).flat_map(|class| {
            (0..table.sensitive.len()).map(move |column| table.base.sensitive(class, column).len())
        });
        let values = counts.sum::<usize>() + pairs.iter().sum::<usize>();
        let seen = individuals + pairs.iter().sum::<usize>();
        held.at_least(seen * size_of::<u32>() + values * size_of::<ValueCount>())?;
        Ok(Self {
            table,
            looks_at: looks_at.collect(),
            requirements,
            seen: vec![0; individuals],
            seen_pairs: pairs.into_iter().map(|pairs| vec![0; pairs]).collect(),
            round: 0,
            values: vec![Vec::new(); table.sensitive.len()],
            _held: held,
        })
    }

    /// Returns whether the base classes would together satisfy every requirement as one class.
    pub fn holds(&mut self, base: &[u32]) -> bool {
        self.begin_round();
        let size = self.size(base);
        if size < min_size(self.requirements) {
            return false;
        }
        let mut looked_at: Vec<usize> = self.looks_at.iter().flatten().copied().collect();
        looked_at.sort_unstable();
        looked_at.dedup();
        looked_at.into_iter().for_each(|column| self.count_values(base, column));
        self.requirements.iter().zip(&self.looks_at).all(|(requirement, looks_at)| {
            let class = looks_at.map_or(Class::of_size(size), |column| Class {
                size,
                sensitive: self.values.get(column).map_or(&[], Vec::as_slice),
                input: self.table.distribution(column),
                population: None,
            });
            requirement.model.holds(requirement.model.value(&class))
        })
    }

    /// Begins a round, in which nothing was seen yet.
    fn begin_round(&mut self) {
        self.round = self.round.checked_add(1).unwrap_or_else(|| {
            self.seen.fill(0);
            self.seen_pairs.iter_mut().for_each(|seen| seen.fill(0));
            1
        });
    }

    /// Returns the individuals of the base classes, or their rows if no individuals are counted.
    fn size(&mut self, base: &[u32]) -> u64 {
        if self.table.counted() == Counted::Rows {
            return base.iter().map(|class| self.table.base.rows_of(*class as usize)).sum();
        }
        let mut size = 0;
        for class in base {
            for individual in self.table.base.individuals(*class as usize).unwrap_or(&[]) {
                let seen = &mut self.seen[*individual as usize];
                size += u64::from(*seen != self.round);
                *seen = self.round;
            }
        }
        size
    }

    /// Counts the individuals (or rows) with each value of a sensitive column, in the order of the values.
    fn count_values(&mut self, base: &[u32], column: usize) {
        let Some(counts) = self.values.get_mut(column) else { return };
        counts.clear();
        match &self.table.base.members {
            None => base.iter().for_each(|class| {
                counts.extend_from_slice(self.table.base.sensitive(*class as usize, column));
            }),
            Some(members) => {
                let (by_value, seen) = (&members.by_value[column], &mut self.seen_pairs[column]);
                for class in base {
                    for (pair, value) in by_value.pairs(*class as usize) {
                        let seen = &mut seen[pair as usize];
                        if *seen != self.round {
                            *seen = self.round;
                            counts.push(ValueCount { value, count: 1 });
                        }
                    }
                }
            }
        }
        counts.sort_unstable_by_key(|count| count.value);
        counts.dedup_by(|next, first| {
            let is_same = next.value == first.value;
            if is_same {
                first.count += next.count;
            }
            is_same
        });
    }
}
