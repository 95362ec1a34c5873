//! Updates that are read in pieces: of any length, while the disk has room for the changes.

use std::collections::VecDeque;
use std::io::Read;

use snowmelt_database::TempSpace;
use snowmelt_graph::{ChangePhase, ChangeWatch, Changed, GraphError, Staged, Transaction};
use spargebra::GraphUpdateOperation;

use super::data::stage;
use super::{Begun, UpdateOptions, Updated, parse_bound};
use crate::bounds::{Limits, TextKind, document_failed, with_room};
use crate::engine::QueryEngine;
use crate::error::QueryError;
use crate::text::pieces::{PIECE_BYTES, Piece, Pieces};

impl QueryEngine {
    /// Runs an update of any length, of which about a MiB is in memory at a time; when it
    /// returns, what it did is durable. The data of INSERT DATA and DELETE DATA is cut between
    /// its triples; any other operation may have `longest` bytes.
    ///
    /// A text of less than a MiB is parsed whole before anything begins. Of a longer one, too,
    /// everything is parsed before the turn of the writer: quads of INSERT DATA wait in temporary
    /// space, as does the text of all else, which is parsed once more when it runs.
    ///
    /// # Errors
    /// As [`Self::update`], with places in the whole text; a source that cannot be read or is
    /// not UTF-8; an operation that is too long; parameters, which it cannot have. Nothing has
    /// changed then.
    pub fn update_from(
        &self,
        source: impl Read,
        longest: usize,
        options: &UpdateOptions,
    ) -> Result<Updated, QueryError> {
        let limits = Limits::from_now(options.timeout, options.cancel.clone());
        options.progress.enter(ChangePhase::Parsing);
        let mut pieces = Pieces::new(source, longest).of_about(self.piece_bytes());
        // one with parameters stays whole
        if options.bindings.is_empty() {
            pieces = pieces.of_tokens(self.piece_tokens());
        }
        let first = pieces.next()?;
        if pieces.is_over() {
            let text = first.as_ref().map_or("", |piece| &piece.text);
            return self.update_whole(text, TextKind::Bounded, options);
        }
        if let Some((name, _)) = options.bindings.first() {
            let why = "an update that is read in pieces has none";
            return Err(QueryError::Parameter { name: name.clone(), why });
        }
        let mut line = PieceLine::new(self)?;
        let mut memory = self.graph().database().memory().charge("an update");
        let mut next = first;
        while let Some(piece) = next {
            memory.set((pieces.held_bytes() + piece.text.len()) as u64).map_err(GraphError::from)?;
            limits.check()?;
            line.add(piece, options, &limits)?;
            next = pieces.next()?;
        }
        drop((pieces, memory));
        let mut txn = self.begin(options, &limits)?;
        let mut begun = Begun::default();
        let changed = line.run(&mut txn, options, &limits, &mut begun)?;
        let txn = txn.commit_unless_unchanged(changed)?;
        Ok(Updated { txn, changed, warnings: begun.warnings })
    }
}

impl QueryEngine {
    /// Bytes of a piece of an update; where there is little memory, little.
    pub(super) fn piece_bytes(&self) -> usize {
        // The trees of dense data are some fifty times its text.
        const OF_MEMORY: u64 = 256;
        const LEAST: u64 = 64 << 10;
        (self.graph().database().memory().total() / OF_MEMORY).clamp(LEAST, PIECE_BYTES as u64) as usize
    }

    /// Tokens of a piece: its estimated memory is no more than a quarter of what texts may take.
    fn piece_tokens(&self) -> usize {
        // A comma and its object are weighed as a quad, with long names as more.
        const EACH_TOKEN: u64 = 1024;
        const LEAST: u64 = 1 << 10;
        let database = self.graph();
        let room = database.database().memory().total().saturating_sub(database.database().pool_bytes());
        (room / 4 / EACH_TOKEN).max(LEAST) as usize
    }
}

/// The pieces of an update that wait for their turn.
struct PieceLine<'a> {
    engine: &'a QueryEngine,
    staged: Staged,
    /// of texts
    space: TempSpace,
    pieces: VecDeque<WaitingPiece>,
}

/// The work that is left to do for a piece.
enum WaitingPiece {
    /// The next chunks of what is staged are inserted.
    Data { chunks: usize },
    /// Its text is run.
    Text { piece: Piece, at: u64, len: usize },
}

impl<'a> PieceLine<'a> {
    fn new(engine: &'a QueryEngine) -> Result<Self, QueryError> {
        let (staged, space) = (Staged::new(engine.graph(), None), engine.graph().database().temp_space()?);
        Ok(Self { engine, staged, space, pieces: VecDeque::new() })
    }

    fn add(&mut self, mut piece: Piece, options: &UpdateOptions, limits: &Limits) -> Result<(), QueryError> {
        let before = self.staged.chunks();
        let is_data = self.stage(&piece, options, limits).map_err(|error| piece.placed(error))?;
        self.pieces.push_back(if is_data {
            WaitingPiece::Data { chunks: self.staged.chunks() - before }
        } else {
            let text = std::mem::take(&mut piece.text);
            let at = self.space.append(&[text.as_bytes()]).map_err(GraphError::from)?;
            WaitingPiece::Text { piece, at, len: text.len() }
        });
        Ok(())
    }

    /// Parses a piece; its quads are staged if it is INSERT DATA and nothing else.
    fn stage(&mut self, piece: &Piece, options: &UpdateOptions, limits: &Limits) -> Result<bool, QueryError> {
        let (engine, staged, text) = (self.engine, &mut self.staged, &piece.text);
        let room = engine.text_limits().measure(text)?.stack_bytes();
        with_room(room, || {
            let _text = engine.reserve_update(text, TextKind::Bounded, options, limits)?;
            let update = parse_bound(text, options)?;
            let all = update.operations.iter().map(|operation| match operation {
                GraphUpdateOperation::InsertData { data } => Some(data),
                _ => None,
            });
            let Some(all) = all.collect::<Option<Vec<_>>>() else { return Ok(false) };
            for (at, data) in all.into_iter().enumerate() {
                stage(staged, data, at > 0 || !piece.goes_on, options)?;
            }
            Ok(true)
        })
    }

    fn run(
        mut self,
        txn: &mut Transaction,
        options: &UpdateOptions,
        limits: &Limits,
        begun: &mut Begun,
    ) -> Result<Changed, QueryError> {
        let mut changed = Changed::default();
        let mut memory = self.engine.graph().database().memory().charge("an update");
        for piece in self.pieces {
            limits.check()?;
            changed += match piece {
                WaitingPiece::Data { chunks } => {
                    let watch = ChangeWatch { interrupt: limits, progress: &options.progress };
                    let inserted = txn.insert_chunks(&mut self.staged, chunks, &mut begun.blanks, watch);
                    inserted.map_err(|error| document_failed(limits, error))?
                }
                WaitingPiece::Text { piece, at, len } => {
                    memory.set((len + begun.blanks.bytes()) as u64).map_err(GraphError::from)?;
                    let bytes = self.space.read(at, len).map_err(GraphError::from)?;
                    let text = std::str::from_utf8(&bytes);
                    let text = text.map_err(|error| QueryError::Spill { what: error.to_string() })?;
                    begun.goes_on = piece.goes_on;
                    let kind = TextKind::Bounded;
                    let done = self.engine.piece_in(txn, text, kind, options, limits, begun);
                    done.map_err(|error| piece.placed(error))?
                }
            };
        }
        Ok(changed)
    }
}
