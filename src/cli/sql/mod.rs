//! `kanon sql`: a thin shell in which files are tables by their names and every function of this
//! crate is registered.

mod copy;
mod draw;
mod errors;
mod external;
mod files;
mod listed;
mod moments;
mod no_column;
mod operators;
mod own_names;
mod print;
mod prompt;
mod script;
mod shell;
mod swapped;
mod text_order;
mod workers;

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tokio::runtime::Handle;

use super::{Done, Format, Verbosity};
use datafusion_kanon::internals::store::local_path;
use datafusion_kanon::{CsvOptions, Error, Result, Run};
use shell::Shell;

/// Query files in SQL with all functions of kanon.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  kanon sql
  kanon sql -c "SELECT sex, count(*) FROM 'visits.parquet' GROUP BY sex" --output csv
  kanon sql -c "SELECT k_anonymity(zip, sex) FROM 'visits.parquet'" --format json
  kanon sql -f questions.sql

Files, folders and globs of Parquet, CSV, JSON lines and Arrow files are tables:
FROM 'visits.parquet', FROM 'lake/*.parquet'. A column of CSV files, also in CREATE
EXTERNAL TABLE without columns, is of numbers or dates if all its cells are; one cell
such as 01067 or NA keeps it text (SET kanon.csv_types = 'text' keeps all).

With neither -c nor -f, kanon sql opens a prompt on a terminal; otherwise it reads the
statements from standard input. Statements end with ; and a line between them may be a
command: \d tables and files, \d NAME columns of a table or file, \o FORMAT, \x expanded
rows, \timing, \?, \q. The prompt keeps its history in ~/.local/state/kanon, without
lines that begin with a space. On a terminal, tables are cut to its width."#)]
pub(crate) struct Sql {
    /// Run these statements; may be repeated.
    #[arg(short = 'c', long = "command", value_name = "SQL")]
    statements: Vec<String>,
    /// Run the statements of a file before those of -c; may be repeated.
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How CSV files are written: keys as under `[input]` of a policy, such as 'delimiter = ";",
    /// encoding = "latin1", nulls = ["", "NA"]'. `SET kanon.csv` does the same.
    #[arg(long, value_name = "KEYS", value_parser = |keys: &str| CsvOptions::parse(keys).map(|_| keys.to_owned()))]
    csv: Option<String>,
    /// Output format of results; defaults to table, or to json with --format json.
    #[arg(long, value_enum)]
    output: Option<Output>,
}

/// How the rows of a result are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A table drawn with lines.
    Table,
    /// Comma-separated, with a header; NULL is empty.
    Csv,
    /// An array of objects.
    Json,
}

impl Sql {
    /// Returns whether the statements are typed at a prompt.
    pub(super) fn is_prompt(&self) -> bool {
        self.statements.is_empty() && self.files.is_empty() && std::io::stdin().is_terminal()
    }

    /// Runs the statements; `listening` is a runtime that handles signals while others compute.
    pub(super) async fn run(
        self,
        run: &Run,
        format: Format,
        verbosity: Verbosity,
        listening: &Handle,
    ) -> Result<Done> {
        let output = self.output.unwrap_or(match format {
            // The command line refuses Markdown.
            Format::Text | Format::Markdown => Output::Table,
            Format::Json => Output::Json,
        });
        let prompt = self.is_prompt();
        let mut shell = Shell::new(run, output, verbosity, prompt, self.csv.as_deref())?;
        if prompt {
            prompt::run(&mut shell, listening).await?;
            return Ok(Done::printed());
        }
        for (place, text) in self.texts()? {
            let goes_on = shell.run(&text).await.map_err(|error| match place {
                None => error,
                Some(place) => error.at(place),
            })?;
            if !goes_on {
                break;
            }
        }
        Ok(Done::printed())
    }

    /// Returns the texts to run, each with its file unless it is from the command line.
    fn texts(self) -> Result<Vec<(Option<String>, String)>> {
        let mut texts = Vec::new();
        if self.files.is_empty() && self.statements.is_empty() {
            let mut text = String::new();
            let read = std::io::stdin().lock().read_to_string(&mut text);
            read.map_err(|e| Error::from_io(&e).at("standard input"))?;
            texts.push((None, text));
        }
        for path in self.files {
            let place = path.display().to_string();
            let path = local_path(&path).map_err(|e| e.at("--file"))?;
            let text = std::fs::read_to_string(&path).map_err(|e| Error::from_io(&e).at(&place))?;
            texts.push((Some(place), text));
        }
        texts.extend(self.statements.into_iter().map(|text| (None, text)));
        Ok(texts)
    }
}
