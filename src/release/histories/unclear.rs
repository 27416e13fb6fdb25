//! Explains, in whole sentences, why people or their rows cannot be matched across inputs.

use crate::engine::Run;
use crate::error::Result;
use crate::plural::{individuals, plural};
use crate::release::histories::about::About;
use crate::verify::histories::{self, Counts, Matching, ShownRows};

/// Returns sentences about rows that cannot be told apart. `alike` is the number of rows that are equal to others of their input, where
/// it matters which is which.
pub(super) fn rows(counts: &Counts, alike: u64, matching: &Matching) -> Vec<String> {
    const NAME: &str = "name the columns that tell the rows of a person apart (`row` of [history], or --row)";
    let mut unclear = Vec::new();
    if alike > 0 {
        let by = matching.row.join(", ");
        unclear.push(format!(
            "{} of a person, so nobody can say which of them is which in another release; {NAME}",
            plural(
                alike,
                &format!("row is equal in {by} to another"),
                &format!("rows are equal in {by} to others")
            )
        ));
    }
    if counts.unmatched > 0 {
        unclear.push(format!(
            "{} a row that is gone and one that is new, which may be one row that changed; {NAME}",
            plural(counts.unmatched, "person has", "people have")
        ));
    }
    unclear
}

/// Returns sentences about inputs, which have these names, in which too few people or rows come back to believe that their names lasted.
pub(super) fn returning(counts: &Counts, inputs: &[&str], matching: &Matching) -> Vec<String> {
    let mut unclear = Vec::new();
    for (returning, input) in counts.returning.iter().zip(inputs.iter().skip(1)) {
        let (both, person) = (returning.both, &matching.person);
        if returning.are_few() {
            unclear.push(format!(
                "{both} of {} come back in the input of {input}; if `{person}` was numbered anew, nobody can be found again; if these are \
                 other people, say so (--accept-new-people)",
                individuals(returning.most()),
            ));
        } else if matching.row_is_named && returning.have_other_rows() {
            unclear.push(format!(
                "{} of {} who come back in the input of {input} have no row that they had before; if {} was numbered anew, no row can be \
                 found again; if these are other rows, say so (--accept-new-people)",
                returning.with_other_rows,
                individuals(both),
                matching.row.join(", ")
            ));
        }
    }
    unclear
}

/// Returns sentences about people whom one name does not name in all inputs, as far as the rows show it.
///
/// # Errors
/// A data error when memory runs out.
pub(super) async fn people(
    abouts: &[&About],
    shown: &[&ShownRows<'_>],
    matching: &Matching,
    run: &Run,
) -> Result<Vec<String>> {
    let (mut unclear, person) = (Vec::new(), &matching.person);
    for (about, rows) in abouts.iter().zip(shown).filter(|(_, rows)| rows.without_person.shown > 0) {
        unclear.push(format!(
            "{} of {} name no person by `{person}`, so nobody can say whose they are; leave them out",
            plural(rows.without_person.shown, "row", "rows"),
            about.shown
        ));
    }
    let people = histories::spelled_in_two_ways(shown, &run.stop).await?;
    if people > 0 {
        unclear.push(format!(
            "{} of `{person}` differ from one of another input by nothing but spaces, punctuation, zeros in front, capital letters or \
             the form of a letter in Unicode; write them alike",
            plural(people, "person", "people")
        ));
    }
    for (names, rows) in abouts.windows(2).zip(shown.windows(2)) {
        let ([first, second], [before, after]) = (names, rows) else { continue };
        let found = histories::equal_rows([before, after], matching, &run.stop).await?;
        if found.have_other_names() {
            let row = matching.row.join(", ");
            unclear.push(format!(
                "of the rows of one person that are equal in the inputs of {} and {}, {} have another {row}, and {} the same: was {row} \
                 numbered anew?",
                first.shown,
                second.shown,
                found.of_another_name,
                found.of_one_person - found.of_another_name
            ));
        }
        if found.are_of_others() {
            unclear.push(format!(
                "of the rows that are equal in the inputs of {} and {}, {} have another person by `{person}`, and {} the same: does it \
                 number rows, or were people numbered anew?",
                first.shown, second.shown, found.of_two, found.of_one_person
            ));
        }
    }
    Ok(unclear)
}
