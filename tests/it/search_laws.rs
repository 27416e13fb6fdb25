//! Laws of the search: every node, every loss, every bound and every method against a recomputation on
//! generalized rows ([`super::row_oracle`]), for models of every kind ([`super::test_models`]).

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::DataType;
use datafusion_kanon::internals::class::{Budget, ClassTable, ClassTableBuilder, QuasiColumn, Unlimited};
use datafusion_kanon::internals::decimal::Decimal;
use datafusion_kanon::internals::generalize::{Ends, Hierarchy, range};
use datafusion_kanon::internals::measure::{Grows, Interval, LOSSES, LossMeasure};
use datafusion_kanon::internals::method::lattice::Row as LatticeRow;
use datafusion_kanon::internals::method::lattice::anytime;
use datafusion_kanon::internals::method::lattice::exhaustive::{self, for_every_node};
use datafusion_kanon::internals::method::lattice::minimal::minimal;
use datafusion_kanon::internals::method::lattice::optimal;
use datafusion_kanon::internals::method::lattice::{Effort, Found, Lattice, Options as LatticeOptions};
use datafusion_kanon::internals::method::{Outcome, Problem};
use datafusion_kanon::internals::model::{Counted, Merge, Needs, Requirement};
use datafusion_kanon::internals::progress::{CancelToken, Silent};
use proptest::prelude::*;
use proptest::sample::Index;

use super::row_oracle::{Node, Oracle, Rows, column_name, table_and_oracle, tables};
use super::test_models::{Rule, rule_sets};
use crate::shared::found;

static NEVER_STOPPED: LazyLock<CancelToken> = LazyLock::new(CancelToken::default);

/// A random question: printed when a law is broken.
#[derive(Clone)]
struct Case {
    rows: Rows,
    rules: Vec<Rule>,
    /// A rule over some of the columns.
    over: Option<(Rule, [bool; 4])>,
    /// The lowest and highest level of each column; `None` allows all.
    ranges: [Option<(Index, Index)>; 4],
    /// Whether the sensitive column is counted even if no model needs it.
    counted: bool,
    limits: [Index; 2],
    picks: Vec<(Index, Index)>,
}

/// In a few lines, where a derived one fills a screen with cells.
impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, rules, over, ranges, counted, limits, picks } = self;
        let said = format!(
            "rows: {rows:?}\nrules: {rules:?}\nover: {over:?}\nranges: {ranges:?}\ncounted: {counted}\nlimits: {limits:?}\n\
             picks: {picks:?}"
        );
        f.write_str(&said)
    }
}

/// Small tables, and larger ones.
fn cases() -> impl Strategy<Value = Case> {
    let rows = prop_oneof![2 => tables(0..=8), 3 => tables(9..=40)];
    let range = prop::option::weighted(0.4, any::<(Index, Index)>());
    let picks = prop::collection::vec(any::<(Index, Index)>(), 24);
    let over = prop::option::weighted(0.3, (rule_sets().prop_map(|rules| rules[0]), any::<[bool; 4]>()));
    let what = (rows, rule_sets(), over);
    (what, prop::array::uniform4(range), any::<bool>(), any::<[Index; 2]>(), picks).prop_map(
        |((rows, rules, over), ranges, counted, limits, picks)| Case {
            rows,
            rules,
            over,
            ranges,
            counted,
            limits,
            picks,
        },
    )
}

/// A case made ready: the class table, and what the oracle says of every allowed node.
struct Asked {
    table: ClassTable,
    oracle: Oracle,
    /// All rules, that over some of the columns too.
    rules: Vec<Rule>,
    is_over_some: bool,
    requirements: Vec<Requirement>,
    ranges: Vec<RangeInclusive<usize>>,
    nodes: BTreeMap<Vec<usize>, Node>,
}

impl Asked {
    fn new(case: &Case) -> Self {
        let over = case.over.as_ref().map(|(rule, columns)| {
            let columns = (0..case.rows.kinds.len()).filter(|at| columns[*at]).collect::<Vec<usize>>();
            (*rule, columns)
        });
        let rules: Vec<Rule> =
            case.rules.iter().copied().chain(over.as_ref().map(|(rule, _)| *rule)).collect();
        let counted = case.counted || rules.iter().any(|rule| rule.needs() != Needs::Size);
        let (table, oracle) = table_and_oracle(&case.rows, counted);
        let ranges: Vec<RangeInclusive<usize>> = (table.heights().into_iter().zip(&case.ranges))
            .map(|(height, said)| {
                let [a, b] = said.map_or([0, height], |(a, b)| [a.index(height + 1), b.index(height + 1)]);
                a.min(b)..=a.max(b)
            })
            .collect();
        let mut all = vec![Vec::new()];
        for range in &ranges {
            let longer = |levels: &Vec<usize>| {
                let levels = levels.clone();
                range.clone().map(move |level| [levels.as_slice(), &[level]].concat()).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(longer).collect();
        }
        let judged = |levels: Vec<usize>| (levels.clone(), oracle.node(&levels, &case.rules, over.as_ref()));
        let nodes = all.into_iter().map(judged).collect();
        let mut requirements: Vec<Requirement> = case.rules.iter().map(|rule| rule.requirement()).collect();
        let is_over_some = over.is_some();
        requirements.extend(over.map(|(rule, columns)| {
            rule.requirement().over(Some(columns.into_iter().map(column_name).collect()))
        }));
        Self { table, oracle, rules, is_over_some, requirements, ranges, nodes }
    }

    fn options(&self, top: usize) -> LatticeOptions {
        LatticeOptions {
            ranges: self.ranges.clone(),
            top,
            effort: Some(Effort::Nodes(1_000)),
            global: Vec::new(),
        }
    }

    fn problem<'a>(&'a self, objective: &'a dyn LossMeasure, limit: u64) -> Problem<'a> {
        Problem {
            table: &self.table,
            requirements: &self.requirements,
            objective,
            ends: Ends::Values,
            limit,
            threads: 1,
            progress: &Silent,
            stop: &NEVER_STOPPED,
        }
    }

    /// The measures that this table can tell.
    fn objectives(&self) -> Vec<&'static dyn LossMeasure> {
        let counted = !self.table.sensitive().is_empty();
        LOSSES.iter().copied().filter(|loss| counted || loss.needs() == Needs::Size).collect()
    }

    /// None, all and two limits between; every limit of a small table.
    fn limits(&self, case: &Case) -> Vec<u64> {
        let n = self.oracle.people();
        let mut limits: Vec<usize> = match n {
            ..=8 => (0..=n).collect(),
            _ => vec![0, case.limits[0].index(n / 3), case.limits[1].index(n), n],
        };
        limits.dedup();
        limits.into_iter().map(|limit| limit as u64).collect()
    }

    /// The allowed nodes that suppress no more than `limit` people.
    fn anonymous(&self, limit: u64) -> impl Iterator<Item = &Node> {
        self.nodes.values().filter(move |node| node.suppressed_people() <= limit)
    }

    /// No kept class is smaller.
    fn min_size(&self) -> u64 {
        let of_classes = self.rules.iter().take(self.rules.len() - usize::from(self.is_over_some));
        of_classes.map(|rule| rule.min_size()).max().unwrap_or(0).max(1)
    }

    /// The weakest promise of all models.
    fn merge(&self) -> Merge {
        let is = |merge| self.rules.iter().any(|rule| rule.merge(self.oracle.counted()) == merge);
        if is(Merge::None) {
            Merge::None
        } else if is(Merge::Both) {
            Merge::Both
        } else {
            Merge::Any
        }
    }

    /// The losses of all nodes, as the library says them.
    fn losses(&self, objectives: &[&dyn LossMeasure]) -> BTreeMap<Vec<usize>, Vec<f64>> {
        let mut losses = BTreeMap::new();
        for_every_node(
            Lattice { problem: &self.problem(objectives[0], 0), options: &self.options(1) },
            &mut |node| {
                losses
                    .insert(node.levels().to_vec(), objectives.iter().map(|loss| loss.value(node)).collect());
            },
        )
        .unwrap();
        losses
    }
}

fn is_below(low: &[usize], high: &[usize]) -> bool {
    low.iter().zip(high).all(|(low, high)| low <= high)
}

/// Equal but for rounding.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-3)
}

/// What the bits of an outcome's nodes are: `==` would not tell 0.0 from -0.0.
fn bits(found: &[Found]) -> Vec<(u64, &Found)> {
    found.iter().map(|node| (node.loss.to_bits(), node)).collect()
}

/// The number of random cases of a law: `KANON_LAW_CASES` (`tests/long.sh laws`), or 200.
pub(crate) fn law_cases() -> u32 {
    std::env::var("KANON_LAW_CASES").map_or(200, |cases| cases.parse().unwrap())
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(law_cases()))]

    #[test]
    fn every_node_is_what_its_rows_say(case in cases()) {
        nodes_are_right(&Asked::new(&case))?;
    }

    #[test]
    fn monotony_is_as_declared(case in cases()) {
        nodes_grow_as_declared(&Asked::new(&case))?;
    }

    #[test]
    fn no_anonymous_node_loses_less_than_a_bound(case in cases()) {
        let asked = Asked::new(&case);
        for limit in asked.limits(&case) {
            bounds_hold(&asked, limit, &case.picks)?;
        }
    }

    #[test]
    fn minimal_nodes_are_those_of_the_rows(case in cases()) {
        let asked = Asked::new(&case);
        for limit in asked.limits(&case) {
            minimal_is_right(&asked, limit, &case.picks)?;
        }
    }

    #[test]
    fn anytime_keeps_its_promises(case in cases()) {
        let asked = Asked::new(&case);
        for (number, limit) in asked.limits(&case).into_iter().enumerate() {
            let (objective, top) = case.picks[number];
            anytime_is_right(&asked, *objective.get(&asked.objectives()), limit, *top.get(&[1, 3, 50]))?;
        }
    }
}

proptest! {
    #![proptest_config(config(2 * law_cases()))]

    #[test]
    fn optimal_and_exhaustive_find_what_rows_say(case in cases()) {
        let asked = Asked::new(&case);
        let mut picks = case.picks.iter().cycle();
        for limit in asked.limits(&case) {
            for (objective, top) in picks.by_ref().take(3) {
                search_is_right(&asked, *objective.get(&asked.objectives()), limit, *top.get(&[1, 3, 50]))?;
            }
        }
    }
}

/// Counts, classes and all losses of all nodes.
fn nodes_are_right(asked: &Asked) -> Result<(), TestCaseError> {
    let (objectives, counted) = (asked.objectives(), !asked.table.sensitive().is_empty());
    let mut seen = Vec::new();
    let all = (0..asked.oracle.rows()).collect::<Vec<_>>();
    let values: Vec<u8> = asked.oracle.histogram(&all).into_keys().flatten().collect();
    let number = |value: u8| values.iter().position(|known| *known == value).unwrap() as u32;
    let visited = for_every_node(
        Lattice { problem: &asked.problem(objectives[0], 0), options: &asked.options(1) },
        &mut |node| {
            let said = &asked.nodes[node.levels()];
            assert_eq!(node.suppressed_rows(), said.suppressed(), "{:?}", said.levels);
            assert_eq!(node.kept_rows(), asked.oracle.rows() as u64 - said.suppressed(), "{:?}", said.levels);
            assert_eq!(node.surely_suppressed_rows(), said.surely_suppressed(), "{:?}", said.levels);
            assert_eq!(node.suppressed_individuals(), said.suppressed_people(), "{:?}", said.levels);
            assert_eq!(
                node.surely_suppressed_individuals(),
                said.surely_suppressed_people(),
                "{:?}",
                said.levels
            );
            assert_eq!(node.min_class(), said.kept_sizes().min(), "{:?}", said.levels);
            assert_eq!(node.kept_classes(), said.kept_sizes().count() as u64, "{:?}", said.levels);
            assert_eq!(node.squares(), said.squares(), "{:?}", said.levels);
            // Every class: its size, its verdict and its sensitive values.
            let mut classes: Vec<(u64, bool, Vec<(Option<u32>, u64)>)> = node
                .all()
                .map(|(class, rows, kept)| {
                    let counts = node.sensitive(class, 0).unwrap_or_default();
                    (rows, kept, counts.iter().map(|count| (count.value, count.count)).collect())
                })
                .collect();
            let histogram = |rows: &[usize]| {
                let counts = asked.oracle.histogram(rows).into_iter().filter(|_| counted);
                counts.map(|(value, count)| (value.map(number), count)).collect()
            };
            let members = said.classes.iter();
            let mut expected: Vec<_> =
                members.map(|class| (class.rows.len() as u64, class.kept, histogram(&class.rows))).collect();
            classes.sort();
            expected.sort();
            assert_eq!(classes, expected, "{:?}", said.levels);
            // Every class: its people, and how many of them have each value.
            let mut people: Vec<(u64, Vec<(Option<u32>, u64)>)> = node
                .all()
                .map(|(class, rows, _)| {
                    let by_value = node.by_value(class, 0).iter().map(|count| (count.value, count.count));
                    (node.size(class, rows), by_value.collect())
                })
                .collect();
            let having = |rows: &[usize]| {
                let counts = asked.oracle.having(rows).into_iter().filter(|_| counted);
                counts.map(|(value, count)| (value.map(number), count)).collect()
            };
            let members = said.classes.iter();
            let mut expected: Vec<_> =
                members.map(|class| (class.people.len() as u64, having(&class.rows))).collect();
            people.sort();
            expected.sort();
            assert_eq!(people, expected, "{:?}", said.levels);
            for objective in &objectives {
                let (name, value) = (objective.doc().name, objective.value(node));
                let formula = asked.oracle.loss(name, said);
                assert!(close(value, formula), "{name} at {:?}: {value}, by rows {formula}", said.levels);
            }
            seen.push(node.levels().to_vec());
        },
    );
    prop_assert_eq!(visited.unwrap(), seen.len() as u64);
    seen.sort();
    prop_assert!(seen.iter().eq(asked.nodes.keys()), "not every node was visited once");
    Ok(())
}

/// What is claimed to grow or to stay true going up does so: in the oracle's rows, and to the last bit in the
/// library's losses, which a search takes as bounds.
fn nodes_grow_as_declared(asked: &Asked) -> Result<(), TestCaseError> {
    let objectives = asked.objectives();
    let losses = asked.losses(&objectives);
    let survives = asked.merge();
    for low in asked.nodes.values() {
        // A large lattice by single steps, from which most of the claims follow.
        let steps = if asked.nodes.len() > 60 { 1 } else { usize::MAX };
        let near =
            |high: &Node| high.levels.iter().sum::<usize>() - low.levels.iter().sum::<usize>() <= steps;
        for high in asked.nodes.values().filter(|high| is_below(&low.levels, &high.levels) && near(high)) {
            let said = format!("from {:?} to {:?}", low.levels, high.levels);
            let (below, above) = (low.suppressed(), high.suppressed());
            // For every limit: the nodes within it are upward closed.
            prop_assert!(survives != Merge::Any || above <= below, "suppressed rows grow {said}");
            prop_assert!(survives == Merge::None || below > 0 || above == 0, "suppression begins {said}");
            let (below_people, above_people) = (low.suppressed_people(), high.suppressed_people());
            prop_assert!(survives != Merge::Any || above_people <= below_people, "suppression grows {said}");
            let sure = high.surely_suppressed_people();
            prop_assert!(
                sure <= low.surely_suppressed_people() && sure <= below_people,
                "sure people {said}"
            );
            prop_assert!(high.surely_suppressed() <= low.surely_suppressed(), "sure rows grow {said}");
            prop_assert!(high.surely_suppressed() <= below, "a class is kept below {said}");
            let values = losses[&low.levels].iter().zip(&losses[&high.levels]);
            for (objective, (value, higher)) in objectives.iter().zip(values) {
                let grows = match objective.grows() {
                    Grows::Always => true,
                    Grows::WithoutSuppression => below == 0 && above == 0,
                    Grows::No => false,
                };
                let name = objective.doc().name;
                prop_assert!(!grows || value.total_cmp(higher).is_le(), "{name} shrinks {said}");
            }
        }
    }
    Ok(())
}

/// The bounds of random intervals, from what a search knows of them and from all that is true of them.
fn bounds_hold(asked: &Asked, limit: u64, picks: &[(Index, Index)]) -> Result<(), TestCaseError> {
    let objectives = asked.objectives();
    let losses = asked.losses(&objectives);
    let all: Vec<&Node> = asked.nodes.values().collect();
    let n = asked.oracle.rows() as u64;
    for (a, b) in picks {
        let (a, b) = (&a.get(&all).levels, &b.get(&all).levels);
        let low: Vec<usize> = a.iter().zip(b).map(|(a, b)| *a.min(b)).collect();
        let high: Vec<usize> = a.iter().zip(b).map(|(a, b)| *a.max(b)).collect();
        let within = |node: &&Node| is_below(&low, &node.levels) && is_below(&node.levels, &high);
        let nodes: Vec<&Node> = asked.anonymous(limit).filter(within).collect();
        let most_rows = asked.table.most_rows_of(limit);
        for node in &nodes {
            prop_assert!(
                node.suppressed() <= most_rows,
                "{:?} suppresses more than {most_rows}",
                node.levels
            );
        }
        let lowest = &asked.nodes[&low];
        let classes = || nodes.iter().flat_map(|node| &node.classes);
        let failing = classes().filter(|class| !class.kept).map(|class| class.rows.len() as u64);
        let known = Interval {
            table: &asked.table,
            low: &low,
            suppressed: asked.nodes[&high].surely_suppressed(),
            limit: most_rows,
            classes: lowest.classes.len() as u64,
            squares: lowest.squares(),
            min_size: asked.min_size(),
            max_failing: n,
        };
        let of_rows = asked.oracle.counted() == Counted::Rows;
        let by_sizes =
            of_rows && !asked.is_over_some && asked.rules.iter().all(|rule| matches!(rule, Rule::Size(_)));
        let labels = asked.table.columns().iter().zip(&low).map(|(c, l)| c.level(*l).leaves().len() as u64);
        let most = labels.product::<u64>().min(asked.table.base().len() as u64).max(1);
        let tightest = Interval {
            suppressed: nodes.iter().map(|node| node.suppressed()).min().unwrap_or(0),
            classes: nodes.iter().map(|node| node.classes.len() as u64).max().unwrap_or(0),
            squares: nodes.iter().map(|node| node.squares()).min().unwrap_or(0),
            min_size: nodes.iter().flat_map(|node| node.kept_rows()).min().unwrap_or(1),
            max_failing: failing.max().unwrap_or(0),
            ..known
        };
        let intervals = [
            known,
            Interval { max_failing: if by_sizes { known.min_size - 1 } else { n }, ..known },
            Interval { classes: most, squares: u128::from(n * n / most), ..known },
            tightest,
        ];
        for (number, objective) in objectives.iter().enumerate() {
            for interval in &intervals {
                let bound = objective.bound(interval);
                for node in &nodes {
                    let (name, loss) = (objective.doc().name, losses[&node.levels][number]);
                    prop_assert!(
                        bound.total_cmp(&loss).is_le(),
                        "{name} {loss} at {:?} is below the bound {bound} of {interval:?} to {high:?}",
                        node.levels
                    );
                }
            }
        }
    }
    Ok(())
}

/// The minimal nodes, in their order.
fn minimal_is_right(asked: &Asked, limit: u64, picks: &[(Index, Index)]) -> Result<(), TestCaseError> {
    let objective = *picks[0].0.get(&asked.objectives());
    let problem = asked.problem(objective, limit);
    let (found, evaluated) = minimal(Lattice { problem: &problem, options: &asked.options(1) }).unwrap();
    let is_minimal = |node: &&Node| {
        asked.anonymous(limit).all(|low| low.levels == node.levels || !is_below(&low.levels, &node.levels))
    };
    let expected: Vec<&Vec<usize>> =
        asked.anonymous(limit).filter(is_minimal).map(|node| &node.levels).collect();
    let mut levels: Vec<&Vec<usize>> = found.iter().map(|node| &node.levels).collect();
    levels.sort();
    prop_assert_eq!(levels, expected, "limit {}", limit);
    prop_assert!(found.windows(2).all(|pair| pair[0].compare(&pair[1]).is_lt()), "out of order");
    found.iter().try_for_each(|node| found_is_right(asked, objective, node))?;
    prop_assert!(evaluated <= asked.nodes.len() as u64);
    Ok(())
}

/// What is said of a found node is what its rows say.
fn found_is_right(asked: &Asked, objective: &dyn LossMeasure, found: &Found) -> Result<(), TestCaseError> {
    let node = &asked.nodes[&found.levels];
    prop_assert_eq!(found.suppressed_rows, node.suppressed());
    prop_assert_eq!(found.suppressed_individuals, node.suppressed_people());
    prop_assert_eq!(found.classes, node.kept_sizes().count() as u64);
    prop_assert_eq!(found.min_class, node.kept_sizes().min());
    let loss = asked.oracle.loss(objective.doc().name, node);
    prop_assert!(close(found.loss, loss), "{} at {:?}: {loss}", found.loss, found.levels);
    Ok(())
}

/// Losses that are whole numbers, in which the oracle does not round.
const WHOLE: [&str; 5] =
    ["height", "discernibility", "discernibility_star", "distinct_tuples", "suppressed_rows"];

/// `optimal` and `exhaustive` agree to the bit, with one thread and with two, and with the oracle.
fn search_is_right(
    asked: &Asked,
    objective: &dyn LossMeasure,
    limit: u64,
    top: usize,
) -> Result<(), TestCaseError> {
    let said = format!("{}, limit {limit}, top {top}", objective.doc().name);
    let search = |row: &LatticeRow, threads| -> Outcome {
        let method = row.with(&[], asked.options(top)).unwrap();
        method.search(&Problem { threads, ..asked.problem(objective, limit) }).unwrap()
    };
    let (exhaustive, optimal) = (search(&exhaustive::ROW, 1), search(&optimal::ROW, 1));
    prop_assert_eq!(&exhaustive, &search(&exhaustive::ROW, 2), "{}", said);
    prop_assert_eq!(&optimal, &search(&optimal::ROW, 2), "{}", said);
    let (best, every) = (found(&optimal), found(&exhaustive));
    prop_assert_eq!(bits(&every), bits(&best), "{}", said);
    let nodes = asked.nodes.len() as u64;
    prop_assert_eq!((exhaustive.nodes, exhaustive.evaluated, exhaustive.proven), (Some(nodes), nodes, true));
    prop_assert_eq!((optimal.nodes, optimal.proven), (Some(nodes), true), "{}", said);
    prop_assert!(optimal.evaluated <= nodes, "{} evaluates {} of {nodes}", said, optimal.evaluated);
    let least = best.first().map(|found| found.loss);
    prop_assert_eq!((exhaustive.bound, optimal.bound), (least, least), "{}", said);

    let name = objective.doc().name;
    let mut expected: Vec<(f64, usize, &Node)> = asked
        .anonymous(limit)
        .map(|node| (asked.oracle.loss(name, node), node.levels.iter().sum(), node))
        .collect();
    expected
        .sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then_with(|| a.2.levels.cmp(&b.2.levels)));
    prop_assert_eq!(best.len(), expected.len().min(top), "{}", said);
    prop_assert!(best.windows(2).all(|pair| pair[0].compare(&pair[1]).is_lt()), "{} unsorted", said);
    for (place, found) in best.iter().enumerate() {
        found_is_right(asked, objective, found)?;
        let loss = expected[place].0;
        prop_assert!(close(found.loss, loss), "{said}, place {place}: {} for {loss}", found.loss);
        let apart = |other: Option<usize>| {
            other.and_then(|at| expected.get(at)).is_none_or(|(other, ..)| !close(*other, loss))
        };
        if WHOLE.contains(&name) || (apart(place.checked_sub(1)) && apart(Some(place + 1))) {
            prop_assert_eq!(&found.levels, &expected[place].2.levels, "{}, place {}", said, place);
        }
    }
    Ok(())
}

/// The same for the same effort, honest about what is proven, and proven when every node may be evaluated.
fn anytime_is_right(
    asked: &Asked,
    objective: &dyn LossMeasure,
    limit: u64,
    top: usize,
) -> Result<(), TestCaseError> {
    let search = |row: &LatticeRow, effort, threads| -> Outcome {
        let options = LatticeOptions { effort: Some(Effort::Nodes(effort)), ..asked.options(top) };
        let method = row.with(&[], options).unwrap();
        method.search(&Problem { threads, ..asked.problem(objective, limit) }).unwrap()
    };
    let truth = search(&exhaustive::ROW, 0, 1);
    let nodes = asked.nodes.len() as u64;
    for effort in [1, 5, 20, 1_000, nodes, nodes.saturating_sub(1).max(1)] {
        let said = format!("{}, limit {limit}, top {top}, effort {effort}", objective.doc().name);
        let outcome = search(&anytime::ROW, effort, 1);
        prop_assert_eq!(&outcome, &search(&anytime::ROW, effort, 1), "{}", said);
        prop_assert_eq!(&outcome, &search(&anytime::ROW, effort, 2), "{}", said);
        let best = found(&outcome);
        prop_assert!(best.windows(2).all(|pair| pair[0].compare(&pair[1]).is_lt()), "{}", said);
        for found in &best {
            prop_assert!(found.suppressed_individuals <= limit, "{}", said);
            found_is_right(asked, objective, found)?;
        }
        if let Some(optimum) = truth.best.first() {
            let honest = outcome.bound.is_some_and(|bound| bound.total_cmp(&optimum.loss).is_le());
            prop_assert!(honest, "{said}: {:?} is no bound of {}", outcome.bound, optimum.loss);
        }
        if outcome.proven {
            let best_of_all = found(&truth);
            prop_assert_eq!(bits(&best), bits(&best_of_all), "{}", said);
            prop_assert_eq!(outcome.bound, truth.bound, "{}", said);
        }
        prop_assert!(outcome.proven || effort < nodes, "{said}: {nodes} nodes, and nothing proven");
        prop_assert_eq!(outcome.nodes, Some(nodes), "{}", said);
    }
    Ok(())
}

/// From 50,000 base classes on, nodes are evaluated by several threads and several at a time.
#[test]
fn threads_change_nothing_in_a_large_table() {
    const CLASSES: i64 = 50_400;
    let columns = [(251, 1), (97, 7), (8, 5)].map(|(size, factor)| {
        let value = |at: i64| (at * factor + at / 1_000) % size;
        Arc::new(Int64Array::from_iter_values((0..CLASSES).map(value))) as ArrayRef
    });
    // The last column tells all rows apart.
    let all: ArrayRef = Arc::new(Int64Array::from_iter_values(0..CLASSES));
    let values = [&columns[..], &[all]].concat();
    let widths = [vec![2, 20], vec![10], vec![4], vec![30, 300, 3_000]];
    let quasi = widths.iter().enumerate().map(|(at, widths)| {
        let widths: Vec<_> = widths.iter().map(|width| Decimal::integer(*width)).collect();
        let hierarchy = Hierarchy::new(&DataType::Int64, range::ROW.of(widths).unwrap()).unwrap();
        QuasiColumn { name: format!("column_{at}"), hierarchy, weight: 1.0 }
    });
    let budget: Arc<dyn Budget> = Arc::new(Unlimited);
    let mut builder = ClassTableBuilder::new(quasi.collect(), vec![], &budget).unwrap();
    builder.add(&values, &(0..CLASSES).map(|at| 1 + (at % 3) as u64).collect::<Vec<_>>()).unwrap();
    let table = builder.finish().unwrap();
    let ranges = table.heights().into_iter().map(|height| 0..=height).collect();
    let options = LatticeOptions { ranges, top: 5, effort: Some(Effort::Nodes(12)), global: Vec::new() };
    let names = ["granularity", "discernibility", "non_uniform_entropy"];
    for objective in LOSSES.iter().filter(|loss| names.contains(&loss.doc().name)) {
        for (requirements, limit) in [([Rule::Size(5)], 3_000), ([Rule::Odd], 40_000)] {
            let requirements = requirements.map(Rule::requirement);
            let search = |row: &LatticeRow, threads| {
                let problem = Problem {
                    table: &table,
                    requirements: &requirements,
                    objective: *objective,
                    ends: Ends::Values,
                    limit,
                    threads,
                    progress: &Silent,
                    stop: &CancelToken::default(),
                };
                row.with(&[], options.clone()).unwrap().search(&problem).unwrap()
            };
            let said = format!("{}, {requirements:?}", objective.doc().name);
            let exhaustive = search(&exhaustive::ROW, 2);
            assert!(!exhaustive.best.is_empty(), "{said}");
            for row in [&optimal::ROW, &anytime::ROW] {
                let alone = search(row, 1);
                for threads in [2, 3] {
                    assert_eq!(alone, search(row, threads), "{said}");
                }
                assert!(!alone.proven || bits(&found(&alone)) == bits(&found(&exhaustive)), "{said}");
                assert!(alone.bound.unwrap() <= exhaustive.best[0].loss, "{said}");
            }
            assert!(search(&optimal::ROW, 2).proven, "{said}");
        }
    }
}
