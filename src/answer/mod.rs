//! What commands answer: a struct for each, which a library function returns, which JSON holds as it is, and which
//! says itself as a [`Document`] for people.
//!
//! A field's doc comment is its line in the reference. What only the document needs is skipped by serde. What depends on the
//! command line, such as the command to run next, the command line adds to the document.

pub mod check;
pub mod compare;
pub mod explain;
pub mod hierarchy;
pub mod hierarchy_check;
pub mod init;
pub mod link;
pub mod list;
pub mod methods;
pub mod minimal;
pub mod plan;
pub mod release;
pub mod risk;
pub mod search;
mod sentences;
mod size_bins;
pub mod verify;
pub mod verify_chain;

use serde::Serialize;

use crate::render::Document;

/// What a command answers.
pub trait Answer: Serialize {
    /// Returns what it says, for people.
    fn document(&self) -> Document;

    /// Returns whether all holds that was required; `kanon` exits with code 1 otherwise.
    fn holds(&self) -> bool {
        true
    }
}
