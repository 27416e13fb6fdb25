//! Parts of the base classes that are cut in two, again and again, on several threads.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::class::Union;
use crate::error::{Error, Result};
use crate::method::Problem;
use crate::progress::CancelToken;

/// A way to choose where parts are cut. A part is a set of base classes.
pub(super) trait Cuts: Sync {
    /// A part, in the form in which it is cut.
    type Part: Send;
    /// The memory that one thread reuses.
    type Scratch;

    /// Returns the part of all base classes.
    fn whole(&self) -> Self::Part;

    /// Returns the base classes of a part.
    fn classes(part: &Self::Part) -> &[u32];

    /// Prepares a thread.
    ///
    /// # Errors
    /// A data error when memory runs out.
    fn scratch(&self) -> Result<Self::Scratch>;

    /// Cuts a part in two that both satisfy every requirement, if such a cut is found.
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

/// What became of a part.
pub(super) enum Cut<P> {
    /// It was cut.
    InTwo(P, P),
    /// It cannot be cut.
    Not(P),
}

/// Judges cuts, and counts them.
pub(super) struct Judge<'a> {
    union: Union<'a>,
    stop: &'a CancelToken,
    tried: u64,
}

impl Judge<'_> {
    /// Returns whether both sides of a cut satisfy every requirement.
    ///
    /// # Errors
    /// An interruption.
    pub(super) fn may_part(&mut self, left: &[u32], right: &[u32]) -> Result<bool> {
        self.stop.check()?;
        self.tried += 1;
        Ok(self.union.holds(left) && self.union.holds(right))
    }
}

/// The parts that wait to be cut.
struct Waiting<P> {
    parts: Vec<P>,
    /// The threads that are cutting one.
    busy: usize,
    /// The base classes of the finished parts.
    finished: u64,
}

/// Cuts all base classes until no part can be cut, and counts the cuts that were tried; no parts if all base classes
/// together do not satisfy the requirements. The parts have no order.
///
/// # Errors
/// A data error when memory runs out, an interruption.
pub(super) fn cut_all<C: Cuts>(problem: &Problem<'_>, cuts: &C) -> Result<(Vec<Vec<u32>>, u64)> {
    let union = || Union::new(problem.table, problem.requirements);
    let whole = cuts.whole();
    if C::classes(&whole).is_empty() || !union()?.holds(C::classes(&whole)) {
        return Ok((Vec::new(), 0));
    }
    let waiting = Mutex::new(Waiting { parts: vec![whole], busy: 0, finished: 0 });
    let changed = Condvar::new();
    let work = || -> Result<(Vec<Vec<u32>>, u64)> {
        let (mut judge, mut scratch) =
            (Judge { union: union()?, stop: problem.stop, tried: 0 }, cuts.scratch()?);
        let mut finished = Vec::new();
        while let Some((part, _busy)) = next(&waiting, &changed) {
            problem.stop.check()?;
            match cuts.cut(part, &mut judge, &mut scratch)? {
                Cut::InTwo(left, right) => lock(&waiting).parts.extend([right, left]),
                Cut::Not(part) => {
                    let classes = C::classes(&part);
                    let mut waiting = lock(&waiting);
                    waiting.finished += classes.len() as u64;
                    problem.progress.done(waiting.finished);
                    finished.push(classes.to_vec());
                }
            }
        }
        Ok((finished, judge.tried))
    };
    let work = &work;
    let all: Vec<Result<(Vec<Vec<u32>>, u64)>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..problem.threads.max(1)).map(|_| scope.spawn(work)).collect();
        let failed = || Err(Error::internal("mondrian: a thread panicked"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| failed())).collect()
    });
    let (mut parts, mut tried) = (Vec::new(), 0);
    for one in all {
        let (finished, cuts) = one?;
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
    let is_idle = |waiting: &mut Waiting<P>| waiting.parts.is_empty() && waiting.busy > 0;
    let mut locked = changed.wait_while(lock(waiting), is_idle).unwrap_or_else(PoisonError::into_inner);
    let part = locked.parts.pop()?;
    locked.busy += 1;
    Some((part, Busy(waiting, changed)))
}
