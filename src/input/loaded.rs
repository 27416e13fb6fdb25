//! An opened input: the table behind a policy, and the policy resolved against it.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::prelude::{DataFrame, SessionContext};

use super::days_since::{days_since, plain_days_since};
use super::infer_types::Typing;
use super::merged::{self, RowsToCount};
use super::population::PopulationTable;
use super::source::Source;
use crate::engine::{Rules, Run, counting_rules};
use crate::error::Result;
use crate::policy::{Files, Policy, PolicySpec};

/// A policy and its hierarchy files.
#[derive(Clone, Copy)]
pub struct PolicySource<'a> {
    /// The policy spec.
    pub spec: &'a PolicySpec,
    /// The hierarchy files.
    pub files: &'a dyn Files,
}

/// An opened input: the resolved policy and the table behind it.
#[non_exhaustive]
pub struct Loaded {
    /// The session of the table.
    pub session: SessionContext,
    /// The input as canonical columns.
    pub table: DataFrame,
    /// The policy, resolved against the table.
    #[doc(hidden)]
    pub policy: Arc<Policy>,
    /// The population, if a model looks at one.
    #[doc(hidden)]
    pub population: Option<PopulationTable>,
}

/// Shows the schema and no row.
impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded").field("schema", self.schema()).finish_non_exhaustive()
    }
}

impl fmt::Debug for PolicySource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicySource").field("spec", self.spec).finish_non_exhaustive()
    }
}

impl Loaded {
    /// Returns the input's schema.
    pub fn schema(&self) -> &Schema {
        self.table.schema().as_arrow()
    }
}

/// Opens the input, which is files or a table, and resolves the policy against it.
///
/// # Errors
/// Data errors for the input, policy errors for the policy.
pub async fn open(run: &Run, input: impl Into<Source>, policy: &PolicySource<'_>) -> Result<Loaded> {
    open_typed(run, input, policy, Typing::Columnar).await
}

/// Opens the input like [`open`]; `typing` selects the code that reads texts of untyped formats and
/// days since other dates.
pub(crate) async fn open_typed(
    run: &Run,
    input: impl Into<Source>,
    policy: &PolicySource<'_>,
    typing: Typing,
) -> Result<Loaded> {
    let (input, PolicySource { spec, files }) = (input.into(), *policy);
    spec.check_columns_are_known(input.has_columns_of_rows())?;
    // The second reading is that of a verification.
    let rules = match typing {
        Typing::Columnar => counting_rules(),
        Typing::Plain => Rules::new(),
    };
    let session = run.resources.session(rules)?;
    let table = input.table_typed(&session, spec, typing, &run.stop).await?;
    let relative = spec.relative_columns(table.schema().as_arrow())?;
    let table = match typing {
        Typing::Columnar => days_since(table, &relative)?,
        Typing::Plain => plain_days_since(table, &relative)?,
    };
    let counted = RowsToCount { session: &session, table: &table, rows: None };
    let policy = merged::resolve(spec, table.schema().as_arrow(), files, &counted, &run.stop).await?;
    let of_input = (&policy, table.schema().as_arrow());
    let population = PopulationTable::open(run, &session, spec, files, of_input, typing).await?;
    Ok(Loaded { session, table, policy: Arc::new(policy), population })
}
