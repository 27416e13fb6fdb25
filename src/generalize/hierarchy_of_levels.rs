//! A column's hierarchy: its levels from "as is" to the top, checked to nest.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use super::suppress::Suppress;
use super::value::{SUPPORTED, is_supported, unsupported};
use super::{Generalizer, Value, text_forms};
use crate::error::{Error, Result};

/// The ordered levels of one quasi-identifier column. Level 0 is the value as is, the last level is the top,
/// where all values (NULL too) share one label.
#[derive(Debug, Clone)]
pub struct Hierarchy {
    input_type: DataType,
    output_type: DataType,
    levels: Vec<Arc<dyn Generalizer>>,
}

impl Hierarchy {
    /// A hierarchy over values of `input_type` with the given levels between "as is" and the top. The top is
    /// added unless the last level already is one.
    ///
    /// # Errors
    /// A data error for types that cannot be generalized, a policy error when a level is not a function of
    /// the level below it.
    pub fn new(input_type: &DataType, mut levels: Vec<Arc<dyn Generalizer>>) -> Result<Self> {
        if !is_supported(input_type) {
            return Err(unsupported(input_type, SUPPORTED));
        }
        let plain = match input_type {
            DataType::Dictionary(_, values) => values.as_ref(),
            other => other,
        };
        let output_type = match levels.first() {
            Some(level) => level.output_type(plain)?,
            None if plain.is_string() => DataType::Utf8View,
            None => plain.clone(),
        };
        levels.iter().try_for_each(|level| level.output_type(plain).map(drop))?;
        let is_text = output_type == DataType::Utf8View;
        let has_top = levels.last().is_some_and(|level| level.is_top());
        if !has_top {
            levels.push(Arc::new(if is_text { Suppress::star() } else { Suppress::null() }));
        }
        for (index, pair) in levels.windows(2).enumerate() {
            if let [finer, coarser] = pair {
                coarser.follows(&**finer).map_err(|why| {
                    Error::policy(format!(
                        "level {} (`{}`) is not a function of level {} (`{}`): {why}",
                        index + 2,
                        coarser.label(),
                        index + 1,
                        finer.label(),
                    ))
                })?;
            }
        }
        levels.insert(0, Arc::new(AsIs { text: is_text }));
        Ok(Self { input_type: plain.clone(), output_type, levels })
    }

    /// The type of the values that go in, without dictionary encoding.
    pub fn input_type(&self) -> &DataType {
        &self.input_type
    }

    /// The type of every level's labels.
    pub fn output_type(&self) -> &DataType {
        &self.output_type
    }

    /// The levels from 0 to the top.
    pub fn levels(&self) -> &[Arc<dyn Generalizer>] {
        &self.levels
    }

    /// The number of the top level, H in the formulae.
    pub fn height(&self) -> usize {
        self.levels.len() - 1
    }
}

/// Level 0: the value as is, as text where the other levels are text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsIs {
    /// Whether the hierarchy's labels are text.
    pub text: bool,
}

impl Generalizer for AsIs {
    fn label(&self) -> String {
        "as_is".into()
    }

    fn output_type(&self, input: &DataType) -> Result<DataType> {
        Ok(if self.text { DataType::Utf8View } else { input.clone() })
    }

    fn keeps_order(&self) -> bool {
        !self.text
    }

    fn generalize(&self, values: &ArrayRef) -> Result<ArrayRef> {
        if self.text { Ok(Arc::new(text_forms(values)?)) } else { Ok(Arc::clone(values)) }
    }

    fn one(&self, value: &Value) -> Result<Value> {
        Ok(match value.text_form() {
            Some(text) if self.text => Value::Text(text),
            _ => value.clone(),
        })
    }

    fn is_label(&self, _value: &Value) -> bool {
        true
    }

    fn follows(&self, _finer: &dyn Generalizer) -> Result<(), String> {
        Err("level 0 stands below all others".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generalize::{Argument, floor, range};

    fn numbers(list: &[i64]) -> Argument {
        Argument::Numbers(list.iter().map(|n| crate::decimal::Decimal::integer(*n)).collect())
    }

    #[test]
    fn the_type_depends_on_the_hierarchy_not_on_the_level() {
        let floors =
            Hierarchy::new(&DataType::Int32, (floor::ROW.levels)(&numbers(&[10, 100])).unwrap()).unwrap();
        let ranges =
            Hierarchy::new(&DataType::Int32, (range::ROW.levels)(&numbers(&[10, 100])).unwrap()).unwrap();
        assert_eq!((floors.height(), floors.output_type()), (3, &DataType::Int32));
        assert_eq!((ranges.height(), ranges.output_type()), (3, &DataType::Utf8View));
        for hierarchy in [floors, ranges] {
            for level in hierarchy.levels() {
                assert_eq!(&level.output_type(&DataType::Int32).unwrap(), hierarchy.output_type());
            }
        }
    }

    #[test]
    fn levels_that_do_not_nest_are_refused() {
        let error =
            Hierarchy::new(&DataType::Int32, (range::ROW.levels)(&numbers(&[10, 15])).unwrap()).unwrap_err();
        assert!(
            error.to_string().contains("level 2 (`range:15`) is not a function of level 1 (`range:10`)"),
            "{error}"
        );
    }

    #[test]
    fn lists_are_refused() {
        let list = DataType::new_list(DataType::Int32, true);
        assert!(Hierarchy::new(&list, vec![]).is_err());
    }
}
