//! The histories of rows: what all releases show of each.

use std::hash::Hasher;
use std::mem;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Builder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
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
use super::tracks::{Copy, Track, has_other_rows, join};
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
const TOLD: &str = "kanon_told";

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
    pub(super) counts: Counts,
}

/// What is counted of rows while they are traced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The people of whom any release shows a row.
    pub(crate) people: u64,
    /// The rows that repeat another row of their input in all columns that rows are matched by.
    pub(crate) repeated: u64,
    /// The repeated rows that are not in the class of the row they repeat: which is which in another release is unknown.
    pub(crate) ambiguous: u64,
    /// The people with a row that is gone and one that is new, which may be one that changed.
    pub(crate) unmatched: u64,
    /// Who comes back in each input but the first.
    pub(crate) returning: Vec<ReturningPeople>,
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
    /// Those of them who have none of the rows that they had before.
    pub with_other_rows: u64,
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

    /// Returns whether more than half of those who come back have other rows.
    pub(crate) fn have_other_rows(&self) -> bool {
        2 * self.with_other_rows > self.both
    }
}

/// Gives each row its history, as the attacker of a view sees it.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(super) async fn trace(
    session: &SessionContext,
    releases: &[&ShownRows<'_>],
    matching: &Matching,
    view: usize,
    stop: &CancelToken,
) -> Result<Traced> {
    let of_views = vec![view; releases.len()];
    let (rows, width) = all_rows(releases, matching, &of_views, stop).await?;
    let schema = schema(width);
    let columns = schema.fields().iter().map(|_| UInt64Builder::new()).collect();
    let traced = TracedRows { schema: Arc::clone(&schema), keys: random_keys(DOING)?, width, columns };
    let mut tracer = Tracer::new(session, matching, releases.len(), traced);
    let ended = futures::stream::once(async { Ok(None) });
    let batches = rows.map(|batch| batch.context(DOING).map(Some)).chain(ended).map(|batch| {
        match batch? {
            Some(batch) => tracer.add(&batch)?,
            None => tracer.end()?,
        }
        tracer.sink.take()
    });
    let rows = SpilledRows::write(session.runtime_env(), schema, batches.boxed(), stop, DOING).await?;
    let table = table_of_partitions(session, vec![Arc::new(rows)])?;
    Ok(Traced { table, counts: tracer.counts })
}

/// A row that the input of the next release has, or that a release before it shows.
pub(crate) struct EarlierTrack {
    /// Its person.
    pub(crate) person: [u64; 2],
    /// Its history in the releases before.
    pub(crate) history: [u64; 2],
    /// The last of them that shows it, and its class there.
    pub(crate) shown: Option<(usize, u64)>,
    /// What it is in the input of the next one.
    pub(crate) now: Option<RowNow>,
}

/// A row in the input of the next release.
pub(crate) struct RowNow {
    /// Its pseudonym among the rows of the person.
    pub(crate) row: u64,
    pub(crate) class: u64,
    /// Which of the values that it was shown with everybody sees again, or that it has new ones.
    pub(crate) version: u64,
}

/// Traces the rows of an input through the releases before; the last of `releases` is what [`ShownRows::of_input`] made of it.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(crate) async fn trace_earlier(
    session: &SessionContext,
    releases: &[&ShownRows<'_>],
    matching: &Matching,
    stop: &CancelToken,
) -> Result<(Vec<EarlierTrack>, Counts, Held)> {
    let Some(all) = releases.first().map(|first| first.views.iter().position(Option::is_none)) else {
        return Err(lost());
    };
    let mut of_views = vec![all.ok_or_else(lost)?; releases.len()];
    if let Some(last) = of_views.last_mut() {
        *last = 0;
    }
    let (mut rows, _) = all_rows(releases, matching, &of_views, stop).await?;
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "histories"));
    let sink = EarlierTracks { keys: random_keys(DOING)?, tracks: Vec::new() };
    let (mut tracer, mut held) = (Tracer::new(session, matching, releases.len(), sink), Held::new(&budget));
    while let Some(batch) = rows.next().await {
        stop.check()?;
        tracer.add(&batch.context(DOING)?)?;
        held.at_least(tracer.sink.tracks.capacity() * size_of::<EarlierTrack>())?;
    }
    tracer.end()?;
    Ok((tracer.sink.tracks, tracer.counts, held))
}

/// Returns the rows of all releases in the order of people, rows and releases, as the attackers of these views see them, and the most
/// values of a release.
async fn all_rows(
    releases: &[&ShownRows<'_>],
    matching: &Matching,
    views: &[usize],
    stop: &CancelToken,
) -> Result<(SendableRecordBatchStream, usize)> {
    let dates = Dates::read(releases, stop).await?;
    let width = releases.iter().map(|release| release.width).max().unwrap_or_default();
    let mut all = Vec::with_capacity(releases.len());
    for (place, (release, view)) in (0u64..).zip(releases.iter().zip(views)) {
        let mut columns: Vec<Expr> = ROW.map(column).to_vec();
        let classes = [class_name(*view), elsewhere_name(*view)].into_iter().zip(CLASS);
        columns.extend(classes.map(|(name, class)| column(name).alias(class)));
        columns.push(dates.not_in(release)?.alias(TOLD));
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
    Ok((all.context(DOING)?.execute_stream().await.context(DOING)?, width))
}

fn schema(width: usize) -> SchemaRef {
    let first = TRACED.iter().map(|name| Field::new(*name, DataType::UInt64, false));
    let values = (0..width).map(|at| Field::new(value_name(at), DataType::UInt64, true));
    Arc::new(Schema::new(first.chain(values).collect::<Vec<_>>()))
}

/// Takes rows whose copies are complete.
trait Tracks {
    /// Takes a row of a person, and the values of all copies. Returns whether any release shows it.
    fn see(&mut self, person: [u64; 2], track: &Track, values: &[Option<u64>], matching: &Matching) -> bool;
}

/// Reads rows in the order of people, rows and releases.
struct Tracer<'a, T> {
    matching: &'a Matching,
    sink: T,
    /// The person and the row that are read.
    open: Option<([u64; 2], u64)>,
    /// Of each release, what it shows of the row: once, or as often as the row is repeated.
    copies: Vec<Vec<Copy>>,
    /// The rows of the person, where they are matched by their values.
    tracks: Vec<Track>,
    /// Of each row of the person a bit for each input that has it.
    rows: Vec<u64>,
    /// The values of all these copies: those that are compared, and those that are judged.
    values: Vec<Option<u64>>,
    /// Whether a row of the person is shown.
    is_person_shown: bool,
    /// The inputs with a row of the person.
    inputs: u64,
    counts: Counts,
    held: Held,
}

impl<'a, T: Tracks> Tracer<'a, T> {
    fn new(session: &SessionContext, matching: &'a Matching, releases: usize, sink: T) -> Self {
        let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "histories"));
        let returning = vec![ReturningPeople::default(); releases.saturating_sub(1)];
        Self {
            matching,
            sink,
            open: None,
            copies: (0..releases).map(|_| Vec::new()).collect(),
            tracks: Vec::new(),
            rows: Vec::new(),
            values: Vec::new(),
            is_person_shown: false,
            inputs: 0,
            counts: Counts { returning, ..Counts::default() },
            held: Held::new(&budget),
        }
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = numbers(batch)?;
        let (first, values) = columns.split_at(READ);
        let [person_a, person_b, row_hash, class_a, class_b, told, release] = first else {
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
            self.copies[place].push(Copy {
                row: key.1,
                class,
                told: told.value(row),
                values: self.values.len(),
            });
            self.values.extend(values.iter().map(|values| values.is_valid(row).then(|| values.value(row))));
        }
        let tracks = self.tracks.len() * (size_of::<Track>() + self.copies.len() * size_of::<Option<Copy>>());
        self.held.at_least(tracks + self.values.capacity() * size_of::<Option<u64>>())
    }

    /// Ends the last row.
    fn end(&mut self) -> Result<()> {
        self.close();
        self.close_person();
        Ok(())
    }

    fn close_person(&mut self) {
        let mut tracks = mem::take(&mut self.tracks);
        self.counts.unmatched += u64::from(join(&mut tracks));
        tracks.iter().for_each(|track| self.see(track));
        self.values.clear();
        self.counts.people += u64::from(mem::take(&mut self.is_person_shown));
        let inputs = mem::take(&mut self.inputs);
        for (place, returning) in (1..).zip(&mut self.counts.returning) {
            let (before, here) = (inputs & ((1 << place) - 1) != 0, inputs & (1 << place) != 0);
            returning.before += u64::from(before);
            returning.here += u64::from(here);
            returning.both += u64::from(before && here);
            let has_others = before && here && has_other_rows(&self.rows, place);
            returning.with_other_rows += u64::from(has_others);
        }
        self.rows.clear();
    }

    /// Ends the row that was read; each copy of a repeated row is one.
    fn close(&mut self) {
        if self.open.is_none() {
            return;
        }
        let most = self.copies.iter().map(Vec::len).max().unwrap_or_default();
        for of_release in &self.copies {
            self.counts.repeated += (of_release.len() as u64).saturating_sub(1);
            let first = of_release.first().map(|copy| copy.class);
            self.counts.ambiguous +=
                of_release.iter().filter(|copy| Some(copy.class) != first).count() as u64;
        }
        for number in 0..most {
            let copies = self.copies.iter().map(|of_release| of_release.get(number).copied());
            let track = Track { copies: copies.collect() };
            match self.matching.row_is_named {
                true => self.see(&track),
                false => self.tracks.push(track),
            }
        }
        self.copies.iter_mut().for_each(Vec::clear);
        if self.matching.row_is_named {
            self.values.clear();
        }
    }

    fn see(&mut self, track: &Track) {
        let Some((person, _)) = self.open else { return };
        self.rows.push(track.inputs());
        self.is_person_shown |= self.sink.see(person, track, &self.values, self.matching);
    }
}

/// What the first releases show of a row.
struct Shown {
    /// The history, as two hashes.
    history: [u64; 2],
    /// A bit for each release that shows the row.
    pattern: u64,
    /// Of each group of values that are compared, those that were shown, in their order.
    versions: Vec<Vec<u64>>,
}

impl Shown {
    /// Reads what releases show of a row. `told` are inputs in which it was not, as its dates tell.
    fn of(
        copies: &[Option<Copy>],
        values: &[Option<u64>],
        told: u64,
        keys: [[u64; 2]; 2],
        matching: &Matching,
    ) -> Self {
        let versions = vec![Vec::new(); matching.compared.len()];
        let mut shown = Self { history: [0; 2], pattern: 0, versions };
        for (place, copy) in copies.iter().enumerate() {
            let class = copy.and_then(|copy| copy.class);
            shown.pattern |= u64::from(class.is_some()) << place;
            let version = copy.filter(|_| class.is_some());
            let version = version.map(|copy| shown.version(&values[copy.values..], matching));
            let was_not_there = copy.is_none() && told & (1 << place) != 0;
            if class.is_some() || was_not_there {
                for (sum, key) in shown.history.iter_mut().zip(keys) {
                    *sum = sum.wrapping_add(state(key, place, class, version.unwrap_or_default()));
                }
            }
        }
        shown
    }

    /// Returns a number for which of the values that were shown before a release shows again, and remembers new ones: who has any two
    /// releases sees whether the row changed between them.
    fn version(&mut self, values: &[Option<u64>], matching: &Matching) -> u64 {
        let mut version = 0u64;
        for (known, now) in self.versions.iter_mut().zip(values) {
            let Some(now) = now else { continue };
            let number = known.iter().position(|value| value == now).unwrap_or_else(|| {
                known.push(*now);
                known.len() - 1
            });
            // There are at most 64 releases.
            version = version.wrapping_mul(65).wrapping_add(number as u64 + 1);
        }
        if matching.changes_are_unknown { 0 } else { version }
    }
}

/// Returns the inputs in which a row was not, as the dates of these copies tell.
fn told_by<'c>(copies: impl IntoIterator<Item = &'c Copy>) -> u64 {
    copies.into_iter().fold(0, |all, copy| all | copy.told)
}

/// The rows that releases show, with their histories, as columns.
struct TracedRows {
    schema: SchemaRef,
    keys: [[u64; 2]; 2],
    width: usize,
    columns: Vec<UInt64Builder>,
}

impl TracedRows {
    fn take(&mut self) -> Result<RecordBatch> {
        let columns = self.columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef);
        RecordBatch::try_new(Arc::clone(&self.schema), columns.collect()).context(DOING)
    }
}

impl Tracks for TracedRows {
    fn see(&mut self, person: [u64; 2], track: &Track, values: &[Option<u64>], matching: &Matching) -> bool {
        let is_shown = |copy: &&Copy| copy.class.is_some();
        let told = told_by(track.copies.iter().flatten().filter(is_shown));
        let Shown { history, pattern, .. } = Shown::of(&track.copies, values, told, self.keys, matching);
        for (place, copy) in track.copies.iter().enumerate() {
            let Some(copy) = copy else { continue };
            let Some(class) = copy.class else { continue };
            let first = [history[0], history[1], place as u64, person[0], person[1], class[0], pattern];
            let values = &values[copy.values + matching.compared.len()..][..self.width];
            let (of_first, of_values) = self.columns.split_at_mut(TRACED.len());
            of_first.iter_mut().zip(first).for_each(|(column, value)| column.append_value(value));
            of_values.iter_mut().zip(values).for_each(|(column, value)| column.append_option(*value));
        }
        pattern != 0
    }
}

/// The rows that an input has, or that a release before it shows.
struct EarlierTracks {
    keys: [[u64; 2]; 2],
    tracks: Vec<EarlierTrack>,
}

impl Tracks for EarlierTracks {
    fn see(&mut self, person: [u64; 2], track: &Track, values: &[Option<u64>], matching: &Matching) -> bool {
        let Some((now, before)) = track.copies.split_last() else { return false };
        let shown = || before.iter().flatten().filter(|copy| copy.class.is_some());
        // A row that no release shows is told by its date once the next one does.
        let told = if shown().next().is_none() { told_by(now.as_ref()) } else { told_by(shown()) };
        let mut found = Shown::of(before, values, told, self.keys, matching);
        let place = found.pattern.checked_ilog2().map(|place| place as usize);
        let class = place.and_then(|place| Some((place, before[place]?.class?[0])));
        let now = now.and_then(|copy| {
            let version = found.version(&values[copy.values..], matching);
            Some(RowNow { row: copy.row, class: copy.class?[0], version })
        });
        if class.is_some() || now.is_some() {
            self.tracks.push(EarlierTrack { person, history: found.history, shown: class, now });
        }
        class.is_some()
    }
}

/// Returns the hash of what one release shows of a row: a class and which of its values, or that it was not in the input.
fn state(key: [u64; 2], release: usize, class: Option<[u64; 2]>, version: u64) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(key[0], key[1]);
    hasher.write_usize(release);
    hasher.write_u8(u8::from(class.is_some()));
    hasher.write_u64(version);
    class.unwrap_or_default().into_iter().for_each(|part| hasher.write_u64(part));
    hasher.finish()
}
