//! `t_closeness_hierarchical`: the sensitive values of every class are distributed nearly as in the
//! whole input, where values that lie close together in a hierarchy differ less.
//!
//! A class E holds iff the earth mover's distance between the shares p_j of the values in the class
//! and P_j in the whole input, suppressed rows included, is at most t, where it costs h/H to move
//! from one value to another whose lowest common label stands at level h of H (Li et al. 2007, with
//! hierarchical distances): every label of level h costs h/H times what its children have too much
//! and other children of it lack. NULL is a value like any other, below the top alone. An
//! individual with many rows counts once for each of its values, in the class and in the input, so
//! shares are then shares of the pairs of an individual and a value; and no value may be shared by
//! all individuals of a class of two or more.
//!
//! # Contract
//! Takes a number t from 0 to 1 and one sensitive column with a hierarchy. The quantity is the
//! distance of a class, from 0 to 1; it is infinite for a class without individuals, and where all
//! individuals of a class of two or more share a value. A table reaches the greatest distance of
//! its classes. Whole numbers decide, so no rounding turns a tie, and no count overflows. The model
//! implies no class size. Where rows are counted, two classes that hold merge into one that holds;
//! with individuals that is not promised.
//!
//! It limits what an attacker who finds a person's class learns beyond the distribution of the
//! whole input, and unlike `t_closeness` it sees that gastritis and gastric ulcer are both of the
//! stomach (similarity): moving within a label costs less than moving to another. So does a class
//! in which all share one value, if its relatives are frequent; require `l_diversity` beside it. It
//! is as good as the hierarchy. It does not hide the distribution of the input itself, and ignores
//! what else an attacker knows.
//!
//! ```
//! use datafusion_kanon::extend::{ClassModel, Decimal, Distribution, ValueCount};
//! use datafusion_kanon::internals::model::{Class, t_closeness_hierarchical::TClosenessHierarchical};
//! let people = |of: &[u32]| of.iter().map(|j| ValueCount { value: Some(*j), count: 1 }).collect::<Vec<_>>();
//! // Four diseases, two of the stomach (label 0) and two of the lungs (label 1), then all.
//! let input = Distribution::of_rows(people(&[0, 1, 2, 3])).with_levels(vec![vec![0, 0, 1, 1], vec![0; 4]]);
//! let model = TClosenessHierarchical::new(Decimal::parse("0.25")?)?;
//! let holds = |of: &[u32]| model.holds(model.value(&Class { size: 2, sensitive: &people(of), input: &input, population: None }));
//! assert!(holds(&[0, 2]));
//! assert!(!holds(&[0, 1]));
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use super::excess::{Excess, may_be_among_released};
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
    constants: &[super::HIERARCHY],
    make: |settings| Ok(Box::new(TClosenessHierarchical::new(settings.number("t")?)?)),
};

const T: Parameter = Parameter {
    name: "t",
    kind: Kind::Share,
    absent: Absent::Refused,
    summary: "the greatest distance of a class from the whole input",
};

const DOC: &Doc = &Doc {
    name: "t_closeness_hierarchical",
    summary: "the sensitive values of every class are distributed as in the whole table, but for a distance of t in their hierarchy",
    parameters: "t",
    example: "t_closeness_hierarchical('diseases', diagnosis, age, sex, zip)",
    paper: Some(papers::LI_2007),
};

/// The model that the [module](self) describes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TClosenessHierarchical {
    t: Decimal,
}

impl TClosenessHierarchical {
    /// Creates the model for this t.
    ///
    /// # Errors
    /// A policy error unless t is from 0 to 1.
    pub fn new(t: Decimal) -> Result<Self> {
        T.check_number(t)?;
        Ok(Self { t })
    }
}

/// What the values below a label have too much and what they lack, that was not moved below it.
#[derive(Clone, Copy, Default)]
struct Unmoved {
    above: u128,
    below: u128,
}

/// Returns the distance exactly; `None` for a class that must not hold.
fn distance(class: &Class<'_>) -> Option<(u128, u128)> {
    let Excess { of_values, unit } = Excess::of(class)?;
    let levels = class.input.levels();
    let is_of_values = |labels: &Vec<u32>| {
        labels.len() == of_values.len() && labels.iter().all(|label| (*label as usize) < of_values.len())
    };
    if levels.is_empty() || !levels.iter().all(is_of_values) {
        return None;
    }
    let net = |excess: &i128| Unmoved {
        above: excess.max(&0).unsigned_abs(),
        below: excess.min(&0).unsigned_abs(),
    };
    // The label of each value one level below, and what is unmoved below each such label.
    let mut finer: Vec<usize> = (0..of_values.len()).collect();
    let mut unmoved: Vec<Unmoved> = of_values.iter().map(net).collect();
    let mut distance = 0u128;
    for (labels, height) in levels.iter().zip(1u128..) {
        let mut of_labels = vec![Unmoved::default(); of_values.len()];
        for (value, label) in labels.iter().enumerate() {
            // The first value of a finer label brings all that is unmoved below it.
            let below = std::mem::take(&mut unmoved[finer[value]]);
            let sum = &mut of_labels[*label as usize];
            sum.above = sum.above.checked_add(below.above)?;
            sum.below = sum.below.checked_add(below.below)?;
        }
        for label in &mut of_labels {
            let moved = label.above.min(label.below);
            distance = distance.checked_add(moved.checked_mul(height)?)?;
            (label.above, label.below) = (label.above - moved, label.below - moved);
        }
        finer = labels.iter().map(|label| *label as usize).collect();
        unmoved = of_labels;
    }
    Some((distance, unit.checked_mul(levels.len() as u128)?))
}

impl ClassModel for TClosenessHierarchical {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn needs(&self) -> Needs {
        Needs::Hierarchy
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

    fn holds(t: &str, input: &Distribution, size: u64, class: &[(Option<u32>, u64)]) -> bool {
        let given = [("t".into(), Decimal::parse(t).unwrap().into())];
        let (model, sensitive) = (make("t_closeness_hierarchical", &given).unwrap(), counts(class));
        model.holds(model.value(&Class { size, sensitive: &sensitive, input, population: None }))
    }

    /// The patients of Li et al. 2007, `n` times: gastric ulcer, two gastritis, two stomach cancer,
    /// flu, two bronchitis, pneumonia; three diseases of the stomach and three of the lungs.
    fn diseases(n: u64) -> Distribution {
        let of = [(Some(0), 1), (Some(1), 2), (Some(2), 2), (Some(3), 1), (Some(4), 2), (Some(5), 1)];
        let input = Distribution::of_rows(counts(&of.map(|(value, count)| (value, n * count))));
        input.with_levels(vec![vec![0, 0, 0, 1, 1, 1], vec![0; 6]])
    }

    #[test]
    fn diseases_by_hand() {
        for n in [1, 1 << 40] {
            let (input, class) = (diseases(n), |of: [u32; 3]| of.map(|j| (Some(j), n)));
            // The stomach alone: 4/9 of the class belong to the lungs.
            let stomach = ["0.444444444444444445", "0.444444444444444444"];
            assert_eq!(stomach.map(|t| holds(t, &input, 3 * n, &class([0, 1, 2]))), [true, false], "{n}");
            // Stomach cancer, bronchitis, pneumonia: 1/9 moves within the stomach and 1/9 within
            // the lungs at half the cost, 2/9 from the lungs to the stomach.
            let spread = ["0.333333333333333334", "0.333333333333333333"];
            assert_eq!(spread.map(|t| holds(t, &input, 3 * n, &class([2, 4, 5]))), [true, false], "{n}");
        }
    }

    #[test]
    fn one_level_is_the_equal_distance() {
        let input = Distribution::of_rows(counts(&[(None, 2), (Some(0), 2), (Some(1), 4), (Some(5), 2)]));
        let input = input.with_levels(vec![vec![0; 4]]);
        let class = [(None, 1), (Some(0), 1)];
        assert!(holds("0.6", &input, 2, &class) && !holds("0.599999999999999999", &input, 2, &class));
    }

    #[test]
    fn without_its_hierarchy_or_its_input_no_class_holds() {
        let input = Distribution::of_rows(counts(&[(Some(0), 9), (Some(1), 9)]));
        assert!(!holds("1", &input, 2, &[(Some(0), 1), (Some(1), 1)]));
        let levels = || vec![vec![0; 2]];
        let known = input.clone().with_levels(levels());
        assert!(holds("0", &known, 2, &[(Some(0), 1), (Some(1), 1)]));
        assert!(!holds("1", &known, 1, &[(Some(5), 1)]) && !holds("1", &known, 0, &[]));
        let people =
            Distribution::of_individuals(counts(&[(Some(0), 9), (Some(1), 9)]), 18).with_levels(levels());
        assert!(!holds("1", &people, 2, &[(Some(0), 2), (Some(1), 2)]));
    }

    #[test]
    fn a_class_that_holds_can_fail_with_one_that_fails() {
        let input = diseases(4);
        assert!(holds("0.2", &input, 6, &[(Some(0), 1), (Some(1), 2), (Some(4), 2), (Some(5), 1)]));
        let fails = [(Some(3), 4)];
        assert!(!holds("0.2", &input, 4, &fails));
        let merged = [(Some(0), 1), (Some(1), 2), (Some(3), 4), (Some(4), 2), (Some(5), 1)];
        assert!(!holds("0.2", &input, 10, &merged));
    }
}
