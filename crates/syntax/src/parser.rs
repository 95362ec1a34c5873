//! From tokens to a tree, by recursive descent with one token of look-ahead.
//!
//! | file | what it parses |
//! |---|---|
//! | [`cursor`] | the present token, and what was expected in its place |
//! | [`errors`] | faults, and where to go on after one |
//! | [`limits`] | depth, chains and other counts |
//! | [`prologue`] | BASE, PREFIX, VERSION; IRIs and what they mean |
//! | [`terms`] | variables, literals, blank nodes, triple terms |
//! | [`path`] | property paths |
//! | [`triples`] | triples of one subject, collections, annotations |
//! | [`expr`], [`call`] | expressions; functions and aggregates |
//! | [`group`] | groups and what stands in them |
//! | [`values`] | VALUES |
//! | [`query`] | the four forms of queries, and the tree of their solutions |
//! | [`select`], [`modifiers`] | columns of SELECT; GROUP BY and the rest after WHERE |
//! | [`quads`], [`update`] | templates and data; operations |
//!
//! Scopes of variables and labels are kept while parsing: no rule of the language goes over the
//! tree again.

mod call;
mod cursor;
mod errors;
mod expr;
mod group;
mod limits;
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

use std::collections::HashMap;

use rustc_hash::FxHashSet;

use crate::error::SyntaxError;
use crate::lexer::{Span, Window};
use crate::options::ParseOptions;
use crate::tree::{Aggregate, FirstUses, Measure, Var, VarNames};

use cursor::Cursor;
use limits::Levels;
use terms::{Labels, Rules};

type Parsed<T> = Result<T, Box<SyntaxError>>;

pub(crate) struct Parser<'a> {
    cursor: Cursor<'a>,
    options: &'a ParseOptions<'a>,
    /// constants of the shape that are to come
    params: &'a [(Span, u32)],
    base: Option<oxiri::Iri<String>>,
    version: Option<Box<str>>,
    prefixes: HashMap<Box<str>, Box<str>>,
    labels: Labels,
    fresh_blanks: u64,
    unit: Unit,
    errors: Vec<SyntaxError>,
    output: Option<update::Output<'a>>,
}

/// All that belongs to one query, or to one operation of an update.
#[derive(Default)]
struct Unit {
    start: usize,
    names: VarNames,
    levels: Levels,
    measure: Measure,
    rules: Rules,
    groupings: Vec<Grouping>,
    aggregating: Aggregating,
    first: FirstUses,
    /// variables that the present column of SELECT needs a value of, but not those in aggregates
    uses: Option<Vec<(Var, Span)>>,
    /// the parser is in data
    data: Option<quads::Data>,
}

/// Aggregates of one SELECT, with the variables of their values.
type Grouping = HashMap<Aggregate, Var>;

/// Whether an aggregate may stand where the parser is.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Aggregating {
    #[default]
    Never,
    Here,
    Inside,
}

/// Variables of a pattern as seen from outside.
#[derive(Default)]
struct Scope {
    vars: FxHashSet<Var>,
    /// those that BIND, AS or VALUES give a value
    defined: FxHashSet<Var>,
}

impl Scope {
    fn define(&mut self, var: Var) {
        self.vars.insert(var);
        self.defined.insert(var);
    }

    fn join(&mut self, mut other: Self) {
        // into the larger one, so that long lists of patterns take time as they are long
        if other.vars.len() > self.vars.len() {
            std::mem::swap(self, &mut other);
        }
        self.vars.extend(other.vars);
        self.defined.extend(other.defined);
    }
}

impl<'a> Parser<'a> {
    pub fn new(window: Window<'a>, options: &'a ParseOptions<'a>) -> Self {
        Self {
            cursor: Cursor::new(window),
            options,
            params: &[],
            base: None,
            version: None,
            prefixes: HashMap::new(),
            labels: Labels::default(),
            fresh_blanks: 0,
            unit: Unit::default(),
            errors: Vec::new(),
            output: None,
        }
    }

    /// Constants of a shape become parameters.
    pub fn with_params(self, params: &'a [(Span, u32)]) -> Self {
        Self { params, ..self }
    }

    /// The failure of the stream, if that is why the text ended.
    pub fn take_read_error(&mut self) -> Option<std::io::Error> {
        self.cursor.window().take_error()
    }

    /// The number of the constant of the shape that begins here; all its tokens are taken.
    fn param(&mut self) -> Option<u32> {
        let (span, number) = *self.params.first()?;
        if span.start != self.cursor.span().start {
            return None;
        }
        self.params = &self.params[1..];
        while self.cursor.span().start < span.end {
            self.cursor.advance();
        }
        Some(number)
    }

    /// The name of a variable, as messages show it.
    fn name(&self, var: Var) -> String {
        format!("?{}", self.unit.names.name(var).unwrap_or_default())
    }
}
