//! Functions that a program brings along: closures on terms, called by IRI.
//!
//! A closure gets the terms of its arguments, all of them bound, as they are written in the data
//! or computed; it gives a term, or None, the error. It may be called by several threads at once,
//! for rows in any order, and for rows that no answer needs.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use snowmelt_graph::Term;

/// A closure on the terms of the arguments.
pub type TermFunction = dyn Fn(&[Term]) -> Option<Term> + Send + Sync;

/// A function of a program.
#[derive(Clone)]
pub struct CustomFunction {
    /// The closure.
    pub call: Arc<TermFunction>,
    /// Whether equal arguments give equal results: then calls may be left out, and an answer may
    /// be kept by a cache.
    pub is_deterministic: bool,
}

/// The functions of a program, by IRI. They go before built-in ones of their IRI.
#[derive(Clone, Default)]
pub struct CustomFunctions {
    by_iri: FxHashMap<String, CustomFunction>,
}

impl CustomFunctions {
    /// Adds a function; one of its IRI that was there before goes.
    pub fn add(&mut self, iri: impl Into<String>, function: CustomFunction) {
        self.by_iri.insert(iri.into(), function);
    }

    /// Those of both; of two with one IRI that of `others`.
    #[must_use]
    pub fn with(&self, others: &Self) -> Self {
        let mut all = self.clone();
        all.by_iri.extend(others.by_iri.iter().map(|(iri, function)| (iri.clone(), function.clone())));
        all
    }

    /// The function of an IRI.
    pub fn get(&self, iri: &str) -> Option<&CustomFunction> {
        self.by_iri.get(iri)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_iri.is_empty()
    }
}

impl fmt::Debug for CustomFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomFunction").field("is_deterministic", &self.is_deterministic).finish()
    }
}

impl fmt::Debug for CustomFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_iri.keys()).finish()
    }
}
