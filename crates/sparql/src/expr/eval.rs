//! Evaluation of a node over a batch: kernels first, values for the rows they leave.

mod apply;
mod literal;
mod logic;
mod members;
mod texts;
mod triple;

use snowmelt_graph::{FIRST_REGISTERED, TermId, TermKind, from_boolean, from_integer};

use super::column::Col;
use super::kernel::{self, FALSE, Order, Slow, TRUE};
use super::node::{ExprNode, IsA};
use crate::functions::{self, Func};
use crate::value::{self, Arithmetic, Cast, TermError, TermStore, Terms, Value};
use apply::{own, rows_of};

/// The batch under evaluation and what it needs.
pub(crate) struct Eval<'a, 'b> {
    pub terms: &'a mut Terms,
    pub store: &'a mut dyn TermStore,
    pub cols: &'b [Vec<TermId>],
    pub rows: usize,
}

type Result<T> = std::result::Result<T, TermError>;

impl ExprNode {
    /// The column of this node for the selected rows (None: all), one id per selected row.
    pub fn eval<'b>(&self, ev: &mut Eval<'_, 'b>, selected: Option<&[u32]>) -> Result<Col<'b>> {
        let rows = selected.map_or(ev.rows, <[u32]>::len);
        Ok(match self {
            ExprNode::Const(id) => Col::One(*id),
            ExprNode::Slot(slot) => ev.slot(*slot, selected),
            ExprNode::Bound(slot) => ev.is_bound(*slot, selected, rows)?,
            ExprNode::And(parts) => ev.connective(parts, selected, FALSE, kernel::and)?,
            ExprNode::Or(parts) => ev.connective(parts, selected, TRUE, kernel::or)?,
            ExprNode::Not(a) => {
                let truth = a.truth(ev, selected)?;
                ev.map(&truth, rows, |id| Ok(kernel::not(id)), |_, _| None)?
            }
            ExprNode::Equal(a, b) => ev.of_two(a, b, selected, Eval::equal)?,
            ExprNode::SameTerm(a, b) => ev.of_two(a, b, selected, Eval::same_term)?,
            ExprNode::Compare(op, a, b) => {
                ev.of_two(a, b, selected, |ev, a, b, rows| ev.compare(*op, a, b, rows))?
            }
            ExprNode::In(a, list) => ev.is_in(a, list, selected)?,
            ExprNode::InSet(a, members) => ev.is_member(a, members, selected)?,
            ExprNode::Arithmetic(op, a, b) => {
                ev.of_two(a, b, selected, |ev, a, b, rows| ev.arithmetic(*op, a, b, rows))?
            }
            ExprNode::Plus(a) => ev.of_one(a, selected, |ev, a, rows| {
                ev.map_values(a, rows, |v| v.is_numeric().then(|| v.clone().into_owned()))
            })?,
            ExprNode::Minus(a) => {
                ev.of_one(a, selected, |ev, a, rows| ev.map_values(a, rows, value::negate))?
            }
            ExprNode::If(condition, yes, no) => ev.choose(condition, yes, no, selected)?,
            ExprNode::Coalesce(list) => ev.coalesce(list, selected)?,
            ExprNode::IsA(what, a) => ev.of_one(a, selected, |ev, a, rows| ev.is_a(*what, a, rows))?,
            ExprNode::Str(a) => ev.of_one(a, selected, |ev, a, rows| ev.text(a, rows, false))?,
            ExprNode::Lang(a) => ev.of_one(a, selected, Eval::lang)?,
            ExprNode::Triple([s, p, o]) => {
                let parts = [s.eval(ev, selected)?, p.eval(ev, selected)?, o.eval(ev, selected)?];
                ev.triple(&parts, rows)?
            }
            ExprNode::Component(part, a) => {
                ev.of_one(a, selected, |ev, a, rows| ev.component(*part, a, rows))?
            }
            ExprNode::Datatype(a) => ev.of_one(a, selected, Eval::datatype)?,
            ExprNode::LangMatches(a, b) => ev.of_two(a, b, selected, Eval::lang_matches)?,
            ExprNode::Cast(Cast::String, a) => {
                ev.of_one(a, selected, |ev, a, rows| ev.text(a, rows, true))?
            }
            ExprNode::Cast(to, a) => ev.of_one(a, selected, |ev, a, rows| ev.cast(*to, a, rows))?,
            ExprNode::CastText(to, a) => ev.of_one(a, selected, |ev, a, rows| ev.cast_text(*to, a, rows))?,
            ExprNode::Static(_, pattern, args) => {
                let args = ev.args(args, selected)?;
                ev.call(&args, rows, |terms, values| match pattern {
                    Some(pattern) => functions::call_pattern(pattern, values, terms),
                    None => None,
                })?
            }
            ExprNode::Texts(part) => ev.of_texts(part, selected)?,
            ExprNode::Key(a) => ev.of_one(a, selected, Eval::join_key)?,
            ExprNode::NamedBlank(site, a) => {
                ev.of_one(a, selected, |ev, a, rows| ev.named_blank(*site, a, rows, selected))?
            }
            ExprNode::Custom(function, args) => {
                let args = ev.args(args, selected)?;
                ev.call_custom(function, &args, rows)?
            }
            ExprNode::Call(func, args) => {
                let args = ev.args(args, selected)?;
                ev.call_built_in(*func, &args, rows)?
            }
        })
    }

    /// The node's column as truth values.
    pub fn truth<'b>(&self, ev: &mut Eval<'_, 'b>, selected: Option<&[u32]>) -> Result<Col<'b>> {
        let col = self.eval(ev, selected)?;
        if self.is_boolean() {
            return Ok(col);
        }
        let rows = selected.map_or(ev.rows, <[u32]>::len);
        ev.map(&col, rows, kernel::truth, |terms, id| {
            value::effective_boolean(&terms.value(id)?).map(from_boolean)
        })
    }
}

impl<'b> Eval<'_, 'b> {
    fn slot(&self, slot: usize, selected: Option<&[u32]>) -> Col<'b> {
        match (self.cols.get(slot).map(Vec::as_slice), selected) {
            (None | Some([]), _) => Col::One(TermId::UNDEF),
            // frequent where the variable was bound before a join
            (Some(ids), _) if is_one(&ids[..self.rows]) => Col::One(ids[0]),
            (Some(ids), None) => Col::Ref(&ids[..self.rows]),
            (Some(ids), Some(rows)) => Col::Own(rows.iter().map(|row| ids[*row as usize]).collect()),
        }
    }

    fn is_bound(&mut self, slot: usize, selected: Option<&[u32]>, rows: usize) -> Result<Col<'b>> {
        let col = self.slot(slot, selected);
        self.map(&col, rows, |id| Ok(from_boolean(!id.is_undef())), |_, _| None)
    }

    fn call_built_in(&mut self, func: Func, args: &[Col<'_>], rows: usize) -> Result<Col<'b>> {
        let f = |terms: &Terms, values: &[Value<'_>]| functions::call(func, values, terms);
        // Some give another result for every row.
        if func.is_volatile() {
            return Ok(Col::Own(self.call_rows(args, rows, f)?));
        }
        self.call(args, rows, f)
    }

    /// A function of one argument, once that is evaluated; the function gets its column and the
    /// number of rows.
    fn of_one(
        &mut self,
        a: &ExprNode,
        selected: Option<&[u32]>,
        f: impl FnOnce(&mut Self, &Col<'b>, usize) -> Result<Col<'b>>,
    ) -> Result<Col<'b>> {
        let a = a.eval(self, selected)?;
        f(self, &a, selected.map_or(self.rows, <[u32]>::len))
    }

    /// A function of two arguments, likewise.
    fn of_two(
        &mut self,
        a: &ExprNode,
        b: &ExprNode,
        selected: Option<&[u32]>,
        f: impl FnOnce(&mut Self, &Col<'b>, &Col<'b>, usize) -> Result<Col<'b>>,
    ) -> Result<Col<'b>> {
        let (a, b) = (a.eval(self, selected)?, b.eval(self, selected)?);
        f(self, &a, &b, selected.map_or(self.rows, <[u32]>::len))
    }

    fn args(&mut self, args: &[ExprNode], selected: Option<&[u32]>) -> Result<Vec<Col<'b>>> {
        args.iter().map(|a| a.eval(self, selected)).collect()
    }

    fn equal(&mut self, a: &Col<'_>, b: &Col<'_>, rows: usize) -> Result<Col<'b>> {
        self.zip(a, b, rows, kernel::equal, |terms, a, b| {
            value::equals(&terms.value(a)?, &terms.value(b)?).map(from_boolean)
        })
    }

    fn same_term(&mut self, a: &Col<'_>, b: &Col<'_>, rows: usize) -> Result<Col<'b>> {
        self.zip(a, b, rows, kernel::same_term, |terms, a, b| {
            terms.with_term(a, |a| terms.with_term(b, |b| from_boolean(a == b))).flatten()
        })
    }

    /// Keys of a join; an error for values that have none.
    fn join_key(&mut self, a: &Col<'_>, rows: usize) -> Result<Col<'b>> {
        let has_key = |id: TermId| if id.is_undef() { Ok(id) } else { Err(Slow) };
        self.map(a, rows, has_key, |terms, id| from_integer(value::join_key(&terms.value(id)?)?))
    }

    fn is_a(&mut self, what: IsA, a: &Col<'_>, rows: usize) -> Result<Col<'b>> {
        self.map(
            a,
            rows,
            |id| is_a_by_kind(what, id),
            |terms, id| terms.value(id).map(|value| from_boolean(what.holds(&value))),
        )
    }

    fn cast(&mut self, to: Cast, a: &Col<'_>, rows: usize) -> Result<Col<'b>> {
        self.map_values_fast(a, rows, |id| super::fused::cast(to, id), |v| value::cast(to, v))
    }

    fn compare(&mut self, op: Order, a: &Col<'_>, b: &Col<'_>, rows: usize) -> Result<Col<'b>> {
        let rows = rows_of(&[a, b], rows);
        let mut slow = Vec::new();
        let mut out = kernel::compare(op, a, b, rows, &mut slow);
        self.slow(&slow, &[a, b], &mut out, |terms, row| {
            let values = terms.value(a.get(row)).zip(terms.value(b.get(row)));
            let holds = values.and_then(|(a, b)| value::holds(&a, &b, |order| op.holds(order)));
            holds.map_or(TermId::UNDEF, from_boolean)
        })?;
        Ok(own(out, &[a, b]))
    }

    fn arithmetic(&mut self, op: Arithmetic, a: &Col<'_>, b: &Col<'_>, rows: usize) -> Result<Col<'b>> {
        let rows = rows_of(&[a, b], rows);
        let (mut out, mut slow) = (Vec::with_capacity(rows), Vec::new());
        kernel::zip(a, b, rows, |row, a, b| {
            out.push(kernel::arithmetic(op, a, b).unwrap_or_else(|Slow| {
                slow.push(row as u32);
                TermId::UNDEF
            }));
        });
        self.slow(&slow, &[a, b], &mut out, |terms, row| {
            let values = terms.value(a.get(row)).zip(terms.value(b.get(row)));
            let result = values.and_then(|(a, b)| value::arithmetic(op, &a, &b));
            result.map_or(TermId::UNDEF, |v| terms.push(&v))
        })?;
        Ok(own(out, &[a, b]))
    }
}

/// Whether a column has one id in all of its rows: then what follows from it is computed once.
fn is_one(ids: &[TermId]) -> bool {
    ids.len() > 1 && ids.first() == ids.last() && ids.iter().all(|id| *id == ids[0])
}

/// Rows of the batch behind rows of a selection.
pub(super) fn picked(selected: Option<&[u32]>, rows: &[u32]) -> Vec<u32> {
    match selected {
        None => rows.to_vec(),
        Some(selected) => rows.iter().map(|row| selected[*row as usize]).collect(),
    }
}

fn is_a_by_kind(what: IsA, id: TermId) -> std::result::Result<TermId, Slow> {
    let kind = id.kind();
    if id.is_undef() {
        return Ok(id);
    }
    if kind == TermKind::Local {
        return Err(Slow);
    }
    Ok(from_boolean(match what {
        IsA::Iri => kind == TermKind::Iri,
        IsA::Blank => kind == TermKind::Blank,
        IsA::Literal => kind.is_literal(),
        IsA::Triple => kind == TermKind::Triple,
        IsA::Numeric => match kind {
            TermKind::Integer | TermKind::Double | TermKind::Float => true,
            TermKind::Decimal => id.decimal_code() < FIRST_REGISTERED,
            TermKind::Value | TermKind::Text => return Err(Slow),
            _ => false,
        },
    }))
}
