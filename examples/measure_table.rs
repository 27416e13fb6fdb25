//! Measures a table: whether models hold, how easily individuals are found, and which recodings would do. The answers are
//! structs, which serde writes as the JSON of the command line.

use std::error::Error;

use datafusion_kanon::answers::{Answer, Extent, text};
use datafusion_kanon::{
    Folder, Input, PolicyColumn, PolicyRequirement, PolicySource, PolicySpec, Role, Run, check, open, risk,
    search,
};

const PATIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/papers/patients.csv");

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let quasi = || PolicyColumn::new(Role::Quasi);
    let spec = PolicySpec::builder()
        .k(2)
        .require(PolicyRequirement::new("l_diversity").set("l", 2).set("sensitive", "disease"))
        .suppression_limit(0.1)
        .rows_are_individuals()
        .drop_others()
        .column("dob", quasi().hierarchy("date", ["month", "year"]))
        .column("sex", quasi())
        .column("zip", quasi().hierarchy("prefix", [4, 3, 2]))
        .column("disease", PolicyColumn::new(Role::Sensitive))
        .build()?;

    let run = Run::default();
    let patients =
        open(&run, Input::find(PATIENTS)?, &PolicySource { spec: &spec, files: &Folder(".".into()) }).await?;

    // The table as it is: every patient is alone.
    let checked = check(&run, &patients).await?;
    assert!(!checked.holds());
    assert_eq!(checked.models.iter().map(|model| model.holds).collect::<Vec<_>>(), [false, false]);
    let risks = risk(&run, &patients).await?;
    assert_eq!((risks.rows, risks.k), (10, 1));
    assert!(risks.risk["prosecutor_risk_max"] >= 1.0);

    // The best recodings, of which a release would take the first.
    let found = search(&run, &patients, 3).await?;
    assert!(found.optimal && found.best.len() == 3);
    assert!(found.best.iter().all(|best| best.min_class >= Some(2)));

    // For programs, and for people.
    let json = serde_json::to_value(&found)?;
    assert_eq!(json["best"][0]["min_class"], serde_json::to_value(found.best[0].min_class)?);
    assert!(text(&risks.document(), Extent::Results).contains("prosecutor_risk_max"));
    Ok(())
}
