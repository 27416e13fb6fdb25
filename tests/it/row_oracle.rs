//! The oracle of the search laws: random tables, and what every node of their lattices is, recomputed from
//! generalized rows by the formulae as they are published. No class table, no code and no roll-up is used.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Date32Array, Float64Array, Int64Array, StringViewArray};
use datafusion_kanon::internals::class::{Budget, ClassTable, ClassTableBuilder, QuasiColumn, Unlimited};
use datafusion_kanon::internals::decimal::Decimal;
use datafusion_kanon::internals::generalize::clip::Clip;
use datafusion_kanon::internals::generalize::{GENERALIZERS, Hierarchy, Value};
use datafusion_kanon::internals::model::{Counted, Merge};
use datafusion_kanon::internals::parameter::{Setting, TextTable};
use proptest::prelude::*;

use super::test_models::{Row, Rule};

/// How many kinds of columns there are, each with another kind of hierarchy.
const KINDS: usize = 9;
/// How many values a column of each kind can have, NULL besides.
const VALUES: u8 = 7;

/// A random table. A cell is the place of its value among those of its column's kind.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    pub(crate) kinds: Vec<usize>,
    weights: Vec<f64>,
    /// The cells of the quasi-identifiers of each row.
    cells: Vec<Vec<Option<u8>>>,
    sensitive: Vec<Option<u8>>,
    /// Whose row each is, where people are counted.
    individuals: Option<Vec<Option<u8>>>,
}

impl Rows {
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whose row it is: where rows are counted, somebody's of whom there is no other.
    fn who(&self, row: usize) -> Option<usize> {
        match &self.individuals {
            Some(individuals) => individuals[row].map(usize::from),
            None => Some(row),
        }
    }
}

/// Tables of two to four columns with `rows` rows. A column has as many different values as its spread, one
/// of them often NULL.
pub(crate) fn tables(rows: RangeInclusive<usize>) -> impl Strategy<Value = Rows> {
    // Most people have several rows, some rows are nobody's.
    let who = (0..=11u8).prop_map(|who| who.checked_sub(1));
    let row = (prop::array::uniform4(0..=VALUES), prop::option::weighted(0.85, 0..4u8), who);
    let spread = || prop_oneof![1 => Just(1..2u8), 6 => Just(2..5u8), 3 => Just(5..9u8)].prop_flat_map(|s| s);
    let weight = || prop_oneof![3 => Just(1.0), 6 => 0.1..3.0f64, 1 => Just(1e-15)];
    (
        prop::sample::subsequence((0..KINDS).collect::<Vec<_>>(), 2..=4).prop_shuffle(),
        prop::collection::vec(row, rows),
        prop::array::uniform4((spread(), 0..=VALUES)),
        prop::array::uniform4(weight()),
        any::<bool>(),
    )
        .prop_map(|(kinds, rows, spreads, weights, of_people)| {
            let cell = |(picked, (spread, first)): (&u8, &(u8, u8))| {
                ((picked % spread + first) % (VALUES + 1)).checked_sub(1)
            };
            let cells = |picked: &[u8; 4]| picked.iter().zip(&spreads).take(kinds.len()).map(cell).collect();
            Rows {
                cells: rows.iter().map(|(picked, ..)| cells(picked)).collect(),
                sensitive: rows.iter().map(|(_, value, _)| *value).collect(),
                individuals: of_people.then(|| rows.iter().map(|(.., who)| *who).collect()),
                weights: weights[..kinds.len()].to_vec(),
                kinds,
            }
        })
}

/// A column: its hierarchy, its values, and the rows of its hierarchy file where it has one.
struct Column {
    hierarchy: Hierarchy,
    values: ArrayRef,
    file: Option<Vec<Vec<String>>>,
}

fn lines(file: &[&str]) -> Vec<Vec<String>> {
    file.iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

/// Ten towns, three of which never occur; the last label is the top.
fn towns() -> Vec<Vec<String>> {
    let text = "a n *,b n *,c s *,d s *,e s *,f w *,g w *,x w *,y n *,z o *";
    lines(&text.split(',').collect::<Vec<_>>())
}

/// Nine jobs without a top, two of which never occur.
fn jobs() -> Vec<Vec<String>> {
    let text = "a care work,b care work,c farm work,d farm work,e none rest,f none rest,g old rest,y old rest,z care work";
    lines(&text.split(',').collect::<Vec<_>>())
}

fn column(kind: usize, cells: &[Option<u8>]) -> Column {
    let numbers =
        |list: &[&str]| Some(list.iter().map(|n| Decimal::parse(n).unwrap()).collect::<Vec<_>>().into());
    let place = |cell: &Option<u8>| cell.map(usize::from);
    let texts = |values: [&'static str; 7]| -> ArrayRef {
        Arc::new(cells.iter().map(|c| place(c).map(|at| values[at])).collect::<StringViewArray>())
    };
    let letters = ["a", "b", "c", "d", "e", "f", "g"];
    let (key, argument, values): (&str, Option<Setting>, ArrayRef) = match kind {
        0 => {
            let values = cells.iter().map(|c| place(c).map(|at| [-7i64, 3, 9, 10, 35, 99, 104][at]));
            ("range", numbers(&["10", "50"]), Arc::new(values.collect::<Int64Array>()))
        }
        1 => {
            let values = cells.iter().map(|c| place(c).map(|at| [-0.75, 0.0, 0.25, 0.5, 1.5, 4.75, 5.0][at]));
            ("floor", numbers(&["0.5", "5"]), Arc::new(values.collect::<Float64Array>()))
        }
        2 => {
            let values = texts(["021", "0213", "02139", "9é8", "9é", "", "03"]);
            ("prefix", numbers(&["3", "1"]), values)
        }
        3 => {
            let values = cells.iter().map(|c| place(c).map(|at| [-40_000, -1, 0, 30, 31, 59, 3_653][at]));
            ("date", Some(vec!["month", "year"].into()), Arc::new(values.collect::<Date32Array>()))
        }
        4 => ("", None, texts(letters)),
        5 => ("file", Some(TextTable::from(towns()).into()), texts(letters)),
        6 => ("file", Some(TextTable::from(jobs()).into()), texts(letters)),
        7 => {
            let values = cells.iter().map(|c| place(c).map(|at| [-7i64, 3, 9, 10, 35, 99, 104][at]));
            ("range", numbers(&["10", "50"]), Arc::new(values.collect::<Int64Array>()))
        }
        _ => {
            let values = cells.iter().map(|c| place(c).map(|at| [-0.75, 0.0, 0.25, 0.5, 1.5, 4.75, 5.0][at]));
            ("floor", numbers(&["0.5", "5"]), Arc::new(values.collect::<Float64Array>()))
        }
    };
    let levels = argument.as_ref().map_or(Vec::new(), |argument| {
        let row = GENERALIZERS.iter().find(|row| row.key == Some(key)).unwrap();
        row.of(argument.clone()).unwrap()
    });
    let file = match argument {
        Some(Setting::Table(table)) => Some(table.rows().to_vec()),
        _ => None,
    };
    let hierarchy = Hierarchy::new(values.data_type(), levels).unwrap();
    // The kinds 7 and 8 are the kinds 0 and 1 clipped: level 0 makes one of values that differ.
    let clip = |low: &str, high: &str| {
        let end = |end: &str| Some(Decimal::parse(end).unwrap());
        hierarchy.clipped(&Clip::new(end(low), end(high)).unwrap()).unwrap()
    };
    let hierarchy = match kind {
        7 => clip("5", "30"),
        8 => clip("0.25", "4.5"),
        _ => hierarchy,
    };
    Column { hierarchy, values, file }
}

/// The name of a column in the class table.
pub(crate) fn column_name(at: usize) -> String {
    format!("column_{at}")
}

/// The class table of these rows, its groups in two batches.
fn class_table(rows: &Rows, counts_sensitive: bool) -> ClassTable {
    let mut groups: BTreeMap<(Vec<Option<u8>>, Option<u8>, Option<u8>), u64> = BTreeMap::new();
    for (row, (cells, value)) in rows.cells.iter().zip(&rows.sensitive).enumerate() {
        let who = rows.individuals.as_ref().and_then(|individuals| individuals[row]);
        *groups.entry((cells.clone(), value.filter(|_| counts_sensitive), who)).or_default() += 1;
    }
    let groups: Vec<_> = groups.into_iter().collect();
    let quasi = rows.kinds.iter().zip(&rows.weights).enumerate().map(|(at, (kind, weight))| QuasiColumn {
        name: column_name(at),
        hierarchy: column(*kind, &[]).hierarchy,
        weight: *weight,
    });
    let sensitive = counts_sensitive.then(|| "value".into());
    let budget: Arc<dyn Budget> = Arc::new(Unlimited);
    let mut builder =
        ClassTableBuilder::new(quasi.collect(), sensitive.into_iter().collect(), &budget).unwrap();
    if rows.individuals.is_some() {
        builder = builder.counting_individuals();
    }
    let (first, second) = groups.split_at(groups.len() / 3);
    for batch in [first, second] {
        let cells = |at: usize| batch.iter().map(move |((cells, ..), _)| cells[at]).collect::<Vec<_>>();
        let kinds = rows.kinds.iter().enumerate();
        let mut arrays: Vec<ArrayRef> = kinds.map(|(at, kind)| column(*kind, &cells(at)).values).collect();
        if counts_sensitive {
            let texts = batch.iter().map(|((_, value, _), _)| value.map(|value| format!("value {value}")));
            arrays.push(Arc::new(texts.collect::<StringViewArray>()));
        }
        if rows.individuals.is_some() {
            let people = batch.iter().map(|((.., who), _)| who.map(i64::from));
            arrays.push(Arc::new(people.collect::<Int64Array>()));
        }
        builder.add(&arrays, &batch.iter().map(|(_, rows)| *rows).collect::<Vec<_>>()).unwrap();
    }
    builder.finish().unwrap()
}

/// What is known of the rows of one column at one level.
struct Level {
    /// The label of each row, equal labels with equal numbers.
    labels: Vec<usize>,
    /// The leaves below each row's label.
    leaves: Vec<u64>,
    /// F: the rows with each row's label.
    alike: Vec<u64>,
}

/// The oracle of one table.
pub(crate) struct Oracle {
    rows: Rows,
    /// By column and level.
    levels: Vec<Vec<Level>>,
    /// D of each column.
    leaves: Vec<u64>,
}

/// The class table of these rows, and their oracle.
pub(crate) fn table_and_oracle(rows: &Rows, counts_sensitive: bool) -> (ClassTable, Oracle) {
    let (mut levels, mut leaves) = (Vec::new(), Vec::new());
    for (at, kind) in rows.kinds.iter().enumerate() {
        let cells: Vec<_> = rows.cells.iter().map(|cells| cells[at]).collect();
        let (of_levels, all) = of_column(&column(*kind, &cells));
        levels.push(of_levels);
        leaves.push(all);
    }
    (class_table(rows, counts_sensitive), Oracle { rows: rows.clone(), levels, leaves })
}

/// The levels of one column, and D.
fn of_column(column: &Column) -> (Vec<Level>, u64) {
    let Column { hierarchy, values, file } = column;
    let rows = || 0..values.len();
    let labels: Vec<Vec<Option<String>>> = (hierarchy.levels().iter())
        .map(|level| {
            let one = |row| level.generalize_value(&Value::read(values, row).unwrap()).unwrap().text_form();
            rows().map(one).collect()
        })
        .collect();
    let distinct = labels[0].iter().collect::<BTreeSet<_>>().len();
    let has_null = rows().any(|row| values.is_null(row));
    let all = file.as_ref().map_or(distinct, |file| file.len() + usize::from(has_null));
    let leaves = |level: usize, row: usize| match (file, &labels[level][row]) {
        _ if level == 0 => 1,
        _ if level == hierarchy.height() => all,
        (Some(_), None) => 1,
        (Some(file), Some(label)) => file.iter().filter(|line| line[level] == *label).count(),
        (None, label) => {
            let below = rows().filter(|other| labels[level][*other] == *label);
            below.map(|other| &labels[0][other]).collect::<BTreeSet<_>>().len()
        }
    };
    let of_level = |level: usize| {
        let known: BTreeSet<_> = labels[level].iter().collect();
        let number = |row: usize| known.iter().position(|label| *label == &labels[level][row]).unwrap();
        let alike =
            |row: usize| rows().filter(|other| labels[level][*other] == labels[level][row]).count() as u64;
        Level {
            labels: rows().map(number).collect(),
            leaves: rows().map(|row| leaves(level, row) as u64).collect(),
            alike: rows().map(alike).collect(),
        }
    };
    ((0..labels.len()).map(of_level).collect(), all as u64)
}

/// A class of a node: the numbers of its rows.
#[derive(Debug, Clone)]
pub(crate) struct Members {
    pub(crate) rows: Vec<usize>,
    /// Who is in it; NULL is nobody.
    pub(crate) people: BTreeSet<usize>,
    pub(crate) kept: bool,
    /// Whether the parts of the class at every node below fail too.
    fails_below: bool,
}

/// A judged node.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) levels: Vec<usize>,
    pub(crate) classes: Vec<Members>,
}

impl Node {
    fn count(&self, which: impl Fn(&Members) -> bool) -> u64 {
        self.classes.iter().filter(|class| which(class)).map(|class| class.rows.len() as u64).sum()
    }

    pub(crate) fn suppressed(&self) -> u64 {
        self.count(|class| !class.kept)
    }

    pub(crate) fn surely_suppressed(&self) -> u64 {
        self.count(|class| class.fails_below)
    }

    fn people(&self, which: impl Fn(&Members) -> bool) -> u64 {
        let people = self.classes.iter().filter(|class| which(class)).flat_map(|class| &class.people);
        people.collect::<BTreeSet<_>>().len() as u64
    }

    pub(crate) fn suppressed_people(&self) -> u64 {
        self.people(|class| !class.kept)
    }

    pub(crate) fn surely_suppressed_people(&self) -> u64 {
        self.people(|class| class.fails_below)
    }

    /// The rows of kept classes.
    pub(crate) fn kept_rows(&self) -> impl Iterator<Item = u64> + '_ {
        self.classes.iter().filter(|class| class.kept).map(|class| class.rows.len() as u64)
    }

    /// The sizes of kept classes, in people.
    pub(crate) fn kept_sizes(&self) -> impl Iterator<Item = u64> + '_ {
        self.classes.iter().filter(|class| class.kept).map(|class| class.people.len() as u64)
    }

    pub(crate) fn squares(&self) -> u128 {
        self.classes.iter().map(|class| (class.rows.len() as u128).pow(2)).sum()
    }
}

impl Oracle {
    pub(crate) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The sensitive values of some rows: how often each occurs, NULL first.
    pub(crate) fn histogram(&self, rows: &[usize]) -> BTreeMap<Option<u8>, u64> {
        let mut counts = BTreeMap::new();
        rows.iter().for_each(|row| *counts.entry(self.rows.sensitive[*row]).or_insert(0) += 1);
        counts
    }

    /// What sizes count.
    pub(crate) fn counted(&self) -> Counted {
        if self.rows.individuals.is_some() { Counted::Individuals } else { Counted::Rows }
    }

    /// How many people there are.
    pub(crate) fn people(&self) -> usize {
        (0..self.rows()).filter_map(|row| self.rows.who(row)).collect::<BTreeSet<_>>().len()
    }

    /// How many people of some rows have each sensitive value, NULL first.
    pub(crate) fn having(&self, rows: &[usize]) -> BTreeMap<Option<u8>, u64> {
        let pairs: BTreeSet<_> =
            rows.iter().filter_map(|row| Some((self.rows.sensitive[*row], self.rows.who(*row)?))).collect();
        let mut counts = BTreeMap::new();
        pairs.into_iter().for_each(|(value, _)| *counts.entry(value).or_insert(0) += 1);
        counts
    }

    /// Groups the generalized rows of a node and judges the groups; then, in rounds, those that are
    /// kept by the rule over some of the columns.
    pub(crate) fn node(&self, levels: &[usize], rules: &[Rule], over: Option<&(Rule, Vec<usize>)>) -> Node {
        let label = |row: usize, column: usize| self.levels[column][levels[column]].labels[row];
        let mut groups: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        for row in 0..self.rows() {
            let tuple = (0..levels.len()).map(|column| label(row, column));
            groups.entry(tuple.collect()).or_default().push(row);
        }
        let row = |row: usize| (self.rows.who(row), self.rows.sensitive[row]);
        let all: Vec<Row> = (0..self.rows()).map(row).collect();
        let size =
            |rows: &[Row]| rows.iter().filter_map(|(who, _)| *who).collect::<BTreeSet<_>>().len() as u64;
        let judged = |rows: Vec<usize>| {
            let values: Vec<Row> = rows.iter().map(|at| row(*at)).collect();
            let holds = |rule: &Rule| rule.holds_for(&values, &all, self.counted());
            let people: BTreeSet<usize> = values.iter().filter_map(|(who, _)| *who).collect();
            let too_small = |rule: &Rule| (people.len() as u64) < rule.min_size();
            let fails = |rule: &Rule| rule.merge(self.counted()) == Merge::Any && !holds(rule);
            Members {
                kept: rules.iter().all(|rule| !too_small(rule) && holds(rule)),
                fails_below: rules.iter().any(|rule| too_small(rule) || fails(rule)),
                people,
                rows,
            }
        };
        let mut classes: Vec<Members> = groups.into_values().map(judged).collect();
        let Some((rule, columns)) = over else { return Node { levels: levels.to_vec(), classes } };
        let tuple = |class: &Members| -> Vec<usize> {
            columns.iter().map(|column| label(class.rows[0], *column)).collect()
        };
        // The tuples over these columns whose rows, those of the chosen classes, fail.
        let failing =
            |classes: &[Members], chosen: &dyn Fn(&Members) -> bool, fails: &dyn Fn(&[Row]) -> bool| {
                let mut rows: BTreeMap<Vec<usize>, Vec<Row>> = BTreeMap::new();
                for class in classes.iter().filter(|class| chosen(class)) {
                    rows.entry(tuple(class)).or_default().extend(class.rows.iter().map(|at| row(*at)));
                }
                let failing = rows.into_iter().filter(|(_, rows)| fails(rows)).map(|(tuple, _)| tuple);
                failing.collect::<BTreeSet<_>>()
            };
        let holds = |rows: &[Row]| rule.holds_for(rows, &all, self.counted());
        let never = failing(&classes, &|_| true, &|rows| {
            size(rows) < rule.min_size() || (rule.merge(self.counted()) == Merge::Any && !holds(rows))
        });
        for class in classes.iter_mut().filter(|class| never.contains(&tuple(class))) {
            (class.kept, class.fails_below) = (false, true);
        }
        loop {
            let failing = failing(&classes, &|class| class.kept, &|rows| !holds(rows));
            if failing.is_empty() {
                return Node { levels: levels.to_vec(), classes };
            }
            for class in classes.iter_mut().filter(|class| failing.contains(&tuple(class))) {
                class.kept = false;
            }
        }
    }

    /// A loss by its formula.
    pub(crate) fn loss(&self, name: &str, node: &Node) -> f64 {
        let (n, m) = (self.rows() as f64, node.levels.len() as f64);
        let columns = || self.levels.iter().zip(&node.levels).enumerate();
        let height = |column: usize| (self.levels[column].len() - 1) as f64;
        let members =
            || node.classes.iter().flat_map(|class| class.rows.iter().map(move |row| (*row, class)));
        let (suppressed, kept) = (node.suppressed() as f64, node.kept_sizes().count() as f64);
        match name {
            "height" => node.levels.iter().sum::<usize>() as f64,
            "relative_height" => columns().map(|(i, (_, level))| *level as f64 / height(i)).sum(),
            "distinct_tuples" => 0.0 - kept,
            "suppressed_rows" => suppressed,
            _ if self.rows() == 0 => 0.0,
            "precision_loss" => {
                let cell = |(i, level): (usize, usize)| {
                    let one = |class: &Members| if class.kept { level as f64 / height(i) } else { 1.0 };
                    members().map(|(_, class)| one(class)).sum::<f64>() / n
                };
                columns().map(|(i, (_, level))| cell((i, *level))).sum::<f64>() / m
            }
            "discernibility" => {
                members().map(|(_, class)| if class.kept { class.rows.len() as f64 } else { n }).sum()
            }
            "discernibility_star" => members().map(|(_, class)| class.rows.len() as f64).sum(),
            "average_class_size" => n / (kept + if suppressed > 0.0 { 1.0 } else { 0.0 }),
            "granularity" => {
                let product: f64 = self.granularities(node).map(|(weight, x)| 1.0 + weight * x).product();
                product.powf(1.0 / m) - 1.0
            }
            "granularity_mean" => self.granularities(node).map(|(weight, x)| weight * x).sum::<f64>() / m,
            "non_uniform_entropy" => {
                columns().map(|(_, (column, level))| entropy(column, *level, node)).sum()
            }
            "classification_metric" => {
                let wrong = |class: &Members| {
                    let majority = self.histogram(&class.rows).into_values().max().unwrap();
                    class.rows.len() as f64 - if class.kept { majority as f64 } else { 0.0 }
                };
                node.classes.iter().map(wrong).sum::<f64>() / n
            }
            other => panic!("the oracle has no formula for {other}"),
        }
    }

    /// The weight and X of each column.
    fn granularities<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = (f64, f64)> + 'a {
        let heaviest = self.rows.weights.iter().copied().fold(0.0, f64::max);
        let n = self.rows() as f64;
        (0..node.levels.len()).map(move |column| {
            let (level, all) = (&self.levels[column][node.levels[column]], self.leaves[column] as f64);
            let covered = |class: &Members| match class.kept {
                true => class.rows.iter().map(|row| level.leaves[*row] as f64 / all).sum::<f64>(),
                false => class.rows.len() as f64,
            };
            let covered: f64 = node.classes.iter().map(covered).sum();
            let x = if all <= 1.0 { 0.0 } else { ((covered - n / all) / (n - n / all)).max(0.0) };
            (self.rows.weights[column] / heaviest, x)
        })
    }
}

/// The bits that a column loses: of every row which value its label stands for, and of every suppressed row
/// which label it had.
fn entropy(column: &[Level], level: usize, node: &Node) -> f64 {
    let (values, labels) = (&column[0], &column[level]);
    let rows = 0..values.labels.len();
    let told = rows.map(|row| (values.alike[row] as f64 / labels.alike[row] as f64).log2());
    let suppressed: Vec<usize> =
        node.classes.iter().filter(|class| !class.kept).flat_map(|class| class.rows.clone()).collect();
    let hidden = suppressed.iter().map(|row| {
        let alike = suppressed.iter().filter(|other| labels.labels[**other] == labels.labels[*row]).count();
        (alike as f64 / suppressed.len() as f64).log2()
    });
    // Not from -0.0, which an empty sum of floats is.
    0.0 - told.chain(hidden).sum::<f64>()
}
