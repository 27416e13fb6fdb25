//! What a policy says: the TOML file as typed values. Every key is known, every shape is right, and nothing
//! was opened: neither the table nor a hierarchy file.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::DataType;
use toml::{Table, Value};

use crate::decimal::Decimal;
use crate::doc::{Doc, find};
use crate::error::{Error, Result, nearest};
use crate::generalize::{Argument, GENERALIZERS, Generalizer, GeneralizerRow, Takes};
use crate::measure::{LOSSES, LossRow, granularity::Granularity};
use crate::method::METHODS;
use crate::model::{self, MODELS, Model, Parameters, k_anonymity};
use crate::role::Role;

/// What a policy file says.
///
/// ```
/// use datafusion_kanon::policy::Said;
/// let said = Said::parse(r#"
///     k = 5
///     [columns]
///     zip       = { role = "quasi", hierarchy = { prefix = [4, 3, 2, 1] }, weight = 2.0 }
///     sex       = { role = "quasi" }
///     diagnosis = { role = "insensitive" }
/// "#)?;
/// assert_eq!(said.columns()[0].name(), "zip");
/// let wrong = Said::parse("k = 5\n[columns]\nzip = { rule = \"quasi\" }");
/// assert_eq!(wrong.unwrap_err().to_string(), "columns.zip.rule: unknown key; did you mean `role`?");
/// # Ok::<(), datafusion_kanon::error::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Said {
    pub(super) required: Vec<Required>,
    pub(super) suppression_limit: Decimal,
    pub(super) objective: LossRow,
    pub(super) method: String,
    pub(super) others_are_dropped: bool,
    pub(super) rows_are_individuals: bool,
    pub(super) accept_homogeneity: Vec<String>,
    pub(super) columns: Vec<SaidColumn>,
    csv: CsvOptions,
}

/// A model that is required, not made yet; making it was tried.
#[derive(Debug, Clone)]
pub(super) struct Required {
    /// `require[0]`; nothing for the short form `k = ...`, whose parameter is its own place.
    path: Option<String>,
    model: &'static str,
    parameters: Parameters,
}

/// A column as the policy says it.
#[derive(Debug, Clone)]
pub struct SaidColumn {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) hierarchy: Option<SaidHierarchy>,
    pub(super) weight: f64,
    pub(super) min_level: usize,
    pub(super) max_level: Option<usize>,
}

/// The hierarchy of a column as the policy says it.
#[derive(Clone)]
pub struct SaidHierarchy {
    pub(super) row: &'static GeneralizerRow,
    pub(super) key: &'static str,
    pub(super) levels: SaidLevels,
}

/// The levels of a hierarchy, or where they are.
#[derive(Debug, Clone)]
pub(super) enum SaidLevels {
    /// Made of the policy's own words and numbers.
    Made(Vec<Arc<dyn Generalizer>>),
    /// In a file of this name.
    File(String),
}

/// How a CSV input is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvOptions {
    /// The one ASCII character between two cells.
    pub delimiter: u8,
    /// Whether the first line holds the column names.
    pub header: bool,
    /// The cells that stand for NULL.
    pub nulls: Vec<String>,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self { delimiter: b',', header: true, nulls: vec![String::new()] }
    }
}

/// How the cells of a CSV column are to be read, so that the column's hierarchy can work on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsvType {
    /// As they are written: 02139 keeps its zero.
    Text,
    /// As numbers.
    Number,
    /// As dates.
    Date,
}

const TOP: &[&str] = &[
    "k",
    "suppression_limit",
    "objective",
    "method",
    "others",
    "rows_are_individuals",
    "accept_homogeneity",
    "suppressed_rows",
    "require",
    "columns",
    "input",
];
/// Keys of the manual that have no code yet.
const REQUIRE_LATER: &[&str] = &["sensitive", "quasi"];
const COLUMN: &[&str] = &["role", "hierarchy", "weight", "min_level", "max_level"];
/// Those of [`COLUMN`] that only a quasi-identifier has.
const QUASI_ONLY: &[&str] = &["hierarchy", "weight", "min_level", "max_level"];
const COLUMN_LATER: &[&str] = &["clip", "allow_unique"];
const INPUT: &[&str] = &["delimiter", "header", "nulls"];

impl Said {
    /// Reads a policy.
    ///
    /// # Errors
    /// A policy error that names the key, or the line where the text is no TOML.
    pub fn parse(text: &str) -> Result<Self> {
        let table: Table = toml::from_str(text).map_err(|error| syntax(text, &error))?;
        let mut keys = Keys::new(String::new(), table, TOP, &[])?;
        let mut required: Vec<Required> = keys.take("k", short_k)?.into_iter().collect();
        let longer = keys.take("require", tables)?.unwrap_or_default();
        for (index, table) in longer.into_iter().enumerate() {
            required.push(Required::read(format!("require[{index}]"), table)?);
        }
        let columns = keys.take("columns", table_of)?.unwrap_or_default();
        let said = Self {
            required,
            suppression_limit: keys.take("suppression_limit", share)?.unwrap_or(Decimal::integer(0)),
            objective: keys.take("objective", objective)?.unwrap_or(&Granularity),
            method: keys.take("method", method)?.unwrap_or_else(|| AUTO.into()),
            others_are_dropped: keys.take("others", others)?.is_some(),
            rows_are_individuals: keys.take("rows_are_individuals", boolean)?.unwrap_or(false),
            accept_homogeneity: keys.take("accept_homogeneity", words)?.unwrap_or_default(),
            columns: columns
                .into_iter()
                .map(|(name, value)| SaidColumn::read(name, value))
                .collect::<Result<_>>()?,
            csv: keys.take("input", Ok)?.map_or_else(|| Ok(CsvOptions::default()), CsvOptions::read)?,
        };
        keys.take("suppressed_rows", suppressed_rows)?;
        said.check_required()?;
        Ok(said)
    }

    /// The policy of a question without a file: these quasi-identifiers as they are, all other columns left
    /// out, k-anonymity.
    ///
    /// # Errors
    /// A policy error when no column is named, one is named twice or k is impossible.
    pub fn quick(quasi: &[String], k: u64) -> Result<Self> {
        if quasi.is_empty() {
            return Err(Error::policy("expected the name of at least one quasi-identifier"));
        }
        if let Some((_, twice)) = quasi.iter().enumerate().find(|(at, name)| quasi[..*at].contains(name)) {
            return Err(Error::policy(format!("the quasi-identifier `{twice}` is named twice")));
        }
        let k = i64::try_from(k).map_err(|_| Error::policy(format!("k: {k} is too large")))?;
        let said = Self {
            required: vec![short_k(Value::Integer(k)).map_err(|error| error.at("k"))?],
            suppression_limit: Decimal::integer(0),
            objective: &Granularity,
            method: AUTO.into(),
            others_are_dropped: true,
            rows_are_individuals: false,
            accept_homogeneity: Vec::new(),
            columns: quasi.iter().map(|name| SaidColumn::new(name.clone(), Role::Quasi)).collect(),
            csv: CsvOptions::default(),
        };
        said.check_required()?;
        Ok(said)
    }

    /// How a CSV input is written.
    pub fn csv(&self) -> &CsvOptions {
        &self.csv
    }

    /// The columns in the order of the file.
    pub fn columns(&self) -> &[SaidColumn] {
        &self.columns
    }

    /// The column `name`, if the policy speaks of it.
    pub fn column(&self, name: &str) -> Option<&SaidColumn> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// How the cells of the CSV column `name` are to be read: text, unless its hierarchy cannot work on text.
    pub fn csv_type(&self, name: &str) -> CsvType {
        let hierarchy = self.column(name).and_then(|column| column.hierarchy.as_ref());
        match hierarchy.map(|hierarchy| &hierarchy.levels) {
            Some(SaidLevels::Made(levels)) => {
                let takes =
                    |data_type| levels.first().is_none_or(|level| level.output_type(&data_type).is_ok());
                match (takes(DataType::Utf8View), takes(DataType::Date32)) {
                    (true, _) => CsvType::Text,
                    (_, true) => CsvType::Date,
                    _ => CsvType::Number,
                }
            }
            Some(SaidLevels::File(_)) | None => CsvType::Text,
        }
    }

    /// The names of the hierarchy files, in the order of the columns, each once.
    pub fn hierarchy_files(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for hierarchy in self.columns.iter().filter_map(|column| column.hierarchy.as_ref()) {
            match &hierarchy.levels {
                SaidLevels::File(name) if !names.contains(&name.as_str()) => names.push(name),
                _ => {}
            }
        }
        names
    }

    fn check_required(&self) -> Result<()> {
        let k_anonymity = k_anonymity::ROW.doc.name;
        for (at, one) in self.required.iter().enumerate() {
            let Some(path) = one.path.as_deref() else { continue };
            if let Some(other) = self.required[..at].iter().find(|other| other.model == one.model) {
                let first = other.path.as_deref().unwrap_or("k");
                return Err(Error::policy(format!(
                    "`{}` is required by `{first}` too; keep one of them",
                    one.model
                ))
                .at(path));
            }
        }
        match self.required.as_slice() {
            [] => Err(Error::policy("a policy needs `k = ...` or a [[require]]")),
            [only] if only.model == k_anonymity && only.parameters == k_of(Decimal::integer(1)) => {
                let error = Error::policy(
                    "1 promises nothing by itself; say a k of at least 2, or add a [[require]] with another model",
                );
                Err(error.at(only.path.as_deref().map_or_else(|| "k".into(), |path| join(path, "k"))))
            }
            _ => Ok(()),
        }
    }
}

impl Required {
    fn read(path: String, mut table: Table) -> Result<Self> {
        let at = |error: Error| error.at(join(&path, "model"));
        let name = match table.remove("model") {
            Some(value) => string(value).map_err(at)?,
            None => return Err(Error::policy("expected `model = ...`").at(&path)),
        };
        let row = find(MODELS, |row| row.doc, &name)
            .map_err(|valid| at(Error::policy(format!("there is no model `{name}`; {valid}"))))?;
        let known: Vec<&str> = [&["model"], row.parameters].concat();
        let mut keys = Keys::new(path.clone(), table, &known, REQUIRE_LATER)?;
        let mut parameters = Vec::new();
        for parameter in row.parameters {
            if let Some(value) = keys.take(parameter, number)? {
                parameters.push(((*parameter).to_owned(), value));
            }
        }
        let required =
            Self { path: Some(path), model: row.doc.name, parameters: Parameters::new(parameters) };
        required.make()?;
        Ok(required)
    }

    /// Makes the model.
    pub(super) fn make(&self) -> Result<Model> {
        model::make(self.model, self.parameters.clone()).map_err(|error| match &self.path {
            Some(path) => error.at(path),
            None => error,
        })
    }

    /// Where the policy requires it, for an error.
    pub(super) fn place(&self) -> &str {
        self.path.as_deref().unwrap_or("k")
    }
}

impl SaidColumn {
    fn new(name: String, role: Role) -> Self {
        Self { name, role, hierarchy: None, weight: 1.0, min_level: 0, max_level: None }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The hierarchy, where one is said.
    pub fn hierarchy(&self) -> Option<&SaidHierarchy> {
        self.hierarchy.as_ref()
    }

    /// The place of this column in the policy, for errors: `columns.zip`.
    pub(super) fn path(&self) -> String {
        join("columns", &self.name)
    }

    fn read(name: String, value: Value) -> Result<Self> {
        let path = join("columns", &name);
        let Value::Table(table) = value else {
            let hint = if TOP.contains(&name.as_str()) {
                "; keys of the policy itself stand above `[columns]`"
            } else {
                ""
            };
            let error = expected("a table such as { role = \"quasi\" }", &value);
            return Err(Error::policy(format!("{error}{hint}")).at(path));
        };
        let mut keys = Keys::new(path.clone(), table, COLUMN, COLUMN_LATER)?;
        let Some(role) = keys.take("role", role)? else {
            let words = Role::ALL.map(|(_, word)| word).join(", ");
            return Err(Error::policy(format!("expected `role = ...`, one of {words}")).at(path));
        };
        if let Some(key) = QUASI_ONLY.iter().find(|key| role != Role::Quasi && keys.table.contains_key(**key))
        {
            let why = format!(
                "only a column with the role `quasi` has it; this column's role is `{}`",
                role.word()
            );
            return Err(Error::policy(why).at(join(&path, key)));
        }
        let read = |value| SaidHierarchy::read(&join(&path, "hierarchy"), value);
        let mut column = Self::new(name, role);
        // Its errors already say their place.
        column.hierarchy = keys.table.remove("hierarchy").map(read).transpose()?;
        column.weight = keys.take("weight", weight)?.unwrap_or(column.weight);
        column.min_level = keys.take("min_level", level)?.unwrap_or(column.min_level);
        column.max_level = keys.take("max_level", level)?;
        Ok(column)
    }
}

impl SaidHierarchy {
    /// The key in `hierarchy = { key = ... }`.
    pub fn key(&self) -> &'static str {
        self.key
    }

    fn read(path: &str, value: Value) -> Result<Self> {
        let rows: Vec<_> = GENERALIZERS.iter().filter_map(|row| row.key.map(|key| (key, row))).collect();
        let known: Vec<&str> = rows.iter().map(|(key, _)| *key).collect();
        let table = table_of(value).map_err(|error| error.at(path))?;
        let keys = Keys::new(path.to_owned(), table, &known, &[])?;
        let said: Vec<&str> = keys.table.keys().map(String::as_str).collect();
        let row = rows.iter().find(|(key, _)| said == [*key]);
        let Some(((key, row), (_, value))) = row.zip(keys.table.iter().next()) else {
            let found = if said.is_empty() { "none".into() } else { said.join(" and ") };
            let why = format!("expected exactly one of the keys {}; found {found}", known.join(", "));
            return Err(Error::policy(why).at(path));
        };
        let levels = Self::levels(row, value.clone()).map_err(|error| error.at(join(path, key)))?;
        Ok(Self { row, key, levels })
    }

    fn levels(row: &GeneralizerRow, value: Value) -> Result<SaidLevels> {
        let argument = match row.takes {
            Takes::Numbers => Argument::Numbers(numbers(value)?),
            Takes::Words => Argument::Words(words(value)?),
            Takes::Table => {
                let Value::String(name) = value else {
                    return Err(expected("the name of a file", &value));
                };
                if name.is_empty() {
                    return Err(Error::policy("expected the name of a file, found an empty text"));
                }
                return Ok(SaidLevels::File(name));
            }
            Takes::Nothing => return Err(Error::internal("a generalizer without an argument has no key")),
        };
        if matches!(&argument, Argument::Numbers(list) if list.is_empty())
            || matches!(&argument, Argument::Words(list) if list.is_empty())
        {
            return Err(Error::policy("expected at least one level, found an empty list"));
        }
        (row.levels)(&argument).map(SaidLevels::Made)
    }
}

impl fmt::Debug for SaidHierarchy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaidHierarchy").field("key", &self.key).field("levels", &self.levels).finish()
    }
}

impl CsvOptions {
    fn read(value: Value) -> Result<Self> {
        let table = table_of(value).map_err(|error| error.at("input"))?;
        let mut keys = Keys::new("input".into(), table, INPUT, &[])?;
        let default = Self::default();
        Ok(Self {
            delimiter: keys.take("delimiter", delimiter)?.unwrap_or(default.delimiter),
            header: keys.take("header", boolean)?.unwrap_or(default.header),
            nulls: keys.take("nulls", words)?.unwrap_or(default.nulls),
        })
    }
}

/// A table of the file, all of whose keys are known, with its place.
struct Keys {
    path: String,
    table: Table,
}

impl Keys {
    fn new(path: String, table: Table, known: &[&str], later: &[&str]) -> Result<Self> {
        match table.keys().map(String::as_str).find(|key| !known.contains(key)) {
            None => Ok(Self { path, table }),
            Some(key) if later.contains(&key) => {
                Err(Error::policy("not built yet (a later version)").at(join(&path, key)))
            }
            Some(key) => {
                Err(Error::policy(format!("unknown key; {}", nearest(key, known))).at(join(&path, key)))
            }
        }
    }

    /// Takes the value of `key`, if it is said; an error of `read` gets its place.
    fn take<T>(&mut self, key: &str, read: impl FnOnce(Value) -> Result<T>) -> Result<Option<T>> {
        let read = |value| read(value).map_err(|error| error.at(join(&self.path, key)));
        self.table.remove(key).map(read).transpose()
    }
}

/// `path.key`, with quotes where TOML needs them.
pub(super) fn join(path: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let dot = if path.is_empty() { "" } else { "." };
    if bare { format!("{path}{dot}{key}") } else { format!("{path}{dot}{key:?}") }
}

fn syntax(text: &str, error: &toml::de::Error) -> Error {
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

fn expected(what: &str, found: &Value) -> Error {
    let found = match found {
        Value::String(text) => format!("the text {text:?}"),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::Datetime(date) => format!("the date {date}"),
        Value::Array(_) => "a list".into(),
        Value::Table(_) => "a table".into(),
    };
    Error::policy(format!("expected {what}, found {found}"))
}

fn string(value: Value) -> Result<String> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(expected("a text", &other)),
    }
}

fn boolean(value: Value) -> Result<bool> {
    match value {
        Value::Boolean(boolean) => Ok(boolean),
        other => Err(expected("true or false", &other)),
    }
}

fn table_of(value: Value) -> Result<Table> {
    match value {
        Value::Table(table) => Ok(table),
        other => Err(expected("a table", &other)),
    }
}

fn tables(value: Value) -> Result<Vec<Table>> {
    match value {
        Value::Array(list) => list.into_iter().map(table_of).collect(),
        other => Err(expected("[[require]] tables (two brackets)", &other)),
    }
}

fn number(value: Value) -> Result<Decimal> {
    match value {
        Value::Integer(number) => Decimal::parse(&number.to_string()),
        Value::Float(number) => Decimal::from_f64(number),
        other => Err(expected("a number", &other)),
    }
}

fn numbers(value: Value) -> Result<Vec<Decimal>> {
    match value {
        Value::Array(list) => list.into_iter().map(number).collect(),
        other => Err(expected("a list of numbers, one a level, finest first", &other)),
    }
}

fn words(value: Value) -> Result<Vec<String>> {
    match value {
        Value::Array(list) => list.into_iter().map(string).collect(),
        other => Err(expected("a list of texts", &other)),
    }
}

fn level(value: Value) -> Result<usize> {
    let number = value.as_integer().and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| expected("the number of a level, 0 or above", &value))
}

fn weight(value: Value) -> Result<f64> {
    let wrong = expected("a number above 0", &value);
    number(value).ok().filter(|weight| weight.is_positive()).map(Decimal::to_f64).ok_or(wrong)
}

fn share(value: Value) -> Result<Decimal> {
    let wrong = expected("a share from 0 to 1, such as 0.05", &value);
    let all = Decimal::integer(0)..=Decimal::integer(1);
    number(value).ok().filter(|share| all.contains(share)).ok_or(wrong)
}

fn k_of(k: Decimal) -> Parameters {
    Parameters::new(vec![("k".into(), k)])
}

/// `k = 5`, short for a `[[require]]` of k-anonymity.
fn short_k(value: Value) -> Result<Required> {
    let k = match value {
        Value::Integer(k) if k >= 1 => Decimal::integer(k),
        Value::String(text) if text.parse::<i64>().is_ok() => {
            let why = format!(
                "expected an integer of at least 1, found the text {text:?}; write it without quotes"
            );
            return Err(Error::policy(why));
        }
        other => return Err(expected("an integer of at least 1", &other)),
    };
    Ok(Required { path: None, model: k_anonymity::ROW.doc.name, parameters: k_of(k) })
}

fn objective(value: Value) -> Result<LossRow> {
    let name = string(value)?;
    let doc = |row: &LossRow| -> &'static Doc { row.doc() };
    find(LOSSES, doc, &name)
        .copied()
        .map_err(|valid| Error::policy(format!("there is no loss measure `{name}`; {valid}")))
}

/// The method that is chosen by the problem.
const AUTO: &str = "auto";

fn method(value: Value) -> Result<String> {
    let name = string(value)?;
    let names: Vec<&str> = std::iter::once(AUTO).chain(METHODS.iter().map(|row| row.doc().name)).collect();
    if names.contains(&name.as_str()) {
        return Ok(name);
    }
    Err(Error::policy(format!("there is no method `{name}`; {}", nearest(&name, &names))))
}

fn others(value: Value) -> Result<()> {
    match value.as_str() {
        Some("drop") => Ok(()),
        _ => Err(Error::policy(format!(
            "{}; there is no way to release columns without a role",
            expected("\"drop\"", &value)
        ))),
    }
}

fn suppressed_rows(value: Value) -> Result<()> {
    match value.as_str() {
        Some("drop") => Ok(()),
        Some("blank") => {
            Err(Error::policy("\"blank\" is not built yet (a later version); the rows are dropped"))
        }
        _ => Err(expected("\"drop\"", &value)),
    }
}

fn role(value: Value) -> Result<Role> {
    let word = string(value)?;
    Role::parse(&word).map_err(|why| Error::policy(format!("found `{word}`; {why}")))
}

fn delimiter(value: Value) -> Result<u8> {
    match value.as_str().map(str::as_bytes) {
        Some([byte]) if byte.is_ascii() && !b"\"\r\n\0".contains(byte) => Ok(*byte),
        _ => Err(expected("one ASCII character other than a quote or a line end", &value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let error = Said::parse(text).unwrap_err();
        assert_eq!(error.kind(), crate::error::Kind::Policy, "{error}");
        error.to_string()
    }

    /// The error of a policy with this line among the columns.
    fn column(line: &str) -> String {
        error(&format!("k = 5\n[columns]\n{line}"))
    }

    /// The policy of the manual without what is not built.
    const FULL: &str = r#"
        k = 5
        suppression_limit = 0.1
        objective = "granularity"
        method = "auto"
        others = "drop"
        rows_are_individuals = true
        accept_homogeneity = ["diagnosis"]
        suppressed_rows = "drop"

        [columns]
        ssn        = { role = "identifier" }
        dob        = { role = "quasi", hierarchy = { date = ["month", "year", "decade"] }, min_level = 1 }
        zip        = { role = "quasi", hierarchy = { prefix = [4, 3, 2, 1] }, weight = 2.0 }
        sex        = { role = "quasi" }
        marital    = { role = "quasi", hierarchy = { file = "marital.csv" } }
        age        = { role = "quasi", hierarchy = { range = [5, 10, 20, 40] }, max_level = 4 }
        income     = { role = "quasi", hierarchy = { floor = [10, 100, 1000] } }
        diagnosis  = { role = "sensitive" }
        notes      = { role = "text" }
        "a b"      = { role = "insensitive" }

        [input]
        delimiter = ";"
        header = false
        nulls = ["", "?"]
    "#;

    #[test]
    fn the_policy_of_the_manual() {
        let said = Said::parse(FULL).unwrap();
        let names: Vec<&str> = said.columns().iter().map(SaidColumn::name).collect();
        let order = ["ssn", "dob", "zip", "sex", "marital", "age", "income", "diagnosis", "notes", "a b"];
        assert_eq!(names, order);
        assert_eq!(said.suppression_limit.to_string(), "0.1");
        let csv = CsvOptions { delimiter: b';', header: false, nulls: vec![String::new(), "?".into()] };
        assert_eq!(said.csv(), &csv);
        assert_eq!(said.hierarchy_files(), ["marital.csv"]);
        let types: Vec<CsvType> = names.iter().map(|name| said.csv_type(name)).collect();
        use CsvType::{Date, Number, Text};
        assert_eq!(types, [Text, Date, Text, Text, Text, Number, Number, Text, Text, Text]);
        let zip = said.column("zip").unwrap();
        assert_eq!(
            (zip.role(), zip.hierarchy().unwrap().key(), zip.max_level),
            (Role::Quasi, "prefix", None)
        );
        assert_eq!(zip.weight.to_string(), "2");
    }

    #[test]
    fn what_is_not_said_has_its_default() {
        let said = Said::parse("k = 5").unwrap();
        assert_eq!(said.suppression_limit, Decimal::integer(0));
        assert_eq!((said.objective.doc().name, said.method.as_str()), ("granularity", "auto"));
        assert!(!said.others_are_dropped && !said.rows_are_individuals && said.columns().is_empty());
        assert_eq!(said.csv(), &CsvOptions { delimiter: b',', header: true, nulls: vec![String::new()] });
    }

    #[test]
    fn unknown_keys_get_the_nearest_one_at_every_depth() {
        assert_eq!(
            error("supression_limit = 0"),
            "supression_limit: unknown key; did you mean `suppression_limit`?"
        );
        assert_eq!(
            column("zip = { rule = \"quasi\" }"),
            "columns.zip.rule: unknown key; did you mean `role`?"
        );
        assert_eq!(
            column("\"z.p\" = { role = \"quasi\", hierarchy = { prefx = [1] } }"),
            "columns.\"z.p\".hierarchy.prefx: unknown key; did you mean `prefix`?"
        );
        assert_eq!(error("k = 5\n[input]\nnull = []"), "input.null: unknown key; did you mean `nulls`?");
        assert_eq!(
            error("[[require]]\nmodel = \"k_anonymity\"\nkk = 5"),
            "require[0].kk: unknown key; did you mean `k`?"
        );
        let bands = column("bmi = { role = \"quasi\", hierarchy = { bands = [[1]] } }");
        assert!(bands.starts_with("columns.bmi.hierarchy.bands: unknown key; valid: date, "), "{bands}");
    }

    #[test]
    fn impossible_k() {
        for (k, found) in
            [("0", "0"), ("-1", "-1"), ("2.5", "2.5"), ("5.0", "5.0"), ("true", "true"), ("[5]", "a list")]
        {
            assert_eq!(
                error(&format!("k = {k}")),
                format!("k: expected an integer of at least 1, found {found}")
            );
        }
        assert_eq!(
            error("k = \"5\""),
            "k: expected an integer of at least 1, found the text \"5\"; write it without quotes"
        );
        assert_eq!(error("[columns]"), "a policy needs `k = ...` or a [[require]]");
        let alone =
            "1 promises nothing by itself; say a k of at least 2, or add a [[require]] with another model";
        assert_eq!(error("k = 1"), format!("k: {alone}"));
        assert_eq!(error("[[require]]\nmodel = \"k_anonymity\"\nk = 1"), format!("require[0].k: {alone}"));
        assert!(Said::parse(&format!("k = {}", i64::MAX)).is_ok());
    }

    #[test]
    fn requirements() {
        let k_anonymity = "[[require]]\nmodel = \"k_anonymity\"\n";
        assert!(Said::parse(&format!("{k_anonymity}k = 5")).is_ok());
        assert_eq!(
            error(&format!("k = 5\n{k_anonymity}k = 6")),
            "require[0]: `k_anonymity` is required by `k` too; keep one of them"
        );
        assert_eq!(
            error(&format!("{k_anonymity}k = 5\n{k_anonymity}k = 6")),
            "require[1]: `k_anonymity` is required by `require[0]` too; keep one of them"
        );
        assert_eq!(
            error(&format!("{k_anonymity}k = 0")),
            "require[0]: k: expected an integer of at least 1, found 0"
        );
        assert_eq!(
            error(&format!("{k_anonymity}k = \"x\"")),
            "require[0].k: expected a number, found the text \"x\""
        );
        assert_eq!(error(k_anonymity), "require[0]: the parameter `k` is missing");
        assert_eq!(
            error(&format!("{k_anonymity}k = 5\nsensitive = \"x\"")),
            "require[0].sensitive: not built yet (a later version)"
        );
        assert_eq!(error("[[require]]\nk = 5"), "require[0]: expected `model = ...`");
        assert_eq!(
            error("[[require]]\nmodel = \"k_anonimity\""),
            "require[0].model: there is no model `k_anonimity`; did you mean `k_anonymity`?"
        );
        assert_eq!(
            error("[require]\nmodel = \"k_anonymity\""),
            "require: expected [[require]] tables (two brackets), found a table"
        );
    }

    #[test]
    fn suppression_limits() {
        for (said, found) in
            [("1.5", "1.5"), ("-0.1", "-0.1"), ("\"x\"", "the text \"x\""), ("2", "2"), ("nan", "NaN")]
        {
            assert_eq!(
                error(&format!("k = 5\nsuppression_limit = {said}")),
                format!("suppression_limit: expected a share from 0 to 1, such as 0.05, found {found}")
            );
        }
        for (said, meant) in [("0.29", "0.29"), ("1", "1"), ("0.0", "0"), ("5e-2", "0.05")] {
            let said = Said::parse(&format!("k = 5\nsuppression_limit = {said}")).unwrap();
            assert_eq!(said.suppression_limit.to_string(), meant);
        }
    }

    #[test]
    fn names_of_measures_and_methods() {
        assert_eq!(
            error("k = 5\nobjective = \"granularty\""),
            "objective: there is no loss measure `granularty`; did you mean `granularity`?"
        );
        assert_eq!(
            error("k = 5\nmethod = \"optimum\""),
            "method: there is no method `optimum`; did you mean `optimal`?"
        );
        assert_eq!(
            error("k = 5\nothers = \"keep\""),
            "others: expected \"drop\", found the text \"keep\"; there is no way to release columns without a role"
        );
        assert_eq!(
            error("k = 5\nsuppressed_rows = \"blank\""),
            "suppressed_rows: \"blank\" is not built yet (a later version); the rows are dropped"
        );
        assert_eq!(
            error("k = 5\nrows_are_individuals = 1"),
            "rows_are_individuals: expected true or false, found 1"
        );
    }

    #[test]
    fn roles() {
        assert_eq!(
            column("zip = { role = \"quazi\" }"),
            "columns.zip.role: found `quazi`; did you mean `quasi`?"
        );
        assert_eq!(
            column("zip = { role = \"?\" }"),
            "columns.zip.role: found `?`; still undecided: put one of identifier, quasi, sensitive, text, \
             insensitive in place of `?`"
        );
        assert!(column("id = { role = \"individual\" }").starts_with(
            "columns.id.role: found `individual`; the role `individual` is not built yet; mark the column"
        ));
        assert_eq!(
            column("zip = {}"),
            "columns.zip: expected `role = ...`, one of identifier, quasi, sensitive, text, insensitive"
        );
        assert_eq!(
            column("zip = \"quasi\""),
            "columns.zip: expected a table such as { role = \"quasi\" }, found the text \"quasi\""
        );
        assert_eq!(
            column("others = \"drop\""),
            "columns.others: expected a table such as { role = \"quasi\" }, found the text \"drop\"; keys of the \
             policy itself stand above `[columns]`"
        );
    }

    #[test]
    fn keys_of_quasi_identifiers_only() {
        for line in ["hierarchy = { prefix = [1] }", "weight = 2", "min_level = 0", "max_level = 3"] {
            let key = line.split(' ').next().unwrap();
            assert_eq!(
                column(&format!("notes = {{ role = \"text\", {line} }}")),
                format!(
                    "columns.notes.{key}: only a column with the role `quasi` has it; this column's role is `text`"
                )
            );
        }
        assert_eq!(
            column("age = { role = \"quasi\", clip = [0, 90] }"),
            "columns.age.clip: not built yet (a later version)"
        );
        for wrong in ["0", "-1", "nan", "inf", "\"x\""] {
            let found = column(&format!("age = {{ role = \"quasi\", weight = {wrong} }}"));
            assert!(found.starts_with("columns.age.weight: expected a number above 0, found "), "{found}");
        }
        assert_eq!(
            column("age = { role = \"quasi\", min_level = -1 }"),
            "columns.age.min_level: expected the number of a level, 0 or above, found -1"
        );
        assert_eq!(
            column("age = { role = \"quasi\", max_level = 1.5 }"),
            "columns.age.max_level: expected the number of a level, 0 or above, found 1.5"
        );
    }

    #[test]
    fn shapes_of_hierarchies() {
        let hierarchy = |said: &str| column(&format!("zip = {{ role = \"quasi\", hierarchy = {said} }}"));
        assert_eq!(
            hierarchy("{ prefix = 3 }"),
            "columns.zip.hierarchy.prefix: expected a list of numbers, one a level, finest first, found 3"
        );
        assert_eq!(
            hierarchy("{ prefix = [3, \"2\"] }"),
            "columns.zip.hierarchy.prefix: expected a number, found the text \"2\""
        );
        assert_eq!(
            hierarchy("{ date = \"year\" }"),
            "columns.zip.hierarchy.date: expected a list of texts, found the text \"year\""
        );
        assert_eq!(
            hierarchy("{ file = [1] }"),
            "columns.zip.hierarchy.file: expected the name of a file, found a list"
        );
        assert_eq!(
            hierarchy("{ range = [] }"),
            "columns.zip.hierarchy.range: expected at least one level, found an empty list"
        );
        assert_eq!(
            hierarchy("\"zip.csv\""),
            "columns.zip.hierarchy: expected a table, found the text \"zip.csv\""
        );
        let two = hierarchy("{ range = [5], floor = [5] }");
        assert!(two.starts_with("columns.zip.hierarchy: expected exactly one of the keys date, "), "{two}");
        assert!(two.ends_with("; found range and floor"), "{two}");
        assert!(hierarchy("{}").ends_with("; found none"));
        let unit = hierarchy("{ date = [\"mounth\"] }");
        assert!(unit.starts_with("columns.zip.hierarchy.date: "), "{unit}");
    }

    #[test]
    fn every_generalizer_with_a_key_can_stand_in_a_policy() {
        for row in GENERALIZERS {
            let Some(key) = row.key else { continue };
            let shape = match row.takes {
                Takes::Numbers => "true",
                Takes::Words | Takes::Table | Takes::Nothing => "7",
            };
            let found = column(&format!("zip = {{ role = \"quasi\", hierarchy = {{ {key} = {shape} }} }}"));
            assert!(found.starts_with(&format!("columns.zip.hierarchy.{key}: expected ")), "{found}");
        }
    }

    #[test]
    fn csv_options() {
        let input = |line: &str| error(&format!("k = 5\n[input]\n{line}"));
        for (said, found) in [
            ("\";;\"", "the text \";;\""),
            ("\"é\"", "the text \"é\""),
            ("7", "7"),
            ("'\"'", "the text \"\\\"\""),
        ] {
            assert_eq!(
                input(&format!("delimiter = {said}")),
                format!(
                    "input.delimiter: expected one ASCII character other than a quote or a line end, found {found}"
                )
            );
        }
        assert_eq!(input("header = \"yes\""), "input.header: expected true or false, found the text \"yes\"");
        assert_eq!(input("nulls = \"?\""), "input.nulls: expected a list of texts, found the text \"?\"");
        assert_eq!(Said::parse("k = 5\n[input]\ndelimiter = \"\\t\"").unwrap().csv().delimiter, b'\t');
    }

    #[test]
    fn what_is_no_toml_is_refused_with_its_place() {
        let found = error("k = 5\n[columns]\nzip = { role = quasi }");
        assert!(found.starts_with("line 3, column 16: not TOML: "), "{found}");
        let twice = error("k = 5\nk = 6");
        assert!(twice.starts_with("line 2, column 1: not TOML: duplicate key"), "{twice}");
    }

    #[test]
    fn a_question_without_a_file() {
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let said = Said::quick(&names(&["zip", "age"]), 5).unwrap();
        assert!(said.others_are_dropped && said.columns().iter().all(|c| c.role() == Role::Quasi));
        let error = |quasi: &[&str], k| Said::quick(&names(quasi), k).unwrap_err().to_string();
        assert_eq!(error(&[], 5), "expected the name of at least one quasi-identifier");
        assert_eq!(error(&["a", "b", "a"], 5), "the quasi-identifier `a` is named twice");
        assert_eq!(error(&["a"], 0), "k: expected an integer of at least 1, found 0");
        assert_eq!(error(&["a"], u64::MAX), "k: 18446744073709551615 is too large");
        assert!(error(&["a"], 1).starts_with("k: 1 promises nothing by itself"));
    }
}
