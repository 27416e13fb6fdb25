//! `COPY ... TO`: where it may not write.

use std::fs;

use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;

use datafusion_kanon::internals::engine::Context;
use datafusion_kanon::internals::release::publish::folder_place::is_in_release;
use datafusion_kanon::internals::release::publish::out_folder::absolute;
use datafusion_kanon::internals::release::publish::record::{RECORD, is_private};
use datafusion_kanon::internals::store::{Address, RemoteAddress, stores};
use datafusion_kanon::{Error, ErrorCode, Result};

/// Checks the address of a COPY before anything quotes it.
///
/// # Errors
/// A policy error, as [`Address::parse`] gives it.
pub(super) fn check_address(statement: &Statement) -> Result<()> {
    let Statement::CopyTo(copy) = statement else { return Ok(()) };
    Address::parse(&copy.target).map(drop).map_err(|error| error.at("COPY TO"))
}

/// Opens the place to which COPY writes, which may have a file: neither a release nor a private record may be replaced.
///
/// # Errors
/// A policy error that says what is there; a data error if the store of an address fails.
pub(super) fn open_output(session: &SessionContext, location: &str) -> Result<()> {
    let place = |shown: &dyn std::fmt::Display| format!("COPY TO {shown}");
    let what = match Address::parse(location).map_err(|error| error.at("COPY TO"))? {
        Address::Local(path) => {
            let place = place(&path.display());
            // Links are followed, as writing does.
            let whole = if path.exists() {
                fs::canonicalize(&path).context(&place)?
            } else {
                absolute("COPY TO", &path)?
            };
            let what = if is_private(&path) && path.exists() {
                Some("is the private record of a release")
            } else if path.join(RECORD).is_file() {
                Some("is a release")
            } else if is_in_release(&whole) {
                Some("is inside a release")
            } else {
                None
            };
            (place, what)
        }
        Address::Remote(address) => {
            let place = place(&address);
            stores::open_for_engine(session, &address).map_err(|error| error.at(&place))?;
            (place.clone(), what_is_at(&address).map_err(|error| error.at(&place))?)
        }
    };
    let (place, Some(what)) = what else { return Ok(()) };
    let error = Error::policy(format!("{what}, which COPY would damage; write to another place"));
    Err(error.coded(ErrorCode::Exists).at(place))
}

/// Returns what COPY would damage at an address.
fn what_is_at(address: &RemoteAddress) -> Result<Option<&'static str>> {
    if is_private(address.to_string().as_ref()) && address.exists()? {
        return Ok(Some("is the private record of a release"));
    }
    if address.holds(RECORD)? {
        return Ok(Some("is a release"));
    }
    Ok(address.is_in_release()?.then_some("is inside a release"))
}
