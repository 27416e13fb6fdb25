//! Draws results for people: tables, cut to the width of a terminal, and expanded rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use console::{Alignment, measure_text_width, pad_str, truncate_str};
use datafusion::arrow::util::pretty::pretty_format_batches_with_options;
use datafusion::common::format::DEFAULT_FORMAT_OPTIONS;

use crate::cli::without_controls;

/// The least width of a column whose cells are cut.
const MIN_WIDTH: usize = 6;
/// The width of the lines and blanks of a column.
const BESIDE: usize = 3;
/// The width of the line above an expanded row.
const RULE: usize = 40;

/// The parts of a table that are wider than the terminal.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Whether cells are cut.
    pub(super) has_cells: bool,
    /// The number of last columns that are left out.
    pub(super) columns: usize,
}

/// Draws a table with lines. Where it is wider than `width`, its widest columns are cut until it
/// fits, and the last columns are left out where all are narrow.
///
/// # Errors
/// When a value has no text.
pub(super) fn table(batches: &[RecordBatch], width: Option<usize>) -> Result<(String, Cut), ArrowError> {
    let whole = lines(batches)?;
    let Some(width) = width.filter(|width| width_of(&whole) > *width) else {
        return Ok((whole, Cut::default()));
    };
    let mut columns = texts(batches)?;
    let mut natural: Vec<usize> = columns.iter().map(|texts| widest(texts)).collect();
    let shown = fitting(&natural, width);
    let left_out = columns.len().saturating_sub(shown);
    columns.truncate(shown);
    natural.truncate(shown);
    let most = max_width(&natural, width.saturating_sub(1 + BESIDE * shown));
    let cut = Cut { has_cells: natural.iter().any(|width| *width > most), columns: left_out };
    Ok((lines(&[shortened(&columns, most)?])?, cut))
}

/// Draws each row as lines `name | value` below a line with its number; the first row is number `first`.
///
/// # Errors
/// When a value has no text.
pub(super) fn records(batch: &RecordBatch, first: usize) -> Result<String, ArrowError> {
    let columns = texts(std::slice::from_ref(batch))?;
    let names = || columns.iter().filter_map(|texts| texts.first());
    let widest = names().map(|name| measure_text_width(name)).max().unwrap_or(0);
    let mut drawn = String::new();
    for row in 0..batch.num_rows() {
        let head = format!("-[ RECORD {} ]", first + row);
        drawn += &format!("{head:-<RULE$}\n");
        for (name, texts) in names().zip(&columns) {
            let mut name = name.as_str();
            // An empty text has no line.
            let text = texts.get(row + 1).filter(|text| !text.is_empty()).map_or("\n", String::as_str);
            for line in text.lines() {
                drawn += &format!("{} | {line}\n", pad_str(name, widest, Alignment::Left, None));
                name = "";
            }
        }
    }
    Ok(drawn)
}

fn lines(batches: &[RecordBatch]) -> Result<String, ArrowError> {
    let drawn = pretty_format_batches_with_options(batches, &options())?;
    Ok(without_controls(&drawn.to_string()))
}

fn options() -> FormatOptions<'static> {
    DEFAULT_FORMAT_OPTIONS.with_null("NULL")
}

/// Returns the width of a drawn table: that of its upper border.
fn width_of(drawn: &str) -> usize {
    drawn.lines().next().unwrap_or_default().len()
}

/// Returns columns of texts whose lines are at most `widest` wide.
fn shortened(columns: &[Vec<String>], widest: usize) -> Result<RecordBatch, ArrowError> {
    let short = |text: &String| {
        let lines: Vec<_> = text.lines().map(|line| truncate_str(line, widest, "…")).collect();
        lines.join("\n")
    };
    let columns = columns.iter().map(|texts| {
        let name = texts.first().map(short).unwrap_or_default();
        let cells: StringArray = texts.iter().skip(1).map(|text| Some(short(text))).collect();
        (Field::new(name, DataType::Utf8, true), Arc::new(cells) as ArrayRef)
    });
    let (fields, cells): (Vec<Field>, Vec<ArrayRef>) = columns.unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), cells)
}

/// Returns the name and the cells of every column.
fn texts(batches: &[RecordBatch]) -> Result<Vec<Vec<String>>, ArrowError> {
    // A tab is as wide as the terminal likes.
    let plain = |text: &str| without_controls(text).replace('\t', " ");
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let mut columns: Vec<Vec<String>> =
        first.schema().fields().iter().map(|field| vec![plain(field.name())]).collect();
    for batch in batches {
        for (texts, cells) in columns.iter_mut().zip(batch.columns()) {
            let options = options();
            let formatter = ArrayFormatter::try_new(cells, &options)?;
            texts.extend((0..batch.num_rows()).map(|row| plain(&formatter.value(row).to_string())));
        }
    }
    Ok(columns)
}

fn widest(texts: &[String]) -> usize {
    texts.iter().flat_map(|text| text.lines()).map(measure_text_width).max().unwrap_or(0)
}

/// Returns how many of the first columns fit into `width` if they are as narrow as can be; at least one.
fn fitting(natural: &[usize], width: usize) -> usize {
    let ends = natural.iter().scan(1, |end, natural| {
        *end += BESIDE + natural.min(&MIN_WIDTH);
        Some(*end)
    });
    ends.take_while(|end| *end <= width).count().max(1)
}

/// Returns the greatest width of a column with which columns of these widths fit into `room`, at
/// least [`MIN_WIDTH`].
fn max_width(natural: &[usize], room: usize) -> usize {
    let fits = |widest: &usize| natural.iter().map(|width| width.min(widest)).sum::<usize>() <= room;
    (MIN_WIDTH..=room).rev().find(fits).unwrap_or(MIN_WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int64Array;

    fn batch() -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["forty-two and more", "two\nlines of text"]));
        let other: ArrayRef = Arc::new(StringArray::from(vec!["日本語日本語", "x\ty"]));
        RecordBatch::try_from_iter([("n", numbers), ("text", texts), ("the last column", other)]).unwrap()
    }

    #[test]
    fn a_table_that_fits_stays_whole() {
        let (whole, cut) = table(&[batch()], None).unwrap();
        assert!(cut == Cut::default() && whole.contains("forty-two and more"), "{whole}");
        assert_eq!(table(&[batch()], Some(width_of(&whole))).unwrap(), (whole, cut));
    }

    #[test]
    fn the_widest_columns_are_cut() {
        assert_eq!(
            table(&[batch()], Some(32)).unwrap(),
            (
                "+------+-----------+-----------+\n\
                 | n    | text      | the last… |\n\
                 +------+-----------+-----------+\n\
                 | 1    | forty-tw… | 日本語日… |\n\
                 | NULL | two       | x y       |\n\
                 |      | lines of… |           |\n\
                 +------+-----------+-----------+"
                    .to_owned(),
                Cut { has_cells: true, columns: 0 }
            )
        );
        let (narrow, cut) = table(&[batch(), batch()], Some(26)).unwrap();
        assert!(cut.has_cells && narrow.contains("| forty… | 日本…  |"), "{narrow}");
        assert_eq!((cut.columns, narrow.lines().count()), (0, 10), "{narrow}");
    }

    #[test]
    fn columns_without_room_are_left_out() {
        let of = |width| {
            let (drawn, cut) = table(&[batch()], Some(width)).unwrap();
            (width_of(&drawn), cut)
        };
        assert_eq!(of(25), (25, Cut { has_cells: true, columns: 1 }));
        assert_eq!(of(17), (17, Cut { has_cells: true, columns: 1 }));
        assert_eq!(of(15), (8, Cut { has_cells: false, columns: 2 }));
        assert_eq!(of(1), (8, Cut { has_cells: false, columns: 2 }));
        let wide: ArrayRef = Arc::new(StringArray::from(vec!["a text that is wide"]));
        let names: Vec<String> = (0..50).map(|n| format!("column {n}")).collect();
        let wide = RecordBatch::try_from_iter(names.iter().map(|name| (name, Arc::clone(&wide)))).unwrap();
        let (drawn, cut) = table(&[wide], Some(70)).unwrap();
        assert!(drawn.lines().all(|line| measure_text_width(line) <= 70), "{drawn}");
        assert_eq!(cut, Cut { has_cells: true, columns: 43 });
    }

    #[test]
    fn expanded_rows_are_blocks() {
        assert_eq!(
            records(&batch(), 41).unwrap(),
            "-[ RECORD 41 ]--------------------------\n\
             n               | 1\n\
             text            | forty-two and more\n\
             the last column | 日本語日本語\n\
             -[ RECORD 42 ]--------------------------\n\
             n               | NULL\n\
             text            | two\n\
            \x20               | lines of text\n\
             the last column | x y\n"
        );
        let empty: ArrayRef = Arc::new(StringArray::from(vec![""]));
        let drawn = records(&RecordBatch::try_from_iter([("名", empty)]).unwrap(), 1).unwrap();
        assert!(drawn.ends_with("-\n名 | \n"), "{drawn}");
    }

    #[test]
    fn columns_share_the_room() {
        assert_eq!(max_width(&[3, 50, 60], 43), 20);
        assert_eq!(max_width(&[3, 10, 60], 43), 30);
        assert_eq!(max_width(&[60], 5), MIN_WIDTH);
        assert_eq!(max_width(&[], 5), MIN_WIDTH);
    }
}
