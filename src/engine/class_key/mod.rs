//! Class keys: 122-bit hashes of a row's quasi-identifiers, used to count classes whose labels are
//! not needed.
//!
//! Grouping by one number is cheaper than comparing six texts. Equal rows have equal keys, whatever
//! their encoding. Two different rows share a key with probability 2^-122 under a random seed
//! (2^-119 if they differ in values of more than 12 bytes), for any values chosen without knowledge
//! of the seed: among a billion classes, the probability of any collision is 2^-60. Each value
//! becomes two limbs below p = 2^61 - 1: exactly if it has at most 12 bytes, by 119 bits of SipHash
//! if it is longer. A key consists of two sums of all limbs times random coefficients modulo p
//! (multilinear hashing: Carter and Wegman, 1979; Lemire and Kaser, 2014).
//!
//! A value key is the same hash of one column, used for sensitive texts and for texts that name
//! individuals where they are only compared for equality. It is NULL where the column is.
//!
//! One key is also a twentieth of the memory. Where labels are needed (`classes`, a release and the
//! verification of its classes) nothing is hashed so. The seed stands in the plan of a query as two literals,
//! and so travels to other workers.
//!
//! # Limits
//! - The bound is computational. The coefficients and the hashes of long values are SipHash-1-3 of
//!   one 128-bit seed, so the bound holds if SipHash is indistinguishable from a random function.
//!   An attacker who knows the seed can construct rows that share a key. EXPLAIN shows the seed;
//!   every query draws a new one.
//! - Values of 16 and 32 bytes (`Decimal128`, `Decimal256`, `Interval(MonthDayNano)`) are hashed
//!   like long texts.
//! - Short texts in views are read from the view, which must be padded with zeros, as Arrow
//!   demands. Arrays of other libraries that break this rule split a class: k comes out too small,
//!   never too large.

mod column;
mod limbs;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array};
use arrow::datatypes::DataType;
use datafusion::common::{ExprSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    lit,
};

use column::{Column, KnownContributions, Sums};

/// The data type of keys.
pub(crate) const KEY: DataType = DataType::Decimal128(38, 0);

/// The prefix of the names of GROUP BY columns that are class keys, by which the rule
/// [`count_classes`](super::count_classes) recognizes them.
pub(crate) const NAME_OF_CLASS_KEY: &str = "kanon_class_key";

/// The prime p: keys are computed modulo p.
const P: u64 = (1 << 61) - 1;

/// 128 random bits.
pub(crate) type Seed = [u64; 2];

/// The least number of columns that become one key: fewer columns are grouped just as fast
/// directly.
const KEYED: usize = 3;

/// Returns the expressions to group by when the classes of `columns` are counted and their labels
/// are not needed: one key, or the columns themselves if one has no key, or if there are few of them and
/// none is a dictionary, which the engine groups slowly. Floats must be canonical.
///
/// # Errors
/// When a column has no type in `schema`.
pub(crate) fn keyed(columns: Vec<Expr>, seed: Seed, schema: &dyn ExprSchema) -> Result<Vec<Expr>> {
    let types = columns.iter().map(|column| column.get_type(schema)).collect::<Result<Vec<DataType>>>()?;
    let pays = columns.len() >= KEYED || types.iter().any(|of| matches!(of, DataType::Dictionary(..)));
    Ok(match pays && types.iter().all(is_hashable) {
        true => vec![class_key(seed, columns)],
        false => columns,
    })
}

/// Returns whether these columns of [`keyed`] are one key.
pub(crate) fn is_key(columns: &[Expr]) -> bool {
    let is_call = |expr: &Expr| matches!(expr, Expr::ScalarFunction(call) if is_key_function(&call.func));
    matches!(columns, [one] if is_call(one))
}

/// Returns one column, never NULL, that distinguishes the classes of any number of `columns`;
/// `None` if the type of a column has no key. Floats must be canonical.
///
/// # Errors
/// When a column has no type in `schema`.
pub(crate) fn one_key(columns: Vec<Expr>, seed: Seed, schema: &dyn ExprSchema) -> Result<Option<Expr>> {
    for column in &columns {
        if !is_hashable(&column.get_type(schema)?) {
            return Ok(None);
        }
    }
    Ok(Some(class_key(seed, columns)))
}

/// `class_key(seed, columns...)`: DECIMAL(38, 0), equal for rows with equal columns. NULL equals
/// NULL; floats are compared by their bits. Accepts columns of every [hashable](is_hashable) type.
fn class_key(seed: Seed, columns: Vec<Expr>) -> Expr {
    let arguments = seed.map(lit).into_iter().chain(columns).collect();
    key_function(Of::Class).call(arguments)
}

/// Returns one column that distinguishes the values of a text column and is NULL where it is, for a
/// caller that needs the values themselves no more; `None` for a column of another type.
///
/// # Errors
/// When the column has no type in `schema`.
pub(crate) fn value_key(column: Expr, seed: Seed, schema: &dyn ExprSchema) -> Result<Option<Expr>> {
    let is_text = match column.get_type(schema)? {
        DataType::Dictionary(_, values) => values.is_string(),
        other => other.is_string(),
    };
    if is_text { key_of_value(column, seed, schema) } else { Ok(None) }
}

/// Returns one column that distinguishes the values of a column and is NULL where it is; `None` if its type has no key.
/// Floats must be canonical.
///
/// # Errors
/// When the column has no type in `schema`.
pub(crate) fn key_of_value(column: Expr, seed: Seed, schema: &dyn ExprSchema) -> Result<Option<Expr>> {
    let is_hashable = is_hashable(&column.get_type(schema)?);
    let arguments = seed.map(lit).into_iter().chain([column]).collect();
    Ok(is_hashable.then(|| key_function(Of::Value).call(arguments)))
}

/// Returns the scalar functions of [`class_key`] and [`value_key`], which workers register.
pub(crate) fn key_functions() -> [ScalarUDF; 2] {
    [Of::Class, Of::Value].map(key_function)
}

fn key_function(of: Of) -> ScalarUDF {
    let signature = Signature::variadic_any(Volatility::Immutable);
    ScalarUDF::new_from_impl(KeyFunction { of, signature, known: KnownContributions::default() })
}

/// Returns whether a function is that of [`class_key`] or [`value_key`].
pub(crate) fn is_key_function(function: &ScalarUDF) -> bool {
    function.inner().is::<KeyFunction>()
}

/// Returns whether a function is that of [`class_key`], which is never NULL.
pub(crate) fn is_class_key_function(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<KeyFunction>().is_some_and(|key| key.of == Of::Class)
}

/// Returns whether columns of this type can be part of a key.
fn is_hashable(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => {
            !matches!(**values, DataType::Dictionary(..)) && is_hashable(values)
        }
        DataType::RunEndEncoded(..) => false,
        other => !other.is_nested(),
    }
}

/// The rows whose keys are computed together, so that their sums stay in the L1 cache.
const BLOCK: usize = 1024;

/// Returns the keys of a batch.
fn keys_of(seed: Seed, columns: &[ArrayRef], rows: usize, known: &KnownContributions) -> Result<Vec<i128>> {
    let columns = columns.iter().zip(0u64..).map(|(values, number)| Column::new(seed, number, values, known));
    let columns = columns.collect::<Result<Vec<Column>>>()?;
    let mut keys = Vec::with_capacity(rows);
    for first in (0..rows).step_by(BLOCK) {
        // Without columns, all rows are equal.
        let mut sums = vec![[0; 2]; BLOCK.min(rows - first)];
        for column in &columns {
            column.add_to(&mut sums, first)?;
        }
        keys.extend(sums.into_iter().map(key_of));
    }
    Ok(keys)
}

fn key_of(sums: Sums) -> i128 {
    // A sum is below 2 p.
    let [a, b] = sums.map(|sum| if sum < P { sum } else { sum - P });
    i128::from(a) << 61 | i128::from(b)
}

/// What a key distinguishes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Of {
    Class,
    Value,
}

/// The function of [`class_key`] or [`value_key`].
struct KeyFunction {
    of: Of,
    signature: Signature,
    known: KnownContributions,
}

impl std::fmt::Debug for KeyFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What it remembers does not tell functions apart.
impl PartialEq for KeyFunction {
    fn eq(&self, other: &Self) -> bool {
        self.of == other.of
    }
}

impl Eq for KeyFunction {}

impl Hash for KeyFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of.hash(state);
    }
}

impl ScalarUDFImpl for KeyFunction {
    fn name(&self) -> &'static str {
        match self.of {
            Of::Class => "kanon_class_key",
            Of::Value => "kanon_value_key",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(KEY)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (seed, columns) = match arguments.args.as_slice() {
            [
                ColumnarValue::Scalar(ScalarValue::UInt64(Some(a))),
                ColumnarValue::Scalar(ScalarValue::UInt64(Some(b))),
                columns @ ..,
            ] => ([*a, *b], columns),
            _ => return Err(DataFusionError::Internal("a key of a class without its seed".into())),
        };
        let rows = arguments.number_rows;
        let columns = columns.iter().map(|column| column.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let keys = keys_of(seed, &columns, rows, &self.known)?;
        let nulls = match (self.of, columns.as_slice()) {
            (Of::Value, [column]) => column.logical_nulls(),
            _ => None,
        };
        Ok(ColumnarValue::Array(Arc::new(Decimal128Array::try_new(keys.into(), nulls)?.with_data_type(KEY))))
    }
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
