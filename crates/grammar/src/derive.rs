//! The smallest text of each rule, and texts around a place in it.

use crate::pattern::{Pattern, Piece};
use crate::rules::{Grammar, Part, Path, Rule};

/// The lengths of the smallest texts of all rules: the least fixed point. A rule counts one
/// itself, so that the smallest text of a rule never leads through that rule again.
pub(crate) fn sizes(rules: &[Rule]) -> Vec<usize> {
    let mut sizes = vec![usize::MAX; rules.len()];
    loop {
        let next: Vec<usize> = rules.iter().map(|rule| size(&rule.part, &sizes)).collect();
        if next == sizes {
            return sizes;
        }
        sizes = next;
    }
}

fn size(part: &Part, sizes: &[usize]) -> usize {
    match part {
        Part::Text(text) => {
            let mut written = String::new();
            text.write(0, &mut written);
            written.len() + 1
        }
        Part::Rule(rule) => sizes[*rule].saturating_add(1),
        Part::Sequence(parts) => parts.iter().map(|part| size(part, sizes)).fold(0, usize::saturating_add),
        Part::Choice(parts) => parts.iter().map(|part| size(part, sizes)).min().unwrap_or(0),
        Part::Many(_, 0) | Part::Maybe(_) => 0,
        Part::Many(part, _) => size(part, sizes),
    }
}

/// Steps down to a place: the place in the first part, the place in the rule that stands there,
/// and so on.
pub(crate) type Way = Vec<Path>;

/// The text around a hole.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Around {
    pub before: Pattern,
    pub after: Pattern,
}

/// Writes smallest texts into a pattern; where it comes to the hole, it goes on in another.
struct Deriver<'a> {
    grammar: &'a Grammar,
    before: Pattern,
    after: Option<Pattern>,
}

impl Grammar {
    /// The smallest text of a part.
    pub(crate) fn smallest_of(&self, part: &Part, joint: &str) -> Pattern {
        let mut deriver = Deriver { grammar: self, before: Pattern::default(), after: None };
        deriver.smallest(part, joint);
        deriver.before
    }

    /// The smallest text of a part that goes the way, which leads to something that need not be
    /// there.
    pub(crate) fn through(&self, part: &Part, joint: &str, way: &[Path]) -> Pattern {
        let mut deriver = Deriver { grammar: self, before: Pattern::default(), after: None };
        deriver.along(part, joint, way, End::Whole);
        deriver.before
    }

    /// The smallest text around the place that a way leads to.
    pub(crate) fn around(&self, part: &Part, joint: &str, way: &[Path]) -> Around {
        let mut deriver = Deriver { grammar: self, before: Pattern::default(), after: None };
        deriver.along(part, joint, way, End::Hole);
        Around { before: deriver.before, after: deriver.after.unwrap_or_default() }
    }
}

/// The end of a way: a hole that stays open, or the smallest text of the part.
#[derive(Clone, Copy)]
enum End {
    Hole,
    Whole,
}

impl Deriver<'_> {
    fn out(&mut self) -> &mut Pattern {
        self.after.as_mut().unwrap_or(&mut self.before)
    }

    fn joint(&mut self, joint: &str) {
        self.out().push(Piece::Text(joint.to_owned()));
    }

    fn smallest(&mut self, part: &Part, joint: &str) {
        let grammar = self.grammar;
        match part {
            Part::Text(text) => {
                self.out().append(text);
                self.joint(joint);
            }
            Part::Rule(rule) => {
                let rule = &grammar.rules[*rule];
                self.smallest(&rule.part, rule.joint);
                if rule.joint.is_empty() {
                    self.joint(joint);
                }
            }
            Part::Sequence(parts) => parts.iter().for_each(|part| self.smallest(part, joint)),
            Part::Choice(parts) => {
                let smallest = parts.iter().min_by_key(|part| size(part, &grammar.sizes));
                self.smallest(smallest.expect("a choice has parts"), joint);
            }
            Part::Many(_, 0) | Part::Maybe(_) => {}
            Part::Many(part, _) => self.smallest(part, joint),
        }
    }

    /// Writes a part so that it goes the way.
    fn along(&mut self, part: &Part, joint: &str, way: &[Path], end: End) {
        let Some((path, rest)) = way.split_first() else { return self.end(part, joint, end) };
        self.down(part, joint, path, rest, end);
    }

    fn down(&mut self, part: &Part, joint: &str, path: &[usize], rest: &[Path], end: End) {
        let grammar = self.grammar;
        let Some((child, path)) = path.split_first() else {
            return match part {
                Part::Rule(rule) if !rest.is_empty() => {
                    let rule = &grammar.rules[*rule];
                    self.along(&rule.part, rule.joint, rest, end);
                    if rule.joint.is_empty() {
                        self.joint(joint);
                    }
                }
                part => self.end(part, joint, end),
            };
        };
        match part {
            Part::Sequence(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    if at == *child {
                        self.down(part, joint, path, rest, end);
                    } else {
                        self.smallest(part, joint);
                    }
                }
            }
            part => self.down(&part.children()[*child], joint, path, rest, end),
        }
    }

    fn end(&mut self, part: &Part, joint: &str, end: End) {
        match (end, part) {
            (End::Hole, _) => {
                self.after = Some(Pattern::default());
                self.joint(joint);
            }
            (End::Whole, Part::Many(part, _) | Part::Maybe(part)) => self.smallest(part, joint),
            (End::Whole, part) => self.smallest(part, joint),
        }
    }
}
