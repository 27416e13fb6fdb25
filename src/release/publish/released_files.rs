//! The files of a release as the sink of a run: a folder of numbered Parquet files.

use std::path::PathBuf;

use datafusion::prelude::{DataFrame, SessionContext};

use super::digest;
use super::record::models_text;
use super::write::{self, Part};
use crate::engine::Run;
use crate::error::Result;
use crate::method::microaggregation::dp_centroids::Clusters;
use crate::model::Requirement;
use crate::release::check_files::{check_files, read_parts};
use crate::release::released_recoding::Chosen;
use crate::release::sink::{RecodedRows, Sink};
use crate::verify::noise::NoiseKey;

/// The files of a release.
pub(crate) struct ReleasedFiles {
    folder: PathBuf,
    /// The metadata of each file's footer.
    footer: Vec<(String, String)>,
    parts: Vec<Part>,
}

impl ReleasedFiles {
    /// Takes rows into this folder, of a release that these models are required of.
    pub(crate) fn new(folder: PathBuf, models: &[Requirement]) -> Self {
        Self { folder, footer: write::footer(&models_text(models)), parts: Vec::new() }
    }

    /// Returns the written files.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }
}

impl Sink for ReleasedFiles {
    const IS_RECORDED: bool = true;

    fn noise_key(&self, _clusters: &Clusters) -> Result<NoiseKey> {
        Ok(NoiseKey(digest::random_key()?))
    }

    async fn take(&mut self, run: &Run<'_>, recoded: RecodedRows<'_>) -> Result<()> {
        let done = |rows| run.progress.done(rows);
        self.parts = write::write(recoded, &self.footer, &self.folder, run.stop, &done).await?;
        Ok(())
    }

    fn taken(&self, session: &SessionContext, chosen: &Chosen) -> Result<DataFrame> {
        check_files(&self.folder, &self.parts, &chosen.schema, &self.footer, write::CREATED_BY)?;
        read_parts(session, &self.folder, &self.parts)
    }
}
