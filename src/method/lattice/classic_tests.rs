//! The published searches against all nodes, made from rows one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, StringViewArray};
use proptest::prelude::*;

use super::*;
use crate::class::ClassTable;
use crate::class::tests::{quasi, table};
use crate::decimal::Decimal;
use crate::error::{Error, ErrorKind};
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

/// The columns of the table.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// What a test asks for.
#[derive(Debug, Clone)]
struct Asked {
    people: Vec<Person>,
    counts_individuals: bool,
    k: u64,
    /// Another model, with its parameter.
    other: Option<(&'static str, &'static str, Decimal)>,
    /// The columns over which the other model is required; all if there are none.
    over: Vec<usize>,
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
        1 => Just(Some(("k_anonymity", "k", Decimal::integer(4)))),
    ];
    let over = prop_oneof![2 => Just(vec![]), 1 => Just(vec![1, 2]), 1 => Just(vec![3])];
    let limit = prop_oneof![Just(0u64), 0..12u64];
    let range = |height: usize| (0..=height, 0..=height).prop_map(|(a, b)| a.min(b)..=a.max(b));
    let part = (range(1), range(2), range(1), range(2)).prop_map(|(a, b, c, d)| vec![a, b, c, d]);
    let ranges = prop_oneof![Just(vec![0..=1, 0..=2, 0..=1, 0..=2]), part];
    let top = prop_oneof![Just(1usize), 2..6usize, Just(100)];
    let models = (1..6u64, other, over, limit);
    (rows(), any::<bool>(), models, ranges, top, 0..LOSSES.len()).prop_map(
        |(people, counts_individuals, (k, other, over, limit), ranges, top, objective)| Asked {
            people,
            counts_individuals,
            k,
            other,
            over,
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
            let model = make(model, &[(name.to_owned(), value.into())]).unwrap();
            let sensitive = model.needs().reads_column().then(|| "value".into());
            let over: Vec<String> = self.over.iter().map(|column| NAMES[*column].to_owned()).collect();
            Requirement::new(model, sensitive).over(Some(over).filter(|over| !over.is_empty()))
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
        let holds = |requirement: &&Requirement, rows: &[usize]| {
            let (size, sensitive) = self.by_value(rows);
            let class = Class { input: &input, ..Class::of_values(size, &sensitive) };
            requirement.model.holds(requirement.model.value(&class))
        };
        let mut suppressed: Vec<Vec<usize>> = Vec::new();
        let (of_classes, over): (Vec<&Requirement>, Vec<&Requirement>) =
            requirements.iter().partition(|requirement| requirement.is_over_all_quasi());
        let is_kept = |rows: &Vec<usize>| of_classes.iter().all(|requirement| holds(requirement, rows));
        suppressed.extend(classes.extract_if(.., |_, rows| !is_kept(rows)).map(|(_, rows)| rows));
        for requirement in over {
            let of = |labels: &[Option<i64>]| -> Vec<_> { self.over.iter().map(|at| labels[*at]).collect() };
            let mut joined: BTreeMap<Vec<Option<i64>>, Vec<usize>> = BTreeMap::new();
            for (labels, rows) in &classes {
                joined.entry(of(labels)).or_default().extend(rows);
            }
            // One requirement: the others' rows are gone already.
            let fails = |labels: &Vec<Option<i64>>| !holds(&requirement, &joined[&of(labels)]);
            suppressed.extend(classes.extract_if(.., |labels, _| fails(labels)).map(|(_, rows)| rows));
        }
        let failing: BTreeSet<usize> =
            suppressed.iter().flatten().filter_map(|row| self.holder(*row)).collect();
        failing.len() as u64 <= self.limit
    }

    /// Returns all anonymous nodes.
    fn anonymous(&self, requirements: &[Requirement]) -> BTreeSet<Vec<usize>> {
        let nodes = every_node(&self.ranges).into_iter();
        nodes.filter(|levels| self.holds(levels, requirements)).collect()
    }

    /// Checks that a method was refused for the model.
    fn is_refused(&self, method: &str, error: &Error) -> Result<(), TestCaseError> {
        let (text, (model, ..)) = (error.to_string(), self.other.unwrap());
        let names_both = text.contains(model) && text.starts_with(&format!("method: `{method}` needs"));
        prop_assert!(error.kind() == ErrorKind::Policy && names_both, "{text}");
        prop_assert_eq!(text.contains("suppression_limit = 0"), !self.counts_individuals, "{}", text);
        Ok(())
    }

    /// Returns whether nodes above an anonymous one are anonymous.
    fn survives(&self) -> bool {
        match self.other {
            None | Some(("k_anonymity", ..)) => true,
            Some(_) if self.counts_individuals => false,
            Some((model, ..)) => model == "l_diversity" || self.limit == 0,
        }
    }
}

impl Asked {
    /// Counts the classes that Incognito as published evaluates, subset by subset, and the other
    /// `chosen` ones, which were evaluated for their loss. A column without a level is at its top.
    fn evaluated_by_incognito(&self, requirements: &[Requirement], chosen: &[Vec<usize>]) -> u64 {
        const TOP: [usize; 4] = [1, 2, 1, 2];
        let mut evaluated: BTreeSet<Vec<usize>> = BTreeSet::from([TOP.to_vec()]);
        let mut hold: BTreeSet<Vec<Option<usize>>> = BTreeSet::new();
        if self.holds(&TOP, requirements) {
            hold.insert(vec![None; 4]);
        }
        for size in 1..=4 {
            // Levels below the top alone: at the top a column is not there.
            let of_column = |column: usize| {
                let below = self.ranges[column].clone().filter(move |level| *level < TOP[column]);
                std::iter::once(None).chain(below.map(Some))
            };
            let mut of_size = (0..4).fold(vec![Vec::new()], |nodes: Vec<Vec<Option<usize>>>, column| {
                let with = |node: Vec<Option<usize>>| {
                    of_column(column).map(move |level| [&node[..], &[level]].concat())
                };
                nodes.into_iter().flat_map(with).collect()
            });
            of_size.retain(|node| node.iter().flatten().count() == size);
            of_size.sort_by_key(|node| node.iter().flatten().sum::<usize>());
            for node in of_size {
                let with = |column: usize, level: Option<usize>| {
                    let mut other = node.clone();
                    other[column] = level;
                    other
                };
                let there = || (0..4).filter(|column| node[*column].is_some());
                if there().any(|column| !hold.contains(&with(column, None))) {
                    continue;
                }
                let lower = |column: usize| node[column].unwrap().checked_sub(1);
                let is_marked = there().any(|column| {
                    lower(column).is_some_and(|level| hold.contains(&with(column, Some(level))))
                });
                let levels: Vec<usize> =
                    node.iter().zip(TOP).map(|(level, top)| level.unwrap_or(top)).collect();
                if is_marked || self.holds(&levels, requirements) {
                    hold.insert(node);
                }
                if !is_marked {
                    evaluated.insert(levels);
                }
            }
        }
        evaluated.extend(chosen.iter().cloned());
        evaluated.len() as u64
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
    exhaustive::ROW.with(&[], options).unwrap().search(problem).unwrap()
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
    choice_with(row, &[], table, k, limit)
}

/// The same under settings of the method.
pub(super) fn choice_with(
    row: &Row,
    settings: &[(String, Setting)],
    table: &ClassTable,
    k: u64,
    limit: u64,
) -> (Vec<Vec<usize>>, u64) {
    let requirements = [Requirement::of_sizes(KAnonymity::new(k).unwrap())];
    let problem = Problem { limit, ..problem(table, &requirements) };
    let options = Options { ranges: vec![0..=1, 0..=2], top: 9, effort: None, global: Vec::new() };
    let outcome = row.with(settings, options).unwrap().search(&problem).unwrap();
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

        let found = samarati::ROW.with(&[], options.clone()).unwrap().search(&problem);
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
            Err(error) => asked.is_refused("samarati", &error)?,
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
        let outcome = datafly::ROW.with(&[], options.clone()).unwrap().search(&problem).unwrap();
        prop_assert_eq!(levels(&outcome), if path_holds { vec![node] } else { vec![] });
        prop_assert_eq!(outcome.evaluated, steps);
        prop_assert!(!asked.survives() || path_holds || anonymous.is_empty());
        prop_assert!(!outcome.proven || outcome.best.first() == of_all.best.first());
    }

    #[test]
    fn incognito_finds_all_anonymous_nodes(asked in asked()) {
        let (table, requirements, options) = (asked.table(), asked.requirements(), asked.options());
        let objective = LOSSES[asked.objective];
        let problem = Problem { limit: asked.limit, objective, ..problem(&table, &requirements) };
        let search = |top: usize| incognito::ROW.with(&[], Options { top, ..options.clone() }).unwrap().search(&problem);
        match search(usize::MAX) {
            Ok(outcome) => {
                prop_assert!(asked.survives());
                let of_all = all(&problem, &options);
                prop_assert_eq!(&outcome.best, &of_all.best);
                prop_assert_eq!(levels(&outcome).into_iter().collect::<BTreeSet<_>>(), asked.anonymous(&requirements));
                let some = search(asked.top).unwrap();
                let best = of_all.best[..of_all.best.len().min(asked.top)].to_vec();
                prop_assert_eq!(&some, &Outcome { best, evaluated: some.evaluated, ..of_all });
                prop_assert!(some.evaluated <= outcome.evaluated);
                prop_assert_eq!(outcome.evaluated, asked.evaluated_by_incognito(&requirements, &levels(&outcome)));
            }
            Err(error) => {
                prop_assert!(!asked.survives());
                asked.is_refused("incognito", &error)?;
            }
        }
    }

    #[test]
    fn strategies_takes_the_first_anonymous_nodes(asked in asked(), seed in any::<u64>()) {
        let (table, requirements, options) = (asked.table(), asked.requirements(), asked.options());
        let problem = Problem { limit: asked.limit, objective: LOSSES[asked.objective], ..problem(&table, &requirements) };
        // All nodes in an order of their own.
        let mut nodes = every_node(&asked.ranges);
        nodes.sort_by_key(|levels| levels.iter().fold(seed, |hash, level| (hash ^ *level as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23)));
        let node = |levels: &Vec<usize>| {
            let names = NAMES.iter().map(|name| (*name).to_owned());
            Setting::Node(names.zip(levels.iter().copied()).collect())
        };
        let settings = [("nodes".to_owned(), Setting::List(nodes.iter().map(node).collect()))];
        let outcome = strategies::ROW.with(&settings, options.clone()).unwrap().search(&problem).unwrap();
        let anonymous = asked.anonymous(&requirements);
        let first: Vec<_> = nodes.into_iter().filter(|levels| anonymous.contains(levels)).take(asked.top).collect();
        prop_assert_eq!(levels(&outcome), first);
        let of_all = all(&problem, &options);
        prop_assert!(!outcome.proven || outcome.best == of_all.best[..of_all.best.len().min(asked.top)]);
        prop_assert!(of_all.best.is_empty() || outcome.bound.unwrap() <= of_all.best[0].loss);
    }
}
