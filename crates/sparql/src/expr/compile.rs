//! From spargebra's expression to nodes.

use snowmelt_graph::{GraphError, TermId, TermRef};
use spargebra::algebra::{Expression, Function};
use spargebra::term::Variable;

use super::Expr;
use super::kernel::Order;
use super::members::Members;
use super::node::{IsA, Node};
use crate::algebra::visit;
use crate::functions::{Func, Pattern};
use crate::value::{Arithmetic, Cast, TermStore, Terms};

/// Why an expression cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// A construct or function that is not there (yet), as the query writes it.
    #[error("{0} is not supported")]
    Unsupported(String),
    /// Looking up constants failed.
    #[error(transparent)]
    Store(#[from] GraphError),
}

/// Compiles an expression. `slot` gives a variable's column, None for one that is never bound.
/// EXISTS must have been replaced by a variable before. Constants are resolved in one
/// dictionary call.
pub fn compile(
    expression: &Expression,
    slot: &dyn Fn(&Variable) -> Option<usize>,
    terms: &mut Terms,
    store: &mut dyn TermStore,
) -> Result<Expr, CompileError> {
    let mut constants = Vec::new();
    collect_constants(expression, &mut constants);
    let ids = resolve(&constants, terms, store)?;
    let mut compiler = Compiler { slot, ids: ids.into_iter(), terms };
    let root = compiler.node(expression)?;
    Ok(Expr { root })
}

/// The constants' ids in the order given: inline, stored, or local.
fn resolve(
    constants: &[TermRef<'_>],
    terms: &Terms,
    store: &mut dyn TermStore,
) -> Result<Vec<TermId>, GraphError> {
    let mut ids: Vec<Option<TermId>> = constants.iter().map(TermId::inline).collect();
    let open: Vec<usize> = (0..ids.len()).filter(|i| ids[*i].is_none()).collect();
    if !open.is_empty() {
        let asked: Vec<TermRef<'_>> = open.iter().map(|i| constants[*i]).collect();
        for (i, answer) in open.iter().zip(store.resolve(&asked)?) {
            ids[*i] = answer;
        }
    }
    Ok(ids.into_iter().zip(constants).map(|(id, term)| id.unwrap_or_else(|| terms.intern(*term))).collect())
}

/// Appends the constants in the order in which [`Compiler::node`] meets them.
fn collect_constants<'e>(e: &'e Expression, out: &mut Vec<TermRef<'e>>) {
    visit(e, &mut |part| match part {
        Expression::NamedNode(iri) => out.push(TermRef::Iri(iri.as_str())),
        Expression::Literal(literal) => out.push(literal.as_ref().into()),
        _ => {}
    });
}

struct Compiler<'a> {
    slot: &'a dyn Fn(&Variable) -> Option<usize>,
    ids: std::vec::IntoIter<TermId>,
    terms: &'a mut Terms,
}

impl Compiler<'_> {
    fn node(&mut self, e: &Expression) -> Result<Node, CompileError> {
        use Expression as E;
        Ok(match e {
            E::NamedNode(_) | E::Literal(_) => {
                Node::Const(self.ids.next().expect("constants were collected in this order"))
            }
            E::Variable(v) => (self.slot)(v).map_or(Node::Const(TermId::UNDEF), Node::Slot),
            E::Bound(v) => {
                (self.slot)(v).map_or(Node::Const(snowmelt_graph::from_boolean(false)), Node::Bound)
            }
            E::Or(a, b) => {
                self.flat(Node::Or, a, b, |e| if let E::Or(a, b) = e { Some((a, b)) } else { None })?
            }
            E::And(a, b) => {
                self.flat(Node::And, a, b, |e| if let E::And(a, b) = e { Some((a, b)) } else { None })?
            }
            E::Not(a) => Node::Not(self.boxed(a)?),
            E::Equal(a, b) => Node::Equal(self.boxed(a)?, self.boxed(b)?),
            E::SameTerm(a, b) => Node::SameTerm(self.boxed(a)?, self.boxed(b)?),
            E::Greater(a, b) => Node::Compare(Order::Greater, self.boxed(a)?, self.boxed(b)?),
            E::GreaterOrEqual(a, b) => Node::Compare(Order::GreaterOrEqual, self.boxed(a)?, self.boxed(b)?),
            E::Less(a, b) => Node::Compare(Order::Less, self.boxed(a)?, self.boxed(b)?),
            E::LessOrEqual(a, b) => Node::Compare(Order::LessOrEqual, self.boxed(a)?, self.boxed(b)?),
            E::In(a, list) => {
                let (a, nodes) = (self.boxed(a)?, self.list(list)?);
                match Members::new(list, nodes) {
                    Ok(members) => Node::InSet(a, Box::new(members)),
                    Err(nodes) => Node::In(a, nodes),
                }
            }
            E::Add(a, b) => Node::Arithmetic(Arithmetic::Add, self.boxed(a)?, self.boxed(b)?),
            E::Subtract(a, b) => Node::Arithmetic(Arithmetic::Subtract, self.boxed(a)?, self.boxed(b)?),
            E::Multiply(a, b) => Node::Arithmetic(Arithmetic::Multiply, self.boxed(a)?, self.boxed(b)?),
            E::Divide(a, b) => Node::Arithmetic(Arithmetic::Divide, self.boxed(a)?, self.boxed(b)?),
            E::UnaryPlus(a) => Node::Plus(self.boxed(a)?),
            E::UnaryMinus(a) => Node::Minus(self.boxed(a)?),
            E::If(a, b, c) => Node::If(self.boxed(a)?, self.boxed(b)?, self.boxed(c)?),
            E::Coalesce(list) => Node::Coalesce(self.list(list)?),
            E::FunctionCall(f, args) => self.call(f, args)?,
            E::Exists(_) => {
                return Err(CompileError::Unsupported("EXISTS inside this expression".to_owned()));
            }
        })
    }

    fn boxed(&mut self, e: &Expression) -> Result<Box<Node>, CompileError> {
        self.node(e).map(Box::new)
    }

    fn list(&mut self, list: &[Expression]) -> Result<Vec<Node>, CompileError> {
        list.iter().map(|e| self.node(e)).collect()
    }

    /// A chain of one connective as one node. The order of its parts is free (SPARQL's && and
    /// || commute, errors included), so the cheap ones come first and spare the others rows.
    fn flat<'e>(
        &mut self,
        make: fn(Vec<Node>) -> Node,
        a: &'e Expression,
        b: &'e Expression,
        parts: fn(&'e Expression) -> Option<(&'e Expression, &'e Expression)>,
    ) -> Result<Node, CompileError> {
        let (mut leaves, mut open) = (Vec::new(), vec![b, a]);
        while let Some(e) = open.pop() {
            match parts(e) {
                Some((a, b)) => open.extend([b, a]),
                None => leaves.push(self.node(e)?),
            }
        }
        leaves.sort_by_key(|n| !n.is_cheap());
        Ok(make(leaves))
    }

    fn call(&mut self, f: &Function, args: &[Expression]) -> Result<Node, CompileError> {
        if let Function::Custom(iri) = f {
            let (Some(to), [arg]) = (Cast::from_iri(iri.as_str()), args) else {
                return Err(CompileError::Unsupported(format!("function {iri}")));
            };
            return Ok(cast_node(to, self.node(arg)?));
        }
        let mut nodes = self.list(args)?;
        if let Some(func @ (Func::Regex | Func::Replace)) = Func::from_algebra(f)
            && let Some(pattern) = static_pattern(func, args)
        {
            nodes.remove(1);
            nodes.truncate(if func == Func::Regex { 1 } else { 2 }); // the flags
            return Ok(Node::Static(func, pattern.map(Box::new), nodes));
        }
        let mut nodes = nodes.into_iter();
        let mut next = || Box::new(nodes.next().expect("the parser checks the number of arguments"));
        Ok(match f {
            Function::Str => Node::Str(next()),
            Function::Lang => Node::Lang(next()),
            Function::Datatype => Node::Datatype(next()),
            Function::LangMatches => Node::LangMatches(next(), next()),
            Function::BNode if !args.is_empty() => Node::NamedBlank(self.terms.new_site(), next()),
            Function::IsIri => Node::IsA(IsA::Iri, next()),
            Function::IsBlank => Node::IsA(IsA::Blank, next()),
            Function::IsLiteral => Node::IsA(IsA::Literal, next()),
            Function::IsNumeric => Node::IsA(IsA::Numeric, next()),
            other => match Func::from_algebra(other) {
                Some(func) => Node::Call(func, nodes.collect()),
                None => return Err(CompileError::Unsupported(format!("function {other}"))),
            },
        })
    }
}

/// A cast, fused with the STR or xsd:string below it where the text is only a way to the number.
fn cast_node(to: Cast, arg: Node) -> Node {
    let numeric = matches!(to, Cast::Integer | Cast::Decimal | Cast::Float | Cast::Double);
    match arg {
        Node::Str(inner) | Node::Cast(Cast::String, inner) if numeric => Node::CastText(to, inner),
        arg => Node::Cast(to, Box::new(arg)),
    }
}

/// The compiled pattern of a REGEX or REPLACE whose pattern and flags are plain string constants.
fn static_pattern(func: Func, args: &[Expression]) -> Option<Option<Pattern>> {
    let text = |e: &Expression| match e {
        Expression::Literal(l) if l.language().is_none() && l.datatype() == oxrdf::vocab::xsd::STRING => {
            Some(l.value().to_owned())
        }
        _ => None,
    };
    let pattern = text(&args[1])?;
    let flags = match args.get(if func == Func::Regex { 2 } else { 3 }) {
        Some(flags) => text(flags)?,
        None => String::new(),
    };
    Some(Pattern::new(&pattern, &flags))
}
