//! `kanon release`: writes a verified release.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::explain::limit_text;
use super::labels_for_all::labels_for_all;
use super::numbers::{
    as_is_lines, doubt_lines, exact_quasi_line, grouped, homogeneous_lines, label_text, model_text, nodes_of,
    percent, percent_of, plural, rows, rows_of, steps_by, unique_lines,
};
use super::source::{PolicyFile, PrivatePlace, Set};
use super::{Done, in_shell, without_controls};
use crate::class::ClassSizes;
use crate::engine::Run;
use crate::error::{Code, Error, Result, of_file};
use crate::input::address::local_path;
use crate::input::files::end_of_data;
use crate::input::{Input, PolicySource};
use crate::measure::{RISKS, ratio};
use crate::policy::parse_day;
use crate::release::kind::describe::Describe;
use crate::release::publish::place::{Place, check_outside_releases};
use crate::release::publish::record::{ModelRecord, PrivateRecord};
use crate::release::publish::staging::private_file;
use crate::release::{Released, release, release_again};

/// Write a verified anonymized copy of a table, or refuse and explain why.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon release patients.parquet --policy patients.toml --to patients_safe
  kanon release tonight.parquet --recoding patients_safe.private.json --to tonight_safe

Writes patients_safe/part-00000.parquet ... (of method \"anatomy\", two folders of them) and patients_safe/_kanon.json,
which may be published, and patients_safe.private.json beside it, which may not: --private keeps it elsewhere. Nothing appears
under --to before it is verified.")]
pub(crate) struct Release {
    /// A file, folder or glob of Parquet, CSV, JSON lines or Arrow files.
    input: String,
    /// The policy: roles, hierarchies and requirements; - is standard input.
    #[arg(long, value_name = "FILE", required_unless_present = "recoding")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    pub(super) set: Set,
    /// The private record of an earlier release: apply its policy and its recoding to this input,
    /// or refuse if they do not hold for it. The schema stays, and a class shows what it showed:
    /// sets and ends may be values of the earlier release, so use it for readers who may see that
    /// one, too.
    #[arg(long, value_name = "FILE", conflicts_with = "policy")]
    recoding: Option<PathBuf>,
    /// The folder to create; must be new or empty.
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    #[command(flatten)]
    private: PrivatePlace,
    /// The day of the release, which the public record then states: 2026-11-24. It goes before the
    /// policy's; the clock is never asked, so that the same input gives the same bytes.
    #[arg(long, value_name = "DAY", value_parser = parse_day)]
    released_on: Option<String>,
    /// Replace an existing release.
    #[arg(long)]
    overwrite: bool,
    /// Also write both records to one JSON file, readable only by you: it holds raw facts.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl Release {
    pub(super) async fn run(mut self, run: &Run) -> Result<Done> {
        for path in [Some(&mut self.to), self.report.as_mut(), self.recoding.as_mut()].into_iter().flatten() {
            *path = local_path(&path)?;
        }
        if self.policy.is_none() {
            self.set.check_is_empty()?;
        }
        check_is_folder(&self.to)?;
        let earlier = self.recoding.as_deref().map(|path| Ok((path, earlier(path)?))).transpose()?;
        let open = |path: &Path| PolicyFile::open(path, &self.set, &[&self.input]);
        let mut policy = self.policy.as_deref().map(open).transpose()?;
        if let (Some(policy), Some(day)) = (&mut policy, &self.released_on) {
            policy.spec = policy.spec.clone().released_on(Some(day.clone()));
        }
        let place = match &earlier {
            Some((path, earlier)) => self.private.after(&self.to, path, earlier)?,
            None => self.private.of(&self.to, policy.as_ref())?,
        };
        let input = Input::find_or_read(&self.input)?;
        if let Some(path) = &self.report {
            check_report(path, &place, self.overwrite)?;
        }
        let mut released = match (&policy, &earlier) {
            (Some(policy), _) => {
                let source = PolicySource { spec: &policy.spec, text: &policy.text, files: &policy.folder };
                release(run, &input, &source, &place, self.overwrite).await?
            }
            (None, Some((_, earlier))) => {
                release_again(run, &input, earlier, self.released_on.clone(), &place, self.overwrite).await?
            }
            (None, None) => return Err(Error::policy("give the policy with --policy")),
        };
        if let Some(path) = &self.report {
            let report = json!({ "public": &released.public, "private": &released.private });
            let written = private_file(path, self.overwrite)
                .and_then(|mut file| file.write_all(format!("{report:#}\n").as_bytes()));
            if let Err(error) = written {
                let why = of_file(&error);
                released.warnings.push(format!("--report {}: could not be written: {why}", path.display()));
            }
        }
        // From here on the run must not fail: the release is published.
        for warning in &released.warnings {
            let warning = without_controls(&format!("kanon: the release is published, but {warning}\n"));
            let _ = std::io::stderr().lock().write_all(warning.as_bytes());
        }
        let json = serde_json::to_value(&released.public)
            .map_err(|_| Error::internal("release: the public record cannot be serialized"))?;
        Ok(Done { text: self.describe(&released, &place)?, json, holds: true })
    }

    /// Describes a release.
    fn describe(&self, released: &Released, place: &Place) -> Result<String> {
        let Released { public, private, before, after, costs, chosen, least_holders, remarks, .. } = released;
        let search = &private.search;
        let is_coarse = costs.iter().sum::<f64>() > COARSE * ratio(costs.len() as u128, 1);
        let shows = chosen.describe();
        let is_text = |name: &str| {
            private.input_columns.iter().any(|column| column.column == name && column.data_type == "text")
        };
        let as_text = public.columns().filter(|column| column.data_type == "Utf8" && !is_text(&column.name));
        let as_text: Vec<&str> = as_text.map(|column| column.name.as_str()).collect();
        let lost = shows.lost(costs);
        let costs = costs_text(&chosen.columns(), shows, costs, private.suppressed_rows > 0);
        let facts = shows.facts();
        let models: Vec<String> = public
            .models
            .iter()
            .map(|model| {
                let is_it = |other: &&ModelRecord| {
                    (other.text(), &other.parameters) == (model.text(), &model.parameters)
                };
                let in_input = private.compared_with_input.iter().find(is_it).and_then(|other| other.reached);
                model_text(model, in_input)
            })
            .collect();
        // Drops the trailing slash that shell completion adds.
        let out: PathBuf = self.to.components().collect();
        let out = out.display();
        let mut text = String::new();
        let mut line = |key: &str, rest: String| text += &format!("{key:<10}{rest}\n");
        line(
            "read",
            match private.input_individuals {
                Some(individuals) => rows_of(
                    private.input_rows,
                    individuals,
                    private.input_rows_without_individual.unwrap_or_default(),
                ),
                None => format!("{}; each counts as an individual", rows(private.input_rows)),
            },
        );
        text += &doubt_lines(&released.doubts);
        let mut line = |key: &str, rest: String| text += &format!("{key:<10}{rest}\n");
        if private.duplicate_rows > 0 {
            line(
                "copies",
                format!(
                    "{} of them ({}) are exact copies of another row: intended, or loaded twice?",
                    grouped(private.duplicate_rows),
                    percent_of(private.duplicate_rows, private.input_rows)
                ),
            );
        }
        let unit = if private.input_individuals.is_some() { "individuals" } else { "rows" };
        line(
            "before",
            format!(
                "k {}; {} of {unit} unique on their quasi-identifiers; highest risk {}",
                grouped(before.min().unwrap_or(0)),
                percent(risk(before, "sample_uniqueness")?),
                percent(risk(before, "prosecutor_risk_max")?),
            ),
        );
        line(
            "search",
            match search.nodes {
                None if self.recoding.is_some() => {
                    "none: the recoding of the earlier release again".to_owned()
                }
                None => {
                    let steps = steps_by(&search.method, search.evaluated);
                    let by = search.best.first().and_then(|best| best.by.as_ref());
                    steps + &by.map(|by| format!(", least loss by {by}")).unwrap_or_default()
                }
                Some(nodes) => format!(
                    "{}, {} evaluated, {}",
                    nodes_of(nodes),
                    grouped(search.evaluated),
                    if search.proven { "proven best" } else { "not proven best" }
                ),
            },
        );
        line("chosen", shows.shown(&labels_for_all(&self.to, public), &as_text));
        for (column, label) in public.recoding.labels_of_joined() {
            line("labels", label_text(column, label));
        }
        line("costs", costs);
        if let Some(lost) = lost {
            line("lost", lost);
        }
        if let (true, Some(policy)) = (is_coarse, &self.policy) {
            let (input, policy) = (in_shell(&self.input), self.set.with_policy(policy));
            line("compare", format!("kanon search {input} {policy} --compare: what other methods keep"));
        }
        let all = private.input_individuals.unwrap_or(private.input_rows);
        let suppressed = private.suppressed_individuals.unwrap_or(private.suppressed_rows);
        let unowned = private.suppressed_rows_without_individual.unwrap_or_default();
        let what = match private.suppressed_individuals {
            Some(individuals) => rows_of(private.suppressed_rows, individuals, unowned),
            None => rows(private.suppressed_rows),
        };
        // Rows without an individual are in no share of individuals.
        let of_rows = match unowned {
            0 => String::new(),
            _ => format!(
                " of individuals, {} of rows",
                percent_of(private.suppressed_rows, private.input_rows)
            ),
        };
        let share = public.statement.as_ref().map_or(String::new(), |statement| limit_text(statement) + ": ");
        line(
            "suppressed",
            format!(
                " {what} ({}{of_rows}, limit {share}{})",
                percent_of(suppressed, all),
                match private.suppressed_individuals {
                    Some(_) => plural(private.suppression_limit, "individual", "individuals"),
                    None => rows(private.suppression_limit),
                },
            ),
        );
        line("verified", models.join("; ") + facts.judged);
        line(
            "after",
            format!(
                "highest risk {}, mean risk {}, {} unique",
                percent(risk(after, "prosecutor_risk_max")?),
                percent(risk(after, "prosecutor_risk_mean")?),
                percent(risk(after, "sample_uniqueness")?),
            ),
        );
        let individuals = public.individuals.is_some();
        text += &match facts.has_exact_quasi {
            true => exact_quasi_line(risk(after, "sample_uniqueness")?),
            false => {
                let on_quasi = risk(after, "sample_uniqueness")?;
                unique_lines(on_quasi, &public.unique, &released.sufficient, individuals)
            }
        };
        text += &homogeneous_lines(&public.homogeneous, individuals);
        text += &as_is_lines(&private.as_is, *least_holders, individuals);
        text += &remarks.iter().map(|line| format!("warning   {line}\n")).collect::<String>();
        let mut line = |key: &str, rest: String| text += &format!("{key:<10}{rest}\n");
        let tables = public.tables.iter().map(|table| {
            let folder = table.folder.as_ref().map(|folder| format!("/{folder}")).unwrap_or_default();
            let files = match table.files.as_slice() {
                [one] => format!("{out}{folder}/{}", one.name),
                many => format!("{out}{folder}/part-*.parquet, {} files", many.len()),
            };
            format!("{files} ({})", rows(table.rows))
        });
        line("wrote", format!("{}, _kanon.json", tables.collect::<Vec<_>>().join(", ")));
        let private = place.private().components().collect::<PathBuf>();
        let private = private.display();
        line("keep", format!("{private} to yourself: it holds raw facts about the input"));
        // A private record holds the policy, but no population.
        let policy = self.policy.as_ref().filter(|_| released.reads_population);
        let policy = policy.map(|policy| format!(" {}", self.set.with_policy(policy)));
        let (out, input) = (in_shell(&out.to_string()), in_shell(&self.input));
        let private = place.is_apart().then(|| format!(" --private {}", in_shell(&private.to_string())));
        line(
            "next",
            format!(
                "kanon verify {out} --input {input}{}{}",
                private.unwrap_or_default(),
                policy.unwrap_or_default()
            ),
        );
        Ok(text)
    }
}

/// Refuses OUT with the name of a file of data: a release is a folder.
fn check_is_folder(out: &Path) -> Result<()> {
    let Some(end) = end_of_data(out).filter(|_| !out.is_dir()) else { return Ok(()) };
    let folder = out.with_extension("");
    let (out, folder) = (out.display(), folder.display());
    let as_file = match end.as_str() {
        "csv" | "json" | "parquet" => {
            format!(
                "; afterwards `kanon sql -c \"COPY (SELECT * FROM '{folder}') TO '{out}'\"` writes a copy as one file"
            )
        }
        _ => String::new(),
    };
    Err(Error::policy(format!(
        "--to {out}: a release is a folder of Parquet files with its record, so this would make a folder called {out}; name a \
         folder, such as {folder}{as_file}"
    )))
}

/// Reads the private record of an earlier release.
fn earlier(path: &Path) -> Result<PrivateRecord> {
    let place = format!("--recoding {}", path.display());
    if !path.exists() {
        return Err(Error::data("no such file").coded(Code::NotFound).at(place));
    }
    PrivateRecord::read(path)?.ok_or_else(|| {
        let expected = "expected the private record of a release, such as patients_safe.private.json";
        Error::policy(expected).at(place)
    })
}

/// Above this mean of the columns' losses a release points to other methods.
const COARSE: f64 = 0.3;

/// Describes the quasi-identifiers that lose most: the share of its domain that a value covers, on
/// average.
fn costs_text(columns: &[&str], shows: &dyn Describe, costs: &[f64], some_suppressed: bool) -> String {
    const SHOWN: usize = 4;
    const MUCH: f64 = 0.5;
    let mut all: Vec<(&str, f64)> = columns.iter().copied().zip(costs.iter().copied()).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let count = |least: f64| all.iter().filter(|(_, cost)| *cost > least).count();
    let shown = count(MUCH).max(SHOWN).min(count(0.0));
    let rest = match count(0.0) - shown {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let text = all.iter().take(shown);
    let text: Vec<(&str, String)> = text.map(|(name, cost)| (*name, percent(*cost))).collect();
    match text.as_slice() {
        [] => shows.costs_nothing(),
        [(first, share), others @ ..] => {
            let others: String = others.iter().map(|(name, share)| format!(", {name} {share}")).collect();
            let all = if some_suppressed { "; a suppressed row counts as 100 %" } else { "" };
            format!("most: {}{others}{rest}{all}", shows.cost(first, share))
        }
    }
}

/// Checks the report's path before the release is made: writing it must not fail afterwards, and
/// the published folder must not contain it.
fn check_report(path: &Path, place: &Place, overwrite: bool) -> Result<()> {
    let of = place.absolute()?;
    let at = format!("--report {}", path.display());
    check_outside_releases(path).map_err(|error| error.at(&at))?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = match std::fs::canonicalize(folder) {
        Ok(folder) if folder.is_dir() && !path.is_dir() => folder,
        wrong => {
            let error = Error::data("expected the name of a file in a folder that exists").at(at);
            let is_missing = wrong.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
            return Err(if is_missing { error.coded(Code::NotFound) } else { error });
        }
    };
    let exists = std::fs::symlink_metadata(path).is_ok();
    if exists && !(overwrite && path.extension().is_some_and(|extension| extension == "json")) {
        return Err(Error::policy("already exists; choose another name (--overwrite replaces a .json file)")
            .coded(Code::Exists)
            .at(at));
    }
    if folder.starts_with(of.out()) {
        return Err(Error::policy("is inside the release; a report holds raw facts").at(at));
    }
    if path.file_name().is_some_and(|name| folder.join(name) == of.private()) {
        return Err(Error::policy("is the place of the private record; choose another name").at(at));
    }
    Ok(())
}

/// Returns the risk measure `name` of these classes.
pub(super) fn risk(sizes: &ClassSizes, name: &str) -> Result<f64> {
    let row = RISKS.iter().find(|row| row.doc.name == name);
    let row = row.ok_or_else(|| Error::internal("release: a risk measure is missing from the table"))?;
    Ok(row.with(&[])?.value(sizes).unwrap_or(0.0))
}
