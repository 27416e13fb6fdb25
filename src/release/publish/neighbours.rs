//! Other releases beside OUT: those with the same quasi-identifiers can be compared with the new one, and a
//! folder that holds several is one that is published.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::policy::PolicySpec;
use crate::progress::CancelToken;
use crate::release::publish::folder_place::{FolderPlace, RecordHead};
use crate::release::publish::out_folder::{is_folder, is_release};
use crate::release::publish::place::Place;
use crate::release::publish::record::{PublicRecord, RECORD, is_private};
use crate::role::Role;
use crate::store::folder::{StoredFolder, Until};
use crate::store::{Address, RemoteAddress, is_partition, shown as without_values};

/// The number of folders that are searched, at most.
const MOST_FOLDERS: usize = 10_000;

/// The number of folders of a store in which a release is looked for, and the time for it, at most.
const MOST_STORED: usize = 100;
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns what a publisher should know about other releases near `place`, as the rest of the sentence
/// "the release is published, but ..."; `public` is the new one.
pub(crate) fn warnings(place: &Place, public: &PublicRecord, stop: &CancelToken) -> Vec<String> {
    match (place.in_folder(), place.out()) {
        (Some(place), _) => warnings_in_folder(&place, public),
        (None, Address::Remote(out)) => warnings_in_store(out, public, stop),
        (None, Address::Local(_)) => Vec::new(),
    }
}

fn warnings_in_folder(place: &FolderPlace, public: &PublicRecord) -> Vec<String> {
    let Ok(place) = place.absolute() else { return Vec::new() };
    let root = place.out().ancestors().skip(1).find(|folder| !is_partition(folder));
    let mut releases = Vec::new();
    if let Some(root) = root {
        let depth = place.out().components().count() - root.components().count();
        find_releases(root, depth, &mut MOST_FOLDERS.clone(), &mut releases);
    }
    releases.retain(|release| release != place.out());
    let mut warnings = Vec::new();
    if let (Some(other), false, Some(folder)) = (releases.first(), place.is_apart(), place.private().parent())
    {
        warnings.push(format!(
            "its private record lies in {}, among releases such as {}: whoever publishes the whole folder publishes raw facts; keep \
             private records elsewhere with --private or `[output] private`",
            shown(folder),
            shown(other)
        ));
    }
    let quasi = quasi_of(public);
    if let Some(other) = with_the_same_columns(&place, &releases, &quasi, judged_with(public)) {
        warnings.push(of_the_same_columns(&shown(&other)));
    }
    warnings
}

fn warnings_in_store(out: &RemoteAddress, public: &PublicRecord, stop: &CancelToken) -> Vec<String> {
    let began = Instant::now();
    // The search ends when time runs out, and skips folders that cannot be read: the release is fine without it.
    let until = || {
        let left = PATIENCE.checked_sub(began.elapsed()).filter(|_| stop.check().is_ok())?;
        Some(Until::Passed(left))
    };
    let (out, quasi, mut asked) = (out.trimmed(), quasi_of(public), 0);
    let (root, depth) = out.root_and_depth();
    let mut folders = vec![root];
    for _ in 0..depth {
        let mut below = Vec::new();
        for folder in folders {
            let Some(until) = until() else { return Vec::new() };
            let names = StoredFolder::open(&folder).and_then(|it| it.folders(until)).unwrap_or_default();
            below.extend(names.iter().map(|name| folder.join(name)));
        }
        folders = Vec::new();
        for folder in below.into_iter().filter(|folder| *folder != out) {
            asked += 1;
            let Some(until) = until().filter(|_| asked <= MOST_STORED) else { return Vec::new() };
            let Ok(record) = StoredFolder::open(&folder).and_then(|it| it.text(RECORD, until)) else {
                continue;
            };
            let Some(record) = record else {
                folders.push(folder);
                continue;
            };
            let other = PublicRecord::parse(&record.text, &RECORD);
            let is_known = |other: &PublicRecord| judged_with(public).contains(&other.digest);
            if other.is_ok_and(|other| !is_known(&other) && can_be_intersected(&quasi_of(&other), &quasi)) {
                return vec![of_the_same_columns(&without_values(&folder.to_string()))];
            }
        }
    }
    Vec::new()
}

fn quasi_of(public: &PublicRecord) -> BTreeSet<String> {
    public.recoding.columns().into_iter().map(str::to_owned).collect()
}

/// Returns the digests of a release and of those that it follows, with which it was judged.
fn judged_with(public: &PublicRecord) -> BTreeSet<String> {
    public.follows().iter().chain([&public.digest]).cloned().collect()
}

fn can_be_intersected(other: &BTreeSet<String>, quasi: &BTreeSet<String>) -> bool {
    !other.is_empty() && (other.is_subset(quasi) || quasi.is_subset(other))
}

fn of_the_same_columns(other: &str) -> String {
    format!(
        "{other} is of the same columns: if people are in both releases, an attacker intersects their classes, and what is \
         promised holds for neither; `kanon compare` judges them together (\"A second extract\" in docs/choosing.md)"
    )
}

/// Returns a release, or a private record without one, of the quasi-identifiers `quasi` or of some of them
/// and no others.
fn with_the_same_columns(
    place: &FolderPlace,
    releases: &[PathBuf],
    quasi: &BTreeSet<String>,
    mut known: BTreeSet<String>,
) -> Option<PathBuf> {
    for release in releases {
        if let Ok(record) = PublicRecord::read(release) {
            if !known.contains(&record.digest) && can_be_intersected(&quasi_of(&record), quasi) {
                return Some(release.clone());
            }
            known.insert(record.digest);
        }
    }
    let folders: BTreeSet<&Path> =
        [place.out(), place.private()].into_iter().filter_map(Path::parent).collect();
    let records = folders.into_iter().flat_map(entries).filter(|path| is_private(path));
    records.into_iter().find(|path| {
        RecordHead::read(path).is_some_and(|record| {
            let spec = PolicySpec::parse(&record.policy).ok();
            let columns =
                spec.iter().flat_map(PolicySpec::columns).filter(|column| column.role() == Role::Quasi);
            let columns = columns.map(|column| column.name().to_owned()).collect();
            !known.contains(&record.release) && can_be_intersected(&columns, quasi)
        })
    })
}

/// Returns a path as the user would type it in the current folder.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let near = here.and_then(|here| path.strip_prefix(here).ok());
    match near {
        Some(near) if near.as_os_str().is_empty() => "the current folder".to_owned(),
        near => near.unwrap_or(path).display().to_string(),
    }
}

/// Adds the releases below a folder, at most `depth` folders down.
fn find_releases(folder: &Path, depth: usize, left: &mut usize, releases: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        if *left == 0 || !is_folder(&path) {
            continue;
        }
        *left -= 1;
        if is_release(&path) {
            releases.push(path);
        } else if depth > 1 {
            find_releases(&path, depth - 1, left, releases);
        }
    }
}

/// Returns the entries of a folder that are not hidden, in the order of their names.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_hidden =
        |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let mut entries: Vec<PathBuf> = entries.filter(|path| !is_hidden(path)).collect();
    entries.sort();
    entries
}
