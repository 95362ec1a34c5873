//! STR, LANG, DATATYPE and their kin: from ids and annotation codes where those tell, else from
//! the text.

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;
use snowmelt_graph::{TermId, TermKind, TermRef, from_boolean};

use super::apply::{own, rows_of};
use super::{Cast, Col, Eval, Result, Slow, TermStore, Value, kernel};
use crate::{functions, value};

impl<'b> Eval<'_, 'b> {
    /// STR, or the cast to xsd:string.
    pub(super) fn text(&mut self, a: &Col<'_>, rows: usize, cast: bool) -> Result<Col<'b>> {
        let rows = rows_of(&[a], rows);
        let (mut out, mut slow) = (vec![TermId::UNDEF; rows], Vec::new());
        for (row, out) in out.iter_mut().enumerate() {
            let id = a.get(row);
            match id.kind() {
                TermKind::Special | TermKind::Blank => {}
                TermKind::String | TermKind::ShortString => *out = id,
                _ => slow.push(row as u32),
            }
        }
        self.slow(&slow, &[a], &mut out, |terms, row| {
            // A cast gives the canonical form of a value, STR the form as written.
            let id = a.get(row);
            if cast && !matches!(id.kind(), TermKind::Iri | TermKind::Literal | TermKind::Text) {
                let text = terms.value(id).and_then(|v| value::cast(Cast::String, &v));
                return text.map_or(TermId::UNDEF, |v| terms.push(&v));
            }
            let text = terms.with_term(id, |term| match term {
                TermRef::Iri(iri) => Some(iri.to_owned()),
                TermRef::Blank(_) | TermRef::Triple(_) => None,
                TermRef::Literal { lexical, .. } => Some(lexical.to_owned()),
            });
            text.flatten().map_or(TermId::UNDEF, |text| terms.push_term(TermRef::string(&text)))
        })?;
        Ok(own(out, &[a]))
    }

    /// A cast to a number of the text of a term.
    pub(super) fn cast_text(&mut self, to: Cast, a: &Col<'_>, rows: usize) -> Result<Col<'b>> {
        let rows = rows_of(&[a], rows);
        let (mut out, mut slow) = (vec![TermId::UNDEF; rows], Vec::new());
        for (row, out) in out.iter_mut().enumerate() {
            let id = a.get(row);
            match crate::expr::fused::cast_text(to, id) {
                Ok(crate::expr::fused::CastNumber::Id(id)) => *out = id,
                Ok(crate::expr::fused::CastNumber::Double(v)) => {
                    *out = self.terms.push(&Value::Double(v.into()))
                }
                Err(Slow) if matches!(id.kind(), TermKind::Special | TermKind::Blank) => {}
                Err(Slow) => slow.push(row as u32),
            }
        }
        self.slow(&slow, &[a], &mut out, |terms, row| {
            let result = terms.with_term(a.get(row), |term| match term {
                TermRef::Iri(text) | TermRef::Literal { lexical: text, .. } => {
                    value::cast(to, &Value::String(text.into()))
                }
                TermRef::Blank(_) | TermRef::Triple(_) => None,
            });
            result.flatten().map_or(TermId::UNDEF, |v| terms.push(&v))
        })?;
        Ok(own(out, &[a]))
    }

    /// LANG: mostly the id's annotation code, or the empty string.
    pub(super) fn lang(&mut self, a: &Col<'_>, rows: usize) -> Result<Col<'b>> {
        let rows = rows_of(&[a], rows);
        let empty = TermId::inline(&TermRef::string("")).expect("the empty string is inline");
        let (mut out, mut slow) = (vec![TermId::UNDEF; rows], Vec::new());
        let mut last = (TermId::UNDEF, TermId::UNDEF);
        for (row, out) in out.iter_mut().enumerate() {
            let id = a.get(row);
            match id.kind() {
                TermKind::Special | TermKind::Iri | TermKind::Blank => {}
                TermKind::String | TermKind::Value => *out = empty,
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
    pub(super) fn datatype(&mut self, a: &Col<'_>, rows: usize) -> Result<Col<'b>> {
        let rows = rows_of(&[a], rows);
        let mut out = vec![TermId::UNDEF; rows];
        let unclear: Vec<TermId> =
            a.ids().iter().copied().filter(|id| datatype_needs_text(self.store, *id)).collect();
        self.terms.prefetch(self.store, unclear)?;
        for (row, out) in out.iter_mut().enumerate() {
            let id = a.get(row);
            if matches!(id.kind(), TermKind::Special | TermKind::Iri | TermKind::Blank) {
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
            } else if id.kind() == TermKind::String {
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
    pub(super) fn lang_matches(&mut self, a: &Col<'_>, b: &Col<'_>, rows: usize) -> Result<Col<'b>> {
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

    /// BNODE(string): the same blank node for the same string in one solution, another one in
    /// every other solution.
    ///
    /// A solution is told by what it binds, computed terms apart (they may be the nodes of an
    /// earlier call), and by how often this expression has met the same bindings: solutions
    /// come to all expressions of a query in one order.
    pub(super) fn named_blank(
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
            let bound =
                self.cols.iter().filter_map(|col| col.get(row)).filter(|id| id.kind() != TermKind::Local);
            let solution = bound.fold(0_u64, |sum, id| sum.wrapping_add(FxBuildHasher.hash_one(id)));
            out.push(self.terms.named_blank(site, solution, a.get(i)));
            if self.terms.poll(0).is_none() {
                self.terms.fault()?;
            }
        }
        Ok(Col::Own(out))
    }
}

fn datatype_needs_text(store: &dyn TermStore, id: TermId) -> bool {
    match id.kind() {
        TermKind::Special | TermKind::Iri | TermKind::Blank | TermKind::String => false,
        TermKind::Local => true,
        _ => id.fixed_datatype().is_none() && store.datatype_of(id).is_none(),
    }
}
