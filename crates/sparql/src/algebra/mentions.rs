//! The names a pattern or an expression mentions, in whatever place: also those only a filter
//! reads, those inside EXISTS and those a sub-select hides.

use rustc_hash::FxHashSet;
use spargebra::algebra::{AggregateExpression, Expression, GraphPattern, OrderExpression};
use spargebra::term::{NamedNodePattern, TermPattern, Variable};

/// The names mentioned.
#[derive(Default, Debug)]
pub(super) struct Mentions<'a> {
    pub names: FxHashSet<&'a str>,
    /// whether there is a MINUS
    pub minus: bool,
}

/// The names a pattern mentions.
pub(super) fn of_pattern(pattern: &GraphPattern) -> Mentions<'_> {
    let mut walk = MentionWalk { found: Mentions::default(), open: vec![pattern] };
    walk.run();
    walk.found
}

/// The names an expression mentions.
pub(super) fn of_expression(expr: &Expression) -> Mentions<'_> {
    let mut walk = MentionWalk { found: Mentions::default(), open: Vec::new() };
    walk.expression(expr);
    walk.run();
    walk.found
}

struct MentionWalk<'a> {
    found: Mentions<'a>,
    /// still to be looked at
    open: Vec<&'a GraphPattern>,
}

impl<'a> MentionWalk<'a> {
    fn run(&mut self) {
        while let Some(pattern) = self.open.pop() {
            self.pattern(pattern);
        }
    }

    fn name(&mut self, v: &'a Variable) {
        self.found.names.insert(v.as_str());
    }

    fn term(&mut self, term: &'a TermPattern) {
        if let TermPattern::Variable(v) = term {
            self.name(v);
        }
    }

    fn iri(&mut self, iri: &'a NamedNodePattern) {
        if let NamedNodePattern::Variable(v) = iri {
            self.name(v);
        }
    }

    fn expression(&mut self, expr: &'a Expression) {
        super::visit(expr, &mut |e| match e {
            Expression::Variable(v) | Expression::Bound(v) => self.name(v),
            Expression::Exists(pattern) => self.open.push(pattern),
            _ => {}
        });
    }

    fn pattern(&mut self, pattern: &'a GraphPattern) {
        use GraphPattern as P;
        #[allow(unreachable_patterns)] // variants that other features of spargebra add
        match pattern {
            P::Bgp { patterns } => {
                for triple in patterns {
                    self.term(&triple.subject);
                    self.iri(&triple.predicate);
                    self.term(&triple.object);
                }
            }
            P::Path { subject, object, .. } => {
                self.term(subject);
                self.term(object);
            }
            P::Join { left, right } | P::Union { left, right } => self.open.extend([&**left, &**right]),
            P::Minus { left, right } => {
                self.found.minus = true;
                self.open.extend([&**left, &**right]);
            }
            P::LeftJoin { left, right, expression } => {
                self.open.extend([&**left, &**right]);
                expression.iter().for_each(|e| self.expression(e));
            }
            P::Filter { expr, inner } => {
                self.expression(expr);
                self.open.push(inner);
            }
            P::Graph { name, inner } | P::Service { name, inner, .. } => {
                self.iri(name);
                self.open.push(inner);
            }
            P::Extend { inner, variable, expression } => {
                self.name(variable);
                self.expression(expression);
                self.open.push(inner);
            }
            P::Values { variables, .. } => variables.iter().for_each(|v| self.name(v)),
            P::OrderBy { inner, expression } => {
                for key in expression {
                    let (OrderExpression::Asc(e) | OrderExpression::Desc(e)) = key;
                    self.expression(e);
                }
                self.open.push(inner);
            }
            P::Project { inner, variables } => {
                variables.iter().for_each(|v| self.name(v));
                self.open.push(inner);
            }
            P::Distinct { inner } | P::Reduced { inner } | P::Slice { inner, .. } => self.open.push(inner),
            P::Group { inner, variables, aggregates } => {
                variables.iter().for_each(|v| self.name(v));
                for (variable, aggregate) in aggregates {
                    self.name(variable);
                    if let AggregateExpression::FunctionCall { expr, .. } = aggregate {
                        self.expression(expr);
                    }
                }
                self.open.push(inner);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spargebra::{Query, SparqlParser};

    #[test]
    fn hidden_places_are_seen_and_texts_are_not() {
        let text = "SELECT ?a { ?a <p> \"?no\" OPTIONAL { ?b !<?no> ?c } GRAPH ?d { MINUS { ?e ?f 1 } }
            FILTER(EXISTS { { SELECT ?g { ?g <q> ?h } GROUP BY ?g HAVING(SUM(?i) > ?j) } } || BOUND(?k)) }
            ORDER BY ?l LIMIT 3";
        let text = text.replace("<?no>", "<http://e/?no>").replace("<p>", "<http://e/p>");
        let text = text.replace("<q>", "<http://e/q>");
        let Ok(Query::Select { pattern, .. }) = SparqlParser::new().parse_query(&text) else {
            panic!("a query")
        };
        let found = of_pattern(&pattern);
        let mut names: Vec<&str> = found.names.into_iter().filter(|n| n.len() == 1).collect();
        names.sort_unstable();
        assert_eq!(names, ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"]);
        assert!(found.minus);
    }
}
