//! `docs/reference.md` is made from the tables, the functions' documentation and the commands'
//! help, and is current. `KANON_REFERENCE_UPDATE=1` writes it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

mod global_options;
mod json_outputs;
mod kinds;
mod real_records;
mod records;
mod type_docs;

use std::collections::BTreeSet;
use std::fmt::Write;

use datafusion::config::ExtensionOptions;
use datafusion::logical_expr::Documentation;
use datafusion::prelude::SessionContext;
use datafusion_kanon::internals::doc::Doc;
use datafusion_kanon::internals::error::ErrorCode;
use datafusion_kanon::internals::generalize::{GENERALIZERS, merge};
use datafusion_kanon::internals::known::KNOWN;
use datafusion_kanon::internals::measure::LOSSES;
use datafusion_kanon::internals::method::METHODS;
use datafusion_kanon::internals::method::lattice::EFFORT;
use datafusion_kanon::internals::model::MODELS;
use datafusion_kanon::internals::parameter::Parameter;
use datafusion_kanon::internals::policy::key_tables::{COLUMN, HISTORY, INPUT, OUTPUT, REQUIRE, TOP};
use datafusion_kanon::internals::sql::k_anonymity_to_group_by;
use datafusion_kanon::internals::sql::options::KanonOptions;
use datafusion_kanon::internals::sql::table::TABLE_FUNCTIONS;

use crate::command::Place;
use crate::house::root;
use global_options::Help;

const HEAD: &str = "\
# Reference

Made from the tables of the code by `KANON_REFERENCE_UPDATE=1 cargo test --test it reference`; a test holds it current.
Each feature has a page with examples in [sql/](../sql/), which the tests run.

";

/// The commands in the order of `kanon --help`.
const COMMANDS: &[&str] = &[
    "init",
    "check",
    "search",
    "release",
    "verify",
    "explain",
    "risk",
    "link",
    "compare",
    "plan",
    "sql",
    "hierarchy",
    "list",
    "generate",
];

/// Commands of a command, each listed after it.
const NESTED: &[&str] = &["hierarchy check"];

fn of_function(page: &mut String, documentation: &Documentation) {
    let example = documentation.sql_example.as_deref().unwrap_or_default();
    let example = example.trim().trim_start_matches("```sql").trim_end_matches("```").trim();
    writeln!(page, "- `{}`: {}.", documentation.syntax_example, documentation.description.trim()).unwrap();
    writeln!(page, "  Example: `{example}`").unwrap();
}

fn of_row(page: &mut String, doc: &Doc) {
    let parameters = if doc.parameters.is_empty() { String::new() } else { format!("({})", doc.parameters) };
    let paper = doc.paper.map(|paper| format!(" ({paper})")).unwrap_or_default();
    writeln!(page, "- `{}{parameters}`: {}{paper}.", doc.name, doc.summary).unwrap();
}

/// The documentation of this crate's functions by name.
fn functions() -> (Vec<Documentation>, Vec<Documentation>) {
    let (plain, ours) = (SessionContext::new(), SessionContext::new());
    datafusion_kanon::internals::sql::register_all(&ours).unwrap();
    let (plain, ours) = (plain.state(), ours.state());
    let scalar: BTreeSet<_> =
        ours.scalar_functions().keys().filter(|name| !plain.scalar_functions().contains_key(*name)).collect();
    let aggregate: BTreeSet<_> = ours
        .aggregate_functions()
        .keys()
        .filter(|name| !plain.aggregate_functions().contains_key(*name))
        .collect();
    let scalar = scalar.into_iter().filter_map(|name| ours.scalar_functions()[name].documentation().cloned());
    let aggregate =
        aggregate.into_iter().filter_map(|name| ours.aggregate_functions()[name].documentation().cloned());
    (scalar.collect(), aggregate.collect())
}

fn of_parameters(page: &mut String, parameters: &[Parameter]) {
    for parameter in parameters {
        let Parameter { name, kind, summary, .. } = parameter;
        let default = parameter.default().map_or(String::new(), |setting| format!(" (default {setting})"));
        writeln!(page, "  `{name}`: {summary}, {}{default}.", kind.range()).unwrap();
    }
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    let (scalar, aggregate) = functions();
    page += "## Scalar functions\n\n";
    scalar.iter().for_each(|function| of_function(&mut page, function));
    page += "\n## Aggregates\n\nA model returns what its worst class reaches, a risk measure its number; no rows give NULL.\n\n";
    aggregate.iter().for_each(|function| of_function(&mut page, function));
    page += "\n## Table functions\n\nA table is a name, a CTE, a subquery in parentheses, another table function, or the name of a \
             file in quotes where `kanon.allow_files` is true.\n\n";
    for row in TABLE_FUNCTIONS {
        of_row(&mut page, row.doc);
        writeln!(page, "  Example: `{}`", row.doc.example).unwrap();
    }
    page += "\n## The optimizer's rule\n\n";
    writeln!(
        page,
        "- `{}`: aggregates become GROUP BYs; EXPLAIN VERBOSE shows it under this name.",
        k_anonymity_to_group_by::NAME
    )
    .unwrap();
    page += "\n## Options\n\n`SET kanon.<key> = <value>`.\n\n";
    for entry in KanonOptions::default().entries() {
        let value = entry.value.unwrap_or_default();
        writeln!(page, "- `{}` (default `{value}`): {}.", entry.key, entry.description).unwrap();
    }
    page += "\n## In a policy\n";
    for (what, keys) in [
        ("Keys above all tables", TOP),
        ("Keys of a column's line under `[columns]`", COLUMN),
        ("Keys of `[[require]]`, beside the parameters of the model", REQUIRE),
        ("Keys of `[input]`", INPUT),
        ("Keys of `[output]`", OUTPUT),
        ("Keys of `[history]`", HISTORY),
    ] {
        writeln!(page, "\n{what}:\n").unwrap();
        keys.iter().for_each(|key| writeln!(page, "- `{}`: {}.", key.name, key.summary).unwrap());
    }
    page += "\nKeys of `hierarchy`:\n\n";
    for row in GENERALIZERS {
        if let Some(key) = row.key {
            writeln!(page, "- `{key}`: {}.", row.doc.summary).unwrap();
            of_parameters(&mut page, row.parameters);
        }
    }
    writeln!(page, "- `{0}`: {1}; a table, `{2}`.", merge::DOC.name, merge::DOC.summary, merge::DOC.example)
        .unwrap();
    of_parameters(&mut page, merge::PARAMETERS);
    page += "\nKnown hierarchies, for `known`:\n\n";
    for row in KNOWN {
        let levels = row.levels.join("`, `");
        writeln!(page, "- `{}`: {}; levels `{levels}` ({}).", row.doc.name, row.doc.summary, row.source)
            .unwrap();
    }
    page += "\nModels:\n\n";
    for row in MODELS {
        of_row(&mut page, row.doc);
        of_parameters(&mut page, row.parameters);
    }
    page += "\nObjectives (losses):\n\n";
    LOSSES.iter().for_each(|row| of_row(&mut page, row.doc()));
    page += "\nMethods:\n\n";
    for row in METHODS {
        of_row(&mut page, row.doc());
        of_parameters(&mut page, row.parameters());
    }
    page += "\nOne of the settings of `effort`:\n\n";
    of_parameters(&mut page, EFFORT);
    page += "\n## Exit codes and codes of errors\n\nWith `--format json` an error is one object on standard error: \
             `error` is its text, `exit_code` the exit code, and `code` the cause. A cause without a code of its own has that of its exit \
             code. Where a run found several, `errors` lists all of them, the first one too, each with its `error` and its \
             `code`.\n\n";
    for (exit, code, what) in [
        ("0", "", "done"),
        (
            "1",
            "not_met",
            "a requirement does not hold, the search found nothing, or two things that must agree do not",
        ),
        ("2", "policy", "the command line or the policy is wrong"),
        ("3", "data", "the data cannot be read, written or held"),
        ("4", "internal", "a bug"),
        ("130", "interrupted", "the user asked to stop"),
    ] {
        let code = if code.is_empty() { String::new() } else { format!(", `{code}`") };
        writeln!(page, "- {exit}{code}: {what}.").unwrap();
    }
    page += "\nCodes of their own:\n\n";
    ErrorCode::ALL.iter().for_each(|(_, name, what)| writeln!(page, "- `{name}`: {what}.").unwrap());
    records::section(&mut page);
    let place = Place::new();
    let global = global_options::global(&place);
    page += "\n## Global options\n\nEvery command takes them, before or after its name; `kanon --version` prints the version.\n";
    write!(page, "\n```text\n{}\n```\n", global.join("\n\n")).unwrap();
    page += "\n## Commands\n\n`[OPTIONS]` are those of the command and the global ones. What a command prints with \
             `--format json` follows its help, with paths and shares as in the records; where no individual column is named, rows are counted as \
             individuals.\n";
    for command in COMMANDS.iter().flat_map(|command| {
        std::iter::once(command).chain(NESTED.iter().filter(move |nested| nested.starts_with(*command)))
    }) {
        let help = Help::of(&place, command).own(&global);
        write!(page, "\n### kanon {command}\n\n```text\n{help}\n```\n").unwrap();
        json_outputs::section(&mut page, command);
    }
    page
}

#[test]
fn the_reference_is_current() {
    let (path, page) = (root().join("docs/reference.md"), page());
    if std::env::var_os("KANON_REFERENCE_UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
        return;
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = known.lines().zip(page.lines()).find(|(known, now)| known != now);
    assert!(
        known == page,
        "docs/reference.md is not current ({differs:?}); KANON_REFERENCE_UPDATE=1 cargo test --test it reference"
    );
}

#[test]
fn every_command_is_in_it() {
    let help = Place::new().run("--help").exit(0).out;
    let commands = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap().to_owned();
    let names: Vec<&str> = commands
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    let listed: BTreeSet<&str> = COMMANDS.iter().copied().collect();
    assert_eq!(names.iter().copied().collect::<BTreeSet<_>>(), listed);
}
