//! The part of the grammar that RDF 1.2 adds: reified triples, triple terms, annotations, reifiers.
//!
//! ```text
//! <<s p o ~r>>   a reified triple: a subject or object; within it a subject may be another
//! <<(s p o)>>    a triple term: an object
//! o ~r {| p o |} after an object: the reifier of its triple, and what is said of it
//! ```

use super::super::faults::Faults;
use super::super::lexer::Mark;
use super::{Due, Grammar, LevelKind, Skip};

impl LevelKind {
    /// The sign that ends it; `None` for the document and graphs.
    pub(super) fn end(self) -> Option<&'static [u8]> {
        match self {
            LevelKind::Document | LevelKind::Graph => None,
            LevelKind::Properties => Some(b"]"),
            LevelKind::Collection => Some(b")"),
            LevelKind::Reified => Some(b">>"),
            LevelKind::Term => Some(b")>>"),
            LevelKind::Annotation => Some(b"|}"),
        }
    }

    /// Its place among the counts of open levels.
    pub(super) fn place(self) -> Option<usize> {
        match self {
            LevelKind::Document | LevelKind::Graph => None,
            LevelKind::Properties => Some(0),
            LevelKind::Collection => Some(1),
            LevelKind::Reified => Some(2),
            LevelKind::Term => Some(3),
            LevelKind::Annotation => Some(4),
        }
    }

    /// Whether it is one triple.
    pub(super) fn is_triple(self) -> bool {
        matches!(self, LevelKind::Reified | LevelKind::Term)
    }
}

impl Mark {
    /// The level that it begins or ends.
    fn level(self) -> Option<LevelKind> {
        match self {
            Mark::Reified | Mark::ReifiedEnd => Some(LevelKind::Reified),
            Mark::Term | Mark::TermEnd => Some(LevelKind::Term),
            Mark::Annotation | Mark::AnnotationEnd => Some(LevelKind::Annotation),
            Mark::Reifier => None,
        }
    }

    fn begins(self) -> bool {
        matches!(self, Mark::Reified | Mark::Term | Mark::Annotation)
    }
}

impl Grammar {
    /// Processes a mark.
    pub(super) fn mark(&mut self, mark: Mark, text: &[u8], faults: &mut Faults) {
        let (kind, due) = (self.kind(), self.due());
        match mark {
            Mark::Reified | Mark::Term => self.open_triple(mark, text, faults),
            Mark::Annotation if due == Due::End && !kind.is_triple() => {
                self.keep(text);
                self.push(LevelKind::Annotation, Due::Verb);
            }
            Mark::Reifier if due == Due::End && kind != LevelKind::Term => {
                self.keep(text);
                self.expect(Due::Reifier);
            }
            Mark::ReifiedEnd | Mark::TermEnd | Mark::AnnotationEnd => {
                let kind = mark.level().expect("it ends a level");
                self.close_level(kind, text, faults);
            }
            Mark::Annotation => {
                self.pass_over(text, faults, "an annotation follows an object");
                self.skip = Some(Skip::Statement(1));
            }
            Mark::Reifier => self.pass_over(text, faults, "a reifier follows an object"),
        }
    }

    fn open_triple(&mut self, mark: Mark, text: &[u8], faults: &mut Faults) {
        let kind = mark.level().expect("it begins a level");
        let fits = match (self.due(), self.kind()) {
            (Due::Subject, within) => kind == LevelKind::Reified && within != LevelKind::Term,
            (Due::Object, within) => kind == LevelKind::Term || within != LevelKind::Term,
            _ => false,
        };
        if fits {
            if self.due() == Due::Object && self.kind() != LevelKind::Collection {
                self.expect(Due::End);
            }
            self.keep(text);
            return self.push(kind, Due::Subject);
        }
        let next = match self.due() {
            Due::Subject if self.kind() == LevelKind::Document => Due::VerbOrGraph,
            Due::Subject => Due::Verb,
            Due::Object => Due::End,
            Due::Verb | Due::VerbOrGraph | Due::FirstVerb | Due::NextVerb | Due::VerbOfBrackets => {
                Due::Object
            }
            _ => {
                self.pass_over(text, faults, "this does not belong here; , or ; or . should");
                self.skip = Some(Skip::Statement(1));
                return;
            }
        };
        self.replace(text, faults, "a triple cannot be here");
        self.expect(next);
        self.skip = Some(Skip::Brackets(1));
    }

    /// `[` within a triple: only a blank node.
    pub(super) fn open_blank(&mut self, text: &[u8]) {
        self.keep(text);
        self.expect(match self.due() {
            Due::Subject => Due::BlankSubjectEnd,
            Due::Object => Due::BlankObjectEnd,
            _ => Due::BlankReifierEnd,
        });
    }

    /// Whether a token ends such a blank node. If another one comes, the end is put in.
    pub(super) fn ended_blank(&mut self, is_end: bool, text: &[u8], faults: &mut Faults) -> bool {
        let next = match self.due() {
            Due::BlankSubjectEnd => Due::Verb,
            Due::BlankObjectEnd | Due::BlankReifierEnd => Due::End,
            _ => return false,
        };
        self.expect(next);
        if is_end {
            self.keep(text);
        } else {
            faults.loose("a ] is missing: a blank node within a triple has no properties");
            self.keep(b"]");
        }
        is_end
    }

    /// Whether a mark is skipped; if not, the skipping has ended.
    pub(super) fn skipped_mark(&mut self, skip: Skip, mark: Mark, text: &[u8]) -> bool {
        let Some(kind) = mark.level() else {
            self.leave(text);
            return true;
        };
        let is_open = kind.place().is_some_and(|place| self.top().open[place] > 0);
        self.skip = match (skip, mark.begins()) {
            (Skip::Statement(depth), true) => Some(Skip::Statement(depth + 1)),
            (Skip::Brackets(depth), true) => Some(Skip::Brackets(depth + 1)),
            (Skip::Statement(0), false) if is_open => None,
            (Skip::Statement(depth), false) => Some(Skip::Statement(depth.saturating_sub(1))),
            (Skip::Brackets(1), false) => {
                self.skip = None;
                self.leave(text);
                return true;
            }
            (Skip::Brackets(depth), false) => Some(Skip::Brackets(depth - 1)),
        };
        if self.skip.is_some() {
            self.leave(text);
        }
        self.skip.is_some()
    }
}
