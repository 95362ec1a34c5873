//! Quads by pattern, without SPARQL.
//!
//! | bound | read |
//! |---|---|
//! | predicate | a range of PSOG; of POSG where the object is bound and the subject is not |
//! | subject | its predicates from SP, then a range of PSOG for each |
//! | object | its predicates from OP, then a range of POSG for each |
//! | graph alone | its subjects from GS, some at a time, then their quads |
//! | nothing | all of PSOG |
//!
//! Terms that the range of an index cannot bound are compared row by row.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term};
use snowmelt_graph::{Columns, Index, Keys, Levels, Scan, Session, TermId, TermRef, each_quad_of};

use crate::error::{Error, Result};
use crate::value::to_oxrdf;

/// Rows taken from an index together, at most.
const PART_ROWS: usize = 1024;
/// Subjects of a graph looked up together.
const PART_SUBJECTS: usize = 256;
/// Bytes of text decoded ahead of the caller, about.
const DECODED_BYTES: usize = 1 << 18;

/// A pattern of quads: it matches those that have every term that is given.
///
/// ```
/// use snowmelt::{GraphName, NamedNode, QuadPattern};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let db = snowmelt::Database::in_memory()?;
/// # db.update("INSERT DATA { <urn:a> <urn:age> 30 . GRAPH <urn:g> { <urn:a> <urn:age> 31 } }")?;
/// let age = Some(NamedNode::new("urn:age")?);
/// let ages = QuadPattern { predicate: age, ..QuadPattern::default() };
/// assert_eq!(db.quads(&ages)?.count(), 2);
/// let here = QuadPattern { graph: Some(GraphName::DefaultGraph), ..ages };
/// for quad in db.quads(&here)? {
///     println!("{}", quad?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct QuadPattern {
    /// The subject, if it is given.
    pub subject: Option<NamedOrBlankNode>,
    /// The predicate.
    pub predicate: Option<NamedNode>,
    /// The object.
    pub object: Option<Term>,
    /// The graph; without, quads of all graphs are meant.
    pub graph: Option<GraphName>,
}

impl From<Quad> for QuadPattern {
    fn from(quad: Quad) -> Self {
        QuadPattern {
            subject: Some(quad.subject),
            predicate: Some(quad.predicate),
            object: Some(quad.object),
            graph: Some(quad.graph_name),
        }
    }
}

/// The quads of a pattern, in the order of the index that has them. They are read as they are
/// asked for, all from one state of the database; after an error there are no more.
///
/// ```
/// # let db = snowmelt::Database::in_memory()?;
/// # db.update("INSERT DATA { <urn:ann> <urn:age> 30 }")?;
/// let all = db.quads(&snowmelt::QuadPattern::default())?;
/// assert_eq!(all.collect::<Result<Vec<_>, _>>()?.len(), 1);
/// # Ok::<(), snowmelt::Error>(())
/// ```
pub struct Quads {
    session: Session,
    way: Way,
    /// ids of the given terms
    given: [Option<u64>; 4],
    decoded: VecDeque<Quad>,
    /// rows taken together: few at first, and where texts are long
    at_once: usize,
    cancel: Option<Arc<AtomicBool>>,
}

/// Where rows come from.
enum Way {
    /// ranges of an index, one after the other
    Ranges { index: Index, prefixes: VecDeque<Vec<TermId>>, scan: Option<Scan> },
    /// the subjects of a graph
    Subjects(Scan),
    /// at the end, or after an error
    Done,
}

impl Quads {
    pub(crate) fn new(mut session: Session, pattern: &QuadPattern) -> Result<Self> {
        let given = ids_of(&mut session, pattern)?;
        let way = match given {
            Some(given) => way(&mut session, given)?,
            None => Way::Done,
        };
        let given = given.unwrap_or_default();
        Ok(Quads { session, way, given, decoded: VecDeque::new(), at_once: 16, cancel: None })
    }

    /// Ends in [`Error::Cancelled`] once the flag is set, by another thread.
    #[must_use]
    pub fn cancel(mut self, flag: Arc<AtomicBool>) -> Self {
        self.cancel = Some(flag);
        self
    }

    /// Whether there is one; no term is read.
    pub(crate) fn exists(mut self) -> Result<bool> {
        Ok(self.part()?.is_some())
    }

    fn read(&mut self) -> Result<Option<Quad>> {
        if self.decoded.is_empty() {
            let Some(rows) = self.part()? else { return Ok(None) };
            self.decode(&rows)?;
        }
        Ok(self.decoded.pop_front())
    }

    /// The next rows that match, as ids; `None` at the end.
    fn part(&mut self) -> Result<Option<Vec<[u64; 4]>>> {
        let mut found = Vec::new();
        while found.is_empty() {
            let is_cancelled = self.cancel.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
            let is_more = match &mut self.way {
                Way::Done => false,
                _ if is_cancelled => return Err(Error::Cancelled),
                Way::Ranges { index, prefixes, scan } => {
                    if scan.is_none() {
                        *scan = prefixes.pop_front().map(|prefix| self.session.scan(*index, &prefix, None));
                    }
                    let Some(under_way) = scan else { return Ok(None) };
                    let mut rows = Columns::new(index.arity());
                    if !under_way.next(&mut self.session, &mut rows, self.at_once)? {
                        *scan = None;
                    }
                    found.extend((0..rows.rows).map(|row| quad_at(*index, &rows, row)));
                    true
                }
                Way::Subjects(scan) => {
                    let mut rows = Columns::new(Index::Gs.arity());
                    let is_more = scan.next(&mut self.session, &mut rows, PART_SUBJECTS)?;
                    each_quad_of(&mut self.session, &rows.cols[1], |quad| {
                        found.push(quad);
                        Ok(())
                    })?;
                    is_more
                }
            };
            let given = self.given;
            found.retain(|quad| quad.iter().zip(given).all(|(id, given)| given.is_none_or(|g| g == *id)));
            if !is_more && found.is_empty() {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }

    fn decode(&mut self, rows: &[[u64; 4]]) -> Result<()> {
        let is_term = |id: &u64| TermId(*id) != TermId::DEFAULT_GRAPH;
        for rows in rows.chunks(self.at_once) {
            let ids: Vec<TermId> =
                rows.iter().flat_map(|row| row.iter().copied().filter(is_term).map(TermId)).collect();
            let (mut terms, mut bytes) = (vec![None; ids.len()], 0);
            self.session.decode(&ids, |place, term| {
                bytes += text_bytes(term);
                terms[place] = Some(to_oxrdf(term.to_owned()));
            })?;
            let mut terms = terms.into_iter().flatten();
            for row in rows {
                let quad = quad_of(&mut terms, is_term(&row[3]));
                self.decoded.push_back(quad.ok_or_else(|| Error::Damaged("a row is not a quad".into()))?);
            }
            self.at_once = match bytes {
                bytes if bytes > DECODED_BYTES => (self.at_once / 2).max(1),
                _ => (self.at_once * 2).min(PART_ROWS),
            };
        }
        Ok(())
    }
}

impl Iterator for Quads {
    type Item = Result<Quad>;

    fn next(&mut self) -> Option<Result<Quad>> {
        let read = self.read().transpose();
        if !matches!(read, Some(Ok(_))) {
            self.way = Way::Done;
            self.decoded.clear();
        }
        read
    }
}

impl std::iter::FusedIterator for Quads {}

/// The ids of the given terms; `None` if one is not stored, so that nothing matches.
fn ids_of(session: &mut Session, pattern: &QuadPattern) -> Result<Option<[Option<u64>; 4]>> {
    let subject = pattern.subject.as_ref().map(|term| TermRef::from(term.as_ref()));
    let predicate = pattern.predicate.as_ref().map(|iri| TermRef::Iri(iri.as_str()));
    let object = pattern.object.as_ref().map(|term| TermRef::from(term.as_ref()));
    let mut ids = [None; 4];
    for (id, term) in ids.iter_mut().zip([subject, predicate, object]) {
        if let Some(term) = term {
            let Some(stored) = session.resolve_one(term)? else { return Ok(None) };
            *id = Some(stored.0);
        }
    }
    let graph = match &pattern.graph {
        None => return Ok(Some(ids)),
        Some(GraphName::DefaultGraph) => Some(TermId::DEFAULT_GRAPH),
        Some(GraphName::NamedNode(iri)) => session.resolve_one(TermRef::Iri(iri.as_str()))?,
        Some(GraphName::BlankNode(node)) => session.resolve_one(TermRef::Blank(node.as_str()))?,
    };
    ids[3] = graph.map(|graph| graph.0);
    Ok(graph.map(|_| ids))
}

/// The index ranges that find the quads with these ids.
fn way(session: &mut Session, given: [Option<u64>; 4]) -> Result<Way> {
    let [subject, predicate, object, graph] = given;
    let index = if subject.is_none() && object.is_some() { Index::Posg } else { Index::Psog };
    let predicates = match (subject, predicate, object, graph) {
        (_, Some(predicate), _, _) => vec![predicate],
        (Some(subject), None, _, _) => predicates_of(session, Index::Sp, subject)?,
        (None, None, Some(object), _) => predicates_of(session, Index::Op, object)?,
        (None, None, None, Some(graph)) if graph != TermId::DEFAULT_GRAPH.0 => {
            return Ok(Way::Subjects(session.scan(Index::Gs, &[TermId(graph)], None)));
        }
        (None, None, None, _) => {
            return Ok(Way::Ranges { index, prefixes: [Vec::new()].into(), scan: None });
        }
    };
    let prefix = |predicate: &u64| -> Vec<TermId> {
        let row = index.columns().iter().map(|column| match *column as usize {
            1 => Some(*predicate),
            column => given[column],
        });
        row.map_while(|id| id.map(TermId)).collect()
    };
    let prefixes: VecDeque<Vec<TermId>> = predicates.iter().map(prefix).collect();
    if let (Some(first), true) = (prefixes.front(), prefixes.len() > 1) {
        // predicates ascend, so the keys do
        let column = |at: usize| prefixes.iter().map(|prefix| prefix[at].0).collect::<Vec<u64>>();
        let columns: Vec<Vec<u64>> = (0..first.len()).map(column).collect();
        let columns: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
        session.announce(&[(index, Keys::new(&columns, None))], Levels::Leaves)?;
    }
    Ok(Way::Ranges { index, prefixes, scan: None })
}

/// The predicates that a subject (in SP) or an object (in OP) has.
fn predicates_of(session: &mut Session, index: Index, term: u64) -> Result<Vec<u64>> {
    let mut scan = session.scan(index, &[TermId(term)], None);
    let mut rows = Columns::new(index.arity());
    while scan.next(session, &mut rows, PART_ROWS)? {}
    Ok(std::mem::take(&mut rows.cols[1]))
}

/// A row of an index as a quad.
fn quad_at(index: Index, rows: &Columns, row: usize) -> [u64; 4] {
    let mut quad = [0; 4];
    for (column, values) in index.columns().iter().zip(&rows.cols) {
        quad[*column as usize] = values[row];
    }
    quad
}

fn quad_of(terms: &mut impl Iterator<Item = Term>, has_name: bool) -> Option<Quad> {
    let subject = NamedOrBlankNode::try_from(terms.next()?).ok()?;
    let predicate = NamedNode::try_from(terms.next()?).ok()?;
    let object = terms.next()?;
    let graph = match has_name {
        true => NamedOrBlankNode::try_from(terms.next()?).ok()?.into(),
        false => GraphName::DefaultGraph,
    };
    Some(Quad::new(subject, predicate, object, graph))
}

fn text_bytes(term: TermRef<'_>) -> usize {
    match term {
        TermRef::Iri(text) | TermRef::Blank(text) | TermRef::Literal { lexical: text, .. } => text.len(),
        TermRef::Triple(triple) => triple.to_string().len(),
    }
}
