//! `personalized_k_anonymity`: every class is as large as each of its members asks for.
//!
//! A class E holds iff |E| >= max k_i, where k_i is the k that the individual i of the class asks
//! for in a column of the table (personalized k-anonymity, Gedik & Liu 2008, with one k per row and
//! classes instead of areas). An individual with several rows asks for the greatest. NULL asks for
//! nothing.
//!
//! # Contract
//! Takes no parameter, and one column of integers of at least 0, which is read and never released:
//! the role `preference`. The quantity is |E| - max k_i, a whole number that may be negative, and a
//! table reached the least of its classes; a class holds at 0 or above. The model implies no class
//! size, because all values may be NULL: require k beside it. Two classes that hold merge into one
//! that holds, counted in rows or in individuals; merged with a class that fails, a class that
//! holds can fail.
//!
//! It hides each individual among as many as the individual wants, against the same attacker as
//! k-anonymity. It promises nothing to those who ask for nothing, and ignores sensitive values.
//! What somebody asks for can tell something about them, so the column must not be released.
//!
//! ```
//! use datafusion_kanon::extend::{ClassModel, Distribution, ValueCount};
//! use datafusion_kanon::internals::model::{Class, personalized_k_anonymity::PersonalizedKAnonymity};
//! // The table asks for 2, 3 and 5.
//! let asks = |of: &[u32]| of.iter().map(|j| ValueCount { value: Some(*j), count: 1 }).collect::<Vec<_>>();
//! let input = Distribution::of_rows(asks(&[0, 1, 2])).with_integers(vec![2, 3, 5]);
//! let holds = |size, of: &[u32]| {
//!     let asked = asks(of);
//!     let class = Class { input: &input, ..Class::of_values(size, &asked) };
//!     PersonalizedKAnonymity.holds(PersonalizedKAnonymity.value(&class))
//! };
//! assert!(holds(3, &[0, 1]));
//! assert!(!holds(3, &[0, 2]));
//! ```

use super::{Class, ClassModel, Counted, Merge, ModelRow, Needs, Quantity, Worst};
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::papers;

/// The row of [`MODELS`](super::MODELS) for this model.
pub const ROW: ModelRow =
    ModelRow { doc: DOC, parameters: &[], constants: &[], make: |_| Ok(Box::new(PersonalizedKAnonymity)) };

const DOC: &Doc = &Doc {
    name: "personalized_k_anonymity",
    summary: "every class is as large as each of its individuals asks for in a column",
    parameters: "",
    example: "personalized_k_anonymity(wanted_k, age, sex, zip)",
    paper: Some(papers::GEDIK_LIU_2008),
};

/// The model that the [module](self) describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersonalizedKAnonymity;

/// Returns the greatest k that somebody in the class asks for; `None` for a value that is unknown.
fn asked(class: &Class<'_>) -> Option<u64> {
    let integers = class.input.integers();
    let of = |value: Option<u32>| Some(*integers.get(class.input.place(value)?)?);
    class.sensitive.iter().map(|count| of(count.value)).try_fold(0, |most, asked| Some(most.max(asked?)))
}

impl ClassModel for PersonalizedKAnonymity {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn needs(&self) -> Needs {
        Needs::Integers
    }

    fn merge(&self, _counted: Counted) -> Merge {
        // A merged class is at least as large as the greater part, and asks for the greater of both.
        Merge::Both
    }

    fn min_size(&self) -> u64 {
        0
    }

    fn value(&self, class: &Class<'_>) -> Quantity {
        let margin = |asked: u64| Quantity::Margin(i128::from(class.size) - i128::from(asked));
        asked(class).map_or(Quantity::Broken, margin)
    }

    fn worst(&self) -> Worst {
        Worst::Least
    }

    fn holds(&self, value: Quantity) -> bool {
        matches!(value, Quantity::Margin(margin) if margin >= 0)
    }

    fn parameters(&self) -> Vec<(&'static str, Decimal)> {
        Vec::new()
    }

    fn required(&self) -> Decimal {
        Decimal::integer(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Distribution, ValueCount};

    fn margin(size: u64, asks: &[(Option<u32>, u64)]) -> Quantity {
        let counts = |of: &[(Option<u32>, u64)]| {
            of.iter().map(|(value, count)| ValueCount { value: *value, count: *count }).collect::<Vec<_>>()
        };
        let input = Distribution::of_rows(counts(&[(None, 9), (Some(0), 9), (Some(1), 9), (Some(2), 9)]));
        let input = input.with_integers(vec![0, 1, 4, i64::MAX as u64]);
        PersonalizedKAnonymity.value(&Class { input: &input, ..Class::of_values(size, &counts(asks)) })
    }

    #[test]
    fn the_greatest_wish_decides() {
        let model = PersonalizedKAnonymity;
        assert_eq!(margin(4, &[(Some(0), 3), (Some(1), 1)]), Quantity::Margin(0));
        assert!(model.holds(margin(4, &[(Some(0), 3), (Some(1), 1)])));
        assert!(!model.holds(margin(3, &[(Some(1), 3)])) && model.holds(margin(1, &[(None, 1)])));
        assert_eq!(margin(5, &[(Some(2), 1)]), Quantity::Margin(5 - i128::from(i64::MAX)));
        // A value that the table does not have.
        assert!(!model.holds(margin(100, &[(Some(7), 1)])));
    }

    #[test]
    fn a_class_that_holds_can_fail_with_one_that_fails() {
        let model = PersonalizedKAnonymity;
        assert!(model.holds(margin(1, &[(Some(0), 1)])) && !model.holds(margin(1, &[(Some(1), 1)])));
        assert!(!model.holds(margin(2, &[(Some(0), 1), (Some(1), 1)])));
    }
}
