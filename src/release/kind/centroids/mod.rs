//! Releases whose classes show centroids, which are planned as those that show regions.

mod check;
mod text;
mod warnings;

pub(super) use check::check_columns;

use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;

use crate::engine::Run;
use crate::error::Result;
use crate::input::Loaded;
use crate::policy::Policy;
use crate::release::check_record::refused;
use crate::release::kind::measure::{Measured, Searched};
use crate::release::kind::recorded_table::RecordedTable;
use crate::release::kind::{Content, Folder, Judged, Kind, PlanInput, Records, ReleasePlan, regions};
use crate::release::publish::record::PublicRecord;

/// The row of this kind.
pub(super) struct Centroids;

#[async_trait]
impl Kind for Centroids {
    fn schemas(&self, policy: &Policy, input: &Schema) -> Result<Vec<SchemaRef>> {
        Ok(vec![regions::schema(policy, input)?])
    }

    fn measure(&self, searched: &Searched<'_>, with_utility: bool) -> Result<Measured> {
        regions::measured(searched, with_utility, "each class shows centroids")
    }

    async fn plan(&self, run: &Run, loaded: &Loaded, found: PlanInput<'_>) -> Result<ReleasePlan> {
        regions::plan(run, loaded, found, warnings::centroid_warnings)
    }

    async fn read(&self, policy: &Policy, input: &Schema, records: &Records<'_>) -> Result<Content> {
        regions::read(policy, input, records)
    }

    fn check_columns(&self, public: &PublicRecord) -> Result<()> {
        check_columns(public)
    }

    async fn judge_alone(&self, run: &Run, folder: &Folder<'_>) -> Result<(Judged, bool)> {
        if folder.public.recoding.kind().is_none() {
            return Err(refused("the record contradicts itself on the noise"));
        }
        let table = RecordedTable::open(run, folder)?;
        table.judge_texts(run).await
    }
}
