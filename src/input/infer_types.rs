//! Types for the text columns of untyped formats, as their hierarchies require.
//!
//! Texts are accepted by strict patterns and read by Arrow's casts:
//!
//! ```text
//! date     YYYY-MM-DD
//! moment   YYYY-MM-DD, T or a space, HH:MM:SS, optionally a fraction of 1 to 9 digits, optionally
//!          Z, +00:00 or " UTC"; seconds 00 to 59; digits beyond the microsecond are dropped
//! integer  digits with an optional sign
//! number   digits with an optional sign, point and exponent, within the range of a double; an
//!          integer only to 2^53, as in JSON lines; or NaN, inf, infinity
//! ```
//! T and Z may be lowercase; numbers may stand between ASCII spaces. A date column may hold moments
//! at midnight. Verification reads the same texts by [`plain_values`](super::plain_values).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringViewArray};
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{cast as cast_values, nullif};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, TimeUnit};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, cast, lit, when};
use datafusion::prelude::DataFrame;

use super::plain_form::plain_form;
use super::plain_values::plain_value;
use super::text_forms::{is_code, is_inexact, is_infinite, is_integer, is_moment, is_number, names_zone};
use crate::engine::functions::{OfValues, canonical_float, of_values};
use crate::engine::{Context, column};
use crate::error::{Error, ErrorCode, Result};
use crate::policy::cell_forms::{
    DATE_FORMATS, DateFormat, NUMBER_FORMATS, NumberFormat, ShortYears, TIMES_OF_DAY,
};
use crate::policy::{CsvOptions, CsvType};

/// The types tried for a column of dates or moments, the narrowest first.
pub(crate) const TIMES: [DataType; 2] = [DataType::Date32, DataType::Timestamp(TimeUnit::Microsecond, None)];

/// The code that converts texts to values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Typing {
    /// Arrow's casts, for a release.
    Columnar,
    /// One value at a time, by code that shares nothing with the casts, for verification.
    Plain,
}

/// Casts each of the `texts` columns of `table` to the type that `csv_type` requires; `csv` says
/// how dates and numbers are written.
///
/// # Errors
/// A data error that counts the values that do not fit their column's type.
pub(crate) async fn typed(
    table: DataFrame,
    schema: &Schema,
    texts: &(dyn Fn(&Field) -> bool + Sync),
    (csv, csv_type): (&CsvOptions, &(dyn Fn(&str) -> CsvType + Sync)),
    typing: Typing,
) -> Result<DataFrame> {
    let wanted = |field: &Field| if texts(field) { csv_type(field.name()) } else { CsvType::Text };
    let wanted: Vec<CsvType> = schema.fields().iter().map(|field| wanted(field)).collect();
    if wanted.iter().all(|one| *one == CsvType::Text) {
        return Ok(table);
    }
    let plain = schema.fields().iter().zip(&wanted).map(|(field, wanted)| {
        let name = field.name();
        plain_form(name, column(name), *wanted, csv, typing).alias(name)
    });
    let cells = table;
    let table = cells.clone().select(plain.collect::<Vec<Expr>>()).context("opening the input")?;
    let types = match choose_types(&table, schema, &wanted).await? {
        Ok(types) => types,
        Err(misfit) => return Err(no_type(&cells, &table, csv, &misfit).await?),
    };
    let columns = schema.fields().iter().zip(types).map(|(field, data_type)| {
        let value = column(field.name());
        let value = match (data_type, typing) {
            (None, _) => value,
            (Some(data_type), Typing::Plain) => plain_value(field.name(), value, data_type),
            (Some(DataType::Float64), _) => canonical_float(cast(value, DataType::Float64)),
            (Some(other), _) => cast(value, other),
        };
        value.alias(field.name())
    });
    table.select(columns.collect::<Vec<Expr>>()).context("opening the input")
}

/// Builds a condition: a text of the column `name` is not NULL and cannot be read as a value of
/// this type.
pub(crate) fn misfit(name: &str, value: &Expr, data_type: &DataType) -> Expr {
    AsType::new(data_type, false).misfits(name, value)
}

/// Texts read as values of a type; a text that is none becomes NULL, or is refused.
#[derive(Clone)]
pub(super) struct AsType {
    /// The name in plans, another one for each type.
    name: String,
    data_type: DataType,
    fits: fn(&str) -> bool,
    refuses: bool,
}

impl AsType {
    /// Creates the reading as a type; `keeps_codes` is whether 01067 is a code rather than a number.
    pub(super) fn new(data_type: &DataType, keeps_codes: bool) -> Self {
        let fits: fn(&str) -> bool = match (data_type, keeps_codes) {
            (DataType::Int64, false) => is_integer,
            (DataType::Int64, true) => |text| is_integer(text) && !is_code(text),
            (DataType::Float64, false) => is_number,
            (DataType::Float64, true) => |text| is_number(text) && !is_code(text),
            _ => is_moment,
        };
        Self { name: format!("kanon_as_{data_type}"), data_type: data_type.clone(), fits, refuses: false }
    }

    /// Builds a condition: a text of the column `name` is not NULL and no value.
    pub(super) fn misfits(self, name: &str, text: &Expr) -> Expr {
        let value = of_values(Arc::new(self), name, text.clone());
        text.clone().is_not_null().and(value.is_null())
    }

    /// Builds the values of the texts of the column `name`; a text that is none fails the query.
    pub(super) fn values(self, name: &str, text: Expr) -> Expr {
        let is_float = self.data_type == DataType::Float64;
        let value = of_values(Arc::new(Self { refuses: true, ..self }), name, text);
        if is_float { canonical_float(value) } else { value }
    }
}

impl OfValues for AsType {
    fn name(&self) -> &str {
        &self.name
    }

    fn of_type(&self, _values: &DataType) -> Result<DataType> {
        Ok(self.data_type.clone())
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let doing = "reading texts as values";
        let texts = texts_of(values)?;
        let fitting = texts.iter().map(|text| text.filter(|text| (self.fits)(text)));
        let fitting = fitting.collect::<StringViewArray>();
        let mut read = cast_values(&fitting, &self.data_type).context(doing)?;
        if self.data_type == DataType::Date32 {
            // The cast takes the day of a timestamp and drops the time.
            let whole = DataType::Timestamp(TimeUnit::Microsecond, None);
            let (moment, day) = (cast_values(&fitting, &whole), cast_values(&read, &whole));
            let has_time = distinct(&moment.context(doing)?, &day.context(doing)?).context(doing)?;
            read = nullif(&read, &has_time).context(doing)?;
        }
        if self.refuses && read.null_count() > texts.null_count() {
            return Err(Error::data(
                "a cell has another form than all cells had when the types of the columns were found: the file changed; run the \
                 statement again, after creating its tables and views again",
            ));
        }
        Ok(read)
    }
}

fn texts_of(values: &ArrayRef) -> Result<&StringViewArray> {
    let texts = values.as_string_view_opt();
    texts.ok_or_else(|| Error::internal("infer_types: a text column is not Utf8View"))
}

/// A test of the form of a text.
pub(super) struct Pattern {
    /// The name in plans, another one for each pattern.
    name: String,
    fits: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

impl Pattern {
    pub(super) fn new(name: impl Into<String>, fits: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self { name: name.into(), fits: Box::new(fits) }
    }
}

impl OfValues for Pattern {
    fn name(&self) -> &str {
        &self.name
    }

    fn of_type(&self, _values: &DataType) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        Ok(Arc::new(texts_of(values)?.iter().map(|text| text.map(&self.fits)).collect::<BooleanArray>()))
    }
}

/// Returns the types to try for the texts of a column, the narrowest first.
fn candidates(wanted: CsvType) -> Vec<DataType> {
    match wanted {
        CsvType::Text => vec![],
        CsvType::Number => vec![DataType::Int64, DataType::Float64],
        CsvType::Date => TIMES.to_vec(),
    }
}

/// Finds for each column the narrowest type of its kind that every value fits, in one pass over the
/// columns that do not stay text.
async fn choose_types(
    texts: &DataFrame,
    schema: &Schema,
    wanted: &[CsvType],
) -> Result<std::result::Result<Vec<Option<DataType>>, Misfit>> {
    let mut misfits = Vec::new();
    for (field, wanted) in schema.fields().iter().zip(wanted) {
        for data_type in candidates(*wanted) {
            misfits.push(misfit(field.name(), &column(field.name()), &data_type));
        }
    }
    let mut counts = count_each(texts, misfits).await?.into_iter();
    let mut types = Vec::new();
    for (field, wanted) in schema.fields().iter().zip(wanted) {
        let tried: Vec<(DataType, i64)> = candidates(*wanted).into_iter().zip(&mut counts).collect();
        let fitting = tried.iter().find(|(_, misfits)| *misfits == 0);
        match (fitting, tried.iter().map(|(_, misfits)| *misfits).min()) {
            (None, Some(least)) => {
                let rows = u64::try_from(least).unwrap_or_default();
                return Ok(Err(Misfit { name: field.name().clone(), wanted: *wanted, rows }));
            }
            (fitting, _) => types.push(fitting.map(|(fitting, _)| fitting.clone())),
        }
    }
    Ok(Ok(types))
}

/// A column with rows that fit no type.
struct Misfit {
    name: String,
    wanted: CsvType,
    rows: u64,
}

/// The number of conditions counted in one pass: planning time grows with their square.
const CONDITIONS_A_PASS: usize = 512;

/// Counts the rows of `texts` that satisfy each condition.
async fn count_each(texts: &DataFrame, conditions: Vec<Expr>) -> Result<Vec<i64>> {
    let doing = "typing the columns";
    let mut counts = Vec::with_capacity(conditions.len());
    for conditions in conditions.chunks(CONDITIONS_A_PASS) {
        let mut counters = Vec::with_capacity(conditions.len());
        for (at, condition) in conditions.iter().enumerate() {
            let counted = when(condition.clone(), lit(1i64)).end().context(doing)?;
            counters.push(count(counted).alias(format!("count_{at}")));
        }
        let counted = texts.clone().aggregate(vec![], counters).context(doing)?;
        for batch in counted.collect().await.context(doing)? {
            for array in batch.columns() {
                counts.push(array.as_primitive::<Int64Type>().value(0));
            }
        }
    }
    Ok(counts)
}

/// Returns the error for a column with rows that fit no type, with counts of the likely causes.
/// `cells` are as the file writes them, `plain` in the form that is typed.
async fn no_type(cells: &DataFrame, plain: &DataFrame, csv: &CsvOptions, misfit: &Misfit) -> Result<Error> {
    let Misfit { name, wanted, rows } = misfit;
    let usual = CsvOptions::default();
    let what = match wanted {
        CsvType::Number if csv.numbers == usual.numbers => "number (such as 1234.5)".to_owned(),
        CsvType::Number => format!("number (such as 1234{}5)", csv.numbers.decimal),
        _ if csv.date_formats.is_empty() => "date (such as 2020-12-31 or 2020-12-31T23:59:59)".to_owned(),
        _ => {
            let formats: Vec<String> =
                csv.date_formats.iter().map(|one| format!("{:?}", one.text())).collect();
            format!("date (written as {})", formats.join(" or "))
        }
    };
    let mut kinds = counted(plain, name, of_kind(*wanted)).await?;
    kinds.extend(match wanted {
        CsvType::Date => counted(cells, name, of_short_years()?).await?,
        _ => counted(cells, name, of_units(csv)).await?,
    });
    let mut causes: Vec<String> = kinds
        .iter()
        .map(|(why, count)| format!("; {count} {} {why}", if *count == 1 { "has" } else { "have" }))
        .collect();
    let all = count_each(plain, vec![column(name).is_not_null()]).await?;
    let all: u64 = all.into_iter().filter_map(|count| u64::try_from(count).ok()).sum();
    let mut forms = match wanted {
        CsvType::Date => counted(cells, name, of_form(*wanted, &usual)).await?,
        _ => Vec::new(),
    };
    // If one format reads every cell, only it is named; otherwise the formats of the cells that the
    // policy's formats do not read.
    forms.retain(|(_, count)| *count == all);
    if forms.is_empty() {
        forms = counted(cells, name, of_form(*wanted, csv)).await?;
    }
    // Several forms may read the same cells.
    let most = forms.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in forms.iter().filter(|(_, count)| *count == most) {
        // The same mark without another one says less.
        if !keys.iter().any(|known| key.starts_with(known)) {
            keys.push(key);
        }
    }
    if !keys.is_empty() {
        let are = if most == 1 { "is" } else { "are" };
        causes.push(format!(
            "; {most} {are} written in another form: under [input] of the policy, set {}",
            keys.join(" or ")
        ));
    }
    let of_kind: u64 = kinds.iter().map(|(_, count)| count).sum();
    let has_cause = most.saturating_add(of_kind) >= *rows;
    // A column that holds something else now, rather than one with a few cells that do not fit.
    let is_other = *rows > all / 2;
    let rest = match (has_cause, is_other) {
        (true, _) => "",
        (_, true) => "; the column holds something else: correct the file, or choose a hierarchy for text",
        _ => {
            "; name the texts that mean \"missing\" in [input] nulls (CSV) or write null (JSON), or choose a hierarchy for text"
        }
    };
    let error = Error::data(format!(
        "column `{name}`: {rows} {} a {what}{}{rest}",
        if *rows == 1 { "row does not hold" } else { "rows do not hold" },
        causes.concat(),
    ));
    Ok(if is_other { error.coded(ErrorCode::OtherColumns) } else { error })
}

/// Counts the cells of the column `name` that have each of these patterns; leaves out those that none has.
async fn counted(
    texts: &DataFrame,
    name: &str,
    patterns: Vec<(Pattern, String)>,
) -> Result<Vec<(String, u64)>> {
    let (patterns, whys): (Vec<Pattern>, Vec<String>) = patterns.into_iter().unzip();
    let is = |pattern| of_values(Arc::new(pattern), name, column(name));
    let counts = count_each(texts, patterns.into_iter().map(is).collect()).await?;
    let counts = counts.into_iter().map(|count| u64::try_from(count).unwrap_or_default());
    Ok(whys.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect())
}

/// Returns why a text in the usual form may fit no type of its kind.
fn of_kind(wanted: CsvType) -> Vec<(Pattern, String)> {
    match wanted {
        CsvType::Number => vec![
            (
                Pattern::new("kanon_is_inexact", is_inexact),
                "an integer beyond 2^53, which a column of fractions or beyond 64 bits cannot hold exactly"
                    .into(),
            ),
            (Pattern::new("kanon_is_infinite", is_infinite), "a number beyond the range of a double".into()),
        ],
        CsvType::Date | CsvType::Text => vec![(
            Pattern::new("kanon_names_zone", names_zone),
            "a time zone other than UTC: write the times in UTC, or the local times without a zone".into(),
        )],
    }
}

/// Returns why a date with a year of two digits is refused.
fn of_short_years() -> Result<Vec<(Pattern, String)>> {
    let short = ShortYears::new()?;
    let why = "a year of two digits, which may be of two centuries: write the years with four digits";
    Ok(vec![(Pattern::new("kanon_has_short_year", move |text| short.fits(text)), why.into())])
}

/// Returns why a number with a unit is refused.
fn of_units(csv: &CsvOptions) -> Vec<(Pattern, String)> {
    let format = csv.numbers;
    let fits = move |text: &str| {
        let is_sign = |c: char| c.is_alphabetic() || matches!(c, '%' | '°' | '€' | '$' | '£' | '¥');
        let number = text.trim_end_matches(|c: char| is_sign(c) || c.is_ascii_whitespace());
        let unit = text.get(number.len()..).unwrap_or_default();
        unit.contains(is_sign) && format.plain(number).is_some_and(|plain| is_number(&plain))
    };
    let why = "a number and then letters or a sign, such as a unit: write the number alone";
    vec![(Pattern::new("kanon_has_unit", fits), why.into())]
}

/// Returns the other forms of dates or numbers that files have, and the keys that say so.
fn of_form(wanted: CsvType, csv: &CsvOptions) -> Vec<(Pattern, String)> {
    let known = csv.clone();
    if wanted == CsvType::Number {
        let of = |format: &NumberFormat| {
            let (format, known) = (*format, known.clone());
            let fits = move |text: &str| {
                let is = |format: &NumberFormat| format.plain(text).is_some_and(|plain| is_number(&plain));
                !is(&known.numbers) && is(&format)
            };
            let thousands = format.thousands.map(|mark| format!(" and thousands = \"{mark}\""));
            let keys = format!("decimal = \"{}\"{}", format.decimal, thousands.unwrap_or_default());
            (Pattern::new(format!("kanon_is_number with {keys}"), fits), keys)
        };
        return NUMBER_FORMATS.iter().map(of).collect();
    }
    let all =
        TIMES_OF_DAY.iter().flat_map(|time| DATE_FORMATS.iter().map(move |date| format!("{date}{time}")));
    // A list may hold several formats.
    let others: String = csv.date_formats.iter().map(|format| format!("{:?}, ", format.text())).collect();
    let keys = |text: &str| match others.is_empty() {
        true => format!("date_format = {text:?}"),
        false => format!("date_format = [{others}{text:?}]"),
    };
    let of = |text: String| {
        let format = DateFormat::parse(&text).ok()?;
        if known.date_formats.iter().any(|known| known.is_swapped_form_of(&format)) {
            return None;
        }
        let known = known.clone();
        let fits = move |text: &str| {
            format.iso(text).is_some() && !known.date_formats.iter().any(|known| known.iso(text).is_some())
        };
        Some((Pattern::new(format!("kanon_is_date {text}"), fits), keys(&text)))
    };
    all.filter_map(of).collect()
}
