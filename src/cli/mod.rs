//! The command line: arguments are parsed, resolved and executed. Each file is one subcommand, all
//! of the same shape.

mod check;
mod compare;
mod explain;
mod generate;
mod hierarchy;
mod init;
mod inputs;
mod link;
mod list;
mod names;
mod numbers;
mod plan;
mod progress;
mod release;
mod risk;
mod search;
mod source;
mod sql;
mod verify;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use serde::Serialize;
use tokio::runtime::{Handle, Runtime};

use datafusion_kanon::internals::answer::Answer;
use datafusion_kanon::internals::engine::damaged::is_guarded;
use datafusion_kanon::internals::engine::temporary;
use datafusion_kanon::internals::error::of_file;
use datafusion_kanon::internals::render::{Document, Extent, json, markdown, text};
use datafusion_kanon::internals::store::stores::{set_options, set_stop};
use datafusion_kanon::{CancelToken, Error, ErrorCode, ErrorKind, Resources, Result, Run};
use progress::ProgressLine;
use source::Set;

/// Anonymize Parquet and CSV tables: propose a policy, check, search, release, verify.
#[derive(Debug, Parser)]
#[command(
    name = "kanon",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  kanon check patients.parquet --quasi age,sex,zip --k 5
  kanon init patients.parquet --to patients.toml
  kanon release patients.parquet --policy patients.toml --to patients_safe
  kanon verify patients_safe --input patients.parquet

Exit codes: 0 success, 1 a requirement does not hold or nothing was found,
2 usage or policy, 3 data, I/O or limits, 4 internal error, 130 interrupted."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    everywhere: Everywhere,
}

#[derive(Debug, Args)]
struct Everywhere {
    /// Output format.
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Number of worker threads, at most 512; defaults to the number of cores.
    #[arg(long, global = true, value_name = "N", allow_negative_numbers = true, value_parser = numbers::integer::<u16>(1..=512))]
    threads: Option<u16>,
    /// Memory limit, such as 800M or 16G.
    #[arg(long, global = true, value_name = "BYTES", default_value = "4G", value_parser = numbers::parse_bytes)]
    memory_limit: usize,
    /// Show the values that a hierarchy file does not cover; by default, errors only count them.
    #[arg(long, global = true)]
    show_values: bool,
    /// An option of the stores that addresses such as s3:// name, for example aws_region=eu-west-1; may be repeated. It goes before
    /// the environment (AWS_REGION), from which credentials are taken, too.
    #[arg(long = "option", global = true, value_name = "KEY=VALUE")]
    options: Vec<String>,
    /// Print results and errors only: no progress, no notes.
    #[arg(long, global = true)]
    quiet: bool,
    /// Print every step and how long it took, on standard error.
    #[arg(long, global = true)]
    verbose: bool,
}

impl Everywhere {
    fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        }
    }
}

/// Parses an option of a store. The error does not show it: it may be a password.
fn store_option(text: &str) -> Result<(String, String)> {
    let parts = text.split_once('=').map(|(key, value)| (key.to_ascii_lowercase(), value.to_owned()));
    parts.ok_or_else(|| Error::policy("--option: expected KEY=VALUE, such as aws_region=eu-west-1"))
}

/// What is printed besides results and errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verbosity {
    /// Nothing.
    Quiet,
    /// Notes, and progress on a terminal.
    Normal,
    /// The same and the time of every step.
    Verbose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text for people.
    Text,
    /// JSON for programs.
    Json,
    /// Text as a page in Markdown.
    Markdown,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Init),
    Check(check::Check),
    Search(search::Search),
    Release(release::Release),
    Verify(verify::Verify),
    Explain(explain::Explain),
    Risk(risk::Risk),
    Link(link::Link),
    Compare(compare::Compare),
    Plan(plan::Plan),
    Sql(sql::Sql),
    Hierarchy(hierarchy::Hierarchy),
    List(list::List),
    Generate(generate::Generate),
}

impl Command {
    /// Returns the keys of the policy to set.
    fn set(&self) -> Set {
        match self {
            Self::Check(check) => check.set().clone(),
            Self::Risk(risk) => risk.set().clone(),
            Self::Search(search) => search.set.clone(),
            Self::Release(release) => release.set.clone(),
            Self::Verify(verify) => verify.set.clone(),
            Self::Link(link) => link.set.clone(),
            Self::Plan(plan) => plan.set.clone(),
            // They read no policy, or only what it says of CSV files.
            _ => Set::default(),
        }
    }
}

/// The output of a command and its outcome.
struct Done {
    document: Document,
    json: serde_json::Value,
    /// Whether all requirements of the call hold: exit code 0 or 1.
    holds: bool,
    /// Whether people get the document as a page in Markdown, too.
    is_page: bool,
}

impl Done {
    /// Creates the outcome of a command with an answer.
    ///
    /// # Errors
    /// An internal error for an answer that JSON cannot hold.
    fn of(answer: &impl Answer) -> Result<Self> {
        let (document, holds) = (answer.document(), answer.holds());
        Ok(Self { document, json: json(answer)?, holds, is_page: false })
    }

    /// Creates the outcome of a command that has printed its output itself.
    fn printed() -> Self {
        Self { document: Document::default(), json: serde_json::Value::Null, holds: true, is_page: false }
    }

    /// Lays out the output.
    fn output(&self, format: Format, verbosity: Verbosity) -> String {
        let extent = match verbosity {
            Verbosity::Quiet => Extent::Results,
            Verbosity::Normal => Extent::Advice,
            Verbosity::Verbose => Extent::Details,
        };
        match format {
            Format::Json if self.json.is_null() => String::new(),
            Format::Json => format!("{:#}\n", self.json),
            Format::Text if !self.is_page => without_controls(&text(&self.document, extent)),
            Format::Text | Format::Markdown => without_controls(&markdown(&self.document, extent)),
        }
    }
}

/// Runs `kanon` on the arguments of this process.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse().and_then(consistent) {
        Ok(cli) => cli,
        Err(usage) if usage.use_stderr() && asks_for_json() => {
            // What follows the first paragraph is for people.
            let text = usage.render().to_string();
            let why = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
            return failed(&Error::policy(why).coded(ErrorCode::Usage), Format::Json);
        }
        Err(usage) => usage.exit(),
    };
    let (format, verbosity) = (cli.everywhere.format, cli.everywhere.verbosity());
    // A panic's text may quote cells, so only its location is printed.
    std::panic::set_hook(Box::new(|panic| {
        if is_guarded() {
            return;
        }
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(std::io::stderr(), "kanon: internal error at {place}; please report this bug");
    }));
    let done = std::panic::catch_unwind(|| run(cli))
        .unwrap_or_else(|_| Err(Error::internal("cli: the command panicked")));
    match done {
        Ok(done) => {
            let output = done.output(format, verbosity);
            let mut out = std::io::stdout().lock();
            match out.write_all(output.as_bytes()).and_then(|()| out.flush()) {
                // A reader that closed the pipe does not want more: no error.
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                    let _ = writeln!(std::io::stderr(), "kanon: writing the result: {}", of_file(&error));
                    return ExitCode::from(ErrorKind::Data.exit_code());
                }
                _ => {}
            }
            ExitCode::from(if done.holds { 0 } else { ErrorKind::Unmet.exit_code() })
        }
        Err(error) => failed(&error, format),
    }
}

/// Refuses options that contradict each other. `conflicts_with` misses two options on different
/// sides of the command.
fn consistent(cli: Cli) -> Result<Cli, clap::Error> {
    if cli.everywhere.quiet && cli.everywhere.verbose {
        let why = "the argument '--quiet' cannot be used with '--verbose'";
        return Err(Cli::command().error(clap::error::ErrorKind::ArgumentConflict, why));
    }
    if cli.everywhere.format == Format::Markdown && matches!(cli.command, Command::Sql(_)) {
        let why = "'kanon sql' prints its results as text or as JSON, not as Markdown";
        return Err(Cli::command().error(clap::error::ErrorKind::ArgumentConflict, why));
    }
    Ok(cli)
}

/// An error, as JSON shows it.
#[derive(Serialize)]
struct ErrorAnswer<'a> {
    #[serde(flatten)]
    first: OneError<'a>,
    exit_code: u8,
    /// All of them, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<OneError<'a>>,
}

/// One of several errors.
#[derive(Serialize)]
struct OneError<'a> {
    error: &'a str,
    code: &'a str,
}

impl<'a> From<&'a Error> for ErrorAnswer<'a> {
    fn from(error: &'a Error) -> Self {
        let one = |error: &'a Error| OneError { error: error.message(), code: error.code() };
        let all: Vec<OneError> = error.each().map(one).collect();
        let errors = if all.len() > 1 { all } else { Vec::new() };
        Self { first: one(error), exit_code: error.kind().exit_code(), errors }
    }
}

/// Prints an error, and those beside it; returns its exit code.
fn failed(error: &Error, format: Format) -> ExitCode {
    let text = match format {
        Format::Text | Format::Markdown => {
            let line = |error: &Error| format!("kanon: {}\n", without_controls(error.message()));
            error.each().map(line).collect()
        }
        Format::Json => json(&ErrorAnswer::from(error))
            .map_or_else(|error| format!("kanon: {}\n", error.message()), |json| format!("{json:#}\n")),
    };
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
    ExitCode::from(error.kind().exit_code())
}

/// Returns whether the arguments of this process, which may be wrong, ask for JSON.
fn asks_for_json() -> bool {
    let arguments: Vec<_> = std::env::args_os().collect();
    let pairs = || arguments.windows(2);
    arguments.iter().any(|one| one == "--format=json")
        || pairs().any(|pair| pair[0] == "--format" && pair[1] == "json")
}

/// The stack size of threads that read, plan or run queries: several times that of most main threads,
/// for expressions of 4,000 terms. Memory is taken only as far as it is used.
const STACK: usize = 64 << 20;

/// Creates the runtime of the threads that compute.
fn workers(threads: usize) -> Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(threads).thread_stack_size(STACK).enable_all().build();
    runtime.map_err(|e| Error::data(format!("cannot start threads: {}", of_file(&e))))
}

/// Computes on a thread with a large stack, and waits for it.
fn on_large_stack(compute: impl FnOnce() -> Result<Done> + Send) -> Result<Done> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, compute);
        let thread = thread.map_err(|e| Error::data(format!("cannot start threads: {}", of_file(&e))))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn run(cli: Cli) -> Result<Done> {
    let options = cli.everywhere.options.iter().map(|option| store_option(option));
    set_options(options.collect::<Result<_>>()?)?;
    let mut resources = Resources::default_of_machine();
    resources.memory = cli.everywhere.memory_limit;
    if let Some(threads) = cli.everywhere.threads {
        resources.threads = threads.into();
    }
    let runtime = workers(resources.threads)?;
    // A thread that never computes listens for signals: the others may compute for a long time.
    let listening = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_io().build();
    let listening =
        listening.map_err(|e| Error::data(format!("cannot listen for signals: {}", of_file(&e))))?;
    let stop = CancelToken::default();
    set_stop(stop.clone());
    let (format, verbosity) = (cli.everywhere.format, cli.everywhere.verbosity());
    let (prints_itself, is_prompt) = match &cli.command {
        Command::Sql(sql) => (true, sql.is_prompt()),
        _ => (false, false),
    };
    // Programs read standard error too, as JSON.
    let prints_notices = format != Format::Json && verbosity != Verbosity::Quiet;
    let shows_progress = std::io::stderr().is_terminal() && prints_notices && !prints_itself;
    let prints_steps = verbosity == Verbosity::Verbose;
    let beats = prints_notices && !shows_progress && !prints_itself;
    let progress = Arc::new(ProgressLine::new(shows_progress, prints_notices, prints_steps, beats));
    let signals = {
        let _entered = listening.enter();
        signals(stop.clone(), !is_prompt)?
    };
    let stopped = listening.spawn(signals);
    let show_values = cli.everywhere.show_values;
    let run = Run { resources, stop, progress: Arc::<ProgressLine>::clone(&progress), show_values };
    let done = on_large_stack(|| {
        runtime.block_on(async {
            tokio::select! {
                biased;
                done = command(cli.command, &run, format, verbosity, listening.handle()) => done,
                _ = stopped => Err(if prints_itself { Error::interrupted_query() } else { Error::interrupted() }),
            }
        })
    });
    progress.end();
    // Does not wait for threads that still compute for a stopped run.
    runtime.shutdown_background();
    listening.shutdown_background();
    temporary::remove_all();
    done
}

async fn command(
    command: Command,
    run: &Run,
    format: Format,
    verbosity: Verbosity,
    listening: &Handle,
) -> Result<Done> {
    let set = command.set();
    let done = match command {
        Command::Init(init) => init.run(run).await,
        Command::Check(check) => check.run(run).await,
        Command::Search(search) => search.run(run).await,
        Command::Release(release) => release.run(run, format).await,
        Command::Verify(verify) => verify.run(run).await,
        Command::Explain(explain) => explain.run(),
        Command::Risk(risk) => risk.run(run).await,
        Command::Link(link) => link.run(run).await,
        Command::Compare(compare) => compare.run(run).await,
        Command::Plan(plan) => plan.run(run).await,
        Command::Sql(sql) => sql.run(run, format, verbosity, listening).await,
        Command::Hierarchy(hierarchy) => hierarchy.run(run, format).await,
        Command::List(list) => list.run(),
        Command::Generate(generate) => generate.run(run).await,
    };
    done.map_err(|error| set.located(error, None))
}

/// Starts listening for signals. The returned future stops the run and ends when the user asks to
/// stop. A prompt handles interrupts itself.
#[cfg(unix)]
fn signals(stop: CancelToken, interrupts: bool) -> Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen =
        |kind| signal(kind).map_err(|e| Error::data(format!("cannot listen for signals: {}", of_file(&e))));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let mut hangup = listen(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv(), if interrupts => {}
            _ = terminate.recv() => {}
            // The terminal was closed.
            _ = hangup.recv() => {}
        }
        stop.cancel();
    })
}

/// Starts listening for signals. The returned future stops the run and ends when the user asks to
/// stop. A prompt handles interrupts itself.
#[cfg(not(unix))]
fn signals(stop: CancelToken, interrupts: bool) -> Result<impl Future<Output = ()>> {
    Ok(async move {
        if interrupts {
            drop(tokio::signal::ctrl_c().await);
        } else {
            std::future::pending::<()>().await;
        }
        stop.cancel();
    })
}

/// Removes control characters: a cell or a column name must not control the terminal.
fn without_controls(text: &str) -> String {
    let turns = |c| matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    text.replace(|c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || turns(c), "\u{FFFD}")
}

/// Quotes a word of a command line that the user may copy.
fn in_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=@%+,".contains(c);
    if word.chars().all(is_plain) && !word.is_empty() {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example"), "{} has no example", command.get_name());
            assert!(command.get_about().is_some(), "{} has no description", command.get_name());
        }
    }
}
