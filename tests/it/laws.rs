//! Laws over the tables: what every row promises, attacked with random values. Those of the search are in
//! `search_laws.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, StringArray,
    TimestampMillisecondArray, UInt8Array,
};
use arrow::datatypes::DataType;
use datafusion_kanon::internals::decimal::Decimal;
use datafusion_kanon::internals::generalize::clip::Clip;
use datafusion_kanon::internals::generalize::{GENERALIZERS, GeneralizerRow, Hierarchy, Value, apply};
use datafusion_kanon::internals::model::{Class, Counted, Distribution, MODELS, Merge, ValueCount};
use datafusion_kanon::internals::parameter::{Absent, Kind, Parameter, Setting, TextTable};
use proptest::prelude::*;

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

/// Settings to try a parameter with: enough levels to nest.
fn settings(parameter: &Parameter) -> Vec<Setting> {
    let decimals = |list: &[&str]| list.iter().map(|n| decimal(n)).collect::<Vec<_>>();
    let words = |words: &[&'static str]| Setting::from(words.to_vec());
    match parameter.kind {
        Kind::Levels(Kind::Numbers) => vec![
            vec![decimals(&["-20", "0", "18.5", "25", "100"]), decimals(&["0", "25"])].into(),
            vec![decimals(&["7"])].into(),
        ],
        Kind::Levels(Kind::Choice(_)) => {
            vec![words(&["day", "month", "quarter", "year", "decade", "century"]), words(&["day", "week"])]
        }
        Kind::Levels(_) => [&["2", "10", "100"], &["0.1", "0.5", "10"], &["4", "3", "1"]]
            .map(|list| decimals(list).into())
            .into(),
        Kind::File => {
            let line = |n: i32| [n.to_string(), (n.div_euclid(10)).to_string(), "any".to_owned()].to_vec();
            vec![TextTable::from((-300..300).map(line).collect::<Vec<_>>()).into()]
        }
        // The last word of an option is not its default.
        Kind::Choice(words) if parameter.absent != Absent::Refused => {
            words.last().map(|word| (*word).into()).into_iter().collect()
        }
        Kind::Choice(words) => words.iter().map(|word| (*word).into()).collect(),
        // Every known hierarchy has a first level.
        _ if parameter.name == "level" => vec![decimal("1").into()],
        _ => vec![decimal("5").into()],
    }
}

/// The settings to try a row with: each of its first parameter, alone and with all options.
fn given(row: &GeneralizerRow) -> Vec<Vec<(String, Setting)>> {
    let named = |parameter: &Parameter, setting| (parameter.name.to_owned(), setting);
    let end = |name: &str, end| (name.to_owned(), decimal(end).into());
    match row.parameters {
        [] => vec![vec![]],
        _ if row.key.is_none() => vec![vec![end("low", "0"), end("high", "90")], vec![end("high", "12.5")]],
        [first, options @ ..] => {
            let options =
                options.iter().flat_map(|option| settings(option).into_iter().map(|s| named(option, s)));
            // No option, each alone, and all.
            let options: Vec<_> = options.collect();
            let mut beside = vec![vec![]];
            beside.extend(options.iter().map(|option| vec![option.clone()]));
            if options.len() > 1 {
                beside.push(options);
            }
            let of_first = settings(first).into_iter().map(|s| named(first, s));
            of_first
                .flat_map(|s| beside.iter().map(move |options| [vec![s.clone()], options.clone()].concat()))
                .collect()
        }
    }
}

/// Every hierarchy of a row over values of this type, as it is and with its numbers clipped.
fn hierarchies(row: &GeneralizerRow, input: &DataType) -> Vec<Hierarchy> {
    let clips = [("-7", "91"), ("0", "25"), ("-12.5", "0.5")];
    let clips = clips.map(|(low, high)| Clip::new(Some(decimal(low)), Some(decimal(high))).unwrap());
    let mut all = Vec::new();
    for given in given(row) {
        let Ok(levels) = row.with(&given) else { continue };
        let Ok(hierarchy) = Hierarchy::new(input, levels) else { continue };
        all.extend(clips.iter().filter_map(|clip| hierarchy.clipped(clip).ok()));
        all.push(hierarchy);
    }
    all
}

fn columns(seed: Vec<Option<i32>>) -> Vec<ArrayRef> {
    let wide = |n: i32| i64::from(n) * 86_400_123;
    let decimals = Decimal128Array::from_iter(seed.iter().map(|n| n.map(|n| i128::from(n) * 7)));
    vec![
        Arc::new(Int32Array::from(seed.clone())),
        Arc::new(UInt8Array::from_iter(seed.iter().map(|n| n.map(|n| n.unsigned_abs() as u8)))),
        Arc::new(Float64Array::from_iter(seed.iter().map(|n| n.map(|n| f64::from(n) / 8.0)))),
        Arc::new(StringArray::from_iter(seed.iter().map(|n| n.map(|n| n.to_string())))),
        Arc::new(Date32Array::from_iter(seed.iter().map(|n| n.map(|n| n * 97)))),
        Arc::new(TimestampMillisecondArray::from_iter(seed.iter().map(|n| n.map(wide)))),
        Arc::new(
            TimestampMillisecondArray::from_iter(seed.iter().map(|n| n.map(wide)))
                .with_timezone("Europe/Berlin"),
        ),
        Arc::new(BooleanArray::from_iter(seed.iter().map(|n| n.map(|n| n > 0)))),
        Arc::new(decimals.with_precision_and_scale(9, 1).unwrap()),
    ]
}

fn cell(values: &ArrayRef, row: usize) -> Option<String> {
    Value::read(values, row).unwrap().text_form()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generalizers_keep_their_promises(seed in prop::collection::vec(prop::option::weighted(0.9, -300..300i32), 1..60)) {
        let mut tried = BTreeSet::new();
        for (row, values) in GENERALIZERS.iter().flat_map(|row| columns(seed.clone()).into_iter().map(move |c| (row, c))) {
            for hierarchy in hierarchies(row, values.data_type()) {
                let mut finer: Option<ArrayRef> = None;
                for (number, level) in hierarchy.levels().iter().enumerate() {
                    let said = level.descriptor();
                    prop_assert_eq!(said.to_string().parse(), Ok(said.clone()));
                    let named = said.restore(hierarchy.output_type() == &DataType::Utf8View);
                    let nameless = level.is_top() || ["as_is", "hierarchy"].contains(&said.generalizer.as_str());
                    prop_assert_eq!(named.as_ref().map(|level| level.descriptor()), (!nameless).then_some(said));
                    let Ok(labels) = apply(&**level, &values) else { continue };
                    tried.insert(row.doc.name);
                    prop_assert_eq!(labels.data_type(), hierarchy.output_type(), "{} {}", row.doc.name, level.descriptor());
                    for at in 0..values.len() {
                        let naive = level.generalize_value(&Value::read(&values, at).unwrap()).unwrap();
                        prop_assert!(naive == Value::read(&labels, at).unwrap(), "{} on {}", level.descriptor(), values.data_type());
                        prop_assert!(level.is_label(&naive), "{} is no label of {}", values.data_type(), level.descriptor());
                        if let Some(named) = &named {
                            prop_assert!(named.generalize_value(&Value::read(&values, at).unwrap()).unwrap() == naive);
                        }
                        if values.is_null(at) && number < hierarchy.height() {
                            prop_assert!(labels.is_null(at), "{} names NULL", level.descriptor());
                        }
                    }
                    if let Some(finer) = &finer {
                        let mut above = BTreeMap::new();
                        for at in 0..values.len() {
                            let known = above.entry(cell(finer, at)).or_insert_with(|| cell(&labels, at)).clone();
                            prop_assert_eq!(known, cell(&labels, at), "{} separates what is one below", level.descriptor());
                        }
                    }
                    let top = (0..values.len()).map(|at| cell(&labels, at)).collect::<BTreeSet<_>>();
                    prop_assert!(number < hierarchy.height() || top.len() == 1);
                    finer = Some(labels);
                }
            }
        }
        prop_assert_eq!(tried.len(), GENERALIZERS.len(), "not every generalizer was tried: {:?}", tried);
    }

    #[test]
    fn models_survive_merging_as_declared(
        a in histograms(), b in histograms(), others in histograms(), parameter in 1..20i64
    ) {
        let both = |mut a: BTreeMap<Option<u32>, u64>, b: &BTreeMap<Option<u32>, u64>| {
            b.iter().for_each(|(value, rows)| *a.entry(*value).or_insert(0) += rows);
            a
        };
        let merged = both(a.clone(), &b);
        let all = both(merged.clone(), &others);
        let input = all.iter().map(|(value, count)| ValueCount { value: *value, count: *count });
        let input = Distribution::of_rows(input.collect());
        // Values lie in a hierarchy of three levels and ask for as many as their number.
        let numbers = || input.values().iter().map(|count| count.value.map_or(0, |number| number + 1));
        let levels = [3u32, 9, 100].map(|width| numbers().map(|number| number / width).collect()).to_vec();
        let integers = numbers().map(u64::from).collect();
        let input = input.clone().with_levels(levels).with_integers(integers);
        for row in MODELS {
            // A whole number, or a share where only that is a parameter.
            let with = |number: Decimal| {
                let parameters = row.parameters.iter().map(|parameter| (parameter.name.to_owned(), number.into()));
                row.with(&parameters.collect::<Vec<_>>())
            };
            let share = Decimal::parse(&format!("{}e-2", parameter * 5)).unwrap();
            let model = with(Decimal::integer(parameter)).or_else(|_| with(share)).unwrap();
            let name = row.doc.name;
            let holds = |histogram: &BTreeMap<Option<u32>, u64>| {
                let counts = histogram.iter().map(|(value, count)| ValueCount { value: *value, count: *count });
                let sensitive: Vec<ValueCount> = counts.filter(|_| model.needs().reads_column()).collect();
                model.holds(model.value(&Class { size: histogram.values().sum(), sensitive: &sensitive, input: &input, population: None }))
            };
            let (a_holds, b_holds) = (holds(&a), holds(&b));
            match model.merge(Counted::Rows) {
                Merge::Any => prop_assert!(!(a_holds || b_holds) || holds(&merged), "{name}"),
                Merge::Both => prop_assert!(!(a_holds && b_holds) || holds(&merged), "{name}"),
                Merge::None => {}
            }
            let size = a.values().sum::<u64>();
            prop_assert!(!a_holds || size >= model.min_size(), "{name} implies no size");
        }
    }
}

/// How often each value, and NULL, occurs in a class: none, few values or many.
fn histograms() -> impl Strategy<Value = BTreeMap<Option<u32>, u64>> {
    prop::collection::btree_map(prop::option::weighted(0.85, 0..24u32), 1..6u64, 0..22)
}
