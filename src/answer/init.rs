//! What `kanon init` answers: a first policy for a table.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Answer;
use crate::engine::Run;
use crate::error::Result;
use crate::input::Input;
use crate::plural::plural;
use crate::policy::{CsvOptions, DateFormat};
use crate::propose::{
    IndividualSource, Levels, Proposal, Proposed, ProposedColumn, SingledOut, Together, policy_text, propose,
};
use crate::render::Document;

/// A first policy for a table, with what it is based on.
#[derive(Debug, Clone, Serialize)]
pub struct InitAnswer {
    /// The number of rows.
    pub rows: u64,
    /// How the CSV files are written, as keys of `[input]`; `null` for other files.
    pub input: Option<InputKeys>,
    /// The formats between which the dates leave the choice.
    pub unclear_date_formats: Vec<String>,
    /// Whether the numbers fit two ways of writing numbers.
    pub numbers_are_unclear: bool,
    /// The column proposed as the individual.
    pub individual: Option<String>,
    /// Whether a column of personal numbers shows that each row is another individual.
    pub rows_are_individuals: bool,
    /// The columns in their order.
    pub columns: Vec<ColumnProposal>,
    /// The undecided columns that together are unique in nearly all rows; `null` if there are no such columns.
    pub undecided_together: Option<UndecidedTogether>,
    /// The quasi-identifiers that make most rows unique: one, two and three of them.
    pub singled_out: Vec<SingledOut>,
    /// The share of rows that are unique on all proposed quasi-identifiers; `null` without any.
    pub unique_share: Option<f64>,
    /// The text of the policy.
    pub policy: String,
    /// The file to which the policy was written; without one, the document shows the policy.
    #[serde(skip)]
    #[doc(hidden)]
    pub file: Option<String>,
}

/// How CSV files are written.
#[derive(Debug, Clone, Serialize)]
pub struct InputKeys {
    /// The character between two cells; `null` if the files' names tell it.
    pub delimiter: Option<String>,
    /// Whether the first line holds the names of the columns.
    pub header: bool,
    /// The cells that mean "missing".
    pub nulls: Vec<String>,
    /// The encoding; `null` for UTF-8, and for UTF-16 with a byte order mark.
    pub encoding: Option<String>,
    /// How dates are written; empty for ISO 8601.
    pub date_format: Vec<String>,
    /// The mark before the fraction of a number.
    pub decimal: String,
    /// The mark between groups of three digits; `null` for none.
    pub thousands: Option<String>,
}

/// The proposal for a column.
#[derive(Debug, Clone, Serialize)]
pub struct ColumnProposal {
    /// The column's name.
    pub name: String,
    /// Its Arrow type; in CSV files, the one that all its cells can be read as.
    #[serde(rename = "type")]
    pub data_type: String,
    /// The proposed role; `?` where the user must decide.
    pub role: String,
    /// The reason for the role.
    pub why: String,
    /// The reason why cells may not be what they seem, such as numbers in two forms.
    pub doubt: Option<String>,
    /// What is odd about the cells, such as days in the future, with counts.
    pub notes: Vec<String>,
    /// The number of distinct values, NULL aside; `null` for types that cannot be released.
    pub distinct: Option<u64>,
    /// Whether the distinct values were counted; otherwise their number is an estimate within about 2 %.
    pub distinct_is_counted: bool,
    /// The number of rows with NULL.
    pub nulls: u64,
    /// The proposed hierarchy, with the keys and values of the policy.
    pub hierarchy: Option<BTreeMap<String, serde_json::Value>>,
    /// For the first 8 undecided columns, the share of rows that are unique when the column joins the
    /// quasi-identifiers.
    pub unique_share_with: Option<f64>,
}

/// Undecided columns that together are unique in nearly all rows.
#[derive(Debug, Clone, Serialize)]
pub struct UndecidedTogether {
    /// The names of these columns.
    pub columns: Vec<String>,
    /// The share of rows that are unique on them, from 0 to 1.
    pub unique_share: f64,
    /// Whether they are that unique only with the quasi-identifiers.
    pub with_quasi: bool,
}

/// Proposes a policy for an input. The commands in the last comment of its text name the input and the policy with the
/// words `input_word` and `policy_word`.
///
/// # Errors
/// A data error when the input cannot be read, has no rows, or memory runs out; an interruption.
pub async fn init(run: &Run, input: &Input, input_word: &str, policy_word: &str) -> Result<InitAnswer> {
    let proposal = propose(run, input).await?;
    let policy = policy_text(&proposal, input_word, policy_word);
    Ok(InitAnswer {
        rows: proposal.rows,
        input: proposal.csv.as_ref().map(InputKeys::of),
        unclear_date_formats: format_texts(&proposal.unclear_dates),
        numbers_are_unclear: !proposal.unclear_numbers.is_empty(),
        individual: individual(&proposal).map(str::to_owned),
        rows_are_individuals: matches!(proposal.individuals, IndividualSource::Rows(_)),
        columns: proposal.columns.into_iter().map(ColumnProposal::of).collect(),
        undecided_together: proposal.undecided_together.map(UndecidedTogether::of),
        singled_out: proposal.singled_out,
        unique_share: proposal.unique_share,
        policy,
        file: None,
    })
}

impl Answer for InitAnswer {
    fn document(&self) -> Document {
        let mut document = Document::default();
        let Some(file) = &self.file else {
            document.picture(&self.policy);
            return document;
        };
        let columns = plural(self.columns.len() as u64, "column", "columns");
        document.fact("wrote", format!("{file} ({columns}: {})", self.roles().join(", ")));
        document.advice("next", format!("read {file} and decide every role that is \"?\""));
        document
    }
}

impl InitAnswer {
    /// Returns the proposed roles, each after the number of its columns.
    fn roles(&self) -> Vec<String> {
        let roles = [
            Proposed::Individual,
            Proposed::Identifier,
            Proposed::Quasi,
            Proposed::Sensitive,
            Proposed::Text,
            Proposed::Undecided,
        ];
        let counts = roles.map(Proposed::word).map(|role| {
            let count = self.columns.iter().filter(|column| column.role == role).count();
            (count, role)
        });
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, role)| format!("{count} {role}")).collect()
    }
}

impl InputKeys {
    fn of(csv: &CsvOptions) -> Self {
        Self {
            delimiter: csv.delimiter.map(|delimiter| char::from(delimiter).to_string()),
            header: csv.has_header(),
            nulls: csv.nulls.clone(),
            encoding: csv.encoding.map(|encoding| encoding.name().to_ascii_lowercase()),
            date_format: format_texts(&csv.date_formats),
            decimal: csv.numbers.decimal.to_string(),
            thousands: csv.numbers.thousands.map(|mark| mark.to_string()),
        }
    }
}

impl ColumnProposal {
    fn of(column: ProposedColumn) -> Self {
        Self {
            name: column.facts.name,
            data_type: column.facts.data_type.to_string(),
            role: column.role.word().to_owned(),
            why: column.why,
            doubt: column.doubt,
            notes: column.notes,
            distinct: column.facts.distinct,
            distinct_is_counted: column.facts.is_counted,
            nulls: column.facts.nulls,
            hierarchy: column.levels.as_ref().and_then(keys_of_levels),
            unique_share_with: column.unique_share_with,
        }
    }
}

impl UndecidedTogether {
    fn of(Together { undecided, with_quasi }: Together) -> Self {
        Self { columns: undecided.columns, unique_share: undecided.unique_share, with_quasi }
    }
}

/// Returns the column proposed as the individual.
fn individual(proposal: &Proposal) -> Option<&str> {
    match &proposal.individuals {
        IndividualSource::Individual(name) => Some(name),
        IndividualSource::Rows(_) | IndividualSource::Unknown(_) => None,
    }
}

fn format_texts(formats: &[DateFormat]) -> Vec<String> {
    formats.iter().map(|format| format.text().to_owned()).collect()
}

/// Returns the keys and values of levels, which are written in TOML.
fn keys_of_levels(levels: &Levels) -> Option<BTreeMap<String, serde_json::Value>> {
    let text = format!("hierarchy = {levels}");
    let keys = toml::from_str::<BTreeMap<String, BTreeMap<String, serde_json::Value>>>(&text);
    keys.ok()?.remove("hierarchy")
}
