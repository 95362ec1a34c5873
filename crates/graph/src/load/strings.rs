//! The string trees of a load, on a thread of their own: new strings are handed over in batches,
//! and encoded and written while further chunks are numbered.
//!
//! One thread writes all trees, and where a batch ends follows from the strings: what is written,
//! and at which place of the file, depends on the input and the size of the sample alone.
//!
//! The codec of a tree is chosen from a sample before its first string, so the first batch of each
//! is that sample. A tree that does not fill it, or is of little input, gets symbols.

use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, Sender, bounded};
use snowmelt_store::{Build, StringBatch, StringTree, StringTreeBuilder, TreeWriter};

use crate::dict::Tree;
use crate::input::error::LoadError;

/// Bytes of strings per tree from which its codec is chosen.
pub(super) const SAMPLE_BYTES: usize = 8 << 20;

/// Bytes of RDF text from which on dictionaries are made, and of strings. Choosing them would
/// double the half second that less takes, for a database that any memory holds.
pub(super) const MUCH_TEXT: u64 = 256 << 20;
pub(super) const MANY_STRINGS: u64 = 32 << 20;

/// Bytes of strings that are handed over together after that.
const BATCH_BYTES: usize = 64 << 10;

/// Batches that wait for the thread, at most.
const WAITING: usize = 16;

/// Ends with the trees.
type WriterThread = JoinHandle<Result<[StringTree; 3], LoadError>>;

/// Gives numbers to new strings, and has them written.
pub(super) struct StringWriter {
    pending: [PendingStrings; 3],
    /// `None` once the thread has ended.
    thread: Option<(Sender<Handed>, WriterThread)>,
}

/// Strings of a tree that were not handed over yet.
struct PendingStrings {
    strings: StringBatch,
    /// Numbers given before these.
    before: u64,
    /// Bytes with which they are handed over.
    most: usize,
}

/// Work for the thread.
enum Handed {
    Strings(Tree, StringBatch),
    /// There are no more.
    End,
}

impl StringWriter {
    /// Writers of the trees of a build. The codec of each is chosen from `sample_bytes` of it, with
    /// dictionaries if there is much input.
    pub(super) fn new(build: &Build, sample_bytes: usize, is_much: bool) -> Self {
        let least = if is_much { sample_bytes } else { usize::MAX };
        let trees = Tree::ALL.map(|tree| TreeUnderWay::Empty(Some(build.new_tree(tree.name())), least));
        let (to, from) = bounded(WAITING);
        let thread = thread::Builder::new()
            .name("load-strings".to_owned())
            .spawn(move || write(trees, &from))
            .expect("a thread can be started");
        let pending = Tree::ALL.map(|_| PendingStrings {
            strings: StringBatch::default(),
            before: 0,
            most: sample_bytes,
        });
        Self { pending, thread: Some((to, thread)) }
    }

    /// The number of a new string.
    pub(super) fn push(&mut self, tree: Tree, string: &[u8]) -> Result<u64, LoadError> {
        let pending = &mut self.pending[tree as usize];
        let number = pending.before + pending.strings.len() as u64;
        pending.strings.push(string);
        if pending.strings.bytes() >= pending.most {
            self.hand_over(tree)?;
        }
        Ok(number)
    }

    /// The trees, once all strings are written.
    pub(super) fn finish(mut self) -> Result<[StringTree; 3], LoadError> {
        for tree in Tree::ALL {
            self.hand_over(tree)?;
        }
        self.send(Handed::End)?;
        self.join()
    }

    fn hand_over(&mut self, tree: Tree) -> Result<(), LoadError> {
        let pending = &mut self.pending[tree as usize];
        let strings = std::mem::take(&mut pending.strings);
        pending.before += strings.len() as u64;
        pending.most = BATCH_BYTES;
        self.send(Handed::Strings(tree, strings))
    }

    fn send(&mut self, handed: Handed) -> Result<(), LoadError> {
        let sent = self.thread.as_ref().is_some_and(|(to, _)| to.send(handed).is_ok());
        // the thread takes everything unless it has failed
        if sent { Ok(()) } else { self.join().map(drop) }
    }

    /// Waits for the end of the thread, which comes when it is handed no more.
    fn join(&mut self) -> Result<[StringTree; 3], LoadError> {
        let (to, thread) = self.thread.take().ok_or(LoadError::Cancelled)?;
        drop(to);
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for StringWriter {
    /// The build must not be given up under its hands.
    fn drop(&mut self) {
        if let Some((to, thread)) = self.thread.take() {
            drop(to);
            drop(thread.join());
        }
    }
}

/// A tree before and after its first strings.
enum TreeUnderWay {
    /// With the bytes of a sample that a dictionary is chosen from.
    Empty(Option<TreeWriter>, usize),
    Building(Box<StringTreeBuilder>),
}

impl TreeUnderWay {
    /// The builder, with a codec chosen from these strings if there was none.
    fn builder(&mut self, sample: &StringBatch) -> Result<&mut StringTreeBuilder, LoadError> {
        if let Self::Empty(writer, least) = self {
            let writer = writer.take().expect("a tree that could not be begun is not asked for again");
            let strings: Vec<&[u8]> = sample.strings().collect();
            let is_whole = sample.bytes() >= *least;
            let begin = if is_whole { StringTreeBuilder::new } else { StringTreeBuilder::with_symbols };
            *self = Self::Building(Box::new(begin(writer, &strings)?));
        }
        match self {
            Self::Building(builder) => Ok(builder),
            Self::Empty(..) => unreachable!("begun above"),
        }
    }
}

/// The thread: writes what it is handed.
fn write(mut trees: [TreeUnderWay; 3], handed: &Receiver<Handed>) -> Result<[StringTree; 3], LoadError> {
    loop {
        match handed.recv() {
            Ok(Handed::Strings(tree, strings)) => {
                trees[tree as usize].builder(&strings)?.push_all(strings)?;
            }
            Ok(Handed::End) => break,
            Err(_) => return Err(LoadError::Cancelled),
        }
    }
    let finish = |tree: TreeUnderWay| match tree {
        TreeUnderWay::Building(builder) => builder.finish(),
        TreeUnderWay::Empty(..) => unreachable!("each tree was handed its last strings, if none"),
    };
    let [iris, literals, texts] = trees;
    Ok([finish(iris)?, finish(literals)?, finish(texts)?])
}
