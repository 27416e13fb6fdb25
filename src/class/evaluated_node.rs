//! A node's classes after judgement: which are kept, and what follows from it.

use super::individuals::Marked;
use super::{ClassTable, Classes};
use crate::model::{Class, Merge, Needs, Requirement, ValueCount};

/// A node whose classes were judged by all class models: what loss measures look at.
#[derive(Debug)]
pub struct EvaluatedNode<'a> {
    table: &'a ClassTable,
    levels: &'a [usize],
    classes: &'a Classes,
    kept: Vec<bool>,
    kept_rows: u64,
    kept_classes: u64,
    min_class: Option<u64>,
    surely_suppressed: u64,
    individuals: Suppressed,
    squares: u128,
}

/// The individuals with a row in a failing class.
#[derive(Debug, Clone, Copy)]
struct Suppressed {
    /// Here.
    here: u64,
    /// At every node below.
    surely: u64,
}

/// Verdicts on sizes below this are kept: most classes are small.
const SMALL: usize = 64;

/// What the requirements say of a class.
#[derive(Clone, Copy)]
struct Verdict {
    /// All hold.
    holds: bool,
    /// All that survive any merging hold, and the class is as large as they imply.
    may_hold_below: bool,
}

impl<'a> EvaluatedNode<'a> {
    /// Judges the `classes` of the node `levels`: a class is kept iff every model holds.
    pub fn new(
        table: &'a ClassTable,
        levels: &'a [usize],
        classes: &'a Classes,
        requirements: &[Requirement],
    ) -> Self {
        let counted = table.counted();
        let least = requirements.iter().map(|r| r.model.min_size()).max().unwrap_or(0);
        let of_size: Vec<&Requirement> =
            requirements.iter().filter(|r| r.model.needs() == Needs::Size).collect();
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
        let of_values: Vec<(&Requirement, usize)> = requirements
            .iter()
            .filter(|r| r.model.needs() != Needs::Size)
            .map(|r| {
                let name = r.sensitive.as_ref();
                let at = table.sensitive.iter().position(|column| Some(column) == name);
                // A column that was not counted has no values, by which no class holds.
                (r, at.unwrap_or(usize::MAX))
            })
            .collect();

        let mut node = Self {
            table,
            levels,
            classes,
            kept: Vec::with_capacity(classes.len()),
            kept_rows: 0,
            kept_classes: 0,
            min_class: None,
            surely_suppressed: 0,
            individuals: Suppressed { here: 0, surely: 0 },
            squares: 0,
        };
        let mut marked = classes.people.as_ref().map(|_| {
            let all = table.total_individuals();
            (Marked::none(all), Marked::none(all))
        });
        for (number, rows) in classes.rows().enumerate() {
            let size = classes.size(number, rows);
            let known = usize::try_from(size).ok().and_then(|size| small.get(size));
            let mut verdict = known.copied().unwrap_or_else(|| by_size(size));
            for (requirement, column) in &of_values {
                if !verdict.may_hold_below {
                    break;
                }
                let class = Class { size, sensitive: classes.by_value(number, *column) };
                let holds = requirement.model.holds(requirement.model.value(&class));
                verdict.holds &= holds;
                verdict.may_hold_below &= holds || requirement.model.merge(counted) != Merge::Any;
            }
            if let (Some((here, surely)), Some(individuals)) = (&mut marked, classes.individuals(number)) {
                if !verdict.holds {
                    here.mark(individuals);
                }
                if !verdict.may_hold_below {
                    surely.mark(individuals);
                }
            }
            node.add(size, rows, verdict);
        }
        node.individuals = match marked {
            Some((here, surely)) => Suppressed { here: here.count(), surely: surely.count() },
            None => Suppressed { here: node.suppressed_rows(), surely: node.surely_suppressed },
        };
        node
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

    /// The table the node belongs to.
    pub fn table(&self) -> &'a ClassTable {
        self.table
    }

    /// One level a column.
    pub fn levels(&self) -> &'a [usize] {
        self.levels
    }

    /// K, the rows of kept classes.
    pub fn kept_rows(&self) -> u64 {
        self.kept_rows
    }

    /// S, the rows of failing classes.
    pub fn suppressed_rows(&self) -> u64 {
        self.table.total_rows - self.kept_rows
    }

    /// Rows that every node below suppresses too: those of classes that fail a model which survives any
    /// merging, or that are smaller than a model implies. At most [`suppressed_rows`](Self::suppressed_rows).
    pub fn surely_suppressed_rows(&self) -> u64 {
        self.surely_suppressed
    }

    /// The individuals with at least one row in a failing class; rows where none are counted.
    pub fn suppressed_individuals(&self) -> u64 {
        self.individuals.here
    }

    /// Individuals with a row that every node below suppresses too. At most
    /// [`suppressed_individuals`](Self::suppressed_individuals).
    pub fn surely_suppressed_individuals(&self) -> u64 {
        self.individuals.surely
    }

    /// How many classes there are, kept or not.
    pub fn classes(&self) -> u64 {
        self.kept.len() as u64
    }

    /// How many classes are kept.
    pub fn kept_classes(&self) -> u64 {
        self.kept_classes
    }

    /// The size of the smallest kept class, in individuals.
    pub fn min_class(&self) -> Option<u64> {
        self.min_class
    }

    /// The sum of the squares of the rows of all classes, kept or not.
    pub fn squares(&self) -> u128 {
        self.squares
    }

    /// The kept classes: number and rows.
    pub fn kept(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.all().filter(|(_, _, kept)| *kept).map(|(class, rows, _)| (class, rows))
    }

    /// The failing classes: number and rows.
    pub fn suppressed(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.all().filter(|(_, _, kept)| !*kept).map(|(class, rows, _)| (class, rows))
    }

    /// For each column the suppressed rows by label code.
    pub fn suppressed_by_label(&self) -> Vec<Vec<u64>> {
        let columns = self.table.columns.iter().zip(self.levels);
        let rows = columns.map(|(column, level)| column.level(*level).rows().to_vec());
        // The rows of the fewer classes are looked at.
        if self.kept_classes * 2 > self.classes() {
            return self.rows_by_label(false);
        }
        let kept = self.rows_by_label(true);
        let without = |(rows, kept): (Vec<u64>, Vec<u64>)| {
            rows.iter().zip(&kept).map(|(rows, kept)| rows - kept).collect()
        };
        rows.zip(kept).map(without).collect()
    }

    /// For each column the rows of kept or of failing classes by label code.
    fn rows_by_label(&self, of_kept: bool) -> Vec<Vec<u64>> {
        let columns = self.table.columns.iter().zip(self.levels);
        let mut rows: Vec<Vec<u64>> =
            columns.map(|(column, level)| vec![0; column.level(*level).leaves().len()]).collect();
        for (class, size, _) in self.all().filter(|(_, _, kept)| *kept == of_kept) {
            for (column, rows) in rows.iter_mut().enumerate() {
                rows[self.code(class, column) as usize] += size;
            }
        }
        rows
    }

    /// All classes: number, rows, and whether the class is kept.
    pub fn all(&self) -> impl Iterator<Item = (usize, u64, bool)> + '_ {
        self.classes.rows().zip(&self.kept).enumerate().map(|(class, (rows, kept))| (class, rows, *kept))
    }

    /// The label code of `class` in `column`.
    pub fn code(&self, class: usize, column: usize) -> u32 {
        self.table.code(self.classes, class, column)
    }

    /// The size of a class with so many rows: its individuals, or the rows where none are counted.
    pub fn size(&self, class: usize, rows: u64) -> u64 {
        self.classes.size(class, rows)
    }

    /// How many individuals (rows, where none are counted) of `class` have each value of a sensitive column.
    pub fn by_value(&self, class: usize, column: usize) -> &[ValueCount] {
        self.classes.by_value(class, column)
    }

    /// How many rows of `class` have each value of a sensitive column; `None` when the table does not count
    /// that column.
    pub fn sensitive(&self, class: usize, column: usize) -> Option<&[ValueCount]> {
        (column < self.table.sensitive.len()).then(|| self.classes.sensitive(class, column))
    }
}
