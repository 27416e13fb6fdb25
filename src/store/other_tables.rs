//! Folders that belong to a table of another format. Its log says which of its files count: the
//! others hold rows that were deleted or replaced, and reading them all brings those rows back and
//! counts people twice.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;

use super::partitions::shown;
use crate::error::{Error, Result};

/// Where folders are looked into. Folders are `/`-separated paths.
pub(super) trait Folders {
    /// Returns whether there is such a folder.
    fn is_folder(&self, path: &str) -> bool;
    /// Returns whether there is such a file.
    fn is_file(&self, path: &str) -> bool;
    /// Returns the names in a folder.
    fn names(&self, folder: &str) -> Vec<String>;
}

/// The folders of this machine.
pub(super) struct FoldersOfMachine;

impl Folders for FoldersOfMachine {
    fn is_folder(&self, path: &str) -> bool {
        Path::new(path).is_dir()
    }

    fn is_file(&self, path: &str) -> bool {
        Path::new(path).is_file()
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}

/// The keys of a store, as far as they are known.
impl Folders for BTreeSet<String> {
    fn is_folder(&self, path: &str) -> bool {
        let inside = format!("{path}/");
        self.range(inside.clone()..).next().is_some_and(|key| key.starts_with(&inside))
    }

    fn is_file(&self, path: &str) -> bool {
        self.contains(path)
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let inside = format!("{folder}/");
        let inside = inside.as_str();
        let keys = self.range(inside.to_owned()..).map_while(|key| key.strip_prefix(inside));
        keys.filter(|key| !key.contains('/')).map(str::to_owned).collect()
    }
}

/// The folders that were looked at and belong to no such table.
pub(super) struct Checked<F> {
    folders: F,
    known: HashSet<String>,
}

impl<F: Folders> Checked<F> {
    pub(super) fn new(folders: F) -> Self {
        Self { folders, known: HashSet::new() }
    }

    /// Refuses a folder that is such a table or lies in one; `shown` words a folder for the error.
    ///
    /// # Errors
    /// A data error that names the table's folder and format, and says what to do.
    pub(super) fn check(&mut self, folder: &str, shown: impl Fn(&str) -> String) -> Result<()> {
        let mut next = Some(folder);
        while let Some(folder) = next {
            if !self.known.insert(folder.to_owned()) {
                break;
            }
            if let Some((table, format, mark)) = table_of(&self.folders, folder) {
                return Err(Error::data(format!(
                    "input folder {}: it belongs to a table of {format}, as `{mark}` shows, and holds deleted or replaced \
                     rows too: the table's log says which files count, and kanon does not read that log; export the current \
                     version of the table as Parquet to a folder of its own and give that (a single file can be named)",
                    shown(table)
                )));
            }
            next = folder.rsplit_once('/').map(|(parent, _)| parent).filter(|_| !folder.is_empty());
        }
        Ok(())
    }
}

impl Checked<FoldersOfMachine> {
    /// Refuses a folder of this machine like [`check`](Self::check).
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub(super) fn check_path(&mut self, folder: &Path) -> Result<()> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        // Where the folder cannot be resolved, reading it says why.
        let Ok(folder) = fs::canonicalize(folder) else { return Ok(()) };
        self.check(&folder.to_string_lossy(), shown)
    }
}

/// Returns the table that a folder is, or that it is a part of by its own name: its folder, its
/// format and what shows it.
fn table_of<'a>(folders: &impl Folders, folder: &'a str) -> Option<(&'a str, &'static str, String)> {
    let has_folder = |name: &str| folders.is_folder(&format!("{folder}/{name}"));
    let is = |format, mark: &str| Some((folder, format, mark.to_owned()));
    if has_folder("_delta_log") {
        return is("Delta Lake", "_delta_log");
    }
    if has_folder(".hoodie") {
        return is("Apache Hudi", ".hoodie");
    }
    if folders.is_file(&format!("{folder}/.hoodie_partition_metadata")) {
        return is("Apache Hudi", ".hoodie_partition_metadata");
    }
    // Compressed ones end in `.gz.metadata.json` or `.metadata.json.gz`.
    let is_metadata = |name: &String| name.contains(".metadata.json") || name == "version-hint.text";
    if let Some(name) = folders.names(&format!("{folder}/metadata")).into_iter().find(is_metadata) {
        return is("Apache Iceberg", &format!("metadata/{name}"));
    }
    if ["snapshot", "manifest", "schema"].into_iter().all(has_folder) {
        return is("Apache Paimon", "snapshot");
    }
    if has_folder("_spark_metadata") {
        return is("Spark Structured Streaming", "_spark_metadata");
    }
    let (parent, name) = folder.rsplit_once('/').unwrap_or(("", folder));
    is_of_hive(name).then(|| (parent, "Apache Hive with transactions", name.to_owned()))
}

/// Returns whether a name is that of a folder of one Hive transaction or of several:
/// `delta_0000002_0000002_0000`, `delete_delta_0000003_0000003`, `base_0000005_v0000017`.
fn is_of_hive(name: &str) -> bool {
    let is_number = |part: &str| part.len() >= 7 && part.bytes().all(|digit| digit.is_ascii_digit());
    let is_further = |part: &str| {
        let part = part.strip_prefix('v').unwrap_or(part);
        part.len() >= 4 && part.bytes().all(|digit| digit.is_ascii_digit())
    };
    let (rest, numbers) = match (name.strip_prefix("base_"), name.strip_prefix("delete_").unwrap_or(name)) {
        (Some(rest), _) => (rest, 1),
        (None, name) => match name.strip_prefix("delta_") {
            Some(rest) => (rest, 2),
            None => return false,
        },
    };
    let mut parts = rest.split('_');
    parts.by_ref().take(numbers).filter(|part| is_number(part)).count() == numbers && parts.all(is_further)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_machine() -> Checked<FoldersOfMachine> {
        Checked::new(FoldersOfMachine)
    }

    #[test]
    fn a_table_is_known_by_the_keys_of_a_store() {
        for (keys, folder, table) in [
            (&["/lake/v/_delta_log/0.json", "/lake/v/year=1/p.parquet"][..], "/lake/v/year=1", Some("Delta")),
            (&["/_delta_log/0.json", "/p.parquet"], "", Some("Delta")),
            (&["/v/metadata/v1.metadata.json", "/v/data/p.parquet"], "/v/data", Some("Iceberg")),
            (&["/v/.hoodie_partition_metadata", "/v/p.parquet"], "/v", Some("Hudi")),
            (&["/v/delta_0000002_0000002/p.parquet"], "/v/delta_0000002_0000002", Some("Hive")),
            (&["/v/_delta_log", "/v2/_delta_log/0.json", "/v/p.parquet"], "/v", None),
            (&["/v/metadata/x/v1.metadata.json", "/v/p.parquet"], "/v", None),
        ] {
            let keys: BTreeSet<String> = keys.iter().map(|key| (*key).to_owned()).collect();
            let found = Checked::new(keys).check(folder, |table| format!("s3://b{table}"));
            assert_eq!(found.is_err(), table.is_some(), "{folder}");
            if let (Err(error), Some(table)) = (found, table) {
                assert!(error.to_string().contains(table), "{error}");
            }
        }
    }

    #[test]
    fn folders_of_hive_are_known_by_their_names() {
        for name in [
            "base_0000005",
            "base_0000005_v0000017",
            "delta_0000002_0000002",
            "delta_0000002_0000002_0000",
            "delta_00000021_00000022_v0000017",
            "delete_delta_0000003_0000003_0000",
        ] {
            assert!(is_of_hive(name), "{name}");
        }
        for name in [
            "base_2024",
            "base_20240101x",
            "delta_2024_2025",
            "delta_0000002",
            "delta",
            "base_",
            "delta_rates_0000001",
        ] {
            assert!(!is_of_hive(name), "{name}");
        }
    }

    #[test]
    fn a_table_is_known_from_its_own_folder_and_from_inside() {
        for (mark, part, format) in [
            ("_delta_log/00000000000000000000.json", "year=2024", "Delta Lake"),
            ("metadata/v3.metadata.json", "data", "Apache Iceberg"),
            ("metadata/00001-6f.gz.metadata.json", "data/a/b", "Apache Iceberg"),
            ("metadata/version-hint.text", "data", "Apache Iceberg"),
            (".hoodie/hoodie.properties", "eu/de", "Apache Hudi"),
            ("snapshot/snapshot-1", "bucket-0", "Apache Paimon"),
            ("_spark_metadata/0", "", "Spark Structured Streaming"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let table = folder.path().join("lake/visits");
            let write = |name: &str| {
                let path = table.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            };
            write(mark);
            fs::create_dir_all(table.join(part)).unwrap();
            if format == "Apache Paimon" {
                of_machine().check_path(&table.join(part)).unwrap();
                write("manifest/manifest-1");
                write("schema/schema-0");
            }
            for inside in [table.clone(), table.join(part)] {
                let error = of_machine().check_path(&inside).unwrap_err().to_string();
                assert!(
                    error.contains(&format!("lake/visits: it belongs to a table of {format}")),
                    "{error}"
                );
            }
            // The folder around the table is none; it is refused once the table in it is reached.
            let mut checked = of_machine();
            checked.check_path(&folder.path().join("lake")).unwrap();
            assert!(checked.check_path(&table.join(part)).is_err(), "{format}");
        }
    }

    #[test]
    fn folders_with_similar_names_are_no_tables() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["metadata", "metadata/v1.metadata.json.d", "snapshot", "schema", "delta", "_logs"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::remove_dir(folder.path().join("metadata/v1.metadata.json.d")).unwrap();
        fs::write(folder.path().join("metadata/columns.json"), "").unwrap();
        fs::write(folder.path().join("_delta_log"), "a file").unwrap();
        for name in ["", "metadata", "delta", "schema"] {
            of_machine().check_path(&folder.path().join(name)).unwrap();
        }
    }
}
