//! Lives of releases, replayed on an input: people arrive and leave by chance, and each release follows those before it.

use datafusion::logical_expr::{Expr, lit};
use serde::Serialize;

use crate::engine::functions::row_hash;
use crate::engine::temporary::TemporaryFolder;
use crate::engine::{Context, Run, column};
use crate::error::{Error, ErrorKind, Result};
use crate::input::{Loaded, PolicySource, Source};
use crate::release::histories::NotShown;
use crate::release::publish::place::Place;
use crate::release::publish::{digest, disk};
use crate::release::{Followed, Released, release, release_after};
use crate::verify::histories::MOST_RELEASES;

const DOING: &str = "replaying a life of releases";

/// How people arrive and leave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Life {
    /// The share of new people in each release but the first, of those in the one before; from 0 to 1.
    pub arrive: f64,
    /// The share of those in a release who have left in the next one; from 0 to 1.
    pub leave: f64,
    /// The number of releases.
    pub versions: usize,
    /// Who arrives and leaves when: another seed gives another life.
    pub seed: u64,
}

/// A release of a life.
#[derive(Debug, Clone, Serialize)]
pub struct Version {
    /// The individuals of its input.
    pub individuals: u64,
    /// Those with a row that is shown.
    pub shown: u64,
    /// The people with a row that is not shown, by why; `null` for the first release.
    pub not_shown: Option<NotShown>,
    /// The mean loss of the quasi-identifiers, over all rows of the input: 0 for values as they are, 1 for a suppressed row.
    pub loss: f64,
    /// The same of a release by itself.
    pub loss_alone: f64,
}

/// Releases an input as often as a life says, in a temporary folder; returns the releases, and why the next one was refused, if it was.
///
/// # Errors
/// A policy error for a life that cannot be, or a policy without `[history]`; the errors of the first release, of reading and of
/// memory.
pub async fn replay(
    run: &Run,
    loaded: &Loaded,
    policy: &PolicySource<'_>,
    life: &Life,
) -> Result<(Vec<Version>, Option<String>)> {
    let history = loaded.policy.spec.history().ok_or_else(|| {
        Error::policy("the policy has no `[history]`, without which no release follows others").at("history")
    })?;
    let person = history.person.as_deref().or(loaded.policy.individual());
    let person =
        person.ok_or_else(|| Error::policy("the policy names no individual column").at("history.person"))?;
    life.check()?;
    let folder = TemporaryFolder::new().context(DOING)?;
    let place =
        |name: &str| Ok(Place::beside(&folder.path().join(name))?.with_key(Some(folder.path().join("key"))));
    // A key from the seed, so that the same life gives the same releases.
    let of_seed = digest::of_bytes(format!("kanon plan {}", life.seed).as_bytes());
    disk::write_private_new(&folder.path().join("key"), &format!("{of_seed}\n")).context(DOING)?;
    // All may wait.
    let mut followed =
        Followed { suppression_limit: Some(1.0), accept_new_people: true, ..Followed::default() };
    let mut versions = Vec::with_capacity(life.versions);
    for number in 0..life.versions {
        let rows = loaded.table.clone().filter(life.are_there(person, number)).context(DOING)?;
        let source = Source::table(format!("version {}", number + 1), rows.into_view());
        let at = place(&format!("release_{number}"))?;
        if number == 0 {
            let released = release(run, source, policy, &at, false)
                .await
                .map_err(|error| error.at("the first release"))?;
            versions.push(Version::of(&released, &released));
        } else {
            let alone = release(run, source.clone(), policy, &place("alone")?, true).await;
            let alone = alone.map_err(|error| error.at(format!("release {} by itself", number + 1)))?;
            match release_after(run, source, &followed, None, &at, false).await {
                Ok(released) => versions.push(Version::of(&released, &alone)),
                Err(error) if error.kind() == ErrorKind::Unmet => {
                    return Ok((versions, Some(error.to_string())));
                }
                Err(error) => return Err(error),
            }
        }
        followed.releases.push(at);
    }
    Ok((versions, None))
}

impl Life {
    fn check(&self) -> Result<()> {
        for (flag, share) in [("--arrive", self.arrive), ("--leave", self.leave)] {
            if !(0.0..=1.0).contains(&share) {
                return Err(Error::policy("expected a share from 0 to 1, or from 0% to 100%").at(flag));
            }
        }
        match (2..=MOST_RELEASES).contains(&self.versions) {
            true => Ok(()),
            false => Err(Error::policy(format!("expected 2 to {MOST_RELEASES}")).at("--versions")),
        }
    }

    /// Returns which rows the input of a release has. The people of the input are dealt to the releases that they arrive in so that the
    /// last one needs all who are left.
    fn are_there(&self, person: &str, number: usize) -> Expr {
        let growth = 1.0 + self.arrive - self.leave;
        let power = |base: f64, exponent: usize| (0..exponent).fold(1.0, |product, _| product * base);
        let arrived =
            |number: usize| 1.0 + (0..number).map(|at| self.arrive * power(growth, at)).sum::<f64>();
        let all = arrived(self.versions - 1);
        let chance = |purpose: u64| row_hash([self.seed, purpose], vec![column(person)]);
        let of_arrival = |arrival: usize| {
            let here = chance(0).lt_eq(lit(word(arrived(arrival) / all)));
            let here = match arrival {
                0 => here,
                _ => here.and(chance(0).gt(lit(word(arrived(arrival - 1) / all)))),
            };
            here.and(chance(1).lt_eq(lit(word(power(1.0 - self.leave, number - arrival)))))
        };
        let here = (0..=number).map(of_arrival).reduce(Expr::or).unwrap_or_else(|| lit(true));
        column(person).is_not_null().and(here)
    }
}

/// Returns the word below which this share of all words lies.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of floats saturates")]
fn word(share: f64) -> u64 {
    (share * 2f64.powi(64)) as u64
}

impl Version {
    fn of(released: &Released, alone: &Released) -> Self {
        let loss =
            |released: &Released| released.costs.iter().sum::<f64>() / released.costs.len().max(1) as f64;
        let individuals = released.private.input_individuals.unwrap_or(released.private.input_rows);
        let suppressed = released.private.suppressed_individuals.unwrap_or(released.private.suppressed_rows);
        Self {
            individuals,
            shown: released.public.individuals.unwrap_or(individuals - suppressed),
            not_shown: released.not_shown,
            loss: loss(released),
            loss_alone: loss(alone),
        }
    }
}
