//! `kanon search`: shows the best nodes and the loss of each.

use std::path::PathBuf;

use clap::Args;

use super::Done;
use super::inputs::Inputs;
use super::numbers::integer;
use super::source::{PolicyFile, Set};
use datafusion_kanon::internals::answer::methods::compare_methods;
use datafusion_kanon::internals::answer::minimal::minimal;
use datafusion_kanon::internals::answer::search::search;
use datafusion_kanon::{Error, PolicySource, Result, Run, open};

/// Find the best generalizations and show what each one loses; write nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon search patients.parquet --policy patients.toml
  kanon search patients.parquet --policy patients.toml --top 3 --format json
  kanon search patients.parquet --policy patients.toml --minimal
  kanon search patients.parquet --policy patients.toml --compare")]
pub(crate) struct Search {
    #[command(flatten)]
    input: Inputs,
    /// The policy with the requirements; - is standard input.
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    #[command(flatten)]
    pub(super) set: Set,
    /// Number of best nodes to show.
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true, value_parser = integer::<u16>(1..=65_535))]
    top: u16,
    /// Show all minimal nodes instead: nodes that satisfy the policy while no node below them does,
    /// each with its distance vector (the levels of the columns in policy order).
    #[arg(long, conflicts_with = "top")]
    minimal: bool,
    /// Search by every method that applies and show what each one keeps, whatever the policy's method.
    #[arg(long, conflicts_with_all = ["top", "minimal"])]
    compare: bool,
}

impl Search {
    pub(super) async fn run(self, run: &Run) -> Result<Done> {
        let policy = PolicyFile::open(&self.policy, &self.set, &self.input.words())?;
        let method = policy.spec.method();
        if self.minimal && (method.name == "anytime" || !method.searches_lattice()) {
            let why = format!("--minimal finds all minimal nodes or none: remove `method = {method}`");
            return Err(Error::policy(why));
        }
        let input = self.input.find(&run.stop)?;
        let loaded = open(run, &input, &PolicySource { spec: &policy.spec, files: &policy.folder }).await?;
        if self.minimal {
            return Done::of(&minimal(run, &loaded).await?);
        }
        if self.compare {
            return Done::of(&compare_methods(run, &loaded).await?);
        }
        Done::of(&search(run, &loaded, self.top.into()).await?)
    }
}
