//! Where the rows of a run come from: files, or a table that another program provides.

use std::fmt;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::prelude::{DataFrame, SessionContext};

use super::files::{Input, InputFormat};
use super::infer_types::Typing;
use super::provided_table::scanned_once;
use super::table::{typed_table, without_metadata};
use crate::engine::Run;
use crate::error::{Error, ErrorCode, Result};
use crate::policy::{CsvOptions, PolicySpec, one_name_each};
use crate::progress::CancelToken;
use crate::store::Object;

/// The rows of a run: files, or a table of a [`TableProvider`].
///
/// Each reading scans a table once, all its columns, into spill files of the run, and all that is computed comes from there:
/// [`open`](crate::open) is one reading, its verification a second. The scan runs in a session of the run, with its memory
/// and threads: a view must not need a planner of its own session. **Both scans must give the same rows**, in any order.
/// Files are compared with what they were at the start of a run; a table cannot be. What protects a release is its verification:
/// it refuses rows that were not released as the policy says, and another number of rows than was grouped, and the public record
/// is true of the rows that it read.
///
/// The types are those of the Arrow columns. Cells of text stay text, so the two ways of reading texts, which verify each
/// other on CSV files, are one here. What a provider says of its statistics and of the order of its rows is not used, and
/// no filter or limit is pushed down to it.
///
/// Where a method adds noise, the names and the order of the columns must not follow from the rows, as they do in a
/// table of JSON lines whose schema was inferred.
#[derive(Clone)]
#[non_exhaustive]
pub enum Source {
    /// Files.
    Files(Input),
    /// A table.
    Table {
        /// The name by which the private record calls it.
        name: String,
        /// The table.
        provider: Arc<dyn TableProvider>,
    },
}

impl Source {
    /// Creates the source of a table with a name for the private record.
    pub fn table(name: impl Into<String>, provider: Arc<dyn TableProvider>) -> Self {
        Self::Table { name: name.into(), provider }
    }

    /// Returns the name of the table, or the path of the files as it was typed.
    pub fn name(&self) -> &str {
        match self {
            Self::Files(input) => &input.argument,
            Self::Table { name, .. } => name,
        }
    }

    /// Returns the files and objects; a table has none.
    #[doc(hidden)]
    pub fn objects(&self) -> &[Object] {
        match self {
            Self::Files(input) => &input.objects,
            Self::Table { .. } => &[],
        }
    }

    /// Returns whether the columns have types, rather than cells of text.
    pub(crate) fn has_types(&self) -> bool {
        match self {
            Self::Files(input) => input.format.has_types(),
            Self::Table { .. } => true,
        }
    }

    /// Returns whether the rows decide which columns there are.
    pub(super) fn has_columns_of_rows(&self) -> bool {
        matches!(self, Self::Files(input) if input.format == InputFormat::Json)
    }

    /// Checks that no file changed since it was found. Of a table nothing is known.
    ///
    /// # Errors
    /// As [`Input::still_the_same`].
    #[doc(hidden)]
    pub fn still_the_same(&self, run: &Run) -> Result<()> {
        match self {
            Self::Files(input) => input.still_the_same(run),
            Self::Table { .. } => Ok(()),
        }
    }

    /// Checks every line of CSV files, like [`Input::check_lines`]; a table has none.
    pub(crate) fn check_lines(&self, csv: &CsvOptions) -> Result<()> {
        match self {
            Self::Files(input) => input.check_lines(csv),
            Self::Table { .. } => Ok(()),
        }
    }

    /// Reads the rows as canonical columns under a policy, like [`Input::table_typed`]; those of a table are the same each time
    /// that the result is read.
    ///
    /// # Errors
    /// A data error when the rows cannot be read, or two columns have one name.
    pub(super) async fn table_typed(
        &self,
        session: &SessionContext,
        spec: &PolicySpec,
        typing: Typing,
        stop: &CancelToken,
    ) -> Result<DataFrame> {
        let csv_type = |name: &str| spec.csv_type(name);
        let (name, provider) = match self {
            Self::Files(input) => return input.table_typed(session, spec.csv(), &csv_type, typing).await,
            Self::Table { name, provider } => (name, provider),
        };
        let schema = Arc::new(without_metadata(&provider.schema()));
        let place = || format!("table `{name}`");
        if schema.fields().is_empty() {
            let why = "the table has no columns";
            return Err(Error::data(why).coded(ErrorCode::EmptyInput).at(place()));
        }
        one_name_each(&schema).map_err(|error| error.at(place()))?;
        let rows = scanned_once(session, provider, &schema, stop).await?;
        typed_table(rows, &schema, &|_| false, (spec.csv(), &csv_type), typing).await
    }
}

/// Shows the name alone: a provider may hold rows and print them.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(input) => f.debug_tuple("Files").field(input).finish(),
            Self::Table { name, .. } => write!(f, "Table({name})"),
        }
    }
}

impl From<Input> for Source {
    fn from(input: Input) -> Self {
        Self::Files(input)
    }
}

impl From<&Input> for Source {
    fn from(input: &Input) -> Self {
        Self::Files(input.clone())
    }
}

impl From<&Source> for Source {
    fn from(source: &Source) -> Self {
        source.clone()
    }
}
