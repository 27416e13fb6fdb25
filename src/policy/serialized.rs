//! A policy as a part of other data, such as a service's configuration in JSON or YAML: its keys are those
//! of the policy file, and so are its errors.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::value::Datetime;
use toml::{Table, Value};

use super::builder::spec_of;
use super::keys::join;
use super::spec::PolicySpec;
use crate::error::Error;

/// The place of all errors: that of the policy itself is not known here.
const PLACE: &str = "policy";

/// The one key of the table that stands for a date where the data are TOML.
const DATE: &str = "$__toml_private_datetime";

/// Serializes the keys of the [text](PolicySpec::text), dates as texts. Comments are lost.
impl Serialize for PolicySpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let table: Result<Table, _> = toml::from_str(self.text());
        let table = table.map_err(|_| S::Error::custom("policy: its text is not TOML"))?;
        with_texts(Value::Table(table)).serialize(serializer)
    }
}

/// Writes the dates as texts.
fn with_texts(value: Value) -> Value {
    match value {
        Value::Datetime(date) => Value::String(date.to_string()),
        Value::Array(all) => Value::Array(all.into_iter().map(with_texts).collect()),
        Value::Table(table) => {
            Value::Table(table.into_iter().map(|(key, value)| (key, with_texts(value))).collect())
        }
        other => other,
    }
}

/// Deserializes the keys of a policy file from a format that describes itself. The columns have the order in
/// which they come.
impl<'de> Deserialize<'de> for PolicySpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Value::Table(table) = At(String::new()).deserialize(deserializer)? else {
            let why = Error::policy("expected a table with the keys of a policy");
            return Err(D::Error::custom(why.at(PLACE)));
        };
        spec_of(&table).map_err(|error| D::Error::custom(error.at(PLACE)))
    }
}

/// Reads the value at this place of a policy. The default errors of what is not read, such as null, show the place.
struct At(String);

impl<'de> DeserializeSeed<'de> for At {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_str() {
            "" => f.write_str("a table with the keys of a policy"),
            path => write!(
                f,
                "a text, a number, true, false, a list or a table as `{path}` of the policy (leave out a key without a value)"
            ),
        }
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        let too_large = |_| E::invalid_value(Unexpected::Unsigned(value), &self);
        i64::try_from(value).map(Value::Integer).map_err(too_large)
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = list.next_element_seed(At(format!("{}[{}]", self.0, all.len())))? {
            all.push(value);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut table = Table::new();
        while let Some(key) = map.next_key::<String>()? {
            if key == DATE && table.is_empty() {
                let date: Result<Datetime, _> = map.next_value::<String>()?.parse();
                return date.map(Value::Datetime).map_err(A::Error::custom);
            }
            let path = join(&self.0, &key);
            if table.contains_key(&key) {
                return Err(A::Error::custom(Error::policy("the key is given twice").at(path).at(PLACE)));
            }
            let value = map.next_value_seed(At(path))?;
            table.insert(key, value);
        }
        Ok(Value::Table(table))
    }
}
