//! The release of a method that makes groups: two tables, written, judged and recorded as one release.
//!
//! Rows are dealt to the groups by a hash under a random key (`deal.rs`). Both tables are plans over the
//! rows with their groups (`tables.rs`), and the verification reads them again (`check.rs` judges a folder).

pub(super) mod check;
mod deal;
mod tables;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::prelude::{DataFrame, SessionContext};

use crate::class::{Budget, Groups};
use crate::engine::{Context, PoolBudget, Run};
use crate::error::{Error, Result};
use crate::input::Loaded;
use crate::method::anatomy::COLUMNS;
use crate::model::{Requirement, values_needed};
use crate::policy::Policy;
use crate::progress::Phase;
use crate::release::check_files::{check_files, read_parts};
use crate::release::groups::tables::{Schemas, ordered_quasi, ordered_values};
use crate::release::pipeline::{Findings, Made};
use crate::release::publish::disk;
use crate::release::publish::make_record::{Secret, Tables};
use crate::release::publish::record::{
    FileRecord, GroupsRecord, RecodingRecord, TABLES_OF_GROUPS, TableRecord, models_text,
};
use crate::release::publish::write::{self, Part, Table, typed, write_table};
use crate::release::role_checks;
use crate::verify::as_is::UniqueTogether;
use crate::verify::groups::{DealingKey, GroupTables, VerifiedGroups};
use crate::verify::homogeneous::Homogeneous;
use crate::verify::{IndividualCounts, Verified, same_types};

/// Returns the metadata of the files' footers in each table. Classes of the quasi-identifiers satisfy no
/// model: the models are promised of the groups.
fn footers(models: &[Requirement]) -> [Vec<(String, String)>; 2] {
    [Vec::new(), write::footer(&models_text(models))]
}

/// Returns the sensitive column of a policy whose method makes groups.
pub(super) fn sensitive_column(policy: &Policy) -> Result<&str> {
    policy.sensitive().next().ok_or_else(|| Error::internal("groups: the policy has no sensitive column"))
}

/// Returns the quasi-identifiers of a policy in the order of the released columns.
pub(super) fn quasi_names(policy: &Policy) -> Vec<String> {
    let released = policy.released().map(|(name, _)| name);
    released.filter(|name| policy.quasi_index(name).is_some()).map(str::to_owned).collect()
}

/// Returns the record of the groups of a policy whose method makes them.
pub(super) fn groups_record(policy: &Policy) -> Result<GroupsRecord> {
    Ok(GroupsRecord {
        columns: quasi_names(policy),
        sensitive: sensitive_column(policy)?.to_owned(),
        l: values_needed(&policy.requirements),
    })
}

/// Returns both tables as a verification judges them, which were written and are recorded so.
fn group_tables<'a>(
    [quasi, values]: [DataFrame; 2],
    record: &'a GroupsRecord,
    requirements: &'a [Requirement],
    individual: Option<&'a str>,
) -> GroupTables<'a> {
    GroupTables {
        quasi,
        values,
        names: &record.columns,
        sensitive: &record.sensitive,
        own: COLUMNS,
        individual,
        requirements,
        l: record.l,
    }
}

/// Deals the rows to the groups under a key, writes both tables below `folder`, and verifies them against the
/// input, which is read `again` by the second way of reading it.
///
/// # Errors
/// Any failure of writing or verifying; the caller must then discard what was written.
pub(super) async fn release(
    run: &Run<'_>,
    loaded: &Loaded,
    groups: Arc<Groups>,
    key: DealingKey,
    again: impl Future<Output = Result<Loaded>>,
    folder: PathBuf,
) -> Result<Made> {
    let policy = &loaded.policy;
    let record = groups_record(policy)?;
    let GroupsRecord { columns: quasi, sensitive, .. } = &record;
    let schemas = Schemas::of(policy, loaded.schema())?;
    let memory: Arc<dyn Budget> = Arc::new(PoolBudget::new(&loaded.session, "groups"));
    run.progress.begin(Phase::Write, groups.sizes().iter().sum());
    let dealt = deal::deal(run, loaded, &groups, sensitive, quasi, key, &memory).await?;
    drop(groups);
    let plans = [ordered_quasi(dealt.clone(), quasi)?, ordered_values(dealt, sensitive)?];
    let footers = footers(&policy.requirements);
    let mut tables = Vec::new();
    for (((plan, schema), footer), name) in
        plans.into_iter().zip(&schemas.0).zip(&footers).zip(TABLES_OF_GROUPS)
    {
        let folder = folder.join(name);
        disk::create_folder(&folder).context("writing the release")?;
        let rows = plan.execute_stream().await.context("planning the release")?;
        let written = |batch: &RecordBatch| typed(batch.columns().iter().skip(2).cloned().collect(), schema);
        let table = Table { folder: &folder, schema, footer, memory: &memory };
        // The second table has as many rows at most, and takes less time for each.
        let done = |rows| {
            if tables.is_empty() {
                run.progress.done(rows);
            }
        };
        let parts = write_table(rows, &table, &written, run.stop, &done).await?;
        disk::sync_folder(&folder).context("writing the release")?;
        check_files(&folder, &parts, schema, footer, write::CREATED_BY)?;
        tables.push((folder, parts));
    }

    run.progress.begin(Phase::Verify, 0);
    let again = again.await?;
    same_types(loaded.schema(), again.schema())?;
    let read = |(folder, parts): &(PathBuf, Vec<Part>)| read_parts(&again.session, folder, parts);
    let written = tables.iter().map(read).collect::<Result<Vec<_>>>()?;
    let written = written.try_into().map_err(|_| Error::internal("groups: a release has two tables"))?;
    let judged = group_tables(written, &record, &policy.requirements, policy.individual());
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&again.session, "verification"));
    let found = judged.verify(Some((again.table.clone(), key)), &budget, run.stop).await?;
    role_checks::check_released_groups(run, &again, found.rows).await?;
    let groups = found.groups;
    let (verified, unique) = verified(&judged, found, policy.individual().is_some(), true);
    let records = tables.iter().zip(&schemas.0).zip(TABLES_OF_GROUPS);
    let records = records.map(|(((folder, parts), schema), name)| {
        Ok(TableRecord {
            folder: Some(name.to_owned()),
            columns: tables::columns(policy, schema)?,
            rows: parts.iter().map(|part| part.rows).sum(),
            files: FileRecord::all(folder, parts)?,
        })
    });
    let costs = vec![0.0; quasi.len()];
    let chosen = RecodingRecord::Groups(record);
    let tables =
        Tables { recoding: chosen.clone(), tables: records.collect::<Result<_>>()?, classes: groups };
    let findings = Findings { unique, ..Findings::default() };
    Ok(Made { tables, verified, findings, secret: Secret::DealingKey(key), costs, chosen, utility: None })
}

/// Returns the counts of groups that passed.
fn verified(
    tables: &GroupTables<'_>,
    found: VerifiedGroups,
    counts_individuals: bool,
    with_input: bool,
) -> (Verified, UniqueTogether) {
    let unique = UniqueTogether { count: found.sizes.unique(), of: found.rows, columns: Vec::new() };
    // No group shares a value, because none has more than half of its rows.
    let homogeneous = vec![Homogeneous { column: tables.sensitive.to_owned(), ..Homogeneous::default() }];
    let individuals =
        IndividualCounts { all: found.rows, suppressed: 0, most_rows: 1, suppressed_unowned: 0 };
    let verified = Verified {
        rows: found.rows,
        sizes: found.sizes,
        homogeneous,
        suppressed_rows: with_input.then_some(0),
        individuals: (counts_individuals && with_input).then_some(individuals),
        unowned_rows: 0,
        reached_among_released: vec![None; found.reached.len()],
        reached: found.reached,
    };
    (verified, unique)
}

/// Returns the rows of both tables of a release at `out`.
///
/// # Errors
/// A data error when a file cannot be read.
fn read_tables(session: &SessionContext, out: &Path, tables: &[TableRecord]) -> Result<Vec<DataFrame>> {
    tables.iter().map(|table| read_parts(session, &table.path(out), &table.parts())).collect()
}

#[cfg(test)]
mod groups_tests;
