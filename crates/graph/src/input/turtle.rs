//! Turtle and TriG, read so that a fault costs only the triples that contain it.
//!
//! The parser (oxttl) resumes after a fault only at the next full stop, outside any graph, and may
//! take closing quotes for opening ones. So the text is scanned before it:
//!
//! 1. [`lexer`] cuts it into tokens; a malformed token has an end, too.
//! 2. [`grammar`] knows which tokens may follow which. It hands on a text without faults, with a
//!    placeholder for each malformed term.
//! 3. [`faults`] knows the fault of each placeholder. A quad that contains one is left out.

mod faults;
mod grammar;
mod lexer;

use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;

use oxrdf::{GraphName, NamedOrBlankNode, Quad, Term};
use snowmelt_rdfxml::OddTerms;

use super::error::GuardError;
use super::guard::{MOST_LEVELS, TOKEN_BYTES};
use super::intern::Fault;
use crate::term::MOST_TRIPLE_LEVELS;
use faults::Faults;
use grammar::Grammar;

/// Bytes read and handed on at once.
const PIECE_BYTES: usize = 64 << 10;

/// A document without its faults, as the parser sees it.
pub(super) struct SoundTurtle<R> {
    read: R,
    odd: OddTerms,
    /// Bytes read, and how many of them were scanned.
    window: Vec<u8>,
    at: usize,
    is_end: bool,
    has_ended: bool,
    grammar: Grammar,
    faults: Rc<RefCell<Faults>>,
}

/// The faults of a document that is being read.
#[derive(Clone)]
pub(super) struct TurtleFaults(Rc<RefCell<Faults>>);

impl<R: Read> SoundTurtle<R> {
    pub(super) fn new(read: R, has_graphs: bool, has_base: bool, odd: OddTerms) -> (Self, TurtleFaults) {
        let faults = Rc::<RefCell<Faults>>::default();
        let told = TurtleFaults(Rc::clone(&faults));
        let grammar = Grammar::new(has_graphs, has_base, odd);
        let (window, at) = (Vec::new(), 0);
        (SoundTurtle { read, odd, window, at, is_end: false, has_ended: false, grammar, faults }, told)
    }

    /// Reads more, after the bytes not yet scanned.
    fn more(&mut self) -> io::Result<()> {
        self.window.drain(..self.at);
        self.at = 0;
        let begun = self.window.len();
        if begun > TOKEN_BYTES {
            let why = format!("a term has more than {TOKEN_BYTES} bytes, the longest that can be read");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        // an unfinished token is scanned again only when twice as much is there
        let want = begun.max(PIECE_BYTES);
        let got = self.read.by_ref().take(want as u64).read_to_end(&mut self.window)?;
        self.is_end = got < want;
        Ok(())
    }

    /// Processes the next gap and token.
    fn step(&mut self) -> io::Result<()> {
        let text = &self.window[self.at..];
        let mut faults = self.faults.borrow_mut();
        let Some(gap) = lexer::gap(text, self.is_end) else {
            drop(faults);
            return self.more();
        };
        let (blank, text) = text.split_at(gap);
        self.grammar.gap(blank);
        pass(&mut faults, blank);
        self.at += gap;
        if text.is_empty() && self.is_end {
            self.grammar.end(&mut faults);
            self.has_ended = true;
            return Ok(());
        }
        let Some(token) = lexer::token(text, self.is_end, self.odd) else {
            drop(faults);
            return self.more();
        };
        let text = &text[..token.len];
        self.grammar.take(token, text, &mut faults);
        pass(&mut faults, text);
        self.at += text.len();
        if self.grammar.depth() > MOST_LEVELS {
            return Err(GuardError::TooDeep { most: MOST_LEVELS }.into());
        }
        if self.grammar.triples() > MOST_TRIPLE_LEVELS {
            return Err(GuardError::NestedTriples { most: MOST_TRIPLE_LEVELS }.into());
        }
        Ok(())
    }
}

/// Counts lines and columns.
fn pass(faults: &mut Faults, text: &[u8]) {
    let last = match memchr::memrchr(b'\n', text) {
        Some(end) => {
            faults.line += memchr::memchr_iter(b'\n', text).count() as u64;
            faults.column = 0;
            &text[end + 1..]
        }
        None => text,
    };
    faults.column += last.iter().filter(|byte| **byte & 0xC0 != 0x80).count() as u64;
}

impl<R: Read> Read for SoundTurtle<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.grammar.ready() < PIECE_BYTES && !self.has_ended {
            self.step()?;
        }
        let len = self.grammar.ready().min(out.len());
        out[..len].copy_from_slice(&self.grammar.out[..len]);
        self.grammar.handed_on(len);
        Ok(len)
    }
}

fn of_node(faults: &Faults, node: &NamedOrBlankNode) -> Option<Fault> {
    match node {
        NamedOrBlankNode::NamedNode(node) => faults.of_iri(node.as_str()),
        NamedOrBlankNode::BlankNode(_) => None,
    }
}

fn of_object(faults: &Faults, mut object: &Term) -> Option<Fault> {
    while let Term::Triple(triple) = object {
        let fault = of_node(faults, &triple.subject).or_else(|| faults.of_iri(triple.predicate.as_str()));
        if fault.is_some() {
            return fault;
        }
        object = &triple.object;
    }
    match object {
        Term::NamedNode(node) => faults.of_iri(node.as_str()),
        Term::Literal(literal) => faults.of_iri(literal.datatype().as_str()),
        Term::BlankNode(_) | Term::Triple(_) => None,
    }
}

impl TurtleFaults {
    /// The fault of a quad that contains a placeholder.
    pub(super) fn of_quad(&self, quad: &Quad) -> Option<Fault> {
        let faults = self.0.borrow();
        let subject = of_node(&faults, &quad.subject);
        let object = || of_object(&faults, &quad.object);
        let graph = || match &quad.graph_name {
            GraphName::NamedNode(node) => faults.of_iri(node.as_str()),
            _ => None,
        };
        subject.or_else(|| faults.of_iri(quad.predicate.as_str())).or_else(object).or_else(graph)
    }

    /// Whether an IRI stands for a malformed one.
    pub(super) fn is_placeholder(&self, iri: &str) -> bool {
        self.0.borrow().of_iri(iri).is_some()
    }

    /// Takes the faults that belong to no quad, and the number of further ones.
    pub(super) fn take_loose(&self) -> (Vec<Fault>, u64) {
        self.0.borrow_mut().take_loose()
    }
}
