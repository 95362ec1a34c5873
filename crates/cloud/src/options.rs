//! Settings of a store: who asks it, where, and in which way.

use std::path::PathBuf;
use std::time::Duration;

use crate::secret::{KeyId, Secret};

/// How a store is reached. Debug texts show no secret.
#[derive(Clone, Debug)]
pub struct CloudOptions {
    /// The credentials.
    pub credentials: Credentials,
    /// Address of a server, as `http://127.0.0.1:9000`: of one that speaks S3, or of an emulator of
    /// Azure or Google. `None`: the service itself.
    pub endpoint: Option<String>,
    /// Region of an S3 bucket. `None`: that of the settings, else `us-east-1`.
    pub region: Option<String>,
    /// Place of an S3 bucket's name in addresses.
    pub addressing: Addressing,
    /// Encryption by the server, for S3; `None`: as the bucket has it.
    pub encryption: Option<Encryption>,
    /// A file of certificates (PEM) of authorities to trust besides the machine's.
    pub authorities: Option<PathBuf>,
    /// Address of an HTTP proxy; `None`: connections are direct.
    pub proxy: Option<String>,
    /// Time for a connection. Whatever a server does, a request fails after it or `request_limit`.
    pub connect_limit: Duration,
    /// Time for a request, with its body. The deadlines of the layers above are shorter.
    pub request_limit: Duration,
    /// Names and values of `AWS_…`, `AZURE_…` and `GOOGLE_…`, as the environment has them; the
    /// fields above come first. Names that mean nothing to a store are passed over.
    pub settings: Vec<(String, Secret)>,
}

impl Default for CloudOptions {
    fn default() -> Self {
        Self {
            credentials: Credentials::Ambient,
            endpoint: None,
            region: None,
            addressing: Addressing::Fitting,
            encryption: None,
            authorities: None,
            proxy: None,
            connect_limit: Duration::from_secs(10),
            request_limit: Duration::from_secs(300),
            settings: Vec::new(),
        }
    }
}

/// Whose requests they are.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// Those of the settings, else those of the machine. For S3, in this order: the key in
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`; the role in
    /// `AWS_ROLE_ARN` with the token in `AWS_WEB_IDENTITY_TOKEN_FILE`; profile `AWS_PROFILE` of the
    /// file `AWS_SHARED_CREDENTIALS_FILE`; the role of the container; that of the machine.
    Ambient,
    /// None: only what is public can be read.
    Anonymous,
    /// A key of S3, or an account of Azure with its access key.
    Key {
        /// Name of the key, or of the account.
        id: KeyId,
        /// Its secret.
        secret: Secret,
        /// Token of a session of S3.
        session: Option<Secret>,
    },
    /// A file: for S3 of credentials with profiles, for Google of a service account's key.
    File {
        /// Its path.
        path: PathBuf,
        /// The profile; `None`: `default`.
        profile: Option<String>,
    },
}

/// Place of an S3 bucket's name in the addresses of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// The host for the service itself, if the name may stand there; the path for an endpoint.
    Fitting,
    /// The path: `https://host/bucket/key`.
    Path,
    /// The host: `https://bucket.host/key`.
    Host,
}

/// Encryption of objects by an S3 server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// With keys of the store (SSE-S3).
    OfStore,
    /// With a key of the key management service (SSE-KMS).
    OfKeyService {
        /// Its name or ARN; `None`: that of the account.
        key: Option<String>,
    },
}

impl CloudOptions {
    /// The last value of a setting.
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.reveal())
    }

    /// Values that no message may have in it.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let mut secrets: Vec<Secret> = Vec::new();
        if let Credentials::Key { secret, session, .. } = &self.credentials {
            secrets.push(secret.clone());
            secrets.extend(session.clone());
        }
        let is_secret = |name: &str| {
            ["SECRET", "TOKEN", "KEY", "SAS", "PASSWORD", "SERVICE_ACCOUNT"]
                .iter()
                .any(|word| name.contains(word))
                && !["_FILE", "_PATH", "KEY_ID"].iter().any(|end| name.ends_with(end))
        };
        let of_settings = self.settings.iter().filter(|(name, _)| is_secret(&name.to_ascii_uppercase()));
        secrets.extend(of_settings.map(|(_, value)| value.clone()));
        secrets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_text_has_no_secret() {
        let options = CloudOptions {
            credentials: Credentials::Key {
                id: "AKIAEXAMPLE".into(),
                secret: "hush-1".into(),
                session: Some("hush-2".into()),
            },
            settings: vec![("AWS_SECRET_ACCESS_KEY".to_owned(), "hush-3".into())],
            ..CloudOptions::default()
        };
        let text = format!("{options:?}");
        assert!(!text.contains("hush") && !text.contains("EXAMPLE"), "{text}");
        assert!(text.contains("AWS_SECRET_ACCESS_KEY"), "{text}");
        assert_eq!(options.secrets().len(), 3);
    }

    #[test]
    fn the_last_setting_counts() {
        let settings = vec![("AWS_REGION".to_owned(), "a".into()), ("AWS_REGION".to_owned(), "b".into())];
        let options = CloudOptions { settings, ..CloudOptions::default() };
        assert_eq!(options.setting("AWS_REGION"), Some("b"));
        assert_eq!(options.setting("AWS_PROFILE"), None);
    }
}
