//! Star prefetch: the leaves of many keys in many trees, at the I/O depth of one tree.
//!
//! Patterns that share a subject look up the same keys in several places. (1) All roots are
//! wished for together; (2) level by level, every tree takes one step and wishes for its next
//! level before any tree waits for its own; (3) the leaves are wished for and not waited for.
//! For resident trees this costs only a look at the counters.

use crate::error::Result;
use crate::tree::descent::{Descent, Shape};
use crate::tree::rows::Keys;
use crate::tree::string::StringTree;
use crate::tree::tuple::TupleTree;
use crate::{Reader, WishKind};

/// A tree whose rows are looked up by leading columns or by id.
#[derive(Clone, Copy, Debug)]
pub enum AnyTree<'a> {
    /// Keys are leading columns.
    Tuple(&'a TupleTree),
    /// Keys are one column of ids.
    String(&'a StringTree),
}

impl AnyTree<'_> {
    fn shape(&self) -> Shape {
        match self {
            AnyTree::Tuple(tree) => tree.shape,
            AnyTree::String(tree) => tree.shape,
        }
    }
}

impl<'a> From<&'a TupleTree> for AnyTree<'a> {
    fn from(tree: &'a TupleTree) -> Self {
        AnyTree::Tuple(tree)
    }
}

impl<'a> From<&'a StringTree> for AnyTree<'a> {
    fn from(tree: &'a StringTree) -> Self {
        AnyTree::String(tree)
    }
}

/// How deep an announcement goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Levels {
    /// The inner nodes above the leaves: cheap, for work that may not happen.
    Inner,
    /// Down to the leaves.
    Leaves,
}

/// Starts the reads that looking up these keys will need. Waits for inner nodes, not for leaves.
///
/// A hint: together the trees wish for at most [`Reader::wish_limit`] pages a level; what goes
/// beyond is read when it is looked up.
///
/// # Errors
/// Reading an inner node failed, or one contradicts the format.
pub fn announce(reader: &mut Reader, trees: &[(AnyTree<'_>, Keys<'_>)], depth: Levels) -> Result<()> {
    let mut under_way: Vec<(Shape, &Keys<'_>, Descent)> = Vec::new();
    for (tree, keys) in trees {
        let shape = tree.shape();
        if shape.height > 0 && keys.rows > 0 && !reader.resident(shape.id) {
            keys.check(shape.arity);
            under_way.push((shape, keys, Descent::default()));
        }
    }
    let limit = (reader.wish_limit() / under_way.len().max(1)).max(1);
    for (shape, keys, descent) in &mut under_way {
        descent.begin(shape, keys, 0, None, limit);
        reader.wish(shape.id, &[shape.root], WishKind::Planned);
    }
    let last = match depth {
        Levels::Inner => 1,
        Levels::Leaves => 0,
    };
    while under_way.iter().any(|(_, _, d)| d.level > last) {
        for (shape, keys, descent) in under_way.iter_mut().filter(|(_, _, d)| d.level > last) {
            descent.step(reader, shape, keys)?;
            descent.wish_all(reader, shape);
        }
    }
    Ok(())
}
