//! How a text is parsed, and how much of it there may be.

use std::fmt;

use crate::shape::Shape;

/// Limits of a text. Each is asked while the text is parsed, so a text beyond one costs no more
/// than one within.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// `query_depth`: brackets, calls, groups, `!` and triple terms within each other. One level
    /// takes up to [`Limits::DEPTH_BYTES`] of stack.
    pub depth: usize,
    /// `query_chain`: OPTIONAL, MINUS, LATERAL and BIND of a group, AS, `+ - * /` of an expression,
    /// `/` and `|` of a path, along the deepest way; and all EXISTS. An engine's tree has such
    /// parts within each other, even where the tree of the text has a list.
    pub chain: usize,
    /// `query_branches`: parts of UNION, `||`, `&&`, FILTER and negated paths; groups, GRAPH,
    /// SERVICE and VALUES beside each other.
    pub branches: usize,
    /// `query_variables`: different variables.
    pub variables: usize,
    /// `query_patterns`: triple patterns and paths. Data and templates do not count.
    pub patterns: usize,
    /// `query_bytes`: the text.
    pub bytes: usize,
    /// `token_bytes`: a token of a stream.
    pub token_bytes: usize,
    /// `update_labels`: labels of blank nodes in data, which must not return in later data.
    pub labels: usize,
    /// `operation_bytes`: an operation of an update that is no data.
    pub operation_bytes: usize,
    /// `tree_bytes`: the terms of a tree, as [`Measure::bytes`](crate::tree::Measure::bytes) counts
    /// them. Data of a stream go out before they take so many.
    pub tree_bytes: usize,
    /// Errors that one pass tells, at most.
    pub errors: usize,
}

impl Limits {
    /// Bytes of stack that a level of depth takes, at most.
    pub const DEPTH_BYTES: usize = 16 << 10;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 200,
            chain: 1000,
            branches: 30_000,
            variables: 10_000,
            patterns: 2000,
            bytes: usize::MAX,
            token_bytes: 64 << 20,
            labels: 1 << 22,
            operation_bytes: usize::MAX,
            tree_bytes: usize::MAX,
            errors: 8,
        }
    }
}

/// Prefixes that a text need not declare.
pub trait AssumedPrefixes: fmt::Debug {
    /// The namespace of a prefix, which is without its colon.
    fn namespace(&self, prefix: &str) -> Option<&str>;
}

/// How a text is parsed.
#[derive(Clone, Copy, Default, Debug)]
pub struct ParseOptions<'a> {
    /// The IRI that relative ones begin from, unless the text has a BASE.
    pub base: Option<&'a str>,
    /// Prefixes that mean something where the text does not declare them.
    pub prefixes: Option<&'a dyn AssumedPrefixes>,
    /// Limits.
    pub limits: Limits,
    /// The shape of the query's text, from [`shape_of`](crate::shape_of): its constants become
    /// parameters. Those of an update do not.
    pub shape: Option<&'a Shape>,
}
