//! Which releases a release follows, as the public records say.

use crate::error::{Error, Result};
use crate::plural::plural;
use crate::progress::CancelToken;
use crate::release::publish::local_release::{LocalRelease, Needed};
use crate::release::publish::place::Place;
use crate::release::publish::record::PublicRecord;
use crate::release::verify_folder::checked_record;

/// Checks that each release follows all the earlier ones, and returns their public records.
///
/// # Errors
/// A policy error for a release that follows one which is not before it, or does not follow one that is; an unmet error for a record
/// that is damaged; a data error when it cannot be read.
pub(crate) fn linked(places: &[Place], stop: &CancelToken) -> Result<Vec<PublicRecord>> {
    let mut before: Vec<(String, PublicRecord)> = Vec::with_capacity(places.len());
    for place in places {
        let local = LocalRelease::read(place, Needed::Record, stop)?;
        let shown = place.out().to_string();
        let public = checked_record(local.out()).map_err(|error| local.named(error).at(&shown))?;
        let follows = public.follows();
        let is_before = |digest: &&String| before.iter().any(|(_, earlier)| earlier.digest == **digest);
        let missing = follows.iter().filter(|digest| !is_before(digest)).count();
        if missing > 0 {
            let why = format!(
                "it follows {} that {} not before it, or not as {} when it was made; give all releases of these people, as they are, in the \
                 order in which they were published",
                plural(missing as u64, "release", "releases"),
                if missing == 1 { "is" } else { "are" },
                if missing == 1 { "it was" } else { "they were" },
            );
            return Err(Error::policy(why).at(shown));
        }
        if let Some((other, _)) = before.iter().find(|(_, earlier)| !follows.contains(&earlier.digest)) {
            let why = format!(
                "it does not follow {other}, which is given before it; `kanon compare` judges such releases"
            );
            return Err(Error::policy(why).at(shown));
        }
        before.push((shown, public));
    }
    Ok(before.into_iter().map(|(_, public)| public).collect())
}
