//! The fields of the two records of a release, read from the structs that serde reads: their names,
//! types and comments.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use super::kinds::Field;
use crate::house::{files_below, root};

/// The struct of `_kanon.json`.
pub(super) const PUBLIC: &str = "PublicRecord";
/// The struct of `OUT.private.json`.
pub(super) const PRIVATE: &str = "PrivateRecord";

/// A field of a struct, or a variant of an enum.
struct Member {
    name: String,
    /// The type; "" for a variant without a value.
    data_type: String,
    /// The comment.
    says: String,
    may_be_missing: bool,
}

/// A type that serde reads.
struct Type {
    is_enum: bool,
    members: Vec<Member>,
}

/// Returns the types of `src` that serde reads, by their names.
fn types() -> BTreeMap<String, Type> {
    let mut types = BTreeMap::new();
    for path in files_below(&root().join("src"), "rs") {
        let text = fs::read_to_string(&path).unwrap();
        let mut lines = text.lines();
        let mut attributes = String::new();
        while let Some(line) = lines.next() {
            let Some((is_enum, name)) = type_name(line) else {
                match line.starts_with("#[") {
                    true => attributes += line,
                    false => attributes.clear(),
                }
                continue;
            };
            if std::mem::take(&mut attributes).contains("Deserialize") {
                let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "}").collect();
                let found = Type { is_enum, members: members(name, is_enum, &body) };
                assert!(types.insert(name.to_owned(), found).is_none(), "two types are named `{name}`");
            }
        }
    }
    types
}

/// Returns the name if a type begins in this line, and whether it is an enum.
fn type_name(line: &str) -> Option<(bool, &str)> {
    let line = line.strip_prefix("pub ")?.strip_suffix(" {")?;
    let of_struct = line.strip_prefix("struct ").map(|name| (false, name));
    of_struct.or_else(|| Some((true, line.strip_prefix("enum ")?)))
}

/// Reads the members between the braces of a type.
fn members(owner: &str, is_enum: bool, body: &[&str]) -> Vec<Member> {
    let (mut members, mut says, mut attributes) = (Vec::new(), Vec::new(), String::new());
    for line in body.iter().map(|line| line.trim()) {
        if let Some(text) = line.strip_prefix("///") {
            says.push(text.trim());
            continue;
        } else if line.starts_with("#[") {
            assert!(line.ends_with(']'), "{owner}: an attribute of several lines");
            attributes += line;
            continue;
        }
        let line = line.strip_suffix(',').unwrap_or_else(|| panic!("{owner}: a member in one line: {line}"));
        let (name, data_type) = match is_enum {
            // `rename_all = "snake_case"`
            true => match line.split_once('(') {
                Some((name, rest)) => (snake_case(name), rest.trim_end_matches(')').to_owned()),
                None => (snake_case(line), String::new()),
            },
            false => {
                let (name, data_type) = line.trim_start_matches("pub ").split_once(": ").unwrap();
                let renamed = attributes.split("rename = \"").nth(1).and_then(|rest| rest.split('"').next());
                (renamed.unwrap_or(name).to_owned(), data_type.to_owned())
            }
        };
        let may_be_missing = attributes.contains("skip_serializing_if");
        assert_eq!(may_be_missing, attributes.contains("default)"), "{owner}.{name}: missing, but when?");
        members.push(Member { name, data_type, says: says.join(" "), may_be_missing });
        (says, attributes) = (Vec::new(), String::new());
    }
    members
}

/// Returns the kind of a Rust type in plain words, in the singular and in the plural, and the
/// record type inside.
fn kind(types: &BTreeMap<String, Type>, data_type: &str) -> (String, String, Option<(String, String)>) {
    let inside =
        |open: &str, close: &str| data_type.strip_prefix(open)?.strip_suffix(close).map(str::to_owned);
    let of = |singular: String, plural: String, path: &str, inner: Option<(String, String)>| {
        (singular, plural, inner.map(|(inner_path, name)| (format!("{path}{inner_path}"), name)))
    };
    let plain = |singular: &str, plural: &str| (singular.to_owned(), plural.to_owned(), None);
    if let Some(element) = inside("Vec<", ">") {
        let (_, elements, inner) = kind(types, &element);
        return of(format!("list of {elements}"), format!("lists of {elements}"), "[]", inner);
    }
    if let Some(element) = inside("BTreeMap<String, ", ">") {
        let (_, values, inner) = kind(types, &element);
        return of(format!("table of {values}"), format!("tables of {values}"), ".*", inner);
    }
    if let Some((element, count)) = inside("[", "]").and_then(|array| {
        array.rsplit_once("; ").map(|(element, count)| (element.to_owned(), count.to_owned()))
    }) {
        let (_, elements, inner) = kind(types, &element);
        return of(
            format!("list of {count} {elements}"),
            format!("lists of {count} {elements}"),
            "[]",
            inner,
        );
    }
    if let Some(value) = inside("Option<", ">") {
        let (one, many, inner) = kind(types, &value);
        return of(format!("{one} or null"), format!("{many} or nulls"), "", inner);
    }
    let record = |singular: &str, plural: &str| {
        (singular.to_owned(), plural.to_owned(), Some((String::new(), data_type.to_owned())))
    };
    match data_type {
        "String" | "PathBuf" => plain("text", "texts"),
        "u32" | "u64" | "usize" | "f64" => plain("number", "numbers"),
        "bool" => plain("true or false", "true or false"),
        name => match types.get(name) {
            Some(found) if !found.is_enum => record("table", "tables"),
            Some(found) if found.members.iter().all(|member| member.data_type.is_empty()) => {
                record("text", "texts")
            }
            Some(_) => record("table of one key", "tables of one key"),
            None => panic!("`{name}` is not a type that a record holds"),
        },
    }
}

/// A field of a record, and the words that it may hold, if it is one of some.
pub(super) struct RecordField {
    pub(super) field: Field,
    pub(super) words: Vec<(String, String)>,
}

/// Returns the fields of a record, each table's before those of the next.
pub(super) fn fields(record: &str) -> Vec<RecordField> {
    let mut fields = Vec::new();
    add_fields(&types(), record, "", &mut fields);
    fields
}

fn add_fields(types: &BTreeMap<String, Type>, name: &str, above: &str, fields: &mut Vec<RecordField>) {
    let found = &types[name];
    for member in &found.members {
        let path = format!("{above}{}", member.name);
        // Only inside a list is what may be missing written as null.
        let is_absent = member.may_be_missing && !member.data_type.contains("[Option<");
        let says = member.says.replace("`None`", if is_absent { "missing" } else { "`null`" });
        assert!(says.ends_with('.') && !says.contains("[`"), "{name}.{}: `{says}`", member.name);
        // What may be missing is never null.
        let optional = member.data_type.strip_prefix("Option<").and_then(|rest| rest.strip_suffix('>'));
        let data_type = optional.filter(|_| member.may_be_missing).unwrap_or(&member.data_type);
        let (mut kind, _, inner) = kind(types, data_type);
        if member.may_be_missing || found.is_enum {
            kind += ", may be missing";
        }
        let inner = inner.map(|(inner_path, inner)| (format!("{path}{inner_path}"), inner));
        let words = inner.as_ref().map(|(_, inner)| &types[inner]).filter(|inner| is_word(inner));
        let words = words.map_or(Vec::new(), |inner| {
            inner.members.iter().map(|word| (word.name.clone(), word.says.clone())).collect()
        });
        let field = Field { path, kind, meaning: says };
        fields.push(RecordField { field, words });
        if let Some((path, inner)) = inner.filter(|(_, inner)| !is_word(&types[inner])) {
            add_fields(types, &inner, &format!("{path}."), fields);
        }
    }
}

fn is_word(found: &Type) -> bool {
    found.is_enum && found.members.iter().all(|member| member.data_type.is_empty())
}

/// Writes a field as a line of a list.
pub(super) fn line(page: &mut String, field: &Field) {
    writeln!(page, "- `{}` ({}): {}", field.path, field.kind, field.meaning).unwrap();
}

/// Writes the section of the records.
pub(super) fn section(page: &mut String) {
    *page += "\n## The records of a release\n\n\
              Records are JSON in UTF-8. A path names the keys that lead to a field: `[]` is an element of a list, `*` any key of a table. \
              Shares are numbers from 0 to 1. Where the policy names no individual column, rows are counted as individuals. A field that may be \
              missing is left out where it has no value or is an empty list, an empty table or false.\n";
    for (title, says, record) in [
        ("`_kanon.json`", "The public record, in the folder of the release.", PUBLIC),
        (
            "`OUT.private.json`",
            "The private record, beside the folder OUT, for the publisher only. `kanon release --report FILE` writes a table of both \
             records: `public` and `private`.",
            PRIVATE,
        ),
    ] {
        write!(page, "\n### {title}\n\n{says}\n\n").unwrap();
        for RecordField { field, words } in fields(record) {
            line(page, &field);
            words.iter().for_each(|(word, says)| writeln!(page, "  - `{word}`: {says}").unwrap());
        }
    }
}

/// `NoisyMean` as serde writes it: `noisy_mean`.
fn snake_case(name: &str) -> String {
    let mut words = String::new();
    for (at, letter) in name.char_indices() {
        if at > 0 && letter.is_uppercase() {
            words.push('_');
        }
        words.extend(letter.to_lowercase());
    }
    words
}
