//! Publishing: staging, the files and their order, records, digests.

pub mod digest;
pub(super) mod disk;
mod entry_kind;
pub mod input_records;
pub(crate) mod make_record;
pub mod model_record;
pub(crate) mod neighbours;
pub(crate) mod order;
pub mod place;
pub mod recoding_record;
pub mod record;
pub(crate) mod released_files;
pub mod staging;
pub mod statement;
pub mod target;
mod work_folder;
pub mod write;
pub(crate) mod write_assignment;
