//! Memory taken from a budget.

use std::sync::Arc;

use super::Budget;
use crate::error::Result;

/// Memory taken from a budget and given back when dropped.
pub struct Held {
    budget: Arc<dyn Budget>,
    bytes: usize,
}

impl Held {
    /// Creates an empty reservation.
    pub fn new(budget: &Arc<dyn Budget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    pub(super) fn budget(&self) -> &Arc<dyn Budget> {
        &self.budget
    }

    /// Grows or shrinks the reservation to `bytes`.
    ///
    /// # Errors
    /// A data error when the budget is exhausted.
    pub fn exactly(&mut self, bytes: usize) -> Result<()> {
        self.at_least(bytes)?;
        self.at_most(bytes);
        Ok(())
    }

    /// Grows the reservation to at least `bytes`.
    ///
    /// # Errors
    /// A data error when the budget is exhausted.
    pub fn at_least(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.bytes {
            self.budget.grow(bytes - self.bytes)?;
            self.bytes = bytes;
        }
        Ok(())
    }

    /// Shrinks the reservation to at most `bytes`.
    pub(super) fn at_most(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.budget.shrink(self.bytes - bytes);
            self.bytes = bytes;
        }
    }

    /// Makes a list under a reservation of the `most` bytes that this can take; afterwards what the
    /// list takes stays reserved.
    ///
    /// # Errors
    /// Those of `make`, a data error when the budget is exhausted.
    pub(super) fn adding<T>(
        &mut self,
        most: usize,
        make: impl FnOnce() -> Result<T>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Result<T> {
        let before = self.bytes;
        self.at_least(before + most)?;
        let made = make()?;
        self.exactly(before + bytes(&made))?;
        Ok(made)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.shrink(self.bytes);
    }
}

/// A growing list whose memory is reserved before it is allocated.
pub(super) struct HeldList<T> {
    items: Vec<T>,
    held: Held,
}

impl<T: Copy> HeldList<T> {
    pub(super) fn new(budget: &Arc<dyn Budget>) -> Self {
        Self { items: Vec::new(), held: Held::new(budget) }
    }

    /// Creates a list with room for so many items.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn with_room(room: usize, budget: &Arc<dyn Budget>) -> Result<Self> {
        let mut list = Self::new(budget);
        list.held.at_least(room * size_of::<T>())?;
        list.items.reserve_exact(room);
        Ok(list)
    }

    /// Creates a list of so many equal items.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn filled(item: T, count: usize, budget: &Arc<dyn Budget>) -> Result<Self> {
        let mut list = Self::with_room(count, budget)?;
        list.items.resize(count, item);
        Ok(list)
    }

    /// Appends items.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn extend(&mut self, more: &[T]) -> Result<()> {
        let len = self.items.len() + more.len();
        if len > self.items.capacity() {
            // By a quarter only: a list of millions has little room to spare.
            let room = len.max(self.items.len() / 4 * 5);
            self.held.at_least(room * size_of::<T>())?;
            self.items.reserve_exact(room - self.items.len());
        }
        self.items.extend_from_slice(more);
        Ok(())
    }
}

impl<T> std::ops::Deref for HeldList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> std::ops::DerefMut for HeldList<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::error::{Error, ErrorCode};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts what is reserved, the most of it so far, and refuses what is beyond a limit.
    pub(crate) struct Counting {
        counts: Mutex<(usize, usize)>,
        limit: AtomicUsize,
    }

    impl Counting {
        pub(crate) fn used(&self) -> usize {
            self.counts.lock().unwrap().0
        }

        pub(crate) fn limit_to(&self, limit: usize) {
            self.limit.store(limit, Ordering::Relaxed);
        }

        /// The most since it was last asked for.
        pub(crate) fn most(&self) -> usize {
            let mut counts = self.counts.lock().unwrap();
            let used = counts.0;
            std::mem::replace(&mut counts.1, used)
        }
    }

    impl Budget for Counting {
        fn grow(&self, bytes: usize) -> Result<()> {
            let mut counts = self.counts.lock().unwrap();
            let used = counts.0.saturating_add(bytes);
            if used > self.limit.load(Ordering::Relaxed) {
                drop(counts);
                return Err(self.refusal(bytes));
            }
            *counts = (used, counts.1.max(used));
            Ok(())
        }

        fn shrink(&self, bytes: usize) {
            self.counts.lock().unwrap().0 -= bytes;
        }

        fn refusal(&self, bytes: usize) -> Error {
            let needed = self.used() + bytes;
            Error::data(format!("too much: {needed} bytes would do")).coded(ErrorCode::OutOfMemory)
        }
    }

    /// A budget with a limit, and the same one to be asked.
    pub(crate) fn counting(limit: usize) -> (Arc<Counting>, Arc<dyn Budget>) {
        let counting = Arc::new(Counting { counts: Mutex::new((0, 0)), limit: limit.into() });
        (Arc::clone(&counting), counting)
    }

    #[test]
    fn what_a_list_takes_while_it_is_made_is_given_back() {
        let (counting, budget) = counting(1_000);
        let mut held = Held::new(&budget);
        held.at_least(100).unwrap();
        let list = held.adding(900, || Ok(vec![0u8; 7]), Vec::len).unwrap();
        assert_eq!((list.len(), counting.used(), counting.most()), (7, 107, 1_000));
        let refused = held.adding(894, || -> Result<()> { panic!("it has no memory") }, |()| 0);
        assert_eq!(refused.unwrap_err().to_string(), "too much: 1001 bytes would do");
        drop(held);
        assert_eq!(counting.used(), 0);
    }

    #[test]
    fn a_list_reserves_what_it_allocates() {
        let (counting, budget) = counting(8_000);
        let mut list = HeldList::<u64>::new(&budget);
        for number in 0..900 {
            list.extend(&[number]).unwrap();
            assert_eq!(counting.used(), list.items.capacity() * size_of::<u64>());
            assert!(list.items.capacity() <= 2 * list.len());
        }
        assert!(list.extend(&[0; 101]).is_err());
        assert!(list.iter().copied().eq(0..900));
        drop(list);
        assert_eq!(counting.used(), 0);
    }
}
