//! The walk over a tree comes to each part of it.

use std::collections::BTreeSet;

use snowmelt_syntax::tree::{Node, Query, Slot, Term};
use snowmelt_syntax::{ParseOptions, parse_query};

/// Each variable stands at one place alone.
const TEXT: &str = "SELECT (SUM(?a + ?b) AS ?c) {
    ?d ?e <<( ?f ?g ?h )>> . ?i (^<u:p>|<u:q>/!<u:r>)* ?j
    OPTIONAL { ?k a ?l FILTER(?m > 1) } MINUS { ?n a ?o } { ?p a 1 } UNION { ?q a 1 }
    LATERAL { ?r a ?s } GRAPH ?t { ?u a 1 } SERVICE ?v { ?w a 1 }
    BIND(?x IN (?y, 1) AS ?z) VALUES ?aa { <u:v> }
    { SELECT DISTINCT ?ab { ?ac a ?ad } ORDER BY ?ae LIMIT 1 } { SELECT REDUCED * { ?af a ?ag } }
    FILTER(!(?ah = 1) || EXISTS { ?ai a ?aj } || BOUND(?ak) || <u:f>(?al) || STR(?am) = -?an)
} GROUP BY ?ao (?ap + 1 AS ?aq) HAVING(MAX(?ar) > 1)";

fn query() -> Query {
    parse_query(TEXT, &ParseOptions::default()).unwrap()
}

#[test]
fn a_walk_visits_each_variable_and_each_iri() {
    let query = query();
    let (mut vars, mut iris) = (BTreeSet::new(), BTreeSet::new());
    Node::Pattern(&query.pattern).walk(&mut |node| {
        match node {
            Node::Var(var) => vars.extend(query.names.name(var)),
            Node::Slot(Slot::Term(Term::Iri(iri))) => drop(iris.insert(&**iri)),
            _ => {}
        }
        true
    });
    let all = (0..query.names.len()).map(|n| snowmelt_syntax::tree::Var(n as u32));
    let all: BTreeSet<&str> = all.filter_map(|var| query.names.name(var)).collect();
    assert_eq!(all.len(), 44);
    assert_eq!(all.difference(&vars).collect::<Vec<_>>(), Vec::<&&str>::new());
    for iri in ["u:p", "u:q", "u:r", "u:v"] {
        assert!(iris.contains(iri), "{iri} is not among {iris:?}");
    }
}

#[test]
fn a_walk_enters_no_node_that_is_refused() {
    let query = query();
    let mut visited = Vec::new();
    Node::Pattern(&query.pattern).walk(&mut |node| {
        visited.push(node);
        visited.len() < 2
    });
    // The projection, the pattern below it, and the variable of its column.
    assert!(matches!(visited[..], [Node::Pattern(_), Node::Pattern(_), Node::Var(_)]), "{visited:?}");
}
