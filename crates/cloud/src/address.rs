//! Addresses of stores: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`,
//! `abfss://container@account.host/prefix`.
//!
//! A name is cut out of the text as it stands, since names of buckets may have characters that
//! hosts may not. Messages have a refused address without the parts where a secret may stand.

use std::sync::Arc;

use object_store::path::Path;

/// A part of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) service: Service,
    /// Bucket, or container.
    pub(crate) bucket: String,
    /// The account of Azure, where the address has it, with its host.
    pub(crate) account: Option<(String, String)>,
    /// Beginning of all keys, without `/` at its ends; may be empty.
    pub(crate) prefix: String,
    /// The address in one form.
    pub(crate) name: Arc<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    S3,
    Google,
    Azure,
}

const FORMS: &str = "addresses are s3://bucket/prefix, gs://bucket/prefix and az://container/prefix";

impl Service {
    /// The word for a bucket.
    pub(crate) fn bucket_word(self) -> &'static str {
        match self {
            Service::S3 | Service::Google => "bucket",
            Service::Azure => "container",
        }
    }
}

/// An address for messages: up to `?` and `#`, and without all that stands beside a `:`, which may
/// be a password.
pub(crate) fn shown(address: &str) -> String {
    let address = address.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    if !rest.contains(':') { address.to_owned() } else { format!("{scheme}://…") }
}

/// Reads an address. The error is a sentence.
pub(crate) fn parse(address: &str) -> Result<Address, String> {
    let Some((scheme, rest)) = address.split_once("://") else { return Err(FORMS.to_owned()) };
    let service = match scheme {
        "s3" | "s3a" => Service::S3,
        "gs" => Service::Google,
        "az" | "azure" | "adl" | "abfs" | "abfss" => Service::Azure,
        "http" | "https" => {
            return Err(format!("{FORMS}; the server's own address is the endpoint, a setting"));
        }
        _ => return Err(format!("scheme {scheme} is not known: {FORMS}")),
    };
    if rest.contains(['?', '#']) {
        return Err("an address has neither ? nor #; credentials are settings".to_owned());
    }
    let (place, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let (bucket, account) = match place.split_once('@') {
        None => (place, None),
        Some((container, host)) if service == Service::Azure && !container.contains(':') => {
            let Some((account, _)) = host.split_once('.').filter(|(account, _)| !account.is_empty()) else {
                return Err("after @ comes account.dfs.core.windows.net".to_owned());
            };
            (container, Some((account.to_owned(), host.to_owned())))
        }
        Some(_) => return Err("an address has no credentials in it; they are settings".to_owned()),
    };
    if bucket.is_empty() || bucket.contains([':', '\\', '%']) || bucket.contains(char::is_whitespace) {
        return Err(format!("the name of a {} is missing: {FORMS}", service.bucket_word()));
    }
    let prefix = prefix.trim_end_matches('/');
    Path::parse(prefix)
        .ok()
        .filter(|path| path.as_ref() == prefix)
        .ok_or_else(|| "a prefix has no empty part, no . or .., no control character".to_owned())?;
    let slash = if prefix.is_empty() { "" } else { "/" };
    let name = format!("{scheme}://{place}{slash}{prefix}").into();
    Ok(Address { service, bucket: bucket.to_owned(), account, prefix: prefix.to_owned(), name })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(address: &str) -> (Service, String, String, String) {
        let read = parse(address).unwrap();
        (read.service, read.bucket, read.prefix, read.name.to_string())
    }

    #[test]
    fn addresses_have_a_bucket_and_a_prefix() {
        let is = |address: &str, service, bucket: &str, prefix: &str, name: &str| {
            let expected = (service, bucket.to_owned(), prefix.to_owned(), name.to_owned());
            assert_eq!(parts(address), expected);
        };
        is("s3://data", Service::S3, "data", "", "s3://data");
        is("s3://data/", Service::S3, "data", "", "s3://data");
        is("s3://Old_Data.x/a/b/", Service::S3, "Old_Data.x", "a/b", "s3://Old_Data.x/a/b");
        is("gs://data/a", Service::Google, "data", "a", "gs://data/a");
        is("az://data/a b", Service::Azure, "data", "a b", "az://data/a b");
        let azure = parse("abfss://data@account.dfs.core.windows.net/a").unwrap();
        assert_eq!(azure.bucket, "data");
        assert_eq!(azure.account, Some(("account".to_owned(), "account.dfs.core.windows.net".to_owned())));
        assert_eq!(&*azure.name, "abfss://data@account.dfs.core.windows.net/a");
    }

    #[test]
    fn other_addresses_are_refused_without_their_secrets() {
        for address in [
            "",
            "data",
            "s3:/data",
            "s3://",
            "s3:///a",
            "ftp://data",
            "http://127.0.0.1/data",
            "s3://key:hush@data/a",
            "s3://key@data/a",
            "az://data:hush@account.dfs.core.windows.net/a",
            "az://data@account/a",
            "az://data/a?sig=hush",
            "s3://data/a#hush",
            "s3://data//a",
            "s3://data/a//b",
            "s3://data/../a",
            "s3://data/a\nb",
        ] {
            let refused = parse(address).unwrap_err();
            assert!(!refused.contains("hush"), "{address}: {refused}");
        }
        assert_eq!(shown("az://data/a?sig=hush"), "az://data/a");
        assert_eq!(shown("az://data@account.host/a"), "az://data@account.host/a");
        assert_eq!(shown("s3://id:hu/sh@data/a"), "s3://…");
        assert_eq!(shown("id:hush@data/a"), "://…");
    }
}
