//! `kanon check`: do the models hold on a table as it is?

use clap::Args;
use serde_json::json;

use super::Done;
use super::numbers::{counted, grouped, rows};
use super::source::{Columns, parse_requirement};
use crate::error::{Error, Result};
use crate::measure::plain_number;
use crate::model::{Class, ClassModel, Quantity, k_anonymity::KAnonymity};
use crate::release::input::Input;
use crate::release::profile::class_sizes;
use crate::release::{Phase, Run, open};

/// Check whether a table as it is satisfies privacy models.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon check patients.parquet --quasi age,sex,zip --k 5
  kanon check 'lake/*.parquet' --policy patients.toml --format json
  kanon check patients_safe --quasi age,sex,zip --require 'k_anonymity(10)'")]
pub(crate) struct Check {
    /// A file, folder or glob of Parquet or CSV files.
    input: String,
    #[command(flatten)]
    columns: Columns,
    /// Require k-anonymity with this k, instead of the policy's models.
    #[arg(long)]
    k: Option<u64>,
    /// Require a model, such as 'k_anonymity(5)'; may be repeated.
    #[arg(long, value_name = "MODEL")]
    require: Vec<String>,
}

impl Check {
    pub(super) async fn run(self, run: &Run<'_>) -> Result<Done> {
        let mut models: Vec<Box<dyn ClassModel>> = Vec::new();
        if let Some(k) = self.k {
            models.push(Box::new(KAnonymity::new(k).map_err(|e| e.at("--k"))?));
        }
        for text in &self.require {
            models.push(parse_requirement(text)?);
        }
        if models.is_empty() && !self.columns.has_policy() {
            return Err(Error::policy(
                "say what to check: --k 5, --require 'k_anonymity(5)' or --policy FILE",
            ));
        }
        let policy = self.columns.open()?;
        let input = Input::find(&self.input)?;
        run.listener.begin(Phase::Profile, 0);
        let loaded = open(run.resources, &input, &policy.said, &policy.folder).await?;
        let names: Vec<&str> = loaded.policy.quasi.iter().map(|q| q.name.as_str()).collect();
        let sizes = class_sizes(&loaded.table, &names, run.stop).await?;
        if sizes.classes() == 0 {
            return Err(Error::data("the input has no rows"));
        }
        let models = if models.is_empty() { &loaded.policy.models } else { &models };

        let mut text = format!(
            "read      {} in {} over {}\n",
            rows(sizes.individuals()),
            counted(sizes.classes(), "class", "classes"),
            names.join(", ")
        );
        let mut judged = Vec::new();
        let mut all_hold = true;
        for model in models {
            let (mut failing_classes, mut failing_rows) = (0, 0);
            for (size, classes) in sizes.histogram() {
                if !model.holds(model.value(&Class { size })) {
                    failing_classes += classes;
                    failing_rows += size * classes;
                }
            }
            let mut values = sizes.histogram().map(|(size, _)| model.value(&Class { size }));
            let reached = model.reached(&mut values).map_or(f64::NAN, Quantity::to_f64);
            let holds = failing_classes == 0;
            all_hold &= holds;
            text += &format!(
                "{}  {} required, {reached} reached",
                if holds { "holds   " } else { "FAILS   " },
                model.said()
            );
            if !holds {
                text += &format!(
                    "; {} with {} fail",
                    counted(failing_classes, "class", "classes"),
                    rows(failing_rows)
                );
            }
            text.push('\n');
            judged.push(json!({
                "model": model.doc().name,
                "required": plain_number(model.required().to_f64()),
                "reached": plain_number(reached),
                "holds": holds,
                "failing_classes": failing_classes,
                "failing_rows": failing_rows,
            }));
        }
        if !all_hold {
            text += "next      kanon search INPUT --policy POLICY shows what generalization would do\n";
        }
        text +=
            &format!("counted   in rows: each of the {} counts as a person\n", grouped(sizes.individuals()));
        let json = json!({
            "models": judged,
            "classes": sizes.classes(),
            "rows": sizes.individuals(),
            "individuals": sizes.individuals(),
        });
        Ok(Done { text, json, holds: all_hold })
    }
}
