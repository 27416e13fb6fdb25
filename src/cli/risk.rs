//! `kanon risk`: how easily people are found in a table as it is.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::Done;
use super::numbers::{counted, grouped, percent, rows};
use super::source::PolicyFile;
use crate::error::{Error, Result};
use crate::measure::{ClassSizes, RISKS, RiskMeasure, plain_number, sample_uniqueness::SampleUniqueness};
use crate::policy::{Folder, Said};
use crate::release::input::Input;
use crate::release::profile::class_sizes;
use crate::release::record::{PublicRecord, RECORD};
use crate::release::{Phase, Run, open, risks};
use crate::role::Role;

/// Measure re-identification risks, overall and per quasi-identifier.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon risk patients.parquet --quasi age,sex,zip
  kanon risk patients.parquet --policy patients.toml --format json
  kanon risk patients_safe          # a release knows its quasi-identifiers")]
pub(crate) struct Risk {
    /// A file, folder or glob of Parquet, CSV, JSON lines or Arrow files, or a release.
    input: String,
    /// The policy that names the quasi-identifiers.
    #[arg(long, value_name = "FILE", conflicts_with = "quasi")]
    policy: Option<PathBuf>,
    /// The quasi-identifiers, when there is no policy.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    quasi: Vec<String>,
}

impl Risk {
    fn columns(&self) -> Result<PolicyFile> {
        if let Some(path) = &self.policy {
            return PolicyFile::open(path);
        }
        let release = Path::new(&self.input);
        let quasi = match self.quasi.as_slice() {
            [] if release.join(RECORD).is_file() => {
                let columns = PublicRecord::read(release)?.columns.into_iter();
                columns.filter(|c| c.role == Role::Quasi.word()).map(|c| c.name).collect()
            }
            [] => {
                return Err(Error::policy(
                    "name the quasi-identifiers: --quasi age,sex,zip or --policy FILE",
                ));
            }
            said => said.to_vec(),
        };
        Ok(PolicyFile { said: Said::quick(&quasi, 2)?, text: String::new(), folder: Folder(PathBuf::new()) })
    }

    pub(super) async fn run(self, run: &Run<'_>) -> Result<Done> {
        let policy = self.columns()?;
        let input = Input::find(&self.input)?;
        run.listener.begin(Phase::Profile, 0);
        let loaded = open(run.resources, &input, &policy.said, &policy.folder).await?;
        let names: Vec<&str> = loaded.policy.quasi.iter().map(|q| q.name.as_str()).collect();
        let sizes = class_sizes(&loaded.table, &names, run.stop).await?;
        if sizes.classes() == 0 {
            return Err(Error::data("the input has no rows"));
        }
        let measured = risks(&sizes)?;
        let mut text = format!(
            "read      {} in {} over {}; each row counts as a person\n\n",
            rows(sizes.individuals()),
            counted(sizes.classes(), "class", "classes"),
            names.join(", "),
        );
        for row in RISKS {
            let value = measured.get(row.doc.name).copied().unwrap_or_default();
            let shown = if row.is_share { percent(value) } else { format!("{value:.0}") };
            let constants: Vec<String> = row.defaults.iter().map(ToString::to_string).collect();
            let name = match constants.as_slice() {
                [] => row.doc.name.to_owned(),
                said => format!("{}({})", row.doc.name, said.join(", ")),
            };
            text += &format!("{name:<27} {shown:>9}   {}\n", row.doc.summary);
        }
        text += "\nclass size      classes         rows\n";
        for (from, to, classes, people) in bins(&sizes) {
            let size = if from == to { grouped(from) } else { format!("{}-{}", grouped(from), grouped(to)) };
            text += &format!("{size:<12} {:>10} {:>12}\n", grouped(classes), grouped(people));
        }
        text += "\nwithout            k   unique\n";
        let mut without = Vec::new();
        for left_out in &names {
            let rest: Vec<&str> = names.iter().copied().filter(|name| name != left_out).collect();
            let sizes = class_sizes(&loaded.table, &rest, run.stop).await?;
            let unique = SampleUniqueness.value(&sizes).unwrap_or_default();
            let k = sizes.min().unwrap_or(0);
            text += &format!("{left_out:<12} {:>8} {:>8}\n", grouped(k), percent(unique));
            without.push(json!({ "column": left_out, "k": k, "sample_uniqueness": unique }));
        }
        let histogram: Vec<_> =
            sizes.histogram().map(|(size, classes)| json!({ "size": size, "classes": classes })).collect();
        let measures: serde_json::Map<_, _> =
            measured.iter().map(|(name, v)| (name.clone(), plain_number(*v))).collect();
        let json = json!({
            "rows": sizes.individuals(),
            "individuals": sizes.individuals(),
            "classes": sizes.classes(),
            "k": sizes.min(),
            "risk": measures,
            "histogram": histogram,
            "without": without,
        });
        Ok(Done { text, json, holds: true })
    }
}

/// Class sizes in bins that double: first and last size, classes and rows.
fn bins(sizes: &ClassSizes) -> Vec<(u64, u64, u64, u64)> {
    let mut bins: Vec<(u64, u64, u64, u64)> = Vec::new();
    for (size, classes) in sizes.histogram() {
        let from = 1u64 << size.ilog2();
        let to = from.saturating_mul(2) - 1;
        match bins.last_mut() {
            Some(bin) if bin.0 == from => {
                bin.2 += classes;
                bin.3 += size * classes;
            }
            _ => bins.push((from, to, classes, size * classes)),
        }
    }
    bins
}
