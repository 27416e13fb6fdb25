//! Against pyCANON 1.3.5: what every measure reaches on UCI Adult with its missing values, as SQL
//! computes it.
//!
//! truth/pycanon_adult.json has 17 combinations of quasi-identifiers and sensitive columns, each
//! with `values`, what pyCANON returns, and `reference`, what a two-level GROUP BY outside this
//! project gives. Every value of both is compared: with ours, or, where pyCANON computes something
//! else, with that something in SQL. [`DIFFERENT`] says which values those are, how many of them
//! are not ours, and why. A value of the file that no row of [`VALUES`] names fails.

use std::collections::BTreeMap;
use std::path::Path;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::prelude::{CsvReadOptions, SessionContext};
use datafusion_kanon::internals::sql::register_all;
use serde::Deserialize;
use serde_json::Value;

use crate::shared;

/// The values of the file that are not ours in some combinations: the value, in how many, and why.
const DIFFERENT: &[(&str, usize, &str)] = &[
    ("reference.avg_record_risk(records/classes view: n_classes/rows)", 1, ONE_MISSING),
    ("reference.n_classes", 1, ONE_MISSING),
    ("reference.per_sa.*.delta", 14, "a value that a class lacks is ignored there; here it breaks the model"),
    ("reference.per_sa.*.enhanced_beta_pycanon", 13, CAPPED),
    ("reference.rows_in_classes", 1, ONE_MISSING),
    ("values.alpha_k[0]", 1, NO_MISSING),
    ("values.average_rir", 1, ONE_MISSING),
    ("values.basic_beta_likeness", 1, NO_MISSING),
    ("values.delta_disclosure", 13, "a value that a class lacks is ignored there; here it breaks the model"),
    ("values.enhanced_beta_likeness", 12, CAPPED),
    ("values.entropy_l_diversity", 8, "the whole number below"),
    ("values.l_diversity", 1, NO_MISSING),
    (
        "values.recursive_c_l_diversity[0]",
        17,
        "the counts are sorted in the wrong order, so that c is 1 or 2",
    ),
    ("values.sa_entropy.*", 1, NO_MISSING),
    ("values.sizes_ec.mean_ec", 1, ONE_MISSING),
    ("values.sizes_ec.median_ec", 1, ONE_MISSING),
    ("values.sizes_ec.n_ec", 1, ONE_MISSING),
    ("values.t_closeness", 1, NO_MISSING),
];

const ONE_MISSING: &str =
    "pandas drops the rows whose only quasi-identifier is missing; here they are a class";

const NO_MISSING: &str =
    "Python compares no missing value with a text; here it is a value, or none for a diversity";

const CAPPED: &str = "the greatest gain is cut at the cap of the rarest value; here each gain has its own cap, and a broken one is NULL";

/// A value of the file.
struct Row {
    /// Its place in a combination; `*` is a sensitive column.
    key: &'static str,
    /// How SQL computes it here. `{q}` are the quasi-identifiers, `{names}` the same as names,
    /// `{s}` is the sensitive column, `{l}` how many values of it every class has, `{t_closeness}`
    /// the distance for its type.
    ours: &'static str,
    /// The table.
    from: &'static str,
    /// The function that finds the worst of several sensitive columns.
    worst: &'static str,
    /// The query for what pyCANON computes, where that is not what is computed here.
    theirs: Option<&'static str>,
}

/// The rows.
const T: &str = "t";

/// The classes.
const C: &str = "classes(t, {names})";

/// A number of the classes that is the same here.
const fn of(key: &'static str, ours: &'static str, from: &'static str) -> Row {
    Row { key, ours, from, worst: "", theirs: None }
}

/// A number of the classes that lacks those of [`ONE_MISSING`] there.
const fn of_present(key: &'static str, ours: &'static str, from: &'static str, theirs: &'static str) -> Row {
    Row { key, ours, from, worst: "", theirs: Some(theirs) }
}

/// What a model of the sensitive columns reached.
const fn reached(key: &'static str, ours: &'static str, worst: &'static str) -> Row {
    Row { key, ours, from: T, worst, theirs: None }
}

/// The same, where pyCANON computes something else.
const fn other(key: &'static str, ours: &'static str, worst: &'static str, theirs: &'static str) -> Row {
    Row { key, ours, from: T, worst, theirs: Some(theirs) }
}

/// The greatest logarithm of the values that the classes have.
const DELTA: &str = "(SELECT max(abs(ln(CAST(n AS DOUBLE) * total / (of_class * of_value)))) FROM (
    SELECT {q}, n, sum(n) OVER (PARTITION BY {q}) AS of_class, sum(n) OVER (PARTITION BY {s}) AS of_value, sum(n) OVER () AS total
    FROM (SELECT {q}, {s}, count(*) AS n FROM t GROUP BY {q}, {s})) WHERE {present})";

/// The greatest gain, cut at the cap of the rarest value.
const ENHANCED: &str = "least((SELECT basic_beta_likeness({s}, {q}) FROM t),
    (SELECT ln(sum(n) / CAST(min(n) AS DOUBLE)) FROM (SELECT count(*) AS n FROM t GROUP BY {s})))";

/// Every value of a combination.
const VALUES: &[Row] = &[
    of("values.k", "k_anonymity({q})", T),
    of_present("values.sizes_ec.n_ec", "count(*)", C, "(SELECT count(*) FROM classes(present, {names}))"),
    of("values.sizes_ec.min_ec", "min(size)", C),
    of("values.sizes_ec.max_ec", "max(size)", C),
    of_present(
        "values.sizes_ec.mean_ec",
        "avg(size)",
        C,
        "(SELECT avg(size) FROM classes(present, {names}))",
    ),
    of_present(
        "values.sizes_ec.median_ec",
        "median(CAST(size AS DOUBLE))",
        C,
        "(SELECT median(CAST(size AS DOUBLE)) FROM classes(present, {names}))",
    ),
    of_present("values.average_rir", "avg(risk)", C, "(SELECT avg(risk) FROM classes(present, {names}))"),
    of("values.max_rir", "prosecutor_risk_max({q})", T),
    reached("values.alpha_k[0]", "alpha_k_anonymity({s}, {q})", "greatest"),
    of("values.alpha_k[1]", "k_anonymity({q})", T),
    reached("values.l_diversity", "l_diversity({s}, {q})", "least"),
    other(
        "values.entropy_l_diversity",
        "entropy_l_diversity({s}, {q})",
        "least",
        "(SELECT floor(entropy_l_diversity({s}, {q}) + 1e-9) FROM t)",
    ),
    other(
        "values.recursive_c_l_diversity[0]",
        "recursive_l_diversity({l}, {s}, {q})",
        "greatest",
        "(SELECT CASE WHEN l_diversity({s}, {q}) > 1 THEN 1 END FROM t)",
    ),
    reached("values.recursive_c_l_diversity[1]", "l_diversity({s}, {q})", "least"),
    reached("values.basic_beta_likeness", "basic_beta_likeness({s}, {q})", "greatest"),
    other("values.enhanced_beta_likeness", "enhanced_beta_likeness({s}, {q})", "greatest", ENHANCED),
    other("values.delta_disclosure", "delta_disclosure({s}, {q})", "greatest", DELTA),
    reached("values.t_closeness", "{t_closeness}({s}, {q})", "greatest"),
    reached("values.sa_entropy.*", "ln(entropy_l_diversity({s}, NULLIF({s}, {s})))", ""),
    of_present(
        "reference.n_classes",
        "expected_reidentifications({q})",
        T,
        "(SELECT expected_reidentifications({q}) FROM present)",
    ),
    of("reference.k", "k_anonymity({q})", T),
    of_present("reference.rows_in_classes", "count(*)", T, "(SELECT count(*) FROM present)"),
    of("reference.rows_in_classes_below.2", "share_at_risk(0.5, {q}) * count(*)", T),
    of("reference.rows_in_classes_below.3", "share_at_risk(0.334, {q}) * count(*)", T),
    of("reference.rows_in_classes_below.5", "share_at_risk(0.2, {q}) * count(*)", T),
    of("reference.rows_in_classes_below.10", "share_at_risk(0.1, {q}) * count(*)", T),
    of("reference.rows_in_classes_below.20", "share_at_risk(0.05, {q}) * count(*)", T),
    of("reference.records_unique", "sample_uniqueness({q}) * count(*)", T),
    of_present(
        "reference.avg_record_risk(records/classes view: n_classes/rows)",
        "average_risk({q})",
        T,
        "(SELECT expected_reidentifications({q}) FROM present) / (SELECT count(*) FROM t)",
    ),
    reached("reference.per_sa.*.alpha", "alpha_k_anonymity({s}, {q})", ""),
    reached("reference.per_sa.*.l_distinct", "l_diversity({s}, {q})", ""),
    reached("reference.per_sa.*.min_class_entropy_nats", "ln(entropy_l_diversity({s}, {q}))", ""),
    reached("reference.per_sa.*.exp_min_entropy(untruncated entropy l)", "entropy_l_diversity({s}, {q})", ""),
    reached("reference.per_sa.*.basic_beta", "basic_beta_likeness({s}, {q})", ""),
    other("reference.per_sa.*.delta", "delta_disclosure({s}, {q})", "", DELTA),
    other("reference.per_sa.*.enhanced_beta_pycanon", "enhanced_beta_likeness({s}, {q})", "", ENHANCED),
    reached("reference.per_sa.*.enhanced_beta_paper", "enhanced_beta_likeness({s}, {q})", ""),
    reached(
        "reference.per_sa.*.recursive_c_paper(must be > this, at l=l_distinct)",
        "recursive_l_diversity({l}, {s}, {q})",
        "",
    ),
    reached("reference.per_sa.*.t_equal", "t_closeness({s}, {q})", ""),
    reached("reference.per_sa.*.t_ordered", "t_closeness_ordered({s}, {q})", ""),
    reached(
        "reference.per_sa.*.is_numeric",
        "CASE WHEN min(arrow_typeof({s})) IN ('Int64', 'Boolean') THEN 1 ELSE 0 END",
        "",
    ),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Truth {
    #[serde(rename = "tool")]
    _tool: String,
    #[serde(rename = "version")]
    _version: String,
    #[serde(rename = "note")]
    _note: String,
    combos: Vec<Combination>,
    edge_cases: BTreeMap<String, Value>,
    /// A greedy search of its own, with its own suppression: its results are no optima.
    #[serde(rename = "anjana")]
    _anjana: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Combination {
    id: String,
    file: String,
    rows: u64,
    qi: Vec<String>,
    sa: Vec<String>,
    /// Whether the other sensitive columns are no quasi-identifiers.
    r#gen: bool,
    #[serde(rename = "note")]
    _note: String,
    values: Value,
    reference: Value,
}

/// The numbers and words below a place, by their places. What pyCANON could not compute is `None`.
fn leaves(place: String, value: &Value, all: &mut Vec<(String, Option<Value>)>) {
    match value {
        Value::Object(fields) if fields.contains_key("error") => all.push((place, None)),
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| leaves(format!("{place}.{name}"), value, all));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, value)| leaves(format!("{place}[{at}]"), value, all));
        }
        leaf => all.push((place, Some(leaf.clone()))),
    }
}

fn quoted<'a>(names: impl IntoIterator<Item = &'a String>, quote: &str) -> String {
    names.into_iter().map(|name| format!("{quote}{name}{quote}")).collect::<Vec<_>>().join(", ")
}

/// A value that is compared.
struct Compared {
    row: &'static Row,
    place: String,
    /// `None` is what pyCANON could not compute.
    expected: Option<Option<f64>>,
    ours: String,
    from: String,
    theirs: Option<String>,
}

impl Combination {
    /// The SQL of the table: Adult as it is, or with what the note adds.
    fn table(&self) -> String {
        let (file, added) = self.file.split_once('+').unwrap_or((&self.file, ""));
        let file = file.strip_suffix(".csv").unwrap();
        let changed = match added {
            "" => "",
            "agebin10" => ", age / 10 * 10 AS agebin",
            "null" => ", NULLIF(occupation, '?') AS occupation_n, \"salary-class\" = '>50K' AS rich",
            other => panic!("an unknown change: {other}"),
        };
        let except =
            if added == "null" { " EXCEPT (workclass), NULLIF(workclass, '?') AS workclass" } else { "" };
        format!("SELECT *{except}{changed} FROM {file}")
    }

    /// The condition that pandas makes of a single quasi-identifier.
    fn present(&self) -> String {
        match self.qi.as_slice() {
            [only] if self.id == "c19_null_qi_single" => format!("\"{only}\" IS NOT NULL"),
            _ => "true".to_owned(),
        }
    }

    fn of_sensitive(&self, column: &str, key: &str) -> Option<&Value> {
        self.reference.get("per_sa")?.get(column)?.get(key)
    }

    /// A template with the names of the combination and of one sensitive column.
    fn filled(&self, template: &str, column: &str) -> String {
        let is_quasi = |other: &&String| !self.r#gen && !column.is_empty() && *other != column;
        let others = self.sa.iter().filter(is_quasi);
        let least = self.of_sensitive(column, "l_distinct").map_or_else(|| "2".into(), Value::to_string);
        let is_numeric = self.of_sensitive(column, "is_numeric") == Some(&Value::Bool(true));
        template
            .replace("{q}", &quoted(self.qi.iter().chain(others), "\""))
            .replace("{names}", &quoted(&self.qi, "'"))
            .replace("{present}", &self.present())
            .replace("{s}", &format!("\"{column}\""))
            .replace("{l}", &least)
            .replace("{t_closeness}", if is_numeric { "t_closeness_ordered" } else { "t_closeness" })
    }

    /// The same for the worst of all sensitive columns.
    fn worst(&self, template: &str, worst: &str) -> String {
        let each: Vec<String> = self.sa.iter().map(|column| self.filled(template, column)).collect();
        if each.len() == 1 { each[0].clone() } else { format!("{worst}({})", each.join(", ")) }
    }

    fn compared(&self) -> Vec<Compared> {
        let mut all = Vec::new();
        leaves("values".into(), &self.values, &mut all);
        leaves("reference".into(), &self.reference, &mut all);
        let compared = all.into_iter().map(|(place, value)| {
            let of_column = self.sa.iter().find_map(|column| {
                let is_part = place.split('.').any(|part| part == column);
                let parts = place.split('.').map(|part| if part == column { "*" } else { part });
                is_part.then(|| (column, parts.collect::<Vec<_>>().join(".")))
            });
            let key = of_column.as_ref().map_or(&place, |(_, key)| key);
            // Of a list that could not be computed, the first.
            let is_it = |row: &&Row| row.key == key || (value.is_none() && row.key == format!("{key}[0]"));
            let row = VALUES.iter().find(is_it);
            let row = row.unwrap_or_else(|| panic!("{}: {place}: which value is it?", self.id));
            let filled = |template: &str| match &of_column {
                Some((column, _)) => self.filled(template, column),
                None if row.worst.is_empty() => self.filled(template, ""),
                None => self.worst(template, row.worst),
            };
            let number = |value: Value| match value {
                Value::Null => None,
                Value::Bool(is) => Some(f64::from(u8::from(is))),
                other => Some(other.as_f64().unwrap_or_else(|| panic!("{}: {place} is no number", self.id))),
            };
            let (ours, from, theirs) = (filled(row.ours), self.filled(row.from, ""), row.theirs.map(filled));
            Compared { row, expected: value.map(number), ours, from, theirs, place: place.clone() }
        });
        compared.collect()
    }
}

pub(crate) async fn run(session: &SessionContext, sql: &str) {
    session.sql(sql).await.unwrap().collect().await.unwrap();
}

/// The numbers of a query of one row.
pub(crate) async fn numbers(session: &SessionContext, sql: &str) -> Vec<Option<f64>> {
    let answer = session.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let batches = answer.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let batches: Vec<_> = batches.iter().filter(|batch| batch.num_rows() > 0).collect();
    assert_eq!((batches.len(), batches[0].num_rows()), (1, 1), "{sql}");
    let number = |column: &ArrayRef| {
        let floats = cast(column, &DataType::Float64).unwrap();
        floats.as_primitive::<Float64Type>().iter().next().unwrap()
    };
    batches[0].columns().iter().map(number).collect()
}

fn close(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) if a.is_finite() && b.is_finite() => {
            (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
        }
        (a, b) => a == b,
    }
}

async fn session(data: &Path) -> SessionContext {
    let session = SessionContext::new();
    register_all(&session).unwrap();
    for name in ["adult", "adult_anonymized_3", "adult_anonymized_10"] {
        let file = data.join(format!("{name}.csv"));
        let options = CsvReadOptions::new().schema_infer_max_records(usize::MAX);
        session.register_csv(name, file.to_str().unwrap(), options).await.unwrap();
    }
    session
}

fn truth(shared: &Path) -> Truth {
    let text = std::fs::read_to_string(shared.join("truth/pycanon_adult.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn every_combination_reaches_what_pycanon_says() {
    let Some(shared) = shared::folder("pycanon") else { return };
    let truth = truth(&shared);
    assert_eq!(truth.combos.len(), 17);
    let session = session(&shared.join("data/adult_full")).await;
    let (mut same, mut different) = (BTreeMap::<&str, usize>::new(), BTreeMap::<&str, usize>::new());
    for combination in &truth.combos {
        let id = &combination.id;
        run(&session, &format!("CREATE TABLE t AS {}", combination.table())).await;
        let present = combination.present();
        run(&session, &format!("CREATE VIEW present AS SELECT * FROM t WHERE {present}")).await;
        assert_eq!(
            numbers(&session, "SELECT count(*) FROM t").await,
            [Some(combination.rows as f64)],
            "{id}"
        );

        let all = combination.compared();
        let mut found: BTreeMap<&str, Vec<&Compared>> = BTreeMap::new();
        all.iter().for_each(|one| found.entry(&one.from).or_default().push(one));
        for (from, of_table) in found {
            let columns = of_table.iter().enumerate().map(|(at, one)| format!("{} AS c{at}", one.ours));
            let sql = format!("SELECT {} FROM {from}", columns.collect::<Vec<_>>().join(", "));
            for (one, ours) in of_table.iter().zip(numbers(&session, &sql).await) {
                let key = one.row.key;
                let Some(expected) = one.expected else {
                    assert!(
                        ours.is_some() || key == "values.enhanced_beta_likeness",
                        "{id}: {}: none",
                        one.place
                    );
                    *different.entry(key).or_default() += 1;
                    continue;
                };
                if close(ours, expected) {
                    *same.entry(key).or_default() += 1;
                    continue;
                }
                let Some(theirs) = &one.theirs else {
                    panic!("{id}: {}: {} {ours:?} {expected:?}", one.place, one.ours)
                };
                let theirs = numbers(&session, &format!("SELECT {theirs}")).await[0];
                assert!(close(theirs, expected), "{id}: {}: {ours:?} {theirs:?} {expected:?}", one.place);
                *different.entry(key).or_default() += 1;
            }
        }
        run(&session, "DROP VIEW present").await;
        run(&session, "DROP TABLE t").await;
    }
    println!(
        "{} values are ours, {} are not",
        same.values().sum::<usize>(),
        different.values().sum::<usize>()
    );
    let expected: BTreeMap<_, _> = DIFFERENT.iter().map(|(key, count, _)| (*key, *count)).collect();
    assert_eq!(different, expected);
    // Every value is ours somewhere but the c that pyCANON never computes.
    let never: Vec<&str> = VALUES.iter().map(|row| row.key).filter(|key| !same.contains_key(key)).collect();
    assert_eq!(never, ["values.recursive_c_l_diversity[0]"]);
}

/// The quantities that `edge_cases` of the file is about; what pyCANON makes of them stands beside.
#[tokio::test]
async fn where_pycanon_rounds_drops_or_fails_the_right_number_is_reached() {
    let Some(shared) = shared::folder("pycanon edge cases") else { return };
    let mut edge = truth(&shared).edge_cases;
    let session = SessionContext::new();
    register_all(&session).unwrap();
    let rows = |values: &str| format!("(VALUES {values})");

    // entropy l of m values that are equally frequent is m; int(e^H) is 2, 3, 6, 7 and 9 for 3, 4,
    // 7, 8 and 10.
    let uniform = edge.remove("entropy_l_uniform_m").unwrap();
    for (m, theirs) in uniform.as_object().unwrap() {
        let (m, theirs): (i64, i64) = (m.parse().unwrap(), theirs.as_i64().unwrap());
        let values: Vec<String> = (0..m).map(|value| format!("(1, {value})")).collect();
        let sql = format!("SELECT entropy_l_diversity(s, a) FROM {} AS t (a, s)", rows(&values.join(", ")));
        assert!(close(numbers(&session, &sql).await[0], Some(m as f64)), "{m}");
        assert!((m - 1..=m).contains(&theirs), "{m}");
    }

    // Recursive (c, l) of one class by its counts.
    let recursive = edge.remove("recursive_c").unwrap();
    let mut reached = Vec::new();
    for case in recursive.as_array().unwrap() {
        let counts: Vec<u64> =
            case["counts"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
        let l = case["l"].as_u64().unwrap();
        let values: Vec<String> = (0u64..)
            .zip(&counts)
            .flat_map(|(value, count)| (0..*count).map(move |_| format!("(1, {value})")))
            .collect();
        let sql =
            format!("SELECT recursive_l_diversity({l}, s, a) FROM {} AS t (a, s)", rows(&values.join(", ")));
        let most = *counts.iter().max().unwrap() as f64;
        let mut sorted = counts.clone();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let others: u64 = sorted.iter().skip(l as usize - 1).sum();
        let found = numbers(&session, &sql).await[0];
        assert!(close(found, Some(most / others as f64)), "{case}: {found:?}");
        reached.push(found.unwrap());
    }
    assert_eq!(reached.len(), 5);

    // A missing quasi-identifier is a value, alone too.
    let nulls = edge.remove("null_qi").unwrap();
    let two = "SELECT k_anonymity(a, b), expected_reidentifications(a, b), count(*) FROM ";
    let two =
        format!("{two}{} AS t (a, b)", rows("('x', 'u'), ('x', 'u'), (NULL, 'u'), ('y', NULL), ('y', 'v')"));
    let of_two = &nulls["two QIs a=[x,x,null,y,y] b=[u,u,u,null,v]"];
    let of_two = ["k", "classes", "rows_counted"].map(|name| of_two[name].as_f64());
    assert_eq!(numbers(&session, &two).await, of_two);
    let one = "SELECT k_anonymity(a), expected_reidentifications(a), count(*) FROM ";
    let one = format!("{one}{} AS t (a)", rows("('x'), ('x'), (NULL), ('y'), ('y')"));
    assert_eq!(numbers(&session, &one).await, [1.0, 3.0, 5.0].map(Some));

    // The order of the rows means nothing.
    let order = edge.remove("index_not_0..n-1").unwrap();
    let sql = format!(
        "SELECT l_diversity(s, a) FROM {} AS t (a, s)",
        rows("('x', 1), ('y', 2), ('x', 1), ('y', 2)")
    );
    assert_eq!(numbers(&session, &sql).await, [order["true_l"].as_f64()]);

    // Errors there, numbers here.
    assert_eq!(edge.remove("empty_table").unwrap(), "ValueError");
    let none =
        format!("SELECT k_anonymity(a), t_closeness(s, a) FROM {} AS t (a, s) WHERE a > 1", rows("(1, 1)"));
    assert_eq!(numbers(&session, &none).await, [None, None]);
    assert_eq!(edge.remove("all_null_single_qi").unwrap(), "ValueError");
    let null = format!("SELECT k_anonymity(a) FROM {} AS t (a)", rows("(CAST(NULL AS INT)), (NULL)"));
    assert_eq!(numbers(&session, &null).await, [Some(2.0)]);
    assert_eq!(edge.remove("numeric_sa_one_value_t").unwrap(), "ZeroDivisionError");
    assert_eq!(edge.remove("string_sa_one_value_t").unwrap(), 0.0);
    let single = "SELECT t_closeness_ordered(n, a), t_closeness(s, a) FROM ";
    let single = format!("{single}{} AS t (a, n, s)", rows("(1, 7, 'x'), (2, 7, 'x')"));
    assert_eq!(numbers(&session, &single).await, [Some(0.0), Some(0.0)]);
    // Nothing here has categories besides those of the rows.
    assert_eq!(edge.remove("pandas_categorical_unobserved_level").unwrap()["k"], 0);
    assert!(edge.is_empty(), "{edge:?}");
}
