//! A release in a store. A store has no rename, so the objects of a release get their names first, and the record, which says
//! what belongs to it, is put last, by one conditional write.
//!
//! The release is written and verified in a work directory of this machine. Then:
//!
//! | step | what | killed, or failed, before the next one |
//! |---|---|---|
//! | 1. the private record is written under a pending name | a record without a release | the next run of this machine removes it |
//! | 2. the objects are written, named by their content, and read back | objects of a verified release, without a record | the failing run removes what it wrote; of a killed one, a later run after a day |
//! | 3. the record is put, if what is there is still what was there when the run began | the release | - |
//! | 4. objects that another run removed are put again; the private record gets its name; what the replaced record lists is removed | the release | readers find the pending record; the next run cleans up |
//!
//! An answer does not say who won step 3: the client, or something between, may have repeated the request, and an error may come
//! after the store acted. So the record's object carries the name of the run, and is read back.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::engine::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::input::Source;
use crate::plural::plural;
use crate::progress::CancelToken;
use crate::release::publish::folder_place::is_of_release;
use crate::release::publish::out_folder::{Parents, absolute, reads};
use crate::release::publish::private_file::PrivateFile;
use crate::release::publish::record::{FileRecord, PrivateRecord, PublicRecord, RECORD, TableRecord};
use crate::release::publish::released_files::{is_of_content, name_of_content};
use crate::release::publish::target::Target;
use crate::release::publish::work_folder::WorkFolder;
use crate::release::publish::{digest, disk};
use crate::store::folder::{NotWritten, StoredFolder, StoredText, Until};
use crate::store::{Address, RemoteAddress};

/// The time for one request that has to be made although the run was stopped.
const LAST: Duration = Duration::from_secs(60);

/// How long, and how often at most, a run tries to learn whether its record was put.
const PATIENCE: Duration = Duration::from_secs(120);
const TRIES: u32 = 12;
/// The first pause between two tries; each is half as long again.
const PAUSE: Duration = Duration::from_millis(100);

/// How often a record that is replaced may not be there before it counts as removed.
const GONE: u32 = 3;

/// How much older than a record an object that it does not list has to be to count as left by a killed run.
const LEFT: chrono::TimeDelta = chrono::TimeDelta::hours(24);

/// A folder of a store that a run has claimed.
pub(super) struct StoreTarget {
    folder: StoredFolder,
    private: PrivateFile,
    /// What this run calls itself.
    run: String,
    /// The record that was there when the run began, and its release.
    replaced: Option<Replaced>,
    /// The objects that were written.
    written: Vec<String>,
    work: WorkFolder,
    _lock: File,
    /// The folders made above the private record.
    _parents: Parents,
}

/// A release that is replaced.
struct Replaced {
    text: StoredText,
    /// Its digest and its objects, if the record can be read.
    digest: Option<String>,
    objects: BTreeSet<String>,
}

impl Replaced {
    fn new(text: StoredText) -> Self {
        let record = PublicRecord::parse(&text.text, &RECORD).ok();
        let objects = record.iter().flat_map(names).collect();
        Self { text, digest: record.map(|record| record.digest), objects }
    }
}

/// What became of the record.
enum Put {
    Published,
    NotPublished(Error),
    Unknown(Error),
}

impl StoreTarget {
    /// Claims a place.
    ///
    /// # Errors
    /// As [`Place::claim`](super::place::Place::claim).
    pub(super) fn begin(
        out: &RemoteAddress,
        private: &Address,
        overwrite: bool,
        input: &Source,
        stop: &CancelToken,
    ) -> Result<Self> {
        let at = format!("--to {out}");
        let folder = StoredFolder::open(out).map_err(|error| error.at("--to"))?;
        let private = checked(private, input)?;
        check_apart(out, input).map_err(|error| error.at(&at))?;
        for above in out.folders_above() {
            let above = StoredFolder::open(&above)?;
            // Where this may not be asked, nothing is known of it.
            if matches!(above.text(RECORD, false, Until::Stopped(stop)), Ok(Some(_))) {
                let why = "is inside another release, which would no longer verify; choose another place";
                return Err(Error::policy(why).at(&at));
            }
        }
        let private = PrivateFile::at(&private)?;
        let work = WorkFolder::of_address(out);
        let replaced = look(&folder, overwrite, stop).map_err(|error| error.at(&at))?;
        clear_leftovers(&work, replaced.as_ref())?;
        private.check_free(replaced.as_ref().and_then(|replaced| replaced.digest.as_deref()))?;
        let parents = private.make_parents()?;
        let lock = work.create()?;
        let run = digest::hex(&digest::random_key::<8>()?);
        let target = Self {
            folder,
            private,
            run,
            replaced,
            written: Vec::new(),
            work,
            _lock: lock,
            _parents: parents,
        };
        let doing = target.work.place();
        disk::create_folder(&target.work.release()).context(&doing)?;
        disk::create_private_folder(&target.work.spill()).context(&doing)?;
        Ok(target)
    }

    fn replaced_digest(&self) -> Option<&str> {
        self.replaced.as_ref().and_then(|replaced| replaced.digest.as_deref())
    }

    /// Steps 1 and 2.
    fn write_all(
        &mut self,
        public: &PublicRecord,
        private: &str,
        pending: &PrivateFile,
        stop: &CancelToken,
    ) -> Result<()> {
        disk::write_private(&self.work.private_place(), &pending.to_string()).context(&self.work.place())?;
        pending.write(private, false)?;
        for table in &public.tables {
            for file in &table.files {
                stop.check()?;
                self.write_object(table, file, stop)?;
            }
        }
        stop.check()
    }

    fn write_object(&mut self, table: &TableRecord, file: &FileRecord, stop: &CancelToken) -> Result<()> {
        let name = name_of(table, file);
        let other = || {
            let why = "an object of this name with other content is there, and was not replaced; remove it";
            Error::data(why).at(self.folder.address_of(&name))
        };
        match self.folder.bytes_of(&name, Until::Stopped(stop))? {
            Some(bytes) if bytes == file.bytes => {}
            Some(_) => return Err(other()),
            None => {
                self.written.push(name.clone());
                self.folder.write_file(&name, &self.path_of(table, file), stop)?;
            }
        }
        match self.folder.holds(&name, file.bytes, &file.sha256, Until::Stopped(stop))? {
            true => Ok(()),
            false => Err(other()),
        }
    }

    fn path_of(&self, table: &TableRecord, file: &FileRecord) -> PathBuf {
        table.path(&self.work.release()).join(&file.name)
    }

    /// Step 3: puts the record, until it is known whether it is there.
    fn put(&self, text: &str) -> Put {
        let until = Until::Passed(LAST);
        let replaces = self.replaced.as_ref().map(|replaced| &replaced.text);
        let (began, mut pause, mut is_uncertain, mut gone) = (Instant::now(), PAUSE, false, 0);
        let mut last = Error::internal("store: a record was not put");
        for _ in 0..TRIES {
            let answer = self.folder.write_text(RECORD, text, &self.run, replaces, until);
            let there = self.folder.text(RECORD, true, until);
            match (&there, replaces) {
                (Ok(Some(there)), _) if there.is_by(&self.run) => return Put::Published,
                // It is as it was: nothing is done yet. The same conditional put once more is what excludes an earlier one that
                // may still arrive: only one of them can succeed.
                (Ok(None), None) => {}
                (Ok(Some(there)), Some(replaced)) if there.is_as(replaced) => {}
                // Another run removes no record, and some stores show what is new a moment later.
                (Ok(None), Some(_)) if gone < GONE => gone += 1,
                (Ok(_), _) => return Put::NotPublished(self.lost()),
                (Err(_), _) => {}
            }
            match answer {
                Err(NotWritten { error, is_certain: true }) if !is_uncertain => {
                    return Put::NotPublished(error);
                }
                Err(NotWritten { error, .. }) => last = error,
                Ok(()) => last = there.err().unwrap_or(last),
            }
            is_uncertain = true;
            if began.elapsed() > PATIENCE {
                break;
            }
            std::thread::sleep(pause);
            pause = pause * 3 / 2;
        }
        let out = &self.folder;
        Put::Unknown(
            last.and(&format!(
                "; so it is not known whether the release was published: see what `kanon verify {out}` says"
            ))
            .coded(ErrorCode::NotKnown),
        )
    }

    /// Returns the error of a run after which another one published.
    fn lost(&self) -> Error {
        let why = "another run changed the release there meanwhile; nothing of this run was published";
        Error::data(why).coded(ErrorCode::ConcurrentRun).at(format!("--to {}", self.folder))
    }

    /// Removes what a run wrote that did not publish; returns its error.
    fn take_back(&self, error: Error, pending: &PrivateFile) -> Error {
        let until = Until::Passed(LAST);
        let mut left: Vec<String> = Vec::new();
        if pending.remove().is_err() {
            left.push(format!("the private record {pending}, which holds raw facts, remains; remove it"));
        }
        // Another run may have published the same content.
        let listed: Option<BTreeSet<String>> = match self.folder.text(RECORD, false, until) {
            Ok(there) => {
                let record = there.and_then(|there| PublicRecord::parse(&there.text, &RECORD).ok());
                Some(record.iter().flat_map(names).collect())
            }
            Err(_) => None,
        };
        let own =
            self.written.iter().filter(|name| listed.as_ref().is_none_or(|listed| !listed.contains(*name)));
        let kept = own.filter(|name| listed.is_none() || self.folder.remove(name, until).is_err()).count();
        if kept > 0 {
            left.push(format!(
                "{} of it, verified but without a record, may remain in {}; a later release to this place removes them after a day",
                plural(kept as u64, "object", "objects"),
                self.folder
            ));
        }
        left.iter().fold(error, |error, left| error.and(&format!("; {left}")))
    }

    /// Step 4, after the release is published. Returns warnings.
    fn finish(&self, public: &PublicRecord, private: &str, pending: &PrivateFile) -> Vec<String> {
        let until = Until::Passed(LAST);
        let mut warnings = Vec::new();
        if let Err(error) = self.put_missing(public) {
            warnings.push(format!(
                "it may lack objects ({error}): verify it, and release it again with --overwrite if it does"
            ));
        }
        if !self.is_conditional(public) {
            warnings.push(
                "the store ignores the condition of a write, so of two runs to one place at the same time each may say that it \
                 published: let one run at a time release there"
                    .to_owned(),
            );
        }
        let named = self
            .private
            .check_free(self.replaced_digest())
            .and_then(|()| self.private.write(private, self.replaced_digest().is_some()))
            .and_then(|()| pending.remove());
        if let Err(error) = named {
            warnings.push(format!(
                "its private record is {pending} ({error}): `kanon verify --private {}` finds it there",
                self.private
            ));
        }
        let kept: BTreeSet<String> = names(public).collect();
        let replaced = self.replaced.iter().flat_map(|replaced| &replaced.objects).cloned();
        let mut removed: BTreeSet<String> = replaced.collect();
        removed.extend(self.left_by_killed_runs());
        let failed =
            removed.difference(&kept).filter(|name| self.folder.remove(name, until).is_err()).count();
        if failed > 0 {
            warnings.push(format!(
                "{} of an earlier release could not be removed from {}; the next release with --overwrite removes them after a day",
                plural(failed as u64, "object", "objects"),
                self.folder
            ));
        }
        warnings
    }

    /// Puts objects of the release again that are not there: a run that failed may have removed what it had written too.
    fn put_missing(&self, public: &PublicRecord) -> Result<()> {
        let listed = self.folder.list(Until::Passed(LAST))?;
        let there: BTreeSet<&str> = listed.iter().map(|object| object.name.as_str()).collect();
        for table in &public.tables {
            for file in &table.files {
                let name = name_of(table, file);
                if !there.contains(name.as_str()) {
                    self.folder.write_file(&name, &self.path_of(table, file), &CancelToken::default())?;
                }
            }
        }
        Ok(())
    }

    /// Returns whether the store refuses to put the record a second time, as the condition says.
    fn is_conditional(&self, public: &PublicRecord) -> bool {
        let replaces = self.replaced.as_ref().map(|replaced| &replaced.text);
        let text = public.to_json().unwrap_or_default();
        self.folder.write_text(RECORD, &text, &self.run, replaces, Until::Passed(LAST)).is_err()
    }

    /// Returns objects that no record lists and that are too old to be those of a run that is active.
    fn left_by_killed_runs(&self) -> Vec<String> {
        let Ok(listed) = self.folder.list(Until::Passed(LAST)) else { return Vec::new() };
        let record = listed.iter().find(|object| object.name == RECORD).map(|record| record.modified);
        let is_old =
            |object: &chrono::DateTime<chrono::Utc>| record.is_some_and(|record| *object < record - LEFT);
        let left =
            listed.into_iter().filter(|object| is_of_content(&object.name) && is_old(&object.modified));
        left.map(|object| object.name).collect()
    }
}

impl Target for StoreTarget {
    fn release(&self) -> PathBuf {
        self.work.release()
    }

    fn spill(&self) -> PathBuf {
        self.work.spill()
    }

    fn complete(&mut self, mut record: PublicRecord) -> Result<PublicRecord> {
        for table in &mut record.tables {
            let folder = table.path(&self.work.release());
            for (number, file) in table.files.iter_mut().enumerate() {
                let name = name_of_content(number, &file.sha256);
                disk::rename(&folder.join(&file.name), &folder.join(&name)).context("naming the release")?;
                file.name = name;
            }
        }
        let record = record.sealed()?;
        disk::write_new(&self.release().join(RECORD), &record.to_json()?).context("writing the record")?;
        Ok(record)
    }

    fn publish(
        mut self: Box<Self>,
        public: &PublicRecord,
        private: &PrivateRecord,
        stop: &CancelToken,
    ) -> Result<Vec<String>> {
        let (text, private) = (public.to_json()?, private.to_json()?);
        let pending = self.private.pending(&self.run, self.replaced_digest());
        let put = match self.write_all(public, &private, &pending, stop) {
            Ok(()) => self.put(&text),
            Err(error) => Put::NotPublished(error),
        };
        match put {
            Put::Published => Ok(self.finish(public, &private, &pending)),
            Put::NotPublished(error) => Err(self.take_back(error, &pending).at("publishing the release")),
            // The put may still arrive, so all that it needs stays.
            Put::Unknown(error) => {
                let error =
                    error.and(&format!("; if it was, {pending} is its private record, else remove that"));
                Err(error.at("publishing the release"))
            }
        }
    }
}

impl Drop for StoreTarget {
    fn drop(&mut self) {
        self.work.remove_at_end();
    }
}

/// Returns the name of an object below the folder of its release.
pub(super) fn name_of(table: &TableRecord, file: &FileRecord) -> String {
    match &table.folder {
        Some(folder) => format!("{folder}/{}", file.name),
        None => file.name.clone(),
    }
}

/// Returns the names of the objects of a release, but for its record.
fn names(record: &PublicRecord) -> impl Iterator<Item = String> {
    record.tables.iter().flat_map(|table| table.files.iter().map(|file| name_of(table, file)))
}

/// Checks where the private record will be; returns it with an absolute path.
fn checked(private: &Address, input: &Source) -> Result<Address> {
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
        Address::Local(path) if path.parent().is_some_and(is_of_release) => {
            let why = "is inside a release; a private record holds raw facts, so keep it elsewhere";
            return Err(Error::policy(why).at(at));
        }
        Address::Local(path) => input.is_some_and(|input| reads(input, path)),
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
fn check_apart(out: &RemoteAddress, input: &Source) -> Result<()> {
    let Source::Files(input) = input else { return Ok(()) };
    let is_held = |address: &Address| matches!(address, Address::Remote(object) if object.is_in(out));
    if input.objects().iter().any(|object| is_held(object.address())) {
        return Err(Error::policy("this folder holds the input; choose another place"));
    }
    let part = out.join(&name_of_content(0, "00000000"));
    if input.remote_arguments().any(|input| input.reaches(out) || input.reaches(&part)) {
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
fn look(folder: &StoredFolder, overwrite: bool, stop: &CancelToken) -> Result<Option<Replaced>> {
    let record = folder.text(RECORD, false, Until::Stopped(stop))?;
    let listed = folder.list(Until::Stopped(stop))?;
    let is_foreign = listed.iter().any(|object| object.name != RECORD && !is_of_content(&object.name));
    match (record, is_foreign) {
        (None, true) => {
            Err(Error::policy("other objects are there, and no kanon release; choose another name"))
        }
        (None, false) => Ok(None),
        (Some(_), _) if !overwrite => {
            let why = "a release already exists; --overwrite replaces it";
            Err(Error::policy(why).coded(ErrorCode::Exists))
        }
        (Some(_), true) => Err(Error::policy("an object there does not belong to the release; move it away")),
        (Some(record), false) => Ok(Some(Replaced::new(record))),
    }
}

/// Removes what a killed run left on this machine, with its private record that is pending, unless that is of the release that
/// is there.
fn clear_leftovers(work: &WorkFolder, there: Option<&Replaced>) -> Result<()> {
    work.check()?;
    if !work.wait_for_lock() {
        return Ok(());
    }
    let place = format!("work directory {} of an earlier run", work.path().display());
    let _lock = work.claim()?;
    if let Ok(pending) = fs::read_to_string(work.private_place()) {
        let pending = PrivateFile::at(&Address::parse(&pending)?)?;
        let published = there.and_then(|there| there.digest.as_deref());
        if !published.map_or(Ok(false), |digest| pending.is_of(digest))? {
            pending.remove()?;
        }
    }
    work.remove().context(&place)
}
