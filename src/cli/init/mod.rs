//! `kanon init`: proposes a first policy for a table, to be read and completed by the user.

pub(super) mod json_fields;
mod render_input;
mod render_policy;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::Done;
use super::numbers::plural;
use crate::engine::Run;
use crate::error::{Code, Error, Result};
use crate::input::Input;
use crate::input::address::local_path;
use crate::policy::DateFormat;
use crate::propose::{IndividualSource, Levels, Proposal, Proposed, ProposedColumn, propose};
use crate::release::publish::place::check_outside_releases;

/// Propose a first policy for a table: roles and levels, with comments that say why.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon init patients.parquet --to patients.toml
  kanon init 'lake/*.csv' --format json

The proposal is based on names, types and counts, not on the meaning of your columns: read every line. In
doubt, the role is \"?\", and the policy is refused until you decide. No value of the data is written.")]
pub(crate) struct Init {
    /// A file, folder or glob of Parquet, CSV, JSON lines or Arrow files.
    input: String,
    /// The policy file to create; must not exist. By default, the policy is printed.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

impl Init {
    pub(super) async fn run(mut self, run: &Run) -> Result<Done> {
        if let Some(path) = &mut self.to {
            *path = local_path(&path)?;
            check_free(path)?;
        }
        let input = Input::find_or_read(&self.input)?;
        let proposal = propose(run, &input).await?;
        let policy = render_policy::policy(&proposal, &self.input, self.to.as_deref());
        let text = match &self.to {
            None => policy.clone(),
            Some(path) => {
                let file = File::create_new(path);
                let written = file.and_then(|mut file| file.write_all(policy.as_bytes()));
                written.map_err(|e| Error::from_io(&e).at(place(path)))?;
                describe(&proposal, path)
            }
        };
        Ok(Done { text, json: to_json(&proposal, &policy), holds: true })
    }
}

fn place(path: &Path) -> String {
    format!("--to {}", path.display())
}

/// Refuses a path that cannot be written, before the input is read.
fn check_free(path: &Path) -> Result<()> {
    if std::fs::symlink_metadata(path).is_ok() {
        return Err(Error::policy("already exists; choose another name").coded(Code::Exists).at(place(path)));
    }
    check_outside_releases(path).map_err(|error| error.at(place(path)))?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match folder.is_none_or(Path::is_dir) {
        true => Ok(()),
        false => Err(Error::data("expected the name of a file in a folder that exists").at(place(path))),
    }
}

/// Describes the written policy in a few lines.
fn describe(proposal: &Proposal, path: &Path) -> String {
    let roles = [
        Proposed::Individual,
        Proposed::Identifier,
        Proposed::Quasi,
        Proposed::Sensitive,
        Proposed::Text,
        Proposed::Undecided,
    ];
    let counts = roles.map(|role| (proposal.with_role(role).count(), role.word()));
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    let columns = plural(u64::try_from(proposal.columns.len()).unwrap_or(u64::MAX), "column", "columns");
    let path = path.display();
    let counts: Vec<String> = counts.collect();
    format!(
        "wrote     {path} ({columns}: {})\nnext      read {path} and decide every role that is \"?\"\n",
        counts.join(", ")
    )
}

fn to_json(proposal: &Proposal, policy: &str) -> Value {
    let column = |column: &ProposedColumn| {
        json!({
            "name": column.facts.name,
            "type": column.facts.data_type.to_string(),
            "role": column.role.word(),
            "why": column.why,
            "doubt": column.doubt,
            "notes": column.notes,
            "distinct": column.facts.distinct,
            "distinct_is_counted": column.facts.is_counted,
            "nulls": column.facts.nulls,
            "hierarchy": column.levels.as_ref().map(levels_to_json),
            "unique_share_with": column.unique_share_with,
        })
    };
    let input = proposal.csv.as_ref().map(|csv| {
        json!({
            "delimiter": csv.delimiter.map(|delimiter| char::from(delimiter).to_string()),
            "header": csv.has_header(),
            "nulls": csv.nulls,
            "encoding": csv.encoding.map(|encoding| encoding.name().to_ascii_lowercase()),
            "date_format": csv.date_formats.iter().map(DateFormat::text).collect::<Vec<_>>(),
            "decimal": csv.numbers.decimal.to_string(),
            "thousands": csv.numbers.thousands.map(|mark| mark.to_string()),
        })
    });
    let singled_out = proposal.singled_out.iter();
    json!({
        "rows": proposal.rows,
        "input": input,
        "unclear_date_formats": proposal.unclear_dates.iter().map(DateFormat::text).collect::<Vec<_>>(),
        "numbers_are_unclear": !proposal.unclear_numbers.is_empty(),
        "individual": match &proposal.individuals {
            IndividualSource::Individual(name) => Some(name),
            IndividualSource::Rows(_) | IndividualSource::Unknown(_) => None,
        },
        "rows_are_individuals": matches!(proposal.individuals, IndividualSource::Rows(_)),
        "columns": proposal.columns.iter().map(column).collect::<Vec<_>>(),
        "singled_out": singled_out
            .map(|one| json!({ "columns": one.columns, "unique_share": one.unique_share }))
            .collect::<Vec<_>>(),
        "unique_share": proposal.unique_share,
        "undecided_together": proposal.undecided_together.as_ref().map(|together| {
            json!({
                "columns": together.undecided.columns,
                "unique_share": together.undecided.unique_share,
                "with_quasi": together.with_quasi,
            })
        }),
        "policy": policy,
    })
}

/// Converts levels from TOML to JSON.
fn levels_to_json(levels: &Levels) -> Value {
    let table = toml::from_str::<toml::Table>(&format!("hierarchy = {levels}"));
    table.ok().and_then(|table| serde_json::to_value(table.get("hierarchy")?).ok()).unwrap_or_default()
}
