//! `kanon generate`: writes made-up hospital visits to try things on.

mod people;
mod tables;
mod visits;

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::Done;
use super::numbers::integer;
use datafusion_kanon::internals::answer::Answer;
use datafusion_kanon::internals::plural::{plural, rows};
use datafusion_kanon::internals::release::publish::folder_place::check_outside_releases;
use datafusion_kanon::internals::render::Document;
use datafusion_kanon::internals::store::local_path;
use datafusion_kanon::{Error, Phase, Result, Run};

/// Generate hospital visits of made-up people as a Parquet file.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  kanon generate --rows 1000000 --seed 7 --to visits_1m.parquet

The same rows and seed give the same bytes. Memory does not grow with the rows.")]
pub(crate) struct Generate {
    /// Number of visits.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = integer::<u64>(1..=u64::MAX / 2))]
    rows: u64,
    /// Seed of the random numbers.
    #[arg(long, value_name = "S", default_value_t = 7, allow_negative_numbers = true, value_parser = integer::<u64>(0..=u64::MAX))]
    seed: u64,
    /// The file to write; must not exist.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Replace an existing file.
    #[arg(long)]
    overwrite: bool,
}

impl Generate {
    pub(super) async fn run(mut self, run: &Run) -> Result<Done> {
        self.to = local_path(&self.to)?;
        if !self.overwrite && std::fs::symlink_metadata(&self.to).is_ok() {
            let why = format!("--to {}: already exists; --overwrite replaces it", self.to.display());
            return Err(Error::policy(why));
        }
        check_outside_releases(&self.to).map_err(|error| error.at(format!("--to {}", self.to.display())))?;
        run.progress.begin(Phase::Write, self.rows);
        let mut progress = |written| {
            run.progress.done(written);
            run.stop.check()
        };
        visits::write_visits(self.rows, self.seed, &self.to, &mut progress)?;
        let bytes = std::fs::metadata(&self.to).map_err(|e| Error::from_io(&e))?.len();
        let file = self.to.display().to_string();
        Done::of(&GenerateAnswer { rows: self.rows, seed: self.seed, bytes, file })
    }
}

/// The file of visits.
#[derive(Serialize)]
pub(crate) struct GenerateAnswer {
    /// The number of rows.
    rows: u64,
    /// The seed of the random numbers.
    seed: u64,
    /// The length of the file in bytes.
    bytes: u64,
    /// Its path.
    #[serde(skip)]
    file: String,
}

impl Answer for GenerateAnswer {
    fn document(&self) -> Document {
        let Self { bytes, file, .. } = self;
        let mut document = Document::default();
        let bytes = plural(*bytes, "byte", "bytes");
        document.fact("wrote", format!("{file} ({}, {bytes})", rows(self.rows)));
        document
    }
}
