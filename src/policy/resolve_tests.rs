//! Tests of resolving policies against tables, with every error message for a policy that does not
//! fit.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, Field, Schema};

use super::*;
use crate::error::ErrorKind;

fn schema(columns: &[(&str, DataType)]) -> Schema {
    Schema::new(columns.iter().map(|(name, t)| Field::new(*name, t.clone(), true)).collect::<Vec<_>>())
}

fn patients() -> Schema {
    schema(&[
        ("notes", DataType::new_list(DataType::Utf8, true)),
        ("zip", DataType::Utf8),
        ("age", DataType::Int32),
        ("dob", DataType::Date32),
        ("marital", DataType::Utf8View),
        ("diagnosis", DataType::Utf8),
    ])
}

fn files() -> BTreeMap<String, String> {
    BTreeMap::from([("marital.csv".into(), "single,alone\nmarried,not alone\ndivorced,alone\n".into())])
}

pub(super) fn resolve(text: &str) -> Result<Policy> {
    PolicySpec::parse(text)?.resolve(&patients(), &files())
}

/// Returns the error of a policy that drops all other columns.
fn error(columns: &str) -> String {
    let error = resolve(&format!("k = 5\nothers = \"drop\"\n[columns]\n{columns}")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Policy, "{error}");
    error.to_string()
}

#[test]
fn a_policy_is_resolved() {
    let policy = resolve(
        r#"
        k = 5
        suppression_limit = 0.05
        rows_are_individuals = true
        accept_homogeneity = ["diagnosis"]
        [columns]
        dob       = { role = "quasi", hierarchy = { date = ["month", "year"] }, min_level = 1 }
        zip       = { role = "quasi", hierarchy = { prefix = [4, 3] }, weight = 2.5, max_level = 2 }
        marital   = { role = "quasi", hierarchy = { file = "marital.csv" } }
        age       = { role = "quasi" }
        diagnosis = { role = "sensitive" }
        notes     = { role = "text" }
        "#,
    )
    .unwrap();
    let quasi: Vec<_> = policy.quasi.iter().map(|q| (q.name.as_str(), q.weight, q.levels.clone())).collect();
    assert_eq!(
        quasi,
        [("dob", 1.0, 1..=3), ("zip", 2.5, 0..=2), ("marital", 1.0, 0..=2), ("age", 1.0, 0..=1)]
    );
    let columns: Vec<&str> = policy.columns.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(columns, ["notes", "zip", "age", "dob", "marital", "diagnosis"]);
    let released: Vec<&str> = policy.released().map(|(name, _)| name).collect();
    assert_eq!(released, ["zip", "age", "dob", "marital", "diagnosis"]);
    assert_eq!(policy.requirements.iter().map(Requirement::text).collect::<Vec<_>>(), ["k_anonymity(5)"]);
    assert_eq!((policy.spec.objective.doc().name, policy.spec.method.name.as_str()), ("granularity", "auto"));
    assert_eq!(policy.spec.suppression_limit.to_string(), "0.05");
    assert!(policy.spec.rows_are_individuals);
    let Some(zip) = policy.quasi_index("zip").and_then(|at| policy.quasi.get(at)) else { panic!("no zip") };
    let labels: Vec<String> =
        zip.hierarchy.levels().iter().map(|level| level.descriptor().to_string()).collect();
    assert_eq!(labels, ["as_is", "prefix:4", "prefix:3", "suppress"]);
}

#[test]
fn a_question_without_a_file_is_resolved() {
    let policy = PolicySpec::from_columns(&["zip".into(), "age".into()], None, 3)
        .unwrap()
        .resolve(&patients(), &files())
        .unwrap();
    let columns: Vec<_> = policy.columns.iter().map(|(name, role)| (name.as_str(), *role)).collect();
    assert_eq!(columns, [("zip", Role::Quasi), ("age", Role::Quasi)]);
    assert_eq!(policy.ranges(), [0..=1, 0..=1]);
}

#[test]
fn columns_that_are_not_there() {
    assert_eq!(
        error("zipp = { role = \"quasi\" }"),
        "columns.zipp: the input has no column `zipp`; did you mean `zip`?"
    );
    assert_eq!(
        error("qqq = { role = \"quasi\" }"),
        "columns.qqq: the input has no column `qqq`; it has 6 columns"
    );
    let many: Vec<String> = (0..15).map(|n| format!("c{n}")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), DataType::Int8)).collect();
    let wide = PolicySpec::from_columns(&["zip".into()], None, 5)
        .unwrap()
        .resolve(&schema(&many), &files())
        .unwrap_err();
    assert!(wide.to_string().ends_with("it has 15 columns"), "{wide}");
}

#[test]
fn columns_without_a_role() {
    let two = resolve(
        "k = 5\n[columns]\nage = { role = \"quasi\" }\nzip = { role = \"quasi\" }\ndob = { role = \"quasi\" }\nnotes = { role = \"text\" }",
    );
    assert_eq!(
        two.unwrap_err().to_string(),
        "columns: 2 columns of the input without a role: marital, diagnosis; give each a line such as \
         `marital = { role = \"...\" }` (identifier, quasi, sensitive, individual, preference, text, insensitive), or leave them out \
         with the line `others = \"drop\"` above all tables, for instance below `k = 5`"
    );
    assert_eq!(
        error("age = { role = \"insensitive\" }"),
        "columns: expected at least one column with `role = \"quasi\"`"
    );
    assert_eq!(error(""), "columns: expected at least one column with `role = \"quasi\"`");
}

#[test]
fn columns_of_one_name() {
    let twice = schema(&[("zip", DataType::Utf8), ("zip", DataType::Utf8)]);
    let error =
        PolicySpec::from_columns(&["zip".into()], None, 5).unwrap().resolve(&twice, &files()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    assert_eq!(
        error.to_string(),
        "columns 1 and 2 of the input have the same name; rename one, or set `header = false` under `[input]` \
         if a CSV file has no header line"
    );
}

#[test]
fn sensitive_columns_need_a_model_or_consent() {
    assert_eq!(
        error("age = { role = \"quasi\" }\ndiagnosis = { role = \"sensitive\" }"),
        "columns.diagnosis: no model protects this sensitive column: when all rows of a class share one \
         value of it, anyone who knows that a person is in the class learns the value (homogeneity); require \
         variety with `[[require]]`, `model = \"l_diversity\"`, `l = 2`, `sensitive = \"diagnosis\"`, accept \
         it with the line `accept_homogeneity = [\"diagnosis\"]` above all tables, for instance below `k = 5`, or do not \
         release the column"
    );
    let accepted = |names: &str, role: &str| {
        let text = format!(
            "k = 5\nothers = \"drop\"\naccept_homogeneity = {names}\n[columns]\nage = {{ role = \"quasi\" }}\n\
             diagnosis = {{ role = \"{role}\" }}"
        );
        resolve(&text).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(accepted("[\"diagnosis\"]", "sensitive"), Ok(()));
    // A model that accepts a class with one shared value protects nothing.
    let of_l = |l: i32| {
        let text = format!(
            "k = 5\nothers = \"drop\"\n[[require]]\nmodel = \"l_diversity\"\nl = {l}\n[columns]\nage = {{ role = \"quasi\" }}\n\
             diagnosis = {{ role = \"sensitive\" }}"
        );
        resolve(&text).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(of_l(2), Ok(()));
    let vacuous = "columns.diagnosis: l_diversity(1, diagnosis) promises nothing";
    assert!(of_l(1).unwrap_err().starts_with(vacuous));
    let wrong = |names, role| accepted(names, role).unwrap_err();
    assert_eq!(
        wrong("[\"diagnosys\"]", "sensitive"),
        "accept_homogeneity: unknown sensitive column `diagnosys`; did you mean `diagnosis`?"
    );
    assert_eq!(
        wrong("[\"diagnosis\", \"age\"]", "sensitive"),
        "accept_homogeneity: the role of `age` is `quasi`, not `sensitive`"
    );
    assert_eq!(wrong("[\"x\"]", "insensitive"), "accept_homogeneity: no column is sensitive, found `x`");
}

#[test]
fn models_look_at_sensitive_columns() {
    let of = |require: &str, columns: &str| {
        let text = format!(
            "k = 5\nothers = \"drop\"\n{require}\n[columns]\nage = {{ role = \"quasi\" }}\n{columns}"
        );
        let spec = |policy: Policy| policy.requirements.iter().map(Requirement::text).collect::<Vec<_>>();
        resolve(&text).map(spec).map_err(|error| error.to_string())
    };
    let (diagnosis, marital) =
        ("diagnosis = { role = \"sensitive\" }\n", "marital = { role = \"sensitive\" }\n");
    let two = format!("{diagnosis}{marital}");
    let l = "[[require]]\nmodel = \"l_diversity\"\nl = 2\n";
    let of_diagnosis = format!("{l}sensitive = \"diagnosis\"\n");
    assert_eq!(of(l, diagnosis).unwrap(), ["k_anonymity(5)", "l_diversity(2, diagnosis)"]);
    assert_eq!(of(&of_diagnosis, diagnosis), of(l, diagnosis));
    let both = of(&format!("{of_diagnosis}{l}sensitive = \"marital\""), &two).unwrap();
    assert_eq!(both, ["k_anonymity(5)", "l_diversity(2, diagnosis)", "l_diversity(2, marital)"]);

    let wrong = |require: &str, columns: &str| of(require, columns).unwrap_err();
    assert_eq!(
        wrong(l, ""),
        "require[0]: `l_diversity` needs a sensitive column, but no column has the role `sensitive`"
    );
    assert_eq!(
        wrong(l, &two),
        "require[0]: `l_diversity` needs one sensitive column; name it: sensitive = one of diagnosis, marital"
    );
    assert_eq!(
        wrong(&format!("{l}sensitive = \"age\""), diagnosis),
        "require[0].sensitive: the role of `age` is `quasi`, not `sensitive`"
    );
    assert_eq!(
        wrong(&format!("{l}sensitive = \"diagnosys\""), diagnosis),
        "require[0].sensitive: unknown sensitive column `diagnosys`; did you mean `diagnosis`?"
    );
    assert_eq!(
        wrong(&format!("{l}{of_diagnosis}"), diagnosis),
        "require[1]: `l_diversity` is required twice for the same columns; keep one"
    );
    assert!(wrong(&of_diagnosis, &two).starts_with("columns.marital: no model protects"));
}

#[test]
fn an_objective_may_look_at_the_one_sensitive_column() {
    let counted = |columns: &str| {
        let text = format!(
            "k = 5\nobjective = \"classification_metric\"\naccept_homogeneity = [{columns}]\nothers = \"drop\"\n\
             [columns]\nage = {{ role = \"quasi\" }}\n"
        );
        let sensitive = |name: &str| format!("{} = {{ role = \"sensitive\" }}\n", name.trim_matches('"'));
        let columns: String = columns.split_terminator(',').map(sensitive).collect();
        let counted = |policy: Policy| policy.counted().iter().map(ToString::to_string).collect::<Vec<_>>();
        resolve(&(text + &columns)).map(counted).map_err(|error| error.to_string())
    };
    assert_eq!(counted("\"diagnosis\"").unwrap(), ["diagnosis"]);
    let wrong = "objective: `classification_metric` needs exactly one sensitive column; this policy has ";
    assert_eq!(counted("").unwrap_err(), format!("{wrong}0"));
    assert_eq!(counted("\"diagnosis\",\"marital\"").unwrap_err(), format!("{wrong}2"));
}

#[test]
fn released_columns_are_flat() {
    let of = |role: &str, data_type: DataType| {
        let columns = schema(&[("a", data_type), ("q", DataType::Int8)]);
        let text = format!(
            "k = 5\n{}\n[columns]\na = {{ role = \"{role}\" }}\nq = {{ role = \"quasi\" }}",
            if role == "sensitive" { "accept_homogeneity = [\"a\"]" } else { "" }
        );
        PolicySpec::parse(&text)
            .unwrap()
            .resolve(&columns, &files())
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let a_struct = DataType::Struct(vec![Field::new("x", DataType::Int8, true)].into());
    for role in ["quasi", "sensitive", "insensitive"] {
        assert_eq!(
            of(role, a_struct.clone()),
            Err(format!(
                "columns.a: a struct cannot have the role `{role}`, it can only be dropped: give it the role \
                 `text`, or leave it out"
            ))
        );
        let words = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        assert_eq!(of(role, words), Ok(()));
    }
    let list = DataType::new_list(DataType::Int8, true);
    assert!(of("insensitive", list.clone()).unwrap_err().starts_with("columns.a: a list "));
    for role in ["identifier", "text"] {
        assert_eq!((of(role, list.clone()), of(role, DataType::Binary)), (Ok(()), Ok(())));
    }
    assert_eq!(of("insensitive", DataType::Decimal128(10, 2)), Ok(()));
    let time = DataType::Time64(arrow::datatypes::TimeUnit::Microsecond);
    assert_eq!((of("quasi", DataType::Decimal128(10, 2)), of("sensitive", time.clone())), (Ok(()), Ok(())));
    assert!(of("quasi", time).unwrap_err().starts_with("columns.a: values of type Time64"));
    assert_eq!(
        of("sensitive", DataType::Binary).unwrap_err(),
        "columns.a: values of type Binary cannot have the role `sensitive`; expected numbers, text, dates, \
         times, timestamps or booleans; cast the column, or give it the role `text` to drop it"
    );
}

#[test]
fn levels_that_do_not_nest() {
    let nests = |column: &str, spec: &str| {
        let found = error(&format!("{column} = {{ role = \"quasi\", hierarchy = {spec} }}"));
        let key = spec.trim_start_matches("{ ").split(' ').next().unwrap();
        assert!(found.starts_with(&format!("columns.{column}.hierarchy.{key}: ")), "{found}");
        found
    };
    let range = nests("age", "{ range = [10, 15] }");
    assert!(range.contains("level 2 (`range:15`) is not a function of level 1 (`range:10`): "), "{range}");
    nests("age", "{ floor = [10, 15] }");
    nests("zip", "{ prefix = [3, 4] }");
    nests("dob", "{ date = [\"week\", \"month\"] }");
}

#[test]
fn hierarchies_that_do_not_go_with_the_type() {
    let text =
        "k = 5\nothers = \"drop\"\n[columns]\nzip = { role = \"quasi\", hierarchy = { floor = [10] } }";
    let error = resolve(text).unwrap_err().to_string();
    assert!(error.starts_with("columns.zip.hierarchy.floor: "), "{error}");
}

#[test]
fn hierarchy_files() {
    let file =
        |name: &str| error(&format!("marital = {{ role = \"quasi\", hierarchy = {{ file = \"{name}\" }} }}"));
    assert_eq!(
        file("no.csv"),
        "columns.marital.hierarchy.file: hierarchy file `no.csv` is not in the record"
    );
    let folder = Folder("/nowhere".into());
    let text = "k = 5\nothers = \"drop\"\n[columns]\nmarital = { role = \"quasi\", hierarchy = { file = \"m.csv\" } }";
    let found = PolicySpec::parse(text).unwrap().resolve(&patients(), &folder).unwrap_err();
    assert_eq!(
        found.to_string(),
        "columns.marital.hierarchy.file: hierarchy file /nowhere/m.csv: there is no such file or folder"
    );
    let no_tree = BTreeMap::from([("m.csv".to_owned(), "a,SECRET,*\na,other,*\n".to_owned())]);
    let found = PolicySpec::parse(text).unwrap().resolve(&patients(), &no_tree).unwrap_err().to_string();
    assert!(found.starts_with("columns.marital.hierarchy.file: m.csv: "), "{found}");
    assert!(!found.contains("SECRET"), "{found}");
}

#[test]
fn levels_that_are_not_there() {
    let zip = |levels: &str| {
        error(&format!("zip = {{ role = \"quasi\", hierarchy = {{ prefix = [3, 2] }}, {levels} }}"))
    };
    assert_eq!(
        zip("max_level = 4"),
        "columns.zip.max_level: expected a level from 0 to 3, found 4; levels: 0 as_is, 1 prefix:3, 2 prefix:2, \
         3 suppress"
    );
    assert!(
        zip("min_level = 7").starts_with("columns.zip.min_level: expected a level from 0 to 3, found 7; ")
    );
    assert_eq!(zip("min_level = 2, max_level = 1"), "columns.zip.min_level: 2 is above max_level = 1");
}

/// Regions of numbers and dates end at values, which are finer than any level.
#[test]
fn a_min_level_of_a_global_column_needs_labels() {
    let of = |method: &str, zip: &str, dob: &str| {
        let text = format!(
            "k = 5\nmethod = {method:?}\nothers = \"drop\"\n[columns]\nage = {{ role = \"quasi\" }}\n\
             zip = {{ role = \"quasi\", hierarchy = {{ prefix = [3, 2] }}, recode = \"global\"{zip} }}\n\
             dob = {{ role = \"quasi\", hierarchy = {{ date = [\"month\"] }}, recode = \"global\"{dob} }}"
        );
        resolve(&text).map(|_| ()).map_err(|error| error.to_string())
    };
    let (limit, top) = (", min_level = 1", ", max_level = 1");
    for method in ["mondrian", "clusters", "best"] {
        assert_eq!(of(method, limit, top), Ok(()), "{method}");
        let why = of(method, limit, limit).unwrap_err();
        assert!(why.starts_with("columns.dob.min_level: the classes of this method show intervals"), "{why}");
    }
    assert_eq!(of("auto", limit, limit), Ok(()));
}

#[test]
fn a_sensitive_column_may_have_a_hierarchy() {
    let of = |column: &str| {
        let text = format!(
            "k = 5\nothers = \"drop\"\naccept_homogeneity = [\"marital\"]\n[columns]\nage = {{ role = \"quasi\" }}\n\
             marital = {{ role = \"sensitive\", {column} }}"
        );
        resolve(&text).map_err(|error| error.to_string())
    };
    let policy = of("hierarchy = { file = \"marital.csv\" }").unwrap();
    assert_eq!((policy.columns.last().unwrap().0.as_str(), policy.quasi.len()), ("marital", 1));
    assert_eq!(
        of("hierarchy = { date = [\"year\"] }").unwrap_err().split(": ").next(),
        Some("columns.marital.hierarchy.date")
    );
    for key in ["clip = [0, 90]", "weight = 2.0", "min_level = 0", "max_level = 1"] {
        assert!(
            of(key).unwrap_err().contains("only a column with the role `quasi` can have this key"),
            "{key}"
        );
    }
}

#[test]
fn a_first_line_that_is_no_header_is_a_row_that_need_not_occur() {
    let text = "Marital status,level 1\nsingle,alone\nmarried,two\n";
    let files = BTreeMap::from([("m.csv".to_owned(), text.to_owned())]);
    let text = "k = 5\nothers = \"drop\"\n[columns]\nmarital = { role = \"quasi\", hierarchy = { file = \"m.csv\" } }";
    let policy = PolicySpec::parse(text).unwrap().resolve(&patients(), &files).unwrap();
    let level = &policy.quasi[0].hierarchy.levels()[1];
    let values: arrow::array::ArrayRef =
        std::sync::Arc::new(arrow::array::StringViewArray::from(vec!["married", "single"]));
    assert_eq!(level.uncovered(&values).unwrap(), Vec::<usize>::new());
    assert!(level.generalize(&values).is_ok());
    assert_eq!(level.all_leaves(), Some(3));
}

#[test]
fn strategies_name_quasi_identifiers_and_allowed_levels() {
    let with = |nodes: &str| {
        let columns = "age = { role = \"quasi\", min_level = 1 }\nzip = { role = \"quasi\", hierarchy = { prefix = [4, 3] }, max_level = 2 }";
        let text =
            format!("k = 5\nothers = \"drop\"\nmethod = {{ strategies = {nodes} }}\n[columns]\n{columns}");
        resolve(&text).map(|policy| policy.spec.method.settings.len()).map_err(|error| error.to_string())
    };
    assert_eq!(with("[{ age = 1, zip = 2 }, {}]"), Ok(1));
    for (nodes, why) in [
        ("[{}, { agee = 1 }]", "node 2: agee: unknown quasi-identifier; did you mean `age`?"),
        ("[{ notes = 1 }]", "node 1: notes: unknown quasi-identifier; valid: age, zip"),
        ("[{ age = 0 }]", "node 1: age: expected a level from 1 to 1, found 0"),
        ("[{ zip = 3 }]", "node 1: zip: expected a level from 0 to 2, found 3"),
    ] {
        assert_eq!(with(nodes), Err(format!("method.strategies: {why}")));
    }
}

#[test]
fn what_is_clipped() {
    let place = |column: &str| error(&format!("{column} }}")).split(": ").next().map(str::to_owned);
    assert_eq!(place("zip = { role = \"quasi\", clip = [0, 9]").unwrap(), "columns.zip.clip");
    let date = "dob = { role = \"quasi\", clip = [0, 9], hierarchy = { date = [\"year\"] }";
    assert_eq!(place(date).unwrap(), "columns.dob.clip");
    let text = "k = 5\nothers = \"drop\"\n[columns]\nage = { role = \"quasi\", clip = [0, 90], hierarchy = { range = [20] } }";
    let policy = resolve(text).unwrap();
    let labels: Vec<String> =
        policy.quasi[0].hierarchy.levels().iter().map(|level| level.descriptor().to_string()).collect();
    assert_eq!(labels, ["clip:0,90", "range:20 clip:0,90", "suppress"]);
}

#[test]
fn no_cell_of_a_hierarchy_file_is_shown() {
    let files = BTreeMap::from([("m.csv".to_owned(), "SECRET,x\nother,y\n".to_owned())]);
    let text = "k = 5\nothers = \"drop\"\n[columns]\nmarital = { role = \"quasi\", hierarchy = { file = \"m.csv\" } }";
    let spec = PolicySpec::parse(text).unwrap();
    let policy = spec.resolve(&patients(), &files).unwrap();
    let shown = format!("{spec:?} {policy:?}");
    assert!(!shown.contains("SECRET"), "{shown}");
}
