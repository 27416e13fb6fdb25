//! Every optimal node, expressed once more as classes, releases the same rows.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;
use crate::class::{Budget, Region, Unlimited};
use crate::engine::{Resources, Run};
use crate::generalize::Value;
use crate::input::infer_types::Typing;
use crate::input::{Input, Loaded, PolicySource, open, open_typed};
use crate::method::ReleaseKind;
use crate::method::microaggregation::dp_centroids::Clusters;
use crate::policy::{Folder, PolicySpec};
use crate::release::kind::{Extent, kind_row};
use crate::release::publish::released_files::ReleasedFiles;
use crate::release::sink::Sink;
use crate::release::{profile_classes, search};
use crate::verify::Verified;
use crate::verify::noise::NoiseKey;

/// Rows that depend on the seed alone; texts look like regions here and there.
fn people(seed: u64) -> String {
    let mut state = seed;
    let mut below = |end: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % end
    };
    let mut text = String::from("who,age,zip,sex,marital,ward,diagnosis\n");
    for _ in 0..60 + below(60) {
        let age = [below(70).to_string(), String::new()][usize::from(below(12) == 0)].clone();
        let zip = ["", "0210", "0214", "{a; b}0", "*1", "<=34"][below(6)];
        let (sex, marital) = (["F", "M", ""][below(3)], ["single", "widowed", "married"][below(3)]);
        let (who, ward, diagnosis) = (below(80), below(3), ["flu", "gout", "HIV", ""][below(4)]);
        writeln!(text, "{who},{age},{zip},{sex},{marital},{ward},{diagnosis}").unwrap();
    }
    text
}

const COLUMNS: &str = r#"
age       = { role = "quasi", hierarchy = { range = [5, 10, 20] } }
zip       = { role = "quasi", hierarchy = { prefix = [3, 2] } }
sex       = { role = "quasi" }
marital   = { role = "quasi", hierarchy = { file = "marital.csv" } }
ward      = { role = "insensitive" }
diagnosis = { role = "sensitive" }
"#;

/// What a release holds: the counts of its verification, and the other columns' rows of each class.
type Found = (Verified, Vec<Vec<String>>);

/// Plans a recoding as releases of a kind do, writes the rows and verifies them.
async fn released(
    run: &Run,
    loaded: &Loaded,
    again: &Loaded,
    recoding: Recoding,
    kind: ReleaseKind,
) -> Found {
    let classes = profile_classes(run, loaded).await.unwrap();
    let noise_key = |_: &Clusters| -> Result<NoiseKey> { panic!("no noise") };
    let found = PlanInput { recoding, classes, extent: Extent::Private, noise_key: &noise_key };
    let plan = kind_row(kind).plan(run, loaded, found).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut files = ReleasedFiles::new(folder.path().to_path_buf(), Arc::clone(&loaded.policy));
    let memory: Arc<dyn Budget> = Arc::new(Unlimited);
    for (table, rows) in plan.content.tables.iter().zip(plan.rows) {
        files.take(run, table, rows, &memory).await.unwrap();
    }
    let written = files.taken(&again.session).unwrap();
    let judged = plan.content.judge.judge(run, again, written, Extent::Public).await.unwrap();

    let mut of_class: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    let file = fs::File::open(folder.path().join("part-00000.parquet")).unwrap();
    for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
        let batch = batch.unwrap();
        let cell = |name: &str, row| {
            format!("{:?}", Value::read(batch.column_by_name(name).unwrap(), row).unwrap().text_form())
        };
        for row in 0..batch.num_rows() {
            let labels = ["age", "zip", "sex", "marital"].map(|name| cell(name, row)).to_vec();
            of_class.entry(labels).or_default().push(cell("ward", row) + &cell("diagnosis", row));
        }
    }
    let mut classes: Vec<Vec<String>> = of_class.into_values().collect();
    classes.iter_mut().for_each(|rows| rows.sort());
    classes.sort();
    (judged.verified, classes)
}

/// Expresses levels as classes; those that fail a model are suppressed by it, as at the node.
fn as_classes(table: &ClassTable, levels: &[usize]) -> Recoding {
    let mut classes: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
    let mut regions = Vec::new();
    let class_of_base = (0..table.base().len()).map(|base| {
        let columns = table.columns().iter().zip(levels).enumerate();
        let codes = columns.map(|(at, (column, level))| {
            let value = table.code(table.base(), base, at);
            let values = column.level(0).of_value().iter().position(|code| *code == value).unwrap();
            column.level(*level).of_value()[values]
        });
        let codes: Vec<u32> = codes.collect();
        let next = u32::try_from(classes.len()).unwrap();
        Some(*classes.entry(codes).or_insert_with_key(|codes| {
            let shown =
                codes.iter().zip(levels).map(|(code, level)| Region::Label { level: *level, code: *code });
            regions.push(shown.collect());
            next
        }))
    });
    let class_of_base = class_of_base.collect();
    Recoding::Classes(Arc::new(ReleasedClasses::new(table, class_of_base, regions).unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_optimal_node_expressed_as_classes_releases_the_same_rows() {
    let resources = Resources { threads: 2, memory: 1 << 28, spill: None };
    let run = Run { resources, ..Run::default() };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("marital.csv"), "single,alone,*\nwidowed,alone,*\nmarried,not alone,*\n")
        .unwrap();
    let path = folder.path().join("people.csv");
    let (mut nodes, mut suppressing) = (0, 0);
    for seed in 0..5 {
        fs::write(&path, people(seed)).unwrap();
        let input = Input::find(path.to_str().unwrap()).unwrap();
        for (who, model, limit) in [
            (
                "rows_are_individuals = true\n[columns]\nwho = { role = \"identifier\" }",
                "k_anonymity\"\nk = 3",
                "0.2",
            ),
            ("[columns]\nwho = { role = \"individual\" }", "l_diversity\"\nl = 2", "0.1"),
        ] {
            let (lines, columns) = who.split_once("[columns]").unwrap();
            let text = format!(
                "k = 2\nsuppression_limit = {limit}\naccept_homogeneity = [\"diagnosis\"]\n{lines}\n[[require]]\nmodel = \
                 \"{model}\n[columns]{columns}{COLUMNS}"
            );
            let text = if model.starts_with('k') { text.replacen("k = 2\n", "", 1) } else { text };
            let spec = PolicySpec::parse(&text).unwrap();
            let files = Folder(folder.path().to_path_buf());
            let loaded = open(&run, &input, &PolicySource { spec: &spec, files: &files }).await.unwrap();
            let again = open_typed(&run, &input, &PolicySource { spec: &spec, files: &files }, Typing::Plain)
                .await
                .unwrap();
            let table = profile_classes(&run, &loaded).await.unwrap();
            let (_, outcome) = search(&run, &loaded.policy, &table, 3).unwrap();
            for best in &outcome.best {
                let levels = best.recoding.levels().unwrap();
                let (recoding, kind) = (best.recoding.clone(), ReleaseKind::Levels);
                let of_levels = released(&run, &loaded, &again, recoding, kind).await;
                let (recoding, kind) = (as_classes(&table, levels), ReleaseKind::Regions);
                let of_classes = released(&run, &loaded, &again, recoding, kind).await;
                assert_eq!(of_levels, of_classes, "seed {seed}, {levels:?}");
                nodes += 1;
                suppressing += u32::from(best.suppressed_rows > 0);
            }
        }
    }
    assert!(nodes >= 25 && suppressing >= 10, "{nodes} nodes, {suppressing} suppress rows");
}
