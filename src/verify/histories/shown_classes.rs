//! The classes that a release shows, numbered in the order of their labels.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, UInt64Array};
use arrow::datatypes::UInt32Type;
use datafusion::logical_expr::Expr;
use datafusion::prelude::DataFrame;
use futures::StreamExt;

use super::shown_rows::lost;
use super::{DOING, View, knows};
use crate::class::{Budget, Held};
use crate::engine::{Context, column};
use crate::error::Result;
use crate::progress::CancelToken;
use crate::verify::counting::column_name;
use crate::verify::expected::Expected;
use crate::verify::labels::Labels;

/// The classes that a release shows.
pub(crate) struct ShownClasses {
    /// The quasi-identifiers, in the order of the release.
    quasi: Vec<String>,
    /// For each class its labels, as texts, in order.
    labels: Vec<Vec<Option<String>>>,
    /// The class of rows with these label numbers; none where labels are not numbered.
    numbers: HashMap<Box<[u32]>, u64>,
    _held: Held,
}

/// The labels of a class as texts, and their numbers.
type LabelsOfClass = (Vec<Option<String>>, Box<[u32]>);

impl ShownClasses {
    /// Reads the classes of released rows, whose labels are numbers.
    ///
    /// # Errors
    /// A data error when reading fails or memory runs out.
    pub(super) async fn read(
        released: DataFrame,
        expected: &Expected<'_>,
        labels: &[Option<Arc<Labels>>],
        budget: &Arc<dyn Budget>,
        stop: &CancelToken,
    ) -> Result<Self> {
        let columns: Vec<Expr> = expected.quasi().map(|index| column(column_name(index))).collect();
        let labels: Vec<&Arc<Labels>> = labels.iter().flatten().collect();
        let classes = released.select(columns).context(DOING)?.distinct().context(DOING)?;
        let mut stream = classes.execute_stream().await.context(DOING)?;
        let (mut held, mut bytes) = (Held::new(budget), 0);
        let mut all: Vec<LabelsOfClass> = Vec::new();
        while let Some(batch) = stream.next().await {
            stop.check()?;
            let batch = batch.context(DOING)?;
            let of_columns = numbers_of(batch.columns())?;
            for row in 0..batch.num_rows() {
                let numbers: Box<[u32]> = of_columns.iter().map(|numbers| numbers[row]).collect();
                let texts = labels
                    .iter()
                    .zip(&numbers)
                    .map(|(labels, number)| Ok(labels.value(*number)?.text_form()));
                let texts: Vec<Option<String>> = texts.collect::<Result<_>>()?;
                bytes += texts.iter().flatten().map(String::len).sum::<usize>();
                all.push((texts, numbers));
            }
            let each = size_of::<(Vec<Option<String>>, Box<[u32]>)>() + size_of::<(Box<[u32]>, u64, u8)>();
            let cells = labels.len() * (size_of::<Option<String>>() + size_of::<u32>());
            held.at_least(bytes + all.capacity() * (each + cells))?;
        }
        all.sort_unstable();
        let (texts, numbers): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let quasi = expected.quasi().map(|index| expected.columns[index].0.clone()).collect();
        Ok(Self { quasi, labels: texts, numbers: numbers.into_iter().zip(0..).collect(), _held: held })
    }

    /// Returns classes with these labels, which are in order.
    pub(super) fn of_labels(quasi: Vec<String>, labels: Vec<Vec<Option<String>>>, held: Held) -> Self {
        Self { quasi, labels, numbers: HashMap::new(), _held: held }
    }

    /// Returns the class of each row by its label numbers; `None` for a row that no class shows.
    pub(super) fn of_rows(&self, labels: &[ArrayRef], rows: usize) -> Result<Vec<Option<u64>>> {
        let of_columns = numbers_of(labels)?;
        let mut key = vec![0; of_columns.len()];
        let class_of = |row: usize| {
            key.iter_mut().zip(&of_columns).for_each(|(key, numbers)| *key = numbers[row]);
            self.numbers.get(key.as_slice()).copied()
        };
        Ok((0..rows).map(class_of).collect())
    }

    /// Returns the quasi-identifiers, and for each class its labels.
    pub(crate) fn labels(&self) -> (&[String], &[Vec<Option<String>>]) {
        (&self.quasi, &self.labels)
    }
}

/// Returns for each class its class to an attacker who knows some of the quasi-identifiers. The classes are given by their labels.
pub(super) fn of_view(quasi: &[String], labels: &[Vec<Option<String>>], over: &View) -> Vec<u64> {
    let known: Vec<usize> = (0..quasi.len()).filter(|at| knows(over, &quasi[*at])).collect();
    let mut classes: HashMap<Vec<&Option<String>>, u64> = HashMap::new();
    let of_class = labels.iter().map(|labels| {
        let next = classes.len() as u64;
        *classes.entry(known.iter().map(|at| &labels[*at]).collect()).or_insert(next)
    });
    of_class.collect()
}

/// Returns numbers as the classes of a view.
pub(super) fn in_view(classes: &[Option<u64>], of_view: &[u64]) -> Result<UInt64Array> {
    let of_row = |class: &Option<u64>| {
        let Some(class) = class else { return Ok(None) };
        let at = usize::try_from(*class).ok().and_then(|class| of_view.get(class));
        at.copied().map(Some).ok_or_else(lost)
    };
    classes.iter().map(of_row).collect()
}

fn numbers_of(columns: &[ArrayRef]) -> Result<Vec<&[u32]>> {
    let mut all = Vec::with_capacity(columns.len());
    for column in columns {
        all.push(&column.as_primitive_opt::<UInt32Type>().ok_or_else(lost)?.values()[..]);
    }
    Ok(all)
}
