//! The files of INPUT: found, recognized by format, and pinned.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use super::formats::{InputFormat, end_of_data, format_by_name};
use super::formats::{ends, format_of};
use super::utf8_copies::Utf8Copies;
use crate::engine::temporary::TemporaryFolder;
use crate::engine::{Context, Run};
use crate::error::{Error, ErrorCode, Result};
use crate::plural::plural;
use crate::progress::CancelToken;
use crate::store::{Address, Object, PartitionColumns, RemoteAddress, files_below, local_path, objects_at};

/// The input files, all of one format.
#[derive(Debug, Clone)]
pub struct Input {
    /// INPUT as the user typed it; of several, all with blanks between them.
    pub argument: String,
    /// What the user typed, one by one.
    arguments: Vec<String>,
    /// The files and objects, sorted by where they lie.
    pub(super) objects: Vec<Object>,
    /// The format of all files.
    pub format: InputFormat,
    /// The columns that the folders of the files give.
    pub(super) folders: PartitionColumns,
    pub(super) copies: Utf8Copies,
    /// The folder of the file that holds standard input, if it is INPUT.
    spooled: Option<Arc<TemporaryFolder>>,
}

/// INPUT for standard input.
pub const STANDARD_INPUT: &str = "-";

impl Input {
    /// Creates an input of files that are known.
    #[doc(hidden)]
    pub fn of_objects(argument: &str, objects: Vec<Object>, format: InputFormat) -> Self {
        let (arguments, copies) = (vec![argument.to_owned()], Utf8Copies::default());
        let (argument, folders) = (argument.to_owned(), PartitionColumns::default());
        Self { argument, arguments, objects, format, folders, copies, spooled: None }
    }

    /// Returns an input whose folders give these columns.
    pub(crate) fn with_partition_columns(self, folders: PartitionColumns) -> Self {
        Self { folders, ..self }
    }

    /// Finds the files of INPUT, or reads standard input where INPUT is `-`. Its copy goes with the
    /// input, so queries must not outlive it.
    ///
    /// # Errors
    /// Those of [`find`](Self::find); a data error when standard input cannot be read; the error of a stopped run.
    pub fn find_or_read(argument: &str, stop: &CancelToken) -> Result<Self> {
        if argument == STANDARD_INPUT {
            return Self::of_standard_input();
        }
        Self::find_all(&[argument.to_owned()], stop)
    }

    /// Finds the files of INPUT: a path, a glob, or the address of an object, a folder or a glob of a store (`file`, `s3`, `az`,
    /// `abfss`, `gs`; `http` and `https` for single files). In folders and globs, names that begin with `_` or `.` are skipped.
    /// Folders such as `year=2024` below the one that is named give columns.
    /// Objects of a store are copied to the folder for temporary files, as they were listed; credentials come from the
    /// environment.
    ///
    /// # Errors
    /// A policy error for an address of another kind; a data error for no files, mixed formats, an
    /// unknown format, a folder or glob that reaches the folder of a Delta Lake or a similar table, or a store that cannot be
    /// read.
    pub fn find(argument: &str) -> Result<Self> {
        Self::find_all(&[argument.to_owned()], &CancelToken::default())
    }

    /// Finds the files of a location whose format is said. The columns of partition folders may be
    /// read, and the name of a single file says nothing.
    ///
    /// # Errors
    /// Those of [`find`](Self::find); a data error for files of another format.
    #[doc(hidden)]
    pub fn find_of_format(location: &str, format: InputFormat) -> Result<Self> {
        let path = local_path(location).map_err(|error| error.at("location"))?;
        if path.is_file() {
            let files = vec![Object::of_file(path)?];
            return Ok(Self::of_objects(location, files, format));
        }
        let input = Self::find_all(&[location.to_owned()], &CancelToken::default())?;
        if input.format == format {
            return Ok(input);
        }
        Err(Error::data(format!(
            "input `{location}`: it holds {} files, not {} files; say so in STORED AS",
            input.format.name(),
            format.name()
        )))
    }

    /// Finds the files of several INPUTs as one table, like [`find`](Self::find).
    ///
    /// # Errors
    /// Those of [`find`](Self::find); a policy error for a file that two of them name.
    pub fn find_all(arguments: &[String], stop: &CancelToken) -> Result<Self> {
        let argument = arguments.join(" ");
        check_no_column_is_lost(arguments)?;
        let mut listed = Vec::new();
        for argument in arguments {
            let place = objects_at(argument).map_err(|error| error.at("input"))?;
            let objects = place.list(stop)?;
            listed.push((place, objects));
        }
        let formats = listed.iter().flat_map(|(_, objects)| objects).map(format_of);
        let formats: Vec<InputFormat> = formats.collect::<Result<_>>()?;
        let format = *formats.first().ok_or_else(|| {
            let why = format!("input `{argument}`: no file found; expected files that end in {}", ends());
            Error::data(why).coded(ErrorCode::EmptyInput)
        })?;
        if let Some(other) = formats.iter().find(|other| **other != format) {
            return Err(Error::data(format!(
                "input `{argument}`: {} and {} files are mixed; give files of one kind",
                format.name(),
                other.name()
            )));
        }
        let (mut objects, mut record) = (Vec::new(), None);
        for (place, listed) in listed {
            let is_in_folder = |object: &Object| object.below().contains('=');
            if arguments.len() == 1 && listed.iter().any(is_in_folder) {
                record = place.record();
            }
            objects.extend(place.readable(listed, format == InputFormat::Parquet, stop)?);
        }
        objects.sort_by(|a, b| a.address().cmp(b.address()));
        let mut seen = HashSet::new();
        for object in &objects {
            if !seen.insert(object.identity()?) {
                return Err(Error::policy("it is named twice; name it once").at(object.place()));
            }
        }
        let below: Vec<&str> = objects.iter().map(Object::below).collect();
        let mut folders =
            PartitionColumns::find(&below).map_err(|error| error.at(format!("input `{argument}`")))?;
        if let Some(record) = record {
            folders = folders.of_record(&record);
        }
        Ok(Self { arguments: arguments.to_vec(), folders, ..Self::of_objects(&argument, objects, format) })
    }

    /// Copies standard input to a file of the run, because each file is read several times. Its
    /// first bytes say its format.
    fn of_standard_input() -> Result<Self> {
        let (place, doing) = ("standard input", "copying standard input to the folder for temporary files");
        if std::io::stdin().is_terminal() {
            let why = "it is a terminal; pipe a file into it, or name the file";
            return Err(Error::data(why).at(place));
        }
        let folder = TemporaryFolder::new().context(doing)?;
        let mut input = std::io::stdin().lock();
        let mut first = Vec::new();
        (&mut input).take(8).read_to_end(&mut first).context(place)?;
        if first.is_empty() {
            return Err(Error::data("it is empty").coded(ErrorCode::EmptyInput).at(place));
        }
        let (format, name) = match first.as_slice() {
            [b'P', b'A', b'R', b'1' | b'E', ..] => (InputFormat::Parquet, "stdin.parquet"),
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] | [0xff, 0xff, 0xff, 0xff, ..] => {
                (InputFormat::Arrow, "stdin.arrow")
            }
            text if text.trim_ascii_start().starts_with(b"{") => (InputFormat::Json, "stdin.json"),
            _ => (InputFormat::Csv, "stdin.csv"),
        };
        let path = folder.path().join(name);
        let mut file = fs::File::create_new(&path).context(doing)?;
        std::io::copy(&mut first.as_slice().chain(input), &mut file).context(doing)?;
        let files = vec![Object::of_file(path)?];
        Ok(Self { spooled: Some(Arc::new(folder)), ..Self::of_objects(STANDARD_INPUT, files, format) })
    }

    /// Checks that no file or object changed since [`Input::find`]. Objects that appeared in a store meanwhile are not read,
    /// which is said.
    ///
    /// # Errors
    /// A data error that names the first changed file.
    #[doc(hidden)]
    pub fn still_the_same(&self, run: &Run) -> Result<()> {
        if self.spooled.is_some() {
            return Ok(());
        }
        let (mut now, mut is_whole) = (Vec::new(), true);
        for argument in &self.arguments {
            let place = objects_at(argument)?;
            now.extend(place.list(&run.stop)?);
            is_whole &= place.is_one_with_later();
        }
        let now: BTreeMap<&Address, &Object> = now.iter().map(|object| (object.address(), object)).collect();
        let changed = |object: &&Object| now.get(object.address()).is_none_or(|now| now != object);
        if let Some(object) = self.objects.iter().find(changed) {
            let what = if now.contains_key(object.address()) { "changed" } else { "disappeared" };
            return Err(Error::data(format!(
                "{} {what} during the run; nothing was published",
                object.place()
            )));
        }
        match now.len() - self.objects.len() {
            0 => Ok(()),
            _ if is_whole => {
                Err(Error::data("the input changed during the run: files appeared; nothing was published"))
            }
            more => {
                let more = plural(more as u64, "object", "objects");
                run.progress.notice(&format!("the input: {more} that appeared during the run were not read"));
                Ok(())
            }
        }
    }

    /// Returns the total length of all files in bytes.
    #[doc(hidden)]
    pub fn bytes(&self) -> u64 {
        self.objects.iter().map(Object::bytes).sum()
    }

    /// Returns the addresses that the user typed.
    pub(crate) fn remote_arguments(&self) -> impl Iterator<Item = RemoteAddress> {
        self.arguments.iter().filter_map(|argument| match Address::parse(argument) {
            Ok(Address::Remote(address)) => Some(address),
            _ => None,
        })
    }

    /// Returns the paths and globs of this machine that the user typed.
    pub(crate) fn local_arguments(&self) -> impl Iterator<Item = PathBuf> {
        self.arguments.iter().filter_map(|argument| local_path(argument).ok())
    }

    /// Returns the files and objects.
    #[doc(hidden)]
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }
}

/// Refuses several arguments in folders of different values of one column, as a shell makes them of `year=*`: each is read below
/// itself, so the column would be lost.
fn check_no_column_is_lost(arguments: &[String]) -> Result<()> {
    let mut values = BTreeMap::new();
    for argument in arguments {
        for (name, value) in argument.split('/').filter_map(|folder| folder.split_once('=')) {
            if *values.entry(name).or_insert(value) != value {
                return Err(Error::policy(format!(
                    "the folders `{name}=...` are named one by one, so they give no column `{name}`; name the folder above \
                     them, or a pattern in quotes"
                ))
                .at("input"));
            }
        }
    }
    Ok(())
}

/// Returns the files that the location of a SQL table reaches now, those in partition folders, too.
///
/// # Errors
/// As [`Input::find`], but for the formats, which are not looked at.
pub fn files_of_location(location: &str) -> Result<Vec<Object>> {
    objects_at(location)?.list(&CancelToken::default())
}

/// Returns whether a folder has no file that could be read.
pub fn has_no_data(folder: &Path) -> bool {
    files_below(folder).is_some_and(|paths| paths.iter().all(|path| format_by_name(path).is_none()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_or_reached_twice_is_not_read_twice() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [
            "a.parquet",
            "sub/b.parquet",
            "_temporary/a.parquet",
            ".x.kanon-work/release/a.parquet",
            "_log.parquet",
        ] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), "").unwrap();
        }
        let found = |argument: PathBuf| {
            let input = Input::find(argument.to_str().unwrap()).unwrap();
            input.objects.iter().map(|file| file.path().to_path_buf()).collect::<Vec<_>>()
        };
        let both = vec![at("a.parquet"), at("sub/b.parquet")];
        assert_eq!(found(folder.path().to_path_buf()), both);
        assert_eq!(found(at("*")), both);
        assert_eq!(found(at("**/*.parquet")), both);
        assert_eq!(found(at("_temporary/*.parquet")), [at("_temporary/a.parquet")]);
        fs::create_dir(at("year=2024")).unwrap();
        fs::write(at("year=2024/c.parquet"), "").unwrap();
        for argument in [at("*"), at("**/*.parquet"), folder.path().to_path_buf()] {
            let error = Input::find(argument.to_str().unwrap()).unwrap_err();
            assert!(error.to_string().contains("lies beside the folders of `year`"), "{error}");
        }
        let input = Input::find(at("year=*").to_str().unwrap()).unwrap();
        assert_eq!(
            (input.folders.names, input.folders.values),
            (vec!["year".into()], vec![vec![Some("2024".into())]])
        );
    }
}
