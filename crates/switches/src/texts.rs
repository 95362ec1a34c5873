//! Texts of queries and updates: where they come from, and the switches of their limits.

use std::fs::File;
use std::io::{Cursor, IsTerminal, Read};
use std::path::Path;

use anyhow::{Context, bail};
use snowmelt_sparql::TextLimits;

/// A query from an argument, a file or standard input.
///
/// # Errors
/// A file that cannot be read; no text; an argument that names a file.
pub fn text(argument: Option<&str>, file: Option<&Path>) -> anyhow::Result<String> {
    let mut text = String::new();
    let from = file.map_or("standard input".into(), |file| file.display().to_string());
    let read = reader(argument, file, "query")?.read_to_string(&mut text);
    read.with_context(|| format!("cannot read the query from {from}"))?;
    Ok(text)
}

/// The text of a query or an update, to be read bit by bit. `what` is `query` or `update`.
///
/// # Errors
/// A file that cannot be opened; no text; an argument that names a file.
pub fn reader(argument: Option<&str>, file: Option<&Path>, what: &str) -> anyhow::Result<Box<dyn Read>> {
    if let Some(file) = file {
        let opened = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
        return Ok(Box::new(opened));
    }
    match argument {
        Some(text) if text != "-" => {
            if !text.contains(char::is_whitespace) && Path::new(text).is_file() {
                bail!("{text} is a file, not the text of {what}: use --file {text}");
            }
            Ok(Box::new(Cursor::new(text.to_owned())))
        }
        None if std::io::stdin().is_terminal() => {
            bail!("no {what}: give it as an argument, with --file F, or on standard input")
        }
        _ => Ok(Box::new(std::io::stdin())),
    }
}

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
            variables: self.query_variables,
            patterns: self.query_patterns,
            ..TextLimits::default()
        }
    }
}
