//! The house rules that a machine can check: layers, tables, names, sizes, panics.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use datafusion_kanon::internals::doc::Doc;
use datafusion_kanon::internals::generalize::{GENERALIZERS, merge};
use datafusion_kanon::internals::known::KNOWN;
use datafusion_kanon::internals::measure::{LOSSES, RISKS};
use datafusion_kanon::internals::method::{METHODS, MethodRow};
use datafusion_kanon::internals::model::MODELS;
use datafusion_kanon::internals::sql::table::TABLE_FUNCTIONS;

/// The repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files below `folder` whose names end in `.extension`, sorted.
pub(crate) fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// A source file: its path below `src`, and its lines of code without comments and tests.
struct Source {
    path: String,
    lines: usize,
    code: Vec<(usize, String)>,
}

fn sources() -> Vec<Source> {
    let src = root().join("src");
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let tests = text.find("#[cfg(test)]\nmod tests").or(text.find("#[cfg(test)]\npub(crate) mod tests"));
        // `x_tests.rs` is the tests of `x.rs`, in a file of their own.
        let tests = if path.to_string_lossy().ends_with("_tests.rs") { Some(0) } else { tests };
        let code = text[..tests.unwrap_or(text.len())].lines().enumerate();
        let code = code.filter(|(_, line)| !line.trim_start().starts_with("//"));
        Source {
            path: path.strip_prefix(&src).unwrap().to_str().unwrap().to_owned(),
            lines: text.lines().count(),
            code: code.map(|(number, line)| (number + 1, line.to_owned())).collect(),
        }
    };
    files_below(&src, "rs").into_iter().map(read).collect()
}

/// The room of a source file: the first folder of its path, or the file itself.
fn room(path: &str) -> &str {
    path.split(['/', '.']).next().unwrap()
}

/// The files that are in no room: they stand above all.
const ROOTS: &[&str] = &["lib", "main"];

/// The picture of the layers in `src/lib.rs`. Rooms of one layer may know each other, but for the pairs
/// in [`FORBIDDEN`]: a judged node is classes and models together.
struct Picture {
    /// The rooms of each layer, top first.
    layers: Vec<Vec<String>>,
    /// The number of layers above the line of dashes: only these may know the engine.
    with_engine: usize,
}

impl Picture {
    fn read() -> Self {
        let text = fs::read_to_string(root().join("src/lib.rs")).unwrap();
        let (_, section) = text.split_once("//! # Layers").unwrap();
        let lines = section.split("```").nth(1).unwrap().lines();
        let lines = lines.filter_map(|line| line.strip_prefix("//! ")).filter(|line| !line.is_empty());
        // Commas separate the rooms of a layer; two spaces or more, what is said of them.
        let rooms = lines.map(|line| line.split("  ").next().unwrap().split(", ").map(str::to_owned));
        let mut layers: Vec<Vec<String>> = rooms.map(Iterator::collect).collect();
        let with_engine = layers.iter().position(|rooms| rooms[0].starts_with("---")).unwrap();
        layers.remove(with_engine);
        Self { layers, with_engine }
    }

    /// The layer of a room, counted from the top.
    fn layer(&self, room: &str) -> usize {
        let found = self.layers.iter().position(|rooms| rooms.iter().any(|one| one == room));
        found.unwrap_or_else(|| panic!("`{room}` is not in the picture of the layers in src/lib.rs"))
    }
}

/// What may not be used although it lies below: verification shares nothing with the search that it
/// judges, and features of one layer stand side by side.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("verify", &["input", "measure", "method", "policy"]),
    ("input", &["measure", "method", "verify"]),
    ("engine", &["measure", "method", "policy"]),
    ("linkage", &["propose", "sql"]),
    ("propose", &["linkage", "sql"]),
];

/// No room holds more than this share of the lines of code, in percent.
const LARGEST_ROOM: usize = 20;

/// The crates that are the engine.
const ENGINE_CRATES: &[&str] = &["datafusion", "object_store", "tokio", "parquet"];

/// Every command of `tests/all.sh` and the README compiles the crates with the same features, or DataFusion is built twice.
#[test]
fn the_engine_is_built_once() {
    let tree = |arguments: &str| -> BTreeSet<String> {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        command.args("tree --locked --offline --prefix none --format".split(' ')).arg("{p} {f}");
        let ran = command.args(arguments.split(' ')).current_dir(root()).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let text = String::from_utf8(ran.stdout).unwrap();
        let lines = text.lines().map(|line| line.trim_end_matches(" (*)").trim_end().to_owned());
        lines
            .filter(|line| !line.starts_with("datafusion-kanon ") && !line.starts_with("kanon-foreign "))
            .collect()
    };
    let of_tests = tree("--edges normal,build,dev");
    assert!(of_tests.iter().any(|line| line.starts_with("datafusion v")));
    for other in ["", " --no-default-features --features engine", " --package kanon-foreign"] {
        let other = tree(&format!("--edges normal,build{other}"));
        let otherwise: Vec<&String> = other.difference(&of_tests).collect();
        assert!(otherwise.is_empty(), "built again, with other features than for the tests: {otherwise:#?}");
    }
}

#[test]
fn the_picture_shows_every_room_once() {
    let mut drawn = Picture::read().layers.concat();
    drawn.sort();
    let files = sources();
    let rooms: BTreeSet<&str> = files.iter().map(|file| room(&file.path)).collect();
    let rooms: Vec<&str> = rooms.into_iter().filter(|room| !ROOTS.contains(room)).collect();
    assert_eq!(drawn, rooms, "the rooms of the picture in src/lib.rs, and those of src");
}

#[test]
fn upper_layers_use_lower_ones_never_the_reverse() {
    let picture = Picture::read();
    for Source { path, code, .. } in sources() {
        let module = room(&path);
        if ROOTS.contains(&module) {
            continue;
        }
        let own = picture.layer(module);
        let may_know_engine = own < picture.with_engine;
        for (number, line) in code {
            // The binary uses the library by its name.
            for used in line.replace("datafusion_kanon::internals::", "crate::").split("crate::").skip(1) {
                let used: String = used.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
                assert!(!used.is_empty(), "src/{path}:{number}: one `use crate::module` a line");
                assert!(
                    picture.layer(&used) >= own,
                    "src/{path}:{number}: `{module}` may not use `{used}`, which lies above"
                );
                let is_forbidden =
                    FORBIDDEN.iter().any(|(by, what)| *by == module && what.contains(&used.as_str()));
                assert!(!is_forbidden, "src/{path}:{number}: `{module}` may not use `{used}`");
            }
            for used in ENGINE_CRATES.iter().filter(|_| !may_know_engine) {
                let mentions = line.contains(&format!("{used}::"));
                assert!(!mentions, "src/{path}:{number}: `{module}` may not use `{used}`: it lies too low");
            }
        }
    }
}

/// A folder of features: its rows, where their files are, and files beside them that are no feature.
struct Table {
    name: &'static str,
    src: &'static [&'static str],
    sql: &'static str,
    rows: Vec<&'static Doc>,
    support: &'static [&'static str],
}

fn tables() -> Vec<Table> {
    vec![
        Table {
            name: "GENERALIZERS",
            src: &["generalize"],
            sql: "generalize",
            rows: GENERALIZERS.iter().map(|row| row.doc).chain([merge::DOC]).collect(),
            support: &[
                "mod",
                "bounds",
                "centroid",
                "civil",
                "date_tests",
                "decimal_steps",
                "descriptor",
                "frequent_values",
                "hierarchy_file",
                "hierarchy_of_levels",
                "hierarchy_rows",
                "hierarchy_shape",
                "interval_number",
                "known_tests",
                "laws_tests",
                "merge_tests",
                "naive_bounds",
                "prefix_tests",
                "region_label",
                "region_label_tests",
                "restore",
                "tidy_hierarchy",
                "value",
                "value_runs",
                "zone",
            ],
        },
        Table {
            name: "KNOWN",
            src: &["known"],
            sql: "known",
            rows: KNOWN.iter().map(|row| row.doc).collect(),
            support: &["mod", "coordinates", "digits", "named", "ranges"],
        },
        Table {
            name: "MODELS",
            src: &["model"],
            sql: "model",
            rows: MODELS.iter().map(|row| row.doc).collect(),
            support: &[
                "mod",
                "distribution",
                "excess",
                "requirement",
                "seen_class",
                "sensitive_column",
                "value_facts",
            ],
        },
        Table {
            name: "LOSSES and RISKS",
            src: &["measure"],
            sql: "measure",
            rows: LOSSES.iter().map(|row| row.doc()).chain(RISKS.iter().map(|row| row.doc)).collect(),
            support: &["mod", "queries", "shown", "spread", "utility_tests"],
        },
        Table {
            name: "TABLE_FUNCTIONS",
            src: &["sql/table"],
            sql: "table",
            rows: TABLE_FUNCTIONS.iter().map(|row| row.doc).collect(),
            support: &[
                "mod",
                "arguments",
                "distinct_counts",
                "of_population",
                "policy",
                "task",
                "two_tables",
            ],
        },
        Table {
            name: "METHODS",
            src: &["method"],
            sql: "method",
            rows: METHODS.iter().map(MethodRow::doc).collect(),
            support: &[
                "mod",
                "attack_tests",
                "branch_and_bound",
                "evaluate",
                "class_cache",
                "classic_tests",
                "minimal",
                "cell",
                "cell_tests",
                "cut",
                "cuts",
                "dp_centroids_tests",
                "global",
                "in_parts",
                "kind",
                "least_loss",
                "medians",
                "methods_tests",
                "microaggregation_tests",
                "mondrian_tests",
                "near",
                "nodes",
                "points",
            ],
        },
    ]
}

/// The names of the files of a folder, without their ends.
fn stems(folder: &Path, extension: &str) -> BTreeSet<String> {
    let files = files_below(folder, extension).into_iter();
    files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn a_feature_is_a_row_a_file_and_a_page() {
    for table in tables() {
        let rows: BTreeSet<String> = table.rows.iter().map(|doc| doc.name.to_owned()).collect();
        let support = table.support.iter().map(|name| (*name).to_owned());
        let expected: BTreeSet<String> = rows.iter().cloned().chain(support).collect();
        let folders = table.src.iter().map(|folder| stems(&root().join("src").join(folder), "rs"));
        let sources: BTreeSet<String> = folders.flatten().collect();
        assert_eq!(
            sources, expected,
            "src/{:?}: the rows of {} and the support files",
            table.src, table.name
        );
        let pages = stems(&root().join("sql").join(table.sql), "slt");
        assert_eq!(pages, rows, "sql/{}: the rows of {}", table.sql, table.name);
    }
}

#[test]
fn rows_say_what_they_are() {
    let mut names = BTreeSet::new();
    for doc in tables().iter().flat_map(|table| &table.rows) {
        assert!(names.insert(doc.name), "`{}` is the name of two rows", doc.name);
        assert!(!doc.summary.is_empty() && !doc.example.is_empty(), "`{}` says too little", doc.name);
        assert!(
            doc.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
            "`{}`",
            doc.name
        );
    }
}

#[test]
fn the_tutorial_is_there() {
    for name in ["01_first_check", "02_generalize", "03_first_release"] {
        assert!(root().join(format!("sql/{name}.slt")).exists(), "sql/{name}.slt");
    }
}

/// A file is one feature.
const LONGEST: usize = 500;

#[test]
fn files_are_short() {
    for Source { path, lines, .. } in sources() {
        assert!(lines <= LONGEST, "src/{path} has {lines} lines; divide it, {LONGEST} are enough");
    }
}

#[test]
fn no_room_is_a_house() {
    let mut rooms: BTreeMap<String, usize> = BTreeMap::new();
    for Source { path, lines, .. } in sources() {
        *rooms.entry(room(&path).to_owned()).or_default() += lines;
    }
    let all: usize = rooms.values().sum();
    for (room, lines) in rooms {
        assert!(lines * 100 <= all * LARGEST_ROOM, "src/{room} holds {lines} of {all} lines; divide it");
    }
}

#[test]
fn the_library_does_not_panic() {
    for Source { path, code, .. } in sources() {
        for (number, line) in code {
            for wrong in [".unwrap()", ".expect(", "panic!(", "todo!(", "unimplemented!(", "unreachable!("] {
                assert!(!line.contains(wrong), "src/{path}:{number}: `{wrong}` outside tests");
            }
        }
    }
}
