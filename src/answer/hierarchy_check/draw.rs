//! Draws a hierarchy as a tree, the top first.

use crate::answer::sentences::percent_of;
use crate::answer::size_bins::bar;
use crate::generalize::hierarchy_shape::{HierarchyShape, Label};
use crate::plural::{grouped, plural};

/// The number of lines to which a tree is cut.
const LINES: usize = 40;
/// The length to which labels are cut, in characters.
const LONGEST: usize = 40;
/// The label of the top that kanon adds to a file without one.
const TOP: &str = "*";

/// A drawn label, or the labels left out below a parent.
struct Line {
    text: String,
    leaves: u64,
    rows: u64,
}

/// Draws the labels of level 1 and above, the largest first, with the leaves of each and a bar for
/// its share of `rows`.
pub(super) fn tree(shape: &HierarchyShape<'_>, rows: u64) -> String {
    // The more labels a parent shows, the more lines there are.
    let drawn = (2..=LINES).rev().map(|most| lines(shape, most)).find(|lines| lines.len() <= LINES);
    let lines = drawn.unwrap_or_else(|| lines(shape, 1));
    let width = lines.iter().map(|line| line.text.chars().count()).max().unwrap_or(0);
    let leaves: Vec<String> = lines.iter().map(|line| plural(line.leaves, "value", "values")).collect();
    let leaves_width = leaves.iter().map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for (Line { text: label, rows: own, .. }, leaves) in lines.iter().zip(&leaves) {
        let padding = " ".repeat(width - label.chars().count());
        let (bar, share) = (bar(*own, rows), percent_of(*own, rows));
        let space = if bar.is_empty() { "" } else { " " };
        text += &format!("{label}{padding}  {leaves:>leaves_width$}  {bar}{space}{share}\n");
    }
    text
}

/// Returns the lines of the tree if each parent shows at most `most` labels; it may stop after
/// more than [`LINES`].
fn lines(shape: &HierarchyShape<'_>, most: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let top = shape.levels().len();
    let tops = shape.tops();
    match tops.as_slice() {
        [only] => below(shape, top, std::slice::from_ref(only), "", true, most, &mut lines),
        tops => {
            let labels = shape.levels().last().map(Vec::as_slice).unwrap_or_default();
            let all = |count: fn(&Label<'_>) -> u64| labels.iter().map(count).sum();
            lines.push(Line { text: TOP.to_owned(), leaves: all(|l| l.leaves), rows: all(|l| l.rows) });
            below(shape, top, tops, "", false, most, &mut lines);
        }
    }
    lines
}

/// Adds the lines of some labels of a level, and of what lies below them.
fn below(
    shape: &HierarchyShape<'_>,
    level: usize,
    positions: &[usize],
    indent: &str,
    is_root: bool,
    most: usize,
    lines: &mut Vec<Line>,
) {
    let Some(labels) = level.checked_sub(1).and_then(|at| shape.levels().get(at)) else { return };
    // A line that says "and 1 more" would take the place of that one.
    let shown = if positions.len() <= most + 1 { positions.len() } else { most };
    let (first, rest) = positions.split_at(shown);
    for (number, label) in first.iter().filter_map(|at| labels.get(*at)).enumerate() {
        if lines.len() > LINES {
            return;
        }
        let is_last = number + 1 == shown && rest.is_empty();
        let (branch, under) = match (is_root, is_last) {
            (true, _) => ("", ""),
            (false, true) => ("└─ ", "   "),
            (false, false) => ("├─ ", "│  "),
        };
        let text = format!("{indent}{branch}{}", shown_label(label.text));
        lines.push(Line { text, leaves: label.leaves, rows: label.rows });
        below(shape, level - 1, &label.children, &format!("{indent}{under}"), false, most, lines);
    }
    if !rest.is_empty() {
        let all =
            |count: fn(&Label<'_>) -> u64| rest.iter().filter_map(|at| labels.get(*at)).map(count).sum();
        let text = format!("{indent}└─ and {} more", grouped(rest.len() as u64));
        lines.push(Line { text, leaves: all(|l| l.leaves), rows: all(|l| l.rows) });
    }
}

/// Returns a label in one line of limited length; the empty one as `""`.
fn shown_label(label: &str) -> String {
    let plain = |c: char| if c.is_control() { '\u{FFFD}' } else { c };
    match label.chars().count() {
        0 => "\"\"".to_owned(),
        1..=LONGEST => label.chars().map(plain).collect(),
        _ => label.chars().take(LONGEST - 1).map(plain).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<Vec<String>> {
        text.lines().map(|line| line.split(';').map(str::to_owned).collect()).collect()
    }

    fn drawn(rows: &[Vec<String>], counts: &[u64]) -> String {
        tree(&HierarchyShape::new(rows, counts), counts.iter().sum())
    }

    #[test]
    fn the_largest_label_comes_first() {
        let small = rows("a;x;big;*\nb;y;big;*\nc;x;big;*\nd;z;small;*");
        assert_eq!(
            drawn(&small, &[1, 4, 1, 2]),
            "\
*         4 values  ██████████████████████████████ 100 %
├─ big    3 values  ██████████████████████▌ 75 %
│  ├─ y    1 value  ███████████████ 50 %
│  └─ x   2 values  ███████▌ 25 %
└─ small   1 value  ███████▌ 25 %
   └─ z    1 value  ███████▌ 25 %
"
        );
        // A file without a top of its own; no row of the table.
        assert_eq!(
            drawn(&rows("a;\nb;y"), &[0, 0]),
            "*      2 values  0 %\n├─ \"\"   1 value  0 %\n└─ y    1 value  0 %\n"
        );
    }

    #[test]
    fn a_large_tree_is_cut() {
        let large: Vec<Vec<String>> = (0..1_000)
            .map(|n| vec![format!("v{n}"), format!("label {}", n / 3), format!("{}", n / 90), "*".to_owned()])
            .collect();
        let text = drawn(&large, &vec![7; 1_000]);
        assert!(text.lines().count() <= LINES, "{text}");
        assert!(text.lines().count() > LINES / 2, "{text}");
        assert!(text.contains("more") && !text.contains("and 1 more"), "{text}");
        assert!(!["─ v", " v1", " v2"].iter().any(|value| text.contains(value)), "{text}");
        // Every value is below a line or in what is left out.
        let top = |line: &str| line.starts_with("├─") || line.starts_with("└─");
        let leaves = |line: &str| {
            line.split("  ").find_map(|part| part.trim().strip_suffix(" values")?.parse::<u64>().ok())
        };
        assert_eq!(text.lines().filter(|line| top(line)).filter_map(leaves).sum::<u64>(), 1_000, "{text}");
        let flat: Vec<Vec<String>> = (0..41).map(|n| vec![format!("v{n}"), format!("l{n}")]).collect();
        assert!(
            drawn(&flat, &[1; 41]).ends_with("more   3 values  ██ 7.3 %\n"),
            "{}",
            drawn(&flat, &[1; 41])
        );
    }

    #[test]
    fn labels_take_one_line() {
        assert_eq!(shown_label("a\nb\u{1b}"), "a\u{FFFD}b\u{FFFD}");
        assert_eq!(shown_label(&"x".repeat(41)), "x".repeat(39) + "…");
        assert_eq!(shown_label(&"x".repeat(40)), "x".repeat(40));
    }
}
