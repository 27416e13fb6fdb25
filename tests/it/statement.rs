//! What the publisher states in the public record, and what a run finds out by it: `--released-on`,
//! the columns that were left out, the policy of a release, columns that hold other values than
//! before.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, TimeUnit};
use datafusion_kanon::internals::release::publish::record::{LeftOut, PublicRecord, Statement};

use crate::command::{Place, table};

const POLICY: &str = r#"
k = 3
suppression_limit = 0.1
rows_are_individuals = true
accept_homogeneity = ["diagnosis"]
others = "drop"
[columns]
name      = { role = "identifier" }
age       = { role = "quasi", hierarchy = { range = [10, 50] }, max_level = 0 }
sex       = { role = "quasi" }
diagnosis = { role = "sensitive", allow_unique = true }
"#;

fn people(rows: i64) -> RecordBatch {
    let text = |word: &'static str, n: i64| move |row: i64| format!("{word}{}", row % n);
    let texts =
        |of: &dyn Fn(i64) -> String| Arc::new(StringArray::from_iter_values((0..rows).map(of))) as ArrayRef;
    table([
        ("name", texts(&text("N", 1_000_000))),
        ("age", Arc::new(Int64Array::from_iter_values((0..rows).map(|row| 30 + row % 3)))),
        ("sex", texts(&text("s", 2))),
        ("diagnosis", texts(&text("d", 4))),
        ("note", texts(&text("x", 7))),
    ])
}

fn place() -> Place {
    let place = Place::new();
    place.parquet("in.parquet", &people(60));
    place.write("p.toml", POLICY);
    place
}

fn record(place: &Place) -> PublicRecord {
    PublicRecord::read(&place.path("out")).unwrap()
}

#[test]
fn the_record_states_what_the_policy_promises() {
    let place = place();
    let ran = place.run("release in.parquet --policy p.toml --to out").exit(0);
    assert!(ran.out.contains("age as is (as text) | sex as is"), "{ran:?}");
    let statement = record(&place).statement.unwrap();
    let left_out = |role: &str, columns, names| (role.to_owned(), LeftOut { columns, names });
    assert_eq!(
        statement,
        Statement {
            released_on: None,
            method: "auto".to_owned(),
            objective: "granularity".to_owned(),
            suppression_limit: "0.1".to_owned(),
            rows_are_individuals: true,
            accept_homogeneity: vec!["diagnosis".to_owned()],
            allow_unique: vec!["diagnosis".to_owned()],
            left_out: [left_out("identifier", 1, None), left_out("others", 1, None)].into(),
            risk_constants: [("share_at_risk".to_owned(), [("r".to_owned(), "0.2".to_owned())].into())]
                .into(),
        }
    );
    place.run("verify out").exit(0);
    place.run("verify out --input in.parquet").exit(0);
    let page = place.run("explain out").exit(0).out;
    for part in [
        "at most 10 % of the rows are left out",
        "states that each row is another person",
        "all rows of a group may share one value of `diagnosis`",
        "1 column with the role identifier\n",
        "1 column without a role\n",
        "with a risk above r (r = 0.2)",
    ] {
        assert!(page.contains(part), "no `{part}` in {page}");
    }
    assert!(!page.contains("Released on") && !page.contains("`name`"), "{page}");

    place.write(
        "p.toml",
        POLICY.replace("[columns]", "[output]\nreleased_on = 2026-11-20\nleft_out = \"names\"\n[columns]"),
    );
    place.run("release in.parquet --policy p.toml --to out --overwrite").exit(0);
    let statement = record(&place).statement.unwrap();
    assert_eq!(statement.released_on.as_deref(), Some("2026-11-20"));
    let names = |role: &str| statement.left_out[role].names.clone().unwrap();
    assert_eq!((names("identifier"), names("others")), (vec!["name".to_owned()], vec!["note".to_owned()]));
    let page = place.run("explain out").exit(0).out;
    assert!(page.contains("Released on 2026-11-20") && page.contains("role identifier: `name`"), "{page}");

    let first = place.files("out");
    place.run("release in.parquet --policy p.toml --to out --overwrite --released-on 2026-11-20").exit(0);
    assert!(first == place.files("out"), "the same day gives the same bytes");
    place.run("release in.parquet --policy p.toml --to out --overwrite --released-on 2026-11-24").exit(0);
    assert_eq!(record(&place).statement.unwrap().released_on.as_deref(), Some("2026-11-24"));
    place.run("verify out --input in.parquet").exit(0);
    // The day of the earlier release is not that of another one.
    place.run("release in.parquet --recoding out.private.json --to again").exit(0);
    assert_eq!(PublicRecord::read(&place.path("again")).unwrap().statement.unwrap().released_on, None);
    place.run("release in.parquet --recoding out.private.json --to third --released-on 2026-11-25").exit(0);
    place.run("verify third --input in.parquet").exit(0);

    for day in ["2026-11-31", "24.11.2026", "2026-11-24T00:00:00", "+2026-11-24"] {
        let line = format!("release in.parquet --policy p.toml --to new --released-on {day}");
        place.run(&line).exit(2).says("expected a day such as 2026-11-24");
        place.write(
            "bad.toml",
            POLICY.replace("[columns]", &format!("[output]\nreleased_on = \"{day}\"\n[columns]")),
        );
        place
            .run("release in.parquet --policy bad.toml --to new")
            .exit(2)
            .says("output.released_on: expected a day");
    }
}

#[test]
fn no_other_statement_is_verified() {
    let place = place();
    place.run("release in.parquet --policy p.toml --to out").exit(0);
    let good = record(&place);
    let forged = |change: &dyn Fn(&mut Statement)| {
        let mut record = good.clone();
        change(record.statement.as_mut().unwrap());
        place.write("out/_kanon.json", record.sealed().unwrap().to_json().unwrap());
    };
    let identifier = |statement: &mut Statement, columns, names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        statement.left_out.insert("identifier".to_owned(), LeftOut { columns, names: Some(names) });
    };
    let wrong: [(&str, &dyn Fn(&mut Statement)); 18] = [
        // No model looks at the diagnosis, so somebody must have accepted it.
        ("the accepted homogeneity", &|statement| statement.accept_homogeneity.clear()),
        ("the method", &|statement| statement.method = "mondrian".into()),
        ("the method", &|statement| statement.method = "best".into()),
        ("the column of individuals", &|statement| {
            statement.left_out.insert("individual".into(), LeftOut { columns: 1, names: None });
        }),
        ("the columns that were left out", &|statement| {
            identifier(statement, 1, &["twice"]);
            statement
                .left_out
                .insert("text".into(), LeftOut { columns: 1, names: Some(vec!["twice".into()]) });
        }),
        ("the day of the release", &|statement| statement.released_on = Some("Bob, 41".into())),
        ("the day of the release", &|statement| statement.released_on = Some("2026-2-3".into())),
        ("the method", &|statement| statement.method = "Bob".into()),
        ("the objective", &|statement| statement.objective = "Bob".into()),
        ("the suppression limit", &|statement| statement.suppression_limit = "1.5".into()),
        ("the suppression limit", &|statement| statement.suppression_limit = "0.10".into()),
        ("the accepted homogeneity", &|statement| statement.accept_homogeneity = vec!["sex".into()]),
        ("the columns allowed to be unique", &|statement| {
            statement.allow_unique = vec!["diagnosis".into(), "diagnosis".into()]
        }),
        ("the columns that were left out", &|statement| identifier(statement, 1, &["sex"])),
        ("the columns that were left out", &|statement| identifier(statement, 1, &["a", "b"])),
        ("the columns that were left out", &|statement| identifier(statement, 0, &[])),
        ("the columns that were left out", &|statement| {
            statement.left_out.insert("Bob".into(), LeftOut { columns: 1, names: None });
        }),
        ("the constants of the risks", &|statement| statement.risk_constants.clear()),
    ];
    for (what, change) in wrong {
        forged(change);
        place.run("verify out").exit(1).says(&format!("the record's statement is wrong about {what}"));
    }
    // Possible, but not what the policy says.
    let other: [&dyn Fn(&mut Statement); 5] = [
        &|statement| statement.method = "optimal".into(),
        &|statement| statement.suppression_limit = "0.05".into(),
        &|statement| statement.rows_are_individuals = false,
        &|statement| statement.allow_unique.clear(),
        &|statement| identifier(statement, 1, &["surname"]),
    ];
    for change in other {
        forged(change);
        place.run("verify out").exit(0);
        let against = "verify out --input in.parquet --policy p.toml";
        place.run(against).exit(1).says("the record's statement is not that of the policy");
    }
    // Nobody but the publisher knows the day.
    forged(&|statement| statement.released_on = Some("2026-11-24".into()));
    place.run("verify out --input in.parquet --policy p.toml").exit(0);
}

#[test]
fn the_policy_of_a_release_is_found_by_its_record() {
    let place = place();
    place.run("release in.parquet --policy p.toml --to out").exit(0);
    std::fs::remove_file(place.path("out.private.json")).unwrap();
    place.write("other.toml", POLICY.replace("k = 3", "k = 4"));
    place.write("broken.toml", "k = ");
    let found = place.run("verify out --input in.parquet").exit(0).out;
    assert!(
        found.contains("policy    p.toml, which fits the public record; there is no private record"),
        "{found}"
    );
    place.write("twin.toml", POLICY);
    place
        .run("verify out --input in.parquet")
        .exit(2)
        .says("several policies may have made it: p.toml, twin.toml");
    place.run("verify out --input in.parquet --policy twin.toml").exit(0);
    for name in ["p.toml", "twin.toml"] {
        std::fs::remove_file(place.path(name)).unwrap();
    }
    place.run("verify out --input in.parquet").exit(2).says("give the policy with --policy");
    place.run("verify out").exit(0);
}

#[test]
fn columns_that_hold_other_values_are_told() {
    let place = place();
    place.run("release in.parquet --policy p.toml --to out").exit(0);
    let tonight = people(60);
    let with = |ages: ArrayRef| {
        let schema = tonight.schema();
        let columns = schema.fields().iter().zip(tonight.columns()).map(|(field, column)| {
            let column = if field.name() == "age" { Arc::clone(&ages) } else { Arc::clone(column) };
            (field.name().clone(), column)
        });
        let columns: Vec<(String, ArrayRef)> = columns.collect();
        place.parquet(
            "tonight.parquet",
            &table(columns.iter().map(|(name, array)| (name.as_str(), Arc::clone(array)))),
        );
        place.run("release tonight.parquet --recoding out.private.json --to again --overwrite --format json")
    };
    let refused =
        with(Arc::new(StringArray::from_iter_values((0..60).map(|row| (30 + row % 3).to_string())))).exit(2);
    let error: serde_json::Value = serde_json::from_str(&refused.err).unwrap();
    assert_eq!(error["code"], "other_columns", "{refused:?}");
    let why = error["error"].as_str().unwrap();
    assert!(
        why.contains(
            "columns.age: the column has the type text, and had the type Int64 in the earlier release"
        ),
        "{why}"
    );
}

/// Regions are applied by place, so other places are refused; types that are guessed from cells may
/// change where labels do not.
#[test]
fn columns_in_another_order_are_told() {
    let place = place();
    for method in ["auto", "mondrian"] {
        place.write(
            "p.toml",
            POLICY.replace("k = 3", &format!("k = 3\nmethod = \"{method}\"")).replace(", max_level = 0", ""),
        );
        place.run("release in.parquet --policy p.toml --to out --overwrite").exit(0);
        let rows = people(60);
        place.parquet("moved.parquet", &rows.project(&[0, 2, 1, 3, 4]).unwrap());
        let again = |input: &str| {
            place.run(&format!("release {input} --recoding out.private.json --to again --overwrite"))
        };
        again("moved.parquet")
            .exit(2)
            .says("columns: the columns are in another order than in the earlier release");
        // Columns that are left out may stand anywhere.
        place.parquet("left.parquet", &rows.project(&[4, 1, 2, 3, 0]).unwrap());
        again("left.parquet").exit(0);

        let csv = |end: &str| -> String {
            (0..60).fold("name,age,sex,diagnosis\n".to_owned(), |text, row| {
                text + &format!("N{row},{}{end},s{},d{}\n", 30 + row % 3, row % 2, row % 4)
            })
        };
        place.write("whole.csv", csv(""));
        place.write("broken.csv", csv(".5"));
        place.run("release broken.csv --policy p.toml --to out --overwrite").exit(0);
        match method {
            "auto" => _ = again("whole.csv").exit(0),
            _ => _ = again("whole.csv").exit(2).says("columns.age: the column has the type Int64"),
        }
    }
}

/// Days since another date are counted again; the type that is compared is that of the days.
#[test]
fn days_since_a_date_are_found_again() {
    let place = Place::new();
    let days = |of: &dyn Fn(i32) -> i32| Arc::new(Date32Array::from_iter_values((0..60).map(of))) as ArrayRef;
    place.parquet(
        "in.parquet",
        &table([("came", days(&|row| 19_000 + row % 3)), ("left", days(&|row| 19_005 + row % 3))]),
    );
    for method in ["auto", "mondrian"] {
        place.write("p.toml", format!(
            "k = 3\nmethod = \"{method}\"\nrows_are_individuals = true\n[columns]\ncame = {{ role = \"identifier\" }}\n\
             left = {{ role = \"quasi\", relative_to = \"came\", hierarchy = {{ range = [10] }} }}\n"
        ));
        place.run("release in.parquet --policy p.toml --to out --overwrite").exit(0);
        place.run("release in.parquet --recoding out.private.json --to again --overwrite").exit(0);
        place.run("verify again --input in.parquet").exit(0);
    }
}

/// Who gets the release alone can verify it, whatever the type of the values was.
#[test]
fn labels_of_dates_are_verified_alone() {
    let place = Place::new();
    let days: ArrayRef = Arc::new(Date32Array::from_iter_values((0..60).map(|row| row % 4 * 400)));
    let moments = arrow::compute::cast(&days, &DataType::Timestamp(TimeUnit::Millisecond, None)).unwrap();
    let zoned =
        arrow::compute::cast(&days, &DataType::Timestamp(TimeUnit::Second, Some("Europe/Berlin".into())))
            .unwrap();
    for values in [days, moments, zoned] {
        place.parquet("in.parquet", &table([("d", values)]));
        for hierarchy in ["period = [\"year\", \"century\"]", "date = [\"year\"]", "known = \"weekday\""] {
            let line = format!(
                "d = {{ role = \"quasi\", hierarchy = {{ {hierarchy} }}, min_level = 1, max_level = 1 }}"
            );
            place.write("p.toml", format!("k = 2\nrows_are_individuals = true\n[columns]\n{line}\n"));
            place.run("release in.parquet --policy p.toml --to out --overwrite").exit(0);
            place.run("verify out").exit(0);
            place.run("verify out --input in.parquet").exit(0);
        }
    }
}

#[test]
fn nights_without_rows_are_empty_whatever_the_policy() {
    let place = place();
    place.write(
        "p.toml",
        POLICY.replace(
            "sex       = { role = \"quasi\" }",
            "sex = { role = \"quasi\", hierarchy = { merge = { levels = 2 } } }",
        ),
    );
    place.run("release in.parquet --policy p.toml --to out").exit(0);
    place.parquet("none.parquet", &people(0));
    std::fs::create_dir(place.path("night")).unwrap();
    for how in ["--policy p.toml", "--recoding out.private.json"] {
        for input in ["none.parquet", "night"] {
            let refused = place.run(&format!("release {input} {how} --to new --format json")).exit(3);
            let error: serde_json::Value = serde_json::from_str(&refused.err).unwrap();
            assert_eq!(error["code"], "empty_input", "{how} {input}: {refused:?}");
        }
    }
    // Two people are not enough for any value: not met, and no wrong policy.
    place.parquet("two.parquet", &people(2));
    place
        .run("release two.parquet --recoding out.private.json --to new")
        .exit(1)
        .says("no value that the earlier release lists");
}

#[test]
fn all_undecided_columns_are_named() {
    let place = place();
    let open = POLICY
        .replace("sex       = { role = \"quasi\" }", "sex = { role = \"?\" }")
        .replace("\"identifier\"", "\"?\"");
    place.write("p.toml", open);
    place
        .run("release in.parquet --policy p.toml --to out")
        .exit(2)
        .says("columns: still undecided: name, sex; replace each `?`");
}
