//! What a record says of noise, checked by itself.

use arrow::datatypes::DataType;

use crate::decimal::Decimal;
use crate::error::{Error, Result};
use crate::generalize::Hierarchy;
use crate::generalize::clip::Clip;
use crate::method::microaggregation::dp_centroids;
use crate::model::{Requirement, min_size};
use crate::noise::{EPSILON_SCALE, MAX_COLUMNS, MAX_EPSILON, Mechanism, NoisyColumn, Order};
use crate::release::check_record::refused;
use crate::release::kind::wrong_recoding;
use crate::release::publish::record::{NoiseRecord, PublicRecord, RecodingRecord};

/// Checks what the record says of noise: for the columns' bounds, the number of rows and the models there is
/// one scale. Returns the mechanism, but for the order of rows.
///
/// # Errors
/// An unmet error when the models, bounds, shares of epsilon or scales are not those of one mechanism, or the individuals are not as
/// many as the rows.
pub(super) fn mechanism_of(public: &PublicRecord, models: &[Requirement]) -> Result<Mechanism> {
    let RecodingRecord::Centroids(columns) = &public.recoding else { return Err(wrong_recoding()) };
    let given: Vec<_> = columns.iter().filter_map(|column| Some((column, column.noise.as_ref()?))).collect();
    let wrong = || refused("the record contradicts itself on the noise");
    dp_centroids::check_models(models).map_err(refused)?;
    let noisy = given.iter().map(|(column, noise)| {
        let [low, high] =
            column.clip.clone().unwrap_or_default().map(|end| end.as_deref().map(Decimal::parse));
        let clip = Clip::new(low.transpose()?, high.transpose()?)?;
        let hierarchy = Hierarchy::new(&column.type_of_values()?, Vec::new())?.clipped(&clip)?;
        let epsilon = Decimal::parse(&noise.epsilon)?;
        if epsilon.scale() > EPSILON_SCALE || column.value_type != DataType::Float64.to_string() {
            return Err(wrong());
        }
        let clip = hierarchy.levels().first().and_then(|level| level.descriptor().clip);
        if column.clip != clip {
            return Err(wrong());
        }
        NoisyColumn::new(&column.column, &hierarchy, epsilon).map_err(Error::unmet)
    });
    let noisy = noisy.collect::<Result<Vec<_>>>().map_err(|_| wrong())?;
    // The record does not say which order; only the input tells.
    let is_of = |order: Order| -> Result<bool> {
        let mechanism = Mechanism::from_columns(order, min_size(models), noisy.clone());
        Ok(given.iter().map(|(_, noise)| *noise).eq(&NoiseRecord::all(&mechanism, public.rows())?))
    };
    let are_right = noisy.iter().all(|noisy| noisy.epsilon().is_positive())
        && noisy.len() <= MAX_COLUMNS
        && epsilon_of(&noisy) <= MAX_EPSILON.units(EPSILON_SCALE)
        && (is_of(Order::Hilbert)? || is_of(Order::Distance)?);
    if public.individuals.is_some_and(|individuals| individuals != public.rows()) {
        return Err(refused(
            "the record contradicts itself on the number of individuals, who have one row each",
        ));
    }
    let is_of_all = given.len() == columns.len() && public.columns().count() == columns.len();
    match is_of_all && are_right {
        true => Ok(Mechanism::from_columns(Order::Hilbert, min_size(models), noisy)),
        false => Err(wrong()),
    }
}

/// Returns the sum of the shares of epsilon, in its last digit.
fn epsilon_of(noisy: &[NoisyColumn]) -> i128 {
    noisy.iter().map(|noisy| noisy.epsilon().units(EPSILON_SCALE)).sum()
}
