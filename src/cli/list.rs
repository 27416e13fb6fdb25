//! `kanon list`: lists everything that can stand in a policy or in SQL, one line each.

use clap::Args;
use serde_json::json;

use super::Done;
use crate::doc::Doc;
use crate::error::Result;
use crate::generalize::{GENERALIZERS, merge};
use crate::known::KNOWN;
use crate::measure::{LOSSES, RISKS};
use crate::method::{METHODS, MethodRow};
use crate::model::MODELS;
use crate::sql::table::TABLE_FUNCTIONS;

/// List generalizers, known hierarchies, models, measures, methods and table functions.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon list
  kanon list --format json")]
pub(crate) struct List {}

impl List {
    pub(super) fn run(self) -> Result<Done> {
        let tables: [(&str, Vec<&Doc>); 7] = [
            ("generalizers", GENERALIZERS.iter().map(|row| row.doc).chain([merge::DOC]).collect()),
            ("known_hierarchies", KNOWN.iter().map(|row| row.doc).collect()),
            ("models", MODELS.iter().map(|row| row.doc).collect()),
            ("losses", LOSSES.iter().map(|row| row.doc()).collect()),
            ("risks", RISKS.iter().map(|row| row.doc).collect()),
            ("methods", METHODS.iter().map(MethodRow::doc).collect()),
            ("table_functions", TABLE_FUNCTIONS.iter().map(|row| row.doc).collect()),
        ];
        let mut text = String::new();
        let mut json = serde_json::Map::new();
        for (name, docs) in tables {
            text += &format!("{name}\n");
            for doc in &docs {
                let paper = doc.paper.map(|paper| format!(" [{paper}]")).unwrap_or_default();
                text += &format!("  {:<27} {}{paper}\n", doc.name, doc.summary);
            }
            let rows = docs.iter().map(|doc| {
                json!({
                    "name": doc.name,
                    "summary": doc.summary,
                    "parameters": doc.parameters,
                    "example": doc.example,
                    "paper": doc.paper,
                })
            });
            json.insert(name.to_owned(), rows.collect());
        }
        Ok(Done { text, json: json.into(), holds: true })
    }
}
