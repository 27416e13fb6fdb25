//! Models over a subset of the quasi-identifiers, judged on the released rows grouped by these columns alone.

use datafusion::logical_expr::Expr;

use super::as_is::ReleasedRows;
use super::counting::column_name;
use crate::engine::column;
use crate::error::{Error, Result};
use crate::model::{Quantity, SeenClass};

impl ReleasedRows<'_> {
    /// Returns for each requirement over a subset of the quasi-identifiers whether all rows of one
    /// of its classes share a value of its sensitive column; `false` for any other requirement.
    ///
    /// # Errors
    /// As [`judge_over_subsets`](Self::judge_over_subsets).
    pub(crate) async fn share_over_subsets(&self) -> Result<Vec<bool>> {
        let expected = self.expected();
        let counted = expected.counted()?;
        let mut shares = vec![false; expected.requirements.len()];
        for (requirement, shares) in expected.requirements.iter().zip(&mut shares) {
            let (Some(quasi), Some(column)) = (&requirement.quasi, &requirement.sensitive) else { continue };
            // The values themselves: who shares a value shares its label.
            let at =
                counted.iter().position(|(known, _)| known.is_as_it_is() && known.name() == column.name());
            let mut see = |class: &SeenClass<'_>| {
                let values = at.and_then(|at| class.values.get(at));
                *shares |= values.is_some_and(|values| {
                    values.first().is_some_and(|one| one.value.is_some() && one.count == class.rows)
                });
            };
            self.for_each_class(self.labels_of(quasi)?, &mut see).await?;
        }
        Ok(shares)
    }

    /// Returns the columns that hold the numbered labels of these quasi-identifiers.
    fn labels_of(&self, quasi: &[String]) -> Result<Vec<Expr>> {
        let expected = self.expected();
        let label = |name: &String| {
            let index = expected.quasi().find(|index| expected.columns[*index].0 == *name);
            index.map(|index| column(column_name(index))).ok_or_else(|| {
                let why = "is not a quasi-identifier of the release";
                Error::unmet(format!("verification refused: `{name}` {why}"))
            })
        };
        quasi.iter().map(label).collect()
    }

    /// Judges each requirement over a subset of the quasi-identifiers; returns what it reached in
    /// place of the value that `reached` lacks.
    ///
    /// # Errors
    /// An unmet error that names the requirement; a data error when reading fails or memory runs out.
    pub(super) async fn judge_over_subsets(
        &self,
        mut reached: Vec<Option<Quantity>>,
    ) -> Result<Vec<Option<Quantity>>> {
        let expected = self.expected();
        let looks_at = expected.looks_at()?;
        let requirements = expected.requirements.iter().zip(looks_at).zip(&mut reached);
        for ((requirement, looks_at), reached) in requirements {
            let Some(quasi) = &requirement.quasi else { continue };
            let labels = self.labels_of(quasi)?;
            let (model, mut worst, mut all_hold) = (&requirement.model, None, true);
            let mut see = |class: &SeenClass<'_>| {
                let value = model.value(&class.of_column(looks_at));
                all_hold &= requirement.holds(class.size, value);
                worst = model.reached(&mut worst.into_iter().chain([value]));
            };
            self.for_each_class(labels, &mut see).await?;
            if !all_hold {
                let why = "does not hold for the released rows";
                return Err(Error::unmet(format!("verification refused: {} {why}", requirement.text())));
            }
            *reached = worst;
        }
        Ok(reached)
    }
}
