//! The linkage attack: what an attacker with a list of people finds in a table. It is the attack of
//! [`SWEENEY_2002`]'s introduction, where a voter list identified rows of hospital data.
//!
//! A is the list, B the table. Both are grouped by the columns that they share, NULL equal to NULL:
//!
//! ```text
//! B   GROUP BY keys          -> matches (rows or individuals), whether all rows share a sensitive value
//! A   GROUP BY keys, person  -> rows
//! B RIGHT JOIN A, GROUP BY person -> the fewest matches of a row that matches any
//! GROUP BY matches           -> people
//! ```
//! Where B names its individuals, the rows of a person of A are one person's in B too: its matches
//! are the individuals who match all of these rows (`by_all_rows.rs`). Rows of B without individuals
//! cannot be intersected so, because each is a row of its own.
//!
//! Where B is a release, A is first generalized according to B's record, which an attacker can also
//! read. Groups of A stream past those of B, which are held in the engine's memory.
//!
//! [`SWEENEY_2002`]: crate::papers::SWEENEY_2002

mod assigned;
mod linked_columns;
mod nearest;
mod pairs;
mod recode;
mod regions;
mod remainders;
mod text_reading;
pub(crate) mod two_releases;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};
use arrow::record_batch::RecordBatch;
use datafusion::common::{Column, NullEquality};
use datafusion::functions_aggregate::expr_fn::{count, count_distinct, max, min, sum};
use datafusion::logical_expr::{Expr, JoinType, LogicalPlanBuilder, lit, when};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;

use crate::engine::candidates::{APART, ByRow, Linkable, by_all_rows};
use crate::engine::functions::{random_keys, row_hash};
use crate::engine::{Context, Run, column, counting_rules};
use crate::error::{Error, Result};
use crate::input::{Input, InputFormat, PolicySource};
use crate::linkage::linked_columns::{columns, sensitive, unused};
use crate::linkage::recode::{AttackerRecoding, JoinKey, csv_type};
use crate::policy::{CsvOptions, CsvType, FilesAndTrees, PolicySpec};
use crate::release::publish::local_release::{LocalRelease, Needed};
use crate::release::publish::place::Place;
use crate::release::publish::record::{PrivateRecord, PublicRecord};
use crate::release::written_columns::{as_texts, schema_as_texts};
use crate::verify::assignment::LinesShow;

/// The attacker's data and goals.
pub struct Attack<'a> {
    /// A, the list of people.
    pub list: &'a Input,
    /// The individual column of A; without one each row is an individual. NULL counts no individual.
    pub individual: Option<&'a str>,
    /// B, the table that is attacked.
    pub table: &'a Input,
    /// The place of B when B is a release.
    pub release: Option<&'a Place>,
    /// The column of B whose distinct values are counted as matches; without one its rows are. A
    /// row of B with NULL there is not a match, but its sensitive values can be learnt.
    pub individual_of_table: Option<&'a str>,
    /// The columns to link on; for a release, when empty, its quasi-identifiers that A has.
    pub on: &'a [String],
    /// The columns of B that the attacker wants to learn; for a release, when empty, its sensitive
    /// ones.
    pub sensitive: &'a [String],
    /// The policy of the release, instead of the copy in its private record.
    pub policy: Option<PolicySource<'a>>,
    /// The format of CSV files.
    pub csv: CsvOptions,
}

/// The result of an attack. The matches of an individual with several rows are the individuals of B
/// who match all of them; where B names none, it counts by the row with the fewest matches. Rows
/// without a match are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linked {
    /// The linked columns, and the recoding of A where B is a release.
    pub on: Vec<(String, Option<String>)>,
    /// The other quasi-identifiers of B where it is a release, and why they are not linked.
    pub unused: Vec<(String, String)>,
    /// The linked columns whose texts are read by themselves, because their hierarchies are not available.
    pub read_alone: Vec<String>,
    /// The number of individuals of A by their number of matches: rows of B, or its individuals.
    pub matches: BTreeMap<u64, u64>,
    /// The individuals without a match. Where matches are individuals, some of them may match rows
    /// of B without an individual.
    pub unmatched: u64,
    /// Those of the unmatched whose rows match individuals of B, but no individual all of them.
    pub apart: u64,
    /// If no individual has a match: the linked columns without a common value; each alone rules
    /// out every match.
    pub never_equal: Vec<String>,
    /// For each sensitive column, the individuals with a row all of whose matches share one
    /// non-NULL value; of an individual with several rows, those matches that may be its own.
    pub homogeneous: Vec<(String, u64)>,
    /// The rows of A with a value that B's hierarchy file does not have; they match nothing.
    pub uncovered: u64,
    /// The rows of A without an individual.
    pub rows_without_individual: u64,
    /// Whether people match the classes that the private record assigns to their values, rather
    /// than all whose regions hold these.
    pub are_assigned: bool,
    /// Whether the classes of B show centroids; without the private record, people match the nearest.
    pub are_centroids: bool,
    /// The rows suppressed in B, where its private record is available.
    pub suppressed_rows: Option<u64>,
}

impl Linked {
    /// Returns the number of individuals in A.
    pub fn individuals(&self) -> u64 {
        self.matched() + self.unmatched
    }

    /// Returns the number of individuals with a match.
    pub fn matched(&self) -> u64 {
        self.matches.values().sum()
    }

    /// Returns the number of individuals with exactly one match: they are re-identified, if they
    /// are in B at all.
    pub fn unique(&self) -> u64 {
        self.matches.get(&1).copied().unwrap_or(0)
    }

    /// Returns the fewest matches of an individual with any match.
    pub fn least(&self) -> Option<u64> {
        self.matches.keys().next().copied()
    }
}

/// Runs an attack.
///
/// # Errors
/// A policy error when columns are missing or cannot be compared, an unmet error when a release
/// does not match its record, a data error when reading fails, memory runs out or A has no
/// individuals.
pub async fn link(run: &Run, attack: &Attack<'_>) -> Result<Linked> {
    let release =
        attack.release.map(|place| LocalRelease::read(place, Needed::Record, &run.stop)).transpose()?;
    let mut linked = link_on(run, attack, release.as_ref()).await?;
    if linked.matched() + linked.apart > 0 {
        return Ok(linked);
    }
    for (name, _) in &linked.on {
        let (on, is_only) = (std::slice::from_ref(name), linked.on.len() == 1);
        let attack = Attack { on, csv: attack.csv.clone(), ..*attack };
        let is_met = |linked: &Linked| linked.matched() + linked.apart > 0;
        if is_only || !is_met(&link_on(run, &attack, release.as_ref()).await?) {
            linked.never_equal.push(name.clone());
        }
    }
    Ok(linked)
}

/// Runs an attack on given columns.
async fn link_on(run: &Run, attack: &Attack<'_>, release: Option<&LocalRelease>) -> Result<Linked> {
    let public = release.map(|release| PublicRecord::read(release.out())).transpose()?;
    let private = match (release, &public) {
        (Some(release), Some(public)) => release.private_record(public)?,
        _ => None,
    };
    let spec = private.as_ref().map(|private| PolicySpec::parse(&private.policy)).transpose()?;
    let trees = private.as_ref().map(PrivateRecord::trees).transpose()?.unwrap_or_default();
    let own = private.as_ref().zip(spec.as_ref());
    let own = own.map(|(private, spec)| PolicySource { spec, files: &private.hierarchies });
    let policy = attack.policy.or(own);
    let files = policy.map(|policy| FilesAndTrees { files: policy.files, trees });
    let policy = policy.zip(files.as_ref()).map(|(policy, files)| PolicySource { files, ..policy });

    let csv = &attack.csv;
    let intervals =
        public.as_ref().map(|public| public.recoding.written_columns()).transpose()?.unwrap_or_default();
    let of_table = Arc::new(schema_as_texts(&*attack.table.file_schema(csv)?, &intervals));
    let schemas = (attack.list.file_schema(csv)?, of_table);
    let recoding = AttackerRecoding { public: public.as_ref(), policy };
    let on = columns(attack, &schemas.0, &schemas.1, &recoding)?;
    let unused =
        public.as_ref().map_or_else(Vec::new, |public| unused(attack, public, &on, &schemas.0, &recoding));
    let value_types: Vec<Option<DataType>> =
        on.iter().map(|name| recoding.value_type(name)).collect::<Result<_>>()?;
    let mut types: HashMap<&str, CsvType> = HashMap::new();
    for (name, of_region) in on.iter().zip(&value_types) {
        let other = if attack.list.format == InputFormat::Csv { &schemas.1 } else { &schemas.0 };
        let other = other.field_with_name(name).map_err(Error::internal)?.data_type();
        types.insert(name, csv_type(&recoding, name, of_region.as_ref().unwrap_or(other))?);
    }
    let csv_type = |name: &str| types.get(name).copied().unwrap_or(CsvType::Text);

    let session = run.resources.session(counting_rules())?;
    let read = async |input: &Input| {
        let table = input.table(&session, csv, &csv_type).await;
        let advised = |error: Error| if policy.is_none() { error.advised(WITHOUT_POLICY) } else { error };
        table.map_err(|error| advised(error).at(&input.argument))
    };
    let (list, table) = (read(attack.list).await?, as_texts(read(attack.table).await?, &intervals)?);
    let names = (attack.list.argument.as_str(), attack.table.argument.as_str());
    let sensitive = sensitive(attack, &on, public.as_ref());
    let (mut recoded, mut are_assigned, mut read_alone) = (Vec::new(), false, Vec::new());
    let found = if value_types.iter().any(Option::is_some) {
        if attack.individual_of_table.is_some() {
            return Err(Error::policy(format!(
                "--individual-of-b: the classes of {} show regions or centroids, whose rows are counted; leave it out",
                names.1
            )));
        }
        let columns = regions::columns(&on, &recoding, &list, names.0)?;
        let by = |name| public.as_ref().and_then(|public| public.recoding.descriptor(name));
        recoded.extend(on.iter().map(|name| (name.clone(), by(name).map(|by| by.to_string()))));
        let groups = hashed_groups(table, on.iter().map(column).collect(), attack, &sensitive)?;
        let classes =
            regions::Classes::read(&session, groups, columns, sensitive.len(), private.as_ref(), &recoding)
                .await?;
        (are_assigned, read_alone) = (classes.are_assigned(), classes.read_alone());
        found(classes.found_by(list, attack.individual)?, attack, &sensitive, None)?
    } else {
        let mut keys = Vec::new();
        for name in &on {
            let (key, by) = recoding.key(name, &list, &table, names).await?;
            keys.extend(key);
            recoded.push((name.clone(), by));
        }
        let sides = sides(&list, &table, &keys, attack);
        found(joined(&session, list, table, &keys, attack, &sensitive)?, attack, &sensitive, sides)?
    };
    let mut linked = Linked {
        on: recoded,
        unused,
        read_alone,
        matches: BTreeMap::new(),
        unmatched: 0,
        apart: 0,
        never_equal: Vec::new(),
        homogeneous: sensitive.into_iter().map(|name| (name, 0)).collect(),
        uncovered: 0,
        rows_without_individual: 0,
        are_assigned,
        are_centroids: public
            .as_ref()
            .and_then(|public| public.recoding.lines_show())
            .is_some_and(|shows| matches!(shows, LinesShow::Centroids(_))),
        suppressed_rows: private.map(|private| private.suppressed_rows),
    };
    let mut stream = found.execute_stream().await.context(DOING)?;
    while let Some(batch) = stream.next().await {
        run.stop.check()?;
        linked.add(&batch.context(DOING)?)?;
    }
    if linked.individuals() == 0 {
        let why = if linked.rows_without_individual > 0 { "no row that names a person" } else { "no rows" };
        return Err(Error::data(format!("{} has {why}", attack.list.argument)));
    }
    Ok(linked)
}

const DOING: &str = "linking the list with the table";

/// Where a reader without the policy sets the keys that a message names.
const WITHOUT_POLICY: &str = "without a policy, --csv takes the keys of [input]";

const PERSON: &str = "kanon_person";
const ROWS: &str = "kanon_rows";
const MATCHES: &str = "kanon_matches";
const COVERED: &str = "kanon_covered";
const COUNTS: [&str; 4] = ["kanon_people", "kanon_nobody", "kanon_uncovered", APART];

/// Returns the names of one side's key columns; the last one holds whether hierarchy files have all
/// values of the row.
fn key_names(side: &str, keys: &[JoinKey]) -> Vec<String> {
    let names = (0..keys.len()).map(|index| format!("kanon_{side}_{index}"));
    names.chain([format!("{COVERED}_{side}")]).collect()
}

fn numbered(what: &str, count: usize) -> Vec<String> {
    (0..count).map(|index| format!("kanon_{what}_{index}")).collect()
}

fn all(names: &[String]) -> Vec<Expr> {
    names.iter().map(column).collect()
}

/// Converts a condition to 1 or 0.
fn flag(condition: Expr) -> Result<Expr> {
    when(condition, lit(1i64)).otherwise(lit(0i64)).context(DOING)
}

/// Builds the groups of B by some columns: these, matches, rows, and per sensitive column the least
/// and the greatest hash of a value and the rows with a value.
fn hashed_groups(
    table: DataFrame,
    keys: Vec<Expr>,
    attack: &Attack<'_>,
    sensitive: &[String],
) -> Result<DataFrame> {
    let names: Vec<String> = keys.iter().map(|key| key.schema_name().to_string()).collect();
    let hashes = numbered("hash", sensitive.len());
    let mut columns = keys;
    // Equal values have equal hashes; different values collide with a probability of 1 in 2^64.
    let [secret, _] = random_keys(DOING)?;
    for (name, hash) in sensitive.iter().zip(&hashes) {
        let known = when(column(name).is_not_null(), row_hash(secret, vec![column(name)]));
        columns.push(known.end().context(DOING)?.alias(hash));
    }
    columns.extend(attack.individual_of_table.map(|name| column(name).alias(PERSON)));
    let mut counted = vec![count(lit(1i64)).alias(ROWS)];
    let matches =
        if attack.individual_of_table.is_some() { count_distinct(column(PERSON)) } else { count(lit(1i64)) };
    counted.push(matches.alias(MATCHES));
    for hash in &hashes {
        counted.push(min(column(hash)).alias(format!("{hash}_least")));
        counted.push(max(column(hash)).alias(format!("{hash}_most")));
        counted.push(count(column(hash)).alias(format!("{hash}_known")));
    }
    table.select(columns).context(DOING)?.aggregate(all(&names), counted).context(DOING)
}

/// Builds the groups of B: keys, matches (NULL for none), and per sensitive column 1 if all rows
/// share a value.
fn groups_of_table(
    table: DataFrame,
    keys: &[JoinKey],
    attack: &Attack<'_>,
    sensitive: &[String],
) -> Result<DataFrame> {
    let names = key_names("b", keys);
    let hashes = numbered("hash", sensitive.len());
    let of_keys = keys_of_table(keys).into_iter();
    let of_keys = of_keys.zip(&names).map(|(key, name)| key.alias(name)).collect();
    let groups = hashed_groups(table, of_keys, attack, sensitive)?;
    // A group may hold only rows without an individual: it has no match, but its sensitive values
    // can be learnt.
    let matches = when(column(MATCHES).gt(lit(0i64)), column(MATCHES)).end().context(DOING)?;
    let mut columns = all(&names);
    columns.push(matches.alias(MATCHES));
    for (hash, shared) in hashes.iter().zip(numbered("shared", sensitive.len())) {
        let one = column(format!("{hash}_least")).eq(column(format!("{hash}_most")));
        let known = column(format!("{hash}_known")).eq(column(ROWS));
        columns.push(flag(one.and(known))?.alias(shared));
    }
    groups.select(columns).context(DOING)
}

/// Returns the keys of a row of A, and whether hierarchy files have all its values.
fn keys_of_list(keys: &[JoinKey]) -> Vec<Expr> {
    let covered = keys.iter().filter_map(JoinKey::covered).reduce(Expr::and).unwrap_or(lit(true));
    keys.iter().map(JoinKey::of_list).chain([covered]).collect()
}

/// Returns the keys of a row of B, with `true` for those of A that hierarchy files have.
fn keys_of_table(keys: &[JoinKey]) -> Vec<Expr> {
    keys.iter().map(JoinKey::of_table).chain([lit(true)]).collect()
}

/// Returns both tables where both name their individuals, so that several rows of one are looked at
/// together.
fn sides(
    list: &DataFrame,
    table: &DataFrame,
    keys: &[JoinKey],
    attack: &Attack<'_>,
) -> Option<[Linkable; 2]> {
    let side = |rows: &DataFrame, keys: Vec<Expr>, individual: &str| Linkable {
        rows: rows.logical_plan().clone(),
        keys,
        individual: column(individual),
    };
    Some([
        side(list, keys_of_list(keys), attack.individual?),
        side(table, keys_of_table(keys), attack.individual_of_table?),
    ])
}

/// Builds the groups of A: keys, the individual where a column names one, and rows.
fn groups_of_list(list: DataFrame, keys: &[JoinKey], individual: Option<&str>) -> Result<DataFrame> {
    let names = key_names("a", keys);
    let of_keys = keys_of_list(keys).into_iter();
    let mut columns: Vec<Expr> = of_keys.zip(&names).map(|(key, name)| key.alias(name)).collect();
    columns.extend(individual.map(|name| column(name).alias(PERSON)));
    let groups = [all(&names), individual.map(|_| column(PERSON)).into_iter().collect()].concat();
    let counted = vec![count(lit(1i64)).alias(ROWS)];
    list.select(columns).context(DOING)?.aggregate(groups, counted).context(DOING)
}

/// Joins the groups of A with those of B.
fn joined(
    session: &SessionContext,
    list: DataFrame,
    table: DataFrame,
    keys: &[JoinKey],
    attack: &Attack<'_>,
    sensitive: &[String],
) -> Result<DataFrame> {
    let (_, table) = groups_of_table(table, keys, attack, sensitive)?.into_parts();
    let (_, list) = groups_of_list(list, keys, attack.individual)?.into_parts();
    let names = |side: &str| key_names(side, keys).into_iter().map(Column::from_name).collect::<Vec<_>>();
    let joined = LogicalPlanBuilder::from(table)
        .join_detailed(list, JoinType::Right, (names("b"), names("a")), None, NullEquality::NullEqualsNull)
        .context(DOING)?;
    Ok(DataFrame::new(session.state(), joined.build().context(DOING)?))
}

/// Builds the plan of the attack from the groups of A with what they match: matches (NULL for
/// none), individuals, rows without an individual, uncovered rows, individuals whose rows match no
/// one together, and for each sensitive column the individuals for whom all matching rows share a
/// value. `sides` are given to look at several rows of an individual together.
fn found(
    joined: DataFrame,
    attack: &Attack<'_>,
    sensitive: &[String],
    sides: Option<[Linkable; 2]>,
) -> Result<DataFrame> {
    let shared = numbered("shared", sensitive.len());
    let covered = column(format!("{COVERED}_a"));
    let uncovered = when(covered, lit(0i64)).otherwise(column(ROWS)).context(DOING)?;
    let [of_individuals, of_unnamed, of_uncovered, apart] = COUNTS;
    let mut columns = vec![column(MATCHES), uncovered.alias(of_uncovered)];
    columns.extend(all(&shared));
    let each = match attack.individual {
        None => {
            let none = |name: &str| lit(0i64).alias(name);
            columns.extend([column(ROWS).alias(of_individuals), none(of_unnamed), none(apart)]);
            joined.select(columns).context(DOING)?
        }
        Some(_) => {
            columns.extend([column(PERSON), column(ROWS)]);
            let summed = |name: &str| sum(column(name)).alias(name);
            let mut least = vec![min(column(MATCHES)).alias(MATCHES), summed(of_uncovered), summed(ROWS)];
            least.extend(shared.iter().map(|name| max(column(name)).alias(name)));
            let rows = joined.select(columns).context(DOING)?;
            let each = rows.aggregate(vec![column(PERSON)], least).context(DOING)?;
            let each = match sides {
                None => each.with_column(apart, lit(0i64)).context(DOING)?,
                Some(sides) => together(each, sides, sensitive, &shared)?,
            };
            let unnamed = when(column(PERSON).is_null(), column(ROWS)).otherwise(lit(0i64)).context(DOING)?;
            let unnamed = unnamed.alias(of_unnamed);
            let mut columns = vec![column(MATCHES), column(of_uncovered), unnamed, column(apart)];
            columns.push(flag(column(PERSON).is_not_null())?.alias(of_individuals));
            columns.extend(all(&shared));
            each.select(columns).context(DOING)?
        }
    };
    let mut sums: Vec<Expr> = COUNTS.iter().map(|name| sum(column(*name)).alias(*name)).collect();
    for name in &shared {
        let individuals = when(column(name).eq(lit(1i64)), column(of_individuals)).otherwise(lit(0i64));
        sums.push(sum(individuals.context(DOING)?).alias(name));
    }
    each.aggregate(vec![column(MATCHES)], sums).context(DOING)
}

/// Counts people with several rows by all of them.
fn together(
    people: DataFrame,
    [a, b]: [Linkable; 2],
    sensitive: &[String],
    learnt: &[String],
) -> Result<DataFrame> {
    let (state, people) = people.into_parts();
    let by_row = ByRow { people, person: PERSON, matches: MATCHES, learnt };
    let values = sensitive.iter().map(column).collect();
    let [secret, _] = random_keys(DOING)?;
    Ok(DataFrame::new(state, by_all_rows(by_row, a, b, values, secret).context(DOING)?))
}

impl Linked {
    /// Adds rows of the plan.
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let wrong = || Error::internal("linkage: a count is not a BIGINT");
        let numbers = batch.columns().iter().map(|array| array.as_primitive_opt::<Int64Type>());
        let numbers = numbers.collect::<Option<Vec<_>>>().ok_or_else(wrong)?;
        let [matches, individuals, unnamed, uncovered, apart, homogeneous @ ..] = numbers.as_slice() else {
            return Err(wrong());
        };
        for row in 0..batch.num_rows() {
            let at = |array: &Int64Array| u64::try_from(array.value(row)).map_err(|_| wrong());
            let count = at(individuals)?;
            if matches.is_null(row) {
                self.unmatched += count;
            } else if count > 0 {
                *self.matches.entry(at(matches)?).or_default() += count;
            }
            self.rows_without_individual += at(unnamed)?;
            self.uncovered += at(uncovered)?;
            self.apart += at(apart)?;
            for (all, array) in self.homogeneous.iter_mut().zip(homogeneous) {
                all.1 += at(array)?;
            }
        }
        Ok(())
    }
}
