//! A cache of classes from which coarser nodes are rolled up: fewer classes, less work.

use super::is_below;
use crate::class::{ClassTable, Classes};

/// The classes of nodes, ordered by their number. The least recently used ones make room.
pub(super) struct Finer {
    nodes: Vec<Kept>,
    clock: u64,
    bytes: usize,
    most_bytes: usize,
}

struct Kept {
    levels: Vec<usize>,
    classes: Classes,
    used: u64,
}

/// The most nodes to keep, so that scanning them stays cheap.
const MOST_KEPT: usize = 512;

impl Finer {
    pub(super) fn new(table: &ClassTable) -> Self {
        Self { nodes: Vec::new(), clock: 0, bytes: 0, most_bytes: (2 * table.base().bytes()).max(32 << 20) }
    }

    /// Returns the position of the smallest cached set of classes below a node. The position is
    /// valid until the next [`keep`](Self::keep).
    pub(super) fn below(&mut self, levels: &[usize]) -> Option<usize> {
        let place = self.nodes.iter().position(|kept| is_below(&kept.levels, levels))?;
        self.clock += 1;
        self.nodes[place].used = self.clock;
        Some(place)
    }

    /// Returns the levels and classes at a position; those of the whole table for `None`.
    pub(super) fn at<'a>(&'a self, place: Option<usize>, table: &'a ClassTable) -> (Vec<usize>, &'a Classes) {
        match place.and_then(|place| self.nodes.get(place)) {
            Some(kept) => (kept.levels.clone(), &kept.classes),
            None => (vec![0; table.columns().len()], table.base()),
        }
    }

    pub(super) fn keep(&mut self, levels: Vec<usize>, classes: Classes) {
        self.clock += 1;
        self.bytes += classes.bytes();
        let at = self.nodes.partition_point(|kept| kept.classes.len() <= classes.len());
        self.nodes.insert(at, Kept { levels, classes, used: self.clock });
        while self.bytes > self.most_bytes || self.nodes.len() > MOST_KEPT {
            let oldest = self.nodes.iter().enumerate().min_by_key(|(_, kept)| kept.used);
            let Some((at, _)) = oldest else { break };
            self.bytes -= self.nodes.remove(at).classes.bytes();
        }
    }
}
