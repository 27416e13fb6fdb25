//! A loss of the program's own: the objective of a policy, and a column of `lattice` in SQL.
//!
//! It counts the individuals whom a release leaves out. The losses of the library count rows, and a person may have many.

use datafusion::prelude::{CsvReadOptions, SessionContext};
use datafusion_kanon::extend::{
    Doc, EvaluatedNode, EvaluatedRecoding, Grows, Interval, Loss, LossMeasure, register_loss,
};
use datafusion_kanon::{
    Folder, Input, PolicyColumn, PolicySource, PolicySpec, Role, Run, open, register_all, search,
};

const PATIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/papers/patients.csv");

#[derive(Debug)]
struct LostIndividuals;

impl Loss for LostIndividuals {
    #[expect(clippy::cast_precision_loss, reason = "no table has 2^53 individuals")]
    fn of(&self, recoding: &dyn EvaluatedRecoding) -> f64 {
        recoding.evaluated().suppressed_individuals() as f64
    }
}

impl LossMeasure for LostIndividuals {
    fn doc(&self) -> &'static Doc {
        &Doc {
            name: "lost_people",
            summary: "the number of individuals without a row in the release",
            parameters: "",
            example: "objective = \"lost_people\"",
            paper: None,
        }
    }

    /// Coarser levels make larger classes, so fewer fail; but the promise would be that it never falls.
    fn grows(&self) -> Grows {
        Grows::No
    }

    /// It can rate the regions of local methods, too.
    fn for_any_recoding(&self) -> Option<&dyn Loss> {
        Some(self)
    }

    fn value(&self, node: &EvaluatedNode<'_>) -> f64 {
        self.of(node)
    }

    /// Nothing is known without looking at a node. A bound that is too low costs time, one too high a wrong answer.
    fn bound(&self, _interval: &Interval<'_>) -> f64 {
        0.0
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    register_loss(LostIndividuals)?;

    let quasi = || PolicyColumn::new(Role::Quasi);
    let spec = PolicySpec::builder()
        .k(2)
        .suppression_limit(0.5)
        .rows_are_individuals()
        .drop_others()
        .set("objective", "lost_people")
        .column("dob", quasi().hierarchy("date", ["month", "year"]))
        .column("sex", quasi())
        .column("zip", quasi().hierarchy("prefix", [4, 3, 2]))
        .build()?;
    let run = Run::default();
    let patients =
        open(&run, Input::find(PATIENTS)?, &PolicySource { spec: &spec, files: &Folder(".".into()) }).await?;
    let found = search(&run, &patients, 1).await?;
    assert_eq!(found.objective, "lost_people");
    assert_eq!((found.best[0].value, found.best[0].suppressed_individuals), (0.0, 0));

    let session = SessionContext::new();
    register_all(&session)?;
    session.register_csv("patients", PATIENTS, CsvReadOptions::new()).await?;
    let sql = "SELECT count(*) AS nodes FROM lattice(patients, {k: 2, rows_are_individuals: true, others: 'drop', \
               columns: {sex: {role: 'quasi'}}}) WHERE lost_people = suppressed_individuals";
    let nodes = session.sql(sql).await?.to_string().await?;
    assert!(nodes.contains("| 2     |"), "{nodes}");
    Ok(())
}
