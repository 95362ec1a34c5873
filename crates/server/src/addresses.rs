//! The addresses that connections and requests come from: their limits, and the client behind a
//! proxy.
//!
//! 1. An address may have [`ServerLimits::per_address`](crate::ServerLimits) connections. Programs
//!    on this machine have no limit: they could load it in other ways as well.
//! 2. The connections of a trusted proxy are those of its clients. Each of its requests counts for
//!    the client that the proxy names in `Forwarded` or `X-Forwarded-For`: the last one there that
//!    is no trusted proxy itself. These headers are ignored when another peer sends them. A proxy
//!    writes one of the two and may pass on the other as its client sent it: where they name
//!    different clients the request is refused.
//! 3. A network of IPv6 addresses with the same first 64 bits is one client's.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use hyper::HeaderMap;
use hyper::header;

/// Why a request has no client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoClient {
    /// its address has as many under way as it may
    TooMany,
    /// its headers name two
    TwoNames,
}

/// The addresses that have something open.
#[derive(Debug, Default)]
pub struct Addresses {
    /// the most of each
    most: usize,
    trusted: Vec<IpAddr>,
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// A connection, or a request, that is counted for an address until it is dropped.
#[derive(Debug)]
pub struct Counted {
    of: Arc<Addresses>,
    client: IpAddr,
}

impl Addresses {
    /// Of which each may have `most`, and in which some are of proxies.
    pub fn new(most: usize, trusted: &[IpAddr]) -> Arc<Self> {
        let trusted = trusted.iter().map(IpAddr::to_canonical).collect();
        Arc::new(Self { most, trusted, open: Mutex::default() })
    }

    /// The most of each.
    pub fn most(&self) -> usize {
        self.most
    }

    fn trusts(&self, peer: IpAddr) -> bool {
        self.trusted.contains(&peer.to_canonical())
    }

    /// Counts a connection. `Err`: its address has as many as it may; `None`: it is not counted.
    pub fn connect(self: &Arc<Self>, peer: SocketAddr) -> Result<Option<Counted>, TooMany> {
        let peer = peer.ip().to_canonical();
        if peer.is_loopback() || self.trusts(peer) {
            return Ok(None);
        }
        self.count(peer).map(Some)
    }

    /// The client of a request, and, where a proxy has passed it on, its count.
    pub fn client(
        self: &Arc<Self>,
        peer: SocketAddr,
        headers: &HeaderMap,
    ) -> Result<(SocketAddr, Option<Counted>), NoClient> {
        if self.trusted.is_empty() || !self.trusts(peer.ip()) {
            return Ok((peer, None));
        }
        let Some(client) = self.named(headers)? else { return Ok((peer, None)) };
        let address = SocketAddr::new(client, 0);
        match client.is_loopback() {
            true => Ok((address, None)),
            false => Ok((address, Some(self.count(client).map_err(|TooMany| NoClient::TooMany)?))),
        }
    }

    /// The last one that the headers name and that is no trusted proxy.
    fn named(&self, headers: &HeaderMap) -> Result<Option<IpAddr>, NoClient> {
        // An unreadable hop ends the search: an unknown proxy named the hops before it.
        let last = |name, read: fn(&str) -> Option<IpAddr>| {
            let values: Vec<_> = headers.get_all(name).iter().collect();
            let hops = values.iter().rev().flat_map(|value| value.to_str().unwrap_or("").rsplit(','));
            let last = hops.map_while(read).find(|hop| !self.trusts(*hop));
            (!values.is_empty()).then_some(last)
        };
        let forwarded = last(header::FORWARDED, |hop| address(hop_of(hop)?));
        let for_header = header::HeaderName::from_static("x-forwarded-for");
        match (forwarded, last(for_header, address)) {
            (Some(one), Some(other)) if one != other => Err(NoClient::TwoNames),
            (one, other) => Ok(one.or(other).flatten()),
        }
    }

    fn count(self: &Arc<Self>, client: IpAddr) -> Result<Counted, TooMany> {
        let client = network(client);
        let mut open = self.open.lock().expect("no holder panics");
        let count = open.entry(client).or_default();
        if *count >= self.most {
            return Err(TooMany);
        }
        *count += 1;
        drop(open);
        Ok(Counted { of: Arc::clone(self), client })
    }
}

/// An address has as many open as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

impl Drop for Counted {
    fn drop(&mut self) {
        let mut open = self.of.open.lock().expect("no holder panics");
        if let Some(count) = open.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.client);
            }
        }
    }
}

/// The network that an address is counted for.
fn network(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

/// The node in an element of a Forwarded header (RFC 7239).
fn hop_of(element: &str) -> Option<&str> {
    let mut pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for")).map(|(_, node)| node)
}

/// An address, with or without port, brackets and quotes.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim().trim_matches('"');
    let bare = text.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(text, |(ip, _)| ip);
    let ip = bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    ip.map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (header::HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn each_address_has_its_own_and_this_machine_all() {
        let addresses = Addresses::new(2, &[ip("10.0.0.1")]);
        let connect = |text: &str| addresses.connect(SocketAddr::new(ip(text), 4711));
        let first = [connect("192.0.2.1").unwrap(), connect("::ffff:192.0.2.1").unwrap()];
        assert_eq!(connect("192.0.2.1").unwrap_err(), TooMany);
        let _other = connect("192.0.2.2").unwrap().unwrap();
        drop(first);
        assert!(connect("192.0.2.1").unwrap().is_some());
        for uncounted in ["127.0.0.1", "127.3.3.3", "::1", "10.0.0.1"] {
            assert!((0..9).all(|_| connect(uncounted).unwrap().is_none()), "{uncounted}");
        }
        let _one = connect("2001:db8::1").unwrap();
        let _two = connect("2001:db8::2:3").unwrap();
        assert_eq!(connect("2001:db8::ffff").unwrap_err(), TooMany, "of one network");
        assert!(connect("2001:db8:0:1::1").is_ok());
        assert_eq!(addresses.open.lock().unwrap().len(), 2, "those without anything open are forgotten");
    }

    #[test]
    fn the_client_is_what_a_trusted_proxy_says() {
        let addresses = Addresses::new(9, &[ip("10.0.0.1"), ip("10.0.0.2")]);
        let client = |peer: &str, pairs: &[_]| {
            let (client, _) = addresses.client(SocketAddr::new(ip(peer), 80), &headers(pairs)).unwrap();
            client.ip().to_string()
        };
        let xff = "x-forwarded-for";
        for (peer, pairs, expected) in [
            ("192.0.2.9", vec![(xff, "198.51.100.1")], "192.0.2.9"),
            ("10.0.0.1", vec![], "10.0.0.1"),
            ("10.0.0.1", vec![(xff, "198.51.100.1")], "198.51.100.1"),
            ("10.0.0.1", vec![(xff, "6.6.6.6, 198.51.100.1")], "198.51.100.1"),
            ("10.0.0.1", vec![(xff, "6.6.6.6"), (xff, "198.51.100.1,10.0.0.2")], "198.51.100.1"),
            ("10.0.0.1", vec![(xff, "6.6.6.6, unknown")], "10.0.0.1"),
            ("10.0.0.1", vec![("forwarded", "for=\"[2001:db8::7]:4711\";proto=https")], "2001:db8::7"),
            ("10.0.0.1", vec![("forwarded", "for=6.6.6.6, By=a; For=198.51.100.1:99")], "198.51.100.1"),
            ("10.0.0.1", vec![("forwarded", "for=_hidden")], "10.0.0.1"),
            ("10.0.0.1", vec![("forwarded", "for=6.6.6.6,for=192.0.2.7"), (xff, "192.0.2.7")], "192.0.2.7"),
            ("10.0.0.1", vec![("forwarded", "proto=https")], "10.0.0.1"),
        ] {
            assert_eq!(client(peer, &pairs), expected, "{peer} {pairs:?}");
        }
    }

    #[test]
    fn a_client_does_not_name_itself_by_the_header_that_its_proxy_leaves_alone() {
        let addresses = Addresses::new(9, &[ip("10.0.0.1")]);
        let proxy = SocketAddr::new(ip("10.0.0.1"), 80);
        let (xff, its_own) = (("x-forwarded-for", "192.0.2.9"), "6.6.6.6");
        for forwarded in [format!("for={its_own}"), "for=_hidden".into(), "for=\"".into(), String::new()] {
            let headers = headers(&[("forwarded", &forwarded), xff]);
            assert_eq!(addresses.client(proxy, &headers).unwrap_err(), NoClient::TwoNames, "{forwarded}");
        }
        let forwarded = ("forwarded", "for=192.0.2.9");
        let headers = headers(&[forwarded, ("x-forwarded-for", its_own)]);
        assert_eq!(addresses.client(proxy, &headers).unwrap_err(), NoClient::TwoNames);
    }

    #[test]
    fn requests_behind_a_proxy_are_counted_for_their_clients() {
        let addresses = Addresses::new(1, &[ip("10.0.0.1")]);
        let proxy = SocketAddr::new(ip("10.0.0.1"), 80);
        let ask = |client: &str| addresses.client(proxy, &headers(&[("x-forwarded-for", client)]));
        let held = ask("192.0.2.1").unwrap();
        assert_eq!(ask("192.0.2.1").unwrap_err(), NoClient::TooMany);
        assert!(ask("192.0.2.2").is_ok());
        drop(held);
        assert!(ask("192.0.2.1").is_ok());
    }
}
