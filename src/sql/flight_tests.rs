//! The states of all aggregates arrive as they were sent where Arrow Flight carries them between
//! processes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::common::ScalarValue;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::registry::MemoryFunctionRegistry;
use datafusion::logical_expr::{AggregateUDF, EmitTo, lit};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::{Column, Literal};

use super::compared_of_classes::ComparedOfClasses;
use super::generalize;
use super::measure_state::Row;
use super::size_aggregate::OfSizes;
use super::udaf::{AggregateInput, ClassAggregate, compared};
use crate::model::MODELS;
use crate::parameter::{Kind, TextTable};

/// What arrow-flight 59 announces for a type (`prepare_field_for_flight`), unless it is told to send
/// dictionaries. The buffers are sent as they are, so a type must be announced as it is.
fn announced(of: &DataType) -> DataType {
    let item =
        |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(announced(field.data_type())));
    match of {
        DataType::List(field) | DataType::LargeList(field) => DataType::List(item(field)),
        DataType::FixedSizeList(field, length) => DataType::FixedSizeList(item(field), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(item).collect()),
        DataType::Dictionary(_, values) => announced(values),
        other => other.clone(),
    }
}

/// Sends a state as Flight does.
fn over_flight(fields: &[FieldRef], state: Vec<ArrayRef>) -> Vec<ArrayRef> {
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let batch = RecordBatch::try_new(Arc::clone(&schema), state).unwrap();
    let mut sent = Vec::new();
    let mut writer = StreamWriter::try_new(&mut sent, &schema).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let mut batches = StreamReader::try_new(sent.as_slice(), None).unwrap();
    batches.next().unwrap().unwrap().columns().to_vec()
}

/// The types of columns that can be compared.
fn types() -> Vec<DataType> {
    let dictionary = |of| DataType::Dictionary(Box::new(DataType::Int32), Box::new(of));
    vec![
        DataType::Int64,
        DataType::Boolean,
        DataType::Int8,
        DataType::UInt16,
        DataType::UInt64,
        DataType::Float16,
        DataType::Float32,
        DataType::Float64,
        DataType::Decimal32(5, 1),
        DataType::Decimal128(10, 2),
        DataType::Decimal256(40, 2),
        DataType::Date32,
        DataType::Date64,
        DataType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp(TimeUnit::Nanosecond, Some("+01:00".into())),
        DataType::Duration(TimeUnit::Second),
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Utf8View,
        DataType::Binary,
        DataType::LargeBinary,
        DataType::BinaryView,
        dictionary(DataType::Int64),
        dictionary(DataType::LargeUtf8),
    ]
}

/// The values of a column before they are cast to its type; 0 is NULL.
const VALUES: [i64; 12] = [1, 2, 1, 0, 3, 2, 1, 1, 2, 3, 0, 1];

fn column(of: &DataType) -> ArrayRef {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter(VALUES.map(|value| (value > 0).then_some(value))));
    let direct = cast(&numbers, of);
    direct.unwrap_or_else(|_| cast(&cast(&numbers, &DataType::Utf8).unwrap(), of).unwrap())
}

/// Returns one class per row, with the counts of two values; `individual` is whether they have
/// individuals.
fn lists_of_counts(value: &DataType, individual: bool) -> ArrayRef {
    let both = |of: &ArrayRef| {
        let reversed: Vec<u32> = (0..12u32).flat_map(|row| [row, 11 - row]).collect();
        arrow::compute::take(of, &arrow::array::UInt32Array::from(reversed), None).unwrap()
    };
    let rows: ArrayRef = Arc::new(Int64Array::from((1..=24).collect::<Vec<i64>>()));
    let individuals: ArrayRef = Arc::new(StringArray::from_iter_values((0..24).map(|n| format!("p{n}"))));
    let mut columns = vec![("value", both(&cast(&column(value), &compared(value)).unwrap())), ("rows", rows)];
    if individual {
        columns.insert(0, ("individual", individuals));
    }
    let fields: Fields =
        columns.iter().map(|(name, of)| Field::new(*name, of.data_type().clone(), true)).collect();
    let items = StructArray::new(fields, columns.into_iter().map(|(_, of)| of).collect(), None);
    let item = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([2; 12]), Arc::new(items), None))
}

/// The arguments of a call: literals, then columns.
type Call = (Vec<ScalarValue>, Vec<ArrayRef>);

fn constants(row: Row) -> Vec<ScalarValue> {
    let constant = |kind| match kind {
        Kind::File => ScalarValue::from("levels"),
        Kind::Choice(words) => ScalarValue::from(words[0]),
        Kind::Share => ScalarValue::from(0.5),
        _ => ScalarValue::from(2_i64),
    };
    row.constants().iter().map(|parameter| constant(parameter.kind)).collect()
}

/// Returns calls of an aggregate with columns of every type.
fn calls(aggregate: &AggregateUDF) -> Vec<Call> {
    let rows: ArrayRef = Arc::new(Int64Array::from(vec![2; 12]));
    let all = types().into_iter();
    if let Some(measure) = aggregate.inner().downcast_ref::<ClassAggregate>() {
        let some = vec![lit(1); 20];
        let arguments = measure.arguments(&some).unwrap();
        return all
            .map(|of| {
                // What reads values takes numbers or texts.
                let sensitive = if measure.reads_values() { DataType::Int64 } else { of.clone() };
                let mut columns = Vec::new();
                columns.extend(arguments.individual.map(|_| column(&of)));
                columns.extend(arguments.sensitive.map(|_| column(&sensitive)));
                columns.push(match measure.over() {
                    AggregateInput::Quasi => column(&of),
                    AggregateInput::OneClass => Arc::clone(&rows),
                });
                (constants(measure.row()), columns)
            })
            .collect();
    }
    if let Some(of_sizes) = aggregate.inner().downcast_ref::<OfSizes>() {
        return vec![(constants(of_sizes.row), vec![rows])];
    }
    let of_classes = aggregate.inner().downcast_ref::<ComparedOfClasses>().unwrap();
    let mut calls = Vec::new();
    for row in MODELS.iter().map(Row::Model) {
        let needs = row.needs().unwrap();
        if needs.reads_input() && row.returns().unwrap() == of_classes.returns {
            let literals = [vec![ScalarValue::from(row.doc().name)], constants(row)].concat();
            let reads_values = needs.facts() != Default::default();
            let types = if reads_values { vec![DataType::Int64] } else { types() };
            for (of, individual) in types.iter().flat_map(|of| [(of, false), (of, true)]) {
                calls.push((literals.clone(), vec![lists_of_counts(of, individual)]));
            }
        }
    }
    calls
}

/// Prepares a call, with the arguments in the types that the engine would cast them to.
fn prepared(
    aggregate: &Arc<AggregateUDF>,
    (literals, columns): Call,
) -> (AggregateFunctionExpr, Vec<ArrayRef>) {
    let types = literals.iter().map(ScalarValue::data_type);
    let types: Vec<DataType> = types.chain(columns.iter().map(|of| of.data_type().clone())).collect();
    let types = aggregate.coerce_types(&types).unwrap();
    let cast_to = |(of, to): (&ArrayRef, &DataType)| cast(of, to).unwrap();
    let columns: Vec<ArrayRef> = columns.iter().zip(&types[literals.len()..]).map(cast_to).collect();
    let fields: Vec<Field> = columns
        .iter()
        .enumerate()
        .map(|(at, of)| Field::new(format!("c{at}"), of.data_type().clone(), true))
        .collect();
    let mut arguments: Vec<Arc<dyn PhysicalExpr>> = Vec::new();
    let mut values: Vec<ArrayRef> = Vec::new();
    for literal in literals {
        values.push(literal.to_array_of_size(12).unwrap());
        arguments.push(Arc::new(Literal::new(literal)));
    }
    arguments.extend((0..columns.len()).map(|at| Arc::new(Column::new(&format!("c{at}"), at)) as _));
    values.extend(columns);
    let call = AggregateExprBuilder::new(Arc::clone(aggregate), arguments)
        .schema(Arc::new(Schema::new(fields)))
        .alias("measure")
        .build();
    (call.unwrap(), values)
}

/// Merges the states into one accumulator and returns what it answers.
fn merged(call: &AggregateFunctionExpr, states: &[Vec<ArrayRef>]) -> ArrayRef {
    let mut whole = call.create_groups_accumulator().unwrap();
    states.iter().for_each(|state| whole.merge_batch(state, &[0, 1], 2).unwrap());
    whole.evaluate(EmitTo::All).unwrap()
}

#[test]
fn states_of_all_aggregates_survive_arrow_flight() {
    let mut registry = MemoryFunctionRegistry::new();
    super::register_functions(&mut registry).unwrap();
    let table = [["1", "low", "*"], ["2", "low", "*"], ["3", "high", "*"]];
    let table = table.map(|row| row.map(str::to_owned).to_vec()).to_vec();
    let hierarchies = generalize::hierarchies(&registry).unwrap();
    hierarchies.load("levels", TextTable::from(table)).unwrap();
    let (mut answers, mut nulls) = (0, 0);
    for name in registry.udafs() {
        let aggregate = registry.udaf(&name).unwrap();
        let calls = calls(&aggregate);
        assert!(!calls.is_empty(), "{name}");
        for call in calls {
            let (call, values) = prepared(&aggregate, call);
            let place = format!("{name} of {:?}", values.last().unwrap().data_type());
            let fields = call.state_fields().unwrap();
            for field in &fields {
                assert_eq!(announced(field.data_type()), *field.data_type(), "{place}");
            }
            let (mut here, mut there) = (Vec::new(), Vec::new());
            for part in 0..2 {
                let of_part = values.iter().map(|of| of.slice(6 * part, 6)).collect::<Vec<_>>();
                let mut of_rows = call.create_groups_accumulator().unwrap();
                of_rows.update_batch(&of_part, &[0, 1, 0, 1, 0, 1], None, 2).unwrap();
                let state = of_rows.state(EmitTo::All).unwrap();
                there.push(over_flight(&fields, state.clone()));
                here.push(state);
                let mut alone = call.create_accumulator().unwrap();
                alone.update_batch(&of_part).unwrap();
                let state = alone.state().unwrap().iter().map(|of| of.to_array().unwrap()).collect();
                over_flight(&fields, state);
                let of_rows = of_rows.convert_to_state(&of_part, None).unwrap();
                assert_eq!(over_flight(&fields, of_rows.clone()), of_rows, "{place}");
            }
            let answer = merged(&call, &there);
            assert_eq!(&answer, &merged(&call, &here), "{place}");
            (answers, nulls) = (answers + answer.len(), nulls + answer.null_count());
        }
    }
    // Most have an answer; beta-likeness has none where a value is in one class only.
    assert!(2 * nulls < answers, "{nulls} of {answers}");
}
