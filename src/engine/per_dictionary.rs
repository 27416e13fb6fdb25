//! Results that are computed once per dictionary, however many batches have it.

use std::collections::VecDeque;
use std::sync::{LazyLock, Mutex, PoisonError};

use arrow::array::{Array, ArrayData, ArrayRef};
use datafusion::error::Result;

/// The greatest size of a dictionary that is kept, in bytes. Writers of Parquet give up dictionaries
/// of more than about a megabyte.
const LARGEST: usize = 4 << 20;

/// The greatest size of all dictionaries that are kept, in bytes: a few columns for each thread. It
/// is outside the engine's limit, like the buffers of a scan.
static KEPT: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get) * 4 * LARGEST);

/// The most bytes that a result has for each entry.
const BYTES_OF_RESULT: usize = 16;

/// The results for the most recently used dictionaries, each for a purpose `K`. The cache also holds the
/// dictionaries, so that no new dictionary can get the address of a cached one. A dictionary without another
/// owner is dropped at the next miss, the others with the plan's function that owns the cache.
pub(crate) struct PerDictionary<K, T> {
    /// The last used first.
    known: Mutex<VecDeque<Known<K, T>>>,
}

struct Known<K, T> {
    purpose: K,
    entries: ArrayData,
    bytes: usize,
    result: T,
}

impl<K, T> Default for PerDictionary<K, T> {
    fn default() -> Self {
        Self { known: Mutex::default() }
    }
}

/// Shows no cell.
impl<K, T> std::fmt::Debug for PerDictionary<K, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PerDictionary(..)")
    }
}

impl<K: PartialEq, T: Clone> PerDictionary<K, T> {
    /// Returns the result for the entries of a dictionary; `make` computes it where it is not known.
    /// `None` if the dictionary is too large to be kept: then only the entries that rows have are
    /// worth looking at.
    ///
    /// # Errors
    /// Those of `make`.
    pub(crate) fn get(
        &self,
        purpose: K,
        entries: &ArrayRef,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<Option<T>> {
        let bytes = entries.get_buffer_memory_size() + entries.len() * BYTES_OF_RESULT;
        if bytes > LARGEST {
            return Ok(None);
        }
        let data = entries.to_data();
        let is_it = |known: &Known<K, T>| known.purpose == purpose && known.entries.ptr_eq(&data);
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = lock();
        if let Some(at) = known.iter().position(is_it) {
            known.make_contiguous()[..=at].rotate_right(1);
            return Ok(known.front().map(|known| known.result.clone()));
        }
        drop(known);
        let result = make()?;
        let mut known = lock();
        known.push_front(Known { purpose, entries: data, bytes, result: result.clone() });
        let mut kept = 0;
        known.retain(|known| {
            kept += known.bytes;
            kept <= *KEPT && is_used_elsewhere(&known.entries)
        });
        Ok(Some(result))
    }
}

/// Returns whether somebody else may hold an array, too, and so may come with it again.
fn is_used_elsewhere(array: &ArrayData) -> bool {
    array.buffers().iter().any(|buffer| buffer.strong_count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::StringArray;
    use std::sync::Arc;

    #[test]
    fn each_dictionary_is_computed_once_and_those_used_last_are_kept() {
        let known = PerDictionary::<u8, usize>::default();
        let dictionary = |entries: usize| Arc::new(StringArray::from(vec!["a"; entries])) as ArrayRef;
        let (mut made, first) = (0, dictionary(2));
        let mut get = |purpose, entries: &ArrayRef| {
            let result = known.get(purpose, entries, || {
                made += 1;
                Ok(made)
            });
            result.unwrap()
        };
        assert_eq!(
            [get(0, &first), get(0, &first), get(1, &first), get(0, &dictionary(2))],
            [1, 1, 2, 3].map(Some)
        );
        assert_eq!(
            [get(0, &first.slice(0, 1)), get(0, &first.slice(1, 1)), get(0, &first)],
            [4, 5, 1].map(Some)
        );
        // Each takes more than half of what one may take.
        let large = dictionary(LARGEST / 32);
        let mut others = Vec::new();
        for _ in 0..*KEPT / LARGEST * 3 {
            others.push(dictionary(LARGEST / 32));
            assert!(get(0, others.last().unwrap()) > Some(5));
            assert_eq!(get(0, &first), Some(1));
        }
        assert!(get(1, &first) > Some(2), "it was not used for long");
        assert!(get(0, &large).is_some());
        assert_eq!(get(0, &dictionary(LARGEST)), None);
        let error = || Err(datafusion::error::DataFusionError::Internal(String::new()));
        assert!(known.get(2, &first, error).is_err());
    }

    #[test]
    fn a_dictionary_that_nobody_else_has_is_let_go() {
        let known = PerDictionary::<u8, usize>::default();
        let kept = || known.known.lock().unwrap().len();
        let dictionary = |text: &str| Arc::new(StringArray::from(vec![text; 3])) as ArrayRef;
        let (first, second) = (dictionary("a"), dictionary("b"));
        known.get(0, &first, || Ok(1)).unwrap();
        known.get(0, &second, || Ok(2)).unwrap();
        assert_eq!(kept(), 2);
        drop(first);
        known.get(1, &second, || Ok(3)).unwrap();
        assert_eq!(kept(), 2);
        assert_eq!(known.get(0, &second, || Ok(4)).unwrap(), Some(2));
    }
}
