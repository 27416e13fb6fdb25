//! A release that is judged with others: with its input, or by what its private record holds of its rows.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use datafusion::prelude::{DataFrame, SessionContext};

use crate::class::Budget;
use crate::engine::Run;
use crate::engine::pseudonym::PseudonymKey;
use crate::error::{Error, Result};
use crate::input::{Loaded, PolicySource, Source};
use crate::model::Requirement;
use crate::policy::PolicySpec;
use crate::release::check_files::read_tables;
use crate::release::histories::Compared;
use crate::release::histories::about::About;
use crate::release::histories::recorded::refused;
use crate::release::kind::{Content, Records, kind_row};
use crate::release::publish::key_file::KeyFile;
use crate::release::publish::local_release::{LocalRelease, Needed};
use crate::release::publish::record::{HistoryRecord, PrivateRecord, PublicRecord, RecodingRecord};
use crate::release::publish::unchanged::has_bytes_of;
use crate::release::verify_folder::{checked_record, opened_again, recorded_models};
use crate::release::written_columns::as_texts;
use crate::verify::Expected;
use crate::verify::histories::{Matching, Member, RecordedRows, ShownRows, View, WithoutPerson};

/// A release that is judged with others.
pub(super) struct Opened {
    pub(super) about: About,
    /// The digest of its public record, and what that says of the quasi-identifiers.
    pub(super) digest: String,
    pub(super) recoding: RecodingRecord,
    /// The digests of the releases that it follows.
    pub(super) after: Vec<String>,
    _local: LocalRelease,
    rows: Rows,
}

/// Where the rows of a release are read.
enum Rows {
    OfInput(Box<OfInput>),
    Recorded(Box<Recorded>),
}

struct OfInput {
    loaded: Loaded,
    content: Content,
    written: DataFrame,
}

struct Recorded {
    history: HistoryRecord,
    requirements: Vec<Requirement>,
    key: PseudonymKey,
    key_file: PathBuf,
}

impl Opened {
    /// Opens a release; `None` if it comes without its input, and its private record holds no rows.
    ///
    /// # Errors
    /// A policy error if its private record or the key is missing, an unmet error for a release that is not what its records say, or
    /// whose input is another one; a data error when something cannot be read.
    pub(super) async fn open(run: &Run, release: &Compared) -> Result<Option<(Self, PrivateRecord)>> {
        let shown = release.place.out().to_string();
        let local = LocalRelease::read(&release.place, Needed::All, &run.stop)?;
        let public = checked_record(local.out()).map_err(|error| local.named(error).at(&shown))?;
        let missing = || {
            let why = format!(
                "the private record {} is missing, or of another release; name it (--private)",
                local.private_place()
            );
            Error::policy(why).at(&shown)
        };
        let private = local.private_record(&public)?;
        if let Some(history) = private.as_ref().and_then(|private| private.history.as_ref())
            && !public.names_rows(history)?
        {
            return Err(refused().at(shown));
        }
        let Some(input) = &release.input else {
            // A record that is there, or was named, has to fit.
            if public.history.is_none() || private.is_none() && !release.place.has_secrets() {
                return Ok(None);
            }
            let private = private.ok_or_else(missing)?;
            let opened = Self::recorded(release, local, &public, &private);
            return opened.map(|opened| Some((opened, private))).map_err(|error| error.at(shown));
        };
        let private = private.ok_or_else(missing)?;
        if !has_bytes_of(input, &private, run)? {
            let why = format!("`{}` is not the input that it was made of, byte for byte", input.name());
            return Err(Error::unmet(why).at(&shown));
        }
        let opened = Self::of_input(run, input, local, &public, &private, release).await;
        opened.map(|opened| Some((opened, private))).map_err(|error| error.at(shown))
    }

    fn recorded(
        release: &Compared,
        local: LocalRelease,
        public: &PublicRecord,
        private: &PrivateRecord,
    ) -> Result<Self> {
        let history = private.history.clone().ok_or_else(refused)?;
        let key = KeyFile::of_release(&release.place, &history.key)?;
        if !history.is_sealed_with(key.key())? || history.policy != private.policy_digest()? {
            return Err(refused());
        }
        let (key_file, key) = (key.path().to_path_buf(), key.key().clone());
        Ok(Self {
            about: About::of_record(local.shown(), public, &history),
            digest: public.digest.clone(),
            recoding: public.recoding.clone(),
            after: public.follows().to_vec(),
            _local: local,
            rows: Rows::Recorded(Box::new(Recorded {
                history,
                requirements: recorded_models(public)?,
                key,
                key_file,
            })),
        })
    }

    async fn of_input(
        run: &Run,
        input: &Source,
        local: LocalRelease,
        public: &PublicRecord,
        private: &PrivateRecord,
        release: &Compared,
    ) -> Result<Self> {
        let spec = PolicySpec::parse(&private.policy)?;
        let policy = PolicySource { spec: &spec, files: &private.hierarchies };
        let loaded = opened_again(run, input, &policy, Some(private)).await?;
        let tables = read_tables(&loaded.session, local.out(), public)?;
        let records =
            Records { public, private: Some(private), place: Some(&release.place), written: &tables };
        let content = kind_row(loaded.policy.kind).read(&loaded.policy, loaded.schema(), &records).await?;
        let written = tables.into_iter().next().ok_or_else(|| Error::internal("histories: no table"))?;
        Ok(Self {
            about: About::of_input(local.shown(), &loaded, &run.stop).await?,
            digest: public.digest.clone(),
            recoding: public.recoding.clone(),
            after: public.follows().to_vec(),
            _local: local,
            rows: Rows::OfInput(Box::new(OfInput { loaded, content, written })),
        })
    }

    /// Returns the models of the release.
    pub(super) fn requirements(&self) -> &[Requirement] {
        match &self.rows {
            Rows::OfInput(of_input) => &of_input.loaded.policy.requirements,
            Rows::Recorded(recorded) => &recorded.requirements,
        }
    }

    /// Returns what the private record holds of the rows, with the key of their pseudonyms, if they are read there.
    pub(super) fn history(&self) -> Option<(&HistoryRecord, &PseudonymKey)> {
        match &self.rows {
            Rows::OfInput(_) => None,
            Rows::Recorded(recorded) => Some((&recorded.history, &recorded.key)),
        }
    }

    /// Returns the file of the key of the pseudonyms, if the rows are read in the private record.
    pub(super) fn key_file(&self) -> Option<&Path> {
        if let Rows::Recorded(recorded) = &self.rows { Some(&recorded.key_file) } else { None }
    }

    /// Returns what says which class shows a row of the input; `None` where the private record says it.
    ///
    /// # Errors
    /// A policy error if the release shows no classes that could be compared.
    pub(super) fn expected(&self, budget: &Arc<dyn Budget>) -> Result<Option<Expected<'_>>> {
        let Rows::OfInput(of_input) = &self.rows else { return Ok(None) };
        expected(&of_input.loaded, &of_input.content, budget)
            .map(Some)
            .map_err(|error| error.at(&self.about.shown))
    }

    /// Reads the rows.
    ///
    /// # Errors
    /// An unmet error if the private record is damaged, a data error when reading fails or memory runs out.
    pub(super) async fn shown_rows<'a>(
        &'a self,
        session: &SessionContext,
        expected: Option<&'a Expected<'a>>,
        known_elsewhere: Vec<String>,
        matching: &Matching,
        views: &[View],
        run: &Run,
    ) -> Result<ShownRows<'a>> {
        match (&self.rows, expected) {
            (Rows::OfInput(of_input), Some(expected)) => {
                let OfInput { loaded, written, .. } = &**of_input;
                let member = Member {
                    session: &loaded.session,
                    input: loaded.table.clone(),
                    output: Some(as_texts(written.clone(), &loaded.policy.written_columns())?),
                    expected,
                    known_elsewhere,
                };
                ShownRows::read(&member, matching, views, &run.stop).await
            }
            (Rows::Recorded(recorded), _) => {
                let rows = recorded_rows(&recorded.history, &recorded.requirements, matching)?;
                let rows = ShownRows::recorded(session, rows, views, &run.stop).await;
                rows.map_err(|error| error.at(&self.about.shown))
            }
            (Rows::OfInput(_), None) => Err(Error::internal("histories: a release without classes")),
        }
    }
}

/// Returns what says which class of a release shows a row of its input.
///
/// # Errors
/// A policy error if the release shows no classes that could be compared.
pub(super) fn expected<'a>(
    loaded: &'a Loaded,
    content: &Content,
    budget: &Arc<dyn Budget>,
) -> Result<Expected<'a>> {
    content.judge.shown(&loaded.policy, budget)?.ok_or_else(|| {
        let method = &loaded.policy.spec.method.name;
        Error::policy(format!(
            "`{method}` shows no classes that could be compared with those of another release"
        ))
    })
}

/// Returns the rows of a release as its private record holds them.
///
/// # Errors
/// An unmet error if the record is damaged.
pub(super) fn recorded_rows<'a>(
    history: &'a HistoryRecord,
    requirements: &'a [Requirement],
    matching: &Matching,
) -> Result<RecordedRows<'a>> {
    let place = |date: &String| matching.dates.iter().position(|known| known == date);
    let models = history.models.iter().map(|model| {
        let lasting = model.lasting.map(|at| history.lasting.get(at).map(String::as_str).ok_or_else(refused));
        Ok((model.model, model.counted, lasting.transpose()?))
    });
    Ok(RecordedRows {
        lines: STANDARD.decode(&history.rows).map_err(|_| refused())?.into(),
        quasi: history.quasi.clone(),
        requirements,
        models: models.collect::<Result<_>>()?,
        lasting: history.lasting.clone(),
        dates: history.dates.iter().filter_map(|date| place(&date.name)).collect(),
        compared: usize::from(!history.compared.is_empty()),
        without_person: WithoutPerson {
            rows: history.rows_without_person,
            shown: history.shown_without_person,
        },
    })
}
