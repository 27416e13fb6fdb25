//! What `kanon search` answers: the best recodings and the loss of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::Answer;
use super::sentences::{add_doubts, add_refusal, label_text, percent_of, rows_of, steps_by};
use crate::class::ClassTable;
use crate::engine::Run;
use crate::error::Result;
use crate::generalize::merge::MergedTree;
use crate::input::Loaded;
use crate::known::OTHER;
use crate::method::{AUTO, Candidate, Outcome, takes_effort, why_auto};
use crate::model::Counted;
use crate::plural::{grouped, plural, rows};
use crate::policy::Policy;
use crate::release::doubts::doubts;
use crate::release::kind::measure::{Measured, RecodingParts, Searched};
use crate::release::role_checks::each_counts_once;
use crate::release::{self, nodes_of, profile_classes, why_nothing};
use crate::render::{Document, plain_table};

/// The best recodings of a table.
#[derive(Debug, Clone, Serialize)]
pub struct SearchAnswer {
    /// The loss that the search minimized.
    pub objective: String,
    /// The method that ran.
    pub method: String,
    /// Why `auto` took this method; null if the policy names another one.
    pub chosen_because: Option<String>,
    /// The number of nodes in the lattice; `null` if the method searches none.
    pub nodes: Option<u64>,
    /// The number of nodes whose classes were computed far enough to judge them; without a lattice, the number of
    /// steps. `incognito` also counts nodes of fewer columns, so it can be more than `nodes`.
    pub evaluated: u64,
    /// Whether these recodings are proven best.
    pub optimal: bool,
    /// A lower bound on the loss of every recoding that satisfies the policy; `null` if the method gives none or there
    /// is no such recoding.
    pub bound: Option<f64>,
    /// What was searched.
    #[serde(flatten)]
    pub input: SearchedInput,
    /// The number of rows whose individual is NULL; 0 where rows are counted.
    pub rows_without_individual: u64,
    /// The best recodings, best first; empty if none satisfies the policy.
    pub best: Vec<FoundAnswer>,
    /// Why nothing was found, and what to do; `None` if something was found.
    #[serde(skip)]
    #[doc(hidden)]
    pub why_nothing: Option<String>,
}

/// The table that was searched, and what is doubtful about it and its policy.
#[derive(Debug, Clone, Serialize)]
pub struct SearchedInput {
    /// The reason why the policy protects no individual, so that `kanon release` refuses it; `null` for other policies.
    pub warning: Option<String>,
    /// What is doubtful about the policy and its input though nothing is refused, as the lines `warning` say it.
    pub doubts: Vec<String>,
    /// The number of rows.
    #[serde(skip)]
    #[doc(hidden)]
    pub rows: u64,
    /// The number of individuals; of rows if none are counted.
    #[serde(skip)]
    #[doc(hidden)]
    pub individuals: u64,
    /// The number of rows whose individual is NULL; `None` where rows are counted.
    #[serde(skip)]
    #[doc(hidden)]
    pub unowned_rows: Option<u64>,
    /// The number of classes before anything is generalized.
    #[serde(skip)]
    #[doc(hidden)]
    pub base_classes: usize,
    /// The labels of the values that few hold, in whole sentences.
    #[serde(skip)]
    #[doc(hidden)]
    pub labels: Vec<String>,
}

/// A recoding that was found.
#[derive(Debug, Clone, Serialize)]
pub struct FoundAnswer {
    /// What it consists of.
    #[serde(flatten)]
    pub parts: RecodingParts,
    /// The objective's loss.
    pub value: f64,
    /// The number of suppressed rows.
    pub suppressed_rows: u64,
    /// The number of individuals with a suppressed row.
    pub suppressed_individuals: u64,
    /// The number of released classes.
    pub classes: u64,
    /// The number of individuals in the smallest released class; `null` if all rows are suppressed.
    pub min_class: Option<u64>,
    /// The method that found it, where several were tried.
    pub by: Option<String>,
    /// Every loss that applies to the recoding, by name; of groups also the `reconstruction_error`, of clusters the
    /// `squared_error_with_noise`.
    #[serde(serialize_with = "plain_table")]
    pub measures: BTreeMap<String, f64>,
    /// What it is, in a few words.
    #[serde(skip)]
    #[doc(hidden)]
    pub text: String,
}

/// Searches an opened table for at most `top` best recodings by the method of its policy.
///
/// # Errors
/// A policy error if individuals would count several times or the method cannot do what the policy says; a data error
/// for a table that cannot be read, or when memory runs out; an unmet error for requirements that no recoding satisfies;
/// an interruption.
pub async fn search(run: &Run, loaded: &Loaded, top: usize) -> Result<SearchAnswer> {
    let (classes, doubts) = profiled(run, loaded).await?;
    let policy = Arc::clone(&loaded.policy);
    let answer = run.on_own_thread(move |run| {
        let (method, outcome) = release::search(run, &policy, &classes, top)?;
        let best = outcome.best.iter().map(|found| FoundAnswer::of(&policy, &classes, found));
        Ok(SearchAnswer {
            objective: policy.spec.objective.doc().name.to_owned(),
            method: method.to_owned(),
            chosen_because: (policy.spec.method.name == AUTO).then(|| why_auto(&policy.options(1))),
            nodes: outcome.nodes,
            evaluated: outcome.evaluated,
            optimal: outcome.proven,
            bound: outcome.bound,
            best: best.collect::<Result<_>>()?,
            rows_without_individual: classes.unowned_rows(),
            input: SearchedInput::new(&policy, &classes, doubts),
            why_nothing: outcome.best.is_empty().then(|| nothing_found(&policy, method, &outcome)),
        })
    });
    answer.await
}

/// Profiles an opened table for a search; returns its classes, and what is doubtful about it.
///
/// # Errors
/// Those of [`search`], but of the method.
pub(super) async fn profiled(run: &Run, loaded: &Loaded) -> Result<(ClassTable, Vec<String>)> {
    each_counts_once(run, loaded).await?;
    let classes = profile_classes(run, loaded).await?;
    let doubts = doubts(run, loaded, &classes).await?;
    Ok((classes, doubts))
}

/// Why no level that the policy allows satisfies it, and what to do.
pub(super) const NOTHING: &str =
    "nothing: raise suppression_limit, add coarser levels or drop a quasi-identifier";

const NO_CLASSES: &str =
    "nothing: all rows together fail a requirement; require less, or try a method that can suppress rows";

/// Says why a search found nothing, and what to do.
fn nothing_found(policy: &Policy, method: &str, outcome: &Outcome) -> String {
    if let (None, Some(why)) = (outcome.nodes, why_nothing(policy)) {
        return format!("nothing: {why}");
    }
    let why = match outcome.nodes {
        None => NO_CLASSES,
        Some(_) if outcome.proven => NOTHING,
        Some(_) if takes_effort(method) => "nothing within the effort: raise effort",
        Some(_) => {
            "nothing, but did not look at all levels: use method = \"auto\", or raise suppression_limit"
        }
    };
    why.to_owned()
}

impl Answer for SearchAnswer {
    fn document(&self) -> Document {
        let mut document = Document::default();
        self.input.add_to(&mut document);
        document.fact("search", self.searched());
        if let Some(why) = &self.chosen_because {
            document.fact("auto", format!("{}: {why}", self.method));
        }
        if let Some(why) = &self.why_nothing {
            document.fact("found", why);
        }
        self.best.iter().for_each(|found| document.line(found.line(&self.objective, &self.input)));
        document
    }

    fn holds(&self) -> bool {
        !self.best.is_empty()
    }
}

impl SearchAnswer {
    /// Says what was searched, and whether the best is proven.
    fn searched(&self) -> String {
        let Some(nodes) = self.nodes else { return steps_by(&self.method, self.evaluated) };
        let proven = match self.bound {
            _ if self.best.is_empty() => "none found".to_owned(),
            _ if self.optimal => "proven best".to_owned(),
            Some(bound) if bound.is_finite() => {
                // A bound is rounded down, and at 0 would print as -0.000000.
                let shown = if bound.abs() < 5e-7 { 0.0 } else { bound };
                format!("not proven best: none loses less than {shown:.6}")
            }
            _ => "not proven best".to_owned(),
        };
        let evaluated = grouped(self.evaluated);
        format!("{}, {evaluated} evaluated by {}, {proven}", nodes_of(nodes), self.method)
    }
}

impl SearchedInput {
    pub(super) fn new(policy: &Policy, classes: &ClassTable, doubts: Vec<String>) -> Self {
        let labels = policy.quasi.iter().filter_map(|quasi| {
            let MergedTree { rows, label, .. } = quasi.tree.as_ref().filter(|tree| tree.label != OTHER)?;
            let is_shown = rows.rows().iter().flatten().any(|cell| cell == label);
            is_shown.then(|| label_text(&quasi.name, label))
        });
        Self {
            warning: policy.promises_nothing(),
            doubts,
            rows: classes.total_rows(),
            individuals: classes.total_individuals(),
            unowned_rows: (classes.counted() == Counted::Individuals).then(|| classes.unowned_rows()),
            base_classes: classes.base().len(),
            labels: labels.collect(),
        }
    }

    /// Describes the rows and the base classes, and warns of what is doubtful.
    pub(super) fn add_to(&self, document: &mut Document) {
        let read = match self.unowned_rows {
            None | Some(0) => rows(self.rows),
            Some(unowned) => rows_of(self.rows, self.individuals, unowned),
        };
        let base = plural(self.base_classes as u64, "base class", "base classes");
        document.fact("read", format!("{read}, {base}"));
        self.labels.iter().for_each(|label| document.fact("labels", label));
        add_refusal(document, self.warning.as_deref());
        add_doubts(document, &self.doubts);
    }
}

impl FoundAnswer {
    /// Measures a recoding that a search by the policy's method found.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn of(policy: &Policy, classes: &ClassTable, found: &Candidate) -> Result<Self> {
        let measured = Searched { policy, classes, found }.measure(policy.kind, false)?;
        Ok(Self::new(found, measured))
    }

    pub(super) fn new(found: &Candidate, measured: Measured) -> Self {
        Self {
            parts: measured.parts,
            value: found.loss,
            suppressed_rows: found.suppressed_rows,
            suppressed_individuals: found.suppressed_individuals,
            classes: found.classes,
            min_class: found.min_class,
            by: found.by.as_ref().map(ToString::to_string),
            measures: measured.losses.into_iter().map(|(name, loss)| (name.to_owned(), loss)).collect(),
            text: measured.text,
        }
    }

    /// Describes the recoding in one line.
    pub(super) fn line(&self, objective: &str, of: &SearchedInput) -> String {
        let (rows, individuals) = (self.suppressed_rows, self.suppressed_individuals);
        let suppressed = match (of.unowned_rows, individuals) {
            (None, _) => grouped(rows),
            (Some(0), _) => rows_of(rows, individuals, 0),
            (_, 0) => rows_of(rows, 0, rows),
            // Classes do not say which of their rows have an individual.
            _ => rows_of(rows, individuals, 0) + " or of none",
        };
        format!(
            "{objective} {:.6}  suppressed {suppressed} ({})  classes {}  {}",
            self.value,
            percent_of(individuals, of.individuals),
            grouped(self.classes),
            self.text,
        )
    }
}
