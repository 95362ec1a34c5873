//! EXPLAIN: a plan as an indented tree, the root first; with what really happened, when it was run.

use std::fmt::Write;

use snowmelt_graph::{Index, PageTimes, TermId};
use spargebra::algebra::Expression;

use crate::algebra::Var;
use crate::exec::{Profile, Run, SharedNote};
use crate::plan::{Access, JoinKind, Op, PathEnd, Plan, PlanNode, Reads, Residency, Src, children};
use crate::text::parameter::{GroundTerm, ground};

/// The plan as text, a line per operator.
pub(crate) fn explain(plan: &Plan, run: &Run, profile: Option<&Profile>) -> String {
    let mut out = String::new();
    Printer { run, profile }.node(&plan.root, 0, &mut out);
    if let Some(times) = plan.reads.times() {
        out.push_str(&assumed(&plan.reads, times));
    }
    out
}

/// Assumptions of the plan about its reads: of those indexes that are not in memory.
fn assumed(reads: &Reads, times: PageTimes) -> String {
    let of = |index: &Index| (index_name(*index), reads.index(*index).residency);
    let cold = Index::ALL.iter().map(of).filter(|(_, residency)| *residency != Residency::Warm);
    let cold: Vec<String> = cold.map(|(name, residency)| format!("{name} {}", residency.name())).collect();
    format!(
        "planned for {}: a page alone takes {}, one of many {}\n",
        cold.join(", "),
        time(times.lone_us),
        time(times.request_us + times.page_us)
    )
}

/// Levels that are indented; the thousand look-ups of a thousand patterns are below each other.
const MOST_INDENTED: usize = 100;

struct Printer<'a> {
    run: &'a Run,
    profile: Option<&'a Profile>,
}

impl Printer<'_> {
    fn node(&self, node: &PlanNode, depth: usize, out: &mut String) {
        let line = format!("{:indent$}{}", "", self.describe(node), indent = depth.min(MOST_INDENTED) * 2);
        write!(out, "{line:<72} rows≈{} cost≈{}µs", short(node.rows), short(node.cost.cpu))
            .expect("a string takes all");
        if node.cost.io > 0.0 {
            write!(out, " + io≈{}", time(node.cost.io)).expect("a string takes all");
        }
        if let Some(counters) = self.profile.and_then(|p| p.operators.get(node.id)) {
            write!(
                out,
                "  | rows {} batches {} starts {} time {:.3?} | {}",
                counters.rows, counters.batches, counters.starts, counters.time, counters.activity
            )
            .expect("a string takes all");
            if counters.threads > 1 {
                write!(out, " | {} threads", counters.threads).expect("a string takes all");
            }
            if let Some(shared) = counters.shared {
                write!(out, " | {}", note(shared)).expect("a string takes all");
            }
        }
        out.push('\n');
        for child in children(&node.op) {
            self.node(child, depth + 1, out);
        }
    }

    fn describe(&self, node: &PlanNode) -> String {
        match &node.op {
            Op::Seed => format!("seed {}", self.vars(&node.vars)),
            Op::Context { .. } => format!("context {}", self.vars(&node.vars)),
            Op::Unit => "unit".to_owned(),
            Op::Nothing => "nothing".to_owned(),
            Op::Scan { access } => format!("scan {} → {}", self.access(access, &[]), self.vars(&node.vars)),
            Op::Lookup { input, access, conditions, keep, star, .. } => {
                let new = self.vars(&node.vars[keep.len().min(node.vars.len())..]);
                let filter = if conditions.is_empty() {
                    String::new()
                } else {
                    format!(" if {}", self.conditions(conditions))
                };
                let announces =
                    if star.is_empty() { String::new() } else { format!(" announcing {}", star.len()) };
                format!("lookup {} → {new}{filter}{announces}", self.access(access, &input.vars))
            }
            Op::Hash { left, on, kind, loose, .. } => {
                let on: Vec<Var> = on.iter().map(|p| left.vars[p.0 as usize]).collect();
                let how = if *loose { " (some unbound)" } else { "" };
                format!(
                    "{} on {}{how}",
                    if on.is_empty() { "product".to_owned() } else { format!("hash {}", kind_name(*kind)) },
                    self.vars(&on)
                )
            }
            Op::Nested { left, kind, seed, context, .. } => {
                let seed: Vec<Var> = seed.iter().map(|c| left.vars[*c as usize]).collect();
                let how = if context.is_some() { "correlated" } else { "nested" };
                format!("{how} {} by {}", kind_name(*kind), self.vars(&seed))
            }
            Op::Filter { conditions, .. } => format!("filter {}", self.conditions(conditions)),
            Op::Extend { expr, .. } => {
                let var = node.vars.last().map(|v| self.vars(&[*v])).unwrap_or_default();
                format!("extend {var} = {expr}")
            }
            Op::Values { rows } => format!("values {} rows", rows.len()),
            Op::GraphNames { .. } => "graph names".to_owned(),
            Op::Union { branches, .. } => format!("union of {}", branches.len()),
            Op::Group { input, keys, aggregates, .. } => {
                let keys: Vec<Var> = keys.iter().map(|k| input.vars[*k as usize]).collect();
                format!("group by {} ({} aggregates)", self.vars(&keys), aggregates.len())
            }
            Op::Distinct { optional, .. } => {
                if *optional { "distinct (early)" } else { "distinct" }.to_owned()
            }
            Op::Sort { keys, limit, .. } => match limit {
                Some(limit) => format!("top {limit} by {} keys", keys.len()),
                None => format!("sort by {} keys", keys.len()),
            },
            Op::Slice { offset, limit, .. } => {
                format!("slice from {offset}{}", limit.map_or_else(String::new, |l| format!(" limit {l}")))
            }
            Op::Project { .. } => format!("project {}", self.vars(&node.vars)),
            Op::Path { path, from, to, .. } => {
                let end = |e: &PathEnd| if *e == PathEnd::New { "new" } else { "bound" };
                format!("path {} -({path})- {}", end(from), end(to))
            }
        }
    }

    fn access(&self, access: &Access, input: &[Var]) -> String {
        let name = index_name(access.index);
        let key: Vec<String> = access.key.iter().map(|k| self.src(*k, input)).collect();
        let bounds = if access.bounds.is_empty() { "" } else { " in bounds" };
        format!("{name}[{}]{bounds}", key.join(" "))
    }

    fn src(&self, src: Src, input: &[Var]) -> String {
        match src {
            Src::Const(c) => {
                let term = ground(&self.run.algebra.consts[c.0 as usize], &self.run.params);
                match term {
                    GroundTerm::Iri(iri) => {
                        let text = iri.as_str();
                        let local = text.rfind(['#', '/']).map_or(text, |i| &text[i + 1..]);
                        format!("…{local}")
                    }
                    GroundTerm::Literal(literal) => literal.to_string(),
                }
            }
            Src::Fixed(TermId::DEFAULT_GRAPH) => "default".to_owned(),
            Src::Fixed(id) => format!("{id:?}"),
            Src::Col(c) => self.vars(&[input[c as usize]]),
        }
    }

    fn vars(&self, vars: &[Var]) -> String {
        let name = |v: &Var| {
            self.run
                .algebra
                .names
                .get(v.0 as usize)
                .map_or_else(|| "#row".to_owned(), |n| format!("?{}", n.as_str()))
        };
        vars.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    fn conditions(&self, conditions: &[Expression]) -> String {
        let own = |e: &Expression| {
            if self.run.params.is_empty() {
                e.to_string()
            } else {
                crate::exec::fill(e, &self.run.params).to_string()
            }
        };
        conditions.iter().map(own).collect::<Vec<_>>().join(" && ")
    }
}

fn index_name(index: Index) -> &'static str {
    match index {
        Index::Psog => "PSOG",
        Index::Posg => "POSG",
        Index::Sp => "SP",
        Index::Op => "OP",
        Index::Gs => "GS",
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

/// A time in the unit that suits it.
fn time(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{}µs", short(us)),
        us if us < 1e6 => format!("{}ms", short(us / 1e3)),
        us => format!("{}s", short(us / 1e6)),
    }
}

fn short(n: f64) -> String {
    match n {
        n if n < 10.0 => format!("{n:.1}"),
        n if n < 10_000.0 => format!("{n:.0}"),
        n if n < 1e7 => format!("{:.0}K", n / 1e3),
        n => format!("{:.0}M", n / 1e6),
    }
}
