//! Writes out the whole graph.
//!
//! Quads come subject by subject, in the order of subject ids, which for a loaded database is
//! nearly the order of the input. No index begins with the subject and holds whole quads. So (1) a
//! stretch of the subject-predicate index is read; (2) its pairs are looked up together in the
//! predicate-subject index; (3) the quads found are sorted and written. A stretch with many quads
//! is written in parts, each sorted by itself: the order is not guaranteed, but memory is bounded.

use std::collections::{HashMap, HashSet};
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use oxrdf::{GraphNameRef, NamedNodeRef, NamedOrBlankNodeRef, QuadRef};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfSerializer, WriterQuadSerializer};
use snowmelt_store::Columns;

use crate::database::GraphDatabase;
use crate::error::{GraphError, Result};
use crate::index::Index;
use crate::interrupt::Interrupt;
use crate::session::Session;
use crate::session::pairs::Pairs;
use crate::session::view::GraphView;
use crate::term::{Term, TermId, TermKind, TermRef};

/// Pairs read at a time.
const STRETCH: usize = 16_384;
/// Quads written at a time.
const PART: usize = 65_536;

/// Prefixes of the formats that have them.
const PREFIXES: [(&str, &str); 8] = [
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
];

/// A format of dumps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DumpFormat {
    /// N-Quads.
    NQuads,
    /// N-Triples: named graphs are merged into one.
    NTriples,
    /// Turtle: named graphs are merged into one.
    Turtle,
    /// TriG.
    TriG,
    /// JSON-LD, which has no triple terms: they are an error.
    JsonLd,
}

impl DumpFormat {
    /// The format of a short name: nq, nt, ttl, trig, jsonld.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "nq" => Some(DumpFormat::NQuads),
            "nt" => Some(DumpFormat::NTriples),
            "ttl" => Some(DumpFormat::Turtle),
            "trig" => Some(DumpFormat::TriG),
            "jsonld" => Some(DumpFormat::JsonLd),
            _ => None,
        }
    }

    /// Whether quads keep their graph.
    pub fn has_graphs(self) -> bool {
        matches!(self, DumpFormat::NQuads | DumpFormat::TriG | DumpFormat::JsonLd)
    }

    fn rdf(self) -> RdfFormat {
        match self {
            DumpFormat::NQuads => RdfFormat::NQuads,
            DumpFormat::NTriples => RdfFormat::NTriples,
            DumpFormat::Turtle => RdfFormat::Turtle,
            DumpFormat::TriG => RdfFormat::TriG,
            DumpFormat::JsonLd => RdfFormat::JsonLd { profile: JsonLdProfileSet::empty() },
        }
    }

    fn serializer(self) -> RdfSerializer {
        let serializer = RdfSerializer::from_format(self.rdf());
        if matches!(self, DumpFormat::NQuads | DumpFormat::NTriples) {
            return serializer;
        }
        PREFIXES.iter().fold(serializer, |serializer, (name, iri)| {
            serializer.with_prefix(*name, *iri).expect("the prefixes are IRIs")
        })
    }
}

impl GraphDatabase {
    /// Writes all quads to `out` and returns their number. In formats without graphs, a triple that
    /// is in several graphs is written once per graph.
    pub fn dump(self: &Arc<Self>, format: DumpFormat, out: &mut dyn Write) -> Result<u64> {
        self.session()?.dump(format, None, out, &AtomicBool::new(false))
    }
}

impl Session {
    /// Writes the quads that the session sees, and returns their number as [`GraphDatabase::dump`]
    /// does. Reads are charged to the session's account. A view limits the dump to its graphs.
    ///
    /// # Errors
    /// Fails if reading or writing fails, and with [`GraphError::Stopped`] if interrupted.
    pub fn dump(
        mut self,
        format: DumpFormat,
        view: Option<&GraphView>,
        out: &mut dyn Write,
        interrupt: &dyn Interrupt,
    ) -> Result<u64> {
        let graphs = match view {
            Some(view) => {
                let named = self.graphs_of(view, interrupt)?.into_iter().map(|(id, _)| id);
                Some(named.chain(view.has_default().then_some(TermId::DEFAULT_GRAPH)).collect())
            }
            None => None,
        };
        let mut writer = QuadWriter::new(format, graphs, out);
        let mut scan = self.scan(Index::Sp, &[], None);
        let mut pairs = Columns::new(2);
        while scan.next(&mut self, &mut pairs, STRETCH)? {
            if interrupt.is_set() {
                return Err(GraphError::Stopped);
            }
            write_stretch(&mut self, &pairs, &mut writer)?;
            pairs.clear();
        }
        self.flush();
        writer.finish()
    }
}

/// The quads of some pairs of subject and predicate.
fn write_stretch(session: &mut Session, pairs: &Columns, writer: &mut QuadWriter<'_>) -> Result<()> {
    let pairs = Pairs::of_rows(pairs);
    pairs.each_part(session, PART, |session, quads| {
        let quads = quads.map(|quad| quad.map(TermId));
        writer.write(session, quads.filter(|[_, _, _, graph]| writer.has(*graph)).collect())
    })
}

struct QuadWriter<'a> {
    serializer: WriterQuadSerializer<BufWriter<&'a mut dyn Write>>,
    format: DumpFormat,
    /// the graphs to write; `None`: all
    graphs: Option<HashSet<TermId>>,
    quads: u64,
}

impl<'a> QuadWriter<'a> {
    fn new(format: DumpFormat, graphs: Option<HashSet<TermId>>, out: &'a mut dyn Write) -> Self {
        let serializer = format.serializer().for_writer(BufWriter::new(out));
        QuadWriter { serializer, format, graphs, quads: 0 }
    }

    fn has(&self, graph: TermId) -> bool {
        self.graphs.as_ref().is_none_or(|graphs| graphs.contains(&graph))
    }

    /// Decodes and writes quads, sorted by graph (if the format groups by it), subject, predicate
    /// and object.
    fn write(&mut self, session: &mut Session, mut quads: Vec<[TermId; 4]>) -> Result<()> {
        match self.format {
            DumpFormat::TriG | DumpFormat::JsonLd => {
                quads.sort_unstable_by_key(|[s, p, o, g]| [*g, *s, *p, *o])
            }
            _ => quads.sort_unstable(),
        }
        let mut ids: Vec<TermId> =
            quads.iter().flatten().copied().filter(|id| *id != TermId::DEFAULT_GRAPH).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut terms: HashMap<TermId, Term> = HashMap::with_capacity(ids.len());
        session.decode(&ids, |at, term| drop(terms.insert(ids[at], term.to_owned())))?;
        for [subject, predicate, object, graph] in quads {
            let graph_name = match graph {
                TermId::DEFAULT_GRAPH => GraphNameRef::DefaultGraph,
                _ if !self.format.has_graphs() => GraphNameRef::DefaultGraph,
                _ => node(graph, &terms)?.into(),
            };
            if self.format == DumpFormat::JsonLd && object.kind() == TermKind::Triple {
                return Err(GraphError::NotInJsonLd);
            }
            let quad = QuadRef {
                subject: node(subject, &terms)?,
                predicate: named(predicate, &terms)?,
                object: terms[&object].as_ref().into(),
                graph_name,
            };
            self.serializer.serialize_quad(quad).map_err(GraphError::Write)?;
            self.quads += 1;
        }
        Ok(())
    }

    fn finish(self) -> Result<u64> {
        let mut out = self.serializer.finish().map_err(GraphError::Write)?;
        out.flush().map_err(GraphError::Write)?;
        Ok(self.quads)
    }
}

/// A subject or graph name; a literal there means that an index is damaged.
fn node(id: TermId, terms: &HashMap<TermId, Term>) -> Result<NamedOrBlankNodeRef<'_>> {
    match terms[&id].as_ref() {
        TermRef::Iri(iri) => Ok(NamedNodeRef::new_unchecked(iri).into()),
        TermRef::Blank(label) => Ok(oxrdf::BlankNodeRef::new_unchecked(label).into()),
        TermRef::Literal { .. } | TermRef::Triple(_) => Err(GraphError::Misplaced { id }),
    }
}

/// A predicate.
fn named(id: TermId, terms: &HashMap<TermId, Term>) -> Result<NamedNodeRef<'_>> {
    match terms[&id].as_ref() {
        TermRef::Iri(iri) => Ok(NamedNodeRef::new_unchecked(iri)),
        _ => Err(GraphError::Misplaced { id }),
    }
}
