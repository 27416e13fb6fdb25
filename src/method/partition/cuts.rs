//! Parts of the base classes that are cut, again and again, on several threads.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::class::{Held, Region, Union};
use crate::error::{Error, Result};
use crate::method::Problem;
use crate::progress::CancelToken;

/// A way to choose where parts are cut. A part is a set of base classes.
pub(in crate::method) trait Cuts: Sync {
    /// A part, in the form in which it is cut.
    type Part: Send;
    /// The memory that one thread reuses.
    type Scratch;

    /// Returns the part of all base classes.
    fn whole(&self) -> Self::Part;

    /// Returns the base classes of a part.
    fn classes(part: &Self::Part) -> &[u32];

    /// Returns what the class of a part shows; `None` for the finest regions around its values.
    ///
    /// # Errors
    /// An internal error if that holds no value.
    fn shown(&self, part: &Self::Part) -> Result<Option<Box<[Region]>>>;

    /// Allocates the memory that one thread reuses.
    ///
    /// # Errors
    /// A data error when memory runs out.
    fn scratch(&self) -> Result<Self::Scratch>;

    /// Cuts a part into some that all satisfy every requirement, if such a cut is found.
    ///
    /// # Errors
    /// An interruption.
    fn cut(
        &self,
        part: Self::Part,
        judge: &mut Judge<'_>,
        scratch: &mut Self::Scratch,
    ) -> Result<Cut<Self::Part>>;
}

/// The result of cutting a part.
pub(in crate::method) enum Cut<P> {
    /// It was cut.
    Into(Vec<P>),
    /// It cannot be cut.
    Final(P),
}

/// Judges cuts, and counts them.
pub(in crate::method) struct Judge<'a> {
    union: Union<'a>,
    stop: &'a CancelToken,
    tried: u64,
}

impl<'a> Judge<'a> {
    /// A judge of one thread.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(in crate::method) fn new(problem: &Problem<'a>) -> Result<Self> {
        let union = Union::new(problem.table, problem.requirements)?;
        Ok(Self { union, stop: problem.stop, tried: 0 })
    }

    /// Ends a search that was stopped.
    ///
    /// # Errors
    /// An interruption.
    pub(in crate::method) fn go_on(&self) -> Result<()> {
        self.stop.check()
    }

    /// Returns whether both sides of a cut satisfy every requirement.
    ///
    /// # Errors
    /// An interruption.
    pub(in crate::method) fn both_hold(&mut self, left: &[u32], right: &[u32]) -> Result<bool> {
        Ok(self.holds(left)? && self.union.holds(right))
    }

    /// Returns whether base classes satisfy every requirement together.
    ///
    /// # Errors
    /// An interruption.
    pub(in crate::method) fn holds(&mut self, classes: &[u32]) -> Result<bool> {
        self.go_on()?;
        self.tried += 1;
        Ok(self.union.holds(classes))
    }
}

/// A part that cannot be cut.
#[derive(Debug)]
pub(in crate::method) struct Finished {
    /// Its base classes.
    pub(in crate::method) classes: Vec<u32>,
    /// What its class shows, if the cuts say it; otherwise the finest regions around its values.
    pub(in crate::method) shown: Option<Box<[Region]>>,
}

/// The parts that wait to be cut.
struct Waiting<P> {
    parts: Vec<P>,
    /// The threads that are cutting one.
    busy: usize,
    /// The base classes of the finished parts.
    finished: u64,
    /// Whether a thread has failed, so that no part is worth cutting.
    has_failed: bool,
}

/// Cuts all base classes until no part can be cut, and counts the cuts that were tried; no parts if
/// all base classes together do not satisfy the requirements. The parts have no order.
///
/// # Errors
/// A data error when memory runs out, an interruption.
pub(in crate::method) fn cut_all<C: Cuts>(problem: &Problem<'_>, cuts: &C) -> Result<(Vec<Finished>, u64)> {
    let whole = cuts.whole();
    if C::classes(&whole).is_empty() || !Judge::new(problem)?.holds(C::classes(&whole))? {
        return Ok((Vec::new(), 0));
    }
    let waiting = Mutex::new(Waiting { parts: vec![whole], busy: 0, finished: 0, has_failed: false });
    let changed = Condvar::new();
    let cut_parts = || -> Result<(Vec<Finished>, u64, Held)> {
        let (mut judge, mut scratch) = (Judge::new(problem)?, cuts.scratch()?);
        let (mut finished, mut held, mut shown_bytes) = (Vec::new(), Held::new(problem.table.budget()), 0);
        while let Some((part, _busy)) = next(&waiting, &changed) {
            problem.stop.check()?;
            match cuts.cut(part, &mut judge, &mut scratch)? {
                Cut::Into(parts) => lock(&waiting).parts.extend(parts.into_iter().rev()),
                Cut::Final(part) => {
                    let classes = C::classes(&part).to_vec();
                    let shown = cuts.shown(&part)?;
                    shown_bytes += shown.as_deref().map_or(0, Region::bytes_of);
                    held.at_least(shown_bytes)?;
                    let mut waiting = lock(&waiting);
                    waiting.finished += classes.len() as u64;
                    problem.progress.done(waiting.finished);
                    finished.push(Finished { classes, shown });
                }
            }
        }
        Ok((finished, judge.tried, held))
    };
    let work = || {
        let result = cut_parts();
        if result.is_err() {
            lock(&waiting).has_failed = true;
            changed.notify_all();
        }
        result
    };
    let work = &work;
    let all: Vec<Result<(Vec<Finished>, u64, Held)>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..problem.threads.max(1)).map(|_| scope.spawn(work)).collect();
        let failed = || Err(Error::internal("partition: a thread panicked"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| failed())).collect()
    });
    let (mut parts, mut tried) = (Vec::new(), 0);
    for result in all {
        // Their memory is taken again when they become released classes.
        let (finished, cuts, _held) = result?;
        parts.extend(finished);
        tried += cuts;
    }
    problem.stop.check()?;
    Ok((parts, tried))
}

fn lock<P>(waiting: &Mutex<Waiting<P>>) -> MutexGuard<'_, Waiting<P>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that cuts a part. The others wait for its end, even if it panics.
struct Busy<'a, P>(&'a Mutex<Waiting<P>>, &'a Condvar);

impl<P> Drop for Busy<'_, P> {
    fn drop(&mut self) {
        lock(self.0).busy -= 1;
        self.1.notify_all();
    }
}

/// Returns the next part; waits while other threads may still make some. `None` when all are finished.
fn next<'a, P>(waiting: &'a Mutex<Waiting<P>>, changed: &'a Condvar) -> Option<(P, Busy<'a, P>)> {
    let must_wait =
        |waiting: &mut Waiting<P>| waiting.parts.is_empty() && waiting.busy > 0 && !waiting.has_failed;
    let mut locked = changed.wait_while(lock(waiting), must_wait).unwrap_or_else(PoisonError::into_inner);
    if locked.has_failed {
        return None;
    }
    let part = locked.parts.pop()?;
    locked.busy += 1;
    Some((part, Busy(waiting, changed)))
}
