//! Progress on a terminal: one line on standard error that disappears. In a pipe: notices only.

use std::io::Write;

use indicatif::{ProgressBar, ProgressStyle};

use crate::progress::{Phase, Progress};

/// A bar that follows the progress of a run.
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    prints_notices: bool,
}

impl ProgressLine {
    /// Creates a bar; `shown` draws it, `prints_notices` prints notices.
    pub(crate) fn new(shown: bool, prints_notices: bool) -> Self {
        let bar = if shown { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        if shown {
            bar.enable_steady_tick(std::time::Duration::from_millis(100));
        }
        Self { bar, prints_notices }
    }

    /// Removes the bar from the terminal.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for ProgressLine {
    fn begin(&self, phase: Phase, total: u64) {
        self.bar.set_message(match phase {
            Phase::Profile => "grouping",
            Phase::Search => "searching",
            Phase::Write => "writing",
            Phase::Verify => "verifying",
            Phase::Publish => "publishing",
        });
        let template = if total > 0 {
            "{spinner} {msg} {wide_bar} {human_pos}/{human_len}"
        } else {
            "{spinner} {msg} {elapsed}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
        self.bar.set_length(total);
        self.bar.set_position(0);
    }

    fn done(&self, units: u64) {
        self.bar.set_position(units);
    }

    fn notice(&self, text: &str) {
        if self.prints_notices {
            // Failing to print a notice must not end the run.
            self.bar.suspend(|| drop(writeln!(std::io::stderr(), "kanon: {text}")));
        }
    }
}
