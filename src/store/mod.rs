//! Where files lie: paths of this machine and addresses of stores, listed, pinned and read by one trait.

pub(crate) mod address;
mod copy;
pub(crate) mod folder;
mod folder_names;
mod io;
mod local;
pub(crate) mod object;
pub(crate) mod objects;
mod other_tables;
mod partitions;
pub(crate) mod pinned;
mod released;
mod remote;
pub mod stores;
mod words;

use std::path::Path;

use crate::engine::Context;
use crate::error::Result;
use crate::progress::CancelToken;

pub use address::{Address, RemoteAddress, local_path};
pub(crate) use folder_names::{can_be_partition_column, check_column, folder_name};
pub(crate) use local::files_below;
pub use local::{is_hidden, is_partition};
pub use object::Object;
pub(crate) use objects::objects_at;
pub(crate) use partitions::{PartitionColumns, PartitionType, shown};
pub use released::RECORD;
pub(crate) use released::{is_number, run_of_part};
pub(crate) use remote::fetch;

/// Does something with the file at a place, or with the copy of an object.
///
/// # Errors
/// Those of `look`; for an object, a data error if it is not there or cannot be read. The place is not added.
pub(crate) fn with_file_at<T>(
    at: &Address,
    stop: &CancelToken,
    look: impl FnOnce(&Path) -> Result<T>,
) -> Result<T> {
    match at {
        Address::Local(path) => look(path),
        Address::Remote(address) => look(remote::copied(address, stop)?.path()),
    }
}

/// Returns the text of an object.
///
/// # Errors
/// A data error if it is not there, cannot be read or is no UTF-8. The place is not added.
pub fn text_at(address: &RemoteAddress, stop: &CancelToken) -> Result<String> {
    let object = remote::copied(address, stop)?;
    std::fs::read_to_string(object.path()).context("reading its copy")
}
