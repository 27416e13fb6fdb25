//! Rows that are left when one release is subtracted from another. A class that has the same labels in both may have gained or lost
//! few rows: fewer than k, or rows that share one value where a model promises more.
//!
//! ```text
//! UNION ALL of both, GROUP BY class and values   -> what either has more often
//! GROUP BY class                                 -> gained and lost
//! ```
//! It is what an attacker does who knows who joined, or left, and takes values for constant. Where somebody left and another joined
//! with the same values, they hide one another, and nothing is said of them.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::functions_aggregate::expr_fn::{count, max, min, sum};
use datafusion::logical_expr::{Expr, cast, lit, when};
use datafusion::prelude::DataFrame;
use datafusion::scalar::ScalarValue;
use futures::StreamExt;

use super::two_releases::{DOING, Side, as_is_in_both, promised_in_both, quoted};
use crate::engine::functions::{random_keys, row_hash};
use crate::engine::{Context, column, union_of};
use crate::error::Result;
use crate::progress::CancelToken;

/// What is left by subtraction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Remainders {
    /// The classes that leave few rows.
    pub(crate) classes: u64,
    /// These rows.
    pub(crate) rows: u64,
}

const CLASS: [&str; 2] = ["class_a", "class_b"];
const VALUES: &str = "shown_values";
const COUNTS: [&str; 2] = ["first", "second"];
const CHANGES: [&str; 2] = ["gained", "lost"];

/// Returns the name of a column of whose values a model promises something.
fn promised(at: usize) -> String {
    format!("promised_{at}")
}

/// Subtracts two releases from one another, class by class.
///
/// # Errors
/// A data error when a release cannot be read.
pub(super) async fn remainders(sides: [&Side; 2], k: u64, stop: &CancelToken) -> Result<Remainders> {
    let quasi = &sides[0].quasi;
    let types = |side: &Side| quasi.iter().map(|name| side.type_of(name)).collect::<Vec<_>>();
    if *quasi != sides[1].quasi || types(sides[0]) != types(sides[1]) {
        return Ok(Remainders::default());
    }
    let left = few_by_class(changes(sides)?, promised_in_both(sides).len(), k)?;
    let figures = vec![count(lit(1i64)).alias("classes"), sum(column("rows")).alias("rows")];
    let mut stream =
        left.aggregate(Vec::new(), figures).context(DOING)?.execute_stream().await.context(DOING)?;
    let mut found = Remainders::default();
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.context(DOING)?;
        let figure = |at: usize| {
            let figures = batch.column(at).as_primitive_opt::<Int64Type>().filter(|all| !all.is_empty());
            figures.filter(|all| all.is_valid(0)).map_or(0, |all| all.value(0).unsigned_abs())
        };
        found.classes += figure(0);
        found.rows += figure(1);
    }
    Ok(found)
}

/// Returns for each class and combination of values how often either release has it, and how often it was gained or lost.
fn changes(sides: [&Side; 2]) -> Result<DataFrame> {
    let (keys, as_is, of_models) = (random_keys(DOING)?, as_is_in_both(sides), promised_in_both(sides));
    let by = |names: &[String]| -> Vec<Expr> { names.iter().map(column).collect() };
    let mut all = Vec::with_capacity(sides.len());
    for (place, side) in sides.iter().enumerate() {
        let classes = CLASS.iter().zip(keys).map(|(name, key)| row_hash(key, by(&side.quasi)).alias(*name));
        let mut columns: Vec<Expr> = classes.collect();
        columns.push(row_hash(keys[1], by(&as_is)).alias(VALUES));
        for (at, name) in of_models.iter().enumerate() {
            let null = lit(ScalarValue::UInt64(None));
            let hash = row_hash(keys[0], vec![column(name)]);
            let value = when(column(name).is_null(), null).otherwise(hash).context(DOING)?;
            columns.push(value.alias(promised(at)));
        }
        columns.extend(COUNTS.iter().enumerate().map(|(at, name)| lit(i64::from(at == place)).alias(*name)));
        all.push(side.table.clone().select(columns).context(DOING)?);
    }
    let all = union_of(all, DOING)?;
    let of_models = (0..of_models.len()).map(|at| column(promised(at)));
    let keys: Vec<Expr> = CLASS.map(column).into_iter().chain([column(VALUES)]).chain(of_models).collect();
    let counts = COUNTS.map(|name| sum(column(name)).alias(name)).to_vec();
    let by_value = all.aggregate(keys.clone(), counts).context(DOING)?;
    let more = |a: &str, b: &str| {
        let difference = column(a) - column(b);
        when(difference.clone().gt(lit(0i64)), difference).otherwise(lit(0i64)).context(DOING)
    };
    let [first, second] = COUNTS;
    let mut columns = [keys, COUNTS.map(column).to_vec()].concat();
    columns.extend([more(second, first)?.alias(CHANGES[0]), more(first, second)?.alias(CHANGES[1])]);
    by_value.select(columns).context(DOING)
}

/// Returns the number of rows that are left of each class, where these are few.
fn few_by_class(changes: DataFrame, promised_columns: usize, k: u64) -> Result<DataFrame> {
    let mut figures: Vec<Expr> =
        [COUNTS, CHANGES].concat().into_iter().map(|name| sum(column(name)).alias(name)).collect();
    for change in CHANGES {
        for at in 0..promised_columns {
            let is_left = || column(change).gt(lit(0i64));
            let value = || when(is_left(), column(promised(at))).end().context(DOING);
            let missing = is_left().and(column(promised(at)).is_null());
            let missing = when(missing, lit(1i64)).otherwise(lit(0i64)).context(DOING)?;
            figures.push(min(value()?).alias(format!("{change}_least_{at}")));
            figures.push(max(value()?).alias(format!("{change}_most_{at}")));
            figures.push(sum(missing).alias(format!("{change}_missing_{at}")));
        }
    }
    let by_class = changes.aggregate(CLASS.map(column).to_vec(), figures).context(DOING)?;
    let k = i64::try_from(k).unwrap_or(i64::MAX);
    let few = |change: &str| {
        let one_value = (0..promised_columns).map(|at| {
            let [least, most, missing] =
                ["least", "most", "missing"].map(|figure| column(format!("{change}_{figure}_{at}")));
            least.eq(most).and(missing.eq(lit(0i64)))
        });
        let is_few = one_value.fold(column(change).lt(lit(k)), Expr::or);
        // No CASE: the engine's planners do not agree on whether this one can be NULL.
        cast(column(change).gt(lit(0i64)).and(is_few).is_true(), DataType::Int64) * column(change)
    };
    let [first, second] = COUNTS;
    let [gained, lost] = CHANGES;
    let in_both = by_class.filter(column(first).gt(lit(0i64)).and(column(second).gt(lit(0i64))));
    let rows = in_both.context(DOING)?.select(vec![(few(gained) + few(lost)).alias("rows")]);
    rows.context(DOING)?.filter(column("rows").gt(lit(0i64))).context(DOING)
}

impl Remainders {
    /// Returns a query for the rows that are left: what the later release has more often, and with a minus, what it has less often.
    pub(super) fn proof(sides: [&Side; 2], k: u64) -> String {
        let (quasi, as_is) = (quoted(&sides[0].quasi), quoted(&as_is_in_both(sides)));
        let names = [quasi.as_slice(), &as_is].concat();
        let of_r = names.iter().map(|name| format!("r.{name}")).collect::<Vec<_>>().join(", ");
        let same = quasi.iter().map(|name| format!("c.{name} IS NOT DISTINCT FROM r.{name}"));
        let (all, same, quasi) = (names.join(", "), same.collect::<Vec<_>>().join(" AND "), quasi.join(", "));
        let few = |sign: &str| {
            let left = format!("FILTER (WHERE n {sign} 0)");
            let one_value = quoted(&promised_in_both(sides)).into_iter().map(|name| {
                format!(
                    "(min({name}) {left} = max({name}) {left} AND count({name}) {left} = count(*) {left})"
                )
            });
            let few = std::iter::once(format!("sum(abs(n)) {left} < {k}")).chain(one_value);
            few.collect::<Vec<_>>().join(" OR ")
        };
        format!(
            "-- Classes that both show: the rows that are left of few people when the earlier is subtracted from the later (n > 0),\n\
             -- or the later from the earlier (n < 0).\n\
             WITH r AS (SELECT {all}, sum(n) AS n, bool_or(n < 0) AS earlier, bool_or(n > 0) AS later\n\
             FROM (SELECT {all}, 1 AS n FROM {later} UNION ALL SELECT {all}, -1 AS n FROM {earlier}) GROUP BY {all}),\n\
             c AS (SELECT {quasi}, {gained} AS few_gained, {lost} AS few_lost\n\
             FROM r GROUP BY {quasi} HAVING bool_or(earlier) AND bool_or(later))\n\
             SELECT {of_r}, r.n FROM r JOIN c ON {same} WHERE (r.n > 0 AND few_gained) OR (r.n < 0 AND few_lost) ORDER BY {of_r};",
            later = sides[1].in_sql,
            earlier = sides[0].in_sql,
            gained = few(">"),
            lost = few("<"),
        )
    }
}
