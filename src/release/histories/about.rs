//! What is known of a release before its rows are read: how the rows of several releases are matched.

use std::collections::{BTreeMap, BTreeSet};

use arrow::datatypes::Schema;

use crate::engine::pseudonym::PseudonymKey;
use crate::error::{Error, Result};
use crate::policy::Policy;
use crate::release::histories::SamePeople;
use crate::release::publish::record::{HistoryRecord, PublicRecord};
use crate::role::Role;
use crate::verify::histories::Matching;

/// What is known of a release.
pub(super) struct About {
    /// The release, as errors name it.
    pub(super) shown: String,
    /// The released columns.
    pub(super) roles: BTreeMap<String, Role>,
    /// The types of the columns of its input, as far as they are known.
    types: BTreeMap<String, String>,
    individual: Option<String>,
}

impl About {
    pub(super) fn of_input(shown: &str, policy: &Policy, input: &Schema) -> Self {
        let types = input.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string()));
        Self {
            shown: shown.to_owned(),
            roles: policy.released().map(|(name, role)| (name.to_owned(), role)).collect(),
            types: types.collect(),
            individual: policy.individual().map(str::to_owned),
        }
    }

    pub(super) fn of_record(shown: &str, public: &PublicRecord, history: &HistoryRecord) -> Self {
        let known = history.dates.iter().chain(&history.row).chain([&history.person]);
        let role = |word: &str| Role::ALL.iter().find(|(_, known)| *known == word).map(|(role, _)| *role);
        let roles = public.columns().filter_map(|column| Some((column.name.clone(), role(&column.role)?)));
        Self {
            shown: shown.to_owned(),
            roles: roles.collect(),
            types: known.map(|column| (column.name.clone(), column.data_type.clone())).collect(),
            individual: Some(history.person.name.clone()),
        }
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
    let are_known = !same.row.is_empty() && !same.changes_are_unknown;
    let known_changes = if are_known { as_is_in_all(releases) } else { Vec::new() };
    Ok(Matching { person, row, changes: same.changes.clone(), known_changes, dates, key })
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
    let in_all = columns_of_all(releases, |_| true);
    match in_all.is_empty() {
        true => Err(Error::policy("the releases have no column in common")),
        false => Ok(in_all),
    }
}

/// Returns the columns that all releases show as they are.
fn as_is_in_all(releases: &[&About]) -> Vec<String> {
    columns_of_all(releases, |role| role != Role::Quasi)
}

fn columns_of_all(releases: &[&About], has_role: impl Fn(Role) -> bool) -> Vec<String> {
    let Some((first, _)) = releases.split_first() else { return Vec::new() };
    let is_in = |release: &About, name: &String| release.roles.get(name).is_some_and(|role| has_role(*role));
    let names = first.roles.keys().filter(|name| releases.iter().all(|release| is_in(release, name)));
    names.cloned().collect()
}

/// Checks that a column has one type in the inputs that have it: 7 is not `007`.
fn check_type(releases: &[&About], column: &str) -> Result<()> {
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

/// Returns the released columns whose values tell that a row was not in an input.
fn dates_of(releases: &[&About], same: &SamePeople) -> Result<Vec<String>> {
    let is_released = |name: &String| releases.iter().any(|release| release.roles.contains_key(name));
    let dates = match &same.dates {
        Some(dates) => match dates.iter().find(|name| !is_released(name)) {
            Some(name) => {
                return Err(Error::policy(format!("no release has a column `{name}`")).at("--dates"));
            }
            None => dates.clone(),
        },
        None => {
            let is_date =
                |data_type: &str| data_type.starts_with("Date") || data_type.starts_with("Timestamp");
            let all =
                releases.iter().flat_map(|release| release.roles.keys().map(move |name| (release, name)));
            let dates = all.filter(|(release, name)| release.type_of(name).is_ok_and(is_date));
            dates.map(|(_, name)| name.clone()).collect::<BTreeSet<String>>().into_iter().collect()
        }
    };
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
