//! Counts of a text, and the limits that they keep.
//!
//! All recursion of the parser goes through [`Parser::nested`], which counts it.

use super::{Parsed, Parser};
use crate::error::{ErrorCode, LimitReached, SyntaxError};
use crate::tree::Var;

/// How deep the tree is where the parser is, and below.
#[derive(Clone, Copy, Default)]
pub(super) struct Levels {
    depth: usize,
    /// links of the present level
    own: usize,
    /// links along the deepest way below it
    below: usize,
    /// EXISTS so far, wherever they stand
    exists: usize,
}

impl Parser<'_> {
    /// Parses something that nests, within the limits.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let depth = self.unit.levels.depth + 1;
        self.keep("query_depth", depth, self.options.limits.depth)?;
        self.unit.measure.depth = self.unit.measure.depth.max(depth);
        self.unit.levels.depth = depth;
        let parsed = self.beside(parse);
        self.unit.levels.depth = depth - 1;
        parsed
    }

    /// Parses something whose links are no part of the present row.
    pub(super) fn beside<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let outer = self.unit.levels;
        self.unit.levels = Levels { own: 0, below: 0, ..outer };
        let parsed = parse(self);
        let height = self.unit.levels.own + self.unit.levels.below;
        let exists = self.unit.levels.exists;
        self.unit.levels = Levels { below: outer.below.max(height), exists, ..outer };
        let parsed = parsed?;
        self.check_chain()?;
        Ok(parsed)
    }

    /// Counts a part that has the one before it within it.
    pub(super) fn link(&mut self) -> Parsed<()> {
        self.unit.levels.own += 1;
        self.check_chain()
    }

    /// Counts an EXISTS. Each is a join of its group, in whatever expression it stands.
    pub(super) fn count_exists(&mut self) -> Parsed<()> {
        self.unit.levels.exists += 1;
        self.check_chain()
    }

    fn check_chain(&mut self) -> Parsed<()> {
        let links = self.unit.levels.own + self.unit.levels.below + self.unit.levels.exists;
        // The outermost level comes last, and knows the deepest way.
        self.unit.measure.chain = links;
        self.keep("query_chain", links, self.options.limits.chain)
    }

    /// Counts a part of a list, as of `||` and UNION.
    pub(super) fn branch(&mut self) -> Parsed<()> {
        self.unit.measure.branches += 1;
        self.keep("query_branches", self.unit.measure.branches, self.options.limits.branches)
    }

    pub(super) fn count_pattern(&mut self) -> Parsed<()> {
        self.unit.measure.patterns += 1;
        self.keep("query_patterns", self.unit.measure.patterns, self.options.limits.patterns)
    }

    /// Counts bytes of the tree.
    pub(super) fn weigh(&mut self, bytes: usize) -> Parsed<()> {
        self.unit.measure.bytes += bytes;
        self.keep("tree_bytes", self.unit.measure.bytes, self.options.limits.tree_bytes)?;
        self.check_length()
    }

    /// Refuses an operation that is too long and no data.
    pub(super) fn check_length(&mut self) -> Parsed<()> {
        let len = if self.unit.data.is_some() { 0 } else { self.cursor.span().start - self.unit.start };
        self.keep("operation_bytes", len, self.options.limits.operation_bytes)
    }

    /// A variable without a name.
    pub(super) fn fresh_var(&mut self) -> Parsed<Var> {
        let var = self.unit.names.fresh();
        self.check_vars()?;
        Ok(var)
    }

    pub(super) fn intern(&mut self, name: &str) -> Parsed<Var> {
        let var = self.unit.names.intern(name);
        self.check_vars()?;
        Ok(var)
    }

    fn check_vars(&mut self) -> Parsed<()> {
        self.keep("query_variables", self.unit.names.len(), self.options.limits.variables)
    }

    /// Refuses a count beyond a limit.
    pub(super) fn keep(&mut self, name: &'static str, count: usize, most: usize) -> Parsed<()> {
        if count <= most { Ok(()) } else { Err(self.beyond(name, most)) }
    }

    pub(super) fn beyond(&mut self, name: &'static str, most: usize) -> Box<SyntaxError> {
        let message = format!("more than {most}, the limit {name}");
        let mut error = self.error(self.cursor.span(), ErrorCode::Limit, message);
        error.limit = Some(LimitReached { name, most: most as u64 });
        error
    }
}
