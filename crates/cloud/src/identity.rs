//! Whose credentials requests are signed with, in the words of messages; and the texts that no
//! message may have.
//!
//! A provider of `object_store` is wrapped: it notes the name of the key it gives, and marks the
//! errors of getting one with [`NoCredentials`], so that they are told from those of the store.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use object_store::{CredentialProvider, Error};
use parking_lot::Mutex;
use snowmelt_base::printable;

use crate::secret::{KeyId, Secret};
use crate::watch::{self, Trouble};

/// Characters that are shown of a foreign text.
const SHOWN: usize = 300;

/// Whose requests they are.
pub(crate) struct Identity {
    /// Where the credentials come from: "the settings", for example.
    source: String,
    secrets: Vec<Secret>,
    used: Mutex<Used>,
}

/// The credentials that were last used.
#[derive(Default)]
struct Used {
    key: Option<KeyId>,
    secrets: Vec<Secret>,
    /// There were some.
    had_some: bool,
}

impl Identity {
    pub(crate) fn new(source: impl Into<String>, key: Option<KeyId>, secrets: Vec<Secret>) -> Self {
        Self { source: source.into(), secrets, used: Mutex::new(Used { key, ..Used::default() }) }
    }

    /// Of requests without credentials.
    pub(crate) fn anonymous() -> Self {
        Self::new("", None, Vec::new())
    }

    pub(crate) fn is_anonymous(&self) -> bool {
        self.source.is_empty()
    }

    /// The credentials as the subject of a sentence.
    pub(crate) fn subject(&self) -> String {
        match &self.used.lock().key {
            _ if self.is_anonymous() => "a request without credentials".to_owned(),
            Some(key) => format!("key {key} of {}", self.source),
            None => format!("the credentials of {}", self.source),
        }
    }

    /// A text of others: on one line, short, without our secrets.
    pub(crate) fn shown(&self, text: &str) -> String {
        let mut text = text.trim().to_owned();
        let used = self.used.lock();
        let secrets = self.secrets.iter().chain(&used.secrets).map(Secret::reveal);
        for secret in secrets.filter(|secret| !secret.is_empty()) {
            text = text.replace(secret, "…");
        }
        if let Some(key) = used.key.as_ref().filter(|key| !key.reveal().is_empty()) {
            text = text.replace(key.reveal(), &key.to_string());
        }
        if let Some((end, _)) = text.char_indices().nth(SHOWN) {
            text.truncate(end);
            text.push('…');
        }
        printable::line(&text).into_owned()
    }
}

/// There are no credentials to sign a request with.
#[derive(Debug, thiserror::Error)]
#[error("no credentials")]
pub(crate) struct NoCredentials {
    /// In words.
    pub(crate) reason: String,
    /// There were some before, or the server that gives them fails at the moment.
    pub(crate) is_passing: bool,
}

/// The name of the key of some credentials, and their secrets.
pub(crate) type Parts<C> = fn(&C) -> (Option<KeyId>, Vec<Secret>);

/// A provider whose keys and errors are noted.
pub(crate) struct Noted<C> {
    inner: Arc<dyn CredentialProvider<Credential = C>>,
    identity: Arc<Identity>,
    parts: Parts<C>,
}

impl<C: fmt::Debug + Send + Sync + 'static> Noted<C> {
    pub(crate) fn provider(
        inner: &Arc<dyn CredentialProvider<Credential = C>>,
        identity: &Arc<Identity>,
        parts: Parts<C>,
    ) -> Arc<dyn CredentialProvider<Credential = C>> {
        Arc::new(Self { inner: inner.clone(), identity: identity.clone(), parts })
    }
}

/// Without the credentials.
impl<C> fmt::Debug for Noted<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("credentials")
    }
}

#[async_trait]
impl<C: fmt::Debug + Send + Sync + 'static> CredentialProvider for Noted<C> {
    type Credential = C;

    async fn get_credential(&self) -> object_store::Result<Arc<C>> {
        match self.inner.get_credential().await {
            Ok(credential) => {
                let (key, secrets) = (self.parts)(&credential);
                let mut used = self.identity.used.lock();
                *used = Used { key: key.or(used.key.take()), secrets, had_some: true };
                Ok(credential)
            }
            Err(_) => {
                let reason = no_credentials(watch::last_trouble(), &self.identity);
                Err(Error::Generic { store: "credentials", source: Box::new(reason) })
            }
        }
    }
}

/// Why there are none. The text of the error itself is not used: it may have a token in it.
fn no_credentials(trouble: Option<Trouble>, identity: &Identity) -> NoCredentials {
    let had_some = identity.used.lock().had_some;
    let (reason, is_busy) = match trouble {
        None => ("what they are made from cannot be read".to_owned(), false),
        Some(Trouble::Lost { reason, .. }) => (reason, false),
        Some(Trouble::Refused(refusal)) => {
            let said = [&*refusal.code, &*refusal.message].map(str::trim).join(" ");
            (format!("status {} {}", refusal.status, said.trim()), refusal.status >= 500)
        }
    };
    NoCredentials {
        reason: format!("{} gives none ({})", identity.source, identity.shown(&reason)),
        is_passing: had_some || is_busy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_short_and_without_secrets() {
        let identity = Identity::new("the settings", Some("AKIAEXAMPLE".into()), vec!["hush".into()]);
        assert_eq!(identity.subject(), "key AKIA… of the settings");
        assert_eq!(identity.shown(" hush, AKIAEXAMPLE\n and\x1b[1m "), "…, AKIA…\\n and\\u{1b}[1m");
        assert_eq!(identity.shown(&"ä".repeat(1000)).chars().count(), SHOWN + 1);
        assert_eq!(Identity::anonymous().subject(), "a request without credentials");
    }

    #[test]
    fn lost_credentials_are_passing_once_there_were_some() {
        let lost = || Some(Trouble::Lost { is_late: false, reason: "cannot connect".to_owned() });
        let identity = Identity::new("this machine", None, Vec::new());
        let first = no_credentials(lost(), &identity);
        assert!(!first.is_passing);
        assert_eq!(first.reason, "this machine gives none (cannot connect)");
        identity.used.lock().had_some = true;
        assert!(no_credentials(lost(), &identity).is_passing);
    }
}
