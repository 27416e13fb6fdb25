//! `strategies`: the first node of a list that is anonymous.
//!
//! The policy lists nodes in the order of its author's preference, each by the levels of its columns:
//! `method = { strategies = [{ age = 1 }, { age = 2, zip = 1 }] }`. They are tried in this order, and
//! the failing classes of the first that needs no more suppression than the limit are suppressed. A column
//! that a node leaves out has the lowest allowed level: 0, or its `min_level`.
//!
//! # Contract
//! The first anonymous nodes of the list, in its order, for every model; nothing about their loss, which
//! does not matter, and nothing about nodes that are not listed. Refused are an empty list, a column
//! that is no quasi-identifier, and a level that is not allowed. The same for any number of threads.

use super::branch_and_bound::Search;
use super::{Allowed, Lattice, Options, Row};
use crate::class::EncodedColumn;
use crate::doc::Doc;
use crate::error::{Error, Result, nearest};
use crate::method::{Candidate, Method, Outcome, Problem};
use crate::parameter::{Absent, Kind, Parameter, Setting, of_node, toml_key};

/// The row of [`METHODS`](crate::method::METHODS) for this method.
pub const ROW: Row = Row {
    doc: &Doc {
        name: "strategies",
        summary: "the first of the listed nodes that satisfies the policy",
        parameters: "nodes",
        example: "method = { strategies = [{ age = 1 }, { age = 2, zip = 1 }] }",
        paper: None,
    },
    parameters: &[Parameter {
        name: "nodes",
        kind: Kind::Nodes,
        absent: Absent::Refused,
        summary: "the levels to try, the preferred ones first; a column left out is as fine as allowed",
    }],
    takes_effort: false,
    check: |settings, columns| match settings {
        [(_, Setting::List(nodes))] => levels(nodes, columns).map(drop),
        _ => Ok(()),
    },
    make: |settings, options| Ok(Box::new(Strategies { nodes: settings.list("nodes")?.to_vec(), options })),
};

/// The method that the [module](self) describes.
#[derive(Debug, Clone)]
pub struct Strategies {
    /// The nodes to try.
    pub nodes: Vec<Setting>,
    /// The part of the lattice to search.
    pub options: Options,
}

impl Method for Strategies {
    fn search(&self, problem: &Problem<'_>) -> Result<Outcome> {
        let names = problem.table.columns().iter().map(EncodedColumn::name);
        let columns: Vec<_> = names.zip(&self.options.ranges).collect();
        let mut search = Search::new(Lattice { problem, options: &self.options });
        let mut best: Vec<Candidate> = Vec::new();
        let mut tried: Vec<Vec<usize>> = Vec::new();
        for levels in levels(&self.nodes, &columns)? {
            if best.len() < self.options.top.max(1) && !tried.contains(&levels) && search.holds(&levels)? {
                best.extend(search.anonymous(&levels).cloned().map(Candidate::from));
            }
            tried.push(levels);
        }
        Ok(search.outcome_with(best))
    }
}

/// Returns the levels of each listed node.
fn levels(nodes: &[Setting], columns: &[Allowed<'_>]) -> Result<Vec<Vec<usize>>> {
    let of_one = |node: &Setting| {
        let mut levels: Vec<usize> = columns.iter().map(|(_, allowed)| *allowed.start()).collect();
        for (name, level) in node.node()? {
            let Some(at) = columns.iter().position(|(column, _)| column == name) else {
                let names: Vec<&str> = columns.iter().map(|(column, _)| *column).collect();
                return Err(Error::policy(format!("unknown quasi-identifier; {}", nearest(name, &names)))
                    .at(toml_key(name)));
            };
            let (low, high) = (columns[at].1.start(), columns[at].1.end());
            if !(low..=high).contains(&level) {
                let why = format!("expected a level from {low} to {high}, found {level}");
                return Err(Error::policy(why).at(toml_key(name)));
            }
            levels[at] = *level;
        }
        Ok(levels)
    };
    let place = |number| format!("method.{}: {}", ROW.doc.name, of_node(number));
    let each = (1..).zip(nodes).map(|(number, node)| of_one(node).map_err(|error| error.at(place(number))));
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::lattice::classic_tests::{choice_with, samarati_2001};

    fn node(levels: &[(&str, usize)]) -> Setting {
        Setting::Node(levels.iter().map(|(column, level)| ((*column).to_owned(), *level)).collect())
    }

    /// Samarati 2001: with one row suppressed, [1, 0] and [0, 2] are the minimal nodes.
    #[test]
    fn the_first_anonymous_node_is_taken() {
        let list = [node(&[]), node(&[("zip", 1)]), node(&[("zip", 2)]), node(&[("race", 1)])];
        let list = [&list[..], &[node(&[("zip", 2)]), node(&[("zip", 2), ("race", 1)])]].concat();
        let settings = [("nodes".to_owned(), Setting::List(list))];
        let choice = |k: u64, limit: u64| choice_with(&ROW, &settings, &samarati_2001(), k, limit);
        assert_eq!(choice(2, 1), (vec![vec![0, 2], vec![1, 0], vec![1, 2]], 5));
        assert_eq!(choice(2, 0).0, [[1, 2]]);
        assert_eq!(choice(2, 4).0, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 2]]);
        assert!(choice(9, 0).0.is_empty());
    }

    #[test]
    fn a_column_that_is_left_out_is_as_fine_as_allowed() {
        let columns = [("age", &(1..=3)), ("zip code", &(0..=2))];
        let nodes = [node(&[("zip code", 2)]), node(&[("age", 3)])];
        assert_eq!(levels(&nodes, &columns).unwrap(), [[1, 2], [3, 0]]);
        let refused = |last: Setting| levels(&[node(&[]), last], &columns).unwrap_err().to_string();
        assert_eq!(
            refused(node(&[("agee", 1)])),
            "method.strategies: node 2: agee: unknown quasi-identifier; did you mean `age`?"
        );
        assert_eq!(
            refused(node(&[("age", 0)])),
            "method.strategies: node 2: age: expected a level from 1 to 3, found 0"
        );
        assert_eq!(
            refused(node(&[("zip code", 3)])),
            "method.strategies: node 2: \"zip code\": expected a level from 0 to 2, found 3"
        );
    }
}
