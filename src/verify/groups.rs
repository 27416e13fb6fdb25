//! Groups: judges the two tables of Anatomy, and compares them with the input.
//!
//! The table of sensitive values says how many rows of each group have each value. So it tells, under
//! the [key of the dealing](DealingKey), the group of every row of the input. Both are sorted by the hash
//! of the value and read side by side, and the quasi-identifiers that arrive in each group must be those
//! of the other table:
//!
//! ```text
//! input    ORDER BY hash of the value, place   \  row by row -> rows and hash sums per group
//! values   ORDER BY hash of the value          /
//! quasi    GROUP BY group                          the same rows and hash sums?
//! values   ORDER BY group                          each group as large, each model holds?
//! ```
//!
//! The dealing and this file share [`DealingKey`], the definition of the two orders, and nothing else.

use std::hash::Hasher;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use arrow::record_batch::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::functions_aggregate::expr_fn::{count, count_distinct, sum};
use datafusion::logical_expr::{Expr, cast, lit};
use datafusion::prelude::DataFrame;
use futures::StreamExt;
use siphasher::sip::SipHasher13;

use crate::class::{Budget, ClassSizes, Held};
use crate::engine::functions::{counted, random_keys, row_hash};
use crate::engine::{Context, column};
use crate::error::{Error, Result};
use crate::model::{Class, Quantity, Requirement, ValueCount};
use crate::progress::CancelToken;

const DOING: &str = "verifying the release";

/// The key of a dealing: 64 random bytes.
///
/// The rows with a sensitive value are ordered by a keyed hash of all that is released of them, and so are
/// the places that the groups have for this value, one for each row; the first row goes to the first place,
/// and so on. Both orders are needed: equal rows stand beside one another in the first, and must not go to
/// places beside one another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DealingKey(pub [u8; Self::BYTES]);

/// Shows no byte.
impl std::fmt::Debug for DealingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DealingKey(..)")
    }
}

impl DealingKey {
    /// The length of a key.
    pub const BYTES: usize = 64;

    fn words(&self, at: usize) -> [u64; 2] {
        [2 * at, 2 * at + 1].map(|at| {
            let bytes = self.0.iter().skip(at * 8).take(8);
            bytes.fold(0u64, |word, byte| (word << 8) | u64::from(*byte))
        })
    }

    /// Returns what a row with a sensitive value is ordered by among the others with this value: 128 bits.
    /// Only equal rows have the same.
    pub fn order(&self, quasi: &[String], sensitive: &str) -> [Expr; 2] {
        let columns = || quasi.iter().map(column).chain([column(sensitive)]).collect();
        [0, 1].map(|at| row_hash(self.words(at), columns()))
    }

    /// Returns the number of a sensitive value, on which the order of its places depends.
    pub fn value(&self, sensitive: &str) -> Expr {
        row_hash(self.words(2), vec![column(sensitive)])
    }

    /// Orders the places that groups have for the value with this number: the number of a group comes once
    /// for each row.
    pub fn order_places(&self, value: u64, places: &mut [u64]) {
        places.sort_unstable();
        let [first, second] = self.words(3);
        let mut hashed: Vec<(u64, u64)> = Vec::with_capacity(places.len());
        let (mut copy, mut last) = (0u64, None);
        for place in places.iter() {
            copy = if last == Some(*place) { copy + 1 } else { 0 };
            last = Some(*place);
            let mut hasher = SipHasher13::new_with_keys(first, second);
            [value, *place, copy].into_iter().for_each(|part| hasher.write_u64(part));
            hashed.push((hasher.finish(), *place));
        }
        hashed.sort_unstable();
        places.iter_mut().zip(hashed).for_each(|(place, (_, group))| *place = group);
    }
}

/// The two tables as they were written, and what is expected of them.
pub struct GroupTables<'a> {
    /// Each row's quasi-identifiers and the number of its group.
    pub quasi: DataFrame,
    /// The number of a group, a sensitive value, and how many rows of the group have it.
    pub values: DataFrame,
    /// The names of the quasi-identifiers.
    pub names: &'a [String],
    /// The sensitive column.
    pub sensitive: &'a str,
    /// The columns of the number of a group and of the count.
    pub own: [&'a str; 2],
    /// The individual column of the input, where individuals are counted: each must have one row.
    pub individual: Option<&'a str>,
    /// The models that every group must satisfy.
    pub requirements: &'a [Requirement],
    /// No value may be that of more than one in so many rows of a group.
    pub l: u64,
}

/// What a verification of groups found.
#[derive(Debug)]
pub struct VerifiedGroups {
    /// The rows.
    pub rows: u64,
    /// The groups.
    pub groups: u64,
    /// The sizes of the sets of rows with the same quasi-identifiers: an attacker who knows these finds no larger one.
    pub sizes: ClassSizes,
    /// The value that each model reached.
    pub reached: Vec<Option<Quantity>>,
}

/// What arrives in a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Arrived {
    rows: u64,
    /// The wrapping sums of two keyed hashes of the rows' quasi-identifiers.
    hashes: [u64; 2],
}

fn refused(why: &str) -> Error {
    Error::unmet(format!("verification refused: {why}"))
}

/// Checks that each row of the input has an individual of its own.
pub(super) async fn check_one_row_each(
    input: &DataFrame,
    individual: &str,
    stop: &CancelToken,
) -> Result<()> {
    let counts = vec![count(lit(1i64)), count_distinct(column(individual))];
    let mut counts = stream(input.clone().aggregate(Vec::new(), counts).context(DOING)?).await?;
    while let Some(batch) = next(&mut counts, stop).await? {
        let [rows, individuals] = batch.columns() else { return Err(lost()) };
        if rows.to_data() != individuals.to_data() {
            return Err(refused("an individual has several rows, or a row has none"));
        }
    }
    Ok(())
}

impl GroupTables<'_> {
    /// Judges the tables: by themselves, and against the rows of `input`, which were dealt under a key,
    /// if these are given.
    ///
    /// # Errors
    /// An unmet error that says what is wrong; a data error when counting fails, which also refuses the
    /// release.
    pub async fn verify(
        &self,
        input: Option<(DataFrame, DealingKey)>,
        budget: &Arc<dyn Budget>,
        stop: &CancelToken,
    ) -> Result<VerifiedGroups> {
        let keys = random_keys(DOING)?;
        let (sizes, reached) = self.judge(budget, stop).await?;
        let mut held = Held::new(budget);
        held.at_least(sizes.len() * (size_of::<Arrived>() + size_of::<u64>()))?;
        let mut expected: Vec<Arrived> =
            sizes.iter().map(|rows| Arrived { rows: *rows, hashes: [0; 2] }).collect();
        let with_input = input.is_some();
        if let Some((input, key)) = input {
            if let Some(individual) = self.individual {
                check_one_row_each(&input, individual, stop).await?;
            }
            expected.iter_mut().for_each(|group| group.rows = 0);
            self.deal(input, key, keys, &mut expected, budget, stop).await?;
            if !expected.iter().map(|group| group.rows).eq(sizes.iter().copied()) {
                return Err(Error::internal("groups: rows went to no group"));
            }
        }
        self.compare(keys, with_input, &expected, stop).await?;
        let (rows, groups) = (sizes.iter().sum(), sizes.len() as u64);
        Ok(VerifiedGroups { rows, groups, sizes: self.same_quasi(stop).await?, reached })
    }

    /// Counts the rows with the same quasi-identifiers.
    async fn same_quasi(&self, stop: &CancelToken) -> Result<ClassSizes> {
        const ROWS: &str = "kanon_rows";
        let names = self.names.iter().map(column).collect();
        let sets = self.quasi.clone().aggregate(names, vec![count(lit(1i64)).alias(ROWS)]).context(DOING)?;
        let mut sets = stream(sets.select(vec![column(ROWS)]).context(DOING)?).await?;
        let mut sizes = ClassSizes::default();
        while let Some(batch) = next(&mut sets, stop).await? {
            counted(batch.column(0))?.into_iter().for_each(|size| sizes.add(size));
        }
        Ok(sizes)
    }

    /// Judges the groups by their sensitive values; returns the rows of each, and what the models reached.
    async fn judge(
        &self,
        budget: &Arc<dyn Budget>,
        stop: &CancelToken,
    ) -> Result<(Vec<u64>, Vec<Option<Quantity>>)> {
        let [group, rows] = self.own;
        let is_null = column(self.sensitive).is_null();
        let lines = self.values.clone().select(vec![
            column(group).alias("line_group"),
            row_hash(random_keys(DOING)?[0], vec![column(self.sensitive)]).alias("line_value"),
            is_null.alias("line_is_null"),
            column(rows).alias("line_rows"),
        ]);
        let order = ["line_group", "line_value"].map(|name| column(name).sort(true, true)).to_vec();
        let mut lines = stream(lines.context(DOING)?.sort(order).context(DOING)?).await?;
        let mut held = Held::new(budget);
        let (mut sizes, mut reached) = (Vec::new(), vec![None; self.requirements.len()]);
        let (mut values, mut last) = (Vec::new(), None);
        while let Some(batch) = next(&mut lines, stop).await? {
            let [groups, hashes, nulls, counts] = batch.columns() else { return Err(lost()) };
            let (groups, counts) = (positive(groups)?, positive(counts)?);
            let hashes = hashes.as_primitive_opt::<UInt64Type>().ok_or_else(lost)?.values();
            let nulls = nulls.as_boolean_opt().ok_or_else(lost)?;
            for (row, ((group, hash), count)) in groups.iter().zip(hashes).zip(&counts).enumerate() {
                match last {
                    Some((before, value)) if before == *group => {
                        if value == *hash {
                            return Err(refused("a group has a sensitive value twice"));
                        }
                    }
                    _ => {
                        if *group != sizes.len() as u64 + u64::from(!values.is_empty()) + 1 {
                            return Err(refused("the groups are not numbered from 1"));
                        }
                        self.end_group(&mut values, &mut sizes, &mut reached)?;
                    }
                }
                last = Some((*group, *hash));
                let number = u32::try_from(values.len()).ok().filter(|_| !nulls.value(row));
                values.push(ValueCount { value: number, count: *count });
            }
            let of_group = values.capacity() * size_of::<ValueCount>();
            held.at_least(2 * sizes.len() * size_of::<u64>() + of_group)?;
        }
        self.end_group(&mut values, &mut sizes, &mut reached)?;
        Ok((sizes, reached))
    }

    /// Judges a group of these values, and forgets them.
    fn end_group(
        &self,
        values: &mut Vec<ValueCount>,
        sizes: &mut Vec<u64>,
        reached: &mut [Option<Quantity>],
    ) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let size = values.iter().try_fold(0u64, |size, value| size.checked_add(value.count));
        let size = size.ok_or_else(|| refused("a group has more rows than there can be"))?;
        if values.iter().any(|value| value.count > size / self.l.max(1)) {
            return Err(refused("a sensitive value is more frequent in a group than its models allow"));
        }
        let class = Class::of_values(size, values);
        for (requirement, reached) in self.requirements.iter().zip(reached) {
            let value = requirement.model.value(&class);
            if !requirement.holds(size, value) {
                return Err(refused(&format!("a group fails {}", requirement.text())));
            }
            *reached = requirement.model.reached(&mut reached.iter().copied().chain([value]));
        }
        sizes.push(size);
        values.clear();
        Ok(())
    }

    /// Deals the rows of the input to the groups that have their values.
    async fn deal(
        &self,
        input: DataFrame,
        key: DealingKey,
        keys: [[u64; 2]; 2],
        arrived: &mut [Arrived],
        budget: &Arc<dyn Budget>,
        stop: &CancelToken,
    ) -> Result<()> {
        let of_values = random_keys(DOING)?;
        let value = || of_values.map(|key| row_hash(key, vec![column(self.sensitive)])).into_iter();
        let order = key.order(self.names, self.sensitive);
        let mut rows = ordered(input, value().chain(order).chain(self.hashes(keys)).collect(), 4).await?;
        let own = self.own.map(|name| cast(column(name), DataType::UInt64));
        let columns = value().chain([key.value(self.sensitive)]).chain(own).collect();
        let lines = ordered(self.values.clone(), columns, 2).await?;
        let mut lines = Lines { stream: lines, batch: Vec::new(), at: 0 };

        let differ = || refused("the sensitive values are not those of the input");
        let mut held = Held::new(budget);
        let mut places = Places::default();
        while let Some(batch) = next(&mut rows, stop).await? {
            let columns = numbers(&batch)?;
            let [a, b, _, _, first, second] = columns.as_slice() else { return Err(lost()) };
            for row in 0..batch.num_rows() {
                if places.taken == places.groups.len() {
                    places = lines.places(key, &mut held, stop).await?.ok_or_else(differ)?;
                }
                if places.value != [a[row], b[row]] {
                    return Err(differ());
                }
                let group = places.groups.get(places.taken).and_then(|group| usize::try_from(*group).ok());
                let group =
                    group.and_then(|group| arrived.get_mut(group.checked_sub(1)?)).ok_or_else(lost)?;
                places.taken += 1;
                group.rows += 1;
                for (sum, hash) in group.hashes.iter_mut().zip([first[row], second[row]]) {
                    *sum = sum.wrapping_add(hash);
                }
            }
        }
        match places.taken < places.groups.len() || lines.places(key, &mut held, stop).await?.is_some() {
            true => Err(differ()),
            false => Ok(()),
        }
    }

    /// Compares the rows of the groups with those that are expected there: without the input, only how
    /// many they are.
    async fn compare(
        &self,
        keys: [[u64; 2]; 2],
        with_input: bool,
        expected: &[Arrived],
        stop: &CancelToken,
    ) -> Result<()> {
        let mut columns = vec![column(self.own[0]).alias("row_group")];
        columns.extend(
            self.hashes(keys).into_iter().zip(["row_a", "row_b"]).map(|(hash, name)| hash.alias(name)),
        );
        let sums = vec![count(lit(1i64)), sum(column("row_a")), sum(column("row_b"))];
        let groups = self.quasi.clone().select(columns).context(DOING)?;
        let groups = groups.aggregate(vec![column("row_group")], sums).context(DOING)?;
        let (mut groups, mut found) = (stream(groups).await?, 0);
        while let Some(batch) = next(&mut groups, stop).await? {
            let [numbers, rows, a, b] = batch.columns() else { return Err(lost()) };
            let (numbers, rows) = (positive(numbers)?, positive(rows)?);
            let [a, b] = [a, b].map(|sums| sums.as_primitive_opt::<UInt64Type>());
            let (a, b) = (a.ok_or_else(lost)?, b.ok_or_else(lost)?);
            for (row, (number, rows)) in numbers.iter().zip(rows).enumerate() {
                let group = usize::try_from(*number - 1).ok().and_then(|group| expected.get(group));
                let group = group.ok_or_else(|| refused("a row is in a group without sensitive values"))?;
                if rows != group.rows {
                    return Err(refused("a group has other numbers of rows in both tables"));
                }
                if with_input && [a.value(row), b.value(row)] != group.hashes {
                    return Err(refused(
                        "the rows of a group are not those that the input has for its sensitive values",
                    ));
                }
                found += 1;
            }
        }
        if found != expected.len() {
            return Err(refused("a group has sensitive values and no rows"));
        }
        Ok(())
    }

    /// Returns the keyed hashes of the quasi-identifiers.
    fn hashes(&self, keys: [[u64; 2]; 2]) -> [Expr; 2] {
        keys.map(|key| row_hash(key, self.names.iter().map(column).collect()))
    }
}

/// The places that the groups have for one sensitive value.
#[derive(Default)]
struct Places {
    /// The hashes of the value.
    value: [u64; 2],
    /// The group of each place, in the order in which rows take them.
    groups: Vec<u64>,
    /// How many are taken.
    taken: usize,
}

impl Places {
    fn in_order(mut self, key: DealingKey, number: u64) -> Self {
        key.order_places(number, &mut self.groups);
        self
    }
}

/// The lines of the table of sensitive values, by value.
struct Lines {
    stream: SendableRecordBatchStream,
    /// The lines of this batch.
    batch: Vec<Vec<u64>>,
    /// The next one of them.
    at: usize,
}

impl Lines {
    /// Returns the places of the next value; `None` at the end.
    async fn places(
        &mut self,
        key: DealingKey,
        held: &mut Held,
        stop: &CancelToken,
    ) -> Result<Option<Places>> {
        let mut places: Option<(Places, u64)> = None;
        loop {
            while self.batch.first().is_none_or(|column| self.at >= column.len()) {
                match next(&mut self.stream, stop).await? {
                    Some(batch) => (self.batch, self.at) = (numbers(&batch)?, 0),
                    None => return Ok(places.map(|(places, number)| places.in_order(key, number))),
                }
            }
            let [a, b, number, group, count] = self.batch.as_slice() else { return Err(lost()) };
            let (value, number) = ([a[self.at], b[self.at]], number[self.at]);
            let (group, count) = (group[self.at], usize::try_from(count[self.at]).map_err(|_| lost())?);
            if places.as_ref().is_some_and(|(places, _)| places.value != value) {
                return Ok(places.map(|(places, number)| places.in_order(key, number)));
            }
            let (places, _) = places.get_or_insert_with(|| (Places { value, ..Places::default() }, number));
            held.at_least(places.groups.len().saturating_add(count).saturating_mul(4 * size_of::<u64>()))?;
            places.groups.extend(std::iter::repeat_n(group, count));
            self.at += 1;
        }
    }
}

fn lost() -> Error {
    Error::internal("groups: the plan of a verification lost a column")
}

async fn stream(plan: DataFrame) -> Result<SendableRecordBatchStream> {
    plan.execute_stream().await.context(DOING)
}

async fn next(stream: &mut SendableRecordBatchStream, stop: &CancelToken) -> Result<Option<RecordBatch>> {
    stop.check()?;
    stream.next().await.transpose().context(DOING)
}

/// Returns these numbers of a table's rows, ordered by the first few of them.
async fn ordered(table: DataFrame, columns: Vec<Expr>, by: usize) -> Result<SendableRecordBatchStream> {
    let name = |at: usize| format!("number_{at}");
    let columns: Vec<Expr> = columns.into_iter().enumerate().map(|(at, one)| one.alias(name(at))).collect();
    let order = (0..by).map(|at| column(name(at)).sort(true, true)).collect();
    stream(table.select(columns).context(DOING)?.sort(order).context(DOING)?).await
}

/// Returns the columns of a batch, which are unsigned integers without NULL.
fn numbers(batch: &RecordBatch) -> Result<Vec<Vec<u64>>> {
    let column =
        |values: &ArrayRef| Ok(values.as_primitive_opt::<UInt64Type>().ok_or_else(lost)?.values().to_vec());
    batch.columns().iter().map(column).collect()
}

/// Returns numbers of groups, or counts: integers from 1.
fn positive(values: &ArrayRef) -> Result<Vec<u64>> {
    let values = values.as_primitive_opt::<Int64Type>().ok_or_else(lost)?;
    let wrong = || refused("a number of a group, or a count, is not above 0");
    if values.null_count() > 0 {
        return Err(wrong());
    }
    let positive = |value: &i64| u64::try_from(*value).ok().filter(|value| *value > 0).ok_or_else(wrong);
    values.values().iter().map(positive).collect()
}
