//! What several answers say in the same words.

use crate::generalize::Descriptor;
use crate::method::partition::mondrian;
use crate::plural::{individuals, percent, plural, rows};
use crate::release::publish::record::{ModelRecord, Statement};
use crate::render::{Document, Weight};
use crate::verify::as_is::{AsIsColumn, UniqueTogether};
use crate::verify::homogeneous::Homogeneous;
use crate::verify::sufficient::Sufficient;

/// Formats the value that a table reached: whole numbers plainly, others with six decimals unless
/// they would look whole; infinity as `inf`, a broken condition as `no value`.
pub(super) fn reached(value: f64) -> String {
    if value.is_nan() {
        return "no value".to_owned();
    }
    let rounded = format!("{value:.6}");
    if rounded.ends_with(".000000") { value.to_string() } else { rounded }
}

/// Formats the value that a model reached in a record.
pub(super) fn recorded_text(model: &ModelRecord) -> String {
    model.reached.map_or("no finite value".to_owned(), reached)
}

/// Formats a model of a record with its required and its reached value. `in_input` is what it
/// reached when it compared classes with the whole input, if that is known.
pub(super) fn model_text(model: &ModelRecord, in_input: Option<f64>) -> String {
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
pub(super) fn steps_by(method: &str, steps: u64) -> String {
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
pub(super) fn percent_of(a: u64, b: u64) -> String {
    percent(crate::measure::ratio(u128::from(a), u128::from(b)))
}

/// Describes the rows of individuals: `300 rows of 30 individuals, 270 rows without one`.
pub(super) fn rows_of(all: u64, owners: u64, without_one: u64) -> String {
    format!("{} of {}{}", rows(all), individuals(owners), and_without_one(without_one))
}

/// Describes the rows without an individual after a number of individuals: `, 270 rows without one`.
pub(super) fn and_without_one(count: u64) -> String {
    if count == 0 { String::new() } else { format!(", {} without one", rows(count)) }
}

/// Warns of what is doubtful about a policy and its input.
pub(super) fn add_doubts(document: &mut Document, doubts: &[String]) {
    doubts.iter().for_each(|doubt| document.warning(Weight::Doubtful, doubt));
}

/// Warns that `kanon release` would refuse this policy, and why.
pub(super) fn add_refusal(document: &mut Document, why: Option<&str>) {
    if let Some(why) = why {
        document.warning(Weight::Refused, format!("{why}; `kanon release` refuses this policy"));
    }
}

/// Warns of homogeneous classes, by sensitive column; that there are none is a detail.
pub(super) fn add_homogeneous(document: &mut Document, all: &[Homogeneous], are_individuals: bool) {
    for one in all {
        if one.classes == 0 {
            document.detail("varied", format!("`{}`: no class shares one value", one.column));
            continue;
        }
        let holders = if are_individuals { individuals(one.individuals) } else { rows(one.individuals) };
        let text = format!(
            "`{}`: {} with {holders} {} value away",
            one.column,
            plural(one.classes, "homogeneous class", "homogeneous classes"),
            if one.classes == 1 { "gives its" } else { "give their" }
        );
        document.keyed_warning(Weight::Reveals, "shared", text);
    }
}

/// Describes the share of a release that is unique on the quasi-identifiers, and together with the
/// columns that are released as they are; above a tenth a warning names the columns that single
/// individuals out: all that suffice alone, else some that suffice together.
pub(super) fn add_unique(
    document: &mut Document,
    on_quasi: f64,
    together: &UniqueTogether,
    sufficient: &Sufficient,
    are_individuals: bool,
) {
    let noun = if are_individuals { "individuals" } else { "rows" };
    let share = percent_of(together.count, together.of);
    document.fact(
        "unique",
        format!(
            "{} of the released {noun} on their quasi-identifiers; {share} together with the columns released as they are",
            percent(on_quasi)
        ),
    );
    if !together.is_alarming() {
        return;
    }
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
    document.warning(
        Weight::Reveals,
        format!(
            "{what} {verb} out more than a tenth of {noun} within their class: anyone who knows {values} finds the row; if others \
             may know them, make {them}{rest}"
        ),
    );
}

/// Describes the share of rows that are unique on their exact quasi-identifiers, for a release in groups.
pub(super) fn add_exact_quasi(document: &mut Document, on_quasi: f64) {
    document.fact(
        "unique",
        format!(
            "{} of the rows on their quasi-identifiers, which are released as they are: an attacker who knows them finds the row, \
             and learns that the individual is in the table",
            percent(on_quasi)
        ),
    );
}

/// Describes what a release reveals through the columns that are released as they are, where there is anything to
/// report: as a warning if a column reveals a quasi-identifier more finely than it is released, else as a detail. `q` is the number of holders below which a value identifies.
pub(super) fn add_as_is(document: &mut Document, columns: &[AsIsColumn], q: u64, are_individuals: bool) {
    let (noun, count): (&str, fn(u64) -> String) =
        if are_individuals { ("individuals", individuals) } else { ("rows", rows) };
    for column in columns {
        let holding = |n: u64| format!("{} {}", count(n), if n == 1 { "holds" } else { "hold" });
        let mut found = Vec::new();
        if column.of_few > 0 {
            found.push(format!("{} a value that fewer than {q} {noun} hold", holding(column.of_few)));
        }
        if column.alone_in_class > 0 {
            found.push(format!("{} a value that is unique in its class", holding(column.alone_in_class)));
        }
        if column.linked > 0 {
            found.push(format!("the rows of {} are linked by a value of their own", count(column.linked)));
        }
        for reveal in &column.reveals {
            let level = match reveal.by == Descriptor::as_is() {
                true => "as it is in the input".to_owned(),
                false => format!("at level {}", reveal.by),
            };
            found.push(format!("reveals `{}` {level} in {}", reveal.column, rows(reveal.rows)));
        }
        let text = format!("`{}`: {}", column.column, found.join("; "));
        match (column.reveals.is_empty(), found.is_empty()) {
            (false, _) => document.keyed_warning(Weight::Reveals, "as is", text),
            (true, false) => document.detail("as is", text),
            (true, true) => {}
        }
    }
}

/// Returns the share that may be suppressed as a percentage, with up to six decimals.
pub(super) fn limit_text(statement: &Statement) -> String {
    let exact = |limit: f64| format!("{:.6}", limit * 100.0);
    let text = statement.suppression_limit.parse().map(exact).unwrap_or_default();
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}
