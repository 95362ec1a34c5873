//! The nodes of a tree whose pages have moved get their new numbers, from the leaves upwards.

use super::Places;
use super::walk::{NodeStep, WalkedTree, references};
use crate::access::transaction::Transaction;
use crate::error::Result;
use crate::format::encoding::Decode;
use crate::format::inner::Child;
use crate::format::string::leaf::{GroupOrder, StringLeaf, StringLeafBuilder};
use crate::page::{PageBuf, PageId, PageKind};
use crate::tree::change::{Ascent, Changed, Now, Split, put};
use crate::tree::descent::Shape;
use crate::tree::long_value::LongRef;

/// Gives all nodes that were walked their new numbers. Returns the pages taken for splits, since
/// other numbers may take more bytes.
pub(super) fn repoint(
    txn: &mut Transaction,
    shape: &mut Shape,
    seen: WalkedTree,
    places: &Places,
) -> Result<i64> {
    let is_string = shape.inner == PageKind::StringInner;
    // strings are only added behind the last one
    let split = if is_string { Split::Full } else { Split::Even };
    let (mut changed, mut taken) = (Vec::new(), 0);
    for NodeStep { visit, entry } in seen.leaves {
        let at = places.of(visit.page);
        let mut nodes = vec![Child { page: at, ..entry }];
        if is_string {
            nodes = rewrite(txn, shape, nodes[0], places)?;
            taken += nodes.len() as i64 - 1;
        }
        if at != visit.page || nodes.len() > 1 {
            changed.push(Changed { parent: visit.parent, child: visit.child, now: Now::Nodes(nodes) });
        }
    }
    let mut ascent = Ascent { txn, shape, split, pages: taken };
    for (level, steps) in seen.levels.into_iter().enumerate() {
        changed = one_level(&mut ascent, level as u8 + 1, steps, changed, places)?;
    }
    let root = changed.pop();
    assert!(changed.is_empty(), "all ways lead to one root");
    if let Some(Changed { now: Now::Nodes(nodes), .. }) = root {
        ascent.grow(nodes)?;
    }
    Ok(ascent.pages)
}

/// The nodes of a level take the changes of their children; returns their own for their parents.
fn one_level(
    ascent: &mut Ascent<'_>,
    level: u8,
    steps: Vec<NodeStep>,
    changed: Vec<Changed>,
    places: &Places,
) -> Result<Vec<Changed>> {
    assert!(changed.is_sorted_by_key(|c| c.parent), "the changes of a node come together");
    let (mut above, mut rest) = (Vec::new(), changed.into_iter().peekable());
    for (i, NodeStep { visit, entry }) in steps.into_iter().enumerate() {
        let mut group = Vec::new();
        while let Some(next) = rest.next_if(|c| c.parent == i) {
            group.push(next);
        }
        let at = places.of(visit.page);
        let split = match group.is_empty() {
            true => None,
            false => match ascent.node(at, level, group)? {
                Now::Nodes(nodes) => Some(nodes),
                Now::Rows(more) => {
                    assert_eq!(more, 0, "pages move, rows stay");
                    None
                }
            },
        };
        let nodes = match split {
            Some(nodes) => nodes,
            None if at != visit.page => vec![Child { page: at, ..entry }],
            None => continue,
        };
        above.push(Changed { parent: visit.parent, child: visit.child, now: Now::Nodes(nodes) });
    }
    assert!(rest.next().is_none(), "each change has a parent");
    Ok(above)
}

/// Writes a leaf of strings anew where its long values have moved: in several, if their new
/// numbers take more room than it has.
fn rewrite(txn: &mut Transaction, shape: &Shape, entry: Child, places: &Places) -> Result<Vec<Child>> {
    let (id, at) = (shape.id, entry.page);
    let page = txn.page(id, at)?;
    let moves = references(&page).map(|all| all.iter().any(|(long, _)| places.has_any(&long.pages)));
    if !moves.map_err(|bad| txn.damaged(at, bad.0))? {
        return Ok(vec![entry]);
    }
    let leaves = moved_leaf(&page, places);
    drop(page);
    let leaves = leaves.map_err(|bad| txn.damaged(at, bad.0))?;
    let mut nodes = Vec::with_capacity(leaves.len());
    for (buf, first, rows) in leaves {
        let is_first = nodes.is_empty();
        let to: PageId = if is_first { at } else { txn.allocate(id, Some(at))? };
        put(txn, id, to, &buf)?;
        let separator = if is_first { entry.separator } else { [first, 0, 0, 0] };
        nodes.push(Child { separator, page: to, rows });
    }
    Ok(nodes)
}

/// The leaves that stand for one, with the first string and the number of each.
fn moved_leaf(page: &[u8], places: &Places) -> Decode<Vec<(PageBuf, u64, u64)>> {
    let leaf = StringLeaf::parse(page)?;
    let mut builder = StringLeafBuilder::from(leaf.first_id);
    let mut leaves = Vec::new();
    let end = |builder: &mut StringLeafBuilder, leaves: &mut Vec<(PageBuf, u64, u64)>| {
        let (mut buf, first, rows) = (PageBuf::new(), builder.first_id(), builder.len() as u64);
        builder.finish(&mut buf, GroupOrder::Downwards);
        leaves.push((buf, first, rows));
    };
    for i in 0..leaf.len {
        let place = leaf.place(page, i)?;
        let bytes = &page[place.at..place.at + place.len];
        let moved;
        let bytes = match place.is_long {
            true => {
                moved = LongRef::parse(bytes)?.moved(|page| places.of(page));
                &moved[..]
            }
            false => bytes,
        };
        if !builder.add(bytes, place.is_long) {
            end(&mut builder, &mut leaves);
            assert!(builder.add(bytes, place.is_long), "a quarter page fits into an empty leaf");
        }
    }
    end(&mut builder, &mut leaves);
    Ok(leaves)
}
