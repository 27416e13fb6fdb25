//! What `kanon compare` answers: whether releases of the same people are safe together.

use serde::Serialize;

use super::Answer;
use super::sentences::percent_of;
use crate::engine::Run;
use crate::error::Result;
use crate::linkage::two_releases::{FoundInFiles, compare_files};
use crate::plural::{grouped, individuals, plural, rows};
use crate::release::histories::{Compared, JudgedTogether, SamePeople, judge_together};
use crate::render::{Document, Table, Weight};
use crate::role::Role;
use crate::verify::histories::{Histories, Pattern, ReturningPeople};

/// Whether releases of the same people are safe together.
#[derive(Debug, Clone, Serialize)]
pub struct CompareAnswer {
    /// The verdict.
    pub verdict: Verdict,
    /// The releases, in the order in which they were published.
    pub releases: Vec<String>,
    /// What the histories of people show; `null` without the inputs.
    pub by_people: Option<ByPeople>,
    /// What rows show, from the public files alone, for each two releases.
    pub by_rows: Vec<ByRows>,
    /// Why there is no answer, in whole sentences.
    pub cannot_tell: Vec<String>,
}

/// A verdict on releases of the same people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every history is safe.
    Safe,
    /// A history is not safe, and the public files alone show rows of too few people: most rows pair, or few are left by
    /// subtraction.
    Broken,
    /// A history is not safe, and no proof from the public files was found.
    NotProven,
    /// It needs the inputs, and a column that names people.
    CannotTell,
}

/// What the histories of people show.
#[derive(Debug, Clone, Serialize)]
pub struct ByPeople {
    /// The column that names people.
    pub person: String,
    /// The columns by which the rows of a person were matched.
    pub row: Vec<String>,
    /// The released columns whose values tell that a row was not in an input, where they lie outside of its values.
    pub dates: Vec<String>,
    /// The columns that do not have one role in all releases.
    pub roles: Vec<RolesOfColumn>,
    /// The people of whom any release shows a row.
    pub people: u64,
    /// The people with a row in a history that is not safe, whichever quasi-identifiers the attacker knows.
    pub people_found: u64,
    /// For each release but the first, who comes back in its input.
    pub returning: Vec<ReturningPeople>,
    /// The rows of each input that name no person; they are in no history.
    pub rows_without_person: Vec<u64>,
    /// The histories over all quasi-identifiers, then over each subset that a model names.
    pub views: Vec<View>,
    /// The first release that is not safe with those before it.
    pub broken_by: Option<String>,
}

/// A column that does not have one role in all releases.
#[derive(Debug, Clone, Serialize)]
pub struct RolesOfColumn {
    /// The column.
    pub column: String,
    /// Its role in each release; `null` where it is not released.
    pub roles: Vec<Option<String>>,
}

/// The histories of an attacker who knows some quasi-identifiers.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    /// These quasi-identifiers; `null` for all.
    pub over: Option<Vec<String>>,
    /// The people with a row in a history that is not safe.
    pub people_found: u64,
    /// The histories by the releases that show them.
    pub histories: Vec<HistoriesOfReleases>,
    /// The models that fail for the rows of any history.
    pub models: Vec<FailedModelOfHistories>,
}

/// The histories of rows that the same releases show.
#[derive(Debug, Clone, Serialize)]
pub struct HistoriesOfReleases {
    /// Whether each release shows them.
    pub shown: Vec<bool>,
    /// The number of histories.
    pub histories: u64,
    /// The number of their rows.
    pub rows: u64,
    /// The fewest people of one.
    pub fewest_people: u64,
    /// The histories with fewer people than a release promises that shows them.
    pub too_few_people: u64,
    /// The histories that are not safe, for whatever reason.
    pub not_safe: u64,
    /// The rows in these.
    pub rows_not_safe: u64,
}

/// A model that fails for the rows of histories.
#[derive(Debug, Clone, Serialize)]
pub struct FailedModelOfHistories {
    /// The release that promises it.
    pub release: String,
    /// The model.
    pub model: String,
    /// Whether it fails on the values alone that all releases show which show the rows.
    pub on_lasting_values: bool,
    /// The number of histories for whose rows it fails.
    pub histories: u64,
}

/// What the files of two releases show without their inputs.
#[derive(Debug, Clone, Serialize)]
pub struct ByRows {
    /// The earlier and the later release.
    pub releases: [String; 2],
    /// The greatest number of people that a class of either promises: k.
    pub k: u64,
    /// The rows of the smaller release.
    pub rows: u64,
    /// The columns released as they are that pair most rows, at most three; none if no column pairs any.
    pub on: Vec<String>,
    /// The rows that pair: their values in these columns occur once in each release.
    pub pairs: u64,
    /// The pairs whose person is among fewer than k rows: those that pair between the same two classes, and those that pair with
    /// none.
    pub fewer_than_k: u64,
    /// The pairs whose person has one such row.
    pub alone: u64,
    /// The classes that have the same labels in both releases and leave few rows when one is subtracted from the other: fewer than
    /// k, or rows that share one value of a column for which a model is promised.
    pub classes_with_remainder: u64,
    /// These rows.
    pub remainder: u64,
    /// Queries that find these rows again in the public files, in the SQL of DuckDB; only with `--prove`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<String>,
}

/// Compares releases of the same people, in the order in which they were published: by people if all inputs are there, and by
/// rows. With `prove`, what the files alone show is also written as SQL.
///
/// # Errors
/// A policy error for fewer than two releases, or columns that cannot be compared; an unmet error for a release that is not
/// what its record says, or whose input is another one; a data error when something cannot be read or memory runs out.
pub async fn compare(
    run: &Run,
    releases: &[Compared],
    same: &SamePeople,
    prove: bool,
) -> Result<CompareAnswer> {
    let names: Vec<String> = releases.iter().map(|release| release.place.out().to_string()).collect();
    let mut cannot_tell = Vec::new();
    let by_people = judge_together(run, releases, same).await?.map(|judged| {
        cannot_tell.clone_from(&judged.cannot_tell);
        (judged.are_safe(), ByPeople::of(judged, &names))
    });
    if by_people.is_none() {
        cannot_tell.push(
            "without the input of every release nobody can say whose rows the files show; give them with --input, in the order of the \
             releases, or release with `[history]` in the policy"
                .to_owned(),
        );
    }
    let mut by_rows = Vec::new();
    for (later, second) in releases.iter().enumerate() {
        for (first, earlier) in releases.iter().enumerate().take(later) {
            let found = compare_files(run, [&earlier.place, &second.place], prove).await?;
            by_rows.push(ByRows::of(found, [names[first].clone(), names[later].clone()]));
        }
    }
    let has_pairs = by_rows.iter().any(ByRows::has_pairs);
    let mostly_pair = by_rows.iter().any(ByRows::pair_mostly);
    let is_doubtful = |(is_safe, found): &(bool, ByPeople)| {
        *is_safe && (has_pairs || mostly_pair && found.returning.iter().any(ReturningPeople::are_few))
    };
    if by_people.as_ref().is_some_and(is_doubtful) {
        cannot_tell.push(
            "most rows of two releases pair in the files alone, although the inputs say that they are those of different people: were \
             these numbered anew?"
                .to_owned(),
        );
    }
    let has_remainder = by_rows.iter().any(|found| found.remainder > 0);
    let verdict = match &by_people {
        Some((true, _)) if cannot_tell.is_empty() => Verdict::Safe,
        Some((true, _)) => Verdict::CannotTell,
        Some((false, _)) if has_pairs || has_remainder => Verdict::Broken,
        Some((false, _)) => Verdict::NotProven,
        None if has_pairs => Verdict::Broken,
        None if has_remainder => Verdict::NotProven,
        None => Verdict::CannotTell,
    };
    Ok(CompareAnswer {
        verdict,
        releases: names,
        by_people: by_people.map(|(_, by_people)| by_people),
        by_rows,
        cannot_tell,
    })
}

impl ByPeople {
    fn of(judged: JudgedTogether, releases: &[String]) -> Self {
        let over_all = judged.over_all();
        let people = over_all.map_or(0, |found| found.counts.people);
        let views =
            judged.verdicts.iter().map(|(over, found)| View::of(over.clone(), found, &judged, releases));
        let word = |role: &Option<Role>| role.map(|role| role.word().to_owned());
        Self {
            people,
            people_found: judged.people_found,
            returning: over_all.map_or_else(Vec::new, |found| found.counts.returning.clone()),
            views: views.collect(),
            broken_by: judged.broken_by.and_then(|at| releases.get(at)).cloned(),
            roles: judged
                .roles
                .into_iter()
                .map(|(column, roles)| RolesOfColumn { column, roles: roles.iter().map(word).collect() })
                .collect(),
            person: judged.person,
            row: judged.row,
            dates: judged.dates,
            rows_without_person: judged.rows_without_person,
        }
    }
}

impl View {
    fn of(
        over: Option<Vec<String>>,
        found: &Histories,
        judged: &JudgedTogether,
        releases: &[String],
    ) -> Self {
        let of_pattern = |(pattern, counts): (&u64, &Pattern)| HistoriesOfReleases {
            shown: (0..releases.len()).map(|release| pattern & (1 << release) != 0).collect(),
            histories: counts.histories,
            rows: counts.rows,
            fewest_people: counts.fewest,
            too_few_people: counts.too_few,
            not_safe: counts.failed,
            rows_not_safe: counts.rows_failed,
        };
        let models = found.models.iter().map(|(failed, histories)| FailedModelOfHistories {
            release: releases.get(failed.release).cloned().unwrap_or_default(),
            model: judged.model(failed).to_owned(),
            on_lasting_values: failed.on_lasting,
            histories: *histories,
        });
        Self {
            over,
            people_found: found.people_found,
            histories: found.patterns.iter().map(of_pattern).collect(),
            models: models.collect(),
        }
    }
}

impl ByRows {
    fn of(found: FoundInFiles, releases: [String; 2]) -> Self {
        let FoundInFiles { k, rows, paired, remainders, proofs } = found;
        Self {
            releases,
            k,
            rows,
            on: paired.on,
            pairs: paired.pairs,
            fewer_than_k: paired.fewer_than_k,
            alone: paired.alone,
            classes_with_remainder: remainders.classes,
            remainder: remainders.rows,
            proofs,
        }
    }

    /// Returns whether most rows pair, as those of different people do not.
    fn pair_mostly(&self) -> bool {
        self.pairs > 0 && 2 * self.pairs >= self.rows
    }

    /// Returns whether they also show rows among too few.
    fn has_pairs(&self) -> bool {
        self.fewer_than_k > 0 && self.pair_mostly()
    }
}

impl Answer for CompareAnswer {
    fn document(&self) -> Document {
        let mut document = Document::default();
        document.fact("compared", self.releases.join(", "));
        if let Some(by_people) = &self.by_people {
            by_people.add_to(&mut document, &self.releases);
        }
        self.by_rows.iter().for_each(|found| found.add_to(&mut document));
        document.gap();
        let (key, verdict) = self.in_words();
        document.fact(key, verdict);
        self.cannot_tell.iter().for_each(|why| document.warning(Weight::Doubtful, why));
        if let Some(release) = self.by_people.as_ref().and_then(|by_people| by_people.broken_by.as_ref()) {
            document.note(format!(
                "do not publish {release} if it is not out; what is out cannot be taken back, and counts for every later release"
            ));
        }
        document
    }

    fn holds(&self) -> bool {
        self.verdict == Verdict::Safe
    }
}

impl CompareAnswer {
    fn in_words(&self) -> (&'static str, String) {
        let found = self.by_people.as_ref();
        let found = found.map(|found| (found.people_found, found.people)).filter(|(found, _)| *found > 0);
        let who = found.map_or_else(
            || "rows of too few people are found".to_owned(),
            |(found, all)| {
                let (who, share) =
                    (plural(found, "individual has", "individuals have"), percent_of(found, all));
                format!("{who} a row that is not among enough people, or tells too much ({share} of all)")
            },
        );
        match self.verdict {
            Verdict::Safe => (
                "safe",
                "the rows of every history belong to enough people, and all models hold for them".into(),
            ),
            Verdict::Broken => ("BROKEN", format!("{who}; the public files alone show it")),
            Verdict::NotProven if self.by_people.is_none() => {
                let who = "the files of two releases leave few rows when one is subtracted from the other; only the inputs tell whose they are";
                ("NOT PROVEN", who.to_owned())
            }
            Verdict::NotProven => {
                ("NOT PROVEN", format!("{who}; the files give no proof that this command knows"))
            }
            Verdict::CannotTell => ("no answer", "the releases may be safe together or not".into()),
        }
    }
}

impl ByPeople {
    fn add_to(&self, document: &mut Document, releases: &[String]) {
        for RolesOfColumn { column, roles } in &self.roles {
            let roles = roles.iter().zip(releases);
            let roles: Vec<String> = roles
                .map(|(role, release)| format!("{} in {release}", role.as_deref().unwrap_or("not released")))
                .collect();
            document.warning(
                Weight::Doubtful,
                format!("`{column}` is {}; the attacker knows it", roles.join(", ")),
            );
        }
        document.fact("people", format!("{} by `{}`", individuals(self.people), self.person));
        for (returning, release) in self.returning.iter().zip(&releases[1..]) {
            let (both, most) = (grouped(returning.both), individuals(returning.most()));
            let text = format!("{both} of {most} in the input of {release} and before");
            document.fact("come back", text);
        }
        document.fact("rows", format!("matched by {}", self.row.join(", ")));
        if !self.dates.is_empty() {
            let text =
                format!("rows with {} outside of those of an input were not in it", self.dates.join(", "));
            document.fact("dates", text);
        }
        for (without, release) in self.rows_without_person.iter().zip(releases).filter(|(rows, _)| **rows > 0)
        {
            document.fact("skipped", format!("{} of {release} without a person", rows(*without)));
        }
        for view in &self.views {
            view.add_to(document);
        }
    }
}

impl View {
    fn add_to(&self, document: &mut Document) {
        document.gap();
        if let Some(over) = &self.over {
            document.fact("over", format!("{} alone", over.join(", ")));
        }
        let mut table = Table::default().texts("shown in", 0, 10);
        for (head, width) in
            [("histories", 9), ("rows", 10), ("fewest people", 13), ("not safe", 9), ("their rows", 10)]
        {
            table = table.numbers(head, 1, width);
        }
        for one in &self.histories {
            let shown: Vec<String> = (1..)
                .zip(&one.shown)
                .filter(|(_, shown)| **shown)
                .map(|(at, _): (usize, _)| at.to_string())
                .collect();
            let all_or = if shown.len() == one.shown.len() { "all".to_owned() } else { shown.join("+") };
            let numbers = [one.histories, one.rows, one.fewest_people, one.not_safe, one.rows_not_safe];
            table.row([all_or].into_iter().chain(numbers.map(grouped)));
        }
        document.table(table);
        for failed in &self.models {
            let on = if failed.on_lasting_values { " on the values that all of them show" } else { "" };
            let histories = plural(failed.histories, "history", "histories");
            document.fact("fails", format!("{} of {} for {histories}{on}", failed.model, failed.release));
        }
    }
}

impl ByRows {
    fn add_to(&self, document: &mut Document) {
        let [first, second] = &self.releases;
        document.gap();
        let text = match self.on.as_slice() {
            [] => format!("no row of {first} and {second} pairs on a column that is released as it is"),
            on => format!(
                "{} of {} in {first} and {second} pair on {} ({}); {} have fewer than {} candidates, {} exactly one",
                grouped(self.pairs),
                rows(self.rows),
                on.join(", "),
                percent_of(self.pairs, self.rows),
                grouped(self.fewer_than_k),
                self.k,
                grouped(self.alone)
            ),
        };
        document.fact("pairs", text);
        if self.remainder > 0 {
            let (one, many) = ("class that both show", "classes that both show");
            let classes = plural(self.classes_with_remainder, one, many);
            let text =
                format!("{} left by subtraction, of {classes}", plural(self.remainder, "row is", "rows are"));
            document.fact("remainder", text);
        }
        for proof in &self.proofs {
            document.gap();
            document.picture(proof);
        }
    }
}
