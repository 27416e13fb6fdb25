//! What is known of a release before its rows are read: how the rows of several releases are matched.

use std::collections::{BTreeMap, BTreeSet};

use arrow::datatypes::DataType;

use crate::engine::pseudonym::PseudonymKey;
use crate::error::{Error, Result};
use crate::input::Loaded;
use crate::progress::CancelToken;
use crate::release::histories::SamePeople;
use crate::release::publish::record::{HistoryRecord, PublicRecord};
use crate::role::Role;
use crate::verify::histories::{Matching, times_in};

/// What is known of a release.
#[derive(Default)]
pub(super) struct About {
    /// The release, as errors name it.
    pub(super) shown: String,
    /// The released columns.
    pub(super) roles: BTreeMap<String, Role>,
    /// The types of the columns of its input, as far as they are known.
    types: BTreeMap<String, String>,
    /// The released columns that hold dates.
    times: BTreeSet<String>,
    individual: Option<String>,
}

impl About {
    pub(super) async fn of_input(shown: &str, loaded: &Loaded, stop: &CancelToken) -> Result<Self> {
        let (policy, fields) = (&loaded.policy, loaded.schema().fields().iter());
        let types = fields.map(|field| (field.name().clone(), field.data_type().to_string()));
        let roles: BTreeMap<String, Role> =
            policy.released().map(|(name, role)| (name.to_owned(), role)).collect();
        let names: Vec<String> = roles.keys().cloned().collect();
        Ok(Self {
            shown: shown.to_owned(),
            roles,
            types: types.collect(),
            times: times_in(&loaded.table, &names, stop).await?.into_iter().collect(),
            individual: policy.individual().map(str::to_owned),
        })
    }

    pub(super) fn of_record(shown: &str, public: &PublicRecord, history: &HistoryRecord) -> Self {
        let known =
            history.dates.iter().chain(&history.row).chain(&history.compared).chain([&history.person]);
        let role = |word: &str| Role::ALL.iter().find(|(_, known)| *known == word).map(|(role, _)| *role);
        let roles = public.columns().filter_map(|column| Some((column.name.clone(), role(&column.role)?)));
        Self {
            shown: shown.to_owned(),
            roles: roles.collect(),
            types: known.map(|column| (column.name.clone(), column.data_type.clone())).collect(),
            times: history.dates.iter().map(|column| column.name.clone()).collect(),
            individual: Some(history.person.name.clone()),
        }
    }

    /// Returns the columns that are released as they are.
    pub(super) fn as_they_are(&self) -> impl Iterator<Item = &String> {
        self.roles.iter().filter(|(_, role)| **role != Role::Quasi).map(|(name, _)| name)
    }

    /// Returns the type of a column of the input.
    pub(super) fn type_of(&self, column: &str) -> Result<&str> {
        let missing = || Error::policy(format!("its input has no column `{column}`")).at(&self.shown);
        self.types.get(column).map(String::as_str).ok_or_else(missing)
    }
}

/// Returns how the rows of people are matched in releases.
///
/// # Errors
/// A policy error for columns that cannot be compared.
pub(super) fn matching<'a>(
    releases: impl IntoIterator<Item = &'a About>,
    same: &SamePeople,
    key: PseudonymKey,
) -> Result<Matching> {
    let releases: Vec<&About> = releases.into_iter().collect();
    let releases = releases.as_slice();
    let (person, row) = (person_of(releases, same)?, row_of(releases, same)?);
    for column in row.iter().chain([&person]) {
        releases.iter().try_for_each(|release| release.type_of(column).map(|_| ()))?;
        check_type(releases, column)?;
    }
    let dates = dates_of(releases, same)?;
    check_changes(releases, &same.changes)?;
    let compared = compared_in(releases);
    compared.iter().flatten().try_for_each(|column| check_type(releases, column))?;
    let row_is_named = !same.row.is_empty();
    let (changes, changes_are_unknown) = (same.changes.clone(), same.changes_are_unknown);
    Ok(Matching { person, row, row_is_named, changes, compared, changes_are_unknown, dates, key })
}

/// Returns the columns that releases show as they are, by the releases that do; those of one release are compared with nothing, but
/// may be with a later one.
fn compared_in(releases: &[&About]) -> Vec<Vec<String>> {
    let mut by_releases: BTreeMap<Vec<bool>, Vec<String>> = BTreeMap::new();
    let names: BTreeSet<&String> = releases.iter().flat_map(|release| release.as_they_are()).collect();
    for name in names {
        let shows = |release: &&About| release.as_they_are().any(|shown| shown == name);
        by_releases.entry(releases.iter().map(shows).collect()).or_default().push(name.clone());
    }
    let is_compared =
        |shown: &Vec<bool>| shown.len() == 1 || shown.iter().filter(|shown| **shown).count() > 1;
    by_releases.into_iter().filter(|(shown, _)| is_compared(shown)).map(|(_, names)| names).collect()
}

/// Returns the column that names people in all inputs.
fn person_of(releases: &[&About], same: &SamePeople) -> Result<String> {
    if let Some(person) = &same.person {
        return Ok(person.clone());
    }
    let named: BTreeSet<Option<&str>> =
        releases.iter().map(|release| release.individual.as_deref()).collect();
    match named.into_iter().collect::<Vec<_>>().as_slice() {
        [Some(person)] => Ok((*person).to_owned()),
        _ => Err(Error::policy(
            "the policies do not name one individual column; say which column names the person of a row in all inputs",
        )
        .at("--person")),
    }
}

/// Returns the columns by which the rows of a person are matched.
fn row_of(releases: &[&About], same: &SamePeople) -> Result<Vec<String>> {
    if !same.row.is_empty() {
        return Ok(same.row.clone());
    }
    let Some((first, others)) = releases.split_first() else { return Ok(Vec::new()) };
    let is_in_all = |name: &&String| others.iter().all(|release| release.roles.contains_key(*name));
    let in_all: Vec<String> = first.roles.keys().filter(is_in_all).cloned().collect();
    match in_all.is_empty() {
        true => Err(Error::policy("the releases have no column in common")),
        false => Ok(in_all),
    }
}

/// Checks that a column has one type in the inputs that have it: 7 is not `007`.
pub(super) fn check_type(releases: &[&About], column: &str) -> Result<()> {
    let mut first: Option<(&str, &str)> = None;
    for release in releases {
        let Ok(data_type) = release.type_of(column) else { continue };
        match first {
            Some((known, of)) if known != data_type => {
                return Err(Error::policy(format!(
                    "column `{column}` is {data_type} here, and {known} in the input of {of}, so the rows of one person cannot be \
                     found in both; write it alike, or leave it out by naming others"
                ))
                .at(&release.shown));
            }
            Some(_) => {}
            None => first = Some((data_type, &release.shown)),
        }
    }
    Ok(())
}

/// Returns the released columns whose values tell that a row was not in an input: those named, or the dates that are released as they
/// are. Files do not show row by row what is generalized.
fn dates_of(releases: &[&About], same: &SamePeople) -> Result<Vec<String>> {
    let is_released = |name: &String| releases.iter().any(|release| release.roles.contains_key(name));
    let dates = match &same.dates {
        Some(dates) => match dates.iter().find(|name| !is_released(name)) {
            Some(name) => {
                return Err(Error::policy(format!("no release has a column `{name}`")).at("--dates"));
            }
            None => dates.clone(),
        },
        None => releases
            .iter()
            .flat_map(|release| release.as_they_are().filter(|name| release.times.contains(*name)))
            .cloned()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
    };
    let is_text = |release: &About, date: &String| {
        release.type_of(date).is_ok_and(|of| of == DataType::Utf8View.to_string())
    };
    let without = dates.iter().find(|date| {
        releases.iter().any(|release| is_text(release, date))
            && !releases.iter().any(|release| release.times.contains(*date))
    });
    if let Some(name) = without {
        let why =
            format!("column `{name}` holds texts; expected dates such as 2026-03-01 or 2026-03-01T10:00:00");
        return Err(Error::policy(why).at("--dates"));
    }
    dates.iter().try_for_each(|date| check_type(releases, date))?;
    Ok(dates)
}

/// Checks that the columns whose values change are sensitive ones of some release.
fn check_changes(releases: &[&About], changes: &[String]) -> Result<()> {
    let is_sensitive = |release: &About, name: &String| release.roles.get(name) == Some(&Role::Sensitive);
    match changes.iter().find(|name| !releases.iter().any(|release| is_sensitive(release, name))) {
        Some(name) => {
            Err(Error::policy(format!("no release has a sensitive column `{name}`")).at("--changes"))
        }
        None => Ok(()),
    }
}

/// Warns of sensitive columns that may be one column under two names, so that their values are not compared. Returns a sentence.
pub(super) fn renamed_sensitive<'a>(
    releases: impl IntoIterator<Item = &'a About>,
    changes: &[String],
) -> Option<String> {
    let releases: Vec<&About> = releases.into_iter().collect();
    let is_sensitive = |name: &&String, of: &About| of.roles.get(*name) == Some(&Role::Sensitive);
    let lacks = |one: &'a About, other: &'a About| {
        let lasting = one.roles.keys().filter(|name| is_sensitive(name, one) && !changes.contains(name));
        lasting.filter(|name| !other.roles.contains_key(*name)).min()
    };
    let pairs = releases
        .iter()
        .enumerate()
        .flat_map(|(at, one)| releases[..at].iter().map(move |other| (*other, *one)));
    pairs.into_iter().find_map(|(first, second)| {
        let (of_first, of_second) = (lacks(first, second)?, lacks(second, first)?);
        Some(format!(
            "{} shows `{of_first}`, and {} shows `{of_second}`: if they hold the same values, give them one name; if not, say that they \
             change (--changes {of_first},{of_second})",
            first.shown, second.shown
        ))
    })
}

/// Returns the columns that do not have one role in all releases.
pub(super) fn differing<'a>(
    releases: impl IntoIterator<Item = &'a About>,
) -> BTreeMap<String, Vec<Option<Role>>> {
    let releases: Vec<&About> = releases.into_iter().collect();
    let names: BTreeSet<&String> = releases.iter().flat_map(|release| release.roles.keys()).collect();
    let of_name =
        |name: &String| releases.iter().map(|release| release.roles.get(name).copied()).collect::<Vec<_>>();
    let all = names.into_iter().map(|name| (name.clone(), of_name(name)));
    all.filter(|(_, roles)| roles.windows(2).any(|pair| pair[0] != pair[1])).collect()
}
