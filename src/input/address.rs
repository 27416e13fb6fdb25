//! Arguments that may be addresses (`s3://bucket/visits.parquet`) instead of paths of this machine.

use std::path::{Path, PathBuf};

use crate::error::{Code, Error, Result};

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
pub(crate) fn local_path(argument: impl AsRef<Path>) -> Result<PathBuf> {
    let argument = argument.as_ref();
    let Some((scheme, rest)) = argument.to_str().and_then(address) else { return Ok(argument.to_path_buf()) };
    let refused = |why: String| Error::policy(why).coded(Code::Address);
    if scheme.eq_ignore_ascii_case("file") {
        return of_file(rest).ok_or_else(|| {
            refused(format!(
                "`{}`: expected file:/// and an absolute path in UTF-8, with %20 for a space and %25 for %",
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

/// Splits an address at its `://`; `None` for a path, also for one that begins with a drive (`C://`).
fn address(argument: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = argument.split_once("://")?;
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    is_scheme.then_some((scheme, rest))
}

/// Returns the path of a `file://` address, given what follows that.
fn of_file(rest: &str) -> Option<PathBuf> {
    let (host, path) = rest.split_at(rest.find('/')?);
    if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
        return None;
    }
    let path = decoded(path)?;
    // On Windows file:///C:/visits names a drive.
    let has_drive = cfg!(windows) && path.get(2..3) == Some(":");
    Some(PathBuf::from(if has_drive { path.get(1..)? } else { path.as_str() }))
}

/// Replaces each `%20` by the byte that it stands for; `None` where that is no text.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        if !code.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
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
            ("file:///a%20b/100%25/%C3%A9%2a#1?.csv", "/a b/100%/é*#1?.csv"),
            ("file:///", "/"),
        ] {
            assert_eq!(local_path(address).unwrap(), Path::new(path), "{address}");
        }
        for address in [
            "file://",
            "file://data/x.csv",
            "file://host",
            "file:///100%",
            "file:///%+1",
            "file:///%zz",
            "file:///%ff",
        ] {
            let error = local_path(address).unwrap_err();
            assert!(error.to_string().contains("expected file:///"), "{error}");
            assert_eq!(error.code(), "address");
        }
    }
}
