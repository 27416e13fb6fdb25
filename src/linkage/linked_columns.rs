//! The columns of an attack: those that are linked, those that are not and why, and those that the
//! attacker wants to learn.

use arrow::datatypes::Schema;

use super::Attack;
use super::recode::AttackerRecoding;
use crate::error::{Error, Result, nearest};
use crate::plural::plural;
use crate::release::publish::record::{ColumnRecord, PublicRecord};
use crate::role::Role;

/// Why a column of labels is not linked.
pub(super) const HIDES_LABELS: &str = "only the publisher's hierarchy says which values its labels hold";

/// What a reader without the policy can do about such a column.
const NEEDS_PUBLISHER: &str = "add columns to A that it can be linked on, or let the publisher run the attack, or send you the policy \
                               and its hierarchy files for --policy FILE";

/// Returns the quasi-identifiers of a release that are not linked, and why.
pub(super) fn unused(
    attack: &Attack<'_>,
    public: &PublicRecord,
    on: &[String],
    list: &Schema,
    recoding: &AttackerRecoding<'_>,
) -> Vec<(String, String)> {
    let quasi = public.quasi();
    let lacks = |wanted: &str| match list
        .fields()
        .iter()
        .map(|field| field.name())
        .find(|name| name.to_lowercase() == wanted.to_lowercase())
    {
        Some(other) => format!("A has `{other}`; rename that column"),
        None => "A lacks it".to_owned(),
    };
    let why = |column: &ColumnRecord| match (&column.days_since, list.field_with_name(&column.name)) {
        (Some(_), _) => "it holds days since another date".to_owned(),
        (None, Err(_)) => lacks(&column.name),
        (None, Ok(_)) if attack.on.is_empty() && recoding.hides_labels(&column.name) => {
            HIDES_LABELS.to_owned()
        }
        (None, Ok(_)) => "--on does not name it".to_owned(),
    };
    quasi
        .filter(|column| !on.contains(&column.name))
        .map(|column| (column.name.clone(), why(column)))
        .collect()
}

/// Returns the columns to link on.
pub(super) fn columns(
    attack: &Attack<'_>,
    list: &Schema,
    table: &Schema,
    recoding: &AttackerRecoding<'_>,
) -> Result<Vec<String>> {
    let public = recoding.public;
    let (a, b) = (&attack.list.argument, &attack.table.argument);
    has(list, a, "--individual", attack.individual)?;
    has(table, b, "--individual-of-b", attack.individual_of_table)?;
    has(table, b, "--sensitive", attack.sensitive.iter().map(String::as_str))?;
    if let ([], Some(public)) = (attack.on, public) {
        let quasi = public.quasi();
        // Days since another date are not dates that an attacker could compare.
        let quasi = quasi.filter(|column| column.days_since.is_none());
        let quasi: Vec<&str> = quasi.map(|column| column.name.as_str()).collect();
        let shared = quasi.iter().filter(|name| list.field_with_name(name).is_ok());
        let shared: Vec<String> = shared.map(|name| (*name).to_owned()).collect();
        if shared.is_empty() {
            let quasi = quasi.join(", ");
            let why = format!("{a} has none of the quasi-identifiers of {b}: {quasi}; rename its columns");
            return Err(Error::policy(why));
        }
        let (hidden, readable): (Vec<String>, Vec<String>) =
            shared.into_iter().partition(|name| recoding.hides_labels(name));
        if let ([first, ..], []) = (hidden.as_slice(), readable.as_slice()) {
            let why = format!("the quasi-identifiers of {b} that {a} has cannot be attacked: {HIDES_LABELS}");
            return Err(Error::policy(format!("{why}; {NEEDS_PUBLISHER}")).at(format!("column `{first}`")));
        }
        return Ok(readable);
    }
    if attack.on.is_empty() {
        return Err(Error::policy("name the columns that the attacker knows: --on dob,sex,zip"));
    }
    has(list, a, "--on", attack.on.iter().map(String::as_str))?;
    has(table, b, "--on", attack.on.iter().map(String::as_str))?;
    let mut recorded = public.into_iter().flat_map(PublicRecord::columns);
    let relative = |column: &&ColumnRecord| column.days_since.is_some() && attack.on.contains(&column.name);
    if let Some(column) = recorded.find(relative) {
        let (name, other) = (&column.name, column.days_since.as_deref().unwrap_or_default());
        let why = format!("--on: `{name}` of {b} holds the days since `{other}`, not dates: leave it out");
        return Err(Error::policy(why));
    }
    if let Some(known) = attack.sensitive.iter().find(|name| attack.on.contains(name)) {
        let why = format!("--sensitive: `{known}` is in --on: the attacker knows it already");
        return Err(Error::policy(why));
    }
    match attack.on.iter().enumerate().find(|(at, name)| attack.on[..*at].contains(name)) {
        Some((_, twice)) => Err(Error::policy(format!("--on: `{twice}` is named twice"))),
        None => Ok(attack.on.to_vec()),
    }
}

/// Checks that a table has these columns.
fn has<'a>(schema: &Schema, table: &str, flag: &str, names: impl IntoIterator<Item = &'a str>) -> Result<()> {
    for name in names {
        if schema.field_with_name(name).is_err() {
            let all: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            let nearest = nearest(name, &all);
            // The first line of a file without a header would be shown as names, so they are not
            // listed.
            let close = nearest.starts_with("did you mean");
            let hint = if close {
                nearest
            } else {
                format!("it has {}", plural(all.len() as u64, "column", "columns"))
            };
            return Err(Error::policy(format!("{flag}: {table} has no column `{name}`; {hint}")));
        }
    }
    Ok(())
}

/// Returns the columns to learn: those that the attacker does not know.
pub(super) fn sensitive(attack: &Attack<'_>, on: &[String], public: Option<&PublicRecord>) -> Vec<String> {
    // The attacker links the first table.
    let table = public.and_then(|public| public.tables.first());
    let recorded = table.into_iter().flat_map(|table| &table.columns);
    let recorded = recorded.filter(|column| column.role == Role::Sensitive.word()).map(|column| &column.name);
    let all: Vec<&String> =
        if attack.sensitive.is_empty() { recorded.collect() } else { attack.sensitive.iter().collect() };
    let mut names: Vec<String> = Vec::new();
    for name in all {
        if !on.contains(name) && !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}
