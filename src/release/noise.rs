//! The release of a method that adds noise: the clusters' means with noise, written, judged and recorded.
//!
//! No row of the input is written: each row of a cluster shows its means, and only the number of rows comes
//! from the input.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, StringArray, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::error::Result as EngineResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::DataFrame;

use crate::class::{Budget, Held};
use crate::engine::{Context, PoolBudget, Run};
use crate::error::{Error, Result};
use crate::generalize::Value;
use crate::input::Loaded;
use crate::method::Recoding;
use crate::method::microaggregation::dp_centroids::Clusters;
use crate::noise::Mechanism;
use crate::plural::grouped;
use crate::policy::Policy;
use crate::progress::Phase;
use crate::release::concrete_recoding::expected;
use crate::release::pipeline::{Findings, Passed};
use crate::release::released_recoding::{Chosen, ClassKeys, KeptClasses, Shown, in_order, released_schema};
use crate::release::released_regions;
use crate::release::sink::{RecodedRows, Sink};
use crate::release::written_columns::as_texts;
use crate::verify::as_is::UniqueTogether;
use crate::verify::noise::{NoiseKey, NoisyMeans};
use crate::verify::{Expected, IndividualCounts, Verified, same_types, verify};

/// Adds noise to the means of clusters, and verifies what the sink took of them against the input, which is
/// read `again` by the second way of reading it.
///
/// # Errors
/// Any failure of writing or verifying; the caller must then discard what the sink took.
pub(super) async fn add_and_verify<S: Sink>(
    run: &Run<'_>,
    loaded: &Loaded,
    clusters: &Clusters,
    again: impl Future<Output = Result<Loaded>>,
    sink: &mut S,
) -> Result<Passed> {
    let policy = &loaded.policy;
    let memory: Arc<dyn Budget> = Arc::new(PoolBudget::new(&loaded.session, "noise"));
    let key = sink.noise_key(clusters)?;
    let mut held = Held::new(&memory);
    let (chosen, kept) = choose(policy, loaded.schema(), clusters, key, &mut held)?;

    run.progress.begin(Phase::Write, kept.total_rows());
    let rows = class_rows(&kept.rows);
    sink.take(run, RecodedRows { rows, policy, chosen: &chosen, kept: &kept, memory: &memory }).await?;

    run.progress.begin(Phase::Verify, 0);
    let again = again.await?;
    same_types(loaded.schema(), again.schema())?;
    let output = sink.taken(&again.session, &chosen)?;
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&again.session, "verification"));
    let judged = expected(policy, &again.policy, &chosen.shown, &budget)?;
    let (verified, unique) = judge(run, output, &again, judged, clusters.mechanism(), key).await?;
    let findings = Findings { unique, ..Findings::default() };
    Ok(Passed { chosen, costs: clusters.costs().to_vec(), utility: None, verified, findings })
}

/// Returns a warning that names the columns whose noise has a larger variance than their values.
///
/// # Errors
/// Those of [`Mechanism::least_k`].
pub(super) fn warning(recoding: &Recoding) -> Result<Option<String>> {
    let Recoding::Clusters(clusters) = recoding else { return Ok(None) };
    let (mechanism, rows) = (clusters.mechanism(), clusters.rows());
    let columns = mechanism.columns().iter().zip(clusters.noise_of_columns());
    let lost: Vec<&str> =
        columns.filter(|(_, noise)| **noise > 1.0).map(|(column, _)| column.name()).collect();
    if lost.is_empty() {
        return Ok(None);
    }
    let least_k = mechanism.least_k(rows, 0.1)?.filter(|least| *least > mechanism.k());
    let raise_k = least_k.map(|least| {
        format!(
            "raise k (from {} on, noise is at most a tenth of the range of a column, on average), ",
            grouped(least)
        )
    });
    Ok(Some(format!(
        "the noise of {} is larger than the differences between the rows: {}raise epsilon, set closer bounds, or release fewer columns",
        lost.join(", "),
        raise_k.unwrap_or_default()
    )))
}

/// Judges rows by themselves, and their means against the input.
///
/// # Errors
/// An unmet error that says what is wrong, a data error when it cannot be checked.
pub(super) async fn judge(
    run: &Run<'_>,
    output: DataFrame,
    again: &Loaded,
    expected: Expected<'_>,
    mechanism: &Mechanism,
    key: NoiseKey,
) -> Result<(Verified, UniqueTogether)> {
    let (session, policy) = (&again.session, &again.policy);
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "verification"));
    let means = NoisyMeans {
        output: output.clone(),
        input: again.table.clone(),
        mechanism,
        key,
        individual: policy.individual(),
    };
    let rows = means.verify(&budget, run.stop).await?;
    let alone = Expected { individual: None, suppression_limit: None, ..expected };
    let output = as_texts(output, &policy.written_columns())?;
    let verified = verify(session, output, None, &alone, run.stop).await?;
    if verified.rows != rows {
        return Err(Error::internal("noise: two counts of the released rows differ"));
    }
    // Each individual has one row.
    let individuals = IndividualCounts { all: rows, suppressed: 0, most_rows: 1, suppressed_unowned: 0 };
    let unique = UniqueTogether { count: verified.sizes.unique(), of: rows, columns: Vec::new() };
    let verified = Verified {
        suppressed_rows: Some(0),
        individuals: policy.individual().map(|_| individuals),
        reached_among_released: vec![None; verified.reached.len()],
        ..verified
    };
    Ok((verified, unique))
}

/// Draws the noise, and returns what the clusters show, in the order of the release.
fn choose(
    policy: &Policy,
    input: &Schema,
    clusters: &Clusters,
    key: NoiseKey,
    held: &mut Held,
) -> Result<(Chosen, KeptClasses)> {
    let (mechanism, rows) = (clusters.mechanism(), clusters.rows());
    let (count, width) =
        (usize::try_from(clusters.count()).map_err(Error::internal)?, mechanism.columns().len());
    // The noise, and the means as numbers and as texts, twice while they are put into order.
    const LONGEST_FLOAT: usize = 24;
    const OF_MEAN: usize = size_of::<i128>() + size_of::<f64>() + 2 * (size_of::<i32>() + LONGEST_FLOAT);
    held.at_least(count * (width * OF_MEAN + 2 * size_of::<u64>()))?;
    let noise = mechanism.draw(rows, &mut key.words())?;
    let (mut means, mut sizes) = (vec![Vec::with_capacity(count); width], Vec::with_capacity(count));
    for (shown, size) in clusters.noisy_means(&noise) {
        means.iter_mut().zip(shown).for_each(|(means, mean)| means.push(mean));
        sizes.push(size);
    }
    let means: Vec<ArrayRef> =
        means.into_iter().map(|means| Arc::new(Float64Array::from(means)) as ArrayRef).collect();
    let order = in_order(&means, count)?;
    let labels = means.iter().map(|means| {
        let means = take(means, &order, None).context("ordering the clusters")?;
        let texts = (0..means.len()).map(|row| Ok(Value::read(&means, row)?.text_form()));
        Ok(Arc::new(texts.collect::<Result<StringArray>>()?) as ArrayRef)
    });
    let labels = labels.collect::<Result<_>>()?;
    let sizes = order.values().iter().map(|place| sizes[*place as usize]).collect();
    let schema = Arc::new(released_schema(policy, input, &released_regions::fields(policy))?);
    let shown = Shown::Noise { mechanism: Arc::new(mechanism.clone()), rows, key };
    Ok((Chosen { shown, schema }, KeptClasses { labels, keys: ClassKeys::default(), rows: sizes }))
}

/// The rows of a batch.
const BATCH_ROWS: u64 = 8_192;

/// Streams one row for each member of each class: the number of the class, and the hash 0 because no other
/// column is released.
fn class_rows(sizes: &[u64]) -> SendableRecordBatchStream {
    let number = |name: &str| Field::new(name, DataType::UInt64, false);
    let schema: SchemaRef = Arc::new(Schema::new(vec![number("kanon_class"), number("kanon_hash")]));
    let mut left = (0u64..).zip(sizes.to_vec());
    let (mut open, of_batch) = (left.next(), Arc::clone(&schema));
    let batches = std::iter::from_fn(move || -> Option<EngineResult<RecordBatch>> {
        let mut classes = Vec::new();
        while let Some((class, rows)) = &mut open {
            let taken = (*rows).min(BATCH_ROWS - classes.len() as u64);
            classes.extend((0..taken).map(|_| *class));
            *rows -= taken;
            if *rows > 0 {
                break;
            }
            open = left.next();
        }
        if classes.is_empty() {
            return None;
        }
        let hashes: ArrayRef = Arc::new(UInt64Array::from(vec![0; classes.len()]));
        let classes: ArrayRef = Arc::new(UInt64Array::from(classes));
        Some(RecordBatch::try_new(Arc::clone(&of_batch), vec![classes, hashes]).map_err(Into::into))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches)))
}
