//! The options that every command takes: the page lists them once and leaves them out of the help
//! of the commands.

use super::COMMANDS;
use crate::command::Place;

/// The head of the options in a help.
const OPTIONS: &str = "Options:";

/// A help, divided at its options.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Help {
    before: String,
    /// Each option with its text.
    options: Vec<String>,
    after: String,
}

impl Help {
    /// Returns the help of a command; that of `kanon` for "".
    pub(super) fn of(place: &Place, command: &str) -> Self {
        let text = place.run(&format!("{command} --help")).exit(0).out;
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let head = lines.iter().position(|line| *line == OPTIONS).unwrap();
        let behind = &lines[head + 1..];
        let is_unindented = |line: &&str| !line.is_empty() && !line.starts_with(' ');
        let end = behind.iter().position(is_unindented).unwrap_or(behind.len());
        let mut options: Vec<Vec<&str>> = Vec::new();
        for line in &behind[..end] {
            let indent = line.len() - line.trim_start().len();
            if indent < 10 && line.trim_start().starts_with('-') {
                options.push(Vec::new());
            }
            options.last_mut().unwrap().push(line);
        }
        let joined = |lines: &[&str]| lines.join("\n").trim_matches('\n').to_owned();
        Self {
            before: joined(&lines[..head]),
            options: options.iter().map(|lines| joined(lines)).collect(),
            after: joined(&behind[end..]),
        }
    }

    /// Returns the help without the global options.
    pub(super) fn own(&self, global: &[String]) -> String {
        let own: Vec<&str> =
            self.options.iter().filter(|option| !global.contains(option)).map(String::as_str).collect();
        let own = if own.is_empty() { String::new() } else { format!("{OPTIONS}\n{}", own.join("\n\n")) };
        let parts = [&self.before, &own, &self.after];
        let parts: Vec<&str> =
            parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }
}

/// Returns the options of `kanon` that every command takes, too.
pub(super) fn global(place: &Place) -> Vec<String> {
    let everywhere = Help::of(place, "").options.into_iter();
    everywhere.filter(|option| !option.trim_start().starts_with("-V, --version")).collect()
}

#[test]
fn global_options_are_those_that_all_commands_share() {
    let place = Place::new();
    let global = global(&place);
    let commands: Vec<Help> = COMMANDS.iter().map(|command| Help::of(&place, command)).collect();
    let is_shared = |option: &&String| commands.iter().all(|help| help.options.contains(*option));
    let shared: Vec<&String> = commands[0].options.iter().filter(is_shared).collect();
    assert_eq!(shared, global.iter().collect::<Vec<_>>());
    assert!(global.len() > 5, "{global:?}");
}

#[test]
fn the_page_has_global_options_once() {
    let page = super::page();
    let (before, commands) = page.split_once("\n## Commands\n").unwrap();
    for option in global(&Place::new()) {
        assert_eq!(before.matches(&option).count(), 1, "{option}");
        let name = option.split_whitespace().find(|word| word.starts_with("--")).unwrap();
        let is_it = |line: &&str| {
            line.trim_start().starts_with('-') && line.split_whitespace().any(|word| word == name)
        };
        assert_eq!(commands.lines().find(is_it), None, "{name}");
    }
}
