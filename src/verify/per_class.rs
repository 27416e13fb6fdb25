//! The groups of each class, brought together: from `GROUP BY labels, sensitive values, individual`
//! to classes with the counts of their values and their distinct individuals, by a spilling sort on
//! two hashes of the labels under a random key.
//!
//! Individuals are counted in the input by hashes under random keys. The judge holds only a number, the
//! smallest class and whether a row is suppressed for each of them, in memory of the engine's pool.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use arrow::datatypes::UInt64Type;
use arrow::record_batch::RecordBatch;
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::logical_expr::{Expr, lit, when};
use datafusion::prelude::DataFrame;
use datafusion::scalar::ScalarValue;
use hashbrown::HashMap;

use crate::class::{Budget, Held};
use crate::engine::functions::row_hash;
use crate::engine::{Context, column};
use crate::error::{Error, Result};
use crate::model::{Distribution, SeenClass, ValueCount};

const POSITION: [&str; 2] = ["kanon_class_a", "kanon_class_b"];

/// Sorts `table` so that rows with equal `labels` are adjacent: the position of the class, then
/// `columns`.
pub(crate) fn by_class(
    table: DataFrame,
    labels: &[Expr],
    columns: Vec<Expr>,
    keys: [[u64; 2]; 2],
) -> Result<DataFrame> {
    let doing = "bringing classes together";
    let hashes = keys.into_iter().zip(POSITION).map(|(key, name)| row_hash(key, labels.to_vec()).alias(name));
    let rows = table.select(hashes.chain(columns).collect::<Vec<_>>()).context(doing)?;
    rows.sort(POSITION.map(|name| column(name).sort(true, true)).to_vec()).context(doing)
}

/// The class of each row of a batch.
pub(crate) struct Position<'a>([&'a UInt64Array; 2]);

impl<'a> Position<'a> {
    /// Splits a batch into positions and the columns after them.
    pub(crate) fn split(batch: &'a RecordBatch) -> Result<(Self, &'a [ArrayRef])> {
        let wrong = || Error::internal("per_class: a class has no position");
        let [a, b, rest @ ..] = batch.columns() else { return Err(wrong()) };
        let hash = |array: &'a ArrayRef| array.as_primitive_opt::<UInt64Type>().ok_or_else(wrong);
        Ok((Self([hash(a)?, hash(b)?]), rest))
    }

    pub(crate) fn at(&self, row: usize) -> u128 {
        u128::from(self.0[0].value(row)) << 64 | u128::from(self.0[1].value(row))
    }
}

/// The columns that identify a row's individual: two hashes, the first NULL if the individual is
/// NULL.
pub(crate) const INDIVIDUAL: [&str; 2] = ["kanon_individual_a", "kanon_individual_b"];

/// Returns an individual as two hashes under random keys, so that integers are grouped instead of
/// names.
///
/// # Errors
/// When the plan cannot be built.
pub(crate) fn individual(expr: Expr, keys: [[u64; 2]; 2]) -> Result<Vec<Expr>> {
    let null = || lit(ScalarValue::UInt64(None));
    let hash = |key: [u64; 2]| row_hash(key, vec![expr.clone()]);
    let known =
        when(expr.clone().is_null(), null()).otherwise(hash(keys[0])).context("counting individuals")?;
    Ok(vec![known.alias(INDIVIDUAL[0]), hash(keys[1]).alias(INDIVIDUAL[1])])
}

/// Returns the two hash columns of a row without an individual.
pub(crate) fn no_individual() -> Vec<Expr> {
    vec![lit(ScalarValue::UInt64(None)).alias(INDIVIDUAL[0]), lit(0u64).alias(INDIVIDUAL[1])]
}

/// Returns the columns that [`individual`] makes.
pub(crate) fn individual_columns() -> Vec<Expr> {
    INDIVIDUAL.map(column).to_vec()
}

/// Counts the sensitive values and the individuals of each class in turn.
pub(crate) struct PerClass {
    class: Option<u128>,
    columns: Vec<InternedColumn>,
    counter: Option<IndividualCounter>,
    /// The memory of the numbered values.
    held: Held,
}

#[derive(Default)]
struct InternedColumn {
    converter: Option<RowConverter>,
    numbers: HashMap<Box<[u8]>, u32>,
    /// The bytes of all numbered values.
    value_bytes: usize,
    /// The values of the class with their rows, some more than once, where rows are counted.
    rows_of: Vec<(Option<u32>, u64)>,
    /// The values of the class with their individuals, some more than once, where these are.
    individuals_of: Vec<(Option<u32>, u32)>,
}

/// All individuals so far, and the individuals of the class.
struct IndividualCounter {
    numbers: HashMap<(u64, u64), u32>,
    /// The class in which each individual was last seen.
    last_class: Vec<u32>,
    /// The rows of each individual.
    rows: Vec<u64>,
    class: u32,
    here: Vec<u32>,
    /// The rows of the class without an individual.
    unowned_rows: u64,
    held: Held,
}

/// The sensitive values and the individuals of the rows of a batch.
pub(crate) struct Values {
    sensitive: Vec<(Rows, ArrayRef)>,
    individual: Option<[UInt64Array; 2]>,
}

/// The counts of a completed class.
#[derive(Debug, Default)]
pub(crate) struct ClassSummary {
    /// For each sensitive column the individuals with each value, or the rows where none are
    /// counted.
    pub(crate) values: Vec<Vec<ValueCount>>,
    /// The numbers of its distinct individuals; `None` where rows are counted.
    pub(crate) individuals: Option<Vec<u32>>,
    /// Its rows without an individual; 0 where rows are counted.
    pub(crate) unowned_rows: u64,
}

impl ClassSummary {
    /// Returns what models see of a class with this many rows; `inputs` are the distributions over the whole table.
    pub(super) fn seen<'a>(&'a self, rows: u64, inputs: &'a [Distribution]) -> SeenClass<'a> {
        SeenClass {
            rows,
            size: self.size(rows),
            unowned_rows: self.unowned_rows,
            values: &self.values,
            inputs,
            individuals: self.individuals.as_deref(),
        }
    }

    /// Returns the size of a class with this many rows.
    pub(crate) fn size(&self, rows: u64) -> u64 {
        self.individuals.as_ref().map_or(rows, |individuals| individuals.len() as u64)
    }
}

impl PerClass {
    /// Counts this many sensitive columns; memory comes from `budget`.
    pub(crate) fn new(columns: usize, counts_individuals: bool, budget: &Arc<dyn Budget>) -> Self {
        let counter = counts_individuals.then(|| IndividualCounter {
            numbers: HashMap::new(),
            last_class: Vec::new(),
            rows: Vec::new(),
            class: 0,
            here: Vec::new(),
            unowned_rows: 0,
            held: Held::new(budget),
        });
        let columns = (0..columns).map(|_| InternedColumn::default()).collect();
        Self { class: None, columns, counter, held: Held::new(budget) }
    }

    /// Returns how many columns of a batch [`values`](Self::values) takes.
    pub(crate) fn width(&self) -> usize {
        self.columns.len() + if self.counter.is_some() { INDIVIDUAL.len() } else { 0 }
    }

    /// Returns how many individuals were seen; `None` where rows are counted.
    pub(crate) fn individuals(&self) -> Option<u64> {
        self.counter.as_ref().map(|counter| counter.numbers.len() as u64)
    }

    /// Returns the most rows of one individual.
    pub(crate) fn most_rows(&self) -> u64 {
        self.counter.iter().flat_map(|counter| &counter.rows).copied().max().unwrap_or(0)
    }

    /// Returns whether a new class begins here, after another one.
    pub(crate) fn begins(&mut self, class: u128) -> bool {
        self.class.replace(class).is_some_and(|before| before != class)
    }

    /// Takes the values of a batch: one array per sensitive column, then the arrays of the
    /// individual.
    pub(crate) fn values(&mut self, arrays: &[ArrayRef]) -> Result<Values> {
        self.held.at_least(self.columns.iter().map(InternedColumn::bytes).sum())?;
        let (arrays, individual) = arrays.split_at(self.columns.len());
        let rows = self.columns.iter_mut().zip(arrays);
        let rows = rows.map(|(column, array)| Ok((column.rows(array)?, ArrayRef::clone(array))));
        let sensitive = rows.collect::<Result<_>>()?;
        let hashes = |array: &ArrayRef| array.as_primitive_opt::<UInt64Type>().cloned();
        let individual = match (&self.counter, individual) {
            (None, _) => None,
            (Some(_), [a, b]) => hashes(a).zip(hashes(b)).map(|(a, b)| [a, b]),
            (Some(_), _) => {
                return Err(Error::internal("per_class: the individual does not have two hash columns"));
            }
        };
        Ok(Values { sensitive, individual })
    }

    /// Returns the numbers of some values of a sensitive column; `None` is NULL.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(crate) fn numbers(&mut self, column: usize, values: &ArrayRef) -> Result<Vec<Option<u32>>> {
        let column = &mut self.columns[column];
        let rows = column.rows(values)?;
        let number = |row: usize| (!values.is_null(row)).then(|| column.number(rows.row(row).data()));
        let numbers = (0..values.len()).map(number).collect();
        self.held.at_least(self.columns.iter().map(InternedColumn::bytes).sum())?;
        Ok(numbers)
    }

    /// Counts `rows` rows with the values at `row`.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(crate) fn add(&mut self, row: usize, values: &Values, rows: u64) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        let mut individual = None;
        if let (Some(counter), Some([a, b])) = (&mut self.counter, &values.individual) {
            if a.is_null(row) {
                counter.unowned_rows += rows;
                return Ok(());
            }
            individual = Some(counter.number((a.value(row), b.value(row)), rows)?);
        }
        for (column, (values, array)) in self.columns.iter_mut().zip(&values.sensitive) {
            let value = (!array.is_null(row)).then(|| column.number(values.row(row).data()));
            match individual {
                None => column.rows_of.push((value, rows)),
                Some(individual) => column.individuals_of.push((value, individual)),
            }
        }
        Ok(())
    }

    /// Returns the counts of the completed class.
    pub(crate) fn take(&mut self) -> ClassSummary {
        let values = self.columns.iter_mut().map(InternedColumn::take).collect();
        let Some(counter) = &mut self.counter else {
            return ClassSummary { values, ..ClassSummary::default() };
        };
        counter.class += 1;
        let unowned_rows = std::mem::take(&mut counter.unowned_rows);
        ClassSummary { values, individuals: Some(std::mem::take(&mut counter.here)), unowned_rows }
    }
}

impl IndividualCounter {
    /// Returns the number of an individual that has `rows` more rows, all in this class.
    fn number(&mut self, hashes: (u64, u64), rows: u64) -> Result<u32> {
        let next = u32::try_from(self.numbers.len()).map_err(|_| Error::data("too many individuals"))?;
        let number = *self.numbers.entry(hashes).or_insert(next);
        if number == next {
            self.last_class.push(u32::MAX);
            self.rows.push(0);
            let known = self.numbers.capacity() * size_of::<((u64, u64), u32, u8)>();
            let each =
                self.last_class.capacity() * size_of::<u32>() + self.rows.capacity() * size_of::<u64>();
            self.held.at_least(known + each)?;
        }
        self.rows[number as usize] += rows;
        let last = &mut self.last_class[number as usize];
        if *last != self.class {
            *last = self.class;
            self.here.push(number);
        }
        Ok(number)
    }
}

impl InternedColumn {
    fn bytes(&self) -> usize {
        let numbers = self.numbers.capacity() * size_of::<(Box<[u8]>, u32, u8)>();
        let rows = self.rows_of.capacity() * size_of::<(Option<u32>, u64)>();
        let individuals = self.individuals_of.capacity() * size_of::<(Option<u32>, u32)>();
        numbers + self.value_bytes + rows + individuals
    }

    /// Returns the counts of the completed class, in the order of the values' numbers.
    fn take(&mut self) -> Vec<ValueCount> {
        self.rows_of.sort_unstable();
        self.individuals_of.sort_unstable();
        self.individuals_of.dedup();
        let of_rows = self.rows_of.chunk_by(|(a, _), (b, _)| a == b);
        let of_rows = of_rows.map(|same| (same.first(), same.iter().map(|(_, rows)| rows).sum()));
        let of_rows = of_rows.filter_map(|(first, count)| Some(ValueCount { value: first?.0, count }));
        let of_individuals = self.individuals_of.chunk_by(|(a, _), (b, _)| a == b);
        let of_individuals = of_individuals
            .filter_map(|same| Some(ValueCount { value: same.first()?.0, count: same.len() as u64 }));
        let counts = of_rows.chain(of_individuals).collect();
        self.rows_of.clear();
        self.individuals_of.clear();
        counts
    }

    /// Returns values as bytes.
    fn rows(&mut self, values: &ArrayRef) -> Result<Rows> {
        let doing = "counting sensitive values";
        let converter = match &mut self.converter {
            Some(converter) => converter,
            none => {
                let field = SortField::new(values.data_type().clone());
                none.insert(RowConverter::new(vec![field]).context(doing)?)
            }
        };
        converter.convert_columns(std::slice::from_ref(values)).context(doing)
    }

    fn number(&mut self, value: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        // Values beyond the range of numbers share one, which can only refuse.
        let number = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        self.value_bytes += value.len();
        self.numbers.insert(value.into(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, StringViewArray};

    fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> ArrayRef {
        Arc::new(StringViewArray::from_iter_values(texts))
    }

    fn hashes(hashes: impl IntoIterator<Item = Option<u64>>) -> ArrayRef {
        Arc::new(UInt64Array::from_iter(hashes))
    }

    /// Ann had the flu twice, with two doctors; Bob had it once; the last row has no individual.
    #[test]
    fn a_person_counts_once_for_each_value() {
        let budget: Arc<dyn Budget> = Arc::new(crate::class::Unlimited);
        let mut counter = PerClass::new(2, true, &budget);
        let (diagnosis, doctor) = (texts(["flu"; 4]), texts(["x", "y", "x", "z"]));
        let (ann, bob) = (Some(1), Some(2));
        let individual = [hashes([ann, ann, bob, None]), hashes([Some(0); 4])];
        let [a, b] = individual;
        let values = counter.values(&[diagnosis, doctor, a, b]).unwrap();
        (0..4).for_each(|row| counter.add(row, &values, 1).unwrap());
        let class = counter.take();
        let counts = class.values.iter().map(|counts| counts.iter().map(|one| one.count).collect());
        assert_eq!(counts.collect::<Vec<Vec<u64>>>(), [vec![2], vec![2, 1]]);
        assert_eq!(class.individuals, Some(vec![0, 1]));
        assert_eq!((class.unowned_rows, counter.individuals(), counter.most_rows()), (1, Some(2), 2));
    }

    /// What is held of a column when each value is another individual's.
    fn held(column: ArrayRef) -> usize {
        let budget: Arc<dyn Budget> = Arc::new(crate::class::Unlimited);
        let mut counter = PerClass::new(1, true, &budget);
        let (rows, someone) = (column.len(), hashes((0..column.len() as u64).map(Some)));
        let values = counter.values(&[column, Arc::clone(&someone), someone]).unwrap();
        (0..rows).for_each(|row| counter.add(row, &values, 1).unwrap());
        counter.columns[0].bytes()
    }

    #[test]
    fn memory_of_values_is_told() {
        // Tables of hashes grow by doubling: those with room for 1792 entries are nearly full.
        let entry = size_of::<(Box<[u8]>, u32)>() + size_of::<(Option<u32>, u32)>();
        let whole = held(Arc::new(Int64Array::from_iter_values(0..1_700)));
        let least = 1_700 * (entry + size_of::<i64>());
        assert!((least..2 * least).contains(&whole), "{whole} bytes");
        let names: Vec<String> = (0..1_700).map(|number| format!("{number:0100}")).collect();
        let text = held(texts(names.iter().map(String::as_str)));
        let least = 1_700 * (entry + 100);
        assert!((least..2 * least).contains(&text), "{text} bytes");
    }
}
