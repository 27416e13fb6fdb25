//! A generalizer of the program's own: levels of a policy's hierarchy, and a function in SQL.
//!
//! It maps a date to its meteorological season, and the season to the cold or the warm half of the year.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use arrow::util::display::array_value_to_string;
use chrono::{DateTime, Datelike};
use datafusion::prelude::{CsvReadOptions, SessionContext};
use datafusion_kanon::extend::{
    Absent, Descriptor, Doc, Generalizer, GeneralizerRow, Kind, Parameter, Setting, Value,
    register_generalizer,
};
use datafusion_kanon::{Error, Result, register_all};

const PATIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/papers/patients.csv");

const ROW: GeneralizerRow = GeneralizerRow {
    doc: &Doc {
        name: "season",
        summary: "maps a date to its season, or to the cold or the warm half of the year",
        parameters: "part",
        example: "generalize_season(dob, 'season')",
        paper: None,
    },
    key: Some("season"),
    parameters: &[Parameter {
        name: "part",
        kind: Kind::Levels(&Kind::Choice(&["season", "half"])),
        absent: Absent::Refused,
        summary: "the part of the year",
    }],
    levels: |settings| {
        let level = |part: &Setting| -> Result<Arc<dyn Generalizer>> {
            Ok(Arc::new(if part.word()? == "half" { Part::Half } else { Part::Season }))
        };
        settings.list("part")?.iter().map(level).collect()
    },
};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    Season,
    Half,
}

impl Part {
    fn label(self, month: u32) -> &'static str {
        match (self, month) {
            (Self::Season, 12 | 1 | 2) => "winter",
            (Self::Season, 3..=5) => "spring",
            (Self::Season, 6..=8) => "summer",
            (Self::Season, _) => "autumn",
            (Self::Half, 3..=8) => "warm",
            (Self::Half, _) => "cold",
        }
    }
}

impl Generalizer for Part {
    fn descriptor(&self) -> Descriptor {
        // The entry of this level, from which a record makes it again.
        Descriptor::new("season").with(if *self == Self::Half { "half" } else { "season" })
    }

    fn output_type(&self, input: &DataType) -> Result<DataType> {
        match input {
            DataType::Date32 => Ok(DataType::Utf8View),
            other => Err(Error::data(format!("a season needs dates, not {other}"))),
        }
    }

    fn keeps_order(&self, _input: &DataType) -> bool {
        false
    }

    fn generalize(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let labels = (0..values.len()).map(|row| self.generalize_value(&Value::read(values, row)?));
        Value::build(&labels.collect::<Result<Vec<_>>>()?, &self.output_type(values.data_type())?)
    }

    fn generalize_value(&self, value: &Value) -> Result<Value> {
        match value {
            Value::Null => Ok(Value::Null),
            Value::Date(days) => match DateTime::from_timestamp(i64::from(*days) * 86_400, 0) {
                Some(date) => Ok(Value::Text(self.label(date.month()).to_owned())),
                None => Err(Error::data("a date has no season: it is out of range")),
            },
            _ => Err(Error::data("a season needs dates")),
        }
    }

    fn is_label(&self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Text(text) => (1..=12).any(|month| self.label(month) == text),
            _ => false,
        }
    }

    fn check_coarsens(&self, finer: &dyn Generalizer) -> Result<(), String> {
        let is_finer = *self == Self::Half && finer.descriptor() == Self::Season.descriptor();
        is_finer.then_some(()).ok_or_else(|| "only `half` is made of seasons".to_owned())
    }
}

/// Returns the rows of a query, cells divided by blanks.
async fn rows(session: &SessionContext, sql: &str) -> datafusion::error::Result<Vec<String>> {
    let mut rows = Vec::new();
    for batch in session.sql(sql).await?.collect().await? {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| array_value_to_string(column, row));
            rows.push(cells.collect::<std::result::Result<Vec<_>, _>>()?.join(" "));
        }
    }
    Ok(rows)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    register_generalizer(ROW)?;

    let session = SessionContext::new();
    register_all(&session)?;
    session.register_csv("patients", PATIENTS, CsvReadOptions::new()).await?;
    let sql = "SELECT generalize_season(dob, 'season') AS born, count(*) FROM patients GROUP BY 1 ORDER BY 1";
    assert_eq!(rows(&session, sql).await?, ["summer 6", "winter 4"]);
    let sql =
        "SELECT k_anonymity(dob, sex), k_anonymity(generalize_season(dob, 'season'), sex) FROM patients";
    assert_eq!(rows(&session, sql).await?, ["1 3"]);

    let policy = "{k: 2, rows_are_individuals: true, others: 'drop', columns: {sex: {role: 'quasi'}, \
                  dob: {role: 'quasi', hierarchy: {season: ['season', 'half']}}}}";
    let sql =
        format!("SELECT dob, sex, count(*) FROM anonymize(patients, {policy}) GROUP BY 1, 2 ORDER BY 1, 2");
    let anonymous = rows(&session, &sql).await?;
    println!("{}", anonymous.join("\n"));
    assert_eq!(anonymous, ["summer F 3", "summer M 3", "winter M 4"]);
    Ok(())
}
