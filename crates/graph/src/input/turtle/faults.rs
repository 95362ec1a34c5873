//! Faults and their places: told by the triples that cannot be read for them, or by nothing else.

use std::collections::HashMap;

use crate::input::intern::Fault;

/// The scheme of placeholders begins so; no document has it.
const SCHEME: &str = "snowmelt-unreadable-";

/// Placeholders whose faults are remembered, and faults without one. A list of them names fewer.
const MOST_REMEMBERED: usize = 1000;

/// The faults of a document.
#[derive(Default)]
pub(super) struct Faults {
    /// Of the token that is looked at: line and column, from 0.
    pub(super) line: u64,
    pub(super) column: u64,
    placed: HashMap<u64, Fault>,
    places: u64,
    /// Those that no placeholder tells.
    loose: Vec<Fault>,
    /// More of them.
    more: u64,
}

impl Faults {
    fn here(&self, why: &str) -> Fault {
        Fault { line: self.line, column: self.column + 1, message: why.to_owned(), setting: None }
    }

    /// An IRI that stands for what cannot be read.
    pub(super) fn placeholder(&mut self, why: &str) -> String {
        let number = self.places;
        self.places += 1;
        if self.placed.len() < MOST_REMEMBERED {
            self.placed.insert(number, self.here(why));
        }
        format!("<{SCHEME}{number}:/>")
    }

    /// A fault that costs no triple.
    pub(super) fn loose(&mut self, why: &str) {
        if self.loose.len() < MOST_REMEMBERED {
            self.loose.push(self.here(why));
        } else {
            self.more += 1;
        }
    }

    /// The fault that an IRI made of a placeholder stands for.
    pub(super) fn of_iri(&self, iri: &str) -> Option<Fault> {
        let number: u64 = iri.strip_prefix(SCHEME)?.split_once(':')?.0.parse().ok()?;
        if number >= self.places {
            return None;
        }
        let known = self.placed.get(&number).cloned();
        Some(known.unwrap_or_else(|| self.here("a term cannot be read")))
    }

    /// Takes those that no placeholder tells, and how many more there were.
    pub(super) fn take_loose(&mut self) -> (Vec<Fault>, u64) {
        (std::mem::take(&mut self.loose), std::mem::take(&mut self.more))
    }
}
