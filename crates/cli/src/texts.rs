//! The switches of limits on the texts of queries and updates.

use snowmelt_sparql::TextLimits;

/// Switches of limits on texts. An error names the limit with its value; see
/// `snowmelt_sparql::TextLimits`.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Limits of queries and updates")]
pub struct TextArgs {
    /// Brackets, calls, groups and signs within each other
    #[arg(long, value_name = "N", default_value_t = TextLimits::default().depth)]
    pub query_depth: usize,
    /// Parts in a row that build on each other: OPTIONAL, MINUS, BIND, + - * /, steps of a path
    #[arg(long, value_name = "N", default_value_t = TextLimits::default().chain)]
    pub query_chain: usize,
    /// Parts of equal rank: UNION, FILTER, || and &&
    #[arg(long, value_name = "N", default_value_t = TextLimits::default().branches)]
    pub query_branches: usize,
    /// Words and signs that must be read again because of calls within each other
    #[arg(long, value_name = "N", default_value_t = TextLimits::default().parsing)]
    pub query_parsing: u64,
    /// Different variables
    #[arg(long, value_name = "N", default_value_t = TextLimits::default().variables)]
    pub query_variables: usize,
    /// Triple patterns
    #[arg(long, value_name = "N", default_value_t = TextLimits::default().patterns)]
    pub query_patterns: usize,
}

impl TextArgs {
    /// The limits.
    pub fn limits(&self) -> TextLimits {
        TextLimits {
            depth: self.query_depth,
            chain: self.query_chain,
            branches: self.query_branches,
            parsing: self.query_parsing,
            variables: self.query_variables,
            patterns: self.query_patterns,
        }
    }
}
