//! Proposes a role for a column from its name and its facts. In doubt it proposes none. It never
//! proposes `insensitive`, because a wrong one reveals individuals.
//!
//! A column's name and its counts cannot show that attackers do not know it. So an unrecognized column gets `?`, and a
//! policy with `?` is refused.

use super::facts::{ColumnFacts, IDENTIFIES, is_time};
use super::names::{Named, Pattern};
use crate::generalize::value::is_supported;

/// In tables with fewer rows, values that do not repeat are no evidence.
const ENOUGH_ROWS: u64 = 20;

/// A proposed role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Proposed {
    /// The individual of a row; individuals may have several rows.
    Individual,
    /// Identifies a person or a record; never written.
    Identifier,
    /// Others may know it; generalized.
    Quasi,
    /// An attribute that must not be learnt about a person.
    Sensitive,
    /// Free text; never written.
    Text,
    /// A person who knows the data must decide.
    Undecided,
}

impl Proposed {
    /// Returns the policy's word for the role.
    pub fn word(self) -> &'static str {
        match self {
            Proposed::Individual => "individual",
            Proposed::Identifier => "identifier",
            Proposed::Quasi => "quasi",
            Proposed::Sensitive => "sensitive",
            Proposed::Text => "text",
            Proposed::Undecided => "?",
        }
    }
}

/// Returns the role of a column by itself, and the reason. The individual is chosen later, from all
/// columns together.
pub(super) fn judge(facts: &ColumnFacts, pattern: Option<&Pattern>) -> (Proposed, String) {
    let Some(pattern) = pattern else { return by_facts(facts) };
    let named = |role, but: &str| (role, format!("named like {}{but}", pattern.like));
    let is_date = is_time(&facts.data_type) || facts.is_dates_as_text;
    match pattern.named {
        Named::Person | Named::Contact => named(Proposed::Identifier, ""),
        Named::Notes => named(Proposed::Text, ""),
        _ if !is_supported(&facts.data_type) && !facts.data_type.is_decimal() => by_facts(facts),
        Named::Record if facts.has_distinct_percent(IDENTIFIES) => named(Proposed::Identifier, ""),
        Named::Record if facts.has_few_rows_each() => named(
            Proposed::Undecided,
            ", but it repeats, with few rows each: if it is a person's number, its role is individual",
        ),
        Named::Record => named(Proposed::Undecided, ", but it repeats: a person's number, or a code?"),
        Named::Birth | Named::Postal | Named::Known if facts.is_prose() => {
            named(Proposed::Undecided, ", but its texts are long: free text?")
        }
        Named::Birth | Named::Postal | Named::Known => named(Proposed::Quasi, ""),
        Named::Event if is_date => named(Proposed::Quasi, ""),
        Named::Event => by_facts(facts),
        Named::Sensitive if is_date => {
            named(Proposed::Undecided, ", but it holds dates, which others may have witnessed")
        }
        Named::Sensitive if facts.is_prose() => {
            named(Proposed::Undecided, ", but its texts are long: free text can identify people")
        }
        Named::Sensitive if facts.distinct.is_none_or(|distinct| distinct < 2) => {
            named(Proposed::Undecided, ", but it has no two distinct values")
        }
        Named::Sensitive if facts.known() >= ENOUGH_ROWS && facts.has_distinct_percent(50) => named(
            Proposed::Undecided,
            ", but most values occur once: released as it is, it would identify its row",
        ),
        Named::Sensitive => named(Proposed::Sensitive, ""),
    }
}

/// Returns the role of a column whose name has no known meaning.
fn by_facts(facts: &ColumnFacts) -> (Proposed, String) {
    let data_type = &facts.data_type;
    if !is_supported(data_type) && !data_type.is_decimal() {
        return (Proposed::Text, "values of this type cannot be released".to_owned());
    }
    if facts.known() == 0 {
        let name =
            if facts.name.trim().is_empty() { "neither a name nor a value" } else { "no value in any row" };
        return (Proposed::Text, format!("{name}: left out"));
    }
    if facts.is_prose() {
        return (Proposed::Text, "long texts, which can identify people".to_owned());
    }
    let is_code = data_type.is_string() || data_type.is_integer();
    if is_code && facts.is_unique() && facts.known() >= ENOUGH_ROWS {
        return (Proposed::Identifier, "each value identifies its row".to_owned());
    }
    let alone = match facts.known() >= ENOUGH_ROWS && facts.has_distinct_percent(50) {
        true => "; most values occur once: released as it is, it would identify its row",
        false => "",
    };
    (Proposed::Undecided, format!("its name does not reveal its meaning{alone}"))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;

    use super::super::facts::Length;
    use super::super::names::meaning;
    use super::*;

    fn facts(name: &str, data_type: DataType, distinct: u64) -> ColumnFacts {
        ColumnFacts {
            name: name.to_owned(),
            data_type,
            rows: 1000,
            nulls: 0,
            distinct: Some(distinct),
            is_counted: true,
            length: None,
            spread: None,
            is_dates_as_text: false,
        }
    }

    #[track_caller]
    fn is(facts: &ColumnFacts, role: Proposed) {
        assert_eq!(judge(facts, meaning(&facts.name)).0, role, "{}", facts.name);
    }

    #[test]
    fn names_and_facts_together() {
        use DataType::{Date32, Float64, Int64, Utf8View};
        let list = DataType::new_list(Int64, true);
        for (name, data_type, distinct, role) in [
            ("ssn", Utf8View, 1000, Proposed::Identifier),
            ("last_name", Utf8View, 300, Proposed::Identifier),
            ("visit_id", Int64, 1000, Proposed::Identifier),
            ("batch_id", Int64, 12, Proposed::Undecided),
            ("age", Int64, 90, Proposed::Quasi),
            ("seen", Date32, 365, Proposed::Undecided),
            ("discharge_date", Date32, 365, Proposed::Quasi),
            ("discharge", DataType::Boolean, 2, Proposed::Undecided),
            ("diagnosis", Utf8View, 20, Proposed::Sensitive),
            ("diagnosis", Utf8View, 1, Proposed::Undecided),
            ("diagnosis_date", Date32, 365, Proposed::Undecided),
            ("income", Float64, 990, Proposed::Undecided),
            ("income", Float64, 40, Proposed::Sensitive),
            ("income", DataType::Decimal128(10, 2), 40, Proposed::Sensitive),
            ("age", list.clone(), 2, Proposed::Text),
            ("x", list, 2, Proposed::Text),
            ("x", Int64, 1000, Proposed::Identifier),
            ("x", Float64, 1000, Proposed::Undecided),
            ("x", Utf8View, 3, Proposed::Undecided),
            ("remarks", Utf8View, 3, Proposed::Text),
        ] {
            is(&facts(name, data_type, distinct), role);
        }
        let small = ColumnFacts { rows: 10, ..facts("x", Int64, 10) };
        is(&small, Proposed::Undecided);
        let long = Some(Length { mean: 80, ..Length::default() });
        for (name, distinct, role) in [
            ("x", 900, Proposed::Text),
            ("x", 9, Proposed::Undecided),
            ("job_description", 900, Proposed::Undecided),
            ("diagnosis", 400, Proposed::Undecided),
        ] {
            is(&ColumnFacts { length: long, ..facts(name, Utf8View, distinct) }, role);
        }
    }
}
