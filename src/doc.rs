//! The documentation of each table row: the source of `kanon list`, `--help` and the reference.

use std::sync::{PoisonError, RwLock};

use serde::Serialize;

/// The name and the documentation of one feature. The name is that in SQL, in a policy, of its file and of its `.slt`; the
/// parameters are as a user writes them, or empty; the paper is for the library's own, one of `papers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Doc {
    /// The name.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub summary: &'static str,
    /// Its parameters.
    pub parameters: &'static str,
    /// An example.
    pub example: &'static str,
    /// The paper that it comes from.
    pub paper: Option<&'static str>,
}

/// Returns the one of these rows that is named `name`.
///
/// # Errors
/// A text with the nearest valid name, or all of them.
pub fn find<T: Copy>(
    rows: impl IntoIterator<Item = T>,
    doc: impl Fn(T) -> &'static Doc,
    name: &str,
) -> Result<T, String> {
    let rows: Vec<T> = rows.into_iter().collect();
    rows.iter().copied().find(|row| doc(*row).name == name).ok_or_else(|| {
        let names: Vec<&str> = rows.iter().map(|row| doc(*row).name).collect();
        crate::error::nearest(name, &names)
    })
}

/// The rows that the program has registered beside those of a table. They stay for as long as the process.
pub(crate) struct OwnRows<T: ?Sized + 'static>(RwLock<Vec<&'static T>>);

impl<T: ?Sized> OwnRows<T> {
    /// No rows.
    pub(crate) const fn none() -> Self {
        Self(RwLock::new(Vec::new()))
    }

    /// Returns the rows in the order in which they were added.
    pub(crate) fn all(&self) -> Vec<&'static T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a row, which was checked, for as long as the process.
    pub(crate) fn add(&self, row: Box<T>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(Box::leak(row));
    }
}
