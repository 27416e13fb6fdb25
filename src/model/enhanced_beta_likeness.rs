//! `enhanced_beta_likeness`: in every class each sensitive value is at most 1 + beta times as
//! frequent as in the whole input, and a frequent one gains less.
//!
//! A class E holds iff (p_j - P_j) / P_j <= min(beta, -ln P_j) for all sensitive values j, where
//! p_j is the share of the individuals of E who have the value j, and P_j the share of those of the
//! whole input, suppressed rows included (enhanced β-likeness, Cao & Karras 2012). NULL is a value
//! like any other.
//!
//! Deviation from the paper: an individual with many rows counts once for each of its values, in
//! the class and in the input.
//!
//! # Contract
//! Takes a number beta above 0 and one sensitive column. The quantity is the greatest gain (p_j -
//! P_j) / P_j of a class, as for `basic_beta_likeness`; it has no value where a gain exceeds its
//! cap -ln P_j, whatever beta is, and is infinite for a class without individuals. A table reached
//! the greatest of its classes, no value being worse than any. Whole numbers decide beta. The cap
//! has a logarithm: a gain above it by less than one part in 10^12 holds, so that rounding decides
//! no tie. A value that all of the input have has the cap 0, and cannot gain. The model implies no
//! class size. Where rows are counted, two classes that hold merge into one that holds; with
//! individuals that is not promised, because an individual in both classes counts once. It is not
//! promised either for a class that holds and one that fails.
//!
//! It limits what an attacker who finds a person's class learns beyond the distribution of the
//! whole input, for rare values as strictly as for frequent ones (skewness), and the cap keeps the
//! share of every value at P_j (1 - ln P_j) or below, which is less than 1: no value is shared by
//! all of a class unless all of the input have it (homogeneity). It does not limit losses: in a
//! class without flu everybody learns that a person does not have it; `delta_disclosure` limits
//! them. It ignores that values can mean the same.
//!
//! Released rows tell little of it: a value that is rare among them may have been frequent in what
//! was suppressed, and the other way round, so any gain among them is possible, and so are broken
//! caps.
//!
//! ```
//! use datafusion_kanon::extend::{ClassModel, Decimal, Distribution, ValueCount};
//! use datafusion_kanon::internals::model::{Class, enhanced_beta_likeness::EnhancedBetaLikeness};
//! let counts = |counts: [u64; 2]| [0, 1].map(|j| ValueCount { value: Some(j), count: counts[j as usize] });
//! let input = Distribution::of_rows(counts([50, 50]).to_vec());
//! let model = EnhancedBetaLikeness::new(Decimal::integer(1))?;
//! let class = |of_values: [u64; 2]| {
//!     let size = of_values.iter().sum();
//!     model.holds(model.value(&Class { size, sensitive: &counts(of_values), input: &input, population: None }))
//! };
//! assert!(class([5, 1]), "a gain of 0.667 is below ln 2");
//! assert!(!class([6, 1]), "one of 0.714 is not");
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use super::basic_beta_likeness::{counts_beside_input, greatest_gain};
use super::{Class, ClassModel, Counted, Merge, ModelRow, Needs, Quantity, TOLERANCE, Worst};
use crate::decimal::{Decimal, ln_ratio, ratio};
use crate::doc::Doc;
use crate::error::Result;
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter};

/// The row of [`MODELS`](super::MODELS) for this model.
pub const ROW: ModelRow = ModelRow {
    doc: DOC,
    parameters: &[BETA],
    constants: &[],
    make: |settings| Ok(Box::new(EnhancedBetaLikeness::new(settings.number("beta")?)?)),
};

const BETA: Parameter = Parameter {
    name: "beta",
    kind: Kind::Positive,
    absent: Absent::Refused,
    summary: "the greatest gain of a rare value: 1 means twice the share of the whole input",
};

const DOC: &Doc = &Doc {
    name: "enhanced_beta_likeness",
    summary: "in every class each sensitive value is at most 1 + beta times as frequent as in the whole table, and a frequent one \
              gains less",
    parameters: "beta",
    example: "enhanced_beta_likeness(diagnosis, age, sex, zip)",
    paper: Some(papers::CAO_KARRAS_2012),
};

/// The model that the [module](self) describes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnhancedBetaLikeness {
    beta: Decimal,
}

impl EnhancedBetaLikeness {
    /// Creates the model for this beta.
    ///
    /// # Errors
    /// A policy error unless beta is above 0.
    pub fn new(beta: Decimal) -> Result<Self> {
        BETA.check_number(beta)?;
        Ok(Self { beta })
    }
}

impl ClassModel for EnhancedBetaLikeness {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn needs(&self) -> Needs {
        Needs::Distribution
    }

    fn merge(&self, counted: Counted) -> Merge {
        match counted {
            // The share of a value in a merged class lies between its shares in the parts, and its
            // cap is the same.
            Counted::Rows => Merge::Both,
            Counted::Individuals => Merge::None,
        }
    }

    fn min_size(&self) -> u64 {
        1
    }

    fn value(&self, class: &Class<'_>) -> Quantity {
        let (size, of_input) = (u128::from(class.size), u128::from(class.input.size()));
        let is_capped = |(here, all): (u128, u128)| {
            let gain = ratio((here * of_input).saturating_sub(size * all), size * all);
            gain <= ln_ratio(of_input, all) * (1.0 + TOLERANCE)
        };
        match counts_beside_input(class).is_none_or(|mut counts| counts.all(is_capped)) {
            true => greatest_gain(class),
            false => Quantity::Broken,
        }
    }

    fn worst(&self) -> Worst {
        Worst::Greatest
    }

    fn holds(&self, value: Quantity) -> bool {
        value.is_at_most(self.beta)
    }

    fn may_reach_among_released(&self, value: Quantity, _: Counted) -> bool {
        // A share among the released rows is as small as suppression makes it, but not 0: the class
        // is one of them.
        value == Quantity::Broken || (0.0..=f64::MAX).contains(&value.to_f64())
    }

    fn parameters(&self) -> Vec<(&'static str, Decimal)> {
        vec![("beta", self.beta)]
    }

    fn required(&self) -> Decimal {
        self.beta
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::counts;
    use crate::model::{Distribution, make};

    fn model(beta: &str) -> Result<Box<dyn ClassModel>> {
        make("enhanced_beta_likeness", &[("beta".into(), Decimal::parse(beta).unwrap().into())])
    }

    fn value(input: &Distribution, size: u64, class: &[(Option<u32>, u64)]) -> Quantity {
        model("1").unwrap().value(&Class { size, sensitive: &counts(class), input, population: None })
    }

    fn holds(beta: &str, input: &Distribution, size: u64, class: &[(Option<u32>, u64)]) -> bool {
        model(beta).unwrap().holds(value(input, size, class))
    }

    #[test]
    fn caps_and_gains_by_hand() {
        // The caps are ln 10 = 2.303, ln (10 / 3) = 1.204 and ln (10 / 6) = 0.511.
        let input = Distribution::of_rows(counts(&[(None, 3), (Some(0), 1), (Some(1), 6)]));
        // Gains of 1 and 1 / 3, in any order; beta is decided exactly.
        for class in [[(Some(1), 4), (Some(0), 1)], [(Some(0), 1), (Some(1), 4)]] {
            assert_eq!(value(&input, 5, &class), Quantity::Ratio(5, 5));
            assert!(holds("1", &input, 5, &class) && !holds("0.999999999999999999", &input, 5, &class));
        }
        // One in three and one in four instead of one in ten: gains of 2.333 and 1.5.
        assert_eq!(value(&input, 3, &[(None, 1), (Some(0), 1), (Some(1), 1)]), Quantity::Broken);
        assert!(!holds("1000", &input, 3, &[(None, 1), (Some(0), 1), (Some(1), 1)]));
        assert!(holds("1.5", &input, 4, &[(None, 1), (Some(0), 1), (Some(1), 2)]));
        // The greatest gain is below its cap, another is not: all rows but one have the frequent value.
        let input = Distribution::of_rows(counts(&[(Some(0), 1), (Some(1), 60), (None, 39)]));
        assert_eq!(value(&input, 50, &[(Some(0), 1), (Some(1), 49)]), Quantity::Broken);
        assert!(holds("1", &input, 50, &[(Some(0), 1), (Some(1), 45), (None, 4)]));
        // NULL has a cap like any other value: 0.942.
        assert_eq!(value(&input, 20, &[(None, 16), (Some(1), 4)]), Quantity::Broken);
    }

    #[test]
    fn a_value_that_all_of_the_input_have_has_the_cap_0() {
        let input = Distribution::of_rows(counts(&[(Some(0), 9)]));
        assert_eq!(value(&input, 4, &[(Some(0), 4)]), Quantity::Ratio(0, 36));
        assert!(holds("0.000000000000000001", &input, 4, &[(Some(0), 4)]));
        let people = Distribution::of_individuals(counts(&[(Some(0), 9), (Some(1), 3)]), 9);
        assert!(holds("0.5", &people, 4, &[(Some(0), 4), (Some(1), 2)]));
        // No other value may be shared by all, however frequent it is.
        for n in [2, 100, 1 << 20] {
            let input = Distribution::of_rows(counts(&[(Some(0), n), (Some(1), 1)]));
            assert_eq!(value(&input, 1, &[(Some(0), 1)]), Quantity::Broken, "{n}");
        }
    }

    #[test]
    fn gains_at_the_cap_hold() {
        // A gain above the cap by one part in 10^13 holds, one by one in 10^11 does not.
        let n = 1u64 << 60;
        for all in [n / 2, n / 3, n / 10, n / 1_000] {
            let input = Distribution::of_rows(counts(&[(Some(0), all), (Some(1), n - all)]));
            let cap = (n as f64 / all as f64).ln();
            let class = |gain: f64| {
                let here = format!("{:.0}", all as f64 * (1.0 + gain) / 16.0).parse().unwrap();
                [(Some(0), here), (Some(1), n / 16 - here)]
            };
            assert_ne!(value(&input, n / 16, &class(cap * (1.0 + 1e-13))), Quantity::Broken, "{all}");
            assert_eq!(value(&input, n / 16, &class(cap * (1.0 + 1e-11))), Quantity::Broken, "{all}");
        }
    }

    #[test]
    fn classes_that_are_none_of_the_input_fail() {
        let input = Distribution::of_rows(counts(&[(Some(0), 2), (Some(1), 2)]));
        for (size, class) in [
            (0, vec![]),
            (0, vec![(Some(0), 1)]),
            (2, vec![]),
            (5, vec![(Some(0), 2), (Some(1), 2)]),
            (4, vec![(Some(0), 3), (Some(1), 1)]),
            (2, vec![(Some(0), 1), (Some(7), 1)]),
        ] {
            assert_eq!(value(&input, size, &class), Quantity::Real(f64::INFINITY), "{size} {class:?}");
            assert!(!holds("1000000", &input, size, &class));
        }
        // A table without a value is worse than one that reached an infinite gain.
        let reached = [Quantity::Broken, Quantity::Real(f64::INFINITY), Quantity::Ratio(1, 2)];
        assert_eq!(model("1").unwrap().reached(&mut reached.into_iter()), Some(Quantity::Broken));
    }

    #[test]
    fn large_counts_do_not_overflow() {
        for n in [1u64 << 40, 1 << 61] {
            let input = Distribution::of_rows(counts(&[(Some(0), n), (Some(1), 3 * n)]));
            // A half instead of a quarter.
            let class = [(Some(0), n / 2), (Some(1), n / 2)];
            assert!(holds("1", &input, n, &class) && !holds("0.999999999999999999", &input, n, &class));
            let people = Distribution::of_individuals(counts(&[(Some(0), n), (Some(1), 3 * n)]), 4 * n);
            assert!(holds("1", &people, n, &[(Some(0), n / 2), (Some(1), 7 * (n / 8))]));
            assert!(!holds("3", &people, n, &[(Some(0), n), (Some(1), n)]));
        }
    }

    #[test]
    fn classes_of_rows_that_hold_merge_into_one_that_holds() {
        let input = Distribution::of_rows(counts(&[(None, 8), (Some(0), 6), (Some(1), 20)]));
        let values = [None, Some(0), Some(1)];
        let class_holds = |beta: &str, class: [u64; 3]| {
            let there: Vec<_> = values.into_iter().zip(class).filter(|(_, count)| *count > 0).collect();
            holds(beta, &input, class.iter().sum(), &there)
        };
        let classes = || (0..64).map(|n| [n % 4, n / 4 % 4, n / 16]);
        let mut merged = 0;
        for beta in ["0.1", "0.7", "0.888888888888888889", "5"] {
            for (a, b) in classes().flat_map(|a| classes().map(move |b| (a, b))) {
                if class_holds(beta, a) && class_holds(beta, b) {
                    assert!(class_holds(beta, [0, 1, 2].map(|j| a[j] + b[j])), "{beta} {a:?} {b:?}");
                    merged += 1;
                }
            }
        }
        assert!(merged > 1_000, "{merged}");
    }

    #[test]
    fn a_class_that_fails_or_shares_individuals_can_spoil_one_that_holds() {
        // Where a class may be suppressed, going up can suppress more: of 6 + 3 rows only 3 fail, of 9 all.
        let input = Distribution::of_rows(counts(&[(Some(0), 8), (Some(1), 8)]));
        assert!(holds("9", &input, 6, &[(Some(0), 5), (Some(1), 1)]));
        assert!(!holds("9", &input, 3, &[(Some(0), 3)]));
        assert!(!holds("9", &input, 9, &[(Some(0), 8), (Some(1), 1)]));
        // Two people with one value in each class have both in the merged one.
        let input = Distribution::of_individuals(counts(&[(Some(0), 11), (Some(1), 11)]), 20);
        assert!(holds("9", &input, 2, &[(Some(0), 1), (Some(1), 1)]));
        assert_eq!(value(&input, 2, &[(Some(0), 2), (Some(1), 2)]), Quantity::Broken);
    }

    #[test]
    fn any_gain_is_possible_among_released_rows() {
        // Where most rows with a value are suppressed, its gain of 0.6 becomes one of 1.5.
        let input = Distribution::of_rows(counts(&[(Some(0), 500), (Some(1), 500)]));
        assert!(holds("1", &input, 5, &[(Some(0), 4), (Some(1), 1)]));
        assert!(holds("1", &input, 20, &[(Some(0), 4), (Some(1), 16)]));
        let released = Distribution::of_rows(counts(&[(Some(0), 8), (Some(1), 17)]));
        let gain = value(&released, 5, &[(Some(0), 4), (Some(1), 1)]);
        assert_eq!(gain, Quantity::Broken, "1.5 is above ln (25 / 8)");
        let model = model("1").unwrap();
        for counted in [Counted::Rows, Counted::Individuals] {
            assert!(model.may_reach_among_released(gain, counted));
            assert!(model.may_reach_among_released(Quantity::Ratio(99, 1), counted));
            for wrong in [Quantity::Real(f64::INFINITY), Quantity::Real(-0.5)] {
                assert!(!model.may_reach_among_released(wrong, counted), "{wrong:?}");
            }
        }
    }

    #[test]
    fn beta_is_a_number_above_0() {
        for wrong in ["0", "-1"] {
            let refused = model(wrong).unwrap_err().to_string();
            assert!(
                refused.contains(&format!("beta: expected a number above 0, found {wrong}")),
                "{refused}"
            );
        }
        assert_eq!(model("0.5").unwrap().parameters(), [("beta", Decimal::parse("0.5").unwrap())]);
        assert_eq!(model("0.5").unwrap().required(), Decimal::parse("0.5").unwrap());
    }
}
