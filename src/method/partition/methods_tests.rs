//! The methods that make classes of their own against naive ones on small random tables.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::subsequence;

use super::clusters::ROUNDING;
use super::in_parts::in_parts;
use super::mondrian::tests::{options, problem, requirements, rows, table_with};
use super::near::{NEAR, Orders};
use super::*;
use crate::class::{EvaluatedNode, Union};
use crate::generalize::Ends;
use crate::method::lattice::exhaustive::Exhaustive;
use crate::method::{self, AUTO, METHODS, MethodRow, ReleaseKind, variants};
use crate::model::Requirement;

/// The classes that a method found, each with what it shows.
fn classes(
    problem: &Problem<'_>,
    row: &Row,
    settings: &[(String, Setting)],
) -> Option<BTreeMap<Vec<u32>, Box<[Region]>>> {
    let method = row.with(settings, &options(problem.table)).unwrap();
    let best = method.search(problem).unwrap().best.pop()?;
    let Recoding::Classes(released) = &best.recoding else { panic!("{} chose levels", row.doc.name) };
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); released.regions().len()];
    for (base, class) in (0u32..).zip(released.class_of_base()) {
        class.iter().for_each(|class| members[*class as usize].push(base));
    }
    Some(members.into_iter().zip(released.regions().iter().cloned()).collect())
}

fn all_of(table: &ClassTable) -> Vec<u32> {
    (0u32..).take(table.base().len()).collect()
}

fn code(table: &ClassTable, class: u32, column: usize) -> u32 {
    table.code(table.base(), class as usize, column)
}

fn rows_of(table: &ClassTable, classes: &[u32]) -> u64 {
    classes.iter().map(|class| table.base().rows_of(*class as usize)).sum()
}

/// The base classes by their codes in one column.
fn by_code(table: &ClassTable, classes: &[u32], column: usize) -> BTreeMap<u32, Vec<u32>> {
    let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    classes.iter().for_each(|class| groups.entry(code(table, *class, column)).or_default().push(*class));
    groups
}

/// The classes of `cells` with the values that they show.
fn cells(table: &ClassTable, requirements: &[Requirement]) -> BTreeMap<Vec<u32>, Vec<Option<u32>>> {
    fn reveal(
        table: &ClassTable,
        least: u64,
        holds: &mut dyn FnMut(&[u32]) -> bool,
        mut part: Vec<u32>,
        shown: Vec<Option<u32>>,
        hidden: BTreeSet<usize>,
        done: &mut BTreeMap<Vec<u32>, Vec<Option<u32>>>,
    ) {
        let all = rows_of(table, &part) as f64;
        let mut rated: Vec<(f64, usize)> = Vec::new();
        for column in hidden.iter().copied() {
            let mut sizes: Vec<u64> = Vec::new();
            let mut entropy = 0.0;
            for same in by_code(table, &part, column).values() {
                sizes.push(rows_of(table, same));
                let share = rows_of(table, same) as f64 / all;
                entropy += if share > 0.0 { -share * share.ln() } else { 0.0 };
            }
            sizes.sort_unstable();
            let few = sizes.iter().filter(|size| **size < least).count();
            let mut hides: u64 = sizes[..few].iter().sum();
            let mut next = few;
            while hides > 0 && hides < least && next < sizes.len() {
                hides += sizes[next];
                next += 1;
            }
            let revealed: u64 = sizes[next..].iter().sum();
            if revealed > 0 {
                rated.push((table.columns()[column].weight() * revealed as f64 / (entropy + 0.05), column));
            }
        }
        rated.sort_by(|a, b| b.0.total_cmp(&a.0));
        let best = rated.into_iter().find_map(|(_, column)| {
            let (mut apart, rest): (Vec<_>, Vec<_>) =
                by_code(table, &part, column).into_iter().partition(|(_, same)| holds(same));
            let mut rest: Vec<u32> = rest.into_iter().flat_map(|(_, same)| same).collect();
            apart.sort_by_key(|(_, same)| std::cmp::Reverse(rows_of(table, same)));
            while !rest.is_empty() && !holds(&rest) && !apart.is_empty() {
                rest.extend(apart.pop().unwrap().1);
            }
            (!apart.is_empty()).then_some((column, apart, rest))
        });
        part.sort_unstable();
        let Some((column, apart, mut rest)) = best else {
            // Classes that show the same are one.
            let same = done.iter().find(|(_, known)| **known == shown).map(|(members, _)| members.clone());
            if let Some(same) = same {
                done.remove(&same);
                part.extend(same);
                part.sort_unstable();
            }
            done.insert(part, shown);
            return;
        };
        let mut hidden = hidden;
        hidden.remove(&column);
        for (value, same) in apart {
            let mut shown = shown.clone();
            shown[column] = Some(value);
            reveal(table, least, holds, same, shown, hidden.clone(), done);
        }
        if !rest.is_empty() {
            rest.sort_unstable();
            reveal(table, least, holds, rest, shown, hidden, done);
        }
    }
    let (mut union, mut done) = (Union::new(table, requirements).unwrap(), BTreeMap::new());
    let (all, columns) = (all_of(table), table.columns().len());
    let least = requirements.iter().map(|requirement| requirement.model.min_size()).max().unwrap();
    if union.holds(&all) {
        let hidden = (0..columns).collect();
        reveal(table, least, &mut |part| union.holds(part), all, vec![None; columns], hidden, &mut done);
    }
    done
}

/// The classes of `local`: each round takes the best of all nodes.
fn local(problem: &Problem<'_>) -> BTreeSet<Vec<u32>> {
    let table = problem.table;
    let mut union = Union::new(table, problem.requirements).unwrap();
    let mut round = |base: &[u32], limit: u64| -> Option<(Vec<Vec<u32>>, Vec<u32>)> {
        let only = table.only(base).unwrap();
        let exhaustive = Exhaustive { options: options(table) };
        let best = exhaustive.search(&Problem { table: &only, limit, ..*problem }).unwrap().best.pop()?;
        let mut groups: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
        for class in base {
            let labels = best.recoding.levels().unwrap().iter().enumerate();
            let labels = labels.map(|(at, level)| {
                table.columns()[at].map(0, *level).unwrap()[code(table, *class, at) as usize]
            });
            groups.entry(labels.collect()).or_default().push(*class);
        }
        let (kept, left): (Vec<_>, Vec<_>) = groups.into_values().partition(|class| union.holds(class));
        let mut left = left.concat();
        left.sort_unstable();
        Some((kept, left))
    };
    let (mut left, mut rounds) = (all_of(table), Vec::new());
    while !left.is_empty() {
        match round(&left, u64::MAX) {
            Some((kept, rest)) if !kept.is_empty() => {
                rounds.push(kept);
                left = rest;
            }
            _ => break,
        }
    }
    let individuals = |left: &[u32]| match problem.table.base().individuals(0) {
        None => rows_of(table, left),
        Some(_) => {
            let all = left.iter().flat_map(|class| table.base().individuals(*class as usize).unwrap());
            all.collect::<BTreeSet<_>>().len() as u64
        }
    };
    while individuals(&left) > problem.limit {
        let taken_back = rounds.pop();
        left.extend(taken_back.iter().flatten().flatten());
        left.sort_unstable();
        if let Some((kept, _)) = round(&left, problem.limit) {
            rounds.push(kept);
            break;
        }
        if rounds.is_empty() {
            break;
        }
    }
    rounds.into_iter().flatten().collect()
}

/// Classes that show the same are one.
fn joined(table: &ClassTable, classes: &BTreeSet<Vec<u32>>) -> BTreeSet<Vec<u32>> {
    let mut by_regions: BTreeMap<Vec<Region>, Vec<u32>> = BTreeMap::new();
    for class in classes {
        let regions = table.columns().iter().enumerate().map(|(at, column)| {
            let codes = by_code(table, class, at).into_keys().collect();
            Region::around(column, codes).unwrap()
        });
        by_regions.entry(regions.collect()).or_default().extend(class);
    }
    let sorted = by_regions.into_values().map(|mut class| {
        class.sort_unstable();
        class
    });
    sorted.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cells_are_revealed_as_by_the_naive_recursion(
        rows in rows(),
        k in 1..6u64,
        l in 1..3u64,
        counts_individuals in any::<bool>(),
    ) {
        let table = table_with(&rows, counts_individuals, true);
        let requirements = requirements(k, l);
        let expected = cells(&table, &requirements);
        let found = classes(&problem(&table, &requirements), &cells::ROW, &[]).unwrap_or_default();
        // Joined classes that fail are all rows in one.
        let mut union = Union::new(&table, &requirements).unwrap();
        if expected.keys().all(|members| union.holds(members)) {
            prop_assert_eq!(found.len(), expected.len());
            for (members, shown) in expected {
                let regions = &found[&members];
                for ((shown, region), column) in shown.iter().zip(regions).zip(table.columns()) {
                    let holds: Vec<u32> = (0..column.distinct() as u32).filter(|code| region.holds(column, *code)).collect();
                    match shown {
                        Some(value) => prop_assert_eq!(&holds, &[*value]),
                        None => prop_assert_eq!(region, &Region::Everything),
                    }
                }
            }
        }
    }

    #[test]
    fn local_takes_the_best_node_of_each_round(
        rows in rows(),
        k in 1..6u64,
        l in 1..3u64,
        limit in 0..10u64,
        counts_individuals in any::<bool>(),
    ) {
        let table = table_with(&rows, counts_individuals, true);
        let requirements = requirements(k, l);
        let problem = Problem { limit, ..problem(&table, &requirements) };
        let expected = local(&problem);
        let found = classes(&problem, &local::ROW, &[]).unwrap_or_default();
        let found: BTreeSet<Vec<u32>> = found.into_keys().collect();
        // All rows are one class where no node holds, or where joined classes fail.
        let is_one = found.len() == 1 && found.iter().flatten().count() == table.base().len();
        prop_assert!(found == joined(&table, &expected) || is_one, "{found:?} {expected:?}");
        let labels = classes(&Problem { ends: Ends::Cuts, ..problem }, &local::ROW, &[]).unwrap_or_default();
        prop_assert_eq!(labels.is_empty(), found.is_empty());
    }

    #[test]
    fn subtree_shows_a_value_in_one_way_and_cannot_be_finer(
        rows in rows(),
        k in 1..6u64,
        l in 1..3u64,
        limit in 0..10u64,
        counts_individuals in any::<bool>(),
    ) {
        let table = table_with(&rows, counts_individuals, true);
        let requirements = requirements(k, l);
        let problem = Problem { limit, ends: Ends::Cuts, ..problem(&table, &requirements) };
        let Some(found) = classes(&problem, &subtree::ROW, &[]) else { return Ok(()) };
        let mut union = Union::new(&table, &requirements).unwrap();
        for (at, column) in table.columns().iter().enumerate() {
            let mut region_of: BTreeMap<u32, &Region> = BTreeMap::new();
            let mut shown: BTreeMap<&Region, Vec<&Vec<u32>>> = BTreeMap::new();
            for (members, regions) in &found {
                shown.entry(&regions[at]).or_default().push(members);
                for class in members {
                    prop_assert_eq!(*region_of.entry(code(&table, *class, at)).or_insert(&regions[at]), &regions[at]);
                }
            }
            // Without suppression a label is replaced wherever all classes still hold.
            for (region, of_region) in shown.into_iter().filter(|_| limit == 0 && !counts_individuals) {
                let values: Vec<u32> = (0..column.distinct() as u32).filter(|code| region.holds(column, *code)).collect();
                let label = |level: usize, value: u32| column.map(0, level).unwrap()[value as usize];
                let level = (0..=column.height()).find(|level| values.iter().all(|value| label(*level, *value) == label(*level, values[0])));
                let Some(below) = level.unwrap().checked_sub(1) else { continue };
                let holds = of_region.into_iter().all(|members| {
                    let mut pieces: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
                    members.iter().for_each(|class| pieces.entry(label(below, code(&table, *class, at))).or_default().push(*class));
                    pieces.values().all(|piece| union.holds(piece))
                });
                prop_assert!(!holds, "{region:?} of {} could be finer", column.name());
            }
        }
    }

    #[test]
    fn no_base_class_fits_a_cluster_near_it_better(
        rows in rows(),
        k in 1..6u64,
        l in 1..3u64,
        counts_individuals in any::<bool>(),
        begins_with_cuts in any::<bool>(),
    ) {
        let table = table_with(&rows, counts_individuals, true);
        let requirements = requirements(k, l);
        let start = if begins_with_cuts { "cuts" } else { "neighbours" };
        let settings = [("start".to_owned(), Setting::Word(start.into()))];
        let Some(found) = classes(&problem(&table, &requirements), &clusters::ROW, &settings) else { return Ok(()) };
        let members: BTreeSet<u32> = found.keys().flatten().copied().collect();
        prop_assert_eq!(members.len(), table.base().len());
        let mut union = Union::new(&table, &requirements).unwrap();
        let loss = |classes: &[u32]| {
            if classes.is_empty() {
                return 0.0;
            }
            let of_column = |(at, column): (usize, &EncodedColumn)| {
                let codes = by_code(&table, classes, at).into_keys().collect();
                let leaves = Region::around(column, codes).unwrap().leaves(column);
                of_leaf(column) * (leaves - 1) as f64
            };
            let of_row: f64 = table.columns().iter().enumerate().map(of_column).sum();
            of_row * rows_of(&table, classes) as f64
        };
        let orders = Orders::new(&table).unwrap();
        let class_of = |base: u32| found.keys().find(|members| members.contains(&base)).unwrap();
        for base in all_of(&table) {
            let own = class_of(base);
            let without: Vec<u32> = own.iter().copied().filter(|member| *member != base).collect();
            let gain = loss(own) - loss(&without);
            let near: BTreeSet<&Vec<u32>> = orders.around(base, NEAR).flatten().flatten().map(|base| class_of(*base)).collect();
            // The one that it fits best; it stays where the policy vetoes that.
            let best = near.into_iter().filter(|other| *other != own).map(|other| {
                let with: Vec<u32> = other.iter().copied().chain([base]).collect();
                (loss(&with) - loss(other), with)
            });
            let best = best.min_by(|a, b| a.0.total_cmp(&b.0));
            if let Some((added, with)) = best && added < gain - 10.0 * ROUNDING {
                prop_assert!(!(without.is_empty() || union.holds(&without)) || !union.holds(&with), "{base} {added} {gain}");
            }
        }
    }

    /// Half of the rows go to each side but for the base class in the middle, so a class of more
    /// rows would be cut again.
    #[test]
    fn relaxed_cuts_leave_few_rows_to_a_class(rows in rows(), k in 1..6u64, shows_cuts in any::<bool>()) {
        let table = table_with(&rows, false, true);
        let requirements = requirements(k, 1);
        let ends = if shows_cuts { Ends::Cuts } else { Ends::Values };
        let problem = Problem { ends, ..problem(&table, &requirements) };
        let settings = [("split".to_owned(), Setting::Word("relaxed".into()))];
        let Some(found) = classes(&problem, &mondrian::ROW, &settings) else { return Ok(()) };
        let most = table.base().rows().max().unwrap_or(0);
        let parts = mondrian::relaxed_parts(&problem).unwrap();
        prop_assert!(found.len() <= parts.len());
        for part in parts {
            let is_few = rows_of(&table, &part) < 2 * (k + most);
            prop_assert!(is_few || part.len() == 1, "{part:?}");
        }
    }

    #[test]
    fn every_method_finds_classes_that_hold(
        rows in rows(),
        k in 1..6u64,
        l in 1..3u64,
        limit in 0..10u64,
        counts_individuals in any::<bool>(),
    ) {
        let table = table_with(&rows, counts_individuals, true);
        let requirements = requirements(k, l);
        let problem = Problem { limit, ..problem(&table, &requirements) };
        let mut union = Union::new(&table, &requirements).unwrap();
        let all_hold = union.holds(&all_of(&table));
        let top: Vec<usize> = table.heights();
        let rolled = table.roll_up(table.base(), &vec![0; top.len()], &top).unwrap();
        prop_assert_eq!(EvaluatedNode::new(&table, &top, &rolled, &requirements).unwrap().kept_classes() == 1, all_hold);
        for method in variants() {
            let row = METHODS.iter().find(|row| row.doc().name == method.name && row.kind == ReleaseKind::Regions);
            let row = row.and_then(MethodRow::of_own);
            let Some(row) = row else { continue };
            let found = classes(&problem, row, &method.settings);
            prop_assert!(found.is_some() || !all_hold, "{method} found nothing");
            let kept = found.unwrap_or_default().into_keys().filter(|members| union.holds(members));
            let kept: BTreeSet<u32> = kept.flatten().collect();
            let suppressed: Vec<u32> = all_of(&table).into_iter().filter(|base| !kept.contains(base)).collect();
            prop_assert!(kept.is_empty() || table.base().size_of(&suppressed) <= limit, "{method}");
        }
    }
    #[test]
    fn every_method_shows_a_global_column_at_one_level(
        rows in rows(),
        k in 1..6u64,
        l in 1..3u64,
        limit in 0..10u64,
        counts_individuals in any::<bool>(),
        shows_cuts in any::<bool>(),
        global in subsequence(vec![0usize, 1, 2], 1..3),
        min_level in 0..2usize,
    ) {
        let table = table_with(&rows, counts_individuals, true);
        let global: Vec<usize> = global.into_iter().filter(|column| *column < table.columns().len()).collect();
        if global.is_empty() || global.len() == table.columns().len() {
            return Ok(());
        }
        let requirements = requirements(k, l);
        let ends = if shows_cuts { Ends::Cuts } else { Ends::Values };
        let problem = Problem { limit, ends, ..problem(&table, &requirements) };
        let mut options = Options { global: global.clone(), ..options(&table) };
        for column in &global {
            let of_column = &table.columns()[*column];
            options.ranges[*column] = if of_column.has_intervals() { 0 } else { min_level }..=of_column.height();
        }
        let mut union = Union::new(&table, &requirements).unwrap();
        let all_hold = union.holds(&all_of(&table));
        for method in variants().into_iter().filter(|method| method.kind() != ReleaseKind::Groups) {
            let outcome = match method::search(&method, &problem, &options) {
                Ok((_, outcome)) => outcome,
                Err(error) => {
                    let makes_no_cuts = method::row(&method.name).is_some_and(|row| !row.shows_cuts());
                    let is_refused = (shows_cuts && makes_no_cuts) || method.kind().facts().shows_centroids;
                    assert!(is_refused, "{method}: {error}");
                    continue;
                }
            };
            let Some(Recoding::Classes(released)) = outcome.best.first().map(|best| &best.recoding) else {
                prop_assert!(!all_hold || method.name == AUTO, "{} found nothing", method);
                continue;
            };
            let mut members: Vec<Vec<u32>> = vec![Vec::new(); released.regions().len()];
            for (base, class) in (0u32..).zip(released.class_of_base()) {
                class.iter().for_each(|class| members[*class as usize].push(base));
            }
            prop_assert!(members.iter().all(|members| union.holds(members)), "{method}");
            let kept: BTreeSet<u32> = members.iter().flatten().copied().collect();
            let suppressed: Vec<u32> = all_of(&table).into_iter().filter(|base| !kept.contains(base)).collect();
            prop_assert!(table.base().size_of(&suppressed) <= limit, "{method}");
            for at in &global {
                let column = &table.columns()[*at];
                let is_of_level = |level: usize| {
                    let labels = column.map(0, level).unwrap();
                    let mut shown: BTreeMap<u32, &Region> = BTreeMap::new();
                    members.iter().zip(released.regions()).all(|(members, regions)| {
                        let mut labels = members.iter().map(|base| labels[code(&table, *base, *at) as usize]);
                        let label = labels.next().unwrap();
                        let region = &regions[*at];
                        labels.all(|other| other == label)
                            && shown.insert(label, region).is_none_or(|other| other == region)
                            && (0u32..).take(column.distinct()).filter(|value| region.holds(column, *value)).all(|value| {
                                level == column.height() || column.map(0, level).unwrap()[value as usize] == label
                            })
                    })
                };
                prop_assert!(options.ranges[*at].clone().any(is_of_level), "{} `{}`", method, column.name());
            }
        }
    }

    #[test]
    fn a_table_in_parts_is_all_of_it(
        rows in rows(),
        k in 1..6u64,
        l in 1..3u64,
        most in 1..8usize,
        counts_individuals in any::<bool>(),
    ) {
        let table = table_with(&rows, counts_individuals, true);
        let requirements = requirements(k, l);
        let mut union = Union::new(&table, &requirements).unwrap();
        // Every part is one class; the rows of another table would not hold.
        let whole = |problem: &Problem<'_>| {
            let all = all_of(problem.table);
            let mut union = Union::new(problem.table, problem.requirements)?;
            Ok((if union.holds(&all) { vec![all] } else { Vec::new() }, 1))
        };
        let in_parts = |threads: usize| {
            in_parts(&Problem { threads, ..problem(&table, &requirements) }, most, whole).unwrap()
        };
        let (classes, judged) = in_parts(1);
        prop_assert_eq!(&in_parts(2), &(classes.clone(), judged));
        prop_assert_eq!(classes.is_empty(), !union.holds(&all_of(&table)));
        let mut members: Vec<u32> = classes.concat();
        members.sort_unstable();
        prop_assert_eq!(members, if classes.is_empty() { Vec::new() } else { all_of(&table) });
        let (least_loss, _) = least_loss::cut_all(&problem(&table, &requirements)).unwrap();
        let finest: BTreeSet<Vec<u32>> = least_loss.into_iter().map(|part| sorted(part.classes)).collect();
        for class in classes {
            prop_assert!(union.holds(&class));
            prop_assert!(class.len() <= most || finest.contains(&sorted(class)), "a part could be cut");
        }
    }
}

fn sorted(mut classes: Vec<u32>) -> Vec<u32> {
    classes.sort_unstable();
    classes
}
