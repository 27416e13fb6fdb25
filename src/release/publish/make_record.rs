//! Builds the two records of a run.
//!
//! The private record holds findings about columns released as they are that do not justify a refusal. The
//! number of individuals who are unique on all columns together is public. Where rows are counted, every reader can
//! compute it from the files. Where individuals are counted, the publisher states it, like the reached k, because
//! the released rows do not name their individuals.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::class::ClassSizes;
use crate::engine::functions::random_key;
use crate::error::{Error, Result};
use crate::input::{PolicySource, Source};
use crate::measure::RISKS;
use crate::measure::utility::Utility;
use crate::method::Outcome;
use crate::policy::Policy;
use crate::release::kind::{Judged, Secret};
use crate::release::merged_trees;
use crate::release::publish::record::{
    CandidateRecord, FORMAT, FoundRecoding, HistoryRecord, InputColumn, InputRecord, ModelRecord,
    PrivateRecord, PublicHistory, PublicRecord, RecodingRecord, SearchRecord, Statement, TableRecord,
    compared_with,
};
use crate::release::publish::{digest, write};
use crate::verify::Verified;

/// The input before recoding.
pub(crate) struct Before {
    /// The sizes of the base classes.
    pub(crate) sizes: ClassSizes,
    /// The columns that are released or counted.
    pub(crate) columns: Vec<InputColumn>,
    /// The number of rows.
    pub(crate) rows: u64,
    /// The number of individuals, where they are counted.
    pub(crate) individuals: Option<u64>,
    /// The number of rows without an individual, where individuals are counted.
    pub(crate) unowned_rows: Option<u64>,
    /// L, the number of individuals or rows that may be suppressed.
    pub(crate) limit: u64,
    /// The number of rows that repeat an earlier row exactly: two equal rows count one.
    pub(crate) duplicates: u64,
}

/// Returns the record of a search by `method`.
pub(crate) fn search_record(policy: &Policy, method: &str, outcome: &Outcome) -> SearchRecord {
    let best = outcome.best.iter().map(|best| CandidateRecord {
        recoding: FoundRecoding::of(&best.recoding),
        loss: best.loss,
        by: best.by.as_ref().map(ToString::to_string),
    });
    SearchRecord {
        method: method.to_owned(),
        objective: policy.spec.objective.doc().name.to_owned(),
        nodes: outcome.nodes,
        evaluated: outcome.evaluated,
        proven: outcome.proven,
        bound: outcome.bound,
        best: best.collect(),
    }
}

/// Returns every risk measure of a table with these classes, with default constants.
///
/// # Errors
/// An internal error if a default is not valid.
pub fn risks(sizes: &ClassSizes) -> Result<BTreeMap<String, f64>> {
    let mut all = BTreeMap::new();
    for row in RISKS {
        if let Some(value) = row.with(&[])?.value(sizes) {
            all.insert(row.doc.name.to_owned(), value);
        }
    }
    Ok(all)
}

/// Returns the unit that models and risks count, in the words of a record.
pub(crate) fn counted_in(individuals: bool) -> &'static str {
    if individuals { "individuals" } else { "rows" }
}

/// Builds the public record.
pub(in crate::release) fn public_record(
    policy: &Policy,
    recoding: RecodingRecord,
    tables: Vec<TableRecord>,
    judged: &Judged,
    history: Option<&HistoryRecord>,
) -> Result<PublicRecord> {
    let why_unknown = || policy.spec.history().and_then(|history| history.changes_unknown.clone());
    let history = history.map(|history| {
        let after = history.after.clone();
        Ok(PublicHistory { digest: history.digest()?, after, changes_unknown: why_unknown() })
    });
    let verified = &judged.verified;
    let models = policy.requirements.iter().zip(verified.recorded());
    PublicRecord {
        format: FORMAT,
        tool: write::CREATED_BY.to_owned(),
        statement: Some(Statement::of(policy, policy.spec.output.released_on().map(str::to_owned))),
        models: models.map(|(requirement, reached)| ModelRecord::of(requirement, reached)).collect(),
        counted_in: counted_in(policy.individual().is_some()).to_owned(),
        recoding,
        layout: policy.spec.output.layout(),
        tables,
        individuals: policy.individual().map(|_| verified.sizes.individuals()),
        classes: judged.classes,
        unique: judged.unique.clone(),
        homogeneous: verified.homogeneous.clone(),
        risk: risks(&verified.sizes)?,
        history: history.transpose()?,
        digest: String::new(),
    }
    .sealed()
}

/// Returns what the models reached that compare classes with the whole input.
fn compared_with_input(policy: &Policy, verified: &Verified) -> Vec<ModelRecord> {
    let models = policy.requirements.iter().zip(&verified.reached);
    let compared = models.filter(|(requirement, _)| compared_with(requirement).is_some());
    let record = compared.map(|(requirement, reached)| ModelRecord::of(requirement, *reached));
    record.map(|record| ModelRecord { compared_with: Some("input".into()), ..record }).collect()
}

/// Returns the texts of the hierarchy files.
fn hierarchies_of(given: &PolicySource<'_>) -> Result<BTreeMap<String, String>> {
    let names = given.spec.hierarchy_files().into_iter();
    names.map(|name| Ok((name.to_owned(), given.files.read(name)?))).collect()
}

/// Returns the digest of all that makes the policy of a private record.
///
/// # Errors
/// An error if a hierarchy file cannot be read.
pub(in crate::release) fn policy_digest(given: &PolicySource<'_>, policy: &Policy) -> Result<String> {
    let merged = (merged_trees::recorded(policy)?, merged_trees::recorded_labels(policy));
    digest_of(given.spec.text(), &hierarchies_of(given)?, (&merged.0, &merged.1))
}

type Texts = BTreeMap<String, String>;

fn digest_of(policy: &str, hierarchies: &Texts, merged: (&Texts, &Texts)) -> Result<String> {
    let text = serde_json::to_string(&(policy, hierarchies, merged));
    let text = text.map_err(|_| Error::internal("record: a policy cannot be serialized"))?;
    Ok(digest::of_bytes(text.as_bytes()))
}

impl PrivateRecord {
    /// Returns the digest of its policy, as that of [`policy_digest`].
    pub(in crate::release) fn policy_digest(&self) -> Result<String> {
        digest_of(&self.policy, &self.hierarchies, (&self.merged, &self.merged_labels))
    }
}

/// Builds the private record, for the publisher only.
#[expect(clippy::too_many_arguments, reason = "a record is made of all that happened")]
pub(in crate::release) fn private_record(
    given: &PolicySource<'_>,
    policy: &Policy,
    input: &Source,
    public: &PublicRecord,
    before: &Before,
    judged: &Judged,
    secret: Secret,
    search: SearchRecord,
    utility: Option<Utility>,
    recoding_of: Option<String>,
    history: Option<HistoryRecord>,
) -> Result<PrivateRecord> {
    let verified = &judged.verified;
    let key: [u8; 32] = random_key()?;
    let files = input.objects().iter().map(|file| {
        let hmac_sha256 = digest::keyed(file.path(), &key).map_err(|error| error.at(file.place()))?;
        Ok(InputRecord { hmac_sha256, path: file.recorded()?, bytes: file.bytes() })
    });
    Ok(PrivateRecord {
        format: FORMAT,
        release: public.digest.clone(),
        policy: given.spec.text().to_owned(),
        hierarchies: hierarchies_of(given)?,
        merged: merged_trees::recorded(policy)?,
        merged_labels: merged_trees::recorded_labels(policy),
        input: input.name().to_owned(),
        files: files.collect::<Result<_>>()?,
        digest_key: digest::hex(&key),
        input_columns: before.columns.clone(),
        input_rows: before.rows,
        input_individuals: before.individuals,
        input_rows_without_individual: before.unowned_rows,
        duplicate_rows: before.duplicates,
        suppressed_rows: verified.suppressed_rows.unwrap_or_default(),
        suppressed_individuals: verified.individuals.map(|individuals| individuals.suppressed),
        suppressed_rows_without_individual: verified
            .individuals
            .map(|individuals| individuals.suppressed_unowned),
        suppression_limit: before.limit,
        risk_before: risks(&before.sizes)?,
        compared_with_input: compared_with_input(policy, verified),
        as_is: judged.as_is.clone(),
        assignment: secret.assignment.map(|lines| STANDARD.encode(lines)),
        dealing_key: secret.dealing_key.map(|key| digest::hex(&key.0)),
        noise_key: secret.noise_key.map(|key| digest::hex(&key.0)),
        search,
        utility,
        recoding_of,
        history,
    })
}
