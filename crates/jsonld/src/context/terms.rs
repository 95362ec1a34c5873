//! Definitions of terms, and the map of them: layers, so that a small context over a large one
//! copies only what is small.

use std::cell::Cell;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::TextDirection;
use crate::json::Json;

/// The kinds of a container; it may have several at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Container(u8);

impl Container {
    pub const LIST: Container = Container(1);
    pub const SET: Container = Container(2);
    pub const INDEX: Container = Container(4);
    pub const ID: Container = Container(8);
    pub const TYPE: Container = Container(16);
    pub const LANGUAGE: Container = Container(32);
    pub const GRAPH: Container = Container(64);

    pub fn has(self, other: Container) -> bool {
        self.0 & other.0 != 0
    }

    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "@list" => Self::LIST,
            "@set" => Self::SET,
            "@index" => Self::INDEX,
            "@id" => Self::ID,
            "@type" => Self::TYPE,
            "@language" => Self::LANGUAGE,
            "@graph" => Self::GRAPH,
            _ => return None,
        })
    }

    /// Of the value of `@container`; `None` where it is malformed.
    pub fn parse(value: &Json) -> Option<Self> {
        let mut all = 0;
        for name in value.elements() {
            all |= Self::named(name.as_str()?)?.0;
        }
        let others = all & !Self::SET.0;
        let is_graph_map = others == Self::GRAPH.0 | Self::ID.0 || others == Self::GRAPH.0 | Self::INDEX.0;
        let is_alone = others.count_ones() <= 1 && (others != Self::LIST.0 || all == others);
        (all != 0 && (is_alone || is_graph_map)).then_some(Self(all))
    }
}

/// A context that is in force within a term.
#[derive(Clone, Debug)]
pub(crate) struct ScopedContext {
    pub local: Rc<Json>,
    /// Against what the addresses in it are resolved.
    pub url: Option<Rc<str>>,
}

impl PartialEq for ScopedContext {
    fn eq(&self, other: &Self) -> bool {
        self.local == other.local
    }
}

/// Bytes of definitions that are in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct InUse(Rc<Cell<usize>>);

impl InUse {
    pub fn bytes(&self) -> usize {
        self.0.get()
    }

    /// Counts some bytes until the result is dropped.
    pub fn hold(&self, bytes: usize) -> Held {
        self.0.set(self.0.get() + bytes);
        Held { all: self.clone(), bytes }
    }
}

/// Bytes of a definition. They do not tell definitions apart.
#[derive(Debug)]
pub(crate) struct Held {
    all: InUse,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.0.set(self.all.0.get() - self.bytes);
    }
}

impl Clone for Held {
    fn clone(&self) -> Self {
        self.all.hold(self.bytes)
    }
}

impl PartialEq for Held {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The definition of a term.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TermDef {
    /// An IRI, a blank node or a keyword; `None`: the term is ignored.
    pub iri: Option<Rc<str>>,
    pub is_prefix: bool,
    pub is_protected: bool,
    pub is_reverse: bool,
    pub container: Container,
    pub datatype: Option<Rc<str>>,
    /// `Some(None)`: no language, even where there is a default.
    pub language: Option<Option<Rc<str>>>,
    pub direction: Option<Option<TextDirection>>,
    pub index: Option<Rc<str>>,
    pub nest: Option<Rc<str>>,
    pub context: Option<ScopedContext>,
    /// Its bytes, while it is in use.
    pub held: Option<Held>,
}

type Layer = FxHashMap<Rc<str>, Option<Rc<TermDef>>>;

/// Terms by name. In each layer, terms of those below are hidden, or were removed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    below: Vec<Rc<Layer>>,
    top: Layer,
    /// Whether a protected term was ever put in.
    saw_protected: bool,
}

impl Terms {
    pub fn get(&self, name: &str) -> Option<&Rc<TermDef>> {
        if let Some(known) = self.top.get(name) {
            return known.as_ref();
        }
        self.below.iter().rev().find_map(|layer| layer.get(name))?.as_ref()
    }

    pub fn set(&mut self, name: &str, definition: Option<Rc<TermDef>>) {
        self.saw_protected |= definition.as_ref().is_some_and(|d| d.is_protected);
        self.top.insert(name.into(), definition);
    }

    /// Makes a layer of what was put in, and layers that are not much larger one with it, so that
    /// there are few: their sizes double at least.
    pub fn settle(&mut self) {
        let mut top = std::mem::take(&mut self.top);
        if top.is_empty() {
            return;
        }
        while let Some(last) = self.below.last()
            && last.len() < 2 * top.len()
        {
            for (name, definition) in last.iter() {
                top.entry(Rc::clone(name)).or_insert_with(|| definition.clone());
            }
            self.below.pop();
        }
        self.below.push(Rc::new(top));
    }

    pub fn has_protected(&self) -> bool {
        let mut seen = FxHashSet::default();
        self.saw_protected
            && [&self.top].into_iter().chain(self.below.iter().rev().map(|layer| &**layer)).any(|layer| {
                layer.iter().any(|(name, definition)| {
                    seen.insert(Rc::clone(name)) && definition.as_ref().is_some_and(|d| d.is_protected)
                })
            })
    }
}
