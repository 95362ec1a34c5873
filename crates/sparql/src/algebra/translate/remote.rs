//! SERVICE: the pattern as text for its endpoint.
//!
//! The text is made from the tree, since the query's own may have prefixes, a BASE, and constants
//! that were cut out of it. Operators are put into braces of their own wherever a neighbour could
//! be taken for a part of them. Blank nodes become variables that are not asked for: a label may
//! stand in one group only, and the text has other groups than the tree.

use rustc_hash::{FxHashMap, FxHashSet};
use snowmelt_syntax::tree::{
    self, Aggregate, Blank, Expr, GraphPattern, Node as Part, OrderKey, Path, Term, TriplePattern, VarNames,
};

use super::context::Noticed;
use super::expression::{and, chained, or};
use super::{Mentions, SelectNames, Translator};
use crate::algebra::consts::{ConstTerm, GroundTerm};
use crate::algebra::service::{Service, TextPiece};
use crate::algebra::{GraphSlot, Node, Slot, Var, VarSet};
use crate::error::QueryError;

impl<'a> Translator<'a> {
    /// A SERVICE as a node.
    pub(super) fn service(
        &mut self,
        name: &tree::Slot,
        inner: &GraphPattern,
        is_silent: bool,
        select: &mut SelectNames,
    ) -> Result<Node, QueryError> {
        let endpoint = self.slot(name, select)?;
        let mentions = Mentions::of_pattern(inner);
        if self.only_looks {
            return Ok(self.looked_at(endpoint, is_silent, inner, &mentions, select));
        }
        self.check_context(inner, &mentions, select)?;
        let certain_names = self.certain_names(inner);
        let names = self.service_names(inner, select);
        let certain =
            names.iter().filter(|(name, _)| certain_names.contains(name.as_str())).map(|(_, v)| *v).collect();
        let free_name = free_of("row", self.text.names);
        let mut text = PatternText::new(self);
        text.content(inner)?;
        let body = text.finish();
        let most = if let GraphPattern::Slice { length, .. } = inner { *length } else { None };
        let most = most.map(|length| length as u64);
        let is_flat = is_flat(inner);
        let service = Service { endpoint, is_silent, body, is_flat, names, certain, free_name, most };
        Ok(Node::Service(service.into()))
    }

    /// The names that its solutions may bind.
    fn service_names(&mut self, inner: &GraphPattern, select: &mut SelectNames) -> Vec<(String, Var)> {
        let (names, in_scope) = (self.text.names, in_scope(inner));
        let named = in_scope.into_iter().filter_map(|v| Some((names.name(v)?.to_owned(), v)));
        let mut named: Vec<(String, tree::Var)> = named.collect();
        named.sort_unstable();
        named.into_iter().map(|(name, v)| (name, self.var(v, select))).collect()
    }

    /// A SERVICE within one, where that is only looked at: it is not gone into, or each level would
    /// double the looks at those below. So it is taken to notice what it mentions.
    fn looked_at(
        &mut self,
        endpoint: Slot,
        is_silent: bool,
        inner: &GraphPattern,
        mentions: &Mentions,
        select: &mut SelectNames,
    ) -> Node {
        self.has_open_minus |= mentions.minus;
        let names = self.service_names(inner, select);
        let (body, certain, free_name) = (Vec::new(), VarSet::default(), String::new());
        let (is_flat, most) = (false, None);
        let service = Service { endpoint, is_silent, body, is_flat, names, certain, free_name, most };
        let node = Node::Service(service.into());
        let of_context = self.context_vars(select);
        let notices = select.context.is_some_and(|c| self.context_has(c, &mentions.vars))
            || endpoint.var().is_some_and(|v| of_context.contains(v));
        if notices { self.in_context(node, select) } else { node }
    }

    /// Refuses a pattern within EXISTS that reads what the solution around binds where it may leave
    /// it open: the endpoint does not know the solution. Elsewhere a join afterwards is the same.
    fn check_context(
        &self,
        inner: &GraphPattern,
        mentions: &Mentions,
        select: &SelectNames,
    ) -> Result<(), QueryError> {
        let Some(context) = select.context else { return Ok(()) };
        let mut of_context = self.context_names(context);
        of_context.retain(|(name, _)| mentions.vars.contains(name));
        let look = |names: &[(tree::Var, bool)]| Translator::looking(self.text).noticed(inner, names);
        let construct = match look(&of_context)? {
            Noticed::Nothing => return Ok(()),
            Noticed::Minus => "a SERVICE in EXISTS with a MINUS whose sides may share no variable".to_owned(),
            Noticed::Names => {
                let mut names = &of_context[..];
                while names.len() > 1 {
                    let (first, rest) = names.split_at(names.len() / 2);
                    names = if look(first)? == Noticed::Names { first } else { rest };
                }
                let name = names.first().and_then(|(name, _)| self.text.names.name(*name));
                let name = name.unwrap_or_default();
                format!("a SERVICE in EXISTS that may leave ?{name} of the outside open")
            }
        };
        Err(self.unsupported(self.text.first.service, &construct))
    }

    /// The names that each solution of a pattern binds; none where the pattern has something that
    /// is the endpoint's own.
    fn certain_names(&self, inner: &GraphPattern) -> FxHashSet<&'a str> {
        let mut apart = Translator::looking(self.text);
        let mut names = SelectNames::default();
        let Ok(node) = apart.node(inner, &mut names, GraphSlot::Default) else { return FxHashSet::default() };
        let certain = node.scope().certain;
        let certain = names.vars.into_iter().filter(|(_, v)| certain.contains(*v));
        certain.filter_map(|(name, _)| self.text.names.name(name)).collect()
    }
}

/// A name that no variable of the text has, with this begin.
fn free_of(begin: &str, names: &VarNames) -> String {
    let mut name = begin.to_owned();
    while names.var(&name).is_some() {
        name.push('_');
    }
    name
}

/// The variables that a pattern's solutions may bind (SPARQL 1.1, 18.2.1), in their order.
fn in_scope(pattern: &GraphPattern) -> Vec<tree::Var> {
    let mut found = FxHashSet::default();
    add_in_scope(Part::Pattern(pattern), &mut found);
    let mut found: Vec<tree::Var> = found.into_iter().collect();
    found.sort_unstable();
    found
}

fn add_in_scope(part: Part<'_>, found: &mut FxHashSet<tree::Var>) {
    part.walk(&mut |part| {
        match part {
            Part::Var(v) => drop(found.insert(v)),
            Part::Expr(_) => return false,
            Part::Pattern(GraphPattern::Project { vars, .. }) => {
                found.extend(vars);
                return false;
            }
            Part::Pattern(GraphPattern::Group { vars, aggregates, .. }) => {
                found.extend(vars.iter().chain(aggregates.iter().map(|(v, _)| v)));
                return false;
            }
            Part::Pattern(GraphPattern::Minus { left, .. }) => {
                add_in_scope(Part::Pattern(left), found);
                return false;
            }
            _ => {}
        }
        true
    });
}

/// The text of a pattern, as far as it is written.
struct PatternText<'t, 'a> {
    t: &'t mut Translator<'a>,
    /// numbers of its blank nodes
    blanks: FxHashMap<&'t Blank, usize>,
    done: Vec<TextPiece>,
    open: String,
}

type Written = Result<(), QueryError>;

impl<'t, 'a> PatternText<'t, 'a> {
    fn new(t: &'t mut Translator<'a>) -> Self {
        Self { t, blanks: FxHashMap::default(), done: Vec::new(), open: String::new() }
    }

    fn finish(mut self) -> Vec<TextPiece> {
        self.close();
        self.done
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.done.push(TextPiece::Text(std::mem::take(&mut self.open)));
        }
    }

    fn put(&mut self, text: &str) {
        self.open.push_str(text);
    }

    fn free(&mut self, begin: &str) {
        self.open.push('?');
        self.open.push_str(&free_of(begin, self.t.text.names));
    }

    fn variable(&mut self, v: tree::Var) {
        match self.t.text.names.name(v) {
            Some(name) => {
                self.open.push('?');
                self.open.push_str(name);
            }
            None => self.free(&format!("value{}", v.0)),
        }
    }

    fn variables(&mut self, vars: &[tree::Var]) {
        for v in vars {
            self.variable(*v);
            self.put(" ");
        }
    }

    fn parameter(&mut self, number: u32) {
        self.close();
        let constant = self.t.constant(ConstTerm::Param(number));
        self.done.push(TextPiece::Const(constant));
    }

    fn term(&mut self, term: &Term) {
        self.put(&GroundTerm::of_text(term).to_string());
    }

    /// A pattern in braces.
    fn group(&mut self, pattern: &'t GraphPattern) -> Written {
        self.put("{ ");
        self.content(pattern)?;
        self.put("} ");
        Ok(())
    }

    /// A pattern that has its braces to itself.
    fn content(&mut self, pattern: &'t GraphPattern) -> Written {
        match pattern {
            GraphPattern::Filter { condition, inner } => {
                // a filter further in is one of the same group
                match &**inner {
                    GraphPattern::Filter { .. } => self.content(inner)?,
                    other => self.element(other)?,
                }
                self.filter(condition)
            }
            other if is_select(other) => self.select(other),
            other => self.element(other),
        }
    }

    /// A pattern with others after it in its braces.
    fn element(&mut self, pattern: &'t GraphPattern) -> Written {
        use GraphPattern as P;
        match pattern {
            P::Bgp(triples) => {
                triples.iter().for_each(|triple| self.triple(triple));
                Ok(())
            }
            P::Path { subject, path, object } => {
                self.slot(subject);
                self.put(" ");
                self.path(path);
                self.put(" ");
                self.slot(object);
                self.put(" . ");
                Ok(())
            }
            P::Join(parts) => parts.iter().try_for_each(|side| match side {
                P::Bgp(_) | P::Path { .. } => self.element(side),
                other => self.group(other),
            }),
            P::LeftJoin { left, right, condition } => {
                self.element(left)?;
                self.put("OPTIONAL { ");
                self.element(right)?;
                condition.iter().try_for_each(|condition| self.filter(condition))?;
                self.put("} ");
                Ok(())
            }
            P::Minus { left, right } => self.beside(left, "MINUS ", right),
            P::Lateral { left, right } => self.beside(left, "LATERAL ", right),
            P::Extend { inner, values } => {
                self.element(inner)?;
                for (v, expr) in values {
                    self.put("BIND(");
                    self.expression(expr)?;
                    self.put(" AS ");
                    self.variable(*v);
                    self.put(") ");
                }
                Ok(())
            }
            P::Union(parts) => {
                for (n, branch) in parts.iter().enumerate() {
                    self.put(if n > 0 { "UNION " } else { "" });
                    self.group(branch)?;
                }
                Ok(())
            }
            P::Graph { name, inner } => self.named("GRAPH ", name, inner),
            P::Service { name, inner, is_silent } => {
                self.named(if *is_silent { "SERVICE SILENT " } else { "SERVICE " }, name, inner)
            }
            P::Values(values) => {
                self.values(values);
                Ok(())
            }
            P::Filter { .. }
            | P::Project { .. }
            | P::Distinct(_)
            | P::Reduced(_)
            | P::Slice { .. }
            | P::OrderBy { .. }
            | P::Group { .. } => self.group(pattern),
        }
    }

    fn filter(&mut self, condition: &'t Expr) -> Written {
        self.put("FILTER(");
        self.expression(condition)?;
        self.put(") ");
        Ok(())
    }

    fn beside(&mut self, left: &'t GraphPattern, keyword: &str, right: &'t GraphPattern) -> Written {
        self.element(left)?;
        self.put(keyword);
        self.group(right)
    }

    fn named(&mut self, keyword: &str, name: &'t tree::Slot, inner: &'t GraphPattern) -> Written {
        self.put(keyword);
        self.slot(name);
        self.put(" ");
        self.group(inner)
    }

    fn triple(&mut self, triple: &'t TriplePattern) {
        self.slots(triple);
        self.put(" . ");
    }

    /// Subject, predicate and object.
    fn slots(&mut self, triple: &'t TriplePattern) {
        self.slot(&triple.subject);
        self.put(" ");
        self.slot(&triple.predicate);
        self.put(" ");
        self.slot(&triple.object);
    }

    fn slot(&mut self, slot: &'t tree::Slot) {
        match slot {
            tree::Slot::Var(v) => self.variable(*v),
            tree::Slot::Param(number) => self.parameter(*number),
            tree::Slot::Term(Term::Blank(blank)) => {
                let next = self.blanks.len();
                let number = *self.blanks.entry(blank).or_insert(next);
                self.free(&format!("blank{number}"));
            }
            tree::Slot::Term(term) => self.term(term),
            tree::Slot::Triple(triple) => {
                self.put("<<( ");
                self.slots(triple);
                self.put(" )>>");
            }
        }
    }

    fn values(&mut self, values: &'t tree::Values) {
        self.put("VALUES ( ");
        self.variables(&values.vars);
        self.put(") { ");
        for row in &values.rows {
            self.put("( ");
            for cell in row {
                match cell {
                    None => self.put("UNDEF"),
                    Some(cell) => self.slot(cell),
                }
                self.put(" ");
            }
            self.put(") ");
        }
        self.put("} ");
    }

    fn path(&mut self, path: &'t Path) {
        match path {
            Path::Predicate(slot) => self.slot(slot),
            Path::Reverse(inner) => self.step("^(", inner, ")"),
            Path::ZeroOrMore(inner) => self.step("(", inner, ")*"),
            Path::OneOrMore(inner) => self.step("(", inner, ")+"),
            Path::ZeroOrOne(inner) => self.step("(", inner, ")?"),
            Path::Sequence(parts) => self.joined(parts, " / ", Self::path),
            Path::Alternative(parts) => self.joined(parts, " | ", Self::path),
            Path::Negated(slots) => {
                self.put("!");
                self.joined(slots, " | ", Self::slot);
            }
        }
    }

    /// Parts in brackets.
    fn joined<T>(&mut self, parts: &'t [T], between: &str, each: fn(&mut Self, &'t T)) {
        for (n, part) in parts.iter().enumerate() {
            self.put(if n > 0 { between } else { "(" });
            each(self, part);
        }
        self.put(")");
    }

    fn step(&mut self, before: &str, path: &'t Path, after: &str) {
        self.put(before);
        self.path(path);
        self.put(after);
    }

    /// A sub-select, without the braces around it.
    fn select(&mut self, pattern: &'t GraphPattern) -> Written {
        use GraphPattern as P;
        let (mut offset, mut limit, mut inner) = (0, None, pattern);
        if let P::Slice { inner: sliced, start, length } = inner {
            (offset, limit) = (*start, *length);
            inner = sliced;
        }
        self.put("SELECT ");
        if let P::Distinct(all) | P::Reduced(all) = inner {
            self.put(if matches!(inner, P::Distinct(_)) { "DISTINCT " } else { "REDUCED " });
            inner = all;
        }
        match inner {
            P::Project { inner: all, vars, .. } => {
                self.variables(vars);
                if vars.is_empty() {
                    self.nothing();
                }
                inner = all;
            }
            P::Group { inner, vars, aggregates } => return self.grouping(inner, vars, aggregates),
            _ => self.put("* "),
        }
        let mut sorted: &[OrderKey] = &[];
        if let P::OrderBy { inner: all, keys } = inner {
            sorted = keys;
            inner = all;
        }
        self.put("WHERE ");
        self.group(inner)?;
        if !sorted.is_empty() {
            self.put("ORDER BY ");
        }
        for key in sorted {
            self.put(if key.is_descending { "DESC(" } else { "ASC(" });
            self.expression(&key.expr)?;
            self.put(") ");
        }
        if let Some(limit) = limit {
            self.put(&format!("LIMIT {limit} "));
        }
        if offset > 0 {
            self.put(&format!("OFFSET {offset} "));
        }
        Ok(())
    }

    /// A variable that is nowhere bound, to select where there is none: `*` would be those of
    /// blank nodes, too.
    fn nothing(&mut self) {
        self.free("none");
        self.put(" ");
    }

    /// A group as a sub-select of its own, after the word.
    fn grouping(
        &mut self,
        inner: &'t GraphPattern,
        keys: &'t [tree::Var],
        aggregates: &'t [(tree::Var, Aggregate)],
    ) -> Written {
        self.variables(keys);
        for (v, aggregate) in aggregates {
            self.put("(");
            self.aggregate(aggregate)?;
            self.put(" AS ");
            self.variable(*v);
            self.put(") ");
        }
        if keys.is_empty() && aggregates.is_empty() {
            self.put("(COUNT(*) AS ");
            self.free("group");
            self.put(") ");
        }
        self.put("WHERE ");
        let counts_all = |(_, of): &(tree::Var, Aggregate)| of.argument.is_none() && of.is_distinct;
        match aggregates.iter().any(counts_all) {
            true => self.seen(inner)?,
            false => self.group(inner)?,
        }
        if !keys.is_empty() {
            self.put("GROUP BY ");
        }
        self.variables(keys);
        Ok(())
    }

    /// A pattern in braces whose solutions have its own variables alone, not those of blank nodes.
    fn seen(&mut self, pattern: &'t GraphPattern) -> Written {
        let visible = in_scope(pattern);
        self.put("{ SELECT ");
        self.variables(&visible);
        if visible.is_empty() {
            self.nothing();
        }
        self.put("WHERE ");
        self.group(pattern)?;
        self.put("} ");
        Ok(())
    }

    fn aggregate(&mut self, aggregate: &'t Aggregate) -> Written {
        self.put(aggregate.function.text());
        self.put(if aggregate.is_distinct { "(DISTINCT " } else { "(" });
        match &aggregate.argument {
            Some(argument) => self.expression(argument)?,
            None => self.put("*"),
        }
        if let Some(separator) = &aggregate.separator {
            self.put("; SEPARATOR = ");
            self.term(&Term::Literal(tree::Literal::simple(&**separator)));
        }
        self.put(")");
        Ok(())
    }

    fn expression(&mut self, expr: &'t Expr) -> Written {
        match expr {
            Expr::Var(v) => self.variable(*v),
            Expr::Const(term) => self.term(term),
            Expr::Param(number) => self.parameter(*number),
            Expr::Or(_) => return self.listed("(", chained(expr, or), " || "),
            Expr::And(_) => return self.listed("(", chained(expr, and), " && "),
            Expr::Unary(operator, part) => {
                self.put("(");
                return self.listed(operator.text(), [&**part], "");
            }
            Expr::Binary(operator, pair) => {
                return self.listed("(", &**pair, &format!(" {} ", operator.text()));
            }
            Expr::Call(function, list) => return self.call(function.text(), list),
            Expr::Custom(iri, list) => return self.call(&format!("<{iri}>"), list),
            Expr::In(value, list) => {
                self.put("(");
                self.expression(value)?;
                self.put(" IN ");
                self.listed("(", list, ", ")?;
                self.put(")");
            }
            Expr::Exists(pattern) => {
                self.put("EXISTS ");
                return self.group(pattern);
            }
        }
        Ok(())
    }

    fn call(&mut self, function: &str, list: &'t [Expr]) -> Written {
        self.put(function);
        self.listed("(", list, ", ")
    }

    fn listed(&mut self, begin: &str, list: impl IntoIterator<Item = &'t Expr>, between: &str) -> Written {
        self.put(begin);
        for (n, expr) in list.into_iter().enumerate() {
            self.put(if n > 0 { between } else { "" });
            self.expression(expr)?;
        }
        self.put(")");
        Ok(())
    }
}

/// Whether values beside a pattern are the same as values among its parts.
fn is_flat(pattern: &GraphPattern) -> bool {
    let is_leaf = |p: &GraphPattern| matches!(p, GraphPattern::Bgp(_) | GraphPattern::Path { .. });
    match pattern {
        GraphPattern::Filter { inner, .. } => is_flat(inner),
        GraphPattern::Join(parts) => parts.iter().all(is_leaf),
        other => is_leaf(other),
    }
}

/// Whether a pattern is written as a sub-select.
fn is_select(pattern: &GraphPattern) -> bool {
    use GraphPattern as P;
    matches!(
        pattern,
        P::Project { .. }
            | P::Distinct(_)
            | P::Reduced(_)
            | P::Slice { .. }
            | P::OrderBy { .. }
            | P::Group { .. }
    )
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use snowmelt_syntax::parse_query;
    use snowmelt_syntax::tree::Query;

    use super::super::{TextFacts, translate};
    use super::*;
    use crate::bounds::with_room;

    fn parsed(text: &str) -> Query {
        parse_query(text, &Default::default()).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn written(query: &Query) -> String {
        let Query { names, first, pattern, .. } = query;
        let mut t = Translator::new(TextFacts { names, first, params: &[] }, None);
        let mut text = PatternText::new(&mut t);
        text.group(pattern).expect("it can be written");
        let piece = |piece: TextPiece| match piece {
            TextPiece::Text(text) => text,
            TextPiece::Const(c) => panic!("a parameter {c:?}"),
        };
        text.finish().into_iter().map(piece).collect()
    }

    /// Read again, a text is the same tree but for braces: so it is written again alike.
    #[test]
    fn a_text_read_again_is_written_alike() {
        for body in [
            "?s <e:p> ?o ; <e:q> \"a\\\"b\"@en, 5, 1.5e3, true",
            "?s <e:p>/<e:q>|^<e:r> ?o . ?o !(<e:a>|<e:b>) ?x . ?x (<e:a>*)+ ?y . ?y <e:z>? ?s",
            "?s ?p ?o FILTER(?o > 5 && (?o < 9 || !BOUND(?s)) && ?p IN (<e:a>, ?o)) OPTIONAL { ?o <e:x> ?y }",
            "?s ?p ?o OPTIONAL { ?o <e:x> ?y FILTER(?y = ?s) } OPTIONAL { { ?o <e:x> ?z FILTER(?z = ?s) } }",
            "{ ?s ?p ?o FILTER(?x = 1) } ?s <e:x> ?x",
            "{ ?s ?p 1 } UNION { ?s ?p 2 } UNION { ?s ?p 3 FILTER(?p != <e:a>) }",
            "?s ?p ?o MINUS { ?s <e:a> ?x FILTER(?x > 1) } BIND(?o + 1 AS ?n) FILTER EXISTS { ?n ?p ?q }",
            "?s ?p ?o LATERAL { SELECT ?o ?l { ?o <e:l> ?l } LIMIT 1 } LATERAL { ?l ?q ?r } ?r <e:p> 1",
            "VALUES (?s ?o) { (<e:a> UNDEF) (UNDEF \"x\") } GRAPH ?g { ?s ?p ?o } GRAPH <e:g> { ?s <e:y> ?z }",
            "?r <e:reifies> <<( ?s ?p <<( <e:a> <e:q> \"x\"@en--ltr )>> )>> FILTER(isTRIPLE(?o))",
            "VALUES ?t { <<( <e:a> <e:p> <<( <e:b> <e:q> 5 )>> )>> } ?r <e:reifies> ?t",
            "SERVICE SILENT <e:s> { ?s ?p ?o SERVICE ?t { ?o ?q ?r } }",
            "{ SELECT DISTINCT ?s (?o + 1 AS ?n) { ?s ?p ?o } ORDER BY DESC(?n) ?s LIMIT 3 OFFSET 1 }",
            "{ SELECT REDUCED * { ?s ?p ?o } } ?s ?p ?l",
            "BIND(IF(?a, COALESCE(?b, STR(?c)), REGEX(?d, \"x\", \"i\")) AS ?e) FILTER(sameTerm(?e, -1) || +?e = <e:f>(?e))",
            "",
        ] {
            let first = written(&parsed(&format!("SELECT * {{ {body} }}")));
            let again = written(&parsed(&format!("SELECT * {first}")));
            // the outer select of the second has the first as its only part
            let inner =
                again.trim_start_matches("{ SELECT").split_once("WHERE ").map_or("", |(_, rest)| rest);
            assert!(inner.contains(first.trim()), "{body}\n{first}\n{again}");
        }
    }

    /// Aggregates get other names each time they are read.
    #[test]
    fn groups_are_written_as_selects() {
        for body in [
            "{ SELECT ?s (COUNT(?o) AS ?n) { ?s ?p ?o } GROUP BY ?s HAVING(COUNT(?o) > 1) ORDER BY ?n }",
            "{ SELECT (GROUP_CONCAT(DISTINCT ?o ; SEPARATOR = \", \") AS ?l) { ?s ?p ?o } } ?s ?p ?l",
            "{ SELECT (COUNT(*) AS ?n) (COUNT(DISTINCT *) AS ?m) { ?s ?p ?o } }",
            "{ SELECT ?s { ?s ?p ?o } GROUP BY ?s (STR(?p) AS ?q) }",
        ] {
            let query = parsed(&format!("SELECT * {{ {body} }}"));
            let first = written(&query);
            let again = parsed(&format!("SELECT * {first}"));
            let seen = |query: &Query| {
                let names =
                    in_scope(&query.pattern).into_iter().map(|v| query.names.name(v).map(str::to_owned));
                names.collect::<FxHashSet<_>>()
            };
            assert_eq!(seen(&query), seen(&again), "{body}\n{first}");
        }
    }

    #[test]
    fn a_blank_node_is_a_variable_that_is_not_asked_for() {
        let text = written(&parsed("SELECT ?s { ?s <e:p> _:b . _:b <e:q>+ ?o }"));
        assert_eq!(text.matches("?blank0 ").count(), 2, "{text}");
        assert!(!text.contains("_:"), "{text}");
        let text = written(&parsed("SELECT ?s { ?blank0 <e:p> _:a.b . _:a_b <e:p> ?blank1 }"));
        let inner = "{ ?blank0 <e:p> ?blank0_ . ?blank1_ <e:p> ?blank1 . } ";
        assert_eq!(text, format!("{{ SELECT ?s WHERE {inner}}} "));
    }

    #[test]
    fn the_name_for_numbers_is_free() {
        let name = |body: &str| free_of("row", &parsed(&format!("SELECT * {{ {body} }}")).names);
        assert_eq!(name("?s ?p ?o"), "row");
        assert_eq!(name("?s ?row ?o FILTER EXISTS { ?row_ ?p ?o }"), "row__");
    }

    fn translated(text: &str) -> Result<(), QueryError> {
        // frames of tests are large
        with_room(256 << 20, || {
            let limits = snowmelt_syntax::Limits { depth: 500, patterns: 10_000, ..Default::default() };
            let options = snowmelt_syntax::ParseOptions { limits, ..Default::default() };
            let query = parse_query(text, &options).expect("a query");
            translate(&query, &[], None).map(drop)
        })
    }

    /// Each pattern is looked at a few times, however many are around it.
    #[test]
    fn services_in_exists_within_each_other_are_quick() {
        let begun = Instant::now();
        let mut body = "?a <e:p> ?b , ?c".to_owned();
        for _ in 0..30 {
            body = format!("?a <e:p> ?b . ?b <e:q> ?c FILTER EXISTS {{ SERVICE <e:s> {{ {body} }} }}");
        }
        translated(&format!("SELECT * {{ {body} }}")).expect("it joins what it reads");
        let body = body.replacen("SERVICE <e:s> {", "SERVICE <e:s> { FILTER(?c > 1)", 1);
        let told = translated(&format!("SELECT * {{ {body} }}")).map_err(|error| error.to_string());
        assert_eq!(told, Ok(()), "?c is bound there");
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }

    #[test]
    fn names_around_an_exists_are_looked_at_together() {
        let begun = Instant::now();
        let chain: String = (0..3000).map(|n| format!("?v{n} <e:p> ?v{} . ", n + 1)).collect();
        let query = |filter: &str| {
            let exists = format!("FILTER EXISTS {{ SERVICE <e:s> {{ {filter} }} }}");
            translated(&format!("SELECT * {{ {chain} ?last <e:p> 1 {exists} }}"))
        };
        query(&chain).expect("it joins what it reads");
        let told = query(&format!("{chain} FILTER(?last > 1)")).unwrap_err().to_string();
        assert!(told.contains("may leave ?last of the outside open"), "{told}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }

    /// An endpoint within another does not know the solution around, either.
    #[test]
    fn a_service_within_one_notices_what_it_mentions() {
        let query = |inner: &str| {
            let exists = format!("EXISTS {{ SERVICE <e:s> {{ ?a <e:p> ?x . {inner} }} }}");
            translated(&format!("SELECT * {{ ?a <e:p> ?b FILTER {exists} }}"))
        };
        query("SERVICE <e:t> { ?x <e:q> ?y }").expect("it reads nothing of the outside");
        for inner in ["SERVICE <e:t> { ?x <e:q> ?y FILTER(?y > ?b) }", "SERVICE ?b { ?x <e:q> ?y }"] {
            let told = query(inner).expect_err(inner).to_string();
            assert!(told.contains("may leave ?b of the outside open"), "{inner}: {told}");
        }
    }

    #[test]
    fn what_cannot_be_looked_at_is_told() {
        let deep = format!("{} ?b {}", "<<( ?a <e:p> ".repeat(65), ")>>".repeat(65));
        let query =
            format!("SELECT * {{ ?a <e:p> ?b FILTER EXISTS {{ SERVICE <e:s> {{ ?r <e:q> {deep} }} }} }}");
        let told = translated(&query).unwrap_err().to_string();
        assert!(told.contains("a triple term of more than 64 levels"), "{told}");
    }
}
