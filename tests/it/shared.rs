//! What the tests against outside truth share: the folder that holds it, and the way into the pipeline.
//!
//! Nothing here goes around the code under test: a table is opened and profiled by [`input::open`] and
//! [`release::profile_classes`] under a policy that was parsed from text, a lattice is walked by [`for_every_node`].

#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrow::datatypes::Schema;
use arrow::util::display::array_value_to_string;
use datafusion_kanon::internals::class::{ClassTable, EvaluatedNode};
use datafusion_kanon::internals::engine::{Resources, Run};
use datafusion_kanon::internals::generalize::Ends;
use datafusion_kanon::internals::input::{self, Input};
use datafusion_kanon::internals::measure::height::Height;
use datafusion_kanon::internals::method::lattice::exhaustive::for_every_node;
use datafusion_kanon::internals::method::lattice::{Found, Lattice};
use datafusion_kanon::internals::method::{Outcome, Problem};
use datafusion_kanon::internals::model::{Requirement, k_anonymity::KAnonymity};
use datafusion_kanon::internals::policy::{Files, Policy, PolicySpec};
use datafusion_kanon::internals::progress::{CancelToken, Silent};
use datafusion_kanon::internals::release;

/// The folder of outside truth: `KANON_SHARED`, else `../shared` beside the project. Where it is absent the
/// test is skipped, aloud; with `KANON_REQUIRE_SHARED=1`, as in CI, it fails instead.
pub(crate) fn folder(test: &str) -> Option<PathBuf> {
    let said = std::env::var_os("KANON_SHARED").map(PathBuf::from);
    let folder = said.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"));
    if folder.join("truth").is_dir() && folder.join("data").is_dir() {
        return Some(folder);
    }
    let required = std::env::var("KANON_REQUIRE_SHARED").is_ok_and(|value| value == "1");
    assert!(!required, "KANON_REQUIRE_SHARED=1, but {} is not there", folder.display());
    println!("skipped: {test}: {} is not there", folder.display());
    None
}

/// The engine of a test: two threads, 1 GiB.
pub(crate) fn resources() -> Resources {
    Resources { threads: 2, memory: 1 << 30, spill: None }
}

/// Calls `task` with all that a run needs.
pub(crate) fn with_run<T>(task: impl AsyncFnOnce(&Run) -> T) -> T {
    let resources = resources();
    let run = Run { resources, ..Run::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(task(&run))
}

/// A table that was opened under a policy and profiled.
pub(crate) struct Opened {
    pub(crate) schema: Schema,
    pub(crate) policy: std::sync::Arc<Policy>,
    pub(crate) classes: ClassTable,
}

/// Opens and profiles a file as a release does.
pub(crate) fn open(input: &Path, policy: &str, files: &dyn Files) -> Opened {
    let said = PolicySpec::parse(policy).unwrap();
    let input = Input::find(input.to_str().unwrap()).unwrap();
    with_run(async |run| {
        let loaded = input::open(run, &input, &input::PolicySource { spec: &said, files }).await.unwrap();
        let classes = release::profile_classes(run, &loaded).await.unwrap();
        Opened { schema: loaded.schema().clone(), policy: loaded.policy, classes }
    })
}

/// A node: its kept classes by their labels, and what it suppresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) suppressed: u64,
    /// Labels in policy order, and the rows of the class.
    pub(crate) kept: BTreeMap<Vec<String>, u64>,
}

impl Node {
    /// The sizes of the kept classes, ascending.
    pub(crate) fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.kept.values().copied().collect();
        sizes.sort_unstable();
        sizes
    }

    /// The smallest kept class.
    pub(crate) fn k(&self) -> u64 {
        self.kept.values().copied().min().unwrap_or(0)
    }
}

/// The nodes that a search found, best first.
pub(crate) fn found(outcome: &Outcome) -> Vec<Found> {
    let nodes = outcome.best.iter().map(|best| Found {
        levels: best.recoding.levels().unwrap().to_vec(),
        loss: best.loss,
        suppressed_rows: best.suppressed_rows,
        suppressed_individuals: best.suppressed_individuals,
        classes: best.classes,
        min_class: best.min_class,
    });
    nodes.collect()
}

impl Opened {
    /// Judges every node by k-anonymity with this k, which need not be the policy's: a policy cannot ask
    /// for k = 1 alone, but only under k = 1 are all classes kept, as they are.
    pub(crate) fn for_every_node(&self, k: u64, see: &mut dyn FnMut(&EvaluatedNode<'_>)) -> u64 {
        let requirements = [Requirement::of_sizes(KAnonymity::new(k).unwrap())];
        let problem = Problem {
            table: &self.classes,
            requirements: &requirements,
            objective: &Height,
            ends: Ends::Values,
            limit: self.limit(),
            threads: 2,
            progress: &Silent,
            stop: &CancelToken::default(),
        };
        let options = self.policy.options(1);
        for_every_node(Lattice { problem: &problem, options: &options }, see).unwrap()
    }

    /// All nodes of a small lattice by their levels, judged by this k.
    pub(crate) fn nodes(&self, k: u64) -> BTreeMap<Vec<usize>, Node> {
        let mut nodes = BTreeMap::new();
        let seen = self.for_every_node(k, &mut |judged| {
            let label = |class: usize| -> Vec<String> {
                let columns = self.classes.columns().iter().zip(judged.levels()).enumerate();
                columns
                    .map(|(column, (coded, level))| {
                        let code = judged.code(class, column) as usize;
                        array_value_to_string(coded.level(*level).labels(), code).unwrap()
                    })
                    .collect()
            };
            let kept: BTreeMap<_, _> = judged.kept().map(|(class, rows)| (label(class), rows)).collect();
            assert_eq!(kept.len() as u64, judged.kept_classes(), "two classes with the same labels");
            assert_eq!(kept.values().sum::<u64>() + judged.suppressed_rows(), self.classes.total_rows());
            let node = Node { suppressed: judged.suppressed_rows(), kept };
            assert!(nodes.insert(judged.levels().to_vec(), node).is_none(), "a node was judged twice");
        });
        assert_eq!(seen, nodes.len() as u64);
        nodes
    }

    /// L, the rows that the policy allows to suppress.
    pub(crate) fn limit(&self) -> u64 {
        release::limit(&self.policy, &self.classes)
    }

    /// The policy's own search; the name of the method that it took.
    pub(crate) fn search(&self, policy: &Policy, top: usize) -> (&'static str, Outcome) {
        with_run(async |run| release::search(run, policy, &self.classes, top).unwrap())
    }
}
