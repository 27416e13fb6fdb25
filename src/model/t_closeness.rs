//! `t_closeness`: the sensitive values of every class are distributed nearly as in the whole input.
//!
//! A class E holds iff ½ Σ |p_j - P_j| <= t (Li et al. 2007, with equal distances between the
//! values), where p_j is the share of the value j in the class and P_j its share in the whole
//! input, suppressed rows included. NULL is a value like any other. An individual with many rows
//! counts once for each of its values, in the class and in the input, so shares are then shares of
//! the pairs of an individual and a value; and no value may be shared by all individuals of a class
//! of two or more.
//!
//! # Contract
//! Takes a number t from 0 to 1 and one sensitive column. The quantity is the distance of a class,
//! from 0 to 1; it is infinite for a class without individuals, and where all individuals of a
//! class of two or more share a value. A table reaches the greatest distance of its classes. Whole
//! numbers decide, so no rounding turns a tie. The model implies no class size. Where rows are
//! counted, two classes that hold merge into one that holds; with individuals that is not promised.
//!
//! It limits what an attacker who finds a person's class learns beyond the distribution of the
//! whole input: the share of any set of values in the class differs from its share in the input by
//! at most t. It does not hide the distribution of the input itself: if nine of ten rows have one
//! value, every row of a class may have it at t = 0.1 where rows are counted. It ignores that
//! different values can mean nearly the same, and what else an attacker knows.
//!
//! ```
//! use datafusion_kanon::extend::{ClassModel, Decimal, Distribution, ValueCount};
//! use datafusion_kanon::internals::model::{Class, t_closeness::TCloseness};
//! let counts = |counts: [u64; 2]| [0, 1].map(|j| ValueCount { value: Some(j), count: counts[j as usize] });
//! let input = Distribution::of_rows(counts([50, 50]).to_vec());
//! let model = TCloseness::new(Decimal::parse("0.2")?)?;
//! let class = |of_values: [u64; 2]| {
//!     let size = of_values.iter().sum();
//!     model.holds(model.value(&Class { size, sensitive: &counts(of_values), input: &input, population: None }))
//! };
//! assert!(class([7, 3]));
//! assert!(!class([8, 2]));
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use super::excess::{may_be_among_released, totals};
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
    make: |settings| Ok(Box::new(TCloseness::new(settings.number("t")?)?)),
};

const T: Parameter = Parameter {
    name: "t",
    kind: Kind::Share,
    absent: Absent::Refused,
    summary: "the share of a class that may differ from the whole input",
};

const DOC: &Doc = &Doc {
    name: "t_closeness",
    summary: "the sensitive values of every class are distributed as in the whole table, but for a share of t",
    parameters: "t",
    example: "t_closeness(diagnosis, age, sex, zip)",
    paper: Some(papers::LI_2007),
};

/// The model that the [module](self) describes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TCloseness {
    t: Decimal,
}

impl TCloseness {
    /// Creates the model for this t.
    ///
    /// # Errors
    /// A policy error unless t is from 0 to 1.
    pub fn new(t: Decimal) -> Result<Self> {
        T.check_number(t)?;
        Ok(Self { t })
    }
}

impl ClassModel for TCloseness {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn needs(&self) -> Needs {
        Needs::Distribution
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
        let Some((of_class, of_input)) = totals(class) else { return Quantity::Real(f64::INFINITY) };
        // Shares above the input's exceed it by as much as the others fall short of it.
        let above = class.sensitive.iter().map(|count| {
            let (here, all) = (u128::from(count.count), u128::from(class.input.of(count.value)));
            (here * of_input).saturating_sub(all * of_class)
        });
        Quantity::Ratio(above.sum(), of_class * of_input)
    }

    fn worst(&self) -> Worst {
        Worst::Greatest
    }

    fn holds(&self, value: Quantity) -> bool {
        value.is_at_most(self.t)
    }

    fn may_reach_among_released(&self, value: Quantity, counted: Counted) -> bool {
        may_be_among_released(value, self.t, counted)
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
    use crate::model::{Distribution, make};

    fn model(t: &str) -> Result<Box<dyn ClassModel>> {
        make("t_closeness", &[("t".into(), Decimal::parse(t).unwrap().into())])
    }

    fn holds(t: &str, input: &Distribution, size: u64, class: &[(Option<u32>, u64)]) -> bool {
        let (model, sensitive) = (model(t).unwrap(), counts(class));
        model.holds(model.value(&Class { size, sensitive: &sensitive, input, population: None }))
    }

    #[test]
    fn the_distance_by_hand() {
        let input = Distribution::of_rows(counts(&[(None, 2), (Some(0), 2), (Some(1), 4), (Some(5), 2)]));
        // |0.5 - 0.2| + |0.5 - 0.2| + 0.4 + 0.2, halved.
        let class = [(None, 1), (Some(0), 1)];
        assert!(holds("0.6", &input, 2, &class) && !holds("0.599999999999999999", &input, 2, &class));
        // The whole input is no distance away from itself.
        let all = [(Some(5), 2), (Some(0), 2), (None, 2), (Some(1), 4)];
        assert!(holds("0", &input, 10, &all));
        // All rows of a class share a value: at t = 1 - 0.4.
        assert!(holds("0.6", &input, 3, &[(Some(1), 3)]) && !holds("0.59", &input, 3, &[(Some(1), 3)]));
    }

    #[test]
    fn a_value_that_all_individuals_share_is_refused() {
        let of_individuals = |values: &[(Option<u32>, u64)]| Distribution::of_individuals(counts(values), 18);
        let input = of_individuals(&[(Some(0), 9), (Some(1), 9)]);
        // Two people who both have both values; each has one; one is alone.
        assert!(!holds("1", &input, 2, &[(Some(0), 2), (Some(1), 2)]));
        assert!(holds("0", &input, 2, &[(Some(0), 1), (Some(1), 1)]));
        assert!(holds("0.5", &input, 1, &[(Some(0), 1)]));
        assert!(!holds("1", &input, 0, &[]));
    }

    #[test]
    fn large_counts_do_not_overflow() {
        let n = 1u64 << 40;
        let input = Distribution::of_rows(counts(&[(Some(0), n), (Some(1), 3 * n)]));
        let class = [(Some(0), n / 2), (Some(1), n / 2)];
        assert!(holds("0.25", &input, n, &class));
        assert!(!holds("0.249999999999999999", &input, n, &class));
        let class = [(Some(0), n / 2 + 1), (Some(1), n / 2 - 1)];
        assert!(!holds("0.25", &input, n, &class));
        let most = Distribution::of_rows(counts(&[(Some(0), u64::MAX / 2), (Some(1), u64::MAX / 2)]));
        assert!(holds("0.5", &most, u64::MAX / 2, &[(Some(1), u64::MAX / 2)]));
        assert!(!holds("0.499999999999999999", &most, u64::MAX / 2, &[(Some(1), u64::MAX / 2)]));
    }

    #[test]
    fn released_rows_are_at_most_twice_t_apart() {
        let model = model("0.25").unwrap();
        let may = |above, counted| model.may_reach_among_released(Quantity::Ratio(above, 100), counted);
        assert_eq!([50, 51].map(|above| may(above, Counted::Rows)), [true, false]);
        assert_eq!([100, 101].map(|above| may(above, Counted::Individuals)), [true, false]);
        assert!(!model.may_reach_among_released(Quantity::Real(f64::INFINITY), Counted::Individuals));
    }

    #[test]
    fn t_is_a_number_from_0_to_1() {
        for wrong in ["-0.1", "1.00000000000000001", "2"] {
            let refused = model(wrong).unwrap_err().to_string();
            assert!(refused.contains(&format!("expected a number from 0 to 1, found {wrong}")), "{refused}");
        }
        assert_eq!(model("0.2").unwrap().parameters(), [("t", Decimal::parse("0.2").unwrap())]);
        assert!(["0", "1"].iter().all(|t| model(t).is_ok()));
    }
}
