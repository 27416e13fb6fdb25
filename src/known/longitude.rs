//! `longitude`: decimal degrees from -180 to 180 become cells of 0.01, 0.1, 1 and 10 degrees.
//!
//! A degree of longitude is about 111 km at the equator, 79 km at 45 degrees and nothing at a pole,
//! so equal cells are not equal areas. Values as for [`latitude`](super::latitude); `180` is in the
//! last cell, `[170,180]`, and not in that of `-180`.

use super::coordinates::{Coordinate, LEVELS};
use super::{Input, KnownRow};
use crate::doc::Doc;

/// The row of [`KNOWN`](super::KNOWN) for this hierarchy.
pub const ROW: KnownRow = KnownRow {
    doc: &Doc {
        name: "longitude",
        summary: "decimal degrees from -180 to 180 to cells of 0.01, 0.1, 1 and 10 degrees",
        parameters: "",
        example: "hierarchy = { known = \"longitude\" }",
        paper: None,
    },
    words: &["lon", "lng", "longitude"],
    levels: LEVELS,
    input: Input::TextOrNumbers,
    source: "decimal degrees from -180 to 180",
    rule: || &Coordinate { limit: 180 },
};

#[cfg(test)]
mod tests {
    use crate::known::tests::labels;

    #[test]
    fn cells_by_hand() {
        for (value, path) in [
            ("-71.0589", "[-71.06,-71.05) < [-71.1,-71.0) < [-72,-71) < [-80,-70)"),
            ("180", "[179.99,180.00] < [179.9,180.0] < [179,180] < [170,180]"),
            ("100.25", "[100.25,100.26) < [100.2,100.3) < [100,101) < [100,110)"),
        ] {
            assert_eq!(labels("longitude", value).as_deref(), Some(path), "{value}");
        }
        assert_eq!(labels("longitude", "180.01"), None);
    }
}
