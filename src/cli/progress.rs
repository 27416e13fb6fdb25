//! Progress on a terminal: one line on standard error that disappears. In a pipe: notices, and every ten seconds a line of
//! its own. On request the time of every step.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use datafusion_kanon::internals::plural::grouped;
use datafusion_kanon::{Phase, Progress};

/// The time between two lines in a pipe.
const BEAT: Duration = Duration::from_secs(10);

/// A bar that follows the progress of a run.
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    prints_notices: bool,
    /// The steps, where their times are printed.
    steps: Option<Steps>,
    /// The lines in a pipe.
    beat: Option<Heartbeat>,
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
    /// every step, `beats` a line every ten seconds.
    pub(crate) fn new(shown: bool, prints_notices: bool, prints_steps: bool, beats: bool) -> Self {
        let bar = if shown { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        if shown {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        let started = Instant::now();
        let steps = prints_steps.then(|| Steps { started, current: Mutex::new((None, started)) });
        let beat = beats.then(|| Heartbeat::start(BEAT, |text| drop(writeln!(std::io::stderr(), "{text}"))));
        Self { bar, prints_notices, steps, beat }
    }

    /// Removes the bar from the terminal; prints the times of the last step and of the run.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
        if let Some(beat) = &self.beat {
            beat.set(None);
        }
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
        let name = phase.name();
        self.begin_step(name);
        if let Some(beat) = &self.beat {
            beat.set(Some(Work { name, since: Instant::now(), done: 0, total }));
        }
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
        if let Some(beat) = &self.beat {
            beat.done(units);
        }
    }

    fn notice(&self, text: &str) {
        if self.prints_notices {
            self.print(text);
        }
    }
}

/// The phase that goes on.
struct Work {
    name: &'static str,
    since: Instant,
    done: u64,
    /// The units of work; 0 if unknown.
    total: u64,
}

impl Work {
    /// Describes it: `kanon: writing, 2,000 of 9,000, 20 s`.
    fn text(&self) -> String {
        let units = match self.total {
            0 => String::new(),
            total => format!(", {} of {}", grouped(self.done), grouped(total)),
        };
        format!("kanon: {}{units}, {} s", self.name, self.since.elapsed().as_secs())
    }
}

/// Prints at regular times what goes on.
struct Heartbeat {
    work: Arc<Mutex<Option<Work>>>,
    /// Ends the thread that prints once it is dropped.
    _end: Sender<()>,
}

impl Heartbeat {
    fn start(every: Duration, print: impl Fn(&str) + Send + 'static) -> Self {
        let (end, ended) = channel();
        let work = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&work);
        std::thread::spawn(move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                // What is set to nothing meanwhile is not printed.
                let work: MutexGuard<Option<Work>> = seen.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(work) = &*work {
                    print(&work.text());
                }
            }
        });
        Self { work, _end: end }
    }

    fn set(&self, work: Option<Work>) {
        *self.work.lock().unwrap_or_else(PoisonError::into_inner) = work;
    }

    fn done(&self, units: u64) {
        if let Some(work) = self.work.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            work.done = units;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_at_regular_times_until_the_end() {
        let (send, lines) = channel();
        let beat = Heartbeat::start(Duration::from_millis(5), move |text| drop(send.send(text.to_owned())));
        beat.set(Some(Work { name: "writing", since: Instant::now(), done: 0, total: 9_000 }));
        beat.done(2_000);
        let long = Duration::from_secs(60);
        let all = [lines.recv_timeout(long).unwrap(), lines.recv_timeout(long).unwrap()];
        assert!(all[1].starts_with("kanon: writing, 2,000 of 9,000, "), "{all:?}");
        drop(beat);
        // The thread ends, and with it the sender.
        while lines.recv_timeout(long).is_ok() {}
        assert_eq!(lines.recv_timeout(long), Err(RecvTimeoutError::Disconnected));
    }
}
