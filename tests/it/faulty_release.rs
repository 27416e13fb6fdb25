//! A release in a store whose every call in turn fails, is cut, waits, or acts and then answers with an error: what is there
//! afterwards is a whole release or none, and what the run says of it is true.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use arrow::array::{ArrayRef, StringArray};
use datafusion_kanon::internals::error::Error;
use datafusion_kanon::internals::release::{LocalRelease, Needed, Place, Released, check_release, release};
use datafusion_kanon::internals::store::stores;
use datafusion_kanon::records::PublicRecord;
use datafusion_kanon::{CancelToken, Folder, Input, PolicySource, PolicySpec, Resources, Run};
use futures::FutureExt;
use object_store::ObjectStoreExt;
use tempfile::TempDir;

use crate::command::{self, table};
use crate::faulty_store::{Fault, FaultyStore};
use crate::formats::{POLICY, people};

/// A store of its own, an input, and a place for releases.
struct Lab {
    store: Arc<FaultyStore>,
    folder: command::Place,
    place: Place,
    policy: String,
    _private: TempDir,
}

impl Lab {
    fn new() -> Self {
        static STORES: AtomicUsize = AtomicUsize::new(0);
        let root = format!("memory://store{}", STORES.fetch_add(1, Ordering::Relaxed));
        let (store, folder) = (FaultyStore::new(), command::Place::new());
        stores::register(&root, Arc::<FaultyStore>::clone(&store));
        folder.parquet("in.parquet", &people());
        let private = tempfile::tempdir().unwrap();
        let at = private.path().join("p.json").display().to_string();
        let place = Place::at(&format!("{root}/safe"), Some(&at)).unwrap();
        Self { store, folder, place, policy: POLICY.to_owned(), _private: private }
    }

    /// With so long texts that the file is uploaded in pieces.
    fn of_long_texts() -> Self {
        let (lab, people) = (Self::new(), people());
        let mut number = 1u64;
        let mut text = || {
            let word = || {
                number =
                    number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                format!("{number:016x}")
            };
            std::iter::repeat_with(word).take(20_000).collect::<String>()
        };
        let notes: StringArray = (0..people.num_rows()).map(|_| Some(text())).collect();
        let schema = people.schema();
        let columns =
            schema.fields().iter().map(|field| field.name().as_str()).zip(people.columns().iter().cloned());
        lab.folder.parquet("in.parquet", &table(columns.chain([("note", Arc::new(notes) as ArrayRef)])));
        let policy = format!("{POLICY}    note = {{ role = \"insensitive\", allow_unique = true }}\n");
        Self { policy, ..lab }
    }

    fn with_private_in_store() -> Self {
        let lab = Self::new();
        let private = lab.place.out().to_string().replace("/safe", "/private/p.json");
        Self { place: Place::at(&lab.place.out().to_string(), Some(&private)).unwrap(), ..lab }
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap()
            .block_on(future)
    }

    fn run() -> Run {
        Run { resources: Resources { threads: 1, memory: 1 << 28, spill: None }, ..Run::default() }
    }

    /// Releases with this k.
    fn release(&self, k: u32, overwrite: bool) -> Result<Released, Error> {
        let spec = PolicySpec::parse(&self.policy.replace("k = 3", &format!("k = {k}"))).unwrap();
        let policy = PolicySource { spec: &spec, files: &Folder(".".into()) };
        let input = Input::find(self.folder.path("in.parquet").to_str().unwrap()).unwrap();
        Self::block_on(release(&Self::run(), &input, &policy, &self.place, overwrite))
    }

    /// The k of the release that is there, which must be whole and verify against its input by its private record.
    fn there(&self) -> Option<f64> {
        self.store.no_faults();
        let objects = self.store.objects();
        let text = objects.get("safe/_kanon.json")?;
        let record: PublicRecord = serde_json::from_slice(text).unwrap();
        let local = LocalRelease::read(&self.place, Needed::All, &CancelToken::default()).unwrap();
        let input = Input::find(self.folder.path("in.parquet").to_str().unwrap()).unwrap().into();
        Self::block_on(check_release(&Self::run(), &local, Some(&input), None)).unwrap();
        Some(record.models[0].required)
    }

    /// The objects that the record does not list, and other private records than that of the release.
    fn rubbish(&self) -> Vec<String> {
        let objects = self.store.objects();
        let record: Option<PublicRecord> =
            objects.get("safe/_kanon.json").map(|text| serde_json::from_slice(text).unwrap());
        let listed: BTreeSet<String> =
            record.iter().flat_map(PublicRecord::files).map(|file| format!("safe/{}", file.name)).collect();
        let is_known = |key: &String| {
            key == "safe/_kanon.json" || listed.contains(key) || key == "private/p.json" && record.is_some()
        };
        let mut rubbish: Vec<String> = objects.into_keys().filter(|key| !is_known(key)).collect();
        if let Some(private) = self.place.private().and_then(|private| private.local()) {
            let files = std::fs::read_dir(private.parent().unwrap()).unwrap();
            let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
            rubbish.extend(names.filter(|name| name != "p.json" || record.is_none()));
        }
        rubbish
    }
}

/// What is true after a run: `before` is the k that was there, `asked` that of the run.
fn check(lab: &Lab, ran: &Result<Released, Error>, before: Option<f64>, asked: f64, what: &str) {
    let (there, rubbish) = (lab.there(), lab.rubbish());
    match ran {
        Ok(released) => {
            assert_eq!(there, Some(asked), "{what}");
            // What a store says is not there is not removed.
            let is_said = !released.warnings.is_empty() || what.contains("Gone");
            assert!(rubbish.is_empty() || is_said, "{what}: {rubbish:?}");
        }
        Err(error) if error.code() == "not_known" => {
            assert!(there == before || there == Some(asked), "{what}: {there:?}");
        }
        Err(error) => {
            assert_eq!(there, before, "{what}: {error}");
            let is_said = error.to_string().contains("remain") || what.contains("Gone");
            assert!(rubbish.is_empty() || is_said, "{what}: {rubbish:?}, {error}");
        }
    }
    assert_eq!(lab.store.open_uploads(), 0, "{what}");
    // The next run puts all right.
    let next = lab.release(5, true).map_err(|error| error.to_string());
    assert!(next.is_ok(), "{what}: {next:?}");
    assert_eq!(lab.there(), Some(5.0), "{what}");
}

/// The number of calls of a run, after as many releases as `before` says.
fn calls(lab: &Lab, overwrite: bool) -> usize {
    if overwrite {
        lab.release(3, false).unwrap();
    }
    lab.store.clear_calls();
    lab.release(4, overwrite).unwrap();
    lab.store.calls().len()
}

#[test]
fn each_call_of_a_release_fails_in_each_way() {
    let faults = [
        Fault::Fail,
        Fault::FailDenied,
        Fault::Cut,
        Fault::Gone,
        Fault::ActThenFail,
        Fault::ActThenAlreadyExists,
        Fault::Wait(Duration::from_millis(80)),
    ];
    let labs: [fn() -> Lab; 2] = [Lab::new, Lab::with_private_in_store];
    thread::scope(|scope| {
        for (at, lab) in labs.into_iter().enumerate() {
            for overwrite in [false, true] {
                scope.spawn(move || {
                    let all = calls(&lab(), overwrite);
                    assert!(all > 6, "only {all} calls");
                    for fault in faults {
                        for nth in 0..all {
                            let lab = lab();
                            let before = overwrite.then(|| lab.release(3, false).unwrap()).map(|_| 3.0);
                            lab.store.fault(nth, fault);
                            let ran = lab.release(4, overwrite);
                            let what = format!("{at}, overwrite {overwrite}, {fault:?} at {nth}");
                            check(&lab, &ran, before, 4.0, &what);
                        }
                    }
                });
            }
        }
    });
}

/// A piece of an upload, its beginning or its end.
#[test]
fn each_call_of_an_upload_in_pieces_fails_in_each_way() {
    let lab = Lab::of_long_texts();
    lab.release(4, false).unwrap();
    let calls = lab.store.calls();
    let of_upload = |kind: &str| ["multipart", "put_part", "complete"].contains(&kind);
    let all: Vec<usize> = (0..calls.len()).filter(|nth| of_upload(calls[*nth].kind)).collect();
    assert!(all.len() >= 4, "{calls:?}");
    thread::scope(|scope| {
        for faults in [[Fault::Fail, Fault::ActThenFail], [Fault::FailDenied, Fault::Gone]] {
            let (all, calls) = (&all, &calls);
            scope.spawn(move || {
                for fault in faults {
                    for nth in all {
                        // Nobody knows the name of an upload whose beginning was not answered; stores end it after some days.
                        if fault == Fault::ActThenFail && calls[*nth].kind == "multipart" {
                            continue;
                        }
                        let lab = Lab::of_long_texts();
                        lab.store.fault(*nth, fault);
                        let ran = lab.release(4, false);
                        check(&lab, &ran, None, 4.0, &format!("{fault:?} at {nth}"));
                    }
                }
            });
        }
    });
}

/// A call is done, whatever its answer says, and the next one fails: what was done is not called undone.
#[test]
fn two_calls_in_a_row_go_wrong() {
    thread::scope(|scope| {
        for fault in [Fault::ActThenFail, Fault::ActThenAlreadyExists] {
            for (next, lab) in
                [(Fault::Fail, Lab::new as fn() -> Lab), (Fault::FailDenied, Lab::with_private_in_store)]
            {
                scope.spawn(move || {
                    for nth in 0..calls(&lab(), true) {
                        let lab = lab();
                        lab.release(3, false).unwrap();
                        lab.store.fault(nth, fault);
                        lab.store.fault(nth + 1, next);
                        let ran = lab.release(4, true);
                        check(&lab, &ran, Some(3.0), 4.0, &format!("{fault:?} at {nth}, then {next:?}"));
                    }
                });
            }
        }
    });
}

/// From a call on nothing answers any more, as if the network was gone; the store may have acted on the last request.
#[test]
fn a_store_that_goes_away_leaves_a_whole_release_or_none() {
    let all = calls(&Lab::new(), true);
    thread::scope(|scope| {
        for nth in 0..all {
            for has_acted in [false, true] {
                scope.spawn(move || {
                    let lab = Lab::new();
                    lab.release(3, false).unwrap();
                    if has_acted {
                        lab.store.fault(nth, Fault::ActThenFail);
                    }
                    lab.store.fault_from(nth, Fault::Fail);
                    let ran = lab.release(4, true);
                    check(&lab, &ran, Some(3.0), 4.0, &format!("gone at {nth}, acted {has_acted}"));
                });
            }
        }
    });
}

/// Between any two calls of a run another run publishes, or takes away what this one wrote.
#[test]
fn another_run_between_two_calls() {
    for overwrite in [false, true] {
        let all = calls(&Lab::new(), overwrite);
        for nth in 0..all {
            let lab = Lab::new();
            if overwrite {
                lab.release(3, false).unwrap();
            }
            // What another machine would publish: a whole release with k = 6.
            let other = Lab::new();
            other.release(6, false).unwrap();
            let objects = other.store.objects();
            lab.store.before(
                nth,
                Box::new(move |store| {
                    async move {
                        for (key, bytes) in objects {
                            store.put(&key.into(), bytes.into()).await.unwrap();
                        }
                    }
                    .boxed()
                }),
            );
            let ran = lab.release(4, overwrite);
            let record = lab.store.objects().get("safe/_kanon.json").cloned().unwrap();
            let record: PublicRecord = serde_json::from_slice(&record).unwrap();
            // The other one overwrites without looking, so after the commit it may be the one that is there.
            match ran {
                Ok(_) => assert!([4.0, 6.0].contains(&record.models[0].required), "{nth}"),
                Err(error) => {
                    assert_eq!(record.models[0].required, 6.0, "{nth}: {error}");
                    let codes = ["concurrent_run", "exists", "policy"];
                    assert!(codes.contains(&error.code()), "{nth}: {error}");
                }
            }
            // All that the record lists is there.
            let read = LocalRelease::read(&lab.place, Needed::All, &CancelToken::default());
            assert!(read.is_ok(), "{nth}: {read:?}");
        }
    }
}

#[test]
fn a_store_that_ignores_conditions_is_told() {
    let lab = Lab::new();
    lab.store.ignore_conditions();
    let released = lab.release(3, false).unwrap();
    assert!(
        released.warnings.iter().any(|warning| warning.contains("ignores the condition")),
        "{:?}",
        released.warnings
    );
    assert_eq!(lab.there(), Some(3.0));
    let honest = Lab::new();
    assert_eq!(honest.release(3, false).unwrap().warnings, Vec::<String>::new());
}
