//! `latitude`: decimal degrees from -90 to 90 become cells of 0.01, 0.1, 1 and 10 degrees.
//!
//! A degree of latitude is about 111 km, so the cells are about 1, 11, 111 and 1,113 km high. Text
//! (`42.3601`, `-7`) and numbers in; a float counts as the decimal that it prints as. `90` is in the
//! last cell, `[80,90]`. Degrees with minutes, letters (`42N`) and exponents are outside.

use super::coordinates::{Coordinate, LEVELS};
use super::{Input, KnownRow};
use crate::doc::Doc;

/// The row of [`KNOWN`](super::KNOWN) for this hierarchy.
pub const ROW: KnownRow = KnownRow {
    doc: &Doc {
        name: "latitude",
        summary: "decimal degrees from -90 to 90 to cells of 0.01, 0.1, 1 and 10 degrees",
        parameters: "",
        example: "hierarchy = { known = \"latitude\" }",
        paper: None,
    },
    words: &["lat", "latitude"],
    levels: LEVELS,
    input: Input::TextOrNumbers,
    source: "decimal degrees from -90 to 90",
    rule: || &Coordinate { limit: 90 },
};

#[cfg(test)]
mod tests {
    use crate::known::tests::labels;

    #[test]
    fn cells_by_hand() {
        for (value, path) in [
            ("42.3601", "[42.36,42.37) < [42.3,42.4) < [42,43) < [40,50)"),
            ("-0.001", "[-0.01,0.00) < [-0.1,0.0) < [-1,0) < [-10,0)"),
            ("-0", "[0.00,0.01) < [0.0,0.1) < [0,1) < [0,10)"),
            ("-7.5", "[-7.50,-7.49) < [-7.5,-7.4) < [-8,-7) < [-10,0)"),
            ("90", "[89.99,90.00] < [89.9,90.0] < [89,90] < [80,90]"),
            ("-90.00", "[-90.00,-89.99) < [-90.0,-89.9) < [-90,-89) < [-90,-80)"),
        ] {
            assert_eq!(labels("latitude", value).as_deref(), Some(path), "{value}");
        }
        for outside in
            ["90.001", "-90.0000001", "91", "42N", "42,3", "1e1", "NaN", "inf", ".5", "5.", "--5", "0042"]
        {
            assert_eq!(labels("latitude", outside), None, "{outside}");
        }
    }
}
