//! `delta_disclosure`: in every class each sensitive value of the input is nearly as frequent as in
//! the whole input, as a ratio.
//!
//! A class E holds iff |ln(p_j / P_j)| < delta for every sensitive value j of the input, where p_j
//! is the share of the individuals of E who have the value j, and P_j the share of those of the
//! whole input, suppressed rows included (δ-disclosure privacy, Brickell & Shmatikov 2008). A value
//! of the input that is missing from E breaks it. NULL is a value like any other.
//!
//! Deviations from the paper: the logarithm, whose base it leaves open, is natural here; an
//! individual with many rows counts once for each of its values, in the class and in the input.
//!
//! # Contract
//! Takes a number delta above 0 and one sensitive column. The quantity is the greatest |ln(p_j /
//! P_j)| of a class, infinite where a value is missing and for a class without individuals; a table
//! reached the greatest of its classes, and delta itself is not enough. A class whose quantity lies
//! below delta by less than one part in 10^12 fails, so that rounding decides no tie. The model
//! implies no class size. Where rows are counted, two classes that hold merge into one that holds;
//! with individuals that is not promised, because an individual in both classes counts once. It is
//! not promised either for a class that holds and one that fails.
//!
//! It limits what an attacker who finds a person's class learns beyond the distribution of the
//! whole input: every value stays between e^-delta and e^delta times as likely, so the attacker
//! does not learn that a person has a rare value (skewness), nor that a person does not have a
//! frequent one. It does not hide the distribution of the input itself, and ignores that values can
//! mean the same. It is strict: every class needs every value, so that rare values leave few
//! classes or one. All of a class can share a value only where more than e^-delta of the input have
//! it, and where some of them have each other value too.
//!
//! Every released class is less than delta away from the input, and so are the released rows, which
//! are a mixture of them: where rows are counted, a class is less than 2 delta away from the
//! released rows.
//!
//! ```
//! use datafusion_kanon::extend::{ClassModel, Decimal, Distribution, ValueCount};
//! use datafusion_kanon::internals::model::{Class, delta_disclosure::DeltaDisclosure};
//! let counts = |counts: [u64; 2]| [0, 1].map(|j| ValueCount { value: Some(j), count: counts[j as usize] });
//! let input = Distribution::of_rows(counts([50, 50]).to_vec());
//! let model = DeltaDisclosure::new(Decimal::parse("0.5")?)?;
//! let class = |of_values: [u64; 2]| {
//!     let size = of_values.iter().sum();
//!     model.holds(model.value(&Class { size, sensitive: &counts(of_values), input: &input, population: None }))
//! };
//! assert!(class([6, 4]), "ln 1.2 and -ln 0.8");
//! assert!(!class([7, 3]), "0.3 is too far from 0.5");
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use super::basic_beta_likeness::counts_beside_input;
use super::{Class, ClassModel, Counted, Merge, ModelRow, Needs, Quantity, TOLERANCE, Worst};
use crate::decimal::{Decimal, ln_ratio};
use crate::doc::Doc;
use crate::error::Result;
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter};

/// The row of [`MODELS`](super::MODELS) for this model.
pub const ROW: ModelRow = ModelRow {
    doc: DOC,
    parameters: &[DELTA],
    constants: &[],
    make: |settings| Ok(Box::new(DeltaDisclosure::new(settings.number("delta")?)?)),
};

const DELTA: Parameter = Parameter {
    name: "delta",
    kind: Kind::Positive,
    absent: Absent::Refused,
    summary: "what the logarithm of the ratio of both shares stays below: 0.693 means half to twice the share of the whole input",
};

const DOC: &Doc = &Doc {
    name: "delta_disclosure",
    summary: "in every class each sensitive value of the whole table is more than e^-delta and less than e^delta times as frequent \
              as there",
    parameters: "delta",
    example: "delta_disclosure(diagnosis, age, sex, zip)",
    paper: Some(papers::BRICKELL_SHMATIKOV_2008),
};

/// The model that the [module](self) describes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeltaDisclosure {
    delta: Decimal,
}

impl DeltaDisclosure {
    /// Creates the model for this delta.
    ///
    /// # Errors
    /// A policy error unless delta is above 0.
    pub fn new(delta: Decimal) -> Result<Self> {
        DELTA.check_number(delta)?;
        Ok(Self { delta })
    }
}

impl ClassModel for DeltaDisclosure {
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
        let (size, of_input) = (u128::from(class.size), u128::from(class.input.size()));
        let apart = |(here, all): (u128, u128)| ln_ratio(here * of_input, size * all).abs();
        // All values of the class are the input's.
        let is_complete = class.sensitive.len() == class.input.values().len();
        Quantity::Real(match counts_beside_input(class).filter(|_| is_complete) {
            Some(counts) => counts.map(apart).fold(0.0, f64::max),
            None => f64::INFINITY,
        })
    }

    fn worst(&self) -> Worst {
        Worst::Greatest
    }

    fn holds(&self, value: Quantity) -> bool {
        value.to_f64() < self.delta.to_f64() * (1.0 - TOLERANCE)
    }

    fn may_reach_among_released(&self, value: Quantity, counted: Counted) -> bool {
        // Every released class has every value of the input, and so do the released rows.
        let most = match counted {
            Counted::Rows => 2.0 * self.delta.to_f64(),
            Counted::Individuals => f64::INFINITY,
        };
        (0.0..most).contains(&value.to_f64())
    }

    fn parameters(&self) -> Vec<(&'static str, Decimal)> {
        vec![("delta", self.delta)]
    }

    fn required(&self) -> Decimal {
        self.delta
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::counts;
    use crate::model::{Distribution, make};

    fn model(delta: &str) -> Result<Box<dyn ClassModel>> {
        make("delta_disclosure", &[("delta".into(), Decimal::parse(delta).unwrap().into())])
    }

    fn value(input: &Distribution, size: u64, class: &[(Option<u32>, u64)]) -> f64 {
        model("1")
            .unwrap()
            .value(&Class { size, sensitive: &counts(class), input, population: None })
            .to_f64()
    }

    fn holds(delta: &str, input: &Distribution, size: u64, class: &[(Option<u32>, u64)]) -> bool {
        model(delta).unwrap().holds(Quantity::Real(value(input, size, class)))
    }

    #[test]
    fn ratios_by_hand() {
        let input = Distribution::of_rows(counts(&[(None, 3), (Some(0), 1), (Some(1), 6)]));
        // A fifth instead of three tenths, of one tenth, three fifths instead of six tenths, in any order.
        let class = [(None, 1), (Some(0), 1), (Some(1), 3)];
        for at in 0..3 {
            let mut turned = class;
            turned.rotate_left(at);
            assert_eq!(value(&input, 5, &turned), 2f64.ln());
        }
        // A loss counts as much as a gain: a sixth instead of three tenths, of one tenth, two
        // thirds instead of six tenths.
        assert_eq!(value(&input, 6, &[(None, 1), (Some(0), 1), (Some(1), 4)]), ln_ratio(10, 18).abs());
        // The whole input is no distance away from itself.
        let all = [(Some(1), 6), (None, 3), (Some(0), 1)];
        assert_eq!(value(&input, 10, &all), 0.0);
        assert!(holds("0.000000000000000001", &input, 10, &all));
    }

    #[test]
    fn ties_fail() {
        let input = Distribution::of_rows(counts(&[(Some(0), 1), (Some(1), 3)]));
        // ln 2 = 0.693147180559945309417...
        let class = [(Some(0), 1), (Some(1), 1)];
        assert!(!holds("0.693147180559945309", &input, 2, &class));
        assert!(!holds("0.693147180559945310", &input, 2, &class), "too close to tell");
        assert!(holds("0.6931471806", &input, 2, &class) && !holds("0.6931471805", &input, 2, &class));
        // Neighbours of a large input are told apart.
        let n = 1u64 << 40;
        let input = Distribution::of_rows(counts(&[(Some(0), n), (Some(1), n)]));
        let class = [(Some(0), n / 2 + 1), (Some(1), n / 2 - 1)];
        // 2^-39 is 1.818989403545856e-12.
        assert!(
            holds("0.00000000000181899", &input, n, &class)
                && !holds("0.00000000000181898", &input, n, &class)
        );
    }

    #[test]
    fn a_value_that_is_missing_breaks_it() {
        let input = Distribution::of_rows(counts(&[(None, 1), (Some(0), 5), (Some(1), 5)]));
        for class in [[(Some(0), 1), (Some(1), 1)], [(None, 1), (Some(1), 1)]] {
            assert_eq!(value(&input, 2, &class), f64::INFINITY);
            assert!(!holds("1000000", &input, 2, &class));
        }
        assert!(holds("1.3", &input, 3, &[(None, 1), (Some(0), 1), (Some(1), 1)]));
    }

    #[test]
    fn individuals_are_counted_once_for_each_value() {
        // Two people who both have both values, of ten of whom eight and five have them.
        let input = Distribution::of_individuals(counts(&[(Some(0), 8), (Some(1), 5)]), 10);
        assert_eq!(value(&input, 2, &[(Some(0), 2), (Some(1), 2)]), 2f64.ln());
        assert_eq!(value(&input, 2, &[(Some(0), 1), (Some(1), 2)]), 2f64.ln());
        assert_eq!(value(&input, 2, &[(Some(0), 2), (Some(1), 1)]), ln_ratio(10, 8));
    }

    #[test]
    fn classes_that_are_none_of_the_input_fail() {
        let input = Distribution::of_rows(counts(&[(Some(0), 2), (Some(1), 2)]));
        for (size, class) in [
            (0, vec![]),
            (0, vec![(Some(0), 1), (Some(1), 1)]),
            (2, vec![]),
            (5, vec![(Some(0), 2), (Some(1), 2)]),
            (4, vec![(Some(0), 3), (Some(1), 1)]),
            (2, vec![(Some(0), 1), (Some(7), 1)]),
            (3, vec![(Some(0), 1), (Some(1), 1), (None, 1)]),
        ] {
            assert_eq!(value(&input, size, &class), f64::INFINITY, "{size} {class:?}");
            assert!(!holds("1000000", &input, size, &class));
        }
        assert_eq!(value(Distribution::NONE, 0, &[]), f64::INFINITY);
    }

    #[test]
    fn large_counts_do_not_overflow() {
        for n in [1u64 << 40, 1 << 61] {
            let input = Distribution::of_rows(counts(&[(Some(0), n), (Some(1), 3 * n)]));
            // A half instead of a quarter, and of three quarters.
            assert_eq!(value(&input, n, &[(Some(0), n / 2), (Some(1), n / 2)]), 2f64.ln());
            assert_eq!(value(&input, 4 * n, &[(Some(1), 3 * n), (Some(0), n)]), 0.0);
            let people = Distribution::of_individuals(counts(&[(Some(0), n), (Some(1), 3 * n)]), 4 * n);
            assert_eq!(value(&people, n, &[(Some(0), n), (Some(1), n)]), 4f64.ln());
        }
    }

    /// Every class of up to three rows of each of these values of an input.
    const INPUT: [(Option<u32>, u64); 3] = [(None, 8), (Some(0), 6), (Some(1), 20)];

    fn classes() -> impl Iterator<Item = [u64; 3]> {
        (0..64).map(|n| [n % 4, n / 4 % 4, n / 16])
    }

    fn of_values(class: [u64; 3]) -> Vec<(Option<u32>, u64)> {
        INPUT.iter().zip(class).map(|((value, _), count)| (*value, count)).filter(|(_, n)| *n > 0).collect()
    }

    #[test]
    fn two_classes_of_rows_that_hold_merge_and_are_released_as_promised() {
        let input = Distribution::of_rows(counts(&INPUT));
        let mut merged = 0;
        for delta in ["0.4", "0.6", "0.9", "1.3"] {
            let model = model(delta).unwrap();
            let class_holds = |class: [u64; 3]| holds(delta, &input, class.iter().sum(), &of_values(class));
            for (a, b) in classes().flat_map(|a| classes().map(move |b| (a, b))) {
                if class_holds(a) && class_holds(b) {
                    let both = [0, 1, 2].map(|j| a[j] + b[j]);
                    assert!(class_holds(both), "{delta} {a:?} {b:?}");
                    // All other rows may be suppressed.
                    let released = Distribution::of_rows(counts(&of_values(both)));
                    let among = value(&released, a.iter().sum(), &of_values(a));
                    let may = model.may_reach_among_released(Quantity::Real(among), Counted::Rows);
                    assert!(may, "{delta} {a:?} {b:?} {among}");
                    merged += 1;
                }
            }
        }
        assert!(merged > 500, "{merged}");
    }

    #[test]
    fn a_class_that_fails_or_shares_individuals_can_spoil_one_that_holds() {
        // Where a class may be suppressed, going up can suppress more: of 2 + 2 rows only 2 fail, of 4 all.
        let input = Distribution::of_rows(counts(&[(Some(0), 5), (Some(1), 5)]));
        assert!(holds("0.5", &input, 2, &[(Some(0), 1), (Some(1), 1)]));
        assert!(!holds("0.5", &input, 2, &[(Some(0), 2)]));
        assert!(!holds("0.5", &input, 4, &[(Some(0), 3), (Some(1), 1)]));
        // Two people with one value in each class have both in the merged one.
        let input = Distribution::of_individuals(counts(&[(Some(0), 11), (Some(1), 11)]), 20);
        assert!(holds("0.5", &input, 2, &[(Some(0), 1), (Some(1), 1)]));
        assert!(!holds("0.5", &input, 2, &[(Some(0), 2), (Some(1), 2)]));
    }

    #[test]
    fn released_rows_are_less_than_twice_delta_apart() {
        let model = model("0.25").unwrap();
        let may = |value, counted| model.may_reach_among_released(Quantity::Real(value), counted);
        assert_eq!([0.0, 0.49, 0.5].map(|value| may(value, Counted::Rows)), [true, true, false]);
        assert_eq!([0.0, 0.5, 9.0].map(|value| may(value, Counted::Individuals)), [true; 3]);
        for counted in [Counted::Rows, Counted::Individuals] {
            assert!([f64::INFINITY, -0.5, f64::NAN].iter().all(|value| !may(*value, counted)));
        }
    }

    #[test]
    fn delta_is_a_number_above_0() {
        for wrong in ["0", "-1"] {
            let refused = model(wrong).unwrap_err().to_string();
            assert!(
                refused.contains(&format!("delta: expected a number above 0, found {wrong}")),
                "{refused}"
            );
        }
        assert_eq!(model("0.5").unwrap().parameters(), [("delta", Decimal::parse("0.5").unwrap())]);
        assert_eq!(model("0.5").unwrap().required(), Decimal::parse("0.5").unwrap());
    }
}
