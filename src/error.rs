//! One error type for the whole crate: a kind, which decides the exit code, and a message for the
//! user.
//!
//! A message names the place (column, key, file), what was expected and what to do. It never
//! contains a cell of the data. Errors of Arrow, Parquet, CSV and DataFusion quote cells, so the
//! release layer maps them: it keeps their kind and drops their text.

use std::fmt::Display;
use std::io;

/// The kinds of error, one per exit code of `kanon`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A requirement does not hold, no recoding satisfies it, or two things that must agree do not
    /// (exit 1).
    Unmet,
    /// The command line or the policy is wrong (exit 2).
    Policy,
    /// The data cannot be read, written or held: I/O, types, limits (exit 3).
    Data,
    /// A bug in this crate (exit 4).
    Internal,
    /// The user asked to stop (exit 130).
    Interrupted,
}

impl ErrorKind {
    /// Returns the process exit code.
    pub fn exit_code(self) -> u8 {
        match self {
            ErrorKind::Unmet => 1,
            ErrorKind::Policy => 2,
            ErrorKind::Data => 3,
            ErrorKind::Internal => 4,
            ErrorKind::Interrupted => 130,
        }
    }
}

/// The causes that programs tell apart; their names are stable. Every kind has a code of its own
/// for all other causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// The command line is wrong.
    Usage,
    /// The columns of a file are not those of the policy, of the earlier release or of the other
    /// files, or a CSV file has no line of names.
    OtherColumns,
    /// The input has no rows.
    EmptyInput,
    /// A file is damaged.
    DamagedFile,
    /// The disk or the quota is full.
    NoSpace,
    /// The memory limit does not suffice.
    OutOfMemory,
    /// A file or folder is not there.
    NotFound,
    /// Another run writes to the same place.
    ConcurrentRun,
    /// The file or release to write already exists.
    Exists,
    /// An address cannot be used here, or is written wrongly.
    Address,
    /// A store did not say whether a release was published.
    NotKnown,
}

impl ErrorCode {
    /// Every code with its name and what it means.
    pub const ALL: &'static [(ErrorCode, &'static str, &'static str)] = &[
        (ErrorCode::Usage, "usage", "the command line is wrong"),
        (
            ErrorCode::OtherColumns,
            "other_columns",
            "the columns of a file are not those of the policy, of the earlier release or of the other files, or a CSV file has no line of names",
        ),
        (ErrorCode::EmptyInput, "empty_input", "the input has no rows, or its folder no files"),
        (ErrorCode::DamagedFile, "damaged_file", "a file is damaged"),
        (ErrorCode::NoSpace, "no_space", "the disk or the quota is full"),
        (ErrorCode::OutOfMemory, "out_of_memory", "the memory limit does not suffice"),
        (ErrorCode::NotFound, "not_found", "a file or folder is not there"),
        (ErrorCode::ConcurrentRun, "concurrent_run", "another run writes to the same place"),
        (ErrorCode::Exists, "exists", "the file or release to write already exists"),
        (
            ErrorCode::Address,
            "address",
            "an address such as s3:// cannot be used here, or is written wrongly",
        ),
        (ErrorCode::NotKnown, "not_known", "a store did not say whether a release was published"),
    ];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(code, ..)| *code == self).map_or("", |(_, name, _)| name)
    }

    fn from_io(kind: io::ErrorKind) -> Option<Self> {
        match kind {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(ErrorCode::NoSpace),
            io::ErrorKind::NotFound => Some(ErrorCode::NotFound),
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => Some(ErrorCode::DamagedFile),
            io::ErrorKind::OutOfMemory => Some(ErrorCode::OutOfMemory),
            _ => None,
        }
    }
}

/// An error of a [`ErrorKind`]; its text is safe to log. It may be the first one of several that a run
/// found together; its text then has a line for each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.message, .beside))]
pub struct Error {
    kind: ErrorKind,
    code: Option<ErrorCode>,
    message: String,
    /// Those found beside this one; they have none beside them.
    beside: Vec<Error>,
}

fn lines(first: &str, beside: &[Error]) -> String {
    let beside = beside.iter().map(Error::message);
    std::iter::once(first).chain(beside).collect::<Vec<_>>().join("\n")
}

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates the error of a requirement that does not hold (exit 1).
    pub fn unmet(message: impl Display) -> Self {
        Self::new(ErrorKind::Unmet, message)
    }

    /// Creates the error of a wrong command line or policy (exit 2).
    pub fn policy(message: impl Display) -> Self {
        Self::new(ErrorKind::Policy, message)
    }

    /// Creates the error of data that cannot be read, written or held (exit 3).
    pub fn data(message: impl Display) -> Self {
        Self::new(ErrorKind::Data, message)
    }

    /// Creates the error of a bug in this crate; `message` names the place and the broken invariant
    /// (exit 4).
    pub fn internal(message: impl Display) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Creates the error of a user's request to stop (exit 130).
    pub fn interrupted() -> Self {
        Self::new(ErrorKind::Interrupted, "interrupted; nothing was published")
    }

    /// Creates the error of a user's request to stop a query that publishes nothing (exit 130).
    #[doc(hidden)]
    pub fn interrupted_query() -> Self {
        Self::new(ErrorKind::Interrupted, "interrupted; a file that COPY was writing may be incomplete")
    }

    fn new(kind: ErrorKind, message: impl Display) -> Self {
        Self { kind, code: None, message: message.to_string(), beside: Vec::new() }
    }

    /// Creates the data error of an operation on a file that failed.
    #[doc(hidden)]
    pub fn from_io(error: &io::Error) -> Self {
        Self::of_system(error)
            .unwrap_or_else(|| Self { code: ErrorCode::from_io(error.kind()), ..Self::data(of_file(error)) })
    }

    /// Creates the error of a file of a policy, or of the policy, that cannot be read: of data where it
    /// is not there, as for every file that a command names, else of the policy.
    #[doc(hidden)]
    pub fn of_policy_file(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::from_io(error),
            _ => Self::policy(of_file(error)),
        }
    }

    /// Creates the data error for the operating system's error that caused an error; `None` if the
    /// cause is another one.
    #[doc(hidden)]
    pub fn of_system(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        let io = system_error(error)?;
        Some(Self { code: ErrorCode::from_io(io.kind()), ..Self::data(system_text(io)) })
    }

    /// Adds advice to an error of a policy or of data that has no code, or that is about the columns.
    #[must_use]
    #[doc(hidden)]
    pub fn advised(self, advice: &str) -> Self {
        let is_about_input = matches!(self.kind, ErrorKind::Policy | ErrorKind::Data)
            && matches!(self.code, None | Some(ErrorCode::OtherColumns));
        match is_about_input {
            true => Self { message: format!("{}; {advice}", self.message), ..self },
            false => self,
        }
    }

    /// Sets the code.
    #[must_use]
    #[doc(hidden)]
    pub fn coded(self, code: ErrorCode) -> Self {
        Self { code: Some(code), ..self }
    }

    /// Returns whether the cause is this one.
    pub fn is(&self, code: ErrorCode) -> bool {
        self.code == Some(code)
    }

    /// Returns the name of the cause, for programs.
    pub fn code(&self) -> &'static str {
        match (self.code, self.kind) {
            (Some(code), _) => code.name(),
            (None, ErrorKind::Unmet) => "not_met",
            (None, ErrorKind::Policy) => "policy",
            (None, ErrorKind::Data) => "data",
            (None, ErrorKind::Internal) => "internal",
            (None, ErrorKind::Interrupted) => "interrupted",
        }
    }

    /// Returns the text of this error alone.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns this error and those that were found beside it.
    pub fn each(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.beside)
    }

    /// Adds an error, with those beside it, that was found in the same run.
    #[must_use]
    #[doc(hidden)]
    pub fn beside(mut self, mut other: Self) -> Self {
        let more = std::mem::take(&mut other.beside);
        self.beside.push(other);
        self.beside.extend(more);
        self
    }

    /// Changes this error and those beside it.
    #[must_use]
    #[doc(hidden)]
    pub fn map_each(self, change: impl Fn(Self) -> Self) -> Self {
        let beside = self.beside.into_iter().map(&change).collect();
        Self { beside, ..change(Self { beside: Vec::new(), ..self }) }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Turns a data error into a policy error, for a policy that does not fit the data. Other kinds
    /// stay, and so does the error of a file that is not there.
    #[must_use]
    #[doc(hidden)]
    pub fn of_policy(self) -> Self {
        self.map_each(|one| match (one.kind, one.code) {
            (_, Some(ErrorCode::NotFound)) => one,
            (ErrorKind::Data, _) => Self { kind: ErrorKind::Policy, ..one },
            _ => one,
        })
    }

    /// Returns the error with another name in its texts for a place.
    #[cfg(feature = "engine")]
    #[must_use]
    pub(crate) fn replaced(self, place: &str, by: &str) -> Self {
        self.map_each(|one| Self { message: one.message.replace(place, by), ..one })
    }

    /// Appends text to the message.
    #[must_use]
    #[doc(hidden)]
    pub fn and(self, more: &str) -> Self {
        Self { message: self.message + more, ..self }
    }

    /// Prefixes the message with its place: `place: message`.
    #[must_use]
    #[doc(hidden)]
    pub fn at(self, place: impl Display) -> Self {
        self.map_each(|one| Self { message: format!("{place}: {}", one.message), ..one })
    }
}

/// The errors that a run finds before it stops.
#[derive(Debug, Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    /// Keeps the error of a result; returns the value otherwise.
    pub(crate) fn value_of<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    /// Keeps an error.
    pub(crate) fn add(&mut self, error: Error) {
        self.0 = Some(std::mem::take(self).with(error));
    }

    /// Returns the first error that was kept, with the others and a last one beside it.
    pub(crate) fn with(self, last: Error) -> Error {
        match self.0 {
            Some(first) => first.beside(last),
            None => last,
        }
    }

    /// Keeps the error of a result; returns the value, if there is one, otherwise.
    pub(crate) fn found<T>(&mut self, result: Result<Option<T>>) -> Option<T> {
        self.value_of(result).flatten()
    }

    /// Ends a stage: later ones need what it found.
    ///
    /// # Errors
    /// The first error that was kept, with the others beside it.
    pub(crate) fn end_of_stage(&mut self) -> Result<()> {
        self.0.take().map_or(Ok(()), Err)
    }

    /// Collects values.
    ///
    /// # Errors
    /// The first error, with all others beside it.
    pub(crate) fn of<T>(results: impl IntoIterator<Item = Result<T>>) -> Result<Vec<T>> {
        let mut errors = Self::default();
        let values = results.into_iter().filter_map(|result| errors.value_of(result)).collect();
        errors.end_of_stage().map(|()| values)
    }
}

/// Describes why an operation on a file failed. It only reads the error's kind and number, because
/// the text may be a library's and quote cells.
pub fn of_file(error: &io::Error) -> String {
    let own = || match error.kind() {
        io::ErrorKind::Other => "it failed".to_owned(),
        kind => of_kind(kind).map_or_else(|| kind.to_string(), str::to_owned),
    };
    system_error(error).map_or_else(own, system_text)
}

/// Returns the operating system's error that caused an error; `None` if the cause is another one.
fn system_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a io::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        next = match error.downcast_ref::<io::Error>() {
            Some(io) if io.raw_os_error().is_some() => return Some(io),
            Some(io) => io.get_ref().map(|inner| inner as &(dyn std::error::Error + 'static)),
            None => error.source(),
        };
    }
    None
}

/// Describes an error of the operating system.
fn system_text(io: &io::Error) -> String {
    let words = of_kind(io.kind()).map(str::to_owned);
    words.unwrap_or_else(|| {
        io.raw_os_error()
            .map_or_else(|| "it failed".to_owned(), |code| io::Error::from_raw_os_error(code).to_string())
    })
}

/// Returns the words for the kinds that users meet.
fn of_kind(kind: io::ErrorKind) -> Option<&'static str> {
    Some(match kind {
        io::ErrorKind::NotFound => "there is no such file or folder",
        io::ErrorKind::PermissionDenied => "no permission",
        io::ErrorKind::AlreadyExists => "it already exists",
        io::ErrorKind::StorageFull => "no space left on the device",
        io::ErrorKind::QuotaExceeded => "the disk quota is used up",
        io::ErrorKind::FileTooLarge => "the file would become larger than the system allows",
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        io::ErrorKind::IsADirectory => "it is a folder, not a file",
        io::ErrorKind::NotADirectory => "a part of the path is not a folder",
        io::ErrorKind::DirectoryNotEmpty => "the folder is not empty",
        io::ErrorKind::InvalidFilename => "the name is too long, or not allowed here",
        io::ErrorKind::InvalidData => "it is damaged, or not text in UTF-8",
        io::ErrorKind::UnexpectedEof => "it ends unexpectedly",
        io::ErrorKind::ResourceBusy => "it is in use",
        io::ErrorKind::BrokenPipe => "the reader closed the pipe",
        io::ErrorKind::OutOfMemory => "out of memory",
        _ => return None,
    })
}

/// Returns the one of `valid` that is closest to `found`, if one is close.
pub fn closest<'a>(found: &str, valid: &[&'a str]) -> Option<&'a str> {
    let close = valid.iter().map(|v| (strsim::jaro_winkler(found, v), *v)).filter(|(score, _)| *score > 0.8);
    close.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// Returns "did you mean `x`?" if one of `valid` is close to `found`, else all valid names.
pub fn nearest(found: &str, valid: &[&str]) -> String {
    match closest(found, valid) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("valid: {}", valid.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_the_manual() {
        let codes = [
            Error::unmet("").kind(),
            Error::policy("").kind(),
            Error::data("").kind(),
            Error::internal("").kind(),
            Error::interrupted().kind(),
        ]
        .map(ErrorKind::exit_code);
        assert_eq!(codes, [1, 2, 3, 4, 130]);
    }

    #[test]
    fn several_errors_are_one_with_a_line_for_each() {
        let mut errors = Errors::default();
        assert_eq!(errors.value_of(Ok(1)), Some(1));
        assert_eq!(errors.end_of_stage(), Ok(()));
        for why in ["a", "b"] {
            assert_eq!(errors.value_of(Err::<u8, _>(Error::policy(why))), None);
        }
        let rest = Error::data("c").beside(Error::data("d"));
        errors.add(rest.coded(ErrorCode::NotFound));
        let all = errors.end_of_stage().unwrap_err().at("here");
        assert_eq!(all.to_string(), "here: a\nhere: b\nhere: c\nhere: d");
        assert_eq!((all.message(), all.kind(), all.code()), ("here: a", ErrorKind::Policy, "policy"));
        assert_eq!(Errors::of([Ok(1), Ok(2)]), Ok(vec![1, 2]));
        let found = Errors::of([Ok(1), Err(Error::policy("a")), Err(Error::policy("b"))]);
        assert_eq!(found.unwrap_err().to_string(), "a\nb");
        let codes: Vec<&str> = all.each().map(Error::code).collect();
        assert_eq!(codes, ["policy", "policy", "not_found", "data"]);
    }

    #[test]
    fn errors_of_the_system_are_told_in_words() {
        for (code, found) in [
            (2, "there is no such file or folder"),
            (13, "no permission"),
            (28, "no space left on the device"),
        ] {
            let error = || io::Error::from_raw_os_error(code);
            assert_eq!(of_file(&error()), found);
            assert_eq!(of_file(&io::Error::other(error())), found);
            let inside = Error::of_system(&io::Error::other(io::Error::other(error()))).unwrap();
            assert_eq!(inside.to_string(), found);
        }
        assert!(of_file(&io::Error::from_raw_os_error(5)).contains('5'));
        // A library's error text may quote the data.
        let quotes = io::Error::other("the value 999-00000007");
        assert_eq!(of_file(&quotes), "it failed");
        assert_eq!(
            of_file(&io::Error::new(io::ErrorKind::InvalidInput, "999-00000007")),
            "invalid input parameter"
        );
    }

    #[test]
    fn a_misspelt_name_gets_the_nearest_one() {
        assert_eq!(nearest("colums", &["columns", "k"]), "did you mean `columns`?");
        assert_eq!(nearest("zzz", &["columns", "k"]), "valid: columns, k");
    }
}
