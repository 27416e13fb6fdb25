//! Partitions rows by their class and counts one part at a time.
//!
//! A part is a range of class keys, which are random numbers. So all rows of a class are in one part, the
//! parts follow one another in the order of the classes, and a part is small enough for a table in the
//! processor's cache. A part that is not (a class may have very many values) is dealt to parts of its own: by
//! smaller ranges or, if it is one class, by the hash of the values. Rows that lie in a part more than
//! once are added up now and then, so that of each at most four are held on average.
//!
//! Without memory, all parts go to one spill file, part after part (`part_files.rs`). The files are read side by
//! side: the next batches of each are those of the next part. Many files are merged into one that has this
//! form, too. A part of the files that is too large for the memory is dealt to parts of its own, too.

use std::cmp::Reverse;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, SpillFile};
use datafusion::physical_plan::SpillManager;
use datafusion::physical_plan::metrics::Time;
use futures::StreamExt;

use super::count_table::CountTable;
use super::counted::{Counted, RowCount, counted_of};
use super::dealing::{ClassRange, Dealing, PARTS};
use super::part_files::{BATCH, PartWriter, is_last_of_part};

/// How often parts may be dealt to parts.
const DEEPEST: u32 = 5;

/// The rows above which a part in memory is dealt to parts of its own.
const DEALT: usize = 1 << 18;

/// The rows of a chunk of a part.
const CHUNK: usize = 128;

/// What spill files are for, which the engine shows.
const FILE: &str = "counts of classes";

/// The spill files that are merged into one.
const MERGED: usize = 16;

/// The held rows above which it is looked for the first time whether some are there more than once.
const FIRST_ADD_UP: usize = 1 << 14;

/// The rows that are examined, if the largest part has not more, to know whether adding up pays, and of how
/// many classes and values among them one is counted.
const EXAMINED: usize = 1 << 13;
const SAMPLED: u64 = 8;

/// Rows of one part, in chunks, because a vector that grows is copied.
struct Part<const VALUES: usize, N: RowCount> {
    full: Vec<Vec<Counted<VALUES, N>>>,
    last: Vec<Counted<VALUES, N>>,
}

impl<const VALUES: usize, N: RowCount> Default for Part<VALUES, N> {
    fn default() -> Self {
        Self { full: Vec::new(), last: Vec::new() }
    }
}

impl<const VALUES: usize, N: RowCount> Part<VALUES, N> {
    fn push(&mut self, counted: Counted<VALUES, N>) {
        if self.last.len() == CHUNK {
            self.full.push(std::mem::replace(&mut self.last, Vec::with_capacity(CHUNK)));
        }
        self.last.push(counted);
    }

    fn len(&self) -> usize {
        self.full.len() * CHUNK + self.last.len()
    }

    fn iter(&self) -> impl Iterator<Item = &Counted<VALUES, N>> {
        self.full.iter().chain([&self.last]).flatten()
    }

    /// Returns the rows, and frees each chunk behind its rows.
    fn into_rows(self) -> impl Iterator<Item = Counted<VALUES, N>> {
        self.full.into_iter().chain([self.last]).flatten()
    }
}

/// Returns the bytes that are needed to count the rows of a part.
fn bytes_to_count<const VALUES: usize, N: RowCount>(rows: usize) -> usize {
    4 * rows * size_of::<Counted<VALUES, N>>()
}

/// A file of parts, in the form of `part_files.rs`.
struct Spilled {
    file: Arc<dyn SpillFile>,
    /// The rows of the largest part.
    largest: usize,
    /// How often its rows went into a merged file.
    merges: u32,
}

/// The parts; see the [module](self).
pub(super) struct Parts<const VALUES: usize, N: RowCount> {
    dealing: Dealing,
    parts: Vec<Part<VALUES, N>>,
    /// The rows of all parts in memory, and the number of them above which they are added up.
    held: usize,
    add_up_above: usize,
    /// The part that is counted next.
    next: usize,
    table: CountTable<VALUES, N>,
    /// Whether the rows of a part are sorted.
    in_order: bool,
    memory: MemoryReservation,
    spills: SpillManager,
    files: Vec<Spilled>,
    /// The classes of each part in the files.
    spilled: Vec<ClassRange>,
    /// The files when counting has begun, each at its batch of the part that is counted next.
    readers: Vec<SendableRecordBatchStream>,
    /// The parts of the part that is counted next, if it is too large.
    of_part: Option<Box<Self>>,
    /// How often parts were dealt to parts before.
    depth: u32,
    pool: Arc<dyn MemoryPool>,
    elapsed: Time,
}

impl<const VALUES: usize, N: RowCount> Parts<VALUES, N> {
    /// Creates parts without rows.
    pub(super) fn new(spills: SpillManager, pool: &Arc<dyn MemoryPool>, elapsed: Time) -> Self {
        let consumer = MemoryConsumer::new(FILE).with_can_spill(true);
        Self {
            dealing: Dealing::OF_ALL,
            parts: std::iter::repeat_with(Part::default).take(PARTS).collect(),
            held: 0,
            add_up_above: FIRST_ADD_UP,
            next: 0,
            table: CountTable::default(),
            in_order: false,
            memory: consumer.register(pool),
            spills,
            files: Vec::new(),
            spilled: vec![ClassRange::EMPTY; PARTS],
            readers: Vec::new(),
            of_part: None,
            depth: 0,
            pool: Arc::clone(pool),
            elapsed,
        }
    }

    /// Says whether the rows are returned in the order of their classes: those of one [`next`](Self::next)
    /// from the greatest class to the least, and greater ones by the next.
    pub(super) fn in_order(self, in_order: bool) -> Self {
        Self { in_order, ..self }
    }

    /// Adds rows.
    ///
    /// # Errors
    /// Those of a spill.
    pub(super) async fn add(&mut self, rows: impl Iterator<Item = Counted<VALUES, N>>) -> Result<()> {
        let elapsed = self.elapsed.clone();
        let mut timer = elapsed.timer();
        for counted in rows {
            if let Some(part) = self.parts.get_mut(self.dealing.part_of(&counted)) {
                part.push(counted);
                self.held += 1;
            }
        }
        if self.held > self.add_up_above {
            self.add_up_if_it_pays();
        }
        if self.memory.try_resize(self.bytes()).is_err() {
            let before = self.held;
            self.add_up();
            // Adding up pays where it halves what is held: otherwise it would be needed again soon.
            if self.held > before / 2 || self.memory.try_resize(self.bytes()).is_err() {
                self.spill()?;
                timer.stop();
                self.merge_files().await?;
            }
        }
        Ok(())
    }

    /// Returns an upper bound of the bytes that are held.
    fn held_bytes(&self) -> usize {
        (self.held + self.held.min(PARTS * CHUNK)) * size_of::<Counted<VALUES, N>>()
    }

    /// Returns an upper bound of the bytes that are held, and that counting a part takes.
    fn bytes(&self) -> usize {
        let largest = self.parts.iter().map(Part::len).max().unwrap_or_default();
        self.held_bytes() + bytes_to_count::<VALUES, N>(largest.min(DEALT))
    }

    /// Adds the rows of a part up, if there is memory for it.
    fn add_up_part(&mut self, at: usize) {
        let rows = self.parts[at].len();
        let needed = self.bytes() + bytes_to_count::<VALUES, N>(rows);
        if rows > DEALT && self.memory.try_resize(needed).is_err() {
            return;
        }
        self.table.add_all(std::mem::take(&mut self.parts[at]).into_rows());
        self.held -= rows - self.table.len();
        self.table.take().for_each(|counted| self.parts[at].push(counted));
    }

    /// Leaves one row of each class and value, if a sample shows that this halves what is held.
    fn add_up_if_it_pays(&mut self) {
        let mut parts: Vec<_> = self.parts.iter().collect();
        parts.sort_by_key(|part| Reverse(part.len()));
        let examined = parts.first().map_or(0, |largest| largest.len()).max(EXAMINED);
        let rows = parts.into_iter().flat_map(Part::iter).take(examined);
        let (mut sampled, mut table) = (0, CountTable::default());
        for counted in rows.filter(|counted| counted.hash().is_multiple_of(SAMPLED)) {
            sampled += 1;
            table.add(*counted);
        }
        if table.len() < sampled / 2 {
            self.add_up();
            self.add_up_above = self.add_up_above.max(3 * self.held);
        } else {
            self.add_up_above = 2 * self.held;
        }
    }

    /// Leaves one row of each class and value.
    fn add_up(&mut self) {
        (0..PARTS).for_each(|at| self.add_up_part(at));
    }

    /// Moves the parts that are not yet counted to a file.
    fn spill(&mut self) -> Result<()> {
        let mut file = self.spills.create_in_progress_file(FILE)?;
        let mut writer = PartWriter::new(self.spills.schema(), |batch| file.append_batch(batch).map(drop));
        for (part, spilled) in self.parts.iter_mut().zip(&mut self.spilled).skip(self.next) {
            *spilled = spilled.with(part.iter());
            writer.add(std::mem::take(part).into_rows())?;
            writer.end_part()?;
        }
        let largest = writer.into_largest();
        self.files.extend(file.finish()?.map(|file| Spilled { file, largest, merges: 0 }));
        self.held = 0;
        self.memory.resize(0);
        Ok(())
    }

    /// Merges the last files while there are enough that were merged equally often, and adds their parts up as
    /// far as there is memory: so each row is rarely written, and few files are open.
    async fn merge_files(&mut self) -> Result<()> {
        while let Some(kept) = self.files.len().checked_sub(MERGED) {
            let [first, .., last] = &self.files[kept..] else { return Ok(()) };
            let (rows, merges) = (self.files[kept..].iter().map(|file| file.largest).sum(), last.merges + 1);
            let can_count = |rows| self.memory.try_resize(bytes_to_count::<VALUES, N>(rows)).is_ok();
            let most = [rows, 2 * BATCH].into_iter().find(|rows| can_count(*rows));
            let Some(most) = most.filter(|_| first.merges == last.merges) else { return Ok(()) };
            let files = self.files.split_off(kept);
            let mut readers = self.opened(files)?;
            let mut file = self.spills.create_in_progress_file(FILE)?;
            let append = |batch: &RecordBatch| file.append_batch(batch).map(drop);
            let mut writer = PartWriter::new(self.spills.schema(), append);
            for _ in 0..PARTS {
                for reader in &mut readers {
                    while let Some(batch) = reader.next().await.transpose()? {
                        if self.table.len() + batch.num_rows() > most {
                            writer.add(self.table.take())?;
                        }
                        self.table.add_all(counted_of(&batch)?);
                        if is_last_of_part(&batch) {
                            break;
                        }
                    }
                }
                writer.add(self.table.take())?;
                writer.end_part()?;
            }
            let largest = writer.into_largest();
            self.files.extend(file.finish()?.map(|file| Spilled { file, largest, merges }));
            self.memory.resize(0);
        }
        Ok(())
    }

    /// Opens files for reading.
    fn opened(&self, files: Vec<Spilled>) -> Result<Vec<SendableRecordBatchStream>> {
        let open = |spilled: Spilled| self.spills.read_spill_as_stream_unbuffered(spilled.file, None);
        files.into_iter().map(open).collect()
    }

    /// Counts the next part, or a part of it, and returns its rows; `None` behind the last part.
    ///
    /// # Errors
    /// When there is hardly any memory, or a spill file cannot be written or read.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Counted<VALUES, N>>>> {
        if let Some(parts) = &mut self.of_part {
            match Box::pin(parts.next()).await? {
                None => self.of_part = None,
                rows => return Ok(rows),
            }
        }
        if self.next == PARTS {
            self.memory.free();
            return Ok(None);
        }
        let elapsed = self.elapsed.clone();
        let mut timer = elapsed.timer();
        let part = std::mem::take(&mut self.parts[self.next]);
        self.held -= part.len();
        if self.depth < DEEPEST && (part.len() > DEALT || !self.has_room(part.len())?) {
            self.memory.resize(self.held_bytes());
            timer.stop();
            let range = ClassRange::EMPTY.with(part.iter());
            self.deal(part.into_rows(), range).await?;
            timer.restart();
        } else {
            self.table.add_all(part.into_rows());
        }
        let mut at = 0;
        loop {
            // Making room may add a file.
            let files = std::mem::take(&mut self.files);
            self.readers.extend(self.opened(files)?);
            let Some(reader) = self.readers.get_mut(at) else { break };
            timer.stop();
            let batch = reader.next().await.transpose()?;
            timer.restart();
            let Some(batch) = batch else {
                at += 1;
                continue;
            };
            at += usize::from(is_last_of_part(&batch));
            if self.of_part.is_none() && self.has_room(self.table.len() + batch.num_rows())? {
                self.table.add_all(counted_of(&batch)?);
                continue;
            }
            timer.stop();
            self.memory.resize(self.held_bytes());
            let table = std::mem::take(&mut self.table);
            let range = ClassRange::EMPTY.with(table.iter());
            self.deal(table.into_rows().chain(counted_of(&batch)?), range).await?;
            timer.restart();
        }
        self.next += 1;
        let mut rows: Vec<_> = self.table.take().collect();
        self.memory.resize(self.held_bytes() + rows.len() * size_of::<Counted<VALUES, N>>());
        if self.in_order {
            rows.sort_unstable_by_key(|counted| Reverse(counted.class()));
        }
        Ok(Some(rows))
    }

    /// Deals rows of the part that is counted next to parts of its own. `range` has the classes of those
    /// that were not in a file.
    async fn deal(
        &mut self,
        rows: impl Iterator<Item = Counted<VALUES, N>>,
        range: ClassRange,
    ) -> Result<()> {
        let parts = match &mut self.of_part {
            Some(parts) => parts,
            none => {
                let (depth, in_order) = (self.depth + 1, self.in_order);
                let dealing = self.dealing.of_part(range.or(self.spilled[self.next]));
                let parts = Self::new(self.spills.clone(), &self.pool, self.elapsed.clone());
                none.insert(Box::new(Self { dealing, depth, in_order, ..parts }))
            }
        };
        Box::pin(parts.add(rows)).await
    }

    /// Reserves memory to count rows, for which what is held goes to a file if necessary; returns whether
    /// there is enough.
    ///
    /// # Errors
    /// When there is not, and parts were dealt to parts as often as that can help.
    fn has_room(&mut self, rows: usize) -> Result<bool> {
        let needed = bytes_to_count::<VALUES, N>(rows);
        if self.held > 0 && self.memory.try_resize(self.held_bytes() + needed).is_ok() {
            return Ok(true);
        }
        if self.held > 0 {
            self.spill()?;
        }
        let reserved = self.memory.try_resize(needed);
        match self.depth {
            DEEPEST => reserved.map(|()| true),
            _ => Ok(reserved.is_ok()),
        }
    }
}
