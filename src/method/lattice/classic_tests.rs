//! The published searches against all nodes, made from rows one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, StringViewArray};
use proptest::prelude::*;

use super::*;
use crate::class::ClassTable;
use crate::class::tests::{quasi, table};
use crate::decimal::Decimal;
use crate::measure::LOSSES;
use crate::method::Outcome;
use crate::method::partition::mondrian::tests::{Row as Person, problem, rows, table_with};
use crate::model::k_anonymity::KAnonymity;
use crate::model::{Class, Distribution, ValueCount, make};

/// What a person shows at the levels of a node: a number, its square, a word and two letters.
fn shown(person: &Person, levels: &[usize]) -> Vec<Option<i64>> {
    let (a, b, c, value, _) = *person;
    let square = i64::from(b) * i64::from(b);
    let labels = [
        vec![a.map(i64::from).or(Some(-1))],
        vec![Some(square), Some(square / 5)],
        vec![Some(i64::from(c))],
        vec![Some(i64::from(b) * 10 + i64::from(value)), Some(i64::from(b))],
    ];
    labels.iter().zip(levels).map(|(labels, level)| labels.get(*level).copied().flatten()).collect()
}

/// What a test asks for.
#[derive(Debug, Clone)]
struct Asked {
    people: Vec<Person>,
    counts_individuals: bool,
    k: u64,
    /// Another model of the sensitive column.
    other: Option<(&'static str, &'static str, Decimal)>,
    limit: u64,
    ranges: Vec<RangeInclusive<usize>>,
    top: usize,
    objective: usize,
}

fn asked() -> impl Strategy<Value = Asked> {
    let other = prop_oneof![
        2 => Just(None),
        1 => Just(Some(("l_diversity", "l", Decimal::integer(2)))),
        1 => Just(Some(("t_closeness", "t", Decimal::new_const(4, 1)))),
    ];
    let limit = prop_oneof![Just(0u64), 0..12u64];
    let range = |height: usize| (0..=height, 0..=height).prop_map(|(a, b)| a.min(b)..=a.max(b));
    let part = (range(1), range(2), range(1), range(2)).prop_map(|(a, b, c, d)| vec![a, b, c, d]);
    let ranges = prop_oneof![Just(vec![0..=1, 0..=2, 0..=1, 0..=2]), part];
    let top = prop_oneof![Just(1usize), 2..6usize, Just(100)];
    (rows(), any::<bool>(), 1..6u64, other, limit, ranges, top, 0..LOSSES.len()).prop_map(
        |(people, counts_individuals, k, other, limit, ranges, top, objective)| Asked {
            people,
            counts_individuals,
            k,
            other,
            limit,
            ranges,
            top,
            objective,
        },
    )
}

impl Asked {
    fn requirements(&self) -> Vec<Requirement> {
        let k = [("k".to_owned(), Decimal::integer(i64::try_from(self.k).unwrap()).into())];
        let other = self.other.map(|(model, name, value)| {
            Requirement::new(make(model, &[(name.to_owned(), value.into())]).unwrap(), Some("value".into()))
        });
        std::iter::once(Requirement::new(make("k_anonymity", &k).unwrap(), None)).chain(other).collect()
    }

    fn table(&self) -> ClassTable {
        table_with(&self.people, self.counts_individuals, true)
    }

    fn options(&self) -> Options {
        Options { ranges: self.ranges.clone(), top: self.top, effort: None, global: Vec::new() }
    }

    /// Who is counted for a row: its individual, or itself.
    fn holder(&self, row: usize) -> Option<usize> {
        if self.counts_individuals { self.people[row].4.map(usize::from) } else { Some(row) }
    }

    /// How many have each value, among these rows.
    fn by_value(&self, rows: &[usize]) -> (u64, Vec<ValueCount>) {
        let mut of_value: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
        for row in rows {
            of_value.entry(self.people[*row].3.into()).or_default().extend(self.holder(*row));
        }
        let all: BTreeSet<usize> = of_value.values().flatten().copied().collect();
        let counts = of_value.into_iter().filter(|(_, holders)| !holders.is_empty());
        let counts = counts.map(|(value, all)| ValueCount { value: Some(value), count: all.len() as u64 });
        (all.len() as u64, counts.collect())
    }

    /// Returns whether a node is anonymous.
    fn holds(&self, levels: &[usize], requirements: &[Requirement]) -> bool {
        let every: Vec<usize> = (0..self.people.len()).collect();
        let (all, of_all) = self.by_value(&every);
        let input = match self.counts_individuals {
            true => Distribution::of_individuals(of_all, all),
            false => Distribution::of_rows(of_all),
        };
        let mut classes: BTreeMap<Vec<Option<i64>>, Vec<usize>> = BTreeMap::new();
        for row in every {
            classes.entry(shown(&self.people[row], levels)).or_default().push(row);
        }
        let fails = |rows: &&Vec<usize>| {
            let (size, sensitive) = self.by_value(rows);
            let class = Class { input: &input, ..Class::of_values(size, &sensitive) };
            !requirements.iter().all(|r| r.model.holds(r.model.value(&class)))
        };
        let failing: BTreeSet<usize> =
            classes.values().filter(fails).flatten().filter_map(|row| self.holder(*row)).collect();
        failing.len() as u64 <= self.limit
    }

    /// Returns all anonymous nodes.
    fn anonymous(&self, requirements: &[Requirement]) -> BTreeSet<Vec<usize>> {
        let nodes = every_node(&self.ranges).into_iter();
        nodes.filter(|levels| self.holds(levels, requirements)).collect()
    }

    /// Returns whether nodes above an anonymous one are anonymous.
    fn survives(&self) -> bool {
        match self.other {
            None => true,
            Some(_) if self.counts_individuals => false,
            Some((model, ..)) => model == "l_diversity" || self.limit == 0,
        }
    }
}

fn every_node(ranges: &[RangeInclusive<usize>]) -> Vec<Vec<usize>> {
    ranges.iter().fold(vec![Vec::new()], |nodes, range| {
        let with = |node: Vec<usize>| range.clone().map(move |level| [&node[..], &[level]].concat());
        nodes.into_iter().flat_map(with).collect()
    })
}

fn levels(outcome: &Outcome) -> Vec<Vec<usize>> {
    outcome.best.iter().map(|best| best.recoding.levels().unwrap().to_vec()).collect()
}

/// Returns the candidates of `exhaustive`, all of them.
fn all(problem: &Problem<'_>, options: &Options) -> Outcome {
    let options = Options { top: usize::MAX, ..options.clone() };
    (exhaustive::ROW.make)(options).search(problem).unwrap()
}

/// Samarati 2001: eight rows in race (as is, person) and ZIP (94138, 9413*, 941**).
pub(super) fn samarati_2001() -> ClassTable {
    let rows = [("asian", 94138, 2), ("asian", 94142, 2), ("black", 94138, 1), ("black", 94141, 1)];
    let rows = [&rows[..], &[("black", 94142, 1), ("white", 94138, 1)]].concat();
    let each = || rows.iter().flat_map(|(race, zip, count)| std::iter::repeat_n((*race, *zip), *count));
    let race: ArrayRef = Arc::new(StringViewArray::from_iter_values(each().map(|(race, _)| race)));
    let zip: ArrayRef = Arc::new(Int32Array::from_iter_values(each().map(|(_, zip)| zip)));
    table(vec![(quasi("race", &race, None), race), (quasi("zip", &zip, Some(("prefix", &[4, 3]))), zip)])
}

/// Returns the levels that a method chooses among race and ZIP as the papers have them, and the
/// number of nodes that it evaluates.
pub(super) fn choice(row: &Row, table: &ClassTable, k: u64, limit: u64) -> (Vec<Vec<usize>>, u64) {
    let requirements = [Requirement::of_sizes(KAnonymity::new(k).unwrap())];
    let problem = Problem { limit, ..problem(table, &requirements) };
    let options = Options { ranges: vec![0..=1, 0..=2], top: 9, effort: None, global: Vec::new() };
    let outcome = (row.make)(options).search(&problem).unwrap();
    (levels(&outcome), outcome.evaluated)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn samarati_finds_the_least_height_and_datafly_a_node(asked in asked()) {
        let (table, requirements, options) = (asked.table(), asked.requirements(), asked.options());
        let objective = LOSSES[asked.objective];
        let problem = Problem { limit: asked.limit, objective, ..problem(&table, &requirements) };
        let anonymous = asked.anonymous(&requirements);
        let of_all = all(&problem, &options);
        prop_assert_eq!(levels(&of_all).into_iter().collect::<BTreeSet<_>>(), anonymous.clone());

        let found = (samarati::ROW.make)(options.clone()).search(&problem);
        prop_assert_eq!(found.is_ok(), asked.survives());
        match found {
            Ok(outcome) => {
                let least = anonymous.iter().map(|levels| height(levels)).min();
                let of_height = of_all.best.iter().filter(|best| Some(height(best.recoding.levels().unwrap())) == least);
                prop_assert_eq!(&outcome.best, &of_height.take(asked.top).cloned().collect::<Vec<_>>());
                let best = &of_all.best[..of_all.best.len().min(asked.top)];
                prop_assert!(!outcome.proven || outcome.best == best);
                prop_assert!(outcome.proven || (!best.is_empty() && outcome.bound.unwrap() <= best[0].loss));
                let (nodes, evaluated) = (outcome.nodes.unwrap(), outcome.evaluated);
                prop_assert!(nodes == options.nodes() && (1..=nodes).contains(&evaluated));
            }
            Err(error) => {
                let (model, ..) = asked.other.unwrap();
                let text = error.to_string();
                prop_assert!(error.kind() == crate::error::Kind::Policy && text.contains(model), "{text}");
                prop_assert_eq!(text.contains("suppression_limit = 0"), !asked.counts_individuals, "{}", text);
            }
        }

        // The greedy path, from what the rows show.
        let mut node: Vec<usize> = asked.ranges.iter().map(|range| *range.start()).collect();
        let mut steps = 1;
        let path_holds = loop {
            if anonymous.contains(&node) {
                break true;
            }
            let labels = |column: usize| {
                let shown: BTreeSet<_> = asked.people.iter().map(|person| shown(person, &node)[column]).collect();
                shown.len()
            };
            let mut widest: Option<usize> = None;
            for column in (0..node.len()).filter(|column| node[*column] < *asked.ranges[*column].end()) {
                if widest.is_none_or(|widest| labels(widest) < labels(column)) {
                    widest = Some(column);
                }
            }
            let Some(widest) = widest else { break false };
            node[widest] += 1;
            steps += 1;
        };
        let outcome = (datafly::ROW.make)(options.clone()).search(&problem).unwrap();
        prop_assert_eq!(levels(&outcome), if path_holds { vec![node] } else { vec![] });
        prop_assert_eq!(outcome.evaluated, steps);
        prop_assert!(!asked.survives() || path_holds || anonymous.is_empty());
        prop_assert!(!outcome.proven || outcome.best.first() == of_all.best.first());
    }
}
