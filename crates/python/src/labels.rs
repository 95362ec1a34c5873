//! Labels of blank nodes, as a program gave them.
//!
//! The database numbers its blank nodes and keeps no labels. Programs for Oxigraph and rdflib make
//! nodes with labels of their own, add quads about them one by one, and look for them in answers.
//! So a store remembers, while it is open, which node each label stands for, both ways.

use std::collections::HashMap;
use std::sync::Mutex;

use snowmelt::{BlankNode, GraphName, NamedOrBlankNode, Quad, Term, Transaction, Triple};

use crate::handle::locked;

/// Labels that programs gave to nodes of a store.
#[derive(Default)]
pub struct Labels {
    maps: Mutex<Maps>,
}

#[derive(Default)]
struct Maps {
    stored: HashMap<BlankNode, BlankNode>,
    given: HashMap<BlankNode, BlankNode>,
}

/// Nodes that a transaction made for labels: kept once it is committed.
pub type Fresh = HashMap<BlankNode, BlankNode>;

impl Labels {
    /// The stored node of a label; the label itself if no program gave it.
    pub fn stored(&self, given: BlankNode) -> BlankNode {
        locked(&self.maps).stored.get(&given).cloned().unwrap_or(given)
    }

    /// The label that a program gave to a stored node; its own if none did.
    pub fn given(&self, stored: BlankNode) -> BlankNode {
        locked(&self.maps).given.get(&stored).cloned().unwrap_or(stored)
    }

    /// Keeps the nodes that a committed transaction made.
    pub fn keep(&self, fresh: Fresh) {
        let mut maps = locked(&self.maps);
        for (given, stored) in fresh {
            maps.given.insert(stored.clone(), given.clone());
            maps.stored.insert(given, stored);
        }
    }

    /// The node for a label in a quad that is added; new labels get new nodes.
    fn to_add(
        &self,
        node: BlankNode,
        tx: &mut Transaction,
        fresh: &mut Fresh,
    ) -> snowmelt::Result<BlankNode> {
        if let Some(known) = fresh.get(&node) {
            return Ok(known.clone());
        }
        let stored = self.stored(node.clone());
        if stored != node || tx.has_blank_node(&node)? {
            return Ok(stored);
        }
        let made = tx.new_blank_node()?;
        fresh.insert(node, made.clone());
        Ok(made)
    }

    /// A quad to be added, with the stored nodes.
    pub fn quad_to_add(&self, quad: Quad, tx: &mut Transaction, fresh: &mut Fresh) -> snowmelt::Result<Quad> {
        map_quad(quad, &mut |node| self.to_add(node, tx, fresh))
    }

    /// A quad to be looked for, with the stored nodes.
    pub fn quad_to_find(&self, quad: Quad) -> Quad {
        let Ok(quad) = map_quad(quad, &mut |node| Ok::<_, std::convert::Infallible>(self.stored(node)));
        quad
    }

    /// A quad of an answer, with the labels that programs gave.
    pub fn quad_found(&self, quad: Quad) -> Quad {
        let Ok(quad) = map_quad(quad, &mut |node| Ok::<_, std::convert::Infallible>(self.given(node)));
        quad
    }

    /// A term to be looked for, with the stored nodes.
    pub fn term_to_find(&self, term: Term) -> Term {
        let Ok(term) = map_term(term, &mut |node| Ok::<_, std::convert::Infallible>(self.stored(node)));
        term
    }

    /// A term of an answer, likewise.
    pub fn term_found(&self, term: Term) -> Term {
        let Ok(term) = map_term(term, &mut |node| Ok::<_, std::convert::Infallible>(self.given(node)));
        term
    }

    /// A triple of an answer, likewise.
    pub fn triple_found(&self, triple: Triple) -> Triple {
        Triple::from(self.quad_found(triple.in_graph(GraphName::DefaultGraph)))
    }
}

/// Triple terms nest a few times at most: the database has a limit.
fn map_term<E>(term: Term, node: &mut impl FnMut(BlankNode) -> Result<BlankNode, E>) -> Result<Term, E> {
    Ok(match term {
        Term::BlankNode(blank) => node(blank)?.into(),
        Term::Triple(triple) => Term::from(Triple {
            subject: match triple.subject {
                NamedOrBlankNode::BlankNode(blank) => node(blank)?.into(),
                other => other,
            },
            predicate: triple.predicate,
            object: map_term(triple.object, node)?,
        }),
        other => other,
    })
}

fn map_quad<E>(quad: Quad, node: &mut impl FnMut(BlankNode) -> Result<BlankNode, E>) -> Result<Quad, E> {
    Ok(Quad {
        subject: match quad.subject {
            NamedOrBlankNode::BlankNode(blank) => node(blank)?.into(),
            other => other,
        },
        predicate: quad.predicate,
        object: map_term(quad.object, node)?,
        graph_name: match quad.graph_name {
            GraphName::BlankNode(blank) => node(blank)?.into(),
            other => other,
        },
    })
}
