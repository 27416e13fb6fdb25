//! The place of a release: OUT, and where its private record is kept.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::input::Source;
use crate::progress::CancelToken;
use crate::release::publish::folder_place::FolderPlace;
use crate::release::publish::out_folder::{absolute, is_in_pattern};
use crate::release::publish::private_file::PrivateFile;
use crate::release::publish::record::{PRIVATE_END, PrivateRecord, PublicRecord};
use crate::release::publish::staging::Staging;
use crate::release::publish::store_place::names;
use crate::release::publish::store_target::StoreTarget;
use crate::release::publish::target::Target;
use crate::store::Address;

/// Where a release is published, and where its private record is kept: folders of this machine or of stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    out: Address,
    /// On this machine, always there.
    private: Option<Address>,
    is_apart: bool,
    /// The file of the key of pseudonyms, if it was named.
    key: Option<PathBuf>,
}

impl Place {
    /// Returns the place of a release in the folder `out` of this machine, with `NAME.private.json` beside it.
    ///
    /// # Errors
    /// A policy error if `out` has no name.
    pub fn beside(out: &Path) -> Result<Self> {
        FolderPlace::beside(out).map(Self::of_folder)
    }

    /// Returns the place of a release in the folder `out` of this machine, with its private record in `private`: a
    /// file where that ends in `.json` and is no folder, otherwise `NAME.private.json` in the folder
    /// `private`. Neither needs to exist.
    ///
    /// # Errors
    /// A policy error if `out` has no name, or if `private` is not UTF-8.
    pub fn apart(out: &Path, private: &Path) -> Result<Self> {
        FolderPlace::apart(out, private).map(Self::of_folder)
    }

    /// Returns the place of a release at `out`, a path or the address of a folder of a store (`s3://lake/safe`), with its
    /// private record in `private`, as in [`apart`](Self::apart). Beside a release on this machine it may be left out, and
    /// where a release in a store is only read.
    ///
    /// # Errors
    /// A policy error if an address is malformed or names no folder, if the private record would be in the release, or if that
    /// of a release on this machine would be in a store.
    pub fn at(out: &str, private: Option<&str>) -> Result<Self> {
        Self::of(Address::parse(out)?, private.map(Address::parse).transpose()?)
    }

    /// Returns the place of a release at `out`, as [`at`](Self::at) does.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    #[doc(hidden)]
    pub fn of(out: Address, private: Option<Address>) -> Result<Self> {
        let address = match (&out, &private) {
            (Address::Local(out), None) => return Self::beside(out),
            (Address::Local(out), Some(Address::Local(private))) => return Self::apart(out, private),
            (Address::Local(_), Some(private @ Address::Remote(_))) => {
                let why = "is an address, but the release is on this machine, and so is its private record; give a path";
                return Err(Error::policy(why).at(format!("--private {private}")));
            }
            (Address::Remote(address), _) => address,
        };
        let Some(name) = address.key().rsplit('/').next().filter(|name| !name.is_empty()) else {
            let why = "expected a folder of the store, such as s3://lake/safe";
            return Err(Error::policy(why).at(format!("--to {out}")));
        };
        for place in
            [Some(&out), private.as_ref()].into_iter().flatten().filter(|place| place.local().is_none())
        {
            // Some stores take it for a slash.
            if place.to_string().contains('\\') {
                return Err(Error::policy(format!(
                    "{place}: expected no backslash in an address that is written to"
                )));
            }
        }
        let private = match private {
            Some(Address::Local(path)) => FolderPlace::apart(Path::new(name), &path)
                .map(|place| Address::Local(place.private().to_path_buf())),
            Some(Address::Remote(there)) if there.is_in(address) => {
                let why = "is inside the release; a private record holds raw facts, so keep it elsewhere";
                Err(Error::policy(why).at(format!("--private {there}")))
            }
            Some(Address::Remote(there)) if there.key().ends_with(".json") => {
                Ok(Address::Remote(there.trimmed()))
            }
            Some(Address::Remote(there)) => Ok(Address::Remote(there.join(&format!("{name}{PRIVATE_END}")))),
            None => return Ok(Self { out, private: None, is_apart: true, key: None }),
        };
        Ok(Self { private: Some(private?), out, is_apart: true, key: None })
    }

    fn of_folder(place: FolderPlace) -> Self {
        Self {
            out: Address::Local(place.out().to_path_buf()),
            private: Some(Address::Local(place.private().to_path_buf())),
            is_apart: place.is_apart(),
            key: None,
        }
    }

    /// Keeps the key of pseudonyms in this file, instead of `NAME.key` beside the private record.
    #[must_use]
    pub fn with_key(self, key: Option<PathBuf>) -> Self {
        Self { key, ..self }
    }

    /// Returns the file of the key of pseudonyms that was named.
    pub(in crate::release) fn named_key(&self) -> Option<PathBuf> {
        self.key.clone()
    }

    /// Returns the file of the key of pseudonyms; `None` if the private record is in a store, and no file was named.
    pub(in crate::release) fn key(&self) -> Option<PathBuf> {
        let beside = || {
            let private = self.private.as_ref()?.local()?;
            let name = private.file_name()?.to_str()?;
            let name = name.strip_suffix(PRIVATE_END).or_else(|| name.strip_suffix(".json")).unwrap_or(name);
            Some(private.with_file_name(format!("{name}.key")))
        };
        self.key.clone().or_else(beside)
    }

    /// Returns the folder of the release.
    pub fn out(&self) -> &Address {
        &self.out
    }

    /// Returns the file of the private record. Where a release in a store is only read, it may be unknown.
    pub fn private(&self) -> Option<&Address> {
        self.private.as_ref()
    }

    /// Returns whether the private record was given a place of its own.
    pub fn is_apart(&self) -> bool {
        self.is_apart
    }

    /// Reads the private record if it belongs to `public`; `None` if there is none, or if it belongs to
    /// another release.
    ///
    /// # Errors
    /// A data error if it cannot be read.
    pub fn private_record(&self, public: &PublicRecord) -> Result<Option<PrivateRecord>> {
        if let Some(place) = self.in_folder() {
            return place.private_record(public);
        }
        let Some(private) = &self.private else { return Ok(None) };
        let Some(found) = PrivateFile::at(private)?.of_release(&public.digest)? else { return Ok(None) };
        Ok(found.text()?.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Returns whether there is a file for the private record on this machine, or somebody named it or the key.
    pub(crate) fn has_secrets(&self) -> bool {
        let private = self.private().and_then(Address::local);
        self.names_secrets() || private.is_some_and(Path::is_file)
    }

    /// Returns whether somebody named the private record or the key.
    fn names_secrets(&self) -> bool {
        self.named_key().is_some() || self.is_apart && self.private.is_some()
    }

    /// Returns the same place with absolute paths.
    ///
    /// # Errors
    /// A policy error if a folder above cannot be used, or if the place is in another release.
    #[doc(hidden)]
    pub fn absolute(&self) -> Result<Self> {
        if let Some(place) = self.in_folder() {
            return Ok(Self::of_folder(place.absolute()?).with_key(self.key.clone()));
        }
        let private = self.private.as_ref().map(|private| match private {
            Address::Local(path) => absolute("--private", path).map(Address::Local),
            Address::Remote(_) => Ok(private.clone()),
        });
        Ok(Self { private: private.transpose()?, ..self.clone() })
    }

    /// Returns the place of a release on this machine.
    pub(crate) fn in_folder(&self) -> Option<FolderPlace> {
        match (&self.out, &self.private) {
            (Address::Local(out), Some(Address::Local(private))) if self.is_apart => {
                Some(FolderPlace::with_file(out, private.clone()))
            }
            (Address::Local(out), _) => FolderPlace::beside(out).ok(),
            _ => None,
        }
    }

    /// Checks that no pattern of the input matches files of a completed release.
    ///
    /// # Errors
    /// A policy error if one does.
    pub(in crate::release) fn check_not_input(&self, input: &Source, public: &PublicRecord) -> Result<()> {
        let Source::Files(input) = input else { return Ok(()) };
        let folder = self.in_folder().map(|place| place.absolute()).transpose()?;
        let is_matched = |name: String| match (&self.out, &folder) {
            (_, Some(place)) => is_in_pattern(input, &place.out().join(name)),
            (Address::Remote(out), None) => {
                input.remote_arguments().any(|input| input.reaches(&out.join(&name)))
            }
            (Address::Local(_), None) => false,
        };
        if names(public).any(is_matched) {
            let why = "the input's pattern matches files of the release, so the next run would read it; choose another place";
            return Err(Error::policy(why).at(format!("--to {}", self.out)));
        }
        Ok(())
    }

    /// Claims the place for a run.
    ///
    /// # Errors
    /// A policy error if the release or its private record would be in the input or in another release, or would replace what it
    /// may not; a data error if another run works there or the store fails.
    pub(in crate::release) fn claim(
        &self,
        overwrite: bool,
        input: &Source,
        stop: &CancelToken,
    ) -> Result<Box<dyn Target>> {
        match (&self.out, self.in_folder()) {
            (_, Some(place)) => Ok(Box::new(Staging::begin(&place, overwrite, input)?)),
            (Address::Remote(out), _) => {
                let why = "a release in a store needs a place for its private record, which holds raw facts: give a path, or an \
                           address outside of the release, with --private or `[output] private`";
                let private = self.private.as_ref();
                let private = private.ok_or_else(|| Error::policy(why).at(format!("--to {out}")))?;
                Ok(Box::new(StoreTarget::begin(out, private, overwrite, input, stop)?))
            }
            (Address::Local(_), None) => Err(Error::internal("place: a folder without a name")),
        }
    }
}
