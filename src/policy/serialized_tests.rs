//! Tests of policies as a part of other data.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::spec::{ColumnSpec, PolicySpec};

/// A service's configuration.
#[derive(Debug, Serialize, Deserialize)]
struct Service {
    port: u16,
    policy: PolicySpec,
}

fn error(policy: &str) -> String {
    let as_text = serde_json::from_str::<PolicySpec>(policy).unwrap_err().to_string();
    if let Ok(value) = serde_json::from_str::<Value>(policy) {
        let as_value = serde_json::from_value::<PolicySpec>(value).unwrap_err().to_string();
        assert!(as_text.starts_with(&as_value), "{as_text}\n{as_value}");
    }
    as_text
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// The policies of the manual, the tutorial and the tests.
fn policies() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["data", "docs", "sql", "tests/corpus/policy", "tests/fixtures"];
    let mut texts = Vec::new();
    for path in folders.iter().flat_map(|folder| files_below(&root.join(folder))) {
        let text = || fs::read_to_string(&path).unwrap();
        let (begin, end) = match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => {
                texts.push(text());
                continue;
            }
            Some("md") => ("```toml\n", "\n```"),
            Some("slt") => ("<<'END'\n", "\nEND"),
            _ => continue,
        };
        texts.extend(text().split(begin).skip(1).map(|part| part.split(end).next().unwrap().to_owned()));
    }
    texts.retain(|text| PolicySpec::parse(text).is_ok());
    texts
}

/// What a policy spec holds besides its text.
fn meaning(spec: &PolicySpec) -> String {
    format!("{spec:?}").split_once(", ").unwrap().1.to_owned()
}

#[test]
fn policies_survive_other_formats() {
    let policies = policies();
    assert!(policies.len() > 50, "{}", policies.len());
    for text in policies {
        let spec = PolicySpec::parse(&text).unwrap();
        let json = serde_json::to_string(&spec).unwrap();
        let again: PolicySpec = serde_json::from_str(&json).unwrap();
        assert_eq!(meaning(&again), meaning(&spec), "{text}");
        let third: PolicySpec = serde_json::from_str(&serde_json::to_string(&again).unwrap()).unwrap();
        assert_eq!(third.text(), again.text());
        assert_eq!(
            serde_json::from_str::<Value>(&json).unwrap(),
            serde_json::to_value(&third).unwrap(),
            "{text}"
        );
        let service = toml::to_string(&Service { port: 80, policy: spec.clone() }).unwrap();
        let service: Service = toml::from_str(&service).unwrap();
        assert_eq!(meaning(&service.policy), meaning(&spec), "{text}");
    }
}

#[test]
fn a_policy_is_a_part_of_a_configuration() {
    let json = json!({ "port": 80, "policy": {
        "k": 5,
        "columns": { "zip": { "role": "quasi", "hierarchy": { "prefix": [3, 2] }, "weight": 2.0 } },
        "output": { "released_on": "2026-11-24" },
    } });
    let service: Service = serde_json::from_value(json.clone()).unwrap();
    let text = "k = 5\n[columns]\nzip = { role = \"quasi\", hierarchy = { prefix = [3, 2] }, weight = 2.0 }\n\
                [output]\nreleased_on = 2026-11-24";
    let parsed = PolicySpec::parse(text).unwrap();
    assert_eq!(meaning(&service.policy), meaning(&parsed));
    assert_eq!((service.port, serde_json::to_value(&service).unwrap()), (80, json));
    // The date of TOML is a text elsewhere.
    assert_eq!(serde_json::to_value(&parsed).unwrap()["output"]["released_on"], "2026-11-24");
    let toml = "port = 80\n[policy]\nk = 5\noutput.released_on = 2026-11-24\ncolumns.zip.role = \"quasi\"";
    let service: Service = toml::from_str(toml).unwrap();
    assert_eq!(service.policy.output.released_on(), Some("2026-11-24"));
    assert!(service.policy.text().contains("released_on = 2026-11-24"));
    let date_for_text =
        toml::from_str::<Service>("port = 80\n[policy]\nk = 5\nobjective = 2026-11-24").unwrap_err();
    let found = date_for_text.to_string();
    assert!(found.contains("policy: objective: expected a text, found the date 2026-11-24"), "{found}");
}

#[test]
fn columns_keep_their_order() {
    let spec: PolicySpec = serde_json::from_str(
        r#"{"columns":{"z":{"role":"quasi"},"a":{"role":"text"},"m":{"role":"quasi"}},"k":2}"#,
    )
    .unwrap();
    assert!(spec.columns().iter().map(ColumnSpec::name).eq(["z", "a", "m"]));
}

#[test]
fn errors_name_the_key() {
    assert_eq!(
        error(r#"{"k":5,"columns":{"zip":{"rule":"quasi"}}}"#),
        "policy: columns.zip.rule: unknown key; did you mean `role`?"
    );
    assert_eq!(
        error(r#"{"k":"5"}"#),
        "policy: k: expected an integer of at least 1, found the text \"5\"; write it without quotes"
    );
    let null = error(r#"{"k":5,"columns":{"a.b":{"role":"quasi","hierarchy":null}}}"#);
    let place = "as `columns.\"a.b\".hierarchy` of the policy (leave out a key without a value)";
    assert!(null.starts_with("invalid type: null, expected ") && null.contains(place), "{null}");
    let in_list = error(r#"{"require":[{"model":"k_anonymity","k":5},{"model":"l_diversity","l":null}]}"#);
    assert!(in_list.contains("as `require[1].l` of the policy"), "{in_list}");
    let large = error(r#"{"k":18446744073709551615}"#);
    assert!(large.contains("as `k` of the policy"), "{large}");
    for no_table in ["null", "3", "[1]", "\"k = 5\""] {
        let found = error(no_table);
        assert!(found.contains("expected a table with the keys of a policy"), "{found}");
    }
    let twice =
        serde_json::from_str::<PolicySpec>(r#"{"k":5,"columns":{"a":{"role":"text","role":"quasi"}}}"#);
    let twice = twice.unwrap_err().to_string();
    assert!(twice.starts_with("policy: columns.a.role: the key is given twice"), "{twice}");
    let deep = |depth: usize| format!(r#"{{"k":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    assert!(error(&deep(20)).starts_with("policy: k: expected an integer"), "{}", error(&deep(20)));
    assert!(serde_json::from_str::<PolicySpec>(&deep(120)).is_err());
}
