//! Doubts about the cells of a column, which the user settles before deciding its role: dates or
//! numbers mixed with other cells, years of two digits, ambiguous marks, postal codes without
//! leading zeros.

use arrow::datatypes::DataType;

use super::ProposedColumn;
use super::facts::ColumnFacts;
use super::forms::{Tally, TriedForms};
use super::roles::Proposed;
use super::steps::{self, Levels};
use crate::plural::{grouped, plural};

/// What is unclear about the cells of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Doubt {
    /// Most cells are dates, written in one of these ways.
    SomeAreNoDates { dates: u64, known: u64, formats: Vec<String> },
    /// Most cells are dates, in several forms.
    SeveralForms { dates: u64, known: u64 },
    /// Most cells are numbers.
    SomeAreNoNumbers { numbers: u64, known: u64 },
    /// The years of some dates have two digits.
    ShortYears { short: u64, known: u64 },
    /// Dates or numbers fit several formats.
    Unclear,
    /// Integers with fewer digits than others, in a column of postal codes.
    LostZeros { least: u64, greatest: u64 },
}

impl Doubt {
    /// Returns what is unclear about the cells of a column that are not all of one form.
    pub(super) fn of_cells(forms: &TriedForms, tally: &Tally) -> Option<Self> {
        let known = tally.known;
        let any_date = forms.dates() | forms.iso_dates() | forms.short_years();
        let (short, dates) = (tally.having(forms.short_years()), tally.having(any_date));
        if short > 0 && tally.is_most(dates) {
            return Some(Self::ShortYears { short, known });
        }
        let leading = tally.leading();
        let of_dates = tally.having(leading & any_date);
        if of_dates == known {
            return None;
        }
        if of_dates > 0 {
            let iso = (leading & forms.iso_dates() != 0).then_some("%Y-%m-%d");
            let formats = forms.texts(leading).into_iter().chain(iso).map(str::to_owned).collect();
            return Some(Self::SomeAreNoDates { dates: of_dates, known, formats });
        }
        if tally.is_most(dates) {
            return Some(Self::SeveralForms { dates, known });
        }
        let numbers = tally.having(leading & forms.numbers());
        (numbers > 0 && numbers < known).then_some(Self::SomeAreNoNumbers { numbers, known })
    }

    /// Returns the doubt about a column of postal codes that seems to have lost zeros.
    pub(super) fn of_postal_codes(facts: &ColumnFacts) -> Option<Self> {
        let length = facts.length.filter(|_| facts.data_type.is_integer())?;
        let (least, greatest) = (length.least, length.greatest);
        (least < greatest).then_some(Self::LostZeros { least, greatest })
    }

    /// Returns whether most cells are dates or numbers.
    pub(super) fn is_of_one_form(&self) -> bool {
        matches!(self, Self::SomeAreNoDates { .. } | Self::SomeAreNoNumbers { .. })
    }

    /// Returns whether codes with letters can explain it as well.
    pub(super) fn may_be_codes(&self) -> bool {
        matches!(self, Self::SomeAreNoNumbers { .. })
    }

    /// Leaves the role of a column open; of the roles that are never written, none is touched.
    pub(super) fn apply(&self, column: &mut ProposedColumn) {
        let leaves_open = match column.role {
            Proposed::Individual | Proposed::Identifier | Proposed::Text => return,
            // A sensitive column is released as it is, whatever its cells mean.
            Proposed::Sensitive => !matches!(self, Self::SomeAreNoNumbers { .. } | Self::Unclear),
            Proposed::Quasi | Proposed::Undecided => true,
        };
        if leaves_open {
            column.role = Proposed::Undecided;
            column.levels = self.levels(&column.facts);
        }
        column.doubt = Some(self.text());
    }

    /// Returns the levels that the column can have when the doubt is settled.
    fn levels(&self, facts: &ColumnFacts) -> Option<Levels> {
        let of_dates = ColumnFacts { data_type: DataType::Date32, ..facts.clone() };
        match self {
            Self::SomeAreNoDates { .. } => steps::levels(&of_dates, None),
            _ => None,
        }
    }

    /// Returns the doubt and how to settle it, as sentences without the last period.
    fn text(&self) -> String {
        let of = |some: &u64, all: &u64| format!("{} of {}", grouped(*some), plural(*all, "cell", "cells"));
        let missing = "what the others write for \"missing\" under [input] nulls";
        match self {
            Self::SomeAreNoDates { dates, known, formats } => format!(
                "{} are dates ({}); name {missing}, or correct them",
                of(dates, known),
                formats.join(" or ")
            ),
            Self::SeveralForms { dates, known } => format!(
                "{} are dates, but in several forms: list them as date_format under [input], or write all in one",
                of(dates, known)
            ),
            Self::SomeAreNoNumbers { numbers, known } => format!(
                "{} are numbers; name {missing}, or correct them. If the column holds codes, pass over this",
                of(numbers, known)
            ),
            Self::ShortYears { short, known } => format!(
                "{} are dates whose year has two digits, which may be of two centuries: write the years with four \
                 digits",
                of(short, known)
            ),
            Self::Unclear => {
                "Its cells can be read in two ways: see the question under the format of the input above"
                    .to_owned()
            }
            Self::LostZeros { least, greatest } => {
                let and = if least + 1 == *greatest { "and" } else { "to" };
                format!("{least} {and} {greatest} digits: leading zeros may be lost; load the column as text")
            }
        }
    }
}
