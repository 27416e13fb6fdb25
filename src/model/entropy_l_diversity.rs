//! `entropy_l_diversity`: the values of a sensitive column are spread in every class as evenly as l
//! values that are equally frequent.
//!
//! A class E holds iff -Σ p_j ln p_j >= ln l (Machanavajjhala et al. 2006), where p_j is the share
//! of the value j among the non-NULL sensitive values of the class, and at most |E| - ⌈l⌉ + 1 of its
//! individuals share any one value. The second condition follows from the first where each row is an
//! individual with one value. An individual with many rows counts once for each value, so p_j is
//! then a share of the pairs of an individual and a value; six values that nine of ten people all
//! have are evenly spread, and still each of these people is known to have each of them. NULL is not
//! a value: a class of NULLs has the diversity 0.
//!
//! # Contract
//! Takes a number l of at least 1, not necessarily whole, and one sensitive column. The quantity is
//! the largest l for which a class holds, `min(e^entropy, |E| + 1 - individuals with the most common
//! value)`, and a table reached the smallest. A class whose quantity lies below l by less than one
//! part in 10^12 holds, so that rounding decides no tie. The model implies classes of at least l, and
//! at least l different values. Two classes that hold merge into one that holds where rows are
//! counted; with individuals it promises nothing. It protects against homogeneity, and better than
//! `l_diversity` against inference from values that are much more frequent in a class than others.
//! It does not bound the share of a single value: at l = 2 nine tenths of a class may share one if
//! the others have a hundred values. It ignores that values can mean the same, how frequent they are in the
//! whole table, and what else an attacker knows. Where most of the table shares one value, no class
//! can be diverse in this sense.
//!
//! ```
//! use datafusion_kanon::extend::{Class, ClassModel, Decimal, ValueCount};
//! use datafusion_kanon::internals::model::entropy_l_diversity::EntropyLDiversity;
//! let model = EntropyLDiversity::new(Decimal::integer(2))?;
//! let class = |counts: [u64; 2]| {
//!     let sensitive = [0, 1].map(|j| ValueCount { value: Some(j), count: counts[j as usize] });
//!     model.holds(model.value(&Class::of_values(counts.iter().sum(), &sensitive)))
//! };
//! assert!(class([50, 50]));
//! assert!(!class([99, 1]));
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use super::l_diversity::LDiversity;
use super::{Class, ClassModel, Counted, Merge, ModelRow, Needs, Quantity, TOLERANCE, Worst};
use crate::decimal::{Decimal, ln_ratio, ratio};
use crate::doc::Doc;
use crate::error::Result;
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter};

/// The row of [`MODELS`](super::MODELS) for this model.
pub const ROW: ModelRow = ModelRow {
    doc: DOC,
    parameters: &[L],
    constants: &[],
    make: |settings| Ok(Box::new(EntropyLDiversity::new(settings.number("l")?)?)),
};

const L: Parameter = Parameter {
    name: "l",
    kind: Kind::AtLeastOne,
    absent: Absent::Refused,
    summary: "the number of equally frequent values that are as evenly spread",
};

const DOC: &Doc = &Doc {
    name: "entropy_l_diversity",
    summary: "the sensitive values of every class are spread as evenly as l equally frequent values",
    parameters: "l",
    example: "entropy_l_diversity(diagnosis, age, sex, zip)",
    paper: Some(papers::MACHANAVAJJHALA_2006),
};

/// The model that the [module](self) describes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EntropyLDiversity {
    l: Decimal,
}

impl EntropyLDiversity {
    /// Creates the model for this l.
    ///
    /// # Errors
    /// A policy error unless l is at least 1.
    pub fn new(l: Decimal) -> Result<Self> {
        L.check_number(l)?;
        Ok(Self { l })
    }

    /// Returns the least quantity that holds.
    fn least(&self) -> f64 {
        self.l.to_f64() * (1.0 - TOLERANCE)
    }
}

impl ClassModel for EntropyLDiversity {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn needs(&self) -> Needs {
        Needs::SensitiveCounts
    }

    fn merge(&self, counted: Counted) -> Merge {
        match counted {
            // Entropy is concave: that of a mixture is at least the mean of its parts'.
            Counted::Rows => Merge::Both,
            Counted::Individuals => Merge::None,
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    fn min_size(&self) -> u64 {
        self.least().ceil() as u64
    }

    fn value(&self, class: &Class<'_>) -> Quantity {
        let values = class.sensitive.iter().filter(|count| count.value.is_some());
        let mut counts: Vec<u64> = values.map(|count| count.count).collect();
        // Sorted, so that the sum has the same bits however the values are numbered.
        counts.sort_unstable();
        let (Some(least), Some(most)) = (counts.first(), counts.last()) else { return Quantity::Real(0.0) };
        let others = ratio(u128::from((class.size + 1).saturating_sub(*most)), 1);
        let even = ratio(counts.len() as u128, 1);
        if least == most {
            return Quantity::Real(even.min(others));
        }
        let all: u128 = counts.iter().map(|count| u128::from(*count)).sum();
        let terms = counts.iter().map(|count| {
            let count = u128::from(*count);
            -ratio(count, all) * ln_ratio(count, all)
        });
        let entropy: f64 = terms.sum();
        Quantity::Real(entropy.exp().min(even).min(others))
    }

    fn bounded_by_rows(&self) -> Option<Box<dyn ClassModel>> {
        // The quantity is no more than the number of values, nor than |E| + 1 - the individuals
        // with one value.
        LDiversity::new(self.min_size()).ok().map(|model| Box::new(model) as Box<dyn ClassModel>)
    }

    fn worst(&self) -> Worst {
        Worst::Least
    }

    fn holds(&self, value: Quantity) -> bool {
        value.to_f64() >= self.least()
    }

    fn parameters(&self) -> Vec<(&'static str, Decimal)> {
        vec![("l", self.l)]
    }

    fn required(&self) -> Decimal {
        self.l
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ValueCount, make};

    fn value(size: u64, counts: &[(Option<u32>, u64)]) -> f64 {
        let counts = counts.iter().map(|(value, count)| ValueCount { value: *value, count: *count });
        let sensitive: Vec<_> = counts.collect();
        EntropyLDiversity::new(Decimal::integer(2))
            .unwrap()
            .value(&Class::of_values(size, &sensitive))
            .to_f64()
    }

    fn model(l: &str) -> Result<Box<dyn ClassModel>> {
        make("entropy_l_diversity", &[("l".into(), Decimal::parse(l).unwrap().into())])
    }

    #[test]
    fn values_by_hand() {
        assert_eq!([value(0, &[]), value(9, &[(None, 9)])], [0.0, 0.0]);
        assert_eq!(value(12, &[(None, 1), (Some(3), 11)]), 1.0);
        assert_eq!(value(12, &[(None, 3), (Some(0), 3), (Some(1), 3), (Some(7), 3)]), 3.0);
        // 1/2, 1/4, 1/4: 3/2 bits.
        let spread = value(8, &[(Some(0), 2), (Some(1), 4), (Some(2), 2)]);
        assert!((spread - 2f64.powf(1.5)).abs() < 1e-14, "{spread}");
        assert_eq!(spread, value(8, &[(Some(5), 4), (Some(6), 2), (Some(7), 2)]), "the order of values");
    }

    #[test]
    fn individuals_who_share_a_value_bound_it() {
        // Nine of ten people have each of six values; the tenth has one.
        let mut counts: Vec<_> = (0..6).map(|value| (Some(value), 9)).collect();
        assert_eq!(value(10, &counts), 2.0);
        counts[0].1 = 10;
        assert_eq!(value(10, &counts), 1.0);
    }

    #[test]
    fn ties_hold_and_less_does_not() {
        let even = |values: u32| (0..values).map(|value| (Some(value), 7)).collect::<Vec<_>>();
        for l in 1..200u32 {
            let at = |model: &dyn ClassModel| model.holds(Quantity::Real(value(7 * u64::from(l), &even(l))));
            assert!(at(&*model(&l.to_string()).unwrap()), "{l}");
            assert!(!at(&*model(&format!("{l}.0000001")).unwrap()), "{l}");
        }
        let holds = |l: &str, x: f64| model(l).unwrap().holds(Quantity::Real(x));
        assert_eq!([holds("2.5", 2.5), holds("2.5", 2.499_999_9), holds("1", 0.0)], [true, false, false]);
    }

    #[test]
    fn classes_below_l_cannot_hold() {
        let sizes = ["1", "2", "2.5", "3", "3.0000000000001"].map(|l| model(l).unwrap().min_size());
        assert_eq!(sizes, [1, 2, 3, 3, 3]);
    }

    #[test]
    fn l_is_a_number_of_at_least_one() {
        for wrong in ["0", "-2", "0.999"] {
            let refused = model(wrong).unwrap_err().to_string();
            assert!(
                refused.contains(&format!("expected a number of at least 1, found {wrong}")),
                "{refused}"
            );
        }
        assert_eq!(model("2.5").unwrap().parameters(), [("l", Decimal::parse("2.5").unwrap())]);
    }
}
