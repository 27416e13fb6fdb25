//! `kanon check`: checks whether the models hold on an unchanged table.

use clap::Args;
use serde_json::json;

use super::numbers::{grouped, homogeneous_lines, integer, plural, reached, rows, warning_line};
use super::source::{Columns, parse_requirement, quasi_of_release, record_of, rows_note};
use super::{Done, in_shell};
use crate::engine::Run;
use crate::error::{Code, Error, Result, nearest};
use crate::input::{Input, Loaded, open};
use crate::model::{Quantity, Requirement, is_compared, k_anonymity::KAnonymity};
use crate::progress::Phase;
use crate::release::profile::{SeenAll, for_every_class};
use crate::release::publish::record::plain_number;
use crate::verify::each_class::SeenClass;

/// Check whether an unchanged table satisfies privacy models.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon check patients.parquet --quasi age,sex,zip --k 5
  kanon check visits.parquet --quasi age,sex,zip --individual patient_id --k 5
  kanon check 'lake/*.parquet' --policy patients.toml --format json
  kanon check patients_safe --quasi age,sex,zip --k 10 --require 'l_diversity(2, diagnosis)'")]
pub(crate) struct Check {
    /// A file, folder or glob of Parquet, CSV, JSON lines or Arrow files.
    input: String,
    #[command(flatten)]
    columns: Columns,
    /// Require k-anonymity with this k, instead of the policy's models.
    #[arg(long, allow_negative_numbers = true, value_parser = integer::<u64>(1..=u64::MAX / 2))]
    k: Option<u64>,
    /// Require a model, such as 'k_anonymity(5)' or 'l_diversity(2, diagnosis)'; may be repeated.
    #[arg(long, value_name = "MODEL")]
    require: Vec<String>,
}

impl Check {
    pub(super) async fn run(self, run: &Run<'_>) -> Result<Done> {
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
        let policy = self.columns.open(|| quasi_of_release(&self.input))?;
        let input = Input::find_or_read(&self.input)?;
        run.progress.begin(Phase::Profile, 0);
        let loaded = open(run, &input, &policy.spec, &policy.folder).await?;
        let names: Vec<&str> = loaded.policy.quasi.iter().map(|q| q.name.as_str()).collect();
        let models = if models.is_empty() { &loaded.policy.requirements } else { &models };
        let sensitive = looked_at(models, &loaded, &names)?;
        let individual = loaded.policy.individual();
        let mut judged: Vec<Judged> = models.iter().map(|model| Judged::new(model, &sensitive)).collect();
        let (mut classes, mut all_rows) = (0, 0);
        let (session, table) = (&loaded.session, &loaded.table);
        let mut see = |class: &SeenClass<'_>| {
            classes += 1;
            all_rows += class.rows;
            judged.iter_mut().for_each(|judged| judged.add(class));
        };
        let counted: Vec<_> = sensitive.iter().map(|name| (*name, is_compared(models, name))).collect();
        let all = for_every_class(session, table, &names, &counted, individual, run.stop, &mut see);
        let SeenAll { individuals, homogeneous } = all.await?;
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
        text += &warning_line(warning.as_deref());
        let all_hold = judged.iter().all(Judged::holds);
        judged.iter().for_each(|judged| text += &judged.describe());
        let judged: Vec<_> = judged.iter().map(Judged::to_json).collect();
        text += &homogeneous_lines(&homogeneous, individual.is_some());
        text += &match (individual, individuals) {
            (Some(name), Some(individuals)) => {
                format!("counted   {} by `{name}`\n", plural(individuals, "individual", "individuals"))
            }
            _ => format!("counted   in rows: each of the {} counts as an individual\n", grouped(all_rows)),
        };
        let record = record_of(&self.input).ok().flatten().filter(|_| individual.is_none());
        text += &record.and_then(|record| rows_note(&self.input, &record)).unwrap_or_default();
        if !all_hold {
            text += &self.next();
        }
        let json = json!({
            "models": judged,
            "classes": classes,
            "rows": all_rows,
            "individuals": individuals.unwrap_or(all_rows),
            "homogeneous": homogeneous,
            "warning": warning,
        });
        Ok(Done { text, json, holds: all_hold })
    }

    /// Names the command that shows what generalization would do.
    fn next(&self) -> String {
        let policy = self.columns.policy().map(|policy| in_shell(&policy.display().to_string()));
        format!(
            "next      kanon search {} --policy {} shows what generalization would do\n",
            in_shell(&self.input),
            policy.as_deref().unwrap_or("POLICY")
        )
    }
}

/// Returns the sensitive columns of the policy and those that models look at, each once.
fn looked_at<'a>(models: &'a [Requirement], loaded: &'a Loaded, quasi: &[&str]) -> Result<Vec<&'a str>> {
    let mut all: Vec<&str> = loaded.policy.sensitive().collect();
    let schema = loaded.schema();
    for name in models.iter().filter_map(|model| model.sensitive.as_deref()) {
        if schema.field_with_name(name).is_err() {
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            let close = nearest(name, &names);
            return Err(Error::policy(format!("--require: the input has no column `{name}`; {close}")));
        }
        if quasi.contains(&name) {
            let why = format!("--require: `{name}` is a quasi-identifier; each class has one value of it");
            return Err(Error::policy(why));
        }
        if !all.contains(&name) {
            all.push(name);
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
}

impl<'a> Judged<'a> {
    fn new(requirement: &'a Requirement, sensitive: &[&str]) -> Self {
        let name = requirement.sensitive.as_deref();
        let column = sensitive.iter().position(|column| Some(*column) == name);
        Self { requirement, column, worst: None, failing_classes: 0, failing_rows: 0 }
    }

    fn add(&mut self, class: &SeenClass<'_>) {
        let model = &self.requirement.model;
        let value = model.value(&class.of_column(self.column));
        self.worst = model.reached(&mut self.worst.into_iter().chain([value]));
        if !model.holds(value) {
            self.failing_classes += 1;
            self.failing_rows += class.rows;
        }
    }

    fn holds(&self) -> bool {
        self.failing_classes == 0
    }

    fn reached(&self) -> f64 {
        self.worst.map_or(f64::NAN, Quantity::to_f64)
    }

    fn describe(&self) -> String {
        let holds = if self.holds() { "holds   " } else { "FAILS   " };
        let mut text =
            format!("{holds}  {} required, {} reached", self.requirement.text(), reached(self.reached()));
        if !self.holds() {
            let classes = plural(self.failing_classes, "class", "classes");
            let fail = if self.failing_classes == 1 { "fails" } else { "fail" };
            text += &format!("; {classes} with {} {fail}", rows(self.failing_rows));
        }
        text + "\n"
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
        if let Some(column) = &self.requirement.sensitive {
            judged["sensitive"] = json!(column);
        }
        judged
    }
}
