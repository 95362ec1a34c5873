//! The next step of a plan, tried on a few rows while a query is planned.

use std::sync::Arc;

use oxsdatatypes::DateTime;
use snowmelt_graph::{Index, Result, Session, TermId, TermKind};

use crate::algebra::consts::GroundTerm;
use crate::algebra::{Called, Expression, Var};
use crate::bounds::{Held, Limits};
use crate::expr::{Expr, compile};
use crate::functions::{CustomFunctions, Func, KeptPatterns, Patterns};
use crate::optimise::Rows;
use crate::value::{Cast, TermBounds, Terms};

/// Bytes of terms that are kept from one expression to the next.
const CACHE_BYTES: usize = 1 << 20;

/// Bytes of the longest term that is read.
const LONGEST: usize = 1 << 20;

/// Long texts that are read for one expression.
const LONG_TEXTS: usize = 128;

/// Work of an expression after which it is no longer tried, in bytes: some milliseconds.
const WORK: usize = 1 << 20;

/// The account that samples are charged to.
const ACCOUNT: &str = "plans";

/// Where samples are taken, and terms and patterns of expressions that are tried on them.
pub(super) struct Trial {
    session: Session,
    terms: Terms,
    patterns: Patterns,
    functions: CustomFunctions,
}

impl Trial {
    pub fn new(of: &Session, patterns: &Arc<KeptPatterns>, limits: &Limits) -> Self {
        let account = of.graph().database().account(ACCOUNT);
        let bounds = TermBounds {
            limits: limits.clone(),
            longest: LONGEST,
            held: Held::default(),
            counted: 0,
            cache: CACHE_BYTES,
            room: 2 * CACHE_BYTES,
        };
        Self {
            session: of.sibling().charged_to(&account),
            terms: Terms::new(Arc::default(), DateTime::MIN, None, 0).guarded(bounds),
            patterns: Patterns::new(Arc::clone(patterns), Held::default()),
            functions: CustomFunctions::default(),
        }
    }

    /// Rows of an index under a prefix, by their places there.
    pub fn rows_at(&mut self, index: Index, prefix: &[TermId], places: &[u64]) -> Result<Vec<Vec<u64>>> {
        self.session.rows_at(index, prefix, places)
    }

    /// Rows of an index under a prefix.
    pub fn count(&mut self, index: Index, prefix: &[TermId]) -> Result<u64> {
        self.session.count(index, prefix, None)
    }

    /// An expression to be tried on these rows; `None` where that cannot be done.
    fn compiled(&mut self, expr: &Expression, (vars, cols): Rows<'_>, params: &[GroundTerm]) -> Option<Expr> {
        if !is_steady(expr) || long_texts(expr, vars, cols) > LONG_TEXTS {
            return None;
        }
        self.terms.allow(WORK);
        let slot = |var: Var| vars.iter().position(|v| *v == var);
        let (terms, session, patterns) = (&mut self.terms, &mut self.session, &mut self.patterns);
        compile(expr, &slot, params, terms, session, patterns, &self.functions).ok()
    }

    /// The rows for which a condition holds; `None` where that cannot be tried.
    pub fn passing(
        &mut self,
        condition: &Expression,
        rows: Rows<'_>,
        params: &[GroundTerm],
    ) -> Option<Vec<u32>> {
        let many = rows.1.first()?.len();
        let compiled = self.compiled(condition, rows, params)?;
        compiled.filter(&mut self.terms, &mut self.session, rows.1, many).ok()
    }

    /// The value of an expression for each row; `None` where that cannot be tried.
    pub fn computed(
        &mut self,
        expr: &Expression,
        rows: Rows<'_>,
        params: &[GroundTerm],
    ) -> Option<Vec<TermId>> {
        let many = rows.1.first()?.len();
        let compiled = self.compiled(expr, rows, params)?;
        compiled.eval_column(&mut self.terms, &mut self.session, rows.1, many).ok()
    }
}

/// Whether an expression gives the same whenever it is asked, and without a program's functions.
fn is_steady(expr: &Expression) -> bool {
    let mut is_steady = true;
    expr.visit(&mut |part| {
        is_steady &= match part {
            Expression::Call(function, args) => {
                Func::of_call(Called::Keyword(*function), args.len()).is_none_or(|func| !func.is_of_query())
            }
            Expression::Custom(iri, args) => {
                let is_cast = args.len() == 1 && Cast::from_iri(iri.as_str()).is_some();
                let func = Func::of_call(Called::Iri(iri), args.len());
                is_cast || func.is_some_and(|func| !func.is_of_query())
            }
            _ => true,
        };
    });
    is_steady
}

/// Long texts among the values whose texts an expression reads.
fn long_texts(expr: &Expression, vars: &[Var], cols: &[Vec<TermId>]) -> usize {
    let read = expr.text_vars();
    let of_vars = vars.iter().zip(cols).filter(|(var, _)| read.contains(**var));
    of_vars.map(|(_, col)| col.iter().filter(|id| id.kind() == TermKind::Text).count()).sum()
}
