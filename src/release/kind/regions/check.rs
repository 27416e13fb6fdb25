//! What a record says of regions, checked by itself and against the released texts.

use arrow::array::Array;
use arrow::datatypes::DataType;
use datafusion::prelude::DataFrame;

use crate::error::Result;
use crate::generalize::{RegionLabel, Value};
use crate::release::check_record::refused;
use crate::release::publish::record::{PublicRecord, RegionColumn, Regions};
use crate::release::released_labels::released_labels;

/// Checks that columns with regions are text, and that their values have a type.
///
/// # Errors
/// An unmet error that names the column, when its type does not fit its regions or kanon would not write it in these columns.
pub(super) fn check_columns(public: &PublicRecord) -> Result<()> {
    for column in public.quasi() {
        let wrong = || refused(format!("the record contradicts itself on what `{}` shows", column.name));
        let region = public.recoding.region(&column.name).ok_or_else(wrong)?;
        let written = match region.interval_columns()? {
            Some(columns) => columns.value_type,
            None => region.type_of_values().map(|_| DataType::Utf8)?,
        };
        if column.data_type != written.to_string() {
            return Err(wrong());
        }
    }
    Ok(())
}

/// Checks that each released text of a column is the canonical one of a region.
///
/// # Errors
/// An unmet error that names the column when a text is not.
pub(super) async fn check_canonical(region: &RegionColumn, output: &DataFrame) -> Result<()> {
    let (data_type, has_intervals) = (region.type_of_values()?, region.shows == Regions::Intervals);
    let Some(labels) = released_labels(output, &region.column).await? else { return Ok(()) };
    for row in 0..labels.len() {
        let text = Value::read(&labels, row)?.text_form();
        if RegionLabel::parse_canonical(text.as_deref(), &data_type, has_intervals).is_none() {
            return Err(refused(format!(
                "`{}` holds a text that kanon would not write for a region",
                region.column
            )));
        }
    }
    Ok(())
}
