//! The bounds of [`floor`](super::floor), [`range`](super::range) and [`bands`](super::bands) by
//! their definition: the twin of [`bounds`](super::bounds) and [`decimal_steps`](super::decimal_steps)
//! for one value at a time.
//!
//! Verification must not repeat a mistake of the columnar way, so nothing is shared with it but the
//! step, the origin and the scale of a [`Grid`]: numbers are read from their text, counted in
//! 256-bit integers and written digit by digit.

use arrow::datatypes::i256;

use super::Value;
use super::bounds::Grid;
use crate::decimal::Decimal;
use crate::error::{Error, Result};

/// Returns a number in units of `10^-scale`; `None` if it has more decimals, or beyond 256 bits.
fn units(number: Decimal, scale: u32) -> Option<i256> {
    let mut units = i256::from_i128(number.numerator());
    for _ in 0..scale.checked_sub(number.scale())? {
        units = units.checked_mul(i256::from(10i64))?;
    }
    Some(units)
}

/// Returns the most units of `10^-scale` that are not above a number, from its text `-12.345`.
fn whole_units(text: &str, scale: u32) -> Option<i256> {
    let (is_negative, unsigned) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let width = usize::try_from(scale).ok()?;
    let padded = format!("{fraction:0<width$}");
    let (kept, cut) = padded.split_at(width);
    let magnitude = i256::from_string(&format!("{whole}{kept}"))?;
    match is_negative {
        false => Some(magnitude),
        true if cut.bytes().all(|digit| digit == b'0') => magnitude.checked_neg(),
        true => magnitude.checked_neg()?.checked_sub(i256::ONE),
    }
}

/// Returns the largest `origin + k * step` that is not above `number`, all in units of the grid.
fn bound_below(grid: &Grid, number: i256) -> Option<i256> {
    let (step, origin) = (units(grid.step, grid.scale)?, units(grid.origin, grid.scale)?);
    let bound = |k: i256| k.checked_mul(step)?.checked_add(origin);
    // The division only says where to begin; the definition decides.
    let mut k = number.checked_sub(origin)?.checked_div(step)?;
    while bound(k)? > number {
        k = k.checked_sub(i256::ONE)?;
    }
    while bound(k.checked_add(i256::ONE)?)? <= number {
        k = k.checked_add(i256::ONE)?;
    }
    bound(k)
}

/// Returns the largest bound of `grid` that is not above an integer, a finite float or a decimal, in
/// units of the grid; `None` for a float out of reach, and beyond 256 bits.
pub(super) fn lower_bound(grid: &Grid, value: &Value) -> Option<i256> {
    match value {
        Value::Float(v) => float_bound(grid, *v),
        other => bound_below(grid, whole_units(&other.text_form()?, grid.scale)?),
    }
}

/// Returns whether a decimal is at least `number`.
pub(super) fn reaches(digits: i256, scale: i8, number: Decimal) -> bool {
    let text = Value::Decimal(digits, scale).text_form();
    let units = text.and_then(|text| whole_units(&text, number.scale()));
    // Beyond 256 bits the sign decides.
    units.map_or(digits > i256::ZERO, |units| units >= i256::from_i128(number.numerator()))
}

/// Returns the bound of a float: the largest whose nearest double is not above `v`.
fn float_bound(grid: &Grid, v: f64) -> Option<i256> {
    let reach: f64 = format!("4e{}", 15 - i64::from(grid.scale)).parse().ok()?;
    if v.abs() > reach {
        return None;
    }
    let step = units(grid.step, grid.scale)?;
    let mut lower = bound_below(grid, whole_units(&v.to_string(), grid.scale)?)?;
    // A longer decimal above the digits of `v` can still be the same double.
    while float(lower.checked_add(step)?, grid.scale) <= v {
        lower = lower.checked_add(step)?;
    }
    Some(lower)
}

/// Returns the double nearest to `units / 10^scale`.
pub(super) fn float(units: i256, scale: u32) -> f64 {
    written(units, scale, 1).parse().unwrap_or(f64::NAN)
}

/// Returns a bound of `grid` as a decimal with the scale of a column; `None` if the column cannot
/// hold it.
pub(super) fn decimal(grid: &Grid, bound: i256, scale: i8) -> Option<Value> {
    let (mut digits, ten) = (bound, i256::from(10i64));
    for _ in i64::from(grid.scale)..i64::from(scale) {
        digits = digits.checked_mul(ten)?;
    }
    for _ in i64::from(scale)..i64::from(grid.scale) {
        if digits.checked_rem(ten)? != i256::ZERO {
            return None;
        }
        digits = digits.checked_div(ten)?;
    }
    Some(Value::Decimal(digits, scale))
}

/// Writes `units / 10^scale` with all its decimals and at least `digits` digits before the point.
fn written(units: i256, scale: u32, digits: usize) -> String {
    let text = units.to_string();
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let scale = scale as usize;
    let padded = format!("{unsigned:0>width$}", width = scale + digits);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    let point = if scale > 0 { "." } else { "" };
    format!("{sign}{whole}{point}{fraction}")
}

/// Returns the label `<18` or `>=90` of all numbers beyond a bound, by its `sign`, with at least `scale`
/// decimals and `digits` digits before the point.
///
/// # Errors
/// An internal error without a bound, or for one beyond 256 bits.
pub(super) fn open_end(sign: &str, bound: Option<Decimal>, scale: u32, digits: usize) -> Result<Value> {
    let text = bound.and_then(|bound| bound_text(bound, scale, digits));
    let text = text.ok_or_else(|| Error::internal("naive bounds: an open end has no bound"))?;
    Ok(Value::Text(format!("{sign}{text}")))
}

/// Writes a number as labels show it; `None` beyond 256 bits.
pub(super) fn bound_text(number: Decimal, scale: u32, digits: usize) -> Option<String> {
    let scale = scale.max(number.scale());
    Some(written(units(number, scale)?, scale, digits))
}

/// Writes the interval that begins at `lower` (in units of the grid), cut at `ends`, with `scale`
/// decimals and at least `digits` digits before the point; `None` beyond 128 bits.
pub(super) fn interval_text(
    grid: &Grid,
    lower: i256,
    ends: [Option<Decimal>; 2],
    scale: u32,
    digits: usize,
) -> Option<String> {
    let upper = lower.checked_add(units(grid.step, grid.scale)?)?;
    let finer = |bound: i256| (grid.scale..scale).try_fold(bound, |b, _| b.checked_mul(i256::from(10i64)));
    let (mut lower, mut upper) = (finer(lower)?, finer(upper)?);
    // The columnar way writes 128 bits.
    lower.to_i128().and(upper.to_i128())?;
    if let Some(low) = ends[0] {
        lower = lower.max(units(low, scale)?);
    }
    if let Some(high) = ends[1] {
        upper = upper.min(units(high, scale)?);
    }
    Some(format!("[{},{})", written(lower, scale, digits), written(upper, scale, digits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(step: &str, origin: &str) -> Grid {
        Grid::new(Decimal::parse(step).unwrap(), Decimal::parse(origin).unwrap()).unwrap()
    }

    #[test]
    fn bounds_by_hand() {
        let below =
            |step, origin, value| lower_bound(&grid(step, origin), &value).unwrap().to_i128().unwrap();
        assert_eq!([39, 40, -1, -10].map(|v| below("10", "0", Value::Int(v))), [30, 40, -10, -10]);
        assert_eq!([4, 5, 14].map(|v| below("10", "5", Value::Int(v))), [-5, 5, 5]);
        assert_eq!(below("2.5", "0", Value::Int(-1)), -25);
        assert_eq!([0.3, -0.05, 0.299].map(|v| below("0.1", "0", Value::Float(v))), [3, -1, 2]);
        assert_eq!(below("0.5", "0", Value::Decimal(i256::from(-1i64), 2)), -5);
        assert_eq!(below("1000", "0", Value::Decimal(i256::from(-1i64), -2)), -1000);
        assert_eq!(lower_bound(&grid("1", "0"), &Value::Float(5e15)), None);
    }

    #[test]
    fn numbers_are_written_digit_by_digit() {
        let text = |units: i64, scale, digits| written(i256::from(units), scale, digits);
        assert_eq!([text(0, 0, 1), text(-5, 0, 3), text(1234, 0, 2)], ["0", "-005", "1234"]);
        assert_eq!([text(5, 2, 1), text(-123, 2, 2), text(0, 1, 1)], ["0.05", "-01.23", "0.0"]);
        let ends = [Some(Decimal::integer(18)), Some(Decimal::parse("37.5").unwrap())];
        let interval = |lower: i64| interval_text(&grid("10", "0"), i256::from(lower), ends, 1, 2).unwrap();
        assert_eq!([interval(10), interval(20), interval(30)], ["[18.0,20.0)", "[20.0,30.0)", "[30.0,37.5)"]);
        assert_eq!(bound_text(Decimal::integer(90), 1, 3).unwrap(), "090.0");
    }
}
