//! Quads by pattern against a plain filter over all quads, for each combination of given terms.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt::{Database, Error, GraphName, Literal, NamedNode, Quad, QuadPattern};

fn iri(kind: &str, number: u32) -> NamedNode {
    NamedNode::new_unchecked(format!("urn:{kind}{number}"))
}

/// Quads of few terms, so that patterns meet many of them, in four graphs and the default graph.
fn quads() -> Vec<Quad> {
    let graph = |n: u32| match n % 5 {
        0 => GraphName::DefaultGraph,
        n => iri("g", n).into(),
    };
    let object = |n: u32| match n % 3 {
        0 => Literal::from(i64::from(n % 7)).into(),
        1 => iri("s", n % 11).into(),
        _ => oxrdf::Term::from(Literal::new_simple_literal(format!("a text of some length, {}", n % 13))),
    };
    let quad = |n: u32| Quad::new(iri("s", n * 7 % 31), iri("p", n * 5 % 6), object(n / 3), graph(n / 2));
    (0..3000).map(quad).collect::<HashSet<_>>().into_iter().collect()
}

/// The pattern that has the terms of a quad whose bit is set.
fn pattern(quad: &Quad, given: u8) -> QuadPattern {
    let whole = QuadPattern::from(quad.clone());
    QuadPattern {
        subject: whole.subject.filter(|_| given & 1 != 0),
        predicate: whole.predicate.filter(|_| given & 2 != 0),
        object: whole.object.filter(|_| given & 4 != 0),
        graph: whole.graph.filter(|_| given & 8 != 0),
    }
}

fn is_meant(pattern: &QuadPattern, quad: &Quad) -> bool {
    pattern.subject.as_ref().is_none_or(|term| *term == quad.subject)
        && pattern.predicate.as_ref().is_none_or(|term| *term == quad.predicate)
        && pattern.object.as_ref().is_none_or(|term| *term == quad.object)
        && pattern.graph.as_ref().is_none_or(|term| *term == quad.graph_name)
}

#[test]
fn every_pattern_gives_what_a_filter_gives() {
    let db = Database::options().memory(256 << 20).in_memory().unwrap();
    let all = quads();
    db.transaction(|tx| tx.insert(all.clone())).unwrap();
    assert_eq!(db.quad_count().unwrap(), all.len() as u64);
    for given in 0..16 {
        for quad in all.iter().step_by(97) {
            let pattern = pattern(quad, given);
            let found: Vec<Quad> = db.quads(&pattern).unwrap().collect::<Result<_, _>>().unwrap();
            let expected: HashSet<&Quad> = all.iter().filter(|quad| is_meant(&pattern, quad)).collect();
            assert_eq!(found.len(), expected.len(), "{pattern:?}: none twice");
            assert_eq!(found.iter().collect::<HashSet<_>>(), expected, "{pattern:?}");
        }
    }
}

#[test]
fn terms_that_are_not_stored_match_nothing() {
    let db = Database::options().memory(256 << 20).in_memory().unwrap();
    assert_eq!(db.quads(&QuadPattern::default()).unwrap().count(), 0);
    db.update("INSERT DATA { <urn:s> <urn:p> 1 }").unwrap();
    let quad = Quad::new(iri("s", 0), iri("p", 0), Literal::from(1), iri("g", 0));
    assert!(!db.contains(&quad).unwrap());
    for given in 1..16 {
        let found = db.quads(&pattern(&quad, given)).unwrap().count();
        assert_eq!(found, usize::from(given == 4), "only the object is there: {given}");
    }
}

#[test]
fn a_transaction_sees_its_own_quads_and_a_flag_ends_the_reading() {
    let db = Database::options().memory(256 << 20).in_memory().unwrap();
    let mut tx = db.begin().unwrap();
    tx.insert(quads()).unwrap();
    assert_eq!(tx.quads(&QuadPattern::default()).unwrap().count(), quads().len());
    assert_eq!(db.quads(&QuadPattern::default()).unwrap().count(), 0);
    tx.commit().unwrap();
    let flag = Arc::new(AtomicBool::new(true));
    let mut stopped = db.quads(&QuadPattern::default()).unwrap().cancel(flag);
    assert!(matches!(stopped.next(), Some(Err(Error::Cancelled))));
    assert!(stopped.next().is_none());
}
