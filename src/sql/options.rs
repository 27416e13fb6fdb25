//! `SET kanon.<key> = <value>`: what a session may be told.

// The engine's macro makes public items without documentation of its own.
#![allow(missing_docs, reason = "made by the engine's macro")]

use datafusion::common::config::{ConfigExtension, ConfigOptions};
use datafusion::common::extensions_options;

extensions_options! {
    /// The options of this crate, under `kanon.` in SQL.
    pub struct KanonOptions {
        /// Whether measures become GROUP BYs (the rule `k_anonymity_to_group_by`); the answers are the same without
        pub rewrite_measures: bool, default = true
        /// Whether functions may read files that a query names: tables, policies, hierarchies
        pub allow_files: bool, default = false
        /// Whether errors may show values that a hierarchy does not cover; they are only counted otherwise
        pub show_values: bool, default = false
    }
}

impl ConfigExtension for KanonOptions {
    const PREFIX: &'static str = "kanon";
}

impl KanonOptions {
    /// The options of a session; the defaults where it has none.
    pub fn of(options: &ConfigOptions) -> Self {
        options.extensions.get::<Self>().cloned().unwrap_or_default()
    }
}
