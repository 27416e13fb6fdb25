//! Checks that enough individuals hold each value that a tree of `merge` lists, and that it lacks no
//! other value than the rule says.
//!
//! Rows are read one by one, without a GROUP BY, and with nothing of the counting that made the tree.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::UInt64Type;
use datafusion::prelude::{DataFrame, SessionContext};
use futures::StreamExt;

use crate::class::{Budget, Held};
use crate::engine::functions::{random_keys, row_hash};
use crate::engine::{Context, PoolBudget, column};
use crate::error::{Error, Result};
use crate::generalize::Value;
use crate::generalize::merge::MergedTree;
use crate::progress::CancelToken;

const DOING: &str = "verifying merged values";

/// A column with its tree.
pub(crate) struct MergedColumn<'a> {
    /// The column.
    pub(crate) name: &'a str,
    /// The tree.
    pub(crate) tree: &'a MergedTree,
    /// The column that identifies individuals; without one, rows are counted.
    pub(crate) individual: Option<&'a str>,
    /// A value with fewer holders must not be listed.
    pub(crate) least: u64,
}

/// Checks that at least `least` individuals hold each value that the tree of a column lists; rows,
/// without an individual column. Of the other values each must have fewer holders, but one if all
/// others together have too few; a tree that follows an earlier one may lack more.
///
/// # Errors
/// An unmet error if the tree is another one; a data error when reading fails or memory runs out.
pub(crate) async fn check_listed(
    session: &SessionContext,
    input: &DataFrame,
    merged: &MergedColumn<'_>,
    stop: &CancelToken,
) -> Result<()> {
    let MergedColumn { name, tree, individual, least } = *merged;
    // For each value at most `least` of its holders.
    let mut holders: HashMap<String, HashSet<u64>> = HashMap::new();
    let listed: HashSet<&str> = tree.listed().filter_map(|row| row.first()).map(String::as_str).collect();
    listed.iter().for_each(|value| drop(holders.insert((*value).to_owned(), HashSet::new())));
    let of_value = |value: &str| 2 * (size_of::<(String, HashSet<u64>)>() + value.len());
    let budget: Arc<dyn Budget> = Arc::new(PoolBudget::new(session, "holders of merged values"));
    let (mut held, mut number) = (Held::new(&budget), 0u64);
    let mut bytes: usize = listed.iter().map(|value| of_value(value)).sum();
    let mut columns = vec![column(name)];
    if let Some(individual) = individual {
        columns.push(row_hash(random_keys(DOING)?[0], vec![column(individual)]));
        // No name of the column.
        columns.push(column(individual).is_not_null().alias(format!("holder of {name}")));
    }
    let rows = input.clone().select(columns).context(DOING)?;
    let mut batches = rows.execute_stream().await.context(DOING)?;
    while let Some(batch) = batches.next().await {
        stop.check()?;
        let batch = batch.context(DOING)?;
        let hashes = batch.columns().get(1).and_then(|hashes| hashes.as_primitive_opt::<UInt64Type>());
        let is_owned = batch.columns().get(2).and_then(|is_owned| is_owned.as_boolean_opt());
        for row in 0..batch.num_rows() {
            number += 1;
            let Some(text) = Value::read(batch.column(0), row)?.text_form() else { continue };
            let of_text = of_value(&text);
            let seen = holders.entry(text).or_insert_with(|| {
                bytes += of_text;
                HashSet::new()
            });
            let is_holder =
                (seen.len() as u64) < least && is_owned.is_none_or(|is_owned| is_owned.value(row));
            let is_new = is_holder && seen.insert(hashes.map_or(number, |hashes| hashes.value(row)));
            bytes += usize::from(is_new) * 2 * size_of::<u64>();
        }
        held.at_least(bytes)?;
    }
    let is_frequent = |seen: &HashSet<u64>| seen.len() as u64 >= least;
    if listed.iter().any(|value| !holders.get(*value).is_some_and(is_frequent)) {
        return Err(refused("names a value that too few individuals hold"));
    }
    let frequent = holders.values().filter(|seen| is_frequent(seen)).count();
    let rare = || holders.values().filter(|seen| !is_frequent(seen));
    let mut of_rare = HashSet::new();
    let are_enough = rare().flatten().any(|holder| {
        of_rare.insert(*holder);
        is_frequent(&of_rare)
    });
    // A value that is not listed joins these, unless it would be the only one that is.
    let are_too_few = rare().next().is_some() && !are_enough;
    let joined = frequent - listed.len();
    let are_right = match are_too_few {
        true if frequent > 1 => joined >= 1 && (joined == 1 || tree.is_followed),
        _ => joined == 0 || tree.is_followed,
    };
    match are_right {
        true => Ok(()),
        false => Err(refused("lacks another value than the rule says")),
    }
}

fn refused(why: &str) -> Error {
    Error::unmet(format!("verification refused: the tree of a merged column {why}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, RecordBatch, StringArray};

    use super::*;
    use crate::generalize::hierarchy::parse_table;
    use crate::known::OTHER;

    /// Checks a tree that lists some values of a table. Each of `values` is a value and its holders, one letter
    /// each; a value needs three holders.
    async fn check(values: &[&str], listed: &str, is_followed: bool) -> &'static str {
        let rows: Vec<(String, String)> = values
            .iter()
            .flat_map(|value| {
                value.split_once(' ').unwrap().1.chars().map(|who| (value[..1].into(), who.into()))
            })
            .collect();
        let column = |of: fn(&(String, String)) -> &String| {
            Arc::new(StringArray::from_iter_values(rows.iter().map(of))) as ArrayRef
        };
        let batch = RecordBatch::try_from_iter([("v", column(|row| &row.0)), ("who", column(|row| &row.1))]);
        let session = SessionContext::new();
        let table = session.read_batch(batch.unwrap()).unwrap();
        let rows: String = listed.chars().map(|value| format!("{value};{value}\n")).collect();
        let rows = parse_table(&(rows + "other;other\n")).unwrap();
        let tree = MergedTree { label: OTHER.to_owned(), rows, is_followed };
        let column = MergedColumn { name: "v", tree: &tree, individual: Some("who"), least: 3 };
        match check_listed(&session, &table, &column, &CancelToken::default())
            .await
            .map_err(|e| e.to_string())
        {
            Ok(()) => "right",
            Err(why) if why.contains("names a value that too few") => "too few",
            Err(why) if why.contains("lacks another value") => "lacks",
            Err(why) => panic!("{why}"),
        }
    }

    #[tokio::test]
    async fn a_tree_lists_what_the_rule_says() {
        // Three individuals hold c or d.
        let enough = ["a pqrs", "b pqr", "c pq", "d r"];
        assert_eq!(check(&enough, "ab", false).await, "right");
        assert_eq!(check(&enough, "abc", false).await, "too few");
        assert_eq!(check(&enough, "a", false).await, "lacks");
        assert_eq!(check(&enough, "a", true).await, "right");
        // Two do, though each is held by two.
        let too_few = ["a pqrs", "b pqr", "e pqr", "c pq", "d pq"];
        assert_eq!(check(&too_few, "ab", false).await, "right");
        for lacks in ["abe", "a"] {
            assert_eq!(check(&too_few, lacks, false).await, "lacks", "{lacks}");
        }
        assert_eq!(check(&too_few, "a", true).await, "right");
        assert_eq!(check(&too_few, "abe", true).await, "lacks");
        // The only value that enough hold stays.
        assert_eq!(check(&["a pqr", "c p"], "a", false).await, "right");
        assert_eq!(check(&["a pqr", "b pqr"], "ab", false).await, "right");
    }
}
