//! Releases of a method that adds noise: the clusters' means with noise.
//!
//! No row of the input is written: each row of a cluster shows its means, and only the number of rows comes
//! from the input. Noise is drawn by a random key, which the private record holds, so two releases of one input
//! are not the same bytes. `Centroid::NoisyMean` is a centroid for the schema, the record and the readers of a
//! release, for which only the `noise` of a column differs.

mod check;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, StringArray, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::error::Result as EngineResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::DataFrame;

use crate::class::{Budget, Held};
use crate::engine::{Context, PoolBudget, Run};
use crate::error::{Error, Result};
use crate::generalize::{Centroid, Value};
use crate::input::Loaded;
use crate::method::Recoding;
use crate::method::microaggregation::dp_centroids::Clusters;
use crate::noise::Mechanism;
use crate::plural::{grouped, percent};
use crate::policy::Policy;
use crate::progress::Phase;
use crate::release::apply::ClassKeys;
use crate::release::kind::classes::{KeptClasses, as_shown, content, expected, labelled, order_of_labels};
use crate::release::kind::measure::{Measured, RecodingParts, Searched};
use crate::release::kind::ordered_rows::ordered_rows;
use crate::release::kind::recorded_table::RecordedTable;
use crate::release::kind::{
    Content, Extent, Folder, Judge, Judged, Kind, PlanInput, Records, ReleasePlan, Secret, TableRows,
    centroids, key_of_record, only_table, regions, wrong_recoding,
};
use crate::release::publish::record::{CentroidColumn, NoiseRecord, PublicRecord, RecodingRecord};
use crate::release::written_columns::as_texts;
use crate::verify::as_is::UniqueTogether;
use crate::verify::noise::{NoiseKey, NoisyMeans, check_shown};
use crate::verify::sufficient::Sufficient;
use crate::verify::{Expected, IndividualCounts, Verified, verify};

/// The row of this kind.
pub(super) struct Noise;

#[async_trait]
impl Kind for Noise {
    fn schemas(&self, policy: &Policy, input: &Schema) -> Result<Vec<SchemaRef>> {
        Ok(vec![regions::schema(policy, input)?])
    }

    fn measure(&self, searched: &Searched<'_>, _: bool) -> Result<Measured> {
        let &Searched { policy, found, .. } = searched;
        let Recoding::Clusters(clusters) = &found.recoding else { return Err(wrong_recoding()) };
        let error = clusters.mean_squared_error();
        let of_variance = if error >= 10.0 { "more than 1,000 %".to_owned() } else { percent(error) };
        Ok(Measured {
            text: format!(
                "each cluster shows means with noise (squared error of numbers {of_variance} of their variance, noise included)"
            ),
            parts: RecodingParts { clusters: Some(clusters.count()), ..RecodingParts::default() },
            losses: vec![(policy.spec.objective.doc().name, found.loss), ("squared_error_with_noise", error)],
            utility: None,
        })
    }

    async fn plan(&self, run: &Run, loaded: &Loaded, found: PlanInput<'_>) -> Result<ReleasePlan> {
        let PlanInput { recoding: Recoding::Clusters(clusters), classes, extent, noise_key } = found else {
            return Err(wrong_recoding());
        };
        drop(classes);
        let policy = &loaded.policy;
        let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&loaded.session, "noise"));
        let key = noise_key(&clusters)?;
        let mut held = Held::new(&budget);
        let kept = label_kept(&clusters, key, &mut held)?;
        run.progress.begin(Phase::Write, kept.total_rows());
        let schema = regions::schema(policy, loaded.schema())?;
        let label = labelled(policy, &schema, &kept)?;
        let content = content_of(policy, schema, clusters.mechanism().clone(), clusters.rows(), key)?;
        let rows: TableRows =
            Box::pin(async move { Ok(ordered_rows(class_rows(&kept.rows), Vec::new(), label)) });
        let warning = (extent > Extent::Verdict).then(|| warning(&clusters)).transpose()?.flatten();
        let warnings = warning.into_iter().collect();
        Ok(ReleasePlan {
            content,
            rows: vec![rows],
            secret: Secret { noise_key: Some(key), ..Secret::default() },
            costs: clusters.costs().to_vec(),
            utility: None,
            remarks: Vec::new(),
            warnings,
            budget,
            held,
        })
    }

    async fn read(&self, policy: &Policy, input: &Schema, records: &Records<'_>) -> Result<Content> {
        let mechanism =
            policy.mechanism()?.ok_or_else(|| Error::internal("noise: a policy without noise"))?;
        let key = records.private.and_then(|private| private.noise_key.as_deref()).ok_or_else(|| {
            Error::policy(
                "this release shows means with noise: to compare it with the input, its private record is needed, whose key tells the \
                 noise; it is missing, damaged or belongs to another release",
            )
        })?;
        let (schema, rows) = (regions::schema(policy, input)?, records.public.rows());
        content_of(policy, schema, mechanism, rows, NoiseKey(key_of_record(key)?))
    }

    fn check_columns(&self, public: &PublicRecord) -> Result<()> {
        centroids::check_columns(public)
    }

    async fn judge_alone(&self, run: &Run, folder: &Folder<'_>) -> Result<(Judged, bool)> {
        let mechanism = check::mechanism_of(folder.public, folder.models)?;
        let table = RecordedTable::open(run, folder)?;
        check_shown(&table.written, &mechanism, &run.stop).await?;
        table.judge_texts(run).await
    }
}

fn content_of(
    policy: &Policy,
    schema: SchemaRef,
    mechanism: Mechanism,
    rows: u64,
    key: NoiseKey,
) -> Result<Content> {
    let noise = NoiseRecord::all(&mechanism, rows)?;
    let columns = policy.released_quasi().map(|at| CentroidColumn {
        // The type of a CSV column follows from its values, and what is public must not.
        value_type: DataType::Float64.to_string(),
        noise: noise.get(at).cloned(),
        ..CentroidColumn::of(&policy.quasi[at], Centroid::NoisyMean)
    });
    let recoding = RecodingRecord::Centroids(columns.collect());
    content(policy, schema, recoding, Box::new(NoiseJudge { mechanism, key }))
}

/// Judges rows by themselves, and their means against the input.
struct NoiseJudge {
    mechanism: Mechanism,
    key: NoiseKey,
}

#[async_trait]
impl Judge for NoiseJudge {
    async fn judge(&self, run: &Run, again: &Loaded, written: Vec<DataFrame>, _: Extent) -> Result<Judged> {
        let (session, policy) = (&again.session, &again.policy);
        let output = only_table(written)?;
        let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "verification"));
        let means = NoisyMeans {
            output: output.clone(),
            input: again.table.clone(),
            mechanism: &self.mechanism,
            key: self.key,
            individual: policy.individual(),
        };
        let rows = means.verify(&budget, &run.stop).await?;
        let expected = expected(policy, &as_shown(policy))?;
        let alone = Expected { individual: None, suppression_limit: None, ..expected };
        let output = as_texts(output, &policy.written_columns())?;
        let verified = verify(session, output, None, &alone, &run.stop).await?;
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
        let classes = verified.sizes.classes();
        Ok(Judged { verified, classes, unique, sufficient: Sufficient::default(), as_is: Vec::new() })
    }
}

/// Returns a warning that names the columns whose noise has a larger variance than their values.
///
/// # Errors
/// Those of [`Mechanism::least_k`].
fn warning(clusters: &Clusters) -> Result<Option<String>> {
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

/// Draws the noise, and returns what the clusters show, in the order of the release.
fn label_kept(clusters: &Clusters, key: NoiseKey, held: &mut Held) -> Result<KeptClasses> {
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
    let order = order_of_labels(&means, count)?;
    let labels = means.iter().map(|means| {
        let means = take(means, &order, None).context("ordering the clusters")?;
        let texts = (0..means.len()).map(|row| Ok(Value::read(&means, row)?.text_form()));
        Ok(Arc::new(texts.collect::<Result<StringArray>>()?) as ArrayRef)
    });
    let labels = labels.collect::<Result<_>>()?;
    let sizes = order.values().iter().map(|place| sizes[*place as usize]).collect();
    Ok(KeptClasses { labels, keys: ClassKeys::default(), rows: sizes })
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
