//! The one integration binary: each module is a subject.

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
