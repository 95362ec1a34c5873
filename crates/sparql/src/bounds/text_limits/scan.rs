//! The pass over the tokens.
//!
//! Tokens end where the parser ends them: a bracket inside a string, an IRI or a comment is
//! none. Where the text cannot go on as a query the pass stops, because so does the parser.
//!
//! | part | idea |
//! |---|---|
//! | [`frame`] | what an open bracket holds, and the longest ways through it |
//! | [`brackets`] | a bracket opens and closes |
//! | [`ends`] | where an IRI, a string, a number, a variable ends |
//! | [`words`] | names and keywords |
//! | [`signs`] | operators and separators |

mod brackets;
mod ends;
mod frame;
mod signs;
mod words;

use rustc_hash::FxHashSet;

use super::{Measure, TextLimits};
use frame::{Clause, Frame, Kind};

/// A limit that a text goes beyond, and where.
#[derive(Debug)]
pub(super) struct Over {
    pub at: usize,
    pub limit: &'static str,
    pub most: u64,
}

/// The token before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Last {
    Operand,
    /// an IRI or prefixed name: an operand, or the name of a function
    Name,
    /// a function whose arguments the parser reads twice
    Twice,
    Other,
}

struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    limits: &'a TextLimits,
    frames: Vec<Frame>,
    last: Last,
    /// `!` without another token after it but names
    nots: usize,
    /// levels of the open brackets, and the most there were
    depth: usize,
    deepest: usize,
    /// the longest ways through operations before this
    chain: usize,
    branches: usize,
    tokens: u64,
    work: u64,
    variables: FxHashSet<&'a str>,
    /// the keyword before was DELETE; it and WHERE were the beginning of the operation
    deletes: bool,
    deletes_where: bool,
    /// signs `<` that compare
    comparisons: Vec<usize>,
    /// variables where they stand, and lists of columns
    named: u64,
    selects: u64,
}

type Step = Result<bool, Over>;

/// Measures a text; `Err` with the first limit that it goes beyond.
pub(super) fn measure(text: &str, limits: &TextLimits) -> Result<Measure, Over> {
    let mut scan = Scan::new(text, limits);
    scan.whole()?;
    let whole = &scan.frames[0];
    Ok(Measure {
        depth: scan.deepest,
        chain: scan.chain.max(whole.whole_chain()),
        branches: scan.branches.max(whole.whole_branches()),
    })
}

/// The places of the signs `<` that compare, in a text of any depth and length.
pub(super) fn comparisons(text: &str) -> Vec<usize> {
    let mut scan = Scan::new(text, &TextLimits::NONE);
    // Where there is no limit none is passed.
    let _ = scan.whole();
    scan.comparisons
}

impl<'a> Scan<'a> {
    fn new(text: &'a str, limits: &'a TextLimits) -> Self {
        Scan {
            text,
            bytes: text.as_bytes(),
            at: 0,
            limits,
            frames: vec![Frame::new(Kind::Group, 0, 0, 0)],
            last: Last::Other,
            nots: 0,
            depth: 0,
            deepest: 0,
            chain: 0,
            branches: 0,
            tokens: 0,
            work: 0,
            variables: FxHashSet::default(),
            deletes: false,
            deletes_where: false,
            comparisons: Vec::new(),
            named: 0,
            selects: 0,
        }
    }

    fn whole(&mut self) -> Result<(), Over> {
        while self.token()? {}
        while self.frames.len() > 1 {
            self.close()?;
        }
        self.check()
    }
}

impl Scan<'_> {
    /// Goes over one token; false where the text ends, or cannot go on.
    fn token(&mut self) -> Step {
        let Some(&b) = self.bytes.get(self.at) else { return Ok(false) };
        match b {
            b' ' | b'\t' | b'\n' | b'\r' => {
                self.at += 1;
                return Ok(true);
            }
            b'#' => {
                self.skip_while(|b| b != b'\n' && b != b'\r');
                return Ok(true);
            }
            _ => self.count()?,
        }
        match b {
            b'(' | b'{' | b'[' => self.open(b)?,
            b')' | b'}' | b']' => self.closing(b)?,
            b'<' => return self.less(),
            b'"' | b'\'' => return Ok(self.string()),
            b'0'..=b'9' => self.number(),
            b'?' | b'$' => self.variable()?,
            b'@' => {
                self.at += 1;
                self.skip_while(|b| b.is_ascii_alphanumeric() || b == b'-');
                self.operand(Last::Operand);
            }
            b if is_name(b) || b == b':' || b == b'\\' || b == b'%' => self.word()?,
            _ => self.sign(b)?,
        }
        Ok(true)
    }

    fn over<T>(&self, limit: &'static str, most: u64) -> Result<T, Over> {
        Err(Over { at: self.at, limit, most })
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the outermost stays")
    }

    /// The innermost group.
    fn group(&mut self) -> &mut Frame {
        let at = self.frames.iter().rposition(|f| f.kind == Kind::Group).unwrap_or(0);
        &mut self.frames[at]
    }

    fn skip_while(&mut self, f: impl Fn(u8) -> bool) {
        while self.bytes.get(self.at).is_some_and(|b| f(*b)) {
            self.at += 1;
        }
    }

    /// Counts a token as often as the parser reads it.
    fn count(&mut self) -> Result<(), Over> {
        self.tokens += 1;
        let doublings = self.frame().doublings.min(40);
        self.work = self.work.saturating_add(1 << doublings);
        if self.work.saturating_sub(self.tokens) > self.limits.parsing {
            return self.over("query_parsing", self.limits.parsing);
        }
        // each quad of a graph is a part of a join there, and a token of a list is two quads
        if self.deletes_where && self.frames.len() > 2 {
            self.frame().branches += 2;
            return self.check();
        }
        Ok(())
    }

    /// The parser compares each variable with those that a list of columns has so far: where
    /// they stand, and once more for each list, which may be that of `*`.
    fn check_columns(&mut self) -> Result<(), Over> {
        /// Comparisons that take as long as it takes to read a token.
        const EACH_TOKEN: u64 = 1024;
        let variables = self.variables.len() as u64;
        let compared = self.named.saturating_add(self.selects.saturating_mul(variables)) / 2;
        if self.selects > 0 && compared.saturating_mul(variables) / EACH_TOKEN > self.limits.parsing {
            return self.over("query_parsing", self.limits.parsing);
        }
        Ok(())
    }

    /// An IRI or prefixed name.
    fn name(&mut self) -> Result<(), Over> {
        self.last = Last::Name;
        let frame = self.frame();
        if frame.kind == Kind::Group && frame.clause == Clause::Describe {
            frame.chain += 1;
            return self.check();
        }
        Ok(())
    }

    fn operand(&mut self, last: Last) {
        self.last = last;
        if last == Last::Operand {
            self.nots = 0;
        }
    }
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}
