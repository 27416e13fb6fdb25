//! Releases a table of the program's own, here a view in its session, with progress and cancellation.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::prelude::{CsvReadOptions, SessionContext};
use datafusion_kanon::{
    CancelToken, ErrorKind, Folder, Phase, Place, PolicySource, PolicySpec, Progress, Run, Source, release,
    verify,
};

const POLICY: &str = r#"
k = 2
suppression_limit = 0.1
rows_are_individuals = true
accept_homogeneity = ["disease"]

[columns]
dob     = { role = "quasi", hierarchy = { date = ["month", "year"] } }
sex     = { role = "quasi" }
zip     = { role = "quasi", hierarchy = { prefix = [4, 3, 2] } }
disease = { role = "sensitive", allow_unique = true }
"#;

/// Counts the phases of a run. A service would show them, and the units done in each.
#[derive(Default)]
struct Phases(AtomicUsize);

impl Progress for Phases {
    fn begin(&self, _phase: Phase, _total: u64) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // Any `TableProvider` will do. A view leaves out what the release must not see.
    let session = SessionContext::new();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/papers/patients.csv");
    session.register_csv("patients", path, CsvReadOptions::new()).await?;
    let sql = "SELECT dob, sex, CAST(zip AS VARCHAR) AS zip, disease FROM patients";
    let patients = Source::table("patients", session.sql(sql).await?.into_view());

    let spec = PolicySpec::parse(POLICY)?;
    let policy = PolicySource { spec: &spec, files: &Folder(".".into()) };
    let folder = tempfile::tempdir()?;
    let place = Place::beside(&folder.path().join("patients_safe"))?;

    // Another task may hold the token of a run, and stop it.
    let stop = CancelToken::default();
    stop.cancel();
    let stopped = release(&Run { stop, ..Run::default() }, &patients, &policy, &place, false).await;
    assert!(stopped.is_err_and(|error| error.kind() == ErrorKind::Interrupted));
    assert!(!folder.path().join("patients_safe").exists());

    let phases = Arc::new(Phases::default());
    let run = Run { progress: Arc::<Phases>::clone(&phases), ..Run::default() };
    let released = release(&run, &patients, &policy, &place, false).await?;
    assert_eq!(released.before.min(), Some(1));
    assert_eq!(released.after.min(), Some(3));
    assert_eq!(released.public.rows(), 9);
    assert!(phases.0.load(Ordering::Relaxed) >= 5);

    // The folder is verified again, and against the table.
    let verified = verify(&run, &place, Some(&patients), None).await?;
    assert!(verified.with_input && verified.rows == released.public.rows());
    Ok(())
}
