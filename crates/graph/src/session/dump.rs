//! Writes out the whole graph.
//!
//! Quads come subject by subject, in the order of subject ids, which for a loaded database is
//! nearly the order of the input. No index begins with the subject and holds whole quads. So (1) a
//! stretch of the subject-predicate index is read; (2) its pairs are looked up together in the
//! predicate-subject index; (3) the quads found are sorted; (4) some at a time are decoded and
//! written, as many as the bytes of their terms allow. A stretch with many quads is written in
//! parts, each sorted by itself: the order is not guaranteed, but memory is bounded.

use std::collections::{HashMap, HashSet};
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use oxrdf::{GraphNameRef, NamedNodeRef, NamedOrBlankNodeRef, QuadRef, Triple};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfSerializer, WriterQuadSerializer};
use snowmelt_store::{Charge, Columns, StoreError};

use crate::database::GraphDatabase;
use crate::error::{GraphError, Result};
use crate::index::Index;
use crate::interrupt::Interrupt;
use crate::namespaces::Namespaces;
use crate::session::Session;
use crate::session::decode::TermSink;
use crate::session::pairs::Pairs;
use crate::session::view::GraphView;
use crate::term::{Term, TermId, TermKind, TermRef, UNDETERMINED};

/// Pairs read at a time.
const STRETCH: usize = 16_384;
/// Quads sorted at a time.
const PART: usize = 65_536;
/// Quads of those decoded together at first; as many as there are at most.
const TOGETHER: usize = 4096;
/// Bytes of their terms beyond which fewer are decoded together.
const TERM_BYTES: usize = 16 << 20;
/// Bytes of them beyond which they are a part of the memory budget.
const UNCHARGED_BYTES: usize = 4 << 20;

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

    /// A writer with the prefixes that are kept, and well-known ones where their names are free.
    fn serializer(self, mut namespaces: Namespaces) -> RdfSerializer {
        PREFIXES.iter().for_each(|(name, iri)| namespaces.offer(name, iri));
        namespaces.serializer(self.rdf())
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
        let graphs = self.seen_graphs(view, interrupt)?;
        // prefixes tell of graphs that a view may hide
        let namespaces = if view.is_some() { Namespaces::default() } else { self.graph().namespaces() };
        let serializer = format.serializer(namespaces).for_writer(BufWriter::new(out));
        let charge = self.graph().database().memory().charge("a dump");
        let mut writer =
            QuadWriter { serializer, format, graphs, quads: 0, together: Together::default(), charge };
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

/// The terms of some quads.
type QuadTerms = HashMap<TermId, Term>;

/// Gathers the terms of some quads, as long as they are not too long to be held together.
struct DumpSink<'a> {
    ids: &'a [TermId],
    terms: QuadTerms,
    bytes: usize,
    /// terms of one quad may be longer, as far as there is memory
    is_one: bool,
    charge: &'a mut Charge,
    ended: Option<DumpEnd>,
}

/// Why terms are not held together.
enum DumpEnd {
    TooLong,
    NoMemory(StoreError),
}

impl TermSink for DumpSink<'_> {
    fn room(&mut self, bytes: usize) -> bool {
        let bytes = self.bytes + bytes;
        if bytes > TERM_BYTES && !self.is_one {
            self.ended = Some(DumpEnd::TooLong);
        } else if bytes > UNCHARGED_BYTES
            && let Err(error) = self.charge.set(bytes as u64)
        {
            self.ended = Some(DumpEnd::NoMemory(error));
        }
        self.ended.is_none()
    }

    fn take(&mut self, at: usize, term: TermRef<'_>) -> bool {
        let term = loadable(term);
        self.bytes += term.bytes();
        self.terms.insert(self.ids[at], term);
        self.room(0)
    }
}

/// A copy of a term that can be read again. Programs before took literals with a datatype of tagged
/// texts and without a tag, which no format has: their language is undetermined.
fn loadable(term: TermRef<'_>) -> Term {
    if term.untagged().is_none() {
        return term.to_owned();
    }
    let (mut levels, mut at) = (Vec::new(), term);
    while let TermRef::Triple(triple) = at {
        levels.push((&triple.subject, &triple.predicate));
        at = triple.object.as_ref().into();
    }
    let TermRef::Literal { lexical, .. } = at else { return term.to_owned() };
    let tagged = TermRef::tagged(lexical, UNDETERMINED);
    let mut object = oxrdf::Term::from(tagged);
    for (subject, predicate) in levels.into_iter().rev() {
        object = Triple { subject: subject.clone(), predicate: predicate.clone(), object }.into();
    }
    object.into()
}

struct QuadWriter<'a> {
    serializer: WriterQuadSerializer<BufWriter<&'a mut dyn Write>>,
    format: DumpFormat,
    /// the graphs to write; `None`: all
    graphs: Option<HashSet<TermId>>,
    quads: u64,
    together: Together,
    /// of the terms that are held, where they are large
    charge: Charge,
}

/// How many quads are decoded together. Terms that many quads have are decoded once for each such
/// part, so there are few parts where terms are short.
struct Together {
    next: usize,
    most: usize,
}

impl Default for Together {
    fn default() -> Self {
        Self { next: TOGETHER, most: PART }
    }
}

impl Together {
    /// After so many bytes of terms.
    fn decoded(&mut self, bytes: usize) {
        if bytes < TERM_BYTES / 2 {
            self.next = (2 * self.next).min(self.most);
        }
    }

    /// After so many quads were too many.
    fn ended(&mut self, quads: usize, end: &DumpEnd) {
        self.next = (quads / 2).max(1);
        if matches!(end, DumpEnd::NoMemory(_)) {
            self.most = self.next;
        }
    }
}

impl QuadWriter<'_> {
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
        let mut rest = &quads[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(self.together.next.min(rest.len()));
            if let Some((terms, bytes)) = self.terms(session, now)? {
                self.write_decoded(now, &terms)?;
                self.together.decoded(bytes);
                rest = later;
            }
            if self.charge.bytes() > 0 {
                self.charge.set(0)?;
            }
        }
        Ok(())
    }

    /// The terms of some quads, and their bytes; `None` if they are too long to be held together.
    fn terms(&mut self, session: &mut Session, quads: &[[TermId; 4]]) -> Result<Option<(QuadTerms, usize)>> {
        let mut ids: Vec<TermId> =
            quads.iter().flatten().copied().filter(|id| *id != TermId::DEFAULT_GRAPH).collect();
        ids.sort_unstable();
        ids.dedup();
        let terms = HashMap::with_capacity(ids.len());
        let (is_one, charge) = (quads.len() == 1, &mut self.charge);
        let mut sink = DumpSink { ids: &ids, terms, bytes: 0, is_one, charge, ended: None };
        session.decode_into(&ids, &mut sink)?;
        match sink.ended {
            None => Ok(Some((sink.terms, sink.bytes))),
            Some(DumpEnd::NoMemory(error)) if is_one => Err(GraphError::Store(error)),
            Some(end) => {
                self.together.ended(quads.len(), &end);
                Ok(None)
            }
        }
    }

    fn write_decoded(&mut self, quads: &[[TermId; 4]], terms: &QuadTerms) -> Result<()> {
        for &[subject, predicate, object, graph] in quads {
            let graph_name = match graph {
                TermId::DEFAULT_GRAPH => GraphNameRef::DefaultGraph,
                _ if !self.format.has_graphs() => GraphNameRef::DefaultGraph,
                _ => node(graph, terms)?.into(),
            };
            if self.format == DumpFormat::JsonLd && object.kind() == TermKind::Triple {
                return Err(GraphError::NotInJsonLd);
            }
            let quad = QuadRef {
                subject: node(subject, terms)?,
                predicate: named(predicate, terms)?,
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
fn node(id: TermId, terms: &QuadTerms) -> Result<NamedOrBlankNodeRef<'_>> {
    match terms[&id].as_ref() {
        TermRef::Iri(iri) => Ok(NamedNodeRef::new_unchecked(iri).into()),
        TermRef::Blank(label) => Ok(oxrdf::BlankNodeRef::new_unchecked(label).into()),
        TermRef::Literal { .. } | TermRef::Triple(_) => Err(GraphError::Misplaced { id }),
    }
}

/// A predicate.
fn named(id: TermId, terms: &QuadTerms) -> Result<NamedNodeRef<'_>> {
    match terms[&id].as_ref() {
        TermRef::Iri(iri) => Ok(NamedNodeRef::new_unchecked(iri)),
        _ => Err(GraphError::Misplaced { id }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quads decoded together once some parts had so many bytes of terms for each quad.
    fn together(quad_bytes: usize) -> usize {
        let mut together = Together::default();
        for _ in 0..20 {
            match together.next * quad_bytes {
                bytes if bytes > TERM_BYTES => together.ended(together.next, &DumpEnd::TooLong),
                bytes => together.decoded(bytes),
            }
        }
        together.next
    }

    #[test]
    fn as_many_are_decoded_together_as_have_few_bytes() {
        assert_eq!(together(128), PART);
        assert_eq!(together(300), PART / 2);
        assert_eq!(together(1 << 20), 16);
        assert_eq!(together(17 << 20), 1);
    }

    #[test]
    fn without_memory_fewer_are_decoded_together_from_then_on() {
        let mut together = Together::default();
        let why = StoreError::Memory { what: "a dump".to_owned(), wanted: 1, free: 0, total: 1 };
        together.ended(4096, &DumpEnd::NoMemory(why));
        together.decoded(1);
        assert_eq!(together.next, 2048);
    }
}
