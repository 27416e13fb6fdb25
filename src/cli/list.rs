//! `kanon list`: lists everything that can stand in a policy or in SQL, one line each.

use clap::Args;

use super::Done;
use datafusion_kanon::Result;
use datafusion_kanon::internals::answer::list::list;

/// List generalizers, known hierarchies, models, measures, methods and table functions.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon list
  kanon list --format json")]
pub(crate) struct List {}

impl List {
    pub(super) fn run(self) -> Result<Done> {
        Done::of(&list())
    }
}
