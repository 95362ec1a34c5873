//! Faults and their places. A fault is reported by the triples it costs, or else by itself.

use std::collections::HashMap;

use crate::input::intern::Fault;

/// Beginning of the scheme of placeholders; no document uses it.
const SCHEME: &str = "snowmelt-unreadable-";

/// Most faults remembered, with a placeholder and without. A list of faults names fewer.
const MOST_REMEMBERED: usize = 1000;

/// The faults of a document.
#[derive(Default)]
pub(super) struct Faults {
    /// Line and column of the current token, from 0.
    pub(super) line: u64,
    pub(super) column: u64,
    placed: HashMap<u64, Fault>,
    places: u64,
    /// Faults without a placeholder.
    loose: Vec<Fault>,
    /// Number of further ones.
    more: u64,
}

impl Faults {
    fn here(&self, why: &str) -> Fault {
        Fault { line: self.line, column: self.column + 1, message: why.to_owned(), setting: None }
    }

    /// Returns an IRI that stands for an unreadable term.
    pub(super) fn placeholder(&mut self, why: &str) -> String {
        let number = self.places;
        self.places += 1;
        if self.placed.len() < MOST_REMEMBERED {
            self.placed.insert(number, self.here(why));
        }
        format!("<{SCHEME}{number}:/>")
    }

    /// Notes a fault without a placeholder.
    pub(super) fn loose(&mut self, why: &str) {
        if self.loose.len() < MOST_REMEMBERED {
            self.loose.push(self.here(why));
        } else {
            self.more += 1;
        }
    }

    /// The fault of a placeholder, or of an IRI that begins with one.
    pub(super) fn of_iri(&self, iri: &str) -> Option<Fault> {
        let number: u64 = iri.strip_prefix(SCHEME)?.split_once(':')?.0.parse().ok()?;
        if number >= self.places {
            return None;
        }
        let known = self.placed.get(&number).cloned();
        Some(known.unwrap_or_else(|| self.here("a term cannot be read")))
    }

    /// Takes the faults without a placeholder, and the number of further ones.
    pub(super) fn take_loose(&mut self) -> (Vec<Fault>, u64) {
        (std::mem::take(&mut self.loose), std::mem::take(&mut self.more))
    }
}
