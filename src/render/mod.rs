//! What an answer says, before it is laid out: a [`Document`] of headings, facts, tables, warnings and notes.
//!
//! [`text()`] lays a document out for a terminal and [`markdown()`] for a page, so a further form is one file. Both begin with the
//! warnings, the gravest first. JSON has no layout: [`json`] writes the answer itself.

mod markdown;
mod text;

use std::borrow::Cow;

use serde::{Serialize, Serializer};

pub use self::markdown::markdown;
pub use self::text::text;
use crate::error::{Error, Result};
use crate::plural::plural;

/// How much of a document is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// Results and warnings.
    Results,
    /// Advice, too: what to run next, what to keep.
    Advice,
    /// Details, too: what is as it should be, column by column.
    Details,
}

/// How grave a warning is; the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// A release would be refused, or protects no individual.
    Refused,
    /// Others can find an individual, or learn a value.
    Reveals,
    /// It may be a mistake.
    Doubtful,
}

/// A document: what an answer says, in the order in which it was found.
#[derive(Debug, Clone, Default)]
pub struct Document {
    blocks: Vec<Block>,
}

/// A part of a document.
#[derive(Debug, Clone)]
enum Block {
    /// A heading, of level 1 or 2.
    Heading(usize, String),
    /// A paragraph.
    Paragraph(String),
    /// A point of a list.
    Point(String),
    /// A fact with its key, which is empty where it goes on with the last one.
    Fact(&'static str, String),
    /// A line without a key.
    Line(String),
    /// A warning with its key.
    Warning(Weight, &'static str, String),
    /// Advice with its key.
    Advice(&'static str, String),
    /// A detail with its key.
    Detail(&'static str, String),
    /// A table.
    Table(Table),
    /// Lines that only keep their meaning as they are.
    Picture(String),
    /// An empty line.
    Gap,
}

impl Document {
    /// Adds a heading of level 1 or 2.
    #[doc(hidden)]
    pub fn heading(&mut self, level: usize, text: impl Into<String>) {
        self.blocks.push(Block::Heading(level, text.into()));
    }

    /// Adds a paragraph.
    #[doc(hidden)]
    pub fn paragraph(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Paragraph(text.into()));
    }

    /// Adds a point of a list.
    #[doc(hidden)]
    pub fn point(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Point(text.into()));
    }

    /// Adds a fact: a key of at most ten letters, and what it says. It goes on with the last fact if the key is empty.
    #[doc(hidden)]
    pub fn fact(&mut self, key: &'static str, text: impl Into<String>) {
        self.blocks.push(Block::Fact(key, text.into()));
    }

    /// Adds a line without a key.
    #[doc(hidden)]
    pub fn line(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Line(text.into()));
    }

    /// Adds a warning, which is shown before all else.
    #[doc(hidden)]
    pub fn warning(&mut self, weight: Weight, text: impl Into<String>) {
        self.keyed_warning(weight, "warning", text);
    }

    /// Adds a warning with a key of its own.
    #[doc(hidden)]
    pub fn keyed_warning(&mut self, weight: Weight, key: &'static str, text: impl Into<String>) {
        self.blocks.push(Block::Warning(weight, key, text.into()));
    }

    /// Adds a note: what has to be known of the figures.
    #[doc(hidden)]
    pub fn note(&mut self, text: impl Into<String>) {
        self.advice("note", text);
    }

    /// Adds advice with its key, such as `next`.
    #[doc(hidden)]
    pub fn advice(&mut self, key: &'static str, text: impl Into<String>) {
        self.blocks.push(Block::Advice(key, text.into()));
    }

    /// Adds a detail, which few readers want to see.
    #[doc(hidden)]
    pub fn detail(&mut self, key: &'static str, text: impl Into<String>) {
        self.blocks.push(Block::Detail(key, text.into()));
    }

    /// Adds a table.
    #[doc(hidden)]
    pub fn table(&mut self, table: Table) {
        self.blocks.push(Block::Table(table));
    }

    /// Adds a picture drawn in lines of letters.
    #[doc(hidden)]
    pub fn picture(&mut self, lines: impl Into<String>) {
        self.blocks.push(Block::Picture(lines.into()));
    }

    /// Adds an empty line.
    #[doc(hidden)]
    pub fn gap(&mut self) {
        self.blocks.push(Block::Gap);
    }

    /// Returns the blocks that are shown: the title, the warnings, the gravest first, then the others. Where details are not
    /// shown, one line says how many there are.
    fn shown(&self, extent: Extent) -> Vec<Cow<'_, Block>> {
        let mut shown: Vec<Cow<Block>> = Vec::new();
        let mut details =
            self.blocks.iter().filter(|block| matches!(block, Block::Detail(..))).count() as u64;
        for block in &self.blocks {
            match block {
                Block::Advice(..) if extent < Extent::Advice => {}
                Block::Detail(..) if extent < Extent::Details => {
                    // One line stands for all of them.
                    if extent == Extent::Advice && details > 0 {
                        let more = format!("{} with --verbose", plural(details, "detail", "details"));
                        shown.push(Cow::Owned(Block::Advice("more", more)));
                        details = 0;
                    }
                }
                // What is not shown leaves no gap of its own.
                Block::Gap if shown.last().is_some_and(|last| matches!(&**last, Block::Gap)) => {}
                _ => shown.push(Cow::Borrowed(block)),
            }
        }
        shown.sort_by_key(|block| match &**block {
            Block::Heading(1, _) => (0, None),
            Block::Warning(weight, ..) => (1, Some(*weight)),
            _ => (2, None),
        });
        shown
    }

    /// Returns the warnings, the gravest first; those with a key of their own begin with it.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let warnings = self.shown(Extent::Results).into_iter().filter_map(|block| match &*block {
            Block::Warning(_, "warning", text) => Some(text.clone()),
            Block::Warning(_, key, text) => Some(format!("{key}: {text}")),
            _ => None,
        });
        warnings.collect()
    }
}

/// A table of a document.
#[derive(Debug, Clone, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
struct Column {
    head: &'static str,
    is_number: bool,
    /// The letters that a cell has at least, in text.
    width: usize,
    /// The spaces before it, in text.
    gap: usize,
}

impl Table {
    /// Adds a column of texts, which begin below each other, at least `width` letters wide after `gap` spaces.
    #[must_use]
    pub fn texts(mut self, head: &'static str, gap: usize, width: usize) -> Self {
        self.columns.push(Column { head, is_number: false, width, gap });
        self
    }

    /// Adds a column of numbers, which end below each other, at least `width` letters wide after `gap` spaces.
    #[must_use]
    pub fn numbers(mut self, head: &'static str, gap: usize, width: usize) -> Self {
        self.columns.push(Column { head, is_number: true, width, gap });
        self
    }

    /// Adds a row with a cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns whether a column has a head.
    fn has_head(&self) -> bool {
        self.columns.iter().any(|column| !column.head.is_empty())
    }
}

/// Writes an answer as JSON; the keys are in the order of their letters.
///
/// # Errors
/// An internal error for an answer that JSON cannot hold.
pub fn json(answer: &impl Serialize) -> Result<serde_json::Value> {
    serde_json::to_value(answer).map_err(|_| Error::internal("render: an answer cannot be written as JSON"))
}

/// Writes a number: whole ones without a point.
pub(crate) fn plain<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    plain_number(*value).serialize(to)
}

/// A number for JSON: whole ones without a point.
#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
pub(crate) fn plain_number(value: f64) -> serde_json::Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { (value as i64).into() } else { value.into() }
}

/// Writes the numbers of a table, each as [`plain`] does.
pub(crate) fn plain_table<S: Serializer>(
    table: &std::collections::BTreeMap<String, f64>,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_map(table.iter().map(|(name, value)| (name, plain_number(*value))))
}
