//! Azure Blob Storage.

use std::sync::Arc;

use object_store::StaticCredentialProvider;
use object_store::azure::{AzureAccessKey, AzureConfigKey, AzureCredential, MicrosoftAzureBuilder};
use snowmelt_io::ObjectErrorKind;

use super::{Built, invalid};
use crate::address::Address;
use crate::client::{client_options, is_plain, no_retries};
use crate::fault::Place;
use crate::identity::{Identity, Noted};
use crate::options::{CloudOptions, Credentials};
use crate::secret::{KeyId, Secret};
use crate::watch::WatchedConnector;

pub(super) fn build(address: &Address, options: &CloudOptions) -> Result<Built, ObjectErrorKind> {
    if options.encryption.is_some() {
        let reason = "encryption is a property of the account in Azure, and no option of requests";
        return Err(ObjectErrorKind::Unsupported(reason.to_owned()));
    }
    let (builder, endpoint) = builder(address, options).map_err(ObjectErrorKind::Invalid)?;
    let secrets = options.secrets();
    let (builder, identity) = match &options.credentials {
        Credentials::Anonymous => (builder.with_skip_signature(true), Identity::anonymous()),
        Credentials::Key { id, secret, .. } => {
            let key = AzureAccessKey::try_new(secret.reveal()).map_err(|_| {
                ObjectErrorKind::Invalid("the account's access key is not in base 64".to_owned())
            })?;
            let key = StaticCredentialProvider::new(AzureCredential::AccessKey(key));
            let builder = builder.with_account(id.reveal()).with_credentials(Arc::new(key));
            (builder, Identity::new("the options", Some(id.clone()), secrets))
        }
        Credentials::File { .. } => {
            let reason = "Azure has no file of credentials: give the account and its access key";
            return Err(ObjectErrorKind::Invalid(reason.to_owned()));
        }
        Credentials::Ambient => {
            let account = builder.get_config_value(&AzureConfigKey::AccountName).map(KeyId::from);
            (builder, Identity::new("the settings or this machine", account, secrets))
        }
    };
    let identity = Arc::new(identity);
    let first = builder.clone().build().map_err(|error| invalid(&identity, &error))?;
    let noted = Noted::provider(first.credentials(), &identity, |credential| {
        let secrets = match credential {
            AzureCredential::AccessKey(_) => Vec::new(), // it is one of the options or settings
            AzureCredential::BearerToken(token) => vec![Secret::from(&**token)],
            AzureCredential::SASToken(parts) => {
                let signatures = parts.iter().filter(|(name, _)| name == "sig");
                signatures.map(|(_, value)| Secret::from(&**value)).collect()
            }
        };
        (None, secrets)
    });
    let store = builder.with_credentials(noted).build().map_err(|error| invalid(&identity, &error))?;
    let place = Place { service: address.service, bucket: address.bucket.clone(), endpoint };
    Ok(Built { store: Arc::new(store), place, identity })
}

/// All settings but the credentials of options, and the server's address. The error is a sentence.
fn builder(
    address: &Address,
    options: &CloudOptions,
) -> Result<(MicrosoftAzureBuilder, Option<String>), String> {
    let mut builder = MicrosoftAzureBuilder::new().with_client_options(client_options(options)?);
    for (name, value) in options.settings.iter().filter(|(name, _)| name.starts_with("AZURE_")) {
        if let Ok(key) = name.to_ascii_lowercase().parse() {
            builder = builder.with_config(key, value.reveal());
        }
    }
    let endpoint = options.endpoint.clone().or_else(|| builder.get_config_value(&AzureConfigKey::Endpoint));
    let is_plain = endpoint.as_deref().map(is_plain).transpose()?.unwrap_or(false);
    if let Some(endpoint) = &endpoint {
        builder = builder.with_endpoint(endpoint.clone());
    }
    builder = match &address.account {
        Some((_, host)) => builder.with_url(format!("abfss://{}@{host}/", address.bucket)),
        None => builder.with_container_name(&address.bucket),
    };
    let builder =
        builder.with_allow_http(is_plain).with_retry(no_retries()).with_http_connector(WatchedConnector);
    Ok((builder, endpoint))
}
