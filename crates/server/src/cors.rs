//! Pages of other sites (CORS: the Fetch Standard, section 3.2).
//!
//! 1. Without `--cors` no site may ask, and none can read an answer.
//! 2. A site that is named may query and change data, and send the browser's credentials.
//! 3. `*` lets the pages of any site query, without credentials: to change data a site must be
//!    named.

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::resource::Resource;

/// How long a browser may keep the answer to its question.
const MAX_AGE_S: &str = "86400";
/// Headers of requests beyond those that any page may send.
const REQUEST_HEADERS: &str =
    "Accept, Authorization, Cache-Control, Content-Encoding, Content-Type, If-Match, If-None-Match, Slug";
/// Headers of answers that a page may read.
const EXPOSED: &str = "Allow, Content-Encoding, ETag, Location, Retry-After, Snowmelt-Activity, Snowmelt-Warning, WWW-Authenticate";

const PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// An origin that is none: the message of a wrong `--cors`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no origin: write one like https://example.org, with a port where it has one, or *")]
pub struct NotAnOrigin(String);

/// The sites whose pages may ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cors {
    any: bool,
    named: Vec<String>,
}

/// The kind of a page's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Read,
    Change,
}

impl Cors {
    /// From origins like `https://example.org`; `*` is any.
    ///
    /// # Errors
    /// One of them is none.
    pub fn from_origins(origins: &[String]) -> Result<Self, NotAnOrigin> {
        let mut cors = Self::default();
        for origin in origins {
            let lower = origin.to_ascii_lowercase();
            match lower.split_once("://") {
                _ if lower == "*" => cors.any = true,
                Some((scheme, host)) if is_scheme(scheme) && is_authority(host) => cors.named.push(lower),
                _ => return Err(NotAnOrigin(origin.clone())),
            }
        }
        Ok(cors)
    }

    /// Whether a page of that origin may.
    pub fn allows(&self, origin: &str, wish: Wish) -> bool {
        self.is_named(origin) || (self.any && wish == Wish::Read)
    }

    fn is_named(&self, origin: &str) -> bool {
        self.named.iter().any(|named| named.eq_ignore_ascii_case(origin))
    }

    /// Tells the browser that the page of `origin` may read this answer.
    pub fn mark(&self, origin: Option<&HeaderValue>, answer: &mut HeaderMap) {
        if *self == Self::default() {
            return;
        }
        answer.append(header::VARY, HeaderValue::from_static("Origin"));
        let Some(origin) = origin.filter(|origin| self.allows(&lossy(origin), Wish::Read)) else { return };
        let is_named = self.is_named(&lossy(origin));
        let allowed = if is_named { origin.clone() } else { HeaderValue::from_static("*") };
        answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        answer.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        if is_named {
            answer.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
    }

    /// Answers a browser that asks before it sends a page's request (section 4.8).
    pub fn preflight(&self, asked: &HeaderMap, resource: Resource, answer: &mut HeaderMap) {
        let Some(origin) = asked.get(header::ORIGIN) else { return };
        let asks = asked.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if !asks || !self.allows(&lossy(origin), Wish::Read) {
            return;
        }
        let methods = resource.allow().parse().expect("names of methods");
        answer.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
        answer.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(REQUEST_HEADERS));
        answer.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE_S));
        if asked.contains_key(PRIVATE_NETWORK) {
            answer.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
        }
    }
}

fn lossy(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

fn is_authority(host: &str) -> bool {
    !host.contains('@') && host.parse::<hyper::http::uri::Authority>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cors(origins: &[&str]) -> Cors {
        Cors::from_origins(&origins.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
    }

    fn marked(cors: &Cors, origin: &str) -> [Option<String>; 2] {
        let mut answer = HeaderMap::new();
        cors.mark(Some(&origin.parse().unwrap()), &mut answer);
        let of = |name| answer.get(name).map(lossy);
        [of(header::ACCESS_CONTROL_ALLOW_ORIGIN), of(header::ACCESS_CONTROL_ALLOW_CREDENTIALS)]
    }

    #[test]
    fn a_named_site_has_credentials_and_any_other_none() {
        let both = cors(&["*", "https://Data.example.org:8443"]);
        let named = "https://data.example.org:8443";
        assert_eq!(marked(&both, named), [Some(named.to_owned()), Some("true".to_owned())]);
        assert_eq!(marked(&both, "https://other.org"), [Some("*".to_owned()), None]);
        assert_eq!(marked(&cors(&["https://a.org"]), "https://b.org"), [None, None]);
        assert_eq!(marked(&Cors::default(), "https://b.org"), [None, None]);
    }

    #[test]
    fn changes_need_a_name() {
        let any = cors(&["*"]);
        assert!(any.allows("null", Wish::Read) && !any.allows("null", Wish::Change));
        assert!(cors(&["https://a.org"]).allows("https://a.org", Wish::Change));
        assert!(!cors(&["https://a.org"]).allows("https://a.org.evil.org", Wish::Read));
        assert!(!cors(&["https://a.org"]).allows("http://a.org", Wish::Read));
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        for wrong in ["", "example.org", "https://", "https://a.org/", "https://u@a.org", "://a", "null"] {
            assert!(Cors::from_origins(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_browser_that_asks_before_is_answered() {
        let cors = cors(&["https://a.org"]);
        let mut asked = HeaderMap::new();
        asked.insert(header::ORIGIN, "https://a.org".parse().unwrap());
        let mut answer = HeaderMap::new();
        cors.preflight(&asked, Resource::Update, &mut answer);
        assert!(answer.is_empty(), "OPTIONS without a question");
        asked.insert(header::ACCESS_CONTROL_REQUEST_METHOD, "POST".parse().unwrap());
        cors.preflight(&asked, Resource::Update, &mut answer);
        assert_eq!(answer[header::ACCESS_CONTROL_ALLOW_METHODS], "POST, OPTIONS");
        assert!(!answer.contains_key(ALLOW_PRIVATE_NETWORK));
        asked.insert(header::ORIGIN, "https://b.org".parse().unwrap());
        let mut none = HeaderMap::new();
        cors.preflight(&asked, Resource::Update, &mut none);
        assert!(none.is_empty());
    }
}
