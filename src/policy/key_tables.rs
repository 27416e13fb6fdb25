//! The keys of a policy file, as the parsers know them and the reference lists them.

/// A key of the policy file.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The name.
    pub name: &'static str,
    /// What it holds, and what it means where it is missing.
    pub summary: &'static str,
}

const fn key(name: &'static str, summary: &'static str) -> Key {
    Key { name, summary }
}

/// Returns the names of some keys.
pub(super) fn names(keys: &[Key]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}

/// The keys above all tables.
pub const TOP: &[Key] = &[
    key("k", "short form of the model `k_anonymity`: each class has at least k individuals"),
    key("suppression_limit", "the share of the individuals that may be suppressed, from 0 to 1 (default 0)"),
    key("objective", "the loss that the search minimizes (default `granularity`)"),
    key(
        "method",
        "how the table is recoded: a name, or a table of a name and its parameters (default `auto`)",
    ),
    key("effort", "how long `anytime` and `best` search levels: a table of one setting"),
    key(
        "others",
        "`\"drop\"`: columns without a line under `[columns]` are left out; without it they are an error",
    ),
    key("rows_are_individuals", "`true` asserts that each row is another individual (default `false`)"),
    key(
        "accept_homogeneity",
        "sensitive columns in which all individuals of a class may share a value (default none)",
    ),
    key(
        "population",
        "a file of the population, beside the policy, for models that look at one: a row per individual, with the quasi-identifiers",
    ),
    key("require", "`[[require]]`: a model that must hold; all of them must"),
    key("columns", "`[columns]`: a line for each column"),
    key("input", "`[input]`: how CSV files are written"),
    key("output", "`[output]`: how the release is written"),
    key(
        "history",
        "`[history]`: further releases of the same people may follow; what tells them and their rows apart",
    ),
];

/// The keys of a column's line.
pub const COLUMN: &[Key] = &[
    key("role", "`individual`, `identifier`, `quasi`, `sensitive`, `preference`, `insensitive` or `text`"),
    key("hierarchy", "the levels of a quasi-identifier (default: as it is, or suppressed)"),
    key("clip", "`[low, high]`, `{ from = low }` or `{ to = high }`: values beyond are joined at the bound"),
    key("weight", "how many times the column counts in the loss, above 0 (default 1)"),
    key("min_level", "the finest level that may be shown (default 0)"),
    key("max_level", "the coarsest level that may be shown (default: the top)"),
    key("recode", "`\"global\"`: all rows show the column at one level, whatever the method"),
    key(
        "allow_unique",
        "`true`: the column is released as it is although few individuals share its values (default `false`)",
    ),
    key("relative_to", "the column of dates from which this column's days are counted"),
];

/// The keys of `[[require]]` beside the model's parameters.
pub const REQUIRE: &[Key] = &[
    key("model", "the name of the model"),
    key("sensitive", "the sensitive column, for models that look at one"),
    key(
        "level",
        "the level of the sensitive column's hierarchy whose labels are compared (default 0: the values themselves)",
    ),
    key(
        "values",
        "the only sensitive values that are bounded, for models that judge each value (default: all)",
    ),
    key(
        "quasi",
        "the quasi-identifiers over which the model must hold, for models of class sizes and of counts of sensitive values in a class, not for those that compare a class with the table (default: all)",
    ),
];

/// The keys of `[input]`.
pub const INPUT: &[Key] = &[
    key(
        "delimiter",
        "the one ASCII character between two cells (default: a tab in .tsv files, in others the one that the first lines show)",
    ),
    key(
        "header",
        "whether the first line holds the names of the columns (default `true`; a first line that looks like data is then refused)",
    ),
    key("nulls", "the cells that mean \"missing\" (default `[\"\"]`)"),
    key(
        "date_format",
        "how dates are written, such as `\"%d.%m.%Y\"`, or a list of formats (default: ISO 8601)",
    ),
    key("decimal", "the mark before the fraction of a number, `\".\"` or `\",\"` (default `\".\"`)"),
    key(
        "thousands",
        "the mark between groups of three digits: `\".\"`, `\",\"`, `\" \"` or `\"'\"` (default none)",
    ),
    key(
        "encoding",
        "the encoding by its name in the web's standard, such as `\"latin1\"` (default UTF-8, or UTF-16 with a byte order mark)",
    ),
];

/// The keys of `[history]`.
pub const HISTORY: &[Key] = &[
    key("person", "the column that names the person of a row in all inputs (default: the individual column)"),
    key(
        "row",
        "the columns that tell the rows of a person apart, such as `[\"visit\"]` (default: all released columns; a row of which one differs is another row)",
    ),
    key(
        "dates",
        "the released columns whose values tell that a row was not in an input, where they lie outside of its values (default: those of dates and times)",
    ),
    key(
        "changes",
        "the sensitive columns whose values change from one release to the next, as everybody knows (default none)",
    ),
    key(
        "changes_known",
        "whether attackers know whose rows change; if so, rows matched by `row` whose values change are kept apart from those that stay the same (default `true`)",
    ),
    key("reason", "for `changes_known = false`, the reason, which the public record repeats"),
];

/// The keys of `[output]`.
pub const OUTPUT: &[Key] = &[
    key(
        "ends",
        "what the ends of intervals show, for methods that make intervals: `\"values\"`, `\"closed\"` or `\"cuts\"` (default `\"values\"`)",
    ),
    key("intervals", "`\"columns\"`: the ends of intervals are columns of their own (default `\"text\"`)"),
    key(
        "released_on",
        "the day of the release that the public record states, such as `\"2026-11-24\"`; `--released-on` goes before it (default none)",
    ),
    key(
        "left_out",
        "`\"names\"`: the public record names the columns that are left out (default `\"counts\"`: how many of each role; `relative_to` names its column in any case)",
    ),
    key(
        "private",
        "the file (`.json`) or folder of the private record, from the policy's folder on; `--private` goes before it (default: beside the release)",
    ),
    key("row_group_rows", "the most rows of a row group of the Parquet files, from 1000 on (default 262144)"),
    key(
        "file_bytes",
        "the bytes from which on a file ends, at the end of a row group, from 10000 on (default 536870912)",
    ),
    key(
        "compression",
        "how pages are compressed: `\"none\"`, `\"snappy\"`, `\"lz4\"`, `\"gzip\"` or `\"zstd\"` (default `\"zstd\"`)",
    ),
    key(
        "partition_by",
        "released columns that the names of folders hold instead of the files, such as `[\"year\"]` for `year=2024/` (default none)",
    ),
];
