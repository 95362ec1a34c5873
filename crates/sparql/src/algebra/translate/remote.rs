//! SERVICE: the pattern as text for its endpoint.
//!
//! The text is made from the tree, since the query's own may have prefixes, a BASE, and constants
//! that were cut out of it. Operators are put into braces of their own wherever a neighbour could
//! be taken for a part of them. Blank nodes become variables that are not asked for: a label may
//! stand in one group only, and the text has other groups than the tree.

use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, GraphPattern, OrderExpression, PropertyPathExpression,
};
use spargebra::term::{
    GroundTerm as SparqlGround, Literal, NamedNode, NamedNodePattern, TermPattern, TriplePattern, Variable,
};

use super::{SelectNames, Translator, united_sides};
use crate::algebra::service::{Service, TextPiece};
use crate::algebra::{GraphSlot, Node, Slot, VarSet, and, chained, mentions, or};
use crate::error::QueryError;
use crate::text::parameter::{ConstTerm, iri_const, literal_const};

impl Translator<'_> {
    /// A SERVICE as a node.
    pub(super) fn service(
        &mut self,
        name: &NamedNodePattern,
        inner: &GraphPattern,
        is_silent: bool,
        select: &mut SelectNames,
    ) -> Result<Node, QueryError> {
        let endpoint = match name {
            NamedNodePattern::NamedNode(iri) => Slot::Const(self.iri(iri)),
            NamedNodePattern::Variable(v) => Slot::Var(self.var(v, select)),
        };
        let certain_names = self.certain_names(inner);
        let mut in_scope: Vec<&Variable> = Vec::new();
        inner.on_in_scope_variable(|v| in_scope.push(v));
        in_scope.sort_unstable();
        in_scope.dedup();
        let mut names = Vec::with_capacity(in_scope.len());
        let mut certain = VarSet::default();
        for v in in_scope {
            let var = self.var(v, select);
            names.push((v.as_str().to_owned(), var));
            if certain_names.iter().any(|name| name == v.as_str()) {
                certain.insert(var);
            }
        }
        let free_name = free_name(inner);
        let mut text = PatternText { t: self, done: Vec::new(), open: String::new() };
        text.content(inner)?;
        let body = text.finish();
        let most = if let GraphPattern::Slice { length, .. } = inner { *length } else { None };
        let most = most.map(|length| length as u64);
        let is_flat = is_flat(inner);
        let service = Service { endpoint, is_silent, body, is_flat, names, certain, free_name, most };
        Ok(Node::Service(service.into()))
    }

    /// The names that each solution of a pattern binds; none where the pattern has something that
    /// is the endpoint's own.
    fn certain_names(&self, inner: &GraphPattern) -> Vec<String> {
        let mut apart = Translator::new(self.text, None);
        let mut names = SelectNames::default();
        let Ok(node) = apart.node(inner, &mut names, GraphSlot::Default) else { return Vec::new() };
        let certain = node.scope().certain;
        names.vars.into_iter().filter(|(_, v)| certain.contains(*v)).map(|(name, _)| name).collect()
    }
}

/// A name for a number of a row.
fn free_name(inner: &GraphPattern) -> String {
    let taken = mentions::of_pattern(inner).names;
    let mut name = "row".to_owned();
    while taken.contains(name.as_str()) {
        name.push('_');
    }
    name
}

/// The text of a pattern, as far as it is written.
struct PatternText<'t, 'a> {
    t: &'t mut Translator<'a>,
    done: Vec<TextPiece>,
    open: String,
}

type Written = Result<(), QueryError>;

impl PatternText<'_, '_> {
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

    fn constant(&mut self, term: ConstTerm, text: impl FnOnce() -> String) {
        match term {
            ConstTerm::Fixed(_) => self.open.push_str(&text()),
            ConstTerm::Param(_) => {
                self.close();
                let constant = self.t.constant(term);
                self.done.push(TextPiece::Const(constant));
            }
        }
    }

    fn iri(&mut self, iri: &NamedNode) {
        self.constant(iri_const(iri), || iri.to_string());
    }

    fn literal(&mut self, literal: &Literal) {
        self.constant(literal_const(literal), || literal.to_string());
    }

    fn variable(&mut self, variable: &Variable) {
        self.open.push('?');
        self.open.push_str(variable.as_str());
    }

    /// A pattern in braces.
    fn group(&mut self, pattern: &GraphPattern) -> Written {
        self.put("{ ");
        self.content(pattern)?;
        self.put("} ");
        Ok(())
    }

    /// A pattern that has its braces to itself.
    fn content(&mut self, pattern: &GraphPattern) -> Written {
        match pattern {
            GraphPattern::Filter { expr, inner } => {
                // a filter further in is one of the same group
                match &**inner {
                    GraphPattern::Filter { .. } => self.content(inner)?,
                    other => self.element(other)?,
                }
                self.put("FILTER(");
                self.expression(expr)?;
                self.put(") ");
                Ok(())
            }
            other if is_select(other) => self.select(other),
            other => self.element(other),
        }
    }

    /// A pattern with others after it in its braces.
    fn element(&mut self, pattern: &GraphPattern) -> Written {
        use GraphPattern as P;
        #[allow(unreachable_patterns)] // variants that other features of spargebra add
        match pattern {
            P::Bgp { patterns } => patterns.iter().try_for_each(|triple| self.triple(triple)),
            P::Path { subject, path, object } => {
                self.term(subject)?;
                self.put(" ");
                self.path(path);
                self.put(" ");
                self.term(object)?;
                self.put(" . ");
                Ok(())
            }
            P::Join { .. } => {
                super::parts(pattern, super::joined_sides).into_iter().try_for_each(|side| match side {
                    P::Bgp { .. } | P::Path { .. } => self.element(side),
                    other => self.group(other),
                })
            }
            P::LeftJoin { left, right, expression } => {
                self.element(left)?;
                self.put("OPTIONAL { ");
                self.element(right)?;
                if let Some(expr) = expression {
                    self.put("FILTER(");
                    self.expression(expr)?;
                    self.put(") ");
                }
                self.put("} ");
                Ok(())
            }
            P::Minus { left, right } => {
                self.element(left)?;
                self.put("MINUS ");
                self.group(right)
            }
            P::Extend { inner, variable, expression } => {
                self.element(inner)?;
                self.put("BIND(");
                self.expression(expression)?;
                self.put(" AS ");
                self.variable(variable);
                self.put(") ");
                Ok(())
            }
            P::Union { .. } => {
                for (n, branch) in super::parts(pattern, united_sides).into_iter().enumerate() {
                    self.put(if n > 0 { "UNION " } else { "" });
                    self.group(branch)?;
                }
                Ok(())
            }
            P::Graph { name, inner } => self.named("GRAPH ", name, inner),
            P::Service { name, inner, silent } => {
                self.named(if *silent { "SERVICE SILENT " } else { "SERVICE " }, name, inner)
            }
            P::Values { variables, bindings } => self.values(variables, bindings),
            P::Filter { .. } => self.group(pattern),
            other if is_select(other) => self.group(other),
            _ => Err(self.t.unsupported("LATERAL", "LATERAL")),
        }
    }

    fn named(&mut self, keyword: &str, name: &NamedNodePattern, inner: &GraphPattern) -> Written {
        self.put(keyword);
        self.name(name);
        self.put(" ");
        self.group(inner)
    }

    fn name(&mut self, name: &NamedNodePattern) {
        match name {
            NamedNodePattern::NamedNode(iri) => self.iri(iri),
            NamedNodePattern::Variable(v) => self.variable(v),
        }
    }

    fn triple(&mut self, triple: &TriplePattern) -> Written {
        self.term(&triple.subject)?;
        self.put(" ");
        self.name(&triple.predicate);
        self.put(" ");
        self.term(&triple.object)?;
        self.put(" . ");
        Ok(())
    }

    fn term(&mut self, term: &TermPattern) -> Written {
        #[allow(unreachable_patterns)] // triple terms come with a feature of spargebra
        match term {
            TermPattern::NamedNode(iri) => self.iri(iri),
            TermPattern::Literal(literal) => self.literal(literal),
            TermPattern::Variable(v) => self.variable(v),
            TermPattern::BlankNode(blank) => {
                let name: String = blank.as_str().chars().map(|c| if is_name(c) { c } else { '_' }).collect();
                self.open.push_str("?blank_");
                self.open.push_str(&name);
            }
            _ => return Err(self.t.unsupported("<<", "a triple term")),
        }
        Ok(())
    }

    fn values(&mut self, variables: &[Variable], rows: &[Vec<Option<SparqlGround>>]) -> Written {
        self.put("VALUES ( ");
        for v in variables {
            self.variable(v);
            self.put(" ");
        }
        self.put(") { ");
        for row in rows {
            self.put("( ");
            for value in row {
                #[allow(unreachable_patterns)] // triple terms come with a feature of spargebra
                match value {
                    None => self.put("UNDEF"),
                    Some(SparqlGround::NamedNode(iri)) => self.iri(iri),
                    Some(SparqlGround::Literal(literal)) => self.literal(literal),
                    Some(_) => return Err(self.t.unsupported("<<", "a triple term")),
                }
                self.put(" ");
            }
            self.put(") ");
        }
        self.put("} ");
        Ok(())
    }

    fn path(&mut self, path: &PropertyPathExpression) {
        use PropertyPathExpression as P;
        match path {
            P::NamedNode(iri) => self.iri(iri),
            P::Reverse(inner) => self.step("^(", inner, ")"),
            P::ZeroOrMore(inner) => self.step("(", inner, ")*"),
            P::OneOrMore(inner) => self.step("(", inner, ")+"),
            P::ZeroOrOne(inner) => self.step("(", inner, ")?"),
            P::Sequence(a, b) | P::Alternative(a, b) => {
                self.step("(", a, if matches!(path, P::Sequence(..)) { " / " } else { " | " });
                self.step("", b, ")");
            }
            P::NegatedPropertySet(iris) => {
                self.put("!(");
                for (n, iri) in iris.iter().enumerate() {
                    self.put(if n > 0 { " | " } else { "" });
                    self.iri(iri);
                }
                self.put(")");
            }
        }
    }

    fn step(&mut self, before: &str, path: &PropertyPathExpression, after: &str) {
        self.put(before);
        self.path(path);
        self.put(after);
    }

    /// A sub-select, without the braces around it.
    fn select(&mut self, pattern: &GraphPattern) -> Written {
        use GraphPattern as P;
        let (mut offset, mut limit, mut inner) = (0, None, pattern);
        if let P::Slice { inner: sliced, start, length } = inner {
            (offset, limit) = (*start, *length);
            inner = sliced;
        }
        self.put("SELECT ");
        if let P::Distinct { inner: all } | P::Reduced { inner: all } = inner {
            self.put(if matches!(inner, P::Distinct { .. }) { "DISTINCT " } else { "REDUCED " });
            inner = all;
        }
        match inner {
            P::Project { inner: all, variables } => {
                for v in variables {
                    self.variable(v);
                    self.put(" ");
                }
                self.put(if variables.is_empty() { "* " } else { "" });
                inner = all;
            }
            P::Group { variables, aggregates, .. } => return self.grouping(inner, variables, aggregates),
            _ => self.put("* "),
        }
        let mut keys: &[OrderExpression] = &[];
        if let P::OrderBy { inner: all, expression } = inner {
            keys = expression;
            inner = all;
        }
        self.put("WHERE ");
        self.group(inner)?;
        if !keys.is_empty() {
            self.put("ORDER BY ");
        }
        for key in keys {
            let (word, expr) = match key {
                OrderExpression::Asc(expr) => ("ASC(", expr),
                OrderExpression::Desc(expr) => ("DESC(", expr),
            };
            self.put(word);
            self.expression(expr)?;
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

    /// A group as a sub-select of its own, after the word.
    fn grouping(
        &mut self,
        group: &GraphPattern,
        keys: &[Variable],
        aggregates: &[(Variable, AggregateExpression)],
    ) -> Written {
        let GraphPattern::Group { inner, .. } = group else { return Ok(()) };
        for key in keys {
            self.variable(key);
            self.put(" ");
        }
        for (variable, aggregate) in aggregates {
            self.put("(");
            self.aggregate(aggregate)?;
            self.put(" AS ");
            self.variable(variable);
            self.put(") ");
        }
        if keys.is_empty() && aggregates.is_empty() {
            self.put("(COUNT(*) AS ?group_) ");
        }
        self.put("WHERE ");
        self.group(inner)?;
        if !keys.is_empty() {
            self.put("GROUP BY ");
        }
        for key in keys {
            self.variable(key);
            self.put(" ");
        }
        Ok(())
    }

    fn aggregate(&mut self, aggregate: &AggregateExpression) -> Written {
        let (name, expr, distinct) = match aggregate {
            AggregateExpression::CountSolutions { distinct } => {
                self.put(if *distinct { "COUNT(DISTINCT *)" } else { "COUNT(*)" });
                return Ok(());
            }
            AggregateExpression::FunctionCall { name, expr, distinct } => (name, expr, distinct),
        };
        let word = match name {
            AggregateFunction::Count => "COUNT",
            AggregateFunction::Sum => "SUM",
            AggregateFunction::Avg => "AVG",
            AggregateFunction::Min => "MIN",
            AggregateFunction::Max => "MAX",
            AggregateFunction::Sample => "SAMPLE",
            AggregateFunction::GroupConcat { .. } => "GROUP_CONCAT",
            AggregateFunction::Custom(iri) => {
                self.put(&iri.to_string());
                ""
            }
        };
        self.put(word);
        self.put(if *distinct { "(DISTINCT " } else { "(" });
        self.expression(expr)?;
        if let AggregateFunction::GroupConcat { separator: Some(separator) } = name {
            self.put("; SEPARATOR = ");
            self.literal(&Literal::new_simple_literal(separator));
        }
        self.put(")");
        Ok(())
    }

    fn expression(&mut self, expr: &Expression) -> Written {
        use Expression as E;
        match expr {
            E::NamedNode(iri) => self.iri(iri),
            E::Literal(literal) => self.literal(literal),
            E::Variable(v) => self.variable(v),
            E::Bound(v) => {
                self.put("BOUND(");
                self.variable(v);
                self.put(")");
            }
            E::Or(..) => return self.listed("(", chained(expr, or), " || "),
            E::And(..) => return self.listed("(", chained(expr, and), " && "),
            E::Equal(a, b) => return self.listed("(", [&**a, &**b], " = "),
            E::Greater(a, b) => return self.listed("(", [&**a, &**b], " > "),
            E::GreaterOrEqual(a, b) => return self.listed("(", [&**a, &**b], " >= "),
            E::Less(a, b) => return self.listed("(", [&**a, &**b], " < "),
            E::LessOrEqual(a, b) => return self.listed("(", [&**a, &**b], " <= "),
            E::Add(a, b) => return self.listed("(", [&**a, &**b], " + "),
            E::Subtract(a, b) => return self.listed("(", [&**a, &**b], " - "),
            E::Multiply(a, b) => return self.listed("(", [&**a, &**b], " * "),
            E::Divide(a, b) => return self.listed("(", [&**a, &**b], " / "),
            E::SameTerm(a, b) => return self.listed("sameTerm(", [&**a, &**b], ", "),
            E::UnaryPlus(a) => return self.listed("(+", [&**a], ""),
            E::UnaryMinus(a) => return self.listed("(-", [&**a], ""),
            E::Not(a) => return self.listed("(!", [&**a], ""),
            E::If(a, b, c) => return self.listed("IF(", [&**a, &**b, &**c], ", "),
            E::Coalesce(list) => return self.listed("COALESCE(", list, ", "),
            E::FunctionCall(function, list) => {
                self.put(&function.to_string());
                return self.listed("(", list, ", ");
            }
            E::In(a, list) => {
                self.put("(");
                self.expression(a)?;
                self.put(" IN ");
                self.listed("(", list, ", ")?;
                self.put(")");
            }
            E::Exists(pattern) => {
                self.put("EXISTS ");
                return self.group(pattern);
            }
        }
        Ok(())
    }

    fn listed<'e>(
        &mut self,
        begin: &str,
        list: impl IntoIterator<Item = &'e Expression>,
        between: &str,
    ) -> Written {
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
    match pattern {
        GraphPattern::Bgp { .. } | GraphPattern::Path { .. } => true,
        GraphPattern::Filter { inner, .. } => is_flat(inner),
        GraphPattern::Join { left, right } => {
            let is_leaf =
                |p: &GraphPattern| matches!(p, GraphPattern::Bgp { .. } | GraphPattern::Path { .. });
            is_leaf(left) && is_leaf(right)
        }
        _ => false,
    }
}

/// Whether a pattern is written as a sub-select.
fn is_select(pattern: &GraphPattern) -> bool {
    use GraphPattern as P;
    matches!(
        pattern,
        P::Project { .. }
            | P::Distinct { .. }
            | P::Reduced { .. }
            | P::Slice { .. }
            | P::OrderBy { .. }
            | P::Group { .. }
    )
}

/// Whether a sign may stand in a name of a variable.
fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use spargebra::algebra::GraphPattern;
    use spargebra::{Query, SparqlParser};

    use super::*;

    fn pattern(text: &str) -> GraphPattern {
        match SparqlParser::new().parse_query(text) {
            Ok(Query::Select { pattern, .. }) => pattern,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn written(inner: &GraphPattern) -> String {
        let mut t = Translator::new("", None);
        let mut text = PatternText { t: &mut t, done: Vec::new(), open: String::new() };
        text.group(inner).expect("it can be written");
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
            "VALUES (?s ?o) { (<e:a> UNDEF) (UNDEF \"x\") } GRAPH ?g { ?s ?p ?o } GRAPH <e:g> { ?s <e:y> ?z }",
            "SERVICE SILENT <e:s> { ?s ?p ?o SERVICE ?t { ?o ?q ?r } }",
            "{ SELECT DISTINCT ?s (?o + 1 AS ?n) { ?s ?p ?o } ORDER BY DESC(?n) ?s LIMIT 3 OFFSET 1 }",
            "{ SELECT REDUCED * { ?s ?p ?o } } ?s ?p ?l",
            "BIND(IF(?a, COALESCE(?b, STR(?c)), REGEX(?d, \"x\", \"i\")) AS ?e) FILTER(sameTerm(?e, -1) || +?e = <e:f>(?e))",
            "",
        ] {
            let first = written(&pattern(&format!("SELECT * {{ {body} }}")));
            let again = written(&pattern(&format!("SELECT * {first}")));
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
            let first = written(&pattern(&format!("SELECT * {{ {body} }}")));
            let again = pattern(&format!("SELECT * {first}"));
            let (mut before, mut after) = (Vec::new(), Vec::new());
            pattern(&format!("SELECT * {{ {body} }}")).on_in_scope_variable(|v| before.push(v.clone()));
            again.on_in_scope_variable(|v| after.push(v.clone()));
            assert_eq!(before, after, "{body}\n{first}");
        }
    }

    #[test]
    fn a_blank_node_is_a_variable_that_is_not_asked_for() {
        let text = written(&pattern("SELECT ?s { ?s <e:p> _:b . _:b <e:q>+ ?o }"));
        assert_eq!(text.matches("?blank_").count(), 2, "{text}");
        assert!(!text.contains("_:"), "{text}");
    }

    #[test]
    fn the_name_for_numbers_is_free() {
        let name = |body: &str| free_name(&pattern(&format!("SELECT * {{ {body} }}")));
        assert_eq!(name("?s ?p ?o"), "row");
        assert_eq!(name("?s ?row ?o FILTER EXISTS { ?row_ ?p ?o }"), "row__");
    }
}
