//! `kanon_<row>_codes(value, constants...)` and `kanon_hierarchy_codes(hierarchy, value, level)`: a
//! code instead of each label of `generalize_<row>` or `generalize`, where only the equality of
//! labels matters.
//!
//! # Contract
//! Two calls with the same constants and values of one type have equal results exactly where the
//! labels of `generalize_<row>` or `generalize` are equal ([`Generalizer::codes`]), and fail on the
//! same values. A dictionary stays a dictionary, whose entries are coded once for all batches. The
//! optimizer rule puts these functions into class keys, for which no text is made per row; they are
//! registered, because a plan may run elsewhere.

use arrow::array::{AnyDictionaryArray, Array, ArrayRef, AsArray, new_empty_array, new_null_array};
use arrow::compute::take;
use arrow::datatypes::DataType;
use arrow_select::dictionary::garbage_collect_any_dictionary;
use datafusion::common::{ExprSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, Expr, ExprSchemable, ScalarUDF};

use super::generalize::GeneralizeLoaded;
use super::udf::{GeneralizeFunction, seen_values, types};
use crate::engine::per_dictionary::PerDictionary;
use crate::engine::{distinct, into_engine};
use crate::error::Error;
use crate::generalize::Generalizer;

/// Returns the name of the function of the codes of a row.
pub(super) fn name_of_codes(row: &str) -> String {
    format!("kanon_{row}_codes")
}

/// Returns whether a function maps dictionaries to dictionaries of codes.
pub(crate) fn takes_dictionaries(function: &ScalarUDF) -> bool {
    let function = function.inner();
    let of_row = function.downcast_ref::<GeneralizeFunction>().is_some_and(GeneralizeFunction::returns_codes);
    of_row || function.downcast_ref::<GeneralizeLoaded>().is_some_and(GeneralizeLoaded::returns_codes)
}

/// The codes of dictionaries, by the constants of the call.
pub(super) type KnownCodes = PerDictionary<Vec<Option<ScalarValue>>, ArrayRef>;

/// Returns the expression to count classes by instead of a quasi-identifier. A call that generalizes
/// becomes the call for its codes, unless its labels are numbers, whose order the engine knows.
/// Other expressions are returned unchanged.
///
/// # Errors
/// When the expression has no type in `schema`.
pub(super) fn coded(expr: Expr, schema: &dyn ExprSchema) -> Result<Expr> {
    let Expr::ScalarFunction(call) = &expr else { return Ok(expr) };
    let function = call.func.inner();
    let of_row =
        function.downcast_ref::<GeneralizeFunction>().map(|labels| ScalarUDF::from(labels.of_codes()));
    let of_loaded =
        || function.downcast_ref::<GeneralizeLoaded>().map(|labels| ScalarUDF::from(labels.of_codes()));
    let Some(codes) = of_row.or_else(of_loaded).map(|codes| codes.call(call.args.clone())) else {
        return Ok(expr);
    };
    let (labels, type_of_codes) = (expr.get_type(schema)?, codes.get_type(schema)?);
    Ok(if labels == type_of_codes && labels.is_numeric() { expr } else { codes })
}

/// Returns the type of the codes of values of type `declared`.
///
/// # Errors
/// Values that cannot be generalized this way.
pub(super) fn type_of_codes(
    generalizer: &dyn Generalizer,
    declared: &DataType,
) -> crate::error::Result<DataType> {
    let (seen, _) = types(generalizer, declared)?;
    let codes = generalizer.codes(&new_empty_array(&seen))?.data_type().clone();
    Ok(match declared {
        DataType::Dictionary(keys, _) if !generalizer.is_top() => {
            DataType::Dictionary(keys.clone(), Box::new(codes))
        }
        _ => codes,
    })
}

/// Returns the codes of a call's value; an error begins with `place`. `constants` are those of the call.
pub(super) fn codes_of(
    place: &str,
    generalizer: &dyn Generalizer,
    value: &ColumnarValue,
    known: &KnownCodes,
    constants: &[Option<&ScalarValue>],
) -> Result<ColumnarValue> {
    let at_place = |e: Error| into_engine(e.at(place));
    let coded = |values: &ArrayRef| codes_of_distinct(generalizer, values).map_err(at_place);
    // Entries of a dictionary are mostly distinct, so looking for repetitions would not pay.
    let coded_entries = |entries: &ArrayRef| codes_of_all(generalizer, entries).map_err(at_place);
    let codes = match value {
        ColumnarValue::Scalar(value) => {
            return ScalarValue::try_from_array(&coded(&value.to_array()?)?, 0).map(ColumnarValue::Scalar);
        }
        ColumnarValue::Array(values) => match values.as_any_dictionary_opt() {
            None => coded(values)?,
            // All values have the code of NULL, but some may be refused.
            Some(packed) if generalizer.is_top() => {
                coded_entries(without_unused_entries(packed)?.as_any_dictionary().values())?;
                coded(&new_null_array(packed.values().data_type(), values.len()))?
            }
            Some(packed) => {
                let constants = constants.iter().map(|constant| constant.cloned()).collect();
                let of_entries = known.get(constants, packed.values(), || coded_entries(packed.values()));
                match of_entries {
                    Ok(Some(of_entries)) => packed.with_values(of_entries),
                    // An entry that no row has may be refused.
                    Ok(None) | Err(_) => {
                        let packed = without_unused_entries(packed)?;
                        let packed = packed.as_any_dictionary();
                        packed.with_values(coded_entries(packed.values())?)
                    }
                }
            }
        },
    };
    Ok(ColumnarValue::Array(codes))
}

/// Returns the codes of values, each computed on its own.
fn codes_of_all(generalizer: &dyn Generalizer, values: &ArrayRef) -> crate::error::Result<ArrayRef> {
    generalizer.codes(&seen_values(generalizer, values)?)
}

/// Returns the codes of values. A text that occurs more than once is coded once.
fn codes_of_distinct(generalizer: &dyn Generalizer, values: &ArrayRef) -> crate::error::Result<ArrayRef> {
    let values = seen_values(generalizer, values)?;
    let (seen, labels) = types(generalizer, values.data_type())?;
    let of_type = generalizer.codes(&new_empty_array(&seen))?;
    // Making a text from a text costs more than finding the distinct ones.
    if seen == labels && seen == DataType::Utf8View && *of_type.data_type() == seen && !values.is_empty() {
        let (distinct, places) = distinct::of_batch(&values).map_err(Error::internal)?;
        return take(&generalizer.codes(&distinct)?, &places, None).map_err(Error::internal);
    }
    generalizer.codes(&values)
}

/// Returns a dictionary without the entries that no row has.
fn without_unused_entries(packed: &dyn AnyDictionaryArray) -> Result<ArrayRef> {
    Ok(garbage_collect_any_dictionary(packed)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::decimal::Decimal;
    use crate::generalize::suppress::Suppress;
    use crate::generalize::{GENERALIZERS, apply};
    use crate::parameter::Setting;
    use arrow::array::{DictionaryArray, Float64Array, Int64Array, StringArray};
    use arrow::compute::cast;
    use arrow::datatypes::Int32Type;
    use arrow::util::display::array_value_to_string;

    /// The level of a generalizer whose parameter is a whole number.
    fn level(name: &str, number: i64) -> Arc<dyn Generalizer> {
        let row = GENERALIZERS.iter().find(|row| row.doc.name == name).unwrap();
        row.of(Setting::List(vec![Decimal::integer(number).into()])).unwrap().remove(0)
    }

    fn dictionary(keys: &[Option<i32>], entries: ArrayRef) -> ArrayRef {
        Arc::new(DictionaryArray::<Int32Type>::new(keys.iter().copied().collect(), entries))
    }

    /// For each row the first row with its value.
    fn classes(values: &ArrayRef) -> Vec<usize> {
        let texts: Vec<Option<String>> = (0..values.len())
            .map(|row| {
                values
                    .logical_nulls()
                    .is_none_or(|nulls| nulls.is_valid(row))
                    .then(|| array_value_to_string(values, row).unwrap())
            })
            .collect();
        texts.iter().map(|text| texts.iter().position(|other| other == text).unwrap()).collect()
    }

    #[test]
    fn codes_of_all_encodings_are_equal_where_labels_are() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![
            Some("02139"),
            Some("02141"),
            None,
            Some("9"),
            Some(""),
            Some("02139"),
            Some("no row"),
        ]));
        let numbers: ArrayRef =
            Arc::new(Int64Array::from(vec![Some(9), Some(10), None, Some(-1), Some(19), Some(9), Some(50)]));
        let keys = [Some(1), Some(0), None, Some(2), Some(4), Some(1), Some(3), Some(5)];
        for (generalizer, entries) in [
            (level("prefix", 3), &texts),
            (level("prefix", 1), &numbers),
            (level("range", 10), &numbers),
            (Arc::new(Suppress::star()), &texts),
        ] {
            let (known, packed) = (KnownCodes::default(), dictionary(&keys, Arc::clone(entries)));
            let plain = cast(&packed, entries.data_type()).unwrap();
            let labels = apply(&*generalizer, &plain).unwrap();
            for values in [&packed, &plain, &packed.slice(1, 4), &packed] {
                let value = ColumnarValue::Array(Arc::clone(values));
                let codes = codes_of("test", &*generalizer, &value, &known, &[])
                    .unwrap()
                    .into_array(values.len())
                    .unwrap();
                assert_eq!(*codes.data_type(), type_of_codes(&*generalizer, values.data_type()).unwrap());
                let labels =
                    if values.len() == labels.len() { Arc::clone(&labels) } else { labels.slice(1, 4) };
                assert_eq!(classes(&codes), classes(&labels), "{}", generalizer.descriptor());
            }
        }
    }

    #[test]
    fn an_entry_without_rows_is_not_refused_and_there_may_be_no_entry() {
        let range = level("range", 10);
        let entries: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::MAX, 12.0]));
        let code = |keys: &[Option<i32>]| {
            let value = ColumnarValue::Array(dictionary(keys, Arc::clone(&entries)));
            codes_of("test", &*range, &value, &KnownCodes::default(), &[])
        };
        let empty = dictionary(&[None, None], new_empty_array(&DataType::Float64));
        let star = Suppress::star();
        let codes = codes_of("test", &star, &ColumnarValue::Array(empty), &KnownCodes::default(), &[]);
        assert_eq!(classes(&codes.unwrap().into_array(2).unwrap()), [0, 0]);
        let codes = code(&[Some(2), Some(0), None, Some(2)]).unwrap().into_array(4).unwrap();
        assert_eq!(classes(&codes), [0, 1, 2, 0]);
        assert!(code(&[Some(1)]).is_err());
        // All keys are NULL, so no entry is left.
        assert_eq!(classes(&code(&[None, None]).unwrap().into_array(2).unwrap()), [0, 0]);
    }

    #[test]
    fn of_a_dictionary_too_large_to_be_kept_the_used_entries_are_coded() {
        let entries: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..200_000).map(|n| format!("{n:06}"))));
        let values =
            dictionary(&[Some(7), Some(150_000), None, Some(199_999), Some(150_999), Some(9)], entries);
        let known = KnownCodes::default();
        for (level, expected) in
            [(level("prefix", 3), [0, 1, 2, 3, 1, 0]), (Arc::new(Suppress::star()), [0; 6])]
        {
            let codes = codes_of("test", &*level, &ColumnarValue::Array(Arc::clone(&values)), &known, &[]);
            let codes = codes.unwrap().into_array(6).unwrap();
            assert_eq!(classes(&codes), expected);
            assert!(codes.as_any_dictionary_opt().is_none_or(|codes| codes.values().len() <= 5));
        }
    }
}
