//! `COPY ... TO`: where it may not write.

use std::path::Path;

use crate::error::{Code, Error, Result};
use crate::input::address::local_path;
use crate::release::publish::record::{RECORD, is_private};

/// Checks the place to which COPY writes, which may have a file: neither a release nor a private record may be
/// replaced.
///
/// # Errors
/// A policy error that says what is there.
pub(super) fn check_output(location: &str) -> Result<()> {
    let path = local_path(location).map_err(|error| error.at("COPY TO"))?;
    let is_release = |folder: &Path| folder.join(RECORD).is_file();
    let what = match path.parent() {
        _ if is_private(&path) && path.exists() => "is the private record of a release",
        _ if is_release(&path) => "is a release",
        Some(folder) if is_release(folder) => "is inside a release",
        _ => return Ok(()),
    };
    let error = Error::policy(format!("{what}, which COPY would damage; write to another place"));
    Err(error.coded(Code::Exists).at(format!("COPY TO {}", path.display())))
}
