//! Verify: counts what was written, against the input, and trusts nothing that the method said.
//!
//! Input and output are read anew in a session of their own, with statistics and all rules of ours off. The
//! input is recoded by the naive generalizers. One GROUP BY over both together gives per class its rows on
//! either side and an order-free 128-bit sum of row hashes under a random key:
//!
//! ```text
//! UNION ALL of (labels, 1, 0, hashes of the row as it must be released, 0)   from the input
//!              (values, 0, 1, 0, hashes of the row as it was written)        from the output
//! GROUP BY labels -> rows and hash sums on either side
//! ```
//! A class that holds every model must be equal on both sides; one that fails must be absent from the output.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::UInt64Type;
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::DataFrame;
use futures::StreamExt;

use super::engine::{Doing, column};
use super::functions::{Evaluation, level, row_hash};
use super::stop::Stop;
use crate::decimal::Decimal;
use crate::error::{Error, Result};
use crate::generalize::{Generalizer, Value};
use crate::measure::ClassSizes;
use crate::model::{Class, ClassModel, Quantity};

/// What a release must be.
pub struct Expected<'a> {
    /// The released columns in order: name, and for a quasi-identifier the generalizer of its level.
    pub columns: Vec<(String, Option<Arc<dyn Generalizer>>)>,
    /// What every class must hold.
    pub models: &'a [Box<dyn ClassModel>],
    /// The share of the input that may be suppressed; `None` when only the output is judged.
    pub suppression_limit: Option<Decimal>,
}

/// What was counted in a release that passed.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// The released classes.
    pub sizes: ClassSizes,
    /// The rows that are in the input and not in the release; `None` without the input.
    pub suppressed_rows: Option<u64>,
    /// Per model what was reached.
    pub reached: Vec<Option<Quantity>>,
}

/// Counts of classes by what is wrong with them.
#[derive(Debug, Default)]
struct Wrong {
    fails_a_model: u64,
    not_in_input: u64,
    rows_missing: u64,
    rows_added: u64,
    rows_altered: u64,
    no_label: u64,
}

impl Wrong {
    fn into_result(self) -> Result<()> {
        let findings = [
            (self.fails_a_model, "fail a required model"),
            (self.not_in_input, "have quasi-identifiers that no input row generalizes to"),
            (self.rows_missing, "miss rows of the input"),
            (self.rows_added, "have more rows than the input"),
            (self.rows_altered, "have rows that differ from the input's"),
            (self.no_label, "hold a value that is no label of its level"),
        ];
        let said: Vec<String> = findings
            .iter()
            .filter(|(classes, _)| *classes > 0)
            .map(|(classes, what)| {
                format!("{classes} {} {what}", if *classes == 1 { "class" } else { "classes" })
            })
            .collect();
        if said.is_empty() {
            Ok(())
        } else {
            Err(Error::unmet(format!("verification refused: {}", said.join("; "))))
        }
    }
}

/// The columns of the counting plan behind the quasi-identifiers.
const COUNTS: [&str; 6] = ["in_rows", "out_rows", "in_hash_a", "in_hash_b", "out_hash_a", "out_hash_b"];

/// Judges the rows of `output`, with `input` against the input's, without it by themselves.
///
/// # Errors
/// An unmet error that says what is wrong; a data error when counting fails, which refuses as well.
pub async fn verify(
    output: DataFrame,
    input: Option<DataFrame>,
    expected: &Expected<'_>,
    stop: &Stop,
) -> Result<Verified> {
    let doing = "verifying the release";
    let with_input = input.is_some();
    let plan = counting_plan(output, input, expected)?;
    let mut stream = plan.execute_stream().await.doing(doing)?;
    let quasi: Vec<&Arc<dyn Generalizer>> = expected.columns.iter().filter_map(|(_, g)| g.as_ref()).collect();
    let mut wrong = Wrong::default();
    let mut sizes = ClassSizes::default();
    let mut values: Vec<Vec<Quantity>> = vec![Vec::new(); expected.models.len()];
    let (mut input_rows, mut kept_rows) = (0u64, 0u64);
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.doing(doing)?;
        let (labels, counts) = batch.columns().split_at(quasi.len());
        let count = |index: usize, row: usize| counts[index].as_primitive::<UInt64Type>().value(row);
        for row in 0..batch.num_rows() {
            let [in_rows, out_rows] = [count(0, row), count(1, row)];
            input_rows += in_rows;
            let truth = if with_input { in_rows } else { out_rows };
            let class = Class { size: truth };
            let quantities: Vec<Quantity> = expected.models.iter().map(|model| model.value(&class)).collect();
            let holds = expected.models.iter().zip(&quantities).all(|(model, value)| model.holds(*value));
            if out_rows > 0 {
                for (label, generalizer) in labels.iter().zip(&quasi) {
                    if !generalizer.is_label(&Value::read(label, row)?) {
                        wrong.no_label += 1;
                        break;
                    }
                }
            }
            match (truth, out_rows) {
                (0, _) => wrong.not_in_input += 1,
                (_, 0) if holds => wrong.rows_missing += 1,
                (_, 0) => {}
                _ if !holds => wrong.fails_a_model += 1,
                _ if out_rows < truth => wrong.rows_missing += 1,
                _ if out_rows > truth => wrong.rows_added += 1,
                _ if with_input && [count(2, row), count(3, row)] != [count(4, row), count(5, row)] => {
                    wrong.rows_altered += 1;
                }
                _ => {
                    kept_rows += out_rows;
                    sizes.add(out_rows);
                    values.iter_mut().zip(quantities).for_each(|(all, value)| all.push(value));
                }
            }
        }
        for (model, all) in expected.models.iter().zip(&mut values) {
            let worst = model.reached(&mut all.drain(..));
            all.extend(worst);
        }
    }
    wrong.into_result()?;
    if kept_rows == 0 {
        return Err(Error::unmet("verification refused: the release has no rows"));
    }
    if let (true, Some(limit)) = (with_input, expected.suppression_limit) {
        let suppressed = input_rows - kept_rows;
        let allowed = limit.floor_of(input_rows);
        if suppressed > allowed {
            return Err(Error::unmet(format!(
                "verification refused: {suppressed} rows are suppressed, {allowed} are allowed"
            )));
        }
    }
    Ok(Verified {
        sizes,
        suppressed_rows: with_input.then(|| input_rows - kept_rows),
        reached: values.into_iter().map(|all| all.first().copied()).collect(),
    })
}

/// The one plan of a verification.
fn counting_plan(output: DataFrame, input: Option<DataFrame>, expected: &Expected<'_>) -> Result<DataFrame> {
    let doing = "planning the verification";
    let mut random = [0u8; 32];
    rand::TryRng::try_fill_bytes(&mut rand::rngs::SysRng, &mut random)
        .map_err(|_| Error::data("no random numbers can be had from the system").at(doing))?;
    let word =
        |at: usize| random.iter().skip(at * 8).take(8).fold(0u64, |w, byte| (w << 8) | u64::from(*byte));
    let keys = [[word(0), word(1)], [word(2), word(3)]];

    let mut rows = side(output, expected, None, keys)?;
    if let Some(input) = input {
        rows = rows.union(side(input, expected, Some(Evaluation::Naive), keys)?).doing(doing)?;
    }
    let labels = (0..expected.columns.len()).filter(|index| expected.columns[*index].1.is_some());
    let sums = COUNTS.iter().map(|name| sum(column(*name)).alias(*name)).collect();
    rows.aggregate(labels.map(|index| column(label_name(index))).collect(), sums).doing(doing)
}

/// One side of the comparison: labels, then the counts that this side contributes.
fn side(
    table: DataFrame,
    expected: &Expected<'_>,
    recode: Option<Evaluation>,
    keys: [[u64; 2]; 2],
) -> Result<DataFrame> {
    let doing = "planning the verification";
    let released = expected.columns.iter().enumerate().map(|(index, (name, generalizer))| {
        let value = column(name);
        let value = match (generalizer, recode) {
            (Some(generalizer), Some(how)) => level(Arc::clone(generalizer), name, how, value),
            _ => value,
        };
        value.alias(label_name(index))
    });
    let released = table.select(released.collect::<Vec<_>>()).doing(doing)?;
    let all: Vec<Expr> = (0..expected.columns.len()).map(|index| column(label_name(index))).collect();
    let hash = |key: [u64; 2]| row_hash(key, all.clone());
    let nothing = || lit(0u64);
    let counts = match recode {
        Some(_) => [lit(1u64), nothing(), hash(keys[0]), hash(keys[1]), nothing(), nothing()],
        None => [nothing(), lit(1u64), nothing(), nothing(), hash(keys[0]), hash(keys[1])],
    };
    let labels = expected.columns.iter().enumerate().filter(|(_, (_, generalizer))| generalizer.is_some());
    let mut columns: Vec<Expr> = labels.map(|(index, _)| column(label_name(index))).collect();
    columns.extend(counts.into_iter().zip(COUNTS).map(|(value, name)| value.alias(name)));
    released.select(columns).doing(doing)
}

fn label_name(index: usize) -> String {
    format!("kanon_column_{index}")
}

/// Whether a sum of hashes wraps in the engine is pinned by a test: a sum that failed would refuse, never pass.
#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, StringViewArray, UInt64Array};
    use arrow::datatypes::DataType;
    use arrow::record_batch::RecordBatch;
    use datafusion::prelude::SessionContext;

    use crate::generalize::{AsIs, suppress::Suppress};
    use crate::model::k_anonymity::KAnonymity;
    use crate::release::engine::Resources;

    fn table(session: &SessionContext, zips: &[Option<&str>], notes: &[&str]) -> DataFrame {
        let zip: ArrayRef = Arc::new(StringViewArray::from(zips.to_vec()));
        let note: ArrayRef = Arc::new(StringViewArray::from(notes.to_vec()));
        session.read_batch(RecordBatch::try_from_iter([("zip", zip), ("note", note)]).unwrap()).unwrap()
    }

    async fn judge(
        out: (&[Option<&str>], &[&str]),
        limit: &str,
        level: Arc<dyn Generalizer>,
    ) -> Result<Verified> {
        let session = Resources { threads: 2, memory: 1 << 28, spill: None }.session().unwrap();
        let input = table(
            &session,
            &[Some("1"), Some("1"), None, None, None, Some("2")],
            &["a", "b", "c", "c", "d", "e"],
        );
        let models: Vec<Box<dyn ClassModel>> = vec![Box::new(KAnonymity::new(2).unwrap())];
        let expected = Expected {
            columns: vec![("zip".into(), Some(level)), ("note".into(), None)],
            models: &models,
            suppression_limit: Some(Decimal::parse(limit).unwrap()),
        };
        verify(table(&session, out.0, out.1), Some(input), &expected, &Stop::default()).await
    }

    const RIGHT: (&[Option<&str>], &[&str]) =
        (&[None, Some("1"), None, Some("1"), None], &["d", "b", "c", "a", "c"]);

    #[tokio::test]
    async fn a_right_release_passes() {
        let verified = judge(RIGHT, "0.2", Arc::new(AsIs { text: true })).await.unwrap();
        assert_eq!(verified.suppressed_rows, Some(1));
        assert_eq!(verified.reached, [Some(Quantity::Count(2))]);
        assert_eq!(verified.sizes, [2, 3].into_iter().collect());
    }

    #[tokio::test]
    async fn each_wrong_release_is_refused_for_its_reason() {
        let as_is = || -> Arc<dyn Generalizer> { Arc::new(AsIs { text: true }) };
        let cases: [(&[Option<&str>], &[&str], &str); 7] = [
            (&[None, Some("1"), None, Some("1")], &["d", "b", "c", "a"], "miss rows"),
            (&[None, None, None], &["c", "c", "d"], "miss rows"),
            (
                &[None, Some("1"), None, Some("1"), None, Some("2")],
                &["d", "b", "c", "a", "c", "e"],
                "fail a required model",
            ),
            (&[None, Some("1"), None, Some("1"), None, None], &["d", "b", "c", "a", "c", "c"], "more rows"),
            (&[None, Some("1"), None, Some("1"), None], &["c", "b", "d", "a", "a"], "differ"),
            (&[None, Some("1"), None, Some("1"), None], &["d", "a", "c", "a", "c"], "differ"),
            (&[None, Some("1"), None, Some("1"), Some("")], &["d", "b", "c", "a", "c"], "no input row"),
        ];
        for (zips, notes, reason) in cases {
            let error = judge((zips, notes), "0.2", as_is()).await.unwrap_err();
            assert!(error.to_string().contains(reason), "{error} does not say `{reason}`");
        }
        assert!(
            judge(RIGHT, "0.1", as_is()).await.unwrap_err().to_string().contains("1 rows are suppressed, 0")
        );
        let top = judge(RIGHT, "0.2", Arc::new(Suppress::star())).await.unwrap_err();
        assert!(top.to_string().contains("no label"), "{top}");
        assert!(judge((&[], &[]), "1", as_is()).await.is_err());
    }

    #[tokio::test]
    async fn sums_of_hashes_wrap() {
        let session = Resources::default_of_machine().session().unwrap();
        let n: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX, 3]));
        let batch = RecordBatch::try_from_iter([("n", n)]).unwrap();
        let sums = session.read_batch(batch).unwrap().aggregate(vec![], vec![sum(column("n"))]).unwrap();
        let sums = sums.collect().await.unwrap();
        assert_eq!(sums[0].column(0).as_primitive::<UInt64Type>().value(0), 2);
    }

    #[tokio::test]
    async fn the_plan_is_a_plain_group_by() {
        let session = Resources { threads: 2, memory: 1 << 28, spill: None }.session().unwrap();
        let rows = || table(&session, &[Some("1")], &["a"]);
        let models: Vec<Box<dyn ClassModel>> = vec![];
        let as_is: Arc<dyn Generalizer> = Arc::new(AsIs { text: true });
        let expected = Expected {
            columns: vec![("zip".into(), Some(as_is)), ("note".into(), None)],
            models: &models,
            suppression_limit: None,
        };
        let plan =
            counting_plan(rows(), Some(rows()), &expected).unwrap().create_physical_plan().await.unwrap();
        let shown = datafusion::physical_plan::displayable(plan.as_ref()).indent(false).to_string();
        let operators: std::collections::BTreeSet<&str> =
            shown.lines().filter_map(|line| line.trim().split([':', ' ']).next()).collect();
        let plain = [
            "AggregateExec",
            "DataSourceExec",
            "ProjectionExec",
            "RepartitionExec",
            "UnionExec",
            "CoalescePartitionsExec",
        ];
        assert!(operators.iter().all(|op| plain.contains(op)), "{shown}");
        assert!(shown.contains("AggregateExec"));
        let options = session.copied_config();
        assert!(
            !options.options().execution.collect_statistics && !options.options().execution.parquet.pruning
        );
        assert_eq!(DataType::UInt64, plan.schema().field(2).data_type().clone());
    }
}
