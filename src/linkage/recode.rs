//! Makes an attacker's column comparable with the table: generalized according to a release's
//! record, and in one form where the types of both sides differ.
//!
//! A record that stated a coarser level than the rows show would hide every match. So released values
//! must be labels of the recorded level, and a column recorded as suppressed must have one value. Levels come
//! from the policy where one is at hand, else from their descriptors; a descriptor that differs from that of
//! the level restored from it is refused. Without the policy, only the labels of a hierarchy file or of merged
//! values are missing: such a column is left out and named.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, StringViewArray};
use arrow::compute::nullif;
use arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use datafusion::prelude::DataFrame;

use super::linked_columns::HIDES_LABELS;
use crate::engine::functions::{OfValues, canonical, of_values};
use crate::engine::{Context, column};
use crate::error::{Error, Result};
use crate::generalize::{AsIs, Descriptor, Generalizer, Value, suppress::Suppress};
use crate::input::{PolicySource, canonical_type};
use crate::policy::CsvType;
use crate::release::publish::record::{LevelRecord, PublicRecord, RegionColumn};
use crate::release::released_labels::released_labels;

/// The recoding of the table: its record where it is a release, and the policy where one is
/// available.
pub(super) struct AttackerRecoding<'a> {
    pub(super) public: Option<&'a PublicRecord>,
    pub(super) policy: Option<PolicySource<'a>>,
}

/// A column that both sides have.
pub(super) struct JoinKey {
    name: String,
    level: Option<Arc<dyn Generalizer>>,
    form: Form,
}

/// The form in which values of two types are equal when they mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The value itself: both types are the same.
    AsIs,
    /// The text form of [`Value::text_form`]: 5 and 5.0 are both `5`.
    Text,
    /// The same text form, with days as their first moment.
    Moment,
}

impl Form {
    fn of(a: &DataType, b: &DataType) -> Option<Self> {
        let number = |t: &DataType| t.is_integer() || t.is_floating();
        match (a, b) {
            _ if a == b => (!a.is_nested()).then_some(Self::AsIs),
            _ if number(a) && number(b) => Some(Self::Text),
            (DataType::Timestamp(_, a), DataType::Timestamp(_, b)) => {
                (a.is_some() == b.is_some()).then_some(Self::Moment)
            }
            (DataType::Date32, DataType::Timestamp(_, None))
            | (DataType::Timestamp(_, None), DataType::Date32) => Some(Self::Moment),
            _ => None,
        }
    }

    fn of_value(self, value: &Value) -> Option<String> {
        let text = value.text_form()?;
        match (self, value) {
            (Self::Moment, Value::Date(_)) => Some(text + "T00:00:00"),
            _ => Some(text),
        }
    }
}

/// Returns how to read the CSV column `name` of one side when the other side's type is `other`.
///
/// # Errors
/// A policy error when the record names a level that cannot be reconstructed.
pub(super) fn csv_type(recoding: &AttackerRecoding<'_>, name: &str, other: &DataType) -> Result<CsvType> {
    let csv_type = recoding.policy.map_or(CsvType::Text, |policy| policy.spec.csv_type(name));
    let like_other = match canonical_type(other) {
        other if other.is_integer() || other.is_floating() => CsvType::Number,
        DataType::Date32 | DataType::Timestamp(..) => CsvType::Date,
        _ => CsvType::Text,
    };
    let level = recoding.level(name).map(|level| &level.by).filter(|by| **by != Descriptor::as_is());
    match level {
        _ if csv_type != CsvType::Text => Ok(csv_type),
        None => Ok(like_other),
        Some(by) if recoding.policy.is_none() && *by != Descriptor::suppress() => {
            Ok(CsvType::of_level(&*made(name, by, true)?))
        }
        Some(_) => Ok(CsvType::Text),
    }
}

/// Restores the level that a record describes; `text` is whether its labels are text.
fn made(name: &str, by: &Descriptor, text: bool) -> Result<Arc<dyn Generalizer>> {
    by.restore(text).ok_or_else(|| {
        Error::policy(match by.is_of_file() || by.is_of_merge() {
            true => format!(
                "column `{name}` of the release is `{by}`: {HIDES_LABELS}; leave it out of --on, or {}",
                match by.is_of_merge() {
                    true => "let the publisher run the attack, who has the private record",
                    false => "give the publisher's policy, with its hierarchy files, by --policy FILE",
                }
            ),
            false => format!("column `{name}` of the release is `{by}`, which this version cannot restore"),
        })
    })
}

impl AttackerRecoding<'_> {
    /// Returns whether the table's column shows labels that say nothing without the policy.
    pub(super) fn hides_labels(&self, name: &str) -> bool {
        let is_listed = |level: &LevelRecord| level.by.is_of_file() || level.by.is_of_merge();
        self.policy.is_none() && self.level(name).is_some_and(is_listed)
    }

    /// Returns the type of the values behind what the table's column shows, if its classes show
    /// regions or centroids.
    ///
    /// # Errors
    /// An unmet error if the record names none.
    pub(super) fn value_type(&self, name: &str) -> Result<Option<DataType>> {
        let Some(public) = self.public else { return Ok(None) };
        if let Some(centroid) = public.recoding.centroid(name) {
            return centroid.type_of_values().map(Some);
        }
        self.region(name).map(RegionColumn::type_of_values).transpose()
    }

    /// Returns what the table's column shows, if that is regions.
    pub(super) fn region(&self, name: &str) -> Option<&RegionColumn> {
        self.public?.recoding.region(name)
    }

    /// Returns the level at which the table's column is released.
    fn level(&self, name: &str) -> Option<&LevelRecord> {
        self.public?.recoding.level(name)
    }

    /// Returns the generalizer of that level for values of type `a`.
    fn generalizer(
        &self,
        name: &str,
        level: &LevelRecord,
        a: &DataType,
        b: &DataType,
    ) -> Result<Arc<dyn Generalizer>> {
        let Some(PolicySource { spec, files }) = self.policy else {
            let text = *b == DataType::Utf8View;
            return match &level.by {
                by if *by == Descriptor::as_is() => Ok(Arc::new(AsIs { text })),
                by if *by != Descriptor::suppress() => made(name, by, text),
                _ if text => Ok(Arc::new(Suppress::star())),
                _ => Ok(Arc::new(Suppress::null())),
            };
        };
        let hierarchy = spec.column(name).map(|column| column.levels(a, files)).transpose()?;
        let own = hierarchy.filter(|hierarchy| hierarchy.height() == level.of);
        let own = own.and_then(|hierarchy| hierarchy.levels().get(level.level).cloned());
        own.filter(|own| own.descriptor() == level.by).ok_or_else(|| {
            Error::policy(format!(
                "column `{name}`: the policy is not that of the release, whose record says `{}`",
                level.by
            ))
        })
    }

    /// Returns the join key of a column and the name of its level. Suppressed columns have no join
    /// key: they carry no information.
    ///
    /// # Errors
    /// A policy error when the level cannot be reconstructed or the types cannot be compared, an
    /// unmet error when a released value is not a label of its level.
    pub(super) async fn key(
        &self,
        name: &str,
        list: &DataFrame,
        table: &DataFrame,
        names: (&str, &str),
    ) -> Result<(Option<JoinKey>, Option<String>)> {
        let (a, b) = (type_of(list, name)?, type_of(table, name)?);
        let mut level = None;
        let recorded = self.level(name);
        if let Some(recorded) = recorded {
            let generalizer = self.generalizer(name, recorded, &a, &b)?;
            // A column released as it is needs no labels, and may have many.
            let labels = match recorded.by == Descriptor::as_is() {
                true => None,
                false => released_labels(table, name).await?,
            };
            let padded = labels.as_ref().and_then(|labels| generalizer.with_label_width(labels));
            let generalizer = padded.unwrap_or(generalizer);
            if let Some(labels) = &labels {
                check_labels(&*generalizer, labels).map_err(|error| error.at(format!("column `{name}`")))?;
            }
            if generalizer.is_top() {
                return Ok((None, Some(recorded.by.to_string())));
            }
            level = Some(generalizer);
        }
        let recoded = match &level {
            Some(level) => {
                level.output_type(&a).map_err(|error| error.at(format!("{}, column `{name}`", names.0)))?
            }
            None => a,
        };
        let form = Form::of(&recoded, &b).ok_or_else(|| {
            Error::policy(format!(
                "column `{name}` is {recoded} in {} and {b} in {}: these cannot be compared; cast one of them to \
                 the type of the other",
                names.0, names.1
            ))
        })?;
        Ok((Some(JoinKey { name: name.to_owned(), level, form }), recorded.map(|level| level.by.to_string())))
    }
}

pub(super) fn type_of(table: &DataFrame, name: &str) -> Result<DataType> {
    let field = table.schema().as_arrow().field_with_name(name);
    field
        .map(|field| field.data_type().clone())
        .map_err(|_| Error::internal("linkage: a key column is missing from the table"))
}

/// Checks that the released values are labels of their level, or an attack on it would find
/// nothing.
fn check_labels(generalizer: &dyn Generalizer, labels: &ArrayRef) -> Result<()> {
    let mut right = !generalizer.is_top() || labels.len() <= 1;
    for row in 0..labels.len() {
        // The top label of a hierarchy file is defined by the file.
        right &= generalizer.is_top() || generalizer.is_label(&Value::read(labels, row)?);
    }
    if right {
        return Ok(());
    }
    Err(Error::unmet(format!(
        "the release holds values that are not labels of `{}`, the level in its record; run `kanon verify`",
        generalizer.descriptor()
    )))
}

impl JoinKey {
    /// Returns the key of a row of A, as the attacker recodes it.
    pub(super) fn of_list(&self) -> Expr {
        self.expression(self.level.clone())
    }

    /// Returns the key of a row of the table.
    pub(super) fn of_table(&self) -> Expr {
        self.expression(None)
    }

    /// Returns a condition on whether a hierarchy file has the value of A; `None` where every value
    /// has a label.
    pub(super) fn covered(&self) -> Option<Expr> {
        let level = self.level.clone().filter(|level| level.all_leaves().is_some())?;
        Some(of_values(Arc::new(Covered(level)), &self.name, column(&self.name)))
    }

    fn expression(&self, level: Option<Arc<dyn Generalizer>>) -> Expr {
        if level.is_none() && self.form == Form::AsIs {
            return column(&self.name);
        }
        of_values(Arc::new(RecodeUdf { level, form: self.form }), &self.name, column(&self.name))
    }
}

/// A scalar function that returns values in their compared form.
struct RecodeUdf {
    level: Option<Arc<dyn Generalizer>>,
    form: Form,
}

impl OfValues for RecodeUdf {
    fn name(&self) -> &'static str {
        "kanon_known"
    }

    fn of_type(&self, values: &DataType) -> Result<DataType> {
        match (&self.level, self.form) {
            (Some(level), Form::AsIs) => level.output_type(values),
            (None, Form::AsIs) => Ok(values.clone()),
            _ => Ok(DataType::Utf8View),
        }
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let values = match &self.level {
            Some(level) => {
                // Rows with uncovered values match nothing, so any label will do for them.
                let uncovered = uncovered(&**level, values)?;
                canonical(&level.generalize(&nullif(values, &uncovered).context("recoding the list")?)?)
            }
            None => Arc::clone(values),
        };
        if self.form == Form::AsIs {
            return Ok(values);
        }
        let texts = (0..values.len()).map(|row| Ok(self.form.of_value(&Value::read(&values, row)?)));
        Ok(Arc::new(texts.collect::<Result<StringViewArray>>()?))
    }
}

/// A scalar function that returns whether a level has a label for a value.
struct Covered(Arc<dyn Generalizer>);

impl OfValues for Covered {
    fn name(&self) -> &'static str {
        "kanon_covered"
    }

    fn of_type(&self, _values: &DataType) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let uncovered = uncovered(&*self.0, values)?;
        Ok(Arc::new(uncovered.values().iter().map(|uncovered| Some(!uncovered)).collect::<BooleanArray>()))
    }
}

fn uncovered(level: &dyn Generalizer, values: &ArrayRef) -> Result<BooleanArray> {
    let mut uncovered = vec![false; values.len()];
    for place in level.uncovered(values)? {
        if let Some(value) = uncovered.get_mut(place) {
            *value = true;
        }
    }
    Ok(BooleanArray::from(uncovered))
}
