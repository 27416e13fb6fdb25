//! Methods that part the base classes into groups of their own, so that values of a column need not share a level.

pub mod mondrian;
