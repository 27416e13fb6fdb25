//! Words for what lies where a plain file or a folder was expected.

use std::fs::FileType;

/// Names the kind of a directory entry.
pub(crate) fn kind_of(kind: FileType) -> &'static str {
    if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_dir() {
        "a folder"
    } else if kind.is_file() {
        "a file"
    } else {
        "a pipe, a socket or a device"
    }
}
