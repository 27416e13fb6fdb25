//! `kanon hierarchy`: writes the hierarchy of a rule as a file to edit by hand, or checks such a file
//! against a table.

mod check;

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::names::name;
use super::numbers::integer;
use super::source::{Csv, PolicyFile, Set};
use super::{Done, Format, in_shell};
use datafusion_kanon::internals::answer::Answer;
use datafusion_kanon::internals::answer::hierarchy::{HierarchyAnswer, hierarchy};
use datafusion_kanon::internals::generalize::hierarchy::is_table;
use datafusion_kanon::internals::input::column_values::ColumnRule;
use datafusion_kanon::internals::input::hierarchy_files::HierarchyFiles;
use datafusion_kanon::internals::policy::HierarchySpec;
use datafusion_kanon::internals::release::publish::folder_place::check_outside_releases;
use datafusion_kanon::internals::store::local_path;
use datafusion_kanon::{CsvOptions, Error, ErrorCode, Input, PolicySpec, Result, Run};

/// Write a hierarchy file for a column, to edit by hand, or check one.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  kanon hierarchy patients.parquet zip --by 'prefix = [4, 3, 2]' --to zip.csv
  kanon hierarchy patients.parquet country --by country > country.csv
  kanon hierarchy patients.parquet job --by 'merge = { levels = 3 }' --to job.csv
  kanon hierarchy visits.csv dob --by '{ date = [\"month\", \"year\"] }' --format json
  kanon hierarchy check zip.csv --input patients.parquet

The file has one row for each distinct value: the value, then its label at every level, finest first. NULL needs
no row. Use it in a policy with hierarchy = { file = \"zip.csv\" }. It holds every value of the column: keep it to
yourself. An input that is named check is ./check."
)]
pub(crate) struct Hierarchy {
    #[command(subcommand)]
    command: Option<Nested>,
    /// A file, folder, glob or address (s3://lake/in) of Parquet, CSV, JSON lines or Arrow files.
    #[arg(required = true)]
    input: Option<String>,
    /// The column whose values get a row each. Quotes as in CSV are allowed.
    #[arg(required = true, value_parser = name)]
    column: Option<String>,
    /// The rule, as behind `hierarchy =` in a policy, such as 'range = [10, 20]'; or the name of a
    /// known hierarchy, such as country.
    #[arg(long, value_name = "RULE", required = true)]
    by: Option<String>,
    /// The CSV file to create; must not exist. By default, the CSV is printed.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Replace an existing file.
    #[arg(long, requires = "to")]
    overwrite: bool,
    /// For `merge`: values with fewer holders than this are one label.
    #[arg(long, value_name = "K", default_value_t = 5, allow_negative_numbers = true, value_parser = integer::<u64>(2..=u64::MAX))]
    k: u64,
    /// For `merge`: the column that identifies the individual of a row; by default, rows are counted.
    /// Quotes as in CSV are allowed.
    #[arg(long, value_name = "COLUMN", value_parser = name)]
    individual: Option<String>,
    /// A policy whose `[input]` says how to read CSV files; - is standard input.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    set: Set,
    #[command(flatten)]
    csv: Csv,
}

#[derive(Debug, Subcommand)]
enum Nested {
    Check(check::Check),
}

impl Hierarchy {
    pub(super) async fn run(mut self, run: &Run, format: Format) -> Result<Done> {
        if let Some(Nested::Check(check)) = self.command {
            return check.run(run).await;
        }
        let (Some(argument), Some(column), Some(by)) = (&self.input, &self.column, &self.by) else {
            return Err(Error::internal("hierarchy: an argument is missing"));
        };
        let place = format!("--by {by}");
        let rule = HierarchySpec::parse(by).map_err(|error| error.at(&place))?;
        let csv = csv_options(&self.csv, self.policy.as_deref(), &self.set, &[argument])?;
        let spec = PolicySpec::of_hierarchy(column, rule, csv, self.individual.as_deref(), self.k)?;
        let input = Input::find_or_read(argument, &run.stop)?;
        if let Some(path) = &mut self.to {
            *path = local_path(&path)?;
            check_target(path, self.overwrite, &input).map_err(|error| error.at(target_place(path)))?;
        }
        let files = HierarchyFiles::of_current_folder();
        let rule = ColumnRule { column, spec: &spec, files: &files, place: &place };
        let answer = hierarchy(run, &input, &rule).await?;
        let Some(path) = &self.to else { return print(&answer, format) };
        let written = answer.write(path, self.overwrite).map_err(|error| error.at(target_place(path)))?;
        let mut done = Done::of(&written)?;
        let next = format!(
            "edit {}, then kanon hierarchy check {} --input {} --column {}",
            path.display(),
            in_shell(&path.to_string_lossy()),
            in_shell(argument),
            in_shell(column),
        );
        done.document.advice("next", next);
        Ok(done)
    }
}

/// Returns how to read CSV files: as the flag says, else a policy.
fn csv_options(csv: &Csv, policy: Option<&Path>, set: &Set, inputs: &[&str]) -> Result<CsvOptions> {
    let policy = policy.map(|path| PolicyFile::open(path, set, inputs)).transpose()?;
    Ok(csv.or(policy.as_ref().map(|policy| &policy.spec)))
}

/// Prints the file. Control characters are kept where no terminal reads them.
fn print(answer: &HierarchyAnswer, format: Format) -> Result<Done> {
    if format == Format::Json {
        return Done::of(answer);
    }
    let mut out = std::io::stdout().lock();
    if format == Format::Markdown || out.is_terminal() {
        return Ok(Done { document: answer.document(), ..Done::printed() });
    }
    match out.write_all(answer.csv.as_bytes()).and_then(|()| out.flush()) {
        // A reader that closed the pipe does not want more: no error.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::from_io(&error).at("writing the result"))
        }
        _ => Ok(Done::printed()),
    }
}

fn target_place(path: &Path) -> String {
    format!("--to {}", path.display())
}

/// Refuses a file that cannot be written or must not be replaced, before the input is read.
fn check_target(path: &Path, overwrite: bool, input: &Input) -> Result<()> {
    if is_table(&path.to_string_lossy()) {
        return Err(Error::policy("a hierarchy is written as CSV; choose a name such as zip.csv"));
    }
    check_outside_releases(path)?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if !folder.is_none_or(Path::is_dir) || path.file_name().is_none() {
        return Err(Error::data("expected the name of a file in a folder that exists"));
    }
    let Ok(facts) = std::fs::symlink_metadata(path) else { return Ok(()) };
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    match real(path)
        .is_some_and(|to| input.objects().iter().any(|file| real(file.path()).as_ref() == Some(&to)))
    {
        true => Err(Error::policy("this is a file of the input; choose another name")),
        false if !overwrite => {
            Err(Error::policy("already exists; --overwrite replaces it").coded(ErrorCode::Exists))
        }
        false if !facts.is_file() => Err(Error::policy("expected a plain file; choose another name")),
        false => Ok(()),
    }
}
