//! `kanon check`: checks whether the models hold on an unchanged table.

use clap::Args;

use super::Done;
use super::inputs::Inputs;
use super::numbers::integer;
use super::source::{Columns, Set, parse_requirement, release_note};
use datafusion_kanon::internals::answer::check::{check_required, columns_of_numbers};
use datafusion_kanon::internals::model::Requirement;
use datafusion_kanon::internals::model::k_anonymity::KAnonymity;
use datafusion_kanon::{Error, Phase, PolicySource, Result, Run, open};

/// Check whether an unchanged table satisfies privacy models.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon check patients.parquet --quasi age,sex,zip --k 5
  kanon check visits.parquet --quasi age,sex,zip --individual patient_id --k 5
  kanon check 'lake/*.parquet' --policy patients.toml --format json
  kanon check patients_safe --quasi age,sex,zip --k 10 --require 'l_diversity(2, diagnosis)'

With --individual, sizes count the individuals of a class, one class at a time. A person's rows together may still
single that person out: `kanon link TABLE TABLE --on COLUMNS --individual ID --individual-of-b ID` is the attack that shows it.")]
pub(crate) struct Check {
    #[command(flatten)]
    input: Inputs,
    #[command(flatten)]
    columns: Columns,
    /// Require k-anonymity with this k, instead of the policy's models.
    #[arg(long, allow_negative_numbers = true, value_parser = integer::<u64>(1..=u64::MAX / 2))]
    k: Option<u64>,
    /// Require a model, such as 'k_anonymity(5)' or 'l_diversity(2, diagnosis)'; may be repeated. A column with
    /// a comma has quotes as in CSV: 'l_diversity(2, "a,b")'.
    #[arg(long, value_name = "MODEL")]
    require: Vec<String>,
}

impl Check {
    pub(super) fn set(&self) -> &Set {
        self.columns.set()
    }

    pub(super) async fn run(self, run: &Run) -> Result<Done> {
        let mut models: Vec<Requirement> = Vec::new();
        if let Some(k) = self.k {
            // The message begins with `k: `.
            let model = KAnonymity::new(k).map_err(|error| Error::policy(format!("--{error}")))?;
            models.push(Requirement::of_sizes(model));
        }
        for text in &self.require {
            models.push(parse_requirement(text)?);
        }
        if models.is_empty() && !self.columns.has_policy() {
            return Err(Error::policy(
                "nothing to check: give --k 5, --require 'l_diversity(2, diagnosis)' or --policy FILE",
            ));
        }
        let policy = self.columns.open(&self.input.words(), || self.input.quasi_of_release())?;
        let input = self.input.find_table(&run.stop)?;
        // Opening CSV files reads them.
        run.progress.begin(Phase::Profile, 0);
        let spec = policy.spec.with_numbers(columns_of_numbers(&models));
        let loaded = open(run, &input, &PolicySource { spec: &spec, files: &policy.folder }).await?;
        let answer = check_required(run, &loaded, models, "--require").await?;
        let mut done = Done::of(&answer)?;
        let release = self.input.release().ok().flatten().filter(|_| answer.individual.is_none());
        if let Some(note) = release.and_then(|(out, record)| release_note(out, &record)) {
            done.document.note(note);
        }
        if !done.holds {
            done.document.advice("next", self.next());
        }
        Ok(done)
    }

    /// Names the command that shows what generalization would do.
    fn next(&self) -> String {
        let policy = self.columns.policy().map(|policy| self.set().with_policy(policy));
        format!(
            "kanon search {} {} shows what generalization would do",
            self.input.in_shell(""),
            policy.as_deref().unwrap_or("--policy POLICY")
        )
    }
}
