//! Functions of columns: the kernel's answer for each row, and values for the rows it leaves.

use snowmelt_graph::{MOST_TRIPLE_LEVELS, Term, TermId, triple_levels};

use super::{Col, Eval, Result, Slow, Terms, Value, kernel};
use crate::functions::CustomFunction;

impl<'b> Eval<'_, 'b> {
    /// Fills the rows a kernel left open: reads their ids at once, then asks the values.
    pub(super) fn slow(
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
        debug_assert!(slow.iter().all(|row| (*row as usize) < out.len()), "an open row is one of the column");
        for row in slow {
            out[*row as usize] = f(self.terms, *row as usize);
            let bytes: usize = cols.iter().map(|col| self.terms.text_bytes(col.get(*row as usize))).sum();
            if self.terms.poll(bytes).is_none() {
                return self.terms.fault();
            }
        }
        Ok(())
    }

    /// A function of one column to ids that exist already: `fast` on the id, `value` for what
    /// it leaves.
    pub(super) fn map(
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
    pub(super) fn map_values(
        &mut self,
        a: &Col<'_>,
        rows: usize,
        value: impl Fn(&Value<'_>) -> Option<Value<'static>>,
    ) -> Result<Col<'b>> {
        self.map_values_fast(a, rows, |_| Err(Slow), value)
    }

    pub(super) fn map_values_fast(
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
    pub(super) fn zip(
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

    pub(super) fn call(
        &mut self,
        args: &[Col<'_>],
        rows: usize,
        f: impl FnMut(&Terms, &[Value<'_>]) -> Option<Value<'static>>,
    ) -> Result<Col<'b>> {
        let cols: Vec<&Col<'_>> = args.iter().collect();
        let out = self.call_rows(args, rows_of(&cols, rows), f)?;
        Ok(own(out, &cols))
    }

    /// A function of values, row by row; an error in one argument is an error of the whole.
    pub(super) fn call_rows(
        &mut self,
        args: &[Col<'_>],
        rows: usize,
        mut f: impl FnMut(&Terms, &[Value<'_>]) -> Option<Value<'static>>,
    ) -> Result<Vec<TermId>> {
        for arg in args {
            self.terms.prefetch(self.store, arg.ids().iter().copied())?;
        }
        let mut out = Vec::with_capacity(rows);
        debug_assert!(
            args.iter().all(|arg| arg.slice().map_or(1, <[TermId]>::len) >= rows.min(1)),
            "arguments have rows"
        );
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

    /// A function of the program: of terms, row by row.
    pub(super) fn call_custom(
        &mut self,
        function: &CustomFunction,
        args: &[Col<'_>],
        rows: usize,
    ) -> Result<Col<'b>> {
        let cols: Vec<&Col<'_>> = args.iter().collect();
        let rows = if function.is_deterministic { rows_of(&cols, rows) } else { rows };
        for arg in args {
            self.terms.prefetch(self.store, arg.ids().iter().copied())?;
        }
        let mut out = Vec::with_capacity(rows);
        let mut given = Vec::with_capacity(args.len());
        for row in 0..rows {
            given.clear();
            let terms = &*self.terms;
            given.extend(args.iter().map_while(|arg| terms.with_term(arg.get(row), |t| t.to_owned())));
            let result = if given.len() == args.len() { (function.call)(&given) } else { None };
            let result = result.filter(has_allowed_levels);
            out.push(match result {
                None => TermId::UNDEF,
                // the very node, where it is a blank one
                Some(term) => match given.iter().position(|argument| *argument == term) {
                    Some(at) => args[at].get(row),
                    None => self.terms.push_term(term.as_ref()),
                },
            });
            // such a function may take its time
            if self.terms.look().is_none() {
                self.terms.fault()?;
            }
        }
        Ok(if function.is_deterministic { own(out, &cols) } else { Col::Own(out) })
    }
}

/// Whether a term has no more levels of triple terms than there may be.
fn has_allowed_levels(term: &Term) -> bool {
    !matches!(term, Term::Triple(triple) if triple_levels(triple) > MOST_TRIPLE_LEVELS)
}

/// Column of a function of columns: rows are one if all columns are.
pub(super) fn rows_of(cols: &[&Col<'_>], rows: usize) -> usize {
    if cols.iter().all(|c| matches!(c, Col::One(_))) { 1 } else { rows }
}

/// A computed column; one row stands for all of them when all arguments were constant.
pub(super) fn own<'b>(out: Vec<TermId>, cols: &[&Col<'_>]) -> Col<'b> {
    if cols.iter().all(|c| matches!(c, Col::One(_))) {
        assert_eq!(out.len(), 1, "a function of constants is computed once");
        return Col::One(out[0]);
    }
    Col::Own(out)
}
