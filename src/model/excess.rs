//! How much more frequent each sensitive value is in a class than in the whole input: what the
//! distances of the t-closeness models are made of.

use std::cmp::Ordering;

use super::{Class, Counted, Quantity};
use crate::decimal::Decimal;

/// The differences between the shares of the values in a class and in the whole input, exactly.
pub(super) struct Excess {
    /// For each value of the input, in their order, its share in the class less its share in the
    /// input, in `unit`s.
    pub(super) of_values: Vec<i128>,
    /// The number of units that are 1.
    pub(super) unit: u128,
}

/// Returns the pairs of an individual and a value in the class and in the input; `None` for a class
/// that must not hold, however its values are distributed: no individual has a value, all of
/// several individuals share one, or the class has more than the input.
pub(super) fn totals(class: &Class<'_>) -> Option<(u128, u128)> {
    let Class { size, sensitive, input, .. } = class;
    let of_class: u128 = sensitive.iter().map(|count| u128::from(count.count)).sum();
    let of_input = u128::from(input.total());
    let is_known_of_all = input.counted() == Counted::Individuals
        && *size > 1
        && sensitive.iter().any(|count| count.count == *size);
    (!is_known_of_all && of_class > 0 && of_class <= of_input).then_some((of_class, of_input))
}

impl Excess {
    /// Computes the differences; `None` for a class that must not hold, as [`totals`] says, or with
    /// a value that the input lacks.
    pub(super) fn of(class: &Class<'_>) -> Option<Self> {
        let (of_class, of_input) = totals(class)?;
        let (n, all) = (i128::try_from(of_class).ok()?, i128::try_from(of_input).ok()?);
        let expected = class.input.values().iter().map(|count| -i128::from(count.count) * n);
        let mut of_values: Vec<i128> = expected.collect();
        for count in class.sensitive {
            of_values[class.input.place(count.value)?] += i128::from(count.count) * all;
        }
        Some(Self { of_values, unit: of_class * of_input })
    }
}

/// Returns whether the distance of a class that holds can have this value when the released rows
/// stand for the input. They are a mixture of classes that are at most t away from the input, and
/// so are they: by the triangle inequality a class is at most 2 t away from them. Individuals in
/// several classes count once, so their values need not be such a mixture.
pub(super) fn may_be_among_released(value: Quantity, t: Decimal, counted: Counted) -> bool {
    (0.0..=1.0).contains(&value.to_f64())
        && match counted {
            Counted::Rows => value.compare(2, t).is_some_and(Ordering::is_le),
            Counted::Individuals => true,
        }
}
