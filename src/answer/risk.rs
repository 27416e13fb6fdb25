//! What `kanon risk` answers: how easily individuals of an unchanged table are found.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray};
use serde::Serialize;

use super::Answer;
use super::sentences::{add_doubts, and_without_one, percent_of};
use super::size_bins::{bars, size_bins};
use crate::class::{ClassSizes, ClassTable, EncodedColumn, QuasiColumn};
use crate::engine::Run;
use crate::error::{Error, Result};
use crate::generalize::Hierarchy;
use crate::input::Loaded;
use crate::measure::sample_uniqueness::SampleUniqueness;
use crate::measure::share_at_risk::ShareAtRisk;
use crate::measure::{RISKS, RiskMeasure};
use crate::parameter::Parameter;
use crate::plural::{grouped, individuals, percent, plural, rows};
use crate::progress::Phase;
use crate::release::doubts::of_individuals;
use crate::release::profile::profile;
use crate::release::risks;
use crate::render::{Document, Table, plain_table};

/// How easily individuals of a table are found, by its quasi-identifiers as they are.
#[derive(Debug, Clone, Serialize)]
pub struct RiskAnswer {
    /// The number of rows.
    pub rows: u64,
    /// The number of individuals.
    pub individuals: u64,
    /// The number of rows whose individual is NULL; 0 where rows are counted.
    pub rows_without_individual: u64,
    /// The number of rows that are `*` or NULL in every quasi-identifier, as after an earlier suppression.
    pub rows_without_quasi: u64,
    /// What is doubtful about the policy and its input though nothing is refused, as the lines `warning` say it.
    pub doubts: Vec<String>,
    /// The number of classes.
    pub classes: usize,
    /// The number of individuals in the smallest class.
    pub k: u64,
    /// The risk measures, by name.
    #[serde(serialize_with = "plain_table")]
    pub risk: BTreeMap<String, f64>,
    /// The number of individuals whose risk exceeds 0.2: a class of theirs has fewer than 5.
    pub individuals_at_risk: u64,
    /// The sizes of the classes, smallest first.
    pub histogram: Vec<ClassesOfSize>,
    /// The risks when one quasi-identifier is left out, for each of them.
    pub without: Vec<RiskWithout>,
    /// The quasi-identifiers.
    #[serde(skip)]
    #[doc(hidden)]
    pub quasi: Vec<String>,
    /// The column of individuals, if they are counted.
    #[serde(skip)]
    #[doc(hidden)]
    pub individual: Option<String>,
    /// What has to be known of the figures, in whole sentences.
    #[serde(skip)]
    #[doc(hidden)]
    pub notes: Vec<String>,
}

/// The classes of one size.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ClassesOfSize {
    /// The number of individuals in each of these classes.
    pub size: u64,
    /// The number of classes of this size.
    pub classes: u64,
    /// The number of individuals whose smallest class has this size; each counts once.
    pub individuals: u64,
}

/// The risks when one quasi-identifier is left out.
#[derive(Debug, Clone, Serialize)]
pub struct RiskWithout {
    /// The quasi-identifier that is left out.
    pub column: String,
    /// The number of individuals in the smallest class.
    pub k: u64,
    /// The share of individuals that are alone in a class.
    pub sample_uniqueness: f64,
    /// The number of individuals whose risk exceeds 0.2.
    pub individuals_at_risk: u64,
}

/// Measures how easily individuals of an opened table are found by its quasi-identifiers as they are. Hierarchies
/// do not matter.
///
/// # Errors
/// A data error for a table without rows or individuals, one that cannot be read, or when memory runs out; an interruption.
pub async fn risk(run: &Run, loaded: &Loaded) -> Result<RiskAnswer> {
    let table = classes_as_is(run, loaded).await?;
    let sizes = ClassSizes::of(&table, table.base());
    let quasi: Vec<String> = loaded.policy.quasi.iter().map(|quasi| quasi.name.clone()).collect();
    let without = quasi.iter().enumerate().map(|(place, column)| {
        let sizes = without_column(&table, place)?;
        Ok(RiskWithout {
            column: column.clone(),
            k: sizes.min().unwrap_or(0),
            sample_uniqueness: SampleUniqueness.value(&sizes).unwrap_or_default(),
            individuals_at_risk: ShareAtRisk::DEFAULT.individuals(&sizes),
        })
    });
    let of_size = |(size, classes, individuals)| ClassesOfSize { size, classes, individuals };
    let rows_without_quasi = hidden_rows(&table);
    let note = format!(
        "{} `*` or NULL in every quasi-identifier, as after an earlier suppression: no individual can be found by them, and the \
         figures below count them all the same",
        plural(rows_without_quasi, "row is", "rows are")
    );
    Ok(RiskAnswer {
        rows: table.total_rows(),
        individuals: sizes.individuals(),
        rows_without_individual: table.unowned_rows(),
        rows_without_quasi,
        doubts: of_individuals(run, loaded, table.unowned_rows(), table.total_rows()).await?,
        classes: table.base().len(),
        k: sizes.min().unwrap_or(0),
        risk: risks(&sizes)?,
        individuals_at_risk: ShareAtRisk::DEFAULT.individuals(&sizes),
        histogram: sizes.histogram().map(of_size).collect(),
        without: without.collect::<Result<_>>()?,
        quasi,
        individual: loaded.policy.individual().map(str::to_owned),
        notes: if rows_without_quasi > 0 { vec![note] } else { Vec::new() },
    })
}

impl Answer for RiskAnswer {
    fn document(&self) -> Document {
        let mut document = Document::default();
        let counted = match &self.individual {
            Some(name) => format!(
                "{} by `{name}`{}",
                individuals(self.individuals),
                and_without_one(self.rows_without_individual)
            ),
            None => "each row counts as an individual".to_owned(),
        };
        let classes = plural(self.classes as u64, "class", "classes");
        let quasi = self.quasi.join(", ");
        document.fact("read", format!("{} in {classes} over {quasi}; {counted}", rows(self.rows)));
        document.gap();
        add_doubts(&mut document, &self.doubts);
        for note in &self.notes {
            document.note(note);
            document.gap();
        }
        document.table(self.measures());
        document.gap();
        document.table(self.class_sizes());
        document.gap();
        document.table(self.table_without());
        document
    }
}

impl RiskAnswer {
    /// Returns a table of the measures, with their constants and what they mean.
    fn measures(&self) -> Table {
        let mut table = Table::default().texts("", 0, 27).numbers("", 1, 9).texts("", 3, 0);
        for row in RISKS {
            let value = self.risk.get(row.doc.name).copied().unwrap_or_default();
            let shown = if row.is_share { percent(value) } else { format!("{value:.0}") };
            let defaults = row.parameters.iter().filter_map(Parameter::default);
            let constants: Vec<String> = defaults.map(ToString::to_string).collect();
            let name = match constants.as_slice() {
                [] => row.doc.name.to_owned(),
                text => format!("{}({})", row.doc.name, text.join(", ")),
            };
            table.row([name, shown, row.doc.summary.to_owned()]);
        }
        table
    }

    /// Returns a table of class sizes, one row for each doubling, with a bar for the individuals.
    fn class_sizes(&self) -> Table {
        let bins = size_bins(self.histogram.iter().map(|bin| (bin.size, bin.classes, bin.individuals)));
        let mut table = Table::default().texts("class size", 0, 12);
        table = table.numbers("classes", 1, 10).numbers("individuals", 1, 12).texts("", 2, 0);
        for (bin, bar) in bins.iter().zip(bars(&bins)) {
            table.row([bin.text(), grouped(bin.classes), grouped(bin.individuals), bar]);
        }
        table
    }

    /// Returns a table of what is left of the risk without each quasi-identifier.
    fn table_without(&self) -> Table {
        let mut table = Table::default().texts("without", 0, 12);
        for (head, width) in [("k", 8), ("unique", 8), ("at risk", 9)] {
            table = table.numbers(head, 1, width);
        }
        for one in &self.without {
            let unique = percent(one.sample_uniqueness);
            let at_risk = percent_of(one.individuals_at_risk, self.individuals);
            table.row([one.column.clone(), grouped(one.k), unique, at_risk]);
        }
        table
    }
}

/// Returns the classes of a table as it is; hierarchies do not matter, because columns can only be
/// left out.
async fn classes_as_is(run: &Run, loaded: &Loaded) -> Result<ClassTable> {
    run.progress.begin(Phase::Profile, 0);
    let quasi = loaded.policy.quasi.iter().map(|quasi| {
        let hierarchy = Hierarchy::new(quasi.hierarchy.input_type(), Vec::new())?;
        Ok(QuasiColumn { name: quasi.name.clone(), hierarchy, weight: 1.0 })
    });
    let quasi: Vec<QuasiColumn> = quasi.collect::<Result<_>>()?;
    let (table, individual) = (loaded.table.clone(), loaded.policy.individual());
    let classes = profile(&loaded.session, table, quasi, Vec::new(), individual, run).await?;
    match (classes.total_rows(), classes.total_individuals()) {
        (0, _) => Err(Error::data("the input has no rows")),
        (_, 0) => Err(Error::data("the individual is NULL in every row: there are no individuals to count")),
        _ => Ok(classes),
    }
}

/// Returns the number of rows that show nothing: each quasi-identifier is NULL, or consists of `*`.
fn hidden_rows(table: &ClassTable) -> u64 {
    let is_hidden = |column: &EncodedColumn| -> Vec<bool> {
        let labels = column.level(0).labels();
        let stars = |label: usize| {
            let texts = labels.as_string_view_opt();
            texts.is_some_and(|texts| {
                !texts.value(label).is_empty() && texts.value(label).bytes().all(|b| b == b'*')
            })
        };
        (0..labels.len()).map(|label| labels.is_null(label) || stars(label)).collect()
    };
    let hidden: Vec<Vec<bool>> = table.columns().iter().map(is_hidden).collect();
    let code = |class: usize, column: usize| table.code(table.base(), class, column) as usize;
    let shows_nothing =
        |class: &usize| hidden.iter().enumerate().all(|(column, hidden)| hidden[code(*class, column)]);
    (0..table.base().len()).filter(shows_nothing).map(|class| table.base().rows_of(class)).sum()
}

/// Returns the class sizes with one column left out: at its top level all its values are one.
fn without_column(table: &ClassTable, column: usize) -> Result<ClassSizes> {
    let as_is = vec![0; table.columns().len()];
    let mut levels = as_is.clone();
    levels[column] = table.columns()[column].height();
    Ok(ClassSizes::of(table, &table.roll_up(table.base(), &as_is, &levels)?))
}
