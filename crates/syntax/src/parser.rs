//! From tokens to a tree, by recursive descent with one token of look-ahead.
//!
//! | file | what it parses |
//! |---|---|
//! | [`errors`] | faults: what was expected, the likely cause, and where to go on |
//! | [`prologue`] | BASE, PREFIX, VERSION; IRIs and what they mean |
//! | [`terms`] | variables, literals, blank nodes, triple terms |
//! | [`path`] | property paths |
//! | [`triples`] | triples of one subject, collections, annotations |
//! | [`expr`], [`call`] | expressions; functions and aggregates |
//! | [`group`] | groups and what stands in them |
//! | [`values`] | VALUES |
//! | [`select`], [`modifiers`] | what SELECT asks for; GROUP BY and the rest after WHERE |
//! | [`query`] | the four forms of queries |
//! | [`quads`], [`update`] | templates and data; operations |
//!
//! All recursion goes through [`Parser::nested`], which counts it. Scopes of variables and labels
//! are kept while parsing, so no rule of the language goes over the tree again but LATERAL's.

mod call;
mod errors;
mod expr;
mod group;
mod modifiers;
mod path;
mod prologue;
mod quads;
mod query;
mod select;
mod terms;
mod triples;
mod update;
mod values;

use std::collections::{HashMap, HashSet};

use rustc_hash::FxHashSet;

use crate::error::SyntaxError;
use crate::lexer::{Lexer, Span, Window};
use crate::options::ParseOptions;
use crate::shape::{Cursor, Shape, Shaper};
use crate::tree::{Aggregate, Blank, FirstUses, Slot, Term, UpdateOperation, Var, VarNames};

pub(crate) use update::Batches;

type Parsed<T> = Result<T, Box<SyntaxError>>;

/// Variables in scope.
type Scope = FxHashSet<Var>;

/// Takes operations while they are parsed; false ends the parse.
pub(super) type Sink<'a> = &'a mut dyn FnMut(UpdateOperation) -> bool;

pub(crate) struct Parser<'a> {
    cursor: Cursor<'a>,
    options: &'a ParseOptions<'a>,
    base: Option<oxiri::Iri<String>>,
    version: Option<Box<str>>,
    prefixes: HashMap<Box<str>, Box<str>>,
    names: VarNames,
    labels: Labels,
    levels: Levels,
    patterns: usize,
    branches: usize,
    fresh_blanks: u64,
    rules: TermRules,
    groupings: Vec<Grouping>,
    aggregating: Aggregating,
    first: FirstUses,
    /// variables of the present column of SELECT and their places, but not those in aggregates
    uses: Option<Vec<(Var, Span)>>,
    errors: Vec<SyntaxError>,
    /// where the triples of the present subject begin
    subject: Span,
    output: Option<Output<'a>>,
}

/// Terms that may stand where the parser is.
#[derive(Clone, Copy)]
struct TermRules {
    /// why there can be no variable
    no_var: Option<&'static str>,
    /// why there can be no blank node
    no_blank: Option<&'static str>,
}

const ANY_TERM: TermRules = TermRules { no_var: None, no_blank: None };

/// How deep the tree is where the parser is, and below.
#[derive(Clone, Copy, Default)]
struct Levels {
    depth: usize,
    /// links of the present level
    own: usize,
    /// links along the deepest way below it
    below: usize,
}

/// Labels of blank nodes: each belongs to one pattern.
#[derive(Default)]
struct Labels {
    patterns: HashMap<Box<str>, u64>,
    pattern: u64,
    last: u64,
    /// hashes of labels of data, with the number of their operation
    data: HashMap<u128, u64>,
    operation: u64,
}

impl Labels {
    fn next_pattern(&mut self) {
        self.last += 1;
        self.pattern = self.last;
    }
}

/// Aggregates of one SELECT.
#[derive(Default)]
struct Grouping {
    aggregates: Vec<(Var, Aggregate)>,
    vars: HashMap<Aggregate, Var>,
}

/// Whether an aggregate may stand where the parser is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aggregating {
    Never,
    Here,
    Inside,
}

/// Where operations go, and the data that wait.
struct Output<'a> {
    sink: Sink<'a>,
    most_quads: usize,
    quads: Vec<crate::tree::Quad>,
    /// the parser is in the data of an operation
    is_data: bool,
    /// data of the present operation have gone
    has_begun: bool,
    is_insert: bool,
    start: usize,
    graph: Option<Box<str>>,
    is_stopped: bool,
}

impl<'a> Parser<'a> {
    pub fn new(window: Window<'a>, options: &'a ParseOptions<'a>) -> Self {
        let shaper = options.is_shaped.then(Shaper::default);
        Self {
            cursor: Cursor::new(Lexer::new(window), shaper),
            options,
            base: None,
            version: None,
            prefixes: HashMap::new(),
            names: VarNames::default(),
            labels: Labels::default(),
            levels: Levels::default(),
            patterns: 0,
            branches: 0,
            fresh_blanks: 0,
            rules: ANY_TERM,
            groupings: Vec::new(),
            aggregating: Aggregating::Never,
            first: FirstUses::default(),
            uses: None,
            errors: Vec::new(),
            subject: Span::default(),
            output: None,
        }
    }

    /// The error at the end of a text that is cut off within a character.
    pub fn encoding(mut self) -> Box<SyntaxError> {
        while !self.is_lost() && self.cursor.kind() != crate::lexer::Kind::End {
            self.cursor.open.clear();
            self.cursor.advance();
        }
        match self.unexpected::<()>() {
            Err(error) => error,
            Ok(()) => self.error(Span::default(), crate::error::ErrorCode::Encoding, String::new()),
        }
    }

    pub fn shape(self) -> Option<Shape> {
        self.cursor.shape()
    }

    /// The failure of the stream, if that is why the text ended.
    pub fn take_read_error(&mut self) -> Option<std::io::Error> {
        self.cursor.lexer.window().take_error()
    }

    /// Parses something that nests, within the limits.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let outer = self.levels;
        if outer.depth >= self.options.limits.depth {
            return self.too_much("query_depth", self.options.limits.depth);
        }
        self.levels = Levels { depth: outer.depth + 1, own: 0, below: 0 };
        let parsed = parse(self);
        let height = self.levels.own + self.levels.below;
        self.levels = Levels { below: outer.below.max(height), ..outer };
        let parsed = parsed?;
        self.check_chain()?;
        Ok(parsed)
    }

    /// Counts a part that has the one before it within it.
    fn link(&mut self) -> Parsed<()> {
        self.levels.own += 1;
        self.check_chain()
    }

    fn check_chain(&mut self) -> Parsed<()> {
        if self.levels.own + self.levels.below > self.options.limits.chain {
            return self.too_much("query_chain", self.options.limits.chain);
        }
        Ok(())
    }

    /// Counts a part of a list, as of `||` and UNION.
    fn branch(&mut self) -> Parsed<()> {
        self.branches += 1;
        if self.branches > self.options.limits.branches {
            return self.too_much("query_branches", self.options.limits.branches);
        }
        Ok(())
    }

    fn count_pattern(&mut self) -> Parsed<()> {
        self.patterns += 1;
        if self.patterns > self.options.limits.patterns {
            return self.too_much("query_patterns", self.options.limits.patterns);
        }
        Ok(())
    }

    fn intern(&mut self, name: &str) -> Parsed<Var> {
        let var = self.names.intern(name);
        if self.names.len() > self.options.limits.variables {
            return self.too_much("query_variables", self.options.limits.variables);
        }
        Ok(var)
    }

    /// A blank node without a label.
    fn fresh_blank(&mut self) -> Parsed<Slot> {
        if let Some(why) = self.rules.no_blank {
            let span = self.cursor.span();
            return self.wrong(span, crate::error::ErrorCode::Blank, why.to_owned());
        }
        self.fresh_blanks += 1;
        Ok(Slot::Term(Term::Blank(Blank::Fresh(self.fresh_blanks))))
    }

    /// Forgets what belongs to one operation.
    fn begin_operation(&mut self) {
        self.names = VarNames::default();
        self.labels.patterns.clear();
        self.labels.operation += 1;
        self.labels.next_pattern();
        self.patterns = 0;
        self.branches = 0;
        self.levels = Levels::default();
        self.first = FirstUses::default();
        self.groupings.clear();
        self.rules = ANY_TERM;
    }
}

/// Variables that occur twice.
fn repeated(vars: &[Var]) -> Option<Var> {
    let mut seen = HashSet::new();
    vars.iter().find(|var| !seen.insert(**var)).copied()
}
