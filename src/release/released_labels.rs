//! Reads the labels that a release holds.

use arrow::array::{Array, ArrayRef};
use arrow::compute::concat;
use datafusion::prelude::DataFrame;

use crate::engine::{Context, column};
use crate::error::Result;

/// Returns the distinct values of a released column; `None` for a release without rows.
pub(crate) async fn released_labels(output: &DataFrame, name: &str) -> Result<Option<ArrayRef>> {
    let doing = "reading the released labels";
    let labels = output.clone().select(vec![column(name)]).context(doing)?;
    let labels = labels.distinct().context(doing)?.collect().await.context(doing)?;
    let labels: Vec<&dyn Array> = labels.iter().map(|batch| &**batch.column(0)).collect();
    if labels.is_empty() { Ok(None) } else { concat(&labels).context(doing).map(Some) }
}
