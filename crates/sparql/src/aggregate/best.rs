//! The least or greatest term of a group, in the order of ORDER BY.
//!
//! Ids whose order tells are compared as ids. Others keep their sort key beside them, so that a
//! term is read once even if the cache has forgotten it since.

use snowmelt_graph::TermId;

use crate::expr::id_order;
use crate::value::Terms;

#[derive(Default)]
pub(super) struct Best {
    id: TermId,
    /// the sort key of `id`, empty until it is needed
    key: Vec<u8>,
    /// an unbound value was met
    failed: bool,
}

impl Best {
    pub fn bytes(&self) -> usize {
        self.key.capacity()
    }

    pub fn id(self) -> TermId {
        if self.failed { TermId::UNDEF } else { self.id }
    }

    /// Takes in a prefetched term; of equal ones the first stays.
    pub fn update(&mut self, id: TermId, max: bool, terms: &Terms) {
        if id.is_undef() {
            self.failed = true;
        }
        if self.failed {
            return;
        }
        if self.id.is_undef() {
            self.id = id;
            self.key.clear();
            if !id.kind().is_inline() {
                self.key = key(id, terms);
            }
            return;
        }
        if let Some(order) = id_order(id, self.id) {
            if if max { order.is_gt() } else { order.is_lt() } {
                self.id = id;
                self.key.clear();
            }
            return;
        }
        if self.key.is_empty() {
            self.key = key(self.id, terms);
        }
        let key = key(id, terms);
        if if max { key > self.key } else { key < self.key } {
            self.id = id;
            self.key = key;
        }
    }
}

fn key(id: TermId, terms: &Terms) -> Vec<u8> {
    let mut key = Vec::new();
    terms.push_order_key(id, false, &mut key);
    key
}
