//! The result formats: names on the command line, media types on the wire.

use std::fmt;
use std::str::FromStr;

use oxrdfio::RdfFormat;
use sparesults::QueryResultsFormat;

/// The version of RDF that the reader of an answer knows. Each has the terms of those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum RdfVersion {
    /// 1.1: triple terms and base directions cannot be written.
    Classic,
    /// 1.2 Basic: base directions can, triple terms cannot (RDF 1.2 Concepts, section 2).
    Basic,
    /// Any.
    #[default]
    Newest,
}

impl RdfVersion {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Classic, Self::Basic, Self::Newest];

    /// The label of the version, as in the parameter of a media type.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Classic => "1.1",
            Self::Basic => "1.2-basic",
            Self::Newest => "1.2",
        }
    }
}

/// A format of results: of solutions and booleans, of graphs, or of both as the table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResultFormat {
    /// Aligned columns for people; graphs as N-Triples.
    Table,
    /// SPARQL 1.1 Query Results JSON.
    Json,
    /// SPARQL Query Results XML.
    Xml,
    /// SPARQL 1.1 Query Results CSV: values without types.
    Csv,
    /// SPARQL 1.1 Query Results TSV: terms as in Turtle.
    Tsv,
    /// N-Triples.
    NTriples,
    /// Turtle.
    Turtle,
    /// RDF/XML.
    RdfXml,
    /// JSON-LD, expanded.
    JsonLd,
    /// N-Quads; a graph's triples are in the default graph.
    NQuads,
    /// TriG; the same.
    TriG,
    /// A page for people; nothing reads it back.
    Html,
}

impl ResultFormat {
    /// All formats.
    pub const ALL: [ResultFormat; 12] = [
        Self::Table,
        Self::Json,
        Self::Xml,
        Self::Csv,
        Self::Tsv,
        Self::NTriples,
        Self::Turtle,
        Self::RdfXml,
        Self::JsonLd,
        Self::NQuads,
        Self::TriG,
        Self::Html,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Xml => "xml",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::NTriples => "nt",
            Self::Turtle => "ttl",
            Self::RdfXml => "rdf",
            Self::JsonLd => "jsonld",
            Self::NQuads => "nq",
            Self::TriG => "trig",
            Self::Html => "html",
        }
    }

    /// The media type, with charset where the standard wants it.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Table => "text/plain; charset=utf-8",
            Self::Json => "application/sparql-results+json",
            Self::Xml => "application/sparql-results+xml",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Tsv => "text/tab-separated-values; charset=utf-8",
            Self::NTriples => "application/n-triples",
            Self::Turtle => "text/turtle; charset=utf-8",
            Self::RdfXml => "application/rdf+xml",
            Self::JsonLd => "application/ld+json",
            Self::NQuads => "application/n-quads",
            Self::TriG => "application/trig; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
        }
    }

    /// The format of a media type, parameters ignored; also the general types clients ask for.
    #[must_use]
    pub fn from_media_type(media_type: &str) -> Option<Self> {
        let essence = media_type.split(';').next()?.trim().to_ascii_lowercase();
        Some(match essence.as_str() {
            "application/sparql-results+json" | "application/json" | "text/json" => Self::Json,
            "application/sparql-results+xml" | "application/xml" | "text/xml" => Self::Xml,
            "text/csv" => Self::Csv,
            "text/tab-separated-values" => Self::Tsv,
            "application/n-triples" | "text/plain" => Self::NTriples,
            "text/turtle" | "application/x-turtle" => Self::Turtle,
            "application/rdf+xml" => Self::RdfXml,
            "application/ld+json" => Self::JsonLd,
            "application/n-quads" | "text/x-nquads" => Self::NQuads,
            "application/trig" | "application/x-trig" => Self::TriG,
            "text/html" | "application/xhtml+xml" => Self::Html,
            _ => return None,
        })
    }

    /// The newest version of RDF all of whose terms it has a notation for.
    #[must_use]
    pub fn newest_version(self) -> RdfVersion {
        if self == Self::JsonLd { RdfVersion::Basic } else { RdfVersion::Newest }
    }

    /// Whether solutions can be written in it.
    #[must_use]
    pub fn is_for_solutions(self) -> bool {
        matches!(self, Self::Table | Self::Html) || self.solutions().is_some()
    }

    /// Whether graphs can be written in it.
    #[must_use]
    pub fn is_for_graphs(self) -> bool {
        self == Self::Html || self.graph().is_some()
    }

    pub(super) fn solutions(self) -> Option<QueryResultsFormat> {
        match self {
            Self::Json => Some(QueryResultsFormat::Json),
            Self::Xml => Some(QueryResultsFormat::Xml),
            Self::Csv => Some(QueryResultsFormat::Csv),
            Self::Tsv => Some(QueryResultsFormat::Tsv),
            _ => None,
        }
    }

    /// The format of RDF that it is, for graphs.
    #[must_use]
    pub fn graph(self) -> Option<RdfFormat> {
        match self {
            Self::Table | Self::NTriples => Some(RdfFormat::NTriples),
            Self::Turtle => Some(RdfFormat::Turtle),
            Self::RdfXml => Some(RdfFormat::RdfXml),
            Self::JsonLd => RdfFormat::from_extension("jsonld"),
            Self::NQuads => Some(RdfFormat::NQuads),
            Self::TriG => Some(RdfFormat::TriG),
            _ => None,
        }
    }
}

impl fmt::Display for ResultFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ResultFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|f| f.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|f| f.name()).collect();
            format!("unknown result format {name:?}: one of {}", names.join(", "))
        })
    }
}
