//! Detects how the cells of a CSV input write dates and numbers.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, UInt64Array};
use arrow::datatypes::{DataType, UInt64Type};
use datafusion::functions_aggregate::expr_fn::bit_and;
use datafusion::logical_expr::Expr;
use datafusion::prelude::DataFrame;

use super::facts::{narrow, one_row};
use crate::engine::functions::{OfValues, of_values};
use crate::error::{Error, Result};
use crate::input::infer_types::is_number;
use crate::policy::CsvType;
use crate::policy::cell_forms::{DATE_FORMATS, DateFormat, NUMBER_FORMATS, NumberFormat, TIMES_OF_DAY};

/// The forms that are tried; each has a bit, those of numbers after those of dates.
pub(super) struct Forms {
    /// Each format, then those that differ in the time of day only, for columns with and without one.
    dates: Vec<Vec<DateFormat>>,
}

/// How a file writes dates and numbers.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The formats of dates.
    pub(super) dates: Vec<DateFormat>,
    /// The format of numbers, if it is not the usual one.
    pub(super) numbers: Option<NumberFormat>,
    /// The formats of dates between which the cells leave the choice.
    pub(super) unclear: Vec<DateFormat>,
    /// The formats of numbers between which the cells leave the choice.
    pub(super) unclear_numbers: Vec<NumberFormat>,
    /// The columns that are dates or numbers in these forms.
    pub(super) types: HashMap<String, CsvType>,
}

impl Forms {
    pub(super) fn new() -> Result<Self> {
        let format = |date: &str, time: &str| DateFormat::parse(&format!("{date}{time}"));
        let single =
            TIMES_OF_DAY.iter().flat_map(|time| DATE_FORMATS.map(|date| Ok(vec![format(date, time)?])));
        let mixed =
            DATE_FORMATS.iter().map(|date| TIMES_OF_DAY.iter().map(|time| format(date, time)).collect());
        Ok(Self { dates: single.chain(mixed).collect::<Result<_>>()? })
    }

    /// Returns for each column the forms that all its cells have, of `cells`: an expression for each name, NULL where nothing is known.
    pub(super) async fn of_columns(
        self: &Arc<Self>,
        table: &DataFrame,
        cells: Vec<(String, Expr)>,
    ) -> Result<Vec<(String, u64)>> {
        let shared: Vec<_> = cells
            .iter()
            .enumerate()
            .map(|(at, (name, cell))| {
                let forms: Arc<dyn OfValues> = Arc::clone(self) as _;
                bit_and(of_values(forms, name, cell.clone())).alias(format!("forms_{at}"))
            })
            .collect();
        let table = narrow(table, cells.iter().map(|(name, _)| name.as_str()))?;
        let row = one_row(&table, shared).await?;
        let forms_of = |at: usize| {
            let forms = row
                .column_by_name(&format!("forms_{at}"))
                .and_then(|bits| bits.as_primitive_opt::<UInt64Type>());
            let forms = forms.ok_or_else(|| Error::internal("forms: no bits of a column"))?;
            // No cell is known: nothing says a form.
            Ok(forms.iter().next().flatten().unwrap_or(0))
        };
        cells.iter().enumerate().map(|(at, (name, _))| Ok((name.clone(), forms_of(at)?))).collect()
    }

    /// Chooses the forms of a file from those of its columns of texts, and of those that are numbers in the usual form.
    pub(super) fn choose(&self, texts: &[(String, u64)], numbers: &[(String, u64)]) -> Found {
        let mut found = Found::default();
        self.choose_dates(texts, &mut found);
        let fits = |forms: u64, form: usize| forms & (1u64 << (self.dates.len() + form)) != 0;
        // A file has one form: it reads the numbers in the usual form, too.
        let reads_numbers = |form: usize| numbers.iter().all(|(_, forms)| fits(*forms, form));
        let texts_by =
            |form: usize| texts.iter().filter(|(_, forms)| fits(*forms, form) && !fits(*forms, 0)).count();
        let rated = |form: usize| if reads_numbers(form) { texts_by(form) } else { 0 };
        let all = 1..NUMBER_FORMATS.len();
        let Some(best) = all.clone().rev().max_by_key(|form| rated(*form)).filter(|form| rated(*form) > 0)
        else {
            return found;
        };
        let NumberFormat { decimal, thousands } = NUMBER_FORMATS[best];
        let is_as_good =
            |form: &usize| rated(*form) == rated(best) && NUMBER_FORMATS[*form].decimal != decimal;
        // No text shows the mark of thousands: only numbers that have it as a point would change.
        let plain =
            all.clone().find(|form| NUMBER_FORMATS[*form] == NumberFormat { decimal, thousands: None });
        let plain = plain.filter(|form| *form != best && texts_by(*form) == texts_by(best));
        let other = all.clone().filter(is_as_good).find(|form| NUMBER_FORMATS[*form].thousands != thousands);
        if let Some(other) = plain.or(other) {
            found.unclear_numbers = vec![NUMBER_FORMATS[other.min(best)], NUMBER_FORMATS[other.max(best)]];
            return found;
        }
        // Without a fraction both marks of one read the same.
        let usual = all.clone().filter(is_as_good).find(|form| NUMBER_FORMATS[*form].thousands == thousands);
        let form = usual.unwrap_or(best);
        found.numbers = Some(NUMBER_FORMATS[form]);
        let of_form = texts.iter().filter(|(_, forms)| fits(*forms, form));
        found.types.extend(of_form.map(|(name, _)| (name.clone(), CsvType::Number)));
        found
    }

    fn choose_dates(&self, texts: &[(String, u64)], found: &mut Found) {
        let formats = |forms: u64| -> Vec<usize> {
            let all: Vec<usize> = (0..self.dates.len()).filter(|at| forms & (1 << at) != 0).collect();
            let single: Vec<usize> = all.iter().copied().filter(|at| self.dates[*at].len() == 1).collect();
            if single.is_empty() { all } else { single }
        };
        let dates: Vec<(&String, Vec<usize>)> =
            texts.iter().map(|(name, forms)| (name, formats(*forms))).collect();
        let mut chosen: Vec<usize> = Vec::new();
        // What one column leaves open another one may decide.
        let clear = dates.iter().filter_map(|(_, formats)| match formats.as_slice() {
            [one] => Some(*one),
            _ => None,
        });
        for format in clear {
            if !chosen.iter().any(|other| *other == format || self.are_rivals(*other, format)) {
                chosen.push(format);
            }
        }
        for (name, formats) in dates {
            match formats.iter().find(|format| chosen.contains(format)) {
                Some(_) => {
                    found.types.insert(name.clone(), CsvType::Date);
                }
                None if formats.len() > 1 && found.unclear.is_empty() => {
                    found.unclear = formats.iter().flat_map(|at| self.dates[*at].clone()).collect();
                }
                None => {}
            }
        }
        chosen.sort_unstable();
        for format in chosen.into_iter().flat_map(|at| self.dates[at].clone()) {
            if !found.dates.contains(&format) {
                found.dates.push(format);
            }
        }
    }

    /// Returns whether some cell is a date by both of these, and perhaps another day by each.
    fn are_rivals(&self, one: usize, other: usize) -> bool {
        let reads = |at: usize, cell: &str| self.dates[at].iter().any(|format| format.iso(cell).is_some());
        self.dates[one].iter().any(|format| {
            let cell = format.text().replace("%d", "01").replace("%m", "02").replace("%Y", "2000");
            let cell = cell.replace("%b", "Feb").replace("%H", "03").replace("%M", "04").replace("%S", "05");
            let is_the_same = self.dates[other].contains(format);
            !is_the_same && reads(other, &cell)
        })
    }
}

impl OfValues for Forms {
    fn name(&self) -> &'static str {
        "kanon_forms"
    }

    fn of_type(&self, _values: &DataType) -> Result<DataType> {
        Ok(DataType::UInt64)
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let texts = values
            .as_string_view_opt()
            .ok_or_else(|| Error::internal("forms: a text column is not Utf8View"))?;
        // 02139 is a code, not a number.
        let is_code = |text: &str| matches!(text.as_bytes(), [b'0', b'0'..=b'9', ..]);
        let forms = |text: &str| {
            let dates =
                self.dates.iter().map(|formats| formats.iter().any(|format| format.iso(text).is_some()));
            let numbers = NUMBER_FORMATS
                .iter()
                .map(|format| !is_code(text) && format.plain(text).is_some_and(|plain| is_number(&plain)));
            dates.chain(numbers).zip(0..).fold(0u64, |forms, (fits, bit)| forms | u64::from(fits) << bit)
        };
        Ok(Arc::new(texts.iter().map(|text| text.map(forms)).collect::<UInt64Array>()))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::StringViewArray;

    use super::*;

    /// The forms that all these cells have.
    fn of(cells: &[&str]) -> u64 {
        let cells: ArrayRef = Arc::new(StringViewArray::from(cells.to_vec()));
        let forms = Forms::new().unwrap().of(&cells).unwrap();
        forms.as_primitive::<UInt64Type>().values().iter().fold(u64::MAX, |all, forms| all & forms)
    }

    fn found(texts: &[&[&str]], numbers: &[&[&str]]) -> (Vec<String>, Option<NumberFormat>, usize, usize) {
        let named = |columns: &[&[&str]]| -> Vec<(String, u64)> {
            columns.iter().enumerate().map(|(at, cells)| (format!("c{at}"), of(cells))).collect()
        };
        let found = Forms::new().unwrap().choose(&named(texts), &named(numbers));
        let dates = found.dates.iter().map(|format| format.text().to_owned()).collect();
        (dates, found.numbers, found.unclear.len(), found.types.len())
    }

    #[test]
    fn one_column_decides_for_others() {
        let german = Some(NumberFormat { decimal: ',', thousands: Some('.') });
        let dates = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(found(&[&["31.12.2020", "1.2.2020"], &["x"]], &[]), (dates(&["%d.%m.%Y"]), None, 0, 1));
        // Each of these is a date by both formats, and the second column knows.
        assert_eq!(found(&[&["01/02/2020"]], &[]), (dates(&[]), None, 2, 0));
        assert_eq!(found(&[&["01/02/2020"], &["31/12/2020"]], &[]), (dates(&["%d/%m/%Y"]), None, 0, 2));
        // Two columns that contradict each other: the first counts.
        assert_eq!(found(&[&["12/31/2020"], &["31/12/2020"]], &[]).0, ["%m/%d/%Y"]);
        assert_eq!(found(&[&["1.234,5", "7"]], &[]).1, german);
        assert_eq!(
            found(&[&["1,5", "7"]], &[&["1", "20"]]).1,
            Some(NumberFormat { decimal: ',', thousands: None })
        );
        // `1.234` is read like the rest of the file.
        assert_eq!(found(&[&["1.234,5"]], &[&["1.234"]]).1, german);
        assert_eq!(found(&[&["1,5"]], &[&["1.25"]]).1, None);
        assert_eq!(found(&[&["a", "1,5"], &["02139"]], &[]), (dates(&[]), None, 0, 0));
        assert_eq!(found(&[&["06.2015", "10.2015"]], &[]), (dates(&[]), None, 0, 0));
        // With and without a time.
        let both = dates(&["%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S"]);
        assert_eq!(found(&[&["31.12.2020", "31.12.2020 10:00"], &["1.1.2020"]], &[]), (both, None, 0, 2));
        assert_eq!(found(&[&["1 234"]], &[]).1, Some(NumberFormat { decimal: '.', thousands: Some(' ') }));
    }

    #[test]
    fn numbers_that_fit_several_formats_are_left_to_people() {
        let unclear = |texts: &[&[&str]], numbers: &[&[&str]]| {
            let named = |columns: &[&[&str]]| -> Vec<(String, u64)> {
                columns.iter().enumerate().map(|(at, cells)| (format!("c{at}"), of(cells))).collect()
            };
            let found = Forms::new().unwrap().choose(&named(texts), &named(numbers));
            (found.numbers.is_some(), found.unclear_numbers.len())
        };
        assert_eq!(unclear(&[&["1,234"]], &[]), (false, 2));
        assert_eq!(unclear(&[&["4844,19"]], &[&["47.099"]]), (false, 2));
        assert_eq!(unclear(&[&["1,234"], &["1,5"]], &[]), (true, 0));
        assert_eq!(unclear(&[&["1,234.5"], &["1,234"]], &[]), (true, 0));
    }
}
