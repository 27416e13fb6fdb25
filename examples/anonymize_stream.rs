//! Anonymizes a table and writes the rows by a writer of the program's own, here as CSV.

use std::error::Error;

use datafusion::arrow::csv::Writer;
use datafusion::prelude::{CsvReadOptions, SessionContext};
use datafusion_kanon::{Folder, PolicySource, PolicySpec, Run, Source, anonymize};
use futures::StreamExt;

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

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let session = SessionContext::new();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/papers/patients.csv");
    session.register_csv("patients", path, CsvReadOptions::new()).await?;
    let sql = "SELECT dob, sex, CAST(zip AS VARCHAR) AS zip, disease FROM patients";
    let patients = Source::table("patients", session.sql(sql).await?.into_view());

    let spec = PolicySpec::parse(POLICY)?;
    let policy = PolicySource { spec: &spec, files: &Folder(".".into()) };
    // All rows are verified before the first one can be read.
    let mut anonymized = anonymize(&Run::default(), &patients, &policy).await?;
    assert_eq!(anonymized.after.min(), Some(3));

    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    while let Some(batch) = anonymized.rows.next().await {
        writer.write(&batch?)?;
    }
    drop(writer);
    let text = String::from_utf8(bytes)?;
    assert_eq!(text.lines().next(), Some("dob,sex,zip,disease"));
    assert_eq!(text.lines().count(), 1 + 9);
    // No year of birth is left with a day, and Luke's class of one is left out.
    assert!(!text.contains("1940-08-10") && !text.contains("Astrocytoma"));

    // The record says what was promised and reached. It goes with the rows, wherever they go.
    assert_eq!(anonymized.public.rows(), 9);
    assert_eq!(anonymized.public.files().count(), 0);
    assert_eq!(anonymized.public.models[0].reached, Some(3.0));
    Ok(())
}
