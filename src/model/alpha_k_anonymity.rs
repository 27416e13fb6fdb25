//! `alpha_k_anonymity`: no value of a sensitive column is held by more than a share alpha of a class.
//!
//! A class E holds iff c_j <= alpha |E| for every non-NULL sensitive value j, where c_j of its
//! individuals have the value (Wong et al. 2006, who demand it beside k-anonymity).
//!
//! # Contract
//! Takes a number alpha from 0 to 1 and one sensitive column. The quantity is the greatest share of
//! individuals of a class that have the same value, 0 where all values are NULL, and a table
//! reached the greatest of its classes. Whole numbers decide, so no rounding turns a tie. The model
//! implies no class size, because a NULL is never judged: require k beside it. Where rows are
//! counted, two classes that hold merge into one that holds; with individuals that is not promised,
//! because an individual in both classes counts once.
//!
//! It bounds what an attacker believes who finds a person's class and knows nothing else: no value
//! is more likely than alpha, so that no class gives its value away (homogeneity). It ignores how
//! frequent a value is in the whole table (where one in a thousand has HIV, half of a class may
//! have it at alpha = 0.5: skewness), that values can mean the same, and what else an attacker
//! knows. One alpha bounds all values, rare and frequent ones: where most of the table shares a
//! value, a small alpha suppresses most of it.
//!
//! ```
//! use datafusion_kanon::extend::{Class, ClassModel, Decimal, ValueCount};
//! use datafusion_kanon::internals::model::alpha_k_anonymity::AlphaKAnonymity;
//! let model = AlphaKAnonymity::new(Decimal::parse("0.6")?)?;
//! let class = |counts: [u64; 2]| {
//!     let sensitive = [0, 1].map(|j| ValueCount { value: Some(j), count: counts[j as usize] });
//!     model.holds(model.value(&Class::of_values(counts.iter().sum(), &sensitive)))
//! };
//! assert!(class([3, 2]));
//! assert!(!class([4, 2]));
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
    parameters: &[ALPHA],
    constants: &[],
    make: |settings| Ok(Box::new(AlphaKAnonymity::new(settings.number("alpha")?)?)),
};

const ALPHA: Parameter = Parameter {
    name: "alpha",
    kind: Kind::Share,
    absent: Absent::Refused,
    summary: "the greatest share of a class that may have the same value",
};

const DOC: &Doc = &Doc {
    name: "alpha_k_anonymity",
    summary: "in every class at most a share alpha of the individuals have the same sensitive value",
    parameters: "alpha",
    example: "alpha_k_anonymity(diagnosis, age, sex, zip)",
    paper: Some(papers::WONG_2006),
};

/// The model that the [module](self) describes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AlphaKAnonymity {
    alpha: Decimal,
}

impl AlphaKAnonymity {
    /// Creates the model for this alpha.
    ///
    /// # Errors
    /// A policy error unless alpha is from 0 to 1.
    pub fn new(alpha: Decimal) -> Result<Self> {
        ALPHA.check_number(alpha)?;
        Ok(Self { alpha })
    }
}

impl ClassModel for AlphaKAnonymity {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn needs(&self) -> Needs {
        Needs::SensitiveCounts
    }

    fn merge(&self, counted: Counted) -> Merge {
        match counted {
            // The share of a value in a merged class lies between its shares in the parts.
            Counted::Rows => Merge::Both,
            Counted::Individuals => Merge::None,
        }
    }

    fn min_size(&self) -> u64 {
        0
    }

    fn value(&self, class: &Class<'_>) -> Quantity {
        let values = class.sensitive.iter().filter(|count| count.value.is_some());
        let most = values.map(|count| count.count).max().unwrap_or(0);
        Quantity::Ratio(most.into(), class.size.max(1).into())
    }

    fn judges_each_value(&self) -> bool {
        true
    }

    fn reads_extremes_only(&self) -> bool {
        true
    }

    fn worst(&self) -> Worst {
        Worst::Greatest
    }

    fn holds(&self, value: Quantity) -> bool {
        value.is_at_most(self.alpha)
    }

    fn parameters(&self) -> Vec<(&'static str, Decimal)> {
        vec![("alpha", self.alpha)]
    }

    fn required(&self) -> Decimal {
        self.alpha
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ValueCount, make};

    fn model(alpha: &str) -> Result<Box<dyn ClassModel>> {
        make("alpha_k_anonymity", &[("alpha".into(), Decimal::parse(alpha).unwrap().into())])
    }

    fn holds(alpha: &str, size: u64, counts: &[(Option<u32>, u64)]) -> bool {
        let counts = counts.iter().map(|(value, count)| ValueCount { value: *value, count: *count });
        let (model, sensitive) = (model(alpha).unwrap(), counts.collect::<Vec<_>>());
        model.holds(model.value(&Class::of_values(size, &sensitive)))
    }

    #[test]
    fn shares_by_hand() {
        // Three of nine: a third, exactly.
        let thirds = [(Some(0), 3), (Some(1), 3), (Some(2), 3)];
        assert!(holds("0.333333333333333334", 9, &thirds) && !holds("0.333333333333333333", 9, &thirds));
        // A missing value belongs to the class and is not judged.
        let missing = [(None, 8), (Some(1), 2)];
        assert!(holds("0.2", 10, &missing) && !holds("0.199999999999999999", 10, &missing));
        assert!(holds("0", 5, &[(None, 5)]) && !holds("0", 5, &[(None, 4), (Some(1), 1)]));
        // Two people who both have two values.
        assert!(
            holds("1", 2, &[(Some(0), 2), (Some(1), 2)]) && !holds("0.99", 2, &[(Some(0), 2), (Some(1), 2)])
        );
        assert!(holds("0", 0, &[]));
    }

    #[test]
    fn large_counts_do_not_overflow() {
        let n = 1u64 << 62;
        assert!(holds("0.5", 2 * n, &[(Some(0), n), (Some(1), n)]));
        assert!(!holds("0.5", 2 * n, &[(Some(0), n + 1), (Some(1), n - 1)]));
        assert!(!holds("0.499999999999999999", 2 * n, &[(Some(0), n), (Some(1), n)]));
    }

    #[test]
    fn alpha_is_a_number_from_0_to_1() {
        for wrong in ["-0.1", "1.01"] {
            let refused = model(wrong).unwrap_err().to_string();
            assert!(refused.contains(&format!("expected a number from 0 to 1, found {wrong}")), "{refused}");
        }
        assert_eq!(model("0.5").unwrap().parameters(), [("alpha", Decimal::parse("0.5").unwrap())]);
    }
}
