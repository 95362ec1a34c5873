//! Operators and separators: what builds on what stands before it, and what begins anew.

use super::frame::{Frame, Kind};
use super::{Last, Over, Scan};

/// Signs that hold parts of an expression or a path together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    Arithmetic,
    Connective,
    PathAlternative,
    PathSuffix,
}

impl Scan<'_> {
    pub(super) fn sign(&mut self, b: u8) -> Result<(), Over> {
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
        // a path of anything but some stays a path: a part of a join
        let frame = self.frame();
        if matches!(frame.kind, Kind::Group | Kind::Terms) {
            frame.branches += 1;
            self.check()?;
        }
        self.check_depth(self.depth + self.nots)
    }

    fn separate(&mut self, b: u8) {
        // operations of an update stand beside each other
        if b == b';' && self.frames.len() == 1 {
            self.deletes_where = false;
            let whole = std::mem::replace(&mut self.frames[0], Frame::new(Kind::Group, 0, 0, 0));
            self.chain = self.chain.max(whole.whole_chain());
            self.branches = self.branches.max(whole.whole_branches());
            return;
        }
        self.frame().separate();
    }

    pub(super) fn link(&mut self, link: Link) -> Result<(), Over> {
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
