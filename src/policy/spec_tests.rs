//! Tests of valid policy files, with every error message for invalid ones.

use super::spec::*;
use super::*;
use crate::decimal::Decimal;
use crate::generalize::{GENERALIZERS, Generalizer};

fn error(text: &str) -> String {
    let error = PolicySpec::parse(text).unwrap_err();
    assert_eq!(error.kind(), crate::error::ErrorKind::Policy, "{error}");
    error.to_string()
}

/// Returns the error of a policy with this line among the columns.
fn column(line: &str) -> String {
    error(&format!("k = 5\n[columns]\n{line}"))
}

/// The policy of the manual, without the parts that are not built.
const FULL: &str = r#"
    k = 5
    suppression_limit = 0.1
    objective = "granularity"
    method = "auto"
    others = "drop"
    rows_are_individuals = true
    accept_homogeneity = ["diagnosis"]

    [columns]
    ssn        = { role = "identifier" }
    dob        = { role = "quasi", hierarchy = { date = ["month", "year", "decade"] }, min_level = 1 }
    zip        = { role = "quasi", hierarchy = { prefix = [4, 3, 2, 1] }, weight = 2.0 }
    sex        = { role = "quasi" }
    marital    = { role = "quasi", hierarchy = { file = "marital.csv" } }
    age        = { role = "quasi", hierarchy = { range = [5, 10, 20, 40] }, max_level = 4 }
    income     = { role = "quasi", hierarchy = { floor = [10, 100, 1000] } }
    diagnosis  = { role = "sensitive" }
    notes      = { role = "text" }
    "a b"      = { role = "insensitive" }

    [input]
    delimiter = ";"
    header = false
    nulls = ["", "?"]
    date_format = "%d.%m.%Y"
    decimal = ","
    thousands = "."
    encoding = "latin1"
"#;

#[test]
fn the_policy_of_the_manual() {
    let spec = PolicySpec::parse(FULL).unwrap();
    let names: Vec<&str> = spec.columns().iter().map(ColumnSpec::name).collect();
    let order = ["ssn", "dob", "zip", "sex", "marital", "age", "income", "diagnosis", "notes", "a b"];
    assert_eq!(names, order);
    assert_eq!(spec.suppression_limit.to_string(), "0.1");
    let csv = CsvOptions {
        delimiter: Some(b';'),
        header: Some(false),
        nulls: vec![String::new(), "?".into()],
        date_formats: vec![DateFormat::parse("%d.%m.%Y").unwrap()],
        numbers: NumberFormat { decimal: ',', thousands: Some('.') },
        encoding: Some(encoding_rs::WINDOWS_1252),
    };
    assert_eq!(*spec.csv(), csv);
    assert_eq!(spec.hierarchy_files(), ["marital.csv"]);
    let types: Vec<CsvType> = names.iter().map(|name| spec.csv_type(name)).collect();
    use CsvType::{Date, Number, Text};
    assert_eq!(types, [Text, Date, Text, Text, Text, Number, Number, Text, Text, Text]);
    let zip = spec.column("zip").unwrap();
    assert_eq!((zip.role(), zip.hierarchy().unwrap().key(), zip.max_level), (Role::Quasi, "prefix", None));
    assert_eq!(zip.weight.to_string(), "2");
}

#[test]
fn what_is_not_said_has_its_default() {
    let spec = PolicySpec::parse("k = 5").unwrap();
    assert_eq!(spec.suppression_limit, Decimal::integer(0));
    assert_eq!((spec.objective.doc().name, spec.method.name.as_str()), ("granularity", "auto"));
    assert!(!spec.others_are_dropped && !spec.rows_are_individuals && spec.columns().is_empty());
    assert_eq!(*spec.csv(), CsvOptions::default());
}

#[test]
fn unknown_keys_get_the_nearest_one_at_every_depth() {
    assert_eq!(
        error("supression_limit = 0"),
        "supression_limit: unknown key; did you mean `suppression_limit`?"
    );
    assert_eq!(column("zip = { rule = \"quasi\" }"), "columns.zip.rule: unknown key; did you mean `role`?");
    assert_eq!(
        column("\"z.p\" = { role = \"quasi\", hierarchy = { prefx = [1] } }"),
        "columns.\"z.p\".hierarchy.prefx: unknown key; did you mean `prefix`?"
    );
    assert_eq!(error("k = 5\n[input]\nnull = []"), "input.null: unknown key; did you mean `nulls`?");
    assert_eq!(
        error("[[require]]\nmodel = \"k_anonymity\"\nkk = 5"),
        "require[0].kk: unknown key; did you mean `k`?"
    );
    let none = column("bmi = { role = \"quasi\", hierarchy = { zzz = [[1]] } }");
    assert!(none.starts_with("columns.bmi.hierarchy.zzz: unknown key; valid: bands, date, "), "{none}");
    assert_eq!(none.matches("origin").count(), 1, "{none}");
}

#[test]
fn impossible_k() {
    for (k, found) in
        [("0", "0"), ("-1", "-1"), ("2.5", "2.5"), ("5.0", "5.0"), ("true", "true"), ("[5]", "a list")]
    {
        assert_eq!(
            error(&format!("k = {k}")),
            format!("k: expected an integer of at least 1, found {found}")
        );
    }
    assert_eq!(
        error("k = \"5\""),
        "k: expected an integer of at least 1, found the text \"5\"; write it without quotes"
    );
    assert_eq!(error("[columns]"), "a policy needs `k = ...` or a [[require]]");
    let alone =
        "1 guarantees nothing by itself; set k to at least 2, or add a [[require]] with another model";
    assert_eq!(error("k = 1"), format!("k: {alone}"));
    assert_eq!(error("[[require]]\nmodel = \"k_anonymity\"\nk = 1"), format!("require[0].k: {alone}"));
    assert!(PolicySpec::parse(&format!("k = {}", i64::MAX)).is_ok());
}

#[test]
fn effort() {
    for right in ["{ seconds = 5 }", "{ nodes = 1000 }"] {
        assert!(PolicySpec::parse(&format!("k = 5\nmethod = \"anytime\"\neffort = {right}")).is_ok());
    }
    let alone = "effort: only the methods \"anytime\" and \"best\" take it; `auto` runs to completion";
    assert_eq!(error("k = 5\neffort = { nodes = 3 }"), alone);
    let one = "effort: expected one of { seconds = 30 } and { nodes = 10000 }";
    for (wrong, why) in [
        ("{ seconds = 0 }", "effort.seconds: expected an integer of at least 1, found 0"),
        ("{ nodes = 1.5 }", "effort.nodes: expected an integer of at least 1, found 1.5"),
        ("{ minutes = 1 }", "effort.minutes: unknown key; valid: seconds, nodes"),
        ("{ seconds = 1, nodes = 1 }", one),
        ("{}", one),
        ("30", "effort: expected a table of settings (seconds, nodes), found 30"),
    ] {
        assert_eq!(error(&format!("k = 5\nmethod = \"anytime\"\neffort = {wrong}")), why);
    }
}

#[test]
fn requirements() {
    let k_anonymity = "[[require]]\nmodel = \"k_anonymity\"\n";
    assert!(PolicySpec::parse(&format!("{k_anonymity}k = 5")).is_ok());
    assert_eq!(
        error(&format!("k = 5\n{k_anonymity}k = 6")),
        "require[0]: `k_anonymity` is required by `k` too; keep one of them"
    );
    assert_eq!(
        error(&format!("{k_anonymity}k = 5\n{k_anonymity}k = 6")),
        "require[1]: `k_anonymity` is required by `require[0]` too; keep one of them"
    );
    assert_eq!(
        error(&format!("{k_anonymity}k = 0")),
        "require[0].k: expected an integer of at least 1, found 0"
    );
    assert_eq!(
        error(&format!("{k_anonymity}k = \"x\"")),
        "require[0].k: expected a number, found the text \"x\""
    );
    assert_eq!(error(k_anonymity), "require[0]: the parameter `k` is missing");
    assert_eq!(
        error(&format!("{k_anonymity}k = 5\nsensitive = \"x\"")),
        "require[0].sensitive: `k_anonymity` uses no sensitive column; remove the key"
    );
    let l_diversity = "[[require]]\nmodel = \"l_diversity\"\nl = 2\nsensitive = ";
    assert!(PolicySpec::parse(&format!("{l_diversity}\"a\"\n{l_diversity}\"b\"\n")).is_ok());
    assert_eq!(
        error(&format!("{l_diversity}\"a\"\n{l_diversity}\"a\"\n")),
        "require[1]: `l_diversity` is required by `require[0]` too; keep one of them"
    );
    assert_eq!(error(&format!("{l_diversity}3")), "require[0].sensitive: expected a text, found 3");
    assert_eq!(error("[[require]]\nk = 5"), "require[0]: expected `model = ...`");
    assert_eq!(
        error("[[require]]\nmodel = \"k_anonimity\""),
        "require[0].model: unknown model `k_anonimity`; did you mean `k_anonymity`?"
    );
    assert_eq!(
        error("[require]\nmodel = \"k_anonymity\""),
        "require: expected [[require]] tables (two brackets), found a table"
    );
}

#[test]
fn suppression_limits() {
    for (spec, found) in
        [("1.5", "1.5"), ("-0.1", "-0.1"), ("\"x\"", "the text \"x\""), ("2", "2"), ("nan", "NaN")]
    {
        assert_eq!(
            error(&format!("k = 5\nsuppression_limit = {spec}")),
            format!("suppression_limit: expected a share from 0 to 1, such as 0.05, found {found}")
        );
    }
    for spec in ["1e-19", "0.1234567890123456789e-9"] {
        let found = error(&format!("k = 5\nsuppression_limit = {spec}"));
        let digits = "expected a number of at most 18 digits, at most 18 of them after the point, found ";
        assert!(found.starts_with(&format!("suppression_limit: {digits}")), "{found}");
    }
    for (spec, meant) in [("0.29", "0.29"), ("1", "1"), ("0.0", "0"), ("5e-2", "0.05")] {
        let spec = PolicySpec::parse(&format!("k = 5\nsuppression_limit = {spec}")).unwrap();
        assert_eq!(spec.suppression_limit.to_string(), meant);
    }
}

#[test]
fn names_of_measures_and_methods() {
    assert_eq!(
        error("k = 5\nobjective = \"granularty\""),
        "objective: unknown loss measure `granularty`; did you mean `granularity`?"
    );
    assert_eq!(
        error("k = 5\nmethod = \"optimum\""),
        "method: unknown method `optimum`; did you mean `optimal`?"
    );
    assert_eq!(
        error("k = 5\nothers = \"keep\""),
        "others: expected \"drop\", found the text \"keep\"; columns without a role cannot be released"
    );
    assert!(error("k = 5\nsuppressed_rows = \"drop\"").starts_with("suppressed_rows: unknown key"));
    assert_eq!(
        error("k = 5\nrows_are_individuals = 1"),
        "rows_are_individuals: expected true or false, found 1"
    );
}

#[test]
fn roles() {
    assert_eq!(
        column("zip = { role = \"quazi\" }"),
        "columns.zip.role: found `quazi`; did you mean `quasi`?"
    );
    assert_eq!(
        column("zip = { role = \"?\" }"),
        "columns.zip.role: found `?`; still undecided: replace `?` with one of identifier, quasi, sensitive, \
         individual, preference, text, insensitive"
    );
    assert_eq!(
        column("id = { role = \"individual\" }\nssn = { role = \"individual\" }"),
        "columns.ssn: `id` is already the individual column; there can be only one"
    );
    assert_eq!(
        error("k = 5\nrows_are_individuals = true\n[columns]\nid = { role = \"individual\" }"),
        "rows_are_individuals: `id` has the role `individual`: individuals are counted, not rows; remove \
         this line"
    );
    assert_eq!(
        column("id = { role = \"quasi\", allow_unique = true }"),
        "columns.id.allow_unique: only a column that is released as it is can have this key (sensitive, \
         insensitive)"
    );
    assert_eq!(
        column("zip = {}"),
        "columns.zip: expected `role = ...`, one of identifier, quasi, sensitive, individual, preference, text, insensitive"
    );
    assert_eq!(
        column("zip = \"quasi\""),
        "columns.zip: expected a table such as { role = \"quasi\" }, found the text \"quasi\""
    );
    assert_eq!(
        column("others = \"drop\""),
        "columns.others: expected a table such as { role = \"quasi\" }, found the text \"drop\"; keys of the \
         policy itself go above all tables, for instance below `k = ...`"
    );
}

#[test]
fn keys_of_quasi_identifiers_only() {
    for line in [
        "hierarchy = { prefix = [1] }",
        "clip = [0, 90]",
        "weight = 2",
        "min_level = 0",
        "max_level = 3",
        "recode = \"global\"",
    ] {
        let key = line.split(' ').next().unwrap();
        assert_eq!(
            column(&format!("notes = {{ role = \"text\", {line} }}")),
            format!(
                "columns.notes.{key}: only a column with the role `quasi` can have this key; this column's \
                 role is `text`"
            )
        );
    }
    let alone = "effort: only the methods \"anytime\" and \"best\" take it; `auto` runs to completion";
    assert_eq!(error("k = 5\neffort = { nodes = 3 }"), alone);
    for wrong in ["0", "-1", "nan", "inf", "\"x\""] {
        let found = column(&format!("age = {{ role = \"quasi\", weight = {wrong} }}"));
        assert!(found.starts_with("columns.age.weight: expected a number above 0, found "), "{found}");
    }
    assert_eq!(
        column("age = { role = \"quasi\", weight = 1e18 }"),
        "columns.age.weight: expected a number of at most 18 digits, at most 18 of them after the point, found 1e18"
    );
    assert_eq!(
        column("age = { role = \"quasi\", min_level = -1 }"),
        "columns.age.min_level: expected the number of a level, 0 or above, found -1"
    );
    assert_eq!(
        column("age = { role = \"quasi\", max_level = 1.5 }"),
        "columns.age.max_level: expected the number of a level, 0 or above, found 1.5"
    );
}

#[test]
fn shapes_of_hierarchies() {
    let hierarchy = |spec: &str| column(&format!("zip = {{ role = \"quasi\", hierarchy = {spec} }}"));
    assert_eq!(
        hierarchy("{ prefix = 3 }"),
        "columns.zip.hierarchy.prefix: expected a list with one entry per level, finest first, each an integer of at \
         least 1, found 3"
    );
    assert_eq!(
        hierarchy("{ prefix = [3, \"2\"] }"),
        "columns.zip.hierarchy.prefix: level 2: expected a number, found the text \"2\""
    );
    assert_eq!(
        hierarchy("{ date = \"year\" }"),
        "columns.zip.hierarchy.date: expected a list with one entry per level, finest first, each \"day\", \
         \"week\", \"month\", \"quarter\", \"year\", \"decade\" or \"century\", found the text \"year\""
    );
    assert_eq!(
        hierarchy("{ file = [1] }"),
        "columns.zip.hierarchy.file: expected the name of a file, found a list"
    );
    assert_eq!(
        hierarchy("{ range = [] }"),
        "columns.zip.hierarchy.range: expected at least one level, found an empty list"
    );
    assert_eq!(
        hierarchy("\"zip.csv\""),
        "columns.zip.hierarchy: expected a table, found the text \"zip.csv\""
    );
    let two = hierarchy("{ range = [5], floor = [5] }");
    assert!(
        two.starts_with("columns.zip.hierarchy: expected exactly one of the keys bands, date, "),
        "{two}"
    );
    assert!(two.ends_with("; found range and floor"), "{two}");
    assert!(hierarchy("{}").ends_with("; found none"));
    let unit = hierarchy("{ date = [\"mounth\"] }");
    assert!(unit.starts_with("columns.zip.hierarchy.date: level 1: expected \"day\", "), "{unit}");
    assert!(unit.ends_with(", found \"mounth\"; did you mean \"month\"?"), "{unit}");
    assert_eq!(
        hierarchy("{ bands = [18, 25] }"),
        "columns.zip.hierarchy.bands: level 1: expected a list of numbers, found 18"
    );
    assert_eq!(
        hierarchy("{ bands = [[18, 25], [] ] }"),
        "columns.zip.hierarchy.bands: expected at least one cut point"
    );
    assert_eq!(
        hierarchy("{ bands = [[25, 18]] }"),
        "columns.zip.hierarchy.bands: cut points must ascend, but 18 follows 25"
    );
}

#[test]
fn options_stand_beside_their_own_key() {
    let hierarchy = |spec: &str| column(&format!("zip = {{ role = \"quasi\", hierarchy = {spec} }}"));
    let spec = "k = 5\n[columns]\nage = { role = \"quasi\", hierarchy = { origin = 5, range = [10] } }\n\
                zip = { role = \"quasi\", hierarchy = { prefix = [3], width = 5, side = \"right\" } }";
    let spec = PolicySpec::parse(spec).unwrap();
    let labels = |name: &str| match &spec.column(name).unwrap().hierarchy.as_ref().unwrap().levels {
        LevelsSpec::Made(levels) => levels[0].descriptor().to_string(),
        LevelsSpec::File(_) | LevelsSpec::Merged(_) => String::new(),
    };
    assert_eq!(
        (labels("age"), labels("zip")),
        ("range:10 origin:5".into(), "prefix:3 side:right width:5".into())
    );
    assert_eq!(
        hierarchy("{ prefix = [3], origin = 5 }"),
        "columns.zip.hierarchy.origin: goes beside `floor` or `range`, not beside `prefix`"
    );
    assert!(hierarchy("{ origin = 5 }").ends_with("; found none"));
    assert_eq!(
        hierarchy("{ range = [3], origin = \"x\" }"),
        "columns.zip.hierarchy.origin: expected a number, found the text \"x\""
    );
    assert_eq!(
        hierarchy("{ prefix = [3], side = \"top\" }"),
        "columns.zip.hierarchy.side: expected \"left\" or \"right\", found \"top\""
    );
    assert_eq!(
        hierarchy("{ prefix = [5, 3], width = 5 }"),
        "columns.zip.hierarchy.prefix: a width of 5 leaves no room for a mark beside 5 characters"
    );
    assert_eq!(
        hierarchy("{ range = [3], orign = 5 }"),
        "columns.zip.hierarchy.orign: unknown key; did you mean `origin`?"
    );
}

#[test]
fn ends_of_a_clip() {
    let label = |spec: &str| {
        let spec =
            PolicySpec::parse(&format!("k = 5\n[columns]\nage = {{ role = \"quasi\", clip = {spec} }}"));
        spec.map(|spec| spec.column("age").unwrap().clip.unwrap().descriptor().to_string())
            .map_err(|error| error.to_string())
    };
    for (spec, meant) in [
        ("[0, 90]", "clip:0,90"),
        ("{ from = 0, to = 90.5 }", "clip:0,90.5"),
        ("{ to = 90 }", "clip:,90"),
        ("{ from = -1 }", "clip:-1,"),
    ] {
        assert_eq!(label(spec).unwrap(), meant);
    }
    for (spec, wrong) in [
        (
            "[0]",
            "expected two bounds such as [0, 90], or one such as { from = 0 } or { to = 90 }, found a list",
        ),
        ("90", "expected two bounds such as [0, 90], or one such as { from = 0 } or { to = 90 }, found 90"),
        (
            "{ low = 0 }",
            "expected two bounds such as [0, 90], or one such as { from = 0 } or { to = 90 }, found a table",
        ),
        ("{}", "expected at least one bound to clip at"),
        ("[90, 0]", "the lower bound must be below the upper one, but 90 is not below 0"),
        ("{ from = \"x\" }", "from: expected a number, found the text \"x\""),
    ] {
        assert_eq!(label(spec).unwrap_err(), format!("columns.age.clip: {wrong}"));
    }
}

#[test]
fn every_generalizer_with_a_key_can_stand_in_a_policy() {
    for row in GENERALIZERS {
        let Some(key) = row.key else { continue };
        let range = row.parameters[0].kind.range();
        for shape in ["true", "7"] {
            let found = column(&format!("zip = {{ role = \"quasi\", hierarchy = {{ {key} = {shape} }} }}"));
            assert_eq!(found, format!("columns.zip.hierarchy.{key}: expected {range}, found {shape}"));
        }
    }
}

#[test]
fn csv_options() {
    let input = |line: &str| error(&format!("k = 5\n[input]\n{line}"));
    for (spec, found) in [
        ("\";;\"", "the text \";;\""),
        ("\"é\"", "the text \"é\""),
        ("7", "7"),
        ("'\"'", "the text \"\\\"\""),
    ] {
        assert_eq!(
            input(&format!("delimiter = {spec}")),
            format!(
                "input.delimiter: expected one ASCII character other than a quote or a line end, found {found}"
            )
        );
    }
    assert_eq!(input("header = \"yes\""), "input.header: expected true or false, found the text \"yes\"");
    assert_eq!(input("nulls = \"?\""), "input.nulls: expected a list of texts, found the text \"?\"");
    assert_eq!(input("decimal = \"x\""), "input.decimal: expected one of \".\", \",\", found the text \"x\"");
    assert_eq!(
        input("decimal = \",\"\nthousands = \",\""),
        "input.thousands: is the decimal mark, too; write decimal = \".\""
    );
    assert!(input("encoding = \"klingon\"").starts_with("input.encoding: expected an encoding such as"));
    assert!(input("date_format = \"%d.%m.%y\"").starts_with("input.date_format: years of two digits"));
    assert_eq!(
        PolicySpec::parse("k = 5\n[input]\ndelimiter = \"\\t\"").unwrap().csv().delimiter,
        Some(b'\t')
    );
}

#[test]
fn what_is_no_toml_is_refused_with_its_place() {
    let found = error("k = 5\n[columns]\nzip = { role = quasi }");
    assert!(found.starts_with("line 3, column 16: not TOML: "), "{found}");
    let twice = error("k = 5\nk = 6");
    assert!(twice.starts_with("line 2, column 1: not TOML: duplicate key"), "{twice}");
}

#[test]
fn a_question_without_a_file() {
    let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    let spec = PolicySpec::from_columns(&names(&["zip", "age"]), None, 5).unwrap();
    assert!(spec.others_are_dropped && spec.columns().iter().all(|c| c.role() == Role::Quasi));
    let error = |quasi: &[&str], k| PolicySpec::from_columns(&names(quasi), None, k).unwrap_err().to_string();
    assert_eq!(error(&[], 5), "expected the name of at least one quasi-identifier");
    assert_eq!(error(&["a", "b", "a"], 5), "the quasi-identifier `a` is named twice");
    assert_eq!(error(&["a"], 0), "k: expected an integer of at least 1, found 0");
    assert!(error(&["a"], u64::MAX).starts_with("k: the value cannot be written as TOML"));
    assert!(error(&["a"], 1).starts_with("k: 1 guarantees nothing by itself"));
}
