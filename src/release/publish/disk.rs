//! The steps by which a release changes the file system. Each can fail, and tests make each fail.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// The kinds of steps, for tests that choose which one fails.
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

/// Fails if a test pretends that the system can neither exchange names nor refuse to replace one.
#[cfg(not(test))]
fn rename_knows_flags() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
use fault::{before, rename_knows_flags};

/// Returns whether to wait for the device: unit tests run thousands of steps.
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

/// Opens a lock file, creating it if absent. Its content is kept; a link is not followed.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    before(Step::Create)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    }
    options.open(path)
}

/// Returns the owner of files that this process creates in a folder, read from an unnamed temporary
/// file. A network file system may map root to another user.
#[cfg(unix)]
pub(crate) fn own_uid(folder: &Path) -> io::Result<u32> {
    before(Step::Create)?;
    Ok(std::os::unix::fs::MetadataExt::uid(&tempfile::tempfile_in(folder)?.metadata()?))
}

/// Sets the permissions of a folder.
pub(crate) fn set_permissions(path: &Path, permissions: fs::Permissions) -> io::Result<()> {
    before(Step::Create)?;
    fs::set_permissions(path, permissions)
}

/// Writes a new file and waits until it is on the device.
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    before(Step::Create)?;
    write_down(File::create_new(path)?, text)
}

/// Writes a file that only its owner may read, and waits until it is on the device.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    before(Step::Create)?;
    write_down(private_file(path, true)?, text)
}

/// Writes a new file that only its owner may read, and waits until it is on the device.
pub(crate) fn write_private_new(path: &Path, text: &str) -> io::Result<()> {
    before(Step::Create)?;
    write_down(private_file(path, false)?, text)
}

fn write_down(mut file: File, text: &str) -> io::Result<()> {
    before(Step::Write)?;
    file.write_all(text.as_bytes())?;
    before(Step::Sync)?;
    if waits() { file.sync_all() } else { Ok(()) }
}

/// Creates a file that only its owner may read; empties it if it exists and `overwrite`s.
///
/// # Errors
/// Errors of the file system.
pub fn private_file(path: &Path, overwrite: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    if overwrite {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // An existing file keeps its mode otherwise.
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

/// Gives a file or a folder another name. A file, or an empty folder, that has the name is
/// replaced.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    before(Step::Rename)?;
    fs::rename(from, to)
}

/// Copies a file that only its owner may read to another device, and waits until it is there. It appears
/// whole; where `is_free`, the name must be unused.
pub(crate) fn copy_private(from: &Path, to: &Path, is_free: bool) -> io::Result<()> {
    before(Step::Create)?;
    let folder = to.parent().unwrap_or(Path::new("."));
    let mut copy = tempfile::Builder::new().prefix(".kanon-").tempfile_in(folder)?;
    before(Step::Write)?;
    io::copy(&mut File::open(from)?, copy.as_file_mut())?;
    before(Step::Sync)?;
    copy.as_file().sync_all()?;
    before(Step::Rename)?;
    let named = if is_free { copy.persist_noclobber(to) } else { copy.persist(to) };
    named.map(drop).map_err(Into::into)
}

/// Gives a file or a folder an unused name; an error of the kind `AlreadyExists` if the name is in
/// use.
pub(crate) fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    before(Step::Rename)?;
    #[cfg(target_os = "linux")]
    match rename_knows_flags().and_then(|()| rename_with(from, to, rustix::fs::RenameFlags::NOREPLACE)) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
        done => return done,
    }
    // This takes two steps, but the plain rename of a folder replaces at most an empty folder.
    if fs::symlink_metadata(to).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(from, to)
}

/// Exchanges the names of two files or folders in one step; an error of the kind `Unsupported` if
/// the system cannot.
#[cfg(target_os = "linux")]
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    rename_knows_flags()?;
    before(Step::Exchange)?;
    rename_with(one, other, rustix::fs::RenameFlags::EXCHANGE)
}

/// Fails: this system cannot exchange the names of two files or folders.
#[cfg(not(target_os = "linux"))]
pub(crate) fn exchange(_one: &Path, _other: &Path) -> io::Result<()> {
    rename_knows_flags()?;
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
fn rename_with(from: &Path, to: &Path, flags: rustix::fs::RenameFlags) -> io::Result<()> {
    use rustix::fs::{CWD, renameat_with};
    use rustix::io::Errno;
    renameat_with(CWD, from, CWD, to, flags).map_err(|errno| match errno {
        Errno::NOSYS | Errno::INVAL | Errno::NOTSUP => io::ErrorKind::Unsupported.into(),
        errno => errno.into(),
    })
}

/// Removes a file, or a folder with its content, even if somebody made the folder read-only.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        before(Step::Remove)?;
        return fs::remove_file(path);
    }
    match remove_folder(path) {
        #[cfg(unix)]
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
            remove_folder(path)
        }
        removed => removed,
    }
}

fn remove_folder(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        remove(&entry?.path())?;
    }
    remove_empty(path)
}

/// Removes an empty folder.
pub(crate) fn remove_empty(path: &Path) -> io::Result<()> {
    before(Step::Remove)?;
    fs::remove_dir(path)
}

/// Faults in the steps of this thread.
#[cfg(test)]
pub(crate) mod fault {
    use std::cell::{Cell, RefCell};
    use std::io;

    use super::Step;

    /// The steps that fail.
    #[derive(Debug, Clone, Copy, Default)]
    pub(in super::super) struct Faults {
        /// The number of the first step that fails, counted from 1; 0 for none.
        pub(in super::super) first: usize,
        /// Whether all later steps fail as well, as if the process had been killed.
        pub(in super::super) dead: bool,
        /// Whether the process is killed before the first step that fails.
        pub(in super::super) kills: bool,
        /// Whether the system can neither exchange names nor refuse to replace one.
        pub(in super::super) no_exchange: bool,
    }

    const NONE: Faults = Faults { first: 0, dead: false, kills: false, no_exchange: false };

    thread_local! {
        static FAULTS: Cell<Faults> = const { Cell::new(NONE) };
        static STEPS: Cell<usize> = const { Cell::new(0) };
        static MEANWHILE: RefCell<Option<(usize, Act)>> = const { RefCell::new(None) };
    }

    type Act = Box<dyn FnOnce()>;

    /// Acts like another process, right before the `nth` of the following renames and exchanges.
    pub(in super::super) fn meanwhile(nth: usize, act: impl FnOnce() + 'static) {
        MEANWHILE.set(Some((nth, Box::new(act))));
    }

    /// Runs with faults; also returns whether a fault occurred.
    pub(in super::super) fn with<T>(faults: Faults, run: impl FnOnce() -> T) -> (T, bool) {
        FAULTS.set(faults);
        STEPS.set(0);
        let done = run();
        let met = faults.first > 0 && STEPS.get() >= faults.first;
        FAULTS.set(Faults::default());
        (done, met)
    }

    pub(crate) fn rename_knows_flags() -> io::Result<()> {
        if FAULTS.get().no_exchange { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
    }

    pub(super) fn before(step: Step) -> io::Result<()> {
        let Faults { first, dead, kills, .. } = FAULTS.get();
        if matches!(step, Step::Rename | Step::Exchange) {
            match MEANWHILE.take() {
                Some((1, act)) => act(),
                later => MEANWHILE.set(later.map(|(nth, act)| (nth - 1, act))),
            }
        }
        STEPS.set(STEPS.get() + 1);
        let fails = first > 0 && (STEPS.get() == first || dead && STEPS.get() > first);
        if fails && kills {
            let own = std::process::id().to_string();
            let _ = std::process::Command::new("kill").args(["-s", "KILL", &own]).status();
            // Where there is no such program, the test finds another signal.
            std::process::abort();
        }
        if fails { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
    }
}
