//! A release in a store that a run would only make again.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::engine::Run;
use crate::error::{Error, Result};
use crate::input::{PolicySource, Source};
use crate::release::publish::leftovers::end_killed_runs;
use crate::release::publish::local_release::{LocalRelease, Needed};
use crate::release::publish::place::Place;
use crate::release::publish::record::{PrivateRecord, PublicRecord, RECORD};
use crate::release::publish::released_files::is_name_of_release;
use crate::release::publish::store_place::objects;
use crate::release::publish::{digest, write};
use crate::store::folder::{StoredFolder, Until, with_each};
use crate::store::{Address, Object, RemoteAddress, fetch};

/// Returns the public record of the release that is at a place in a store, if it was made of the same input and policy, by this
/// version, as its private record says, and if all its objects are there. A place on this machine is not looked at.
///
/// # Errors
/// A data error if the store fails or the input cannot be read.
pub fn unchanged(
    run: &Run,
    input: &Source,
    policy: &PolicySource<'_>,
    place: &Place,
) -> Result<Option<PublicRecord>> {
    let Address::Remote(out) = place.out() else { return Ok(None) };
    // What is wrong there is said by the run.
    let Ok(release) = LocalRelease::read(place, Needed::Record, &run.stop) else { return Ok(None) };
    let public = PublicRecord::read(release.out())?;
    let Some(private) = release.private_record(&public)? else { return Ok(None) };
    let day = public.statement.as_ref().and_then(|statement| statement.released_on.as_deref());
    let is_same = public.tool == write::CREATED_BY
        && private.recoding_of.is_none()
        && private.policy == policy.spec.text()
        && day == policy.spec.output.released_on()
        // No record holds a population.
        && policy.spec.population().is_none()
        && private.hierarchies == hierarchies(policy)?
        && is_of(input, &private, run)?
        && has_all(out, &public, run)?;
    if !is_same {
        return Ok(None);
    }
    if let Some(private) = place.absolute()?.private() {
        end_killed_runs(out, private, &public)?;
    }
    Ok(Some(public))
}

fn hierarchies(policy: &PolicySource<'_>) -> Result<BTreeMap<String, String>> {
    let names = policy.spec.hierarchy_files().into_iter();
    names.map(|name| Ok((name.to_owned(), policy.files.read(name)?))).collect()
}

/// Returns whether a private record is of this input. That of a table cannot be recognized.
fn is_of(input: &Source, private: &PrivateRecord, run: &Run) -> Result<bool> {
    let paths = input.objects().iter().map(Object::recorded).collect::<Result<Vec<_>>>()?;
    Ok(paths.iter().eq(private.files.iter().map(|file| &file.path)) && has_bytes_of(input, private, run)?)
}

/// Returns whether the files of an input have the bytes of those that a release was made of, wherever they are. A table
/// has none.
///
/// # Errors
/// A data error if a file cannot be read, an interruption.
pub(in crate::release) fn has_bytes_of(input: &Source, private: &PrivateRecord, run: &Run) -> Result<bool> {
    let objects = input.objects();
    let Some(key) = digest::of_hex(&private.digest_key) else { return Ok(false) };
    let lengths = objects.iter().map(Object::bytes);
    if objects.is_empty() || !lengths.eq(private.files.iter().map(|file| file.bytes)) {
        return Ok(false);
    }
    fetch(objects, &run.stop)?;
    for (object, file) in objects.iter().zip(&private.files) {
        run.stop.check()?;
        if digest::keyed(object.path(), &key).map_err(|error: Error| error.at(object.place()))?
            != file.hmac_sha256
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether a folder holds the objects of a release as they were written, and nothing that belongs to none.
fn has_all(out: &RemoteAddress, public: &PublicRecord, run: &Run) -> Result<bool> {
    let (folder, until) = (StoredFolder::open(out)?, Until::Stopped(&run.stop));
    let listed = folder.list(until)?;
    if listed.iter().any(|object| object.name != RECORD && !is_name_of_release(&object.name)) {
        return Ok(false);
    }
    let there: BTreeMap<&str, u64> =
        listed.iter().map(|object| (object.name.as_str(), object.bytes)).collect();
    let all: Vec<_> = objects(public).collect();
    if all.iter().any(|(name, file)| there.get(name.as_str()) != Some(&file.bytes)) {
        return Ok(false);
    }
    let differs = AtomicBool::new(false);
    with_each(
        &all,
        |(_, file)| file.bytes,
        |(name, file)| {
            // One is enough.
            if !differs.load(Relaxed) && !folder.holds(name, file.bytes, &file.sha256, until)? {
                differs.store(true, Relaxed);
            }
            Ok(())
        },
    )?;
    Ok(!differs.into_inner())
}
