//! The classes of an earlier release among other rows.
//!
//! Regions come from the private record's assignment: rows of a
//! combination of values that it holds go to the class of that combination, or are suppressed as it
//! is. Those of another one go to the class whose regions cover their values and lose the least, or
//! are suppressed if there is none. A class shows what it showed, but for an end at the least or
//! the greatest of the new released values, which is written open as in every release. Of classes
//! that hold the same values among the new rows only one is left.
//!
//! Texts stay the same because classes carry the labels of the earlier release
//! (`ReleasedClasses::with_labels`); the verification accepts them, because an interval may be wider than its
//! class's values. Regions that were drawn around values leave gaps, in which new combinations are suppressed;
//! `ends = "cuts"` and levels leave none.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::Array;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::class::{Budget, ClassTable, EncodedColumn, Held, Region, ReleasedClasses};
use crate::decimal::ratio;
use crate::engine::{PoolBudget, Run};
use crate::error::{Error, ErrorCode, Result};
use crate::generalize::region_label::Values;
use crate::generalize::{RegionLabel, Value, text_forms};
use crate::input::Loaded;
use crate::method::Candidate;
use crate::method::partition::candidate;
use crate::plural::{self, grouped};
use crate::policy::Policy;
use crate::progress::CancelToken;
use crate::release::earlier_recoding::no_recoding;
use crate::release::publish::record::PrivateRecord;
use crate::release::search::problem;
use crate::verify::assignment::{Assignment, LinesShow};

/// Applies the classes of the release that a private record belongs to; `None` if too many rows fail the models or fit no
/// class.
///
/// # Errors
/// An unmet error if the record holds no assignment, or a policy or an unmet error for a column whose values have changed;
/// a data error when memory runs out.
pub(super) fn apply_again(
    run: &Run,
    loaded: &Loaded,
    classes: &ClassTable,
    earlier: &PrivateRecord,
) -> Result<Option<Candidate>> {
    let policy = &loaded.policy;
    let assignment = earlier.assignment.as_ref().ok_or_else(no_recoding)?;
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&loaded.session, "earlier classes"));
    let Applied { released, changed } = apply_classes(run, policy, classes, assignment, &budget)?;
    let found = candidate(&problem(run, policy, classes, &*run.progress), released)?
        .filter(|found| found.classes > 0);
    match (found, changed) {
        (None, Some(changed)) => Err(changed.refusal()),
        (found, _) => Ok(found),
    }
}

/// The classes of the earlier release among the new rows.
struct Applied {
    released: ReleasedClasses,
    /// The column whose values have changed most, if they have.
    changed: Option<ChangedColumn>,
}

/// A column most of whose rows hold values that the earlier input did not have and that only `*` covers.
struct ChangedColumn {
    name: String,
    has_intervals: bool,
    unknown_rows: u64,
    rows: u64,
}

impl ChangedColumn {
    fn refusal(&self) -> Error {
        let Self { name, has_intervals, unknown_rows, rows } = self;
        let why = format!(
            "column `{name}`: {} of {} hold values that the earlier input did not have and that no class of the earlier release \
             shows; if the column has changed, write its values as before, else release these rows by a recoding of their own, \
             without --recoding",
            grouped(*unknown_rows),
            plural::rows(*rows),
        );
        // Numbers and dates move on from night to night; names do not.
        if *has_intervals { Error::unmet(why) } else { Error::policy(why).coded(ErrorCode::OtherColumns) }
    }
}

/// What the classes of the earlier release show in one column of the new rows.
pub(in crate::release) struct Column<'a> {
    column: &'a EncodedColumn,
    /// The level-0 labels as text.
    texts: Vec<Option<String>>,
    /// The labels, each with its region among the codes that it covers.
    labels: &'a [(Option<String>, RegionLabel)],
    regions: Vec<Region>,
    /// For each code the labels that cover it, in order.
    covering: Vec<Vec<u32>>,
    /// The label of each class, and the classes of each label.
    by_class: &'a [u32],
    classes_of: Vec<Vec<u32>>,
}

impl<'a> Column<'a> {
    /// Reads what labels show of a column; `by_class` is the label of each class.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(in crate::release) fn new(
        column: &'a EncodedColumn,
        labels: &'a [(Option<String>, RegionLabel)],
        by_class: &'a [u32],
        stop: &CancelToken,
        held: &mut Held,
    ) -> Result<Self> {
        let texts = text_forms(column.level(0).labels())?;
        let texts = (0..texts.len()).map(|at| texts.is_valid(at).then(|| texts.value(at).to_owned()));
        let values = (0..column.values().len()).map(|at| Value::read(column.values(), at));
        let values = values.collect::<Result<Vec<_>>>()?;
        let codes = label_codes(column)?;
        let mut covering: Vec<Vec<u32>> = vec![Vec::new(); column.distinct()];
        let (mut regions, mut entries) = (Vec::with_capacity(labels.len()), 0);
        for (number, (_, label)) in (0u32..).zip(labels) {
            stop.check()?;
            // Level 0 may merge values: a label covers them all or none.
            let mut is_covered = vec![true; column.distinct()];
            for (value, code) in values.iter().zip(column.level(0).of_value()) {
                is_covered[*code as usize] &= label.covers(column.hierarchy(), value)?;
            }
            let covered: Vec<u32> =
                (0u32..).zip(is_covered).filter(|(_, is)| *is).map(|(code, _)| code).collect();
            covered.iter().for_each(|code| covering[*code as usize].push(number));
            // A set has the codes once more.
            entries += 2 * covered.len();
            held.at_least(entries * size_of::<u32>() + (number as usize + 1) * size_of::<Region>())?;
            regions.push(region(column, label, covered, &codes)?);
        }
        let mut classes_of: Vec<Vec<u32>> = vec![Vec::new(); labels.len()];
        (0u32..).zip(by_class).for_each(|(class, label)| classes_of[*label as usize].push(class));
        Ok(Self { column, texts: texts.collect(), labels, regions, covering, by_class, classes_of })
    }

    fn label(&self, class: u32) -> usize {
        self.by_class[class as usize] as usize
    }

    /// Returns whether a class covers a code of level 0.
    pub(in crate::release) fn covers(&self, class: u32, code: usize) -> bool {
        self.covering[code].binary_search(&self.by_class[class as usize]).is_ok()
    }

    /// Returns the column as a changed one, if most rows hold a value that the earlier input did
    /// not have and that only `*` covers. `place` is its place among the columns of the earlier
    /// assignment.
    fn changed(&self, earlier: &Assignment, place: usize) -> Option<ChangedColumn> {
        let is_everything = |label: &u32| self.labels[*label as usize].1 == RegionLabel::Everything;
        let is_unknown = |(code, text): (usize, &Option<String>)| {
            self.covering[code].iter().all(is_everything)
                && earlier.number_of(place, text.as_deref()).is_none()
        };
        let by_code = self.column.level(0).rows();
        let unknown = self.texts.iter().enumerate().zip(by_code).filter(|(value, _)| is_unknown(*value));
        let unknown_rows = unknown.map(|(_, rows)| rows).sum();
        let rows: u64 = by_code.iter().sum();
        (unknown_rows > rows / 2).then(|| ChangedColumn {
            name: self.column.name().to_owned(),
            has_intervals: self.column.has_intervals(),
            unknown_rows,
            rows,
        })
    }

    /// Returns how many classes cover a code.
    fn classes_covering(&self, code: usize) -> usize {
        self.covering[code].iter().map(|label| self.classes_of[*label as usize].len()).sum()
    }

    /// Returns what a class loses in this column, between 0 and 1, times the column's weight.
    fn loss(&self, class: u32) -> f64 {
        self.column.weight() * ratio(self.leaves(class).into(), self.column.leaves().max(1).into())
    }

    /// Returns the number of leaves of what a class shows.
    pub(in crate::release) fn leaves(&self, class: u32) -> u64 {
        self.regions[self.label(class)].leaves(self.column)
    }
}

/// Returns the coarsest level at which each text is a label of a column's hierarchy, and its code there.
fn label_codes(column: &EncodedColumn) -> Result<HashMap<String, (usize, u32)>> {
    let mut codes = HashMap::new();
    for level in 0..column.height() {
        let texts = text_forms(column.level(level).labels())?;
        for (code, text) in (0u32..).zip(texts.iter()) {
            if let Some(text) = text {
                codes.insert(text.to_owned(), (level, code));
            }
        }
    }
    Ok(codes)
}

/// Returns the region of a label among the codes that it covers; of a label that covers none everything.
fn region(
    column: &EncodedColumn,
    label: &RegionLabel,
    covered: Vec<u32>,
    codes: &HashMap<String, (usize, u32)>,
) -> Result<Region> {
    if covered.is_empty() || *label == RegionLabel::Everything {
        return Ok(Region::Everything);
    }
    if column.has_intervals() {
        return Region::around(column, covered);
    }
    let known = match label {
        RegionLabel::Values { values: Values::Label(text), .. } => codes.get(text),
        _ => None,
    };
    // Among the new values another one may have the same text.
    let of_label = known.map(|(level, code)| Region::Label { level: *level, code: *code });
    let of_label = of_label.filter(|region| covered.iter().all(|code| region.holds(column, *code)));
    Ok(of_label.unwrap_or_else(|| Region::Set(covered.into())))
}

/// Assigns the base classes to the classes of an assignment.
fn apply_classes(
    run: &Run,
    policy: &Policy,
    table: &ClassTable,
    assignment: &str,
    budget: &Arc<dyn Budget>,
) -> Result<Applied> {
    let quasi: Vec<usize> = policy.released_quasi().collect();
    let bytes = STANDARD.decode(assignment).map_err(|_| no_recoding())?;
    let hierarchies = quasi.iter().map(|at| policy.quasi[*at].hierarchy.clone()).collect();
    let earlier =
        Assignment::read(bytes.into(), hierarchies, LinesShow::Regions(policy.spec.output.ends()), budget)?;
    let mut held: Vec<Held> = quasi.iter().map(|_| Held::new(budget)).collect();
    let columns = quasi.iter().zip(&mut held).enumerate().map(|(place, (at, held))| {
        let (labels, by_class) = earlier.shown(place);
        Column::new(&table.columns()[*at], labels, by_class, &run.stop, held)
    });
    let columns: Vec<Column<'_>> = columns.collect::<Result<_>>()?;
    let changed = columns.iter().enumerate().filter_map(|(place, column)| column.changed(&earlier, place));
    let changed = changed.max_by_key(|changed| changed.unknown_rows);
    let losses = (0u32..).take(earlier.classes());
    let losses: Vec<f64> =
        losses.map(|class| columns.iter().map(|column| column.loss(class)).sum()).collect();

    let code = |base: usize, at: usize| table.code(table.base(), base, quasi[at]) as usize;
    let covers =
        |class: u32, base: usize| (0..columns.len()).all(|at| columns[at].covers(class, code(base, at)));
    let class_of = |base: usize| {
        let values = columns.iter().enumerate().map(|(at, column)| column.texts[code(base, at)].as_deref());
        if let Some(known) = earlier.class_of(values) {
            return known.filter(|class| covers(*class, base));
        }
        // The column in which the fewest classes cover the value.
        let fewest = (0..columns.len()).min_by_key(|at| columns[*at].classes_covering(code(base, *at)))?;
        let labels = columns[fewest].covering[code(base, fewest)].iter();
        let classes = labels.flat_map(|label| &columns[fewest].classes_of[*label as usize]).copied();
        let by_loss = |a: &u32, b: &u32| losses[*a as usize].total_cmp(&losses[*b as usize]).then(a.cmp(b));
        classes.filter(|class| covers(*class, base)).min_by(by_loss)
    };
    // Only classes with new rows are numbered.
    let mut number_of: Vec<Option<u32>> = vec![None; earlier.classes()];
    let (mut regions, mut labels) = (Vec::new(), Vec::new());
    let mut class_of_base = Vec::with_capacity(table.base().len());
    for base in 0..table.base().len() {
        run.stop.check()?;
        let Some(class) = class_of(base) else {
            class_of_base.push(None);
            continue;
        };
        let number = &mut number_of[class as usize];
        if number.is_none() {
            *number = Some(u32::try_from(regions.len()).map_err(Error::internal)?);
            // The columns of the release may have another order than those of the table.
            let mut shown: Vec<(usize, &Column<'_>)> = quasi.iter().copied().zip(&columns).collect();
            shown.sort_by_key(|(at, _)| *at);
            let of_label = |(_, column): &(usize, &Column<'_>)| column.label(class);
            let region = shown.iter().map(|shown| shown.1.regions[of_label(shown)].clone());
            regions.push(region.collect());
            labels.push(shown.iter().map(|shown| shown.1.labels[of_label(shown)].1.clone()).collect());
        }
        class_of_base.push(*number);
    }
    let released = ReleasedClasses::with_labels(table, class_of_base, regions, labels)?;
    Ok(Applied { released, changed })
}
