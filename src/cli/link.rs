//! `kanon link`: runs the linkage attack of someone who holds a list of people.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::Done;
use super::numbers::{grouped, integer, percent_of, plural, rows};
use super::risk::{bar, bins};
use super::source::{Csv, PolicyFile};
use crate::engine::Run;
use crate::error::{Error, Result};
use crate::generalize::Descriptor;
use crate::input::Input;
use crate::input::files::STANDARD_INPUT;
use crate::linkage::{Attack, Linked, link};
use crate::measure::ratio;
use crate::policy::Files;
use crate::progress::Phase;
use crate::release::publish::record::RECORD;
use crate::release::publish::record::plain_number;

/// Attack a table or a release: link a list of people with it.
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
input. Hierarchy files are read from the private record beside the release, or as the policy names them.

A person with several rows counts with the row that has the fewest matches, ignoring rows without a match. A
sensitive value is learnt if all rows of B that match one row of the person hold it.

A match is not proof: people who are missing from B or suppressed in it may match the rows of others.")]
pub(crate) struct Link {
    /// The list of people: a file, folder or glob of Parquet, CSV, JSON lines or Arrow files.
    #[arg(value_name = "A")]
    list: String,
    /// The table under attack: a file, folder or glob as for A, or a release.
    #[arg(value_name = "B")]
    table: String,
    /// The columns to link on; for a release, defaults to its quasi-identifiers that A has.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    on: Vec<String>,
    /// The column of A that identifies a person; by default, each row is a person. Rows with NULL in it are
    /// skipped.
    #[arg(long, value_name = "COLUMN")]
    individual: Option<String>,
    /// The column of B whose distinct values count as matches; by default, rows do. A row with NULL in it is not a
    /// match, but its sensitive values can be learnt.
    #[arg(long, value_name = "COLUMN")]
    individual_of_b: Option<String>,
    /// The columns of B that the attacker wants to learn; for a release, defaults to its sensitive columns.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    sensitive: Vec<String>,
    /// Exit with code 1 if a person has any matches, but fewer than K.
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = integer::<u64>(1..=u64::MAX / 2))]
    k: Option<u64>,
    /// The policy to use in place of the copy in the private record; its `[input]` applies to CSV.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    csv: Csv,
}

impl Link {
    pub(super) async fn run(self, run: &Run<'_>) -> Result<Done> {
        let policy = self.policy.as_deref().map(PolicyFile::open).transpose()?;
        if self.list == STANDARD_INPUT && self.table == STANDARD_INPUT {
            return Err(Error::policy("standard input holds one table; give a file for the other one"));
        }
        let (list, table) = (Input::find_or_read(&self.list)?, Input::find_or_read(&self.table)?);
        let release = Path::new(&self.table);
        run.progress.begin(Phase::Profile, 0);
        let attack = Attack {
            list: &list,
            individual: self.individual.as_deref(),
            table: &table,
            release: release.join(RECORD).is_file().then_some(release),
            individual_of_table: self.individual_of_b.as_deref(),
            on: &self.on,
            sensitive: &self.sensitive,
            policy: policy.as_ref().map(|p| (&p.spec, &p.folder as &dyn Files)),
            csv: self.csv.or(policy.as_ref().map(|policy| &policy.spec)),
        };
        let linked = link(run, &attack).await?;
        let holds = self.k.is_none_or(|k| linked.least().is_none_or(|least| least >= k));
        Ok(Done { text: self.describe(&linked, holds), json: to_json(&linked), holds })
    }

    fn describe(&self, linked: &Linked, holds: bool) -> String {
        let persons = |n: u64| plural(n, "person", "people");
        let all = linked.individuals();
        let (one, many) = match self.individual_of_b {
            Some(_) => ("individual", "individuals"),
            None => ("row", "rows"),
        };
        let on = linked.on.iter().map(|(name, by)| by.iter().fold(name.clone(), |name, by| name + " " + by));
        let mut text = format!("read      {} in {}\n", persons(all), self.list);
        text += &format!("linked    with {} on {}\n", self.table, on.collect::<Vec<_>>().join(" | "));
        for (name, why) in &linked.unused {
            text += &format!("not used  {name}: {why}\n");
        }
        text += &format!(
            "matched   {} ({}); {}\n",
            persons(linked.matched()),
            percent_of(linked.matched(), all),
            match self.individual_of_b {
                Some(_) => plural(linked.unmatched, "matches no individual", "match no individual"),
                None => plural(linked.unmatched, "matches nothing", "match nothing"),
            }
        );
        let unique = linked.unique();
        let share = percent_of(unique, all);
        let matches = plural(unique, "person matches", "people match");
        text += &format!("unique    {matches} exactly one {one}: re-identified ({share})\n");
        if let Some(least) = linked.least() {
            text += &format!("least     {} for a person with a match\n", plural(least, one, many));
        }
        for (name, learnt) in &linked.homogeneous {
            let share = percent_of(*learnt, all);
            text += &format!(
                "learnt    {name} of {} ({share}): all their matches hold one value\n",
                persons(*learnt)
            );
        }
        if let (Some(k), Some(least)) = (self.k, linked.least()) {
            let word = if holds { "holds   " } else { "FAILS   " };
            text += &format!("{word}  {} required, {least} reached\n", plural(k, "match", "matches"));
        }
        if !linked.matches.is_empty() {
            text += "\nmatches             people\n";
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
                "row of A names no person",
                "rows of A name no person",
            );
            text += &format!("skipped   {rows}: not counted\n");
        }
        if linked.uncovered > 0 {
            let rows = plural(linked.uncovered, "row of A holds a value", "rows of A hold a value");
            text += &format!("uncovered {rows} that no hierarchy file covers: no match\n");
        }
        if let Some(suppressed @ 1..) = linked.suppressed_rows {
            text += &format!("suppressed {} in B: any match of these people is wrong\n", rows(suppressed));
        }
        let region = Some(Descriptor::region().to_string());
        if linked.are_assigned {
            text += "note      a person matches the class that the private record assigns to the person's values; who lacks the record \
                     matches every class whose regions hold them, which may be more\n";
        } else if linked.on.iter().any(|(_, recoding)| *recoding == region) {
            text += "note      a person matches every class whose regions hold the person's values; where regions overlap, that is \
                     more than the person's own class\n";
        }
        text + "note      people who are missing from B or suppressed in it may match the rows of others\n"
    }
}

fn to_json(linked: &Linked) -> serde_json::Value {
    let histogram: Vec<_> = linked
        .matches
        .iter()
        .map(|(matches, count)| json!({ "matches": matches, "people": count }))
        .collect();
    let homogeneous: Vec<_> = (linked.homogeneous.iter())
        .map(|(name, count)| {
            let share = ratio(u128::from(*count), u128::from(linked.individuals()));
            json!({ "column": name, "people": count, "share": plain_number(share) })
        })
        .collect();
    let on: Vec<_> =
        linked.on.iter().map(|(name, by)| json!({ "column": name, "generalized": by })).collect();
    let unused: Vec<_> =
        linked.unused.iter().map(|(name, why)| json!({ "column": name, "why": why })).collect();
    json!({
        "on": on,
        "not_used": unused,
        "people": linked.individuals(),
        "matched": linked.matched(),
        "unmatched": linked.unmatched,
        "unique": linked.unique(),
        "least_matches": linked.least(),
        "histogram": histogram,
        "homogeneous": homogeneous,
        "uncovered": linked.uncovered,
        "rows_of_nobody": linked.rows_without_individual,
        "suppressed_rows": linked.suppressed_rows,
        "by_assignment": linked.are_assigned,
    })
}
