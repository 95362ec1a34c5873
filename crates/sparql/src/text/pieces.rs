//! A long update, cut into shorter ones while it is read.
//!
//! 1. The text is read as tokens, of which only those of the present piece are kept.
//! 2. It may be cut between two operations, and within the data of INSERT DATA and DELETE DATA
//!    after the dot of a triple and after the block of a graph.
//! 3. It is cut before declarations that follow on an operation: spargebra knows them at the
//!    begin of a text only.
//! 4. A piece begins with the declarations in force where it was cut, and with the opening of
//!    the data that it goes on with. So each is an update that can be parsed by itself.
//!
//! As with [`Tokens`] there is no grammar: what is cut wrongly in a text that is no update does
//! not parse either.

use std::io::Read;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use twox_hash::XxHash3_128;

use super::tokens::Tokens;
use crate::error::{QueryError, place};

/// A piece is cut at the first chance after so many bytes.
pub(crate) const PIECE_BYTES: usize = 1 << 20;
/// Bytes read at a time, at least.
const READ_BYTES: usize = 256 << 10;

/// A part of an update, which is an update itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub text: String,
    /// its first operation is the rest of the last one of the piece before
    pub goes_on: bool,
    /// where the part begins in the whole
    begin: (usize, usize),
    /// lines put before it
    lines_before: usize,
}

impl Piece {
    /// An error of the piece with its place in the whole.
    pub fn placed(&self, error: QueryError) -> QueryError {
        error.placed(|line, column| match line.saturating_sub(self.lines_before) {
            0 => self.begin,
            1 => (self.begin.0, self.begin.1 + column - 1),
            more => (self.begin.0 + more - 1, column),
        })
    }
}

/// Where the text was cut: what comes next is in this state.
#[derive(Clone, Debug)]
enum State {
    /// between two operations
    Between,
    /// after PREFIX or BASE; so many tokens are still to come
    Declaration { text: String, to_come: usize },
    /// after INSERT or DELETE
    Verb { is_insert: bool },
    /// after DATA
    Opening { is_insert: bool },
    /// in the data
    Data(Block),
    /// after GRAPH
    Name { is_insert: bool, name: String },
    /// in any other operation, in so many brackets
    Other { depth: usize },
}

/// A place in the data of an operation.
#[derive(Clone, Debug)]
struct Block {
    is_insert: bool,
    /// the name of the graph whose block this is
    graph: Option<Rc<str>>,
    /// brackets that are open within the block
    depth: usize,
    /// the block of a graph has just ended
    after_block: bool,
}

/// A place at which the text may be cut.
#[derive(Debug)]
struct Cut {
    at: usize,
    declarations: usize,
    /// the data that goes on there
    data: Option<Block>,
}

/// Reads an update in pieces.
pub(crate) struct Pieces<R> {
    source: R,
    has_ended: bool,
    /// of one character, the rest of which is not read yet
    undecoded: Vec<u8>,
    /// from the begin of the piece
    text: String,
    /// read as tokens so far
    at: usize,
    state: State,
    cut: Option<Cut>,
    must_cut: bool,
    /// what the piece begins with
    head: String,
    goes_on: bool,
    begin: (usize, usize),
    declarations: Declarations,
    /// labels of blank nodes in data, by the operation that has them
    labels: FxHashMap<u128, u32>,
    operation: u32,
    longest: usize,
    piece_bytes: usize,
    /// tokens of the piece so far; after `piece_tokens` of them it is cut at the first chance
    tokens: usize,
    piece_tokens: usize,
    read_bytes: usize,
}

impl<R: Read> Pieces<R> {
    /// A text that cannot be cut into pieces of at most `longest` bytes is an error.
    pub fn new(source: R, longest: usize) -> Self {
        Self {
            source,
            has_ended: false,
            undecoded: Vec::new(),
            text: String::new(),
            at: 0,
            state: State::Between,
            cut: None,
            must_cut: false,
            head: String::new(),
            goes_on: false,
            begin: (1, 1),
            declarations: Declarations::default(),
            labels: FxHashMap::default(),
            operation: 0,
            longest,
            piece_bytes: PIECE_BYTES.min(longest),
            tokens: 0,
            piece_tokens: usize::MAX,
            read_bytes: READ_BYTES,
        }
    }

    /// Cuts into pieces of about so many bytes, or the usual size if that is less.
    pub fn of_about(mut self, piece_bytes: usize) -> Self {
        self.piece_bytes = self.piece_bytes.min(piece_bytes);
        self
    }

    /// Cuts after so many tokens, too: dense data becomes many quads.
    pub fn of_tokens(mut self, piece_tokens: usize) -> Self {
        self.piece_tokens = piece_tokens;
        self
    }

    /// Cuts only where it must.
    pub fn uncut(mut self) -> Self {
        (self.piece_bytes, self.piece_tokens) = (usize::MAX, usize::MAX);
        self
    }

    /// Whether all of it has been taken.
    pub fn is_over(&self) -> bool {
        self.has_ended && self.text.is_empty()
    }

    /// Bytes held.
    pub fn held_bytes(&self) -> usize {
        self.text.capacity()
            + 3 * self.declarations.bytes
            + self.labels.capacity() * (size_of::<(u128, u32)>() + 1)
    }

    /// The next piece. Only the last can be longer than the text that is in it.
    ///
    /// # Errors
    /// A source that cannot be read or is not UTF-8; an operation that is too long; labels of
    /// blank nodes that two operations share.
    pub fn next(&mut self) -> Result<Option<Piece>, QueryError> {
        loop {
            let more = !self.has_ended;
            let Some((start, token)) = Tokens::from(&self.text, self.at, more).next() else {
                if more {
                    self.read()?;
                    continue;
                }
                return Ok((!self.text.is_empty()).then(|| self.last()));
            };
            let end = start + token.len();
            // A dot or two, and the signs of a language or datatype, may belong to it.
            let is_whole = self.text[end..].trim_start_matches('.').len() >= 4;
            if more && !is_whole {
                self.read()?;
                continue;
            }
            self.token(start, end)?;
            self.at = end;
            self.tokens += 1;
            let is_dense = self.tokens >= self.piece_tokens;
            let enough = self.cut.as_ref().is_some_and(|cut| cut.at >= self.piece_bytes || is_dense);
            if enough || self.at > self.longest || std::mem::take(&mut self.must_cut) {
                return Ok(Some(self.cut_off()?));
            }
        }
    }

    /// Reads on.
    fn read(&mut self) -> Result<(), QueryError> {
        // A long token is read again from its begin each time.
        let wanted = self.read_bytes.max(self.text.len() - self.at);
        if self.text.len() > self.longest.saturating_mul(2) {
            return Err(self.too_long());
        }
        let mut bytes = std::mem::take(&mut self.undecoded);
        let before = bytes.len();
        let read = (&mut self.source).take(wanted as u64).read_to_end(&mut bytes);
        read.map_err(QueryError::Read)?;
        self.has_ended = bytes.len() - before < wanted;
        let valid = match std::str::from_utf8(&bytes) {
            Ok(_) => bytes.len(),
            Err(error) if error.error_len().is_none() && !self.has_ended => error.valid_up_to(),
            Err(error) => {
                let valid = std::str::from_utf8(&bytes[..error.valid_up_to()]).expect("so it says");
                self.text.push_str(valid);
                return Err(self.wrong(self.text.len(), "the text is not UTF-8".to_owned()));
            }
        };
        self.text.push_str(std::str::from_utf8(&bytes[..valid]).expect("looked at"));
        self.undecoded = bytes.split_off(valid);
        Ok(())
    }

    fn token(&mut self, start: usize, end: usize) -> Result<(), QueryError> {
        let token = &self.text[start..end];
        let is = |word: &str| token.eq_ignore_ascii_case(word);
        let next = match &mut self.state {
            State::Between if (is("PREFIX") || is("BASE")) && self.cut.is_some() => {
                self.must_cut = true;
                return Ok(());
            }
            State::Between if is("PREFIX") => State::Declaration { text: token.to_owned(), to_come: 2 },
            State::Between if is("BASE") => State::Declaration { text: token.to_owned(), to_come: 1 },
            State::Between if is("INSERT") || is("DELETE") => State::Verb { is_insert: is("INSERT") },
            State::Between if token == ";" => return Ok(()),
            State::Between => State::Other { depth: 0 }.after(token),
            State::Declaration { text, to_come } => {
                *text += " ";
                *text += token;
                *to_come -= 1;
                if *to_come > 0 {
                    return Ok(());
                }
                let text = std::mem::take(text);
                self.declarations.add(text);
                State::Between
            }
            State::Verb { is_insert } if is("DATA") => State::Opening { is_insert: *is_insert },
            State::Opening { is_insert } if token == "{" => State::Data(Block::new(*is_insert, None)),
            State::Verb { .. } | State::Opening { .. } => State::Other { depth: 0 }.after(token),
            State::Name { is_insert, name } if token == "{" => {
                State::Data(Block::new(*is_insert, Some(name.as_str().into())))
            }
            State::Name { name, .. } => {
                *name += token;
                return Ok(());
            }
            State::Data(_) => return self.in_data(start, end),
            State::Other { depth: 0 } if token == ";" => {
                self.cut = Some(Cut { at: end, declarations: self.declarations.texts.len(), data: None });
                State::Between
            }
            State::Other { .. } => std::mem::replace(&mut self.state, State::Between).after(token),
        };
        if matches!(next, State::Opening { .. }) {
            self.operation += 1;
        }
        self.state = next;
        Ok(())
    }

    fn in_data(&mut self, start: usize, end: usize) -> Result<(), QueryError> {
        let token = &self.text[start..end];
        let State::Data(data) = &mut self.state else { unreachable!("asked for data only") };
        let cut_at = match token {
            "." if data.depth == 0 => Some(end),
            _ if data.after_block => Some(start),
            _ => None,
        };
        data.after_block = false;
        if let Some(at) = cut_at {
            let data = Some(data.clone());
            self.cut = Some(Cut { at, declarations: self.declarations.texts.len(), data });
        }
        match token {
            "{" | "[" | "(" => data.depth += 1,
            "}" if data.depth == 0 && data.graph.is_some() => {
                *data = Block { after_block: true, ..Block::new(data.is_insert, None) };
            }
            "}" if data.depth == 0 => self.state = State::Other { depth: 0 },
            "}" | "]" | ")" => data.depth = data.depth.saturating_sub(1),
            _ if data.depth == 0 && data.graph.is_none() && token.eq_ignore_ascii_case("GRAPH") => {
                self.state = State::Name { is_insert: data.is_insert, name: String::new() };
            }
            _ if data.is_insert && token.starts_with("_:") => {
                let first =
                    *self.labels.entry(XxHash3_128::oneshot(token.as_bytes())).or_insert(self.operation);
                if first != self.operation {
                    let message = format!("two INSERT DATA share the blank node {token}");
                    return Err(self.wrong(start, message));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The piece up to where it can be cut; what was read beyond is read again.
    fn cut_off(&mut self) -> Result<Piece, QueryError> {
        let cut = self.cut.take().ok_or_else(|| self.too_long())?;
        self.declarations.truncate(cut.declarations);
        if self.declarations.bytes > self.longest {
            return Err(self.too_long());
        }
        let rest = self.text.split_off(cut.at);
        let next_begin = self.place(cut.at);
        let mut piece = self.last();
        self.text = rest;
        self.begin = next_begin;
        self.head = self.declarations.texts.iter().flat_map(|text| [text.as_str(), " "]).collect();
        self.goes_on = cut.data.is_some();
        self.state = State::Between;
        if let Some(data) = cut.data {
            let verb = if data.is_insert { "INSERT" } else { "DELETE" };
            self.head += &format!("{verb} DATA {{ ");
            piece.text += "\n}";
            if let Some(graph) = &data.graph {
                self.head += &format!("GRAPH {graph} {{ ");
                piece.text += "}";
            }
            self.state = State::Data(Block { after_block: false, ..data });
        }
        Ok(piece)
    }

    /// The piece of all that is there.
    fn last(&mut self) -> Piece {
        let lines_before = usize::from(!self.head.is_empty());
        let mut text = std::mem::take(&mut self.head);
        if lines_before > 0 {
            text.push('\n');
        }
        text += &self.text;
        self.text.clear();
        (self.at, self.tokens) = (0, 0);
        Piece { text, goes_on: self.goes_on, begin: self.begin, lines_before }
    }

    /// The place in the whole of an offset in the piece.
    fn place(&self, offset: usize) -> (usize, usize) {
        let (line, column) = place(&self.text, offset);
        match line {
            1 => (self.begin.0, self.begin.1 + column - 1),
            _ => (self.begin.0 + line - 1, column),
        }
    }

    fn wrong(&self, offset: usize, message: String) -> QueryError {
        let (line, column) = self.place(offset);
        QueryError::Parse { line, column, message }
    }

    fn too_long(&self) -> QueryError {
        let (line, column) = self.begin;
        QueryError::OperationTooLong { most: self.longest, line, column }
    }
}

/// The declarations so far.
#[derive(Default)]
struct Declarations {
    texts: Vec<String>,
    bytes: usize,
    /// the newest of each name since the last BASE
    newest: FxHashMap<String, usize>,
}

impl Declarations {
    /// Keeps a declaration; clients repeat theirs with every operation.
    fn add(&mut self, text: String) {
        let mut words = text.split(' ');
        let is_base = words.next().is_some_and(|word| word.eq_ignore_ascii_case("BASE"));
        let name = words.next().unwrap_or("").to_owned();
        if self.newest.get(&name).is_some_and(|at| self.texts[*at] == text) {
            return;
        }
        if is_base {
            self.newest.clear();
        }
        self.newest.insert(name, self.texts.len());
        self.bytes += text.len() + 1;
        self.texts.push(text);
    }

    /// Forgets those that came later.
    fn truncate(&mut self, len: usize) {
        if len < self.texts.len() {
            let kept = self.texts.drain(..).take(len).collect::<Vec<_>>();
            *self = Self::default();
            kept.into_iter().for_each(|text| self.add(text));
        }
    }
}

impl Block {
    fn new(is_insert: bool, graph: Option<Rc<str>>) -> Self {
        Self { is_insert, graph, depth: 0, after_block: false }
    }
}

impl State {
    /// The state of another operation after a token of it.
    fn after(self, token: &str) -> Self {
        let Self::Other { depth } = self else { return self };
        match token {
            "{" | "[" | "(" => Self::Other { depth: depth + 1 },
            "}" | "]" | ")" => Self::Other { depth: depth.saturating_sub(1) },
            _ => Self::Other { depth },
        }
    }
}

#[cfg(test)]
mod tests;
