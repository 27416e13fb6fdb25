//! Publishing: staging, the files and their order, records, digests.

pub mod digest;
pub(super) mod disk;
mod entry_kind;
pub mod folder_place;
pub mod input_records;
mod leftovers;
pub(crate) mod local_release;
pub(crate) mod make_record;
pub mod model_record;
pub(crate) mod neighbours;
pub(crate) mod order;
pub mod out_folder;
pub mod place;
mod private_file;
pub mod recoding_record;
pub mod record;
pub(crate) mod released_files;
pub mod staging;
pub mod statement;
mod store_place;
mod store_target;
pub(in crate::release) mod target;
pub mod unchanged;
mod work_folder;
pub mod write;
pub(crate) mod write_assignment;
