//! The source of a command's columns and requirements: a policy file, or a list of
//! quasi-identifiers.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::in_shell;
use super::names::{Names, Part, name, parts};
use datafusion_kanon::extend::Setting;
use datafusion_kanon::internals::doc::find;
use datafusion_kanon::internals::input::files::STANDARD_INPUT;
use datafusion_kanon::internals::input::hierarchy_files::HierarchyFiles;
use datafusion_kanon::internals::model::{self, Requirement, SensitiveColumn};
use datafusion_kanon::internals::plural;
use datafusion_kanon::internals::policy::SetKey;
use datafusion_kanon::internals::release::publish::record::{PRIVATE_END, RECORD};
use datafusion_kanon::internals::release::{LocalRelease, Needed};
use datafusion_kanon::internals::store::{Address, text_at};
use datafusion_kanon::records::{PrivateRecord, PublicRecord};
use datafusion_kanon::{CancelToken, CsvOptions, Error, ErrorCode, Input, Place, PolicySpec, Result};

/// An opened policy file.
pub(crate) struct PolicyFile {
    /// The policy spec, with the keys of `--set`.
    pub spec: PolicySpec,
    /// The folder of its hierarchy files.
    pub folder: HierarchyFiles,
}

impl PolicyFile {
    /// Reads and parses a policy: a file, or standard input where the path is `-`. `inputs` are the
    /// arguments that may be standard input too.
    ///
    /// # Errors
    /// A policy error that names the file, or the `--set` that is wrong; a data error for a file that
    /// cannot be read.
    pub(crate) fn open(path: &Path, set: &Set, inputs: &[&str]) -> Result<Self> {
        let at = Address::parse(path)?;
        let place = format!("policy {at}");
        let unread = |error: &std::io::Error| Error::from_io(error).of_policy();
        let text = match path.as_os_str() == STANDARD_INPUT {
            true if inputs.contains(&STANDARD_INPUT) => {
                let why = "standard input holds the table; give a file for one of the two";
                return Err(Error::policy(why).at(&place));
            }
            true if std::io::stdin().is_terminal() => {
                let why = "standard input is a terminal; pipe a policy into it, or name the file";
                return Err(Error::policy(why).at(&place));
            }
            true => std::io::read_to_string(std::io::stdin().lock()).map_err(|error| unread(&error)),
            false => match &at {
                Address::Local(path) => std::fs::read_to_string(path).map_err(|error| unread(&error)),
                Address::Remote(address) => text_at(address, &CancelToken::default()),
            },
        };
        let text = text.map_err(|error| error.at(&place))?;
        let text = SetKey::all(&set.set, &text).map_err(|e| set.located(e, Some(&place)))?;
        let spec = PolicySpec::parse(&text).map_err(|e| set.located(e, Some(&place)))?;
        Ok(Self { spec, folder: HierarchyFiles::of_policy(at) })
    }
}

/// `--private PLACE`.
#[derive(Debug, Args)]
pub(crate) struct PrivatePlace {
    /// The private record: a file (.json), or the folder that holds it [default: OUT.private.json beside
    /// OUT, or as `[output] private` of the policy says]. A release in a store needs it: a path, or an address outside of OUT.
    #[arg(long, value_name = "PATH")]
    private: Option<PathBuf>,
}

impl PrivatePlace {
    /// Returns the place of the release `out`: its private record is where the flag says, else where the
    /// policy does, else beside `out`.
    ///
    /// # Errors
    /// A policy error if `out` has no name, and those of addresses.
    pub(crate) fn of(&self, out: &Address, policy: Option<&PolicyFile>) -> Result<Place> {
        let of_policy = policy.and_then(|file| Some((file.folder.policy(), file.spec.private()?)));
        let private = match (&self.private, of_policy) {
            (Some(private), _) => Some(Address::parse(private)?),
            (None, Some((policy, private))) => match policy.beside(private)? {
                // A word of a policy in a store is no place in the store.
                Address::Remote(_)
                    if policy.local().is_none() && Address::parse(private)?.local().is_some() =>
                {
                    let why = "of a policy in a store it is an absolute path of this machine or an address; give one, or --private";
                    return Err(Error::policy(why).at("output.private"));
                }
                private => Some(private),
            },
            (None, None) => None,
        };
        Place::of(out.clone(), private)
    }

    /// Returns the place of a release `out` that repeats the one whose private record is `earlier`: where
    /// the flag says, else beside the earlier record if its policy keeps records apart, else beside `out`.
    ///
    /// # Errors
    /// Those of the earlier policy and of addresses; a policy error if `out` has no name.
    pub(crate) fn after(&self, out: &Address, path: &Address, earlier: &PrivateRecord) -> Result<Place> {
        let is_apart = PolicySpec::parse(&earlier.policy)?.private().is_some() || out.local().is_none();
        let private = match &self.private {
            Some(private) => Some(Address::parse(private)?),
            None if is_apart => Some(path.beside(&format!("{}{PRIVATE_END}", out.name()))?),
            None => None,
        };
        Place::of(out.clone(), private)
    }
}

/// `--set KEY=VALUE`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Set {
    /// Set a key of the policy for this run, such as k=10, method=mondrian or columns.age.weight=3; may be
    /// repeated. A dotted key of TOML and its value; a bare word is a text; a name with dots has quotes: 'columns."a.b".role=text'.
    #[arg(long, value_name = "KEY=VALUE", requires = "policy")]
    set: Vec<SetKey>,
}

impl Set {
    /// Returns the words that give a policy with these keys to another command.
    pub(crate) fn with_policy(&self, policy: &Path) -> String {
        let keys = self.set.iter().map(|key| format!(" --set {}", in_shell(key.text())));
        format!("--policy {}{}", in_shell(&policy.display().to_string()), keys.collect::<String>())
    }

    /// Refuses keys where no policy is given; an option that stands in for one hides that from the
    /// command line's own check.
    ///
    /// # Errors
    /// A policy error if a key is set.
    pub(crate) fn check_is_empty(&self) -> Result<()> {
        match self.set.is_empty() {
            true => Ok(()),
            false => {
                Err(Error::policy("--set sets keys of a policy; give one with --policy")
                    .coded(ErrorCode::Usage))
            }
        }
    }

    /// Gives an error about one of these keys its place on the command line, any other one `place`.
    pub(crate) fn located(&self, error: Error, place: Option<&str>) -> Error {
        SetKey::located(&self.set, error, place)
    }
}

/// `--csv KEYS`.
#[derive(Debug, Args)]
pub(crate) struct Csv {
    /// How CSV files are written: keys as under `[input]` of a policy, such as 'delimiter = ";",
    /// encoding = "latin1"'. They replace those of a policy.
    #[arg(long, value_name = "KEYS", value_parser = CsvOptions::parse)]
    csv: Option<CsvOptions>,
}

impl Csv {
    /// Returns how CSV files are written: as the flag says, else as the policy does.
    pub(crate) fn or(&self, policy: Option<&PolicySpec>) -> CsvOptions {
        self.csv.clone().or_else(|| Some(policy?.csv().clone())).unwrap_or_default()
    }
}

/// `--policy P` or `--quasi a,b --individual c`.
#[derive(Debug, Args)]
pub(crate) struct Columns {
    /// The policy that names the quasi-identifiers; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "quasi")]
    policy: Option<PathBuf>,
    /// The quasi-identifiers, if there is no policy. A name with a comma has quotes as in CSV:
    /// '"a,b",sex'.
    #[arg(long, value_name = "COLUMNS")]
    quasi: Vec<Names>,
    /// The column that identifies the individual of a row; its distinct values are counted instead of rows.
    /// Quotes as in CSV are allowed.
    #[arg(long, value_name = "COLUMN", conflicts_with = "policy", value_parser = name)]
    individual: Option<String>,
    #[command(flatten)]
    set: Set,
    #[command(flatten)]
    csv: Csv,
}

impl Columns {
    /// Returns the path of the policy, if it was given.
    pub(crate) fn policy(&self) -> Option<&Path> {
        self.policy.as_deref()
    }

    /// Returns the keys to set.
    pub(crate) fn set(&self) -> &Set {
        &self.set
    }

    /// Opens the policy for an input, or makes one of the quasi-identifiers alone; without either, of
    /// the `known` quasi-identifiers.
    ///
    /// # Errors
    /// Those of the policy; a policy error when no quasi-identifier is named.
    pub(crate) fn open(
        &self,
        inputs: &[&str],
        known: impl FnOnce() -> Result<Vec<String>>,
    ) -> Result<PolicyFile> {
        if let Some(path) = &self.policy {
            let file = PolicyFile::open(path, &self.set, inputs)?;
            let csv = self.csv.or(Some(&file.spec));
            return Ok(PolicyFile { spec: file.spec.with_csv(csv), ..file });
        }
        self.set.check_is_empty()?;
        let quasi = if self.quasi.is_empty() { known()? } else { Names::all(&self.quasi) };
        if quasi.is_empty() {
            return Err(Error::policy("name the quasi-identifiers: --quasi age,sex,zip or --policy FILE"));
        }
        let spec =
            PolicySpec::from_columns(&quasi, self.individual.as_deref(), 2)?.with_csv(self.csv.or(None));
        Ok(PolicyFile { spec, folder: HierarchyFiles::of_current_folder() })
    }

    /// Returns whether a policy was given.
    pub(crate) fn has_policy(&self) -> bool {
        self.policy.is_some()
    }
}

/// Reads the public record if an input is a release.
///
/// # Errors
/// Those of reading it.
pub(crate) fn record_of(input: &str) -> Result<Option<PublicRecord>> {
    if !is_release(input)? {
        return Ok(None);
    }
    let release = LocalRelease::read_at(&Address::parse(input)?, Needed::Record, &CancelToken::default())?;
    PublicRecord::read(release.out()).map(Some)
}

/// Returns whether an input is a folder with a record, of this machine or of a store.
///
/// # Errors
/// A data error if the store fails.
pub(crate) fn is_release(input: &str) -> Result<bool> {
    match Address::parse(input) {
        Ok(Address::Local(path)) => Ok(path.join(RECORD).is_file()),
        Ok(Address::Remote(address)) => address.holds(RECORD),
        Err(_) => Ok(false),
    }
}

/// Finds an input. Of a release of several tables, it is the first, which has the quasi-identifiers.
///
/// # Errors
/// Those of [`Input::find_or_read`], and of reading a record.
pub(crate) fn find_table(input: &str, stop: &CancelToken) -> Result<Input> {
    let record = record_of(input).ok().flatten();
    let first = record.as_ref().and_then(|record| record.tables.first());
    match first.filter(|table| table.folder.is_some()) {
        Some(table) => Input::find(&table.path(Path::new(input)).to_string_lossy()),
        None => Input::find_or_read(input, stop),
    }
}

/// Returns the note that says what figures in rows of a release leave out: its individuals, or its groups.
pub(crate) fn release_note(release: &str, record: &PublicRecord) -> Option<String> {
    let shows = record.recoding.describe();
    if let Some(note) = shows.note() {
        return Some(note);
    }
    let individuals = record.individuals.filter(|_| !record.recoding.has_row_per_individual())?;
    let individuals = plural::individuals(individuals);
    Some(format!(
        "counted in rows, because no released row says whose it is; the release counts {individuals}, who may have \
         several rows: kanon explain {} shows its figures",
        in_shell(release)
    ))
}

/// Parses the model of `--require`: `k_anonymity(5)`, `l_diversity(2, diagnosis)`.
///
/// # Errors
/// A policy error that shows the form.
pub(crate) fn parse_requirement(text: &str) -> Result<Requirement> {
    let place = || format!("--require {text}");
    let form = || {
        Error::policy(
            "expected a model with its parameters and, if it needs one, its sensitive column, such as \
             k_anonymity(5) or 'l_diversity(2, diagnosis)'",
        )
        .at(place())
    };
    let (name, rest) = text.trim().split_once('(').ok_or_else(form)?;
    let (name, inside) = (name.trim(), rest.trim_end().strip_suffix(')').ok_or_else(form)?);
    let trimmed = |part: Part| match part.is_quoted {
        true => part.text,
        false => part.text.trim().to_owned(),
    };
    let arguments = parts(inside).map_err(|why| Error::policy(why).at(place()))?;
    let arguments: Vec<String> = arguments.into_iter().map(trimmed).filter(|part| !part.is_empty()).collect();
    let row = find(model::all(), |row| row.doc, name);
    let row = row.map_err(|valid| Error::policy(format!("unknown model `{name}`; {valid}")).at(place()))?;
    let (constants, sensitive) = arguments.split_at(arguments.len().min(row.parameters.len()));
    let pairs = row.parameters.iter().zip(constants);
    let pairs = pairs.map(|(parameter, value)| match Setting::parse(value, parameter.kind) {
        Ok(value) => Ok((parameter.name.to_owned(), value)),
        Err(why) => Err(Error::policy(format!("{}: {why}, found `{value}`", parameter.name))),
    });
    let given = pairs.collect::<Result<Vec<_>>>().map_err(|e| e.at(place()))?;
    let model = row.with(&given).map_err(|e| e.at(place()))?;
    let column = model.needs().reads_column().then_some("sensitive column");
    match (column, sensitive) {
        (None, []) => Ok(Requirement::new(model, None)),
        (Some(_), [column]) => {
            let column = SensitiveColumn::from(column.as_str()).reading(model.needs().facts());
            Ok(Requirement::new(model, Some(column)))
        }
        _ => {
            let takes: Vec<&str> =
                row.parameters.iter().map(|parameter| parameter.name).chain(column).collect();
            Err(Error::policy(format!("{name} takes ({})", takes.join(", "))).at(place()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_read_as_calls() {
        assert_eq!(parse_requirement(" k_anonymity( 5 ) ").unwrap().text(), "k_anonymity(5)");
        let l_diversity = parse_requirement("l_diversity(2, diagnosis)").unwrap();
        assert_eq!(l_diversity.text(), "l_diversity(2, diagnosis)");
        let quoted = parse_requirement(r#"l_diversity(2, "dia,gnosis")"#).unwrap();
        assert_eq!(quoted.sensitive.unwrap().name(), "dia,gnosis");
        for wrong in [
            "k_anonymity",
            "k_anonymity()",
            "k_anonymity(0)",
            "k_anonymity(1,2)",
            "nonsense(1)",
            "k_anonymity(x)",
            "k_anonymity(5, diagnosis)",
            "l_diversity(2)",
            "l_diversity(2, diagnosis, age)",
            r#"l_diversity(2, "diagnosis)"#,
            "l_diversity(diagnosis, 2)",
        ] {
            assert!(parse_requirement(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            parse_requirement("l_diversity(diagnosis)").unwrap_err().to_string(),
            "--require l_diversity(diagnosis): l: expected a decimal number such as 0.05, found `diagnosis`"
        );
    }
}
