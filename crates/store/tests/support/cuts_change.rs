//! Actions of the power-cut simulator on a database: changes in transactions, and loads in bulk,
//! each with its effect on the model.

use std::collections::BTreeSet;
use std::sync::Arc;

use snowmelt_store::{
    Build, Changes, PageId, PageKind, Relocation, Store, StoreError, StringTree, StringTreeBuilder,
    Transaction, TreeId, TupleTree, TupleTreeBuilder,
};

use super::model::{Model, NUMBER, ROWS, STRINGS};
use crate::support::{self, Random};

/// Strings after which the tree is begun anew.
const MOST_STRINGS: usize = 200;

type Done = Result<(), StoreError>;

/// One change of a transaction.
pub fn change(random: &mut Random, txn: &mut Transaction, next: &mut Model) -> Done {
    let some = next.pages.iter().nth(random.below(next.pages.len().max(1)));
    let some = some.map(|(p, (tree, bytes))| (*p, *tree, bytes.clone()));
    match (random.below(20), some) {
        (0, _) | (_, None) => {
            let name = format!("tree {}", random.below(3));
            let catalog = txn.snapshot();
            let old = catalog.catalog().trees.iter().find(|(_, n)| **n == name).map(|(id, _)| *id);
            Arc::make_mut(&mut next.pages).retain(|_, (tree, _)| Some(*tree) != old);
            let tree = txn.new_tree(&name);
            let page = txn.allocate(tree, None)?;
            fill(random, txn, next, tree, page)?;
        }
        (1..=4, Some((page, tree, _))) => fill(random, txn, next, tree, page)?,
        (5..=8, Some((page, tree, bytes))) => {
            let mut bytes = (*bytes).clone();
            let at = random.below(bytes.len() - 8);
            bytes[at..at + 8].copy_from_slice(&random.next().to_le_bytes());
            put(txn, next, tree, page, bytes)?;
        }
        (9 | 10, Some((near, tree, _))) => {
            let page = txn.allocate(tree, Some(near))?;
            fill(random, txn, next, tree, page)?;
        }
        (11, Some((page, tree, _))) => {
            txn.release(tree, page);
            Arc::make_mut(&mut next.pages).remove(&page);
        }
        (12, _) => {
            let name = format!("record {}", random.below(4));
            let bytes: Vec<u8> = (0..random.below(40)).map(|i| i as u8 ^ random.next() as u8).collect();
            txn.put_record(&name, 1, &bytes);
            Arc::make_mut(&mut next.catalog).insert(name, bytes);
        }
        (13 | 14, _) => append_strings(random, txn, next)?,
        _ => change_rows(random, txn, next)?,
    }
    Ok(())
}

/// Changes of a transaction that is longer than the journal may be: pages are filled again and
/// again, and most of that is spilled.
#[allow(dead_code, reason = "device faults come to smaller ones")]
pub fn giant(random: &mut Random, txn: &mut Transaction, next: &mut Model) -> Done {
    /// Pages that are filled: more than stay in memory.
    const PAGES: usize = 56;
    while next.pages.len() < PAGES {
        let some = next.pages.iter().next().map(|(page, (tree, _))| (*page, *tree));
        match some {
            Some((near, tree)) => {
                let page = txn.allocate(tree, Some(near))?;
                fill(random, txn, next, tree, page)?;
            }
            None => {
                let tree = txn.new_tree("tree 0");
                let page = txn.allocate(tree, None)?;
                fill(random, txn, next, tree, page)?;
            }
        }
    }
    let pages: Vec<(PageId, TreeId)> = next.pages.iter().map(|(page, (tree, _))| (*page, *tree)).collect();
    for _ in 0..random.below(4) {
        for (page, tree) in &pages {
            fill(random, txn, next, *tree, *page)?;
        }
    }
    Ok(())
}

/// Says in the database and the model which commit this is.
pub fn number(next: &mut Model, number: u64) -> [u8; 8] {
    let bytes = number.to_le_bytes();
    Arc::make_mut(&mut next.catalog).insert(NUMBER.into(), bytes.to_vec());
    bytes
}

fn fill(random: &mut Random, txn: &mut Transaction, next: &mut Model, tree: TreeId, page: PageId) -> Done {
    let seed = random.next();
    let mut random = Random::new(seed);
    // Some compress, some do not.
    let mask = if seed.is_multiple_of(3) { 0x0101_0101_0101_0101 } else { u64::MAX };
    let mut bytes = vec![0; 8160];
    bytes.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&(random.next() & mask).to_le_bytes()));
    put(txn, next, tree, page, bytes)
}

fn put(txn: &mut Transaction, next: &mut Model, tree: TreeId, page: PageId, bytes: Vec<u8>) -> Done {
    let p = txn.page_mut(tree, page)?;
    p.set_header(PageKind::TupleLeaf, 0, 1);
    p.body_mut().copy_from_slice(&bytes);
    Arc::make_mut(&mut next.pages).insert(page, (tree, Arc::new(bytes)));
    Ok(())
}

/// A row of two columns, the second of which packs badly, so that there are leaves enough to
/// shuffle.
fn row(random: &mut Random) -> (u64, u64) {
    let n = random.below(250) as u64;
    (random.below(40) as u64, n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Inserts and deletes rows of the tuple tree, and perhaps moves its leaves.
fn change_rows(random: &mut Random, txn: &mut Transaction, next: &mut Model) -> Done {
    let mut tree = match txn.record(ROWS) {
        Some(bytes) => TupleTree::from_bytes(&bytes)?,
        None => TupleTree::create(txn, ROWS, 2)?,
    };
    let most = if random.below(10) == 0 { 500 } else { 50 };
    let n = 1 + random.below(most);
    let rows: BTreeSet<(u64, u64)> = (0..n).map(|_| row(random)).collect();
    let insert: Vec<bool> = rows.iter().map(|_| random.below(3) > 0).collect();
    let cols = vec![rows.iter().map(|r| r.0).collect(), rows.iter().map(|r| r.1).collect()];
    tree.apply(txn, &Changes { cols, insert: insert.clone() })?;
    if random.below(4) == 0 {
        let disorder = [0.0, Relocation::default().disorder][random.below(2)];
        let changed = [0.0, Relocation::default().changed][random.below(2)];
        tree.relocate(txn, &Relocation { disorder, changed, ..Relocation::default() })?;
    }
    txn.put_record(ROWS, 1, &tree.to_bytes());
    let all = Arc::make_mut(&mut next.rows);
    for (row, insert) in rows.into_iter().zip(insert) {
        if insert {
            all.insert(row)
        } else {
            all.remove(&row)
        };
    }
    Ok(())
}

/// A few strings, one in twelve of more than a page.
fn some_strings(random: &mut Random) -> Vec<Arc<[u8]>> {
    let words: [&[u8]; 4] = [b"melting ", b"snow ", b"runs down ", b"a hill "];
    let string = |random: &mut Random| -> Arc<[u8]> {
        let n = if random.below(12) == 0 { 500 + random.below(3000) } else { random.below(8) };
        (0..n).flat_map(|_| words[random.below(4)].iter().copied()).collect()
    };
    (0..1 + random.below(12)).map(|_| string(random)).collect()
}

fn append_strings(random: &mut Random, txn: &mut Transaction, next: &mut Model) -> Done {
    if next.strings.len() > MOST_STRINGS {
        txn.drop_tree(STRINGS);
        next.strings = Arc::default();
    }
    let mut tree = match txn.record(STRINGS) {
        Some(bytes) => StringTree::from_bytes(&bytes)?,
        None => StringTree::create(txn, STRINGS)?,
    };
    let strings = some_strings(random);
    tree.append(txn, &strings.iter().map(|s| &**s).collect::<Vec<_>>())?;
    txn.put_record(STRINGS, 1, &tree.to_bytes());
    Arc::make_mut(&mut next.strings).extend(strings);
    Ok(())
}

/// A load: trees are written in bulk, old rows and strings merged with new ones. What is left
/// is its commit; `None` when it was given up.
pub fn load(
    random: &mut Random,
    build: Build,
    store: &Arc<Store>,
    next: &mut Model,
    commit: u64,
) -> Result<Option<Build>, StoreError> {
    if random.below(3) > 0 {
        let name = format!("tree {}", random.below(3));
        let old = store.catalog_all().trees.iter().find(|(_, n)| **n == name).map(|(id, _)| *id);
        let pages = Arc::make_mut(&mut next.pages);
        pages.retain(|_, (tree, _)| Some(*tree) != old);
        let mut writer = build.new_tree(&name);
        for _ in 0..random.below(30) {
            let mut page = support::page(random.next(), 1);
            let bytes = Arc::new(page.body().to_vec());
            let id = writer.append(&mut page)?;
            pages.insert(id, (writer.id(), bytes));
        }
        writer.finish()?;
    }
    if random.below(2) == 0 {
        let rows = Arc::make_mut(&mut next.rows);
        rows.extend((0..random.below(300)).map(|_| row(random)));
        let mut builder = TupleTreeBuilder::new(build.new_tree(ROWS), 2);
        rows.iter().try_for_each(|r| builder.push(&[r.0, r.1]))?;
        build.put_record(ROWS, 1, &builder.finish()?.to_bytes());
    }
    match random.below(6) {
        0 => {
            build.drop_tree(STRINGS);
            next.strings = Arc::default();
        }
        1 | 2 => {
            let strings = Arc::make_mut(&mut next.strings);
            strings.extend(some_strings(random));
            let mut builder = StringTreeBuilder::new(build.new_tree(STRINGS), &[b"snow runs down "])?;
            strings.iter().try_for_each(|s| builder.push(s).map(drop))?;
            build.put_record(STRINGS, 1, &builder.finish()?.to_bytes());
        }
        _ => {}
    }
    if random.below(4) == 0 {
        return Ok(None);
    }
    build.put_record(NUMBER, 1, &number(next, commit));
    Ok(Some(build))
}
