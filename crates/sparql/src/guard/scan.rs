//! The pass over the tokens.
//!
//! Tokens end where the parser ends them: a bracket inside a string, an IRI or a comment is none. Whether `<` begins an IRI or
//! compares follows from the bracket it is in: only expressions compare, and only after an operand. Where the text cannot go on
//! as a query the pass stops, because so does the parser.

use super::{Measure, TextLimits};
use rustc_hash::FxHashSet;

/// A limit that a text goes beyond, and where.
#[derive(Debug)]
pub(super) struct Over {
    pub at: usize,
    pub limit: &'static str,
    pub most: u64,
}

/// What a bracket holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// a group, or what is outside all brackets
    Group,
    /// rows of VALUES, data of an update, a template
    Data,
    /// a list, property list or path
    Terms,
    Expression,
}

/// What the clause under way makes of the next bracket of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Clause {
    Patterns,
    /// FILTER and BIND: one bracket holds an expression
    Once,
    /// SELECT, GROUP, HAVING, ORDER: all do
    Many,
    /// the block of VALUES
    Values,
    /// the block of INSERT, DELETE, DATA, CONSTRUCT
    Template,
}

/// What came before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Last {
    Operand,
    /// an IRI or prefixed name: an operand, or the name of a function
    Name,
    /// a function whose arguments the parser reads twice
    Twice,
    Other,
}

/// An open bracket.
#[derive(Debug)]
struct Frame {
    kind: Kind,
    close: u8,
    clause: Clause,
    chain: usize,
    branches: usize,
    /// links since the last separator, and the most there were between two
    run: usize,
    longest_run: usize,
    run_branches: usize,
    longest_run_branches: usize,
    /// the longest ways in the brackets inside
    below_chain: usize,
    below_branches: usize,
    /// levels of it and the signs before it
    levels: usize,
    /// how often the parser reads it: a power of two
    doublings: u32,
}

impl Frame {
    fn new(kind: Kind, close: u8, levels: usize, doublings: u32) -> Self {
        Self {
            kind,
            close,
            clause: Clause::Patterns,
            chain: 0,
            branches: 0,
            run: 0,
            longest_run: 0,
            run_branches: 0,
            longest_run_branches: 0,
            below_chain: 0,
            below_branches: 0,
            levels,
            doublings,
        }
    }

    /// Links on the longest way through it.
    fn whole_chain(&self) -> usize {
        self.chain + self.longest_run.max(self.run) + self.below_chain
    }

    /// Branches on the longest way through it.
    fn whole_branches(&self) -> usize {
        self.branches + self.longest_run_branches.max(self.run_branches) + self.below_branches
    }

    /// A comma, semicolon or full stop: what follows builds on nothing before it.
    fn separate(&mut self) {
        self.longest_run = self.longest_run.max(std::mem::take(&mut self.run));
        self.longest_run_branches = self.longest_run_branches.max(std::mem::take(&mut self.run_branches));
    }
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
}

type Step = Result<bool, Over>;

/// Measures a text; `Err` with the first limit that it goes beyond.
pub(super) fn measure(text: &str, limits: &TextLimits) -> Result<Measure, Over> {
    let mut scan = Scan {
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
    };
    while scan.token()? {}
    while scan.frames.len() > 1 {
        scan.close()?;
    }
    scan.check()?;
    let whole = &scan.frames[0];
    Ok(Measure {
        depth: scan.deepest,
        chain: scan.chain.max(whole.whole_chain()),
        branches: scan.branches.max(whole.whole_branches()),
    })
}

impl<'a> Scan<'a> {
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
        self.work += 1 << doublings;
        if self.work - self.tokens > self.limits.parsing {
            return self.over("query_parsing", self.limits.parsing);
        }
        Ok(())
    }

    fn operand(&mut self, last: Last) {
        self.last = last;
        if last == Last::Operand {
            self.nots = 0;
        }
    }

    fn open(&mut self, b: u8) -> Result<(), Over> {
        let kind = self.kind_of(b);
        let outside = self.frame();
        match (outside.kind, b) {
            (Kind::Group, b'{') if kind == Kind::Group || outside.clause == Clause::Values => {
                outside.branches += 1;
            }
            (Kind::Group, b'(') if outside.clause == Clause::Many => outside.chain += 1,
            _ => {}
        }
        let outside = self.frame();
        let (mut doublings, of_group) = (outside.doublings, outside.kind == Kind::Group);
        // FILTER of an IRI's function is tried again as an aggregate
        if self.last == Last::Twice || (of_group && kind == Kind::Expression && self.last == Last::Name) {
            doublings += 1;
        }
        if self.nots > 0 {
            doublings += 1;
        }
        let close = match b {
            b'(' => b')',
            b'{' => b'}',
            _ => b']',
        };
        self.push(kind, close, doublings)?;
        self.at += 1;
        Ok(())
    }

    /// What a bracket that opens here will hold.
    fn kind_of(&self, b: u8) -> Kind {
        let outside = self.frames.last().expect("the outermost stays");
        let expects = matches!(outside.clause, Clause::Once | Clause::Many);
        let data = matches!(outside.clause, Clause::Values | Clause::Template);
        match (outside.kind, b) {
            (Kind::Expression, b'(') => Kind::Expression,
            (Kind::Group, b'(') if expects => Kind::Expression,
            (Kind::Group | Kind::Expression, b'{') if !data => Kind::Group,
            (Kind::Data, _) | (_, b'{') => Kind::Data,
            _ => Kind::Terms,
        }
    }

    fn push(&mut self, kind: Kind, close: u8, doublings: u32) -> Result<(), Over> {
        let levels = 1 + std::mem::take(&mut self.nots);
        self.depth += levels;
        self.check_depth(self.depth)?;
        self.frames.push(Frame::new(kind, close, levels, doublings));
        self.last = Last::Other;
        Ok(())
    }

    fn check_depth(&mut self, depth: usize) -> Result<(), Over> {
        self.deepest = self.deepest.max(depth);
        if depth > self.limits.depth {
            return self.over("query_depth", self.limits.depth as u64);
        }
        Ok(())
    }

    fn closing(&mut self, b: u8) -> Result<(), Over> {
        // a bracket that closes another one ends the parser's way; going on does no harm
        if self.frames.len() > 1 && self.frame().close == b {
            self.close()?;
        }
        self.at += 1;
        self.operand(Last::Operand);
        Ok(())
    }

    fn close(&mut self) -> Result<(), Over> {
        let closed = self.frames.pop().expect("not the outermost");
        self.depth -= closed.levels;
        let frame = self.frame();
        frame.below_chain = frame.below_chain.max(closed.whole_chain());
        frame.below_branches = frame.below_branches.max(closed.whole_branches());
        if frame.clause == Clause::Once || (closed.close == b'}' && frame.clause != Clause::Many) {
            frame.clause = Clause::Patterns;
        }
        self.check()
    }

    /// Whether the innermost bracket is within the limits with what it holds.
    fn check(&mut self) -> Result<(), Over> {
        if self.frame().whole_chain() > self.limits.chain {
            return self.over("query_chain", self.limits.chain as u64);
        }
        if self.frame().whole_branches() > self.limits.branches {
            return self.over("query_branches", self.limits.branches as u64);
        }
        Ok(())
    }

    /// `<`: an IRI, a comparison, or a triple term.
    fn less(&mut self) -> Step {
        let compares =
            self.frame().kind == Kind::Expression && matches!(self.last, Last::Operand | Last::Name);
        if compares {
            self.at += 1;
            self.last = Last::Other;
            self.nots = 0;
            return Ok(true);
        }
        if self.bytes[self.at..].starts_with(b"<<") {
            // closed by ">>", which is not worth telling from two comparisons: these terms are not supported anyway
            let doublings = self.frame().doublings;
            self.push(Kind::Terms, b'>', doublings)?;
            self.at += 2;
            return Ok(true);
        }
        let rest = &self.bytes[self.at + 1..];
        let end = rest.iter().position(|b| {
            *b == b'>' || *b <= b' ' || matches!(b, b'<' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`')
        });
        match end {
            Some(end) if rest[end] == b'>' => {
                self.at += end + 2;
                self.last = Last::Name;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Goes over a string; false where there is none.
    fn string(&mut self) -> bool {
        let quote = self.bytes[self.at];
        let long = self.bytes[self.at..].starts_with(&[quote; 3]);
        let end = if long { self.string_end(self.at + 3, quote, 3) } else { None };
        // three quotes that begin no long string are an empty string and the beginning of another
        let Some(end) = end.or_else(|| self.string_end(self.at + 1, quote, 1)) else { return false };
        self.at = end;
        self.operand(Last::Operand);
        true
    }

    fn string_end(&self, from: usize, quote: u8, quotes: usize) -> Option<usize> {
        let mut at = from;
        loop {
            match *self.bytes.get(at)? {
                b'\\' => at = self.escape_end(at)?,
                b'\n' | b'\r' if quotes == 1 => return None,
                b if b == quote && self.bytes[at..].starts_with(&[quote; 3][..quotes]) => {
                    return Some(at + quotes);
                }
                _ => at += 1,
            }
        }
    }

    fn escape_end(&self, at: usize) -> Option<usize> {
        let digits = match *self.bytes.get(at + 1)? {
            b't' | b'b' | b'n' | b'r' | b'f' | b'"' | b'\'' | b'\\' => return Some(at + 2),
            b'u' => 4,
            b'U' => 8,
            _ => return None,
        };
        let code = self.text.get(at + 2..at + 2 + digits)?;
        let valid = code.bytes().all(|b| b.is_ascii_hexdigit())
            && u32::from_str_radix(code, 16).is_ok_and(|c| char::from_u32(c).is_some());
        valid.then_some(at + 2 + digits)
    }

    fn number(&mut self) {
        let digits = |scan: &mut Self| scan.skip_while(|b| b.is_ascii_digit());
        digits(self);
        if self.bytes.get(self.at) == Some(&b'.')
            && self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit)
        {
            self.at += 1;
            digits(self);
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            digits(self);
        }
        self.operand(Last::Operand);
    }

    fn variable(&mut self) -> Result<(), Over> {
        let start = self.at;
        self.at += 1;
        self.skip_while(is_name);
        if self.at == start + 1 {
            // a path's `?`
            return self.link(Link::PathSuffix);
        }
        self.variables.insert(&self.text[start + 1..self.at]);
        if self.variables.len() > self.limits.variables {
            return self.over("query_variables", self.limits.variables as u64);
        }
        self.operand(Last::Operand);
        Ok(())
    }

    /// A keyword or a prefixed name.
    fn word(&mut self) -> Result<(), Over> {
        let start = self.at;
        loop {
            self.skip_while(|b| is_name(b) || matches!(b, b':' | b'-' | b'.' | b'%'));
            if self.bytes.get(self.at) != Some(&b'\\') {
                break;
            }
            // an escape in a name, whatever it is
            self.at = (self.at + 2).min(self.bytes.len());
            self.skip_while(|b| b & 0xC0 == 0x80);
        }
        while self.bytes[self.at - 1] == b'.' && self.at - 1 > start {
            self.at -= 1;
        }
        let run = &self.text[start..self.at];
        if run.contains([':', '\\', '%']) {
            // with no such prefix, the parser reads true minus something
            for _ in 0..run.matches("true-").count() + run.matches("false-").count() {
                self.link(Link::Arithmetic)?;
            }
            self.last = Last::Name;
            return Ok(());
        }
        let end = run
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()))
            .unwrap_or(run.len());
        self.at = start + end.max(1);
        self.keyword(&run[..end])
    }

    fn keyword(&mut self, word: &str) -> Result<(), Over> {
        const CLAUSES: [(&str, Clause); 13] = [
            ("FILTER", Clause::Once),
            ("BIND", Clause::Once),
            ("SELECT", Clause::Many),
            ("GROUP", Clause::Many),
            ("HAVING", Clause::Many),
            ("ORDER", Clause::Many),
            ("WHERE", Clause::Patterns),
            ("LIMIT", Clause::Patterns),
            ("VALUES", Clause::Values),
            ("INSERT", Clause::Template),
            ("DELETE", Clause::Template),
            ("DATA", Clause::Template),
            ("CONSTRUCT", Clause::Template),
        ];
        let is = |k: &str| word.eq_ignore_ascii_case(k);
        self.last = Last::Other;
        if self.frame().kind == Kind::Group
            && let Some((_, clause)) = CLAUSES.iter().find(|(k, _)| is(k))
        {
            self.frame().clause = *clause;
        }
        if is("OPTIONAL") || is("MINUS") || is("BIND") || is("EXISTS") {
            let group = self.group();
            group.chain += 1;
            if group.whole_chain() > self.limits.chain {
                return self.over("query_chain", self.limits.chain as u64);
            }
        } else if is("FILTER") || is("UNION") {
            self.group().branches += 1;
            return self.check();
        } else if is("REGEX") || is("SUBSTR") || is("REPLACE") || is("GROUP_CONCAT") {
            self.last = Last::Twice;
        } else if is("true") || is("false") {
            self.operand(Last::Operand);
        }
        Ok(())
    }

    fn sign(&mut self, b: u8) -> Result<(), Over> {
        let pair = self.bytes.get(self.at + 1) == Some(&b);
        self.at += 1;
        match b {
            b'!' => return self.not(),
            b',' | b';' | b'.' => self.separate(b),
            b'|' | b'&' if pair => {
                self.at += 1;
                return self.link(Link::Connective);
            }
            b'|' => return self.link(Link::PathAlternative),
            b'+' | b'-' | b'*' | b'/' => return self.link(Link::Arithmetic),
            b'^' if pair => self.at += 1,
            b'>' if pair && self.frame().close == b'>' => {
                self.at += 1;
                self.close()?;
                self.operand(Last::Operand);
                return Ok(());
            }
            _ => {}
        }
        self.last = Last::Other;
        self.nots = 0;
        Ok(())
    }

    fn not(&mut self) -> Result<(), Over> {
        self.last = Last::Other;
        if self.bytes.get(self.at) == Some(&b'=') {
            self.at += 1;
            self.nots = 0;
            return Ok(());
        }
        self.nots += 1;
        self.check_depth(self.depth + self.nots)
    }

    fn separate(&mut self, b: u8) {
        // operations of an update stand beside each other
        if b == b';' && self.frames.len() == 1 {
            let whole = std::mem::replace(&mut self.frames[0], Frame::new(Kind::Group, 0, 0, 0));
            self.chain = self.chain.max(whole.whole_chain());
            self.branches = self.branches.max(whole.whole_branches());
            return;
        }
        self.frame().separate();
    }

    fn link(&mut self, link: Link) -> Result<(), Over> {
        self.last = Last::Other;
        self.nots = 0;
        let frame = self.frame();
        match (frame.kind, link) {
            (Kind::Data, _) => return Ok(()),
            (Kind::Expression, Link::Connective) => frame.run_branches += 1,
            (Kind::Expression, _) => frame.run += 1,
            (_, Link::Arithmetic | Link::PathAlternative) => {
                frame.run += 1;
                frame.branches += 1;
            }
            (_, Link::PathSuffix | Link::Connective) => frame.branches += 1,
        }
        self.check()
    }
}

/// What holds parts of an expression or a path together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    Arithmetic,
    Connective,
    PathAlternative,
    PathSuffix,
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}
