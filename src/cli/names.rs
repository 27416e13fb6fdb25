//! Column names on the command line: `age,sex`, with quotes as in CSV around a name that holds a
//! comma: `"a,b",sex`. A quote inside quotes is written twice.

use std::str::FromStr;

/// The names of a list.
#[derive(Debug, Clone)]
pub(crate) struct Names(Vec<String>);

impl FromStr for Names {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(parts(text)?.into_iter().map(|part| part.text).collect()))
    }
}

impl Names {
    /// Returns the names of all lists that an option was given.
    pub(crate) fn all(lists: &[Self]) -> Vec<String> {
        lists.iter().flat_map(|list| list.0.iter().cloned()).collect()
    }
}

/// Reads a single name, which needs no quotes but may have them.
///
/// # Errors
/// What is wrong with the quotes.
pub(crate) fn name(text: &str) -> Result<String, String> {
    if !text.trim_start().starts_with('"') {
        return Ok(text.to_owned());
    }
    match <[Part; 1]>::try_from(parts(text)?) {
        Ok([part]) => Ok(part.text),
        Err(_) => Err("expected one column".to_owned()),
    }
}

/// A part of a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// What it says; the quotes around it are gone.
    pub(crate) text: String,
    /// Whether it had quotes.
    pub(crate) is_quoted: bool,
}

/// Splits a list at its commas, but for those in quotes. Only a quote at the beginning of a part
/// opens one.
///
/// # Errors
/// What is wrong with the quotes.
pub(crate) fn parts(text: &str) -> Result<Vec<Part>, String> {
    let (mut parts, mut rest) = (Vec::new(), text);
    loop {
        let (part, after) = match rest.trim_start().strip_prefix('"') {
            Some(quoted) => {
                let (text, after) = unquoted(quoted)?;
                (Part { text, is_quoted: true }, after.trim_start())
            }
            None => {
                let (text, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                (Part { text: text.to_owned(), is_quoted: false }, after)
            }
        };
        parts.push(part);
        rest = match after.strip_prefix(',') {
            Some(next) => next,
            None if after.is_empty() => return Ok(parts),
            None => return Err("expected a comma behind the closing quote".to_owned()),
        };
    }
}

/// Reads up to the closing quote. Returns the text and what follows.
fn unquoted(text: &str) -> Result<(String, &str), String> {
    let (mut read, mut rest) = (String::new(), text);
    loop {
        let open = "a quote is not closed; a quote inside quotes is written twice";
        let (before, after) = rest.split_once('"').ok_or(open)?;
        read += before;
        match after.strip_prefix('"') {
            Some(more) => (read, rest) = (read + "\"", more),
            None => return Ok((read, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_as_in_csv() {
        for (text, expected) in [
            ("age,sex", &["age", "sex"][..]),
            (r#""a,b",sex"#, &["a,b", "sex"]),
            (r#"sex,"a,b""#, &["sex", "a,b"]),
            (r#""say ""x"", y", "z" ,w"#, &[r#"say "x", y"#, "z", "w"]),
            ("5\" disk, b,", &["5\" disk", " b", ""]),
            (r#"",""#, &[","]),
            ("", &[""]),
        ] {
            let names: Result<Names, String> = text.parse();
            assert_eq!(
                names.map(|names| names.0),
                Ok(expected.iter().map(|s| (*s).to_owned()).collect()),
                "{text}"
            );
        }
        for wrong in [r#""a,b"#, r#""a"b,c"#, r#""a"""#, r#"x,""#] {
            assert!(wrong.parse::<Names>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_name_is_taken_as_it_is_or_out_of_its_quotes() {
        assert_eq!(name("a,b"), Ok("a,b".to_owned()));
        assert_eq!(name(r#""a,b""#), Ok("a,b".to_owned()));
        assert!(name(r#""a","b""#).is_err());
    }
}
