//! A document on a terminal.

use super::{Block, Column, Document, Extent, Table};

/// Lays a document out as lines: a key of nine letters, then what it says.
pub fn text(document: &Document, extent: Extent) -> String {
    document.shown(extent).iter().map(|block| block_text(block)).collect()
}

fn keyed(key: &str, text: &str) -> String {
    format!("{key:<9} {text}\n")
}

fn block_text(block: &Block) -> String {
    match block {
        Block::Fact(key, text)
        | Block::Warning(_, key, text)
        | Block::Advice(key, text)
        | Block::Detail(key, text) => keyed(key, text),
        Block::Heading(_, text) => format!("\n{text}\n\n"),
        Block::Line(text) | Block::Paragraph(text) => format!("{text}\n"),
        Block::Point(text) => format!("- {text}\n"),
        Block::Table(table) => table_text(table),
        Block::Picture(lines) => lines.clone(),
        Block::Gap => "\n".to_owned(),
    }
}

fn table_text(table: &Table) -> String {
    let head = table.has_head().then(|| line(table, table.columns.iter().map(|column| column.head)));
    let rows = table.rows.iter().map(|row| line(table, row.iter().map(String::as_str)));
    head.into_iter().chain(rows).collect()
}

/// Lays out a line of a table; nothing stands after its last letter.
fn line<'a>(table: &Table, cells: impl Iterator<Item = &'a str>) -> String {
    let mut line = String::new();
    for (&Column { is_number, width, gap, .. }, cell) in table.columns.iter().zip(cells) {
        line += &" ".repeat(gap);
        line += &if is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
    }
    line.truncate(line.trim_end().len());
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::Weight;
    use super::*;

    #[test]
    fn warnings_come_first_and_details_on_request() {
        let mut document = Document::default();
        document.fact("read", "9 rows");
        document.warning(Weight::Doubtful, "a doubt");
        document.detail("varied", "`x`");
        document.keyed_warning(Weight::Reveals, "shared", "`y`");
        document.advice("next", "kanon verify");
        let results = "shared    `y`\nwarning   a doubt\nread      9 rows\n";
        assert_eq!(text(&document, Extent::Results), results);
        let advice = format!("{results}more      1 detail with --verbose\nnext      kanon verify\n");
        assert_eq!(text(&document, Extent::Advice), advice);
        let details = format!("{results}varied    `x`\nnext      kanon verify\n");
        assert_eq!(text(&document, Extent::Details), details);
    }

    #[test]
    fn cells_stand_below_each_other() {
        let mut table = Table::default().texts("size", 0, 6).numbers("rows", 1, 6).texts("", 2, 0);
        table.row(["1".into(), "1,000".into(), "#".into()]);
        table.row(["longer than".into(), "2".into(), String::new()]);
        assert_eq!(table_text(&table), "size     rows\n1       1,000  #\nlonger than      2\n");
    }
}
