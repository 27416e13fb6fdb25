//! What is in a folder of a store where a release may appear, and what may not be there.

use std::collections::BTreeSet;

use crate::error::{Error, ErrorCode, Result};
use crate::input::Source;
use crate::progress::CancelToken;
use crate::release::publish::folder_place;
use crate::release::publish::out_folder::{absolute, reads};
use crate::release::publish::record::{FOLDERS, FileRecord, PublicRecord, RECORD};
use crate::release::publish::released_files::{is_name_of_release, name_of_run, run_of_name};
use crate::store::folder::{StoredFolder, StoredText, Until};
use crate::store::{Address, RemoteAddress};

/// A release that is replaced.
pub(super) struct Replaced {
    pub(super) text: StoredText,
    /// Its digest and its objects, if the record can be read.
    pub(super) digest: Option<String>,
    pub(super) objects: BTreeSet<String>,
}

impl Replaced {
    fn new(text: StoredText) -> Self {
        let record = PublicRecord::parse(&text.text, &RECORD).ok();
        // A record that was forged may list anything.
        let objects = record.iter().flat_map(names).filter(|name| is_name_of_release(name)).collect();
        Self { text, digest: record.map(|record| record.digest), objects }
    }

    /// Returns the runs that gave its objects their names.
    pub(super) fn runs(&self) -> impl Iterator<Item = String> {
        self.objects.iter().filter_map(|name| run_of_name(name).map(str::to_owned))
    }
}

/// Returns the files of a release with their names below its folder.
pub(super) fn objects(record: &PublicRecord) -> impl Iterator<Item = (String, &FileRecord)> {
    let name = |folder: &Option<String>, file: &FileRecord| match folder {
        Some(folder) => format!("{folder}/{}", file.name),
        None => file.name.clone(),
    };
    record
        .tables
        .iter()
        .flat_map(move |table| table.files.iter().map(move |file| (name(&table.folder, file), file)))
}

/// Returns these names.
pub(super) fn names(record: &PublicRecord) -> impl Iterator<Item = String> {
    objects(record).map(|(name, _)| name)
}

/// Checks where the private record will be; returns it with an absolute path.
pub(super) fn checked_private(private: &Address, input: &Source) -> Result<Address> {
    let at = format!("--private {private}");
    let input = match input {
        Source::Files(input) => Some(input),
        Source::Table { .. } => None,
    };
    let private = match private {
        Address::Local(path) => Address::Local(absolute("--private", path)?),
        Address::Remote(_) => private.clone(),
    };
    let is_read = match &private {
        Address::Local(path) if path.parent().is_some_and(folder_place::is_in_release) => {
            let why = "is inside a release; a private record holds raw facts, so keep it elsewhere";
            return Err(Error::policy(why).at(at));
        }
        Address::Local(path) => input.is_some_and(|input| reads(input, path)),
        Address::Remote(there) if there.is_in_release()? => {
            let why = "is inside a release; a private record holds raw facts, so keep it elsewhere";
            return Err(Error::policy(why).at(at));
        }
        Address::Remote(there) => {
            input.is_some_and(|input| input.remote_arguments().any(|input| input.reaches(there)))
        }
    };
    if is_read {
        let why = "the next run with this input would read the private record; choose another place";
        return Err(Error::policy(why).at(at));
    }
    Ok(private)
}

/// Checks that OUT neither lies in the input nor holds a part of it.
pub(super) fn check_apart(out: &RemoteAddress, input: &Source) -> Result<()> {
    let Source::Files(input) = input else { return Ok(()) };
    let is_held = |address: &Address| matches!(address, Address::Remote(object) if object.is_in(out));
    if input.objects().iter().any(|object| is_held(object.address())) {
        return Err(Error::policy("this folder holds the input; choose another place"));
    }
    let part = name_of_run(0, "0123456789abcdef");
    let folders = FOLDERS.iter().map(|folder| out.join(folder)).chain([out.clone()]);
    let places: Vec<RemoteAddress> = folders.flat_map(|folder| [folder.join(&part), folder]).collect();
    if input.remote_arguments().any(|input| places.iter().any(|place| input.reaches(place))) {
        return Err(Error::policy(
            "the next run with this input would read the release; choose another place",
        ));
    }
    Ok(())
}

/// Looks at what is in OUT.
///
/// # Errors
/// A policy error if a release may not appear there.
pub(super) fn release_to_replace(
    folder: &StoredFolder,
    overwrite: bool,
    stop: &CancelToken,
) -> Result<Option<Replaced>> {
    let record = folder.text(RECORD, Until::Stopped(stop))?;
    let listed = folder.list(Until::Stopped(stop))?;
    let replaced = record.map(Replaced::new);
    let is_foreign = listed.iter().any(|object| object.name != RECORD && !is_name_of_release(&object.name));
    match (replaced, is_foreign) {
        (None, true) => {
            Err(Error::policy("other objects are there, and no kanon release; choose another name"))
        }
        (None, false) => Ok(None),
        (Some(_), _) if !overwrite => {
            let why = "a release already exists; --overwrite replaces it";
            Err(Error::policy(why).coded(ErrorCode::Exists))
        }
        (Some(_), true) => Err(Error::policy("an object there does not belong to the release; move it away")),
        (Some(replaced), false) => Ok(Some(replaced)),
    }
}
