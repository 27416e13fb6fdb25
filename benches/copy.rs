//! The plainest export there is: `copy IN OUT` reads the Parquet of IN and writes it as Parquet to OUT.
//!
//! This is what `benches/release_vs_copy.sh` compares a release with. OUT is a folder if it ends in `/`,
//! else a file. `KANON_THREADS` sets the number of threads and partitions (2 if it is not set).

use std::error::Error;

use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(from), Some(to), None) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err("usage: copy IN.parquet OUT".into());
    };
    let threads = match std::env::var("KANON_THREADS") {
        Ok(said) => said.parse::<usize>()?.max(1),
        Err(_) => 2,
    };
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()?
        .block_on(copy(&from, &to, threads))
}

async fn copy(from: &str, to: &str, threads: usize) -> Result<(), Box<dyn Error>> {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(threads));
    ctx.register_parquet("t", from, ParquetReadOptions::default()).await?;
    let to = to.replace('\'', "''");
    let plan = ctx.sql(&format!("COPY t TO '{to}' STORED AS PARQUET")).await?;
    plan.collect().await?;
    Ok(())
}
