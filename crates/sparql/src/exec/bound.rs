//! The bound of ORDER BY with a limit: the worst key that a row may have to be of use.
//!
//! Once as many rows as wanted are there, a row whose key is no better than the worst of theirs is
//! of no use. By the first key alone that can be told while its text is read: such a text is not
//! copied.

use std::cmp::Ordering;

use super::{Result, Run};
use crate::exec::Batch;
use crate::expr::Expr;
use crate::value::{Value, key_order};

/// The worst key among the best rows so far.
pub(super) struct KeyBound {
    /// as rows have it
    key: Vec<u8>,
    /// as its first part is before it is turned round
    first: Vec<u8>,
    is_descending: bool,
    /// there is one part
    is_single: bool,
}

impl KeyBound {
    /// Of keys of so many parts.
    pub fn new(key: &[u8], parts: usize, is_descending: bool) -> Self {
        let turned = |byte: &u8| if is_descending { !*byte } else { *byte };
        let first = key.iter().map(turned).collect();
        Self { key: key.to_vec(), first, is_descending, is_single: parts == 1 }
    }

    pub fn bytes(&self) -> usize {
        self.key.capacity() + self.first.capacity()
    }

    /// Whether a row with this key, which comes later, is of no use.
    pub fn excludes(&self, key: &[u8]) -> bool {
        key >= self.key.as_slice()
    }

    /// The rows that may be of use, as far as the texts of their first parts tell.
    pub fn without_worse(&self, mut batch: Batch, first: &Expr, run: &mut Run) -> Result<Batch> {
        let Some(texts) = first.as_texts() else { return Ok(batch) };
        let mut is_worse = vec![false; batch.rows];
        let mut any = false;
        texts.of_each(&mut run.terms, &mut run.source.session, &batch.cols, &mut |_, rows, value| {
            if self.excludes_first(value.as_ref()) {
                any = true;
                rows.iter().for_each(|(_, row)| is_worse[*row as usize] = true);
            }
            Ok(())
        })?;
        if any {
            let better: Vec<u32> = (0..batch.rows as u32).filter(|row| !is_worse[*row as usize]).collect();
            batch.retain(&better);
        }
        Ok(batch)
    }

    /// Whether a row is of no use whose first part is that of a value, which comes later.
    pub fn excludes_first(&self, value: Option<&Value<'_>>) -> bool {
        let order = key_order(value, &self.first);
        match if self.is_descending { order.reverse() } else { order } {
            Ordering::Less => false,
            Ordering::Equal => self.is_single,
            Ordering::Greater => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::push_order_key;

    #[test]
    fn a_first_part_excludes_as_the_whole_key_does() {
        let strings = ["", "a", "ab", "a\0b", "a\0", "b", "é"];
        let mut values: Vec<Option<Value<'_>>> = vec![None];
        values.extend(strings.map(|text| Some(Value::String(text.into()))));
        values.extend(strings.map(|text| Some(Value::Iri(text.into()))));
        values.extend(["en", "de"].map(|tag| Some(Value::LangString("a".into(), tag.into()))));
        values.extend([1, 2].map(|n| Some(Value::Integer(n.into()))));
        let key = |value: &Option<Value<'_>>, descending: bool, second: Option<u8>| {
            let mut key = Vec::new();
            push_order_key(value.as_ref(), descending, &mut key);
            key.extend(second);
            key
        };
        for descending in [false, true] {
            for worst in &values {
                let single = KeyBound::new(&key(worst, descending, None), 1, descending);
                let double = KeyBound::new(&key(worst, descending, Some(5)), 2, descending);
                for value in &values {
                    let is_excluded = single.excludes(&key(value, descending, None));
                    assert_eq!(single.excludes_first(value.as_ref()), is_excluded, "{value:?} {worst:?}");
                    let by_best = double.excludes(&key(value, descending, Some(0)));
                    assert_eq!(double.excludes_first(value.as_ref()), by_best, "{value:?} {worst:?}");
                }
            }
        }
    }
}
