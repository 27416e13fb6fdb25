//! What a parameter is set to.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::Kind;
use crate::decimal::Decimal;
use crate::error::{Error, Result};
use crate::plural::plural;

/// What a parameter is set to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// A number.
    Number(Decimal),
    /// A word, or the name of a file.
    Word(Cow<'static, str>),
    /// Several settings.
    List(Vec<Setting>),
    /// The table that a file holds.
    Table(TextTable),
    /// A node of the lattice: the levels of the columns that it names.
    Node(Vec<(String, usize)>),
}

/// The rows of a table of texts; clones share them. It shows no cells, because errors and logs show settings.
#[derive(Clone)]
pub struct TextTable {
    rows: Arc<Vec<Vec<String>>>,
    doubt: &'static str,
}

impl TextTable {
    /// Returns the rows.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Says in errors about the cells that their text could have been divided otherwise.
    #[must_use]
    pub fn doubted(self, doubt: &'static str) -> Self {
        Self { doubt, ..self }
    }

    /// Returns what [`doubted`](Self::doubted) said; empty where the division is clear.
    pub fn doubt(&self) -> &'static str {
        self.doubt
    }
}

/// Tables of the same rows are equal.
impl PartialEq for TextTable {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows
    }
}

impl Eq for TextTable {}

impl From<Vec<Vec<String>>> for TextTable {
    fn from(rows: Vec<Vec<String>>) -> Self {
        Self { rows: Arc::new(rows), doubt: "" }
    }
}

impl fmt::Debug for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.first().map_or(0, Vec::len);
        write!(f, "a table of {}", plural(columns as u64, "column", "columns"))
    }
}

impl Setting {
    /// Reads the text form; where there is one entry per level, that of one level.
    ///
    /// # Errors
    /// A policy error for a text that is no number where one is expected.
    pub fn parse(text: &str, kind: Kind) -> Result<Self> {
        match kind {
            Kind::Choice(_) | Kind::Word | Kind::File | Kind::Nodes => Ok(Self::Word(text.to_owned().into())),
            Kind::Levels(entry) => Self::parse(text, *entry).map(|one| Self::List(vec![one])),
            Kind::Words => Ok(Self::List(vec![Self::Word(text.to_owned().into())])),
            Kind::Numbers => text.split(',').map(Decimal::parse).collect::<Result<Vec<_>>>().map(Self::from),
            Kind::Count | Kind::AtLeastOne | Kind::Positive | Kind::Share | Kind::Number => {
                Decimal::parse(text).map(Self::Number)
            }
        }
    }

    /// Returns the number.
    ///
    /// # Errors
    /// An internal error for any other setting.
    pub fn number(&self) -> Result<Decimal> {
        match self {
            Self::Number(value) => Ok(*value),
            _ => Err(self.is_no("number")),
        }
    }

    /// Returns the word.
    ///
    /// # Errors
    /// An internal error for any other setting.
    pub fn word(&self) -> Result<&str> {
        match self {
            Self::Word(word) => Ok(word),
            _ => Err(self.is_no("word")),
        }
    }

    /// Returns the entries of a list.
    ///
    /// # Errors
    /// An internal error for any other setting.
    pub fn list(&self) -> Result<&[Setting]> {
        match self {
            Self::List(all) => Ok(all),
            _ => Err(self.is_no("list")),
        }
    }

    /// Returns the levels of a node's columns.
    ///
    /// # Errors
    /// An internal error for any other setting.
    pub fn node(&self) -> Result<&[(String, usize)]> {
        match self {
            Self::Node(levels) => Ok(levels),
            _ => Err(self.is_no("node")),
        }
    }

    pub(super) fn is_no(&self, what: &str) -> Error {
        Error::internal(format!("parameter: {self} is no {what}"))
    }
}

impl From<Decimal> for Setting {
    fn from(value: Decimal) -> Self {
        Self::Number(value)
    }
}

impl From<&'static str> for Setting {
    fn from(word: &'static str) -> Self {
        Self::Word(word.into())
    }
}

impl From<TextTable> for Setting {
    fn from(table: TextTable) -> Self {
        Self::Table(table)
    }
}

impl<T: Into<Setting>> From<Vec<T>> for Setting {
    fn from(all: Vec<T>) -> Self {
        Self::List(all.into_iter().map(Into::into).collect())
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => write!(f, "{value}"),
            Self::Word(word) => write!(f, "{word:?}"),
            Self::List(all) => {
                write!(f, "[{}]", all.iter().map(Self::to_string).collect::<Vec<_>>().join(", "))
            }
            Self::Table(table) => write!(f, "{table:?}"),
            Self::Node(levels) if levels.is_empty() => write!(f, "{{}}"),
            Self::Node(levels) => {
                let levels = levels.iter().map(|(column, level)| format!("{} = {level}", toml_key(column)));
                write!(f, "{{ {} }}", levels.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Returns a key as a policy has it: with quotes where TOML needs them.
pub(crate) fn toml_key(key: &str) -> Cow<'_, str> {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !key.is_empty() && key.bytes().all(is_bare) { key.into() } else { toml_text(key).into() }
}

/// Returns a text as a TOML string.
pub(crate) fn toml_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\t' => quoted += "\\t",
            c if c.is_control() => quoted += &format!("\\u{:04X}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_keys_are_read_back() {
        for name in ["age", "", "a b", "q\"uo\\te", "tab\tline\nend\u{7f}", "größe", "a.b", "\u{85}\u{feff}x"]
        {
            let table: toml::Table =
                toml::from_str(&format!("{} = {}", toml_key(name), toml_text(name))).unwrap();
            assert_eq!(table.get(name).and_then(|value| value.as_str()), Some(name));
        }
    }

    #[test]
    fn a_list_of_nodes_is_written_as_in_a_policy() {
        let nodes = [vec![("age".to_owned(), 2), ("zip code".to_owned(), 1)], vec![]].map(Setting::Node);
        let nodes = Setting::List(nodes.to_vec());
        assert_eq!(nodes.to_string(), "[{ age = 2, \"zip code\" = 1 }, {}]");
        assert!(Kind::Nodes.check(&nodes).is_ok() && nodes.node().is_err());
        let refused = |setting: Setting| Kind::Nodes.check(&setting).unwrap_err().to_string();
        assert_eq!(refused(Setting::List(vec![])), "expected at least one node, found an empty list");
        let words = Setting::parse("age", Kind::Nodes).unwrap();
        assert_eq!(refused(words), "expected a list of nodes such as [{ age = 1, zip = 2 }], found \"age\"");
    }
}
