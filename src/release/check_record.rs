//! Checks of a public record by itself: kanon could have written it, and its numbers fit one
//! another and the rows.
//!
//! Released rows do not name their individuals, so sizes in individuals cannot be recounted without
//! the input. They are bounded instead: each individual of a class has a row in it, and all risks
//! follow from the smallest class size. A record that passes can still be wrong within these
//! bounds; only `kanon verify --input` counts individuals.

use std::collections::BTreeSet;

use super::check_models::{is_reached, rules_out_sharing};
use crate::class::ClassSizes;
use crate::error::{Error, Result};
use crate::measure::{
    RISKS, RiskRow, expected_reidentifications, prosecutor_risk_max, prosecutor_risk_mean, ratio,
    sample_uniqueness, share_at_risk,
};
use crate::model::{Counted, Requirement, Worst};
use crate::release::kind::kind_row_of_record;
use crate::release::publish::make_record::{counted_in, risks};
use crate::release::publish::record::{ColumnRecord, PublicRecord, recorded};
use crate::release::publish::write;
use crate::role::Role;
use crate::verify::Verified;
use crate::verify::homogeneous::Homogeneous;

/// The relative error of a number rounded to the 12 digits of a record, and of results computed
/// from such numbers.
const ROUNDING: f64 = 1e-9;

/// Creates the error of a release that does not pass a check.
pub(super) fn refused(what: impl std::fmt::Display) -> Error {
    Error::unmet(format!("verification refused: {what}"))
}

/// The first version that wrote records of format 2.
const FIRST: [u16; 3] = [0, 1, 0];

/// Checks the words of a record that no count confirms, so that they cannot carry anything else.
///
/// # Errors
/// An unmet error, or a data error for a release of a later version.
pub(super) fn check_words(public: &PublicRecord) -> Result<()> {
    let version = write::version_of(&public.tool);
    if version < Some(FIRST) {
        return Err(refused("the record names no version of kanon that wrote this format"));
    }
    if version > write::version_of(write::CREATED_BY) {
        return Err(Error::data(format!(
            "{} made the release, and this is {}; verify it with that version or a later one",
            public.tool,
            write::CREATED_BY
        )));
    }
    if public.counted_in != counted_in(public.individuals.is_some()) {
        return Err(refused("the record contradicts itself on what is counted"));
    }
    if !public.layout.is_valid() {
        return Err(refused("the record names a layout of files that kanon does not write"));
    }
    let is_released = |column: &ColumnRecord| Role::parse(&column.role).is_ok_and(Role::is_released);
    if !public.columns().all(is_released) {
        return Err(refused("the record contradicts itself on the role of a column"));
    }
    kind_row_of_record(public).check_columns(public)
}

/// Checks the record's count of individuals that are unique on all released columns together.
fn check_unique(public: &PublicRecord, individuals: u64) -> Result<()> {
    let unique = &public.unique;
    let as_is: Vec<&str> = public
        .columns()
        .filter(|column| column.role != Role::Quasi.word())
        .map(|column| column.name.as_str())
        .collect();
    let names: BTreeSet<&str> = unique.columns.iter().map(String::as_str).collect();
    let are_named = names.len() == unique.columns.len() && names.iter().all(|name| as_is.contains(name));
    let must_be_named = unique.is_alarming() && !as_is.is_empty();
    // Each row without an individual counts as one, and every individual has a row.
    if !(individuals..=public.rows()).contains(&unique.of)
        || unique.count > unique.of
        || !are_named
        || must_be_named == names.is_empty()
    {
        return Err(refused("the record contradicts itself on what is unique on all columns"));
    }
    Ok(())
}

/// Checks the record's counts of individuals against the rows, which were counted without knowing
/// their individuals.
///
/// # Errors
/// An unmet error that names the impossible count.
pub(super) fn check_individuals(
    public: &PublicRecord,
    models: &[Requirement],
    verified: &Verified,
) -> Result<()> {
    let Some(individuals) = public.individuals else { return Ok(()) };
    let least = check_risks(public, individuals)?;
    let fewest_rows = verified.sizes.min().unwrap_or(0);
    if individuals > public.rows() || least > individuals || least > fewest_rows {
        return Err(refused("the record counts more individuals than there are rows for"));
    }
    check_unique(public, individuals)?;
    let counted = public.models.iter().zip(models).zip(&verified.reached);
    for ((recorded, requirement), by_rows) in counted {
        let is_risk = requirement.model.bounds_risk().is_none_or(|risk| {
            let risk = public.risk.get(risk).copied().map(self::recorded);
            risk.is_some() && risk == recorded.reached.map(self::recorded)
        });
        // A class over a subset of the quasi-identifiers holds at most everybody, and as many values.
        let is_possible = recorded.quasi.is_none()
            || requirement.model.worst() == Worst::Greatest
            || recorded.reached.is_some_and(|reached| reached <= ratio(u128::from(individuals), 1));
        if !is_risk
            || !is_possible
            || !is_reached(recorded, requirement, *by_rows, least, Counted::Individuals)
        {
            return Err(refused(format!(
                "the record states a value of {} that its classes cannot reach",
                recorded.text()
            )));
        }
    }
    check_homogeneous(public, individuals, least, verified)
}

/// The measures that every record holds. Records of earlier versions lack those that came later.
const ALWAYS_RECORDED: [&RiskRow; 5] = [
    &prosecutor_risk_max::ROW,
    &prosecutor_risk_mean::ROW,
    &share_at_risk::ROW,
    &expected_reidentifications::ROW,
    &sample_uniqueness::ROW,
];

/// Returns whether the record's risks are those of classes of these sizes.
///
/// # Errors
/// An internal error if a default of a measure is not valid.
pub(super) fn has_risks_of(public: &PublicRecord, sizes: &ClassSizes) -> Result<bool> {
    let mut risks = risks(sizes)?;
    risks.retain(|name, _| {
        public.risk.contains_key(name) || ALWAYS_RECORDED.iter().any(|row| row.doc.name == name)
    });
    let is_right = |((name, value), (said, number)): ((&String, &f64), (&String, &f64))| {
        name == said && recorded(*value) == recorded(*number)
    };
    Ok(risks.len() == public.risk.len() && risks.iter().zip(&public.risk).all(is_right))
}

/// Returns the size of the smallest class in individuals, from which all risks follow.
fn check_risks(public: &PublicRecord, individuals: u64) -> Result<u64> {
    let wrong = || refused("the record contradicts itself on its risks");
    let is_known = |name: &String| RISKS.iter().any(|row| row.doc.name == name);
    let is_recorded = |row: &&RiskRow| public.risk.contains_key(row.doc.name);
    if individuals == 0 || !public.risk.keys().all(is_known) || !ALWAYS_RECORDED.iter().all(is_recorded) {
        return Err(wrong());
    }
    let all = ratio(u128::from(individuals), 1);
    let risk = |row: &RiskRow| public.risk.get(row.doc.name).copied().ok_or_else(wrong);
    let (highest, mean) = (risk(&prosecutor_risk_max::ROW)?, risk(&prosecutor_risk_mean::ROW)?);
    let expected = risk(&expected_reidentifications::ROW)?;
    let shares: Vec<f64> =
        RISKS.iter().filter(is_recorded).filter(|row| row.is_share).map(risk).collect::<Result<_>>()?;
    if !shares.iter().all(|share| (0.0..=1.0).contains(share)) || highest <= 0.0 {
        return Err(wrong());
    }
    let least: u64 = format!("{:.0}", 1.0 / highest).parse().map_err(|_| wrong())?;
    let smallest: ClassSizes = [least].into_iter().collect();
    let of_smallest = |row: &RiskRow| Ok::<_, Error>(row.with(&[])?.value(&smallest));
    let is_below = |a: f64, b: f64| a <= b * (1.0 + ROUNDING);
    // One individual of a smallest class is matched correctly, and at most one of each class.
    let mut right = of_smallest(&prosecutor_risk_max::ROW)?.map(recorded) == Some(highest)
        && is_below(1.0, expected)
        && is_below(expected, ratio(u128::from(public.classes), 1))
        && is_below(mean, highest)
        && is_below(mean * all, expected)
        && is_below(expected, mean * all);
    for row in [&share_at_risk::ROW, &sample_uniqueness::ROW] {
        let individuals = risk(row)? * all;
        let some = of_smallest(row)?.is_some_and(|share| share > 0.0);
        right &= (individuals - individuals.round()).abs() <= all * ROUNDING
            && if some { is_below(ratio(u128::from(least), 1), individuals) } else { individuals == 0.0 };
    }
    right &= is_below(risk(&sample_uniqueness::ROW)?, risk(&share_at_risk::ROW)?);
    if right { Ok(least) } else { Err(wrong()) }
}

/// Checks the counts of homogeneous classes in individuals. If the rows of a class share a value,
/// so do its individuals, but not the other way round.
fn check_homogeneous(public: &PublicRecord, individuals: u64, least: u64, verified: &Verified) -> Result<()> {
    let columns = |all: &[Homogeneous]| all.iter().map(|one| one.column.clone()).collect::<Vec<_>>();
    if columns(&public.homogeneous) != columns(&verified.homogeneous) {
        return Err(refused("the homogeneous classes of the record do not match its sensitive columns"));
    }
    for (recorded, by_rows) in public.homogeneous.iter().zip(&verified.homogeneous) {
        let of_column = public.models.iter().filter(|model| {
            let sees_all = model.values.is_none() && model.quasi.is_none();
            sees_all && model.sensitive.as_ref() == Some(&recorded.column)
        });
        let is_ruled_out =
            of_column.map(|model| rules_out_sharing(model, least)).collect::<Result<Vec<_>>>()?;
        let right = match recorded.classes {
            0 => recorded.individuals == 0,
            classes if classes == public.classes => recorded.individuals == individuals,
            _ => (least..=individuals).contains(&recorded.individuals),
        };
        if !right
            || !(by_rows.classes..=public.classes).contains(&recorded.classes)
            || (is_ruled_out.contains(&true) && recorded.classes > 0)
        {
            return Err(refused(format!(
                "the record states an impossible number of homogeneous classes for `{}`",
                recorded.column
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "check_record_tests.rs"]
pub(in crate::release) mod tests;
