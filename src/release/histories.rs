//! Releases of the same people, judged together with their inputs; `verify/histories` has the rule.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::prelude::{DataFrame, SessionContext};

use crate::class::Budget;
use crate::engine::pseudonym::PseudonymKey;
use crate::engine::{PoolBudget, Rules, Run};
use crate::error::{Error, Result};
use crate::input::{Loaded, PolicySource, Source};
use crate::model::{Needs, Requirement};
use crate::plural::plural;
use crate::policy::PolicySpec;
use crate::progress::Phase;
use crate::release::check_files::read_tables;
use crate::release::kind::{Content, Records, kind_row};
use crate::release::publish::local_release::{LocalRelease, Needed};
use crate::release::publish::place::Place;
use crate::release::publish::record::{PrivateRecord, PublicRecord};
use crate::release::publish::unchanged::has_bytes_of;
use crate::release::verify_folder::{checked_record, opened_again};
use crate::release::written_columns::as_texts;
use crate::role::Role;
use crate::verify::histories::{
    self, FailedModel, Histories, MOST_RELEASES, Matching, Member, PeopleFound, ShownRows, View,
};

/// A release with the input that it was made of.
#[derive(Debug, Clone)]
pub struct ReleaseOfInput {
    /// Where it is.
    pub place: Place,
    /// The rows that it was made of.
    pub input: Source,
}

/// What tells people and their rows apart in several inputs.
#[derive(Debug, Clone, Default)]
pub struct SamePeople {
    /// The column that names the person of a row; by default the individual column of the policies.
    pub person: Option<String>,
    /// The columns that tell the rows of a person apart; none for all columns that every release shows.
    pub row: Vec<String>,
    /// The released columns whose values tell that a row was not in an input, where they lie outside of its values; by default those of
    /// dates and timestamps.
    pub dates: Option<Vec<String>>,
    /// The sensitive columns whose values change between the releases, as everybody knows.
    pub changes: Vec<String>,
    /// Whether nobody knows whose rows change from one release to the next.
    pub changes_are_unknown: bool,
    /// Whether it is right that fewer than half of the people come back.
    pub accept_new_people: bool,
}

/// What is known of releases that were judged together.
#[derive(Debug)]
pub struct JudgedTogether {
    /// The column that names people.
    pub(crate) person: String,
    /// The columns by which rows were matched.
    pub(crate) row: Vec<String>,
    /// The columns whose values tell that a row was not in an input.
    pub(crate) dates: Vec<String>,
    /// The columns with the role of each in every release, where these differ; `None` where it is not released.
    pub(crate) roles: BTreeMap<String, Vec<Option<Role>>>,
    /// The verdict over all quasi-identifiers, then over each subset that a model names.
    pub(crate) verdicts: Vec<(Option<Vec<String>>, Histories)>,
    /// The people with a row in a history that is not safe, whichever quasi-identifiers the attacker knows.
    pub(crate) people_found: u64,
    /// The place of the first release that is not safe with those before it.
    pub(crate) broken_by: Option<usize>,
    /// For each release its models, in words.
    pub(crate) models: Vec<Vec<String>>,
    /// For each release the rows without a person.
    pub(crate) rows_without_person: Vec<u64>,
    /// Why the verdict cannot be trusted, in whole sentences.
    pub(crate) cannot_tell: Vec<String>,
}

/// A release that was opened with its input.
struct Opened {
    shown: String,
    _local: LocalRelease,
    loaded: Loaded,
    content: Content,
    written: DataFrame,
}

/// Judges releases together, in the order in which they were published.
///
/// # Errors
/// A policy error for fewer than two releases, or columns that cannot be compared; an unmet error for a release that is not
/// what its record says, or whose input is another one; a data error when something cannot be read or memory runs out.
pub async fn judge_together(
    run: &Run,
    releases: &[ReleaseOfInput],
    same: &SamePeople,
) -> Result<JudgedTogether> {
    if !(2..=MOST_RELEASES).contains(&releases.len()) {
        return Err(Error::policy(format!(
            "expected 2 to {MOST_RELEASES} releases, found {}",
            releases.len()
        )));
    }
    run.progress.begin(Phase::Verify, 0);
    let mut opened = Vec::with_capacity(releases.len());
    for release in releases {
        opened.push(Opened::open(run, release).await?);
    }
    let person = person_of(&opened, same)?;
    let row = row_of(&opened, same)?;
    let same_types: Vec<String> = [std::slice::from_ref(&person), row.as_slice()].concat();
    check_types(&opened, &same_types)?;
    let roles: Vec<BTreeMap<String, Role>> = opened.iter().map(Opened::roles).collect();
    let dates = dates_of(&opened, same)?;
    check_changes(&roles, &same.changes)?;
    let matching = Matching {
        person: person.clone(),
        row: row.clone(),
        changes: same.changes.clone(),
        known_changes: if same.row.is_empty() || same.changes_are_unknown {
            Vec::new()
        } else {
            as_is_in_all(&roles)
        },
        dates: dates.clone(),
        key: PseudonymKey::random()?,
    };
    let views = views(&opened);

    let mut judged = JudgedTogether {
        person,
        row,
        roles: differing(&roles),
        verdicts: Vec::new(),
        people_found: 0,
        broken_by: None,
        models: opened.iter().map(Opened::models).collect(),
        rows_without_person: Vec::new(),
        cannot_tell: Vec::new(),
        dates,
    };
    if opened[0].type_of(&judged.person)? == &DataType::Utf8View {
        let inputs: Vec<DataFrame> = opened.iter().map(|release| release.loaded.table.clone()).collect();
        let people = histories::spelled_in_two_ways(&inputs, &matching, &run.stop).await?;
        if people > 0 {
            judged.cannot_tell.push(format!(
                "{} of `{}` differ from one of another input by nothing but spaces, zeros in front or capital letters; write them alike",
                plural(people, "person", "people"),
                judged.person
            ));
        }
    }
    let session = run.resources.session(Rules::new())?;
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(&session, "histories"));
    let mut expected = Vec::with_capacity(opened.len());
    for release in &opened {
        let of_release = release.content.judge.shown(&release.loaded.policy, &budget)?;
        expected.push(of_release.ok_or_else(|| {
            let method = &release.loaded.policy.spec.method.name;
            let why =
                format!("`{method}` shows no classes that could be compared with those of another release");
            Error::policy(why).at(&release.shown)
        })?);
    }
    let is_quasi = |column: &String| roles.iter().any(|roles| roles.get(column) == Some(&Role::Quasi));
    let mut shown = Vec::with_capacity(opened.len());
    for ((release, expected), roles) in opened.iter().zip(&expected).zip(&roles) {
        let is_as_is = |(name, role): (&String, &Role)| (*role != Role::Quasi).then(|| name.clone());
        let member = Member {
            session: &release.loaded.session,
            input: release.loaded.table.clone(),
            output: as_texts(release.written.clone(), &release.loaded.policy.written_columns())?,
            expected,
            known_elsewhere: roles.iter().filter_map(is_as_is).filter(is_quasi).collect(),
        };
        shown.push(ShownRows::read(&member, &matching, &views, &run.stop).await?);
    }
    judged.rows_without_person = shown.iter().map(|rows| rows.rows_without_person).collect();
    let mut people_found = PeopleFound::default();
    for (view, over) in views.into_iter().enumerate() {
        let verdict = histories::judge(&session, &shown, view, &mut people_found, &run.stop).await?;
        if !verdict.are_safe() {
            let first = first_unsafe(&session, &shown, view, run).await?;
            judged.broken_by = Some(judged.broken_by.map_or(first, |known| known.min(first)));
        }
        judged.verdicts.push((over, verdict));
    }
    judged.people_found = people_found.count();
    for (of_release, release) in releases.iter().zip(&opened) {
        of_release.input.still_the_same(run).map_err(|error| error.at(&release.shown))?;
    }
    judged.check_matching(!same.row.is_empty());
    if !same.accept_new_people {
        judged.check_returning(releases);
    }
    Ok(judged)
}

/// Returns the place of the first release that is not safe with those before it, where all together are not.
async fn first_unsafe(
    session: &SessionContext,
    shown: &[ShownRows<'_>],
    view: usize,
    run: &Run,
) -> Result<usize> {
    let mut people_found = PeopleFound::default();
    for several in 2..shown.len() {
        let verdict =
            histories::judge(session, &shown[..several], view, &mut people_found, &run.stop).await?;
        if !verdict.are_safe() {
            return Ok(several - 1);
        }
    }
    Ok(shown.len() - 1)
}

impl JudgedTogether {
    /// Returns the verdict over all quasi-identifiers.
    pub(crate) fn over_all(&self) -> Option<&Histories> {
        self.verdicts.iter().find(|(over, _)| over.is_none()).map(|(_, verdict)| verdict)
    }

    /// Returns whether every history is safe, whatever the attacker knows.
    pub(crate) fn are_safe(&self) -> bool {
        self.verdicts.iter().all(|(_, verdict)| verdict.are_safe())
    }

    /// Returns the text of a model that fails.
    pub(crate) fn model(&self, failed: &FailedModel) -> &str {
        let of_release = self.models.get(failed.release);
        of_release.and_then(|models| models.get(failed.model)).map_or("", String::as_str)
    }

    /// Looks for inputs in which too few people come back to believe that their names lasted.
    fn check_returning(&mut self, releases: &[ReleaseOfInput]) {
        let Some(Histories { returning, .. }) = self.over_all() else { return };
        let few = returning.iter().zip(&releases[1..]).filter(|(returning, _)| returning.are_few());
        let few = few.map(|(returning, release)| {
            format!(
                "{} of {} are in the input of {} and in one before it; if `{}` was numbered anew, nobody can be found again; if these \
                 are other people, say so (accept new people)",
                returning.both,
                plural(returning.most(), "person", "people"),
                release.place.out(),
                self.person
            )
        });
        let few: Vec<String> = few.collect();
        self.cannot_tell.extend(few);
    }

    /// Looks for rows that cannot be told apart.
    fn check_matching(&mut self, is_row_named: bool) {
        let Some(Histories { repeated, ambiguous, .. }) = self.over_all() else { return };
        let (repeated, ambiguous) = (*repeated, *ambiguous);
        let by = self.row.join(", ");
        if is_row_named && repeated > 0 {
            self.cannot_tell.push(format!(
                "{by} should tell the rows of a person apart, and do not: {repeated} rows repeat others of an input; name more columns"
            ));
        } else if ambiguous > 0 {
            self.cannot_tell.push(format!(
                "{ambiguous} rows are equal in all that every release shows, but in different classes of one, so nobody can say which \
                 of them is which; name the columns that tell the rows of a person apart"
            ));
        }
    }
}

impl Opened {
    async fn open(run: &Run, release: &ReleaseOfInput) -> Result<Self> {
        let ReleaseOfInput { place, input } = release;
        let shown = place.out().to_string();
        let local = LocalRelease::read(place, Needed::All, &run.stop)?;
        let public = checked_record(local.out()).map_err(|error| local.named(error).at(&shown))?;
        let private = local.private_record(&public)?.ok_or_else(|| {
            let why =
                format!("the private record {} is missing, or of another release", local.private_place());
            Error::policy(why).at(&shown)
        })?;
        if !has_bytes_of(input, &private, run)? {
            let why = format!("`{}` is not the input that it was made of, byte for byte", input.name());
            return Err(Error::unmet(why).at(&shown));
        }
        Self::with_records(run, input, local, &public, &private).await.map_err(|error| error.at(shown))
    }

    async fn with_records(
        run: &Run,
        input: &Source,
        local: LocalRelease,
        public: &PublicRecord,
        private: &PrivateRecord,
    ) -> Result<Self> {
        let spec = PolicySpec::parse(&private.policy)?;
        let policy = PolicySource { spec: &spec, files: &private.hierarchies };
        let loaded = opened_again(run, input, &policy, Some(private)).await?;
        let tables = read_tables(&loaded.session, local.out(), public)?;
        let records = Records { public, private: Some(private), written: &tables };
        let content = kind_row(loaded.policy.kind).read(&loaded.policy, loaded.schema(), &records).await?;
        let written = tables.into_iter().next().ok_or_else(|| Error::internal("histories: no table"))?;
        Ok(Self { shown: local.shown().to_owned(), _local: local, loaded, content, written })
    }

    fn roles(&self) -> BTreeMap<String, Role> {
        self.loaded.policy.released().map(|(name, role)| (name.to_owned(), role)).collect()
    }

    fn models(&self) -> Vec<String> {
        self.loaded.policy.requirements.iter().map(Requirement::text).collect()
    }

    /// Returns the type of a column of the input.
    fn type_of(&self, column: &str) -> Result<&DataType> {
        let field = self.loaded.schema().field_with_name(column);
        let missing = |_| Error::policy(format!("its input has no column `{column}`")).at(&self.shown);
        field.map(Field::data_type).map_err(missing)
    }
}

/// Returns the column that names people in all inputs.
fn person_of(releases: &[Opened], same: &SamePeople) -> Result<String> {
    if let Some(person) = &same.person {
        return Ok(person.clone());
    }
    let named: BTreeSet<Option<&str>> =
        releases.iter().map(|release| release.loaded.policy.individual()).collect();
    match named.into_iter().collect::<Vec<_>>().as_slice() {
        [Some(person)] => Ok((*person).to_owned()),
        _ => Err(Error::policy(
            "the policies do not name one individual column; say which column names the person of a row in all inputs",
        )
        .at("--person")),
    }
}

/// Returns the columns by which the rows of a person are matched.
fn row_of(releases: &[Opened], same: &SamePeople) -> Result<Vec<String>> {
    if !same.row.is_empty() {
        return Ok(same.row.clone());
    }
    let Some((first, others)) = releases.split_first() else { return Ok(Vec::new()) };
    let others: Vec<BTreeMap<String, Role>> = others.iter().map(Opened::roles).collect();
    let in_all = first.roles().into_keys().filter(|name| others.iter().all(|roles| roles.contains_key(name)));
    let in_all: Vec<String> = in_all.collect();
    match in_all.is_empty() {
        true => Err(Error::policy("the releases have no column in common")),
        false => Ok(in_all),
    }
}

/// Checks that columns have one type in all inputs: 7 is not `007`.
fn check_types(releases: &[Opened], columns: &[String]) -> Result<()> {
    columns
        .iter()
        .try_for_each(|column| releases.iter().try_for_each(|release| release.type_of(column).map(|_| ())))?;
    check_types_where_they_are(releases, columns)
}

/// Checks that columns have one type in the inputs that have them.
fn check_types_where_they_are(releases: &[Opened], columns: &[String]) -> Result<()> {
    for column in columns {
        let mut first: Option<(&DataType, &str)> = None;
        for release in releases {
            let Ok(data_type) = release.type_of(column) else { continue };
            match first {
                Some((known, of)) if known != data_type => {
                    return Err(Error::policy(format!(
                        "column `{column}` is {data_type} here, and {known} in the input of {of}, so the rows of one person cannot be \
                         found in both; write it alike, or leave it out by naming others"
                    ))
                    .at(&release.shown));
                }
                Some(_) => {}
                None => first = Some((data_type, &release.shown)),
            }
        }
    }
    Ok(())
}

/// Returns the released columns whose values tell that a row was not in an input.
fn dates_of(releases: &[Opened], same: &SamePeople) -> Result<Vec<String>> {
    let roles: Vec<BTreeMap<String, Role>> = releases.iter().map(Opened::roles).collect();
    if let Some(dates) = &same.dates {
        let unreleased = dates.iter().find(|name| roles.iter().all(|roles| !roles.contains_key(*name)));
        return match unreleased {
            Some(name) => Err(Error::policy(format!("no release has a column `{name}`")).at("--dates")),
            None => check_types_where_they_are(releases, dates).map(|()| dates.clone()),
        };
    }
    let mut dates = BTreeSet::new();
    for (release, roles) in releases.iter().zip(&roles) {
        for name in roles.keys() {
            if matches!(release.type_of(name)?, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..))
            {
                dates.insert(name.clone());
            }
        }
    }
    let dates: Vec<String> = dates.into_iter().collect();
    check_types_where_they_are(releases, &dates)?;
    Ok(dates)
}

/// Returns the columns that all releases show as they are.
fn as_is_in_all(roles: &[BTreeMap<String, Role>]) -> Vec<String> {
    let Some((first, others)) = roles.split_first() else { return Vec::new() };
    let is_as_is = |roles: &BTreeMap<String, Role>, name: &String| {
        roles.get(name).is_some_and(|role| *role != Role::Quasi)
    };
    let names =
        first.keys().filter(|name| is_as_is(first, name) && others.iter().all(|roles| is_as_is(roles, name)));
    names.cloned().collect()
}

/// Checks that the columns whose values change are sensitive ones of some release.
fn check_changes(roles: &[BTreeMap<String, Role>], changes: &[String]) -> Result<()> {
    let is_sensitive = |name: &&String| roles.iter().any(|roles| roles.get(*name) == Some(&Role::Sensitive));
    match changes.iter().find(|name| !is_sensitive(name)) {
        Some(name) => {
            Err(Error::policy(format!("no release has a sensitive column `{name}`")).at("--changes"))
        }
        None => Ok(()),
    }
}

/// Returns the columns that do not have one role in all releases.
fn differing(roles: &[BTreeMap<String, Role>]) -> BTreeMap<String, Vec<Option<Role>>> {
    let names: BTreeSet<&String> = roles.iter().flat_map(BTreeMap::keys).collect();
    let of_name = |name: &String| roles.iter().map(|roles| roles.get(name).copied()).collect::<Vec<_>>();
    let all = names.into_iter().map(|name| (name.clone(), of_name(name)));
    all.filter(|(_, roles)| roles.windows(2).any(|pair| pair[0] != pair[1])).collect()
}

/// Returns what an attacker may know: all quasi-identifiers, and each subset that a model names.
fn views(releases: &[Opened]) -> Vec<View> {
    let requirements = releases.iter().flat_map(|release| &release.loaded.policy.requirements);
    let is_of_classes =
        |requirement: &&Requirement| !matches!(requirement.model.needs(), Needs::Population | Needs::Table);
    let subsets = requirements.filter(is_of_classes).map(|requirement| requirement.quasi.clone());
    subsets.chain([None]).collect::<BTreeSet<View>>().into_iter().collect()
}
