//! Counts and sizes of a database.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use snowmelt_store::{PAGE_BYTES, TreeId};

use crate::database::GraphDatabase;
use crate::database::state::GraphState;
use crate::dict::Tree;
use crate::error::Result;
use crate::index::Index;
use crate::index::triple::TripleIndex;
use crate::session::Session;
use crate::term::TermKind;
use crate::term::range::ids_of_kind;

/// Counts and sizes of a database.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stats {
    /// Quads.
    pub quads: u64,
    /// Distinct subjects.
    pub subjects: u64,
    /// Distinct predicates.
    pub predicates: u64,
    /// Distinct objects.
    pub objects: u64,
    /// Distinct graphs, the default graph among them if it has quads.
    pub graphs: u64,
    /// Terms by storage.
    pub terms: Terms,
    /// Distinct pairs of object and predicate, by kind of the object; kinds without pairs are left
    /// out.
    pub objects_by_kind: BTreeMap<&'static str, u64>,
    /// Trees, in the order of their ids, the store's own pages first.
    pub trees: Vec<TreeSize>,
    /// Bytes of the stripe files in use.
    pub bytes: u64,
    /// Those bytes per quad; 0 without quads.
    pub bytes_per_quad: f64,
    /// Bytes of the stripe files per quad, without the string trees of literals and texts; 0
    /// without quads.
    pub bytes_per_quad_without_literals: f64,
}

/// Terms in the dictionary, and blank nodes. Inline literals are not counted: they take no space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Terms {
    /// IRIs.
    pub iris: u64,
    /// Blank nodes.
    pub blank_nodes: u64,
    /// Literals up to 256 bytes long (in graph format 1: 64), and long numbers and dates.
    pub literals: u64,
    /// Longer literals.
    pub texts: u64,
    /// Triple terms.
    pub triple_terms: u64,
    /// Languages and datatypes with a code.
    pub annotations: u64,
    /// Datatypes whose decimal-like literals are inline.
    pub decimal_datatypes: u64,
    /// Prefixes of IRIs.
    pub prefixes: u64,
}

/// Size of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TreeSize {
    /// Its name.
    pub name: String,
    /// Rows or strings; 0 for the store's own pages.
    pub rows: u64,
    /// Pages written.
    pub pages: u64,
    /// Bytes of its extents in the files.
    pub bytes: u64,
}

impl GraphDatabase {
    /// Counts and sizes; reads a few pages.
    pub fn stats(self: &Arc<Self>) -> Result<Stats> {
        let mut session = self.session()?;
        let state = session.state().clone();
        let trees = self.tree_sizes(&state);
        let bytes: u64 = trees.iter().map(|tree| tree.bytes).sum();
        let is_text =
            |tree: &&TreeSize| [Tree::Literal.name(), Tree::Text.name()].contains(&tree.name.as_str());
        let text_bytes: u64 = trees.iter().filter(is_text).map(|tree| tree.bytes).sum();
        let per_quad =
            |bytes: u64| if state.quads() == 0 { 0.0 } else { bytes as f64 / state.quads() as f64 };
        let distinct = |index: Index| state.index(index).map_or(0, |tree| tree.distinct(1));
        Ok(Stats {
            quads: state.quads(),
            subjects: distinct(Index::Sp),
            predicates: distinct(Index::Psog),
            objects: distinct(Index::Op),
            graphs: distinct(Index::Gs),
            terms: terms(&state),
            objects_by_kind: objects_by_kind(&mut session)?,
            bytes,
            bytes_per_quad: per_quad(bytes),
            bytes_per_quad_without_literals: per_quad(bytes - text_bytes),
            trees,
        })
    }

    fn tree_sizes(&self, state: &GraphState) -> Vec<TreeSize> {
        let mut extents: BTreeMap<TreeId, u64> = BTreeMap::new();
        for (_, extent) in self.database().store().extents() {
            if let Some(tree) = extent.tree {
                *extents.entry(tree).or_default() += 1;
            }
        }
        let extent_bytes = self.database().store().geometry().extent_bytes();
        let sizes = self.database().store().tree_stats().into_iter().map(|tree| TreeSize {
            rows: rows_of(state, &tree.name),
            pages: tree.pages,
            bytes: extents.get(&TreeId(tree.tree)).map_or(0, |extents| extents * extent_bytes),
            name: tree.name,
        });
        sizes.collect()
    }
}

fn terms(state: &GraphState) -> Terms {
    let len = |tree: Tree| state.strings(tree).map_or(0, |strings| strings.len());
    Terms {
        iris: len(Tree::Iri),
        blank_nodes: state.meta().blank_nodes,
        literals: len(Tree::Literal),
        texts: len(Tree::Text),
        triple_terms: state.triple_terms(),
        annotations: state.codes().annotation_codes().len() as u64,
        decimal_datatypes: state.codes().decimal_datatypes() as u64,
        prefixes: state.prefixes().len() as u64,
    }
}

fn objects_by_kind(session: &mut Session) -> Result<BTreeMap<&'static str, u64>> {
    let mut kinds = BTreeMap::new();
    for kind in TermKind::ALL {
        let (low, high) = ids_of_kind(kind).into_inner();
        match session.count(Index::Op, &[], Some((low, high)))? {
            0 => {}
            pairs => drop(kinds.insert(kind.name(), pairs)),
        }
    }
    Ok(kinds)
}

fn rows_of(state: &GraphState, name: &str) -> u64 {
    let tuples = Index::ALL.into_iter().map(|index| (index.name(), state.index(index)));
    let hashes = Tree::ALL.into_iter().map(|tree| (tree.hash_name(), state.hashes(tree)));
    let triples = TripleIndex::ALL.into_iter().map(|index| (index.name(), state.triple(index)));
    let mut rows =
        tuples.chain(hashes).chain(triples).map(|(name, tree)| (name, tree.map_or(0, |tree| tree.rows())));
    if let Some((_, rows)) = rows.find(|(tree, _)| *tree == name) {
        return rows;
    }
    let strings = Tree::ALL.into_iter().find(|tree| tree.name() == name);
    strings.and_then(|tree| state.strings(tree)).map_or(0, |strings| strings.len())
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Terms {
            iris,
            blank_nodes,
            literals,
            texts,
            triple_terms,
            annotations,
            decimal_datatypes,
            prefixes,
        } = self.terms;
        for (name, count) in [
            ("quads", self.quads),
            ("subjects", self.subjects),
            ("predicates", self.predicates),
            ("objects", self.objects),
            ("graphs", self.graphs),
            ("IRIs", iris),
            ("blank nodes", blank_nodes),
            ("literals", literals),
            ("texts", texts),
            ("triple terms", triple_terms),
            ("languages and datatypes", annotations),
            ("decimal-like datatypes", decimal_datatypes),
            ("IRI prefixes", prefixes),
        ] {
            writeln!(f, "{name:24} {count:>14}")?;
        }
        writeln!(f, "\nobject-predicate pairs by kind of object")?;
        for (kind, pairs) in &self.objects_by_kind {
            writeln!(f, "{kind:24} {pairs:>14}")?;
        }
        writeln!(f, "\n{:12} {:>14} {:>10} {:>14} {:>9}", "tree", "rows", "pages", "bytes", "per quad")?;
        let per_quad = |bytes: u64| if self.quads == 0 { 0.0 } else { bytes as f64 / self.quads as f64 };
        for TreeSize { name, rows, pages, bytes } in &self.trees {
            // Per quad counts the pages written, not the extents: the last extent of a small tree
            // is mostly empty.
            let written = per_quad(pages * PAGE_BYTES as u64);
            writeln!(f, "{name:12} {rows:>14} {pages:>10} {bytes:>14} {written:>9.2}")?;
        }
        writeln!(f, "{:12} {:>25} {:>14} {:>9.2}", "all", "", self.bytes, self.bytes_per_quad)?;
        writeln!(f, "without literals and texts {:>35.2}", self.bytes_per_quad_without_literals)
    }
}
