//! `kanon plan`: what a life of releases would cost.

use std::path::PathBuf;

use clap::Args;

use super::Done;
use super::inputs::Inputs;
use super::source::{PolicyFile, Set};
use datafusion_kanon::internals::answer::plan::plan;
use datafusion_kanon::internals::release::histories::Life;
use datafusion_kanon::{PolicySource, Result, Run, Source};

/// Replay a life of releases on an input: what do arrivals and departures cost?
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon plan patients.parquet --policy patients.toml --arrive 10% --leave 3% --versions 12
  kanon plan patients.parquet --policy patients.toml --arrive 10% --k 5,10,15 --format json

The people of the input are dealt by chance to the releases in which they arrive, and leave by chance. Each release is made as by
`kanon release --after`, in a temporary folder, and compared with one by itself. Nothing is published. The policy needs [history];\nits suppression_limit bounds the first release only.")]
pub(crate) struct Plan {
    #[command(flatten)]
    input: Inputs,
    /// The policy of the first release; - is standard input.
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    #[command(flatten)]
    pub(super) set: Set,
    /// The share of new people in each release, of those in the one before: 10% or 0.1.
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = share)]
    arrive: f64,
    /// The share of those in a release who have left in the next one.
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = share)]
    leave: f64,
    /// The number of releases.
    #[arg(long, value_name = "N", default_value_t = 6)]
    versions: usize,
    /// Replay it for each of these k, instead of that of the policy.
    #[arg(long, value_name = "K,...", value_delimiter = ',')]
    k: Vec<u64>,
    /// Who arrives and leaves when: another seed gives another life.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl Plan {
    pub(super) async fn run(self, run: &Run) -> Result<Done> {
        let policy = PolicyFile::open(&self.policy, &self.set, &self.input.words())?;
        let input = Source::from(self.input.find(&run.stop)?);
        let policy = PolicySource { spec: &policy.spec, files: &policy.folder };
        let Self { arrive, leave, versions, seed, .. } = self;
        let life = Life { arrive, leave, versions, seed };
        Done::of(&plan(run, &input, &policy, &self.k, &life).await?)
    }
}

/// Reads a share, such as 10% or 0.1.
fn share(text: &str) -> std::result::Result<f64, String> {
    let (number, of) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.trim().parse::<f64>().map(|number| number / of);
    let share = share.ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a share such as 10% or 0.1".to_owned())
}
