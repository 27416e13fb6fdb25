//! A policy by code: built key by key, and the same as a part of a service's configuration in JSON. Both are the
//! policy that a TOML file with these keys would be; the release keeps it as TOML in its private record.

use std::error::Error;

use datafusion_kanon::{Folder, Input, Place, PolicyColumn, PolicySource, PolicySpec, Role, Run, release};
use serde_json::json;

const PATIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/papers/patients.csv");

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let quasi = || PolicyColumn::new(Role::Quasi);
    let built = PolicySpec::builder()
        .k(3)
        .suppression_limit(0.1)
        .rows_are_individuals()
        .drop_others()
        .set("accept_homogeneity", ["disease"])
        .column("dob", quasi().hierarchy("date", ["month", "year"]))
        .column("sex", quasi())
        .column("zip", quasi().hierarchy("prefix", [3, 2]))
        .column("disease", PolicyColumn::new(Role::Sensitive).set("allow_unique", true))
        .build()?;

    let configured = json!({
        "k": 3,
        "suppression_limit": 0.1,
        "rows_are_individuals": true,
        "others": "drop",
        "accept_homogeneity": ["disease"],
        "columns": {
            "dob": { "role": "quasi", "hierarchy": { "date": ["month", "year"] } },
            "sex": { "role": "quasi" },
            "zip": { "role": "quasi", "hierarchy": { "prefix": [3, 2] } },
            "disease": { "role": "sensitive", "allow_unique": true },
        },
    });
    assert_eq!(serde_json::to_value(&built)?, configured);
    // From text: a `serde_json::Value` would sort the columns.
    let spec: PolicySpec = serde_json::from_str(&serde_json::to_string(&built)?)?;
    assert_eq!(spec.text(), built.text());

    // A wrong key is refused in the words that a file gets.
    let wrong =
        serde_json::from_value::<PolicySpec>(json!({ "k": 3, "columns": { "zip": { "rule": "quasi" } } }));
    let why = wrong.err().map(|error| error.to_string());
    assert_eq!(why.as_deref(), Some("policy: columns.zip.rule: unknown key; did you mean `role`?"));

    let folder = tempfile::tempdir()?;
    let place = Place::beside(&folder.path().join("patients_safe"))?;
    let source = PolicySource { spec: &spec, files: &Folder(".".into()) };
    let released = release(&Run::default(), &Input::find(PATIENTS)?, &source, &place, false).await?;
    assert_eq!((released.public.classes, released.public.rows(), released.after.min()), (3, 9, Some(3)));
    assert_eq!(released.private.policy, spec.text());
    Ok(())
}
