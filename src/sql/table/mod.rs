//! Table functions: `SELECT * FROM classes(visits, 'age', 'zip')`.
//!
//! Each file and each row of [`TABLE_FUNCTIONS`] is one function. The functions are planned with
//! the SQL around them, so that their arguments can be a table's name, a CTE, a subquery or another
//! table function; a text is a file name where `kanon.allow_files` allows it. A table function of
//! the session with the same name takes precedence. `classes`, `risk` and `link` become ordinary
//! plans; `lattice`, `anonymize` and `compare` become one operator that works when it is executed, never
//! for EXPLAIN.
//!
//! They are relation planners, because the engine's `TableFunctionImpl` knows constants only: no CTE, no
//! subquery, no name of an argument, and a table's name in a text is never resolved. A relation planner sees
//! the syntax. Names that the query mentions nowhere else are looked up in the session's catalogs, on a thread
//! of its own, because planning is not asynchronous and a catalog is.

mod arguments;
mod distinct_counts;
mod of_population;
mod policy;
mod task;
mod two_tables;

pub mod anonymize;
pub mod classes;
pub mod compare;
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
use super::measure_state::reached_by;
use crate::doc::Doc;
use crate::model::{self, ModelRow, Needs};
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
    &[anonymize::ROW, classes::ROW, compare::ROW, lattice::ROW, link::ROW, load_hierarchy::ROW, risk::ROW];

/// Returns the models that look at a population, each with the documentation of its table function.
pub(crate) fn models_of_population() -> impl Iterator<Item = (&'static ModelRow, Doc)> {
    let looks = |row: &&ModelRow| {
        let made = reached_by(row, &[]);
        made.is_ok_and(|model| model.needs() == Needs::Population)
    };
    let documented =
        |row: &'static ModelRow| (row, Doc { parameters: of_population::PARAMETERS, ..*row.doc });
    model::all().filter(looks).map(documented)
}

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
        let is_called = |doc: &Doc| Some(doc.name) == argument.as_deref();
        let function = TABLE_FUNCTIONS.iter().find(|row| is_called(row.doc));
        let model = models_of_population().find(|(row, _)| is_called(row.doc));
        let doc = function.map(|row| *row.doc).or_else(|| model.as_ref().map(|(_, doc)| *doc));
        let Some(doc) = doc.filter(|doc| !(self.is_taken)(doc.name)) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let (alias, arguments) = (alias.clone(), arguments.args.clone());
        let call = Arguments::new(doc, arguments, self, context)?;
        let plan = match (function, model) {
            (Some(row), _) => (row.plan)(call)?,
            (None, Some((row, _))) => of_population::plan(call, row)?,
            (None, None) => return Ok(RelationPlanning::Original(Box::new(relation))),
        };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}
