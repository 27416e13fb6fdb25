//! The form of spill files: the rows of one part after the other, in batches. A batch that is not full is the
//! last one of its part.

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::error::Result;

use super::counted::{Counted, RowCount, batch_of};

/// The rows of a full batch.
pub(super) const BATCH: usize = 8192;

/// Returns whether a batch is the last one of its part.
pub(super) fn is_last_of_part(batch: &RecordBatch) -> bool {
    batch.num_rows() < BATCH
}

/// Writes rows as batches.
pub(super) struct PartWriter<const VALUES: usize, N: RowCount, Append> {
    schema: SchemaRef,
    append: Append,
    waiting: Vec<Counted<VALUES, N>>,
    /// The rows of this part so far, and those of the largest part.
    rows: usize,
    largest: usize,
}

impl<const VALUES: usize, N: RowCount, Append: FnMut(&RecordBatch) -> Result<()>>
    PartWriter<VALUES, N, Append>
{
    /// Creates a writer that hands each batch to `append`.
    pub(super) fn new(schema: &SchemaRef, append: Append) -> Self {
        let waiting = Vec::with_capacity(BATCH);
        Self { schema: SchemaRef::clone(schema), append, waiting, rows: 0, largest: 0 }
    }

    fn write_waiting(&mut self) -> Result<()> {
        (self.append)(&batch_of(&self.schema, &self.waiting)?)?;
        self.waiting.clear();
        Ok(())
    }

    /// Adds rows of a part.
    pub(super) fn add(&mut self, rows: impl Iterator<Item = Counted<VALUES, N>>) -> Result<()> {
        for counted in rows {
            self.waiting.push(counted);
            self.rows += 1;
            if self.waiting.len() == BATCH {
                self.write_waiting()?;
            }
        }
        Ok(())
    }

    /// Ends a part, which may have no rows.
    pub(super) fn end_part(&mut self) -> Result<()> {
        self.largest = self.largest.max(std::mem::take(&mut self.rows));
        self.write_waiting()
    }

    /// Returns the rows of the largest part.
    pub(super) fn into_largest(self) -> usize {
        self.largest
    }
}
