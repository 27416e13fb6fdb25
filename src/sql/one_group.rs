//! The accumulator of a query without GROUP BY: a groups accumulator with one group.

use std::mem::size_of_val;

use arrow::array::{Array, ArrayRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

/// A groups accumulator that can be evaluated without losing its state.
pub(super) trait Groups: GroupsAccumulator + Sync {
    /// Returns the current results.
    ///
    /// # Errors
    /// Those of [`GroupsAccumulator::evaluate`].
    fn answers(&self, emit: EmitTo) -> Result<ArrayRef>;
}

/// An accumulator for one group, from an accumulator for many.
pub(super) struct OneGroup<G>(pub(super) G);

/// Shows the type only: the counts hold cells.
impl<G> std::fmt::Debug for OneGroup<G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OneGroup(..)")
    }
}

impl<G: Groups> Accumulator for OneGroup<G> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = values.first().map_or(0, Array::len);
        self.0.update_batch(values, &vec![0; rows], None, 1)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.0.answers(EmitTo::First(1))?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self).saturating_sub(size_of_val(&self.0)) + self.0.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let state = self.0.state(EmitTo::First(1))?;
        state.iter().map(|column| ScalarValue::try_from_array(column, 0)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let groups = states.first().map_or(0, Array::len);
        self.0.merge_batch(states, &vec![0; groups], 1)
    }
}
