//! The judge of a verification, which compares the release with the input class by class.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::UInt64Type;

use super::Expected;
use super::homogeneous::{Counting, Homogeneous};
use super::per_class::ClassSummary;
use super::population::LabelledPopulation;
use crate::class::{Budget, ClassSizes, Held};
use crate::error::{Error, Result};
use crate::model::{Class, Distribution, Needs, Quantity, Requirement};
use crate::plural::plural;

/// The counts of a release that passed.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// The released rows.
    pub rows: u64,
    /// The sizes of the released classes.
    pub sizes: ClassSizes,
    /// The homogeneous released classes, per sensitive column.
    pub homogeneous: Vec<Homogeneous>,
    /// The rows of the input that are not in the release; `None` without the input.
    pub suppressed_rows: Option<u64>,
    /// The individuals, where they are counted and the input is given.
    pub individuals: Option<IndividualCounts>,
    /// The released rows without an individual; 0 where rows are counted.
    pub unowned_rows: u64,
    /// The value that each model reached; `None` without a class, or if the model was not judged.
    pub reached: Vec<Option<Quantity>>,
    /// For the models that compare classes with the whole input, the value that they reach when the
    /// released rows stand for it; `None` for all others.
    pub reached_among_released: Vec<Option<Quantity>>,
}

impl Verified {
    /// Returns the values that a public record tells: only what the released rows show.
    pub(crate) fn recorded(&self) -> impl Iterator<Item = Option<Quantity>> + '_ {
        let among = self.reached_among_released.iter().copied().chain(std::iter::repeat(None));
        self.reached.iter().zip(among).map(|(reached, among)| among.or(*reached))
    }
}

/// The individuals of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndividualCounts {
    /// All individuals.
    pub all: u64,
    /// The individuals with at least one suppressed row.
    pub suppressed: u64,
    /// The most rows of one individual.
    pub most_rows: u64,
    /// The suppressed rows without an individual.
    pub suppressed_unowned: u64,
}

/// The number of classes with each violation.
#[derive(Debug, Default)]
struct Violations {
    fails_a_model: u64,
    not_in_input: u64,
    rows_missing: u64,
    rows_added: u64,
    rows_altered: u64,
    no_label: u64,
}

impl Violations {
    fn into_result(self) -> Result<()> {
        let findings = [
            (self.fails_a_model, "class fails a required model", "classes fail a required model"),
            (
                self.not_in_input,
                "class has quasi-identifiers that no input row generalizes to",
                "classes have quasi-identifiers that no input row generalizes to",
            ),
            (self.rows_missing, "class misses rows of the input", "classes miss rows of the input"),
            (self.rows_added, "class has more rows than the input", "classes have more rows than the input"),
            (
                self.rows_altered,
                "class has rows that differ from the input's",
                "classes have rows that differ from the input's",
            ),
            (
                self.no_label,
                "class holds a value that is not a label of its level",
                "classes hold a value that is not a label of its level",
            ),
        ];
        let found = findings.into_iter().filter(|(classes, ..)| *classes > 0);
        let violations: Vec<String> = found.map(|(classes, one, many)| plural(classes, one, many)).collect();
        if violations.is_empty() {
            Ok(())
        } else {
            Err(Error::unmet(format!("verification refused: {}", violations.join("; "))))
        }
    }
}

/// The counts of one class, or of one of its groups.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) in_rows: u64,
    pub(crate) out_rows: u64,
    in_hash: [u64; 2],
    out_hash: [u64; 2],
    pub(crate) no_label: bool,
    /// Whether an assignment suppresses the rows.
    pub(crate) is_suppressed: bool,
    /// The numbers of the labels, of a class.
    pub(crate) labels: Vec<u32>,
}

impl Counts {
    /// Reads the counts of one group, in the order of the counting plan.
    pub(crate) fn read(counts: &[ArrayRef], row: usize) -> Self {
        let count = |index: usize| counts[index].as_primitive::<UInt64Type>().value(row);
        Self {
            in_rows: count(0),
            out_rows: count(1),
            in_hash: [count(2), count(3)],
            out_hash: [count(4), count(5)],
            no_label: false,
            is_suppressed: false,
            labels: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, group: &Self) {
        self.in_rows += group.in_rows;
        self.out_rows += group.out_rows;
        let sums = self.in_hash.iter_mut().chain(&mut self.out_hash);
        sums.zip(group.in_hash.iter().chain(&group.out_hash))
            .for_each(|(sum, hash)| *sum = sum.wrapping_add(*hash));
    }

    pub(crate) fn any(&self) -> bool {
        self.in_rows > 0 || self.out_rows > 0
    }
}

/// Judges one class after the other.
pub(crate) struct Judge<'a> {
    requirements: &'a [Requirement],
    /// For each requirement the index of its column among the sensitive ones.
    looks_at: Vec<Option<usize>>,
    /// The distribution of each sensitive column over the input, for the models that need it.
    inputs: Vec<Distribution>,
    population: Option<LabelledPopulation>,
    /// The released classes whose labels somebody of the population has.
    released_tuples: u64,
    with_input: bool,
    /// Whether an assignment says which rows are suppressed; else those of failing classes are.
    is_assigned: bool,
    /// Whether a model holds over a subset of the quasi-identifiers.
    has_subset_models: bool,
    wrong: Violations,
    sizes: ClassSizes,
    homogeneous: Counting,
    values: Vec<Vec<Quantity>>,
    input_rows: u64,
    kept_rows: u64,
    unowned_rows: u64,
    /// The suppressed rows without an individual.
    suppressed_unowned: u64,
    /// The individuals, by their numbers.
    individuals: Vec<IndividualState>,
    held: Held,
}

/// The facts about one individual.
#[derive(Clone, Copy)]
struct IndividualState {
    /// The size of the smallest released class with a row of the individual.
    smallest: Option<u64>,
    /// Whether a row of the individual is suppressed.
    suppressed: bool,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(
        expected: &'a Expected<'a>,
        inputs: Vec<Distribution>,
        population: Option<LabelledPopulation>,
        with_input: bool,
        budget: &Arc<dyn Budget>,
    ) -> Result<Self> {
        let requirements = expected.requirements;
        let sensitive = expected.sensitive();
        Ok(Self {
            requirements,
            looks_at: expected.looks_at()?,
            inputs,
            population,
            released_tuples: 0,
            with_input,
            is_assigned: with_input && expected.assignment.is_some(),
            has_subset_models: requirements.iter().any(|requirement| !requirement.is_over_all_quasi()),
            wrong: Violations::default(),
            sizes: ClassSizes::default(),
            homogeneous: Counting::new(sensitive.iter().map(|index| expected.columns[*index].0.as_str())),
            values: vec![Vec::new(); requirements.len()],
            input_rows: 0,
            kept_rows: 0,
            unowned_rows: 0,
            suppressed_unowned: 0,
            individuals: Vec::new(),
            held: Held::new(budget),
        })
    }

    /// Judges a class after its last group.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(crate) fn judge(&mut self, class: &Counts, ended: &ClassSummary) -> Result<()> {
        let Counts { in_rows, out_rows, .. } = *class;
        self.input_rows += in_rows;
        let truth = if self.with_input { in_rows } else { out_rows };
        let seen = ended.seen(truth, &self.inputs);
        let size = seen.size;
        let population = self.population.as_ref().map(|population| population.of(&class.labels));
        let quantities: Vec<Option<Quantity>> = (self.requirements.iter().zip(&self.looks_at))
            .map(|(requirement, looks_at)| {
                let class = Class { population, ..seen.of_column(*looks_at) };
                requirement.is_over_all_quasi().then(|| requirement.model.value(&class))
            })
            .collect();
        let holds = (self.requirements.iter().zip(&quantities))
            .all(|(requirement, value)| value.is_none_or(|value| requirement.holds(size, value)));
        if class.no_label {
            self.wrong.no_label += 1;
        }
        let may_be_missing = match self.is_assigned {
            true => class.is_suppressed,
            // A class that holds by itself may belong to one over a subset of the quasi-identifiers
            // that does not.
            false => !holds || self.has_subset_models,
        };
        match (truth, out_rows) {
            (0, _) => self.wrong.not_in_input += 1,
            (_, 0) if !may_be_missing => self.wrong.rows_missing += 1,
            (_, 0) => {
                self.suppressed_unowned += ended.unowned_rows;
                self.each(ended, |person| person.suppressed = true)?;
            }
            _ if !holds => self.wrong.fails_a_model += 1,
            _ if out_rows < truth => self.wrong.rows_missing += 1,
            _ if out_rows > truth => self.wrong.rows_added += 1,
            _ if self.with_input && class.in_hash != class.out_hash => self.wrong.rows_altered += 1,
            _ => {
                self.kept_rows += out_rows;
                self.released_tuples += u64::from(population.is_some_and(|individuals| individuals > 0));
                self.unowned_rows += ended.unowned_rows;
                if ended.individuals.is_some() {
                    self.sizes.add_class(size);
                    let least = |known: Option<u64>| Some(known.map_or(size, |known| known.min(size)));
                    self.each(ended, |person| person.smallest = least(person.smallest))?;
                } else {
                    self.sizes.add(size);
                }
                self.homogeneous.add(size, &ended.values, ended.individuals.as_deref());
                self.values.iter_mut().zip(quantities).for_each(|(all, value)| all.extend(value));
            }
        }
        Ok(())
    }

    fn each(&mut self, ended: &ClassSummary, change: impl Fn(&mut IndividualState)) -> Result<()> {
        for individual in ended.individuals.iter().flatten() {
            let at = *individual as usize;
            if self.individuals.len() <= at {
                self.individuals.resize(at + 1, IndividualState { smallest: None, suppressed: false });
            }
            change(&mut self.individuals[at]);
        }
        self.held.at_least(self.individuals.capacity() * size_of::<IndividualState>())
    }

    /// Returns the counts if nothing is wrong; `individuals` are the number of all individuals of
    /// the input, where they are counted, and the most rows of one of them.
    ///
    /// # Errors
    /// An unmet error that says what is wrong.
    pub(crate) fn verdict(
        mut self,
        expected: &Expected<'_>,
        individuals: Option<(u64, u64)>,
    ) -> Result<Verified> {
        self.reduce();
        std::mem::take(&mut self.wrong).into_result()?;
        if self.kept_rows == 0 {
            return Err(Error::unmet("verification refused: the release has no rows"));
        }
        let suppressed_rows = self.with_input.then(|| self.input_rows - self.kept_rows);
        let suppressed_individuals =
            self.individuals.iter().filter(|person| person.suppressed).count() as u64;
        let suppressed = match (individuals, suppressed_rows) {
            (Some((all, _)), _) => Some((suppressed_individuals, all, ("individual is", "individuals are"))),
            (None, Some(rows)) => Some((rows, self.input_rows, ("row is", "rows are"))),
            (None, None) => None,
        };
        if let (Some((suppressed, all, what)), Some(limit)) = (suppressed, expected.suppression_limit) {
            let allowed = limit.floor_of(all);
            if suppressed > allowed {
                let suppressed = plural(suppressed, what.0, what.1);
                return Err(Error::unmet(format!(
                    "verification refused: {suppressed} suppressed, at most {allowed} allowed"
                )));
            }
        }
        let smallest = self.individuals.iter().filter_map(|person| person.smallest);
        smallest.for_each(|size| self.sizes.add_individual(size));
        self.judge_table()?;
        Ok(Verified {
            rows: self.kept_rows,
            sizes: self.sizes,
            homogeneous: self.homogeneous.finish(),
            suppressed_rows,
            individuals: individuals.map(|(all, most_rows)| IndividualCounts {
                all,
                suppressed: suppressed_individuals,
                most_rows,
                suppressed_unowned: self.suppressed_unowned,
            }),
            unowned_rows: self.unowned_rows,
            reached: self.values.into_iter().map(|all| all.first().copied()).collect(),
            reached_among_released: Vec::new(),
        })
    }

    /// Judges the released classes together.
    fn judge_table(&mut self) -> Result<()> {
        for (requirement, values) in self.requirements.iter().zip(&mut self.values) {
            let model = &requirement.model;
            let refused = |why: &str| {
                Err(Error::unmet(format!("verification refused: {} {}", requirement.text(), why)))
            };
            if model.needs() == Needs::Table {
                *values = model.table_value(&self.sizes).into_iter().collect();
                if !values.iter().all(|value| model.holds(*value)) {
                    return refused("does not hold for the released classes together");
                }
            }
            let tuples = self.population.as_ref().map_or(0, LabelledPopulation::tuples);
            if model.releases_every_tuple() && self.released_tuples != tuples {
                return refused(
                    "does not hold: individuals of the population have labels that no released row has",
                );
            }
        }
        Ok(())
    }

    /// Keeps only the worst value of each model.
    pub(crate) fn reduce(&mut self) {
        for (requirement, all) in self.requirements.iter().zip(&mut self.values) {
            let worst = requirement.model.reached(&mut all.drain(..));
            all.extend(worst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::memory_tests::Taken;
    use crate::verify::per_class::PerClass;

    #[test]
    fn memory_of_people_is_taken_from_the_budget() {
        let taken = Arc::new(Taken::default());
        let budget: Arc<dyn Budget> = Arc::<Taken>::clone(&taken);
        let expected = Expected {
            columns: Vec::new(),
            assignment: None,
            requirements: &[],
            sensitive: Vec::new(),
            preferences: Vec::new(),
            population: None,
            individual: Some("who".into()),
            suppression_limit: None,
        };
        let mut judge = Judge::new(&expected, Vec::new(), None, true, &budget).unwrap();
        // A class of 1000 people with a row each.
        let mut class = PerClass::new(0, true, &budget).take();
        class.individuals = Some((0..1_000).collect());
        let before = taken.bytes();
        judge.judge(&Counts { in_rows: 1_000, out_rows: 1_000, ..Counts::default() }, &class).unwrap();
        let held = taken.bytes() - before;
        let each = size_of::<IndividualState>();
        assert!((1_000 * each..4_000 * each).contains(&held), "{held} bytes");
    }
}
