//! Arguments that may be addresses (`s3://bucket/visits.parquet`) instead of paths of this machine.

use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorCode, Result};

/// Schemes of addresses, and how their files come to this machine and from it.
const WAYS: [(&[&str], &str); 5] = [
    (&["s3", "s3a", "s3n"], "aws s3 cp --recursive"),
    (&["gs", "gcs"], "gcloud storage cp --recursive"),
    (&["az", "azure", "abfs", "abfss", "wasb", "wasbs", "adl"], "azcopy copy --recursive"),
    (&["hdfs", "viewfs"], "hdfs dfs -get and -put"),
    (&["http", "https", "ftp", "ftps"], "curl"),
];

/// Returns the path that an argument names: the argument itself, or the path of a `file://` address.
/// Every file and folder that a user names goes through here, so that none is read or written at a
/// path that looks like another place.
///
/// # Errors
/// A policy error for an address of another kind, which is not shown: it may hold a password.
pub fn local_path(argument: impl AsRef<Path>) -> Result<PathBuf> {
    let argument = argument.as_ref();
    let text = argument.to_str().unwrap_or_default();
    let Some(scheme) = scheme_of(text) else { return Ok(argument.to_path_buf()) };
    let refused = |why: String| Error::policy(why).coded(ErrorCode::Address);
    if scheme.eq_ignore_ascii_case("file") {
        return of_file(text).ok_or_else(|| {
            refused(format!(
                "`{}`: expected file:/// and an absolute path in UTF-8, with %20 for a space, %25 for %, %23 for # and %3F for ?",
                argument.display()
            ))
        });
    }
    let known =
        WAYS.iter().find(|(schemes, _)| schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme)));
    let way = known.map_or_else(String::new, |(_, way)| format!(" ({way})"));
    Err(refused(format!(
        "{scheme}://... is an address, and kanon reads and writes files of this machine only; copy them with a tool \
         of that store{way} or mount it, and give their path here (a folder that is called `{scheme}:` is \
         ./{scheme}:/...)"
    )))
}

/// Returns the scheme of an address; `None` for a path, also for one that begins with a drive (`C://`).
fn scheme_of(argument: &str) -> Option<&str> {
    // The engine reads `file:/x` as an address, too.
    let is_short = argument.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("file:/"));
    let (scheme, _) = argument.split_once(if is_short { ":/" } else { "://" })?;
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    is_scheme.then_some(scheme)
}

/// Returns the path of a `file://` address; `None` if it is malformed or has a query or a fragment, which
/// are no part of a path.
fn of_file(address: &str) -> Option<PathBuf> {
    let url = url::Url::parse(address).ok()?;
    let is_path = !address.ends_with("://") && url.query().is_none() && url.fragment().is_none();
    let path = url.to_file_path().ok().filter(|path| is_path && path.to_str().is_some())?;
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_as_they_are() {
        for path in [
            "visits.parquet",
            "./s3:/x",
            "s3:/x",
            "s3:x",
            "/data/s3://x",
            r"C:\data\visits.parquet",
            "C:/data",
            "c://data",
            "://x",
            "3s://x",
            "a b://x",
            "-",
            "",
        ] {
            assert_eq!(local_path(path).unwrap(), Path::new(path), "{path}");
        }
    }

    #[test]
    fn an_address_is_refused_with_the_way_and_without_its_rest() {
        for (address, part) in [
            ("s3://key:secret@bucket/visits.parquet", "s3://... is an address"),
            ("S3A://key:secret@bucket/x", "(aws s3 cp --recursive)"),
            ("gs://secret/*.parquet", "(gcloud storage cp --recursive)"),
            ("abfss://secret@account.dfs.core.windows.net/x", "(azcopy copy --recursive)"),
            ("hdfs://secret:8020/x", "(hdfs dfs -get and -put)"),
            ("https://user:secret@example.org/x.csv", "(curl)"),
            ("dbfs+v2.x-y://secret", "a tool of that store or mount it"),
        ] {
            let error = local_path(address).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
            assert_eq!((error.code(), error.kind().exit_code()), ("address", 2));
        }
    }

    #[test]
    fn a_file_address_is_a_path() {
        for (address, path) in [
            ("file:///data/visits.parquet", "/data/visits.parquet"),
            ("FILE://LocalHost/data/*.csv", "/data/*.csv"),
            ("file:///a%20b/100%25/%C3%A9%2a%231%3f.csv", "/a b/100%/é*#1?.csv"),
            ("file:///", "/"),
            ("File:/data/visits.parquet", "/data/visits.parquet"),
        ] {
            assert_eq!(local_path(address).unwrap(), Path::new(path), "{address}");
        }
        for address in [
            "file://",
            "file://data/x.csv",
            "file://host",
            "file:///%ff",
            "file:///a#1.csv",
            "file:///a?.csv",
        ] {
            let error = local_path(address).unwrap_err();
            assert!(error.to_string().contains("expected file:///"), "{error}");
            assert_eq!(error.code(), "address");
        }
    }
}
