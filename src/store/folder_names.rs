//! The names of partition folders as kanon writes them: one name for each value.

use arrow::datatypes::DataType;

use super::partitions::NULL;

/// What Hive and Spark escape; readers would take these for a part of a path, an address or a pattern.
const ESCAPED: &str = "\"#%'*/:=?\\{}[]^";

/// The most bytes in the name of a folder: file systems take no more.
const LONGEST: usize = 255;

/// Returns whether values of a type have one text, by which every reader finds them.
pub(crate) fn can_be_partition_column(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::Boolean | DataType::Date32) || data_type.is_integer()
}

/// Checks that the name of a column can begin the names of folders: not every reader decodes it, and some skip folders that begin
/// with `_` or `.`.
///
/// # Errors
/// What is wrong with the name.
pub(crate) fn check_column(name: &str) -> Result<(), &'static str> {
    match name {
        "" => Err("is empty"),
        _ if name.starts_with(['_', '.']) => {
            Err("begins with `_` or `.`, and some programs skip such folders")
        }
        _ if name.contains(is_unsafe) || escaped(name) != name => {
            Err("holds a character that is escaped in names of folders, which some programs do not decode")
        }
        _ => Ok(()),
    }
}

/// Returns the name of the folder of a value of a [good](check_column) column, such as `year=2024`; `None` is NULL.
///
/// # Errors
/// What is wrong with the value: it is empty, a control character is in it, it reads as NULL, or it is too long.
pub(crate) fn folder_name(column: &str, value: Option<&str>) -> Result<String, &'static str> {
    let value = match value {
        None => NULL.to_owned(),
        Some("") => return Err("is an empty text, which other programs read as NULL"),
        Some(NULL) => return Err("is the text by which Hive writes NULL"),
        Some(value) if value.contains(is_unsafe) => {
            return Err("holds a control character or a break of lines");
        }
        Some(value) => escaped(value),
    };
    let name = format!("{column}={value}");
    match name.len() {
        ..=LONGEST => Ok(name),
        _ => Err("is too long for the name of a folder, which has 255 bytes at most"),
    }
}

/// Returns whether lists of a store, which are XML, give a character back as another one, or not at all.
fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}')
}

/// Escapes also a dot, a blank or a dollar sign that ends the text: some systems drop the former, and Hadoop marks folders by
/// `_$folder$`.
fn escaped(text: &str) -> String {
    let last = text.chars().count().saturating_sub(1);
    let mut name = String::with_capacity(text.len());
    for (at, c) in text.chars().enumerate() {
        match ESCAPED.contains(c) || (at == last && matches!(c, '.' | ' ' | '$')) {
            true => name.push_str(&format!("%{:02X}", u32::from(c))),
            false => name.push(c),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::super::partitions::PartitionColumns;
    use super::*;

    #[test]
    fn names_are_read_back() {
        for (value, name) in [
            (Some("2024"), "c=2024"),
            (None, "c=__HIVE_DEFAULT_PARTITION__"),
            (Some("[20, 40["), "c=%5B20, 40%5B"),
            (Some("7***"), "c=7%2A%2A%2A"),
            (Some("100%"), "c=100%25"),
            (Some("a/b\\c"), "c=a%2Fb%5Cc"),
            (Some(".x."), "c=.x%2E"),
            (Some("b_$folder$"), "c=b_$folder%24"),
            (Some("St. Gallen "), "c=St. Gallen%20"),
            (Some("Zürich ☃ +"), "c=Zürich ☃ +"),
            (Some("a=b:c"), "c=a%3Db%3Ac"),
            (Some("null"), "c=null"),
        ] {
            assert_eq!(folder_name("c", value).as_deref(), Ok(name));
            let read = PartitionColumns::find(&[format!("{name}/x")]).unwrap();
            assert_eq!(
                (read.names, read.values),
                (vec!["c".to_owned()], vec![vec![value.map(str::to_owned)]])
            );
        }
        for name in ["year", "Geburtsjahr der Mutter", "größe", "a+b", "x_"] {
            assert_eq!(check_column(name), Ok(()), "{name}");
        }
        for name in ["", "_x", ".x", "a/b", "a=b", "50%", "a\tb", "x ", "a?"] {
            check_column(name).unwrap_err();
        }
    }

    #[test]
    fn values_that_readers_would_not_give_back_are_refused() {
        for value in ["", NULL, "a\nb", "\u{7f}", "A\u{2028}", "\u{ffff}", &"é".repeat(127)] {
            folder_name("c", Some(value)).unwrap_err();
        }
        folder_name("c", Some(&"é".repeat(126))).unwrap();
    }
}
