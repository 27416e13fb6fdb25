//! Releases by other versions: every version verifies the formats of earlier ones, from 2 on.

use std::fs;

use datafusion::parquet::basic::Compression;
use datafusion_kanon::internals::release::publish::record::{FORMAT, RECORD};
use datafusion_kanon::internals::release::publish::write;

use crate::command::Place;
use crate::house::root;
use crate::releases::{
    FOOTER, Lab, OUT, PART, as_kanon_writes, read_parquet, record, reseal, seal, write_parquet,
};

/// Copies a release, its input and its policy.
fn fixture(format: u32) -> Place {
    let place = Place::new();
    let from = root().join(format!("tests/fixtures/format_{format}"));
    for name in ["people.csv", "policy.toml", "jobs.csv", "safe.private.json"] {
        place.write(name, fs::read(from.join(name)).unwrap());
    }
    for entry in fs::read_dir(from.join("safe")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        place.write(&format!("safe/{name}"), fs::read(&path).unwrap());
    }
    place
}

#[test]
fn every_earlier_format_is_verified() {
    for format in 2..=FORMAT {
        let place = fixture(format);
        for line in [
            "verify safe",
            "verify safe --input people.csv",
            "verify safe --input people.csv --policy policy.toml",
        ] {
            place.run(line).exit(0);
        }
        let linked =
            place.run("link people.csv safe --policy policy.toml --on zip,job --format json").exit(0).json();
        assert_eq!(linked["on"][0]["generalized"], "prefix:2");
        let part = place.path(&format!("safe/{PART}"));
        let mut bytes = fs::read(&part).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(part, bytes).unwrap();
        place.run("verify safe").exit(1).says("is not the file that the record describes");
    }
}

/// The record and the files name a version that could have made the release.
#[test]
fn releases_of_other_versions() {
    let lab = Lab::released();
    let part = lab.out().join(PART);
    let rows = read_parquet(&part);
    let write = |by: &str| write_parquet(&part, &rows, as_kanon_writes(&FOOTER, by));
    let lines: [&[&str]; 2] = [&["verify", OUT], &["verify", OUT, "--input", "people.parquet"]];
    let forged = |tool: &str, code: i32, says: &str| {
        write(tool);
        reseal(&lab, |record| record.tool = tool.into());
        for line in lines {
            lab.run(line).exit(code, says);
        }
    };
    forged(write::CREATED_BY, 0, "verified");
    for tool in [
        "kanon 0.0.99",
        "kanon 0.1",
        "kanon 0.1.0.0",
        "kanon 0.1.00",
        "kanon 0.1.70000",
        "kanon 0.1.0 ",
        "other 0.1.0",
        "",
    ] {
        forged(tool, 1, "the record names no version of kanon");
    }
    for tool in ["kanon 9.9.9", "kanon 0.65535.0"] {
        forged(tool, 3, "verify it with that version or a later one");
    }
    // This version compares the bytes that it is said to have written.
    let other =
        as_kanon_writes(&FOOTER, write::CREATED_BY).into_builder().set_compression(Compression::SNAPPY);
    write_parquet(&part, &rows, other.build());
    reseal(&lab, |record| record.tool = write::CREATED_BY.into());
    for line in lines {
        lab.run(line).exit(1, "holds data other than its rows");
    }
}

#[test]
fn a_format_that_is_not_known_is_named() {
    let lab = Lab::released();
    for (format, advice) in [(1, "release the data again"), (FORMAT + 1, "use the version that wrote it")] {
        let mut other = record(&lab);
        other.format = format;
        seal(&lab, other);
        lab.run(&["verify", OUT]).exit(3, &format!("the record has format {format}"));
        lab.run(&["verify", OUT]).exit(3, advice);
    }
    let text = fs::read_to_string(lab.out().join(RECORD)).unwrap();
    fs::write(lab.out().join(RECORD), text.replace("\"format\": 3", "\"format\": -3")).unwrap();
    lab.run(&["verify", OUT]).exit(1, "was edited or damaged");
}
