//! What `kanon check` answers: whether models hold on an unchanged table.

use serde::Serialize;

use super::Answer;
use super::sentences::{add_doubts, add_homogeneous, add_refusal, and_without_one, reached};
use crate::class::ClassSizesBuilder;
use crate::engine::Run;
use crate::error::{Error, ErrorCode, Result, nearest};
use crate::input::Loaded;
use crate::model::{Needs, Quantity, Requirement, SeenClass, SensitiveColumn, looked_at};
use crate::plural::{grouped, individuals, plural, rows};
use crate::progress::Phase;
use crate::propose::{ColumnToCheck, oddities};
use crate::release::doubts::of_individuals;
use crate::release::profile::{SeenAll, for_every_class};
use crate::render::{Document, plain};
use crate::role::Role;
use crate::verify::homogeneous::Homogeneous;

/// Whether models hold on a table, by its quasi-identifiers as they are.
#[derive(Debug, Clone, Serialize)]
pub struct CheckAnswer {
    /// The models.
    pub models: Vec<CheckedModel>,
    /// The number of classes.
    pub classes: u64,
    /// The number of rows.
    pub rows: u64,
    /// The number of individuals.
    pub individuals: u64,
    /// The number of rows whose individual is NULL; 0 where rows are counted.
    pub rows_without_individual: u64,
    /// For each sensitive column the classes that share one value of it.
    pub homogeneous: Vec<Homogeneous>,
    /// The reason why the policy protects no individual, so that `kanon release` refuses it; `null` for other policies.
    pub warning: Option<String>,
    /// What is doubtful about the policy and its input though nothing is refused, as the lines `warning` say it.
    pub doubts: Vec<String>,
    /// What is odd about the cells of the columns that the policy or the arguments name, such as days in the future, with
    /// counts.
    pub notes: Vec<String>,
    /// The quasi-identifiers.
    #[serde(skip)]
    #[doc(hidden)]
    pub quasi: Vec<String>,
    /// The column of individuals, if they are counted.
    #[serde(skip)]
    #[doc(hidden)]
    pub individual: Option<String>,
}

/// A model, and what a table reaches.
#[derive(Debug, Clone, Serialize)]
pub struct CheckedModel {
    /// The model's name.
    pub model: String,
    /// The sensitive column that the model looks at, if it needs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitive: Option<String>,
    /// The level of the column's hierarchy whose labels are compared, if it is not the values themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<usize>,
    /// The only values that the model bounds, if it does not bound all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
    /// The quasi-identifiers over which the model is judged, if it is a subset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quasi: Option<Vec<String>>,
    /// The required bound.
    #[serde(serialize_with = "plain")]
    pub required: f64,
    /// The worst value of all classes.
    #[serde(serialize_with = "plain")]
    pub reached: f64,
    /// Whether all classes satisfy the model.
    pub holds: bool,
    /// The number of classes that do not.
    pub failing_classes: u64,
    /// The number of rows in these classes.
    pub failing_rows: u64,
    /// The model with its parameters and its columns, such as `l_diversity(2, diagnosis)`.
    #[serde(skip)]
    #[doc(hidden)]
    pub text: String,
    /// The reason why the requirement promises nothing, if that is so.
    #[serde(skip)]
    #[doc(hidden)]
    pub why_vacuous: Option<String>,
}

/// Checks whether the models of its policy hold on an opened table as it is.
///
/// # Errors
/// A policy error for a model that cannot be judged on the table; a data error for a table without rows, one that cannot be
/// read, or when memory runs out; an interruption.
pub async fn check(run: &Run, loaded: &Loaded) -> Result<CheckAnswer> {
    check_required(run, loaded, Vec::new(), "").await
}

/// Checks like [`check`] the `required` models, or those of the policy if there are none.
/// Errors about a required one begin with the `place` where it stands, such as `--require`.
///
/// The table must have been opened with [`columns_of_numbers`] as numbers.
///
/// # Errors
/// Those of [`check`].
pub async fn check_required(
    run: &Run,
    loaded: &Loaded,
    required: Vec<Requirement>,
    place: &str,
) -> Result<CheckAnswer> {
    run.progress.begin(Phase::Profile, 0);
    let (session, table, policy) = (&loaded.session, &loaded.table, &loaded.policy);
    let required = required.into_iter().map(|required| completed(required, loaded, place));
    let required: Vec<Requirement> = required.collect::<Result<_>>()?;
    let models = if required.is_empty() { &policy.requirements } else { &required };
    if let Some(model) = models.iter().find(|model| model.model.needs() == Needs::Population) {
        let why = "looks at a population, which kanon check does not read; use kanon search, or the SQL function of its name";
        return Err(Error::policy(format!("{} {why}", model.text())));
    }
    let names: Vec<&str> = policy.quasi.iter().map(|quasi| quasi.name.as_str()).collect();
    let counted = counted(models, loaded, &names, place)?;
    let individual = policy.individual();
    let mut judged: Vec<Judged> = models.iter().map(|model| Judged::new(model, &counted)).collect();
    let (mut classes, mut all_rows, mut unowned) = (0, 0, 0);
    let mut see = |class: &SeenClass<'_>| {
        classes += 1;
        all_rows += class.rows;
        unowned += class.unowned_rows;
        let of_classes = judged.iter_mut().filter(|judged| judged.requirement.is_over_all_quasi());
        of_classes.for_each(|judged| judged.add(class));
    };
    let all = for_every_class(session, table, &names, &counted, individual, &run.stop, &mut see);
    let SeenAll { individuals, mut homogeneous } = all.await?;
    homogeneous.retain(|one| policy.preferences().all(|preference| preference != one.column));
    for judged in &mut judged {
        judged.judge_table();
        let Some(quasi) = &judged.requirement.quasi else { continue };
        let names: Vec<&str> = quasi.iter().map(String::as_str).collect();
        let mut see = |class: &SeenClass<'_>| judged.add(class);
        for_every_class(session, table, &names, &counted, individual, &run.stop, &mut see).await?;
    }
    if classes == 0 {
        return Err(Error::data("the input has no rows").coded(ErrorCode::EmptyInput));
    }
    Ok(CheckAnswer {
        models: judged.iter().map(Judged::answer).collect(),
        classes,
        rows: all_rows,
        individuals: individuals.unwrap_or(all_rows),
        rows_without_individual: unowned,
        homogeneous,
        warning: policy.promises_nothing(),
        doubts: of_individuals(run, loaded, unowned, all_rows).await?,
        notes: notes(run, loaded, &counted).await?,
        quasi: names.into_iter().map(str::to_owned).collect(),
        individual: individual.map(str::to_owned),
    })
}

/// Returns the columns whose values models compare as numbers, for
/// [`with_numbers`](crate::policy::PolicySpec::with_numbers).
pub fn columns_of_numbers(models: &[Requirement]) -> Vec<String> {
    let reads = |model: &&Requirement| matches!(model.model.needs(), Needs::Order | Needs::Integers);
    let columns = models.iter().filter(reads).filter_map(|model| model.sensitive.as_ref());
    columns.map(|column| column.name().to_owned()).collect()
}

impl Answer for CheckAnswer {
    fn document(&self) -> Document {
        let mut document = Document::default();
        let classes = plural(self.classes, "class", "classes");
        document.fact("read", format!("{} in {classes} over {}", rows(self.rows), self.quasi.join(", ")));
        add_refusal(&mut document, self.warning.as_deref());
        add_doubts(&mut document, &self.doubts);
        self.notes.iter().for_each(|note| document.note(note));
        for model in &self.models {
            document.fact(if model.holds { "holds" } else { "FAILS" }, model.sentence());
            model.why_vacuous.iter().for_each(|why| document.note(why));
        }
        add_homogeneous(&mut document, &self.homogeneous, self.individual.is_some());
        let counted = match &self.individual {
            Some(name) => format!(
                "{} by `{name}`{}",
                individuals(self.individuals),
                and_without_one(self.rows_without_individual)
            ),
            None => format!("in rows: each of the {} counts as an individual", grouped(self.rows)),
        };
        document.fact("counted", counted);
        document
    }

    fn holds(&self) -> bool {
        self.models.iter().all(|model| model.holds)
    }
}

impl CheckedModel {
    /// Describes what is required, what was reached, and the classes that fail.
    fn sentence(&self) -> String {
        let sentence = format!("{} required, {} reached", self.text, reached(self.reached));
        if self.failing_classes == 0 {
            return sentence;
        }
        let classes = plural(self.failing_classes, "class", "classes");
        let fail = if self.failing_classes == 1 { "fails" } else { "fail" };
        format!("{sentence}; {classes} with {} {fail}", rows(self.failing_rows))
    }
}

/// Returns what is odd about the cells of the columns that are counted or released.
async fn notes(run: &Run, loaded: &Loaded, counted: &[(SensitiveColumn, bool)]) -> Result<Vec<String>> {
    let is_read = |role: Role| !matches!(role, Role::Identifier | Role::Text);
    let of_policy = loaded.policy.columns.iter().filter(|(_, role)| is_read(*role));
    let mut looked: Vec<ColumnToCheck> = of_policy
        .map(|(name, role)| ColumnToCheck { name: name.clone(), is_individual: *role == Role::Individual })
        .collect();
    for (column, _) in counted {
        if !looked.iter().any(|looked| looked.name == column.name()) {
            looked.push(ColumnToCheck { name: column.name().to_owned(), is_individual: false });
        }
    }
    let notes = oddities(&loaded.table, &looked, run).await?;
    let named = looked.iter().zip(notes).flat_map(|(looked, notes)| {
        notes.into_iter().map(|note| format!("`{}`: {note}", looked.name)).collect::<Vec<_>>()
    });
    Ok(named.collect())
}

/// Gives a requirement from outside the policy the hierarchy that its model looks at, and checks that its values have an order.
fn completed(mut requirement: Requirement, loaded: &Loaded, place: &str) -> Result<Requirement> {
    let Some(column) = requirement.sensitive.take() else { return Ok(requirement) };
    let field = loaded.schema().field_with_name(column.name()).ok();
    requirement.sensitive = Some(column.completed(&loaded.policy.sensitive_hierarchies));
    let refused = |why: &str| Err(Error::policy(format!("{place} {}: {why}", requirement.text())));
    if !requirement.is_complete() {
        return refused(
            "looks at the hierarchy of its sensitive column; give --policy FILE with a `hierarchy` in the line of that column",
        );
    }
    if field.is_some_and(|field| requirement.compares_letters(field.data_type())) {
        return refused(
            "compares values by their order, and its column is text, whose order is that of its letters; cast it to a number or \
             a date, or require t_closeness",
        );
    }
    Ok(requirement)
}

/// Returns what is counted of the sensitive columns: those of the policy as they are, then what
/// else the models see; and whether a model reads the values of the whole table.
fn counted(
    models: &[Requirement],
    loaded: &Loaded,
    quasi: &[&str],
    place: &str,
) -> Result<Vec<(SensitiveColumn, bool)>> {
    let schema = loaded.schema();
    let looked_at = looked_at(models.iter());
    let of_policy = loaded.policy.sensitive().map(|name| (SensitiveColumn::from(name), false));
    let mut all: Vec<(SensitiveColumn, bool)> = of_policy.collect();
    for (column, _) in &looked_at {
        let name = column.name();
        if schema.field_with_name(name).is_err() {
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            let close = nearest(name, &names);
            return Err(Error::policy(format!("{place}: the input has no column `{name}`; {close}")));
        }
        if quasi.contains(&name) {
            let why = format!("{place}: `{name}` is a quasi-identifier; each class has one value of it");
            return Err(Error::policy(why));
        }
        if !all.iter().any(|(known, _)| known.name() == name) {
            all.push((SensitiveColumn::from(name), false));
        }
    }
    for (column, reads_whole) in looked_at {
        match all.iter_mut().find(|(known, _)| *known == column) {
            Some(known) => *known = (column, reads_whole),
            None => all.push((column, reads_whole)),
        }
    }
    Ok(all)
}

/// The running result of one model after some classes.
struct Judged<'a> {
    requirement: &'a Requirement,
    /// The index of its column among the counted ones.
    column: Option<usize>,
    worst: Option<Quantity>,
    failing_classes: u64,
    failing_rows: u64,
    /// The sizes of the classes, for a table model.
    sizes: Option<ClassSizesBuilder>,
    /// Whether all classes together fail.
    table_fails: bool,
}

impl<'a> Judged<'a> {
    fn new(requirement: &'a Requirement, counted: &[(SensitiveColumn, bool)]) -> Self {
        let of = requirement.sensitive.as_ref();
        let column = counted.iter().position(|(column, _)| Some(column) == of);
        let is_of_table = requirement.model.needs() == Needs::Table;
        Self {
            requirement,
            column,
            worst: None,
            failing_classes: 0,
            failing_rows: 0,
            sizes: is_of_table.then(ClassSizesBuilder::default),
            table_fails: false,
        }
    }

    fn add(&mut self, class: &SeenClass<'_>) {
        if let Some(sizes) = &mut self.sizes {
            return sizes.add(class.size, class.individuals);
        }
        let model = &self.requirement.model;
        let value = model.value(&class.of_column(self.column));
        self.worst = model.reached(&mut self.worst.into_iter().chain([value]));
        if !self.requirement.holds(class.size, value) {
            self.failing_classes += 1;
            self.failing_rows += class.rows;
        }
    }

    /// Judges all classes together, for a table model.
    fn judge_table(&mut self) {
        let model = &self.requirement.model;
        if let Some(sizes) = self.sizes.take() {
            self.worst = model.table_value(&sizes.finish());
            self.table_fails = self.worst.is_some_and(|value| !model.holds(value));
        }
    }

    fn answer(&self) -> CheckedModel {
        let Self { requirement, failing_classes, failing_rows, .. } = *self;
        let column = requirement.sensitive.as_ref();
        CheckedModel {
            model: requirement.model.doc().name.to_owned(),
            sensitive: column.map(|column| column.name().to_owned()),
            level: column.map(SensitiveColumn::level).filter(|level| *level > 0),
            values: column.and_then(SensitiveColumn::values).map(<[String]>::to_vec),
            quasi: requirement.quasi.clone(),
            required: requirement.model.required().to_f64(),
            reached: self.worst.map_or(f64::NAN, Quantity::to_f64),
            holds: failing_classes == 0 && !self.table_fails,
            failing_classes,
            failing_rows,
            text: requirement.text(),
            why_vacuous: requirement.why_vacuous(),
        }
    }
}
