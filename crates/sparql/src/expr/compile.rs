//! From the algebra's expression to nodes.

use oxrdf::{NamedNode, NamedOrBlankNode, Term, Triple};
use snowmelt_graph::{GraphError, TermId, TermRef};

use super::Expr;
use super::kernel::Order;
use super::members::Members;
use super::node::{ExprNode, IsA};
use super::texts::mark;
use crate::algebra::consts::GroundTerm;
use crate::algebra::{BinaryOperator, Called, Expression, Function, UnaryOperator, Var};
use crate::error::QueryError;
use crate::functions::{CustomFunctions, Func, Patterns, TextPattern};
use crate::value::{Arithmetic, Cast, TermError, TermStore, Terms};

/// Why an expression cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
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
            CompileError::Store(error) => Self::Store(error),
            CompileError::Terms(error) => error.into(),
        }
    }
}

/// Compiles an expression of a query with these parameters. `slot` gives a variable's column, None
/// for one that is never bound. Constants are resolved in one dictionary call. An IRI that names no
/// function is an error for each row.
pub(crate) fn compile(
    expression: &Expression,
    slot: &dyn Fn(Var) -> Option<usize>,
    params: &[GroundTerm],
    terms: &mut Terms,
    store: &mut dyn TermStore,
    patterns: &mut Patterns,
    functions: &CustomFunctions,
) -> Result<Expr, CompileError> {
    let mut constants = Vec::new();
    expression.visit(&mut |part| {
        if let Some(term) = part.term(params) {
            collect_constants(term, &mut constants);
        }
    });
    let ids = resolve(&constants, terms, store)?;
    let mut compiler = Compiler { slot, params, ids: ids.into_iter(), terms, patterns, functions };
    let root = compiler.node(expression)?;
    assert!(compiler.ids.next().is_none(), "each constant was collected for the node that takes it");
    Ok(Expr { root: mark(root) })
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

/// Appends the constants of a term in the order in which [`Compiler::term`] meets them.
fn collect_constants<'e>(term: &'e GroundTerm, out: &mut Vec<TermRef<'e>>) {
    match term {
        GroundTerm::Iri(iri) => out.push(TermRef::Iri(iri.as_str())),
        GroundTerm::Literal(literal) => out.push(literal.as_ref().into()),
        GroundTerm::Triple(triple) => collect_parts(triple, out),
    }
}

fn collect_parts<'e>(mut triple: &'e Triple, out: &mut Vec<TermRef<'e>>) {
    loop {
        let NamedOrBlankNode::NamedNode(subject) = &triple.subject else { no_blank_node() };
        out.extend([subject, &triple.predicate].map(|iri| TermRef::Iri(iri.as_str())));
        match &triple.object {
            Term::NamedNode(iri) => return out.push(TermRef::Iri(iri.as_str())),
            Term::Literal(literal) => return out.push(literal.as_ref().into()),
            Term::Triple(inner) => triple = inner,
            Term::BlankNode(_) => no_blank_node(),
        }
    }
}

fn no_blank_node() -> ! {
    unreachable!("a constant has no blank nodes")
}

struct Compiler<'a> {
    slot: &'a dyn Fn(Var) -> Option<usize>,
    params: &'a [GroundTerm],
    ids: std::vec::IntoIter<TermId>,
    terms: &'a mut Terms,
    patterns: &'a mut Patterns,
    functions: &'a CustomFunctions,
}

impl Compiler<'_> {
    fn node(&mut self, e: &Expression) -> Result<ExprNode, CompileError> {
        use Expression as E;
        Ok(match e {
            E::Const(term) => self.term(term),
            E::Param(param) => self.term(&self.params[param.number as usize]),
            E::Var(v) => (self.slot)(*v).map_or(ExprNode::Const(TermId::UNDEF), ExprNode::Slot),
            E::Bound(v) => {
                (self.slot)(*v).map_or(ExprNode::Const(snowmelt_graph::from_boolean(false)), ExprNode::Bound)
            }
            E::Or(list) => ExprNode::Or(self.cheap_first(list)?),
            E::And(list) => ExprNode::And(self.cheap_first(list)?),
            E::Unary(UnaryOperator::Not, a) => ExprNode::Not(self.boxed(a)?),
            E::Unary(UnaryOperator::Plus, a) => ExprNode::Plus(self.boxed(a)?),
            E::Unary(UnaryOperator::Minus, a) => ExprNode::Minus(self.boxed(a)?),
            E::Binary(operator, pair) => self.binary(*operator, pair)?,
            E::In(a, list) => {
                let (a, nodes) = (self.boxed(a)?, self.list(list)?);
                match Members::new(list.iter().map(|e| e.term(self.params)), nodes) {
                    Ok(members) => ExprNode::InSet(a, Box::new(members)),
                    Err(nodes) => ExprNode::In(a, nodes),
                }
            }
            E::Call(function, args) => self.call(*function, args)?,
            E::Custom(iri, args) => self.custom(iri, args)?,
            E::Key(a) => ExprNode::Key(self.boxed(a)?),
        })
    }

    fn constant(&mut self) -> ExprNode {
        ExprNode::Const(self.ids.next().expect("constants were collected in this order"))
    }

    fn term(&mut self, term: &GroundTerm) -> ExprNode {
        match term {
            GroundTerm::Iri(_) | GroundTerm::Literal(_) => self.constant(),
            GroundTerm::Triple(triple) => self.triple(triple),
        }
    }

    /// A triple term, as a call of TRIPLE.
    fn triple(&mut self, triple: &Triple) -> ExprNode {
        let (subject, predicate) = (self.constant(), self.constant());
        let object = match &triple.object {
            Term::Triple(inner) => self.triple(inner),
            _ => self.constant(),
        };
        ExprNode::Triple([subject, predicate, object].map(Box::new))
    }

    fn boxed(&mut self, e: &Expression) -> Result<Box<ExprNode>, CompileError> {
        self.node(e).map(Box::new)
    }

    fn list(&mut self, list: &[Expression]) -> Result<Vec<ExprNode>, CompileError> {
        list.iter().map(|e| self.node(e)).collect()
    }

    /// The parts of a connective. Their order is free (SPARQL's && and || commute, errors
    /// included), so the cheap ones come first and spare the others rows.
    fn cheap_first(&mut self, list: &[Expression]) -> Result<Vec<ExprNode>, CompileError> {
        let mut nodes = self.list(list)?;
        nodes.sort_by_key(|n| !n.is_cheap());
        Ok(nodes)
    }

    fn binary(
        &mut self,
        operator: BinaryOperator,
        [a, b]: &[Expression; 2],
    ) -> Result<ExprNode, CompileError> {
        use BinaryOperator as B;
        let terms = [a, b].map(|e| e.term(self.params));
        let (a, b) = (self.boxed(a)?, self.boxed(b)?);
        Ok(match operator {
            B::Equal => match (Members::one(terms[0], &a), Members::one(terms[1], &b)) {
                // a variable is mostly told by its id
                (Some(one), None) if !matches!(*b, ExprNode::Slot(_)) => ExprNode::InSet(b, Box::new(one)),
                (None, Some(one)) if !matches!(*a, ExprNode::Slot(_)) => ExprNode::InSet(a, Box::new(one)),
                _ => ExprNode::Equal(a, b),
            },
            B::Greater => ExprNode::Compare(Order::Greater, a, b),
            B::GreaterOrEqual => ExprNode::Compare(Order::GreaterOrEqual, a, b),
            B::Less => ExprNode::Compare(Order::Less, a, b),
            B::LessOrEqual => ExprNode::Compare(Order::LessOrEqual, a, b),
            B::Add => ExprNode::Arithmetic(Arithmetic::Add, a, b),
            B::Subtract => ExprNode::Arithmetic(Arithmetic::Subtract, a, b),
            B::Multiply => ExprNode::Arithmetic(Arithmetic::Multiply, a, b),
            B::Divide => ExprNode::Arithmetic(Arithmetic::Divide, a, b),
        })
    }

    /// A call of a function of the program, a cast, or a call of a built-in function; one of no
    /// function gives an error for each row.
    fn custom(&mut self, iri: &NamedNode, args: &[Expression]) -> Result<ExprNode, CompileError> {
        if let Some(function) = self.functions.get(iri.as_str()) {
            return Ok(ExprNode::Custom(function.clone(), self.list(args)?));
        }
        if let (Some(to), [arg]) = (Cast::from_iri(iri.as_str()), args) {
            return Ok(cast_node(to, self.node(arg)?));
        }
        let nodes = self.list(args)?;
        match Func::of_call(Called::Iri(iri), args.len()) {
            Some(func) => self.built_in(func, args, nodes),
            None => Ok(ExprNode::Const(TermId::UNDEF)),
        }
    }

    fn call(&mut self, function: Function, args: &[Expression]) -> Result<ExprNode, CompileError> {
        let nodes = self.list(args)?;
        if function == Function::Coalesce {
            return Ok(ExprNode::Coalesce(nodes));
        }
        if (function != Function::BNode || args.is_empty())
            && let Some(func) = Func::of_call(Called::Keyword(function), args.len())
        {
            return self.built_in(func, args, nodes);
        }
        let mut nodes = nodes.into_iter();
        let mut next = || Box::new(nodes.next().expect("the parser checks the number of arguments"));
        Ok(match function {
            Function::If => ExprNode::If(next(), next(), next()),
            Function::SameTerm => ExprNode::SameTerm(next(), next()),
            Function::Str => ExprNode::Str(next()),
            Function::Lang => ExprNode::Lang(next()),
            Function::Datatype => ExprNode::Datatype(next()),
            Function::LangMatches => ExprNode::LangMatches(next(), next()),
            Function::BNode => ExprNode::NamedBlank(self.terms.new_site(), next()),
            Function::IsIri => ExprNode::IsA(IsA::Iri, next()),
            Function::IsBlank => ExprNode::IsA(IsA::Blank, next()),
            Function::IsLiteral => ExprNode::IsA(IsA::Literal, next()),
            Function::IsNumeric => ExprNode::IsA(IsA::Numeric, next()),
            Function::IsTriple => ExprNode::IsA(IsA::Triple, next()),
            Function::Triple => ExprNode::Triple([next(), next(), next()]),
            Function::Subject => ExprNode::Component(0, next()),
            Function::Predicate => ExprNode::Component(1, next()),
            Function::Object => ExprNode::Component(2, next()),
            other => unreachable!("{other:?} is a built-in function, or a part of the algebra"),
        })
    }

    /// A call of a built-in function; of REGEX and REPLACE with a constant pattern that is compiled
    /// here, `None` where it is malformed.
    fn built_in(
        &mut self,
        func: Func,
        args: &[Expression],
        mut nodes: Vec<ExprNode>,
    ) -> Result<ExprNode, CompileError> {
        if let Func::Regex | Func::Replace = func
            && let Some((pattern, flags)) = constant_pattern(func, args, self.params)
        {
            let pattern: Option<TextPattern> = self.patterns.compile(pattern, flags, self.terms)?;
            nodes.remove(1);
            nodes.truncate(if func == Func::Regex { 1 } else { 2 }); // the flags
            return Ok(ExprNode::Static(func, pattern.map(Box::new), nodes));
        }
        Ok(ExprNode::Call(func, nodes))
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
fn constant_pattern<'e>(
    func: Func,
    args: &'e [Expression],
    params: &'e [GroundTerm],
) -> Option<(&'e str, &'e str)> {
    let text = |e: &'e Expression| match e.term(params) {
        Some(GroundTerm::Literal(l))
            if l.language().is_none() && l.datatype() == oxrdf::vocab::xsd::STRING =>
        {
            Some(l.value())
        }
        _ => None,
    };
    let flags = args.get(if func == Func::Regex { 2 } else { 3 });
    Some((text(&args[1])?, flags.map_or(Some(""), text)?))
}
