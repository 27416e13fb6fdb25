//! A table repeated twenty times says the same: every model reaches the same fraction, or twenty
//! times the count, and keeps the same classes at every node.
//!
//! The data are UCI Adult, 30,162 rows, the sample every fifth of them: repeated, 120,660 rows of a
//! population of 603,240. ARX 3.9.2 computes hierarchical t-closeness with 32-bit products and
//! accepts classes of the repeated table that it refuses of the single one. Only sizes grow: where
//! a model bounds one, the bound does, too.

use std::collections::BTreeSet;
use std::path::Path;

use datafusion::prelude::{CsvReadOptions, SessionContext};
use datafusion_kanon::internals::class::EvaluatedNode;
use datafusion_kanon::internals::decimal::Decimal;
use datafusion_kanon::internals::model::{ClassModel, MODELS, ModelRow, Needs};
use datafusion_kanon::internals::policy::Folder;
use datafusion_kanon::internals::sql::register_all;
use tempfile::TempDir;

use crate::pycanon::{numbers, run};
use crate::shared::{self, Opened};

const TIMES: u64 = 20;

/// The names of the quasi-identifiers.
const QUASI: &[&str] = &["sex", "race", "education"];

/// Adult with a column `asked`, the k that a row asks for: the whole table and a sample, each row
/// so many times, and the hierarchies.
fn folder(shared: &Path, times: u64) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let data = shared.join("data/adult");
    let text = std::fs::read_to_string(data.join("adult.csv")).unwrap();
    let mut lines = text.lines();
    let header = lines.next().unwrap();
    let rows: Vec<String> =
        (0..).zip(lines).map(|(at, line): (u64, &str)| format!("{line};{}\n", at % 7 * times)).collect();
    let write = |name: &str, rows: &[&String]| {
        let once: String = rows.iter().map(|row| row.as_str()).collect();
        let text = format!("{header};asked\n{}", once.repeat(times as usize));
        std::fs::write(folder.path().join(name), text).unwrap();
    };
    write("whole.csv", &rows.iter().collect::<Vec<_>>());
    write("sample.csv", &rows.iter().step_by(5).collect::<Vec<_>>());
    for column in QUASI.iter().chain(&["occupation"]) {
        let name = format!("adult_hierarchy_{column}.csv");
        std::fs::copy(data.join(&name), folder.path().join(&name)).unwrap();
    }
    folder
}

fn model_of(row: &ModelRow) -> Box<dyn ClassModel> {
    let one = |name: &str| (name.to_owned(), Decimal::integer(1).into());
    row.with(&row.parameters.iter().map(|parameter| one(parameter.name)).collect::<Vec<_>>()).unwrap()
}

/// The query for what a model reached.
fn query(row: &ModelRow) -> String {
    let (name, needs, quasi) = (row.doc.name, model_of(row).needs(), QUASI.join(", "));
    let before = match needs {
        Needs::Population => {
            let names: Vec<String> = QUASI.iter().map(|name| format!("'{name}'")).collect();
            return format!("SELECT reached FROM {name}(sample, whole, {})", names.join(", "));
        }
        Needs::Size | Needs::Table => String::new(),
        Needs::SensitiveCounts if !row.constants.is_empty() => "3, occupation, ".to_owned(),
        Needs::SensitiveCounts => "occupation, ".to_owned(),
        Needs::Distribution => "\"salary-class\", ".to_owned(),
        Needs::Order => "age, ".to_owned(),
        Needs::Hierarchy => "'occupations', occupation, ".to_owned(),
        Needs::Integers => "asked, ".to_owned(),
    };
    // Coarser, where the finest classes are so small that they reach the worst of all.
    let quasi = match needs {
        Needs::Size | Needs::Table | Needs::Integers => quasi,
        _ => "sex".to_owned(),
    };
    format!("SELECT {name}({before}{quasi}) FROM whole")
}

/// What the repeated table reaches for what the table reaches.
fn grown(row: &ModelRow) -> f64 {
    match row.doc.name {
        "k_anonymity" | "k_map" | "personalized_k_anonymity" => TIMES as f64,
        "average_risk" => 1.0 / TIMES as f64,
        _ => 1.0,
    }
}

async fn session(folder: &Path) -> SessionContext {
    let session = SessionContext::new();
    register_all(&session).unwrap();
    for name in ["whole", "sample"] {
        let file = folder.join(format!("{name}.csv"));
        let options = CsvReadOptions::new().delimiter(b';');
        session.register_csv(name, file.to_str().unwrap(), options).await.unwrap();
    }
    let file = folder.join("adult_hierarchy_occupation.csv");
    let options = CsvReadOptions::new().delimiter(b';').has_header(false);
    session.register_csv("hierarchy", file.to_str().unwrap(), options).await.unwrap();
    run(&session, "SELECT * FROM load_hierarchy('occupations', hierarchy)").await;
    session
}

#[tokio::test]
async fn every_model_reaches_the_same() {
    let Some(shared) = shared::folder("repeated") else { return };
    let (once, repeated) = (folder(&shared, 1), folder(&shared, TIMES));
    let (once, repeated) = (session(once.path()).await, session(repeated.path()).await);
    for row in MODELS {
        let sql = query(row);
        let (of_once, of_repeated) = (numbers(&once, &sql).await[0], numbers(&repeated, &sql).await[0]);
        let expected = of_once.unwrap_or_else(|| panic!("{sql}: nothing is reached")) * grown(row);
        assert!(expected.is_finite() && expected != 0.0, "{sql}: {expected} says little");
        let found = of_repeated.unwrap();
        assert!((found - expected).abs() <= 1e-14 * expected.abs(), "{sql}: {found} {expected}");
    }
}

/// A policy that requires every model; sizes as often.
fn policy(times: u64) -> String {
    let column = |name: &&str| {
        format!("{name} = {{ role = \"quasi\", hierarchy = {{ file = \"adult_hierarchy_{name}.csv\" }} }}\n")
    };
    let columns: String = QUASI.iter().map(column).collect();
    let of_occupation = "sensitive = \"occupation\"";
    let requirements = [
        ("k_anonymity", format!("k = {}", 10 * times)),
        ("alpha_k_anonymity", format!("alpha = 0.3\n{of_occupation}")),
        ("l_diversity", format!("l = 8\n{of_occupation}")),
        ("l_diversity", "l = 2\nsensitive = \"age\"".to_owned()),
        ("entropy_l_diversity", format!("l = 7\n{of_occupation}")),
        ("recursive_l_diversity", format!("c = 0.6\nl = 3\n{of_occupation}")),
        ("t_closeness", format!("t = 0.25\n{of_occupation}")),
        ("t_closeness_ordered", "t = 0.05\nsensitive = \"age\"".to_owned()),
        ("t_closeness_hierarchical", format!("t = 0.2\n{of_occupation}")),
        ("basic_beta_likeness", format!("beta = 1.5\n{of_occupation}")),
        ("enhanced_beta_likeness", format!("beta = 1\n{of_occupation}")),
        ("delta_disclosure", format!("delta = 1.2\n{of_occupation}")),
        ("personalized_k_anonymity", "sensitive = \"asked\"".to_owned()),
        ("k_map", format!("k = {}", 30 * times)),
        ("delta_presence", "lo = 0.1\nhi = 0.3".to_owned()),
        ("average_risk", format!("r = {}", 0.02 / times as f64)),
    ];
    let requirements = requirements.map(|(model, of)| format!("[[require]]\nmodel = \"{model}\"\n{of}\n"));
    format!(
        "population = \"whole.csv\"\nothers = \"drop\"\nrows_are_individuals = true\n[columns]\n{columns}\
         occupation = {{ role = \"sensitive\", hierarchy = {{ file = \"adult_hierarchy_occupation.csv\" }} }}\n\
         age = {{ role = \"sensitive\" }}\nasked = {{ role = \"preference\" }}\n[input]\ndelimiter = \";\"\n{}",
        requirements.concat()
    )
}

fn opened(shared: &Path, times: u64) -> Opened {
    let folder = folder(shared, times);
    shared::open(&folder.path().join("sample.csv"), &policy(times), &Folder(folder.path().to_owned()))
}

/// What a requirement makes of a node: of each class whether it is kept, the suppressed rows,
/// whether none and whether up to a tenth may be.
type Judged = (Vec<bool>, u64, [bool; 2]);

/// What every requirement makes of every node.
fn judged(opened: &Opened) -> Vec<(String, Vec<Judged>)> {
    let (table, requirements) = (&opened.classes, &opened.policy.requirements);
    let heights = table.heights();
    let nodes = (0..=heights[0])
        .flat_map(|a| (0..=heights[1]).map(move |b| (a, b)))
        .flat_map(|(a, b)| (0..=heights[2]).map(move |c| vec![a, b, c]));
    let nodes: Vec<Vec<usize>> = nodes.collect();
    let mut all: Vec<(String, Vec<Judged>)> =
        requirements.iter().map(|one| (one.model.doc().name.to_owned(), Vec::new())).collect();
    for levels in &nodes {
        let classes = table.roll_up(table.base(), &vec![0; levels.len()], levels).unwrap();
        for (requirement, (_, judged)) in requirements.chunks(1).zip(&mut all) {
            let node = EvaluatedNode::new(table, levels, &classes, requirement).unwrap();
            let kept = node.all().map(|(.., kept)| kept).collect();
            let limits = [0, table.total_rows() / 10].map(|limit| node.is_anonymous(limit));
            judged.push((kept, node.suppressed_rows(), limits));
        }
    }
    all
}

#[test]
fn every_model_judges_every_class_the_same() {
    let Some(shared) = shared::folder("repeated") else { return };
    let (once, repeated) = (opened(&shared, 1), opened(&shared, TIMES));
    assert_eq!([&once, &repeated].map(|table| table.classes.total_rows()), [6_033, 120_660]);
    let (once, repeated) = (judged(&once), judged(&repeated));
    for ((name, once), (_, repeated)) in once.iter().zip(&repeated) {
        assert_eq!((once.len(), repeated.len()), (16, 16), "{name}");
        for ((kept, suppressed, limits), repeated) in once.iter().zip(repeated) {
            assert_eq!(&(kept.clone(), suppressed * TIMES, *limits), repeated, "{name}");
        }
        // Neither all holds nor nothing.
        let verdicts: BTreeSet<bool> =
            once.iter().flat_map(|(kept, _, limits)| kept.iter().chain(limits)).copied().collect();
        assert_eq!(verdicts.len(), 2, "{name}");
    }
    let judged: BTreeSet<&str> = once.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(judged, MODELS.iter().map(|row| row.doc.name).collect());
}
