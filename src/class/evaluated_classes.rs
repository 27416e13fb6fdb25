//! Classes judged by the models: which are kept, and what that implies.

use super::individuals::Marked;
use super::over_subset::{self, JoinBy};
use super::population::PopulationCounts;
use super::{ClassSizes, ClassTable, Classes};
use crate::error::Result;
use crate::model::{Class, Merge, Needs, Requirement, ValueCount, min_size};

/// A recoding whose classes were checked against all class models.
pub trait EvaluatedRecoding {
    /// Returns the classes.
    fn evaluated(&self) -> &EvaluatedClasses<'_>;

    /// Returns for each column the sum over all rows of the number of leaves that the row's class
    /// shows; a suppressed row shows all of them.
    fn leaves_shown(&self) -> Vec<u128>;
}

/// Classes of any recoding that were checked against all class models.
#[derive(Debug)]
pub struct EvaluatedClasses<'a> {
    table: &'a ClassTable,
    pub(super) classes: &'a Classes,
    kept: Vec<bool>,
    kept_rows: u64,
    kept_classes: u64,
    min_class: Option<u64>,
    surely_suppressed: u64,
    individuals: Suppressed,
    squares: u128,
    tables_hold: bool,
}

/// Counts the individuals with a row in a failing class.
#[derive(Debug, Clone, Copy)]
struct Suppressed {
    /// In these classes.
    here: u64,
    /// At every node below, of a node.
    surely: u64,
}

/// Verdicts on sizes below this are cached: most classes are small.
const SMALL: usize = 64;

/// The verdict of the requirements on a class.
#[derive(Clone, Copy)]
pub(super) struct Verdict {
    /// Whether all models hold.
    pub(super) holds: bool,
    /// Whether all models that survive any merging hold and the class is as large as they imply.
    pub(super) may_hold_below: bool,
}

impl<'a> EvaluatedClasses<'a> {
    /// Evaluates classes: a class is kept iff every model holds, and its number is below
    /// `released`. Models over a subset of the quasi-identifiers look at the classes that `join_by`
    /// joins.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn new(
        table: &'a ClassTable,
        classes: &'a Classes,
        released: usize,
        requirements: &[Requirement],
        population: Option<&PopulationCounts>,
        join_by: JoinBy<'_>,
    ) -> Result<Self> {
        let mut verdicts = verdicts(table, classes, released, requirements, population);
        over_subset::judge(table, classes, requirements, join_by, &mut verdicts)?;
        let mut evaluated = Self {
            table,
            classes,
            kept: Vec::with_capacity(classes.len()),
            kept_rows: 0,
            kept_classes: 0,
            min_class: None,
            surely_suppressed: 0,
            individuals: Suppressed { here: 0, surely: 0 },
            squares: 0,
            tables_hold: true,
        };
        let mut marked = classes.members.as_ref().map(|_| {
            let all = table.total_individuals();
            (Marked::none(all), Marked::none(all))
        });
        for ((number, rows), verdict) in classes.rows().enumerate().zip(verdicts) {
            if let (Some((here, surely)), Some(individuals)) = (&mut marked, classes.individuals(number)) {
                if !verdict.holds {
                    here.mark(individuals);
                }
                if !verdict.may_hold_below {
                    surely.mark(individuals);
                }
            }
            evaluated.add(classes.size(number, rows), rows, verdict);
        }
        evaluated.tables_hold = evaluated.table_models_hold(requirements, population);
        evaluated.individuals = match marked {
            Some((here, surely)) => Suppressed { here: here.count(), surely: surely.count() },
            None => Suppressed { here: evaluated.suppressed_rows(), surely: evaluated.surely_suppressed },
        };
        Ok(evaluated)
    }

    /// Returns whether every model of the kept classes together holds.
    fn table_models_hold(&self, requirements: &[Requirement], population: Option<&PopulationCounts>) -> bool {
        let must_cover = requirements.iter().any(|r| r.model.releases_every_tuple());
        let covers = || self.suppressed_rows() == 0 && population.is_some_and(|counts| !counts.has_others);
        let mut of_table = requirements.iter().filter(|r| r.model.needs() == Needs::Table).peekable();
        if (must_cover && !covers()) || of_table.peek().is_none() {
            return !must_cover || covers();
        }
        let kept = ClassSizes::of_some(self.table, self.classes, |class| self.kept[class]);
        of_table.all(|r| r.model.table_value(&kept).is_none_or(|value| r.model.holds(value)))
    }

    /// Returns whether at most `limit` individuals are suppressed and every table model holds.
    pub fn is_anonymous(&self, limit: u64) -> bool {
        self.suppressed_individuals() <= limit && self.tables_hold
    }

    fn add(&mut self, size: u64, rows: u64, verdict: Verdict) {
        self.kept.push(verdict.holds);
        self.squares += u128::from(rows) * u128::from(rows);
        if verdict.holds {
            self.kept_rows += rows;
            self.kept_classes += 1;
            self.min_class = Some(self.min_class.map_or(size, |least| least.min(size)));
        }
        if !verdict.may_hold_below {
            self.surely_suppressed += rows;
        }
    }

    /// Returns the table that the classes belong to.
    #[doc(hidden)]
    pub fn table(&self) -> &'a ClassTable {
        self.table
    }

    /// Returns K, the number of rows in kept classes.
    pub fn kept_rows(&self) -> u64 {
        self.kept_rows
    }

    /// Returns S, the number of rows in failing classes.
    pub fn suppressed_rows(&self) -> u64 {
        self.table.total_rows - self.kept_rows
    }

    /// For a node, returns the number of rows that every node below suppresses too: those of
    /// classes that fail a model which survives any merging, that are smaller than a model implies,
    /// or that belong to a joined class that fails so. At most
    /// [`suppressed_rows`](Self::suppressed_rows).
    pub fn surely_suppressed_rows(&self) -> u64 {
        self.surely_suppressed
    }

    /// Returns the number of individuals with at least one row in a failing class; rows if no
    /// individuals are counted.
    pub fn suppressed_individuals(&self) -> u64 {
        self.individuals.here
    }

    /// For a node, returns the number of individuals with a row that every node below suppresses too. At most
    /// [`suppressed_individuals`](Self::suppressed_individuals).
    pub fn surely_suppressed_individuals(&self) -> u64 {
        self.individuals.surely
    }

    /// Returns the number of classes, kept or not; all suppressed base classes of released classes are one.
    pub fn classes(&self) -> u64 {
        self.kept.len() as u64
    }

    /// Returns the number of kept classes.
    pub fn kept_classes(&self) -> u64 {
        self.kept_classes
    }

    /// Returns the size of the smallest kept class, in individuals.
    pub fn min_class(&self) -> Option<u64> {
        self.min_class
    }

    /// Returns the sum of the squared row counts of all classes, kept or not.
    pub fn squares(&self) -> u128 {
        self.squares
    }

    /// Returns the number and the row count of each kept class.
    pub fn kept(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.all().filter(|(_, _, kept)| *kept).map(|(class, rows, _)| (class, rows))
    }

    /// Returns the number and the row count of each failing class.
    pub fn suppressed(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.all().filter(|(_, _, kept)| !*kept).map(|(class, rows, _)| (class, rows))
    }

    /// Returns each class's number, its row count and whether it is kept.
    pub fn all(&self) -> impl Iterator<Item = (usize, u64, bool)> + '_ {
        self.classes.rows().zip(&self.kept).enumerate().map(|(class, (rows, kept))| (class, rows, *kept))
    }

    /// Returns the size of a class with `rows` rows: its individuals, or `rows` if none are
    /// counted.
    pub fn size(&self, class: usize, rows: u64) -> u64 {
        self.classes.size(class, rows)
    }

    /// Returns how many individuals of `class` (rows, if none are counted) have each value of a
    /// sensitive column.
    pub fn by_value(&self, class: usize, column: usize) -> &[ValueCount] {
        self.classes.by_value(class, column)
    }

    /// Returns how many rows of `class` have each value of a sensitive column; `None` if the table
    /// does not count that column.
    pub fn sensitive(&self, class: usize, column: usize) -> Option<&[ValueCount]> {
        (column < self.table.sensitive.len()).then(|| self.classes.sensitive(class, column))
    }
}

/// Judges each class by itself.
fn verdicts(
    table: &ClassTable,
    classes: &Classes,
    released: usize,
    requirements: &[Requirement],
    population: Option<&PopulationCounts>,
) -> Vec<Verdict> {
    let counted = table.counted();
    let least = min_size(requirements);
    let of_classes = || requirements.iter().filter(|requirement| requirement.is_over_all_quasi());
    let of_size: Vec<&Requirement> = of_classes().filter(|r| r.model.needs() == Needs::Size).collect();
    let by_size = |size: u64| {
        let class = Class::of_size(size);
        let holds = |r: &&Requirement| r.model.holds(r.model.value(&class));
        let survives = |r: &&&Requirement| r.model.merge(counted) == Merge::Any;
        Verdict {
            holds: size >= least && of_size.iter().all(holds),
            may_hold_below: size >= least && of_size.iter().filter(survives).all(holds),
        }
    };
    let small: Vec<Verdict> = (0u64..).take(SMALL).map(by_size).collect();
    let of_values: Vec<(&Requirement, usize)> = of_classes()
        .filter_map(|r| {
            // A column that was not counted has no values, so no class holds.
            r.sensitive.as_ref().map(|column| (r, table.sensitive_index(column).unwrap_or(usize::MAX)))
        })
        .collect();

    let of_population: Vec<&Requirement> =
        of_classes().filter(|r| r.model.needs() == Needs::Population).collect();
    let judge = |(number, rows): (usize, u64)| {
        let size = classes.size(number, rows);
        let known = usize::try_from(size).ok().and_then(|size| small.get(size));
        let mut verdict = known.copied().unwrap_or_else(|| by_size(size));
        let in_population = population.and_then(|counts| counts.of_class.get(number)).copied();
        for requirement in &of_population {
            let class = Class { population: in_population, ..Class::of_size(size) };
            let holds = requirement.model.holds(requirement.model.value(&class));
            verdict.holds &= holds;
            verdict.may_hold_below &= holds || requirement.model.merge(counted) != Merge::Any;
        }
        if number >= released {
            verdict = Verdict { holds: false, may_hold_below: false };
        }
        for (requirement, column) in &of_values {
            if !verdict.may_hold_below {
                break;
            }
            let (sensitive, input) = (classes.by_value(number, *column), table.distribution(*column));
            let class = Class { size, sensitive, input, population: None };
            let holds = requirement.model.holds(requirement.model.value(&class));
            verdict.holds &= holds;
            verdict.may_hold_below &= holds || requirement.model.merge(counted) != Merge::Any;
        }
        verdict
    };
    classes.rows().enumerate().map(judge).collect()
}
