//! Models, generalizers and loss measures of the program's own, beside the rows of the tables.
//!
//! What is trusted, and what is not, is written in [`extend`](crate::extend).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::key_tables::{REQUIRE, names};
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::generalize::{self, Descriptor, Generalizer, GeneralizerRow, merge};
use crate::known::KNOWN;
use crate::measure::{self, LossMeasure, RISKS};
use crate::method::METHODS;
use crate::model::{self, HIERARCHY, ModelRow, Needs};
use crate::parameter::{Absent, Kind, Parameter, Setting};

/// One registration at a time, so that no two rows get one name.
static REGISTERING: Mutex<()> = Mutex::new(());

/// The names besides those of rows: of descriptors, of functions of SQL and of columns of `lattice`.
const RESERVED: &[&str] = &[
    "as_is",
    "region",
    "centroid",
    "label",
    "generalize",
    "anonymize",
    "classes",
    "compare",
    "lattice",
    "link",
    "load_hierarchy",
    "risk",
    "levels",
    "anonymous",
    "minimal",
    "suppressed_individuals",
    "min_class",
    "reconstruction_error",
    "squared_error_with_noise",
];

/// The ends of the names of functions that SQL derives from a row.
const DERIVED: &[&str] =
    &["_individuals", "_of_class", "_of_classes", "_of_sizes", "_of_individuals", "_of_counts"];

/// Registers a model for `[[require]]` in policies and as the SQL functions `<name>` and
/// `<name>_individuals` (a table function if it [looks at a population](Needs::Population)).
///
/// The parameters are numbers, and 1 is allowed for each of them: SQL asks for the quantity of a model whose
/// parameters are 1, because the quantity does not depend on its bound. For all classes the quantity is of
/// one variant of [`Quantity`](crate::model::Quantity), or `Broken`; the numbers of a `Ratio` are below 2^60.
/// What the model must keep, and what is trusted, is written in [`extend`](crate::extend).
///
/// # Errors
/// A policy error for a name that is taken or not of the form `[a-z][a-z0-9_]*`, for parameters that a
/// policy or SQL could not set, and for a model that does not say by which parameters it was made.
pub fn register_model(row: ModelRow) -> Result<()> {
    let _guard = REGISTERING.lock().unwrap_or_else(PoisonError::into_inner);
    check_doc(row.doc)?;
    let refused = |why: &str| Err(refused(row.doc, why));
    check_parameters(row.doc, row.parameters, &names(REQUIRE))?;
    let one = Setting::from(Decimal::integer(1));
    let is_number =
        |kind| matches!(kind, Kind::Count | Kind::AtLeastOne | Kind::Positive | Kind::Share | Kind::Number);
    if !row.parameters.iter().all(|parameter| is_number(parameter.kind)) {
        return refused("has a parameter that is no number");
    }
    let ones: Vec<_> =
        row.parameters.iter().map(|parameter| (parameter.name.to_owned(), one.clone())).collect();
    let model = row.with(&ones)?;
    let parameters = model.parameters();
    if !parameters.iter().map(|(name, _)| *name).eq(row.parameters.iter().map(|parameter| parameter.name)) {
        return refused("makes a model that does not have the row's parameters, in their order");
    }
    let hierarchy = match (model.needs() == Needs::Hierarchy, row.constants) {
        (true, [first, others @ ..]) if *first == HIERARCHY => Some(others),
        (true, _) => None,
        (false, constants) => Some(constants),
    };
    match hierarchy {
        None => refused("looks at a hierarchy, so its first constant is `HIERARCHY`"),
        Some(constants) if constants.iter().any(|constant| !row.parameters.contains(constant)) => {
            refused("has a constant that is none of its parameters")
        }
        Some(_) => {
            model::add(row);
            Ok(())
        }
    }
}

/// Registers a generalizer for `hierarchy = { <name> = [...] }` in policies, if it has a key, and as the SQL
/// function `generalize_<name>`.
///
/// The [descriptor](crate::generalize::Generalizer::descriptor) of a level must make it again, because that is
/// all that a record has: its generalizer is the row's name, its argument the entry of this level, and its
/// options are those that differ from their defaults. A policy is refused where it does not. What the levels
/// must keep is written at [`Generalizer`], and what is trusted in [`extend`](crate::extend).
///
/// # Errors
/// A policy error for a name that is taken or not of the form `[a-z][a-z0-9_]*`, for a key that is not the
/// name, and for parameters that a policy or SQL could not set.
pub fn register_generalizer(row: GeneralizerRow) -> Result<()> {
    let _guard = REGISTERING.lock().unwrap_or_else(PoisonError::into_inner);
    check_doc(row.doc)?;
    let refused = |why: &str| Err(refused(row.doc, why));
    let keys: Vec<&str> = generalize::all().filter_map(|row| row.key).collect();
    let taken = [keys.as_slice(), &[merge::DOC.name, "clip", "label", row.doc.name]].concat();
    check_parameters(row.doc, row.parameters, &taken)?;
    if generalize::all().flat_map(GeneralizerRow::options).any(|option| option.name == row.doc.name) {
        return refused("has the name of another generalizer's option");
    }
    if row.parameters.iter().any(|parameter| matches!(parameter.kind, Kind::File | Kind::Nodes)) {
        return refused("has a parameter that SQL cannot set");
    }
    match row.key {
        Some(key) if key != row.doc.name => return refused("has a key that is not its name"),
        Some(_) if !matches!(row.parameters.first().map(|first| first.kind), Some(Kind::Levels(_))) => {
            return refused("has a key, so its first parameter is one with an entry per level");
        }
        _ => {}
    }
    if row.options().iter().any(|option| option.absent == Absent::Refused) {
        return refused("has an option that cannot be left out");
    }
    generalize::add(row);
    Ok(())
}

/// Checks the levels that a row has made for a policy. Records hold descriptors alone.
pub(super) fn check_levels(row: &GeneralizerRow, levels: &[Arc<dyn Generalizer>]) -> Result<()> {
    let is_restored = |by: Descriptor| by.generalizer == row.doc.name && by.restore(true).is_some();
    let has_twin = |(at, level): (usize, &Arc<dyn Generalizer>)| {
        levels[..at].iter().any(|finer| finer.descriptor() == level.descriptor())
    };
    let is_own = generalize::is_own(row);
    let why = if !levels.iter().all(|level| is_restored(level.descriptor())) {
        "has a level whose descriptor does not make it again"
    } else if is_own && levels.iter().enumerate().any(has_twin) {
        "has two levels with one descriptor"
    } else if is_own && levels.iter().any(|level| level.is_top()) {
        "has a level that is the top, which each hierarchy gets by itself"
    } else {
        return Ok(());
    };
    Err(Error::policy(format!("the generalizer `{}` {why}", row.doc.name)))
}

/// Registers a loss measure for `objective` in policies and as a column of the SQL function `lattice`.
///
/// # Errors
/// A policy error for a name that is taken or not of the form `[a-z][a-z0-9_]*`, and for a measure that
/// needs more than sizes or the counts of a sensitive column.
pub fn register_loss(measure: impl LossMeasure + 'static) -> Result<()> {
    let _guard = REGISTERING.lock().unwrap_or_else(PoisonError::into_inner);
    let doc = measure.doc();
    check_doc(doc)?;
    if !matches!(measure.needs(), Needs::Size | Needs::SensitiveCounts) {
        return Err(refused(doc, "needs more than sizes or the counts of a sensitive column"));
    }
    measure::add_loss(measure);
    Ok(())
}

fn refused(doc: &Doc, why: &str) -> Error {
    Error::policy(format!("`{}` cannot be registered: it {why}", doc.name))
}

/// Returns whether a name is of the form `[a-z][a-z0-9_]*`.
fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Checks the name of a row.
fn check_doc(doc: &Doc) -> Result<()> {
    if !is_name(doc.name) {
        return Err(refused(doc, "has a name that is not of the form [a-z][a-z0-9_]*"));
    }
    let mut rows = (generalize::all().map(|row| row.doc.name))
        .chain(generalize::all().filter_map(|row| row.key))
        .chain(model::all().map(|row| row.doc.name))
        .chain(measure::losses().map(|loss| loss.doc().name))
        .chain(RISKS.iter().map(|row| row.doc.name))
        .chain(METHODS.iter().map(|row| row.doc().name))
        .chain(KNOWN.iter().map(|row| row.doc.name))
        .chain([merge::DOC.name])
        .chain(RESERVED.iter().copied());
    if rows.any(|name| name == doc.name) {
        return Err(refused(doc, "has a name that is taken"));
    }
    if ["generalize_", "kanon_"].iter().any(|start| doc.name.starts_with(start))
        || DERIVED.iter().any(|end| doc.name.ends_with(end))
    {
        return Err(refused(doc, "has a name of the form that functions derived from other rows have"));
    }
    if doc.summary.is_empty() {
        return Err(refused(doc, "has no summary"));
    }
    Ok(())
}

/// Checks that parameters are named each in its own way, and like no key beside them.
fn check_parameters(doc: &Doc, parameters: &[Parameter], taken: &[&str]) -> Result<()> {
    let mut seen = HashSet::new();
    for Parameter { name, .. } in parameters {
        if !is_name(name) || taken.contains(name) || !seen.insert(name) {
            return Err(refused(doc, &format!("has a parameter whose name `{name}` cannot be used here")));
        }
    }
    Ok(())
}
