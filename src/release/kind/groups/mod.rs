//! Releases of a method that makes groups: two tables, the quasi-identifiers of rows as they are and the sensitive values of
//! groups.
//!
//! Rows are dealt to the groups by a hash under a random key (`deal.rs`). Both tables are plans over the
//! rows with their groups (`tables.rs`), and the verification reads them again (`alone.rs` judges a folder without its input).
//!
//! The key is random, so two releases of one input are not the same bytes; under one key they are. The private
//! record holds the key and no assignment: the table of sensitive values and the key say where every row of the
//! input belongs.
//!
//! Risks in the record are those of exact quasi-identifiers, because presence is not protected. The bound on
//! the sensitive values (`l`) is a part of the recoding, beside the models: it is stronger than distinct
//! l-diversity, and is judged by itself. Insensitive columns are left out: beside exact quasi-identifiers they
//! would be published for every individual.

mod alone;
mod deal;
mod tables;
mod text;

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::prelude::DataFrame;

use crate::class::{Budget, EvaluatedNode, Groups as FoundGroups, Held};
use crate::engine::functions::random_key;
use crate::engine::{Context, PoolBudget, Run};
use crate::error::{Error, Result};
use crate::input::Loaded;
use crate::measure::utility::Utility;
use crate::method::Recoding;
use crate::method::anatomy::COLUMNS;
use crate::model::{Requirement, values_needed};
use crate::policy::Policy;
use crate::progress::Phase;
use crate::release::kind::groups::tables::{columns, ordered_quasi, ordered_values, schemas};
use crate::release::kind::measure::{Measured, RecodingParts, Searched, losses_of_node};
use crate::release::kind::ordered_rows::{ordered_rows, typed};
use crate::release::kind::{
    Content, Extent, Folder, Judge, Judged, Kind, PlanInput, Records, ReleasePlan, Secret, TablePlan,
    TableRows, key_of_record, wrong_recoding,
};
use crate::release::publish::record::{FOLDERS, GroupsRecord, PublicRecord, RecodingRecord};
use crate::release::role_checks;
use crate::verify::as_is::UniqueTogether;
use crate::verify::groups::{DealingKey, GroupTables, VerifiedGroups};
use crate::verify::homogeneous::Homogeneous;
use crate::verify::sufficient::Sufficient;
use crate::verify::{IndividualCounts, Verified};

/// The row of this kind.
pub(super) struct Groups;

#[async_trait]
impl Kind for Groups {
    fn schemas(&self, policy: &Policy, input: &Schema) -> Result<Vec<SchemaRef>> {
        Ok(schemas(policy, input)?.into())
    }

    fn measure(&self, searched: &Searched<'_>, with_utility: bool) -> Result<Measured> {
        let &Searched { policy, classes, found } = searched;
        let Recoding::Groups(groups) = &found.recoding else { return Err(wrong_recoding()) };
        let levels = vec![0; classes.columns().len()];
        let node = EvaluatedNode::new(classes, &levels, classes.base(), &[])?;
        let error = groups.reconstruction_error();
        Ok(Measured {
            text: format!(
                "two tables: quasi-identifiers as they are, sensitive values by group (reconstruction error {error:.3})"
            ),
            parts: RecodingParts { groups: Some(groups.sizes().len()), ..RecodingParts::default() },
            losses: losses_of_node(policy, &node).chain([("reconstruction_error", error)]).collect(),
            utility: with_utility.then(|| Utility::of_node(&node)).transpose()?,
        })
    }

    async fn plan(&self, run: &Run, loaded: &Loaded, found: PlanInput<'_>) -> Result<ReleasePlan> {
        let PlanInput { recoding: Recoding::Groups(groups), classes, .. } = found else {
            return Err(wrong_recoding());
        };
        drop(classes);
        plan_dealt(run, loaded, groups, DealingKey(random_key()?)).await
    }

    async fn read(&self, policy: &Policy, input: &Schema, records: &Records<'_>) -> Result<Content> {
        let key = records.private.and_then(|private| private.dealing_key.as_deref()).ok_or_else(|| {
            Error::policy(
                "this release shows the rows of groups: to compare it with the input, its private record is needed, whose key tells which \
                 row went to which group; it is missing, damaged or belongs to another release",
            )
        })?;
        content_of(policy, input, DealingKey(key_of_record(key)?))
    }

    fn check_columns(&self, _: &PublicRecord) -> Result<()> {
        Ok(())
    }

    fn check_record(&self, folder: &Folder<'_>) -> Result<()> {
        alone::check_record(folder)
    }

    async fn judge_alone(&self, run: &Run, folder: &Folder<'_>) -> Result<(Judged, bool)> {
        alone::judge_alone(run, folder).await
    }
}

/// Plans the release of groups whose rows are dealt under a key.
async fn plan_dealt(
    run: &Run,
    loaded: &Loaded,
    groups: Arc<FoundGroups>,
    key: DealingKey,
) -> Result<ReleasePlan> {
    let policy = &loaded.policy;
    let content = content_of(policy, loaded.schema(), key)?;
    let (quasi, sensitive) = (quasi_names(policy), sensitive_column(policy)?);
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&loaded.session, "groups"));
    run.progress.begin(Phase::Write, groups.sizes().iter().sum());
    let dealt = deal::deal(run, loaded, &groups, sensitive, &quasi, key, &budget).await?;
    drop(groups);
    let plans = [ordered_quasi(dealt.clone(), &quasi)?, ordered_values(dealt, sensitive)?];
    let rows = plans.into_iter().zip(&content.tables).map(|(plan, table)| -> TableRows {
        let schema = Arc::clone(&table.schema);
        let written =
            move |batch: &RecordBatch| typed(batch.columns().iter().skip(2).cloned().collect(), &schema);
        Box::pin(async move {
            let rows = plan.execute_stream().await.context("planning the release")?;
            Ok(ordered_rows(rows, Vec::new(), written))
        })
    });
    Ok(ReleasePlan {
        rows: rows.collect(),
        content,
        secret: Secret { dealing_key: Some(key), ..Secret::default() },
        costs: vec![0.0; quasi.len()],
        utility: None,
        remarks: Vec::new(),
        warnings: Vec::new(),
        held: Held::new(&budget),
        budget,
    })
}

/// Returns what the tables show. Classes of the quasi-identifiers satisfy no model: the models are promised of the groups.
fn content_of(policy: &Policy, input: &Schema, key: DealingKey) -> Result<Content> {
    let record = groups_record(policy)?;
    let tables = schemas(policy, input)?.into_iter().zip(FOLDERS).zip([false, true]);
    let tables = tables.map(|((schema, folder), names_models)| {
        let columns = columns(policy, &schema)?;
        let ordered_by = vec![COLUMNS[0].to_owned()];
        Ok(TablePlan {
            folder: Some(folder),
            columns,
            partition_by: Vec::new(),
            ordered_by,
            names_models,
            schema,
        })
    });
    Ok(Content {
        tables: tables.collect::<Result<_>>()?,
        recoding: RecodingRecord::Groups(record.clone()),
        judge: Box::new(GroupsJudge { record, key }),
    })
}

/// Judges both tables, and the dealing against the input.
struct GroupsJudge {
    record: GroupsRecord,
    key: DealingKey,
}

#[async_trait]
impl Judge for GroupsJudge {
    async fn judge(&self, run: &Run, again: &Loaded, written: Vec<DataFrame>, _: Extent) -> Result<Judged> {
        let policy = &again.policy;
        let tables = group_tables(written, &self.record, &policy.requirements, policy.individual())?;
        let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&again.session, "verification"));
        let found = tables.verify(Some((again.table.clone(), self.key)), &budget, &run.stop).await?;
        role_checks::check_released_groups(run, again, found.rows).await?;
        Ok(judged(&tables, found, policy.individual().is_some(), true))
    }
}

/// Returns the sensitive column of a policy whose method makes groups.
fn sensitive_column(policy: &Policy) -> Result<&str> {
    policy.sensitive().next().ok_or_else(|| Error::internal("groups: the policy has no sensitive column"))
}

/// Returns the quasi-identifiers of a policy in the order of the released columns.
fn quasi_names(policy: &Policy) -> Vec<String> {
    policy.released_quasi().map(|at| policy.quasi[at].name.clone()).collect()
}

/// Returns the record of the groups of a policy whose method makes them.
fn groups_record(policy: &Policy) -> Result<GroupsRecord> {
    Ok(GroupsRecord {
        columns: quasi_names(policy),
        sensitive: sensitive_column(policy)?.to_owned(),
        l: values_needed(&policy.requirements),
    })
}

/// Returns both tables as a verification judges them, which were written and are recorded so.
///
/// # Errors
/// An internal error for other than two tables.
fn group_tables<'a>(
    written: Vec<DataFrame>,
    record: &'a GroupsRecord,
    requirements: &'a [Requirement],
    individual: Option<&'a str>,
) -> Result<GroupTables<'a>> {
    let [quasi, values] = <[DataFrame; 2]>::try_from(written)
        .map_err(|_| Error::internal("groups: a release has two tables"))?;
    Ok(GroupTables {
        quasi,
        values,
        names: &record.columns,
        sensitive: &record.sensitive,
        own: COLUMNS,
        individual,
        requirements,
        l: record.l,
    })
}

/// Returns the counts of groups that passed.
fn judged(
    tables: &GroupTables<'_>,
    found: VerifiedGroups,
    counts_individuals: bool,
    with_input: bool,
) -> Judged {
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
    Judged { verified, classes: found.groups, unique, sufficient: Sufficient::default(), as_is: Vec::new() }
}

#[cfg(test)]
mod groups_tests;
