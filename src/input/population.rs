//! The population of a policy: a table with a row per individual, read and generalized like the input.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::logical_expr::JoinType;
use datafusion::prelude::{DataFrame, SessionContext};

use super::Input;
use super::infer_types::Typing;
use crate::engine::{Context, Run, column};
use crate::error::{Error, ErrorCode, Result};
use crate::generalize::value::type_name;
use crate::model::Requirement;
use crate::plural::plural;
use crate::policy::{Files, Policy, PolicySpec};

/// An opened population.
pub struct PopulationTable {
    /// The population as canonical columns.
    pub table: DataFrame,
    /// The policy by which it is grouped: the quasi-identifiers of the input, and the individuals
    /// if both name them.
    pub policy: Arc<Policy>,
    input: Input,
}

impl PopulationTable {
    /// Opens the population of a policy, if it has one, beside an input with this schema.
    ///
    /// # Errors
    /// A policy error when the file is missing or lacks a quasi-identifier, a data error when it
    /// cannot be read or a column has another type than the input's.
    pub(crate) async fn open(
        run: &Run,
        session: &SessionContext,
        spec: &PolicySpec,
        files: &dyn Files,
        (policy, schema): (&Policy, &Schema),
        typing: Typing,
    ) -> Result<Option<Self>> {
        let Some(name) = spec.population() else { return Ok(None) };
        run.stop.check()?;
        let place = |error: Error| error.at(format!("population {name}"));
        let path = files.population(name)?;
        let input = Input::find_or_read(&path, &run.stop).map_err(place)?;
        let table = input.table_typed(session, spec.csv(), &|name| spec.csv_type(name), typing).await;
        let table = table.map_err(place)?;
        let has = |name: &str| table.schema().as_arrow().field_with_name(name).is_ok();
        let spec = spec.of_population(policy.individual().is_some_and(has));
        let resolved = spec.resolve(table.schema().as_arrow(), files).map_err(place)?;
        let quasi = resolved.quasi.iter().map(|quasi| quasi.name.as_str());
        for name in quasi.chain(resolved.individual()) {
            let of = |schema: &Schema| schema.field_with_name(name).map(|f| f.data_type().clone());
            let of = |schema: &Schema| of(schema).map_err(Error::internal);
            let (here, there): (DataType, DataType) = (of(table.schema().as_arrow())?, of(schema)?);
            if type_name(&here) != type_name(&there) {
                let why = format!(
                    "`{}` is {} in the population and {} in the input; cast it to the same type",
                    name,
                    type_name(&here),
                    type_name(&there)
                );
                return Err(place(Error::data(why).coded(ErrorCode::OtherColumns)));
            }
        }
        Ok(Some(Self { table, policy: Arc::new(resolved), input }))
    }

    /// Returns the table and its individual column, if it has one.
    pub(crate) fn for_verification(&self) -> (DataFrame, Option<String>) {
        (self.table.clone(), self.policy.individual().map(str::to_owned))
    }

    /// Checks that the file is as it was when it was opened.
    ///
    /// # Errors
    /// A data error that names the file.
    pub fn still_the_same(&self, run: &Run) -> Result<()> {
        self.input.still_the_same(run)
    }

    /// Checks that every individual of the input is one of the population, where a model requires
    /// it and both name their individuals.
    ///
    /// # Errors
    /// An unmet error that counts the others.
    pub(crate) async fn check_members(&self, requirements: &[Requirement], input: &DataFrame) -> Result<()> {
        let doing = "looking for the individuals in the population";
        let Some(name) = self.policy.individual() else { return Ok(()) };
        let Some(requirement) = requirements.iter().find(|r| r.model.is_of_population()) else {
            return Ok(());
        };
        let known = self.table.clone().select(vec![column(name).alias("kanon_known")]).context(doing)?;
        let asked = input.clone().select(vec![column(name).alias("kanon_asked")]).context(doing)?;
        let asked = asked.filter(column("kanon_asked").is_not_null()).context(doing)?;
        let asked = asked.distinct().context(doing)?;
        let others = asked.join(known, JoinType::LeftAnti, &["kanon_asked"], &["kanon_known"], None);
        let others = others.context(doing)?.count().await.context(doing)? as u64;
        if others == 0 {
            return Ok(());
        }
        Err(Error::unmet(format!(
            "{} cannot be met: {} not in the population",
            requirement.text(),
            plural(others, "individual of the input is", "individuals of the input are")
        )))
    }
}
