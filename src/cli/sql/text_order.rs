//! Notes comparisons of columns of CSV files that are text, in which numbers compare letter by letter: '10' comes
//! before '9'.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::TableReference;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::listing::ListingTable;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator, TableScan};
use datafusion::scalar::ScalarValue;

use super::no_column::written;
use datafusion_kanon::internals::input::pinned_table::PinnedTable;

/// A column of a CSV file, or of an external table of such files.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Source {
    file: String,
    column: String,
}

/// The text columns of a session that come from CSV files.
#[derive(Debug, Default)]
pub(super) struct TextOrder {
    /// The names of the CSV files that queries opened.
    files: BTreeSet<String>,
    /// The sources of the columns of tables that queries filled.
    tables: HashMap<String, Vec<Option<Source>>>,
    /// The columns with a note.
    noted: HashSet<Source>,
}

impl TextOrder {
    /// Adds CSV files that a query opened by name.
    pub(super) fn add_files(&mut self, names: impl Iterator<Item = String>) {
        self.files.extend(names);
    }

    /// Adds a table that gets the rows of a query.
    pub(super) fn add_table(&mut self, name: &TableReference, rows: &LogicalPlan) {
        let sources = (0..rows.schema().fields().len()).map(|index| self.source(rows, index)).collect();
        self.tables.insert(name.table().to_owned(), sources);
    }

    /// Returns a note for every column that a query compares or sorts as text, unless it has one.
    pub(super) fn notes(&mut self, plan: &LogicalPlan) -> String {
        let mut sources = Vec::new();
        // Looking at expressions does not fail.
        let _ = plan.apply_with_subqueries(|node| {
            if let LogicalPlan::SubqueryAlias(alias) = node
                && self.is_file(&alias.alias)
            {
                return Ok(TreeNodeRecursion::Jump);
            }
            let mut compare = |operands: &[&Expr]| sources.extend(self.compared(node, operands));
            if let LogicalPlan::Sort(sort) = node {
                sort.expr.iter().for_each(|sort| compare(&[&sort.expr]));
            }
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    of_expr(expr, &mut compare);
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        });
        sources.retain(|source| self.noted.insert(source.clone()));
        sources.iter().map(note).collect()
    }

    /// Returns the sources of operands that are compared with each other, if the comparison is one of texts.
    fn compared(&self, node: &LogicalPlan, operands: &[&Expr]) -> Vec<Source> {
        let schema = merge_schema(&node.inputs());
        let is_text = |expr: &&Expr| expr.get_type(&schema).is_ok_and(|found| found.is_string());
        if !operands.iter().all(is_text) || operands.iter().any(|expr| is_word(expr)) {
            return Vec::new();
        }
        operands.iter().filter_map(|expr| self.source_of(node, expr)).collect()
    }

    /// Returns the source of an expression over the inputs of a node, if it is a column.
    fn source_of(&self, node: &LogicalPlan, expr: &Expr) -> Option<Source> {
        match expr {
            Expr::Alias(alias) => self.source_of(node, &alias.expr),
            Expr::Column(column) => node
                .inputs()
                .into_iter()
                .find_map(|input| self.source(input, input.schema().maybe_index_of_column(column)?)),
            _ => None,
        }
    }

    /// Returns the source of a column of a plan's result, if it is text there.
    fn source(&self, plan: &LogicalPlan, index: usize) -> Option<Source> {
        if !plan.schema().fields().get(index)?.data_type().is_string() {
            return None;
        }
        match plan {
            LogicalPlan::SubqueryAlias(alias) if self.is_file(&alias.alias) => {
                let column = alias.schema.fields().get(index)?.name().clone();
                Some(Source { file: alias.alias.table().to_owned(), column })
            }
            LogicalPlan::TableScan(scan) => self.source_in(scan, index),
            LogicalPlan::Projection(projection) => self.source_of(plan, projection.expr.get(index)?),
            LogicalPlan::Aggregate(aggregate) => self.source_of(plan, aggregate.group_expr.get(index)?),
            LogicalPlan::Join(join) => {
                self.source_of(plan, &Expr::Column(join.schema.columns().get(index)?.clone()))
            }
            LogicalPlan::Union(union) => union.inputs.iter().find_map(|input| self.source(input, index)),
            LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Subquery(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::Repartition(_)
            | LogicalPlan::Window(_) => self.source(plan.inputs().first()?, index),
            _ => None,
        }
    }

    /// Returns the source of a column of a table: one that a query filled, or an external one of CSV files.
    fn source_in(&self, scan: &TableScan, index: usize) -> Option<Source> {
        let index = scan.projection.as_ref().map_or(Some(index), |kept| kept.get(index).copied())?;
        let name = scan.table_name.table();
        if let Some(sources) = self.tables.get(name) {
            return sources.get(index)?.clone();
        }
        let provider = source_as_provider(&scan.source).ok()?;
        let pinned = provider.downcast_ref::<PinnedTable>().map(|pinned| Arc::clone(&pinned.table));
        let provider = pinned.unwrap_or(provider);
        let table = provider.downcast_ref::<ListingTable>()?;
        let column = scan.source.schema().fields().get(index)?.name().clone();
        (table.options().format.get_ext() == "csv").then(|| Source { file: name.to_owned(), column })
    }

    fn is_file(&self, name: &TableReference) -> bool {
        self.files.contains(name.table())
    }
}

/// Calls `compare` with operands that the expression compares with each other.
fn of_expr(expr: &Expr, compare: &mut impl FnMut(&[&Expr])) {
    let (function, arguments, order) = match expr {
        Expr::BinaryExpr(binary) => {
            if matches!(binary.op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq) {
                compare(&[&binary.left, &binary.right]);
            }
            return;
        }
        Expr::Between(between) => return compare(&[&between.expr, &between.low, &between.high]),
        Expr::ScalarFunction(call) => (call.func.name(), &call.args, None),
        Expr::AggregateFunction(call) => (call.func.name(), &call.params.args, Some(&call.params.order_by)),
        Expr::WindowFunction(call) => (call.fun.name(), &call.params.args, Some(&call.params.order_by)),
        _ => return,
    };
    if matches!(function, "min" | "max" | "greatest" | "least") {
        compare(&arguments.iter().collect::<Vec<_>>());
    }
    order.into_iter().flatten().for_each(|sort| compare(&[&sort.expr]));
}

/// Returns whether an expression is a text without digits, which is compared neither with numbers
/// nor with dates.
fn is_word(expr: &Expr) -> bool {
    let Expr::Literal(ScalarValue::Utf8(text) | ScalarValue::Utf8View(text), _) = expr else { return false };
    text.as_ref().is_none_or(|text| !text.contains(|c: char| c.is_ascii_digit()))
}

fn note(source: &Source) -> String {
    let (Source { file, column }, name) = (source, written(&source.column));
    format!(
        "note: `{column}` of {file} is text, so it is compared letter by letter: '10' comes before '9'; CAST({name} AS DOUBLE) \
         compares numbers, to_date({name}, '%d.%m.%Y') dates\n"
    )
}
