//! `prefix`: text keeps its first characters, one mark stands for the rest.
//!
//! `f(v) = first n characters of v, then *`. A mask is always the one mark, also when nothing is left to hide:
//! `02139` at 3 is `021*`, `02` is `02*`. So neither the length of what is hidden nor whether anything is
//! hidden shows. Postal codes in [`papers::SAMARATI_SWEENEY_1998`] are generalized this way; deviation: there
//! one mark stands for each hidden digit, which tells the length.
//!
//! # Contract
//! Text and integers (by their decimal digits) in, `Utf8View` out. A character is a Unicode scalar value, never
//! half of one. NULL stays NULL, the empty text is `*`. Not monotone, since the mark sorts among the characters.
//! A prefix says as much as its characters do: the first digits of a code can name a small place.
//!
//! ```
//! use datafusion_kanon::generalize::{Generalizer, Value, prefix::Prefix};
//! let three = Prefix::new(3)?;
//! assert_eq!(three.one(&Value::Text("02139".into()))?, Value::Text("021*".into()));
//! assert_eq!(three.one(&Value::Text("02".into()))?, Value::Text("02*".into()));
//! assert_eq!(three.one(&Value::Int(90210))?, Value::Text("902*".into()));
//! assert_eq!(three.one(&Value::Null)?, Value::Null);
//! # Ok::<(), datafusion_kanon::error::Error>(())
//! ```

use std::any::Any;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::value::unsupported;
use super::{Argument, Generalizer, GeneralizerRow, Takes, Value, map_text, numbers};
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::papers;

/// The table row of this generalizer.
pub const ROW: GeneralizerRow = GeneralizerRow {
    doc: &Doc {
        name: "prefix",
        summary: "text keeps its first characters, one * stands for the rest",
        parameters: "characters",
        example: "generalize_prefix(zip, 3)",
        paper: Some(papers::SAMARATI_SWEENEY_1998),
    },
    key: Some("prefix"),
    takes: Takes::Numbers,
    levels: |argument: &Argument| {
        numbers(argument)?
            .iter()
            .map(|number| {
                let length = number.to_u64().and_then(|n| usize::try_from(n).ok());
                let length =
                    length.ok_or_else(|| Error::policy("a prefix needs a whole number of characters"))?;
                Ok(Arc::new(Prefix::new(length)?) as Arc<dyn Generalizer>)
            })
            .collect()
    },
};

/// What stands for the hidden rest.
const MARK: char = '*';

/// See the [module](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    length: usize,
}

impl Prefix {
    /// The first `length` characters.
    ///
    /// # Errors
    /// A policy error for 0: a value without characters is what the top level shows.
    pub fn new(length: usize) -> Result<Self> {
        if length == 0 {
            return Err(Error::policy("a prefix of 0 characters is the top level, which needs no prefix"));
        }
        Ok(Self { length })
    }

    fn mask(&self, text: &str) -> String {
        let end = text.char_indices().nth(self.length).map_or(text.len(), |(at, _)| at);
        let mut masked = String::with_capacity(end + MARK.len_utf8());
        masked.extend(text.get(..end));
        masked.push(MARK);
        masked
    }
}

impl Generalizer for Prefix {
    fn label(&self) -> String {
        format!("prefix:{}", self.length)
    }

    fn output_type(&self, input: &DataType) -> Result<DataType> {
        if input.is_string() || input.is_integer() {
            Ok(DataType::Utf8View)
        } else {
            Err(unsupported(input, "text or integers"))
        }
    }

    fn keeps_order(&self) -> bool {
        false
    }

    fn generalize(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let text = self.output_type(values.data_type())?;
        let texts = cast(values, &text).map_err(|_| Error::internal("values to text"))?;
        map_text(&texts, |text| self.mask(text))
    }

    fn one(&self, value: &Value) -> Result<Value> {
        let text = match value {
            Value::Null => return Ok(Value::Null),
            Value::Text(text) => text.clone(),
            Value::Int(v) => v.to_string(),
            _ => return Err(Error::data("only text and integers have prefixes")),
        };
        Ok(Value::Text(text.chars().take(self.length).chain([MARK]).collect()))
    }

    fn is_label(&self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Text(text) => {
                text.strip_suffix(MARK).is_some_and(|rest| rest.chars().count() <= self.length)
            }
            _ => false,
        }
    }

    fn follows(&self, finer: &dyn Generalizer) -> Result<(), String> {
        match (finer as &dyn Any).downcast_ref::<Prefix>() {
            Some(finer) if self.length < finer.length => Ok(()),
            Some(finer) => {
                Err(format!("prefixes must shrink, and {} is not below {}", self.length, finer.length))
            }
            None => Err("`prefix` follows only `prefix`".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int32Array, StringArray, StringViewArray};
    use proptest::prelude::*;

    use super::*;
    use crate::decimal::Decimal;
    use crate::generalize::floor::tests::agree;

    fn prefix(length: usize) -> Prefix {
        Prefix::new(length).unwrap()
    }

    #[test]
    fn one_mark_whatever_it_hides() {
        let zips: ArrayRef = Arc::new(StringArray::from(vec!["02139", "0213", "021", "0", "", "***"]));
        let expected: ArrayRef =
            Arc::new(StringViewArray::from(vec!["021*", "021*", "021*", "0*", "*", "****"]));
        assert_eq!(&agree(&prefix(3), &zips).unwrap(), &expected);
        let codes: ArrayRef = Arc::new(Int32Array::from(vec![90210, -1234]));
        let expected: ArrayRef = Arc::new(StringViewArray::from(vec!["902*", "-12*"]));
        assert_eq!(&agree(&prefix(3), &codes).unwrap(), &expected);
    }

    #[test]
    fn characters_are_not_cut() {
        let words: ArrayRef = Arc::new(StringArray::from(vec!["Łódź", "北京市", "🦀🦀🦀", "e\u{301}te"]));
        let expected: ArrayRef = Arc::new(StringViewArray::from(vec!["Łó*", "北京*", "🦀🦀*", "e\u{301}*"]));
        assert_eq!(&agree(&prefix(2), &words).unwrap(), &expected);
    }

    #[test]
    fn labels_and_levels() {
        let label = |text: &str| prefix(2).is_label(&Value::Text(text.into()));
        assert!(label("*") && label("北京*") && !label("abc*") && !label("ab") && !label(""));
        assert!(prefix(2).follows(&prefix(3)).is_ok() && prefix(3).follows(&prefix(3)).is_err());
        assert!(prefix(3).follows(&prefix(2)).unwrap_err().contains("prefixes must shrink"));
        let levels = |n: &str| (ROW.levels)(&Argument::Numbers(vec![Decimal::parse(n).unwrap()]));
        assert!(levels("3").is_ok());
        assert!(["0", "-1", "1.5"].iter().all(|n| levels(n).is_err()));
        assert!(prefix(2).output_type(&DataType::Float64).is_err());
    }

    proptest! {
        #[test]
        fn texts_agree_and_nest(
            values in prop::collection::vec(prop::option::of("[a*é北🦀]{0,6}"), 0..20),
            long in 2usize..7,
            less in 1usize..6,
        ) {
            let values: ArrayRef = Arc::new(StringArray::from(values));
            let (fine, coarse) = (prefix(long), prefix(long.saturating_sub(less).max(1)));
            prop_assert!(coarse.follows(&fine).is_ok());
            let fines = agree(&fine, &values).unwrap();
            let coarses = agree(&coarse, &values).unwrap();
            // Without its mark, a fine label has all that the coarse level looks at.
            let unmarked = fines.as_string_view().iter().map(|label| label.map(|l| l.strip_suffix(MARK).unwrap()));
            let unmarked: ArrayRef = Arc::new(unmarked.collect::<StringViewArray>());
            prop_assert_eq!(&agree(&coarse, &unmarked).unwrap(), &coarses);
        }

        #[test]
        fn integers_agree(values in prop::collection::vec(prop::option::of(any::<i32>()), 0..20), length in 1usize..12) {
            agree(&prefix(length), &(Arc::new(Int32Array::from(values)) as ArrayRef)).unwrap();
        }
    }
}
