//! The least or greatest term of a group, in the order of ORDER BY.
//!
//! Ids whose order tells are compared as ids. Others keep their sort key beside them, so that a
//! term is read once even if the cache has forgotten it since. A text that is only lent is compared
//! with that key where it lies, and copied if it is better.

use snowmelt_graph::TermId;

use crate::expr::id_order;
use crate::value::{Terms, Value, key_order, push_order_key};

#[derive(Clone, Default)]
pub(super) struct Best {
    id: TermId,
    /// the best where it was computed and has no id
    made: Option<Box<Value<'static>>>,
    /// the sort key of the best, empty until it is needed
    key: Vec<u8>,
    /// an unbound value was met
    failed: bool,
}

impl Best {
    pub fn bytes(&self) -> usize {
        // a computed text is in its key
        if self.made.is_some() { 2 * self.key.capacity() } else { self.key.capacity() }
    }

    /// The best; unbound where there is none, or an error.
    pub fn finish(self, terms: &mut Terms) -> TermId {
        match self.made {
            _ if self.failed => TermId::UNDEF,
            Some(value) => terms.push_kept(&value),
            None => self.id,
        }
    }

    /// Takes in an error.
    pub fn fail(&mut self) {
        *self = Self { failed: true, ..Self::default() };
    }

    fn is_empty(&self) -> bool {
        self.id.is_undef() && self.made.is_none()
    }

    /// Takes in a prefetched term; of equal ones the first stays.
    pub fn update(&mut self, id: TermId, max: bool, terms: &Terms) {
        if id.is_undef() {
            self.fail();
        }
        if self.failed {
            return;
        }
        if self.is_empty() {
            self.set(id);
            if !id.kind().is_inline() {
                self.key = key(id, terms);
            }
            return;
        }
        if let Some(order) = id_order(id, self.id) {
            if if max { order.is_gt() } else { order.is_lt() } {
                self.set(id);
            }
            return;
        }
        self.make_key(terms);
        let key = key(id, terms);
        if if max { key > self.key } else { key < self.key } {
            self.set(id);
            self.key = key;
        }
    }

    /// Takes in a value that is lent, and the id of its term; of UNDEF, if it was computed.
    pub fn offer(&mut self, id: TermId, value: &Value<'_>, max: bool, terms: &Terms) {
        if self.failed {
            return;
        }
        if !self.is_empty() {
            self.make_key(terms);
            let order = key_order(Some(value), &self.key);
            if if max { order.is_le() } else { order.is_ge() } {
                return;
            }
        }
        self.set(id);
        push_order_key(Some(value), false, &mut self.key);
        if id.is_undef() {
            self.made = Some(Box::new(value.clone().into_owned()));
        }
    }

    /// Takes in the best of other rows.
    pub fn merge(&mut self, other: &Best, max: bool, terms: &Terms) {
        if other.failed {
            self.fail();
        }
        if self.failed || other.is_empty() {
            return;
        }
        if !self.is_empty() {
            let order = id_order(other.id, self.id).unwrap_or_else(|| {
                self.make_key(terms);
                // one without a key is inline
                if other.key.is_empty() {
                    key(other.id, terms).cmp(&self.key)
                } else {
                    other.key.cmp(&self.key)
                }
            });
            if if max { order.is_le() } else { order.is_ge() } {
                return;
            }
        }
        self.clone_from(other);
    }

    fn set(&mut self, id: TermId) {
        self.id = id;
        self.made = None;
        self.key.clear();
    }

    fn make_key(&mut self, terms: &Terms) {
        if self.key.is_empty() {
            self.key = key(self.id, terms);
        }
    }
}

fn key(id: TermId, terms: &Terms) -> Vec<u8> {
    let mut key = Vec::new();
    terms.push_order_key(id, false, &mut key);
    key
}
