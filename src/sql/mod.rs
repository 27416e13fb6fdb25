//! SQL: a function for every generalizer, an aggregate for every class model and risk measure, and
//! the optimizer rule that makes them fast.
//!
//! The functions come from the tables [`GENERALIZERS`](crate::generalize::GENERALIZERS),
//! [`MODELS`](crate::model::MODELS) and [`RISKS`](crate::measure::RISKS), and from the rows that the program
//! [registered](crate::policy::own_rows): a new row there is a new function here. Rows whose argument is
//! a table (hierarchy files) have no function: `generalize` looks values up in tables that were
//! loaded beforehand.
//!
//! | function | arguments | result |
//! |---|---|---|
//! | `generalize_<row>` | a value, then the row's constants | the value, coarser |
//! | `generalize` | a [loaded](load_hierarchy) hierarchy, a value, a level | its label at that level |
//! | `<model>` | the sensitive column where it looks at one, then quasi-identifiers | what the worst class reaches |
//! | `<risk>` | the row's constants, then quasi-identifiers | the risk of all rows together |
//! | `<model>_individuals`, `<risk>_individuals` | the same with the individual before the columns | the same, counted in people |
//!
//! Constants are literals: a wrong constant is a plan error, raised before a row is read.

mod accounted;
mod aggregate_documentation;
mod by_name;
mod class_counts;
pub(crate) mod codes;
mod compared_classes;
mod compared_of_classes;
mod constants;
#[cfg(test)]
mod flight_tests;
mod generalize;
pub(crate) mod hierarchies;
mod interned;
pub mod k_anonymity_to_group_by;
mod listed_classes;
mod load_hierarchies;
mod measure_state;
mod of_counts;
mod one_group;
pub mod options;
mod refusals;
mod repeatable;
pub mod reserve_aliases;
pub mod size_aggregate;
pub mod table;
pub mod udaf;
pub mod udf;

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::catalog::MemoryCatalogProviderList;
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::registry::MemoryFunctionRegistry;
use datafusion::execution::{FunctionRegistry, SessionStateBuilder};
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::logical_expr::{AggregateUDF, DocSection, Documentation};
use datafusion::optimizer::Optimizer;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::engine::class_key::key_functions;
use crate::engine::count_classes::{self, CountClasses};
use crate::engine::functions::canonical_float_function;
use crate::engine::read_dictionaries::{self, ReadDictionaries};
use crate::generalize as generalizers;
use crate::model;
use accounted::Memory;
use codes::takes_dictionaries;
use compared_of_classes::ComparedOfClasses;
#[cfg(test)]
use hierarchies::Hierarchies;
use k_anonymity_to_group_by::KAnonymityToGroupBy;
use k_anonymity_to_group_by::classes_in_place::{self, ClassesInPlace};
use k_anonymity_to_group_by::sort_class_sizes::{self, SortClassSizes};
pub use load_hierarchies::{load_hierarchy, load_hierarchy_file};
use of_counts::functions_of_counts;
use options::KanonOptions;

use refusals::Refusals;
use reserve_aliases::ReserveAliases;
use size_aggregate::reads_least_size_only;
use table::TableFunctions;
use udaf::{ClassAggregate, aggregates};
use udf::GeneralizeFunction;

/// Registers all functions. Repeated calls replace the functions by themselves; loaded hierarchies
/// stay.
///
/// ```
/// use datafusion::execution::registry::{FunctionRegistry, MemoryFunctionRegistry};
/// let mut registry = MemoryFunctionRegistry::new();
/// datafusion_kanon::register_functions(&mut registry)?;
/// assert!(registry.udf("generalize_date").is_ok() && registry.udaf("k_anonymity").is_ok());
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
///
/// # Errors
/// Those of the registry.
pub fn register_functions(registry: &mut dyn FunctionRegistry) -> Result<()> {
    register_accounted(registry, &Memory::default())
}

/// Registers all functions; the measures account for their states in this memory.
fn register_accounted(registry: &mut dyn FunctionRegistry, memory: &Memory) -> Result<()> {
    check_own_names(|name| {
        let aggregate = registry.udaf(name);
        let is_other = aggregate.is_ok_and(|function| !is_measure_function(&function));
        is_other || registry.udf(name).is_ok() || registry.udwf(name).is_ok()
    })?;
    for function in generalizers::all().filter_map(GeneralizeFunction::new) {
        registry.register_udf(Arc::new(function.of_codes().into()))?;
        registry.register_udf(Arc::new(function.into()))?;
    }
    for function in key_functions().into_iter().chain([canonical_float_function()]) {
        registry.register_udf(Arc::new(function))?;
    }
    for function in functions_of_counts()? {
        registry.register_udf(Arc::new(function.into()))?;
    }
    let loaded = generalize::hierarchies(&*registry).unwrap_or_default();
    let of_loaded = generalize::GeneralizeLoaded::new(loaded.clone());
    registry.register_udf(Arc::new(of_loaded.of_codes().into()))?;
    registry.register_udf(Arc::new(of_loaded.into()))?;
    let (aggregates, of_sizes) = aggregates(&loaded, memory)?;
    for function in aggregates {
        registry.register_udaf(Arc::new(function.into()))?;
    }
    for function in of_sizes {
        registry.register_udaf(Arc::new(function.into()))?;
    }
    for function in ComparedOfClasses::all(&loaded, memory) {
        registry.register_udaf(Arc::new(function.into()))?;
    }
    Ok(())
}

/// Checks that no model of the program's own has the name of a function that is no measure, such as
/// `count`: a query would call the one and mean the other.
fn check_own_names(is_taken: impl Fn(&str) -> bool) -> Result<()> {
    match model::own().iter().map(|row| row.doc.name).find(|name| is_taken(name)) {
        None => Ok(()),
        Some(name) => Err(DataFusionError::Plan(format!(
            "the session has a function `{name}`; give the model another name"
        ))),
    }
}

fn is_measure_function(function: &AggregateUDF) -> bool {
    function.inner().downcast_ref::<ClassAggregate>().is_some()
}

/// Adds everything of this crate to a session's SQL: functions, optimizer rules and options.
/// Repeated calls change nothing. The first call drops the session's prepared statements. A table
/// function of the session keeps its name if this crate has one of the same name.
///
/// DataFusion 55 trusts Parquet statistics, which leave NaN out: it reads a column of 1.5 and NaN
/// as a column of 1.5, and `WHERE x > 2` loses the rows with NaN (apache/datafusion#24804). Where
/// quasi-identifiers are floats with NaN, set `datafusion.execution.collect_statistics = false` and
/// `datafusion.execution.parquet.pruning = false` before registering tables, as `kanon sql` does.
///
/// Queries that spill under a memory limit can wait for ever in DataFusion 55
/// (apache/datafusion#24883), those with measures among them. To prevent that, set
/// `datafusion.execution.max_spill_file_size_bytes = 1`, as `kanon sql` does.
///
/// By default DataFusion reads the INT96 timestamps that Spark writes in nanoseconds, which end in
/// 2262: the year 9999 becomes 1816, without an error. Before registering tables of such files, set
/// `datafusion.execution.parquet.coerce_int96 = 'us'`, as `kanon sql` does. Files that are arguments
/// of this crate's table functions are always read in microseconds.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> datafusion::error::Result<()> {
/// let session = SessionContext::new();
/// datafusion_kanon::register_all(&session)?;
/// let sql = "SELECT k_anonymity(age, zip) AS k FROM (VALUES (39, '02139'), (39, '02139')) AS t (age, zip)";
/// assert!(session.sql(sql).await?.to_string().await?.contains("| 2 |"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`register_functions`].
pub fn register_all(session: &SessionContext) -> Result<()> {
    register_accounted(&mut session.clone(), &Memory::of(session))?;
    let state = session.state();
    if !state.optimizer().rules.iter().any(|rule| rule.name() == k_anonymity_to_group_by::NAME) {
        session.add_optimizer_rule(Arc::new(KAnonymityToGroupBy::new()?));
    }
    if !state.expr_planners().iter().any(is_ours) {
        session.clone().register_expr_planner(Arc::new(Refusals))?;
    }
    if !state.relation_planners().iter().any(table::is_ours) {
        let hierarchies = generalize::hierarchies(&state).unwrap_or_default();
        let catalogs = Arc::clone(state.catalog_list());
        let state = session.state_weak_ref();
        // A locked state is not waited for.
        let is_taken = Box::new(move |name: &str| {
            let state = state.upgrade();
            state.is_some_and(|state| {
                state.try_read().is_some_and(|state| state.table_functions().contains_key(name))
            })
        });
        session.register_relation_planner(Arc::new(TableFunctions { catalogs, hierarchies, is_taken }))?;
    }
    with_options(session.state_ref().write().config_mut().options_mut());
    let state = session.state();
    if !has_rule(state.physical_optimizers(), sort_class_sizes::NAME) {
        // Rules can be placed before the engine's only by building the session's state anew.
        let builder = SessionStateBuilder::new_from_existing(state).with_session_id(session.session_id());
        *session.state_ref().write() = with_placed_rules(builder).build();
    }
    Ok(())
}

/// As [`register_all`], for a session that is being built. Call it after `with_default_features`,
/// and after the session got its own physical optimizer rules and table functions. Repeated calls
/// change nothing.
///
/// ```
/// use datafusion::execution::SessionStateBuilder;
/// use datafusion::prelude::SessionContext;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> datafusion::error::Result<()> {
/// let builder = SessionStateBuilder::new().with_default_features();
/// let session = SessionContext::new_with_state(datafusion_kanon::configure(builder)?.build());
/// session.sql("SET kanon.rewrite_measures = false").await?;
/// let k = session.sql("SELECT k_anonymity(age) AS k FROM (VALUES (39), (39)) AS t (age)").await?;
/// assert!(k.to_string().await?.contains("| 2 |"));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`register_functions`].
pub fn configure(mut builder: SessionStateBuilder) -> Result<SessionStateBuilder> {
    let mut functions = MemoryFunctionRegistry::new();
    // Loaded hierarchies stay.
    let known = builder.scalar_functions().get_or_insert_default();
    if let Some(function) = known.iter().find(|function| function.name() == generalize::NAME) {
        functions.register_udf(Arc::clone(function))?;
    }
    register_functions(&mut functions)?;
    let scalar = builder.scalar_functions().iter().flatten();
    let mut taken: BTreeSet<String> = scalar.map(|function| function.name().to_owned()).collect();
    let aggregates = builder.aggregate_functions().iter().flatten();
    let others = aggregates.filter(|function| !is_measure_function(function));
    for function in others {
        taken.extend(function.aliases().iter().cloned().chain([function.name().to_owned()]));
    }
    taken.extend(builder.window_functions().iter().flatten().map(|function| function.name().to_owned()));
    check_own_names(|name| taken.contains(name))?;
    for name in functions.udfs() {
        let known = builder.scalar_functions().get_or_insert_default();
        if !known.iter().any(|function| function.name() == name) {
            known.push(functions.udf(&name)?);
        }
    }
    for name in functions.udafs() {
        let known = builder.aggregate_functions().get_or_insert_default();
        if !known.iter().any(|function| function.name() == name) {
            known.push(functions.udaf(&name)?);
        }
    }
    let rules = &mut builder.optimizer().get_or_insert_with(Optimizer::new).rules;
    if !rules.iter().any(|rule| rule.name() == k_anonymity_to_group_by::NAME) {
        rules.push(Arc::new(KAnonymityToGroupBy::new()?));
    }
    let mut builder = with_placed_rules(builder);
    let planners = builder.expr_planners().get_or_insert_default();
    if !planners.iter().any(is_ours) {
        planners.push(Arc::new(Refusals));
    }
    let planners = builder.relation_planners().get_or_insert_default();
    if !planners.iter().any(table::is_ours) {
        let functions = builder.scalar_functions().iter().flatten();
        let hierarchies = functions.filter_map(|function| generalize::of_loaded(function)).next();
        let catalogs =
            builder.catalog_list().get_or_insert_with(|| Arc::new(MemoryCatalogProviderList::new()));
        let catalogs = Arc::clone(catalogs);
        let taken: BTreeSet<String> =
            builder.table_functions().iter().flatten().map(|(name, _)| name.clone()).collect();
        let is_taken = Box::new(move |name: &str| taken.contains(name));
        let hierarchies = hierarchies.unwrap_or_default();
        let functions = TableFunctions { catalogs, hierarchies, is_taken };
        builder.relation_planners().get_or_insert_default().push(Arc::new(functions));
    }
    with_options(builder.config().get_or_insert_with(SessionConfig::new).options_mut());
    Ok(builder)
}

/// Adds the rules that have a place among the engine's.
fn with_placed_rules(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let rules = &mut builder.optimizer().get_or_insert_with(Optimizer::new).rules;
    if !rules.iter().any(|rule| rule.name() == reserve_aliases::NAME) {
        rules.insert(0, Arc::new(ReserveAliases));
    }
    let rules = &mut builder.physical_optimizers().get_or_insert_with(PhysicalOptimizer::new).rules;
    if !has_rule(rules, sort_class_sizes::NAME) {
        rules.insert(0, Arc::new(SortClassSizes));
    }
    let after = rules.iter().position(|rule| rule.name() == classes_in_place::AFTER);
    if let (Some(after), false) = (after, has_rule(rules, classes_in_place::NAME)) {
        rules.insert(after + 1, Arc::new(ClassesInPlace));
    }
    if !has_rule(rules, read_dictionaries::NAME) {
        rules.push(Arc::new(ReadDictionaries { takes_dictionaries }));
    }
    if !has_rule(rules, count_classes::NAME) {
        rules.push(Arc::new(CountClasses { reads_least_only: reads_least_size_only, replaces_sorts: false }));
    }
    builder
}

fn has_rule(rules: &[Arc<dyn PhysicalOptimizerRule + Send + Sync>], name: &str) -> bool {
    rules.iter().any(|rule| rule.name() == name)
}

fn is_ours(planner: &Arc<dyn ExprPlanner>) -> bool {
    format!("{planner:?}") == format!("{Refusals:?}")
}

fn with_options(options: &mut ConfigOptions) {
    if options.extensions.get::<KanonOptions>().is_none() {
        options.extensions.insert(KanonOptions::default());
    }
}

/// Returns a function's documentation in the engine's form.
fn documentation(syntax: &str, summary: &str, paper: Option<&str>, example: &str) -> Documentation {
    let section = DocSection { include: true, label: "Anonymization", description: None };
    let description = match paper {
        Some(paper) => format!("{summary} ({paper})"),
        None => summary.to_owned(),
    };
    Documentation::builder(section, description, syntax).with_sql_example(example).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generalize::GENERALIZERS;
    use crate::measure::RISKS;
    use crate::model::MODELS;

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
        let (aggregates, of_sizes) = aggregates(&Hierarchies::default(), &Memory::default()).unwrap();
        assert!(aggregates.len() >= 2 * (MODELS.len() + RISKS.len()) && of_sizes.len() > RISKS.len());
        // Three functions, and those of codes and of counts, are called by this crate's plans only.
        let codes = GENERALIZERS.len();
        let scalar = GENERALIZERS.len() + codes + 3 + functions_of_counts().unwrap().len();
        // Several models share each of the two functions of `compared_of_classes.rs`.
        assert_eq!(once.len() - before, scalar + aggregates.len() + of_sizes.len() + 2);
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
        let individuals =
            state.aggregate_functions()["share_at_risk_individuals"].documentation().unwrap().clone();
        assert_eq!(
            individuals.syntax_example,
            "share_at_risk_individuals(r, individual, quasi-identifiers...)"
        );
        let l = state.aggregate_functions()["l_diversity_individuals"].documentation().unwrap().clone();
        assert_eq!(l.syntax_example, "l_diversity_individuals(individual, sensitive, quasi-identifiers...)");
        let example = "l_diversity_individuals(patient_id, diagnosis, age, sex, zip)";
        assert!(l.sql_example.unwrap().contains(example));
    }
}
