//! What the commands print with `--format json`: the reference lists these tables, and a test
//! compares them with real output.

use super::init;

/// The output of a command.
#[derive(Debug, Clone, Copy)]
pub struct JsonOutput {
    /// The command, with the options that change what it prints.
    pub call: &'static str,
    /// What it prints, in one sentence.
    pub summary: &'static str,
    /// The keys of the printed object; none if the summary says it all.
    pub fields: &'static [JsonField],
}

/// A key of a printed object.
#[derive(Debug, Clone, Copy)]
pub struct JsonField {
    /// The keys that lead to it; `[]` is an element of a list, `*` any key of a table.
    pub path: &'static str,
    /// Its kind in plain words: `list of texts`, `number or null`, `text, may be missing`.
    pub kind: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Where its keys are explained, if not below it.
    pub keys: Keys,
}

/// Where the keys of a table are explained.
#[derive(Debug, Clone, Copy)]
pub enum Keys {
    /// In the same table, if it has any.
    Here,
    /// At a path of another command's output; further keys may follow here.
    OfCommand(&'static str, &'static str),
    /// At a path of the public record.
    OfPublicRecord(&'static str),
    /// At a path of the private record.
    OfPrivateRecord(&'static str),
}

pub(super) const fn field(path: &'static str, kind: &'static str, meaning: &'static str) -> JsonField {
    JsonField { path, kind, meaning, keys: Keys::Here }
}

pub(super) const fn with(
    keys: Keys,
    path: &'static str,
    kind: &'static str,
    meaning: &'static str,
) -> JsonField {
    JsonField { path, kind, meaning, keys }
}

/// The meaning of `warning`.
const WARNING: &str = "The reason why the policy protects no individual, so that `kanon release` refuses it; `null` for other policies.";

/// The meaning of `doubts`.
const DOUBTS: &str = "What is doubtful about the policy and its input though nothing is refused, as the lines `warning` say it.";

/// The meaning of `rows_without_individual`.
const UNOWNED: &str = "The number of rows whose individual is NULL; 0 where rows are counted.";

/// The outputs of all commands.
pub const JSON_OUTPUTS: &[JsonOutput] = &[
    JsonOutput { call: "init", summary: "The proposal.", fields: init::json_fields::FIELDS },
    JsonOutput { call: "check", summary: "The verdict on the table as it is.", fields: CHECK },
    JsonOutput { call: "search", summary: "The best recodings.", fields: SEARCH },
    JsonOutput { call: "search --minimal", summary: "The minimal nodes.", fields: SEARCH_MINIMAL },
    JsonOutput { call: "search --compare", summary: "What each method finds.", fields: SEARCH_COMPARE },
    JsonOutput {
        call: "release",
        summary: "The public record of the release, as in `_kanon.json`.",
        fields: &[],
    },
    JsonOutput {
        call: "verify",
        summary: "What was verified; a release that does not pass is an error.",
        fields: VERIFY,
    },
    JsonOutput {
        call: "explain",
        summary: "The public record of the release, as in `_kanon.json`.",
        fields: &[],
    },
    JsonOutput { call: "risk", summary: "The risks.", fields: RISK },
    JsonOutput { call: "link", summary: "What the attacker learns.", fields: LINK },
    JsonOutput {
        call: "sql",
        summary: "For each result a list of tables: the rows, by the columns' names.",
        fields: &[],
    },
    JsonOutput { call: "hierarchy", summary: "The hierarchy of the column's values.", fields: HIERARCHY },
    JsonOutput { call: "hierarchy --to", summary: "The file that was written.", fields: HIERARCHY_TO },
    JsonOutput {
        call: "hierarchy check",
        summary: "The verdict on the hierarchy file.",
        fields: HIERARCHY_CHECK,
    },
    JsonOutput { call: "list", summary: "Everything that can stand in a policy or in SQL.", fields: LIST },
    JsonOutput { call: "generate", summary: "The file that was written.", fields: GENERATE },
];

const CHECK: &[JsonField] = &[
    field("models", "list of tables", "The models."),
    field("models[].model", "text", "The model's name."),
    field(
        "models[].sensitive",
        "text, may be missing",
        "The sensitive column that the model looks at, if it needs one.",
    ),
    field(
        "models[].level",
        "number, may be missing",
        "The level of the column's hierarchy whose labels are compared, if it is not the values themselves.",
    ),
    field(
        "models[].values",
        "list of texts, may be missing",
        "The only values that the model bounds, if it does not bound all.",
    ),
    field(
        "models[].quasi",
        "list of texts, may be missing",
        "The quasi-identifiers over which the model is judged, if it is a subset.",
    ),
    field("models[].required", "number", "The required bound."),
    field("models[].reached", "number", "The worst value of all classes."),
    field("models[].holds", "true or false", "Whether all classes satisfy the model."),
    field("models[].failing_classes", "number", "The number of classes that do not."),
    field("models[].failing_rows", "number", "The number of rows in these classes."),
    field("classes", "number", "The number of classes."),
    field("rows", "number", "The number of rows."),
    field("individuals", "number", "The number of individuals."),
    field("rows_without_individual", "number", UNOWNED),
    with(
        Keys::OfPublicRecord("homogeneous[]"),
        "homogeneous",
        "list of tables",
        "For each sensitive column the classes that share one value of it.",
    ),
    field("warning", "text or null", WARNING),
    field("doubts", "list of texts", DOUBTS),
    field(
        "notes",
        "list of texts",
        "What is odd about the cells of the columns that the policy or the arguments name, such as days in the future, with counts.",
    ),
];

const SEARCH: &[JsonField] = &[
    field("objective", "text", "The loss that the search minimized."),
    field("method", "text", "The method that ran."),
    field(
        "chosen_because",
        "text or null",
        "Why `auto` took this method; null if the policy names another one.",
    ),
    field(
        "nodes",
        "number or null",
        "The number of nodes in the lattice; `null` if the method searches none.",
    ),
    field(
        "evaluated",
        "number",
        "The number of nodes whose classes were computed far enough to judge them; without a lattice, the number of steps. `incognito` also counts nodes of fewer columns, so it can be more than `nodes`.",
    ),
    field("optimal", "true or false", "Whether these recodings are proven best."),
    field(
        "bound",
        "number or null",
        "A lower bound on the loss of every recoding that satisfies the policy; `null` if the method gives none or there is no such recoding.",
    ),
    field("warning", "text or null", WARNING),
    field("doubts", "list of texts", DOUBTS),
    field("rows_without_individual", "number", UNOWNED),
    field("best", "list of tables", "The best recodings, best first; empty if none satisfies the policy."),
    field(
        "best[].levels",
        "table of numbers, may be missing",
        "The level of each quasi-identifier, for methods with one level per column.",
    ),
    field(
        "best[].regions",
        "number, may be missing",
        "The number of classes, suppressed ones included, for methods whose classes show regions.",
    ),
    field(
        "best[].groups",
        "number, may be missing",
        "The number of groups, for methods that make two tables.",
    ),
    field("best[].clusters", "number, may be missing", "The number of clusters, for methods that add noise."),
    field("best[].value", "number", "The objective's loss."),
    field("best[].suppressed_rows", "number", "The number of suppressed rows."),
    field("best[].suppressed_individuals", "number", "The number of individuals with a suppressed row."),
    field("best[].classes", "number", "The number of released classes."),
    field(
        "best[].min_class",
        "number or null",
        "The number of individuals in the smallest released class; `null` if all rows are suppressed.",
    ),
    field("best[].by", "text or null", "The method that found it, where several were tried."),
    field(
        "best[].measures",
        "table of numbers",
        "Every loss that applies to the recoding, by name; of groups also the `reconstruction_error`, of clusters the `squared_error_with_noise`.",
    ),
];

const SEARCH_MINIMAL: &[JsonField] = &[
    field("objective", "text", "The policy's loss."),
    field("nodes", "number", "The number of nodes in the lattice."),
    field("evaluated", "number", "The number of nodes whose classes were computed far enough to judge them."),
    field("warning", "text or null", WARNING),
    field("doubts", "list of texts", DOUBTS),
    with(
        Keys::OfCommand("search", "best[]"),
        "minimal",
        "list of tables",
        "The minimal nodes: they satisfy the policy while no node below them does.",
    ),
    field("minimal[].distance", "list of numbers", "The levels of the columns in policy order."),
];

const SEARCH_COMPARE: &[JsonField] = &[
    field("objective", "text", "The loss by which the methods are compared."),
    field("warning", "text or null", WARNING),
    field("doubts", "list of texts", DOUBTS),
    field(
        "methods",
        "list of tables",
        "The methods, least loss first; methods that make two tables or add noise last.",
    ),
    field("methods[].method", "text", "The method's name."),
    field("methods[].settings", "table of texts", "Its parameters by name."),
    with(
        Keys::OfCommand("search", "best[]"),
        "methods[].found",
        "table or null",
        "The best recoding that it found; `null` if it found none.",
    ),
    with(
        Keys::OfPrivateRecord("utility"),
        "methods[].found.utility",
        "table or null",
        "What the recoding keeps of the distributions of the quasi-identifiers; `null` for means with noise.",
    ),
    field("methods[].steps", "number", "The number of nodes or cuts that were evaluated."),
    field("methods[].seconds", "number", "The time that the search took, in seconds."),
    field("methods[].optimal", "true or false", "Whether no recoding of its kind loses less."),
    field(
        "methods[].does_not_apply",
        "text or null",
        "Why the method cannot follow the policy, if it cannot.",
    ),
];

const VERIFY: &[JsonField] = &[
    field("holds", "true or false", "Always true: otherwise the command ends with an error."),
    field(
        "policy",
        "text or null",
        "The policy file that was found because it fits the public record; `null` if none was looked for.",
    ),
    field("with_input", "true or false", "Whether the rows were compared with the input."),
    field("with_bytes", "true or false", "Whether the files are what this version writes, to the byte."),
    field("rows", "number", "The number of released rows."),
    field("classes", "number", "The number of released classes."),
    field(
        "individuals",
        "number or null",
        "The number of released individuals; `null` without the input, or where rows are counted.",
    ),
    field("suppressed_rows", "number or null", "The number of suppressed rows; `null` without the input."),
    field(
        "suppressed_individuals",
        "number or null",
        "The number of individuals with a suppressed row; `null` without the input, or where rows are counted.",
    ),
    field(
        "rows_without_individual",
        "number or null",
        "The number of released rows without an individual; `null` without the input, or where rows are counted.",
    ),
    field(
        "suppressed_rows_without_individual",
        "number or null",
        "The number of suppressed rows without an individual; `null` without the input, or where rows are counted.",
    ),
    with(
        Keys::OfPublicRecord("unique"),
        "unique",
        "table",
        "The individuals that are unique on the quasi-identifiers together with all columns released as they are; without the input, the rows.",
    ),
    with(
        Keys::OfPublicRecord("homogeneous[]"),
        "homogeneous",
        "list of tables",
        "For each sensitive column the classes that share one value of it; without the input, counted in rows.",
    ),
    with(Keys::OfPublicRecord("models[]"), "models", "list of tables", "The models, as in the record."),
];

const RISK: &[JsonField] = &[
    field("rows", "number", "The number of rows."),
    field("individuals", "number", "The number of individuals."),
    field("rows_without_individual", "number", UNOWNED),
    field(
        "rows_without_quasi",
        "number",
        "The number of rows that are `*` or NULL in every quasi-identifier, as after an earlier suppression.",
    ),
    field("doubts", "list of texts", DOUBTS),
    field("classes", "number", "The number of classes."),
    field("k", "number", "The number of individuals in the smallest class."),
    field("risk", "table of numbers", "The risk measures, by name."),
    field(
        "individuals_at_risk",
        "number",
        "The number of individuals whose risk exceeds 0.2: a class of theirs has fewer than 5.",
    ),
    field("histogram", "list of tables", "The sizes of the classes, smallest first."),
    field("histogram[].size", "number", "The number of individuals in each of these classes."),
    field("histogram[].classes", "number", "The number of classes of this size."),
    field(
        "histogram[].individuals",
        "number",
        "The number of individuals whose smallest class has this size; each counts once.",
    ),
    field("without", "list of tables", "The risks when one quasi-identifier is left out, for each of them."),
    field("without[].column", "text", "The quasi-identifier that is left out."),
    field("without[].k", "number", "The number of individuals in the smallest class."),
    field("without[].sample_uniqueness", "number", "The share of individuals that are alone in a class."),
    field("without[].individuals_at_risk", "number", "The number of individuals whose risk exceeds 0.2."),
];

const LINK: &[JsonField] = &[
    field("on", "list of tables", "The linked columns."),
    field("on[].column", "text", "The column's name."),
    field(
        "on[].generalized",
        "text or null",
        "How the values of A were generalized, such as `range:10`; `null` if B is not a release.",
    ),
    field("not_used", "list of tables", "The quasi-identifiers of a release that are not linked."),
    field("not_used[].column", "text", "The column's name."),
    field("not_used[].why", "text", "The reason."),
    field("read_as_texts", "list of texts", "The linked columns whose labels are read as texts."),
    field("individuals", "number", "The number of individuals in A."),
    field("matched", "number", "The number of individuals with a match."),
    field("unmatched", "number", "The number of individuals without a match."),
    field(
        "apart",
        "number",
        "Those of the unmatched whose rows match individuals of B, but no individual all of them (with --individual-of-b).",
    ),
    field(
        "never_equal",
        "list of texts",
        "If no individual has a match: the linked columns without a common value; each alone rules out every match.",
    ),
    field(
        "unique",
        "number",
        "The number of individuals with exactly one match: they are re-identified if they are in B at all.",
    ),
    field(
        "least_matches",
        "number or null",
        "The least number of matches of an individual with a match; `null` if none has one.",
    ),
    field("histogram", "list of tables", "The individuals with a match by number of matches, least first."),
    field(
        "histogram[].matches",
        "number",
        "The number of matches: rows of B, or its individuals with --individual-of-b.",
    ),
    field("histogram[].individuals", "number", "The number of individuals with so many matches."),
    field("homogeneous", "list of tables", "The sensitive columns."),
    field("homogeneous[].column", "text", "The column's name."),
    field("homogeneous[].individuals", "number", "Those all of whose matches hold the same value."),
    field("homogeneous[].share", "number", "Their share of the individuals in A."),
    field(
        "uncovered",
        "number",
        "The number of rows of A with a value that no hierarchy file of B covers; they match nothing.",
    ),
    field("rows_without_individual", "number", "The skipped rows of A, which have no individual."),
    field(
        "suppressed_rows",
        "number or null",
        "The number of rows suppressed in B; `null` if B is not a release with its private record.",
    ),
    field(
        "by_assignment",
        "true or false",
        "Whether individuals match the classes that the private record assigns to their values, rather than all whose regions hold them.",
    ),
];

const HIERARCHY: &[JsonField] = &[
    field("column", "text", "The column's name."),
    field("values", "number", "The number of distinct values, NULL aside."),
    field("levels", "list of texts", "The levels, finest first, such as `prefix:3`."),
    field(
        "rows",
        "list of lists of texts",
        "For each value a list of the value and its label at every level, finest first.",
    ),
];

const HIERARCHY_TO: &[JsonField] = &[
    field("column", "text", "The column's name."),
    field("values", "number", "The number of distinct values, NULL aside."),
    field("levels", "list of texts", "The levels, finest first, such as `prefix:3`."),
    field("file", "text", "The path of the file."),
];

const HIERARCHY_CHECK: &[JsonField] = &[
    field("file", "text", "The path of the hierarchy file."),
    field("column", "text", "The column's name."),
    field("covers", "true or false", "Whether the file has every value of the column."),
    field("values", "number", "The number of values in the file."),
    field("rows", "number", "The number of rows with a value."),
    field("nulls", "number", "The number of rows with NULL."),
    field("missing_values", "number", "The number of distinct values of the column that the file lacks."),
    field("missing_rows", "number", "The number of rows that hold them."),
    field(
        "missing",
        "list of texts, may be missing",
        "With --show-values, the values that the file lacks, at most 1,000.",
    ),
    field("unused_values", "number", "The number of values of the file that no row holds."),
    field("unused", "list of texts, may be missing", "With --show-values, these values, at most 1,000."),
    field("levels", "list of tables", "The levels, finest first."),
    field("levels[].level", "number", "The level's number, from 1."),
    field("levels[].labels", "number", "The number of its labels."),
    field("levels[].values", "table", "The number of values of the file below a label."),
    field("levels[].values.least", "number", "The least number."),
    field("levels[].values.mean", "number", "The mean of all labels."),
    field("levels[].values.greatest", "number", "The greatest number."),
    with(
        Keys::OfCommand("hierarchy check", "levels[].values"),
        "levels[].rows",
        "table",
        "The number of rows below a label.",
    ),
];

const LIST: &[JsonField] = &[
    field("generalizers", "list of tables", "The generalizers."),
    field("generalizers[].name", "text", "The name."),
    field("generalizers[].summary", "text", "What it is, in one sentence."),
    field("generalizers[].parameters", "text", "Its parameters."),
    field("generalizers[].example", "text", "An example."),
    field("generalizers[].paper", "text or null", "The paper that it comes from."),
    with(
        Keys::OfCommand("list", "generalizers[]"),
        "known_hierarchies",
        "list of tables",
        "The known hierarchies.",
    ),
    with(Keys::OfCommand("list", "generalizers[]"), "models", "list of tables", "The models."),
    with(Keys::OfCommand("list", "generalizers[]"), "losses", "list of tables", "The losses."),
    with(Keys::OfCommand("list", "generalizers[]"), "risks", "list of tables", "The risk measures."),
    with(Keys::OfCommand("list", "generalizers[]"), "methods", "list of tables", "The methods."),
    with(
        Keys::OfCommand("list", "generalizers[]"),
        "table_functions",
        "list of tables",
        "The table functions of SQL.",
    ),
];

const GENERATE: &[JsonField] = &[
    field("rows", "number", "The number of rows."),
    field("seed", "number", "The seed of the random numbers."),
    field("bytes", "number", "The length of the file in bytes."),
];
