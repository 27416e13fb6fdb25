//! How text answers describe what a release shows: levels, regions, centroids, groups.

use super::numbers::noise_text;
use crate::generalize::known;
use crate::known::OTHER;
use crate::release::publish::record::{CentroidColumn, GroupsRecord, LevelRecord, RegionsRecord};

/// Says by which label a column shows the values that few hold.
pub(super) fn label_text(column: &str, label: &str) -> String {
    format!("`{label}` stands for the values of `{column}` that few hold")
}

/// Lists the columns whose classes each show a region of their own.
pub(super) fn regions_text(regions: &RegionsRecord) -> String {
    let columns: Vec<&str> = regions.columns.iter().map(|column| column.column.as_str()).collect();
    format!("each class shows its own {}", columns.join(", "))
}

/// Lists what stands for the values of each column: `mean of age, mode of zip`.
pub(super) fn centroids_text(columns: &[CentroidColumn]) -> String {
    let text = |shown: &CentroidColumn| {
        let by = shown.descriptor();
        let clip = by.parts().into_iter().skip(1).map(|(name, ends)| format!(" {name}:{ends}"));
        let clip = clip.collect::<String>();
        match &shown.noise {
            None => format!("{} of {}{clip}", shown.centroid.name(), shown.column),
            Some(noise) => format!("mean of {}{clip}, {}", shown.column, noise_text(noise)),
        }
    };
    columns.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Formats a column's level: `dob decade`, `sex as is`, `race suppressed`, `zip first 3`, `age
/// range 10 clip:0,90`, `sex one label for all: person`; `label` is that of all values, if it is not `*`.
pub(super) fn level_text(level: &LevelRecord, label: Option<&str>) -> String {
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

/// Describes two tables: `age, zip as they are; disease by group, no value in more than 1 of 2 rows of one`.
pub(super) fn groups_text(groups: &GroupsRecord) -> String {
    let GroupsRecord { columns, sensitive, l } = groups;
    format!(
        "{} as they are; {sensitive} by group, no value in more than 1 of {l} rows of one",
        columns.join(", ")
    )
}
