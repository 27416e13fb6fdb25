//! The releases that a new one follows, as their records hold them.

use std::path::{Path, PathBuf};

use datafusion::prelude::SessionContext;

use crate::engine::Run;
use crate::error::{Error, Result};
use crate::input::Loaded;
use crate::plural::{individuals, plural};
use crate::policy::PolicySpec;
use crate::release::Followed;
use crate::release::histories::about::{About, check_type, differing};
use crate::release::histories::links::linked;
use crate::release::histories::opened::{Opened, recorded_rows};
use crate::release::histories::recorded::refused;
use crate::release::histories::{Compared, Continued, SamePeople, matching_of, unclear, views};
use crate::release::publish::place::Place;
use crate::release::publish::record::{HistoryRecord, PrivateRecord};
use crate::role::Role;
use crate::verify::histories::{self, MOST_RELEASES, Matching, PeopleFound, ShownRows};

/// The releases that a new one follows, in the order in which they were published.
pub(in crate::release) struct Chain {
    pub(super) opened: Vec<Opened>,
    pub(super) matching: Matching,
    pub(super) accepts_new_people: bool,
    suppression_limit: Option<f64>,
    /// The private record of the last one.
    last: PrivateRecord,
}

impl Chain {
    /// Opens releases by their records.
    ///
    /// # Errors
    /// A policy error if a private record, the key or a release between is missing, or the records do not match rows alike; an unmet
    /// error for a release that is not what its records say; a data error when something cannot be read.
    pub(in crate::release) async fn open(run: &Run, places: &[Place], followed: &Followed) -> Result<Self> {
        if places.len() >= MOST_RELEASES {
            let found = places.len();
            return Err(Error::policy(format!(
                "expected at most {} releases, found {found}",
                MOST_RELEASES - 1
            )));
        }
        let records = linked(places, &run.stop)?;
        let mut opened: Vec<Opened> = Vec::with_capacity(places.len());
        let mut last = None;
        for (place, public) in places.iter().zip(records) {
            let compared = Compared { place: place.clone(), input: None };
            let (release, private) = Opened::open(run, &compared).await?.ok_or_else(|| {
                let why = match public.history {
                    None => {
                        "its policy has no `[history]`, so that no release can follow it; release it again"
                    }
                    Some(_) => {
                        "its private record is missing, or of another release; name it with --after-private"
                    }
                };
                Error::policy(why).at(place.out().to_string())
            })?;
            opened.push(release);
            last = Some(private);
        }
        let last = last.ok_or_else(|| Error::policy("expected a release").at("--after"))?;
        let matching = matching_of(&opened, &SamePeople::default())?;
        let Followed { accept_new_people, suppression_limit, .. } = *followed;
        Ok(Self { opened, matching, accepts_new_people: accept_new_people, suppression_limit, last })
    }

    /// Returns the private record of the last release.
    pub(in crate::release) fn last(&self) -> &PrivateRecord {
        &self.last
    }

    /// Returns the policy of the next release, from that of the last one.
    ///
    /// # Errors
    /// A policy error for a limit that is no share.
    pub(in crate::release) fn policy(&self, spec: PolicySpec) -> Result<PolicySpec> {
        let Some(limit) = self.suppression_limit else { return Ok(spec) };
        let place = |error: Error| Error::policy(error.to_string()).at("--suppression-limit");
        spec.with_key(&format!("suppression_limit={limit}")).map_err(place)
    }

    /// Returns the file of the key of the pseudonyms.
    pub(in crate::release) fn key_file(&self) -> Option<PathBuf> {
        self.opened.first().and_then(Opened::key_file).map(Path::to_path_buf)
    }

    /// Returns the level of a quasi-identifier, where classes show levels.
    pub(super) fn level(&self, quasi: &str) -> Option<usize> {
        self.opened.first()?.recoding.level(quasi).map(|level| level.level)
    }

    /// Returns what the record of a release says that follows these.
    pub(super) fn continued(&self, new_classes: Vec<Vec<Option<String>>>) -> Result<Continued> {
        let (history, _) = self.opened.first().and_then(Opened::history).ok_or_else(refused)?;
        let after = self.opened.iter().map(|release| release.digest.clone()).collect();
        Ok(Continued { same: history.same_people(), after, new_classes })
    }

    /// Returns the number of people that a part of a history has to have.
    pub(super) fn least(&self, loaded: &Loaded) -> u64 {
        let earlier = self.opened.iter().flat_map(Opened::requirements);
        let all = earlier.chain(&loaded.policy.requirements);
        all.map(|requirement| requirement.model.min_size()).max().unwrap_or_default().max(2)
    }

    /// Checks that a policy makes a release of the same columns, as all attackers know all quasi-identifiers.
    ///
    /// # Errors
    /// A policy error.
    pub(super) fn check(&self, next: &About, loaded: &Loaded) -> Result<()> {
        let Some(first) = self.opened.first() else { return Ok(()) };
        let (matching, both) = (&self.matching, [&first.about, next]);
        for column in matching.row.iter().chain([&matching.person]) {
            next.type_of(column)?;
        }
        let columns = matching.row.iter().chain(&matching.dates).chain(matching.compared.iter().flatten());
        columns.chain([&matching.person]).try_for_each(|column| check_type(&both, column))?;
        if let Some((column, roles)) = differing(both).into_iter().next() {
            let word = |role: Option<Role>| role.map_or("not released", |role| role.word());
            let roles: Vec<&str> = roles.into_iter().map(word).collect();
            let why = format!(
                "`{column}` is {} in {} and {} now: all releases of a chain show the same columns",
                roles[0], first.about.shown, roles[1]
            );
            return Err(Error::policy(why).at("--after"));
        }
        let earlier = self.opened.iter().flat_map(Opened::requirements);
        if views(earlier.chain(&loaded.policy.requirements)) != [None] {
            let why = "a model is over some of the quasi-identifiers; only releases whose models are over all of them can be followed";
            return Err(Error::policy(why).at("--after"));
        }
        Ok(())
    }

    /// Returns the rows of the releases.
    ///
    /// # Errors
    /// An unmet error if a private record is damaged, a data error when memory runs out.
    pub(super) async fn shown(&self, session: &SessionContext, run: &Run) -> Result<Vec<ShownRows<'_>>> {
        let mut shown = Vec::with_capacity(self.opened.len() + 1);
        for release in &self.opened {
            shown.push(release.shown_rows(session, None, Vec::new(), &self.matching, &[None], run).await?);
        }
        Ok(shown)
    }

    /// Checks that the releases, whose rows are `shown`, are safe together.
    ///
    /// # Errors
    /// An unmet error if they are not, a data error when memory runs out.
    pub(super) async fn check_safe(
        &self,
        session: &SessionContext,
        shown: &[ShownRows<'_>],
        run: &Run,
    ) -> Result<()> {
        let all: Vec<&ShownRows<'_>> = shown.iter().collect();
        match self.unsafe_people(session, &all, run).await? {
            Some(people) => Err(Error::unmet(format!(
                "the earlier releases are not safe together: {} in a history of too few; `kanon compare` says which",
                plural(people.count(), "person is", "people are")
            ))),
            None => Ok(()),
        }
    }

    /// Judges releases together; returns the people of histories that are not safe, if there are any.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) async fn unsafe_people(
        &self,
        session: &SessionContext,
        shown: &[&ShownRows<'_>],
        run: &Run,
    ) -> Result<Option<PeopleFound>> {
        let mut people = PeopleFound::default();
        let verdict = histories::judge(session, shown, &self.matching, 0, &mut people, &run.stop).await?;
        Ok((!verdict.are_safe()).then_some(people))
    }

    /// Checks that the people of an input, whose rows are the last of `shown`, are named as in the releases.
    ///
    /// # Errors
    /// An unmet error that says what is unclear.
    pub(super) async fn check_people(&self, next: &About, shown: &[&ShownRows<'_>], run: &Run) -> Result<()> {
        let abouts: Vec<&About> = self.opened.iter().map(|release| &release.about).chain([next]).collect();
        match unclear::people(&abouts, shown, &self.matching, run).await?.into_iter().next() {
            Some(why) => Err(Error::unmet(why)),
            None => Ok(()),
        }
    }

    /// Judges a release, as its record holds its rows, with these.
    ///
    /// # Errors
    /// An unmet error if they are not safe together, a data error when memory runs out.
    pub(in crate::release) async fn check_record(
        &self,
        run: &Run,
        loaded: &Loaded,
        record: &HistoryRecord,
    ) -> Result<()> {
        let shown = self.shown(&loaded.session, run).await?;
        let rows = recorded_rows(record, &loaded.policy.requirements, &self.matching)?;
        let rows = ShownRows::recorded(&loaded.session, rows, &[None], &run.stop).await?;
        let all: Vec<&ShownRows<'_>> = shown.iter().chain([&rows]).collect();
        match self.unsafe_people(&loaded.session, &all, run).await? {
            Some(people) => Err(Error::unmet(format!(
                "the release is not safe together with those before it: {} would stand out; nothing was published",
                individuals(people.count())
            ))),
            None => Ok(()),
        }
    }
}
