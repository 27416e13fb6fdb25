//! What a publisher should know of classes that show centroids: means that one row makes, and modes
//! that are the value of one individual.

use crate::class::{ClassTable, EncodedColumn, EvaluatedPartition, Held, ReleasedClasses};
use crate::decimal::ratio;
use crate::error::Result;
use crate::generalize::{Centroid, Value};
use crate::model::Counted;
use crate::plural::plural;

/// Returns a sentence for each column in which a mean of a kept class is for more than half the
/// number of one row, and for each in which more than a tenth of the kept classes show a most
/// frequent value that only one of their individuals has.
///
/// # Errors
/// A data error when memory runs out.
pub(super) fn centroid_warnings(evaluated: &EvaluatedPartition<'_>) -> Result<Vec<String>> {
    let (table, released) = (evaluated.table(), evaluated.released());
    let mut held = Held::new(table.budget());
    let values = table.columns().iter().map(|column| column.distinct() * size_of::<Value>());
    let of_base = released.class_of_base().len() * (size_of::<u32>() + size_of::<Vec<u32>>());
    held.at_least(of_base + 2 * values.max().unwrap_or(0))?;
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); released.regions().len()];
    for (base, class) in (0u32..).zip(released.class_of_base()) {
        if let Some(members) = class.and_then(|class| members.get_mut(class as usize)) {
            members.push(base);
        }
    }
    let kept: Vec<usize> = evaluated.kept().map(|(class, _)| class).collect();
    let classes = plural(kept.len() as u64, "class", "classes");
    let mut warnings = Vec::new();
    for (at, column) in table.columns().iter().enumerate() {
        let values = column.clipped_values()?;
        let count = |is_found: &dyn Fn(usize) -> bool| kept.iter().filter(|class| is_found(**class)).count();
        let name = column.name();
        match released.centroid_of(column) {
            Some(Centroid::Mean) if is_of_numbers(column) => {
                let sizes: Vec<Option<f64>> =
                    values.iter().map(|value| value.to_f64().map(f64::abs)).collect();
                let found = count(&|class| one_row_makes_most(table, &members[class], at, &sizes));
                if found > 0 {
                    warnings.push(format!(
                        "one row makes more than half of the mean of `{name}` in {found} of {classes}, so the mean tells its value nearly: \
                         `clip` bounds such values, and centroid = \"median\" does not follow them"
                    ));
                }
            }
            Some(Centroid::Mode) => {
                let texts: Vec<Option<String>> = values.iter().map(Value::text_form).collect();
                let found =
                    count(&|class| mode_is_of_one(table, released, class, &members[class], at, &texts));
                if found * 10 > kept.len() {
                    let one = match table.counted() {
                        Counted::Rows => "row",
                        Counted::Individuals => "individual",
                    };
                    warnings.push(format!(
                        "in {found} of {classes} the most frequent value of `{name}` is that of one {one} alone, and shown as it is: leave out \
                         a column of names or numbers of people, or generalize it in another method"
                    ));
                }
            }
            _ => {}
        }
    }
    Ok(warnings)
}

/// Returns whether the column holds numbers; the mean of dates has no zero to be compared with.
fn is_of_numbers(column: &EncodedColumn) -> bool {
    let data_type = column.hierarchy().input_type();
    data_type.is_integer() || data_type.is_floating() || data_type.is_decimal()
}

/// Returns whether one row is larger than all other rows of a class together, whatever the signs;
/// `sizes` are those of the column's values, by code.
fn one_row_makes_most(table: &ClassTable, members: &[u32], at: usize, sizes: &[Option<f64>]) -> bool {
    let (mut rows_with_value, mut sum, mut largest) = (0, 0.0, 0.0_f64);
    for base in members {
        let base = *base as usize;
        let rows = table.base().rows_of(base);
        if let Some(size) = sizes[table.code(table.base(), base, at) as usize] {
            rows_with_value += rows;
            sum += size * ratio(rows.into(), 1);
            largest = largest.max(size);
        }
    }
    rows_with_value > 1 && largest > sum - largest
}

/// Returns whether a class shows a value in a column that only one of its individuals has; `texts`
/// are those of the column's values, by code.
fn mode_is_of_one(
    table: &ClassTable,
    released: &ReleasedClasses,
    class: usize,
    members: &[u32],
    at: usize,
    texts: &[Option<String>],
) -> bool {
    let base = table.base();
    let Some(Some(mode)) = released.centroid(class, at) else { return false };
    let has_it =
        |class: &&u32| texts[table.code(base, **class as usize, at) as usize].as_deref() == Some(mode);
    let with_it = || members.iter().filter(has_it).map(|class| *class as usize);
    match table.counted() {
        Counted::Rows => with_it().map(|class| base.rows_of(class)).sum::<u64>() == 1,
        Counted::Individuals => {
            let mut individuals = with_it().flat_map(|class| base.individuals(class).unwrap_or(&[]));
            let first = individuals.next();
            first.is_some_and(|first| individuals.all(|other| other == first))
        }
    }
}
