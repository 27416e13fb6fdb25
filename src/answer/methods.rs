//! What `kanon search --compare` answers: what each method finds and keeps.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::Answer;
use super::search::{FoundAnswer, SearchedInput, profiled};
use crate::class::ClassTable;
use crate::engine::Run;
use crate::error::Result;
use crate::input::Loaded;
use crate::measure::ratio;
use crate::measure::utility::Utility;
use crate::method::best::{Attempt, Tried};
use crate::parameter::Setting;
use crate::plural::{percent, plural};
use crate::policy::Policy;
use crate::release;
use crate::release::kind::measure::Searched;
use crate::render::Document;

/// What each method finds.
#[derive(Debug, Clone, Serialize)]
pub struct MethodsAnswer {
    /// The loss by which the methods are compared.
    pub objective: String,
    /// What was searched.
    #[serde(flatten)]
    pub input: SearchedInput,
    /// The methods, least loss first; methods that make two tables or add noise last.
    pub methods: Vec<TriedMethod>,
}

/// A method that was tried.
#[derive(Debug, Clone, Serialize)]
pub struct TriedMethod {
    /// The method's name.
    pub method: String,
    /// Its parameters by name.
    pub settings: BTreeMap<String, String>,
    /// The best recoding that it found; `null` if it found none.
    pub found: Option<ComparedRecoding>,
    /// The number of nodes or cuts that were evaluated.
    pub steps: u64,
    /// The time that the search took, in seconds.
    pub seconds: f64,
    /// Whether no recoding of its kind loses less.
    pub optimal: bool,
    /// Why the method cannot follow the policy, if it cannot.
    pub does_not_apply: Option<String>,
    /// The method as a policy names it.
    #[serde(skip)]
    #[doc(hidden)]
    pub in_policy: String,
}

/// The best recoding of a method, and what it keeps.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedRecoding {
    /// The recoding.
    #[serde(flatten)]
    pub found: FoundAnswer,
    /// What the recoding keeps of the distributions of the quasi-identifiers; `null` for means with noise.
    pub utility: Option<Utility>,
}

/// Searches an opened table by every method that applies, whatever the method of its policy.
///
/// # Errors
/// Those of [`search`](super::search::search()), but of methods that do not apply.
pub async fn compare_methods(run: &Run, loaded: &Loaded) -> Result<MethodsAnswer> {
    let (classes, doubts) = profiled(run, loaded).await?;
    let policy = Arc::clone(&loaded.policy);
    let answer = run.on_own_thread(move |run| {
        let tried = release::compare(run, &policy, &classes)?;
        let methods = tried.into_iter().map(|tried| TriedMethod::of(&policy, &classes, tried));
        Ok(MethodsAnswer {
            objective: policy.spec.objective.doc().name.to_owned(),
            methods: methods.collect::<Result<_>>()?,
            input: SearchedInput::new(&policy, &classes, doubts),
        })
    });
    answer.await
}

impl TriedMethod {
    /// Measures what came of a method.
    fn of(policy: &Policy, classes: &ClassTable, tried: Tried) -> Result<Self> {
        let Tried { method, result, steps, time } = tried;
        let settings = method.settings.iter().map(|(name, setting)| match setting {
            Setting::Word(word) => (name.clone(), word.to_string()),
            other => (name.clone(), other.to_string()),
        });
        let (found, optimal, does_not_apply) = match result {
            Attempt::Found { best, proven } => {
                let mut measured = Searched { policy, classes, found: &best }.measure(method.kind(), true)?;
                let utility = measured.utility.take();
                let found = ComparedRecoding { found: FoundAnswer::new(&best, measured), utility };
                (Some(found), proven, None)
            }
            Attempt::Nothing => (None, false, None),
            Attempt::DoesNotApply(why) => (None, false, Some(why)),
        };
        Ok(Self {
            settings: settings.collect(),
            found,
            steps,
            seconds: time.as_secs_f64(),
            optimal,
            does_not_apply,
            in_policy: method.to_string(),
            method: method.name,
        })
    }
}

impl Answer for MethodsAnswer {
    fn document(&self) -> Document {
        let mut document = Document::default();
        self.input.add_to(&mut document);
        let compared = format!("by {}, least loss first, two tables and noise last", self.objective);
        document.fact("compared", compared);
        for tried in &self.methods {
            document.fact("method", &tried.in_policy);
            if let Some(why) = &tried.does_not_apply {
                document.fact("", format!("does not apply: {why}"));
                continue;
            }
            let found = tried.found.as_ref();
            let line = found.map(|recoding| recoding.found.line(&self.objective, &self.input));
            document.fact("", line.as_deref().unwrap_or("found nothing that satisfies the policy"));
            let of_its_kind = if tried.optimal { ", proven best of its kind" } else { "" };
            let steps = plural(tried.steps, "step", "steps");
            document.fact("", format!("{steps}, {:.1} s{of_its_kind}", tried.seconds));
            if let Some(utility) = found.and_then(|recoding| recoding.utility.as_ref()) {
                document.fact("", utility_text(utility));
            }
        }
        document
    }

    fn holds(&self) -> bool {
        self.methods.iter().any(|tried| tried.found.is_some())
    }
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
