//! The engine: sessions with bounded memory, scalar functions, class keys.

mod bits;
pub(crate) mod candidates;
mod cast_errors;
pub(crate) mod class_key;
pub(crate) mod count_classes;
pub mod damaged;
pub(crate) mod distinct;
pub(crate) mod each_class;
pub mod functions;
pub(crate) mod per_dictionary;
pub(crate) mod phase_clock;
pub mod pseudonym;
pub(crate) mod read_dictionaries;
pub(crate) mod replay_table;
mod rules;
pub(crate) mod run;
mod session;
pub(crate) mod spilled_rows;
pub mod temporary;
#[cfg(test)]
pub(crate) mod watch;

pub use phase_clock::PhaseTime;
pub use rules::{Rules, counting_rules};
pub use run::Run;
pub use session::{Context, PoolBudget, Resources, column, into_engine, map_error, own_error};
pub(crate) use session::{INT96_UNIT, into_store, union_of};
