//! What `kanon verify --chain` answers: what was verified of releases that follow one another. Those that do not pass are an error.

use serde::Serialize;

use super::Answer;
use super::verify::verify;
use crate::engine::Run;
use crate::error::{Error, ErrorKind, Result};
use crate::input::Source;
use crate::plural::{grouped, individuals, plural, rows};
use crate::release::histories::{Compared, JudgedTogether, SamePeople, judge_together, linked};
use crate::release::publish::place::Place;
use crate::render::{Document, Weight};

/// What was verified of releases that follow one another.
#[derive(Debug, Serialize)]
pub struct ChainAnswer {
    /// Always true: otherwise the command ends with an error.
    pub holds: bool,
    /// The releases, in the order in which they were published.
    pub releases: Vec<ChainedRelease>,
    /// The people of whom any release shows a row; `null` where the histories were not counted again.
    pub people: Option<u64>,
    /// The fewest people of a history; `null` where they were not counted again.
    pub fewest_people: Option<u64>,
    /// Why the histories were not counted again; `null` if they were.
    pub not_counted: Option<String>,
}

/// A release that was verified by itself, and follows all those before it.
#[derive(Debug, Serialize)]
pub struct ChainedRelease {
    /// The release.
    pub release: String,
    /// The digest of its public record, by which later ones name it.
    pub digest: String,
    /// The number of releases that it follows.
    pub follows: u64,
    /// Whether its rows were compared with its input.
    pub with_input: bool,
    /// The number of released rows.
    pub rows: u64,
    /// The number of released classes.
    pub classes: u64,
    /// The models, in words.
    pub models: Vec<String>,
}

/// Verifies a chain of releases, in which each one follows all the earlier ones. Checks that the links are intact, then each release
/// by itself (against its input, if `inputs` are given), and judges the histories if the private records and their key are at hand.
///
/// # Errors
/// A policy error for releases that do not follow one another; an unmet error that says what is wrong; a data error when it cannot be
/// checked.
pub async fn verify_chain(run: &Run, places: &[Place], inputs: &[Source]) -> Result<ChainAnswer> {
    let records = linked(places, &run.stop)?;
    let mut releases = Vec::with_capacity(places.len());
    for (at, (place, public)) in places.iter().zip(&records).enumerate() {
        let shown = place.out().to_string();
        let verified = verify(run, place, inputs.get(at), None).await.map_err(|error| error.at(&shown))?;
        releases.push(ChainedRelease {
            release: shown,
            digest: public.digest.clone(),
            follows: at as u64,
            with_input: verified.with_input,
            rows: verified.rows,
            classes: verified.classes,
            models: verified.models.iter().map(|model| model.model.clone()).collect(),
        });
    }
    // An outsider has neither private records nor a key. Anybody who has them expects the histories to be counted.
    let is_asked = !inputs.is_empty() || places.iter().any(Place::has_secrets);
    let (judged, not_counted) = match judged(run, places).await {
        Ok(judged) => (Some(judged), None),
        Err(error) if error.kind() == ErrorKind::Policy && !is_asked => (None, Some(error.to_string())),
        Err(error) => return Err(error),
    };
    let over_all = judged.as_ref().and_then(JudgedTogether::over_all);
    Ok(ChainAnswer {
        holds: true,
        releases,
        people: over_all.map(|found| found.counts.people),
        fewest_people: over_all.and_then(|found| found.patterns.values().map(|pattern| pattern.fewest).min()),
        not_counted,
    })
}

/// Judges the releases by their private records.
async fn judged(run: &Run, places: &[Place]) -> Result<JudgedTogether> {
    let releases = places.iter().map(|place| Compared { place: place.clone(), input: None });
    // How many come back was asked when they were made.
    let same = SamePeople { accept_new_people: true, ..SamePeople::default() };
    let judged = judge_together(run, &releases.collect::<Vec<_>>(), &same).await?;
    let judged = judged
        .ok_or_else(|| Error::policy("a private record is missing, or its policy has no `[history]`"))?;
    match judged.cannot_tell.first() {
        Some(why) => Err(Error::unmet(why.clone())),
        None if !judged.are_safe() => Err(Error::unmet(format!(
            "the releases are not safe together: {} in a history of too few, or that tells too much; `kanon compare` says which",
            plural(judged.people_found, "person is", "people are")
        ))),
        None => Ok(judged),
    }
}

impl Answer for ChainAnswer {
    fn document(&self) -> Document {
        let mut document = Document::default();
        for release in &self.releases {
            let follows = match release.follows {
                0 => "the first".to_owned(),
                before => format!("follows the {} before it", plural(before, "release", "releases")),
            };
            document.fact(
                "verified",
                format!(
                    "{}: {} in {}, {}; {follows}",
                    release.release,
                    rows(release.rows),
                    plural(release.classes, "class", "classes"),
                    if release.with_input { "against its input" } else { "by its rows alone" },
                ),
            );
        }
        if let (Some(people), Some(fewest)) = (self.people, self.fewest_people) {
            let text = format!(
                "the rows of every history belong to enough people, at least {} of {}, and all models hold for them",
                grouped(fewest),
                individuals(people)
            );
            document.fact("safe", text);
        }
        if let Some(why) = &self.not_counted {
            document.warning(
                Weight::Doubtful,
                format!("the histories were not counted again, which needs the private records and their key: {why}"),
            );
        }
        document
    }
}
