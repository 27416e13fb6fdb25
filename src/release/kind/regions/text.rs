//! How commands describe regions.

use crate::release::kind::describe::{Describe, FACTS_OF_CLASSES, Facts, Labels, cells, joined_as};
use crate::release::publish::record::{Regions, RegionsRecord};

impl Describe for RegionsRecord {
    fn facts(&self) -> &'static Facts {
        &FACTS_OF_CLASSES
    }

    fn shown(&self, _: &Labels, _: &[&str]) -> String {
        let columns: Vec<&str> = self.columns.iter().map(|column| column.column.as_str()).collect();
        format!("each class shows its own {}", columns.join(", "))
    }

    fn least(&self, labels: &Labels) -> (&'static str, String) {
        ("regions", self.shown(labels, &[]))
    }

    fn column(&self, name: &str, _: &Labels) -> String {
        let region = self.columns.iter().find(|region| region.column == name);
        if let Some(columns) = region.and_then(|region| region.written_as.as_ref()) {
            let columns = cells(columns);
            return format!(
                "in each group an interval of its own, in the columns {columns}; an end that is missing is open"
            );
        }
        let shows = match region.map(|region| region.shows) {
            Some(Regions::Intervals) => "in each group a value or an interval of its own, or `*`",
            Some(Regions::Labels) => {
                "in each group a value, a set of values or a label of its hierarchy, or `*`"
            }
            None => "unknown",
        };
        shows.to_owned()
            + &region.and_then(|region| region.joined_as.as_deref()).map_or(String::new(), joined_as)
    }
}
