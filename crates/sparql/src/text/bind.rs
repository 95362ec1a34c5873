//! Values for variables of a text, by name: the parameters of a prepared query.
//!
//! A parameter stands in the syntax tree in place of its variable, wherever the variable is in
//! scope, as the placeholder that [`shape`](crate::text::shape) gives constants; so texts with
//! parameters share their plan whatever the values are.
//!
//! 1. In patterns and expressions the placeholder replaces the variable.
//! 2. Patterns put the variable out no more. Where the query itself does (SELECT, a template),
//!    it gets its value by an `Extend` below; so it has the same column as without the
//!    parameter.
//! 3. The rows of VALUES are filtered by its column, which then goes.
//! 4. A subquery that does not project the variable has another variable of that name: it is
//!    left alone.
//!
//! A variable to which the query itself gives a value (BIND, AS) cannot be a parameter.

use oxrdf::{Literal, NamedNode};
use snowmelt_graph::Term;
use spargebra::algebra::{AggregateExpression, Expression, GraphPattern, OrderExpression};
use spargebra::term::{
    GraphNamePattern, GroundQuadPattern, GroundTermPattern, NamedNodePattern, QuadPattern, TermPattern,
    TriplePattern, Variable,
};
use spargebra::{GraphUpdateOperation, Query};

use super::parameter::{iri_placeholder, literal_placeholder};
use crate::error::QueryError;
use crate::text::parameter::GroundTerm;

/// Names of variables, without question mark, and the terms they stand for.
pub(crate) type Bindings = [(String, Term)];

/// The terms as parameters, in the order of the bindings.
pub(crate) fn params(bindings: &Bindings) -> Result<Vec<GroundTerm>, QueryError> {
    let param = |(name, term): &(String, Term)| match term {
        Term::Iri(iri) => Ok(GroundTerm::Iri(NamedNode::new_unchecked(iri))),
        Term::Literal { lexical, lang: Some(lang), direction: Some(direction), .. } => {
            Ok(GroundTerm::Literal(Literal::new_directional_language_tagged_literal_unchecked(
                lexical, lang, *direction,
            )))
        }
        Term::Literal { lexical, lang: Some(lang), .. } => {
            Ok(GroundTerm::Literal(Literal::new_language_tagged_literal_unchecked(lexical, lang)))
        }
        Term::Literal { lexical, datatype, .. } => {
            let datatype = NamedNode::new_unchecked(datatype);
            Ok(GroundTerm::Literal(Literal::new_typed_literal(lexical, datatype)))
        }
        Term::Blank(_) => Err(QueryError::Parameter {
            name: name.clone(),
            why: "a blank node cannot be one: its label means something only in the answer it is from",
        }),
        Term::Triple(_) => {
            Err(QueryError::Parameter { name: name.clone(), why: "a triple term cannot be one yet" })
        }
    };
    bindings.iter().map(param).collect()
}

/// The part of bindings that the algebra depends on: names and kinds, as a part of a cache's
/// key.
pub(crate) fn key(bindings: &Bindings) -> String {
    let kind = |term: &Term| if matches!(term, Term::Iri(_)) { '<' } else { '"' };
    bindings.iter().flat_map(|(name, term)| name.chars().chain([kind(term)])).collect()
}

/// Puts parameters into a query; the first is the one with number `first`.
pub(crate) fn bind_query(query: &mut Query, bindings: &Bindings, first: usize) -> Result<(), QueryError> {
    for (at, (name, term)) in bindings.iter().enumerate() {
        let mut bind = Bind::new(name, term, first + at);
        match query {
            Query::Select { pattern, .. } | Query::Describe { pattern, .. } | Query::Ask { pattern, .. } => {
                bind.top(pattern)?;
            }
            Query::Construct { template, pattern, .. } => {
                let is_put_out = template.iter().any(|triple| bind.is_in(triple));
                bind.template(pattern, is_put_out)?;
            }
        }
        bind.finish()?;
    }
    Ok(())
}

/// Puts parameters into the operations of an update, as [`bind_query`] does.
pub(crate) fn bind_update(
    operations: &mut [GraphUpdateOperation],
    bindings: &Bindings,
) -> Result<(), QueryError> {
    for (at, (name, term)) in bindings.iter().enumerate() {
        let mut bind = Bind::new(name, term, at);
        for operation in &mut *operations {
            if let GraphUpdateOperation::DeleteInsert { delete, insert, pattern, .. } = operation {
                let is_put_out = delete.iter().any(|quad| bind.is_in_deleted(quad))
                    || insert.iter().any(|quad| bind.is_in_inserted(quad));
                bind.template(pattern, is_put_out)?;
            }
        }
        bind.finish()?;
    }
    Ok(())
}

/// One parameter on its way through a syntax tree.
struct Bind {
    variable: Variable,
    /// in patterns an IRI stands for any term
    in_patterns: NamedNode,
    in_expressions: Expression,
    is_found: bool,
}

impl Bind {
    fn new(name: &str, term: &Term, number: usize) -> Self {
        let in_patterns = iri_placeholder(number);
        let in_expressions = match term {
            Term::Iri(_) => Expression::NamedNode(in_patterns.clone()),
            _ => Expression::Literal(literal_placeholder(number)),
        };
        Bind { variable: Variable::new_unchecked(name), in_patterns, in_expressions, is_found: false }
    }

    fn error(&self, why: &'static str) -> QueryError {
        QueryError::Parameter { name: self.variable.as_str().to_owned(), why }
    }

    fn finish(self) -> Result<(), QueryError> {
        if self.is_found { Ok(()) } else { Err(self.error("the text has no such variable")) }
    }

    /// The pattern of a query: its outermost projection is no scope of its own.
    fn top(&mut self, pattern: &mut GraphPattern) -> Result<(), QueryError> {
        use GraphPattern as P;
        match pattern {
            P::Slice { inner, .. } | P::Distinct { inner } | P::Reduced { inner } => self.top(inner),
            P::Project { inner, variables } => {
                self.pattern(inner)?;
                if variables.contains(&self.variable) {
                    self.extend(inner);
                }
                Ok(())
            }
            other => self.pattern(other),
        }
    }

    /// A pattern whose solutions go into templates, which keep their variables: so a literal is
    /// left out where none may be.
    fn template(&mut self, pattern: &mut GraphPattern, is_put_out: bool) -> Result<(), QueryError> {
        self.pattern(pattern)?;
        if is_put_out {
            self.extend(pattern);
        }
        Ok(())
    }

    fn is_in(&self, triple: &TriplePattern) -> bool {
        self.is_term(&triple.subject) || self.is_name(&triple.predicate) || self.is_term(&triple.object)
    }

    fn is_in_inserted(&self, quad: &QuadPattern) -> bool {
        self.is_term(&quad.subject)
            || self.is_name(&quad.predicate)
            || self.is_term(&quad.object)
            || self.is_graph(&quad.graph_name)
    }

    fn is_in_deleted(&self, quad: &GroundQuadPattern) -> bool {
        let is_ground =
            |term: &GroundTermPattern| matches!(term, GroundTermPattern::Variable(v) if *v == self.variable);
        is_ground(&quad.subject)
            || self.is_name(&quad.predicate)
            || is_ground(&quad.object)
            || self.is_graph(&quad.graph_name)
    }

    fn is_term(&self, term: &TermPattern) -> bool {
        matches!(term, TermPattern::Variable(v) if *v == self.variable)
    }

    fn is_name(&self, name: &NamedNodePattern) -> bool {
        matches!(name, NamedNodePattern::Variable(v) if *v == self.variable)
    }

    fn is_graph(&self, name: &GraphNamePattern) -> bool {
        matches!(name, GraphNamePattern::Variable(v) if *v == self.variable)
    }

    /// Gives the variable its value in the solutions of a pattern.
    fn extend(&mut self, pattern: &mut GraphPattern) {
        self.is_found = true;
        let inner = Box::new(std::mem::take(pattern));
        let (variable, expression) = (self.variable.clone(), self.in_expressions.clone());
        *pattern = GraphPattern::Extend { inner, variable, expression };
    }

    /// Replaces the variable in a pattern, whose solutions then have it no more.
    fn pattern(&mut self, pattern: &mut GraphPattern) -> Result<(), QueryError> {
        use GraphPattern as P;
        match pattern {
            P::Bgp { patterns } => {
                for triple in patterns {
                    self.term(&mut triple.subject);
                    self.name(&mut triple.predicate);
                    self.term(&mut triple.object);
                }
                Ok(())
            }
            P::Path { subject, object, .. } => {
                self.term(subject);
                self.term(object);
                Ok(())
            }
            P::Join { left, right } | P::Union { left, right } | P::Minus { left, right } => {
                self.pattern(left)?;
                self.pattern(right)
            }
            P::LeftJoin { left, right, expression } => {
                self.pattern(left)?;
                self.pattern(right)?;
                expression.iter_mut().try_for_each(|expression| self.expression(expression))
            }
            P::Filter { expr, inner } => {
                self.expression(expr)?;
                self.pattern(inner)
            }
            P::Graph { name, inner } | P::Service { name, inner, .. } => {
                self.name(name);
                self.pattern(inner)
            }
            P::Extend { inner, variable, expression } => {
                self.is_not_given(variable)?;
                self.expression(expression)?;
                self.pattern(inner)
            }
            P::Values { variables, .. } => {
                if variables.contains(&self.variable) {
                    self.is_found = true;
                    let others = without(variables, &self.variable);
                    let rows = Box::new(std::mem::take(pattern));
                    let rows = Box::new(P::Filter { expr: self.is_equal(), inner: rows });
                    *pattern = P::Project { inner: rows, variables: others };
                }
                Ok(())
            }
            P::OrderBy { inner, expression } => {
                for OrderExpression::Asc(by) | OrderExpression::Desc(by) in expression {
                    self.expression(by)?;
                }
                self.pattern(inner)
            }
            P::Project { inner, variables } => {
                if variables.contains(&self.variable) {
                    self.is_found = true;
                    *variables = without(variables, &self.variable);
                    self.pattern(inner)?;
                }
                Ok(())
            }
            P::Distinct { inner } | P::Reduced { inner } | P::Slice { inner, .. } => self.pattern(inner),
            P::Group { .. } => self.group(pattern),
            #[allow(unreachable_patterns, reason = "the parser's features may add patterns")]
            _ => Err(self.error("a pattern of the text is not supported")),
        }
    }

    /// A group by the variable stays one, so that no rows make no group.
    fn group(&mut self, pattern: &mut GraphPattern) -> Result<(), QueryError> {
        let GraphPattern::Group { inner, variables, aggregates } = pattern else { return Ok(()) };
        for (variable, aggregate) in &mut *aggregates {
            self.is_not_given(variable)?;
            if let AggregateExpression::FunctionCall { expr, .. } = aggregate {
                self.expression(expr)?;
            }
        }
        self.pattern(inner)?;
        if variables.contains(&self.variable) {
            self.extend(inner);
            let mut others = without(variables, &self.variable);
            others.extend(aggregates.iter().map(|(variable, _)| variable.clone()));
            let inner = Box::new(std::mem::take(pattern));
            *pattern = GraphPattern::Project { inner, variables: others };
        }
        Ok(())
    }

    fn is_not_given(&self, variable: &Variable) -> Result<(), QueryError> {
        match *variable == self.variable {
            true => Err(self.error("the query itself gives that variable a value")),
            false => Ok(()),
        }
    }

    /// Whether a row of VALUES has the value, or none for the variable.
    fn is_equal(&self) -> Expression {
        let variable = self.variable.clone();
        let is_open = Expression::Not(Box::new(Expression::Bound(variable.clone())));
        let value = Box::new(self.in_expressions.clone());
        let is_same = Expression::SameTerm(Box::new(Expression::Variable(variable)), value);
        Expression::Or(Box::new(is_open), Box::new(is_same))
    }

    fn term(&mut self, term: &mut TermPattern) {
        if self.is_term(term) {
            self.is_found = true;
            *term = TermPattern::NamedNode(self.in_patterns.clone());
        }
    }

    fn name(&mut self, name: &mut NamedNodePattern) {
        if self.is_name(name) {
            self.is_found = true;
            *name = NamedNodePattern::NamedNode(self.in_patterns.clone());
        }
    }

    fn expression(&mut self, expression: &mut Expression) -> Result<(), QueryError> {
        use Expression as E;
        match expression {
            E::Variable(variable) => {
                if *variable == self.variable {
                    self.is_found = true;
                    *expression = self.in_expressions.clone();
                }
                Ok(())
            }
            E::Bound(variable) => {
                if *variable == self.variable {
                    self.is_found = true;
                    *expression = E::Literal(true.into());
                }
                Ok(())
            }
            E::NamedNode(_) | E::Literal(_) => Ok(()),
            E::Exists(pattern) => self.pattern(pattern),
            E::UnaryPlus(inner) | E::UnaryMinus(inner) | E::Not(inner) => self.expression(inner),
            E::Or(a, b)
            | E::And(a, b)
            | E::Equal(a, b)
            | E::SameTerm(a, b)
            | E::Greater(a, b)
            | E::GreaterOrEqual(a, b)
            | E::Less(a, b)
            | E::LessOrEqual(a, b)
            | E::Add(a, b)
            | E::Subtract(a, b)
            | E::Multiply(a, b)
            | E::Divide(a, b) => {
                self.expression(a)?;
                self.expression(b)
            }
            E::In(of, list) => {
                self.expression(of)?;
                list.iter_mut().try_for_each(|e| self.expression(e))
            }
            E::If(a, b, c) => [a, b, c].into_iter().try_for_each(|e| self.expression(e)),
            E::Coalesce(list) | E::FunctionCall(_, list) => {
                list.iter_mut().try_for_each(|e| self.expression(e))
            }
        }
    }
}

fn without(variables: &[Variable], one: &Variable) -> Vec<Variable> {
    variables.iter().filter(|variable| *variable != one).cloned().collect()
}
