//! The operations of the SPARQL 1.1 Protocol: query (section 2.1: GET, POST with a form, POST
//! with the query itself) and update (section 2.2: POST with a form, POST with the update
//! itself).

use hyper::{Method, StatusCode, header};
use snowmelt_database::Priority;

use crate::refusal::Refusal;

/// The media type of an update.
const UPDATE: &str = "application/sparql-update";

/// A client's request.
#[derive(Debug, PartialEq, Eq)]
pub enum Operation {
    /// an answer
    Query(ProtocolRequest),
    /// a change
    Update(ProtocolRequest),
    /// neither: GET without a query
    Nothing,
}

/// Facts about a query that are told instead of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explain {
    /// its plan
    Plan,
    /// its plan, and what each operator did
    Analyze,
}

/// A text and what stands beside it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ProtocolRequest {
    /// the query or the update
    pub text: String,
    /// `default-graph-uri` parameters, or `using-graph-uri`
    pub default_graphs: Vec<String>,
    /// `named-graph-uri` parameters, or `using-named-graph-uri`
    pub named_graphs: Vec<String>,
    /// `timeout` in milliseconds
    pub timeout_ms: Option<u64>,
    /// `threads` that it may use
    pub threads: Option<usize>,
    /// `priority` of its reads
    pub priority: Priority,
    /// `format` of the answer: a name, or a media type
    pub format: Option<String>,
    /// `explain` it
    pub explain: Option<Explain>,
    /// a graph is asked for, whole
    pub triples_are_distinct: bool,
}

/// Parameters of URL and form, and a body that is a text itself.
#[derive(Default)]
struct Parameters {
    queries: Vec<String>,
    updates: Vec<String>,
    graphs: Vec<String>,
    named_graphs: Vec<String>,
    using: Vec<String>,
    using_named: Vec<String>,
    timeout_ms: Option<u64>,
    threads: Option<usize>,
    priority: Priority,
    format: Option<String>,
    explain: Option<Explain>,
}

/// Reads the operation from a request's head and body.
pub fn parse(
    method: &Method,
    url_query: Option<&str>,
    headers: &hyper::HeaderMap,
    body: &[u8],
) -> Result<Operation, Refusal> {
    let mut all = Parameters::default();
    all.add(url_query.unwrap_or("").as_bytes())?;
    if method == Method::POST {
        if !all.updates.is_empty() {
            return Err(bad("an update belongs in the body of a POST, not in the URL"));
        }
        let content_type = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
        match media_type(content_type).as_str() {
            "application/x-www-form-urlencoded" => all.add(body)?,
            "application/sparql-query" => all.queries.push(text(content_type, body)?),
            UPDATE => all.updates.push(text(content_type, body)?),
            other => {
                return Err(Refusal::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    format!(
                        "Content-Type '{other}' is not supported: send application/sparql-query, application/sparql-update or application/x-www-form-urlencoded"
                    ),
                ));
            }
        }
    } else if method != Method::GET && method != Method::HEAD {
        return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "use GET or POST"));
    } else if !all.updates.is_empty() {
        return Err(bad("an update changes the database: send it with POST"));
    }
    all.operation(method == Method::POST)
}

/// The media type of a Content-Type, without parameters, in lower case.
pub fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

/// Whether the body of a request is an update, and nothing else.
pub fn is_plain_update(method: &Method, headers: &hyper::HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    method == Method::POST && content_type.is_some_and(|value| media_type(value) == UPDATE)
}

/// A body that is a text.
fn text(content_type: &str, body: &[u8]) -> Result<String, Refusal> {
    let charset = content_type.split(';').skip(1).find_map(|p| {
        let (name, value) = p.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"').to_owned())
    });
    if let Some(other) = charset.filter(|c| !c.eq_ignore_ascii_case("utf-8")) {
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, format!("charset {other}: send UTF-8")));
    }
    match std::str::from_utf8(body) {
        Ok(text) => Ok(text.to_owned()),
        Err(wrong) => {
            let before = &body[..wrong.valid_up_to()];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            Err(bad(&format!(
                "line {line}: the text in the body is not UTF-8, from byte {} on",
                before.len()
            )))
        }
    }
}

/// A form, of a body or an address, says text: `form_urlencoded` would put U+FFFD in the place of
/// bytes that are none, which stored data would then have.
///
/// # Errors
/// When what its escapes say is not UTF-8.
pub fn check_form(form: &[u8]) -> Result<(), Refusal> {
    let digit = |at: usize| form.get(at).and_then(|byte| (*byte as char).to_digit(16));
    let mut said = Vec::with_capacity(form.len());
    let mut at = 0;
    while at < form.len() {
        match (form[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                said.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                said.push(byte);
                at += 1;
            }
        }
    }
    match std::str::from_utf8(&said) {
        Ok(_) => Ok(()),
        Err(wrong) => {
            let said = said[..wrong.valid_up_to()].rsplit(|byte| *byte == b'&').next().unwrap_or_default();
            let field: String = String::from_utf8_lossy(said).chars().take(60).collect();
            Err(bad(&format!(
                "a parameter is not UTF-8 after {field:?}: encode its text in UTF-8, then its bytes as %XX"
            )))
        }
    }
}

/// Milliseconds of a number that may have a unit.
fn milliseconds(text: &str) -> Option<u64> {
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1),
        (None, Some(number)) => (number, 1000),
        (None, None) => (text, 1),
    };
    number.trim().parse::<u64>().ok()?.checked_mul(unit)
}

impl Parameters {
    fn add(&mut self, form: &[u8]) -> Result<(), Refusal> {
        check_form(form)?;
        for (name, value) in form_urlencoded::parse(form) {
            let list = match name.as_ref() {
                "query" => &mut self.queries,
                "update" => &mut self.updates,
                // A form's field that was left empty.
                "default-graph-uri" | "named-graph-uri" | "using-graph-uri" | "using-named-graph-uri"
                    if value.is_empty() =>
                {
                    continue;
                }
                "default-graph-uri" => &mut self.graphs,
                "named-graph-uri" => &mut self.named_graphs,
                "using-graph-uri" => &mut self.using,
                "using-named-graph-uri" => &mut self.using_named,
                "timeout" => {
                    let wrong = || bad("timeout is not a number of milliseconds, or of seconds as 30s");
                    self.timeout_ms = Some(milliseconds(&value).ok_or_else(wrong)?);
                    continue;
                }
                "threads" => {
                    let threads = value.parse().ok().filter(|threads| *threads > 0);
                    self.threads = Some(threads.ok_or_else(|| bad("threads is not a number of threads"))?);
                    continue;
                }
                "format" | "output" => {
                    self.format = Some(value.into_owned());
                    continue;
                }
                "explain" => {
                    self.explain = match value.as_ref() {
                        "none" => None,
                        "plan" => Some(Explain::Plan),
                        "analyze" => Some(Explain::Analyze),
                        _ => return Err(bad("explain is plan, analyze or none")),
                    };
                    continue;
                }
                "priority" => {
                    self.priority = value.parse().map_err(|message: String| bad(&message))?;
                    continue;
                }
                _ => continue, // other clients send their own parameters along
            };
            list.push(value.into_owned());
        }
        Ok(())
    }

    fn operation(mut self, is_post: bool) -> Result<Operation, Refusal> {
        let (timeout_ms, threads, priority) = (self.timeout_ms, self.threads, self.priority);
        match (self.queries.len(), self.updates.len()) {
            (1, 0) => Ok(Operation::Query(ProtocolRequest {
                text: self.queries.remove(0),
                default_graphs: self.graphs,
                named_graphs: self.named_graphs,
                timeout_ms,
                threads,
                priority,
                format: self.format,
                explain: self.explain,
                ..ProtocolRequest::default()
            })),
            (0, 1) => Ok(Operation::Update(ProtocolRequest {
                text: self.updates.remove(0),
                default_graphs: self.using,
                named_graphs: self.using_named,
                timeout_ms,
                threads,
                priority,
                ..ProtocolRequest::default()
            })),
            (0, 0) if !is_post => Ok(Operation::Nothing),
            (0, 0) => Err(bad("no query and no update: pass it as the parameter 'query' or 'update'")),
            _ => Err(bad("more than one query or update in one request")),
        }
    }
}

fn bad(message: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::HeaderMap;

    fn query(operation: Operation) -> ProtocolRequest {
        match operation {
            Operation::Query(request) => request,
            other => panic!("not a query: {other:?}"),
        }
    }

    /// Every two bytes, as they are and escaped: taken exactly where they are UTF-8.
    #[test]
    fn forms_are_text_or_refused() {
        for first in 0..=255_u8 {
            for second in 0..=255_u8 {
                let is_text = std::str::from_utf8(&[first, second]).is_ok();
                let escaped = format!("query=a&update=b%{first:02x}%{second:02X}c");
                assert_eq!(check_form(escaped.as_bytes()).is_ok(), is_text, "{escaped}");
                if first != b'%' && second != b'%' {
                    let plain = [b"query=", &[first, second][..], b"c"].concat();
                    assert_eq!(check_form(&plain).is_ok(), is_text, "{plain:?}");
                }
            }
        }
        for whole in ["%", "a%2", "%zz%", "%E9%", "100%25+%C3%A9"] {
            let decoded = form_urlencoded::parse(whole.as_bytes()).next().unwrap().0.into_owned();
            let is_text = !decoded.contains('\u{FFFD}');
            assert_eq!(check_form(whole.as_bytes()).is_ok(), is_text, "{whole}");
        }
    }

    #[test]
    fn times_may_have_a_unit() {
        for (text, wanted) in [("1500", 1500), ("500ms", 500), ("30s", 30_000), ("0 s", 0)] {
            assert_eq!(milliseconds(text), Some(wanted), "{text}");
        }
        for text in ["", "s", "ms", "-1s", "1.5s", "1m", "18446744073709551615s"] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }

    fn typed(content_type: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
        headers
    }

    #[test]
    fn the_three_forms() {
        let get =
            parse(&Method::GET, Some("query=ASK%20%7B%7D&default-graph-uri=urn:g"), &HeaderMap::new(), b"")
                .unwrap();
        let get = query(get);
        assert_eq!((get.text.as_str(), get.default_graphs.len()), ("ASK {}", 1));
        let form = parse(
            &Method::POST,
            None,
            &typed("application/x-www-form-urlencoded; charset=utf-8"),
            b"query=ASK+%7B%7D",
        )
        .unwrap();
        assert_eq!(query(form).text, "ASK {}");
        let direct = parse(
            &Method::POST,
            Some("named-graph-uri=urn:n"),
            &typed("application/sparql-query"),
            b"ASK {}",
        )
        .unwrap();
        let direct = query(direct);
        assert_eq!((direct.text.as_str(), direct.named_graphs.len()), ("ASK {}", 1));
    }

    #[test]
    fn updates_come_by_post_alone() {
        let direct = typed("application/sparql-update; charset=utf-8");
        match parse(&Method::POST, Some("using-graph-uri=urn:g"), &direct, b"CLEAR ALL").unwrap() {
            Operation::Update(update) => {
                assert_eq!((update.text.as_str(), update.default_graphs.len()), ("CLEAR ALL", 1));
            }
            other => panic!("{other:?}"),
        }
        let form = typed("application/x-www-form-urlencoded");
        assert!(matches!(parse(&Method::POST, None, &form, b"update=CLEAR+ALL"), Ok(Operation::Update(_))));
        for refused in [
            parse(&Method::GET, Some("update=CLEAR%20ALL"), &HeaderMap::new(), b""),
            parse(&Method::POST, Some("update=CLEAR%20ALL"), &form, b""),
            parse(&Method::POST, None, &form, b"update=a&update=b"),
            parse(&Method::POST, None, &form, b"update=a&query=b"),
            parse(&Method::POST, None, &typed("application/sparql-update"), b"\xFF"),
        ] {
            assert_eq!(refused.unwrap_err().status, StatusCode::BAD_REQUEST);
        }
        let utf16 =
            parse(&Method::POST, None, &typed("application/sparql-update; charset=UTF-16"), b"CLEAR ALL");
        assert_eq!(utf16.unwrap_err().status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }

    #[test]
    fn refusals() {
        assert_eq!(parse(&Method::GET, None, &HeaderMap::new(), b"").unwrap(), Operation::Nothing);
        let none = parse(&Method::POST, None, &typed("application/x-www-form-urlencoded"), b"").unwrap_err();
        assert_eq!(none.status, StatusCode::BAD_REQUEST);
        let twice = parse(&Method::GET, Some("query=a&query=b"), &HeaderMap::new(), b"").unwrap_err();
        assert!(twice.message.contains("more than one"));
        let threads = |value: &str| {
            parse(&Method::GET, Some(&format!("query=a&threads={value}")), &HeaderMap::new(), b"")
        };
        assert_eq!(query(threads("3").unwrap()).threads, Some(3));
        for wrong in ["0", "-1", "many", ""] {
            assert_eq!(threads(wrong).unwrap_err().status, StatusCode::BAD_REQUEST, "{wrong:?}");
        }
        let form = typed("application/x-www-form-urlencoded");
        for (name, update) in [("query", false), ("update", true)] {
            let body = format!("{name}=a&threads=2&priority=low");
            let asked = match parse(&Method::POST, None, &form, body.as_bytes()).unwrap() {
                Operation::Query(asked) if !update => asked,
                Operation::Update(asked) if update => asked,
                other => panic!("{other:?}"),
            };
            assert_eq!((asked.threads, asked.priority), (Some(2), Priority::Low), "{name}");
        }
        let priority = parse(&Method::GET, Some("query=a&priority=urgent"), &HeaderMap::new(), b"");
        assert_eq!(priority.unwrap_err().status, StatusCode::BAD_REQUEST);
        let empty = Some("query=a&default-graph-uri=&named-graph-uri=");
        let empty = query(parse(&Method::GET, empty, &HeaderMap::new(), b"").unwrap());
        assert!(empty.default_graphs.is_empty() && empty.named_graphs.is_empty());
        let media = parse(&Method::POST, None, &typed("text/plain"), b"ASK {}").unwrap_err();
        assert_eq!(media.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        let method = parse(&Method::DELETE, Some("query=a"), &HeaderMap::new(), b"").unwrap_err();
        assert_eq!(method.status, StatusCode::METHOD_NOT_ALLOWED);
    }
}
