//! `[history]`: what tells people and their rows apart from one release to the next.

use toml::Value;

use super::key_tables::{HISTORY, names};
use super::keys::{Keys, boolean, string, table_of, words};
use super::spec::PolicySpec;
use crate::error::{Error, Result};
use crate::role::Role;

/// `[history]`: further releases of the same people may follow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// The column that names the person of a row; by default the individual column.
    pub(crate) person: Option<String>,
    /// The columns that tell the rows of a person apart; none for all released columns.
    pub(crate) row: Vec<String>,
    /// The released columns whose values tell that a row was not in an input, where they lie outside of its values; by default
    /// those of dates and timestamps.
    pub(crate) dates: Option<Vec<String>>,
    /// The sensitive columns whose values change from one release to the next, as everybody knows.
    pub(crate) changes: Vec<String>,
    /// The reason why attackers do not know whose rows change, if the policy gives one.
    pub(crate) changes_unknown: Option<String>,
}

impl History {
    /// Reads the table `[history]`.
    pub(super) fn read(value: Value) -> Result<Self> {
        let table = table_of(value).map_err(|error| error.at("history"))?;
        let mut keys = Keys::new("history".into(), table, &names(HISTORY))?;
        let person = keys.take("person", string)?;
        let row = keys.take("row", words)?.unwrap_or_default();
        let dates = keys.take("dates", words)?;
        let changes = keys.take("changes", words)?.unwrap_or_default();
        let are_known = keys.take("changes_known", boolean)?.unwrap_or(true);
        let reason = keys.take("reason", string)?;
        let changes_unknown = match (are_known, reason) {
            (true, None) => None,
            (false, Some(reason)) if !reason.trim().is_empty() => Some(reason),
            (true, Some(_)) => {
                let why = "it says why attackers do not know whose rows change; remove it, or add `changes_known = false`";
                return Err(Error::policy(why).at("history.reason"));
            }
            (false, _) => {
                let why = "expected a reason beside it, which the public record repeats: `reason = \"..\"`";
                return Err(Error::policy(why).at("history.changes_known"));
            }
        };
        Ok(Self { person, row, dates, changes, changes_unknown })
    }
}

impl PolicySpec {
    /// Returns what `[history]` says, if the policy has it.
    #[cfg(feature = "engine")]
    pub(crate) fn history(&self) -> Option<&History> {
        self.history.as_ref()
    }

    /// Checks that `[history]` names a person and sensitive columns.
    pub(super) fn check_history(&self) -> Result<()> {
        let Some(history) = &self.history else { return Ok(()) };
        let has_individual = self.columns.iter().any(|column| column.role == Role::Individual);
        if history.person.is_none() && !has_individual {
            let why = "expected `person`, the column that names the person of a row from one release to the next, or a column \
                       with the role `individual`";
            return Err(Error::policy(why).at("history"));
        }
        let is_sensitive =
            |name: &&String| self.column(name).is_some_and(|column| column.role == Role::Sensitive);
        match history.changes.iter().find(|name| !is_sensitive(name)) {
            Some(name) => Err(Error::policy(format!("`{name}` is not a sensitive column of the policy"))
                .at("history.changes")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(history: &str) -> Result<Option<History>> {
        let columns = "[columns]\nid = { role = \"individual\" }\nage = { role = \"quasi\" }\nillness = { role = \"sensitive\" }\n";
        PolicySpec::parse(&format!("k = 2\n{columns}{history}")).map(|spec| spec.history)
    }

    #[test]
    fn a_history_is_read() {
        assert_eq!(parsed("").unwrap(), None);
        assert_eq!(parsed("[history]").unwrap(), Some(History::default()));
        let all = "[history]\nperson = \"id\"\nrow = [\"visit\"]\ndates = []\nchanges = [\"illness\"]\nchanges_known = false\n\
                   reason = \"corrections are internal\"";
        let expected = History {
            person: Some("id".into()),
            row: vec!["visit".into()],
            dates: Some(Vec::new()),
            changes: vec!["illness".into()],
            changes_unknown: Some("corrections are internal".into()),
        };
        assert_eq!(parsed(all).unwrap(), Some(expected));
    }

    #[test]
    fn a_wrong_history_is_refused() {
        for (history, said) in [
            ("changes_known = false", "history.changes_known: expected a reason"),
            ("changes_known = false\nreason = \" \"", "history.changes_known: expected a reason"),
            ("reason = \"x\"", "history.reason: it says why"),
            ("changes = [\"age\"]", "history.changes: `age` is not a sensitive column"),
            ("rows = [\"visit\"]", "history.rows: unknown key"),
        ] {
            let why = parsed(&format!("[history]\n{history}")).unwrap_err().to_string();
            assert!(why.contains(said), "{why}");
        }
        let without = "k = 2\n[columns]\nage = { role = \"quasi\" }\n[history]\n";
        let why = PolicySpec::parse(without).unwrap_err().to_string();
        assert!(why.contains("history: expected `person`"), "{why}");
    }
}
