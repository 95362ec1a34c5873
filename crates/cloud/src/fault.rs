//! Refusals of stores as kinds of errors.
//!
//! | refused with                                     | kind                                        |
//! |--------------------------------------------------|---------------------------------------------|
//! | 404, code of an object or nothing said           | `Missing`; `Changed` for a put on a version |
//! | 404 otherwise; any list or other put             | `Invalid`: the bucket is missing, mostly    |
//! | 304, 409, 412 to a conditional put               | `Changed`                                   |
//! | 416                                              | `Short`                                     |
//! | 429; 503 with a code of overload                 | `TooOften`                                  |
//! | 401, 403, codes about credentials                | `Refused`                                   |
//! | 301, 307, code of a wrong region                 | `Invalid`, with the region                  |
//! | 405, 501, code `NotImplemented`                  | `Unsupported`                               |
//! | 408, 409 to others, 5xx, no answer               | `Unavailable`                               |
//! | other 4xx                                        | `Invalid`                                   |

use std::error::Error as StdError;

use object_store::Error;
use object_store::client::HttpError;
use snowmelt_io::ObjectErrorKind;

use crate::address::Service;
use crate::identity::{Identity, NoCredentials};
use crate::watch::{Refusal, Trouble};

/// The store that a refusal comes from.
pub(crate) struct Place {
    pub(crate) service: Service,
    pub(crate) bucket: String,
    /// Address of the server; `None`: the service itself.
    pub(crate) endpoint: Option<String>,
}

/// A request that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Of so many bytes.
    Get {
        wanted: u64,
    },
    Put(PutKind),
    Delete,
    List,
}

/// The condition of a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PutKind {
    Always,
    IfAbsent,
    IfVersion,
}

impl Place {
    /// The bucket and its server, in words.
    fn words(&self) -> String {
        let at = self.endpoint.as_ref().map(|endpoint| format!(" at {endpoint}"));
        format!("{} {}{}", self.service.bucket_word(), self.bucket, at.unwrap_or_default())
    }
}

/// The kind of a failure: by the trouble of the last HTTP request where there was any.
pub(crate) fn kind(
    refused: Refused,
    error: &Error,
    trouble: Option<Trouble>,
    place: &Place,
    identity: &Identity,
) -> ObjectErrorKind {
    if let Some(none) = cause::<NoCredentials>(error) {
        let reason = &none.reason;
        return match none.is_passing {
            true => ObjectErrorKind::Unavailable(format!("credentials are missing: {reason}")),
            false => ObjectErrorKind::Refused(format!(
                "there are no credentials: {reason}; give a key or a profile, or run where a role is attached"
            )),
        };
    }
    let trouble = trouble.or_else(|| lost(error));
    match trouble {
        Some(Trouble::Refused(refusal)) => of_refusal(refused, &refusal, place, identity),
        Some(Trouble::Lost { reason, .. }) => {
            ObjectErrorKind::Unavailable(format!("{}: {}", place.words(), identity.shown(&reason)))
        }
        None => of_error(refused, error, identity),
    }
}

/// The trouble of an answer whose body broke off.
pub(crate) fn lost(error: &Error) -> Option<Trouble> {
    cause::<HttpError>(error).map(Trouble::lost)
}

/// The first cause of a type.
fn cause<T: StdError + 'static>(error: &Error) -> Option<&T> {
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

fn of_refusal(refused: Refused, refusal: &Refusal, place: &Place, identity: &Identity) -> ObjectErrorKind {
    let is_conditional = matches!(refused, Refused::Put(PutKind::IfAbsent | PutKind::IfVersion));
    let said = || said(refusal, identity);
    match (refusal.status, &*refusal.code) {
        (_, "NotImplemented") | (405 | 501, _) => {
            ObjectErrorKind::Unsupported(format!("the store cannot do it: {}", said()))
        }
        (_, code) if is_of_region(code) => wrong_region(refusal, place, identity),
        (301 | 307, _) => wrong_region(refusal, place, identity),
        (401 | 403, _) => ObjectErrorKind::Refused(refused_access(refusal, place, identity)),
        (_, code) if is_of_credentials(code) => {
            ObjectErrorKind::Refused(refused_access(refusal, place, identity))
        }
        (_, "NoSuchBucket" | "ContainerNotFound" | "ContainerBeingDeleted") => no_bucket(place),
        (404, _) if is_of_object(refusal) => match refused {
            Refused::Get { .. } | Refused::Delete => ObjectErrorKind::Missing,
            Refused::Put(PutKind::IfVersion) => ObjectErrorKind::Changed,
            Refused::Put(_) | Refused::List => no_bucket(place),
        },
        // in words it is Google's
        (404, code) if code.is_empty() || refusal.message.contains(GOOGLES_NO_BUCKET) => no_bucket(place),
        (304 | 409 | 412, _) if is_conditional => ObjectErrorKind::Changed,
        (416, _) => match refused {
            Refused::Get { wanted } => ObjectErrorKind::Short { got: 0, wanted },
            _ => ObjectErrorKind::Invalid(said()),
        },
        (429, _) => ObjectErrorKind::TooOften,
        (503, code) if is_of_overload(code) => ObjectErrorKind::TooOften,
        (408 | 409 | 500.., _) | (_, "RequestTimeout") => {
            ObjectErrorKind::Unavailable(format!("{} fails: {}", place.words(), said()))
        }
        _ => ObjectErrorKind::Invalid(format!("the store does not take the request: {}", said())),
    }
}

const GOOGLES_NO_BUCKET: &str = "bucket does not exist";

/// Whether a status 404 is about the object. Others are about the bucket, the account or the key;
/// one without a code is of another server, unless it has no words either.
fn is_of_object(refusal: &Refusal) -> bool {
    let is_code = matches!(
        &*refusal.code,
        "NoSuchKey" | "NoSuchVersion" | "BlobNotFound" | "ResourceNotFound" | "PathNotFound"
    );
    let is_mute = refusal.code.is_empty() && refusal.message.is_empty();
    (is_code || is_mute) && !refusal.message.contains(GOOGLES_NO_BUCKET)
}

/// Codes of stores that want fewer requests.
fn is_of_overload(code: &str) -> bool {
    matches!(
        code,
        "SlowDown"
            | "SlowDownRead"
            | "SlowDownWrite"
            | "RequestLimitExceeded"
            | "Throttling"
            | "ThrottlingException"
            | "TooManyRequests"
            | "ServerBusy"
    )
}

/// Codes about credentials, which come with other statuses, too.
fn is_of_credentials(code: &str) -> bool {
    matches!(
        code,
        "AccessDenied"
            | "InvalidAccessKeyId"
            | "XAdminUserNotFound" // versitygw, with status 404
            | "SignatureDoesNotMatch"
            | "ExpiredToken"
            | "InvalidToken"
            | "TokenRefreshRequired"
            | "RequestTimeTooSkewed"
    )
}

fn is_of_region(code: &str) -> bool {
    matches!(
        code,
        "PermanentRedirect" | "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException"
    )
}

/// Status, code and message of a refusal.
fn said(refusal: &Refusal, identity: &Identity) -> String {
    let mut said = format!("status {}", refusal.status);
    for part in [&refusal.code, &refusal.message].into_iter().filter(|part| !part.is_empty()) {
        said.push_str(", ");
        said.push_str(&identity.shown(part));
    }
    said
}

fn no_bucket(place: &Place) -> ObjectErrorKind {
    ObjectErrorKind::Invalid(format!(
        "there is no {}: create it, or correct the name, the region or the endpoint",
        place.words()
    ))
}

fn wrong_region(refusal: &Refusal, place: &Place, identity: &Identity) -> ObjectErrorKind {
    ObjectErrorKind::Invalid(match &refusal.region {
        Some(region) => format!(
            "{} is in region {}: the region of the settings is another one",
            place.words(),
            identity.shown(region)
        ),
        None => format!("{} is in another region: {}", place.words(), said(refusal, identity)),
    })
}

/// Whose access is refused, and the remedy.
fn refused_access(refusal: &Refusal, place: &Place, identity: &Identity) -> String {
    let (subject, said) = (identity.subject(), said(refusal, identity));
    let (told, remedy) = match &*refusal.code {
        _ if identity.is_anonymous() => ("is not allowed", "give credentials"),
        "InvalidAccessKeyId" | "XAdminUserNotFound" => {
            ("is not known to the store", "take another key, or correct the endpoint")
        }
        "SignatureDoesNotMatch" => ("does not fit its secret", "give the id and the secret of the same key"),
        "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired" => {
            ("has a session that is over", "get a new token")
        }
        "RequestTimeTooSkewed" => {
            ("signed with a time that is not the store's", "set the clock of this machine")
        }
        "AuthenticationFailed" => ("is not accepted", "correct the account, its key and the clock"),
        _ => ("is not allowed", "allow it to get, put, delete and list there"),
    };
    format!("{subject} {told} in {} ({said}); {remedy}", place.words())
}

/// The kind of an error that no HTTP request had.
fn of_error(refused: Refused, error: &Error, identity: &Identity) -> ObjectErrorKind {
    let said = || identity.shown(&error.to_string());
    match error {
        Error::NotFound { .. } => match refused {
            Refused::Put(PutKind::IfVersion) => ObjectErrorKind::Changed,
            _ => ObjectErrorKind::Missing,
        },
        Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotModified { .. } => {
            ObjectErrorKind::Changed
        }
        Error::NotImplemented { .. } | Error::NotSupported { .. } => ObjectErrorKind::Unsupported(said()),
        Error::InvalidPath { .. } | Error::UnknownConfigurationKey { .. } => ObjectErrorKind::Invalid(said()),
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            ObjectErrorKind::Refused(format!("{} is not allowed", identity.subject()))
        }
        // the server answered, but not as the protocol has it: no range, no version
        _ => ObjectErrorKind::Unsupported(format!("the store's answer cannot be used: {}", said())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: Refused = Refused::Get { wanted: 8 };
    const PUT: Refused = Refused::Put(PutKind::Always);
    const PUT_IF: Refused = Refused::Put(PutKind::IfVersion);
    const CREATE: Refused = Refused::Put(PutKind::IfAbsent);

    fn told(refused: Refused, status: u16, code: &str, message: &str) -> ObjectErrorKind {
        let place = Place {
            service: Service::S3,
            bucket: "data".to_owned(),
            endpoint: Some("http://127.0.0.1:9".to_owned()),
        };
        let identity = Identity::new("the settings", Some("AKIAEXAMPLE".into()), vec!["hush".into()]);
        let refusal = Refusal { status, code: code.to_owned(), message: message.to_owned(), region: None };
        let error = Error::Generic { store: "S3", source: "hush".into() };
        kind(refused, &error, Some(Trouble::Refused(refusal)), &place, &identity)
    }

    #[test]
    fn statuses_have_kinds() {
        use ObjectErrorKind::{Changed, Invalid, Missing, Short, TooOften, Unavailable, Unsupported};
        assert_eq!(told(GET, 404, "NoSuchKey", ""), Missing);
        assert_eq!(told(GET, 404, "", ""), Missing);
        assert!(matches!(told(GET, 404, "", "not a store's"), Invalid(_)));
        assert!(matches!(told(GET, 404, "AccountNotFound", ""), Invalid(_)));
        assert!(matches!(told(PUT_IF, 404, "AccountNotFound", ""), Invalid(_)));
        assert_eq!(told(PUT_IF, 404, "NoSuchKey", ""), Changed);
        assert!(matches!(told(CREATE, 404, "", ""), Invalid(_)));
        assert_eq!(told(PUT_IF, 412, "PreconditionFailed", ""), Changed);
        assert_eq!(told(CREATE, 412, "PreconditionFailed", ""), Changed);
        assert_eq!(told(CREATE, 409, "BlobAlreadyExists", ""), Changed);
        assert_eq!(told(PUT_IF, 409, "ConditionalRequestConflict", ""), Changed);
        assert_eq!(told(PUT_IF, 304, "", ""), Changed);
        assert_eq!(told(GET, 416, "InvalidRange", ""), Short { got: 0, wanted: 8 });
        assert_eq!(told(GET, 429, "", ""), TooOften);
        assert_eq!(told(PUT, 503, "SlowDown", ""), TooOften);
        assert!(matches!(told(PUT, 503, "ServiceUnavailable", ""), Unavailable(_)));
        assert!(matches!(told(PUT, 409, "OperationAborted", ""), Unavailable(_)));
        assert!(matches!(told(PUT, 500, "InternalError", ""), Unavailable(_)));
        assert!(matches!(told(PUT, 400, "RequestTimeout", ""), Unavailable(_)));
        assert!(matches!(told(PUT_IF, 501, "NotImplemented", ""), Unsupported(_)));
        assert!(matches!(told(PUT_IF, 400, "NotImplemented", ""), Unsupported(_)));
        assert!(matches!(told(PUT, 405, "MethodNotAllowed", ""), Unsupported(_)));
        assert!(matches!(told(PUT, 400, "EntityTooLarge", ""), Invalid(_)));
        assert!(matches!(told(PUT, 412, "LeaseIdMissing", ""), Invalid(_)));
        assert!(matches!(told(PUT, 301, "PermanentRedirect", ""), Invalid(_)));
    }

    #[test]
    fn missing_buckets_are_told_from_missing_objects() {
        let no_bucket = "there is no bucket data at http://127.0.0.1:9: create it, or correct the name, \
             the region or the endpoint";
        for refused in [GET, PUT, PUT_IF, CREATE, Refused::Delete, Refused::List] {
            assert_eq!(told(refused, 404, "NoSuchBucket", "").to_string(), no_bucket);
        }
        assert_eq!(told(Refused::List, 404, "", "").to_string(), no_bucket);
        let google = told(GET, 404, "NoSuchKey", "The specified bucket does not exist.");
        assert_eq!(google.to_string(), no_bucket);
    }

    #[test]
    fn refused_access_names_the_key_and_a_remedy() {
        let text = |status, code: &str| told(GET, status, code, "says hush").to_string();
        assert_eq!(
            text(403, "SignatureDoesNotMatch"),
            "access is refused: key AKIA… of the settings does not fit its secret in bucket data at \
             http://127.0.0.1:9 (status 403, SignatureDoesNotMatch, says …); give the id and the secret of \
             the same key"
        );
        assert!(text(401, "").contains("allow it to get, put, delete and list"));
        assert!(text(400, "ExpiredToken").contains("get a new token"));
        assert!(text(403, "InvalidAccessKeyId").contains("is not known to the store"));
        assert!(text(404, "XAdminUserNotFound").contains("is not known to the store"));
        assert!(text(403, "RequestTimeTooSkewed").contains("set the clock"));
    }

    #[test]
    fn errors_without_a_request_have_kinds() {
        let identity = Identity::anonymous();
        let place = Place { service: Service::Azure, bucket: "data".to_owned(), endpoint: None };
        let missing = Error::NotFound { path: "a".to_owned(), source: "x".into() };
        assert_eq!(kind(Refused::Delete, &missing, None, &place, &identity), ObjectErrorKind::Missing);
        assert_eq!(kind(PUT_IF, &missing, None, &place, &identity), ObjectErrorKind::Changed);
        let lost = Trouble::Lost { is_late: true, reason: "no answer in time".to_owned() };
        assert_eq!(
            kind(GET, &missing, Some(lost), &place, &identity).to_string(),
            "container data: no answer in time"
        );
    }
}
