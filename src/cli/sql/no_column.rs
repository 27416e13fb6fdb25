//! The message for a column that no table of a query has.

use std::collections::BTreeSet;

use datafusion::common::Column;

/// Describes a missing column: which one was probably meant, how to write its name, and which ones there are.
pub(super) fn no_column(field: &Column, valid: &[Column]) -> String {
    let name = field.name.as_str();
    let is_of_table = |column: &&Column| field.relation.is_some() && column.relation == field.relation;
    let of_table: Vec<&Column> = valid.iter().filter(is_of_table).collect();
    let (mut text, valid) = match &field.relation {
        Some(table) if !of_table.is_empty() => {
            (format!("there is no column `{name}` in `{table}`"), of_table)
        }
        _ => (format!("there is no column `{name}`"), valid.iter().collect()),
    };
    let valid: Vec<&str> = valid.into_iter().map(|column| column.name.as_str()).collect();
    let meant = valid.iter().find(|other| other.eq_ignore_ascii_case(name) || has_part(other, name));
    if let Some(meant) = meant {
        text += &format!(
            "; if you mean `{meant}`, write it in double quotes: {} (without them, SQL reads capitals as small letters, and \
             signs as operators)",
            quoted(meant)
        );
    } else if let Some(close) = similar(name, &valid) {
        text += &format!("; did you mean {}?", written(close));
    }
    let all: BTreeSet<&str> = valid.iter().copied().collect();
    // In the order of the tables, each once.
    let mut left = all.clone();
    let shown: Vec<String> =
        valid.iter().filter(|name| left.remove(**name)).take(SHOWN).map(|name| written(name)).collect();
    if !shown.is_empty() {
        let more = match all.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        text += &format!("\nColumns: {}{more}", shown.join(", "));
    }
    text
}

/// Returns the column whose name needs the fewest edits to become `name`, if that leaves half of it.
fn similar<'a>(name: &str, valid: &[&'a str]) -> Option<&'a str> {
    let scored = valid.iter().map(|other| (strsim::normalized_damerau_levenshtein(name, other), *other));
    let close = scored.filter(|(score, _)| *score >= 0.5);
    close.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, other)| other)
}

/// The number of columns that a message lists.
const SHOWN: usize = 20;

/// Returns whether SQL reads `part` in the name `whole` written without quotes: `marital` in
/// `marital-status`.
fn has_part(whole: &str, part: &str) -> bool {
    let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    !whole.chars().all(is_inside) && whole.split(|c| !is_inside(c)).any(|one| one.eq_ignore_ascii_case(part))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns a name as a query writes it.
pub(super) fn written(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_name = name.chars().all(is_plain) && !name.starts_with(|c: char| c.is_ascii_digit());
    if is_name { name.to_owned() } else { quoted(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: &str, valid: &[&str]) -> String {
        let valid: Vec<Column> = valid.iter().map(|name| Column::from_name(*name)).collect();
        no_column(&Column::from_name(name), &valid)
    }

    #[test]
    fn names_that_need_quotes_are_told_with_them() {
        let adult = ["age", "marital-status", "Diagnose", "fn\"l"];
        for name in ["marital", "status", "STATUS"] {
            let text = told(name, &adult);
            assert!(
                text.contains("`marital-status`, write it in double quotes: \"marital-status\" ("),
                "{text}"
            );
        }
        let text = told("diagnose", &adult);
        assert!(
            text.starts_with("there is no column `diagnose`; if you mean `Diagnose`, write it"),
            "{text}"
        );
        assert!(text.ends_with("\nColumns: age, \"marital-status\", \"Diagnose\", \"fn\"\"l\""), "{text}");
        assert_eq!(
            told("seks", &["sex", "sex"]),
            "there is no column `seks`; did you mean sex?\nColumns: sex"
        );
        assert_eq!(told("x", &[]), "there is no column `x`");
    }

    #[test]
    fn a_named_table_is_told_with_its_columns() {
        let of = |table: &str, name: &str| Column::new(Some(table), name);
        let valid = [of("t", "Id"), of("t", "age"), of("u", "id")];
        assert_eq!(
            no_column(&of("t", "id"), &valid),
            "there is no column `id` in `t`; if you mean `Id`, write it in double quotes: \"Id\" (without them, SQL reads capitals \
             as small letters, and signs as operators)\nColumns: \"Id\", age"
        );
        assert_eq!(no_column(&of("v", "x"), &valid), "there is no column `x`\nColumns: \"Id\", age, id");
    }

    #[test]
    fn many_columns_are_cut() {
        let names: Vec<String> = (0..23).map(|n| format!("v{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let text = told("zip", &names);
        assert!(
            text.ends_with("v18, v19 and 3 more") && text.starts_with("there is no column `zip`\n"),
            "{text}"
        );
    }
}
