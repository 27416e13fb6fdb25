//! Laws of the scalar functions: every order and every preimage that is claimed to the engine is
//! true, and nothing else is claimed. Loops over the table, so that a new generalizer is attacked
//! too.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Date64Array, Decimal128Array, Float32Array,
    Float64Array, Int8Array, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt64Array,
};
use arrow::compute::{SortOptions, cast, concat, sort};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::row::{RowConverter, SortField};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::datasource::MemTable;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, Operator, binary_expr, col, lit};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_plan::{ExecutionPlanProperties, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_kanon::internals::decimal::Decimal;
use datafusion_kanon::internals::generalize::{GENERALIZERS, Generalizer, GeneralizerRow, Value, apply};
use datafusion_kanon::internals::input::canonical_type;
use datafusion_kanon::internals::parameter::{Absent, Kind, Parameter, Setting};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::search_laws::law_cases;

/// A call: what stands behind the value, and the generalizer that this means.
struct Call {
    function: String,
    constants: Vec<Expr>,
    level: Arc<dyn Generalizer>,
}

impl Call {
    fn of(&self, session: &SessionContext, value: Expr) -> Expr {
        let arguments = std::iter::once(value).chain(self.constants.clone()).collect();
        session.udf(&self.function).unwrap().call(arguments)
    }
}

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

fn number(decimal: Decimal) -> Expr {
    let text = decimal.to_string();
    text.parse::<i64>().map_or_else(|_| lit(text.parse::<f64>().unwrap()), lit)
}

/// Settings to try a parameter with, one level each; NULL for one that is left out.
fn settings(parameter: &Parameter) -> Vec<Option<Setting>> {
    let numbers = |list: &[&str]| list.iter().map(|n| decimal(n)).collect::<Vec<_>>();
    match parameter.kind {
        Kind::Levels(Kind::Numbers) => vec![Some(vec![numbers(&["-20", "0", "25"])].into())],
        Kind::Levels(Kind::Choice(words)) => words.iter().map(|word| Some(vec![*word].into())).collect(),
        Kind::Levels(_) => {
            ["1", "7", "10", "1000000000", "0.5", "0.1"].map(|step| Some(numbers(&[step]).into())).to_vec()
        }
        Kind::File => vec![],
        Kind::Choice(words) if parameter.absent == Absent::Refused => {
            words.iter().map(|word| Some((*word).into())).collect()
        }
        // The last word of an option is not its default.
        Kind::Choice(words) => words.last().map(|word| Some((*word).into())).into_iter().collect(),
        // Every known hierarchy has a first level.
        _ if parameter.name == "level" => vec![Some(decimal("1").into())],
        _ => vec![Some(decimal("5").into())],
    }
}

/// The constants of a setting.
fn constants(setting: &Option<Setting>) -> Vec<Expr> {
    match setting {
        None => vec![lit(ScalarValue::Null)],
        Some(Setting::Number(n)) => vec![number(*n)],
        Some(Setting::Word(word)) => vec![lit(word.as_ref())],
        Some(Setting::List(all)) => all.iter().flat_map(|one| constants(&Some(one.clone()))).collect(),
        Some(Setting::Table(_) | Setting::Node(_)) => vec![],
    }
}

fn calls(row: &GeneralizerRow) -> Vec<Call> {
    let given: Vec<Vec<Option<Setting>>> = match row.parameters {
        [] => vec![vec![]],
        _ if row.key.is_none() => {
            [(Some("0"), Some("90")), (None, Some("0")), (Some("-7"), None), (Some("0"), None)]
                .map(|(low, high)| [low, high].map(|end| end.map(|end| decimal(end).into())).to_vec())
                .to_vec()
        }
        [first, options @ ..] => {
            let options: Vec<_> = options.iter().flat_map(settings).collect();
            let both = |first| [vec![first], options.clone()].concat();
            let of_first = settings(first).into_iter();
            match options.is_empty() {
                true => of_first.map(|first| vec![first]).collect(),
                false => of_first.flat_map(|first| [vec![first.clone()], both(first)]).collect(),
            }
        }
    };
    let mut all = Vec::new();
    for given in given {
        let named = row.parameters.iter().zip(&given);
        let named = named.filter_map(|(of, setting)| Some((of.name.to_owned(), setting.clone()?)));
        let Ok(mut levels) = row.with(&named.collect::<Vec<_>>()) else { continue };
        let function = format!("generalize_{}", row.doc.name);
        let constants = given.iter().flat_map(constants).collect();
        all.push(Call { function, constants, level: levels.pop().unwrap() });
    }
    all
}

/// The same seed in many types.
fn columns(seed: &[Option<i64>]) -> Vec<ArrayRef> {
    let small = |n: &i64| (-1_000..1_000).contains(n);
    let each = |f: fn(i64) -> i64| seed.iter().map(move |n| n.map(f));
    let far = |by: i64| seed.iter().map(move |n| n.map(|n| if small(&n) { n * by } else { n }));
    // NaN with both signs, infinities, and -0.0.
    let float = |n: i64| match n {
        -1 => -0.0,
        7 => f64::NAN,
        8 => -f64::NAN,
        9 => f64::INFINITY,
        10 => f64::NEG_INFINITY,
        n if small(&n) => n as f64 / 8.0,
        n => n as f64,
    };
    let decimals = Decimal128Array::from_iter(each(|n| n % 1_000_000_000).map(|n| n.map(i128::from)));
    let integers: ArrayRef = Arc::new(Int64Array::from_iter(seed.iter().copied()));
    let packed = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Int64));
    vec![
        Arc::new(Int8Array::from_iter(seed.iter().map(|n| n.map(|n| n as i8)))),
        Arc::new(Int32Array::from_iter(seed.iter().map(|n| n.map(|n| n as i32)))),
        cast(&integers, &packed).unwrap(),
        integers,
        Arc::new(UInt64Array::from_iter(seed.iter().map(|n| n.map(|n| n as u64)))),
        Arc::new(Float32Array::from_iter(seed.iter().map(|n| n.map(|n| float(n) as f32)))),
        Arc::new(Float64Array::from_iter(seed.iter().map(|n| n.map(float)))),
        Arc::new(decimals.with_precision_and_scale(9, 1).unwrap()),
        Arc::new(Date32Array::from_iter(far(97).map(|n| n.map(|n| n as i32)))),
        Arc::new(Date64Array::from_iter(each(|n| (n % 1_000_000) * 86_400_000))),
        Arc::new(TimestampSecondArray::from_iter(each(|n| n % 4_000_000_000))),
        Arc::new(TimestampMillisecondArray::from_iter(far(86_400_123))),
        Arc::new(TimestampNanosecondArray::from_iter(far(86_400_000_000_001)).with_timezone("UTC")),
        Arc::new(TimestampMicrosecondArray::from_iter(far(3_599_000_001)).with_timezone("+02:00")),
        Arc::new(
            TimestampMillisecondArray::from_iter(each(|n| n % 2_000_000_000_000))
                .with_timezone("America/Sao_Paulo"),
        ),
        Arc::new(StringArray::from_iter(seed.iter().map(|n| n.map(|n| n.to_string())))),
        Arc::new(BooleanArray::from_iter(seed.iter().map(|n| n.map(|n| n > 0)))),
    ]
}

fn seeds() -> impl Strategy<Value = Vec<Option<i64>>> {
    let one = prop_oneof![
        6 => -300..300i64,
        2 => -12..12i64,
        1 => any::<i64>(),
        1 => prop::sample::select(vec![i64::MIN, i64::MAX, 127, -128, 99_999_999_999, -4_000_000_000_000_000]),
    ];
    prop::collection::vec(prop::option::weighted(0.9, one), 1..60)
}

/// The values that the function takes, with their labels by the naive way.
fn generalized(level: &dyn Generalizer, values: &ArrayRef) -> Option<(ArrayRef, ArrayRef)> {
    let output = level.output_type(values.data_type()).ok()?;
    let mut kept: Vec<ArrayRef> = vec![values.slice(0, 0)];
    let mut labels: Vec<ArrayRef> = vec![Value::build(&[], &output).unwrap()];
    for row in 0..values.len() {
        let Ok(label) = level.generalize_value(&Value::read(values, row).unwrap()) else { continue };
        let Ok(built) = Value::build(std::slice::from_ref(&label), &output) else { continue };
        let (value, is_nan) = (values.slice(row, 1), matches!(label, Value::Float(v) if v.is_nan()));
        // A label that Float32 cannot hold is refused.
        if is_nan || Value::read(&built, 0).unwrap() == label {
            // The naive way knows one NaN of Float32, without a sign.
            labels.push(if is_nan { Arc::clone(&value) } else { built });
            kept.push(value);
        }
    }
    let join = |parts: &[ArrayRef]| {
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        concat(&parts).unwrap()
    };
    Some((join(&kept), join(&labels)))
}

/// The order of the engine's sorts.
fn compare(a: &ArrayRef, b: &ArrayRef) -> Ordering {
    let converter = RowConverter::new(vec![SortField::new(a.data_type().clone())]).unwrap();
    let rows = |value: &ArrayRef| converter.convert_columns(std::slice::from_ref(value)).unwrap();
    rows(a).row(0).cmp(&rows(b).row(0))
}

fn session() -> SessionContext {
    let session =
        SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1).with_batch_size(3));
    datafusion_kanon::internals::sql::register_all(&session).unwrap();
    session
}

fn batch(values: &ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([("v", Arc::clone(values), true)]).unwrap()
}

fn schema(values: &ArrayRef) -> SchemaRef {
    batch(values).schema()
}

/// The rows of `SELECT label, count(*) ... GROUP BY label`, sorted, and the plan.
async fn grouped(session: &SessionContext, call: &Call, table: MemTable) -> (Vec<String>, String) {
    let label = call.of(session, col("v")).alias("label");
    let counted = session
        .read_table(Arc::new(table))
        .unwrap()
        .aggregate(vec![label], vec![datafusion::functions_aggregate::expr_fn::count(lit(1)).alias("rows")]);
    let plan = counted.unwrap().create_physical_plan().await.unwrap();
    let shown = displayable(&*plan).indent(false).to_string();
    let batches = datafusion::physical_plan::collect(plan, session.task_ctx()).await.unwrap();
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cell = |column: usize| ScalarValue::try_from_array(batch.column(column), row).unwrap();
            rows.push(format!("{} {}", cell(0), cell(1)));
        }
    }
    rows.sort();
    (rows, shown)
}

/// Whether the functions look at values of this type without unpacking or widening them.
fn as_they_are(values: &ArrayRef) -> bool {
    canonical_type(values.data_type()) == *values.data_type()
}

/// All calls with all columns that they take.
fn tried(seed: &[Option<i64>]) -> Vec<(Call, ArrayRef)> {
    let mut all = Vec::new();
    for values in columns(seed) {
        for call in GENERALIZERS.iter().flat_map(calls) {
            if call.level.output_type(values.data_type()).is_ok() {
                all.push((call, Arc::clone(&values)));
            }
        }
    }
    all
}

/// `function type` of all that a test saw.
fn list(pairs: &[(&str, &[&str])]) -> BTreeSet<String> {
    let of = |(function, types): &(&str, &[&str])| {
        types.iter().map(|one| format!("generalize_{function} {one}")).collect::<Vec<_>>()
    };
    pairs.iter().flat_map(of).collect()
}

const WHOLE: [&str; 5] = ["Int8", "Int32", "Int64", "UInt64", "Decimal128(9, 1)"];
const FLOATS: [&str; 2] = ["Float32", "Float64"];
const DAYS: [&str; 4] = ["Date32", "Timestamp(ms)", "Timestamp(ns, \"UTC\")", "Timestamp(µs, \"+02:00\")"];

#[tokio::test]
async fn every_order_that_is_claimed_is_true() {
    let numbers: Vec<&str> = WHOLE.iter().chain(&FLOATS).copied().collect();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (session, mut claimed) = (session(), BTreeSet::new());
    for round in 0..law_cases() / 50 {
        let seed = seeds().new_tree(&mut runner).unwrap().current();
        let options = SortOptions { descending: round % 2 > 0, nulls_first: round % 4 > 1 };
        for (call, values) in tried(&seed) {
            if !as_they_are(&values) {
                continue; // See the next test.
            }
            let Some((values, _)) = generalized(&*call.level, &values) else { continue };
            let sorted = sort(&values, Some(options)).unwrap();
            let by_v = vec![vec![col("v").sort(!options.descending, options.nulls_first)]];
            let table = || MemTable::try_new(schema(&sorted), vec![vec![batch(&sorted)]]).unwrap();
            let label = call.of(&session, col("v")).alias("label");
            let frame = session.read_table(Arc::new(table().with_sort_order(by_v.clone()))).unwrap();
            let plan = frame.select(vec![label]).unwrap().create_physical_plan().await.unwrap();
            if plan.output_ordering().is_none() {
                continue;
            }
            let labels = apply(&*call.level, &sorted).unwrap();
            let field = SortField::new_with_options(labels.data_type().clone(), options);
            let rows = RowConverter::new(vec![field]).unwrap().convert_columns(&[labels]).unwrap();
            let said = (call.level.descriptor(), sorted.data_type());
            assert!((1..rows.num_rows()).all(|row| rows.row(row - 1) <= rows.row(row)), "{said:?}");
            claimed.insert(format!("{} {}", call.function, sorted.data_type()));
            // Groups that are emitted while the table is read are the same.
            let (streamed, plan) = grouped(&session, &call, table().with_sort_order(by_v)).await;
            assert!(plan.contains("ordering_mode=Sorted"), "{said:?}: {plan}");
            let (hashed, plan) = grouped(&session, &call, table()).await;
            assert!(!plan.contains("ordering_mode"), "{said:?}: {plan}");
            assert_eq!(streamed, hashed, "{said:?}");
        }
    }
    assert_eq!(claimed, list(&[("floor", &numbers), ("clip", &numbers), ("date", &DAYS)]));
}

#[tokio::test]
async fn nothing_is_claimed_of_other_encodings() {
    let session = session();
    for values in columns(&[None, Some(0), Some(10)]).into_iter().filter(|values| !as_they_are(values)) {
        for call in GENERALIZERS.iter().flat_map(calls) {
            let df_schema = Arc::new(DFSchema::try_from(schema(&values)).unwrap());
            let literal = ScalarValue::try_from_array(&values, 2).unwrap();
            let said = call.of(&session, col("v")).eq(lit(literal));
            let context = SimplifyContext::builder().with_schema(df_schema).build();
            let simple = ExprSimplifier::new(context).simplify(said);
            assert!(simple.is_err() || simple.unwrap().to_string().contains("generalize_"));
            let order = vec![vec![col("v").sort(true, true)]];
            let table = MemTable::try_new(schema(&values), vec![vec![batch(&values)]]).unwrap();
            let frame = session.read_table(Arc::new(table.with_sort_order(order))).unwrap();
            let Ok(labelled) = frame.select(vec![call.of(&session, col("v"))]) else { continue };
            let plan = labelled.create_physical_plan().await.unwrap();
            assert!(plan.output_ordering().is_none(), "{} {}", call.level.descriptor(), values.data_type());
        }
    }
}

const OPERATORS: [Operator; 8] = [
    Operator::Eq,
    Operator::NotEq,
    Operator::Lt,
    Operator::LtEq,
    Operator::Gt,
    Operator::GtEq,
    Operator::IsDistinctFrom,
    Operator::IsNotDistinctFrom,
];

/// `label OP literal` by hand: as sorts do, but -0.0 is 0.0.
fn by_hand(label: &ArrayRef, operator: Operator, literal: &ArrayRef) -> Option<bool> {
    let zero = |value: &ArrayRef| match Value::read(value, 0).unwrap() {
        Value::Float(0.0) => Value::build(&[Value::Float(0.0)], value.data_type()).unwrap(),
        _ => Arc::clone(value),
    };
    let order = compare(&zero(label), &zero(literal));
    let either_null = label.is_null(0) || literal.is_null(0);
    match operator {
        Operator::IsDistinctFrom => Some(order.is_ne()),
        Operator::IsNotDistinctFrom => Some(order.is_eq()),
        _ if either_null => None,
        Operator::Eq => Some(order.is_eq()),
        Operator::NotEq => Some(order.is_ne()),
        Operator::Lt => Some(order.is_lt()),
        Operator::LtEq => Some(order.is_le()),
        Operator::Gt => Some(order.is_gt()),
        _ => Some(order.is_ge()),
    }
}

#[test]
fn every_preimage_that_is_claimed_is_true() {
    let session = session();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut rewritten, mut compared) = (BTreeSet::new(), 0usize);
    for _ in 0..law_cases() * 3 / 100 {
        let seed = seeds().new_tree(&mut runner).unwrap().current();
        for (call, values) in tried(&seed) {
            if !as_they_are(&values) {
                continue;
            }
            let Some((values, labels)) = generalized(&*call.level, &values) else { continue };
            if values.is_empty() || labels.data_type() != values.data_type() {
                continue;
            }
            let df_schema = Arc::new(DFSchema::try_from(schema(&values)).unwrap());
            // Labels, and values that are none.
            let literals =
                (0..labels.len().min(3)).flat_map(|row| [labels.slice(row, 1), values.slice(row, 1)]);
            for literal in literals {
                let scalar = ScalarValue::try_from_array(&literal, 0).unwrap();
                for operator in OPERATORS {
                    let said = binary_expr(call.of(&session, col("v")), operator, lit(scalar.clone()));
                    let context = SimplifyContext::builder().with_schema(Arc::clone(&df_schema)).build();
                    let simple = ExprSimplifier::new(context).simplify(said).unwrap();
                    let is_label = call.level.is_label(&Value::read(&literal, 0).unwrap());
                    if !simple.to_string().contains("generalize_") && !scalar.is_null() {
                        assert!(is_label, "{} is rewritten for what is no label", call.level.descriptor());
                        rewritten.insert(format!("{} {}", call.function, values.data_type()));
                    }
                    let filter = session.create_physical_expr(simple, &df_schema).unwrap();
                    let found = filter.evaluate(&batch(&values)).unwrap().into_array(values.len()).unwrap();
                    let found = cast(&found, &DataType::Boolean).unwrap();
                    for row in 0..values.len() {
                        let found = found.as_boolean();
                        let found = found.is_valid(row).then(|| found.value(row));
                        let expected = by_hand(&labels.slice(row, 1), operator, &literal);
                        let (label, of) = (call.level.descriptor(), values.data_type());
                        assert_eq!(found, expected, "{label} {operator} {scalar} on {of} row {row}");
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 100_000, "{compared}");
    assert_eq!(rewritten, list(&[("floor", &WHOLE), ("date", &DAYS)]));
}

#[test]
fn a_preimage_ends_with_the_type_and_the_calendar() {
    let session = session();
    let rewritten = |function: &str, constants: Vec<Expr>, value: ScalarValue, label: ScalarValue| {
        let values = value.to_array().unwrap();
        let df_schema = Arc::new(DFSchema::try_from(schema(&values)).unwrap());
        let arguments = std::iter::once(col("v")).chain(constants).collect();
        let said = session.udf(function).unwrap().call(arguments).eq(lit(label));
        let context = SimplifyContext::builder().with_schema(df_schema).build();
        let simple = ExprSimplifier::new(context).simplify(said).unwrap().to_string();
        (!simple.contains("generalize_")).then_some(simple)
    };
    let floor = |step: Expr, value: ScalarValue, label: ScalarValue| {
        rewritten("generalize_floor", vec![step], value, label)
    };
    let tiny = ScalarValue::Int8;
    assert_eq!(
        floor(lit(10), tiny(None), tiny(Some(110))).as_deref(),
        Some("v >= Int8(110) AND v < Int8(120)")
    );
    // 130 and -130 are no Int8.
    assert_eq!(floor(lit(10), tiny(None), tiny(Some(120))), None);
    assert_eq!(floor(lit(10), tiny(None), tiny(Some(115))), None);
    let cents = |digits| ScalarValue::Decimal128(digits, 4, 2);
    assert!(floor(lit(0.5), cents(None), cents(Some(9_900))).is_some());
    assert!(floor(lit(0.5), cents(None), cents(Some(9_950))).is_none()); // 100.00 has five digits
    let date = |period: &str, value: ScalarValue, label: ScalarValue| {
        rewritten("generalize_date", vec![lit(period)], value, label)
    };
    let day = ScalarValue::Date32;
    let last = (chrono::NaiveDate::MAX - chrono::NaiveDate::default()).num_days() as i32;
    assert!(date("day", day(None), day(Some(last - 1))).is_some());
    assert!(date("day", day(None), day(Some(last))).is_none()); // the calendar has no day behind it
    let nanos = |ticks| ScalarValue::TimestampNanosecond(ticks, None);
    assert!(date("year", nanos(None), nanos(Some(9_151_488_000_000_000_000))).is_some()); // 2260
    assert!(date("century", nanos(None), nanos(Some(7_258_118_400_000_000_000))).is_none()); // 2200: 2300 does not fit
    // Clocks that are changed have none.
    let rome = |ticks| ScalarValue::TimestampSecond(ticks, Some("Europe/Rome".into()));
    assert!(date("day", rome(None), rome(Some(-3_600))).is_none());
}
