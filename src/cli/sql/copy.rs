//! `COPY ... TO`: where it may not write.

use std::fs;

use datafusion_kanon::internals::engine::Context;
use datafusion_kanon::internals::release::publish::place::is_of_release;
use datafusion_kanon::internals::release::publish::record::{RECORD, is_private};
use datafusion_kanon::internals::release::publish::target::absolute;
use datafusion_kanon::internals::store::local_path;
use datafusion_kanon::{Error, ErrorCode, Result};

/// Checks the place to which COPY writes, which may have a file: neither a release nor a private record may be
/// replaced.
///
/// # Errors
/// A policy error that says what is there.
pub(super) fn check_output(location: &str) -> Result<()> {
    let path = local_path(location).map_err(|error| error.at("COPY TO"))?;
    let place = || format!("COPY TO {}", path.display());
    // Links are followed, as writing does.
    let whole =
        if path.exists() { fs::canonicalize(&path).context(&place())? } else { absolute("COPY TO", &path)? };
    let what = if is_private(&path) && path.exists() {
        "is the private record of a release"
    } else if path.join(RECORD).is_file() {
        "is a release"
    } else if is_of_release(&whole) {
        "is inside a release"
    } else {
        return Ok(());
    };
    let error = Error::policy(format!("{what}, which COPY would damage; write to another place"));
    Err(error.coded(ErrorCode::Exists).at(place()))
}
