//! The schema of released files.

use arrow::datatypes::{DataType, Field, Schema};

use crate::error::{Error, Result};
use crate::generalize::Descriptor;
use crate::input::canonical_type;
use crate::policy::Policy;

/// The metadata key of a released field for its descriptor.
pub(crate) const GENERALIZED: &str = "kanon.generalized";

/// Describes the values of a released field: `days_since:admission`, the descriptor of its level,
/// or both; `None` for a column written as it was.
pub(super) fn field_label(days_since: Option<&str>, by: Option<&Descriptor>) -> Option<String> {
    let by = by.map(Descriptor::to_string);
    match (days_since.map(|other| format!("days_since:{other}")), by) {
        (Some(days), Some(by)) => Some(format!("{days} {by}")),
        (days, by) => days.or(by),
    }
}

/// Returns a released field.
pub(super) fn labelled_field(name: &str, data_type: DataType, label: Option<String>) -> Field {
    let label = label.map(|label| (GENERALIZED.to_owned(), label));
    Field::new(name, data_type, true).with_metadata(label.into_iter().collect())
}

/// Returns the schema of the released files: released columns in the input's order, no metadata but
/// ours. `quasi` has the type and the descriptor of each quasi-identifier, in policy order.
///
/// # Errors
/// An internal error if a released column is not in the input.
pub(crate) fn released_schema(
    policy: &Policy,
    input: &Schema,
    quasi: &[(DataType, Descriptor)],
) -> Result<Schema> {
    let mut fields = Vec::new();
    for (name, _) in policy.released() {
        let field = input
            .field_with_name(name)
            .map_err(|_| Error::internal("released_schema: the input lacks a released column"))?;
        let (data_type, by) = match policy.quasi_index(name) {
            None => (field.data_type(), None),
            Some(index) => (&quasi[index].0, Some(&quasi[index].1)),
        };
        let label = field_label(policy.days_since.get(name).map(String::as_str), by);
        let quasi = policy.quasi_index(name).map(|index| &policy.quasi[index]);
        match quasi.and_then(|quasi| quasi.written_columns(policy)) {
            None => fields.push(labelled_field(name, released_type(data_type), label)),
            Some(written) => fields.extend(
                written
                    .columns()
                    .into_iter()
                    .map(|(name, data_type)| labelled_field(&name, data_type, label.clone())),
            ),
        }
    }
    Ok(Schema::new(fields))
}

/// Returns the type that is written: plain text instead of views and dictionaries.
pub(super) fn released_type(data_type: &DataType) -> DataType {
    match canonical_type(data_type) {
        DataType::Utf8View => DataType::Utf8,
        other => other,
    }
}
