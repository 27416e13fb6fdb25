//! What an attacker finds in the files of two releases alone: rows that pair ([`pairs`](super::pairs)), and rows that are left
//! when one is subtracted from the other ([`remainders`](super::remainders)). Both are also written as SQL, for any engine that
//! reads Parquet.

use arrow::array::AsArray;
use arrow::datatypes::{DataType, UInt64Type};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;

use super::pairs::{PairedRows, pair_rows};
use super::remainders::{Remainders, remainders};
use crate::engine::{Context, Rules, Run};
use crate::error::{Error, Result};
use crate::model::{Requirement, least_holders};
use crate::progress::CancelToken;
use crate::release::publish::local_release::{LocalRelease, Needed};
use crate::release::publish::place::Place;
use crate::release::publish::record::{ModelRecord, PublicRecord};
use crate::release::read_tables;
use crate::role::Role;

pub(super) const DOING: &str = "comparing the files of two releases";

/// What two releases show together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundInFiles {
    /// The greatest number of people that a class of either promises.
    pub(crate) k: u64,
    /// The rows of the smaller release.
    pub(crate) rows: u64,
    pub(crate) paired: PairedRows,
    pub(crate) remainders: Remainders,
    /// What was found, as SQL that finds it again.
    pub(crate) proofs: Vec<String>,
}

/// Compares the files of two releases, the earlier one first. With `prove`, what was found is also written as SQL.
///
/// # Errors
/// An unmet error for a record that was edited, a data error when a release cannot be read or memory runs out.
pub(crate) async fn compare_files(run: &Run, places: [&Place; 2], prove: bool) -> Result<FoundInFiles> {
    let session = run.resources.session(Rules::new())?;
    let [first, second] = places.map(|place| Side::read(&session, place, run));
    let sides = [&first?, &second?];
    let (k, rows) = (sides[0].k.max(sides[1].k), sides[0].rows.min(sides[1].rows));
    let paired = pair_rows(&session, sides, k, rows, &run.stop).await?;
    let remainders = remainders(sides, k, &run.stop).await?;
    let mut proofs = Vec::new();
    if prove && paired.fewer_than_k > 0 {
        proofs.push(paired.proof(sides, k));
    }
    if prove && remainders.rows > 0 {
        proofs.push(Remainders::proof(sides, k));
    }
    Ok(FoundInFiles { k, rows, paired, remainders, proofs })
}

/// One of two releases.
pub(super) struct Side {
    _local: LocalRelease,
    pub(super) table: DataFrame,
    /// The columns released as they are, with their types.
    pub(super) as_is: Vec<(String, String)>,
    /// The columns released as they are of whose values a model promises something.
    promised: Vec<String>,
    /// The columns in which the files hold the quasi-identifiers.
    pub(super) quasi: Vec<String>,
    pub(super) rows: u64,
    k: u64,
    /// The files, as a table of SQL.
    pub(super) in_sql: String,
}

impl Side {
    fn read(session: &SessionContext, place: &Place, run: &Run) -> Result<Self> {
        let local = LocalRelease::read(place, Needed::All, &run.stop)?;
        let public = PublicRecord::read(local.out())?;
        let table = read_tables(session, local.out(), &public)?.into_iter().next();
        let first =
            public.tables.first().ok_or_else(|| Error::internal("compare: a release without a table"))?;
        let as_is = [Role::Sensitive, Role::Insensitive].map(Role::word);
        let as_is = first.columns.iter().filter(|column| as_is.contains(&column.role.as_str()));
        let models = public.models.iter().map(ModelRecord::requirement);
        let models = models.collect::<Result<Vec<Requirement>>>()?;
        let folder = first.folder.as_ref().map(|folder| format!("/{folder}")).unwrap_or_default();
        let (files, folders) = match first.partition_by.is_empty() {
            true => ("*.parquet", ""),
            false => ("**/*.parquet", ", hive_partitioning = true"),
        };
        let path = format!("{}{folder}/{files}", place.out()).replace('\'', "''");
        Ok(Self {
            as_is: as_is.map(|column| (column.name.clone(), column.data_type.clone())).collect(),
            table: table.ok_or_else(|| Error::internal("compare: a release without a table"))?,
            promised: public.models.iter().filter_map(|model| model.sensitive.clone()).collect(),
            quasi: public.written_quasi()?,
            rows: public.rows(),
            k: least_holders(&models),
            in_sql: format!("read_parquet('{path}'{folders})"),
            _local: local,
        })
    }
}

impl Side {
    /// Returns the type of a column of the files.
    pub(super) fn type_of(&self, name: &str) -> Option<DataType> {
        let schema = self.table.schema().as_arrow();
        schema.field_with_name(name).ok().map(|field| field.data_type().clone())
    }
}

/// Returns the columns that both releases show as they are, with the same type.
pub(super) fn as_is_in_both(sides: [&Side; 2]) -> Vec<String> {
    let is_in_both = |column: &&(String, String)| sides[1].as_is.contains(column);
    sides[0].as_is.iter().filter(is_in_both).map(|(name, _)| name.clone()).collect()
}

/// Returns the columns that both show as they are and of whose values either promises something.
pub(super) fn promised_in_both(sides: [&Side; 2]) -> Vec<String> {
    let is_promised = |name: &String| sides.iter().any(|side| side.promised.contains(name));
    as_is_in_both(sides).into_iter().filter(is_promised).collect()
}

/// Returns names as SQL writes them.
pub(super) fn quoted(names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect()
}

/// Calls `see` for every row of a table of two columns.
pub(super) async fn each(rows: DataFrame, stop: &CancelToken, mut see: impl FnMut([u64; 2])) -> Result<()> {
    let mut stream = rows.execute_stream().await.context(DOING)?;
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.context(DOING)?;
        let columns = [0, 1].map(|at| batch.column(at).as_primitive_opt::<UInt64Type>());
        let [Some(a), Some(b)] = columns else { return Err(Error::internal("pairs: a column is no number")) };
        a.values().iter().zip(b.values()).for_each(|(a, b)| see([*a, *b]));
    }
    Ok(())
}
