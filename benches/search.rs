//! The search alone, beside the times that ARX 3.9.2 took for the same questions: `search [METHOD...]`,
//! by default by the method `auto`.
//!
//! Every row of `$KANON_SHARED/truth/arx_adult.json` that asks for k-anonymity, distinct
//! l-diversity or both is searched as a release would, by one thread. A result that is proven best
//! must lose as much as ARX's optimum, and any other at least as much. The table is profiled before, once for each set of
//! quasi-identifiers (once more where sensitive values are counted). Prints a Markdown table of
//! ARX's CPU time over our wall time.

#![expect(clippy::print_stdout, reason = "the table is what this is for")]

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use arrow::datatypes::Schema;
use datafusion_kanon::internals::class::ClassTable;
use datafusion_kanon::internals::engine::{Resources, Run};
use datafusion_kanon::internals::generalize::Ends;
use datafusion_kanon::internals::input::{Input, PolicySource, open};
use datafusion_kanon::internals::method::lattice::Options;
use datafusion_kanon::internals::method::{self, MethodSpec, Problem};
use datafusion_kanon::internals::policy::{Folder, Policy, PolicySpec};
use datafusion_kanon::internals::progress::{CancelToken, Silent};
use datafusion_kanon::internals::release;
use serde::Deserialize;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Of so many searches the fastest counts.
const TIMES: usize = 5;

/// ARX's metrics and our measures.
const MEASURES: &[(&str, &str)] = &[
    ("height", "height"),
    ("loss", "granularity"),
    ("precision", "precision_loss"),
    ("discernability", "discernibility"),
    ("aecs", "average_class_size"),
    ("entropy", "non_uniform_entropy"),
];

#[derive(Deserialize)]
struct Truth {
    entries: Vec<Entry>,
}

/// A row of the truth file.
#[derive(Debug, Deserialize)]
struct Entry {
    qi: Vec<String>,
    k: Option<u64>,
    model: String,
    suppression_limit: serde_json::Number,
    metric: String,
    loss: f64,
    checks: f64,
    anonymize_cpu_ms: f64,
}

impl Entry {
    /// The l of distinct l-diversity.
    fn l(&self) -> Option<&str> {
        self.model.strip_prefix("dl:")
    }

    /// The row as a policy for Adult.
    fn policy(&self) -> Result<String> {
        let measure = MEASURES.iter().find(|(arx, _)| *arx == self.metric);
        let (_, objective) = measure.ok_or_else(|| format!("no measure for {self:?}"))?;
        let mut text = String::new();
        if let Some(k) = self.k {
            writeln!(text, "k = {k}")?;
        }
        writeln!(text, "suppression_limit = {}\nobjective = \"{objective}\"", self.suppression_limit)?;
        writeln!(text, "others = \"drop\"\nrows_are_individuals = true\n[columns]")?;
        for name in &self.qi {
            let file = format!("adult_hierarchy_{name}.csv");
            writeln!(text, "{name} = {{ role = \"quasi\", hierarchy = {{ file = {file:?} }} }}")?;
        }
        if let Some(l) = self.l() {
            writeln!(text, "occupation = {{ role = \"sensitive\" }}")?;
            writeln!(text, "[[require]]\nmodel = \"l_diversity\"\nl = {l}\nsensitive = \"occupation\"")?;
        }
        writeln!(text, "[input]\ndelimiter = \";\"")?;
        Ok(text)
    }

    /// What tells the row from others.
    fn said(&self) -> String {
        let k = self.k.map_or("no k".to_owned(), |k| format!("k = {k}"));
        let (model, metric, limit) = (&self.model, &self.metric, &self.suppression_limit);
        format!("{model}, {metric}, {k}, limit {limit}, {} quasi-identifiers", self.qi.len())
    }
}

/// A profiled table.
struct Profiled {
    schema: Schema,
    classes: ClassTable,
}

/// What a row took.
struct Timed<'a> {
    entry: &'a Entry,
    ms: f64,
    evaluated: u64,
    proven: bool,
    loses_more: bool,
}

impl Timed<'_> {
    fn ratio(&self) -> f64 {
        self.entry.anonymize_cpu_ms / self.ms
    }
}

fn main() -> Result<()> {
    let shared = PathBuf::from(std::env::var_os("KANON_SHARED").ok_or("KANON_SHARED is not set")?);
    let text = std::fs::read_to_string(shared.join("truth/arx_adult.json"))?;
    let entries = serde_json::from_str::<Truth>(&text)?.entries;
    let mut methods: Vec<String> = std::env::args().skip(1).collect();
    if methods.is_empty() {
        methods.push(method::AUTO.to_owned());
    }
    println!(
        "ARX's times are not of this run: they are those in the truth file, CPU of the search in a warm JVM, \
         given in steps of 10 ms.\nOurs: one thread, the fastest of {TIMES}. The ratio is ARX's time \
         over ours; all columns but the lowest are medians."
    );
    let mut profiled: BTreeMap<(&[String], bool), Profiled> = BTreeMap::new();
    for method in methods {
        search_all(&shared, &entries, &MethodSpec::named(&method), &mut profiled)?;
    }
    Ok(())
}

/// Searches for every row by a method, and prints the times.
fn search_all<'a>(
    shared: &Path,
    entries: &'a [Entry],
    method: &MethodSpec,
    profiled: &mut BTreeMap<(&'a [String], bool), Profiled>,
) -> Result<()> {
    let mut all: Vec<Timed<'_>> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.model == "none" || entry.l().is_some()) {
        let said = PolicySpec::parse(&entry.policy()?)?;
        let table = (entry.qi.as_slice(), entry.l().is_some());
        let Profiled { schema, classes } = match profiled.entry(table) {
            Slot::Occupied(known) => known.into_mut(),
            Slot::Vacant(free) => free.insert(profile(shared, &said)?),
        };
        let policy = said.resolve(schema, &Folder(shared.join("data/adult")))?;
        all.push(time(entry, method, &policy, classes)?);
    }
    print(method, &all)
}

fn profile(shared: &Path, said: &PolicySpec) -> Result<Profiled> {
    let data = shared.join("data/adult");
    let input = Input::find(&data.join("adult.csv").to_string_lossy())?;
    let resources = Resources { threads: 1, memory: 1 << 30, spill: None };
    let run = Run { resources, ..Run::default() };
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?.block_on(async {
        let loaded = open(&run, &input, &PolicySource { spec: said, files: &Folder(data) }).await?;
        let classes = release::profile_classes(&run, &loaded).await?;
        Ok(Profiled { schema: loaded.schema().clone(), classes })
    })
}

fn time<'a>(
    entry: &'a Entry,
    method: &MethodSpec,
    policy: &Policy,
    classes: &ClassTable,
) -> Result<Timed<'a>> {
    let problem = Problem {
        table: classes,
        requirements: &policy.requirements,
        objective: policy.spec.objective(),
        ends: Ends::Values,
        limit: release::limit(policy, classes),
        threads: 1,
        progress: &Silent,
        stop: &CancelToken::default(),
    };
    let options = Options { effort: None, ..policy.options(1) };
    let mut timed = Timed { entry, ms: f64::INFINITY, evaluated: 0, proven: false, loses_more: false };
    for _ in 0..TIMES {
        let begun = Instant::now();
        let (_, outcome) = method::search(method, &problem, &options)?;
        timed.ms = timed.ms.min(begun.elapsed().as_secs_f64() * 1e3);
        timed.evaluated = outcome.evaluated;
        let loss = outcome.best.first().map_or(f64::NAN, |found| found.loss);
        let tolerance = 1e-9 * loss.abs().max(entry.loss.abs());
        let is_equal = (loss - entry.loss).abs() <= tolerance;
        let may_lose_more = method.name != method::AUTO && loss >= entry.loss - tolerance;
        if !(if outcome.proven { is_equal } else { may_lose_more }) {
            return Err(format!("{method}: {loss}, proven: {}, is not {entry:?}", outcome.proven).into());
        }
        (timed.proven, timed.loses_more) = (outcome.proven, !is_equal);
    }
    Ok(timed)
}

fn print(method: &MethodSpec, all: &[Timed<'_>]) -> Result<()> {
    let proven = all.iter().filter(|timed| timed.proven).count();
    let losing = all.iter().filter(|timed| timed.loses_more).count();
    let rows = all.len();
    println!(
        "\nmethod = {method}: of {rows} rows {proven} proven best, {losing} lose more than ARX's optimum\n"
    );
    println!("| model | metric | rows | ratio | lowest ratio | ARX ms | ms | ARX checks | evaluated nodes |");
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|");
    let mut groups: BTreeMap<(&str, &str), Vec<&Timed<'_>>> = BTreeMap::new();
    for timed in all {
        groups.entry((&timed.entry.model, &timed.entry.metric)).or_default().push(timed);
    }
    for ((model, metric), rows) in groups.iter().rev() {
        print_line(model, metric, rows);
    }
    let all: Vec<&Timed<'_>> = all.iter().collect();
    print_line("all", "", &all);
    let lowest = all.iter().min_by(|a, b| a.ratio().total_cmp(&b.ratio())).ok_or("no rows")?;
    let (ms, arx) = (lowest.ms, lowest.entry.anonymize_cpu_ms);
    println!("\nThe lowest ratio of all: {} ({arx:.0} ms, ours {ms:.1} ms)", lowest.entry.said());
    Ok(())
}

fn print_line(model: &str, metric: &str, rows: &[&Timed<'_>]) {
    let lowest = rows.iter().map(|timed| timed.ratio()).fold(f64::INFINITY, f64::min);
    println!(
        "| {model} | {metric} | {} | {:.1} | {lowest:.1} | {:.0} | {:.1} | {:.0} | {:.0} |",
        rows.len(),
        median(rows, Timed::ratio),
        median(rows, |timed| timed.entry.anonymize_cpu_ms),
        median(rows, |timed| timed.ms),
        median(rows, |timed| timed.entry.checks),
        median(rows, |timed| timed.evaluated as f64),
    );
}

/// The middle of the rows' figures, or the mean of the two in the middle.
fn median<'a>(rows: &[&Timed<'a>], figure: impl Fn(&Timed<'a>) -> f64) -> f64 {
    let mut figures: Vec<f64> = rows.iter().map(|timed| figure(timed)).collect();
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    if figures.len() % 2 == 1 { figures[middle] } else { f64::midpoint(figures[middle - 1], figures[middle]) }
}
