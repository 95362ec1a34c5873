//! An open bracket: its kind, and the counts on the longest ways through it.

/// Kinds of brackets, by their contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// a group, or what is outside all brackets
    Group,
    /// rows of VALUES, data of an update, a template
    Data,
    /// a list, property list or path
    Terms,
    Expression,
}

/// The meaning of the next bracket of a group, by the clause under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Clause {
    Patterns,
    /// FILTER and BIND: one bracket holds an expression
    Once,
    /// SELECT, GROUP, HAVING, ORDER: all do
    Many,
    /// the block of VALUES
    Values,
    /// the block of INSERT, DELETE, DATA, CONSTRUCT
    Template,
    /// what DESCRIBE names: each IRI is bound on top of those before it
    Describe,
}

/// An open bracket.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) close: u8,
    pub(super) clause: Clause,
    pub(super) chain: usize,
    pub(super) branches: usize,
    /// links since the last separator, and the most there were between two
    pub(super) run: usize,
    longest_run: usize,
    pub(super) run_branches: usize,
    longest_run_branches: usize,
    /// the longest ways in the brackets inside
    pub(super) below_chain: usize,
    pub(super) below_branches: usize,
    /// levels of it and the signs before it
    pub(super) levels: usize,
    /// how often the parser reads it: a power of two
    pub(super) doublings: u32,
}

impl Frame {
    pub(super) fn new(kind: Kind, close: u8, levels: usize, doublings: u32) -> Self {
        Self {
            kind,
            close,
            clause: Clause::Patterns,
            chain: 0,
            branches: 0,
            run: 0,
            longest_run: 0,
            run_branches: 0,
            longest_run_branches: 0,
            below_chain: 0,
            below_branches: 0,
            levels,
            doublings,
        }
    }

    /// Links on the longest way through it.
    pub(super) fn whole_chain(&self) -> usize {
        self.chain + self.longest_run.max(self.run) + self.below_chain
    }

    /// Branches on the longest way through it.
    pub(super) fn whole_branches(&self) -> usize {
        self.branches + self.longest_run_branches.max(self.run_branches) + self.below_branches
    }

    /// A comma, semicolon or full stop: what follows builds on nothing before it.
    pub(super) fn separate(&mut self) {
        self.longest_run = self.longest_run.max(std::mem::take(&mut self.run));
        self.longest_run_branches = self.longest_run_branches.max(std::mem::take(&mut self.run_branches));
    }
}
