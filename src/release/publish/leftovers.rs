//! What a killed run to a store left: its work directory, its objects, and its private record under a pending name.
//!
//! A request of a killed run may still arrive. So what it left in the store stays until another record is put, under whose
//! condition that of the killed run fails, or until enough time has passed.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, SystemTime};

use crate::engine::Context;
use crate::error::{ErrorCode, Result};
use crate::release::publish::disk;
use crate::release::publish::private_file::{PrivateFile, REQUEST_TIME};
use crate::release::publish::record::{PublicRecord, RECORD};
use crate::release::publish::released_files::run_of_name;
use crate::release::publish::store_place::{Replaced, names};
use crate::release::publish::work_folder::WorkFolder;
use crate::store::folder::{StoredFolder, Until};
use crate::store::{Address, RemoteAddress};

/// After this time no request of a killed run arrives any more.
const ON_THE_WAY: Duration = Duration::from_secs(300);

/// What killed runs left.
#[derive(Debug, Clone, Default)]
pub(super) struct Leftovers {
    /// Their private records that are pending. The names tell the runs, whose objects are left, too.
    pending: Vec<PrivateFile>,
    /// The runs whose release they would have replaced, or have replaced without removing its objects.
    replaced: BTreeSet<String>,
}

/// How the note of a run that is replaced begins.
const REPLACED: &str = "replaced ";

impl Leftovers {
    /// Removes the work directory of a killed run; returns what else it left, unless that is of the release with this digest, and
    /// what others had left before.
    ///
    /// # Errors
    /// A data error if another run is active, or if the directory cannot be removed; a policy error if it holds what kanon did not
    /// make.
    pub(super) fn of(work: &WorkFolder, published: Option<&str>) -> Result<Self> {
        work.check()?;
        if !work.wait_for_lock() {
            return Ok(Self::default());
        }
        let place = format!("work directory {} of an earlier run", work.path().display());
        let _lock = work.claim()?;
        let mut left = Self::default();
        for line in fs::read_to_string(work.private_place()).unwrap_or_default().lines() {
            if let Some(run) = line.strip_prefix(REPLACED) {
                left.replaced.insert(run.to_owned());
                continue;
            }
            let pending = PrivateFile::of_shown(line)?;
            if pending.run().is_some() && !published.map_or(Ok(false), |digest| pending.is_of(digest))? {
                left.pending.push(pending);
            }
        }
        work.remove().context(&place)?;
        Ok(left)
    }

    /// Returns also what a run would leave whose private record is `pending`, and which replaces a release of some objects.
    pub(super) fn and(&self, pending: &PrivateFile, replaced: Option<&Replaced>) -> Self {
        let mut all = self.clone();
        all.pending.insert(0, pending.clone());
        all.replaced.extend(replaced.into_iter().flat_map(Replaced::runs));
        all
    }

    /// Notes it in the work directory.
    ///
    /// # Errors
    /// A data error.
    pub(super) fn note(&self, work: &WorkFolder) -> Result<()> {
        let pending = self.pending.iter().map(|pending| format!("{pending}\n"));
        let replaced = self.replaced.iter().map(|run| format!("{REPLACED}{run}\n"));
        let lines: String = pending.chain(replaced).collect();
        disk::write_private(&work.private_place(), &lines).context(&work.place())
    }

    /// Notes it for the next run, as if this one had been killed, too.
    pub(super) fn keep(&self, work: &WorkFolder) {
        // Another run that has begun since cannot know it.
        if !self.is_empty()
            && let Ok(_lock) = work.create()
        {
            let _ = self.note(work);
        }
    }

    /// Adds the objects of a release that was replaced.
    pub(super) fn add(&mut self, replaced: &Replaced) {
        self.replaced.extend(replaced.runs());
    }

    fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.replaced.is_empty()
    }

    /// Removes it, from beside the private record and from the folder of a release.
    ///
    /// # Errors
    /// A data error.
    pub(super) fn remove(&self, folder: &StoredFolder, release: &PublicRecord) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let (until, kept) = (Until::Passed(REQUEST_TIME), names(release).collect::<BTreeSet<String>>());
        let mut runs: BTreeSet<String> = self.pending.iter().filter_map(PrivateFile::run).collect();
        runs.extend(self.replaced.iter().cloned());
        for object in folder.list(until)? {
            let is_left = run_of_name(&object.name).is_some_and(|run| runs.contains(run));
            if is_left && !kept.contains(&object.name) {
                folder.remove(&object.name, until)?;
            }
        }
        self.pending.iter().try_for_each(PrivateFile::remove)
    }
}

/// Ends what killed runs left of a release that is in its place and stays there. A run that is active is left alone, and so is one
/// that was killed a moment ago.
///
/// # Errors
/// A data error.
pub(super) fn end_killed_runs(out: &RemoteAddress, private: &Address, release: &PublicRecord) -> Result<()> {
    let work = WorkFolder::of_address(out);
    let began = fs::metadata(work.private_place()).and_then(|facts| facts.modified());
    // A clock that was set back makes it recent.
    let is_recent = began
        .is_ok_and(|began| began.elapsed().is_ok_and(|age| age < ON_THE_WAY) || began > SystemTime::now());
    if !is_recent {
        match Leftovers::of(&work, Some(&release.digest)) {
            Err(error) if error.is(ErrorCode::ConcurrentRun) => return Ok(()),
            left => {
                let left = left?;
                let ended = end(&left, out, release);
                if !matches!(ended, Ok(true)) {
                    left.keep(&work);
                    return ended.map(drop);
                }
            }
        }
    }
    PrivateFile::at(private)?.end_pending(&release.digest)
}

/// Removes what killed runs left, if the release is still there; returns whether it is.
fn end(left: &Leftovers, out: &RemoteAddress, release: &PublicRecord) -> Result<bool> {
    let folder = StoredFolder::open(out)?;
    // One that was killed may have published since the release was looked at.
    let there = folder.text(RECORD, Until::Passed(REQUEST_TIME))?;
    if there.is_none_or(|there| Some(there.text) != release.to_json().ok()) {
        return Ok(false);
    }
    left.remove(&folder, release)?;
    Ok(true)
}
