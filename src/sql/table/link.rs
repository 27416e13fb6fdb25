//! `link(a, b, column..., [individual => column of a], [individual_of_b => column of b], [sensitive
//! => column of b])`: the linkage attack. Counts how many individuals of `a` match how many rows of
//! `b`.
//!
//! # Contract
//! A row of `a` matches the rows of `b` that are equal in all columns, NULL equal to NULL. Columns
//! are names in quotes, or expressions over columns that both tables have. The result has one row
//! per number of matches: `matches` (BIGINT; 0: not in `b`; 1: found), `individuals` (BIGINT: the rows
//! of `a`; with `individual` its distinct values, each counted by its row with the fewest matches,
//! ignoring rows without a match), and for each sensitive column `learnt_<column>` (BIGINT: the
//! individuals with a row all of whose matches share one value). With `individual_of_b`, matches
//! are distinct individuals of `b`. An individual of `a` with several rows then matches the individuals
//! that match each of its rows, ignoring rows without a match (0 if no individual does). A row of `b`
//! with a NULL individual is not a match, but its sensitive values can be learnt. Values are compared as they are: to attack a release, generalize
//! `a` as it was, or use `kanon link`, which does so by the release's record and also knows regions.
//! A match is not a proof: an individual who is not in `b` may
//! match others.

use datafusion::common::{Column, NullEquality};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::{count, max, min, sum};
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, lit, when};

use super::TableFunctionRow;
use super::arguments::Arguments;
use super::distinct_counts::{ROWS, distinct, distinct_counts, known};
use super::two_tables::compared_columns;
use crate::doc::Doc;
use crate::engine::candidates::{ByRow, Linkable, by_all_rows};
use crate::engine::functions::random_keys;
use crate::engine::into_engine;
use crate::sql::udaf::compared_column as compared;

/// The row of [`TABLE_FUNCTIONS`](super::TABLE_FUNCTIONS) for this function.
pub const ROW: TableFunctionRow = TableFunctionRow { doc: DOC, plan };

const DOC: &Doc = &Doc {
    name: "link",
    summary: "the linkage attack: how many individuals of one table match how many rows of another",
    parameters: "a, b, column..., [individual => column of a], [individual_of_b => column of b], [sensitive => column of b]",
    example: "SELECT * FROM link(voters, patients, 'dob', 'sex', 'zip', sensitive => 'diagnosis')",
    paper: None,
};

const MATCHES: &str = "matches";

fn column(name: &str) -> Expr {
    Expr::Column(Column::from_name(name))
}

fn plan(mut call: Arguments<'_>) -> Result<LogicalPlan> {
    let (a, b) = (call.table()?, call.table()?);
    let arguments = call.rest()?;
    let individual = call.named_column("individual", &a)?;
    let individual_of_b = call.named_column("individual_of_b", &b)?;
    let sensitive = call.named_columns("sensitive", &b)?;
    call.finish(&["individual", "individual_of_b", "sensitive"])?;

    let (of_a, of_b) = compared_columns(&mut call, &arguments, [(&a, "a"), (&b, "b")])?;
    let keys =
        |prefix: &str| (0..arguments.len()).map(|at| format!("{prefix}_{at}")).collect::<Vec<String>>();

    // For each group of b: its size, and whether its rows share a value.
    let matches = match individual_of_b {
        Some(_) => distinct(0),
        None => ROWS.to_owned(),
    };
    let before = usize::from(individual_of_b.is_some());
    let values = individual_of_b.iter().chain(sensitive.iter().map(|(_, value)| value));
    let values = values.map(|value| compared(value.clone(), b.schema())).collect::<Result<Vec<Expr>>>()?;
    // Where both tables name individuals, several rows of one are looked at together.
    let sides = match (&individual, values.split_first()) {
        (Some(of_a_row), Some((of_b_row, values))) if individual_of_b.is_some() => {
            let side = |rows: &LogicalPlan, keys: &[Expr], individual: Expr| Linkable {
                rows: rows.clone(),
                keys: keys.to_vec(),
                individual,
            };
            let of_a_row = compared(of_a_row.clone(), a.schema())?;
            let sides = [side(&a, &of_a, of_a_row), side(&b, &of_b, of_b_row.clone())];
            Some((sides, values.to_vec()))
        }
        _ => None,
    };
    let groups = distinct_counts(b, "b", of_b, values)?;

    let mut columns: Vec<Expr> = of_a.into_iter().zip(keys("a")).map(|(key, name)| key.alias(name)).collect();
    columns.extend(match &individual {
        Some(individual) => Some(compared(individual.clone(), a.schema())?.alias("who")),
        None => None,
    });
    let list = LogicalPlanBuilder::from(a).project(columns)?;
    let list = if individual.is_some() { list.filter(column("who").is_not_null())? } else { list };
    // The groups stand on the left, where they are held in memory; a streams past them.
    let on = (
        keys("b").into_iter().map(Column::from_name).collect(),
        keys("a").into_iter().map(Column::from_name).collect(),
    );
    let (groups, list) = (LogicalPlanBuilder::from(groups), list.build()?);
    let linked = groups.join_detailed(list, JoinType::Right, on, None, NullEquality::NullEqualsNull)?;

    let zero = |value: Expr| when(value.clone().is_null(), lit(0i64)).otherwise(value);
    let mut columns = vec![zero(column(&matches))?.alias(MATCHES)];
    columns.extend(individual.iter().map(|_| column("who")));
    for at in 0..sensitive.len() {
        let one = column(&distinct(at + before)).eq(lit(1i64));
        let all_known = column(&known(at + before)).eq(column(ROWS));
        let learnt = when(one.and(all_known), lit(1i64)).otherwise(lit(0i64))?;
        columns.push(learnt.alias(format!("learnt_{at}")));
    }
    let mut each = linked.project(columns)?;
    if individual.is_some() {
        // The row with the fewest matches, ignoring rows without a match.
        let some = when(column(MATCHES).gt(lit(0i64)), column(MATCHES)).end()?;
        let mut of_person = vec![min(some).alias("fewest")];
        of_person.extend(
            (0..sensitive.len())
                .map(|at| max(column(&format!("learnt_{at}"))).alias(format!("of_person_{at}"))),
        );
        each = each.aggregate(vec![column("who")], of_person)?;
        if let Some(([a, b], values)) = sides {
            let learnt: Vec<String> = (0..sensitive.len()).map(|at| format!("of_person_{at}")).collect();
            let by_row = ByRow { people: each.build()?, person: "who", matches: "fewest", learnt: &learnt };
            let [secret, _] = random_keys("link").map_err(into_engine)?;
            each = LogicalPlanBuilder::from(by_all_rows(by_row, a, b, values, secret)?);
        }
        let mut columns = vec![zero(column("fewest"))?.alias(MATCHES)];
        columns.extend(
            (0..sensitive.len()).map(|at| column(&format!("of_person_{at}")).alias(format!("learnt_{at}"))),
        );
        each = each.project(columns)?;
    }
    let mut counts = vec![count(lit(1i64)).alias("individuals")];
    let names = sensitive.iter().map(|(name, _)| format!("learnt_{name}"));
    counts.extend(names.enumerate().map(|(at, name)| sum(column(&format!("learnt_{at}"))).alias(name)));
    each.aggregate(vec![column(MATCHES)], counts)?.build()
}
