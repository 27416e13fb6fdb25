//! Finds the classes of the input's rows by an assignment.

use std::cmp::Ordering::{Greater, Less};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard};

use arrow::array::{ArrayRef, AsArray, UInt32Array};
use arrow::datatypes::{DataType, UInt32Type};
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use hashbrown::{HashMap, HashSet};

use super::assignment::{Assignment, Lines, LinesShow, SUPPRESSED};
use super::centroids::check_centroids;
use super::labels::Labels;
use super::row_lines::{RowName, names_of};
use crate::class::{Budget, Held};
use crate::engine::into_engine;
use crate::error::{Error, Result};
use crate::generalize::region_label::Values;
use crate::generalize::{Ends, RegionLabel, Value, compare};

/// Finds the classes of the input's rows by an assignment. Labels of level 0 are made by the naive
/// generalizers, one value after the other.
pub(crate) struct Assigner {
    assignment: Arc<Assignment>,
    /// The values of each quasi-identifier as numbers.
    values: Vec<Arc<Labels>>,
    seen: RwLock<Seen>,
    /// Whether each line has a row.
    lines: Vec<AtomicBool>,
    budget: Arc<dyn Budget>,
}

struct Seen {
    /// For each quasi-identifier the number of the level-0 label of each value; `None` for values
    /// not seen yet.
    label_of_value: Vec<Vec<Option<u32>>>,
    /// The pairs of a value and a shown text that go together, per quasi-identifier.
    covered: Vec<HashSet<(u32, u32)>>,
    /// Where classes show centroids, the rows of each class with each value, per quasi-identifier.
    counts: Vec<HashMap<(u32, u32), u64>>,
    held: Held,
}

impl Assigner {
    /// Prepares to assign rows.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(crate) fn new(assignment: &Arc<Assignment>, budget: &Arc<dyn Budget>) -> Result<Arc<Self>> {
        let values: Vec<_> = assignment.columns.iter().map(|_| Arc::new(Labels::new(budget))).collect();
        let mut held = Held::new(budget);
        held.at_least(assignment.class_of_line.len())?;
        let lines = assignment.class_of_line.iter().map(|_| AtomicBool::new(false)).collect();
        let label_of_value = vec![Vec::new(); values.len()];
        let covered = vec![HashSet::new(); values.len()];
        let counts = vec![HashMap::new(); values.len()];
        let seen = RwLock::new(Seen { label_of_value, covered, counts, held });
        Ok(Arc::new(Self {
            assignment: Arc::clone(assignment),
            values,
            seen,
            lines,
            budget: Arc::clone(budget),
        }))
    }

    /// Refuses an assignment with a line that no row of the input has, with a set that names a
    /// value of suppressed rows alone, with an interval that ends at the least or the greatest kept
    /// value where such ends must be open, or with a centroid that is not that of its class. All rows
    /// must have been assigned.
    ///
    /// # Errors
    /// An unmet error.
    pub(crate) fn check_assignment(&self) -> Result<()> {
        if !self.lines.iter().all(|seen| seen.load(Ordering::Relaxed)) {
            return Err(Error::unmet(
                "verification refused: the private record assigns combinations of values that no input row has",
            ));
        }
        let seen = self.seen()?;
        let ends = match self.assignment.lines_show {
            LinesShow::Regions(ends) => ends,
            LinesShow::Centroids(centroid) => {
                return check_centroids(&self.assignment, centroid, &self.values, &seen.counts, &self.budget);
            }
        };
        if !self.assignment.is_of_earlier {
            self.check_sets(&seen)?;
        }
        if ends == Ends::Closed {
            return Ok(());
        }
        for (column, of_column) in self.assignment.columns.iter().enumerate() {
            if !of_column.hierarchy.has_intervals() {
                continue;
            }
            let mut extremes: Option<(Value, Value)> = None;
            for (value, _) in &seen.covered[column] {
                let value = self.values[column].value(*value)?;
                if value == Value::Null || matches!(value, Value::Float(number) if number.is_nan()) {
                    continue;
                }
                let (least, most) = extremes.get_or_insert_with(|| (value.clone(), value.clone()));
                match compare(&value, least) {
                    Some(Less) => *least = value,
                    _ if compare(&value, most) == Some(Greater) => *most = value,
                    _ => {}
                }
            }
            let Some((least, most)) = extremes else { continue };
            let data_type = of_column.hierarchy.input_type();
            // Texts are compared, because NaN is unequal to itself.
            let is_closed = |((text, region), is_earlier): (&(Option<String>, RegionLabel), &bool)| {
                !is_earlier && region.clone().without_ends_at(&least, &most).write(data_type) != *text
            };
            if of_column.shown.iter().zip(&of_column.are_earlier).any(is_closed) {
                return Err(Error::unmet(
                    "verification refused: an interval ends at the least or the greatest released value of its column",
                ));
            }
        }
        Ok(())
    }

    /// Refuses a set that names a value which no kept row has.
    fn check_sets(&self, seen: &Seen) -> Result<()> {
        for (column, of_column) in self.assignment.columns.iter().enumerate() {
            let as_is = of_column.hierarchy.levels().first().ok_or_else(no_line)?;
            let mut kept = HashSet::new();
            for (value, _) in &seen.covered[column] {
                kept.insert(as_is.generalize_value(&self.values[column].value(*value)?)?.text_form());
            }
            let new =
                of_column.shown.iter().zip(&of_column.are_earlier).filter(|(_, is_earlier)| !**is_earlier);
            for ((_, region), _) in new {
                let RegionLabel::Values { values: Values::Set(values), .. } = region else { continue };
                if values.iter().any(|value| !kept.contains(&value.text_form())) {
                    return Err(Error::unmet(
                        "verification refused: a set names a value that no released row has",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns the assignment.
    pub(crate) fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    /// Returns the numberings of the quasi-identifiers' values.
    pub(crate) fn values(&self) -> &[Arc<Labels>] {
        &self.values
    }

    /// Returns the expression for the class number of a row with these value numbers, behind the parts of its name where lines are
    /// of rows.
    pub(crate) fn class_of(self: &Arc<Self>, values: Vec<Expr>) -> Expr {
        // Volatile: otherwise each label would assign the row again.
        let signature = Signature::variadic_any(Volatility::Volatile);
        ScalarUDF::new_from_impl(ClassOfRow { assigner: Arc::clone(self), signature }).call(values)
    }

    fn seen(&self) -> Result<RwLockReadGuard<'_, Seen>> {
        self.seen.read().map_err(|_| panicked())
    }

    fn classes(&self, arguments: &[ArrayRef]) -> Result<UInt32Array> {
        let (names, values) = arguments.split_at(arguments.len() - self.values.len());
        let numbers: Vec<&[u32]> =
            values.iter().map(|array| &array.as_primitive::<UInt32Type>().values()[..]).collect();
        let lines = match &self.assignment.lines {
            Lines::OfValues(lines) => self.lines_of_values(lines, &numbers)?,
            Lines::OfRows(_, lines) => lines_of_rows(lines, names)?,
        };
        let (mut classes, mut unknown) = (Vec::with_capacity(lines.len()), Vec::new());
        let are_regions = matches!(self.assignment.lines_show, LinesShow::Regions(_));
        {
            let seen = self.seen()?;
            for (row, line) in lines.into_iter().enumerate() {
                let Some(line) = line.map(|line| line as usize) else {
                    classes.push(SUPPRESSED);
                    continue;
                };
                self.lines[line].store(true, Ordering::Relaxed);
                let class = self.assignment.class_of_line[line];
                classes.push(class);
                if class == SUPPRESSED || !are_regions {
                    continue;
                }
                for (column, of_column) in self.assignment.columns.iter().enumerate() {
                    let pair = (numbers[column][row], of_column.shown_by_class[class as usize]);
                    if !seen.covered[column].contains(&pair) {
                        unknown.push((column, pair));
                    }
                }
            }
        }
        match are_regions {
            true => self.check_covered(unknown)?,
            false => self.count(&classes, &numbers)?,
        }
        Ok(classes.into())
    }

    /// Returns the line of each row by its value numbers.
    fn lines_of_values(
        &self,
        lines: &HashMap<Box<[u32]>, u32>,
        numbers: &[&[u32]],
    ) -> Result<Vec<Option<u32>>> {
        self.label_values(numbers)?;
        let seen = self.seen()?;
        let mut key = vec![0u32; numbers.len()];
        let line = |row: usize| {
            for ((key, labels), numbers) in key.iter_mut().zip(&seen.label_of_value).zip(numbers) {
                *key = labels[numbers[row] as usize].ok_or_else(no_line)?;
            }
            lines.get(&key[..]).copied().map(Some).ok_or_else(no_line)
        };
        (0..numbers.first().map_or(0, |numbers| numbers.len())).map(line).collect()
    }

    /// Counts the rows of each class with each value.
    fn count(&self, classes: &[u32], numbers: &[&[u32]]) -> Result<()> {
        let counted = |numbers: &&[u32]| {
            let mut pairs: Vec<(u32, u32)> = classes.iter().copied().zip(numbers.iter().copied()).collect();
            pairs.retain(|(class, _)| *class != SUPPRESSED);
            pairs.sort_unstable();
            pairs
        };
        let counted: Vec<Vec<(u32, u32)>> = numbers.iter().map(counted).collect();
        let mut seen = self.seen.write().map_err(|_| panicked())?;
        for (pairs, counts) in counted.iter().zip(&mut seen.counts) {
            for same in pairs.chunk_by(|a, b| a == b) {
                *counts.entry(same[0]).or_default() += same.len() as u64;
            }
        }
        seen.account(self.lines.len())
    }

    /// Labels the values that were not seen before. A value whose label the assignment lacks has no line.
    fn label_values(&self, numbers: &[&[u32]]) -> Result<()> {
        let mut new: Vec<(usize, u32)> = Vec::new();
        {
            let seen = self.seen()?;
            for (column, (numbers, labels)) in numbers.iter().zip(&seen.label_of_value).enumerate() {
                let is_new = |number: &&u32| labels.get(**number as usize).is_none_or(Option::is_none);
                new.extend(numbers.iter().filter(is_new).map(|number| (column, *number)));
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        new.sort_unstable();
        new.dedup();
        let mut seen = self.seen.write().map_err(|_| panicked())?;
        for (column, number) in new {
            let (of_column, at) = (&self.assignment.columns[column], number as usize);
            let as_is = of_column.hierarchy.levels().first().ok_or_else(no_line)?;
            let label = as_is.generalize_value(&self.values[column].value(number)?)?.text_form();
            let labels = &mut seen.label_of_value[column];
            if labels.len() <= at {
                labels.resize(at + 1, None);
            }
            labels[at] = Some(of_column.values.find(label.as_deref()).ok_or_else(no_line)?);
        }
        seen.account(self.lines.len())
    }

    /// Refuses a class whose region does not hold the value of one of its rows.
    fn check_covered(&self, mut pairs: Vec<(usize, (u32, u32))>) -> Result<()> {
        if pairs.is_empty() {
            return Ok(());
        }
        pairs.sort_unstable();
        pairs.dedup();
        for (column, (value, shown)) in &pairs {
            let of_column = &self.assignment.columns[*column];
            let (_, region) = &of_column.shown[*shown as usize];
            if !region.covers(&of_column.hierarchy, &self.values[*column].value(*value)?)? {
                return Err(Error::unmet(
                    "verification refused: a label does not cover the value of an input row",
                ));
            }
        }
        let mut seen = self.seen.write().map_err(|_| panicked())?;
        for (column, pair) in pairs {
            seen.covered[column].insert(pair);
        }
        seen.account(self.lines.len())
    }
}

/// Returns the line of each row by its name; `None` for one without a person.
fn lines_of_rows(lines: &HashMap<RowName, u32>, names: &[ArrayRef]) -> Result<Vec<Option<u32>>> {
    let line =
        |name: Option<RowName>| name.map(|name| lines.get(&name).copied().ok_or_else(no_line)).transpose();
    names_of(names)?.into_iter().map(line).collect()
}

impl Seen {
    fn account(&mut self, lines: usize) -> Result<()> {
        let covered: usize = self.covered.iter().map(HashSet::capacity).sum();
        let labels: usize = self.label_of_value.iter().map(Vec::capacity).sum();
        let counts: usize = self.counts.iter().map(HashMap::capacity).sum();
        let bytes = labels * size_of::<Option<u32>>()
            + covered * (size_of::<(u32, u32)>() + 1)
            + counts * (size_of::<((u32, u32), u64)>() + 1);
        self.held.at_least(lines + bytes)
    }
}

fn panicked() -> Error {
    Error::internal("assigner: another thread panicked while it assigned rows")
}

fn no_line() -> Error {
    Error::unmet("verification refused: the private record assigns no class to an input row")
}

struct ClassOfRow {
    assigner: Arc<Assigner>,
    signature: Signature,
}

impl std::fmt::Debug for ClassOfRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("kanon_assigned_class")
    }
}

impl PartialEq for ClassOfRow {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.assigner, &other.assigner)
    }
}

impl Eq for ClassOfRow {}

impl Hash for ClassOfRow {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl ScalarUDFImpl for ClassOfRow {
    fn name(&self) -> &'static str {
        "kanon_assigned_class"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> EngineResult<DataType> {
        Ok(DataType::UInt32)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        let values = ColumnarValue::values_to_arrays(&arguments.args)?;
        let classes = self.assigner.classes(&values).map_err(into_engine)?;
        Ok(ColumnarValue::Array(Arc::new(classes)))
    }
}
