//! Verify: counts the written rows against the input, and trusts no claim of the method.
//!
//! Input and output are read anew in a separate session, without our rules, operators and class keys, and with
//! statistics turned off; `release/verifying_plans_tests.rs` walks every plan. `plain_values` reads the texts of untyped formats; the naive generalizers recode the input.
//! One GROUP BY over both together returns for each class its rows on either side and an order-free
//! 128-bit sum of row hashes under a random key:
//!
//! ```text
//! UNION ALL of (labels, 1, 0, hashes of what else must be released, 0)   from the input
//!              (values, 0, 1, 0, hashes of what else was written)        from the output
//! GROUP BY labels -> rows and hash sums on either side
//! ```
//! If there are sensitive columns, the GROUP BY includes their values, and a sort brings the groups
//! of a class together; the same holds for individuals, whom only the input names. Models that
//! compare a class with the whole input get the distribution of their column from a GROUP BY of the
//! input before. A class that satisfies every model must be equal on both sides; a class that fails
//! one must be absent from the output. Where classes show regions, the assignment says which rows
//! are suppressed: every class that it keeps must satisfy every model and be equal on both sides.
//! To suppress a class that satisfies them is not refused, within the limit; nor is it where a
//! model holds over a subset of the quasi-identifiers. Such a model is judged afterwards, on the
//! released rows grouped by these columns alone.
//!
//! Within a class the labels are equal, so only the other released values are hashed. A sum of hashes does not
//! depend on the order of rows. The key is drawn when the verification is planned, so a forger cannot choose rows
//! with the right sum. The sums are plain `sum(UInt64)`, which wraps in DataFusion; a test pins that. A GROUP BY
//! over the UNION ALL spills, where a join of both sides would not.

pub mod as_is;
mod assigner;
pub(crate) mod assignment;
mod centroids;
mod counting;
mod distributions;
mod each_class;
pub mod expected;
pub mod groups;
pub(crate) mod histories;
pub(crate) mod holders;
pub mod homogeneous;
mod judge;
mod labels;
mod members;
#[cfg(test)]
mod memory_tests;
pub(crate) mod merged_values;
pub mod noise;
mod over_subset;
pub(crate) mod per_class;
mod population;
pub(crate) mod row_lines;
pub mod sufficient;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Schema, UInt32Type};
use datafusion::logical_expr::cast;
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;

use crate::class::Budget;
use crate::engine::functions::random_keys;
use crate::engine::{Context, PoolBudget, column};
use crate::error::{Error, Result};
use crate::model::{Distribution, SensitiveColumn};
use crate::progress::CancelToken;
use crate::verify::as_is::ReleasedRows;
use crate::verify::assignment::SUPPRESSED;
use crate::verify::counting::{counted_name, counting_plan};
use crate::verify::distributions::distributions;
use crate::verify::each_class::CountedColumn;
pub use crate::verify::expected::Expected;
use crate::verify::judge::{Counts, Judge};
pub use crate::verify::judge::{IndividualCounts, Verified};
use crate::verify::labels::Labels;
use crate::verify::per_class::{PerClass, Position, individual};
use crate::verify::population::LabelledPopulation;

/// Judges the rows of `output`: against the rows of `input` if it is given, otherwise by
/// themselves.
///
/// # Errors
/// An unmet error that says what is wrong; a data error when counting fails, which also refuses the
/// release.
pub async fn verify(
    session: &SessionContext,
    output: DataFrame,
    input: Option<DataFrame>,
    expected: &Expected<'_>,
    stop: &CancelToken,
) -> Result<Verified> {
    let doing = "verifying the release";
    let with_input = input.is_some();
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "verification"));
    let labels = expected.labels(&budget);
    let assigner = expected.assigner(&budget)?.filter(|_| with_input);
    let counted = expected.counted()?;
    let plan = counting_plan(output.clone(), input.clone(), expected, &counted, assigner.as_ref(), &labels)?;
    let mut fold = PerClass::new(counted.len(), expected.individual.is_some(), &budget);
    let inputs = match &input {
        Some(input) => distributions_of(input, &plan, expected, &counted, &mut fold, stop).await?,
        None => Vec::new(),
    };
    let population = match &expected.population {
        Some(table) => Some(LabelledPopulation::count(table, expected, &labels, &budget, stop).await?),
        None => None,
    };
    let mut stream = plan.execute_stream().await.context(doing)?;
    let mut judge = Judge::new(expected, inputs, population, with_input, &budget)?;
    let mut class = Counts::default();
    while let Some(batch) = stream.next().await {
        stop.check()?;
        let batch = batch.context(doing)?;
        let (position, columns) = match fold.width() {
            0 => (None, batch.columns()),
            _ => Position::split(&batch).map(|(position, columns)| (Some(position), columns))?,
        };
        let (numbers, columns) = columns.split_at(expected.quasi().count());
        // All rows are grouped before the first group arrives: every label is known.
        let wrong = wrong_labels(numbers, expected, &labels)?;
        let suppressed = suppressed(numbers);
        let (values, counts) = columns.split_at(fold.width());
        let values = fold.values(values)?;
        for (row, (wrong, suppressed)) in wrong.into_iter().zip(suppressed).enumerate() {
            // Without further grouping columns, every row is a class.
            let begins = position.as_ref().is_none_or(|position| fold.begins(position.at(row)));
            if begins && class.any() {
                judge.judge(&std::mem::take(&mut class), &fold.take())?;
            }
            let group = Counts::read(counts, row);
            if class.labels.is_empty() {
                class.labels = labels_at(numbers, row);
            }
            class.no_label |= group.out_rows > 0 && wrong;
            class.is_suppressed |= suppressed;
            fold.add(row, &values, if with_input { group.in_rows } else { group.out_rows })?;
            class.add(&group);
        }
        judge.reduce();
    }
    if class.any() {
        judge.judge(&class, &fold.take())?;
    }
    if let Some(assigner) = assigner {
        assigner.check_assignment()?;
    }
    let mut verified = judge.verdict(expected, fold.individuals().map(|all| (all, fold.most_rows())))?;
    if expected.requirements.iter().any(|requirement| !requirement.is_over_all_quasi()) {
        let rows = ReleasedRows::new(session, output, input, expected, &verified, stop).await?;
        verified.reached = rows.judge_over_subsets(verified.reached).await?;
    }
    Ok(verified)
}

/// Returns the numbers of the labels in a row.
fn labels_at(numbers: &[ArrayRef], row: usize) -> Vec<u32> {
    numbers.iter().map(|numbers| numbers.as_primitive::<UInt32Type>().value(row)).collect()
}

/// Returns the distributions of the sensitive columns over the input, for the models that read
/// them. The values have the types that they have in the counting plan.
async fn distributions_of(
    input: &DataFrame,
    plan: &DataFrame,
    expected: &Expected<'_>,
    counted: &[(SensitiveColumn, bool)],
    fold: &mut PerClass,
    stop: &CancelToken,
) -> Result<Vec<Distribution>> {
    let doing = "planning the verification";
    let of_column = |(at, (of, reads_whole)): (usize, &(SensitiveColumn, bool))| {
        let field = plan.schema().field_with_unqualified_name(&counted_name(at)).context(doing)?;
        let CountedColumn { seen, read_whole } = CountedColumn::of(of, column(of.name()), *reads_whole);
        Ok(CountedColumn { seen: cast(seen, field.data_type().clone()), read_whole })
    };
    let columns: Vec<CountedColumn> = counted.iter().enumerate().map(of_column).collect::<Result<_>>()?;
    let individual = match &expected.individual {
        Some(name) => individual(column(name), random_keys(doing)?)?,
        None => Vec::new(),
    };
    distributions(input, &columns, &individual, fold, stop).await
}

/// Checks that a release and its verification read each input column as the same type.
///
/// # Errors
/// An unmet error that names the first column read as two types.
pub(crate) fn same_types(released: &Schema, verified: &Schema) -> Result<()> {
    let mut fields = released.fields().iter().zip(verified.fields());
    let differs = fields.find(|(a, b)| (a.name(), a.data_type()) != (b.name(), b.data_type()));
    match differs {
        None if released.fields().len() == verified.fields().len() => Ok(()),
        differs => Err(Error::unmet(format!(
            "verification refused: column `{}` was read as another type before",
            differs.map_or("", |(field, _)| field.name())
        ))),
    }
}

/// Returns for each row of a batch whether one of its labels does not belong to its level.
fn wrong_labels(
    numbers: &[ArrayRef],
    expected: &Expected<'_>,
    labels: &[Option<Arc<Labels>>],
) -> Result<Vec<bool>> {
    let rows = numbers.first().map_or(0, Array::len);
    let mut wrong = vec![false; rows];
    let quasi =
        expected.columns.iter().zip(labels).filter_map(|((_, g), l)| Some((g.as_ref()?, l.as_ref()?)));
    for (numbers, (generalizer, labels)) in numbers.iter().zip(quasi) {
        let right = labels.are_labels(&**generalizer)?;
        let numbers = numbers.as_primitive::<UInt32Type>();
        let is_wrong = |number: &u32| *number != SUPPRESSED && !right[*number as usize];
        wrong.iter_mut().zip(numbers.values()).for_each(|(wrong, number)| *wrong |= is_wrong(number));
    }
    Ok(wrong)
}

/// Returns for each row of a batch whether an assignment suppresses the rows of its class.
fn suppressed(numbers: &[ArrayRef]) -> Vec<bool> {
    let first = numbers.first().map(|numbers| numbers.as_primitive::<UInt32Type>().values());
    first.into_iter().flatten().map(|number| *number == SUPPRESSED).collect()
}

/// A test pins that sums of hashes wrap in the engine: a sum that failed would refuse, never pass.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::decimal::Decimal;
    use crate::engine::column;
    use crate::generalize::Generalizer;
    use crate::model::Requirement;
    use arrow::array::{ArrayRef, StringViewArray, UInt64Array};
    use arrow::datatypes::{DataType, UInt64Type};
    use arrow::record_batch::RecordBatch;
    use datafusion::functions_aggregate::expr_fn::sum;
    use datafusion::prelude::SessionContext;

    use crate::engine::{Resources, Rules};
    use crate::generalize::{AsIs, suppress::Suppress};
    use crate::model::Quantity;
    use crate::model::k_anonymity::KAnonymity;
    use crate::model::t_closeness::TCloseness;

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
        let session = Resources { threads: 2, memory: 1 << 28, spill: None }.session(Rules::new()).unwrap();
        let input = table(
            &session,
            &[Some("1"), Some("1"), None, None, None, Some("2")],
            &["a", "b", "c", "c", "d", "e"],
        );
        let requirements = [Requirement::of_sizes(KAnonymity::new(2).unwrap())];
        let expected = Expected {
            columns: vec![("zip".into(), Some(level)), ("note".into(), None)],
            assignment: None,
            requirements: &requirements,
            sensitive: Vec::new(),
            preferences: Vec::new(),
            population: None,
            individual: None,
            suppression_limit: Some(Decimal::parse(limit).unwrap()),
        };
        verify(&session, table(&session, out.0, out.1), Some(input), &expected, &CancelToken::default()).await
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
            (&[None, Some("1"), None, Some("1")], &["d", "b", "c", "a"], "1 class misses rows"),
            (&[None, None, None], &["c", "c", "d"], "1 class misses rows"),
            (
                &[None, Some("1"), None, Some("1"), None, Some("2")],
                &["d", "b", "c", "a", "c", "e"],
                "1 class fails a required model",
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
            judge(RIGHT, "0.1", as_is())
                .await
                .unwrap_err()
                .to_string()
                .contains("1 row is suppressed, at most 0")
        );
        let top = judge(RIGHT, "0.2", Arc::new(Suppress::star())).await.unwrap_err();
        assert!(top.to_string().contains("not a label"), "{top}");
        assert!(judge((&[], &[]), "1", as_is()).await.is_err());
    }

    /// Judges the classes `kept` of an input, whose model compares them with the whole of it.
    async fn judge_closeness(kept: &[&str], t: &str, individual: bool) -> Result<Verified> {
        let session = Resources { threads: 2, memory: 1 << 28, spill: None }.session(Rules::new()).unwrap();
        // Shares of a, b and NULL: 4, 4 and 2 of 10.
        let rows = [("1", "ab"), ("1", "ab"), ("2", "aabb"), ("3", "--")];
        let rows: Vec<(&str, Option<&str>)> = rows
            .iter()
            .flat_map(|(zip, notes)| notes.split("").filter(|note| !note.is_empty()).map(|note| (*zip, note)))
            .map(|(zip, note)| (zip, Some(note).filter(|note| *note != "-")))
            .collect();
        let of = |rows: &[(&str, Option<&str>)], ids: bool| {
            let zip: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.0)).collect::<StringViewArray>());
            let note: ArrayRef = Arc::new(rows.iter().map(|row| row.1).collect::<StringViewArray>());
            let id: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..rows.len() as u64));
            let columns =
                [("zip", zip), ("note", note), ("id", id)].into_iter().take(if ids { 3 } else { 2 });
            session.read_batch(RecordBatch::try_from_iter(columns).unwrap()).unwrap()
        };
        let model = Box::new(TCloseness::new(Decimal::parse(t).unwrap()).unwrap());
        let requirements = [Requirement::new(model, Some("note".into()))];
        let expected = Expected {
            columns: vec![("zip".into(), Some(Arc::new(AsIs { text: true }))), ("note".into(), None)],
            assignment: None,
            requirements: &requirements,
            sensitive: vec!["note".into()],
            preferences: Vec::new(),
            population: None,
            individual: individual.then(|| "id".into()),
            suppression_limit: Some(Decimal::integer(1)),
        };
        let kept: Vec<_> = rows.iter().copied().filter(|(zip, _)| kept.contains(zip)).collect();
        let (output, input) = (of(&kept, false), of(&rows, individual));
        verify(&session, output, Some(input), &expected, &CancelToken::default()).await
    }

    #[tokio::test]
    async fn classes_are_compared_with_the_whole_input() {
        for individual in [false, true] {
            let judge = |kept: &'static [&str], t| judge_closeness(kept, t, individual);
            let verified = judge(&["1", "2"], "0.2").await.unwrap();
            assert_eq!(verified.reached.iter().map(|x| x.unwrap().to_f64()).collect::<Vec<_>>(), [0.2]);
            let refused = |verified: Result<Verified>| verified.unwrap_err().to_string();
            assert!(refused(judge(&["1"], "0.2").await).contains("1 class misses rows"));
            // Among themselves the released rows would be no distance apart.
            let two = refused(judge(&["1", "2"], "0.19").await);
            assert!(two.contains("2 classes fail a required model"), "{two}");
            let three = refused(judge(&["1", "2", "3"], "0.7").await);
            assert!(three.contains("1 class fails a required model"), "{three}");
            // With individuals, a value that both of a class share is refused whatever t is.
            assert_eq!(judge(&["1", "2", "3"], "0.8").await.is_ok(), !individual);
        }
    }

    #[tokio::test]
    async fn sums_of_hashes_wrap() {
        let session = Resources::default_of_machine().session(Rules::new()).unwrap();
        let n: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX, 3]));
        let batch = RecordBatch::try_from_iter([("n", n)]).unwrap();
        let sums = session.read_batch(batch).unwrap().aggregate(vec![], vec![sum(column("n"))]).unwrap();
        let sums = sums.collect().await.unwrap();
        assert_eq!(sums[0].column(0).as_primitive::<UInt64Type>().value(0), 2);
    }

    #[tokio::test]
    async fn the_plan_is_a_plain_group_by() {
        let session = Resources { threads: 2, memory: 1 << 28, spill: None }.session(Rules::new()).unwrap();
        let rows = || table(&session, &[Some("1")], &["a"]);
        let requirements: [Requirement; 0] = [];
        let as_is: Arc<dyn Generalizer> = Arc::new(AsIs { text: true });
        let expected = Expected {
            columns: vec![("zip".into(), Some(as_is)), ("note".into(), None)],
            assignment: None,
            requirements: &requirements,
            sensitive: Vec::new(),
            preferences: Vec::new(),
            population: None,
            individual: None,
            suppression_limit: None,
        };
        let budget: Arc<dyn Budget> = Arc::new(crate::class::Unlimited);
        let plan = counting_plan(rows(), Some(rows()), &expected, &[], None, &expected.labels(&budget))
            .unwrap()
            .create_physical_plan()
            .await
            .unwrap();
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
