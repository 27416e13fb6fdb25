//! The documentation of each table row: the source of `kanon list`, `--help` and the reference.

use serde::Serialize;

/// The name and the documentation of one feature. The name is that in SQL, in a policy, of its file and of its `.slt`; the
/// parameters are as a user writes them, or empty; the paper is one of [`crate::papers`].
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

/// Returns the row of `table` named `name`.
///
/// # Errors
/// A text with the nearest valid name, or all of them.
pub fn find<'a, T>(table: &'a [T], doc: impl Fn(&T) -> &'static Doc, name: &str) -> Result<&'a T, String> {
    table.iter().find(|row| doc(row).name == name).ok_or_else(|| {
        let names: Vec<&str> = table.iter().map(|row| doc(row).name).collect();
        crate::error::nearest(name, &names)
    })
}
