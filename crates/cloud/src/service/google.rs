//! Google Cloud Storage.

use std::fs;
use std::sync::Arc;

use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{ClientConfigKey, StaticCredentialProvider};
use snowmelt_io::ObjectErrorKind;

use super::{Built, invalid};
use crate::address::Address;
use crate::client::{client_options, is_plain, no_retries};
use crate::fault::Place;
use crate::identity::{Identity, Noted};
use crate::options::{CloudOptions, Credentials};
use crate::secret::Secret;
use crate::watch::WatchedConnector;

pub(super) fn build(address: &Address, options: &CloudOptions) -> Result<Built, ObjectErrorKind> {
    if options.encryption.is_some() {
        let reason =
            "encryption is a property of the bucket in Google Cloud Storage, and no option of requests";
        return Err(ObjectErrorKind::Unsupported(reason.to_owned()));
    }
    let (builder, endpoint) = builder(address, options).map_err(ObjectErrorKind::Invalid)?;
    let secrets = options.secrets();
    let (builder, identity) = match &options.credentials {
        Credentials::Anonymous => {
            // puts ask for a token all the same; an empty one is not sent
            let token = StaticCredentialProvider::new(GcpCredential { bearer: String::new() });
            let builder = builder.with_skip_signature(true).with_credentials(Arc::new(token));
            (builder, Identity::anonymous())
        }
        Credentials::Key { .. } => {
            let reason = "Google Cloud Storage takes no such key: give the key file of a service account";
            return Err(ObjectErrorKind::Invalid(reason.to_owned()));
        }
        Credentials::File { path, .. } => {
            let text = path.display().to_string();
            fs::File::open(path).map_err(|error| {
                ObjectErrorKind::Invalid(format!("the key file {text} cannot be read: {error}"))
            })?;
            (builder.with_service_account_path(&text), Identity::new(text, None, secrets))
        }
        Credentials::Ambient => (builder, Identity::new("the settings or this machine", None, secrets)),
    };
    let identity = Arc::new(identity);
    // the builder's own text may repeat a part of the file
    let unusable = |error: &object_store::Error| match &options.credentials {
        Credentials::File { path, .. } => ObjectErrorKind::Invalid(format!(
            "the file {} is not the key of a service account",
            path.display()
        )),
        _ => invalid(&identity, error),
    };
    // Keys of signed addresses, which are not asked for, are looked for where none are given.
    let first = builder.clone().build().map_err(|error| unusable(&error))?;
    let noted = Noted::provider(first.credentials(), &identity, |credential| {
        (None, vec![Secret::from(&*credential.bearer)])
    });
    let store = builder.with_credentials(noted).build().map_err(|error| unusable(&error))?;
    let place = Place { service: address.service, bucket: address.bucket.clone(), endpoint };
    Ok(Built { store: Arc::new(store), place, identity })
}

/// All settings but the credentials of options, and the server's address. The error is a sentence.
fn builder(
    address: &Address,
    options: &CloudOptions,
) -> Result<(GoogleCloudStorageBuilder, Option<String>), String> {
    let mut builder = GoogleCloudStorageBuilder::new().with_client_options(client_options(options)?);
    let is_ambient = matches!(options.credentials, Credentials::Ambient);
    for (name, value) in options.settings.iter().filter(|(name, _)| name.starts_with("GOOGLE_")) {
        let of_credentials = |key: &GoogleConfigKey| {
            use GoogleConfigKey::{ApplicationCredentials, ServiceAccount, ServiceAccountKey};
            matches!(key, ServiceAccount | ServiceAccountKey | ApplicationCredentials)
        };
        let key: Option<GoogleConfigKey> = name.to_ascii_lowercase().parse().ok();
        if let Some(key) = key.filter(|key| is_ambient || !of_credentials(key)) {
            builder = builder.with_config(key, value.reveal());
        }
    }
    let endpoint = options.endpoint.clone().or_else(|| builder.get_config_value(&GoogleConfigKey::BaseUrl));
    let is_plain = endpoint.as_deref().map(is_plain).transpose()?.unwrap_or(false);
    if let Some(endpoint) = &endpoint {
        builder = builder.with_base_url(endpoint);
    }
    builder = builder
        .with_bucket_name(&address.bucket)
        .with_config(GoogleConfigKey::Client(ClientConfigKey::AllowHttp), is_plain.to_string())
        .with_retry(no_retries())
        .with_http_connector(WatchedConnector);
    Ok((builder, endpoint))
}
