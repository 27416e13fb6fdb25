//! The labels of a quasi-identifier as numbers.

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard};

use arrow::datatypes::{TimeUnit, i256};
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::class::{Budget, Held};
use crate::error::{Error, Result};
use crate::generalize::{Generalizer, Value};

/// The labels of one quasi-identifier on both sides, in order of arrival.
pub(crate) struct Labels(Mutex<Known>);

struct Known {
    labels: Vec<Value>,
    /// The indices of the labels, by their hash.
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// The total bytes of the texts.
    texts: usize,
    held: Held,
}

/// A label compared by kind and bits: labels that differ in one bit are different.
#[derive(PartialEq, Eq, Hash)]
enum Exact<'a> {
    Null,
    Bool(bool),
    Int(i128),
    Float(u64),
    Text(&'a str),
    Date(i32),
    Timestamp(i64, TimeUnit),
    Decimal(i256, i8),
}

impl<'a> Exact<'a> {
    fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Float(value) => Self::Float(value.to_bits()),
            Value::Text(value) => Self::Text(value),
            Value::Date(value) => Self::Date(*value),
            Value::Timestamp(value, unit, _) => Self::Timestamp(*value, *unit),
            Value::Decimal(digits, scale) => Self::Decimal(*digits, *scale),
        }
    }
}

impl Labels {
    /// An empty numbering; memory comes from `budget`.
    pub(crate) fn new(budget: &Arc<dyn Budget>) -> Self {
        let (index, hasher) = (HashTable::new(), DefaultHashBuilder::default());
        Self(Mutex::new(Known { labels: Vec::new(), index, hasher, texts: 0, held: Held::new(budget) }))
    }

    fn known(&self) -> Result<MutexGuard<'_, Known>> {
        self.0.lock().map_err(|_| Error::internal("labels: another thread panicked while it numbered labels"))
    }

    /// Returns the numbers of labels; a new one gets the next.
    pub(super) fn number(&self, labels: Vec<Value>) -> Result<Vec<u32>> {
        let mut known = self.known()?;
        let numbers = labels.into_iter().map(|label| known.number(label)).collect();
        known.account()?;
        numbers
    }

    /// Returns the value with this number.
    pub(super) fn value(&self, number: u32) -> Result<Value> {
        let value = self.known()?.labels.get(number as usize).cloned();
        value.ok_or_else(|| Error::internal("labels: a number without a label"))
    }

    /// Returns for each label so far whether it is one of the generalizer's.
    pub(crate) fn are_labels(&self, generalizer: &dyn Generalizer) -> Result<Vec<bool>> {
        Ok(self.known()?.labels.iter().map(|label| generalizer.is_label(label)).collect())
    }
}

impl Known {
    fn number(&mut self, label: Value) -> Result<u32> {
        let Self { labels, index, hasher, texts, .. } = self;
        let hash = |label: &Value| hasher.hash_one(Exact::of(label));
        let same = |at: &u32| Exact::of(&labels[*at as usize]) == Exact::of(&label);
        match index.entry(hash(&label), same, |at| hash(&labels[*at as usize])) {
            Entry::Occupied(number) => Ok(*number.get()),
            Entry::Vacant(free) => {
                let number = u32::try_from(labels.len()).map_err(|_| Error::data("too many labels"))?;
                free.insert(number);
                if let Value::Text(text) = &label {
                    *texts += text.capacity();
                }
                labels.push(label);
                Ok(number)
            }
        }
    }

    fn account(&mut self) -> Result<()> {
        let labels = self.labels.capacity() * size_of::<Value>() + self.index.allocation_size();
        self.held.at_least(labels + self.texts)
    }
}
