//! Mondrian against a naive recursion on rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Int32Array, StringViewArray, UInt8Array};
use proptest::prelude::*;

use super::*;
use crate::class::tests::quasi;
use crate::class::{
    Budget, ClassTable, ClassTableBuilder, EncodedColumn, QuasiColumn, Region, Union, Unlimited,
};
use crate::error::ErrorKind;
use crate::generalize::{Ends, Value};
use crate::measure::granularity::Granularity;
use crate::method::partition::cuts::{Cut, Cuts, Judge};
use crate::method::partition::least_loss::LeastLoss;
use crate::method::partition::released;
use crate::model::{Requirement, k_anonymity::KAnonymity, l_diversity::LDiversity};
use crate::progress::{CancelToken, Silent};

const WORDS: [&str; 4] = ["a", "b", "c", "d"];

/// A number that may be missing, another one, a word, a sensitive value and an individual.
pub(crate) type Row = (Option<u8>, u8, u8, u8, Option<u8>);

pub(crate) fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row =
        (prop::option::weighted(0.9, 0..12u8), 0..4u8, 0..4u8, 0..3u8, prop::option::weighted(0.8, 0..20u8));
    prop::collection::vec(row, 1..60)
}

fn table(rows: &[Row], counts_individuals: bool) -> ClassTable {
    table_with(rows, counts_individuals, false)
}

/// The table of the rows; `has_labels` adds a column that shows labels: two letters, the first of
/// them, or nothing.
pub(crate) fn table_with(rows: &[Row], counts_individuals: bool, has_labels: bool) -> ClassTable {
    let mut groups: BTreeMap<Row, u64> = BTreeMap::new();
    for (a, b, c, value, individual) in rows {
        *groups.entry((*a, *b, *c, *value, individual.filter(|_| counts_individuals))).or_default() += 1;
    }
    let keys = || groups.keys();
    let a: ArrayRef = Arc::new(keys().map(|row| row.0.map(i32::from)).collect::<Int32Array>());
    let b: ArrayRef =
        Arc::new(Int32Array::from_iter_values(keys().map(|row| i32::from(row.1) * i32::from(row.1))));
    let c: ArrayRef =
        Arc::new(StringViewArray::from_iter_values(keys().map(|row| WORDS[usize::from(row.2)])));
    let value: ArrayRef = Arc::new(UInt8Array::from_iter_values(keys().map(|row| row.3)));
    let letters = keys().map(|row| format!("{}{}", WORDS[usize::from(row.1)], WORDS[usize::from(row.3)]));
    let d: ArrayRef = Arc::new(StringViewArray::from_iter_values(letters));
    let mut columns = vec![quasi("a", &a, None), quasi("b", &b, Some(("range", &[5]))), quasi("c", &c, None)];
    if has_labels {
        columns.push(quasi("d", &d, Some(("prefix", &[1]))));
    }
    let budget: Arc<dyn Budget> = Arc::new(Unlimited);
    let mut builder = ClassTableBuilder::new(columns, vec!["value".into()], &budget).unwrap();
    let mut values = if has_labels { vec![a, b, c, d, value] } else { vec![a, b, c, value] };
    if counts_individuals {
        builder = builder.counting_individuals();
        values.push(Arc::new(keys().map(|row| row.4).collect::<UInt8Array>()));
    }
    builder.add(&values, &groups.values().copied().collect::<Vec<_>>()).unwrap();
    builder.finish().unwrap()
}

/// The numbers that order a row's quasi-identifiers; NULL is below all.
fn numbers(row: &Row) -> [Option<i64>; 3] {
    [row.0.map(i64::from), Some(i64::from(row.1) * i64::from(row.1)), Some(i64::from(row.2))]
}

/// The rows cut naively: those of each part.
fn parts(rows: &[Row], k: u64, l: u64, counts_individuals: bool) -> Vec<Vec<Row>> {
    let holds = |part: &[Row]| {
        let holders: BTreeSet<usize> = (part.iter().enumerate())
            .filter_map(|(at, row)| if counts_individuals { row.4.map(usize::from) } else { Some(at) })
            .collect();
        let mut of_value: BTreeMap<u8, BTreeSet<usize>> = BTreeMap::new();
        for (at, row) in part.iter().enumerate() {
            let holder = if counts_individuals { row.4.map(usize::from) } else { Some(at) };
            of_value.entry(row.3).or_default().extend(holder);
        }
        of_value.retain(|_, holders| !holders.is_empty());
        // Without the most common value's holders, somebody is left for each other value.
        let most = of_value.values().map(BTreeSet::len).max().unwrap_or(0);
        let diversity = of_value.len().min((holders.len() + 1).saturating_sub(most));
        holders.len() as u64 >= k && diversity as u64 >= l
    };
    let domain = |column: usize| -> (f64, f64) {
        let all: BTreeSet<i64> = rows.iter().filter_map(|row| numbers(row)[column]).collect();
        let ends = all.first().copied().zip(all.last().copied());
        // Words by their place among those that occur.
        ends.map_or((0.0, 0.0), |(least, most)| (least as f64, (most - least) as f64))
    };
    let words: BTreeSet<u8> = rows.iter().map(|row| row.2).collect();
    let place = |column: usize, row: &Row| match column {
        2 => {
            let at = words.iter().position(|word| *word == row.2).unwrap();
            at as f64 / (words.len() - 1).max(1) as f64
        }
        _ => match (numbers(row)[column], domain(column)) {
            (Some(number), (least, span)) if span > 0.0 => (number as f64 - least) / span,
            // One value and NULL: by their number.
            (Some(_), _) if rows.iter().any(|row| numbers(row)[column].is_none()) => 1.0,
            _ => 0.0,
        },
    };
    fn recurse(
        part: Vec<Row>,
        holds: &dyn Fn(&[Row]) -> bool,
        place: &dyn Fn(usize, &Row) -> f64,
        done: &mut Vec<Vec<Row>>,
    ) {
        let mut columns: Vec<(usize, f64)> = (0..3)
            .map(|column| {
                let places: Vec<f64> = part.iter().map(|row| place(column, row)).collect();
                let most = places.iter().copied().fold(f64::MIN, f64::max);
                (column, most - places.iter().copied().fold(f64::MAX, f64::min))
            })
            .collect();
        columns.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (column, _) in columns {
            let mut sorted: Vec<Option<i64>> = part.iter().map(|row| numbers(row)[column]).collect();
            sorted.sort_unstable();
            if sorted.first() == sorted.last() {
                continue;
            }
            let mut median = sorted[(sorted.len() - 1) / 2];
            if Some(&median) == sorted.last() {
                median = sorted.iter().copied().filter(|value| *value < median).max().unwrap();
            }
            let (left, right): (Vec<Row>, Vec<Row>) =
                part.iter().copied().partition(|row| numbers(row)[column] <= median);
            if holds(&left) && holds(&right) {
                recurse(left, holds, place, done);
                return recurse(right, holds, place, done);
            }
        }
        done.push(part);
    }
    let mut done = Vec::new();
    if holds(rows) {
        recurse(rows.to_vec(), &holds, &place, &mut done);
    }
    done
}

pub(crate) fn requirements(k: u64, l: u64) -> [Requirement; 2] {
    [
        Requirement::of_sizes(KAnonymity::new(k).unwrap()),
        Requirement::new(Box::new(LDiversity::new(l).unwrap()), Some("value".into())),
    ]
}

static GO_ON: LazyLock<CancelToken> = LazyLock::new(CancelToken::default);

pub(crate) fn problem<'a>(table: &'a ClassTable, requirements: &'a [Requirement]) -> Problem<'a> {
    let (objective, progress, stop) = (&Granularity, &Silent, &*GO_ON);
    Problem { table, requirements, objective, ends: Ends::Closed, limit: 0, threads: 1, progress, stop }
}

pub(crate) fn options(table: &ClassTable) -> Options {
    Options {
        ranges: table.heights().into_iter().map(|height| 0..=height).collect(),
        top: 1,
        effort: None,
        global: Vec::new(),
    }
}

fn mondrian(table: &ClassTable, cut: CutAll) -> Mondrian {
    Mondrian { cut, options: options(table) }
}

type Texts = Vec<Option<String>>;

/// The quasi-identifiers of a row as text.
fn texts(row: &Row) -> Texts {
    let [a, b, _] = numbers(row);
    vec![a.map(|a| a.to_string()), b.map(|b| b.to_string()), Some(WORDS[usize::from(row.2)].to_owned())]
}

/// What a class of these rows shows: intervals of the numbers, the set of the words.
fn shown(part: &[Row]) -> Texts {
    let interval = |column: usize| {
        let values = || part.iter().map(|row| numbers(row)[column]);
        let (least, most) = (values().flatten().min()?, values().flatten().max()?);
        let text = if least == most { least.to_string() } else { format!("[{least},{most}]") };
        Some(if values().any(|value| value.is_none()) { text + " or missing" } else { text })
    };
    let words: BTreeSet<&str> = part.iter().map(|row| WORDS[usize::from(row.2)]).collect();
    let words: Vec<&str> = words.into_iter().collect();
    let words = if let [one] = words[..] { one.to_owned() } else { format!("{{{}}}", words.join("; ")) };
    vec![interval(0), interval(1), Some(words)]
}

/// The base classes of each part, cut naively by least loss: all cuts are made, and each is judged
/// by the regions that its sides would show.
fn parts_by_loss(table: &ClassTable, requirements: &[Requirement]) -> BTreeSet<Vec<u32>> {
    let code = |class: u32, column: usize| table.code(table.base(), class as usize, column);
    let rows =
        |part: &[u32]| part.iter().map(|class| table.base().rows_of(*class as usize)).sum::<u64>() as f64;
    let codes = |part: &[u32], column: usize| -> Vec<u32> {
        part.iter().map(|class| code(*class, column)).collect::<BTreeSet<u32>>().into_iter().collect()
    };
    let loss = |part: &[u32]| {
        let of_column = |(at, column): (usize, &EncodedColumn)| {
            let leaves = Region::around(column, codes(part, at)).unwrap().leaves(column);
            column.weight() * (1.0 / (column.leaves().max(2) - 1) as f64) * (leaves - 1) as f64
        };
        table.columns().iter().enumerate().map(of_column).sum::<f64>() * rows(part)
    };
    let mut union = Union::new(table, requirements).unwrap();
    let (mut open, mut done) =
        (vec![(0u32..).take(table.base().len()).collect::<Vec<u32>>()], BTreeSet::new());
    if !union.holds(&open[0]) {
        return done;
    }
    while let Some(part) = open.pop() {
        let mut cuts: Vec<(f64, Vec<u32>, Vec<u32>)> = Vec::new();
        for (at, column) in table.columns().iter().enumerate() {
            let values = codes(&part, at);
            let mut lefts: Vec<Vec<u32>> = (1..values.len()).map(|end| values[..end].to_vec()).collect();
            let shared = Region::around(column, values.clone()).unwrap();
            let label = |value: u32| match shared {
                Region::Interval { .. } | Region::OrMissing { .. } => 0,
                Region::Set(_) => value,
                Region::Everything => column.map(0, column.height() - 1).unwrap()[value as usize],
                Region::Label { level, .. } => column.map(0, level - 1).unwrap()[value as usize],
            };
            let runs: Vec<Vec<u32>> =
                values.chunk_by(|a, b| label(*a) == label(*b)).map(<[u32]>::to_vec).collect();
            lefts.extend(runs.iter().take(runs.len() - 1).skip(1).cloned());
            for left in lefts {
                let (left, right): (Vec<u32>, Vec<u32>) =
                    part.iter().partition(|class| left.contains(&code(**class, at)));
                let saves = (loss(&part) - loss(&left) - loss(&right)) / (rows(&left) * rows(&right)).sqrt();
                cuts.push((saves, left, right));
            }
        }
        // Stable: of equal cuts the first one of the first column.
        cuts.sort_by(|a, b| b.0.total_cmp(&a.0));
        match cuts.into_iter().find(|(_, left, right)| union.holds(left) && union.holds(right)) {
            Some((_, left, right)) => open.extend([left, right]),
            None => drop(done.insert(part)),
        }
    }
    done
}

/// Cuts that fail on the first part.
struct Failing;

impl Cuts for Failing {
    type Part = Vec<u32>;
    type Scratch = ();

    fn shown(&self, _: &Vec<u32>) -> Result<Option<Box<[Region]>>> {
        Ok(None)
    }

    fn whole(&self) -> Vec<u32> {
        vec![0]
    }

    fn classes(part: &Vec<u32>) -> &[u32] {
        part
    }

    fn scratch(&self) -> Result<()> {
        Ok(())
    }

    fn cut(&self, _: Vec<u32>, _: &mut Judge<'_>, (): &mut ()) -> Result<Cut<Vec<u32>>> {
        panic!("a fault of the test")
    }
}

#[test]
fn a_thread_that_panics_ends_the_others() {
    let table = table(&[(None, 0, 0, 0, None)], false);
    let problem = Problem { threads: 3, ..problem(&table, &[]) };
    let error = cut_all(&problem, &Failing).unwrap_err().to_string();
    assert!(error.contains("a thread panicked"), "{error}");
}

/// The parts {a1, b1} and {c1, d1} show everything, and so become one class. There flu and asthma
/// are each held by all.
#[test]
fn all_rows_are_one_class_where_joined_parts_fail() {
    let rows = [(1, "a1", 0), (2, "b1", 1), (1, "c1", 1), (2, "d1", 0), (3, "e1", 2), (4, "e2", 3)];
    let codes: ArrayRef = Arc::new(StringViewArray::from_iter_values(rows.map(|(_, code, _)| code)));
    let people: ArrayRef = Arc::new(UInt8Array::from_iter_values(rows.map(|(person, ..)| person)));
    let value: ArrayRef = Arc::new(UInt8Array::from_iter_values(rows.map(|(.., value)| value)));
    let columns = vec![quasi("code", &codes, Some(("prefix", &[1])))];
    let budget: Arc<dyn Budget> = Arc::new(Unlimited);
    let builder = ClassTableBuilder::new(columns, vec!["value".into()], &budget).unwrap();
    let mut builder = builder.counting_individuals();
    builder.add(&[codes, value, people], &[1; 6]).unwrap();
    let table = builder.finish().unwrap();
    let requirements = requirements(2, 2);
    for (split, cut) in SPLITS {
        let outcome = mondrian(&table, cut).search(&problem(&table, &requirements)).unwrap();
        let [best] = outcome.best.as_slice() else { panic!("{split:?} found {:?}", outcome.best) };
        assert_eq!((best.classes, best.suppressed_rows, best.min_class), (1, 0, Some(4)), "{split:?}");
    }
}

/// One of many rows has a second value: no cut leaves both sides diverse.
#[test]
fn a_requirement_that_vetoes_every_cut_is_not_tried_at_all_of_them() {
    let many = 2_000u16;
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values((0..many).map(i32::from)));
    let value: ArrayRef =
        Arc::new(UInt8Array::from_iter_values((0..many).map(|at| u8::from(at == many / 2))));
    let budget: Arc<dyn Budget> = Arc::new(Unlimited);
    let columns = vec![quasi("n", &numbers, None)];
    let mut builder = ClassTableBuilder::new(columns, vec!["value".into()], &budget).unwrap();
    builder.add(&[numbers, value], &vec![1; usize::from(many)]).unwrap();
    let (table, requirements) = (builder.finish().unwrap(), requirements(2, 2));
    let outcome = mondrian(&table, SPLITS[3].1).search(&problem(&table, &requirements)).unwrap();
    assert_eq!((outcome.evaluated, outcome.best[0].classes), (256, 1));
}

/// The best cuts are all in one column, where the requirement vetoes them; a cut of the other column holds.
#[test]
fn vetoes_in_one_column_leave_cuts_of_others() {
    let many = 2_000u16;
    let middle = many / 2;
    let numbers = (0..many).chain([middle]).map(i32::from);
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(numbers));
    let sexes = (0..=many).map(|at| if at % 2 == 0 && at < many { "f" } else { "m" });
    let sexes: ArrayRef = Arc::new(StringViewArray::from_iter_values(sexes));
    let value = (0..=many).map(|at| u8::from(at == middle || at == many));
    let value: ArrayRef = Arc::new(UInt8Array::from_iter_values(value));
    let budget: Arc<dyn Budget> = Arc::new(Unlimited);
    let columns =
        vec![quasi("n", &numbers, None), QuasiColumn { weight: 0.001, ..quasi("sex", &sexes, None) }];
    let mut builder = ClassTableBuilder::new(columns, vec!["value".into()], &budget).unwrap();
    builder.add(&[numbers, sexes, value], &vec![1; usize::from(many) + 1]).unwrap();
    let (table, requirements) = (builder.finish().unwrap(), requirements(2, 2));
    for (split, cut) in SPLITS {
        let outcome = mondrian(&table, cut).search(&problem(&table, &requirements)).unwrap();
        assert_eq!(outcome.best[0].classes, 2, "{split}");
    }
}

#[test]
fn a_stop_ends_the_search() {
    let table = table(&[(None, 0, 0, 0, None), (Some(1), 0, 0, 0, None)], false);
    let stop = CancelToken::default();
    stop.cancel();
    let requirements = requirements(1, 1);
    let problem = Problem { stop: &stop, ..problem(&table, &requirements) };
    for (split, cut) in SPLITS {
        let error = mondrian(&table, cut).search(&problem).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{split:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_cuts_as_the_naive_recursion_does(
        rows in rows(),
        k in 1..6u64,
        l in 1..3u64,
        counts_individuals in any::<bool>(),
    ) {
        let table = table(&rows, counts_individuals);
        let requirements = requirements(k, l);
        let problem = problem(&table, &requirements);
        let (found_parts, _) = cut_all(&problem, &Medians::new(&table, ColumnRank::Span, false, Ends::Closed).unwrap()).unwrap();
        let released = (!found_parts.is_empty()).then(|| released(&table, found_parts).unwrap());
        let expected = parts(&rows, k, l, counts_individuals);
        let mut found: BTreeMap<u32, (Vec<Texts>, Texts)> = BTreeMap::new();
        if let Some(released) = &released {
            for (base, (class, rows)) in released.class_of_base().iter().zip(table.base().rows()).enumerate() {
                let columns = || table.columns().iter().enumerate();
                let value = |(at, column): (usize, &EncodedColumn)| {
                    let code = table.code(table.base(), base, at);
                    Value::read(column.level(0).labels(), code as usize).unwrap().text_form()
                };
                let class = class.unwrap();
                let shown = |(at, column): (usize, &EncodedColumn)| {
                    let label = released.regions()[class as usize][at].label(column).unwrap();
                    label.write(column.hierarchy().input_type())
                };
                let (all, _) = found.entry(class).or_insert_with(|| (vec![], columns().map(shown).collect()));
                let values: Texts = columns().map(value).collect();
                all.extend(std::iter::repeat_n(values, usize::try_from(rows).unwrap()));
            }
        }
        let mut found: Vec<(Vec<Texts>, Texts)> = found.into_values().collect();
        let mut expected: Vec<(Vec<Texts>, Texts)> =
            expected.iter().map(|part| (part.iter().map(texts).collect(), shown(part))).collect();
        for (rows, _) in found.iter_mut().chain(&mut expected) {
            rows.sort();
        }
        found.sort();
        expected.sort();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn it_cuts_as_the_naive_choice_of_least_loss_does(
        rows in rows(),
        k in 1..6u64,
        l in 1..3u64,
        counts_individuals in any::<bool>(),
        threads in 1..3usize,
    ) {
        let table = table_with(&rows, counts_individuals, true);
        let requirements = requirements(k, l);
        let problem = Problem { threads, ..problem(&table, &requirements) };
        let cuts = LeastLoss::new(&table, k, Ends::Closed).unwrap();
        let found = cut_all(&problem, &cuts).unwrap().0.into_iter().map(|mut part| {
            part.classes.sort_unstable();
            part.classes
        });
        prop_assert_eq!(found.collect::<BTreeSet<_>>(), parts_by_loss(&table, &requirements));
    }
}
