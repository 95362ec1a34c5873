//! Evaluation of a node over a batch: kernels first, values for the rows they leave.

use super::kernel::{self, FALSE, Slow, TRUE};
use super::node::{IsA, Node, Order};
use crate::functions::{self, Func};
use crate::value::{self, Arithmetic, Cast, TermError, TermStore, Terms, Value};
use rustc_hash::FxBuildHasher;
use snowmelt_graph::{FIRST_REGISTERED, Kind, TermId, TermRef, from_boolean};
use std::hash::BuildHasher;

/// A column of ids: one for all rows, borrowed from the batch, or computed.
pub(crate) enum Col<'b> {
    One(TermId),
    Ref(&'b [TermId]),
    Own(Vec<TermId>),
}

impl Col<'_> {
    /// The column's ids, or the one id it has in every row.
    pub fn slice(&self) -> std::result::Result<&[TermId], TermId> {
        match self {
            Col::One(id) => Err(*id),
            Col::Ref(ids) => Ok(ids),
            Col::Own(ids) => Ok(ids),
        }
    }

    pub fn get(&self, row: usize) -> TermId {
        match self {
            Col::One(id) => *id,
            Col::Ref(ids) => ids[row],
            Col::Own(ids) => ids[row],
        }
    }

    /// The ids to read before the rows' values can be had.
    pub(super) fn ids(&self) -> &[TermId] {
        match self {
            Col::One(id) => std::slice::from_ref(id),
            Col::Ref(ids) => ids,
            Col::Own(ids) => ids,
        }
    }
}

/// The batch under evaluation and what it needs.
pub(crate) struct Eval<'a, 'b> {
    pub terms: &'a mut Terms,
    pub store: &'a mut dyn TermStore,
    pub cols: &'b [Vec<TermId>],
    pub rows: usize,
}

/// Column of a function of columns: rows are one if all columns are.
fn rows_of(cols: &[&Col<'_>], rows: usize) -> usize {
    if cols.iter().all(|c| matches!(c, Col::One(_))) { 1 } else { rows }
}

/// A computed column; one row stands for all of them when all arguments were constant.
fn own<'b>(out: Vec<TermId>, cols: &[&Col<'_>]) -> Col<'b> {
    if cols.iter().all(|c| matches!(c, Col::One(_))) { Col::One(out[0]) } else { Col::Own(out) }
}

type Result<T> = std::result::Result<T, TermError>;

impl Node {
    /// The column of this node for the selected rows (None: all), one id per selected row.
    pub fn eval<'b>(&self, ev: &mut Eval<'_, 'b>, selected: Option<&[u32]>) -> Result<Col<'b>> {
        let rows = selected.map_or(ev.rows, <[u32]>::len);
        Ok(match self {
            Node::Const(id) => Col::One(*id),
            Node::Slot(slot) => ev.slot(*slot, selected),
            Node::Bound(slot) => {
                let col = ev.slot(*slot, selected);
                ev.map(&col, rows, |id| Ok(from_boolean(!id.is_undef())), |_, _| None)?
            }
            Node::And(parts) => ev.connective(parts, selected, FALSE, kernel::and)?,
            Node::Or(parts) => ev.connective(parts, selected, TRUE, kernel::or)?,
            Node::Not(a) => {
                let truth = a.truth(ev, selected)?;
                ev.map(&truth, rows, |id| Ok(kernel::not(id)), |_, _| None)?
            }
            Node::Equal(a, b) => {
                let (a, b) = (a.eval(ev, selected)?, b.eval(ev, selected)?);
                ev.equal(&a, &b, rows)?
            }
            Node::SameTerm(a, b) => {
                let (a, b) = (a.eval(ev, selected)?, b.eval(ev, selected)?);
                ev.zip(&a, &b, rows, kernel::same_term, |terms, a, b| {
                    terms.with_term(a, |a| terms.with_term(b, |b| from_boolean(a == b))).flatten()
                })?
            }
            Node::Compare(op, a, b) => {
                let (a, b) = (a.eval(ev, selected)?, b.eval(ev, selected)?);
                ev.compare(*op, &a, &b, rows)?
            }
            Node::In(a, list) => ev.is_in(a, list, selected)?,
            Node::InSet(a, members) => ev.is_member(a, members, selected)?,
            Node::Arithmetic(op, a, b) => {
                let (a, b) = (a.eval(ev, selected)?, b.eval(ev, selected)?);
                ev.arithmetic(*op, &a, &b, rows)?
            }
            Node::Plus(a) => {
                let a = a.eval(ev, selected)?;
                ev.map_values(&a, rows, |v| v.is_numeric().then(|| v.clone().into_owned()))?
            }
            Node::Minus(a) => {
                let a = a.eval(ev, selected)?;
                ev.map_values(&a, rows, value::negate)?
            }
            Node::If(condition, yes, no) => ev.choose(condition, yes, no, selected)?,
            Node::Coalesce(list) => ev.coalesce(list, selected)?,
            Node::IsA(what, a) => {
                let a = a.eval(ev, selected)?;
                let what = *what;
                ev.map(&a, rows, |id| is_a_by_kind(what, id), |terms, id| is_a(what, &terms.value(id)?))?
            }
            Node::Str(a) => {
                let a = a.eval(ev, selected)?;
                ev.text(&a, rows, false)?
            }
            Node::Lang(a) => {
                let a = a.eval(ev, selected)?;
                ev.lang(&a, rows)?
            }
            Node::Datatype(a) => {
                let a = a.eval(ev, selected)?;
                ev.datatype(&a, rows)?
            }
            Node::LangMatches(a, b) => {
                let (a, b) = (a.eval(ev, selected)?, b.eval(ev, selected)?);
                ev.lang_matches(&a, &b, rows)?
            }
            Node::Cast(Cast::String, a) => {
                let a = a.eval(ev, selected)?;
                ev.text(&a, rows, true)?
            }
            Node::Cast(to, a) => {
                let a = a.eval(ev, selected)?;
                let to = *to;
                ev.map_values_fast(&a, rows, |id| super::fused::cast(to, id), |v| value::cast(to, v))?
            }
            Node::CastText(to, a) => {
                let a = a.eval(ev, selected)?;
                ev.cast_text(*to, &a, rows)?
            }
            Node::Static(func, pattern, args) => {
                let args = ev.args(args, selected)?;
                ev.call(*func, &args, rows, |terms, values| match pattern {
                    Some(pattern) => functions::call_pattern(pattern, values, terms),
                    None => None,
                })?
            }
            Node::NamedBlank(site, a) => {
                let a = a.eval(ev, selected)?;
                ev.named_blank(*site, &a, rows, selected)?
            }
            Node::Call(func, args) => {
                let args = ev.args(args, selected)?;
                let func = *func;
                // Some give another result for every row.
                if func.is_volatile() {
                    let out =
                        ev.call_rows(&args, rows, |terms, values| functions::call(func, values, terms))?;
                    return Ok(Col::Own(out));
                }
                ev.call(func, &args, rows, move |terms, values| functions::call(func, values, terms))?
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
            (Some(ids), None) => Col::Ref(&ids[..self.rows]),
            (Some(ids), Some(rows)) => Col::Own(rows.iter().map(|row| ids[*row as usize]).collect()),
        }
    }

    fn args(&mut self, args: &[Node], selected: Option<&[u32]>) -> Result<Vec<Col<'b>>> {
        args.iter().map(|a| a.eval(self, selected)).collect()
    }

    /// Fills the rows a kernel left open: reads their ids at once, then asks the values.
    fn slow(
        &mut self,
        slow: &[u32],
        cols: &[&Col<'_>],
        out: &mut [TermId],
        mut f: impl FnMut(&mut Terms, usize) -> TermId,
    ) -> Result<()> {
        if slow.is_empty() {
            return Ok(());
        }
        for col in cols {
            match col {
                Col::One(id) => self.terms.prefetch(self.store, [*id])?,
                col => self.terms.prefetch(self.store, slow.iter().map(|row| col.get(*row as usize)))?,
            }
        }
        for row in slow {
            out[*row as usize] = f(self.terms, *row as usize);
            let bytes: usize = cols.iter().map(|col| self.terms.text_bytes(col.get(*row as usize))).sum();
            if self.terms.poll(bytes).is_none() {
                return self.terms.fault();
            }
        }
        Ok(())
    }

    /// A function of one column to ids that exist already: `fast` on the id, `value` for what it leaves.
    fn map(
        &mut self,
        a: &Col<'_>,
        rows: usize,
        fast: impl Fn(TermId) -> std::result::Result<TermId, Slow>,
        value: impl Fn(&Terms, TermId) -> Option<TermId>,
    ) -> Result<Col<'b>> {
        let rows = rows_of(&[a], rows);
        let (mut out, mut slow) = (Vec::with_capacity(rows), Vec::new());
        let mut push = |id| {
            out.push(fast(id).unwrap_or_else(|Slow| {
                slow.push(out.len() as u32);
                TermId::UNDEF
            }));
        };
        match a.slice() {
            Ok(ids) => ids.iter().for_each(|id| push(*id)),
            Err(id) => push(id),
        }
        self.slow(&slow, &[a], &mut out, |terms, row| value(terms, a.get(row)).unwrap_or_default())?;
        Ok(own(out, &[a]))
    }

    /// A function of one column's values.
    fn map_values(
        &mut self,
        a: &Col<'_>,
        rows: usize,
        value: impl Fn(&Value<'_>) -> Option<Value<'static>>,
    ) -> Result<Col<'b>> {
        self.map_values_fast(a, rows, |_| Err(Slow), value)
    }

    fn map_values_fast(
        &mut self,
        a: &Col<'_>,
        rows: usize,
        fast: impl Fn(TermId) -> std::result::Result<TermId, Slow>,
        value: impl Fn(&Value<'_>) -> Option<Value<'static>>,
    ) -> Result<Col<'b>> {
        let rows = rows_of(&[a], rows);
        let (mut out, mut slow) = (vec![TermId::UNDEF; rows], Vec::new());
        for (row, out) in out.iter_mut().enumerate() {
            let id = a.get(row);
            match fast(id) {
                Ok(id) => *out = id,
                Err(Slow) if id.is_undef() => {}
                Err(Slow) => slow.push(row as u32),
            }
        }
        self.slow(&slow, &[a], &mut out, |terms, row| {
            let result = terms.value(a.get(row)).and_then(|v| value(&v));
            result.map_or(TermId::UNDEF, |v| terms.push(&v))
        })?;
        Ok(own(out, &[a]))
    }

    /// A function of two columns to ids that exist already.
    fn zip(
        &mut self,
        a: &Col<'_>,
        b: &Col<'_>,
        rows: usize,
        fast: impl Fn(TermId, TermId) -> std::result::Result<TermId, Slow>,
        value: impl Fn(&Terms, TermId, TermId) -> Option<TermId>,
    ) -> Result<Col<'b>> {
        let rows = rows_of(&[a, b], rows);
        let (mut out, mut slow) = (Vec::with_capacity(rows), Vec::new());
        kernel::zip(a, b, rows, |row, a, b| {
            out.push(fast(a, b).unwrap_or_else(|Slow| {
                slow.push(row as u32);
                TermId::UNDEF
            }));
        });
        self.slow(&slow, &[a, b], &mut out, |terms, row| {
            value(terms, a.get(row), b.get(row)).unwrap_or_default()
        })?;
        Ok(own(out, &[a, b]))
    }

    fn equal(&mut self, a: &Col<'_>, b: &Col<'_>, rows: usize) -> Result<Col<'b>> {
        self.zip(a, b, rows, kernel::equal, |terms, a, b| {
            value::equals(&terms.value(a)?, &terms.value(b)?).map(from_boolean)
        })
    }

    fn compare(&mut self, op: Order, a: &Col<'_>, b: &Col<'_>, rows: usize) -> Result<Col<'b>> {
        let rows = rows_of(&[a, b], rows);
        let mut slow = Vec::new();
        let mut out = kernel::compare(op, a, b, rows, &mut slow);
        self.slow(&slow, &[a, b], &mut out, |terms, row| {
            let order = terms
                .value(a.get(row))
                .zip(terms.value(b.get(row)))
                .and_then(|(a, b)| value::compare(&a, &b));
            order.map_or(TermId::UNDEF, |order| from_boolean(op.holds(order)))
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

    /// `&&` and `||`: `decided` is the truth value that ends the matter for a row; later parts see only the other rows,
    /// unless they are so cheap that sorting rows out costs more.
    fn connective(
        &mut self,
        parts: &[Node],
        selected: Option<&[u32]>,
        decided: TermId,
        combine: fn(TermId, TermId) -> TermId,
    ) -> Result<Col<'b>> {
        let rows = selected.map_or(self.rows, <[u32]>::len);
        let mut all = parts[0].truth(self, selected)?;
        for part in &parts[1..] {
            if part.is_cheap() {
                let next = part.truth(self, selected)?;
                all = self.zip(&all, &next, rows, |a, b| Ok(combine(a, b)), |_, _, _| None)?;
                continue;
            }
            let open: Vec<u32> = (0..rows as u32).filter(|row| all.get(*row as usize) != decided).collect();
            if open.is_empty() {
                break;
            }
            let next = part.truth(self, Some(&picked(selected, &open)))?;
            let mut out: Vec<TermId> = (0..rows).map(|row| all.get(row)).collect();
            for (i, row) in open.iter().enumerate() {
                let place = &mut out[*row as usize];
                *place = combine(*place, next.get(i));
            }
            all = Col::Own(out);
        }
        Ok(all)
    }

    /// IN: true if equal to one, else an error if one comparison erred, else false.
    fn is_in(&mut self, a: &Node, list: &[Node], selected: Option<&[u32]>) -> Result<Col<'b>> {
        let a = a.eval(self, selected)?;
        self.any_equal(&a, list, selected)
    }

    /// Whether a column's rows equal one of the list.
    pub(super) fn any_equal(
        &mut self,
        a: &Col<'_>,
        list: &[Node],
        selected: Option<&[u32]>,
    ) -> Result<Col<'b>> {
        let rows = selected.map_or(self.rows, <[u32]>::len);
        let mut any = Col::One(FALSE);
        for item in list {
            self.terms.check()?;
            let item = item.eval(self, selected)?;
            let equal = self.equal(a, &item, rows)?;
            any = self.zip(&any, &equal, rows, |a, b| Ok(kernel::or(a, b)), |_, _, _| None)?;
        }
        Ok(any)
    }

    fn choose(
        &mut self,
        condition: &Node,
        yes: &Node,
        no: &Node,
        selected: Option<&[u32]>,
    ) -> Result<Col<'b>> {
        let rows = selected.map_or(self.rows, <[u32]>::len);
        let condition = condition.truth(self, selected)?;
        let mut out = vec![TermId::UNDEF; rows];
        for (truth, branch) in [(TRUE, yes), (FALSE, no)] {
            let taken: Vec<u32> =
                (0..rows as u32).filter(|row| condition.get(*row as usize) == truth).collect();
            if taken.is_empty() {
                continue;
            }
            let col = branch.eval(self, Some(&picked(selected, &taken)))?;
            taken.iter().enumerate().for_each(|(i, row)| out[*row as usize] = col.get(i));
        }
        Ok(Col::Own(out))
    }

    fn coalesce(&mut self, list: &[Node], selected: Option<&[u32]>) -> Result<Col<'b>> {
        let rows = selected.map_or(self.rows, <[u32]>::len);
        let mut out = vec![TermId::UNDEF; rows];
        let mut open: Vec<u32> = (0..rows as u32).collect();
        for e in list {
            if open.is_empty() {
                break;
            }
            let col = e.eval(self, Some(&picked(selected, &open)))?;
            open.iter().enumerate().for_each(|(i, row)| out[*row as usize] = col.get(i));
            open.retain(|row| out[*row as usize].is_undef());
        }
        Ok(Col::Own(out))
    }

    /// STR, or the cast to xsd:string.
    fn text(&mut self, a: &Col<'_>, rows: usize, cast: bool) -> Result<Col<'b>> {
        let rows = rows_of(&[a], rows);
        let (mut out, mut slow) = (vec![TermId::UNDEF; rows], Vec::new());
        for (row, out) in out.iter_mut().enumerate() {
            let id = a.get(row);
            match id.kind() {
                Kind::Special | Kind::Blank => {}
                Kind::String | Kind::ShortString => *out = id,
                _ => slow.push(row as u32),
            }
        }
        self.slow(&slow, &[a], &mut out, |terms, row| {
            // A cast gives the canonical form of a value, STR the form as written.
            let id = a.get(row);
            if cast && !matches!(id.kind(), Kind::Iri | Kind::Literal | Kind::Text) {
                let text = terms.value(id).and_then(|v| value::cast(Cast::String, &v));
                return text.map_or(TermId::UNDEF, |v| terms.push(&v));
            }
            let text = terms.with_term(id, |term| match term {
                TermRef::Iri(iri) => Some(iri.to_owned()),
                TermRef::Blank(_) => None,
                TermRef::Literal { lexical, .. } => Some(lexical.to_owned()),
            });
            text.flatten().map_or(TermId::UNDEF, |text| terms.push_term(TermRef::string(&text)))
        })?;
        Ok(own(out, &[a]))
    }

    /// A cast to a number of the text of a term.
    fn cast_text(&mut self, to: Cast, a: &Col<'_>, rows: usize) -> Result<Col<'b>> {
        let rows = rows_of(&[a], rows);
        let (mut out, mut slow) = (vec![TermId::UNDEF; rows], Vec::new());
        for (row, out) in out.iter_mut().enumerate() {
            let id = a.get(row);
            match super::fused::cast_text(to, id) {
                Ok(super::fused::Number::Id(id)) => *out = id,
                Ok(super::fused::Number::Double(v)) => *out = self.terms.push(&Value::Double(v.into())),
                Err(Slow) if matches!(id.kind(), Kind::Special | Kind::Blank) => {}
                Err(Slow) => slow.push(row as u32),
            }
        }
        self.slow(&slow, &[a], &mut out, |terms, row| {
            let result = terms.with_term(a.get(row), |term| match term {
                TermRef::Iri(text) | TermRef::Literal { lexical: text, .. } => {
                    value::cast(to, &Value::String(text.into()))
                }
                TermRef::Blank(_) => None,
            });
            result.flatten().map_or(TermId::UNDEF, |v| terms.push(&v))
        })?;
        Ok(own(out, &[a]))
    }

    /// LANG: mostly the id's annotation code, or the empty string.
    fn lang(&mut self, a: &Col<'_>, rows: usize) -> Result<Col<'b>> {
        let rows = rows_of(&[a], rows);
        let empty = TermId::inline(&TermRef::string("")).expect("the empty string is inline");
        let (mut out, mut slow) = (vec![TermId::UNDEF; rows], Vec::new());
        let mut last = (TermId::UNDEF, TermId::UNDEF);
        for (row, out) in out.iter_mut().enumerate() {
            let id = a.get(row);
            match id.kind() {
                Kind::Special | Kind::Iri | Kind::Blank => {}
                Kind::String | Kind::Value => *out = empty,
                kind if kind.is_inline() => *out = empty,
                kind if kind.has_code() && (last.0.kind(), last.0.code()) == (kind, id.code()) => {
                    *out = last.1
                }
                kind if kind.has_code() => {
                    if let Some(lang) = self.store.lang_of(id) {
                        *out = self.terms.push_term(TermRef::string(lang));
                    } else if self.store.datatype_of(id).is_some() {
                        *out = empty;
                    } else {
                        slow.push(row as u32);
                        continue;
                    }
                    last = (id, *out);
                }
                _ => slow.push(row as u32),
            }
        }
        self.slow(&slow, &[a], &mut out, |terms, row| {
            let lang = terms.with_term(a.get(row), |term| match term {
                TermRef::Literal { lang, .. } => Some(lang.unwrap_or("").to_owned()),
                _ => None,
            });
            lang.flatten().map_or(TermId::UNDEF, |lang| terms.push_term(TermRef::string(&lang)))
        })?;
        Ok(own(out, &[a]))
    }

    /// DATATYPE: an IRI's stored id where there is one, looked up once per datatype.
    fn datatype(&mut self, a: &Col<'_>, rows: usize) -> Result<Col<'b>> {
        let rows = rows_of(&[a], rows);
        let mut out = vec![TermId::UNDEF; rows];
        let unclear: Vec<TermId> =
            a.ids().iter().copied().filter(|id| datatype_needs_text(self.store, *id)).collect();
        self.terms.prefetch(self.store, unclear)?;
        for (row, out) in out.iter_mut().enumerate() {
            let id = a.get(row);
            if matches!(id.kind(), Kind::Special | Kind::Iri | Kind::Blank) {
                continue;
            }
            *out = if datatype_needs_text(self.store, id) {
                let iri = self.terms.with_term(id, |term| match term {
                    TermRef::Literal { datatype, .. } => Some(datatype.to_owned()),
                    _ => None,
                });
                match iri.flatten() {
                    Some(iri) => self.terms.iri(self.store, &iri)?,
                    None => TermId::UNDEF,
                }
            } else if id.kind() == Kind::String {
                self.terms.iri(self.store, value::iri::STRING)?
            } else if let Some(iri) = id.fixed_datatype() {
                self.terms.iri(self.store, iri)?
            } else {
                let iri = self.store.datatype_of(id).expect("checked by datatype_needs_text").to_owned();
                self.terms.iri(self.store, &iri)?
            };
        }
        Ok(own(out, &[a]))
    }

    /// LANGMATCHES: few distinct pairs, so the answers are remembered.
    fn lang_matches(&mut self, a: &Col<'_>, b: &Col<'_>, rows: usize) -> Result<Col<'b>> {
        self.terms.prefetch(self.store, a.ids().iter().chain(b.ids()).copied())?;
        let mut seen: Vec<(TermId, TermId, TermId)> = Vec::new();
        let terms = &*self.terms;
        let rows = rows_of(&[a, b], rows);
        let mut out = Vec::with_capacity(rows);
        kernel::zip(a, b, rows, |_, a, b| {
            if let Some(known) = seen.iter().find(|known| (known.0, known.1) == (a, b)) {
                return out.push(known.2);
            }
            let answer = match (terms.value(a), terms.value(b)) {
                (Some(Value::String(tag)), Some(Value::String(range))) => {
                    from_boolean(functions::lang_matches(&tag, &range))
                }
                _ => TermId::UNDEF,
            };
            if seen.len() < 16 {
                seen.push((a, b, answer));
            }
            out.push(answer);
        });
        Ok(own(out, &[a, b]))
    }

    /// BNODE(string): the same blank node for the same string in one solution, another one in every other solution.
    ///
    /// A solution is told by what it binds, computed terms apart (they may be the nodes of an earlier call), and by how often this
    /// expression has met the same bindings: solutions come to all expressions of a query in one order.
    fn named_blank(
        &mut self,
        site: u32,
        a: &Col<'_>,
        rows: usize,
        selected: Option<&[u32]>,
    ) -> Result<Col<'b>> {
        self.terms.prefetch(self.store, a.ids().iter().copied())?;
        let mut out = Vec::with_capacity(rows);
        for i in 0..rows {
            let row = selected.map_or(i, |rows| rows[i] as usize);
            let bound = self.cols.iter().filter_map(|col| col.get(row)).filter(|id| id.kind() != Kind::Local);
            let solution = bound.fold(0_u64, |sum, id| sum.wrapping_add(FxBuildHasher.hash_one(id)));
            out.push(self.terms.named_blank(site, solution, a.get(i)));
            if self.terms.poll(0).is_none() {
                self.terms.fault()?;
            }
        }
        Ok(Col::Own(out))
    }

    fn call(
        &mut self,
        _func: Func,
        args: &[Col<'_>],
        rows: usize,
        f: impl FnMut(&Terms, &[Value<'_>]) -> Option<Value<'static>>,
    ) -> Result<Col<'b>> {
        let cols: Vec<&Col<'_>> = args.iter().collect();
        let out = self.call_rows(args, rows_of(&cols, rows), f)?;
        Ok(own(out, &cols))
    }

    /// A function of values, row by row; an error in one argument is an error of the whole.
    fn call_rows(
        &mut self,
        args: &[Col<'_>],
        rows: usize,
        mut f: impl FnMut(&Terms, &[Value<'_>]) -> Option<Value<'static>>,
    ) -> Result<Vec<TermId>> {
        for arg in args {
            self.terms.prefetch(self.store, arg.ids().iter().copied())?;
        }
        let mut out = Vec::with_capacity(rows);
        for row in 0..rows {
            let terms = &*self.terms;
            let value = |i: usize| terms.value(args[i].get(row));
            let result = match args.len() {
                0 => f(terms, &[]),
                1 => value(0).and_then(|a| f(terms, &[a])),
                2 => value(0).zip(value(1)).and_then(|(a, b)| f(terms, &[a, b])),
                n => (0..n).map(value).collect::<Option<Vec<_>>>().and_then(|values| f(terms, &values)),
            };
            let bytes: usize = args.iter().map(|arg| terms.text_bytes(arg.get(row))).sum();
            out.push(result.map_or(TermId::UNDEF, |v| self.terms.push(&v)));
            if self.terms.poll(bytes).is_none() {
                self.terms.fault()?;
            }
        }
        Ok(out)
    }
}

/// Rows of the batch behind rows of a selection.
pub(super) fn picked(selected: Option<&[u32]>, rows: &[u32]) -> Vec<u32> {
    match selected {
        None => rows.to_vec(),
        Some(selected) => rows.iter().map(|row| selected[*row as usize]).collect(),
    }
}

fn datatype_needs_text(store: &dyn TermStore, id: TermId) -> bool {
    match id.kind() {
        Kind::Special | Kind::Iri | Kind::Blank | Kind::String => false,
        Kind::Local => true,
        _ => id.fixed_datatype().is_none() && store.datatype_of(id).is_none(),
    }
}

fn is_a_by_kind(what: IsA, id: TermId) -> std::result::Result<TermId, Slow> {
    let kind = id.kind();
    if id.is_undef() {
        return Ok(id);
    }
    if kind == Kind::Local {
        return Err(Slow);
    }
    Ok(from_boolean(match what {
        IsA::Iri => kind == Kind::Iri,
        IsA::Blank => kind == Kind::Blank,
        IsA::Literal => kind.is_literal(),
        IsA::Numeric => match kind {
            Kind::Integer | Kind::Double | Kind::Float => true,
            Kind::Decimal => id.decimal_code() < FIRST_REGISTERED,
            Kind::Value | Kind::Text => return Err(Slow),
            _ => false,
        },
    }))
}

fn is_a(what: IsA, v: &Value<'_>) -> Option<TermId> {
    Some(from_boolean(match what {
        IsA::Iri => matches!(v, Value::Iri(_)),
        IsA::Blank => matches!(v, Value::Blank(_)),
        IsA::Literal => v.is_literal(),
        IsA::Numeric => v.is_numeric(),
    }))
}
