//! Rows of the program's own. They belong to the whole process, so these tests have one of their own.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::sync::Arc;

use arrow::util::display::array_value_to_string;
use datafusion::prelude::SessionContext;
use datafusion_kanon::internals::class::{EvaluatedNode, EvaluatedRecoding};
use datafusion_kanon::internals::decimal::Decimal;
use datafusion_kanon::internals::doc::Doc;
use datafusion_kanon::internals::generalize::{Generalizer, GeneralizerRow, floor::Floor};
use datafusion_kanon::internals::measure::{Grows, Interval, Loss, LossMeasure};
use datafusion_kanon::internals::model::{
    self, Class, ClassModel, Counted, Merge, ModelRow, Needs, Quantity, Worst,
};
use datafusion_kanon::internals::parameter::{Absent, Kind, Parameter};
use datafusion_kanon::internals::policy::{PolicySpec, register_generalizer, register_loss, register_model};
use datafusion_kanon::internals::sql::register_all;
use datafusion_kanon::internals::sql::table::TABLE_FUNCTIONS;

const fn doc(name: &'static str) -> Doc {
    Doc { name, summary: "a row of a test", parameters: "", example: "", paper: None }
}

const fn parameter(name: &'static str, kind: Kind) -> Parameter {
    Parameter { name, kind, absent: Absent::Refused, summary: "" }
}

const LEAST: &Doc = &doc("own_test_least");

/// Holds for every class, and claims that no class of fewer than `n` does.
#[derive(Debug)]
struct ClaimsSize(u64);

impl ClassModel for ClaimsSize {
    fn doc(&self) -> &'static Doc {
        LEAST
    }
    fn needs(&self) -> Needs {
        Needs::Size
    }
    fn merge(&self, _counted: Counted) -> Merge {
        Merge::Any
    }
    fn min_size(&self) -> u64 {
        self.0
    }
    fn value(&self, class: &Class<'_>) -> Quantity {
        Quantity::Count(class.size)
    }
    fn worst(&self) -> Worst {
        Worst::Least
    }
    fn holds(&self, _value: Quantity) -> bool {
        true
    }
    fn required(&self) -> Decimal {
        Decimal::integer(i64::try_from(self.0).unwrap())
    }
    fn parameters(&self) -> Vec<(&'static str, Decimal)> {
        vec![("n", self.required())]
    }
}

const MOST: &Doc = &doc("own_test_most");

/// Holds for classes of at most `n`, and claims to survive every merge.
#[derive(Debug)]
struct ClaimsMerge(u64);

impl ClassModel for ClaimsMerge {
    fn doc(&self) -> &'static Doc {
        MOST
    }
    fn needs(&self) -> Needs {
        Needs::Size
    }
    fn merge(&self, _counted: Counted) -> Merge {
        Merge::Any
    }
    fn min_size(&self) -> u64 {
        1
    }
    fn value(&self, class: &Class<'_>) -> Quantity {
        Quantity::Count(class.size)
    }
    fn worst(&self) -> Worst {
        Worst::Greatest
    }
    fn holds(&self, value: Quantity) -> bool {
        matches!(value, Quantity::Count(size) if size <= self.0)
    }
    fn required(&self) -> Decimal {
        Decimal::integer(i64::try_from(self.0).unwrap())
    }
    fn parameters(&self) -> Vec<(&'static str, Decimal)> {
        vec![("n", self.required())]
    }
}

fn model_row(doc: &'static Doc, parameters: &'static [Parameter]) -> ModelRow {
    ModelRow {
        doc,
        parameters,
        constants: &[],
        make: |settings| Ok(Box::new(ClaimsSize(settings.count("n")?))),
    }
}

/// The number of classes that are kept: the more, the worse.
#[derive(Debug)]
struct KeptClasses;

impl Loss for KeptClasses {
    fn of(&self, recoding: &dyn EvaluatedRecoding) -> f64 {
        recoding.evaluated().kept_classes().to_string().parse().unwrap()
    }
}

impl LossMeasure for KeptClasses {
    fn doc(&self) -> &'static Doc {
        const { &doc("own_test_kept_classes") }
    }
    fn grows(&self) -> Grows {
        Grows::No
    }
    fn for_any_recoding(&self) -> Option<&dyn Loss> {
        Some(self)
    }
    fn value(&self, node: &EvaluatedNode<'_>) -> f64 {
        self.of(node)
    }
    fn bound(&self, _interval: &Interval<'_>) -> f64 {
        0.0
    }
}

/// Floors whose descriptors are those of `floor`, not of this row.
fn wrong_levels(
    name: &'static Doc,
    key: Option<&'static str>,
    parameters: &'static [Parameter],
) -> GeneralizerRow {
    GeneralizerRow {
        doc: name,
        key,
        parameters,
        levels: |_| Ok(vec![Arc::new(Floor::new(Decimal::integer(10))?) as Arc<dyn Generalizer>]),
    }
}

async fn rows(session: &SessionContext, sql: &str) -> Result<Vec<String>, String> {
    let frame = session.sql(sql).await.map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    for batch in frame.collect().await.map_err(|error| error.to_string())? {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap());
            rows.push(cells.collect::<Vec<_>>().join(" "));
        }
    }
    Ok(rows)
}

const N: &[Parameter] = &[parameter("n", Kind::Count)];
const LEVELS: Parameter = parameter("steps", Kind::Levels(&Kind::Count));

#[tokio::test]
async fn own_rows_are_searched_with_verified_and_asked_for_in_sql() {
    register_model(model_row(LEAST, N)).unwrap();
    let most =
        ModelRow { make: |settings| Ok(Box::new(ClaimsMerge(settings.count("n")?))), ..model_row(MOST, N) };
    register_model(most).unwrap();
    register_loss(KeptClasses).unwrap();
    let session = SessionContext::new();
    register_all(&session).unwrap();
    register_all(&session).unwrap();
    let ages = "(VALUES (11), (12), (13), (21), (22), (23), (24), (31)) AS t (age)";
    let create = format!("CREATE TABLE people AS SELECT * FROM {ages}");
    rows(&session, &create).await.unwrap();
    let asked = "SELECT own_test_least(generalize_floor(age, 10)), own_test_most(generalize_floor(age, 10)), \
                 own_test_least_individuals(age, generalize_floor(age, 10)) FROM people";
    assert_eq!(rows(&session, asked).await.unwrap(), ["1 4 1"]);

    // A claim of a least size comes true: the class of one is suppressed.
    let policy = |more: &str, require: &str| {
        format!(
            "{{rows_are_individuals: true, {more} require: [{require}], \
             columns: {{age: {{role: 'quasi', hierarchy: {{floor: [10]}}}}}}}}"
        )
    };
    let of_least = policy(
        "suppression_limit: 0.2, objective: 'own_test_kept_classes',",
        "{model: 'own_test_least', n: 3}",
    );
    // One class, all suppressed by their labels, has the least loss of all.
    let sql = format!("SELECT count(*), count(DISTINCT age) FROM anonymize(people, {of_least})");
    assert_eq!(rows(&session, &sql).await.unwrap(), ["8 0"]);
    let sql = format!(
        "SELECT levels, anonymous, min_class, own_test_kept_classes FROM lattice(people, {of_least}) ORDER BY 1"
    );
    let nodes = rows(&session, &sql).await.unwrap();
    assert_eq!(nodes, ["{age: 0} false  0.0", "{age: 1} true 3 2.0", "{age: 2} true 8 1.0"]);
    let by_default = policy("suppression_limit: 0.2,", "{model: 'own_test_least', n: 3}");
    let sql = format!("SELECT age, count(*) FROM anonymize(people, {by_default}) GROUP BY 1 ORDER BY 1");
    assert_eq!(rows(&session, &sql).await.unwrap(), ["10 3", "20 4"]);

    // A wrong claim about merging ends in a refusal, or in a release that holds.
    rows(&session, "CREATE TABLE few AS SELECT * FROM people WHERE age < 30").await.unwrap();
    for method in ["auto", "exhaustive", "optimal", "samarati"] {
        let both = policy(
            &format!("suppression_limit: 0, k: 2, method: '{method}',"),
            "{model: 'own_test_most', n: 4}",
        );
        let sql = format!(
            "SELECT max(size) FROM (SELECT count(*) AS size FROM anonymize(few, {both}) GROUP BY age)"
        );
        match rows(&session, &sql).await {
            Ok(largest) => assert_eq!(largest, ["4"], "{method}"),
            Err(error) => assert!(!error.contains("internal"), "{method}: {error}"),
        }
    }

    // A descriptor that does not make its level again is found when the policy is read.
    register_generalizer(wrong_levels(
        const { &doc("own_test_floor") },
        Some("own_test_floor"),
        const { &[LEVELS] },
    ))
    .unwrap();
    let text = "k = 2\nrows_are_individuals = true\n[columns]\n\
                age = { role = \"quasi\", hierarchy = { own_test_floor = [10] } }";
    let error = PolicySpec::parse(text).unwrap_err().to_string();
    assert!(
        error.contains("`own_test_floor` has a level whose descriptor does not make it again"),
        "{error}"
    );

    // A name of the engine's is found when a session is made; this is last, because the row stays.
    register_model(ModelRow {
        make: |settings| Ok(Box::new(Renamed(ClaimsSize(settings.count("n")?)))),
        ..model_row(const { &doc("median") }, N)
    })
    .unwrap();
    let error = register_all(&SessionContext::new()).unwrap_err().to_string();
    assert!(error.contains("the session has a function `median`"), "{error}");
}

/// The same model under the name of a function of the engine.
#[derive(Debug)]
struct Renamed(ClaimsSize);

impl ClassModel for Renamed {
    fn doc(&self) -> &'static Doc {
        const { &doc("median") }
    }
    fn needs(&self) -> Needs {
        self.0.needs()
    }
    fn merge(&self, counted: Counted) -> Merge {
        self.0.merge(counted)
    }
    fn min_size(&self) -> u64 {
        self.0.min_size()
    }
    fn value(&self, class: &Class<'_>) -> Quantity {
        self.0.value(class)
    }
    fn worst(&self) -> Worst {
        self.0.worst()
    }
    fn holds(&self, value: Quantity) -> bool {
        self.0.holds(value)
    }
    fn required(&self) -> Decimal {
        self.0.required()
    }
    fn parameters(&self) -> Vec<(&'static str, Decimal)> {
        self.0.parameters()
    }
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let refused = |row: ModelRow| register_model(row).unwrap_err().to_string();
    let named = |name: &'static str| model_row(Box::leak(Box::new(doc(name))), N);
    for name in ["", "Own", "1st", "own-test", "own test", "_own", "größe"] {
        assert!(refused(named(name)).ends_with("of the form [a-z][a-z0-9_]*"), "{name}");
    }
    let taken = TABLE_FUNCTIONS.iter().map(|row| row.doc.name);
    let taken =
        taken.chain(["k_anonymity", "range", "file", "merge", "granularity", "share_at_risk", "optimal"]);
    for name in taken.chain(["country", "suppressed_rows", "min_class", "generalize"]) {
        assert!(refused(named(name)).ends_with("has a name that is taken"), "{name}");
    }
    for name in ["l_diversity_individuals", "own_of_counts", "generalize_own", "kanon_own"] {
        assert!(refused(named(name)).ends_with("derived from other rows have"), "{name}");
    }
    assert_eq!(
        refused(named("own_test_other")),
        "`own_test_other` makes a model of another name, or of other parameters than those given"
    );
    for parameters in [
        const { &[parameter("sensitive", Kind::Count)] },
        const { &[parameter("N", Kind::Count)] },
        const { &[parameter("n", Kind::Word)] },
    ] {
        let row = model_row(const { &doc("own_test_parameters") }, parameters);
        assert!(refused(row).contains("has a parameter"), "{parameters:?}");
    }
    assert!(
        model::make("own_test_other", &[])
            .unwrap_err()
            .to_string()
            .starts_with("unknown model `own_test_other`")
    );

    let refused = |key, parameters| {
        let row = wrong_levels(const { &doc("own_test_levels") }, key, parameters);
        register_generalizer(row).unwrap_err().to_string()
    };
    assert!(refused(Some("range"), const { &[LEVELS] }).ends_with("a key that is not its name"));
    assert!(refused(Some("own_test_levels"), N).ends_with("one with an entry per level"));
    assert!(refused(Some("own_test_levels"), &[]).ends_with("one with an entry per level"));
    let needed = const { &[LEVELS, parameter("n", Kind::Count)] };
    assert!(refused(Some("own_test_levels"), needed).ends_with("an option that cannot be left out"));
    let key = const { &[LEVELS, parameter("range", Kind::Count)] };
    assert!(refused(Some("own_test_levels"), key).contains("whose name `range` cannot be used"));
    assert!(refused(None, const { &[parameter("rows", Kind::File)] }).ends_with("that SQL cannot set"));
    let origin = wrong_levels(const { &doc("origin") }, None, &[]);
    assert!(register_generalizer(origin).unwrap_err().to_string().ends_with("another generalizer's option"));
}

#[derive(Debug)]
struct Taken;

impl LossMeasure for Taken {
    fn doc(&self) -> &'static Doc {
        const { &doc("height") }
    }
    fn grows(&self) -> Grows {
        Grows::No
    }
    fn for_any_recoding(&self) -> Option<&dyn Loss> {
        None
    }
    fn value(&self, _node: &EvaluatedNode<'_>) -> f64 {
        0.0
    }
    fn bound(&self, _interval: &Interval<'_>) -> f64 {
        0.0
    }
}

#[test]
fn a_loss_needs_a_name_of_its_own() {
    let error = register_loss(Taken).unwrap_err().to_string();
    assert_eq!(error, "`height` cannot be registered: it has a name that is taken");
}
