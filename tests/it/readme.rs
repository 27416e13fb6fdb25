//! The README's section about a policy from `kanon init`: its commands, run in order, print what
//! stands below them.
//!
//! The commands of a `console` block, behind `$`, are run in a folder where `data` is the
//! repository's; below each stand those lines of its output whose first words are shown. A `toml`
//! block that begins with a comment is a part of the policy that `init` wrote, any other holds the
//! reader's edits of it. `KANON_README_UPDATE=1` writes what comes out into the README instead of
//! comparing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use crate::command::{Place, program};
use crate::house::root;

/// The heading of the section.
const SECTION: &str = "## From a CSV file to a release\n";
/// The policy that the reader edits.
const POLICY: &str = "admissions.toml";

/// A fenced block: its language, and its lines with their ends.
struct Block<'a> {
    language: &'a str,
    text: &'a str,
}

fn section(readme: &str) -> &str {
    let start = readme.find(SECTION).unwrap() + SECTION.len();
    let length = readme[start..].find("\n## ").unwrap();
    &readme[start..start + length]
}

fn blocks(section: &str) -> Vec<Block<'_>> {
    let fenced = section.split("```").skip(1).step_by(2);
    fenced
        .map(|block| block.split_once('\n').unwrap())
        .map(|(language, text)| Block { language, text })
        .collect()
}

/// The output of commands; errors are part of what a reader sees.
fn run(place: &Place, commands: &str) -> String {
    let system = std::env::var_os("PATH").unwrap_or_default();
    let kanon = program();
    let folders = kanon.parent().map(Path::to_path_buf).into_iter().chain(std::env::split_paths(&system));
    let mut bash = Command::new("bash");
    bash.args(["-e", "-o", "pipefail", "-c", commands]).current_dir(place.path(""));
    let output =
        bash.env("PATH", std::env::join_paths(folders).unwrap()).env("LC_ALL", "C").output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && errors.is_empty(), "{commands}{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The lines of `output` whose first words `shown` has.
fn same_lines(output: &str, shown: &str) -> String {
    // The borders of tables are `+---+`, as wide as the table is.
    let first = |line: &str| line.split([' ', '-']).next().unwrap_or_default().to_owned();
    let words: HashSet<String> = shown.lines().map(first).collect();
    output.lines().filter(|line| words.contains(&first(line))).map(|line| format!("{line}\n")).collect()
}

fn key(line: &str) -> &str {
    line.split(" = ").next().unwrap().trim_end()
}

/// The line of a column in a policy, with the comments above it.
fn with_comments(policy: &str, column: &str) -> String {
    let lines: Vec<&str> = policy.lines().collect();
    let at = lines.iter().position(|line| !line.starts_with('#') && key(line) == column).unwrap();
    let comments = lines[..at].iter().rev().take_while(|line| line.starts_with('#')).count();
    lines[at - comments..=at].iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_comparison_counts_what_the_tool_lists() {
    let listed = Place::new().run("list --format json").exit(0).json();
    let count = |kind: &str| listed[kind].as_array().unwrap().len();
    let row = format!("| models, methods | {} models and {} methods: ", count("models"), count("methods"));
    assert!(
        std::fs::read_to_string(root().join("README.md")).unwrap().contains(&row),
        "no `{row}` in README.md"
    );
}

#[test]
fn the_first_example_is_what_a_reader_gets() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, section) = readme.split_once("## Try it\n").unwrap();
    let shown = blocks(section);
    let command = shown[0].text.strip_prefix("cargo run -- ").unwrap();
    let place = Place::new();
    std::os::unix::fs::symlink(root().join("data"), place.path("data")).unwrap();
    assert_eq!(place.run(command.trim_end()).exit(0).out, shown[1].text);
}

#[test]
fn the_second_example_is_what_a_reader_gets() {
    let path = root().join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let place = Place::new();
    std::os::unix::fs::symlink(root().join("data"), place.path("data")).unwrap();
    let (mut updated, mut edits) = (readme.clone(), 0);
    let section = section(&readme);
    for Block { language, text } in blocks(section) {
        let now = match language {
            "console" => {
                let commands = text.split("$ ").skip(1).map(|one| one.split_once('\n').unwrap());
                let now = commands.map(|(command, shown)| {
                    format!("$ {command}\n{}", same_lines(&run(&place, command), shown))
                });
                now.collect()
            }
            "toml" => {
                let policy = std::fs::read_to_string(place.path(POLICY)).unwrap();
                if text.starts_with('#') {
                    with_comments(&policy, key(text.lines().last().unwrap()))
                } else {
                    let mut edited = policy;
                    for line in text.lines() {
                        let open = format!("{} = {{ role = \"?\" }}\n", key(line));
                        assert!(edited.contains(&open), "`{}` is not undecided", key(line));
                        edited = edited.replace(&open, &format!("{line}\n"));
                        edits += 1;
                    }
                    assert!(!edited.contains("role = \"?\""), "{edited}");
                    place.write(POLICY, edited);
                    continue;
                }
            }
            other => panic!("a block of `{other}`"),
        };
        updated = updated.replace(text, &now);
    }
    assert_eq!(edits, 3);
    if std::env::var_os("KANON_README_UPDATE").is_some() {
        std::fs::write(&path, &updated).unwrap();
        return;
    }
    let differs = readme.lines().zip(updated.lines()).find(|(shown, now)| shown != now);
    assert!(
        readme == updated,
        "README.md is not current ({differs:?}); KANON_README_UPDATE=1 cargo test --test it readme"
    );
}
