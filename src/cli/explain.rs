//! `kanon explain`: what the record of a release says, as a page for people who decide about it.

use std::path::PathBuf;

use clap::Args;

use super::Done;
use super::labels_for_all::labels_for_all;
use super::numbers::{grouped, percent, plural, reached, recorded_text, rows};
use crate::engine::Run;
use crate::error::{Error, Result};
use crate::input::address::local_path;
use crate::measure::RISKS;
use crate::model::{MODELS, delta_presence, k_anonymity};
use crate::release::kind::describe::{Describe, Labels, cell, cells};
use crate::release::publish::record::{ColumnRecord, ModelRecord, PublicRecord, Statement};
use crate::release::publish::statement::OTHERS;
use crate::role::Role;

/// Explain what a release shows and promises, for people who decide.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon explain patients_safe
  kanon explain patients_safe > patients_safe.md
  kanon explain patients_safe --format json

The page is Markdown and made from the public record; only a label that all rows share is read from them. It says
what the record says: kanon verify checks whether the rows agree with it.")]
pub(crate) struct Explain {
    /// The folder of a release.
    out: PathBuf,
}

impl Explain {
    #[allow(clippy::unused_async, reason = "as the other commands")]
    pub(super) async fn run(self, _run: &Run) -> Result<Done> {
        let out = local_path(&self.out)?;
        let record = PublicRecord::read(&out)?;
        let labels = labels_for_all(&out, &record);
        let text = page(&self.out.display().to_string(), &record, &labels);
        let json = serde_json::to_value(&record)
            .map_err(|_| Error::internal("explain: the public record cannot be serialized"))?;
        Ok(Done { text, json, holds: true })
    }
}

/// Returns the page of a release; `labels` are those that all values of a column have.
fn page(out: &str, record: &PublicRecord, labels: &Labels) -> String {
    let people = if record.individuals.is_some() { "people" } else { "rows" };
    let mut page = format!("# What `{out}` shows, and what it does not\n\n");
    let counted = match record.individuals {
        Some(individuals) => {
            format!("{} of {}", rows(record.rows()), plural(individuals, "person", "people"))
        }
        None => format!("{}, each of which counts as a person,", rows(record.rows())),
    };
    let (groups, quasi) = (plural(record.classes, "group", "groups"), cells(record.recoding.columns()));
    let shows = record.recoding.describe();
    let facts = shows.facts();
    page += &shows.introduction(&counted, &groups, &quasi, people);
    if let Some(day) = record.statement.as_ref().and_then(|statement| statement.released_on.as_ref()) {
        page += &format!("- Released on {day}, as the publisher states.\n");
    }
    page += &format!("- Made by {}", record.tool);
    page += &match &record.statement {
        Some(Statement { method, objective, .. }) => format!(
            ". The publisher states that the method was `{method}`, which keeps the loss `{objective}` small.\n"
        ),
        None => ".\n".to_owned(),
    };
    page += "\n## What is promised\n\n";
    record.models.iter().for_each(|model| page += &promise(model, people));
    let epsilon = record.recoding.epsilon();
    if let Some(epsilon) = &epsilon {
        let row = if record.individuals.is_some() { "person's row" } else { "row" };
        page += &format!(
            "- Differential privacy with epsilon {epsilon}: whatever an attacker knows, replacing one {row} by any other would have \
             changed the probability of this release by a factor of at most e^{epsilon}. The number of rows is public.\n"
        );
    }
    page += &shows.promise(people).unwrap_or_default();
    // The sum of several epsilons is told below.
    if epsilon.is_none() {
        page += &alone(record, people);
    }
    if let Some(statement) = &record.statement {
        page += &assertions(statement, record, people);
    }
    page += "\n## What was done to each column\n\n| column | role | what it shows |\n|---|---|---|\n";
    for column in record.columns() {
        page += &format!("| {} | {} | {} |\n", cell(&column.name), column.role, shown(column, shows, labels));
    }
    page += facts.page.note;
    page += &left_out(record.statement.as_ref());
    let (finds, found) = (facts.page.finds, facts.page.found);
    page += &format!(
        "\n## What an attacker can learn\n\nSomebody who knows all quasi-identifiers of a person {finds} {people}{found}. Measured in \
         {people}:\n\n"
    );
    for row in RISKS {
        if let Some(value) = record.risk.get(row.doc.name) {
            let value = if row.is_share { percent(*value) } else { format!("{value:.0}") };
            let constants = row.parameters.iter().filter_map(|parameter| {
                parameter.default().map(|constant| format!(" ({} = {constant})", parameter.name))
            });
            let summary = in_words(row.doc.summary, people, facts.page.equal_rows_words);
            page += &format!("- {value}: {summary}{}\n", constants.collect::<String>());
        }
    }
    let is_beside = |column: &&ColumnRecord| column.role != Role::Quasi.word() && !facts.has_exact_quasi;
    let as_is = cells(record.columns().filter(is_beside).map(|column| &column.name));
    if !as_is.is_empty() {
        page += &format!(
            "- {} of {} {people} are unique if the attacker also knows {}, where a missing value counts as a value{}\n",
            grouped(record.unique.count),
            grouped(record.unique.of),
            as_is,
            match record.individuals {
                Some(individuals) if individuals < record.unique.of => ", and a row without a person as one",
                _ => "",
            }
        );
    }
    for one in record.homogeneous.iter().filter(|one| one.classes > 0) {
        let (share, found) = if one.classes == 1 { ("shares", "its") } else { ("share", "their") };
        page += &format!(
            "- {} {share} one value of {}: it is known of {} {people} as soon as {found} group is found\n",
            plural(one.classes, "whole group", "whole groups"),
            cell(&one.column),
            grouped(one.individuals)
        );
    }
    let in_rows = match record.individuals {
        Some(_) if facts.has_exact_quasi => "",
        Some(_) => {
            " Without the input, `kanon verify`, `kanon risk` and `kanon link` count rows, because no released row says whose it \
             is: their figures differ from those of this page."
        }
        None => "",
    };
    let bounds_membership = record.models.iter().any(|model| model.model == delta_presence::ROW.doc.name);
    let beyond = if bounds_membership { ", beyond what `delta_presence` bounds" } else { "" };
    let not_promised = match epsilon {
        Some(_) => NOT_PROMISED_WITH_NOISE.to_owned(),
        None => {
            let besides = facts.page.not_promised;
            format!("- That nobody learns whether a person is in the data{beyond}{NOT_PROMISED}{besides}")
        }
    };
    page + "\n## What is not promised\n\n"
        + &not_promised
        + &format!(
            "\n## What this page does not check\n\nIt repeats the record. `kanon verify {out}` checks the released rows against it, and with \
         `--input` every row against the input.{in_rows} No program can check whether the roles are right: whether others know a column \
         that is called sensitive or insensitive here.\n"
        )
}

const NOT_PROMISED: &str = ".
- Anything against somebody who knows more than the quasi-identifiers, can rule out sensitive values, or compares this release with
  another one of the same people.
- How many rows a person has, where people have several.
- That a law is satisfied. Somebody with legal responsibility decides that.
";

const NOT_PROMISED_WITH_NOISE: &str =
    "- That several releases of the same people together promise as much as one: their epsilons add up.
- That nothing is learned about a person from what is true of many people: the data are released for that.
- That a law is satisfied. Somebody with legal responsibility decides that.
";

/// Returns a summary in the words of the page: for individuals `people` or rows, and these for a class and for classes.
fn in_words(summary: &str, people: &str, [class, classes]: [&str; 2]) -> String {
    let words = [("classes", classes), ("class", class), ("individuals", people), ("individual", "person")];
    words.iter().fold(summary.to_owned(), |text, (word, ours)| text.replace(word, ours))
}

/// Returns a model's promise as a line of a list.
fn promise(model: &ModelRecord, people: &str) -> String {
    let summary = MODELS.iter().find(|row| row.doc.name == model.model).map_or("", |row| row.doc.summary);
    let of = model.column().map(|column| format!(" of {}", cell(&column.to_string()))).unwrap_or_default();
    let over = model.quasi.as_ref().map(|quasi| format!(" over {} alone", cells(quasi))).unwrap_or_default();
    let than =
        model.compared_with.as_ref().map(|with| format!(", compared with the {with}")).unwrap_or_default();
    format!(
        "- `{}`{of}{over}: {}. Required: {}; the worst group reaches {}{than}.\n",
        model.model,
        in_words(summary, people, ["group", "groups"]),
        reached(model.required),
        recorded_text(model)
    )
}

/// Returns, as a line of a list, that the promises hold for one release of the same people.
fn alone(record: &PublicRecord, people: &str) -> String {
    let is_k = |model: &&ModelRecord| model.model == k_anonymity::ROW.doc.name && model.quasi.is_none();
    let smallest = record.models.iter().find(is_k).and_then(|model| model.reached);
    let among = match smallest {
        Some(k) => format!("the {} {people} of a group", reached(k)),
        None => format!("the {people} of a group"),
    };
    format!(
        "- All of this holds if this is the only release of these people. Somebody who also has another one intersects its groups with \
         those of this one: {among} can become 1.\n"
    )
}

/// Returns what the publisher asserts, as lines of a list.
fn assertions(statement: &Statement, record: &PublicRecord, people: &str) -> String {
    let limit = limit_text(statement);
    let mut lines = match record.recoding.has_row_per_individual() {
        true => format!("- None of the {people} is left out.\n"),
        false => format!(
            "- The publisher states that at most {limit} of the {people} are left out because no group can hold them.\n"
        ),
    };
    if statement.rows_are_individuals {
        lines += "- The publisher states that each row is another person. Where that is wrong, nothing above holds.\n";
    }
    if !statement.accept_homogeneity.is_empty() {
        lines += &format!(
            "- The publisher states that all {people} of a group may share one value of {}.\n",
            cells(&statement.accept_homogeneity)
        );
    }
    if !statement.allow_unique.is_empty() {
        lines += &format!(
            "- The publisher states that few {people} may share a value of {}, because no outsider knows these values.\n",
            cells(&statement.allow_unique)
        );
    }
    lines
}

/// Returns the share that may be suppressed as a percentage, with up to six decimals.
pub(super) fn limit_text(statement: &Statement) -> String {
    let exact = |limit: f64| format!("{:.6}", limit * 100.0);
    let text = statement.suppression_limit.parse().map(exact).unwrap_or_default();
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns which columns of the input are not in the release.
fn left_out(statement: Option<&Statement>) -> String {
    let Some(statement) = statement else {
        return "Columns of the input that are not listed were left out.\n".to_owned();
    };
    let mut text = String::new();
    for (role, of_role) in &statement.left_out {
        let names = of_role.names.as_ref().map(|names| format!(": {}", cells(names)));
        let role = if role == OTHERS { "without a role" } else { &format!("with the role {role}") };
        let columns = plural(of_role.columns as u64, "column", "columns");
        text += &format!("- {columns} {role}{}\n", names.unwrap_or_default());
    }
    match text.as_str() {
        "" => "The publisher states that no column of the input was left out.\n".to_owned(),
        _ => format!("Left out of the release, as the publisher states:\n\n{text}"),
    }
}

/// Returns what a column shows.
fn shown(column: &ColumnRecord, shows: &dyn Describe, labels: &Labels) -> String {
    let since =
        column.days_since.as_ref().map(|other| format!("days since {}; ", cell(other))).unwrap_or_default();
    match column.role == Role::Quasi.word() {
        true => since + &shows.column(&column.name, labels),
        false => since + "every value as it is",
    }
}
