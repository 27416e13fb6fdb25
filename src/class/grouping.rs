//! The source classes of each merged class.

/// The source classes grouped by the class that they are merged into.
pub(super) struct Grouping {
    ends: Vec<usize>,
    sources: Vec<u32>,
}

impl Grouping {
    /// Groups the source classes; `target` maps each of them to one of `classes` classes.
    pub(super) fn new(target: &[u32], classes: usize) -> Self {
        let mut ends = vec![0usize; classes + 1];
        target.iter().for_each(|class| ends[*class as usize + 1] += 1);
        (1..=classes).for_each(|class| ends[class] += ends[class - 1]);
        let mut next = ends.clone();
        let mut sources = vec![0u32; target.len()];
        for (source, class) in (0u32..).zip(target) {
            let place = &mut next[*class as usize];
            sources[*place] = source;
            *place += 1;
        }
        Self { ends, sources }
    }

    /// Groups sources that come in `order`, so that those of a class are neighbours; `opens` says whether
    /// the second of two neighbours opens a class. There are `classes` classes.
    pub(super) fn of_runs(order: Vec<u32>, classes: usize, opens: impl Fn(u32, u32) -> bool) -> Self {
        let mut ends = Vec::with_capacity(classes + 1);
        ends.push(0);
        ends.extend((1..order.len()).filter(|at| opens(order[*at - 1], order[*at])));
        if !order.is_empty() {
            ends.push(order.len());
        }
        Self { ends, sources: order }
    }

    /// Returns the bytes that [`new`](Self::new) takes at most.
    pub(super) fn most_bytes(sources: usize, classes: usize) -> usize {
        2 * (classes + 1) * size_of::<usize>() + sources * size_of::<u32>()
    }

    /// Returns the number of classes.
    pub(super) fn classes(&self) -> usize {
        self.ends.len() - 1
    }

    /// Returns the source classes of a class.
    pub(super) fn of(&self, class: usize) -> &[u32] {
        &self.sources[self.ends[class]..self.ends[class + 1]]
    }
}
