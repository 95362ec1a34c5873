//! Where reads went.

use std::fmt;

use snowmelt_graph::Activity;
use snowmelt_store::Store;

/// Reads since a database was opened.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("people.db");
/// # let db = snowmelt::Database::create(&path)?;
/// # db.update("INSERT DATA { <urn:ann> <urn:age> 30 }")?;
/// # drop(db);
/// let db = snowmelt::Database::open(path)?;
/// db.query("SELECT * { ?s ?p ?o }")?.for_each(drop);
/// let reads = db.reads();
/// assert!(reads.activity.disk > 0 && reads.bytes > 0);
/// println!("{reads}"); // tree by tree
/// # Ok::<(), snowmelt::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reads {
    /// Counts of all queries together; `disk` are pages of 8 KiB.
    pub activity: Activity,
    /// Requests that the devices got.
    pub requests: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Trees from which pages were read, most pages first.
    pub trees: Vec<TreeReads>,
}

/// Reads of one tree.
///
/// ```
/// # let db = snowmelt::Database::in_memory()?;
/// # db.update("INSERT DATA { <urn:ann> <urn:age> 30 }")?;
/// for tree in db.reads().trees {
///     let wasted = tree.ahead - tree.ahead_used;
///     println!("{}: {} pages read, {wasted} of them for nothing so far", tree.name, tree.read);
/// }
/// # Ok::<(), snowmelt::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TreeReads {
    /// Its name: an index (`psog`, `posg`, `sp`, `op`, `gs`) or a part of the dictionary.
    pub name: String,
    /// Pages it has.
    pub pages: u64,
    /// Pages of it that are in memory now.
    pub resident: u64,
    /// Pages whose read was started.
    pub read: u64,
    /// Those that were read ahead of need.
    pub ahead: u64,
    /// Those of `ahead` that were used.
    pub ahead_used: u64,
}

impl Reads {
    pub(crate) fn of(store: &Store) -> Self {
        let tree = |tree: snowmelt_store::TreeStats| {
            let ahead = tree.ahead_total();
            TreeReads {
                pages: tree.pages,
                resident: tree.resident,
                read: tree.reads,
                ahead: ahead.issued,
                ahead_used: ahead.used,
                name: tree.name,
            }
        };
        let mut trees: Vec<TreeReads> =
            store.tree_stats().into_iter().map(tree).filter(|tree| tree.read > 0).collect();
        trees.sort_by_key(|tree| std::cmp::Reverse(tree.read));
        let devices = store.device_counters();
        let classes = || devices.iter().flat_map(|device| &device.classes);
        Reads {
            activity: store.activity(),
            requests: classes().map(|class| class.device_requests).sum(),
            bytes: classes().map(|class| class.bytes).sum(),
            trees,
        }
    }
}

impl fmt::Display for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} requests, {} bytes; {}", self.requests, self.bytes, self.activity)?;
        writeln!(f, "{:<14} {:>9} {:>9} {:>9} {:>9}", "tree", "pages", "read", "ahead", "used")?;
        for tree in &self.trees {
            let TreeReads { name, pages, read, ahead, ahead_used, .. } = tree;
            writeln!(f, "{name:<14} {pages:>9} {read:>9} {ahead:>9} {ahead_used:>9}")?;
        }
        Ok(())
    }
}
