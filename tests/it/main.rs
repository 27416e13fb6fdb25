//! The one integration binary: each module is a subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may"
)]

mod arx;
mod canary;
mod cli;
mod command;
mod house;
mod kill;
mod mutants;
mod papers;
mod releases;
mod same_bytes;
mod shared;
mod slt;
