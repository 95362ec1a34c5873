//! spargebra's tree to ours.
//!
//! 1. Names become numbers. A sub-select has a scope of its own: only its projected names are
//!    those of the outside.
//! 2. A variable of an expression that is not in scope there becomes one that is never bound
//!    (bottom-up semantics).
//! 3. EXISTS leaves the expressions: a conjunct becomes a semi- or anti-join, any other a join
//!    that marks. What is evaluated for a solution, inside EXISTS, is in `context`.
//! 4. GRAPH moves into its patterns; where they do not show that the graph exists, what is inside
//!    is joined with its existence.
//! 5. Constants are numbered; placeholders of the text's parameters are recognised.

mod context;

use rustc_hash::FxHashMap;
use snowmelt_graph::GraphView;
use spargebra::Query;
use spargebra::algebra::{Expression, GraphPattern, OrderExpression, PropertyPathExpression, QueryDataset};
use spargebra::term::{
    GroundTerm as SparqlGround, Literal, NamedNode, NamedNodePattern, TermPattern, TriplePattern, Variable,
};

use super::names::{Internal, numbered};
use super::{
    Algebra, Const, Dataset, ExistsKind, Form, GraphSlot, Node, Pattern, Scope, Slot, SortKey, TemplateSlot,
    Var, VarSet, and, chained, map, mentions,
};
use crate::error::QueryError;
use crate::text::keyword::find_keyword;
use crate::text::parameter::{ConstTerm, iri_const, literal_const};
use context::{ExistsContext, graph_var};

/// Stands for the names of all graphs that the user may not see. No document can contain it.
pub(crate) const UNSEEN: &str = "snowmelt:a graph that is not there";

/// Translates a query; `text` serves to find the place of what is not supported, and going over
/// the query takes `room`. DESCRIBE names `described` beside what stands in the query.
///
/// Under a view, all other graphs have one name, so that no answer depends on which of them a query
/// names.
pub(crate) fn translate(
    query: &Query,
    text: &str,
    described: &[NamedNode],
    room: usize,
    view: Option<&GraphView>,
) -> Result<Algebra, QueryError> {
    let mut t = Translator {
        text,
        view,
        names: Vec::new(),
        numbers: FxHashMap::default(),
        consts: Vec::new(),
        const_numbers: FxHashMap::default(),
        blanks: FxHashMap::default(),
        never: None,
        contexts: Vec::new(),
    };
    let mut select = SelectNames::default();
    let (pattern, dataset, base) = match query {
        Query::Select { pattern, dataset, base_iri }
        | Query::Ask { pattern, dataset, base_iri }
        | Query::Describe { pattern, dataset, base_iri }
        | Query::Construct { pattern, dataset, base_iri, .. } => (pattern, dataset, base_iri),
    };
    let root = t.root(pattern, &mut select)?;
    let form = match query {
        Query::Select { .. } => Form::Select(t.result_vars(pattern, &mut select)),
        Query::Ask { .. } => Form::Ask,
        Query::Describe { .. } => {
            let described = described.iter().map(|iri| t.iri(iri)).collect();
            Form::Describe(t.result_vars(pattern, &mut select), described)
        }
        Query::Construct { template, .. } => Form::Construct(t.template(template, &mut select)?),
    };
    let dataset = t.dataset(dataset.as_ref());
    Ok(Algebra {
        form,
        root,
        dataset,
        names: t.names,
        numbers: t.numbers,
        consts: t.consts,
        base: base.as_ref().map(|b| b.as_str().to_owned()),
        room,
    })
}

/// The variables of one SELECT, by name.
#[derive(Default)]
struct SelectNames {
    vars: FxHashMap<String, Var>,
    /// inside EXISTS: the solutions it is evaluated for
    context: Option<usize>,
    /// whether LIMIT or OFFSET count its solutions
    sliced: bool,
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
    text: &'a str,
    /// graphs that the user may see; none: all
    view: Option<&'a GraphView>,
    names: Vec<Variable>,
    numbers: FxHashMap<Variable, Var>,
    consts: Vec<ConstTerm>,
    const_numbers: FxHashMap<ConstTerm, Const>,
    blanks: FxHashMap<String, Var>,
    never: Option<Var>,
    /// those of all EXISTS so far
    contexts: Vec<ExistsContext>,
}

impl Translator<'_> {
    fn fresh(&mut self, name: &str) -> Var {
        let var = Var(self.names.len() as u32);
        let mut unique = Variable::new_unchecked(name);
        if self.numbers.contains_key(&unique) {
            unique = numbered(name, var.0);
        }
        debug_assert!(!self.numbers.contains_key(&unique), "{unique} is the name of another variable");
        self.names.push(unique.clone());
        self.numbers.insert(unique, var);
        var
    }

    fn internal(&mut self, kind: Internal<'_>) -> Var {
        self.fresh(&kind.name())
    }

    fn var(&mut self, name: &Variable, select: &mut SelectNames) -> Var {
        if let Some(v) = select.vars.get(name.as_str()) {
            return *v;
        }
        let v = self.fresh(name.as_str());
        select.vars.insert(name.as_str().to_owned(), v);
        v
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

    fn iri(&mut self, iri: &NamedNode) -> Const {
        self.constant(iri_const(iri))
    }

    fn literal(&mut self, literal: &Literal) -> Const {
        self.constant(literal_const(literal))
    }

    fn unsupported(&self, keyword: &str, construct: &str) -> QueryError {
        let offset = find_keyword(self.text, keyword).unwrap_or(0);
        QueryError::unsupported_at(self.text, offset, construct)
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
            GraphPattern::Distinct { inner } => Node::Distinct(Box::new(self.modifiers(inner, select, g)?)),
            GraphPattern::Reduced { inner } => Node::Reduced(Box::new(self.modifiers(inner, select, g)?)),
            GraphPattern::Project { inner, variables } => {
                let mut node = self.node(inner, select, g)?;
                let mut vars: Vec<Var> = variables.iter().map(|v| self.var(v, select)).collect();
                let shown: VarSet = vars.iter().copied().collect();
                let of_context = self.context_vars(select).intersection(&node.scope().possible);
                // a hidden name would not meet the context outside; a row too many would have
                // been counted
                if !of_context.is_subset(&shown) || (select.sliced && !of_context.is_empty()) {
                    node = self.in_context(node, select);
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
        #[allow(unreachable_patterns)] // variants that other features of spargebra add
        Ok(match pattern {
            GraphPattern::Bgp { patterns } => {
                let nodes =
                    patterns.iter().map(|p| self.triple(p, select, g)).collect::<Result<Vec<_>, _>>()?;
                join(nodes)
            }
            GraphPattern::Path { subject, path, object } => self.path(subject, path, object, select, g)?,
            GraphPattern::Join { .. } => join(self.side_by_side(pattern, joined_sides, select, g)?),
            GraphPattern::LeftJoin { left, right, expression } => {
                self.left_join(left, right, expression.as_ref(), select, g)?
            }
            GraphPattern::Filter { expr, inner } => {
                let inner = self.node(inner, select, g)?;
                self.filter(inner, expr, select, g)?
            }
            GraphPattern::Union { .. } => {
                let branches = opened(self.side_by_side(pattern, united_sides, select, g)?);
                Node::Union(alike_in_graph(self.alike(branches, select), g))
            }
            GraphPattern::Graph { name, inner } => self.graph(name, inner, select)?,
            GraphPattern::Extend { inner, variable, expression } => {
                self.extend(inner, variable, expression, select, g)?
            }
            GraphPattern::Minus { left, right } => self.minus(left, right, select, g)?,
            GraphPattern::Values { variables, bindings } => {
                let vars = variables.iter().map(|v| self.var(v, select)).collect();
                let rows = bindings
                    .iter()
                    .map(|row| row.iter().map(|t| t.as_ref().map(|t| self.ground(t)).transpose()).collect())
                    .collect::<Result<_, _>>()?;
                Node::Values { vars, rows }
            }
            GraphPattern::OrderBy { inner, expression } => {
                let mut inner = self.node(inner, select, g)?;
                let mut keys = Vec::with_capacity(expression.len());
                for key in expression {
                    let (expr, descending) = match key {
                        OrderExpression::Asc(e) => (e, false),
                        OrderExpression::Desc(e) => (e, true),
                    };
                    let (with_marks, expr) = self.expression_over(inner, expr, select, g)?;
                    inner = with_marks;
                    keys.push(SortKey { expr, descending });
                }
                Node::Sort { inner: Box::new(inner), keys }
            }
            GraphPattern::Group { inner, variables, aggregates } => {
                self.group(inner, variables, aggregates, select, g)?
            }
            GraphPattern::Project { .. }
            | GraphPattern::Distinct { .. }
            | GraphPattern::Reduced { .. }
            | GraphPattern::Slice { .. } => self.sub_select(pattern, select, g)?,
            GraphPattern::Service { .. } => return Err(self.unsupported("SERVICE", "SERVICE")),
            _ => return Err(self.unsupported("LATERAL", "LATERAL")),
        })
    }

    /// The patterns that stand beside each other. A loop: the parser makes of a thousand a tree
    /// of a thousand levels.
    fn side_by_side(
        &mut self,
        pattern: &GraphPattern,
        sides: fn(&GraphPattern) -> Option<(&GraphPattern, &GraphPattern)>,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Vec<Node>, QueryError> {
        let (mut nodes, mut open) = (Vec::new(), vec![pattern]);
        while let Some(pattern) = open.pop() {
            match sides(pattern) {
                Some((left, right)) => open.extend([right, left]),
                None => nodes.push(self.node(pattern, select, g)?),
            }
        }
        Ok(nodes)
    }

    fn sub_select(
        &mut self,
        pattern: &GraphPattern,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        let sliced = is_sliced(pattern);
        let mut inside = SelectNames { context: select.context, sliced, ..SelectNames::default() };
        for v in projected(pattern) {
            let var = self.var(v, select);
            inside.vars.insert(v.as_str().to_owned(), var);
        }
        self.modifiers(pattern, &mut inside, g)
    }

    fn triple(
        &mut self,
        triple: &TriplePattern,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        let s = self.term(&triple.subject, select)?;
        let p = match &triple.predicate {
            NamedNodePattern::NamedNode(n) => Slot::Const(self.iri(n)),
            NamedNodePattern::Variable(v) => Slot::Var(self.var(v, select)),
        };
        let o = self.term(&triple.object, select)?;
        Ok(Node::Pattern(Pattern { s, p, o, g }))
    }

    fn term(&mut self, term: &TermPattern, select: &mut SelectNames) -> Result<Slot, QueryError> {
        Ok(match term {
            TermPattern::NamedNode(n) => Slot::Const(self.iri(n)),
            TermPattern::Literal(l) => Slot::Const(self.literal(l)),
            TermPattern::Variable(v) => Slot::Var(self.var(v, select)),
            TermPattern::BlankNode(b) => {
                if let Some(v) = self.blanks.get(b.as_str()) {
                    Slot::Var(*v)
                } else {
                    let v = self.internal(Internal::Blank(b.as_str()));
                    self.blanks.insert(b.as_str().to_owned(), v);
                    Slot::Var(v)
                }
            }
            TermPattern::Triple(_) => return Err(self.unsupported("<<", "a triple term")),
        })
    }

    fn path(
        &mut self,
        s: &TermPattern,
        path: &PropertyPathExpression,
        o: &TermPattern,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        let s = self.term(s, select)?;
        let o = self.term(o, select)?;
        Ok(self.path_between(s, path, o, g))
    }

    /// Sequences, alternatives and inverses become joins, unions and swapped patterns; the rest
    /// stays a path.
    fn path_between(&mut self, s: Slot, path: &PropertyPathExpression, o: Slot, g: GraphSlot) -> Node {
        use PropertyPathExpression as P;
        match path {
            P::NamedNode(p) => {
                let p = Slot::Const(self.iri(p));
                Node::Pattern(Pattern { s, p, o, g })
            }
            P::Reverse(p) => self.path_between(o, p, s, g),
            P::Sequence(a, b) => {
                let middle = Slot::Var(self.internal(Internal::Step));
                let nodes = vec![self.path_between(s, a, middle, g), self.path_between(middle, b, o, g)];
                join(nodes)
            }
            P::Alternative(a, b) => {
                let sides = vec![self.path_between(s, a, o, g), self.path_between(s, b, o, g)];
                Node::Union(opened(sides))
            }
            other => Node::Path { s, path: other.clone(), o, g },
        }
    }

    /// The name of a graph.
    fn graph_name(&mut self, name: &NamedNode) -> Const {
        match self.view.is_none_or(|view| view.has(Some(name.as_str()))) {
            true => self.iri(name),
            false => self.iri(&NamedNode::new_unchecked(UNSEEN)),
        }
    }

    fn graph(
        &mut self,
        name: &NamedNodePattern,
        inner: &GraphPattern,
        select: &mut SelectNames,
    ) -> Result<Node, QueryError> {
        let slot = match name {
            NamedNodePattern::NamedNode(n) => Slot::Const(self.graph_name(n)),
            NamedNodePattern::Variable(v) if mentions::of_pattern(inner).names.contains(v.as_str()) => {
                return self.graph_seen_inside(v, inner, select);
            }
            NamedNodePattern::Variable(v) => Slot::Var(self.var(v, select)),
        };
        let node = self.node(inner, select, GraphSlot::Named(slot))?;
        // the context may bind it to what is no graph
        let of_context = matches!(name, NamedNodePattern::Variable(name) if self.is_of_context(name, select));
        Ok(if of_context { join(vec![Node::GraphNames(slot), node]) } else { in_graph(node, slot) })
    }

    /// GRAPH ?g where the inside names ?g as well: there it is a variable like any other, and
    /// only the result is joined with the graph's name (SPARQL 1.1, 18.6).
    fn graph_seen_inside(
        &mut self,
        v: &Variable,
        inner: &GraphPattern,
        select: &mut SelectNames,
    ) -> Result<Node, QueryError> {
        let outside = self.var(v, select);
        let graph = self.internal(Internal::Graph);
        let inside = self.fresh(v.as_str());
        select.vars.insert(v.as_str().to_owned(), inside);
        let node = self.node(inner, select, GraphSlot::Named(Slot::Var(graph)));
        select.vars.insert(v.as_str().to_owned(), outside);
        let mut node = node?;
        node = in_graph(node, Slot::Var(graph));
        let name = |v: Var| Expression::Variable(self.names[v.0 as usize].clone());
        if node.scope().possible.contains(inside) {
            let open = Expression::Not(Box::new(Expression::Bound(self.names[inside.0 as usize].clone())));
            let same = Expression::SameTerm(Box::new(name(inside)), Box::new(name(graph)));
            let condition = Expression::Or(Box::new(open), Box::new(same));
            node = Node::Filter { inner: Box::new(node), conditions: vec![condition] };
        }
        Ok(Node::Extend { inner: Box::new(node), var: outside, expr: name(graph) })
    }

    /// BIND and AS. Where the context may bind the name, it must be the same.
    fn extend(
        &mut self,
        inner: &GraphPattern,
        variable: &Variable,
        expression: &Expression,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        let of_context = self.is_of_context(variable, select);
        let outside = if of_context { select.vars.remove(variable.as_str()) } else { None };
        let inner = self.node(inner, select, g)?;
        let (inner, expr) = self.expression_over(inner, expression, select, g)?;
        if of_context {
            select.vars.remove(variable.as_str());
            select.vars.extend(outside.map(|v| (variable.as_str().to_owned(), v)));
        }
        let var = self.var(variable, select);
        let node = Node::Extend { inner: Box::new(inner), var, expr };
        Ok(if of_context { self.in_context(node, select) } else { node })
    }

    fn filter(
        &mut self,
        inner: Node,
        expr: &Expression,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<Node, QueryError> {
        let mut conditions = Vec::new();
        let mut exists = Vec::new();
        for conjunct in conjuncts(expr) {
            match conjunct {
                Expression::Exists(p) => exists.push((p, ExistsKind::Semi)),
                Expression::Not(e) if matches!(**e, Expression::Exists(_)) => {
                    let Expression::Exists(p) = &**e else { unreachable!("matched above") };
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
        expr: &Expression,
        select: &mut SelectNames,
        g: GraphSlot,
    ) -> Result<(Node, Expression), QueryError> {
        let mut node = self.seeing(node, &mentions::of_expression(expr).names, select);
        let visible = node.scope().possible;
        if !contains_exists(expr) {
            let expr = self.plain(expr, &visible, select);
            return Ok((node, expr));
        }
        let expr = map(expr, &mut |e| match e {
            Expression::Exists(pattern) => {
                let mark = self.internal(Internal::Exists);
                let left = std::mem::replace(&mut node, Node::Unit);
                node = self.exists(left, &pattern, ExistsKind::Mark(mark), select, g)?;
                Ok::<_, QueryError>(Expression::Variable(self.names[mark.0 as usize].clone()))
            }
            Expression::Variable(v) => Ok(Expression::Variable(self.resolve(&v, &visible, select))),
            Expression::Bound(v) => Ok(Expression::Bound(self.resolve(&v, &visible, select))),
            other => Ok(other),
        })?;
        Ok((node, expr))
    }

    /// An expression without EXISTS, its variables renamed.
    fn plain(&mut self, expr: &Expression, visible: &VarSet, select: &mut SelectNames) -> Expression {
        let mapped = map(expr, &mut |e| {
            Ok::<_, std::convert::Infallible>(match e {
                Expression::Variable(v) => Expression::Variable(self.resolve(&v, visible, select)),
                Expression::Bound(v) => Expression::Bound(self.resolve(&v, visible, select)),
                other => other,
            })
        });
        match mapped {
            Ok(expr) => expr,
            Err(never) => match never {},
        }
    }

    fn resolve(&mut self, name: &Variable, visible: &VarSet, select: &mut SelectNames) -> Variable {
        let mut var = self.var(name, select);
        if !visible.contains(var) {
            var = self.never();
        }
        self.names[var.0 as usize].clone()
    }

    fn ground(&mut self, term: &SparqlGround) -> Result<Const, QueryError> {
        #[allow(unreachable_patterns)] // triple terms come with a feature of spargebra
        Ok(match term {
            SparqlGround::NamedNode(n) => self.iri(n),
            SparqlGround::Literal(l) => self.literal(l),
            _ => return Err(self.unsupported("<<", "a triple term")),
        })
    }

    fn dataset(&mut self, dataset: Option<&QueryDataset>) -> Dataset {
        let Some(dataset) = dataset else { return Dataset::default() };
        let mut list = |graphs: &[NamedNode]| graphs.iter().map(|g| self.graph_name(g)).collect::<Vec<_>>();
        // FROM without FROM NAMED comes with an empty list; without a list (WITH) all named
        // graphs stay.
        Dataset::new(Some(list(&dataset.default)), dataset.named.as_deref().map(list))
    }

    fn result_vars(&mut self, pattern: &GraphPattern, select: &mut SelectNames) -> Vec<Var> {
        projected(pattern).iter().map(|v| self.var(v, select)).collect()
    }

    fn template(
        &mut self,
        template: &[TriplePattern],
        select: &mut SelectNames,
    ) -> Result<Vec<[TemplateSlot; 3]>, QueryError> {
        let mut blanks: FxHashMap<String, u32> = FxHashMap::default();
        let mut slot = |t: &mut Self, term: &TermPattern| {
            Ok::<_, QueryError>(if let TermPattern::BlankNode(b) = term {
                let next = blanks.len() as u32;
                TemplateSlot::Blank(*blanks.entry(b.as_str().to_owned()).or_insert(next))
            } else {
                match t.term(term, select)? {
                    Slot::Var(v) => TemplateSlot::Var(v),
                    Slot::Const(c) => TemplateSlot::Const(c),
                }
            })
        };
        let predicate = |p: &NamedNodePattern| match p {
            NamedNodePattern::NamedNode(n) => TermPattern::NamedNode(n.clone()),
            NamedNodePattern::Variable(v) => TermPattern::Variable(v.clone()),
        };
        template
            .iter()
            .map(|t| {
                Ok([slot(self, &t.subject)?, slot(self, &predicate(&t.predicate))?, slot(self, &t.object)?])
            })
            .collect()
    }
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

fn joined_sides(pattern: &GraphPattern) -> Option<(&GraphPattern, &GraphPattern)> {
    if let GraphPattern::Join { left, right } = pattern { Some((left, right)) } else { None }
}

fn united_sides(pattern: &GraphPattern) -> Option<(&GraphPattern, &GraphPattern)> {
    if let GraphPattern::Union { left, right } = pattern { Some((left, right)) } else { None }
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

/// The parts of a conjunction.
pub(crate) fn conjuncts(expr: &Expression) -> Vec<&Expression> {
    chained(expr, and)
}

fn contains_exists(expr: &Expression) -> bool {
    let mut found = false;
    super::visit(expr, &mut |e| found |= matches!(e, Expression::Exists(_)));
    found
}

/// The names a (sub-)select shows, in order.
fn projected(pattern: &GraphPattern) -> &[Variable] {
    match pattern {
        GraphPattern::Project { variables, .. } => variables,
        GraphPattern::Slice { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner } => projected(inner),
        _ => &[],
    }
}

/// Whether LIMIT or OFFSET belong to a (sub-)select.
fn is_sliced(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Slice { .. } => true,
        GraphPattern::Distinct { inner } | GraphPattern::Reduced { inner } => is_sliced(inner),
        _ => false,
    }
}
