//! DataFusion sessions with bounded memory, and the mapping of the engine's errors.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::config::ConfigNonZeroUsize;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SessionStateBuilder, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};

use super::cast_errors;
use super::rules::Rules;
use crate::class::Budget;
use crate::error::{Error, ErrorCode, ErrorKind, Result};

/// The unit in which INT96 timestamps of Parquet files are read, as the engine's option names it. By
/// default they are read in nanoseconds, which end in 2262: the year 9999 would become 1816.
pub(crate) const INT96_UNIT: &str = "us";

/// The threads, memory and spill folder of a session.
#[derive(Debug, Clone)]
pub struct Resources {
    /// Worker threads and plan partitions.
    pub threads: usize,
    /// Bytes of memory; the operators' pool gets 70 % of them, because decoding and buffers are
    /// outside it.
    pub memory: usize,
    /// The folder for spill files; the system's if `None`.
    pub spill: Option<PathBuf>,
}

impl Resources {
    /// Returns one thread per core, and 4 GiB.
    pub fn default_of_machine() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory: 4 << 30,
            spill: None,
        }
    }

    /// Returns the resources of a running query of another session.
    pub(crate) fn of_task(context: &TaskContext) -> Self {
        let pool = match context.runtime_env().memory_pool.memory_limit() {
            MemoryLimit::Finite(pool) => pool,
            MemoryLimit::Infinite | MemoryLimit::Unknown => Self::default_of_machine().pool(),
        };
        let threads = context.session_config().target_partitions();
        Self { threads, memory: Self::memory_of(pool), spill: None }
    }

    /// Returns a new session with these rules of this crate, and with statistics from footers and join reordering turned
    /// off: the engine runs the plan as written, and counts are counts of rows.
    ///
    /// # Errors
    /// A data error when the spill folder cannot be made.
    #[doc(hidden)]
    pub fn session(&self, rules: Rules) -> Result<SessionContext> {
        Ok(self.session_of(self.runtime()?, rules))
    }

    /// Returns a session like [`session`](Self::session), with the memory and the spill files of
    /// another session.
    pub(crate) fn session_of(&self, runtime: Arc<RuntimeEnv>, rules: Rules) -> SessionContext {
        let mut config = SessionConfig::new().with_collect_statistics(false).with_parquet_pruning(false);
        let options = config.options_mut();
        options.optimizer.join_reordering = false;
        options.optimizer.enable_dynamic_filter_pushdown = false;
        options.optimizer.hash_join_single_partition_threshold = usize::MAX;
        options.optimizer.hash_join_single_partition_threshold_rows = usize::MAX;
        #[cfg(test)]
        let rules = super::watch::watching(rules);
        let builder = SessionStateBuilder::new().with_config(self.bounded(config)).with_runtime_env(runtime);
        let builder = builder.with_default_features();
        let builder = rules.into_iter().fold(builder, SessionStateBuilder::with_physical_optimizer_rule);
        SessionContext::new_with_state(builder.build())
    }

    /// Returns a new session for users' queries; no release may be made in it. It differs from the
    /// engine's own in that
    /// - file statistics are ignored: they omit NaN, so rows with NaN would be lost or changed;
    /// - threads, memory and the folder of spill files are these, and a sort reserves less;
    /// - a count in each thread is given up sooner where it saves little;
    /// - a repartition that spills writes a file for each batch;
    /// - INT96 timestamps of Parquet files are read in microseconds;
    /// - `information_schema` can be queried.
    ///
    /// # Errors
    /// A data error when the spill folder cannot be made.
    #[doc(hidden)]
    pub fn query_session(&self) -> Result<SessionContext> {
        let config = SessionConfig::new().with_collect_statistics(false).with_parquet_pruning(false);
        let config = self.bounded(config.with_information_schema(true));
        Ok(SessionContext::new_with_config_rt(config, self.runtime()?))
    }

    /// Returns the settings of a session with these resources.
    fn bounded(&self, config: SessionConfig) -> SessionConfig {
        let mut config = config.with_target_partitions(self.threads.max(1));
        config.options_mut().execution.parquet.coerce_int96 = Some(INT96_UNIT.to_owned());
        // The default of 10 MB per sorting partition would use up a small pool.
        let reserve = &mut config.options_mut().execution.sort_spill_reservation_bytes;
        *reserve = (*reserve).min(self.pool() / self.threads.max(1) / 16);
        // Where every second row opens a class, counting in each thread first costs more than it saves.
        config.options_mut().execution.skip_partial_aggregation_probe_ratio_threshold = 0.5;
        // A repartition that spills can wait for itself in DataFusion up to 55.2, which is mended later
        // (apache/datafusion#24883): its reader waits for the end of a file, and the writer of the
        // file for the reader. A file for each batch ends at once.
        if let Ok(least) = ConfigNonZeroUsize::try_new(1) {
            config.options_mut().execution.max_spill_file_size_bytes = least;
        }
        config
    }

    fn pool(&self) -> usize {
        self.memory / 10 * 7
    }

    /// Returns the memory whose pool is no smaller.
    fn memory_of(pool: usize) -> usize {
        pool.div_ceil(7).saturating_mul(10)
    }

    fn runtime(&self) -> Result<Arc<RuntimeEnv>> {
        let mut runtime =
            RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(self.pool())));
        if let Some(folder) = &self.spill {
            runtime = runtime.with_temp_file_path(folder);
        }
        runtime.build_arc().map_err(|e| map_error(&e, "starting the engine"))
    }
}

/// Refers to a column by its exact name, which is never parsed as SQL.
pub fn column(name: impl Into<String>) -> Expr {
    Expr::Column(Column::from_name(name.into()))
}

/// Returns the rows of several tables, one after the other.
///
/// # Errors
/// When they have no columns in common, or there is none.
pub(crate) fn union_of(tables: Vec<DataFrame>, doing: &str) -> Result<DataFrame> {
    let mut tables = tables.into_iter();
    let first = tables.next().ok_or_else(|| Error::internal("union: no table"))?;
    tables.try_fold(first, |all, table| all.union(table).context(doing))
}

/// Memory that is taken from the engine's pool.
pub struct PoolBudget {
    pool: Arc<dyn MemoryPool>,
    reservation: MemoryReservation,
    doing: String,
}

impl PoolBudget {
    /// Takes a budget from the session's pool; `what` it is for is named in errors and in the pool's reports.
    pub fn new(session: &SessionContext, what: &str) -> Self {
        let pool: Arc<dyn MemoryPool> = Arc::clone(&session.runtime_env().memory_pool);
        let reservation = MemoryConsumer::new(what).register(&pool);
        Self { pool, reservation, doing: format!("holding the {what}") }
    }
}

impl Budget for PoolBudget {
    fn grow(&self, bytes: usize) -> Result<()> {
        self.reservation.try_grow(bytes).map_err(|_| self.refusal(bytes))
    }

    fn shrink(&self, bytes: usize) {
        self.reservation.shrink(bytes);
    }

    fn refusal(&self, bytes: usize) -> Error {
        let limit = Resources::memory_of(self.pool.reserved().saturating_add(bytes));
        let limit = limit_text(limit);
        let why = format!("out of memory; raise --memory-limit to about {limit} or lower --threads");
        Error::data(why).coded(ErrorCode::OutOfMemory).at(&self.doing)
    }
}

/// Writes a memory limit that is no smaller, in MiB with two digits other than 0.
fn limit_text(bytes: usize) -> String {
    let mib = bytes.div_ceil(1 << 20);
    let unit = 10usize.pow(mib.max(1).ilog10().saturating_sub(1));
    format!("{}M", mib.div_ceil(unit) * unit)
}

/// Maps an error of the engine to ours, without its text, which may quote cells. `doing` names the
/// step that failed.
pub fn map_error(error: &DataFusionError, doing: &str) -> Error {
    let other = |what: &str| Error::data(what);
    let damaged =
        || other("a Parquet file is damaged or has an unknown format").coded(ErrorCode::DamagedFile);
    let mapped = match error.find_root() {
        DataFusionError::External(inner) => of_external(&**inner),
        DataFusionError::ResourcesExhausted(_) => {
            other("out of memory; raise --memory-limit or lower --threads").coded(ErrorCode::OutOfMemory)
        }
        DataFusionError::IoError(io) => Error::from_io(io),
        DataFusionError::ObjectStore(store) => match &**store {
            object_store::Error::NotFound { .. } => other("a file disappeared").coded(ErrorCode::NotFound),
            store => own_cause(store)
                .or_else(|| Error::of_system(store))
                .unwrap_or_else(|| other("a file could not be read or written")),
        },
        DataFusionError::ParquetError(parquet) => {
            let own = own_cause(&**parquet).or_else(|| own_text(&parquet.to_string()));
            own.or_else(|| Error::of_system(&**parquet)).unwrap_or_else(damaged)
        }
        DataFusionError::ArrowError(arrow, _) => of_arrow(arrow),
        DataFusionError::Internal(_) | DataFusionError::ExecutionJoin(_) => {
            return Error::internal(format!("{doing}: the engine reported an internal error"));
        }
        DataFusionError::Execution(text) => {
            other(cast_errors::of_function(text).unwrap_or("the engine refused"))
        }
        _ => other("the engine refused"),
    };
    if mapped.kind() == ErrorKind::Interrupted {
        return mapped;
    }
    let is_full = mapped.code() == ErrorCode::NoSpace.name();
    (if is_full { mapped.and(SPILLED) } else { mapped }).at(doing)
}

/// What a step that only reads takes disk space for.
const SPILLED: &str = "; what does not fit into memory is kept on disk meanwhile, by `kanon release` beside its folder, by other commands in \
     the temporary folder (TMPDIR): free space there, or raise --memory-limit";

/// Maps an error that is not the engine's, which may be ours.
fn of_external(error: &(dyn std::error::Error + 'static)) -> Error {
    let own = error.downcast_ref::<Error>().cloned();
    let own = own.or_else(|| Error::of_system(error));
    own.unwrap_or_else(|| Error::data("an external component failed"))
}

/// Returns our error that caused an error of a library.
fn own_cause(error: &(dyn std::error::Error + 'static)) -> Option<Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(own) = error.downcast_ref::<Error>() {
            return Some(own.clone());
        }
        next = error.source();
    }
    None
}

/// Wraps our error for a library that reads from a store; [`map_error`] finds it again.
pub(crate) fn into_store(error: Error) -> object_store::Error {
    object_store::Error::Generic { store: "kanon", source: error.into() }
}

/// Finds an error that [`into_store`] wrapped where a library kept only its text, as the reader of Parquet footers does.
fn own_text(text: &str) -> Option<Error> {
    text.split_once("Generic kanon error: ").map(|(_, own)| Error::data(own))
}

/// Maps an error of Arrow to ours.
fn of_arrow(error: &arrow::error::ArrowError) -> Error {
    use arrow::error::ArrowError;
    let why = match error {
        ArrowError::CastError(text) => cast_errors::of_cast(text),
        ArrowError::DivideByZero => "division by zero",
        ArrowError::ArithmeticOverflow(_) => "a result is too large for its type",
        ArrowError::CsvError(_) => {
            "a CSV line does not match the columns (number of fields, quotes or UTF-8); check the delimiter \
             and the header, of an external table in OPTIONS ('format.delimiter' ';', 'format.has_header' 'true')"
        }
        ArrowError::ParseError(text) => cast_errors::of_parse(text),
        ArrowError::IoError(_, io) => return Error::from_io(io),
        ArrowError::MemoryError(_) => {
            return Error::data("out of memory; raise --memory-limit").coded(ErrorCode::OutOfMemory);
        }
        ArrowError::ParquetError(_) => {
            return Error::data("a Parquet file is damaged or has an unknown format")
                .coded(ErrorCode::DamagedFile);
        }
        ArrowError::ExternalError(inner) => return of_external(&**inner),
        _ => "the data cannot be processed",
    };
    Error::data(why)
}

/// Returns the error of this crate inside an error of the engine: that of a wrong policy in a call of `anonymize()`, for
/// instance, with its [kind](Error::kind) and [code](Error::code). `None` for an error of the engine itself, whose text may quote
/// cells.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use datafusion_kanon::{ErrorKind, own_error, register_all};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> datafusion::error::Result<()> {
/// let session = SessionContext::new();
/// register_all(&session)?;
/// let sql = "SELECT * FROM anonymize((SELECT 1 AS age), {k: 5, columns: {age: {role: 'quasy'}}})";
/// let error = session.sql(sql).await.unwrap_err();
/// assert_eq!(own_error(&error).map(|own| own.kind()), Some(ErrorKind::Policy));
/// # Ok(()) }
/// ```
pub fn own_error(error: &DataFusionError) -> Option<&Error> {
    use arrow::error::ArrowError;
    match error.find_root() {
        DataFusionError::External(inner) => inner.downcast_ref(),
        DataFusionError::ArrowError(arrow, _) => match &**arrow {
            ArrowError::ExternalError(inner) => inner.downcast_ref(),
            _ => None,
        },
        _ => None,
    }
}

/// Wraps our error for the engine; [`own_error`] finds it again.
pub fn into_engine(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Adds `.context("reading the input")` to results of the engine.
pub trait Context<T> {
    /// Maps an error of the engine; `what` names the step that failed.
    ///
    /// # Errors
    /// The mapped error.
    fn context(self, what: &str) -> Result<T>;
}

impl<T> Context<T> for std::result::Result<T, DataFusionError> {
    fn context(self, what: &str) -> Result<T> {
        self.map_err(|e| map_error(&e, what))
    }
}

impl<T> Context<T> for std::result::Result<T, arrow::error::ArrowError> {
    fn context(self, what: &str) -> Result<T> {
        self.map_err(|e| of_arrow(&e).at(what))
    }
}

impl<T> Context<T> for std::result::Result<T, datafusion::parquet::errors::ParquetError> {
    fn context(self, what: &str) -> Result<T> {
        let other = || {
            Error::data("a Parquet file is damaged, or could not be read or written")
                .coded(ErrorCode::DamagedFile)
        };
        self.map_err(|e| Error::of_system(&e).unwrap_or_else(other).at(what))
    }
}

impl<T> Context<T> for std::io::Result<T> {
    fn context(self, what: &str) -> Result<T> {
        self.map_err(|e| Error::from_io(&e).at(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::error::ArrowError;
    use datafusion::parquet::errors::ParquetError;

    /// Larger files let a repartition wait for itself; see `tests/long.sh spills`.
    #[test]
    fn a_spilled_batch_is_a_file_of_its_own() {
        let resources = Resources::default_of_machine();
        for session in [resources.session(Rules::new()).unwrap(), resources.query_session().unwrap()] {
            let config = session.copied_config();
            assert_eq!(config.options().execution.max_spill_file_size_bytes.get(), 1);
        }
    }

    #[test]
    fn no_session_reads_int96_in_nanoseconds() {
        let resources = Resources::default_of_machine();
        for session in [resources.session(Rules::new()).unwrap(), resources.query_session().unwrap()] {
            let config = session.copied_config();
            assert_eq!(config.options().execution.parquet.coerce_int96.as_deref(), Some("us"));
        }
    }

    #[test]
    fn a_refusal_says_which_limit_would_do() {
        const MIB: usize = 1 << 20;
        let session = |mib: usize| {
            Resources { threads: 1, memory: mib * MIB, spill: None }.session(Rules::new()).unwrap()
        };
        // Of 20 MiB the pool has 14.
        let small = session(20);
        let (others, classes) = (PoolBudget::new(&small, "labels"), PoolBudget::new(&small, "classes"));
        others.grow(13 * MIB).unwrap();
        let refused = classes.grow(8 * MIB).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "holding the classes: out of memory; raise --memory-limit to about 30M or lower --threads"
        );
        assert!(refused.is(ErrorCode::OutOfMemory));
        drop(others);
        classes.grow(8 * MIB).unwrap();
        let enough = PoolBudget::new(&session(30), "classes");
        assert!(enough.grow(21 * MIB).is_ok() && enough.grow(1).is_err());
        for (bytes, text) in [(1, "1M"), (16 * MIB, "16M"), (1264 * MIB, "1300M"), (1264 * MIB + 1, "1300M")]
        {
            assert_eq!(limit_text(bytes), text);
        }
        assert_eq!(limit_text(4 * 1024 * MIB + 1), "4100M");
    }

    /// The engine wraps a system error differently at each place: Arrow's writer writes spill
    /// files, an object store reads inputs.
    #[test]
    fn a_full_disk_is_told_wherever_it_is_met() {
        let full = || std::io::Error::from_raw_os_error(28);
        let arrow = |error| DataFusionError::ArrowError(Box::new(error), None);
        let store = || object_store::Error::Generic { store: "x", source: Box::new(full()) };
        let errors = [
            DataFusionError::IoError(full()),
            DataFusionError::IoError(std::io::Error::other(full())),
            DataFusionError::External(Box::new(full())),
            arrow(ArrowError::IoError("999-00000007".into(), full())),
            arrow(ArrowError::ExternalError(Box::new(full()))),
            DataFusionError::ParquetError(Box::new(ParquetError::External(Box::new(full())))),
            DataFusionError::ObjectStore(Box::new(store())),
            DataFusionError::External(Box::new(store())),
            DataFusionError::Shared(Arc::new(DataFusionError::IoError(full()))),
            DataFusionError::Context("999-00000007".into(), Box::new(DataFusionError::IoError(full()))),
        ];
        for error in errors {
            assert_eq!(
                map_error(&error, "sorting").to_string(),
                format!("sorting: no space left on the device{SPILLED}"),
                "{error:?}"
            );
        }
        let parquet: std::result::Result<(), _> = Err(ParquetError::from(full()));
        assert_eq!(
            parquet.context("writing").unwrap_err().to_string(),
            "writing: no space left on the device"
        );
        let other = DataFusionError::External("999-00000007".into());
        assert_eq!(map_error(&other, "sorting").to_string(), "sorting: an external component failed");
    }
}
