//! `kanon link`: runs the linkage attack of someone who holds a list of individuals.

use std::path::{Path, PathBuf};

use clap::Args;

use super::Done;
use super::names::{Names, name};
use super::numbers::integer;
use super::source::{Csv, PolicyFile, PrivatePlace, Set, find_table, is_release, record_of, release_note};
use datafusion_kanon::internals::answer::link::link;
use datafusion_kanon::internals::input::files::STANDARD_INPUT;
use datafusion_kanon::internals::linkage::Attack;
use datafusion_kanon::internals::store::Address;
use datafusion_kanon::{Error, Input, PolicySource, Result, Run};

/// Attack a table or a release: link a list of individuals with it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon link voters.csv patients.parquet --on dob,sex,zip --sensitive diagnosis
  kanon link voters.csv patients_safe --k 5
  kanon link visitors.csv visits.parquet --on dob,zip --individual name --individual-of-b patient_id

A is the attacker's list, B the table under attack. A row of A matches the rows of B that have the same values in
all columns of --on; NULL equals NULL. Linked columns must have the same type or types of one kind (numbers, or dates
and timestamps). A CSV column of A is read with its type in B; if both are CSV, both are read as text. If B is a
release, A is first generalized according to the record of B; its values should have the types of the release's
input. Hierarchy files are read from the private record beside the release, or as the policy names them. A reader who has
the release alone needs neither: labels that differ from class to class are read as texts, and columns of labels that only
a hierarchy file explains are not used.

The matches of an individual of A with several rows are, with --individual-of-b, the individuals of B who match all of
these rows: rows that are harmless one by one may single it out together. Without --individual-of-b nobody knows which
rows of B are one person's, so the individual counts with the row that has the fewest matches. Either way rows without
a match are ignored. A sensitive value is learnt if all rows of B that match one row of the individual, and may be
its own, hold it.

A match is not proof: individuals who are missing from B or suppressed in it may match the rows of others.")]
pub(crate) struct Link {
    /// The list of individuals: a file, folder or glob of Parquet, CSV, JSON lines or Arrow files.
    #[arg(value_name = "A")]
    list: String,
    /// The table under attack: a file, folder or glob as for A, or a release.
    #[arg(value_name = "B")]
    table: String,
    /// The columns to link on; for a release, defaults to its quasi-identifiers that A has. A name with a comma
    /// has quotes as in CSV: '"a,b",sex'.
    #[arg(long, value_name = "COLUMNS")]
    on: Vec<Names>,
    /// The column of A that identifies an individual; by default, each row is one. Rows with NULL in it are
    /// skipped. Quotes as in CSV are allowed.
    #[arg(long, value_name = "COLUMN", value_parser = name)]
    individual: Option<String>,
    /// The column of B whose distinct values count as matches; by default, rows do. A row with NULL
    /// in it is not a match, but its sensitive values can be learnt. Quotes as in CSV are allowed.
    #[arg(long, value_name = "COLUMN", value_parser = name)]
    individual_of_b: Option<String>,
    /// The columns of B that the attacker wants to learn; for a release, defaults to its sensitive columns. A
    /// name with a comma has quotes as in CSV, as in --on.
    #[arg(long, value_name = "COLUMNS")]
    sensitive: Vec<Names>,
    /// Exit with code 1 if an individual with a match has fewer than K, or if no individual has a match.
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = integer::<u64>(1..=u64::MAX / 2))]
    k: Option<u64>,
    #[command(flatten)]
    private: PrivatePlace,
    /// The policy to use in place of the copy in the private record; its `[input]` applies to CSV; - is standard
    /// input.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    pub(super) set: Set,
    #[command(flatten)]
    csv: Csv,
}

impl Link {
    pub(super) async fn run(self, run: &Run) -> Result<Done> {
        let open = |path: &Path| PolicyFile::open(path, &self.set, &[&self.list, &self.table]);
        let policy = self.policy.as_deref().map(open).transpose()?;
        if self.list == STANDARD_INPUT && self.table == STANDARD_INPUT {
            return Err(Error::policy("standard input holds one table; give a file for the other one"));
        }
        let (list, table) =
            (Input::find_or_read(&self.list, &run.stop)?, find_table(&self.table, &run.stop)?);
        let release = if is_release(&self.table)? { Some(Address::parse(&self.table)?) } else { None };
        let release = release.map(|release| self.private.of(&release, policy.as_ref())).transpose()?;
        let attack = Attack {
            list: &list,
            individual: self.individual.as_deref(),
            table: &table,
            release: release.as_ref(),
            individual_of_table: self.individual_of_b.as_deref(),
            on: &Names::all(&self.on),
            sensitive: &Names::all(&self.sensitive),
            policy: policy.as_ref().map(|p| PolicySource { spec: &p.spec, files: &p.folder }),
            csv: self.csv.or(policy.as_ref().map(|policy| &policy.spec)),
        };
        let mut answer = link(run, &attack).await?;
        // Of a release of several tables, a folder in it is attacked.
        answer.table.clone_from(&self.table);
        answer.k = self.k;
        let mut done = Done::of(&answer)?;
        let record = if self.individual_of_b.is_none() { record_of(&self.table)? } else { None };
        if let Some(note) = record.and_then(|record| release_note(&self.table, &record)) {
            done.document.note(note);
        }
        Ok(done)
    }
}
