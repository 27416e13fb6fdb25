//! `kanon verify`: checks that a folder is the release that its record describes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;

use super::Done;
use super::inputs::{Inputs, one_each};
use super::source::{PolicyFile, PrivatePlace, Set, release_note};
use datafusion_kanon::internals::answer::verify::verify;
use datafusion_kanon::internals::answer::verify_chain::verify_chain;
use datafusion_kanon::internals::release::publish::staging::unfinished;
use datafusion_kanon::internals::release::publish::statement::may_be_policy_of;
use datafusion_kanon::internals::store::{Address, local_path};
use datafusion_kanon::records::PublicRecord;
use datafusion_kanon::{Error, Input, Place, PolicySource, Result, Run, Source};

/// Verify a release: its record, files and rows; with --input, compare it with the input.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon verify patients_safe
  kanon verify patients_safe --input patients.parquet
  kanon verify patients_safe --input patients.parquet --policy patients.toml
  kanon verify --chain extract extract_q2 extract_q3

Without --input, only the released rows are checked. With it, every row must come from the input, recoded as
the policy says and in a class that satisfies the models. The policy is read from the private record, beside the
release or where --private says, unless --policy names it; without either, the one policy file beside the release or in the current folder that
fits the public record is taken.

Every file must be what kanon writes for its rows, to the byte. Where an earlier version wrote other
bytes, the command says so (`with_bytes` in JSON).

With --chain, each release has to follow all those before it (`kanon release --after`), as they are. Where their private records and
the key of the pseudonyms are, all histories are counted again.")]
pub(crate) struct Verify {
    /// The folder of the release, or its address in a store; with --chain several, in the order in which they were published.
    #[arg(required = true)]
    out: Vec<PathBuf>,
    /// Verify releases that follow one another, with their links.
    #[arg(long, conflicts_with = "policy")]
    chain: bool,
    /// The input of the release; repeated where it is several files or folders. With --chain, the input of each release, in their order.
    #[arg(long, value_name = "INPUT")]
    input: Vec<String>,
    #[command(flatten)]
    private: PrivatePlace,
    /// The key of the pseudonyms, to compare a release that follows others with its input [default: OUT.key beside the private
    /// record].
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The policy to use instead of the copy in the private record; - is standard input.
    #[arg(long, value_name = "FILE", requires = "input")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    pub(super) set: Set,
}

impl Verify {
    pub(super) async fn run(self, run: &Run) -> Result<Done> {
        if self.chain {
            return self.run_chain(run).await;
        }
        let [out] = self.out.as_slice() else {
            let why = "several releases: add --chain if each follows those before it, or verify one after the other";
            return Err(Error::policy(why).at("OUT"));
        };
        let out = named(out)?;
        let input = (!self.input.is_empty()).then(|| Inputs::of(self.input.clone()));
        let words = input.as_ref().map(Inputs::words).unwrap_or_default();
        let open = |path: &Path| PolicyFile::open(path, &self.set, &words);
        let policy = self.policy.as_deref().map(&open).transpose()?;
        let key = self.key.as_ref().map(local_path).transpose()?;
        let place = self.private.of(&out, policy.as_ref())?.with_key(key);
        let found = match (&policy, &input) {
            (None, Some(_)) => policy_beside(&place)?,
            _ => None,
        };
        let policy =
            policy.map_or_else(|| found.as_deref().map(&open).transpose(), |given| Ok(Some(given)))?;
        let input = input.as_ref().map(|input| input.find(&run.stop)).transpose()?;
        let policy = policy.as_ref().map(|p| PolicySource { spec: &p.spec, files: &p.folder });
        let mut answer = verify(run, &place, input.map(Source::from).as_ref(), policy.as_ref()).await?;
        answer.policy = found.map(|path| path.display().to_string());
        let public = &answer.checked.public;
        if !answer.with_input && !public.recoding.describe().facts().has_exact_quasi {
            answer.notes.extend(release_note(&out.to_string(), public));
        }
        Done::of(&answer)
    }

    async fn run_chain(self, run: &Run) -> Result<Done> {
        let count = self.out.len();
        if count < 2 {
            return Err(Error::policy(
                "expected at least 2 releases, in the order in which they were published",
            )
            .at("--chain"));
        }
        one_each("--input", self.input.len(), count, "releases")?;
        let key = self.key.as_ref().map(local_path).transpose()?;
        let places =
            self.out.iter().map(|out| Ok(self.private.of(&named(out)?, None)?.with_key(key.clone())));
        let places: Vec<Place> = places.collect::<Result<_>>()?;
        let inputs = self.input.iter().map(|input| Input::find_all(std::slice::from_ref(input), &run.stop));
        let inputs: Vec<Source> = inputs.map(|input| input.map(Source::from)).collect::<Result<_>>()?;
        Done::of(&verify_chain(run, &places, &inputs).await?)
    }
}

/// Returns the address of a release; `.` and `..` have no name of their own.
fn named(out: &PathBuf) -> Result<Address> {
    Ok(match Address::parse(out)? {
        Address::Local(out) if out.file_name().is_none() => {
            Address::Local(std::fs::canonicalize(&out).unwrap_or(out))
        }
        out => out,
    })
}

/// Returns the policy file beside a release, or in the current folder, that may have made it, if
/// there is no private record.
///
/// # Errors
/// An unmet error for a damaged record, a policy error if there are several such files.
fn policy_beside(place: &Place) -> Result<Option<PathBuf>> {
    let (Some(out), Some(private)) = (place.out().local(), place.private().and_then(Address::local)) else {
        return Ok(None);
    };
    // A private record of another release is no reason to believe a policy that happens to fit this one.
    // What a killed run left may hold the record.
    if !out.exists() || private.exists() || unfinished(out).is_some() {
        return Ok(None);
    }
    let public = PublicRecord::read(out)?;
    let beside = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut paths = BTreeMap::new();
    for folder in [Path::new("."), beside] {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
        for path in files.filter(|path| is_small_policy(path)) {
            let makes_it = |file: &PolicyFile| may_be_policy_of(&file.spec, &public);
            if PolicyFile::open(&path, &Set::default(), &[]).is_ok_and(|file| makes_it(&file)) {
                let path = path.strip_prefix(".").map_or(path.clone(), Path::to_path_buf);
                paths.entry(path.canonicalize().unwrap_or_else(|_| path.clone())).or_insert(path);
            }
        }
    }
    match paths.into_values().collect::<Vec<_>>().as_slice() {
        [] => Ok(None),
        [path] => Ok(Some(path.clone())),
        paths => {
            const SHOWN: usize = 5;
            let mut names: Vec<String> =
                paths.iter().take(SHOWN).map(|path| path.display().to_string()).collect();
            if paths.len() > SHOWN {
                names.push(format!("{} more", paths.len() - SHOWN));
            }
            Err(Error::policy(format!(
                "this release has no private record beside it, and several policies may have made it: {}; give one with --policy",
                names.join(", ")
            )))
        }
    }
}

/// Returns whether a file may be a policy, by its name and its size.
fn is_small_policy(path: &Path) -> bool {
    const LARGEST: u64 = 1 << 20;
    let is_small = std::fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.len() <= LARGEST);
    is_small && path.extension().is_some_and(|end| end == "toml")
}
