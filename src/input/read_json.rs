//! The columns of JSON lines, found from every row of every file; the engine reads the rows
//! themselves.
//!
//! A line is one object, a key is a column, a missing key is NULL. Columns are in the order in
//! which their keys first appear. Whole numbers are `Int64` (`UInt64` if they need it); a column
//! with any fraction is `Float64`; a column of nothing but nulls has no type (`Null`). A key that
//! ever holds a list or an object is a nested column, which can only be dropped.
//!
//! The engine would find the columns in the first rows only, and its errors quote cells and name no file.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};

use arrow::datatypes::{DataType, Field, Fields, Schema};
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::engine::Context;
use crate::error::{Error, Result};
use crate::store::Object;

/// The limit up to which every whole number has its own `Float64`.
const EXACT: u64 = 1 << 53;

/// Returns the schema of all rows of all files.
///
/// # Errors
/// A data error that names file and line of a line that is not an object, of a row that names a key
/// twice, or of a column with values of two kinds.
pub(crate) fn schema(files: &[Object]) -> Result<Schema> {
    let mut columns = Columns::default();
    for file in files {
        let place = file.place();
        let mut lines = BufReader::new(File::open(file.path()).context(&place)?);
        let mut line = Vec::new();
        for number in 1u64.. {
            line.clear();
            if lines.read_until(b'\n', &mut line).context(&place)? == 0 {
                break;
            }
            columns.row += 1;
            columns.add(&line).map_err(|error| error.at(format!("{place}: line {number}")))?;
        }
    }
    columns.schema()
}

/// The columns so far, in the order of their first appearance.
#[derive(Default)]
struct Columns {
    all: Vec<JsonColumn>,
    places: HashMap<String, usize>,
    row: u64,
}

struct JsonColumn {
    name: String,
    kinds: Kinds,
    /// The last row with this column's key.
    row: u64,
}

/// The kinds of values in a column.
#[derive(Debug, Default, Clone, Copy)]
struct Kinds {
    truths: bool,
    texts: bool,
    lists: bool,
    objects: bool,
    whole: bool,
    fractions: bool,
    negative: bool,
    /// Whether a whole number is beyond `Int64`.
    large: bool,
    /// Whether a `Float64` may round a whole number.
    inexact: bool,
}

impl Kinds {
    /// Returns the kinds of both.
    fn and(self, other: Self) -> Self {
        Self {
            truths: self.truths | other.truths,
            texts: self.texts | other.texts,
            lists: self.lists | other.lists,
            objects: self.objects | other.objects,
            whole: self.whole | other.whole,
            fractions: self.fractions | other.fractions,
            negative: self.negative | other.negative,
            large: self.large | other.large,
            inexact: self.inexact | other.inexact,
        }
    }

    fn numbers(self) -> bool {
        self.whole | self.fractions
    }

    fn nested(self) -> bool {
        self.lists | self.objects
    }

    /// Names the kinds of a column that cannot hold them together.
    fn mixed(self) -> Option<String> {
        let kinds = [(self.truths, "booleans"), (self.numbers(), "numbers"), (self.texts, "texts")];
        let found: Vec<&str> = kinds.iter().filter(|(any, _)| *any).map(|(_, name)| *name).collect();
        (found.len() > 1 && !self.nested()).then(|| found.join(" and "))
    }

    fn data_type(self) -> Result<DataType> {
        Ok(match self {
            Self { objects: true, .. } => DataType::Struct(Fields::empty()),
            Self { lists: true, .. } => DataType::new_list(DataType::Null, true),
            Self { texts: true, .. } => DataType::Utf8View,
            Self { truths: true, .. } => DataType::Boolean,
            Self { fractions: true, inexact: true, .. } => {
                return Err(Error::data(
                    "holds fractions and whole numbers beyond 2^53, which no numeric column holds exactly; \
                     write them as strings",
                ));
            }
            Self { fractions: true, .. } => DataType::Float64,
            Self { large: true, negative: true, .. } => {
                return Err(Error::data("holds whole numbers beyond 64 bits; write them as strings"));
            }
            Self { large: true, .. } => DataType::UInt64,
            Self { whole: true, .. } => DataType::Int64,
            _ => DataType::Null,
        })
    }
}

impl Columns {
    /// Adds one line; an empty line is not a row.
    fn add(&mut self, line: &[u8]) -> Result<()> {
        let text = std::str::from_utf8(line).map_err(|_| Error::data("expected UTF-8"))?;
        if text.trim_matches([' ', '\t', '\r', '\n']).is_empty() {
            return Ok(());
        }
        if text.starts_with('\u{feff}') {
            return Err(Error::data("begins with a byte order mark; save the file as UTF-8 without it"));
        }
        let wrong = || {
            Error::data(
                "expected one JSON object per line, such as {\"age\": 31}, without repeated keys; `jq -c \
                 '.[]'` turns a JSON array into lines",
            )
        };
        let mut reader = serde_json::Deserializer::from_str(text);
        let row = reader.deserialize_map(RowVisitor).map_err(|_| wrong())?;
        reader.end().map_err(|_| wrong())?;
        for (name, kinds) in row {
            let place = match self.places.get(&name) {
                Some(place) => *place,
                None => {
                    self.places.insert(name.clone(), self.all.len());
                    self.all.push(JsonColumn { name, kinds: Kinds::default(), row: 0 });
                    self.all.len() - 1
                }
            };
            let Some(column) = self.all.get_mut(place) else { continue };
            if column.row == self.row {
                return Err(wrong());
            }
            column.row = self.row;
            column.kinds = column.kinds.and(kinds);
            if let Some(mixed) = column.kinds.mixed() {
                return Err(Error::data(format!(
                    "column `{}` holds {mixed} here and in earlier lines; write values of one kind",
                    column.name
                )));
            }
        }
        Ok(())
    }

    fn schema(self) -> Result<Schema> {
        let fields = self.all.into_iter().map(|column| {
            let data_type = column.kinds.data_type();
            let data_type = data_type.map_err(|error| error.at(format!("column `{}`", column.name)))?;
            Ok(Field::new(column.name, data_type, true))
        });
        Ok(Schema::new(fields.collect::<Result<Vec<Field>>>()?))
    }
}

/// Reads the keys of an object and the kinds of their values.
struct RowVisitor;

impl<'de> Visitor<'de> for RowVisitor {
    type Value = Vec<(String, Kinds)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut row = Vec::new();
        while let Some(entry) = map.next_entry::<String, Kinds>()? {
            row.push(entry);
        }
        Ok(row)
    }
}

impl<'de> serde::Deserialize<'de> for Kinds {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(KindVisitor)
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kinds;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Kinds, E> {
        Ok(Kinds::default())
    }

    fn visit_bool<E>(self, _value: bool) -> Result<Kinds, E> {
        Ok(Kinds { truths: true, ..Kinds::default() })
    }

    fn visit_i64<E>(self, value: i64) -> Result<Kinds, E> {
        let inexact = value.unsigned_abs() > EXACT;
        Ok(Kinds { whole: true, negative: value < 0, inexact, ..Kinds::default() })
    }

    fn visit_u64<E>(self, value: u64) -> Result<Kinds, E> {
        let large = i64::try_from(value).is_err();
        Ok(Kinds { whole: true, large, inexact: value > EXACT, ..Kinds::default() })
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Kinds, E> {
        if value.is_finite() {
            Ok(Kinds { fractions: true, ..Kinds::default() })
        } else {
            Err(E::custom("no number"))
        }
    }

    fn visit_str<E>(self, _value: &str) -> Result<Kinds, E> {
        Ok(Kinds { texts: true, ..Kinds::default() })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Kinds, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Kinds { lists: true, ..Kinds::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kinds, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Kinds { objects: true, ..Kinds::default() })
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn types(files: &[&str]) -> Result<Vec<(String, DataType)>> {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..files.len()).map(|n| folder.path().join(format!("{n}.json"))).collect();
        paths.iter().zip(files).for_each(|(path, text)| std::fs::write(path, text).unwrap());
        let files: Vec<Object> = paths.into_iter().map(|path| Object::of_file(path).unwrap()).collect();
        let schema = schema(&files)?;
        Ok(schema.fields().iter().map(|f| (f.name().clone(), f.data_type().clone())).collect())
    }

    fn one(lines: &str) -> DataType {
        types(&[lines]).unwrap().remove(0).1
    }

    #[test]
    fn columns_stand_in_the_order_of_their_first_appearance() {
        let found =
            types(&["{\"b\":1}\n\r\n{\"a\":null,\"b\":2}", "{\"c\":[1],\"a\":\"x\",\"b\":0.5}\n"]).unwrap();
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["b", "a", "c"]);
        let list = DataType::new_list(DataType::Null, true);
        assert_eq!([&found[0].1, &found[1].1, &found[2].1], [&DataType::Float64, &DataType::Utf8View, &list]);
    }

    #[test]
    fn kinds_become_types() {
        for (lines, expected) in [
            ("{\"x\":1}\n{\"x\":-9223372036854775808}", DataType::Int64),
            ("{\"x\":1}\n{\"x\":18446744073709551615}", DataType::UInt64),
            ("{\"x\":1}\n{\"x\":1e3}", DataType::Float64),
            ("{\"x\":9007199254740992}\n{\"x\":0.5}", DataType::Float64),
            ("{\"x\":true}\n{}\n{\"x\":null}", DataType::Boolean),
            ("{\"x\":null}", DataType::Null),
            ("{\"x\":\"1\"}", DataType::Utf8View),
            ("{\"x\":1}\n{\"x\":{\"y\":1}}", DataType::Struct(Fields::empty())),
        ] {
            assert_eq!(one(lines), expected, "{lines}");
        }
    }

    #[test]
    fn what_is_refused_names_the_line_and_no_cell() {
        for (lines, part) in [
            ("{\"x\":1}\n[{\"x\":\"SECRET\"}]", "0.json: line 2: expected one JSON object per line"),
            ("{\"x\":\"SECRET\"", "line 1: expected one JSON object per line"),
            ("{\"x\":1} {\"x\":2}", "line 1: expected one JSON object per line"),
            ("\n{\"x\":1,\"x\":2}", "line 2: expected one JSON object per line"),
            ("{\"x\":1e999}", "line 1: expected one JSON object per line"),
            ("{\"x\":1}\n{\"x\":\"SECRET\"}", "line 2: column `x` holds numbers and texts"),
            ("{\"x\":true}\n{\"x\":1}", "line 2: column `x` holds booleans and numbers"),
            ("\u{feff}{\"x\":1}", "line 1: begins with a byte order mark"),
            ("{\"x\":-1}\n{\"x\":18446744073709551615}", "column `x`: holds whole numbers beyond 64 bits"),
            (
                "{\"x\":9007199254740993}\n{\"x\":0.5}",
                "column `x`: holds fractions and whole numbers beyond 2^53",
            ),
        ] {
            let error = types(&[lines]).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("SECRET"), "{error}");
        }
    }
}
