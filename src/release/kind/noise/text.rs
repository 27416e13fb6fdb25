//! How commands describe means with noise.

use crate::release::kind::centroids::CentroidsText;
use crate::release::kind::describe::{Describe, FACTS_OF_CLASSES, Facts, Labels, PAGE_OF_CENTROIDS};
use crate::release::publish::record::CentroidColumn;

const FACTS: Facts = Facts { page: PAGE_OF_CENTROIDS, ..FACTS_OF_CLASSES };

/// Describes the means of clusters: as centroids, whose columns tell their noise.
pub(in crate::release) struct NoiseText<'a>(pub(in crate::release) &'a [CentroidColumn]);

impl Describe for NoiseText<'_> {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn shown(&self, labels: &Labels, as_text: &[&str]) -> String {
        CentroidsText(self.0).shown(labels, as_text)
    }

    fn least(&self, labels: &Labels) -> (&'static str, String) {
        CentroidsText(self.0).least(labels)
    }

    fn column(&self, name: &str, labels: &Labels) -> String {
        CentroidsText(self.0).column(name, labels)
    }

    fn cost(&self, column: &str, share: &str) -> String {
        CentroidsText(self.0).cost(column, share)
    }

    fn verified(&self, rows: &str) -> Option<String> {
        Some(format!("the means of all {rows}, with the noise of the key in the private record"))
    }
}
