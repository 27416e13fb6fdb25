//! Models over a subset of the quasi-identifiers, judged on the released rows grouped by these columns alone.

use super::as_is::ReleasedRows;
use super::counting::column_name;
use super::each_class::SeenClass;
use crate::engine::column;
use crate::error::{Error, Result};
use crate::model::Quantity;

impl ReleasedRows<'_> {
    /// Judges each requirement over a subset of the quasi-identifiers; returns what it reached in place of the value that
    /// `reached` lacks.
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
            let label = |name: &String| {
                let index = expected.quasi().find(|index| expected.columns[*index].0 == *name);
                index.map(|index| column(column_name(index))).ok_or_else(|| {
                    let why = "is not a quasi-identifier of the release";
                    Error::unmet(format!("verification refused: `{name}` {why}"))
                })
            };
            let labels = quasi.iter().map(label).collect::<Result<Vec<_>>>()?;
            let (model, mut worst, mut all_hold) = (&requirement.model, None, true);
            let mut see = |class: &SeenClass<'_>| {
                let value = model.value(&class.of_column(looks_at));
                all_hold &= model.holds(value);
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
