//! The prompt: reads lines until a statement ends, keeps a history, and stops a running statement
//! on Ctrl-C.

use std::path::PathBuf;

use rustyline::config::Behavior;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use tokio::runtime::Handle;

use super::script::{End, end, is_command};
use super::shell::{Shell, notify};
use crate::cli::without_controls;
use datafusion_kanon::internals::error::of_file;
use datafusion_kanon::{Error, ErrorKind, Result};

/// The number of lines in the history.
const KEPT: usize = 1000;

/// Reads and runs statements until the user leaves.
///
/// # Errors
/// A data error when the terminal cannot be read; errors of statements are printed and do not end
/// the prompt.
pub(super) async fn run(shell: &mut Shell, listening: &Handle) -> Result<()> {
    let mut editor = editor().map_err(|_| unreadable())?;
    let history = history();
    if let Some(path) = &history {
        // Failing to read or write the history does not end the prompt.
        let _ = editor.load_history(path);
    }
    shell.note(concat!(
        "kanon ",
        env!("CARGO_PKG_VERSION"),
        r": end statements with ; (\? for help, \q to quit)",
        "\n"
    ));
    let mut typed = String::new();
    loop {
        let prompt = if typed.is_empty() { "kanon> " } else { "    -> " };
        // Reads on a thread of its own, so that a signal can end the command.
        let read = tokio::task::spawn_blocking(move || (editor.readline(prompt), editor)).await;
        let (line, back) = read.map_err(|_| Error::internal("prompt: the thread that reads lines failed"))?;
        editor = back;
        match line {
            Ok(line) => typed += &(line + "\n"),
            Err(ReadlineError::Interrupted) => {
                typed.clear();
                continue;
            }
            Err(ReadlineError::Eof) => return Ok(()),
            Err(ReadlineError::Signal(_)) => continue,
            Err(_) => return Err(unreadable()),
        }
        let first_is_command = typed.lines().count() == 1 && is_command(&typed);
        match end(&typed, &*shell.dialect()) {
            End::Blank => typed.clear(),
            End::Open if !first_is_command => {}
            End::Open | End::Statement => {
                let text = std::mem::take(&mut typed);
                let _ = editor.add_history_entry(text.trim_end());
                if let Some(path) = &history {
                    let _ = editor.append_history(path);
                }
                if !run_one(shell, &text, listening).await? {
                    return Ok(());
                }
            }
        }
    }
}

/// Runs the typed text unless it is stopped; returns whether to continue.
async fn run_one(shell: &mut Shell, text: &str, listening: &Handle) -> Result<bool> {
    let mut interrupt = listening.spawn(tokio::signal::ctrl_c());
    let done = tokio::select! {
        biased;
        stopped = &mut interrupt => {
            let stopped = stopped.map_err(|_| Error::internal("prompt: the thread that listens for signals failed"))?;
            stopped.map_err(|e| Error::data(format!("cannot listen for signals: {}", of_file(&e))))?;
            Err(Error::interrupted())
        }
        done = shell.run(text) => done,
    };
    interrupt.abort();
    match done {
        Err(error) if error.kind() == ErrorKind::Interrupted => {
            notify("\ncancelled; a running COPY or INSERT may be incomplete or may still finish\n");
        }
        Err(error) => notify(&format!("kanon: {}\n", without_controls(&error.to_string()))),
        Ok(goes_on) => return Ok(goes_on),
    }
    Ok(true)
}

/// Creates a line editor on the terminal itself: standard output is for results.
fn editor() -> rustyline::Result<Editor<(), FileHistory>> {
    let config = Config::builder()
        .behavior(Behavior::PreferTerm)
        .max_history_size(KEPT)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .build();
    Editor::with_config(config)
}

/// Returns the file of the history, in an existing folder.
fn history() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = folder("XDG_STATE_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".local/state")))
        .or_else(|| folder("LOCALAPPDATA"))?
        .join("kanon");
    std::fs::create_dir_all(&state).ok()?;
    Some(state.join("sql_history"))
}

fn unreadable() -> Error {
    Error::data("cannot read from the terminal; pipe the statements in, or use -c or -f")
}
