//! What `kanon explain` answers: what the record of a release says, as a page for people who decide about it.

use std::path::Path;

use serde::Serialize;

use super::Answer;
use super::sentences::{limit_text, reached, recorded_text};
use crate::error::Result;
use crate::measure::RISKS;
use crate::model::{self, delta_presence, k_anonymity};
use crate::plural::{grouped, percent, plural, rows};
use crate::progress::CancelToken;
use crate::release::kind::describe::{Describe, Labels, cell, cells};
use crate::release::labels_for_all::labels_for_all;
use crate::release::publish::local_release::{LocalRelease, Needed};
use crate::release::publish::record::{ColumnRecord, ModelRecord, PublicRecord, Statement};
use crate::release::publish::statement::OTHERS;
use crate::render::{Document, Table};
use crate::role::Role;
use crate::store::Address;

/// The record of a release, and what it shows.
#[derive(Debug, Clone, Serialize)]
pub struct ExplainAnswer {
    /// The public record.
    #[serde(flatten)]
    pub public: PublicRecord,
    /// The folder of the release, as it was named.
    #[serde(skip)]
    #[doc(hidden)]
    pub folder: String,
    /// The label that all values of a column have, by its name, where that is not `*`.
    #[serde(skip)]
    #[doc(hidden)]
    pub labels: Labels,
}

/// Reads the record of the release in a folder, a path or an address of a store, and what all rows of it share.
///
/// # Errors
/// A data error where there is no record, or where the store fails; an unmet error for a damaged one.
pub fn explain(folder: &Path) -> Result<ExplainAnswer> {
    let out = Address::parse(folder)?;
    let release = LocalRelease::read_at(&out, Needed::FirstRows, &CancelToken::default())?;
    let public = PublicRecord::read(release.out())?;
    let labels = labels_for_all(release.out(), &public);
    Ok(ExplainAnswer { public, folder: out.to_string(), labels })
}

impl Answer for ExplainAnswer {
    fn document(&self) -> Document {
        let Self { public: record, folder, labels } = self;
        let people = if record.individuals.is_some() { "people" } else { "rows" };
        let shows = record.recoding.describe();
        let mut page = Document::default();
        page.heading(1, format!("What `{folder}` shows, and what it does not"));
        add_introduction(&mut page, record, people);

        page.heading(2, "What is promised");
        promises(record, people).into_iter().for_each(|promise| page.point(promise));

        page.heading(2, "What was done to each column");
        let mut columns = Table::default();
        for head in ["column", "role", "what it shows"] {
            columns = columns.texts(head, 1, 0);
        }
        for column in record.columns() {
            columns.row([cell(&column.name), column.role.clone(), shown(column, shows, labels)]);
        }
        page.table(columns);
        page.paragraph(shows.facts().page.note);
        add_left_out(&mut page, record.statement.as_ref());

        page.heading(2, "What an attacker can learn");
        add_risks(&mut page, record, people);

        page.heading(2, "What is not promised");
        not_promised(record).into_iter().for_each(|promise| page.point(promise));

        page.heading(2, "What this page does not check");
        page.paragraph(unchecked(record, folder));
        page
    }
}

/// Adds what the release holds, and who made it.
fn add_introduction(page: &mut Document, record: &PublicRecord, people: &str) {
    let counted = match record.individuals {
        Some(individuals) => {
            format!("{} of {}", rows(record.rows()), plural(individuals, "person", "people"))
        }
        None => format!("{}, each of which counts as a person,", rows(record.rows())),
    };
    let (groups, quasi) = (plural(record.classes, "group", "groups"), cells(record.recoding.columns()));
    page.paragraph(record.recoding.describe().introduction(&counted, &groups, &quasi, people));
    if let Some(day) = record.statement.as_ref().and_then(|statement| statement.released_on.as_ref()) {
        page.point(format!("Released on {day}, as the publisher states."));
    }
    page.point(match &record.statement {
        Some(Statement { method, objective, .. }) => format!(
            "Made by {}. The publisher states that the method was `{method}`, which keeps the loss `{objective}` small.",
            record.tool
        ),
        None => format!("Made by {}.", record.tool),
    });
}

/// Returns what is promised, in whole sentences.
fn promises(record: &PublicRecord, people: &str) -> Vec<String> {
    let mut promises: Vec<String> = record.models.iter().map(|model| promise(model, people)).collect();
    let epsilon = record.recoding.epsilon();
    if let Some(epsilon) = &epsilon {
        let row = if record.individuals.is_some() { "person's row" } else { "row" };
        promises.push(format!(
            "Differential privacy with epsilon {epsilon}: whatever an attacker knows, replacing one {row} by any other would have \
             changed the probability of this release by a factor of at most e^{epsilon}. The number of rows is public."
        ));
    }
    promises.extend(record.recoding.describe().promise(people));
    // The sum of several epsilons is told below.
    if epsilon.is_none() {
        promises.push(alone(record, people));
    }
    if !record.follows().is_empty() {
        let count = record.follows().len() as u64;
        promises.push(format!(
            "The same of this release together with {} of the same people before it: whoever has all of them learns from the groups in which \
             a row is shown, and from those in which it is not, no more than one group alone tells.",
            plural(count, "release", "releases")
        ));
    }
    if let Some(statement) = &record.statement {
        promises.extend(assertions(statement, record, people));
    }
    promises
}

/// Adds the risks, and what else can be learnt.
fn add_risks(page: &mut Document, record: &PublicRecord, people: &str) {
    let facts = record.recoding.describe().facts();
    let (finds, found) = (facts.page.finds, facts.page.found);
    page.paragraph(format!(
        "Somebody who knows all quasi-identifiers of a person {finds} {people}{found}. Measured in {people}:"
    ));
    for row in RISKS {
        let Some(value) = record.risk.get(row.doc.name) else { continue };
        let value = if row.is_share { percent(*value) } else { format!("{value:.0}") };
        let constants = row.parameters.iter().filter_map(|parameter| {
            parameter.default().map(|constant| format!(" ({} = {constant})", parameter.name))
        });
        let summary = in_words(row.doc.summary, people, facts.page.equal_rows_words);
        page.point(format!("{value}: {summary}{}", constants.collect::<String>()));
    }
    let is_beside = |column: &&ColumnRecord| column.role != Role::Quasi.word() && !facts.has_exact_quasi;
    let as_is = cells(record.columns().filter(is_beside).map(|column| &column.name));
    if !as_is.is_empty() {
        page.point(format!(
            "{} of {} {people} are unique if the attacker also knows {as_is}, where a missing value counts as a value{}",
            grouped(record.unique.count),
            grouped(record.unique.of),
            match record.individuals {
                Some(individuals) if individuals < record.unique.of => ", and a row without a person as one",
                _ => "",
            }
        ));
    }
    for one in record.homogeneous.iter().filter(|one| one.classes > 0) {
        let (share, found) = if one.classes == 1 { ("shares", "its") } else { ("share", "their") };
        page.point(format!(
            "{} {share} one value of {}: it is known of {} {people} as soon as {found} group is found",
            plural(one.classes, "whole group", "whole groups"),
            cell(&one.column),
            grouped(one.individuals)
        ));
    }
}

/// Returns what is not promised, in whole sentences.
fn not_promised(record: &PublicRecord) -> Vec<String> {
    const NO_LAW: &str = "That a law is satisfied. Somebody with legal responsibility decides that.";
    let sentences = match record.recoding.epsilon() {
        Some(_) => vec![
            "That several releases of the same people together promise as much as one: their epsilons add up.",
            "That nothing is learned about a person from what is true of many people: the data are released for that.",
            NO_LAW,
        ],
        None => vec![
            match record.follows() {
                [_, ..] => {
                    "Anything against somebody who knows more than the quasi-identifiers, can rule out sensitive values, or compares this \
                     release with\n  another one of the same people than those that it follows and that follow it."
                }
                [] => {
                    "Anything against somebody who knows more than the quasi-identifiers, can rule out sensitive values, or compares this \
                     release with\n  another one of the same people."
                }
            },
            "How many rows a person has, where people have several.",
            NO_LAW,
        ],
    };
    let sentences = sentences.into_iter().map(str::to_owned);
    if record.recoding.epsilon().is_some() {
        return sentences.collect();
    }
    let bounds_membership = record.models.iter().any(|model| model.model == delta_presence::ROW.doc.name);
    let beyond = if bounds_membership { ", beyond what `delta_presence` bounds" } else { "" };
    let membership = format!("That nobody learns whether a person is in the data{beyond}.");
    let besides = record.recoding.describe().facts().page.not_promised.map(str::to_owned);
    std::iter::once(membership).chain(sentences).chain(besides).collect()
}

/// Returns what the page does not check.
fn unchecked(record: &PublicRecord, folder: &str) -> String {
    let in_rows = match record.individuals {
        Some(_) if record.recoding.describe().facts().has_exact_quasi => "",
        Some(_) => {
            " Without the input, `kanon verify`, `kanon risk` and `kanon link` count rows, because no released row says whose it \
             is: their figures differ from those of this page."
        }
        None => "",
    };
    format!(
        "It repeats the record. `kanon verify {folder}` checks the released rows against it, and with `--input` every row against the \
         input.{in_rows} No program can check whether the roles are right: whether others know a column that is called sensitive or \
         insensitive here."
    )
}

/// Returns a summary in the words of the page: for individuals `people` or rows, and these for a class and for classes.
fn in_words(summary: &str, people: &str, [class, classes]: [&str; 2]) -> String {
    let words = [("classes", classes), ("class", class), ("individuals", people), ("individual", "person")];
    words.iter().fold(summary.to_owned(), |text, (word, ours)| text.replace(word, ours))
}

/// Returns a model's promise.
fn promise(model: &ModelRecord, people: &str) -> String {
    let summary = model::all().find(|row| row.doc.name == model.model).map_or("", |row| row.doc.summary);
    let of = model.column().map(|column| format!(" of {}", cell(&column.to_string()))).unwrap_or_default();
    let over = model.quasi.as_ref().map(|quasi| format!(" over {} alone", cells(quasi))).unwrap_or_default();
    let than =
        model.compared_with.as_ref().map(|with| format!(", compared with the {with}")).unwrap_or_default();
    format!(
        "`{}`{of}{over}: {}. Required: {}; the worst group reaches {}{than}.",
        model.model,
        in_words(summary, people, ["group", "groups"]),
        model.required,
        recorded_text(model)
    )
}

/// Returns that the promises hold for one release of the same people.
fn alone(record: &PublicRecord, people: &str) -> String {
    let is_k = |model: &&ModelRecord| model.model == k_anonymity::ROW.doc.name && model.quasi.is_none();
    let smallest = record.models.iter().find(is_k).and_then(|model| model.reached);
    let among = match smallest {
        Some(k) => format!("the {} {people} of a group", reached(k)),
        None => format!("the {people} of a group"),
    };
    format!(
        "All of this holds if this is the only release of these people. Somebody who also has another one intersects its groups with \
         those of this one: {among} can become 1."
    )
}

/// Returns what the publisher asserts, in whole sentences.
fn assertions(statement: &Statement, record: &PublicRecord, people: &str) -> Vec<String> {
    let limit = limit_text(statement);
    let mut assertions = vec![match record.recoding.has_row_per_individual() {
        true => format!("None of the {people} is left out."),
        false => format!(
            "The publisher states that at most {limit} of the {people} are left out because no group can hold them."
        ),
    }];
    if statement.rows_are_individuals {
        let text =
            "The publisher states that each row is another person. Where that is wrong, nothing above holds.";
        assertions.push(text.to_owned());
    }
    if !statement.accept_homogeneity.is_empty() {
        assertions.push(format!(
            "The publisher states that all {people} of a group may share one value of {}.",
            cells(&statement.accept_homogeneity)
        ));
    }
    if !statement.allow_unique.is_empty() {
        assertions.push(format!(
            "The publisher states that few {people} may share a value of {}, because no outsider knows these values.",
            cells(&statement.allow_unique)
        ));
    }
    assertions
}

/// Adds which columns of the input are not in the release.
fn add_left_out(page: &mut Document, statement: Option<&Statement>) {
    let Some(statement) = statement else {
        return page.paragraph("Columns of the input that are not listed were left out.");
    };
    if statement.left_out.is_empty() {
        return page.paragraph("The publisher states that no column of the input was left out.");
    }
    page.paragraph("Left out of the release, as the publisher states:");
    for (role, of_role) in &statement.left_out {
        let names = of_role.names.as_ref().map(|names| format!(": {}", cells(names)));
        let role = if role == OTHERS { "without a role" } else { &format!("with the role {role}") };
        let columns = plural(of_role.columns as u64, "column", "columns");
        page.point(format!("{columns} {role}{}", names.unwrap_or_default()));
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
