//! The attack on a release whose classes show regions: a row of A matches the classes whose regions
//! cover its values. Where classes show centroids, it matches the classes whose centroids are nearest
//! to it ([`nearest`](super::nearest)).
//!
//! Regions may overlap, so a row can match several classes; it matches all of their rows. Where the
//! private record is there, a row matches only the classes that it assigns to the row's values, as
//! for somebody who knows a person's own class. The classes of B are held in the engine's memory,
//! each with the numbers of the texts that it shows, and so is for each value of A the set of the
//! texts that cover it. Of the classes that show such a text in the column where these are fewest,
//! those are matched whose other texts cover the row's other values.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StructArray};
use arrow::datatypes::{DataType, Field, Fields, Int64Type, UInt64Type};
use datafusion::error::Result as EngineResult;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;

use super::assigned::Assigned;
use super::nearest::{Centroids, Nearest};
use super::recode::AttackerRecoding;
use super::text_reading::TextReading;
use super::{COVERED, DOING, MATCHES, PERSON, ROWS, all, numbered};
use crate::class::{Budget, Held};
use crate::engine::{Context, PoolBudget, column, distinct, into_engine};
use crate::error::{Error, Result};
use crate::generalize::{Hierarchy, RegionLabel, Value};
use crate::input::{PolicySource, canonical_type};
use crate::known::OTHER;
use crate::release::publish::record::{PrivateRecord, RegionColumn, Regions};

/// A column that both sides have, with the hierarchy of its values.
pub(super) struct Column {
    name: String,
    hierarchy: Hierarchy,
    /// The label of all values that no text names, if the labels of the hierarchy are not available, so that
    /// texts are read by themselves.
    read_alone: Option<String>,
    /// The type of the values behind the released texts.
    value_type: DataType,
    /// The type of the centroids, if the classes show those.
    centroid_type: Option<DataType>,
}

/// Returns the linked columns with the hierarchies of their values.
///
/// # Errors
/// A policy error when a column of A has another type than the values had.
pub(super) fn columns(
    on: &[String],
    recoding: &AttackerRecoding<'_>,
    list: &DataFrame,
    name_of_list: &str,
) -> Result<Vec<Column>> {
    let column = |name: &String| {
        let of_values = recoding.value_type(name)?.ok_or_else(|| {
            Error::policy(format!(
                "--on: `{name}` is released as values, and other columns as regions or centroids; link on one kind only"
            ))
        })?;
        let of_list = super::recode::type_of(list, name)?;
        let centroid = recoding.public.and_then(|public| public.recoding.centroid(name));
        let is_number = |data_type: &DataType| data_type.is_integer() || data_type.is_floating();
        let is_comparable = canonical_type(&of_list) == canonical_type(&of_values)
            || (of_list.is_integer() && of_values.is_integer())
            || (centroid.is_some() && is_number(&of_list) && is_number(&of_values));
        if !is_comparable {
            return Err(Error::policy(format!(
                "column `{name}` is {of_list} in {name_of_list}, and the release was made of {of_values}: these cannot be \
                 compared; cast the column"
            )));
        }
        let hierarchy = match recoding.policy {
            Some(PolicySource { spec, files }) => {
                let column = spec.column(name).ok_or_else(|| {
                    Error::policy(format!("column `{name}`: the policy is not that of the release"))
                })?;
                column.levels(&of_list, files)?
            }
            None => Hierarchy::new(&of_list, Vec::new())?,
        };
        let shown = recoding.region(name).filter(|region| region.shows == Regions::Labels);
        let other = |region: &RegionColumn| region.joined_as.clone().unwrap_or_else(|| OTHER.to_owned());
        let read_alone = shown.filter(|_| recoding.policy.is_none()).map(other);
        let centroid_type = centroid.map(|shown| shown.centroid.output_type(&of_values));
        Ok(Column { name: name.clone(), hierarchy, read_alone, value_type: of_values, centroid_type })
    };
    on.iter().map(column).collect()
}

/// The classes of B.
pub(super) struct Classes {
    columns: Vec<ReleasedColumn>,
    /// The rows of each class.
    rows: Vec<i64>,
    /// For each sensitive column and class the hash of the value that all rows of the class share.
    shared: Vec<Vec<Option<u64>>>,
    covering: Mutex<Covering>,
    assigned: Option<Assigned>,
    /// Finds the nearest centroids, if the classes show those and no assignment is there.
    nearest: Option<Nearest>,
    _held: Held,
}

/// What the classes show in one column.
struct ReleasedColumn {
    of: Column,
    /// The different regions.
    regions: Vec<RegionLabel>,
    /// How they are read without a hierarchy.
    reading: Option<TextReading>,
    /// The region of each class.
    region_of_class: Vec<u32>,
    /// The classes that show each region.
    classes_of_region: Vec<Vec<u32>>,
    numbers: HashMap<Option<String>, u32>,
}

/// The regions that cover a value: a bit for each, and their numbers. None where the assignment decides.
#[derive(Default)]
struct Covered {
    bits: Vec<u64>,
    numbers: Vec<u32>,
    /// The classes that show one of them.
    classes: usize,
    /// The number of the value's label in the assignment; `None` without one, and for a value that it lacks.
    assigned: Option<u32>,
    /// The value itself, where the nearest centroid decides.
    value: Option<Value>,
}

/// For each column the regions that cover each value that A has; `None` for a value that a
/// hierarchy file lacks.
struct Covering {
    of_value: Vec<HashMap<Option<String>, Option<Arc<Covered>>>>,
    bytes: usize,
    held: Held,
}

impl Classes {
    /// Reads the groups of B.
    ///
    /// # Errors
    /// An unmet error for a text that is no region, a data error when memory runs out.
    pub(super) async fn read(
        session: &SessionContext,
        groups: DataFrame,
        columns: Vec<Column>,
        sensitive: usize,
        private: Option<&PrivateRecord>,
        recoding: &AttackerRecoding<'_>,
    ) -> Result<Self> {
        let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "classes"));
        let mut held = Held::new(&budget);
        let mut columns: Vec<ReleasedColumn> = columns.into_iter().map(ReleasedColumn::new).collect();
        let (mut rows, mut shared, mut texts) = (Vec::new(), vec![Vec::new(); sensitive], 0);
        let mut stream = groups.execute_stream().await.context(DOING)?;
        while let Some(batch) = stream.next().await {
            let batch = batch.context(DOING)?;
            let (shown, counts) = batch.columns().split_at(columns.len());
            let [sizes, _, hashes @ ..] = counts else {
                return Err(Error::internal("regions: the groups have no counts"));
            };
            let sizes = sizes.as_primitive::<Int64Type>();
            for row in 0..batch.num_rows() {
                for (of_column, shown) in columns.iter_mut().zip(shown) {
                    texts += of_column.add_class(Value::read(shown, row)?.text_form())?;
                }
                for (shared, hashes) in shared.iter_mut().zip(hashes.chunks_exact(3)) {
                    let [least, most] = [0, 1].map(|at| hashes[at].as_primitive::<UInt64Type>().value(row));
                    let known = hashes[2].as_primitive::<Int64Type>().value(row);
                    shared.push((known == sizes.value(row) && least == most).then_some(least));
                }
                rows.push(sizes.value(row));
            }
            let of_class = 2 * columns.len() * size_of::<u32>()
                + size_of::<i64>()
                + sensitive * size_of::<Option<u64>>();
            held.at_least(texts + rows.len() * of_class)?;
        }
        for column in &mut columns {
            let other = column.of.read_alone.as_ref();
            column.reading = other.map(|other| TextReading::new(&column.regions, other));
        }
        let of_value = columns.iter().map(|_| HashMap::new()).collect();
        let covering = Mutex::new(Covering { of_value, bytes: 0, held: Held::new(&budget) });
        let (mut by_regions, mut of_regions) = (HashMap::<Vec<u32>, u32>::new(), Held::new(&budget));
        if private.is_some() {
            of_regions.at_least(rows.len() * 2 * (size_of::<(Vec<u32>, u32)>() + 4 * columns.len()))?;
            for class in (0u32..).take(rows.len()) {
                let regions = columns.iter().map(|column| column.region_of_class[class as usize]);
                by_regions.insert(regions.collect(), class);
            }
        }
        let class_of = |texts: &[Option<&str>]| {
            let regions = columns.iter().zip(texts);
            let regions = regions.map(|(column, text)| column.numbers.get(&text.map(str::to_owned)).copied());
            by_regions.get(&regions.collect::<Option<Vec<u32>>>()?).copied()
        };
        let on: Vec<String> = columns.iter().map(|column| column.of.name.clone()).collect();
        let assigned = Assigned::read(private, recoding, &on, class_of, &budget)?;
        let shows_centroids = columns.iter().any(|column| column.of.centroid_type.is_some());
        let nearest = (shows_centroids && assigned.is_none()).then(|| {
            let shown = |column: &ReleasedColumn| {
                let shown = column.region_of_class.iter().map(|region| &column.regions[*region as usize]);
                Centroids::new(column.of.hierarchy.has_intervals(), shown, &rows)
            };
            Nearest::new(columns.iter().map(shown).collect(), rows.len())
        });
        Ok(Self { columns, rows, shared, covering, assigned, nearest, _held: held })
    }

    /// Returns whether rows match by what the private record assigns to their values.
    pub(super) fn are_assigned(&self) -> bool {
        self.assigned.is_some()
    }

    /// Returns the columns whose texts are read without a hierarchy.
    pub(super) fn read_alone(&self) -> Vec<String> {
        let alone = self.columns.iter().filter(|column| column.of.read_alone.is_some());
        alone.map(|column| column.of.name.clone()).collect()
    }

    /// Builds the groups of A with what they match, as a join with the groups of B would.
    ///
    /// # Errors
    /// When the plan cannot be built.
    pub(super) fn found_by(self, list: DataFrame, individual: Option<&str>) -> Result<DataFrame> {
        let names: Vec<String> = self.columns.iter().map(|column| column.of.name.clone()).collect();
        let keys = numbered("a", names.len());
        let mut columns: Vec<Expr> =
            names.iter().zip(&keys).map(|(name, key)| column(name).alias(key)).collect();
        columns.extend(individual.map(|name| column(name).alias(PERSON)));
        let groups = [all(&keys), individual.map(|_| column(PERSON)).into_iter().collect()].concat();
        let groups =
            list.select(columns).context(DOING)?.aggregate(groups, vec![count(lit(1i64)).alias(ROWS)]);

        let fields = self.fields();
        // Volatile: otherwise each field would match the row again.
        let signature = Signature::variadic_any(Volatility::Volatile);
        let matched = ScalarUDF::new_from_impl(MatchedClasses {
            classes: Arc::new(self),
            fields: fields.clone(),
            signature,
        });
        let others = || individual.map(|_| column(PERSON)).into_iter().chain([column(ROWS)]);
        let mut columns = vec![matched.call(all(&keys)).alias(MATCHED)];
        columns.extend(others());
        let matched = groups.context(DOING)?.select(columns).context(DOING)?;
        let field =
            |field: &Arc<Field>| get_field(column(MATCHED), field.name().as_str()).alias(field.name());
        matched.select(fields.iter().map(field).chain(others()).collect::<Vec<_>>()).context(DOING)
    }

    /// Returns the facts about a row of A: its matches (NULL for none), whether hierarchy files
    /// have all its values, and for each sensitive column whether all matches share a value.
    fn fields(&self) -> Fields {
        let shared = numbered("shared", self.shared.len());
        let shared = shared.into_iter().map(|name| Field::new(name, DataType::Int64, true));
        let matches = Field::new(MATCHES, DataType::Int64, true);
        let covered = Field::new(format!("{COVERED}_a"), DataType::Boolean, false);
        [matches, covered].into_iter().chain(shared).collect()
    }

    fn matches(&self, values: &[ArrayRef], fields: &Fields) -> Result<StructArray> {
        let rows = values.first().map_or(0, Array::len);
        let mut covering = Vec::with_capacity(values.len());
        for (at, values) in values.iter().enumerate() {
            let (distinct, places) = distinct::of_batch(values).context(DOING)?;
            covering.push((self.covering(at, &distinct)?, places));
        }
        let (mut matches, mut covered) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        let mut shared: Vec<Vec<i64>> = vec![Vec::with_capacity(rows); self.shared.len()];
        for row in 0..rows {
            let of_row: Option<Vec<&Covered>> = covering
                .iter()
                .map(|(of_value, places)| {
                    let place = usize::try_from(places.value(row)).ok()?;
                    of_value.get(place)?.as_deref()
                })
                .collect();
            covered.push(of_row.is_some());
            let classes = of_row.map_or(Vec::new(), |of_row| match (&self.assigned, &self.nearest) {
                (None, Some(nearest)) => {
                    nearest.classes(of_row.iter().map(|covered| covered.value.as_ref()).collect())
                }
                (None, None) => self.in_all(&of_row),
                (Some(assigned), _) => {
                    let labels: Option<Vec<u32>> = of_row.iter().map(|covered| covered.assigned).collect();
                    labels.map_or(Vec::new(), |labels| assigned.classes(&labels).to_vec())
                }
            });
            let found: i64 = classes.iter().map(|class| self.rows[*class as usize]).sum();
            matches.push((found > 0).then_some(found));
            for (shared, of_class) in shared.iter_mut().zip(&self.shared) {
                let first = classes.first().and_then(|class| of_class[*class as usize]);
                let is_shared = |class: &u32| of_class[*class as usize] == first;
                shared.push(i64::from(first.is_some() && classes.iter().all(is_shared)));
            }
        }
        let mut arrays: Vec<ArrayRef> =
            vec![Arc::new(Int64Array::from(matches)), Arc::new(BooleanArray::from(covered))];
        arrays.extend(shared.into_iter().map(|shared| Arc::new(Int64Array::from(shared)) as ArrayRef));
        StructArray::try_new(fields.clone(), arrays, None).context(DOING)
    }

    /// Returns for each value of a column the regions that cover it; `None` if a hierarchy file
    /// lacks the value.
    fn covering(&self, at: usize, values: &ArrayRef) -> Result<Vec<Option<Arc<Covered>>>> {
        let mut covering =
            self.covering.lock().map_err(|_| Error::internal("regions: another thread panicked"))?;
        let Covering { of_value, bytes, held } = &mut *covering;
        let (known, column) = (&mut of_value[at], &self.columns[at]);
        let mut all = Vec::with_capacity(values.len());
        for row in 0..values.len() {
            let value = Value::read(values, row)?;
            let text = value.text_form();
            let covered = match known.get(&text) {
                Some(covered) => covered.clone(),
                None => {
                    let covered = match &self.assigned {
                        // Centroids need no labels.
                        _ if column.of.centroid_type.is_none() && column.lacks(&value) => None,
                        None if self.nearest.is_some() => {
                            let value = Some(column.of.hierarchy.clipped_value(&value)?);
                            Some(Covered { value, ..Covered::default() })
                        }
                        None => Some(column.covering(&value)?),
                        Some(assigned) => Some(Covered {
                            assigned: assigned.number_of(at, &column.of.hierarchy, &value)?,
                            ..Covered::default()
                        }),
                    };
                    let covered = covered.map(Arc::new);
                    let size = covered
                        .as_ref()
                        .map_or(0, |covered| covered.bits.len() * 8 + covered.numbers.len() * 4);
                    *bytes += size
                        + text.as_ref().map_or(0, String::len)
                        + size_of::<(Option<String>, Covered)>() * 2;
                    held.at_least(*bytes)?;
                    known.insert(text, covered.clone());
                    covered
                }
            };
            all.push(covered);
        }
        Ok(all)
    }

    /// Returns the classes all of whose regions cover the values of a row.
    fn in_all(&self, of_row: &[&Covered]) -> Vec<u32> {
        let fewest = of_row.iter().enumerate().min_by_key(|(_, covered)| covered.classes);
        let Some((at, covered)) = fewest else { return Vec::new() };
        let is_covered = |class: &u32| {
            self.columns.iter().zip(of_row).all(|(column, covered)| {
                let region = column.region_of_class[*class as usize];
                covered.bits[region as usize / 64] & (1 << (region % 64)) != 0
            })
        };
        let classes =
            covered.numbers.iter().flat_map(|region| &self.columns[at].classes_of_region[*region as usize]);
        let mut classes: Vec<u32> = classes.copied().filter(is_covered).collect();
        classes.sort_unstable();
        classes
    }
}

impl ReleasedColumn {
    fn new(of: Column) -> Self {
        Self {
            of,
            regions: Vec::new(),
            reading: None,
            region_of_class: Vec::new(),
            classes_of_region: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// Adds the next class, which shows this text; returns the bytes that a new text takes.
    fn add_class(&mut self, text: Option<String>) -> Result<usize> {
        let class = u32::try_from(self.region_of_class.len()).map_err(Error::internal)?;
        let mut bytes = 0;
        let region = match self.numbers.get(&text) {
            Some(region) => *region,
            None => {
                let has_intervals = self.of.read_alone.is_none() && self.of.hierarchy.has_intervals();
                let parsed = match &self.of.centroid_type {
                    Some(data_type) => RegionLabel::of_centroid(text.as_deref(), data_type),
                    None => RegionLabel::parse_canonical(text.as_deref(), &self.of.value_type, has_intervals),
                };
                self.regions.push(parsed.ok_or_else(|| {
                    Error::unmet(format!(
                        "column `{}`: the release holds a value that kanon would not write there; run `kanon verify`",
                        self.of.name
                    ))
                })?);
                self.classes_of_region.push(Vec::new());
                bytes = 2 * text.as_ref().map_or(0, String::len) + 4 * size_of::<RegionLabel>();
                let region = u32::try_from(self.numbers.len()).map_err(Error::internal)?;
                self.numbers.insert(text, region);
                region
            }
        };
        self.region_of_class.push(region);
        self.classes_of_region[region as usize].push(class);
        Ok(bytes)
    }

    /// Returns whether the hierarchy is a list, such as a hierarchy file, without a label for the value.
    fn lacks(&self, value: &Value) -> bool {
        let levels = self.of.hierarchy.levels();
        let is_of_list =
            levels.iter().any(|level| level.all_leaves().is_some() || level.descriptor().is_of_list());
        is_of_list && levels.iter().any(|level| level.generalize_value(value).is_err())
    }

    /// Returns the regions that cover a value.
    ///
    /// # Errors
    /// The errors of the levels for values that they do not cover.
    fn covering(&self, value: &Value) -> Result<Covered> {
        let mut covered = Covered { bits: vec![0; self.regions.len() / 64 + 1], ..Covered::default() };
        for (number, region) in (0u32..).zip(&self.regions) {
            let is_covered = match &self.reading {
                Some(reading) => reading.covers(region, value),
                None => region.covers(&self.of.hierarchy, value)?,
            };
            if is_covered {
                covered.bits[number as usize / 64] |= 1 << (number % 64);
                covered.numbers.push(number);
                covered.classes += self.classes_of_region[number as usize].len();
            }
        }
        Ok(covered)
    }
}

const MATCHED: &str = "kanon_matched";

struct MatchedClasses {
    classes: Arc<Classes>,
    fields: Fields,
    signature: Signature,
}

impl std::fmt::Debug for MatchedClasses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("kanon_matched_classes")
    }
}

impl PartialEq for MatchedClasses {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.classes, &other.classes)
    }
}

impl Eq for MatchedClasses {}

impl Hash for MatchedClasses {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl ScalarUDFImpl for MatchedClasses {
    fn name(&self) -> &'static str {
        "kanon_matched_classes"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> EngineResult<DataType> {
        Ok(DataType::Struct(self.fields.clone()))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        let values = ColumnarValue::values_to_arrays(&arguments.args)?;
        let found = self.classes.matches(&values, &self.fields).map_err(into_engine)?;
        Ok(ColumnarValue::Array(Arc::new(found)))
    }
}
