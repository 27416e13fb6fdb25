//! Table functions: `SELECT * FROM classes(visits, 'age', 'zip')`.
//!
//! Each file and each row of [`TABLE_FUNCTIONS`] is one function. The functions are planned with
//! the SQL around them, so that their arguments can be a table's name, a CTE, a subquery or another
//! table function; a text is a file name where `kanon.allow_files` allows it. A table function of
//! the session with the same name takes precedence. `classes`, `risk` and `link` become ordinary
//! plans; `lattice` and `anonymize` become one operator that searches when it is executed, never
//! for EXPLAIN.

mod arguments;
mod distinct_counts;
mod policy;
mod task;

pub mod anonymize;
pub mod classes;
pub mod lattice;
pub mod link;
pub mod load_hierarchy;
pub mod risk;

use std::sync::Arc;

use datafusion::catalog::CatalogProviderList;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::sql::sqlparser::ast::TableFactor;

use super::hierarchies::Hierarchies;
use crate::doc::Doc;
use arguments::Arguments;
pub(super) use task::is_task;

/// A row of [`TABLE_FUNCTIONS`].
pub struct TableFunctionRow {
    /// Name and documentation; the parameters hold the whole argument list.
    pub doc: &'static Doc,
    /// Plans a call.
    plan: fn(Arguments<'_>) -> Result<LogicalPlan>,
}

/// All table functions.
pub const TABLE_FUNCTIONS: &[TableFunctionRow] =
    &[anonymize::ROW, classes::ROW, lattice::ROW, link::ROW, load_hierarchy::ROW, risk::ROW];

/// The planner's name in a session's list.
const SHOWN: &str = "kanon::TableFunctions";

/// Plans the calls of table functions.
pub(super) struct TableFunctions {
    /// The catalogs in which table names are looked up.
    pub(super) catalogs: Arc<dyn CatalogProviderList>,
    /// The session's hierarchies.
    pub(super) hierarchies: Hierarchies,
    /// Returns whether the session has its own table function with this name.
    pub(super) is_taken: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

impl std::fmt::Debug for TableFunctions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(SHOWN)
    }
}

/// Returns whether a planner is a [`TableFunctions`].
pub(super) fn is_ours(planner: &Arc<dyn RelationPlanner>) -> bool {
    format!("{planner:?}") == SHOWN
}

impl RelationPlanner for TableFunctions {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Table { name, args: Some(arguments), alias, .. } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let argument = match name.0.as_slice() {
            [one] => one.as_ident().map(|ident| context.normalize_ident(ident.clone())),
            _ => None,
        };
        let Some(row) = TABLE_FUNCTIONS.iter().find(|row| Some(row.doc.name) == argument.as_deref()) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        if (self.is_taken)(row.doc.name) {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        let (alias, arguments) = (alias.clone(), arguments.args.clone());
        let call = Arguments::new(row.doc, arguments, self, context)?;
        let plan = (row.plan)(call)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}
