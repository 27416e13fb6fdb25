//! What a record says of centroids, checked by itself.

use crate::error::Result;
use crate::generalize::Centroid;
use crate::release::check_record::refused;
use crate::release::kind::wrong_recoding;
use crate::release::publish::record::{CentroidColumn, PublicRecord, RecodingRecord};

/// Checks that columns with centroids have their type, and those of numbers the same centroid.
///
/// # Errors
/// An unmet error when columns of numbers show different centroids, a noisy mean has no noise or another centroid has some, or a
/// type is not that of its centroid.
pub(in crate::release::kind) fn check_columns(public: &PublicRecord) -> Result<()> {
    let RecodingRecord::Centroids(centroids) = &public.recoding else { return Err(wrong_recoding()) };
    let mut of_numbers = CentroidColumn::of_numbers(centroids);
    let first = of_numbers.next();
    if of_numbers.any(|other| Some(other) != first) {
        return Err(refused("the record contradicts itself on what columns of numbers show"));
    }
    if centroids.is_empty() {
        return Err(refused("the record names no quasi-identifier"));
    }
    if centroids.iter().any(|one| (one.centroid == Centroid::NoisyMean) != one.noise.is_some()) {
        return Err(refused("the record contradicts itself on the noise"));
    }
    for (column, centroid) in public.quasi().zip(centroids) {
        let written = centroid.written_columns()?.columns();
        if !written.iter().any(|(_, data_type)| column.data_type == data_type.to_string()) {
            return Err(refused(format!("the record contradicts itself on what `{}` shows", column.name)));
        }
    }
    Ok(())
}
