//! What `kanon search --minimal` answers: all minimal nodes.

use std::sync::Arc;

use serde::Serialize;

use super::Answer;
use super::search::{FoundAnswer, NOTHING, SearchedInput, profiled};
use crate::engine::Run;
use crate::error::Result;
use crate::input::Loaded;
use crate::method::Candidate;
use crate::plural::grouped;
use crate::release::{nodes_of, search_minimal};
use crate::render::Document;

/// The minimal nodes of a table.
#[derive(Debug, Clone, Serialize)]
pub struct MinimalAnswer {
    /// The policy's loss.
    pub objective: String,
    /// The number of nodes in the lattice.
    pub nodes: u64,
    /// The number of nodes whose classes were computed far enough to judge them.
    pub evaluated: u64,
    /// What was searched.
    #[serde(flatten)]
    pub input: SearchedInput,
    /// The minimal nodes: they satisfy the policy while no node below them does.
    pub minimal: Vec<MinimalNode>,
}

/// A minimal node.
#[derive(Debug, Clone, Serialize)]
pub struct MinimalNode {
    /// The recoding.
    #[serde(flatten)]
    pub found: FoundAnswer,
    /// The levels of the columns in policy order.
    pub distance: Vec<usize>,
}

/// Finds all minimal nodes of an opened table, whatever the method of its policy, which has to search the lattice.
///
/// # Errors
/// Those of [`search`](super::search::search()).
pub async fn minimal(run: &Run, loaded: &Loaded) -> Result<MinimalAnswer> {
    let (classes, doubts) = profiled(run, loaded).await?;
    let policy = Arc::clone(&loaded.policy);
    let answer = run.on_own_thread(move |run| {
        let (minimal, evaluated) = search_minimal(run, &policy, &classes)?;
        let minimal = minimal.into_iter().map(|node| {
            let distance = node.levels.clone();
            Ok(MinimalNode { found: FoundAnswer::of(&policy, &classes, &Candidate::from(node))?, distance })
        });
        Ok(MinimalAnswer {
            objective: policy.spec.objective.doc().name.to_owned(),
            nodes: policy.options(1).nodes(),
            evaluated,
            minimal: minimal.collect::<Result<_>>()?,
            input: SearchedInput::new(&policy, &classes, doubts),
        })
    });
    answer.await
}

impl Answer for MinimalAnswer {
    fn document(&self) -> Document {
        let mut document = Document::default();
        self.input.add_to(&mut document);
        let [evaluated, minimal] = [self.evaluated, self.minimal.len() as u64].map(grouped);
        let searched = format!("{}, {evaluated} evaluated, {minimal} minimal", nodes_of(self.nodes));
        document.fact("search", searched);
        if self.minimal.is_empty() {
            document.fact("found", NOTHING);
        }
        for MinimalNode { found, distance } in &self.minimal {
            let distance: Vec<String> = distance.iter().map(ToString::to_string).collect();
            let found = found.line(&self.objective, &self.input);
            document.line(format!("[{}]  {found}", distance.join(",")));
        }
        document
    }

    fn holds(&self) -> bool {
        !self.minimal.is_empty()
    }
}
