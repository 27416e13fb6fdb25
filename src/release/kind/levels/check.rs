//! What a record says of levels, checked by itself and against the released labels.

use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{DataType, Schema, TimeUnit};
use datafusion::prelude::DataFrame;

use crate::error::Result;
use crate::generalize::{self, AsIs, Descriptor, Generalizer, clip, suppress::Suppress};
use crate::release::check_record::refused;
use crate::release::publish::record::{LevelRecord, PublicRecord};
use crate::release::released_labels::released_labels;

/// Checks the record's level of each quasi-identifier.
///
/// # Errors
/// An unmet error that names the column whose level kanon would not record.
pub(super) fn check_columns(public: &PublicRecord) -> Result<()> {
    for column in public.quasi() {
        let is_right = |level| is_level(level, column.data_type == DataType::Utf8.to_string());
        let level = public.recoding.level(&column.name);
        if !level.is_some_and(is_right) {
            let is_unknown = |level: &LevelRecord| {
                let others = [Descriptor::as_is(), Descriptor::of_merge(1, None)];
                let mut known = generalize::all().map(|row| row.doc.name);
                let name = level.by.generalizer.as_str();
                !known.any(|one| one == name) && others.iter().all(|other| other.generalizer != name)
            };
            let why = match level.is_some_and(is_unknown) {
                true => ": this program has no generalizer of the recorded name",
                false => "",
            };
            return Err(refused(format!(
                "the record contradicts itself on the level of `{}`{why}",
                column.name
            )));
        }
    }
    Ok(())
}

/// Returns whether kanon gives this descriptor to the level with this number.
fn is_level(level: &LevelRecord, is_text: bool) -> bool {
    let LevelRecord { level, of, by, .. } = level;
    let (is_top, is_suppressed) = (level == of, *by == Descriptor::suppress());
    let is_known = if by.is_of_file() {
        is_text && *by == Descriptor::of_file(*level)
    } else if by.is_of_merge() {
        is_text && *by == Descriptor::of_merge(*level, by.label_of_merge())
    } else if *by == Descriptor::as_is() {
        *level == 0
    } else {
        let is_clip = by.generalizer == clip::ROW.doc.name;
        is_suppressed || (by.restore(is_text).is_some() && is_clip == (*level == 0))
    };
    *of > 0 && level <= of && is_known && is_top == is_suppressed
}

/// Rebuilds the generalizer of each released column's level from its descriptor, if possible; for a
/// generalizer that only the policy knows, every value counts as a label. `None` for columns that
/// are not quasi-identifiers.
///
/// # Errors
/// An unmet error when a descriptor does not fit the column's type, or a suppressed column holds
/// several values.
pub(super) async fn generalizers(
    public: &PublicRecord,
    schema: &Schema,
    output: &DataFrame,
) -> Result<Vec<Option<Arc<dyn Generalizer>>>> {
    let mut all: Vec<Option<Arc<dyn Generalizer>>> = Vec::new();
    for (column, field) in public.columns().zip(schema.fields()) {
        let Some(LevelRecord { by, .. }) = public.recoding.level(&column.name) else {
            all.push(None);
            continue;
        };
        let (name, data_type) = (&column.name, field.data_type());
        let is_text = *data_type == DataType::Utf8;
        if *by == Descriptor::suppress() {
            let labels = released_labels(output, name).await?;
            if labels.is_some_and(|labels| labels.len() > 1) {
                return Err(refused(format!("`{name}` is recorded as suppressed but holds several values")));
            }
            // The top level of a hierarchy file has the file's own label.
            all.push(Some(if is_text { Arc::new(AsIs { text: true }) } else { Arc::new(Suppress::null()) }));
            continue;
        }
        all.push(Some(match by.restore(is_text) {
            None => Arc::new(AsIs { text: is_text }),
            Some(made) if !makes(&*made, data_type) => {
                return Err(refused(format!("`{name}` has a type that its level does not produce")));
            }
            Some(made) => {
                let labels = released_labels(output, name).await?;
                labels.and_then(|labels| made.with_label_width(&labels)).unwrap_or(made)
            }
        }));
    }
    Ok(all)
}

/// Returns whether a level makes labels of this type from any values. Labels that are not text have
/// the type of the values.
fn makes(level: &dyn Generalizer, labels: &DataType) -> bool {
    if *labels != DataType::Utf8 {
        return level.output_type(labels).is_ok_and(|made| made == *labels);
    }
    let inputs = [
        DataType::Int64,
        DataType::Float64,
        DataType::Utf8View,
        DataType::Date32,
        DataType::Timestamp(TimeUnit::Second, None),
    ];
    inputs.iter().any(|input| level.output_type(input).is_ok_and(|made| made == DataType::Utf8View))
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
