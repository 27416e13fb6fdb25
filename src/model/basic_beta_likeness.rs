//! `basic_beta_likeness`: in every class each sensitive value is at most 1 + beta times as frequent
//! as in the whole input.
//!
//! A class E holds iff (p_j - P_j) / P_j <= beta for all sensitive values j, where p_j is the share
//! of the individuals of E who have the value j, and P_j the share of those of the whole input,
//! suppressed rows included (basic β-likeness, Cao & Karras 2012). NULL is a value like any other.
//!
//! Deviation from the paper: an individual with many rows counts once for each of its values, in
//! the class and in the input.
//!
//! # Contract
//! Takes a number beta above 0 and one sensitive column. The quantity is the greatest gain (p_j -
//! P_j) / P_j of a class, 0 where no value gains (which needs individuals with several values), and
//! infinite for a class without individuals; a table reached the greatest of its classes. Whole
//! numbers decide, so no rounding turns a tie. The model implies no class size. Where rows are
//! counted, two classes that hold merge into one that holds; with individuals that is not promised,
//! because an individual in both classes counts once. It is not promised either for a class that
//! holds and one that fails.
//!
//! It limits what an attacker who finds a person's class learns beyond the distribution of the
//! whole input, for rare values as strictly as for frequent ones: no value gets more than 1 + beta
//! times as likely (skewness). `t_closeness` limits differences, so that at t = 0.05 a value that
//! one in a thousand has may be fifty times as likely. Three things it does not limit: losses (in a
//! class without flu everybody learns that a person does not have it; `delta_disclosure` limits
//! them), values that are frequent anyway (at beta = 1 all of a class may have what half of the
//! input has; `enhanced_beta_likeness` forbids that), and values that mean the same.
//!
//! Released rows tell little of it: a value that is rare among them may have been frequent in what
//! was suppressed, so any gain among them is possible.
//!
//! ```
//! use datafusion_kanon::extend::{ClassModel, Decimal, Distribution, ValueCount};
//! use datafusion_kanon::internals::model::{Class, basic_beta_likeness::BasicBetaLikeness};
//! let counts = |counts: [u64; 2]| [0, 1].map(|j| ValueCount { value: Some(j), count: counts[j as usize] });
//! let input = Distribution::of_rows(counts([10, 90]).to_vec());
//! let model = BasicBetaLikeness::new(Decimal::integer(1))?;
//! let class = |of_values: [u64; 2]| {
//!     let size = of_values.iter().sum();
//!     model.holds(model.value(&Class { size, sensitive: &counts(of_values), input: &input, population: None }))
//! };
//! assert!(class([2, 8]), "0.2 is twice 0.1");
//! assert!(!class([3, 7]));
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use super::{Class, ClassModel, Counted, Merge, ModelRow, Needs, Quantity, Worst};
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::error::Result;
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter};

/// The row of [`MODELS`](super::MODELS) for this model.
pub const ROW: ModelRow = ModelRow {
    doc: DOC,
    parameters: &[BETA],
    constants: &[],
    make: |settings| Ok(Box::new(BasicBetaLikeness::new(settings.number("beta")?)?)),
};

const BETA: Parameter = Parameter {
    name: "beta",
    kind: Kind::Positive,
    absent: Absent::Refused,
    summary: "the greatest gain: 1 means twice the share of the whole input",
};

const DOC: &Doc = &Doc {
    name: "basic_beta_likeness",
    summary: "in every class each sensitive value is at most 1 + beta times as frequent as in the whole table",
    parameters: "beta",
    example: "basic_beta_likeness(diagnosis, age, sex, zip)",
    paper: Some(papers::CAO_KARRAS_2012),
};

/// The model that the [module](self) describes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BasicBetaLikeness {
    beta: Decimal,
}

impl BasicBetaLikeness {
    /// Creates the model for this beta.
    ///
    /// # Errors
    /// A policy error unless beta is above 0.
    pub fn new(beta: Decimal) -> Result<Self> {
        BETA.check_number(beta)?;
        Ok(Self { beta })
    }
}

impl ClassModel for BasicBetaLikeness {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn needs(&self) -> Needs {
        Needs::Distribution
    }

    fn merge(&self, counted: Counted) -> Merge {
        match counted {
            // The share of a value in a merged class lies between its shares in the parts.
            Counted::Rows => Merge::Both,
            Counted::Individuals => Merge::None,
        }
    }

    fn min_size(&self) -> u64 {
        1
    }

    fn value(&self, class: &Class<'_>) -> Quantity {
        greatest_gain(class)
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
        (0.0..=f64::MAX).contains(&value.to_f64())
    }

    fn parameters(&self) -> Vec<(&'static str, Decimal)> {
        vec![("beta", self.beta)]
    }

    fn required(&self) -> Decimal {
        self.beta
    }
}

/// Returns the individuals of a class that have each of its values, and those of the whole input
/// that have it; `None` for a class without individuals, or with more of them than the input, which
/// must not hold.
pub(super) fn counts_beside_input<'a>(class: &Class<'a>) -> Option<impl Iterator<Item = (u128, u128)> + 'a> {
    let Class { size, sensitive, input, .. } = *class;
    let counts = sensitive.iter().map(move |count| (count.count, input.of(count.value)));
    let is_part = size > 0 && size <= input.size() && !sensitive.is_empty();
    let is_part = is_part && counts.clone().all(|(here, all)| here <= all);
    is_part.then(|| counts.map(|(here, all)| (u128::from(here), u128::from(all))))
}

/// Returns the greatest (p_j - P_j) / P_j of a class, at least 0.
pub(super) fn greatest_gain(class: &Class<'_>) -> Quantity {
    // All gains have the factor |input| / |class|. Of equal gains one is taken in any order of the values.
    let greatest = counts_beside_input(class).and_then(|counts| {
        counts
            .max_by(|(here, all), (there, of_all)| (here * of_all).cmp(&(there * all)).then(all.cmp(of_all)))
    });
    let Some((here, all)) = greatest else { return Quantity::Real(f64::INFINITY) };
    let (size, of_input) = (u128::from(class.size), u128::from(class.input.size()));
    Quantity::Ratio((here * of_input).saturating_sub(size * all), size * all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::counts;
    use crate::model::{Distribution, make};

    fn model(beta: &str) -> Result<Box<dyn ClassModel>> {
        make("basic_beta_likeness", &[("beta".into(), Decimal::parse(beta).unwrap().into())])
    }

    fn value(input: &Distribution, size: u64, class: &[(Option<u32>, u64)]) -> Quantity {
        model("1").unwrap().value(&Class { size, sensitive: &counts(class), input, population: None })
    }

    fn holds(beta: &str, input: &Distribution, size: u64, class: &[(Option<u32>, u64)]) -> bool {
        model(beta).unwrap().holds(value(input, size, class))
    }

    #[test]
    fn gains_by_hand() {
        let input = Distribution::of_rows(counts(&[(None, 3), (Some(0), 1), (Some(1), 6)]));
        // A third instead of a tenth, of three tenths, of six tenths: 7 / 3, 1 / 9 and a loss.
        let class = [(None, 1), (Some(0), 1), (Some(1), 1)];
        assert_eq!(value(&input, 3, &class).to_f64(), 7.0 / 3.0);
        assert!(holds("2.33333333333333334", &input, 3, &class));
        assert!(!holds("2.33333333333333333", &input, 3, &class));
        // NULL counts: half of the class instead of three tenths.
        let missing = [(Some(1), 3), (None, 3)];
        assert!(!holds("0.666666666666666666", &input, 6, &missing));
        assert!(holds("0.666666666666666667", &input, 6, &missing));
        // A tie holds, whatever the order: 4 of 5 instead of 6 of 10, and 1 of 5 instead of 1 of 10.
        for class in [[(Some(1), 4), (Some(0), 1)], [(Some(0), 1), (Some(1), 4)]] {
            assert!(holds("1", &input, 5, &class) && !holds("0.999999999999999999", &input, 5, &class));
        }
        // The whole input gains nothing.
        let all = [(Some(1), 6), (None, 3), (Some(0), 1)];
        assert_eq!(value(&input, 10, &all), Quantity::Ratio(0, 60));
    }

    #[test]
    fn equal_gains_have_the_same_bits_in_any_order() {
        let n = 1u64 << 40;
        let input =
            Distribution::of_rows(counts(&[(Some(0), 3 * n), (Some(1), 9 * n), (Some(2), 7 * n + 1)]));
        let class = [(Some(0), n), (Some(1), 3 * n), (Some(2), 1)];
        let size = 4 * n + 1;
        let first = value(&input, size, &class);
        for at in 0..3 {
            let mut turned = class;
            turned.rotate_left(at);
            assert_eq!(value(&input, size, &turned), first);
            turned.swap(0, 1);
            assert_eq!(value(&input, size, &turned), first);
        }
    }

    #[test]
    fn individuals_are_counted_once_for_each_value() {
        let of_individuals = |values: &[(Option<u32>, u64)]| Distribution::of_individuals(counts(values), 10);
        // Two people who both have both values, of ten of whom eight and five have them: gains of 1
        // / 4 and 1.
        let input = of_individuals(&[(Some(0), 8), (Some(1), 5)]);
        let both = [(Some(0), 2), (Some(1), 2)];
        assert!(holds("1", &input, 2, &both) && !holds("0.99", &input, 2, &both));
        // Each has one value: no value gains.
        assert_eq!(value(&input, 2, &[(Some(0), 1), (Some(1), 1)]).to_f64(), 0.0);
        assert_eq!(value(&of_individuals(&[(Some(0), 9), (Some(1), 9)]), 2, &[(Some(0), 1)]).to_f64(), 0.0);
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
            (2, vec![(Some(0), 1), (None, 1)]),
        ] {
            assert_eq!(value(&input, size, &class), Quantity::Real(f64::INFINITY), "{size} {class:?}");
            assert!(!holds("1000000", &input, size, &class));
        }
        assert_eq!(value(Distribution::NONE, 1, &[(Some(0), 1)]), Quantity::Real(f64::INFINITY));
    }

    #[test]
    fn large_counts_do_not_overflow() {
        for n in [1u64 << 40, 1 << 61] {
            let input = Distribution::of_rows(counts(&[(Some(0), n), (Some(1), 3 * n)]));
            // A half instead of a quarter.
            let class = [(Some(0), n / 2), (Some(1), n / 2)];
            assert!(holds("1", &input, n, &class) && !holds("0.999999999999999999", &input, n, &class));
            assert!(!holds("1", &input, n, &[(Some(0), n / 2 + 1), (Some(1), n / 2 - 1)]));
            let people = Distribution::of_individuals(counts(&[(Some(0), n), (Some(1), 3 * n)]), 4 * n);
            assert!(holds("3", &people, n, &[(Some(0), n), (Some(1), n)]));
            assert!(!holds("2.99999999999999999", &people, n, &[(Some(0), n), (Some(1), n)]));
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
        for beta in ["0.1", "0.7", "0.888888888888888889", "1.5"] {
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
        // Where a class may be suppressed, going up can suppress more: of 2 + 2 rows only 2 fail, of 4 all.
        let input = Distribution::of_rows(counts(&[(Some(0), 5), (Some(1), 5)]));
        assert!(holds("0.2", &input, 2, &[(Some(0), 1), (Some(1), 1)]));
        assert!(!holds("0.2", &input, 2, &[(Some(0), 2)]));
        assert!(!holds("0.2", &input, 4, &[(Some(0), 3), (Some(1), 1)]));
        // Two people with one value in each class have both in the merged one.
        let input = Distribution::of_individuals(counts(&[(Some(0), 11), (Some(1), 11)]), 20);
        assert!(holds("0.5", &input, 2, &[(Some(0), 1), (Some(1), 1)]));
        assert!(!holds("0.5", &input, 2, &[(Some(0), 2), (Some(1), 2)]));
    }

    #[test]
    fn any_gain_is_possible_among_released_rows() {
        // A class whose gain is 1 in the input gains 9 or 99 where that many rows of another value
        // are released.
        let input = Distribution::of_rows(counts(&[(Some(0), 500), (Some(1), 500)]));
        assert!(holds("1", &input, 1, &[(Some(0), 1)]) && holds("1", &input, 99, &[(Some(1), 99)]));
        let model = model("1").unwrap();
        for others in [9, 99] {
            let released = Distribution::of_rows(counts(&[(Some(0), 1), (Some(1), others)]));
            let gain = value(&released, 1, &[(Some(0), 1)]);
            assert_eq!(gain, Quantity::Ratio(u128::from(others), 1));
            assert!(model.may_reach_among_released(gain, Counted::Rows));
        }
        for counted in [Counted::Rows, Counted::Individuals] {
            for wrong in [Quantity::Real(f64::INFINITY), Quantity::Real(-0.5), Quantity::Broken] {
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
