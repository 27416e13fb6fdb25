//! `recursive_l_diversity`: the most frequent sensitive value of every class is less than c times as frequent as all
//! values but the l - 1 most frequent ones together.
//!
//! A class E whose d non-NULL sensitive values have the counts r_1 >= r_2 >= ... >= r_d holds iff d >= l and r_1 < c
//! (r_l + ... + r_d) (recursive (c, l)-diversity, Machanavajjhala et al. 2006), and if at most |E| - l + 1 of its
//! individuals share any one value. The last condition follows from the first where each row is an individual with one
//! value. An individual with many rows counts once for each value, and two people who both have flu and HIV are not
//! diverse. NULL is not a value: a class of NULLs never holds.
//!
//! Deviations from the paper: it leaves out individuals with many rows, and takes l = 1 as always satisfied; here the
//! formula decides, but for a value that all individuals of a class share. With l = 1 it counts as all of the class, 1:
//! by the formula alone, other values of the same individuals would make a class in which everybody has the flu pass a
//! c below 1.
//!
//! # Contract
//! Takes a number c above 0, an integer l of at least 1 and one sensitive column. The quantity is the infimum of all c
//! for which a class holds, r_1 / (r_l + ... + r_d), with l = 1 exactly 1 where all individuals share a value, infinite
//! where none does; a table reached the greatest, and c itself is not enough. Whole numbers decide, so no rounding turns a tie. The model implies classes of at least l.
//! Where rows are counted, two classes that hold merge into one that holds; with individuals it promises nothing,
//! because an individual in both classes counts once. It promises nothing either for a class that holds and one that
//! fails.
//!
//! It protects against homogeneity and against values that are much more frequent in a class than all others: where l
//! is at least 2 and each row is an individual, no value is more likely than c / (c + 1). An attacker who rules out one
//! value for a person still faces a class that is diverse with the same c and l - 1. Rare values are not protected: one
//! in a thousand may have HIV in the whole table, and c / (c + 1) of a class (skewness). It ignores that values can
//! mean the same. Where most of the table shares a value, a small c suppresses most of it.
//!
//! ```
//! use datafusion_kanon::extend::{ClassModel, Decimal, ValueCount};
//! use datafusion_kanon::internals::model::{Class, recursive_l_diversity::RecursiveLDiversity};
//! let model = RecursiveLDiversity::new(Decimal::integer(2), 3)?;
//! let class = |counts: [u64; 4]| {
//!     let sensitive = [0, 1, 2, 3].map(|j| ValueCount { value: Some(j), count: counts[j as usize] });
//!     model.holds(model.value(&Class::of_values(counts.iter().sum(), &sensitive)))
//! };
//! assert!(class([5, 4, 2, 1]));
//! assert!(!class([6, 4, 2, 1]), "6 is not less than 2 (2 + 1)");
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use std::cmp::{Ordering, Reverse};

use super::{Class, ClassModel, Counted, Merge, ModelRow, Needs, Quantity, Worst};
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::error::Result;
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter};

/// The row of [`MODELS`](super::MODELS) for this model.
pub const ROW: ModelRow = ModelRow {
    doc: DOC,
    parameters: &[C, L],
    constants: &[L],
    make: |settings| Ok(Box::new(RecursiveLDiversity::new(settings.number("c")?, settings.count("l")?)?)),
};

const C: Parameter = Parameter {
    name: "c",
    kind: Kind::Positive,
    absent: Absent::Refused,
    summary: "the most frequent value occurs less than c times as often as the others together",
};

const L: Parameter = Parameter {
    name: "l",
    kind: Kind::Count,
    absent: Absent::Refused,
    summary: "the others are all values but the l - 1 most frequent ones",
};

const DOC: &Doc = &Doc {
    name: "recursive_l_diversity",
    summary: "in every class the most frequent sensitive value occurs less than c times as often as all but the l - 1 most frequent \
              ones together",
    parameters: "c, l",
    example: "recursive_l_diversity(2, diagnosis, age, sex, zip)",
    paper: Some(papers::MACHANAVAJJHALA_2006),
};

/// The model that the [module](self) describes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecursiveLDiversity {
    c: Decimal,
    l: u64,
}

impl RecursiveLDiversity {
    /// Creates the model for this c and l.
    ///
    /// # Errors
    /// A policy error unless c is above 0 and l from 1 to `i64::MAX`.
    pub fn new(c: Decimal, l: u64) -> Result<Self> {
        C.check_number(c)?;
        L.check_count(l)?;
        Ok(Self { c, l })
    }
}

impl ClassModel for RecursiveLDiversity {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn needs(&self) -> Needs {
        Needs::SensitiveCounts
    }

    fn merge(&self, counted: Counted) -> Merge {
        match counted {
            // What is left without the l - 1 most frequent values of a merged class is at least what is left of both parts,
            // since the same values may be left out of each; and the most frequent value has at most both parts' most.
            Counted::Rows => Merge::Both,
            Counted::Individuals => Merge::None,
        }
    }

    fn min_size(&self) -> u64 {
        self.l
    }

    fn value(&self, class: &Class<'_>) -> Quantity {
        let values = class.sensitive.iter().filter(|count| count.value.is_some());
        let mut counts: Vec<u64> = values.map(|count| count.count).collect();
        counts.sort_unstable_by_key(|count| Reverse(*count));
        let most = counts.first().copied().unwrap_or(0);
        let before = usize::try_from(self.l - 1).unwrap_or(usize::MAX);
        let others: u128 = counts.iter().skip(before).map(|count| u128::from(*count)).sum();
        if others == 0 || most > class.size.saturating_sub(self.l - 1) {
            return Quantity::Real(f64::INFINITY);
        }
        // With l = 1 all may share a value.
        let others = if most == class.size { others.min(most.into()) } else { others };
        Quantity::Ratio(most.into(), others)
    }

    fn worst(&self) -> Worst {
        Worst::Greatest
    }

    fn holds(&self, value: Quantity) -> bool {
        value.compare(1, self.c) == Some(Ordering::Less)
    }

    fn parameters(&self) -> Vec<(&'static str, Decimal)> {
        // The constructor bounds l.
        vec![("c", self.c), ("l", Decimal::integer(i64::try_from(self.l).unwrap_or(i64::MAX)))]
    }

    fn required(&self) -> Decimal {
        self.c
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::model::{ValueCount, make};

    fn model(c: &str, l: &str) -> Result<Box<dyn ClassModel>> {
        let setting = |text| Decimal::parse(text).unwrap().into();
        make("recursive_l_diversity", &[("c".into(), setting(c)), ("l".into(), setting(l))])
    }

    fn holds(c: &str, l: u64, size: u64, counts: &[(Option<u32>, u64)]) -> bool {
        let counts = counts.iter().map(|(value, count)| ValueCount { value: *value, count: *count });
        let (model, sensitive) = (model(c, &l.to_string()).unwrap(), counts.collect::<Vec<_>>());
        model.holds(model.value(&Class::of_values(size, &sensitive)))
    }

    /// A class of rows with these counts.
    fn rows_hold(c: &str, l: u64, counts: &[u64]) -> bool {
        let values = (0..).map(Some).zip(counts.iter().copied()).filter(|(_, count)| *count > 0);
        holds(c, l, counts.iter().sum(), &values.collect::<Vec<_>>())
    }

    /// A class of these pairs of an individual and a value.
    fn individuals_hold(c: &str, l: u64, pairs: &[(u32, u32)]) -> bool {
        let pairs: BTreeSet<_> = pairs.iter().collect();
        let size = pairs.iter().map(|(who, _)| who).collect::<BTreeSet<_>>().len();
        let values: BTreeSet<u32> = pairs.iter().map(|(_, value)| *value).collect();
        let counts = values
            .into_iter()
            .map(|value| (Some(value), pairs.iter().filter(|(_, other)| *other == value).count() as u64));
        holds(c, l, size as u64, &counts.collect::<Vec<_>>())
    }

    #[test]
    fn ties_fail_and_order_does_not_matter() {
        // Without the two most frequent values 2 + 1 are left.
        for counts in [[6, 4, 2, 1], [1, 2, 4, 6], [4, 6, 1, 2]] {
            assert!(!rows_hold("2", 3, &counts) && rows_hold("2.00000000000000001", 3, &counts));
            assert!(!rows_hold("0.857142857142857142", 2, &counts), "6 / 7 is more");
            assert!(rows_hold("0.857142857142857143", 2, &counts));
            assert!(!rows_hold("6", 4, &counts) && rows_hold("6.1", 4, &counts));
            assert!(!rows_hold("1000000", 5, &counts), "fewer than five values");
        }
        // As an ordinary float, 0.1 * 3 is above 0.3.
        assert!(!rows_hold("0.1", 1, &[1; 10]) && !rows_hold("0.3", 1, &[3, 3, 3, 1]));
        assert!(rows_hold("0.300000000000000001", 1, &[3, 3, 3, 1]));
    }

    #[test]
    fn nulls_are_no_values_and_no_class_holds_without_values() {
        assert!(!holds("3", 2, 14, &[(None, 10), (Some(0), 3), (Some(1), 1)]));
        assert!(holds("3.5", 2, 14, &[(None, 10), (Some(0), 3), (Some(1), 1)]));
        for l in [1, 2] {
            assert!(!holds("9", l, 4, &[(None, 4)]) && !holds("9", l, 0, &[]));
        }
        assert!(
            holds("9", 1, 5, &[(None, 4), (Some(0), 1)]) && !holds("9", 2, 5, &[(None, 4), (Some(0), 1)])
        );
    }

    #[test]
    fn a_value_of_too_many_individuals_is_refused() {
        // Two people who both have both values; three of whom two have each.
        assert!(!individuals_hold("9", 2, &[(1, 0), (1, 1), (2, 0), (2, 1)]));
        assert!(individuals_hold("1.1", 2, &[(1, 0), (2, 0), (2, 1), (3, 1)]));
        // Nine of ten people have each of six values: l = 2 allows nine, l = 3 only eight.
        let values: Vec<_> = (0..6).map(|value| (Some(value), 9)).collect();
        assert!(holds("0.3", 2, 10, &values) && !holds("9", 3, 10, &values));
        // A value that all share is no less than all of the class.
        let shared = [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2)];
        assert!(!individuals_hold("1", 1, &shared) && individuals_hold("1.01", 1, &shared));
        let alone = [(1, 0), (1, 1)];
        assert!(!individuals_hold("1", 1, &alone) && individuals_hold("1.01", 1, &alone));
        assert!(individuals_hold("0.5", 1, &[(1, 0), (2, 1), (3, 2)]));
    }

    #[test]
    fn large_counts_do_not_overflow() {
        for n in [1u64 << 40, 1 << 61] {
            assert!(!rows_hold("1", 2, &[n, n]) && rows_hold("1", 2, &[n, n, 1]));
            assert!(rows_hold("1.00000000000000001", 2, &[n, n]));
            assert!(!rows_hold("1", 2, &[n + 1, n]) && !rows_hold("0.999999999999999999", 3, &[n, n, n]));
        }
        assert!(!rows_hold("1", 100_000_000_000_000_000, &[7]));
    }

    #[test]
    fn classes_of_rows_that_hold_merge_into_one_that_holds() {
        let classes = || (0..4u64.pow(3)).map(|n| [n % 4, n / 4 % 4, n / 16]);
        let mut merged = 0;
        for (c, l) in [("0.4", 1), ("0.7", 1), ("1", 2), ("1.5", 2), ("2", 2), ("3", 3), ("2", 3)] {
            for (a, b) in classes().flat_map(|a| classes().map(move |b| (a, b))) {
                if rows_hold(c, l, &a) && rows_hold(c, l, &b) {
                    assert!(rows_hold(c, l, &[0, 1, 2].map(|j| a[j] + b[j])), "{c} {l} {a:?} {b:?}");
                    merged += 1;
                }
            }
        }
        assert!(merged > 5_000, "{merged}");
    }

    #[test]
    fn a_class_that_fails_or_shares_individuals_can_spoil_one_that_holds() {
        // Where a class may be suppressed, going up can suppress more.
        assert!(rows_hold("2", 2, &[1, 1]) && !rows_hold("2", 2, &[1, 0]) && !rows_hold("2", 2, &[2, 1]));
        // Two people with one value in each class have both in the merged one.
        let (a, b) = ([(1, 0), (2, 1)], [(1, 1), (2, 0)]);
        assert!(individuals_hold("2", 2, &a) && individuals_hold("2", 2, &b));
        assert!(!individuals_hold("2", 2, &[a, b].concat()));
    }

    #[test]
    fn c_is_above_0_and_l_a_count() {
        let refused = |c: &str, l: &str| model(c, l).unwrap_err().to_string();
        assert!(refused("0", "2").contains("c: expected a number above 0, found 0"), "{}", refused("0", "2"));
        for wrong in ["0", "2.5"] {
            let why = refused("2", wrong);
            assert!(why.contains(&format!("l: expected an integer of at least 1, found {wrong}")), "{why}");
        }
        let right = model("0.5", "3").unwrap();
        assert_eq!(right.parameters(), [("c", Decimal::parse("0.5").unwrap()), ("l", Decimal::integer(3))]);
        assert_eq!((right.min_size(), right.required()), (3, Decimal::parse("0.5").unwrap()));
    }
}
