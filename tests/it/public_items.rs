//! The public items of the library, held as a list: `tests/it/public_items.txt`.
//!
//! Items that `#[doc(hidden)]` marks, and all of `internals`, promise nothing and are not listed. A new item
//! is an edit of the list: `KANON_PUBLIC_UPDATE=1 cargo test --test it public_items`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::house::{files_below, root};

const LIST: &str = "tests/it/public_items.txt";

/// An item that `src/lib.rs` publishes: the module that it is published in, where it is defined, and its name.
struct Published {
    module: String,
    path: Vec<String>,
    name: String,
}

/// Reads the `pub use` of `src/lib.rs`, up to the hidden module.
fn published() -> Vec<Published> {
    let text = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let (text, _) = text.split_once("#[doc(hidden)]\npub mod internals").unwrap();
    let mut module = String::new();
    let mut published = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("pub mod ") {
            module =
                format!("{}::", name.strip_suffix(" {").expect("a public module of lib.rs is written there"));
        } else if line == "}" {
            module.clear();
        }
        let Some(used) = line.trim_start().strip_prefix("pub use ") else { continue };
        let mut used = used.to_owned();
        while !used.ends_with(';') {
            used += lines.next().unwrap().trim();
        }
        let used = used.trim_end_matches(';');
        let (path, names) = match used.split_once("::{") {
            Some((path, names)) => (path, names.trim_end_matches('}')),
            None => used.rsplit_once("::").unwrap(),
        };
        let path: Vec<String> = path.trim_start_matches("crate::").split("::").map(str::to_owned).collect();
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let (module, path, name) = (module.clone(), path.clone(), name.to_owned());
            published.push(Published { module, path, name });
        }
    }
    published
}

/// A source file of the library, without its tests.
struct File {
    path: PathBuf,
    lines: Vec<String>,
}

fn files_of_library() -> Vec<File> {
    let src = root().join("src");
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let tests = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
        File {
            lines: text[..tests].lines().map(str::to_owned).collect(),
            path: path.strip_prefix(&src).unwrap().into(),
        }
    };
    files_below(&src, "rs").into_iter().map(read).filter(|file| !file.path.starts_with("cli")).collect()
}

/// What a line at the beginning of a definition defines: `struct`, `fn`, and so on.
fn kind_of(line: &str, name: &str) -> Option<&'static str> {
    let rest = line.strip_prefix("pub ")?;
    let rest = rest.strip_prefix("async ").unwrap_or(rest);
    let is_name = |rest: &str| {
        let after = rest.strip_prefix(name);
        after.is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let kinds = ["struct", "enum", "trait", "fn", "type", "const"];
    kinds.into_iter().find(|kind| rest.strip_prefix(kind).is_some_and(|rest| is_name(rest.trim_start())))
}

/// Returns the file and the line in which an item is defined, and its kind.
fn defined<'a>(files: &'a [File], item: &Published) -> (&'a File, usize, &'static str) {
    let room = files.iter().filter(|file| {
        file.path.starts_with(&item.path[0]) || file.path.ends_with(format!("{}.rs", item.path[0]))
    });
    let found = room.flat_map(|file| {
        let lines = file.lines.iter().enumerate();
        lines.filter_map(move |(at, line)| kind_of(line, &item.name).map(|kind| (file, at, kind)))
    });
    let found: Vec<_> = found.collect();
    let here = item.path.join("/");
    let named = |file: &File| {
        [format!("{here}.rs"), format!("{here}/mod.rs")].iter().any(|name| file.path.ends_with(name))
    };
    let at_path: Vec<_> = found.iter().filter(|(file, ..)| named(file)).collect();
    match (at_path.as_slice(), found.as_slice()) {
        ([one], _) => **one,
        ([], [one]) => *one,
        _ => panic!("{}::{}: defined {} times below src/{}", here, item.name, found.len(), item.path[0]),
    }
}

/// The name at the beginning of a text.
fn name_of(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The members in the lines of a block, up to its end: what `named` finds in a line that begins a member, unless it is hidden.
fn members<'a>(
    lines: impl Iterator<Item = &'a String>,
    named: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let mut members = Vec::new();
    let mut is_hidden = false;
    for line in lines.take_while(|line| *line != "}") {
        let Some(inner) = line.strip_prefix("    ").filter(|inner| !inner.starts_with([' ', '}', ')']))
        else {
            continue;
        };
        if inner.starts_with("#[") || inner.starts_with("//") {
            is_hidden |= inner == "#[doc(hidden)]";
            continue;
        }
        members.extend(named(inner).filter(|_| !is_hidden));
        is_hidden = false;
    }
    members
}

fn function(line: &str) -> Option<String> {
    let words = ["const ", "async "];
    let line = words.iter().fold(line, |line, word| line.strip_prefix(word).unwrap_or(line));
    line.strip_prefix("fn ").map(name_of)
}

/// The lines of the list: each public item with its kind, and its members below it.
fn items() -> Vec<String> {
    let files = files_of_library();
    let mut items = BTreeSet::new();
    for item in published() {
        let (file, at, kind) = defined(&files, &item);
        let Published { module, name, .. } = &item;
        assert!(items.insert(format!("{module}{name}: {kind}")), "{module}{name} is published twice");
        let block = || file.lines[at + 1..].iter();
        let is_block = file.lines[at].ends_with('{');
        let of_block = match kind {
            "struct" if is_block => {
                members(block(), |line| line.strip_prefix("pub ").map(|line| format!(".{}", name_of(line))))
            }
            "enum" if is_block => members(block(), |line| Some(format!("::{}", name_of(line)))),
            "trait" if is_block => {
                members(block(), |line| function(line).map(|function| format!("::{function}")))
            }
            _ => Vec::new(),
        };
        let begins_impl = |line: &str| {
            let rest = line.strip_prefix("impl").filter(|_| line.ends_with('{') && !line.contains(" for "));
            let rest = rest.map(|rest| rest.trim_start_matches(|c| c != ' ').trim_start());
            rest.is_some_and(|rest| name_of(rest) == *name)
        };
        let room = files.iter().filter(|other| other.path.iter().next() == file.path.iter().next());
        let impls = room.flat_map(|file| {
            let starts =
                file.lines.iter().enumerate().filter(|(_, line)| begins_impl(line)).map(|(at, _)| at + 1);
            starts.map(|start| file.lines[start..].iter())
        });
        let of_impls = impls.flat_map(|lines| {
            members(lines, |line| {
                line.strip_prefix("pub ").and_then(function).map(|function| format!("::{function}"))
            })
        });
        for member in of_block.into_iter().chain(of_impls) {
            items.insert(format!("{module}{name}{member}"));
        }
    }
    items.into_iter().collect()
}

#[test]
fn the_public_items_are_those_of_the_list() {
    let found = items().join("\n") + "\n";
    let path = root().join(LIST);
    if std::env::var_os("KANON_PUBLIC_UPDATE").is_some() {
        fs::write(&path, &found).unwrap();
    }
    let list = fs::read_to_string(&path).unwrap();
    let [found, listed] = [&found, &list].map(|text| text.lines().collect::<BTreeSet<_>>());
    let added: Vec<_> = found.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(
        added.is_empty() && gone.is_empty(),
        "{LIST}: public, but not listed: {added:?}; listed, but not public: {gone:?}; KANON_PUBLIC_UPDATE=1 writes the list"
    );
}
