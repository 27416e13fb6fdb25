//! The text of a proposal: a policy file with comments; [`input_text`](super::input_text) adds `[input]`.

use arrow::datatypes::DataType;

use super::merge_levels::K;
use super::separation::NEARLY_ALL;
use super::{ColumnFacts, IndividualSource, Proposal, Proposed, ProposedColumn, Together};
use crate::measure::ratio;
use crate::parameter::{toml_key, toml_text};
use crate::plural::{self, grouped, percent, plural};

/// The greatest width of a comment line, in characters.
const WIDTH: usize = 100;
/// The length to which names are cut in comments, in characters.
const NAME: usize = 60;
/// A column with more distinct values deserves a hierarchy.
const FEW: u64 = 4;
/// The share of rows that become unique from which a column is called out.
const MANY: f64 = 0.05;
/// From this number of quasi-identifiers on, one level per column costs too much.
const WIDE: usize = 4;
/// A table of more rows is cut at medians only, which takes the least time and memory.
const LARGE: u64 = 5_000_000;

/// Returns the text of a policy file for a proposal. The commands in its last comment name the input and the policy
/// with the words `input` and `policy`.
pub fn policy_text(proposal: &Proposal, input: &str, policy: &str) -> String {
    let mut file = PolicyText(String::new());
    file.introduction(proposal);
    file.requirements(proposal);
    if let Some(csv) = &proposal.csv {
        file.input(csv, proposal);
    }
    file.single_out(proposal);
    file.merged(proposal);
    file.line("[columns]");
    for column in &proposal.columns {
        file.column(column, proposal.unique_share);
    }
    file.blank();
    file.next(proposal, input, policy);
    file.0
}

pub(super) struct PolicyText(String);

impl PolicyText {
    pub(super) fn line(&mut self, line: &str) {
        self.0 += line;
        self.0.push('\n');
    }

    pub(super) fn blank(&mut self) {
        self.line("");
    }

    pub(super) fn comment(&mut self, text: &str) {
        self.wrapped("# ", "# ", text);
    }

    /// Writes an entry of a list in a comment.
    fn entry(&mut self, text: &str) {
        self.wrapped("#   ", "#     ", text);
    }

    /// Writes the words of `text` in lines of limited width.
    fn wrapped(&mut self, first: &str, then: &str, text: &str) {
        let mut line = first.to_owned();
        let mut is_empty = true;
        for word in text.split(' ') {
            if !is_empty && line.chars().count() + 1 + word.chars().count() >= WIDTH {
                self.line(line.trim_end());
                (line, is_empty) = (then.to_owned(), true);
            }
            if !is_empty {
                line.push(' ');
            }
            line += word;
            is_empty = false;
        }
        self.line(line.trim_end());
    }

    fn introduction(&mut self, proposal: &Proposal) {
        let rows = plural::rows(proposal.rows);
        self.comment(&format!(
            "A first policy, proposed by `kanon init` from {rows}, based on column names and counts. It does \
             not know what your data means: read every line and change what is wrong. This file contains no \
             value of the data."
        ));
        let open: Vec<String> =
            proposal.with_role(Proposed::Undecided).map(|column| shown(&column.facts.name)).collect();
        if !open.is_empty() {
            self.line("#");
            self.comment(&format!(
                "To decide ({}): {}. Replace each \"?\" with a role; until then this policy is refused. A column that \
                 the release does not need gets the role text: it is left out.",
                open.len(),
                listed(&open)
            ));
        }
        if proposal.with_role(Proposed::Quasi).next().is_none() {
            self.line("#");
            self.comment(
                "No column looks like a quasi-identifier; a policy needs at least one. Which \
                 columns could outsiders know?",
            );
        }
        self.line("#");
        self.comment("The roles:");
        for role in [
            "identifier   identifies a person or a record; never written",
            "individual   whose row it is, if individuals have several rows; at most one; never written",
            "quasi        outsiders may know it about a person; generalized level by level",
            "sensitive    must not be disclosed about a person; written as it is",
            "text         free text; never written",
            "insensitive  neither known to outsiders nor worth protecting; written as it is, so be sure",
        ] {
            self.line(&format!("#   {role}"));
        }
        self.blank();
    }

    fn requirements(&mut self, proposal: &Proposal) {
        let counted = match proposal.individuals {
            IndividualSource::Individual(_) => "individuals",
            IndividualSource::Rows(_) | IndividualSource::Unknown(_) => "rows",
        };
        self.comment(&format!(
            "Every combination of quasi-identifier values in the release is shared by at least this many \
             {counted}. docs/choosing.md helps to choose it, and the roles below."
        ));
        self.line("k = 5");
        self.blank();
        self.comment(&format!(
            "At most this share of the {counted} may be suppressed to reach k; with a limit of 0, a few \
             outliers would force coarse values on everyone."
        ));
        self.line("suppression_limit = 0.05");
        self.blank();
        self.method(proposal);
        self.individuals(&proposal.individuals);
        self.homogeneity(proposal);
        for column in proposal.with_role(Proposed::Sensitive) {
            let name = &column.facts.name;
            self.comment(&format!(
                "The {counted} that share a combination have at least two different values of {}: k alone \
                 does not hide a value that all of them share. A larger l hides more.",
                shown(name)
            ));
            self.line("[[require]]");
            self.line("model = \"l_diversity\"");
            self.line("l = 2");
            self.line(&format!("sensitive = {}", toml_text(name)));
            self.blank();
        }
    }

    /// Writes the method that suits the table, with the reason.
    fn method(&mut self, proposal: &Proposal) {
        let quasi = || proposal.with_role(Proposed::Quasi);
        let without_levels =
            quasi().filter(|column| column.levels.is_none() && column.facts.distinct > Some(FEW));
        let (all, without_levels) = (quasi().count(), without_levels.count());
        let open = proposal.with_role(Proposed::Undecided).count();
        let own = "Each class shows intervals, labels or sets of its own as text";
        let (method, why) = if all < WIDE && without_levels == 0 {
            let why = if all + open < WIDE {
                "One level per column, the best one: with so few quasi-identifiers that keeps most of the data, and \
                 columns keep their types. \"best\" would give each class values of its own."
                    .to_owned()
            } else {
                format!(
                    "One level per column, the best one, and columns keep their types. If columns that are undecided \
                     become quasi-identifiers and there are {WIDE} or more, \"best\" keeps more: it gives each class \
                     values of its own."
                )
            };
            ("auto", why)
        } else {
            let columns = plural(all as u64, "quasi-identifier", "quasi-identifiers");
            let reason = match without_levels {
                0 => format!("with {columns} one level per column would be coarse"),
                _ => format!(
                    "with one level per column, {without_levels} of {columns} {} no hierarchy and would be kept or \
                     suppressed as a whole",
                    if without_levels == 1 { "has" } else { "have" }
                ),
            };
            match proposal.rows {
                ..=LARGE => (
                    "best",
                    format!(
                        "{own}, made by the method that loses least: {reason}. \"auto\" gives every column one level."
                    ),
                ),
                _ => (
                    "mondrian",
                    format!(
                        "{own}: {reason}. Cutting at medians is fast on a table of this size; \"best\" would try other \
                     methods too and keep more."
                    ),
                ),
            }
        };
        self.comment(&why);
        self.line(&format!("method = {}", toml_text(method)));
        self.blank();
    }

    fn individuals(&mut self, individuals: &IndividualSource) {
        match individuals {
            IndividualSource::Individual(_) => return,
            IndividualSource::Rows(name) => {
                self.comment(&format!(
                    "Each row is one individual: no value of {} repeats. Delete this line if individuals have several \
                     rows.",
                    shown(name)
                ));
                self.line("rows_are_individuals = true");
            }
            IndividualSource::Unknown(repeats) => {
                if let Some(name) = repeats {
                    self.comment(&format!(
                        "{} repeats, so `kanon release` refuses until this is decided.",
                        shown(name)
                    ));
                }
                self.comment(
                    "Is each row a different individual? If so, uncomment the next line. If individuals have several \
                     rows, give the column that says whose row it is the role `individual`: five rows of one \
                     individual do not hide that individual.",
                );
                self.line("# rows_are_individuals = true");
            }
        }
        self.blank();
    }

    /// Shows where the columns go that are released without a model that protects them.
    fn homogeneity(&mut self, proposal: &Proposal) {
        let may_be_sensitive = [Proposed::Sensitive, Proposed::Undecided];
        if may_be_sensitive.iter().all(|role| proposal.with_role(*role).next().is_none()) {
            return;
        }
        self.comment(
            "A sensitive column that no required model looks at is refused, unless it is named here: all who share a \
             combination may then share its value, which tells it.",
        );
        self.line("# accept_homogeneity = []");
        self.blank();
    }

    fn single_out(&mut self, proposal: &Proposal) {
        if let Some(all) = proposal.unique_share {
            self.comment(
                "How strongly the proposed quasi-identifiers single individuals out without generalization: the share \
                 of rows whose combination of values is unique.",
            );
            for one in &proposal.singled_out {
                self.entry(&format!("{}: {}", shown_all(&one.columns).join(", "), percent(one.unique_share)));
            }
            let count = proposal.with_role(Proposed::Quasi).count();
            if count > proposal.singled_out.last().map_or(0, |last| last.columns.len()) {
                self.entry(&format!("all {count}: {}", percent(all)));
            }
            self.blank();
        }
        if let Some(Together { undecided, with_quasi }) = &proposal.undecided_together {
            let with = if *with_quasi { "With the quasi-identifiers, the" } else { "The" };
            self.comment(&format!(
                "{with} undecided columns {} together are unique for {} of rows: if outsiders may know them, they \
                 are quasi-identifiers.",
                joined(&shown_all(&undecided.columns)),
                percent(undecided.unique_share)
            ));
            self.blank();
        }
    }

    /// Says once what columns have in common whose values are merged.
    fn merged(&mut self, proposal: &Proposal) {
        let merged = proposal
            .columns
            .iter()
            .filter_map(|column| column.levels.as_ref())
            .filter(|levels| levels.is_merge());
        let (by_counts, in_order): (Vec<_>, Vec<_>) = merged.partition(|levels| levels.is_by_counts());
        if by_counts.is_empty() && in_order.is_empty() {
            return;
        }
        let holders = match proposal.individuals {
            IndividualSource::Individual(_) => "individuals",
            IndividualSource::Rows(_) | IndividualSource::Unknown(_) => "rows",
        };
        let counts = "the rarest follow, more of them at each level";
        let joins = match (by_counts.is_empty(), in_order.is_empty()) {
            (true, _) => "neighbours in their order join".to_owned(),
            (_, true) => counts.to_owned(),
            _ => format!("neighbours in their order join, or with by = \"counts\" {counts}"),
        };
        let frequent = match by_counts.is_empty() {
            true => "",
            false => ", and with by = \"counts\" which are the most frequent",
        };
        self.comment(&format!(
            "No hierarchy is known for the values of columns with merge. Those with fewer than {K} {holders} become \
             `other`; with one level per column {joins}. The labels reveal which values these are{frequent}. A \
             file of labels that fit their meaning would keep more."
        ));
        self.blank();
    }

    fn column(&mut self, column: &ProposedColumn, unique_share: Option<f64>) {
        let ProposedColumn { facts, role, why, doubt, notes, levels, unique_share_with } = column;
        self.blank();
        self.comment(&format!("{}; {why}.", counts(facts)));
        if let Some(doubt) = doubt {
            self.comment(&format!("{doubt}."));
        }
        for note in notes {
            self.comment(&(note.clone() + if note.ends_with('?') { "" } else { "." }));
        }
        let is_open = *role == Proposed::Undecided;
        let without = unique_share.unwrap_or(0.0);
        let says_more = |with: &f64| without < NEARLY_ALL && percent(*with) != percent(without);
        if let Some(with) = unique_share_with.filter(says_more) {
            let call = if with - without >= MANY { ": a quasi-identifier?" } else { "." };
            self.comment(&match unique_share {
                Some(_) => format!(
                    "With it {} of rows are unique on the quasi-identifiers, without it {}{call}",
                    percent(with),
                    percent(without)
                ),
                None => format!("By itself it makes {} of rows unique{call}", percent(with)),
            });
        }
        if let Some(why) = levels.as_ref().and_then(|levels| levels.why.as_ref()) {
            self.comment(&format!("{why}."));
        }
        let hierarchy = match levels {
            Some(levels) if is_open => {
                self.comment(&format!("If it is quasi: hierarchy = {levels}"));
                String::new()
            }
            Some(levels) => format!(", hierarchy = {levels}"),
            None if *role == Proposed::Quasi && facts.distinct > Some(FEW) => {
                self.comment(
                    "Either released as it is or suppressed; hierarchy = { file = \"...\" } with coarser \
                     values would keep more.",
                );
                String::new()
            }
            None => String::new(),
        };
        self.line(&format!("{} = {{ role = \"{}\"{hierarchy} }}", toml_key(&facts.name), role.word()));
    }

    fn next(&mut self, proposal: &Proposal, input: &str, policy: &str) {
        let open = proposal.with_role(Proposed::Undecided).next().is_some();
        self.comment(if open { "Next: decide every role that is \"?\", then" } else { "Next:" });
        for command in [
            format!("kanon search {input} --policy {policy}"),
            format!("kanon release {input} --policy {policy} --to FOLDER"),
        ] {
            self.line(&format!("#   {command}"));
        }
    }
}

/// Describes the counts in words.
fn counts(facts: &ColumnFacts) -> String {
    let distinct = match facts.distinct {
        _ if facts.is_unique() => ", no repeated value".to_owned(),
        Some(distinct) if facts.is_counted => {
            format!(", {}", plural(distinct, "distinct value", "distinct values"))
        }
        Some(distinct) => format!(", about {} distinct values", grouped(about(distinct))),
        None => String::new(),
    };
    let nulls = match facts.nulls {
        0 => "no NULL".to_owned(),
        nulls => format!("{} NULL", percent(ratio(u128::from(nulls), u128::from(facts.rows)))),
    };
    format!("{}{distinct}, {nulls}", type_word(&facts.data_type))
}

/// Rounds a number to its first two digits.
fn about(n: u64) -> u64 {
    let unit = 10u64.pow(n.checked_ilog10().unwrap_or(0).saturating_sub(1));
    n - n % unit
}

fn type_word(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "boolean",
        DataType::Date32 => "date",
        DataType::Timestamp(..) => "timestamp",
        text if text.is_string() => "text",
        integer if integer.is_integer() => "integer",
        number if number.is_numeric() => "number",
        nested if nested.is_nested() => "list or struct",
        _ => "another type",
    }
}

/// Returns a name as a comment shows it.
fn shown(name: &str) -> String {
    let plain = |c: char| if c.is_control() || c.is_whitespace() { '_' } else { c };
    match name.chars().count() {
        ..=NAME => name.chars().map(plain).collect(),
        _ => name.chars().take(NAME).map(plain).chain(['.', '.', '.']).collect(),
    }
}

fn shown_all(names: &[String]) -> Vec<String> {
    names.iter().map(|name| shown(name)).collect()
}

/// Returns names as a sentence lists them: `a`, `a and b`, `a, b and c`.
fn joined(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// Returns the first names of a list.
fn listed(names: &[String]) -> String {
    const FIRST: usize = 20;
    match names.get(..FIRST) {
        Some(first) if names.len() > FIRST => {
            format!("{} and {} more", first.join(", "), names.len() - FIRST)
        }
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_rounded() {
        assert_eq!(
            [0, 7, 42, 999, 60_183, u64::MAX].map(about),
            [0, 7, 42, 990, 60_000, 18_000_000_000_000_000_000]
        );
    }

    #[test]
    fn comments_are_wrapped() {
        let mut file = PolicyText(String::new());
        file.comment(&["word"; 60].join(" "));
        file.entry(&["word"; 60].join(" "));
        assert!(file.0.lines().all(|line| line.starts_with("# ") && line.len() < WIDTH), "{}", file.0);
        assert_eq!(file.0.matches("word").count(), 120);
        assert_eq!(shown("a\nb c"), "a_b_c");
        assert_eq!(shown(&"x".repeat(90)).len(), 63);
    }
}
