//! `kanon risk`: measures how easily individuals of an unchanged table are found.

use arrow::array::{Array, AsArray};
use clap::Args;
use serde_json::json;

use super::Done;
use super::numbers::{and_without_one, doubt_lines, grouped, percent, percent_of, plural, rows};
use super::source::{Columns, Set, find_table, quasi_of_release, record_of, release_note};
use crate::class::{ClassSizes, ClassTable, EncodedColumn, QuasiColumn};
use crate::engine::Run;
use crate::error::{Error, Result};
use crate::generalize::Hierarchy;
use crate::input::{Loaded, open};
use crate::measure::sample_uniqueness::SampleUniqueness;
use crate::measure::share_at_risk::ShareAtRisk;
use crate::measure::{RISKS, RiskMeasure};
use crate::parameter::Parameter;
use crate::progress::Phase;
use crate::release::doubts::of_individuals;
use crate::release::profile::profile;
use crate::release::publish::record::plain_number;
use crate::release::risks;

/// Measure re-identification risks, overall and per quasi-identifier.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon risk patients.parquet --quasi age,sex,zip
  kanon risk visits.parquet --quasi age,sex,zip --individual patient_id
  kanon risk patients.parquet --policy patients.toml --format json
  kanon risk patients_safe          # a release records its quasi-identifiers

With --individual, sizes count the individuals of a class, one class at a time. A person's rows together may still
single that person out: `kanon link TABLE TABLE --on COLUMNS --individual ID --individual-of-b ID` is the attack that shows it.")]
pub(crate) struct Risk {
    /// A file, folder or glob of Parquet, CSV, JSON lines or Arrow files, or a release.
    input: String,
    #[command(flatten)]
    columns: Columns,
}

impl Risk {
    pub(super) fn set(&self) -> &Set {
        self.columns.set()
    }

    pub(super) async fn run(self, run: &Run) -> Result<Done> {
        let policy = self.columns.open(&self.input, || quasi_of_release(&self.input))?;
        let input = find_table(&self.input)?;
        let loaded = open(run, &input, &policy.spec, &policy.folder).await?;
        let table = classes_as_is(run, &loaded).await?;
        let sizes = ClassSizes::of(&table, table.base());
        let measured = risks(&sizes)?;
        let names: Vec<&str> = loaded.policy.quasi.iter().map(|q| q.name.as_str()).collect();
        let mut text = format!(
            "read      {} in {} over {}; {}\n\n",
            rows(table.total_rows()),
            plural(table.base().len() as u64, "class", "classes"),
            names.join(", "),
            counted(&loaded, &sizes, table.unowned_rows()),
        );
        let doubts = of_individuals(run, &loaded, table.unowned_rows(), table.total_rows()).await?;
        if !doubts.is_empty() {
            text += &(doubt_lines(&doubts) + "\n");
        }
        let hidden = hidden_rows(&table);
        if hidden > 0 {
            text += &format!(
                "note      {} `*` or NULL in every quasi-identifier, as after an earlier suppression: no individual can be \
                 found by them, and the figures below count them all the same\n\n",
                plural(hidden, "row is", "rows are")
            );
        }
        // A damaged record is an error only where the columns are to be read from it.
        let record = record_of(&self.input).ok().flatten();
        if let Some(note) = record.and_then(|record| release_note(&self.input, &record)) {
            text += &(note + "\n");
        }
        for row in RISKS {
            let value = measured.get(row.doc.name).copied().unwrap_or_default();
            let shown = if row.is_share { percent(value) } else { format!("{value:.0}") };
            let defaults = row.parameters.iter().filter_map(Parameter::default);
            let constants: Vec<String> = defaults.map(ToString::to_string).collect();
            let name = match constants.as_slice() {
                [] => row.doc.name.to_owned(),
                text => format!("{}({})", row.doc.name, text.join(", ")),
            };
            text += &format!("{name:<27} {shown:>9}   {}\n", row.doc.summary);
        }
        text += &histogram(&sizes);
        text += "\nwithout            k   unique   at risk\n";
        let mut without = Vec::new();
        for (column, name) in names.iter().enumerate() {
            let sizes = without_column(&table, column)?;
            let unique = SampleUniqueness.value(&sizes).unwrap_or_default();
            let at_risk = ShareAtRisk::DEFAULT.individuals(&sizes);
            let k = sizes.min().unwrap_or(0);
            let (unique_text, at_risk_text) = (percent(unique), percent_of(at_risk, sizes.individuals()));
            text += &format!("{name:<12} {:>8} {unique_text:>8} {at_risk_text:>9}\n", grouped(k));
            without.push(json!({
                "column": name,
                "k": k,
                "sample_uniqueness": unique,
                "individuals_at_risk": at_risk,
            }));
        }
        let histogram: Vec<_> = sizes
            .histogram()
            .map(|(size, classes, count)| json!({ "size": size, "classes": classes, "individuals": count }))
            .collect();
        let measures: serde_json::Map<_, _> =
            measured.iter().map(|(name, v)| (name.clone(), plain_number(*v))).collect();
        let json = json!({
            "rows": table.total_rows(),
            "individuals": sizes.individuals(),
            "rows_without_individual": table.unowned_rows(),
            "rows_without_quasi": hidden,
            "doubts": doubts,
            "classes": table.base().len(),
            "k": sizes.min(),
            "risk": measures,
            "individuals_at_risk": ShareAtRisk::DEFAULT.individuals(&sizes),
            "histogram": histogram,
            "without": without,
        });
        Ok(Done { text, json, holds: true })
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

/// Describes what is counted, and the count.
fn counted(loaded: &Loaded, sizes: &ClassSizes, unowned: u64) -> String {
    match loaded.policy.individual() {
        Some(name) => {
            let individuals = plural(sizes.individuals(), "individual", "individuals");
            format!("{individuals} by `{name}`{}", and_without_one(unowned))
        }
        None => "each row counts as an individual".to_owned(),
    }
}

/// Draws class sizes, one line for each doubling.
fn histogram(sizes: &ClassSizes) -> String {
    let bins = bins(sizes.histogram());
    let most = bins.iter().map(|bin| bin.individuals).max().unwrap_or(0);
    let line = |bin: &Bin| {
        let bar = bar(bin.individuals, most);
        format!("{:<12} {:>10} {:>12}  {bar}\n", bin.text(), grouped(bin.classes), grouped(bin.individuals))
    };
    "\nclass size      classes  individuals\n".to_owned() + &bins.iter().map(line).collect::<String>()
}

/// Draws a bar for `part`, where `most` has the longest; half a block is the shortest.
pub(super) fn bar(part: u64, most: u64) -> String {
    const WIDTH: u64 = 30;
    let halves = usize::try_from(part.saturating_mul(2 * WIDTH) / most.max(1)).unwrap_or(0);
    let halves = halves.max(usize::from(part > 0));
    "\u{2588}".repeat(halves / 2) + if halves % 2 == 1 { "\u{258c}" } else { "" }
}

/// The class sizes between two powers of two.
pub(super) struct Bin {
    from: u64,
    to: u64,
    classes: u64,
    pub(super) individuals: u64,
}

impl Bin {
    /// Returns the range of sizes: `1`, `2-3`, `4-7`.
    pub(super) fn text(&self) -> String {
        match self.from == self.to {
            true => grouped(self.from),
            false => format!("{}-{}", grouped(self.from), grouped(self.to)),
        }
    }
}

/// Groups ascending sizes with their classes and individuals into bins that double; the first
/// begins with the least size.
pub(super) fn bins(sizes: impl Iterator<Item = (u64, u64, u64)>) -> Vec<Bin> {
    let mut bins: Vec<Bin> = Vec::new();
    for (size, classes, individuals) in sizes {
        let to = (2u64 << size.ilog2()).wrapping_sub(1);
        match bins.last_mut() {
            Some(bin) if bin.to == to => {
                bin.classes += classes;
                bin.individuals += individuals;
            }
            last => {
                let from = if last.is_none() { size } else { 1 << size.ilog2() };
                bins.push(Bin { from, to, classes, individuals });
            }
        }
    }
    bins
}
