//! Rows are dealt by chance, and by the key alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;
use crate::engine::Resources;
use crate::generalize::Value;
use crate::input::infer_types::Typing;
use crate::input::{Input, PolicySource, open, open_typed};
use crate::method::Recoding;
use crate::policy::{Folder, PolicySpec};
use crate::release::pipeline::carry_out;
use crate::release::publish::released_files::ReleasedFiles;
use crate::release::sink::Sink;
use crate::release::{profile_classes, search};

const POLICY: &str = r#"
method = "anatomy"
rows_are_individuals = true
[[require]]
model = "l_diversity"
l = 2
[columns]
age = { role = "quasi", hierarchy = { range = [10] } }
zip = { role = "quasi" }
ward = { role = "insensitive" }
disease = { role = "sensitive", allow_unique = true }
"#;

/// The bytes of each file of a release of this CSV under a key.
async fn released(csv: &str, threads: usize, key: u8) -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("people.csv"), csv).unwrap();
    let resources = Resources { threads, memory: 1 << 28, spill: None };
    let run = Run { resources, ..Run::default() };
    let spec = PolicySpec::parse(POLICY).unwrap();
    let files = Folder(folder.path().to_path_buf());
    let input = Input::find(folder.path().join("people.csv").to_str().unwrap()).unwrap();
    let loaded = open(&run, &input, &PolicySource { spec: &spec, files: &files }).await.unwrap();
    let table = profile_classes(&run, &loaded).await.unwrap();
    let (_, outcome) = search(&run, &loaded.policy, &table, 1).unwrap();
    let Recoding::Groups(groups) = &outcome.best[0].recoding else { panic!("not groups") };
    let policy = PolicySource { spec: &spec, files: &files };
    let again = open_typed(&run, &input, &policy, Typing::Plain);
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    let key = DealingKey([key; DealingKey::BYTES]);
    let plan = plan_dealt(&run, &loaded, Arc::clone(groups), key).await.unwrap();
    let mut written = ReleasedFiles::new(out.clone(), Arc::clone(&loaded.policy));
    let made = carry_out(&run, &loaded, plan, again, &mut written, None).await.unwrap();
    let tables = written.records(&made.content.tables).unwrap();
    assert_eq!(made.judged.classes, tables[1].rows / 2);
    let mut all = BTreeMap::new();
    for table in &tables {
        for file in &table.files {
            let path = table.path(&out).join(&file.name);
            all.insert(format!("{:?}/{}", table.folder, file.name), fs::read(path).unwrap());
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_alone_decides_the_bytes() {
    let mut lines: Vec<String> = Vec::new();
    for row in 0..400 {
        let mut line = String::new();
        write!(
            line,
            "{},{},{},{}",
            row % 31,
            ["98103", "", "98105"][row % 3],
            row % 4,
            ["flu", "gout", "HIV", "asthma"][row * 7 % 4]
        )
        .unwrap();
        lines.push(line);
    }
    let csv = |lines: &[String]| format!("age,zip,ward,disease\n{}\n", lines.join("\n"));
    let first = released(&csv(&lines), 1, 1).await;
    lines.rotate_left(123);
    lines.reverse();
    assert!(released(&csv(&lines), 4, 1).await == first, "the same rows in another order, by more threads");
    let other = released(&csv(&lines), 4, 2).await;
    let differ: Vec<bool> = first.iter().zip(&other).map(|(one, other)| one != other).collect();
    assert_eq!(differ, [true, false], "another key deals otherwise, but the groups stay the same");
}

/// How often each set of rows with their groups comes out, under so many keys.
async fn dealings(rows: &str, keys: u8) -> BTreeMap<Vec<String>, u32> {
    let mut found: BTreeMap<Vec<String>, u32> = BTreeMap::new();
    for key in 0..keys {
        let files = released(&format!("age,zip,ward,disease\n{rows}"), 1, key).await;
        let bytes = bytes::Bytes::from(files.into_iter().next().unwrap().1);
        let rows = ParquetRecordBatchReaderBuilder::try_new(bytes)
            .unwrap()
            .build()
            .unwrap()
            .next()
            .unwrap()
            .unwrap();
        let text = |row: usize| {
            let cell = |name: &str| {
                Value::read(rows.column_by_name(name).unwrap(), row).unwrap().text_form().unwrap()
            };
            cell("age") + "/" + &cell("group_id")
        };
        let mut dealing: Vec<String> = (0..rows.num_rows()).map(text).collect();
        dealing.sort();
        *found.entry(dealing).or_default() += 1;
    }
    found
}

/// Two people with flu and two with gout make two groups: each of the four ways to deal them must come
/// up as often as the others.
#[tokio::test(flavor = "multi_thread")]
async fn every_dealing_is_as_likely() {
    let found = dealings("1,a,x,flu\n2,a,x,flu\n3,a,x,gout\n4,a,x,gout\n", 120).await;
    assert_eq!(found.len(), 4, "{found:?}");
    // 30 are expected of each, with a deviation of 4.7; the keys are fixed, so this never fails by chance.
    assert!(found.values().all(|times| (15..=45).contains(times)), "{found:?}");
}

/// Equal people are dealt like others: two of three with flu are equal, and of three with gout. The third
/// of each can be in any of the three groups.
#[tokio::test(flavor = "multi_thread")]
async fn equal_rows_are_dealt_like_others() {
    let found = dealings("1,a,x,flu\n1,a,x,flu\n2,a,x,flu\n1,a,x,gout\n1,a,x,gout\n3,a,x,gout\n", 180).await;
    assert_eq!(found.len(), 9, "{found:?}");
    // 20 are expected of each, with a deviation of 4.2.
    assert!(found.values().all(|times| (8..=32).contains(times)), "{found:?}");
}
