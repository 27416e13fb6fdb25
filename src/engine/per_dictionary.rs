//! Results that are computed once per dictionary, however many batches have it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use arrow::array::{Array, ArrayData, ArrayRef};
use datafusion::error::Result;

/// The greatest number of dictionaries whose results are kept. A dictionary of a Parquet file holds at most a
/// megabyte, and files are read a row group at a time.
const MOST: usize = 32;

/// The results for the last dictionaries, which are kept with them: otherwise another dictionary could take the place
/// of one in memory. `K` tells what is computed.
pub(crate) struct PerDictionary<K, T> {
    known: Mutex<VecDeque<(K, ArrayData, T)>>,
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
    ///
    /// # Errors
    /// Those of `make`.
    pub(crate) fn get(&self, of: K, entries: &ArrayRef, make: impl FnOnce() -> Result<T>) -> Result<T> {
        let data = entries.to_data();
        let is_it = |(other, known, _): &&(K, ArrayData, T)| *other == of && known.ptr_eq(&data);
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., result)) = lock().iter().find(is_it) {
            return Ok(result.clone());
        }
        let result = make()?;
        let mut known = lock();
        known.truncate(MOST - 1);
        known.push_front((of, data, result.clone()));
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::StringArray;
    use std::sync::Arc;

    #[test]
    fn each_dictionary_is_computed_once_and_the_oldest_is_forgotten() {
        let known = PerDictionary::<u8, usize>::default();
        let dictionary = || Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef;
        let (mut made, first) = (0, dictionary());
        let mut get = |of, entries: &ArrayRef| {
            let result = known.get(of, entries, || {
                made += 1;
                Ok(made)
            });
            result.unwrap()
        };
        assert_eq!([get(0, &first), get(0, &first), get(1, &first), get(0, &dictionary())], [1, 1, 2, 3]);
        assert_eq!([get(0, &first.slice(0, 1)), get(0, &first.slice(1, 1)), get(0, &first)], [4, 5, 1]);
        assert!((0..MOST).all(|_| get(0, &dictionary()) > 5));
        assert_eq!(get(0, &first), 6 + MOST);
        assert!(
            known
                .get(2, &first, || Err(datafusion::error::DataFusionError::Internal(String::new())))
                .is_err()
        );
    }
}
