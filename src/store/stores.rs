//! The stores of the process: how an address becomes a client.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::prelude::SessionContext;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::SpawnedReqwestConnector;
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{ClientConfigKey, ObjectStore, RetryConfig};

use super::address::{RemoteAddress, StoreKind};
use super::io::runtime;
use super::words::{is_without_credentials, of_store};
use crate::error::{Error, ErrorCode, Result};
use crate::progress::CancelToken;

/// What is known of stores, for the whole process: functions of SQL and hierarchy files get no run.
#[derive(Default)]
struct Stores {
    /// The options of the command line.
    options: Vec<(String, String)>,
    /// The clients, by the root of an address and whether they repeat requests.
    clients: BTreeMap<(String, bool), Arc<dyn ObjectStore>>,
    /// The stores that a program registered, by the root of an address.
    registered: BTreeMap<String, Arc<dyn ObjectStore>>,
    /// Stops all waiting.
    stop: CancelToken,
}

static STORES: Mutex<Option<Stores>> = Mutex::new(None);

fn with_stores<T>(look: impl FnOnce(&mut Stores) -> T) -> T {
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    look(stores.get_or_insert_default())
}

/// Sets the options of all stores that are opened from now on: `aws_region`, `azure_storage_account_name`, `timeout` and
/// what else `object_store` reads from the environment, in small letters. They come before the environment.
///
/// # Errors
/// A policy error for a key that no store has; values are not shown.
pub fn set_options(options: Vec<(String, String)>) -> Result<()> {
    for (key, _) in &options {
        let is_known = key.parse::<AmazonS3ConfigKey>().is_ok()
            || key.parse::<AzureConfigKey>().is_ok()
            || key.parse::<GoogleConfigKey>().is_ok();
        if !is_known {
            return Err(Error::policy(format!(
                "--option {key}: no store has it; expected a key such as aws_region, aws_endpoint, allow_http, \
                 azure_storage_account_name, google_service_account or timeout"
            )));
        }
    }
    with_stores(|stores| {
        stores.options = options;
        stores.clients.clear();
    });
    Ok(())
}

/// Sets what stops all waiting for stores: code without a run waits for them, too.
pub fn set_stop(stop: CancelToken) {
    with_stores(|stores| stores.stop = stop);
}

pub(super) fn stop_of_process() -> CancelToken {
    with_stores(|stores| stores.stop.clone())
}

/// Makes a store of a program's own known by the beginning of its addresses, such as `memory://data`.
pub fn register(root: &str, store: Arc<dyn ObjectStore>) {
    with_stores(|stores| stores.registered.insert(root.to_owned(), store));
}

/// Returns whether a program registered the store of an address.
pub(super) fn is_registered(scheme: &str, rest: &str) -> bool {
    let host = rest.split('/').next().unwrap_or_default();
    with_stores(|stores| stores.registered.contains_key(&format!("{scheme}://{host}")))
}

/// Returns the client of an address.
///
/// # Errors
/// A policy error if an option or a variable of the environment has a value that cannot be used.
pub(super) fn client(address: &RemoteAddress) -> Result<Arc<dyn ObjectStore>> {
    client_that(address, true)
}

/// Returns a client that repeats no request, so that each answer is that of one.
///
/// # Errors
/// As [`client`].
pub(super) fn client_without_retries(address: &RemoteAddress) -> Result<Arc<dyn ObjectStore>> {
    client_that(address, false)
}

fn client_that(address: &RemoteAddress, retries: bool) -> Result<Arc<dyn ObjectStore>> {
    with_stores(|stores| {
        let key = (address.root.clone(), retries);
        if let Some(store) = stores.registered.get(&address.root).or_else(|| stores.clients.get(&key)) {
            return Ok(Arc::clone(store));
        }
        let retry = if retries { retry() } else { RetryConfig { max_retries: 0, ..retry() } };
        let store = made(address, &stores.options, retry)?;
        stores.clients.insert(key, Arc::clone(&store));
        Ok(store)
    })
}

/// Returns the variables of the environment that clients read, with their names in small letters, by their names.
fn variables() -> BTreeMap<String, String> {
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        Some((name.to_str()?.to_ascii_lowercase(), value.to_string_lossy().into_owned()))
    });
    let is_of_store =
        |name: &str| ["aws_", "azure_", "azurite_", "google_"].iter().any(|start| name.starts_with(start));
    variables.filter(|(name, _)| is_of_store(name)).collect()
}

/// Returns what options and the environment say of where stores are: equal addresses may lead to different ones.
pub(crate) fn endpoints() -> String {
    const KEYS: [&str; 11] = [
        "endpoint",
        "endpoint_url",
        "aws_endpoint",
        "aws_endpoint_url",
        "aws_endpoint_url_s3",
        "azure_storage_account_name",
        "azure_storage_endpoint",
        "azure_endpoint",
        "azure_storage_use_emulator",
        "azurite_blob_storage_url",
        "google_base_url",
    ];
    let options = with_stores(|stores| stores.options.clone()).into_iter();
    let all = options.map(|(key, value)| (key.to_ascii_lowercase(), value)).chain(variables());
    let all = all.filter(|(key, _)| KEYS.contains(&key.as_str()));
    all.map(|(key, value)| format!("{key}={value} ")).collect()
}

/// Lets the engine write to the store of an address in a session.
///
/// # Errors
/// A policy error for an address that is only read, or whose key the engine would read as another one, or if an option or a
/// variable of the environment has a value that cannot be used.
pub fn open_for_engine(session: &SessionContext, address: &RemoteAddress) -> Result<()> {
    let refused = |why: &str| Err(Error::policy(why).coded(ErrorCode::Address));
    if address.kind == StoreKind::Http {
        return refused(
            "is on a web server, which is only read; name an address of s3, az, abfss or gs, or a path",
        );
    }
    if address.key.contains(['%', '?', '#', '*', '[']) {
        return refused("expected none of `%`, `?`, `#`, `*` and `[` in the key");
    }
    let url = url::Url::parse(&format!("{}/", address.root)).map_err(|_| Error::internal("store: no URL"))?;
    session.register_object_store(&url, client(address)?);
    Ok(())
}

/// Returns the error of a client that cannot be made of its settings: it names them, and shows no values.
fn bad_settings(address: &RemoteAddress, options: &[(String, String)], error: &object_store::Error) -> Error {
    let is_read = |name: &String| match address.kind {
        StoreKind::S3 => name.parse::<AmazonS3ConfigKey>().is_ok(),
        StoreKind::Azure => name.parse::<AzureConfigKey>().is_ok(),
        StoreKind::Google => name.parse::<GoogleConfigKey>().is_ok(),
        StoreKind::Http | StoreKind::Registered => false,
    };
    let variables = variables().into_keys().filter(&is_read).map(|name| name.to_ascii_uppercase());
    let options =
        options.iter().map(|(key, _)| key).filter(|key| is_read(key)).map(|key| format!("--option {key}"));
    let named: Vec<String> = variables.chain(options).collect();
    if named.is_empty() || is_without_credentials(error) {
        return of_store(error, address).at(address);
    }
    let why = "a setting of the store cannot be read, or needs another one beside it (a switch such as allow_http is `true` or \
               `false`, a time such as timeout `30 seconds`); of these";
    Error::policy(format!("{why}: {}", named.join(", "))).at(address)
}

/// How often, and how long at most, a request is repeated.
fn retry() -> RetryConfig {
    RetryConfig { max_retries: 5, retry_timeout: Duration::from_secs(60), ..RetryConfig::default() }
}

/// Checks values that a client would panic on: of the environment, or of options.
///
/// # Errors
/// A policy error that names what is wrong and shows no value.
fn check_values(values: &[(&str, Option<String>)]) -> Result<()> {
    let refused =
        |name: &str, why: &str| Err(Error::policy(format!("{name} (of the environment or --option): {why}")));
    for (name, value) in values.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))) {
        if value.contains(|c: char| c.is_control() || c == ' ') {
            return refused(name, "it has a blank, a line break or another control character; remove it");
        }
        let is_address =
            || url::Url::parse(value).is_ok_and(|url| url.has_host() && url.scheme().starts_with("http"));
        if name.contains("ENDPOINT") && !is_address() {
            return refused(
                name,
                "expected an address such as https://storage.example.org or http://127.0.0.1:9000",
            );
        }
    }
    Ok(())
}

/// Sets the options that a kind of store knows; the others are for other kinds.
fn configured<Key: FromStr, Builder>(
    builder: Builder,
    options: &[(String, String)],
    set: impl Fn(Builder, Key, &str) -> Builder,
) -> Builder {
    let known = options.iter().filter_map(|(key, value)| Some((key.parse::<Key>().ok()?, value)));
    known.fold(builder, |builder, (key, value)| set(builder, key, value))
}

fn made(
    address: &RemoteAddress,
    options: &[(String, String)],
    retry: RetryConfig,
) -> Result<Arc<dyn ObjectStore>> {
    let refused = |error: object_store::Error| bad_settings(address, options, &error);
    let url = format!("{}/", address.root);
    let bucket = address.root.split_once("://").map_or("", |(_, host)| host);
    // A connection belongs to the runtime that opened it, and those of callers, such as the engine's, come and go.
    let connector = SpawnedReqwestConnector::new(runtime()?);
    Ok(match address.kind {
        StoreKind::S3 => {
            let builder =
                configured(AmazonS3Builder::from_env(), options, |b, key, value| b.with_config(key, value));
            let value = |key| builder.get_config_value(&key);
            check_values(&[
                ("AWS_ENDPOINT", value(AmazonS3ConfigKey::Endpoint)),
                ("AWS_ENDPOINT_URL_S3", value(AmazonS3ConfigKey::S3Endpoint)),
                ("AWS_REGION", value(AmazonS3ConfigKey::Region)),
                ("AWS_ACCESS_KEY_ID", value(AmazonS3ConfigKey::AccessKeyId)),
                ("AWS_SECRET_ACCESS_KEY", value(AmazonS3ConfigKey::SecretAccessKey)),
                ("AWS_SESSION_TOKEN", value(AmazonS3ConfigKey::Token)),
            ])?;
            // A release is published by a conditional put, whatever the environment says.
            let builder = builder.with_conditional_put(S3ConditionalPut::ETagMatch);
            let builder = builder.with_http_connector(connector).with_retry(retry);
            Arc::new(builder.with_bucket_name(bucket).build().map_err(refused)?)
        }
        StoreKind::Azure => {
            let builder = configured(MicrosoftAzureBuilder::from_env(), options, |b, key, value| {
                b.with_config(key, value)
            });
            let value = |key| builder.get_config_value(&key);
            check_values(&[
                ("AZURE_STORAGE_ENDPOINT", value(AzureConfigKey::Endpoint)),
                ("AZURE_STORAGE_ACCOUNT_NAME", value(AzureConfigKey::AccountName)),
                ("AZURE_STORAGE_ACCOUNT_KEY", value(AzureConfigKey::AccessKey)),
            ])?;
            let builder = builder.with_http_connector(connector).with_retry(retry);
            Arc::new(builder.with_url(url).build().map_err(refused)?)
        }
        StoreKind::Google => {
            let builder = GoogleCloudStorageBuilder::from_env();
            let builder = configured(builder, options, |b, key, value| b.with_config(key, value));
            let builder = builder.with_http_connector(connector).with_retry(retry);
            Arc::new(builder.with_bucket_name(bucket).build().map_err(refused)?)
        }
        StoreKind::Http => {
            // The address says whether it is encrypted. A whole file is one answer.
            let builder = HttpBuilder::new()
                .with_config(ClientConfigKey::AllowHttp, "true")
                .with_config(ClientConfigKey::Timeout, "1 day");
            let builder = configured(builder, options, |b, key, value| b.with_config(key, value));
            Arc::new(builder.with_url(url).with_retry(retry).build().map_err(refused)?)
        }
        StoreKind::Registered => {
            return Err(Error::internal("store: a store that was registered is not known"));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Address;

    #[test]
    fn an_option_that_no_store_has_is_refused_without_its_value() {
        let of = |key: &str| vec![(key.to_owned(), "secret".to_owned())];
        let error = set_options(of("aws_regoin")).unwrap_err().to_string();
        assert!(error.contains("aws_regoin") && !error.contains("secret"), "{error}");
        for key in
            ["aws_region", "azure_storage_account_key", "google_service_account", "timeout", "allow_http"]
        {
            set_options(of(key)).unwrap();
        }
        set_options(Vec::new()).unwrap();
    }

    #[test]
    fn settings_that_cannot_be_read_are_named_without_their_values() {
        let Address::Remote(address) = Address::parse("s3://lake/in").unwrap() else { unreachable!() };
        let options =
            ["aws_region", "timeout", "allow_http"].map(|key| (key.to_owned(), "secret".to_owned()));
        made(&address, &options[..1], retry()).unwrap();
        for bad in [1, 2] {
            let options = [options[0].clone(), options[bad].clone()];
            let error = made(&address, &options, retry()).unwrap_err();
            let said = error.to_string();
            assert!(said.contains(&format!("--option aws_region, --option {}", options[1].0)), "{said}");
            assert!(!said.contains("secret"), "{said}");
            assert_eq!(error.kind().exit_code(), 2);
        }
        let options = [("aws_endpoint".to_owned(), "127.0.0.1:9".to_owned())];
        let said = made(&address, &options, retry()).unwrap_err().to_string();
        assert!(said.contains("expected an address such as https://"), "{said}");
    }
}
