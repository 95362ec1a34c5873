//! DELETE/INSERT WHERE: the solutions of a pattern, put into templates.
//!
//! The pattern is evaluated on the state before the operation, batch by batch. Deletes may go
//! as they come: the evaluation does not see them. Inserts wait for the last delete, because a
//! quad that is both deleted and inserted is there afterwards; without deletes they go as they
//! come, too. A small operation is one change of each index.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use snowmelt_graph::{
    BatchTerm, BlankNodes, Changed, MOST_TRIPLE_LEVELS, QuadBatch, Session, TermId, TermKind, TermRef,
    triple_levels,
};
use snowmelt_syntax::tree::{
    Blank, GraphPattern, Modify, Place, QuadPattern, Query, QueryForm, Slot, Term, Var,
};

use super::{OperationFacts, UpdateRun};
use crate::engine::{QueryOptions, QueryResult};
use crate::error::QueryError;
use crate::exec::Batch;
use crate::text::terms::term;
use crate::value::triple;

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
    /// n-th triple term of the templates that has variables or blank nodes
    Triple(usize),
    DefaultGraph,
}

/// Templates whose variables are columns.
#[derive(Default)]
struct Templates {
    columns: Numbered<Var>,
    consts: Numbered<oxrdf::Term>,
    blanks: Numbered<Blank>,
    /// triple terms that are no constants; those within come first
    triples: Vec<[TemplateTerm; 3]>,
    delete: Vec<[TemplateTerm; 4]>,
    insert: Vec<[TemplateTerm; 4]>,
    /// levels of the deepest triple term
    levels: usize,
}

impl UpdateRun<'_> {
    pub(super) fn modify(&mut self, modify: Modify, facts: OperationFacts) -> Result<Changed, QueryError> {
        let Modify { delete, insert, using, pattern, base } = modify;
        let templates = Templates::new(&delete, &insert);
        let OperationFacts { names, first, measure } = facts;
        if templates.levels > MOST_TRIPLE_LEVELS {
            let construct = format!("a triple term of more than {MOST_TRIPLE_LEVELS} levels");
            let Place { line, column } = first.triple_term.unwrap_or(Place { line: 1, column: 1 });
            return Err(QueryError::Unsupported { construct, line, column });
        }
        self.check_constants(&templates)?;
        let mut session = self.txn.session();
        let consts: Vec<TermRef<'_>> =
            templates.consts.list.iter().map(|term| term.as_ref().into()).collect();
        let known = session.resolve(&consts)?;
        let mut lookups = self.txn.session();
        let vars = templates.columns.list.clone();
        let query = Query {
            form: QueryForm::Select,
            dataset: using,
            pattern: GraphPattern::Project { inner: Box::new(pattern), vars, is_star: false },
            base,
            version: None,
            names,
            first,
            measure,
        };
        let mut solutions = self.engine.query_in(session, &query, &self.where_options())?;
        for warning in solutions.warnings() {
            if !self.begun.warnings.contains(warning) {
                self.begun.warnings.push(warning.clone());
            }
        }
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
            change.take(&batch, &mut solutions, &mut lookups, || self.txn.new_blank_node())?;
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

    /// The options of WHERE, which is a query.
    fn where_options(&self) -> QueryOptions {
        let now = std::time::Instant::now();
        QueryOptions {
            timeout: self.limits.deadline.map(|deadline| deadline.saturating_duration_since(now)),
            memory: self.options.memory,
            cancel: self.limits.cancel.clone(),
            threads: self.options.threads,
            batch_rows: self.options.batch_rows,
            surprise_rows: self.options.surprise_rows,
            thread_work: self.options.thread_work,
            bindings: self.options.bindings.clone(),
            view: self.options.view.clone(),
            remote: self.options.remote.clone(),
            remote_wait: self.begun.remote_wait.clone(),
            functions: self.options.functions.clone(),
            ..QueryOptions::default()
        }
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
                TemplateTerm::Column(_) | TemplateTerm::Blank(_) | TemplateTerm::Triple(_) => {}
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
    fn new(delete: &[QuadPattern], insert: &[QuadPattern]) -> Self {
        let mut templates = Templates::default();
        templates.delete = delete.iter().map(|quad| templates.quad(quad)).collect();
        templates.insert = insert.iter().map(|quad| templates.quad(quad)).collect();
        templates
    }

    fn quad(&mut self, QuadPattern { triple, graph }: &QuadPattern) -> [TemplateTerm; 4] {
        let [subject, predicate, object] = triple.slots().map(|slot| self.slot(slot));
        let graph = graph.as_ref().map_or(TemplateTerm::DefaultGraph, |graph| self.slot(graph));
        [subject, predicate, object, graph]
    }

    fn constant(&mut self, term: oxrdf::Term) -> TemplateTerm {
        TemplateTerm::Const(self.consts.place_of(&term))
    }

    fn slot(&mut self, slot: &Slot) -> TemplateTerm {
        match slot {
            Slot::Var(var) => TemplateTerm::Column(self.columns.place_of(var)),
            Slot::Term(Term::Blank(blank)) => TemplateTerm::Blank(self.blanks.place_of(blank)),
            Slot::Term(constant) => self.constant(term(constant)),
            Slot::Triple(triple) => {
                let parts = triple.slots().map(|slot| self.slot(slot));
                self.triple(parts)
            }
            Slot::Param(_) => unreachable!("templates keep their variables"),
        }
    }

    /// A triple term: a constant if its parts are.
    fn triple(&mut self, parts: [TemplateTerm; 3]) -> TemplateTerm {
        if let [TemplateTerm::Const(s), TemplateTerm::Const(p), TemplateTerm::Const(o)] = parts {
            let [s, p, o] = [s, p, o].map(|at| self.consts.list[at].as_ref().into());
            if let Some(triple) = triple(s, p, o) {
                return self.constant(triple.into());
            }
        }
        self.triples.push(parts);
        self.levels = self.levels.max(self.levels_of(parts));
        TemplateTerm::Triple(self.triples.len() - 1)
    }

    fn levels_of(&self, [_, _, object]: [TemplateTerm; 3]) -> usize {
        let (mut levels, mut at) = (1, object);
        loop {
            match at {
                TemplateTerm::Triple(n) => (levels, at) = (levels + 1, self.triples[n][2]),
                TemplateTerm::Const(n) => {
                    return match &self.consts.list[n] {
                        oxrdf::Term::Triple(triple) => levels + triple_levels(triple),
                        _ => levels,
                    };
                }
                _ => return levels,
            }
        }
    }
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
    /// the datatype of a literal that cannot be inserted
    untagged: Option<&'static str>,
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
            untagged: None,
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
        session: &mut Session,
        mut new_blank_node: impl FnMut() -> TermId,
    ) -> Result<(), QueryError> {
        let mut cols = batch.cols.clone();
        solutions.resolve_locals(&mut cols)?;
        let templates = self.templates;
        let deleted = self.deleted_triples(&cols, batch.rows, session)?;
        for row in 0..batch.rows {
            for template in &templates.delete {
                let quad = template.map(|place| self.known_id(place, &cols, row, &deleted));
                if let [Some(s), Some(p), Some(o), Some(g)] = quad {
                    self.delete.push([s, p, o, g]);
                }
            }
            let mut nodes: Vec<Option<TermId>> = vec![None; templates.blanks.list.len()];
            for template in &templates.insert {
                let solution = Solution { cols: &cols, row, solutions };
                if !self.fits(template, &solution) {
                    continue;
                }
                let quad =
                    template.map(|place| self.batch_term(place, &solution, &mut nodes, &mut new_blank_node));
                self.insert.push(quad);
            }
        }
        match self.untagged {
            Some(datatype) => Err(QueryError::Untagged { datatype }),
            None => Ok(()),
        }
    }

    /// The stored id of a place of DELETE's templates, if it has one.
    fn known_id(
        &self,
        place: TemplateTerm,
        cols: &[Vec<TermId>],
        row: usize,
        triples: &[Vec<Option<TermId>>],
    ) -> Option<TermId> {
        match place {
            TemplateTerm::Const(at) => self.known[at],
            TemplateTerm::Column(col) => Some(cols[col][row]).filter(|id| is_stored(*id)),
            TemplateTerm::DefaultGraph => Some(TermId::DEFAULT_GRAPH),
            TemplateTerm::Triple(n) => triples[n][row],
            TemplateTerm::Blank(_) => None,
        }
    }

    /// The stored ids of the open triple terms, row by row: what is not stored is in no quad. Those
    /// of one place are looked up together; without DELETE none is.
    fn deleted_triples(
        &self,
        cols: &[Vec<TermId>],
        rows: usize,
        session: &mut Session,
    ) -> Result<Vec<Vec<Option<TermId>>>, QueryError> {
        let mut found: Vec<Vec<Option<TermId>>> = Vec::new();
        if self.templates.delete.is_empty() {
            return Ok(found);
        }
        for parts in &self.templates.triples {
            let (mut keys, mut places) = (Vec::new(), Vec::new());
            for row in 0..rows {
                let key = parts.map(|part| self.known_id(part, cols, row, &found));
                if let [Some(s), Some(p), Some(o)] = key {
                    keys.push([s, p, o]);
                    places.push(row);
                }
            }
            let mut ids = vec![None; rows];
            for (row, id) in places.into_iter().zip(session.find_triples(&keys)?) {
                ids[row] = id;
            }
            found.push(ids);
        }
        Ok(found)
    }

    /// A place of INSERT's templates, as the batch has it.
    fn batch_term(
        &mut self,
        place: TemplateTerm,
        solution: &Solution<'_>,
        nodes: &mut [Option<TermId>],
        new_blank_node: &mut impl FnMut() -> TermId,
    ) -> BatchTerm {
        match place {
            TemplateTerm::Const(at) => self.constant(at),
            TemplateTerm::Column(col) => self.value(solution.cols[col][solution.row], solution.solutions),
            TemplateTerm::DefaultGraph => self.insert.id(TermId::DEFAULT_GRAPH),
            TemplateTerm::Blank(n) => self.insert.id(*nodes[n].get_or_insert_with(new_blank_node)),
            TemplateTerm::Triple(n) => {
                let parts = self.templates.triples[n];
                let parts = parts.map(|part| self.batch_term(part, solution, nodes, new_blank_node));
                self.insert.triple(parts)
            }
        }
    }

    fn constant(&mut self, at: usize) -> BatchTerm {
        let Change { consts, insert, templates, known, untagged, .. } = self;
        let term: TermRef<'_> = templates.consts.list[at].as_ref().into();
        *untagged = untagged.or_else(|| term.untagged());
        match known[at] {
            Some(id) => insert.id(id),
            None => *consts[at].get_or_insert_with(|| insert.term(term)),
        }
    }

    fn value(&mut self, id: TermId, solutions: &QueryResult) -> BatchTerm {
        if is_stored(id) {
            return self.insert.id(id);
        }
        let Change { insert, untagged, .. } = self;
        let add = |term: TermRef<'_>| {
            *untagged = untagged.or_else(|| term.untagged());
            insert.term(term)
        };
        solutions.with_term(id, add).expect("a bound value is a term")
    }

    /// Whether a quad of the template is one of RDF: everything bound, no literal where none
    /// may be.
    fn fits(&self, template: &[TemplateTerm; 4], solution: &Solution<'_>) -> bool {
        let [s, p, o, g] = template.map(|place| self.kind(place, solution));
        are_triple([s, p, o]) && matches!(g, Some(TermKind::Iri | TermKind::Blank | TermKind::Special))
    }

    /// The kind of term that a place of a template gets; `None` where it gets none.
    fn kind(&self, place: TemplateTerm, solution: &Solution<'_>) -> Option<TermKind> {
        match place {
            TemplateTerm::Column(col) => match solution.cols[col][solution.row] {
                TermId::UNDEF => None,
                id if id.kind() == TermKind::Local => solution.solutions.with_term(id, |term| match term {
                    TermRef::Iri(_) => TermKind::Iri,
                    TermRef::Blank(_) => TermKind::Blank,
                    TermRef::Literal { .. } => TermKind::String,
                    TermRef::Triple(_) => TermKind::Triple,
                }),
                id => Some(id.kind()),
            },
            TemplateTerm::Const(at) => Some(match &self.templates.consts.list[at] {
                oxrdf::Term::Literal(_) => TermKind::String,
                oxrdf::Term::Triple(_) => TermKind::Triple,
                oxrdf::Term::NamedNode(_) | oxrdf::Term::BlankNode(_) => TermKind::Iri,
            }),
            TemplateTerm::Blank(_) => Some(TermKind::Blank),
            TemplateTerm::Triple(n) => {
                let parts = self.templates.triples[n].map(|part| self.kind(part, solution));
                are_triple(parts).then_some(TermKind::Triple)
            }
            TemplateTerm::DefaultGraph => Some(TermKind::Special),
        }
    }
}

/// A solution that is put into templates.
struct Solution<'a> {
    cols: &'a [Vec<TermId>],
    row: usize,
    solutions: &'a QueryResult,
}

/// Whether terms of these kinds are a triple.
fn are_triple([s, p, o]: [Option<TermKind>; 3]) -> bool {
    matches!(s, Some(TermKind::Iri | TermKind::Blank)) && p == Some(TermKind::Iri) && o.is_some()
}

/// Whether an id can be in a quad.
fn is_stored(id: TermId) -> bool {
    id != TermId::UNDEF && id.kind() != TermKind::Local
}
