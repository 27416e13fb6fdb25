//! Measures in SQL have one answer in four ways: the naive oracle, the plain accumulator, the
//! rewritten plan, a prepared statement.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::command::table;
use crate::search_laws::law_cases;

struct Random(ChaCha8Rng);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        (self.0.next_u64() % end as u64) as usize
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

#[derive(Debug, Clone)]
struct Row {
    g: Option<&'static str>,
    a: Option<i64>,
    b: Option<&'static str>,
    f: Option<f64>,
    s: Option<&'static str>,
    d: Option<i64>,
    id: Option<i64>,
    x: Option<i64>,
    y: Option<f64>,
    flag: Option<bool>,
    born: Option<&'static str>,
}

fn row(random: &mut Random) -> Row {
    let texts = &[None, Some("p"), Some("q"), Some("")];
    Row {
        g: random.of(&[None, Some("u"), Some("v")]),
        a: random.of(&[None, Some(1), Some(2), Some(-3)]),
        b: random.of(texts),
        f: random.of(&[None, Some(0.0), Some(-0.0), Some(f64::NAN), Some(-f64::NAN), Some(1.5)]),
        s: random.of(texts),
        d: random.of(&[None, Some(7), Some(8)]),
        id: random.of(&[None, Some(1), Some(2), Some(3), Some(4), Some(5)]),
        x: random.of(&[None, Some(1), Some(2), Some(3), Some(4)]),
        y: random.of(&[None, Some(0.25), Some(-2.5), Some(1e3)]),
        flag: random.of(&[None, Some(true), Some(false)]),
        born: random.of(&[None, Some("1969-12-31"), Some("2024-02-01"), Some("2024-02-29")]),
    }
}

fn batch(rows: &[Row]) -> RecordBatch {
    let texts = |of: fn(&Row) -> Option<&'static str>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    };
    let ints =
        |of: fn(&Row) -> Option<i64>| -> ArrayRef { Arc::new(rows.iter().map(of).collect::<Int64Array>()) };
    let floats =
        |of: fn(&Row) -> Option<f64>| -> ArrayRef { Arc::new(rows.iter().map(of).collect::<Float64Array>()) };
    table([
        ("g", texts(|r| r.g)),
        ("a", ints(|r| r.a)),
        ("b", texts(|r| r.b)),
        ("f", floats(|r| r.f)),
        ("s", texts(|r| r.s)),
        ("d", ints(|r| r.d)),
        ("id", ints(|r| r.id)),
        ("x", ints(|r| r.x)),
        ("y", floats(|r| r.y)),
        ("flag", Arc::new(rows.iter().map(|r| r.flag).collect::<BooleanArray>())),
        ("born", cast(&texts(|r| r.born), &DataType::Date32).unwrap()),
    ])
}

/// An expression in SQL and what it is of a row.
type Column = (&'static str, fn(&Row) -> String);

fn float(value: Option<f64>) -> String {
    // One zero, one NaN.
    value.map_or("null".into(), |v| if v.is_nan() { "nan".into() } else { format!("{}", v + 0.0) })
}

const QUASI: &[Column] = &[
    ("a", |r| format!("{:?}", r.a)),
    ("b", |r| format!("{:?}", r.b)),
    ("f", |r| float(r.f)),
    ("a + 1", |r| format!("{:?}", r.a.map(|a| a + 1))),
    ("generalize_floor(a, 2)", |r| format!("{:?}", r.a.map(|a| a.div_euclid(2) * 2))),
    ("concat(b, 'x')", |r| format!("{:?}", r.b.unwrap_or(""))),
    ("g", |r| format!("{:?}", r.g)),
    ("a - a", |r| format!("{:?}", r.a.map(|_| 0))),
    ("generalize_range(a, 3)", |r| format!("{:?}", r.a.map(|a| a.div_euclid(3)))),
    ("generalize_prefix(concat(g, b), 1)", first_character),
    ("generalize_date(born, 'month')", |r| format!("{:?}", r.born.map(|born| &born[..7]))),
    ("arrow_cast(b, 'Dictionary(Int32, Utf8)')", |r| format!("{:?}", r.b)),
    ("generalize_prefix(arrow_cast(concat(g, b), 'Dictionary(Int32, Utf8)'), 1)", first_character),
];

/// The first character of `concat(g, b)`, for which NULL is an empty text.
fn first_character(row: &Row) -> String {
    format!("{:?}", [row.g, row.b].into_iter().flatten().flat_map(str::chars).next())
}

const SENSITIVE: &[Column] = &[("s", |r| text(r.s)), ("d", |r| text(r.d)), ("f", |r| float(r.f))];

fn text<T: std::fmt::Debug>(value: Option<T>) -> String {
    value.map_or("null".into(), |value| format!("{value:?}"))
}

/// A condition in SQL and whether a row passes.
type Condition = (&'static str, fn(&Row) -> bool);

const CONDITIONS: &[Condition] = &[
    ("flag", |r| r.flag == Some(true)),
    ("x > 2", |r| r.x.is_some_and(|x| x > 2)),
    ("x > 9", |_| false),
    ("g IS NOT NULL OR a = 1", |r| r.g.is_some() || r.a == Some(1)),
];

/// The answer of a measure to rows, the obvious way.
fn oracle(measure: &Measure, rows: &[&Row]) -> Option<f64> {
    let mut classes: BTreeMap<Vec<String>, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        let key = measure.quasi.iter().map(|(_, of)| of(row)).collect();
        classes.entry(key).or_default().push(row);
    }
    // Everybody in a class: a number for each row, or the individual.
    let people = |class: &[&Row]| -> BTreeSet<i64> {
        match measure.individual {
            true => class.iter().filter_map(|row| row.id).collect(),
            false => class.iter().map(|row| std::ptr::from_ref::<Row>(row) as i64).collect(),
        }
    };
    let sizes = || classes.values().map(|class| people(class).len());
    let smallest = || {
        let mut smallest: BTreeMap<i64, usize> = BTreeMap::new();
        for class in classes.values() {
            let here = people(class);
            for who in &here {
                let known = smallest.entry(*who).or_insert(here.len());
                *known = here.len().min(*known);
            }
        }
        smallest.into_values().map(|size| 1.0 / size as f64).collect::<Vec<f64>>()
    };
    let people_by_value = |class: &Vec<&Row>| -> Vec<usize> {
        let of_value = measure.sensitive.unwrap().1;
        let mut having: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
        class.iter().for_each(|row| having.entry(of_value(row)).or_default().push(row));
        having.remove("null");
        having.values().map(|rows| people(rows).len()).filter(|count| *count > 0).collect()
    };
    let share = |count: usize, all: usize| (all > 0).then(|| count as f64 / all as f64);
    match measure.name {
        "k_anonymity" => sizes().min().map(|k| k as f64),
        "l_diversity" => {
            let l = |class: &Vec<&Row>| {
                let counts = people_by_value(class);
                counts.len().min(people(class).len() + 1 - counts.iter().max().unwrap_or(&0))
            };
            classes.values().map(l).min().map(|l| l as f64)
        }
        "entropy_l_diversity" => {
            let l = |class: &Vec<&Row>| {
                let counts = people_by_value(class);
                let all = counts.iter().sum::<usize>() as f64;
                let bits = counts.iter().map(|n| *n as f64 / all * (all / *n as f64).log2()).sum::<f64>();
                let others = people(class).len() + 1 - counts.iter().max().unwrap_or(&0);
                if counts.is_empty() { 0.0 } else { bits.exp2().min(others as f64) }
            };
            classes.values().map(l).reduce(f64::min)
        }
        "t_closeness" => {
            // Each pair of somebody and a value of theirs; a value may be NULL.
            let pairs = |rows: &[&Row]| -> BTreeMap<String, usize> {
                let of_value = measure.sensitive.unwrap().1;
                let mut having: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
                rows.iter().for_each(|row| having.entry(of_value(row)).or_default().push(row));
                having.into_iter().map(|(value, rows)| (value, people(&rows).len())).collect()
            };
            let input = pairs(rows);
            let shares = |counts: &BTreeMap<String, usize>, value: &String| {
                counts.get(value).copied().unwrap_or(0) as f64 / counts.values().sum::<usize>() as f64
            };
            let t = |class: &Vec<&Row>| {
                let (counts, size) = (pairs(class), people(class).len());
                let is_known = measure.individual && size > 1 && counts.values().any(|count| *count == size);
                if size == 0 || is_known {
                    return f64::INFINITY;
                }
                let apart = input.keys().map(|value| (shares(&counts, value) - shares(&input, value)).abs());
                apart.sum::<f64>() / 2.0
            };
            classes.values().map(t).reduce(f64::max)
        }
        "prosecutor_risk_max" => smallest().into_iter().reduce(f64::max),
        "prosecutor_risk_mean" => {
            let all = smallest();
            (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
        }
        "share_at_risk" => {
            let all = smallest();
            share(all.iter().filter(|risk| **risk > 0.4).count(), all.len())
        }
        "expected_reidentifications" => {
            let all = smallest();
            (!all.is_empty()).then(|| all.iter().sum())
        }
        "sample_uniqueness" => {
            let all = smallest();
            share(all.iter().filter(|risk| **risk == 1.0).count(), all.len())
        }
        other => panic!("{other} has no oracle"),
    }
}

#[derive(Debug, Clone)]
struct Measure {
    name: &'static str,
    individual: bool,
    sensitive: Option<Column>,
    quasi: Vec<Column>,
    filter: Option<Condition>,
}

impl Measure {
    fn random(random: &mut Random, quasi: &[Column]) -> Self {
        let name = random.of(&[
            "k_anonymity",
            "k_anonymity",
            "l_diversity",
            "l_diversity",
            "entropy_l_diversity",
            "t_closeness",
            "t_closeness",
            "prosecutor_risk_max",
            "prosecutor_risk_mean",
            "share_at_risk",
            "expected_reidentifications",
            "sample_uniqueness",
        ]);
        let quasi = match random.chance(5) {
            true => vec![random.of(QUASI)],
            false => quasi.to_vec(),
        };
        let is_model = name.ends_with("ity") || name == "t_closeness";
        Self {
            name,
            individual: random.chance(if is_model { 2 } else { 6 }),
            sensitive: (name.ends_with("l_diversity") || name == "t_closeness").then(|| {
                match random.chance(3) {
                    true => random.of(SENSITIVE),
                    false => SENSITIVE[0],
                }
            }),
            quasi,
            filter: random.chance(4).then(|| random.of(CONDITIONS)),
        }
    }

    fn sql(&self) -> String {
        let mut arguments: Vec<&str> = Vec::new();
        arguments.extend((self.name == "share_at_risk").then_some("0.4"));
        arguments.extend(self.individual.then_some("id"));
        arguments.extend(self.sensitive.map(|(sql, _)| sql));
        arguments.extend(self.quasi.iter().map(|(sql, _)| *sql));
        let end = if self.individual { "_individuals" } else { "" };
        let filter = self.filter.map_or(String::new(), |(sql, _)| format!(" FILTER (WHERE {sql})"));
        format!("{}{end}({}){filter}", self.name, arguments.join(", "))
    }

    fn answer(&self, rows: &[&Row]) -> Option<f64> {
        let passing: Vec<&Row> =
            rows.iter().copied().filter(|row| self.filter.is_none_or(|(_, passes)| passes(row))).collect();
        oracle(self, &passing)
    }
}

/// An ordinary aggregate in SQL and what it is of rows.
type Plain = (&'static str, fn(&[&Row]) -> Option<f64>);

fn sum<'a>(values: impl Iterator<Item = f64> + 'a) -> Option<f64> {
    values.map(Some).reduce(|a, b| Some(a? + b?)).flatten()
}

const PLAIN: &[Plain] = &[
    ("count(*)", |rows| Some(rows.len() as f64)),
    ("count(x)", |rows| Some(rows.iter().filter(|r| r.x.is_some()).count() as f64)),
    (
        "count(*) FILTER (WHERE flag)",
        |rows| Some(rows.iter().filter(|r| r.flag == Some(true)).count() as f64),
    ),
    ("sum(x)", |rows| sum(rows.iter().filter_map(|r| r.x).map(|x| x as f64))),
    ("sum(y)", |rows| sum(rows.iter().filter_map(|r| r.y))),
    ("min(x)", |rows| rows.iter().filter_map(|r| r.x).min().map(|x| x as f64)),
    ("max(y)", |rows| rows.iter().filter_map(|r| r.y).reduce(f64::max)),
    ("avg(y)", |rows| {
        let all: Vec<f64> = rows.iter().filter_map(|r| r.y).collect();
        Some(all.iter().sum::<f64>() / all.len() as f64).filter(|mean| !mean.is_nan())
    }),
    ("avg(x)", |rows| {
        let all: Vec<f64> = rows.iter().filter_map(|r| r.x).map(|x| x as f64).collect();
        Some(all.iter().sum::<f64>() / all.len() as f64).filter(|mean| !mean.is_nan())
    }),
    ("CAST(bool_and(flag) AS INT)", |rows| {
        rows.iter().filter_map(|r| r.flag).reduce(|a, b| a && b).map(f64::from)
    }),
    ("CAST(bool_or(flag) AS INT)", |rows| {
        rows.iter().filter_map(|r| r.flag).reduce(|a, b| a || b).map(f64::from)
    }),
    ("count(DISTINCT x)", |rows| Some(rows.iter().filter_map(|r| r.x).collect::<BTreeSet<_>>().len() as f64)),
];

fn shown(value: Option<f64>) -> String {
    // Rounding may leave a little of a distance of zero.
    let value = value.map(|value| if value.abs() < 1e-12 { 0.0 } else { value });
    value.map_or("NULL".into(), |value| format!("{value:.9e}"))
}

/// The rows of an answer as text, sorted.
pub(crate) async fn answer(session: &SessionContext, sql: &str) -> Result<Vec<Vec<String>>> {
    let mut all = Vec::new();
    for batch in session.sql(sql).await?.collect().await? {
        let options = FormatOptions::default().with_null("NULL");
        let columns: Vec<_> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let cell = |column: &ArrayFormatter<'_>| {
                let text = column.value(row).to_string();
                text.parse::<f64>().map_or(text, |number| shown(Some(number)))
            };
            all.push(columns.iter().map(cell).collect());
        }
    }
    all.sort();
    Ok(all)
}

/// A session over the rows in `partitions` parts.
fn session(random: &mut Random, rows: &[Row], rewrite: bool, sorted: bool) -> SessionContext {
    let partitions = random.of(&[1, 2, 7]);
    let mut config =
        SessionConfig::new().with_target_partitions(partitions).with_batch_size(random.of(&[3, 8192]));
    let options = config.options_mut();
    options.optimizer.max_passes = random.of(&[1, 3]);
    options.optimizer.skip_failed_rules = random.chance(2);
    if random.chance(2) {
        // Partial aggregation gives up at once.
        options.execution.skip_partial_aggregation_probe_rows_threshold = 0;
        options.execution.skip_partial_aggregation_probe_ratio_threshold = 0.0;
    }
    let session = SessionContext::new_with_config(config);
    datafusion_kanon::internals::sql::register_all(&session).unwrap();
    session
        .state_ref()
        .write()
        .config_mut()
        .options_mut()
        .set("kanon.rewrite_measures", if rewrite { "true" } else { "false" })
        .unwrap();
    let mut rows = rows.to_vec();
    if sorted {
        rows.sort_by_key(|row| (row.g, row.a));
    }
    let schema = batch(&rows).schema();
    let parts: Vec<Vec<RecordBatch>> = if sorted {
        vec![rows.chunks(3).map(batch).collect()]
    } else {
        let each = rows.len().div_ceil(partitions).max(1);
        rows.chunks(each).map(|part| part.chunks(4).map(batch).collect()).collect()
    };
    let parts = if parts.is_empty() || parts == [vec![]] { vec![vec![]] } else { parts };
    let mut memory = MemTable::try_new(schema, parts).unwrap();
    if sorted {
        let order = ["g", "a"].map(|name| datafusion::prelude::col(name).sort(true, true));
        memory = memory.with_sort_order(vec![order.to_vec()]);
    }
    session.register_table("t", Arc::new(memory)).unwrap();
    session
}

struct Query {
    sql: String,
    /// The same with a parameter `$1`, which is 1.
    prepared: String,
    keys: Vec<Column>,
    measures: Vec<Measure>,
    plain: Vec<Plain>,
    condition: Option<Condition>,
}

impl Query {
    fn random(random: &mut Random) -> Self {
        let keys: Vec<Column> = [QUASI[6], ("flag", |r| text(r.flag)), ("y", |r| float(r.y))]
            .into_iter()
            .filter(|_| random.chance(3))
            .collect();
        // From three different ones on, the rule groups by one key.
        let quasi: Vec<Column> = (0..=random.below(6)).map(|_| random.of(QUASI)).collect();
        let measures: Vec<Measure> = (0..=random.below(3)).map(|_| Measure::random(random, &quasi)).collect();
        let plain: Vec<Plain> = (0..random.below(3)).map(|_| random.of(PLAIN)).collect();
        let condition = random.chance(3).then(|| random.of(CONDITIONS));
        let mut said: Vec<String> = keys.iter().map(|(sql, _)| (*sql).to_owned()).collect();
        said.extend(measures.iter().map(Measure::sql));
        said.extend(plain.iter().map(|(sql, _)| (*sql).to_owned()));
        let columns: Vec<String> =
            said.iter().enumerate().map(|(at, sql)| format!("{sql} AS c{at}")).collect();
        let from =
            random.of(&["t", "(SELECT * FROM t)", "(SELECT * FROM t UNION ALL SELECT * FROM t WHERE false)"]);
        let place = condition.map_or(String::new(), |(sql, _)| format!(" WHERE ({sql})"));
        let with_parameter = match condition {
            Some(_) => format!("{place} AND $1 = 1"),
            None => " WHERE $1 = 1".to_owned(),
        };
        let groups: Vec<&str> = keys.iter().map(|(sql, _)| *sql).collect();
        let groups =
            if groups.is_empty() { String::new() } else { format!(" GROUP BY {}", groups.join(", ")) };
        let first = measures[0].sql();
        // All rows pass; the measures stand in HAVING and ORDER BY, too.
        let having = match random.chance(3) {
            true => format!(" HAVING {first} IS NULL OR {first} >= 0"),
            false => String::new(),
        };
        let order = if random.chance(3) { format!(" ORDER BY {first}") } else { String::new() };
        let is_inside = random.chance(4);
        let [sql, prepared] = [place, with_parameter].map(|place| {
            let sql = format!("SELECT {} FROM {from}{place}{groups}{having}{order}", columns.join(", "));
            if is_inside { format!("SELECT * FROM ({sql}) AS inside") } else { sql }
        });
        Self { sql, prepared, keys, measures, plain, condition }
    }

    fn answer(&self, rows: &[Row]) -> Vec<Vec<String>> {
        let passing: Vec<&Row> =
            rows.iter().filter(|row| self.condition.is_none_or(|(_, passes)| passes(row))).collect();
        let mut groups: BTreeMap<Vec<String>, Vec<&Row>> = BTreeMap::new();
        for row in passing {
            groups.entry(self.keys.iter().map(|(_, of)| of(row)).collect()).or_default().push(row);
        }
        if self.keys.is_empty() && groups.is_empty() {
            groups.insert(Vec::new(), Vec::new());
        }
        let mut all: Vec<Vec<String>> = groups
            .values()
            .map(|rows| {
                let measures = self.measures.iter().map(|measure| shown(measure.answer(rows)));
                measures.chain(self.plain.iter().map(|(_, of)| shown(of(rows)))).collect()
            })
            .collect();
        all.sort();
        all
    }
}

/// The values without the keys, whose text forms differ.
fn without_keys(mut answer: Vec<Vec<String>>, keys: usize) -> Vec<Vec<String>> {
    answer.iter_mut().for_each(|row| drop(row.drain(..keys)));
    answer.sort();
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oracle_accumulator_rewritten_plan_and_prepared_statement_agree() {
    let mut rewritten = 0;
    for seed in 0..u64::from(law_cases()) {
        let mut random = Random(ChaCha8Rng::seed_from_u64(seed));
        let many = random.of(&[0, 1, 5, 20, 60]);
        let rows: Vec<Row> = (0..many).map(|_| row(&mut random)).collect();
        let query = Query::random(&mut random);
        let expected = query.answer(&rows);
        let sorted = random.chance(3);
        for rewrite in [false, true] {
            let session = session(&mut random, &rows, rewrite, sorted);
            let said = || format!("seed {seed}, rewrite {rewrite}: {}", query.sql);
            let found = answer(&session, &query.sql).await.unwrap_or_else(|e| panic!("{}\n{e}", said()));
            assert_eq!(without_keys(found, query.keys.len()), expected, "{}", said());
            let plan = session.sql(&query.sql).await.unwrap().into_optimized_plan().unwrap();
            let is_rewritten = plan.display_indent().to_string().contains("kanon_0_");
            assert!(rewrite || !is_rewritten, "{}", said());
            rewritten += usize::from(is_rewritten);
            answer(&session, &format!("PREPARE p AS {}", query.prepared)).await.unwrap();
            let executed = answer(&session, "EXECUTE p(1)").await;
            let executed = executed.unwrap_or_else(|e| panic!("prepared, {}\n{e}", said()));
            assert_eq!(without_keys(executed, query.keys.len()), expected, "prepared, {}", said());
        }
    }
    assert!(2 * rewritten > law_cases() as usize, "{rewritten} of {} queries were rewritten", law_cases());
}

/// A session with the rule, over some rows in one part.
fn plain_session(rows: &[Row]) -> SessionContext {
    let session = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    datafusion_kanon::internals::sql::register_all(&session).unwrap();
    session.register_batch("t", batch(rows)).unwrap();
    session
}

fn some_rows() -> Vec<Row> {
    let mut random = Random(ChaCha8Rng::seed_from_u64(5));
    (0..50).map(|_| row(&mut random)).collect()
}

async fn plan(session: &SessionContext, sql: &str) -> String {
    let plan = session.sql(sql).await.unwrap().into_optimized_plan().unwrap();
    plan.display_indent().to_string()
}

#[tokio::test]
async fn one_set_of_quasi_identifiers_is_one_scan_and_risks_of_individuals_two() {
    let session = SessionContext::new();
    datafusion_kanon::internals::sql::register_all(&session).unwrap();
    let visits = crate::house::root().join("data/visits.parquet").display().to_string();
    session.register_parquet("visits", visits, Default::default()).await.unwrap();
    for (measures, scans) in [
        ("k_anonymity(dob, sex, zip), l_diversity(diagnosis, dob, sex, zip)", 1),
        (
            "k_anonymity(dob, sex, zip), l_diversity(diagnosis, zip, dob, sex, zip), share_at_risk(0.1, sex, zip, dob)",
            1,
        ),
        (
            "k_anonymity_individuals(patient_id, dob, sex), l_diversity_individuals(patient_id, diagnosis, sex, dob)",
            1,
        ),
        (
            "k_anonymity(dob, sex) FILTER (WHERE zip > '5'), k_anonymity(sex, dob), count(*), sum(length_of_stay)",
            1,
        ),
        (
            "k_anonymity(generalize_date(dob, 'year'), sex), l_diversity(race, sex, generalize_date(dob, 'year'))",
            1,
        ),
        (
            "share_at_risk_individuals(0.1, patient_id, dob, sex), sample_uniqueness_individuals(patient_id, sex, dob), max(zip)",
            2,
        ),
        (
            "k_anonymity(dob, sex, zip), l_diversity(diagnosis, dob, sex, zip), t_closeness(diagnosis, zip, sex, dob),
             average_risk(dob, sex, zip)",
            1,
        ),
        (
            "l_diversity(diagnosis, dob), delta_disclosure_individuals(patient_id, diagnosis, dob), t_closeness(diagnosis, dob)",
            1,
        ),
        ("average_risk_individuals(patient_id, dob), prosecutor_risk_mean_individuals(patient_id, dob)", 2),
        ("k_anonymity_individuals(patient_id, dob), sample_uniqueness_individuals(patient_id, dob)", 3),
        ("k_anonymity(dob, sex), k_anonymity(dob)", 2),
        ("l_diversity(diagnosis, dob), l_diversity(race, dob), k_anonymity(dob)", 2),
    ] {
        let plan = plan(&session, &format!("SELECT {measures} FROM visits")).await;
        assert_eq!(plan.matches("TableScan: visits").count(), scans, "{measures}\n{plan}");
        // No measure is left to the accumulator, and its column keeps its name.
        let left =
            plan.lines().skip(1).any(|line| {
                ["k_anonymity(", "l_diversity(", "t_closeness("].iter().any(|name| line.contains(name))
            });
        assert!(!left, "{plan}");
        // Three columns are one key, and so is the class of a risk of individuals.
        let has_key = ["sex, zip", "race, dob, sex", "uniqueness_individuals", "mean_individuals"];
        let has_key = has_key.iter().any(|part| measures.contains(part));
        assert_eq!(plan.contains("kanon_class_key("), has_key, "{plan}");
    }
}

#[tokio::test]
async fn the_rule_runs_once_and_says_its_name() {
    let session = plain_session(&some_rows());
    let sql = "SELECT g, k_anonymity(a, b) AS k, l_diversity(s, b, a) FILTER (WHERE flag) FROM t GROUP BY g";
    let once = session.sql(sql).await.unwrap().into_optimized_plan().unwrap();
    let twice = session.state().optimize(&once).unwrap();
    assert_eq!(once.display_indent().to_string(), twice.display_indent().to_string());
    let verbose = answer(&session, &format!("EXPLAIN VERBOSE {sql}")).await.unwrap();
    assert!(verbose.iter().any(|row| row[0].ends_with("k_anonymity_to_group_by")), "{verbose:?}");
    session.sql("SET kanon.rewrite_measures = false").await.unwrap();
    assert!(plan(&session, sql).await.contains("k_anonymity(t.a, t.b)"));
}

#[tokio::test]
async fn parameters_grouping_sets_and_correlated_subqueries_are_right() {
    let rows = some_rows();
    let session = plain_session(&rows);
    let off = plain_session(&rows);
    off.sql("SET kanon.rewrite_measures = false").await.unwrap();
    for sql in [
        "SELECT g, flag, k_anonymity(a, b), count(*) FROM t GROUP BY GROUPING SETS ((g), (flag), ())",
        "SELECT g, l_diversity(s, a) FROM t GROUP BY ROLLUP (g)",
        "SELECT g, flag, sample_uniqueness(a) FROM t GROUP BY CUBE (g, flag)",
        "SELECT o.g, (SELECT k_anonymity(i.a, i.b) FROM t AS i WHERE i.g = o.g) FROM (SELECT DISTINCT g FROM t) AS o",
        "SELECT DISTINCT o.g FROM t AS o WHERE o.a < (SELECT k_anonymity(i.b) FROM t AS i WHERE i.g = o.g AND i.a > 0)",
        "SELECT k_anonymity(a), k_anonymity(b), l_diversity(s, a), k_anonymity_individuals(id, f) FROM t",
        "SELECT g, k_anonymity(a), k_anonymity(b) FILTER (WHERE x > 2), max(y) FROM t GROUP BY g",
        "SELECT k_anonymity(a) FILTER (WHERE random() >= 0), k_anonymity(b) FROM t",
        "SELECT g AS k_anonymity, k_anonymity(g) AS k FROM t GROUP BY g ORDER BY k, 1",
        "SELECT k FROM (SELECT g, k_anonymity(a) AS k FROM t GROUP BY g) WHERE k > 1",
        "SELECT k_anonymity(n) FROM (SELECT g, count(*) AS n, k_anonymity(b) AS k FROM t GROUP BY g)",
        "SELECT a.k, b.k FROM (SELECT k_anonymity(a) AS k FROM t) AS a CROSS JOIN (SELECT k_anonymity(b) AS k FROM t) AS b",
        "SELECT k_anonymity(a) FROM t HAVING k_anonymity(b) < 100",
        "SELECT CASE WHEN k_anonymity(a) > 3 THEN 'fine' ELSE 'poor' END FROM t",
        "SELECT k_anonymity(g, g, concat('constant', g), a + 0) FROM t",
    ] {
        let (found, expected) = (answer(&session, sql).await, answer(&off, sql).await);
        let (found, expected) = (found.map_err(|e| e.to_string()), expected.map_err(|e| e.to_string()));
        assert_eq!(found.is_ok(), expected.is_ok(), "{sql}: {found:?} {expected:?}");
        assert_eq!(found, expected, "{sql}");
        assert!(found.is_ok(), "{sql}: {found:?}");
    }
    let prepare = "PREPARE least AS SELECT k_anonymity(a) FILTER (WHERE x > $1) FROM t WHERE a > $2";
    session.sql(prepare).await.unwrap().collect().await.unwrap();
    let direct = answer(&off, "SELECT k_anonymity(a) FILTER (WHERE x > 2) FROM t WHERE a > 0").await.unwrap();
    assert_eq!(answer(&session, "EXECUTE least(2, 0)").await.unwrap(), direct);
}
