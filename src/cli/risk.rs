//! `kanon risk`: measures how easily individuals of an unchanged table are found.

use clap::Args;

use super::Done;
use super::inputs::Inputs;
use super::source::{Columns, Set, release_note};
use datafusion_kanon::internals::answer::risk::risk;
use datafusion_kanon::{PolicySource, Result, Run, open};

/// Measure re-identification risks, overall and per quasi-identifier.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon risk patients.parquet --quasi age,sex,zip
  kanon risk visits.parquet --quasi age,sex,zip --individual patient_id
  kanon risk patients.parquet --policy patients.toml --format json
  kanon risk patients_safe          # a release records its quasi-identifiers

With --individual, sizes count the individuals of a class, one class at a time. A person's rows together may still
single that person out: `kanon link TABLE TABLE --on COLUMNS --individual ID --individual-of-b ID` is the attack that shows it.")]
pub(crate) struct Risk {
    #[command(flatten)]
    input: Inputs,
    #[command(flatten)]
    columns: Columns,
}

impl Risk {
    pub(super) fn set(&self) -> &Set {
        self.columns.set()
    }

    pub(super) async fn run(self, run: &Run) -> Result<Done> {
        let policy = self.columns.open(&self.input.words(), || self.input.quasi_of_release())?;
        let input = self.input.find_table(&run.stop)?;
        let loaded = open(run, &input, &PolicySource { spec: &policy.spec, files: &policy.folder }).await?;
        let mut answer = risk(run, &loaded).await?;
        // A damaged record is an error only where the columns are to be read from it.
        let release = self.input.release().ok().flatten();
        answer.notes.extend(release.and_then(|(out, record)| release_note(out, &record)));
        Done::of(&answer)
    }
}
