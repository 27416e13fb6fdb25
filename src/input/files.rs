//! The files of INPUT: found, recognized by format, and pinned.

use std::fs;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::address::local_path;
use super::other_tables;
use super::pinned_file::PinnedFile;
use super::utf8_copies::Utf8Copies;
use crate::engine::Context;
use crate::engine::temporary::TemporaryFolder;
use crate::error::{Error, ErrorCode, Result, of_file};

/// The input formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputFormat {
    /// Apache Parquet.
    Parquet,
    /// Text separated by commas or another delimiter.
    Csv,
    /// JSON lines: one object per line.
    Json,
    /// Arrow IPC, as a file or a stream.
    Arrow,
}

impl InputFormat {
    /// Returns whether files of this format say the types of their columns.
    pub fn has_types(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow)
    }
}

/// The lower-case file name extensions, and their formats.
const ENDS: [(&str, InputFormat); 12] = [
    ("parquet", InputFormat::Parquet),
    ("pq", InputFormat::Parquet),
    ("csv", InputFormat::Csv),
    ("tsv", InputFormat::Csv),
    ("txt", InputFormat::Csv),
    ("json", InputFormat::Json),
    ("jsonl", InputFormat::Json),
    ("ndjson", InputFormat::Json),
    ("arrow", InputFormat::Arrow),
    ("arrows", InputFormat::Arrow),
    ("feather", InputFormat::Arrow),
    ("ipc", InputFormat::Arrow),
];

impl InputFormat {
    /// Returns the name of the format in messages.
    pub fn name(self) -> &'static str {
        match self {
            InputFormat::Parquet => "Parquet",
            InputFormat::Csv => "CSV",
            InputFormat::Json => "JSON lines",
            InputFormat::Arrow => "Arrow",
        }
    }
}

/// The input files, all of one format.
#[derive(Debug, Clone)]
pub struct Input {
    /// INPUT as the user typed it.
    pub argument: String,
    /// The files, sorted by path.
    #[doc(hidden)]
    pub files: Vec<PinnedFile>,
    /// The format of all files.
    pub format: InputFormat,
    pub(super) copies: Utf8Copies,
    /// The folder of the file that holds standard input, if it is INPUT.
    spooled: Option<Arc<TemporaryFolder>>,
}

/// INPUT for standard input.
pub const STANDARD_INPUT: &str = "-";

impl Input {
    /// Creates an input of files that are known.
    #[doc(hidden)]
    pub fn of_files(argument: &str, files: Vec<PinnedFile>, format: InputFormat) -> Self {
        Self { argument: argument.to_owned(), files, format, copies: Utf8Copies::default(), spooled: None }
    }

    /// Finds the files of INPUT, or reads standard input where INPUT is `-`. Its copy goes with the
    /// input, so queries must not outlive it.
    ///
    /// # Errors
    /// Those of [`find`](Self::find), and a data error when standard input cannot be read.
    pub fn find_or_read(argument: &str) -> Result<Self> {
        if argument == STANDARD_INPUT { Self::of_standard_input() } else { Self::find(argument) }
    }

    /// Finds the files of INPUT, a path or a `file://` address. In folders and globs, names that begin
    /// with `_` or `.` are skipped.
    ///
    /// # Errors
    /// A policy error for an address of another kind; a data error for no files, mixed formats, an
    /// unknown format, or a folder or glob that reaches the folder of a Delta Lake or a similar table.
    pub fn find(argument: &str) -> Result<Self> {
        Self::find_with(argument, Partitions::Refused)
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
            let files = vec![PinnedFile::new(path)?];
            return Ok(Self::of_files(location, files, format));
        }
        let input = Self::find_with(location, Partitions::Kept)?;
        if input.format == format {
            return Ok(input);
        }
        Err(Error::data(format!(
            "input `{location}`: it holds {} files, not {} files; say so in STORED AS",
            input.format.name(),
            format.name()
        )))
    }

    fn find_with(argument: &str, partitions: Partitions) -> Result<Self> {
        let paths = paths_of(argument, partitions)?;
        let formats: Vec<InputFormat> = paths.iter().map(|p| format_of(p)).collect::<Result<_>>()?;
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
        let files = paths.into_iter().map(PinnedFile::new).collect::<Result<_>>()?;
        Ok(Self::of_files(argument, files, format))
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
        let files = vec![PinnedFile::new(path)?];
        Ok(Self { spooled: Some(Arc::new(folder)), ..Self::of_files(STANDARD_INPUT, files, format) })
    }

    /// Checks that no file changed since [`Input::find`].
    ///
    /// # Errors
    /// A data error that names the first changed file.
    #[doc(hidden)]
    pub fn still_the_same(&self) -> Result<()> {
        if self.spooled.is_some() {
            return Ok(());
        }
        let now = Self::find(&self.argument)?;
        if now.files.len() != self.files.len() {
            return Err(Error::data(
                "the input changed during the run: files appeared or disappeared; nothing was published",
            ));
        }
        match self.files.iter().zip(&now.files).find(|(before, after)| before != after) {
            None => Ok(()),
            Some((file, _)) => Err(Error::data(format!(
                "input file {} changed during the run; nothing was published",
                file.path.display()
            ))),
        }
    }

    /// Returns the total length of all files in bytes.
    #[doc(hidden)]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|f| f.bytes).sum()
    }
}

/// Returns the files that the location of a SQL table reaches now, those in partition folders, too.
///
/// # Errors
/// As [`Input::find`], but for the formats, which are not looked at.
pub fn files_of_location(location: &str) -> Result<Vec<PinnedFile>> {
    paths_of(location, Partitions::Kept)?.into_iter().map(PinnedFile::new).collect()
}

/// Returns the files that a path, a `file://` address or a glob reaches, sorted, each once.
fn paths_of(argument: &str, partitions: Partitions) -> Result<Vec<PathBuf>> {
    let path = local_path(argument).map_err(|error| error.at("input"))?;
    let pattern = path.to_string_lossy();
    let (mut paths, mut checked) = (Vec::new(), other_tables::Checked::default());
    if path.is_dir() {
        collect(&path, partitions, &mut paths, &mut checked)?;
    } else if path.exists() {
        paths.push(path.clone());
    } else if pattern.contains(['*', '?', '[']) {
        let matches =
            glob::glob(&pattern).map_err(|e| Error::policy(format!("input `{argument}`: {}", e.msg)))?;
        // Hidden names are allowed in the literal start of the pattern, and skipped below it.
        let named = path.components().take_while(|part| !is_pattern(part.as_os_str())).count();
        for found in matches {
            let found =
                found.map_err(|e| Error::data(of_file(e.error())).at(format!("input `{argument}`")))?;
            let below: PathBuf = found.components().skip(named).collect();
            if below.ancestors().any(is_hidden) {
                continue;
            }
            checked.check(found.parent().unwrap_or(&found))?;
            let mut folders = below.ancestors().skip(usize::from(!found.is_dir()));
            if let Some(folder) = folders.find(|folder| partitions.refuse(folder)) {
                return Err(partitioned(folder));
            }
            if found.is_dir() {
                collect(&found, partitions, &mut paths, &mut checked)?;
            } else {
                paths.push(found);
            }
        }
    } else {
        let why = format!("input `{argument}`: no such file, folder or glob");
        return Err(Error::data(why).coded(ErrorCode::NotFound));
    }
    paths.sort();
    // A file that is reached in two ways is one file.
    let mut known = std::collections::HashSet::new();
    paths.retain(|path| known.insert(fs::canonicalize(path).unwrap_or_else(|_| path.clone())));
    Ok(paths)
}

/// Whether partition folders (`name=value`) are refused.
#[derive(Clone, Copy, PartialEq)]
enum Partitions {
    Refused,
    Kept,
}

impl Partitions {
    fn refuse(self, folder: &Path) -> bool {
        self == Self::Refused && is_partition(folder)
    }
}

fn collect(
    folder: &Path,
    partitions: Partitions,
    paths: &mut Vec<PathBuf>,
    checked: &mut other_tables::Checked,
) -> Result<()> {
    checked.check(folder)?;
    let place = format!("input folder {}", folder.display());
    for entry in fs::read_dir(folder).context(&place)? {
        let path = entry.context(&place)?.path();
        if is_hidden(&path) {
            continue;
        }
        if !path.is_dir() {
            paths.push(path);
        } else if partitions.refuse(&path) {
            return Err(partitioned(&path));
        } else {
            collect(&path, partitions, paths, checked)?;
        }
    }
    Ok(())
}

/// Returns whether a folder has no file that could be read.
pub fn has_no_data(folder: &Path) -> bool {
    let mut paths = Vec::new();
    collect(folder, Partitions::Refused, &mut paths, &mut other_tables::Checked::default()).is_ok()
        && paths.iter().all(|path| format_of(path).is_err())
}

fn is_pattern(part: &std::ffi::OsStr) -> bool {
    part.to_string_lossy().contains(['*', '?', '['])
}

/// Returns whether a folder is a partition by its name (`name=value`).
pub fn is_partition(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.to_string_lossy().contains('='))
}

fn partitioned(folder: &Path) -> Error {
    Error::data(format!(
        "input folder {}: partition folders (`name=value`) are not supported yet: their columns would be \
         lost; give files that hold all columns",
        folder.display()
    ))
}

/// Returns whether folders and globs skip a name.
pub fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(['_', '.']))
}

/// Extensions of files that are not read, what they are, and how to export them.
const OTHERS: [(&[&str], &str); 4] = [
    (
        &["xlsx", "xls", "xlsm", "xlsb", "ods"],
        "a workbook is not read, because its cells hold formats and formulas; save the sheet as CSV (in Excel: File, Save As, \
         \"CSV UTF-8\") and give that file",
    ),
    (
        &["sav", "zsav", "dta", "sas7bdat", "xpt", "rds", "rdata"],
        "files of statistics programs are not read; export the table as CSV or Parquet",
    ),
    (&["gz", "zip", "bz2", "xz", "zst", "7z"], "compressed files are not read; unpack the file first"),
    (
        &["db", "sqlite", "sqlite3", "duckdb", "mdb", "accdb"],
        "databases are not read; export the table as CSV or Parquet",
    ),
];

/// The first bytes of files that are no text whatever their names end in, and an extension of what they are.
const FIRST_BYTES: [(&[u8], &str); 4] = [
    (b"PK\x03\x04", "xlsx"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "xlsx"),
    (b"\x1f\x8b\x08", "gz"),
    (b"SQLite format 3\0", "sqlite"),
];

/// Refuses a file of texts that is a workbook, an archive or a database by its first bytes.
///
/// # Errors
/// A data error that says how to export it.
pub(super) fn check_is_text(first: &[u8], place: &str) -> Result<()> {
    let Some((bytes, found)) = FIRST_BYTES.iter().find(|(bytes, _)| first.starts_with(bytes)) else {
        return Ok(());
    };
    let why = OTHERS.iter().find(|(ends, _)| ends.contains(found)).map_or("", |(_, why)| *why);
    let what = match *bytes {
        b"PK\x03\x04" => {
            "it is no text but a workbook (.xlsx, .ods) or an archive (.zip), whatever its name; if an archive, unpack it; "
        }
        _ => "it is no text, whatever its name; ",
    };
    Err(Error::data(format!("{what}{why}")).at(place))
}

/// Returns the format that the name of a file says; `None` if it is not read.
pub fn format_by_name(path: &Path) -> Option<InputFormat> {
    format_of(path).ok()
}

fn format_of(path: &Path) -> Result<InputFormat> {
    let found = end_of(path);
    if let Some((_, why)) = OTHERS.iter().find(|(ends, _)| ends.contains(&found.as_str())) {
        return Err(Error::data(*why).at(format!("input file {}", path.display())));
    }
    match ENDS.iter().find(|(end, _)| *end == found) {
        Some((_, format)) => Ok(*format),
        None => Err(Error::data(format!(
            "input file {}: expected a name that ends in {}",
            path.display(),
            ends()
        ))),
    }
}

/// Returns the extension of a file name in lower case, without the dot.
pub(crate) fn end_of(path: &Path) -> String {
    path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

/// Returns the extension of a file name in lower case if it is one of files of data, whether they are read
/// or not.
pub fn end_of_data(path: &Path) -> Option<String> {
    let end = end_of(path);
    let is_read = ENDS.iter().any(|(known, _)| *known == end);
    (is_read || OTHERS.iter().any(|(known, _)| known.contains(&end.as_str()))).then_some(end)
}

/// Lists all extensions that are read, for an error.
fn ends() -> String {
    let ends: Vec<String> = ENDS.iter().map(|(end, _)| format!(".{end}")).collect();
    ends.join(", ")
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
            input.files.into_iter().map(|file| file.path).collect::<Vec<_>>()
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
            assert!(error.to_string().contains("partition folders"), "{error}");
        }
    }
}
