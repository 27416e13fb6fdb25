//! The fields of what the program writes as JSON, read from the types that serde writes: their names,
//! types and comments.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::sync::LazyLock;

use super::kinds::Field;
use crate::house::{files_below, root};

/// A type of `src` that serde writes, as it stands there.
struct Source {
    is_enum: bool,
    /// Whether serde reads it, too.
    is_read: bool,
    /// What stands in `#[...]` above it.
    attributes: String,
    /// The lines between its braces.
    body: Vec<String>,
}

/// The types by their names.
static SOURCES: LazyLock<BTreeMap<String, Vec<Source>>> = LazyLock::new(sources);

fn sources() -> BTreeMap<String, Vec<Source>> {
    let mut sources: BTreeMap<String, Vec<Source>> = BTreeMap::new();
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
            let attributes = std::mem::take(&mut attributes);
            if attributes.contains("Serialize") {
                let is_read = attributes.contains("Deserialize");
                let body = lines.by_ref().take_while(|line| *line != "}").map(str::to_owned).collect();
                let source = Source { is_enum, is_read, attributes, body };
                sources.entry(name.to_owned()).or_default().push(source);
            }
        }
    }
    sources
}

/// Returns the name if a type begins in this line, and whether it is an enum.
fn type_name(line: &str) -> Option<(bool, &str)> {
    let line = line.strip_suffix(" {")?;
    let line = line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) "))?;
    let of_struct = line.strip_prefix("struct ").map(|name| (false, name));
    let (is_enum, name) = of_struct.or_else(|| Some((true, line.strip_prefix("enum ")?)))?;
    Some((is_enum, name.split('<').next()?))
}

/// A field of a struct, or a variant of an enum.
struct Member {
    name: String,
    /// The type; "" for a variant without a value.
    data_type: String,
    /// The comment.
    says: String,
    may_be_missing: bool,
    /// Whether its keys stand beside the others, instead of below its name.
    is_flat: bool,
}

/// A type that serde writes.
struct Type {
    is_enum: bool,
    members: Vec<Member>,
}

impl Type {
    fn of(name: &str) -> Self {
        let sources = SOURCES.get(name).unwrap_or_else(|| panic!("`{name}` is not a type that JSON holds"));
        let [Source { is_enum, is_read, attributes, body }] = sources.as_slice() else {
            panic!("two types are named `{name}`")
        };
        let is_plain = !has(attributes, "tag") && !has(attributes, "untagged");
        assert!(is_plain && has(attributes, "snake_case") == *is_enum, "{name}: with which keys?");
        Self { is_enum: *is_enum, members: members(name, *is_enum, *is_read, body) }
    }

    /// Returns whether its values are some words.
    fn is_word(&self) -> bool {
        self.is_enum && self.members.iter().all(|member| member.data_type.is_empty())
    }
}

/// Returns whether a word stands in attributes.
fn has(attributes: &str, word: &str) -> bool {
    attributes.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|found| found == word)
}

/// Reads the members between the braces of a type.
fn members(owner: &str, is_enum: bool, is_read: bool, body: &[String]) -> Vec<Member> {
    let (mut members, mut says, mut attributes) = (Vec::new(), Vec::new(), String::new());
    for line in body.iter().map(|line| line.trim()) {
        if let Some(text) = line.strip_prefix("///") {
            says.push(text.trim());
            continue;
        } else if line.starts_with("#[") {
            assert!(line.ends_with(']'), "{owner}: an attribute of several lines");
            // `#[default]` of an enum is not serde's.
            attributes += if line.starts_with("#[serde(") { line } else { "" };
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
                let (name, data_type) = line.split_once(": ").unwrap();
                let name = name.rsplit(' ').next().unwrap();
                let renamed = attributes.split("rename = \"").nth(1).and_then(|rest| rest.split('"').next());
                (renamed.unwrap_or(name).to_owned(), data_type.to_owned())
            }
        };
        let may_be_missing = has(&attributes, "skip_serializing_if");
        let is_known = !is_read || may_be_missing == has(&attributes, "default");
        assert!(is_known, "{owner}.{name}: missing, but when?");
        if !has(&attributes, "skip") {
            let is_flat = has(&attributes, "flatten");
            members.push(Member { name, data_type, says: says.join(" "), may_be_missing, is_flat });
        }
        (says, attributes) = (Vec::new(), String::new());
    }
    members
}

/// A Rust type in plain words.
struct Kind {
    singular: String,
    plural: String,
    /// The path to the type of `src` inside, and its name.
    inner: Option<(String, String)>,
}

impl Kind {
    fn of(data_type: &str) -> Self {
        let data_type = data_type.strip_prefix("&'static ").unwrap_or(data_type);
        let inside = |open: &str, close: &str| data_type.strip_prefix(open)?.strip_suffix(close);
        let holding = |what: &str, count: &str, element: &str, step: &str| {
            let Self { plural: elements, inner, .. } = Self::of(element);
            Self {
                singular: format!("{what} of {count}{elements}"),
                plural: format!("{what}s of {count}{elements}"),
                inner: inner.map(|(path, name)| (format!("{step}{path}"), name)),
            }
        };
        if let Some(element) = inside("Vec<", ">") {
            return holding("list", "", element, "[]");
        }
        let by_text = inside("BTreeMap<String, ", ">");
        if let Some(value) = by_text.or_else(|| inside("BTreeMap<&'static str, ", ">")) {
            return holding("table", "", value, ".*");
        }
        if let Some((element, count)) = inside("[", "]").and_then(|array| array.rsplit_once("; ")) {
            return holding("list", &format!("{count} "), element, "[]");
        }
        if let Some(value) = inside("Option<", ">") {
            let Self { singular, plural, inner } = Self::of(value);
            let (singular, plural) = (format!("{singular} or null"), format!("{plural} or nulls"));
            return Self { singular, plural, inner };
        }
        let (singular, plural, is_ours) = match data_type {
            "String" | "str" | "PathBuf" | "char" => ("text", "texts", false),
            "u8" | "u16" | "u32" | "u64" | "usize" | "i64" | "f64" => ("number", "numbers", false),
            "bool" => ("true or false", "true or false", false),
            "Value" | "serde_json::Value" => ("any value", "any values", false),
            name => match Type::of(name) {
                found if !found.is_enum => ("table", "tables", true),
                found if found.is_word() => ("text", "texts", true),
                _ => ("table of one key", "tables of one key", true),
            },
        };
        let inner = is_ours.then(|| (String::new(), data_type.to_owned()));
        Self { singular: singular.to_owned(), plural: plural.to_owned(), inner }
    }
}

/// A field on the page.
pub(super) struct Listed {
    pub(super) field: Field,
    /// The words that it may hold, if it is one of some.
    pub(super) words: Vec<(String, String)>,
    /// The type of `src` whose keys or words are listed here, and the path to it.
    lists: Option<(String, String)>,
}

/// Where the keys or words of a type are listed first, such as "`best[]` of `kanon search`", by the
/// type's name.
#[derive(Default)]
pub(super) struct Places(BTreeMap<String, String>);

impl Places {
    /// Adds the type of a document that is listed as a whole, and the types in it.
    pub(super) fn add_document(&mut self, name: &str, document: &str) {
        self.0.insert(name.to_owned(), format!("`{document}`"));
        self.add(&fields(name), document);
    }

    /// Adds the types that are listed with fields of a document.
    fn add(&mut self, fields: &[Listed], document: &str) {
        for (path, name) in fields.iter().filter_map(|listed| listed.lists.as_ref()) {
            self.0.entry(name.clone()).or_insert_with(|| format!("`{path}` of `{document}`"));
        }
    }

    /// Returns the fields of a document as [`fields`] does, but refers to the types that were listed
    /// before. Adds the others.
    pub(super) fn fields(&mut self, name: &str, document: &str) -> Vec<Listed> {
        let mut walk = Walk { places: Some((self, document)), fields: Vec::new() };
        walk.add(name, "");
        walk.fields
    }

    /// Returns where a type is listed; for one that is not, the places of those whose keys stand
    /// beside its own.
    fn of(&self, name: &str) -> Vec<String> {
        if let Some(place) = self.0.get(name) {
            return vec![place.clone()];
        }
        let flat = Type::of(name).members.into_iter().filter(|member| member.is_flat);
        flat.flat_map(|member| self.of(&member.data_type)).collect()
    }
}

/// Returns the fields of a document of a type, each table's before those of the next.
pub(super) fn fields(name: &str) -> Vec<Listed> {
    let mut walk = Walk { places: None, fields: Vec::new() };
    walk.add(name, "");
    walk.fields
}

/// Lists the fields of a document.
struct Walk<'a> {
    /// The types listed so far, and the document; `None` to list all of them again.
    places: Option<(&'a mut Places, &'a str)>,
    fields: Vec<Listed>,
}

impl Walk<'_> {
    /// Adds the fields of a type below a path, which is empty or ends in a point.
    fn add(&mut self, name: &str, above: &str) {
        let found = Type::of(name);
        for member in found.members {
            if member.is_flat {
                // The field above refers to it.
                if above.is_empty() || !self.is_listed(&member.data_type) {
                    self.add(&member.data_type, above);
                }
                continue;
            }
            let path = format!("{above}{}", member.name);
            // Only inside a list is what may be missing written as null.
            let is_absent = member.may_be_missing && !member.data_type.contains("[Option<");
            let mut meaning = member.says.replace("`None`", if is_absent { "missing" } else { "`null`" });
            assert!(meaning.ends_with('.') && !meaning.contains("[`"), "{name}.{}: `{meaning}`", member.name);
            // What may be missing is never null.
            let optional = member.data_type.strip_prefix("Option<").and_then(|rest| rest.strip_suffix('>'));
            let data_type = optional.filter(|_| member.may_be_missing).unwrap_or(&member.data_type);
            let Kind { singular: mut kind, inner, .. } = Kind::of(data_type);
            if member.may_be_missing || found.is_enum {
                kind += ", may be missing";
            }
            let lists = inner.map(|(step, inner)| (format!("{path}{step}"), inner));
            if let Some((_, inner)) = &lists {
                let reference = self.reference(inner, &meaning);
                meaning += &reference;
            }
            let lists = lists.filter(|(_, inner)| !self.is_listed(inner));
            let words = lists.as_ref().map_or(Vec::new(), |(_, inner)| words(inner));
            let table = lists.clone().filter(|_| words.is_empty());
            let listed = Listed { field: Field { path, kind, meaning }, words, lists };
            if let Some((places, document)) = &mut self.places {
                places.add(std::slice::from_ref(&listed), document);
            }
            self.fields.push(listed);
            if let Some((path, inner)) = table {
                self.add(&inner, &format!("{path}."));
            }
        }
    }

    fn is_listed(&self, name: &str) -> bool {
        self.places.as_ref().is_some_and(|(places, _)| places.0.contains_key(name))
    }

    /// Says where the keys or the words of a type are listed, if they are and the field does not say it
    /// itself.
    fn reference(&self, name: &str, meaning: &str) -> String {
        let mut places = self.places.as_ref().map_or(Vec::new(), |(places, _)| places.of(name));
        places.retain(|place| !meaning.contains(place.as_str()));
        match (places.is_empty(), Type::of(name).is_word()) {
            (true, _) => String::new(),
            (false, true) => format!(" Words as in {}.", places.join(" and in ")),
            (false, false) => format!(" Keys as in {}.", places.join(" and in ")),
        }
    }
}

/// Returns the words of an enum, with what they mean; none for other types.
fn words(name: &str) -> Vec<(String, String)> {
    let found = Type::of(name);
    let words = if found.is_word() { found.members } else { Vec::new() };
    words.into_iter().map(|word| (word.name, word.says)).collect()
}

/// Writes fields as lines of a list.
pub(super) fn write(page: &mut String, fields: &[Listed]) {
    for Listed { field: Field { path, kind, meaning }, words, .. } in fields {
        writeln!(page, "- `{path}` ({kind}): {meaning}").unwrap();
        words.iter().for_each(|(word, says)| writeln!(page, "  - `{word}`: {says}").unwrap());
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

#[test]
fn types_have_kinds_in_plain_words() {
    for (data_type, kind) in [
        ("&'static str", "text"),
        ("Vec<Vec<String>>", "list of lists of texts"),
        ("Option<BTreeMap<String, Value>>", "table of any values or null"),
        ("[Option<String>; 2]", "list of 2 texts or nulls"),
        ("Vec<&'static Doc>", "list of tables"),
        ("Ends", "text"),
        ("RecodingRecord", "table of one key"),
    ] {
        assert_eq!(Kind::of(data_type).singular, kind, "{data_type}");
    }
}
