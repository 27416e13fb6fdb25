//! Where objects are read: a folder of this machine, or a store.

use super::address::Address;
use super::local::LocalFiles;
use super::object::Object;
use super::remote::StoredObjects;
use crate::error::Result;
use crate::progress::CancelToken;

/// What a user named, where it lies.
///
/// - **Whole listing**: [`list`](Self::list) returns every object that was named, sorted, each once, or fails. It returns no
///   hidden name (`_`, `.`), and none of a neighbour whose name only begins alike.
/// - **Pinned**: the bytes that are read are those that were listed, or reading fails with the place of the object.
/// - **Nothing else is read**: what appears after the listing is never opened.
/// - **Silent**: no error holds a credential or a cell.
pub(crate) trait Objects {
    /// Lists the objects. An object itself, a folder and a glob may be named.
    ///
    /// # Errors
    /// A data error if nothing is there, if it cannot be listed, or if it belongs to a table of another format.
    fn list(&self, stop: &CancelToken) -> Result<Vec<Object>>;

    /// Makes the listed objects readable as files of this machine; where the engine reads them `by_ranges`, with their footers
    /// alone.
    ///
    /// # Errors
    /// A data error for an object that has changed since, or that cannot be read; the error of a stopped run.
    fn readable(&self, objects: Vec<Object>, by_ranges: bool, stop: &CancelToken) -> Result<Vec<Object>>;

    /// Returns the text of the record if what was listed is a release or a folder of one.
    fn record(&self) -> Option<String>;

    /// Returns whether objects that appeared after the listing change what the input is. In a folder of this machine they
    /// do; in a store, where others write all the time, they do not.
    fn is_one_with_later(&self) -> bool;
}

/// Returns what an argument names: a path, an address or a glob.
///
/// # Errors
/// Those of [`Address::parse`], and a data error if a client of the store cannot be made.
pub(crate) fn objects_at(argument: &str) -> Result<Box<dyn Objects>> {
    Ok(match Address::parse(argument)? {
        Address::Local(path) => Box::new(LocalFiles { argument: argument.to_owned(), path }),
        Address::Remote(address) => Box::new(StoredObjects::new(address)?),
    })
}
