//! `suppress`: every value becomes one label, the top of every hierarchy.
//!
//! `f(v) = top`, for NULL too: `*` in text columns (or the last column of a hierarchy file), NULL
//! in number, date, timestamp and boolean columns.
//!
//! # Contract
//! Any supported type in, one label out; NULL becomes the label. Monotone (constant). A suppressed
//! column reveals nothing about its values, but the rows still show that the column exists and how
//! many rows there are.
//!
//! ```
//! use datafusion_kanon::extend::{Generalizer, Value};
//! use datafusion_kanon::internals::generalize::suppress::Suppress;
//! assert_eq!(Suppress::star().generalize_value(&Value::Text("02139".into()))?, Value::Text("*".into()));
//! assert_eq!(Suppress::star().generalize_value(&Value::Null)?, Value::Text("*".into()));
//! assert_eq!(Suppress::null().generalize_value(&Value::Int(7))?, Value::Null);
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringViewArray, UInt8Array, new_null_array};
use arrow::datatypes::DataType;

use super::clip::Clip;
use super::{Descriptor, Generalizer, GeneralizerRow, Value};
use crate::doc::Doc;
use crate::error::Result;
use crate::papers;
use crate::parameter::Settings;

/// The row of [`GENERALIZERS`](super::GENERALIZERS) for this generalizer.
pub const ROW: GeneralizerRow = GeneralizerRow {
    doc: &Doc {
        name: "suppress",
        summary: "maps all values to one label: the top of every hierarchy",
        parameters: "",
        example: "generalize_suppress(zip)",
        paper: Some(papers::SAMARATI_SWEENEY_1998),
    },
    key: None,
    parameters: &[],
    levels: |_: &Settings| Ok(vec![Arc::new(Suppress::star())]),
};

/// The generalizer that the [module](self) describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suppress {
    label: Option<&'static str>,
}

impl Suppress {
    /// Creates the top of a text hierarchy: `*`.
    pub fn star() -> Self {
        Self { label: Some("*") }
    }

    /// Creates the top of a number, date or boolean hierarchy: NULL.
    pub fn null() -> Self {
        Self { label: None }
    }
}

impl Generalizer for Suppress {
    fn descriptor(&self) -> Descriptor {
        Descriptor::suppress()
    }

    fn output_type(&self, input: &DataType) -> Result<DataType> {
        Ok(if self.label.is_some() { DataType::Utf8View } else { input.clone() })
    }

    fn is_top(&self) -> bool {
        true
    }

    fn keeps_order(&self, _input: &DataType) -> bool {
        true
    }

    fn generalize(&self, values: &ArrayRef) -> Result<ArrayRef> {
        Ok(match self.label {
            Some(label) => {
                Arc::new(StringViewArray::from_iter_values(std::iter::repeat_n(label, values.len())))
            }
            None => new_null_array(values.data_type(), values.len()),
        })
    }

    fn codes(&self, values: &ArrayRef) -> Result<ArrayRef> {
        Ok(Arc::new(UInt8Array::from_value(0, values.len())))
    }

    fn generalize_value(&self, _value: &Value) -> Result<Value> {
        Ok(self.label.map_or(Value::Null, |label| Value::Text(label.to_owned())))
    }

    fn is_label(&self, value: &Value) -> bool {
        match (self.label, value) {
            (Some(label), Value::Text(text)) => label == text,
            (None, Value::Null) => true,
            _ => false,
        }
    }

    fn clipped(&self, _clip: &Clip) -> Result<Arc<dyn Generalizer>> {
        Ok(Arc::new(self.clone()))
    }

    fn check_coarsens(&self, _finer: &dyn Generalizer) -> Result<(), String> {
        Ok(())
    }
}
