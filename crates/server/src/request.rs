//! The query operation of the SPARQL 1.1 Protocol (section 2.1): GET, POST with a form, POST with the query itself.

use hyper::{Method, StatusCode, header};

/// What a client asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct QueryRequest {
    /// the query text
    pub query: String,
    /// `default-graph-uri` parameters
    pub default_graphs: Vec<String>,
    /// `named-graph-uri` parameters
    pub named_graphs: Vec<String>,
    /// `timeout` in milliseconds
    pub timeout_ms: Option<u64>,
}

/// A refusal: status and one line that says what to do.
pub type Refusal = (StatusCode, String);

/// Reads the operation from a request's head and body.
pub fn parse(
    method: &Method,
    url_query: Option<&str>,
    headers: &hyper::HeaderMap,
    body: &[u8],
) -> Result<QueryRequest, Refusal> {
    let mut request = QueryRequest::default();
    let mut queries = 0;
    parameters(&mut request, &mut queries, url_query.unwrap_or("").as_bytes())?;
    if method == Method::POST {
        let content_type = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
        match content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase().as_str() {
            "application/x-www-form-urlencoded" => parameters(&mut request, &mut queries, body)?,
            "application/sparql-query" => {
                request.query = String::from_utf8(body.to_vec())
                    .map_err(|_| bad("the query in the body is not UTF-8"))?;
                queries += 1;
            }
            other => {
                return Err((
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    format!(
                        "Content-Type '{other}' is not supported: send application/sparql-query or application/x-www-form-urlencoded"
                    ),
                ));
            }
        }
    } else if method != Method::GET && method != Method::HEAD {
        return Err((StatusCode::METHOD_NOT_ALLOWED, "use GET or POST".into()));
    }
    match queries {
        1 => Ok(request),
        0 => Err(bad("no query: pass it as the parameter 'query'")),
        _ => Err(bad("more than one query in one request")),
    }
}

fn bad(message: &str) -> Refusal {
    (StatusCode::BAD_REQUEST, message.into())
}

fn parameters(request: &mut QueryRequest, queries: &mut u32, form: &[u8]) -> Result<(), Refusal> {
    for (name, value) in form_urlencoded::parse(form) {
        match name.as_ref() {
            "query" => {
                request.query = value.into_owned();
                *queries += 1;
            }
            "default-graph-uri" => request.default_graphs.push(value.into_owned()),
            "named-graph-uri" => request.named_graphs.push(value.into_owned()),
            "timeout" => {
                let ms = value.parse().map_err(|_| bad("timeout is not a number of milliseconds"))?;
                request.timeout_ms = Some(ms);
            }
            "update" => return Err(bad("updates are not supported by this endpoint yet")),
            _ => {} // other clients send their own parameters along
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::HeaderMap;

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
        assert_eq!((get.query.as_str(), get.default_graphs.len()), ("ASK {}", 1));
        let form = parse(
            &Method::POST,
            None,
            &typed("application/x-www-form-urlencoded; charset=utf-8"),
            b"query=ASK+%7B%7D",
        )
        .unwrap();
        assert_eq!(form.query, "ASK {}");
        let direct = parse(
            &Method::POST,
            Some("named-graph-uri=urn:n"),
            &typed("application/sparql-query"),
            b"ASK {}",
        )
        .unwrap();
        assert_eq!((direct.query.as_str(), direct.named_graphs.len()), ("ASK {}", 1));
    }

    #[test]
    fn refusals() {
        let none = parse(&Method::GET, None, &HeaderMap::new(), b"").unwrap_err();
        assert_eq!(none.0, StatusCode::BAD_REQUEST);
        let twice = parse(&Method::GET, Some("query=a&query=b"), &HeaderMap::new(), b"").unwrap_err();
        assert!(twice.1.contains("more than one"));
        let media = parse(&Method::POST, None, &typed("text/plain"), b"ASK {}").unwrap_err();
        assert_eq!(media.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        let method = parse(&Method::DELETE, Some("query=a"), &HeaderMap::new(), b"").unwrap_err();
        assert_eq!(method.0, StatusCode::METHOD_NOT_ALLOWED);
    }
}
