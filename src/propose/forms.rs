//! Detects how the cells of a CSV input write dates and numbers.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, UInt64Array};
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use datafusion::functions_aggregate::expr_fn::{bit_and, count};
use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::DataFrame;

use super::facts::{count_if, narrow, one_row, whole};
use crate::engine::Context;
use crate::engine::functions::{OfValues, of_values};
use crate::error::{Error, Result};
use crate::input::text_forms::{is_number, is_plain_date};
use crate::policy::CsvType;
use crate::policy::cell_forms::{
    DATE_FORMATS, DateFormat, NUMBER_FORMATS, NumberFormat, ShortYears, TIMES_OF_DAY,
};

/// The place in [`NUMBER_FORMATS`] of the usual format.
const USUAL: usize = 0;
/// The place of the format with a comma before the fraction.
const COMMAS: usize = 1;
/// The place of the format with a comma before the fraction and points between thousands.
const POINTS: usize = 2;

/// The forms that are tried; each has a bit: those of dates, then those of numbers, then dates in
/// ISO form and dates whose years have two digits.
pub(super) struct TriedForms {
    /// Each format, then those that differ in the time of day only, for columns with and without one.
    dates: Vec<Vec<DateFormat>>,
    short_years: ShortYears,
}

/// How often the cells of a column have each form.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    /// The name of the column.
    pub(super) name: String,
    /// The cells that are known.
    pub(super) known: u64,
    /// The forms that some cells have, as bits, and the number of these cells.
    pub(super) cells: Vec<(u64, u64)>,
}

impl Tally {
    /// Returns the number of cells that have one of these forms.
    pub(super) fn having(&self, forms: u64) -> u64 {
        self.cells.iter().filter(|(bits, _)| bits & forms != 0).map(|(_, count)| count).sum()
    }

    /// Returns whether so many cells are most of those that are known.
    pub(super) fn is_most(&self, cells: u64) -> bool {
        self.known > 0 && u128::from(cells) * 100 >= u128::from(self.known) * MOST
    }

    /// Returns the forms that all cells have; if there is none, those that most of them have.
    pub(super) fn leading(&self) -> u64 {
        let counts = (0..u64::BITS).map(|bit| (1 << bit, self.having(1 << bit)));
        let most = counts.clone().map(|(_, count)| count).max().filter(|most| self.is_most(*most));
        counts.filter(|(_, count)| Some(*count) == most).fold(0, |forms, (bit, _)| forms | bit)
    }
}

/// At least this share of the cells of a column, in percent, are most of them.
const MOST: u128 = 90;

/// How a file writes dates and numbers.
#[derive(Debug, Default)]
pub(super) struct ChosenForms {
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
    /// The columns whose dates or numbers fit several formats.
    pub(super) unclear_columns: Vec<String>,
}

impl TriedForms {
    pub(super) fn new() -> Result<Self> {
        let format = |date: &str, time: &str| DateFormat::parse(&format!("{date}{time}"));
        let single =
            TIMES_OF_DAY.iter().flat_map(|time| DATE_FORMATS.map(|date| Ok(vec![format(date, time)?])));
        let mixed =
            DATE_FORMATS.iter().map(|date| TIMES_OF_DAY.iter().map(|time| format(date, time)).collect());
        Ok(Self { dates: single.chain(mixed).collect::<Result<_>>()?, short_years: ShortYears::new()? })
    }

    /// Returns the bits of all forms of dates.
    pub(super) fn dates(&self) -> u64 {
        (1 << self.dates.len()) - 1
    }

    /// Returns the bits of all forms of numbers.
    pub(super) fn numbers(&self) -> u64 {
        ((1 << NUMBER_FORMATS.len()) - 1) << self.dates.len()
    }

    /// Returns the bit of dates in ISO form.
    pub(super) fn iso_dates(&self) -> u64 {
        1 << (self.dates.len() + NUMBER_FORMATS.len())
    }

    /// Returns the bit of dates whose years have two digits.
    pub(super) fn short_years(&self) -> u64 {
        self.iso_dates() << 1
    }

    /// Returns the formats of dates of these bits; those with a time and without one only where
    /// there is no other.
    pub(super) fn formats(&self, forms: u64) -> Vec<usize> {
        let all: Vec<usize> = (0..self.dates.len()).filter(|at| forms & (1 << at) != 0).collect();
        let single: Vec<usize> = all.iter().copied().filter(|at| self.dates[*at].len() == 1).collect();
        if single.is_empty() { all } else { single }
    }

    /// Returns the formats of dates of these bits as the policy says them.
    pub(super) fn texts(&self, forms: u64) -> Vec<&str> {
        let formats = self.formats(forms).into_iter().flat_map(|at| &self.dates[at]);
        formats.map(DateFormat::text).collect()
    }

    /// Counts the forms of the cells of each column; `cells` holds an expression for each name,
    /// NULL where nothing is known.
    pub(super) async fn of_columns(
        self: &Arc<Self>,
        table: &DataFrame,
        cells: Vec<(String, Expr)>,
    ) -> Result<Vec<Tally>> {
        let mut counts = Vec::new();
        for (at, (name, cell)) in cells.iter().enumerate() {
            let bits = self.bits(name, cell);
            counts.push(bit_and(bits.clone()).alias(format!("shared_{at}")));
            counts.push(count(bits.clone()).alias(format!("known_{at}")));
            counts.push(count_if(bits.not_eq(lit(0u64)))?.alias(format!("formed_{at}")));
        }
        let row = one_row(&narrow(table, cells.iter().map(|(name, _)| name.as_str()))?, counts).await?;
        let mut tallies = Vec::new();
        for (at, (name, cell)) in cells.iter().enumerate() {
            // NULL where no cell is known: nothing says a form.
            let counted = |what: &str| Ok(whole(&row, &format!("{what}_{at}"))?.unwrap_or(0));
            let (shared, known) = (counted("shared")?, counted("known")?);
            let mut tally = Tally { name: name.clone(), known, cells: vec![(shared, known)] };
            if shared == 0 && tally.is_most(counted("formed")?) {
                tally.cells = self.counted(table, name, cell).await?;
            }
            tallies.push(tally);
        }
        Ok(tallies)
    }

    /// Builds the forms of a cell as bits.
    fn bits(self: &Arc<Self>, name: &str, cell: &Expr) -> Expr {
        let forms: Arc<dyn OfValues> = Arc::clone(self) as _;
        of_values(forms, name, cell.clone())
    }

    /// Counts the cells of one column by their forms.
    async fn counted(
        self: &Arc<Self>,
        table: &DataFrame,
        name: &str,
        cell: &Expr,
    ) -> Result<Vec<(u64, u64)>> {
        let doing = "counting the forms of cells";
        let groups = vec![self.bits(name, cell).alias("forms")];
        let counts = vec![count(lit(1i64)).alias("cells")];
        let counted = narrow(table, [name])?.aggregate(groups, counts).context(doing)?;
        let mut found = Vec::new();
        for batch in counted.collect().await.context(doing)? {
            let [forms, cells] = batch.columns() else {
                return Err(Error::internal("forms: a count by forms has not two columns"));
            };
            let forms = forms.as_primitive_opt::<UInt64Type>();
            let cells = cells.as_primitive_opt::<Int64Type>();
            let (Some(forms), Some(cells)) = (forms, cells) else {
                return Err(Error::internal("forms: a count by forms is no number"));
            };
            for (forms, cells) in forms.iter().zip(cells.values()) {
                found.extend(forms.map(|forms| (forms, u64::try_from(*cells).unwrap_or_default())));
            }
        }
        Ok(found)
    }

    /// Chooses the forms of a file from those of its columns of texts, and of those that are
    /// numbers in the usual form. Semicolons between the cells speak for commas before fractions.
    pub(super) fn choose(
        &self,
        texts: &[(String, u64)],
        numbers: &[(String, u64)],
        has_semicolons: bool,
    ) -> ChosenForms {
        let mut found = ChosenForms::default();
        self.choose_dates(texts, &mut found);
        self.choose_numbers(texts, numbers, has_semicolons, &mut found);
        found
    }

    fn choose_numbers(
        &self,
        texts: &[(String, u64)],
        numbers: &[(String, u64)],
        has_semicolons: bool,
        found: &mut ChosenForms,
    ) {
        let fits = |forms: u64, form: usize| forms & (1u64 << (self.dates.len() + form)) != 0;
        // A file has one form: it reads the numbers in the usual form, too.
        let reads_numbers = |form: usize| numbers.iter().all(|(_, forms)| fits(*forms, form));
        let texts_by = |form: usize| {
            texts.iter().filter(|(_, forms)| fits(*forms, form) && !fits(*forms, USUAL)).count()
        };
        let rated = |form: usize| if reads_numbers(form) { texts_by(form) } else { 0 };
        // Three digits follow each point of these.
        let with_points = numbers.iter().filter(|(_, forms)| fits(*forms, POINTS) && !fits(*forms, COMMAS));
        let with_points: Vec<String> = with_points.map(|(name, _)| name.clone()).collect();
        let all = 1..NUMBER_FORMATS.len();
        let Some(best) = all.clone().rev().max_by_key(|form| rated(*form)).filter(|form| rated(*form) > 0)
        else {
            let is_continental =
                has_semicolons || found.dates.iter().any(|format| format.text().starts_with("%d.%m."));
            if is_continental && reads_numbers(POINTS) && !with_points.is_empty() {
                found.unclear_numbers = vec![NUMBER_FORMATS[USUAL], NUMBER_FORMATS[POINTS]];
                found.unclear_columns.extend(with_points);
            }
            return;
        };
        let NumberFormat { decimal, thousands } = NUMBER_FORMATS[best];
        let is_as_good =
            |form: &usize| rated(*form) == rated(best) && NUMBER_FORMATS[*form].decimal != decimal;
        // No text shows the mark of thousands: only numbers that have it as a point would change.
        let plain =
            all.clone().find(|form| NUMBER_FORMATS[*form] == NumberFormat { decimal, thousands: None });
        let plain = plain.filter(|form| *form != best && texts_by(*form) == texts_by(best));
        let other = all.clone().filter(is_as_good).find(|form| NUMBER_FORMATS[*form].thousands != thousands);
        let of_form = |form: usize| {
            let texts = texts.iter().filter(move |(_, forms)| fits(*forms, form));
            texts.map(|(name, _)| name.clone())
        };
        if let Some(other) = plain.or(other) {
            found.unclear_numbers = vec![NUMBER_FORMATS[other.min(best)], NUMBER_FORMATS[other.max(best)]];
            found.unclear_columns.extend(of_form(best));
            if other == POINTS || best == POINTS {
                found.unclear_columns.extend(with_points);
            }
            return;
        }
        // Without a fraction both marks of one read the same.
        let usual = all.clone().filter(is_as_good).find(|form| NUMBER_FORMATS[*form].thousands == thousands);
        let form = usual.unwrap_or(best);
        found.numbers = Some(NUMBER_FORMATS[form]);
        found.types.extend(of_form(form).map(|name| (name, CsvType::Number)));
    }

    fn choose_dates(&self, texts: &[(String, u64)], found: &mut ChosenForms) {
        let dates: Vec<(&String, Vec<usize>)> =
            texts.iter().map(|(name, forms)| (name, self.formats(*forms))).collect();
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
                None if formats.len() > 1 => {
                    if found.unclear.is_empty() {
                        found.unclear = formats.iter().flat_map(|at| self.dates[*at].clone()).collect();
                    }
                    found.unclear_columns.push(name.clone());
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

impl OfValues for TriedForms {
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
            let others = [is_plain_date(text), self.short_years.fits(text)];
            dates
                .chain(numbers)
                .chain(others)
                .zip(0..)
                .fold(0u64, |forms, (fits, bit)| forms | u64::from(fits) << bit)
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
        let forms = TriedForms::new().unwrap().of(&cells).unwrap();
        forms.as_primitive::<UInt64Type>().values().iter().fold(u64::MAX, |all, forms| all & forms)
    }

    fn found(texts: &[&[&str]], numbers: &[&[&str]]) -> (Vec<String>, Option<NumberFormat>, usize, usize) {
        let named = |columns: &[&[&str]]| -> Vec<(String, u64)> {
            columns.iter().enumerate().map(|(at, cells)| (format!("c{at}"), of(cells))).collect()
        };
        let found = TriedForms::new().unwrap().choose(&named(texts), &named(numbers), false);
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
        let unclear_in = |texts: &[&[&str]], numbers: &[&[&str]], has_semicolons: bool| {
            let named = |columns: &[&[&str]]| -> Vec<(String, u64)> {
                columns.iter().enumerate().map(|(at, cells)| (format!("c{at}"), of(cells))).collect()
            };
            let found = TriedForms::new().unwrap().choose(&named(texts), &named(numbers), has_semicolons);
            (found.numbers, found.unclear_numbers.len())
        };
        let unclear = |texts: &[&[&str]], numbers: &[&[&str]]| unclear_in(texts, numbers, false);
        assert_eq!(unclear(&[&["1,234"]], &[]), (None, 2));
        assert_eq!(unclear(&[&["4844,19"]], &[&["47.099"]]), (None, 2));
        assert_eq!(unclear(&[&["1,234"], &["1,5"]], &[]), (Some(NUMBER_FORMATS[COMMAS]), 0));
        let english = NumberFormat { decimal: '.', thousands: Some(',') };
        assert_eq!(unclear(&[&["1,234.5"], &["1,234"]], &[]), (Some(english), 0));
        // Points with three digits behind each, in a file that is continental, or not.
        assert_eq!(NUMBER_FORMATS[POINTS], NumberFormat { decimal: ',', thousands: Some('.') });
        assert_eq!(NUMBER_FORMATS[COMMAS], NumberFormat { decimal: ',', thousands: None });
        assert_eq!(unclear_in(&[&["x"]], &[&["7.196", "12"]], true), (None, 2));
        assert_eq!(unclear(&[&["31.12.2020"]], &[&["7.196", "12"]]), (None, 2));
        assert_eq!(unclear(&[&["31/12/2020"]], &[&["7.196", "12"]]), (None, 0));
        assert_eq!(unclear_in(&[], &[&["7.196"], &["7.19"]], true), (None, 0));
        assert_eq!(unclear_in(&[], &[&["0.196"]], true), (None, 0));
        assert_eq!(unclear_in(&[], &[&["7196"]], true), (None, 0));
    }

    #[test]
    fn most_cells_lead() {
        let forms = TriedForms::new().unwrap();
        let tally = |cells: &[(&str, u64)]| {
            let known = cells.iter().map(|(_, count)| count).sum();
            let cells = cells.iter().map(|(cell, count)| (of(&[*cell]), *count)).collect();
            Tally { name: String::new(), known, cells }
        };
        let of_dates = tally(&[("31.12.2020", 300), ("01.02.2020", 63), ("ask", 4)]);
        assert_eq!(forms.texts(of_dates.leading()), ["%d.%m.%Y"]);
        assert_eq!(of_dates.having(forms.dates()), 363);
        // The cells that only one format reads decide.
        assert_eq!(
            forms.texts(tally(&[("01/02/2020", 90), ("31/12/2020", 9), ("x", 1)]).leading()),
            ["%d/%m/%Y"]
        );
        assert_eq!(tally(&[("31.12.2020", 8), ("ask", 2)]).leading(), 0);
        assert_eq!(tally(&[("ask", 2)]).leading(), 0);
        let short = tally(&[("31.12.20", 20)]);
        assert_eq!((short.leading(), short.having(forms.short_years())), (forms.short_years(), 20));
        assert_eq!(tally(&[("2020-12-31", 95), ("x", 5)]).leading(), forms.iso_dates());
        let commas = of(&["1,5"]);
        assert!(commas != 0 && commas & !forms.numbers() == 0, "{commas:b}");
        assert_eq!(tally(&[("1,5", 95), ("x", 5)]).leading(), commas);
    }
}
