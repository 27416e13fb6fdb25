//! The method of a policy, and the keys that only some methods take.

use toml::Value;

use super::PolicySpec;
use super::key_tables::{OUTPUT, names};
use super::keys::{Keys, checked_setting, day, expected, join, string, table_of};
use super::layout::{self, Layout};
use super::spec::ColumnSpec;
use crate::error::{Error, Result, nearest};
use crate::generalize::Ends;
use crate::measure::losses;
use crate::method::lattice::{EFFORT, Effort};
use crate::method::{
    ALL_ARE_GLOBAL, AUTO, METHODS, MethodRow, MethodSpec, chooses_no_levels, makes_no_cuts, row,
    shows_values, takes_effort,
};
use crate::parameter::{Absent, Kind, Parameter, Setting};
use crate::role::Role;

/// The key of the method.
const METHOD: &str = "method";

/// Reads `"mondrian"` or `{ mondrian = { split = "loss" } }`.
pub(super) fn method(value: Value) -> Result<MethodSpec> {
    let shape = "a name such as \"auto\", or one with settings such as { mondrian = { split = \"loss\" } }";
    let wrong = expected(shape, &value).at(METHOD);
    let named = match value {
        Value::String(name) => Some((name, None)),
        Value::Table(table) if table.len() == 1 => {
            table.into_iter().next().map(|(name, given)| (name, Some(given)))
        }
        _ => None,
    };
    let (name, given) = named.ok_or(wrong)?;
    let names: Vec<&str> = std::iter::once(AUTO).chain(METHODS.iter().map(|row| row.doc().name)).collect();
    if !names.contains(&name.as_str()) {
        let why = format!("unknown method `{name}`; {}", nearest(&name, &names));
        return Err(Error::policy(why).at(METHOD));
    }
    let parameters = row(&name).map_or(&[][..], MethodRow::parameters);
    let Some(given) = given else {
        return match row(&name).filter(|_| parameters.iter().any(|one| one.absent == Absent::Refused)) {
            None => Ok(MethodSpec { name, settings: Vec::new() }),
            Some(row) => {
                let why = format!("`{name}` needs its parameter; write {}", row.doc().example);
                Err(Error::policy(why).at(METHOD))
            }
        };
    };
    if parameters.is_empty() {
        let effort = if takes_effort(&name) { " and, beside it, effort = { seconds = 30 }" } else { "" };
        let why = format!("`{name}` has no parameters; write method = {name:?}{effort}");
        return Err(Error::policy(why).at(METHOD));
    }
    let path = join(METHOD, &name);
    let settings = match parameters {
        // A list of nodes is all that there is to set, and needs no name.
        [nodes @ Parameter { kind: Kind::Nodes, .. }] => {
            let setting = checked_setting(given, nodes).map_err(|error| error.at(path))?;
            vec![(nodes.name.to_owned(), setting)]
        }
        _ => settings(&path, given, parameters)?,
    };
    let is_missing =
        |one: &&Parameter| one.absent == Absent::Refused && settings.iter().all(|(name, _)| name != one.name);
    if let (Some(missing), Some(row)) = (parameters.iter().find(is_missing), row(&name)) {
        let why = format!("the parameter `{}` is missing; write {}", missing.name, row.doc().example);
        return Err(Error::policy(why).at(join(METHOD, &name)));
    }
    Ok(MethodSpec { name, settings })
}

/// Reads the settings of parameters from a table, and checks their ranges.
fn settings(path: &str, value: Value, parameters: &[Parameter]) -> Result<Vec<(String, Setting)>> {
    let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name).collect();
    let shape = || format!("a table of settings ({})", names.join(", "));
    let Value::Table(table) = value else { return Err(expected(&shape(), &value).at(path)) };
    Keys::new(path.to_owned(), table, &names)?.settings(parameters)
}

/// Reads `{ seconds = 30 }` or `{ nodes = 10000 }`.
pub(super) fn effort(value: Value) -> Result<Effort> {
    match settings("effort", value, EFFORT)?.as_slice() {
        [(name, setting)] => Effort::of(name, setting),
        _ => Err(Error::policy("expected one of { seconds = 30 } and { nodes = 10000 }").at("effort")),
    }
}

/// `[output]`: how the release is written, as far as it says so.
#[derive(Debug, Clone, Default)]
pub struct Output {
    /// What their ends show.
    pub(super) ends: Option<Ends>,
    /// Whether their ends are columns of their own.
    pub(super) writes_ends: Option<bool>,
    /// The day of the release.
    pub(super) released_on: Option<String>,
    /// Whether the record names the columns that are left out.
    pub(super) names_left_out: Option<bool>,
    /// The file or folder of the private record.
    pub(super) private: Option<String>,
    /// How its files are laid out.
    pub(super) layout: Layout,
    /// The partition columns.
    pub(super) partition_by: Vec<String>,
}

impl PolicySpec {
    /// Returns the file or folder of the private record, if `[output]` names one; a relative path begins
    /// at the folder of the policy.
    pub fn private(&self) -> Option<&str> {
        self.output.private.as_deref()
    }

    /// States this day of the release instead of the file's; `None` states none.
    #[must_use]
    pub fn released_on(mut self, day: Option<String>) -> Self {
        self.output.released_on = day;
        self
    }
}

impl Output {
    /// Reads the table `[output]`.
    pub(super) fn read(value: Value) -> Result<Self> {
        let table = table_of(value).map_err(|error| error.at("output"))?;
        let mut keys = Keys::new("output".into(), table, &names(OUTPUT))?;
        let ends = keys.take("ends", |value| match string(value)?.as_str() {
            "values" => Ok(Ends::Values),
            "closed" => Ok(Ends::Closed),
            "cuts" => Ok(Ends::Cuts),
            other => {
                Err(Error::policy(format!("expected \"values\", \"closed\" or \"cuts\", found `{other}`")))
            }
        })?;
        let writes_ends = keys.take("intervals", |value| match string(value)?.as_str() {
            "text" => Ok(false),
            "columns" => Ok(true),
            other => Err(Error::policy(format!("expected \"text\" or \"columns\", found `{other}`"))),
        })?;
        let released_on = keys.take("released_on", day)?;
        let names_left_out = keys.take("left_out", |value| match string(value)?.as_str() {
            "counts" => Ok(false),
            "names" => Ok(true),
            other => Err(Error::policy(format!("expected \"counts\" or \"names\", found `{other}`"))),
        })?;
        let private = keys.take("private", |value| match string(value)? {
            path if path.is_empty() => Err(Error::policy("expected a file or a folder, found an empty text")),
            path => Ok(path),
        })?;
        let layout = Layout::take(&mut keys)?;
        let partition_by = keys.take("partition_by", layout::partition_by)?.unwrap_or_default();
        Ok(Self { ends, writes_ends, released_on, names_left_out, private, layout, partition_by })
    }

    /// Returns what the ends of intervals show, where the method makes its own.
    pub fn ends(&self) -> Ends {
        self.ends.unwrap_or_default()
    }

    /// Returns whether the ends of intervals are columns of their own, rather than text.
    pub fn writes_ends(&self) -> bool {
        self.writes_ends.unwrap_or(false)
    }

    /// Returns the day of the release, if the policy states one.
    pub fn released_on(&self) -> Option<&str> {
        self.released_on.as_deref()
    }

    /// Returns how the files are laid out.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Returns the partition columns, from the outermost folder to the innermost.
    pub fn partition_by(&self) -> &[String] {
        &self.partition_by
    }

    /// Returns whether the public record names the columns that are left out.
    pub fn names_left_out(&self) -> bool {
        self.names_left_out.unwrap_or(false)
    }
}

impl PolicySpec {
    /// Checks that the policy holds no key that its method does not take.
    pub(super) fn check_method(&self, has_effort: bool) -> Result<()> {
        let method = self.method.name.as_str();
        if has_effort && !takes_effort(method) {
            let names = METHODS.iter().map(|row| row.doc().name).filter(|name| takes_effort(name));
            let names = names.map(|name| format!("{name:?}"));
            let names = names.collect::<Vec<_>>().join(" and ");
            let why = format!("only the methods {names} take it; `{method}` runs to completion");
            return Err(Error::policy(why).at("effort"));
        }
        let kind = self.method.kind();
        if let Some(why) = kind.facts().why_no_ends {
            self.check_no_intervals(why)?;
        }
        if !kind.facts().makes_classes {
            return Ok(());
        }
        if self.objective.for_any_recoding().is_none() {
            let others = losses().filter(|loss| loss.for_any_recoding().is_some());
            let others = others.map(|loss| loss.doc().name).collect::<Vec<_>>().join(", ");
            let name = self.objective.doc().name;
            let why = format!("`{name}` measures levels, and `{method}` shows none; use one of {others}");
            return Err(Error::policy(why).at("objective"));
        }
        let row = row(method);
        if self.output.ends() == Ends::Cuts && !row.is_none_or(MethodRow::shows_cuts) {
            return Err(Error::policy(makes_no_cuts(method)).at("output.ends"));
        }
        if kind.facts().shows_centroids {
            self.check_for_centroids(method)?;
        }
        let is_sensitive = |column: &&ColumnSpec| column.role == Role::Sensitive;
        if let (false, Some(column)) =
            (kind.releases(Role::Sensitive), self.columns.iter().find(is_sensitive))
        {
            let why = format!(
                "`{method}` releases no value without noise: make the column a quasi-identifier with a `clip` on both sides, or leave it \
                 out (`text`)"
            );
            return Err(Error::policy(why).at(column.path()));
        }
        let mut quasi = self.columns.iter().filter(|column| column.role == Role::Quasi).peekable();
        if let Some(first) = quasi.peek().map(|column| join(&column.path(), "recode"))
            && quasi.all(|column| column.is_global)
        {
            return Err(Error::policy(ALL_ARE_GLOBAL).at(first));
        }
        let keeps_max_level = row.is_none_or(MethodRow::keeps_max_level);
        for column in &self.columns {
            let limits = [
                ("min_level", column.min_level > 0 && !column.is_global),
                ("max_level", column.max_level.is_some() && !column.is_global && !keeps_max_level),
            ];
            if let Some((key, _)) = limits.into_iter().find(|(_, is_broken)| *is_broken) {
                return Err(Error::policy(chooses_no_levels(method)).at(join(&column.path(), key)));
            }
        }
        Ok(())
    }

    /// Checks that the policy says nothing of intervals, which its method does not make for this reason.
    fn check_no_intervals(&self, shows: &str) -> Result<()> {
        let given = [("ends", self.output.ends.is_some()), ("intervals", self.output.writes_ends.is_some())];
        let Some((key, _)) = given.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
        let method = &self.method.name;
        let makers = METHODS.iter().filter(|row| row.kind.facts().why_no_ends.is_none());
        let names = makers.map(|row| row.doc().name);
        let names: Vec<String> = names.map(|name| format!("{name:?}")).collect();
        let why = format!(
            "`{method}` {shows}; only methods that make intervals of their own accept this key: {}",
            names.join(", ")
        );
        Err(Error::policy(why).at(join("output", key)))
    }

    /// Checks a policy whose method shows centroids.
    fn check_for_centroids(&self, method: &str) -> Result<()> {
        for column in self.columns.iter().filter(|column| column.role == Role::Quasi) {
            let is_merged = column.hierarchy.as_ref().is_some_and(|hierarchy| hierarchy.merge().is_some());
            for (key, is_given) in [("recode", column.is_global), ("hierarchy", is_merged)] {
                if is_given {
                    return Err(Error::policy(shows_values(method)).at(join(&column.path(), key)));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::{ReleaseKind, kind_of};

    fn error(text: &str) -> String {
        PolicySpec::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn intervals_are_written_as_text_or_columns() {
        let policy = |method: &str, intervals: &str| {
            PolicySpec::parse(&format!("k = 5\nmethod = {method:?}\n[output]\nintervals = {intervals}"))
                .map(|spec| spec.output.writes_ends())
                .map_err(|error| error.to_string())
        };
        assert_eq!(policy("mondrian", "\"columns\""), Ok(true));
        assert_eq!(policy("best", "\"text\""), Ok(false));
        let why = policy("auto", "\"columns\"").unwrap_err();
        assert!(why.starts_with("output.intervals: `auto` releases labels whose ends are fixed; "), "{why}");
        for (wrong, found) in [("\"numbers\"", "`numbers`"), ("true", "true")] {
            let why = policy("mondrian", wrong).unwrap_err();
            assert!(
                why.starts_with("output.intervals: expected ") && why.ends_with(&format!("found {found}")),
                "{why}"
            );
        }
    }

    #[test]
    fn a_column_may_be_recoded_globally() {
        let policy = |method: &str, columns: &str| {
            let given = match method {
                "strategies" => "{ strategies = [{}] }",
                "dp_centroids" => "{ dp_centroids = { epsilon = 1 } }",
                other => &format!("{other:?}"),
            };
            PolicySpec::parse(&format!("k = 5\nmethod = {given}\n[columns]\n{columns}"))
                .map(|spec| spec.columns[0].is_global)
                .map_err(|error| error.to_string())
        };
        let global = "zip = { role = \"quasi\", recode = \"global\", min_level = 1, max_level = 1 }";
        for method in METHODS.iter().map(|row| row.doc().name).chain([AUTO]) {
            let beside_another = policy(method, &format!("{global}\nage = {{ role = \"quasi\" }}"));
            if kind_of(method).facts().shows_centroids {
                let why = format!("columns.zip.recode: {}", shows_values(method));
                assert_eq!(beside_another, Err(why), "{method}");
                continue;
            }
            assert_eq!(beside_another, Ok(true), "{method}");
            let alone = policy(method, &format!("{global}\nnotes = {{ role = \"text\" }}"));
            let why = format!("columns.zip.recode: {ALL_ARE_GLOBAL}");
            assert_eq!(
                alone,
                if kind_of(method) == ReleaseKind::Regions { Err(why) } else { Ok(true) },
                "{method}"
            );
        }
        assert_eq!(policy(AUTO, "zip = { role = \"quasi\" }"), Ok(false));
        assert_eq!(
            policy(AUTO, "zip = { role = \"quasi\", recode = \"local\" }").unwrap_err(),
            "columns.zip.recode: expected \"global\", found the text \"local\""
        );
    }

    #[test]
    fn methods_have_settings() {
        let spec = PolicySpec::parse("k = 5\nmethod = { mondrian = { split = \"loss\" } }").unwrap();
        let settings = [("split".to_owned(), Setting::Word("loss".into()))];
        assert_eq!((spec.method.name.as_str(), spec.method.settings.as_slice()), ("mondrian", &settings[..]));
        assert_eq!(PolicySpec::parse("k = 5\nmethod = { mondrian = {} }").unwrap().method.settings, []);
        for (method, why) in [
            (
                "{ mondrian = { split = \"lost\" } }",
                "method.mondrian.split: expected \"span\", \"entropy\", \"relaxed\" or \"loss\", found \"lost\"; did you mean \"loss\"?",
            ),
            (
                "{ mondrian = { split = 1 } }",
                "method.mondrian.split: expected \"span\", \"entropy\", \"relaxed\" or \"loss\", found 1",
            ),
            ("{ mondrian = { cut = 1 } }", "method.mondrian.cut: unknown key; valid: split"),
            ("{ mondrian = 1 }", "method.mondrian: expected a table of settings (split), found 1"),
            ("{ mondrain = {} }", "method: unknown method `mondrain`; did you mean `mondrian`?"),
            ("{ optimal = {} }", "method: `optimal` has no parameters; write method = \"optimal\""),
            (
                "{}",
                "method: expected a name such as \"auto\", or one with settings such as { mondrian = { split = \"loss\" } }, found a table",
            ),
            (
                "{ mondrian = {}, optimal = {} }",
                "method: expected a name such as \"auto\", or one with settings such as { mondrian = { split = \"loss\" } }, found a table",
            ),
            (
                "5",
                "method: expected a name such as \"auto\", or one with settings such as { mondrian = { split = \"loss\" } }, found 5",
            ),
        ] {
            assert_eq!(error(&format!("k = 5\nmethod = {method}")), why);
        }
    }

    #[test]
    fn strategies_are_a_list_of_nodes() {
        let text = "{ strategies = [{ age = 1 }, { \"zip code\" = 2, age = 0 }, {}] }";
        let spec = PolicySpec::parse(&format!("k = 5\nmethod = {text}")).unwrap();
        assert_eq!(spec.method.to_string(), text);
        let tables = "k = 5\n[[method.strategies]]\nage = 1\n[[method.strategies]]\n\"zip code\" = 2\nage = 0\n[[method.strategies]]";
        assert_eq!(PolicySpec::parse(tables).unwrap().method, spec.method);
        let shape = "expected a list of nodes such as [{ age = 1, zip = 2 }]";
        for (method, why) in [
            (
                "\"strategies\"",
                "method: `strategies` needs its parameter; write method = { strategies = [{ age = 1 }, { age = 2, zip = 1 }] }",
            ),
            ("{ strategies = [] }", "method.strategies: expected at least one node, found an empty list"),
            ("{ strategies = { age = 1 } }", &format!("method.strategies: {shape}, found a table")),
            ("{ strategies = 1 }", &format!("method.strategies: {shape}, found 1")),
            (
                "{ strategies = [{}, 1] }",
                "method.strategies: node 2: expected the levels of columns such as { age = 1, zip = 2 }, found 1",
            ),
            (
                "{ strategies = [{}, { \"zip code\" = -1 }] }",
                "method.strategies: node 2: \"zip code\": expected the number of a level, 0 or above, found -1",
            ),
        ] {
            assert_eq!(error(&format!("k = 5\nmethod = {method}")), why);
        }
    }
}
