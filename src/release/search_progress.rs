//! The progress of a search: that of the run, with one notice if the search takes long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::engine::Run;
use crate::plural::plural;
use crate::progress::{Phase, Progress};

/// The duration after which a search gets a notice, unless its lattice is small: it will end soon.
const LONG: Duration = Duration::from_secs(5);
const MANY: u64 = 100_000;

/// Passes the progress of a search on to the run.
pub(super) struct SearchProgress<'a> {
    run: &'a Run,
    /// The number of nodes in the lattice.
    nodes: u64,
    /// A sentence that says how the user may get an answer sooner; `None` for no notice.
    advice: Option<&'static str>,
    started: Instant,
    long: Duration,
    has_advised: AtomicBool,
}

impl<'a> SearchProgress<'a> {
    /// Begins to follow a search over `nodes` nodes.
    pub(super) fn new(run: &'a Run, nodes: u64, advice: Option<&'static str>) -> Self {
        Self { run, nodes, advice, started: Instant::now(), long: LONG, has_advised: AtomicBool::new(false) }
    }
}

impl Progress for SearchProgress<'_> {
    fn begin(&self, phase: Phase, total: u64) {
        self.run.progress.begin(phase, total);
    }

    fn notice(&self, text: &str) {
        self.run.progress.notice(text);
    }

    fn done(&self, units: u64) {
        self.run.progress.done(units);
        if let Some(advice) = self.advice
            && self.nodes >= MANY
            && self.started.elapsed() >= self.long
            && !self.has_advised.swap(true, Ordering::Relaxed)
        {
            let nodes = nodes_of(self.nodes);
            self.notice(&format!("searching {nodes}; this may take a long time. {advice}"));
        }
    }
}

/// Formats the number of nodes of a lattice; `u64::MAX` stands for all numbers that do not fit.
pub(crate) fn nodes_of(nodes: u64) -> String {
    let text = plural(nodes, "node", "nodes");
    if nodes == u64::MAX { format!("more than {text}") } else { text }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Progress for Heard {
        fn notice(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    /// Returns the notices of a search that reports its progress three times.
    fn notices(nodes: u64, advice: Option<&'static str>, long: Duration) -> Vec<String> {
        let heard = Arc::new(Heard::default());
        let run = Run { progress: Arc::<Heard>::clone(&heard), ..Run::default() };
        let search = SearchProgress { long, ..SearchProgress::new(&run, nodes, advice) };
        (0..3).for_each(|done| search.done(done));
        heard.0.lock().unwrap().clone()
    }

    #[test]
    fn a_long_search_gets_one_notice_with_its_advice() {
        let advice = Some("Wait");
        let notice = "searching 1,099,511,627,776 nodes; this may take a long time. Wait";
        assert_eq!(notices(1 << 40, advice, Duration::ZERO), [notice]);
        let many = notices(u64::MAX, advice, Duration::ZERO);
        assert!(many[0].starts_with("searching more than 18,446,744,073,709,551,615 nodes;"), "{many:?}");
        assert!(notices(1 << 40, None, Duration::ZERO).is_empty());
        assert!(notices(1_728, advice, Duration::ZERO).is_empty());
        assert!(notices(1 << 40, advice, LONG).is_empty());
    }
}
