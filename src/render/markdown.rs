//! A document as a page in Markdown.

use super::{Block, Column, Document, Extent, Table};

/// Lays a document out as Markdown.
pub fn markdown(document: &Document, extent: Extent) -> String {
    let mut page = String::new();
    let mut in_list = false;
    for block in document.shown(extent).iter().filter(|block| !matches!(&***block, Block::Gap)) {
        let is_point = matches!(
            &**block,
            Block::Point(_) | Block::Fact(..) | Block::Warning(..) | Block::Advice(..) | Block::Detail(..)
        );
        // An empty line ends a list.
        if in_list && !is_point {
            page += "\n";
        }
        in_list = is_point;
        page += &match &**block {
            Block::Heading(level, text) => format!("{} {text}\n\n", "#".repeat(*level)),
            Block::Paragraph(text) | Block::Line(text) => format!("{text}\n\n"),
            Block::Point(text) => format!("- {text}\n"),
            Block::Fact("", text) => format!("  {text}\n"),
            Block::Warning(_, key, text) => format!("- **{key}**: {text}\n"),
            Block::Fact(key, text) | Block::Advice(key, text) | Block::Detail(key, text) => {
                format!("- {key}: {text}\n")
            }
            Block::Table(table) => table_page(table) + "\n",
            Block::Picture(lines) => format!("```text\n{lines}```\n\n"),
            Block::Gap => String::new(),
        };
    }
    page.truncate(page.trim_end().len());
    page + "\n"
}

fn table_page(table: &Table) -> String {
    let row = |cells: &mut dyn Iterator<Item = &str>| {
        let cells: String = cells.map(|cell| format!(" {} |", cell.trim())).collect();
        format!("|{cells}\n")
    };
    let rule = |column: &Column| if column.is_number { "---:|" } else { "---|" };
    let rule: String = table.columns.iter().map(rule).collect();
    let rows = table.rows.iter().map(|cells| row(&mut cells.iter().map(String::as_str)));
    let head = row(&mut table.columns.iter().map(|column| column.head));
    format!("{head}|{rule}\n{}", rows.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::super::Weight;
    use super::*;

    #[test]
    fn a_page_begins_with_its_warnings() {
        let mut document = Document::default();
        document.heading(1, "Risk");
        document.fact("read", "9 rows");
        document.warning(Weight::Doubtful, "a doubt");
        document.gap();
        let mut table = Table::default().texts("size", 0, 6).numbers("rows", 1, 6);
        table.row(["1".into(), "9".into()]);
        document.table(table);
        let page =
            "# Risk\n\n- **warning**: a doubt\n- read: 9 rows\n\n| size | rows |\n|---|---:|\n| 1 | 9 |\n";
        assert_eq!(markdown(&document, Extent::Advice), page);
    }
}
