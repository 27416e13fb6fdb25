//! The base classes by the values of the input, where level 0 joins values that count each for itself.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use super::packing::Packing;
use super::{Budget, ClassTable, Classes, EncodedColumn, Held};
use crate::error::{Error, Result};

/// Combinations of values, each in a base class.
#[derive(Clone)]
pub(crate) struct ValueClasses {
    /// The base class of each.
    pub(crate) base: Vec<u32>,
    /// The rows of each.
    pub(crate) rows: Vec<u64>,
    /// For each column the [own value](EncodedColumn::own_values) of each.
    pub(crate) codes: Vec<Vec<u32>>,
}

impl ValueClasses {
    /// Sorts groups, given the own values of each by column and its rows, into base classes.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn new(
        columns: &[EncodedColumn],
        values: &[Vec<u32>],
        rows: &[u64],
        (base, packing): (&Classes, &Packing),
        budget: &Arc<dyn Budget>,
    ) -> Result<Self> {
        let mut held = Held::new(budget);
        let of_key = columns.len() * size_of::<u32>();
        held.at_least(rows.len() * (2 * of_key + 24) + base.len() * 2 * (of_key + 40))?;
        let key_of = |class: usize| -> Box<[u32]> {
            (0..columns.len()).map(|at| base.code(class, at, packing)).collect()
        };
        let numbers: HashMap<Box<[u32]>, u32> = (0..base.len()).map(key_of).zip(0..).collect();
        let of_group = |group: &u32| values.iter().map(|codes| codes[*group as usize]).collect::<Vec<_>>();
        let mut order: Vec<u32> = (0u32..).take(rows.len()).collect();
        order.sort_unstable_by(|a, b| {
            let mut by_column = values.iter().map(|codes| codes[*a as usize].cmp(&codes[*b as usize]));
            by_column.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        });
        let mut all = Self { base: Vec::new(), rows: Vec::new(), codes: vec![Vec::new(); columns.len()] };
        let are_equal =
            |a: &u32, b: &u32| values.iter().all(|codes| codes[*a as usize] == codes[*b as usize]);
        for groups in order.chunk_by(are_equal) {
            let Some(codes) = groups.first().map(of_group) else { continue };
            let key: Box<[u32]> =
                columns.iter().zip(&codes).map(|(column, own)| column.own_code(*own)).collect();
            let number = numbers.get(&key);
            all.base.push(*number.ok_or_else(|| Error::internal("value classes: a group without a class"))?);
            all.rows.push(groups.iter().map(|group| rows[*group as usize]).sum());
            all.codes.iter_mut().zip(codes).for_each(|(of_column, code)| of_column.push(code));
        }
        Ok(all)
    }

    /// Returns the bytes that they take.
    pub(super) fn bytes(&self) -> usize {
        bytes_of(self.rows.len(), self.codes.len())
    }
}

/// Returns the bytes that combinations of values take.
fn bytes_of(combinations: usize, columns: usize) -> usize {
    combinations * (12 + columns * size_of::<u32>())
}

impl ClassTable {
    /// Returns the base classes by the values of the input: each once, unless level 0 joins values. `held` gets their
    /// bytes first.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(crate) fn value_classes(&self, held: &mut Held) -> Result<ValueClasses> {
        let base = self.base();
        let columns = self.columns().len();
        let count = self.by_value.as_ref().map_or(base.len(), |values| values.rows.len());
        held.at_least(bytes_of(count, columns))?;
        if let Some(values) = &self.by_value {
            return Ok(values.clone());
        }
        let code_of = |at: usize| (0..base.len()).map(|class| self.code(base, class, at)).collect();
        Ok(ValueClasses {
            base: (0u32..).take(base.len()).collect(),
            rows: base.rows().collect(),
            codes: (0..columns).map(code_of).collect(),
        })
    }
}
