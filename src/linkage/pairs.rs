//! Rows of two releases that pair: a combination of values released as they are that occurs once in each belongs to one row, and
//! this row is in a class of either. What the files alone show, without any input.
//!
//! ```text
//! UNION ALL of both, GROUP BY the columns   -> pairs: once here, once there
//! GROUP BY the classes of a pair            -> rows that two classes are known to share
//! ```
//! Of a person whose two classes are known, the row is one of these, or one that pairs with none: the candidates are the
//! shared rows and the fewer of the unpaired rows of either class. Columns are chosen one after the other, as long as a further one
//! pairs more rows, and at most three: the more columns, the more of them change.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::functions_aggregate::expr_fn::{max, sum};
use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::{DataFrame, SessionContext};

use super::two_releases::{DOING, Side, as_is_in_both, each, quoted};
use crate::class::{Budget, Held};
use crate::engine::functions::{random_keys, row_hash};
use crate::engine::{Context, PoolBudget, column, union_of};
use crate::error::Result;
use crate::progress::CancelToken;

/// The most columns on which rows are paired.
const MOST_COLUMNS: usize = 3;

/// Rows that pair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PairedRows {
    /// The columns on which most rows pair.
    pub(crate) on: Vec<String>,
    /// The rows that pair.
    pub(crate) pairs: u64,
    /// The pairs with fewer than k candidates.
    pub(crate) fewer_than_k: u64,
    /// The pairs with one candidate.
    pub(crate) alone: u64,
}

/// Pairs the rows of two releases. `rows` is the number of rows of the smaller one, `k` the greatest k of both.
///
/// # Errors
/// A data error when a release cannot be read or memory runs out.
pub(super) async fn pair_rows(
    session: &SessionContext,
    sides: [&Side; 2],
    k: u64,
    rows: u64,
    stop: &CancelToken,
) -> Result<PairedRows> {
    let mut left = as_is_in_both(sides);
    let mut found = PairedRows::default();
    let pairs = Pairs { sides, keys: random_keys(DOING)? };
    while found.on.len() < MOST_COLUMNS && found.pairs < rows {
        let mut best: Option<(u64, usize)> = None;
        for (place, name) in left.iter().enumerate() {
            let on = [found.on.as_slice(), std::slice::from_ref(name)].concat();
            let count = pairs.count(&on, stop).await?;
            if best.is_none_or(|(most, _)| count > most) {
                best = Some((count, place));
            }
        }
        match best {
            Some((count, place)) if count > found.pairs => {
                found.pairs = count;
                found.on.push(left.remove(place));
            }
            _ => break,
        }
    }
    if !found.on.is_empty() {
        let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "pairs"));
        pairs.judge(&mut found, k, &budget, stop).await?;
    }
    Ok(found)
}

impl PairedRows {
    /// Returns a query for the two classes of each pair with fewer than k candidates, with the numbers of pairs and of candidates.
    pub(super) fn proof(&self, sides: [&Side; 2], k: u64) -> String {
        let on = quoted(&self.on);
        let (on_list, same) = (on.join(", "), |a: &str, b: &str, columns: &[String]| {
            let each = columns.iter().map(|name| format!("{a}.{name} IS NOT DISTINCT FROM {b}.{name}"));
            each.collect::<Vec<_>>().join(" AND ")
        });
        let mut text = String::new();
        let mut shown = Vec::new();
        for (side, name) in sides.iter().zip(["a", "b"]) {
            let quasi = quoted(&side.quasi);
            let one = quasi
                .iter()
                .map(|column| format!("any_value({column}) AS {column}"))
                .collect::<Vec<_>>()
                .join(", ");
            let list = quasi.join(", ");
            text += &format!(
                "{name} AS (SELECT {on_list}, {one} FROM {table} GROUP BY {on_list} HAVING count(*) = 1),\n\
                 all_{name} AS (SELECT {list}, count(*) AS n FROM {table} GROUP BY {list}),\n",
                table = side.in_sql
            );
            shown.extend(quasi.iter().zip(&side.quasi).map(|(column, plain)| {
                let alias = quoted(&[format!("{name}_{plain}")]).join("");
                (format!("{name}.{column} AS {alias}"), alias)
            }));
        }
        let (columns, aliases): (Vec<String>, Vec<String>) = shown.into_iter().unzip();
        let (columns, aliases) = (columns.join(", "), aliases.join(", "));
        let of = |name: &str, side: &Side| -> String {
            let columns = side.quasi.iter().map(|plain| {
                let (column, alias) =
                    (quoted(std::slice::from_ref(plain)), quoted(&[format!("{name}_{plain}")]));
                format!("all_{name}.{} IS NOT DISTINCT FROM shared.{}", column.join(""), alias.join(""))
            });
            columns.collect::<Vec<_>>().join(" AND ")
        };
        let left = |name: &str, side: &Side| -> String {
            let own = side.quasi.iter().map(|plain| quoted(&[format!("{name}_{plain}")]).join(""));
            format!("all_{name}.n - sum(pairs) OVER (PARTITION BY {})", own.collect::<Vec<_>>().join(", "))
        };
        format!(
            "-- Rows that pair on {on_list}: the classes of both, with fewer than {k} candidates.\n\
             WITH {text}pairs AS (SELECT {columns} FROM a JOIN b ON {joined}),\n\
             shared AS (SELECT {aliases}, count(*) AS pairs FROM pairs GROUP BY {aliases}),\n\
             counted AS (SELECT shared.*, pairs + least({of_a}, {of_b}) AS candidates FROM shared\n\
             JOIN all_a ON {same_a} JOIN all_b ON {same_b})\n\
             SELECT * FROM counted WHERE candidates < {k} ORDER BY candidates, {aliases};",
            joined = same("a", "b", &on),
            of_a = left("a", sides[0]),
            of_b = left("b", sides[1]),
            same_a = of("a", sides[0]),
            same_b = of("b", sides[1]),
        )
    }
}

struct Pairs<'a> {
    sides: [&'a Side; 2],
    keys: [[u64; 2]; 2],
}

const VALUES: [&str; 2] = ["values_a", "values_b"];
const COUNTS: [&str; 2] = ["first", "second"];
const CLASSES: [&str; 2] = ["class_of_first", "class_of_second"];

impl Pairs<'_> {
    /// Returns the combinations of values that occur once on either side, with the classes of their rows.
    fn of(&self, on: &[String]) -> Result<DataFrame> {
        let mut all = Vec::with_capacity(self.sides.len());
        for (place, side) in self.sides.iter().enumerate() {
            let by = |names: &[String]| -> Vec<Expr> { names.iter().map(column).collect() };
            let class = row_hash(self.keys[0], by(&side.quasi));
            let mut columns: Vec<Expr> =
                VALUES.iter().zip(self.keys).map(|(name, key)| row_hash(key, by(on)).alias(*name)).collect();
            for (at, name) in COUNTS.iter().enumerate() {
                columns.push(lit(u64::from(at == place)).alias(*name));
            }
            for (at, name) in CLASSES.iter().enumerate() {
                columns.push(if at == place { class.clone() } else { lit(0u64) }.alias(*name));
            }
            all.push(side.table.clone().select(columns).context(DOING)?);
        }
        let all = union_of(all, DOING)?;
        let values = VALUES.map(column).to_vec();
        let counts = COUNTS.map(|name| sum(column(name)).alias(name));
        let classes = CLASSES.map(|name| max(column(name)).alias(name));
        let groups = all.aggregate(values, [counts, classes].concat()).context(DOING)?;
        let once = column(COUNTS[0]).eq(lit(1u64)).and(column(COUNTS[1]).eq(lit(1u64)));
        groups.filter(once).context(DOING)
    }

    async fn count(&self, on: &[String], stop: &CancelToken) -> Result<u64> {
        stop.check()?;
        self.of(on)?.count().await.context(DOING).map(|count| count as u64)
    }

    /// Counts the candidates of the pairs.
    async fn judge(
        &self,
        found: &mut PairedRows,
        k: u64,
        budget: &Arc<dyn Budget>,
        stop: &CancelToken,
    ) -> Result<()> {
        let mut held = Held::new(budget);
        let mut shared: HashMap<[u64; 2], u64> = HashMap::new();
        let mut unpaired: [HashMap<u64, u64>; 2] = [HashMap::new(), HashMap::new()];
        for (side, unpaired) in self.sides.iter().zip(&mut unpaired) {
            let class = row_hash(self.keys[0], side.quasi.iter().map(column).collect()).alias(CLASSES[0]);
            let rows = side.table.clone().select(vec![class, lit(1u64).alias(COUNTS[0])]).context(DOING)?;
            let rows =
                rows.aggregate(vec![column(CLASSES[0])], vec![sum(column(COUNTS[0]))]).context(DOING)?;
            each(rows, stop, |[class, rows]| *unpaired.entry(class).or_default() += rows).await?;
            held.at_least(2 * unpaired.capacity() * size_of::<[u64; 2]>())?;
        }
        let groups = self.of(&found.on)?;
        let classes = CLASSES.map(column).to_vec();
        each(groups.select(classes).context(DOING)?, stop, |classes| {
            *shared.entry(classes).or_default() += 1;
        })
        .await?;
        held.at_least((2 * unpaired[0].capacity() + 2 * shared.capacity()) * size_of::<[u64; 3]>())?;
        for (classes, rows) in &shared {
            for (class, unpaired) in classes.iter().zip(&mut unpaired) {
                unpaired.entry(*class).and_modify(|left| *left = left.saturating_sub(*rows));
            }
        }
        for (classes, rows) in &shared {
            let left = classes.iter().zip(&unpaired).map(|(class, unpaired)| unpaired.get(class).copied());
            let candidates = rows + left.map(Option::unwrap_or_default).min().unwrap_or_default();
            found.fewer_than_k += if candidates < k { *rows } else { 0 };
            found.alone += if candidates == 1 { *rows } else { 0 };
        }
        Ok(())
    }
}
