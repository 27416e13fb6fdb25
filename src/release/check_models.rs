//! Checks of the models in a public record by themselves: a policy may require them, and the
//! recorded values fit what the classes can reach.

use std::collections::BTreeSet;

use super::check_record::refused;
use crate::error::Result;
use crate::measure::ratio;
use crate::model::{
    Class, Counted, Distribution, Needs, Quantity, Requirement, SensitiveColumn, ValueCount, Worst,
};
use crate::release::publish::record::{ModelRecord, PublicRecord, recorded};
use crate::role::Role;
use crate::verify::Verified;

/// Checks that the models protect individuals: kanon publishes no release whose models would accept
/// a class of one individual.
///
/// # Errors
/// An unmet error.
pub(super) fn check_promise(models: &[Requirement]) -> Result<()> {
    if models.iter().any(Requirement::hides_individuals) {
        return Ok(());
    }
    Err(refused(
        "the models of the record guarantee nothing: together they accept a class of one individual over all quasi-identifiers",
    ))
}

/// Checks that the released rows by themselves can be a release under the models that compare
/// classes with the whole input.
///
/// # Errors
/// An unmet error that names the model.
pub(super) fn check_among_released(models: &[Requirement], verified: &Verified) -> Result<()> {
    for (requirement, reached) in models.iter().zip(&verified.reached_among_released) {
        let may = |value| requirement.model.may_reach_among_released(value, Counted::Rows);
        if reached.is_some_and(|value| !may(value)) {
            return Err(refused(format!(
                "the released classes differ more from one another than {} allows",
                requirement.text()
            )));
        }
    }
    Ok(())
}

/// Returns whether the released rows have everything that a requirement looks at: not a hierarchy,
/// a column that is not released or a population.
pub(super) fn can_be_judged_alone(requirement: &Requirement, public: &PublicRecord) -> bool {
    let needs = requirement.model.needs();
    let is_released =
        |column: &SensitiveColumn| public.columns().any(|released| released.name == column.name());
    needs != Needs::Population
        && requirement.is_complete()
        && requirement.sensitive.as_ref().is_none_or(is_released)
}

/// Returns whether a model of the labels of a level, whose hierarchy is missing, is bounded by the
/// same model of the values: a label is a function of its values, so the labels of a class are at
/// most as diverse.
pub(super) fn values_bound_labels(requirement: &Requirement) -> bool {
    requirement.model.needs() == Needs::SensitiveCounts && !requirement.is_complete()
}

/// Returns whether a record looks at its sensitive column as a policy may ask the model to.
pub(super) fn is_looked_at(record: &ModelRecord, requirement: &Requirement, public: &PublicRecord) -> bool {
    let role = public.columns().find(|column| Some(&column.name) == record.sensitive.as_ref());
    let role = role.map(|column| column.role.as_str());
    let is_there = match requirement.model.needs() {
        Needs::Integers => role.is_none(),
        needs => !needs.reads_column() || role == Some(Role::Sensitive.word()),
    };
    let (model, written) = (&requirement.model, ModelRecord::of(requirement, None));
    let may_have_level = matches!(model.needs(), Needs::SensitiveCounts | Needs::Distribution);
    let is_quasi = |name: &String| public.quasi().any(|column| column.name == *name);
    let is_subset = |names: &Vec<String>| {
        let distinct: BTreeSet<&String> = names.iter().collect();
        let all = public.quasi().count();
        let is_of_some = (1..all).contains(&names.len()) && distinct.len() == names.len();
        is_of_some
            && names.iter().all(is_quasi)
            && matches!(model.needs(), Needs::Size | Needs::SensitiveCounts)
    };
    is_there
        && (&written.level, &written.values) == (&record.level, &record.values)
        && record.quasi.as_ref().is_none_or(is_subset)
        && (record.level.is_none() || may_have_level)
        && record.values.as_ref().is_none_or(|values| model.judges_each_value() && !values.is_empty())
}

/// The largest class that is built to see what value it reaches; larger ones are bounded by their
/// rows alone.
pub(super) const MOST_VALUES: u32 = 1 << 16;

/// Returns whether a model can have reached the recorded value: it satisfies the bound, and is no
/// better than the value that the rows reach (if rows bound the model), nor than that of the best class
/// of the smallest size.
pub(super) fn is_reached(
    record: &ModelRecord,
    requirement: &Requirement,
    by_rows: Option<Quantity>,
    least: u64,
    counted: Counted,
) -> bool {
    let model = &requirement.model;
    // No share or ratio of counts is below 0, and labels are no more diverse than their values.
    let is_worst_of = |reached: f64| {
        let shares = model.needs() == Needs::SensitiveCounts;
        (!shares || reached >= 0.0) && by_rows.is_none_or(|rows| recorded(rows.to_f64()) <= reached)
    };
    if requirement.quasi.is_some() {
        // Several classes may be one over a subset, so only the rows bound it.
        let Some(reached) = record.reached else { return false };
        let as_counted = format!("{reached}").parse().map_or(Quantity::Real(reached), Quantity::Count);
        let is_met = reached == recorded(model.required().to_f64()) || model.holds(as_counted);
        let is_within = |rows: Quantity| reached <= recorded(rows.to_f64());
        return is_met
            && match model.worst() {
                Worst::Greatest => is_worst_of(reached),
                Worst::Least => by_rows.map_or(model.bounded_by_rows().is_none(), is_within),
            };
    }
    if matches!(model.needs(), Needs::Population | Needs::Integers | Needs::Table) {
        let as_counted = |reached: f64| match model.needs() {
            Needs::Integers => format!("{reached}").parse().map_or(Quantity::Broken, Quantity::Margin),
            _ => format!("{reached}").parse().map_or(Quantity::Real(reached), Quantity::Count),
        };
        let Some(reached) = record.reached else { return false };
        // An individual asks for at least 0, so no margin exceeds the size of the smallest class.
        let is_possible = model.needs() != Needs::Integers || reached <= ratio(u128::from(least), 1);
        let is_met = reached == recorded(model.required().to_f64());
        return is_possible && (is_met || model.holds(as_counted(reached)));
    }
    if model.needs().compares() {
        let reached = record.reached.map_or(Quantity::Broken, Quantity::Real);
        return least >= model.min_size() && model.may_reach_among_released(reached, counted);
    }
    let Some(reached) = record.reached else { return false };
    let count: Option<u64> = format!("{reached}").parse().ok();
    // A required number of many digits is met by the record's rounding of it.
    let is_met = reached == recorded(model.required().to_f64());
    let reached = count.map_or(Quantity::Real(reached), Quantity::Count);
    if !(model.holds(reached) || is_met) || least < model.min_size() {
        return false;
    }
    if model.needs() == Needs::Size {
        // As records show numbers, because a ratio of sizes is one there.
        return recorded(model.value(&Class::of_size(least)).to_f64()) == recorded(reached.to_f64());
    }
    if model.worst() == Worst::Greatest {
        return is_worst_of(reached.to_f64());
    }
    // The best class of that size has a different value for each individual.
    let best = u32::try_from(least).ok().filter(|least| *least <= MOST_VALUES).map(|least| {
        let values: Vec<_> = (0..least).map(|value| ValueCount { value: Some(value), count: 1 }).collect();
        model.value(&Class::of_values(u64::from(least), &values))
    });
    let is_within = |bound: Quantity| reached.to_f64() <= recorded(bound.to_f64());
    let by_rows = by_rows.map(is_within);
    best.is_none_or(is_within) && by_rows.unwrap_or(model.bounded_by_rows().is_none())
}

/// Checks the models over subsets of the quasi-identifiers against the rows. `shares` says for each
/// model whether one of its classes has a single value in all rows, so that all individuals of that
/// class share it.
///
/// # Errors
/// An unmet error that names the model.
pub(super) fn check_shares(public: &PublicRecord, shares: &[bool]) -> Result<()> {
    for (model, shares) in public.models.iter().zip(shares) {
        if *shares && model.values.is_none() && rules_out_sharing(model, 2)? {
            return Err(refused(format!("{} does not hold for the released rows", model.text())));
        }
    }
    Ok(())
}

/// Returns whether a class of `size` individuals who share a value would have reached worse than
/// the record says, even if everybody in the input has that value.
pub(super) fn rules_out_sharing(record: &ModelRecord, size: u64) -> Result<bool> {
    let requirement = record.requirement()?;
    // Without its hierarchy nothing is known of it.
    if !requirement.is_complete() {
        return Ok(false);
    }
    let model = requirement.model;
    let shared = [ValueCount { value: Some(0), count: size }];
    let input = Distribution::of_individuals(shared.to_vec(), size);
    let value = model.value(&Class { size, sensitive: &shared, input: &input, population: None }).to_f64();
    let Some(reached) = record.reached else { return Ok(false) };
    Ok(match model.worst() {
        Worst::Least => value < reached,
        Worst::Greatest => value > reached,
    })
}
