//! Sets of hashes, and the rows of a table whose hash is in a set.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{AsArray, UInt64Array};
use arrow::datatypes::{DataType, UInt64Type};
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::DataFrame;

use crate::class::{Budget, Held};
use crate::engine::{Context, column};
use crate::error::Result;

const DOING: &str = "keeping the rows of some values";

/// A set of hashes that accounts for its memory.
pub(crate) struct Members {
    hashes: HashSet<u64>,
    held: Held,
}

impl Members {
    /// An empty set.
    pub(crate) fn new(budget: &Arc<dyn Budget>) -> Self {
        Self { hashes: HashSet::new(), held: Held::new(budget) }
    }

    /// Adds hashes.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(crate) fn add(&mut self, hashes: impl IntoIterator<Item = u64>) -> Result<()> {
        self.hashes.extend(hashes);
        self.held.at_least(self.hashes.capacity() * (size_of::<u64>() + 1))
    }
}

/// Returns the rows of `table` whose hash in the column `name` is one of `members`, with that
/// column and the `others`.
///
/// # Errors
/// When the plan cannot be built.
pub(crate) fn only(table: DataFrame, name: &str, members: Members, others: &[Expr]) -> Result<DataFrame> {
    let columns = [vec![member(Arc::new(members), column(name)).alias(name)], others.to_vec()].concat();
    let table = table.select(columns).context(DOING)?;
    table.filter(column(name).is_not_null()).context(DOING)
}

/// Returns the expression for a hash if it is one of `members`, else NULL.
pub(crate) fn member(members: Arc<Members>, hash: Expr) -> Expr {
    let signature = Signature::any(1, Volatility::Volatile);
    ScalarUDF::new_from_impl(Member { members, signature }).call(vec![hash])
}

/// A function that keeps the hashes of a set and returns NULL for all others. It is volatile:
/// otherwise a filter would evaluate it, and the hash below it, a second time.
struct Member {
    members: Arc<Members>,
    signature: Signature,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("kanon_member")
    }
}

impl PartialEq for Member {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.members, &other.members)
    }
}

impl Eq for Member {}

impl Hash for Member {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.members.hashes.len().hash(state);
    }
}

impl ScalarUDFImpl for Member {
    fn name(&self) -> &'static str {
        "kanon_member"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> EngineResult<DataType> {
        Ok(DataType::UInt64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        let hashes = arguments.args[0].to_array(arguments.number_rows)?;
        let hashes = hashes.as_primitive::<UInt64Type>();
        let members = hashes.iter().map(|hash| hash.filter(|hash| self.members.hashes.contains(hash)));
        Ok(ColumnarValue::Array(Arc::new(members.collect::<UInt64Array>())))
    }
}
