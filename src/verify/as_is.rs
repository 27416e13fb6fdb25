//! Columns released as they are: whether their values identify individuals, alone or in
//! combination.
//!
//! Generalized quasi-identifiers do not protect an individual whose member number is released
//! beside them. So the values of every column released as it is are judged by their holders among
//! the released rows: the individuals, or the rows where none are counted. A column is refused when
//! more than a tenth of the holders have a value that fewer than q hold, where q is the greatest of
//! the requirements' smallest class sizes, at least 2. All other findings are shown, not refused:
//! l-diversity needs values that are unique in their class, and a column can be harmless in itself.
//!
//! The rows are those that a verification has just accepted: rows of the output where rows are
//! counted, rows of the input's released classes where individuals are, because only the input
//! names individuals.
//!
//! Rows of the input are the wrong thing to count: a person with two visits holds a number twice, suppression
//! takes twins away, and the attacker sees the release.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::UInt32Type;
use datafusion::common::ScalarValue;
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use super::counting::{column_name, number_of, numbered, numbered_input};
use super::each_class::{CountedColumn, InClasses, each_class};
use super::expected::Expected;
use super::holders::{HolderCounter, Holders, QUESTIONS, Question, VALUE, exploded, integers, question_of};
use super::judge::Verified;
use super::labels::Labels;
use super::members::{Members, only};
use super::per_class::{individual, individual_columns};
use crate::class::{Budget, Held};
use crate::engine::functions::{counted, random_keys, row_hash};
use crate::engine::spilled_rows::spilled;
use crate::engine::{Context, PoolBudget, column};
use crate::error::{Error, Result};
use crate::generalize::{Descriptor, Generalizer};
use crate::model::{Quantity, SeenClass, least_holders};
use crate::progress::CancelToken;

/// One in `FEW_IN` of the individuals may hold a value that fewer than q hold.
pub const FEW_IN: u64 = 10;

const CLASS: &str = "kanon_class";
const DOING: &str = "checking the columns that are released as they are";

/// How many released individuals (rows, where none are counted) are unique on the quasi-identifiers
/// together with all columns released as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UniqueTogether {
    /// The number of individuals with a released row that no other individual holds.
    pub count: u64,
    /// The number of individuals examined.
    pub of: u64,
    /// If more than a tenth are unique: columns that suffice for that, together with the
    /// quasi-identifiers. The columns with the most distinct values come first.
    pub columns: Vec<String>,
}

impl UniqueTogether {
    /// Returns whether more than a tenth are unique.
    pub fn is_alarming(&self) -> bool {
        is_above_a_tenth(self.count, self.of)
    }
}

/// Findings about a column released as it is. Counts are of individuals, or of rows where none are
/// counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AsIsColumn {
    /// The column.
    pub column: String,
    /// The number of individuals with a value that fewer than q hold; q is the greatest of the
    /// models' smallest class sizes, at least 2.
    pub of_few: u64,
    /// The number of individuals with a value that no other individual of their class holds.
    pub alone_in_class: u64,
    /// The number of individuals with several rows that share a value no other individual holds, which links
    /// these rows.
    pub linked: u64,
    /// The quasi-identifiers that the values reveal more finely than they are released.
    pub reveals: Vec<Reveal>,
}

/// A quasi-identifier that another column's values reveal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reveal {
    /// The quasi-identifier.
    pub column: String,
    /// What the finer level does to values.
    pub by: Descriptor,
    /// The number of released rows whose value occurs at least q times, always with the same label of that
    /// level.
    pub rows: u64,
}

/// Returns whether `part` is more than a tenth of `all`.
pub(crate) fn is_above_a_tenth(part: u64, all: u64) -> bool {
    u128::from(part) * u128::from(FEW_IN) > u128::from(all)
}

/// The released rows after a verification.
pub(crate) struct ReleasedRows<'a> {
    expected: &'a Expected<'a>,
    counter: HolderCounter,
    /// The released individuals and the rows without one, or all rows where no individuals are
    /// counted.
    all: u64,
    /// The released rows without an individual.
    unowned_rows: u64,
    /// The rows alone in their class; `None` where individuals are counted.
    alone_in_class: Option<u64>,
    /// The holders of each column released as it is, once they are counted.
    holders: OnceCell<Vec<Holders>>,
}

impl<'a> ReleasedRows<'a> {
    /// Takes the rows of a release that passed as `verified`. Individuals are counted if `input` is
    /// given.
    ///
    /// # Errors
    /// A data error when reading fails or memory runs out.
    pub(crate) async fn new(
        session: &SessionContext,
        output: DataFrame,
        input: Option<DataFrame>,
        expected: &'a Expected<'a>,
        verified: &Verified,
        stop: &CancelToken,
    ) -> Result<Self> {
        let (rows, most_rows) = match (input, verified.individuals) {
            (Some(input), Some(individuals)) => {
                // Read by every question: recoding the input each time would cost most of a verification.
                let rows = released_input(session, output, input, expected, Vec::new(), stop).await?;
                (spilled(session, rows, stop, DOING).await?, Some(individuals.most_rows))
            }
            _ => {
                let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "labels"));
                let rows = numbered(output, expected, &expected.labels(&budget), Vec::new())?;
                (classed(rows, expected, random_keys(DOING)?[0], &[])?, None)
            }
        };
        let counter = HolderCounter::new(session, rows, most_rows, stop);
        let unowned_rows = verified.unowned_rows;
        let all = verified.sizes.individuals() + unowned_rows;
        let alone_in_class = most_rows.is_none().then(|| verified.sizes.unique());
        Ok(Self { expected, counter, all, unowned_rows, alone_in_class, holders: OnceCell::new() })
    }

    /// Returns what the verification expects.
    pub(super) fn expected(&self) -> &'a Expected<'a> {
        self.expected
    }

    fn least_holders(&self) -> u64 {
        least_holders(self.expected.requirements)
    }

    /// Returns the holders of each column released as it is, in order.
    async fn columns(&self) -> Result<&[Holders]> {
        let q = self.least_holders();
        let questions: Vec<Question> = self.expected.as_is().map(|index| value_of(index, q)).collect();
        let holders = self.holders.get_or_try_init(|| self.counter.count(&questions)).await?;
        Ok(holders)
    }

    /// Returns for each column released as it is how many individuals hold a value that fewer than
    /// q hold.
    ///
    /// # Errors
    /// A data error when reading fails or memory runs out.
    pub(crate) async fn few(&self) -> Result<Vec<(String, u64)>> {
        let holders = self.columns().await?;
        let names = self.expected.as_is().map(|index| self.expected.columns[index].0.clone());
        Ok(names.zip(holders.iter().map(|holders| holders.few + holders.unowned)).collect())
    }

    /// Returns the released individuals and the rows without one, or all rows where no individuals
    /// are counted.
    pub(crate) fn all(&self) -> u64 {
        self.all
    }

    /// Returns the released rows without an individual.
    pub(crate) fn unowned_rows(&self) -> u64 {
        self.unowned_rows
    }

    /// Returns the findings for each column, with `reveals` still empty.
    ///
    /// # Errors
    /// A data error when reading fails or memory runs out.
    pub(crate) async fn shown(&self) -> Result<Vec<AsIsColumn>> {
        let q = self.least_holders();
        let in_class =
            |index| Question { columns: vec![column(CLASS), column(column_name(index))], known: true, q: 2 };
        let values = self.expected.as_is().map(|index| value_of(index, q));
        let questions: Vec<Question> = values.chain(self.expected.as_is().map(in_class)).collect();
        let found = self.counter.count(&questions).await?;
        let (holders, in_class) = found.split_at(found.len() / 2);
        // One scan has counted what `columns` would count in another.
        self.holders.get_or_init(|| async { holders.to_vec() }).await;
        let all = self.expected.as_is().zip(holders.iter().zip(in_class));
        let shown = all.map(|(index, (holders, in_class))| AsIsColumn {
            column: self.expected.columns[index].0.clone(),
            of_few: holders.few + holders.unowned,
            alone_in_class: in_class.few + in_class.unowned,
            linked: holders.linked,
            reveals: Vec::new(),
        });
        Ok(shown.collect())
    }

    /// Returns how many are unique on all released columns together, and the columns that cause it.
    ///
    /// # Errors
    /// A data error when reading fails or memory runs out.
    pub(crate) async fn unique_together(&self) -> Result<UniqueTogether> {
        let mut order: Vec<usize> = self.expected.as_is().collect();
        let count = self.unique_on(&order).await?;
        let mut unique = UniqueTogether { count, of: self.all, columns: Vec::new() };
        if !unique.is_alarming() {
            return Ok(unique);
        }
        let values: BTreeMap<usize, u64> =
            order.iter().copied().zip(self.columns().await?.iter().map(|holders| holders.values)).collect();
        order.sort_by_key(|index| std::cmp::Reverse(values.get(index).copied()));
        // More columns separate more rows: bisection finds the least number that suffices.
        let (mut too_few, mut enough) = (0, order.len());
        while enough - too_few > 1 {
            let middle = too_few + (enough - too_few) / 2;
            let count = self.unique_on(&order[..middle]).await?;
            if is_above_a_tenth(count, self.all) { enough = middle } else { too_few = middle }
        }
        unique.columns =
            order[..enough].iter().map(|index| self.expected.columns[*index].0.clone()).collect();
        Ok(unique)
    }

    /// Returns what the models that compare classes with the whole table reach when the released
    /// rows are the whole table; `None` for any other model.
    ///
    /// # Errors
    /// A data error when reading fails or memory runs out.
    pub(crate) async fn reached_among_released(&self) -> Result<Vec<Option<Quantity>>> {
        let requirements = self.expected.requirements;
        let mut reached: Vec<Option<Quantity>> = vec![None; requirements.len()];
        let looks_at = self.expected.looks_at()?;
        let comparing: Vec<usize> = (0..requirements.len())
            .filter(|at| requirements[*at].model.needs().compares() && requirements[*at].is_complete())
            .collect();
        if comparing.is_empty() {
            return Ok(reached);
        }
        let mut see = |class: &SeenClass<'_>| {
            for at in &comparing {
                let model = &requirements[*at].model;
                let value = model.value(&class.of_column(looks_at[*at]));
                reached[*at] = model.reached(&mut reached[*at].into_iter().chain([value]));
            }
        };
        self.for_each_class(vec![column(CLASS)], &mut see).await?;
        Ok(reached)
    }

    /// Calls `see` for each class that the released rows form over these `labels`.
    ///
    /// # Errors
    /// A data error when reading fails or memory runs out.
    pub(super) async fn for_each_class(
        &self,
        labels: Vec<Expr>,
        see: &mut (dyn FnMut(&SeenClass<'_>) + Send),
    ) -> Result<()> {
        let counted = self.expected.counted()?;
        let sensitive = counted.iter().map(|(of, reads_whole)| {
            let index = self.expected.columns.iter().position(|(name, _)| name == of.name());
            // No model that asks for classes of released rows looks at a column that is not released.
            let values = index.map_or(lit(ScalarValue::Int64(None)), |index| column(column_name(index)));
            CountedColumn::of(of, values, *reads_whole)
        });
        let in_classes = InClasses {
            table: self.counter.table(),
            labels,
            sensitive: sensitive.collect(),
            individual: if self.counter.counts_individuals() { individual_columns() } else { Vec::new() },
        };
        each_class(in_classes, self.counter.budget(), self.counter.stop(), DOING, see).await
    }

    /// Counts the holders that are unique on the quasi-identifiers and some of the other columns.
    async fn unique_on(&self, others: &[usize]) -> Result<u64> {
        if let ([], Some(alone)) = (others, self.alone_in_class) {
            return Ok(alone);
        }
        Ok(self.unique_on_each(&[others]).await?.first().copied().unwrap_or(0))
    }

    /// Counts the holders that are unique on the quasi-identifiers and each of these sets of the other
    /// columns.
    ///
    /// # Errors
    /// A data error when reading fails or memory runs out.
    pub(super) async fn unique_on_each(&self, sets: &[&[usize]]) -> Result<Vec<u64>> {
        let question = |others: &&[usize]| {
            let others = others.iter().map(|index| column(column_name(*index)));
            Question { columns: std::iter::once(column(CLASS)).chain(others).collect(), known: false, q: 2 }
        };
        let holders = self.counter.count(&sets.iter().map(question).collect::<Vec<_>>()).await?;
        Ok(holders.iter().map(|holders| holders.few + holders.unowned).collect())
    }
}

/// Asks about the values of one column.
fn value_of(index: usize, q: u64) -> Question {
    Question { columns: vec![column(column_name(index))], known: true, q }
}

/// A quasi-identifier's index among the released columns, and the generalizer one level below the
/// released one.
pub(crate) type Finer = (usize, Arc<dyn Generalizer>);

/// Adds to `shown` the quasi-identifiers that the values of a column reveal at the level below the
/// released one: the value occurs with one label of that level, and the released label covers
/// several.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(crate) async fn reveals(
    session: &SessionContext,
    output: DataFrame,
    input: DataFrame,
    expected: &Expected<'_>,
    finer: &[Finer],
    shown: &mut [AsIsColumn],
    stop: &CancelToken,
) -> Result<()> {
    if finer.is_empty() || shown.is_empty() {
        return Ok(());
    }
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "labels that a column gives away"));
    let numbers = finer.iter().enumerate().map(|(at, (index, generalizer))| {
        let (name, _) = &expected.columns[*index];
        number_of("kanon_finer_label", name, Some(generalizer), &Arc::new(Labels::new(&budget)))
            .alias(finer_name(at))
    });
    let rows = released_input(session, output, input, expected, numbers.collect(), stop).await?;
    let rows = spilled(session, rows, stop, DOING).await?;
    let mut held = Held::new(&budget);

    // For each released label the least and greatest number of the labels below it.
    let mut below: Vec<BTreeMap<u32, (u32, u32)>> = vec![BTreeMap::new(); finer.len()];
    let q = least_holders(expected.requirements);
    let class = Question { columns: vec![column(CLASS)], known: true, q };
    spans(&rows, &[class], finer, stop, |_, _, spans| {
        for (known, (label, from, to)) in below.iter_mut().zip(spans) {
            let span = known.entry(*label).or_insert((*from, *to));
            *span = (span.0.min(*from), span.1.max(*to));
        }
        held.at_least(below.iter().map(BTreeMap::len).sum::<usize>() * 4 * size_of::<(u32, u32, u32)>())
    })
    .await?;
    let released = |at: usize, label: u32| below[at].get(&label).is_some_and(|(from, to)| from < to);

    let questions: Vec<Question> = expected.as_is().map(|index| value_of(index, q)).collect();
    let mut revealed = vec![vec![0u64; finer.len()]; questions.len()];
    let mut known = vec![0u64; questions.len()];
    spans(&rows, &questions, finer, stop, |question, size, spans| {
        known[question] += size;
        for (at, (label, from, to)) in spans.iter().enumerate() {
            if size >= q && from == to && released(at, *label) {
                revealed[question][at] += size;
            }
        }
        Ok(())
    })
    .await?;
    for (shown, (revealed, known)) in shown.iter_mut().zip(revealed.into_iter().zip(known)) {
        let found = finer.iter().zip(revealed).filter(|(_, rows)| is_above_a_tenth(*rows, known));
        let reveal = found.map(|((quasi, generalizer), rows)| Reveal {
            column: expected.columns[*quasi].0.clone(),
            by: generalizer.descriptor(),
            rows,
        });
        shown.reveals = reveal.collect();
    }
    Ok(())
}

fn finer_name(at: usize) -> String {
    format!("kanon_finer_{at}")
}

/// Calls `see` for each value of each question with the question's index, the value's rows, and for
/// each quasi-identifier in `finer` the least released label and the least and greatest finer one,
/// all as numbers.
async fn spans(
    rows: &DataFrame,
    questions: &[Question],
    finer: &[Finer],
    stop: &CancelToken,
    mut see: impl FnMut(usize, u64, &[(u32, u32, u32)]) -> Result<()>,
) -> Result<()> {
    let mut ends = vec![count(lit(1i64)).alias("rows")];
    let mut columns = Vec::new();
    for (at, (index, _)) in finer.iter().enumerate() {
        let (label, finer) = (column(column_name(*index)), column(finer_name(at)));
        columns.extend([label.clone(), finer.clone()]);
        ends.push(min(label).alias(format!("label_{at}")));
        ends.push(min(finer.clone()).alias(format!("from_{at}")));
        ends.push(max(finer).alias(format!("to_{at}")));
    }
    let mut of_value = Vec::with_capacity(finer.len());
    for (chunk, first) in questions.chunks(QUESTIONS).zip((0..).step_by(QUESTIONS)) {
        let rows = exploded(rows, chunk, columns.clone())?;
        let groups = rows.aggregate(vec![column(VALUE)], ends.clone()).context(DOING)?;
        let mut stream = groups.execute_stream().await.context(DOING)?;
        while let Some(batch) = stream.next().await {
            stop.check()?;
            let batch = batch.context(DOING)?;
            let [values, sizes, labels @ ..] = batch.columns() else {
                return Err(Error::internal("as_is: a GROUP BY lost its columns"));
            };
            let labels: Option<Vec<_>> =
                labels.iter().map(|labels| labels.as_primitive_opt::<UInt32Type>()).collect();
            let labels = labels.ok_or_else(|| Error::internal("as_is: a label has no number"))?;
            let values = integers(values)?;
            for (row, size) in counted(sizes)?.into_iter().enumerate() {
                of_value.clear();
                let of_row = labels.chunks_exact(3);
                of_value
                    .extend(of_row.map(|ends| (ends[0].value(row), ends[1].value(row), ends[2].value(row))));
                see(first + question_of(values.value(row)), size, &of_value)?;
            }
        }
    }
    Ok(())
}

/// Returns the input rows whose class is in the output: the hash of the class, the columns of a
/// release with labels as numbers, the individual if a column names one, and `others`.
async fn released_input(
    session: &SessionContext,
    output: DataFrame,
    input: DataFrame,
    expected: &Expected<'_>,
    others: Vec<Expr>,
    stop: &CancelToken,
) -> Result<DataFrame> {
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "classes"));
    let (labels, key) = (expected.labels(&budget), random_keys(DOING)?[0]);
    let output = numbered(output, expected, &labels, Vec::new())?;
    let classes = classed(output, expected, key, &[])?.select(vec![column(CLASS)]).context(DOING)?;
    let mut stream = classes.distinct().context(DOING)?.execute_stream().await.context(DOING)?;
    let mut released = Members::new(&budget);
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.context(DOING)?;
        released.add(integers(batch.column(0))?.values().iter().copied())?;
    }

    let mut carried: Vec<Expr> = others.iter().map(|other| column(other.schema_name().to_string())).collect();
    let mut columns = others;
    if let Some(name) = &expected.individual {
        columns.extend(individual(column(name), random_keys(DOING)?)?);
        carried.extend(individual_columns());
    }
    let assigner = expected.assigner(&budget)?;
    let input = numbered_input(input, expected, assigner.as_ref(), &labels, columns)?;
    let input = classed(input, expected, key, &carried)?;
    carried.extend((0..expected.columns.len()).map(|index| column(column_name(index))));
    only(input, CLASS, released, &carried)
}

/// Puts the hash of each row's class before its columns: those of a release and `others`.
fn classed(
    numbered: DataFrame,
    expected: &Expected<'_>,
    key: [u64; 2],
    others: &[Expr],
) -> Result<DataFrame> {
    let quasi = expected.quasi().map(|index| column(column_name(index))).collect();
    let mut columns = vec![row_hash(key, quasi).alias(CLASS)];
    columns.extend((0..expected.columns.len()).map(|index| column(column_name(index))));
    columns.extend(others.iter().cloned());
    numbered.select(columns).context(DOING)
}
