//! Addresses: where a file lies, a path of this machine or an object of a store.

use std::fmt;
use std::path::{Path, PathBuf};

use super::object::Tag;
use super::partitions::is_partition_name;
use crate::error::{Error, ErrorCode, Result};

/// A place that a user names: a path of this machine, or an address of a store.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// A path of this machine.
    Local(PathBuf),
    /// An address such as `s3://lake/visits/`.
    Remote(RemoteAddress),
}

/// An address of a store. It holds no credentials, so that it can be shown.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteAddress {
    pub(super) kind: StoreKind,
    /// The store: `s3://lake`, without a final `/`.
    pub(super) root: String,
    /// The key of an object, or the beginning of keys; empty for the whole store. Never begins with `/`.
    pub(super) key: String,
}

/// The protocols of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum StoreKind {
    /// Amazon S3 and what speaks its protocol.
    S3,
    /// Azure Blob Storage.
    Azure,
    /// Google Cloud Storage.
    Google,
    /// A web server, which is only read, and lists nothing.
    Http,
    /// A store that a program registered.
    Registered,
}

impl StoreKind {
    /// Returns the condition that an object still has a tag.
    pub(super) fn condition(self, tag: &Tag) -> String {
        match self {
            // It compares what it gave.
            Self::Registered => tag.0.clone(),
            _ => format!("\"{}\"", tag.bare()),
        }
    }
}

/// The schemes of addresses.
const SCHEMES: [(&str, StoreKind); 10] = [
    ("s3", StoreKind::S3),
    ("s3a", StoreKind::S3),
    ("az", StoreKind::Azure),
    ("azure", StoreKind::Azure),
    ("abfs", StoreKind::Azure),
    ("abfss", StoreKind::Azure),
    ("gs", StoreKind::Google),
    ("gcs", StoreKind::Google),
    ("http", StoreKind::Http),
    ("https", StoreKind::Http),
];

impl Address {
    /// Reads a path, a `file://` address or an address of a store. Keys are taken as they are written; of `http(s)` and
    /// `file` addresses, `%` escapes are decoded.
    ///
    /// # Errors
    /// A policy error for an address of another kind, or one with a user, a password or a query, which are not shown.
    pub fn parse(argument: impl AsRef<Path>) -> Result<Self> {
        let argument = argument.as_ref();
        let text = argument.to_str().unwrap_or_default();
        let Some((scheme, rest)) = scheme_of(text) else { return Ok(Self::Local(argument.to_path_buf())) };
        if scheme.eq_ignore_ascii_case("file") {
            // What stands before a path, or behind it, may be a secret.
            let has_host = rest.starts_with('/') && !rest.starts_with("//");
            let is_path = !has_host && !rest.contains(['?', '#']);
            let shown = if is_path { format!("`{text}`") } else { "file://...".to_owned() };
            return of_file(text).map(Self::Local).ok_or_else(|| {
                refused(format!(
                    "{shown}: expected file:/// and an absolute path in UTF-8, with %20 for a space, %25 for %, %23 for # \
                     and %3F for ?"
                ))
            });
        }
        let scheme = scheme.to_ascii_lowercase();
        if super::stores::is_registered(&scheme, rest) {
            return Ok(Self::Remote(RemoteAddress::new(StoreKind::Registered, &scheme, rest)));
        }
        let known = SCHEMES.iter().find(|(known, _)| *known == scheme);
        let Some((_, kind)) = known else {
            return Err(refused(format!(
                "{scheme}://... is an address of a store that kanon does not know; expected one of s3, az, abfss, gs, http, \
                 https or file; copy the files here, or mount the store, and give their path (a folder that is called \
                 `{scheme}:` is ./{scheme}:/...)"
            )));
        };
        match kind {
            StoreKind::Http => of_web(text),
            _ => of_store(*kind, &scheme, rest),
        }
        .map(Self::Remote)
    }

    /// Returns the path of this machine, if it is one.
    pub fn local(&self) -> Option<&Path> {
        match self {
            Self::Local(path) => Some(path),
            Self::Remote(_) => None,
        }
    }

    /// Returns the last part of the path or the key, without a `/` at its end.
    pub fn name(&self) -> &str {
        match self {
            Self::Local(path) => path.file_name().and_then(|name| name.to_str()).unwrap_or_default(),
            Self::Remote(address) => address.key().rsplit('/').next().unwrap_or_default(),
        }
    }

    /// Returns the place of a name in the folder of this file; of a name that is an absolute path or an address, that place.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn beside(&self, name: &str) -> Result<Self> {
        Ok(match (self, Self::parse(name)?) {
            (_, there @ Self::Remote(_)) => there,
            (Self::Local(file), Self::Local(path)) => {
                Self::Local(file.parent().unwrap_or(Path::new("")).join(path))
            }
            (Self::Remote(_), Self::Local(path)) if path.is_absolute() => Self::Local(path),
            (Self::Remote(file), Self::Local(_)) => {
                let folder = file.key.rsplit_once('/').map_or("", |(folder, _)| folder);
                let name = name.strip_prefix("./").unwrap_or(name);
                Self::Remote(file.with_key(format!("{folder}/{name}").trim_start_matches('/').to_owned()))
            }
        })
    }
}

impl RemoteAddress {
    fn new(kind: StoreKind, scheme: &str, rest: &str) -> Self {
        let (host, key) = rest.split_once('/').unwrap_or((rest, ""));
        let key = key.to_owned();
        Self { kind, root: format!("{scheme}://{host}"), key }
    }

    /// Returns what follows the store, without a `/` at its end.
    pub(crate) fn key(&self) -> &str {
        self.key.trim_end_matches('/')
    }

    /// Returns the same address without a `/` at its end.
    pub(crate) fn trimmed(&self) -> Self {
        self.with_key(self.key().to_owned())
    }

    /// Returns what tells whether addresses may lie in one store: a store has several schemes, and `az` leaves the account out.
    pub(crate) fn store(&self) -> String {
        let host = self.root.split_once("://").map_or("", |(_, host)| host);
        match self.kind {
            StoreKind::Http | StoreKind::Registered => self.root.clone(),
            kind => format!("{kind:?} {}", host.split('@').next().unwrap_or_default()),
        }
    }

    /// Returns whether it may lie in a folder, or be it.
    pub(crate) fn is_in(&self, folder: &Self) -> bool {
        let below = self.key().strip_prefix(folder.key());
        let is_below = |below: &str| below.is_empty() || below.starts_with('/') || folder.key().is_empty();
        self.store() == folder.store() && below.is_some_and(is_below)
    }

    /// Returns the address of a name in this folder.
    pub(crate) fn join(&self, name: &str) -> Self {
        let key = self.key();
        self.with_key(if key.is_empty() { name.to_owned() } else { format!("{key}/{name}") })
    }

    /// Returns the folders above, the nearest first, but for the store itself.
    pub(super) fn folders_above(&self) -> Vec<Self> {
        let key = self.key();
        let ends = key.rmatch_indices('/');
        ends.map(|(end, _)| self.with_key(key.get(..end).unwrap_or_default().to_owned())).collect()
    }

    /// Returns the nearest folder above that is no partition folder, and the number of folders from there to this one.
    pub(crate) fn root_and_depth(&self) -> (Self, usize) {
        let mut folders: Vec<&str> = self.key().split('/').collect();
        let all = folders.len();
        folders.pop();
        while folders.last().is_some_and(|name| is_partition_name(name)) {
            folders.pop();
        }
        (self.with_key(folders.join("/")), all - folders.len())
    }

    /// Returns the address of another object of the store.
    pub(super) fn with_key(&self, key: String) -> Self {
        Self { key, ..self.clone() }
    }
}

/// An address with a bucket, a container or, with `abfss`, `container@account...`.
fn of_store(kind: StoreKind, scheme: &str, rest: &str) -> Result<RemoteAddress> {
    let (host, _) = rest.split_once('/').unwrap_or((rest, ""));
    let is_name = |name: &str| {
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '$'))
    };
    let is_good = match host.split_once('@') {
        None => is_name(host),
        Some((container, account)) => scheme.starts_with("abfs") && is_name(container) && is_name(account),
    };
    if is_signed(rest) {
        return Err(refused(format!(
            "{scheme}://...: expected no signature in the address, which would be kept in records: credentials come from the \
             environment or --option"
        )));
    }
    if rest[host.len()..].starts_with("//") {
        return Err(refused(format!(
            "{scheme}://...: expected no empty part (`//`) in the key, which cannot be read"
        )));
    }
    if !is_good {
        let form = match kind {
            StoreKind::Azure => {
                "a container, as in az://CONTAINER/... or abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/..."
            }
            _ => "a bucket",
        };
        return Err(refused(format!(
            "{scheme}://...: expected {form}, and no key or password: credentials come from the environment or --option"
        )));
    }
    Ok(RemoteAddress::new(kind, scheme, rest))
}

/// Returns whether an address holds a signature, which gives access to anyone who sees it.
fn is_signed(address: &str) -> bool {
    const SIGNATURES: [&str; 5] =
        ["sig=", "x-amz-signature=", "x-amz-security-token=", "x-goog-signature=", "signature="];
    // However a link was copied. A folder of such a name is none.
    let address = address.to_ascii_lowercase().replace("%3f", "?").replace("%26", "&").replace("%3d", "=");
    let Some((_, query)) = address.split_once('?') else { return false };
    query
        .split(['?', '&', ';'])
        .map(str::trim_start)
        .any(|query| SIGNATURES.iter().any(|signature| query.starts_with(signature)))
}

/// An address of a web server.
fn of_web(text: &str) -> Result<RemoteAddress> {
    let scheme =
        if text.get(..5).is_some_and(|s| s.eq_ignore_ascii_case("https")) { "https" } else { "http" };
    let url = url::Url::parse(text).ok().filter(url::Url::has_host);
    let Some(url) = url else {
        return Err(refused(format!("{scheme}://...: expected the address of a web server")));
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused(format!("{scheme}://...: expected no user and no password in the address")));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refused(format!(
            "{scheme}://...: expected no `?` and no `#` in the address (write %3F and %23 where they belong to a name): a query \
             may hold a signature, which would be kept in records; download the file and give its path"
        )));
    }
    let path = object_store::path::Path::from_url_path(url.path());
    let path = path.map_err(|_| {
        refused(format!("{scheme}://...: its path has an empty part, `.` or `..`, or no UTF-8"))
    })?;
    let root = url[..url::Position::BeforePath].to_owned();
    let end = if url.path().ends_with('/') && !path.as_ref().is_empty() { "/" } else { "" };
    Ok(RemoteAddress { kind: StoreKind::Http, root, key: format!("{path}{end}") })
}

fn refused(why: String) -> Error {
    Error::policy(why).coded(ErrorCode::Address)
}

/// Returns the path of this machine that an argument names, for what is read or written nowhere else.
///
/// # Errors
/// Those of [`Address::parse`], and a policy error for an address of a store.
pub fn local_path(argument: impl AsRef<Path>) -> Result<PathBuf> {
    match Address::parse(argument)? {
        Address::Local(path) => Ok(path),
        Address::Remote(address) => {
            let why = "is an address, and this file is read and written on this machine only; give a path";
            Err(refused(format!("{address} {why}")))
        }
    }
}

/// Returns the scheme of an address and what follows it; `None` for a path, also for one that begins with a drive (`C://`).
fn scheme_of(argument: &str) -> Option<(&str, &str)> {
    // The engine reads `file:/x` as an address, too.
    let is_short = argument.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("file:/"));
    let (scheme, rest) = argument.split_once(if is_short { ":/" } else { "://" })?;
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    is_scheme.then_some((scheme, rest))
}

/// Returns the path of a `file://` address; `None` if it is malformed or has a query or a fragment, which
/// are no part of a path.
fn of_file(address: &str) -> Option<PathBuf> {
    let url = url::Url::parse(address).ok()?;
    let is_path = !address.ends_with("://") && url.query().is_none() && url.fragment().is_none();
    let path = url.to_file_path().ok().filter(|path| is_path && path.to_str().is_some())?;
    Some(path)
}

impl fmt::Display for RemoteAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.root, self.key)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => write!(f, "{}", path.display()),
            Self::Remote(address) => write!(f, "{address}"),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Debug for RemoteAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
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
            assert_eq!(Address::parse(path).unwrap(), Address::Local(path.into()), "{path}");
        }
    }

    #[test]
    fn addresses_of_stores() {
        for (address, shown, name) in [
            ("s3://lake/visits.parquet", "s3://lake/visits.parquet", "visits.parquet"),
            ("S3A://lake/a b/c%20d?#*.csv", "s3a://lake/a b/c%20d?#*.csv", "c%20d?#*.csv"),
            ("s3://lake", "s3://lake/", ""),
            ("abfss://in@acc.dfs.core.windows.net/x", "abfss://in@acc.dfs.core.windows.net/x", "x"),
            ("az://in/x", "az://in/x", "x"),
            ("az://in/a?b/sig=1/x", "az://in/a?b/sig=1/x", "x"),
            ("s3://lake/k=a&signature=b/x", "s3://lake/k=a&signature=b/x", "x"),
            ("gs://b_1.x/y", "gs://b_1.x/y", "y"),
            ("https://Example.org:444/a%20b.csv", "https://example.org:444/a b.csv", "a b.csv"),
        ] {
            let parsed = Address::parse(address).unwrap();
            assert_eq!((parsed.to_string().as_str(), parsed.name()), (shown, name), "{address}");
            assert!(parsed.local().is_none() && local_path(address).is_err());
        }
    }

    #[test]
    fn addresses_of_one_store_lie_in_its_folders() {
        let address = |text: &str| match Address::parse(text).unwrap() {
            Address::Remote(address) => address,
            Address::Local(_) => unreachable!(),
        };
        for (inner, folder, is_in) in [
            ("s3://lake/safe/p.json", "s3://lake/safe", true),
            ("s3a://lake/safe", "s3://lake/safe/", true),
            ("s3://lake/safe2/p.json", "s3://lake/safe", false),
            ("s3://other/safe/p.json", "s3://lake/safe", false),
            ("az://in/safe/x", "abfss://in@acc.dfs.core.windows.net/safe", true),
            ("s3://lake/x", "s3://lake", true),
        ] {
            assert_eq!(address(inner).is_in(&address(folder)), is_in, "{inner} in {folder}");
        }
        let above = address("s3://lake/a/b/c/").folders_above();
        assert_eq!(
            above.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["s3://lake/a/b", "s3://lake/a"]
        );
    }

    #[test]
    fn secrets_and_other_stores_are_refused_and_not_shown() {
        for (address, part) in [
            ("s3://key:secret@bucket/visits.parquet", "no key or password"),
            ("s3://secret@bucket/x", "no key or password"),
            ("s3:///secret", "expected a bucket"),
            ("s3://lake//secret", "no empty part"),
            ("abfss://secret:x@acc.dfs.core.windows.net/x", "no key or password"),
            ("az://secret@x/y", "no key or password"),
            ("hdfs://secret:8020/x", "a store that kanon does not know"),
            ("dbfs+v2.x-y://secret", "a store that kanon does not know"),
            ("https://user:secret@example.org/x.csv", "no user and no password"),
            ("https://example.org/x.csv?sig=secret", "a signature"),
            ("https://example.org/x.csv#secret", "no `#`"),
            ("https://example.org//secret", "an empty part"),
            ("https:///", "expected the address of a web server"),
            ("abfss://in@acc.dfs.core.windows.net/x?sv=1&sig=secret", "no signature"),
            ("az://in/x.csv?sig=secret", "no signature"),
            ("az://in/x.csv?sv=1&amp;sig=secret", "no signature"),
            ("az://in/x.csv%3Fsv=1%26sig%3Dsecret", "no signature"),
            ("s3://lake/x.parquet?X-Amz-Credential=a&X-Amz-Signature=secret", "no signature"),
            ("gs://lake/x?X-Goog-Signature=secret", "no signature"),
            ("file://user:secret@host/x", "expected file:///"),
            ("file:///x?sig=secret", "expected file:///"),
        ] {
            let error = Address::parse(address).unwrap_err();
            assert!(error.to_string().contains(part), "{address}: {error}");
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

    #[test]
    fn names_beside_a_file() {
        for (file, name, place) in [
            ("a/p.toml", "age.csv", "a/age.csv"),
            ("p.toml", "/x/age.csv", "/x/age.csv"),
            ("p.toml", "s3://lake/age.csv", "s3://lake/age.csv"),
            ("s3://lake/a/p.toml", "h/age.csv", "s3://lake/a/h/age.csv"),
            ("s3://lake/p.toml", "./age.csv", "s3://lake/age.csv"),
            ("s3://lake/p.toml", "/x/age.csv", "/x/age.csv"),
        ] {
            let file = Address::parse(file).unwrap();
            assert_eq!(file.beside(name).unwrap().to_string(), place);
        }
    }
}
