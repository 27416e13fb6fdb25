//! `kanon init`: proposes a first policy for a table, to be read and completed by the user.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::inputs::Inputs;
use super::{Done, in_shell};
use datafusion_kanon::internals::answer::init::init;
use datafusion_kanon::internals::release::publish::folder_place::check_outside_releases;
use datafusion_kanon::internals::store::local_path;
use datafusion_kanon::{Error, ErrorCode, Result, Run};

/// Propose a first policy for a table: roles and levels, with comments that say why.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon init patients.parquet --to patients.toml
  kanon init 'lake/*.csv' --format json

The proposal is based on names, types and counts, not on the meaning of your columns: read every line. In
doubt, the role is \"?\", and the policy is refused until you decide. No value of the data is written.")]
pub(crate) struct Init {
    #[command(flatten)]
    input: Inputs,
    /// The policy file to create; must not exist. By default, the policy is printed.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

impl Init {
    pub(super) async fn run(mut self, run: &Run) -> Result<Done> {
        if let Some(path) = &mut self.to {
            *path = local_path(&path)?;
            check_free(path)?;
        }
        let input = self.input.find(&run.stop)?;
        let file = self.to.as_ref().map(|path| path.display().to_string());
        let policy_word = in_comment(in_shell(file.as_deref().unwrap_or("policy.toml")), "POLICY");
        let mut answer =
            init(run, &input, &in_comment(self.input.in_shell(""), "INPUT"), &policy_word).await?;
        if let Some(path) = &self.to {
            let created = File::create_new(path);
            let written = created.and_then(|mut file| file.write_all(answer.policy.as_bytes()));
            written.map_err(|e| Error::from_io(&e).at(place(path)))?;
            answer.file = file;
        }
        Done::of(&answer)
    }
}

fn place(path: &Path) -> String {
    format!("--to {}", path.display())
}

/// Returns words of a command as a comment of the policy shows them: `otherwise` if they are long.
fn in_comment(words: String, otherwise: &str) -> String {
    let is_short = words.chars().count() <= 27 && !words.contains(char::is_control);
    if is_short { words } else { otherwise.to_owned() }
}

/// Refuses a path that cannot be written, before the input is read.
fn check_free(path: &Path) -> Result<()> {
    if std::fs::symlink_metadata(path).is_ok() {
        return Err(Error::policy("already exists; choose another name")
            .coded(ErrorCode::Exists)
            .at(place(path)));
    }
    check_outside_releases(path).map_err(|error| error.at(place(path)))?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match folder.is_none_or(Path::is_dir) {
        true => Ok(()),
        false => Err(Error::data("expected the name of a file in a folder that exists").at(place(path))),
    }
}
