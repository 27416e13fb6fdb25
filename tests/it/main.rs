//! The one integration binary: each module is a subject.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::semicolon_if_nothing_returned,
    clippy::type_complexity,
    clippy::unwrap_used,
    reason = "a test may"
)]

mod anatomy;
mod arx;
mod arx_risk;
mod attacks;
mod canary;
mod centroids;
mod cli;
mod command;
mod compare;
mod count_classes;
mod csv_types;
mod damaged;
mod doubts;
mod dp_centroids;
mod earlier_releases;
mod explain;
mod faulty_release;
mod faulty_store;
mod foreign_files;
mod formats;
mod four_users;
mod fuzz;
mod hierarchies;
mod hierarchy_command;
mod house;
mod individuals;
mod init;
mod init_cells;
mod interval_columns;
mod kill;
mod kinds;
mod known_releases;
mod lake;
mod lake_release;
mod laws;
mod layout;
mod link;
mod lives;
mod loaded_hierarchies;
mod memory;
mod merged;
mod metamorphic;
mod model_laws;
mod mutants;
mod mutants_individuals;
mod mutants_sensitive;
mod over_subset;
mod papers;
mod partition_by;
mod partitions;
mod policy_options;
mod private_record;
mod pruning;
mod public_items;
mod pycanon;
mod read_dictionaries;
mod readme;
mod recoding_again;
mod recorded;
mod reference;
mod regions;
mod release_after;
mod releases;
mod repeated;
mod roles;
mod row_oracle;
mod s3_server;
mod same_bytes;
mod search_laws;
mod several_inputs;
mod shared;
mod slt;
mod sources;
mod sql_chains;
mod sql_laws;
mod sql_measures;
mod sql_rule;
mod sql_shell;
mod sql_tables;
mod statement;
mod test_models;
mod types;
mod ugly_files;
