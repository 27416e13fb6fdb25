//! The arguments of a table function: tables, columns and named arguments.

use std::collections::VecDeque;

use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::common::{Column, DFSchema, DFSchemaRef, TableReference};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, TableFactor,
    TableFunctionArgs, Value,
};

use super::super::hierarchies::Hierarchies;
use super::super::options::KanonOptions;
use super::TableFunctions;
use crate::doc::Doc;
use crate::engine::into_engine;
use crate::error::{Error, nearest};
use crate::input::Input;
use crate::input::infer_types::Typing;
use crate::policy::{CsvOptions, CsvType};

/// The arguments of a call that is being planned.
pub(super) struct Arguments<'a> {
    doc: Doc,
    positional: VecDeque<SqlExpr>,
    named: Vec<(String, SqlExpr)>,
    functions: &'a TableFunctions,
    context: &'a mut dyn RelationPlannerContext,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(
        doc: Doc,
        arguments: Vec<FunctionArg>,
        functions: &'a TableFunctions,
        context: &'a mut dyn RelationPlannerContext,
    ) -> Result<Self> {
        let mut call = Self { doc, positional: VecDeque::new(), named: Vec::new(), functions, context };
        for argument in arguments {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => call.positional.push_back(value),
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                    let name = call.context.normalize_ident(name);
                    call.named.push((name, value));
                }
                FunctionArg::ExprNamed {
                    name: SqlExpr::Identifier(name),
                    arg: FunctionArgExpr::Expr(value),
                    ..
                } => {
                    let name = call.context.normalize_ident(name);
                    call.named.push((name, value));
                }
                _ => return Err(call.refused("expected a value or `name => value`")),
            }
        }
        Ok(call)
    }

    /// Builds a plan error.
    pub(super) fn refused(&self, why: impl std::fmt::Display) -> DataFusionError {
        DataFusionError::Plan(format!("{}: {why}", self.doc.name))
    }

    /// Builds the error of a policy or a file that is wrong, which has our error in it: its kind and
    /// code tell it from wrong SQL.
    pub(super) fn wrong(&self, error: Error) -> DataFusionError {
        into_engine(error.at(self.doc.name))
    }

    fn missing(&self, what: &str) -> DataFusionError {
        let Doc { name, parameters, .. } = self.doc;
        DataFusionError::Plan(format!("{name}({parameters}): expected {what}"))
    }

    /// Returns the session's options.
    pub(super) fn options(&self) -> KanonOptions {
        KanonOptions::of(self.context.context_provider().options())
    }

    /// Returns the session's hierarchies.
    pub(super) fn hierarchies(&self) -> &Hierarchies {
        &self.functions.hierarchies
    }

    /// Refuses a file name where files are not allowed.
    pub(super) fn file_is_allowed(&self) -> Result<()> {
        if self.options().allow_files {
            return Ok(());
        }
        Err(self.refused("a file is named, but kanon.allow_files is false; SET kanon.allow_files = true"))
    }

    /// Returns the next argument.
    pub(super) fn next(&mut self, what: &str) -> Result<SqlExpr> {
        self.positional.pop_front().ok_or_else(|| self.missing(what))
    }

    /// Returns the next argument as a text.
    pub(super) fn text(&mut self, what: &str) -> Result<String> {
        let next = self.next(what)?;
        text_of(&next).map(str::to_owned).ok_or_else(|| self.missing(what))
    }

    /// Returns the next argument as a text, if there is one.
    pub(super) fn next_text(&mut self) -> Result<Option<String>> {
        if self.positional.is_empty() { Ok(None) } else { self.text("a text in quotes").map(Some) }
    }

    /// Returns the texts given by every `key =>`.
    pub(super) fn named_texts(&mut self, key: &str) -> Result<Vec<String>> {
        let texts = self.take_named(key);
        let text = |argument: &SqlExpr| text_of(argument).map(str::to_owned);
        let texts: Option<Vec<String>> = texts.iter().map(text).collect();
        texts.ok_or_else(|| self.refused(format!("`{key}`: expected a text in quotes")))
    }

    /// Returns whether `key => true` is given.
    pub(super) fn named_bool(&mut self, key: &str) -> Result<bool> {
        let arguments: Vec<String> = self.take_named(key).iter().map(SqlExpr::to_string).collect();
        match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [] | ["false"] => Ok(false),
            ["true"] => Ok(true),
            _ => Err(self.refused(format!("`{key}`: expected true or false, once"))),
        }
    }

    /// Returns the next argument as a table: a name, a CTE, a subquery, a table function, or a text
    /// for a file.
    pub(super) fn table(&mut self) -> Result<LogicalPlan> {
        let csv = self.options().csv;
        self.table_typed(&csv, &|_| CsvType::Text)
    }

    /// As [`table`](Self::table), with the text columns of CSV files typed by `csv_type`.
    pub(super) fn table_typed(
        &mut self,
        csv: &CsvOptions,
        csv_type: &(dyn Fn(&str) -> CsvType + Sync),
    ) -> Result<LogicalPlan> {
        let argument = self.next("a table")?;
        self.table_of(argument, csv, csv_type)
    }

    /// Returns the file that a quoted argument names, if any, with its texts read according to
    /// `typing`.
    pub(super) fn file_of(
        &self,
        argument: &SqlExpr,
        csv: &CsvOptions,
        csv_type: &(dyn Fn(&str) -> CsvType + Sync),
        typing: Typing,
    ) -> Result<Option<DataFrame>> {
        if let SqlExpr::Nested(inside) = argument {
            return self.file_of(inside, csv, csv_type, typing);
        }
        let Some(file) = text_of(argument) else { return Ok(None) };
        self.file_is_allowed()?;
        let open = async {
            let session = SessionContext::new();
            Input::find(file)?.table_typed(&session, csv, csv_type, typing).await
        };
        now(open).map(Some).map_err(|error| self.wrong(error))
    }

    pub(super) fn table_of(
        &mut self,
        argument: SqlExpr,
        csv: &CsvOptions,
        csv_type: &(dyn Fn(&str) -> CsvType + Sync),
    ) -> Result<LogicalPlan> {
        if let Some(table) = self.file_of(&argument, csv, csv_type, Typing::Columnar)? {
            return Ok(table.into_unoptimized_plan());
        }
        match argument {
            SqlExpr::Nested(inside) => self.table_of(*inside, csv, csv_type),
            SqlExpr::Subquery(subquery) => self.context.plan(TableFactor::Derived {
                lateral: false,
                subquery,
                alias: None,
                sample: None,
            }),
            SqlExpr::Identifier(name) => self.named_table(ObjectName::from(vec![name])),
            SqlExpr::CompoundIdentifier(names) => self.named_table(ObjectName::from(names)),
            SqlExpr::Function(function) => match function.args {
                FunctionArguments::List(list) => {
                    let args = Some(TableFunctionArgs { args: list.args, settings: None });
                    self.context.plan(factor(function.name, args))
                }
                _ => Err(self.missing("a table")),
            },
            _ => {
                Err(self.missing("a table: its name, a subquery in parentheses, or a file's name in quotes"))
            }
        }
    }

    fn named_table(&mut self, name: ObjectName) -> Result<LogicalPlan> {
        let reference = self.context.object_name_to_table_reference(name.clone())?;
        // A CTE, or a table that the query also names elsewhere.
        let planned = self.context.plan(factor(name, None));
        let Err(error) = planned else { return planned };
        let catalog = &self.context.context_provider().options().catalog;
        let resolved = reference.clone().resolve(&catalog.default_catalog, &catalog.default_schema);
        let schema = self.functions.catalogs.catalog(&resolved.catalog);
        let Some(schema) = schema.and_then(|catalog| catalog.schema(&resolved.schema)) else {
            return Err(error);
        };
        match now(schema.table(&resolved.table))? {
            Some(table) => scan(reference, table),
            None => Err(error),
        }
    }

    /// Returns all further arguments as columns of a table, each with its output name: texts are
    /// column names, other arguments expressions.
    pub(super) fn columns(&mut self, table: &LogicalPlan) -> Result<Vec<(String, Expr)>> {
        if self.positional.is_empty() {
            return Err(self.missing("at least one column"));
        }
        let arguments: Vec<SqlExpr> = self.positional.drain(..).collect();
        arguments.iter().map(|argument| self.column(argument, table.schema())).collect()
    }

    /// Returns the further arguments unchanged.
    pub(super) fn rest(&mut self) -> Result<Vec<SqlExpr>> {
        if self.positional.is_empty() {
            return Err(self.missing("at least one column"));
        }
        Ok(self.positional.drain(..).collect())
    }

    /// Returns an argument as a column of a table, with its name.
    pub(super) fn column(&mut self, argument: &SqlExpr, schema: &DFSchemaRef) -> Result<(String, Expr)> {
        let expr = match text_of(argument) {
            Some(name) => Expr::Column(self.column_named(name, schema)?),
            None => self.context.sql_to_expr(argument.clone(), schema)?,
        };
        if expr.column_refs().is_empty() {
            return Err(
                self.refused("expected a column, found a constant; name the column, with or without quotes")
            );
        }
        if expr.get_type(schema)?.is_nested() {
            return Err(self.refused("lists, structs and maps cannot be grouped"));
        }
        let name = match &expr {
            Expr::Column(column) => column.name.clone(),
            other => other.schema_name().to_string(),
        };
        Ok((name, expr))
    }

    fn column_named(&self, name: &str, schema: &DFSchema) -> Result<Column> {
        let mut known = schema.iter().filter(|(_, field)| field.name() == name);
        let (first, second) = (known.next(), known.next());
        if second.is_some() {
            return Err(self.refused(format!("the table has two columns `{name}`; rename one")));
        }
        match first {
            Some((qualifier, field)) => Ok(Column::new(qualifier.cloned(), field.name())),
            None => {
                let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
                Err(self.refused(format!("the table has no column `{name}`; {}", nearest(name, &names))))
            }
        }
    }

    /// Returns the columns given by every `key =>`.
    pub(super) fn named_columns(&mut self, key: &str, table: &LogicalPlan) -> Result<Vec<(String, Expr)>> {
        let arguments = self.take_named(key);
        arguments.iter().map(|argument| self.column(argument, table.schema())).collect()
    }

    /// Returns the only column given by `key =>`.
    pub(super) fn named_column(&mut self, key: &str, table: &LogicalPlan) -> Result<Option<Expr>> {
        Ok(self.named_column_of(key, [table])?.and_then(|columns| columns.into_iter().next()))
    }

    /// Returns the only column given by `key =>`, in each of these tables.
    pub(super) fn named_column_of<const N: usize>(
        &mut self,
        key: &str,
        tables: [&LogicalPlan; N],
    ) -> Result<Option<Vec<Expr>>> {
        let arguments = self.take_named(key);
        if arguments.len() > 1 {
            return Err(self.refused(format!("`{key}` is given twice")));
        }
        let Some(argument) = arguments.first() else { return Ok(None) };
        let of_table = |table: &LogicalPlan| Ok(self.column(argument, table.schema())?.1);
        tables.into_iter().map(of_table).collect::<Result<Vec<_>>>().map(Some)
    }

    fn take_named(&mut self, key: &str) -> Vec<SqlExpr> {
        let (arguments, others): (Vec<_>, Vec<_>) = self.named.drain(..).partition(|(name, _)| name == key);
        self.named = others;
        arguments.into_iter().map(|(_, argument)| argument).collect()
    }

    /// Refuses the arguments that were not used.
    pub(super) fn finish(&self, keys: &[&str]) -> Result<()> {
        match self.named.first() {
            Some((name, _)) if keys.is_empty() => {
                Err(self.refused(format!("unknown argument `{name}`: this function takes none by name")))
            }
            Some((name, _)) => {
                Err(self.refused(format!("unknown argument `{name}`; {}", nearest(name, keys))))
            }
            None if self.positional.is_empty() => Ok(()),
            None => {
                let Doc { name, parameters, .. } = self.doc;
                Err(DataFusionError::Plan(format!("{name}({parameters}): too many arguments")))
            }
        }
    }
}

/// Returns the text of an argument that is one.
pub(super) fn text_of(argument: &SqlExpr) -> Option<&str> {
    match argument {
        SqlExpr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
            Value::DollarQuotedString(text) => Some(&text.value),
            _ => None,
        },
        _ => None,
    }
}

fn factor(name: ObjectName, args: Option<TableFunctionArgs>) -> TableFactor {
    TableFactor::Table {
        name,
        alias: None,
        args,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}

fn scan(
    name: TableReference,
    table: std::sync::Arc<dyn datafusion::catalog::TableProvider>,
) -> Result<LogicalPlan> {
    LogicalPlanBuilder::scan(name, provider_as_source(table), None)?.build()
}

/// Returns the result of a future where the caller cannot wait: runs it on its own thread, in the
/// caller's runtime.
pub(super) fn now<T: Send>(future: impl Future<Output = T> + Send) -> T {
    let runtime = tokio::runtime::Handle::try_current();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let _inside = runtime.as_ref().ok().map(tokio::runtime::Handle::enter);
            futures::executor::block_on(future)
        });
        match waiting.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
