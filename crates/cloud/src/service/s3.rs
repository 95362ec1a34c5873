//! S3, and servers that speak it.

use std::path::Path;
use std::sync::Arc;

use object_store::StaticCredentialProvider;
use object_store::aws::{
    AmazonS3Builder, AmazonS3ConfigKey, AwsCredential, AwsCredentialProvider, S3ConditionalPut,
};
use snowmelt_io::ObjectErrorKind;

use super::{Built, invalid};
use crate::address::Address;
use crate::client::{client_options, is_plain, no_retries};
use crate::fault::Place;
use crate::identity::{Identity, Noted};
use crate::options::{Addressing, CloudOptions, Credentials, Encryption};
use crate::profile::{self, ProfileKey};
use crate::secret::{KeyId, Secret};
use crate::watch::WatchedConnector;

/// Where credentials come from.
enum Found {
    Key {
        key: ProfileKey,
        source: String,
    },
    /// The chain of the settings and the machine.
    Chain,
    Anonymous,
}

pub(super) fn build(address: &Address, options: &CloudOptions) -> Result<Built, ObjectErrorKind> {
    let is_directory = address.bucket.strip_suffix("-x-s3").is_some_and(|zone| zone.ends_with('-'));
    if is_directory || options.setting("AWS_S3_EXPRESS") == Some("true") {
        let reason = "directory buckets list their keys in no order: take a bucket of general purpose";
        return Err(ObjectErrorKind::Unsupported(reason.to_owned()));
    }
    let (builder, endpoint) = builder(address, options).map_err(ObjectErrorKind::Invalid)?;
    let found = found(options).map_err(ObjectErrorKind::Invalid)?;
    let mut secrets = options.secrets();
    let (builder, identity) = match found {
        Found::Anonymous => (builder.with_skip_signature(true), Identity::anonymous()),
        Found::Key { key, source } => {
            secrets.extend([Some(key.secret.clone()), key.session.clone()].into_iter().flatten());
            let identity = Identity::new(source, Some(key.id.clone()), secrets);
            (builder.with_credentials(provider(&key)), identity)
        }
        Found::Chain => {
            let key = options.setting("AWS_ACCESS_KEY_ID").map(KeyId::from);
            let source = if key.is_some() { "the settings" } else { "this machine" };
            (builder, Identity::new(source, key, secrets))
        }
    };
    let identity = Arc::new(identity);
    let first = builder.clone().build().map_err(|error| invalid(&identity, &error))?;
    let noted = Noted::provider(first.credentials(), &identity, |credential| {
        let secrets = [Some(&credential.secret_key), credential.token.as_ref()];
        let secrets = secrets.into_iter().flatten().map(|secret| Secret::from(&**secret));
        (Some((&*credential.key_id).into()), secrets.collect())
    });
    let store = builder.with_credentials(noted).build().map_err(|error| invalid(&identity, &error))?;
    let place = Place { service: address.service, bucket: address.bucket.clone(), endpoint };
    Ok(Built { store: Arc::new(store), place, identity })
}

/// All settings but the credentials of options, and the server's address. The error is a sentence.
fn builder(address: &Address, options: &CloudOptions) -> Result<(AmazonS3Builder, Option<String>), String> {
    let mut builder = AmazonS3Builder::new().with_client_options(client_options(options)?);
    for (name, value) in options.settings.iter().filter(|(name, _)| name.starts_with("AWS_")) {
        if let Ok(key) = name.to_ascii_lowercase().parse() {
            builder = builder.with_config(key, value.reveal());
        }
    }
    if let Some(region) = &options.region {
        builder = builder.with_region(region);
    }
    if let Some(encryption) = &options.encryption {
        let (kind, key) = match encryption {
            Encryption::OfStore => ("AES256", None),
            Encryption::OfKeyService { key } => ("aws:kms", key.as_ref()),
        };
        builder = builder.with_config(named("aws_server_side_encryption"), kind);
        if let Some(key) = key {
            builder = builder.with_config(named("aws_sse_kms_key_id"), key);
        }
    }
    let of_settings = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint]
        .into_iter()
        .find_map(|key| builder.get_config_value(&key));
    let endpoint = options.endpoint.clone().or(of_settings);
    let is_plain = endpoint.as_deref().map(is_plain).transpose()?.unwrap_or(false);
    let (is_host, endpoint_of_bucket) = addressed(address, options, endpoint.as_deref());
    if let Some(endpoint) = endpoint_of_bucket {
        builder = builder.with_config(AmazonS3ConfigKey::S3Endpoint, endpoint);
    }
    let builder = builder
        .with_bucket_name(&address.bucket)
        .with_virtual_hosted_style_request(is_host)
        .with_allow_http(is_plain)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_retry(no_retries())
        .with_http_connector(WatchedConnector);
    Ok((builder, endpoint))
}

/// A setting whose type has no public name.
fn named(name: &str) -> AmazonS3ConfigKey {
    name.parse().expect("object_store knows the setting")
}

/// Whether the bucket's name stands in the host, and the endpoint with it.
fn addressed(address: &Address, options: &CloudOptions, endpoint: Option<&str>) -> (bool, Option<String>) {
    let bucket = &address.bucket;
    // a certificate of *.s3.region.amazonaws.com holds for one more part
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits = bucket.bytes().all(is_part) && !bucket.starts_with('-') && !bucket.ends_with('-');
    let is_host_by_setting = options.setting("AWS_VIRTUAL_HOSTED_STYLE_REQUEST") == Some("true");
    match (options.addressing, endpoint) {
        (Addressing::Path, endpoint) => (false, endpoint.map(str::to_owned)),
        (Addressing::Fitting, None) => (fits, None),
        // there the endpoint has the bucket's name already
        (Addressing::Fitting, Some(endpoint)) => (is_host_by_setting, Some(endpoint.to_owned())),
        (Addressing::Host, None) => (true, None),
        (Addressing::Host, Some(endpoint)) => {
            let (scheme, host) = endpoint.split_once("://").expect("an endpoint has a scheme");
            (true, Some(format!("{scheme}://{bucket}.{}", host.trim_end_matches('/'))))
        }
    }
}

/// The credentials that options name. The error is a sentence.
fn found(options: &CloudOptions) -> Result<Found, String> {
    let of_file = |path: &Path, name: Option<&str>| {
        let profile = name.unwrap_or("default");
        let key = profile::read(path, profile)?;
        let source = format!("profile {profile} of {}", path.display());
        Ok::<_, String>(key.map(|key| Found::Key { key, source }))
    };
    let missing = |path: &Path, name: &str| format!("{} has no profile {name}", path.display());
    match &options.credentials {
        Credentials::Anonymous => Ok(Found::Anonymous),
        Credentials::Key { id, secret, session } => {
            let key = ProfileKey { id: id.clone(), secret: secret.clone(), session: session.clone() };
            Ok(Found::Key { key, source: "the options".to_owned() })
        }
        Credentials::File { path, profile } => of_file(path, profile.as_deref())?
            .ok_or_else(|| missing(path, profile.as_deref().unwrap_or("default"))),
        Credentials::Ambient => {
            if options.setting("AWS_SKIP_SIGNATURE") == Some("true") {
                return Ok(Found::Anonymous);
            }
            let comes_before = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_WEB_IDENTITY_TOKEN_FILE"]
                .iter()
                .any(|name| options.setting(name).is_some());
            let file = options.setting("AWS_SHARED_CREDENTIALS_FILE").filter(|_| !comes_before);
            let profile = options.setting("AWS_PROFILE");
            match file.map(Path::new) {
                None => Ok(Found::Chain),
                // it stands for the one in the home directory, which need not be there
                Some(path) if !path.exists() && profile.is_none() => Ok(Found::Chain),
                Some(path) => match (of_file(path, profile)?, profile) {
                    (Some(found), _) => Ok(found),
                    (None, None) => Ok(Found::Chain),
                    (None, Some(profile)) => Err(missing(path, profile)),
                },
            }
        }
    }
}

fn provider(key: &ProfileKey) -> AwsCredentialProvider {
    Arc::new(StaticCredentialProvider::new(AwsCredential {
        key_id: key.id.reveal().to_owned(),
        secret_key: key.secret.reveal().to_owned(),
        token: key.session.as_ref().map(Secret::reveal).map(str::to_owned),
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::address::parse;

    fn setting(name: &str, value: &str) -> (String, Secret) {
        (name.to_owned(), value.into())
    }

    #[test]
    fn buckets_stand_in_hosts_or_paths() {
        let is = |bucket: &str, addressing, endpoint, expected: (bool, Option<&str>)| {
            let address = parse(&format!("s3://{bucket}/a")).unwrap();
            let options = CloudOptions { addressing, ..CloudOptions::default() };
            let found = addressed(&address, &options, endpoint);
            assert_eq!((found.0, found.1.as_deref()), expected, "{bucket} {addressing:?} {endpoint:?}");
        };
        is("data", Addressing::Fitting, None, (true, None));
        is("da.ta", Addressing::Fitting, None, (false, None));
        is("Data", Addressing::Fitting, None, (false, None));
        is("data", Addressing::Path, None, (false, None));
        is("data", Addressing::Fitting, Some("http://h:1"), (false, Some("http://h:1")));
        is("data", Addressing::Host, Some("http://h:1/"), (true, Some("http://data.h:1")));
    }

    #[test]
    fn options_come_before_settings() {
        let options = CloudOptions {
            endpoint: Some("http://127.0.0.1:1".to_owned()),
            region: Some("region-1".to_owned()),
            encryption: Some(Encryption::OfKeyService { key: Some("key-1".to_owned()) }),
            settings: vec![
                setting("AWS_ENDPOINT_URL_S3", "https://127.0.0.1:2"),
                setting("AWS_REGION", "region-2"),
                setting("AWS_BUCKET", "other"),
                setting("AWS_CONDITIONAL_PUT", "disabled"),
            ],
            ..CloudOptions::default()
        };
        let (builder, endpoint) = builder(&parse("s3://data/a").unwrap(), &options).unwrap();
        let value = |key| builder.get_config_value(&key).unwrap();
        assert_eq!(endpoint.as_deref(), Some("http://127.0.0.1:1"));
        assert_eq!(value(AmazonS3ConfigKey::S3Endpoint), "http://127.0.0.1:1");
        assert_eq!(value(AmazonS3ConfigKey::Region), "region-1");
        assert_eq!(value(AmazonS3ConfigKey::Bucket), "data");
        assert_eq!(value(AmazonS3ConfigKey::ConditionalPut), "etag");
        assert_eq!(value(AmazonS3ConfigKey::Client(object_store::ClientConfigKey::AllowHttp)), "true");
        assert_eq!(value(named("aws_server_side_encryption")), "aws:kms");
        assert_eq!(value(named("aws_sse_kms_key_id")), "key-1");
    }

    #[test]
    fn only_a_plain_endpoint_allows_http() {
        let options = CloudOptions {
            settings: vec![setting("AWS_ENDPOINT", "https://h"), setting("AWS_ALLOW_HTTP", "true")],
            ..CloudOptions::default()
        };
        let (builder, _) = builder(&parse("s3://data").unwrap(), &options).unwrap();
        let allow = AmazonS3ConfigKey::Client(object_store::ClientConfigKey::AllowHttp);
        assert_eq!(builder.get_config_value(&allow).unwrap(), "false");
    }

    #[test]
    fn ambient_credentials_have_an_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("credentials");
        let text = "[default]\naws_access_key_id=A1\naws_secret_access_key=s1\n\
            [two]\naws_access_key_id=A2\naws_secret_access_key=s2\n";
        fs::write(&path, text).unwrap();
        let file = || setting("AWS_SHARED_CREDENTIALS_FILE", path.to_str().unwrap());
        let source = |settings: Vec<(String, Secret)>| match found(&CloudOptions {
            settings,
            ..CloudOptions::default()
        }) {
            Ok(Found::Key { key, .. }) => key.id.reveal().to_owned(),
            Ok(Found::Chain) => "chain".to_owned(),
            Ok(Found::Anonymous) => "none".to_owned(),
            Err(error) => error,
        };
        assert_eq!(source(vec![]), "chain");
        assert_eq!(source(vec![file()]), "A1");
        assert_eq!(source(vec![file(), setting("AWS_PROFILE", "two")]), "A2");
        assert!(source(vec![file(), setting("AWS_PROFILE", "three")]).ends_with("has no profile three"));
        assert_eq!(source(vec![file(), setting("AWS_ACCESS_KEY_ID", "A3")]), "chain");
        assert_eq!(source(vec![setting("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/c")]), "chain");
        assert_eq!(source(vec![file(), setting("AWS_SKIP_SIGNATURE", "true")]), "none");
    }
}
