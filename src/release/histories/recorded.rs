//! The rows of a release by pseudonyms, for its private record.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use datafusion::prelude::DataFrame;

use crate::class::Budget;
use crate::engine::pseudonym::PseudonymKey;
use crate::engine::{PoolBudget, Run};
use crate::error::{Error, Result};
use crate::input::Loaded;
use crate::release::histories::about::{About, matching};
use crate::release::histories::opened::expected;
use crate::release::histories::{SamePeople, views};
use crate::release::kind::{Content, Records};
use crate::release::publish::key_file::KeyFile;
use crate::release::publish::record::{HistoryColumn, HistoryModel, HistoryRecord};
use crate::release::written_columns::as_texts;
use crate::verify::histories::{Member, ShownRows, row_lines};
use crate::verify::row_lines::{RowLines, RowNames};

/// What the record of a release that follows others says of that.
pub(in crate::release) struct Continued {
    /// How the rows of people are matched, as before.
    pub(super) same: SamePeople,
    /// The digests of the public records before.
    pub(super) after: Vec<String>,
    /// What its classes show that none of them has.
    pub(super) new_classes: Vec<Vec<Option<String>>>,
}

impl HistoryRecord {
    /// Returns what a record says of the releases that it follows, if it follows any.
    pub(in crate::release) fn continued(&self) -> Option<Continued> {
        let (same, after) = (self.same_people(), self.after.clone());
        (!after.is_empty()).then(|| Continued { same, after, new_classes: self.new_classes.clone() })
    }
}

/// Returns the rows of a release that was verified by pseudonyms under a key, if its policy has `[history]`: still without the digest of the
/// policy and the seal.
///
/// # Errors
/// A policy error if the release shows no classes, or if `[history]` does not fit its input; a data error when reading fails or memory
/// runs out.
pub(in crate::release) async fn recorded(
    run: &Run,
    again: &Loaded,
    content: &Content,
    written: Option<DataFrame>,
    key: &PseudonymKey,
    continued: Option<Continued>,
) -> Result<Option<HistoryRecord>> {
    let Some(history) = again.policy.spec.history() else { return Ok(None) };
    let of_policy = || SamePeople {
        person: history.person.clone(),
        row: history.row.clone(),
        dates: history.dates.clone(),
        changes: history.changes.clone(),
        changes_are_unknown: history.changes_unknown.is_some(),
        accept_new_people: false,
    };
    let first = || Continued { same: of_policy(), after: Vec::new(), new_classes: Vec::new() };
    let Continued { same, after, new_classes } = continued.unwrap_or_else(first);
    let place = |error: Error| error.at("history");
    let about = About::of_input("the input", again, &run.stop).await?;
    let matching = matching(std::slice::from_ref(&about), &same, key.clone()).map_err(place)?;
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&again.session, "histories"));
    let expected = expected(again, content, &budget).map_err(place)?;
    let written = written.ok_or_else(|| Error::internal("histories: no table"))?;
    let member = Member {
        session: &again.session,
        input: again.table.clone(),
        output: Some(as_texts(written, &again.policy.written_columns())?),
        expected: &expected,
        known_elsewhere: Vec::new(),
    };
    let views = views(&again.policy.requirements);
    let rows = ShownRows::read(&member, &matching, &views, &run.stop).await?;
    let lines = rows.lines(&budget, &run.stop).await?;
    let column = |name: &String| {
        let data_type = about.type_of(name)?.to_owned();
        Ok(HistoryColumn { name: name.clone(), data_type })
    };
    let columns = |names: &[String]| names.iter().map(column).collect::<Result<Vec<_>>>();
    let models = rows.models().iter().map(|model| HistoryModel {
        model: model.at,
        counted: model.column,
        lasting: model.lasting.and_then(|name| rows.lasting().iter().position(|known| known == name)),
    });
    Ok(Some(HistoryRecord {
        key: key.id()?,
        seal: String::new(),
        policy: String::new(),
        person: column(&matching.person)?,
        row: columns(&matching.row)?,
        row_is_named: matching.row_is_named,
        dates: columns(&matching.dates)?,
        changes: matching.changes,
        compared: columns(&matching.compared.concat())?,
        changes_are_unknown: matching.changes_are_unknown,
        quasi: rows.classes.labels().0.to_vec(),
        models: models.collect(),
        lasting: rows.lasting().to_vec(),
        rows_without_person: rows.without_person.rows,
        shown_without_person: rows.without_person.shown,
        after,
        new_classes,
        rows: STANDARD.encode(lines),
    }))
}

/// Returns which class shows each row of a release that follows others; `None` for one that does not.
///
/// # Errors
/// A policy error if the key is missing, an unmet error if the record is damaged.
pub(in crate::release) fn recorded_lines(records: &Records<'_>) -> Result<Option<Arc<RowLines>>> {
    let history = records.private.and_then(|private| private.history.as_ref());
    let Some(history) = history.filter(|history| !history.after.is_empty()) else { return Ok(None) };
    let place = records.place.ok_or_else(|| Error::internal("histories: a release without a place"))?;
    let key = KeyFile::of_release(place, &history.key)?.key().clone();
    let row = history.row.iter().map(|column| column.name.clone());
    let names = RowNames { person: history.person.name.clone(), row: row.collect(), key };
    let lines = STANDARD.decode(&history.rows).map_err(|_| refused())?;
    row_lines(lines.into(), history.quasi.len(), names, &history.new_classes)
        .map(|lines| Some(Arc::new(lines)))
}

/// Returns the error of a private record that cannot be believed.
pub(super) fn refused() -> Error {
    Error::unmet(
        "what the private record holds of the rows of the release, or its policy, is not what the public record names",
    )
}
