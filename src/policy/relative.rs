//! `relative_to = "admission"`: a date column becomes the days since the date in another column of
//! the same row.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, Schema};

use super::keys::join;
use super::spec::{ColumnSpec, PolicySpec};
use super::{no_column, one_name_each};
use crate::error::{Error, Result};

impl PolicySpec {
    /// Returns the columns that hold days since another column's date, with that column's name.
    pub(super) fn days_since(&self) -> BTreeMap<String, String> {
        let other = |column: &ColumnSpec| Some((column.name.clone(), column.relative_to.clone()?));
        self.columns.iter().filter_map(other).collect()
    }

    /// Returns the columns of a table that become days since another column's date, with that
    /// column's name, after checking that both hold dates or timestamps and that the other is not
    /// relative itself. The policy is resolved against the resulting table.
    ///
    /// # Errors
    /// A policy error that names the key.
    #[doc(hidden)]
    pub fn relative_columns(&self, schema: &Schema) -> Result<BTreeMap<String, String>> {
        let relative = self.days_since();
        if !relative.is_empty() {
            one_name_each(schema)?;
            self.check_names(schema)?;
        }
        for (name, other) in &relative {
            let place = join(&join("columns", name), "relative_to");
            check(schema, name, other, &relative).map_err(|error| error.at(place))?;
        }
        Ok(relative)
    }
}

fn check(schema: &Schema, name: &str, other: &str, relative: &BTreeMap<String, String>) -> Result<()> {
    if name == other {
        return Err(Error::policy("a column cannot be relative to itself; name the column of another date"));
    }
    if relative.contains_key(other) {
        return Err(Error::policy(format!(
            "`{other}` is itself relative to another column; name a column that holds dates in the release's \
             input"
        )));
    }
    for column in [other, name] {
        let Ok(field) = schema.field_with_name(column) else {
            return Err(no_column(schema, column));
        };
        if !matches!(field.data_type(), DataType::Date32 | DataType::Timestamp(..)) {
            return Err(Error::policy(format!(
                "expected dates or timestamps in both columns; `{column}` holds {}",
                field.data_type()
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::CsvType;
    use arrow::datatypes::{Field, TimeUnit};

    fn stays() -> Schema {
        let moment = DataType::Timestamp(TimeUnit::Microsecond, None);
        let columns = [("admission", DataType::Date32), ("discharge", moment), ("ward", DataType::Utf8View)];
        Schema::new(columns.map(|(name, data_type)| Field::new(name, data_type, true)).to_vec())
    }

    fn relative(columns: &str) -> Result<BTreeMap<String, String>, String> {
        let spec =
            PolicySpec::parse(&format!("k = 2\n[columns]\n{columns}")).map_err(|error| error.to_string())?;
        spec.relative_columns(&stays()).map_err(|error| error.to_string())
    }

    #[test]
    fn both_columns_hold_dates() {
        let to =
            |name: &str, other: &str| format!("{name} = {{ role = \"quasi\", relative_to = \"{other}\" }}\n");
        let found = relative(&to("discharge", "admission")).unwrap();
        assert_eq!(found, BTreeMap::from([("discharge".to_owned(), "admission".to_owned())]));
        let wrong = |columns: &str| relative(columns).unwrap_err();
        let place = "columns.discharge.relative_to: ";
        assert_eq!(
            wrong(&to("discharge", "admision")),
            format!("{place}the input has no column `admision`; did you mean `admission`?")
        );
        assert_eq!(
            wrong(&to("discharge", "ward")),
            format!("{place}expected dates or timestamps in both columns; `ward` holds Utf8View")
        );
        assert!(wrong(&to("ward", "admission")).starts_with("columns.ward.relative_to: expected dates"));
        assert!(wrong(&to("discharge", "discharge")).contains("cannot be relative to itself"));
        let chain = to("discharge", "admission") + &to("admission", "discharge");
        assert!(
            wrong(&chain).contains("`discharge` is itself relative to another column"),
            "{}",
            wrong(&chain)
        );
        assert_eq!(
            wrong("discharge = { role = \"identifier\", relative_to = \"admission\" }"),
            format!("{place}only released columns can have this key; this column's role is `identifier`")
        );
        assert!(wrong(&to("dischage", "admission")).starts_with("columns.dischage: the input has no column"));
    }

    #[test]
    fn csv_cells_are_read_as_dates() {
        let text =
            "k = 2\n[columns]\na = { role = \"quasi\", relative_to = \"b\", hierarchy = { range = [7] } }";
        let spec = PolicySpec::parse(text).unwrap();
        let types = ["a", "b", "c"].map(|name| spec.csv_type(name));
        assert_eq!(types, [CsvType::Date, CsvType::Date, CsvType::Text]);
    }
}
