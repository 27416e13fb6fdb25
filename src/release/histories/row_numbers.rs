//! A number for each row by its name, as an expression.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
use arrow::datatypes::DataType;
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use hashbrown::HashMap;

use crate::engine::into_engine;
use crate::error::Result;
use crate::verify::row_lines::{RowName, RowNames, names_of};

/// Returns the expression of the number of a row; NULL for a row that has none.
///
/// # Errors
/// When it cannot be planned.
pub(super) fn number_of_row(names: &RowNames, numbers: HashMap<RowName, u64>) -> Result<Expr> {
    // Volatile: otherwise a filter would evaluate it a second time.
    let signature = Signature::variadic_any(Volatility::Volatile);
    let function = ScalarUDF::new_from_impl(RowNumber { numbers: Arc::new(numbers), signature });
    Ok(function.call(names.expressions()?.to_vec()))
}

struct RowNumber {
    numbers: Arc<HashMap<RowName, u64>>,
    signature: Signature,
}

impl std::fmt::Debug for RowNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("kanon_row_number")
    }
}

impl PartialEq for RowNumber {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.numbers, &other.numbers)
    }
}

impl Eq for RowNumber {}

impl Hash for RowNumber {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl RowNumber {
    fn of(&self, names: &[ArrayRef]) -> Result<UInt64Array> {
        let number = |name: Option<RowName>| name.and_then(|name| self.numbers.get(&name).copied());
        Ok(names_of(names)?.into_iter().map(number).collect())
    }
}

impl ScalarUDFImpl for RowNumber {
    fn name(&self) -> &'static str {
        "kanon_row_number"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> EngineResult<DataType> {
        Ok(DataType::UInt64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        let names = ColumnarValue::values_to_arrays(&arguments.args)?;
        Ok(ColumnarValue::Array(Arc::new(self.of(&names).map_err(into_engine)?)))
    }
}
