//! Deals the rows of the input to groups.
//!
//! The rows with a sensitive value take the places that the groups have for this value, in an order that a
//! random key decides ([`DealingKey`]). Without the key all dealings are equally likely.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, UInt32Type, UInt64Type};
use arrow::record_batch::RecordBatch;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::lit;
use datafusion::prelude::DataFrame;
use futures::StreamExt;

use crate::class::{Budget, Encoder, Groups, Held};
use crate::engine::functions::{OfValues, counted, of_values};
use crate::engine::replay_table::table_of_partitions;
use crate::engine::spilled_rows::SpilledRows;
use crate::engine::{Context, Run, column};
use crate::error::{Error, Result};
use crate::input::Loaded;
use crate::method::anatomy::COLUMNS;
use crate::release::kind::groups::tables::unused_name;
use crate::verify::groups::DealingKey;

const DOING: &str = "dealing the rows to groups";

/// Returns the rows with their quasi-identifiers, their sensitive value and the number of their group,
/// from 1.
///
/// # Errors
/// A data error when reading or writing fails, memory runs out or the input has changed.
pub(super) async fn deal(
    run: &Run,
    loaded: &Loaded,
    groups: &Groups,
    sensitive: &str,
    quasi: &[String],
    key: DealingKey,
    budget: &Arc<dyn Budget>,
) -> Result<DataFrame> {
    let rank = Arc::new(Rank(encoded_by_rank(run, loaded, groups, sensitive, budget).await?));
    let names = ["kanon_rank", "kanon_order_a", "kanon_order_b", "kanon_value"];
    let names = names.map(|name| unused_name(&loaded.table, name));
    let [a, b] = key.order(quasi, sensitive);
    let numbers = [of_values(rank, sensitive, column(sensitive)), a, b, key.value(sensitive)];
    let mut columns: Vec<_> =
        numbers.into_iter().zip(&names).map(|(number, name)| number.alias(name)).collect();
    let names_of_input = || quasi.iter().map(String::as_str).chain([sensitive]);
    columns.extend(names_of_input().map(|name| column(name).alias(dealt_name(name))));
    let rows = loaded.table.clone().select(columns).context(DOING)?;
    let order = names.iter().take(3).map(|name| column(name).sort(true, true)).collect();
    let rows = rows.sort(order).context(DOING)?.execute_stream().await.context(DOING)?;

    let [group, _] = COLUMNS;
    let ordered = rows.schema();
    let fields = ordered.fields().iter().skip(names.len()).zip(names_of_input());
    let fields: Vec<_> = fields.map(|(field, name)| Arc::new(Field::clone(field).with_name(name))).collect();
    let group = Arc::new(Field::new(group, DataType::Int64, false));
    let schema = Arc::new(Schema::new(fields.into_iter().chain([group]).collect::<Vec<_>>()));
    let mut places = Places { groups, key, next: 0, left: Vec::new().into_iter() };
    let most = groups.of_value().iter().map(|groups| groups.len()).max().unwrap_or(0);
    let mut held = Held::new(budget);
    held.at_least(most * 4 * size_of::<u64>())?;
    let dealt = rows.map(|batch| {
        let batch = batch.context(DOING)?;
        let lost = || Error::internal("deal: the plan lost a column");
        let (numbers, columns) = batch.columns().split_at_checked(names.len()).ok_or_else(lost)?;
        let [ranks, _, _, values] = numbers else { return Err(lost()) };
        let ranks = ranks.as_primitive_opt::<UInt32Type>().ok_or_else(lost)?;
        let values = values.as_primitive_opt::<UInt64Type>().ok_or_else(lost)?;
        let rows = ranks.values().iter().zip(values.values());
        let groups = rows.map(|(rank, value)| places.take(*rank as usize, *value));
        let groups = Arc::new(groups.collect::<Result<Int64Array>>()?) as ArrayRef;
        let columns = columns.iter().cloned().chain([groups]).collect();
        RecordBatch::try_new(Arc::clone(&schema), columns).context(DOING)
    });
    let runtime = loaded.session.runtime_env();
    let dealt = SpilledRows::write(runtime, Arc::clone(&schema), dealt.boxed(), &run.stop, DOING).await?;
    if places.next < groups.of_value().len() || places.left.len() > 0 {
        return Err(changed());
    }
    table_of_partitions(&loaded.session, vec![Arc::new(dealt)])
}

/// Returns the name of a column of the input beside the numbers that rows are ordered by.
fn dealt_name(name: &str) -> String {
    format!("kanon_dealt_{name}")
}

/// The places of the values, which rows take in the order of the ranks.
struct Places<'a> {
    groups: &'a Groups,
    key: DealingKey,
    /// The next rank.
    next: usize,
    /// The groups of the places that are left of the rank before.
    left: std::vec::IntoIter<u64>,
}

impl Places<'_> {
    /// Returns the group of the next row, which has the value of this rank and number.
    fn take(&mut self, rank: usize, value: u64) -> Result<i64> {
        if self.left.len() == 0 && rank == self.next {
            let groups = self.groups.of_value().get(rank).ok_or_else(changed)?;
            let mut places: Vec<u64> = groups.iter().map(|group| u64::from(*group) + 1).collect();
            self.key.order_places(value, &mut places);
            (self.next, self.left) = (rank + 1, places.into_iter());
        }
        let group = self.left.next().filter(|_| rank + 1 == self.next).ok_or_else(changed)?;
        i64::try_from(group).map_err(|_| changed())
    }
}

fn changed() -> Error {
    Error::data(
        "a sensitive value is more or less frequent than when the input was profiled: the input changed while it was read",
    )
}

/// Returns an encoder whose codes are the ranks of the sensitive values.
async fn encoded_by_rank(
    run: &Run,
    loaded: &Loaded,
    groups: &Groups,
    sensitive: &str,
    budget: &Arc<dyn Budget>,
) -> Result<Encoder> {
    let number = unused_name(&loaded.table, "kanon_rows");
    let counts = vec![count(lit(1i64)).alias(&number)];
    let value = dealt_name(sensitive);
    let counts =
        loaded.table.clone().aggregate(vec![column(sensitive).alias(&value)], counts).context(DOING)?;
    // NULL before other values that are as frequent, as in the groups.
    let order = vec![column(number).sort(false, true), column(value).sort(true, true)];
    let mut stream = counts.sort(order).context(DOING)?.execute_stream().await.context(DOING)?;
    let encoder = Encoder::new(budget);
    let mut rank = 0;
    while let Some(batch) = stream.next().await {
        run.stop.check()?;
        let batch = batch.context(DOING)?;
        let [values, rows] = batch.columns() else {
            return Err(Error::internal("deal: the plan lost a column"));
        };
        encoder.code(values)?;
        for (row, rows) in counted(rows)?.into_iter().enumerate() {
            let is_expected = groups.of_value().get(rank).is_some_and(|groups| groups.len() as u64 == rows);
            if !is_expected || values.is_null(row) != (groups.null() == Some(rank)) {
                return Err(changed());
            }
            rank += 1;
        }
    }
    if rank != groups.of_value().len() {
        return Err(changed());
    }
    Ok(encoder)
}

/// Returns the rank of each sensitive value.
struct Rank(Encoder);

impl OfValues for Rank {
    fn name(&self) -> &'static str {
        "kanon_rank"
    }

    fn of_type(&self, _values: &DataType) -> Result<DataType> {
        Ok(DataType::UInt32)
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let ranks: Option<Vec<u32>> = self.0.find(values)?.into_iter().collect();
        Ok(Arc::new(UInt32Array::from(ranks.ok_or_else(changed)?)))
    }
}
