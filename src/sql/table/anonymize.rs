//! `anonymize(table, policy)`: returns the rows that a release of the table would have.
//!
//! The rows that leave must be the rows that were counted. A plan that runs twice would count one set of rows
//! and give another where the input changed in between, so the rows of the last sort go to the spill file, the
//! verification reads that file and the input anew, and then the file is streamed. The table is checked when
//! the query is planned; the verification refuses rows that differ all the same.
//!
//! # Contract
//! The policy is read when the query is planned; its digest stands in the plan. When the query
//! runs, the table is profiled, searched, recoded and verified by the pipeline of `kanon release`;
//! no row is returned before all rows were counted again, and until then the rows lie in the
//! engine's spill file. Everything that a release refuses is refused here. The columns are those of
//! a release, in its order of rows; the chosen levels are not returned. The table must give the
//! same rows each time it is read: LIMIT, windows and volatile functions in it are refused.
//!
//! A method that adds noise draws it once for each call that is planned: a view, a prepared statement or a WITH
//! that is read several times shows the same means, and is refused once the table has changed. Two calls in a
//! text are two releases, whose epsilons add up.
//!
//! The guarantee covers the **complete** result only. A part of it (WHERE, LIMIT, a join) is not
//! k-anonymous in itself, and no record is written: publish with `kanon release`.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::DataFrame;
use futures::StreamExt;

use super::TableFunctionRow;
use super::arguments::Arguments;
use super::policy::{BoundPolicy, TableAndPolicy, not_repeatable, table_and_policy};
use super::task::{Inputs, Rows, Task, plan_of};
use crate::doc::Doc;
use crate::engine::replay_table::table_of_plan;
use crate::engine::{Context, Resources, Rules, counting_rules};
use crate::error::Error;
use crate::input::Loaded;
use crate::release::profile::by_values;
use crate::release::verified_rows::{self, NoiseOfCall};
use crate::sql::repeatable::is_repeatable;

/// The row of [`TABLE_FUNCTIONS`](super::TABLE_FUNCTIONS) for this function.
pub const ROW: TableFunctionRow = TableFunctionRow { doc: DOC, plan };

const DOC: &Doc = &Doc {
    name: "anonymize",
    summary: "the whole table as `kanon release` would publish it under a policy, verified before its first \
         row",
    parameters: "table, policy",
    example: "SELECT * FROM anonymize(visits, 'visits.toml')",
    paper: None,
};

fn plan(mut call: Arguments<'_>) -> Result<LogicalPlan> {
    let TableAndPolicy { followed, table, plain_table } = table_and_policy(&mut call)?;
    call.finish(&[])?;
    if !is_repeatable(table.logical_plan())? {
        return Err(not_repeatable(&call));
    }
    let wrong = |error| call.wrong(error);
    let schema = verified_rows::schema(&followed.policy, table.schema().as_arrow()).map_err(wrong)?;
    let profile = by_values(table.clone(), &followed.policy).map_err(wrong)?;
    let inputs = [profile, table, plain_table].map(DataFrame::into_unoptimized_plan).to_vec();
    let noise = NoiseOfCall::new().map_err(wrong)?;
    plan_of(Arc::new(Anonymize { followed, noise }), inputs, schema)
}

#[derive(Debug)]
struct Anonymize {
    followed: BoundPolicy,
    noise: NoiseOfCall,
}

#[async_trait]
impl Task for Anonymize {
    fn name(&self) -> &'static str {
        DOC.name
    }

    fn says(&self) -> String {
        self.followed.says()
    }

    async fn run(&self, inputs: &Inputs, rows: &Rows) -> crate::error::Result<()> {
        let resources = Resources::of_task(&inputs.context);
        let run = self.followed.run(&resources, &inputs.stop);
        let session = resources.session_of(inputs.context.runtime_env(), counting_rules());
        let (policy, classes) = self.followed.classes(inputs, &session, &run).await?;
        let [_, table, plain_table] = inputs.plans.as_slice() else {
            return Err(Error::internal("anonymize: the plan does not have three inputs"));
        };
        let table = table_of_plan(&session, Arc::clone(table), Arc::clone(&inputs.context))?;
        let verifying = resources.session_of(inputs.context.runtime_env(), Rules::new());
        let plain_table = table_of_plan(&verifying, Arc::clone(plain_table), Arc::clone(&inputs.context))?;
        let again =
            Loaded { session: verifying, table: plain_table, policy: Arc::clone(&policy), population: None };
        let loaded = Loaded { session, table, policy, population: None };
        let verified = verified_rows::anonymize(&run, &loaded, again, classes, &self.noise).await?;
        let mut batches = verified.read(&inputs.stop)?;
        while let Some(batch) = batches.next().await {
            rows.send(batch.context("reading the anonymized rows")?).await?;
        }
        Ok(())
    }
}
