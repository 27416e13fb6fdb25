//! Hierarchies that queries refer to by name, loaded beforehand and shared by the functions of a
//! session.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;

use super::constants::Constant;
use crate::error::{Error, nearest};
use crate::generalize::Hierarchy;
use crate::generalize::hierarchy::{self, csv_of_rows};
use crate::model::{Needs, SensitiveColumn};
use crate::parameter::TextTable;
use crate::release::publish::digest;

/// A loaded table and its levels. Two are equal when their tables are equal.
pub(crate) struct LoadedHierarchy {
    /// One row per value: the value, then its labels, finest first.
    pub(crate) table: TextTable,
    /// The levels: level 0 is the value as text, the last level one label for all.
    pub(crate) hierarchy: Hierarchy,
    /// The SHA-256 of the table.
    pub(super) digest: String,
}

impl LoadedHierarchy {
    fn new(table: TextTable) -> crate::error::Result<Self> {
        let levels = hierarchy::ROW.of(table.clone())?;
        let digest = digest::of_bytes(csv_of_rows(table.rows())?.as_bytes());
        Ok(Self { hierarchy: Hierarchy::new(&DataType::Utf8View, levels)?, table, digest })
    }
}

/// Shows no labels, because they are cells.
impl fmt::Debug for LoadedHierarchy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoadedHierarchy({} levels)", self.hierarchy.height())
    }
}

impl PartialEq for LoadedHierarchy {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.table == other.table
    }
}

impl Eq for LoadedHierarchy {}

/// The hierarchies of a session by name, shared by clones.
#[derive(Clone, Default)]
pub(crate) struct Hierarchies(Arc<RwLock<BTreeMap<String, Arc<LoadedHierarchy>>>>);

/// Shows the names only.
impl fmt::Debug for Hierarchies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl Hierarchies {
    /// Returns whether both are the same instance.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the names, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// Returns the hierarchy of this name; later loads do not change it.
    ///
    /// # Errors
    /// A policy error that lists the loaded names and how to load one.
    pub(crate) fn get(&self, name: &str) -> crate::error::Result<Arc<LoadedHierarchy>> {
        let loaded = self.0.read().unwrap_or_else(PoisonError::into_inner);
        loaded.get(name).map(Arc::clone).ok_or_else(|| {
            let names: Vec<&str> = loaded.keys().map(String::as_str).collect();
            let known = if names.is_empty() { "none is".to_owned() } else { nearest(name, &names) };
            Error::policy(format!(
                "no hierarchy `{name}` is loaded; {known}; `load_hierarchy` loads one before the query is planned"
            ))
        })
    }

    /// Returns the sensitive column of a measure with what it reads of the values; the `constant` at
    /// `place` names a hierarchy if the measure reads levels.
    ///
    /// # Errors
    /// A plan error if there is no such hierarchy.
    pub(super) fn sensitive_column(
        &self,
        needs: Needs,
        place: Constant<'_>,
        constant: Option<&ScalarValue>,
    ) -> datafusion::error::Result<SensitiveColumn> {
        let column = SensitiveColumn::from("sensitive").reading(needs.facts());
        if needs != Needs::Hierarchy {
            return Ok(column);
        }
        let loaded = self.get(&place.word(constant)?).map_err(|error| place.refused(&error))?;
        Ok(column.with_hierarchy(Some(loaded.hierarchy.clone())))
    }

    /// Loads a hierarchy, replacing one of the same name.
    ///
    /// # Errors
    /// A policy error with the name when the table is not a hierarchy.
    pub(crate) fn load(&self, name: &str, table: TextTable) -> crate::error::Result<()> {
        let loaded = LoadedHierarchy::new(table).map_err(|error| error.at(place(name)))?;
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(name.to_owned(), Arc::new(loaded));
        Ok(())
    }
}

/// Returns the place of errors about the hierarchy `name`.
pub(super) fn place(name: &str) -> String {
    format!("hierarchy `{name}`")
}
