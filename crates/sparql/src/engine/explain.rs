//! EXPLAIN: a plan as an indented tree, the root first; with measurements if it was run.

use snowmelt_database::meters::PageTimes;
use snowmelt_graph::{AnyIndex, Index, TermId, TripleIndex};

use super::explanation::{Assumptions, Explanation, Measured, PlanEstimate, PlanStep, Residence};
use crate::algebra::consts::GroundTerm;
use crate::algebra::names::told_apart;
use crate::algebra::{Const, Expression, ExpressionText, PropertyPath, Var};
use crate::exec::{Counters, Profile, Run, SharedNote};
use crate::plan::{Access, Copies, Finds, JoinKind, Op, PathEnd, PlanNode, Reads, Residency, Src, children};

/// The plan step by step; with a profile, also the measurements of each step.
pub(crate) fn explain(run: &Run, profile: Option<&Profile>) -> Explanation {
    let plan = &*run.query.plan;
    let names = told_apart(&run.query.algebra.names);
    let mut teller = Teller { run, names, profile, steps: Vec::with_capacity(plan.nodes) };
    teller.node(&plan.root, 0);
    Explanation {
        steps: teller.steps,
        assumptions: plan.reads.times().map(|times| assumed(&plan.reads, times)),
        warnings: run.query.warnings.clone(),
        outcome: None,
    }
}

/// Assumptions of the plan about its reads: of those indexes that are not in memory.
fn assumed(reads: &Reads, times: PageTimes) -> Assumptions {
    let of = |index: AnyIndex| (index, reads.index(index).residency);
    let all = Index::ALL.into_iter().map(AnyIndex::from).chain(TripleIndex::ALL.map(AnyIndex::from));
    let cold = all.map(of).filter(|(_, residency)| *residency != Residency::Warm);
    let residence = |(index, residency): (AnyIndex, Residency)| Residence {
        index: index_name(index),
        residency: residency.name(),
    };
    Assumptions {
        indexes: cold.map(residence).collect(),
        lone_us: times.lone_us,
        one_of_many_us: times.request_us + times.page_us,
    }
}

struct Teller<'a> {
    run: &'a Run,
    /// of the variables
    names: Vec<String>,
    profile: Option<&'a Profile>,
    steps: Vec<PlanStep>,
}

impl Teller<'_> {
    /// Adds a node and all below it; returns its place in the list.
    fn node(&mut self, node: &PlanNode, depth: usize) -> usize {
        let place = self.steps.len();
        let (operator, detail) = self.describe(node);
        let access = access_of(&node.op);
        let measured = self.profile.and_then(|profile| profile.operators.get(node.id)).map(measured);
        self.steps.push(PlanStep {
            depth,
            inputs: Vec::new(),
            operator,
            detail,
            index: access.map(|(access, _)| index_name(access.index)),
            key: access.map_or_else(Vec::new, |(access, input)| self.key(access, input)),
            columns: node.vars.iter().map(|var| self.vars(&[*var])).collect(),
            estimate: PlanEstimate { rows: node.rows, cpu_us: node.cost.cpu, io_us: node.cost.io },
            measured,
        });
        for child in children(&node.op) {
            let at = self.node(child, depth + 1);
            self.steps[place].inputs.push(at);
        }
        place
    }

    /// The operator of a node, and what it works on.
    fn describe(&self, node: &PlanNode) -> (String, String) {
        let (operator, detail) = match &node.op {
            Op::Seed => ("seed", self.vars(&node.vars)),
            Op::Context { .. } => ("context", self.vars(&node.vars)),
            Op::Unit => ("unit", String::new()),
            Op::Nothing => ("nothing", String::new()),
            Op::Scan { access } => {
                ("scan", format!("{} → {}", self.access(access, &[]), self.found(access, &node.vars)))
            }
            Op::Lookup { input, access, finds, conditions, keep, star, .. } => {
                let new = self.found(access, &node.vars[keep.len().min(node.vars.len())..]);
                let filter = if conditions.is_empty() {
                    String::new()
                } else {
                    format!(" if {}", self.conditions(conditions))
                };
                let announces =
                    if star.is_empty() { String::new() } else { format!(" announcing {}", star.len()) };
                let text = format!("{} → {new}{filter}{announces}", self.access(access, &input.vars));
                (lookup_name(*finds), text)
            }
            Op::Hash { left, on, kind, loose, .. } => {
                let how = if *loose { " (some unbound)" } else { "" };
                if on.is_empty() {
                    return ("product".to_owned(), how.trim_start().to_owned());
                }
                let on: Vec<Var> = on.iter().map(|p| left.vars[p.0 as usize]).collect();
                return (format!("hash {}", kind_name(*kind)), format!("on {}{how}", self.vars(&on)));
            }
            Op::Nested { left, kind, seed, context, .. } => {
                let seed: Vec<Var> = seed.iter().map(|c| left.vars[*c as usize]).collect();
                let how = if context.is_some() { "correlated" } else { "nested" };
                return (format!("{how} {}", kind_name(*kind)), format!("by {}", self.vars(&seed)));
            }
            Op::Filter { conditions, .. } => ("filter", self.conditions(conditions)),
            Op::Extend { expr, .. } => {
                let var = node.vars.last().map(|v| self.vars(&[*v])).unwrap_or_default();
                ("extend", format!("{var} = {}", self.expression(expr)))
            }
            Op::Values { rows } => ("values", format!("{} rows", rows.len())),
            Op::GraphNames { .. } => ("graph names", String::new()),
            Op::Union { branches, .. } => ("union", format!("of {}", branches.len())),
            Op::Group { .. } | Op::GroupWithout { .. } | Op::Fold { .. } => self.grouped(&node.op),
            Op::Repeat { most, .. } => ("repeat", format!("up to {most} times")),
            Op::CountValues { input } => ("count values", format!("of {}", self.vars(&input.vars))),
            Op::Distinct { optional, .. } => ("distinct", if *optional { "(early)" } else { "" }.to_owned()),
            Op::Sort { keys, limit, .. } => match limit {
                Some(limit) => ("top", format!("{limit} by {} keys", keys.len())),
                None => ("sort", format!("by {} keys", keys.len())),
            },
            Op::Slice { offset, limit, .. } => {
                let limit = limit.map_or_else(String::new, |limit| format!(" limit {limit}"));
                ("slice", format!("from {offset}{limit}"))
            }
            Op::Project { .. } => ("project", self.vars(&node.vars)),
            Op::Service { .. } => ("service", self.service(&node.op)),
            Op::Path { path, from, to, .. } => {
                let end = |e: &PathEnd| if *e == PathEnd::New { "new" } else { "bound" };
                ("path", format!("{} -({})- {}", end(from), self.path(path), end(to)))
            }
        };
        (operator.to_owned(), detail)
    }

    /// An operator that brings rows with the same keys together, and these keys.
    fn grouped(&self, op: &Op) -> (&'static str, String) {
        let of = |input: &PlanNode, keys: &[u16]| {
            self.vars(&keys.iter().map(|k| input.vars[*k as usize]).collect::<Vec<_>>())
        };
        match op {
            Op::Group { input, keys, aggregates, .. } => {
                ("group", format!("by {} ({} aggregates)", of(input, keys), aggregates.len()))
            }
            Op::GroupWithout { pairs, left, keys, aggregates, .. } => {
                let (keys, pairs) = (of(left, keys), self.vars(&pairs.vars));
                ("group without", format!("{pairs} by {keys} ({} aggregates)", aggregates.len()))
            }
            Op::Fold { input, keys, .. } => ("fold", format!("to {}", of(input, keys))),
            other => unreachable!("{other:?} has no keys"),
        }
    }

    /// The endpoint of a SERVICE, the values that are sent and those that come.
    fn service(&self, op: &Op) -> String {
        let Op::Service { input, service, endpoint, sent, new, .. } = op else { return String::new() };
        let columns = input.as_ref().map_or(&[][..], |input| &input.vars);
        let endpoint = self.src(*endpoint, columns, Iris::Whole);
        let silent = if service.is_silent { "silent " } else { "" };
        let named = |places: &mut dyn Iterator<Item = u16>| {
            places.map(|place| format!(" ?{}", service.names[usize::from(place)].0)).collect::<String>()
        };
        let sent = named(&mut sent.iter().map(|value| value.name));
        let sent = if sent.is_empty() { " once".to_owned() } else { format!(" for{sent}") };
        format!("{silent}{endpoint}{sent} →{}", named(&mut new.iter().map(|column| column.0)))
    }

    /// The new columns of a visit, and what becomes of copies.
    fn found(&self, access: &Access, vars: &[Var]) -> String {
        let separated = |text: &str, of: &[Var]| {
            format!("{}{}{text}", self.vars(of), if of.is_empty() { "" } else { " " })
        };
        match (access.copies, vars.split_last()) {
            (Copies::Weigh, Some((_, new))) => separated("× rows", new),
            (Copies::Merge, _) => separated("once", vars),
            _ => self.vars(vars),
        }
    }

    fn access(&self, access: &Access, input: &[Var]) -> String {
        let name = index_name(access.index);
        let key: Vec<String> = access.key.iter().map(|k| self.src(*k, input, Iris::Short)).collect();
        let bounds = match &access.bounds {
            Some(bounds) => format!(" if {}", self.conditions(&bounds.conditions)),
            None => String::new(),
        };
        format!("{name}[{}]{bounds}", key.join(" "))
    }

    /// The key of a visit, its terms in full.
    fn key(&self, access: &Access, input: &[Var]) -> Vec<String> {
        access.key.iter().map(|k| self.src(*k, input, Iris::Whole)).collect()
    }

    fn src(&self, src: Src, input: &[Var], iris: Iris) -> String {
        match src {
            Src::Const(c) => match &*self.run.query.constant_term(c) {
                GroundTerm::Iri(iri) if iris == Iris::Short => {
                    let text = iri.as_str();
                    let local = text.rfind(['#', '/']).map_or(text, |i| &text[i + 1..]);
                    format!("…{local}")
                }
                term => term.to_string(),
            },
            Src::Fixed(TermId::DEFAULT_GRAPH) => "default".to_owned(),
            Src::Fixed(id) => format!("{id:?}"),
            Src::Col(c) => self.vars(&[input[c as usize]]),
        }
    }

    fn path(&self, path: &PropertyPath) -> String {
        use PropertyPath as P;
        let listed = |paths: &[P], between: &str| {
            paths.iter().map(|path| self.path(path)).collect::<Vec<_>>().join(between)
        };
        let predicate = |c: &Const| self.run.query.constant_term(*c).to_string();
        match path {
            P::Predicate(c) => predicate(c),
            P::Reverse(path) => format!("^({})", self.path(path)),
            P::Sequence(steps) => format!("({})", listed(steps, " / ")),
            P::Alternative(paths) => format!("({})", listed(paths, " | ")),
            P::ZeroOrMore(path) => format!("({})*", self.path(path)),
            P::OneOrMore(path) => format!("({})+", self.path(path)),
            P::ZeroOrOne(path) => format!("({})?", self.path(path)),
            P::Negated(not) => format!("!({})", not.iter().map(predicate).collect::<Vec<_>>().join(" | ")),
        }
    }

    fn vars(&self, vars: &[Var]) -> String {
        let name =
            |v: &Var| self.names.get(v.0 as usize).map_or_else(|| "#row".to_owned(), |n| format!("?{n}"));
        vars.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    fn conditions(&self, conditions: &[Expression]) -> String {
        conditions.iter().map(|e| self.expression(e).to_string()).collect::<Vec<_>>().join(" && ")
    }

    fn expression<'e>(&'e self, expression: &'e Expression) -> ExpressionText<'e> {
        ExpressionText { expression, names: &self.names, params: &self.run.query.params }
    }
}

/// How IRIs are shown.
#[derive(Clone, Copy, PartialEq)]
enum Iris {
    /// the part after the last / or #
    Short,
    Whole,
}

/// The index visit of an operator, and the variables of the columns that its key may refer to.
fn access_of(op: &Op) -> Option<(&Access, &[Var])> {
    match op {
        Op::Scan { access } => Some((access, &[])),
        Op::Lookup { access, input, .. } => Some((access, &input.vars)),
        _ => None,
    }
}

fn measured(counters: &Counters) -> Measured {
    Measured {
        rows: counters.rows,
        batches: counters.batches,
        starts: counters.starts,
        is_complete: counters.starts > 0 && counters.ends >= counters.starts,
        time: counters.time,
        activity: counters.activity,
        threads: counters.threads,
        shared: counters.shared.map(note),
        remote: counters.remote.iter().map(|(endpoint, used)| (endpoint.clone(), *used)).collect(),
    }
}

fn index_name(index: AnyIndex) -> &'static str {
    match index {
        AnyIndex::Quads(Index::Psog) => "PSOG",
        AnyIndex::Quads(Index::Posg) => "POSG",
        AnyIndex::Quads(Index::Sp) => "SP",
        AnyIndex::Quads(Index::Op) => "OP",
        AnyIndex::Quads(Index::Gs) => "GS",
        AnyIndex::Triples(TripleIndex::Id) => "TRIPLE",
        AnyIndex::Triples(TripleIndex::Spo) => "TRIPLE-SPO",
        AnyIndex::Triples(TripleIndex::Pos) => "TRIPLE-POS",
        AnyIndex::Triples(TripleIndex::Osp) => "TRIPLE-OSP",
    }
}

fn lookup_name(finds: Finds) -> &'static str {
    use crate::algebra::ExistsKind::{Anti, Mark, Semi};
    match finds {
        Finds::Rows => "lookup",
        Finds::Optional => "left lookup",
        Finds::Whether(Semi) => "semi-lookup",
        Finds::Whether(Anti) => "anti-lookup",
        Finds::Whether(Mark(_)) => "marking lookup",
    }
}

fn kind_name(kind: JoinKind) -> &'static str {
    use crate::algebra::ExistsKind::{Anti, Mark, Semi};
    match kind {
        JoinKind::Inner => "join",
        JoinKind::Left => "left join",
        JoinKind::Minus => "minus",
        JoinKind::Exists(Semi) => "semi-join",
        JoinKind::Exists(Anti) => "anti-join",
        JoinKind::Exists(Mark(_)) => "mark",
    }
}

/// How a scan was shared.
fn note(shared: SharedNote) -> String {
    match shared.joined_at {
        Some(share) => format!("shared with {}, joined at {:.0} %", shared.others, 100.0 * share),
        None => "in pieces".to_owned(),
    }
}
