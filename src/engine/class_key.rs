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

use std::hash::Hasher as _;
use std::sync::Arc;

use arrow::array::{
    Array, AsArray, Decimal128Array, GenericByteArray, GenericByteViewArray, PrimitiveArray,
    downcast_primitive_array,
};
use arrow::compute::take;
use arrow::datatypes::{ArrowPrimitiveType, ByteArrayType, ByteViewType, DataType};
use datafusion::common::{ExprSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    lit,
};
use siphasher::sip::SipHasher13;
use siphasher::sip128::{Hasher128, SipHasher13 as SipHasher128};

/// The data type of keys.
const KEY: DataType = DataType::Decimal128(38, 0);

/// The prime p: keys are computed modulo p.
const P: u64 = (1 << 61) - 1;

/// 128 random bits.
pub(crate) type Seed = [u64; 2];

/// The least number of columns that become one key: fewer columns are grouped just as fast
/// directly.
const KEYED: usize = 3;

/// Returns the expressions to group by when the classes of `columns` are counted and their labels
/// are not needed: one key, or the columns themselves if there are few of them or one has no key.
/// Floats must be canonical.
///
/// # Errors
/// When a column has no type in `schema`.
pub(crate) fn keyed(columns: Vec<Expr>, seed: Seed, schema: &dyn ExprSchema) -> Result<Vec<Expr>> {
    let types = columns.iter().map(|column| column.get_type(schema)).collect::<Result<Vec<DataType>>>()?;
    Ok(match columns.len() >= KEYED && types.iter().all(is_hashable) {
        true => vec![class_key(seed, columns)],
        false => columns,
    })
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
    class_key_function().call(arguments)
}

/// Returns the scalar function of [`class_key`], which workers register.
pub(crate) fn class_key_function() -> ScalarUDF {
    ScalarUDF::new_from_impl(ClassKey { signature: Signature::variadic_any(Volatility::Immutable) })
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

/// The keys of a batch, computed column by column.
struct Keys {
    seed: Seed,
    columns: u64,
    /// Two sums per row.
    sums: Vec<[u128; 2]>,
}

impl Keys {
    fn new(seed: Seed, rows: usize) -> Self {
        Self { seed, columns: 0, sums: vec![[0; 2]; rows] }
    }

    /// Returns a random number below p.
    fn coefficient(&self, number: u64) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.seed[0], self.seed[1]);
        hasher.write_u64(number);
        (hasher.finish() >> 3) % P
    }

    /// Adds a column, given as the limbs of each row.
    fn add(&mut self, limbs: impl Iterator<Item = Limbs>) {
        let coefficient = |at| self.coefficient(4 * self.columns + at);
        let (first, second) = ([coefficient(0), coefficient(1)], [coefficient(2), coefficient(3)]);
        for (sums, limbs) in self.sums.iter_mut().zip(limbs) {
            for (sum, [a, b]) in sums.iter_mut().zip([first, second]) {
                let product = u128::from(a) * u128::from(limbs[0]) + u128::from(b) * u128::from(limbs[1]);
                // A folded sum is below 2^64, the product below 2^123.
                *sum = folded(*sum + product);
            }
        }
        self.columns += 1;
    }

    fn finish(self) -> Decimal128Array {
        // Sums are folded, and therefore below 2^64.
        let least = |sum: u128| u64::try_from(folded(sum)).unwrap_or_default() % P;
        let whole = |sums: [u128; 2]| {
            let [a, b] = sums.map(least);
            i128::from(a) << 61 | i128::from(b)
        };
        let keys = Decimal128Array::from_iter_values(self.sums.into_iter().map(whole));
        keys.with_data_type(KEY)
    }

    fn add_array(&mut self, array: &dyn Array) -> Result<()> {
        let Some(dictionary) = array.as_any_dictionary_opt() else {
            let limbs = self.limbs_of(array)?;
            self.add(limbs.into_iter());
            return Ok(());
        };
        let (keys, values) = (dictionary.keys(), dictionary.values());
        if values.is_empty() || values.len() > array.len() {
            return self.add_array(&take(values, keys, None)?);
        }
        let limbs = self.limbs_of(values)?;
        let of_row = |(row, key): (usize, usize)| if keys.is_null(row) { NULL } else { limbs[key] };
        self.add(dictionary.normalized_keys().into_iter().enumerate().map(of_row));
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

/// Returns a smaller number congruent modulo p, since 2^61 is congruent to 1.
fn folded(sum: u128) -> u128 {
    (sum & u128::from(P)) + (sum >> 61)
}

/// Reads the number of bytes from the lowest 32 bits, and up to twelve bytes above them.
fn limbs_of_short(view: u128) -> Limbs {
    let number = (view & 0xF) | (view >> 32) << 4;
    let limb = |limb: u128| u64::try_from(limb & ((1 << 50) - 1)).unwrap_or_default();
    [limb(number), limb(number >> 50)]
}

fn of_numbers<T: ArrowPrimitiveType>(keys: &Keys, array: &PrimitiveArray<T>) -> Vec<Limbs> {
    match size_of::<T::Native>() {
        1 => of_width::<T, 1>(array),
        2 => of_width::<T, 2>(array),
        4 => of_width::<T, 4>(array),
        8 => of_width::<T, 8>(array),
        width => {
            let values = array.values().inner().chunks_exact(width).enumerate();
            let limbs = |bytes: &[u8]| keys.limbs_of_bytes(bytes);
            values.map(|(row, bytes)| if array.is_null(row) { NULL } else { limbs(bytes) }).collect()
        }
    }
}

fn of_width<T: ArrowPrimitiveType, const WIDTH: usize>(array: &PrimitiveArray<T>) -> Vec<Limbs> {
    let limbs = |bytes: &[u8]| {
        let mut whole = [0u8; 8];
        whole[..WIDTH].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(whole);
        [bits & 0xFFFF_FFFF, bits >> 32]
    };
    let values = array.values().inner().chunks_exact(WIDTH);
    match array.nulls() {
        None => values.map(limbs).collect(),
        Some(nulls) => {
            let values = values.enumerate();
            values.map(|(row, bytes)| if nulls.is_valid(row) { limbs(bytes) } else { NULL }).collect()
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ClassKey {
    signature: Signature,
}

impl ScalarUDFImpl for ClassKey {
    fn name(&self) -> &'static str {
        "kanon_class_key"
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
        let mut keys = Keys::new(seed, arguments.number_rows);
        for column in columns {
            keys.add_array(&*column.to_array(arguments.number_rows)?)?;
        }
        Ok(ColumnarValue::Array(Arc::new(keys.finish())))
    }
}

fn unknown(array: &dyn Array) -> DataFusionError {
    DataFusionError::Internal(format!("no key can be made of {}", array.data_type()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        ArrayRef, BinaryArray, BooleanArray, Date32Array, DictionaryArray, FixedSizeBinaryArray,
        Float32Array, Int8Array, Int64Array, IntervalMonthDayNanoArray, LargeStringArray, StringArray,
        StringViewArray, TimestampMicrosecondArray, UInt16Array,
    };
    use arrow::compute::cast;
    use arrow::datatypes::{Int32Type, IntervalMonthDayNano};
    use arrow::row::{RowConverter, SortField};
    use proptest::prelude::*;
    use std::collections::HashMap;

    const SEED: Seed = [1, 2];

    fn keys_of(seed: Seed, columns: &[ArrayRef]) -> Vec<i128> {
        let mut keys = Keys::new(seed, columns[0].len());
        columns.iter().for_each(|column| keys.add_array(column).unwrap());
        keys.finish().values().to_vec()
    }

    /// A column of each form from small numbers, so that values repeat; a few are NULL.
    fn column(form: usize, numbers: &[u8]) -> ArrayRef {
        let of = |number: u8| (number > 0).then_some(number);
        let text = |number: u8| {
            of(number).map(|n| "twelve bytes".repeat(usize::from(n) / 4) + &"x".repeat(n.into()))
        };
        let long = |number: u8| of(number).map(i64::from).map(|n| n << 31 | n);
        let texts: Vec<Option<String>> = numbers.iter().map(|n| text(*n)).collect();
        let longs = Int64Array::from_iter(numbers.iter().map(|n| long(*n)));
        match form {
            0 => Arc::new(StringViewArray::from_iter(texts)),
            1 => Arc::new(StringArray::from_iter(texts)),
            2 => Arc::new(LargeStringArray::from_iter(texts)),
            3 => Arc::new(texts.iter().map(Option::as_deref).collect::<DictionaryArray<Int32Type>>()),
            4 => Arc::new(BinaryArray::from_iter(texts.iter().map(|t| t.as_ref().map(String::as_bytes)))),
            5 => Arc::new(longs),
            6 => Arc::new(Int8Array::from_iter(
                numbers.iter().map(|n| of(*n).map(|n| n.cast_signed().wrapping_neg())),
            )),
            7 => Arc::new(Date32Array::from_iter(numbers.iter().map(|n| of(*n).map(i32::from)))),
            8 => {
                Arc::new(Float32Array::from_iter(numbers.iter().map(|n| of(*n).map(|n| f32::from(n) / 3.0))))
            }
            9 => Arc::new(BooleanArray::from_iter(numbers.iter().map(|n| of(*n).map(|n| n % 2 == 0)))),
            10 => cast(&longs, &DataType::Decimal128(38, 3)).unwrap(),
            11 => cast(&longs, &DataType::Decimal256(50, 3)).unwrap(),
            12 => Arc::new(TimestampMicrosecondArray::from_iter(numbers.iter().map(|n| long(*n)))),
            13 => {
                let months = |n: u8| IntervalMonthDayNano::new(n.into(), 0, 7);
                Arc::new(IntervalMonthDayNanoArray::from_iter(numbers.iter().map(|n| of(*n).map(months))))
            }
            14 => {
                let bytes = numbers.iter().map(|n| of(*n).map(|n| [n; 5]));
                Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, 5).unwrap())
            }
            _ => Arc::new(UInt16Array::from_iter(numbers.iter().map(|n| of(*n).map(u16::from)))),
        }
    }

    proptest! {
        #[test]
        fn two_rows_have_one_key_where_they_are_equal(
            forms in proptest::collection::vec(0usize..16, 1..7),
            rows in proptest::collection::vec(proptest::array::uniform7(0u8..9), 1..80),
            seed: [u64; 2],
        ) {
            let columns: Vec<ArrayRef> = forms.iter().enumerate().map(|(at, form)| {
                column(*form, &rows.iter().map(|row| row[at]).collect::<Vec<_>>())
            }).collect();
            let fields = columns.iter().map(|c| SortField::new(c.data_type().clone())).collect();
            let truth = RowConverter::new(fields).unwrap().convert_columns(&columns).unwrap();
            let keys = keys_of(seed, &columns);
            let (mut of_row, mut of_key) = (HashMap::new(), HashMap::new());
            for (row, key) in truth.iter().zip(&keys) {
                prop_assert_eq!(*of_row.entry(row).or_insert(*key), *key);
                prop_assert_eq!(*of_key.entry(*key).or_insert(row), row);
            }
            prop_assert!(keys.iter().all(|key| (0..1i128 << 122).contains(key)));
            // The result must not depend on where a batch is cut.
            let cut = rows.len() / 3;
            let rest: Vec<ArrayRef> = columns.iter().map(|c| c.slice(cut, rows.len() - cut)).collect();
            prop_assert_eq!(keys_of(seed, &rest), &keys[cut..]);
        }
    }

    #[test]
    fn all_encodings_of_texts_have_the_same_keys() {
        let numbers = [3, 0, 8, 3, 1, 8, 0, 5];
        let keys = keys_of(SEED, &[column(0, &numbers)]);
        for form in 1..5 {
            assert_eq!(keys_of(SEED, &[column(form, &numbers)]), keys, "{form}");
        }
        assert_ne!(keys_of([1, 3], &[column(0, &numbers)]), keys);
        // Dictionaries: NULL among the values, more values than rows, no values.
        let values: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("b")]));
        let dictionary = |keys: Vec<Option<i32>>| -> ArrayRef {
            Arc::new(DictionaryArray::<Int32Type>::new(keys.into(), Arc::clone(&values)))
        };
        let plain = |texts: Vec<Option<&str>>| -> ArrayRef { Arc::new(StringArray::from(texts)) };
        let dictionaries = [
            (
                dictionary(vec![Some(0), Some(1), None, Some(2)]),
                plain(vec![Some("a"), None, None, Some("b")]),
            ),
            (dictionary(vec![Some(2)]), plain(vec![Some("b")])),
            (Arc::new(DictionaryArray::<Int32Type>::from_iter([None::<&str>; 2])), plain(vec![None, None])),
        ];
        for (dictionary, plain) in dictionaries {
            assert_eq!(keys_of(SEED, &[dictionary]), keys_of(SEED, &[plain]));
        }
    }

    #[test]
    fn where_a_value_ends_and_in_which_column_it_is_matters() {
        let text = |text: &str| -> ArrayRef { Arc::new(StringViewArray::from(vec![text])) };
        let different = [
            [text("a"), text("bc")],
            [text("ab"), text("c")],
            [text("c"), text("ab")],
            [text("abc"), text("")],
            [text(""), text("abc")],
            [text("abc\0"), text("")],
            [text("twelve bytes"), text("")],
            [text("twelve bytes!"), text("")],
            [text("twelve bytes?"), text("")],
            [Arc::new(StringViewArray::from(vec![None::<&str>])), text("abc")],
        ];
        let mut keys: Vec<i128> = different.iter().map(|columns| keys_of(SEED, columns)[0]).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), different.len());
    }

    #[test]
    fn what_is_nested_has_no_key() {
        let list = DataType::new_list(DataType::Int8, true);
        assert!(
            !is_hashable(&list)
                && !is_hashable(&DataType::Dictionary(Box::new(DataType::Int8), Box::new(list)))
        );
        assert!(is_hashable(&DataType::Null) && is_hashable(&DataType::Utf8View));
    }
}
