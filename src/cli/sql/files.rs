//! Files as tables by their names: `SELECT * FROM 'visits.parquet'`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use datafusion::catalog::{DynamicFileCatalog, TableProvider, UrlTableFactory};
use datafusion::error::Result;
use datafusion::prelude::{DataFrame, SessionContext};

use datafusion_kanon::internals::engine::into_engine;
use datafusion_kanon::internals::input::files::has_no_data;
use datafusion_kanon::internals::input::found_types::{FoundTypes, find_types, with_types};
use datafusion_kanon::internals::store::Object;
use datafusion_kanon::{CsvOptions, CsvTypes, Input, InputFormat, KanonOptions};

/// Opens files for a session in the same way as every other command.
#[derive(Clone)]
pub(super) struct Files {
    /// The session before it knew of files, so that it does not hold itself.
    session: SessionContext,
    /// What is opened for the statement that is being planned; `None` at other times, so that a
    /// table may be created under the name of a folder.
    opened: Arc<Mutex<Option<Opened>>>,
    /// The types that were found in this session.
    known: Arc<Mutex<Vec<Known>>>,
    /// The inputs of stores, by their addresses: their copies serve later statements.
    copied: Arc<Mutex<BTreeMap<String, Input>>>,
}

/// The files opened for a statement.
pub(super) struct Opened {
    /// Their names and formats.
    pub(super) names: Vec<(String, InputFormat)>,
    /// What the user is told about them.
    pub(super) notes: String,
    csv: CsvOptions,
    csv_types: CsvTypes,
}

/// CSV files as they were, how they are read, and the types of their columns.
type Known = (Vec<Object>, CsvOptions, FoundTypes);

/// From this size on, the user is told how long it took to find the types.
const LARGE: u64 = 1_000_000_000;

impl Files {
    /// Makes a session look for files where no table has the name.
    pub(super) fn enable(session: &SessionContext) -> Self {
        let mut state = session.state();
        let known = Arc::clone(state.catalog_list());
        // Row groups of files are pruned: float columns, whose statistics are wrong, are read
        // through a function only.
        state.config_mut().options_mut().execution.parquet.pruning = true;
        let unaware = SessionContext::new_with_state(state);
        let files =
            Self { session: unaware, opened: Arc::default(), known: Arc::default(), copied: Arc::default() };
        session.register_catalog_list(Arc::new(DynamicFileCatalog::new(known, Arc::new(files.clone()))));
        files
    }

    /// Starts resolving file names; the options say how CSV files are read.
    pub(super) fn begin(&self, options: &KanonOptions) {
        let (csv, csv_types) = (options.csv.clone(), options.csv_types);
        *self.opened() = Some(Opened { names: Vec::new(), notes: String::new(), csv, csv_types });
    }

    /// Stops resolving file names and returns what was opened.
    pub(super) fn end(&self) -> Option<Opened> {
        self.opened().take()
    }

    fn opened(&self) -> MutexGuard<'_, Option<Opened>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, Vec<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens CSV files with the types of their columns, which are found once in a session.
    async fn typed(&self, input: &Input, csv: &CsvOptions) -> datafusion_kanon::Result<DataFrame> {
        let texts = input.pinned_texts(&self.session, csv)?;
        let is_known = |known: &&Known| known.0 == input.objects() && known.1 == *csv;
        let known = self.known().iter().find(is_known).map(|known| known.2.clone());
        let types = match known {
            Some(types) => types,
            None => {
                let begun = Instant::now();
                let mut types = find_types(&texts, csv).await?;
                // Partition columns have types of their own.
                for (found, field) in types.iter_mut().zip(texts.schema().fields()) {
                    found.take_if(|_| input.is_partition_column(field.name()));
                }
                if let Some(opened) = &mut *self.opened() {
                    opened.notes += &note(&input.argument, input.bytes(), begun.elapsed());
                }
                // What the files were before is not asked for again.
                let paths =
                    |files: &[Object]| files.iter().map(|file| file.address().clone()).collect::<Vec<_>>();
                let is_other = |known: &Known| known.1 != *csv || paths(&known.0) != paths(input.objects());
                self.known().retain(is_other);
                self.known().push((input.objects().to_vec(), csv.clone(), types.clone()));
                types
            }
        };
        input.with_folder_types(with_types(texts, &types, csv)?)
    }

    /// Returns whether a name is a file's: a file exists or the name looks like a path, and no
    /// table function has it.
    fn is_file(&self, name: &str) -> bool {
        let is_function = self.session.state_ref().read().table_functions().contains_key(name);
        looks_like_path(name) || (!is_function && Path::new(name).exists())
    }
}

/// Returns the note on the time that finding the types of large files took.
pub(super) fn note(name: &str, bytes: u64, took: Duration) -> String {
    if bytes < LARGE {
        return String::new();
    }
    format!(
        "note: the types of the columns of {name} were found from every cell in {:.1} s; SET kanon.csv_types = 'text' leaves \
         that out\n",
        took.as_secs_f64()
    )
}

fn looks_like_path(name: &str) -> bool {
    name.contains(['.', '/', '\\', '*', '?', '['])
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Files")
    }
}

#[async_trait]
impl UrlTableFactory for Files {
    async fn try_new(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let options = self.opened().as_ref().map(|opened| (opened.csv.clone(), opened.csv_types));
        let Some((csv, csv_types)) = options.filter(|_| self.is_file(name)) else { return Ok(None) };
        let input = match Input::find(name) {
            Ok(input) => input,
            // A folder that has the name by chance.
            Err(_) if !looks_like_path(name) && has_no_data(Path::new(name)) => return Ok(None),
            Err(error) => return Err(into_engine(error)),
        };
        let format = input.format;
        if input.objects().iter().any(|object| object.address().local().is_none()) {
            let mut copied = self.copied.lock().unwrap_or_else(PoisonError::into_inner);
            copied.insert(name.to_owned(), input.clone());
        }
        let table = match (format, csv_types) {
            (InputFormat::Csv, CsvTypes::Infer) => self.typed(&input, &csv).await,
            _ => input.pinned_table(&self.session, &csv).await,
        };
        let table = table.map_err(into_engine)?;
        if let Some(opened) = &mut *self.opened() {
            opened.names.push((name.to_owned(), format));
        }
        Ok(Some(table.into_view()))
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;

    use super::*;

    /// Types are found once for the same files, read in the same way, and again once they changed.
    #[tokio::test]
    async fn found_types_are_remembered() {
        let files = Files::enable(&SessionContext::new());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.csv");
        let csv = CsvOptions::default();
        let found = async |csv: &CsvOptions| {
            let input = Input::find(path.to_str().unwrap()).unwrap();
            let table = files.typed(&input, csv).await.unwrap();
            table.schema().field(0).data_type().clone()
        };
        std::fs::write(&path, "n\n9\n10\n").unwrap();
        assert_eq!(found(&csv).await, DataType::Int64);
        // A remembered type is used without reading the file again.
        files.known()[0].2 = vec![None];
        assert_eq!(found(&csv).await, DataType::Utf8View);
        let other = CsvOptions { nulls: vec!["9".to_owned()], ..CsvOptions::default() };
        assert_eq!(found(&other).await, DataType::Int64);
        std::fs::write(&path, "n\n9\n10.5\n").unwrap();
        assert_eq!(found(&csv).await, DataType::Float64);
        assert_eq!(files.known().len(), 2);
    }

    #[test]
    fn seconds_are_told_of_large_files() {
        let took = Duration::from_millis(12_340);
        assert_eq!(note("x.csv", 999_999_999, took), "");
        assert!(note("x.csv", 1_000_000_000, took).contains("of x.csv were found from every cell in 12.3 s"));
    }
}
