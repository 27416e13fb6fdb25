//! `mona`: cuts a large table into parts and clusters each by `ona` (after Thaeter & Reischuk 2021).
//!
//! While a part has more than `n^rho` of the table's n base classes, and more than 64, it is cut in two: all are sorted
//! by whether they are nearer to one or the other of two that are far apart, and cut in the middle,
//! if both sides satisfy every requirement. Parts are clustered several at a time. The time grows as
//! `n^(1 + rho)`: nearly linear for a small `rho`; 1 does not cut at all. Deviation from the paper: it
//! cuts at the median of the column, or the two columns, of the largest variance.

use super::ona::ona;
use super::{CENTROID, Microaggregation, PartSize, row};
use crate::decimal::Decimal;
use crate::doc::Doc;
use crate::method::partition::Row;
use crate::papers;
use crate::parameter::{Absent, Kind, Parameter, Setting};

/// The row of [`METHODS`](crate::method::METHODS) for this method.
pub const ROW: Row = row(
    &Doc {
        name: "mona",
        summary: "microaggregation of large tables: cuts them into parts, each for `ona`; classes show centroids",
        parameters: "rho, centroid",
        example: "method = { mona = { rho = 0.5 } }",
        paper: Some(papers::THAETER_REISCHUK_2021),
    },
    &[RHO, CENTROID],
    |settings, _| Microaggregation::boxed(settings, PartSize::Power(settings.number(RHO.name)?), ona),
);

const RHO: Parameter = Parameter {
    name: "rho",
    kind: Kind::Share,
    absent: Absent::Means(Setting::Number(Decimal::new_const(5, 1))),
    summary: "parts have at most n^rho of the n base classes, or 64: larger ones keep more and take longer",
};
