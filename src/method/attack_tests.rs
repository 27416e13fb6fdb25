//! Attacks by someone who knows the method, the policy and the release, and who tries every table that it may come from.
//!
//! - Minimality (Wong, Fu, Wang & Pei 2007; Cormode, Srivastava, Li & Li 2010): the attacker also knows everybody's
//!   quasi-identifiers and class, and asks who has which sensitive value. All assignments of values count the same. Without
//!   suppression it makes no difference if some values are rare, because a release shows how often each occurs.
//! - Downcoding (Cohen 2022): the attacker only knows that rows are drawn independently from a domain in which all tuples are
//!   equally likely, and asks which of the values that a class covers its rows really have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, StringViewArray, UInt8Array};

use super::partition::mondrian::tests::{options, problem, requirements};
use super::*;
use crate::class::{Budget, ClassTableBuilder, Union, Unlimited, tests::quasi};
use crate::generalize::{RegionLabel, Value};
use crate::measure::classification_metric::ClassificationMetric;
use crate::model::k_anonymity::KAnonymity;

/// A column: its name, and the key and the numbers of its hierarchy.
type Column = (&'static str, Option<(&'static str, &'static [i64])>);

const ZIP: Column = ("zip", Some(("prefix", &[4])));
const SEX: Column = ("sex", None);
const AGE: Column = ("age", Some(("range", &[10, 20])));

/// The tuples of each kept class, by what it shows. Between columns there is a `/`.
type Release = BTreeMap<String, BTreeSet<String>>;

/// The class table of rows: a tuple, a sensitive value, and how many.
fn table(columns: &[Column], rows: &[(&String, u8, u64)]) -> ClassTable {
    let (mut quasis, mut arrays) = (Vec::new(), Vec::new());
    for (at, (name, key)) in columns.iter().enumerate() {
        let texts = rows.iter().map(|(tuple, ..)| tuple.split('/').nth(at).unwrap());
        let values: ArrayRef = match key {
            Some(("range", _)) => Arc::new(Int32Array::from_iter_values(texts.map(|n| n.parse().unwrap()))),
            _ => Arc::new(StringViewArray::from_iter_values(texts)),
        };
        quasis.push(quasi(name, &values, *key));
        arrays.push(values);
    }
    arrays.push(Arc::new(UInt8Array::from_iter_values(rows.iter().map(|(_, value, _)| *value))));
    let budget: Arc<dyn Budget> = Arc::new(Unlimited);
    let mut builder = ClassTableBuilder::new(quasis, vec!["value".into()], &budget).unwrap();
    builder.add(&arrays, &rows.iter().map(|(.., count)| *count).collect::<Vec<_>>()).unwrap();
    builder.finish().unwrap()
}

/// Every method that makes classes, with each choice that its parameters allow; `strategies` needs a list.
fn methods() -> Vec<MethodSpec> {
    let is_other = |name: &str| matches!(kind_of(name), ReleaseKind::Groups | ReleaseKind::Noise);
    let is_tried = |name: &str| name != "strategies" && !is_other(name);
    let mut all: Vec<_> = variants().into_iter().filter(|method| is_tried(&method.name)).collect();
    for name in METHODS.iter().map(|row| row.doc().name).filter(|name| is_tried(name)) {
        if all.iter().all(|method| method.name != name) {
            all.push(MethodSpec::named(name));
        }
    }
    all
}

/// What else a policy says, beside its models.
type Adjust<'a> = &'a dyn Fn(&mut Problem<'_>, &mut lattice::Options);
/// What is published; `None` if nothing is found. Methods without cuts show values instead.
fn release(
    method: &MethodSpec,
    table: &ClassTable,
    models: &[Requirement],
    adjust: Adjust<'_>,
) -> Option<Release> {
    let (mut problem, mut options) = (problem(table, models), options(table));
    adjust(&mut problem, &mut options);
    if row(&method.name).is_some_and(|row| !row.shows_cuts()) {
        problem.ends = Ends::Values;
    }
    let best = search(method, &problem, &options).unwrap().1.best.into_iter().next()?;
    let columns = || table.columns().iter().enumerate();
    let code = |base: u32, at: usize| table.code(table.base(), base as usize, at);
    let text = |column: &EncodedColumn, level: usize, code: u32| {
        Value::read(column.level(level).labels(), code as usize).unwrap().text_form().unwrap()
    };
    // By the codes of their labels, or by their numbers.
    let mut classes: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
    for base in (0u32..).take(table.base().len()) {
        let label = |(at, column): (usize, &EncodedColumn), level: usize| {
            column.map(0, level).unwrap()[code(base, at) as usize]
        };
        let class = match &best.recoding {
            Recoding::Levels(levels) => {
                columns().zip(levels).map(|(column, level)| label(column, *level)).collect()
            }
            Recoding::Classes(released) => released.class_of_base()[base as usize].into_iter().collect(),
            Recoding::Groups(_) | Recoding::Clusters(_) => unreachable!("{method} makes no classes"),
        };
        classes.entry(class).or_default().push(base);
    }
    let mut union = Union::new(table, models).unwrap();
    classes.retain(|class, members| !class.is_empty() && union.holds(members));
    let mut release = Release::new();
    for (class, members) in &classes {
        let label = |(at, column): (usize, &EncodedColumn)| {
            let region = match &best.recoding {
                Recoding::Levels(levels) => return text(column, levels[at], class[at]),
                Recoding::Classes(released) if released.shows_centroids() => {
                    return released.centroid(class[0] as usize, at).flatten().unwrap_or("NULL").to_owned();
                }
                Recoding::Classes(released) => &released.regions()[class[0] as usize][at],
                Recoding::Groups(_) | Recoding::Clusters(_) => unreachable!("{method} makes no classes"),
            };
            let kept: BTreeSet<u32> = classes.values().flatten().map(|base| code(*base, at)).collect();
            let kept: Vec<u32> = kept.into_iter().collect();
            let value = |code: u32| {
                let place = column.level(0).of_value().iter().position(|label| *label == code);
                Value::read(column.values(), place.unwrap()).unwrap()
            };
            let (least, greatest) = (value(kept[0]), value(kept[kept.len() - 1]));
            let label = match problem.ends {
                Ends::Cuts => region.label_of_cuts(column, &kept),
                Ends::Values | Ends::Closed => region.label_among(column, &kept),
            };
            let label = label.unwrap().without_ends_at(&least, &greatest);
            label.write(column.hierarchy().input_type()).unwrap()
        };
        let shown: Vec<String> = columns().map(label).collect();
        let tuples = release.entry(shown.join("/")).or_default();
        for base in members {
            let tuple: Vec<String> = columns().map(|(at, column)| text(column, 0, code(*base, at))).collect();
            tuples.insert(tuple.join("/"));
        }
    }
    Some(release)
}

/// All ways to deal `n` people to `kinds`, each with the number of its assignments.
fn deals(n: u64, kinds: usize) -> Vec<(Vec<u64>, u64)> {
    if kinds == 1 {
        return vec![(vec![n], 1)];
    }
    let of_first = |first: u64| {
        let choices = (0..first).fold(1, |product, i| product * (n - i) / (i + 1));
        let rest = deals(n - first, kinds - 1).into_iter();
        rest.map(move |(rest, ways)| ([vec![first], rest].concat(), choices * ways))
    };
    (0..=n).flat_map(of_first).collect()
}

/// What the attacker of minimality knows beforehand.
struct People {
    columns: &'static [Column],
    /// Those who share their quasi-identifiers, and how many they are.
    groups: BTreeMap<String, u64>,
    /// The number of sensitive values.
    values: usize,
    /// How many people have each, if that is known.
    totals: Option<&'static [u64]>,
}

/// How many people of each group have each value.
type World = Vec<Vec<u64>>;

/// What the attacker sees: the class of each group, and the values in each class.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    class_of: Vec<Option<String>>,
    values: BTreeMap<String, Vec<u64>>,
}

/// What the attacker concludes of a person of a group and a value, as fractions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Belief {
    group: usize,
    value: usize,
    posterior: (u64, u64),
    /// The value's share in the person's class, which the release shows.
    share: (u64, u64),
}

impl Belief {
    fn is_shown(&self) -> bool {
        self.posterior.0 * self.share.1 == self.posterior.1 * self.share.0
    }
}

impl People {
    fn new(columns: &'static [Column], tuples: &str, values: usize) -> Self {
        let mut groups = BTreeMap::new();
        tuples.split(' ').for_each(|tuple| *groups.entry(tuple.to_owned()).or_default() += 1);
        Self { columns, groups, values, totals: None }
    }

    /// Every assignment of values; those that differ by people of one group are one world.
    fn worlds(&self) -> Vec<(World, u64)> {
        let mut worlds: Vec<(World, u64)> = vec![(Vec::new(), 1)];
        for people in self.groups.values() {
            let deals = deals(*people, self.values);
            let with = |(world, ways): (World, u64)| {
                let with = |(deal, more): &(Vec<u64>, u64)| {
                    ([world.as_slice(), std::slice::from_ref(deal)].concat(), ways * more)
                };
                deals.iter().map(with).collect::<Vec<_>>()
            };
            worlds = worlds.into_iter().flat_map(with).collect();
        }
        let total = |world: &World, value: usize| world.iter().map(|deal| deal[value]).sum::<u64>();
        let is_one =
            |world: &World, totals: &[u64]| (0..self.values).all(|at| total(world, at) == totals[at]);
        worlds.retain(|(world, _)| self.totals.is_none_or(|totals| is_one(world, totals)));
        worlds
    }

    fn table(&self, world: &World) -> ClassTable {
        let of_group =
            |(tuple, deal)| (0u8..).zip(deal).map(move |(value, count): (_, &u64)| (tuple, value, *count));
        let rows = self.groups.keys().zip(world).flat_map(of_group).filter(|(.., count)| *count > 0);
        table(self.columns, &rows.collect::<Vec<_>>())
    }

    fn see(&self, release: &Release, world: &World) -> Seen {
        let class_of = |tuple: &String| {
            release.iter().find(|(_, tuples)| tuples.contains(tuple)).map(|(shown, _)| shown.clone())
        };
        let class_of: Vec<Option<String>> = self.groups.keys().map(class_of).collect();
        let mut values: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (class, deal) in class_of.iter().zip(world) {
            let Some(class) = class else { continue };
            let counts = values.entry(class.clone()).or_insert_with(|| vec![0; self.values]);
            counts.iter_mut().zip(deal).for_each(|(sum, count)| *sum += count);
        }
        Seen { class_of, values }
    }

    /// Attacks each release that these people can cause.
    fn attack(
        &self,
        method: &MethodSpec,
        models: &[Requirement],
        adjust: Adjust<'_>,
    ) -> BTreeMap<Seen, Vec<Belief>> {
        let mut worlds_of: BTreeMap<Seen, Vec<(World, u64)>> = BTreeMap::new();
        for (world, ways) in self.worlds() {
            let Some(release) = release(method, &self.table(&world), models, adjust) else { continue };
            worlds_of.entry(self.see(&release, &world)).or_default().push((world, ways));
        }
        let beliefs = |(seen, worlds): (Seen, Vec<(World, u64)>)| {
            let all: u64 = worlds.iter().map(|(_, ways)| ways).sum();
            let mut beliefs = Vec::new();
            for (group, people) in self.groups.values().enumerate() {
                let Some(class) = &seen.class_of[group] else { continue };
                let counts = &seen.values[class];
                for value in 0..self.values {
                    let have = worlds.iter().map(|(world, ways)| ways * world[group][value]).sum();
                    let share = (counts[value], counts.iter().sum());
                    beliefs.push(Belief { group, value, posterior: (have, all * people), share });
                }
            }
            (seen, beliefs)
        };
        worlds_of.into_iter().map(beliefs).collect()
    }
}

fn only_k(k: u64) -> [Requirement; 1] {
    [Requirement::of_sizes(KAnonymity::new(k).unwrap())]
}

/// A few people, among them those that `local`, `clusters` and `best` give more away of than other methods.
fn few_people() -> [(People, Ends); 4] {
    let few = || People::new(&[AGE, SEX], "21/f 28/f 28/f 28/m 34/f 34/f", 2);
    let by_age = "98103/28 98103/47 98103/47 98105/23 98201/21 98201/23 98202/55";
    let by_sex = "98103/f 98103/m 98103/m 98105/f 98105/f 98201/m 98202/f 98202/f";
    [
        (few(), Ends::Values),
        (few(), Ends::Cuts),
        (People::new(&[ZIP, AGE], by_age, 2), Ends::Values),
        (People::new(&[ZIP, SEX], by_sex, 2), Ends::Cuts),
    ]
}

/// No method looks at sensitive values but to check the policy's models.
#[test]
fn under_k_anonymity_alone_the_attacker_learns_nothing() {
    for (people, ends) in few_people() {
        let limit = if ends == Ends::Cuts { 2 } else { 0 };
        for method in methods() {
            let seen = people.attack(&method, &only_k(2), &|problem, _| {
                problem.ends = ends;
                problem.limit = limit;
            });
            let recodings: BTreeSet<_> = seen.keys().map(|seen| &seen.class_of).collect();
            assert_eq!(recodings.len(), 1, "{method}");
            assert!(seen.values().flatten().all(Belief::is_shown), "{method}");
        }
    }
}

#[test]
fn an_objective_that_counts_sensitive_values_gives_them_away() {
    let people = People::new(&[ZIP, SEX], "98103/f 98103/f 98103/m 98105/f 98105/m 98105/m", 2);
    let mut tell = BTreeSet::new();
    for method in methods() {
        let by_class: Adjust<'_> = &|problem, _| problem.objective = &ClassificationMetric;
        let seen = people.attack(&method, &only_k(2), by_class);
        let is_shown = seen.values().flatten().all(Belief::is_shown);
        tell.extend((!is_shown).then_some(method.name));
    }
    // Those whose choice between levels is that of the objective.
    let of_levels = methods()
        .into_iter()
        .filter(|method| method.kind() == ReleaseKind::Levels && method.name != "datafly");
    let expected = of_levels.map(|method| method.name).chain(["best", "local"].map(str::to_owned));
    assert_eq!(tell, expected.collect());
}

/// Five people in one class, two of them with flu: those of 98103, who would be a class of their own otherwise.
#[test]
fn l_diversity_of_two_lets_the_attacker_be_certain() {
    let people = People::new(&[ZIP], "98103 98103 98105 98105 98105", 4);
    let people = People { totals: Some(&[2, 1, 1, 1]), ..people };
    for (method, ends) in methods().iter().flat_map(|method| [(method, Ends::Values), (method, Ends::Cuts)]) {
        // Both have it in each of six of the 60 assignments.
        let both = Belief { group: 0, value: 0, posterior: (12, 12), share: (2, 5) };
        let none = Belief { group: 1, value: 0, posterior: (0, 18), share: (2, 5) };
        for (seen, beliefs) in people.attack(method, &requirements(2, 2), &|problem, _| problem.ends = ends) {
            match seen.values.len() {
                1 => assert!(beliefs.contains(&both) && beliefs.contains(&none), "{method}"),
                _ => assert!(beliefs.iter().all(Belief::is_shown), "{method}"),
            }
        }
    }
}

/// The same with three values in each class: two of the three people of 98103 have flu, and the attacker
/// cannot tell which two.
#[test]
fn l_diversity_of_three_leaves_the_attacker_two_thirds() {
    let people = People::new(&[ZIP], "98103 98103 98103 98105 98105 98105 98105", 6);
    let people = People { totals: Some(&[2, 1, 1, 1, 1, 1]), ..people };
    for method in methods() {
        let seen = people.attack(&method, &requirements(3, 3), &|_, _| ());
        let told = seen.values().flatten().filter(|belief| !belief.is_shown());
        let most = told.max_by_key(|belief| belief.posterior.0 * 1_000 / belief.posterior.1).unwrap();
        assert_eq!((most.group, most.value, most.share), (0, 0, (2, 7)), "{method}");
        assert_eq!(most.posterior.0 * 3, most.posterior.1 * 2, "{method}");
    }
}

/// Where the models vetoed nothing, the attacker learns nothing, unless the method also tries other classes than unions of
/// those released.
#[test]
fn classes_that_k_alone_would_make_tell_nothing_by_most_methods() {
    let mut tell = BTreeSet::new();
    for (people, ends) in few_people() {
        let (world, _) = &people.worlds()[0];
        for method in methods() {
            let of_k = release(&method, &people.table(world), &only_k(2), &|problem, _| problem.ends = ends);
            let of_k = people.see(&of_k.unwrap(), world).class_of;
            let seen = people.attack(&method, &requirements(2, 2), &|problem, _| problem.ends = ends);
            let mut same = seen.iter().filter(|(seen, _)| seen.class_of == of_k).flat_map(|(_, told)| told);
            tell.extend((!same.all(Belief::is_shown)).then_some(method.name));
        }
    }
    assert_eq!(tell.into_iter().collect::<Vec<_>>(), ["best", "clusters", "local"]);
}

#[test]
fn levels_chosen_in_advance_tell_nothing() {
    let (people, models) = (&few_people()[3].0, requirements(2, 2));
    for method in methods().into_iter().filter(|method| method.kind() == ReleaseKind::Levels) {
        for (zip, sex) in [(0, 1), (1, 0), (1, 1), (2, 0)] {
            let ranges = [zip..=zip, sex..=sex];
            let seen = people.attack(&method, &models, &|_, options| options.ranges = ranges.to_vec());
            assert!(seen.values().flatten().all(Belief::is_shown), "{method}");
        }
    }
}

/// What a table of four rows puts into each class: the rows of each of the eight tuples.
type Classes = BTreeMap<String, Vec<u64>>;

/// The tables with each release, which shows the classes and their sizes; each with the number of orders of its rows.
type TablesOf = BTreeMap<BTreeMap<String, u64>, Vec<(Classes, u64)>>;

fn domain() -> Vec<String> {
    let zips = ["98103", "98105", "98402", "98405"].iter();
    zips.flat_map(|zip| ["f", "m"].map(|sex| format!("{zip}/{sex}"))).collect()
}

fn tables_of(method: &MethodSpec, ends: Ends) -> TablesOf {
    let (domain, mut tables_of) = (domain(), TablesOf::new());
    for (counts, ways) in deals(4, domain.len()) {
        let rows = domain.iter().zip(&counts).filter(|(_, count)| **count > 0);
        let rows: Vec<(&String, u8, u64)> = rows.map(|(tuple, count)| (tuple, 0, *count)).collect();
        let table = table(&[ZIP, SEX], &rows);
        let released = release(method, &table, &only_k(2), &|problem, _| problem.ends = ends).unwrap();
        let classes = released.into_iter().map(|(shown, tuples)| {
            let rows = domain.iter().zip(&counts);
            (shown, rows.map(|(tuple, count)| if tuples.contains(tuple) { *count } else { 0 }).collect())
        });
        let classes: Classes = classes.collect();
        let seen = classes.iter().map(|(shown, rows)| (shown.clone(), rows.iter().sum())).collect();
        tables_of.entry(seen).or_default().push((classes, ways));
    }
    tables_of
}

/// The bits of the tuples that satisfy a condition.
fn bits(holds: impl Fn(usize) -> bool) -> u8 {
    (0..8).filter(|at| holds(*at)).map(|at| 1 << at).sum()
}

/// Of how many of the 4,096 lists of four rows somebody knows from the release that a row lies within fewer tuples than its
/// class shows, those with a label in each column, and of how many all rows.
fn downcoded(method: &MethodSpec, ends: Ends) -> [u64; 2] {
    let domain = domain();
    let table = table(&[ZIP, SEX], &domain.iter().map(|tuple| (tuple, 0, 1)).collect::<Vec<_>>());
    let covers = |shown: &str, tuple: &str| {
        shown.split('/').zip(tuple.split('/')).zip(table.columns()).all(|((text, value), column)| {
            let label = RegionLabel::parse(Some(text), column.hierarchy().input_type());
            label.covers(column.hierarchy(), &Value::Text(value.into())).unwrap()
        })
    };
    let zips = [0x03, 0x0c, 0x30, 0xc0, 0x0f, 0xf0, 0xff];
    let labels: Vec<u8> = zips.iter().flat_map(|zips| [0x55, 0xaa, 0xff].map(|sexes| zips & sexes)).collect();
    let (mut finer, mut all) = (0, 0);
    for (release, tables) in tables_of(method, ends) {
        let (mut is_finer, mut is_coarse) = (false, false);
        for shown in release.keys() {
            let covered = bits(|at| covers(shown, &domain[at]));
            let rows: Vec<u8> = tables.iter().map(|(classes, _)| bits(|at| classes[shown][at] > 0)).collect();
            assert!(release[shown] >= 2 && rows.iter().all(|rows| rows & !covered == 0), "{method}");
            let mut below = labels.iter().filter(|label| **label & !covered == 0 && **label != covered);
            is_finer |= below.any(|label| rows.iter().all(|rows| rows & label != 0));
            is_coarse |= covered.count_ones() > 1;
        }
        let ways: u64 = tables.iter().map(|(_, ways)| ways).sum();
        finer += if is_finer { ways } else { 0 };
        all += if is_coarse && tables.len() == 1 { ways } else { 0 };
    }
    [finer, all]
}

/// What [`downcoded`] returns under `ends = "cuts"` and under `"values"`.
const DOWNCODED: [(&str, [u64; 2], [u64; 2]); 12] = [
    ("\"auto\"", [1_472, 0], [1_472, 0]),
    ("\"datafly\"", [2_336, 0], [2_336, 0]),
    ("\"local\"", [1_856, 0], [3_920, 1_008]),
    ("\"subtree\"", [2_336, 288], [3_920, 1_008]),
    ("\"cells\"", [2_480, 432], [2_480, 432]),
    ("{ mondrian = { split = \"span\" } }", [1_920, 0], [3_920, 1_008]),
    ("{ mondrian = { split = \"entropy\" } }", [1_920, 0], [3_920, 1_008]),
    ("{ mondrian = { split = \"relaxed\" } }", [2_688, 0], [3_920, 1_056]),
    ("{ mondrian = { split = \"loss\" } }", [1_200, 0], [3_920, 1_008]),
    ("{ clusters = { start = \"neighbours\" } }", [3_920, 936], [3_920, 936]),
    ("{ clusters = { start = \"cuts\" } }", [3_920, 1_008], [3_920, 1_008]),
    ("\"best\"", [2_960, 432], [3_920, 1_056]),
];

#[test]
fn every_method_can_be_downcoded() {
    // A centroid does not claim that the rows lie in a region, so there is none to be narrowed.
    for method in methods().into_iter().filter(|method| !method.kind().facts().shows_centroids) {
        let of = |name: String| DOWNCODED.iter().find(|(known, ..)| *known == name);
        let as_auto = || of(format!("{AUTO:?}")).filter(|_| method.kind() == ReleaseKind::Levels);
        let Some((_, cuts, values)) = of(method.to_string()).or_else(as_auto) else {
            panic!("write down how often {method} is downcoded, here and in docs/methods.md")
        };
        assert_eq!(downcoded(&method, Ends::Cuts), *cuts, "{method}");
        assert_eq!(downcoded(&method, Ends::Values), *values, "{method}");
    }
}

#[test]
fn small_releases_are_downcoded() {
    let tables = |method: &str, release: &[(&str, u64)]| {
        let release = release.iter().map(|(shown, rows)| ((*shown).to_owned(), *rows)).collect();
        let mut tables: Vec<Vec<String>> = Vec::new();
        for (classes, _) in &tables_of(&MethodSpec::named(method), Ends::Cuts)[&release] {
            let mut table = Vec::new();
            for (at, tuple) in domain().iter().enumerate() {
                let rows: u64 = classes.values().map(|rows| rows[at]).sum();
                table.extend((0..rows).map(|_| tuple.clone()));
            }
            tables.push(table);
        }
        tables.sort();
        tables
    };
    // All four rows are known.
    let one = tables("subtree", &[("9810*/f", 2), ("9840*/m", 2)]);
    assert_eq!(one, [["98103/f", "98105/f", "98402/m", "98405/m"]]);
    let one = tables("cells", &[("98103/*", 2), ("98402/*", 2)]);
    assert_eq!(one, [["98103/f", "98103/m", "98402/f", "98402/m"]]);
    // Two rows are known, and the others are one of two pairs.
    let two = tables("local", &[("9810*/f", 2), ("9840*/*", 2)]);
    let [a, b] = ["98103/f", "98105/f"];
    assert_eq!(two, [[a, b, "98402/f", "98405/m"], [a, b, "98402/m", "98405/f"]]);
    // Both zip codes occur.
    assert_eq!(tables(AUTO, &[("9810*/f", 4)]), [[a, a, a, b], [a, b, b, b]]);
}
