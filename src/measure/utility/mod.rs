//! Utility: what a recoding keeps of the distributions of the quasi-identifiers.
//!
//! A released row shows a region in each column. It is read as if its value were any of the input's
//! values in that region with equal probability, independently of the other columns; NULL is a
//! value. A centroid is read as itself, and where only values of the input count, as the nearest of
//! these. Suppressed rows are left out. The release is compared with the input by:
//!
//! - `information_kept`, per column and per pair of columns: `I(X; R) / H(X)`, the mutual
//!   information of the value X of a row and what it shows R (suppressed rows show one thing),
//!   divided by the entropy of X. 1 where nothing is lost, also of a constant column.
//! - `total_variation`, per column: half the sum of `|p(x) - q(x)|` over the values x, where p is
//!   the distribution of the input and q that of the release; 1 if no row is kept.
//! - `wasserstein`, per column of numbers or dates: the area between the two distribution
//!   functions, as a share of the span between the input's 0.1 % and 99.9 % quantiles, so that a
//!   typing error does not stretch it; values beyond count as its ends, NULL aside.
//! - `mean_change`, per column of numbers or dates: the mean of the release less that of the input,
//!   in standard deviations of the input.
//! - `squared_error`, per column of numbers or dates: the mean squared difference between the value
//!   of a row and what it is read as, in variances of the input; rows that lack either are left out.
//!   Where classes show means this is SSE / SST, the information loss of microaggregation.
//! - `correlation_change`, per pair of such columns: Pearson's correlation in the release less that
//!   in the input.
//! - `queries`: counts such as `age BETWEEN 30 AND 41 AND sex = 'f'`, of one to three columns, a
//!   range of numbers or dates and a value of other columns, drawn at random around rows of the
//!   input. Those that count fewer than 0.1 % of the rows are left out. `median_relative_error` is
//!   the median of `|released - true| / true`.
//!
//! The figures are computed from the class table and the kept classes, never from rows. A full-domain release
//! must not take longer for them, so where a region is that of one value, counts of combinations are indexed by
//! codes instead of sorted.
//!
//! # Contract
//! Shares are in 0..=1, changes in the units above, all with six decimals. A figure that does not
//! exist is absent: those of numbers for columns that hold an infinity or NaN, means without a
//! value, correlations of a constant column. The figures depend on the multiset of rows alone: the
//! queries are drawn by a fixed seed. They are computed from the input, so they are for the
//! publisher only: a change of a mean can give a suppressed row away. Pairs are left out where they
//! would take more than 50 million steps.

mod queries;
mod shown;
mod spread;

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use self::shown::{NOTHING, Shown, Shows};
use self::spread::{CodesByValue, Spread};
use crate::class::{EvaluatedNode, EvaluatedPartition, Region};
use crate::error::Result;

/// What a recoding keeps, for the publisher only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Utility {
    /// Each quasi-identifier, in policy order.
    pub columns: Vec<ColumnUtility>,
    /// Each pair of quasi-identifiers.
    pub pairs: Vec<PairUtility>,
    /// Random counts; `None` if none counts enough rows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queries: Option<QueryUtility>,
}

/// What a recoding keeps of one column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnUtility {
    /// The column.
    pub column: String,
    /// The share of its information that is kept.
    pub information_kept: f64,
    /// The distance of the distributions of its values, from 0 to 1.
    pub total_variation: f64,
    /// For numbers and dates, the distance of the distribution functions, as a share of the span.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub wasserstein: Option<f64>,
    /// For numbers and dates, the change of the mean in standard deviations of the input.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mean_change: Option<f64>,
    /// For numbers and dates, the mean squared difference between a value and what it is read as, in
    /// variances of the input.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub squared_error: Option<f64>,
}

/// What a recoding keeps of two columns together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairUtility {
    /// The two columns.
    pub columns: [String; 2],
    /// The share of their information that is kept.
    pub information_kept: f64,
    /// For numbers and dates, the change of Pearson's correlation.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub correlation_change: Option<f64>,
}

/// What a recoding keeps of random counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryUtility {
    /// The number of queries.
    pub queries: u64,
    /// The median of their relative errors; 0.1 is 10 % off.
    pub median_relative_error: f64,
}

impl Utility {
    /// Computes the utility of a node.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub fn of_node(node: &EvaluatedNode<'_>) -> Result<Self> {
        let table = node.table();
        let columns = table.columns();
        let codes = |class: usize| (0..columns.len()).map(|at| node.code(class, at)).collect::<Vec<u32>>();
        let suppressed: HashSet<Vec<u32>> = node.suppressed().map(|(class, _)| codes(class)).collect();
        let leveled = || columns.iter().zip(node.levels());
        let labels = leveled().map(|(column, level)| column.map(0, *level)).collect::<Result<Vec<_>>>()?;
        let mut codes_of_base = Vec::with_capacity(columns.len());
        let is_kept = |base: usize| {
            let codes = labels.iter().enumerate();
            codes_of_base.clear();
            codes_of_base
                .extend(codes.map(|(at, labels)| labels[table.code(table.base(), base, at) as usize]));
            !suppressed.contains(codes_of_base.as_slice())
        };
        let shown = leveled().map(|(column, level)| {
            let labels = column.own_labels(*level)?;
            let mut values = vec![Vec::new(); column.level(*level).labels().len()];
            (0u32..).zip(labels).for_each(|(value, label)| values[*label as usize].push(value));
            Ok((values.into_iter().map(Spread::over).collect(), Shows::OfValue(labels)))
        });
        let classes = node.kept().map(|(class, rows)| (codes(class), rows)).collect();
        Ok(Self::of(&Shown::new(table, is_kept, shown.collect::<Result<_>>()?, classes)?))
    }

    fn of(shown: &Shown<'_>) -> Self {
        let (columns, pairs) = shown.columns_and_pairs();
        Self { columns, pairs, queries: queries::errors(shown) }
    }

    /// Computes the utility of released classes.
    ///
    /// # Errors
    /// A data error when memory runs out.
    #[doc(hidden)]
    pub fn of_partition(evaluated: &EvaluatedPartition<'_>) -> Result<Self> {
        let (table, released) = (evaluated.table(), evaluated.released());
        let mut is_kept = vec![false; released.regions().len()];
        evaluated.kept().for_each(|(class, _)| is_kept[class] = true);
        let class_of = |base: usize| {
            released.class_of_base()[base].map(|class| class as usize).filter(|class| is_kept[*class])
        };
        let mut classes: Vec<(Vec<u32>, u64)> =
            evaluated.kept().map(|(_, rows)| (Vec::new(), rows)).collect();
        let mut shown = Vec::new();
        for (at, column) in table.columns().iter().enumerate() {
            let mut number_of: BTreeMap<(Option<&Region>, Option<Option<&str>>), u32> = BTreeMap::new();
            let (mut spreads, mut numbers, mut next) = (Vec::new(), Vec::with_capacity(is_kept.len()), 0u32);
            let codes = released.shows_centroids().then(|| CodesByValue::of(column)).transpose()?;
            for (class, regions) in released.regions().iter().enumerate() {
                let centroid = released.centroid(class, at);
                let region = centroid.is_none().then_some(&regions[at]);
                let number = *number_of.entry((region, centroid)).or_insert_with(|| {
                    let value = released.centroid_value(table, class, at);
                    let spread =
                        value.zip(codes.as_ref()).and_then(|(value, codes)| Spread::at(&value, codes));
                    // A column with an infinity or NaN has no line for a mean.
                    spreads.push(spread.unwrap_or_else(|| Spread::of(&regions[at], column)));
                    next += 1;
                    next - 1
                });
                numbers.push(number);
            }
            for ((class, _), (regions, _)) in evaluated.kept().zip(&mut classes) {
                regions.push(numbers[class]);
            }
            let of_base =
                (0..table.base().len()).map(|base| class_of(base).map_or(NOTHING, |class| numbers[class]));
            shown.push((spreads, Shows::OfClass(of_base.collect())));
        }
        Ok(Self::of(&Shown::new(table, |base| class_of(base).is_some(), shown, classes)?))
    }
}

#[cfg(test)]
#[path = "utility_tests.rs"]
mod tests;
