//! A column's hierarchy: its levels from "as is" to the top, checked to nest.

use std::any::Any;
use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringViewArray, UInt32Array};
use arrow::datatypes::{DataType, Float32Type, Float64Type, UInt32Type, UInt64Type, i256};

use super::bounds::{is_number, map_numbers, not_numbers};
use super::clip::Clip;
use super::decimal_steps::scale_of;
use super::naive_bounds::open_end;
use super::suppress::Suppress;
use super::value::{SUPPORTED, is_supported, unsupported};
use super::{Descriptor, Generalizer, Value, text_forms};
use crate::error::{Error, Result};

/// The ordered levels of one quasi-identifier column. Level 0 is the value as is; the last level is
/// the top, where all values (NULL too) share one label.
#[derive(Debug, Clone)]
pub struct Hierarchy {
    input_type: DataType,
    output_type: DataType,
    levels: Vec<Arc<dyn Generalizer>>,
    is_merged: bool,
}

impl Hierarchy {
    /// Creates a hierarchy over values of `input_type` with the given levels between "as is" and
    /// the top. The top is added unless the last level already is one.
    ///
    /// # Errors
    /// A data error for types that cannot be generalized, a policy error when a level is not a
    /// function of the level below it.
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
        check_order(&levels)?;
        levels.insert(0, Arc::new(AsIs { text: is_text }));
        Ok(Self { input_type: plain.clone(), output_type, levels, is_merged: false })
    }

    /// Creates the hierarchy of a tree of [`merge`](super::merge), whose levels begin with level 0.
    ///
    /// # Errors
    /// A data error for types that cannot be generalized, an internal error without levels.
    pub(crate) fn merged(input_type: &DataType, mut levels: Vec<Arc<dyn Generalizer>>) -> Result<Self> {
        if levels.is_empty() {
            return Err(Error::internal("hierarchy: a tree without levels"));
        }
        let level_0 = levels.remove(0);
        let mut hierarchy = Self::new(input_type, levels)?;
        hierarchy.levels[0] = level_0;
        Ok(Self { is_merged: true, ..hierarchy })
    }

    /// Returns this hierarchy over numbers that are clipped first: level 0 is the number between
    /// the ends, and every level below the top keeps the values beyond an end apart. Levels that
    /// differ only beyond the ends become the same.
    ///
    /// # Errors
    /// A policy error if a level does not work on plain numbers, a data error for columns of other
    /// types or if an end is not of the column's type.
    pub fn clipped(&self, clip: &Clip) -> Result<Self> {
        let is_text = self.output_type == DataType::Utf8View && !self.input_type.is_string();
        let level_0: Arc<dyn Generalizer> =
            if is_text { Arc::new(ClippedText(*clip)) } else { Arc::new(*clip) };
        let others = self.levels.iter().skip(1).map(|level| level.clipped(clip));
        let levels = std::iter::once(Ok(level_0)).chain(others).collect::<Result<Vec<_>>>()?;
        for level in levels.iter().filter(|level| !level.is_top()) {
            level.output_type(&self.input_type)?;
        }
        check_order(&levels[1..])?;
        Ok(Self { levels, ..self.clone() })
    }

    /// Returns the type of the input values, without dictionary encoding.
    pub fn input_type(&self) -> &DataType {
        &self.input_type
    }

    /// Returns the label that a level gives all values, but for `*` and NULL.
    pub fn label_for_all(&self, level: usize) -> Option<String> {
        let top = self.levels.get(level).filter(|level| level.is_top())?;
        match top.generalize_value(&Value::Null) {
            Ok(Value::Text(label)) if label != "*" => Some(label),
            _ => None,
        }
    }

    /// Returns whether the values are numbers, dates or timestamps in their natural order, so that
    /// an interval says what it holds. A hierarchy file has an order of its own.
    pub fn has_intervals(&self) -> bool {
        let has_order = !self.input_type.is_string() && self.input_type != DataType::Boolean;
        has_order && self.levels.iter().all(|level| level.all_leaves().is_none())
    }

    /// Returns whether `merge` made the levels. Then classes that show regions show sets of level-0
    /// labels: any of these is held by many, and a label of a run says less.
    pub fn is_merged(&self) -> bool {
        self.is_merged
    }

    /// Returns the level-0 label of a value if `merge` made the levels.
    pub(super) fn merged_label(&self, value: &Value) -> Result<Option<Value>> {
        let level_0 = self.levels.first().filter(|_| self.is_merged());
        level_0.map(|level| level.generalize_value(value)).transpose()
    }

    /// Returns the number as which the clip of level 0 counts a value; the value itself without one.
    ///
    /// # Errors
    /// The errors of [`Clip`].
    pub(crate) fn clipped_value(&self, value: &Value) -> Result<Value> {
        let level_0 = self.levels.first().map(|level| &**level as &dyn Any);
        let clip = level_0.and_then(|level| match level.downcast_ref::<ClippedText>() {
            Some(ClippedText(clip)) => Some(clip),
            None => level.downcast_ref::<Clip>(),
        });
        clip.map_or_else(|| Ok(value.clone()), |clip| clip.generalize_value(value))
    }

    /// Returns the type of every level's labels.
    pub fn output_type(&self) -> &DataType {
        &self.output_type
    }

    /// Returns the levels from 0 to the top.
    pub fn levels(&self) -> &[Arc<dyn Generalizer>] {
        &self.levels
    }

    /// Returns the position of each value in the order of the leaves, if a level enumerates them.
    ///
    /// # Errors
    /// The errors of [`Generalizer::leaf_positions`].
    pub fn leaf_positions(&self, values: &ArrayRef) -> Result<Option<UInt32Array>> {
        let positions = self.levels.iter().map(|level| level.leaf_positions(values).transpose());
        positions.flatten().next().transpose()
    }

    /// Returns the text forms of the values that some level does not cover.
    ///
    /// # Errors
    /// The errors of [`Generalizer::uncovered`].
    pub fn uncovered(&self, values: &ArrayRef) -> Result<Vec<String>> {
        for level in &self.levels {
            let places = level.uncovered(values)?;
            if !places.is_empty() {
                let text = |place| Ok(Value::read(values, place)?.text_form().unwrap_or_default());
                return places.into_iter().map(text).collect();
            }
        }
        Ok(Vec::new())
    }

    /// Returns the number of the top level, H in the formulae.
    pub fn height(&self) -> usize {
        self.levels.len() - 1
    }
}

/// Checks that each of the levels from 1 on is a function of the previous one.
fn check_order(levels: &[Arc<dyn Generalizer>]) -> Result<()> {
    for (index, pair) in levels.windows(2).enumerate() {
        if let [finer, coarser] = pair {
            coarser.check_coarsens(&**finer).map_err(|why| {
                Error::policy(format!(
                    "level {} (`{}`) is not a function of level {} (`{}`): {why}",
                    index + 2,
                    coarser.descriptor(),
                    index + 1,
                    finer.descriptor(),
                ))
            })?;
        }
    }
    Ok(())
}

/// Level 0: the value as is, as text if the other levels are text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsIs {
    /// Whether the hierarchy's labels are text.
    pub text: bool,
}

impl Generalizer for AsIs {
    fn descriptor(&self) -> Descriptor {
        Descriptor::as_is()
    }

    fn output_type(&self, input: &DataType) -> Result<DataType> {
        Ok(if self.text { DataType::Utf8View } else { input.clone() })
    }

    fn keeps_order(&self, _input: &DataType) -> bool {
        !self.text
    }

    fn generalize(&self, values: &ArrayRef) -> Result<ArrayRef> {
        if self.text { Ok(Arc::new(text_forms(values)?)) } else { Ok(Arc::clone(values)) }
    }

    /// Returns the values themselves where each has a text of its own: of floats the bits, because
    /// the engine takes -0.0 for 0.0.
    fn codes(&self, values: &ArrayRef) -> Result<ArrayRef> {
        match values.data_type() {
            // All kinds of NaN have one text.
            DataType::Float64 if self.text => {
                let bits = |v: f64| if v.is_nan() { f64::NAN } else { v }.to_bits();
                Ok(Arc::new(values.as_primitive::<Float64Type>().unary::<_, UInt64Type>(bits)))
            }
            DataType::Float32 if self.text => {
                let bits = |v: f32| if v.is_nan() { f32::NAN } else { v }.to_bits();
                Ok(Arc::new(values.as_primitive::<Float32Type>().unary::<_, UInt32Type>(bits)))
            }
            DataType::Boolean | DataType::Date32 | DataType::Timestamp(..) => Ok(Arc::clone(values)),
            other if other.is_integer() || other.is_decimal() => Ok(Arc::clone(values)),
            _ => self.generalize(values),
        }
    }

    fn generalize_value(&self, value: &Value) -> Result<Value> {
        Ok(match value.text_form() {
            Some(text) if self.text => Value::Text(text),
            _ => value.clone(),
        })
    }

    fn is_label(&self, _value: &Value) -> bool {
        true
    }

    fn check_coarsens(&self, _finer: &dyn Generalizer) -> Result<(), String> {
        Err("level 0 stands below all others".into())
    }
}

/// Level 0 of a clipped column with text labels: the value between the ends, else `<0` or `>=90`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClippedText(pub(crate) Clip);

impl ClippedText {
    fn open_ends(&self) -> [String; 2] {
        self.0.open_ends(0, 1)
    }
}

impl Generalizer for ClippedText {
    fn descriptor(&self) -> Descriptor {
        self.0.descriptor()
    }

    fn output_type(&self, input: &DataType) -> Result<DataType> {
        if is_number(input) { Ok(DataType::Utf8View) } else { Err(not_numbers(input)) }
    }

    fn keeps_order(&self, _input: &DataType) -> bool {
        false
    }

    fn generalize(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let scale = scale_of(values.data_type());
        let sides = map_numbers(values, self.0.of_integers(), self.0.of_floats(), self.0.of_decimals(scale))?;
        let (texts, [low, high]) = (text_forms(values)?, self.open_ends());
        let labels = texts.iter().zip(sides).map(|(text, side)| match side? {
            Ordering::Less => Some(low.as_str()),
            Ordering::Equal => text,
            Ordering::Greater => Some(high.as_str()),
        });
        Ok(Arc::new(labels.collect::<StringViewArray>()))
    }

    fn generalize_value(&self, value: &Value) -> Result<Value> {
        let [low, high] = self.0.ends();
        Ok(match (self.0.side(value), value) {
            (_, Value::Null) => Value::Null,
            (Ordering::Less, _) => return open_end("<", low, 0, 1),
            (Ordering::Greater, _) => return open_end(">=", high, 0, 1),
            (_, Value::Int(_) | Value::Float(_) | Value::Decimal(..)) => {
                value.text_form().map_or(Value::Null, Value::Text)
            }
            _ => return Err(Error::data("only numbers can be clipped")),
        })
    }

    fn is_label(&self, value: &Value) -> bool {
        let Value::Text(text) = value else { return *value == Value::Null };
        let scale = text.split_once('.').and_then(|(_, fraction)| i8::try_from(fraction.len()).ok());
        let decimal =
            scale.and_then(|scale| Some(Value::Decimal(i256::from_string(&text.replace('.', ""))?, scale)));
        let numbers = [text.parse().map(Value::Int).ok(), text.parse().map(Value::Float).ok(), decimal];
        let between = |number: &Value| {
            self.0.side(number) == Ordering::Equal && number.text_form().as_ref() == Some(text)
        };
        let end = |text: &String| !text.is_empty() && self.open_ends().contains(text);
        end(text) || numbers.iter().flatten().any(between)
    }

    fn check_coarsens(&self, _finer: &dyn Generalizer) -> Result<(), String> {
        Err("level 0 stands below all others".into())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;

    use super::*;
    use crate::decimal::Decimal;
    use crate::generalize::laws_tests::agree;
    use crate::generalize::{floor, range};

    fn numbers(list: &[i64]) -> Vec<Decimal> {
        list.iter().map(|n| Decimal::integer(*n)).collect()
    }

    #[test]
    fn the_type_depends_on_the_hierarchy_not_on_the_level() {
        let floors = Hierarchy::new(&DataType::Int32, floor::ROW.of(numbers(&[10, 100])).unwrap()).unwrap();
        let ranges = Hierarchy::new(&DataType::Int32, range::ROW.of(numbers(&[10, 100])).unwrap()).unwrap();
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
        let error = Hierarchy::new(&DataType::Int32, range::ROW.of(numbers(&[10, 15])).unwrap()).unwrap_err();
        assert!(
            error.to_string().contains("level 2 (`range:15`) is not a function of level 1 (`range:10`)"),
            "{error}"
        );
    }

    #[test]
    fn without_levels_numbers_stay_and_text_has_one_encoding() {
        use DataType::{Int32, Int64, Utf8, Utf8View};
        let packed = |values| DataType::Dictionary(Box::new(Int32), Box::new(values));
        for (input, plain, output) in [
            (Int64, Int64, Int64),
            (Utf8, Utf8, Utf8View),
            (packed(Int64), Int64, Int64),
            (packed(Utf8), Utf8, Utf8View),
        ] {
            let hierarchy = Hierarchy::new(&input, vec![]).unwrap();
            assert_eq!((hierarchy.input_type(), hierarchy.output_type()), (&plain, &output));
            assert_eq!(hierarchy.height(), 1);
        }
    }

    #[test]
    fn level_0_is_the_value() {
        let ages: ArrayRef = Arc::new(Int64Array::from(vec![Some(-1), Some(89), None, Some(90)]));
        let clip = Clip::new(None, Some(Decimal::integer(90))).unwrap();
        let (as_is, text, clipped) = (AsIs { text: false }, AsIs { text: true }, ClippedText(clip));
        assert_eq!(&agree(&as_is, &ages).unwrap(), &ages);
        for (level, last) in [(&text as &dyn Generalizer, "90"), (&clipped, ">=90")] {
            let expected: ArrayRef =
                Arc::new(StringViewArray::from(vec![Some("-1"), Some("89"), None, Some(last)]));
            assert_eq!(&agree(level, &ages).unwrap(), &expected);
            assert_eq!(level.check_coarsens(&as_is), Err("level 0 stands below all others".into()));
        }
    }

    #[test]
    fn lists_are_refused() {
        let list = DataType::new_list(DataType::Int32, true);
        assert!(Hierarchy::new(&list, vec![]).is_err());
    }

    #[test]
    fn labels_of_level_0_are_told_from_other_texts() {
        let level = |high: Option<i64>| {
            let end = Decimal::integer;
            ClippedText(Clip::new(Some(end(0)), high.map(end)).unwrap())
        };
        let label = |text: &str| level(Some(90)).is_label(&Value::Text(text.into()));
        assert!(["<0", ">=90", "0", "89", "0.5", "NaN"].iter().all(|text| label(text)));
        assert!(label("12.50") && label("0.00"));
        let wrong = [
            "90", "90.0", "-0.01", "-0.00", "012.5", "90", "-1", "<1", ">=91", "007", "+5", "inf", "", "*",
            "5.", "1e1",
        ];
        assert!(wrong.iter().all(|text| !label(text)));
        assert!(level(None).is_label(&Value::Text("inf".into())));
        assert!(!level(None).is_label(&Value::Text(String::new())));
    }
}
