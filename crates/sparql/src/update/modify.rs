//! DELETE/INSERT WHERE: the solutions of a pattern, put into templates.
//!
//! The pattern is evaluated on the state before the operation, batch by batch. Deletes may go
//! as they come: the evaluation does not see them. Inserts wait for the last delete, because a
//! quad that is both deleted and inserted is there afterwards; without deletes they go as they
//! come, too. A small operation is one change of each index.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use snowmelt_graph::{BatchTerm, BlankNodes, Changed, QuadBatch, TermId, TermKind, TermRef};
use spargebra::Query;
use spargebra::algebra::{GraphPattern, QueryDataset};
use spargebra::term::{
    GraphNamePattern, GroundQuadPattern, GroundTermPattern, NamedNodePattern, QuadPattern, TermPattern,
    Variable,
};

use super::{UpdateRun, term_ref};
use crate::engine::{QueryOptions, QueryResult};
use crate::error::QueryError;
use crate::exec::Batch;

/// Quads changed together.
const PART_QUADS: usize = 1 << 16;

/// A place in a template.
#[derive(Clone, Copy)]
enum TemplateTerm {
    /// index of a constant
    Const(usize),
    /// column of the solutions
    Column(usize),
    /// n-th blank node of the template
    Blank(usize),
    DefaultGraph,
}

/// Templates whose variables are columns.
#[derive(Default)]
struct Templates {
    columns: Numbered<Variable>,
    consts: Numbered<oxrdf::Term>,
    blanks: Numbered<oxrdf::BlankNode>,
    delete: Vec<[TemplateTerm; 4]>,
    insert: Vec<[TemplateTerm; 4]>,
    /// a triple term has variables or blank nodes
    has_open_triples: bool,
}

impl UpdateRun<'_> {
    pub(super) fn modify(
        &mut self,
        delete: &[GroundQuadPattern],
        insert: &[QuadPattern],
        using: Option<QueryDataset>,
        pattern: &GraphPattern,
    ) -> Result<Changed, QueryError> {
        let templates = Templates::new(delete, insert);
        if templates.has_open_triples {
            let construct = "a triple term with variables in a template".to_owned();
            return Err(QueryError::Unsupported { construct, line: 1, column: 1 });
        }
        self.check_constants(&templates)?;
        let mut session = self.txn.session();
        let consts: Vec<TermRef<'_>> =
            templates.consts.list.iter().map(|term| term_ref(term.as_ref())).collect();
        let known = session.resolve(&consts)?;
        let query = Query::Select {
            dataset: using,
            pattern: GraphPattern::Project {
                inner: Box::new(pattern.clone()),
                variables: templates.columns.list.clone(),
            },
            base_iri: self.base.clone(),
        };
        let options = QueryOptions {
            timeout: self
                .limits
                .deadline
                .map(|deadline| deadline.saturating_duration_since(std::time::Instant::now())),
            memory: self.options.memory,
            cancel: self.limits.cancel.clone(),
            threads: self.options.threads,
            batch_rows: self.options.batch_rows,
            bindings: self.options.bindings.clone(),
            view: self.options.view.clone(),
            ..QueryOptions::default()
        };
        let mut solutions = self.engine.query_in(session, &query, self.parsed, &options)?;
        let budget = self.txn.graph().database().memory();
        let share = self.options.memory.unwrap_or(budget.total() as usize / 4);
        // the memory of a change, as a multiple of that of its quads: terms looked up, rows of each
        // index
        const CHANGED: usize = 4;
        let mut charge = budget.charge("the quads of an update");
        let mut change = Change::new(&templates, known);
        let mut changed = Changed::default();
        while let Some(batch) = solutions.next_batch()? {
            self.check_solutions(&templates, &batch, &mut solutions)?;
            change.take(&batch, &mut solutions, || self.txn.new_blank_node())?;
            if change.insert.bytes() > share && !templates.delete.is_empty() {
                return Err(QueryError::Memory { share_bytes: share, what: "quads to be inserted" });
            }
            let bytes = CHANGED * (change.insert.bytes() + change.delete.len() * 32);
            charge.set(bytes as u64).map_err(snowmelt_graph::GraphError::from)?;
            if change.delete.len() >= PART_QUADS {
                changed += self.txn.delete(&change.delete)?;
                change.delete.clear();
            }
            if change.insert.len() >= PART_QUADS && templates.delete.is_empty() {
                changed += self.txn.insert(&change.insert, &mut change.blanks)?;
                change.empty_batch();
            }
        }
        changed += self.txn.change(&change.delete, &change.insert, &mut change.blanks)?;
        Ok(changed)
    }

    /// Refuses templates of graphs that the user may not see.
    fn check_constants(&self, templates: &Templates) -> Result<(), QueryError> {
        for [_, _, _, graph] in templates.delete.iter().chain(&templates.insert) {
            match graph {
                TemplateTerm::DefaultGraph => self.options.check_graph(None)?,
                TemplateTerm::Const(at) => {
                    if let oxrdf::Term::NamedNode(graph) = &templates.consts.list[*at] {
                        self.options.check_graph(Some(graph.as_str()))?;
                    }
                }
                TemplateTerm::Column(_) | TemplateTerm::Blank(_) => {}
            }
        }
        Ok(())
    }

    /// Refuses solutions that name graphs which the user may not see.
    fn check_solutions(
        &self,
        templates: &Templates,
        batch: &Batch,
        solutions: &mut QueryResult,
    ) -> Result<(), QueryError> {
        if self.options.view.is_none() {
            return Ok(());
        }
        let graphs =
            templates.delete.iter().chain(&templates.insert).filter_map(|[_, _, _, graph]| match graph {
                TemplateTerm::Column(column) => Some(*column),
                _ => None,
            });
        let mut cols = batch.cols.clone();
        solutions.resolve_locals(&mut cols)?;
        let mut ids: Vec<TermId> = graphs.flat_map(|column| cols[column].iter().copied()).collect();
        ids.sort_unstable();
        ids.dedup();
        let (stored, local): (Vec<TermId>, Vec<TermId>) =
            ids.into_iter().filter(|id| *id != TermId::UNDEF).partition(|id| is_stored(*id));
        let mut names = Vec::new();
        let mut add = |term: TermRef<'_>| match term {
            TermRef::Iri(iri) => names.push(Some(iri.to_owned())),
            TermRef::Blank(_) => names.push(None),
            TermRef::Literal { .. } | TermRef::Triple(_) => {}
        };
        local.into_iter().for_each(|id| solutions.with_term(id, &mut add).unwrap_or_default());
        self.txn.session().decode(&stored, |_, term| add(term))?;
        names.iter().try_for_each(|name| match name {
            Some(iri) => self.options.check_graph(Some(iri)),
            None => Err(QueryError::Forbidden { what: "a graph that a blank node names".to_owned() }),
        })
    }
}

impl Templates {
    fn new(delete: &[GroundQuadPattern], insert: &[QuadPattern]) -> Self {
        let mut templates = Templates::default();
        for quad in delete {
            let subject = templates.ground(&quad.subject);
            let predicate = templates.named(&quad.predicate);
            let (object, graph) = (templates.ground(&quad.object), templates.graph(&quad.graph_name));
            templates.delete.push([subject, predicate, object, graph]);
        }
        for quad in insert {
            let subject = templates.term(&quad.subject);
            let predicate = templates.named(&quad.predicate);
            let (object, graph) = (templates.term(&quad.object), templates.graph(&quad.graph_name));
            templates.insert.push([subject, predicate, object, graph]);
        }
        templates
    }

    fn column(&mut self, variable: &Variable) -> TemplateTerm {
        TemplateTerm::Column(self.columns.place_of(variable))
    }

    fn constant(&mut self, term: impl Into<oxrdf::Term>) -> TemplateTerm {
        TemplateTerm::Const(self.consts.place_of(&term.into()))
    }

    fn ground(&mut self, term: &GroundTermPattern) -> TemplateTerm {
        match term {
            GroundTermPattern::NamedNode(node) => self.constant(node.clone()),
            GroundTermPattern::Literal(literal) => self.constant(literal.clone()),
            GroundTermPattern::Variable(variable) => self.column(variable),
            GroundTermPattern::Triple(_) => self.triple(term.clone().into()),
        }
    }

    fn term(&mut self, term: &TermPattern) -> TemplateTerm {
        match term {
            TermPattern::NamedNode(node) => self.constant(node.clone()),
            TermPattern::Literal(literal) => self.constant(literal.clone()),
            TermPattern::Variable(variable) => self.column(variable),
            TermPattern::BlankNode(node) => TemplateTerm::Blank(self.blanks.place_of(node)),
            TermPattern::Triple(_) => self.triple(term.clone()),
        }
    }

    /// A triple term, which may only be a constant.
    fn triple(&mut self, term: TermPattern) -> TemplateTerm {
        match oxrdf::Term::try_from(term) {
            Ok(term) if !has_blank(&term) => self.constant(term),
            _ => {
                self.has_open_triples = true;
                TemplateTerm::DefaultGraph
            }
        }
    }

    fn named(&mut self, term: &NamedNodePattern) -> TemplateTerm {
        match term {
            NamedNodePattern::NamedNode(node) => self.constant(node.clone()),
            NamedNodePattern::Variable(variable) => self.column(variable),
        }
    }

    fn graph(&mut self, graph: &GraphNamePattern) -> TemplateTerm {
        match graph {
            GraphNamePattern::DefaultGraph => TemplateTerm::DefaultGraph,
            GraphNamePattern::NamedNode(node) => self.constant(node.clone()),
            GraphNamePattern::Variable(variable) => self.column(variable),
        }
    }
}

/// Whether a blank node is in a triple term.
fn has_blank(mut term: &oxrdf::Term) -> bool {
    while let oxrdf::Term::Triple(triple) = term {
        if triple.subject.is_blank_node() {
            return true;
        }
        term = &triple.object;
    }
    term.is_blank_node()
}

/// A list of different values.
struct Numbered<T> {
    list: Vec<T>,
    places: FxHashMap<T, usize>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { list: Vec::new(), places: FxHashMap::default() }
    }
}

impl<T: Eq + Hash + Clone> Numbered<T> {
    /// The place of a value; it is added if it is not there.
    fn place_of(&mut self, value: &T) -> usize {
        if let Some(place) = self.places.get(value) {
            return *place;
        }
        self.list.push(value.clone());
        self.places.insert(value.clone(), self.list.len() - 1);
        self.list.len() - 1
    }
}

/// Quads to be deleted and inserted, as far as they are collected.
struct Change<'t> {
    templates: &'t Templates,
    /// ids of the constants that are in the database
    known: Vec<Option<TermId>>,
    delete: Vec<[TermId; 4]>,
    insert: QuadBatch,
    /// constants and query-local terms that are in `insert` already
    consts: Vec<Option<BatchTerm>>,
    blanks: BlankNodes,
}

impl<'t> Change<'t> {
    fn new(templates: &'t Templates, known: Vec<Option<TermId>>) -> Self {
        Change {
            templates,
            consts: vec![None; known.len()],
            known,
            delete: Vec::new(),
            insert: QuadBatch::new(0),
            blanks: BlankNodes::default(),
        }
    }

    /// Empties the batch of quads to be inserted.
    fn empty_batch(&mut self) {
        self.insert.clear();
        self.consts.fill(None);
    }

    /// Puts a batch of solutions into the templates.
    fn take(
        &mut self,
        batch: &Batch,
        solutions: &mut QueryResult,
        mut new_blank_node: impl FnMut() -> TermId,
    ) -> Result<(), QueryError> {
        let mut cols = batch.cols.clone();
        solutions.resolve_locals(&mut cols)?;
        let templates = self.templates;
        for row in 0..batch.rows {
            for template in &templates.delete {
                let quad = template.map(|place| match place {
                    TemplateTerm::Const(at) => self.known[at],
                    TemplateTerm::Column(col) => Some(cols[col][row]).filter(|id| is_stored(*id)),
                    TemplateTerm::DefaultGraph => Some(TermId::DEFAULT_GRAPH),
                    TemplateTerm::Blank(_) => unreachable!("the grammar has no blank nodes in DELETE"),
                });
                if let [Some(s), Some(p), Some(o), Some(g)] = quad {
                    self.delete.push([s, p, o, g]);
                }
            }
            let mut nodes: Vec<Option<TermId>> = vec![None; templates.blanks.list.len()];
            for template in &templates.insert {
                if !self.fits(template, &cols, row, solutions) {
                    continue;
                }
                let quad = template.map(|place| match place {
                    TemplateTerm::Const(at) => self.constant(at),
                    TemplateTerm::Column(col) => self.value(cols[col][row], solutions),
                    TemplateTerm::DefaultGraph => self.insert.id(TermId::DEFAULT_GRAPH),
                    TemplateTerm::Blank(n) => {
                        self.insert.id(*nodes[n].get_or_insert_with(&mut new_blank_node))
                    }
                });
                self.insert.push(quad);
            }
        }
        Ok(())
    }

    fn constant(&mut self, at: usize) -> BatchTerm {
        if let Some(id) = self.known[at] {
            return self.insert.id(id);
        }
        let Change { consts, insert, templates, .. } = self;
        *consts[at].get_or_insert_with(|| insert.term(term_ref(templates.consts.list[at].as_ref())))
    }

    fn value(&mut self, id: TermId, solutions: &QueryResult) -> BatchTerm {
        if is_stored(id) {
            return self.insert.id(id);
        }
        let insert = &mut self.insert;
        solutions.with_term(id, |term| insert.term(term)).expect("a bound value is a term")
    }

    /// Whether a quad of the template is one of RDF: everything bound, no literal where none
    /// may be.
    fn fits(
        &self,
        template: &[TemplateTerm; 4],
        cols: &[Vec<TermId>],
        row: usize,
        solutions: &QueryResult,
    ) -> bool {
        let kind = |place: &TemplateTerm| match place {
            TemplateTerm::Column(col) => match cols[*col][row] {
                TermId::UNDEF => None,
                id if id.kind() == TermKind::Local => solutions.with_term(id, |term| match term {
                    TermRef::Iri(_) => TermKind::Iri,
                    TermRef::Blank(_) => TermKind::Blank,
                    TermRef::Literal { .. } => TermKind::String,
                    TermRef::Triple(_) => TermKind::Triple,
                }),
                id => Some(id.kind()),
            },
            TemplateTerm::Const(at) => Some(match &self.templates.consts.list[*at] {
                oxrdf::Term::Literal(_) => TermKind::String,
                oxrdf::Term::Triple(_) => TermKind::Triple,
                oxrdf::Term::NamedNode(_) | oxrdf::Term::BlankNode(_) => TermKind::Iri,
            }),
            TemplateTerm::Blank(_) => Some(TermKind::Blank),
            TemplateTerm::DefaultGraph => Some(TermKind::Special),
        };
        let [s, p, o, g] = template.each_ref().map(kind);
        matches!(s, Some(TermKind::Iri | TermKind::Blank))
            && p == Some(TermKind::Iri)
            && o.is_some()
            && matches!(g, Some(TermKind::Iri | TermKind::Blank | TermKind::Special))
    }
}

/// Whether an id can be in a quad.
fn is_stored(id: TermId) -> bool {
    id != TermId::UNDEF && id.kind() != TermKind::Local
}
