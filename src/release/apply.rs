//! Apply: the recoding as an ordinary plan, rows ordered by class and hash.
//!
//! ```text
//! rows -> labels by expressions -> inner join with the kept classes (NULL = NULL, small side left)
//!      -> class number, hash of the released row, columns as they are -> sort by the two integers
//! ```
//! The join drops the rows of failing classes and numbers the others in one pass. The labels do not travel
//! through the sort: the writer takes them from the kept classes by number.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::datasource::MemTable;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use datafusion::prelude::{DataFrame, SessionContext};

use super::chosen::{Chosen, KeptClasses};
use super::engine::{Doing, column};
use super::functions::{Evaluation, level, row_hash};
use crate::error::Result;
use crate::policy::Policy;

/// The column that numbers the class of a row.
pub const CLASS: &str = "kanon_class";
/// The column that holds the hash of the released row.
const HASH: &str = "kanon_hash";
/// Fixed: the order within a class is a function of the released rows alone.
const ORDER_KEY: [u64; 2] = [0x6b61_6e6f_6e2d_6f72, 0x6465_722d_6f66_2d72];

/// The released rows in order: the class number and the columns that are written as they are.
///
/// # Errors
/// A data error when the plan cannot be built.
pub fn apply(
    session: &SessionContext,
    table: DataFrame,
    policy: &Policy,
    chosen: &Chosen,
    kept: &KeptClasses,
) -> Result<DataFrame> {
    let doing = "planning the release";
    let released: Vec<Expr> = policy
        .released()
        .map(|(name, _)| match policy.quasi_index(name) {
            Some(index) => {
                let generalizer = Arc::clone(&chosen.generalizers[index]);
                level(generalizer, name, Evaluation::Columnar, column(name)).alias(label_name(index))
            }
            None => column(name).alias(as_is_name(name)),
        })
        .collect();
    let labelled = table.select(released).doing(doing)?;

    let classes = session.read_table(Arc::new(class_list(kept)?)).doing(doing)?;
    let keys = |prefix: fn(usize) -> String| -> Vec<Column> {
        (0..kept.labels.len()).map(|index| Column::from_name(prefix(index))).collect()
    };
    let (state, rows) = labelled.into_parts();
    let joined = LogicalPlanBuilder::from(classes.into_unoptimized_plan())
        .join_detailed(
            rows,
            JoinType::Inner,
            (keys(kept_name), keys(label_name)),
            None,
            NullEquality::NullEqualsNull,
        )
        .and_then(LogicalPlanBuilder::build)
        .doing(doing)?;
    let joined = DataFrame::new(state, joined);

    let hashed = policy.released().map(|(name, _)| match policy.quasi_index(name) {
        Some(index) => column(label_name(index)),
        None => column(as_is_name(name)),
    });
    let mut columns = vec![column(CLASS), row_hash(ORDER_KEY, hashed.collect()).alias(HASH)];
    let as_is = policy.released().filter(|(name, _)| policy.quasi_index(name).is_none());
    columns.extend(as_is.map(|(name, _)| column(as_is_name(name))));
    let numbered = joined.select(columns).doing(doing)?;
    numbered.sort(vec![column(CLASS).sort(true, true), column(HASH).sort(true, true)]).doing(doing)
}

/// The kept classes as a table with exact statistics: their number and their labels.
fn class_list(kept: &KeptClasses) -> Result<MemTable> {
    let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values((0u64..).take(kept.rows.len())));
    let mut fields = vec![Field::new(CLASS, DataType::UInt64, false)];
    let mut columns = vec![numbers];
    for (index, labels) in kept.labels.iter().enumerate() {
        fields.push(Field::new(kept_name(index), labels.data_type().clone(), true));
        columns.push(Arc::clone(labels));
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).doing("listing the kept classes")?;
    MemTable::try_new(schema, vec![vec![batch]]).doing("listing the kept classes")
}

fn kept_name(index: usize) -> String {
    format!("kanon_kept_{index}")
}

fn label_name(index: usize) -> String {
    format!("kanon_label_{index}")
}

fn as_is_name(name: &str) -> String {
    format!("kanon_as_is_{name}")
}
