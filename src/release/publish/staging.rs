//! Staging: one work directory beside OUT, and the steps that make a release appear whole or not at
//! all.
//!
//! `.NAME.kanon-work` (mode 0700, same file system as OUT) holds the staged release, its private
//! record and the engine's spill files. They lie beside OUT because a rename is atomic only within a file
//! system. Its lock distinguishes a running run from a killed one.
//!
//! # What a killed run leaves
//!
//! | killed before | at OUT | beside OUT | in the work directory |
//! |---|---|---|---|
//! | 1. the record and the private record are on the device | the old release | its private record | anything |
//! | 2. OUT and the staged release exchange names | the old release | its private record | the new release and its record |
//! | 3. the private record gets its name | the new release | the old private record | the new private record, the old release |
//! | 4. the work directory is removed | the new release | its private record | rubbish |
//!
//! If OUT is absent or an empty folder, step 2 moves the staged release there. If the system cannot
//! exchange names, the run first moves the old release to `old` in the work directory; a run killed
//! before it moves the new one leaves nothing at OUT. The next run to the same OUT cleans up after
//! a killed one: it puts `old` back, and gives the private record its name. Until then
//! `kanon verify OUT` says where things are. Nothing is published twice: a run that fails at one of
//! these steps undoes the steps before it, and from step 4 on errors are warnings.
//!
//! # Files of other programs
//!
//! Step 2 replaces only what the run may replace. A move to a free name fails if the name is taken,
//! and a folder replaces another one only if that is empty. After an exchange the run checks what
//! it took away, and exchanges it back unless it is an empty folder or a release. A run killed
//! before that check leaves it in the work directory. A run refuses, and changes nothing, if it
//! finds anything in the work directory that kanon did not make. The private record replaces nothing but
//! that of the release which the run replaces.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::engine::Context;
use crate::error::{Error, Result, of_file};
use crate::input::Source;
use crate::progress::CancelToken;
use crate::release::publish::disk;
pub use crate::release::publish::disk::private_file;
use crate::release::publish::folder_place::{FolderPlace, belongs};
use crate::release::publish::out_folder::{
    AtOut, Parents, check_apart, check_replaceable, is_absent, is_empty_folder, is_folder, is_release,
    no_release,
};
use crate::release::publish::record::{PrivateRecord, PublicRecord, RECORD};
use crate::release::publish::target::Target;
use crate::release::publish::work_folder::WorkFolder;

/// The work directory of one run. Dropping it removes the directory with everything that kanon made
/// in it.
#[derive(Debug)]
pub(crate) struct Staging {
    place: FolderPlace,
    overwrite: bool,
    work: WorkFolder,
    /// Whether the work directory stays: it holds a part of OUT's release, or could not be removed.
    keeps_work: bool,
    _lock: File,
    /// The folders made above OUT and above the private record.
    parents: [Parents; 2],
}

/// How a release was placed at OUT.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Placed {
    /// It exchanged names with the old release.
    Exchanged,
    /// It was moved to an unused name.
    Moved,
    /// It replaced an empty folder with these permissions.
    MovedOver(Permissions),
    /// It was moved to OUT after the old release was moved aside.
    MovedAside,
}

impl Staging {
    /// Claims OUT and makes the work directory.
    ///
    /// # Errors
    /// A policy error if OUT or the private record exists and may not be replaced, or if the work
    /// directory is not kanon's; a data error if another run works on OUT.
    pub(crate) fn begin(place: &FolderPlace, overwrite: bool, input: &Source) -> Result<Self> {
        let place = place.absolute()?;
        if let Source::Files(input) = input {
            check_apart(place.out(), input)?;
            place.check_not_read(input)?;
        }
        let work = WorkFolder::of(place.out())?;
        clear_leftovers(place.out(), &work)?;
        place.check_free(overwrite)?;
        let parents = [Parents::make(place.out())?, Parents::make(place.private())?];
        let lock = work.create()?;
        let staging = Self { place, overwrite, work, keeps_work: false, _lock: lock, parents };
        // Another run may have published since; from here on the lock excludes all others.
        staging.place.check_free(overwrite)?;
        let doing = staging.work.place();
        disk::create_folder(&staging.release()).context(&doing)?;
        disk::create_private_folder(&staging.spill()).context(&doing)?;
        Ok(staging)
    }

    /// Publishes the staged release and its private record.
    fn publish_folder(&mut self, record: &PrivateRecord) -> Result<Vec<String>> {
        let doing = "publishing the release";
        disk::write_private(&self.work.private(), &record.to_json()?).context(doing)?;
        if let (true, Some(path)) = (self.place.is_apart(), self.place.private().to_str()) {
            disk::write_private(&self.work.private_place(), path).context(doing)?;
        }
        for folder in [&self.release(), self.work.path()] {
            disk::sync_folder(folder).context(doing)?;
        }
        let found = self.place.check_free(self.overwrite)?;
        let placed = self.move_to_out(found).map_err(|error| error.at(doing))?;
        let old = match placed {
            Placed::Exchanged => Some(self.release()),
            Placed::MovedAside => Some(self.work.old()),
            Placed::Moved | Placed::MovedOver(_) => None,
        };
        if let Err(error) = name_private(&self.work, &self.place, old.as_slice()) {
            let undone = self.take_back(&placed);
            return Err(self.undone(error, undone).at(doing));
        }
        Ok(self.finish(&placed))
    }

    /// Moves the staged release to OUT, where `found` was just now.
    fn move_to_out(&mut self, found: AtOut) -> Result<Placed> {
        let (moved, placed) = match found {
            AtOut::Nothing => (disk::rename_to_free(&self.release(), self.place.out()), Placed::Moved),
            AtOut::EmptyFolder => {
                let permissions = fs::metadata(self.place.out()).map_err(refused)?.permissions();
                // The system lets a folder replace another only if that one is empty.
                (disk::rename(&self.release(), self.place.out()), Placed::MovedOver(permissions))
            }
            AtOut::Release => return self.replace(),
        };
        match moved {
            Ok(()) => Ok(placed),
            Err(error) if is_occupied(&error) => Err(appeared(self.place.out())),
            Err(error) => Err(refused(error)),
        }
    }

    /// Replaces the release at OUT by the staged one.
    fn replace(&mut self) -> Result<Placed> {
        let (staged, aside) = (self.release(), self.work.old());
        match disk::exchange(&staged, self.place.out()) {
            Ok(()) if self.may_replace(&staged) => return Ok(Placed::Exchanged),
            Ok(()) => {
                let put_back = self.take_back(&Placed::Exchanged);
                return Err(self.appeared(&staged, put_back));
            }
            Err(error) if error.kind() == ErrorKind::Unsupported => {}
            Err(error) => return Err(refused(error)),
        }
        disk::rename(self.place.out(), &aside).map_err(refused)?;
        if !self.may_replace(&aside) {
            let put_back = disk::rename_to_free(&aside, self.place.out());
            return Err(self.appeared(&aside, put_back));
        }
        let Err(error) = disk::rename_to_free(&staged, self.place.out()) else {
            return Ok(Placed::MovedAside);
        };
        let put_back = disk::rename_to_free(&aside, self.place.out());
        if is_occupied(&error) {
            return Err(self.appeared(&aside, put_back));
        }
        Err(self.undone(refused(error), put_back))
    }

    /// Returns whether the run may replace `taken`, which was at OUT.
    fn may_replace(&self, taken: &Path) -> bool {
        check_replaceable(self.place.out(), taken, self.overwrite).is_ok()
    }

    /// Restores OUT to its state before the release was placed.
    fn take_back(&self, placed: &Placed) -> io::Result<()> {
        if *placed == Placed::Exchanged {
            return disk::exchange(&self.release(), self.place.out());
        }
        disk::rename(self.place.out(), &self.release())?;
        match placed {
            Placed::Exchanged | Placed::Moved => Ok(()),
            Placed::MovedOver(permissions) => {
                disk::create_folder(self.place.out())?;
                disk::set_permissions(self.place.out(), permissions.clone())
            }
            Placed::MovedAside => disk::rename_to_free(&self.work.old(), self.place.out()),
        }
    }

    /// Returns the error of a failed step; `undone` tells whether the steps before it were undone.
    fn undone(&mut self, error: Error, undone: io::Result<()>) -> Error {
        let Err(also) = undone else { return error };
        self.keeps_work = true;
        error.and(&format!(
            "; undoing it failed too ({}): the contents of {} are in {}, and the next `kanon release` \
             to the same place restores them",
            of_file(&also),
            self.place.out().display(),
            self.work.path().display()
        ))
    }

    /// Returns the error for something that appeared at OUT; `put_back` tells whether `taken` was
    /// put back there.
    fn appeared(&mut self, taken: &Path, put_back: io::Result<()>) -> Error {
        let Err(error) = put_back else { return appeared(self.place.out()) };
        self.keeps_work = true;
        appeared(self.place.out()).and(&format!(
            "; {} was there before and could not be restored ({}): move it back",
            taken.display(),
            of_file(&error)
        ))
    }

    /// Cleans up after the release is published.
    fn finish(&mut self, placed: &Placed) -> Vec<String> {
        let mut warnings = Vec::new();
        let names = [self.place.out(), self.place.private()];
        for folder in self.parents.iter().zip(names).flat_map(|(made, path)| made.hold_names(path)) {
            if let Err(error) = disk::sync_folder(folder) {
                warnings.push(format!(
                    "{} could not be synced to the device ({}): after a power failure, verify the release \
                     again",
                    folder.display(),
                    of_file(&error)
                ));
            }
        }
        let aside = match placed {
            // A run killed during the removal must not leave half of it under the name from which
            // releases are put back.
            Placed::MovedAside => disk::rename(&self.work.old(), &self.work.replaced()),
            Placed::Exchanged | Placed::Moved | Placed::MovedOver(_) => Ok(()),
        };
        if let Err(error) = aside.and_then(|()| self.work.remove()) {
            self.keeps_work = true;
            warnings.push(match self.work.check() {
                Err(foreign) => format!("{foreign}; until then `kanon release` to the same place refuses"),
                Ok(()) => format!(
                    "{} cannot be removed ({}): the next `kanon release` to the same place removes it",
                    self.work.path().display(),
                    of_file(&error)
                ),
            });
        }
        warnings
    }
}

impl Target for Staging {
    fn release(&self) -> PathBuf {
        self.work.release()
    }

    fn spill(&self) -> PathBuf {
        self.work.spill()
    }

    fn complete(&mut self, record: PublicRecord) -> Result<PublicRecord> {
        disk::write_new(&self.release().join(RECORD), &record.to_json()?).context("writing the record")?;
        Ok(record)
    }

    fn publish(
        mut self: Box<Self>,
        _: &PublicRecord,
        private: &PrivateRecord,
        _: &CancelToken,
    ) -> Result<Vec<String>> {
        self.publish_folder(private)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.keeps_work {
            self.work.remove_at_end();
        }
    }
}

/// Returns the error for something that appeared at OUT.
fn appeared(out: &Path) -> Error {
    let out = out.display();
    Error::policy(format!(
        "--to {out}: something else appeared there while the release was being made; nothing was published"
    ))
}

fn refused(error: io::Error) -> Error {
    Error::from_io(&error)
}

/// Returns whether moving a folder failed because the name is taken.
fn is_occupied(error: &io::Error) -> bool {
    use ErrorKind::{AlreadyExists, DirectoryNotEmpty, NotADirectory};
    matches!(error.kind(), AlreadyExists | DirectoryNotEmpty | NotADirectory)
}

/// Returns a text that a run to OUT did not end, and what to do; `None` without a work directory
/// beside OUT.
pub fn unfinished(out: &Path) -> Option<String> {
    let work = WorkFolder::of(out).ok().filter(|work| is_folder(work.path()))?;
    let old = if is_folder(&work.old()) { " (the previous release is in its `old` folder)" } else { "" };
    Some(format!(
        "{} belongs to a run that is still active or was killed{old}; the next `kanon release` to the same \
         place repairs this",
        work.path().display()
    ))
}

/// Gives the staged private record its name at `place`, where the record of a release in `replaced` may
/// be.
fn name_private(work: &WorkFolder, place: &FolderPlace, replaced: &[PathBuf]) -> Result<()> {
    place.check_private(replaced)?;
    let (staged, private) = (work.private(), place.private());
    let is_free = is_absent(private);
    let moved = if is_free { disk::rename_to_free(&staged, private) } else { disk::rename(&staged, private) };
    let moved = match moved {
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {
            disk::copy_private(&staged, private, is_free)
        }
        moved => moved,
    };
    moved.context(&format!("private record {}", private.display()))
}

/// Removes the work directory of a killed run. A release that it moved aside is put back; a private
/// record that it did not yet move is moved.
fn clear_leftovers(out: &Path, work: &WorkFolder) -> Result<()> {
    work.check()?;
    if !work.wait_for_lock() {
        return Ok(());
    }
    let place = format!("work directory {} of an earlier run", work.path().display());
    let _lock = work.claim()?;
    let aside = work.old();
    // The place of the killed run, which this run need not share.
    let left = match fs::read_to_string(work.private_place()) {
        Ok(path) => FolderPlace::with_file(out, path.into()),
        Err(_) => FolderPlace::beside(out)?,
    };
    if is_release(&aside) {
        if is_absent(out) {
            disk::rename_to_free(&aside, out).context(&place)?;
        } else if is_empty_folder(out) {
            disk::rename(&aside, out).context(&place)?;
        } else if !is_release(out) {
            // The release that was moved aside is kept until it can be put back.
            return Err(no_release(out));
        } else if !belongs(&work.private(), out) && !belongs(left.private(), out) {
            // Another program put it there, so the release that was moved aside does not replace
            // it.
            return Err(Error::policy(format!(
                "--to {}: a release is there, and the one that it was to replace is in {}; move one of them \
                 away",
                out.display(),
                aside.display()
            )));
        }
    }
    if belongs(&work.private(), out) {
        name_private(work, &left, &[aside, work.release()]).map_err(|error| error.at(&place))?;
    }
    work.remove().context(&place)
}

#[cfg(test)]
#[path = "staging_tests.rs"]
pub(crate) mod faults;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Input, InputFormat};

    fn nothing() -> Source {
        Input::of_objects("x.csv", vec![], InputFormat::Csv).into()
    }

    #[test]
    fn a_run_claims_out_and_cleans_up() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let staging = Staging::begin(&FolderPlace::beside(&out).unwrap(), false, &nothing()).unwrap();
        let second = Staging::begin(&FolderPlace::beside(&out).unwrap(), false, &nothing()).unwrap_err();
        assert!(second.to_string().contains("another run"), "{second}");
        drop(staging);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_releases_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        fs::create_dir(&out).unwrap();
        assert!(Staging::begin(&FolderPlace::beside(&out).unwrap(), false, &nothing()).is_ok());
        fs::write(out.join("thesis.txt"), "years of work").unwrap();
        assert!(
            Staging::begin(&FolderPlace::beside(&out).unwrap(), true, &nothing())
                .unwrap_err()
                .to_string()
                .contains("not a kanon release")
        );
        fs::write(out.join(RECORD), "{}").unwrap();
        assert!(
            Staging::begin(&FolderPlace::beside(&out).unwrap(), false, &nothing())
                .unwrap_err()
                .to_string()
                .contains("--overwrite")
        );
        assert!(
            Staging::begin(&FolderPlace::beside(&out).unwrap(), true, &nothing())
                .unwrap_err()
                .to_string()
                .contains("move it away")
        );
        fs::rename(out.join("thesis.txt"), out.join("part-00000.parquet")).unwrap();
        assert!(Staging::begin(&FolderPlace::beside(&out).unwrap(), true, &nothing()).is_ok());
    }

    #[test]
    fn what_a_killed_run_left_is_put_right() {
        let folder = tempfile::tempdir().unwrap();
        let (out, work) = (folder.path().join("out"), folder.path().join(".out.kanon-work"));
        fs::create_dir_all(work.join("old")).unwrap();
        fs::write(work.join("old").join(RECORD), "{}").unwrap();
        fs::write(work.join("lock"), "").unwrap();
        let refused = Staging::begin(&FolderPlace::beside(&out).unwrap(), false, &nothing()).unwrap_err();
        assert!(refused.to_string().contains("--overwrite"), "{refused}");
        assert!(is_release(&out) && !work.exists());
    }
}
