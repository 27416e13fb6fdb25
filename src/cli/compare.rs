//! `kanon compare`: judges releases of the same people together.

use std::path::PathBuf;

use clap::Args;

use super::Done;
use super::inputs::one_each;
use super::names::{Names, name};
use datafusion_kanon::internals::answer::compare::compare;
use datafusion_kanon::internals::release::histories::{Compared, SamePeople};
use datafusion_kanon::internals::store::{Address, local_path};
use datafusion_kanon::{Error, Input, Place, Result, Run, Source};

/// Compare releases of the same people: are they safe together?
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kanon compare extract extract_q2 --input q1.csv --input q2.csv
  kanon compare a b c --input a.parquet --input b.parquet --input c.parquet --row visit
  kanon compare extract extract_q2        # what the public files alone show

The history of a row is the class that shows it in each release, or that none does. The releases are safe together if the rows
of every history belong to at least k people, and all models hold for them as for a class. That needs the private records, a
column that names people in all inputs, and the inputs, byte for byte as they were; or, for releases whose policy has [history],
the key of their pseudonyms.

Rows of a person are matched by the columns of --row, else where all columns that every release shows are equal; a row that
matches none is gone, and new. Exit code 1 if the releases are not safe together, or if nobody can tell.")]
pub(crate) struct Compare {
    /// The releases, in the order in which they were published: folders, or addresses in a store.
    #[arg(value_name = "OUT", required = true, num_args = 2..)]
    releases: Vec<PathBuf>,
    /// The input of each release, in the same order; repeated.
    #[arg(long, value_name = "INPUT")]
    input: Vec<String>,
    /// The private record of each release, in the same order, where they do not lie beside the releases; repeated.
    #[arg(long, value_name = "PATH")]
    private: Vec<PathBuf>,
    /// The key of the pseudonyms in the private records, which are read instead of the inputs where these are not given [default:
    /// OUT.key beside the private record].
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The column that names the person of a row in all inputs; by default the individual column of the policies. Quotes as in CSV
    /// are allowed.
    #[arg(long, value_name = "COLUMN", value_parser = name)]
    person: Option<String>,
    /// The columns that tell the rows of a person apart in all inputs, such as the number of a visit. A name with a comma has
    /// quotes as in CSV.
    #[arg(long, value_name = "COLUMNS")]
    row: Vec<Names>,
    /// The released columns whose values tell that a row was not in an input, where they lie outside of its values: stays of May
    /// in an extract that ends in March; by default those of dates and times. Give '' for none.
    #[arg(long, value_name = "COLUMNS")]
    dates: Option<String>,
    /// The sensitive columns whose values change between the releases, as everybody knows.
    #[arg(long, value_name = "COLUMNS")]
    changes: Vec<Names>,
    /// Assume that attackers do not know whose rows change between releases. By default, rows matched by --row whose values change
    /// are kept apart from those that stay the same.
    #[arg(long)]
    changes_unknown: bool,
    /// Fewer than half of the people of an input come back because they are other people, not because they were numbered anew.
    #[arg(long)]
    accept_new_people: bool,
    /// Print queries that find the rows again in the public files, in the SQL of DuckDB.
    #[arg(long)]
    prove: bool,
}

impl Compare {
    pub(super) async fn run(self, run: &Run) -> Result<Done> {
        let key = self.key.as_ref().map(local_path).transpose()?;
        let count = self.releases.len();
        for (flag, given) in [("--input", self.input.len()), ("--private", self.private.len())] {
            one_each(flag, given, count, "releases")?;
        }
        let mut releases = Vec::with_capacity(count);
        for (at, out) in self.releases.iter().enumerate() {
            let private = self.private.get(at).map(Address::parse).transpose()?;
            let input =
                self.input.get(at).map(|input| Input::find_all(std::slice::from_ref(input), &run.stop));
            releases.push(Compared {
                place: Place::of(Address::parse(out)?, private)?.with_key(key.clone()),
                input: input.transpose()?.map(Source::from),
            });
        }
        let dates = self.dates.as_deref().map(|text| match text {
            "" => Ok(Vec::new()),
            text => text.parse::<Names>().map(|names| Names::all(&[names])),
        });
        let same = SamePeople {
            person: self.person,
            row: Names::all(&self.row),
            dates: dates.transpose().map_err(|why| Error::policy(why).at("--dates"))?,
            changes: Names::all(&self.changes),
            changes_are_unknown: self.changes_unknown,
            accept_new_people: self.accept_new_people,
        };
        Done::of(&compare(run, &releases, &same, self.prove).await?)
    }
}
