//! The errors of stores in people's words.

use std::error::Error as _;

use object_store::Error as StoreError;

use super::address::{RemoteAddress, StoreKind};
use crate::error::{Error, ErrorCode};

/// Words of an error of a store, and what they mean. The texts themselves hold requests, answers and keys, so they are not shown.
const CAUSES: [(&[&str], Cause); 9] = [
    (&["NoSuchBucket", "ContainerNotFound", "bucket does not exist"], Cause::NoBucket),
    (
        &[
            "ExpiredToken",
            "TokenRefreshRequired",
            "token has expired",
            "token is expired",
            "Signature not valid in the specified",
        ],
        Cause::Expired,
    ),
    (&["RequestTimeTooSkewed"], Cause::Clock),
    (
        &[
            "PermanentRedirect",
            "AuthorizationHeaderMalformed",
            "incorrectly configured region",
            "IllegalLocationConstraint",
        ],
        Cause::Region,
    ),
    (
        &[
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "InvalidToken",
            "InvalidClientTokenId",
            "AuthenticationFailed",
            "InvalidAuthenticationInfo",
            "invalid_grant",
        ],
        Cause::Wrong,
    ),
    (
        &[
            "169.254.169.254",
            "metadata.google.internal",
            "/latest/api/token",
            "Account must be specified",
            "oauth2/token",
        ],
        Cause::NoCredentials,
    ),
    (
        &["AccessDenied", "AuthorizationPermissionMismatch", "AuthorizationFailure", "403 Forbidden"],
        Cause::Denied,
    ),
    (&["SlowDown", "ServerBusy", "TooManyRequests", "503 Service Unavailable"], Cause::Busy),
    (&["URL scheme is not allowed", "allow_http", "AllowHttp"], Cause::PlainHttp),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Cause {
    NoBucket,
    Expired,
    Clock,
    Region,
    Wrong,
    NoCredentials,
    Denied,
    Busy,
    PlainHttp,
    Missing,
    Changed,
    Unreachable,
    NotSupported,
    Other,
}

impl Cause {
    fn of(error: &StoreError) -> Self {
        let text = text_of(error);
        let told = CAUSES.iter().find(|(words, _)| words.iter().any(|word| text.contains(word)));
        let told = told.map(|(_, cause)| *cause);
        match error {
            StoreError::NotFound { .. } => {
                told.filter(|cause| *cause == Self::NoBucket).unwrap_or(Self::Missing)
            }
            StoreError::Precondition { .. }
            | StoreError::NotModified { .. }
            | StoreError::AlreadyExists { .. } => Self::Changed,
            StoreError::NotSupported { .. } | StoreError::NotImplemented { .. } => Self::NotSupported,
            _ if told.is_some() => told.unwrap_or(Self::Other),
            StoreError::PermissionDenied { .. } => Self::Denied,
            StoreError::Unauthenticated { .. } => Self::Wrong,
            _ if UNREACHABLE.iter().any(|word| text.contains(word)) => Self::Unreachable,
            _ => Self::Other,
        }
    }
}

/// Returns the text of an error and of those that caused it.
fn text_of(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text += &inner.to_string();
        source = inner.source();
    }
    text
}

/// Words of an error of the network.
const UNREACHABLE: [&str; 5] = ["error sending request", "connect", "timed out", "timeout", "HTTP error"];

/// The variables of the environment that hold credentials of a store.
fn variables(kind: StoreKind) -> &'static str {
    match kind {
        StoreKind::S3 => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN)",
        StoreKind::Azure => {
            "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY (or AZURE_STORAGE_SAS_KEY)"
        }
        StoreKind::Google => "GOOGLE_SERVICE_ACCOUNT (the path of its key file)",
        StoreKind::Http | StoreKind::Registered => "the address alone",
    }
}

/// Maps an error of a store to ours, without its text, which holds requests and keys; returns ours if it holds one. The place
/// is not added.
pub(super) fn of_store(error: &StoreError, at: &RemoteAddress) -> Error {
    if let StoreError::Generic { source, .. } = error
        && let Some(own) = source.downcast_ref::<Error>()
    {
        return own.clone();
    }
    let cause = Cause::of(error);
    let variables = variables(at.kind);
    let why = match cause {
        Cause::NoBucket => "there is no such bucket or container; check its name, and the endpoint".to_owned(),
        Cause::Expired => format!("the credentials have expired; renew {variables}"),
        Cause::Clock => "the clock of this machine differs from the store's; set it".to_owned(),
        Cause::Region => "the bucket lies in another region; set AWS_REGION to its region".to_owned(),
        Cause::Wrong | Cause::Denied if at.kind == StoreKind::Http => {
            "the web server shows it to nobody without a login; download the file and give its path".to_owned()
        }
        Cause::Wrong => format!("the store refuses the credentials; check {variables}"),
        Cause::NoCredentials => {
            format!("no credentials were found; set {variables}; profiles and files of other tools are not read")
        }
        Cause::Denied => format!("the store denies access to it; check what {variables} may do"),
        Cause::Busy => "the store is too busy, also after several tries; run the command again later".to_owned(),
        Cause::PlainHttp => {
            "the endpoint is http://, which sends everything unencrypted; set AWS_ALLOW_HTTP=true (or --option \
             allow_http=true) if that is meant"
                .to_owned()
        }
        Cause::Missing => "no such object".to_owned(),
        Cause::Changed => "it changed since it was listed".to_owned(),
        Cause::Unreachable => {
            "the store cannot be reached, or gives no whole answer, also after several tries; check the endpoint and the network".to_owned()
        }
        Cause::NotSupported => "the store does not support this".to_owned(),
        Cause::Other => "the store refused a request".to_owned(),
    };
    let error = Error::data(why);
    match cause {
        Cause::NoBucket | Cause::Missing => error.coded(ErrorCode::NotFound),
        _ => error,
    }
}

/// Returns whether a store has said that it did not do what a request asked for. An error of the network or of the server says
/// nothing, and a condition that is not met may be so because of an earlier request of one's own. Only the status counts: the
/// texts hold names.
pub(super) fn is_refused(error: &StoreError) -> bool {
    match error {
        StoreError::PermissionDenied { .. }
        | StoreError::Unauthenticated { .. }
        | StoreError::NotFound { .. }
        | StoreError::NotSupported { .. }
        | StoreError::NotImplemented { .. } => true,
        StoreError::AlreadyExists { .. } | StoreError::Precondition { .. } => false,
        _ => {
            let text = text_of(error);
            let status =
                text.split("Server returned non-2xx status code: ").nth(1).and_then(|rest| rest.get(..3));
            // Not those that ask to try again.
            status.is_some_and(|status| {
                status.starts_with('4') && !["408", "409", "412", "425", "429"].contains(&status)
            })
        }
    }
}

/// Returns whether there are no credentials.
pub(super) fn is_without_credentials(error: &StoreError) -> bool {
    Cause::of(error) == Cause::NoCredentials
}

/// Returns whether the credentials may not do it.
pub(super) fn is_denied(error: &StoreError) -> bool {
    Cause::of(error) == Cause::Denied
}

/// Returns whether an object is not there. A missing bucket is another error.
pub(super) fn is_missing(error: &StoreError) -> bool {
    Cause::of(error) == Cause::Missing
}
