//! `kanon explain`: what the record of a release says, as a page for people who decide about it.

use std::path::PathBuf;

use clap::Args;

use super::Done;
use datafusion_kanon::Result;
use datafusion_kanon::internals::answer::explain::explain;

/// Explain what a release shows and promises, for people who decide.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon explain patients_safe
  kanon explain patients_safe > patients_safe.md
  kanon explain patients_safe --format json

The page is Markdown and made from the public record; only a label that all rows share is read from them. It says
what the record says: kanon verify checks whether the rows agree with it.")]
pub(crate) struct Explain {
    /// The folder of a release, or its address in a store.
    out: PathBuf,
}

impl Explain {
    pub(super) fn run(self) -> Result<Done> {
        let answer = explain(&self.out)?;
        Ok(Done { is_page: true, ..Done::of(&answer)? })
    }
}
