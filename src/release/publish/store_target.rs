//! A release in a store. A store has no rename, so the objects of a release get their names first, and the record, which says
//! what belongs to it, is put last, by one conditional write.
//!
//! The release is written and verified in a work directory of this machine. Then:
//!
//! | step | what | killed before the next one, it leaves |
//! |---|---|---|
//! | 1. the private record is written under a pending name | a record without a release; the next run of this machine removes it |
//! | 2. the objects are written and read back | objects without a record; the next run of this machine removes them, or a later one |
//! | 3. the record is put, unless the place changed since the run began | the release; readers find the pending record |
//! | 4. the private record gets its name; what the replaced record lists is removed | the release; the next run goes on |
//!
//! The names of objects have a part that is the run's own, so no run writes over an object of another one, or removes one that
//! another one needs, however late a request arrives. The text of the record is the run's own by these names. So a run reads the
//! record back to learn who won step 3: no answer says so, because the client, or something between, may have repeated the
//! request, and an error may come after the store acted.
//!
//! A run that began before the present record was put cannot publish any more. So what no record lists, and is older than the
//! record, belongs to no release and to no run that still can.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use chrono::TimeDelta;

use crate::engine::Context;
use crate::engine::functions::random_key;
use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::input::Source;
use crate::plural::plural;
use crate::progress::CancelToken;
use crate::release::publish::leftovers::Leftovers;
use crate::release::publish::out_folder::Parents;
use crate::release::publish::private_file::{PrivateFile, REQUEST_TIME};
use crate::release::publish::record::{FileRecord, PrivateRecord, PublicRecord, RECORD};
use crate::release::publish::released_files::{is_name_of_release, name_of_run};
use crate::release::publish::store_place::{
    Replaced, check_apart, checked_private, names, objects, release_to_replace,
};
use crate::release::publish::table_files::folders_of;
use crate::release::publish::target::Target;
use crate::release::publish::work_folder::WorkFolder;
use crate::release::publish::{digest, disk};
use crate::store::folder::{Failed, Listed, StoredFolder, Until, with_each};
use crate::store::{Address, RemoteAddress};

/// How long, and how often at most, a run tries to learn whether its record was put.
const PATIENCE: Duration = Duration::from_secs(120);
const TRIES: u32 = 12;
/// The first pause between two tries; each is half as long again.
const PAUSE: Duration = Duration::from_millis(100);

/// What became of the release of a run that another one came before, or perhaps after.
const NOTHING: &str = "nothing of this run was published";
const LATER: &str = "the release of this run is not there, whether or not it was for a moment";

/// By how much clocks of a store may differ.
const CLOCKS: TimeDelta = TimeDelta::minutes(15);

/// How often a record that is replaced may not be there before it counts as removed.
const GONE: u32 = 3;

/// A folder of a store that a run has claimed.
pub(super) struct StoreTarget {
    folder: StoredFolder,
    private: PrivateFile,
    /// What this run calls itself.
    run: String,
    /// The record that was there when the run began, and its release.
    replaced: Option<Replaced>,
    /// Whether the store refuses a write whose condition does not hold, as far as one was tried.
    is_conditional: bool,
    /// What a killed run left, until it is removed.
    left: Leftovers,
    work: WorkFolder,
    _lock: File,
    /// The folders made above the private record.
    _parents: Parents,
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
        let private = checked_private(private, input)?;
        check_apart(out, input).map_err(|error| error.at(&at))?;
        if out.is_in_release().map_err(|error| error.at(&at))? {
            let why = "is inside another release, which would no longer verify; choose another place";
            return Err(Error::policy(why).at(&at));
        }
        let private = PrivateFile::at(&private)?;
        let work = WorkFolder::of_address(out);
        let replaced = release_to_replace(&folder, overwrite, stop).map_err(|error| error.at(&at))?;
        let digest = replaced.as_ref().and_then(|replaced| replaced.digest.as_deref());
        private.check_free(digest).map_err(|error| match &replaced {
            Some(Replaced { digest: None, .. }) => {
                error.and("; the record of the release there is damaged, so it is not known which private record is its own")
            }
            _ => error,
        })?;
        let parents = private.make_parents()?;
        let run = digest::hex(&random_key::<8>()?);
        let left = Leftovers::of(&work, digest)?;
        let mut target = Self {
            folder,
            private,
            run,
            replaced,
            is_conditional: true,
            left,
            _lock: work.create()?,
            work,
            _parents: parents,
        };
        target.left.note(&target.work)?;
        // Another run of this machine may have published since.
        target.replaced =
            release_to_replace(&target.folder, overwrite, stop).map_err(|error| error.at(&at))?;
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
        self.left.note(&self.work)?;
        pending.create(private)?;
        let all: Vec<(String, &FileRecord)> = objects(public).collect();
        let bytes = |(_, file): &(String, &FileRecord)| file.bytes;
        with_each(&all, bytes, |(name, file)| self.write_object(name, file, stop))?;
        self.is_conditional = self.tries_condition(public)?;
        // What is written down last is how long ago the record may have been put.
        self.left.note(&self.work)?;
        stop.check()
    }

    fn write_object(&self, name: &str, file: &FileRecord, stop: &CancelToken) -> Result<()> {
        stop.check()?;
        self.folder.write_file(name, &self.work.release().join(name), stop)?;
        if self.folder.holds(name, file.bytes, &file.sha256, Until::Stopped(stop))? {
            return Ok(());
        }
        let why = "the store holds other bytes than were written there";
        Err(Error::data(why).at(self.folder.shown(name)))
    }

    /// Step 3: puts the record, until it is known whether it is there.
    fn put(&self, text: &str) -> Put {
        let until = Until::Passed(REQUEST_TIME);
        let replaces = self.replaced.as_ref().map(|replaced| &replaced.text);
        let (began, mut pause, mut gone) = (Instant::now(), PAUSE, 0);
        // Why it is not known yet.
        let mut doubt: Option<Error> = None;
        for _ in 0..TRIES {
            let answer = self.folder.write_text(RECORD, text, replaces, until);
            let there = self.folder.text_once(RECORD, until);
            match (&there, replaces) {
                (Ok(Some(there)), _) if there.text == text => return Put::Published,
                // It is as it was: nothing is done yet. The same conditional put once more is what excludes an earlier one that
                // may still arrive: only one of them can succeed.
                (Ok(None), None) => {}
                (Ok(Some(there)), Some(replaced)) if there.is_as(replaced) => {}
                // Another run removes no record, and some stores show what is new a moment later.
                (Ok(None), Some(_)) if gone < GONE => gone += 1,
                (Ok(_), _) if doubt.is_some() || answer.is_ok() => return Put::Unknown(self.lost(LATER)),
                (Ok(_), _) => return Put::NotPublished(self.lost(NOTHING)),
                (Err(_), _) => {}
            }
            let is_readable = there.as_ref().map_or_else(|failed| failed.is_refused, |_| true);
            match (answer, there) {
                // Credentials that do not let it write may not let it read either.
                (Err(Failed { error, is_refused: true }), _) if doubt.is_none() && is_readable => {
                    return Put::NotPublished(error);
                }
                (Err(failed), _) | (Ok(()), Err(failed)) => drop(doubt.get_or_insert(failed.error)),
                (Ok(()), Ok(_)) => {
                    doubt.get_or_insert_with(|| Error::data("the store does not show what it said it wrote"));
                }
            }
            if began.elapsed() > PATIENCE {
                break;
            }
            std::thread::sleep(pause);
            pause = pause * 3 / 2;
        }
        let error = doubt.unwrap_or_else(|| Error::internal("store: a record was not put"));
        let advice = format!(
            "; so it is not known whether the release was published: see what `kanon verify {}` says",
            self.folder
        );
        Put::Unknown(error.and(&advice).coded(ErrorCode::NotKnown))
    }

    /// Returns the error of a run after which another one published.
    fn lost(&self, what: &str) -> Error {
        Error::data(format!("another run changed the release there meanwhile; {what}"))
            .coded(ErrorCode::ConcurrentRun)
            .at(format!("--to {}", self.folder))
    }

    /// Removes what a run wrote that did not publish; returns its error, and whether nothing is left.
    fn take_back(&self, error: Error, public: &PublicRecord, pending: &PrivateFile) -> (Error, bool) {
        let until = Until::Passed(REQUEST_TIME);
        let mut left: Vec<String> = Vec::new();
        if pending.remove().is_err() {
            left.push(format!("the private record {pending}, which holds raw facts, may remain: remove it"));
        }
        let kept = self.folder.remove_all(&names(public).collect::<Vec<_>>(), until);
        if kept > 0 {
            left.push(format!(
                "{} of it, verified but without a record, may remain in {}: a later release to this place removes them",
                plural(kept as u64, "object", "objects"),
                self.folder
            ));
        }
        let is_said = error.is(ErrorCode::ConcurrentRun) || error.kind() == ErrorKind::Interrupted;
        let error = if is_said { error } else { error.and("; nothing was published") };
        (left.iter().fold(error, |error, left| error.and(&format!("; {left}"))), left.is_empty())
    }

    /// Step 4, after the release is published. Returns warnings.
    fn finish(&mut self, public: &PublicRecord, pending: &PrivateFile) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.is_conditional {
            warnings.push(
                "the store ignores the condition of a write, so of two runs to one place at the same time each may say that it \
                 published: let one run at a time release there"
                    .to_owned(),
            );
        }
        if let Err(error) = pending.rename(&self.private, self.replaced_digest()) {
            match (self.private.is_of(&public.digest), pending.text()) {
                // The next run named it.
                (Ok(true), Ok(None)) => {}
                (Ok(true), _) => {
                    warnings.push(format!(
                        "a copy of its private record remains, {pending} ({error}): remove it"
                    ));
                }
                _ => warnings.push(format!(
                    "its private record is {pending} ({error}): `kanon verify --private {}` finds it there",
                    self.private
                )),
            }
        }
        if let Err(error) = self.remove_leftovers(public) {
            warnings.push(format!(
                "what a killed run left could not be removed ({error}): it may hold raw facts"
            ));
        }
        let replaced = self.replaced.iter().flat_map(|replaced| &replaced.objects).cloned();
        let failed = self.remove_unlisted(replaced.collect(), public);
        if failed > 0 {
            self.replaced.iter().for_each(|replaced| self.left.add(replaced));
            warnings.push(format!(
                "{} of an earlier release could not be removed from {}: the next release to this place removes them",
                plural(failed as u64, "object", "objects"),
                self.folder
            ));
        }
        warnings
    }

    /// Returns whether the store refuses a write whose condition does not hold, as far as one can be tried.
    fn tries_condition(&self, public: &PublicRecord) -> Result<bool> {
        let smallest = objects(public).min_by_key(|(_, file)| file.bytes);
        let Some((name, _)) = smallest else { return Ok(true) };
        self.folder.is_conditional(&name, &self.work.release().join(&name), Until::Passed(REQUEST_TIME))
    }

    /// Removes objects of earlier releases, and what is older than the record without being listed in it, as long as the record is
    /// there; returns how many could not be removed.
    fn remove_unlisted(&self, mut removed: BTreeSet<String>, public: &PublicRecord) -> usize {
        let until = Until::Passed(REQUEST_TIME);
        let Ok(listed) = self.folder.list(until) else { return removed.len() };
        match self.is_there(public) {
            Ok(true) => {}
            Ok(false) => return 0,
            Err(_) => return removed.len(),
        }
        let record = listed.iter().find(|object| object.name == RECORD).map(|record| record.modified);
        let is_old = |object: &&Listed| record.is_some_and(|record| object.modified < record - CLOCKS);
        let old = listed.iter().filter(is_old).filter(|object| is_name_of_release(&object.name));
        removed.extend(old.map(|object| object.name.clone()));
        let kept: BTreeSet<String> = names(public).collect();
        self.folder.remove_all(&removed.difference(&kept).cloned().collect::<Vec<_>>(), until)
    }

    /// Removes what killed runs left: what is on its way of them fails on the record that was put now.
    fn remove_leftovers(&mut self, public: &PublicRecord) -> Result<()> {
        let pending = self.private.all_pending()?;
        if !self.is_there(public)? {
            return Ok(());
        }
        self.left.remove(&self.folder, public)?;
        self.left = Leftovers::default();
        PrivateFile::remove_outdated(&pending, &self.work.id(), &public.digest)
    }

    /// Returns whether the record is still there. What was listed before holds nothing then that a later run needs.
    fn is_there(&self, public: &PublicRecord) -> Result<bool> {
        let (there, text) = (self.folder.text(RECORD, Until::Passed(REQUEST_TIME))?, public.to_json()?);
        Ok(there.is_some_and(|there| there.text == text))
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
                let name = format!("{}{}", folders_of(&file.name), name_of_run(number, &self.run));
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
        let pending = self.private.pending(&self.run, &self.work.id(), self.replaced_digest());
        let before = self.left.clone();
        // If it is not known whether it is published, the next run finds out.
        self.left = self.left.and(&pending, self.replaced.as_ref());
        let put = match self.write_all(public, &private, &pending, stop) {
            Ok(()) => self.put(&text),
            Err(error) => Put::NotPublished(error),
        };
        match put {
            Put::Published => {
                // Its private record is no leftover.
                self.left = before;
                Ok(self.finish(public, &pending))
            }
            Put::NotPublished(error) => {
                let (error, is_whole) = self.take_back(error, public, &pending);
                if is_whole {
                    self.left = before;
                }
                Err(error.at("publishing the release"))
            }
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
        self.left.keep(&self.work);
    }
}
