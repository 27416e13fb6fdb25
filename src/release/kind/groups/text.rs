//! How commands describe groups.

use crate::release::kind::describe::{Describe, Facts, Labels, Page, cell};
use crate::release::publish::record::{FOLDERS, GroupsRecord};

const FACTS: Facts = Facts {
    class_words: ["group", "groups"],
    judged: ", of the groups",
    has_exact_quasi: true,
    page: Page {
        note: "Chance decides which row is in which group: only the publisher has the key that tells which row of a group has which \
               value.",
        finds: "finds that person's row, and learns that the person is in the data; but not which of the sensitive values of its group is \
                that person's. What follows says how easily the row is found, in the set of",
        found: " with the same quasi-identifiers",
        equal_rows_words: ["set of equal rows", "sets of equal rows"],
        not_promised: Some("Protection against an attacker who infers from other groups which value goes with which quasi-identifiers. A second release puts the
  same people into other groups, and the two together can give a value away."),
    },
};

impl Describe for GroupsRecord {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    /// Describes both tables: `age, zip as they are; disease by group, no value in more than 1 of 2 rows of one`.
    fn shown(&self, _: &Labels, _: &[&str]) -> String {
        let GroupsRecord { columns, sensitive, l } = self;
        format!(
            "{} as they are; {sensitive} by group, no value in more than 1 of {l} rows of one",
            columns.join(", ")
        )
    }

    fn least(&self, labels: &Labels) -> (&'static str, String) {
        ("groups", self.shown(labels, &[]))
    }

    fn column(&self, _: &str, _: &Labels) -> String {
        "every value as it is".to_owned()
    }

    fn costs_nothing(&self) -> String {
        format!("nothing of the quasi-identifiers, and which value of {} goes with them", self.sensitive)
    }

    fn introduction(&self, counted: &str, sets: &str, quasi: &str, people: &str) -> String {
        let [rows, values] = FOLDERS;
        format!(
            "The release holds {counted} in {sets}, in two tables. `{rows}` has the columns that an attacker may know, the \
             quasi-identifiers, as they are: {quasi}; and the group of each row. `{values}` says how many {people} of each group \
             have each value of {}. The record says classes for groups, and individuals for people.",
            cell(&self.sensitive)
        )
    }

    fn promise(&self, people: &str) -> Option<String> {
        let GroupsRecord { sensitive, l, .. } = self;
        let sensitive = cell(sensitive);
        Some(format!("No value of {sensitive} is that of more than 1 in {l} {people} of a group."))
    }

    fn note(&self) -> Option<String> {
        let GroupsRecord { sensitive, l, .. } = self;
        Some(format!(
            "these are rows of exact quasi-identifiers, which are not protected; `{sensitive}` is: no value of it is that of more than 1 \
             in {l} rows of a group"
        ))
    }
}
