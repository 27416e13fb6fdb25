//! SQL: every generalizer a function, every model and risk measure an aggregate.
//!
//! The functions are loops over the tables [`GENERALIZERS`], [`MODELS`] and [`RISKS`]: a new row there is a
//! new function here. Rows whose argument is a table (hierarchy files) have none: `generalize` looks into tables that were
//! loaded beforehand.
//!
//! | function | arguments | result |
//! |---|---|---|
//! | `generalize_<row>` | a value, then the row's constants | the value, coarser |
//! | `generalize` | a [loaded](load_hierarchy) hierarchy, a value, a level | its label at that level |
//! | `<model>` | quasi-identifiers | what the worst class reaches |
//! | `<risk>` | the row's constants, then quasi-identifiers | the risk of all rows together |
//!
//! Constants are literals: a wrong one is an error of the plan, before a row is read.

mod class_counts;
mod constants;
mod generalize;
pub(crate) mod hierarchies;
pub mod udaf;
pub mod udf;

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::{DocSection, Documentation};
use datafusion::prelude::SessionContext;

use crate::doc::Doc;
use crate::generalize::{GENERALIZERS, OptionRow};
use crate::measure::RISKS;
use crate::model::MODELS;
pub use hierarchies::{load_hierarchy, load_hierarchy_file};
use udaf::ClassAggregate;
use udf::GeneralizeFunction;

/// Registers all functions; those that are already there are replaced by themselves, loaded hierarchies stay.
///
/// ```
/// use datafusion::execution::registry::{FunctionRegistry, MemoryFunctionRegistry};
/// let mut registry = MemoryFunctionRegistry::new();
/// datafusion_kanon::sql::register_functions(&mut registry)?;
/// assert!(registry.udf("generalize_date").is_ok() && registry.udaf("k_anonymity").is_ok());
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
///
/// # Errors
/// Those of the registry.
pub fn register_functions(registry: &mut dyn FunctionRegistry) -> Result<()> {
    for function in GENERALIZERS.iter().filter_map(GeneralizeFunction::new) {
        registry.register_udf(Arc::new(function.into()))?;
    }
    let loaded = hierarchies::hierarchies(&*registry).unwrap_or_default();
    registry.register_udf(Arc::new(generalize::GeneralizeLoaded::new(loaded).into()))?;
    let models = MODELS.iter().map(ClassAggregate::model).filter_map(Result::transpose);
    let risks = RISKS.iter().map(|row| Ok(ClassAggregate::risk(row)));
    for function in models.chain(risks) {
        registry.register_udaf(Arc::new(function?.into()))?;
    }
    Ok(())
}

/// Teaches a session everything this crate adds to SQL.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> datafusion::error::Result<()> {
/// let session = SessionContext::new();
/// datafusion_kanon::sql::register_all(&session)?;
/// let sql = "SELECT k_anonymity(age, zip) AS k FROM (VALUES (39, '02139'), (39, '02139')) AS t (age, zip)";
/// assert!(session.sql(sql).await?.to_string().await?.contains("| 2 |"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`register_functions`].
pub fn register_all(session: &SessionContext) -> Result<()> {
    register_functions(&mut session.clone())
}

/// A row's documentation as the engine shows it.
fn documentation(name: &str, doc: &Doc, constant_first: bool, options: &[OptionRow]) -> Documentation {
    let (first, last) =
        if constant_first { (doc.parameters, "quasi-identifiers...") } else { ("value", doc.parameters) };
    let arguments = [first, last].into_iter().filter(|argument| !argument.is_empty());
    let optional: String = options.iter().map(|option| format!("[, {}]", option.key)).collect();
    let syntax = format!("{name}({}{optional})", arguments.collect::<Vec<_>>().join(", "));
    let section = DocSection { include: true, label: "Anonymization", description: None };
    let description = match doc.paper {
        Some(paper) => format!("{} ({paper})", doc.summary),
        None => doc.summary.to_owned(),
    };
    Documentation::builder(section, description, syntax).with_sql_example(doc.example).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registering_twice_changes_nothing() {
        let session = SessionContext::new();
        let names = |session: &SessionContext| {
            let state = session.state();
            let mut names: Vec<String> = state.scalar_functions().keys().cloned().collect();
            names.extend(state.aggregate_functions().keys().cloned());
            names.sort();
            names
        };
        let before = names(&session).len();
        register_all(&session).unwrap();
        let once = names(&session);
        let models = MODELS.iter().filter_map(|row| ClassAggregate::model(row).unwrap()).count();
        assert!(models > 0);
        assert_eq!(once.len() - before, GENERALIZERS.len() + models + RISKS.len());
        register_all(&session).unwrap();
        assert_eq!(names(&session), once);
    }

    #[test]
    fn every_function_is_documented() {
        let session = SessionContext::new();
        register_all(&session).unwrap();
        let state = session.state();
        let share = state.aggregate_functions()["share_at_risk"].documentation().unwrap().clone();
        assert_eq!(share.syntax_example, "share_at_risk(r, quasi-identifiers...)");
        let date = state.scalar_functions()["generalize_date"].documentation().unwrap().clone();
        assert_eq!(date.syntax_example, "generalize_date(value, period)");
        let k = state.aggregate_functions()["k_anonymity"].documentation().unwrap().clone();
        assert_eq!(k.syntax_example, "k_anonymity(quasi-identifiers...)");
    }
}
