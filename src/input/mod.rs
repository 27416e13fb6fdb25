//! The input: files, folders and tables of other programs as one table of canonical columns, and the policy resolved
//! against it.

pub mod column_values;
pub(crate) mod days_since;
pub mod files;
mod formats;
pub mod found_types;
pub mod hierarchy_files;
pub(crate) mod infer_types;
mod loaded;
pub(crate) mod merged;
mod number_spelling;
mod parquet_encryption;
pub mod pinned_table;
mod plain_form;
mod plain_values;
pub mod population;
mod provided_table;
mod read_arrow;
pub(crate) mod read_csv;
mod read_json;
mod read_parquet;
mod scan;
mod source;
mod table;
pub(crate) mod text_forms;
pub(crate) mod utf8_copies;

pub use files::{Input, InputFormat};
pub(crate) use loaded::open_typed;
pub use loaded::{Loaded, PolicySource, open};
pub use source::Source;
pub use table::canonical_type;
pub(crate) use table::{canonical_floats_as_they_are, canonical_table};
