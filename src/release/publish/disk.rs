//! The steps by which a release changes the file system. Each can fail, and tests make each fail.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// A kind of step, for tests that choose which of them fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Create,
    Write,
    Sync,
    Rename,
    Exchange,
    Remove,
}

#[cfg(not(test))]
fn before(_step: Step) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
use fault::before;

/// Whether the device is waited for: unit tests try thousands of steps.
fn waits() -> bool {
    !cfg!(test)
}

/// Creates a folder.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    before(Step::Create)?;
    fs::create_dir(path)
}

/// Creates a folder that only its owner may enter.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    before(Step::Create)?;
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Creates or empties a file.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    before(Step::Create)?;
    File::create(path)
}

/// Writes a file that does not exist yet, down to the device.
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    before(Step::Create)?;
    write_down(File::create_new(path)?, text)
}

/// Writes a file that only its owner may read, down to the device.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    before(Step::Create)?;
    write_down(private_file(path)?, text)
}

fn write_down(mut file: File, text: &str) -> io::Result<()> {
    before(Step::Write)?;
    file.write_all(text.as_bytes())?;
    before(Step::Sync)?;
    if waits() { file.sync_all() } else { Ok(()) }
}

/// Creates or empties a file that only its owner may read.
///
/// # Errors
/// Those of the file system.
pub fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // A file that was there before keeps its mode.
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}

/// Waits until the names in a folder are on the device.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    before(Step::Sync)?;
    let folder = File::open(folder)?;
    if waits() { folder.sync_all() } else { Ok(()) }
}

/// Gives a file or a folder another name.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    before(Step::Rename)?;
    fs::rename(from, to)
}

/// Exchanges the names of two files or folders in one step; an error of the kind `Unsupported` where the system cannot.
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    before(Step::Exchange)?;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(|errno| match errno {
            Errno::NOSYS | Errno::INVAL | Errno::NOTSUP => io::ErrorKind::Unsupported.into(),
            errno => errno.into(),
        })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (one, other);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Removes a file, or a folder with all that it holds.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        before(Step::Remove)?;
        return fs::remove_file(path);
    }
    for entry in fs::read_dir(path)? {
        remove(&entry?.path())?;
    }
    remove_empty(path)
}

/// Removes a folder that holds nothing.
pub(crate) fn remove_empty(path: &Path) -> io::Result<()> {
    before(Step::Remove)?;
    fs::remove_dir(path)
}

/// Makes steps of this thread fail.
#[cfg(test)]
pub(crate) mod fault {
    use std::cell::Cell;
    use std::io;

    use super::Step;

    /// Which steps fail.
    #[derive(Debug, Clone, Copy, Default)]
    pub(in super::super) struct Faults {
        /// The number of the first step that fails, counted from 1; 0 for none.
        pub(in super::super) first: usize,
        /// Whether all later steps fail as well, as if the process had been killed.
        pub(in super::super) dead: bool,
        /// Whether the system cannot exchange names.
        pub(in super::super) no_exchange: bool,
    }

    thread_local! {
        static FAULTS: Cell<Faults> = const { Cell::new(Faults { first: 0, dead: false, no_exchange: false }) };
        static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    /// Runs with faults; returns whether one was met as well.
    pub(in super::super) fn with<T>(faults: Faults, run: impl FnOnce() -> T) -> (T, bool) {
        FAULTS.set(faults);
        STEPS.set(0);
        let done = run();
        let met = faults.first > 0 && STEPS.get() >= faults.first;
        FAULTS.set(Faults::default());
        (done, met)
    }

    pub(super) fn before(step: Step) -> io::Result<()> {
        let Faults { first, dead, no_exchange } = FAULTS.get();
        if no_exchange && step == Step::Exchange {
            return Err(io::ErrorKind::Unsupported.into());
        }
        STEPS.set(STEPS.get() + 1);
        let fails = first > 0 && (STEPS.get() == first || dead && STEPS.get() > first);
        if fails { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
    }
}
