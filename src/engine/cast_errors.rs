//! Texts for values that a cast or a function of dates cannot read. The engine's errors quote the
//! value; these do not.

const NOT_ISO: &str = "a text is not a date in ISO form such as 1992-04-02; for other forms write to_date(x, '%d.%m.%Y') or \
                       to_timestamp(x, '%d.%m.%Y %H:%M'); TRY_CAST(x AS DATE) makes every other text NULL";
const NOT_FORMAT: &str = "a text does not have the format that the query gives: '%d.%m.%Y' reads 02.04.1992, '%m/%d/%Y' 04/02/1992 and \
                          '%Y-%m-%d' 1992-04-02; to_date(x, '%d.%m.%Y', '%Y-%m-%d') tries several";
const NOT_NUMBER: &str = "a value cannot be cast to the type that is asked for: CAST(replace(x, ',', '.') AS DOUBLE) reads decimal commas, \
                          nulls in --csv names the words for missing values, and TRY_CAST makes every other value NULL";
const NOT_CAST: &str =
    "a value cannot be cast to the type that is asked for; TRY_CAST makes every such value NULL";
const NOT_NANOSECONDS: &str = "a moment lies outside of the years 1678 to 2261, which the engine's nanoseconds hold; compare it with a text \
                               (x < '9999-12-31'), and write arrow_cast(x, 'Timestamp(us)') where TIMESTAMP stands";
const NOT_OF_COLUMN: &str =
    "a value cannot be parsed as its column's type; declare the column as text (VARCHAR) and cast it";

/// The start of an error about a text that is not a moment.
const NOT_MOMENT: &str = "Error parsing timestamp from '";
/// The start of an error about a text that is not a date.
const NOT_DATE: &str = "Unable to cast to Date32";

/// Returns whether an error is about a moment that nanoseconds do not hold.
fn is_of_nanoseconds(error: &str) -> bool {
    error.contains("represented as nanoseconds")
        || (error.contains("to Timestamp(ns") && error.contains("exceeds the representable"))
        || (error.starts_with("Timestamp ") && error.contains(" out of range"))
}

/// Returns the text for a failed cast. Its error ends with the type.
pub(super) fn of_cast(error: &str) -> &'static str {
    if is_of_nanoseconds(error) {
        return NOT_NANOSECONDS;
    }
    match error.rsplit_once(" to value of ").map(|(_, asked)| asked) {
        Some(asked) if asked.starts_with("Date") || asked.starts_with("Timestamp") => NOT_ISO,
        Some(asked) if asked.starts_with("Time") || asked.starts_with("Bool") => NOT_CAST,
        _ => NOT_NUMBER,
    }
}

/// Returns the text for a value that cannot be parsed.
pub(super) fn of_parse(error: &str) -> &'static str {
    if [NOT_MOMENT, NOT_DATE].iter().any(|start| error.starts_with(start)) { NOT_ISO } else { NOT_OF_COLUMN }
}

/// Returns the text for a failed function of dates; `None` for other failures.
pub(super) fn of_function(error: &str) -> Option<&'static str> {
    match error {
        text if text.starts_with(NOT_MOMENT) => Some(NOT_FORMAT),
        text if is_of_nanoseconds(text) => Some(NOT_NANOSECONDS),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_decides_and_not_the_value() {
        let cast = |value: &str, asked: &str| {
            of_cast(&format!("Cannot cast string '{value}' to value of {asked} type"))
        };
        assert_eq!(cast("02.04.1992", "Date32"), NOT_ISO);
        assert_eq!(cast("x", "Timestamp(ns)"), NOT_ISO);
        assert_eq!(cast("x to value of Date32 type", "Int32"), NOT_NUMBER);
        assert_eq!(cast("1,5", "Decimal128(38, 10)"), NOT_NUMBER);
        assert_eq!(cast("x", "Time64(ns)"), NOT_CAST);
        assert_eq!(cast("x", "Boolean"), NOT_CAST);
        assert_eq!(of_cast("Can't cast value 300 to type Int8"), NOT_NUMBER);
        assert_eq!(of_parse("Error parsing timestamp from 'x': error parsing date"), NOT_ISO);
        assert_eq!(of_parse("Error while parsing value 'x' as type 'Int64'"), NOT_OF_COLUMN);
    }
}
