//! How long the phases of a run take.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde::Serialize;

use crate::progress::{Phase, Progress};

/// The time that a phase took.
#[derive(Debug, Clone, Serialize)]
pub struct PhaseTime {
    /// What was done: `preparing`, `grouping`, `searching`, `writing`, `verifying` or `publishing`.
    pub phase: &'static str,
    /// The seconds that it took.
    pub seconds: f64,
}

/// Takes the time of each phase, and passes all on to another receiver.
pub(crate) struct PhaseClock {
    to: Arc<dyn Progress>,
    /// What was begun, and when.
    begun: Mutex<Vec<(&'static str, Instant)>>,
}

impl PhaseClock {
    /// Starts with a phase of preparations.
    pub(crate) fn start(to: Arc<dyn Progress>) -> Self {
        Self { to, begun: Mutex::new(vec![("preparing", Instant::now())]) }
    }

    /// Returns the time of each phase so far.
    pub(crate) fn times(&self) -> Vec<PhaseTime> {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = begun.iter().skip(1).map(|(_, begin)| *begin).chain([Instant::now()]);
        let time = |((phase, begin), end): (&(&'static str, Instant), Instant)| PhaseTime {
            phase,
            seconds: end.duration_since(*begin).as_secs_f64(),
        };
        begun.iter().zip(ends).map(time).collect()
    }
}

impl Progress for PhaseClock {
    fn begin(&self, phase: Phase, total: u64) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        // A phase may be begun again with another total.
        if begun.last().is_none_or(|(last, _)| *last != phase.name()) {
            begun.push((phase.name(), Instant::now()));
        }
        drop(begun);
        self.to.begin(phase, total);
    }

    fn done(&self, units: u64) {
        self.to.done(units);
    }

    fn notice(&self, text: &str) {
        self.to.notice(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    #[test]
    fn a_phase_that_goes_on_counts_once() {
        let clock = PhaseClock::start(Arc::new(Silent));
        for phase in [Phase::Profile, Phase::Search, Phase::Search, Phase::Write] {
            clock.begin(phase, 0);
        }
        let times = clock.times();
        let phases: Vec<&str> = times.iter().map(|time| time.phase).collect();
        assert_eq!(phases, ["preparing", "grouping", "searching", "writing"]);
        assert!(times.iter().all(|time| time.seconds >= 0.0));
    }
}
