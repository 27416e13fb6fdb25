//! `kanon explain`: what the record of a release says, as a page for people who decide about it.

use std::path::PathBuf;

use clap::Args;

use super::Done;
use super::numbers::{grouped, percent, plural, reached, rows};
use super::release::level_text;
use crate::engine::Run;
use crate::error::{Error, Result};
use crate::measure::RISKS;
use crate::model::MODELS;
use crate::release::publish::record::{
    ColumnRecord, LevelRecord, ModelRecord, PublicRecord, RecodingRecord, Regions, RegionsRecord,
};
use crate::role::Role;

/// Explain what a release shows and promises, for people who decide.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon explain patients_safe
  kanon explain patients_safe > patients_safe.md
  kanon explain patients_safe --format json

The page is Markdown and made from the public record alone. It says what the record says: kanon verify checks
whether the rows agree with it.")]
pub(crate) struct Explain {
    /// The folder of a release.
    out: PathBuf,
}

impl Explain {
    #[allow(clippy::unused_async, reason = "as the other commands")]
    pub(super) async fn run(self, _run: &Run<'_>) -> Result<Done> {
        let record = PublicRecord::read(&self.out)?;
        let text = page(&self.out.display().to_string(), &record);
        let json = serde_json::to_value(&record)
            .map_err(|_| Error::internal("explain: the public record cannot be serialized"))?;
        Ok(Done { text, json, holds: true })
    }
}

/// Returns the page of a release.
fn page(out: &str, record: &PublicRecord) -> String {
    let people = if record.individuals.is_some() { "people" } else { "rows" };
    let mut page = format!("# What `{out}` shows, and what it does not\n\n");
    page += &format!(
        "{} in {} of rows that look the same ({}), made by {}.\n",
        match record.individuals {
            Some(individuals) =>
                format!("{} of {}", rows(record.rows()), plural(individuals, "person", "people")),
            None => format!("{}, each counted as a person", rows(record.rows())),
        },
        plural(record.classes, "group", "groups"),
        record.recoding.columns().join(", "),
        record.tool,
    );
    page += "\n## What is promised\n\n";
    record.models.iter().for_each(|model| page += &promise(model, people));
    page += "\n## What was done to each column\n\n| column | role | what it shows |\n|---|---|---|\n";
    for column in record.columns() {
        page +=
            &format!("| {} | {} | {} |\n", cell(&column.name), column.role, shown(column, &record.recoding));
    }
    page += "\nColumns of the input that are not listed were left out.\n\n## What an attacker can learn\n\n";
    page += &format!(
        "Somebody who knows all quasi-identifiers of a person finds a group of rows; every group has the size that is promised above. \
         Measured on the {}:\n\n",
        record.counted_in
    );
    for row in RISKS {
        if let Some(value) = record.risk.get(row.doc.name) {
            let value = if row.is_share { percent(*value) } else { format!("{value:.0}") };
            page += &format!("- {value}: {}\n", row.doc.summary);
        }
    }
    page += &format!(
        "- {} of {} {people} are unique together with the columns that are released as they are: who knows those as well finds them\n",
        grouped(record.unique.count),
        grouped(record.unique.of)
    );
    for one in record.homogeneous.iter().filter(|one| one.classes > 0) {
        page += &format!(
            "- in {} all {people} share one value of {}: it is known of {} {people} as soon as their group is found\n",
            plural(one.classes, "group", "groups"),
            cell(&one.column),
            grouped(one.individuals)
        );
    }
    page + NOT_PROMISED
        + &format!(
            "\n## What this page does not check\n\nIt repeats the record. `kanon verify {out}` checks the released rows against it, and with \
         `--input` every row against the input. Whether the roles are right, and whether a column calls itself insensitive that others \
         know, no program can check.\n"
        )
}

const NOT_PROMISED: &str = "
## What is not promised

- That nobody learns whether a person is in the data.
- Anything against somebody who knows more than the quasi-identifiers, can rule out sensitive values, or compares this release with
  another one of the same people.
- How many rows a person has, where people have several.
- That a law is satisfied. Somebody with legal responsibility decides that.
";

/// Returns a model's promise as a line of a list.
fn promise(model: &ModelRecord, people: &str) -> String {
    let summary = MODELS.iter().find(|row| row.doc.name == model.model).map_or("", |row| row.doc.summary);
    let of = model.sensitive.as_ref().map(|column| format!(" of {}", cell(column))).unwrap_or_default();
    let than =
        model.compared_with.as_ref().map(|with| format!(", compared with the {with}")).unwrap_or_default();
    format!(
        "- `{}`{of}: {summary}, counted in {people}. Required: {}; the worst group reaches {}{than}.\n",
        model.model,
        reached(model.required),
        reached(model.reached)
    )
}

/// Returns what a column shows.
fn shown(column: &ColumnRecord, recoding: &RecodingRecord) -> String {
    let since =
        column.days_since.as_ref().map(|other| format!("days since {}; ", cell(other))).unwrap_or_default();
    if column.role != Role::Quasi.word() {
        return since + "as it is";
    }
    let shows = match recoding {
        RecodingRecord::Levels(levels) => match levels.iter().find(|level| level.column == column.name) {
            Some(level) => of_level(level),
            None => "unknown".to_owned(),
        },
        RecodingRecord::Regions(regions) => of_region(&column.name, regions),
    };
    since + &shows
}

fn of_level(level: &LevelRecord) -> String {
    let LevelRecord { column, level: at, of, .. } = level;
    let text = level_text(level);
    let text = text.strip_prefix(column.as_str()).unwrap_or(&text).trim();
    match at {
        0 => format!("{text}: every value (level 0 of {of})"),
        _ => format!("{text}, in every row (level {at} of {of})"),
    }
}

fn of_region(name: &str, regions: &RegionsRecord) -> String {
    let region = regions.columns.iter().find(|region| region.column == name);
    match region.map(|region| region.shows) {
        Some(Regions::Intervals) => "an interval of its own in each group, or `*` for anything",
        Some(Regions::Labels) => "a value, a set of values or a label in each group, or `*` for anything",
        None => "unknown",
    }
    .to_owned()
}

/// Writes a column's name in a table of Markdown.
fn cell(name: &str) -> String {
    format!("`{}`", name.replace('|', "\\|").replace('`', "'"))
}
