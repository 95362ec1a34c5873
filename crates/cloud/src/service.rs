//! The stores of the three services, from an address and options.
//!
//! Each is built twice: first with the credentials of its chain, then with a provider around them,
//! which notes whose they are.

mod azure;
mod google;
mod s3;

use std::sync::Arc;

use object_store::list::PaginatedListStore;
use object_store::{ObjectStore, UpdateVersion};
use snowmelt_io::{ObjectErrorKind, Version};

use crate::address::{Address, Service};
use crate::fault::Place;
use crate::identity::Identity;
use crate::options::CloudOptions;

/// A store that lists by pages of its own size.
pub(crate) trait Store: ObjectStore + PaginatedListStore {}

impl<T: ObjectStore + PaginatedListStore> Store for T {}

/// A store with what its messages need.
pub(crate) struct Built {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) place: Place,
    pub(crate) identity: Arc<Identity>,
}

/// A store that is not asked yet. The error is [`ObjectErrorKind::Invalid`] or `Unsupported`.
pub(crate) fn build(address: &Address, options: &CloudOptions) -> Result<Built, ObjectErrorKind> {
    match address.service {
        Service::S3 => s3::build(address, options),
        Service::Google => google::build(address, options),
        Service::Azure => azure::build(address, options),
    }
}

/// Names by which a service compares versions: ETags, but for Google, which numbers generations.
pub(crate) fn version(
    service: Service,
    e_tag: Option<String>,
    generation: Option<String>,
) -> Option<Version> {
    let name = match service {
        Service::S3 | Service::Azure => e_tag,
        Service::Google => generation,
    };
    name.map(|name| Version(name.into()))
}

/// The condition of a put; `None`: not the name of a version.
pub(crate) fn condition(service: Service, version: &Version) -> Option<UpdateVersion> {
    let is_name = !version.0.is_empty() && version.0.bytes().all(|byte| byte.is_ascii_graphic());
    let name = is_name.then(|| version.0.to_string())?;
    Some(match service {
        Service::S3 | Service::Azure => UpdateVersion { e_tag: Some(name), version: None },
        Service::Google => UpdateVersion { e_tag: None, version: Some(name) },
    })
}

/// An error of a builder: its text names settings, or repeats a value that is no secret.
fn invalid(identity: &Identity, error: &object_store::Error) -> ObjectErrorKind {
    ObjectErrorKind::Invalid(identity.shown(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::parse;

    #[test]
    fn versions_are_etags_or_generations() {
        let both = |service| version(service, Some("\"e\"".to_owned()), Some("7".to_owned())).unwrap().0;
        assert_eq!(&*both(Service::S3), "\"e\"");
        assert_eq!(&*both(Service::Google), "7");
        let named = condition(Service::Google, &Version("7".into())).unwrap();
        assert_eq!((named.e_tag, named.version.as_deref()), (None, Some("7")));
        assert!(condition(Service::S3, &Version("a\nb".into())).is_none());
        assert!(condition(Service::S3, &Version("".into())).is_none());
    }

    /// The store's own text, or the kind and sentence of its refusal.
    fn built(address: &str, options: CloudOptions) -> String {
        match build(&parse(address).unwrap(), &options) {
            Ok(built) => format!("{} for {}", built.store, built.identity.subject()),
            Err(kind) => kind.to_string(),
        }
    }

    #[test]
    fn services_take_their_own_credentials() {
        use crate::options::Credentials;
        let with = |credentials| CloudOptions { credentials, ..CloudOptions::default() };
        let key = || {
            let (id, secret) = ("accountname".into(), "aGVsbG8=".into());
            with(Credentials::Key { id, secret, session: None })
        };
        assert_eq!(built("s3://data", key()), "AmazonS3(data) for key acco… of the options");
        let azure = built("az://data/a", key());
        assert!(azure.contains("accountname") && azure.ends_with("for key acco… of the options"), "{azure}");
        assert!(built("gs://data", key()).contains("service account"), "{}", built("gs://data", key()));
        let file = || with(Credentials::File { path: "/nowhere/key".into(), profile: None });
        assert!(built("gs://data", file()).contains("/nowhere/key"), "{}", built("gs://data", file()));
        assert!(built("s3://data", file()).contains("/nowhere/key"), "{}", built("s3://data", file()));
        assert!(built("az://data", file()).contains("account"), "{}", built("az://data", file()));
        let anonymous = || with(Credentials::Anonymous);
        assert!(built("gs://data", anonymous()).ends_with("for a request without credentials"));
        assert!(built("az://data", anonymous()).contains("Account"), "{}", built("az://data", anonymous()));
        let named = "abfss://data@account.dfs.core.windows.net/a";
        assert!(built(named, anonymous()).contains("account"), "{}", built(named, anonymous()));
    }

    #[test]
    fn googles_key_file_is_not_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.json");
        std::fs::write(
            &path,
            "{\"private_key\": [\"hush\"], \"client_email\": 1, \"private_key_id\": \"x\"}",
        )
        .unwrap();
        let credentials = crate::options::Credentials::File { path, profile: None };
        let said = built("gs://data", CloudOptions { credentials, ..CloudOptions::default() });
        assert!(said.contains("key.json") && !said.contains("hush"), "{said}");
    }

    #[test]
    fn settings_reach_their_service() {
        let settings = |pairs: &[(&str, &'static str)]| CloudOptions {
            settings: pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect(),
            ..CloudOptions::default()
        };
        let aws = [("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "hush"), ("PAGER", "x")];
        assert_eq!(built("s3://data", settings(&aws)), "AmazonS3(data) for key AKIA… of the settings");
        let azure =
            [("AZURE_STORAGE_ACCOUNT_NAME", "accountname"), ("AZURE_STORAGE_ACCOUNT_KEY", "aGVsbG8=")];
        assert!(built("az://data", settings(&azure)).contains("accountname"));
        let half = built("s3://data", settings(&aws[..1]));
        assert!(half.contains("SecretAccessKey"), "{half}");
        let wrong = built("az://data", settings(&[azure[0], ("AZURE_STORAGE_ACCOUNT_KEY", "hush!")]));
        assert!(!wrong.contains("hush"), "{wrong}");
        let express = built("s3://data--usw2-az1--x-s3", settings(&aws));
        assert!(express.contains("order"), "{express}");
    }
}
