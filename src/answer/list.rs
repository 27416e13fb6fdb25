//! What `kanon list` answers: everything that can stand in a policy or in SQL.

use serde::Serialize;

use super::Answer;
use crate::doc::Doc;
use crate::generalize::{self, merge};
use crate::known::KNOWN;
use crate::measure::{LossMeasure, RISKS, losses};
use crate::method::{METHODS, MethodRow};
use crate::model;
use crate::render::{Document, Table};
use crate::sql::table::TABLE_FUNCTIONS;

/// Everything that can stand in a policy or in SQL.
#[derive(Debug, Clone, Serialize)]
pub struct ListAnswer {
    /// The generalizers.
    pub generalizers: Vec<&'static Doc>,
    /// The known hierarchies.
    pub known_hierarchies: Vec<&'static Doc>,
    /// The models.
    pub models: Vec<&'static Doc>,
    /// The losses.
    pub losses: Vec<&'static Doc>,
    /// The risk measures.
    pub risks: Vec<&'static Doc>,
    /// The methods.
    pub methods: Vec<&'static Doc>,
    /// The table functions of SQL.
    pub table_functions: Vec<&'static Doc>,
}

/// Lists everything that can stand in a policy or in SQL.
pub fn list() -> ListAnswer {
    ListAnswer {
        generalizers: generalize::all().map(|row| row.doc).chain([merge::DOC]).collect(),
        known_hierarchies: KNOWN.iter().map(|row| row.doc).collect(),
        models: model::all().map(|row| row.doc).collect(),
        losses: losses().map(LossMeasure::doc).collect(),
        risks: RISKS.iter().map(|row| row.doc).collect(),
        methods: METHODS.iter().map(MethodRow::doc).collect(),
        table_functions: TABLE_FUNCTIONS.iter().map(|row| row.doc).collect(),
    }
}

impl Answer for ListAnswer {
    fn document(&self) -> Document {
        let mut document = Document::default();
        for (name, docs) in [
            ("generalizers", &self.generalizers),
            ("known_hierarchies", &self.known_hierarchies),
            ("models", &self.models),
            ("losses", &self.losses),
            ("risks", &self.risks),
            ("methods", &self.methods),
            ("table_functions", &self.table_functions),
        ] {
            let mut table = Table::default().texts("", 2, 27).texts("", 1, 0);
            for doc in docs {
                let paper = doc.paper.map(|paper| format!(" [{paper}]")).unwrap_or_default();
                table.row([doc.name.to_owned(), format!("{}{paper}", doc.summary)]);
            }
            document.line(name);
            document.table(table);
        }
        document
    }
}
