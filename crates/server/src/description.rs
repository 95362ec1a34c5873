//! The description of the service (SPARQL 1.1 Service Description) and of its data (VoID), which
//! `/sparql` gives to those that ask nothing.

use std::io;

use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BlankNodeRef, LiteralRef, NamedNodeRef, NamedOrBlankNodeRef, TermRef, TripleRef};
use oxrdfio::{RdfFormat, RdfSerializer, WriterQuadSerializer};
use snowmelt_graph::{Summary, SummaryPart as Part};

const SD: &str = "http://www.w3.org/ns/sparql-service-description#";
const VOID: &str = "http://rdfs.org/ns/void#";
const FORMATS: &str = "http://www.w3.org/ns/formats/";

/// Most properties, classes and graphs that are listed.
pub const MOST_PARTS: usize = 1000;

const RESULT_FORMATS: [&str; 10] = [
    "SPARQL_Results_JSON",
    "SPARQL_Results_XML",
    "SPARQL_Results_CSV",
    "SPARQL_Results_TSV",
    "N-Triples",
    "Turtle",
    "RDF_XML",
    "JSON-LD",
    "N-Quads",
    "TriG",
];
const INPUT_FORMATS: [&str; 6] = ["N-Triples", "Turtle", "RDF_XML", "JSON-LD", "N-Quads", "TriG"];

/// Services beside the data.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// updates are run
    pub updates: bool,
    /// SERVICE may ask some endpoints
    pub federates: bool,
}

type Writer<'w> = WriterQuadSerializer<&'w mut Vec<u8>>;

/// The triples being written.
struct Description<'w> {
    writer: Writer<'w>,
}

/// The description in a format; `endpoint` is the address that was asked.
pub fn describe(
    endpoint: &str,
    offer: Offer,
    summary: Option<&Summary>,
    format: RdfFormat,
) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let prefixes = [("sd", SD), ("void", VOID), ("formats", FORMATS)];
    let serializer = prefixes.iter().fold(RdfSerializer::from_format(format), |serializer, (name, iri)| {
        serializer.with_prefix(*name, *iri).expect("the prefixes are IRIs")
    });
    let mut of = Description { writer: serializer.for_writer(&mut out) };
    of.service(endpoint, offer)?;
    of.dataset(summary.unwrap_or(&Summary::default()), summary.is_some())?;
    of.writer.finish()?;
    Ok(out)
}

impl Description<'_> {
    fn service(&mut self, endpoint: &str, offer: Offer) -> io::Result<()> {
        let service = BlankNodeRef::new_unchecked("service").into();
        self.is_a(service, SD, "Service")?;
        self.link(service, SD, "endpoint", endpoint)?;
        self.link(service, SD, "supportedLanguage", &format!("{SD}SPARQL11Query"))?;
        if offer.updates {
            self.link(service, SD, "supportedLanguage", &format!("{SD}SPARQL11Update"))?;
        }
        if offer.federates {
            self.link(service, SD, "feature", &format!("{SD}BasicFederatedQuery"))?;
        }
        for format in RESULT_FORMATS {
            self.link(service, SD, "resultFormat", &format!("{FORMATS}{format}"))?;
        }
        for format in INPUT_FORMATS.iter().filter(|_| offer.updates) {
            self.link(service, SD, "inputFormat", &format!("{FORMATS}{format}"))?;
        }
        self.node(service, SD, "defaultDataset", "dataset")
    }

    /// The data; without counts where the client may not see all of it.
    fn dataset(&mut self, summary: &Summary, is_counted: bool) -> io::Result<()> {
        let dataset = BlankNodeRef::new_unchecked("dataset").into();
        self.is_a(dataset, SD, "Dataset")?;
        if !is_counted {
            return Ok(());
        }
        self.is_a(dataset, VOID, "Dataset")?;
        self.count(dataset, "triples", summary.quads)?;
        for (name, count) in
            ["distinctSubjects", "properties", "distinctObjects"].iter().zip(summary.distinct)
        {
            self.count(dataset, name, count)?;
        }
        self.parts(dataset, "propertyPartition", "property", "triples", &summary.properties)?;
        self.parts(dataset, "classPartition", "class", "entities", &summary.classes)?;
        self.node(dataset, SD, "defaultGraph", "default")?;
        let default = BlankNodeRef::new_unchecked("default").into();
        self.is_a(default, SD, "Graph")?;
        if summary.is_plain {
            self.count(default, "triples", summary.quads)?;
        }
        for (number, Part { name, count }) in summary.graphs.iter().enumerate() {
            let (named, graph) = (format!("named{number}"), format!("graph{number}"));
            self.node(dataset, SD, "namedGraph", &named)?;
            let named = BlankNodeRef::new_unchecked(&named).into();
            self.is_a(named, SD, "NamedGraph")?;
            self.link(named, SD, "name", name)?;
            self.node(named, SD, "graph", &graph)?;
            let graph = BlankNodeRef::new_unchecked(&graph).into();
            self.is_a(graph, SD, "Graph")?;
            self.count(graph, "distinctSubjects", *count)?;
        }
        Ok(())
    }

    fn parts(
        &mut self,
        of: NamedOrBlankNodeRef<'_>,
        link: &str,
        what: &str,
        counted: &str,
        parts: &[Part],
    ) -> io::Result<()> {
        for (number, Part { name, count }) in parts.iter().enumerate() {
            let label = format!("{what}{number}");
            self.node(of, VOID, link, &label)?;
            let part = BlankNodeRef::new_unchecked(&label).into();
            self.link(part, VOID, what, name)?;
            self.count(part, counted, *count)?;
        }
        Ok(())
    }

    fn is_a(&mut self, of: NamedOrBlankNodeRef<'_>, space: &str, class: &str) -> io::Result<()> {
        let class = format!("{space}{class}");
        self.write(of, rdf::TYPE, NamedNodeRef::new_unchecked(&class).into())
    }

    fn link(&mut self, of: NamedOrBlankNodeRef<'_>, space: &str, name: &str, to: &str) -> io::Result<()> {
        let name = format!("{space}{name}");
        self.write(of, NamedNodeRef::new_unchecked(&name), NamedNodeRef::new_unchecked(to).into())
    }

    fn node(&mut self, of: NamedOrBlankNodeRef<'_>, space: &str, name: &str, label: &str) -> io::Result<()> {
        let name = format!("{space}{name}");
        self.write(of, NamedNodeRef::new_unchecked(&name), BlankNodeRef::new_unchecked(label).into())
    }

    fn count(&mut self, of: NamedOrBlankNodeRef<'_>, name: &str, count: u64) -> io::Result<()> {
        let (name, count) = (format!("{VOID}{name}"), count.to_string());
        let count = LiteralRef::new_typed_literal(&count, xsd::INTEGER);
        self.write(of, NamedNodeRef::new_unchecked(&name), count.into())
    }

    fn write(
        &mut self,
        subject: NamedOrBlankNodeRef<'_>,
        predicate: NamedNodeRef<'_>,
        object: TermRef<'_>,
    ) -> io::Result<()> {
        self.writer.serialize_triple(TripleRef::new(subject, predicate, object))
    }
}
