//! Who of a table matches all rows of a person: the linkage attack on people with several rows.
//!
//! A person of A has rows, an individual of B too. Each row of the person leaves the individuals
//! that it matches; the person's candidates are those whom all of these rows leave. A row that
//! matches no individual says nothing.
//!
//! ```text
//! B   GROUP BY keys, individual                      -> pairs, with the hashes of sensitive values
//! A   JOIN keys that have an individual, by person   -> several: the people with two such rows or more
//! pairs JOIN rows of several, GROUP BY person, individual, HAVING count = rows of the person
//!                                                    -> candidates
//! ```
//! Joins and GROUP BYs of the engine, so its memory is accounted and its GROUP BYs spill.

use datafusion::common::{Column, NullEquality};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::{count, max, min, sum};
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, lit, when};

use super::column;
use super::functions::row_hash;

/// One side of the attack: a table, what its rows are linked by, and whose they are.
pub(crate) struct Linkable {
    pub(crate) rows: LogicalPlan,
    pub(crate) keys: Vec<Expr>,
    pub(crate) individual: Expr,
}

/// What is known of each person of A by the person's rows one by one: a row per person.
pub(crate) struct ByRow<'a> {
    pub(crate) people: LogicalPlan,
    pub(crate) person: &'a str,
    /// The column with the fewest matches of a row, NULL for none.
    pub(crate) matches: &'a str,
    /// For each sensitive value whether it is learnt, 0 or 1.
    pub(crate) learnt: &'a [String],
}

/// The column of [`by_all_rows`] that is 1 for people whose rows match individuals, but no one all of them.
pub(crate) const APART: &str = "kanon_apart";

const PERSON: &str = "joint_person";
const NEEDED_BY: &str = "joint_needed_by";
const NEEDED: &str = "joint_needed";
const INDIVIDUAL: &str = "joint_individual";
const CANDIDATE_OF: &str = "joint_candidate_of";
const CANDIDATE: &str = "joint_candidate";
const ROWS: &str = "joint_rows";
const MATCHES: &str = "joint_matches";
const MATCHED: &str = "joint_matched";

fn numbered(what: &str, count: usize) -> Vec<String> {
    (0..count).map(|at| format!("joint_{what}_{at}")).collect()
}

fn columns<'a>(names: impl IntoIterator<Item = &'a String>) -> Vec<Expr> {
    names.into_iter().map(column).collect()
}

fn named(expressions: Vec<Expr>, names: &[String]) -> Vec<Expr> {
    expressions.into_iter().zip(names).map(|(expression, name)| expression.alias(name)).collect()
}

/// Joins `left`, which is held in memory, with `right` on pairs of columns, NULL equal to NULL.
fn join(
    left: LogicalPlan,
    right: LogicalPlan,
    how: JoinType,
    on: (&[String], &[String]),
) -> Result<LogicalPlanBuilder> {
    let of = |names: &[String]| names.iter().map(Column::from_name).collect::<Vec<_>>();
    let (left, on) = (LogicalPlanBuilder::from(left), (of(on.0), of(on.1)));
    left.join_detailed(right, how, on, None, NullEquality::NullEqualsNull)
}

/// Counts people with several rows by all of them: returns `by_row`, with the matches of such a
/// person replaced by the number of candidates (NULL for none), and adds [`APART`]. A value is learnt
/// if all rows of `b` that match one row of the person hold it; rows of individuals who are no
/// candidates are left out.
/// `values` are the sensitive values of `b`, hashed with `secret`: different ones collide with a
/// probability of 1 in 2^64.
///
/// # Errors
/// When the plan cannot be built.
pub(crate) fn by_all_rows(
    by_row: ByRow<'_>,
    a: Linkable,
    b: Linkable,
    values: Vec<Expr>,
    secret: [u64; 2],
) -> Result<LogicalPlan> {
    let [of_a, of_b] = ["a", "b"].map(|side| numbered(side, a.keys.len()));
    let [hash, least, most, known, shared] =
        ["hash", "least", "most", "known", "shared"].map(|what| numbered(what, values.len()));
    let list = [named(a.keys, &of_a), vec![a.individual.alias(PERSON)]].concat();
    let list = LogicalPlanBuilder::from(a.rows).project(list)?.filter(column(PERSON).is_not_null())?;
    let list = list.distinct()?.build()?;

    let mut table = [named(b.keys, &of_b), vec![b.individual.alias(INDIVIDUAL)]].concat();
    for (value, hash) in values.into_iter().zip(&hash) {
        let known = when(value.clone().is_not_null(), row_hash(secret, vec![value]));
        table.push(known.end()?.alias(hash));
    }
    let mut facts = vec![count(lit(1i64)).alias(ROWS)];
    for (at, hash) in hash.iter().enumerate() {
        facts.push(min(column(hash)).alias(&least[at]));
        facts.push(max(column(hash)).alias(&most[at]));
        facts.push(count(column(hash)).alias(&known[at]));
    }
    let whose = [columns(&of_b), vec![column(INDIVIDUAL)]].concat();
    let pairs = LogicalPlanBuilder::from(b.rows).project(table)?.aggregate(whose, facts)?.build()?;

    let has_individual = column(INDIVIDUAL).is_not_null();
    let matching = LogicalPlanBuilder::from(pairs.clone()).filter(has_individual.clone())?;
    let matching = matching.project(columns(&of_b))?.distinct()?.build()?;
    let several = join(matching, list.clone(), JoinType::Inner, (&of_b, &of_a))?
        .aggregate(vec![column(PERSON)], vec![count(lit(1i64)).alias(NEEDED)])?
        .filter(column(NEEDED).gt(lit(1i64)))?
        .project(vec![column(PERSON).alias(NEEDED_BY), column(NEEDED)])?
        .build()?;

    let person = [PERSON.to_owned()];
    let rows = join(several.clone(), list, JoinType::Inner, (&[NEEDED_BY.to_owned()], &person))?;
    let met = join(pairs, rows.build()?, JoinType::Inner, (&of_b, &of_a))?.build()?;
    let each = vec![column(PERSON), column(NEEDED), column(INDIVIDUAL)];
    let candidates = LogicalPlanBuilder::from(met.clone())
        .filter(has_individual)?
        .aggregate(each, vec![count(lit(1i64)).alias(MATCHED)])?
        .filter(column(MATCHED).eq(column(NEEDED)))?
        .project(vec![column(PERSON).alias(CANDIDATE_OF), column(INDIVIDUAL).alias(CANDIDATE)])?;
    let found = if shared.is_empty() {
        candidates.aggregate(vec![column(CANDIDATE_OF)], vec![count(lit(1i64)).alias(MATCHES)])?
    } else {
        let (candidate, individual) = ([CANDIDATE_OF, CANDIDATE], [PERSON, INDIVIDUAL]);
        let on = (candidate.map(str::to_owned), individual.map(str::to_owned));
        let mut facts = vec![count(column(CANDIDATE)).alias(MATCHES), sum(column(ROWS)).alias(ROWS)];
        for (at, hash) in hash.iter().enumerate() {
            // One value, in all rows: the least hash is the greatest, and as many are known.
            facts.push(min(column(&least[at])).alias(hash));
            facts.push(max(column(&most[at])).alias(format!("{hash}_most")));
            facts.push(sum(column(&known[at])).alias(format!("{hash}_known")));
        }
        let mut of_row = vec![column(PERSON).alias(CANDIDATE_OF), column(MATCHES)];
        for (hash, shared) in hash.iter().zip(&shared) {
            let one = column(hash).eq(column(format!("{hash}_most")));
            let all = column(format!("{hash}_known")).eq(column(ROWS));
            of_row.push(when(one.and(all), lit(1i64)).otherwise(lit(0i64))?.alias(shared));
        }
        let mut of_person = vec![max(column(MATCHES)).alias(MATCHES)];
        of_person.extend(shared.iter().map(|name| max(column(name)).alias(name)));
        join(candidates.build()?, met, JoinType::Right, (&on.0, &on.1))?
            .filter(column(CANDIDATE).is_not_null().or(column(INDIVIDUAL).is_null()))?
            .aggregate([vec![column(PERSON)], columns(&of_a)].concat(), facts)?
            .project(of_row)?
            .aggregate(vec![column(CANDIDATE_OF)], of_person)?
    };
    let found = join(
        found.build()?,
        several,
        JoinType::Right,
        (&[CANDIDATE_OF.to_owned()], &[NEEDED_BY.to_owned()]),
    )?;

    let is_joint = column(NEEDED).is_not_null();
    let candidates = when(column(MATCHES).gt(lit(0i64)), column(MATCHES)).end()?;
    let mut result = vec![column(by_row.person)];
    let kept = by_row.people.schema().fields().iter().map(|field| field.name().clone());
    let replaced = |name: &String| {
        [by_row.person, by_row.matches].contains(&name.as_str()) || by_row.learnt.contains(name)
    };
    result.extend(kept.filter(|name| !replaced(name)).map(column));
    let apart = is_joint.clone().and(candidates.clone().is_null());
    result.push(when(apart, lit(1i64)).otherwise(lit(0i64))?.alias(APART));
    let matches = when(is_joint.clone(), candidates).otherwise(column(by_row.matches))?;
    result.push(matches.alias(by_row.matches));
    for (name, shared) in by_row.learnt.iter().zip(&shared) {
        let all_rows = when(column(shared).is_not_null(), column(shared)).otherwise(lit(0i64))?;
        result.push(when(is_joint.clone(), all_rows).otherwise(column(name))?.alias(name));
    }
    let people = join(
        found.build()?,
        by_row.people,
        JoinType::Right,
        (&[NEEDED_BY.to_owned()], &[by_row.person.to_owned()]),
    )?;
    people.project(result)?.build()
}
