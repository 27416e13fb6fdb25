//! The policy of a call: TOML text, the path of a file, or a struct literal such as `{k: 5,
//! columns: {...}}`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::sqlparser::ast::{Expr as SqlExpr, UnaryOperator, Value};

use super::super::hierarchies::Hierarchies;
use super::arguments::{Arguments, text_of};
use super::task::Inputs;
use crate::class::ClassTable;
use crate::engine::replay_table::table_of_plan;
use crate::engine::{Context, Resources, Run};
use crate::error::Error;
use crate::generalize::hierarchy::csv_of_rows;
use crate::input::canonical_table;
use crate::input::days_since::{days_since, plain_days_since};
use crate::input::hierarchy_files::HierarchyFiles;
use crate::input::infer_types::Typing;
use crate::input::merged::{self, RowsToCount};
use crate::policy::{Files, FilesAndTrees, Policy, PolicySpec};
use crate::progress::CancelToken;
use crate::release::can_be_searched;
use crate::release::profile::{ROWS_OF_GROUP, of_values_grouped, with_names};
use crate::release::publish::digest;
use crate::store::{Address, text_at};
use crate::verify::same_types;

/// A policy and its table.
pub(super) struct TableAndPolicy {
    /// The policy.
    pub(super) followed: BoundPolicy,
    /// The table with canonical columns.
    pub(super) table: DataFrame,
    /// The same table as verification reads it.
    pub(super) plain_table: DataFrame,
}

/// A policy that a task follows.
pub(super) struct BoundPolicy {
    /// The policy, resolved against the table. Values to be merged are not counted yet.
    pub(super) policy: Arc<Policy>,
    spec: PolicySpec,
    /// The schema of the table.
    schema: SchemaRef,
    /// The texts of the hierarchy files.
    files: BTreeMap<String, String>,
    /// The SHA-256 of the policy's text and of its hierarchies.
    digest: String,
    /// Whether errors may show values that a hierarchy does not cover.
    pub(super) show_values: bool,
}

/// Shows no hierarchy file: they hold cells.
impl fmt::Debug for BoundPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BoundPolicy({})", self.says())
    }
}

impl BoundPolicy {
    /// Returns the text that EXPLAIN shows.
    pub(super) fn says(&self) -> String {
        format!("policy sha256:{}", self.digest)
    }

    /// Returns the resources of a run of the task.
    pub(super) fn run(&self, resources: &Resources, stop: &CancelToken) -> Run {
        let (resources, stop) = (resources.clone(), stop.clone());
        Run { resources, stop, show_values: self.show_values, ..Run::default() }
    }

    /// Returns whether the values of a column are merged, for which they are counted first.
    pub(super) fn has_merged_columns(&self) -> bool {
        self.spec.merged_quasi().next().is_some()
    }

    /// Returns the classes of the task's first input, a profile, and the policy with the trees of
    /// merged columns.
    ///
    /// # Errors
    /// Those of the profile; an error for a policy that no search can satisfy.
    pub(super) async fn classes(
        &self,
        inputs: &Inputs,
        session: &SessionContext,
        run: &Run,
    ) -> crate::error::Result<(Arc<Policy>, ClassTable)> {
        let profile = inputs
            .plans
            .first()
            .ok_or_else(|| Error::internal("sql task: the profile is missing from the inputs"))?;
        let mut policy = Arc::clone(&self.policy);
        if self.has_merged_columns() {
            let table = table_of_plan(session, Arc::clone(profile), Arc::clone(&inputs.context))?;
            let table = with_names(table, &self.policy)?;
            let counted = RowsToCount { session, table: &table, rows: Some(ROWS_OF_GROUP) };
            policy =
                Arc::new(merged::resolve(&self.spec, &self.schema, &self.files, &counted, &run.stop).await?);
        }
        let groups = execute_stream(Arc::clone(profile), Arc::clone(&inputs.context));
        let groups = groups.context("grouping the table by its quasi-identifiers")?;
        let classes = of_values_grouped(session, &policy, groups, run).await?;
        can_be_searched(&policy, &classes)?;
        Ok((policy, classes))
    }
}

/// Reads the table and the policy of a call: its next two arguments.
///
/// # Errors
/// A plan error where the SQL is wrong; where the policy is, or the table for it, an external one with
/// our error in it.
pub(super) fn table_and_policy(call: &mut Arguments<'_>) -> Result<TableAndPolicy> {
    let table = call.next("a table")?;
    let (text, at) = read(call)?;
    let wrong = |error: Error| call.wrong(error);
    let spec = PolicySpec::parse(&text).map_err(|error| wrong(error.at("policy")))?;
    if spec.population().is_some() {
        let why =
            "the policy compares with a population, which only the command line reads; use kanon release";
        return Err(call.wrong(Error::policy(why)));
    }
    let allowed = call.options().allow_files;
    let files = KnownFiles {
        hierarchies: call.hierarchies().clone(),
        folder: allowed.then(|| HierarchyFiles::of_policy(at)),
    };
    let mut digested = text.clone();
    let mut texts = BTreeMap::new();
    for name in spec.hierarchy_files() {
        let text = files.read(name).map_err(wrong)?;
        digested += &text;
        texts.insert(name.to_owned(), text);
    }
    let csv_type = |name: &str| spec.csv_type(name);
    let plan = call.table_of(table.clone(), spec.csv(), &csv_type)?;
    let plain = call.file_of(&table, spec.csv(), &csv_type, Typing::Plain)?;
    let wrong = |error: Error| call.wrong(error);
    let table = DataFrame::new(SessionContext::new().state(), plan);
    let plain = plain.unwrap_or_else(|| table.clone());
    let [table, plain] = [canonical_table(table), canonical_table(plain)];
    let (table, plain) = (table.map_err(wrong)?, plain.map_err(wrong)?);
    same_types(table.schema().as_arrow(), plain.schema().as_arrow()).map_err(wrong)?;
    let relative = spec.relative_columns(table.schema().as_arrow()).map_err(wrong)?;
    let table = days_since(table, &relative).map_err(wrong)?;
    let plain_table = plain_days_since(plain, &relative).map_err(wrong)?;
    let schema = Arc::clone(table.schema().inner());
    let uncounted = FilesAndTrees { files: &texts, trees: spec.placeholder_trees() };
    let policy = Arc::new(spec.resolve(&schema, &uncounted).map_err(wrong)?);
    let digest = digest::of_bytes(digested.as_bytes());
    let show_values = call.options().show_values;
    let followed = BoundPolicy { policy, spec, schema, files: texts, digest, show_values };
    Ok(TableAndPolicy { followed, table, plain_table })
}

/// Returns the text of the policy, and the place from which it names its files.
fn read(call: &mut Arguments<'_>) -> Result<(String, Address)> {
    let here = || Address::Local(PathBuf::new());
    let argument = call.next("a policy: TOML text, a path in quotes, or a struct {k: 5, columns: {...}}")?;
    let Some(text) = text_of(&argument) else {
        return Ok((toml_of(&argument).map_err(|why| call.wrong(Error::policy(why)))?, here()));
    };
    // A path has neither line breaks nor keys with values.
    if text.contains(['\n', '=']) {
        return Ok((text.to_owned(), here()));
    }
    call.file_is_allowed()?;
    let at = Address::parse(text).map_err(|error| call.wrong(error.at("policy")))?;
    let read = match &at {
        Address::Local(path) => std::fs::read_to_string(path).map_err(|error| Error::of_policy_file(&error)),
        Address::Remote(address) => text_at(address, &CancelToken::default()),
    };
    let read = read.map_err(|error| call.wrong(error.at(format!("policy {at}"))))?;
    Ok((read, at))
}

/// Returns a struct literal as TOML: its fields are the keys of the policy.
fn toml_of(argument: &SqlExpr) -> std::result::Result<String, String> {
    let SqlExpr::Dictionary(fields) = argument else {
        return Err(
            "expected a policy: TOML text, a path in quotes, or a struct {k: 5, columns: {...}}".into()
        );
    };
    let lines =
        fields.iter().map(|field| Ok(format!("{} = {}\n", key(&field.key.value), value(&field.value)?)));
    lines.collect()
}

/// Quotes a text as JSON, whose quotes are those of TOML.
fn key(name: &str) -> String {
    serde_json::Value::from(name).to_string()
}

fn value(argument: &SqlExpr) -> std::result::Result<String, String> {
    match argument {
        SqlExpr::Value(literal) => match &literal.value {
            Value::Number(number, _) => Ok(number.clone()),
            Value::SingleQuotedString(text) => Ok(key(text)),
            Value::Boolean(truth) => Ok(truth.to_string()),
            _ => Err("policy: expected a number, a text in single quotes, true or false".into()),
        },
        SqlExpr::UnaryOp { op: UnaryOperator::Minus, expr } => Ok(format!("-{}", value(expr)?)),
        SqlExpr::Array(array) => {
            let items = array.elem.iter().map(value).collect::<std::result::Result<Vec<_>, _>>()?;
            Ok(format!("[{}]", items.join(", ")))
        }
        SqlExpr::Dictionary(fields) => {
            let fields = fields
                .iter()
                .map(|field| Ok(format!("{} = {}", key(&field.key.value), value(&field.value)?)));
            Ok(format!("{{ {} }}", fields.collect::<std::result::Result<Vec<_>, String>>()?.join(", ")))
        }
        SqlExpr::Nested(inside) => value(inside),
        _ => Err("policy: expected literals only".into()),
    }
}

/// Loaded hierarchies, then files where they are allowed.
struct KnownFiles {
    hierarchies: Hierarchies,
    folder: Option<HierarchyFiles>,
}

impl Files for KnownFiles {
    fn read(&self, name: &str) -> crate::error::Result<String> {
        if self.hierarchies.names().iter().any(|known| known == name) {
            let loaded = self.hierarchies.get(name)?;
            return csv_of_rows(loaded.table.rows());
        }
        match &self.folder {
            Some(folder) => folder.read(name),
            None => Err(Error::policy(format!(
                "no hierarchy `{name}` is loaded, and kanon.allow_files is false; load it with load_hierarchy, or SET \
                 kanon.allow_files = true"
            ))),
        }
    }
}

/// Builds the error for a table that is read twice and may change between the reads.
pub(super) fn not_repeatable(call: &Arguments<'_>) -> DataFusionError {
    call.refused(
        "the table may return different rows when it is read again (a volatile function, LIMIT, a window, a \
         sum of doubles); materialize it first: CREATE TABLE t AS SELECT ...",
    )
}
