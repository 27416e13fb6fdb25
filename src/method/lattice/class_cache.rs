//! A cache of classes from which coarser nodes are rolled up: fewer classes, less work.

use super::is_below;
use crate::class::{ClassTable, Classes};

/// The classes of nodes, ordered by their number. The least recently used ones make room.
///
/// Where memory is short, classes are let go, but their nodes stay: what is asked of a node is the
/// same under every limit, so the same nodes are evaluated. Only the work differs.
pub(super) struct Finer {
    nodes: Vec<Kept>,
    clock: u64,
    bytes: usize,
    most_bytes: usize,
    /// The bytes of the classes that are there, and the most that there may be.
    held: usize,
    most_held: usize,
}

struct Kept {
    levels: Vec<usize>,
    size: Size,
    /// `None` if they were let go.
    classes: Option<Classes>,
    used: u64,
}

/// The number of a node's classes and the bytes that they take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) classes: usize,
    pub(super) bytes: usize,
}

impl Size {
    pub(super) fn of(classes: &Classes) -> Self {
        Self { classes: classes.len(), bytes: classes.bytes() }
    }
}

/// The classes to roll up from.
pub(super) struct Source<'a> {
    pub(super) levels: Vec<usize>,
    pub(super) classes: &'a Classes,
    /// The number of classes of the coarsest known node, which may be fewer.
    pub(super) fewest: usize,
}

/// The most nodes to keep, so that scanning them stays cheap.
const MOST_KEPT: usize = 512;

impl Finer {
    pub(super) fn new(table: &ClassTable) -> Self {
        Self {
            nodes: Vec::new(),
            clock: 0,
            bytes: 0,
            most_bytes: (2 * table.base().bytes()).max(32 << 20),
            held: 0,
            most_held: usize::MAX,
        }
    }

    /// Returns the position of the smallest cached set of classes below a node. The position is
    /// valid until the next [`keep`](Self::keep).
    pub(super) fn below(&mut self, levels: &[usize]) -> Option<usize> {
        let place = self.nodes.iter().position(|kept| is_below(&kept.levels, levels))?;
        self.clock += 1;
        self.nodes[place].used = self.clock;
        Some(place)
    }

    /// Returns the classes at a position, or those that are there instead, the fewest below the node
    /// `levels`; those of the whole table for `None`.
    pub(super) fn at<'a>(
        &'a self,
        place: Option<usize>,
        levels: &[usize],
        table: &'a ClassTable,
    ) -> Source<'a> {
        let known = place.and_then(|place| self.nodes.get(place..)).unwrap_or(&[]);
        let fewest = known.first().map_or(table.base().len(), |kept| kept.size.classes);
        let there = known.iter().find_map(|kept| {
            let classes = kept.classes.as_ref().filter(|_| is_below(&kept.levels, levels))?;
            Some((kept.levels.clone(), classes))
        });
        let (levels, classes) = there.unwrap_or_else(|| (vec![0; table.columns().len()], table.base()));
        Source { levels, classes, fewest }
    }

    /// Keeps a node and, if they are there and room is left, its classes.
    pub(super) fn keep(&mut self, levels: Vec<usize>, size: Size, classes: Option<Classes>) {
        self.clock += 1;
        self.bytes += size.bytes;
        self.held += classes.as_ref().map_or(0, |_| size.bytes);
        let at = self.nodes.partition_point(|kept| kept.size.classes <= size.classes);
        self.nodes.insert(at, Kept { levels, size, classes, used: self.clock });
        while self.bytes > self.most_bytes || self.nodes.len() > MOST_KEPT {
            let oldest = self.nodes.iter().enumerate().min_by_key(|(_, kept)| kept.used);
            let Some((at, _)) = oldest else { break };
            let kept = self.nodes.remove(at);
            self.bytes -= kept.size.bytes;
            self.held -= kept.classes.map_or(0, |_| kept.size.bytes);
        }
        while self.held > self.most_held {
            let there = self.nodes.iter_mut().filter(|kept| kept.classes.is_some());
            let Some(oldest) = there.min_by_key(|kept| kept.used) else { break };
            oldest.classes = None;
            self.held -= oldest.size.bytes;
        }
    }

    /// Lets all classes go because memory is short; from now on half as much is kept, or an eighth of
    /// what the whole table takes.
    pub(super) fn let_go(&mut self, table: &ClassTable) {
        self.most_held = (self.held / 2).max(table.base().bytes() / 8);
        self.nodes.iter_mut().for_each(|kept| kept.classes = None);
        self.held = 0;
    }
}
