//! The assignment of a recoding into regions or centroids, as the private record keeps it: what each
//! combination of the input's quasi-identifiers shows in the release, or that its rows are suppressed.
//!
//! Regions of different classes may overlap, so only recorded data can say which class a row is in. The release writes it into the
//! private record, in base64, so that publishing stays a matter of two records; the verification reads those
//! bytes.
//!
//! It is a Parquet file with one line per combination and two texts per quasi-identifier, in the
//! order of the release:
//!
//! ```text
//! kept | value_0    | value_1 | shown_0   | shown_1
//! true | 34         | 94131   | [30,35]   | 9413*
//! ```
//! The values are the level-0 labels as text, NULL for a missing one. Nothing here is believed: a
//! line that occurs twice, a text that is not the canonical one of a region, a region that does not
//! hold the row's value, a centroid that is not that of the class's rows, a row without a line and a
//! line without a row are refused.
//!
//! The verification also refuses kept rows that are missing, released rows that a line suppresses, an interval
//! that ends at the least or the greatest released value where the policy wants it open, and a set that names a
//! value which no released row has (but under the recoding of an earlier release, whose texts stay). It accepts
//! an interval that is wider than its class's values, because other methods may choose wider ones, and a line
//! that is suppressed without need: its rows count against the limit. Without the input, `kanon verify` sees
//! only texts, and checks that each is one that kanon writes for the type in the record.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, StringArray};
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use hashbrown::HashMap;

use super::labels::Labels;
use super::row_lines::{RowLines, RowName, RowNames};
use crate::class::{Budget, Held};
use crate::engine::damaged::unless_it_panics;
use crate::error::{Error, Result};
use crate::generalize::{Centroid, Ends, Hierarchy, RegionLabel, Value};

/// The class number of suppressed rows, and the number of their labels.
pub(crate) const SUPPRESSED: u32 = u32::MAX;

/// The lines that are read at a time.
const BATCH_LINES: usize = 1_024;

/// What the lines of an assignment show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinesShow {
    /// Regions, whose intervals end so.
    Regions(Ends),
    /// Centroids, of columns of numbers this one.
    Centroids(Centroid),
}

/// An assignment that was read. Its `Debug` shows no cell.
pub struct Assignment {
    pub(super) columns: Vec<Column>,
    /// What they show.
    pub(super) lines_show: LinesShow,
    /// Whether sets may name values that no released row has: those of an earlier release.
    pub(crate) is_of_earlier: bool,
    /// The number of each line.
    pub(super) lines: Lines,
    /// The class of each line. Classes are numbered by what they show, which is all that makes them one.
    pub(super) class_of_line: Vec<u32>,
    _held: Held,
}

/// What the lines of an assignment are of.
pub(super) enum Lines {
    /// Combinations of values, by the numbers of these.
    OfValues(HashMap<Box<[u32]>, u32>),
    /// Rows, by their names.
    OfRows(RowNames, HashMap<RowName, u32>),
}

/// One quasi-identifier of an assignment.
pub(super) struct Column {
    pub(super) hierarchy: Hierarchy,
    /// The level-0 labels.
    pub(super) values: Texts,
    /// The different texts that are shown, with their regions.
    pub(super) shown: Vec<(Option<String>, RegionLabel)>,
    /// Whether an earlier release shows each of them, so that its ends and sets stay.
    pub(super) are_earlier: Vec<bool>,
    /// The index of what each class shows.
    pub(super) shown_by_class: Vec<u32>,
}

impl std::fmt::Debug for Assignment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Assignment({} lines)", self.class_of_line.len())
    }
}

impl Assignment {
    /// Reads an assignment of quasi-identifiers with these hierarchies, in the order of the release.
    ///
    /// # Errors
    /// An unmet error if it is none, has a line twice or shows a text that is not canonical; a data
    /// error when memory runs out.
    pub(crate) fn read(
        bytes: Bytes,
        hierarchies: Vec<Hierarchy>,
        lines_show: LinesShow,
        budget: &Arc<dyn Budget>,
    ) -> Result<Self> {
        let mut held = Held::new(budget);
        let read = unless_it_panics(|| Reader::new(hierarchies, lines_show).read(bytes, &mut held));
        let reader = read.unwrap_or_else(|| Err(not_an_assignment()))?;
        let Reader { columns, lines, class_of_line, .. } = reader;
        let lines = Lines::OfValues(lines);
        Ok(Self { columns, lines_show, is_of_earlier: false, lines, class_of_line, _held: held })
    }

    /// Returns the assignment of rows to classes that show regions.
    ///
    /// # Errors
    /// An unmet error if a row is there twice, or a text is not canonical; a data error when memory runs out.
    pub(crate) fn of_rows(
        lines: &RowLines,
        hierarchies: Vec<Hierarchy>,
        ends: Ends,
        budget: &Arc<dyn Budget>,
    ) -> Result<Self> {
        let mut held = Held::new(budget);
        let of_rows = 2 * lines.rows.len() * (size_of::<RowName>() + 2 * size_of::<u32>());
        held.at_least(of_rows)?;
        let lines_show = LinesShow::Regions(ends);
        let mut reader = Reader::new(hierarchies, lines_show);
        let mut number_of = Vec::with_capacity(lines.classes.len());
        for (texts, is_earlier) in lines.classes.iter().zip(&lines.are_earlier) {
            if texts.len() != reader.columns.len() {
                return Err(not_an_assignment());
            }
            number_of.push(reader.class(texts.iter().map(Option::as_deref), *is_earlier)?);
        }
        let (mut line_of_row, mut class_of_line) = (HashMap::new(), Vec::with_capacity(lines.rows.len()));
        for ((row, class), number) in lines.rows.iter().zip(0u32..) {
            if line_of_row.insert(*row, number).is_some() {
                return Err(Error::unmet("verification refused: the private record assigns a row twice"));
            }
            let class =
                class.map(|class| number_of.get(class as usize).copied().ok_or_else(not_an_assignment));
            class_of_line.push(class.unwrap_or(Ok(SUPPRESSED))?);
        }
        held.at_least(of_rows + reader.bytes())?;
        let (columns, lines) = (reader.columns, Lines::OfRows(lines.names.clone(), line_of_row));
        Ok(Self { columns, lines_show, is_of_earlier: false, lines, class_of_line, _held: held })
    }

    /// Returns an assignment that says which rows are shown; their labels are those of their values.
    ///
    /// # Errors
    /// An unmet error if a row is there twice, a data error when memory runs out.
    pub(crate) fn of_shown_rows(lines: &RowLines, ends: Ends, budget: &Arc<dyn Budget>) -> Result<Self> {
        let nothing = RowLines {
            names: lines.names.clone(),
            classes: vec![Vec::new()],
            are_earlier: vec![true],
            rows: lines.rows.iter().map(|(row, class)| (*row, class.map(|_| 0))).collect(),
        };
        Self::of_rows(&nothing, Vec::new(), ends, budget)
    }

    /// Returns whether it says what classes show.
    pub(crate) fn has_labels(&self) -> bool {
        !self.columns.is_empty()
    }

    /// Returns how rows are named, where the lines are of rows.
    pub(crate) fn row_names(&self) -> Option<&RowNames> {
        if let Lines::OfRows(names, _) = &self.lines { Some(names) } else { None }
    }

    /// Returns the number of classes.
    pub(crate) fn classes(&self) -> usize {
        self.columns.first().map_or(0, |column| column.shown_by_class.len())
    }

    /// Returns the different texts that a quasi-identifier shows, with their regions, and the index
    /// of what each class shows.
    pub(crate) fn shown(&self, column: usize) -> (&[(Option<String>, RegionLabel)], &[u32]) {
        let Column { shown, shown_by_class, .. } = &self.columns[column];
        (shown, shown_by_class)
    }

    /// Returns the class of the rows with these level-0 labels, or that they are suppressed; `None`
    /// if there is no such row.
    pub(crate) fn class_of<'a>(&self, values: impl Iterator<Item = Option<&'a str>>) -> Option<Option<u32>> {
        let numbers = self.columns.iter().zip(values).map(|(column, value)| column.values.find(value));
        let key: Vec<u32> = numbers.collect::<Option<_>>()?;
        let Lines::OfValues(lines) = &self.lines else { return None };
        let line = *lines.get(&key[..])?;
        Some(Some(self.class_of_line[line as usize]).filter(|class| *class != SUPPRESSED))
    }

    /// Returns the number of a level-0 label among those of a quasi-identifier; `None` if no line has it.
    pub(crate) fn number_of(&self, column: usize, label: Option<&str>) -> Option<u32> {
        self.columns[column].values.find(label)
    }

    /// Returns the lines of kept rows: the numbers of their level-0 labels, and their class. Lines of rows have none.
    pub(crate) fn kept_lines(&self) -> impl Iterator<Item = (&[u32], u32)> {
        let lines = if let Lines::OfValues(lines) = &self.lines { Some(lines) } else { None };
        let lines =
            lines.into_iter().flatten().map(|(labels, line)| (&**labels, self.class_of_line[*line as usize]));
        lines.filter(|(_, class)| *class != SUPPRESSED)
    }

    /// Returns for each quasi-identifier the number of the label of every class among `labels`.
    pub(crate) fn label_numbers(&self, labels: &[&Labels]) -> Result<Vec<Arc<Vec<u32>>>> {
        let numbers = self.columns.iter().zip(labels).map(|(column, labels)| {
            let value = |text: &Option<String>| text.clone().map_or(Value::Null, Value::Text);
            let numbers = labels.number(column.shown.iter().map(|(text, _)| value(text)).collect())?;
            Ok(Arc::new(column.shown_by_class.iter().map(|shown| numbers[*shown as usize]).collect()))
        });
        numbers.collect()
    }
}

fn not_an_assignment() -> Error {
    Error::unmet("verification refused: the private record's assignment is damaged or of another release")
}

struct Reader {
    lines_show: LinesShow,
    columns: Vec<Column>,
    lines: HashMap<Box<[u32]>, u32>,
    class_of_line: Vec<u32>,
    /// The shown texts.
    shown: Vec<Texts>,
    /// The classes, by the numbers of what they show.
    classes: HashMap<Box<[u32]>, u32>,
}

impl Reader {
    fn new(hierarchies: Vec<Hierarchy>, lines_show: LinesShow) -> Self {
        let shown = hierarchies.iter().map(|_| Texts::default()).collect();
        let column = |hierarchy| Column {
            hierarchy,
            values: Texts::default(),
            shown: Vec::new(),
            are_earlier: Vec::new(),
            shown_by_class: Vec::new(),
        };
        let columns = hierarchies.into_iter().map(column).collect();
        let (lines, classes) = (HashMap::new(), HashMap::new());
        Self { lines_show, columns, lines, class_of_line: Vec::new(), shown, classes }
    }

    fn read(mut self, bytes: Bytes, held: &mut Held) -> Result<Self> {
        // Texts as texts, whatever the file says of dictionaries, and few lines at a time, because
        // what a class shows may be long.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, options);
        let reader = reader.and_then(|reader| reader.with_batch_size(BATCH_LINES).build());
        for batch in reader.map_err(|_| not_an_assignment())? {
            let batch = batch.map_err(|_| not_an_assignment())?;
            let (kept, texts) = self.split(&batch).ok_or_else(not_an_assignment)?;
            let (values, shown) = texts.split_at(self.columns.len());
            for row in 0..batch.num_rows() {
                self.add_line(kept.value(row), values, shown, row)?;
            }
            held.at_least(self.bytes())?;
        }
        Ok(self)
    }

    /// Returns the column `kept` and all texts of a batch with the right columns.
    fn split<'a>(&self, batch: &'a RecordBatch) -> Option<(&'a BooleanArray, Vec<&'a StringArray>)> {
        let names = ["value", "shown"]
            .into_iter()
            .flat_map(|name| (0..self.columns.len()).map(move |at| format!("{name}_{at}")));
        let names: Vec<String> = std::iter::once("kept".to_owned()).chain(names).collect();
        let schema = batch.schema();
        if !schema.fields().iter().map(|field| field.name()).eq(&names) {
            return None;
        }
        let (kept, texts) = batch.columns().split_first()?;
        let kept = kept.as_boolean_opt().filter(|kept| kept.null_count() == 0)?;
        Some((kept, texts.iter().map(|text| text.as_string_opt::<i32>()).collect::<Option<_>>()?))
    }

    fn add_line(
        &mut self,
        kept: bool,
        values: &[&StringArray],
        shown: &[&StringArray],
        row: usize,
    ) -> Result<()> {
        let mut key = Vec::with_capacity(values.len());
        for (column, array) in self.columns.iter_mut().zip(values) {
            key.push(column.values.number(text(array, row))?);
        }
        let line = u32::try_from(self.class_of_line.len()).map_err(|_| not_an_assignment())?;
        if self.lines.insert(key.into(), line).is_some() {
            return Err(Error::unmet(
                "verification refused: the private record assigns a combination of values twice",
            ));
        }
        if !kept {
            self.class_of_line.push(SUPPRESSED);
            // Nothing about suppressed rows is shown anywhere.
            return if shown.iter().all(|array| array.is_null(row)) {
                Ok(())
            } else {
                Err(not_an_assignment())
            };
        }
        let class = self.class(shown.iter().map(|array| text(array, row)), false)?;
        self.class_of_line.push(class);
        Ok(())
    }

    /// Returns the number of a class by what it shows; a new one is the next.
    fn class<'t>(&mut self, shown: impl Iterator<Item = Option<&'t str>>, is_earlier: bool) -> Result<u32> {
        let mut class = Vec::with_capacity(self.columns.len());
        for ((column, texts), text) in self.columns.iter_mut().zip(&mut self.shown).zip(shown) {
            let number = texts.number(text)?;
            if number as usize == column.shown.len() {
                let region = column.region(text, self.lines_show)?;
                column.shown.push((text.map(str::to_owned), region));
                column.are_earlier.push(false);
            }
            column.are_earlier[number as usize] |= is_earlier;
            class.push(number);
        }
        let next = u32::try_from(self.classes.len()).ok().filter(|class| *class < SUPPRESSED);
        let next = next.ok_or_else(not_an_assignment)?;
        let known = self.classes.get(&class[..]).copied();
        if known.is_none() {
            self.columns
                .iter_mut()
                .zip(&class)
                .for_each(|(column, shown)| column.shown_by_class.push(*shown));
            self.classes.insert(class.into(), next);
        }
        Ok(known.unwrap_or(next))
    }

    fn bytes(&self) -> usize {
        let key = size_of::<Box<[u32]>>() + (self.columns.len() + 2) * size_of::<u32>();
        let of_column = |column: &Column| {
            column.values.bytes()
                + column.shown.capacity() * size_of::<(Option<String>, RegionLabel)>()
                + column.shown_by_class.capacity() * size_of::<u32>()
        };
        (self.lines.capacity() + self.classes.capacity()) * key
            + self.class_of_line.capacity() * size_of::<u32>()
            + self.columns.iter().map(of_column).sum::<usize>()
            // Column::shown has each text once more.
            + self.shown.iter().map(Texts::bytes).sum::<usize>() * 2
    }
}

fn text(array: &StringArray, row: usize) -> Option<&str> {
    array.is_valid(row).then(|| array.value(row))
}

/// Texts in order of arrival, with NULL among them.
#[derive(Default)]
pub(super) struct Texts {
    numbers: HashMap<String, u32>,
    missing: Option<u32>,
    /// The bytes of all texts.
    length: usize,
}

impl Texts {
    /// Returns the number of a text; a new one is the next.
    fn number(&mut self, text: Option<&str>) -> Result<u32> {
        let next = self.numbers.len() + usize::from(self.missing.is_some());
        let next = u32::try_from(next).map_err(|_| not_an_assignment())?;
        let Some(text) = text else { return Ok(*self.missing.get_or_insert(next)) };
        let number = *self.numbers.entry_ref(text).or_insert(next);
        self.length += if number == next { text.len() } else { 0 };
        Ok(number)
    }

    /// Returns the number of a known text.
    pub(super) fn find(&self, text: Option<&str>) -> Option<u32> {
        text.map_or(self.missing, |text| self.numbers.get(text).copied())
    }

    fn bytes(&self) -> usize {
        self.numbers.capacity() * (size_of::<(String, u32)>() + 1) + self.length
    }
}

impl Column {
    /// Returns the region of a text, which must be its canonical one. That of a centroid is the value alone.
    fn region(&self, text: Option<&str>, lines_show: LinesShow) -> Result<RegionLabel> {
        let (data_type, hierarchy) = (self.hierarchy.input_type(), &self.hierarchy);
        let region = match lines_show {
            LinesShow::Regions(_) => RegionLabel::parse_canonical(text, data_type, hierarchy.has_intervals()),
            LinesShow::Centroids(centroid) => {
                let shown_type = centroid.for_column(hierarchy).output_type(data_type);
                RegionLabel::of_centroid(text, &shown_type)
            }
        };
        let what = if let LinesShow::Regions(_) = lines_show { "its region" } else { "a centroid" };
        region.ok_or_else(|| {
            Error::unmet(format!("verification refused: a label is not the canonical text of {what}"))
        })
    }
}
