//! Values for variables of a text, by name: the parameters of a prepared query.
//!
//! A parameter stands in the syntax tree in place of its variable, wherever the variable is in
//! scope, as those stand there that are a shape's constants; so texts with parameters share their
//! plan whatever the values are.
//!
//! 1. In patterns and expressions the parameter replaces the variable.
//! 2. Patterns put the variable out no more. Where the query itself does (SELECT, a template),
//!    it gets its value by an `Extend` below; so it has the same column as without the
//!    parameter.
//! 3. The rows of VALUES are filtered by its column, which then goes.
//! 4. A subquery that does not project the variable has another variable of that name: it is
//!    left alone.
//!
//! A variable to which the query itself gives a value (BIND, AS) cannot be a parameter.

use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNode, Triple};
use snowmelt_graph::Term;
use snowmelt_syntax::tree::{
    self, Expr, Function, GraphPattern, Node, Operation, Query, QueryForm, Slot, TriplePattern,
    UnaryOperator, UpdateOperation, Var,
};

use super::consts::GroundTerm;
use crate::error::QueryError;

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
        Term::Triple(triple) if has_blank(triple) => Err(QueryError::Parameter {
            name: name.clone(),
            why: "a blank node is in it: its label means something only in the answer it is from",
        }),
        Term::Triple(triple) => Ok(GroundTerm::Triple(triple.clone())),
    };
    bindings.iter().map(param).collect()
}

/// Whether a blank node is in a triple term.
fn has_blank(mut triple: &Triple) -> bool {
    loop {
        if triple.subject.is_blank_node() {
            return true;
        }
        match &triple.object {
            oxrdf::Term::Triple(inner) => triple = inner,
            object => return object.is_blank_node(),
        }
    }
}

/// The part of bindings that the algebra depends on: names and kinds, as a part of a cache's
/// key.
pub(crate) fn key(bindings: &Bindings) -> String {
    let kind = |term: &Term| if matches!(term, Term::Iri(_)) { '<' } else { '"' };
    bindings.iter().flat_map(|(name, term)| name.chars().chain([kind(term)])).collect()
}

/// Puts parameters into a query; the first is the one with number `first`.
pub(crate) fn bind_query(query: &mut Query, bindings: &Bindings, first: usize) -> Result<(), QueryError> {
    for (at, (name, _)) in bindings.iter().enumerate() {
        let mut bind = Bind::new(name, first + at);
        let Some(var) = query.names.var(name) else { return bind.finish() };
        bind.var = var;
        match &query.form {
            QueryForm::Construct(template) => {
                let is_put_out = template.iter().flat_map(TriplePattern::slots).any(|slot| bind.is_in(slot));
                bind.template(&mut query.pattern, is_put_out)?;
            }
            QueryForm::Select | QueryForm::Describe(_) | QueryForm::Ask => bind.top(&mut query.pattern)?,
        }
        bind.finish()?;
    }
    Ok(())
}

/// Puts parameters into the operations of an update, as [`bind_query`] does.
pub(crate) fn bind_update(operations: &mut [UpdateOperation], bindings: &Bindings) -> Result<(), QueryError> {
    for (at, (name, _)) in bindings.iter().enumerate() {
        let mut bind = Bind::new(name, at);
        for operation in &mut *operations {
            if let (Operation::Modify(modify), Some(var)) =
                (&mut operation.operation, operation.names.var(name))
            {
                bind.var = var;
                let quads = modify.delete.iter().chain(&modify.insert);
                let mut slots = quads.flat_map(|quad| quad.triple.slots().into_iter().chain(&quad.graph));
                let is_put_out = slots.any(|slot| bind.is_in(slot));
                bind.template(&mut modify.pattern, is_put_out)?;
            }
        }
        bind.finish()?;
    }
    Ok(())
}

/// One parameter on its way through a syntax tree.
struct Bind<'a> {
    name: &'a str,
    /// the variable, where the text has it
    var: Var,
    number: u32,
    is_found: bool,
}

impl<'a> Bind<'a> {
    fn new(name: &'a str, number: usize) -> Self {
        Bind { name, var: Var(u32::MAX), number: number as u32, is_found: false }
    }

    fn error(&self, why: &'static str) -> QueryError {
        QueryError::Parameter { name: self.name.to_owned(), why }
    }

    fn finish(self) -> Result<(), QueryError> {
        if self.is_found { Ok(()) } else { Err(self.error("the text has no such variable")) }
    }

    /// The pattern of a query: its outermost projection is no scope of its own.
    fn top(&mut self, pattern: &mut GraphPattern) -> Result<(), QueryError> {
        use GraphPattern as P;
        match pattern {
            P::Slice { inner, .. } | P::Distinct(inner) | P::Reduced(inner) => self.top(inner),
            P::Project { inner, vars, .. } => {
                self.pattern(inner)?;
                if vars.contains(&self.var) {
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

    /// Whether the variable stands in a place of a template.
    fn is_in(&self, slot: &Slot) -> bool {
        let mut found = false;
        Node::Slot(slot).walk(&mut |part| {
            found |= matches!(part, Node::Var(var) if var == self.var);
            !found
        });
        found
    }

    /// Gives the variable its value in the solutions of a pattern.
    fn extend(&mut self, pattern: &mut GraphPattern) {
        self.is_found = true;
        let inner = Box::new(std::mem::take(pattern));
        *pattern = GraphPattern::Extend { inner, values: vec![(self.var, Expr::Param(self.number))] };
    }

    /// Replaces the variable in a pattern, whose solutions then have it no more.
    fn pattern(&mut self, pattern: &mut GraphPattern) -> Result<(), QueryError> {
        use GraphPattern as P;
        match pattern {
            P::Bgp(triples) => triples.iter_mut().for_each(|triple| self.triple(triple)),
            P::Path { subject, object, .. } => [subject, object].into_iter().for_each(|slot| self.slot(slot)),
            P::Join(parts) | P::Union(parts) => {
                return parts.iter_mut().try_for_each(|part| self.pattern(part));
            }
            P::Minus { left, right } | P::Lateral { left, right } => {
                self.pattern(left)?;
                self.pattern(right)?;
            }
            P::LeftJoin { left, right, condition } => {
                self.pattern(left)?;
                self.pattern(right)?;
                condition.iter_mut().try_for_each(|condition| self.expression(condition))?;
            }
            P::Filter { condition, inner } => {
                self.expression(condition)?;
                self.pattern(inner)?;
            }
            P::Graph { name, inner } | P::Service { name, inner, .. } => {
                self.slot(name);
                self.pattern(inner)?;
            }
            P::Extend { inner, values } => {
                for (var, expr) in values {
                    self.is_not_given(*var)?;
                    self.expression(expr)?;
                }
                self.pattern(inner)?;
            }
            P::Values(values) if values.vars.contains(&self.var) => {
                self.is_found = true;
                let others = without(&values.vars, self.var);
                let inner = Box::new(std::mem::take(pattern));
                let rows = Box::new(P::Filter { condition: self.is_equal(), inner });
                *pattern = P::Project { inner: rows, vars: others, is_star: false };
            }
            P::Values(_) => {}
            P::OrderBy { inner, keys } => {
                keys.iter_mut().try_for_each(|key| self.expression(&mut key.expr))?;
                self.pattern(inner)?;
            }
            P::Project { inner, vars, .. } => {
                if vars.contains(&self.var) {
                    self.is_found = true;
                    *vars = without(vars, self.var);
                    self.pattern(inner)?;
                }
            }
            P::Distinct(inner) | P::Reduced(inner) | P::Slice { inner, .. } => self.pattern(inner)?,
            P::Group { .. } => self.group(pattern)?,
        }
        Ok(())
    }

    /// A group by the variable stays one, so that no rows make no group.
    fn group(&mut self, pattern: &mut GraphPattern) -> Result<(), QueryError> {
        let GraphPattern::Group { inner, vars, aggregates } = pattern else { return Ok(()) };
        for (var, aggregate) in &mut *aggregates {
            self.is_not_given(*var)?;
            aggregate.argument.iter_mut().try_for_each(|argument| self.expression(argument))?;
        }
        self.pattern(inner)?;
        if vars.contains(&self.var) {
            self.extend(inner);
            let mut others = without(vars, self.var);
            others.extend(aggregates.iter().map(|(var, _)| *var));
            let inner = Box::new(std::mem::take(pattern));
            *pattern = GraphPattern::Project { inner, vars: others, is_star: false };
        }
        Ok(())
    }

    fn is_not_given(&self, var: Var) -> Result<(), QueryError> {
        match var == self.var {
            true => Err(self.error("the query itself gives that variable a value")),
            false => Ok(()),
        }
    }

    /// Whether a row of VALUES has the value, or none for the variable.
    fn is_equal(&self) -> Expr {
        let is_bound = Expr::Call(Function::Bound, vec![Expr::Var(self.var)]);
        let is_open = Expr::Unary(UnaryOperator::Not, Box::new(is_bound));
        let pair = vec![Expr::Var(self.var), Expr::Param(self.number)];
        Expr::Or(vec![is_open, Expr::Call(Function::SameTerm, pair)])
    }

    fn triple(&mut self, TriplePattern { subject, predicate, object }: &mut TriplePattern) {
        [subject, predicate, object].into_iter().for_each(|slot| self.slot(slot));
    }

    fn slot(&mut self, slot: &mut Slot) {
        match slot {
            Slot::Triple(triple) => self.triple(triple),
            Slot::Var(var) if *var == self.var => {
                self.is_found = true;
                *slot = Slot::Param(self.number);
            }
            Slot::Var(_) | Slot::Term(_) | Slot::Param(_) => {}
        }
    }

    fn expression(&mut self, expr: &mut Expr) -> Result<(), QueryError> {
        match expr {
            Expr::Var(var) => {
                if *var == self.var {
                    self.is_found = true;
                    *expr = Expr::Param(self.number);
                }
            }
            Expr::Call(Function::Bound, list) if list[..] == [Expr::Var(self.var)] => {
                self.is_found = true;
                let value = tree::Literal::typed("true", xsd::BOOLEAN.as_str());
                *expr = Expr::Const(tree::Term::Literal(value));
            }
            Expr::Call(Function::Bound, _) | Expr::Const(_) | Expr::Param(_) => {}
            Expr::Exists(pattern) => self.pattern(pattern)?,
            Expr::Unary(_, part) => self.expression(part)?,
            Expr::Binary(_, pair) => pair.iter_mut().try_for_each(|part| self.expression(part))?,
            Expr::In(of, list) => {
                self.expression(of)?;
                list.iter_mut().try_for_each(|part| self.expression(part))?;
            }
            Expr::Or(list) | Expr::And(list) | Expr::Call(_, list) | Expr::Custom(_, list) => {
                list.iter_mut().try_for_each(|part| self.expression(part))?;
            }
        }
        Ok(())
    }
}

fn without(vars: &[Var], one: Var) -> Vec<Var> {
    vars.iter().filter(|var| **var != one).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_in_triple_terms_are_replaced() {
        let text = "SELECT * { SERVICE <e:s> { ?r <e:p> <<( ?s <e:p> <<( <e:a> ?s ?o )>> )>> } }";
        let mut query = snowmelt_syntax::parse_query(text, &Default::default()).unwrap();
        bind_query(&mut query, &[("s".to_owned(), Term::Iri("e:x".to_owned()))], 0).unwrap();
        let mut found = Vec::new();
        Node::Pattern(&query.pattern).walk(&mut |part| {
            match part {
                Node::Slot(Slot::Param(0)) => found.push("param"),
                Node::Var(var) => found.extend(query.names.name(var).filter(|name| *name == "s")),
                _ => {}
            }
            true
        });
        // the column has its value by an expression
        assert_eq!(found, ["param", "param", "s", "s"]);
    }
}
