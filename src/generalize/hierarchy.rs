//! `hierarchy`: a value becomes the label that a file assigns to it.
//!
//! `f(v) = column i of v's row`. A file has one row per value: the value, then its labels, finest
//! first (`divorced;was married;*`). This is the value generalization hierarchy of
//! [`papers::SWEENEY_2002`]. Files are CSV, such as those of ARX, or Parquet; a Parquet file of
//! exactly the columns `value`, `level` and `label` has one row for each value and level instead,
//! with levels counted from 1 (rows of level 0, the value itself, are skipped).
//!
//! # Contract
//! Any type in, matched on its [text form](Value::text_form) exactly (no trimming, no case
//! folding), `Utf8View` out. NULL stays NULL, the empty text is a value like any other. Every value
//! needs a row: values without one are refused and counted. A file is a tree: values are unique,
//! and labels that are equal in one column are equal in the next. Rows whose value never occurs are
//! valid, but count as leaves. If all rows of the last column share one label, that is the
//! hierarchy's top. Not monotone. The file itself is not a secret of the data, but a label with one
//! value below it hides nothing.
//!
//! ```
//! use datafusion_kanon::extend::{Generalizer, Value};
//! use datafusion_kanon::internals::generalize::hierarchy;
//! let file = "marital,level 1,level 2\ndivorced,alone,*\nwidowed,alone,*\nmarried,married,*\n";
//! let levels = hierarchy::ROW.of(hierarchy::parse_csv(file, "marital")?)?;
//! assert_eq!(levels[0].generalize_value(&Value::Text("widowed".into()))?, Value::Text("alone".into()));
//! assert_eq!(levels[0].generalize_value(&Value::Null)?, Value::Null);
//! assert_eq!(levels[1].generalize_value(&Value::Null)?, Value::Text("*".into())); // the top
//! assert!(levels[0].generalize_value(&Value::Text("Widowed".into())).is_err());
//! # Ok::<(), datafusion_kanon::Error>(())
//! ```

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::DataType;
use hashbrown::{HashMap, HashSet};

use super::hierarchy_file::check;
pub use super::hierarchy_file::{
    csv_of_batches, csv_of_rows, first_cell, has_open_quote, has_quote_inside, is_table, parse_csv,
    parse_table, table_of_batches,
};
use super::value::{SUPPORTED, is_supported, unsupported};
use super::{Descriptor, Generalizer, GeneralizerRow, Value, text_forms};
use crate::doc::Doc;
use crate::error::{Error, Result};
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter, Settings, TextTable};
use crate::plural::plural;

/// The row of [`GENERALIZERS`](super::GENERALIZERS) for this generalizer.
pub const ROW: GeneralizerRow = GeneralizerRow {
    doc: &Doc {
        name: "hierarchy",
        summary: "maps a value to its label in a hierarchy file",
        parameters: "file",
        example: "hierarchy = { file = \"marital.csv\" }",
        paper: Some(papers::SWEENEY_2002),
    },
    key: Some("file"),
    parameters: &[Parameter {
        name: "file",
        kind: Kind::File,
        absent: Absent::Refused,
        summary: "one row per value: the value, then its labels, finest first",
    }],
    levels,
};

fn levels(settings: &Settings) -> Result<Vec<Arc<dyn Generalizer>>> {
    let file = settings.table("file")?;
    check(file.rows(), |row| format!("row {}", row + 1))?;
    let table = Arc::new(Table::new(file, None)?);
    let top = match table.levels.last().map(|level| level.leaves.keys().collect::<Vec<_>>()).as_deref() {
        Some([label]) => Some((*label).clone()),
        _ => None,
    };
    let last = table.levels.len();
    let level = |level: usize| {
        let top = top.clone().filter(|_| level == last);
        Arc::new(HierarchyLevel { level, table: Arc::clone(&table), top }) as Arc<dyn Generalizer>
    };
    Ok((1..=last).map(level).collect())
}

/// Returns the levels of a checked tree of [`merge`](super::merge), whose first labels are those of level 0.
pub(super) fn merged_levels(tree: &TextTable, other: &str) -> Result<Vec<Arc<dyn Generalizer>>> {
    let table = Arc::new(Table::new(tree, Some(other.to_owned()))?);
    let level = |level| {
        Arc::new(HierarchyLevel { level, table: Arc::clone(&table), top: None }) as Arc<dyn Generalizer>
    };
    Ok((1..=table.levels.len()).map(level).collect())
}

/// A checked hierarchy file, or a tree of [`merge`](super::merge).
struct Table {
    /// The row number of each value, for columns: depth first through the tree, siblings in the order
    /// of their first lines in the file.
    rows: HashMap<String, u32>,
    /// The labels of level 1 and up.
    levels: Vec<Labels>,
    /// All labels of each value, for one value at a time and for comparing tables.
    paths: BTreeMap<String, Vec<String>>,
    /// The value whose labels all values without a row have. Only a tree of `merge` has one.
    other: Option<String>,
    /// What errors say of how the file was divided.
    doubt: &'static str,
}

struct Labels {
    /// The label of each row.
    of_rows: StringViewArray,
    /// The first row with the label of each row: a number for each label.
    numbers: UInt32Array,
    /// The number of rows of each label.
    leaves: HashMap<String, u64>,
}

impl Table {
    /// Creates the table from [checked](check) rows.
    fn new(table: &TextTable, other: Option<String>) -> Result<Self> {
        let rows = depth_first(table.rows());
        let paths = rows
            .iter()
            .filter_map(|cells| cells.split_first())
            .map(|(v, labels)| (v.clone(), labels.to_vec()));
        let mut numbers = HashMap::with_capacity(rows.len());
        for (row, value) in rows.iter().filter_map(|cells| cells.first()).enumerate() {
            numbers.insert(value.clone(), u32::try_from(row).map_err(|_| Error::policy("too many rows"))?);
        }
        let columns = rows.first().map_or(0, |cells| cells.len());
        let levels = (1..columns).map(|level| {
            let labels = || rows.iter().filter_map(move |cells| cells.get(level));
            let mut leaves = HashMap::new();
            labels().for_each(|label| *leaves.entry(label.clone()).or_insert(0) += 1);
            let mut firsts = HashMap::new();
            let numbers = labels().zip(0..).map(|(label, row)| *firsts.entry(label).or_insert(row)).collect();
            Labels { of_rows: StringViewArray::from_iter_values(labels()), numbers, leaves }
        });
        let (levels, paths, doubt) = (levels.collect(), paths.collect(), table.doubt());
        Ok(Self { levels, paths, rows: numbers, other, doubt })
    }

    /// Returns the row with a value's labels.
    fn row(&self, value: &str) -> Option<u32> {
        self.rows.get(value).or_else(|| self.rows.get(self.other.as_ref()?)).copied()
    }

    /// Returns a value's labels.
    fn path(&self, value: &str) -> Option<&Vec<String>> {
        self.paths.get(value).or_else(|| self.paths.get(self.other.as_ref()?))
    }
}

/// Returns the rows of a tree depth first, with siblings in the order of their first rows.
fn depth_first(rows: &[Vec<String>]) -> Vec<&Vec<String>> {
    let mut ordered: Vec<&Vec<String>> = rows.iter().collect();
    // Sorting by the finest level first and stably by each coarser one keeps every subtree together.
    for level in 1..rows.first().map_or(0, Vec::len) {
        let mut first_rows: HashMap<&String, usize> = HashMap::new();
        for (number, label) in rows.iter().filter_map(|cells| cells.get(level)).enumerate() {
            first_rows.entry(label).or_insert(number);
        }
        ordered.sort_by_key(|cells| cells.get(level).and_then(|label| first_rows.get(label)));
    }
    ordered
}

/// One column of a hierarchy file: the generalizer that the [module](self) describes.
#[derive(Clone)]
pub struct HierarchyLevel {
    /// The column; column 0 holds the values.
    level: usize,
    table: Arc<Table>,
    /// The label, if all rows share it: the top of the file, which NULL gets too.
    top: Option<String>,
}

/// Shows no labels, because they are cells of the file.
impl fmt::Debug for HierarchyLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, levels) = (self.table.rows.len(), self.table.levels.len());
        write!(f, "HierarchyLevel({} of {levels}, {rows} rows)", self.level)
    }
}

impl PartialEq for HierarchyLevel {
    fn eq(&self, other: &Self) -> bool {
        self.level == other.level && self.same_table(other)
    }
}

impl Eq for HierarchyLevel {}

impl HierarchyLevel {
    fn same_table(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.table, &other.table) || self.table.paths == other.table.paths
    }

    fn not_covered(&self, count: usize) -> Error {
        if self.table.other.is_some() {
            return Error::data("the input has changed since its values were counted");
        }
        let values = plural(count as u64, "distinct value is", "distinct values are");
        let (it, doubt) = (if count == 1 { "it" } else { "each" }, self.table.doubt);
        Error::data(format!("{values} not in the hierarchy file{doubt}; add a line for {it}"))
    }

    /// Returns the row of each value; NULL has none.
    fn rows(&self, values: &ArrayRef) -> Result<UInt32Array> {
        let texts = plain_texts(values)?;
        let rows: UInt32Array = texts.iter().map(|text| self.table.row(text?)).collect();
        if rows.null_count() > texts.null_count() {
            let missing = texts.iter().flatten().filter(|text| self.table.row(text).is_none());
            return Err(self.not_covered(missing.collect::<HashSet<&str>>().len()));
        }
        Ok(rows)
    }

    fn labels(&self) -> Result<&Labels> {
        let index = self.level.checked_sub(1);
        index
            .and_then(|i| self.table.levels.get(i))
            .ok_or_else(|| Error::internal("hierarchy: no such level"))
    }
}

/// Looks up what each row has.
fn of_rows(of_rows: &dyn Array, rows: &UInt32Array) -> Result<ArrayRef> {
    take(of_rows, rows, None).map_err(|_| Error::internal("hierarchy: a row has no label"))
}

/// Returns the text forms of values in any encoding.
fn plain_texts(values: &ArrayRef) -> Result<StringViewArray> {
    let unpacked =
        |to: &DataType| cast(values, to).map_err(|_| Error::internal("hierarchy: values cannot be unpacked"));
    match values.data_type() {
        DataType::Dictionary(_, plain) => plain_texts(&unpacked(plain)?),
        other if other.is_string() => Ok(unpacked(&DataType::Utf8View)?.as_string_view().clone()),
        _ => text_forms(values),
    }
}

impl Generalizer for HierarchyLevel {
    fn descriptor(&self) -> Descriptor {
        match &self.table.other {
            _ if self.is_top() => Descriptor::suppress(),
            Some(other) => {
                let is_shown = self.labels().is_ok_and(|labels| labels.leaves.contains_key(other));
                Descriptor::of_merge(self.level - 1, is_shown.then_some(other))
            }
            None => Descriptor::of_file(self.level),
        }
    }

    fn is_top(&self) -> bool {
        self.top.is_some()
    }

    fn output_type(&self, input: &DataType) -> Result<DataType> {
        if is_supported(input) { Ok(DataType::Utf8View) } else { Err(unsupported(input, SUPPORTED)) }
    }

    fn keeps_order(&self, _input: &DataType) -> bool {
        false
    }

    fn generalize(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let rows = self.rows(values)?;
        if let Some(top) = &self.top {
            return Ok(Arc::new(StringViewArray::from_iter_values(std::iter::repeat_n(top, values.len()))));
        }
        of_rows(&self.labels()?.of_rows, &rows)
    }

    /// Returns the numbers of the labels; the top's is 0.
    fn codes(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let rows = self.rows(values)?;
        match self.is_top() {
            true => Ok(Arc::new(UInt32Array::from_value(0, values.len()))),
            false => of_rows(&self.labels()?.numbers, &rows),
        }
    }

    fn generalize_value(&self, value: &Value) -> Result<Value> {
        let Some(text) = value.text_form() else {
            return Ok(self.top.clone().map_or(Value::Null, Value::Text));
        };
        let path = self.table.path(&text).ok_or_else(|| self.not_covered(1))?;
        let label =
            path.get(self.level - 1).ok_or_else(|| Error::internal("hierarchy: a value has no label"))?;
        Ok(Value::Text(label.clone()))
    }

    fn is_label(&self, value: &Value) -> bool {
        match value {
            Value::Null => !self.is_top(),
            Value::Text(text) => self.labels().is_ok_and(|labels| labels.leaves.contains_key(text)),
            _ => false,
        }
    }

    fn check_coarsens(&self, finer: &dyn Generalizer) -> Result<(), String> {
        match (finer as &dyn Any).downcast_ref::<HierarchyLevel>() {
            Some(finer) if !self.same_table(finer) => Err("they come from different hierarchy files".into()),
            Some(finer) if self.level <= finer.level => {
                Err("a coarser column is further to the right".into())
            }
            Some(_) => Ok(()),
            None => Err("a hierarchy file can only follow itself".into()),
        }
    }

    fn uncovered(&self, values: &ArrayRef) -> Result<Vec<usize>> {
        let texts = plain_texts(values)?;
        let missing = |text: Option<&str>| text.is_some_and(|text| self.table.row(text).is_none());
        Ok(texts.iter().enumerate().filter(|(_, text)| missing(*text)).map(|(row, _)| row).collect())
    }

    fn leaf_positions(&self, values: &ArrayRef) -> Result<Option<UInt32Array>> {
        let texts = plain_texts(values)?;
        Ok(Some(texts.iter().map(|text| self.table.row(text?)).collect()))
    }

    fn all_leaves(&self) -> Option<u64> {
        Some(self.table.paths.len() as u64)
    }

    fn leaves(&self, labels: &ArrayRef) -> Option<Vec<u64>> {
        if self.is_top() {
            return None;
        }
        let (known, texts) = (self.labels().ok()?, plain_texts(labels).ok()?);
        Some(
            texts
                .iter()
                .map(|text| text.map_or(1, |text| known.leaves.get(text).copied().unwrap_or(0)))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{BooleanArray, Date32Array, Float32Array, Int64Array, StringArray};
    use proptest::prelude::*;

    use super::*;
    use crate::generalize::laws_tests::agree;
    use crate::generalize::{Hierarchy, apply};

    fn levels_of(file: &str) -> Result<Vec<Arc<dyn Generalizer>>> {
        ROW.of(parse_csv(file, "marital")?)
    }

    fn refused(file: &str) -> String {
        levels_of(file).unwrap_err().to_string()
    }

    fn views<const N: usize>(labels: [&str; N]) -> ArrayRef {
        Arc::new(StringViewArray::from_iter_values(labels))
    }

    const MARITAL: &str = "marital;one;two;top\ndivorced;alone;adult;*\nwidowed;alone;adult;*\n\
                           married;married;adult;*\n;unknown;unknown;*\n";

    #[test]
    fn labels_by_hand() {
        let levels = levels_of(MARITAL).unwrap();
        let values: ArrayRef = Arc::new(StringArray::from(vec!["widowed", "divorced", "", "married"]));
        assert_eq!(&agree(&*levels[0], &values).unwrap(), &views(["alone", "alone", "unknown", "married"]));
        assert_eq!(&agree(&*levels[1], &values).unwrap(), &views(["adult", "adult", "unknown", "adult"]));
        assert_eq!(&apply(&*levels[2], &values).unwrap(), &views(["*"; 4]));
        let labels: Vec<String> = levels.iter().map(|level| level.descriptor().to_string()).collect();
        assert_eq!(labels, ["hierarchy:1", "hierarchy:2", "suppress"]);
        assert_eq!(Hierarchy::new(&DataType::Utf8, levels).unwrap().height(), 3);
        // The top is added unless the last column has a single label.
        assert_eq!(Hierarchy::new(&DataType::Utf8, levels_of("a,1\nb,2\n").unwrap()).unwrap().height(), 2);
    }

    #[test]
    fn leaves_are_rows_of_the_file() {
        let levels = levels_of(MARITAL).unwrap();
        let labels: ArrayRef = Arc::new(StringViewArray::from(vec![Some("alone"), None, Some("married")]));
        assert_eq!(levels[0].leaves(&labels).unwrap(), [2, 1, 1]);
        assert!(!levels[0].keeps_order(&DataType::Utf8View));
        assert!(
            levels[0].is_label(&Value::Text("alone".into()))
                && !levels[0].is_label(&Value::Text("adult".into()))
        );
    }

    #[test]
    fn uncovered_values_are_counted_and_not_shown() {
        let levels = levels_of(MARITAL).unwrap();
        let level = (&*levels[0] as &dyn Any).downcast_ref::<HierarchyLevel>().unwrap();
        let values: ArrayRef = Arc::new(StringArray::from(vec![
            Some("secret"),
            Some("married"),
            None,
            Some("secret"),
            Some("other"),
            Some("Married"),
        ]));
        assert!(agree(level, &values).is_none());
        assert_eq!(level.uncovered(&values).unwrap(), [0, 3, 4, 5]);
        let stated = format!("{:?} {level:?}", apply(level, &values).unwrap_err());
        assert!(stated.contains("3 distinct values are not in the hierarchy file"), "{stated}");
        assert!(["secret", "other", "arried", "alone"].iter().all(|cell| !stated.contains(cell)), "{stated}");
    }

    #[test]
    fn files_that_are_no_tree_are_refused_by_line() {
        assert_eq!(refused("marital,x\nsecret,b\nc,d\nsecret,b\n"), "line 4 repeats the value of line 2");
        let error = refused("v,secret,p\nw,x,p\n\ny,secret,q\n");
        assert_eq!(error, "line 4 and line 1 agree at level 1 but not at level 2");
        assert_eq!(refused("a,b,c\nd,e\n"), "line 2 has 2 columns, line 1 has 3");
        assert_eq!(refused("a;b\nd,e\n"), "line 2 has 1 column, line 1 has 2");
        assert!(
            refused("").contains("at least one row") && refused("marital,x\n").contains("at least one row")
        );
        assert!(refused("a\nb\n").contains("at least two columns"));
        let rows = vec![vec!["a".to_owned(), "b".to_owned()]; 2];
        assert_eq!(
            ROW.of(TextTable::from(rows)).unwrap_err().to_string(),
            "row 2 repeats the value of row 1"
        );
    }

    #[test]
    fn values_match_by_their_text_form() {
        let level = |file: &str| levels_of(file).unwrap().remove(0);
        let columns: [(&str, ArrayRef); 4] = [
            ("-5,x\n7,y\n", Arc::new(Int64Array::from(vec![-5, 7]))),
            ("0.1,x\n1,y\n", Arc::new(Float32Array::from(vec![0.1, 1.0]))),
            ("1969-12-31,x\n1970-01-01,y\n", Arc::new(Date32Array::from(vec![-1, 0]))),
            ("true,x\nfalse,y\n", Arc::new(BooleanArray::from(vec![true, false]))),
        ];
        for (file, column) in columns {
            assert_eq!(&agree(&*level(file), &column).unwrap(), &views(["x", "y"]));
        }
    }

    #[test]
    fn levels_follow_their_own_file_only() {
        let (one, other) = (levels_of(MARITAL).unwrap(), levels_of("a,b,c\nd,e,f\n").unwrap());
        assert!(one[1].check_coarsens(&*one[0]).is_ok() && one[0].check_coarsens(&*one[1]).is_err());
        assert!(one[0].check_coarsens(&*one[0]).unwrap_err().contains("further to the right"));
        assert!(one[1].check_coarsens(&*levels_of(MARITAL).unwrap()[0]).is_ok());
        assert!(other[1].check_coarsens(&*one[0]).unwrap_err().contains("different hierarchy files"));
        let level = |level: &Arc<dyn Generalizer>| {
            (&**level as &dyn Any).downcast_ref::<HierarchyLevel>().unwrap().clone()
        };
        assert_eq!(level(&one[0]), level(&levels_of(MARITAL).unwrap()[0]));
        assert!(level(&one[0]) != level(&one[1]) && level(&one[0]) != level(&other[0]));
    }

    proptest! {
        #[test]
        fn files_agree_and_nest(
            parents in prop::collection::vec((0usize..4, 0usize..3), 1..12),
            picks in prop::collection::vec(prop::option::of(0usize..14), 0..20),
        ) {
            // Value i has label a, whose grandparent is that of the first row with label a.
            let grandparent = |a: usize| parents.iter().find(|(b, _)| *b == a).map(|(_, g)| *g).unwrap();
            let rows = parents.iter().enumerate();
            let rows = rows.map(|(i, (a, _))| vec![format!("v{i}"), format!("a{a}"), format!("g{}", grandparent(*a))]);
            let levels = ROW.of(TextTable::from(rows.collect::<Vec<_>>())).unwrap();
            let values = picks.iter().map(|pick| pick.map(|i| format!("v{i}")));
            let values: ArrayRef = Arc::new(values.collect::<StringArray>());
            let fine = agree(&*levels[0], &values);
            prop_assert_eq!(fine.is_some(), picks.iter().flatten().all(|i| *i < parents.len()));
            if let (Some(fine), Some(coarse)) = (fine, levels.get(1).filter(|l| l.descriptor().to_string() == "hierarchy:2")) {
                let coarse = agree(&**coarse, &values).unwrap();
                let mut parent = HashMap::new();
                for (a, g) in fine.as_string_view().iter().zip(coarse.as_string_view().iter()) {
                    prop_assert_eq!(*parent.entry(a).or_insert(g), g);
                }
            }
        }
    }

    #[test]
    fn a_file_of_one_label_covers_only_its_values() {
        let levels = levels_of("f,female").unwrap();
        assert_eq!((levels.len(), levels[0].is_top(), levels[0].all_leaves()), (1, true, Some(1)));
        let known: ArrayRef = Arc::new(StringArray::from(vec![Some("f"), None]));
        let labels = apply(&*levels[0], &known).unwrap();
        assert_eq!(labels.as_string_view().iter().collect::<Vec<_>>(), [Some("female"); 2]);
        let other: ArrayRef = Arc::new(StringArray::from(vec!["f", "m"]));
        assert!(
            apply(&*levels[0], &other).is_err()
                && levels[0].generalize_value(&Value::Text("m".into())).is_err()
        );
        let hierarchy = Hierarchy::new(&DataType::Utf8View, levels).unwrap();
        assert_eq!(hierarchy.height(), 1);
    }
}
