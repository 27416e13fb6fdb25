//! `kanon release`: writes a verified release.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::inputs::{Inputs, one_each};
use super::source::{PolicyFile, PrivatePlace, Set};
use super::{Done, Format, in_shell, without_controls};
use datafusion_kanon::internals::answer::release::{ReleaseAnswer, UnchangedAnswer};
use datafusion_kanon::internals::error::of_file;
use datafusion_kanon::internals::input::files::end_of_data;
use datafusion_kanon::internals::policy::parse_day;
use datafusion_kanon::internals::release::publish::folder_place::check_outside_releases;
use datafusion_kanon::internals::release::publish::record::PRIVATE_END;
use datafusion_kanon::internals::release::publish::staging::private_file;
use datafusion_kanon::internals::render::{Document, json};
use datafusion_kanon::internals::store::{Address, local_path, text_at};
use datafusion_kanon::records::{PrivateRecord, PublicRecord};
use datafusion_kanon::{
    CancelToken, Error, ErrorCode, Followed, Place, PolicySource, Result, Run, release, release_after,
    release_again, unchanged,
};

/// Write a verified anonymized copy of a table, or refuse and explain why.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon release patients.parquet --policy patients.toml --to patients_safe
  kanon release tonight.parquet --recoding patients_safe.private.json --to tonight_safe
  kanon release june.parquet --after march --to june

Writes patients_safe/part-00000.parquet ... (of method \"anatomy\", two folders of them) and patients_safe/_kanon.json,
which may be published, and patients_safe.private.json beside it, which may not: --private keeps it elsewhere. Nothing appears
under --to before it is verified.")]
pub(crate) struct Release {
    #[command(flatten)]
    input: Inputs,
    /// The policy: roles, hierarchies and requirements; - is standard input.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["recoding", "after"])]
    policy: Option<PathBuf>,
    #[command(flatten)]
    pub(super) set: Set,
    /// The private record of an earlier release: apply its policy and its recoding to this input,
    /// or refuse if they do not hold for it. The schema stays, and a class shows what it showed:
    /// sets and ends may be values of the earlier release, so use it for readers who may see that
    /// one, too.
    #[arg(long, value_name = "FILE", conflicts_with = "policy")]
    recoding: Option<PathBuf>,
    /// A release of the same people that this one follows, or its private record beside it; repeat it for each, in the order in which they were
    /// published. Its policy is used again. What an earlier release shows of a row is shown again or not at all, and new rows have
    /// classes of their own, so that all releases together are as safe as each is alone. They need `[history]` and their key.
    #[arg(long, value_name = "OUT", conflicts_with_all = ["policy", "recoding"])]
    after: Vec<PathBuf>,
    /// The private record of each release that is followed, in their order, where it is not beside it.
    #[arg(long, value_name = "FILE", requires = "after")]
    after_private: Vec<PathBuf>,
    /// Go on although fewer than half of the people come back, or most of them have other rows.
    #[arg(long, requires = "after", conflicts_with_all = ["policy", "recoding"])]
    accept_new_people: bool,
    /// The share of the individuals that may be suppressed, from 0 to 1 [default: that of the policy of the last release].
    #[arg(long, value_name = "SHARE", requires = "after", conflicts_with_all = ["policy", "recoding"])]
    suppression_limit: Option<f64>,
    /// The folder to create, or its address in a store (s3://lake/safe); must be new or empty.
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    #[command(flatten)]
    private: PrivatePlace,
    /// The key of the pseudonyms by which releases of the same people find them again, for a policy with `[history]`: a file, which is
    /// made if it is not there [default: OUT.key beside the private record].
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
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
    pub(super) async fn run(mut self, run: &Run, format: Format) -> Result<Done> {
        for path in [&mut self.report, &mut self.key].into_iter().flatten() {
            *path = local_path(&path)?;
        }
        let to = Address::parse(&self.to)?;
        if self.policy.is_none() {
            self.set.check_is_empty()?;
        }
        check_is_folder(&to)?;
        let earlier = |path| {
            let at = Address::parse(path)?;
            let record = earlier(&at, "--recoding", &run.stop)?;
            Ok((at, record))
        };
        let after = self.followed()?;
        let last = after.last().map(|last| {
            let missing = || {
                let private = last.private().map_or(String::new(), |private| format!(" {private}"));
                Error::policy(format!("the private record{private} is missing; name it with --after-private"))
                    .at(format!("--after {}", last.out()))
            };
            let private = last.private().ok_or_else(missing)?;
            let exists = private.local().is_none_or(Path::exists);
            let record =
                exists.then(|| self::earlier(private, "--after", &run.stop)).ok_or_else(missing)??;
            Ok((private.clone(), record))
        });
        let earlier = self.recoding.as_deref().map(earlier).or(last).transpose()?;
        let open = |path: &Path| PolicyFile::open(path, &self.set, &self.input.words());
        let mut policy = self.policy.as_deref().map(open).transpose()?;
        if let (Some(policy), Some(day)) = (&mut policy, &self.released_on) {
            policy.spec = policy.spec.clone().released_on(Some(day.clone()));
        }
        let place = match &earlier {
            Some((path, earlier)) => self.private.after(&to, path, earlier)?,
            None => self.private.of(&to, policy.as_ref())?,
        };
        let place = place.with_key(self.key.take());
        let input = self.input.find(&run.stop)?;
        if let Some(path) = &self.report {
            check_report(path, &place, self.overwrite)?;
        }
        if let Some(policy) = &policy {
            let source = PolicySource { spec: &policy.spec, files: &policy.folder };
            if let Some(public) = unchanged(run, &(&input).into(), &source, &place)? {
                let mut done = Done::of(&UnchangedAnswer::of(public, &place))?;
                if self.report.is_some() {
                    done.document.note("the file of --report was not written, because nothing was released");
                }
                return Ok(done);
            }
        }
        let mut released = match (&policy, &earlier) {
            (Some(policy), _) => {
                let source = PolicySource { spec: &policy.spec, files: &policy.folder };
                release(run, &input, &source, &place, self.overwrite).await?
            }
            (None, Some(_)) if !after.is_empty() => {
                let followed = Followed {
                    releases: after,
                    accept_new_people: self.accept_new_people,
                    suppression_limit: self.suppression_limit,
                };
                release_after(run, &input, &followed, self.released_on.clone(), &place, self.overwrite)
                    .await?
            }
            (None, Some((_, earlier))) => {
                release_again(run, &input, earlier, self.released_on.clone(), &place, self.overwrite).await?
            }
            (None, None) => return Err(Error::policy("give the policy with --policy")),
        };
        if let Some(path) = &self.report {
            let report = json(&Report { public: &released.public, private: &released.private })?;
            let written = private_file(path, self.overwrite)
                .and_then(|mut file| file.write_all(format!("{report:#}\n").as_bytes()));
            if let Err(error) = written {
                let why = of_file(&error);
                released.warnings.push(format!("--report {}: could not be written: {why}", path.display()));
            }
        }
        // From here on the run must not fail: the release is published.
        let mut answer = ReleaseAnswer::of(released, &place);
        if format != Format::Json {
            for warning in &answer.released.warnings {
                let warning = without_controls(&format!("kanon: the release is published, but {warning}\n"));
                let _ = std::io::stderr().lock().write_all(warning.as_bytes());
            }
        }
        answer.compare_by = self.policy.as_ref().map(|policy| {
            let (input, policy) = (self.input.in_shell(""), self.set.with_policy(policy));
            format!("kanon search {input} {policy} --compare")
        });
        let mut done = Done::of(&answer)?;
        self.add_next(&mut done.document, &answer, &place);
        Ok(done)
    }

    /// Adds what to run next.
    fn add_next(&self, document: &mut Document, answer: &ReleaseAnswer, place: &Place) {
        // A private record holds the policy, but no population.
        let policy = self.policy.as_ref().filter(|_| answer.released.reads_population);
        let policy = policy.map(|policy| format!(" {}", self.set.with_policy(policy))).unwrap_or_default();
        let private = place.is_apart().then(|| format!(" --private {}", in_shell(&answer.private_record)));
        let (out, input) = (in_shell(&answer.folder), self.input.in_shell("--input "));
        let private = private.unwrap_or_default();
        document.advice("next", format!("kanon verify {out} {input}{private}{policy}"));
    }
}

/// Both records of a release.
#[derive(Serialize)]
struct Report<'a> {
    public: &'a PublicRecord,
    private: &'a PrivateRecord,
}

/// Refuses OUT with the name of a file of data: a release is a folder.
fn check_is_folder(out: &Address) -> Result<()> {
    let is_folder = out.local().is_some_and(Path::is_dir);
    let Some(end) = end_of_data(Path::new(out.name())).filter(|_| !is_folder) else { return Ok(()) };
    let text = out.to_string();
    let folder = text.trim_end_matches('/').strip_suffix(&format!(".{end}")).unwrap_or(&text);
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
fn earlier(at: &Address, flag: &str, stop: &CancelToken) -> Result<PrivateRecord> {
    let place = format!("{flag} {at}");
    let record = match at {
        Address::Local(path) if !path.exists() => {
            return Err(Error::data("no such file").coded(ErrorCode::NotFound).at(place));
        }
        Address::Local(path) => PrivateRecord::read(path)?,
        Address::Remote(address) => {
            let text = text_at(address, stop).map_err(|error| error.at(&place))?;
            serde_json::from_str(&text).ok()
        }
    };
    record.ok_or_else(|| {
        let expected = "expected the private record of a release, such as patients_safe.private.json";
        Error::policy(expected).at(place)
    })
}

/// Checks the report's path before the release is made: writing it must not fail afterwards, and
/// the published folder must not contain it.
fn check_report(path: &Path, place: &Place, overwrite: bool) -> Result<()> {
    let at = format!("--report {}", path.display());
    check_outside_releases(path).map_err(|error| error.at(&at))?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = match std::fs::canonicalize(folder) {
        Ok(folder) if folder.is_dir() && !path.is_dir() => folder,
        wrong => {
            let error = Error::data("expected the name of a file in a folder that exists").at(at);
            let is_missing = wrong.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
            return Err(if is_missing { error.coded(ErrorCode::NotFound) } else { error });
        }
    };
    let exists = std::fs::symlink_metadata(path).is_ok();
    if exists && !(overwrite && path.extension().is_some_and(|extension| extension == "json")) {
        return Err(Error::policy("already exists; choose another name (--overwrite replaces a .json file)")
            .coded(ErrorCode::Exists)
            .at(at));
    }
    let place = place.absolute()?;
    if place.out().local().is_some_and(|out| folder.starts_with(out)) {
        return Err(Error::policy("is inside the release; a report holds raw facts").at(at));
    }
    let is_private =
        |private: &Address| path.file_name().map(|name| folder.join(name)).as_deref() == private.local();
    if place.private().is_some_and(is_private) {
        return Err(Error::policy("is the place of the private record; choose another name").at(at));
    }
    Ok(())
}

impl Release {
    /// Returns the places of the releases that this one follows.
    fn followed(&self) -> Result<Vec<Place>> {
        let count = self.after.len();
        one_each("--after-private", self.after_private.len(), count, "releases of --after")?;
        let mut places = Vec::with_capacity(count);
        for (at, path) in self.after.iter().enumerate() {
            let out = Address::parse(path)?;
            let beside = path.to_str().and_then(|text| text.strip_suffix(PRIVATE_END));
            places.push(match (self.after_private.get(at), beside) {
                (Some(private), _) => Place::of(out, Some(Address::parse(private)?))?,
                (None, Some(release)) => Place::of(Address::parse(release)?, Some(out))?,
                (None, None) => Place::of(out, None)?,
            });
        }
        Ok(places)
    }
}
