//! What `kanon link` answers: whom an attacker with a list of individuals finds in a table.

use serde::Serialize;

use super::Answer;
use super::sentences::percent_of;
use super::size_bins::{bars, size_bins};
use crate::engine::Run;
use crate::error::Result;
use crate::generalize::Descriptor;
use crate::linkage::{self, Attack};
use crate::measure::ratio;
use crate::plural::{grouped, individuals, plural, rows};
use crate::progress::Phase;
use crate::render::{Document, Table, plain};

/// What a linkage attack finds: A is the attacker's list, B the table under attack.
#[derive(Debug, Clone, Serialize)]
pub struct LinkAnswer {
    /// The linked columns.
    pub on: Vec<LinkedColumn>,
    /// The quasi-identifiers of a release that are not linked.
    pub not_used: Vec<UnusedColumn>,
    /// The linked columns whose labels are read as texts.
    pub read_as_texts: Vec<String>,
    /// The number of individuals in A.
    pub individuals: u64,
    /// The number of individuals with a match.
    pub matched: u64,
    /// The number of individuals without a match.
    pub unmatched: u64,
    /// Those of the unmatched whose rows match individuals of B, but no individual all of them (with --individual-of-b).
    pub apart: u64,
    /// If no individual has a match: the linked columns without a common value; each alone rules out every match.
    pub never_equal: Vec<String>,
    /// The number of individuals with exactly one match: they are re-identified if they are in B at all.
    pub unique: u64,
    /// The least number of matches of an individual with a match; `null` if none has one.
    pub least_matches: Option<u64>,
    /// The individuals with a match by number of matches, least first.
    pub histogram: Vec<MatchCount>,
    /// The sensitive columns.
    pub homogeneous: Vec<LearntColumn>,
    /// The number of rows of A with a value that no hierarchy file of B covers; they match nothing.
    pub uncovered: u64,
    /// The skipped rows of A, which have no individual.
    pub rows_without_individual: u64,
    /// The number of rows suppressed in B; `null` if B is not a release with its private record.
    pub suppressed_rows: Option<u64>,
    /// Whether individuals match the classes that the private record assigns to their values, rather than all whose
    /// regions hold them.
    pub by_assignment: bool,
    /// The name of A.
    #[serde(skip)]
    #[doc(hidden)]
    pub list: String,
    /// The name of B.
    #[serde(skip)]
    #[doc(hidden)]
    pub table: String,
    /// Whether the matches are individuals of B; otherwise they are its rows.
    #[serde(skip)]
    #[doc(hidden)]
    pub counts_individuals: bool,
    /// Whether the classes of B show centroids.
    #[serde(skip)]
    #[doc(hidden)]
    pub are_centroids: bool,
    /// The matches that each individual with a match has to have, if that is required.
    #[serde(skip)]
    #[doc(hidden)]
    pub k: Option<u64>,
}

/// A linked column.
#[derive(Debug, Clone, Serialize)]
pub struct LinkedColumn {
    /// The column's name.
    pub column: String,
    /// How the values of A were generalized, such as `range:10`; `null` if B is not a release.
    pub generalized: Option<String>,
}

/// A quasi-identifier of a release that is not linked.
#[derive(Debug, Clone, Serialize)]
pub struct UnusedColumn {
    /// The column's name.
    pub column: String,
    /// The reason.
    pub why: String,
}

/// The individuals with one number of matches.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct MatchCount {
    /// The number of matches: rows of B, or its individuals with --individual-of-b.
    pub matches: u64,
    /// The number of individuals with so many matches.
    pub individuals: u64,
}

/// What an attacker learns of a sensitive column.
#[derive(Debug, Clone, Serialize)]
pub struct LearntColumn {
    /// The column's name.
    pub column: String,
    /// Those all of whose matches hold the same value.
    pub individuals: u64,
    /// Their share of the individuals in A.
    #[serde(serialize_with = "plain")]
    pub share: f64,
}

/// Runs a linkage attack. No number of matches is required; set [`k`](LinkAnswer::k) for that.
///
/// # Errors
/// Those of [`linkage::link`].
pub async fn link(run: &Run, attack: &Attack<'_>) -> Result<LinkAnswer> {
    run.progress.begin(Phase::Profile, 0);
    let linked = linkage::link(run, attack).await?;
    let (all, matched, unique, least_matches) =
        (linked.individuals(), linked.matched(), linked.unique(), linked.least());
    let on = linked.on.into_iter().map(|(column, generalized)| LinkedColumn { column, generalized });
    let not_used = linked.unused.into_iter().map(|(column, why)| UnusedColumn { column, why });
    let matches = linked.matches.into_iter();
    let learnt = |(column, count): (String, u64)| {
        let share = ratio(u128::from(count), u128::from(all));
        LearntColumn { column, individuals: count, share }
    };
    Ok(LinkAnswer {
        on: on.collect(),
        not_used: not_used.collect(),
        read_as_texts: linked.read_alone,
        individuals: all,
        matched,
        unmatched: linked.unmatched,
        apart: linked.apart,
        never_equal: linked.never_equal,
        unique,
        least_matches,
        histogram: matches.map(|(matches, individuals)| MatchCount { matches, individuals }).collect(),
        homogeneous: linked.homogeneous.into_iter().map(learnt).collect(),
        uncovered: linked.uncovered,
        rows_without_individual: linked.rows_without_individual,
        suppressed_rows: linked.suppressed_rows,
        by_assignment: linked.are_assigned,
        list: attack.list.argument.clone(),
        table: attack.table.argument.clone(),
        counts_individuals: attack.individual_of_table.is_some(),
        are_centroids: linked.are_centroids,
        k: None,
    })
}

impl Answer for LinkAnswer {
    fn document(&self) -> Document {
        let mut document = Document::default();
        self.add_columns(&mut document);
        self.add_matches(&mut document);
        self.add_required(&mut document);
        if !self.histogram.is_empty() {
            document.gap();
            document.table(self.match_counts());
            document.gap();
        }
        self.add_left_out(&mut document);
        if let Some(note) = self.note_on_classes() {
            document.note(note);
        }
        document.note("individuals who are missing from B or suppressed in it may match the rows of others");
        document
    }

    fn holds(&self) -> bool {
        // If no individual has a match, the attack says nothing about k.
        self.k.is_none_or(|k| self.least_matches.is_some_and(|least| least >= k))
    }
}

impl LinkAnswer {
    /// Adds what was linked.
    fn add_columns(&self, document: &mut Document) {
        let on = self.on.iter().map(|one| match &one.generalized {
            Some(by) => format!("{} {by}", one.column),
            None => one.column.clone(),
        });
        document.fact("read", format!("{} in {} (A)", individuals(self.individuals), self.list));
        let on = on.collect::<Vec<_>>().join(" | ");
        document.fact("linked", format!("with {} (B) on {on}", self.table));
        for UnusedColumn { column, why } in &self.not_used {
            document.fact("not used", format!("{column}: {why}"));
        }
        if !self.read_as_texts.is_empty() {
            document.fact(
                "as texts",
                format!(
                    "{}: read without the publisher's hierarchies. A value, values in braces, characters before `*` and \
                     `first..last` are understood; a label with another meaning matches nothing, so some matches may be missing \
                     (with the publisher's policy, --policy FILE reads every label)",
                    self.read_as_texts.join(", ")
                ),
            );
        }
    }

    /// Adds who has a match, who is re-identified, and what is learnt.
    fn add_matches(&self, document: &mut Document) {
        let (one, many, nothing) = match self.counts_individuals {
            true => ("individual", "individuals", "no individual"),
            false => ("row", "rows", "nothing"),
        };
        let all = self.individuals;
        let verb = if self.unmatched == 1 { "matches" } else { "match" };
        document.fact(
            "matched",
            format!(
                "{} ({}); {} {verb} {nothing}",
                individuals(self.matched),
                percent_of(self.matched, all),
                grouped(self.unmatched)
            ),
        );
        if self.apart > 0 {
            let those = plural(self.apart, "of these has", "of these have");
            let text = format!("{those} rows that match individuals, but no individual matches all of them");
            document.fact("apart", text);
        }
        for name in &self.never_equal {
            document.fact(
                "hint",
                format!(
                    "{name}: no value of A occurs in B; are both written alike (lost zeros, other words, another format)?"
                ),
            );
        }
        let matches = plural(self.unique, "individual matches", "individuals match");
        let share = percent_of(self.unique, all);
        document.fact("unique", format!("{matches} exactly one {one}: re-identified ({share})"));
        if let Some(least) = self.least_matches {
            let least = plural(least, one, many);
            document.fact("least", format!("{least} for an individual with a match"));
        }
        for LearntColumn { column, individuals: learnt, .. } in &self.homogeneous {
            let text = match learnt {
                0 => format!("{column} of no individual: nowhere do all matches hold one value"),
                _ => format!(
                    "{column} of {} ({}): all their matches hold one value",
                    individuals(*learnt),
                    percent_of(*learnt, all)
                ),
            };
            document.fact("learnt", text);
        }
    }

    /// Adds whether the required number of matches is reached.
    fn add_required(&self, document: &mut Document) {
        let Some(k) = self.k else { return };
        let required = plural(k, "match", "matches");
        let verdict = if self.holds() { "holds" } else { "FAILS" };
        let (key, reached) = match self.least_matches {
            Some(least) => (verdict, format!("required, {least} reached")),
            None => ("no answer", "required; no individual of A has a match".to_owned()),
        };
        document.fact(key, format!("{required} {reached}{}", self.only_on()));
    }

    /// Returns the limit of an attack on some of the quasi-identifiers of a release.
    fn only_on(&self) -> String {
        let used = self.on.iter().filter(|one| one.generalized.is_some()).count();
        match self.not_used.len() {
            0 => String::new(),
            unused => format!(
                ", on {used} of {} quasi-identifiers; an attacker who also knows the others may have fewer",
                used + unused
            ),
        }
    }

    /// Returns a table of individuals by their number of matches, one row for each doubling, with a bar.
    fn match_counts(&self) -> Table {
        let bins = size_bins(self.histogram.iter().map(|one| (one.matches, 1, one.individuals)));
        let mut table =
            Table::default().texts("matches", 0, 15).numbers("individuals", 0, 11).texts("", 2, 0);
        for (bin, bar) in bins.iter().zip(bars(&bins)) {
            // The head is wider than the numbers below it, which have a space before them.
            table.row([bin.text(), format!(" {}", grouped(bin.individuals)), bar]);
        }
        table
    }

    /// Adds the rows that cannot match, or match wrongly.
    fn add_left_out(&self, document: &mut Document) {
        if self.rows_without_individual > 0 {
            let (one, many) = ("row of A without an individual", "rows of A without an individual");
            let rows = plural(self.rows_without_individual, one, many);
            document.fact("skipped", format!("{rows}: not counted"));
        }
        if self.uncovered > 0 {
            let rows = plural(self.uncovered, "row of A holds a value", "rows of A hold a value");
            document.fact("uncovered", format!("{rows} that no hierarchy file covers: no match"));
        }
        if let Some(suppressed @ 1..) = self.suppressed_rows {
            let rows = rows(suppressed);
            document.fact("suppressed", format!("{rows} in B: any match of these individuals is wrong"));
        }
    }

    /// Returns which classes an individual matches, where B shows centroids or regions.
    fn note_on_classes(&self) -> Option<&'static str> {
        let region = Some(Descriptor::region().to_string());
        match (self.by_assignment, self.are_centroids) {
            (true, true) => Some(
                "an individual matches the class that the private record assigns to its values; an attacker without that record \
                 can only guess the class with the nearest centroids",
            ),
            (false, true) => Some(
                "an individual matches the class whose centroids are nearest to its values: a guess, which may be another one's \
                 class, and so may what is learnt from it",
            ),
            (true, false) => Some(
                "an individual matches the class that the private record assigns to its values; an attacker without that record \
                 finds every class whose regions hold them, which may be more",
            ),
            (false, false) => self.on.iter().any(|one| one.generalized == region).then_some(
                "an individual matches every class whose regions hold its values; where regions overlap, that is more than its \
                 own class",
            ),
        }
    }
}
