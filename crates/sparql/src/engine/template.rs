//! Template of a query's shape: the algebra, the ids of its fixed constants, and a plan per
//! magnitude of its parameters and state of memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use snowmelt_graph::{AnyIndex, Index, TermId, TripleIndex};
use snowmelt_syntax::tree::Query;

use super::facts::KnownData;
use super::view::graph_consts;
use super::{PlanCosts, QueryEngine, QueryRequest, facts, output, reads};
use crate::algebra::consts::{ConstTerm, GroundTerm, ground};
use crate::algebra::translate::translate;
use crate::algebra::{Algebra, Called, Const, Dataset, Node, Pattern, Slot, Var};
use crate::bounds::text_limits::{check_patterns, has_grown};
use crate::bounds::{Limits, plan_stack_bytes, with_room};
use crate::error::QueryError;
use crate::exec::source::GraphSource;
use crate::functions::{CustomFunctions, Func};
use crate::optimise::{Basis, plan};
use crate::plan::{GraphScope, Learned, Plan, Reads};
use crate::rewrite::rewrite;
use crate::value::Cast;

/// Most plans kept for one shape; when there are more, all are dropped.
const PLANS: usize = 512;

/// Below this average, the rows of a parameter's pattern say nothing about the plan.
const EVEN_ROWS: f64 = 4.0;

static USES: AtomicU64 = AtomicU64::new(0);

/// A shape, ready to be planned and run.
pub(crate) struct Template {
    pub algebra: Arc<Algebra>,
    pub output: Vec<Var>,
    /// it calls BNODE(string), which counts solutions: it runs in one thread
    pub is_counted: bool,
    /// it calls built-in functions that give another result each time
    is_volatile: bool,
    /// it calls functions that may give another result for each solution
    copies_differ: bool,
    asks_elsewhere: bool,
    /// functions that it calls by IRI, casts apart
    by_iri: Vec<CallByIri>,
    /// stored ids of the constants that are not parameters
    fixed: Vec<Option<TermId>>,
    params: usize,
    /// of the text that it was made of
    pub text_bytes: usize,
    /// its terms are much longer than its text
    pub has_grown: bool,
    /// counts that decide which plan is right
    probes: Vec<CountedPrefix>,
    /// indexes whose residency decides it, too
    visited: reads::VisitedTrees,
    scope: GraphScope,
    plans: RwLock<FxHashMap<Vec<u8>, Arc<Plan>>>,
    used: AtomicU64,
    /// recent duration in nanoseconds, see `has_taken`; 0: none has ended
    took_ns: AtomicU64,
    basis: TemplateBasis,
}

/// Facts about the data that a template builds on, and their transaction.
struct TemplateBasis {
    txn: u64,
    /// ids mean something in this dictionary only
    dictionary: u64,
    quads: u64,
    changed: u64,
    /// predicates that led to IRIs and blank nodes only
    resources: Vec<TermId>,
    /// the newest transaction as of which all of it was found to hold
    holds: AtomicU64,
}

/// Parameters and constants that a plan is made for.
pub(super) struct PlanRequest<'a> {
    pub known: &'a KnownData,
    pub params: &'a [GroundTerm],
    pub consts: &'a [Option<TermId>],
    pub costs: PlanCosts,
}

/// The rows under some constants of an index, one of them a parameter.
struct CountedPrefix {
    index: AnyIndex,
    prefix: Vec<Const>,
}

/// A function called by IRI.
#[derive(PartialEq)]
struct CallByIri {
    iri: String,
    arguments: usize,
    is_built_in: bool,
}

impl CallByIri {
    fn warning(&self) -> String {
        let Self { iri, arguments, .. } = self;
        let with = if *arguments == 1 { "one argument".to_owned() } else { format!("{arguments} arguments") };
        format!("there is no function <{iri}> of {with}: each call of it is an error")
    }
}

/// Whether an algebra calls a built-in function that may give something else in another query.
fn is_volatile(algebra: &Algebra) -> bool {
    let mut is_volatile = false;
    algebra.each_call(|f, args| {
        is_volatile |= Func::of_call(f, args.len()).is_some_and(Func::is_of_query);
    });
    is_volatile
}

/// Whether an algebra calls functions that may give another result for each of equal solutions: a
/// program's may.
fn copies_differ(algebra: &Algebra) -> bool {
    let mut differ = false;
    algebra.each_call(|f, args| {
        differ |= match (Func::of_call(f, args.len()), f) {
            (Some(func), _) => func.is_volatile(),
            (None, Called::Iri(iri)) => args.len() != 1 || Cast::from_iri(iri.as_str()).is_none(),
            (None, Called::Keyword(_)) => false,
        };
    });
    differ
}

/// The functions that an algebra calls by IRI, each once.
fn calls_by_iri(algebra: &Algebra) -> Vec<CallByIri> {
    let mut calls = Vec::new();
    algebra.each_call(|f, args| {
        let Called::Iri(iri) = f else { return };
        let is_cast = args.len() == 1 && Cast::from_iri(iri.as_str()).is_some();
        let is_built_in = is_cast || Func::of_call(f, args.len()).is_some();
        let call = CallByIri { iri: iri.as_str().to_owned(), arguments: args.len(), is_built_in };
        if !calls.contains(&call) {
            calls.push(call);
        }
    });
    calls
}

impl Template {
    pub fn new(
        query: &Query,
        text_bytes: usize,
        request: QueryRequest<'_>,
        params: &[GroundTerm],
        engine: &QueryEngine,
        source: &mut GraphSource,
    ) -> Result<Self, QueryError> {
        let QueryRequest { options, visible, limits, .. } = request;
        limits.check()?;
        let view = visible.map(|visible| &*visible.view);
        let mut algebra = translate(query, params, view)?;
        let patterns = algebra.root.all().iter().filter(|n| matches!(n, Node::Pattern(_))).count();
        check_patterns(patterns, engine.text_limits())?;
        if !options.default_graphs.is_empty() || !options.named_graphs.is_empty() {
            let is_seen = |graph: &&String| view.is_none_or(|view| view.has(Some(graph)));
            let list = |consts: &mut _, graphs: &[String]| {
                let seen: Vec<String> = graphs.iter().filter(is_seen).cloned().collect();
                Some(graph_consts(consts, &seen))
            };
            let default = list(&mut algebra.consts, &options.default_graphs);
            let named = list(&mut algebra.consts, &options.named_graphs);
            algebra.dataset = Dataset::new(default, named);
        }
        if let Some(visible) = visible {
            visible.restrict(&mut algebra);
        }
        let mut facts = facts::Data::new(&engine.known, source, params, limits);
        facts.resolve(&algebra.consts)?;
        rewrite(&mut algebra, &mut facts, limits)?;
        let resources = facts.resources;
        let plain = source.session.is_plain()?;
        let state = source.session.state();
        let basis = TemplateBasis {
            txn: state.txn(),
            dictionary: state.dictionary(),
            quads: state.quads(),
            changed: state.changed(),
            resources,
            holds: AtomicU64::new(state.txn()),
        };
        let scope = GraphScope {
            default: algebra.dataset.default.clone(),
            named: algebra.dataset.named.clone(),
            plain,
        };
        let fixed = resolve_fixed(&algebra.consts, source, limits)?;
        let mut template = Self {
            output: output(&algebra),
            is_counted: algebra.names_blanks(),
            is_volatile: is_volatile(&algebra),
            copies_differ: copies_differ(&algebra),
            asks_elsewhere: algebra.asks_elsewhere(),
            by_iri: calls_by_iri(&algebra),
            params: params.len(),
            text_bytes,
            has_grown: has_grown(text_bytes, &query.measure),
            probes: Vec::new(),
            visited: reads::VisitedTrees::of(&algebra),
            algebra: Arc::new(algebra),
            fixed,
            scope,
            plans: RwLock::default(),
            used: AtomicU64::new(0),
            took_ns: AtomicU64::new(0),
            basis,
        };
        template.probes = template.find_probes(engine, source, limits)?;
        Ok(template)
    }

    /// Whether the same query on the same data may give something else, with the functions of a
    /// program: endpoints elsewhere may.
    pub fn is_volatile(&self, functions: &CustomFunctions) -> bool {
        let varies = |call: &CallByIri| functions.get(&call.iri).is_some_and(|f| !f.is_deterministic);
        self.is_volatile || self.asks_elsewhere || self.by_iri.iter().any(varies)
    }

    /// A sentence for each function that is neither built in nor one of the program's.
    pub fn warnings(&self, functions: &CustomFunctions) -> Vec<String> {
        let unknown = |call: &&CallByIri| !call.is_built_in && functions.get(&call.iri).is_none();
        self.by_iri.iter().filter(unknown).map(CallByIri::warning).collect()
    }

    /// The transaction as of which it was made.
    pub fn txn(&self) -> u64 {
        self.basis.txn
    }

    /// The recent duration of queries of this shape; `None` if none has ended.
    pub fn took(&self) -> Option<Duration> {
        // how long endpoints elsewhere take says nothing about the next time
        let took = Duration::from_nanos(self.took_ns.load(Ordering::Relaxed));
        (!took.is_zero() && !self.asks_elsewhere).then_some(took)
    }

    /// Notes the duration of a query of this shape. A longer one noted before decays by an eighth.
    pub fn has_taken(&self, took: Duration) {
        let before = self.took_ns.load(Ordering::Relaxed);
        let took = (took.as_nanos() as u64).max(before - before / 8);
        self.took_ns.store(took, Ordering::Relaxed);
    }

    pub fn last_used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether the template is right for what the session sees. An older state than its own may
    /// lack what the template knows of; a newer one may have what it does not.
    pub fn holds(&self, source: &mut GraphSource, limits: &Limits) -> Result<bool, QueryError> {
        let (txn, basis) = (source.txn(), &self.basis);
        let checked = basis.holds.load(Ordering::Relaxed);
        if source.session.state().dictionary() != basis.dictionary
            || source.session.is_plain()? != self.scope.plain
        {
            return Ok(false);
        }
        if (basis.txn..=checked).contains(&txn) {
            return Ok(true);
        }
        let database = source.session.graph();
        let holds = txn > checked
            && !facts::drifted(basis.quads, basis.changed, source)
            && basis.resources.iter().all(|p| database.literals_since(*p) <= basis.txn)
            && self.still_unknown(source, limits)?;
        if holds {
            basis.holds.fetch_max(txn, Ordering::Relaxed);
        }
        Ok(holds)
    }

    /// Whether no fixed constant that was unknown has become known.
    fn still_unknown(&self, source: &mut GraphSource, limits: &Limits) -> Result<bool, QueryError> {
        let fixed = self.algebra.consts.iter().zip(&self.fixed);
        let unknown: Vec<GroundTerm> = fixed
            .filter(|(c, id)| c.is_fixed() && id.is_none())
            .map(|(c, _)| ground(c, &[]).into_owned())
            .collect();
        Ok(unknown.is_empty() || source.resolve_constants(&unknown, limits)?.iter().all(Option::is_none))
    }

    /// The ids of all constants, given the parameters.
    pub fn resolve(
        &self,
        params: &[GroundTerm],
        source: &mut GraphSource,
        limits: &Limits,
    ) -> Result<Vec<Option<TermId>>, QueryError> {
        self.used.store(USES.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        assert_eq!(params.len(), self.params, "equal shapes have equally many parameters");
        let ids = if params.is_empty() { Vec::new() } else { source.resolve_constants(params, limits)? };
        let open = self.algebra.consts.iter().filter(|c| matches!(c, ConstTerm::Triple(_)));
        let triples: Vec<GroundTerm> = open.map(|c| ground(c, params).into_owned()).collect();
        let mut triples = match triples.is_empty() {
            true => Vec::new().into_iter(),
            false => source.resolve_constants(&triples, limits)?.into_iter(),
        };
        let id = |(c, fixed): (&ConstTerm, &Option<TermId>)| match c {
            ConstTerm::Fixed(_) => *fixed,
            ConstTerm::Param(n) => ids[*n as usize],
            ConstTerm::Triple(_) => triples.next().expect("one answer per triple term"),
        };
        Ok(self.algebra.consts.iter().zip(&self.fixed).map(id).collect())
    }

    /// The plan for some constants and what is in memory now: one that was made before, unless
    /// there is something to learn from.
    pub fn plan(
        &self,
        of: &PlanRequest<'_>,
        source: &mut GraphSource,
        learned: Option<Learned>,
        limits: &Limits,
    ) -> Result<Arc<Plan>, QueryError> {
        let PlanRequest { known, params, consts, costs } = *of;
        let mut key = self.magnitudes(consts, source)?;
        let reads = match costs {
            PlanCosts::Device => reads::reads(source, &self.visited),
            PlanCosts::Warm => Reads::none(),
        };
        reads.push_key(&mut key);
        if learned.is_none()
            && let Some(plan) = self.plans.read().get(&key)
        {
            return Ok(plan.clone());
        }
        let mut data = facts::Data::new(known, source, params, limits);
        data.resolve(&self.algebra.consts)?;
        let (algebra, scope, copies_differ) = (&*self.algebra, self.scope.clone(), self.copies_differ);
        let basis = Basis { scope, copies_differ, reads, learned: learned.unwrap_or_default() };
        // planning recurses over the plan and the algebra together
        let room = plan_stack_bytes(algebra.room, algebra.root.all().len());
        let plan = with_room(room, || plan(algebra, &mut data, &self.output, basis, limits))?;
        let plan = Arc::new(plan);
        let mut plans = self.plans.write();
        if plans.len() >= PLANS {
            plans.clear();
        }
        plans.insert(key, plan.clone());
        Ok(plan)
    }

    /// One byte per probe: the bits of its count.
    fn magnitudes(&self, consts: &[Option<TermId>], source: &mut GraphSource) -> Result<Vec<u8>, QueryError> {
        let mut key = Vec::with_capacity(self.probes.len());
        for probe in &self.probes {
            let prefix: Option<Vec<TermId>> = probe.prefix.iter().map(|c| consts[c.0 as usize]).collect();
            let rows = match prefix {
                Some(prefix) => source.count(probe.index, &prefix, None)?,
                None => 0,
            };
            // steps of eight: 0, 1..7, 8..63, ...
            key.push(((64 - rows.leading_zeros()).div_ceil(3)) as u8);
        }
        Ok(key)
    }

    fn find_probes(
        &self,
        engine: &QueryEngine,
        source: &mut GraphSource,
        limits: &Limits,
    ) -> Result<Vec<CountedPrefix>, QueryError> {
        let all = self.algebra.root.all();
        let patterns = all.iter().filter_map(|n| if let Node::Pattern(p) = n { Some(p) } else { None });
        let is_param =
            |slot: Slot| matches!(slot, Slot::Const(c) if !self.algebra.consts[c.0 as usize].is_fixed());
        let mut probes: Vec<CountedPrefix> = Vec::new();
        for pattern in patterns {
            limits.check()?;
            if ![pattern.s, pattern.p, pattern.o].into_iter().any(is_param) {
                continue;
            }
            if pattern.triple_term().is_some() {
                let (index, prefix) = counted_triples(pattern);
                if !prefix.is_empty() && !probes.iter().any(|p| p.index == index && p.prefix == prefix) {
                    probes.push(CountedPrefix { index, prefix });
                }
                continue;
            }
            let (index, prefix) = match (pattern.s, pattern.p, pattern.o) {
                (Slot::Const(s), Slot::Const(p), _) => (Index::Psog, vec![p, s]),
                (_, Slot::Const(p), Slot::Const(o)) => (Index::Posg, vec![p, o]),
                (_, Slot::Const(p), _) => (Index::Psog, vec![p]),
                _ => continue,
            };
            if self.is_even(pattern, engine, source)?
                || probes.iter().any(|p| p.index == index.into() && p.prefix == prefix)
            {
                continue;
            }
            probes.push(CountedPrefix { index: index.into(), prefix });
        }
        Ok(probes)
    }

    /// Whether every value of the parameter has about the same few rows.
    fn is_even(
        &self,
        pattern: &Pattern,
        engine: &QueryEngine,
        source: &mut GraphSource,
    ) -> Result<bool, QueryError> {
        let Slot::Const(p) = pattern.p else { return Ok(false) };
        let Some(p) = self.fixed[p.0 as usize] else { return Ok(false) };
        let of = facts::predicate(&engine.known, source, p)?;
        Ok(match (pattern.s, pattern.o) {
            (Slot::Const(_), _) => of.rows < EVEN_ROWS * of.subjects,
            (_, Slot::Const(_)) => of.rows < EVEN_ROWS * of.objects,
            _ => false,
        })
    }
}

/// The rows under the constants of a triple term's pattern.
fn counted_triples(pattern: &Pattern) -> (AnyIndex, Vec<Const>) {
    let (index, prefix) = match (pattern.s, pattern.p, pattern.o) {
        (Slot::Const(s), Slot::Const(p), _) => (TripleIndex::Spo, vec![s, p]),
        (_, Slot::Const(p), Slot::Const(o)) => (TripleIndex::Pos, vec![p, o]),
        (Slot::Const(s), _, Slot::Const(o)) => (TripleIndex::Osp, vec![o, s]),
        (Slot::Const(s), _, _) => (TripleIndex::Spo, vec![s]),
        (_, Slot::Const(p), _) => (TripleIndex::Pos, vec![p]),
        (_, _, Slot::Const(o)) => (TripleIndex::Osp, vec![o]),
        _ => (TripleIndex::Id, Vec::new()),
    };
    (index.into(), prefix)
}

fn resolve_fixed(
    consts: &[ConstTerm],
    source: &mut GraphSource,
    limits: &Limits,
) -> Result<Vec<Option<TermId>>, QueryError> {
    let terms: Vec<GroundTerm> =
        consts.iter().filter(|c| c.is_fixed()).map(|c| ground(c, &[]).into_owned()).collect();
    let mut ids = source.resolve_constants(&terms, limits)?.into_iter();
    let id = |c: &ConstTerm| match c {
        ConstTerm::Fixed(_) => ids.next().expect("one answer per term"),
        ConstTerm::Param(_) | ConstTerm::Triple(_) => None,
    };
    Ok(consts.iter().map(id).collect())
}
