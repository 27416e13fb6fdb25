//! `compare(release, release..., input => file..., [person => column], [row => column]..., [dates => column]..., [changes =>
//! column]..., [changes_unknown => true], [accept_new_people => true])`: are releases of the same people safe together?
//!
//! # Contract
//! Releases are folders or addresses in quotes, in the order in which they were published, each with its private record beside
//! it; `input` is given once for each, in the same order: a path, a glob or an address. `person` names people in all inputs, by
//! default the individual column of the policies; `row` tells the rows of a person apart, by default all columns that every
//! release shows; `dates`, `changes`, `changes_unknown` and `accept_new_people` are those of `kanon compare`. The *history* of a row is the class that shows it in each
//! release, or that none does. The result has a row for each set of releases that shows histories: `over` (TEXT: the
//! quasi-identifiers that the attacker knows, NULL for all), `shown` (TEXT: these releases), `histories`, `rows`, `fewest_people`
//! (of a history), `not_safe` (histories) and `rows_not_safe` (BIGINT). The releases are safe together if `not_safe` is 0 in
//! every row. An input that is not the one that a release was made of is an error, and so is what leaves the answer open.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;

use super::TableFunctionRow;
use super::arguments::Arguments;
use super::task::{Inputs, Rows, Task, plan_of};
use crate::doc::Doc;
use crate::engine::{Context, Resources, Run};
use crate::error::Error;
use crate::input::Input;
use crate::release::Place;
use crate::release::histories::{Compared, SamePeople, judge_together};

/// The row of [`TABLE_FUNCTIONS`](super::TABLE_FUNCTIONS) for this function.
pub const ROW: TableFunctionRow = TableFunctionRow { doc: DOC, plan };

const DOC: &Doc = &Doc {
    name: "compare",
    summary: "releases of the same people: which rows do too few people share in all of them?",
    parameters: "release, release..., input => file..., [person => column], [row => column]..., [dates => column]..., [changes => column]..., [changes_unknown => true], [accept_new_people => true]",
    example: "SELECT * FROM compare('march', 'june', input => 'march.csv', input => 'june.csv', row => 'visit')",
    paper: None,
};

fn plan(mut call: Arguments<'_>) -> Result<LogicalPlan> {
    call.file_is_allowed()?;
    let mut releases = Vec::new();
    while let Some(release) = call.next_text()? {
        releases.push(release);
    }
    let inputs = call.named_texts("input")?;
    if releases.len() != inputs.len() {
        return Err(call.refused(format!(
            "expected `input` once for each of the {} releases, found {}",
            releases.len(),
            inputs.len()
        )));
    }
    let person = call.named_texts("person")?;
    if person.len() > 1 {
        return Err(call.refused("`person` is given twice"));
    }
    let row = call.named_texts("row")?;
    let dates = call.named_texts("dates")?;
    let changes = call.named_texts("changes")?;
    let changes_are_unknown = call.named_bool("changes_unknown")?;
    let accept_new_people = call.named_bool("accept_new_people")?;
    call.finish(&["input", "person", "row", "dates", "changes", "changes_unknown", "accept_new_people"])?;
    let dates = if dates.is_empty() { None } else { Some(dates) };
    let same = SamePeople {
        person: person.into_iter().next(),
        row,
        dates,
        changes,
        changes_are_unknown,
        accept_new_people,
    };
    plan_of(Arc::new(Compare { releases, inputs, same }), Vec::new(), schema())
}

const COUNTS: [&str; 5] = ["histories", "rows", "fewest_people", "not_safe", "rows_not_safe"];

fn schema() -> SchemaRef {
    let texts = [Field::new("over", DataType::Utf8, true), Field::new("shown", DataType::Utf8, false)];
    let counts = COUNTS.map(|name| Field::new(name, DataType::Int64, false));
    Arc::new(Schema::new(texts.into_iter().chain(counts).collect::<Vec<_>>()))
}

#[derive(Debug)]
struct Compare {
    releases: Vec<String>,
    inputs: Vec<String>,
    same: SamePeople,
}

#[async_trait]
impl Task for Compare {
    fn name(&self) -> &'static str {
        DOC.name
    }

    fn says(&self) -> String {
        self.releases.join(", ")
    }

    async fn run(&self, inputs: &Inputs, rows: &Rows) -> crate::error::Result<()> {
        let (resources, stop) = (Resources::of_task(&inputs.context), inputs.stop.clone());
        let run = Run { resources, stop, ..Run::default() };
        let releases = self.releases.iter().zip(&self.inputs).map(|(release, input)| {
            let input = Input::find_all(std::slice::from_ref(input), &run.stop)?;
            Ok(Compared { place: Place::at(release, None)?, input: Some(input.into()) })
        });
        let releases = releases.collect::<crate::error::Result<Vec<_>>>()?;
        let judged = judge_together(&run, &releases, &self.same).await?;
        let judged = judged.ok_or_else(|| Error::internal("compare: releases without inputs"))?;
        if let Some(why) = judged.cannot_tell.first() {
            return Err(Error::unmet(why.clone()));
        }
        let (mut over, mut shown, mut counts) =
            (Vec::new(), Vec::new(), [const { Vec::new() }; COUNTS.len()]);
        for (known, verdict) in &judged.verdicts {
            for (pattern, found) in &verdict.patterns {
                let names = self.releases.iter().enumerate().filter(|(at, _)| pattern & (1 << at) != 0);
                over.push(known.as_ref().map(|known| known.join(", ")));
                shown.push(names.map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", "));
                let found = [found.histories, found.rows, found.fewest, found.failed, found.rows_failed];
                for (column, count) in counts.iter_mut().zip(found) {
                    column.push(i64::try_from(count).map_err(Error::internal)?);
                }
            }
        }
        let texts: [ArrayRef; 2] = [Arc::new(StringArray::from(over)), Arc::new(StringArray::from(shown))];
        let counts = counts.map(|column| Arc::new(Int64Array::from(column)) as ArrayRef);
        let columns = texts.into_iter().chain(counts).collect();
        rows.send(RecordBatch::try_new(schema(), columns).context("comparing releases")?).await
    }
}
