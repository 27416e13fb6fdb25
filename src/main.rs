//! `kanon`, the command line of datafusion-kanon.

#![cfg_attr(
    test,
    allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    set_allocator();
    // A query that spills holds many files open at once; where more are refused, it says so.
    #[cfg(unix)]
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    cli::main()
}

/// Makes the allocator give buffers of 1 MiB and more back to the system as soon as they are freed,
/// and other memory only where more than 4 MiB of it lie free at the end of a heap.
///
/// By default it keeps ever larger buffers, and a command's memory peaked at up to 1.5 times what it
/// needed. The columns of a batch are smaller: to return these with every batch, too, took a fifth of
/// the time of a query.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
fn set_allocator() {
    let numbers = [(libc::M_MMAP_THRESHOLD, 1 << 20), (libc::M_TRIM_THRESHOLD, 4 << 20)];
    for (parameter, bytes) in numbers {
        // SAFETY: the call only sets a number of the allocator, and no other thread runs yet.
        unsafe { libc::mallopt(parameter, bytes) };
    }
}
