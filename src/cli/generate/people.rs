//! Made-up people and their visits. Person number n is drawn from stream n of one seeded generator:
//! a pure function of seed and number, so no state is kept, and a person is the same at each visit.
//!
//! All arithmetic is on integers, with a specified generator (ChaCha8): the last bits of logarithms
//! and the like differ between machines.

use std::rc::Rc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::tables::{
    AGES, AREAS, BIRTH, DIAGNOSES, DIALYSIS, DIALYSIS_VISITS, Diagnosis, EDUCATION, FIRST_FEMALE, FIRST_MALE,
    GROUP_ONE_IN, GROUPS, Group, LAST, MARITAL_MIDDLE, MARITAL_OLD, MARITAL_YOUNG, RACES_CITY, RACES_COUNTRY,
    Sex, VISITS, Weighted,
};

/// The first day of visits, which run from 2022-01-01 to 2024-12-31, in days since 1970.
const FIRST_DAY: i32 = new_year(2022);
const LAST_DAY: i32 = new_year(2025) - 1;

/// The parts of an ssn: areas 001 to 899 without 666, groups 01 to 99, serials 0001 to 9999.
const SSN_AREAS: u64 = 898;
const SSN_GROUPS: u64 = 99;
const SSN_SERIALS: u64 = 9999;

/// The most people without a shared ssn.
pub(super) const MOST_PEOPLE: u64 = SSN_AREAS * SSN_GROUPS * SSN_SERIALS;

/// Returns the first of January of a year from 1901 to 2099, in days since 1970.
const fn new_year(year: i32) -> i32 {
    (year - 1970) * 365 + (year - 1969).div_euclid(4)
}

/// The attributes that stay the same at each visit; `None` is a NULL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Person {
    pub patient_id: i64,
    pub ssn: String,
    pub name: String,
    /// Days since 1970.
    pub dob: i32,
    pub sex: Sex,
    pub zip: Option<String>,
    pub race: Option<&'static str>,
    pub education: Option<&'static str>,
    pub marital_status: Option<&'static str>,
}

/// One visit: a row.
pub(super) struct Visit {
    pub person: Rc<Person>,
    /// Days since 1970.
    pub date: i32,
    pub diagnosis: Option<&'static str>,
    pub days: Option<i32>,
    pub cents: Option<i32>,
}

/// A source of random numbers: one per person, and one for shuffling.
pub(super) struct Draw(ChaCha8Rng);

impl Draw {
    /// Creates stream `stream` of a seed.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(stream);
        Self(rng)
    }

    /// Returns an index below `length`, which must not be 0 (the slight bias of a remainder does no
    /// harm here).
    pub(crate) fn index(&mut self, length: usize) -> usize {
        self.0.next_u32() as usize % length
    }

    /// Returns a number from `low` to `high`, both included.
    fn between(&mut self, low: i32, high: i32) -> i32 {
        low + (self.0.next_u32() % (high.abs_diff(low) + 1)).cast_signed()
    }

    /// Returns true once in `n` times on average.
    fn one_in(&mut self, n: u32) -> bool {
        self.0.next_u32().is_multiple_of(n)
    }

    /// Returns the value, or `None` once in `n` times on average.
    fn unless_missing<T>(&mut self, n: u32, value: T) -> Option<T> {
        if self.one_in(n) { None } else { Some(value) }
    }

    /// Returns a random entry of a list.
    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.index(list.len())]
    }

    /// Returns a random row of a table, by weight.
    fn row<T>(&mut self, table: &'static [Weighted<T>]) -> &'static T {
        let total: u32 = table.iter().map(|(weight, _)| weight).sum();
        let mut left = self.0.next_u32() % total;
        let mut at = 0;
        while left >= table[at].0 {
            left -= table[at].0;
            at += 1;
        }
        &table[at].1
    }
}

/// Returns all visits of person `number` (from 0).
pub(super) fn visits_of(seed: u64, number: u64) -> Vec<Visit> {
    let draw = &mut Draw::new(seed, number);
    let group = draw.one_in(GROUP_ONE_IN).then(|| draw.row(GROUPS));
    let person = Rc::new(draw_person(draw, seed, number, group));
    let (fewest, most) = match *draw.row(VISITS) {
        DIALYSIS_VISITS if age_on(LAST_DAY, person.dob) < 18 => (1, 1),
        visits => visits,
    };
    // Some people have the same diagnosis at each visit.
    let dialysis = ((fewest, most) == DIALYSIS_VISITS).then_some(&DIALYSIS);
    let always = group.map(|g| &g.diagnosis).or(dialysis);
    let count = draw.between(fewest, most);
    (0..count).map(|_| draw_visit(draw, &person, always)).collect()
}

fn draw_person(draw: &mut Draw, seed: u64, number: u64, group: Option<&Group>) -> Person {
    let sex = match (group, draw.between(1, 1000)) {
        (Some(group), _) => group.sex,
        (None, ..=4) => Sex::X,
        (None, ..=540) => Sex::Female,
        (None, _) => Sex::Male,
    };
    let dob = match group {
        Some(group) => draw.between(new_year(group.born.0), new_year(group.born.1 + 1) - 1),
        None => {
            let (youngest, oldest) = *draw.row(AGES);
            let age = draw.between(youngest, oldest);
            // `age` years before the last day, and up to a year more: 1461 days are four years.
            LAST_DAY - age * 1461 / 4 - draw.between(0, 364)
        }
    };
    let (zip, city) = match group {
        Some(group) => (draw_zip(draw, group.prefix, 8), false),
        None => {
            let area = draw.row(AREAS);
            (draw_zip(draw, area.prefix, area.codes), area.city)
        }
    };
    let female_name = sex == Sex::Female || (sex == Sex::X && draw.one_in(2));
    let first = draw.one_of(if female_name { FIRST_FEMALE } else { FIRST_MALE });
    let middle = char::from(draw.one_of(b"ABCDEFGHIJKLMNOPRSTVWYZ"));
    let last = draw.one_of(LAST);
    let race = draw.row(if city { RACES_CITY } else { RACES_COUNTRY });
    let age = age_on(LAST_DAY, dob);
    let education = match age {
        ..6 => "No schooling",
        6..13 => "Primary school",
        13..18 => "Some high school",
        _ => draw.row(EDUCATION),
    };
    let marital_status = match age {
        ..18 => "Never married",
        18..35 => draw.row(MARITAL_YOUNG),
        35..70 => draw.row(MARITAL_MIDDLE),
        _ => draw.row(MARITAL_OLD),
    };
    Person {
        patient_id: 1_000_000 + number.cast_signed(),
        ssn: ssn(seed, number),
        name: format!("{first} {middle}. {last}"),
        dob,
        sex,
        // A group is identified by its zip code, so it must not be NULL.
        zip: if group.is_some() { Some(zip) } else { draw.unless_missing(80, zip) },
        race: draw.unless_missing(50, race),
        education: draw.unless_missing(40, education),
        marital_status: draw.unless_missing(60, marital_status),
    }
}

fn draw_visit(draw: &mut Draw, person: &Rc<Person>, always: Option<&'static Diagnosis>) -> Visit {
    let date = draw.between(person.dob.max(FIRST_DAY), LAST_DAY);
    let diagnosis = always.unwrap_or_else(|| draw_diagnosis(draw, person, date));
    let mut days = match diagnosis.days {
        0 => i32::from(draw.one_in(15)),
        usual => draw.between(0, usual) + draw.between(0, usual),
    };
    // The long tail: one stay in twelve is twice as long, and so on.
    while days < 200 && draw.one_in(12) {
        days = days * 2 + 1;
    }
    // The visit itself and $900 to $1900 a day, all times 0.6 to 1.8; one bill in 4000 is a million
    // or more.
    let dollars = diagnosis.dollars + days * draw.between(900, 1900);
    let cents = if draw.one_in(4000) {
        draw.between(100_000_000, 160_000_000)
    } else {
        dollars * draw.between(60, 180) + draw.between(0, 99)
    };
    Visit {
        person: Rc::clone(person),
        date,
        // A constant diagnosis is never NULL.
        diagnosis: if always.is_some() {
            Some(diagnosis.name)
        } else {
            draw.unless_missing(65, diagnosis.name)
        },
        days: draw.unless_missing(90, days),
        cents: draw.unless_missing(50, cents),
    }
}

/// Draws a diagnosis that age and sex allow.
fn draw_diagnosis(draw: &mut Draw, person: &Person, date: i32) -> &'static Diagnosis {
    if age_on(date, person.dob) == 0 && !draw.one_in(4) {
        return &BIRTH;
    }
    loop {
        // The loop ends: a fifth of the table fits every age and sex.
        let diagnosis = draw.row(DIAGNOSES);
        if fits(diagnosis, person, date) {
            return diagnosis;
        }
    }
}

fn fits(diagnosis: &Diagnosis, person: &Person, date: i32) -> bool {
    let (youngest, oldest) = diagnosis.ages;
    (youngest..=oldest).contains(&age_on(date, person.dob))
        && diagnosis.sex.is_none_or(|sex| sex == person.sex)
}

/// Returns the age in whole years (a day off at times).
fn age_on(day: i32, dob: i32) -> i32 {
    (day - dob) * 4 / 1461
}

/// Draws a zip code of an area, with leading zeros. Its codes are numbered by population and
/// scattered over the last two digits; the smallest of three draws makes the first codes dense.
/// Boston's first code is 02139.
fn draw_zip(draw: &mut Draw, prefix: u32, codes: u32) -> String {
    let mut draw_code = || draw.0.next_u32() % codes;
    let code = draw_code().min(draw_code()).min(draw_code());
    format!("{prefix:03}{:02}", (39 + (prefix + 79) * 13 + code * 37) % 100)
}

/// Returns the ssn of a person. The multiples of a step that is coprime to the number of ssns visit
/// all of them before one repeats.
fn ssn(seed: u64, number: u64) -> String {
    const STEP: u64 = 549_389_311;
    let at = (number + seed % MOST_PEOPLE + 1_000_000) * STEP % MOST_PEOPLE;
    let area = at / SSN_SERIALS / SSN_GROUPS + 1;
    let area = if area < 666 { area } else { area + 1 };
    let group = at / SSN_SERIALS % SSN_GROUPS + 1;
    let serial = at % SSN_SERIALS + 1;
    format!("{area:03}-{group:02}-{serial:04}")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn new_year_counts_leap_days() {
        let years = [(1904, -24_107), (1960, -3653), (1970, 0), (1973, 1096), (2000, 10_957), (2025, 20_089)];
        for (year, day) in years {
            assert_eq!(new_year(year), day, "{year}");
        }
    }

    #[test]
    fn nobody_shares_an_ssn() {
        // Euclid: the step and the number of ssns have no factor in common.
        let (mut a, mut b) = (MOST_PEOPLE, 549_389_311);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        assert_eq!(a, 1);
        let many: HashSet<String> =
            (0..10_000).chain(MOST_PEOPLE - 10_000..MOST_PEOPLE).map(|n| ssn(7, n)).collect();
        assert_eq!(many.len(), 20_000);
        assert!(many.iter().all(|s| s.len() == 11 && !s.starts_with("666") && !s.starts_with("000")));
    }

    #[test]
    fn a_person_depends_on_seed_and_number_only() {
        let again = |seed, number| visits_of(seed, number).swap_remove(0).person;
        assert_eq!(again(1, 77), again(1, 77));
        assert_ne!(again(1, 77), again(1, 78));
        assert_ne!(again(1, 77).dob, again(2, 77).dob);
    }

    #[test]
    fn the_first_person_of_seed_42_is_the_same_everywhere() {
        let visit = visits_of(42, 0).swap_remove(0);
        let person = visit.person.as_ref();
        assert_eq!(
            (person.ssn.as_str(), person.name.as_str(), person.dob),
            ("526-16-4271", "Liam R. Khan", -357)
        );
        assert_eq!(
            (visit.date, visit.diagnosis, visit.days, visit.cents),
            (19_396, Some("Asthma"), Some(2), Some(459_567))
        );
    }

    #[test]
    fn visits_are_possible() {
        for visit in (0..20_000).flat_map(|number| visits_of(3, number)) {
            assert!((FIRST_DAY..=LAST_DAY).contains(&visit.date) && visit.date >= visit.person.dob);
            assert!(visit.person.zip.as_ref().is_none_or(|zip| zip.len() == 5));
            assert!(visit.days.is_none_or(|days| (0..=401).contains(&days)));
            assert!(visit.cents.is_none_or(|cents| (0..=160_000_000).contains(&cents)));
            if visit.diagnosis == Some("Prostate cancer") {
                assert_eq!(visit.person.sex, Sex::Male);
            }
        }
    }
}
