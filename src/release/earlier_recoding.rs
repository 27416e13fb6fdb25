//! The recoding of an earlier release, applied again to other rows (`kanon release --recoding`).
//!
//! Levels are taken as they are, and classes keep their regions (`kind/regions/earlier.rs`); other kinds refuse.
//!
//! # Contract
//! Every class must satisfy the policy among the new rows. Those that fail are suppressed, and if
//! that exceeds the limit, the recoding is refused: nothing is searched. What comes of it is
//! verified like any other recoding. Sets and the ends of intervals may be values of the earlier
//! release alone, so the readers of the new one learn what those of the earlier one did. The policy
//! and the hierarchy files are those of the earlier release, so the schema is, too.

use crate::class::ClassTable;
use crate::engine::Run;
use crate::error::{Error, Result};
use crate::input::Loaded;
use crate::method::Outcome;
use crate::plural::{individuals, rows};
use crate::release::kind::kind_row;
use crate::release::publish::record::PrivateRecord;
use crate::release::search::limit;

/// Applies the recoding of the release that a private record belongs to.
///
/// # Errors
/// An unmet error if it does not hold for these rows, or if the record holds none; a data error when memory runs out.
pub(super) fn apply_again(
    run: &Run,
    loaded: &Loaded,
    classes: &ClassTable,
    record: &PrivateRecord,
) -> Result<Outcome> {
    let policy = &loaded.policy;
    let found = kind_row(policy.kind).apply_again(run, loaded, classes, record)?;
    let found = found.ok_or_else(|| {
        let limit = limit(policy, classes);
        let limit = match policy.individual() {
            Some(_) => individuals(limit),
            None => rows(limit),
        };
        Error::unmet(format!(
            "the recoding of the earlier release does not hold for these rows: too many of them fail the models or fit no class (at \
             most {limit} may be suppressed, and some must remain); release them by a recoding of their own, without --recoding"
        ))
    })?;
    Ok(Outcome { best: vec![found], nodes: None, evaluated: 1, proven: false, bound: None })
}

/// Returns the error of a private record without a recoding of its kind.
pub(super) fn no_recoding() -> Error {
    Error::unmet("the private record holds no recoding that could be applied")
}
