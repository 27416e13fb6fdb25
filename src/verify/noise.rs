//! Noise: compares the means of a release by `dp_centroids` with its input.
//!
//! The engine orders the input's rows, which are summed one after another. The noise is drawn once more by
//! the recorded key, and the rows of the release must show, as often, what comes of both:
//!
//! ```text
//! input    ORDER BY place, units   ->  each k rows: the sums of units + noise  -> means, rows
//! release  GROUP BY means                                                         the same?
//! ```

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use datafusion::error::Result as EngineResult;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use datafusion::prelude::DataFrame;
use futures::StreamExt;
use hashbrown::HashMap;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::class::{Budget, Held};
use crate::engine::functions::{OfValues, of_values};
use crate::engine::{Context, column, into_engine};
use crate::error::{Error, Result};
use crate::generalize::Value;
use crate::noise::{Mechanism, NoisyColumn};
use crate::progress::CancelToken;
use crate::verify::groups::check_one_row_each;

const DOING: &str = "verifying the release";

/// The key that noise is drawn by: 32 random bytes.
///
/// A recorded key binds the noise: a publisher free to choose each number could justify any release.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NoiseKey(pub [u8; Self::BYTES]);

/// Shows no byte.
impl std::fmt::Debug for NoiseKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NoiseKey(..)")
    }
}

impl NoiseKey {
    /// The length of a key.
    pub const BYTES: usize = 32;

    /// Returns the random words of the key: those of the ChaCha20 stream, the same in every version.
    pub(crate) fn words(&self) -> impl FnMut() -> Result<u64> {
        let mut stream = ChaCha20Rng::from_seed(self.0);
        move || Ok(stream.next_u64())
    }
}

/// The rows of a release and of its input, and what is expected of them.
pub(crate) struct NoisyMeans<'a> {
    /// The released rows, with floats.
    pub(crate) output: DataFrame,
    pub(crate) input: DataFrame,
    pub(crate) mechanism: &'a Mechanism,
    pub(crate) key: NoiseKey,
    /// The individual column of the input, where individuals are counted: each must have one row.
    pub(crate) individual: Option<&'a str>,
}

fn refused(why: &str) -> Error {
    Error::unmet(format!("verification refused: {why}"))
}

fn lost() -> Error {
    Error::internal("noise: the plan lost a column")
}

impl NoisyMeans<'_> {
    /// Compares the rows, and returns their number.
    ///
    /// # Errors
    /// An unmet error that says what is wrong, a data error when counting fails.
    pub(crate) async fn verify(self, budget: &Arc<dyn Budget>, stop: &CancelToken) -> Result<u64> {
        if let Some(individual) = self.individual {
            check_one_row_each(&self.input, individual, stop).await?;
        }
        let mut held = Held::new(budget);
        let (rows, sums) = self.sums(&mut held, stop).await?;
        let width = self.mechanism.columns().len();
        let of_shown = size_of::<(Box<[u64]>, u64)>() + 1 + width * size_of::<u64>();
        // The sums, as much noise, and what each cluster shows.
        held.at_least(2 * sums.len() * size_of::<u128>() + sums.len() / width.max(1) * of_shown)?;
        let noise = self.mechanism.draw(rows, &mut self.key.words())?;
        let mut left: HashMap<Box<[u64]>, u64> = HashMap::new();
        for (shown, rows) in self.mechanism.noisy_means(rows, &sums, &noise) {
            *left.entry(shown.into_iter().map(f64::to_bits).collect()).or_default() += rows;
        }
        let mut is_right = true;
        let see = |shown: Option<&[u64]>, rows: u64| {
            is_right &= shown.and_then(|shown| left.remove(shown)) == Some(rows);
        };
        for_every_group(&self.output, self.mechanism, stop, see).await?;
        is_right &= left.is_empty();
        if is_right { Ok(rows) } else { Err(other_means()) }
    }

    /// Returns the number of rows, and the sums of units: one cluster after another, and in each one
    /// column after another.
    async fn sums(&self, held: &mut Held, stop: &CancelToken) -> Result<(u64, Vec<u128>)> {
        let columns = self.mechanism.columns();
        let (width, unit) = (columns.len(), |at: usize| format!("kanon_units_{at}"));
        let units = columns.iter().enumerate().map(|(at, noisy)| {
            let units = Arc::new(Units { column: noisy.clone() });
            of_values(units, noisy.name(), column(noisy.name())).alias(unit(at))
        });
        let rows = self.input.clone().select(units.collect::<Vec<_>>()).context(DOING)?;
        let units: Vec<Expr> = (0..width).map(|at| column(unit(at))).collect();
        let place = Place {
            mechanism: self.mechanism.clone(),
            signature: Signature::variadic_any(Volatility::Immutable),
        };
        let place = ScalarUDF::new_from_impl(place).call(units.clone()).alias(PLACE);
        let rows = rows.select([units.clone(), vec![place]].concat()).context(DOING)?;
        let order = std::iter::once(column(PLACE)).chain(units);
        let rows = rows.sort(order.map(|by| by.sort(true, true)).collect()).context(DOING)?;
        let mut rows = rows.execute_stream().await.context(DOING)?;
        let k = self.mechanism.k();
        let (mut sums, mut number) = (Vec::new(), 0u64);
        while let Some(batch) = rows.next().await {
            stop.check()?;
            let batch = batch.context(DOING)?;
            let units = batch.columns().iter().take(width);
            let units = units.map(|units| units.as_primitive_opt::<UInt64Type>().ok_or_else(lost));
            let units = units.collect::<Result<Vec<_>>>()?;
            for row in 0..batch.num_rows() {
                if number.is_multiple_of(k) {
                    sums.extend(std::iter::repeat_n(0u128, width));
                }
                let first = sums.len() - width;
                for (sum, units) in sums[first..].iter_mut().zip(&units) {
                    *sum += u128::from(units.value(row));
                }
                number += 1;
            }
            held.at_least(sums.len() * size_of::<u128>())?;
        }
        // Rows that are too few for a cluster of their own belong to the last.
        if !number.is_multiple_of(k) && number > k {
            let rest = sums.split_off(sums.len() - width);
            let last = sums.len() - width;
            sums[last..].iter_mut().zip(rest).for_each(|(sum, rest)| *sum += rest);
        }
        if number < k {
            return Err(refused("the input has fewer rows than a cluster"));
        }
        Ok((number, sums))
    }
}

/// Calls `see` for the bits of each combination of means that rows show and the number of these rows; `None`
/// for one with NULL.
async fn for_every_group(
    output: &DataFrame,
    mechanism: &Mechanism,
    stop: &CancelToken,
    mut see: impl FnMut(Option<&[u64]>, u64),
) -> Result<()> {
    let names: Vec<Expr> = mechanism.columns().iter().map(|noisy| column(noisy.name())).collect();
    let groups = output.clone().aggregate(names, vec![count(lit(1i64))]).context(DOING)?;
    let mut groups = groups.execute_stream().await.context(DOING)?;
    while let Some(batch) = groups.next().await {
        stop.check()?;
        let batch = batch.context(DOING)?;
        let (count, means) = batch.columns().split_last().ok_or_else(lost)?;
        let means = means.iter().map(|means| means.as_primitive_opt::<Float64Type>().ok_or_else(lost));
        let means = means.collect::<Result<Vec<_>>>()?;
        let count = count.as_primitive_opt::<Int64Type>().ok_or_else(lost)?;
        for row in 0..batch.num_rows() {
            let shown = means.iter().map(|means| means.is_valid(row).then(|| means.value(row).to_bits()));
            let shown: Option<Vec<u64>> = shown.collect();
            see(shown.as_deref(), u64::try_from(count.value(row)).map_err(Error::internal)?);
        }
    }
    Ok(())
}

/// Checks released rows by themselves: each shows numbers within the bounds, and clusters have k rows, but for
/// the last.
///
/// # Errors
/// An unmet error.
pub(crate) async fn check_shown(output: &DataFrame, mechanism: &Mechanism, stop: &CancelToken) -> Result<()> {
    let (mut may_be, mut remainders) = (true, 0);
    // Clusters that show the same are one group.
    let see = |shown: Option<&[u64]>, rows: u64| {
        let mut columns = shown.unwrap_or_default().iter().zip(mechanism.columns());
        may_be &= shown.is_some() && columns.all(|(mean, noisy)| noisy.may_show(f64::from_bits(*mean)));
        remainders += u64::from(!rows.is_multiple_of(mechanism.k()));
    };
    for_every_group(output, mechanism, stop, see).await?;
    match (may_be, remainders) {
        (true, 0 | 1) => Ok(()),
        (true, _) => Err(refused("the rows are not those of clusters of k rows")),
        (false, _) => Err(refused("a row shows a number beyond the bounds of its column, or none")),
    }
}

fn other_means() -> Error {
    refused("the rows do not show the means of the input's clusters with the noise of the recorded key")
}

/// The units of a column's values.
struct Units {
    column: NoisyColumn,
}

impl OfValues for Units {
    fn name(&self) -> &'static str {
        "kanon_units"
    }

    fn of_type(&self, _values: &DataType) -> Result<DataType> {
        Ok(DataType::UInt64)
    }

    fn of(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let units = (0..values.len()).map(|row| self.column.units(&Value::read(values, row)?));
        Ok(Arc::new(units.collect::<Result<UInt64Array>>()?))
    }
}

const PLACE: &str = "kanon_place";

/// The place of a row in the order of the clusters.
struct Place {
    mechanism: Mechanism,
    signature: Signature,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(PLACE)
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.mechanism == other.mechanism
    }
}

impl Eq for Place {}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        PLACE.hash(state);
    }
}

impl ScalarUDFImpl for Place {
    fn name(&self) -> &'static str {
        PLACE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> EngineResult<DataType> {
        Ok(DataType::UInt64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        let units = ColumnarValue::values_to_arrays(&arguments.args)?;
        let units = units.iter().map(|units| units.as_primitive_opt::<UInt64Type>().ok_or_else(lost));
        let units = units.collect::<Result<Vec<_>>>().map_err(into_engine)?;
        let mut row = vec![0u64; units.len()];
        let places = (0..arguments.number_rows).map(|at| {
            row.iter_mut().zip(&units).for_each(|(unit, units)| *unit = units.value(at));
            self.mechanism.place(&row)
        });
        Ok(ColumnarValue::Array(Arc::new(UInt64Array::from_iter_values(places))))
    }
}
