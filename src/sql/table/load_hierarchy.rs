//! `load_hierarchy('name', table)`: loads the rows of a table as a hierarchy that `generalize` and
//! policies can name.
//!
//! # Contract
//! The columns of the table in order are the value and its labels, finest first, whatever their
//! names; a table of exactly the columns `value`, `level` and `label` has a row for each value and
//! level instead. NULLs, repeated values and labels that do not form a tree are refused. The hierarchy is
//! loaded when the query runs, not for EXPLAIN, and is available to queries planned afterwards; it
//! replaces a hierarchy of the same name. The result is one row: `name`, `levels` (including level
//! 0, the value) and `values`.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::collect;

use super::TableFunctionRow;
use super::arguments::Arguments;
use super::task::{Inputs, Rows, Task, plan_of};
use crate::doc::Doc;
use crate::engine::Context;
use crate::generalize::hierarchy::table_of_batches;
use crate::sql::hierarchies::Hierarchies;

/// The row of [`TABLE_FUNCTIONS`](super::TABLE_FUNCTIONS) for this function.
pub const ROW: TableFunctionRow = TableFunctionRow { doc: DOC, plan };

const DOC: &Doc = &Doc {
    name: "load_hierarchy",
    summary: "loads a table as a hierarchy for generalize() and policies",
    parameters: "name, table",
    example: "SELECT * FROM load_hierarchy('marital', (SELECT status, was_married FROM statuses))",
    paper: None,
};

fn plan(mut call: Arguments<'_>) -> Result<LogicalPlan> {
    let name = call.text("a name in quotes")?;
    let table = call.table()?;
    call.finish(&[])?;
    let task = Load { name, hierarchies: call.hierarchies().clone() };
    plan_of(Arc::new(task), vec![table], schema())
}

fn schema() -> SchemaRef {
    let count = |name: &str| Field::new(name, DataType::UInt64, false);
    Arc::new(Schema::new(vec![Field::new("name", DataType::Utf8, false), count("levels"), count("values")]))
}

#[derive(Debug)]
struct Load {
    name: String,
    hierarchies: Hierarchies,
}

#[async_trait]
impl Task for Load {
    fn name(&self) -> &'static str {
        DOC.name
    }

    fn says(&self) -> String {
        format!("`{}`", self.name)
    }

    async fn run(&self, inputs: &Inputs, rows: &Rows) -> crate::error::Result<()> {
        let doing = "reading the hierarchy";
        let mut batches = Vec::new();
        for plan in &inputs.plans {
            batches.extend(collect(Arc::clone(plan), Arc::clone(&inputs.context)).await.context(doing)?);
        }
        let place = || format!("hierarchy `{}`", self.name);
        let table = table_of_batches(&batches).map_err(|error| error.at(place()))?;
        let values = table.rows().len() as u64;
        self.hierarchies.load(&self.name, table)?;
        let levels = self.hierarchies.get(&self.name)?.hierarchy.levels().len() as u64;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(vec![self.name.as_str()])),
            Arc::new(UInt64Array::from(vec![levels])),
            Arc::new(UInt64Array::from(vec![values])),
        ];
        rows.send(RecordBatch::try_new(schema(), columns).context(doing)?).await
    }
}
