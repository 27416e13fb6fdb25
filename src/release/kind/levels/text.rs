//! How commands describe levels.

use crate::generalize::{Descriptor, known};
use crate::known::OTHER;
use crate::plural::plural;
use crate::policy::Policy;
use crate::release::kind::describe::{Describe, FACTS_OF_CLASSES, Facts, Labels, cell, joined_as};
use crate::release::publish::record::LevelRecord;

impl Describe for Vec<LevelRecord> {
    fn facts(&self) -> &'static Facts {
        &FACTS_OF_CLASSES
    }

    fn shown(&self, labels: &Labels, as_text: &[&str]) -> String {
        let text = |level: &LevelRecord| {
            let changes = level.level == 0 && as_text.contains(&level.column.as_str());
            level_text(level, label(level, labels)) + if changes { " (as text)" } else { "" }
        };
        self.iter().map(text).collect::<Vec<_>>().join(" | ")
    }

    /// The most generalized columns come first, by their share of all levels.
    fn least(&self, labels: &Labels) -> (&'static str, String) {
        const SHOWN: usize = 4;
        let mut all: Vec<_> = self.iter().filter(|level| level.by != Descriptor::as_is()).collect();
        // In thousandths, which is as fine as hierarchies get.
        all.sort_by_key(|level| std::cmp::Reverse(level.level.saturating_mul(1_000) / level.of.max(1)));
        let text = all.iter().take(SHOWN).map(|level| {
            format!("{} ({} of {})", level_text(level, label(level, labels)), level.level, level.of)
        });
        let text = match text.collect::<Vec<_>>().as_slice() {
            [] => "nothing: every column is at level 0".to_owned(),
            text => text.join(", "),
        };
        ("coarsest", text)
    }

    fn column(&self, name: &str, labels: &Labels) -> String {
        let level = self.iter().find(|level| level.column == name);
        level.map_or("unknown".to_owned(), |level| on_page(level, label(level, labels)))
    }

    fn lost(&self, costs: &[f64]) -> Option<String> {
        let is_lost = |(level, cost): &(&LevelRecord, &f64)| {
            **cost >= 1.0 || level.by.parts().first().is_some_and(|(name, _)| *name == "suppress")
        };
        let lost: Vec<&LevelRecord> =
            self.iter().zip(costs).filter(is_lost).map(|(level, _)| level).collect();
        let (shows, keeps) = if lost.len() == 1 { ("shows", "it") } else { ("show", "one") };
        let has_levels = lost.iter().all(|level| level.of > 1);
        let hierarchy = if has_levels { "" } else { "a hierarchy with levels, " };
        let lost: Vec<&str> = lost.into_iter().map(|level| level.column.as_str()).collect();
        (!lost.is_empty()).then(|| {
            format!(
                "{} of {} {shows} nothing: {}; {hierarchy}`weight` or `max_level` in its line of the policy may keep {keeps}, \
                 or method = \"best\" (docs/choosing.md)",
                lost.len(),
                plural(self.len() as u64, "column", "columns"),
                lost.join(", ")
            )
        })
    }
}

fn label<'a>(level: &LevelRecord, labels: &'a Labels) -> Option<&'a str> {
    labels.get(&level.column).map(String::as_str)
}

/// Describes the levels of a policy's quasi-identifiers: `dob decade | zip 3 of 5 | sex as is`.
pub(super) fn levels_text(policy: &Policy, levels: &[usize]) -> String {
    let columns = policy.quasi.iter().zip(levels).filter_map(|(quasi, level)| {
        let generalizer = quasi.hierarchy.levels().get(*level)?;
        let label = quasi.hierarchy.label_for_all(*level);
        Some(level_text(&LevelRecord::of(quasi, *level, &**generalizer), label.as_deref()))
    });
    columns.collect::<Vec<_>>().join(" | ")
}

/// Formats a column's level: `dob decade`, `sex as is`, `race suppressed`, `zip first 3`, `age
/// range 10 clip:0,90`, `sex one label for all: person`; `label` is that of all values, if it is not `*`.
fn level_text(level: &LevelRecord, label: Option<&str>) -> String {
    let LevelRecord { column, level, of, by } = level;
    let mut parts = by.parts().into_iter();
    let (name, argument) = parts.next().unwrap_or_default();
    let is_last = by.options.get("side").is_some_and(|side| side == "right");
    let what = match name {
        "as_is" => "as is".to_owned(),
        "suppress" => match label {
            Some(label) => format!("one label for all: {}", label.replace(char::is_control, " ")),
            None => "suppressed".to_owned(),
        },
        "date" | "period" => argument,
        "prefix" => format!("{} {argument}", if is_last { "last" } else { "first" }),
        "known" => known::level_name(by).map_or(argument, str::to_owned),
        _ if by.is_of_file() || (by.is_of_merge() && *level > 0) => format!("level {level} of {of}"),
        _ if by.is_of_merge() => format!("frequent or {}", by.label_of_merge().map_or(OTHER, String::as_str)),
        name => format!("{name} {argument}"),
    };
    let is_said = |key: &str| key == "side" || (name == "known" && key == "level") || by.is_of_merge();
    let beside: String =
        parts.filter(|(key, _)| !is_said(key)).map(|(key, setting)| format!(" {key}:{setting}")).collect();
    format!("{column} {what}{beside}")
}

/// Describes a column's level on the page of `kanon explain`.
fn on_page(level: &LevelRecord, label: Option<&str>) -> String {
    let LevelRecord { column, level: at, of, by } = level;
    let text = level_text(level, label);
    let text = text.strip_prefix(column.as_str()).unwrap_or(&text).trim();
    let (name, argument) = by.parts().into_iter().next().unwrap_or_default();
    let is_last = by.options.get("side").is_some_and(|side| side == "right");
    let side = if is_last { "last" } else { "first" };
    let shows = match name {
        "as_is" => return "every value as it is".to_owned(),
        "suppress" => match label {
            Some(label) => format!("one label for all: {}", cell(label)),
            None => return "nothing: all values are suppressed".to_owned(),
        },
        "date" => format!("the first day of the {argument} (`{text}`)"),
        "period" => format!("the name of the {argument} (`{text}`)"),
        "prefix" => format!("the {side} characters, `*` for the others (`{text}`)"),
        "range" | "bands" => format!("an interval (`{text}`)"),
        "floor" => format!("the lower end of an interval (`{text}`)"),
        "clip" => format!("every value, but those beyond a bound are joined (`{text}`)"),
        _ if by.is_of_merge() && *at == 0 => "every value that many hold; the others are joined".to_owned(),
        _ => format!("a label of its hierarchy (`{text}`)"),
    };
    let joined = by.label_of_merge().map_or(String::new(), |label| joined_as(label));
    shows + &joined + &format!(": level {at} of {of}, in every row")
}
