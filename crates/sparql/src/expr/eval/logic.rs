//! Connectives, IN, IF and COALESCE: what decides a row early spares it the other arguments.

use snowmelt_graph::TermId;

use super::{Col, Eval, ExprNode, FALSE, Result, TRUE, kernel, picked};

impl<'b> Eval<'_, 'b> {
    /// `&&` and `||`: `decided` is the truth value that ends the matter for a row; later parts
    /// see only the other rows, unless they are so cheap that sorting rows out costs more.
    pub(super) fn connective(
        &mut self,
        parts: &[ExprNode],
        selected: Option<&[u32]>,
        decided: TermId,
        combine: fn(TermId, TermId) -> TermId,
    ) -> Result<Col<'b>> {
        let rows = selected.map_or(self.rows, <[u32]>::len);
        assert!(parts.len() > 1, "a connective connects");
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
            next.check(open.len());
            let mut out: Vec<TermId> = (0..rows).map(|row| all.get(row)).collect();
            for (i, row) in open.iter().enumerate() {
                let place = &mut out[*row as usize];
                *place = combine(*place, next.get(i));
            }
            all = Col::Own(out);
        }
        Ok(all)
    }

    /// IN: true if equal to one, else an error if one comparison erred, else false. An operand
    /// that is an error makes one of it, also where there is nothing to compare it with (17.2).
    pub(super) fn is_in(
        &mut self,
        a: &ExprNode,
        list: &[ExprNode],
        selected: Option<&[u32]>,
    ) -> Result<Col<'b>> {
        let a = a.eval(self, selected)?;
        if list.is_empty() {
            let rows = selected.map_or(self.rows, <[u32]>::len);
            let none = |row| if a.get(row).is_undef() { TermId::UNDEF } else { FALSE };
            return Ok(Col::Own((0..rows).map(none).collect()));
        }
        self.any_equal(&a, list, selected)
    }

    /// Whether a column's rows equal one of the list.
    pub(super) fn any_equal(
        &mut self,
        a: &Col<'_>,
        list: &[ExprNode],
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

    pub(super) fn choose(
        &mut self,
        condition: &ExprNode,
        yes: &ExprNode,
        no: &ExprNode,
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
            col.check(taken.len());
            taken.iter().enumerate().for_each(|(i, row)| out[*row as usize] = col.get(i));
        }
        Ok(Col::Own(out))
    }

    pub(super) fn coalesce(&mut self, list: &[ExprNode], selected: Option<&[u32]>) -> Result<Col<'b>> {
        let rows = selected.map_or(self.rows, <[u32]>::len);
        let mut out = vec![TermId::UNDEF; rows];
        let mut open: Vec<u32> = (0..rows as u32).collect();
        for e in list {
            if open.is_empty() {
                break;
            }
            let col = e.eval(self, Some(&picked(selected, &open)))?;
            col.check(open.len());
            open.iter().enumerate().for_each(|(i, row)| out[*row as usize] = col.get(i));
            open.retain(|row| out[*row as usize].is_undef());
        }
        Ok(Col::Own(out))
    }
}
