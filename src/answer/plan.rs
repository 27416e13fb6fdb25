//! What `kanon plan` answers: what a life of releases would cost.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Answer;
use crate::engine::Run;
use crate::error::Result;
use crate::input::{PolicySource, Source, open};
use crate::plural::{grouped, individuals, percent, plural};
use crate::release::histories::{Life, NotShown, Version, replay};
use crate::render::{Document, Table, Weight};

/// What lives of releases would cost.
#[derive(Debug, Serialize)]
pub struct PlanAnswer {
    /// A life for each k.
    pub lives: Vec<LifeOfK>,
    /// The k whose releases lose least, of those with all releases.
    pub best_k: Option<u64>,
}

/// The life of the releases of a policy with this k.
#[derive(Debug, Serialize)]
pub struct LifeOfK {
    /// k; `null` for the policy as it is.
    pub k: Option<u64>,
    /// The releases, in their order.
    pub versions: Vec<Version>,
    /// Why the next release was refused; `null` if all were made.
    pub refused: Option<String>,
}

/// Replays a life of releases on an input, for each k, or as the policy is without one.
///
/// # Errors
/// A policy error for a life that cannot be, or a policy without `[history]`; the errors of the first release, of reading and of
/// memory.
pub async fn plan(
    run: &Run,
    input: &Source,
    policy: &PolicySource<'_>,
    ks: &[u64],
    life: &Life,
) -> Result<PlanAnswer> {
    let mut lives = Vec::new();
    let ks: BTreeSet<u64> = ks.iter().copied().collect();
    let is_as_it_is = ks.is_empty().then_some(None);
    let each = ks.into_iter().map(Some).chain(is_as_it_is);
    for k in each {
        let spec = match k {
            Some(k) => policy.spec.with_key(&format!("k={k}"))?,
            None => policy.spec.clone(),
        };
        let policy = PolicySource { spec: &spec, files: policy.files };
        let loaded = open(run, input, &policy).await?;
        let (versions, refused) = replay(run, &loaded, &policy, life).await?;
        lives.push(LifeOfK { k, versions, refused });
    }
    let best = lives.iter().filter(|life| life.refused.is_none());
    let best_k = best.min_by(|a, b| a.loss().total_cmp(&b.loss())).and_then(|life| life.k);
    Ok(PlanAnswer { lives, best_k })
}

impl LifeOfK {
    /// Returns the loss of all releases together.
    fn loss(&self) -> f64 {
        self.versions.iter().map(|version| version.loss).sum()
    }
}

impl Answer for PlanAnswer {
    fn document(&self) -> Document {
        let mut document = Document::default();
        for life in &self.lives {
            if let Some(k) = life.k {
                document.gap();
                document.fact("k", k.to_string());
            }
            let mut table = Table::default().texts("release", 0, 7);
            for (head, width) in
                [("people", 9), ("shown", 9), ("new wait", 9), ("left out", 9), ("loss", 7), ("alone", 7)]
            {
                table = table.numbers(head, 1, width);
            }
            for (number, version) in (1..).zip(&life.versions) {
                let NotShown { new, moved, companions, left_out } = version.not_shown.unwrap_or_default();
                table.row([
                    format!("{number}"),
                    grouped(version.individuals),
                    grouped(version.shown),
                    grouped(new),
                    grouped(moved + companions + left_out),
                    percent(version.loss),
                    percent(version.loss_alone),
                ]);
            }
            document.table(table);
            if let Some(last) = life.versions.last() {
                let times = match last.loss_alone > 0.0 {
                    true => format!(
                        ", with {:.2} times the loss of a release by itself",
                        last.loss / last.loss_alone
                    ),
                    false => String::new(),
                };
                let (shown, people) = (grouped(last.shown), individuals(last.individuals));
                let text = format!("{shown} of {people} in release {}{times}", life.versions.len());
                document.fact("shown", text);
            }
            if let Some(why) = &life.refused {
                document.warning(Weight::Doubtful, format!("the next release was refused: {why}"));
            }
        }
        if let (Some(k), 2..) = (self.best_k, self.lives.len()) {
            let releases = plural(
                self.lives.iter().map(|life| life.versions.len()).max().unwrap_or_default() as u64,
                "release",
                "releases",
            );
            document.fact("best", format!("k = {k} loses least over {releases}"));
        }
        document
    }
}
