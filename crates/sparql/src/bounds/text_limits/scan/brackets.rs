//! A bracket opens and closes: what it will hold, how often the parser reads it, and whether it
//! stays within the limits.

use super::frame::{Clause, Frame, Kind};
use super::{Last, Over, Scan};

impl Scan<'_> {
    pub(super) fn open(&mut self, b: u8) -> Result<(), Over> {
        self.deletes = false;
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

    /// The kind of a bracket that opens here.
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

    pub(super) fn push(&mut self, kind: Kind, close: u8, doublings: u32) -> Result<(), Over> {
        let levels = 1 + std::mem::take(&mut self.nots);
        self.depth += levels;
        self.check_depth(self.depth)?;
        self.frames.push(Frame::new(kind, close, levels, doublings));
        self.last = Last::Other;
        Ok(())
    }

    pub(super) fn check_depth(&mut self, depth: usize) -> Result<(), Over> {
        self.deepest = self.deepest.max(depth);
        if depth > self.limits.depth {
            return self.over("query_depth", self.limits.depth as u64);
        }
        Ok(())
    }

    pub(super) fn closing(&mut self, b: u8) -> Result<(), Over> {
        // a bracket that closes another one ends the parser's way; going on does no harm
        if self.frames.len() > 1 && self.frame().close == b {
            self.close()?;
        }
        self.at += 1;
        self.operand(Last::Operand);
        Ok(())
    }

    pub(super) fn close(&mut self) -> Result<(), Over> {
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
    pub(super) fn check(&mut self) -> Result<(), Over> {
        if self.frame().whole_chain() > self.limits.chain {
            return self.over("query_chain", self.limits.chain as u64);
        }
        if self.frame().whole_branches() > self.limits.branches {
            return self.over("query_branches", self.limits.branches as u64);
        }
        Ok(())
    }
}
