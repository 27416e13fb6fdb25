//! Readers of a policy file's values: each takes a TOML value and names the expected shape in its
//! error.

use chrono::NaiveDate;
use toml::{Table, Value};

use super::key_tables::{Key, TOP};
use crate::decimal::Decimal;
use crate::doc::find;
use crate::error::{Error, Errors, Result, closest, nearest};
use crate::generalize::clip::Clip;
use crate::measure::{self, LossMeasure, LossRow};
use crate::parameter::{Kind, Parameter, Setting, of_level, of_node, toml_key};
use crate::role::Role;

/// A table of the file with its place; all of its keys are known.
pub(super) struct Keys {
    pub(super) path: String,
    pub(super) table: Table,
}

impl Keys {
    pub(super) fn new(path: String, table: Table, known: &[&str]) -> Result<Self> {
        let mut wrong = Errors::default();
        let keys = Self::known(path, table, known, &mut wrong);
        wrong.end_of_stage().map(|()| keys)
    }

    /// Takes the known keys, and adds an error for each of the others.
    pub(super) fn known(path: String, mut table: Table, known: &[&str], wrong: &mut Errors) -> Self {
        table.retain(|key, _| {
            let is_known = known.contains(&key);
            if !is_known {
                wrong.add(Error::policy(unknown(&path, key, known)).at(join(&path, key)));
            }
            is_known
        });
        Self { path, table }
    }

    /// Takes the value of `key`, if the file has it, and adds its place to an error of `read`.
    pub(super) fn take<T>(&mut self, key: &str, read: impl FnOnce(Value) -> Result<T>) -> Result<Option<T>> {
        let read = |value| read(value).map_err(|error| error.at(join(&self.path, key)));
        self.table.remove(key).map(read).transpose()
    }

    /// Takes the setting of a parameter, if the file has it, and checks its range.
    pub(super) fn setting(&mut self, key: &str, parameter: &Parameter) -> Result<Option<Setting>> {
        self.take(key, |value| checked_setting(value, parameter))
    }

    /// Takes the settings of the parameters that the file has, and checks their ranges.
    pub(super) fn settings(&mut self, parameters: &[Parameter]) -> Result<Vec<(String, Setting)>> {
        let mut settings = Vec::new();
        for parameter in parameters {
            let setting = self.setting(parameter.name, parameter)?;
            settings.extend(setting.map(|setting| (parameter.name.to_owned(), setting)));
        }
        Ok(settings)
    }
}

/// Says what to do about a key that a table does not have.
fn unknown(path: &str, key: &str, known: &[&str]) -> String {
    // Tables have places of their own.
    let is_of_top = |top: &Key| top.name == key && !top.summary.starts_with("`[");
    if path.is_empty() || closest(key, known).is_some() || !TOP.iter().any(is_of_top) {
        return format!("unknown key; {}", nearest(key, known));
    }
    "unknown key; it is a key of the policy itself: write it above all tables, for instance below `k = ...`"
        .to_owned()
}

/// Joins `path.key`, with quotes where TOML needs them.
pub(super) fn join(path: &str, key: &str) -> String {
    let dot = if path.is_empty() { "" } else { "." };
    format!("{path}{dot}{}", toml_key(key))
}

/// With more open tables the TOML reader could overflow the stack: it limits how deep values nest,
/// but not the text that it skips after a mistake.
const OPEN_TABLES: usize = 100;

/// Refuses a text with too many open braces.
pub(super) fn not_too_deep(text: &str) -> Result<()> {
    let (mut open, mut line) = (0_usize, 1);
    for byte in text.bytes() {
        match byte {
            b'{' => open += 1,
            b'}' => open = open.saturating_sub(1),
            b'\n' => line += 1,
            _ => {}
        }
        if open > OPEN_TABLES {
            return Err(Error::policy(format!(
                "line {line}: more than {OPEN_TABLES} `{{` are open; close them with `}}`"
            )));
        }
    }
    Ok(())
}

pub(super) fn syntax(text: &str, error: &toml::de::Error) -> Error {
    let why = error.message().replace('\n', ", ");
    let before = error.span().and_then(|span| text.get(..span.start));
    match before {
        Some(before) => {
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            Error::policy(format!("line {line}, column {column}: not TOML: {why}"))
        }
        None => Error::policy(format!("not TOML: {why}")),
    }
}

pub(super) fn expected(what: &str, found: &Value) -> Error {
    Error::policy(format!("expected {what}, found {}", shown(found)))
}

/// Describes a value of the file for an error.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the text {text:?}"),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::Datetime(date) => format!("the date {date}"),
        Value::Array(_) => "a list".into(),
        Value::Table(_) => "a table".into(),
    }
}

/// Reads the setting of a parameter, and checks its range.
pub(super) fn checked_setting(value: Value, parameter: &Parameter) -> Result<Setting> {
    let setting = setting(value, parameter.kind)?;
    parameter.check(&setting).map(|()| setting)
}

/// Reads the setting of a parameter of this kind; its range is not checked.
fn setting(value: Value, kind: Kind) -> Result<Setting> {
    match (kind, value) {
        (Kind::Levels(entry), Value::Array(all)) => {
            let entry = |(level, one)| setting(one, *entry).map_err(|error| error.at(of_level(level)));
            (1..).zip(all).map(entry).collect::<Result<_>>().map(Setting::List)
        }
        (Kind::Numbers, Value::Array(all)) => {
            all.into_iter().map(|one| setting(one, Kind::Number)).collect::<Result<_>>().map(Setting::List)
        }
        (Kind::Words, Value::Array(all)) => all
            .into_iter()
            .map(|one| Ok(Setting::Word(string(one)?.into())))
            .collect::<Result<_>>()
            .map(Setting::List),
        (Kind::Nodes, Value::Array(all)) => {
            let node = |(number, one)| node(one).map_err(|error| error.at(of_node(number)));
            (1..).zip(all).map(node).collect::<Result<_>>().map(Setting::List)
        }
        (Kind::Choice(_) | Kind::Word | Kind::File, Value::String(word)) => Ok(Setting::Word(word.into())),
        (
            Kind::Levels(_)
            | Kind::Numbers
            | Kind::Word
            | Kind::Words
            | Kind::Choice(_)
            | Kind::File
            | Kind::Nodes,
            other,
        ) => Err(expected(&kind.range(), &other)),
        (_, value) => number(value).map(Setting::Number),
    }
}

/// Reads `{ age = 1, zip = 2 }`: the levels of columns.
fn node(value: Value) -> Result<Setting> {
    let Value::Table(table) = value else {
        return Err(expected("the levels of columns such as { age = 1, zip = 2 }", &value));
    };
    let levels = table.into_iter().map(|(column, value)| {
        let level = level(value).map_err(|error| error.at(toml_key(&column)))?;
        Ok((column, level))
    });
    levels.collect::<Result<_>>().map(Setting::Node)
}

pub(super) fn string(value: Value) -> Result<String> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(expected("a text", &other)),
    }
}

pub(super) fn boolean(value: Value) -> Result<bool> {
    match value {
        Value::Boolean(boolean) => Ok(boolean),
        other => Err(expected("true or false", &other)),
    }
}

pub(super) fn table_of(value: Value) -> Result<Table> {
    match value {
        Value::Table(table) => Ok(table),
        other => Err(expected("a table", &other)),
    }
}

pub(super) fn tables(value: Value) -> Result<Vec<Table>> {
    match value {
        Value::Array(list) => list.into_iter().map(table_of).collect(),
        other => Err(expected("[[require]] tables (two brackets)", &other)),
    }
}

pub(super) fn number(value: Value) -> Result<Decimal> {
    number_that(&value, "a number", |_| true)
}

/// Reads a number that `fits`; `what` describes such numbers.
fn number_that(value: &Value, what: &str, fits: impl Fn(&Decimal) -> bool) -> Result<Decimal> {
    let number = match value {
        Value::Integer(number) => Decimal::parse(&number.to_string()),
        Value::Float(number) if number.is_finite() => Decimal::from_f64(*number),
        other => return Err(expected(what, other)),
    };
    // An expected number may have too many digits: then the decimal's error says so.
    let number = number.map_err(|error| error.and(&format!(", found {}", shown(value))))?;
    if fits(&number) { Ok(number) } else { Err(expected(what, value)) }
}

/// Reads `[0, 90]`, or `{ from = 0, to = 90 }` with either key left out.
pub(super) fn clip(value: Value) -> Result<Clip> {
    let wrong = || expected("two bounds such as [0, 90], or one such as { from = 0 } or { to = 90 }", &value);
    let end = |value: &Value| number(value.clone());
    match &value {
        Value::Array(ends) => match ends.as_slice() {
            [low, high] => Clip::new(Some(end(low)?), Some(end(high)?)),
            _ => Err(wrong()),
        },
        Value::Table(table) if table.keys().all(|key| key == "from" || key == "to") => {
            let end = |key: &str| table.get(key).map(end).transpose().map_err(|error| error.at(key));
            Clip::new(end("from")?, end("to")?)
        }
        _ => Err(wrong()),
    }
}

pub(super) fn words(value: Value) -> Result<Vec<String>> {
    match value {
        Value::Array(list) => list.into_iter().map(string).collect(),
        other => Err(expected("a list of texts", &other)),
    }
}

pub(super) fn level(value: Value) -> Result<usize> {
    let number = value.as_integer().and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| expected("the number of a level, 0 or above", &value))
}

pub(super) fn weight(value: Value) -> Result<f64> {
    let weight = number_that(&value, "a number above 0", |weight| weight.is_positive())?;
    Ok(weight.to_f64())
}

pub(super) fn share(value: Value) -> Result<Decimal> {
    let all = Decimal::integer(0)..=Decimal::integer(1);
    number_that(&value, "a share from 0 to 1, such as 0.05", |share| all.contains(share))
}

/// Reads a day as text or as a date of TOML.
pub(super) fn day(value: Value) -> Result<String> {
    let text = match value {
        Value::Datetime(day) => day.to_string(),
        other => string(other)?,
    };
    parse_day(&text).map_err(Error::policy)
}

/// Reads a day as policies and the command line give it.
///
/// # Errors
/// What is expected.
pub fn parse_day(text: &str) -> Result<String, String> {
    match NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        Ok(day) if day.to_string() == text => Ok(text.to_owned()),
        _ => Err("expected a day such as 2026-11-24".to_owned()),
    }
}

pub(super) fn objective(value: Value) -> Result<LossRow> {
    let name = string(value)?;
    find(measure::losses(), LossMeasure::doc, &name)
        .map_err(|valid| Error::policy(format!("unknown loss measure `{name}`; {valid}")))
}

pub(super) fn others(value: Value) -> Result<()> {
    match value.as_str() {
        Some("drop") => Ok(()),
        _ => Err(Error::policy(format!(
            "{}; columns without a role cannot be released",
            expected("\"drop\"", &value)
        ))),
    }
}

/// Reads `"global"`: all rows show the column at one level.
pub(super) fn global(value: Value) -> Result<()> {
    match value.as_str() {
        Some("global") => Ok(()),
        _ => Err(expected("\"global\"", &value)),
    }
}

pub(super) fn role(value: Value) -> Result<Role> {
    let word = string(value)?;
    Role::parse(&word).map_err(|why| Error::policy(format!("found `{word}`; {why}")))
}

/// Reads the name of the column from whose dates days are counted, for a column with this role.
pub(super) fn relative_to(value: Value, role: Role) -> Result<String> {
    if role.is_released() {
        return string(value);
    }
    Err(Error::policy(format!(
        "only released columns can have this key; this column's role is `{}`",
        role.word()
    )))
}

pub(super) fn delimiter(value: Value) -> Result<u8> {
    match value.as_str().map(str::as_bytes) {
        Some([byte]) if byte.is_ascii() && !b"\"\r\n\0".contains(byte) => Ok(*byte),
        _ => Err(expected("one ASCII character other than a quote or a line end", &value)),
    }
}

/// Returns whether a column's role is `?`.
pub(super) fn is_undecided(column: &Value) -> bool {
    column.get("role").and_then(Value::as_str) == Some("?")
}

/// Checks that no more than one column is undecided; its own line says so of one.
pub(super) fn all_are_decided(columns: &Table) -> Result<()> {
    let open = columns.iter().filter(|(_, column)| is_undecided(column));
    let open: Vec<&str> = open.map(|(name, _)| name.as_str()).collect();
    match open.as_slice() {
        [] | [_] => Ok(()),
        open => {
            let words = Role::ALL.map(|(_, word)| word).join(", ");
            Err(Error::policy(format!(
                "still undecided: {}; replace each `?` with one of {words}",
                open.join(", ")
            ))
            .at("columns"))
        }
    }
}
/// The number of columns that an error names.
const SHOWN: usize = 10;

/// Lists the first few names.
pub(super) fn some(names: &[&str]) -> String {
    match names.get(..SHOWN) {
        Some(first) if names.len() > SHOWN => {
            format!("{} and {} more", first.join(", "), names.len() - SHOWN)
        }
        _ => names.join(", "),
    }
}
