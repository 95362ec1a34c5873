//! The SPARQL 1.1 Graph Store HTTP Protocol: whole graphs by GET, HEAD, PUT, POST and DELETE.
//!
//! | request                      | graph                                                          |
//! |------------------------------|----------------------------------------------------------------|
//! | `/graphs?default`            | the default graph                                              |
//! | `/graphs?graph=IRI`          | the graph of this name                                         |
//! | `/graphs/PATH`               | the graph whose name is the request's own URL                  |
//! | POST `/graphs`               | a new graph; the answer's `Location` is its name               |
//!
//! A body is taken to the end before the transaction begins ([`crate::spool`]): a slow client
//! keeps no writer waiting, and a body that breaks off changes nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use hyper::{HeaderMap, Method, StatusCode, header};
use snowmelt_graph::load::{LoadError, Source, format_of_media_type};
use snowmelt_graph::{Changed, Graphs, TermId, TermRef, Transaction};
use snowmelt_sparql::{Engine, QueryError, graph_exists};

use crate::multipart;
use crate::request::{Refusal, media_type};
use crate::spool::Spooled;

/// Where the endpoint is.
pub const PATH: &str = "/graphs";

/// The graph of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Default,
    Named(String),
    /// a name is to be found
    New,
}

/// What was done to a graph.
pub struct Stored {
    /// it had no quads before
    pub created: bool,
    /// its name, when it was found for the client
    pub location: Option<String>,
}

/// The graph that a request is about. `host` is the authority of the request.
pub fn target(method: &Method, path: &str, query: Option<&str>, host: &str) -> Result<Target, Refusal> {
    let bad = |message: &str| (StatusCode::BAD_REQUEST, message.to_owned());
    if path.len() > PATH.len() + 1 {
        return named(&format!("http://{host}{path}"));
    }
    let mut targets = Vec::new();
    for (name, value) in form_urlencoded::parse(query.unwrap_or("").as_bytes()) {
        match name.as_ref() {
            "default" => targets.push(Target::Default),
            "graph" => targets.push(named(&value)?),
            _ => {}
        }
    }
    match targets.len() {
        1 => Ok(targets.remove(0)),
        0 if method == Method::POST => Ok(Target::New),
        0 => Err(bad("which graph? ask for /graphs?default or /graphs?graph=IRI")),
        _ => Err(bad("one graph at a time: 'default', or one 'graph'")),
    }
}

fn named(iri: &str) -> Result<Target, Refusal> {
    match oxiri::Iri::parse(iri) {
        Ok(_) => Ok(Target::Named(iri.to_owned())),
        Err(error) => Err((StatusCode::BAD_REQUEST, format!("{iri} is no absolute IRI: {error}"))),
    }
}

/// The query whose answer is the graph, or 404.
pub fn query_of(engine: &Engine, target: &Target) -> Result<String, Refusal> {
    match target {
        Target::Default => Ok("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }".to_owned()),
        Target::Named(graph) => {
            let mut session = engine.database().session().map_err(failed)?;
            if !graph_exists(&mut session, graph).map_err(failed)? {
                return Err(not_found(graph));
            }
            Ok(format!("CONSTRUCT {{ ?s ?p ?o }} WHERE {{ GRAPH <{graph}> {{ ?s ?p ?o }} }}"))
        }
        Target::New => Err((StatusCode::BAD_REQUEST, "which graph? ask for /graphs?graph=IRI".into())),
    }
}

fn not_found(graph: &str) -> Refusal {
    (StatusCode::NOT_FOUND, format!("there is no graph <{graph}>"))
}

/// PUT (`replace`) or POST: the body's triples become the graph's, or are added to it.
pub fn store(
    engine: &Engine,
    target: &Target,
    replace: bool,
    headers: &HeaderMap,
    body: Spooled,
    base: &str,
    cancel: &AtomicBool,
) -> Result<Stored, Refusal> {
    let (graph, location) = match target {
        Target::Default => (None, None),
        Target::Named(graph) => (Some(graph.clone()), None),
        Target::New => {
            let name = format!("urn:uuid:{}", uuid::Uuid::new_v4());
            (Some(name.clone()), Some(name))
        }
    };
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
    let parts = match multipart::boundary(content_type) {
        Some(boundary) => {
            let store = engine.database().store();
            multipart::parts(body, &boundary, store.memory(), store.dir())?
        }
        None => vec![(content_type.to_owned(), body)],
    };
    let mut txn = begin(engine, cancel)?;
    let mut session = txn.session();
    let id = match &graph {
        None => Some(TermId::DEFAULT_GRAPH),
        Some(graph) => session.resolve_one(TermRef::Iri(graph)).map_err(failed)?,
    };
    let before = match id {
        Some(id) => session.count(snowmelt_graph::Index::Gs, &[id], None).map_err(failed)?,
        None => 0,
    };
    drop(session);
    let mut changed = Changed::default();
    if let (true, Some(id)) = (replace, id) {
        changed += txn.clear(Graphs::One(id), cancel).map_err(failed)?;
    }
    for (content_type, part) in parts {
        let kind = media_type(&content_type);
        let format = format_of_media_type(&kind).filter(|format| !format.supports_datasets());
        if format.is_none() && !kind.is_empty() && kind != "application/octet-stream" {
            return Err((
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                format!(
                    "Content-Type '{kind}' is not that of a graph: send text/turtle, application/n-triples or application/rdf+xml"
                ),
            ));
        }
        let source = Source::Reader { name: "the request body".to_owned(), read: Box::new(part) };
        let inserted = txn.insert_source(
            source,
            format,
            Some(graph.as_deref().unwrap_or(base)),
            graph.as_deref(),
            cancel,
        );
        changed += inserted.map_err(|error| refusal_of_load(&error))?;
    }
    // Replacing a graph by itself is still a change of nothing.
    if changed != Changed::default() {
        txn.commit().map_err(failed)?;
    }
    Ok(Stored { created: before == 0 && graph.is_some(), location })
}

/// Begins a transaction once it is its turn; not if it is cancelled before.
fn begin(engine: &Engine, cancel: &AtomicBool) -> Result<Transaction, Refusal> {
    let begun = engine.database().begin_while(&|| !cancel.load(Ordering::Relaxed)).map_err(failed)?;
    begun.ok_or_else(|| crate::service::refusal(&QueryError::Cancelled))
}

/// DELETE: the graph is emptied; 404 if it has no name that anybody knows.
pub fn delete(engine: &Engine, target: &Target, cancel: &AtomicBool) -> Result<Changed, Refusal> {
    let mut txn = begin(engine, cancel)?;
    let id = match target {
        Target::Default => TermId::DEFAULT_GRAPH,
        Target::New => {
            return Err((StatusCode::BAD_REQUEST, "which graph? ask for /graphs?graph=IRI".into()));
        }
        Target::Named(graph) => {
            let mut session = txn.session();
            if !graph_exists(&mut session, graph).map_err(failed)? {
                return Err(not_found(graph));
            }
            session.resolve_one(TermRef::Iri(graph)).map_err(failed)?.ok_or_else(|| not_found(graph))?
        }
    };
    let changed = txn.clear(Graphs::One(id), cancel).map_err(failed)?;
    if changed != Changed::default() {
        txn.commit().map_err(failed)?;
    }
    Ok(changed)
}

fn failed(error: impl Into<QueryError>) -> Refusal {
    crate::service::refusal(&error.into())
}

fn refusal_of_load(error: &LoadError) -> Refusal {
    let status =
        if error.is_of_input() { StatusCode::BAD_REQUEST } else { StatusCode::INTERNAL_SERVER_ERROR };
    (status, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str, query: Option<&str>) -> Result<Target, u16> {
        target(&Method::GET, path, query, "h:1").map_err(|(status, _)| status.as_u16())
    }

    #[test]
    fn which_graph() {
        assert_eq!(get("/graphs", Some("default")), Ok(Target::Default));
        assert_eq!(get("/graphs", Some("graph=urn%3Aa")), Ok(Target::Named("urn:a".into())));
        assert_eq!(get("/graphs/a/b", None), Ok(Target::Named("http://h:1/graphs/a/b".into())));
        assert_eq!(target(&Method::POST, "/graphs", None, "h").unwrap(), Target::New);
        for query in [None, Some("graph=urn:a&default"), Some("graph=relative")] {
            assert_eq!(get("/graphs", query), Err(400), "{query:?}");
        }
    }
}
