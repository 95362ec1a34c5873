//! Depth and length of a text, measured before any code recurses over it.
//!
//! The parser, the rewrites, the planner and the operators go down a query's tree by recursion,
//! and so does dropping it. How deep that is follows from the text: from brackets within each
//! other, and from what builds on what stands before it in a row. One pass over the tokens
//! ([`scan`]) measures both; what goes beyond a limit is refused with its place, the rest is
//! run with a stack that suffices ([`crate::bounds`]).
//!
//! | limit | counts | why |
//! |---|---|---|
//! | `query_depth` | brackets, calls, groups, `!` within each other | a level costs the parser some ten calls |
//! | `query_chain` | OPTIONAL, MINUS, BIND, EXISTS of a group; `+ - * /` of an expression; steps of a path | a level each |
//! | `query_branches` | UNION, `\|\|`, `&&`, FILTER, groups side by side | flat here, but a level each in the parser's tree |
//! | `query_parsing` | tokens that the parser reads again | it tries some constructs twice, nested ones 2ⁿ times; a list of columns is compared with all variables before it |
//! | `query_variables` | different variables | some work grows with their square |
//! | `query_patterns` | triple patterns, after paths have become patterns | each is an operator |

mod scan;
#[cfg(test)]
mod tests;

use crate::error::QueryError;

/// Limits on texts of queries and updates; data blocks and VALUES count for nothing here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextLimits {
    /// `query_depth`: brackets, calls, groups and `!` within each other.
    pub depth: usize,
    /// `query_chain`: parts in a row that build on those before them, as OPTIONAL and `+` do,
    /// along the deepest way.
    pub chain: usize,
    /// `query_branches`: parts of equal rank, as UNION and `||` join them, along the deepest
    /// way.
    pub branches: usize,
    /// `query_parsing`: tokens the parser may read again.
    pub parsing: u64,
    /// `query_variables`: different variables.
    pub variables: usize,
    /// `query_patterns`: triple patterns.
    pub patterns: usize,
}

impl Default for TextLimits {
    fn default() -> Self {
        Self {
            depth: 200,
            chain: 1000,
            branches: 30_000,
            parsing: 1 << 17,
            variables: 10_000,
            patterns: 2000,
        }
    }
}

/// How deep a text's tree can be: upper bounds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Measure {
    pub depth: usize,
    pub chain: usize,
    pub branches: usize,
}

/// Stack bytes that any thread has left.
pub(crate) const BASE_BYTES: usize = 256 << 10;

/// Stack bytes per unit of each measure: at least four times what a development build was
/// measured to use.
const DEPTH_BYTES: usize = 32 << 10;
const CHAIN_BYTES: usize = 8 << 10;
const BRANCH_BYTES: usize = 2 << 10;

/// Stack bytes per operator of a plan, in the same way.
const OPERATOR_BYTES: usize = 16 << 10;

impl Measure {
    /// Stack for what goes over the text's tree.
    pub fn stack_bytes(&self) -> usize {
        BASE_BYTES + self.depth * DEPTH_BYTES + self.chain * CHAIN_BYTES + self.branches * BRANCH_BYTES
    }
}

/// Stack for what goes over a plan whose longest way from the root has so many operators, for a
/// text that takes `text_bytes`.
pub(crate) fn plan_stack_bytes(text_bytes: usize, levels: usize) -> usize {
    text_bytes + levels * OPERATOR_BYTES
}

/// The places of the signs `<` in a text that compare: only there does what follows up to a `>`
/// not stand for an IRI.
pub(crate) fn comparisons(text: &str) -> Vec<usize> {
    scan::comparisons(text)
}

impl TextLimits {
    const NONE: Self = {
        let most = usize::MAX;
        Self {
            // each open bracket takes memory
            depth: 1 << 16,
            chain: most,
            branches: most,
            parsing: u64::MAX,
            variables: most,
            patterns: most,
        }
    };

    /// Measures a text.
    ///
    /// # Errors
    /// [`QueryError::TooLarge`] names the first limit that it goes beyond, and where. What is
    /// no query may pass: the parser refuses it where this pass stopped.
    pub(crate) fn measure(&self, text: &str) -> Result<Measure, QueryError> {
        scan::measure(text, self)
            .map_err(|over| QueryError::too_large_at(text, over.at, over.limit, over.most))
    }

    pub(crate) fn check_patterns(&self, found: usize) -> Result<(), QueryError> {
        if found <= self.patterns {
            return Ok(());
        }
        Err(QueryError::too_large_at("", 0, "query_patterns", self.patterns as u64))
    }
}
