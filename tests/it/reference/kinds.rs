//! The kinds of JSON values in plain words, such as `list of tables or null, may be missing`, and
//! what a document has of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// A field of a JSON document.
#[derive(Debug, Clone)]
pub(super) struct Field {
    /// The keys that lead to it; `[]` is an element of a list, `*` any key of a table.
    pub(super) path: String,
    /// Its kind in plain words.
    pub(super) kind: String,
    pub(super) meaning: String,
}

/// The kinds at each path; `missing` where the table above it may lack the key.
pub(super) type Kinds = BTreeMap<String, BTreeSet<&'static str>>;

/// Adds the kinds that some words mean.
fn add(kinds: &mut Kinds, path: &str, words: &str) {
    if let Some(words) = words.strip_suffix(", may be missing") {
        kinds.entry(path.to_owned()).or_default().insert("missing");
        return add(kinds, path, words);
    }
    // `list of texts or nulls` may hold nulls, and is none; so is each of `lists of texts or nulls`.
    let is_element = path.ends_with("[]") || path.ends_with(".*");
    let is_nested = is_element && words.starts_with("lists of ");
    let without_null = words.strip_suffix(if is_element { " or nulls" } else { " or null" });
    if let Some(words) = without_null.filter(|_| !is_nested) {
        kinds.entry(path.to_owned()).or_default().insert("null");
        return add(kinds, path, words);
    }
    let parts = |singular: &str, plural: &str| {
        words.strip_prefix(singular).or_else(|| words.strip_prefix(plural)).map(str::to_owned)
    };
    let kind = match words {
        "text" | "texts" => "text",
        "number" | "numbers" => "number",
        "true or false" => "true or false",
        "any value" | "any values" => "any",
        "table" | "tables" | "table of one key" => "table",
        _ => {
            if let Some(elements) = parts("list of ", "lists of ") {
                add(
                    kinds,
                    &format!("{path}[]"),
                    elements.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' '),
                );
                "list"
            } else if let Some(values) = parts("table of ", "tables of ") {
                add(kinds, &format!("{path}.*"), &values);
                "table"
            } else {
                panic!("`{path}`: no kind: {words}")
            }
        }
    };
    kinds.entry(path.to_owned()).or_default().insert(kind);
}

/// Returns the kinds that fields have by their words.
pub(super) fn kinds_of<'a>(fields: impl IntoIterator<Item = &'a Field>) -> Kinds {
    let mut kinds = Kinds::new();
    fields.into_iter().for_each(|field| add(&mut kinds, &field.path, &field.kind));
    kinds
}

/// Adds the kinds that a document has. Where `known` has any key below a table, all keys of the
/// table are one path.
pub(super) fn observe(kinds: &mut Kinds, known: &Kinds, path: &str, value: &Value) {
    if known.get(path).is_some_and(|kinds| kinds.contains("any")) {
        kinds.entry(path.to_owned()).or_default().insert("any");
        return;
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(elements) => {
            elements.iter().for_each(|element| observe(kinds, known, &format!("{path}[]"), element));
            "list"
        }
        Value::Object(table) => {
            let below = if path.is_empty() { String::new() } else { format!("{path}.") };
            let is_map = known.contains_key(&format!("{below}*"));
            for (key, value) in table {
                let key = if is_map { "*" } else { key };
                observe(kinds, known, &format!("{below}{key}"), value);
            }
            let keys = known.keys().filter_map(|known| known.strip_prefix(&below));
            let keys = keys.filter(|key| !key.is_empty() && !key.contains(['.', '[', '*']));
            for missing in keys.filter(|key| !table.contains_key(*key)) {
                kinds.entry(format!("{below}{missing}")).or_default().insert("missing");
            }
            "table"
        }
    };
    if !path.is_empty() {
        kinds.entry(path.to_owned()).or_default().insert(kind);
    }
}

/// Returns the kinds that are in one of two only, one line each.
pub(super) fn difference(one: &Kinds, other: &Kinds) -> Vec<String> {
    let pairs = |kinds: &Kinds| -> BTreeSet<(String, &'static str)> {
        kinds.iter().flat_map(|(path, kinds)| kinds.iter().map(|kind| (path.clone(), *kind))).collect()
    };
    pairs(one).difference(&pairs(other)).map(|(path, kind)| format!("{path} ({kind})")).collect()
}

#[test]
fn words_and_documents_have_the_same_kinds() {
    let field = |path: &str, kind: &str| Field {
        path: path.to_owned(),
        kind: kind.to_owned(),
        meaning: String::new(),
    };
    let fields = [
        field("a", "number or null"),
        field("b", "list of 2 texts or nulls, may be missing"),
        field("c", "table of lists of true or false"),
        field("d", "list of tables"),
        field("d[].e", "text, may be missing"),
        field("f", "table of tables"),
        field("f.*.g", "any value"),
    ];
    let known = kinds_of(&fields);
    let mut seen = Kinds::new();
    for document in [
        serde_json::json!({ "a": 1, "b": ["x", null], "c": { "x": [true] }, "d": [{}, { "e": "x" }], "f": { "y": { "g": [1] } } }),
        serde_json::json!({ "a": null, "c": {}, "d": [], "f": {} }),
    ] {
        observe(&mut seen, &known, "", &document);
    }
    assert_eq!(seen, known);
    let mut other = Kinds::new();
    observe(&mut other, &known, "", &serde_json::json!({ "a": "x", "h": 0 }));
    let expected = ["a (text)", "c (missing)", "d (missing)", "f (missing)", "h (number)"];
    assert_eq!(difference(&other, &known), expected);
}
