//! `kanon link`: runs the linkage attack of someone who holds a list of individuals.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::Done;
use super::names::{Names, name};
use super::numbers::{grouped, integer, percent_of, plural, rows};
use super::risk::{bar, bins};
use super::source::{Csv, PolicyFile, PrivatePlace, Set, find_table, record_of, release_note};
use crate::engine::Run;
use crate::error::{Error, Result};
use crate::generalize::Descriptor;
use crate::input::Input;
use crate::input::address::local_path;
use crate::input::files::STANDARD_INPUT;
use crate::linkage::{Attack, Linked, link};
use crate::measure::ratio;
use crate::policy::Files;
use crate::progress::Phase;
use crate::release::publish::record::RECORD;
use crate::release::publish::record::plain_number;

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
        let (list, table) = (Input::find_or_read(&self.list)?, find_table(&self.table)?);
        let release = local_path(&self.table)?;
        let release =
            release.join(RECORD).is_file().then(|| self.private.of(&release, policy.as_ref())).transpose()?;
        run.progress.begin(Phase::Profile, 0);
        let attack = Attack {
            list: &list,
            individual: self.individual.as_deref(),
            table: &table,
            release: release.as_ref(),
            individual_of_table: self.individual_of_b.as_deref(),
            on: &Names::all(&self.on),
            sensitive: &Names::all(&self.sensitive),
            policy: policy.as_ref().map(|p| (&p.spec, &p.folder as &dyn Files)),
            csv: self.csv.or(policy.as_ref().map(|policy| &policy.spec)),
        };
        let linked = link(run, &attack).await?;
        // If no individual has a match, the attack says nothing about k.
        let holds = self.k.is_none_or(|k| linked.least().is_some_and(|least| least >= k));
        let mut text = self.describe(&linked, holds);
        if self.individual_of_b.is_none() {
            let record = record_of(&self.table)?;
            text += &record.and_then(|record| release_note(&self.table, &record)).unwrap_or_default();
        }
        Ok(Done { text, json: to_json(&linked), holds })
    }

    fn describe(&self, linked: &Linked, holds: bool) -> String {
        let individuals = |n: u64| plural(n, "individual", "individuals");
        let all = linked.individuals();
        let (one, many) = match self.individual_of_b {
            Some(_) => ("individual", "individuals"),
            None => ("row", "rows"),
        };
        let on = linked.on.iter().map(|(name, by)| by.iter().fold(name.clone(), |name, by| name + " " + by));
        let mut text = format!("read      {} in {} (A)\n", individuals(all), self.list);
        text += &format!("linked    with {} (B) on {}\n", self.table, on.collect::<Vec<_>>().join(" | "));
        for (name, why) in &linked.unused {
            text += &format!("not used  {name}: {why}\n");
        }
        if !linked.read_alone.is_empty() {
            text += &format!(
                "as texts  {}: read without the publisher's hierarchies. A value, values in braces, characters before `*` and \
                 `first..last` are understood; a label with another meaning matches nothing, so some matches may be missing (with \
                 the publisher's policy, --policy FILE reads every label)\n",
                linked.read_alone.join(", ")
            );
        }
        text += &format!(
            "matched   {} ({}); {}\n",
            individuals(linked.matched()),
            percent_of(linked.matched(), all),
            match self.individual_of_b {
                Some(_) => plural(linked.unmatched, "matches no individual", "match no individual"),
                None => plural(linked.unmatched, "matches nothing", "match nothing"),
            }
        );
        if linked.apart > 0 {
            let those = plural(linked.apart, "of these has", "of these have");
            text += &format!(
                "apart     {those} rows that match individuals, but no individual matches all of them\n"
            );
        }
        for name in &linked.never_equal {
            text += &format!(
                "hint      {name}: no value of A occurs in B; are both written alike (lost zeros, other words, another format)?\n"
            );
        }
        let unique = linked.unique();
        let share = percent_of(unique, all);
        let matches = plural(unique, "individual matches", "individuals match");
        text += &format!("unique    {matches} exactly one {one}: re-identified ({share})\n");
        if let Some(least) = linked.least() {
            text += &format!("least     {} for an individual with a match\n", plural(least, one, many));
        }
        for (name, learnt) in &linked.homogeneous {
            text += &match learnt {
                0 => format!("learnt    {name} of no individual: nowhere do all matches hold one value\n"),
                _ => format!(
                    "learnt    {name} of {} ({}): all their matches hold one value\n",
                    individuals(*learnt),
                    percent_of(*learnt, all)
                ),
            };
        }
        if let Some(k) = self.k {
            let word = if holds { "holds   " } else { "FAILS   " };
            let required = plural(k, "match", "matches");
            text += &match linked.least() {
                Some(least) => format!("{word}  {required} required, {least} reached{}\n", only_on(linked)),
                None => format!(
                    "no answer {required} required; no individual of A has a match{}\n",
                    only_on(linked)
                ),
            };
        }
        if !linked.matches.is_empty() {
            text += "\nmatches        individuals\n";
            let bins = bins(linked.matches.iter().map(|(matches, count)| (*matches, 1, *count)));
            let most = bins.iter().map(|bin| bin.individuals).max().unwrap_or(0);
            for bin in &bins {
                let bar = bar(bin.individuals, most);
                text += &format!("{:<15} {:>10}  {bar}\n", bin.text(), grouped(bin.individuals));
            }
            text += "\n";
        }
        if linked.rows_without_individual > 0 {
            let rows = plural(
                linked.rows_without_individual,
                "row of A without an individual",
                "rows of A without an individual",
            );
            text += &format!("skipped   {rows}: not counted\n");
        }
        if linked.uncovered > 0 {
            let rows = plural(linked.uncovered, "row of A holds a value", "rows of A hold a value");
            text += &format!("uncovered {rows} that no hierarchy file covers: no match\n");
        }
        if let Some(suppressed @ 1..) = linked.suppressed_rows {
            text +=
                &format!("suppressed {} in B: any match of these individuals is wrong\n", rows(suppressed));
        }
        let region = Some(Descriptor::region().to_string());
        if linked.are_assigned && linked.are_centroids {
            text += "note      an individual matches the class that the private record assigns to its values; an attacker without \
                     that record can only guess the class with the nearest centroids\n";
        } else if linked.are_centroids {
            text += "note      an individual matches the class whose centroids are nearest to its values: a guess, which may be \
                     another one's class, and so may what is learnt from it\n";
        } else if linked.are_assigned {
            text += "note      an individual matches the class that the private record assigns to its values; an attacker without \
                     that record finds every class whose regions hold them, which may be more\n";
        } else if linked.on.iter().any(|(_, recoding)| *recoding == region) {
            text += "note      an individual matches every class whose regions hold its values; where regions overlap, that is \
                     more than its own class\n";
        }
        text + "note      individuals who are missing from B or suppressed in it may match the rows of others\n"
    }
}

/// Returns the limit of an attack on some of the quasi-identifiers of a release.
fn only_on(linked: &Linked) -> String {
    let used = linked.on.iter().filter(|(_, recoding)| recoding.is_some()).count();
    match linked.unused.len() {
        0 => String::new(),
        unused => format!(
            ", on {used} of {} quasi-identifiers; an attacker who also knows the others may have fewer",
            used + unused
        ),
    }
}

fn to_json(linked: &Linked) -> serde_json::Value {
    let histogram: Vec<_> = linked
        .matches
        .iter()
        .map(|(matches, count)| json!({ "matches": matches, "individuals": count }))
        .collect();
    let homogeneous: Vec<_> = (linked.homogeneous.iter())
        .map(|(name, count)| {
            let share = ratio(u128::from(*count), u128::from(linked.individuals()));
            json!({ "column": name, "individuals": count, "share": plain_number(share) })
        })
        .collect();
    let on: Vec<_> =
        linked.on.iter().map(|(name, by)| json!({ "column": name, "generalized": by })).collect();
    let unused: Vec<_> =
        linked.unused.iter().map(|(name, why)| json!({ "column": name, "why": why })).collect();
    json!({
        "on": on,
        "not_used": unused,
        "read_as_texts": linked.read_alone,
        "individuals": linked.individuals(),
        "matched": linked.matched(),
        "unmatched": linked.unmatched,
        "apart": linked.apart,
        "never_equal": linked.never_equal,
        "unique": linked.unique(),
        "least_matches": linked.least(),
        "histogram": histogram,
        "homogeneous": homogeneous,
        "uncovered": linked.uncovered,
        "rows_without_individual": linked.rows_without_individual,
        "suppressed_rows": linked.suppressed_rows,
        "by_assignment": linked.are_assigned,
    })
}
