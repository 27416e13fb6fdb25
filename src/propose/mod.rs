//! Proposes a first policy for a table: for every column a role and levels, as far as its name and
//! its data show.
//!
//! Names are looked up in a table of words (`names`), the data is counted (`facts`), values are
//! looked up in the hierarchies that come with the tool (`known_levels`), and the
//! quasi-identifiers are tried together (`separation`). The result holds names, types, counts and
//! shares, but no values of the data; `policy_text` writes it as a policy file.

mod csv;
mod doubts;
mod facts;
mod forms;
mod input_text;
mod known_levels;
mod languages;
mod merge_levels;
mod missing;
mod names;
mod oddities;
mod policy_text;
mod quartiles;
mod relative_dates;
mod roles;
mod separation;
mod steps;

use arrow::datatypes::{Field, Schema};
use datafusion::prelude::DataFrame;

pub use facts::ColumnFacts;
pub use oddities::{ColumnToCheck, oddities};
pub use policy_text::policy_text;
pub use roles::Proposed;
pub use separation::{SingledOut, Together};
pub use steps::Levels;

use crate::engine::{Run, counting_rules};
use crate::error::{Error, ErrorCode, Result};
use crate::input::{Input, InputFormat};
use crate::parameter::toml_text;
use crate::policy::{CsvOptions, CsvType, DateFormat, FilesAndTrees, Folder, NumberFormat, PolicySpec};
use crate::progress::Phase;
use doubts::Doubt;
use facts::is_time;
use names::Named;
use relative_dates::relative_dates;

/// The number of undecided columns that are tried together with the quasi-identifiers.
const TRIED: usize = 8;

/// The proposal for a table.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// The number of rows.
    pub rows: u64,
    /// The format of a CSV input.
    pub csv: Option<CsvOptions>,
    /// The formats of dates between which the cells of a CSV input leave the choice.
    pub unclear_dates: Vec<DateFormat>,
    /// The same for numbers.
    pub unclear_numbers: Vec<NumberFormat>,
    /// The columns in their order.
    pub columns: Vec<ProposedColumn>,
    /// How individuals relate to rows.
    pub individuals: IndividualSource,
    /// The quasi-identifiers that single out most rows: one, two and three of them.
    pub singled_out: Vec<SingledOut>,
    /// The share of rows that are unique on all proposed quasi-identifiers; `None` without any.
    pub unique_share: Option<f64>,
    /// Undecided columns that single nearly all rows out, if some do.
    pub undecided_together: Option<Together>,
}

/// The proposal for a column.
#[derive(Debug, Clone)]
pub struct ProposedColumn {
    /// The counts.
    pub facts: ColumnFacts,
    /// The proposed role.
    pub role: Proposed,
    /// The reason in words.
    pub why: String,
    /// What must be mended or explained before a role is decided, as sentences without the last period.
    pub doubt: Option<String>,
    /// What is odd about the cells, as sentences without the last period.
    pub notes: Vec<String>,
    /// The levels, if the column is or becomes a quasi-identifier.
    pub levels: Option<Levels>,
    /// For an undecided column: the share of rows that are unique when it joins the
    /// quasi-identifiers.
    pub unique_share_with: Option<f64>,
}

/// How individuals relate to rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndividualSource {
    /// This column identifies the individual of a row.
    Individual(String),
    /// Each row is an individual: this column of personal numbers has a different value in each
    /// row.
    Rows(String),
    /// Unknown; names an identifier that repeats, if one does.
    Unknown(Option<String>),
}

impl Proposal {
    /// Returns the columns with this proposed role.
    pub fn with_role(&self, role: Proposed) -> impl Iterator<Item = &ProposedColumn> {
        self.columns.iter().filter(move |column| column.role == role)
    }
}

/// Proposes a policy for `input`.
///
/// # Errors
/// A data error when the input cannot be read, has no rows, or memory runs out.
pub async fn propose(run: &Run, input: &Input) -> Result<Proposal> {
    run.progress.begin(Phase::Profile, 0);
    let session = run.resources.session(counting_rules())?;
    let written = match input.format {
        InputFormat::Csv => Some(csv::detect_format(&session, input, run).await?),
        InputFormat::Parquet | InputFormat::Json | InputFormat::Arrow => None,
    };
    let csv = written.as_ref().map(|written| written.options.clone());
    let unclear_numbers = written.as_ref().map_or_else(Vec::new, |written| written.unclear_numbers.clone());
    let unclear_dates = written.as_ref().map_or_else(Vec::new, |written| written.unclear_dates.clone());
    let csv_type = |name: &str| written.as_ref().map_or(CsvType::Text, |written| written.csv_type(name));
    let table = input.table(&session, &csv.clone().unwrap_or_default(), &csv_type).await?;
    let facts = facts::read_facts(&table, run).await?;
    let rows = facts.first().map_or(0, |facts| facts.rows);
    if rows == 0 {
        return Err(Error::data("the input has no rows").coded(ErrorCode::EmptyInput));
    }
    let (named, mut columns): (Vec<Option<Named>>, Vec<ProposedColumn>) =
        facts.into_iter().map(of_column).unzip();
    let mut individuals = find_individuals(&named, &mut columns);
    let individual = match &individuals {
        IndividualSource::Individual(name) => Some(name.as_str()),
        IndividualSource::Rows(_) | IndividualSource::Unknown(_) => None,
    };
    for (named, column) in named.iter().zip(&mut columns) {
        let can_be_quasi = matches!(column.role, Proposed::Quasi | Proposed::Undecided);
        let mut doubt = written.as_ref().and_then(|written| written.doubt(&column.facts.name).cloned());
        // Prefixes of postal codes are finer.
        if can_be_quasi && *named != Some(Named::Postal) {
            let known = known_levels::find(&table, &column.facts, &run.stop).await?;
            let explains_all = known.as_ref().is_some_and(Levels::covers_all);
            doubt = doubt.filter(|doubt| !(explains_all && doubt.may_be_codes()));
            column.levels = known.or(column.levels.take());
        }
        if *named == Some(Named::Postal) {
            // Postal codes may have letters.
            doubt = doubt.filter(|doubt| !doubt.may_be_codes());
            doubt = doubt.or_else(|| Doubt::of_postal_codes(&column.facts));
        }
        if let Some(doubt) = doubt {
            doubt.apply(column);
        } else if can_be_quasi && column.levels.is_none() {
            column.levels =
                merge_levels::find(&session, &table, &column.facts, individual, &run.stop).await?;
        }
    }

    if let IndividualSource::Rows(name) = &individuals
        && let Some(note) = oddities::respelt_individuals(&table, name, run).await?
        && let Some(column) = columns.iter_mut().find(|column| column.facts.name == *name)
    {
        column.notes.push(note);
        individuals = IndividualSource::Unknown(None);
    }

    // Identifiers and free text are never written.
    let is_read =
        |column: &&mut ProposedColumn| !matches!(column.role, Proposed::Identifier | Proposed::Text);
    let mut read: Vec<&mut ProposedColumn> = columns.iter_mut().filter(is_read).collect();
    let looked = read.iter().map(|column| ColumnToCheck {
        name: column.facts.name.clone(),
        is_individual: column.role == Proposed::Individual,
    });
    let notes = oddities(&table, &looked.collect::<Vec<_>>(), run).await?;
    read.iter_mut().zip(notes).for_each(|(column, notes)| column.notes = notes);
    add_relative_dates(&table, &mut columns, run).await?;

    let names = |role: Proposed, columns: &[ProposedColumn]| -> Vec<String> {
        columns.iter().filter(|column| column.role == role).map(|column| column.facts.name.clone()).collect()
    };
    let quasi = names(Proposed::Quasi, &columns);
    let quasi: Vec<&str> = quasi.iter().map(String::as_str).collect();
    let singled_out = separation::greedy(&table, &quasi, &run.stop).await?;
    let unique_share = match quasi.as_slice() {
        [] => None,
        all => Some(separation::unique_share(&table, all, &run.stop).await?),
    };
    for name in names(Proposed::Undecided, &columns).iter().take(TRIED) {
        let with = [&quasi[..], &[name.as_str()]].concat();
        let share = separation::unique_share(&table, &with, &run.stop).await?;
        if let Some(column) = columns.iter_mut().find(|column| column.facts.name == *name) {
            column.unique_share_with = Some(share);
        }
    }
    // A column that singles nearly all rows out by itself says so in its own line.
    let open = columns.iter().filter(|column| {
        column.role == Proposed::Undecided && !column.facts.has_distinct_percent(facts::IDENTIFIES)
    });
    let open: Vec<&str> = open.map(|column| column.facts.name.as_str()).take(TRIED).collect();
    let undecided_together =
        separation::together(&table, &open, (&quasi, unique_share.unwrap_or(0.0)), &run.stop).await?;
    input.still_the_same(run)?;
    Ok(Proposal {
        rows,
        csv,
        unclear_dates,
        unclear_numbers,
        columns,
        individuals,
        singled_out,
        unique_share,
        undecided_together,
    })
}

/// Notes which dates say less as days since another column's.
async fn add_relative_dates(table: &DataFrame, columns: &mut [ProposedColumn], run: &Run) -> Result<()> {
    let is_date = |column: &&ProposedColumn| {
        matches!(column.role, Proposed::Quasi | Proposed::Undecided) && is_time(&column.facts.data_type)
    };
    let dates: Vec<String> = columns.iter().filter(is_date).map(|column| column.facts.name.clone()).collect();
    let dates: Vec<&str> = dates.iter().map(String::as_str).collect();
    let rows = columns.first().map_or(0, |column| column.facts.rows);
    for (date, since) in relative_dates(table, &dates, rows, run).await? {
        if let Some(column) = columns.iter_mut().find(|column| column.facts.name == date) {
            column.notes.push(format!(
                "Never before `{since}`: `relative_to = {}, hierarchy = {{ range = [7, 28] }}` releases the days between \
                 them, which say less than a second date",
                toml_text(since)
            ));
        }
    }
    Ok(())
}

fn of_column(facts: ColumnFacts) -> (Option<Named>, ProposedColumn) {
    let pattern = names::meaning(&facts.name)
        .or_else(|| names::person_alone(&facts.name).filter(|_| facts.may_be_numbers_of_persons()));
    let named = pattern.map(|pattern| pattern.named);
    let (mut role, mut why) = roles::judge(&facts, pattern);
    let mut levels = match role {
        // The number of a person that is not recognized as one is no quasi-identifier.
        Proposed::Undecided if named == Some(Named::Record) && facts.has_few_rows_each() => None,
        Proposed::Quasi | Proposed::Undecided => steps::levels(&facts, named),
        _ => None,
    };
    if !resolves(&facts, levels.as_ref()) {
        levels = None;
    }
    if role == Proposed::Quasi && !resolves(&facts, None) {
        role = Proposed::Undecided;
        why += &format!(", but a {} cannot be generalized: cast it first", facts.data_type);
    }
    (
        named,
        ProposedColumn { facts, role, why, doubt: None, notes: Vec::new(), levels, unique_share_with: None },
    )
}

/// Returns whether a column is named like a person's own number.
pub fn is_persons_number(name: &str) -> bool {
    names::meaning(name).is_some_and(|pattern| pattern.named == Named::Person)
}

/// Returns whether a policy accepts the column as a quasi-identifier with these levels.
fn resolves(facts: &ColumnFacts, levels: Option<&Levels>) -> bool {
    let hierarchy = levels.map(|levels| format!(", hierarchy = {levels}")).unwrap_or_default();
    let text = format!("k = 2\n[columns]\nc = {{ role = \"quasi\"{hierarchy} }}");
    let schema = Schema::new(vec![Field::new("c", facts.data_type.clone(), true)]);
    let resolved = PolicySpec::parse(&text).and_then(|spec| {
        let files = FilesAndTrees { files: &Folder(".".into()), trees: spec.placeholder_trees() };
        spec.resolve(&schema, &files)
    });
    resolved.is_ok()
}

/// Determines how individuals relate to rows; at most one column becomes the individual.
fn find_individuals(named: &[Option<Named>], columns: &mut [ProposedColumn]) -> IndividualSource {
    let of_persons: Vec<usize> =
        (0..columns.len()).filter(|at| named.get(*at) == Some(&Some(Named::Person))).collect();
    let repeats =
        |facts: &ColumnFacts| !facts.is_unique() && facts.distinct.is_some_and(|distinct| distinct > 1);
    // Rows with a NULL individual count no individual: a column without NULLs is preferred.
    let repeating = of_persons.iter().copied().filter(|at| repeats(&columns[*at].facts));
    if let Some(at) = repeating.min_by_key(|at| columns[*at].facts.nulls > 0) {
        let column = &mut columns[at];
        column.role = Proposed::Individual;
        column.why += ", and individuals have several rows";
        return IndividualSource::Individual(column.facts.name.clone());
    }
    let has_own = |facts: &ColumnFacts| facts.is_unique() && facts.nulls == 0;
    if let Some(at) = of_persons.iter().find(|at| has_own(&columns[**at].facts)) {
        return IndividualSource::Rows(columns[*at].facts.name.clone());
    }
    let repeating =
        columns.iter().find(|column| column.role == Proposed::Identifier && repeats(&column.facts));
    IndividualSource::Unknown(repeating.map(|column| column.facts.name.clone()))
}
