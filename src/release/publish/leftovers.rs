//! What a killed run to a store left: its work directory, its objects, and its private record under a pending name.
//!
//! A request of a killed run may still arrive. So what it left in the store stays until another record is put, under whose
//! condition that of the killed run fails, or until enough time has passed.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use crate::engine::Context;
use crate::error::{ErrorCode, Result};
use crate::release::publish::disk;
use crate::release::publish::private_file::{LAST, PrivateFile};
use crate::release::publish::record::{PublicRecord, RECORD};
use crate::release::publish::released_files::run_of_name;
use crate::release::publish::store_place::names;
use crate::release::publish::work_folder::WorkFolder;
use crate::store::folder::{StoredFolder, Until};
use crate::store::{Address, RemoteAddress};

/// After this time no request of a killed run arrives any more.
const ON_THE_WAY: Duration = Duration::from_secs(120);

/// The private records that killed runs left pending. Their names tell the runs, whose objects are left too.
#[derive(Debug, Default)]
pub(super) struct Leftovers(Vec<PrivateFile>);

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
        let mut left = Vec::new();
        for pending in fs::read_to_string(work.private_place()).unwrap_or_default().lines() {
            let pending = PrivateFile::at(&Address::parse(pending)?)?;
            if pending.run().is_some() && !published.map_or(Ok(false), |digest| pending.is_of(digest))? {
                left.push(pending);
            }
        }
        work.remove().context(&place)?;
        Ok(Self(left))
    }

    /// Notes in the work directory what would be left if this run was killed, too.
    ///
    /// # Errors
    /// A data error.
    pub(super) fn note(&self, work: &WorkFolder, own: Option<&PrivateFile>) -> Result<()> {
        let lines: String = own.into_iter().chain(&self.0).map(|pending| format!("{pending}\n")).collect();
        disk::write_private(&work.private_place(), &lines).context(&work.place())
    }

    /// Removes it, from beside the private record and from the folder of a release.
    ///
    /// # Errors
    /// A data error.
    pub(super) fn remove(&self, folder: &StoredFolder, release: &PublicRecord) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let (until, kept) = (Until::Passed(LAST), names(release).collect::<BTreeSet<String>>());
        let runs: BTreeSet<String> = self.0.iter().filter_map(PrivateFile::run).collect();
        for object in folder.list(until)? {
            let is_left = run_of_name(&object.name).is_some_and(|run| runs.contains(run));
            if is_left && !kept.contains(&object.name) {
                folder.remove(&object.name, until)?;
            }
        }
        self.0.iter().try_for_each(PrivateFile::remove)
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
    let is_recent = began.is_ok_and(|began| began.elapsed().is_ok_and(|age| age < ON_THE_WAY));
    if !is_recent {
        match Leftovers::of(&work, Some(&release.digest)) {
            Err(error) if error.is(ErrorCode::ConcurrentRun) => return Ok(()),
            left => {
                let (left, folder) = (left?, StoredFolder::open(out)?);
                // One that was killed may have published since the release was looked at.
                let there = folder.text(RECORD, Until::Passed(LAST))?;
                if there.is_none_or(|there| Some(there.text) != release.to_json().ok()) {
                    return Ok(());
                }
                left.remove(&folder, release)?;
            }
        }
    }
    PrivateFile::at(private)?.end_pending(&release.digest)
}
