//! The line of a column: `zip = { role = "quasi", ... }`.

use toml::Value;

use super::key_tables::{COLUMN, TOP, names};
use super::keys::{Keys, boolean, clip, expected, global, join, level, relative_to, role, weight};
use super::spec::{ColumnSpec, HierarchySpec};
use crate::error::{Error, Errors, Result};
use crate::role::Role;

/// Keys of [`COLUMN`] that only a quasi-identifier has; a sensitive column may have a hierarchy
/// too.
const QUASI_ONLY: &[&str] = &["hierarchy", "clip", "weight", "min_level", "max_level", "recode"];

impl ColumnSpec {
    /// Reads a column's line.
    ///
    /// # Errors
    /// A policy error that names the key; others of the line are beside it.
    pub(super) fn read(name: String, value: Value) -> Result<Self> {
        let path = join("columns", &name);
        let Value::Table(table) = value else {
            let hint = if names(TOP).contains(&name.as_str()) {
                "; keys of the policy itself go above all tables, for instance below `k = ...`"
            } else {
                ""
            };
            let error = expected("a table such as { role = \"quasi\" }", &value);
            return Err(Error::policy(format!("{error}{hint}")).at(path));
        };
        let mut wrong = Errors::default();
        let mut keys = Keys::known(path.clone(), table, &names(COLUMN), &mut wrong);
        let role = match keys.take("role", role) {
            Ok(Some(role)) => role,
            // An unknown key may be a misspelt `role`.
            Ok(None) => {
                wrong.end_of_stage()?;
                let words = Role::ALL.map(|(_, word)| word).join(", ");
                return Err(Error::policy(format!("expected `role = ...`, one of {words}")).at(path));
            }
            Err(error) => return Err(wrong.with(error)),
        };
        let allowed = |key: &str| role == Role::Quasi || (role == Role::Sensitive && key == "hierarchy");
        for key in QUASI_ONLY.iter().filter(|key| !allowed(key) && keys.table.contains_key(**key)) {
            let why = format!(
                "only a column with the role `quasi` can have this key; this column's role is `{}`",
                role.word()
            );
            wrong.add(Error::policy(why).at(join(&path, key)));
        }
        wrong.end_of_stage()?;
        let read = |value| HierarchySpec::read(&join(&path, "hierarchy"), value);
        let mut column = Self::new(name, role);
        // The errors of the hierarchy already have their place.
        column.hierarchy = wrong.found(keys.table.remove("hierarchy").map(read).transpose());
        column.clip = wrong.found(keys.take("clip", clip));
        column.weight = wrong.found(keys.take("weight", weight)).unwrap_or(column.weight);
        column.min_level = wrong.found(keys.take("min_level", level)).unwrap_or(column.min_level);
        column.max_level = wrong.found(keys.take("max_level", level));
        column.is_global = wrong.found(keys.take("recode", global)).is_some();
        let allow_unique = wrong.found(keys.take("allow_unique", boolean));
        if allow_unique.is_some() && !matches!(role, Role::Sensitive | Role::Insensitive) {
            let why = "only a column that is released as it is can have this key (sensitive, insensitive)";
            wrong.add(Error::policy(why).at(join(&path, "allow_unique")));
        }
        column.allow_unique = allow_unique.unwrap_or(false);
        column.relative_to = wrong.found(keys.take("relative_to", |value| relative_to(value, role)));
        wrong.end_of_stage().map(|()| column)
    }
}
