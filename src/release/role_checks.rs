//! Checks of a policy's roles against the data, at three gates: the policy before classes are counted
//! (`check_policy`), the input before a search (`check_input`), and the released rows after their verification
//! (`check_released`, `check_released_groups`).

use datafusion::logical_expr::Expr;
use datafusion::prelude::DataFrame;

use crate::class::{ClassSizes, ClassTable};
use crate::engine::functions::{random_keys, row_hash};
use crate::engine::{Context, Run, column};
use crate::error::{Error, Result};
use crate::input::Loaded;
use crate::model::least_holders;
use crate::policy::Policy;
use crate::release::limit;
use crate::release::profile::class_sizes;
use crate::role::Role;
use crate::verify::as_is::{ReleasedRows, is_above_a_tenth};
use crate::verify::holders::{HolderCounter, Question};
use crate::verify::per_class::individual;

/// Returns the identifiers that must not repeat: those of a policy that neither names an individual
/// column nor sets `rows_are_individuals`.
pub(crate) fn must_not_repeat(policy: &Policy) -> impl Iterator<Item = &str> {
    let is_stated = policy.individual().is_some() || policy.spec.rows_are_individuals;
    let columns = policy.columns.iter().filter(move |(_, role)| !is_stated && *role == Role::Identifier);
    columns.map(|(name, _)| name.as_str())
}

/// Refuses a policy under which individuals would count several times.
///
/// # Errors
/// A policy error if an identifier repeats that [must not](must_not_repeat). A data error when
/// reading fails.
pub(crate) async fn each_counts_once(run: &Run, loaded: &Loaded) -> Result<()> {
    for name in must_not_repeat(&loaded.policy) {
        run.stop.check()?;
        if loaded.schema().field_with_name(name).is_ok_and(|field| field.data_type().is_nested()) {
            return Err(Error::policy(format!(
                "`{name}` holds lists or objects, which cannot be checked for repeated identifiers; give it \
                 the role `text`"
            )));
        }
        let values = values(run, &loaded.table, name).await?;
        let repeated = values.individuals() - values.unique();
        if repeated > 0 {
            return Err(Error::policy(format!(
                "`{name}` repeats in {repeated} rows: individuals seem to have several rows each and would be \
                 counted several times; give the column that says whose row it is the role `individual`, or \
                 set `rows_are_individuals = true` if each row is another individual"
            )));
        }
    }
    Ok(())
}

/// Refuses a policy that protects no individual, and one under which individuals would count
/// several times.
///
/// # Errors
/// As [`each_counts_once`]; a policy error if no requirement protects any individual.
pub(super) async fn check_policy(run: &Run, loaded: &Loaded) -> Result<()> {
    if let Some(why) = loaded.policy.promises_nothing() {
        return Err(Error::policy(why));
    }
    each_counts_once(run, loaded).await
}

/// Returns how many rows of the input repeat an earlier row exactly.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(super) async fn duplicates(run: &Run, loaded: &Loaded, classes: &ClassTable) -> Result<u64> {
    let are_quasi = |name: &str| loaded.policy.quasi_index(name).is_some();
    let is_all = loaded.schema().fields().iter().all(|field| are_quasi(field.name()));
    // Then the base classes are the distinct rows, unless a clip gives values one label.
    if is_all && classes.columns().iter().all(|column| column.values().len() == column.distinct()) {
        return Ok(classes.total_rows() - classes.base().len() as u64);
    }
    let equal_rows = equal_rows(run, &loaded.table).await?;
    Ok(equal_rows.individuals() - equal_rows.classes())
}

/// Refuses, before a search, columns that no release under the policy can hold as they are: even
/// without all individuals (rows, where none are counted) that may be suppressed, more than a tenth
/// hold a value that fewer than q hold. The [verification](crate::verify::as_is) judges the actual release.
///
/// # Errors
/// A policy error that names the columns; a data error when reading fails.
pub(super) async fn check_input(run: &Run, loaded: &Loaded, classes: &ClassTable) -> Result<()> {
    let (policy, table) = (&loaded.policy, &loaded.table);
    let doing = "counting the holders of values";
    let as_is = policy.released().filter(|(_, role)| *role != Role::Quasi).map(|(name, _)| name);
    let judged = as_is.filter(|name| !policy.may_be_unique(name));
    let judged: Vec<&str> = judged.collect();
    if judged.is_empty() {
        return Ok(());
    }
    let mut columns: Vec<Expr> = judged.iter().map(|name| column(*name)).collect();
    let most_rows = match policy.individual() {
        Some(name) => {
            columns.extend(individual(column(name), random_keys(doing)?)?);
            Some(classes.most_rows_of_one())
        }
        None => None,
    };
    let rows = table.clone().select(columns).context(doing)?;
    let counter = HolderCounter::new(&loaded.session, rows, most_rows, &run.stop);
    let (all, limit) = (classes.total_individuals() + classes.unowned_rows(), limit(policy, classes));
    let q = least_holders(&policy.requirements);
    let questions = judged.iter().map(|name| Question { columns: vec![column(*name)], known: true, q });
    let holders = counter.count(&questions.collect::<Vec<_>>()).await?;
    let few = judged.into_iter().zip(holders).map(|(name, holders)| (name, holders.few));
    let few: Vec<_> = few.filter(|(_, few)| is_above_a_tenth(*few, all)).collect();
    // Suppressing an individual removes at most one holder. Rows without an individual may be
    // suppressed freely.
    let is_certain = |(_, few): &(&str, u64)| is_above_a_tenth(few.saturating_sub(limit), all);
    let (certain, others) = few.into_iter().partition(is_certain);
    let counted = Counted { policy, all, unowned_rows: classes.unowned_rows(), place: "in the input" };
    counted.refusal(certain, others, q).map_or(Ok(()), Err)
}

/// Refuses a sensitive column whose values identify individuals, unless the policy allows it: where
/// each individual has one of so many `rows`, and all of them are released.
///
/// # Errors
/// A policy error that names the column, and the errors of counting.
pub(super) async fn check_released_groups(run: &Run, loaded: &Loaded, rows: u64) -> Result<()> {
    let policy = &loaded.policy;
    let q = least_holders(&policy.requirements);
    let counted = Counted { policy, all: rows, unowned_rows: 0, place: "in the release" };
    let mut named = Vec::new();
    for name in policy.sensitive().filter(|name| !policy.may_be_unique(name)) {
        let sizes = values(run, &loaded.table, name).await?;
        let few = sizes
            .histogram()
            .filter(|(holders, ..)| *holders < q)
            .map(|(_, _, individuals)| individuals)
            .sum();
        if is_above_a_tenth(few, rows) {
            named.push((name, few));
        }
    }
    counted.refusal(named, Vec::new(), q).map_or(Ok(()), Err)
}

/// Refuses released columns whose values identify individuals, unless the policy allows it for the
/// column.
///
/// # Errors
/// A policy error that names the columns, and the errors of counting.
pub(super) async fn check_released(policy: &Policy, rows: &ReleasedRows<'_>) -> Result<()> {
    let few = rows.few().await?;
    let (all, unowned_rows) = (rows.all(), rows.unowned_rows());
    let is_allowed = |name: &str| policy.may_be_unique(name);
    let named = few.iter().filter(|(name, few)| is_above_a_tenth(*few, all) && !is_allowed(name));
    let named: Vec<_> = named.map(|(name, few)| (name.as_str(), *few)).collect();
    let counted = Counted { policy, all, unowned_rows, place: "in the release" };
    counted.refusal(named, Vec::new(), least_holders(&policy.requirements)).map_or(Ok(()), Err)
}

/// The holders against which columns released as they are get judged.
struct Counted<'a> {
    policy: &'a Policy,
    /// The individuals and the rows without one, or all rows where no individuals are counted.
    all: u64,
    /// The rows without an individual among the holders.
    unowned_rows: u64,
    /// The place of the holders: "in the input".
    place: &'static str,
}

impl Counted<'_> {
    /// Returns the error that refuses columns, each with how many hold a value that fewer than `q`
    /// hold; `None` for no columns. It also names the columns that `may` be refused after these: all
    /// that can be known of them before rows are suppressed.
    fn refusal(&self, mut columns: Vec<(&str, u64)>, mut may: Vec<(&str, u64)>, q: u64) -> Option<Error> {
        columns.sort_by_key(|(_, few)| std::cmp::Reverse(*few));
        may.sort_by_key(|(_, few)| std::cmp::Reverse(*few));
        let [(name, few), others @ ..] = columns.as_slice() else { return None };
        let Self { policy, all, place, .. } = self;
        let role =
            policy.columns.iter().find(|(column, _)| column == name).map_or("", |(_, role)| role.word());
        let noun = match (policy.individual(), self.unowned_rows) {
            (None, _) => "rows",
            (Some(_), 0) => "individuals",
            (Some(_), _) => "individuals (and rows without one)",
        };
        let listed = |words: &str, columns: &[(&str, u64)]| {
            let columns: Vec<String> =
                columns.iter().map(|(name, few)| format!("`{name}` ({few})")).collect();
            if columns.is_empty() { String::new() } else { format!("; {words} {}", columns.join(", ")) }
        };
        let others =
            listed("the same applies to", others) + &listed("after the search the same may apply to", &may);
        let error = Error::policy(format!(
            "{few} of {all} {noun} {place} hold a value that fewer than {q} hold, and more than a tenth is \
             too many for a column that is released as it is (role `{role}`): such values identify people \
             regardless of the quasi-identifiers; make the column a quasi-identifier with a hierarchy, leave \
             it out (`identifier`, `text`), or set `allow_unique = true` in its line if no outsider knows \
             its values{others}"
        ));
        Some(error.at(format!("columns.{name}")))
    }
}

/// Returns the rows that have a value in a column, by the number of rows with the same value.
async fn values(run: &Run, table: &DataFrame, name: &str) -> Result<ClassSizes> {
    let doing = format!("counting the values of `{name}`");
    let known = table.clone().filter(column(name).is_not_null()).context(&doing)?;
    class_sizes(&known, &[name], &run.stop, &doing).await
}

/// Returns the rows, by the number of rows that are equal in all flat columns.
async fn equal_rows(run: &Run, table: &DataFrame) -> Result<ClassSizes> {
    let doing = "counting copies of rows";
    let fields = table.schema().fields().iter();
    let flat = fields.filter(|field| !field.data_type().is_nested());
    let columns: Vec<Expr> = flat.map(|field| column(field.name())).collect();
    // Two different rows share 64 bits under a random key once in 10^19, rare enough for a reported
    // count.
    let hash = row_hash(random_keys(doing)?[0], columns).alias("hash");
    let rows = table.clone().select(vec![hash]).context(doing)?;
    class_sizes(&rows, &["hash"], &run.stop, doing).await
}
