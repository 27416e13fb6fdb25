//! How commands describe centroids.

use crate::generalize::Centroid;
use crate::plural::grouped;
use crate::release::kind::describe::{Describe, FACTS_OF_CLASSES, Facts, Labels, PAGE_OF_CENTROIDS};
use crate::release::publish::record::{CentroidColumn, NoiseRecord};

const FACTS: Facts = Facts { page: PAGE_OF_CENTROIDS, ..FACTS_OF_CLASSES };

impl Describe for Vec<CentroidColumn> {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn shown(&self, labels: &Labels, _: &[&str]) -> String {
        format!("each class shows centroids: {}", self.least(labels).1)
    }

    /// Lists what stands for the values of each column: `mean of age, mode of zip`.
    fn least(&self, _: &Labels) -> (&'static str, String) {
        let text = |shown: &CentroidColumn| {
            let by = shown.descriptor();
            let clip = by.parts().into_iter().skip(1).map(|(name, ends)| format!(" {name}:{ends}"));
            let clip = clip.collect::<String>();
            match &shown.noise {
                None => format!("{} of {}{clip}", shown.centroid.name(), shown.column),
                Some(noise) => format!("mean of {}{clip}, {}", shown.column, noise_text(noise)),
            }
        };
        ("centroids", self.iter().map(text).collect::<Vec<_>>().join(", "))
    }

    fn column(&self, name: &str, _: &Labels) -> String {
        let shown = self.iter().find(|shown| shown.column == name);
        shown.map_or("unknown".to_owned(), on_page)
    }

    fn cost(&self, column: &str, share: &str) -> String {
        format!("the rows of a class span on average {share} of the domain of {column}")
    }

    fn verified(&self, rows: &str) -> Option<String> {
        CentroidColumn::are_noisy(self)
            .then(|| format!("the means of all {rows}, with the noise of the key in the private record"))
    }
}

/// Describes a column's centroids on the page of `kanon explain`.
fn on_page(shown: &CentroidColumn) -> String {
    let is_moment = ["Date", "Timestamp"].iter().any(|word| shown.value_type.starts_with(word));
    let shows = match shown.centroid {
        Centroid::Mean if is_moment => "in each group the mean of its values, rounded down",
        Centroid::Mean => "in each group the mean of its values, which need not be any of them",
        Centroid::NoisyMean => "in each group the mean of its values with noise",
        Centroid::Median => "in each group its lower median, the value of one of its rows",
        Centroid::Mode => "in each group its most frequent value",
    };
    let clip = shown.clip.as_ref().map(|ends| match ends {
        [Some(low), Some(high)] => {
            format!("; values below {low} count as {low}, those above {high} as {high}")
        }
        [Some(low), None] => format!("; values below {low} count as {low}"),
        [None, Some(high)] => format!("; values above {high} count as {high}"),
        [None, None] => String::new(),
    });
    let noise = shown.noise.as_ref().map(|noise| format!(", {}", noise_text(noise)));
    shows.to_owned() + &noise.unwrap_or_default() + &clip.unwrap_or_default()
}

/// Describes the noise of a mean: `off by 10.4 on average (epsilon 0.5)`.
fn noise_text(NoiseRecord { epsilon, scale }: &NoiseRecord) -> String {
    let scale = scale.parse().map_or_else(|_| scale.clone(), significant);
    format!("off by {scale} on average (epsilon {epsilon})")
}

/// Writes a number above 0 with at least three digits, in full.
fn significant(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}").parse().map_or_else(|_| format!("{value:.0}"), grouped),
        _ => {
            let digits = (0..).find(|digits: &usize| {
                value * 10f64.powi(i32::try_from(*digits).unwrap_or(0)) >= 99.95 || *digits > 20
            });
            let text = format!("{value:.*}", digits.unwrap_or(0));
            if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            } else {
                text
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_at_least() {
        let numbers = [123_456.7, 999.6, 100.0, 99.96, 10.44, 1.8, 0.5, 0.05, 0.001_234, 3e-9];
        let shown =
            ["123,457", "1,000", "100", "100", "10.4", "1.8", "0.5", "0.05", "0.00123", "0.000000003"];
        assert_eq!(numbers.map(significant), shown);
    }
}
