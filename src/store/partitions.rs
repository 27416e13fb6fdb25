//! Partition columns, which the names of folders hold: `year=2024/month=01/part-0.parquet` gives every row of that
//! file a column `year` and a column `month`. Hive, Spark and many other programs write tables in this layout.
//!
//! Readers disagree about unusual names: whether `01` is a number, `year=` is NULL, and `%2F` is decoded. A name
//! that two readers could read differently is refused, or stays text as it is written. Values are cells of the data,
//! so messages show none of them: a folder is shown as `year=...`.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::Hash;
use std::ops::Range;

use arrow::datatypes::DataType;

use crate::error::{Error, Result};

/// The value that stands for NULL.
pub(super) const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The type of a partition column, which all its values have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PartitionType {
    /// Integers of 64 bits in their shortest form: `0` and `-7`, not `07`, `+7` or `-0`.
    Integer,
    /// Days of the calendar as `YYYY-MM-DD`.
    Date,
    /// Anything else, and columns of nothing but NULL.
    Text,
    /// What the record of a release says.
    Recorded(DataType),
}

impl PartitionType {
    /// Finds the type from all values of a column without its NULLs.
    fn of(values: &[(&str, &str)]) -> Self {
        let are = |has_type: fn(&str) -> bool| values.iter().all(|(value, _)| has_type(value));
        match values {
            [_, ..] if are(is_integer) => Self::Integer,
            [_, ..] if are(is_date) => Self::Date,
            _ => Self::Text,
        }
    }
}

/// The partition columns of an input; without partition folders there are none.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct PartitionColumns {
    /// The names of the columns, from the outermost folder to the innermost.
    pub(crate) names: Vec<String>,
    /// The type of each column.
    pub(crate) types: Vec<PartitionType>,
    /// For each object, its value of each column; `None` is NULL.
    pub(crate) values: Vec<Vec<Option<String>>>,
}

/// Shows no values.
impl fmt::Debug for PartitionColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionColumns").field("names", &self.names).finish_non_exhaustive()
    }
}

impl PartitionColumns {
    /// Finds the partition columns from the path of each object, which is relative to the folder that the user named
    /// and written as the store lists it. Folders without `=` and the name of the file are ignored.
    ///
    /// # Errors
    /// A data error for a name or value that cannot be decoded or is empty, for objects whose partition columns
    /// differ, for two columns of one name, and for a value that is written in two ways.
    pub(crate) fn find(objects: &[impl AsRef<str>]) -> Result<Self> {
        let Some(first) = objects.first().map(AsRef::as_ref) else { return Ok(Self::default()) };
        let names = names_of(first)?;
        one_name_each(first, &names)?;
        let mut columns: Vec<Column> = names.iter().map(|_| Column::default()).collect();
        let mut values = Vec::with_capacity(objects.len());
        for object in objects.iter().map(AsRef::as_ref) {
            if !written_names(object).eq(written_names(first)) {
                let others = names_of(object)?;
                if others != names {
                    return Err(other_names((first, &names), (object, &others)));
                }
            }
            let folders = columns.iter_mut().zip(folders(object));
            let row = folders.map(|(column, (name, raw))| column.value(object, name, raw));
            values.push(row.collect::<Result<_>>()?);
        }
        let types = names.iter().zip(&columns).map(|(name, column)| column.checked_type(name));
        Ok(Self { types: types.collect::<Result<_>>()?, names, values })
    }

    /// Checks that no column of the files has the name of a partition column.
    ///
    /// # Errors
    /// A data error for one with the same name, or with a name that differs only in case.
    pub(crate) fn check_against(&self, columns: &[String]) -> Result<()> {
        for name in &self.names {
            // The names of the files may be cells, where a CSV file has no header: none is shown.
            let how = match columns.iter().find(|column| column.to_lowercase() == name.to_lowercase()) {
                None => continue,
                Some(column) if column == name => "of this name",
                Some(_) => "whose name differs only in case",
            };
            return Err(Error::data(format!(
                "column `{name}`: the folders `{name}=...` give it, and the files have a column {how}; expected only one \
                 of them; rename one, or leave the column out of the files"
            )));
        }
        Ok(())
    }
}

/// The distinct values of a partition column.
#[derive(Default)]
struct Column<'a> {
    /// The position in `values` of each text as it is written.
    written: HashMap<&'a str, usize>,
    /// For each of these texts, the value and the first object that has it.
    values: Vec<(Option<String>, &'a str)>,
}

impl<'a> Column<'a> {
    /// Returns the value of an object from the text behind the `=` of its folder.
    ///
    /// # Errors
    /// A data error for an empty text, and for one that cannot be decoded.
    fn value(&mut self, object: &'a str, name: &str, raw: &'a str) -> Result<Option<String>> {
        if let Some((value, _)) = self.written.get(raw).and_then(|at| self.values.get(*at)) {
            return Ok(value.clone());
        }
        let refused = |why: &str| refused(object, "value", name, why);
        if raw.is_empty() {
            return Err(refused(&format!(
                "is empty; expected a value, or `{NULL}`, which Hive writes for NULL"
            )));
        }
        let value = Some(decode(raw).map_err(refused)?).filter(|value| value != NULL);
        self.written.insert(raw, self.values.len());
        self.values.push((value.clone(), object));
        Ok(value)
    }

    /// Returns the type of the column.
    ///
    /// # Errors
    /// A data error if one value, or one number, is written in two ways.
    fn checked_type(&self, name: &str) -> Result<PartitionType> {
        let twice = |what: &str, example: &str, object: &str| {
            Error::data(format!(
                "column `{name}`: its folders write one {what} in two ways (such as {example}), and one of them holds \
                 `{}`; expected one spelling; move the files of both into one folder",
                shown(object)
            ))
        };
        if let Some(object) = repeated(self.values.iter().map(|(value, object)| (value, *object))) {
            return Err(twice("value", "`a%20b` and `a b`", object));
        }
        let values = self.values.iter().filter_map(|(value, object)| Some((value.as_deref()?, *object)));
        let values: Vec<(&str, &str)> = values.collect();
        match same_number(&values) {
            Some(object) => Err(twice("number", "`01` and `1`", object)),
            None => Ok(PartitionType::of(&values)),
        }
    }
}

/// Returns name and value, as they are written, of each partition folder of an object.
fn folders(object: &str) -> impl Iterator<Item = (&str, &str)> {
    let folders = object.rsplit_once('/').map_or("", |(folders, _)| folders);
    folders.split('/').filter_map(|folder| folder.split_once('='))
}

/// Returns the name of each partition folder of an object as it is written.
fn written_names(object: &str) -> impl Iterator<Item = &str> {
    folders(object).map(|(name, _)| name)
}

/// Returns the names of an object's partition columns.
///
/// # Errors
/// A data error for a name that is empty, cannot be decoded or holds a `/`.
fn names_of(object: &str) -> Result<Vec<String>> {
    let name_of = |raw| {
        let name = match decode(raw) {
            Ok(name) if name.is_empty() => Err("is empty; expected the name of a column before the `=`"),
            Ok(name) if name.contains('/') => Err("holds a `/`, as `%2F`; expected the name of a column"),
            name => name,
        };
        name.map_err(|why| refused(object, "name", raw, why))
    };
    written_names(object).map(name_of).collect()
}

/// Checks that an object's partition columns have different names, also where case does not count.
///
/// # Errors
/// A data error that shows two equal names.
fn one_name_each(object: &str, names: &[String]) -> Result<()> {
    let mut before = HashMap::new();
    for name in names {
        if let Some(other) = before.insert(name.to_lowercase(), name) {
            return Err(Error::data(format!(
                "two of its folders have the names `{other}` and `{name}`; expected names that differ in more than case; \
                 rename one"
            ))
            .at(shown(object)));
        }
    }
    Ok(())
}

/// Creates the error of two objects whose partition columns differ.
fn other_names((first, names): (&str, &[String]), (object, others): (&str, &[String])) -> Error {
    let (names, others) = (names.join("/"), others.join("/"));
    let beside = |object: &str, names: &str| {
        Error::data(format!(
            "`{}` lies beside the folders of `{names}`; expected every file in such folders; move it into one, or out \
             of the input",
            shown(object)
        ))
    };
    match (names.as_str(), others.as_str()) {
        ("", others) => beside(first, others),
        (names, "") => beside(object, names),
        (names, others) => Error::data(format!(
            "its folders are `{others}`, those of `{}` are `{names}`; expected the same names in the same order; move \
             or rename its folders",
            shown(first)
        ))
        .at(shown(object)),
    }
}

/// Creates the error of a partition folder whose name or value cannot be read.
fn refused(object: &str, what: &str, name: &str, why: &str) -> Error {
    let name = name.replace(char::is_control, " ");
    Error::data(format!("the {what} of its folder `{name}=...` {why}; rename the folder")).at(shown(object))
}

/// Returns the path of an object without values: those of its partition folders, and all that looks like one.
pub(crate) fn shown(object: &str) -> String {
    let segments = object.split('/').map(|segment| {
        // A folder whose `=` is encoded is no partition folder, but its name may hold a value.
        let end = ["=", "%3D", "%3d"].iter().filter_map(|sign| segment.find(sign)).min();
        end.and_then(|end| segment.get(..end)).map_or(segment.to_owned(), |name| format!("{name}=..."))
    });
    segments.collect::<Vec<_>>().join("/").replace(char::is_control, " ")
}

/// Decodes the percent escapes of a text once; a `+` stays a `+`.
///
/// # Errors
/// The reason, for an escape without two digits, for bytes that are not UTF-8, and for a control character.
fn decode(raw: &str) -> Result<String, &'static str> {
    let mut parts = raw.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let why = "has a `%` without two hexadecimal digits behind it; expected `%25` for a percent sign";
        let (digits, rest) = part.split_at_checked(2).ok_or(why)?;
        // The parser would accept a sign.
        let byte = u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
        bytes.push(byte.ok_or(why)?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8 once decoded; expected UTF-8")?;
    match text.contains(char::is_control) {
        true => Err("holds a control character, such as a line break; expected none"),
        false => Ok(text),
    }
}

/// Returns the first object whose key an earlier one has.
fn repeated<'a, K: Eq + Hash>(keys: impl IntoIterator<Item = (K, &'a str)>) -> Option<&'a str> {
    let mut before = HashSet::new();
    keys.into_iter().find_map(|(key, object)| (!before.insert(key)).then_some(object))
}

/// Returns the first object whose value is the number of an earlier one in another spelling; `None` if there is none
/// or if any value is not a number. Takes the distinct values, each with an object.
fn same_number<'a>(values: &[(&str, &'a str)]) -> Option<&'a str> {
    let numbers = values.iter().map(|(value, object)| Some((number(value)?, *object)));
    repeated(numbers.collect::<Option<Vec<_>>>()?)
}

/// Returns whether a number is negative, its digits before the point without leading zeros, and those behind it
/// without trailing zeros; `None` for anything but an optional sign, digits and an optional fraction.
fn number(text: &str) -> Option<(bool, &str, &str)> {
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    if !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let is_zero = whole.is_empty() && fraction.is_empty();
    Some((text.starts_with('-') && !is_zero, whole, fraction))
}

/// Returns whether a text is an integer of 64 bits in its shortest form.
fn is_integer(text: &str) -> bool {
    text.parse::<i64>().is_ok_and(|integer| integer.to_string() == text)
}

/// Returns whether a text is a day of the calendar as `YYYY-MM-DD`.
fn is_date(text: &str) -> bool {
    if !text.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte }).eq(*b"0000-00-00") {
        return false;
    }
    let part = |at: Range<usize>| text.get(at).and_then(|part| part.parse().ok()).unwrap_or_default();
    let (year, month, day): (usize, _, _) = (part(0..4), part(5..7), part(8..10));
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let february = 28 + usize::from(is_leap);
    let days = [0, 31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    days.get(month).is_some_and(|last| (1..=*last).contains(&day))
}

/// Returns whether a folder of this name is a partition folder.
pub(super) fn is_partition_name(name: &str) -> bool {
    name.contains('=')
}

/// Returns whether a segment of a path is what jobs leave beside the data: a file or folder that Hive and Spark hide,
/// or Hadoop's marker of a folder. A folder such as `_col=1` is a partition.
pub(crate) fn is_left_by_jobs(segment: &str) -> bool {
    segment.starts_with('.')
        || (segment.starts_with('_') && !segment.contains('='))
        || segment.ends_with("_$folder$")
}

/// Returns for each object whether it only marks a folder: it has no bytes, and its key ends in `/` or is the folder
/// of another object. Takes keys and sizes, sorted by the bytes of the keys.
pub(crate) fn markers(sorted: &[(&str, u64)]) -> Vec<bool> {
    let is_marker = |&(key, size): &(&str, u64)| {
        let is_folder = || {
            // `a-b` sorts between `a` and `a/c`, so what lies in `a` is found by search; it is in one run.
            let folder = format!("{key}/");
            let next = sorted.partition_point(|(other, _)| *other < folder.as_str());
            sorted.get(next).is_some_and(|(other, _)| other.starts_with(&folder))
        };
        size == 0 && (key.ends_with('/') || is_folder())
    };
    sorted.iter().map(is_marker).collect()
}

#[cfg(test)]
mod tests {
    use super::PartitionType::{Date, Integer, Text};
    use super::*;

    /// Finds the type of a column from the values of its folders, as written.
    fn type_of(values: &[&str]) -> Result<PartitionType> {
        let objects: Vec<String> = values.iter().map(|value| format!("c={value}/x.parquet")).collect();
        PartitionColumns::find(&objects).map(|found| found.types[0].clone())
    }

    #[test]
    fn folders_with_an_equals_sign_are_columns() {
        for (objects, expected) in [
            (&[][..], ": "),
            (&["x.parquet", "a/b=1.parquet", "year%3D1/x"], ": ||"),
            (&["y=2024/m=01/x", "y=2025/m=02/x"], "y,m: 2024,01|2025,02"),
            (&["raw/_y=1/part/b=2/x", "/%5Fy=3//b=4/x"], "_y,b: 1,2|3,4"),
            (&["a%3Db=c=d/x"], "a=b: c=d"),
            (&["c=a%2Fb%20%C3%A9/x", "c=100%25/x", "c=a%2520b/x"], "c: a/b é|100%|a%20b"),
            (&["c=NULL/x", "c=__HIVE_DEFAULT_PARTITION__/x"], "c: NULL|-"),
        ] {
            let found = PartitionColumns::find(objects).unwrap();
            let row = |row: &Vec<Option<String>>| {
                row.iter().map(|v| v.as_deref().unwrap_or("-")).collect::<Vec<_>>().join(",")
            };
            let rows: Vec<String> = found.values.iter().map(row).collect();
            assert_eq!(format!("{}: {}", found.names.join(","), rows.join("|")), expected);
        }
    }

    #[test]
    fn refusals_name_folder_and_column_and_show_no_value() {
        for (objects, message) in [
            (&["n=Zoe%/x"][..], "n=.../x: the value of its folder `n=...` has a `%` without two"),
            (&["n=Zoe%2/x"], "n=.../x: the value of its folder `n=...` has a `%`"),
            (&["n=Zoe%zz/x"], "has a `%` without"),
            (&["n=Zoe%+f/x"], "has a `%` without"),
            (&["n=Zoe%-0/x"], "has a `%` without"),
            (&["n=Zoe%2é/x"], "has a `%` without"),
            (&["n=Zoe%FF/x"], "the value of its folder `n=...` is not UTF-8 once decoded"),
            (&["n=Zoe%0A/x"], "the value of its folder `n=...` holds a control character"),
            (&["n=Zoe\u{7f}/x"], "holds a control character"),
            (&["n=Zoe/m=/x"], "n=.../m=.../x: the value of its folder `m=...` is empty; expected"),
            (&["d/=Zoe/x"], "d/=.../x: the name of its folder `=...` is empty"),
            (&["a%2Fb=Zoe/x"], "the name of its folder `a%2Fb=...` holds a `/`"),
            (&["%zz=Zoe/x"], "the name of its folder `%zz=...` has a `%`"),
            (&["a\n=Zoe/x"], "a =.../x: the name of its folder `a =...` holds a control"),
            (&["n=Zoe/x", "y.parquet"], "`y.parquet` lies beside the folders of `n`; expected"),
            (&["d/y.parquet", "n=Zoe/m=1/x"], "`d/y.parquet` lies beside the folders of `n/m`; expected"),
            (&["b=1/a=2/x", "a=1/b=Zoe/y"], "y: its folders are `a/b`, those of `b=.../a=.../x` are `b/a`"),
            (&["a%3DZoe/c%3dZoe/d=Zoe.csv", "a=1/x"], "`a=.../c=.../d=...` lies beside the folders of `a`"),
            (&["a=1/x", "A=Zoe/y"], "A=.../y: its folders are `A`, those of `a=.../x` are `a`"),
            (&["a=1/a=Zoe/x"], "a=.../a=.../x: two of its folders have the names `a` and `a`"),
            (&["Ä=1/ä=Zoe/x"], "two of its folders have the names `Ä` and `ä`"),
            (&["n=Zoe%20B/x", "n=Zoe B/y"], "column `n`: its folders write one value in two ways (such as"),
            (&["n=Zo%C3%ab/x", "n=Zo%c3%AB/y"], "column `n`: its folders write one value in two ways"),
            (&["n=__HIVE_DEFAULT_PARTITION__/x", "n=__HIVE_DEFAULT%5FPARTITION__/y"], "value in two ways"),
            (&["n=7/x", "n=07/y"], "in two ways (such as `01` and `1`), and one of them holds `n=.../y`"),
        ] {
            let error = PartitionColumns::find(objects).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
            assert!(!error.contains("Zo"), "{error}");
        }
    }

    #[test]
    fn columns_of_the_files_have_other_names() {
        let found = PartitionColumns::find(&["year=2024/x"]).unwrap();
        let check = |name: &str| found.check_against(&["age".to_owned(), name.to_owned()]);
        assert_eq!(check("year2"), Ok(()));
        for (name, message) in [("year", "a column of this name; expected"), ("YEAR", "differs only in case")]
        {
            let error = check(name).unwrap_err().to_string();
            assert!(error.starts_with("column `year`: ") && error.contains(message), "{error}");
        }
    }

    #[test]
    fn a_type_is_that_of_all_values_and_one_number_has_one_spelling() {
        for (expected, columns) in [
            (Some(Integer), "0 -7 NULL;9223372036854775807 -9223372036854775808"),
            (Some(Date), "2024-02-29 2000-02-29 1999-12-31 NULL"),
            (Some(Text), "NULL;x;1 9223372036854775808;01 12 NULL;-0;+1;1.10 2.5;-1 1 10 0.1 0.01"),
            (Some(Text), "2024-01-01 2024;2023-02-29;1900-02-29;2024-04-31;2024-00-10;2024-13-01"),
            (Some(Text), "2024-01-00;2024-1-011;+024-01-01"),
            (Some(Text), "01 1 x;100 1e2;1. 1;.5 0.5"),
            (None, "01 1;1.10 1.1;+1 1 NULL;0 -0.0;1%2E0 1;00.50 0.5;-1 -01"),
        ] {
            for column in columns.split(';') {
                let values: Vec<String> =
                    column.split(' ').map(|value| value.replace("NULL", NULL)).collect();
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                assert_eq!(type_of(&values).ok(), expected, "{column}");
            }
        }
    }

    #[test]
    fn cases_that_users_of_other_readers_reported() {
        // pola-rs/polars#13177, apache/arrow#39660: a code became a number and lost its zeros.
        assert_eq!(type_of(&["01001", "11164", "2A001"]), Ok(Text));
        assert_eq!(type_of(&["01001", "11164"]), Ok(Text));
        // apache/spark#31549: `-0` became `0` beside a text. apache/spark#20621: a date with letters became NULL.
        let found = PartitionColumns::find(&["p=-0/x", "p=AA/x"]).unwrap();
        assert_eq!((found.types[0].clone(), found.values[0][0].as_deref()), (Text, Some("-0")));
        assert_eq!(type_of(&["2018-02-15", "2018-02-15AAA"]), Ok(Text));
        // apache/datafusion#19650: values were not decoded. elastic/elasticsearch#153908: a `+` became a space.
        let found = PartitionColumns::find(&["c=foo%2Fbar/x", "c=a+b/x"]).unwrap();
        assert_eq!(found.values.concat(), [Some("foo/bar".to_owned()), Some("a+b".to_owned())]);
        // pola-rs/polars#24545: an empty text and NULL became one value.
        assert!(type_of(&["", NULL, "a"]).is_err());
    }

    #[test]
    fn what_jobs_leave_is_known_by_its_name() {
        let left = ["_SUCCESS", "_temporary", ".hive-staging", ".a=1", "year=1_$folder$", "_$folder$"];
        let kept = ["_locality_code=1", "year=1", "part-0.parquet", "a_b", ""];
        assert!(left.into_iter().all(is_left_by_jobs) && !kept.into_iter().any(is_left_by_jobs));
    }

    #[test]
    fn markers_are_empty_objects_named_as_folders() {
        let keys =
            [("a", 0), ("a-b", 0), ("a/c", 7), ("a/c/d", 1), ("b/", 0), ("b0", 0), ("c/", 3), ("é", 0)];
        let keys = [&keys[..], &[("é/x", 1)]].concat();
        assert!(keys.is_sorted());
        assert_eq!(markers(&keys), [true, false, false, false, true, false, false, true, false]);
        assert!(markers(&[]).is_empty());
    }

    #[test]
    fn many_objects_take_no_time() {
        let start = std::time::Instant::now();
        let object = |at: usize| format!("year={}/id=a%20{at:06}/part-0.parquet", at / 1000);
        let objects: Vec<String> = (0..100_000).map(object).collect();
        let found = PartitionColumns::find(&objects).unwrap();
        assert_eq!((found.values.len(), found.types), (100_000, vec![Integer, Text]));
        let mut keys: Vec<(&str, u64)> = objects.iter().map(|object| (object.as_str(), 0)).collect();
        keys.sort_unstable();
        assert!(!markers(&keys).contains(&true));
        // A quadratic way takes minutes.
        let took = start.elapsed();
        assert!(took.as_secs() < 5, "{took:?}");
    }
}
