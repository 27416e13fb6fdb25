//! Builds the two records of a run.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::datatypes::{DataType, Schema};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::class::ClassSizes;
use crate::engine::Context;
use crate::error::{Error, Result};
use crate::generalize::{Centroid, Generalizer};
use crate::input::{Input, PolicySource};
use crate::measure::RISKS;
use crate::measure::utility::Utility;
use crate::method::Outcome;
use crate::policy::{Policy, Quasi};
use crate::release::merged_trees;
use crate::release::publish::record::{
    CandidateRecord, CentroidColumn, ColumnRecord, FORMAT, FileRecord, FoundRecoding, InputColumn,
    InputRecord, LevelRecord, ModelRecord, NoiseRecord, PrivateRecord, PublicRecord, RecodingRecord,
    RegionColumn, Regions, RegionsRecord, SearchRecord, Statement, TableRecord, compared_with,
};
use crate::release::publish::{digest, write};
use crate::release::released_recoding::{Chosen, Shown};
use crate::verify::Verified;
use crate::verify::as_is::{AsIsColumn, UniqueTogether};
use crate::verify::groups::DealingKey;
use crate::verify::noise::NoiseKey;

/// The input before recoding.
pub(crate) struct Before {
    /// The sizes of the base classes.
    pub(crate) sizes: ClassSizes,
    /// The columns that are released or counted.
    pub(crate) columns: Vec<InputColumn>,
    /// The number of rows.
    pub(crate) rows: u64,
    /// The number of individuals, where they are counted.
    pub(crate) individuals: Option<u64>,
    /// The number of rows without an individual, where individuals are counted.
    pub(crate) unowned_rows: Option<u64>,
    /// L, the number of individuals or rows that may be suppressed.
    pub(crate) limit: u64,
    /// The number of rows that repeat an earlier row exactly: two equal rows count one.
    pub(crate) duplicates: u64,
}

/// Returns the record of a search by `method`.
pub(crate) fn search_record(policy: &Policy, method: &str, outcome: &Outcome) -> SearchRecord {
    let best = outcome.best.iter().map(|best| CandidateRecord {
        recoding: FoundRecoding::of(&best.recoding),
        loss: best.loss,
        by: best.by.as_ref().map(ToString::to_string),
    });
    SearchRecord {
        method: method.to_owned(),
        objective: policy.objective.doc().name.to_owned(),
        nodes: outcome.nodes,
        evaluated: outcome.evaluated,
        proven: outcome.proven,
        bound: outcome.bound,
        best: best.collect(),
    }
}

/// Returns every risk measure of a table with these classes, with default constants.
///
/// # Errors
/// An internal error if a default is not valid.
pub fn risks(sizes: &ClassSizes) -> Result<BTreeMap<String, f64>> {
    let mut all = BTreeMap::new();
    for row in RISKS {
        if let Some(value) = row.with(&[])?.value(sizes) {
            all.insert(row.doc.name.to_owned(), value);
        }
    }
    Ok(all)
}

/// Returns the record of a level of a quasi-identifier.
pub(crate) fn level_record(quasi: &Quasi, level: usize, generalizer: &dyn Generalizer) -> LevelRecord {
    let of = quasi.hierarchy.height();
    LevelRecord { column: quasi.name.clone(), level, of, by: generalizer.descriptor() }
}

/// Returns what each of these quasi-identifiers shows.
///
/// # Errors
/// Those of [`NoiseRecord::all`].
pub(crate) fn recoding_record(
    policy: &Policy,
    shown: &Shown,
    quasi: impl Iterator<Item = usize>,
) -> Result<RecodingRecord> {
    Ok(match shown {
        Shown::Levels { levels, generalizers } => {
            let level = |at: usize| level_record(&policy.quasi[at], levels[at], &*generalizers[at]);
            RecodingRecord::Levels(quasi.map(level).collect())
        }
        Shown::Noise { mechanism, rows, .. } => {
            let noise = NoiseRecord::all(mechanism, *rows)?;
            let column = |at: usize| {
                let column = CentroidColumn::of(&policy.quasi[at], Centroid::NoisyMean);
                // The type of a CSV column follows from its values, and what is public must not.
                let value_type = DataType::Float64.to_string();
                CentroidColumn { value_type, noise: noise.get(at).cloned(), ..column }
            };
            RecodingRecord::Centroids(quasi.map(column).collect())
        }
        Shown::Regions { .. } => {
            if let Some(centroid) = policy.centroid {
                let column = |at: usize| CentroidColumn::of(&policy.quasi[at], centroid);
                return Ok(RecodingRecord::Centroids(quasi.map(column).collect()));
            }
            let column = |at: usize| {
                let quasi = &policy.quasi[at];
                RegionColumn {
                    column: quasi.name.clone(),
                    value_type: quasi.hierarchy.input_type().to_string(),
                    shows: Regions::of(&quasi.hierarchy),
                    written_as: quasi.interval_columns(policy).map(|columns| columns.names()),
                    joined_as: quasi
                        .hierarchy
                        .levels()
                        .first()
                        .and_then(|level| level.descriptor().label_of_merge().cloned()),
                }
            };
            RecodingRecord::Regions(RegionsRecord { ends: policy.ends, columns: quasi.map(column).collect() })
        }
    })
}

/// Returns the unit that models and risks count, in the words of a record.
pub(crate) fn counted_in(individuals: bool) -> &'static str {
    if individuals { "individuals" } else { "rows" }
}

/// Returns the record of each released column.
///
/// # Errors
/// An internal error if the schema lacks one.
pub(crate) fn column_records(policy: &Policy, schema: &Schema) -> Result<Vec<ColumnRecord>> {
    let columns = policy.released().map(|(name, role)| {
        let quasi = policy.quasi_index(name).map(|index| &policy.quasi[index]);
        let data_type = match quasi.and_then(|quasi| quasi.interval_columns(policy)) {
            Some(columns) => columns.value_type.to_string(),
            None => {
                let field = schema.field_with_name(name);
                field
                    .map_err(|_| Error::internal("record: the schema lacks a released column"))?
                    .data_type()
                    .to_string()
            }
        };
        let days_since = policy.days_since.get(name).cloned();
        Ok(ColumnRecord { name: name.to_owned(), role: role.word().to_owned(), data_type, days_since })
    });
    columns.collect()
}

/// Returns the record of what a chosen recoding shows, and of the one table that it makes.
///
/// # Errors
/// An internal error if the schema lacks a column, a data error if a file cannot be read.
pub(crate) fn chosen_record(
    policy: &Policy,
    chosen: &Chosen,
    verified: &Verified,
    parts: &[write::Part],
    folder: &Path,
) -> Result<Tables> {
    let quasi = policy.released().filter_map(|(name, _)| policy.quasi_index(name));
    let table = TableRecord {
        folder: None,
        columns: column_records(policy, &chosen.schema)?,
        rows: verified.rows,
        files: FileRecord::all(folder, parts)?,
    };
    Ok(Tables {
        recoding: recoding_record(policy, &chosen.shown, quasi)?,
        tables: vec![table],
        classes: verified.sizes.classes(),
    })
}

/// The released tables in a record.
pub(crate) struct Tables {
    pub(crate) recoding: RecodingRecord,
    pub(crate) tables: Vec<TableRecord>,
    /// The number of classes, or of groups.
    pub(crate) classes: u64,
}

/// Builds the public record.
pub(crate) fn public_record(
    policy: &Policy,
    tables: Tables,
    verified: &Verified,
    unique: UniqueTogether,
) -> Result<PublicRecord> {
    let Tables { recoding, tables, classes } = tables;
    let models = policy.requirements.iter().zip(verified.recorded());
    PublicRecord {
        format: FORMAT,
        tool: write::CREATED_BY.to_owned(),
        statement: Some(Statement::of(policy, policy.released_on.clone())),
        models: models.map(|(requirement, reached)| ModelRecord::of(requirement, reached)).collect(),
        counted_in: counted_in(policy.individual().is_some()).to_owned(),
        recoding,
        tables,
        individuals: policy.individual().map(|_| verified.sizes.individuals()),
        classes,
        unique,
        homogeneous: verified.homogeneous.clone(),
        risk: risks(&verified.sizes)?,
        digest: String::new(),
    }
    .sealed()
}

/// Returns what the models reached that compare classes with the whole input.
fn compared_with_input(policy: &Policy, verified: &Verified) -> Vec<ModelRecord> {
    let models = policy.requirements.iter().zip(&verified.reached);
    let compared = models.filter(|(requirement, _)| compared_with(requirement).is_some());
    let record = compared.map(|(requirement, reached)| ModelRecord::of(requirement, *reached));
    record.map(|record| ModelRecord { compared_with: Some("input".into()), ..record }).collect()
}

/// What only the private record says of a recoding.
pub(crate) enum Secret {
    /// Nothing: the public record says all.
    Nothing,
    /// What each combination of values shows.
    Assignment(Bytes),
    /// The key by which rows were dealt to groups.
    DealingKey(DealingKey),
    /// The key by which noise was drawn.
    NoiseKey(NoiseKey),
}

impl Secret {
    /// Returns what is secret of classes that show this.
    pub(crate) fn of(shown: &Shown) -> Self {
        match shown {
            Shown::Levels { .. } => Self::Nothing,
            Shown::Regions { assignment, .. } => Self::Assignment(assignment.clone()),
            Shown::Noise { key, .. } => Self::NoiseKey(*key),
        }
    }
}

/// Builds the private record, for the publisher only.
#[expect(clippy::too_many_arguments, reason = "a record is made of all that happened")]
pub(crate) fn private_record(
    source: &PolicySource<'_>,
    policy: &Policy,
    input: &Input,
    public: &PublicRecord,
    before: &Before,
    verified: &Verified,
    as_is: Vec<AsIsColumn>,
    secret: Secret,
    search: SearchRecord,
    utility: Option<Utility>,
    recoding_of: Option<String>,
) -> Result<PrivateRecord> {
    let (mut assignment, mut dealing_key, mut noise_key) = (None, None, None);
    match secret {
        Secret::Nothing => {}
        Secret::Assignment(lines) => assignment = Some(STANDARD.encode(lines)),
        Secret::DealingKey(key) => dealing_key = Some(digest::hex(&key.0)),
        Secret::NoiseKey(key) => noise_key = Some(digest::hex(&key.0)),
    }
    let key: [u8; 32] = digest::random_key()?;
    let hierarchies =
        source.spec.hierarchy_files().into_iter().map(|name| Ok((name.to_owned(), source.files.read(name)?)));
    let files = input.files.iter().map(|file| {
        let path =
            std::fs::canonicalize(&file.path).context(&format!("input file {}", file.path.display()))?;
        Ok(InputRecord { hmac_sha256: digest::keyed(&path, &key)?, path, bytes: file.bytes })
    });
    Ok(PrivateRecord {
        format: FORMAT,
        release: public.digest.clone(),
        policy: source.text.to_owned(),
        hierarchies: hierarchies.collect::<Result<_>>()?,
        merged: merged_trees::recorded(policy)?,
        merged_labels: merged_trees::recorded_labels(policy),
        input: input.argument.clone(),
        files: files.collect::<Result<_>>()?,
        digest_key: digest::hex(&key),
        input_columns: before.columns.clone(),
        input_rows: before.rows,
        input_individuals: before.individuals,
        input_rows_without_individual: before.unowned_rows,
        duplicate_rows: before.duplicates,
        suppressed_rows: verified.suppressed_rows.unwrap_or_default(),
        suppressed_individuals: verified.individuals.map(|individuals| individuals.suppressed),
        suppressed_rows_without_individual: verified
            .individuals
            .map(|individuals| individuals.suppressed_unowned),
        suppression_limit: before.limit,
        risk_before: risks(&before.sizes)?,
        compared_with_input: compared_with_input(policy, verified),
        as_is,
        assignment,
        dealing_key,
        noise_key,
        search,
        utility,
        recoding_of,
    })
}
