//! Modules that need each other: strongly connected components among the children of each module.
//!
//! A module and what it contains are one thing for those beside it, and need each other by nature;
//! so an arrow counts between the two children, of the innermost module around both, that hold its
//! ends. The components are found by Tarjan's algorithm ("Depth-first search and linear graph
//! algorithms", 1972).

use crate::arrows::Module;
use std::collections::{BTreeMap, BTreeSet};

/// Children of one module that need each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Circle {
    /// The module around them; empty for the crate.
    pub within: Module,
    /// Their names, ascending; two at least.
    pub members: Vec<String>,
}

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The circles of a crate, by its arrows.
pub fn circles(arrows: &BTreeSet<(Module, Module)>) -> Vec<Circle> {
    let mut levels: BTreeMap<Module, Graph> = BTreeMap::new();
    for (from, to) in arrows {
        let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        if let (Some(a), Some(b)) = (from.get(common), to.get(common)) {
            let graph = levels.entry(from[..common].to_vec()).or_default();
            graph.entry(a.clone()).or_default().insert(b.clone());
            graph.entry(b.clone()).or_default();
        }
    }
    let mut found = Vec::new();
    for (within, graph) in levels {
        let components = components(&graph).into_iter().filter(|members| members.len() > 1);
        found.extend(components.map(|members| Circle { within: within.clone(), members }));
    }
    found.sort();
    found
}

fn components(graph: &Graph) -> Vec<Vec<String>> {
    let mut state = Tarjan { graph, ..Tarjan::default_for(graph) };
    for node in graph.keys() {
        if !state.index.contains_key(node.as_str()) {
            state.visit(node);
        }
    }
    state.found
}

struct Tarjan<'a> {
    graph: &'a Graph,
    index: BTreeMap<&'a str, usize>,
    low: BTreeMap<&'a str, usize>,
    stack: Vec<&'a str>,
    found: Vec<Vec<String>>,
}

impl<'a> Tarjan<'a> {
    fn default_for(graph: &'a Graph) -> Self {
        let (index, low) = (BTreeMap::new(), BTreeMap::new());
        Tarjan { graph, index, low, stack: Vec::new(), found: Vec::new() }
    }

    fn visit(&mut self, node: &'a str) {
        let number = self.index.len();
        self.index.insert(node, number);
        self.low.insert(node, number);
        self.stack.push(node);
        for next in &self.graph[node] {
            if !self.index.contains_key(next.as_str()) {
                self.visit(next);
                self.lower(node, self.low[next.as_str()]);
            } else if self.stack.contains(&next.as_str()) {
                self.lower(node, self.index[next.as_str()]);
            }
        }
        if self.low[node] == number {
            let at = self.stack.iter().position(|n| *n == node).unwrap_or_default();
            let mut members: Vec<String> = self.stack.drain(at..).map(str::to_owned).collect();
            members.sort();
            self.found.push(members);
        }
    }

    fn lower(&mut self, node: &'a str, to: usize) {
        let low = self.low.entry(node).or_insert(to);
        *low = (*low).min(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_among_the_children_of_one_module() {
        let module = |name: &str| name.split('.').map(str::to_owned).collect::<Module>();
        let arrow = |pair: &str| {
            let (from, to) = pair.split_once('>').unwrap();
            (module(from), module(to))
        };
        // a.x and b need each other, and so a and b; a and its own child are no circle
        let arrows = ["a.x>b", "b>c", "c>a", "a>a.x", "a.x>a", "c>d", "d.p>d.q", "d.q>d.p"];
        let found = circles(&arrows.into_iter().map(arrow).collect());
        let shown: Vec<String> =
            found.iter().map(|c| format!("{}: {}", c.within.join("."), c.members.join(" "))).collect();
        assert_eq!(shown, [": a b c", "d: p q"]);
    }
}
