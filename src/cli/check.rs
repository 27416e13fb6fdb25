//! `kanon check`: checks whether the models hold on an unchanged table.

use clap::Args;
use serde_json::json;

use super::numbers::{
    and_without_one, doubt_lines, grouped, homogeneous_lines, integer, plural, reached, rows, warning_line,
};
use super::source::{Columns, Set, find_table, parse_requirement, quasi_of_release, record_of, release_note};
use super::{Done, in_shell};
use crate::class::ClassSizesBuilder;
use crate::engine::Run;
use crate::error::{Code, Error, Result, nearest};
use crate::input::{Loaded, open};
use crate::model::{
    Needs, Quantity, Requirement, SeenClass, SensitiveColumn, k_anonymity::KAnonymity, looked_at,
};
use crate::progress::Phase;
use crate::propose::{ColumnToCheck, oddities};
use crate::release::doubts::of_individuals;
use crate::release::profile::{SeenAll, for_every_class};
use crate::release::publish::record::plain_number;
use crate::role::Role;

/// Check whether an unchanged table satisfies privacy models.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon check patients.parquet --quasi age,sex,zip --k 5
  kanon check visits.parquet --quasi age,sex,zip --individual patient_id --k 5
  kanon check 'lake/*.parquet' --policy patients.toml --format json
  kanon check patients_safe --quasi age,sex,zip --k 10 --require 'l_diversity(2, diagnosis)'

With --individual, sizes count the individuals of a class, one class at a time. A person's rows together may still
single that person out: `kanon link TABLE TABLE --on COLUMNS --individual ID --individual-of-b ID` is the attack that shows it.")]
pub(crate) struct Check {
    /// A file, folder or glob of Parquet, CSV, JSON lines or Arrow files.
    input: String,
    #[command(flatten)]
    columns: Columns,
    /// Require k-anonymity with this k, instead of the policy's models.
    #[arg(long, allow_negative_numbers = true, value_parser = integer::<u64>(1..=u64::MAX / 2))]
    k: Option<u64>,
    /// Require a model, such as 'k_anonymity(5)' or 'l_diversity(2, diagnosis)'; may be repeated. A column with
    /// a comma has quotes as in CSV: 'l_diversity(2, "a,b")'.
    #[arg(long, value_name = "MODEL")]
    require: Vec<String>,
}

impl Check {
    pub(super) fn set(&self) -> &Set {
        self.columns.set()
    }

    pub(super) async fn run(self, run: &Run) -> Result<Done> {
        let mut models: Vec<Requirement> = Vec::new();
        if let Some(k) = self.k {
            // The message begins with `k: `.
            let model = KAnonymity::new(k).map_err(|error| Error::policy(format!("--{error}")))?;
            models.push(Requirement::of_sizes(model));
        }
        for text in &self.require {
            models.push(parse_requirement(text)?);
        }
        if models.is_empty() && !self.columns.has_policy() {
            return Err(Error::policy(
                "nothing to check: give --k 5, --require 'l_diversity(2, diagnosis)' or --policy FILE",
            ));
        }
        let policy = self.columns.open(&self.input, || quasi_of_release(&self.input))?;
        let input = find_table(&self.input)?;
        run.progress.begin(Phase::Profile, 0);
        let spec = policy.spec.with_numbers(numbers(&models));
        let loaded = open(run, &input, &spec, &policy.folder).await?;
        let names: Vec<&str> = loaded.policy.quasi.iter().map(|q| q.name.as_str()).collect();
        for model in &mut models {
            complete(model, &loaded)?;
        }
        let models = if models.is_empty() { &loaded.policy.requirements } else { &models };
        if let Some(model) = models.iter().find(|model| model.model.needs() == Needs::Population) {
            let why = "looks at a population, which kanon check does not read; use kanon search, or the SQL function of its name";
            return Err(Error::policy(format!("{} {why}", model.text())));
        }
        let counted = counted(models, &loaded, &names)?;
        let individual = loaded.policy.individual();
        let mut judged: Vec<Judged> = models.iter().map(|model| Judged::new(model, &counted)).collect();
        let (mut classes, mut all_rows, mut unowned) = (0, 0, 0);
        let (session, table) = (&loaded.session, &loaded.table);
        let mut see = |class: &SeenClass<'_>| {
            classes += 1;
            all_rows += class.rows;
            unowned += class.unowned_rows;
            let of_classes = judged.iter_mut().filter(|judged| judged.requirement.is_over_all_quasi());
            of_classes.for_each(|judged| judged.add(class));
        };
        let all = for_every_class(session, table, &names, &counted, individual, &run.stop, &mut see);
        let SeenAll { individuals, mut homogeneous } = all.await?;
        homogeneous.retain(|one| loaded.policy.preferences().all(|preference| preference != one.column));
        for judged in &mut judged {
            judged.judge_table();
            let Some(quasi) = &judged.requirement.quasi else { continue };
            let names: Vec<&str> = quasi.iter().map(String::as_str).collect();
            let mut see = |class: &SeenClass<'_>| judged.add(class);
            for_every_class(session, table, &names, &counted, individual, &run.stop, &mut see).await?;
        }
        if classes == 0 {
            return Err(Error::data("the input has no rows").coded(Code::EmptyInput));
        }

        let mut text = format!(
            "read      {} in {} over {}\n",
            rows(all_rows),
            plural(classes, "class", "classes"),
            names.join(", ")
        );
        // Quasi-identifiers named on the command line are not a policy that a release could follow.
        let warning = if self.columns.has_policy() { loaded.policy.promises_nothing() } else { None };
        let doubts = of_individuals(run, &loaded, unowned, all_rows).await?;
        text += &(warning_line(warning.as_deref()) + &doubt_lines(&doubts));
        let notes = notes(run, &loaded, &counted).await?;
        notes.iter().for_each(|note| text += &format!("note      {note}\n"));
        let all_hold = judged.iter().all(Judged::holds);
        judged.iter().for_each(|judged| text += &judged.describe());
        let judged: Vec<_> = judged.iter().map(Judged::to_json).collect();
        text += &homogeneous_lines(&homogeneous, individual.is_some());
        text += &match (individual, individuals) {
            (Some(name), Some(individuals)) => {
                let individuals = plural(individuals, "individual", "individuals");
                format!("counted   {individuals} by `{name}`{}\n", and_without_one(unowned))
            }
            _ => format!("counted   in rows: each of the {} counts as an individual\n", grouped(all_rows)),
        };
        let record = record_of(&self.input).ok().flatten().filter(|_| individual.is_none());
        text += &record.and_then(|record| release_note(&self.input, &record)).unwrap_or_default();
        if !all_hold {
            text += &self.next();
        }
        let json = json!({
            "models": judged,
            "classes": classes,
            "rows": all_rows,
            "individuals": individuals.unwrap_or(all_rows),
            "rows_without_individual": unowned,
            "homogeneous": homogeneous,
            "warning": warning,
            "doubts": doubts,
            "notes": notes,
        });
        Ok(Done { text, json, holds: all_hold })
    }

    /// Names the command that shows what generalization would do.
    fn next(&self) -> String {
        let policy = self.columns.policy().map(|policy| self.set().with_policy(policy));
        format!(
            "next      kanon search {} {} shows what generalization would do\n",
            in_shell(&self.input),
            policy.as_deref().unwrap_or("--policy POLICY")
        )
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

/// Returns the columns whose values models compare as numbers.
fn numbers(models: &[Requirement]) -> Vec<String> {
    let reads = |model: &&Requirement| matches!(model.model.needs(), Needs::Order | Needs::Integers);
    let columns = models.iter().filter(reads).filter_map(|model| model.sensitive.as_ref());
    columns.map(|column| column.name().to_owned()).collect()
}

/// Gives a requirement of the command line the hierarchy that its model looks at, and checks that
/// its values have an order.
fn complete(requirement: &mut Requirement, loaded: &Loaded) -> Result<()> {
    let Some(column) = requirement.sensitive.take() else { return Ok(()) };
    let field = loaded.schema().field_with_name(column.name()).ok();
    requirement.sensitive = Some(column.completed(&loaded.policy.sensitive_hierarchies));
    if !requirement.is_complete() {
        let why = "looks at the hierarchy of its sensitive column; give --policy FILE with a `hierarchy` in the line of that column";
        return Err(Error::policy(format!("--require {}: {why}", requirement.text())));
    }
    if field.is_some_and(|field| requirement.compares_letters(field.data_type())) {
        let why = "compares values by their order, and its column is text, whose order is that of its letters; cast it to a \
                   number or a date, or require t_closeness";
        return Err(Error::policy(format!("--require {}: {why}", requirement.text())));
    }
    Ok(())
}

/// Returns what is counted of the sensitive columns: those of the policy as they are, then what
/// else the models see; and whether a model reads the values of the whole table.
fn counted(models: &[Requirement], loaded: &Loaded, quasi: &[&str]) -> Result<Vec<(SensitiveColumn, bool)>> {
    let schema = loaded.schema();
    let looked_at = looked_at(models.iter());
    let of_policy = loaded.policy.sensitive().map(|name| (SensitiveColumn::from(name), false));
    let mut all: Vec<(SensitiveColumn, bool)> = of_policy.collect();
    for (column, _) in &looked_at {
        let name = column.name();
        if schema.field_with_name(name).is_err() {
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            let close = nearest(name, &names);
            return Err(Error::policy(format!("--require: the input has no column `{name}`; {close}")));
        }
        if quasi.contains(&name) {
            let why = format!("--require: `{name}` is a quasi-identifier; each class has one value of it");
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
        if !model.holds(value) {
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

    fn holds(&self) -> bool {
        self.failing_classes == 0 && !self.table_fails
    }

    fn reached(&self) -> f64 {
        self.worst.map_or(f64::NAN, Quantity::to_f64)
    }

    fn describe(&self) -> String {
        let holds = if self.holds() { "holds   " } else { "FAILS   " };
        let mut text =
            format!("{holds}  {} required, {} reached", self.requirement.text(), reached(self.reached()));
        if self.failing_classes > 0 {
            let classes = plural(self.failing_classes, "class", "classes");
            let fail = if self.failing_classes == 1 { "fails" } else { "fail" };
            text += &format!("; {classes} with {} {fail}", rows(self.failing_rows));
        }
        let note = self.requirement.why_vacuous();
        text + "\n" + &note.map(|why| format!("note      {why}\n")).unwrap_or_default()
    }

    fn to_json(&self) -> serde_json::Value {
        let mut judged = json!({
            "model": self.requirement.model.doc().name,
            "required": plain_number(self.requirement.model.required().to_f64()),
            "reached": plain_number(self.reached()),
            "holds": self.holds(),
            "failing_classes": self.failing_classes,
            "failing_rows": self.failing_rows,
        });
        if let Some(quasi) = &self.requirement.quasi {
            judged["quasi"] = json!(quasi);
        }
        if let Some(column) = &self.requirement.sensitive {
            judged["sensitive"] = json!(column.name());
            if column.level() > 0 {
                judged["level"] = json!(column.level());
            }
            if let Some(values) = column.values() {
                judged["values"] = json!(values);
            }
        }
        judged
    }
}
