//! The functions that our plans call: one level of a hierarchy, a row's hash, canonical floats.

use std::any::Any;
use std::hash::{Hash, Hasher as _};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, UInt64Array};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Float32Type, Float64Type};
use arrow::row::{RowConverter, SortField};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use siphasher::sip::SipHasher13;

use super::engine::into_engine;
use crate::generalize::{Generalizer, Value, apply};

/// How a level is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Evaluation {
    /// Column by column, for the release.
    Columnar,
    /// Value by value with the naive generalizers, for verification.
    Naive,
}

/// `level(column)`: the labels of one level.
pub fn level(generalizer: Arc<dyn Generalizer>, column: &str, how: Evaluation, value: Expr) -> Expr {
    let function = LevelFunction {
        generalizer,
        column: column.to_owned(),
        how,
        signature: Signature::any(1, Volatility::Immutable),
    };
    ScalarUDF::new_from_impl(function).call(vec![value])
}

#[derive(Debug)]
struct LevelFunction {
    generalizer: Arc<dyn Generalizer>,
    column: String,
    how: Evaluation,
    signature: Signature,
}

/// Equal only when it is the same generalizer on the same column: labels alone do not tell two files apart.
impl PartialEq for LevelFunction {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.generalizer, &other.generalizer)
            && self.column == other.column
            && self.how == other.how
    }
}

impl Eq for LevelFunction {}

impl Hash for LevelFunction {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&self.column, self.how).hash(state);
    }
}

impl ScalarUDFImpl for LevelFunction {
    fn name(&self) -> &'static str {
        "kanon_level"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.generalizer.output_type(&arguments[0]).map_err(into_engine)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = arguments.args[0].to_array(arguments.number_rows)?;
        let labels = match self.how {
            Evaluation::Columnar => apply(&*self.generalizer, &values),
            Evaluation::Naive => naive(&*self.generalizer, &values),
        };
        labels.map(ColumnarValue::Array).map_err(|e| into_engine(e.at(format!("column `{}`", self.column))))
    }
}

fn naive(generalizer: &dyn Generalizer, values: &ArrayRef) -> crate::error::Result<ArrayRef> {
    let labels: Vec<Value> = (0..values.len())
        .map(|row| generalizer.one(&Value::read(values, row)?))
        .collect::<crate::error::Result<_>>()?;
    Value::build(&labels, &generalizer.output_type(values.data_type())?)
}

/// `hash(columns...)`: 64 bits of every row, equal for equal rows whatever their encoding.
pub fn row_hash(key: [u64; 2], columns: Vec<Expr>) -> Expr {
    ScalarUDF::new_from_impl(RowHash { key, signature: Signature::variadic_any(Volatility::Immutable) })
        .call(columns)
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
        let fields = columns.iter().map(|c| SortField::new(c.data_type().clone())).collect();
        let converter = RowConverter::new(fields)?;
        let rows = converter.convert_columns(&columns)?;
        let hashes = rows.iter().map(|row| {
            let mut hasher = SipHasher13::new_with_keys(self.key[0], self.key[1]);
            hasher.write(row.data());
            hasher.finish()
        });
        Ok(ColumnarValue::Array(Arc::new(UInt64Array::from_iter_values(hashes))))
    }
}

/// `canonical(float)`: -0.0 becomes 0.0 and every NaN the same NaN, so that equal means equal bits.
pub fn canonical_float(value: Expr) -> Expr {
    ScalarUDF::new_from_impl(CanonicalFloat { signature: Signature::any(1, Volatility::Immutable) })
        .call(vec![value])
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

/// Floats with one zero and one NaN; other values as they are.
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

/// The generalizer inside a level function, for plan tests.
pub fn is_level(function: &ScalarUDF) -> bool {
    (function.inner().as_ref() as &dyn Any).is::<LevelFunction>()
}
