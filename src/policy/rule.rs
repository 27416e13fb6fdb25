//! The rule of a hierarchy by itself, as it stands behind `hierarchy =` in a policy, and the policy
//! spec of the one column that it is for.

use toml::{Table, Value};

use super::csv_options::CsvOptions;
use super::keys::not_too_deep;
use super::spec::{HierarchySpec, PolicySpec};
use crate::error::{Error, Result, closest};
use crate::generalize::known;
use crate::known::NAMES;

/// The key of a rule in a policy: the place in errors.
const KEY: &str = "hierarchy";

impl HierarchySpec {
    /// Parses a rule, with or without its braces: `{ range = [10, 20] }`, `range = [10, 20]`; or the
    /// name of a known hierarchy: `country`.
    ///
    /// ```
    /// use datafusion_kanon::internals::policy::HierarchySpec;
    /// assert_eq!(HierarchySpec::parse("date = [\"month\", \"year\"]")?.key(), "date");
    /// assert_eq!(HierarchySpec::parse("country")?.key(), "known");
    /// # Ok::<(), datafusion_kanon::Error>(())
    /// ```
    ///
    /// # Errors
    /// A policy error that names the key.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        not_too_deep(text)?;
        if NAMES.contains(&text) {
            let name = Value::String(text.to_owned());
            let key = known::ROW.key.unwrap_or(known::ROW.doc.name).to_owned();
            return Self::read(KEY, Value::Table(Table::from_iter([(key, name)])));
        }
        if !text.contains(['=', '{']) {
            let close = closest(text, NAMES).map(|name| format!("; did you mean `{name}`?"));
            return Err(Error::policy(format!(
                "expected a rule such as 'range = [10, 20]' or the name of a known hierarchy{}",
                close.unwrap_or_else(|| "; `kanon list` lists them".to_owned())
            )));
        }
        let braced = if text.starts_with('{') { text.to_owned() } else { format!("{{ {text} }}") };
        let value: Value = braced.parse().map_err(|error: toml::de::Error| {
            let why = error.message().replace('\n', ", ");
            Error::policy(format!("expected TOML such as 'range = [10, 20]': {why}"))
        })?;
        Self::read(KEY, value)
    }
}

impl PolicySpec {
    /// Creates the policy spec of one quasi-identifier with this hierarchy; all other columns are
    /// left out. `merge` counts individuals, if their column is given, and joins values with fewer than k.
    ///
    /// # Errors
    /// A policy error for a wrong k or individual column.
    #[doc(hidden)]
    pub fn of_hierarchy(
        column: &str,
        hierarchy: HierarchySpec,
        csv: CsvOptions,
        individual: Option<&str>,
        k: u64,
    ) -> Result<Self> {
        let mut spec = Self::from_columns(&[column.to_owned()], individual, k)?;
        spec.csv = csv;
        match spec.columns.first_mut() {
            Some(column) => column.hierarchy = Some(hierarchy),
            None => return Err(Error::internal("policy rule: a spec of one column has none")),
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::CsvType;

    fn refused(text: &str) -> String {
        HierarchySpec::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn rules_are_read_with_and_without_braces() {
        for (text, key) in [
            ("range = [10, 20]", "range"),
            (" {range = [10], origin = 5} ", "range"),
            ("known = \"country\", outside = \"join\"", "known"),
            ("us_zip", "known"),
            ("file = \"a.csv\"", "file"),
            ("bands = [[1, 2, 3], [2]]", "bands"),
        ] {
            assert_eq!(HierarchySpec::parse(text).unwrap().key(), key, "{text}");
        }
    }

    #[test]
    fn wrong_rules_are_refused() {
        let form = "expected a rule such as 'range = [10, 20]' or the name of a known hierarchy";
        assert_eq!(refused("contry"), format!("{form}; did you mean `country`?"));
        assert_eq!(refused(""), format!("{form}; `kanon list` lists them"));
        assert_eq!(refused("rnge = [10]"), "hierarchy.rnge: unknown key; did you mean `range`?");
        assert!(refused("range = [0]").starts_with("hierarchy.range: "), "{}", refused("range = [0]"));
        assert!(refused("{}").starts_with("hierarchy: expected exactly one of the keys"));
        assert!(refused("range = [1], prefix = [1]").contains("found range and prefix"));
        for text in ["range = [10", "range = ", "= [1]", "{ range = [1] }\nk = 3", "range = [1] }, { x = 1"] {
            assert!(refused(text).starts_with("expected TOML such as "), "{text}: {}", refused(text));
        }
        assert!(refused(&"{".repeat(101)).contains("are open"));
    }

    #[test]
    fn the_spec_of_a_rule_types_its_column() {
        let csv_type = |rule: &str| {
            let rule = HierarchySpec::parse(rule).unwrap();
            let spec = PolicySpec::of_hierarchy("x", rule, CsvOptions::default(), None, 2);
            spec.unwrap().csv_type("x")
        };
        let merge = "merge = { levels = 2 }";
        let rules = ["range = [10]", "date = [\"year\"]", "prefix = [1]", "weekday", "country", merge];
        use CsvType::{Date, Number, Text};
        assert_eq!(rules.map(csv_type), [Number, Date, Text, Date, Text, Text]);
    }
}
