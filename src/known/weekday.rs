//! `weekday`: a date becomes its day of the week, then Monday to Friday or the weekend.
//!
//! Reads dates and timestamps; a timestamp with a time zone counts by its local day there. Level 1
//! is the day (`Monday`), level 2 `Monday to Friday` or `weekend` (Saturday and Sunday). Countries
//! with another weekend and holidays are not known here.

use super::named::NamedList;
use super::{Input, KnownRow};
use crate::doc::Doc;

/// The row of [`KNOWN`](super::KNOWN) for this hierarchy.
pub const ROW: KnownRow = KnownRow {
    doc: &Doc {
        name: "weekday",
        summary: "a date or timestamp to its day of the week, and to Monday to Friday or weekend",
        parameters: "",
        example: "hierarchy = { known = \"weekday\" }",
        paper: None,
    },
    words: &[],
    levels: &["day", "part_of_week"],
    input: Input::Weekday,
    source: "days of the week",
    rule: || &LIST,
};

static LIST: NamedList = NamedList::exact(include_str!("../../data/known/weekday.txt"));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::Rule;
    use crate::known::tests::labels;

    #[test]
    fn days_by_hand() {
        assert_eq!(labels("weekday", "1").as_deref(), Some("Monday < Monday to Friday"));
        assert_eq!(labels("weekday", "5").as_deref(), Some("Friday < Monday to Friday"));
        assert_eq!(labels("weekday", "7").as_deref(), Some("Sunday < weekend"));
        assert_eq!((labels("weekday", "0"), LIST.examples().len()), (None, 7));
    }
}
