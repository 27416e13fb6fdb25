//! `l_diversity`: every class has at least l different values of a sensitive column.
//!
//! A class E holds iff it has at least l distinct non-NULL sensitive values (distinct l-diversity,
//! Machanavajjhala et al. 2006) and at most |E| - l + 1 of its individuals share any one value. The
//! second condition follows from the first where each row is an individual with one value. An
//! individual with many rows can have many values, and two individuals who both have flu and HIV
//! are not 2-diverse. NULL is not a value: a class of NULLs has diversity 0.
//!
//! # Contract
//! Takes an integer l of at least 1 and one sensitive column. The quantity is the largest l for
//! which a class holds, `min(distinct values, |E| + 1 - individuals with the most common value)`,
//! and a table reached the smallest. The model implies classes of at least l. It survives merging
//! with any class where rows are counted; with individuals it promises nothing. It protects against
//! homogeneity: no class gives a value away for certain. It ignores how often the values occur (99
//! of 100 rows may share one), that values can mean the same (gastritis, stomach ulcer), and what
//! else an attacker knows.
//!
//! ```
//! use datafusion_kanon::extend::{Class, ClassModel, ValueCount};
//! use datafusion_kanon::internals::model::l_diversity::LDiversity;
//! let model = LDiversity::new(2)?;
//! let class = |values: &[Option<u32>]| {
//!     let sensitive: Vec<_> = values.iter().map(|v| ValueCount { value: *v, count: 1 }).collect();
//!     model.holds(model.value(&Class::of_values(values.len() as u64, &sensitive)))
//! };
//! assert!(class(&[Some(0), Some(7)]));
//! assert!(!class(&[None, Some(7)]));
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
    parameters: &[L],
    constants: &[],
    make: |settings| Ok(Box::new(LDiversity::new(settings.count("l")?)?)),
};

const L: Parameter = Parameter {
    name: "l",
    kind: Kind::Count,
    absent: Absent::Refused,
    summary: "the least number of different values of a class",
};

const DOC: &Doc = &Doc {
    name: "l_diversity",
    summary: "every class has at least l different sensitive values",
    parameters: "l",
    example: "l_diversity(diagnosis, age, sex, zip)",
    paper: Some(papers::MACHANAVAJJHALA_2006),
};

/// The model that the [module](self) describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LDiversity {
    l: u64,
}

impl LDiversity {
    /// Creates the model for this l.
    ///
    /// # Errors
    /// A policy error unless l is from 1 to `i64::MAX`.
    pub fn new(l: u64) -> Result<Self> {
        L.check_count(l)?;
        Ok(Self { l })
    }
}

impl ClassModel for LDiversity {
    fn doc(&self) -> &'static Doc {
        DOC
    }

    fn needs(&self) -> Needs {
        Needs::SensitiveCounts
    }

    fn merge(&self, counted: Counted) -> Merge {
        match counted {
            Counted::Rows => Merge::Any,
            // Two individuals with one value each may merge into two individuals who both have both
            // values.
            Counted::Individuals => Merge::None,
        }
    }

    fn min_size(&self) -> u64 {
        self.l
    }

    fn value(&self, class: &Class<'_>) -> Quantity {
        let values = || class.sensitive.iter().filter(|count| count.value.is_some());
        let most = values().map(|count| count.count).max().unwrap_or(0);
        Quantity::Count((values().count() as u64).min((class.size + 1).saturating_sub(most)))
    }

    fn bounded_by_rows(&self) -> Option<Box<dyn ClassModel>> {
        // Without the most common value of its rows a class has at least as many rows as
        // individuals without that of its individuals.
        Some(Box::new(*self))
    }

    fn reads_extremes_only(&self) -> bool {
        true
    }

    fn worst(&self) -> Worst {
        Worst::Least
    }

    fn holds(&self, value: Quantity) -> bool {
        matches!(value, Quantity::Count(distinct) if distinct >= self.l)
    }

    fn parameters(&self) -> Vec<(&'static str, Decimal)> {
        vec![("l", self.required())]
    }

    fn required(&self) -> Decimal {
        Decimal::integer(i64::try_from(self.l).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ValueCount, make};

    #[test]
    fn only_values_count() {
        let model = LDiversity::new(2).unwrap();
        let of = |counts: &[(Option<u32>, u64)]| {
            let sensitive: Vec<_> =
                counts.iter().map(|(value, count)| ValueCount { value: *value, count: *count }).collect();
            let size = sensitive.iter().map(|count| count.count).sum();
            model.value(&Class::of_values(size, &sensitive))
        };
        assert_eq!(of(&[]), Quantity::Count(0));
        assert_eq!(of(&[(None, 9)]), Quantity::Count(0));
        assert_eq!(of(&[(None, 1), (Some(3), 100)]), Quantity::Count(1));
        assert_eq!(of(&[(Some(0), 1), (Some(3), 100)]), Quantity::Count(2));
        // Two people: both have both values; one has both; each has one.
        let individuals = |counts: [u64; 2]| {
            let value = |at: usize| ValueCount { value: Some(at as u32), count: counts[at] };
            model.value(&Class::of_values(2, &[value(0), value(1)]))
        };
        assert_eq!(
            [individuals([2, 2]), individuals([2, 1]), individuals([1, 1])],
            [1, 1, 2].map(Quantity::Count)
        );
        assert!(model.holds(Quantity::Count(2)) && !model.holds(Quantity::Count(1)));
    }

    #[test]
    fn parameters_are_checked() {
        let l = |n: &str| make("l_diversity", &[("l".into(), Decimal::parse(n).unwrap().into())]);
        assert!(l("2").is_ok());
        for wrong in ["0", "-1", "2.5"] {
            assert!(l(wrong).is_err(), "{wrong}");
        }
    }
}
