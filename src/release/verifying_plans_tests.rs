//! Every plan of a verification is the engine's own.

use std::fmt::Write as _;
use std::fs;

use super::*;
use crate::engine::class_key::{NAME_OF_CLASS_KEY, one_key};
use crate::engine::watch::{has_parts_of_ours, watched};
use crate::engine::{Resources, Run, column, counting_rules};
use crate::input::{Input, PolicySource};
use crate::policy::{Folder, PolicySpec};

/// 200 rows of 150 people.
fn people() -> String {
    let mut text = String::from("who,age,zip,sex,stay,diagnosis\n");
    for row in 0..200 {
        let (age, zip, sex) =
            (18 + row * 7 % 50, ["021", "022", "033", "044"][row * row % 4], ["f", "m"][row / 3 % 2]);
        let (who, stay, diagnosis) = (row % 150, row % 4, ["flu", "gout", "hiv"][row / 2 % 3]);
        writeln!(text, "{who},{age},{zip},{sex},{stay},{diagnosis}").unwrap();
    }
    text
}

const COLUMNS: &str = r#"
age       = { role = "quasi", clip = [18, 80], hierarchy = { range = [5, 10, 20] } }
zip       = { role = "quasi", hierarchy = { merge = { levels = 2 } } }
sex       = { role = "quasi" }
stay      = { role = "insensitive" }
diagnosis = { role = "sensitive", allow_unique = true }
"#;

/// What is required, by method, and who is counted.
const POLICIES: [(&str, &str, &str); 7] = [
    ("\"auto\"", CLOSE, ROWS),
    ("\"auto\"", OVER_SUBSET, PEOPLE),
    (
        "\"auto\"",
        "accept_homogeneity = [\"diagnosis\"]\npopulation = \"people.csv\"\n[[require]]\nmodel = \"k_map\"\nk = 3",
        ROWS,
    ),
    ("\"mondrian\"", OVER_SUBSET, PEOPLE),
    ("\"mdav\"", CLOSE, ROWS),
    ("\"anatomy\"", "[[require]]\nmodel = \"l_diversity\"\nl = 2\nsensitive = \"diagnosis\"", ROWS),
    ("{ dp_centroids = { epsilon = 50 } }", "", ROWS),
];
const CLOSE: &str = "[[require]]\nmodel = \"t_closeness\"\nt = 0.9\nsensitive = \"diagnosis\"";
const OVER_SUBSET: &str = "accept_homogeneity = [\"diagnosis\"]\n[[require]]\nmodel = \"l_diversity\"\nl = 2\nsensitive = \"diagnosis\"\nquasi = [\"age\", \"sex\"]";
const ROWS: &str = "text";
const PEOPLE: &str = "individual";

#[tokio::test(flavor = "multi_thread")]
async fn no_plan_of_a_verification_is_ours() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("people.csv");
    fs::write(&path, people()).unwrap();
    let input = Input::find(path.to_str().unwrap()).unwrap();
    let files = Folder(folder.path().to_path_buf());
    let resources = Resources { threads: 2, memory: 1 << 28, spill: None };
    let run = Run { resources, ..Run::default() };
    for (at, (method, models, who)) in POLICIES.into_iter().enumerate() {
        let columns = match method {
            _ if method.contains("dp_centroids") => "age = { role = \"quasi\", clip = [18, 80] }",
            _ if ["mdav", "anatomy"].iter().any(|name| method.contains(name))
                || models.contains("population") =>
            {
                &COLUMNS.replace("merge = { levels = 2 }", "prefix = [2]").replace("clip = [18, 80], ", "")
            }
            _ if models == OVER_SUBSET => &format!("{COLUMNS}\nwho = {{ role = \"{who}\" }}"),
            _ => COLUMNS,
        };
        let unit = if who == ROWS { "rows_are_individuals = true" } else { "" };
        let policy = format!(
            "k = 3\nsuppression_limit = 0.5\nothers = \"drop\"\nmethod = {method}\n{unit}\n{models}\n[columns]\n{columns}"
        );
        let spec = PolicySpec::parse(&policy).unwrap();
        let source = PolicySource { spec: &spec, files: &files };
        let place = Place::beside(&folder.path().join(format!("out{at}/out"))).unwrap();
        let (before, _) = watched();
        release(&run, &input, &source, &place, false).await.unwrap();
        let written = LocalRelease::read(&place, Needed::All, &run.stop).unwrap();
        check_release(&run, &written, None, None).await.unwrap();
        check_release(&run, &written, Some(&(&input).into()), Some(&source)).await.unwrap();
        let (plans, ours) = watched();
        assert_eq!(ours, Vec::<String>::new(), "{method}");
        assert!(plans > before + 5, "{method}: {} plans", plans - before);
    }
}

/// The test above could fail.
#[tokio::test]
async fn a_plan_with_our_parts_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("people.csv");
    fs::write(&path, people()).unwrap();
    let input = Input::find(path.to_str().unwrap()).unwrap();
    let resources = Resources { threads: 2, memory: 1 << 28, spill: None };
    let session = resources.session(counting_rules()).unwrap();
    let csv = crate::policy::CsvOptions::default();
    let table = input.table(&session, &csv, &|_| crate::policy::CsvType::Text).await.unwrap();
    let plain = table.clone().aggregate(vec![column("zip")], Vec::new()).unwrap();
    assert!(!has_parts_of_ours(&plain.create_physical_plan().await.unwrap()));
    let key = one_key(vec![column("zip"), column("sex")], [1, 2], table.schema()).unwrap().unwrap();
    let keyed = table.aggregate(vec![key.alias(NAME_OF_CLASS_KEY)], Vec::new()).unwrap();
    assert!(has_parts_of_ours(&keyed.create_physical_plan().await.unwrap()));
}
