//! `CREATE EXTERNAL TABLE ... STORED AS CSV`: read as `FROM 'file.csv'` is, as far as the statement
//! does not say otherwise.

use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::sql::parser::{CreateExternalTable, Statement};

/// Returns the statement that makes the table a view of the file as every command reads it: with
/// the delimiter that is found and the keys of `kanon.csv`. `None` for other statements, and for
/// those that name columns or options, a folder, a store elsewhere or a file with the name of
/// another format.
pub(super) fn as_view(statement: &Statement) -> Option<String> {
    let Statement::CreateExternalTable(CreateExternalTable {
        name,
        columns,
        file_type,
        table_partition_cols,
        order_exprs,
        locations,
        options,
        constraints,
        or_replace,
        unbounded,
        temporary,
        if_not_exists: _,
    }) = statement
    else {
        return None;
    };
    let [location] = locations.as_slice() else { return None };
    let is_plain = columns.is_empty()
        && table_partition_cols.is_empty()
        && order_exprs.is_empty()
        && options.is_empty()
        && constraints.is_empty()
        && !unbounded
        && !temporary
        // Otherwise the name says another format.
        && [".csv", ".tsv", ".txt"].iter().any(|end| location.to_ascii_lowercase().ends_with(end));
    (is_plain && file_type.eq_ignore_ascii_case("csv") && !location.contains("://")).then(|| {
        let or_replace = if *or_replace { "OR REPLACE " } else { "" };
        format!("CREATE {or_replace}VIEW {name} AS SELECT * FROM '{}'", location.replace('\'', "''"))
    })
}

/// Makes the columns of other CSV tables text, too, unless the statement names them or says how
/// many rows are looked at: the engine would read 01067 as 1067.
pub(super) fn with_texts(plan: LogicalPlan) -> LogicalPlan {
    const LOOKED_AT: &str = "format.schema_infer_max_rec";
    match plan {
        LogicalPlan::Ddl(DdlStatement::CreateExternalTable(mut table))
            if table.file_type.eq_ignore_ascii_case("csv") && table.schema.fields().is_empty() =>
        {
            table.options.entry(LOOKED_AT.to_owned()).or_insert_with(|| "0".to_owned());
            LogicalPlan::Ddl(DdlStatement::CreateExternalTable(table))
        }
        plan => plan,
    }
}
