//! What `kanon init` prints with `--format json`.

use crate::cli::json_fields::{JsonField, field};

/// The keys of what `kanon init` prints.
pub(in crate::cli) const FIELDS: &[JsonField] = &[
    field("rows", "number", "The number of rows."),
    field(
        "input",
        "table or null",
        "How the CSV files are written, as keys of `[input]`; `null` for other files.",
    ),
    field(
        "input.delimiter",
        "text or null",
        "The character between two cells; `null` if the files' names tell it.",
    ),
    field("input.header", "true or false", "Whether the first line holds the names of the columns."),
    field("input.nulls", "list of texts", "The cells that mean \"missing\"."),
    field(
        "input.encoding",
        "text or null",
        "The encoding; `null` for UTF-8, and for UTF-16 with a byte order mark.",
    ),
    field("input.date_format", "list of texts", "How dates are written; empty for ISO 8601."),
    field("input.decimal", "text", "The mark before the fraction of a number."),
    field("input.thousands", "text or null", "The mark between groups of three digits; `null` for none."),
    field("unclear_date_formats", "list of texts", "The formats between which the dates leave the choice."),
    field("numbers_are_unclear", "true or false", "Whether the numbers fit two ways of writing numbers."),
    field("individual", "text or null", "The column proposed as the individual."),
    field(
        "rows_are_individuals",
        "true or false",
        "Whether a column of personal numbers shows that each row is another individual.",
    ),
    field("columns", "list of tables", "The columns in their order."),
    field("columns[].name", "text", "The column's name."),
    field(
        "columns[].type",
        "text",
        "Its Arrow type; in CSV files, the one that all its cells can be read as.",
    ),
    field("columns[].role", "text", "The proposed role; `?` where the user must decide."),
    field("columns[].why", "text", "The reason for the role."),
    field(
        "columns[].doubt",
        "text or null",
        "The reason why cells may not be what they seem, such as numbers in two forms.",
    ),
    field(
        "columns[].notes",
        "list of texts",
        "What is odd about the cells, such as days in the future, with counts.",
    ),
    field(
        "columns[].distinct",
        "number or null",
        "The number of distinct values, NULL aside; `null` for types that cannot be released.",
    ),
    field(
        "columns[].distinct_is_counted",
        "true or false",
        "Whether the distinct values were counted; otherwise their number is an estimate within about 2 %.",
    ),
    field("columns[].nulls", "number", "The number of rows with NULL."),
    field(
        "columns[].hierarchy",
        "table of any values or null",
        "The proposed hierarchy, with the keys and values of the policy.",
    ),
    field(
        "columns[].unique_share_with",
        "number or null",
        "For the first 8 undecided columns, the share of rows that are unique when the column joins the quasi-identifiers.",
    ),
    field(
        "undecided_together",
        "table or null",
        "The undecided columns that together are unique in nearly all rows; `null` if there are no such columns.",
    ),
    field("undecided_together.columns", "list of texts", "The names of these columns."),
    field(
        "undecided_together.unique_share",
        "number",
        "The share of rows that are unique on them, from 0 to 1.",
    ),
    field(
        "undecided_together.with_quasi",
        "true or false",
        "Whether they are that unique only with the quasi-identifiers.",
    ),
    field(
        "singled_out",
        "list of tables",
        "The quasi-identifiers that make most rows unique: one, two and three of them.",
    ),
    field(
        "singled_out[].columns",
        "list of texts",
        "The columns, the one that makes most rows unique first.",
    ),
    field("singled_out[].unique_share", "number", "The share of rows that are unique on them."),
    field(
        "unique_share",
        "number or null",
        "The share of rows that are unique on all proposed quasi-identifiers; `null` without any.",
    ),
    field("policy", "text", "The text of the policy."),
];
