//! Fuzzing: random and mutated policies, hierarchy files, input files and queries. None may make
//! the code panic, hang, contradict itself or show a cell.
//!
//! Every file of `tests/corpus/<target>/` is tried as it is in every run; then so many inputs
//! follow that are made at random or by mutating those files: 300, or `KANON_FUZZ_CASES`, from case
//! `KANON_FUZZ_FIRST` on, so that a long run can be continued or shared out. The same case is the
//! same input on every machine. An input that fails is made smaller and written beside the test
//! binaries; the message names the file, and once the mistake is mended the file belongs into the
//! corpus.

mod columns;
mod hierarchies;
mod inputs;
mod policies;
mod queries;
pub(crate) mod random;

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use datafusion_kanon::internals::error::{Error, ErrorKind};

use crate::house::root;
use random::Random;

/// What cells of the tables and files here contain, as texts and as numbers.
const CANARIES: [&str; 2] = ["zqxj", "739173917"];

/// What is fuzzed.
trait Target: Send {
    /// The folder of its corpus.
    const NAME: &'static str;
    /// Texts that mean something in its inputs.
    const TOKENS: &'static [&'static str];
    /// An input that looks like those that people write.
    fn random(&self, random: &mut Random) -> Vec<u8>;
    /// Tries an input; says what is wrong with how it went.
    fn attempt(&mut self, input: &[u8]) -> Result<(), String>;
}

/// An error must be the user's and show no cell; what `said` holds is no cell.
fn blameless(error: &Error, said: &str) -> Result<(), String> {
    if error.kind() == ErrorKind::Internal {
        return Err(format!("an internal error: {error}"));
    }
    shows_no_cell(&error.to_string(), said)
}

fn shows_no_cell(shown: &str, said: &str) -> Result<(), String> {
    let (shown, said) = (shown.to_lowercase(), said.to_lowercase());
    match CANARIES.iter().find(|canary| shown.contains(**canary) && !said.contains(**canary)) {
        Some(_) => Err(format!("a cell is shown: {shown}")),
        None => Ok(()),
    }
}

/// Tries an input; a panic is wrong too.
fn attempt<T: Target>(target: &mut T, input: &[u8]) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| target.attempt(input))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        Err(format!("panicked: {}", text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("?")))
    })
}

/// A failing input without the parts that it fails without.
fn smaller<T: Target>(target: &mut T, mut input: Vec<u8>) -> Vec<u8> {
    let mut chunk = input.len().div_ceil(2).max(1);
    for _ in 0..400 {
        let at = (0..input.len()).step_by(chunk).find(|at| {
            let shorter = [&input[..*at], &input[(at + chunk).min(input.len())..]].concat();
            attempt(target, &shorter).is_err()
        });
        match at {
            Some(at) => drop(input.drain(at..(at + chunk).min(input.len()))),
            None if chunk == 1 => break,
            None => chunk = chunk.div_ceil(2),
        }
    }
    input
}

/// The files of a target's corpus, with their names.
fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = root().join("tests/corpus").join(name);
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
        .into_iter()
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap()))
        .collect()
}

/// No input may take longer.
const LONGEST: Duration = Duration::from_secs(60);
/// Inputs that take longer are reported.
const LONG: Duration = Duration::from_secs(5);
/// After so many different failures a run ends.
const ENOUGH: usize = 5;

fn fuzz<T: Target + 'static>(make: fn() -> T) {
    let setting = |name: &str, otherwise| std::env::var(name).map_or(otherwise, |text| text.parse().unwrap());
    let (cases, first) = (setting("KANON_FUZZ_CASES", 300), setting("KANON_FUZZ_FIRST", 0usize));
    let place =
        |what: &str| Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{}-{first}-{what}", T::NAME));
    let (now, failed) = (place("now"), place("failed"));
    let (sender, receiver) = channel();
    // As large a stack as that of a process's first thread.
    let work = std::thread::Builder::new()
        .stack_size(8 << 20)
        .spawn({
            let now = now.clone();
            move || {
                let mut target = make();
                let corpus = corpus(T::NAME);
                let seeds: Vec<&[u8]> = corpus.iter().map(|(_, bytes)| bytes.as_slice()).collect();
                let mut failures = BTreeSet::new();
                for case in 0..corpus.len() + cases {
                    let (name, input) = match corpus.get(case) {
                        Some((name, input)) => (name.clone(), input.clone()),
                        None => {
                            let number = first + case - corpus.len();
                            let mut random = Random::new(number as u64);
                            let input = match random.below(3) {
                                0 => target.random(&mut random),
                                1 => random.mutated(
                                    seeds[random.clone().below(seeds.len())],
                                    T::TOKENS,
                                    &seeds,
                                ),
                                _ => {
                                    let input = target.random(&mut random);
                                    random.mutated(&input, T::TOKENS, &seeds)
                                }
                            };
                            (format!("case {number}"), input)
                        }
                    };
                    // Where the process itself dies, this is the input that killed it.
                    fs::write(&now, &input).unwrap();
                    sender.send(()).unwrap();
                    let start = Instant::now();
                    let outcome = attempt(&mut target, &input);
                    if start.elapsed() > LONG {
                        eprintln!("{}: {name} took {:?}: {:.500}", T::NAME, start.elapsed(), shown(&input));
                    }
                    if case % 10_000 == 9_999 {
                        eprintln!("{}: {} inputs", T::NAME, case + 1);
                    }
                    let Err(why) = outcome else { continue };
                    if failures.insert(why.replace(|c: char| c.is_ascii_digit(), "")) {
                        let input = smaller(&mut target, input);
                        let file = format!("{}{}", failed.display(), failures.len());
                        fs::write(&file, &input).unwrap();
                        let now = attempt(&mut target, &input).err().unwrap_or_default();
                        eprintln!(
                            "{}: {name}: {why}\nsmaller, in {file}: {now}\n{}\n",
                            T::NAME,
                            shown(&input)
                        );
                    }
                    if failures.len() == ENOUGH {
                        break;
                    }
                }
                failures.len()
            }
        })
        .unwrap();
    loop {
        match receiver.recv_timeout(LONGEST) {
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => panic!("an input takes forever: {}", now.display()),
        }
    }
    let failures = work.join().unwrap();
    assert_eq!(failures, 0, "{}: inputs failed, see above; put them into tests/corpus/{0}", T::NAME);
}

/// An input for people to read.
fn shown(input: &[u8]) -> String {
    match std::str::from_utf8(input) {
        Ok(text) => format!("{:.3000}", text),
        Err(_) => format!("{:.3000}", input.escape_ascii().to_string()),
    }
}

#[test]
fn policies() {
    fuzz(policies::Policies::new);
}

#[test]
fn hierarchy_files() {
    fuzz(|| hierarchies::HierarchyFiles);
}

#[test]
fn input_files() {
    fuzz(inputs::InputFiles::new);
}

#[test]
fn queries() {
    fuzz(queries::Queries::new);
}
