//! The shell: one session that runs statements one after the other, and backslash commands.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use console::Term;
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::common::TableReference;
use datafusion::config::ExtensionOptions;
use datafusion::datasource::MemTable;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::registry::FunctionRegistry;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, LogicalPlanBuilder, UNNAMED_TABLE};
use datafusion::physical_plan::common::spawn_buffered;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::parser::{CopyToSource, DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{TableFactor, Visit, Visitor};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, dialect_from_str};
use tempfile::TempDir;

use super::Output;
use super::copy;
use super::errors::StageResult;
use super::external;
use super::files::Files;
use super::listed;
use super::moments::Moments;
use super::operators;
use super::print::{Layout, Pipe, print};
use super::script::{Part, Script};
use super::swapped;
use super::text_order::TextOrder;
use super::workers::Workers;
use crate::cli::Verbosity;
use datafusion_kanon::internals::error::nearest;
use datafusion_kanon::{CsvTypes, Error, InputFormat, KanonOptions, Resources, Result, Run};

/// The text of `\?`.
const HELP: &str = r"Statements end with ; and may take several lines. Commands are lines of their own:
  \d                  tables, and files of the current folder
  \d NAME             columns of a table or file: \d visits, \d 'visits.parquet'
  \o table|csv|json   output format of results
  \x                  switch expanded tables on or off: each row as lines of name | value
  \timing             switch the timing of statements on or off
  \? or \h            this help
  \q                  quit
Files are tables: SELECT * FROM 'visits.parquet'; folders and globs too. SHOW FUNCTIONS lists all functions.
";

/// The most rows of a table at a prompt.
const SHOWN_ON_TERMINAL: usize = 40;

/// A session and its output format.
pub(super) struct Shell {
    /// The folder of spill files, removed with the shell.
    _spill: TempDir,
    session: SessionContext,
    threads: usize,
    files: Files,
    output: Output,
    is_expanded: bool,
    /// Whether statements are typed at a prompt.
    prompt: bool,
    /// Whether notes are left out.
    is_quiet: bool,
    timing: bool,
    /// Whether the note on the limits of `anonymize` was printed.
    noted: bool,
    /// The columns that compare letter by letter.
    text_order: TextOrder,
    pipe: Pipe,
}

/// The data read to start a statement, before its rows are requested.
enum Reads {
    Nothing,
    Schema,
    /// The rows that become a table.
    Rows,
}

/// Creates a session in which every function of this crate is registered and every file has a name.
fn session(resources: &Resources, show_values: bool, csv: Option<&str>) -> Result<(SessionContext, Files)> {
    let session = resources.query_session()?;
    // First, so that table functions find files.
    let files = Files::enable(&session);
    datafusion_kanon::register_all(&session).running("registering the functions")?;
    session
        .state_ref()
        .write()
        .register_function_rewrite(Arc::new(Moments))
        .running("registering the functions")?;
    set_options(&session, show_values, csv).running("setting the options")?;
    Ok((session, files))
}

/// Sets the options; a user with a shell may read files anyway.
fn set_options(
    session: &SessionContext,
    show_values: bool,
    csv: Option<&str>,
) -> datafusion::error::Result<()> {
    let state = session.state_ref();
    let mut state = state.write();
    if let Some(options) = state.config_mut().options_mut().extensions.get_mut::<KanonOptions>() {
        (options.allow_files, options.show_values) = (true, show_values);
        options.csv_types = CsvTypes::Infer;
        if let Some(keys) = csv {
            options.set("csv", keys)?;
        }
    }
    Ok(())
}

impl Shell {
    /// Creates a shell; `prompt` is whether statements are typed at a prompt.
    ///
    /// # Errors
    /// Those of the engine's start.
    pub(super) fn new(
        run: &Run,
        output: Output,
        verbosity: Verbosity,
        prompt: bool,
        csv: Option<&str>,
    ) -> Result<Self> {
        // Spilled rows are cells: tasks that outlive an error or an interrupt must not leave them
        // behind.
        let spill = tempfile::Builder::new().prefix("kanon-sql-").tempdir();
        let spill = spill.map_err(|e| Error::from_io(&e).at("making a folder for spill files"))?;
        let resources = Resources { spill: Some(spill.path().to_path_buf()), ..run.resources.clone() };
        let (session, files) = session(&resources, run.show_values, csv)?;
        Ok(Self {
            _spill: spill,
            session,
            threads: resources.threads,
            files,
            output,
            is_expanded: false,
            prompt,
            is_quiet: verbosity == Verbosity::Quiet,
            timing: match verbosity {
                Verbosity::Quiet => false,
                Verbosity::Normal => prompt,
                Verbosity::Verbose => true,
            },
            noted: false,
            text_order: TextOrder::default(),
            pipe: Pipe::new(),
        })
    }

    /// Runs a text to its end or first error; returns whether to continue after it.
    ///
    /// # Errors
    /// The first error.
    pub(super) async fn run(&mut self, text: &str) -> Result<bool> {
        let mut script = Script::new(text);
        while let Some(part) = script.next_part(&*self.dialect()) {
            match part {
                Part::Command(line) => {
                    if !self.command(line).await? {
                        return Ok(false);
                    }
                }
                Part::Statements(text) => {
                    for statement in self.parse(&text)? {
                        self.statement(statement).await?;
                    }
                }
            }
            if self.pipe.is_closed() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the session's current dialect.
    pub(super) fn dialect(&self) -> Box<dyn Dialect> {
        let dialect = self.session.copied_config().options().sql_parser.dialect;
        dialect_from_str(dialect).unwrap_or_else(|| Box::new(GenericDialect))
    }

    fn parse(&self, text: &str) -> Result<impl Iterator<Item = Statement> + use<>> {
        let limit = self.session.copied_config().options().sql_parser.recursion_limit.get();
        let dialect = self.dialect();
        operators::check(text, &*dialect)?;
        let parser = DFParserBuilder::new(text).with_dialect(&*dialect).with_recursion_limit(limit).build();
        Ok(parser.and_then(|mut parser| parser.parse_statements()).planning()?.into_iter())
    }

    /// Returns the statement, or the query that stands for it: for SHOW TABLES, and for an external
    /// table of CSV files, which is read as other commands do.
    fn replaced(&self, statement: Statement) -> Result<Statement> {
        if let Some(tables) = listed::of_show_tables(&statement) {
            return Ok(self.parse(tables)?.next().unwrap_or(statement));
        }
        let Some(view) = external::as_view(&statement) else { return Ok(statement) };
        if let Statement::CreateExternalTable(table) = &statement {
            let name = TableReference::from(table.name.to_string());
            let is_there = self.session.table_exist(name.clone()).asking()?;
            if is_there && table.if_not_exists {
                return Ok(statement);
            }
            self.is_free(&name, table.or_replace)?;
        }
        Ok(self.parse(&view)?.next().unwrap_or(statement))
    }

    /// Runs one statement and prints its rows.
    async fn statement(&mut self, statement: Statement) -> Result<()> {
        if self.pipe.is_closed() {
            return Ok(());
        }
        let begun = Instant::now();
        copy::check_address(&statement)?;
        let statement = self.replaced(statement)?;
        let text = statement.to_string();
        let promises = !self.noted && calls_anonymize(&statement);
        let workers = Workers::begin(self.threads)?;
        let state = self.session.state();
        self.files.begin(&KanonOptions::of(state.config().options()));
        // The types of columns are found from all rows, which takes time.
        let plan = workers.wait(async move { state.statement_to_plan(statement).await }).await;
        let opened = self.files.end();
        let plan = plan?.planning()?;
        let (opened, told) = opened.map(|opened| (opened.names, opened.notes)).unwrap_or_default();
        self.note(&told);
        let names: Vec<&str> = opened.iter().map(|(name, _)| name.as_str()).collect();
        let doing = match names.as_slice() {
            [] => "running the query".to_owned(),
            names => format!("running the query over {}", names.join(", ")),
        };
        let of_csv = opened.into_iter().filter(|(_, format)| *format == InputFormat::Csv);
        self.text_order.add_files(of_csv.map(|(name, _)| name));
        let notes = self.text_order.notes(&plan);
        self.note(&(swapped::note(&text, &plan).unwrap_or_default() + &notes));
        let reads = match &plan {
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) => {
                self.is_free(&table.name, table.if_not_exists || table.or_replace)?;
                match table.if_not_exists && self.session.table_exist(table.name.clone()).asking()? {
                    true => Reads::Nothing,
                    false => {
                        self.text_order.add_table(&table.name, &table.input);
                        Reads::Rows
                    }
                }
            }
            LogicalPlan::Ddl(DdlStatement::CreateExternalTable(table)) => {
                self.is_free(&table.name, table.if_not_exists || table.or_replace)?;
                self.is_format(&table.file_type)?;
                Reads::Schema
            }
            LogicalPlan::Ddl(_) | LogicalPlan::Statement(_) => Reads::Nothing,
            _ => Reads::Schema,
        };
        let (session, of_task) = (self.session.clone(), doing.clone());
        let started = workers.run(async move { start(&session, plan, reads, &of_task).await });
        let rows = match started.await.map_err(|error| error.at(&doing))?? {
            Started::Done(told) => {
                self.note(&told);
                None
            }
            Started::Rows(rows) => Some(rows),
            // A statement that was interrupted before this point creates no table.
            Started::Table(plan) => {
                self.session.execute_logical_plan(plan).await.running(&doing)?;
                None
            }
        };
        match rows {
            None => self.note(if self.prompt { "done\n" } else { "" }),
            Some(rows) => {
                let pool = &self.session.runtime_env().memory_pool;
                print(rows, self.layout(), pool, &self.pipe, &doing).await?;
            }
        }
        if promises {
            self.noted = true;
            self.note(
                "note: the guarantee of anonymize() covers its complete result only; to publish, use `kanon \
                 release`\n",
            );
        }
        if self.timing {
            notify(&format!("{:.3} s\n", begun.elapsed().as_secs_f64()));
        }
        Ok(())
    }

    fn layout(&self) -> Layout {
        let stdout = Term::stdout();
        let most = if self.prompt && stdout.is_term() { SHOWN_ON_TERMINAL } else { usize::MAX };
        let width = stdout.size_checked().map(|(_, columns)| usize::from(columns));
        Layout { output: self.output, is_expanded: self.is_expanded, most, width }
    }

    fn is_free(&self, name: &TableReference, may_be_there: bool) -> Result<()> {
        if may_be_there || !self.session.table_exist(name.clone()).asking()? {
            return Ok(());
        }
        Err(Error::policy(format!("table `{name}` already exists; CREATE OR REPLACE TABLE replaces it")))
    }

    fn is_format(&self, name: &str) -> Result<()> {
        let state = self.session.state();
        let formats = state.table_factories();
        if formats.contains_key(&name.to_ascii_uppercase()) {
            return Ok(());
        }
        let mut valid: Vec<&str> = formats.keys().map(String::as_str).collect();
        valid.sort_unstable();
        let close = nearest(name, &valid);
        Err(Error::policy(format!("STORED AS {name}: unknown format; {close}")))
    }

    /// Runs a backslash command; returns whether to continue after it.
    async fn command(&mut self, line: &str) -> Result<bool> {
        let line = line.trim().trim_end_matches(';').trim_end();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (name, rest.trim()) {
            (r"\q", "") => return Ok(false),
            (r"\?" | r"\h", "") => notify(HELP),
            (r"\timing", "") => {
                self.timing = !self.timing;
                self.note(if self.timing { "timing is on\n" } else { "timing is off\n" });
            }
            (r"\x", "") => {
                self.is_expanded = !self.is_expanded;
                self.note(if self.is_expanded { "expanded is on\n" } else { "expanded is off\n" });
            }
            (r"\o", "table") => self.output = Output::Table,
            (r"\o", "csv") => self.output = Output::Csv,
            (r"\o", "json") => self.output = Output::Json,
            (r"\d", "") => {
                self.ask(&listed::query()).await?;
                if self.output == Output::Table {
                    self.note("\\d NAME lists the columns of a table or file: \\d 'visits.parquet'\n");
                }
            }
            (r"\d", name) => self.ask(&format!("DESCRIBE {}", quoted(name))).await?,
            _ => {
                let why = format!(
                    r"unknown command `{line}`; expected \d, \d NAME, \o table|csv|json, \x, \timing, \? or \q"
                );
                return Err(Error::policy(why));
            }
        }
        Ok(true)
    }

    /// Prints a note, unless the user wants none, or JSON, which programs read from standard error too.
    pub(super) fn note(&self, text: &str) {
        if !self.is_quiet && !matches!(self.output, Output::Json) {
            notify(text);
        }
    }

    /// Runs an internal statement.
    async fn ask(&mut self, text: &str) -> Result<()> {
        for statement in self.parse(text)? {
            self.statement(statement).await?;
        }
        Ok(())
    }
}

/// The result of starting a statement.
enum Started {
    /// The statement has no rows; what the user is told.
    Done(String),
    /// The statement's rows.
    Rows(SendableRecordBatchStream),
    /// The plan that creates a table from its rows.
    Table(LogicalPlan),
}

/// Starts a plan.
async fn start(session: &SessionContext, plan: LogicalPlan, reads: Reads, doing: &str) -> Result<Started> {
    let frame = match (reads, plan) {
        (Reads::Rows, LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut table))) => {
            let input = DataFrame::new(session.state(), Arc::unwrap_or_clone(table.input));
            let schema = Arc::clone(input.schema().inner());
            let rows = input.collect_partitioned().await.running(doing)?;
            let rows = provider_as_source(Arc::new(MemTable::try_new(schema, rows).running(doing)?));
            let rows =
                LogicalPlanBuilder::scan(UNNAMED_TABLE, rows, None).and_then(LogicalPlanBuilder::build);
            table.input = Arc::new(rows.running(doing)?);
            return Ok(Started::Table(LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table))));
        }
        (Reads::Schema, LogicalPlan::Ddl(DdlStatement::CreateExternalTable(table))) => {
            return external::create(session, *table).await.map(Started::Done);
        }
        (_, LogicalPlan::Copy(copy)) => {
            copy::open_output(session, &copy.output_url)?;
            session.execute_logical_plan(LogicalPlan::Copy(copy)).await.opening()?
        }
        (Reads::Nothing, plan) => session.execute_logical_plan(plan).await.asking()?,
        (_, plan) => session.execute_logical_plan(plan).await.opening()?,
    };
    if frame.schema().fields().is_empty() {
        return Ok(Started::Done(String::new()));
    }
    let context = frame.task_ctx().into();
    let plan = frame.create_physical_plan().await.planning()?;
    let rows = execute_stream(plan, context).running(doing)?;
    // Streams the rows on these threads, too.
    Ok(Started::Rows(spawn_buffered(rows, 1)))
}

/// Quotes a name as one identifier.
fn quoted(name: &str) -> String {
    let plain = ['\'', '"'].into_iter().find_map(|quote| name.strip_prefix(quote)?.strip_suffix(quote));
    format!("\"{}\"", plain.unwrap_or(name).replace('"', "\"\""))
}

/// Prints a message that is not a result.
pub(super) fn notify(text: &str) {
    // A closed standard error is not an error.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Returns whether rows of the table function `anonymize` reach the result.
fn calls_anonymize(statement: &Statement) -> bool {
    struct Calls;
    impl Visitor for Calls {
        type Break = ();
        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            let name = match factor {
                TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => name,
                _ => return ControlFlow::Continue(()),
            };
            match name.0.last().and_then(|part| part.as_ident()) {
                Some(name) if name.value.eq_ignore_ascii_case("anonymize") => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    match statement {
        Statement::Statement(statement) => statement.visit(&mut Calls).is_break(),
        Statement::CopyTo(copy) => match &copy.source {
            CopyToSource::Query(query) => query.visit(&mut Calls).is_break(),
            CopyToSource::Relation(_) => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::parser::DFParser;

    #[test]
    fn calls_of_anonymize_are_seen_where_they_stand() {
        let calls = |text: &str| calls_anonymize(&DFParser::parse_sql(text).unwrap()[0]);
        for text in [
            "SELECT * FROM anonymize('p.toml')",
            "SELECT * FROM (SELECT a FROM Anonymize('x', 'y')) AS t",
            "WITH t AS (SELECT * FROM anonymize('x')) SELECT 1",
            "CREATE TABLE t AS SELECT * FROM anonymize('x')",
            "COPY (SELECT * FROM anonymize('x')) TO 'y.parquet'",
        ] {
            assert!(calls(text), "{text}");
        }
        for text in ["SELECT 'anonymize('", "SELECT * FROM anonymize", "EXPLAIN SELECT * FROM anonymize('x')"]
        {
            assert!(!calls(text), "{text}");
        }
    }

    #[test]
    fn names_are_quoted_once() {
        assert_eq!(quoted("t"), "\"t\"");
        assert_eq!(quoted("'data/a b.csv'"), "\"data/a b.csv\"");
        assert_eq!(quoted("\"T\""), "\"T\"");
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }
}
