//! What `kanon release` answers: what was released, what it cost, and what its reader has to know.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::Answer;
use super::sentences::{
    add_as_is, add_doubts, add_exact_quasi, add_homogeneous, add_unique, label_text, limit_text, model_text,
    percent_of, rows_of, steps_by,
};
use crate::engine::PhaseTime;
use crate::measure::ratio;
use crate::plural::{grouped, individuals, percent, plural, rows};
use crate::release::histories::NotShown;
use crate::release::kind::describe::{Describe, Labels};
use crate::release::publish::place::Place;
use crate::release::publish::record::{ModelRecord, PublicRecord, SearchRecord};
use crate::release::{Released, nodes_of};
use crate::render::{Document, Weight, plain_table};
use crate::store::Address;
use crate::verify::as_is::AsIsColumn;

/// A release that was published. It holds raw facts about the input, except for `public`.
#[derive(Debug, Serialize)]
pub struct ReleaseAnswer {
    /// The folder of the release.
    pub folder: String,
    /// The file of the private record.
    pub private_record: String,
    /// The file of the key of pseudonyms, if this run made it; later releases of the same people need it.
    pub new_key: Option<String>,
    /// What has to be known first, in whole sentences, the gravest first.
    pub warnings: Vec<String>,
    /// The public record, as in `_kanon.json`.
    pub public: PublicRecord,
    /// The number of rows in the input.
    pub input_rows: u64,
    /// The number of individuals in the input; `null` where rows are counted.
    pub input_individuals: Option<u64>,
    /// The number of rows of the input whose individual is NULL; `null` where rows are counted.
    pub input_rows_without_individual: Option<u64>,
    /// The number of rows that repeat an earlier row exactly: two equal rows count one.
    pub duplicate_rows: u64,
    /// The number of individuals in the smallest class of the input.
    pub k_before: u64,
    /// The risk measures, by name, of the input before recoding.
    #[serde(serialize_with = "plain_table")]
    pub risk_before: BTreeMap<String, f64>,
    /// How the recoding was found.
    pub search: SearchRecord,
    /// What each quasi-identifier loses, in policy order.
    pub costs: Vec<ColumnCost>,
    /// The number of suppressed rows.
    pub suppressed_rows: u64,
    /// The number of individuals with a suppressed row; `null` where rows are counted.
    pub suppressed_individuals: Option<u64>,
    /// The number of suppressed rows without an individual, which no limit bounds; `null` where rows are counted.
    pub suppressed_rows_without_individual: Option<u64>,
    /// The number of individuals that may be suppressed; rows, where no individuals are counted.
    pub suppression_limit: u64,
    /// For a release that follows others, the people with a row that is not shown, by why; `null` for any other.
    pub not_shown: Option<NotShown>,
    /// The models that compare the classes with the whole input, with what they reached among all its rows.
    pub compared_with_input: Vec<ModelRecord>,
    /// The findings about the columns released as they are.
    pub as_is: Vec<AsIsColumn>,
    /// The phases of the run, in their order.
    pub phases: Vec<PhaseTime>,
    /// The release.
    #[serde(skip)]
    #[doc(hidden)]
    pub released: Released,
    /// The label that all values of a column have, by its name, where that is not `*`.
    #[serde(skip)]
    #[doc(hidden)]
    pub labels: Labels,
    /// The command that compares methods, to be named where the release is coarse.
    #[serde(skip)]
    #[doc(hidden)]
    pub compare_by: Option<String>,
}

/// A release that was there already.
#[derive(Debug, Serialize)]
pub struct UnchangedAnswer {
    /// The folder of the release.
    pub folder: String,
    /// The file of the private record.
    pub private_record: String,
    /// Always `true`.
    pub unchanged: bool,
    /// The public record, as in `_kanon.json`.
    pub public: PublicRecord,
}

impl UnchangedAnswer {
    /// Says what is at a place.
    pub fn of(public: PublicRecord, place: &Place) -> Self {
        let private_record = place.private().map(shown_path).unwrap_or_default();
        Self { folder: shown_path(place.out()), private_record, unchanged: true, public }
    }
}

impl Answer for UnchangedAnswer {
    fn document(&self) -> Document {
        let mut document = Document::default();
        let what = "holds this release already, of the same input, policy and version; nothing was written";
        document.fact("unchanged", format!("{} {what}", self.folder));
        document
    }
}

/// What a quasi-identifier loses.
#[derive(Debug, Clone, Serialize)]
pub struct ColumnCost {
    /// The quasi-identifier.
    pub column: String,
    /// The share of its domain that a value covers, on average over the rows of the input; 1 for a suppressed row.
    pub loss: f64,
}

impl ReleaseAnswer {
    /// Says what was released at a place.
    pub fn of(released: Released, place: &Place) -> Self {
        let Released { public, private, costs, chosen, .. } = &released;
        let cost = |(column, loss): (&str, &f64)| ColumnCost { column: column.to_owned(), loss: *loss };
        let mut answer = Self {
            folder: shown_path(place.out()),
            private_record: place.private().map(shown_path).unwrap_or_default(),
            new_key: released.new_key.as_ref().map(|key| key.display().to_string()),
            warnings: Vec::new(),
            public: public.clone(),
            input_rows: private.input_rows,
            input_individuals: private.input_individuals,
            input_rows_without_individual: private.input_rows_without_individual,
            duplicate_rows: private.duplicate_rows,
            k_before: released.before.min().unwrap_or(0),
            risk_before: private.risk_before.clone(),
            search: private.search.clone(),
            costs: chosen.columns().into_iter().zip(costs).map(cost).collect(),
            suppressed_rows: private.suppressed_rows,
            suppressed_individuals: private.suppressed_individuals,
            suppressed_rows_without_individual: private.suppressed_rows_without_individual,
            suppression_limit: private.suppression_limit,
            not_shown: released.not_shown,
            compared_with_input: private.compared_with_input.clone(),
            as_is: private.as_is.clone(),
            phases: released.phases.clone(),
            labels: released.labels.clone(),
            compare_by: None,
            released,
        };
        answer.warnings = answer.document().warnings();
        let failures = answer.released.warnings.iter();
        answer.warnings.extend(failures.map(|failure| format!("the release is published, but {failure}")));
        answer
    }

    /// Returns what was counted: individuals where they are, else rows.
    fn unit(&self) -> &'static str {
        if self.input_individuals.is_some() { "individuals" } else { "rows" }
    }

    /// Describes the rows that were read.
    fn read(&self) -> String {
        match self.input_individuals {
            Some(individuals) => {
                rows_of(self.input_rows, individuals, self.input_rows_without_individual.unwrap_or_default())
            }
            None => format!("{}; each counts as an individual", rows(self.input_rows)),
        }
    }

    /// Describes how the recoding was found.
    fn search(&self) -> String {
        let search = &self.search;
        match search.nodes {
            None if !self.public.follows().is_empty() => {
                format!("the classes of the earlier releases again, and new ones by {}", search.method)
            }
            None if self.released.private.recoding_of.is_some() => {
                "none: the recoding of the earlier release again".to_owned()
            }
            None => {
                let by = search.best.first().and_then(|best| best.by.as_ref());
                let by = by.map(|by| format!(", least loss by {by}")).unwrap_or_default();
                steps_by(&search.method, search.evaluated) + &by
            }
            Some(nodes) => format!(
                "{}, {} evaluated, {}",
                nodes_of(nodes),
                grouped(search.evaluated),
                if search.proven { "proven best" } else { "not proven best" }
            ),
        }
    }

    /// Adds what the quasi-identifiers show, and what that costs.
    fn add_recoding(&self, document: &mut Document) {
        let Released { public, private, costs, chosen, .. } = &self.released;
        let shows = chosen.describe();
        let is_text = |name: &str| {
            private.input_columns.iter().any(|column| column.column == name && column.data_type == "text")
        };
        let as_text = public.columns().filter(|column| column.data_type == "Utf8" && !is_text(&column.name));
        let as_text: Vec<&str> = as_text.map(|column| column.name.as_str()).collect();
        document.fact("chosen", shows.shown(&self.labels, &as_text));
        for (column, label) in public.recoding.labels_of_joined() {
            document.fact("labels", label_text(column, label));
        }
        document.fact("costs", costs_text(&self.costs, shows, self.suppressed_rows > 0));
        if let Some(lost) = shows.lost(costs) {
            document.fact("lost", lost);
        }
        let is_coarse = costs.iter().sum::<f64>() > COARSE * ratio(costs.len() as u128, 1);
        if let (true, Some(command)) = (is_coarse, &self.compare_by) {
            document.advice("compare", format!("{command}: what other methods keep"));
        }
    }

    /// Describes the rows that are not in the release.
    fn suppressed(&self) -> String {
        let all = self.input_individuals.unwrap_or(self.input_rows);
        let suppressed = self.suppressed_individuals.unwrap_or(self.suppressed_rows);
        let unowned = self.suppressed_rows_without_individual.unwrap_or_default();
        let what = match self.suppressed_individuals {
            Some(individuals) => rows_of(self.suppressed_rows, individuals, unowned),
            None => rows(self.suppressed_rows),
        };
        // Rows without an individual are in no share of individuals.
        let of_rows = match unowned {
            0 => String::new(),
            _ => {
                format!(" of individuals, {} of rows", percent_of(self.suppressed_rows, self.input_rows))
            }
        };
        let share = self.public.statement.as_ref();
        let share = share.map_or(String::new(), |statement| limit_text(statement) + ": ");
        let limit = match self.suppressed_individuals {
            Some(_) => individuals(self.suppression_limit),
            None => rows(self.suppression_limit),
        };
        format!("{what} ({}{of_rows}, limit {share}{limit})", percent_of(suppressed, all))
    }

    /// Describes the models with what they reached.
    fn models(&self) -> String {
        let models = self.public.models.iter().map(|model| {
            let is_it =
                |other: &&ModelRecord| (other.text(), &other.parameters) == (model.text(), &model.parameters);
            let in_input = self.compared_with_input.iter().find(is_it).and_then(|other| other.reached);
            model_text(model, in_input)
        });
        models.collect::<Vec<_>>().join("; ") + self.released.chosen.describe().facts().judged
    }

    /// Describes the files.
    fn wrote(&self) -> String {
        let tables = self.public.tables.iter().map(|table| {
            let out = &self.folder;
            let columns = table.partition_by.iter().map(|name| format!("{name}=*"));
            let folders: String =
                table.folder.clone().into_iter().chain(columns).map(|name| format!("/{name}")).collect();
            let files = match table.files.as_slice() {
                [one] if table.partition_by.is_empty() => format!("{out}{folders}/{}", one.name),
                many => {
                    format!("{out}{folders}/part-*.parquet, {}", plural(many.len() as u64, "file", "files"))
                }
            };
            format!("{files} ({})", rows(table.rows))
        });
        format!("{}, _kanon.json", tables.collect::<Vec<_>>().join(", "))
    }

    /// Returns the risk measure `name` of the input and of the release; 0 where it has no value.
    fn risks(&self, name: &str) -> [f64; 2] {
        [&self.risk_before, &self.public.risk].map(|risks| risks.get(name).copied().unwrap_or_default())
    }
}

impl Answer for ReleaseAnswer {
    fn document(&self) -> Document {
        let Released { sufficient, least_holders, remarks, doubts, .. } = &self.released;
        let mut document = Document::default();
        document.fact("read", self.read());
        add_doubts(&mut document, doubts);
        if self.duplicate_rows > 0 {
            document.fact(
                "copies",
                format!(
                    "{} of another row ({}): intended, or loaded twice?",
                    plural(self.duplicate_rows, "row is an exact copy", "rows are exact copies"),
                    percent_of(self.duplicate_rows, self.input_rows)
                ),
            );
        }
        let [unique_before, unique] = self.risks("sample_uniqueness");
        let [highest_before, highest] = self.risks("prosecutor_risk_max");
        let [_, mean] = self.risks("prosecutor_risk_mean");
        document.fact(
            "before",
            format!(
                "k {}; {} of {} unique on their quasi-identifiers; highest risk {}",
                grouped(self.k_before),
                percent(unique_before),
                self.unit(),
                percent(highest_before),
            ),
        );
        document.fact("search", self.search());
        self.add_recoding(&mut document);
        document.fact("suppressed", self.suppressed());
        document.fact("verified", self.models());
        let follows = self.public.follows();
        if !follows.is_empty() {
            let earlier = plural(follows.len() as u64, "earlier release", "earlier releases");
            document.fact(
                "together",
                format!("safe with {earlier}: all models hold for the rows of every history"),
            );
        }
        let [of_highest, of_mean, of_unique] = [highest, mean, unique].map(percent);
        document.fact("after", format!("highest risk {of_highest}, mean risk {of_mean}, {of_unique} unique"));
        let are_individuals = self.public.individuals.is_some();
        match self.released.chosen.describe().facts().has_exact_quasi {
            true => add_exact_quasi(&mut document, unique),
            false => add_unique(&mut document, unique, &self.public.unique, sufficient, are_individuals),
        }
        add_homogeneous(&mut document, &self.public.homogeneous, are_individuals);
        add_as_is(&mut document, &self.as_is, *least_holders, are_individuals);
        remarks.iter().for_each(|remark| document.warning(Weight::Reveals, remark));
        for (people, why) in self.not_shown.iter().flat_map(NotShown::in_words) {
            document.fact("not shown", format!("{} {why}", individuals(people)));
        }
        document.fact("wrote", self.wrote());
        document.advice(
            "keep",
            format!("{} to yourself: it holds raw facts about the input", self.private_record),
        );
        if let Some(key) = &self.new_key {
            let why = "to yourself: it is new, and later releases of the same people need it (--key)";
            document.advice("keep", format!("{key} {why}"));
        }
        document
    }
}

/// Shows a place without the slash at its end that shell completion adds.
fn shown_path(place: &Address) -> String {
    match place {
        Address::Local(path) => path.components().collect::<PathBuf>().display().to_string(),
        Address::Remote(address) => address.to_string().trim_end_matches('/').to_owned(),
    }
}

/// Above this mean of the columns' losses a release points to other methods.
const COARSE: f64 = 0.3;

/// Describes the quasi-identifiers that lose most: the share of its domain that a value covers, on
/// average.
fn costs_text(costs: &[ColumnCost], shows: &dyn Describe, some_suppressed: bool) -> String {
    const SHOWN: usize = 4;
    const MUCH: f64 = 0.5;
    let mut all: Vec<&ColumnCost> = costs.iter().collect();
    all.sort_by(|a, b| b.loss.total_cmp(&a.loss));
    let count = |least: f64| all.iter().filter(|cost| cost.loss > least).count();
    let shown = count(MUCH).max(SHOWN).min(count(0.0));
    let rest = match count(0.0) - shown {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let text = all.iter().take(shown).map(|cost| (cost.column.as_str(), percent(cost.loss)));
    match text.collect::<Vec<_>>().as_slice() {
        [] => shows.costs_nothing(),
        [(first, share), others @ ..] => {
            let others: String = others.iter().map(|(name, share)| format!(", {name} {share}")).collect();
            let all = if some_suppressed { "; a suppressed row counts as 100 %" } else { "" };
            format!("most: {}{others}{rest}{all}", shows.cost(first, share))
        }
    }
}
