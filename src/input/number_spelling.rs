//! How the cells of a column write numbers. Where two cells could be one number, as `1.10` and `1.1`, `+49` and `49`
//! or `1E3` and `1000`, they may be codes, and a type would join them.

/// What the cells of a column have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NumberSpelling {
    /// The least and the most digits after the point.
    decimals: Option<(usize, usize)>,
    /// Whether a fraction ends in 0.
    ends_in_zero: bool,
    /// Whether a cell could be written otherwise.
    is_odd: bool,
}

impl NumberSpelling {
    /// Looks at a cell. Blanks around a number do not count, nor do words such as NaN.
    pub(super) fn add_cell(&mut self, cell: &str) {
        let cell = cell.trim();
        if !cell.bytes().any(|byte| byte.is_ascii_digit()) {
            return;
        }
        let unsigned = cell.strip_prefix('-').unwrap_or(cell);
        let (mantissa, exponent) = match unsigned.split_once('e') {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (unsigned, None),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_plain =
            !whole.is_empty() && are_digits(whole) && are_digits(fraction) && !mantissa.ends_with('.');
        // As programs write very large and very small numbers: 1.5e-07.
        let is_short = exponent.is_none_or(|exponent| {
            let digits = exponent.strip_prefix(['-', '+']).unwrap_or_default();
            digits.len() > 1 && are_digits(digits) && !fraction.ends_with('0')
        });
        let digits = mantissa.trim_start_matches(['0', '.']).bytes().filter(u8::is_ascii_digit).count();
        // A double holds 15 digits, and more if they are those that it is written with.
        let is_held = digits <= 15 || (fraction.is_empty() && exponent.is_none()) || is_written_so(cell);
        let is_zero = cell.starts_with('-') && digits == 0;
        self.is_odd |= !is_plain || !is_short || !is_held || is_zero;
        if exponent.is_none() {
            let count = fraction.len();
            self.ends_in_zero |= fraction.ends_with('0');
            self.add_decimals((count, count));
        }
    }

    fn add_decimals(&mut self, (low, high): (usize, usize)) {
        let (least, most) = self.decimals.unwrap_or((low, high));
        self.decimals = Some((least.min(low), most.max(high)));
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.ends_in_zero |= other.ends_in_zero;
        self.is_odd |= other.is_odd;
        if let Some(decimals) = other.decimals {
            self.add_decimals(decimals);
        }
    }

    /// Returns whether further cells could leave all of them apart.
    pub(super) fn may_tell_apart(&self) -> bool {
        !self.is_odd
    }

    /// Returns whether no two different cells can be one number.
    pub(super) fn tells_all_apart(&self) -> bool {
        let has_one_form = self.decimals.is_none_or(|(least, most)| least == most);
        !self.is_odd && (has_one_form || !self.ends_in_zero)
    }
}

/// Returns whether a number is written as short as its double allows.
fn is_written_so(cell: &str) -> bool {
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).collect::<Vec<_>>();
    let mantissa = |text: &str| text.split(['e', 'E']).next().map(digits).unwrap_or_default();
    cell.parse::<f64>().is_ok_and(|number| {
        let short = format!("{number:e}");
        let (cell, short) = (mantissa(cell), mantissa(&short));
        let significant: Vec<u8> = cell.into_iter().skip_while(|digit| *digit == b'0').collect();
        significant == short
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_could_be_one_number() {
        let tells = |cells: &[&str]| {
            let mut spelling = NumberSpelling::default();
            for cell in cells {
                let mut one = NumberSpelling::default();
                one.add_cell(cell);
                spelling.add(&one);
            }
            spelling.tells_all_apart()
        };
        for cells in [
            &["1", "10", "-3", "0"][..],
            &["1.10", "1.20", "0.00"],
            &["1", "1.5", "20.25"],
            &["5.0", "6.0"],
            &["0.30000000000000004", "0.1"],
            &["1e-07", "0.5", "1.5e+300"],
            &[" 7", "8 "],
            &["9223372036854775807"],
            &[],
        ] {
            assert!(tells(cells), "{cells:?}");
        }
        for cells in [
            &["250.0", "250.00"][..],
            &["1.1", "1.10"],
            &["1", "1.0"],
            &["+49301"],
            &["1E3"],
            &["1e5"],
            &["12e3"],
            &["1.50e-07"],
            &["-0"],
            &["-0.0"],
            &[".5"],
            &["2."],
            &["0.12345678901234567891"],
            &["12345678901234567890.5"],
        ] {
            assert!(!tells(cells), "{cells:?}");
        }
    }
}
