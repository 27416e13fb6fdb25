//! What `kanon verify` answers: what was verified of a release. One that does not pass is an error.

use serde::Serialize;

use super::Answer;
use super::sentences::{add_exact_quasi, add_homogeneous, add_unique, model_text};
use crate::engine::Run;
use crate::error::Result;
use crate::input::{PolicySource, Source};
use crate::measure::RiskMeasure;
use crate::measure::sample_uniqueness::SampleUniqueness;
use crate::model::Quantity;
use crate::plural::{grouped, plural, rows};
use crate::progress::Phase;
use crate::release::kind::describe::Labels;
use crate::release::labels_for_all::labels_for_all;
use crate::release::publish::place::Place;
use crate::release::publish::record::ModelRecord;
use crate::release::publish::write::CREATED_BY;
use crate::release::{Checked, LocalRelease, Needed, check_release};
use crate::render::Document;
use crate::verify::as_is::UniqueTogether;
use crate::verify::homogeneous::Homogeneous;

/// What was verified of a release.
#[derive(Debug, Serialize)]
pub struct VerifyAnswer {
    /// Always true: otherwise the command ends with an error.
    pub holds: bool,
    /// The policy file that was found because it fits the public record; `null` if none was looked for.
    pub policy: Option<String>,
    /// Whether the rows were compared with the input.
    pub with_input: bool,
    /// Whether the files are what this version writes, to the byte.
    pub with_bytes: bool,
    /// The number of released rows.
    pub rows: u64,
    /// The number of released classes.
    pub classes: u64,
    /// The number of released individuals; `null` without the input, or where rows are counted.
    pub individuals: Option<u64>,
    /// The number of suppressed rows; `null` without the input.
    pub suppressed_rows: Option<u64>,
    /// The number of individuals with a suppressed row; `null` without the input, or where rows are counted.
    pub suppressed_individuals: Option<u64>,
    /// The number of released rows without an individual; `null` without the input, or where rows are counted.
    pub rows_without_individual: Option<u64>,
    /// The number of suppressed rows without an individual; `null` without the input, or where rows are counted.
    pub suppressed_rows_without_individual: Option<u64>,
    /// The individuals that are unique on the quasi-identifiers together with all columns released as they are; without the
    /// input, the rows.
    pub unique: UniqueTogether,
    /// For each sensitive column the classes that share one value of it; without the input, counted in rows.
    pub homogeneous: Vec<Homogeneous>,
    /// The models, as in the record.
    pub models: Vec<ModelRecord>,
    /// All that was checked.
    #[serde(skip)]
    #[doc(hidden)]
    pub checked: Checked,
    /// The share of individuals, or rows, that are unique on their quasi-identifiers.
    #[serde(skip)]
    #[doc(hidden)]
    pub unique_on_quasi: f64,
    /// The label that all values of a column have, by its name, where that is not `*`.
    #[serde(skip)]
    #[doc(hidden)]
    pub labels: Labels,
    /// What has to be known of the figures, in whole sentences.
    #[serde(skip)]
    #[doc(hidden)]
    pub notes: Vec<String>,
}

/// Verifies the release at `place`: its record, files and rows; with `input` also that the rows are those of the input under
/// the policy (`policy` if given, else the copy in the private record).
///
/// # Errors
/// An unmet error that says what is wrong, a data error when it cannot be checked.
pub async fn verify(
    run: &Run,
    place: &Place,
    input: Option<&Source>,
    policy: Option<&PolicySource<'_>>,
) -> Result<VerifyAnswer> {
    run.progress.begin(Phase::Verify, 0);
    let release = LocalRelease::read(place, Needed::All, &run.stop)?;
    let checked = check_release(run, &release, input, policy).await?;
    let Checked { public, verified, .. } = &checked;
    let individuals = verified.individuals.as_ref();
    Ok(VerifyAnswer {
        holds: true,
        policy: None,
        with_input: checked.with_input,
        with_bytes: checked.with_bytes,
        rows: public.rows(),
        classes: public.classes,
        individuals: individuals.and(public.individuals),
        suppressed_rows: verified.suppressed_rows,
        suppressed_individuals: individuals.map(|individuals| individuals.suppressed),
        rows_without_individual: individuals.map(|_| verified.unowned_rows),
        suppressed_rows_without_individual: individuals.map(|individuals| individuals.suppressed_unowned),
        unique: checked.unique.clone(),
        homogeneous: verified.homogeneous.clone(),
        models: public.models.clone(),
        unique_on_quasi: SampleUniqueness.value(&verified.sizes).unwrap_or_default(),
        labels: labels_for_all(release.out(), public),
        notes: unlisted(release.unlisted()).into_iter().collect(),
        checked,
    })
}

/// Says what lies beside a release in a store.
fn unlisted(objects: usize) -> Option<String> {
    let objects = (objects > 0).then(|| plural(objects as u64, "object", "objects"))?;
    Some(format!(
        "{objects} beside the release that its record does not list: a run that is active or was killed wrote them; whoever reads all \
         objects of the folder reads them too"
    ))
}

impl Answer for VerifyAnswer {
    fn document(&self) -> Document {
        let Checked { public, verified, sufficient, with_input, .. } = &self.checked;
        let shows = public.recoding.describe();
        let facts = shows.facts();
        let mut document = Document::default();
        document.fact(
            "read",
            format!(
                "{} in {}, {}{}",
                rows(public.rows()),
                plural(public.classes, facts.class_words[0], facts.class_words[1]),
                plural(public.files().count() as u64, "file", "files"),
                match verified.unowned_rows {
                    0 => String::new(),
                    unowned => format!("; {} without an individual", rows(unowned)),
                },
            ),
        );
        if let Some(policy) = &self.policy {
            let text = format!("{policy}, which fits the public record; there is no private record");
            document.fact("policy", text);
        }
        let are_individuals = public.individuals.is_some() && *with_input;
        match facts.has_exact_quasi {
            true => add_exact_quasi(&mut document, self.unique_on_quasi),
            false => {
                add_unique(&mut document, self.unique_on_quasi, &self.unique, sufficient, are_individuals);
            }
        }
        self.add_models(&mut document, facts.judged);
        add_homogeneous(&mut document, &self.homogeneous, are_individuals);
        let (key, least) = shows.least(&self.labels);
        document.fact(key, least);
        document.fact("verified", self.verified());
        self.notes.iter().for_each(|note| document.note(note));
        if !self.with_bytes {
            document.fact(
                "bytes",
                format!(
                    "differ from what {CREATED_BY} writes for these rows: {} wrote the files, and only that version can tell whether \
                     they hold anything else",
                    public.tool
                ),
            );
        }
        document
    }
}

impl VerifyAnswer {
    /// Adds a line for each model. Rows do not show their individuals, nor the distribution of the whole input, nor a
    /// population: what depends on these is only `recorded` without the input.
    fn add_models(&self, document: &mut Document, judged: &str) {
        let Checked { public, verified, with_input, .. } = &self.checked;
        for (model, reached) in public.models.iter().zip(&verified.reached) {
            let by_rows = (public.individuals.is_none() || public.recoding.has_row_per_individual())
                && model.compared_with.is_none()
                && model.level.is_none()
                && reached.is_some();
            let in_input = reached.filter(|_| *with_input).map(Quantity::to_f64);
            let key = if *with_input || by_rows { "holds" } else { "recorded" };
            document.fact(key, model_text(model, in_input) + judged);
        }
    }

    /// Returns what was verified, by the input or by the rows alone.
    fn verified(&self) -> String {
        let Checked { public, verified, .. } = &self.checked;
        let all = rows(public.rows());
        match (verified.suppressed_rows, public.recoding.describe().verified(&all)) {
            (Some(_), Some(what)) => format!("against the input: {what}"),
            (Some(suppressed), None) => format!(
                "against the input: all {all} come from it, {} suppressed{}",
                rows(suppressed),
                match self.suppressed_rows_without_individual.unwrap_or(0) {
                    0 => String::new(),
                    unowned => format!(", {} without an individual", grouped(unowned)),
                }
            ),
            (None, _) if public.individuals.is_some() && !public.recoding.has_row_per_individual() => {
                "the released rows, not the individuals: only the input says whose a row is. The lines `recorded` repeat the \
                 record, which the rows do not contradict; --input INPUT recounts them"
                    .to_owned()
            }
            (None, _) => {
                "the released rows by themselves; --input INPUT compares them with the input".to_owned()
            }
        }
    }
}
