//! Which requests are meant for this server.
//!
//! Even a server on loopback gets requests of any web page that a browser on this machine shows.
//! Two kinds are refused: those to the name of another site that was made to resolve to this
//! machine (DNS rebinding, after which its page could read the answers), by `Host`; and those of
//! pages of other sites, by `Origin` and `Sec-Fetch-Site`, unless `cors` allows the site. A page
//! can still make the browser fetch an answer that it cannot read; only the limits on requests
//! bound that.

use hyper::header::{self, HeaderMap, HeaderName};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{StatusCode, Version};

use crate::cors::{Cors, Wish};
use crate::refusal::Refusal;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The names the server answers to.
pub struct Audience {
    allowed: Vec<String>,
    /// any name is accepted: without a token, a request sees only what all may see
    any: bool,
}

impl Audience {
    /// This machine's own names, and those `allowed`; `any` other.
    pub fn new(allowed: &[String], any: bool) -> Self {
        Self { allowed: allowed.iter().map(|name| normal(name)).collect(), any }
    }

    /// The authority that the client means, if that is this server.
    pub fn host_of(&self, head: &Parts) -> Result<String, Refusal> {
        let named = head.headers.get(header::HOST).map(|host| String::from_utf8_lossy(host.as_bytes()));
        let named = match named {
            Some(host) => host.into_owned(),
            None if head.version < Version::HTTP_11 => "localhost".to_owned(),
            None => return Err(Refusal::new(StatusCode::BAD_REQUEST, "a request of HTTP/1.1 needs a Host")),
        };
        self.check(&named)?;
        // In absolute form, which is meant for proxies, the request line names the authority once
        // more. That one counts.
        match head.uri.authority() {
            Some(authority) => self.check(authority.as_str()).map(|()| authority.to_string()),
            None => Ok(named),
        }
    }

    fn check(&self, authority: &str) -> Result<(), Refusal> {
        let known = authority
            .parse::<Authority>()
            .is_ok_and(|parsed| !authority.contains('@') && (self.any || self.knows(parsed.host())));
        if known {
            return Ok(());
        }
        let message = format!(
            "the request is for '{authority}', which is no name of this server: use localhost or 127.0.0.1, or start the server with --allow-host NAME"
        );
        Err(Refusal::new(StatusCode::FORBIDDEN, message))
    }

    fn knows(&self, host: &str) -> bool {
        let host = normal(host);
        host == "localhost"
            || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
            || self.allowed.contains(&host)
    }
}

/// A host in one of its spellings: lower case, no final dot, no brackets.
fn normal(host: &str) -> String {
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    bare.strip_suffix('.').unwrap_or(bare).to_ascii_lowercase()
}

/// Refuses what a page of another site asks for, unless it may.
pub fn check_origin(headers: &HeaderMap, host: &str, cors: &Cors, wish: Wish) -> Result<(), Refusal> {
    let text = |name: HeaderName| {
        headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let refused = |page: &str| {
        let may = if wish == Wish::Read { "run queries" } else { "change data" };
        let message = format!("{page} may not {may} here: start the server with --cors and its origin");
        Err(Refusal::new(StatusCode::FORBIDDEN, message))
    };
    match (text(header::ORIGIN), text(SEC_FETCH_SITE)) {
        (Some(origin), _) if cors.allows(&origin, wish) => Ok(()),
        (Some(origin), _) if origin.split_once("://").is_none_or(|(_, of)| of != host) => {
            refused(&format!("a page of {origin}"))
        }
        (_, Some(site)) if site == "cross-site" => refused("a page of another site"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine_and_allowed_ones() {
        let audience = Audience::new(&["Data.Example.org".to_owned()], false);
        for host in [
            "localhost",
            "LOCALHOST:80",
            "localhost.:1",
            "127.0.0.1:7878",
            "127.9.9.9",
            "[::1]:7878",
            "data.example.org:80",
        ] {
            assert_eq!(audience.check(host), Ok(()), "{host}");
        }
        for host in [
            "",
            "example.org",
            "localhost.example.org",
            "127.0.0.1.example.org",
            "localhost@example.org",
            "10.0.0.1",
            "[::2]",
            "::1",
            "localhost/x",
        ] {
            assert!(audience.check(host).is_err(), "{host}");
        }
    }
}
