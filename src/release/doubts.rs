//! What is doubtful about a policy and its input though nothing is refused, as warnings: an individual
//! column that does not distinguish people, rows without an individual, prefixes of integers that may
//! have lost zeros.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Field, UInt64Type};
use datafusion::functions_aggregate::expr_fn::approx_distinct;
use datafusion::logical_expr::{Expr, when};
use datafusion::prelude::DataFrame;

use crate::class::{ClassTable, EncodedColumn};
use crate::engine::functions::{random_keys, row_hash};
use crate::engine::{Context, Run, column};
use crate::error::{Error, Result};
use crate::generalize::{Descriptor, Value};
use crate::input::Loaded;
use crate::plural::{self, grouped, plural};
use crate::release::profile::class_sizes;
use crate::role::Role;
use crate::verify::as_is::is_above_a_tenth;

const DOING: &str = "comparing the individuals with the identifiers";

/// Returns all warnings about a profiled input.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(crate) async fn doubts(run: &Run, loaded: &Loaded, classes: &ClassTable) -> Result<Vec<String>> {
    let mut all = of_individuals(run, loaded, classes.unowned_rows(), classes.total_rows()).await?;
    all.extend(classes.columns().iter().filter_map(of_prefixes));
    Ok(all)
}

/// Returns the warnings about the individual column of an input with so many `rows`, `unowned` of them
/// without an individual.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(crate) async fn of_individuals(
    run: &Run,
    loaded: &Loaded,
    unowned: u64,
    rows: u64,
) -> Result<Vec<String>> {
    let Some(individual) = loaded.policy.individual() else { return Ok(Vec::new()) };
    let mut all: Vec<String> = shared_identifier(run, loaded, individual).await?.into_iter().collect();
    if is_above_a_tenth(unowned, rows) {
        all.push(format!(
            "{} of {} {} no individual, because `{individual}` is NULL: such rows are in no class size, are released \
             beside the individuals of their class, and leave with it outside the limit",
            grouped(unowned),
            plural::rows(rows),
            if unowned == 1 { "has" } else { "have" },
        ));
    }
    Ok(all)
}

/// The values of identifiers, and the individuals that have one.
struct IdentifierCounts {
    values: u64,
    /// The values that belong to several individuals.
    of_several: u64,
    individuals: u64,
}

impl IdentifierCounts {
    /// Returns whether the values may be people, and the individuals something that one of them has
    /// several of: there are fewer than two thirds as many values as individuals, and a tenth of the
    /// values or more belong to several individuals. A few typing errors, one number for "unknown" and
    /// some families with one telephone are below that.
    fn is_doubtful(&self) -> bool {
        let [values, of_several, individuals] =
            [self.values, self.of_several, self.individuals].map(u128::from);
        values * 3 < individuals * 2 && of_several * 10 >= values
    }
}

/// Returns the warning that identifiers contradict the individual column. Several identifiers that are
/// doubtful one by one, such as a first and a last name, are judged together.
async fn shared_identifier(run: &Run, loaded: &Loaded, individual: &str) -> Result<Option<String>> {
    let identifiers = suspects(loaded, individual).await?;
    let mut doubtful: Vec<(&str, IdentifierCounts)> = Vec::new();
    for name in identifiers {
        let shared = shared(run, &loaded.table, &[name], individual).await?;
        if shared.is_doubtful() {
            doubtful.push((name, shared));
        }
    }
    let names: Vec<&str> = doubtful.iter().map(|(name, _)| *name).collect();
    let together = match doubtful.pop() {
        None => return Ok(None),
        Some((_, shared)) if doubtful.is_empty() => shared,
        Some(_) => shared(run, &loaded.table, &names, individual).await?,
    };
    Ok(together.is_doubtful().then(|| text(&names, individual, &together)))
}

fn text(names: &[&str], individual: &str, shared: &IdentifierCounts) -> String {
    let listed: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let listed = listed.join(", ");
    let (have, one, identify, them) = match names {
        [_] => ("has", "it", "identifies", "its"),
        _ => ("together have", "they", "identify", "their"),
    };
    format!(
        "{listed} {have} {}, and `{individual}`, the individual column, {}; {} of several individuals: if {one} \
         {identify} a person, `{individual}` does not, and one person counts as several; give the column that says \
         whose row it is the role `individual`. If people share {them} values, as a family shares a telephone number, \
         ignore this warning",
        plural(shared.values, "value", "values"),
        grouped(shared.individuals),
        plural(shared.of_several, "is that", "are those"),
    )
}

/// Returns the identifiers that seem to have fewer than three quarters as many values as individuals,
/// by estimates within about 2 %: one scan for all of them.
async fn suspects<'a>(loaded: &'a Loaded, individual: &str) -> Result<Vec<&'a str>> {
    let is_number_or_text = |name: &str| {
        let data_type = loaded.schema().field_with_name(name).map(Field::data_type);
        data_type.is_ok_and(|data_type| data_type.is_string() || data_type.is_integer())
    };
    let identifiers = loaded.policy.columns.iter().filter(|(_, role)| *role == Role::Identifier);
    let identifiers = identifiers.map(|(name, _)| name.as_str()).filter(|name| is_number_or_text(name));
    let identifiers: Vec<&str> = identifiers.collect();
    if identifiers.is_empty() {
        return Ok(identifiers);
    }
    let mut counts = Vec::new();
    for name in &identifiers {
        for of in [*name, individual] {
            let known = column(*name).is_not_null().and(column(individual).is_not_null());
            let hash = when(known, row_hash([0, 0], vec![column(of)])).end().context(DOING)?;
            counts.push(approx_distinct(hash).alias(format!("count_{}", counts.len())));
        }
    }
    let row =
        loaded.table.clone().aggregate(vec![], counts).context(DOING)?.collect().await.context(DOING)?;
    let row = row.iter().find(|batch| batch.num_rows() == 1);
    let row = row.ok_or_else(|| Error::internal("doubts: the aggregates returned no row"))?;
    let count = |at: usize| {
        let count = row.column(at).as_primitive_opt::<UInt64Type>().filter(|count| count.is_valid(0));
        count
            .map(|count| u128::from(count.value(0)))
            .ok_or_else(|| Error::internal("doubts: a count is missing"))
    };
    let mut suspects = Vec::new();
    for (at, name) in identifiers.into_iter().enumerate() {
        if count(2 * at)? * 4 < count(2 * at + 1)? * 3 {
            suspects.push(name);
        }
    }
    Ok(suspects)
}

/// Counts the distinct values of `names`, and the individuals with one.
async fn shared(run: &Run, table: &DataFrame, names: &[&str], individual: &str) -> Result<IdentifierCounts> {
    run.stop.check()?;
    let key = random_keys(DOING)?[0];
    let columns: Vec<Expr> = names.iter().map(|name| column(*name)).collect();
    let known = columns.iter().cloned().map(Expr::is_not_null).reduce(Expr::or);
    let known = known.into_iter().fold(column(individual).is_not_null(), Expr::and);
    let hashes = vec![
        row_hash(key, columns).alias("value"),
        row_hash(key, vec![column(individual)]).alias("individual"),
    ];
    let rows = table.clone().filter(known).context(DOING)?.select(hashes).context(DOING)?;
    let pairs = rows.distinct().context(DOING)?;
    let values = class_sizes(&pairs, &["value"], &run.stop, DOING).await?;
    let individuals = class_sizes(&pairs, &["individual"], &run.stop, DOING).await?.classes();
    let of_several = values.histogram().filter(|(size, ..)| *size > 1).map(|(_, values, _)| values).sum();
    Ok(IdentifierCounts { values: values.classes(), of_several, individuals })
}

/// Returns the warning about a column of integers of several lengths whose first digits are kept.
fn of_prefixes(of: &EncodedColumn) -> Option<String> {
    let keeps_first = |level: &Descriptor| {
        level.generalizer == "prefix" && level.options.get("side").is_none_or(|side| side != "right")
    };
    let cuts = of.hierarchy().levels().iter().any(|level| keeps_first(&level.descriptor()));
    if !cuts || !of.hierarchy().input_type().is_integer() {
        return None;
    }
    let values = of.values();
    // They are in order, NULL first.
    let (first, end) = (values.null_count(), values.len());
    if first == end {
        return None;
    }
    let (least, greatest) = (Value::read(values, first).ok()?, Value::read(values, end - 1).ok()?);
    let digits = |value: Value| match value {
        Value::Int(number) => Some(number.unsigned_abs().checked_ilog10().unwrap_or(0) + 1),
        _ => None,
    };
    let (least, greatest) = (digits(least)?, digits(greatest)?);
    let and = if least + 1 == greatest { "and" } else { "to" };
    (least < greatest).then(|| {
        format!(
            "`{}` holds integers of {least} {and} {greatest} digits, and its prefixes keep the first ones: if leading \
             zeros were lost, codes of different places get one label; load the column as text",
            of.name()
        )
    })
}
