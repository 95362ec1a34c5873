//! Addresses of HTTP, normalised, and prefixes of them.
//!
//! Two texts that name one place are one after normalisation (RFC 3986, 6.2.2 and 6.2.3): letters
//! of scheme and host are small, the port is always there, the path has no dot segments, and
//! percent signs stand only where they must. A prefix ends where a segment of the path ends, so
//! that `http://a/b` allows `http://a/b/c` and neither `http://a/bc` nor `http://a.example/b`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use snowmelt_base::iri::without_dot_segments;

use crate::fault::Fault;

/// Signs that no address has.
const NEVER: [char; 9] = ['<', '>', '"', '{', '}', '|', '^', '`', '\\'];

/// A place of the web.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub is_encrypted: bool,
    pub host: Host,
    pub port: u16,
    /// with the leading slash
    path: String,
    /// with the question mark; empty where there is none
    query: String,
}

/// The machine of a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Host {
    Name(String),
    Address(IpAddr),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.origin(), self.path, self.query)
    }
}

impl Place {
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let wrong = |why| Err(Fault::NotAnAddress(why));
        if text.contains(|c: char| c <= ' ' || c.is_control() || NEVER.contains(&c)) {
            return wrong("a sign in it is not allowed");
        }
        let text = text.split('#').next().unwrap_or_default();
        let Some((scheme, rest)) = text.split_once("://") else {
            return wrong("it begins with neither http:// nor https://");
        };
        let is_encrypted = scheme.eq_ignore_ascii_case("https");
        if !is_encrypted && !scheme.eq_ignore_ascii_case("http") {
            return wrong("it begins with neither http:// nor https://");
        }
        let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return wrong("it has a user in it");
        }
        let (host, port) = parse_authority(authority)?;
        let port = port.unwrap_or(if is_encrypted { 443 } else { 80 });
        let (path, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        Ok(Self { is_encrypted, host, port, path: normal_path(path)?, query: encoded(query) })
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> String {
        let (scheme, own) = if self.is_encrypted { ("https", 443) } else { ("http", 80) };
        match self.port == own {
            true => format!("{scheme}://{}", self.host),
            false => format!("{scheme}://{}:{}", self.host, self.port),
        }
    }

    /// The address with a parameter of a form.
    pub fn with_parameter(&self, parameter: &str) -> String {
        let separator = if self.query.is_empty() { '?' } else { '&' };
        format!("{self}{separator}{parameter}")
    }

    /// The place without the parameters of a form that have this name.
    pub fn without_parameter(mut self, name: &str) -> Self {
        let is_named = |part: &&str| form_urlencoded::parse(part.as_bytes()).any(|(key, _)| key == name);
        let parts = self.query.strip_prefix('?').unwrap_or_default().split('&');
        let kept: Vec<&str> = parts.filter(|part| !is_named(part)).collect();
        let kept = kept.join("&");
        self.query = if kept.is_empty() { String::new() } else { format!("?{kept}") };
        self
    }

    /// The place that a redirect from here names.
    pub fn redirected(&self, to: &str) -> Result<Self, Fault> {
        let resolved = snowmelt_base::iri::resolve(&self.to_string(), to).ok_or(Fault::Nowhere)?;
        Self::parse(&resolved)
    }
}

fn parse_authority(authority: &str) -> Result<(Host, Option<u16>), Fault> {
    let wrong = |why| Fault::NotAnAddress(why);
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']').ok_or(wrong("its host has no closing bracket"))?;
            let address: Ipv6Addr = address.parse().map_err(|_| wrong("its host is no address"))?;
            (Host::Address(address.into()), port)
        }
        None => {
            let (name, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
            (parse_host(name)?, port)
        }
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => None,
        Some("") => None,
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            Some(digits.parse().map_err(|_| wrong("it has no such port"))?)
        }
        _ => return Err(wrong("it has no such port")),
    };
    Ok((host, port.filter(|port| *port != 0)))
}

fn parse_host(name: &str) -> Result<Host, Fault> {
    if let Ok(address) = name.parse::<Ipv4Addr>() {
        return Ok(Host::Address(address.into()));
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    match name.split('.').all(is_label) {
        true => Ok(Host::Name(name.to_ascii_lowercase())),
        false => Err(Fault::NotAnAddress("its host is no name; others than ASCII letters are written xn--")),
    }
}

/// A path with its percent signs in one form, and without dot segments.
fn normal_path(path: &str) -> Result<String, Fault> {
    let path = encoded(path);
    let mut plain = String::with_capacity(path.len() + 1);
    if !path.starts_with('/') {
        plain.push('/');
    }
    let mut rest = path.as_str();
    while let Some(at) = rest.find('%') {
        plain.push_str(&rest[..at]);
        let digits = rest.get(at + 1..at + 3).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let digits = digits.ok_or(Fault::NotAnAddress("a percent sign in it begins no byte"))?;
        match u8::from_str_radix(digits, 16).unwrap_or_default() {
            b if b.is_ascii_alphanumeric() || b"-._~".contains(&b) => plain.push(char::from(b)),
            b => plain.push_str(&format!("%{b:02X}")),
        }
        rest = &rest[at + 3..];
    }
    plain.push_str(rest);
    // some servers take these for slashes, and then find dot segments
    let has_slashes = plain.contains("%2F") || plain.contains("%5C");
    if has_slashes && plain.contains("..") {
        return Err(Fault::NotAnAddress("its path is ambiguous"));
    }
    Ok(without_dot_segments(&plain).into_owned())
}

/// A text whose signs beyond ASCII are written as bytes.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_ascii() {
            true => out.push(c),
            false => c.encode_utf8(&mut [0; 4]).bytes().for_each(|b| out.push_str(&format!("%{b:02X}"))),
        }
    }
    out
}

/// A beginning of addresses that are allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlacePrefix(Place);

/// A text that is no prefix.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{text}: {why}")]
pub struct NotAPrefix {
    /// The text.
    pub text: String,
    /// Why it is none.
    pub why: String,
}

impl FromStr for PlacePrefix {
    type Err = NotAPrefix;

    fn from_str(text: &str) -> Result<Self, NotAPrefix> {
        let wrong = |why: String| NotAPrefix { text: text.to_owned(), why };
        match Place::parse(text) {
            Ok(place) if place.query.is_empty() => Ok(Self(place)),
            Ok(_) => Err(wrong("a prefix ends before the question mark".to_owned())),
            Err(fault) => Err(wrong(fault.to_string())),
        }
    }
}

impl fmt::Display for PlacePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PlacePrefix {
    /// Whether a place is below it.
    pub(crate) fn covers(&self, place: &Place) -> bool {
        let own = &self.0;
        if (own.is_encrypted, &own.host, own.port) != (place.is_encrypted, &place.host, place.port) {
            return false;
        }
        let Some(rest) = place.path.strip_prefix(&own.path) else { return false };
        own.path.ends_with('/') || rest.is_empty() || rest.starts_with('/')
    }
}

/// Prefixes that allow places: one of the first list, and one of each further list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowed {
    all: Vec<PlacePrefix>,
    narrower: Vec<Vec<PlacePrefix>>,
}

impl Allowed {
    pub fn new(all: Vec<PlacePrefix>) -> Self {
        Self { all, narrower: Vec::new() }
    }

    /// Only those of this list, too.
    pub fn narrowed(&self, to: Vec<PlacePrefix>) -> Self {
        let mut narrowed = self.clone();
        narrowed.narrower.push(to);
        narrowed
    }

    pub fn check(&self, place: &Place) -> Result<(), Fault> {
        let is_in = |list: &Vec<PlacePrefix>| list.iter().any(|prefix| prefix.covers(place));
        match () {
            () if self.all.is_empty() => Err(Fault::NoneAllowed),
            () if is_in(&self.all) && self.narrower.iter().all(is_in) => Ok(()),
            () => Err(Fault::NotAllowed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(text: &str) -> String {
        Place::parse(text).map_or_else(|fault| format!("no: {fault}"), |place| place.to_string())
    }

    #[test]
    fn two_texts_of_one_place_are_one() {
        for (text, place) in [
            ("HTTP://Example.ORG:80/a/./b/../c?x=Y#f", "http://example.org/a/c?x=Y"),
            ("https://example.org.", "https://example.org/"),
            ("https://example.org:443?q", "https://example.org/?q"),
            ("http://example.org:8080/%7euser/%c3%a9", "http://example.org:8080/~user/%C3%A9"),
            ("http://e/é?ü", "http://e/%C3%A9?%C3%BC"),
            ("http://[::1]:3030/x", "http://[::1]:3030/x"),
            ("http://[0:0:0::1]/x", "http://[::1]/x"),
            ("http://e/a/%2e%2E/b", "http://e/b"),
            ("http://e/../../x", "http://e/x"),
        ] {
            assert_eq!(normal(text), place, "{text}");
        }
    }

    #[test]
    fn what_is_no_place_of_http_is_refused() {
        for text in [
            "",
            "file:///etc/passwd",
            "ftp://e/",
            "http:/e",
            "http://",
            "http://user:pw@e/",
            "http://e\\@evil/",
            "http://a b/",
            "http://e/%zz",
            "http://e:99999/",
            "http://e:x/",
            "http://[::1/",
            "http://münchen.de/",
            "http://a..b/",
            "http://e/a/..%2f..%2fb",
            "http://e/\u{7f}",
            "urn:a",
        ] {
            assert!(normal(text).starts_with("no: it is no address of HTTP"), "{text}: {}", normal(text));
        }
    }

    #[test]
    fn a_prefix_ends_at_a_border() {
        let covers = |prefix: &str, text: &str| {
            let prefix: PlacePrefix = prefix.parse().unwrap();
            prefix.covers(&Place::parse(text).unwrap())
        };
        for (prefix, text) in [
            ("http://e/a", "http://e/a"),
            ("http://e/a", "http://E:80/a/b"),
            ("http://e/a", "http://e/a?query=1"),
            ("http://e/a/", "http://e/a/b"),
            ("http://e", "http://e/anything"),
            ("https://e:8443/", "https://e:8443/x"),
        ] {
            assert!(covers(prefix, text), "{prefix} {text}");
        }
        for (prefix, text) in [
            ("http://e/a", "http://e/ab"),
            ("http://e/a/", "http://e/a"),
            ("http://e/a", "http://e/a/../b"),
            ("http://e/a", "http://e/%61/%2e%2e/b"),
            ("http://e", "http://e.evil.org/"),
            ("http://e", "http://evil.org/?http://e/"),
            ("http://e", "https://e/"),
            ("http://e", "http://e:81/"),
            ("http://127.0.0.1", "http://localhost/"),
        ] {
            assert!(!covers(prefix, text), "{prefix} {text}");
        }
        assert!("http://e/?q".parse::<PlacePrefix>().is_err());
    }

    #[test]
    fn a_narrower_list_only_takes_away() {
        let list = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>();
        let check = |allowed: &Allowed, text: &str| allowed.check(&Place::parse(text).unwrap());
        let all = Allowed::new(list(&["http://a/", "http://b/"]));
        let narrow = all.narrowed(list(&["http://b/c", "http://d/"]));
        assert!(check(&all, "http://a/x").is_ok());
        assert!(matches!(check(&narrow, "http://a/x"), Err(Fault::NotAllowed)));
        assert!(matches!(check(&narrow, "http://d/"), Err(Fault::NotAllowed)));
        assert!(check(&narrow, "http://b/c/d").is_ok());
        assert!(matches!(check(&Allowed::default(), "http://a/"), Err(Fault::NoneAllowed)));
    }
}
