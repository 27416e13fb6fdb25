//! The documentation of aggregates: their argument lists, from the row of a model or a risk measure.

use datafusion::logical_expr::Documentation;

use super::documentation;
use super::listed_classes::CountedColumns;
use super::measure_state::Row;

/// Returns the documentation of the aggregate `name` of a row, over quasi-identifiers.
pub(super) fn documented(name: &str, row: Row, looks: CountedColumns) -> Documentation {
    let doc = row.doc();
    let before: Vec<&str> = row.constants().iter().map(|parameter| parameter.name).collect();
    let before = before.join(", ");
    let columns = [
        (!before.is_empty(), before.as_str()),
        (looks.individual, "individual"),
        (looks.sensitive, "sensitive"),
        (true, "quasi-identifiers..."),
    ];
    let parameters: Vec<&str> =
        columns.into_iter().filter(|(is_there, _)| *is_there).map(|(_, parameter)| parameter).collect();
    let example = match doc.example.split_once('(') {
        Some((_, arguments)) if looks.individual && before.is_empty() => {
            format!("{name}(patient_id, {arguments}")
        }
        Some((_, arguments)) if looks.individual => match arguments.split_once(',') {
            Some((constant, columns)) => format!("{name}({constant}, patient_id,{columns}"),
            None => doc.example.to_owned(),
        },
        _ => doc.example.to_owned(),
    };
    let mut summary = doc.summary.to_owned();
    if looks.individual {
        summary += "; counts the distinct individuals of a class, not its rows";
    }
    documentation(&format!("{name}({})", parameters.join(", ")), &summary, doc.paper, &example)
}
