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
//! A value key is the same hash of one column, used for sensitive texts that are only compared for
//! equality. It is NULL where the column is.
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

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{
    Array, AsArray, Decimal128Array, GenericByteArray, GenericByteViewArray, PrimitiveArray,
    downcast_primitive_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::{ArrowPrimitiveType, ByteArrayType, ByteViewType, DataType, Int32Type};
use datafusion::common::{ExprSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    lit,
};
use siphasher::sip::SipHasher13;
use siphasher::sip128::{Hasher128, SipHasher13 as SipHasher128};

use super::per_dictionary::PerDictionary;

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
/// caller that needs the values themselves no more; another column stays as it is.
///
/// # Errors
/// When the column has no type in `schema`.
pub(crate) fn value_key(column: Expr, seed: Seed, schema: &dyn ExprSchema) -> Result<Expr> {
    let is_text = match column.get_type(schema)? {
        DataType::Dictionary(_, values) => values.is_string(),
        other => other.is_string(),
    };
    let arguments = || seed.map(lit).into_iter().chain([column.clone()]).collect();
    Ok(if is_text { key_function(Of::Value).call(arguments()) } else { column })
}

/// Returns the scalar functions of [`class_key`] and [`value_key`], which workers register.
pub(crate) fn key_functions() -> [ScalarUDF; 2] {
    [Of::Class, Of::Value].map(key_function)
}

fn key_function(of: Of) -> ScalarUDF {
    let signature = Signature::variadic_any(Volatility::Immutable);
    ScalarUDF::new_from_impl(KeyFunction { of, signature, known: Known::default() })
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

/// A value of a column: two values of one column are equal if and only if their limbs are.
type Limbs = [u64; 2];

/// The limbs of NULL.
const NULL: Limbs = [1 << 51, 0];

/// What a value of a column adds to the two sums of a row, each below 2^63 and to be taken modulo p.
type Contribution = [u64; 2];

/// The contributions of the entries of a dictionary, computed once for all batches that have it.
type Known = PerDictionary<(Seed, u64), Arc<Vec<Contribution>>>;

/// The random coefficients of a column.
struct Coefficients {
    first: Limbs,
    second: Limbs,
}

impl Coefficients {
    /// Returns those of the column with this number.
    fn new(seed: Seed, column: u64) -> Self {
        let below_p = |number: u64| {
            let mut hasher = SipHasher13::new_with_keys(seed[0], seed[1]);
            hasher.write_u64(number);
            (hasher.finish() >> 3) % P
        };
        let [a, b, c, d] = [0, 1, 2, 3].map(|at| below_p(4 * column + at));
        Self { first: [a, b], second: [c, d] }
    }

    fn of(&self, limbs: Limbs) -> Contribution {
        // A product is below 2^122, their sum below 2^123.
        [self.first, self.second].map(|[a, b]| folded(product(a, limbs[0]) + product(b, limbs[1])))
    }

    /// As [`of`](Self::of), for a second limb of 0.
    fn of_one(&self, limb: u64) -> Contribution {
        [folded(product(self.first[0], limb)), folded(product(self.second[0], limb))]
    }
}

fn product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

/// The keys of a batch, computed column by column.
struct Keys<'a> {
    seed: Seed,
    columns: u64,
    rows: usize,
    /// Two sums per row, each below 2^61 + 8; empty before the first column.
    sums: Vec<[u64; 2]>,
    known: &'a Known,
}

impl<'a> Keys<'a> {
    fn new(seed: Seed, rows: usize, known: &'a Known) -> Self {
        Self { seed, columns: 0, rows, sums: Vec::new(), known }
    }

    /// Adds a column, given as the contribution of each row.
    fn add(&mut self, contributions: impl Iterator<Item = Contribution>) {
        // Of two numbers below 2^61 + 8 + 2^63.
        let reduced = |[a, b]: [u64; 2]| [(a & P) + (a >> 61), (b & P) + (b >> 61)];
        if self.columns == 0 {
            self.sums.extend(contributions.map(reduced));
        } else {
            for (sums, [a, b]) in self.sums.iter_mut().zip(contributions) {
                *sums = reduced([sums[0] + a, sums[1] + b]);
            }
        }
        self.columns += 1;
    }

    fn finish(mut self, nulls: Option<NullBuffer>) -> Result<Decimal128Array> {
        // Without columns, all rows are equal.
        self.sums.resize(self.rows, [0; 2]);
        let whole = |sums: [u64; 2]| {
            // A sum is below 2 p.
            let [a, b] = sums.map(|sum| if sum < P { sum } else { sum - P });
            i128::from(a) << 61 | i128::from(b)
        };
        let keys = self.sums.into_iter().map(whole).collect();
        Ok(Decimal128Array::try_new(keys, nulls)?.with_data_type(KEY))
    }

    fn add_array(&mut self, array: &dyn Array) -> Result<()> {
        let coefficients = Coefficients::new(self.seed, self.columns);
        let Some(dictionary) = array.as_any_dictionary_opt() else {
            if let Some(ones) = ones_of(array) {
                self.add(ones.into_iter().map(|limb| coefficients.of_one(limb)));
            } else {
                let limbs = self.limbs_of(array)?;
                self.add(limbs.into_iter().map(|limbs| coefficients.of(limbs)));
            }
            return Ok(());
        };
        let (keys, values) = (dictionary.keys(), dictionary.values());
        if values.is_empty() {
            return self.add_array(&take(values, keys, None)?);
        }
        let of_entries = self.known.get((self.seed, self.columns), values, || {
            let limbs = self.limbs_of(values)?;
            Ok(Arc::new(limbs.into_iter().map(|limbs| coefficients.of(limbs)).collect()))
        })?;
        let Some(of_entries) = of_entries else { return self.add_array(&take(values, keys, None)?) };
        let null = coefficients.of(NULL);
        let of_key = |key: usize| of_entries.get(key).copied().unwrap_or(null);
        match keys.as_primitive_opt::<Int32Type>() {
            // Parquet's dictionaries.
            Some(keys) => {
                let of_key = |key: &i32| of_key(usize::try_from(*key).unwrap_or(usize::MAX));
                match keys.nulls() {
                    None => self.add(keys.values().iter().map(of_key)),
                    Some(nulls) => self.add(with_nulls(keys.values().to_vec(), nulls, -1).iter().map(of_key)),
                }
            }
            None => {
                let of_row = |(row, key): (usize, usize)| if keys.is_null(row) { null } else { of_key(key) };
                self.add(dictionary.normalized_keys().into_iter().enumerate().map(of_row));
            }
        }
        Ok(())
    }

    fn limbs_of(&self, array: &dyn Array) -> Result<Vec<Limbs>> {
        Ok(downcast_primitive_array! {
            array => of_numbers(self, array),
            DataType::Utf8 => self.of_bytes(array.as_string::<i32>()),
            DataType::LargeUtf8 => self.of_bytes(array.as_string::<i64>()),
            DataType::Binary => self.of_bytes(array.as_binary::<i32>()),
            DataType::LargeBinary => self.of_bytes(array.as_binary::<i64>()),
            DataType::Utf8View => self.of_views(array.as_string_view()),
            DataType::BinaryView => self.of_views(array.as_binary_view()),
            DataType::FixedSizeBinary(_) => {
                let values = array.as_fixed_size_binary().iter();
                values.map(|value| value.map_or(NULL, |bytes| self.limbs_of_bytes(bytes))).collect()
            }
            DataType::Boolean => {
                array.as_boolean().iter().map(|value| value.map_or(NULL, |value| [value.into(), 0])).collect()
            }
            DataType::Null => vec![NULL; array.len()],
            _ => return Err(unknown(array)),
        })
    }

    /// Returns up to twelve bytes and their number unchanged; a hash for longer values, which
    /// equals the limbs of no short value.
    fn limbs_of_bytes(&self, bytes: &[u8]) -> Limbs {
        let mut short = [0u8; 16];
        match short.get_mut(4..4 + bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                let number = u32::try_from(bytes.len()).unwrap_or_default();
                short[..4].copy_from_slice(&number.to_le_bytes());
                limbs_of_short(u128::from_le_bytes(short))
            }
            None => {
                let mut hasher = SipHasher128::new_with_keys(self.seed[0], self.seed[1]);
                hasher.write(bytes);
                let hash = hasher.finish128();
                [1 << 60 | hash.h1 >> 5, hash.h2 >> 4]
            }
        }
    }

    fn of_bytes<T: ByteArrayType>(&self, array: &GenericByteArray<T>) -> Vec<Limbs>
    where
        T::Native: AsRef<[u8]>,
    {
        array.iter().map(|value| value.map_or(NULL, |value| self.limbs_of_bytes(value.as_ref()))).collect()
    }

    fn of_views<T: ByteViewType>(&self, array: &GenericByteViewArray<T>) -> Vec<Limbs>
    where
        T::Native: AsRef<[u8]>,
    {
        // Equal views are equal texts, and equal texts of one Parquet dictionary have equal views.
        let mut known = [(0u128, NULL); 64];
        let mut limbs = |row: usize, view: u128| {
            if view & 0xFFFF_FFFF <= 12 {
                return limbs_of_short(view);
            }
            let place = &mut known[(view ^ view >> 64 ^ view >> 99).to_le_bytes()[0] as usize % 64];
            if place.0 != view {
                *place = (view, self.limbs_of_bytes(array.value(row).as_ref()));
            }
            place.1
        };
        let views = array.views().iter().enumerate();
        match array.nulls() {
            None => views.map(|(row, view)| limbs(row, *view)).collect(),
            Some(nulls) => {
                let valid = |row| nulls.is_valid(row);
                views.map(|(row, view)| if valid(row) { limbs(row, *view) } else { NULL }).collect()
            }
        }
    }
}

/// Returns a number congruent modulo p to one below 2^123, since 2^61 is congruent to 1. It is below 2^63.
fn folded(sum: u128) -> u64 {
    let [low, high] = [sum, sum >> 61].map(|part| part & u128::from(u64::MAX));
    let [low, high] = [low, high].map(|part| u64::try_from(part).unwrap_or_default());
    (low & P) + high
}

/// Reads the number of bytes from the lowest 32 bits, and up to twelve bytes above them.
fn limbs_of_short(view: u128) -> Limbs {
    let number = (view & 0xF) | (view >> 32) << 4;
    let limb = |limb: u128| u64::try_from(limb & ((1 << 50) - 1)).unwrap_or_default();
    [limb(number), limb(number >> 50)]
}

/// Returns the first limb of each value if the second is always 0: of numbers of at most four bytes.
fn ones_of(array: &dyn Array) -> Option<Vec<u64>> {
    if array.data_type().primitive_width().is_none_or(|width| width > 4) {
        return None;
    }
    downcast_primitive_array! {
        array => Some(bits_of(array, |bits| bits, NULL[0])),
        _ => None,
    }
}

fn of_numbers<T: ArrowPrimitiveType>(keys: &Keys<'_>, array: &PrimitiveArray<T>) -> Vec<Limbs> {
    match size_of::<T::Native>() {
        ..=8 => bits_of(array, |bits| [bits & 0xFFFF_FFFF, bits >> 32], NULL),
        width => {
            let values = array.values().inner().chunks_exact(width).enumerate();
            let limbs = |bytes: &[u8]| keys.limbs_of_bytes(bytes);
            values.map(|(row, bytes)| if array.is_null(row) { NULL } else { limbs(bytes) }).collect()
        }
    }
}

/// Returns what `of` makes of the bits of each value, which has at most eight bytes.
fn bits_of<T: ArrowPrimitiveType, L: Copy>(
    array: &PrimitiveArray<T>,
    of: impl Fn(u64) -> L,
    null: L,
) -> Vec<L> {
    let width = size_of::<T::Native>();
    let of_bytes = |bytes: &[u8]| {
        let mut whole = [0u8; 8];
        whole[..width].copy_from_slice(bytes);
        of(u64::from_le_bytes(whole))
    };
    let values = array.values().inner().chunks_exact(width).map(of_bytes).collect();
    match array.nulls() {
        None => values,
        Some(nulls) => with_nulls(values, nulls, null),
    }
}

/// Puts `null` into the places of NULLs.
fn with_nulls<T: Copy>(mut values: Vec<T>, nulls: &NullBuffer, null: T) -> Vec<T> {
    for row in (!nulls.inner()).set_indices() {
        if let Some(value) = values.get_mut(row) {
            *value = null;
        }
    }
    values
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
    known: Known,
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
        let mut keys = Keys::new(seed, arguments.number_rows, &self.known);
        let columns = columns.iter().map(|column| column.to_array(arguments.number_rows));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        for column in &columns {
            keys.add_array(&**column)?;
        }
        let nulls = match (self.of, columns.as_slice()) {
            (Of::Value, [column]) => column.logical_nulls(),
            _ => None,
        };
        Ok(ColumnarValue::Array(Arc::new(keys.finish(nulls)?)))
    }
}

fn unknown(array: &dyn Array) -> DataFusionError {
    DataFusionError::Internal(format!("no key can be made of {}", array.data_type()))
}

#[cfg(test)]
#[path = "class_key_tests.rs"]
mod tests;
