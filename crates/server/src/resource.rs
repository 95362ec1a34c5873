//! The resources of the server, and the methods that each takes.

use hyper::Method;

use crate::graph_store;
use crate::tokens::Rights;

/// A resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// queries and updates; without either, the description of the service
    Sparql,
    /// queries
    Query,
    /// updates
    Update,
    /// graphs, and all of them together
    Graphs,
    Stats,
    StatsReset,
    Metrics,
    /// the requests that run
    Requests,
    /// one of them, by its number
    Request(u64),
    Ready,
    Health,
    Index,
    /// the list of datasets
    Datasets,
    /// one of them: made, renamed, dropped, copied
    Dataset,
}

const GET: &[Method] = &[Method::GET, Method::HEAD];
const POST: &[Method] = &[Method::POST];
const GET_POST: &[Method] = &[Method::GET, Method::HEAD, Method::POST];
const GET_DELETE: &[Method] = &[Method::GET, Method::HEAD, Method::DELETE];
const PUT_POST_DELETE: &[Method] = &[Method::PUT, Method::POST, Method::DELETE];
const GRAPH: &[Method] = &[Method::GET, Method::HEAD, Method::PUT, Method::POST, Method::DELETE];

impl Resource {
    /// The resource at a path.
    pub fn at(path: &str) -> Option<Self> {
        Some(match path {
            "/sparql" | "/sparql/" => Self::Sparql,
            "/query" => Self::Query,
            "/update" => Self::Update,
            "/stats" => Self::Stats,
            "/stats/reset" => Self::StatsReset,
            "/metrics" => Self::Metrics,
            "/requests" | "/queries" => Self::Requests,
            "/ready" => Self::Ready,
            "/health" => Self::Health,
            "/" => Self::Index,
            "/datasets" => Self::Datasets,
            path if path.starts_with("/datasets/") => Self::Dataset,
            graph_store::PATH => Self::Graphs,
            path if path.starts_with("/graphs/") => Self::Graphs,
            path => {
                let number = path.strip_prefix("/requests/").or_else(|| path.strip_prefix("/queries/"));
                Self::Request(number?.parse().ok()?)
            }
        })
    }

    /// Whether it is one of each dataset.
    pub fn is_of_dataset(self) -> bool {
        matches!(
            self,
            Self::Sparql | Self::Query | Self::Update | Self::Graphs | Self::Stats | Self::StatsReset
        )
    }

    /// Methods it takes, OPTIONS aside, which all do.
    pub fn methods(self) -> &'static [Method] {
        match self {
            Self::Sparql | Self::Query => GET_POST,
            Self::Update | Self::StatsReset => POST,
            Self::Graphs => GRAPH,
            Self::Request(_) => GET_DELETE,
            Self::Dataset => PUT_POST_DELETE,
            Self::Datasets
            | Self::Stats
            | Self::Metrics
            | Self::Requests
            | Self::Ready
            | Self::Health
            | Self::Index => GET,
        }
    }

    /// The rights that a method needs; an update that is sent to `/sparql` needs more. Nothing is
    /// told to those that ask whether the server is there.
    pub fn needs(self, method: &Method) -> Option<Rights> {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        match self {
            Self::Ready | Self::Health | Self::Index => None,
            Self::Sparql | Self::Query | Self::Datasets => Some(Rights::Read),
            Self::Graphs if reads => Some(Rights::Read),
            Self::Graphs | Self::Update => Some(Rights::Write),
            Self::Dataset
            | Self::Stats
            | Self::StatsReset
            | Self::Metrics
            | Self::Requests
            | Self::Request(_) => Some(Rights::Admin),
        }
    }

    /// The value of an Allow header.
    pub fn allow(self) -> String {
        let methods = self.methods().iter().chain([&Method::OPTIONS]);
        methods.map(Method::as_str).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_methods() {
        assert_eq!(Resource::at("/graphs/a/b"), Some(Resource::Graphs));
        assert_eq!(Resource::at("/requests/17"), Some(Resource::Request(17)));
        for nowhere in ["", "/sparql/x", "/graphsx", "/requests/", "/requests/x", "//"] {
            assert_eq!(Resource::at(nowhere), None, "{nowhere}");
        }
        assert_eq!(Resource::Update.allow(), "POST, OPTIONS");
        assert_eq!(Resource::Graphs.allow(), "GET, HEAD, PUT, POST, DELETE, OPTIONS");
    }
}
