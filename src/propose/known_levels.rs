//! Proposes a hierarchy that comes with the tool, where the name of a column and its values agree.

use std::cmp::Reverse;
use std::iter::once;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::prelude::DataFrame;
use futures::StreamExt;

use super::facts::{ColumnFacts, is_time, narrow};
use super::names::{contains_name, is_like};
use super::steps::{Levels, OUTSIDE};
use crate::engine::functions::counted;
use crate::engine::{Context, column};
use crate::error::{Error, Result};
use crate::generalize::Generalizer;
use crate::generalize::known::ROW;
use crate::known::{KNOWN, KnownRow, OTHER};
use crate::plural::{grouped as digits_grouped, plural};
use crate::progress::CancelToken;
use crate::release::profile::grouped;

/// The least share of the rows with a value that a hierarchy must cover, in percent.
const COVERED: u64 = 90;
/// The least share of the distinct values that it must cover, in percent.
const COVERED_VALUES: u64 = 80;
/// Columns with more distinct values are not looked up.
const MOST: u64 = 10_000;
/// At most this many different whole numbers can be codes of any list.
const FEW: u64 = 10;

/// A hierarchy whose words are in the name of the column.
struct Candidate {
    row: &'static KnownRow,
    /// Level 1.
    level: Arc<dyn Generalizer>,
    /// Whether the column has the name of the hierarchy.
    is_named: bool,
    covered: Covered,
}

/// The part of a column that a hierarchy covers.
#[derive(Default)]
struct Covered {
    rows: u64,
    distinct: u64,
    /// Whether a covered value holds anything but digits.
    has_words: bool,
}

/// Returns the hierarchy that covers most rows of a column whose name agrees with it. Dates and
/// timestamps keep periods, which are finer.
///
/// # Errors
/// A data error when reading fails or memory runs out.
pub(super) async fn find(
    table: &DataFrame,
    facts: &ColumnFacts,
    stop: &CancelToken,
) -> Result<Option<Levels>> {
    let distinct = facts.distinct.filter(|distinct| facts.is_counted && (2..=MOST).contains(distinct));
    let (Some(distinct), false) = (distinct, is_time(&facts.data_type) || facts.is_dates_as_text) else {
        return Ok(None);
    };
    let mut candidates = candidates(facts)?;
    if candidates.is_empty() {
        return Ok(None);
    }
    let doing = "looking up values in known hierarchies";
    let values = narrow(table, [facts.name.as_str()])?;
    let values = values.filter(column(&facts.name).is_not_null()).context(doing)?;
    let mut stream =
        grouped(values, once(column(&facts.name)), doing)?.execute_stream().await.context(doing)?;
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.context(doing)?;
        let [values, rows] = batch.columns() else {
            return Err(Error::internal("propose: a GROUP BY by one column has not two columns"));
        };
        let rows = counted(rows)?;
        for candidate in &mut candidates {
            candidate.add(values, &rows)?;
        }
    }
    let enough = |candidate: &&Candidate| {
        let Covered { rows, has_words, .. } = candidate.covered;
        let says_more = has_words || distinct > FEW || candidate.is_named;
        let covers =
            |some: u64, all: u64, percent| u128::from(some) * 100 >= u128::from(all) * u128::from(percent);
        says_more
            && covers(rows, facts.known(), COVERED)
            && covers(candidate.covered.distinct, distinct, COVERED_VALUES)
    };
    let best = candidates.iter().filter(enough).min_by_key(|candidate| Reverse(candidate.covered.rows));
    Ok(best.map(|candidate| candidate.levels(facts, distinct)))
}

/// Returns the hierarchies whose words are in the name of the column and that read its type.
/// Integers are numbers unless the column has the name of the hierarchy.
fn candidates(facts: &ColumnFacts) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    for row in KNOWN.iter().filter(|row| is_like(&facts.name, row.words)) {
        let is_named = contains_name(&facts.name, row.doc.name);
        let levels = ROW.of(row.doc.name)?;
        let readable = levels.into_iter().next().filter(|l| l.output_type(&facts.data_type).is_ok());
        if let Some(level) = readable.filter(|_| is_named || !facts.data_type.is_integer()) {
            candidates.push(Candidate { row, level, is_named, covered: Covered::default() });
        }
    }
    Ok(candidates)
}

impl Candidate {
    /// Counts those of some distinct values that the hierarchy covers.
    fn add(&mut self, values: &ArrayRef, rows: &[u64]) -> Result<()> {
        let mut outside = self.level.uncovered(values)?.into_iter().peekable();
        let texts = cast(values, &DataType::Utf8View)
            .map_err(|_| Error::internal("propose: values cannot be cast to text"))?;
        let texts = texts.as_string_view();
        for (at, rows) in rows.iter().enumerate() {
            if outside.next_if_eq(&at).is_none() {
                self.covered.rows += rows;
                self.covered.distinct += 1;
                self.covered.has_words |= !texts.value(at).bytes().all(|byte| byte.is_ascii_digit());
            }
        }
        Ok(())
    }

    fn levels(&self, facts: &ColumnFacts, distinct: u64) -> Levels {
        let KnownRow { doc, source, .. } = self.row;
        let covered = &self.covered;
        let mut settings = vec![(ROW.doc.name, format!("{:?}", doc.name))];
        let mut why = format!("The hierarchy `{}` ({source}) covers ", doc.name);
        if covered.rows == facts.known() {
            why += &format!("all {}", plural(distinct, "distinct value", "distinct values"));
        } else {
            settings.push((OUTSIDE, "\"join\"".to_owned()));
            let percent = u128::from(covered.rows) * 100 / u128::from(facts.known().max(1));
            let rows = if facts.nulls == 0 { "rows" } else { "rows with a value" };
            let found = digits_grouped(covered.distinct);
            let distinct = plural(distinct, "distinct value", "distinct values");
            why += &format!(
                "{percent} % of the {rows} and {found} of {distinct}; the others join the label `{OTHER}`"
            );
        }
        Levels { settings, why: Some(why) }
    }
}
