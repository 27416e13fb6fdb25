//! Damaged files: some make the readers of Arrow and Parquet panic.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a reader of a file; `None` when it panics.
pub(crate) fn unless_it_panics<T>(read: impl FnOnce() -> T) -> Option<T> {
    let before = IS_GUARDED.replace(true);
    let read = catch_unwind(AssertUnwindSafe(read));
    IS_GUARDED.set(before);
    read.ok()
}

/// Returns whether this thread runs a reader whose panic means that a file is damaged.
pub fn is_guarded() -> bool {
    IS_GUARDED.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_missing_result() {
        assert_eq!(unless_it_panics(is_guarded), Some(true));
        assert_eq!(unless_it_panics(|| -> u8 { panic!("damaged") }), None);
        assert!(!is_guarded());
    }
}
