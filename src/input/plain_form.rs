//! Cells that write dates and numbers in the forms of `[input]`, brought into the plain forms that
//! are then typed.
//!
//! The engine reads UTF-8, ISO dates and decimal points. `[input]` names the forms of a file, and two steps
//! bring them into these: `utf8_copies.rs` copies a file in another encoding, and this file rewrites the cells
//! of columns that a hierarchy needs as dates or numbers. Everything behind them sees the usual forms. The
//! cells are read twice, by `policy/cell_forms.rs` for a release and by `plain_values.rs` for its verification;
//! the first is strict, so that a cell in another form is refused and never another number.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringViewArray};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use datafusion::logical_expr::Expr;

use super::infer_types::Typing;
use super::plain_values::{plain_date, plain_number};
use crate::engine::distinct::{self, Distinct};
use crate::engine::functions::{OfValues, of_values};
use crate::error::{Error, Result};
use crate::policy::{CsvOptions, CsvType};

/// A text of no type, for cells that are not written in a form of their own kind.
const MISFIT: &str = "\0";

/// Brings the cells of the column `name` into the forms that the engine reads, if `[input]` says
/// that they have others.
pub(super) fn plain_form(name: &str, cells: Expr, wanted: CsvType, csv: &CsvOptions, typing: Typing) -> Expr {
    let usual = CsvOptions::default();
    let has_own = match wanted {
        CsvType::Text => false,
        CsvType::Number => csv.numbers != usual.numbers,
        CsvType::Date => csv.date_formats != usual.date_formats,
    };
    if !has_own {
        return cells;
    }
    of_values(
        Arc::new(PlainForm { is_number: wanted == CsvType::Number, csv: csv.clone(), typing }),
        name,
        cells,
    )
}

struct PlainForm {
    is_number: bool,
    csv: CsvOptions,
    typing: Typing,
}

impl PlainForm {
    fn of_cell(&self, cell: &str) -> String {
        let plain = match (self.typing, self.is_number) {
            (Typing::Plain, true) => return plain_number(cell, &self.csv.numbers),
            (Typing::Plain, false) => {
                self.csv.date_formats.iter().find_map(|format| plain_date(cell, format))
            }
            (Typing::Columnar, true) => {
                return self.csv.numbers.plain(cell).unwrap_or_else(|| MISFIT.to_owned());
            }
            (Typing::Columnar, false) => self.csv.date_formats.iter().find_map(|format| format.iso(cell)),
        };
        plain.unwrap_or_else(|| if self.csv.reads_iso() { cell } else { MISFIT }.to_owned())
    }
}

impl OfValues for PlainForm {
    fn name(&self) -> &'static str {
        "kanon_plain_form"
    }

    fn of_type(&self, _values: &DataType) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn distinct(&self, values: &ArrayRef) -> Result<Distinct, ArrowError> {
        match self.typing {
            Typing::Columnar => distinct::of_batch(values),
            Typing::Plain => distinct::of_batch_plainly(values),
        }
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let texts = values
            .as_string_view_opt()
            .ok_or_else(|| Error::internal("plain_form: a text column is not Utf8View"))?;
        Ok(Arc::new(
            texts.iter().map(|text| text.map(|text| self.of_cell(text))).collect::<StringViewArray>(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::cell_forms::{DATE_FORMATS, DateFormat, NUMBER_FORMATS, TIMES_OF_DAY};

    fn both(csv: &CsvOptions, is_number: bool, cell: &str) -> (String, String) {
        let of = |typing| PlainForm { is_number, csv: csv.clone(), typing }.of_cell(cell);
        (of(Typing::Columnar), of(Typing::Plain))
    }

    #[test]
    fn iso_dates_are_read_besides() {
        let csv = |format: &str| CsvOptions {
            date_formats: vec![DateFormat::parse(format).unwrap()],
            ..CsvOptions::default()
        };
        assert_eq!(both(&csv("%d.%m.%Y"), false, "2020-12-31"), ("2020-12-31".into(), "2020-12-31".into()));
        assert_eq!(both(&csv("%Y-%d-%m"), false, "2020-04-05").0, "2020-05-04");
        assert_eq!(both(&csv("%Y-%d-%m"), false, "2020-12-31"), (MISFIT.into(), MISFIT.into()));
    }

    proptest! {
        /// Whatever the first way reads, the second reads the same.
        #[test]
        fn both_ways_agree(
            format in 0..DATE_FORMATS.len(),
            time in 0..TIMES_OF_DAY.len(),
            number in 0..NUMBER_FORMATS.len(),
            dates in prop::collection::vec("[0-9]{1,4}[-./ ](Jan|DEC|[0-9]{1,2})[-./ ][0-9]{1,5}( [0-9]{1,2}:[0-9]{2}(:[0-9]{2})?)?", 1..40),
            numbers in prop::collection::vec("[-+]?[0-9]{0,4}([., '’\u{a0}][0-9]{2,3}){0,3}([.,][0-9]{0,3})?", 1..40),
        ) {
            let format = DateFormat::parse(&format!("{}{}", DATE_FORMATS[format], TIMES_OF_DAY[time])).unwrap();
            let csv = CsvOptions { date_formats: vec![format], numbers: NUMBER_FORMATS[number], ..CsvOptions::default() };
            for cell in &dates {
                let (fast, plain) = both(&csv, false, cell);
                prop_assert!(fast == *cell || fast == plain, "{cell}: {fast} {plain}");
            }
            for cell in &numbers {
                let (fast, plain) = both(&csv, true, cell);
                prop_assert!(fast == MISFIT || fast == plain, "{cell}: {fast} {plain}");
            }
        }
    }
}
