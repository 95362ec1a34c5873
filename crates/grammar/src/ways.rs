//! Which rule leads to which, and the shortest way.

use std::collections::{HashMap, VecDeque};

use crate::derive::Way;
use crate::rules::{Grammar, Part, Path};

/// A place where a rule names another.
#[derive(Clone, Debug)]
pub(crate) struct Mention {
    pub path: Path,
    pub rule: usize,
}

impl Part {
    /// The rules that a part names, with their places.
    pub(crate) fn mentions(&self) -> Vec<Mention> {
        let named = |(path, part): (Path, &Part)| match part {
            Part::Rule(rule) => Some(Mention { path, rule: *rule }),
            _ => None,
        };
        self.places().into_iter().filter_map(named).collect()
    }
}

impl Grammar {
    /// The shortest ways from a rule to all that it leads to; to itself the empty one.
    pub(crate) fn ways_from(&self, from: usize) -> HashMap<usize, Way> {
        let mut ways = HashMap::from([(from, Way::new())]);
        let mut open = VecDeque::from([from]);
        while let Some(rule) = open.pop_front() {
            for mention in self.rules[rule].part.mentions() {
                if !ways.contains_key(&mention.rule) {
                    let mut way = ways[&rule].clone();
                    way.push(mention.path);
                    ways.insert(mention.rule, way);
                    open.push_back(mention.rule);
                }
            }
        }
        ways
    }
}
