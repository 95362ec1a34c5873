//! The tree of a text as an algebra.
//!
//! 1. Variables of the text become those of the algebra. A sub-select has a scope of its own: only
//!    its projected ones are those of the outside.
//! 2. A variable of an expression that is not in scope there becomes one that is never bound
//!    (bottom-up semantics).
//! 3. EXISTS leaves the expressions: a conjunct becomes a semi- or anti-join, any other a join
//!    that marks. What is evaluated for a solution, inside EXISTS, is in `context`.
//! 4. GRAPH moves into its patterns; where they do not show that the graph exists, what is inside
//!    is joined with its existence.
//! 5. SERVICE becomes text for its endpoint, in `remote`.
//! 6. Constants are numbered, and so are the parameters of the text.

mod context;
pub(crate) mod expression;
mod remote;

use oxrdf::NamedNode;
use rustc_hash::FxHashMap;
use snowmelt_graph::{GraphView, MOST_TRIPLE_LEVELS};
use snowmelt_syntax::tree::{
    self, Blank, Expr, FirstUses, GraphPattern, Path, Place, QueryForm, TriplePattern, UnaryOperator,
    VarNames,
};

use super::consts::{ConstTerm, GroundTerm};
use super::mentions::{Mentions, has_exists};
use super::names::Internal;
use super::{
    Algebra, Const, Dataset, ExistsKind, Expression, Form, GraphSlot, Node, Param, Pattern, PropertyPath,
    Scope, Slot, SortKey, TemplateSlot, Var, VarSet,
};
use crate::bounds::text_limits::tree_stack_bytes;
use crate::error::QueryError;
use crate::text::iri::LIST_MEMBER;
use context::{ExistsContext, graph_var};
use expression::{ExpressionConverter, ScopedPart, and, chained};

/// Stands for the names of all graphs that the user may not see. No document can contain it.
pub(crate) const UNSEEN: &str = "snowmelt:a graph that is not there";

/// From a list to its members.
fn members() -> Path {
    let node = |name: oxrdf::NamedNodeRef<'_>| {
        Path::Predicate(tree::Slot::Term(tree::Term::Iri(name.as_str().into())))
    };
    let rest = Path::ZeroOrMore(Box::new(node(oxrdf::vocab::rdf::REST)));
    Path::Sequence(vec![rest, node(oxrdf::vocab::rdf::FIRST)])
}

/// Translates a query with parameters.
///
/// Under a view, all other graphs have one name, so that no answer depends on which of them a query
/// names.
pub(crate) fn translate(
    query: &tree::Query,
    params: &[GroundTerm],
    view: Option<&GraphView>,
) -> Result<Algebra, QueryError> {
    let mut t = Translator::new(TextFacts { names: &query.names, first: &query.first, params }, view);
    let mut select = SelectNames::default();
    let pattern = &query.pattern;
    let root = t.root(pattern, &mut select)?;
    let form = match &query.form {
        QueryForm::Select => Form::Select(t.result_vars(pattern, &mut select)),
        QueryForm::Ask => Form::Ask,
        QueryForm::Describe(named) => {
            let iris = named.iter().filter(|slot| !matches!(slot, tree::Slot::Var(_)));
            let iris = iris.map(|slot| t.fixed(slot)).collect();
            Form::Describe(t.result_vars(pattern, &mut select), iris)
        }
        QueryForm::Construct(template) => Form::Construct(t.template(template, &mut select)?),
    };
    let dataset = t.dataset(query.dataset.as_ref());
    let (base, room) = (query.base.as_ref().map(ToString::to_string), tree_stack_bytes(&query.measure));
    Ok(Algebra { form, root, dataset, names: t.names, consts: t.consts, base, room })
}

/// Facts about a text that its patterns alone do not tell.
#[derive(Clone, Copy)]
struct TextFacts<'a> {
    names: &'a VarNames,
    first: &'a FirstUses,
    params: &'a [GroundTerm],
}

/// The variables of one SELECT, by those of the text.
#[derive(Default)]
struct SelectNames {
    vars: FxHashMap<tree::Var, Var>,
    /// inside EXISTS: the solutions it is evaluated for
    context: Option<usize>,
    /// whether LIMIT or OFFSET count its solutions
    sliced: bool,
    /// whether equal solutions are one
    distinct: bool,
}

impl SelectNames {
    /// The visible variables among those of a node that stands here. Blank nodes, steps of paths
    /// and variables that the translation makes are not.
    fn visible(&self, of: &Scope) -> VarSet {
        let names: VarSet = self.vars.values().copied().collect();
        let visible = names.intersection(&of.possible);
        debug_assert!(!visible.intersects(&of.hidden), "a hidden name has a number of its own");
        visible
    }
}

struct Translator<'a> {
    text: TextFacts<'a>,
    /// graphs that the user may see; none: all
    view: Option<&'a GraphView>,
    names: Vec<String>,
    consts: Vec<ConstTerm>,
    const_numbers: FxHashMap<ConstTerm, Const>,
    blanks: FxHashMap<Blank, Var>,
    never: Option<Var>,
    /// those of all EXISTS so far
    contexts: Vec<ExistsContext>,
    /// patterns of the triple terms in the pattern that is being translated
    within: Vec<Node>,
    /// of what an endpoint evaluates: nothing is to be made of it
    only_looks: bool,
    /// there was a MINUS whose sides may share no variable
    has_open_minus: bool,
}

impl<'a> Translator<'a> {
    fn new(text: TextFacts<'a>, view: Option<&'a GraphView>) -> Self {
        Self {
            text,
            view,
            names: Vec::new(),
            consts: Vec::new(),
            const_numbers: FxHashMap::default(),
            blanks: FxHashMap::default(),
            never: None,
            contexts: Vec::new(),
            within: Vec::new(),
            only_looks: false,
            has_open_minus: false,
        }
    }

    /// For a look at what an endpoint evaluates.
    fn looking(text: TextFacts<'a>) -> Self {
        Self { only_looks: true, ..Self::new(text, None) }
    }

    fn fresh(&mut self, name: impl Into<String>) -> Var {
        let var = Var(self.names.len() as u32);
        self.names.push(name.into());
        var
    }

    fn internal(&mut self, kind: Internal<'_>) -> Var {
        self.fresh(kind.name())
    }

    fn var(&mut self, of_text: tree::Var, select: &mut SelectNames) -> Var {
        if let Some(v) = select.vars.get(&of_text) {
            return *v;
        }
        let v = self.fresh_of(of_text);
        select.vars.insert(of_text, v);
        v
    }

    /// A variable with the name of one of the text.
    fn fresh_of(&mut self, of_text: tree::Var) -> Var {
        match self.text.names.name(of_text) {
            Some(name) => self.fresh(name),
            None => self.internal(Internal::Unnamed),
        }
    }

    fn never(&mut self) -> Var {
        if let Some(v) = self.never {
            return v;
        }
        let v = self.internal(Internal::Never);
        self.never = Some(v);
        v
    }

    fn constant(&mut self, term: ConstTerm) -> Const {
        if let Some(c) = self.const_numbers.get(&term) {
            return *c;
        }
        let number = Const(self.consts.len() as u32);
        self.consts.push(term.clone());
        self.const_numbers.insert(term, number);
        number
    }

    fn iri(&mut self, iri: &str) -> Const {
        self.constant(ConstTerm::Fixed(GroundTerm::Iri(NamedNode::new_unchecked(iri))))
    }

    /// A term, or a parameter.
    fn fixed(&mut self, slot: &tree::Slot) -> Const {
        self.constant(match slot {
            tree::Slot::Term(term) => ConstTerm::Fixed(GroundTerm::of_text(term)),
            tree::Slot::Param(number) => ConstTerm::Param(*number),
            tree::Slot::Var(_) | tree::Slot::Triple(_) => {
                unreachable!("the parser takes only constants of one token here")
            }
        })
    }

    fn unsupported(&self, place: Option<Place>, construct: &str) -> QueryError {
        let Place { line, column } = place.unwrap_or(Place { line: 1, column: 1 });
        QueryError::Unsupported { construct: construct.to_owned(), line, column }
    }

    fn too_deep(&self) -> QueryError {
        let construct = format!("a triple term of more than {MOST_TRIPLE_LEVELS} levels");
        self.unsupported(self.text.first.triple_term, &construct)
    }

    fn root(&mut self, pattern: &GraphPattern, select: &mut SelectNames) -> Result<Node, QueryError> {
        self.modifiers(pattern, select, GraphSlot::Default)
    }

    /// The solution modifiers of one SELECT, down to its projection; inside, the names are those
    /// of `select`.
    fn modifiers(
        &mut self,
        pattern: &GraphPattern,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        Ok(match pattern {
            GraphPattern::Slice { inner, start, length } => {
                let inner = Box::new(self.modifiers(inner, select, g)?);
                // of each context and each graph
                let graph = graph_var(g).filter(|v| inner.scope().possible.contains(*v));
                let per = self.row_of(&inner, select).into_iter().chain(graph).collect();
                Node::Slice { inner, offset: *start as u64, limit: length.map(|l| l as u64), per }
            }
            GraphPattern::Distinct(inner) => Node::Distinct(Box::new(self.modifiers(inner, select, g)?)),
            GraphPattern::Reduced(inner) => Node::Reduced(Box::new(self.modifiers(inner, select, g)?)),
            GraphPattern::Project { inner, vars, .. } => {
                let mut node = self.node(inner, select, g)?;
                let mut vars: Vec<Var> = vars.iter().map(|v| self.var(*v, select)).collect();
                let shown: VarSet = vars.iter().copied().collect();
                let of_context = self.context_vars(select).intersection(&node.scope().possible);
                // a hidden name would not meet the context outside; a row too many would have
                // been counted; rows that differ where one is open are the same in the context
                let is_open = || !of_context.is_subset(&node.scope().certain);
                if !of_context.is_subset(&shown)
                    || (select.sliced && !of_context.is_empty())
                    || (select.distinct && is_open())
                {
                    node = match node {
                        // the rows of each context stay in their order
                        Node::Sort { inner, keys } => {
                            Node::Sort { inner: Box::new(self.in_context(*inner, select)), keys }
                        }
                        other => self.in_context(other, select),
                    };
                }
                vars.extend(self.row_of(&node, select));
                // the graph being looked at stays visible to the join outside
                let scope = node.scope();
                if let Some(graph) = graph_var(g).filter(|v| scope.possible.contains(*v)) {
                    debug_assert!(scope.certain.contains(graph), "bound in each solution or in none");
                    if !vars.contains(&graph) {
                        vars.push(graph);
                    }
                }
                Node::Project { inner: Box::new(node), vars }
            }
            other => self.node(other, select, g)?,
        })
    }

    fn node(
        &mut self,
        pattern: &GraphPattern,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        Ok(match pattern {
            GraphPattern::Bgp(triples) => {
                let nodes = triples.iter().map(|triple| self.triple(triple, select, g));
                join(nodes.collect::<Result<Vec<_>, _>>()?)
            }
            GraphPattern::Path { subject, path, object } => self.path([subject, object], path, select, g)?,
            GraphPattern::Join(parts) => join(self.nodes(parts, select, g)?),
            GraphPattern::LeftJoin { left, right, condition } => {
                self.left_join(left, right, condition.as_ref(), select, g)?
            }
            GraphPattern::Filter { condition, inner } => {
                let inner = self.node(inner, select, g)?;
                self.filter(inner, condition, select, g)?
            }
            GraphPattern::Union(parts) => {
                let branches = opened(self.nodes(parts, select, g)?);
                Node::Union(alike_in_graph(self.alike(branches, select), g))
            }
            GraphPattern::Graph { name, inner } => self.graph(name, inner, select)?,
            GraphPattern::Extend { inner, values } => self.extend(inner, values, select, g)?,
            GraphPattern::Minus { left, right } => self.minus(left, right, select, g)?,
            GraphPattern::Values(values) => {
                let vars = values.vars.iter().map(|v| self.var(*v, select)).collect();
                let rows = values.rows.iter().map(|row| {
                    row.iter().map(|cell| cell.as_ref().map(|cell| self.cell(cell)).transpose()).collect()
                });
                Node::Values { vars, rows: rows.collect::<Result<_, _>>()? }
            }
            GraphPattern::OrderBy { inner, keys } => {
                let mut inner = self.node(inner, select, g)?;
                let mut sorted = Vec::with_capacity(keys.len());
                for key in keys {
                    let (with_marks, expr) = self.expression_over(inner, &key.expr, select, g)?;
                    inner = with_marks;
                    sorted.push(SortKey { expr, descending: key.is_descending });
                }
                Node::Sort { inner: Box::new(inner), keys: sorted }
            }
            GraphPattern::Group { inner, vars, aggregates } => {
                self.group(inner, vars, aggregates, select, g)?
            }
            GraphPattern::Project { .. }
            | GraphPattern::Distinct(_)
            | GraphPattern::Reduced(_)
            | GraphPattern::Slice { .. } => self.sub_select(pattern, select, g)?,
            GraphPattern::Service { name, inner, is_silent } => {
                self.service(name, inner, *is_silent, select)?
            }
            GraphPattern::Lateral { left, right } => self.lateral(left, right, select, g)?,
        })
    }

    /// Patterns that stand beside each other.
    fn nodes(
        &mut self,
        patterns: &[GraphPattern],
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Vec<Node>, QueryError> {
        patterns.iter().map(|pattern| self.node(pattern, select, g)).collect()
    }

    fn sub_select(
        &mut self,
        pattern: &GraphPattern,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        let (sliced, distinct) = (is_sliced(pattern), is_distinct(pattern));
        let shown = projected(pattern);
        let context = select.context.map(|context| self.context_of_select(context, shown));
        let mut inside = SelectNames { context, sliced, distinct, ..SelectNames::default() };
        for v in shown {
            inside.vars.insert(*v, self.var(*v, select));
        }
        self.modifiers(pattern, &mut inside, g)
    }

    fn triple(
        &mut self,
        triple: &TriplePattern,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        let s = self.slot(&triple.subject, select)?;
        if is_list_member(&triple.predicate) {
            let o = self.slot(&triple.object, select)?;
            let path = self.path_between(s, &members(), o, g);
            return Ok(self.with_triple_terms(path));
        }
        let p = self.slot(&triple.predicate, select)?;
        let o = self.slot(&triple.object, select)?;
        Ok(self.with_triple_terms(Node::Pattern(Pattern { s, p, o, g })))
    }

    /// Joins a pattern with those of the triple terms in it.
    fn with_triple_terms(&mut self, node: Node) -> Node {
        if self.within.is_empty() {
            return node;
        }
        join(std::iter::once(node).chain(self.within.drain(..)).collect())
    }

    /// A triple term: a constant, or a variable of its own that a pattern binds.
    fn triple_term(&mut self, triple: &TriplePattern, select: &mut SelectNames) -> Result<Slot, QueryError> {
        if levels(triple) > MOST_TRIPLE_LEVELS {
            return Err(self.too_deep());
        }
        let s = self.slot(&triple.subject, select)?;
        let p = self.slot(&triple.predicate, select)?;
        let o = self.slot(&triple.object, select)?;
        if let (Slot::Const(s), Slot::Const(p), Slot::Const(o)) = (s, p, o) {
            return Ok(Slot::Const(self.triple_of([s, p, o])));
        }
        let term = Slot::Var(self.internal(Internal::TripleTerm));
        self.within.push(Node::Pattern(Pattern { s, p, o, g: GraphSlot::TripleTerm(term) }));
        Ok(term)
    }

    fn slot(&mut self, slot: &tree::Slot, select: &mut SelectNames) -> Result<Slot, QueryError> {
        Ok(match slot {
            tree::Slot::Var(v) => Slot::Var(self.var(*v, select)),
            tree::Slot::Term(tree::Term::Blank(blank)) => Slot::Var(self.blank(blank)),
            tree::Slot::Triple(triple) => self.triple_term(triple, select)?,
            constant => Slot::Const(self.fixed(constant)),
        })
    }

    fn blank(&mut self, blank: &Blank) -> Var {
        if let Some(v) = self.blanks.get(blank) {
            return *v;
        }
        let v = match blank {
            Blank::Label(label) => self.internal(Internal::Blank(label)),
            Blank::Fresh(_) => self.internal(Internal::Unnamed),
        };
        self.blanks.insert(blank.clone(), v);
        v
    }

    fn path(
        &mut self,
        [s, o]: [&tree::Slot; 2],
        path: &Path,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        let s = self.slot(s, select)?;
        let o = self.slot(o, select)?;
        let path = self.path_between(s, path, o, g);
        Ok(self.with_triple_terms(path))
    }

    /// Sequences, alternatives and inverses become joins, unions and swapped patterns; the rest
    /// stays a path.
    fn path_between(&mut self, s: Slot, path: &Path, o: Slot, g: GraphSlot) -> Node {
        match path {
            Path::Predicate(p) if is_list_member(p) => self.path_between(s, &members(), o, g),
            Path::Predicate(p) => {
                let p = Slot::Const(self.fixed(p));
                Node::Pattern(Pattern { s, p, o, g })
            }
            Path::Reverse(p) => self.path_between(o, p, s, g),
            Path::Sequence(steps) => {
                let (mut from, mut nodes) = (s, Vec::with_capacity(steps.len()));
                for (at, step) in steps.iter().enumerate() {
                    let is_last = at + 1 == steps.len();
                    let to = if is_last { o } else { Slot::Var(self.internal(Internal::Step)) };
                    nodes.push(self.path_between(from, step, to, g));
                    from = to;
                }
                join(nodes)
            }
            Path::Alternative(paths) => {
                let sides = paths.iter().map(|path| self.path_between(s, path, o, g)).collect();
                Node::Union(opened(sides))
            }
            Path::Negated(not) => self.any_but(s, not, o, g),
            other => Node::Path { s, path: self.property_path(other), o, g },
        }
    }

    /// A step along any predicate but some: a pattern whose predicate is none of them.
    fn any_but(&mut self, s: Slot, not: &[tree::Slot], o: Slot, g: GraphSlot) -> Node {
        let p = self.internal(Internal::Step);
        let pattern = Node::Pattern(Pattern { s, p: Slot::Var(p), o, g });
        let named = |slot: &tree::Slot| match slot {
            tree::Slot::Term(term) => Expression::Const(GroundTerm::of_text(term)),
            tree::Slot::Param(number) => Expression::Param(Param { number: *number, is_iri: true }),
            tree::Slot::Var(_) | tree::Slot::Triple(_) => unreachable!("the parser takes only IRIs here"),
        };
        let list: Vec<Expression> = not.iter().map(named).collect();
        if list.is_empty() {
            return pattern;
        }
        let is_one = Expression::In(Box::new(Expression::Var(p)), list);
        Node::Filter { inner: Box::new(pattern), conditions: vec![is_one.negated()] }
    }

    /// A path with its predicates numbered.
    fn property_path(&mut self, path: &Path) -> PropertyPath {
        let boxed = |t: &mut Self, path: &Path| Box::new(t.property_path(path));
        match path {
            Path::Predicate(p) => PropertyPath::Predicate(self.fixed(p)),
            Path::Reverse(p) => PropertyPath::Reverse(boxed(self, p)),
            Path::Sequence(list) => PropertyPath::Sequence(self.property_paths(list)),
            Path::Alternative(list) => PropertyPath::Alternative(self.property_paths(list)),
            Path::ZeroOrMore(p) => PropertyPath::ZeroOrMore(boxed(self, p)),
            Path::OneOrMore(p) => PropertyPath::OneOrMore(boxed(self, p)),
            Path::ZeroOrOne(p) => PropertyPath::ZeroOrOne(boxed(self, p)),
            Path::Negated(not) => PropertyPath::Negated(not.iter().map(|p| self.fixed(p)).collect()),
        }
    }

    fn property_paths(&mut self, paths: &[Path]) -> Vec<PropertyPath> {
        paths.iter().map(|path| self.property_path(path)).collect()
    }

    /// The name of a graph, as far as the user may see it.
    fn graph_name(&mut self, name: &str) -> Const {
        match self.view.is_none_or(|view| view.has(Some(name))) {
            true => self.iri(name),
            false => self.iri(UNSEEN),
        }
    }

    fn graph(
        &mut self,
        name: &tree::Slot,
        inner: &GraphPattern,
        select: &mut SelectNames,
    ) -> Result<Node, QueryError> {
        let slot = match name {
            tree::Slot::Term(tree::Term::Iri(name)) => Slot::Const(self.graph_name(name)),
            tree::Slot::Var(v) if Mentions::of_pattern(inner).vars.contains(v) => {
                return self.graph_seen_inside(*v, inner, select);
            }
            tree::Slot::Var(v) => Slot::Var(self.var(*v, select)),
            // the value of a parameter is not known here
            _ if self.view.is_some() => Slot::Const(self.iri(UNSEEN)),
            param => Slot::Const(self.fixed(param)),
        };
        let node = self.node(inner, select, GraphSlot::Named(slot))?;
        // the context may bind it to what is no graph
        let of_context = matches!(name, tree::Slot::Var(v) if self.is_of_context(*v, select));
        Ok(if of_context { join(vec![Node::GraphNames(slot), node]) } else { in_graph(node, slot) })
    }

    /// GRAPH ?g where the inside names ?g as well: there it is a variable like any other, and
    /// only the result is joined with the graph's name (SPARQL 1.1, 18.6).
    fn graph_seen_inside(
        &mut self,
        v: tree::Var,
        inner: &GraphPattern,
        select: &mut SelectNames,
    ) -> Result<Node, QueryError> {
        let outside = self.var(v, select);
        let graph = self.internal(Internal::Graph);
        let inside = self.fresh_of(v);
        select.vars.insert(v, inside);
        let node = self.node(inner, select, GraphSlot::Named(Slot::Var(graph)));
        select.vars.insert(v, outside);
        let mut node = node?;
        node = in_graph(node, Slot::Var(graph));
        if node.scope().possible.contains(inside) {
            let open = Expression::Bound(inside).negated();
            let same = Expression::same_term(Expression::Var(inside), Expression::Var(graph));
            let condition = Expression::Or(vec![open, same]);
            node = Node::Filter { inner: Box::new(node), conditions: vec![condition] };
        }
        Ok(Node::Extend { inner: Box::new(node), var: outside, expr: Expression::Var(graph) })
    }

    /// BIND and AS, one after the other. Where the context may bind the name, it must be the same.
    fn extend(
        &mut self,
        inner: &GraphPattern,
        values: &[(tree::Var, Expr)],
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        let of_context: Vec<bool> = values.iter().map(|(v, _)| self.is_of_context(*v, select)).collect();
        // the variables of the context have other numbers before they get their values
        let hidden = values.iter().zip(&of_context).filter(|(_, of_context)| **of_context);
        let outside: FxHashMap<tree::Var, Var> =
            hidden.filter_map(|((v, _), _)| Some((*v, select.vars.remove(v)?))).collect();
        let mut node = self.node(inner, select, g)?;
        for ((v, expr), of_context) in values.iter().zip(of_context) {
            let (inner, expr) = self.expression_over(node, expr, select, g)?;
            if of_context {
                select.vars.remove(v);
                select.vars.extend(outside.get(v).map(|var| (*v, *var)));
            }
            node = Node::Extend { inner: Box::new(inner), var: self.var(*v, select), expr };
            if of_context {
                node = self.in_context(node, select);
            }
        }
        Ok(node)
    }

    fn filter(
        &mut self,
        inner: Node,
        expr: &Expr,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        let mut conditions = Vec::new();
        let mut exists = Vec::new();
        for conjunct in chained(expr, and) {
            match conjunct {
                Expr::Exists(p) => exists.push((p, ExistsKind::Semi)),
                Expr::Unary(UnaryOperator::Not, e) if let Expr::Exists(p) = &**e => {
                    exists.push((p, ExistsKind::Anti));
                }
                other => conditions.push(other),
            }
        }
        let mut node = inner;
        let mut plain = Vec::new();
        for condition in conditions {
            let (with_marks, expr) = self.expression_over(node, condition, select, g)?;
            node = with_marks;
            plain.push(expr);
        }
        if !plain.is_empty() {
            node = Node::Filter { inner: Box::new(node), conditions: plain };
        }
        for (pattern, kind) in exists {
            node = self.exists(node, pattern, kind, select, g)?;
        }
        Ok(node)
    }

    /// An expression over a node's solutions; the EXISTS in it become marks on the node.
    fn expression_over(
        &mut self,
        node: Node,
        expr: &Expr,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<(Node, Expression), QueryError> {
        let mut node = self.seeing(node, expr, select);
        let visible = node.scope().possible;
        if !has_exists(expr) {
            let expr = self.plain(expr, &visible, select)?;
            return Ok((node, expr));
        }
        let params = self.text.params;
        let mut scoped = |part: ScopedPart<'_>| match part {
            ScopedPart::Exists(pattern) => {
                let mark = self.internal(Internal::Exists);
                let left = std::mem::replace(&mut node, Node::Unit);
                node = self.exists(left, pattern, ExistsKind::Mark(mark), select, g)?;
                Ok(Expression::Var(mark))
            }
            ScopedPart::Var(v) => Ok(Expression::Var(self.resolve(v, &visible, select))),
            ScopedPart::Bound(v) => Ok(Expression::Bound(self.resolve(v, &visible, select))),
        };
        let expr = ExpressionConverter { params, scoped: &mut scoped }.expression(expr)?;
        Ok((node, expr))
    }

    /// An expression without EXISTS.
    fn plain(
        &mut self,
        expr: &Expr,
        visible: &VarSet,
        select: &mut SelectNames,
    ) -> Result<Expression, QueryError> {
        let params = self.text.params;
        let mut scoped = |part: ScopedPart<'_>| match part {
            ScopedPart::Var(v) => Ok(Expression::Var(self.resolve(v, visible, select))),
            ScopedPart::Bound(v) => Ok(Expression::Bound(self.resolve(v, visible, select))),
            ScopedPart::Exists(_) => unreachable!("an expression without EXISTS"),
        };
        ExpressionConverter { params, scoped: &mut scoped }.expression(expr)
    }

    /// A variable in an expression; where it is not in scope, one that is never bound.
    fn resolve(&mut self, of_text: tree::Var, visible: &VarSet, select: &mut SelectNames) -> Var {
        let var = self.var(of_text, select);
        if visible.contains(var) { var } else { self.never() }
    }

    /// A cell of VALUES.
    fn cell(&mut self, cell: &tree::Slot) -> Result<Const, QueryError> {
        let tree::Slot::Triple(triple) = cell else { return Ok(self.fixed(cell)) };
        if levels(triple) > MOST_TRIPLE_LEVELS {
            return Err(self.too_deep());
        }
        let [subject, predicate, object] = triple.slots();
        let parts = [self.fixed(subject), self.fixed(predicate), self.cell(object)?];
        Ok(self.triple_of(parts))
    }

    /// A triple term of constants.
    fn triple_of(&mut self, parts: [Const; 3]) -> Const {
        let parts = parts.map(|c| self.consts[c.0 as usize].clone());
        self.constant(ConstTerm::triple(parts))
    }

    fn dataset(&mut self, dataset: Option<&tree::Dataset>) -> Dataset {
        let Some(dataset) = dataset else { return Dataset::default() };
        let mut list = |graphs: &[tree::Iri]| graphs.iter().map(|g| self.graph_name(g)).collect::<Vec<_>>();
        // FROM without FROM NAMED comes with an empty list; without a list (WITH) all named
        // graphs stay.
        Dataset::new(Some(list(&dataset.default)), dataset.named.as_deref().map(list))
    }

    fn result_vars(&mut self, pattern: &GraphPattern, select: &mut SelectNames) -> Vec<Var> {
        projected(pattern).iter().map(|v| self.var(*v, select)).collect()
    }

    fn template(
        &mut self,
        template: &[TriplePattern],
        select: &mut SelectNames,
    ) -> Result<Vec<[TemplateSlot; 3]>, QueryError> {
        let mut blanks = FxHashMap::default();
        template.iter().map(|triple| self.template_triple(triple, &mut blanks, select)).collect()
    }

    fn template_triple(
        &mut self,
        triple: &TriplePattern,
        blanks: &mut FxHashMap<Blank, u32>,
        select: &mut SelectNames,
    ) -> Result<[TemplateSlot; 3], QueryError> {
        let [subject, predicate, object] = triple.slots();
        let predicate = self.template_slot(predicate, blanks, select)?;
        let subject = self.template_slot(subject, blanks, select)?;
        Ok([subject, predicate, self.template_slot(object, blanks, select)?])
    }

    fn template_slot(
        &mut self,
        slot: &tree::Slot,
        blanks: &mut FxHashMap<Blank, u32>,
        select: &mut SelectNames,
    ) -> Result<TemplateSlot, QueryError> {
        Ok(match slot {
            tree::Slot::Var(v) => TemplateSlot::Var(self.var(*v, select)),
            tree::Slot::Term(tree::Term::Blank(blank)) => {
                let next = blanks.len() as u32;
                TemplateSlot::Blank(*blanks.entry(blank.clone()).or_insert(next))
            }
            tree::Slot::Triple(triple) => {
                if levels(triple) > MOST_TRIPLE_LEVELS {
                    return Err(self.too_deep());
                }
                let parts = self.template_triple(triple, blanks, select)?;
                if let [TemplateSlot::Const(s), TemplateSlot::Const(p), TemplateSlot::Const(o)] = parts {
                    return Ok(TemplateSlot::Const(self.triple_of([s, p, o])));
                }
                TemplateSlot::Triple(Box::new(parts))
            }
            constant => TemplateSlot::Const(self.fixed(constant)),
        })
    }
}

/// Levels of triple terms within each other.
fn levels(triple: &TriplePattern) -> usize {
    let (mut levels, mut at) = (1, triple);
    while let tree::Slot::Triple(inner) = &at.object {
        (levels, at) = (levels + 1, inner);
    }
    levels
}

/// A node inside GRAPH: it has solutions only if that graph exists.
fn in_graph(node: Node, graph: Slot) -> Node {
    if node.shows_graph(graph) { node } else { join(vec![Node::GraphNames(graph), node]) }
}

/// Branches that all bind the graph they look at if one does.
fn alike_in_graph(branches: Vec<Node>, g: GraphSlot) -> Vec<Node> {
    match graph_var(g) {
        Some(graph) if branches.iter().any(|b| b.scope().possible.contains(graph)) => {
            branches.into_iter().map(|b| in_graph(b, Slot::Var(graph))).collect()
        }
        _ => branches,
    }
}

/// Joins flat: units vanish, nested joins open.
pub(crate) fn join(nodes: Vec<Node>) -> Node {
    let mut flat = Vec::with_capacity(nodes.len());
    for node in nodes {
        match node {
            Node::Unit => {}
            // a long join grows from the left
            Node::Join(inner) if flat.is_empty() => flat = inner,
            Node::Join(inner) => flat.extend(inner),
            other => flat.push(other),
        }
    }
    match flat.len() {
        0 => Node::Unit,
        1 => flat.pop().expect("length checked"),
        _ => Node::Join(flat),
    }
}

/// Branches flat: nested unions open.
fn opened(nodes: Vec<Node>) -> Vec<Node> {
    let mut flat = Vec::with_capacity(nodes.len());
    for node in nodes {
        match node {
            Node::Union(inner) if flat.is_empty() => flat = inner,
            Node::Union(inner) => flat.extend(inner),
            other => flat.push(other),
        }
    }
    flat
}

/// Whether a predicate is the property that is a path.
fn is_list_member(slot: &tree::Slot) -> bool {
    matches!(slot, tree::Slot::Term(tree::Term::Iri(iri)) if **iri == *LIST_MEMBER)
}

/// The variables a (sub-)select shows, in order.
fn projected(pattern: &GraphPattern) -> &[tree::Var] {
    match pattern {
        GraphPattern::Project { vars, .. } => vars,
        GraphPattern::Slice { inner, .. } | GraphPattern::Distinct(inner) | GraphPattern::Reduced(inner) => {
            projected(inner)
        }
        _ => &[],
    }
}

/// Whether DISTINCT belongs to a (sub-)select.
fn is_distinct(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Distinct(_) => true,
        GraphPattern::Slice { inner, .. } => is_distinct(inner),
        _ => false,
    }
}

/// Whether LIMIT or OFFSET belong to a (sub-)select.
fn is_sliced(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Slice { .. } => true,
        GraphPattern::Distinct(inner) | GraphPattern::Reduced(inner) => is_sliced(inner),
        _ => false,
    }
}
