//! Updates of any length, while the disk has room for their data and memory for the rest.
//!
//! 1. The text is parsed to its end before the turn of the writer ([`read_update`]). Data go into
//!    temporary space batch by batch: quads of INSERT DATA as they are inserted, those of DELETE
//!    DATA as text. Documents of LOAD are parsed. The trees of other operations stay in memory.
//! 2. Then the operations run in their order, in one transaction.

use std::collections::VecDeque;
use std::io::{Cursor, Read};

use snowmelt_database::{Charge, TempSpace};
use snowmelt_graph::{ChangePhase, ChangeWatch, Changed, GraphError, Staged, Transaction};
use snowmelt_syntax::tree::{Operation, UpdateOperation};
use snowmelt_syntax::{BATCH_QUADS, ParseOptions, StreamError, parse_update, read_update, text_of};

use super::data::{stage, written};
use super::document::Loads;
use super::{Begun, UpdateOptions, UpdateRun, Updated};
use crate::bounds::text_limits::{
    STREAM_DEPTH, operation_bytes, stream_stack_bytes, tree_stack_bytes, waiting_bytes,
};
use crate::bounds::{Limits, TextKind, TextLimits, document_failed, with_room};
use crate::engine::QueryEngine;
use crate::error::{QueryError, SparqlLanguage};

/// Memory of a label of a blank node that is remembered.
const LABEL_BYTES: usize = 48;

impl QueryEngine {
    /// Runs an update of any length, of which some MiB are in memory at a time; when it returns,
    /// what it did is durable. Operations but INSERT DATA and DELETE DATA may have `longest` bytes
    /// each, and their trees are kept in memory.
    ///
    /// All of it is parsed before the turn of the writer: data wait in temporary space.
    ///
    /// # Errors
    /// As [`Self::update`]; a source that cannot be read or is not UTF-8; an operation that is too
    /// long; parameters of a long update, which it cannot have. Nothing has changed then.
    pub fn update_from(
        &self,
        mut source: impl Read,
        longest: usize,
        options: &UpdateOptions,
    ) -> Result<Updated, QueryError> {
        let most = self.whole_bytes();
        let mut head = Vec::with_capacity(most + 1);
        source.by_ref().take(most as u64 + 1).read_to_end(&mut head).map_err(QueryError::Read)?;
        if head.len() <= most {
            let text = text_of(&head, &ParseOptions::default());
            let text = text.map_err(|error| QueryError::of_syntax(error, SparqlLanguage::Update))?;
            return self.update_whole(text, TextKind::Bounded, options);
        }
        if let Some((name, _)) = options.bindings.first() {
            let why = "an update that is read as a stream has none";
            return Err(QueryError::Parameter { name: name.clone(), why });
        }
        let limits = Limits::from_now(options.timeout, options.cancel.clone());
        options.progress.enter(ChangePhase::Parsing);
        let mut line = OperationLine::new(self, options, &limits);
        line.read(&mut Cursor::new(head).chain(source), longest)?;
        let mut txn = self.begin(options, &limits)?;
        let mut begun = Begun::new(options);
        let changed = line.run(&mut txn, &mut begun)?;
        let txn = txn.commit_unless_unchanged(changed)?;
        self.renew_old_statistics();
        Ok(Updated { txn, changed, warnings: begun.warnings })
    }

    /// The longest update that is parsed as a whole.
    pub(super) fn whole_bytes(&self) -> usize {
        const OF_MEMORY: u64 = 1024;
        const LEAST: u64 = 64 << 10;
        const MOST: u64 = 1 << 20;
        (self.graph().database().memory().total() / OF_MEMORY).clamp(LEAST, MOST) as usize
    }

    /// Limits of a stream: a token takes no more than its share of the memory, whatever it says.
    fn stream_limits(&self, longest: usize) -> TextLimits {
        const OF_MEMORY: u64 = 64;
        let share = (self.graph().database().memory().total() / OF_MEMORY) as usize;
        let limits = self.text_limits();
        TextLimits {
            depth: limits.depth.min(STREAM_DEPTH),
            token_bytes: share.clamp(1 << 20, limits.token_bytes),
            tree_bytes: 8 * share.clamp(1 << 20, limits.token_bytes),
            labels: (4 * share / LABEL_BYTES).min(limits.labels),
            operation_bytes: longest,
            ..*limits
        }
    }
}

/// The operations of an update that wait for their turn.
struct OperationLine<'a> {
    engine: &'a QueryEngine,
    options: &'a UpdateOptions,
    limits: &'a Limits,
    staged: Staged,
    /// of quads to be deleted
    space: Option<TempSpace>,
    waiting: VecDeque<WaitingOperation>,
    memory: Charge,
    /// memory of the trees that wait
    kept_bytes: usize,
}

/// The work that is left to do for an operation.
enum WaitingOperation {
    /// The next chunks of what is staged are inserted.
    Data { chunks: usize },
    /// The quads of a text are deleted.
    Deletion { at: u64, len: usize },
    /// It is run, with the document of a LOAD.
    Tree(Box<UpdateOperation>, Loads),
}

impl<'a> OperationLine<'a> {
    fn new(engine: &'a QueryEngine, options: &'a UpdateOptions, limits: &'a Limits) -> Self {
        Self {
            engine,
            options,
            limits,
            staged: Staged::new(engine.graph(), None),
            space: None,
            waiting: VecDeque::new(),
            memory: engine.graph().database().memory().charge("an update"),
            kept_bytes: 0,
        }
    }

    fn read(&mut self, source: &mut dyn Read, longest: usize) -> Result<(), QueryError> {
        let limits = self.engine.stream_limits(longest);
        let options = ParseOptions { base: self.options.base.as_deref(), limits, ..ParseOptions::default() };
        let read = with_room(stream_stack_bytes(&limits), || {
            read_update(source, &options, self.batch_quads(), |operation| self.add(operation))
        });
        self.memory.set(self.kept_bytes as u64).map_err(GraphError::from)?;
        read.map_err(|error| match error {
            StreamError::Syntax(error) => QueryError::of_syntax(error, SparqlLanguage::Update),
            StreamError::Read(error) => QueryError::Read(error),
            StreamError::Sink(error) => error,
        })
    }

    /// Quads of a batch, whose trees are not counted: fewer where memory is short.
    fn batch_quads(&self) -> usize {
        const BYTES_EACH: usize = 16 << 10;
        let free = self.engine.graph().database().memory().free() as usize;
        (free / BYTES_EACH).clamp(256, BATCH_QUADS)
    }

    fn add(&mut self, operation: UpdateOperation) -> Result<(), QueryError> {
        self.limits.check()?;
        let held = self.kept_bytes + operation.labels * LABEL_BYTES + operation_bytes(&operation);
        if self.memory.set(held as u64).is_err() {
            let memory = self.engine.graph().database().memory();
            let most_bytes = self.kept_bytes + memory.free() as usize;
            return Err(QueryError::TextMemory {
                text_bytes: operation.span.end,
                needed_bytes: held,
                most_bytes,
            });
        }
        match &operation.operation {
            Operation::InsertData(data) => {
                let before = self.staged.chunks();
                stage(&mut self.staged, data, !operation.goes_on, self.options)?;
                let chunks = self.staged.chunks() - before;
                match self.waiting.back_mut() {
                    Some(WaitingOperation::Data { chunks: waiting }) => *waiting += chunks,
                    _ => self.waiting.push_back(WaitingOperation::Data { chunks }),
                }
            }
            Operation::DeleteData(data) => {
                let text = written(data);
                let space = match &self.space {
                    Some(space) => space,
                    None => {
                        let space = self.engine.graph().database().temp_space();
                        self.space.insert(space.map_err(GraphError::from)?)
                    }
                };
                let at = space.append(&[text.as_bytes()]).map_err(GraphError::from)?;
                self.waiting.push_back(WaitingOperation::Deletion { at, len: text.len() });
            }
            other => {
                let mut loads = Loads::new();
                if let Operation::Load { source, into, .. } = other {
                    let (into, limits) = (into.as_deref(), self.limits);
                    loads.push_back(self.engine.stage_load_of(source, into, self.options, limits)?);
                }
                self.kept_bytes += waiting_bytes(&operation);
                self.waiting.push_back(WaitingOperation::Tree(Box::new(operation), loads));
            }
        }
        Ok(())
    }

    fn run(mut self, txn: &mut Transaction, begun: &mut Begun) -> Result<Changed, QueryError> {
        let mut changed = Changed::default();
        while let Some(waiting) = self.waiting.pop_front() {
            self.limits.check()?;
            changed += match waiting {
                WaitingOperation::Data { chunks } => {
                    let watch = ChangeWatch { interrupt: self.limits, progress: &self.options.progress };
                    let inserted = txn.insert_chunks(&mut self.staged, chunks, &mut begun.blanks, watch);
                    inserted.map_err(|error| document_failed(self.limits, error))?
                }
                WaitingOperation::Deletion { at, len } => {
                    let operations = self.deletion(at, len)?;
                    self.run_of(txn, begun, Loads::new()).operations(operations)?
                }
                WaitingOperation::Tree(operation, loads) => {
                    with_room(tree_stack_bytes(&operation.measure), || {
                        self.run_of(txn, begun, loads).operations(vec![*operation])
                    })?
                }
            };
        }
        Ok(changed)
    }

    fn run_of<'r>(&'r self, txn: &'r mut Transaction, begun: &'r mut Begun, loads: Loads) -> UpdateRun<'r> {
        let (engine, options, limits) = (self.engine, self.options, self.limits.clone());
        UpdateRun { engine, options, limits, txn, begun, loads }
    }

    /// Quads to be deleted, back from temporary space.
    fn deletion(&self, at: u64, len: usize) -> Result<Vec<UpdateOperation>, QueryError> {
        let space = self.space.as_ref().expect("a deletion was put there");
        let bytes = space.read(at, len).map_err(GraphError::from)?;
        let damaged = |what: String| QueryError::Spill { what };
        let text = std::str::from_utf8(&bytes).map_err(|error| damaged(error.to_string()))?;
        let update = parse_update(text, &ParseOptions::default());
        Ok(update.map_err(|error| damaged(error.to_string()))?.operations)
    }
}
