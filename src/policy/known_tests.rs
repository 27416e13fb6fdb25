//! Policies with hierarchies that come with the tool.

use super::spec::*;
use super::*;

#[test]
fn known_hierarchies_stand_under_their_names() {
    let column = |spec: &str| {
        PolicySpec::parse(&format!("k = 5\n[columns]\nzip = {{ role = \"quasi\", hierarchy = {spec} }}"))
    };
    for row in crate::known::KNOWN {
        let spec = column(&format!("{{ known = {:?} }}", row.doc.name)).unwrap();
        let column = spec.column("zip").unwrap().hierarchy.as_ref().unwrap();
        match (&column.levels, column.key()) {
            (LevelsSpec::Made(levels), "known") => assert_eq!(levels.len(), row.levels.len()),
            _ => panic!("{} is no file", row.doc.name),
        }
    }
    let read = |name: &str| column(&format!("{{ known = {name:?} }}")).unwrap().csv_type("zip");
    assert_eq!(
        [read("us_zip"), read("weekday"), read("hour")],
        [CsvType::Text, CsvType::Date, CsvType::Text]
    );
    let spec = column("{ outside = \"join\", known = \"us_zip\", level = 2 }").unwrap();
    match &spec.column("zip").unwrap().hierarchy.as_ref().unwrap().levels {
        LevelsSpec::Made(levels) => {
            let said: Vec<String> = levels.iter().map(|level| level.descriptor().to_string()).collect();
            assert_eq!(said, ["known:us_zip level:1 outside:join", "known:us_zip level:2 outside:join"]);
        }
        LevelsSpec::File(_) | LevelsSpec::Merged(_) => panic!("no file"),
    }
    let wrong = |spec: &str| column(spec).unwrap_err().to_string();
    let contry = wrong("{ known = \"contry\" }");
    assert!(contry.starts_with("columns.zip.hierarchy.known: expected \"country\", \"email\""), "{contry}");
    assert!(contry.ends_with("found \"contry\"; did you mean \"country\"?"), "{contry}");
    assert_eq!(
        wrong("{ known = \"isced\", level = 2 }"),
        "columns.zip.hierarchy.known: `isced` has 1 level (attainment), not 2"
    );
    assert_eq!(
        wrong("{ known = \"isced\", outside = \"drop\" }"),
        "columns.zip.hierarchy.outside: expected \"refuse\" or \"join\", found \"drop\""
    );
    assert_eq!(
        wrong("{ prefix = [3], outside = \"join\" }"),
        "columns.zip.hierarchy.outside: goes beside `known`, not beside `prefix`"
    );
}
