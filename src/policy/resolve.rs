//! Resolves a policy spec against a table: every column gets its role and its levels.

use std::collections::{BTreeMap, HashSet};

use arrow::datatypes::{DataType, Schema};

use super::keys::{join, some};
use super::required::Required;
use super::spec::{ColumnSpec, HierarchySpec, LevelsSpec, PolicySpec};
use super::{Files, Policy, Quasi, end_names, no_column, one_name_each};
use crate::error::{Error, ErrorCode, Errors, Result, nearest};
use crate::generalize::value::{is_supported, type_name};
use crate::generalize::{Hierarchy, hierarchy};
use crate::method::{self, MethodRow, MethodSpec, ReleaseKind, anatomy};
use crate::model::{Class, Distribution, Needs, Requirement, SensitiveColumn, ValueCount};
use crate::plural::plural;
use crate::role::Role;

/// Returns whether a model protects this sensitive column: it refuses a class in which all
/// individuals share one value, while other individuals have other values. A requirement that names
/// the only values that count never does, nor one over a subset of the quasi-identifiers.
pub fn protects_column(requirements: &[Requirement], column: &str) -> bool {
    let [shared, other] =
        [(0, 1_000), (1, u64::from(u32::MAX))].map(|(value, count)| ValueCount { value: Some(value), count });
    let input = Distribution::of_rows(vec![shared, other]);
    let shared = Class { size: 1_000, sensitive: &[shared], input: &input, population: None };
    let refuses = |r: &&Requirement| !r.model.holds(r.model.value(&shared));
    let looks_at = |r: &Requirement| {
        let sees = |looked: &SensitiveColumn| looked.name() == column && looked.values().is_none();
        r.is_over_all_quasi() && r.sensitive.as_ref().is_some_and(sees)
    };
    requirements.iter().filter(refuses).any(looks_at)
}

impl PolicySpec {
    /// Resolves the policy for a table with this schema; hierarchy files are read from `files`.
    ///
    /// # Errors
    /// A policy error that names the key and what to do, with others that were found beside it; a data
    /// error when the table has two columns of one name or a column's type does not fit its hierarchy.
    #[doc(hidden)]
    pub fn resolve(&self, schema: &Schema, files: &dyn Files) -> Result<Policy> {
        one_name_each(schema)?;
        let mut wrong = Errors::default();
        wrong.value_of(self.check_names(schema));
        wrong.value_of(self.check_earlier(schema));
        wrong.value_of(self.check_roles_are_complete(schema));
        let requirements = wrong.value_of(self.requirements()).unwrap_or_default();
        if requirements.len() == self.required.len() {
            wrong.value_of(self.check_homogeneity(&requirements));
        }
        wrong.value_of(self.check_objective());
        wrong.end_of_stage()?;
        let typed = |column| check_type(column, type_of(schema, column)?);
        Errors::of(self.columns.iter().map(typed))?;
        let sensitive_hierarchies = wrong.value_of(self.sensitive_hierarchies(schema, files));
        let quasi = self.columns.iter().filter(|column| column.role == Role::Quasi);
        let quasi = quasi.map(|column| column.resolve(type_of(schema, column)?, files, &self.method));
        let quasi = wrong.value_of(Errors::of(quasi)).unwrap_or_default();
        let sensitive_hierarchies = sensitive_hierarchies.unwrap_or_default();
        wrong.end_of_stage()?;
        let requirements = self.with_hierarchies(requirements, schema, &sensitive_hierarchies)?;
        self.check_written_names(&quasi)?;
        let levels: Vec<_> = quasi.iter().map(|quasi| (quasi.name.as_str(), &quasi.levels)).collect();
        if let Some(row) = method::row(&self.method.name).and_then(MethodRow::of_lattice) {
            (row.check)(&self.method.settings, &levels)?;
        }
        let kind = self.method.kind();
        if kind == ReleaseKind::Groups {
            self.check_groups(&requirements, &quasi)?;
        }
        if kind.facts().adds_noise {
            super::mechanism(&self.method, &requirements, &quasi)?;
        }
        let with_role = |name: &String| self.column(name).map(|column| (name.clone(), column.role));
        Ok(Policy {
            spec: self.clone(),
            quasi,
            columns: if kind.facts().adds_noise {
                // Lines of JSON decide in which order their columns are.
                self.columns.iter().filter_map(|column| with_role(&column.name)).collect()
            } else {
                schema.fields().iter().filter_map(|field| with_role(field.name())).collect()
            },
            others: schema
                .fields()
                .iter()
                .map(|field| field.name())
                .filter(|name| self.column(name).is_none())
                .cloned()
                .collect(),
            requirements,
            kind,
            centroid: self.method.centroid()?,
            days_since: self.days_since(),
            sensitive_hierarchies,
        })
    }

    /// Checks a policy whose method makes groups.
    fn check_groups(&self, requirements: &[Requirement], quasi: &[Quasi]) -> Result<()> {
        let levels = quasi.iter().map(|quasi| (quasi.name.as_str(), &quasi.hierarchy, &quasi.levels));
        let sensitive = anatomy::check(requirements, levels)?;
        let is_other =
            |column: &&ColumnSpec| column.role == Role::Sensitive && column.name != sensitive.name();
        if let Some(other) = self.columns.iter().find(is_other) {
            let why = format!(
                "`{}` releases one sensitive column, and the models look at `{}`; leave the other out (`text`), or use another method",
                self.method.name,
                sensitive.name()
            );
            return Err(Error::policy(why).at(other.path()));
        }
        let is_released = |column: &&ColumnSpec| matches!(column.role, Role::Quasi | Role::Sensitive);
        let mut released = self.columns.iter().filter(is_released);
        match released.find(|column| anatomy::COLUMNS.contains(&column.name.as_str())) {
            None => Ok(()),
            Some(column) => {
                let why = "the release has a column of this name already; rename the column in the input";
                Err(Error::policy(why).at(column.path()))
            }
        }
    }

    /// Returns the hierarchies of the sensitive columns that have one.
    fn sensitive_hierarchies(
        &self,
        schema: &Schema,
        files: &dyn Files,
    ) -> Result<BTreeMap<String, Hierarchy>> {
        let sensitive = self.columns.iter().filter(|column| column.role == Role::Sensitive);
        let with_hierarchy = sensitive.filter_map(|column| Some((column, column.hierarchy.as_ref()?)));
        let read = |(column, hierarchy): (&ColumnSpec, &HierarchySpec)| {
            if hierarchy.merge().is_some() {
                let why = "`merge` is for quasi-identifiers; a sensitive column is released as it is";
                return Err(Error::policy(why).at(join(&column.path(), "hierarchy")));
            }
            Ok((column.name.clone(), column.levels(type_of(schema, column)?, files)?))
        };
        Ok(Errors::of(with_hierarchy.map(read))?.into_iter().collect())
    }

    fn type_named<'a>(&self, schema: &'a Schema, name: &str) -> Result<&'a DataType> {
        let column = self.column(name);
        let missing = || Error::internal("policy resolve: a model looks at a column that the policy lacks");
        type_of(schema, column.ok_or_else(missing)?)
    }

    /// Gives the requirements the hierarchies that they look at.
    fn with_hierarchies(
        &self,
        requirements: Vec<Requirement>,
        schema: &Schema,
        hierarchies: &BTreeMap<String, Hierarchy>,
    ) -> Result<Vec<Requirement>> {
        let complete = |(requirement, required): (Requirement, &Required)| {
            let Some(column) = requirement.sensitive.clone() else { return Ok(requirement) };
            let column = column.completed(hierarchies);
            if !column.is_complete() {
                let why = format!(
                    "`{}` looks at the hierarchy of `{}`, which has none; give its line under [columns] `hierarchy = ...`",
                    required.model,
                    column.name()
                );
                return Err(Error::policy(why).at(required.place()));
            }
            let heights = hierarchies.get(column.name()).map_or(0, Hierarchy::height);
            if column.level() > heights {
                let why = format!("expected a level from 0 to {heights}, found {}", column.level());
                return Err(Error::policy(why).at(join(required.place(), "level")));
            }
            if requirement.compares_letters(self.type_named(schema, column.name())?) {
                let why = format!(
                    "`{}` compares values by their order, and `{}` is text, whose order is that of its letters; cast it to a \
                     number or a date, or require t_closeness",
                    required.model,
                    column.name()
                );
                return Err(Error::policy(why).at(required.place()));
            }
            Ok(Requirement { sensitive: Some(column), ..requirement })
        };
        Errors::of(requirements.into_iter().zip(&self.required).map(complete))
    }

    /// Checks that the ends of intervals, written as columns, have no name of another released column.
    fn check_written_names(&self, quasi: &[Quasi]) -> Result<()> {
        let is_released = |name: &String| self.column(name).is_some_and(|other| other.role.is_released());
        for quasi in quasi.iter().filter(|quasi| self.output.writes_ends() && quasi.hierarchy.has_intervals())
        {
            if let Some(name) = end_names(&quasi.name).into_iter().find(is_released) {
                let why = format!(
                    "`{}` would be written as `{name}`, which is another released column; rename it",
                    quasi.name
                );
                return Err(Error::policy(why).at("output.intervals"));
            }
        }
        Ok(())
    }

    pub(super) fn check_names(&self, schema: &Schema) -> Result<()> {
        let names: HashSet<&String> = schema.fields().iter().map(|field| field.name()).collect();
        let missing = self.columns.iter().filter(|column| !names.contains(&column.name));
        let missing = missing.map(|column| Err(no_column(schema, &column.name).at(column.path())));
        Errors::of(missing).map(|_: Vec<()>| ())
    }

    /// Checks that the columns are those of the earlier release whose recoding is applied: of the
    /// same types, in the same order.
    fn check_earlier(&self, schema: &Schema) -> Result<()> {
        let mut places = Vec::new();
        for earlier in &self.earlier {
            let Some((place, field)) = schema.column_with_name(&earlier.name) else { continue };
            let found = type_name(field.data_type());
            if let Some(expected) = earlier.data_type.as_ref().filter(|expected| **expected != found) {
                let why = format!(
                    "the column has the type {found}, and had the type {expected} in the earlier release; convert it to {expected}"
                );
                return Err(Error::policy(why)
                    .at(join("columns", &earlier.name))
                    .coded(ErrorCode::OtherColumns));
            }
            places.push(place);
        }
        if places.is_sorted() {
            return Ok(());
        }
        let why = "the columns are in another order than in the earlier release; restore it";
        Err(Error::policy(why).at("columns").coded(ErrorCode::OtherColumns))
    }

    fn check_roles_are_complete(&self, schema: &Schema) -> Result<()> {
        let names = schema.fields().iter().map(|field| field.name().as_str());
        let missing: Vec<&str> = names.filter(|name| self.column(name).is_none()).collect();
        if let ([first, ..], false) = (missing.as_slice(), self.others_are_dropped) {
            return Err(Error::policy(format!(
                "{} of the input without a role: {}; give each a line such as `{} = {{ role = \"...\" }}` ({}), \
                 or leave them out with the line `others = \"drop\"` {}",
                plural(missing.len() as u64, "column", "columns"),
                some(&missing),
                join("", first),
                Role::ALL.map(|(_, word)| word).join(", "),
                self.above_tables(),
            ))
            .at("columns")
            .coded(ErrorCode::OtherColumns));
        }
        if !self.columns.iter().any(|column| column.role == Role::Quasi) {
            return Err(Error::policy("expected at least one column with `role = \"quasi\"`").at("columns"));
        }
        Ok(())
    }

    /// Checks that each sensitive column has a model that looks at it, or is accepted without one.
    fn check_homogeneity(&self, requirements: &[Requirement]) -> Result<()> {
        let sensitive: Vec<&str> = self.with_role(Role::Sensitive).collect();
        let mut wrong = Errors::default();
        for accepted in &self.accept_homogeneity {
            if !sensitive.contains(&accepted.as_str()) {
                let why = match self.column(accepted) {
                    Some(column) => {
                        format!("the role of `{accepted}` is `{}`, not `sensitive`", column.role.word())
                    }
                    None if sensitive.is_empty() => format!("no column is sensitive, found `{accepted}`"),
                    None => {
                        format!("unknown sensitive column `{accepted}`; {}", nearest(accepted, &sensitive))
                    }
                };
                wrong.add(Error::policy(why).at("accept_homogeneity"));
            }
        }
        // Who misspelt a name sees no line that repeats it.
        wrong.end_of_stage()?;
        let is_open = |column: &&ColumnSpec| {
            column.role == Role::Sensitive
                && !protects_column(requirements, &column.name)
                && !self.accept_homogeneity.contains(&column.name)
        };
        for column in self.columns.iter().filter(is_open) {
            let looks = |one: &&Requirement| {
                one.sensitive.as_ref().is_some_and(|looked| looked.name() == column.name)
            };
            let too_weak = requirements.iter().find(looks).map(|one| match one.is_over_all_quasi() {
                true => one.why_vacuous().map(|why| why + "; ").unwrap_or_default(),
                false => format!(
                    "{} holds over a subset of the quasi-identifiers, which does not protect the column; ",
                    one.text()
                ),
            });
            let accepted: Vec<&String> = self.accept_homogeneity.iter().chain([&column.name]).collect();
            let place = match self.accept_homogeneity.as_slice() {
                [] => self.above_tables(),
                _ => "in place of the one that is there".to_owned(),
            };
            wrong.add(
                Error::policy(format!(
                    "{}no model protects this sensitive column: when all rows of a class share one value of it, \
                     anyone who knows that a person is in the class learns the value (homogeneity); require \
                     variety with `[[require]]`, `model = \"l_diversity\"`, `l = 2`, `sensitive = {:?}`, accept \
                     it with the line `accept_homogeneity = {accepted:?}` {place}, or do not release the column",
                    too_weak.unwrap_or_default(),
                    column.name,
                ))
                .at(column.path()),
            );
        }
        wrong.end_of_stage()
    }

    /// Says where in the policy a key of its own goes.
    pub(super) fn above_tables(&self) -> String {
        let k = self.required.iter().find(|required| required.path.is_none());
        let k = k.and_then(|required| required.parameters.first());
        let below = k.map(|(name, k)| format!(", for instance below `{name} = {k}`")).unwrap_or_default();
        format!("above all tables{below}")
    }

    pub(super) fn with_role(&self, role: Role) -> impl Iterator<Item = &str> {
        self.columns.iter().filter(move |column| column.role == role).map(ColumnSpec::name)
    }

    fn check_objective(&self) -> Result<()> {
        let sensitive = self.with_role(Role::Sensitive).count();
        if self.objective.needs() == Needs::Size || sensitive == 1 {
            return Ok(());
        }
        Err(Error::policy(format!(
            "`{}` needs exactly one sensitive column; this policy has {sensitive}",
            self.objective.doc().name
        ))
        .at("objective"))
    }
}

impl ColumnSpec {
    fn resolve(&self, data_type: &DataType, files: &dyn Files, method: &MethodSpec) -> Result<Quasi> {
        let hierarchy = self.levels(data_type, files)?;
        let height = hierarchy.height();
        let max = self.max_level.unwrap_or(height);
        for (key, level) in [("max_level", max), ("min_level", self.min_level)] {
            if level > height {
                let labels = hierarchy.levels().iter().enumerate();
                let labels: Vec<String> =
                    labels.map(|(at, level)| format!("{at} {}", level.descriptor())).collect();
                let why = format!(
                    "expected a level from 0 to {height}, found {level}; levels: {}",
                    labels.join(", ")
                );
                return Err(Error::policy(why).at(join(&self.path(), key)));
            }
        }
        if self.min_level > max {
            let why = format!("{} is above max_level = {max}", self.min_level);
            return Err(Error::policy(why).at(join(&self.path(), "min_level")));
        }
        if self.is_global
            && method.kind().facts().why_no_ends.is_none()
            && self.min_level > 0
            && hierarchy.has_intervals()
        {
            let why = "the classes of this method show intervals of such a column, whose ends are values and finer than any level; \
                       remove this limit, or use a method that chooses levels, such as \"auto\"";
            return Err(Error::policy(why).at(join(&self.path(), "min_level")));
        }
        if let (true, Some(clip)) = (method.kind().facts().shows_centroids, &self.clip) {
            let place = || join(&self.path(), "clip");
            clip.check_type(hierarchy.input_type()).map_err(|error| error.of_policy().at(place()))?;
        }
        let is_merged = self.hierarchy.as_ref().is_some_and(|hierarchy| hierarchy.merge().is_some());
        Ok(Quasi {
            tree: if is_merged { files.tree(&self.name)? } else { None },
            name: self.name.clone(),
            hierarchy,
            weight: self.weight,
            levels: self.min_level..=max,
            is_global: self.is_global,
        })
    }

    /// Returns the levels of this column over values of `data_type`; a hierarchy file is read from
    /// `files`.
    ///
    /// # Errors
    /// A policy error when the hierarchy does not suit such values or its file cannot be read.
    pub fn levels(&self, data_type: &DataType, files: &dyn Files) -> Result<Hierarchy> {
        let hierarchy = self.unclipped(data_type, files)?;
        match &self.clip {
            None => Ok(hierarchy),
            Some(clip) => hierarchy.clipped(clip).map_err(|e| e.of_policy().at(join(&self.path(), "clip"))),
        }
    }

    fn unclipped(&self, data_type: &DataType, files: &dyn Files) -> Result<Hierarchy> {
        let Some(spec) = &self.hierarchy else {
            return Hierarchy::new(data_type, Vec::new()).map_err(|error| error.of_policy().at(self.path()));
        };
        let make = || {
            let levels = match &spec.levels {
                LevelsSpec::Made(levels) => levels.clone(),
                LevelsSpec::File(name) => {
                    let text = files.read(name)?;
                    let table = match hierarchy::is_table(name) {
                        true => hierarchy::parse_table(&text),
                        false => hierarchy::parse_csv(&text, &self.name),
                    };
                    let levels = table.and_then(|table| hierarchy::ROW.of(table));
                    levels.map_err(|error| error.at(name))?
                }
                LevelsSpec::Merged(merge) => {
                    merge.check_type(data_type)?;
                    let tree = files.tree(&self.name)?.ok_or_else(|| {
                        Error::policy(
                            "only the private record of the release says how the values were merged; put it beside the \
                             release",
                        )
                    })?;
                    return Hierarchy::merged(data_type, merge.levels(&tree)?);
                }
            };
            Hierarchy::new(data_type, levels)
        };
        make().map_err(|error| error.of_policy().at(join(&join(&self.path(), "hierarchy"), spec.key)))
    }
}

fn type_of<'a>(schema: &'a Schema, column: &ColumnSpec) -> Result<&'a DataType> {
    let field = schema.fields().iter().find(|field| *field.name() == column.name);
    field
        .map(|field| field.data_type())
        .ok_or_else(|| Error::internal("policy resolve: a column of the policy is not in the schema"))
}

/// Checks that released columns are flat; columns that are not released may have any type.
fn check_type(column: &ColumnSpec, data_type: &DataType) -> Result<()> {
    let role = column.role.word();
    if column.role == Role::Preference && !data_type.is_integer() {
        let why = format!(
            "expected integers for the role `{role}`, found {}; cast the column",
            type_name(data_type)
        );
        return Err(Error::policy(why).at(column.path()));
    }
    if column.role == Role::Individual && nested(data_type).is_some() {
        let why = "only a flat column can identify individuals: its values are compared as they are";
        return Err(Error::policy(why).at(column.path()));
    }
    if !column.role.is_released() {
        return Ok(());
    }
    if let Some(kind) = nested(data_type) {
        return Err(Error::policy(format!(
            "{kind} cannot have the role `{role}`, it can only be dropped: give it the role `text`, or leave it out"
        ))
        .at(column.path()));
    }
    let is_time = matches!(data_type, DataType::Time32(_) | DataType::Time64(_));
    if column.role == Role::Quasi || is_supported(data_type) || is_time {
        return Ok(());
    }
    Err(Error::policy(format!(
        "values of type {data_type} cannot have the role `{role}`; expected numbers, text, dates, times, \
         timestamps or booleans; cast the column, or give it the role `text` to drop it"
    ))
    .at(column.path()))
}

/// Names a type that holds other columns (the type's own text would show field metadata).
fn nested(data_type: &DataType) -> Option<&'static str> {
    match data_type {
        DataType::Dictionary(_, values) => nested(values),
        DataType::Struct(_) => Some("a struct"),
        DataType::Map(..) => Some("a map"),
        DataType::Union(..) => Some("a union"),
        DataType::RunEndEncoded(..) => Some("a run-end encoded column"),
        other if other.is_nested() => Some("a list"),
        _ => None,
    }
}
