//! `KEY=VALUE`: sets a key of a policy's text before it is parsed.

use std::str::FromStr;

use toml::{Table, Value};

use super::PolicySpec;
use super::keys::{join, not_too_deep, syntax};
use crate::error::{Error, Result};

/// A key to set, and its value.
///
/// ```
/// use datafusion_kanon::internals::policy::SetKey;
/// let set: Vec<SetKey> = vec!["k=10".parse()?, "columns.age.role=quasi".parse()?];
/// let policy = SetKey::all(&set, "k = 2\n[columns]\nage = { role = \"text\" }\n")?;
/// assert_eq!(policy, "k = 10\n\n[columns.age]\nrole = \"quasi\"\n");
/// # Ok::<(), datafusion_kanon::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SetKey {
    /// The argument.
    text: String,
    path: Vec<String>,
    value: Value,
}

impl FromStr for SetKey {
    type Err = Error;

    /// Reads a dotted key of TOML and a value of TOML; a bare word that is no value is a text.
    fn from_str(text: &str) -> Result<Self> {
        let form = || Error::policy("expected KEY=VALUE, such as k=10 or columns.age.weight=3");
        let (key, value) = text.split_at(end_of_key(text).ok_or_else(form)?);
        let value = value[1..].trim();
        if value.is_empty() {
            return Err(form());
        }
        Ok(Self { text: text.to_owned(), path: path_of(key)?, value: value_of(value)? })
    }
}

impl PolicySpec {
    /// Returns the policy with a key and its value, as [`SetKey`] reads them.
    ///
    /// # Errors
    /// A policy error for a key that is none, and those of the policy.
    #[doc(hidden)]
    pub fn with_key(&self, key: &str) -> Result<Self> {
        Self::parse(&SetKey::all(&[key.parse()?], self.text())?)
    }
}

/// Returns the names of a dotted key of TOML.
///
/// # Errors
/// A policy error where it is none.
pub(super) fn path_of(key: &str) -> Result<Vec<String>> {
    let wrong = || {
        Error::policy(format!(
            "`{}` is no key: expected names with dots between them, in quotes where a name holds more than letters, digits, \
             `-` and `_`",
            key.trim()
        ))
    };
    // With either of them it could be more than a key.
    if key.contains('\n') || end_of_key(key).is_some() {
        return Err(wrong());
    }
    let table: Table = toml::from_str(&format!("{key} = 0")).map_err(|_| wrong())?;
    let (mut path, mut inner) = (Vec::new(), Value::Table(table));
    while let Value::Table(table) = inner {
        let (key, value) = table.into_iter().next().ok_or_else(wrong)?;
        path.push(key);
        inner = value;
    }
    Ok(path)
}

/// Returns where the `=` behind the key is: the first one outside quotes.
fn end_of_key(text: &str) -> Option<usize> {
    let (mut quote, mut is_escaped) = (None, false);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            _ if is_escaped => is_escaped = false,
            (Some('"'), '\\') => is_escaped = true,
            (Some(open), close) if open == close => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '=') => return Some(at),
            _ => {}
        }
    }
    None
}

fn value_of(text: &str) -> Result<Value> {
    not_too_deep(text)?;
    let is_word = !text.contains(|c: char| c.is_whitespace() || c.is_control() || "\"'[]{},=#".contains(c));
    // A line end within the value could begin another key.
    match toml::from_str::<Table>(&format!("value = {text}")) {
        Ok(table) => match table.into_iter().collect::<Vec<_>>().as_slice() {
            [(_, value)] => Ok(value.clone()),
            _ => Err(Error::policy("expected one value")),
        },
        Err(_) if is_word => Ok(Value::String(text.to_owned())),
        Err(error) => {
            Err(Error::policy(format!("the value is not TOML: {}", error.message().replace('\n', ", "))))
        }
    }
}

impl SetKey {
    /// Sets keys in a policy's text, the last one of a key last. The columns keep their order; comments
    /// are lost.
    ///
    /// # Errors
    /// A policy error where the text is not TOML, and for a key below one that is no table.
    pub fn all(set: &[Self], text: &str) -> Result<String> {
        if set.is_empty() {
            return Ok(text.to_owned());
        }
        not_too_deep(text)?;
        let mut table: Table = toml::from_str(text).map_err(|error| syntax(text, &error))?;
        for one in set {
            insert(&mut table, &one.path, one.value.clone()).map_err(|error| error.at(one.place()))?;
        }
        toml::to_string(&table).map_err(|_| Error::internal("set key: a table cannot be written as TOML"))
    }

    /// Returns the key and its value as they were given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the place of this key on the command line, for errors.
    fn place(&self) -> String {
        format!("--set {}", self.text)
    }

    /// Gives an error about one of these keys its place on the command line, any other one `place`, if there
    /// is one.
    #[must_use]
    pub fn located(set: &[Self], error: Error, place: Option<&str>) -> Error {
        error.map_each(|error| {
            let is_about = |one: &&Self| {
                let key = one.path.iter().fold(String::new(), |path, key| join(&path, key));
                error.message().strip_prefix(&key).is_some_and(|rest| rest.starts_with([':', '.', '[']))
            };
            match (set.iter().rev().find(is_about), place) {
                (Some(one), _) => error.at(one.place()),
                (None, Some(place)) => error.at(place),
                (None, None) => error,
            }
        })
    }
}

/// Sets the key at the end of a path of keys.
///
/// # Errors
/// A policy error for a key below one that is no table.
pub(super) fn insert(table: &mut Table, path: &[String], value: Value) -> Result<()> {
    let Some((last, above)) = path.split_last() else { return Ok(()) };
    let (mut table, mut path) = (table, String::new());
    for key in above {
        path = join(&path, key);
        let below = table.entry(key).or_insert_with(|| Value::Table(Table::new()));
        table = match below {
            Value::Table(table) => table,
            Value::Array(_) => {
                return Err(Error::policy(format!("`{path}` is a list, which can only be set as a whole")));
            }
            _ => return Err(Error::policy(format!("`{path}` is not a table"))),
        };
    }
    table.insert(last.clone(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "k = 2 # few\nmethod = \"auto\"\n[columns]\nzip = { role = \"quasi\" }\n\"a.b\" = { role = \"text\" }\n\
                          age = { role = \"quasi\", hierarchy = { range = [10, 20] } }\n[[require]]\nmodel = \"l_diversity\"\nl = 2\n";

    fn set(keys: &[&str]) -> Table {
        let keys: Vec<SetKey> = keys.iter().map(|key| key.parse().unwrap()).collect();
        toml::from_str(&SetKey::all(&keys, POLICY).unwrap()).unwrap()
    }

    #[test]
    fn a_key_is_set_and_the_others_stay_in_order() {
        let before: Table = toml::from_str(POLICY).unwrap();
        let after = set(&[
            "k=10",
            "columns.zip.weight = 2.5",
            "columns.age.hierarchy={ range = [5] }",
            r#"columns."a.b".role=insensitive"#,
            "columns.new.role=?",
            "input.delimiter=';'",
            "k=11",
        ]);
        assert_eq!(after["k"], Value::Integer(11));
        assert_eq!(after["method"], before["method"]);
        assert_eq!(after["require"], before["require"]);
        let columns = after["columns"].as_table().unwrap();
        assert_eq!(columns.keys().collect::<Vec<_>>(), ["zip", "a.b", "age", "new"]);
        assert_eq!(columns["zip"].to_string(), r#"{ role = "quasi", weight = 2.5 }"#);
        assert_eq!(columns["a.b"]["role"].as_str(), Some("insensitive"));
        assert_eq!(columns["age"]["hierarchy"].to_string(), "{ range = [5] }");
        assert_eq!(columns["new"]["role"].as_str(), Some("?"));
        assert_eq!(after["input"]["delimiter"].as_str(), Some(";"));
        assert_eq!(SetKey::all(&[], POLICY).unwrap(), POLICY);
    }

    #[test]
    fn a_value_is_one_of_toml_or_a_bare_word() {
        let value = |text: &str| format!("k={text}").parse::<SetKey>().map(|set| set.value);
        assert_eq!(value("true"), Ok(Value::Boolean(true)));
        assert_eq!(value("0.05"), Ok(Value::Float(0.05)));
        assert_eq!(value("mondrian"), Ok(Value::String("mondrian".into())));
        assert_eq!(value("../pop/ä.csv"), Ok(Value::String("../pop/ä.csv".into())));
        assert_eq!(value("\"10\""), Ok(Value::String("10".into())));
        assert_eq!(value("007"), Ok(Value::String("007".into())));
        assert!(matches!(value("2026-11-24"), Ok(Value::Datetime(_))));
        for wrong in ["", " ", "two words", "[1, 2", "{ a = 1", "\"open", "1\nl = 2", "a,b"] {
            assert!(value(wrong).is_err(), "{wrong}");
        }
        for wrong in ["k", "=1", "a b=1", "k=1\nl=2 = 3", ".k=1", "\"open=1", "a\nb=1"] {
            assert!(wrong.parse::<SetKey>().is_err(), "{wrong}");
        }
        assert_eq!(r#"columns."a=\"b".role=x"#.parse::<SetKey>().unwrap().path, ["columns", "a=\"b", "role"]);
    }

    #[test]
    fn what_is_no_table_has_no_keys() {
        for (key, why) in [
            ("k.l=1", "--set k.l=1: `k` is not a table"),
            ("require.l=3", "--set require.l=3: `require` is a list, which can only be set as a whole"),
        ] {
            let error = SetKey::all(&[key.parse().unwrap()], POLICY).unwrap_err();
            assert_eq!(error.to_string(), why);
        }
    }

    #[test]
    fn an_error_about_a_key_names_its_option() {
        let keys = [r#"columns.age.weight=0"#.parse().unwrap(), "k=0".parse().unwrap()];
        let located =
            |message: &str| SetKey::located(&keys, Error::policy(message), Some("policy p.toml")).to_string();
        assert_eq!(located("k: too small"), "--set k=0: k: too small");
        assert_eq!(located("columns.age.weight: no"), "--set columns.age.weight=0: columns.age.weight: no");
        assert_eq!(located("columns.age.weights: no"), "policy p.toml: columns.age.weights: no");
        assert_eq!(located("columns.age: no"), "policy p.toml: columns.age: no");
        let both = Error::policy("k: a").beside(Error::policy("l: b"));
        assert_eq!(SetKey::located(&keys, both, None).to_string(), "--set k=0: k: a\nl: b");
    }
}
