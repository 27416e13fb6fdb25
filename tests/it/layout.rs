//! How the files of a release are laid out: rows of a row group, length of a file, compression.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;

use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::metadata::RowGroupMetaData;
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};

use datafusion_kanon::records::{self, Layout, PublicRecord};

use crate::command::Place;
use crate::house::root;

/// The rows of each row group, and how the columns are compressed.
fn groups(file: &Path) -> (Vec<i64>, BTreeSet<String>) {
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    let groups = reader.metadata().row_groups();
    let name = |compression: Compression| format!("{compression:?}").split('(').next().unwrap().to_owned();
    let names =
        groups.iter().flat_map(|group| group.columns().iter().map(|column| name(column.compression())));
    (groups.iter().map(RowGroupMetaData::num_rows).collect(), names.collect())
}

#[test]
fn a_policy_says_how_files_are_laid_out() {
    let place = Place::new();
    place.run("generate --rows 40000 --to in.parquet").exit(0);
    let policy = root().join("data/visits.toml");
    let policy = policy.display();
    let release = |out: &str, options: &str| {
        place.run(&format!("release in.parquet --policy {policy} --to {out} {options}")).exit(0);
        place.run(&format!("verify {out}")).exit(0);
        place.run(&format!("verify {out} --input in.parquet")).exit(0);
    };
    release("plain", "");
    let rows = |out: &str| {
        let sql =
            format!("sql -c 'SELECT count(*) AS n, count(DISTINCT zip) AS z FROM \"{out}\"' --format json");
        place.run(&sql).exit(0).out
    };
    let record = fs::read_to_string(place.path("plain/_kanon.json")).unwrap();
    assert!(!record.contains("layout"), "a record says only what a policy says");
    for (name, written) in [
        ("none", "UNCOMPRESSED"),
        ("snappy", "SNAPPY"),
        ("lz4", "LZ4_RAW"),
        ("gzip", "GZIP"),
        ("zstd", "ZSTD"),
    ] {
        // Row groups end within batches.
        let keys = format!(
            "--set output.compression={name} --set output.row_group_rows=10000 --set output.file_bytes=20000"
        );
        release(name, &keys);
        assert_eq!(rows(name), rows("plain"), "{name}");
        let files = place.files(name);
        let parts: Vec<&String> = files.keys().filter(|name| name.starts_with("part-")).collect();
        assert!(parts.len() > 1, "{name}: {parts:?}");
        let mut all = 0;
        for part in &parts {
            let (groups, compressions) = groups(&place.path(name).join(part));
            assert!(groups.iter().all(|rows| *rows <= 10_000) && groups[0] == 10_000, "{name}: {groups:?}");
            assert_eq!(compressions, BTreeSet::from([written.to_owned()]), "{name}");
            all += groups.iter().sum::<i64>();
        }
        let (groups, _) = groups(&place.path("plain/part-00000.parquet"));
        assert_eq!(all, groups.iter().sum::<i64>(), "{name}");
        let again = format!("release in.parquet --policy {policy} --to {name}_again {keys} --threads 1");
        place.run(&again).exit(0);
        assert_eq!(place.files(&format!("{name}_again")), files, "{name}");
    }
    // Files of another layout than the policy's are no release under it.
    place.run(&format!("verify lz4 --input in.parquet --policy {policy}")).exit(1).says("laid out otherwise");
    // A record that was forged and sealed again.
    let record = PublicRecord::read(&place.path("lz4")).unwrap();
    let layout = |change: fn(&mut Layout)| {
        let mut forged = record.clone();
        change(&mut forged.layout);
        place.write("lz4/_kanon.json", forged.sealed().unwrap().to_json().unwrap());
        place.run("verify lz4").exit(1)
    };
    layout(|layout| layout.row_group_rows = 0).says("a layout of files that kanon does not write");
    layout(|layout| layout.compression = records::Compression::Snappy).says("holds data other than its rows");
    layout(|layout| layout.file_bytes = 1 << 30).says("does not end where kanon begins a new file");
    for (key, why) in [
        ("row_group_rows=10", "expected a whole number from 1000 to 100000000"),
        ("file_bytes=1", "expected a whole number from 10000 to"),
        ("compression=brotli", "expected one of \"none\", \"snappy\""),
    ] {
        let line = format!("release in.parquet --policy {policy} --to other --set output.{key}");
        place.run(&line).exit(2).says(why);
    }
}
