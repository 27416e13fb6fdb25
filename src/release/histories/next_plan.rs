//! The plan of the next release, once it is decided which rows it shows.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::compute::take;
use hashbrown::HashMap;
use serde::Serialize;

use crate::class::parts::Part;
use crate::class::{Budget, ClassTable, Held};
use crate::engine::{Context, Run};
use crate::error::{Error, Result};
use crate::input::Loaded;
use crate::measure::granularity::share;
use crate::plural::{grouped, individuals};
use crate::policy::Policy;
use crate::release::apply::ClassKeys;
use crate::release::histories::Continued;
use crate::release::histories::chain::Chain;
use crate::release::histories::next_classes::LabelsOfColumns;
use crate::release::histories::next_release::{DOING, NextRelease, Row};
use crate::release::histories::row_numbers::number_of_row;
use crate::release::kind::classes::{KeptClasses, order_of_labels, planned_rows_by, written};
use crate::release::kind::{Content, ReleasePlan, Secret, levels, regions};
use crate::release::search::limit;
use crate::verify::row_lines::{RowLines, RowName};

/// The people with a row that a release does not show which follows others, by why. Who has several such rows is counted for each reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct NotShown {
    /// Those with a row that no release before shows: they wait until enough others are new with them.
    pub new: u64,
    /// Those who have moved out of their class.
    pub moved: u64,
    /// Those who hide others that left or changed.
    pub companions: u64,
    /// Those whose class, or whose part of it, is left out as a whole.
    pub left_out: u64,
}

impl NotShown {
    /// Returns the numbers that are not 0, with the reasons.
    pub(crate) fn in_words(&self) -> Vec<(u64, &'static str)> {
        let all = [
            (self.new, "until enough others are new with them"),
            (self.moved, "because their class does not cover them any more"),
            (self.companions, "to hide others who left or changed"),
            (self.left_out, "with their whole class, of which too few are left"),
        ];
        all.into_iter().filter(|(people, _)| *people > 0).collect()
    }
}

/// The next release, planned.
pub(in crate::release) struct Next {
    pub(in crate::release) plan: ReleasePlan,
    /// What its record says of those that it follows.
    pub(in crate::release) continued: Continued,
    pub(in crate::release) not_shown: NotShown,
}

impl NextRelease {
    /// Returns what the release shows.
    ///
    /// # Errors
    /// An internal error if the schema lacks a released column.
    pub(super) fn content(&self, loaded: &Loaded, lines: RowLines) -> Result<Content> {
        let (policy, lines) = (&loaded.policy, Arc::new(lines));
        match &self.shows.levels {
            None => regions::content_by_rows(policy, loaded.schema(), lines),
            Some(levels) => {
                let generalizers = levels.generalizers.clone();
                levels::content_by_rows(policy, loaded.schema(), &levels.levels, generalizers, lines)
            }
        }
    }

    /// Returns what classes show, in policy order.
    fn labels_of(&self, policy: &Policy, classes: &ClassTable, used: &[u32]) -> Result<Vec<ArrayRef>> {
        if let Some(levels) = &self.shows.levels {
            return levels.labels_of(classes, used);
        }
        let texts = |at: usize| -> ArrayRef {
            let place = policy.released_quasi().position(|quasi| quasi == at);
            let text = |class: &u32| self.shows.numbered.labels[*class as usize][place?].clone();
            Arc::new(used.iter().map(text).collect::<StringArray>())
        };
        Ok((0..policy.quasi.len()).map(texts).collect())
    }

    /// Returns the plan of the release.
    ///
    /// # Errors
    /// An unmet error if no row can be shown, or fewer than the policy allows; a data error when memory runs out.
    pub(super) fn planned(
        self,
        run: &Run,
        loaded: &Loaded,
        classes: &ClassTable,
        chain: &Chain,
        budget: Arc<dyn Budget>,
    ) -> Result<Next> {
        let policy = &loaded.policy;
        let used = self.used();
        if used.is_empty() {
            return Err(Error::unmet(
                "the next release would be empty: no row can be shown safely; nothing was published",
            ));
        }
        self.check_limit(policy, classes)?;
        let labels = self.labels_of(policy, classes, &used)?;
        let written = written(policy, &labels)?;
        let in_order = policy.quasi_in_order().into_iter().flat_map(|at| written[at].clone());
        let order = order_of_labels(&in_order.collect::<Vec<_>>(), used.len())?;
        let labels = labels.iter().map(|texts| take(texts, &order, None).context(DOING));
        let labels: Vec<ArrayRef> = labels.collect::<Result<_>>()?;
        let used: Vec<u32> = order.values().iter().map(|place| used[*place as usize]).collect();

        let lines = self.lines(chain, &used);
        let mut rows = vec![0; used.len()];
        let mut numbers: HashMap<RowName, u64> = HashMap::new();
        for (name, class) in lines.rows.iter().filter_map(|(name, class)| Some((*name, (*class)?))) {
            rows[class as usize] += 1;
            numbers.insert(name, class.into());
        }
        let costs = self.costs(run, policy, classes, &budget)?;
        let new_classes = used.iter().filter(|class| **class as usize >= self.shows.earlier);
        let new_classes =
            new_classes.map(|class| self.shows.numbered.labels[*class as usize].clone()).collect();
        let mut held = Held::new(&budget);
        held.at_least(2 * lines.rows.len() * (size_of::<RowName>() + 2 * size_of::<u64>()))?;
        let class = number_of_row(&lines.names, numbers)?;
        let kept = KeptClasses { labels, keys: ClassKeys::default(), rows };
        let content = self.content(loaded, lines)?;
        let schema = Arc::clone(&content.tables[0].schema);
        let rows = vec![planned_rows_by(run, loaded, class, kept, &schema, &budget)?];
        let not_shown = self.not_shown();
        let plan = ReleasePlan {
            content,
            rows,
            secret: Secret::default(),
            costs,
            utility: None,
            remarks: Vec::new(),
            warnings: Vec::new(),
            budget,
            held,
        };
        Ok(Next { plan, continued: chain.continued(new_classes)?, not_shown })
    }

    /// Returns the people with a row of these that is not shown.
    fn waiting(&self, is_one: impl Fn(&Row) -> bool) -> u64 {
        let rows = self.rows.iter().filter(|row| !row.is_shown() && is_one(row));
        rows.map(Row::person).collect::<BTreeSet<_>>().len() as u64
    }

    /// Counts the people with a row that is not shown, by why.
    fn not_shown(&self) -> NotShown {
        let known = |part: Part| self.waiting(|row| !row.is_new && row.part == part);
        NotShown {
            new: self.waiting(|row| row.is_new),
            moved: known(Part::Gone),
            companions: known(Part::Companion),
            left_out: known(Part::LeftOut),
        }
    }

    /// Refuses a release that suppresses more individuals than the policy allows.
    fn check_limit(&self, policy: &Policy, classes: &ClassTable) -> Result<()> {
        let (limit, waiting) = (limit(policy, classes), self.waiting(|_| true));
        if waiting > limit {
            let reasons = self.not_shown().in_words();
            let reasons = reasons.into_iter().map(|(people, why)| format!("{} {why}", grouped(people)));
            return Err(Error::unmet(format!(
                "{} could not be shown safely, and suppression_limit allows {}: {}; nothing was published; another share can be allowed \
                 with --suppression-limit",
                individuals(waiting),
                grouped(limit),
                reasons.collect::<Vec<_>>().join(", "),
            )));
        }
        Ok(())
    }

    /// Returns the loss of each quasi-identifier, in policy order.
    fn costs(
        &self,
        run: &Run,
        policy: &Policy,
        classes: &ClassTable,
        budget: &Arc<dyn Budget>,
    ) -> Result<Vec<f64>> {
        let labels = &self.shows.numbered.labels;
        let mut shown = vec![0u64; labels.len()];
        let of_shown = self.rows.iter().filter(|row| row.is_shown()).filter_map(|row| row.class);
        of_shown.for_each(|class| shown[class as usize] += 1);
        if let Some(levels) = &self.shows.levels {
            return levels.costs(classes, &shown);
        }
        let of_columns = LabelsOfColumns::of(policy, classes, labels)?;
        let columns = of_columns.columns(run, classes, budget)?;
        let (rows, mut costs) = (classes.total_rows(), vec![0.0; policy.quasi.len()]);
        for ((_, column), at) in columns.iter().zip(policy.released_quasi()) {
            let of_class = (0u32..).zip(&shown).filter(|(_, rows)| **rows > 0);
            let covered = of_class.map(|(class, rows)| u128::from(*rows) * u128::from(column.leaves(class)));
            let hidden = u128::from(rows - shown.iter().sum::<u64>());
            let leaves = classes.columns()[at].leaves();
            costs[at] = share(covered.sum::<u128>() + hidden * u128::from(leaves), rows, leaves);
        }
        Ok(costs)
    }
}
