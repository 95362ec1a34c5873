//! The rules of a grammar.

use std::collections::HashMap;

use crate::pattern::Pattern;

/// A part of a rule.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Text(Pattern),
    Rule(usize),
    Sequence(Vec<Part>),
    Choice(Vec<Part>),
    /// any number of copies, but at least so many
    Many(Box<Part>, usize),
    Maybe(Box<Part>),
}

/// A place in a part: which child, which child of that.
pub(crate) type Path = Vec<usize>;

impl Part {
    pub fn children(&self) -> &[Part] {
        match self {
            Part::Text(_) | Part::Rule(_) => &[],
            Part::Sequence(parts) | Part::Choice(parts) => parts,
            Part::Many(part, _) | Part::Maybe(part) => std::slice::from_ref(part),
        }
    }

    /// The part at a place.
    pub fn at(&self, path: &[usize]) -> &Part {
        path.iter().fold(self, |part, child| &part.children()[*child])
    }

    /// All places in it, itself first.
    pub fn places(&self) -> Vec<(Path, &Part)> {
        let mut places = vec![(Path::new(), self)];
        let mut done = 0;
        while done < places.len() {
            let (path, part) = places[done].clone();
            for (child, inner) in part.children().iter().enumerate() {
                places.push(([&path[..], &[child]].concat(), inner));
            }
            done += 1;
        }
        places
    }
}

/// A rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub name: String,
    pub part: Part,
    /// what is written between its parts
    pub joint: &'static str,
}

/// A grammar; its first rule is where documents begin.
#[derive(Clone, Debug)]
pub struct Grammar {
    pub(crate) rules: Vec<Rule>,
    /// the length of each rule's smallest text
    pub(crate) sizes: Vec<usize>,
}

/// The numbers of rules by name.
pub(crate) type Numbers = HashMap<String, usize>;
