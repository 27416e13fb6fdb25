//! Formats and parses numbers for people.

use std::ops::RangeInclusive;

use crate::generalize::Descriptor;
use crate::method::partition::mondrian;
pub(crate) use crate::plural::{grouped, percent, plural};
pub(crate) use crate::release::nodes_of;
use crate::release::publish::record::ModelRecord;
use crate::verify::as_is::{AsIsColumn, UniqueTogether};
use crate::verify::homogeneous::Homogeneous;
use crate::verify::sufficient::Sufficient;

/// Formats the value that a table reached: whole numbers plainly, others with six decimals unless
/// they would look whole; infinity as `inf`, a broken condition as `no value`.
pub(crate) fn reached(value: f64) -> String {
    if value.is_nan() {
        return "no value".to_owned();
    }
    let rounded = format!("{value:.6}");
    if rounded.ends_with(".000000") { value.to_string() } else { rounded }
}

/// Formats the value that a model reached in a record.
pub(crate) fn recorded_text(model: &ModelRecord) -> String {
    model.reached.map_or("no finite value".to_owned(), reached)
}

/// Formats a model of a record with its required and its reached value. `in_input` is what it
/// reached when it compared classes with the whole input, if that is known.
pub(crate) fn model_text(model: &ModelRecord, in_input: Option<f64>) -> String {
    let reached_now = recorded_text(model);
    let values = match (&model.compared_with, in_input) {
        (None, _) => format!("{reached_now} reached"),
        (Some(_), None) => format!("{reached_now} reached among the released rows"),
        (Some(_), Some(value)) => {
            format!("{} reached ({reached_now} among the released rows)", reached(value))
        }
    };
    format!("{} {} required, {values}", model.text(), model.required)
}

/// Describes a search without a lattice.
pub(crate) fn steps_by(method: &str, steps: u64) -> String {
    let steps = match method == mondrian::ROW.doc.name {
        true => plural(steps, "cut tried", "cuts tried"),
        false => plural(steps, "step", "steps"),
    };
    format!("{steps} by {method}")
}

/// Says by which label a column shows the values that few hold.
pub(super) fn label_text(column: &str, label: &str) -> String {
    format!("`{label}` stands for the values of `{column}` that few hold")
}

/// Formats `a / b` as a percentage; 0 for 0/0.
pub(crate) fn percent_of(a: u64, b: u64) -> String {
    percent(crate::measure::ratio(u128::from(a), u128::from(b)))
}

/// Formats a number of rows: `1 row`, `2 rows`.
pub(crate) fn rows(n: u64) -> String {
    plural(n, "row", "rows")
}

/// Describes the rows of individuals: `300 rows of 30 individuals, 270 rows without one`.
pub(crate) fn rows_of(all: u64, individuals: u64, without_one: u64) -> String {
    let individuals = plural(individuals, "individual", "individuals");
    format!("{} of {individuals}{}", rows(all), and_without_one(without_one))
}

/// Describes the rows without an individual after a number of individuals: `, 270 rows without one`.
pub(crate) fn and_without_one(count: u64) -> String {
    if count == 0 { String::new() } else { format!(", {} without one", rows(count)) }
}

/// Makes a parser of whole numbers in `range`.
pub(crate) fn integer<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| format!("expected an integer from {} to {}", range.start(), range.end()))
    }
}

/// Reads `1048576`, `512K`, `800M`, `16G`, `1T` (powers of 1024; `B` and `iB` may follow).
pub(crate) fn parse_bytes(text: &str) -> Result<usize, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[number.len()..].to_ascii_uppercase().trim_end_matches("IB").trim_end_matches('B') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err("expected a number of bytes, such as 800M or 16G".into()),
    };
    let bytes = number.parse::<usize>().ok().and_then(|n| n.checked_mul(1 << unit));
    match bytes {
        Some(bytes) if bytes >= 16 << 20 => Ok(bytes),
        Some(_) => Err("at least 16M is needed".into()),
        None => Err("expected a number of bytes, such as 800M or 16G".into()),
    }
}

/// Describes homogeneous classes, one line per sensitive column.
pub(super) fn homogeneous_lines(all: &[Homogeneous], individuals: bool) -> String {
    let noun = if individuals { ("individual", "individuals") } else { ("row", "rows") };
    let line = |one: &Homogeneous| match one.classes {
        0 => format!("varied    `{}`: no class shares one value\n", one.column),
        classes => format!(
            "shared    `{}`: {} with {} {} value away\n",
            one.column,
            plural(classes, "homogeneous class", "homogeneous classes"),
            plural(one.individuals, noun.0, noun.1),
            if classes == 1 { "gives its" } else { "give their" }
        ),
    };
    all.iter().map(line).collect()
}

/// Describes the share of a release that is unique on the quasi-identifiers, and together with the
/// columns that are released as they are; above a tenth a warning names the columns that single
/// individuals out: all that suffice alone, else some that suffice together.
pub(super) fn unique_lines(
    on_quasi: f64,
    together: &UniqueTogether,
    sufficient: &Sufficient,
    individuals: bool,
) -> String {
    let noun = if individuals { "individuals" } else { "rows" };
    let share = percent_of(together.count, together.of);
    let mut text = format!(
        "unique    {} of the released {noun} on their quasi-identifiers; {share} together with the columns \
         released as they are\n",
        percent(on_quasi)
    );
    if together.is_alarming() {
        let names: Vec<String> = match sufficient.columns.as_slice() {
            [] => together.columns.iter().map(|name| format!("`{name}`")).collect(),
            [(name, _)] => vec![format!("`{name}`")],
            all => {
                let shown =
                    |(name, count): &(String, u64)| format!("`{name}` ({})", percent_of(*count, together.of));
                all.iter().map(shown).collect()
            }
        };
        let (verb, values, them, without) = match (names.len(), sufficient.columns.len()) {
            (1, _) => ("singles", "its values", "it a quasi-identifier or leave it out", "without it"),
            (_, 0) => ("single", "their values", "them quasi-identifiers or leave them out", ""),
            _ => (
                "each single",
                "the values of one",
                "all of them quasi-identifiers or leave them out",
                "without all of them",
            ),
        };
        let what = if names.is_empty() { "the quasi-identifiers".to_owned() } else { names.join(", ") };
        let rest = sufficient.without.map_or(String::new(), |left| {
            format!("; {without} {} of the {noun} are unique", percent_of(left, together.of))
        });
        text += &format!(
            "warning   {what} {verb} out more than a tenth of {noun} within their class: anyone who knows \
             {values} finds the row; if others may know them, make {them}{rest}\n"
        );
    }
    text
}

/// Describes the share of rows that are unique on their exact quasi-identifiers, for a release in groups.
pub(super) fn exact_quasi_line(on_quasi: f64) -> String {
    format!(
        "unique    {} of the rows on their quasi-identifiers, which are released as they are: an attacker who knows them finds \
         the row, and learns that the individual is in the table\n",
        percent(on_quasi)
    )
}

/// Describes what a release reveals through the columns that are released as they are, where there
/// is anything to report.
pub(super) fn as_is_lines(columns: &[AsIsColumn], q: u64, individuals: bool) -> String {
    let noun = if individuals { ("individual", "individuals") } else { ("row", "rows") };
    let line = |column: &AsIsColumn| {
        let holding = |n: u64| {
            let verb = if n == 1 { "holds" } else { "hold" };
            format!("{} {verb}", plural(n, noun.0, noun.1))
        };
        let mut found = Vec::new();
        if column.of_few > 0 {
            found.push(format!("{} a value that fewer than {q} {} hold", holding(column.of_few), noun.1));
        }
        if column.alone_in_class > 0 {
            found.push(format!("{} a value that is unique in its class", holding(column.alone_in_class)));
        }
        if column.linked > 0 {
            found.push(format!(
                "the rows of {} are linked by a value of their own",
                plural(column.linked, noun.0, noun.1)
            ));
        }
        for reveal in &column.reveals {
            let level = match reveal.by == Descriptor::as_is() {
                true => "as it is in the input".to_owned(),
                false => format!("at level {}", reveal.by),
            };
            found.push(format!("reveals `{}` {level} in {}", reveal.column, rows(reveal.rows)));
        }
        match found.as_slice() {
            [] => String::new(),
            found => format!("as is     `{}`: {}\n", column.column, found.join("; ")),
        }
    };
    columns.iter().map(line).collect()
}

/// Returns a line for each warning of what is doubtful about a policy and its input.
pub(super) fn doubt_lines(doubts: &[String]) -> String {
    doubts.iter().map(|doubt| format!("warning   {doubt}\n")).collect()
}

/// Returns the warning line that `kanon release` would refuse this policy, and why.
pub(super) fn warning_line(why: Option<&str>) -> String {
    why.map(|why| format!("warning   {why}; `kanon release` refuses this policy\n")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(["0", "999", "1,000", "1,234,567"], [0, 999, 1000, 1_234_567].map(grouped));
        let shares = [0.0, 0.000_01, 0.0003, 0.043, 0.71, 0.2, 0.9996, 0.999_99, 1.0].map(percent);
        let shown = ["0 %", "< 0.01 %", "0.03 %", "4.3 %", "71 %", "20 %", "99.96 %", "> 99.99 %", "100 %"];
        assert_eq!(shares, shown);
    }

    #[test]
    fn bytes_from_people() {
        assert_eq!(parse_bytes("16777216"), Ok(16 << 20));
        assert_eq!(parse_bytes("800M"), Ok(800 << 20));
        assert_eq!(parse_bytes("2GiB"), Ok(2 << 30));
        for wrong in ["", "M", "1X", "-5G", "1K", "99999999999T"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
