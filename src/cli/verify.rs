//! `kanon verify`: is this folder what it says?

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::Done;
use super::numbers::{counted, rows};
use super::source::PolicyFile;
use crate::error::Result;
use crate::policy::Files;
use crate::release::input::Input;
use crate::release::{Phase, Run, check_release};

/// Check a release: its record, its files, its rows; with the input, all of it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon verify patients_safe
  kanon verify patients_safe --input patients.parquet
  kanon verify patients_safe --input patients.parquet --policy patients.toml

Without --input only the released rows are judged. With it every row must be an input row of a class that
holds, recoded as the policy says; the policy is read from the private record beside the release unless
--policy names it.")]
pub(crate) struct Verify {
    /// The release.
    out: PathBuf,
    /// The input that it was made of.
    #[arg(long, value_name = "INPUT")]
    input: Option<String>,
    /// The policy, instead of the copy in the private record.
    #[arg(long, value_name = "FILE", requires = "input")]
    policy: Option<PathBuf>,
}

impl Verify {
    pub(super) async fn run(self, run: &Run<'_>) -> Result<Done> {
        let policy = self.policy.as_deref().map(PolicyFile::open).transpose()?;
        let input = self.input.as_deref().map(Input::find).transpose()?;
        run.listener.begin(Phase::Verify, 0);
        let policy = policy.as_ref().map(|p| (&p.said, &p.folder as &dyn Files));
        let checked = check_release(run, &self.out, input.as_ref(), policy).await?;
        let public = &checked.public;
        let mut text = format!(
            "read      {} in {}, {}\n",
            rows(public.rows),
            counted(public.classes, "class", "classes"),
            counted(public.files.len() as u64, "file", "files"),
        );
        for model in &public.models {
            text += &format!(
                "holds     {} {} required, {} reached\n",
                model.said(),
                model.required,
                model.reached
            );
        }
        text += &match checked.verified.suppressed_rows {
            Some(suppressed) => format!(
                "verified  against the input: all {} are rows of it, {} suppressed\n",
                rows(public.rows),
                rows(suppressed)
            ),
            None => "verified  the released rows by themselves; --input INPUT compares them with where they came from\n"
                .to_owned(),
        };
        let json = json!({
            "holds": true,
            "with_input": checked.with_input,
            "rows": public.rows,
            "classes": public.classes,
            "suppressed_rows": checked.verified.suppressed_rows,
            "models": public.models,
        });
        Ok(Done { text, json, holds: true })
    }
}
