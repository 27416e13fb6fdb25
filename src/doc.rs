//! The documentation of each table row: the source of `kanon list`, `--help` and the reference.

/// The name and the documentation of one feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Doc {
    /// The name in SQL, in a policy, of its file and of its `.slt`.
    pub name: &'static str,
    /// One line that describes the feature.
    pub summary: &'static str,
    /// Its parameters as a user writes them, or an empty text.
    pub parameters: &'static str,
    /// One line that a user can copy.
    pub example: &'static str,
    /// The publication, one of [`crate::papers`], if there is one.
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
