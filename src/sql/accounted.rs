//! Memory for large partial states, taken before they are copied.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::prelude::SessionContext;

use super::one_group::Groups;

/// Smaller states are taken as the engine's own aggregates do: it accounts for them afterwards.
const LARGE: usize = 1 << 20;

/// The memory pool of a session; of none by default, where nothing is accounted for here.
#[derive(Clone, Default)]
pub(super) struct Memory(Option<Arc<PoolOfSession>>);

type PoolOfSession = dyn Fn() -> Option<Arc<dyn MemoryPool>> + Send + Sync;

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memory(..)")
    }
}

impl Memory {
    pub(super) fn of(session: &SessionContext) -> Self {
        let state = session.state_weak_ref();
        // A locked state is not waited for.
        Self(Some(Arc::new(move || {
            let state = state.upgrade()?;
            state.try_read().map(|state| Arc::clone(&state.runtime_env().memory_pool))
        })))
    }

    /// Takes memory from the pool, until the reservation is dropped.
    ///
    /// # Errors
    /// When the pool has not as much.
    fn take(&self, bytes: usize) -> Result<Option<MemoryReservation>> {
        let Some(pool) = self.0.as_ref().and_then(|pool| pool()) else { return Ok(None) };
        let reservation = MemoryConsumer::new("states of measures").register(&pool);
        reservation.try_grow(bytes)?;
        Ok(Some(reservation))
    }
}

/// A groups accumulator that takes memory for a large state before it copies it.
///
/// The engine asks for the [size](GroupsAccumulator::size) of an accumulator after each batch, when
/// the batch is copied already, and a state with all classes of a thread may be larger than the
/// limit. The memory is released after the merge, when the engine accounts for the copy itself.
pub(super) struct Accounted<G> {
    pub(super) groups: G,
    pub(super) memory: Memory,
}

impl<G: Groups> Groups for Accounted<G> {
    fn answers(&self, emit: EmitTo) -> Result<ArrayRef> {
        self.groups.answers(emit)
    }
}

impl<G: Groups> GroupsAccumulator for Accounted<G> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.groups.update_batch(values, groups, filter, total_groups)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        self.groups.evaluate(emit)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        self.groups.state(emit)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total_groups: usize) -> Result<()> {
        let mut bytes = 0;
        for state in states {
            bytes += state.to_data().get_slice_memory_size()?;
        }
        let _taken = if bytes < LARGE { None } else { self.memory.take(bytes)? };
        self.groups.merge_batch(states, groups, total_groups)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.groups.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        self.groups.size()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use datafusion::error::DataFusionError;
    use datafusion::execution::FunctionRegistry;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::physical_expr::aggregate::AggregateExprBuilder;
    use datafusion::physical_expr::expressions::Column;
    use datafusion::prelude::SessionConfig;

    use super::*;

    /// Returns a session with a pool of so many bytes, and an accumulator of its `k_anonymity`.
    fn k_anonymity(pool: usize) -> (SessionContext, Box<dyn GroupsAccumulator>) {
        let runtime = RuntimeEnvBuilder::new().with_memory_limit(pool, 1.0).build_arc().unwrap();
        let session = SessionContext::new_with_config_rt(SessionConfig::new(), runtime);
        crate::sql::register_all(&session).unwrap();
        let call = AggregateExprBuilder::new(
            session.udaf("k_anonymity").unwrap(),
            vec![Arc::new(Column::new("a", 0))],
        )
        .schema(Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)])))
        .alias("k");
        let groups = call.build().unwrap().create_groups_accumulator().unwrap();
        (session, groups)
    }

    #[test]
    fn a_large_state_takes_memory_before_it_is_copied() {
        // Classes of 9 bytes, each with an offset and a count, and two rows in each.
        let state = |classes: i64| {
            let (_session, mut part) = k_anonymity(usize::MAX);
            let column: ArrayRef =
                Arc::new(Int64Array::from_iter_values((0..2 * classes).map(|row| row / 2)));
            part.update_batch(&[Arc::clone(&column)], &vec![0; column.len()], None, 1).unwrap();
            part.state(EmitTo::All).unwrap()
        };
        let (large, small) = (state(100_000), state(10));
        let (session, mut groups) = k_anonymity(25 * 100_000);
        let before = groups.size();
        let refused = groups.merge_batch(&large, &[0], 1).unwrap_err();
        assert!(matches!(refused.find_root(), DataFusionError::ResourcesExhausted(_)), "{refused}");
        assert_eq!(groups.size(), before);
        groups.merge_batch(&small, &[0], 1).unwrap();
        assert!(groups.size() > before);
        drop(session);

        let (session, mut groups) = k_anonymity(26 * 100_000);
        groups.merge_batch(&large, &[0], 1).unwrap();
        assert_eq!(session.runtime_env().memory_pool.reserved(), 0);
        assert_eq!(groups.evaluate(EmitTo::All).unwrap().as_primitive::<Int64Type>().value(0), 2);
    }
}
