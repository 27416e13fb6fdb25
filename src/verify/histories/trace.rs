//! The histories of rows: what all releases show of each.

use std::hash::Hasher;
use std::mem;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Builder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::scalar::ScalarValue;
use futures::StreamExt;
use serde::Serialize;
use siphasher::sip::SipHasher13;

use super::dates::Dates;
use super::shown_rows::{
    ROW, ShownRows, class_name, compared_name, elsewhere_name, lost, numbers, value_name,
};
use super::tracks::{Copy, Track, join};
use super::{DOING, Matching};
use crate::class::{Budget, Held};
use crate::engine::functions::random_keys;
use crate::engine::replay_table::table_of_partitions;
use crate::engine::spilled_rows::SpilledRows;
use crate::engine::{Context, PoolBudget, column, union_of};
use crate::error::Result;
use crate::progress::CancelToken;

/// The place of a row's release.
const RELEASE: &str = "kanon_release";

/// The inputs in which a row was not, as its dates tell.
const NOT_IN: &str = "kanon_not_in";

/// The class that shows a row, and what else is known of it.
const CLASS: [&str; 2] = ["kanon_class", "kanon_elsewhere"];

/// What is read of each row before the values that are compared, and those that are judged.
const READ: usize = ROW.len() + CLASS.len() + 2;

/// Of each row in each release that shows it: its history as two hashes, the place of the release, the person as two hashes,
/// the class, and the pattern: a bit for each release that shows the row. Values follow.
pub(super) const TRACED: [&str; 7] =
    ["kanon_history_a", "kanon_history_b", RELEASE, ROW[0], ROW[1], CLASS[0], "kanon_pattern"];

/// The rows of all releases with their histories.
pub(super) struct Traced {
    /// The columns [`TRACED`] and those of values.
    pub(super) table: DataFrame,
    /// The people of whom any release shows a row.
    pub(super) people: u64,
    /// The rows that repeat another row of their input in all columns that rows are matched by.
    pub(super) repeated: u64,
    /// The repeated rows that are not in the class of the row they repeat: which is which in another release is unknown.
    pub(super) ambiguous: u64,
    /// The people with a row that is gone and one that is new, which may be one that changed.
    pub(super) unmatched: u64,
    /// Who comes back in each input but the first.
    pub(super) returning: Vec<ReturningPeople>,
}

/// The people of an input, and of all inputs before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ReturningPeople {
    /// The people of the inputs before.
    pub before: u64,
    /// The people of this input.
    pub here: u64,
    /// Those who are in both.
    pub both: u64,
}

impl ReturningPeople {
    /// The people of whichever are fewer: as many as could come back.
    pub(crate) fn most(&self) -> u64 {
        self.before.min(self.here)
    }

    /// Returns whether fewer than half of those come back who could.
    pub(crate) fn are_few(&self) -> bool {
        2 * self.both < self.most()
    }
}

/// Gives each row its history, as the attacker of a view sees it.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(super) async fn trace(
    session: &SessionContext,
    releases: &[ShownRows<'_>],
    matching: &Matching,
    view: usize,
    stop: &CancelToken,
) -> Result<Traced> {
    let dates = Dates::read(releases, stop).await?;
    let width = releases.iter().map(|release| release.width).max().unwrap_or_default();
    let mut all = Vec::with_capacity(releases.len());
    for (place, release) in (0u64..).zip(releases) {
        let mut columns: Vec<Expr> = ROW.map(column).to_vec();
        let classes = [class_name(view), elsewhere_name(view)].into_iter().zip(CLASS);
        columns.extend(classes.map(|(name, class)| column(name).alias(class)));
        columns.push(dates.not_in(release)?.alias(NOT_IN));
        columns.push(lit(place).alias(RELEASE));
        columns.extend((0..matching.compared.len()).map(|at| column(compared_name(at))));
        columns.extend((0..width).map(|at| match at < release.width {
            true => column(value_name(at)),
            false => lit(ScalarValue::UInt64(None)).alias(value_name(at)),
        }));
        all.push(release.table.clone().select(columns).context(DOING)?);
    }
    let order = [ROW[0], ROW[1], ROW[2], RELEASE];
    let all = union_of(all, DOING)?.sort(order.map(|name| column(name).sort(true, true)).to_vec());
    let rows = all.context(DOING)?.execute_stream().await.context(DOING)?;

    let schema = schema(width);
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "histories"));
    let mut tracer = Tracer {
        keys: random_keys(DOING)?,
        matching,
        width,
        schema: Arc::clone(&schema),
        open: None,
        copies: (0..releases.len()).map(|_| Vec::new()).collect(),
        tracks: Vec::new(),
        values: Vec::new(),
        is_person_shown: false,
        inputs: 0,
        people: 0,
        repeated: 0,
        ambiguous: 0,
        unmatched: 0,
        returning: vec![ReturningPeople::default(); releases.len().saturating_sub(1)],
        columns: schema.fields().iter().map(|_| UInt64Builder::new()).collect(),
        held: Held::new(&budget),
    };
    let ended = futures::stream::once(async { Ok(None) });
    let batches = rows.map(|batch| batch.context(DOING).map(Some)).chain(ended).map(|batch| match batch? {
        Some(batch) => tracer.add(&batch),
        None => tracer.end(),
    });
    let rows = SpilledRows::write(session.runtime_env(), schema, batches.boxed(), stop, DOING).await?;
    let Tracer { people, repeated, ambiguous, unmatched, returning, .. } = tracer;
    let table = table_of_partitions(session, vec![Arc::new(rows)])?;
    Ok(Traced { table, people, repeated, ambiguous, unmatched, returning })
}

fn schema(width: usize) -> SchemaRef {
    let first = TRACED.iter().map(|name| Field::new(*name, DataType::UInt64, false));
    let values = (0..width).map(|at| Field::new(value_name(at), DataType::UInt64, true));
    Arc::new(Schema::new(first.chain(values).collect::<Vec<_>>()))
}

/// Reads rows in the order of people, rows and releases.
struct Tracer<'a> {
    keys: [[u64; 2]; 2],
    matching: &'a Matching,
    width: usize,
    schema: SchemaRef,
    /// The person and the row that are read.
    open: Option<([u64; 2], u64)>,
    /// Of each release, what it shows of the row: once, or as often as the row is repeated.
    copies: Vec<Vec<Copy>>,
    /// The rows of the person, where they are matched by their values.
    tracks: Vec<Track>,
    /// The values of all these copies: those that are compared, and those that are judged.
    values: Vec<Option<u64>>,
    /// Whether a row of the person is shown.
    is_person_shown: bool,
    /// The inputs with a row of the person.
    inputs: u64,
    people: u64,
    repeated: u64,
    ambiguous: u64,
    unmatched: u64,
    returning: Vec<ReturningPeople>,
    columns: Vec<UInt64Builder>,
    held: Held,
}

impl Tracer<'_> {
    /// Reads a batch; returns the rows whose histories are complete.
    fn add(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = numbers(batch)?;
        let (first, values) = columns.split_at(READ);
        let [person_a, person_b, row_hash, class_a, class_b, not_in, release] = first else {
            return Err(lost());
        };
        for row in 0..batch.num_rows() {
            let key = ([person_a.value(row), person_b.value(row)], row_hash.value(row));
            if self.open != Some(key) {
                self.close();
                if self.open.is_some_and(|(person, _)| person != key.0) {
                    self.close_person();
                }
                self.open = Some(key);
            }
            let class = class_a.is_valid(row).then(|| [class_a.value(row), class_b.value(row)]);
            let place = usize::try_from(release.value(row)).map_err(|_| lost())?;
            self.inputs |= 1 << place;
            self.copies[place].push(Copy { class, not_in: not_in.value(row), values: self.values.len() });
            self.values.extend(values.iter().map(|values| values.is_valid(row).then(|| values.value(row))));
        }
        let tracks = self.tracks.len() * (size_of::<Track>() + self.copies.len() * size_of::<Option<Copy>>());
        self.held.at_least(tracks + self.values.capacity() * size_of::<Option<u64>>())?;
        self.take()
    }

    /// Returns the last rows.
    fn end(&mut self) -> Result<RecordBatch> {
        self.close();
        self.close_person();
        self.take()
    }

    fn close_person(&mut self) {
        let mut tracks = mem::take(&mut self.tracks);
        self.unmatched += u64::from(join(&mut tracks));
        tracks.iter().for_each(|track| self.trace(track));
        self.values.clear();
        self.people += u64::from(mem::take(&mut self.is_person_shown));
        let inputs = mem::take(&mut self.inputs);
        for (place, returning) in (1..).zip(&mut self.returning) {
            let (before, here) = (inputs & ((1 << place) - 1) != 0, inputs & (1 << place) != 0);
            returning.before += u64::from(before);
            returning.here += u64::from(here);
            returning.both += u64::from(before && here);
        }
    }

    /// Ends the row that was read; each copy of a repeated row is one.
    fn close(&mut self) {
        if self.open.is_none() {
            return;
        }
        let most = self.copies.iter().map(Vec::len).max().unwrap_or_default();
        for of_release in &self.copies {
            self.repeated += (of_release.len() as u64).saturating_sub(1);
            let first = of_release.first().map(|copy| copy.class);
            self.ambiguous += of_release.iter().filter(|copy| Some(copy.class) != first).count() as u64;
        }
        for number in 0..most {
            let copies = self.copies.iter().map(|of_release| of_release.get(number).copied());
            let track = Track { copies: copies.collect() };
            match self.matching.row_is_named {
                true => self.trace(&track),
                false => self.tracks.push(track),
            }
        }
        self.copies.iter_mut().for_each(Vec::clear);
        if self.matching.row_is_named {
            self.values.clear();
        }
    }

    /// Gives a row its history.
    fn trace(&mut self, track: &Track) {
        let Some((person, _)) = self.open else { return };
        let (mut history, mut pattern) = ([0u64; 2], 0u64);
        let shown = track.copies.iter().flatten().filter(|copy| copy.class.is_some());
        let not_in = shown.fold(0, |all, copy| all | copy.not_in);
        let mut last = vec![None; self.matching.compared.len()];
        for (place, copy) in track.copies.iter().enumerate() {
            let class = copy.and_then(|copy| copy.class);
            pattern |= u64::from(class.is_some()) << place;
            let mut has_changed = false;
            if let Some(shown) = copy.filter(|_| class.is_some()) {
                for (last, now) in last.iter_mut().zip(&self.values[shown.values..]) {
                    if now.is_some() {
                        has_changed |= last.is_some() && last != now;
                        *last = *now;
                    }
                }
                has_changed &= !self.matching.changes_are_unknown;
            }
            let was_not_there = copy.is_none() && not_in & (1 << place) != 0;
            if class.is_some() || was_not_there {
                for (sum, key) in history.iter_mut().zip(self.keys) {
                    *sum = sum.wrapping_add(state(key, place, class, has_changed));
                }
            }
        }
        for (place, copy) in track.copies.iter().enumerate() {
            let Some(copy) = copy else { continue };
            let Some(class) = copy.class else { continue };
            let first = [history[0], history[1], place as u64, person[0], person[1], class[0], pattern];
            let values = &self.values[copy.values + self.matching.compared.len()..][..self.width];
            let (of_first, of_values) = self.columns.split_at_mut(TRACED.len());
            of_first.iter_mut().zip(first).for_each(|(column, value)| column.append_value(value));
            of_values.iter_mut().zip(values).for_each(|(column, value)| column.append_option(*value));
        }
        self.is_person_shown |= pattern != 0;
    }

    fn take(&mut self) -> Result<RecordBatch> {
        let columns = self.columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef);
        RecordBatch::try_new(Arc::clone(&self.schema), columns.collect()).context(DOING)
    }
}

/// Returns the hash of what one release shows of a row: a class, in which it may have changed, or that it was not in the input.
fn state(key: [u64; 2], release: usize, class: Option<[u64; 2]>, has_changed: bool) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(key[0], key[1]);
    hasher.write_usize(release);
    hasher.write_u8(u8::from(class.is_some()) + u8::from(has_changed));
    class.unwrap_or_default().into_iter().for_each(|part| hasher.write_u64(part));
    hasher.finish()
}
