//! The one integration binary: each module is a subject.

mod arx;
mod canary;
mod cli;
mod command;
mod papers;
mod same_bytes;
mod shared;
