//! The prefixes in scope (Namespaces in XML 1.0).

use std::collections::HashMap;

/// Bindings up to which looking through them is fastest.
const FEW: usize = 12;

/// Prefixes that are remembered when they are out of scope, and their bytes.
const MOST_DECLARED: usize = 64;
const MOST_DECLARED_BYTES: usize = 16 << 10;

/// No binding.
const NONE: u32 = u32::MAX;

struct Binding {
    /// Where in the text the prefix ends and the name space after it ends.
    begin: usize,
    prefix_end: usize,
    end: usize,
    /// The binding of the same prefix that it hides.
    hides: u32,
}

/// Prefixes and their name spaces, innermost last.
#[derive(Default)]
pub(super) struct Namespaces {
    bindings: Vec<Binding>,
    /// Prefix → its innermost binding.
    innermost: HashMap<Box<str>, u32>,
    text: String,
    /// The first name space of each prefix that was ever bound, as far as there is room.
    declared: Vec<(Box<str>, Box<str>)>,
    declared_bytes: usize,
}

impl Namespaces {
    /// How many bindings there are, to come back to.
    pub(super) fn len(&self) -> usize {
        self.bindings.len()
    }

    /// Bytes held, about.
    pub(super) fn held_bytes(&self) -> usize {
        self.text.capacity() + self.bindings.capacity() * 2 * size_of::<Binding>()
    }

    /// The first name space of each prefix that was ever bound, as far as there was room for it.
    pub(super) fn declared(&self) -> impl Iterator<Item = (&str, &str)> {
        self.declared.iter().map(|(prefix, namespace)| (&**prefix, &**namespace))
    }

    fn declare(&mut self, prefix: &str, namespace: &str) {
        let bytes = self.declared_bytes + prefix.len() + namespace.len();
        if self.declared.len() >= MOST_DECLARED || bytes > MOST_DECLARED_BYTES {
            return;
        }
        if !self.declared.iter().any(|(known, _)| **known == *prefix) {
            self.declared_bytes = bytes;
            self.declared.push((prefix.into(), namespace.into()));
        }
    }

    /// Binds a prefix, the empty one for names without.
    pub(super) fn bind(&mut self, prefix: &str, namespace: &str) {
        self.declare(prefix, namespace);
        let begin = self.text.len();
        self.text.push_str(prefix);
        let prefix_end = self.text.len();
        self.text.push_str(namespace);
        let index = self.bindings.len() as u32;
        let hides = match self.innermost.get_mut(prefix) {
            Some(known) => std::mem::replace(known, index),
            None => {
                self.innermost.insert(prefix.into(), index);
                NONE
            }
        };
        self.bindings.push(Binding { begin, prefix_end, end: self.text.len(), hides });
    }

    /// Drops the bindings behind the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        while self.bindings.len() > len {
            let Some(last) = self.bindings.pop() else { return };
            let prefix = &self.text[last.begin..last.prefix_end];
            if last.hides == NONE {
                self.innermost.remove(prefix);
            } else if let Some(known) = self.innermost.get_mut(prefix) {
                *known = last.hides;
            }
            self.text.truncate(last.begin);
        }
    }

    /// The name space of a prefix; empty when none was bound.
    pub(super) fn get(&self, prefix: &str) -> &str {
        let found = if self.bindings.len() <= FEW {
            self.bindings.iter().rev().find(|one| self.text[one.begin..one.prefix_end] == *prefix)
        } else {
            self.innermost.get(prefix).map(|index| &self.bindings[*index as usize])
        };
        found.map_or("", |one| &self.text[one.prefix_end..one.end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_come_and_go() {
        for many in [0, 2 * FEW] {
            let mut spaces = Namespaces::default();
            for i in 0..many {
                spaces.bind(&format!("p{i}"), "u:p");
            }
            spaces.bind("a", "u:1");
            let outer = spaces.len();
            spaces.bind("a", "u:2");
            spaces.bind("", "u:3");
            assert_eq!((spaces.get("a"), spaces.get(""), spaces.get("b")), ("u:2", "u:3", ""));
            spaces.truncate(outer);
            assert_eq!((spaces.get("a"), spaces.get("")), ("u:1", ""));
            spaces.truncate(0);
            assert_eq!((spaces.get("a"), spaces.len()), ("", 0));
            let first = if many == 0 { ("a", "u:1") } else { ("p0", "u:p") };
            assert_eq!(spaces.declared().next(), Some(first), "the first of each stays known");
            assert!(spaces.innermost.is_empty() && spaces.text.is_empty());
        }
    }
}
