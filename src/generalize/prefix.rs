//! `prefix`: text keeps its first or last characters; one mark or a fixed width of marks replaces
//! the rest.
//!
//! `f(v) = first n characters of v, then *`. There is always exactly one mark, even when nothing is
//! left to hide: `02139` at 3 is `021*`, `02` is `02*`. So a label shows neither how many
//! characters are hidden nor whether any are. `side = "right"` keeps the last characters (`*139`).
//! `width = 5` makes every label five characters long, whatever the value's length: `021**`, and
//! `02***` for `02`. [`papers::SAMARATI_SWEENEY_1998`] generalizes postal codes this way;
//! deviation: it uses one mark per hidden digit, which reveals the length.
//!
//! # Contract
//! Text and integers (by their decimal digits) in, `Utf8View` out. A character is a Unicode scalar
//! value, never half of one. NULL stays NULL, the empty text is `*`. Not monotone, because the mark
//! sorts among the characters. A label with the width of all values looks like a partly read value;
//! values longer or shorter than the width look the same. A prefix reveals as much as its
//! characters do: the first digits of a code can name a small place.
//!
//! ```
//! use datafusion_kanon::generalize::{Generalizer, Value, prefix::Prefix};
//! let three = Prefix::new(3)?;
//! assert_eq!(three.generalize_value(&Value::Text("02139".into()))?, Value::Text("021*".into()));
//! assert_eq!(three.generalize_value(&Value::Text("02".into()))?, Value::Text("02*".into()));
//! assert_eq!(three.generalize_value(&Value::Int(90210))?, Value::Text("902*".into()));
//! assert_eq!(three.generalize_value(&Value::Null)?, Value::Null);
//! # Ok::<(), datafusion_kanon::error::Error>(())
//! ```

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringViewBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};

use super::value::unsupported;
use super::{Descriptor, Generalizer, GeneralizerRow, Value, each_level, map_text};
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter, Setting, Settings};
use crate::plural::plural;

/// The row of [`GENERALIZERS`](super::GENERALIZERS) for this generalizer.
pub const ROW: GeneralizerRow = GeneralizerRow {
    doc: &Doc {
        name: "prefix",
        summary: "keeps the first (or last) characters of a text and replaces the rest with one * or, up to \
             a fixed width, with several",
        parameters: "characters",
        example: "generalize_prefix(zip, 3)",
        paper: Some(papers::SAMARATI_SWEENEY_1998),
    },
    key: Some("prefix"),
    parameters: &[CHARACTERS, SIDE, WIDTH],
    levels: |settings: &Settings| {
        let side = Side::parse(settings.word(SIDE.name)?)?;
        let width = settings.some_number(WIDTH.name)?.map(length).transpose()?;
        each_level(settings.list(CHARACTERS.name)?, |characters| {
            Prefix::masked(length(characters.number()?)?, side, width)
        })
    },
};

/// How many characters are kept.
const CHARACTERS: Parameter = Parameter {
    name: "characters",
    kind: Kind::Levels(&Kind::Count),
    absent: Absent::Refused,
    summary: "how many characters are kept",
};
/// The side of the characters that are kept.
const SIDE: Parameter = Parameter {
    name: "side",
    kind: Kind::Choice(&["left", "right"]),
    absent: Absent::Means(Setting::Word(Cow::Borrowed("left"))),
    summary: "the end whose characters are kept",
};
/// The length of every label.
const WIDTH: Parameter = Parameter {
    name: "width",
    kind: Kind::Count,
    absent: Absent::Unset,
    summary: "the length of every label",
};

fn length(number: Decimal) -> Result<usize> {
    let length = number.to_u64().and_then(|n| usize::try_from(n).ok());
    length.ok_or_else(|| Error::policy("a prefix needs a whole number of characters"))
}

/// The replacement of the hidden characters.
const MARK: char = '*';

/// The largest fixed width of a label.
const WIDEST: usize = 1_000;

/// The characters that a [`Prefix`] keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The first ones.
    Left,
    /// The last ones.
    Right,
}

impl Side {
    /// Parses `left` or `right`.
    ///
    /// # Errors
    /// A policy error for other words.
    pub fn parse(word: &str) -> Result<Self> {
        match word {
            "left" => Ok(Side::Left),
            "right" => Ok(Side::Right),
            other => Err(Error::policy(format!("side: expected \"left\" or \"right\", found {other:?}"))),
        }
    }
}

/// The generalizer that the [module](self) describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    length: usize,
    side: Side,
    width: Option<usize>,
}

impl Prefix {
    /// Keeps the first `length` characters, followed by one mark.
    ///
    /// # Errors
    /// A policy error for 0: the top level already shows values without characters.
    pub fn new(length: usize) -> Result<Self> {
        Self::masked(length, Side::Left, None)
    }

    /// Keeps `length` characters of one side, with one mark for the rest, or as many as fill
    /// `width` characters.
    ///
    /// # Errors
    /// A policy error for a length of 0 (the top level already shows values without characters),
    /// and for a width that leaves no mark or is above 1,000.
    pub fn masked(length: usize, side: Side, width: Option<usize>) -> Result<Self> {
        if length == 0 {
            return Err(Error::policy("a prefix of 0 characters is the top level, which needs no prefix"));
        }
        match width {
            Some(width) if width <= length => Err(Error::policy(format!(
                "a width of {width} leaves no room for a mark beside {}",
                plural(length as u64, "character", "characters")
            ))),
            Some(width) if width > WIDEST => {
                Err(Error::policy(format!("a width is at most {WIDEST}, not {width}")))
            }
            _ => Ok(Self { length, side, width }),
        }
    }

    /// Returns the characters of a text that are kept.
    fn kept<'a>(&self, text: &'a str) -> &'a str {
        let place = |(at, _): (usize, char)| at;
        let Some(rest) = text.len().checked_sub(self.length) else { return text };
        match self.side {
            // Where the outer bytes are ASCII, each is a character.
            Side::Left if text.as_bytes()[..self.length].is_ascii() => &text[..self.length],
            Side::Left => &text[..text.char_indices().nth(self.length).map_or(text.len(), place)],
            Side::Right if text.as_bytes()[rest..].is_ascii() => &text[rest..],
            Side::Right => &text[text.char_indices().rev().nth(self.length - 1).map_or(0, place)..],
        }
    }

    fn mask(&self, text: &str) -> String {
        let kept = self.kept(text);
        let marks = self.width.map_or(1, |width| width - kept.chars().count());
        let mut masked = String::with_capacity(kept.len() + marks);
        if self.side == Side::Left {
            masked.push_str(kept);
        }
        masked.extend(std::iter::repeat_n(MARK, marks));
        if self.side == Side::Right {
            masked.push_str(kept);
        }
        masked
    }

    /// Returns the code of a text: what is kept of it. Marks up to a width look like those that are
    /// kept beside them, so these are left out.
    fn code<'a>(&self, text: &'a str) -> &'a str {
        match (self.width, self.side) {
            (None, _) => self.kept(text),
            (Some(_), Side::Left) => self.kept(text).trim_end_matches(MARK),
            (Some(_), Side::Right) => self.kept(text).trim_start_matches(MARK),
        }
    }

    /// Returns the number whose text is what is kept on the left of a number's text; -1 if that is
    /// only the sign.
    fn leading(&self, v: i64) -> i64 {
        let Some(room) = self.length.checked_sub(usize::from(v < 0)).filter(|room| *room > 0) else {
            return -1;
        };
        let digits = v.unsigned_abs().checked_ilog10().map_or(1, |log| log as usize + 1);
        POWERS.get(digits.saturating_sub(room)).map_or(v, |power| v / power)
    }
}

/// The powers of ten from 0 on.
const POWERS: [i64; 19] = {
    let mut powers = [1; 19];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = 10 * powers[at - 1];
        at += 1;
    }
    powers
};

impl Generalizer for Prefix {
    fn descriptor(&self) -> Descriptor {
        let mut descriptor = Descriptor::new("prefix").with(self.length);
        if self.side == Side::Right {
            descriptor = descriptor.with_option("side", "right");
        }
        match self.width {
            Some(width) => descriptor.with_option("width", width),
            None => descriptor,
        }
    }

    fn output_type(&self, input: &DataType) -> Result<DataType> {
        if input.is_string() || input.is_integer() {
            Ok(DataType::Utf8View)
        } else {
            Err(unsupported(input, "text or integers"))
        }
    }

    fn keeps_order(&self, _input: &DataType) -> bool {
        false
    }

    fn generalize(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let text = self.output_type(values.data_type())?;
        let texts =
            cast(values, &text).map_err(|_| Error::internal("prefix: Arrow cannot cast values to text"))?;
        map_text(&texts, |text| self.mask(text))
    }

    /// Returns what is kept, without marks: of integers as a number, where a number is enough.
    fn codes(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let text = self.output_type(values.data_type())?;
        let cast_to = |to: &DataType| {
            cast(values, to).map_err(|_| Error::internal("prefix: Arrow cannot cast values to codes"))
        };
        if self.side == Side::Left
            && values.data_type().is_integer()
            && values.data_type() != &DataType::UInt64
        {
            let numbers = cast_to(&DataType::Int64)?;
            let leading: Int64Array = numbers.as_primitive::<Int64Type>().unary(|v| self.leading(v));
            return Ok(Arc::new(leading));
        }
        let texts = cast_to(&text)?;
        let mut codes = StringViewBuilder::with_capacity(texts.len());
        for text in texts.as_string_view() {
            codes.append_option(text.map(|text| self.code(text)));
        }
        Ok(Arc::new(codes.finish()))
    }

    fn generalize_value(&self, value: &Value) -> Result<Value> {
        let text = match value {
            Value::Null => return Ok(Value::Null),
            Value::Text(text) => text.clone(),
            Value::Int(v) => v.to_string(),
            _ => return Err(Error::data("only text and integers have prefixes")),
        };
        let mut outer: Vec<char> = text.chars().collect();
        if self.side == Side::Right {
            outer.reverse();
        }
        outer.truncate(self.length);
        outer.push(MARK);
        while self.width.is_some_and(|width| outer.len() < width) {
            outer.push(MARK);
        }
        if self.side == Side::Right {
            outer.reverse();
        }
        Ok(Value::Text(outer.into_iter().collect()))
    }

    fn is_label(&self, value: &Value) -> bool {
        let Value::Text(text) = value else { return *value == Value::Null };
        let kept = match self.side {
            Side::Left => text.strip_suffix(MARK),
            Side::Right => text.strip_prefix(MARK),
        };
        match (kept.map(|kept| kept.chars().count()), self.width) {
            (None, _) => false,
            (Some(kept), None) => kept <= self.length,
            (Some(kept), Some(width)) => {
                // Only marks may follow the characters that are kept.
                let marks = |text: &mut dyn Iterator<Item = char>| text.skip(self.length).all(|c| c == MARK);
                let right = self.side == Side::Right;
                kept + 1 == width
                    && if right { marks(&mut text.chars().rev()) } else { marks(&mut text.chars()) }
            }
        }
    }

    fn check_coarsens(&self, finer: &dyn Generalizer) -> Result<(), String> {
        match (finer as &dyn Any).downcast_ref::<Prefix>() {
            Some(finer) if (self.side, self.width) != (finer.side, finer.width) => {
                Err("side and width must be the same at all levels".into())
            }
            Some(finer) if self.length < finer.length => Ok(()),
            Some(finer) => {
                Err(format!("prefixes must shrink, but {} is not below {}", self.length, finer.length))
            }
            None => Err("`prefix` can only follow `prefix`".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Array, StringArray, StringViewArray};
    use proptest::prelude::*;

    use super::*;
    use crate::generalize::laws_tests::agree;

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

    fn masked(length: usize, side: Side, width: Option<usize>) -> Prefix {
        Prefix::masked(length, side, width).unwrap()
    }

    #[test]
    fn the_last_characters_and_a_fixed_width() {
        let zips: ArrayRef =
            Arc::new(StringArray::from(vec!["02139", "02", "", "021391234", "北京市东城区"]));
        for (level, expected) in [
            (masked(3, Side::Right, None), ["*139", "*02", "*", "*234", "*东城区"]),
            (masked(3, Side::Left, Some(5)), ["021**", "02***", "*****", "021**", "北京市**"]),
            (masked(3, Side::Right, Some(5)), ["**139", "***02", "*****", "**234", "**东城区"]),
        ] {
            let labels = agree(&level, &zips).unwrap();
            assert_eq!(labels.as_string_view().iter().flatten().collect::<Vec<_>>(), expected);
        }
        let label = |level: &Prefix, text: &str| level.is_label(&Value::Text(text.into()));
        let right = masked(2, Side::Right, None);
        assert!(label(&right, "*39") && label(&right, "*") && !label(&right, "*139") && !label(&right, "39"));
        let wide = masked(2, Side::Left, Some(4));
        assert!(
            label(&wide, "02**") && label(&wide, "****") && !label(&wide, "02*") && !label(&wide, "021*")
        );
        let wide = masked(2, Side::Right, Some(4));
        assert!(label(&wide, "**39") && !label(&wide, "*139") && !label(&wide, "39**"));
        assert_eq!(wide.descriptor().to_string(), "prefix:2 side:right width:4");
        assert!(masked(1, Side::Right, Some(4)).check_coarsens(&wide).is_ok());
        assert!(masked(1, Side::Left, Some(4)).check_coarsens(&wide).is_err());
        assert!(masked(1, Side::Right, Some(5)).check_coarsens(&wide).is_err());
        assert!(Prefix::masked(4, Side::Left, Some(4)).is_err());
        assert!(Prefix::masked(4, Side::Left, Some(1_000)).is_ok());
        assert!(Prefix::masked(4, Side::Left, Some(1_001)).is_err());
        assert_eq!(["left", "right"].map(Side::parse), [Ok(Side::Left), Ok(Side::Right)]);
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
        assert!(
            prefix(2).check_coarsens(&prefix(3)).is_ok() && prefix(3).check_coarsens(&prefix(3)).is_err()
        );
        assert!(prefix(3).check_coarsens(&prefix(2)).unwrap_err().contains("prefixes must shrink"));
        let levels = |n: &str| ROW.of(vec![Decimal::parse(n).unwrap()]);
        assert!(levels("3").is_ok());
        assert!(["0", "-1", "1.5"].iter().all(|n| levels(n).is_err()));
        assert!(prefix(2).output_type(&DataType::Float64).is_err());
    }

    proptest! {
        #[test]
        fn every_side_and_width_agrees_and_nests(
            values in prop::collection::vec("[a*é北🦀]{0,6}", 1..20),
            (long, less) in (2usize..7, 1usize..6),
            right in any::<bool>(),
            width in prop::option::of(7usize..9),
        ) {
            let side = if right { Side::Right } else { Side::Left };
            let (fine, coarse) = (masked(long, side, width), masked(long.saturating_sub(less).max(1), side, width));
            prop_assert!(coarse.check_coarsens(&fine).is_ok());
            let values: ArrayRef = Arc::new(StringArray::from(values));
            let (fines, coarses) = (agree(&fine, &values).unwrap(), agree(&coarse, &values).unwrap());
            let mut above = std::collections::HashMap::new();
            for (a, b) in fines.as_string_view().iter().zip(coarses.as_string_view().iter()) {
                prop_assert_eq!(*above.entry(a).or_insert(b), b);
                if let (Some(width), Some(a)) = (width, a) {
                    prop_assert_eq!(a.chars().count(), width);
                }
            }
        }

        #[test]
        fn texts_agree_and_nest(
            values in prop::collection::vec(prop::option::of("[a*é北🦀]{0,6}"), 0..20),
            long in 2usize..7,
            less in 1usize..6,
        ) {
            let values: ArrayRef = Arc::new(StringArray::from(values));
            let (fine, coarse) = (prefix(long), prefix(long.saturating_sub(less).max(1)));
            prop_assert!(coarse.check_coarsens(&fine).is_ok());
            let fines = agree(&fine, &values).unwrap();
            let coarses = agree(&coarse, &values).unwrap();
            // Without its mark, a fine label has all the characters that the coarse level reads.
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
