//! Turtle and TriG whose faults cost what cannot be read, and nothing else.
//!
//! The parser behind this one goes on behind a fault, but at the next full stop, in no graph, and
//! with quotes that begin strings where they end some. So the text is looked at before:
//!
//! 1. [`lexer`] cuts it into tokens; one that is malformed has an end, too.
//! 2. [`grammar`] knows what may follow what. It hands on a text without faults, with a
//!    placeholder for each term that is none.
//! 3. [`faults`] knows what a placeholder stands for. A quad that has one is left out.

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
use faults::Faults;
use grammar::Grammar;

/// Bytes that are read, and handed on, at once.
const PIECE_BYTES: usize = 64 << 10;

/// A document as its parser should see it.
pub(super) struct SoundTurtle<R> {
    read: R,
    odd: OddTerms,
    /// Bytes that were read, and how many of them were looked at.
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

    /// Reads more, behind what was not looked at yet.
    fn more(&mut self) -> io::Result<()> {
        self.window.drain(..self.at);
        self.at = 0;
        let begun = self.window.len();
        if begun > TOKEN_BYTES {
            let why = format!("a term has more than {TOKEN_BYTES} bytes, the longest that can be read");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        // a token is looked at again when there is twice as much
        let want = begun.max(PIECE_BYTES);
        let got = self.read.by_ref().take(want as u64).read_to_end(&mut self.window)?;
        self.is_end = got < want;
        Ok(())
    }

    /// Passes what comes next.
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

impl TurtleFaults {
    /// Why a quad is none, if a placeholder is in it.
    pub(super) fn of_quad(&self, quad: &Quad) -> Option<Fault> {
        let faults = self.0.borrow();
        let subject = match &quad.subject {
            NamedOrBlankNode::NamedNode(node) => faults.of_iri(node.as_str()),
            NamedOrBlankNode::BlankNode(_) => None,
        };
        let object = || match &quad.object {
            Term::NamedNode(node) => faults.of_iri(node.as_str()),
            Term::Literal(literal) => faults.of_iri(literal.datatype().as_str()),
            Term::BlankNode(_) => None,
        };
        let graph = || match &quad.graph_name {
            GraphName::NamedNode(node) => faults.of_iri(node.as_str()),
            _ => None,
        };
        subject.or_else(|| faults.of_iri(quad.predicate.as_str())).or_else(object).or_else(graph)
    }

    /// Takes the faults that no quad tells, and how many more there were.
    pub(super) fn take_loose(&self) -> (Vec<Fault>, u64) {
        self.0.borrow_mut().take_loose()
    }
}
