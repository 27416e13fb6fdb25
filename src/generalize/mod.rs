//! Generalizers: functions from values to coarser ones.
//!
//! Each file is one generalizer, and each row of [`GENERALIZERS`] names one. A generalizer is one
//! level of one column's hierarchy; [`Hierarchy`] holds the ordered levels. Everything that loops
//! over generalizers (policy keys, SQL functions `generalize_<name>`, `kanon list`, the laws) loops
//! over that table.
//!
//! A [`clip`] belongs to level 0. Everything counts from level 0 (leaves, base classes, entropy), so level 0 is
//! the value after the clip, and every other level cuts its own intervals at the ends. A composition of
//! functions would give `[80,100)` where `[80,90)` and `>=90` are meant.
//!
//! Every generalizer keeps these promises, which `tests/it/laws.rs` attacks:
//! - NULL in, NULL out (only the top level, [`suppress`], maps NULL to its one label);
//! - the columnar [`Generalizer::generalize`] and the naive [`Generalizer::generalize_value`] agree
//!   on every value;
//! - the [codes](Generalizer::codes) of two values are equal exactly where their labels are;
//! - a coarser level is a function of the finer one that it [follows](Generalizer::check_coarsens);
//! - the type of the result depends on the input type, never on the parameter.

mod bounds;
pub mod centroid;
mod civil;
mod decimal_steps;
mod descriptor;
mod frequent_values;
mod hierarchy_file;
mod hierarchy_of_levels;
pub mod hierarchy_rows;
pub mod hierarchy_shape;
mod interval_number;
#[cfg(test)]
mod known_tests;
#[cfg(test)]
mod laws_tests;
mod naive_bounds;
pub mod region_label;
mod restore;
mod tidy_hierarchy;
pub mod value;
mod value_runs;
mod zone;

pub mod bands;
pub mod clip;
pub mod date;
pub mod floor;
pub mod hierarchy;
pub mod known;
pub mod merge;
pub mod period;
pub mod prefix;
pub mod range;
pub mod suppress;

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::DataType;
use arrow_select::dictionary::garbage_collect_any_dictionary;

pub use centroid::Centroid;
use clip::Clip;
pub use descriptor::{Descriptor, DescriptorError};
pub use hierarchy_of_levels::{AsIs, Hierarchy};
#[cfg(feature = "engine")]
pub(crate) use region_label::compare;
pub use region_label::{Ends, RegionLabel};
pub use value::Value;

use crate::decimal::Decimal;
use crate::doc::{Doc, OwnRows};
use crate::error::{Error, Result};
use crate::parameter::{Absent, Kind, Parameter, Setting, Settings};

/// One level: a function from a column's values to coarser ones.
pub trait Generalizer: Any + Debug + Send + Sync {
    /// Returns the descriptor, for example that of `range:10`. A release writes it into its record,
    /// and its text into the field's metadata.
    fn descriptor(&self) -> Descriptor;

    /// Returns the type of the result for values of type `input`.
    ///
    /// # Errors
    /// A data error when values of that type cannot be generalized this way.
    fn output_type(&self, input: &DataType) -> Result<DataType>;

    /// Returns whether this level gives every value, NULL too, the same label. By default
    /// it does not.
    fn is_top(&self) -> bool {
        false
    }

    /// Returns whether `a <= b` implies `f(a) <= f(b)` for values of type `input`, in the engine's
    /// sort order: NaN above and -NaN below all numbers, -0.0 below 0.0; NULL keeps its place.
    fn keeps_order(&self, input: &DataType) -> bool;

    /// Returns the end of the values that become `label`: `f(v) = label` exactly when
    /// `label <= v < end`, and labels have the order of the values. `None` if that does not hold or
    /// is not certain, as by default: filters then prune nothing. An end may lie beyond the type.
    fn preimage_end(&self, _input: &DataType, _label: &Value) -> Option<Value> {
        None
    }

    /// Generalizes a column. Text must arrive as `Utf8View`, never as a dictionary: call it through
    /// [`apply`].
    ///
    /// # Errors
    /// A data error when values are not covered or overflow; it counts them and shows none.
    fn generalize(&self, values: &ArrayRef) -> Result<ArrayRef>;

    /// Codes a column: the codes of two values, of one column or of two of the same type, are equal
    /// exactly where their labels are (NULL equals NULL, floats by their bits). Codes are cheaper to
    /// make than labels and say nothing else: a label can be NULL where its code is not. Their type
    /// depends on this level and on the type of `values`, never on the values. The values arrive as
    /// in [`generalize`](Self::generalize). By default the codes are the labels.
    ///
    /// # Errors
    /// The errors of [`generalize`](Self::generalize), on the same values.
    fn codes(&self, values: &ArrayRef) -> Result<ArrayRef> {
        self.generalize(values)
    }

    /// Generalizes one value naively: the oracle of [`Generalizer::generalize`].
    ///
    /// # Errors
    /// The errors of [`Generalizer::generalize`].
    fn generalize_value(&self, value: &Value) -> Result<Value>;

    /// Returns whether `value` can be a result of this level; NULL always can.
    fn is_label(&self, value: &Value) -> bool;

    /// Checks that this level is a function of `finer`'s results.
    ///
    /// # Errors
    /// The reason as text, without a place.
    fn check_coarsens(&self, finer: &dyn Generalizer) -> Result<(), String>;

    /// Returns the same level for a column whose numbers are clipped. By default this is refused.
    ///
    /// # Errors
    /// A policy error if this level does not work on plain numbers.
    fn clipped(&self, _clip: &Clip) -> Result<Arc<dyn Generalizer>> {
        Err(Error::policy("only numbers can be clipped: alone, or with `range`, `bands` or `floor`"))
    }

    /// Returns the same function with labels padded so that the labels of `released` (results of
    /// this level) sort as text like the values; `None` if labels are not padded, as by default. The width comes from the
    /// kept classes alone: the width of all labels would reveal the magnitude of a suppressed outlier.
    fn with_label_width(&self, _released: &ArrayRef) -> Option<Arc<dyn Generalizer>> {
        None
    }

    /// Returns the positions of the values that this level does not cover, each distinct value
    /// once. By default it covers all.
    ///
    /// # Errors
    /// A data error for unsupported types.
    fn uncovered(&self, _values: &ArrayRef) -> Result<Vec<usize>> {
        Ok(Vec::new())
    }

    /// Returns how many leaves (rows of a hierarchy file) are below each label of `labels`, or
    /// `None`, as by default, when the level does not enumerate its leaves and the distinct input values are the
    /// leaves.
    fn leaves(&self, _labels: &ArrayRef) -> Option<Vec<u64>> {
        None
    }

    /// Returns the position of each value in the order of the leaves (depth first through the
    /// hierarchy file), if the level enumerates its leaves. NULL, and values that are not covered,
    /// have no position.
    ///
    /// # Errors
    /// An internal error for values that cannot be read as text.
    fn leaf_positions(&self, _values: &ArrayRef) -> Result<Option<UInt32Array>> {
        Ok(None)
    }

    /// Returns the number of all leaves (rows of the hierarchy file), if the level enumerates them.
    fn all_leaves(&self) -> Option<u64> {
        None
    }
}

/// The origin of intervals.
pub(crate) const ORIGIN: Parameter = Parameter {
    name: "origin",
    kind: Kind::Number,
    absent: Absent::Means(Setting::Number(Decimal::integer(0))),
    summary: "where intervals begin",
};

/// A row of [`GENERALIZERS`], or a generalizer of the program's own.
pub struct GeneralizerRow {
    /// Name and documentation.
    pub doc: &'static Doc,
    /// The key in a policy's `hierarchy = { key = ... }`, if policies may use it: its value sets
    /// the first parameter, which has one entry per level or is a file.
    pub key: Option<&'static str>,
    /// The parameters; a SQL call has them in this order, after the value. In a policy, those after
    /// the first stand next to the key under their own names and apply to all levels, `hierarchy =
    /// { range = [10, 20], origin = 5 }`.
    pub parameters: &'static [Parameter],
    /// Makes the levels above level 0, finest first, and validates what the parameters' kinds do
    /// not; nothing validates them later.
    pub levels: MakeLevels,
}

/// A function that makes the levels of a hierarchy from its settings.
pub type MakeLevels = fn(&Settings) -> Result<Vec<Arc<dyn Generalizer>>>;

impl GeneralizerRow {
    /// Makes the levels with these settings; the other parameters are left out.
    ///
    /// # Errors
    /// A policy error for a setting that is wrong or missing.
    pub fn with(&self, given: &[(String, Setting)]) -> Result<Vec<Arc<dyn Generalizer>>> {
        (self.levels)(&Settings::by_name(self.doc, self.parameters, given)?)
    }

    /// Makes the levels with this setting of the first parameter; the others are left out.
    ///
    /// # Errors
    /// As [`with`](Self::with).
    pub fn of(&self, first: impl Into<Setting>) -> Result<Vec<Arc<dyn Generalizer>>> {
        let named = self.parameters.first().map(|parameter| (parameter.name.to_owned(), first.into()));
        self.with(named.as_slice())
    }

    /// Returns the parameters that may be left out: those that a policy may have next to the key.
    pub fn options(&self) -> &'static [Parameter] {
        match (self.key, self.parameters) {
            (Some(_), [_, options @ ..]) => options,
            _ => &[],
        }
    }
}

/// All generalizers of this crate.
pub const GENERALIZERS: &[GeneralizerRow] = &[
    bands::ROW,
    clip::ROW,
    date::ROW,
    floor::ROW,
    hierarchy::ROW,
    known::ROW,
    period::ROW,
    prefix::ROW,
    range::ROW,
    suppress::ROW,
];

/// The generalizers of the program's own.
static OWN: OwnRows<GeneralizerRow> = OwnRows::none();

/// Returns whether the program has registered a row.
pub(crate) fn is_own(row: &GeneralizerRow) -> bool {
    GENERALIZERS.iter().all(|one| one.doc.name != row.doc.name)
}

/// Returns the rows of [`GENERALIZERS`], then the generalizers that the program has registered.
pub fn all() -> impl Iterator<Item = &'static GeneralizerRow> {
    GENERALIZERS.iter().chain(OWN.all())
}

/// Adds a generalizer of the program's own, which was checked.
pub(crate) fn add(row: GeneralizerRow) {
    OWN.add(Box::new(row));
}

/// Generalizes a column of any text encoding: dictionaries once per distinct value, other text as
/// `Utf8View`.
///
/// # Errors
/// The errors of [`Generalizer::generalize`].
pub fn apply(generalizer: &dyn Generalizer, values: &ArrayRef) -> Result<ArrayRef> {
    match values.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = values.as_any_dictionary();
            // Unused entries must not cause errors.
            let compact = garbage_collect_any_dictionary(dictionary).map_err(Error::internal)?;
            let (keys, distinct) = (compact.as_any_dictionary().keys(), compact.as_any_dictionary().values());
            let generalized = apply(generalizer, distinct)?;
            // NULL keys must become the label of NULL, which only the top level has.
            if keys.null_count() > 0 {
                let nulls = arrow::array::new_null_array(distinct.data_type(), values.len());
                let of_null = apply(generalizer, &nulls)?;
                let taken = take(&generalized, keys, None).map_err(Error::internal)?;
                let missing = arrow::compute::is_null(keys).map_err(Error::internal)?;
                return arrow::compute::kernels::zip::zip(&missing, &of_null, &taken)
                    .map_err(Error::internal);
            }
            take(&generalized, keys, None).map_err(Error::internal)
        }
        DataType::Utf8 | DataType::LargeUtf8 => generalizer.generalize(
            &cast(values, &DataType::Utf8View)
                .map_err(|_| Error::internal("generalize: Arrow cannot cast text to a view"))?,
        ),
        _ => generalizer.generalize(values),
    }
}

/// Returns the text form of every value, see [`Value::text_form`].
pub(crate) fn text_forms(values: &ArrayRef) -> Result<StringViewArray> {
    if values.data_type() == &DataType::Utf8View {
        return Ok(values.as_string_view().clone());
    }
    (0..values.len()).map(|row| Value::read(values, row).map(|v| v.text_form())).collect()
}

/// Applies `f` to the text form of every value.
pub(crate) fn map_text(values: &ArrayRef, f: impl Fn(&str) -> String) -> Result<ArrayRef> {
    let texts = text_forms(values)?;
    Ok(Arc::new(texts.iter().map(|t| t.map(&f)).collect::<StringViewArray>()))
}

/// Makes a level of each entry of a parameter with one entry per level.
pub(crate) fn each_level<G: Generalizer>(
    entries: &[Setting],
    level: impl Fn(&Setting) -> Result<G>,
) -> Result<Vec<Arc<dyn Generalizer>>> {
    entries.iter().map(|entry| level(entry).map(|level| Arc::new(level) as Arc<dyn Generalizer>)).collect()
}
