//! Answers that a client has already (RFC 9110, section 13).
//!
//! An ETag names the state of the database and the form of the answer, weakly: the same rows may
//! come in another order. It is a hash under a secret, so it does not tell how many states there
//! were before. A state that was not seen before is taken to be as young as the moment
//! in which it was seen. Answers to queries that call NOW, RAND and the like have no ETag.

use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::header::{self, HeaderMap, HeaderValue};
use sha2::{Digest, Sha256};

/// Caches ask whether an answer still holds.
const ASK_ALWAYS: HeaderValue = HeaderValue::from_static("no-cache");
/// The answer is not kept.
const KEEP_NEVER: HeaderValue = HeaderValue::from_static("no-store");
/// Request headers that an answer depends on.
pub const VARIES: HeaderValue = HeaderValue::from_static("Accept, Accept-Encoding");
/// A time in whole seconds cannot tell younger states apart.
const LEAST_AGE: Duration = Duration::from_secs(2);

/// The states of a database, as its clients see them.
pub struct States {
    /// Tells the states of different databases and servers apart, and keeps clients from guessing
    /// the number of a state.
    secret: [u8; 32],
    /// The newest one seen, and since when.
    newest: Mutex<(u64, SystemTime)>,
}

/// The answer that a client has.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    tags: Option<String>,
    since: Option<SystemTime>,
}

impl Kept {
    /// As the request says.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let all = headers.get_all(header::IF_NONE_MATCH).iter();
        let tags: Vec<String> = all.map(|tag| String::from_utf8_lossy(tag.as_bytes()).into_owned()).collect();
        let since = headers.get(header::IF_MODIFIED_SINCE).and_then(|time| time.to_str().ok());
        Self {
            tags: (!tags.is_empty()).then(|| tags.join(",")),
            since: since.and_then(|time| httpdate::parse_http_date(time).ok()),
        }
    }

    /// Whether that is what the answer would be. Tags go before times (section 13.2.2).
    fn is(&self, tag: &str, modified: SystemTime) -> bool {
        match (&self.tags, self.since) {
            (Some(tags), _) => {
                let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
                tags.split(',').any(|one| one.trim() == "*" || opaque(one) == opaque(tag))
            }
            (None, Some(since)) => modified <= since && is_old(modified),
            (None, None) => false,
        }
    }
}

fn is_old(modified: SystemTime) -> bool {
    SystemTime::now().duration_since(modified).is_ok_and(|age| age >= LEAST_AGE)
}

impl States {
    /// Of a database that was changed last at that time.
    pub fn new(txn: u64, modified: SystemTime) -> Self {
        Self { secret: rand::random(), newest: Mutex::new((txn, modified)) }
    }

    /// A name for a state, for those who must not learn how many there were.
    pub fn name(&self, txn: u64) -> String {
        let hash = Sha256::new_with_prefix(self.secret).chain_update(txn.to_le_bytes()).finalize();
        hash[..12].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Since when there is a state, in whole seconds, as far as it is known.
    fn modified(&self, txn: u64) -> SystemTime {
        let mut newest = self.newest.lock().expect("no holder panics");
        if txn > newest.0 {
            *newest = (txn, SystemTime::now());
        }
        let since = newest.1.duration_since(UNIX_EPOCH).unwrap_or_default();
        UNIX_EPOCH + Duration::from_secs(since.as_secs())
    }

    /// Headers of an answer that depends on nothing but the state and its form; whether it is what
    /// the client has.
    pub fn mark(&self, txn: u64, form: &str, kept: &Kept, headers: &mut HeaderMap) -> bool {
        let (tag, modified) = (format!("W/\"{}-{form}\"", self.name(txn)), self.modified(txn));
        let is_kept = kept.is(&tag, modified);
        headers.insert(header::ETAG, tag.parse().expect("hexadecimal digits and names"));
        if is_old(modified) {
            let time = httpdate::fmt_http_date(modified).parse().expect("a date");
            headers.insert(header::LAST_MODIFIED, time);
        }
        headers.insert(header::CACHE_CONTROL, ASK_ALWAYS);
        headers.insert(header::VARY, VARIES);
        is_kept
    }
}

/// Headers of an answer that is another one each time.
pub fn mark_volatile(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, KEEP_NEVER);
    headers.insert(header::VARY, VARIES);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(name: header::HeaderName, value: &str) -> Kept {
        Kept::from_headers(&HeaderMap::from_iter([(name, value.parse().unwrap())]))
    }

    #[test]
    fn a_tag_is_of_a_state_and_a_form() {
        let states = States::new(7, UNIX_EPOCH);
        let tag_of = |txn, form| {
            let mut headers = HeaderMap::new();
            assert!(!states.mark(txn, form, &Kept::default(), &mut headers));
            headers[header::ETAG].to_str().unwrap().to_owned()
        };
        let tag = tag_of(7, "json");
        let is_kept = |value: &str, txn, form| {
            states.mark(txn, form, &kept(header::IF_NONE_MATCH, value), &mut HeaderMap::new())
        };
        assert!(is_kept(&tag, 7, "json") && is_kept("*", 7, "json"));
        assert!(is_kept(&format!("\"x\", {}", tag.trim_start_matches("W/")), 7, "json"), "weakly the same");
        assert!(!is_kept(&tag, 8, "json") && !is_kept(&tag, 7, "csv"));
        assert_ne!(States::new(7, UNIX_EPOCH).name(7), states.name(7), "another server");
    }

    #[test]
    fn times_count_only_when_they_say_something() {
        let old = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let states = States::new(7, old);
        let is_kept = |txn, since: SystemTime| {
            let kept = kept(header::IF_MODIFIED_SINCE, &httpdate::fmt_http_date(since));
            states.mark(txn, "json", &kept, &mut HeaderMap::new())
        };
        assert!(is_kept(7, old) && !is_kept(7, old - Duration::from_secs(1)));
        assert!(!is_kept(8, SystemTime::now() + Duration::from_secs(9)), "this second is not over");
        let mut headers = HeaderMap::new();
        states.mark(8, "json", &Kept::default(), &mut headers);
        assert!(!headers.contains_key(header::LAST_MODIFIED));
    }
}
