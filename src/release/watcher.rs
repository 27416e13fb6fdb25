//! Watches a search for a run: reports its progress, stops it, and shows one notice if it takes
//! long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::engine::Run;
use crate::method::Watch;
use crate::plural::nodes_of;

/// The duration after which a search gets a notice, unless its lattice is small: it will end soon.
const LONG: Duration = Duration::from_secs(5);
const MANY: u64 = 100_000;

/// The [`Watch`] of a run.
pub(super) struct Watcher<'a> {
    run: &'a Run<'a>,
    /// The number of nodes in the lattice.
    nodes: u64,
    /// How the user may get an answer sooner; `None` for no notice.
    advice: Option<&'static str>,
    started: Instant,
    long: Duration,
    has_told: AtomicBool,
}

impl<'a> Watcher<'a> {
    /// Watches a search over `nodes` nodes that begins now.
    pub(super) fn new(run: &'a Run<'a>, nodes: u64, advice: Option<&'static str>) -> Self {
        Self { run, nodes, advice, started: Instant::now(), long: LONG, has_told: AtomicBool::new(false) }
    }
}

impl Watch for Watcher<'_> {
    fn progress(&self, done: u64, _total: u64) {
        self.run.listener.done(done);
    }

    fn stopped(&self) -> bool {
        if let Some(advice) = self.advice
            && self.nodes >= MANY
            && self.started.elapsed() >= self.long
            && !self.has_told.swap(true, Ordering::Relaxed)
        {
            let nodes = nodes_of(self.nodes);
            self.run.listener.notice(&format!("searching {nodes}; this may take a long time: {advice}"));
        }
        self.run.stop.is_set()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::engine::Listener;
    use crate::engine::Resources;
    use crate::engine::cancel::CancelToken;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Listener for Heard {
        fn notice(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    /// Returns the notices of a search that checks three times whether it is stopped.
    fn notices(nodes: u64, advice: Option<&'static str>, long: Duration) -> Vec<String> {
        let (heard, stop, resources) =
            (Heard::default(), CancelToken::default(), Resources::default_of_machine());
        let run = Run { resources: &resources, stop: &stop, listener: &heard, show_values: false };
        let watcher = Watcher { long, ..Watcher::new(&run, nodes, advice) };
        assert!((0..3).all(|_| !watcher.stopped()));
        stop.now();
        assert!(watcher.stopped());
        heard.0.into_inner().unwrap()
    }

    #[test]
    fn a_long_search_is_told_once_with_its_advice() {
        let advice = Some("wait");
        let told = "searching 1,099,511,627,776 nodes; this may take a long time: wait";
        assert_eq!(notices(1 << 40, advice, Duration::ZERO), [told]);
        let many = notices(u64::MAX, advice, Duration::ZERO);
        assert!(many[0].starts_with("searching more than 18,446,744,073,709,551,615 nodes;"), "{many:?}");
        assert!(notices(1 << 40, None, Duration::ZERO).is_empty());
        assert!(notices(1_728, advice, Duration::ZERO).is_empty());
        assert!(notices(1 << 40, advice, LONG).is_empty());
    }
}
