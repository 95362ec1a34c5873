//! Depth and length of a text, counted while it is parsed, and the stack that follows from them.
//!
//! The rewrites, the planner and the operators go down a query's tree by recursion, and so does
//! dropping it. How deep that is follows from the text: from brackets within each other, and from
//! what builds on what stands before it in a row. The parser counts both and refuses what goes
//! beyond a limit with its place ([`TextLimits`]); the rest is run with a stack that suffices
//! ([`crate::bounds`]).

pub use snowmelt_syntax::Limits as TextLimits;
use snowmelt_syntax::tree::{Measure, Operation, Query, QueryForm, Update, UpdateOperation};

use crate::error::QueryError;

/// Stack bytes that any thread has left.
pub(crate) const BASE_BYTES: usize = 256 << 10;

/// Stack bytes per unit of each measure: at least four times what a development build was
/// measured to use.
const DEPTH_BYTES: usize = 32 << 10;
const CHAIN_BYTES: usize = 8 << 10;
const BRANCH_BYTES: usize = 2 << 10;

/// The same for the parser, per level of depth.
const PARSER_BYTES: usize = 4 * TextLimits::DEPTH_BYTES;

/// Stack bytes per operator of a plan, in the same way.
const OPERATOR_BYTES: usize = 16 << 10;

/// Bytes of tree and plan for each byte of a text; measured: 46 to 76.
const EACH_BYTE: usize = 64;
/// Bytes of a quad in the parser and in the batch that is made of it, or of a pattern; measured:
/// 400 to 750.
const EACH_QUAD: usize = 768;
/// Bytes for each pair of a group and a variable: sets of bits, in all passes over the tree.
const EACH_NAME: usize = 5;
/// Copies of a term for each that is counted: in the tree, among the constants, and where they are
/// looked up.
const COPIES: usize = 4;
/// Bytes of terms for each byte of the text, which the figures above allow for.
const USUAL_GROWTH: usize = 6;

/// The memory of a text's tree and plan, before anything but its length is known.
pub(crate) fn usual_bytes(text: usize) -> usize {
    text.saturating_mul(EACH_BYTE)
}

/// Whether the terms of a tree are much longer than its text, in which a few letters may stand for
/// many, each time.
pub(crate) fn has_grown(text: usize, measure: &Measure) -> bool {
    measure.bytes > text * USUAL_GROWTH
}

/// The limit that counts while a text is parsed.
pub(crate) const TREE_BYTES: &str = "tree_bytes";

/// Refuses a tree that needs more memory than it may take.
pub(crate) fn check_memory(needed: usize, most: usize) -> Result<(), QueryError> {
    if needed <= most {
        return Ok(());
    }
    Err(QueryError::TooLarge { limit: TREE_BYTES, most: needed as u64, line: 1, column: 1 })
}

/// The memory of a query's tree and plan.
pub(crate) fn query_bytes(text: usize, query: &Query) -> usize {
    let triples = if let QueryForm::Construct(template) = &query.form { template.len() } else { 0 };
    tree_bytes(text, &query.measure, query.names.len(), triples)
}

/// The memory of an update's trees.
pub(crate) fn update_bytes(text: usize, update: &Update) -> usize {
    update.operations.iter().map(operation_bytes).fold(usual_bytes(text), usize::saturating_add)
}

/// The memory of a tree of so many variables and quads of data, and of its plan.
fn tree_bytes(text: usize, measure: &Measure, variables: usize, quads: usize) -> usize {
    let grown = measure.bytes.saturating_sub(text * USUAL_GROWTH);
    let parts = [
        usual_bytes(text),
        (quads + measure.patterns).saturating_mul(EACH_QUAD),
        measure.groups.saturating_mul(variables).saturating_mul(EACH_NAME),
        grown.saturating_mul(COPIES),
    ];
    parts.into_iter().fold(0, usize::saturating_add)
}

/// Quads of data and of templates in an operation.
fn quads_of(operation: &UpdateOperation) -> usize {
    match &operation.operation {
        Operation::InsertData(quads) | Operation::DeleteData(quads) => quads.len(),
        Operation::Modify(modify) => modify.insert.len() + modify.delete.len(),
        _ => 0,
    }
}

/// The memory of an operation's tree and plan, beside what each byte of the text takes.
pub(crate) fn operation_bytes(operation: &UpdateOperation) -> usize {
    let (measure, quads) = (&operation.measure, quads_of(operation));
    match operation.operation {
        // a batch takes as much again, and each term is counted twice
        Operation::InsertData(_) | Operation::DeleteData(_) => quads * EACH_QUAD + 2 * measure.bytes,
        _ => tree_bytes(0, measure, operation.names.len(), quads),
    }
}

/// The memory of the tree of an operation that waits for its turn.
pub(crate) fn waiting_bytes(operation: &UpdateOperation) -> usize {
    /// For each byte of the text: nodes, and tables of names.
    const EACH_BYTE: usize = 24;
    /// For each pattern or quad of a template, with the room that lists have.
    const EACH_PATTERN: usize = 256;
    let UpdateOperation { measure, span, .. } = operation;
    let patterns = (measure.patterns + quads_of(operation)) * EACH_PATTERN;
    size_of::<UpdateOperation>() + (span.end - span.start) * EACH_BYTE + patterns + measure.bytes
}

/// Stack for what goes over the tree of a text.
pub(crate) fn tree_stack_bytes(measure: &Measure) -> usize {
    let Measure { depth, chain, branches, .. } = *measure;
    BASE_BYTES + depth * DEPTH_BYTES + chain * CHAIN_BYTES + branches * BRANCH_BYTES
}

/// The same for the operations of an update, one after the other.
pub(crate) fn update_stack_bytes(update: &Update) -> usize {
    let each = update.operations.iter().map(|operation| tree_stack_bytes(&operation.measure));
    each.max().unwrap_or(BASE_BYTES)
}

/// Levels of an update that is read as a stream, at most.
pub(crate) const STREAM_DEPTH: usize = 4096;

/// Stack for the parser of a stream.
pub(crate) fn stream_stack_bytes(limits: &TextLimits) -> usize {
    BASE_BYTES + limits.depth.min(STREAM_DEPTH) * PARSER_BYTES
}

/// Stack for the parser of a text.
pub(crate) fn parser_stack_bytes(text: &str, limits: &TextLimits) -> usize {
    // Each level of depth begins with one of these.
    let levels = text.bytes().filter(|b| matches!(b, b'(' | b'[' | b'{' | b'!' | b'<')).count();
    BASE_BYTES + levels.min(limits.depth).saturating_mul(PARSER_BYTES)
}

/// Stack for what goes over a plan whose longest way from the root has so many operators, for a
/// text that takes `text_bytes`.
pub(crate) fn plan_stack_bytes(text_bytes: usize, levels: usize) -> usize {
    text_bytes + levels * OPERATOR_BYTES
}

/// Refuses a plan of too many patterns: some paths become several.
pub(crate) fn check_patterns(found: usize, limits: &TextLimits) -> Result<(), QueryError> {
    if found <= limits.patterns {
        return Ok(());
    }
    Err(QueryError::TooLarge { limit: "query_patterns", most: limits.patterns as u64, line: 1, column: 1 })
}
