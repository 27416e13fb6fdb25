//! Queries: every function of this crate in calls with any types, counts and constants, over a
//! table with a column of every type.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch, new_null_array};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_kanon::internals::generalize::GENERALIZERS;
use datafusion_kanon::internals::measure::RISKS;
use datafusion_kanon::internals::parameter::Kind;
use datafusion_kanon::internals::sql::register_all;
use tokio::runtime::Runtime;

use super::columns::{extremes, types};
use super::random::{NUMBERS, Random};
use super::{LONG, Target, shows_no_cell};

pub(super) struct Queries {
    runtime: Runtime,
    session: SessionContext,
    columns: Vec<(String, DataType)>,
}

const PERIODS: &[&str] = &["day", "week", "month", "quarter", "year", "decade", "century"];
const STEPS: &[&str] = &["1", "2", "5", "10", "0.5", "1000", "0.1", "4000000000000000"];

impl Queries {
    pub(super) fn new() -> Self {
        let columns: Vec<(String, DataType)> = types()
            .into_iter()
            .filter(|(_, of)| !matches!(of, DataType::Timestamp(_, Some(zone)) if **zone == *"Mars/Olympus"))
            .collect();
        let schema = Schema::new(
            columns.iter().map(|(name, of)| Field::new(name, of.clone(), true)).collect::<Vec<_>>(),
        );
        let rows = 48;
        let arrays = columns.iter().map(|(_, of)| {
            let values = extremes(of);
            let nulls = new_null_array(of, rows - values.len());
            concat(&[&values, &nulls]).unwrap()
        });
        let batch = RecordBatch::try_new(Arc::new(schema), arrays.collect()).unwrap();
        let parts = vec![vec![batch.slice(0, 20), batch.slice(20, 0)], vec![batch.slice(20, rows - 20)]];
        let table = MemTable::try_new(batch.schema(), parts).unwrap();
        let session = SessionContext::new_with_config(
            SessionConfig::new().with_target_partitions(2).with_batch_size(16),
        );
        session.register_table("t", Arc::new(table)).unwrap();
        register_all(&session).unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self { runtime, session, columns }
    }

    fn column(&self, random: &mut Random) -> String {
        self.columns[random.below(self.columns.len())].0.clone()
    }

    fn literal(random: &mut Random) -> String {
        match random.below(8) {
            0 => "NULL".to_owned(),
            1 => format!("'{}'", random.pick(NUMBERS)),
            2 => format!("'{}'", random.word().replace('\'', "''")),
            3 => format!("'{}'", random.pick(PERIODS)),
            4 => format!(
                "arrow_cast({}, '{}')",
                random.pick(NUMBERS),
                random.pick(&["Int8", "UInt64", "Float16", "Float64", "Decimal128(38, 10)"])
            ),
            5 => random
                .pick(&[
                    "true",
                    "'NaN'::double",
                    "DATE '2024-02-29'",
                    "TIMESTAMP '1969-12-31T23:59:59'",
                    "INTERVAL '1 month'",
                    "X'00ff'",
                    "[1, 2]",
                ])
                .to_owned(),
            _ => random.pick(NUMBERS).to_owned(),
        }
    }

    fn value(&self, random: &mut Random, deep: usize) -> String {
        match random.below(6) {
            0 => Self::literal(random),
            1 if deep > 0 => self.generalized(random, deep - 1),
            _ => self.column(random),
        }
    }

    /// A call of a generalizer, mostly one that it can be.
    fn generalized(&self, random: &mut Random, deep: usize) -> String {
        let row = &GENERALIZERS[random.below(GENERALIZERS.len())];
        let name = row.doc.name;
        let fits = !random.once_in(4);
        let mut arguments = vec![if fits { self.fitting(random, name) } else { self.value(random, deep) }];
        match row.parameters.first().map(|parameter| parameter.kind) {
            _ if random.once_in(8) => arguments.push(self.value(random, 0)),
            Some(Kind::Levels(Kind::Choice(_))) => arguments.push(format!("'{}'", random.pick(PERIODS))),
            Some(Kind::Levels(Kind::Numbers) | Kind::Number) => {
                arguments.extend((0..2).map(|_| random.pick(STEPS).to_owned()));
            }
            Some(Kind::Levels(_)) => arguments.push(random.pick(STEPS).to_owned()),
            Some(Kind::Choice(words)) => arguments.push(format!("'{}'", random.pick(words))),
            _ => {}
        }
        if random.once_in(15) {
            arguments.push(Self::literal(random));
        }
        if random.once_in(20) {
            arguments.remove(0);
        }
        format!("generalize_{name}({})", arguments.join(", "))
    }

    /// A column that a generalizer takes.
    fn fitting(&self, random: &mut Random, generalizer: &str) -> String {
        let is_time =
            |of: &DataType| matches!(of, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64);
        match generalizer {
            "date" => self.of_type(random, is_time),
            "bands" | "clip" | "floor" | "range" => self.of_type(random, DataType::is_numeric),
            _ => self.of_type(random, |of| of.is_string() || of.is_integer()),
        }
    }

    fn of_type(&self, random: &mut Random, fits: impl Fn(&DataType) -> bool) -> String {
        let fitting: Vec<&str> =
            self.columns.iter().filter(|(_, of)| fits(of)).map(|(name, _)| name.as_str()).collect();
        random.pick(&fitting).to_owned()
    }

    /// A call of an aggregate over classes.
    fn aggregate(&self, random: &mut Random) -> String {
        let risk = &RISKS[random.below(RISKS.len())];
        let (name, constants) = match random.below(3) {
            0 => ("k_anonymity", 0),
            1 => ("l_diversity", 0),
            _ => (risk.doc.name, risk.parameters.len()),
        };
        let end = if random.once_in(3) { "_individuals" } else { "" };
        let mut arguments: Vec<String> = (0..constants)
            .map(|_| {
                if random.once_in(3) {
                    self.value(random, 1)
                } else {
                    random.pick(&["0.2", "0", "1", "0.05"]).to_owned()
                }
            })
            .collect();
        arguments.extend((0..random.below(4)).map(|_| self.value(random, 1)));
        let distinct = if random.once_in(15) { "DISTINCT " } else { "" };
        let behind = match random.below(12) {
            0 => " FILTER (WHERE c12 > 'a')",
            1 => " OVER (PARTITION BY c0)",
            2 => " OVER (ORDER BY c4)",
            3 => " OVER ()",
            _ => "",
        };
        format!("{name}{end}({distinct}{}){behind}", arguments.join(", "))
    }
}

impl Target for Queries {
    const NAME: &'static str = "sql";
    const TOKENS: &'static [&'static str] = &[
        "generalize_date(",
        "generalize_floor(",
        "generalize_range(",
        "generalize_prefix(",
        "generalize_suppress(",
        "k_anonymity(",
        "l_diversity_individuals(",
        "classes(t, ",
        "link(t, t, ",
        "anonymize(t, ",
        "individual => ",
        "share_at_risk(",
        "0.2",
        "NULL",
        "c1",
        "c4",
        "c12",
        "c16",
        "c30",
        "'year'",
        "'zqxj'",
        "'",
        ",",
        "(",
        ")",
        " GROUP BY c0",
        " FROM t",
        "DISTINCT ",
        "arrow_cast(c1, 'Utf8')",
        " OVER ()",
        "count(*)",
        "-",
    ];

    fn random(&self, random: &mut Random) -> Vec<u8> {
        let where_ = random.pick(&["", "", " WHERE c12 IS NOT NULL", " WHERE false", " WHERE c4 > 0"]);
        let text = match random.below(7) {
            6 => {
                let columns: Vec<String> = (0..random.below(4)).map(|_| self.value(random, 1)).collect();
                let call = random.pick(&[
                    "classes(t",
                    "risk(t",
                    "link(t, t",
                    "classes((SELECT * FROM t WHERE c4 > 0)",
                ]);
                let named =
                    random.pick(&["", ", sensitive => c1", ", individual => c3", ", individual => 'zqxj'"]);
                format!("SELECT * FROM {call}, {}{named})", columns.join(", "))
            }
            0 => {
                let calls: Vec<String> = (0..=random.below(2)).map(|_| self.generalized(random, 2)).collect();
                format!("SELECT {} FROM t{where_}", calls.join(", "))
            }
            1 => format!("SELECT {}", self.generalized(random, 1)),
            2 => format!("SELECT {} FROM t{where_}", self.aggregate(random)),
            3 => format!(
                "SELECT c0, {}, {} FROM t{where_} GROUP BY c0",
                self.aggregate(random),
                self.aggregate(random)
            ),
            // What `attempt` compares: NULL stays NULL and nothing becomes it; the smallest class
            // is that of GROUP BY.
            4 => {
                let row = &GENERALIZERS[random.below(GENERALIZERS.len())];
                let (name, column) = (row.doc.name, self.fitting(random, row.doc.name));
                let call = match row.parameters.first().map(|parameter| parameter.kind) {
                    Some(Kind::Levels(Kind::Choice(_))) => {
                        format!("generalize_{name}({column}, '{}')", random.pick(PERIODS))
                    }
                    Some(Kind::Levels(_)) => format!("generalize_{name}({column}, {})", random.pick(STEPS)),
                    Some(Kind::Number) => {
                        format!("generalize_{name}({column}, NULL, {})", random.pick(STEPS))
                    }
                    _ => column.clone(),
                };
                let row = random.below(45);
                format!(
                    "SELECT count({column}) AS left_, count({call}) AS right_ FROM (SELECT * FROM t LIMIT 1 OFFSET {row})"
                )
            }
            _ => {
                let plain = |of: &DataType| !of.is_floating() && !of.is_nested() && *of != DataType::Null;
                let keys: Vec<String> = (0..=random.below(2)).map(|_| self.of_type(random, plain)).collect();
                let keys = keys.join(", ");
                format!(
                    "SELECT (SELECT k_anonymity({keys}) FROM t{where_}) AS left_, (SELECT min(n) FROM (SELECT count(*) AS n FROM \
                     t{where_} GROUP BY {keys})) AS right_"
                )
            }
        };
        marked(&text).into_bytes()
    }

    fn attempt(&mut self, input: &[u8]) -> Result<(), String> {
        let text = String::from_utf8_lossy(input).into_owned();
        // A query that reads, and only what is here.
        let only_reads =
            SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        // The engine's planner recurses; how deep a query may be is no question to this crate.
        let is_deep = text.len() > 800 || text.matches(['(', '[', '-']).count() > 60;
        if is_deep || !text.trim_start().to_lowercase().starts_with("select") {
            return Ok(());
        }
        let limit = Duration::from_secs(4) * LONG.as_secs() as u32;
        let answer = self.runtime.block_on(async {
            let work = async { self.session.sql_with_options(&text, only_reads).await?.collect().await };
            tokio::time::timeout(limit, work).await
        });
        match answer.map_err(|_| "it takes forever".to_owned())? {
            Ok(batches) if is_marked(&text) => batches.iter().try_for_each(compare),
            Ok(_) => Ok(()),
            Err(error) => {
                let is_ours = [
                    "generalize_",
                    "k_anonymity",
                    "l_diversity",
                    "risk",
                    "unique",
                    "reidentif",
                    "classes(",
                    "link(",
                ]
                .iter()
                .any(|name| text.contains(name));
                match error.find_root() {
                    DataFusionError::ExecutionJoin(why) => Err(format!("a task failed: {why}")),
                    DataFusionError::Internal(why) if is_ours => Err(format!("an internal error: {why}")),
                    _ => shows_no_cell(&error.to_string(), &text),
                }
            }
        }
    }
}

/// A query with a mark behind it, which it loses when it is changed: `left_` and `right_` mean
/// something only as they were written.
fn marked(query: &str) -> String {
    let mark = query.bytes().fold(7_u32, |mark, byte| mark.wrapping_mul(31).wrapping_add(byte.into()));
    format!("{query} -- {mark}")
}

fn is_marked(text: &str) -> bool {
    text.rsplit_once(" -- ").is_some_and(|(query, _)| marked(query) == text)
}

/// `left_` and `right_` of a query that asks for both are equal.
fn compare(batch: &RecordBatch) -> Result<(), String> {
    let (Some(left), Some(right)) = (batch.column_by_name("left_"), batch.column_by_name("right_")) else {
        return Ok(());
    };
    let (Some(left), Some(right)) =
        (left.as_primitive_opt::<Int64Type>(), right.as_primitive_opt::<Int64Type>())
    else {
        return Ok(());
    };
    if left.iter().eq(right.iter()) { Ok(()) } else { Err("left_ and right_ differ".to_owned()) }
}
