//! How commands describe a release by what it shows.
//!
//! Each kind says it in its own `text.rs`; commands ask the recoding of a record and name no kind.

use std::collections::BTreeMap;

/// The label that all values of a column have, by its name, where that is not `*`.
pub type Labels = BTreeMap<String, String>;

/// What is true of every release of a kind.
#[derive(Debug)]
pub struct Facts {
    /// The words for rows that models judge together, one set and several: `class`, `classes`.
    pub class_words: [&'static str; 2],
    /// Ends the line of a model that is not judged on the classes of the quasi-identifiers.
    pub judged: &'static str,
    /// Whether rows show their quasi-identifiers as they are.
    pub has_exact_quasi: bool,
    /// The sentences of the page of `kanon explain`.
    pub page: Page,
}

/// The sentences of the page of `kanon explain`, in Markdown.
#[derive(Debug)]
pub struct Page {
    /// The paragraph below the table of columns.
    pub note: &'static str,
    /// What follows "Somebody who knows all quasi-identifiers of a person", before "people" or "rows".
    pub finds: &'static str,
    /// What follows "people" or "rows" there.
    pub found: &'static str,
    /// The words for rows that look the same to an attacker, one set and several.
    pub equal_rows_words: [&'static str; 2],
    /// What ends the list of what is not promised.
    pub not_promised: Option<&'static str>,
}

/// The note and the sentences that hold where classes show labels.
pub(super) const PAGE_OF_LABELS: Page = Page {
    note: "`*` stands for anything, and so does a missing value in a column of numbers or dates in which all values are \
           suppressed. `<=23` and `>=71` are intervals without a lower or an upper end.",
    finds: "finds that person's group, and cannot tell which of its",
    found: " it is",
    equal_rows_words: ["group", "groups"],
    not_promised: None,
};

/// The same where classes show centroids.
pub(super) const PAGE_OF_CENTROIDS: Page = Page {
    note: "All rows of a group show the same, and nothing says how far their values are from it.",
    finds: "can guess that the person is in the group that shows the nearest values; even if that is right, the attacker cannot tell \
            which of its",
    ..PAGE_OF_LABELS
};

/// The facts of a table whose models are judged on the classes of the quasi-identifiers.
pub(super) const FACTS_OF_CLASSES: Facts =
    Facts { class_words: ["class", "classes"], judged: "", has_exact_quasi: false, page: PAGE_OF_LABELS };

/// Describes what the quasi-identifiers of a release show.
pub trait Describe {
    /// Returns what is true of every release of this kind.
    fn facts(&self) -> &'static Facts;

    /// Describes all quasi-identifiers in one line; `as_text` are the columns whose values became text.
    fn shown(&self, labels: &Labels, as_text: &[&str]) -> String;

    /// Describes the quasi-identifiers that show least in one line, after a key of at most nine characters.
    fn least(&self, labels: &Labels) -> (&'static str, String);

    /// Describes a quasi-identifier in the page of `kanon explain`, in Markdown.
    fn column(&self, name: &str, labels: &Labels) -> String;

    /// Describes the quasi-identifiers that show nothing in any row; `costs` are their losses. `None` if each shows
    /// something.
    fn lost(&self, _costs: &[f64]) -> Option<String> {
        None
    }

    /// Describes the loss of the column that loses most.
    fn cost(&self, column: &str, share: &str) -> String {
        format!("a value of {column} covers on average {share} of its domain")
    }

    /// Describes what is lost where no quasi-identifier loses anything.
    fn costs_nothing(&self) -> String {
        "nothing: every column is at level 0".to_owned()
    }

    /// Introduces the release on the page of `kanon explain`: what is `counted`, in how many `sets`, by which `quasi`
    /// columns, of `people` or rows.
    fn introduction(&self, counted: &str, sets: &str, quasi: &str, _people: &str) -> String {
        format!(
            "The release holds {counted} in {sets}. A *group* is all rows that look the same in the columns that an attacker may \
             know, the quasi-identifiers: {quasi}. Other commands and the record say class for group, and individuals for people."
        )
    }

    /// Returns what is promised besides the models, in a whole sentence, in Markdown.
    fn promise(&self, _people: &str) -> Option<String> {
        None
    }

    /// Returns what has to be known of figures that are counted in the rows of the release.
    fn note(&self) -> Option<String> {
        None
    }

    /// Returns what a comparison with the input has verified of so many rows, where it is not that they come from it.
    fn verified(&self, _rows: &str) -> Option<String> {
        None
    }
}

/// Writes a name or a label in Markdown, also in a table.
pub fn cell(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let name = name.replace('|', "\\|");
    if name.contains('`') { format!("``` {name} ```") } else { format!("`{name}`") }
}

/// Writes names or labels in Markdown, one after the other.
pub fn cells(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    names.into_iter().map(|name| cell(name.as_ref())).collect::<Vec<_>>().join(", ")
}

/// Says in Markdown what the label of the values that few hold stands for.
pub(super) fn joined_as(label: &str) -> String {
    format!("; {} stands for the values that few hold", cell(label))
}
