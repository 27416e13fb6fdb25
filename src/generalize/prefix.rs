//! `prefix`: text keeps its first or last characters; one mark or a fixed width of marks replaces
//! the rest.
//!
//! `f(v) = first n characters of v, then *`. There is always exactly one mark, even when nothing is
//! left to hide: `02139` at 3 is `021*`, `02` is `02*`. So a label shows neither how many
//! characters are hidden nor whether any are. `side = "right"` keeps the last characters (`*139`).
//! `width = 5` makes every label five characters long, whatever the value's length: `021**`, and
//! `02***` for `02`. A text with no more characters than stay is shown whole beside its marks.
//! [`papers::SAMARATI_SWEENEY_1998`] generalizes postal codes this way; deviation: it uses one mark
//! per hidden digit, which reveals the length.
//!
//! # Contract
//! Text and integers (by their decimal digits) in, `Utf8View` out. A character is what a reader
//! takes for one, an extended grapheme cluster of Unicode (UAX 29): a letter with all its accents, a
//! flag, CR LF. NULL stays NULL, the empty text is `*`. Not monotone, because the mark sorts among
//! the characters. A label with the width of all values looks like a partly read value; values
//! longer or shorter than the width look the same. A prefix reveals as much as its characters do:
//! the first digits of a code can name a small place, and a short text is not hidden at all.
//!
//! ```
//! use datafusion_kanon::extend::{Generalizer, Value};
//! use datafusion_kanon::internals::generalize::prefix::Prefix;
//! let three = Prefix::new(3)?;
//! assert_eq!(three.generalize_value(&Value::Text("02139".into()))?, Value::Text("021*".into()));
//! assert_eq!(three.generalize_value(&Value::Text("02".into()))?, Value::Text("02*".into()));
//! assert_eq!(three.generalize_value(&Value::Int(90210))?, Value::Text("902*".into()));
//! assert_eq!(three.generalize_value(&Value::Null)?, Value::Null);
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringViewBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use unicode_segmentation::UnicodeSegmentation;

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
        let place = |(at, _): (usize, &str)| at;
        let rest = text.len().saturating_sub(self.length);
        if rest == 0 {
            return text;
        }
        match self.side {
            // The byte beside those that stay tells whether it belongs to the last of them.
            Side::Left if bytes_are_characters(&text.as_bytes()[..=self.length]) => &text[..self.length],
            Side::Left => &text[..text.grapheme_indices(true).nth(self.length).map_or(text.len(), place)],
            Side::Right if bytes_are_characters(&text.as_bytes()[rest - 1..]) => &text[rest..],
            Side::Right => &text[text.grapheme_indices(true).rev().nth(self.length - 1).map_or(0, place)..],
        }
    }

    fn mask(&self, text: &str) -> String {
        let kept = self.kept(text);
        let marks = self.width.map_or(1, |width| width - characters(kept));
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
    /// kept beside them, so these are left out, but for one that is a part of the character beside it.
    fn code<'a>(&self, text: &'a str) -> &'a str {
        let kept = self.kept(text);
        let marks = self.marks(kept);
        if self.width.is_none() || marks == 0 {
            return kept;
        }
        let (without, with_one) = (self.unmarked(kept, marks), self.unmarked(kept, marks - 1));
        if characters(without) < characters(with_one) { without } else { with_one }
    }

    /// Returns the number of marks where the hidden characters of a text would be.
    fn marks(&self, text: &str) -> usize {
        let is_mark = |byte: &&u8| char::from(**byte) == MARK;
        match self.side {
            Side::Left => text.as_bytes().iter().rev().take_while(is_mark).count(),
            Side::Right => text.as_bytes().iter().take_while(is_mark).count(),
        }
    }

    /// Returns a text without so many of these marks.
    fn unmarked<'a>(&self, text: &'a str, marks: usize) -> &'a str {
        match self.side {
            Side::Left => &text[..text.len() - marks],
            Side::Right => &text[marks..],
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

/// Returns the number of characters of a text, as a reader counts them.
pub(crate) fn characters(text: &str) -> usize {
    if bytes_are_characters(text.as_bytes()) { text.len() } else { text.graphemes(true).count() }
}

/// Returns whether each byte is a character of its own: in ASCII all are, but for CR LF, which is one.
fn bytes_are_characters(bytes: &[u8]) -> bool {
    bytes.is_ascii() && !bytes.contains(&b'\r')
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
        const MARK: &str = "*";
        let mut outer: Vec<&str> = text.graphemes(true).collect();
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
        let marks = self.marks(text);
        let hides = |hidden: usize| {
            let kept = characters(self.unmarked(text, hidden));
            kept <= self.length && self.width.is_none_or(|width| kept + hidden == width)
        };
        // A mark may be kept, too; that matters where it is a part of the character beside it.
        match self.width {
            None => marks > 0 && hides(1),
            Some(_) => marks > 0 && hides(marks) || marks > 1 && hides(marks - 1),
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
#[path = "prefix_tests.rs"]
mod tests;
