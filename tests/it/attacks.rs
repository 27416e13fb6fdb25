//! The page on attacks: its commands, run in order in one shell, print what stands below them. `KANON_README_UPDATE=1` writes what comes
//! out into the page instead of comparing.
//!
//! A `toml` block is the policy, `sh` blocks are functions, and each command of a `console` block stands behind `$`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::fs;
use std::process::Command;

use crate::command::{Place, program};
use crate::house::root;

/// What a run says of other releases in its folder; the page leaves it out.
const WARNING: &str = "kanon: the release is published, but";

/// What comes before the output of a command.
const MARK: &str = "\u{1}";

#[test]
fn each_attack_finds_somebody_and_is_stopped() {
    let path = root().join("docs/attacks.md");
    let page = fs::read_to_string(&path).unwrap();
    let place = Place::new();
    let (mut script, mut shown) = ("exec 2>&1\n".to_owned(), Vec::new());
    for block in page.split("\n```").skip(1).step_by(2) {
        let (language, text) = block.split_once('\n').unwrap();
        match language {
            "toml" => place.write("policy.toml", text),
            "sh" => script += &format!("{text}\n"),
            "console" => {
                for part in format!("\n{text}\n").split("\n$ ").skip(1) {
                    let (command, output) = part.split_once('\n').unwrap_or((part, ""));
                    script += &format!("printf '{MARK}\\n'\n{command}\n");
                    shown.push((command.to_owned(), output.trim_end().to_owned()));
                }
            }
            other => panic!("a block of {other}"),
        }
    }
    let system = std::env::var_os("PATH").unwrap_or_default();
    let kanon = program();
    let folders = kanon.parent().map(ToOwned::to_owned).into_iter().chain(std::env::split_paths(&system));
    let path_of_programs = std::env::join_paths(folders).unwrap();
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(place.path("")).env("PATH", path_of_programs).env("LC_ALL", "C");
    let printed = String::from_utf8(bash.output().unwrap().stdout).unwrap();
    let printed = printed.lines().filter(|line| !line.starts_with(WARNING));
    let printed = printed.collect::<Vec<_>>().join("\n");
    let printed: Vec<&str> = printed.split(MARK).skip(1).map(str::trim).collect();
    assert!(shown.len() > 20 && printed.len() == shown.len(), "{printed:?}");
    let mut now = page.clone();
    for ((command, before), output) in shown.iter().zip(&printed) {
        let of =
            |output: &str| format!("\n$ {command}\n{output}{}", if output.is_empty() { "" } else { "\n" });
        assert!(now.contains(&of(before)), "{command} stands twice, or its output has empty lines");
        now = now.replacen(&of(before), &of(output), 1);
    }
    if std::env::var_os("KANON_README_UPDATE").is_some() {
        fs::write(&path, now).unwrap();
    } else {
        for (before, now) in page.lines().zip(now.lines()) {
            assert_eq!(before, now, "KANON_README_UPDATE=1 writes what comes out");
        }
        assert_eq!(page.lines().count(), now.lines().count());
    }
}
