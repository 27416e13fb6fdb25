//! `t_closeness_ordered`: the sensitive values of every class are distributed nearly as in the
//! whole input, where values that lie close together differ less.
//!
//! With the d distinct values of the input in their order, a class E holds iff 1/(d-1) Σ_i
//! |Σ_(j<=i) (p_j - P_j)| <= t (Li et al. 2007, the earth mover's distance with ordered distances),
//! where p_j is the share of the value j in the class and P_j its share in the whole input,
//! suppressed rows included. The distance is 0 where d = 1. Numbers are in the order of numbers,
//! dates and texts in theirs; NULL is a value like any other, below all others. An individual with
//! many rows counts once for each of its values, in the class and in the input, so shares are then
//! shares of the pairs of an individual and a value; and no value may be shared by all individuals
//! of a class of two or more.
//!
//! # Contract
//! Takes a number t from 0 to 1 and one sensitive column. The quantity is the distance of a class,
//! from 0 to 1; it is infinite for a class without individuals, and where all individuals of a
//! class of two or more share a value. A table reaches the greatest distance of its classes. Whole
//! numbers decide, so no rounding turns a tie. The model implies no class size. Where rows are
//! counted, two classes that hold merge into one that holds; with individuals that is not promised.
//!
//! It limits what an attacker who finds a person's class learns beyond the distribution of the
//! whole input, and unlike `t_closeness` it sees that salaries of 3,000, 4,000 and 5,000 are alike
//! (similarity): a class whose values are all low is far from the input. Only the ranks of the
//! values count, not how far apart they are, and it can hold for a class in which all share one
//! value in the middle. It does not hide the distribution of the input itself, and ignores what
//! else an attacker knows.
//!
//! ```
//! use datafusion_kanon::extend::{ClassModel, Decimal, Distribution, ValueCount};
//! use datafusion_kanon::internals::model::{Class, t_closeness_ordered::TClosenessOrdered};
//! // The salaries of Li et al.: 3,000 to 11,000, one person each.
//! let salaries = |of: &[u32]| of.iter().map(|j| ValueCount { value: Some(*j), count: 1 }).collect::<Vec<_>>();
//! let input = Distribution::of_rows(salaries(&[3, 4, 5, 6, 7, 8, 9, 10, 11]));
//! let model = TClosenessOrdered::new(Decimal::parse("0.17")?)?;
//! let holds = |of: &[u32]| model.holds(model.value(&Class { size: 3, sensitive: &salaries(of), input: &input, population: None }));
//! assert!(holds(&[6, 8, 11]));
//! assert!(!holds(&[3, 4, 5]));
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use super::excess::Excess;
use super::{Class, ClassModel, Counted, Merge, ModelRow, Needs, Quantity, Worst};
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::error::Result;
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter};

/// The row of [`MODELS`](super::MODELS) for this model.
pub const ROW: ModelRow = ModelRow {
    doc: DOC,
    parameters: &[T],
    constants: &[],
    make: |settings| Ok(Box::new(TClosenessOrdered::new(settings.number("t")?)?)),
};

const T: Parameter = Parameter {
    name: "t",
    kind: Kind::Share,
    absent: Absent::Refused,
    summary: "the greatest distance of a class from the whole input",
};

const DOC: &Doc = &Doc {
    name: "t_closeness_ordered",
    summary: "the sensitive values of every class are distributed as in the whole table, but for a distance of t by their order",
    parameters: "t",
    example: "t_closeness_ordered(salary, age, sex, zip)",
    paper: Some(papers::LI_2007),
};

/// The model that the [module](self) describes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TClosenessOrdered {
    t: Decimal,
}

impl TClosenessOrdered {
    /// Creates the model for this t.
    ///
    /// # Errors
    /// A policy error unless t is from 0 to 1.
    pub fn new(t: Decimal) -> Result<Self> {
        T.check_number(t)?;
        Ok(Self { t })
    }
}

/// Returns the distance exactly; `None` for a class that must not hold.
fn distance(class: &Class<'_>) -> Option<(u128, u128)> {
    let Excess { of_values, unit } = Excess::of(class)?;
    let (mut moved, mut distance) = (0i128, 0u128);
    for excess in &of_values {
        moved += excess;
        distance = distance.checked_add(moved.unsigned_abs())?;
    }
    let steps = of_values.len().saturating_sub(1).max(1) as u128;
    Some((distance, steps.checked_mul(unit)?))
}

impl ClassModel for TClosenessOrdered {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn needs(&self) -> Needs {
        Needs::Order
    }

    fn merge(&self, counted: Counted) -> Merge {
        match counted {
            // The distance is convex: that of a mixture is at most the greater of its parts'.
            Counted::Rows => Merge::Both,
            Counted::Individuals => Merge::None,
        }
    }

    fn min_size(&self) -> u64 {
        1
    }

    fn value(&self, class: &Class<'_>) -> Quantity {
        distance(class).map_or(Quantity::Real(f64::INFINITY), |(distance, of)| Quantity::Ratio(distance, of))
    }

    fn worst(&self) -> Worst {
        Worst::Greatest
    }

    fn holds(&self, value: Quantity) -> bool {
        value.is_at_most(self.t)
    }

    fn may_reach_among_released(&self, value: Quantity, _counted: Counted) -> bool {
        // The released rows may lack values of the input, and then the others lie further apart in rank.
        (0.0..=1.0).contains(&value.to_f64())
    }

    fn parameters(&self) -> Vec<(&'static str, Decimal)> {
        vec![("t", self.t)]
    }

    fn required(&self) -> Decimal {
        self.t
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::counts;
    use crate::model::{Distribution, ValueCount, make};

    fn model(t: &str) -> Result<Box<dyn ClassModel>> {
        make("t_closeness_ordered", &[("t".into(), Decimal::parse(t).unwrap().into())])
    }

    fn holds(t: &str, input: &Distribution, size: u64, class: &[(Option<u32>, u64)]) -> bool {
        let (model, sensitive) = (model(t).unwrap(), counts(class));
        model.holds(model.value(&Class { size, sensitive: &sensitive, input, population: None }))
    }

    /// Li et al. 2007, section 4.1: the salaries of nine people, three in a class. {3k, 4k, 5k} is
    /// 0.375 from all, {6k, 8k, 11k} is 0.167.
    #[test]
    fn the_salaries_of_the_paper() {
        let one = |of: &[u32]| of.iter().map(|j| (Some(*j), 1)).collect::<Vec<_>>();
        let input = Distribution::of_rows(counts(&one(&[3, 4, 5, 6, 7, 8, 9, 10, 11])));
        assert!(
            holds("0.375", &input, 3, &one(&[3, 4, 5]))
                && !holds("0.374999999999999999", &input, 3, &one(&[5, 3, 4]))
        );
        let sixth = ["0.166666666666666667", "0.166666666666666666"];
        assert_eq!(sixth.map(|t| holds(t, &input, 3, &one(&[6, 8, 11]))), [true, false]);
    }

    #[test]
    fn the_distance_by_hand() {
        // NULL lies below 0: all of the class must move one step up, half of it another one.
        let input = Distribution::of_rows(counts(&[(None, 1), (Some(0), 2), (Some(1), 1)]));
        assert!(
            holds("0.5", &input, 1, &[(None, 1)]) && !holds("0.499999999999999999", &input, 1, &[(None, 1)])
        );
        // A value alone is no distance from itself.
        let alone = Distribution::of_rows(counts(&[(Some(7), 9)]));
        assert!(holds("0", &alone, 3, &[(Some(7), 3)]));
        // A class in the middle is close, although all its rows share one value.
        let thirds = Distribution::of_rows(counts(&[(Some(0), 1), (Some(1), 1), (Some(2), 1)]));
        let third = ["0.333333333333333334", "0.333333333333333333"];
        assert_eq!(third.map(|t| holds(t, &thirds, 1, &[(Some(1), 1)])), [true, false]);
    }

    #[test]
    fn a_class_that_is_none_of_the_input_is_refused() {
        let input = Distribution::of_rows(counts(&[(Some(0), 9), (Some(1), 9)]));
        assert!(!holds("1", &input, 1, &[(Some(5), 1)]) && !holds("1", &input, 0, &[]));
        assert!(!holds("1", &input, 20, &[(Some(0), 20)]));
        let people = Distribution::of_individuals(counts(&[(Some(0), 9), (Some(1), 9)]), 18);
        assert!(!holds("1", &people, 2, &[(Some(0), 2), (Some(1), 2)]));
    }

    #[test]
    fn large_counts_do_not_overflow() {
        let n = 1u64 << 40;
        let input =
            Distribution::of_rows((0..1_000).map(|j| ValueCount { value: Some(j), count: n }).collect());
        let lowest = [(Some(0), n)];
        // Everything moves up by 0 to 999 steps, 499.5 on average.
        assert!(holds("0.5", &input, n, &lowest) && !holds("0.499999999999999999", &input, n, &lowest));
        let most = Distribution::of_rows(counts(&[(Some(0), u64::MAX / 2), (Some(1), u64::MAX / 2)]));
        assert!(holds("0.5", &most, u64::MAX / 2, &[(Some(1), u64::MAX / 2)]));
    }

    #[test]
    fn a_class_that_holds_can_fail_with_one_that_fails() {
        let input = Distribution::of_rows(counts(&[(Some(0), 1), (Some(1), 2), (Some(2), 1)]));
        assert!(holds("0.25", &input, 1, &[(Some(1), 1)]) && !holds("0.25", &input, 3, &[(Some(2), 3)]));
        assert!(!holds("0.25", &input, 4, &[(Some(1), 1), (Some(2), 3)]));
    }
}
