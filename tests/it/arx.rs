//! Against ARX 3.9.2: every optimum that it found for k-anonymity, distinct, entropy or recursive
//! l-diversity and both t-closenesses, and every node of two lattices.
//!
//! The data are UCI Adult, 30,162 rows, and the hierarchies that ARX ships. SEMANTICS.md, section
//! 4, says what ARX computes. What matters here:
//! - It cuts X_i to ten decimals, which makes up to 4.7e-10 relative at these nodes: losses agree to 1e-9.
//! - Which of several best nodes it reports is an accident of its traversal: ours must lose the same, and
//!   the counts are compared at ARX's own node.
//! - It decides by rounding whether a class that exactly reaches an entropy l does, and drops some of them.
//!   Ours keeps all, so ARX's losses and counts lie between ours and those of an l just above.
//! - Its output counts a kept class that is `*` in every column as suppressed. That touches the
//!   all-`*` node of the optima only, which none of them is; its lattice tables count that class as kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use datafusion_kanon::internals::class::{ClassTable, Classes, EvaluatedNode, Scratch};
use datafusion_kanon::internals::decimal::Decimal;
use datafusion_kanon::internals::measure::LOSSES;
use datafusion_kanon::internals::method::Outcome;
use datafusion_kanon::internals::method::lattice::Found;
use datafusion_kanon::internals::model::{Requirement, k_anonymity::KAnonymity, make};
use datafusion_kanon::internals::policy::{Folder, Policy, PolicySpec};
use datafusion_kanon::internals::release;
use serde::Deserialize;

use crate::shared::{self, Opened, found};

/// ARX's metrics and our measures; a node's losses are remembered in this order. ARX has no name
/// for the last, from which its `precision_mono` comes.
const MEASURES: &[(&str, &str)] = &[
    ("height", "height"),
    ("loss", "granularity"),
    ("loss_mean", "granularity_mean"),
    ("precision", "precision_loss"),
    ("discernability", "discernibility"),
    ("dmstar", "discernibility_star"),
    ("aecs", "average_class_size"),
    ("entropy", "non_uniform_entropy"),
    ("", "relative_height"),
];

/// The place of the measure that ARX calls `metric`.
fn place_of(metric: &str) -> usize {
    MEASURES.iter().position(|(arx, _)| *arx == metric).unwrap_or_else(|| panic!("{metric}: which measure?"))
}

/// How many optima are compared for each model and metric: all that the file has.
const OPTIMA: &[(&str, &str, usize)] = &[
    ("none", "height", 20),
    ("none", "loss", 20),
    ("none", "precision", 16),
    ("none", "discernability", 20),
    ("none", "aecs", 16),
    ("none", "entropy", 20),
    ("dl:2", "height", 8),
    ("dl:2", "loss", 8),
    ("dl:2", "discernability", 4),
    ("dl:2", "entropy", 4),
    ("dl:3", "height", 8),
    ("dl:3", "loss", 8),
    ("dl:3", "discernability", 4),
    ("dl:3", "entropy", 4),
    ("el:2", "height", 8),
    ("el:2", "loss", 8),
    ("el:2", "discernability", 4),
    ("el:2", "entropy", 4),
    ("teq:0.2", "height", 8),
    ("teq:0.2", "loss", 8),
    ("teq:0.2", "discernability", 4),
    ("teq:0.2", "entropy", 4),
    ("rcl:4:3", "height", 8),
    ("rcl:4:3", "loss", 8),
    ("rcl:4:3", "discernability", 4),
    ("rcl:4:3", "entropy", 4),
    ("thi:0.2", "height", 8),
    ("thi:0.2", "loss", 8),
    ("thi:0.2", "discernability", 4),
    ("thi:0.2", "entropy", 4),
];

/// The rows of the file that are not compared, and why.
const NOT_COMPARED: &[(&str, usize, &str)] =
    &[("elg:2", 24, "entropy with Grassberger's estimator is ARX's own")];

/// A row of arx_adult.json, the part that is compared.
#[derive(Debug, Deserialize)]
struct Entry {
    rows: u64,
    qi: Vec<String>,
    sensitive: Option<String>,
    k: Option<u64>,
    model: String,
    /// As a JSON number, which keeps its digits.
    suppression_limit: serde_json::Number,
    abs_suppression_limit: u64,
    metric: String,
    loss: f64,
    optimum: Vec<usize>,
    suppressed_rows: u64,
    classes: u64,
    min_class: u64,
    max_class: u64,
    lattice_size: u64,
}

impl Entry {
    /// What is asked of every class; `None` for a row of [`NOT_COMPARED`].
    fn asked(&self) -> Option<Asked> {
        if NOT_COMPARED.iter().any(|(model, ..)| *model == self.model) {
            return None;
        }
        let model = match self.model.as_str() {
            "none" => None,
            "dl:2" => Some(TWO_VALUES),
            "dl:3" => Some(THREE_VALUES),
            "el:2" => Some(ENTROPY),
            "teq:0.2" => Some(CLOSENESS),
            "rcl:4:3" => Some(RECURSIVE),
            "thi:0.2" => Some(HIERARCHICAL),
            _ => panic!("an unknown model: {self:?}"),
        };
        assert_eq!(self.sensitive.as_deref(), model.map(|_| SENSITIVE), "{self:?}");
        Some(Asked { k: self.k, model })
    }
}

#[derive(Deserialize)]
struct Truth {
    entries: Vec<Entry>,
}

fn entries(shared: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(shared.join("truth/arx_adult.json")).unwrap();
    serde_json::from_str::<Truth>(&text).unwrap().entries
}

/// The sensitive column of the rows with a model.
const SENSITIVE: &str = "occupation";

/// A model of the occupation and its parameters.
type Model = (&'static str, &'static [(&'static str, &'static str)]);

const TWO_VALUES: Model = ("l_diversity", &[("l", "2")]);
const THREE_VALUES: Model = ("l_diversity", &[("l", "3")]);
const ENTROPY: Model = ("entropy_l_diversity", &[("l", "2")]);
/// With an l that no class reaches which exactly reaches 2.
const ABOVE_TIES: Model = ("entropy_l_diversity", &[("l", "2.000001")]);
const CLOSENESS: Model = ("t_closeness", &[("t", "0.2")]);
const RECURSIVE: Model = ("recursive_l_diversity", &[("c", "4"), ("l", "3")]);
/// Over the hierarchy of the occupation.
const HIERARCHICAL: Model = ("t_closeness_hierarchical", &[("t", "0.2")]);

/// What is asked of every class: k-anonymity, a model of the occupation, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked {
    k: Option<u64>,
    model: Option<Model>,
}

impl Asked {
    const fn k(k: u64) -> Self {
        Self { k: Some(k), model: None }
    }

    /// The requirements; `of` is a policy that looks at the hierarchy of the occupation.
    fn requirements(self, of: &Policy) -> Vec<Requirement> {
        let k = self.k.map(|k| Requirement::of_sizes(KAnonymity::new(k).unwrap()));
        let model = self.model.map(|(model, parameters)| {
            let number =
                |(name, text): &(&str, &str)| ((*name).to_owned(), Decimal::parse(text).unwrap().into());
            let parameters: Vec<_> = parameters.iter().map(number).collect();
            let model = make(model, &parameters).unwrap();
            let looked_at = of.requirements.iter().find_map(|requirement| requirement.sensitive.clone());
            Requirement::new(model, looked_at)
        });
        k.into_iter().chain(model).collect()
    }

    /// A policy for Adult that asks this, with these quasi-identifiers.
    fn policy(self, quasi: &[String], limit: &str, objective: &str, method: &str) -> String {
        let column = |name: &String| {
            format!(
                "{name} = {{ role = \"quasi\", hierarchy = {{ file = \"adult_hierarchy_{name}.csv\" }} }}\n"
            )
        };
        let k = self.k.map(|k| format!("k = {k}\n")).unwrap_or_default();
        let columns: String = quasi.iter().map(column).collect();
        let (sensitive, require) = self.model.map_or_else(Default::default, |(model, parameters)| {
            let hierarchy = format!("{{ file = \"adult_hierarchy_{SENSITIVE}.csv\" }}");
            let parameters: String =
                parameters.iter().map(|(name, number)| format!("{name} = {number}\n")).collect();
            (
                format!("{SENSITIVE} = {{ role = \"sensitive\", hierarchy = {hierarchy} }}\n"),
                format!("[[require]]\nmodel = \"{model}\"\nsensitive = \"{SENSITIVE}\"\n{parameters}"),
            )
        });
        format!(
            "{k}suppression_limit = {limit}\nobjective = \"{objective}\"\nmethod = \"{method}\"\n\
             others = \"drop\"\nrows_are_individuals = true\n[columns]\n{columns}{sensitive}\
             [input]\ndelimiter = \";\"\n{require}"
        )
    }
}

/// What one node comes to under one demand.
struct Row {
    levels: Vec<usize>,
    suppressed: u64,
    classes: u64,
    /// 0 when nothing is kept, as in ARX's tables.
    min: u64,
    max: u64,
    /// In the order of [`MEASURES`].
    losses: Vec<f64>,
}

impl Row {
    fn new(node: &EvaluatedNode<'_>) -> Self {
        let loss = |name: &str| LOSSES.iter().find(|row| row.doc().name == name).unwrap().value(node);
        Self {
            levels: node.levels().to_vec(),
            suppressed: node.suppressed_rows(),
            classes: node.kept_classes(),
            min: node.min_class().unwrap_or(0),
            max: node.kept().map(|(_, rows)| rows).max().unwrap_or(0),
            losses: MEASURES.iter().map(|(_, ours)| loss(ours)).collect(),
        }
    }

    fn found(&self, objective: usize) -> Found {
        Found {
            levels: self.levels.clone(),
            loss: self.losses[objective],
            suppressed_rows: self.suppressed,
            suppressed_individuals: self.suppressed,
            classes: self.classes,
            min_class: (self.classes > 0).then_some(self.min),
        }
    }
}

/// Every node by its levels.
type Lattice = BTreeMap<Vec<usize>, Row>;

/// Visits every node of a lattice once and judges it by several demands. Only the roll-up and the
/// judgement are the code under test: no method takes part.
struct Walk<'a> {
    table: &'a ClassTable,
    demands: Vec<Vec<Requirement>>,
    levels: Vec<usize>,
    scratch: Scratch,
    /// One for each demand.
    lattices: Vec<Lattice>,
}

impl<'a> Walk<'a> {
    fn new(opened: &'a Opened, asked: &[Asked]) -> Self {
        let table = &opened.classes;
        Self {
            table,
            demands: asked.iter().map(|asked| asked.requirements(&opened.policy)).collect(),
            levels: vec![0; table.columns().len()],
            scratch: table.scratch(),
            lattices: asked.iter().map(|_| Lattice::new()).collect(),
        }
    }

    /// The nodes above `classes`, those of the node where the walk is, that differ from it in
    /// `column` and the columns behind it only.
    fn from(&mut self, column: usize, classes: &Classes) {
        let Some(coded) = self.table.columns().get(column) else { return self.judge(classes) };
        self.from(column + 1, classes);
        let mut rolled: Option<Classes> = None;
        for level in 1..=coded.height() {
            let next = self.raise(column, level, rolled.as_ref().unwrap_or(classes));
            self.from(column + 1, &next);
            rolled = Some(next);
        }
        self.levels[column] = 0;
    }

    /// Goes up to `level` of `column` from the classes of the node where the walk is.
    fn raise(&mut self, column: usize, level: usize, classes: &Classes) -> Classes {
        let from = self.levels.clone();
        self.levels[column] = level;
        let (to, scratch) = (&self.levels, &mut self.scratch);
        self.table.roll_up_at_most(classes, &from, to, usize::MAX, scratch).unwrap().unwrap()
    }

    fn judge(&mut self, classes: &Classes) {
        for (requirements, lattice) in self.demands.iter().zip(&mut self.lattices) {
            let node = EvaluatedNode::new(self.table, &self.levels, classes, requirements).unwrap();
            let before = lattice.insert(self.levels.clone(), Row::new(&node));
            assert!(before.is_none(), "{:?} was visited twice", self.levels);
        }
    }
}

/// Every node of a table's lattice under each of these demands, by two threads.
fn lattices(opened: &Opened, asked: &[Asked]) -> Vec<Lattice> {
    let table = &opened.classes;
    let first = Mutex::new(0..=table.columns()[0].height());
    let walk = || {
        let mut walk = Walk::new(opened, asked);
        loop {
            let Some(level) = first.lock().unwrap().next() else { return walk.lattices };
            walk.levels[0] = 0;
            let classes = walk.raise(0, level, table.base());
            walk.from(1, &classes);
        }
    };
    let halves: [Vec<Lattice>; 2] = std::thread::scope(|scope| {
        [scope.spawn(walk), scope.spawn(walk)].map(|thread| thread.join().unwrap())
    });
    let [mut all, more] = halves;
    for (all, more) in all.iter_mut().zip(more) {
        all.extend(more);
    }
    let nodes: usize = table.heights().iter().map(|height| height + 1).product();
    assert!(all.iter().all(|lattice| lattice.len() == nodes), "two threads visited the same node");
    all
}

/// Adult under some quasi-identifiers, profiled once, each node visited once and judged by all demands.
struct Adult {
    quasi: Vec<String>,
    /// For k-anonymity alone.
    plain: Opened,
    /// With the sensitive values counted, where there are rows that need it.
    counted: Option<Opened>,
    lattices: OnceLock<Vec<Lattice>>,
}

/// With all nine columns: under k = 1 every class is kept, as it is.
static NINE: OnceLock<Adult> = OnceLock::new();
const ASKED_OF_NINE: &[Asked] = &[Asked::k(1), Asked::k(2), Asked::k(5), Asked::k(10), Asked::k(100)];

/// Without the occupation.
static EIGHT: OnceLock<Adult> = OnceLock::new();
const ASKED_OF_EIGHT: &[Asked] = &[
    Asked::k(5),
    Asked { k: Some(5), model: Some(TWO_VALUES) },
    Asked { k: Some(5), model: Some(THREE_VALUES) },
    Asked { k: None, model: Some(TWO_VALUES) },
    Asked { k: None, model: Some(THREE_VALUES) },
    Asked { k: Some(5), model: Some(ENTROPY) },
    Asked { k: Some(5), model: Some(ABOVE_TIES) },
    Asked { k: None, model: Some(ENTROPY) },
    Asked { k: None, model: Some(ABOVE_TIES) },
    Asked { k: Some(5), model: Some(CLOSENESS) },
    Asked { k: None, model: Some(CLOSENESS) },
    Asked { k: Some(5), model: Some(RECURSIVE) },
    Asked { k: None, model: Some(RECURSIVE) },
    Asked { k: Some(5), model: Some(HIERARCHICAL) },
    Asked { k: None, model: Some(HIERARCHICAL) },
];

impl Adult {
    fn open(shared: &Path, quasi: &[String]) -> &'static Self {
        let (cell, counts) = match quasi.len() {
            9 => (&NINE, false),
            8 => (&EIGHT, true),
            other => panic!("{other} quasi-identifiers"),
        };
        let adult = cell.get_or_init(|| {
            let data = shared.join("data/adult");
            let open = |asked: Asked| {
                let policy = asked.policy(quasi, "0", "height", "auto");
                shared::open(&data.join("adult.csv"), &policy, &Folder(data.clone()))
            };
            let counted = counts.then(|| open(Asked { k: None, model: Some(HIERARCHICAL) }));
            Self { quasi: quasi.to_vec(), plain: open(Asked::k(2)), counted, lattices: OnceLock::new() }
        });
        assert_eq!(adult.quasi, quasi);
        adult
    }

    /// The table as a policy that asks this has it profiled.
    fn opened(&self, asked: Asked) -> &Opened {
        match asked.model {
            None => &self.plain,
            Some(_) => self.counted.as_ref().unwrap(),
        }
    }

    /// Every node under this demand.
    fn lattice(&self, asked: Asked) -> &Lattice {
        let (all, opened) = match &self.counted {
            None => (ASKED_OF_NINE, &self.plain),
            Some(counted) => (ASKED_OF_EIGHT, counted),
        };
        let lattices = self.lattices.get_or_init(|| lattices(opened, all));
        let place = all.iter().position(|one| *one == asked);
        &lattices[place.unwrap_or_else(|| panic!("{asked:?}: not among the lattices"))]
    }

    /// What an exhaustive search finds: the best nodes of all that do not suppress too much, best first.
    fn exhaustive(&self, asked: Asked, limit: u64, objective: usize, top: usize) -> Vec<Found> {
        let anonymous = self.lattice(asked).values().filter(|row| row.suppressed <= limit);
        let mut found: Vec<Found> = anonymous.map(|row| row.found(objective)).collect();
        found.sort_by(Found::compare);
        found.truncate(top);
        found
    }

    /// The policy of one row.
    fn policy(&self, shared: &Path, entry: &Entry, asked: Asked, method: &str) -> Policy {
        let (_, objective) = MEASURES[place_of(&entry.metric)];
        let text = asked.policy(&self.quasi, &entry.suppression_limit.to_string(), objective, method);
        let files = Folder(shared.join("data/adult"));
        PolicySpec::parse(&text).unwrap().resolve(&self.opened(asked).schema, &files).unwrap()
    }
}

/// Equal to 1e-9, relative.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// Whether the searches run for every row: `tests/long.sh searches`.
fn every_row() -> bool {
    std::env::var_os("KANON_EVERY_ROW").is_some()
}

/// How many of the best nodes are compared between `optimal` and an exhaustive search.
const TOP: usize = 10;

/// Compares one optimum with the best node of the lattice that was walked; `optimal` with it too, if it
/// `searches`.
fn compare(shared: &Path, entry: &Entry, asked: Asked, searches: bool) {
    let objective = place_of(&entry.metric);
    let adult = Adult::open(shared, &entry.qi);
    let policy = adult.policy(shared, entry, asked, "optimal");
    let opened = adult.opened(asked);
    assert_eq!(opened.classes.total_rows(), entry.rows, "{entry:?}");
    assert_eq!(release::limit(&policy, &opened.classes), entry.abs_suppression_limit, "{entry:?}");

    let best = adult.exhaustive(asked, entry.abs_suppression_limit, objective, TOP);
    if searches {
        let (method, optimal) = opened.search(&policy, TOP);
        assert_eq!(
            (method, optimal.proven, optimal.nodes),
            ("optimal", true, Some(entry.lattice_size)),
            "{entry:?}"
        );
        assert_eq!(found(&optimal), best, "{entry:?}");
        assert_eq!(optimal.bound, Some(best[0].loss), "{entry:?}");
    }
    if asked.model == Some(ENTROPY) {
        return compare_between(adult, entry, asked, objective, best[0].loss);
    }
    assert!(close(best[0].loss, entry.loss), "{} is not {entry:?}", best[0].loss);

    let theirs = &adult.lattice(asked)[&entry.optimum];
    assert!(close(theirs.losses[objective], entry.loss), "{} is not {entry:?}", theirs.losses[objective]);
    assert_eq!(
        (theirs.suppressed, theirs.classes, theirs.min, theirs.max),
        (entry.suppressed_rows, entry.classes, entry.min_class, entry.max_class),
        "{entry:?}"
    );
}

/// Compares an optimum for entropy l-diversity with ours, which keeps every class that exactly reaches l and
/// loses `loss`, and with one that keeps none of them.
fn compare_between(adult: &Adult, entry: &Entry, asked: Asked, objective: usize, loss: f64) {
    let above = Asked { model: Some(ABOVE_TIES), ..asked };
    let most = adult.exhaustive(above, entry.abs_suppression_limit, objective, 1)[0].loss;
    let is_between = |least: f64, most: f64| {
        (least <= entry.loss || close(least, entry.loss)) && (entry.loss <= most || close(most, entry.loss))
    };
    assert!(is_between(loss, most), "{loss} to {most}: {entry:?}");
    let (with, without) = (&adult.lattice(asked)[&entry.optimum], &adult.lattice(above)[&entry.optimum]);
    assert!(is_between(with.losses[objective], without.losses[objective]), "{entry:?}");
    assert!((with.suppressed..=without.suppressed).contains(&entry.suppressed_rows), "{entry:?}");
    assert!((without.classes..=with.classes).contains(&entry.classes), "{entry:?}");
    assert!((with.min..=without.min).contains(&entry.min_class), "{entry:?}");
    assert!((without.max..=with.max).contains(&entry.max_class), "{entry:?}");
    // Without k the smallest classes, two rows with two values, are ties; with it the two differ by few rows.
    let rows = without.suppressed - with.suppressed;
    assert!(asked.k.is_none() || rows <= entry.rows / 50, "{rows} rows reach exactly 2: {entry:?}");
}

/// truth/arx_adult.json: for each row with k-anonymity, a model of the occupation, or both, the best node
/// loses what ARX's loses; at ARX's own node all counts agree. `optimal` finds the best nodes of all for a
/// row of each model, metric and lattice, with and without suppression; for all rows where `KANON_EVERY_ROW` is set.
#[test]
fn every_optimum_of_arx() {
    let Some(shared) = shared::folder("every_optimum_of_arx") else { return };
    let all = entries(&shared);
    assert_eq!(all.len(), 280);
    for (model, rows, reason) in NOT_COMPARED {
        assert_eq!(all.iter().filter(|entry| entry.model == *model).count(), *rows, "{model}: {reason}");
    }
    // The larger lattice last: another test is at work on it.
    let mut rows: Vec<(&Entry, Asked)> =
        all.iter().filter_map(|entry| Some((entry, entry.asked()?))).collect();
    assert_eq!(rows.len(), 280 - 24);
    rows.sort_by_key(|(entry, _)| entry.qi.len());
    let mut kinds = BTreeSet::new();
    let mut is_searched = |entry: &Entry| {
        let suppresses = entry.abs_suppression_limit > 0;
        kinds.insert((entry.model.clone(), entry.metric.clone(), entry.qi.len(), suppresses)) || every_row()
    };
    let rows: Vec<_> = rows.into_iter().map(|(entry, asked)| (entry, asked, is_searched(entry))).collect();
    let (rows, compared) = (Mutex::new(rows.into_iter()), Mutex::new(BTreeMap::new()));
    let next = || rows.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((entry, asked, searches)) = next() {
                    compare(&shared, entry, asked, searches);
                    let row = (entry.model.as_str(), entry.metric.as_str());
                    *compared.lock().unwrap().entry(row).or_insert(0) += 1;
                }
            });
        }
    });
    let expected: BTreeMap<_, _> =
        OPTIMA.iter().map(|(model, metric, rows)| ((*model, *metric), *rows)).collect();
    assert_eq!(compared.into_inner().unwrap(), expected);
}

/// Returns the row of the larger lattice for this model and k, with the loss metric and a limit of 301 rows.
fn entry_of_eight<'a>(all: &'a [Entry], model: &str, k: Option<u64>) -> &'a Entry {
    let is_it = |e: &&Entry| {
        let asked = (e.model.as_str(), e.k, e.qi.len(), e.metric.as_str(), e.abs_suppression_limit);
        asked == (model, k, 8, "loss", 301)
    };
    all.iter().find(is_it).unwrap()
}

/// The method `exhaustive` itself, once for each kind of model: above, its answers are taken from
/// lattices that were walked once for all rows.
#[test]
fn exhaustive_finds_what_the_walked_lattice_says() {
    let Some(shared) = shared::folder("exhaustive_finds_what_the_walked_lattice_says") else { return };
    let all = entries(&shared);
    for (model, k) in [("none", Some(5)), ("dl:3", None)] {
        let entry = entry_of_eight(&all, model, k);
        let (adult, asked) = (Adult::open(&shared, &entry.qi), entry.asked().unwrap());
        let policy = adult.policy(&shared, entry, asked, "exhaustive");
        let (method, outcome) = adult.opened(asked).search(&policy, TOP);
        let best = found(&outcome);
        let Outcome { nodes, evaluated, proven, bound, .. } = outcome;
        assert_eq!((method, nodes, evaluated, proven), ("exhaustive", Some(4320), 4320, true));
        assert_eq!(best, adult.exhaustive(asked, 301, place_of("loss"), TOP));
        assert_eq!(bound, Some(best[0].loss));
        assert!(close(best[0].loss, entry.loss), "{} is not {entry:?}", best[0].loss);
    }
}

/// Our loss for a metric of ARX's lattice tables.
fn of_lattice(metric: &str, table: &ClassTable, row: &Row) -> f64 {
    match metric {
        // `precision` as if nothing were suppressed: the mean of g_i/H_i, our relative_height over
        // the columns.
        "precision_mono" => row.losses[place_of("")] / row.levels.len() as f64,
        // `entropy` as if nothing were suppressed: what the levels take from the columns, summed.
        // No measure of ours gives it alone, but the columns do.
        "entropy_mono" => {
            table.columns().iter().zip(&row.levels).map(|(column, level)| column.entropy(*level)).sum()
        }
        other => row.losses[place_of(other)],
    }
}

/// truth/arx_adult_lattice_k2.csv.gz and _k5.csv.gz: at every one of the 12,960 nodes, what is suppressed and
/// kept, and all ten metrics. No node is an exception, the all-`*` node included.
#[test]
fn every_node_of_the_arx_lattice() {
    let Some(shared) = shared::folder("every_node_of_the_arx_lattice") else { return };
    for k in [2, 5] {
        let file = File::open(shared.join(format!("truth/arx_adult_lattice_k{k}.csv.gz"))).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
        let mut table = csv::ReaderBuilder::new().delimiter(b';').from_reader(text.as_bytes());
        let header: Vec<String> = table.headers().unwrap().iter().map(str::to_owned).collect();
        let place = |name: &str| header.iter().position(|column| column == name).unwrap();
        let (quasi, counts, metrics) = (&header[..9], &header[9..15], &header[15..]);
        assert_eq!(counts.len() + metrics.len(), 6 + 10);
        let adult = Adult::open(&shared, quasi);
        let (as_is, lattice) = (adult.lattice(Asked::k(1)), adult.lattice(Asked::k(k)));

        let (mut seen, mut compared) = (BTreeSet::new(), vec![0; metrics.len()]);
        for record in table.records() {
            let record = record.unwrap();
            let count = |name: &str| record[place(name)].parse::<u64>().unwrap();
            let levels: Vec<usize> = (0..9).map(|column| record[column].parse().unwrap()).collect();
            let (ours, all) = (&lattice[&levels], &as_is[&levels]);
            assert_eq!(
                (ours.suppressed, ours.classes, ours.min, ours.max),
                (
                    count("suppressed"),
                    count("classes_kept"),
                    count("min_class_kept"),
                    count("max_class_kept")
                ),
                "k = {k}, {levels:?}: suppressed, kept classes, smallest, largest"
            );
            assert_eq!(
                (all.suppressed, all.classes, all.min),
                (0, count("classes_all"), count("min_class_all")),
                "{levels:?}: all classes, smallest"
            );
            for (metric, compared) in metrics.iter().zip(&mut compared) {
                let theirs: f64 = record[place(metric)].parse().unwrap();
                let loss = of_lattice(metric, &adult.plain.classes, ours);
                assert!(close(loss, theirs), "k = {k}, {levels:?}, {metric}: {loss}, ARX: {theirs}");
                *compared += 1;
            }
            assert!(seen.insert(levels), "a node stands twice in the table");
        }
        assert_eq!((seen.len(), lattice.len(), as_is.len()), (12_960, 12_960, 12_960));
        assert_eq!(compared, [12_960; 10]);
    }
}

/// Compares what the searches from the literature find for one row with the lattice that was walked once for
/// all rows; returns whether `samarati` and `incognito` accept it.
fn compare_classic(shared: &Path, entry: &Entry, asked: Asked) -> bool {
    let (adult, objective) = (Adult::open(shared, &entry.qi), place_of(&entry.metric));
    let opened = adult.opened(asked);
    let policy = |method: &str| adult.policy(shared, entry, asked, method);
    let anonymous = adult.exhaustive(asked, entry.abs_suppression_limit, objective, usize::MAX);
    let height = |found: &Found| found.levels.iter().sum::<usize>();

    let (_, datafly) = opened.search(&policy("datafly"), TOP);
    assert!(found(&datafly).iter().all(|node| anonymous.contains(node)), "{entry:?}: {datafly:?}");
    let lattice = &policy("incognito");
    let refused = shared::with_run(async |run| release::search(run, lattice, &opened.classes, TOP).err());
    if let Some(refused) = refused {
        assert!(refused.to_string().contains("use method = \"optimal\""), "{entry:?}: {refused}");
        return false;
    }
    let (_, incognito) = opened.search(lattice, TOP);
    assert_eq!(found(&incognito), anonymous[..TOP.min(anonymous.len())], "{entry:?}");
    assert!(incognito.proven, "{entry:?}");

    let least = anonymous.iter().map(height).min().unwrap();
    let of_least: Vec<Found> = anonymous.iter().filter(|node| height(node) == least).cloned().collect();
    let (_, samarati) = opened.search(&policy("samarati"), TOP);
    assert_eq!(found(&samarati), of_least[..TOP.min(of_least.len())], "{entry:?}");
    true
}

/// The searches from the literature: `incognito` finds the best nodes of all, `samarati` those of the least
/// height, `datafly` an anonymous node or nothing. The first two refuse the rows that they could get wrong: a
/// model that suppression can break. One row of each model, with and without suppression, by loss on the
/// smaller lattice; all rows where `KANON_EVERY_ROW` is set.
#[test]
fn classic_searches_on_rows_of_arx() {
    let Some(shared) = shared::folder("classic_searches_on_rows_of_arx") else { return };
    let all = entries(&shared);
    let mut rows: Vec<(&Entry, Asked)> =
        all.iter().filter_map(|entry| Some((entry, entry.asked()?))).collect();
    assert_eq!(rows.len(), 280 - 24);
    let kind = |entry: &Entry| (entry.model.clone(), entry.abs_suppression_limit > 0);
    if !every_row() {
        let mut kinds = BTreeSet::new();
        rows.retain(|(entry, _)| entry.qi.len() == 8 && entry.metric == "loss" && kinds.insert(kind(entry)));
        assert_eq!(rows.len(), 14);
    }
    let count = rows.len();
    let (rows, accepted) = (Mutex::new(rows.into_iter()), Mutex::new(BTreeMap::new()));
    let next = || rows.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((entry, asked)) = next() {
                    let is_accepted = compare_classic(&shared, entry, asked);
                    let mut accepted = accepted.lock().unwrap();
                    let counts: &mut [usize; 2] = accepted.entry(kind(entry)).or_default();
                    counts[usize::from(is_accepted)] += 1;
                }
            });
        }
    });
    let accepted = accepted.into_inner().unwrap();
    assert_eq!(accepted.values().flatten().sum::<usize>(), count);
    for ((model, suppresses), counts) in accepted {
        let survives = ["none", "dl:2", "dl:3"].contains(&&*model) || !suppresses;
        assert_eq!(counts[usize::from(!survives)], 0, "{model} {suppresses} {counts:?}");
    }
}

/// The searches from the literature on the larger lattice: what each promises, by the lattice that was
/// walked once for all rows: for k, and where `KANON_EVERY_ROW` is set for l, too. `benches/search.rs` runs
/// them for every row with k, l or both.
#[test]
fn classic_searches_keep_their_promises_on_adult() {
    let Some(shared) = shared::folder("classic_searches_keep_their_promises_on_adult") else { return };
    let all = entries(&shared);
    for (model, k) in [("none", Some(5)), ("dl:3", None)].into_iter().take(if every_row() { 2 } else { 1 }) {
        let entry = entry_of_eight(&all, model, k);
        let (adult, asked, objective) =
            (Adult::open(&shared, &entry.qi), entry.asked().unwrap(), place_of("loss"));
        let search = |method: &str| {
            let policy = adult.policy(&shared, entry, asked, method);
            let (name, outcome) = adult.opened(asked).search(&policy, TOP);
            assert_eq!(name, method);
            outcome
        };
        let anonymous = adult.exhaustive(asked, 301, objective, usize::MAX);

        let incognito = search("incognito");
        assert_eq!(found(&incognito), anonymous[..TOP]);
        assert!(incognito.proven && Some(incognito.evaluated) < incognito.nodes, "{incognito:?}");

        let samarati = search("samarati");
        let height = |found: &Found| found.levels.iter().sum::<usize>();
        let least = anonymous.iter().map(height).min().unwrap();
        let of_least: Vec<Found> = anonymous.iter().filter(|node| height(node) == least).cloned().collect();
        assert_eq!(found(&samarati), of_least[..TOP.min(of_least.len())]);

        let datafly = found(&search("datafly"));
        assert!(datafly.len() == 1 && anonymous.contains(&datafly[0]), "{datafly:?}");
    }
}
