//! Partitions classes by their hash and counts one part at a time.
//!
//! All rows of a class are in one part. A part is small enough for a table in the processor's cache.
//! Rows of a class that lie in a part more than once are added up now and then, so that of each class at
//! most four rows are held on average.
//!
//! Without memory, all parts go to one spill file, part after part. The files are read side by side: the
//! next batch of each is that of the next part. Many files are merged into one that has this form, too. A
//! part that is too large for the memory is dealt to parts of its own, by other bits of the hash.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, SpillFile};
use datafusion::physical_plan::SpillManager;
use datafusion::physical_plan::metrics::Time;
use futures::StreamExt;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::counted::{Counted, batch_of, counted_of};

/// The number of parts is 2 to the power of this.
const PARTS_BITS: u32 = 8;
const PARTS: usize = 1 << PARTS_BITS;

/// How often parts may be dealt to parts: then there are 2^24 of them.
const DEEPEST: u32 = 2;

/// The rows of a chunk of a part.
const CHUNK: usize = 128;

/// What spill files are for, which the engine shows.
const FILE: &str = "counts of classes";

/// The spill files that are merged into one.
const MERGED: usize = 16;

/// The held rows above which it is looked for the first time whether classes are there more than once.
const FIRST_ADD_UP: usize = 1 << 14;

/// Rows of one part, in chunks, because a vector that grows is copied.
#[derive(Default)]
struct Part {
    full: Vec<Vec<Counted>>,
    last: Vec<Counted>,
}

impl Part {
    fn push(&mut self, counted: Counted) {
        if self.last.len() == CHUNK {
            self.full.push(std::mem::replace(&mut self.last, Vec::with_capacity(CHUNK)));
        }
        self.last.push(counted);
    }

    fn len(&self) -> usize {
        self.full.len() * CHUNK + self.last.len()
    }
}

/// The number of rows of each class in a part.
#[derive(Default)]
struct Classes(HashTable<Counted>);

impl Classes {
    fn add(&mut self, counted: Counted) {
        let is_it = |other: &Counted| other.class == counted.class;
        // The highest bits are those of the part, and a table looks at the highest and the lowest.
        let hash = |counted: &Counted| counted.hash().rotate_left(u64::BITS / 2);
        match self.0.entry(hash(&counted), is_it, hash) {
            Entry::Occupied(mut known) => known.get_mut().rows += counted.rows,
            Entry::Vacant(place) => {
                place.insert(counted);
            }
        }
    }

    fn add_all(&mut self, part: Part) {
        part.full.into_iter().chain([part.last]).flatten().for_each(|counted| self.add(counted));
    }

    fn add_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        counted_of(batch)?.for_each(|counted| self.add(counted));
        Ok(())
    }
}

/// Returns the bytes that are needed to count the rows of a part.
fn bytes_to_count(rows: usize) -> usize {
    4 * rows * size_of::<Counted>()
}

/// A file of parts, one batch for each.
struct Spilled {
    file: Arc<dyn SpillFile>,
    /// The rows of the largest part.
    largest: usize,
    /// How often its rows went into a merged file.
    merges: u32,
}

/// The parts; see the [module](self).
pub(super) struct Parts {
    parts: Vec<Part>,
    /// The rows of all parts in memory, and the number of them above which they are added up.
    held: usize,
    add_up_above: usize,
    /// The part that is counted next.
    next: usize,
    classes: Classes,
    memory: MemoryReservation,
    spills: SpillManager,
    files: Vec<Spilled>,
    /// The files when counting has begun, each at its batch of the part that is counted next.
    readers: Vec<SendableRecordBatchStream>,
    /// The parts of the part that is counted next, if it did not fit into the memory.
    of_part: Option<Box<Self>>,
    /// How often parts were dealt to parts before.
    depth: u32,
    pool: Arc<dyn MemoryPool>,
    elapsed: Time,
}

impl Parts {
    /// Creates parts without rows.
    pub(super) fn new(spills: SpillManager, pool: &Arc<dyn MemoryPool>, elapsed: Time) -> Self {
        let consumer = MemoryConsumer::new(FILE).with_can_spill(true);
        Self {
            parts: std::iter::repeat_with(Part::default).take(PARTS).collect(),
            held: 0,
            add_up_above: FIRST_ADD_UP,
            next: 0,
            classes: Classes::default(),
            memory: consumer.register(pool),
            spills,
            files: Vec::new(),
            readers: Vec::new(),
            of_part: None,
            depth: 0,
            pool: Arc::clone(pool),
            elapsed,
        }
    }

    /// Adds rows.
    ///
    /// # Errors
    /// Those of a spill.
    pub(super) async fn add(&mut self, rows: impl Iterator<Item = Counted>) -> Result<()> {
        let elapsed = self.elapsed.clone();
        let mut timer = elapsed.timer();
        for counted in rows {
            let hash = counted.hash().rotate_left(PARTS_BITS * self.depth);
            let at = usize::try_from(hash >> (u64::BITS - PARTS_BITS)).unwrap_or_default();
            if let Some(part) = self.parts.get_mut(at) {
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

    /// Returns an upper bound of the bytes that are held, and that adding a part up takes.
    fn bytes(&self) -> usize {
        let largest = self.parts.iter().map(Part::len).max().unwrap_or_default();
        (self.held + self.held.min(PARTS * CHUNK)) * size_of::<Counted>() + bytes_to_count(largest)
    }

    /// Leaves one row for each class, if one part shows that this halves what is held.
    fn add_up_if_it_pays(&mut self) {
        let Some(sample) = self.parts.first_mut() else { return };
        let before = sample.len();
        self.classes.add_all(std::mem::take(sample));
        let after = self.classes.0.len();
        self.classes.0.drain().for_each(|counted| sample.push(counted));
        self.held -= before - after;
        if after < before / 2 {
            self.add_up();
            self.add_up_above = self.add_up_above.max(3 * self.held);
        } else {
            self.add_up_above = 2 * self.held;
        }
    }

    /// Leaves one row for each class.
    fn add_up(&mut self) {
        self.held = 0;
        for part in &mut self.parts {
            self.classes.add_all(std::mem::take(part));
            self.held += self.classes.0.len();
            self.classes.0.drain().for_each(|counted| part.push(counted));
        }
    }

    /// Moves the parts that are not yet counted to a file.
    fn spill(&mut self) -> Result<()> {
        let (mut file, mut largest) = (self.spills.create_in_progress_file(FILE)?, 0);
        for part in self.parts.iter_mut().skip(self.next) {
            let Part { full, last } = std::mem::take(part);
            let rows: Vec<Counted> = full.into_iter().chain([last]).flatten().collect();
            largest = largest.max(rows.len());
            // A part without rows has a batch, too.
            file.append_batch(&batch_of(self.spills.schema(), &rows)?)?;
        }
        self.files.extend(file.finish()?.map(|file| Spilled { file, largest, merges: 0 }));
        self.held = 0;
        self.memory.resize(0);
        Ok(())
    }

    /// Merges the last files while there are enough that were merged equally often, and memory for one part
    /// of them: so each row is rarely written, and few files are open.
    async fn merge_files(&mut self) -> Result<()> {
        while let Some(kept) = self.files.len().checked_sub(MERGED) {
            let [first, .., last] = &self.files[kept..] else { return Ok(()) };
            let (rows, merges) = (self.files[kept..].iter().map(|file| file.largest).sum(), last.merges + 1);
            if first.merges != last.merges || self.memory.try_resize(bytes_to_count(rows)).is_err() {
                return Ok(());
            }
            let files = self.files.split_off(kept);
            let (mut readers, mut largest) = (self.opened(files)?, 0);
            let mut file = self.spills.create_in_progress_file(FILE)?;
            for _ in 0..PARTS {
                for reader in &mut readers {
                    if let Some(batch) = reader.next().await.transpose()? {
                        self.classes.add_batch(&batch)?;
                    }
                }
                let rows: Vec<Counted> = self.classes.0.drain().collect();
                largest = largest.max(rows.len());
                file.append_batch(&batch_of(self.spills.schema(), &rows)?)?;
            }
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

    /// Counts the next part, or a part of it, and returns its classes in no particular order; `None` behind
    /// the last part.
    ///
    /// # Errors
    /// When there is hardly any memory, or a spill file cannot be written or read.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Counted>>> {
        if let Some(parts) = &mut self.of_part {
            match Box::pin(parts.next()).await? {
                None => self.of_part = None,
                classes => return Ok(classes),
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
        self.classes.add_all(part);
        let mut at = 0;
        loop {
            // Making room may add a file.
            let files = std::mem::take(&mut self.files);
            self.readers.extend(self.opened(files)?);
            let Some(reader) = self.readers.get_mut(at) else { break };
            timer.stop();
            let batch = reader.next().await.transpose()?;
            timer.restart();
            at += 1;
            let Some(batch) = batch else { continue };
            if self.of_part.is_none() && self.has_room(self.classes.0.len() + batch.num_rows())? {
                self.classes.add_batch(&batch)?;
                continue;
            }
            timer.stop();
            self.memory.resize(0);
            let parts = self.of_part.get_or_insert_with(|| {
                let parts = Self::new(self.spills.clone(), &self.pool, self.elapsed.clone());
                Box::new(Self { depth: self.depth + 1, ..parts })
            });
            Box::pin(parts.add(self.classes.0.drain().chain(counted_of(&batch)?))).await?;
            timer.restart();
        }
        self.next += 1;
        Ok(Some(self.classes.0.drain().collect()))
    }

    /// Reserves memory to count rows, for which what is held goes to a file if necessary; returns whether
    /// there is enough.
    ///
    /// # Errors
    /// When there is not, and parts were dealt to parts as often as that can help.
    fn has_room(&mut self, rows: usize) -> Result<bool> {
        if self.held > 0 && self.memory.try_resize(self.bytes() + bytes_to_count(rows)).is_ok() {
            return Ok(true);
        }
        if self.held > 0 {
            self.spill()?;
        }
        let reserved = self.memory.try_resize(bytes_to_count(rows));
        match self.depth {
            DEEPEST => reserved.map(|()| true),
            _ => Ok(reserved.is_ok()),
        }
    }
}
