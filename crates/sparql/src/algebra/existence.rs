//! Whether a graph exists: `GRAPH g { … }` has solutions only of graphs that do (SPARQL 1.1, 18.6),
//! also where nothing inside looks at the graph.
//!
//! The operator is [`Node::GraphNames`], which the translator joins with the inside, unless a
//! pattern in it shows the graph anyway ([`Node::shows_graph`]).
//!
//! Invariant: a node in a graph of many binds their variable in each solution or in none. So what
//! counts solutions (DISTINCT, LIMIT, groups) counts those of each graph apart.

use super::{Const, GraphSlot, Node, Slot};

impl Node {
    /// Whether a solution of this node is a proof that the graph exists.
    pub fn shows_graph(&self, graph: Slot) -> bool {
        match graph {
            // nothing inside binds the variable but patterns in that graph
            Slot::Var(v) => self.scope().certain.contains(v),
            Slot::Const(c) => self.shows_named(c),
        }
    }

    fn shows_named(&self, name: Const) -> bool {
        let named = GraphSlot::Named(Slot::Const(name));
        match self {
            Self::Pattern(p) => p.g == named,
            // a path asks for its graph where it may do without edges
            Self::Path { g, .. } => *g == named,
            Self::GraphNames(slot) => *slot == Slot::Const(name),
            Self::Unit | Self::Service(_) | Self::Context { .. } | Self::Values { .. } => false,
            Self::Join(nodes) => nodes.iter().any(|n| n.shows_named(name)),
            Self::Union(nodes) => nodes.iter().all(|n| n.shows_named(name)),
            Self::LeftJoin { left, .. }
            | Self::Exists { left, .. }
            | Self::Apply { left, .. }
            | Self::Minus { left, .. } => left.shows_named(name),
            // without keys there is a group of no solutions
            Self::Group { inner, keys, .. } => !keys.is_empty() && inner.shows_named(name),
            Self::Filter { inner, .. }
            | Self::Extend { inner, .. }
            | Self::Distinct(inner)
            | Self::Reduced(inner)
            | Self::Sort { inner, .. }
            | Self::Slice { inner, .. }
            | Self::Project { inner, .. } => inner.shows_named(name),
        }
    }
}
