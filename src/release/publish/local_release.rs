//! A release as files of this machine: itself, or a copy of one in a store.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::engine::Context;
use crate::engine::temporary::TemporaryFolder;
use crate::error::{Error, ErrorCode, Result};
use crate::progress::CancelToken;
use crate::release::check_files::check_names;
use crate::release::check_record::refused;
use crate::release::labels_for_all::has_labels;
use crate::release::publish::place::Place;
use crate::release::publish::record::{FileRecord, PrivateRecord, PublicRecord, RECORD};
use crate::release::publish::released_files::is_name_of_release;
use crate::release::publish::store_place::objects;
use crate::release::publish::{disk, staging};
use crate::store::folder::{StoredFolder, Until, with_each};
use crate::store::{Address, RemoteAddress, shown};

/// How much of a release is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// The record.
    Record,
    /// The record, and the first file that has rows, if it tells labels.
    FirstRows,
    /// All of it.
    All,
}

/// How often a release is read that is replaced meanwhile.
const TRIES: usize = 3;

/// A release that is at hand.
#[derive(Debug)]
pub struct LocalRelease {
    out: PathBuf,
    /// OUT, as errors name it.
    shown: String,
    /// Where its private record is known to be.
    place: Option<Place>,
    /// The number of objects beside the release in a store that its record does not list.
    unlisted: usize,
    copy: Option<TemporaryFolder>,
}

impl LocalRelease {
    /// Reads as much as is needed of the release at a place.
    ///
    /// # Errors
    /// An unmet error for a record that was edited, or for what does not belong to a release; a data error if something is
    /// missing or cannot be read.
    pub fn read(place: &Place, needed: Needed, stop: &CancelToken) -> Result<Self> {
        Ok(Self { place: Some(place.clone()), ..Self::read_at(place.out(), needed, stop)? })
    }

    /// Reads as much as is needed of the release at an address. Nothing is known of its private record.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_at(out: &Address, needed: Needed, stop: &CancelToken) -> Result<Self> {
        let (shown, place) = (out.to_string(), None);
        let address = match out {
            Address::Local(out) => {
                return Ok(Self { out: out.clone(), shown, place, unlisted: 0, copy: None });
            }
            Address::Remote(address) => address,
        };
        let mut tries = 0;
        loop {
            tries += 1;
            match copied(address, needed, stop) {
                Ok((copy, unlisted)) => {
                    return Ok(Self {
                        out: copy.path().to_path_buf(),
                        shown,
                        place,
                        unlisted,
                        copy: Some(copy),
                    });
                }
                // While the release is replaced, its objects disappear.
                Err((_, true)) if tries < TRIES => {}
                Err((error, _)) => return Err(error),
            }
        }
    }

    /// Returns the folder of this machine that holds what was read.
    pub fn out(&self) -> &Path {
        &self.out
    }

    /// Returns OUT, as errors name it.
    pub(in crate::release) fn shown(&self) -> &str {
        &self.shown
    }

    /// Returns the number of objects beside the release that its record does not list: what a killed run left, or one that is
    /// active.
    pub fn unlisted(&self) -> usize {
        self.unlisted
    }

    /// Returns an error that names the release rather than its copy.
    pub(in crate::release) fn named(&self, error: Error) -> Error {
        let Some(copy) = &self.copy else { return error };
        error.replaced(&copy.path().display().to_string(), &self.shown)
    }

    /// Returns what tells of a run to this place that did not end.
    pub(in crate::release) fn unfinished(&self) -> Option<String> {
        if self.copy.is_some() { None } else { staging::unfinished(&self.out) }
    }

    /// Returns where it and its private record are, if that is known.
    pub(in crate::release) fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// Returns where the private record was looked for.
    pub(in crate::release) fn private_place(&self) -> String {
        let private = self.place.as_ref().and_then(Place::private);
        private.map_or_else(|| "of the release".to_owned(), Address::to_string)
    }

    /// Reads the private record, as [`Place::private_record`] does.
    ///
    /// # Errors
    /// A data error if it cannot be read.
    pub(crate) fn private_record(&self, public: &PublicRecord) -> Result<Option<PrivateRecord>> {
        self.place.as_ref().map_or(Ok(None), |place| place.private_record(public))
    }
}

/// Copies what is needed of a release in a store into a new folder; returns also the number of objects that do not belong to it.
/// An error says whether the release was replaced meanwhile.
fn copied(
    address: &RemoteAddress,
    needed: Needed,
    stop: &CancelToken,
) -> std::result::Result<(TemporaryFolder, usize), (Error, bool)> {
    let lasting = |error| (error, false);
    let folder = StoredFolder::open(address).map_err(lasting)?;
    let read = || folder.text(RECORD, Until::Stopped(stop));
    let missing = || {
        let why = format!("{}: no such object; is this a release of kanon?", folder.address_of(RECORD));
        Error::data(why).coded(ErrorCode::NotFound)
    };
    let record = read().and_then(|record| record.ok_or_else(missing)).map_err(lasting)?;
    copy(&folder, &record.text, needed, stop).map_err(|error| {
        let is_other = read().is_ok_and(|now| now.is_none_or(|now| !now.is_as(&record)));
        (error, is_other)
    })
}

fn copy(
    folder: &StoredFolder,
    record: &str,
    needed: Needed,
    stop: &CancelToken,
) -> Result<(TemporaryFolder, usize)> {
    let doing = "copying a release to the folder for temporary files";
    let to = TemporaryFolder::new().context(doing)?;
    disk::write_new(&to.path().join(RECORD), record).context(doing)?;
    let public = PublicRecord::parse(record, &folder.address_of(RECORD))?;
    // The names become paths on this machine.
    check_names(&public)?;
    let all = objects(&public);
    let files: Vec<_> = match needed {
        Needed::Record => Vec::new(),
        Needed::FirstRows if !has_labels(&public) => Vec::new(),
        Needed::FirstRows => all.filter(|(_, file)| file.rows > 0).take(1).collect(),
        Needed::All => all.collect(),
    };
    let mut unlisted = 0;
    if needed == Needed::All {
        let listed = folder.list(Until::Stopped(stop))?;
        let names: BTreeSet<&String> = files.iter().map(|(name, _)| name).collect();
        for object in &listed {
            if !names.contains(&object.name) && object.name != RECORD {
                if !is_name_of_release(&object.name) {
                    return Err(refused("the release contains an object that the record does not list"));
                }
                unlisted += 1;
            }
        }
        for table in public.tables.iter().filter(|table| table.folder.is_some()) {
            fs::create_dir(table.path(to.path())).context(doing)?;
        }
    }
    let copy = |(name, file): &(String, &FileRecord)| {
        let path = to.path().join(name);
        if let Some(above) = path.parent() {
            fs::create_dir_all(above).context(doing)?;
        }
        match folder.copy(name, file.bytes, &path, stop) {
            Ok(true) => Ok(()),
            Ok(false) => Err(refused(format!("{} is not the file that the record describes", shown(name)))),
            Err(error) if error.is(ErrorCode::NotFound) => {
                Err(refused(format!("{} is missing", shown(name))))
            }
            Err(error) => Err(error),
        }
    };
    with_each(&files, |(_, file)| file.bytes, copy)?;
    Ok((to, unlisted))
}
