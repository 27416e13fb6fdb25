//! A program that uses `datafusion-kanon` as anybody would: in sessions of its own, and in SQL.
//!
//! It asks what the tutorial asks (`sql/*.slt`), prints the answers, and fails where one is not the expected one.

use std::path::Path;

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{CsvReadOptions, ParquetReadOptions, SessionConfig, SessionContext};
use datafusion_kanon::{configure, load_hierarchy, load_hierarchy_file, register_all};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data");

/// Prints what a query returns; fails unless it is these rows, cells divided by blanks.
async fn expect(session: &SessionContext, sql: &str, expected: &[&str]) -> Result<()> {
    let answer = pretty_format_batches(&session.sql(sql).await?.collect().await?)?.to_string();
    println!("{sql}\n{answer}\n");
    let rows = answer.lines().filter(|line| line.starts_with('|')).skip(1);
    let rows: Vec<String> = rows
        .map(|row| {
            row.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(" ")
        })
        .collect();
    if rows == expected {
        return Ok(());
    }
    Err(DataFusionError::Execution(format!("{sql}\n  expected {expected:?}\n  found    {rows:?}")))
}

async fn register_tables(session: &SessionContext) -> Result<()> {
    for name in ["health", "voter", "marital"] {
        let file = format!("{DATA}/papers/{name}.csv");
        session.register_csv(name, &file, CsvReadOptions::new()).await?;
    }
    session.register_parquet("visits", &format!("{DATA}/visits.parquet"), ParquetReadOptions::new()).await
}

/// How easily people are found.
async fn measures(session: &SessionContext) -> Result<()> {
    let sql = "SELECT k_anonymity(dob, sex, zip) AS k3, k_anonymity(sex, zip) AS k2, k_anonymity(sex) AS k1 \
               FROM health";
    expect(session, sql, &["1 1 5"]).await?;
    let sql = "SELECT sample_uniqueness(sex, zip) AS unique, prosecutor_risk_mean(sex, zip) AS risk \
               FROM health";
    expect(session, sql, &["0.5 0.7"]).await?;
    let sql = "SELECT k_anonymity(born, sex) AS rows, k_anonymity_individuals(patient_id, born, sex) AS people \
               FROM (SELECT patient_id, sex, generalize_date(dob, 'decade') AS born \
                     FROM visits WHERE diagnosis = 'Chronic kidney disease')";
    expect(session, sql, &["72 1"]).await?;
    let sql = "SELECT * FROM classes(health, 'sex', 'zip', sensitive => 'problem') \
               ORDER BY size DESC, sex LIMIT 2";
    expect(session, sql, &["Female 2139 3 0.3333333333333333 2", "Male 2138 2 0.5 2"]).await?;
    let sql = "SELECT * FROM link(voter, health, 'dob', 'sex', 'zip', sensitive => 'problem')";
    expect(session, sql, &["1 10 10"]).await
}

/// Less said, more people alike.
async fn generalizers(session: &SessionContext) -> Result<()> {
    let sql = "SELECT generalize_date(dob, 'year') AS dob, sex, generalize_prefix(zip, 3) AS zip, count(*) AS size \
               FROM voter GROUP BY 1, 2, 3 ORDER BY size LIMIT 2";
    expect(session, sql, &["1996-01-01 Female 214* 1", "1995-01-01 Male 214* 2"]).await?;
    let sql = "SELECT k_anonymity(generalize_date(dob, 'year'), sex, generalize_prefix(zip, 2)) AS k \
               FROM voter";
    expect(session, sql, &["5"]).await?;
    let marital = session.table("marital").await?.collect().await?;
    load_hierarchy(session, "marital", &marital)?;
    let sql = "SELECT generalize('marital', marital_status, 1) AS status, count(*) AS people \
               FROM health GROUP BY 1 ORDER BY 1";
    expect(session, sql, &["never married 2", "once married 8"]).await
}

/// Which generalizations are enough, and the table that a release would hold.
async fn releases(session: &SessionContext) -> Result<()> {
    let policy = "{k: 2, rows_are_individuals: true, others: 'drop', columns: {sex: {role: 'quasi'}, \
                  zip: {role: 'quasi', hierarchy: {prefix: [3, 2]}}}}";
    let sql = format!(
        "SELECT levels, suppressed_rows, classes FROM lattice(health, {policy}) WHERE minimal ORDER BY levels"
    );
    expect(session, &sql, &["{sex: 0, zip: 2} 0 2", "{sex: 1, zip: 1} 0 2"]).await?;
    // The policy names two files. Queries read none unless they are allowed to, so we load them by these names.
    for file in ["education.csv", "marital_status.csv"] {
        load_hierarchy_file(session, file, Path::new(DATA).join(file))?;
    }
    let policy = std::fs::read_to_string(Path::new(DATA).join("visits.toml"))?.replace('\'', "''");
    let quasi = "dob, zip, sex, race, education, marital_status";
    let sql = format!(
        "SELECT count(*) AS rows, k_anonymity({quasi}) >= 5 AS k, l_diversity(diagnosis, {quasi}) >= 2 AS l \
         FROM anonymize(visits, '{policy}')"
    );
    expect(session, &sql, &["95527 true true"]).await
}

#[tokio::main]
async fn main() -> Result<()> {
    // A session with the engine's own settings learns what the crate adds.
    let session = SessionContext::new();
    register_all(&session)?;
    register_tables(&session).await?;
    measures(&session).await?;
    generalizers(&session).await?;
    releases(&session).await?;

    // The same for a session that is built; the answers do not depend on its settings.
    let config = SessionConfig::new().with_target_partitions(3).with_batch_size(100);
    let builder = SessionStateBuilder::new().with_default_features().with_config(config);
    let session = SessionContext::new_with_state(configure(builder)?.build());
    register_tables(&session).await?;
    session.sql("SET kanon.rewrite_measures = false").await?;
    measures(&session).await?;
    generalizers(&session).await
}
