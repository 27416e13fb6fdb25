//! The names of this tool's own functions: suggested before the engine's, and short in the headers
//! of results.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::execution::registry::{FunctionRegistry, MemoryFunctionRegistry};

use datafusion_kanon::internals::error::closest;
use datafusion_kanon::internals::sql::table::TABLE_FUNCTIONS;
use datafusion_kanon::register_functions;

/// The names of the scalar functions and aggregates.
static OWN: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let mut registry = MemoryFunctionRegistry::new();
    // Without names, nothing is suggested.
    let _ = register_functions(&mut registry);
    registry.udfs().into_iter().chain(registry.udafs()).collect()
});

/// Returns a better text for an error about an unknown function; `None` if this tool has none of a
/// similar name.
pub(super) fn suggestion(error: &str) -> Option<String> {
    let quoted = |start: &str| error.strip_prefix(start)?.split('\'').next();
    if let Some(name) = quoted("Invalid function '") {
        if let Some(row) = TABLE_FUNCTIONS.iter().find(|row| row.doc.name == name) {
            return Some(format!("`{name}` is a table function: {}", row.doc.example));
        }
        return similar(name);
    }
    let name = quoted("table function '")?;
    match OWN.contains(name) {
        true => Some(format!("`{name}` is no table function: SELECT {name}(...) FROM a table")),
        false => similar(name),
    }
}

fn similar(name: &str) -> Option<String> {
    let of_tables = TABLE_FUNCTIONS.iter().map(|row| row.doc.name);
    let known: Vec<&str> = OWN.iter().map(String::as_str).chain(of_tables).collect();
    closest(name, &known).map(|own| format!("unknown function `{name}`; did you mean `{own}`?"))
}

/// Shortens the names of columns that are calls of this tool's functions, as far as they stay
/// different: `k_anonymity` for `k_anonymity(visits.zip,visits.sex)`.
pub(super) fn short(schema: &SchemaRef) -> SchemaRef {
    let call = |name: &str| {
        let (function, rest) = name.split_once('(')?;
        let mut open = 1;
        let end = rest.bytes().position(|byte| {
            open += i32::from(byte == b'(') - i32::from(byte == b')');
            open == 0
        })?;
        // Not the first operand of a longer expression.
        (end + 1 == rest.len() && OWN.contains(function)).then(|| function.to_owned())
    };
    let of = |field: &Field| call(field.name()).unwrap_or_else(|| field.name().clone());
    let names: Vec<String> = schema.fields().iter().map(|field| of(field)).collect();
    let is_alone = |name: &String| names.iter().filter(|other| *other == name).count() == 1;
    let fields = schema.fields().iter().zip(&names).map(|(field, name)| match is_alone(name) {
        true => Arc::new(field.as_ref().clone().with_name(name)),
        false => Arc::clone(field),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;

    use super::*;

    #[test]
    fn own_functions_are_suggested_first() {
        let of = |error: &str| suggestion(error).unwrap_or_default();
        assert!(
            of("Invalid function 'risk'.\nDid you mean 'rpad'?")
                .starts_with("`risk` is a table function: SELECT")
        );
        assert_eq!(
            of("Invalid function 't_closenes'."),
            "unknown function `t_closenes`; did you mean `t_closeness`?"
        );
        assert!(of("Invalid function 'anonymise'.").ends_with("did you mean `anonymize`?"));
        assert!(of("table function 'k_anonymity' not found").contains("SELECT k_anonymity(...)"));
        assert_eq!(suggestion("Invalid function 'rpda'.\nDid you mean 'rpad'?"), None);
    }

    #[test]
    fn headers_are_short_and_stay_different() {
        let of = |names: &[&str]| -> Vec<String> {
            let fields: Vec<Field> =
                names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect();
            short(&Arc::new(Schema::new(fields))).fields().iter().map(|field| field.name().clone()).collect()
        };
        assert_eq!(of(&["k_anonymity(t.zip,t.sex)", "count(*)", "zip"]), ["k_anonymity", "count(*)", "zip"]);
        let long = ["k_anonymity(t.zip) >= Int64(5)", "l_diversity(t.a,t.b) / l_diversity(t.c,t.b)"];
        assert_eq!(of(&long), long);
        assert_eq!(of(&["k_anonymity(generalize_prefix(t.zip,Int64(2)))"]), ["k_anonymity"]);
        let both = ["k_anonymity(t.zip)", "k_anonymity(t.sex)"];
        assert_eq!(of(&both), both);
        assert_eq!(of(&["k_anonymity(t.zip)", "k_anonymity"]), ["k_anonymity(t.zip)", "k_anonymity"]);
    }
}
