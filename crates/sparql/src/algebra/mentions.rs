//! The variables a pattern or an expression mentions, in whatever place: also those only a filter
//! reads, those inside EXISTS and those a sub-select hides.

use rustc_hash::FxHashSet;
use snowmelt_syntax::tree::{Expr, GraphPattern, Node, Var};

/// The variables mentioned.
#[derive(Default, Debug)]
pub(super) struct Mentions {
    pub vars: FxHashSet<Var>,
    /// whether there is a MINUS
    pub minus: bool,
}

impl Mentions {
    pub fn of_pattern(pattern: &GraphPattern) -> Self {
        Self::of(Node::Pattern(pattern))
    }

    pub fn of_expression(expr: &Expr) -> Self {
        Self::of(Node::Expr(expr))
    }

    fn of(node: Node<'_>) -> Self {
        let mut found = Self::default();
        node.walk(&mut |part| {
            match part {
                Node::Var(var) => drop(found.vars.insert(var)),
                Node::Pattern(GraphPattern::Minus { .. }) => found.minus = true,
                _ => {}
            }
            true
        });
        found
    }
}

/// Whether an expression has an EXISTS in it.
pub(super) fn has_exists(expr: &Expr) -> bool {
    let mut found = false;
    Node::Expr(expr).walk(&mut |part| {
        found |= matches!(part, Node::Expr(Expr::Exists(_)));
        !found
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_places_are_seen_and_texts_are_not() {
        let text = "SELECT ?a { ?a <p:> \"?no\" . <r:> <q:> <<( ?m ?n <<( <r:> <q:> ?o )>> )>>
            OPTIONAL { ?b !<q:?no> ?c } GRAPH ?d { MINUS { ?e ?f 1 } }
            FILTER(EXISTS { { SELECT ?g { ?g <q:> ?h } GROUP BY ?g HAVING(SUM(?i) > ?j) } } || BOUND(?k)) }
            ORDER BY ?l LIMIT 3";
        let query = snowmelt_syntax::parse_query(text, &Default::default()).expect("a query");
        let found = Mentions::of_pattern(&query.pattern);
        let mut names: Vec<&str> = found.vars.iter().filter_map(|var| query.names.name(*var)).collect();
        names.sort_unstable();
        assert_eq!(names, ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o"]);
        assert!(found.minus);
    }
}
