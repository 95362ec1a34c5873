//! Names become addresses, each of which is checked, and the connection goes to one of those.
//!
//! A name is looked up once for a request. Had the connection looked it up again, the second
//! answer might have been another one than the one that was checked (DNS rebinding).

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use crate::fault::Fault;
use crate::guard::Guard;

/// Addresses tried one after the other.
const MOST_ADDRESSES: usize = 8;

/// Finds the addresses of names.
pub trait Lookup: fmt::Debug + Send + Sync + 'static {
    /// The addresses of a name.
    ///
    /// # Errors
    /// There are none, or the system cannot say.
    fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The lookup of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
    }
}

/// A lookup whose addresses are checked.
#[derive(Clone, Debug)]
pub(crate) struct GuardedLookup {
    pub lookup: Arc<dyn Lookup>,
    pub guard: Guard,
    pub patience: Duration,
}

impl GuardedLookup {
    /// The addresses of a host, all of which may be reached.
    pub fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Fault> {
        // a prefix with this address in it has named it
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = literal.parse::<IpAddr>() {
            return Ok(vec![address]);
        }
        let unknown = |why: String| Fault::Unknown { host: host.to_owned(), why };
        let found = self.found(host)?.map_err(|error| unknown(error.to_string()))?;
        if let Some(address) = found.iter().find(|address| !self.guard.admits(host, **address)) {
            return Err(Fault::Private { host: host.to_owned(), address: *address });
        }
        if found.is_empty() { Err(unknown("it has no address".to_owned())) } else { Ok(found) }
    }

    /// The lookup in a thread of its own: that of the system may take minutes.
    fn found(&self, host: &str) -> Result<io::Result<Vec<IpAddr>>, Fault> {
        let (sender, receiver) = sync_channel(1);
        let (lookup, name) = (Arc::clone(&self.lookup), host.to_owned());
        let look = move || drop(sender.send(lookup.addresses(&name)));
        let started = std::thread::Builder::new().name("lookup".to_owned()).spawn(look);
        started.map_err(|error| Fault::Unreachable(error.to_string()))?;
        match receiver.recv_timeout(self.patience) {
            Ok(found) => Ok(found),
            Err(RecvTimeoutError::Timeout) => Err(Fault::Late(self.patience)),
            Err(RecvTimeoutError::Disconnected) => Ok(Err(io::Error::other("its lookup ended early"))),
        }
    }
}

impl Resolver for GuardedLookup {
    fn resolve(&self, uri: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let host = uri.host().ok_or(ureq::Error::HostNotFound)?;
        let own = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let port = uri.port_u16().unwrap_or(own);
        let addresses = self.addresses(host).map_err(|fault| ureq::Error::Other(Box::new(fault)))?;
        let mut resolved = self.empty();
        for address in addresses.into_iter().take(MOST_ADDRESSES) {
            resolved.push(SocketAddr::new(address, port));
        }
        Ok(resolved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One answer for each name.
    #[derive(Debug)]
    struct Listed(Vec<(&'static str, Vec<IpAddr>)>);

    impl Lookup for Listed {
        fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
            let listed = self.0.iter().find(|(name, _)| *name == host);
            listed.map(|(_, addresses)| addresses.clone()).ok_or_else(|| io::Error::other("no such name"))
        }
    }

    fn lookup() -> GuardedLookup {
        let ip = |text: &str| text.parse().unwrap();
        let names = vec![
            ("public", vec![ip("8.8.8.8"), ip("2606:4700::1")]),
            ("rebound", vec![ip("8.8.8.8"), ip("127.0.0.1")]),
            ("metadata", vec![ip("169.254.169.254")]),
            ("none", Vec::new()),
        ];
        let guard = Guard::default();
        GuardedLookup { lookup: Arc::new(Listed(names)), guard, patience: Duration::from_secs(5) }
    }

    #[test]
    fn one_private_address_among_public_ones_refuses_the_name() {
        let lookup = lookup();
        assert_eq!(lookup.addresses("public").unwrap().len(), 2);
        let refused = |host: &str| lookup.addresses(host).unwrap_err().to_string();
        assert_eq!(refused("rebound"), "rebound is 127.0.0.1, which is no public address and was not named");
        assert!(refused("metadata").contains("169.254.169.254"));
        assert_eq!(refused("none"), "none cannot be found: it has no address");
        assert_eq!(refused("else"), "else cannot be found: no such name");
    }
}
