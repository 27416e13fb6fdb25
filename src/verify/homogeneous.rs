//! Homogeneous classes: a class reveals the sensitive value of each of its individuals with
//! certainty.

use serde::{Deserialize, Serialize};

use crate::model::ValueCount;

/// The number of classes that share one value of a sensitive column, and the individuals in them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Homogeneous {
    /// The sensitive column.
    pub column: String,
    /// The number of classes in which all individuals (rows, where none are counted) share one non-NULL
    /// value.
    pub classes: u64,
    /// The number of distinct individuals in these classes, or of their rows.
    pub individuals: u64,
}

/// Counts homogeneous classes, one sensitive column after the other.
pub(crate) struct Counting {
    found: Vec<Homogeneous>,
    /// For each column which individuals are in a homogeneous class.
    disclosed: Vec<Vec<bool>>,
}

impl Counting {
    pub(crate) fn new<'a>(columns: impl Iterator<Item = &'a str>) -> Self {
        let found: Vec<Homogeneous> =
            columns.map(|name| Homogeneous { column: name.to_owned(), ..Homogeneous::default() }).collect();
        Self { disclosed: vec![Vec::new(); found.len()], found }
    }

    /// Adds a class of this size: the counts of its values, one list per column, and its
    /// individuals, where they are counted.
    pub(crate) fn add(&mut self, size: u64, values: &[Vec<ValueCount>], individuals: Option<&[u32]>) {
        for ((found, disclosed), counts) in self.found.iter_mut().zip(&mut self.disclosed).zip(values) {
            let shared = counts.iter().any(|count| count.value.is_some() && count.count == size);
            if size == 0 || !shared {
                continue;
            }
            found.classes += 1;
            let Some(individuals) = individuals else {
                found.individuals += size;
                continue;
            };
            for individual in individuals {
                let at = *individual as usize;
                if disclosed.len() <= at {
                    disclosed.resize(at + 1, false);
                }
                found.individuals += u64::from(!std::mem::replace(&mut disclosed[at], true));
            }
        }
    }

    pub(crate) fn finish(self) -> Vec<Homogeneous> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_homogeneous_when_all_have_one_value() {
        let of = |value, count| ValueCount { value, count };
        let mut counting = Counting::new(["diagnosis"].into_iter());
        counting.add(2, &[vec![of(Some(0), 2)]], None);
        counting.add(2, &[vec![of(Some(0), 1), of(Some(1), 1)]], None);
        counting.add(2, &[vec![of(None, 2)]], None);
        counting.add(2, &[vec![of(None, 1), of(Some(3), 1)]], None);
        let found = Homogeneous { column: "diagnosis".into(), classes: 1, individuals: 2 };
        assert_eq!(counting.finish(), std::slice::from_ref(&found));
        // Both have flu, one has HIV as well; one of them is in another such class.
        let mut counting = Counting::new(["diagnosis"].into_iter());
        counting.add(2, &[vec![of(Some(0), 2), of(Some(1), 1)]], Some(&[0, 4]));
        counting.add(1, &[vec![of(Some(0), 1)]], Some(&[4]));
        counting.add(0, &[vec![]], Some(&[]));
        assert_eq!(counting.finish(), [Homogeneous { classes: 2, ..found }]);
    }
}
