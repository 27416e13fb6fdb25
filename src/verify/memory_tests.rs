//! The memory that a verification takes from its budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{ArrayRef, BooleanArray, StringArray, UInt64Array};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use datafusion::parquet::arrow::ArrowWriter;

use crate::class::Budget;
use crate::error::{Error, Result};
use crate::generalize::{Ends, Hierarchy, RegionLabel, Value};
use crate::verify::assignment::{Assignment, LinesShow};
use crate::verify::labels::Labels;
use crate::verify::per_class::PerClass;

/// Counts what is taken.
#[derive(Default)]
pub(super) struct Taken(AtomicUsize);

impl Taken {
    /// Returns the bytes that are held now.
    pub(super) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Budget for Taken {
    fn grow(&self, bytes: usize) -> Result<()> {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn shrink(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn refusal(&self, _bytes: usize) -> Error {
        Error::internal("nothing is refused")
    }
}

/// So many that tables of hashes and vectors, which grow by doubling, are nearly full.
const MANY: usize = 14_000;

/// Returns a budget, and the same one to be asked.
fn budget() -> (Arc<Taken>, Arc<dyn Budget>) {
    let taken = Arc::new(Taken::default());
    (Arc::clone(&taken), taken)
}

/// Allocations have room for up to twice as many entries, tables of hashes for somewhat more.
fn is_about(held: usize, least: usize) {
    assert!((least..3 * least).contains(&held), "{held} bytes, at least {least}");
}

#[test]
fn labels() {
    let (taken, budget) = budget();
    let labels = Labels::new(&budget);
    let texts = (0..MANY).map(|at| Value::Text(format!("{at:0100}")));
    labels.number(texts.collect()).unwrap();
    is_about(taken.bytes(), MANY * (size_of::<Value>() + size_of::<u32>() + 100));
}

#[test]
fn individuals_of_all_classes() {
    let (taken, budget) = budget();
    let mut counter = PerClass::new(0, true, &budget);
    let hashes: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..MANY as u64));
    let values = counter.values(&[Arc::clone(&hashes), hashes]).unwrap();
    (0..MANY).for_each(|row| counter.add(row, &values, 1).unwrap());
    let each = size_of::<((u64, u64), u32, u8)>() + size_of::<u32>() + size_of::<u64>();
    is_about(taken.bytes(), MANY * each);
}

#[test]
fn an_assignment() {
    let lines = 0..MANY as i64;
    let values = lines.clone().map(|line| Some(line.to_string())).collect::<StringArray>();
    let shown = lines.map(|line| Some(format!("[{line},{}]", line + 1))).collect::<StringArray>();
    let columns: [(&str, ArrayRef); 3] = [
        ("kept", Arc::new(BooleanArray::from(vec![true; MANY]))),
        ("value_0", Arc::new(values)),
        ("shown_0", Arc::new(shown)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let bytes = writer.into_inner().unwrap().into();
    let (taken, budget) = budget();
    let hierarchy = Hierarchy::new(&DataType::Int64, vec![]).unwrap();
    let assignment =
        Assignment::read(bytes, vec![hierarchy], LinesShow::Regions(Ends::Closed), &budget).unwrap();
    // The keys of the lines and of the classes, the class of each line, what each class shows, and the texts.
    let key = size_of::<(Box<[u32]>, u32)>() + size_of::<u32>();
    let shown = size_of::<(Option<String>, RegionLabel)>() + size_of::<u32>();
    is_about(taken.bytes(), MANY * (2 * key + size_of::<u32>() + shown + 3 * size_of::<String>()));
    drop(assignment);
    assert_eq!(taken.bytes(), 0);
}
