//! Where a command's columns and requirements come from: a policy file, or a list of quasi-identifiers.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::decimal::Decimal;
use crate::error::{Error, Result};
use crate::model::{ClassModel, MODELS, Model, Parameters, make};
use crate::policy::{Folder, Said};

/// A policy file as a command opened it.
pub(crate) struct PolicyFile {
    /// What it says.
    pub said: Said,
    /// Its text.
    pub text: String,
    /// Where its hierarchy files are.
    pub folder: Folder,
}

impl PolicyFile {
    /// Reads and parses a policy.
    ///
    /// # Errors
    /// A policy error that names the file.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let place = format!("policy {}", path.display());
        let text = std::fs::read_to_string(path).map_err(|e| Error::policy(e.kind()).at(&place))?;
        let said = Said::parse(&text).map_err(|e| e.at(&place))?;
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        Ok(Self { said, text, folder: Folder(folder) })
    }
}

/// `--policy P` or `--quasi a,b`.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Columns {
    /// The policy that names the quasi-identifiers.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The quasi-identifiers, when there is no policy.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    quasi: Vec<String>,
}

impl Columns {
    /// The policy, or one made of the quasi-identifiers alone.
    ///
    /// # Errors
    /// Those of the policy.
    pub(crate) fn open(&self) -> Result<PolicyFile> {
        match &self.policy {
            Some(path) => PolicyFile::open(path),
            None => Ok(PolicyFile {
                said: Said::quick(&self.quasi, 2)?,
                text: String::new(),
                folder: Folder(PathBuf::new()),
            }),
        }
    }

    /// Whether a policy was given.
    pub(crate) fn has_policy(&self) -> bool {
        self.policy.is_some()
    }
}

/// The model that `--require` says: `k_anonymity(5)`.
///
/// # Errors
/// A policy error that shows the form.
pub(crate) fn parse_requirement(text: &str) -> Result<Box<dyn ClassModel>> {
    let form = || {
        Error::policy(format!(
            "--require {text}: expected a model with its parameters, such as k_anonymity(5)"
        ))
    };
    let (name, rest) = text.trim().split_once('(').ok_or_else(form)?;
    let inside = rest.trim_end().strip_suffix(')').ok_or_else(form)?;
    let said: Vec<&str> = inside.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    let names = MODELS.iter().find(|row| row.doc.name == name.trim()).map_or(&[][..], |row| row.parameters);
    if !names.is_empty() && said.len() != names.len() {
        return Err(Error::policy(format!("--require {text}: {} takes ({})", name.trim(), names.join(", "))));
    }
    let pairs = names.iter().zip(said).map(|(name, value)| Ok(((*name).to_owned(), Decimal::parse(value)?)));
    let parameters =
        Parameters::new(pairs.collect::<Result<_>>().map_err(|e| e.at(format!("--require {text}")))?);
    match make(name.trim(), parameters).map_err(|e| e.at(format!("--require {text}")))? {
        Model::Class(model) => Ok(model),
        Model::Table(model) => {
            Err(Error::policy(format!("--require {text}: {} judges whole tables", model.doc().name)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_read_as_calls() {
        assert_eq!(parse_requirement(" k_anonymity( 5 ) ").unwrap().said(), "k_anonymity(5)");
        for wrong in [
            "k_anonymity",
            "k_anonymity()",
            "k_anonymity(0)",
            "k_anonymity(1,2)",
            "nonsense(1)",
            "k_anonymity(x)",
        ] {
            assert!(parse_requirement(wrong).is_err(), "{wrong}");
        }
    }
}
