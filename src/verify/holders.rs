//! The number of individuals that hold each value, for "a value that fewer than q individuals
//! hold".
//!
//! ```text
//! rows -> one row for each question, with the hash of the values that it looks at
//! GROUP BY value                  -> rows; a value of (q - 1) * m rows or fewer may have fewer
//!                                    than q holders, where no individual has more than m rows
//! GROUP BY value, individual      -> of those values only, brought together by a spilling sort and
//!                                    counted one by one
//! ```
//! Where rows are counted, each row is a holder, and the first GROUP BY suffices. Where individuals
//! are counted, a row without one is released as well and judged as a row: it holds its value
//! beside the individuals. Up to [`QUESTIONS`] questions share one scan. Values are compared by 58
//! bits of a hash under a random key.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt64Array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, UInt64Type};
use datafusion::common::UnnestOptions;
use datafusion::error::Result as EngineResult;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;

use super::members::{Members, only};
use super::per_class::{INDIVIDUAL, individual_columns};
use crate::class::{Budget, Held};
use crate::engine::functions::{counted, random_keys, row_hashes};
use crate::engine::{Context, PoolBudget, column};
use crate::error::{Error, Result};
use crate::progress::CancelToken;

/// The columns whose values are examined together.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    /// The columns; NULL is a value.
    pub(crate) columns: Vec<Expr>,
    /// Whether rows with a NULL in the last column are skipped.
    pub(crate) known: bool,
    /// q: counts the holders of values with fewer than q holders.
    pub(crate) q: u64,
}

/// The counts for the values of one column, or of several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Holders {
    /// The number of distinct values.
    pub(crate) values: u64,
    /// The individuals (rows, where none are counted) with a value that fewer than q individuals
    /// hold.
    pub(crate) few: u64,
    /// The rows without an individual whose value is held by fewer than q individuals and such
    /// rows; 0 where rows are counted.
    pub(crate) unowned: u64,
    /// The individuals with at least two rows of a value that no other individual holds; 0 where
    /// rows are counted.
    pub(crate) linked: u64,
}

/// A table whose values are counted by their holders.
pub(crate) struct HolderCounter {
    table: DataFrame,
    /// The most rows of one individual; `None` where rows are counted.
    most_rows: Option<u64>,
    budget: Arc<dyn Budget>,
    stop: CancelToken,
}

pub(crate) const VALUE: &str = "kanon_value";
const ROWS: &str = "kanon_rows";
/// The rows of a value that have an individual.
const OWNED: &str = "kanon_owned_rows";
const DOING: &str = "counting who holds a value";

/// The most questions that one scan answers; the question's index is the lowest bits of a value.
/// More would need lists too long for a thread's unaccounted memory: 8 bytes per question and row
/// of a batch.
pub(crate) const QUESTIONS: usize = 1 << 6;

/// Above this many values the second GROUP BY reads all rows: a list of the values would be too
/// large.
const LISTED_VALUES: usize = 1 << 20;

/// Returns the index within its scan of the question that a value belongs to.
pub(crate) fn question_of(value: u64) -> usize {
    usize::try_from(value % QUESTIONS as u64).unwrap_or(0)
}

impl HolderCounter {
    /// Counts over `table`. If `most_rows` is given, it has the columns of
    /// [`individual`](super::per_class::individual), and no individual has more than `most_rows`
    /// rows.
    pub(crate) fn new(
        session: &SessionContext,
        table: DataFrame,
        most_rows: Option<u64>,
        stop: &CancelToken,
    ) -> Self {
        let budget = Arc::new(PoolBudget::new(session, "holders of values"));
        Self { table, most_rows, budget, stop: stop.clone() }
    }

    /// Returns the table.
    pub(crate) fn table(&self) -> &DataFrame {
        &self.table
    }

    /// Returns whether individuals are counted.
    pub(crate) fn counts_individuals(&self) -> bool {
        self.most_rows.is_some()
    }

    pub(crate) fn budget(&self) -> &Arc<dyn Budget> {
        &self.budget
    }

    pub(crate) fn stop(&self) -> &CancelToken {
        &self.stop
    }

    /// Counts the holders of the values of each question.
    ///
    /// # Errors
    /// A data error when reading fails or memory runs out.
    pub(crate) async fn count(&self, questions: &[Question]) -> Result<Vec<Holders>> {
        let mut all = Vec::with_capacity(questions.len());
        for questions in questions.chunks(QUESTIONS) {
            all.extend(match self.most_rows {
                None => self.count_rows(questions).await?,
                Some(most_rows) => self.count_individuals(questions, most_rows).await?,
            });
        }
        Ok(all)
    }

    async fn count_rows(&self, questions: &[Question]) -> Result<Vec<Holders>> {
        let mut all = vec![Holders::default(); questions.len()];
        let rows = exploded(&self.table, questions, Vec::new())?;
        let sizes = vec![count(lit(1i64)).alias(ROWS)];
        self.sizes(rows, sizes, |value, sizes| {
            let size = sizes[0];
            let (question, holders) = (&questions[question_of(value)], &mut all[question_of(value)]);
            holders.values += 1;
            holders.few += if size < question.q { size } else { 0 };
            Ok(())
        })
        .await?;
        Ok(all)
    }

    async fn count_individuals(&self, questions: &[Question], most_rows: u64) -> Result<Vec<Holders>> {
        let mut all = vec![Holders::default(); questions.len()];
        let rows = exploded(&self.table, questions, individual_columns())?;
        let mut listed = Members::new(&self.budget);
        let mut candidates = 0usize;
        let sizes = vec![count(lit(1i64)).alias(ROWS), count(column(INDIVIDUAL[0])).alias(OWNED)];
        self.sizes(rows.clone(), sizes, |value, sizes| {
            all[question_of(value)].values += 1;
            let (size, owned, q) = (sizes[0], sizes[1], questions[question_of(value)].q);
            if owned <= most_rows.saturating_mul(q.saturating_sub(1)) && (owned > 0 || size < q) {
                candidates += 1;
                if candidates <= LISTED_VALUES {
                    listed.add([value])?;
                }
            }
            Ok(())
        })
        .await?;
        if candidates == 0 {
            return Ok(all);
        }
        let rows = match candidates {
            ..=LISTED_VALUES => only(rows, VALUE, listed, &individual_columns())?,
            _ => rows,
        };
        self.fold(rows, questions, &mut all).await?;
        Ok(all)
    }

    /// Calls `see` for each value of `rows` with the counts in `sizes`.
    async fn sizes(
        &self,
        rows: DataFrame,
        sizes: Vec<Expr>,
        mut see: impl FnMut(u64, &[u64]) -> Result<()>,
    ) -> Result<()> {
        let groups = rows.aggregate(vec![column(VALUE)], sizes).context(DOING)?;
        let mut stream = groups.execute_stream().await.context(DOING)?;
        let mut of_value = Vec::new();
        while let Some(batch) = stream.next().await {
            self.stop.check()?;
            let batch = batch.context(DOING)?;
            let sizes = batch.columns().iter().skip(1).map(counted).collect::<Result<Vec<_>>>()?;
            for (row, value) in integers(batch.column(0))?.values().iter().enumerate() {
                of_value.clear();
                of_value.extend(sizes.iter().map(|sizes| sizes[row]));
                see(*value, &of_value)?;
            }
        }
        Ok(())
    }

    /// Counts the holders of each value of `rows`, one value after the other.
    async fn fold(&self, rows: DataFrame, questions: &[Question], all: &mut [Holders]) -> Result<()> {
        let keys = [vec![column(VALUE)], individual_columns()].concat();
        let groups = rows.aggregate(keys, vec![count(lit(1i64)).alias(ROWS)]).context(DOING)?;
        let groups = groups.sort(vec![column(VALUE).sort(true, true)]).context(DOING)?;
        let mut stream = groups.execute_stream().await.context(DOING)?;
        let found = questions.iter().map(|question| Found { q: question.q, ..Found::default() });
        let mut fold = Fold { found: found.collect(), ..Fold::default() };
        let mut held = Held::new(&self.budget);
        while let Some(batch) = stream.next().await {
            self.stop.check()?;
            let batch = batch.context(DOING)?;
            let [values, a, b] = [0, 1, 2].map(|at| integers(batch.column(at)));
            let (values, a, b) = (values?, a?, b?);
            for (row, size) in counted(batch.column(3))?.into_iter().enumerate() {
                let holder = a.is_valid(row).then(|| (a.value(row), b.value(row)));
                fold.add(values.value(row), holder, size);
            }
            held.at_least(fold.bytes())?;
        }
        fold.end();
        for (holders, found) in all.iter_mut().zip(fold.found) {
            holders.few = found.few.len() as u64;
            holders.unowned = found.unowned;
            holders.linked = found.linked.len() as u64;
        }
        Ok(())
    }
}

/// Returns a row for each row of `table` and each question, at most [`QUESTIONS`]: [`VALUE`], and
/// the `others` unchanged.
///
/// # Errors
/// When the plan cannot be built.
pub(crate) fn exploded(table: &DataFrame, questions: &[Question], others: Vec<Expr>) -> Result<DataFrame> {
    let layout = questions.iter().map(|question| (question.columns.len(), question.known)).collect();
    let signature = Signature::variadic_any(Volatility::Volatile);
    let values = Values { key: random_keys(DOING)?[0], layout, signature };
    let columns = questions.iter().flat_map(|question| question.columns.iter().cloned()).collect();
    let values = ScalarUDF::new_from_impl(values).call(columns).alias(VALUE);
    let rows = table.clone().select([vec![values], others].concat()).context(DOING)?;
    let options = UnnestOptions::new().with_preserve_nulls(false);
    rows.unnest_columns_with_options(&[VALUE], options).context(DOING)
}

/// A function that returns a list per row: for each question the hash of its values, with the
/// question's index in the lowest bits.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Values {
    key: [u64; 2],
    /// For each question the number of its columns, and whether rows with a NULL in the last are
    /// skipped.
    layout: Vec<(usize, bool)>,
    signature: Signature,
}

impl Values {
    fn item() -> FieldRef {
        Arc::new(Field::new_list_field(DataType::UInt64, true))
    }
}

impl ScalarUDFImpl for Values {
    fn name(&self) -> &'static str {
        "kanon_values"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> EngineResult<DataType> {
        Ok(DataType::List(Self::item()))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        let rows = arguments.number_rows;
        let mut columns = arguments.args.iter().map(|argument| argument.to_array(rows));
        let mut questions = Vec::with_capacity(self.layout.len());
        for ((columns_of_one, known), place) in self.layout.iter().zip(0u64..) {
            let columns = columns.by_ref().take(*columns_of_one).collect::<EngineResult<Vec<ArrayRef>>>()?;
            let mut hashes = row_hashes(self.key, &columns)?;
            hashes.iter_mut().for_each(|hash| *hash = *hash & !(QUESTIONS as u64 - 1) | place);
            questions.push((hashes, columns.last().filter(|_| *known).cloned()));
        }
        let mut values = Vec::with_capacity(rows * questions.len());
        let mut lengths = Vec::with_capacity(rows);
        for row in 0..rows {
            let before = values.len();
            let of_row =
                questions.iter().filter(|(_, last)| last.as_ref().is_none_or(|last| last.is_valid(row)));
            values.extend(of_row.map(|(hashes, _)| hashes[row]));
            lengths.push(values.len() - before);
        }
        let offsets = OffsetBuffer::from_lengths(lengths);
        let values: ArrayRef = Arc::new(UInt64Array::from(values));
        Ok(ColumnarValue::Array(Arc::new(ListArray::try_new(Self::item(), offsets, values, None)?)))
    }
}

/// An individual as two hashes.
type Individual = (u64, u64);

/// A fold over values in order, with the counts of the current value.
#[derive(Default)]
struct Fold {
    value: Option<u64>,
    /// The first q individuals and their rows.
    holders: Vec<(Individual, u64)>,
    /// The rows without an individual.
    unowned: u64,
    /// The counts per question.
    found: Vec<Found>,
}

/// The counts of a question.
#[derive(Default)]
struct Found {
    q: u64,
    few: HashSet<Individual>,
    unowned: u64,
    linked: HashSet<Individual>,
}

impl Fold {
    fn add(&mut self, value: u64, holder: Option<Individual>, rows: u64) {
        if self.value != Some(value) {
            self.end();
            self.value = Some(value);
        }
        let q = self.found.get(question_of(value)).map_or(0, |found| found.q);
        match holder {
            None => self.unowned += rows,
            Some(holder) if (self.holders.len() as u64) < q => self.holders.push((holder, rows)),
            Some(_) => {}
        }
    }

    /// Ends the current value.
    fn end(&mut self) {
        let found = self.value.and_then(|value| self.found.get_mut(question_of(value)));
        if let Some(found) = found {
            if let [(holder, 2..)] = self.holders.as_slice() {
                found.linked.insert(*holder);
            }
            let individuals = self.holders.len() as u64;
            if individuals < found.q {
                found.few.extend(self.holders.iter().map(|(holder, _)| *holder));
            }
            if individuals + self.unowned < found.q {
                found.unowned += self.unowned;
            }
        }
        self.holders.clear();
        self.unowned = 0;
    }

    fn bytes(&self) -> usize {
        let individuals = self.found.iter().map(|found| found.few.capacity() + found.linked.capacity());
        let holders = self.holders.capacity() * size_of::<(Individual, u64)>();
        individuals.sum::<usize>() * (size_of::<Individual>() + 1) + holders
    }
}

/// Returns the hashes in an array.
///
/// # Errors
/// An internal error for an array of another type.
pub(crate) fn integers(array: &ArrayRef) -> Result<&UInt64Array> {
    array
        .as_primitive_opt::<UInt64Type>()
        .ok_or_else(|| Error::internal("holders: a hash is not a 64-bit integer"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Resources, Rules};
    use crate::verify::per_class::individual;
    use arrow::array::{Int64Array, StringViewArray};
    use arrow::record_batch::RecordBatch;
    use std::collections::{BTreeMap, BTreeSet};

    type Row = (Option<&'static str>, Option<i64>);

    /// The naive count.
    fn naive(rows: &[Row], individuals: bool, q: usize) -> Holders {
        let mut holders: BTreeMap<&str, BTreeMap<i64, u64>> = BTreeMap::new();
        let mut nameless: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, (value, individual)) in rows.iter().enumerate() {
            let individual = if individuals { *individual } else { Some(at as i64) };
            match (value, individual) {
                (Some(value), Some(individual)) => {
                    *holders.entry(value).or_default().entry(individual).or_default() += 1;
                }
                (Some(value), None) => {
                    holders.entry(value).or_default();
                    *nameless.entry(value).or_default() += 1;
                }
                (None, _) => {}
            }
        }
        let unowned = nameless.iter().filter(|(value, rows)| holders[*value].len() + **rows < q);
        let unowned = unowned.map(|(_, rows)| *rows as u64).sum();
        let few: BTreeSet<i64> =
            holders.values().filter(|all| all.len() < q).flat_map(|all| all.keys().copied()).collect();
        let linked: BTreeSet<i64> = holders
            .values()
            .filter(|all| all.len() == 1)
            .flat_map(|all| all.iter().filter(|(_, rows)| **rows > 1).map(|(individual, _)| *individual))
            .collect();
        let [values, few, linked] = [holders.len(), few.len(), linked.len()].map(|count| count as u64);
        Holders { values, few, unowned, linked }
    }

    async fn counted(rows: &[Row], individuals: bool, q: u64) -> Holders {
        let session = Resources { threads: 2, memory: 1 << 28, spill: None }.session(Rules::new()).unwrap();
        let value: ArrayRef = Arc::new(StringViewArray::from_iter(rows.iter().map(|row| row.0)));
        let owners: ArrayRef = Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.1)));
        let table =
            session.read_batch(RecordBatch::try_from_iter([("v", value), ("w", owners)]).unwrap()).unwrap();
        let mut columns = vec![column("v")];
        columns.extend(individual(column("w"), random_keys("a test").unwrap()).unwrap());
        let table = table.select(columns).unwrap();
        let named = rows.iter().filter(|row| row.1.is_some());
        let most = named.map(|row| rows.iter().filter(|other| other.1 == row.1).count() as u64).max();
        let most = individuals.then(|| most.unwrap_or(0));
        let counter = HolderCounter::new(&session, table, most, &CancelToken::default());
        // The same question twice, with another one between them.
        let question = |known, q| Question { columns: vec![column("v")], known, q };
        let questions = [question(true, q), question(false, q + 1), question(true, q)];
        let all = counter.count(&questions).await.unwrap();
        assert_eq!(all[0], all[2]);
        all[0]
    }

    #[tokio::test]
    async fn holders_are_those_of_the_obvious_way() {
        const VALUES: [Option<&str>; 7] =
            [Some("a"), Some("b"), None, Some("c"), Some("d"), Some("e"), Some("")];
        let mut seed = 7u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..60 {
            let (length, spread, individuals_count) = (next(40), 1 + next(7), 1 + next(12));
            let rows: Vec<Row> = (0..length)
                .map(|_| {
                    let individual = next(individuals_count) as i64;
                    (VALUES[next(spread) as usize], (individual > 0).then_some(individual))
                })
                .collect();
            for (individuals, q) in [(false, 2), (false, 5), (true, 2), (true, 3), (true, 9)] {
                let got = counted(&rows, individuals, q as u64).await;
                let naive = naive(&rows, individuals, q);
                let expected = if individuals { naive } else { Holders { linked: 0, ..naive } };
                assert_eq!(got, expected, "{rows:?} {individuals} {q}");
            }
        }
    }

    /// What a fold with one question says of its memory when each of `holders` individuals has two rows with
    /// the value of its number.
    fn bytes(q: u64, holders: u64, value: impl Fn(u64) -> u64) -> u64 {
        let mut fold = Fold { found: vec![Found { q, ..Found::default() }], ..Fold::default() };
        (0..holders).for_each(|individual| {
            fold.add(value(individual) * QUESTIONS as u64, Some((individual, individual)), 2);
        });
        fold.bytes() as u64
    }

    #[test]
    fn memory_of_holders_is_told() {
        // 1000 individuals, each alone with a value: they are among the few and among the linked.
        let alone = bytes(2, 1_000, |individual| individual);
        assert!((2 * 16_000..8 * 16_000).contains(&alone), "{alone} bytes");
        // 1000 individuals with one value, and their rows.
        let together = bytes(1_001, 1_000, |_| 7);
        assert!((24_000..4 * 24_000).contains(&together), "{together} bytes");
    }
}
