//! Anonymize tables where they already are: in Parquet, through SQL, on Apache DataFusion.
//!
//! A table without names still identifies a person whose age, ZIP code and sex together are unique.
//! This crate generalizes such *quasi-identifiers* until every combination is shared by at least k people,
//! drops the few rows for which that would cost too much, and publishes the result only after counting it
//! again, from the input, by code that does not trust the search.
//!
//! ```
//! use datafusion_kanon::engine::Run;
//! use datafusion_kanon::input::{Input, PolicySource};
//! use datafusion_kanon::policy::{Folder, PolicySpec};
//! use datafusion_kanon::release::{Place, release};
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
//! let source = PolicySource { spec: &spec, text, files: &Folder(".".into()) };
//! let run = Run::default();
//!
//! let place = Place::beside(&folder.join("patients_safe"))?;
//! let released = release(&run, &Input::find("data/papers/patients.csv")?, &source, &place, true).await?;
//! assert_eq!(released.public.rows(), 9);
//! assert_eq!(released.after.min(), Some(3));
//! # std::fs::remove_dir_all(folder).unwrap();
//! # Ok::<(), datafusion_kanon::error::Error>(())
//! # }).unwrap();
//! ```
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
//! input, verify             files as canonical columns | output judged against input
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
//! The public API is SQL ([`sql`]), policies ([`policy`]), the release
//! ([`release()`](release::release)) and its verification ([`release::check_release`],
//! [`verify`](verify::verify)), with the types that they take and return. Other public items serve
//! the command line, the tests and the benches, and may change with any version.
//!
//! # The attacker, and what is not protected
//!
//! The attacker knows the quasi-identifiers of a person and looks for the person's row. k-anonymity bounds
//! the chance of picking it by 1/k. It does not protect against background knowledge, against learning a
//! sensitive value that a whole class shares, against knowing that a person is in the data, against several
//! releases of the same people, or against columns that were wrongly called insensitive. Means with noise
//! ([`dp_centroids`](method::microaggregation::dp_centroids)) promise more. See the README.

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
#[doc(hidden)]
pub mod answer;
pub mod class;
pub mod decimal;
#[doc(hidden)]
pub mod doc;
#[cfg(feature = "engine")]
pub mod engine;
pub mod error;
pub mod generalize;
#[cfg(feature = "engine")]
pub mod input;
pub mod known;
#[cfg(feature = "engine")]
#[doc(hidden)]
pub mod linkage;
pub mod measure;
pub mod method;
pub mod model;
pub mod noise;
#[doc(hidden)]
pub mod papers;
pub mod parameter;
#[doc(hidden)]
pub mod plural;
pub mod policy;
pub mod progress;
#[cfg(feature = "engine")]
#[doc(hidden)]
pub mod propose;
#[cfg(feature = "engine")]
pub mod release;
#[cfg(feature = "engine")]
#[doc(hidden)]
pub mod render;
pub mod role;
#[cfg(feature = "engine")]
pub mod sql;
#[cfg(feature = "engine")]
pub mod verify;

/// The README's examples, compiled with the other doctests.
#[cfg(all(doctest, feature = "engine"))]
#[doc = include_str!("../README.md")]
struct Readme;
