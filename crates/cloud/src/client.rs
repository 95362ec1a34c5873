//! Settings of the connections to a store.

use std::fs;
use std::time::Duration;

use object_store::{BackoffConfig, Certificate, ClientOptions, RetryConfig};

use crate::options::CloudOptions;

/// A connection that was idle for so long is closed; stores close theirs a little later.
const IDLE: Duration = Duration::from_secs(15);

/// Settings of connections. The error is a sentence.
pub(crate) fn client_options(options: &CloudOptions) -> Result<ClientOptions, String> {
    let mut client = ClientOptions::new()
        .with_connect_timeout(options.connect_limit)
        .with_timeout(options.request_limit)
        .with_pool_idle_timeout(IDLE);
    client = match &options.proxy {
        Some(proxy) => client.with_proxy_url(proxy),
        // Without a proxy the client takes that of the environment. One that no host uses is none.
        None => client.with_proxy_url("http://127.0.0.1:9").with_proxy_excludes("*,0.0.0.0/0,::/0"),
    };
    let Some(path) = &options.authorities else { return Ok(client) };
    let unusable = |reason: &dyn std::fmt::Display| {
        format!("the file of certificates {} cannot be used: {reason}", path.display())
    };
    let pem = fs::read(path).map_err(|error| unusable(&error))?;
    let certificates = Certificate::from_pem_bundle(&pem).map_err(|_| unusable(&"it is not PEM"))?;
    if certificates.is_empty() {
        return Err(unusable(&"it has no certificate"));
    }
    Ok(certificates.into_iter().fold(client, ClientOptions::with_root_certificate))
}

/// No retries: the layers above have them.
pub(crate) fn no_retries() -> RetryConfig {
    RetryConfig { backoff: BackoffConfig::default(), max_retries: 0, retry_timeout: Duration::ZERO }
}

/// The address of a server if it may be one, and whether it is without TLS. The error is a sentence
/// without the address, which may have a password in it.
pub(crate) fn is_plain(endpoint: &str) -> Result<bool, String> {
    let (is_plain, host) = match endpoint.split_once("://") {
        Some(("http", host)) => (true, host),
        Some(("https", host)) => (false, host),
        _ => return Err("an endpoint begins with http:// or https://".to_owned()),
    };
    if host.is_empty()
        || host.starts_with('/')
        || host.contains(['@', '?', '#'])
        || host.contains(char::is_whitespace)
    {
        return Err("an endpoint is http(s)://host:port, without credentials and without ?".to_owned());
    }
    Ok(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_addresses_of_servers() {
        assert_eq!(is_plain("http://127.0.0.1:9000"), Ok(true));
        assert_eq!(is_plain("https://s3.example.org/path"), Ok(false));
        for wrong in ["127.0.0.1:9000", "s3://a", "http://", "https://key:hush@host", "http://host?hush"] {
            let refused = is_plain(wrong).unwrap_err();
            assert!(!refused.contains("hush"), "{refused}");
        }
    }

    #[test]
    fn authorities_are_certificates() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("authorities.pem");
        let options = CloudOptions { authorities: Some(path.clone()), ..CloudOptions::default() };
        assert!(client_options(&options).unwrap_err().contains("authorities.pem"));
        fs::write(&path, "no certificate").unwrap();
        assert!(client_options(&options).unwrap_err().contains("it has no certificate"));
    }
}
