//! The types of the columns of CSV files for queries, which do not say them: found from every cell.
//!
//! A column is of dates, moments, integers or numbers if all its cells are, in the forms of `infer_types`
//! and of `[input]`; the first of these types that fits is its own. NULL says nothing. Unlike a rule of a policy, which asks
//! for numbers, a query may look at codes: one cell such as 01067 keeps the column text, and so do words such as NaN
//! without a number among them, cells that could be one number though they differ (`1.10`, `1.1`), and fractions of a second that
//! a moment cannot hold.
//!
//! A sample of rows would make a number of 1067 until 01067 comes, and a later word NULL. So one pass tries all
//! types on each column until only text is left, by the patterns and casts that release and verification agree
//! on. A value that is read in another form than was found fails the query.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Expr, Partitioning, cast};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;
use tokio::task::JoinSet;

use super::files::Input;
use super::infer_types::{AsType, Pattern, TIMES, Typing};
use super::number_spelling::NumberSpelling;
use super::plain_form::plain_form;
use super::table::with_nulls;
use crate::engine::functions::of_values;
use crate::engine::{Context, column};
use crate::error::{Error, Result};
use crate::policy::{CsvOptions, CsvType};

/// The type of each column of a table; `None` for those that stay as they are.
pub type FoundTypes = Vec<Option<DataType>>;

const DOING: &str = "finding the types of the columns";

/// The types that are tried, in this order. A date format may be all digits: it was asked for.
fn candidates() -> [DataType; 4] {
    let [day, moment] = TIMES;
    [day, moment, DataType::Int64, DataType::Float64]
}

/// Builds the text of a column in the form that a type is read from.
fn text_for(name: &str, data_type: &DataType, csv: &CsvOptions) -> Expr {
    let wanted = match data_type {
        DataType::Int64 | DataType::Float64 => CsvType::Number,
        _ => CsvType::Date,
    };
    plain_form(name, cast(column(name), DataType::Utf8View), wanted, csv, Typing::Columnar)
}

/// What is asked of the cells of a text column: for each candidate whether it does not fit, whether a digit occurs, whether
/// seconds have more digits than a moment holds, and how numbers are written.
struct Tests {
    misfits: Vec<Arc<dyn PhysicalExpr>>,
    has_digit: Arc<dyn PhysicalExpr>,
    is_finer: Arc<dyn PhysicalExpr>,
    number: Arc<dyn PhysicalExpr>,
}

/// What some rows say of a column.
#[derive(Clone)]
struct Seen {
    fits: [bool; 4],
    has_digit: bool,
    numbers: NumberSpelling,
}

impl Seen {
    fn nothing() -> Self {
        Self { fits: [true; 4], has_digit: false, numbers: NumberSpelling::default() }
    }

    /// Returns whether no further cell can make it anything but text.
    fn is_text(&self) -> bool {
        !self.fits.contains(&true)
    }

    fn add(&mut self, other: &Self) {
        self.fits.iter_mut().zip(other.fits).for_each(|(fits, other)| *fits &= other);
        self.has_digit |= other.has_digit;
        self.numbers.add(&other.numbers);
    }

    fn look(&mut self, tests: &Tests, rows: &RecordBatch) -> Result<()> {
        for (fits, misfits) in self.fits.iter_mut().zip(&tests.misfits) {
            *fits = *fits && !any(misfits, rows)?;
        }
        self.has_digit = self.has_digit || (!self.is_text() && any(&tests.has_digit, rows)?);
        let [day, moment, integer, number] = &mut self.fits;
        if (*day || *moment) && any(&tests.is_finer, rows)? {
            (*day, *moment) = (false, false);
        }
        if *integer || *number {
            let cells = tests.number.evaluate(rows).and_then(|cells| cells.into_array(rows.num_rows()));
            let cells = cells.context(DOING)?;
            let cells = cells.as_string_view_opt().into_iter().flatten().flatten();
            cells.for_each(|cell| self.numbers.add_cell(cell));
            if !self.numbers.may_tell_apart() {
                (*integer, *number) = (false, false);
            }
        }
        Ok(())
    }

    fn found(&self) -> Option<DataType> {
        let fits = |(candidate, fits): &(DataType, bool)| {
            *fits && (!candidate.is_numeric() || self.numbers.tells_all_apart())
        };
        let mut fitting = candidates().into_iter().zip(self.fits).filter(fits);
        fitting.next().filter(|_| self.has_digit).map(|(fitting, _)| fitting)
    }
}

/// Returns whether a condition holds for any of these rows.
fn any(condition: &Arc<dyn PhysicalExpr>, rows: &RecordBatch) -> Result<bool> {
    let holds = condition.evaluate(rows).and_then(|holds| holds.into_array(rows.num_rows()));
    Ok(holds.context(DOING)?.as_boolean_opt().is_some_and(|holds| holds.true_count() > 0))
}

/// Finds the type of each text column of a table from all rows, in one pass; a column without a
/// type of its own stops being looked at. `csv` says how dates and numbers are written.
///
/// # Errors
/// A data error when the rows cannot be read.
pub async fn find_types(table: &DataFrame, csv: &CsvOptions) -> Result<FoundTypes> {
    let (state, plan) = table.clone().into_parts();
    let condition = |expr: Expr| state.create_physical_expr(expr, plan.schema()).context(DOING);
    let mut tests = Vec::new();
    for field in plan.schema().fields() {
        let name = field.name();
        if !field.data_type().is_string() {
            tests.push(None);
            continue;
        }
        let misfits = candidates().into_iter().map(|candidate| {
            condition(AsType::new(&candidate, true).misfits(name, &text_for(name, &candidate, csv)))
        });
        let digit = Pattern::new("kanon_has_digit", |text: &str| text.bytes().any(|c| c.is_ascii_digit()));
        let finer = Pattern::new("kanon_has_nanoseconds", |text: &str| {
            let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
            fraction.bytes().take_while(u8::is_ascii_digit).count() > 6
        });
        let text = cast(column(name), DataType::Utf8View);
        let has_digit = condition(of_values(Arc::new(digit), name, text.clone()))?;
        let is_finer = condition(of_values(Arc::new(finer), name, text))?;
        let number = condition(text_for(name, &DataType::Float64, csv))?;
        tests.push(Some(Tests { misfits: misfits.collect::<Result<_>>()?, has_digit, is_finer, number }));
    }
    let mut seen: Vec<Option<Seen>> =
        tests.iter().map(|tests| tests.as_ref().map(|_| Seen::nothing())).collect();
    let tests = Arc::new(tests);
    let spread = Partitioning::RoundRobinBatch(state.config().target_partitions());
    let rows = table.clone().repartition(spread).context(DOING)?;
    let mut looking = JoinSet::new();
    for rows in rows.execute_stream_partitioned().await.context(DOING)? {
        looking.spawn(look_at(rows, Arc::clone(&tests), seen.clone()));
    }
    while let Some(some) = looking.join_next().await {
        let some = some.map_err(|_| Error::internal("found types: a thread of the engine has ended"))??;
        for (seen, some) in seen.iter_mut().flatten().zip(some.iter().flatten()) {
            seen.add(some);
        }
    }
    Ok(seen.iter().map(|seen| seen.as_ref().and_then(Seen::found)).collect())
}

/// Looks at rows until they end or all columns are text.
async fn look_at(
    mut rows: SendableRecordBatchStream,
    tests: Arc<Vec<Option<Tests>>>,
    mut seen: Vec<Option<Seen>>,
) -> Result<Vec<Option<Seen>>> {
    while seen.iter().flatten().any(|seen| !seen.is_text())
        && let Some(batch) = rows.next().await
    {
        let batch = batch.context(DOING)?;
        for (tests, seen) in tests.iter().flatten().zip(seen.iter_mut().flatten()) {
            seen.look(tests, &batch)?;
        }
    }
    Ok(seen)
}

/// Casts columns to the types that were found. The query fails at a cell that does not fit its
/// column's type.
///
/// # Errors
/// An internal error for a plan that the engine refuses.
pub fn with_types(table: DataFrame, types: &FoundTypes, csv: &CsvOptions) -> Result<DataFrame> {
    let names: Vec<String> = table.schema().fields().iter().map(|field| field.name().clone()).collect();
    let typed = names.iter().zip(types).map(|(name, data_type)| {
        let value = match data_type {
            None => column(name),
            Some(found) => AsType::new(found, true).values(name, text_for(name, found, csv)),
        };
        value.alias(name)
    });
    let typed: Vec<Expr> = typed.collect();
    table.select(typed).context("opening the input")
}

impl Input {
    /// Opens CSV files as a [pinned table](super::pinned_table::PinnedTable) of texts, after a check of every line; a
    /// copy in UTF-8 does not change.
    ///
    /// # Errors
    /// A data error when a file cannot be read.
    pub fn pinned_texts(&self, session: &SessionContext, csv: &CsvOptions) -> Result<DataFrame> {
        let schema = self.file_schema(csv)?;
        self.check_lines(csv)?;
        with_nulls(
            self.raw_within(session, csv, &schema, &|table| self.pin(table))?,
            &schema,
            &self.folders,
            csv,
        )
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, StringViewArray};

    use super::*;
    use crate::policy::{DateFormat, NumberFormat};

    fn table(cells: &[&str]) -> DataFrame {
        let cells = cells.iter().map(|cell| Some(*cell).filter(|cell| !cell.is_empty()));
        let cells: ArrayRef = Arc::new(cells.collect::<StringViewArray>());
        SessionContext::new().read_batch(RecordBatch::try_from_iter([("x", cells)]).unwrap()).unwrap()
    }

    async fn found(cells: &[&str], csv: &CsvOptions) -> Option<DataType> {
        find_types(&table(cells), csv).await.unwrap().remove(0)
    }

    #[tokio::test]
    async fn the_narrowest_type_of_all_cells() {
        let [day, moment, integer, number] = candidates().map(Some);
        for (cells, expected) in [
            (&["9", "10", ""][..], &integer),
            (&["-9", " 7 ", "0"], &integer),
            (&["9", "+10"], &None),
            (&["9223372036854775807"], &integer),
            (&["9223372036854775808"], &None),
            // Fractions make doubles, which do not hold all integers.
            (&["0.5", "9007199254740992"], &number),
            (&["0.5", "9007199254740993"], &None),
            (&["1.5", "NaN", "-inf"], &number),
            (&["1e-05", "2.5"], &number),
            (&["1e5", "2.5"], &None),
            (&["1e400"], &None),
            (&["250.0", "250.00"], &None),
            (&["2020-06-30T10:00:00.123456"], &moment),
            (&["2020-06-30T10:00:00.123456789"], &None),
            (&["NaN", "inf"], &None),
            (&["2020-06-30", "2020-06-30T00:00:00Z"], &day),
            (&["2020-06-30", "2020-06-30 00:00:01"], &moment),
            (&["2020-06-30", "7"], &None),
            (&["2020-02-30"], &None),
            (&["30.06.2020"], &None),
            (&["2020-06-30T23:00:00+02:00"], &None),
            // Codes.
            (&["1067", "01067"], &None),
            (&["1.5", "00"], &None),
            (&["1", "-01"], &None),
            (&["1", " 01"], &None),
            (&["1", "01.5"], &None),
            (&["1,5"], &None),
            (&["1", "NA"], &None),
            (&["true", "false"], &None),
            (&["0", "1"], &integer),
            (&["", ""], &None),
            (&[], &None),
        ] {
            assert_eq!(found(cells, &CsvOptions::default()).await, *expected, "{cells:?}");
        }
    }

    #[tokio::test]
    async fn the_forms_of_the_input_are_respected() {
        let [day, _, integer, number] = candidates().map(Some);
        let dates = |format: &str| CsvOptions {
            date_formats: vec![DateFormat::parse(format).unwrap()],
            ..CsvOptions::default()
        };
        let german =
            CsvOptions { numbers: NumberFormat { decimal: ',', thousands: Some('.') }, ..dates("%d.%m.%Y") };
        for (cells, csv, expected) in [
            (&["1,5", "1.234"][..], &german, &number),
            (&["12", "1.234"], &german, &integer),
            (&["1.5"], &german, &None),
            (&["01067,5"], &german, &None),
            (&["30.06.2020", "2020-06-30"], &german, &day),
            (&["30.06.2020", "31.06.2020"], &german, &None),
            (&["20200630"], &dates("%Y%m%d"), &day),
            (&["20200630", "20200631"], &dates("%Y%m%d"), &integer),
            (&["20200630"], &CsvOptions::default(), &integer),
        ] {
            assert_eq!(found(cells, csv).await, *expected, "{cells:?}");
        }
        let typed = with_types(table(&["1.234"]), &vec![integer], &german).unwrap().collect().await.unwrap();
        let values = typed[0].column(0).as_primitive::<arrow::datatypes::Int64Type>();
        assert_eq!(values.value(0), 1234);
    }

    /// A last cell decides, wherever it stands.
    #[tokio::test]
    async fn every_cell_is_looked_at() {
        let mut cells = vec!["7"; 100_000];
        assert_eq!(found(&cells, &CsvOptions::default()).await, Some(DataType::Int64));
        cells.push("01067");
        assert_eq!(found(&cells, &CsvOptions::default()).await, None);
    }

    /// Where cells changed, there is neither a NULL nor another value.
    #[tokio::test]
    async fn what_is_no_value_is_refused() {
        for (data_type, cell) in [
            (DataType::Int64, "seven"),
            (DataType::Int64, "01067"),
            (DataType::Int64, "1.5"),
            (DataType::Int64, "9223372036854775808"),
            (DataType::Float64, "1e400"),
            (DataType::Date32, "2020-06-30T23:00:00"),
            (DataType::Date32, "2020-02-30"),
        ] {
            let typed = with_types(table(&["", cell]), &vec![Some(data_type)], &CsvOptions::default());
            let error = crate::engine::map_error(&typed.unwrap().collect().await.unwrap_err(), "reading");
            assert_eq!(error.kind(), crate::error::ErrorKind::Data);
            assert!(error.to_string().contains("column `x`: a cell has another form"), "{error}");
            assert!(!error.to_string().contains(cell), "{error}");
        }
    }
}
