//! From spargebra's expression to nodes.

use snowmelt_graph::{GraphError, TermId, TermRef};
use spargebra::algebra::{Expression, Function};
use spargebra::term::Variable;

use super::Expr;
use super::kernel::Order;
use super::members::Members;
use super::node::{ExprNode, IsA};
use crate::algebra::visit;
use crate::error::QueryError;
use crate::functions::{CustomFunctions, Func, Patterns, TextPattern};
use crate::value::{Arithmetic, Cast, TermError, TermStore, Terms};

/// Why an expression cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// A construct or function that is not there (yet), as the query writes it.
    #[error("{0} is not supported")]
    Unsupported(String),
    /// Looking up constants failed.
    #[error(transparent)]
    Store(#[from] GraphError),
    /// The query has to end, or has no memory for its patterns.
    #[error(transparent)]
    Terms(#[from] TermError),
}

impl From<CompileError> for QueryError {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Unsupported(construct) => Self::Unsupported { construct, line: 0, column: 0 },
            CompileError::Store(error) => Self::Store(error),
            CompileError::Terms(error) => error.into(),
        }
    }
}

/// Compiles an expression. `slot` gives a variable's column, None for one that is never bound.
/// EXISTS must have been replaced by a variable before. Constants are resolved in one
/// dictionary call. An IRI that names no function is an error for each row.
pub fn compile(
    expression: &Expression,
    slot: &dyn Fn(&Variable) -> Option<usize>,
    terms: &mut Terms,
    store: &mut dyn TermStore,
    patterns: &mut Patterns,
    functions: &CustomFunctions,
) -> Result<Expr, CompileError> {
    let mut constants = Vec::new();
    collect_constants(expression, &mut constants);
    let ids = resolve(&constants, terms, store)?;
    let mut compiler = Compiler { slot, ids: ids.into_iter(), terms, patterns, functions };
    let root = compiler.node(expression)?;
    assert!(compiler.ids.next().is_none(), "each constant was collected for the node that takes it");
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
        let answers = store.resolve(&asked)?;
        assert_eq!(answers.len(), asked.len(), "the dictionary answers for each constant");
        for (i, answer) in open.iter().zip(answers) {
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
    patterns: &'a mut Patterns,
    functions: &'a CustomFunctions,
}

impl Compiler<'_> {
    fn node(&mut self, e: &Expression) -> Result<ExprNode, CompileError> {
        use Expression as E;
        Ok(match e {
            E::NamedNode(_) | E::Literal(_) => {
                ExprNode::Const(self.ids.next().expect("constants were collected in this order"))
            }
            E::Variable(v) => (self.slot)(v).map_or(ExprNode::Const(TermId::UNDEF), ExprNode::Slot),
            E::Bound(v) => {
                (self.slot)(v).map_or(ExprNode::Const(snowmelt_graph::from_boolean(false)), ExprNode::Bound)
            }
            E::Or(a, b) => {
                self.flat(ExprNode::Or, a, b, |e| if let E::Or(a, b) = e { Some((a, b)) } else { None })?
            }
            E::And(a, b) => {
                self.flat(ExprNode::And, a, b, |e| if let E::And(a, b) = e { Some((a, b)) } else { None })?
            }
            E::Not(a) => ExprNode::Not(self.boxed(a)?),
            E::Equal(a, b) => ExprNode::Equal(self.boxed(a)?, self.boxed(b)?),
            E::SameTerm(a, b) => ExprNode::SameTerm(self.boxed(a)?, self.boxed(b)?),
            E::Greater(a, b) => ExprNode::Compare(Order::Greater, self.boxed(a)?, self.boxed(b)?),
            E::GreaterOrEqual(a, b) => {
                ExprNode::Compare(Order::GreaterOrEqual, self.boxed(a)?, self.boxed(b)?)
            }
            E::Less(a, b) => ExprNode::Compare(Order::Less, self.boxed(a)?, self.boxed(b)?),
            E::LessOrEqual(a, b) => ExprNode::Compare(Order::LessOrEqual, self.boxed(a)?, self.boxed(b)?),
            E::In(a, list) => {
                let (a, nodes) = (self.boxed(a)?, self.list(list)?);
                match Members::new(list, nodes) {
                    Ok(members) => ExprNode::InSet(a, Box::new(members)),
                    Err(nodes) => ExprNode::In(a, nodes),
                }
            }
            E::Add(a, b) => ExprNode::Arithmetic(Arithmetic::Add, self.boxed(a)?, self.boxed(b)?),
            E::Subtract(a, b) => ExprNode::Arithmetic(Arithmetic::Subtract, self.boxed(a)?, self.boxed(b)?),
            E::Multiply(a, b) => ExprNode::Arithmetic(Arithmetic::Multiply, self.boxed(a)?, self.boxed(b)?),
            E::Divide(a, b) => ExprNode::Arithmetic(Arithmetic::Divide, self.boxed(a)?, self.boxed(b)?),
            E::UnaryPlus(a) => ExprNode::Plus(self.boxed(a)?),
            E::UnaryMinus(a) => ExprNode::Minus(self.boxed(a)?),
            E::If(a, b, c) => ExprNode::If(self.boxed(a)?, self.boxed(b)?, self.boxed(c)?),
            E::Coalesce(list) => ExprNode::Coalesce(self.list(list)?),
            E::FunctionCall(f, args) => self.call(f, args)?,
            E::Exists(_) => {
                return Err(CompileError::Unsupported("EXISTS inside this expression".to_owned()));
            }
        })
    }

    fn boxed(&mut self, e: &Expression) -> Result<Box<ExprNode>, CompileError> {
        self.node(e).map(Box::new)
    }

    fn list(&mut self, list: &[Expression]) -> Result<Vec<ExprNode>, CompileError> {
        list.iter().map(|e| self.node(e)).collect()
    }

    /// A chain of one connective as one node. The order of its parts is free (SPARQL's && and
    /// || commute, errors included), so the cheap ones come first and spare the others rows.
    fn flat<'e>(
        &mut self,
        make: fn(Vec<ExprNode>) -> ExprNode,
        a: &'e Expression,
        b: &'e Expression,
        parts: fn(&'e Expression) -> Option<(&'e Expression, &'e Expression)>,
    ) -> Result<ExprNode, CompileError> {
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

    /// The compiled pattern of a REGEX or REPLACE whose pattern and flags are plain string
    /// constants: `Some(None)` when one of them is malformed.
    fn static_pattern(
        &mut self,
        func: Func,
        args: &[Expression],
    ) -> Result<Option<Option<TextPattern>>, CompileError> {
        let Some((pattern, flags)) = constant_pattern(func, args) else { return Ok(None) };
        Ok(Some(self.patterns.compile(pattern, flags, self.terms)?))
    }

    fn call(&mut self, f: &Function, args: &[Expression]) -> Result<ExprNode, CompileError> {
        if let Function::Custom(iri) = f
            && let Some(function) = self.functions.get(iri.as_str())
        {
            return Ok(ExprNode::Custom(function.clone(), self.list(args)?));
        }
        if let Function::Custom(iri) = f
            && let (Some(to), [arg]) = (Cast::from_iri(iri.as_str()), args)
        {
            return Ok(cast_node(to, self.node(arg)?));
        }
        let mut nodes = self.list(args)?;
        let func = Func::of_call(f, args.len());
        if let Some(func @ (Func::Regex | Func::Replace)) = func
            && let Some(pattern) = self.static_pattern(func, args)?
        {
            nodes.remove(1);
            nodes.truncate(if func == Func::Regex { 1 } else { 2 }); // the flags
            return Ok(ExprNode::Static(func, pattern.map(Box::new), nodes));
        }
        let mut nodes = nodes.into_iter();
        let mut next = || Box::new(nodes.next().expect("the parser checks the number of arguments"));
        Ok(match f {
            Function::Str => ExprNode::Str(next()),
            Function::Lang => ExprNode::Lang(next()),
            Function::Datatype => ExprNode::Datatype(next()),
            Function::LangMatches => ExprNode::LangMatches(next(), next()),
            Function::BNode if !args.is_empty() => ExprNode::NamedBlank(self.terms.new_site(), next()),
            Function::IsIri => ExprNode::IsA(IsA::Iri, next()),
            Function::IsBlank => ExprNode::IsA(IsA::Blank, next()),
            Function::IsLiteral => ExprNode::IsA(IsA::Literal, next()),
            Function::IsNumeric => ExprNode::IsA(IsA::Numeric, next()),
            // a function that is not there gives an error for each row
            Function::Custom(_) if func.is_none() => ExprNode::Const(TermId::UNDEF),
            other => match func {
                Some(func) => ExprNode::Call(func, nodes.collect()),
                None => return Err(CompileError::Unsupported(format!("function {other}"))),
            },
        })
    }
}

/// A cast, fused with the STR or xsd:string below it where the text is only a way to the
/// number.
fn cast_node(to: Cast, arg: ExprNode) -> ExprNode {
    let numeric = matches!(to, Cast::Integer | Cast::Decimal | Cast::Float | Cast::Double);
    match arg {
        ExprNode::Str(inner) | ExprNode::Cast(Cast::String, inner) if numeric => {
            ExprNode::CastText(to, inner)
        }
        arg => ExprNode::Cast(to, Box::new(arg)),
    }
}

/// The pattern and the flags of a REGEX or REPLACE, if they are plain string constants.
fn constant_pattern(func: Func, args: &[Expression]) -> Option<(&str, &str)> {
    fn text(e: &Expression) -> Option<&str> {
        match e {
            Expression::Literal(l) if l.language().is_none() && l.datatype() == oxrdf::vocab::xsd::STRING => {
                Some(l.value())
            }
            _ => None,
        }
    }
    let flags = args.get(if func == Func::Regex { 2 } else { 3 });
    Some((text(&args[1])?, flags.map_or(Some(""), text)?))
}
