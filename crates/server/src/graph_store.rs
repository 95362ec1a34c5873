//! The SPARQL 1.1 Graph Store HTTP Protocol: whole graphs by GET, HEAD, PUT, POST and DELETE.
//!
//! | request                      | graph                                                          |
//! |------------------------------|----------------------------------------------------------------|
//! | `/graphs?default`            | the default graph                                              |
//! | `/graphs?graph=IRI`          | the graph of this name                                         |
//! | `/graphs/PATH`               | the graph whose name is the request's own URL                  |
//! | POST `/graphs`, one graph    | a new graph; the answer's `Location` is its name, and its URL  |
//! | GET `/graphs`                | all graphs, as TriG, N-Quads or JSON-LD                        |
//! | PUT, POST `/graphs` of these | all graphs become those of the document, or are added to       |
//!
//! A body is taken to the end ([`crate::spool`]) and parsed before the transaction begins: neither
//! a slow client nor a long document keeps a writer waiting, and a body that breaks off changes
//! nothing.

use std::sync::Arc;

use hyper::{HeaderMap, Method, StatusCode, header};
use snowmelt_database::Account;
use snowmelt_graph::load::{Contexts, LoadError, Source, format_of_media_type};
use snowmelt_graph::{GraphDocument, GraphError, GraphView, GraphWrite};
use snowmelt_sparql::{QueryEngine, QueryError};

use crate::multipart::{self, BodyPart};
use crate::refusal::Refusal;
use crate::request::media_type;
use crate::running::Asker;
use crate::spool::Spooled;

/// Where the endpoint is.
pub const PATH: &str = "/graphs";

/// The graph of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Default,
    Named(String),
    /// all of them; a document of one graph becomes a new one
    All,
}

/// Result of a change of a graph.
pub struct Stored {
    /// true when the graph had no quads before
    pub created: bool,
    /// the graph's name, when the server chose it
    pub location: Option<String>,
}

/// The graph that a request is about. `root` is the address that the path is below.
pub fn target(method: &Method, path: &str, query: Option<&str>, root: &str) -> Result<Target, Refusal> {
    let bad = |message: &str| Refusal::new(StatusCode::BAD_REQUEST, message);
    if path.len() > PATH.len() + 1 {
        return named(&format!("{root}{path}"));
    }
    let mut targets = Vec::new();
    for (name, value) in form_urlencoded::parse(query.unwrap_or("").as_bytes()) {
        match name.as_ref() {
            "default" => targets.push(Target::Default),
            "graph" => targets.push(named(&value)?),
            "format" => {}
            // Another name for 'graph' must not mean all graphs.
            other => {
                return Err(bad(&format!(
                    "no parameter {other:?} here: name the graph with 'graph', or 'default'"
                )));
            }
        }
    }
    match targets.len() {
        1 => Ok(targets.remove(0)),
        0 if method == Method::DELETE => {
            Err(bad("which graph? /graphs?default or /graphs?graph=IRI; all at once: the update CLEAR ALL"))
        }
        0 => Ok(Target::All),
        _ => Err(bad("one graph at a time: 'default', or one 'graph'")),
    }
}

fn named(iri: &str) -> Result<Target, Refusal> {
    match oxiri::Iri::parse(iri) {
        Ok(_) => Ok(Target::Named(iri.to_owned())),
        Err(error) => {
            Err(Refusal::new(StatusCode::BAD_REQUEST, format!("{iri} is no absolute IRI: {error}")))
        }
    }
}

/// The query whose answer is the graph, or 404.
pub fn query_of(
    engine: &QueryEngine,
    target: &Target,
    view: Option<&GraphView>,
    account: &Arc<Account>,
) -> Result<String, Refusal> {
    let is_there = |graph| view.is_none_or(|view| view.has(graph));
    match target {
        Target::Default if !is_there(None) => {
            Err(Refusal::new(StatusCode::NOT_FOUND, "there is no default graph"))
        }
        Target::Default => Ok("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }".to_owned()),
        Target::Named(graph) => {
            let session = engine.graph().session().map_err(failed)?;
            let mut session = session.charged_to(account);
            if !is_there(Some(graph)) || !session.has_graph(Some(graph)).map_err(failed)? {
                return Err(not_found(graph));
            }
            Ok(format!("CONSTRUCT {{ ?s ?p ?o }} WHERE {{ GRAPH <{graph}> {{ ?s ?p ?o }} }}"))
        }
        Target::All => unreachable!("a dataset is written out, not queried"),
    }
}

fn not_found(graph: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, format!("there is no graph <{graph}>"))
}

/// A body that is to become a graph, or all graphs.
pub struct Upload<'a> {
    pub headers: &'a HeaderMap,
    pub body: Spooled,
    /// the address of the dataset, as the client names it
    pub root: &'a str,
    /// those that JSON-LD may name
    pub contexts: &'a Contexts,
}

/// PUT (replace) or POST (add): the body's triples become the graph's, or are added to it; the
/// same for all graphs.
pub fn store(
    engine: &QueryEngine,
    target: &Target,
    write: GraphWrite,
    Upload { headers, body, root, contexts }: Upload<'_>,
    asker: &Asker,
) -> Result<Stored, Refusal> {
    let database = engine.graph();
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
    let parts = match multipart::boundary(content_type) {
        Some(boundary) => multipart::parts(body, &boundary, database.database().memory(), &|| {
            database.database().work_dir()
        })?,
        None => vec![BodyPart { content_type: content_type.to_owned(), body }],
    };
    let documents = parts.into_iter().map(|part| document(part, contexts));
    let documents = documents.collect::<Result<Vec<_>, _>>()?;
    let is_dataset = |document: &GraphDocument| document.format.is_some_and(|f| f.supports_datasets());
    let base = format!("{root}{PATH}");
    let new = || format!("{base}/{}", uuid::Uuid::new_v4());
    let (graph, location) = match target {
        Target::All if asker.view.is_some() => return Err(hidden("all graphs")),
        Target::All if documents.iter().all(is_dataset) => {
            return match database.store_dataset(write, documents, &base, &asker.wanted()) {
                Ok(_) => Ok(Stored { created: false, location: None }),
                Err(error) => Err(refusal_of_load(&error)),
            };
        }
        Target::All if write == GraphWrite::Replace => {
            let message = "which graph? /graphs?default or /graphs?graph=IRI; all at once: send TriG, N-Quads or JSON-LD";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
        }
        Target::All => {
            let name = new();
            (Some(name.clone()), Some(name))
        }
        Target::Default => (None, None),
        Target::Named(graph) => (Some(graph.clone()), None),
    };
    check_view(asker, graph.as_deref())?;
    let base = graph.as_deref().unwrap_or(&base);
    let stored = database
        .store_graph(graph.as_deref(), write, documents, base, &asker.wanted())
        .map_err(|error| refusal_of_load(&error))?;
    Ok(Stored { created: !stored.was_there && graph.is_some(), location })
}

/// Refuses to change a graph that is not there for the user.
fn check_view(asker: &Asker, graph: Option<&str>) -> Result<(), Refusal> {
    match asker.view.as_ref().is_none_or(|view| view.has(graph)) {
        true => Ok(()),
        false => {
            Err(hidden(&graph.map_or("the default graph".into(), |graph| format!("the graph <{graph}>"))))
        }
    }
}

fn hidden(what: &str) -> Refusal {
    crate::refusal::refusal(&QueryError::Forbidden { what: what.to_owned() })
}

/// A part of a body as a document of its media type.
fn document(part: BodyPart, contexts: &Contexts) -> Result<GraphDocument, Refusal> {
    let kind = media_type(&part.content_type);
    let format = format_of_media_type(&kind);
    if format.is_none() && !kind.is_empty() && kind != "application/octet-stream" {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!(
                "Content-Type '{kind}' is not that of a graph: send text/turtle, application/n-triples, application/rdf+xml, application/ld+json, application/trig or application/n-quads"
            ),
        ));
    }
    let source = Source::Reader { name: "the request body".to_owned(), read: Box::new(part.body) };
    Ok(GraphDocument { source, format, contexts: contexts.clone() })
}

/// DELETE: the graph is emptied; 404 if it has no quads, the default graph excepted.
pub fn delete(engine: &QueryEngine, target: &Target, asker: &Asker) -> Result<(), Refusal> {
    let graph = match target {
        Target::Default => None,
        Target::Named(graph) => Some(graph.as_str()),
        Target::All => unreachable!("a graph was named"),
    };
    check_view(asker, graph)?;
    match engine.graph().delete_graph(graph, &asker.wanted()) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(not_found(graph.unwrap_or_default())),
        Err(GraphError::Stopped) => Err(crate::refusal::refusal(&QueryError::Cancelled)),
        Err(error) => Err(failed(error)),
    }
}

fn failed(error: impl Into<QueryError>) -> Refusal {
    crate::refusal::refusal(&error.into())
}

fn refusal_of_load(error: &LoadError) -> Refusal {
    let status = match error {
        error if error.is_of_room() => return crate::refusal::no_room(),
        LoadError::Cancelled => return crate::refusal::refusal(&QueryError::Cancelled),
        error if error.is_of_input() => StatusCode::BAD_REQUEST,
        error if error.is_of_memory() => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    Refusal::new(status, format!("{error}{}", crate::refusal::advice_of_load(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str, query: Option<&str>) -> Result<Target, u16> {
        target(&Method::GET, path, query, "http://h:1").map_err(|refusal| refusal.status.as_u16())
    }

    #[test]
    fn which_graph() {
        assert_eq!(get("/graphs", Some("default")), Ok(Target::Default));
        assert_eq!(get("/graphs", Some("graph=urn%3Aa")), Ok(Target::Named("urn:a".into())));
        assert_eq!(get("/graphs/a/b", None), Ok(Target::Named("http://h:1/graphs/a/b".into())));
        for method in [Method::GET, Method::PUT, Method::POST] {
            assert_eq!(target(&method, "/graphs", None, "http://h").unwrap(), Target::All);
        }
        assert_eq!(
            target(&Method::DELETE, "/graphs", None, "http://h").unwrap_err().status,
            StatusCode::BAD_REQUEST
        );
        for query in [
            Some("graph=urn:a&default"),
            Some("graph=relative"),
            Some("graph-uri=urn:a"),
            Some("graph=urn:a&context=urn:b"),
        ] {
            assert_eq!(get("/graphs", query), Err(400), "{query:?}");
        }
    }
}
