//! The policy spec: the TOML file as typed values. Every key is known and every shape is right, but
//! neither the table nor a hierarchy file was opened.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use toml::{Table, Value};

use super::builder::PolicyColumn;
use super::csv_options::{CsvOptions, CsvType};
use super::history::History;
use super::key_tables::{TOP, names};
use super::keys::{
    Keys, all_are_decided, boolean, is_undecided, join, not_too_deep, objective, others, share, string,
    syntax, table_of, tables, words,
};
use super::method::{Output, effort, method};
use super::own_rows::check_levels;
use super::required::{Required, k_of, short_k};
use crate::decimal::Decimal;
use crate::error::{Error, Errors, Result};
use crate::generalize::clip::Clip;
use crate::generalize::merge::{self, Merge, MergedTree};
use crate::generalize::{self, Generalizer};
use crate::measure::{LossRow, granularity::Granularity};
use crate::method::MethodSpec;
use crate::method::lattice::Effort;
use crate::model::k_anonymity;
use crate::parameter::{Kind, Setting};
use crate::role::Role;

/// A parsed policy file.
///
/// ```
/// use datafusion_kanon::PolicySpec;
/// let spec = PolicySpec::parse(r#"
///     k = 5
///     [columns]
///     zip       = { role = "quasi", hierarchy = { prefix = [4, 3, 2, 1] }, weight = 2.0 }
///     sex       = { role = "quasi" }
/// "#)?;
/// assert!(spec.text().contains("k = 5"));
/// let wrong = PolicySpec::parse("k = 5\n[columns]\nzip = { rule = \"quasi\" }");
/// assert_eq!(wrong.unwrap_err().to_string(), "columns.zip.rule: unknown key; did you mean `role`?");
/// # Ok::<(), datafusion_kanon::Error>(())
/// ```
#[derive(Clone)]
pub struct PolicySpec {
    /// The TOML that was parsed.
    pub(super) text: String,
    pub(super) required: Vec<Required>,
    /// s, the share of the individuals that may be suppressed, as written.
    pub(crate) suppression_limit: Decimal,
    /// The loss that a search minimizes.
    pub(crate) objective: LossRow,
    /// The method.
    pub(crate) method: MethodSpec,
    /// The effort that a method which need not finish may spend, if the policy gives one.
    pub(crate) effort: Option<Effort>,
    /// `[output]`, or its defaults.
    pub(crate) output: Output,
    /// `[history]`, if the policy has it.
    pub(super) history: Option<History>,
    pub(super) others_are_dropped: bool,
    /// Whether the policy states that each row is an individual.
    pub(crate) rows_are_individuals: bool,
    /// The sensitive columns in which all individuals of a class may share a value.
    pub(crate) accept_homogeneity: Vec<String>,
    pub(super) columns: Vec<ColumnSpec>,
    /// The file of the population, if a model looks at one.
    pub(super) population: Option<String>,
    /// `[input]`, or its defaults.
    pub(super) csv: CsvOptions,
    /// The columns of the earlier release whose recoding is applied.
    pub(super) earlier: Vec<EarlierColumn>,
    /// Columns that models outside the policy read as numbers.
    pub(super) numbers: Vec<String>,
}

/// Shows the columns with their roles, and no value: those that a policy names are cells.
impl fmt::Debug for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.columns.iter().map(|column| (&column.name, column.role));
        f.debug_struct("PolicySpec").field("columns", &columns.collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

/// A column that an earlier release read.
#[derive(Debug, Clone)]
pub struct EarlierColumn {
    /// Its name.
    pub name: String,
    /// The type that it must have again, as [`type_name`](crate::generalize::value::type_name) writes it; `None` for any.
    pub data_type: Option<String>,
}

/// A column of the policy spec.
#[derive(Debug, Clone)]
pub struct ColumnSpec {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) hierarchy: Option<HierarchySpec>,
    pub(super) clip: Option<Clip>,
    pub(super) weight: f64,
    pub(super) min_level: usize,
    pub(super) max_level: Option<usize>,
    /// Whether all rows show it at one level.
    pub(super) is_global: bool,
    /// Whether most of its values may occur only once.
    pub(super) allow_unique: bool,
    pub(super) relative_to: Option<String>,
}

/// The hierarchy of a column of the policy spec.
#[derive(Clone)]
pub struct HierarchySpec {
    pub(super) key: &'static str,
    pub(super) levels: LevelsSpec,
}

/// The levels of a hierarchy, or the file that holds them.
#[derive(Debug, Clone)]
pub(super) enum LevelsSpec {
    /// Levels made from the words and numbers in the policy.
    Made(Vec<Arc<dyn Generalizer>>),
    /// The name of a hierarchy file.
    File(String),
    /// The rule by which a run makes a tree of the column's values.
    Merged(Merge),
}

impl PolicySpec {
    /// Parses a policy file.
    ///
    /// # Errors
    /// A policy error that names the key, or the line where the text is not TOML; others that were
    /// found are beside it.
    pub fn parse(text: &str) -> Result<Self> {
        not_too_deep(text)?;
        let table: Table = toml::from_str(text).map_err(|error| syntax(text, &error))?;
        let mut wrong = Errors::default();
        let mut keys = Keys::known(String::new(), table, &names(TOP), &mut wrong);
        let mut required: Vec<Required> = wrong.found(keys.take("k", short_k)).into_iter().collect();
        let longer = wrong.found(keys.take("require", tables)).unwrap_or_default();
        for (index, table) in longer.into_iter().enumerate() {
            required.extend(wrong.value_of(Required::read(format!("require[{index}]"), table)));
        }
        let mut columns = wrong.found(keys.take("columns", table_of)).unwrap_or_default();
        if wrong.value_of(all_are_decided(&columns)).is_none() {
            columns.retain(|_, column| !is_undecided(column));
        }
        // The errors of the effort already have their place.
        let effort = wrong.found(keys.table.remove("effort").map(effort).transpose());
        let spec = Self {
            text: text.to_owned(),
            required,
            suppression_limit: wrong
                .found(keys.take("suppression_limit", share))
                .unwrap_or(Decimal::integer(0)),
            objective: wrong.found(keys.take("objective", objective)).unwrap_or(&Granularity),
            // The errors of the method already have their place.
            method: wrong.found(keys.table.remove("method").map(method).transpose()).unwrap_or_default(),
            effort,
            output: wrong
                .found(keys.table.remove("output").map(Output::read).transpose())
                .unwrap_or_default(),
            history: wrong.found(keys.table.remove("history").map(History::read).transpose()),
            others_are_dropped: wrong.found(keys.take("others", others)).is_some(),
            rows_are_individuals: wrong.found(keys.take("rows_are_individuals", boolean)).unwrap_or(false),
            accept_homogeneity: wrong.found(keys.take("accept_homogeneity", words)).unwrap_or_default(),
            columns: columns
                .into_iter()
                .filter_map(|(name, value)| wrong.value_of(ColumnSpec::read(name, value)))
                .collect(),
            population: wrong.found(keys.take("population", string)),
            csv: wrong
                .found(keys.table.remove("input").map(CsvOptions::read).transpose())
                .unwrap_or_default(),
            earlier: Vec::new(),
            numbers: Vec::new(),
        };
        wrong.end_of_stage()?;
        let checks = [
            spec.check_required(),
            spec.check_population(),
            spec.check_individuals(),
            spec.check_method(effort.is_some()),
            spec.check_folders(),
            spec.check_history(),
        ];
        Errors::of(checks).map(|_| spec)
    }

    /// Requires the columns of an earlier release, in their order.
    #[must_use]
    #[doc(hidden)]
    pub fn like_earlier(mut self, columns: Vec<EarlierColumn>) -> Self {
        self.earlier = columns;
        self
    }

    /// Creates the policy spec of a question without a file: these quasi-identifiers as they are,
    /// k-anonymity in individuals or rows, and all other columns left out.
    ///
    /// # Errors
    /// A policy error when no column is named, one is named twice or k is impossible.
    #[doc(hidden)]
    pub fn from_columns(quasi: &[String], individual: Option<&str>, k: u64) -> Result<Self> {
        if quasi.is_empty() {
            return Err(Error::policy("expected the name of at least one quasi-identifier"));
        }
        if let Some((_, twice)) = quasi.iter().enumerate().find(|(at, name)| quasi[..*at].contains(name)) {
            return Err(Error::policy(format!("the quasi-identifier `{twice}` is named twice")));
        }
        if let Some(name) = individual.filter(|name| quasi.iter().any(|quasi| quasi == name)) {
            return Err(Error::policy(format!(
                "the individual column `{name}` is named as a quasi-identifier too"
            )));
        }
        let quasi = quasi.iter().map(|name| (name.as_str(), Role::Quasi));
        let columns = quasi.chain(individual.map(|name| (name, Role::Individual)));
        let of_k = Self::builder().k(k).drop_others();
        columns.fold(of_k, |spec, (name, role)| spec.column(name, PolicyColumn::new(role))).build()
    }

    /// Returns the TOML that was parsed, which the private record keeps. What is changed afterwards, such as by
    /// [`released_on`](Self::released_on), is not in it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the share of the individuals that may be suppressed.
    #[doc(hidden)]
    pub fn suppression_limit(&self) -> Decimal {
        self.suppression_limit
    }

    /// Returns the loss that a search minimizes.
    #[doc(hidden)]
    pub fn objective(&self) -> LossRow {
        self.objective
    }

    /// Returns the method.
    #[doc(hidden)]
    pub fn method(&self) -> &MethodSpec {
        &self.method
    }

    /// Returns the policy with another format of CSV inputs.
    #[must_use]
    #[doc(hidden)]
    pub fn with_csv(self, csv: CsvOptions) -> Self {
        Self { csv, ..self }
    }

    /// Returns the policy with columns that models outside it read as numbers.
    #[must_use]
    #[doc(hidden)]
    pub fn with_numbers(self, numbers: Vec<String>) -> Self {
        let has_levels = |name: &String| self.column(name).is_some_and(|column| column.hierarchy.is_some());
        let numbers = numbers.into_iter().filter(|name| !has_levels(name)).collect();
        Self { numbers, ..self }
    }

    /// Returns the format of a CSV input; other formats ignore it.
    #[doc(hidden)]
    pub fn csv(&self) -> &CsvOptions {
        &self.csv
    }

    /// Returns the columns in the order of the file.
    #[doc(hidden)]
    pub fn columns(&self) -> &[ColumnSpec] {
        &self.columns
    }

    /// Returns the column `name`, if the policy has it.
    #[doc(hidden)]
    pub fn column(&self, name: &str) -> Option<&ColumnSpec> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Returns the type to read the CSV column `name` as: text, unless its hierarchy cannot work on
    /// text or days are counted from it or to it.
    #[doc(hidden)]
    pub fn csv_type(&self, name: &str) -> CsvType {
        if self.counts_days_of(name) {
            return CsvType::Date;
        }
        if self.is_read_as_number(name) {
            return CsvType::Number;
        }
        let hierarchy = self.column(name).and_then(|column| column.hierarchy.as_ref());
        match hierarchy.map(|hierarchy| &hierarchy.levels) {
            Some(LevelsSpec::Made(levels)) => {
                levels.first().map_or(CsvType::Text, |level| CsvType::of_level(&**level))
            }
            None if self.column(name).is_some_and(|column| column.clip.is_some()) => CsvType::Number,
            Some(LevelsSpec::File(_) | LevelsSpec::Merged(_)) | None => CsvType::Text,
        }
    }

    /// Returns whether days are counted from the column `name` or to it.
    fn counts_days_of(&self, name: &str) -> bool {
        let counts = |column: &ColumnSpec| {
            column.relative_to.as_ref().is_some_and(|other| column.name == name || other == name)
        };
        self.columns.iter().any(counts)
    }

    /// Returns the names of the hierarchy files, in the order of the columns, each once.
    #[doc(hidden)]
    pub fn hierarchy_files(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for hierarchy in self.columns.iter().filter_map(|column| column.hierarchy.as_ref()) {
            match &hierarchy.levels {
                LevelsSpec::File(name) if !names.contains(&name.as_str()) => names.push(name),
                _ => {}
            }
        }
        names
    }

    /// Returns the quasi-identifiers whose levels are made of their values, with the rule.
    #[doc(hidden)]
    pub fn merged_quasi(&self) -> impl Iterator<Item = (&ColumnSpec, &Merge)> {
        self.merged().filter(|(column, _)| column.role == Role::Quasi)
    }

    /// Returns trees of the columns whose levels are made of their values, before these are
    /// counted. With them a policy can be resolved and its hierarchies have their heights.
    #[doc(hidden)]
    pub fn placeholder_trees(&self) -> BTreeMap<String, MergedTree> {
        self.merged().map(|(column, merge)| (column.name.clone(), merge.placeholder_tree())).collect()
    }

    fn merged(&self) -> impl Iterator<Item = (&ColumnSpec, &Merge)> {
        self.columns.iter().filter_map(|column| Some((column, column.hierarchy.as_ref()?.merge()?)))
    }

    /// Checks that at most one column identifies individuals, and that rows are not individuals if
    /// one does.
    fn check_individuals(&self) -> Result<()> {
        let mut individuals = self.columns.iter().filter(|column| column.role == Role::Individual);
        let (Some(first), second) = (individuals.next(), individuals.next()) else { return Ok(()) };
        if let Some(second) = second {
            let why = format!("`{}` is already the individual column; there can be only one", first.name);
            return Err(Error::policy(why).at(second.path()));
        }
        if self.rows_are_individuals {
            let why = format!(
                "`{}` has the role `individual`: individuals are counted, not rows; remove this line",
                first.name
            );
            return Err(Error::policy(why).at("rows_are_individuals"));
        }
        Ok(())
    }

    fn check_required(&self) -> Result<()> {
        let k_anonymity = k_anonymity::ROW.doc.name;
        for (at, one) in self.required.iter().enumerate() {
            let Some(path) = one.path.as_deref() else { continue };
            if let Some(other) = self.required[..at].iter().find(|other| other.is_like(one)) {
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
                    "1 guarantees nothing by itself; set k to at least 2, or add a [[require]] with another \
                     model",
                );
                Err(error.at(only.path.as_deref().map_or_else(|| "k".into(), |path| join(path, "k"))))
            }
            _ => Ok(()),
        }
    }
}

impl ColumnSpec {
    pub(super) fn new(name: String, role: Role) -> Self {
        Self {
            name,
            role,
            hierarchy: None,
            clip: None,
            weight: 1.0,
            min_level: 0,
            max_level: None,
            is_global: false,
            allow_unique: false,
            relative_to: None,
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the hierarchy, if the policy gives one.
    pub fn hierarchy(&self) -> Option<&HierarchySpec> {
        self.hierarchy.as_ref()
    }

    /// Returns the place of this column in the policy, for errors: `columns.zip`.
    pub(crate) fn path(&self) -> String {
        join("columns", &self.name)
    }
}

impl HierarchySpec {
    /// Returns the key in `hierarchy = { key = ... }`.
    pub fn key(&self) -> &'static str {
        self.key
    }

    /// Returns the rule by which a run makes the tree, if that is how the levels are made.
    pub(super) fn merge(&self) -> Option<&Merge> {
        match &self.levels {
            LevelsSpec::Merged(merge) => Some(merge),
            LevelsSpec::Made(_) | LevelsSpec::File(_) => None,
        }
    }

    pub(super) fn read(path: &str, value: Value) -> Result<Self> {
        let rows: Vec<_> = generalize::all().filter_map(|row| row.key.map(|key| (key, row))).collect();
        let known: Vec<&str> = rows.iter().map(|(key, _)| *key).chain([merge::DOC.name]).collect();
        let beside = rows.iter().flat_map(|(_, row)| row.options()).map(|option| option.name);
        let table = table_of(value).map_err(|error| error.at(path))?;
        // Several generalizers may have an option of the same name.
        let mut all = known.clone();
        for key in beside {
            if !all.contains(&key) {
                all.push(key);
            }
        }
        let mut keys = Keys::new(path.to_owned(), table, &all)?;
        let named: Vec<&str> =
            keys.table.keys().map(String::as_str).filter(|key| known.contains(key)).collect();
        if named == [merge::DOC.name] && keys.table.len() == 1 {
            let path = join(path, merge::DOC.name);
            let table = keys.take(merge::DOC.name, table_of)?.unwrap_or_default();
            let names: Vec<&str> = merge::PARAMETERS.iter().map(|parameter| parameter.name).collect();
            let given = Keys::new(path.clone(), table, &names)?.settings(merge::PARAMETERS)?;
            let merge = Merge::of(&given).map_err(|error| error.at(path))?;
            return Ok(Self { key: merge::DOC.name, levels: LevelsSpec::Merged(merge) });
        }
        if named == [merge::DOC.name] {
            let why = format!("`merge` has its options in a table of its own: {}", merge::DOC.example);
            return Err(Error::policy(why).at(path));
        }
        let Some((key, row)) = rows.iter().find(|(key, _)| named == [*key]) else {
            let found = if named.is_empty() { "none".into() } else { named.join(" and ") };
            let why = format!("expected exactly one of the keys {}; found {found}", known.join(", "));
            return Err(Error::policy(why).at(path));
        };
        let mut given = keys.settings(row.options())?;
        if let Some(other) = keys.table.keys().find(|other| *other != key) {
            let goes = rows.iter().filter(|(_, row)| row.options().iter().any(|option| option.name == other));
            let goes = goes.map(|(key, _)| format!("`{key}`")).collect::<Vec<_>>().join(" or ");
            return Err(
                Error::policy(format!("goes beside {goes}, not beside `{key}`")).at(join(path, other))
            );
        }
        let no_setting = || Error::internal("policy spec: the key of a hierarchy has no setting");
        let first = row.parameters.first().ok_or_else(no_setting)?;
        let levels = match keys.setting(key, first)?.ok_or_else(no_setting)? {
            Setting::Word(name) if first.kind == Kind::File => LevelsSpec::File(name.into_owned()),
            setting => {
                given.push((first.name.to_owned(), setting));
                let made = row.with(&given).and_then(|levels| check_levels(row, &levels).map(|()| levels));
                LevelsSpec::Made(made.map_err(|error| error.at(join(path, key)))?)
            }
        };
        Ok(Self { key, levels })
    }
}

impl fmt::Debug for HierarchySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HierarchySpec").field("key", &self.key).field("levels", &self.levels).finish()
    }
}
