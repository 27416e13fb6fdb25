//! What a record says about the recoding.
//!
//! The recoding is a tagged value (`{"levels": [...]}`), so that other kinds can join it. A level's function is
//! data (`{"generalizer": "range", "argument": ["10"]}`). The text in the fields of the files is made from this data,
//! never the other way round. A release of each format lies in `tests/fixtures`.

use arrow::datatypes::DataType;
use serde::{Deserialize, Serialize};

use crate::decimal::Decimal;
use crate::error::{Error, Result};
use crate::generalize::{Centroid, Descriptor, Ends, Generalizer, Hierarchy};
use crate::method::{Recoding, ReleaseKind};
use crate::noise::{EPSILON_SCALE, Mechanism, NoisyColumn};
use crate::policy::{Policy, Quasi};
use crate::release::interval_columns::IntervalColumns;
use crate::release::publish::record::recorded;
use crate::release::written_columns::WrittenColumns;
use crate::render::plain_number;
use crate::verify::assignment::LinesShow;

/// What the released quasi-identifiers show, by kind of recoding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecodingRecord {
    /// One level for all values of a column: the level of each quasi-identifier, in the order of the
    /// released columns.
    Levels(Vec<LevelRecord>),
    /// A region for each class and column, written as text or as `written_as` says.
    Regions(RegionsRecord),
    /// A centroid for each class and column: no generalization, so a released value need not be that
    /// of any row. The quasi-identifiers, in the order of the released columns.
    Centroids(Vec<CentroidColumn>),
    /// Every value as it is, in one table; in another one how often each sensitive value occurs in each
    /// group of rows.
    Groups(GroupsRecord),
}

/// The folders of tables in releases of several: of groups the quasi-identifiers of rows, and the sensitive values.
pub const FOLDERS: [&str; 2] = ["quasi_identifiers", "sensitive_values"];

/// The roles of the columns that only a table of groups has: the number of a group, and how many of
/// its rows have a sensitive value.
pub const GROUP_ROLES: [&str; 2] = ["group", "count"];

/// The groups of Anatomy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupsRecord {
    /// The quasi-identifiers, in the order of the released columns.
    pub columns: Vec<String>,
    /// The sensitive column.
    pub sensitive: String,
    /// No sensitive value is that of more than one in so many rows of a group.
    pub l: u64,
}

/// The level of a released quasi-identifier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelRecord {
    /// The quasi-identifier.
    pub column: String,
    /// The level; 0 leaves values as they are.
    pub level: usize,
    /// The top level of its hierarchy.
    pub of: usize,
    /// What the level does to values; the same as text ends the metadata `kanon.generalized` of the
    /// column in the files.
    pub by: Descriptor,
}

impl LevelRecord {
    /// Describes a level of a quasi-identifier, which this generalizer makes.
    pub(crate) fn of(quasi: &Quasi, level: usize, generalizer: &dyn Generalizer) -> Self {
        let of = quasi.hierarchy.height();
        Self { column: quasi.name.clone(), level, of, by: generalizer.descriptor() }
    }
}

/// The regions that classes show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionsRecord {
    /// What the ends of intervals show.
    pub ends: Ends,
    /// The quasi-identifiers, in the order of the released columns.
    pub columns: Vec<RegionColumn>,
}

/// A quasi-identifier whose classes show regions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionColumn {
    /// The quasi-identifier.
    pub column: String,
    /// The Arrow type of its values in the input.
    pub value_type: String,
    /// What its regions are.
    pub shows: Regions,
    /// The columns in which the files hold it, if not as text: both ends, which are included, and
    /// whether it is missing. NULL is an open end, and in the third column a value that may be
    /// missing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub written_as: Option<[String; 3]>,
    /// The label of the values that few individuals hold, if `merge` joined some and it is not `other`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub joined_as: Option<String>,
}

/// A quasi-identifier whose classes show centroids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CentroidColumn {
    /// The quasi-identifier.
    pub column: String,
    /// The Arrow type of its values in the input; that of the means with noise, which tells nothing.
    pub value_type: String,
    /// What stands for the values of a class.
    pub centroid: Centroid,
    /// The two bounds at which numbers are clipped first; NULL on a side without a bound.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub clip: Option<[Option<String>; 2]>,
    /// The noise, of means with noise.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub noise: Option<NoiseRecord>,
}

/// The noise of a column's means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseRecord {
    /// The column's share of the release's epsilon.
    pub epsilon: String,
    /// How far the noise takes a mean away, on average, before it is put back within the bounds: the scale
    /// of its Laplace distribution, for a cluster of k rows.
    pub scale: String,
}

impl NoiseRecord {
    /// Describes the noise of each column in a release of so many rows.
    ///
    /// # Errors
    /// Those of [`Mechanism::scales`].
    pub(crate) fn all(mechanism: &Mechanism, rows: u64) -> Result<Vec<Self>> {
        let of_column = |(column, scale): (&NoisyColumn, f64)| Self {
            epsilon: column.epsilon().to_string(),
            scale: plain_number(recorded(scale)).to_string(),
        };
        Ok(mechanism.columns().iter().zip(mechanism.scales(rows)?).map(of_column).collect())
    }
}

impl CentroidColumn {
    /// Describes a quasi-identifier, where columns of numbers show this centroid.
    pub(crate) fn of(quasi: &Quasi, centroid: Centroid) -> Self {
        let value_type = quasi.hierarchy.input_type();
        Self {
            column: quasi.name.clone(),
            value_type: value_type.to_string(),
            centroid: centroid.for_column(&quasi.hierarchy),
            clip: quasi.hierarchy.levels().first().and_then(|level| level.descriptor().clip),
            noise: None,
        }
    }

    /// Returns the centroids of the columns that show no mode: those of numbers, dates and timestamps.
    pub(crate) fn of_numbers(columns: &[Self]) -> impl Iterator<Item = Centroid> {
        columns.iter().map(|column| column.centroid).filter(|centroid| *centroid != Centroid::Mode)
    }

    /// Returns whether there are columns, and all show means with noise.
    pub(crate) fn are_noisy(columns: &[Self]) -> bool {
        !columns.is_empty() && columns.iter().all(|column| column.noise.is_some())
    }

    /// Describes what the classes show.
    pub(crate) fn descriptor(&self) -> Descriptor {
        Descriptor { clip: self.clip.clone(), ..Descriptor::centroid(self.centroid) }
    }

    /// Returns the type of the column's values in the input.
    ///
    /// # Errors
    /// An unmet error if the record names none.
    pub fn type_of_values(&self) -> Result<DataType> {
        type_of_values(&self.column, &self.value_type)
    }

    /// Returns the column in which the files hold it.
    ///
    /// # Errors
    /// An unmet error for a centroid that kanon does not write for such values.
    pub(crate) fn written_columns(&self) -> Result<WrittenColumns> {
        let value_type = self.type_of_values()?;
        if !self.centroid.suits(&value_type) {
            return Err(Error::unmet(format!(
                "verification refused: the record contradicts itself on what `{}` shows",
                self.column
            )));
        }
        Ok(WrittenColumns::of_centroid(&self.column, self.centroid, &value_type))
    }
}

/// Reads the type of a column's values in the input.
fn type_of_values(column: &str, value_type: &str) -> Result<DataType> {
    let parsed = value_type.parse::<DataType>().ok();
    parsed.filter(|parsed| parsed.to_string() == value_type).ok_or_else(|| {
        Error::unmet(format!("verification refused: the record names no type of the values of `{column}`"))
    })
}

/// What the regions of a column are, besides single values, sets of values and `*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Regions {
    /// Intervals of numbers, dates or timestamps.
    Intervals,
    /// Labels of the column's hierarchy.
    Labels,
}

impl Regions {
    /// Returns what the regions of a column with this hierarchy are.
    pub(crate) fn of(hierarchy: &Hierarchy) -> Self {
        if hierarchy.has_intervals() { Self::Intervals } else { Self::Labels }
    }
}

impl RegionColumn {
    /// Returns the columns in which the files hold it; `None` for text.
    ///
    /// # Errors
    /// An unmet error for columns that kanon does not write.
    pub(crate) fn interval_columns(&self) -> Result<Option<IntervalColumns>> {
        let Some(recorded) = &self.written_as else { return Ok(None) };
        let columns = IntervalColumns { name: self.column.clone(), value_type: self.type_of_values()? };
        if *recorded == columns.names() && self.shows == Regions::Intervals {
            return Ok(Some(columns));
        }
        Err(Error::unmet(format!(
            "verification refused: the record contradicts itself on the columns of `{}`",
            self.column
        )))
    }

    /// Returns the type of the column's values in the input.
    ///
    /// # Errors
    /// An unmet error if the record names none.
    pub fn type_of_values(&self) -> Result<DataType> {
        type_of_values(&self.column, &self.value_type)
    }
}

impl RecodingRecord {
    /// Returns the names of the quasi-identifiers, in the order of the released columns.
    pub fn columns(&self) -> Vec<&str> {
        match self {
            Self::Levels(levels) => levels.iter().map(|level| level.column.as_str()).collect(),
            Self::Regions(regions) => regions.columns.iter().map(|column| column.column.as_str()).collect(),
            Self::Centroids(columns) => columns.iter().map(|column| column.column.as_str()).collect(),
            Self::Groups(groups) => groups.columns.iter().map(String::as_str).collect(),
        }
    }

    /// Returns the record with its columns in the order of the policy; groups keep theirs.
    pub(crate) fn in_policy_order(mut self, policy: &Policy) -> Self {
        let place = |column: &str| policy.quasi_index(column);
        match &mut self {
            Self::Levels(levels) => levels.sort_by_key(|level| place(&level.column)),
            Self::Regions(regions) => regions.columns.sort_by_key(|region| place(&region.column)),
            Self::Centroids(columns) => columns.sort_by_key(|shown| place(&shown.column)),
            Self::Groups(_) => {}
        }
        self
    }

    /// Returns the label of each column in which `merge` joined values under a label that is not `other`.
    pub fn labels_of_joined(&self) -> Vec<(&str, &str)> {
        match self {
            Self::Levels(levels) => levels
                .iter()
                .filter_map(|level| Some((level.column.as_str(), level.by.label_of_merge()?.as_str())))
                .collect(),
            Self::Regions(regions) => regions
                .columns
                .iter()
                .filter_map(|region| Some((region.column.as_str(), region.joined_as.as_deref()?)))
                .collect(),
            Self::Centroids(_) | Self::Groups(_) => Vec::new(),
        }
    }

    /// Returns what the release is; `None` if some columns show means with noise and others centroids without.
    #[doc(hidden)]
    pub fn kind(&self) -> Option<ReleaseKind> {
        match self {
            Self::Levels(_) => Some(ReleaseKind::Levels),
            Self::Regions(_) => Some(ReleaseKind::Regions),
            Self::Centroids(_) if self.adds_noise() => Some(ReleaseKind::Noise),
            Self::Centroids(columns) => {
                columns.iter().all(|column| column.noise.is_none()).then_some(ReleaseKind::Centroids)
            }
            Self::Groups(_) => Some(ReleaseKind::Groups),
        }
    }

    /// Returns whether there is a row for each individual of the input, and no other.
    pub fn has_row_per_individual(&self) -> bool {
        self.kind().is_some_and(|kind| kind.facts().has_row_per_individual)
    }

    /// Returns the folders of the tables; `None` for the folder of the release itself.
    pub(crate) fn folders(&self) -> &'static [Option<&'static str>] {
        match self {
            Self::Levels(_) | Self::Regions(_) | Self::Centroids(_) => &[None],
            Self::Groups(_) => &[Some(FOLDERS[0]), Some(FOLDERS[1])],
        }
    }

    /// Returns what the texts of an assignment show that the private record may hold; `None` if it holds none. Means with
    /// noise, which follow from no assignment, count as centroids.
    pub(crate) fn lines_show(&self) -> Option<LinesShow> {
        match self {
            Self::Levels(_) | Self::Groups(_) => None,
            Self::Regions(regions) => Some(LinesShow::Regions(regions.ends)),
            // A column whose centroid is a mode has it whatever those of numbers are.
            Self::Centroids(columns) => {
                let of_numbers = CentroidColumn::of_numbers(columns).next();
                Some(LinesShow::Centroids(of_numbers.unwrap_or(Centroid::Mean)))
            }
        }
    }

    /// Returns whether all columns show means with noise.
    fn adds_noise(&self) -> bool {
        let Self::Centroids(columns) = self else { return false };
        CentroidColumn::are_noisy(columns)
    }

    /// Returns the epsilon of the release, the sum of the columns' shares; `None` without noise in all of them.
    pub fn epsilon(&self) -> Option<String> {
        let Self::Centroids(columns) = self else { return None };
        if columns.is_empty() {
            return None;
        }
        let share = |column: &CentroidColumn| {
            Decimal::parse(&column.noise.as_ref()?.epsilon).ok().filter(|share| share.is_positive())
        };
        let shares = columns.iter().map(share).collect::<Option<Vec<_>>>()?;
        let sum: i128 = shares.iter().map(|share| share.units(EPSILON_SCALE)).sum();
        Decimal::parse(&format!("{sum}e-{EPSILON_SCALE}")).ok().map(|sum| sum.to_string())
    }

    /// Returns the level of a column; `None` if it has none.
    pub fn level(&self, column: &str) -> Option<&LevelRecord> {
        let Self::Levels(levels) = self else { return None };
        levels.iter().find(|level| level.column == column)
    }

    /// Returns what is recorded of a column's regions; `None` if the column shows none.
    pub fn region(&self, column: &str) -> Option<&RegionColumn> {
        let Self::Regions(regions) = self else { return None };
        regions.columns.iter().find(|region| region.column == column)
    }

    /// Returns what is recorded of a column's centroids; `None` if the column shows none.
    pub fn centroid(&self, column: &str) -> Option<&CentroidColumn> {
        let Self::Centroids(columns) = self else { return None };
        columns.iter().find(|shown| shown.column == column)
    }

    /// Returns the descriptor of a quasi-identifier; `None` for other columns, and where values are as they are.
    pub fn descriptor(&self, column: &str) -> Option<Descriptor> {
        let by_level = self.level(column).map(|level| level.by.clone());
        by_level
            .or_else(|| self.region(column).map(|_| Descriptor::region()))
            .or_else(|| self.centroid(column).map(CentroidColumn::descriptor))
    }

    /// Returns the columns in which the files hold a quasi-identifier; `None` for one column of text or
    /// labels.
    ///
    /// # Errors
    /// Those of [`RegionColumn::interval_columns`].
    pub(crate) fn written_as(&self, column: &str) -> Result<Option<WrittenColumns>> {
        if let Some(centroid) = self.centroid(column) {
            return centroid.written_columns().map(Some);
        }
        let ends = self.region(column).map_or(Ok(None), RegionColumn::interval_columns)?;
        Ok(ends.map(WrittenColumns::Ends))
    }

    /// Returns the quasi-identifiers that the files hold as something else than text or labels.
    ///
    /// # Errors
    /// Those of [`RegionColumn::interval_columns`].
    pub(crate) fn written_columns(&self) -> Result<Vec<WrittenColumns>> {
        self.columns().into_iter().filter_map(|column| self.written_as(column).transpose()).collect()
    }
}

/// A recoding in the log of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundRecoding {
    /// The level of each quasi-identifier, in policy order.
    Levels(Vec<usize>),
    /// The number of classes that show regions, with those that are suppressed.
    Regions(u64),
    /// The number of classes that show centroids, with those that are suppressed.
    Centroids(u64),
    /// The number of groups.
    Groups(u64),
}

impl FoundRecoding {
    /// Describes a recoding.
    pub(crate) fn of(recoding: &Recoding) -> Self {
        match recoding {
            Recoding::Levels(levels) => Self::Levels(levels.clone()),
            Recoding::Classes(released) => {
                let classes = released.regions().len() as u64;
                if released.shows_centroids() { Self::Centroids(classes) } else { Self::Regions(classes) }
            }
            Recoding::Groups(groups) => Self::Groups(groups.sizes().len() as u64),
            Recoding::Clusters(clusters) => Self::Centroids(clusters.count()),
        }
    }
}
