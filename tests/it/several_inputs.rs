//! Several INPUTs of one command are one table.
#![allow(clippy::unwrap_used, reason = "a test may")]

use crate::command::Place;
use crate::formats::{POLICY, people};
use crate::lake::Lake;

fn place() -> Place {
    let (place, rows) = (Place::new(), people());
    place.write("p.toml", POLICY);
    place.parquet("all.parquet", &rows);
    place.parquet("a.parquet", &rows.slice(0, 20));
    place.parquet("b/x.parquet", &rows.slice(20, 20));
    place.parquet("b/y.parquet", &rows.slice(40, 20));
    place
}

#[test]
fn every_command_takes_several() {
    let place = place();
    place.run("release all.parquet --policy p.toml --to whole").exit(0);
    let ran = place.run("release a.parquet b --policy p.toml --to out").exit(0);
    assert_eq!(place.files("out"), place.files("whole"));
    assert!(ran.out.contains("kanon verify out --input a.parquet --input b\n"), "{}", ran.out);
    place.run("verify out --input a.parquet --input b").exit(0);
    place.run("verify out --input b/*.parquet --input a.parquet --policy p.toml").exit(0);
    place.run("verify out --input a.parquet --input b/x.parquet").exit(1).says("verification refused");
    for command in [
        "check INPUT --policy p.toml",
        "risk INPUT --policy p.toml",
        "search INPUT --policy p.toml",
        "init INPUT",
    ] {
        let of = |input: &str| place.run(&command.replace("INPUT", input));
        let (several, whole) = (of("b a.parquet"), of("all.parquet"));
        assert_eq!(several.code, whole.code, "{command}");
        assert_eq!(
            several.out.replace("b a.parquet", "IN"),
            whole.out.replace("all.parquet", "IN"),
            "{command}"
        );
    }
    let names = "zip,a\n02100,021\n";
    place.write("zip.csv", names);
    let check =
        |inputs: &str| place.run(&format!("hierarchy check zip.csv {inputs} --column zip --format json")).out;
    assert_eq!(check("--input a.parquet --input b"), check("--input all.parquet"));
}

#[test]
fn what_is_no_one_table_is_refused() {
    let place = place();
    let refused = |inputs: &str, code: i32, why: &str| {
        place.run(&format!("release {inputs} --policy p.toml --to out")).exit(code).says(why);
        assert!(!place.path("out").exists());
    };
    refused("a.parquet a.parquet", 2, "named twice");
    refused("b b/x.parquet", 2, "named twice");
    refused("a.parquet -", 2, "standard input cannot be a part of a table");
    refused("a.parquet none.parquet", 3, "none.parquet");
    place.write("c.csv", "dob,zip\n");
    refused("a.parquet c.csv", 3, "Parquet and CSV files are mixed");
    place.parquet("d/year=2024/z.parquet", &people());
    place.parquet("d/year=2025/z.parquet", &people());
    refused("a.parquet d", 3, "lies beside the folders of `year`");
    refused("d/year=2024 d/year=2025", 2, "named one by one, so they give no column `year`");
    // One file has many names.
    let whole = place.path("a.parquet").display().to_string();
    refused("a.parquet ./a.parquet", 2, "named twice");
    refused(&format!("a.parquet {whole}"), 2, "named twice");
    #[cfg(unix)]
    std::os::unix::fs::symlink(&whole, place.path("link.parquet")).unwrap();
    refused("link.parquet a.parquet", 2, "named twice");
    // Each pattern is looked at, whatever else is there.
    refused("a.parquet ou?", 2, "matches it");
    // OUT lies in none of them.
    place.run("release a.parquet b --policy p.toml --to b/out").exit(2).says("inside the input folder");
}

#[test]
fn one_may_lie_in_a_store() {
    let lake = Lake::with_people();
    let rows = people();
    lake.place.parquet("near.parquet", &rows.slice(0, 30));
    lake.run("release in.parquet --policy p.toml --to whole").exit(0);
    lake.run("release near.parquet s3://lake/in/b.parquet --policy p.toml --to out").exit(0);
    assert_eq!(lake.place.files("out"), lake.place.files("whole"));
    let twice = "release s3://lake/in s3a://lake/in/b.parquet --policy p.toml --to out2";
    lake.run(twice).exit(2).says("named twice");
    lake.run("verify out --input s3://lake/in/b.parquet --input near.parquet").exit(0);
}
