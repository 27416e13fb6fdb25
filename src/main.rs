//! `kanon`, the command line of datafusion-kanon.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    return_freed_buffers();
    // A query that spills holds many files open at once; where more are refused, it says so.
    #[cfg(unix)]
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    datafusion_kanon::cli::main()
}

/// Makes the allocator give buffers of 1 MiB and more back to the system as soon as they are freed.
/// By default it keeps ever larger ones, and a command's memory peaked at up to 1.5 times what it
/// needed. The columns of a batch are smaller: to return these, too, took a fifth of the time of a
/// query.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
fn return_freed_buffers() {
    // SAFETY: the call only sets a number of the allocator, and no other thread runs yet.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20) };
}
