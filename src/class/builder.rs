//! From the batches of a GROUP BY to a [`ClassTable`].

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};

use super::classes::{Classes, Histograms};
use super::coded::CodedColumn;
use super::intern::Interner;
use super::packing::Packing;
use super::roll_up::{Scratch, roll_up};
use super::{Budget, ClassTable, Held, QuasiColumn};
use crate::error::{Error, Result};
use crate::generalize::{Hierarchy, Value};
use crate::model::ValueCount;

/// Builds a [`ClassTable`] from the batches of a GROUP BY over the quasi-identifiers and the sensitive columns
/// whose values are counted, in any order.
pub struct ClassTableBuilder {
    columns: Vec<QuasiColumn>,
    sensitive: Vec<String>,
    /// Quasi-identifiers, then sensitive columns.
    coding: Vec<Coding>,
    rows: Vec<u64>,
    held: Held,
    show_values: bool,
}

/// One column on its way to codes.
struct Coding {
    interner: Option<Interner>,
    codes: Vec<u32>,
}

impl Coding {
    fn bytes(&self) -> usize {
        self.codes.capacity() * size_of::<u32>() + self.interner.as_ref().map_or(0, Interner::bytes)
    }

    /// The distinct values in their order; the codes are then their places.
    fn finish(&mut self) -> Result<ArrayRef> {
        let interner = self.interner.take().ok_or_else(|| Error::internal("a column coded twice"))?;
        let (values, ranks) = interner.finish()?;
        self.codes.iter_mut().for_each(|code| *code = ranks[*code as usize]);
        Ok(values)
    }
}

impl ClassTableBuilder {
    /// An empty table over these quasi-identifiers, counting the values of these sensitive columns.
    ///
    /// # Errors
    /// A policy error when there is no quasi-identifier.
    pub fn new(columns: Vec<QuasiColumn>, sensitive: Vec<String>, budget: &Arc<dyn Budget>) -> Result<Self> {
        if columns.is_empty() {
            return Err(Error::policy("no quasi-identifier: give at least one column the role `quasi`"));
        }
        let coding = (0..columns.len() + sensitive.len())
            .map(|_| Coding { interner: None, codes: Vec::new() })
            .collect();
        let (rows, held) = (Vec::new(), Held::new(budget));
        Ok(Self { columns, sensitive, coding, rows, held, show_values: false })
    }

    /// Whether an error may name the values that a hierarchy does not cover; no cell is named otherwise.
    #[must_use]
    pub fn showing_values(mut self, show_values: bool) -> Self {
        self.show_values = show_values;
        self
    }

    /// Adds groups: one array a quasi-identifier and then one a sensitive column, in order, and the rows of
    /// each group. No group may come twice.
    ///
    /// # Errors
    /// A data error when memory runs out or a type cannot be grouped.
    pub fn add(&mut self, values: &[ArrayRef], rows: &[u64]) -> Result<()> {
        if values.len() != self.coding.len() || values.iter().any(|array| array.len() != rows.len()) {
            return Err(Error::internal("a class table batch of another shape"));
        }
        for (coding, array) in self.coding.iter_mut().zip(values) {
            let interner = match &mut coding.interner {
                Some(interner) => interner,
                none => none.insert(Interner::new(array.data_type())?),
            };
            interner.add(array, &mut coding.codes)?;
        }
        self.rows.extend_from_slice(rows);
        let coded: usize = self.coding.iter().map(Coding::bytes).sum();
        self.held.at_least(coded + self.rows.capacity() * size_of::<u64>())
    }

    /// Codes every level and packs the base classes.
    ///
    /// # Errors
    /// Those of the generalizers (values not covered, overflow), named with their column; a data error when
    /// memory runs out.
    pub fn finish(mut self) -> Result<ClassTable> {
        let budget = Arc::clone(self.held.budget());
        let mut codes_held = Held::new(&budget);
        let heaviest = self.columns.iter().map(|c| c.weight).fold(0.0, f64::max);
        let mut columns: Vec<CodedColumn> = Vec::with_capacity(self.columns.len());
        for (column, coding) in self.columns.drain(..).zip(&mut self.coding) {
            if coding.interner.is_none() {
                coding.interner = Some(Interner::new(column.hierarchy.input_type())?);
            }
            let values = coding.finish()?;
            let mut frequency = vec![0; values.len()];
            coding.codes.iter().zip(&self.rows).for_each(|(code, rows)| frequency[*code as usize] += rows);
            let name = column.name.clone();
            let uncovered =
                if self.show_values { uncovered(&column.hierarchy, &values)? } else { String::new() };
            let coded = CodedColumn::new(column, values, &frequency, heaviest)
                .map_err(|e| Error::of_policy(e).at(format!("columns.{name}.hierarchy")).and(&uncovered))?;
            // A base class stands at level 0, whose labels need not sort like the values: "10" < "9".
            let level_0 = coded.level(0).of_value();
            coding.codes.iter_mut().for_each(|code| *code = level_0[*code as usize]);
            columns.push(coded);
            codes_held.at_least(columns.iter().map(CodedColumn::bytes).sum())?;
        }
        let packing = Packing::new(columns.iter().map(CodedColumn::distinct)).ok_or_else(|| {
            Error::policy(format!("{} quasi-identifiers are too many to be grouped together", columns.len()))
        })?;
        let base = self.base(&packing, columns.len(), &budget)?;
        let total_rows = self.rows.iter().sum();
        let sensitive = std::mem::take(&mut self.sensitive);
        Ok(ClassTable { columns, sensitive, packing, base, total_rows, _codes: codes_held })
    }

    /// The base classes: the groups, merged where only sensitive values tell them apart.
    fn base(&mut self, packing: &Packing, quasi: usize, budget: &Arc<dyn Budget>) -> Result<Classes> {
        let (words, groups) = (packing.words(), self.rows.len());
        let mut held = Held::new(budget);
        held.at_least(groups * (words + 1) * size_of::<u64>())?;
        let mut entries = vec![0u64; groups * (words + 1)];
        for (entry, rows) in entries.chunks_exact_mut(words + 1).zip(&self.rows) {
            entry[words] = *rows;
        }
        for (column, coding) in self.coding.iter_mut().take(quasi).enumerate() {
            let field = packing.field(column);
            for (entry, code) in entries.chunks_exact_mut(words + 1).zip(std::mem::take(&mut coding.codes)) {
                field.put(entry, code);
            }
        }
        let mut sensitive = Vec::new();
        for coding in self.coding.iter_mut().skip(quasi).filter(|coding| coding.interner.is_some()) {
            let null = u32::from(coding.finish()?.null_count() > 0);
            let value = |code: u32| code.checked_sub(null);
            let codes = std::mem::take(&mut coding.codes).into_iter().zip(&self.rows);
            let counts = codes.map(|(code, rows)| ValueCount { value: value(code), count: *rows });
            sensitive.push(Histograms { starts: (0..=groups).collect(), counts: counts.collect() });
        }
        if sensitive.is_empty() && self.sensitive.is_empty() {
            return Ok(Classes { entries, words, sensitive, held });
        }
        sensitive.resize(self.sensitive.len(), Histograms::default());
        let groups = Classes { entries, words, sensitive, held }.accounted()?;
        let merged = roll_up(&groups, &vec![u64::MAX; words], &[], usize::MAX, &mut Scratch::new(budget))?;
        merged.ok_or_else(|| Error::internal("base classes without a bound"))
    }
}

/// The values that no level covers, for an error of a user who asked to see them.
fn uncovered(hierarchy: &Hierarchy, values: &ArrayRef) -> Result<String> {
    for level in hierarchy.levels() {
        let places = level.uncovered(values)?;
        if !places.is_empty() {
            let texts =
                places.iter().map(|place| Ok(Value::read(values, *place)?.text_form().unwrap_or_default()));
            return Ok(format!(": {}", texts.collect::<Result<Vec<_>>>()?.join(", ")));
        }
    }
    Ok(String::new())
}
