//! The method of a policy, and the keys that only some methods take.

use toml::Value;

use super::PolicySpec;
use super::keys::{Keys, expected, join, string, table_of};
use crate::error::{Error, Result, nearest};
use crate::generalize::Ends;
use crate::measure::LOSSES;
use crate::method::lattice::Effort;
use crate::method::{METHODS, is_partition};

/// The method name that leaves the choice to the problem.
pub(super) const AUTO: &str = "auto";
/// The method that an effort bounds.
const ANYTIME: &str = "anytime";

pub(super) fn method(value: Value) -> Result<String> {
    let name = string(value)?;
    let names: Vec<&str> = std::iter::once(AUTO).chain(METHODS.iter().map(|row| row.doc().name)).collect();
    if names.contains(&name.as_str()) {
        return Ok(name);
    }
    Err(Error::policy(format!("unknown method `{name}`; {}", nearest(&name, &names))))
}

/// Reads `{ seconds = 30 }` or `{ nodes = 10000 }`.
pub(super) fn effort(value: Value) -> Result<Effort> {
    let wrong = || expected("{ seconds = 30 } or { nodes = 10000 }, a whole number of at least 1", &value);
    let Value::Table(table) = &value else { return Err(wrong()) };
    let mut spec = table.iter();
    let (Some((key, number)), None) = (spec.next(), spec.next()) else { return Err(wrong()) };
    match (key.as_str(), number.as_integer().and_then(|number| u64::try_from(number).ok())) {
        ("seconds", Some(seconds @ 1..)) => Ok(Effort::Seconds(seconds)),
        ("nodes", Some(nodes @ 1..)) => Ok(Effort::Nodes(nodes)),
        _ => Err(wrong()),
    }
}

/// Reads `[output]`: the ends of intervals.
pub(super) fn read_output(value: Value) -> Result<Option<Ends>> {
    let table = table_of(value).map_err(|error| error.at("output"))?;
    let mut keys = Keys::new("output".into(), table, &["ends"], &["intervals", "partitions", "compression"])?;
    keys.take("ends", |value| match string(value)?.as_str() {
        "values" => Ok(Ends::Values),
        "closed" => Ok(Ends::Closed),
        other => Err(Error::policy(format!("expected \"values\" or \"closed\", found `{other}`"))),
    })
}

impl PolicySpec {
    /// Checks that the policy holds no key that its method does not take.
    pub(super) fn check_method(&self, has_effort: bool, has_ends: bool) -> Result<()> {
        let method = self.method.as_str();
        if has_effort && method != ANYTIME {
            let why = format!("only `method = \"{ANYTIME}\"` takes it; `{method}` runs to completion");
            return Err(Error::policy(why).at("effort"));
        }
        if !is_partition(method) {
            return match has_ends {
                true => Err(Error::policy(format!(
                    "`{method}` releases labels whose ends are fixed; only methods that make intervals of their own \
                     accept this key, such as \"mondrian\""
                ))
                .at("output.ends")),
                false => Ok(()),
            };
        }
        if self.objective.for_any_recoding().is_none() {
            let others = LOSSES.iter().filter(|loss| loss.for_any_recoding().is_some());
            let others = others.map(|loss| loss.doc().name).collect::<Vec<_>>().join(", ");
            let name = self.objective.doc().name;
            let why = format!("`{name}` measures levels, and `{method}` chooses none; use one of {others}");
            return Err(Error::policy(why).at("objective"));
        }
        for column in &self.columns {
            let limits = [("min_level", column.min_level > 0), ("max_level", column.max_level.is_some())];
            if let Some((key, _)) = limits.into_iter().find(|(_, is_given)| *is_given) {
                let why = format!(
                    "`{method}` chooses no levels and cannot honour this limit; remove it or use another method"
                );
                return Err(Error::policy(why).at(join(&column.path(), key)));
            }
        }
        Ok(())
    }
}
