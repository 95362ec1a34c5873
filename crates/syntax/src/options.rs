//! How a text is parsed, and how much of it there may be.

/// Limits of a text. Each is asked while the text is parsed, so a text beyond one costs no more
/// than one within.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// `query_depth`: brackets, calls, groups, `!` and triple terms within each other. One level
    /// takes up to [`Limits::DEPTH_BYTES`] of stack.
    pub depth: usize,
    /// `query_chain`: OPTIONAL, MINUS and LATERAL of a group, `+ - * /` of an expression, along the
    /// deepest way: parts that have those before them within them.
    pub chain: usize,
    /// `query_branches`: parts of UNION, `||`, `&&` and FILTER.
    pub branches: usize,
    /// `query_variables`: different variables.
    pub variables: usize,
    /// `query_patterns`: triple patterns and paths. Data do not count.
    pub patterns: usize,
    /// `query_bytes`: the text.
    pub bytes: usize,
    /// `token_bytes`: a token of a stream.
    pub token_bytes: usize,
    /// `update_labels`: labels of blank nodes in data, which must not return in later data.
    pub labels: usize,
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
            errors: 8,
        }
    }
}

/// How a text is parsed.
#[derive(Clone, Copy, Default, Debug)]
pub struct ParseOptions<'a> {
    /// The IRI that relative ones begin from, unless the text has a BASE.
    pub base: Option<&'a str>,
    /// Limits.
    pub limits: Limits,
    /// Constants become parameters, and the query gets its [`Shape`](crate::Shape).
    pub is_shaped: bool,
    /// Prefixes that the data have, with their namespaces: for hints alone.
    pub prefixes: &'a [(String, String)],
}
