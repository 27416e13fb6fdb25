//! Anonymize tables where they already are: in Parquet, through SQL, on Apache DataFusion.
//!
//! A table without names still identifies a person whose age, ZIP code and sex together are unique.
//! This crate generalizes such *quasi-identifiers* until every combination is shared by at least k people,
//! drops the few rows for which that would cost too much, and publishes the result only after counting it
//! again, from the input, by code that does not trust the search.
//!
//! ```
//! use datafusion_kanon::{Folder, Input, Place, PolicySource, PolicySpec, Run, release};
//!
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! # let folder = std::env::temp_dir().join(format!("kanon-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! let text = r#"
//!     k = 2
//!     suppression_limit = 0.1
//!     rows_are_individuals = true
//!     accept_homogeneity = ["disease"]
//!     others = "drop"
//!
//!     [columns]
//!     dob = { role = "quasi", hierarchy = { date = ["month", "year"] } }
//!     sex = { role = "quasi" }
//!     zip = { role = "quasi", hierarchy = { prefix = [4, 3, 2] } }
//!     disease = { role = "sensitive", allow_unique = true }
//! "#;
//! let spec = PolicySpec::parse(text)?;
//! let source = PolicySource { spec: &spec, files: &Folder(".".into()) };
//! let run = Run::default();
//!
//! let place = Place::beside(&folder.join("patients_safe"))?;
//! let released = release(&run, &Input::find("data/papers/patients.csv")?, &source, &place, true).await?;
//! assert_eq!(released.public.rows(), 9);
//! assert_eq!(released.after.min(), Some(3));
//! # std::fs::remove_dir_all(folder).unwrap();
//! # Ok::<(), datafusion_kanon::Error>(())
//! # }).unwrap();
//! ```
//!
//! # Where to begin
//!
//! | I want to | take |
//! |---|---|
//! | measure and generalize in SQL | [`register_all`], or [`configure`] for a session that is being built |
//! | write a policy | [`PolicySpec`]: from TOML, by its [builder](PolicySpec::builder), by `serde` |
//! | name the rows | [`Input`] for files, [`Source::table`] for any `TableProvider` |
//! | measure a table | [`open`] it with a policy, then [`check`], [`risk`] or [`search`] |
//! | publish a folder | [`release()`], the next extract with [`release_again`] or [`release_after`], and [`verify()`] |
//! | judge releases of the same people together | [`answers::compare`] |
//! | write the rows myself | [`anonymize`]: verified rows as a stream, with their record |
//! | show progress, stop, bound memory | [`Run`], with [`Progress`], [`CancelToken`] and [`Resources`] |
//! | tell errors apart | [`Error::kind`] and [`Error::code`]; [`own_error`] for an error of SQL |
//! | add a model, a generalizer, a loss | [`extend`] |
//!
//! `examples/` of the repository has a program for each. Futures are `Send`, run on any Tokio runtime, and stop their work when
//! they are dropped. A program that embeds the library needs no command line: depend on it with
//! `default-features = false, features = ["engine"]`.
//!
//! What is listed here is public. `internals` is for the command line, the tests and the benches of this crate; any version
//! may change it.
//!
//! # The one idea: an anonymization is a plan
//!
//! ```text
//! profile   GROUP BY the quasi-identifiers      -> the class table
//! choose    a method works on the class table   -> a recoding and what it loses
//! apply     the recoding as an ordinary plan    -> rows, without input order
//! verify    plain GROUP BY on input and output  -> publish or refuse
//! ```
//!
//! # Layers (upper may use lower, never the reverse)
//!
//! ```text
//! cli                       the command line, behind the feature `cli` (default)
//! answer                    what a command answers, as a struct and as a document
//! sql, linkage, propose     functions and rule | the linkage attack | a first policy
//! release                   profile, apply, publish: the pipeline
//! input, verify             files and tables as canonical columns | output judged against input
//! store                     files of this machine and objects of stores, listed and pinned
//! engine                    sessions, cancellation, class keys
//! ------------------------  above: DataFusion, behind the feature `engine`; below: Arrow only
//! policy                    text -> policy spec -> resolved policy
//! method                    chooses a recoding
//! measure                   loss and risk
//! class, model              the class table | is a class safe
//! noise                     what makes means differentially private
//! generalize                coarser values
//! known                     hierarchies that come with the tool
//! decimal, doc, error, papers, parameter, plural, progress, render, role
//! ```
//!
//! `tests/it/house.rs` reads this picture and checks the code against it.
//!
//! # The attacker, and what is not protected
//!
//! The attacker knows the quasi-identifiers of a person and looks for the person's row. k-anonymity bounds
//! the chance of picking it by 1/k. It does not protect against background knowledge, against learning a
//! sensitive value that a whole class shares, against knowing that a person is in the data, against several
//! releases of the same people (`answers::compare` judges these), or against columns that were wrongly called insensitive. Means with noise
//! (`dp_centroids`) promise more. See the README.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        clippy::type_complexity
    )
)]

#[cfg(feature = "engine")]
mod answer;
mod class;
mod decimal;
mod doc;
#[cfg(feature = "engine")]
mod engine;
mod error;
mod generalize;
#[cfg(feature = "engine")]
mod input;
mod known;
#[cfg(feature = "engine")]
mod linkage;
mod measure;
mod method;
mod model;
mod noise;
mod papers;
mod parameter;
mod plural;
mod policy;
mod progress;
#[cfg(feature = "engine")]
mod propose;
#[cfg(feature = "engine")]
mod release;
#[cfg(feature = "engine")]
mod render;
mod role;
#[cfg(feature = "engine")]
mod sql;
#[cfg(feature = "engine")]
mod store;
#[cfg(feature = "engine")]
mod verify;

// SQL.
#[cfg(feature = "engine")]
pub use sql::options::{CsvTypes, KanonOptions};
#[cfg(feature = "engine")]
pub use sql::{configure, load_hierarchy, load_hierarchy_file, register_all, register_functions};

// A policy, and the table that it is for.
#[cfg(feature = "engine")]
pub use input::{Input, InputFormat, Loaded, PolicySource, Source, open};
pub use policy::{CsvOptions, Files, Folder, PolicyBuilder, PolicyColumn, PolicyRequirement, PolicySpec};
pub use role::Role;

// What is done with them.
#[cfg(feature = "engine")]
pub use answer::check::check;
#[cfg(feature = "engine")]
pub use answer::risk::risk;
#[cfg(feature = "engine")]
pub use answer::search::search;
#[cfg(feature = "engine")]
pub use answer::verify::verify;
#[cfg(feature = "engine")]
pub use release::{
    Anonymized, Followed, Place, Released, anonymize, release, release_after, release_again, unchanged,
};

// Where files lie.
#[cfg(feature = "engine")]
pub use store::{Address, RemoteAddress};

// A run: its resources, its progress, its end, its errors.
#[cfg(feature = "engine")]
pub use engine::{PhaseTime, Resources, Run, own_error};
pub use error::{Error, ErrorCode, ErrorKind, Result};
pub use progress::{CancelToken, Phase, Progress};

/// What [`check`], [`risk`], [`search`], [`verify()`] and [`release()`] answer, and the other commands of `kanon`: structs
/// that `serde` writes as the JSON of the command, and a [document](answers::Answer::document) for people.
#[cfg(feature = "engine")]
pub mod answers {
    pub use crate::answer::Answer;
    pub use crate::answer::check::{CheckAnswer, CheckedModel};
    pub use crate::answer::compare::{
        ByPeople, ByRows, CompareAnswer, FailedModelOfHistories, HistoriesOfReleases, RolesOfColumn, Verdict,
        View, compare,
    };
    pub use crate::answer::explain::{ExplainAnswer, explain};
    pub use crate::answer::init::{ColumnProposal, InitAnswer, InputKeys, UndecidedTogether, init};
    pub use crate::answer::link::{LearntColumn, LinkAnswer, LinkedColumn, MatchCount, UnusedColumn, link};
    pub use crate::answer::list::{ListAnswer, list};
    pub use crate::answer::methods::{ComparedRecoding, MethodsAnswer, TriedMethod, compare_methods};
    pub use crate::answer::minimal::{MinimalAnswer, MinimalNode, minimal};
    pub use crate::answer::plan::{LifeOfK, PlanAnswer, plan};
    pub use crate::answer::release::{ColumnCost, ReleaseAnswer, UnchangedAnswer};
    pub use crate::answer::risk::{ClassesOfSize, RiskAnswer, RiskWithout};
    pub use crate::answer::search::{FoundAnswer, SearchAnswer, SearchedInput};
    pub use crate::answer::verify::VerifyAnswer;
    pub use crate::answer::verify_chain::{ChainAnswer, ChainedRelease, verify_chain};
    pub use crate::linkage::Attack;
    pub use crate::propose::SingledOut;
    pub use crate::release::histories::{Compared, Life, NotShown, SamePeople, Version};
    pub use crate::release::kind::measure::RecodingParts;
    pub use crate::render::{Document, Extent, markdown, text};
    pub use crate::verify::as_is::{AsIsColumn, Reveal};
    pub use crate::verify::histories::ReturningPeople;
    pub use crate::verify::sufficient::Sufficient;
}

/// The records of a release: the public one, which its readers get, and the private one of its publisher.
#[cfg(feature = "engine")]
pub mod records {
    pub use crate::generalize::{Centroid, Ends};
    pub use crate::measure::utility::{ColumnUtility, PairUtility, QueryUtility, Utility};
    pub use crate::policy::{Compression, Layout};
    pub use crate::release::publish::input_records::{InputColumn, InputRecord};
    pub use crate::release::publish::model_record::ModelRecord;
    pub use crate::release::publish::recoding_record::{
        CentroidColumn, FoundRecoding, GroupsRecord, LevelRecord, NoiseRecord, RecodingRecord, RegionColumn,
        Regions, RegionsRecord,
    };
    pub use crate::release::publish::record::{
        CandidateRecord, ColumnRecord, FileRecord, PrivateRecord, PublicRecord, SearchRecord, TableRecord,
    };
    pub use crate::release::publish::statement::{LeftOut, Statement};
    pub use crate::verify::as_is::UniqueTogether;
    pub use crate::verify::homogeneous::Homogeneous;
}

/// Models, generalizers and loss measures of the program's own, beside those of the library.
///
/// A row that is registered can stand in policies and in SQL like a row of
/// the library (`kanon list`). Rows belong to the whole process and stay until it ends. Register
/// them first: a policy knows the rows that are there when it is parsed, and a session those that are there
/// when [`register_all`] adds this crate's functions.
///
/// # What is trusted
///
/// A release is counted again before it is published, but by the same row: what a row computes wrong is wrong
/// twice. The row decides what its name means; nothing else can. A release by a loss that is no number is refused. A function must return the same result for
/// the same arguments, in every thread and in every run, must not panic, and must register no other row. Its errors are
/// shown as they are, so they must hold no value of a cell. A model's `value` and `holds`
/// define what is safe.
///
/// Other statements of a row are claims about these functions, and most of them only make a search faster:
///
/// | claim | if it is wrong |
/// |---|---|
/// | [`min_size`](crate::extend::ClassModel::min_size) | smaller classes are suppressed, in the search and in the verification: the claim comes true |
/// | [`merge`](crate::extend::ClassModel::merge) | a search misses recodings, or chooses one that the verification refuses |
/// | [`Grows`](crate::extend::Grows) and [`bound`](crate::extend::LossMeasure::bound) of a loss | a search misses the best recoding and calls another one the best |
/// | [`check_coarsens`](crate::extend::Generalizer::check_coarsens), [`codes`](crate::extend::Generalizer::codes), `generalize` unlike `generalize_value` | the verification refuses the release |
/// | [`keeps_order`](crate::extend::Generalizer::keeps_order), [`preimage_end`](crate::extend::Generalizer::preimage_end) | SQL returns wrong answers; leave them at `false` and `None` if in doubt |
/// | [`reads_extremes_only`](crate::extend::ClassModel::reads_extremes_only) | the model's SQL function returns wrong answers |
/// | [`judges_each_value`](crate::extend::ClassModel::judges_each_value) | a policy may name the only `values` that count, and the model sees no others |
/// | [`bounded_by_rows`](crate::extend::ClassModel::bounded_by_rows), [`may_reach_among_released`](crate::extend::ClassModel::may_reach_among_released), [`is_label`](crate::extend::Generalizer::is_label) | `kanon verify` without the input refuses a good release, or accepts one that was altered |
///
/// So a wrong `merge` or `min_size` publishes no class for which `value` and `holds` refuse the release: the
/// verification calls both for every released class, on counts of its own.
///
/// # Records
///
/// A record has the names of models, generalizers and losses and their parameters, not their code. Only a
/// program that has registered the same rows can verify such a release: any other refuses it, because
/// it does not know the name. Give a row another name when its meaning changes.
pub mod extend {
    pub use crate::class::{ClassSizes, EvaluatedClasses, EvaluatedNode, EvaluatedRecoding};
    pub use crate::decimal::Decimal;
    pub use crate::doc::Doc;
    pub use crate::generalize::clip::Clip;
    pub use crate::generalize::{
        Descriptor, DescriptorError, Generalizer, GeneralizerRow, MakeLevels, Value,
    };
    pub use crate::measure::{Grows, Interval, Loss, LossMeasure, LossRow};
    pub use crate::model::{
        Class, ClassModel, Counted, Distribution, HIERARCHY, Merge, ModelRow, Needs, Quantity, ValueCount,
        Worst,
    };
    pub use crate::parameter::{Absent, Kind, Parameter, Setting, Settings, TextTable};
    pub use crate::policy::own_rows::{register_generalizer, register_loss, register_model};
}

/// All modules, for the command line, the tests and the benches of this crate. They promise nothing: any
/// version may change or remove what is here.
#[doc(hidden)]
pub mod internals {
    macro_rules! rooms {
        ($($room:ident)*) => { $(pub mod $room { pub use crate::$room::*; })* };
    }
    rooms!(class decimal doc error generalize known measure method model noise papers parameter plural policy progress role);
    #[cfg(feature = "engine")]
    rooms!(answer engine input linkage propose release render sql store verify);
}

/// The README's examples, compiled with the other doctests.
#[cfg(all(doctest, feature = "engine"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// The program of the page for Rust developers.
#[cfg(all(doctest, feature = "engine"))]
#[doc = include_str!("../docs/rust.md")]
struct RustPage;
