//! `kanon search`: shows the best nodes and the loss of each.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use super::Done;
use super::numbers::{
    doubt_lines, grouped, integer, label_text, nodes_of, percent, percent_of, plural, rows, rows_of,
    steps_by, warning_line,
};
use super::source::{PolicyFile, Set};
use crate::class::ClassTable;
use crate::engine::Run;
use crate::error::{Error, Result};
use crate::generalize::merge::MergedTree;
use crate::input::{Input, open};
use crate::known::OTHER;
use crate::measure::ratio;
use crate::measure::utility::Utility;
use crate::method::best::{Attempt, Tried};
use crate::method::{AUTO, Candidate, Outcome, takes_effort, why_auto};
use crate::model::Counted;
use crate::parameter::Setting;
use crate::policy::Policy;
use crate::release::doubts::doubts;
use crate::release::kind::measure::{Measured, Searched};
use crate::release::publish::record::plain_number;
use crate::release::role_checks::each_counts_once;
use crate::release::{compare, profile_classes, search, search_minimal, why_nothing};

/// Find the best generalizations and show what each one loses; write nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon search patients.parquet --policy patients.toml
  kanon search patients.parquet --policy patients.toml --top 3 --format json
  kanon search patients.parquet --policy patients.toml --minimal
  kanon search patients.parquet --policy patients.toml --compare")]
pub(crate) struct Search {
    /// A file, folder or glob of Parquet, CSV, JSON lines or Arrow files.
    input: String,
    /// The policy with the requirements; - is standard input.
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    #[command(flatten)]
    pub(super) set: Set,
    /// Number of best nodes to show.
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true, value_parser = integer::<u16>(1..=65_535))]
    top: u16,
    /// Show all minimal nodes instead: nodes that satisfy the policy while no node below them does,
    /// each with its distance vector (the levels of the columns in policy order).
    #[arg(long, conflicts_with = "top")]
    minimal: bool,
    /// Search by every method that applies and show what each one keeps, whatever the policy's method.
    #[arg(long, conflicts_with_all = ["top", "minimal"])]
    compare: bool,
}

impl Search {
    pub(super) async fn run(self, run: &Run) -> Result<Done> {
        let policy = PolicyFile::open(&self.policy, &self.set, &[&self.input])?;
        let input = Input::find_or_read(&self.input)?;
        let loaded = open(run, &input, &policy.spec, &policy.folder).await?;
        each_counts_once(run, &loaded).await?;
        let classes = profile_classes(run, &loaded).await?;
        let doubts = doubts(run, &loaded, &classes).await?;
        let policy = &loaded.policy;
        if self.minimal {
            if policy.spec.method.name == "anytime" || !policy.spec.method.searches_lattice() {
                return Err(Error::policy(format!(
                    "--minimal finds all minimal nodes or none: remove `method = {}`",
                    policy.spec.method
                )));
            }
            return minimal(run, policy, classes, &doubts).await;
        }
        if self.compare {
            return compare_methods(run, policy, classes, &doubts).await;
        }
        let top = self.top.into();
        let apart = Arc::clone(policy);
        let searched = run.on_own_thread(move |run| {
            let (method, outcome) = search(run, &apart, &classes, top)?;
            Ok((classes, method, outcome))
        });
        let (classes, method, outcome) = searched.await?;

        let objective = policy.spec.objective.doc().name;
        let searched = match outcome.nodes {
            None => steps_by(method, outcome.evaluated),
            Some(nodes) => format!(
                "{}, {} evaluated by {method}, {}",
                nodes_of(nodes),
                grouped(outcome.evaluated),
                proven(&outcome),
            ),
        };
        let mut text = format!("{}search    {searched}\n", read(policy, &classes));
        let why = (policy.spec.method.name == AUTO).then(|| why_auto(&policy.options(1)));
        text += &why.as_ref().map_or(String::new(), |why| format!("auto      {method}: {why}\n"));
        let warning = policy.promises_nothing();
        text += &(warning_line(warning.as_deref()) + &doubt_lines(&doubts));
        if outcome.best.is_empty() {
            let of_groups = why_nothing(policy).map(|why| format!("found     nothing: {why}\n"));
            text += match outcome.nodes {
                None => of_groups.as_deref().unwrap_or(NO_CLASSES),
                Some(_) if outcome.proven => NOTHING,
                Some(_) if takes_effort(method) => "found     nothing within the effort: raise effort\n",
                Some(_) => NOT_AMONG_THESE,
            };
        }
        let mut best = Vec::new();
        for found in &outcome.best {
            let searched = Searched { policy, classes: &classes, found };
            let measured = searched.measure(policy.kind, false)?;
            text += &describe(&searched, &measured.text);
            best.push(node(found, &measured));
        }
        let json = json!({
            "objective": objective,
            "method": method,
            "chosen_because": why,
            "nodes": outcome.nodes,
            "evaluated": outcome.evaluated,
            "optimal": outcome.proven,
            "bound": outcome.bound,
            "warning": warning,
            "doubts": doubts,
            "rows_without_individual": classes.unowned_rows(),
            "best": best,
        });
        Ok(Done { text, json, holds: !outcome.best.is_empty() })
    }
}

const NOTHING: &str =
    "found     nothing: raise suppression_limit, add coarser levels or drop a quasi-identifier\n";

const NOT_AMONG_THESE: &str =
    "found     nothing, but did not look at all levels: use method = \"auto\", or raise suppression_limit\n";

const NO_CLASSES: &str = "found     nothing: all rows together fail a requirement; require less, or try a method that can suppress rows\n";

/// Describes the rows and the base classes in one line.
fn read(policy: &Policy, classes: &ClassTable) -> String {
    let base = plural(classes.base().len() as u64, "base class", "base classes");
    let read = match classes.unowned_rows() {
        0 => rows(classes.total_rows()),
        unowned => rows_of(classes.total_rows(), classes.total_individuals(), unowned),
    };
    let labels = policy.quasi.iter().filter_map(|quasi| {
        let MergedTree { rows, label, .. } = quasi.tree.as_ref().filter(|tree| tree.label != OTHER)?;
        let is_shown = rows.rows().iter().flatten().any(|cell| cell == label);
        is_shown.then(|| format!("labels    {}\n", label_text(&quasi.name, label)))
    });
    format!("read      {read}, {base}\n{}", labels.collect::<String>())
}

/// Finds all minimal nodes.
async fn minimal(run: &Run, policy: &Arc<Policy>, classes: ClassTable, doubts: &[String]) -> Result<Done> {
    let apart = Arc::clone(policy);
    let searched = run.on_own_thread(move |run| {
        let (found, evaluated) = search_minimal(run, &apart, &classes)?;
        Ok((classes, found, evaluated))
    });
    let (classes, found, evaluated) = searched.await?;
    let classes = &classes;
    let nodes = policy.ranges().into_iter().fold(1u64, |n, range| n.saturating_mul(range.count() as u64));
    let mut text = format!(
        "{}search    {}, {} evaluated, {} minimal\n",
        read(policy, classes),
        nodes_of(nodes),
        grouped(evaluated),
        grouped(found.len() as u64),
    );
    let warning = policy.promises_nothing();
    text += &(warning_line(warning.as_deref()) + &doubt_lines(doubts));
    let holds = !found.is_empty();
    if !holds {
        text += NOTHING;
    }
    let mut minimal = Vec::new();
    for one in found {
        let levels = one.levels.clone();
        let distance: Vec<String> = levels.iter().map(ToString::to_string).collect();
        let one = Candidate::from(one);
        let searched = Searched { policy, classes, found: &one };
        let measured = searched.measure(policy.kind, false)?;
        text += &format!("[{}]  {}", distance.join(","), describe(&searched, &measured.text));
        let mut node = node(&one, &measured);
        node["distance"] = json!(levels);
        minimal.push(node);
    }
    let json = json!({
        "objective": policy.spec.objective.doc().name,
        "nodes": nodes,
        "evaluated": evaluated,
        "warning": warning,
        "doubts": doubts,
        "minimal": minimal,
    });
    Ok(Done { text, json, holds })
}

/// Compares all methods.
async fn compare_methods(
    run: &Run,
    policy: &Arc<Policy>,
    classes: ClassTable,
    doubts: &[String],
) -> Result<Done> {
    let apart = Arc::clone(policy);
    let searched = run.on_own_thread(move |run| {
        let tried = compare(run, &apart, &classes)?;
        Ok((classes, tried))
    });
    let (classes, tried) = searched.await?;
    let classes = &classes;
    let objective = policy.spec.objective.doc().name;
    let warning = policy.promises_nothing();
    let mut text = format!(
        "{}compared  by {objective}, least loss first, two tables and noise last\n",
        read(policy, classes)
    );
    text += &(warning_line(warning.as_deref()) + &doubt_lines(doubts));
    let (mut rows, mut holds) = (Vec::new(), false);
    for Tried { method, result, steps, time } in tried {
        let settings = method.settings.iter().map(|(name, setting)| match setting {
            Setting::Word(word) => (name.clone(), json!(word)),
            other => (name.clone(), json!(other.to_string())),
        });
        text += &format!("method    {method}\n");
        let took = format!("{}, {:.1} s", plural(steps, "step", "steps"), time.as_secs_f64());
        let (mut found, mut optimal, mut does_not_apply) = (None, false, None);
        match result {
            Attempt::Found { best, proven } => {
                (holds, optimal) = (true, proven);
                let of_its_kind = if proven { ", proven best of its kind" } else { "" };
                let searched = Searched { policy, classes, found: &best };
                let measured = searched.measure(method.kind(), true)?;
                text += &format!("          {}", describe(&searched, &measured.text));
                text += &format!("          {took}{of_its_kind}\n");
                let mut node = node(&best, &measured);
                let utility = &measured.utility;
                text += &utility
                    .as_ref()
                    .map_or(String::new(), |utility| format!("          {}\n", utility_text(utility)));
                let utility = serde_json::to_value(utility);
                node["utility"] =
                    utility.map_err(|_| Error::internal("search: the utility cannot be serialized"))?;
                found = Some(node);
            }
            Attempt::Nothing => {
                text += &format!("          found nothing that satisfies the policy\n          {took}\n");
            }
            Attempt::DoesNotApply(why) => {
                text += &format!("          does not apply: {why}\n");
                does_not_apply = Some(why);
            }
        }
        rows.push(json!({
            "method": &method.name,
            "settings": settings.collect::<serde_json::Map<_, _>>(),
            "found": found,
            "steps": steps,
            "seconds": time.as_secs_f64(),
            "optimal": optimal,
            "does_not_apply": does_not_apply,
        }));
    }
    let json = json!({ "objective": objective, "warning": warning, "doubts": doubts, "methods": rows });
    Ok(Done { text, json, holds })
}

/// Describes what a recoding keeps: `keeps 71 % of the information in a column, 55 % in two; half
/// of random counts within 12 %`.
fn utility_text(utility: &Utility) -> String {
    let of_columns = mean(utility.columns.iter().map(|column| column.information_kept).collect());
    let mut text = format!("keeps {} of the information in a column", percent(of_columns));
    if !utility.pairs.is_empty() {
        let of_pairs = mean(utility.pairs.iter().map(|pair| pair.information_kept).collect());
        text += &format!(", {} in two", percent(of_pairs));
    }
    let errors: Vec<f64> = utility.columns.iter().filter_map(|column| column.squared_error).collect();
    if !errors.is_empty() {
        text += &format!("; squared error of numbers {} of their variance", percent(mean(errors)));
    }
    if let Some(queries) = &utility.queries {
        text += &format!("; half of random counts within {}", percent(queries.median_relative_error));
    }
    text
}

fn mean(shares: Vec<f64>) -> f64 {
    let count = ratio(shares.len() as u128, 1);
    shares.into_iter().sum::<f64>() / count
}

/// Describes a node in one line.
fn describe(searched: &Searched<'_>, what: &str) -> String {
    let &Searched { policy, classes, found } = searched;
    let suppressed = match classes.counted() {
        Counted::Individuals => {
            let (rows, individuals) = (found.suppressed_rows, found.suppressed_individuals);
            match (classes.unowned_rows(), individuals) {
                (0, _) => rows_of(rows, individuals, 0),
                (_, 0) => rows_of(rows, 0, rows),
                // Classes do not say which of their rows have an individual.
                _ => rows_of(rows, individuals, 0) + " or of none",
            }
        }
        Counted::Rows => grouped(found.suppressed_rows),
    };
    format!(
        "{} {:.6}  suppressed {suppressed} ({})  classes {}  {}\n",
        policy.spec.objective.doc().name,
        found.loss,
        percent_of(found.suppressed_individuals, classes.total_individuals()),
        grouped(found.classes),
        what,
    )
}

/// Returns `proven best`, or the bound where there is one.
fn proven(outcome: &Outcome) -> String {
    match outcome.bound {
        _ if outcome.proven => "proven best".to_owned(),
        Some(bound) if bound.is_finite() => {
            // A bound is rounded down, and at 0 would print as -0.000000.
            let shown = if bound.abs() < 5e-7 { 0.0 } else { bound };
            format!("not proven best: none loses less than {shown:.6}")
        }
        _ => "not proven best".to_owned(),
    }
}

/// Returns a recoding and its measures.
fn node(found: &Candidate, measured: &Measured) -> Value {
    let (key, value) = &measured.json;
    let measures = measured.losses.iter().map(|(name, loss)| ((*name).to_owned(), plain_number(*loss)));
    json!({
        *key: value,
        "value": found.loss,
        "suppressed_rows": found.suppressed_rows,
        "suppressed_individuals": found.suppressed_individuals,
        "classes": found.classes,
        "min_class": found.min_class,
        "by": found.by.as_ref().map(ToString::to_string),
        "measures": measures.collect::<serde_json::Map<_, _>>(),
    })
}
