//! A large table in parts that are cut by least loss, each partitioned by itself, on several threads.

use std::sync::atomic::{AtomicU64, Ordering};

use super::cuts::{self, Cut, Cuts, Finished, Judge};
use super::least_loss::{self, LeastLoss};
use crate::class::Region;
use crate::error::Result;
use crate::method::Problem;
use crate::model::min_size;
use crate::progress::Silent;

/// The classes of a table, by the numbers of its base classes, and the number of classes that were
/// judged. No classes if all base classes together do not satisfy the requirements.
pub(super) type Partition = (Vec<Vec<u32>>, u64);

/// Cuts the table until parts have at most `most` base classes or no cut is found, and partitions
/// each of them. The classes are in the order of their least base class.
///
/// # Errors
/// Those of `partition`, a data error when memory runs out, an interruption.
pub(super) fn in_parts(
    problem: &Problem<'_>,
    most: usize,
    partition: impl Fn(&Problem<'_>) -> Result<Partition> + Sync,
) -> Result<Partition> {
    let cuts = LeastLoss::new(problem.table, min_size(problem.requirements), problem.ends)?;
    let parts = InParts { problem, cuts, most, partition, judged: AtomicU64::new(0) };
    let (parts_found, tried) = cuts::cut_all(problem, &parts)?;
    let mut classes: Vec<Vec<u32>> =
        parts_found.into_iter().map(|Finished { classes, .. }| classes).collect();
    classes.sort_unstable_by_key(|class| class.iter().copied().min());
    Ok((classes, tried + parts.judged.into_inner()))
}

/// The cuts of a table into parts and classes.
struct InParts<'a, F> {
    problem: &'a Problem<'a>,
    cuts: LeastLoss<'a>,
    most: usize,
    partition: F,
    judged: AtomicU64,
}

/// A part of the table.
enum Part {
    /// One that is cut or partitioned.
    Open(least_loss::Part),
    /// A class.
    Class(Vec<u32>),
}

impl<'a, F: Fn(&Problem<'_>) -> Result<Partition> + Sync> Cuts for InParts<'a, F> {
    type Part = Part;
    type Scratch = <LeastLoss<'a> as Cuts>::Scratch;

    fn whole(&self) -> Part {
        Part::Open(self.cuts.whole())
    }

    fn classes(part: &Part) -> &[u32] {
        match part {
            Part::Open(part) => LeastLoss::classes(part),
            Part::Class(classes) => classes,
        }
    }

    fn shown(&self, _part: &Part) -> Result<Option<Box<[Region]>>> {
        Ok(None)
    }

    fn scratch(&self) -> Result<Self::Scratch> {
        self.cuts.scratch()
    }

    fn cut(&self, part: Part, judge: &mut Judge<'_>, scratch: &mut Self::Scratch) -> Result<Cut<Part>> {
        let mut open = match part {
            Part::Open(open) => open,
            class @ Part::Class(_) => return Ok(Cut::Final(class)),
        };
        if LeastLoss::classes(&open).len() > self.most {
            open = match self.cuts.cut(open, judge, scratch)? {
                Cut::Into(parts) => return Ok(Cut::Into(parts.into_iter().map(Part::Open).collect())),
                Cut::Final(open) => open,
            };
        }
        let mut base = LeastLoss::classes(&open).to_vec();
        base.sort_unstable();
        drop(open);
        let table = self.problem.table.only(&base)?;
        let problem = Problem { table: &table, threads: 1, progress: &Silent, ..*self.problem };
        let (classes, judged) = (self.partition)(&problem)?;
        self.judged.fetch_add(judged, Ordering::Relaxed);
        if classes.is_empty() {
            return Ok(Cut::Final(Part::Class(base)));
        }
        let of_table =
            |class: Vec<u32>| Part::Class(class.into_iter().map(|one| base[one as usize]).collect());
        Ok(Cut::Into(classes.into_iter().map(of_table).collect()))
    }
}
