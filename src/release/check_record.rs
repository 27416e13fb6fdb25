//! A public record by itself: says it only what kanon writes, and do its numbers fit one another and the rows?
//!
//! Released rows do not tell whose they are, so that sizes in individuals cannot be recounted without the input. They are
//! bounded instead: each individual of a class has a row in it, and a class has a smallest size that all risks follow from.
//! What passes can still be wrong within these bounds; only `kanon verify --input` counts individuals.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{DataType, Schema};
use datafusion::prelude::DataFrame;

use crate::class::ClassSizes;
use crate::error::{Error, Result};
use crate::generalize::{AsIs, Generalizer, clip, of_label, suppress::Suppress};
use crate::measure::{
    RISKS, RiskRow, expected_reidentifications, prosecutor_risk_max, prosecutor_risk_mean, ratio,
    sample_uniqueness, share_at_risk,
};
use crate::model::{Class, Needs, Quantity, Requirement, ValueCount, Worst, l_diversity};
use crate::release::publish::record::{LevelRecord, ModelRecord, PublicRecord, recorded};
use crate::release::verify_folder::{refused, released_labels};
use crate::role::Role;
use crate::verify::Verified;
use crate::verify::homogeneous::Homogeneous;

/// Relative error of a number that was rounded to the 12 digits of a record, and of what is computed from such numbers.
const ROUNDING: f64 = 1e-9;

/// Checks that the models promise something: kanon publishes no release whose models would accept a class of one
/// individual.
///
/// # Errors
/// An unmet error.
pub(super) fn check_promise(models: &[Requirement]) -> Result<()> {
    if models.iter().any(|requirement| requirement.model.min_size() >= 2) {
        return Ok(());
    }
    Err(refused("the models of the record promise nothing: each accepts a class of one"))
}

/// Checks what the record says of the levels of quasi-identifiers.
///
/// # Errors
/// An unmet error that names the column.
pub(super) fn check_levels(public: &PublicRecord) -> Result<()> {
    for column in &public.columns {
        let is_text = column.data_type == DataType::Utf8.to_string();
        if column.generalized.as_ref().is_some_and(|level| !is_level(level, is_text)) {
            return Err(refused(format!("the record contradicts itself on the level of `{}`", column.name)));
        }
    }
    Ok(())
}

/// Whether kanon gives the level of this number this descriptor.
fn is_level(level: &LevelRecord, is_text: bool) -> bool {
    let LevelRecord { level, of, by } = level;
    let is_top = level == of;
    let is_clip = by.split_once(':').is_some_and(|(name, _)| name == clip::ROW.doc.name);
    let is_known = match by.as_str() {
        "as_is" => *level == 0,
        "suppress" => is_top,
        by if by.starts_with("hierarchy:") => is_text && *by == format!("hierarchy:{level}"),
        by => of_label(by, is_text).is_some() && is_clip == (*level == 0),
    };
    *of > 0 && level <= of && is_known && is_top == (by == "suppress")
}

/// The generalizer of each released column's level, made again from its descriptor where that is possible; every value
/// is a label of one that only the policy knows. `None` for columns that are not quasi-identifiers.
///
/// # Errors
/// An unmet error when a descriptor does not fit the column's type, or a suppressed column holds several values.
pub(super) async fn generalizers(
    public: &PublicRecord,
    schema: &Schema,
    output: &DataFrame,
) -> Result<Vec<Option<Arc<dyn Generalizer>>>> {
    let mut all: Vec<Option<Arc<dyn Generalizer>>> = Vec::new();
    for (column, field) in public.columns.iter().zip(schema.fields()) {
        let by = match (&column.generalized, column.role == Role::Quasi.word()) {
            (Some(level), true) => level.by.as_str(),
            _ => {
                all.push(None);
                continue;
            }
        };
        let (name, data_type) = (&column.name, field.data_type());
        let is_text = *data_type == DataType::Utf8;
        all.push(Some(match by {
            "suppress" => {
                let labels = released_labels(output, name).await?;
                if labels.is_some_and(|labels| labels.len() > 1) {
                    return Err(refused(format!("`{name}` is called suppressed and holds several values")));
                }
                // The top of a hierarchy file has a label of the file's own.
                if is_text { Arc::new(AsIs { text: true }) } else { Arc::new(Suppress::null()) }
            }
            by => match of_label(by, is_text) {
                None => Arc::new(AsIs { text: is_text }),
                Some(made) if !makes(&*made, data_type) => {
                    return Err(refused(format!("`{name}` is of a type that its level does not make")));
                }
                Some(made) => {
                    let labels = released_labels(output, name).await?;
                    labels.and_then(|labels| made.padded_for(&labels)).unwrap_or(made)
                }
            },
        }));
    }
    Ok(all)
}

/// Whether a level makes labels of this type of any values. Where labels are not text they have the type of the values.
fn makes(level: &dyn Generalizer, labels: &DataType) -> bool {
    if *labels != DataType::Utf8 {
        return level.output_type(labels).is_ok_and(|made| made == *labels);
    }
    let inputs = [DataType::Int64, DataType::Float64, DataType::Utf8View];
    inputs.iter().any(|input| level.output_type(input).is_ok_and(|made| made == DataType::Utf8View))
}

/// Checks what the record says of individuals who are unique on all released columns together.
fn check_unique(public: &PublicRecord, individuals: u64) -> Result<()> {
    let unique = &public.unique;
    let as_is: Vec<&str> = public
        .columns
        .iter()
        .filter(|column| column.role != Role::Quasi.word())
        .map(|column| column.name.as_str())
        .collect();
    let names: BTreeSet<&str> = unique.columns.iter().map(String::as_str).collect();
    let are_named = names.len() == unique.columns.len() && names.iter().all(|name| as_is.contains(name));
    let must_be_named = unique.is_alarming() && !as_is.is_empty();
    // Rows without an individual count as one each, and every individual has a row.
    if !(individuals..=public.rows).contains(&unique.of)
        || unique.count > unique.of
        || !are_named
        || must_be_named == names.is_empty()
    {
        return Err(refused("the record contradicts itself on who is unique on all columns"));
    }
    Ok(())
}

/// Checks what the record says of individuals against the rows, which were counted without knowing whose they are.
///
/// # Errors
/// An unmet error that says what cannot be.
pub(super) fn check_individuals(
    public: &PublicRecord,
    models: &[Requirement],
    verified: &Verified,
) -> Result<()> {
    let Some(individuals) = public.individuals else { return Ok(()) };
    let least = check_risks(public, individuals)?;
    let fewest_rows = verified.sizes.min().unwrap_or(0);
    if individuals > public.rows || least > individuals || least > fewest_rows {
        return Err(refused("the record counts more individuals than there are rows for"));
    }
    check_unique(public, individuals)?;
    let counted = public.models.iter().zip(models).zip(&verified.reached);
    for ((said, requirement), by_rows) in counted {
        if !is_reached(said, requirement, *by_rows, least) {
            return Err(refused(format!(
                "the record says a value of {} that its classes cannot have reached",
                said.said()
            )));
        }
    }
    check_homogeneous(public, individuals, least, verified)
}

/// The smallest class in individuals, from which all risks follow.
fn check_risks(public: &PublicRecord, individuals: u64) -> Result<u64> {
    let wrong = || refused("the record contradicts itself on its risks");
    let names: BTreeSet<&str> = RISKS.iter().map(|row| row.doc.name).collect();
    if individuals == 0 || !public.risk.keys().map(String::as_str).eq(names) {
        return Err(wrong());
    }
    let all = ratio(u128::from(individuals), 1);
    let risk = |row: &RiskRow| public.risk.get(row.doc.name).copied().ok_or_else(wrong);
    let (highest, mean) = (risk(&prosecutor_risk_max::ROW)?, risk(&prosecutor_risk_mean::ROW)?);
    let expected = risk(&expected_reidentifications::ROW)?;
    let shares: Vec<f64> = RISKS.iter().filter(|row| row.is_share).map(risk).collect::<Result<_>>()?;
    if !shares.iter().all(|share| (0.0..=1.0).contains(share)) || highest <= 0.0 {
        return Err(wrong());
    }
    let least: u64 = format!("{:.0}", 1.0 / highest).parse().map_err(|_| wrong())?;
    let smallest: ClassSizes = [least].into_iter().collect();
    let of_smallest = |row: &RiskRow| Ok::<_, Error>((row.make)(row.defaults)?.value(&smallest));
    let is_below = |a: f64, b: f64| a <= b * (1.0 + ROUNDING);
    // The individuals of a smallest class are matched rightly once, those of each class at most once.
    let mut right = of_smallest(&prosecutor_risk_max::ROW)?.map(recorded) == Some(highest)
        && is_below(1.0, expected)
        && is_below(expected, ratio(u128::from(public.classes), 1))
        && is_below(mean, highest)
        && is_below(mean * all, expected)
        && is_below(expected, mean * all);
    for row in [&share_at_risk::ROW, &sample_uniqueness::ROW] {
        let people = risk(row)? * all;
        let some = of_smallest(row)?.is_some_and(|share| share > 0.0);
        right &= (people - people.round()).abs() <= all * ROUNDING
            && if some { is_below(ratio(u128::from(least), 1), people) } else { people == 0.0 };
    }
    right &= is_below(risk(&sample_uniqueness::ROW)?, risk(&share_at_risk::ROW)?);
    if right { Ok(least) } else { Err(wrong()) }
}

/// The largest class that is built to see what it reaches; larger ones are bounded by their rows alone.
const MOST_VALUES: u32 = 1 << 16;

/// Whether a model can have reached what the record says: it holds, it is no better than what the rows reach (each
/// individual of a class has a row in it), nor than the best class of the smallest size.
fn is_reached(said: &ModelRecord, requirement: &Requirement, by_rows: Option<Quantity>, least: u64) -> bool {
    let model = &requirement.model;
    let count: Option<u64> = format!("{}", said.reached).parse().ok();
    let reached = count.map_or(Quantity::Real(said.reached), Quantity::Count);
    if !model.holds(reached) || least < model.min_size() {
        return false;
    }
    if model.needs() == Needs::Size {
        return model.value(&Class::of_size(least)) == reached;
    }
    if model.worst() == Worst::Greatest {
        return true;
    }
    // The best class of that size has a value of its own for each individual.
    let best = u32::try_from(least).ok().filter(|least| *least <= MOST_VALUES).map(|least| {
        let values: Vec<_> = (0..least).map(|value| ValueCount { value: Some(value), count: 1 }).collect();
        model.value(&Class { size: u64::from(least), sensitive: &values })
    });
    let is_within = |bound: Quantity| reached.to_f64() <= bound.to_f64();
    best.is_none_or(is_within) && by_rows.is_some_and(is_within)
}

/// Checks homogeneous classes in individuals. One whose rows share a value is one whose individuals do, not the other way
/// round.
fn check_homogeneous(public: &PublicRecord, individuals: u64, least: u64, verified: &Verified) -> Result<()> {
    let columns = |all: &[Homogeneous]| all.iter().map(|one| one.column.clone()).collect::<Vec<_>>();
    if columns(&public.homogeneous) != columns(&verified.homogeneous) {
        return Err(refused("the homogeneous classes of the record are not of its sensitive columns"));
    }
    for (said, by_rows) in public.homogeneous.iter().zip(&verified.homogeneous) {
        let is_diverse = public.models.iter().any(|model| {
            model.model == l_diversity::ROW.doc.name
                && model.sensitive.as_ref() == Some(&said.column)
                && model.reached >= 2.0
        });
        let right = match said.classes {
            0 => said.individuals == 0,
            classes if classes == public.classes => said.individuals == individuals,
            _ => (least..=individuals).contains(&said.individuals),
        };
        if !right
            || !(by_rows.classes..=public.classes).contains(&said.classes)
            || (is_diverse && said.classes > 0)
        {
            return Err(refused(format!(
                "the record says of `{}` a number of homogeneous classes that cannot be",
                said.column
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array};
    use arrow::record_batch::RecordBatch;

    use super::*;
    use crate::decimal::Decimal;
    use crate::engine::Resources;
    use crate::model::{MODELS, Model, Parameters, make};
    use crate::release::publish::record::ColumnRecord;

    #[test]
    fn levels_are_those_that_kanon_writes() {
        let level = |level, of, by: &str, text| is_level(&LevelRecord { level, of, by: by.into() }, text);
        for (number, of, by, text) in [
            (0, 3, "as_is", true),
            (0, 3, "clip:0,90", true),
            (0, 1, "clip:,90", false),
            (3, 3, "suppress", false),
            (2, 4, "hierarchy:2", true),
            (1, 2, "date:year", false),
            (1, 2, "range:10 origin:5 clip:0,90", true),
            (1, 2, "bands:18.5,25", true),
            (2, 3, "prefix:3 side:right", true),
        ] {
            assert!(level(number, of, by, text), "{number} of {of} by {by}");
        }
        for (number, of, by, text) in [
            (77, 3, "suppress", true),
            (2, 3, "suppress", true),
            (3, 3, "date:year", false),
            (4, 3, "date:year", false),
            (0, 0, "as_is", true),
            (0, 0, "suppress", true),
            (1, 3, "as_is", true),
            (1, 3, "clip:0,90", true),
            (0, 3, "range:10", true),
            (1, 3, "hierarchy:2", true),
            (1, 3, "hierarchy:01", true),
            (1, 3, "hierarchy:1", false),
            (1, 3, "hierarchy:1 Bob", true),
            (1, 3, "range:010", true),
            (1, 3, "Bob has HIV", true),
            (1, 3, "date:Bob", false),
            (1, 3, "", true),
        ] {
            assert!(!level(number, of, by, text), "{number} of {of} by {by}");
        }
    }

    /// What [`is_reached`] relies on: of a class, no model that is worst at its least value makes more of individuals
    /// than of rows.
    #[test]
    fn individuals_reach_no_more_than_their_rows() {
        let mut state = 11u64;
        let mut below = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % end
        };
        let counts = |pairs: &BTreeSet<(u64, Option<u32>)>| -> Vec<ValueCount> {
            let values: BTreeSet<Option<u32>> = pairs.iter().map(|(_, value)| *value).collect();
            let of = |value| pairs.iter().filter(|(_, other)| *other == value).count() as u64;
            values.into_iter().map(|value| ValueCount { value, count: of(value) }).collect()
        };
        for _ in 0..2_000 {
            let rows: Vec<(u64, Option<u32>)> = (0..=below(7))
                .map(|_| (below(4), u32::try_from(below(4)).ok().filter(|value| *value < 3)))
                .collect();
            // The individual 3 is NULL: it counts nobody.
            let known: BTreeSet<_> = rows.iter().copied().filter(|(who, _)| *who < 3).collect();
            let people = known.iter().map(|(who, _)| *who).collect::<BTreeSet<_>>().len() as u64;
            let by_row: BTreeSet<_> =
                rows.iter().zip(0u64..).map(|((_, value), row)| (row, *value)).collect();
            for row in MODELS {
                let parameters = row.parameters.iter().map(|name| ((*name).to_owned(), Decimal::integer(2)));
                let Model::Class(model) = make(row.doc.name, Parameters::new(parameters.collect())).unwrap()
                else {
                    continue;
                };
                let of_people = model.value(&Class { size: people, sensitive: &counts(&known) });
                let of_rows = model.value(&Class { size: rows.len() as u64, sensitive: &counts(&by_row) });
                let worse = match model.worst() {
                    Worst::Least => of_people.to_f64() <= of_rows.to_f64(),
                    Worst::Greatest => true,
                };
                assert!(worse, "{}: {rows:?}", row.doc.name);
            }
        }
    }

    /// l-diversity of diagnoses.
    fn diversity(l: i64) -> Requirement {
        let parameters = [("l".to_owned(), Decimal::integer(l))].into();
        let Model::Class(model) = make("l_diversity", Parameters::new(parameters)).unwrap() else {
            panic!("no class model")
        };
        Requirement { model, sensitive: Some("diagnosis".into()) }
    }

    fn reached(reached: f64) -> ModelRecord {
        ModelRecord {
            model: "l_diversity".into(),
            parameters: [("l".to_owned(), "3".to_owned())].into(),
            sensitive: Some("diagnosis".into()),
            required: 3.0,
            reached,
        }
    }

    /// Nine different values among the rows of a class do not make five individuals more diverse than five.
    #[test]
    fn diversity_is_bounded_by_rows_and_by_individuals() {
        let l = diversity(3);
        let can =
            |said, by_rows, least| is_reached(&reached(said), &l, Some(Quantity::Count(by_rows)), least);
        assert!(can(3.0, 9, 5) && can(5.0, 9, 5) && can(4.0, 4, 5));
        assert!(!can(6.0, 9, 5), "more values than individuals");
        assert!(!can(5.0, 4, 5), "more values than among the rows");
        assert!(!can(2.0, 9, 5), "less than required");
        assert!(can(3.0, 9, 3) && !can(3.0, 9, 2), "fewer individuals than values");
        assert!(!can(3.5, 9, 5), "half a value");
        let many = u64::from(MOST_VALUES) + 1;
        assert!(can(9.0, 9, many) && !can(10.0, 9, many), "large classes");
        assert!(!is_reached(&reached(3.0), &l, None, 5), "no class among the rows");
    }

    /// A record of ten classes and a hundred individuals.
    fn public(columns: Vec<ColumnRecord>, models: Vec<ModelRecord>) -> PublicRecord {
        PublicRecord {
            format: 1,
            tool: String::new(),
            models,
            counted_in: "individuals".into(),
            columns,
            rows: 200,
            individuals: Some(100),
            classes: 10,
            unique: Default::default(),
            homogeneous: Vec::new(),
            risk: Default::default(),
            files: Vec::new(),
            digest: String::new(),
        }
    }

    /// Twenty of the hundred are in classes of four, at risk.
    #[test]
    fn risks_are_possible() {
        let sizes: ClassSizes = [4, 4, 4, 4, 4, 16, 16, 16, 16, 16].into_iter().collect();
        let value = |row: &RiskRow| recorded((row.make)(row.defaults).unwrap().value(&sizes).unwrap());
        let mut public = public(Vec::new(), Vec::new());
        public.risk = RISKS.iter().map(|row| (row.doc.name.to_owned(), value(row))).collect();
        let mut least = |share: f64| {
            public.risk.insert("share_at_risk".into(), share);
            check_risks(&public, 100).ok()
        };
        assert_eq!([0.2, 0.04, 1.0].map(&mut least), [Some(4); 3]);
        // More than all, fewer than a class, half a person.
        assert_eq!([1.5, 0.03, 0.205].map(&mut least), [None; 3]);
    }

    #[test]
    fn homogeneous_classes_are_bounded() {
        let is_right = |models: &[ModelRecord], column: &str, by_rows, (classes, individuals)| {
            let of = |classes, individuals| Homogeneous { column: column.into(), classes, individuals };
            let mut public = public(Vec::new(), models.to_vec());
            public.homogeneous.push(of(classes, individuals));
            let verified = Verified {
                rows: 200,
                sizes: ClassSizes::default(),
                homogeneous: vec![of(by_rows, 0)],
                suppressed_rows: None,
                individuals: None,
                unowned_rows: 0,
                reached: Vec::new(),
            };
            check_homogeneous(&public, 100, 5, &verified).is_ok()
        };
        let free = |by_rows, said| is_right(&[], "diagnosis", by_rows, said);
        assert!(free(0, (0, 0)) && free(0, (1, 5)) && free(2, (3, 100)) && free(10, (10, 100)));
        assert!(!free(0, (0, 5)), "somebody in no class");
        assert!(!free(0, (1, 4)), "fewer than the smallest class");
        assert!(!free(0, (1, 101)), "more than all");
        assert!(!free(0, (10, 99)), "all classes, not all people");
        assert!(!free(2, (1, 20)), "fewer classes than the rows say");
        assert!(!free(0, (11, 100)), "more classes than there are");

        // Two values in each class leave none homogeneous, in that column.
        let diverse = [reached(3.0)];
        assert!(is_right(&diverse, "diagnosis", 0, (0, 0)) && !is_right(&diverse, "diagnosis", 0, (1, 5)));
        assert!(is_right(&diverse, "drug", 0, (1, 5)));
        assert!(is_right(&[reached(1.0)], "diagnosis", 0, (1, 5)));
        assert!(!is_right(&[reached(2.0)], "diagnosis", 0, (1, 5)));
        let size = ModelRecord { model: "k_anonymity".into(), sensitive: None, ..reached(5.0) };
        assert!(is_right(&[size], "diagnosis", 0, (1, 5)));
    }

    /// What is said of a column `x` of these numbers that is called generalized by `by`.
    async fn generalized(numbers: &[i64], by: &str) -> String {
        let x: ArrayRef = Arc::new(Int64Array::from(numbers.to_vec()));
        let rows = RecordBatch::try_from_iter([("x", x)]).unwrap();
        let column = ColumnRecord {
            name: "x".into(),
            role: Role::Quasi.word().into(),
            data_type: "Int64".into(),
            days_since: None,
            generalized: Some(LevelRecord { level: 1, of: 2, by: by.into() }),
        };
        let session = Resources { threads: 1, memory: 1 << 26, spill: None }.session().unwrap();
        let (schema, output) = (rows.schema(), session.read_batch(rows).unwrap());
        match generalizers(&public(vec![column], Vec::new()), &schema, &output).await {
            Ok(made) => format!("{} made", made.iter().flatten().count()),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn levels_make_the_released_types() {
        assert_eq!(generalized(&[10, 20], "floor:10").await, "1 made");
        let dates = generalized(&[2019, 2020], "date:year").await;
        assert!(dates.contains("`x` is of a type that its level does not make"), "{dates}");
        assert_eq!(generalized(&[7, 7], "suppress").await, "1 made");
        let several = generalized(&[7, 8], "suppress").await;
        assert!(several.contains("`x` is called suppressed and holds several values"), "{several}");
    }
}
