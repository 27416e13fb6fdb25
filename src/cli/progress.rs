//! Progress on a terminal: one line on standard error that disappears. In a pipe: notices only. On
//! request the time of every step.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use crate::progress::{Phase, Progress};

/// A bar that follows the progress of a run.
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    prints_notices: bool,
    /// The steps, where their times are printed.
    steps: Option<Steps>,
}

/// The steps of a run.
struct Steps {
    started: Instant,
    /// The name of the current step, once there is one, and its start.
    current: Mutex<(Option<&'static str>, Instant)>,
}

impl Steps {
    fn current(&self) -> MutexGuard<'_, (Option<&'static str>, Instant)> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressLine {
    /// Creates a bar; `shown` draws it, `prints_notices` prints notices, `prints_steps` the time of
    /// every step.
    pub(crate) fn new(shown: bool, prints_notices: bool, prints_steps: bool) -> Self {
        let bar = if shown { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        if shown {
            bar.enable_steady_tick(std::time::Duration::from_millis(100));
        }
        let started = Instant::now();
        let steps = prints_steps.then(|| Steps { started, current: Mutex::new((None, started)) });
        Self { bar, prints_notices, steps }
    }

    /// Removes the bar from the terminal; prints the times of the last step and of the run.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
        if let Some(steps) = &self.steps {
            if let (Some(last), since) = *steps.current() {
                self.print_time(last, since);
            }
            self.print_time("total", steps.started);
        }
    }

    /// Begins a step, unless it goes on, and prints the time of the last one.
    fn begin_step(&self, name: &'static str) {
        if let Some(steps) = &self.steps {
            let mut current = steps.current();
            if current.0 != Some(name) {
                self.print_time(current.0.unwrap_or("preparing"), current.1);
                *current = (Some(name), Instant::now());
            }
        }
    }

    fn print_time(&self, what: &str, since: Instant) {
        self.print(&format!("{what}: {:.3} s", since.elapsed().as_secs_f64()));
    }

    fn print(&self, text: &str) {
        // Failing to print must not end the run.
        self.bar.suspend(|| drop(writeln!(std::io::stderr(), "kanon: {text}")));
    }
}

impl Progress for ProgressLine {
    fn begin(&self, phase: Phase, total: u64) {
        let name = match phase {
            Phase::Profile => "grouping",
            Phase::Search => "searching",
            Phase::Write => "writing",
            Phase::Verify => "verifying",
            Phase::Publish => "publishing",
        };
        self.begin_step(name);
        self.bar.set_message(name);
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
            self.print(text);
        }
    }
}
