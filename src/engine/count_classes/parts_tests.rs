use std::collections::{HashMap, HashSet};
use std::path::Path;

use arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Int8Array, Int64Array, TimestampMicrosecondArray, UInt16Array,
};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::execution::TaskContext;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, MemoryConsumer, MemoryPool, UnboundedMemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::SpillManager;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics, Time};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::counted::{Counted, NULL, batch_of, counted_of, rows_of};
use super::first_counts::FirstCounts;
use super::parts::Parts;
use super::*;

/// Returns different keys, spread over 122 bits, for different numbers.
fn class(number: u64) -> [u64; 2] {
    [number, number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 6]
}

fn random_counted(rows: usize, classes: u64, random: &mut ChaCha8Rng) -> Vec<Counted<0, i64>> {
    let class = |number: u64| Counted { class: class(number), values: [], rows: 1 };
    (0..rows).map(|_| class(random.next_u64() % classes)).collect()
}

type Sums<const VALUES: usize> = HashMap<([u64; 2], [[u64; 2]; VALUES]), i64>;

fn summed<const VALUES: usize>(counted: impl IntoIterator<Item = Counted<VALUES, i64>>) -> Sums<VALUES> {
    let mut sums = HashMap::new();
    for Counted { class, values, rows } in counted {
        *sums.entry((class, values)).or_default() += rows;
    }
    sums
}

fn unbounded() -> Arc<dyn MemoryPool> {
    Arc::new(UnboundedMemoryPool::default())
}

#[test]
fn no_row_is_lost_between_places() {
    let mut random = ChaCha8Rng::seed_from_u64(4);
    for (classes, is_useless) in [(1, false), (1000, false), (70_000, false), (u64::MAX, true)] {
        let counted = random_counted(1_200_000, classes, &mut random);
        let (mut counts, mut moved) = (FirstCounts::new(&unbounded()), Vec::new());
        for batch in counted.chunks(8191) {
            counts.add(batch.iter().copied(), &mut moved);
        }
        let before = moved.len();
        counts.drain(&mut moved);
        assert_eq!(moved.len() == before, is_useless);
        assert!(is_useless || moved.len() < 600_000, "{}", moved.len());
        assert_eq!(summed(moved), summed(counted));
    }
}

#[test]
fn rows_of_a_class_that_lie_side_by_side_are_counted_in_the_small_table() {
    let mut random = ChaCha8Rng::seed_from_u64(10);
    let twice = random_counted(600_000, u64::MAX, &mut random).into_iter().flat_map(|counted| [counted; 2]);
    let (pool, counted) = (unbounded(), twice.collect::<Vec<_>>());
    let (mut counts, mut moved) = (FirstCounts::new(&pool), Vec::new());
    let small = pool.reserved();
    for batch in counted.chunks(8192) {
        counts.add(batch.iter().copied(), &mut moved);
        counts.shrink(&[]);
    }
    assert_eq!(pool.reserved(), small);
    // Then each row is a class.
    let others = random_counted(100_000, u64::MAX, &mut random);
    others.chunks(8192).for_each(|batch| counts.add(batch.iter().copied(), &mut moved));
    assert_eq!(moved.len(), 700_000);
    counts.drain(&mut moved);
    assert_eq!(moved.len(), 700_000);
    assert_eq!(summed(moved), summed(counted.into_iter().chain(others)));
}

/// Creates parts with memory from `pool`, their metrics and the folder of their files.
fn parts<const VALUES: usize>(
    pool: &Arc<dyn MemoryPool>,
) -> (Parts<VALUES, i64>, SpillMetrics, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let disk = DiskManagerMode::Directories(vec![folder.path().to_owned()]);
    let disk = DiskManagerBuilder::default().with_mode(disk);
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(pool)).with_disk_manager_builder(disk);
    let runtime = runtime.build_arc().unwrap();
    let context = TaskContext::default().with_runtime(runtime);
    let values = (0..VALUES).map(|at| Field::new(format!("value_{at}"), DataType::Int64, true));
    let schema: Vec<Field> = std::iter::once(Field::new("class", KEY, true))
        .chain(values)
        .chain([Field::new("rows", DataType::Int64, true)])
        .collect();
    let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
    let schema = Arc::new(Schema::new(schema));
    let spills = SpillManager::new(context.runtime_env(), metrics.clone(), schema);
    (Parts::new(spills, pool, Time::new()), metrics, folder)
}

/// Returns the number of files below a folder.
fn files_below(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|entry| if entry.is_dir() { files_below(&entry) } else { 1 }).sum()
}

async fn all_of<const VALUES: usize>(mut parts: Parts<VALUES, i64>) -> Vec<Counted<VALUES, i64>> {
    let mut counted = Vec::new();
    while let Some(classes) = parts.next().await.unwrap() {
        counted.extend(classes);
    }
    counted
}

#[tokio::test]
async fn parts_hold_few_rows_of_a_class() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let pool = unbounded();
    let (mut parts, spills, _folder) = parts(&pool);
    let (mut expected, mut most) = (HashMap::new(), 0);
    for _ in 0..300 {
        let counted = random_counted(10_000, 100_000, &mut random);
        counted.iter().for_each(|counted| *expected.entry((counted.class, [])).or_insert(0) += 1);
        parts.add(counted.into_iter()).await.unwrap();
        most = most.max(pool.reserved());
    }
    // Four rows of 24 bytes for each class, and what adding them up takes; 3 million rows were added.
    assert!(most > 2_400_000 && most < 12_000_000, "{most}");
    let counted = all_of(parts).await;
    assert_eq!(counted.len(), expected.len());
    assert_eq!(summed(counted), expected);
    assert_eq!((pool.reserved(), spills.spill_file_count.value()), (0, 0));
}

/// In most files most parts have no row.
#[tokio::test]
async fn spilled_parts_are_counted_together() {
    let mut random = ChaCha8Rng::seed_from_u64(6);
    let null: Counted<0, i64> = Counted { class: NULL, values: [], rows: 1 };
    for (bytes, classes) in [(10_000, 300), (100_000, 3000)] {
        let pool: Arc<dyn MemoryPool> = Arc::new(FairSpillPool::new(bytes));
        let (mut parts, spills, _folder) = parts(&pool);
        let mut added = Vec::new();
        for _ in 0..10 {
            let counted: Vec<_> =
                random_counted(3000, classes, &mut random).into_iter().chain([null]).collect();
            parts.add(counted.iter().copied()).await.unwrap();
            added.extend(counted);
        }
        let counted = all_of(parts).await;
        assert!(spills.spill_file_count.value() > 2, "{bytes} {}", spills.spill_file_count.value());
        assert_eq!(counted.len() as u64, classes + 1);
        assert_eq!(summed(counted), summed(added));
        assert_eq!(pool.reserved(), 0);
    }
}

#[tokio::test]
async fn many_spills_leave_few_files() {
    let mut random = ChaCha8Rng::seed_from_u64(8);
    let pool: Arc<dyn MemoryPool> = Arc::new(FairSpillPool::new(100_000));
    let (mut parts, spills, folder) = parts(&pool);
    let (mut added, mut most) = (Vec::new(), 0);
    for _ in 0..600 {
        let counted = random_counted(2000, 20_000, &mut random);
        parts.add(counted.iter().copied()).await.unwrap();
        added.extend(counted);
        most = most.max(files_below(folder.path()));
    }
    // Files that were never merged, once and twice: of each kind fewer than 16 are left.
    assert!(
        spills.spill_file_count.value() > 300 && most < 3 * 16,
        "{} {most}",
        spills.spill_file_count.value()
    );
    let counted = all_of(parts).await;
    assert_eq!(counted.len(), 20_000);
    assert_eq!(summed(counted), summed(added));
    assert_eq!((pool.reserved(), files_below(folder.path())), (0, 0));
}

/// A user's column can have the name of a class key and values with a pattern.
#[test]
fn hashes_of_values_with_a_pattern_are_spread() {
    let patterns: [fn(u64) -> [u64; 2]; 5] =
        [|n| [n, 0], |n| [0, n], |n| [n, n], |n| [n << 32, n], |n| [n.wrapping_neg(), n >> 63]];
    for pattern in patterns {
        let hashes: Vec<u64> =
            (1..=4096).map(|n| Counted { class: pattern(n), values: [], rows: 1i64 }.hash()).collect();
        let distinct =
            |bits: fn(u64) -> u64| hashes.iter().map(|hash| bits(*hash)).collect::<HashSet<_>>().len();
        assert_eq!(distinct(|hash| hash), 4096);
        // Of 4096 random numbers below 4096, 2589 are distinct.
        assert!(distinct(|hash| hash >> 52) > 2400, "{}", distinct(|hash| hash >> 52));
        assert!(distinct(|hash| hash >> 32 & 4095) > 2400, "{}", distinct(|hash| hash >> 32 & 4095));
    }
}

/// 100,000 classes are 390 in a part, which take 37 kB, and 2 in a part of a part.
#[tokio::test]
async fn a_part_that_does_not_fit_is_dealt_to_parts() {
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let pool: Arc<dyn MemoryPool> = Arc::new(FairSpillPool::new(50_000));
    let (mut parts, _, folder) = parts(&pool);
    let mut added = Vec::new();
    for _ in 0..100 {
        let counted = random_counted(3000, 100_000, &mut random);
        parts.add(counted.iter().copied()).await.unwrap();
        added.extend(counted);
    }
    // Two consumers have half of the memory each.
    let other = MemoryConsumer::new("other").with_can_spill(true).register(&pool);
    let (mut counted, mut returned) = (Vec::new(), 0);
    while let Some(classes) = parts.next().await.unwrap() {
        returned += 1;
        counted.extend(classes);
    }
    drop(parts);
    assert!(returned > 256 && files_below(folder.path()) == 0, "{returned}");
    let expected = summed(added);
    assert_eq!(counted.len(), expected.len());
    assert_eq!(summed(counted), expected);
    assert_eq!(other.size() + pool.reserved(), 0);
}

#[tokio::test]
async fn parts_that_fit_nowhere_are_refused() {
    let pool: Arc<dyn MemoryPool> = Arc::new(FairSpillPool::new(50));
    let (mut parts, _, _folder) = parts(&pool);
    let mut random = ChaCha8Rng::seed_from_u64(7);
    parts.add(random_counted(1000, u64::MAX, &mut random).into_iter()).await.unwrap();
    let is_refused = loop {
        match parts.next().await {
            Ok(Some(_)) => {}
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    assert!(is_refused);
}

/// Collects all rows and checks that their classes ascend.
async fn in_order(mut parts: Parts<1, i64>) -> Vec<Counted<1, i64>> {
    let (mut counted, mut returned): (Vec<Counted<1, i64>>, usize) = (Vec::new(), 0);
    while let Some(mut rows) = parts.next().await.unwrap() {
        returned = returned.max(rows.len());
        rows.reverse();
        counted.extend(rows);
    }
    assert!(counted.is_sorted_by_key(Counted::class));
    // A part with more rows is dealt to parts of its own.
    assert!(returned <= 1 << 18, "{returned}");
    counted
}

/// Classes with very many values, beside many small ones, are dealt to parts until they fit.
#[tokio::test]
async fn values_of_large_and_small_classes_are_returned_in_order() {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let keys: [fn(u64) -> [u64; 2]; 3] = [
        class,
        // A user's column can have the name of a class key, and any values: here small numbers around zero
        // and NULL.
        |number| {
            if number == 5 { NULL } else { [number.wrapping_sub(3), if number < 3 { u64::MAX } else { 0 }] }
        },
        // Greater than any key.
        |number| [number << 1, (1 << 62) + (number % 2)],
    ];
    for (bytes, batches) in [(usize::MAX, 60), (1_000_000, 8), (100_000, 1)] {
        for (classes, at) in [(1, 0), (3, 1), (3, 2), (40_000, 0), (40_000, 1)] {
            let pool: Arc<dyn MemoryPool> = Arc::new(FairSpillPool::new(bytes));
            let (parts, spills, folder) = parts::<1>(&pool);
            let (mut parts, mut added) = (parts.in_order(true), Vec::new());
            for _ in 0..batches {
                let mut row = || {
                    let of = random.next_u64();
                    // Half of all rows are of one class.
                    let number = if of % 2 == 0 { 0 } else { of / 2 % classes };
                    let value = random.next_u64() % 600_000;
                    let values = [if value == 0 { NULL } else { [value, 0] }];
                    Counted { class: keys[at](number), values, rows: 1 }
                };
                let counted: Vec<_> = (0..10_000).map(|_| row()).collect();
                parts.add(counted.iter().copied()).await.unwrap();
                added.extend(counted);
            }
            let expected = summed(added);
            let counted = in_order(parts).await;
            assert_eq!(spills.spill_file_count.value() > 0, bytes < usize::MAX);
            assert_eq!(counted.len(), expected.len(), "{bytes} {classes} {at}");
            assert_eq!(summed(counted), expected, "{bytes} {classes} {at}");
            assert_eq!((pool.reserved(), files_below(folder.path())), (0, 0));
        }
    }
}

/// Merged parts need not fit into the memory.
#[tokio::test]
async fn files_of_few_large_classes_are_merged() {
    let mut random = ChaCha8Rng::seed_from_u64(12);
    let pool: Arc<dyn MemoryPool> = Arc::new(FairSpillPool::new(3_000_000));
    let (parts, spills, folder) = parts::<1>(&pool);
    let (mut parts, mut added, mut most) = (parts.in_order(true), Vec::new(), 0);
    for _ in 0..60 {
        let mut value = || [random.next_u64() % 1_000_000, 0];
        let row = |number: u64| Counted { class: class(number % 3), values: [value()], rows: 1 };
        let counted: Vec<_> = (0..20_000).map(row).collect();
        parts.add(counted.iter().copied()).await.unwrap();
        added.extend(counted);
        most = most.max(files_below(folder.path()));
    }
    let spilled = spills.spill_file_count.value();
    assert!(spilled > 25 && most <= 16, "{spilled} {most}");
    let (counted, expected) = (in_order(parts).await, summed(added));
    assert_eq!(counted.len(), expected.len());
    assert_eq!(summed(counted), expected);
    assert_eq!((pool.reserved(), files_below(folder.path())), (0, 0));
}

/// No bits are left for it: these are the bits of NULL.
#[test]
fn a_decimal_outside_its_range_is_refused() {
    let column = |values: Vec<Option<i128>>| -> ArrayRef {
        Arc::new(values.into_iter().collect::<Decimal128Array>().with_data_type(KEY))
    };
    let classes = column(vec![Some(1), None]);
    let read = |values| rows_of::<1, ()>(&[Arc::clone(&classes), column(values)]).map(Iterator::count);
    assert_eq!(read(vec![Some(i128::MIN + 1), None]).unwrap(), 2);
    let refused = read(vec![Some(i128::MIN), None]).unwrap_err().to_string();
    assert!(refused.contains("outside the range"), "{refused}");
    let schema = Schema::new(vec![Field::new("class", KEY, true), Field::new("value", KEY, true)]);
    let rows = vec![classes, column(vec![None, Some(-7)])];
    let batch = RecordBatch::try_new(Arc::new(schema), rows).unwrap();
    let counted: Vec<Counted<1, ()>> = counted_of(&batch).unwrap().collect();
    assert_eq!(batch_of(&batch.schema(), &counted).unwrap(), batch);
    // A row that looks like a free place is handed on.
    let (mut counts, mut moved) = (FirstCounts::new(&unbounded()), Vec::new());
    counts.add([Counted::<0, i64>::NONE; 3].into_iter(), &mut moved);
    assert_eq!(moved.len(), 3);
}

#[test]
fn a_slice_with_nulls_survives_reading_and_writing() {
    let classes = Decimal128Array::from(vec![Some(7), None, Some(-8), Some(7), None]).with_data_type(KEY);
    let columns: [ArrayRef; 5] = [
        Arc::new(Int8Array::from(vec![Some(0), Some(-1), None, Some(i8::MIN), Some(3)])),
        Arc::new(UInt16Array::from(vec![None, Some(0), Some(u16::MAX), None, Some(1)])),
        Arc::new(Date32Array::from(vec![Some(-1), None, Some(i32::MAX), Some(0), None])),
        Arc::new(TimestampMicrosecondArray::from(vec![None, Some(i64::MIN), Some(0), None, Some(-1)])),
        Arc::new(Decimal128Array::from(vec![Some(-1), None, Some(0), Some(1), Some(2)])),
    ];
    for values in columns {
        let fields = [("class", KEY, true), ("value", values.data_type().clone(), true)];
        let fields = fields.map(|(name, of, nullable)| Field::new(name, of, nullable));
        let rows = Field::new("rows", DataType::Int64, false);
        let schema = Arc::new(Schema::new(fields.into_iter().chain([rows]).collect::<Vec<_>>()));
        let numbers = Arc::new(Int64Array::from_iter_values(1..=5));
        let columns: Vec<ArrayRef> = vec![Arc::new(classes.clone()), values, numbers];
        let whole = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
        for (first, rows) in [(0, 5), (1, 3), (3, 2), (4, 1), (2, 0)] {
            let part = whole.slice(first, rows);
            let counted: Vec<Counted<1, i64>> = counted_of(&part).unwrap().collect();
            assert_eq!(batch_of(&schema, &counted).unwrap(), part);
            let read: Vec<_> = rows_of::<1, i64>(&part.columns()[..2]).unwrap().collect();
            assert_eq!(read.len(), rows);
            assert!(read.iter().zip(&counted).all(|(row, counted)| row.is_of_same(counted) && row.rows == 1));
        }
    }
}
