//! The power-cut simulator's model of a database, and the comparison of a database with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use snowmelt_store::{
    Columns, PageId, Reader, ScanBounds, Snapshot, Store, StoreError, StringTree, TreeId, TupleTree,
};

/// Names of the trees that are more than pages.
pub const ROWS: &str = "rows";
pub const STRINGS: &str = "strings";
/// The store's own record.
const LINEAGE: &str = "lineage";
/// The record that says which commit the state is of.
pub const NUMBER: &str = "n";

/// A wrong answer.
pub type Wrong = String;

/// Which commit a snapshot is of.
pub fn number_in(snapshot: &Snapshot) -> u64 {
    snapshot.record(NUMBER).map_or(0, |b| u64::from_le_bytes((*b).try_into().expect("eight bytes")))
}

/// Content of pages that belong to no structure.
type HandMade = BTreeMap<PageId, (TreeId, Arc<Vec<u8>>)>;

/// Content of the database. Copies share the parts that neither changes.
#[derive(Clone, Default, PartialEq)]
pub struct Model {
    /// Content of hand-made pages.
    pub pages: Arc<HandMade>,
    /// Catalog records that belong to no tree.
    pub catalog: Arc<BTreeMap<String, Vec<u8>>>,
    /// Rows of a tuple tree.
    pub rows: Arc<BTreeSet<(u64, u64)>>,
    /// A string tree.
    pub strings: Arc<Vec<Arc<[u8]>>>,
}

impl Model {
    /// Which commit it is the state of.
    pub fn number(&self) -> u64 {
        self.catalog.get(NUMBER).map_or(0, |b| u64::from_le_bytes(b[..].try_into().expect("eight bytes")))
    }

    /// The whole state as a snapshot sees it, against the model.
    pub fn compare(&self, store: &Arc<Store>, snapshot: &Snapshot) -> Result<(), Wrong> {
        let mut reader = Reader::new(store, snapshot.clone());
        for (page, (tree, bytes)) in &*self.pages {
            let got = reader.page(*tree, *page).map_err(|e| format!("page {page}: {e}"))?;
            if got[32..] != bytes[..] {
                return Err(format!("page {page} of tree {} has another content", tree.0));
            }
        }
        // The store's own is there from the first commit on.
        if self.number() > 0 && snapshot.record(LINEAGE).is_none() {
            return Err("the state has no lineage".into());
        }
        let of_no_tree = |name: &&String| ![ROWS, STRINGS, LINEAGE].contains(&name.as_str());
        let names = snapshot.catalog().records.keys().filter(of_no_tree);
        if !names.eq(self.catalog.keys()) {
            return Err("the catalog has other records".into());
        }
        for (name, bytes) in &*self.catalog {
            if snapshot.record(name).as_deref() != Some(bytes) {
                return Err(format!("record {name:?} has another content"));
            }
        }
        self.compare_trees(&mut reader, snapshot).map_err(|e| match e {
            Found::Wrong(why) => why,
            Found::Error(e) => format!("trees: {e}"),
        })
    }

    fn compare_trees(&self, reader: &mut Reader, snapshot: &Snapshot) -> Result<(), Found> {
        match snapshot.record(ROWS) {
            Some(record) => {
                let tree = TupleTree::from_bytes(&record)?;
                let rows = all_rows(&tree, reader)?;
                same("rows", rows.iter().copied().eq(self.rows.iter().copied()))?;
                tree.check(reader)?;
            }
            None => same("rows", self.rows.is_empty())?,
        }
        match snapshot.record(STRINGS) {
            Some(record) => {
                let tree = StringTree::from_bytes(&record)?;
                let ids: Vec<u64> = (0..tree.len()).collect();
                let mut right = ids.len() == self.strings.len();
                if right {
                    tree.get(reader, &ids, |i, bytes| right &= *self.strings[i] == *bytes)?;
                }
                same("strings", right)
            }
            None => same("strings", self.strings.is_empty()),
        }
    }
}

enum Found {
    Wrong(Wrong),
    Error(StoreError),
}

impl From<StoreError> for Found {
    fn from(e: StoreError) -> Found {
        Found::Error(e)
    }
}

fn same(what: &str, right: bool) -> Result<(), Found> {
    if right { Ok(()) } else { Err(Found::Wrong(format!("the {what} are others"))) }
}

/// All rows of a tree of two columns.
pub fn all_rows(tree: &TupleTree, reader: &mut Reader) -> Result<Vec<(u64, u64)>, StoreError> {
    let mut scan = tree.scan(ScanBounds::default());
    let (mut rows, mut out) = (Vec::new(), Columns::new(2));
    while scan.next(reader, &mut out, 4096)? {
        rows.extend((0..out.rows).map(|i| (out.cols[0][i], out.cols[1][i])));
        out.clear();
    }
    Ok(rows)
}
