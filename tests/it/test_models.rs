//! Class models for the search laws: those of the table and some that exist in tests only, one for each way a
//! model can survive merging. Each also judges plain values, which is the oracle's side.

use std::collections::{BTreeMap, BTreeSet};

use datafusion_kanon::internals::decimal::Decimal;
use datafusion_kanon::internals::doc::Doc;
use datafusion_kanon::internals::model::k_anonymity::KAnonymity;
use datafusion_kanon::internals::model::l_diversity::LDiversity;
use datafusion_kanon::internals::model::t_closeness::TCloseness;
use datafusion_kanon::internals::model::{
    Class, ClassModel, Counted, Merge, Needs, Quantity, Requirement, Worst,
};
use proptest::prelude::*;

/// Whose row it is, and its sensitive value; both may be NULL.
pub(crate) type Row = (Option<usize>, Option<u8>);

/// A requirement of a random problem.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// `k_anonymity`: any.
    Size(u64),
    /// `l_diversity`: any, of individuals none.
    Diverse(u64),
    /// No value has more than this share of the class, in percent: both, of individuals none. The
    /// alpha of alpha-k-anonymity.
    Share(u64),
    /// `t_closeness` with this t in percent: both, of individuals none.
    Close(u64),
    /// An even size: both, of individuals none, by sizes alone.
    Even,
    /// An odd size: none, by sizes alone.
    Odd,
    /// Not exactly two different values: none, by values.
    NotTwoValues,
    /// At least so many: any, but it says of itself only a smaller size.
    LooseSize { least: u64, said: u64 },
    /// At least so many whose value is missing: any, and no size is said.
    Missing(u64),
}

/// All sets of requirements that the laws try.
pub(crate) fn rule_sets() -> impl Strategy<Value = Vec<Rule>> {
    use Rule::{Close, Diverse, Even, LooseSize, Missing, NotTwoValues, Odd, Share, Size};
    let percent = prop::sample::select(vec![34, 50, 60, 75, 100]);
    (0..16u8, 1..=6u64, 1..=4u64, percent, 0..=3u64).prop_map(|(set, k, l, percent, less)| {
        let loose = LooseSize { least: k + 1, said: (k + 1).saturating_sub(less) };
        match set {
            0 | 1 => vec![Size(k)],
            2 => vec![Diverse(l)],
            3 => vec![Size(k), Diverse(l)],
            4 => vec![Share(percent)],
            5 => vec![Size(k), Share(percent)],
            6 => vec![Share(percent), Diverse(l), Size(k)],
            7 => vec![Odd],
            8 => vec![Size(k), Even],
            9 => vec![NotTwoValues, Size(k)],
            10 => vec![loose],
            11 => vec![loose, Share(percent)],
            12 => vec![Missing(l), Size(k)],
            13 => vec![Close(percent / 2)],
            14 => vec![Size(k), Close(percent / 2), Diverse(l)],
            _ => vec![Odd, Share(percent), Size(k)],
        }
    })
}

impl Rule {
    pub(crate) fn requirement(self) -> Requirement {
        let model: Box<dyn ClassModel> = match self {
            Rule::Size(k) => Box::new(KAnonymity::new(k).unwrap()),
            Rule::Diverse(l) => Box::new(LDiversity::new(l).unwrap()),
            Rule::Close(percent) => {
                Box::new(TCloseness::new(Decimal::parse(&format!("{percent}e-2")).unwrap()).unwrap())
            }
            other => Box::new(TestModel(other)),
        };
        let sensitive = (model.needs() != Needs::Size).then(|| "value".into());
        Requirement::new(model, sensitive)
    }

    pub(crate) fn needs(self) -> Needs {
        match self {
            Rule::Size(_) | Rule::Even | Rule::Odd | Rule::LooseSize { .. } => Needs::Size,
            Rule::Diverse(_) | Rule::Share(_) | Rule::NotTwoValues | Rule::Missing(_) => {
                Needs::SensitiveCounts
            }
            Rule::Close(_) => Needs::Distribution,
        }
    }

    pub(crate) fn merge(self, counted: Counted) -> Merge {
        match self {
            Rule::Diverse(_) | Rule::Share(_) | Rule::Close(_) | Rule::Even
                if counted == Counted::Individuals =>
            {
                Merge::None
            }
            Rule::Size(_) | Rule::Diverse(_) | Rule::LooseSize { .. } | Rule::Missing(_) => Merge::Any,
            Rule::Share(_) | Rule::Close(_) | Rule::Even => Merge::Both,
            Rule::Odd | Rule::NotTwoValues => Merge::None,
        }
    }

    pub(crate) fn min_size(self) -> u64 {
        match self {
            Rule::Size(size) | Rule::Diverse(size) | Rule::LooseSize { said: size, .. } => size,
            Rule::Even => 2,
            Rule::Missing(_) => 0,
            Rule::Share(_) | Rule::Close(_) | Rule::Odd | Rule::NotTwoValues => 1,
        }
    }

    /// Whether a class of these rows of a table holds.
    pub(crate) fn holds_for(self, rows: &[Row], table: &[Row], counted: Counted) -> bool {
        let people: BTreeSet<usize> = rows.iter().filter_map(|(who, _)| *who).collect();
        let having = pairs(rows);
        let size = people.len() as u64;
        let mut counts: BTreeMap<u8, u64> = BTreeMap::new();
        having
            .iter()
            .filter_map(|(value, _)| *value)
            .for_each(|value| *counts.entry(value).or_default() += 1);
        match self {
            Rule::Size(k) => size >= k,
            Rule::Diverse(l) => {
                counts.len() as u64 >= l && counts.values().all(|count| count + l <= size + 1)
            }
            Rule::Share(percent) => counts.values().all(|count| 100 * count <= percent * size),
            Rule::Close(percent) => {
                let is_known = counted == Counted::Individuals && size > 1 && {
                    let shared =
                        |value: &Option<u8>| having.iter().filter(|(other, _)| other == value).count();
                    having.iter().any(|(value, _)| shared(value) as u64 == size)
                };
                size > 0 && !is_known && is_close(&having, &pairs(table), percent)
            }
            Rule::Even => size.is_multiple_of(2),
            Rule::Odd => !size.is_multiple_of(2),
            Rule::NotTwoValues => counts.len() != 2,
            Rule::LooseSize { least, .. } => size >= least,
            Rule::Missing(least) => {
                having.iter().filter(|(value, _)| value.is_none()).count() as u64 >= least
            }
        }
    }
}

/// Each value that somebody has.
fn pairs(rows: &[Row]) -> BTreeSet<(Option<u8>, usize)> {
    rows.iter().filter_map(|(who, value)| Some((*value, (*who)?))).collect()
}

/// Whether the shares of all values differ by at most this many percent, added and halved.
fn is_close(
    class: &BTreeSet<(Option<u8>, usize)>,
    table: &BTreeSet<(Option<u8>, usize)>,
    percent: u64,
) -> bool {
    let of = |pairs: &BTreeSet<(Option<u8>, usize)>, value: Option<u8>| {
        pairs.iter().filter(|(other, _)| *other == value).count() as i64
    };
    let (here, all) = (class.len() as i64, table.len() as i64);
    let values: BTreeSet<Option<u8>> = table.iter().map(|(value, _)| *value).collect();
    let apart: i64 = values.into_iter().map(|v| (of(class, v) * all - of(table, v) * here).abs()).sum();
    100 * apart <= 2 * percent as i64 * here * all
}

/// A rule that is a model of its own.
#[derive(Debug)]
struct TestModel(Rule);

impl ClassModel for TestModel {
    fn doc(&self) -> &'static Doc {
        &Doc { name: "test_model", summary: "exists in tests only", parameters: "", example: "", paper: None }
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
        let values = || class.sensitive.iter().filter(|count| count.value.is_some()).map(|count| count.count);
        match self.0 {
            Rule::Share(_) => Quantity::Ratio(values().max().unwrap_or(0).into(), class.size.into()),
            Rule::NotTwoValues => Quantity::Count(values().count() as u64),
            Rule::Missing(_) => {
                let missing = class.sensitive.iter().find(|count| count.value.is_none());
                Quantity::Count(missing.map_or(0, |count| count.count))
            }
            _ => Quantity::Count(class.size),
        }
    }

    fn worst(&self) -> Worst {
        Worst::Least
    }

    fn holds(&self, value: Quantity) -> bool {
        match (self.0, value) {
            (Rule::Share(percent), Quantity::Ratio(most, size)) => 100 * most <= u128::from(percent) * size,
            (Rule::Even, Quantity::Count(size)) => size.is_multiple_of(2),
            (Rule::Odd, Quantity::Count(size)) => !size.is_multiple_of(2),
            (Rule::NotTwoValues, Quantity::Count(values)) => values != 2,
            (Rule::LooseSize { least, .. } | Rule::Missing(least), Quantity::Count(size)) => size >= least,
            other => panic!("no quantity of this model: {other:?}"),
        }
    }

    fn required(&self) -> Decimal {
        Decimal::integer(0)
    }

    fn parameters(&self) -> Vec<(&'static str, Decimal)> {
        Vec::new()
    }
}

/// The classes of each rule survive merging as the rule says, or the laws prove nothing.
#[test]
fn rules_are_what_they_say() {
    let rules = [
        vec![Rule::Size(3), Rule::Diverse(2), Rule::Share(50), Rule::Even, Rule::Odd, Rule::NotTwoValues],
        vec![Rule::LooseSize { least: 4, said: 2 }, Rule::Missing(2), Rule::Close(50)],
    ];
    let table = [(Some(0), None), (Some(1), Some(0)), (Some(2), Some(0)), (Some(3), Some(1))];
    let values = [None, Some(0), Some(1)];
    let alone: Vec<Row> = values.map(|value| (None, value)).to_vec();
    let of_people = [None, Some(0), Some(1), Some(2)].map(|who| values.map(|value| (who, value)));
    let samples = [
        (Counted::Rows, class_samples(&alone, 4)),
        (Counted::Individuals, class_samples(&of_people.concat(), 2)),
    ];
    for rule in rules.into_iter().flatten() {
        for (counted, classes) in &samples {
            let class = |parts: &[&[Row]]| -> Vec<Row> {
                let rows = parts.concat().into_iter().enumerate();
                // Where rows are counted, each is a person of its own.
                rows.map(|(at, (who, value))| match counted {
                    Counted::Rows => (Some(at), value),
                    Counted::Individuals => (who, value),
                })
                .collect()
            };
            let size =
                |rows: &[Row]| rows.iter().filter_map(|row| row.0).collect::<BTreeSet<_>>().len() as u64;
            let holds =
                |rows: &[Row]| size(rows) >= rule.min_size() && rule.holds_for(rows, &table, *counted);
            let (mut any, mut both) = (true, true);
            for a in classes {
                for b in classes {
                    let merged = holds(&class(&[a, b]));
                    any &= !holds(&class(&[a])) || merged;
                    both &= !(holds(&class(&[a])) && holds(&class(&[b]))) || merged;
                }
            }
            let survives = match (any, both) {
                (true, _) => Merge::Any,
                (_, true) => Merge::Both,
                _ => Merge::None,
            };
            assert_eq!(survives, rule.merge(*counted), "{rule:?} {counted:?}");
        }
    }
}

/// All classes of one to `most` rows of these kinds.
fn class_samples(rows: &[Row], most: usize) -> Vec<Vec<Row>> {
    let mut classes: Vec<Vec<Row>> = Vec::new();
    let mut longest: Vec<Vec<Row>> = vec![vec![]];
    for _ in 0..most {
        let longer = |class: &Vec<Row>| {
            let class = class.clone();
            rows.iter().map(move |row| [class.as_slice(), &[*row]].concat()).collect::<Vec<_>>()
        };
        longest = longest.iter().flat_map(longer).collect();
        classes.extend(longest.clone());
    }
    classes
}
