//! Pseudonyms: people, rows and values as keyed hashes (HMAC-SHA-256) that are the same from one release to the next.
//!
//! Who has the key can find a person again, and test guesses of names; who has the pseudonyms alone cannot.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, UInt64Array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::functions::random_key;
use crate::error::{Error, Result};

/// The key of pseudonyms: 32 random bytes. Its `Debug` shows none of them.
#[derive(Clone, PartialEq, Eq)]
pub struct PseudonymKey([u8; Self::BYTES]);

impl std::fmt::Debug for PseudonymKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PseudonymKey(..)")
    }
}

impl PseudonymKey {
    /// The length of a key.
    pub const BYTES: usize = 32;

    /// Draws a key.
    ///
    /// # Errors
    /// A data error when the system has no random numbers.
    pub fn random() -> Result<Self> {
        random_key().map(Self)
    }

    /// Returns the key with these bytes.
    pub fn of_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// Returns what the key is recognized by.
    ///
    /// # Errors
    /// An internal error if the key cannot be used.
    pub(crate) fn id(&self) -> Result<String> {
        Ok(format!("{:016x}", halves(self.begin("id")?)[0]))
    }

    /// Returns the HMAC-SHA-256 of texts, in hexadecimal digits.
    ///
    /// # Errors
    /// An internal error if the key cannot be used.
    pub(crate) fn mac_of_texts(&self, texts: [&str; 2]) -> Result<String> {
        let mut mac = self.begin("seal")?;
        texts.iter().for_each(|text| add(&mut mac, Some(text.as_bytes())));
        Ok(mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn begin(&self, purpose: &str) -> Result<Hmac<Sha256>> {
        let mut mac = mac_of(&self.0)?;
        add(&mut mac, Some(purpose.as_bytes()));
        Ok(mac)
    }
}

/// Begins an HMAC-SHA-256 under a key.
///
/// # Errors
/// An internal error for a key of an invalid length.
pub(crate) fn mac_of(key: &[u8]) -> Result<Hmac<Sha256>> {
    Hmac::<Sha256>::new_from_slice(key)
        .map_err(|_| Error::internal("pseudonym: the key has an invalid length"))
}

/// Adds a value so that no two lists of values are added alike.
fn add(mac: &mut Hmac<Sha256>, value: Option<&[u8]>) {
    mac.update(&[u8::from(value.is_some())]);
    if let Some(value) = value {
        mac.update(&(value.len() as u64).to_le_bytes());
        mac.update(value);
    }
}

fn halves(mac: Hmac<Sha256>) -> [u64; 2] {
    let bytes = mac.finalize().into_bytes();
    let half =
        |at: usize| bytes.iter().skip(at * 8).take(8).fold(0, |word, byte| word << 8 | u64::from(*byte));
    [half(0), half(1)]
}

/// `pseudonym(columns...)`: 64 bits per row, equal where the texts of the columns are, for a purpose. Values that are NULL are
/// values like any other.
pub(crate) fn pseudonym(key: &PseudonymKey, purpose: &str, columns: Vec<Expr>) -> Expr {
    let function = Pseudonym {
        key: key.clone(),
        purpose: purpose.to_owned(),
        // Two of one column in one plan need two names: the engine merges calls that print alike.
        name: format!("kanon_pseudonym_{purpose}_{}", key.id().unwrap_or_default()),
        signature: Signature::variadic_any(Volatility::Immutable),
    };
    ScalarUDF::new_from_impl(function).call(columns)
}

#[derive(Debug)]
struct Pseudonym {
    key: PseudonymKey,
    purpose: String,
    name: String,
    signature: Signature,
}

impl PartialEq for Pseudonym {
    fn eq(&self, other: &Self) -> bool {
        (&self.key, &self.purpose) == (&other.key, &other.purpose)
    }
}

impl Eq for Pseudonym {}

impl Hash for Pseudonym {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.purpose.hash(state);
    }
}

impl Pseudonym {
    fn of(&self, columns: &[ArrayRef], rows: usize) -> EngineResult<UInt64Array> {
        let columns: Vec<ArrayRef> = columns.iter().map(as_bytes).collect::<EngineResult<_>>()?;
        let lost = || DataFusionError::Internal("pseudonym: a column is no text".into());
        let columns: Option<Vec<&BinaryArray>> = columns.iter().map(|bytes| bytes.as_binary_opt()).collect();
        let columns = columns.ok_or_else(lost)?;
        let begun = self.key.begin(&self.purpose).map_err(super::into_engine)?;
        let of_row = |row: usize| {
            let mut mac = begun.clone();
            columns.iter().for_each(|bytes| add(&mut mac, bytes.is_valid(row).then(|| bytes.value(row))));
            halves(mac)[0]
        };
        Ok(UInt64Array::from_iter_values((0..rows).map(of_row)))
    }
}

/// Returns the bytes of values: those of their texts, but for values that are bytes.
fn as_bytes(values: &ArrayRef) -> EngineResult<ArrayRef> {
    let exactly = CastOptions { safe: false, ..CastOptions::default() };
    let texts = match values.data_type() {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Arc::clone(values)
        }
        _ => cast_with_options(values, &DataType::Utf8, &exactly)?,
    };
    Ok(cast_with_options(&texts, &DataType::Binary, &exactly)?)
}

impl ScalarUDFImpl for Pseudonym {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> EngineResult<DataType> {
        Ok(DataType::UInt64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        let rows = arguments.number_rows;
        let columns = ColumnarValue::values_to_arrays(&arguments.args)?;
        Ok(ColumnarValue::Array(Arc::new(self.of(&columns, rows)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{FixedSizeBinaryArray, Int64Array, StringArray};

    fn of(key: &PseudonymKey, purpose: &str, columns: &[ArrayRef]) -> Vec<u64> {
        let signature = Signature::variadic_any(Volatility::Immutable);
        let function =
            Pseudonym { key: key.clone(), purpose: purpose.into(), name: String::new(), signature };
        function.of(columns, columns[0].len()).unwrap().values().to_vec()
    }

    #[test]
    fn pseudonyms_are_equal_for_equal_texts_under_one_key_and_purpose() {
        let (key, other) = (PseudonymKey::of_bytes([7; 32]), PseudonymKey::of_bytes([8; 32]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), Some("ab"), None, Some("")]));
        let more: ArrayRef = Arc::new(StringArray::from(vec![Some("bc"), Some("c"), Some(""), None]));
        let both = of(&key, "row", &[texts.clone(), more.clone()]);
        let mut distinct = both.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 4, "no two rows are alike");
        assert_eq!(both, of(&key, "row", &[texts.clone(), more.clone()]));
        assert_ne!(both, of(&key, "person", &[texts.clone(), more.clone()]));
        assert_ne!(both, of(&other, "row", &[texts, more]));
        let (numbers, words): (ArrayRef, ArrayRef) =
            (Arc::new(Int64Array::from(vec![7])), Arc::new(StringArray::from(vec!["7"])));
        assert_eq!(of(&key, "person", &[numbers]), of(&key, "person", std::slice::from_ref(&words)));
        let bytes = FixedSizeBinaryArray::try_from_iter([b"7"].into_iter()).unwrap();
        assert_eq!(of(&key, "person", &[Arc::new(bytes)]), of(&key, "person", &[words]));
    }

    /// Computed with Python's hmac: the records of a chain are read by later versions.
    #[test]
    fn pseudonyms_stay_the_same_in_every_version() {
        let key = PseudonymKey::of_bytes([7; 32]);
        let anna: ArrayRef = Arc::new(StringArray::from(vec!["anna"]));
        assert_eq!(of(&key, "person", &[anna]), [0x99c7_c919_ded7_0369]);
    }
}
