//! The parts of histories that a further release may show.
//!
//! The rows of a *history* are those that all earlier releases show alike. A further release shows them whole, not at all, or in parts,
//! each with at least k people: those that it shows again, by which of their earlier values they have, if everybody knows, and the rest. Who
//! left is in the rest. If too few did, companions are left out with them: chosen by an order that depends on a key and not on
//! values.

use std::collections::{BTreeMap, BTreeSet};

/// A row that an earlier release shows, in the order of its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlierRow {
    /// The number of its history.
    pub history: u32,
    /// The number of its person.
    pub person: u32,
    /// What became of it.
    pub now: Now,
}

/// What became of a row that an earlier release shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Now {
    /// It is in the input, and its class covers it. Everybody sees which of the values that it was shown with it has again, or that it
    /// has new ones: that has a number.
    Again(u64),
    /// It left, or its class does not cover it any more.
    Gone,
}

/// What a further release does with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// It shows it.
    Shown,
    /// It cannot: the row left, or its class does not cover it any more.
    Gone,
    /// It leaves it out to hide others who are gone.
    Companion,
    /// It leaves it out with its whole history.
    LeftOut,
}

/// Divides histories into parts of at least `k` people; returns what is done with each row. `order` gives the order of companions; the
/// histories of `left_out` are not shown. The rows of a history follow one another.
pub fn parts(rows: &[EarlierRow], k: u64, order: impl Fn(u32) -> u64, left_out: &BTreeSet<u32>) -> Vec<Part> {
    let mut found = Vec::with_capacity(rows.len());
    for history in rows.chunk_by(|a, b| a.history == b.history) {
        let is_left_out = history.first().is_some_and(|row| left_out.contains(&row.history));
        let hidden = if is_left_out { None } else { hidden(history, k, &order) };
        found.extend(history.iter().map(|row| match &hidden {
            _ if row.now == Now::Gone => Part::Gone,
            None => Part::LeftOut,
            Some(hidden) if hidden.contains(&(row.person, row.now)) => Part::Companion,
            Some(_) => Part::Shown,
        }));
    }
    found
}

/// Returns whose rows of a history are not shown, by what became of them; `None` if no row can be shown.
fn hidden(history: &[EarlierRow], k: u64, order: &impl Fn(u32) -> u64) -> Option<BTreeSet<(u32, Now)>> {
    let mut people: BTreeMap<Now, BTreeSet<u32>> = BTreeMap::new();
    for row in history {
        people.entry(row.now).or_default().insert(row.person);
    }
    let mut rest = people.remove(&Now::Gone).unwrap_or_default();
    let mut hidden = BTreeSet::new();
    // The part that is shown again first gives companions.
    let mut waiting: Vec<(u64, u32)> =
        people.values().flatten().map(|person| (order(*person), *person)).collect();
    waiting.sort_unstable();
    waiting.dedup();
    let mut waiting = waiting.into_iter().map(|(_, person)| person);
    loop {
        for (now, of_part) in &mut people {
            if (of_part.len() as u64) < k {
                hidden.extend(of_part.iter().map(|person| (*person, *now)));
                rest.append(of_part);
            }
        }
        people.retain(|_, of_part| !of_part.is_empty());
        if people.is_empty() {
            return None;
        }
        if rest.is_empty() || rest.len() as u64 >= k {
            return Some(hidden);
        }
        let companion = waiting.find(|person| !rest.contains(person))?;
        for (now, of_part) in &mut people {
            if of_part.remove(&companion) {
                hidden.insert((companion, *now));
            }
        }
        rest.insert(companion);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(history: u32, person: u32, now: Now) -> EarlierRow {
        EarlierRow { history, person, now }
    }

    /// A class of `same` people of whom `gone` more left.
    fn class(same: u32, gone: u32) -> Vec<EarlierRow> {
        let stay = (0..same).map(|person| row(0, person, Now::Again(0)));
        stay.chain((same..same + gone).map(|person| row(0, person, Now::Gone))).collect()
    }

    fn count(parts: &[Part], of: Part) -> usize {
        parts.iter().filter(|part| **part == of).count()
    }

    fn shown(rows: &[EarlierRow], k: u64) -> usize {
        count(&parts(rows, k, u64::from, &BTreeSet::new()), Part::Shown)
    }

    #[test]
    fn those_who_leave_take_companions_with_them() {
        assert_eq!(shown(&class(5, 0), 5), 5);
        // Five of ten stay with the one who left, and four companions.
        assert_eq!(shown(&class(9, 1), 5), 5);
        assert_eq!(shown(&class(8, 1), 5), 0, "four would be left");
        assert_eq!(shown(&class(6, 5), 5), 6);
        assert_eq!(shown(&class(4, 7), 5), 0);
        assert_eq!(shown(&class(0, 7), 5), 0);
        let found = parts(&class(9, 1), 5, |person| 100 - u64::from(person), &BTreeSet::new());
        use Part::{Companion, Gone, LeftOut, Shown};
        let chosen = [Shown, Shown, Shown, Shown, Shown, Companion, Companion, Companion, Companion, Gone];
        assert_eq!(found, chosen);
        let left_out = parts(&class(9, 1), 5, u64::from, &[0].into());
        assert_eq!([LeftOut, Gone].map(|of| count(&left_out, of)), [9, 1]);
    }

    #[test]
    fn few_changed_rows_are_left_out() {
        let rows = |changed: u32| -> Vec<EarlierRow> {
            let now = |person: u32| if person < changed { Now::Again(1) } else { Now::Again(0) };
            (0..10).map(|person| row(0, person, now(person))).collect()
        };
        // One changed: four companions hide it.
        assert_eq!(shown(&rows(1), 5), 5);
        assert_eq!(shown(&rows(5), 5), 10);
        assert_eq!(shown(&rows(10), 5), 10);
    }

    /// Whatever happens, each part has k people or none.
    #[test]
    fn each_part_has_enough_people() {
        let mut state = 7u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let (mut whole, mut in_parts, mut none) = (0, 0, 0);
        for _ in 0..2_000 {
            let (people, k) = (1 + below(12), 1 + below(4));
            let calm = below(2) == 0;
            let rows = (0..people * 3 / 2).map(|at| {
                let now = match below(if calm { 20 } else { 4 }) {
                    0 => Now::Gone,
                    1 => Now::Again(1),
                    _ => Now::Again(0),
                };
                row(0, u32::try_from(at % people).unwrap(), now)
            });
            let rows: Vec<EarlierRow> = rows.collect();
            let found =
                parts(&rows, k, |person| u64::from(person).wrapping_mul(0x9e37_79b9), &BTreeSet::new());
            let mut of_parts: BTreeMap<Option<Now>, BTreeSet<u32>> = BTreeMap::new();
            for (row, part) in rows.iter().zip(&found) {
                let is_shown = *part == Part::Shown;
                assert!(!is_shown || row.now != Now::Gone);
                of_parts.entry(is_shown.then_some(row.now)).or_default().insert(row.person);
            }
            let all: BTreeSet<u32> = rows.iter().map(|row| row.person).collect();
            if all.len() as u64 >= k {
                assert!(of_parts.values().all(|people| people.len() as u64 >= k), "{k} {rows:?} {found:?}");
            }
            match count(&found, Part::Shown) {
                0 => none += 1,
                shown if shown == rows.len() => whole += 1,
                _ => in_parts += 1,
            }
        }
        assert!(whole > 100 && in_parts > 100 && none > 100, "{whole} {in_parts} {none}");
    }
}
