//! Notes calls of measures over individuals whose arguments seem swapped.
//!
//! Neither types nor counts can refuse such a call: an individual may be a text, and a date of
//! visits may have more values than there are individuals. So names decide whether there is a note,
//! and the note says only how the arguments are read.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{AggregateUDFImpl, Expr, LogicalPlan};

use datafusion_kanon::internals::propose::is_persons_number;
use datafusion_kanon::internals::sql::udaf::ClassAggregate;

/// Returns a note on the first call of a statement whose individual is not named like a person's
/// number although another argument is.
pub(super) fn note(statement: &str, plan: &LogicalPlan) -> Option<String> {
    // Table functions such as `risk` call aggregates that the statement does not name.
    let statement = statement.to_lowercase();
    let mut note = None;
    // Looking at expressions does not fail.
    let _ = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                note = of_call(expr, &statement);
                Ok(if note.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })
    });
    note
}

fn of_call(expr: &Expr, statement: &str) -> Option<String> {
    let Expr::AggregateFunction(call) = expr else { return None };
    let function = call.func.inner().downcast_ref::<ClassAggregate>()?;
    if !statement.contains(function.name()) {
        return None;
    }
    let arguments = function.arguments(&call.params.args)?;
    let individual = column(arguments.individual?).filter(|name| !is_persons_number(name))?;
    let person = |argument| column(argument).filter(|name| is_persons_number(name));
    let (name, meaning) = match arguments.sensitive.and_then(person) {
        Some(name) => (name, "the sensitive column"),
        None => (arguments.quasi.iter().find_map(person)?, "a quasi-identifier"),
    };
    Some(format!(
        "note: {} takes `{individual}` as the individual and `{name}` as {meaning}; the order is {}\n",
        function.name(),
        function.documentation()?.syntax_example
    ))
}

/// Returns the name of a column, cast or not.
fn column(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Column(column) => Some(&column.name),
        Expr::Cast(cast) => column(&cast.expr),
        Expr::TryCast(cast) => column(&cast.expr),
        _ => None,
    }
}
