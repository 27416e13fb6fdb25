//! Quasi-identifiers that are not written as text: the ends of intervals
//! (`interval_columns.rs`) and centroids, which have a type of their own.
//!
//! The rest of a release and its verification work with texts, and each text stands for one row of
//! these columns: rows are written from texts and read back into them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use datafusion::logical_expr::Expr;
use datafusion::prelude::DataFrame;

use crate::engine::functions::{OfValues, of_values};
use crate::engine::{Context, column};
use crate::error::{Error, Result};
use crate::generalize::{Centroid, Value, text_forms};
use crate::policy::{Policy, Quasi};
use crate::release::interval_columns::IntervalColumns;

/// The columns that a quasi-identifier is written as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WrittenColumns {
    /// The ends of its intervals.
    Ends(IntervalColumns),
    /// A column of its name with this type: its centroids.
    Centroid { name: String, data_type: DataType },
}

impl WrittenColumns {
    /// Returns the column of a quasi-identifier with these centroids; `value_type` is that of its values
    /// in the input.
    pub(crate) fn of_centroid(name: &str, centroid: Centroid, value_type: &DataType) -> Self {
        Self::Centroid { name: name.to_owned(), data_type: centroid.output_type(value_type) }
    }

    /// Returns the name of the quasi-identifier.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Ends(columns) => &columns.name,
            Self::Centroid { name, .. } => name,
        }
    }

    /// Returns the names of the columns.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Self::Ends(columns) => columns.names().into(),
            Self::Centroid { name, .. } => vec![name.clone()],
        }
    }

    /// Returns the names of the columns with their types.
    pub(crate) fn columns(&self) -> Vec<(String, DataType)> {
        match self {
            Self::Ends(columns) => columns.columns().into(),
            Self::Centroid { name, data_type } => vec![(name.clone(), data_type.clone())],
        }
    }

    /// Returns the columns of texts.
    ///
    /// # Errors
    /// An internal error for a text that cannot be written so.
    pub(crate) fn arrays(&self, texts: &ArrayRef) -> Result<Vec<ArrayRef>> {
        let data_type = match self {
            Self::Ends(columns) => return columns.arrays(texts).map(Into::into),
            Self::Centroid { data_type, .. } => data_type,
        };
        let value = |row: usize| {
            let text = Value::read(texts, row)?.text_form();
            Centroid::parse(text.as_deref(), data_type)
                .ok_or_else(|| Error::internal("written columns: a text that is no centroid"))
        };
        let values = (0..texts.len()).map(value).collect::<Result<Vec<_>>>()?;
        Ok(vec![Value::build(&values, data_type)?])
    }

    fn text(&self) -> Expr {
        match self {
            Self::Ends(columns) => columns.text(),
            Self::Centroid { name, .. } => of_values(Arc::new(TextForm), name, column(name)).alias(name),
        }
    }
}

impl Quasi {
    /// Returns the columns that the policy writes this one as, if these are not text.
    pub(crate) fn written_columns(&self, policy: &Policy) -> Option<WrittenColumns> {
        if let Some(centroid) = policy.centroid {
            let centroid = centroid.for_column(&self.hierarchy);
            return Some(WrittenColumns::of_centroid(&self.name, centroid, self.hierarchy.input_type()));
        }
        self.interval_columns(policy).map(WrittenColumns::Ends)
    }

    /// Returns the names of the columns that the policy writes this one as.
    pub(crate) fn written_names(&self, policy: &Policy) -> Vec<String> {
        self.written_columns(policy).map_or_else(|| vec![self.name.clone()], |written| written.names())
    }
}

impl Policy {
    /// Returns the quasi-identifiers that it does not write as text.
    pub(crate) fn written_columns(&self) -> Vec<WrittenColumns> {
        self.quasi.iter().filter_map(|quasi| quasi.written_columns(self)).collect()
    }
}

/// Puts the text in place of these columns.
///
/// # Errors
/// A data error when the plan cannot be built.
pub(crate) fn as_texts(table: DataFrame, columns: &[WrittenColumns]) -> Result<DataFrame> {
    if columns.is_empty() {
        return Ok(table);
    }
    let selected: Vec<Expr> =
        fields_as_texts(table.schema().fields(), columns, |field| column(field.name()), WrittenColumns::text);
    table.select(selected).context("reading the quasi-identifiers of the release")
}

/// Returns the schema of a table with [`as_texts`].
pub(crate) fn schema_as_texts(schema: &Schema, columns: &[WrittenColumns]) -> Schema {
    let text = |written: &WrittenColumns| Arc::new(Field::new(written.name(), DataType::Utf8, true));
    let fields: Vec<FieldRef> = fields_as_texts(schema.fields(), columns, Arc::clone, text);
    Schema::new(fields)
}

/// Maps the columns of each quasi-identifier to one item, by `text` at the first of them, and every
/// other field by `other`.
fn fields_as_texts<T>(
    fields: &Fields,
    columns: &[WrittenColumns],
    other: impl Fn(&FieldRef) -> T,
    text: impl Fn(&WrittenColumns) -> T,
) -> Vec<T> {
    let names: Vec<Vec<String>> = columns.iter().map(WrittenColumns::names).collect();
    let item = |field: &FieldRef| match names.iter().position(|names| names.contains(field.name())) {
        None => Some(other(field)),
        Some(at) => (names[at].first() == Some(field.name())).then(|| text(&columns[at])),
    };
    fields.iter().filter_map(item).collect()
}

/// The text forms of a column's values.
struct TextForm;

impl OfValues for TextForm {
    fn name(&self) -> &'static str {
        "kanon_text_form"
    }

    fn of_type(&self, _values: &DataType) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let texts: ArrayRef = Arc::new(text_forms(values)?);
        cast(&texts, &DataType::Utf8).context("reading the quasi-identifiers of the release")
    }
}
