//! Lists what a query can name: the tables of the session, and the files of the current folder. No
//! file is opened.

use std::fs;
use std::path::{Path, PathBuf};

use datafusion::sql::parser::Statement;

use datafusion_kanon::internals::input::files::format_by_name;
use datafusion_kanon::internals::release::publish::record::is_private;
use datafusion_kanon::internals::store::is_hidden;

/// The tables that the user created.
const TABLES: &str = "SELECT table_schema, table_name, table_type FROM information_schema.tables \
                      WHERE table_schema <> 'information_schema' ORDER BY table_schema, table_name";

/// Returns the query for `SHOW TABLES`: without the tables that describe the session.
pub(super) fn of_show_tables(statement: &Statement) -> Option<&'static str> {
    let Statement::Statement(statement) = statement else { return None };
    (statement.to_string() == "SHOW TABLES").then_some(TABLES)
}

/// Returns the query for `\d`: tables and views, then files and folders of files.
pub(super) fn query() -> String {
    let mut files: Vec<(String, String)> =
        paths_in(Path::new(".")).filter_map(|path| listed(&path)).collect();
    files.sort();
    let rows: Vec<String> =
        files.iter().map(|(name, kind)| format!("('{}', '{kind}', 1)", name.replace('\'', "''"))).collect();
    let files = match rows.as_slice() {
        [] => String::new(),
        rows => format!(" UNION ALL VALUES {}", rows.join(", ")),
    };
    format!(
        "SELECT name, kind FROM (SELECT CASE table_schema WHEN 'public' THEN table_name \
         ELSE concat(table_schema, '.', table_name) END AS name, \
         CASE table_type WHEN 'VIEW' THEN 'view' ELSE 'table' END AS kind, 0 AS place \
         FROM ({TABLES}){files}) ORDER BY place, name"
    )
}

/// Returns the name and the kind of a file, or of a folder whose files have one format.
fn listed(path: &Path) -> Option<(String, String)> {
    let name = path.file_name()?.to_str()?.to_owned();
    if !path.is_dir() {
        let format = format_by_name(path).filter(|_| !is_private(path))?;
        return Some((name, format!("{} file", format.name())));
    }
    let mut formats = paths_in(path).filter(|path| path.is_file()).map(|path| format_by_name(&path));
    let first = formats.next()??;
    formats.all(|format| format == Some(first)).then(|| (name, format!("folder of {} files", first.name())))
}

/// Returns what a folder holds; nothing where it cannot be read.
fn paths_in(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| !is_hidden(path))
}
