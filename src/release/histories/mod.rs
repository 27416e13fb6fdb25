//! Releases of the same people, judged together with their inputs; `verify/histories` has the rule.

mod about;
pub(in crate::release) mod chain;
mod links;
mod lives;
mod next_classes;
mod next_plan;
pub(in crate::release) mod next_release;
mod opened;
mod recorded;
mod row_numbers;
mod unclear;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::prelude::SessionContext;

use crate::class::Budget;
use crate::engine::pseudonym::PseudonymKey;
use crate::engine::{PoolBudget, Rules, Run};
use crate::error::{Error, Result};
use crate::input::Source;
use crate::model::{Needs, Requirement};
use crate::progress::Phase;
use crate::release::histories::about::{About, differing, matching, renamed_sensitive};
pub(crate) use crate::release::histories::links::linked;
pub use crate::release::histories::lives::{Life, Version, replay};
pub use crate::release::histories::next_plan::NotShown;
use crate::release::histories::opened::Opened;
pub(in crate::release) use crate::release::histories::recorded::{Continued, recorded, recorded_lines};
use crate::release::publish::place::Place;
use crate::release::publish::record::{HistoryColumn, HistoryRecord};
use crate::role::Role;
use crate::verify::histories::{
    self, FailedModel, Histories, MOST_RELEASES, Matching, PeopleFound, ShownRows, View,
};

/// A release to compare.
#[derive(Debug, Clone)]
pub struct Compared {
    /// Where it is.
    pub place: Place,
    /// The input that it was made of. Without it, its rows are those of its private record, if it holds them.
    pub input: Option<Source>,
}

/// What tells people and their rows apart in several inputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SamePeople {
    /// The column that names the person of a row; by default the individual column of the policies.
    pub person: Option<String>,
    /// The columns that tell the rows of a person apart; none for all columns that every release shows.
    pub row: Vec<String>,
    /// The released columns whose values tell that a row was not in an input, where they lie outside of its values; by default those of
    /// dates and timestamps.
    pub dates: Option<Vec<String>>,
    /// The sensitive columns whose values change between the releases, as everybody knows.
    pub changes: Vec<String>,
    /// Whether attackers do not know whose rows change from one release to the next.
    pub changes_are_unknown: bool,
    /// Whether it is right that fewer than half of the people come back.
    pub accept_new_people: bool,
}

/// What is known of releases that were judged together.
#[derive(Debug)]
pub struct JudgedTogether {
    /// The column that names people.
    pub(crate) person: String,
    /// The columns by which rows were matched.
    pub(crate) row: Vec<String>,
    /// The columns whose values tell that a row was not in an input.
    pub(crate) dates: Vec<String>,
    /// The columns with the role of each in every release, where these differ; `None` where it is not released.
    pub(crate) roles: BTreeMap<String, Vec<Option<Role>>>,
    /// The verdict over all quasi-identifiers, then over each subset that a model names.
    pub(crate) verdicts: Vec<(Option<Vec<String>>, Histories)>,
    /// The people with a row in a history that is not safe, whichever quasi-identifiers the attacker knows.
    pub(crate) people_found: u64,
    /// The place of the first release that is not safe with those before it.
    pub(crate) broken_by: Option<usize>,
    /// For each release its models, in words.
    pub(crate) models: Vec<Vec<String>>,
    /// For each release the rows without a person.
    pub(crate) rows_without_person: Vec<u64>,
    /// Why the verdict cannot be trusted, in whole sentences.
    pub(crate) cannot_tell: Vec<String>,
}

/// Judges releases together, in the order in which they were published; `None` if one comes without its input, and its private record
/// does not hold its rows.
///
/// # Errors
/// A policy error for fewer than two releases, or columns that cannot be compared; an unmet error for a release that is not
/// what its records say, or whose input is another one; a data error when something cannot be read or memory runs out.
pub async fn judge_together(
    run: &Run,
    releases: &[Compared],
    same: &SamePeople,
) -> Result<Option<JudgedTogether>> {
    if !(2..=MOST_RELEASES).contains(&releases.len()) {
        let found = releases.len();
        return Err(Error::policy(format!("expected 2 to {MOST_RELEASES} releases, found {found}")));
    }
    run.progress.begin(Phase::Verify, 0);
    let mut opened = Vec::with_capacity(releases.len());
    for release in releases {
        let Some((release, _)) = Opened::open(run, release).await? else { return Ok(None) };
        opened.push(release);
    }
    let matching = matching_of(&opened, same)?;
    let requirements = opened.iter().flat_map(Opened::requirements);
    let views = views(requirements);
    let session = run.resources.session(Rules::new())?;
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&session, "histories"));
    let expected = opened.iter().map(|release| release.expected(&budget)).collect::<Result<Vec<_>>>()?;
    let mut shown = Vec::with_capacity(opened.len());
    for (release, expected) in opened.iter().zip(&expected) {
        let elsewhere = known_elsewhere(&opened, release);
        let rows = release.shown_rows(&session, expected.as_ref(), elsewhere, &matching, &views, run);
        shown.push(rows.await?);
    }
    let shown: Vec<&ShownRows<'_>> = shown.iter().collect();
    let mut judged = JudgedTogether {
        roles: differing(opened.iter().map(|release| &release.about)),
        verdicts: Vec::new(),
        people_found: 0,
        broken_by: None,
        models: opened.iter().map(|one| one.requirements().iter().map(Requirement::text).collect()).collect(),
        rows_without_person: shown.iter().map(|rows| rows.without_person.rows).collect(),
        cannot_tell: Vec::new(),
        person: matching.person.clone(),
        row: matching.row.clone(),
        dates: matching.dates.clone(),
    };
    let abouts: Vec<&About> = opened.iter().map(|release| &release.about).collect();
    judged.cannot_tell.extend(renamed_sensitive(abouts.iter().copied(), &matching.changes));
    judged.cannot_tell.extend(missing_between(&opened));
    judged.cannot_tell.extend(unclear::people(&abouts, &shown, &matching, run).await?);
    let mut people_found = PeopleFound::default();
    for (view, over) in views.into_iter().enumerate() {
        let verdict =
            histories::judge(&session, &shown, &matching, view, &mut people_found, &run.stop).await?;
        if !verdict.are_safe() {
            let first = first_unsafe(&session, &shown, &matching, view, run).await?;
            judged.broken_by = Some(judged.broken_by.map_or(first, |known| known.min(first)));
        }
        judged.verdicts.push((over, verdict));
    }
    judged.people_found = people_found.count();
    for (of_release, release) in releases.iter().zip(&opened) {
        let Some(input) = &of_release.input else { continue };
        input.still_the_same(run).map_err(|error| error.at(&release.about.shown))?;
    }
    if let Some(Histories { counts, .. }) = judged.over_all() {
        let names: Vec<&str> = abouts.iter().map(|about| about.shown.as_str()).collect();
        let alike = if matching.row_is_named { counts.repeated } else { counts.ambiguous };
        let mut unclear = unclear::rows(counts, alike, &matching);
        if !same.accept_new_people {
            unclear.extend(unclear::returning(counts, &names, &matching));
        }
        judged.cannot_tell.extend(unclear);
    }
    Ok(Some(judged))
}

/// Returns how the rows of people are matched: as the private records say, where rows are read there.
fn matching_of(releases: &[Opened], same: &SamePeople) -> Result<Matching> {
    let abouts = || releases.iter().map(|release| &release.about);
    let mut recorded = releases.iter().filter_map(|release| Some((&release.about.shown, release.history()?)));
    let Some((of, (history, key))) = recorded.next() else {
        return matching(abouts(), same, PseudonymKey::random()?);
    };
    let as_recorded = history.same_people();
    for (shown, (other, _)) in recorded {
        let other_in = if other.key != history.key {
            "are made with another key"
        } else if other.same_people() != as_recorded {
            "name people, rows, dates or changes by other columns"
        } else {
            continue;
        };
        let why = format!("its pseudonyms {other_in} than those of {of}; give the inputs of both");
        return Err(Error::policy(why).at(shown));
    }
    if !same.is_part_of(&as_recorded) {
        let why = "the rows of a private record are matched as its policy says, and not in another way; give the inputs";
        return Err(Error::policy(why).at(of));
    }
    let compared: BTreeSet<&String> = history.compared.iter().map(|column| &column.name).collect();
    for about in abouts() {
        if about.as_they_are().collect::<BTreeSet<_>>() != compared {
            let why = format!(
                "it does not show the same columns as they are as {of} does; give the inputs of both"
            );
            return Err(Error::policy(why).at(&about.shown));
        }
    }
    matching(abouts(), &as_recorded, key.clone())
}

/// Returns the columns that a release shows as they are, and that are quasi-identifiers of another one: an attacker knows them.
fn known_elsewhere(releases: &[Opened], release: &Opened) -> Vec<String> {
    let is_quasi = |name: &String| releases.iter().any(|one| one.about.roles.get(name) == Some(&Role::Quasi));
    let as_is = release.about.roles.iter().filter(|(_, role)| **role != Role::Quasi);
    as_is.map(|(name, _)| name).filter(|name| is_quasi(name)).cloned().collect()
}

/// Returns sentences about releases that follow others which are not given, or are not what they were.
fn missing_between(opened: &[Opened]) -> Vec<String> {
    let of_release = opened.iter().enumerate().filter_map(|(at, release)| {
        let is_given = |digest: &String| opened[..at].iter().any(|earlier| earlier.digest == *digest);
        let why = "follows a release that is not among these, or not as it was: what is out counts, so give all, in their order";
        (!release.after.iter().all(is_given)).then(|| format!("{} {why}", release.about.shown))
    });
    of_release.collect()
}

/// Returns the place of the first release that is not safe with those before it, where all together are not.
async fn first_unsafe(
    session: &SessionContext,
    shown: &[&ShownRows<'_>],
    matching: &Matching,
    view: usize,
    run: &Run,
) -> Result<usize> {
    let mut people_found = PeopleFound::default();
    for several in 2..shown.len() {
        let shown = &shown[..several];
        let verdict = histories::judge(session, shown, matching, view, &mut people_found, &run.stop).await?;
        if !verdict.are_safe() {
            return Ok(several - 1);
        }
    }
    Ok(shown.len() - 1)
}

impl HistoryRecord {
    /// Returns how the rows of people were matched.
    fn same_people(&self) -> SamePeople {
        let names = |columns: &[HistoryColumn]| columns.iter().map(|column| column.name.clone()).collect();
        SamePeople {
            person: Some(self.person.name.clone()),
            row: if self.row_is_named { names(&self.row) } else { Vec::new() },
            dates: Some(names(&self.dates)),
            changes: self.changes.clone(),
            changes_are_unknown: self.changes_are_unknown,
            accept_new_people: false,
        }
    }
}

impl SamePeople {
    /// Returns whether all that it says is also said by another.
    fn is_part_of(&self, other: &Self) -> bool {
        let names = |asked: &Vec<String>, known: &Vec<String>| asked.is_empty() || asked == known;
        (self.person.is_none() || self.person == other.person)
            && names(&self.row, &other.row)
            && (self.dates.is_none() || self.dates == other.dates)
            && names(&self.changes, &other.changes)
            && (!self.changes_are_unknown || other.changes_are_unknown)
    }
}

impl JudgedTogether {
    /// Returns the verdict over all quasi-identifiers.
    pub(crate) fn over_all(&self) -> Option<&Histories> {
        self.verdicts.iter().find(|(over, _)| over.is_none()).map(|(_, verdict)| verdict)
    }

    /// Returns whether every history is safe, whatever the attacker knows.
    pub(crate) fn are_safe(&self) -> bool {
        self.verdicts.iter().all(|(_, verdict)| verdict.are_safe())
    }

    /// Returns the text of a model that fails.
    pub(crate) fn model(&self, failed: &FailedModel) -> &str {
        let of_release = self.models.get(failed.release);
        of_release.and_then(|models| models.get(failed.model)).map_or("", String::as_str)
    }
}

/// Returns what an attacker may know: all quasi-identifiers, and each subset that a model names.
fn views<'a>(requirements: impl IntoIterator<Item = &'a Requirement>) -> Vec<View> {
    let is_of_classes =
        |requirement: &&Requirement| !matches!(requirement.model.needs(), Needs::Population | Needs::Table);
    let subsets = requirements.into_iter().filter(is_of_classes).map(|requirement| requirement.quasi.clone());
    subsets.chain([None]).collect::<BTreeSet<View>>().into_iter().collect()
}
