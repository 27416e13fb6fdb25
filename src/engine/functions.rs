//! Scalar functions in our plans: functions of distinct values, row hashes, canonical floats.

use std::hash::{Hash, Hasher as _};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{ArrowPrimitiveType, DataType, Float32Type, Float64Type, Int64Type};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use siphasher::sip::SipHasher13;

use super::distinct::{self, Distinct};
use super::into_engine;
use crate::error::Error;

/// A scalar function evaluated once per distinct value of a batch.
pub(crate) trait OfValues: Send + Sync {
    /// Returns the name that plans show; the engine takes functions of one name over one column for the same.
    fn name(&self) -> &str;

    /// Returns the type of the results for values of this type.
    ///
    /// # Errors
    /// Values of this type that the function does not accept.
    fn of_type(&self, values: &DataType) -> crate::error::Result<DataType>;

    /// Returns the distinct values of a batch.
    ///
    /// # Errors
    /// Errors of Arrow.
    fn distinct(&self, values: &ArrayRef) -> std::result::Result<Distinct, ArrowError> {
        distinct::of_batch(values)
    }

    /// Returns the result for each value.
    ///
    /// # Errors
    /// A value without a result.
    fn of(&self, values: &ArrayRef) -> crate::error::Result<ArrayRef>;
}

/// Calls `what` on `values`; plans show it as `what(column)`.
pub(crate) fn of_values(what: Arc<dyn OfValues>, column: &str, values: Expr) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    let function = OfColumn { what, column: column.to_owned(), signature };
    ScalarUDF::new_from_impl(function).call(vec![values])
}

struct OfColumn {
    what: Arc<dyn OfValues>,
    column: String,
    signature: Signature,
}

impl std::fmt::Debug for OfColumn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({})", self.what.name(), self.column)
    }
}

/// Equality: the same object on the same column.
impl PartialEq for OfColumn {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.what, &other.what) && self.column == other.column
    }
}

impl Eq for OfColumn {}

impl Hash for OfColumn {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.column.hash(state);
    }
}

impl ScalarUDFImpl for OfColumn {
    fn name(&self) -> &str {
        self.what.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.what.of_type(&arguments[0]).map_err(into_engine)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = arguments.args[0].to_array(arguments.number_rows)?;
        let (distinct, places) = self.what.distinct(&values)?;
        let of_distinct = self.what.of(&distinct);
        let of_distinct = of_distinct.map_err(|e| into_engine(e.at(format!("column `{}`", self.column))))?;
        Ok(ColumnarValue::Array(take(&of_distinct, &places, None)?))
    }
}

/// Returns a random key.
///
/// # Errors
/// A data error when the system has no random numbers.
pub(crate) fn random_key<const BYTES: usize>() -> crate::error::Result<[u8; BYTES]> {
    let mut key = [0u8; BYTES];
    rand::TryRng::try_fill_bytes(&mut rand::rngs::SysRng, &mut key)
        .map_err(|_| Error::data("the system provides no random numbers"))?;
    Ok(key)
}

/// Returns two random hash keys.
///
/// # Errors
/// A data error when the system has no random numbers.
pub(crate) fn random_keys(doing: &str) -> crate::error::Result<[[u64; 2]; 2]> {
    let random: [u8; 32] = random_key().map_err(|error| error.at(doing))?;
    let word =
        |at: usize| random.iter().skip(at * 8).take(8).fold(0u64, |w, byte| (w << 8) | u64::from(*byte));
    Ok([[word(0), word(1)], [word(2), word(3)]])
}

/// `hash(columns...)`: 64 bits per row, equal for equal rows whatever their encoding; 0 without
/// columns.
pub fn row_hash(key: [u64; 2], columns: Vec<Expr>) -> Expr {
    if columns.is_empty() {
        return lit(0u64);
    }
    ScalarUDF::new_from_impl(RowHash { key, signature: Signature::variadic_any(Volatility::Immutable) })
        .call(columns)
}

/// Returns a converter to rows that compare as the values of columns of these types do, NULL first.
///
/// # Errors
/// Errors of Arrow.
pub(crate) fn row_converter<'a>(
    types: impl Iterator<Item = &'a DataType>,
) -> std::result::Result<RowConverter, ArrowError> {
    RowConverter::new(types.cloned().map(SortField::new).collect())
}

/// Returns the hash of each row, as [`row_hash`] computes it.
///
/// # Errors
/// Errors of Arrow.
pub(crate) fn row_hashes(key: [u64; 2], columns: &[ArrayRef]) -> std::result::Result<Vec<u64>, ArrowError> {
    let rows = row_converter(columns.iter().map(Array::data_type))?.convert_columns(columns)?;
    let hash = |row: arrow::row::Row<'_>| {
        let mut hasher = SipHasher13::new_with_keys(key[0], key[1]);
        hasher.write(row.data());
        hasher.finish()
    };
    Ok(rows.iter().map(hash).collect())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RowHash {
    key: [u64; 2],
    signature: Signature,
}

impl ScalarUDFImpl for RowHash {
    fn name(&self) -> &'static str {
        "kanon_row_hash"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&arguments.args)?;
        Ok(ColumnarValue::Array(Arc::new(UInt64Array::from(row_hashes(self.key, &columns)?))))
    }
}

/// `canonical(float)`: -0.0 becomes 0.0 and every NaN the same NaN, so that equal means equal bits.
pub fn canonical_float(value: Expr) -> Expr {
    canonical_float_function().call(vec![value])
}

/// Returns the scalar function of [`canonical_float`], which workers register.
pub(crate) fn canonical_float_function() -> ScalarUDF {
    ScalarUDF::new_from_impl(CanonicalFloat { signature: Signature::any(1, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CanonicalFloat {
    signature: Signature,
}

impl ScalarUDFImpl for CanonicalFloat {
    fn name(&self) -> &'static str {
        "kanon_canonical_float"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = arguments.args[0].to_array(arguments.number_rows)?;
        Ok(ColumnarValue::Array(canonical(&values)))
    }
}

/// Returns floats with one zero and one NaN, and other values unchanged.
pub fn canonical(values: &ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Float32 => map::<Float32Type>(values, |x| if x.is_nan() { f32::NAN } else { x + 0.0 }),
        DataType::Float64 => map::<Float64Type>(values, |x| if x.is_nan() { f64::NAN } else { x + 0.0 }),
        _ => Arc::clone(values),
    }
}

fn map<T: ArrowPrimitiveType>(values: &dyn Array, f: impl Fn(T::Native) -> T::Native) -> ArrayRef {
    let canonical: PrimitiveArray<T> = values.as_primitive::<T>().unary(f);
    Arc::new(canonical)
}

/// Returns the counts of a GROUP BY.
///
/// # Errors
/// An internal error for a negative count or a type other than `BIGINT`.
pub(crate) fn counted(counts: &ArrayRef) -> crate::error::Result<Vec<u64>> {
    let counts = counts
        .as_primitive_opt::<Int64Type>()
        .ok_or_else(|| Error::internal("counts: a count is not a BIGINT"))?;
    counts
        .values()
        .iter()
        .map(|n| u64::try_from(*n).map_err(|_| Error::internal("counts: a count is negative")))
        .collect()
}
