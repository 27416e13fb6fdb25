//! The section of the two records of a release.

use std::fmt::Write;

use super::type_docs::{fields, write};

/// The struct of `_kanon.json`.
pub(super) const PUBLIC: &str = "PublicRecord";
/// The struct of `OUT.private.json`.
pub(super) const PRIVATE: &str = "PrivateRecord";

/// Writes the section of the records.
pub(super) fn section(page: &mut String) {
    *page += "\n## The records of a release\n\n\
              Records are JSON in UTF-8. A path names the keys that lead to a field: `[]` is an element of a list, `*` any key of a table. \
              Shares are numbers from 0 to 1. Where the policy names no individual column, rows are counted as individuals. A field that may be \
              missing is left out where it has no value or is an empty list, an empty table or false.\n";
    for (title, says, record) in [
        ("`_kanon.json`", "The public record, in the folder of the release.", PUBLIC),
        (
            "`OUT.private.json`",
            "The private record, beside the folder OUT, for the publisher only. `kanon release --report FILE` writes a table of both \
             records: `public` and `private`.",
            PRIVATE,
        ),
    ] {
        write!(page, "\n### {title}\n\n{says}\n\n").unwrap();
        write(page, &fields(record));
    }
}
