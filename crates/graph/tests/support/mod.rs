//! Builds small databases from lists of quads, with the crate's encoders and without the loader.
#![allow(dead_code)]

use snowmelt_graph::dict::{self, GraphFormat, GraphMeta, Place, Tree};

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use snowmelt_database::OpenOptions;
use snowmelt_graph::dict::code::Codes;
use snowmelt_graph::dict::prefix::PrefixEncoder;
use snowmelt_graph::{GraphDatabase, Index, Term, TermId};
use snowmelt_store::{Build, Store, StringTreeBuilder, TupleTreeBuilder};

/// Subject, predicate, object, graph (`None` is the default graph).
pub type Quad = (Term, Term, Term, Option<Term>);

/// Small memory and small extents, so that trees have several of them.
pub fn options() -> OpenOptions {
    OpenOptions { extent_pages: 8, memory_bytes: 4 << 20, direct: false, ..OpenOptions::default() }
}

/// The dictionary under construction.
#[derive(Default)]
pub struct Builder {
    pub format: GraphFormat,
    pub codes: Codes,
    pub hash_bits: Option<u8>,
    strings: [Vec<Vec<u8>>; 3],
    hashes: [BTreeSet<[u64; 3]>; 3],
    ids: HashMap<Term, TermId>,
    blanks: HashMap<String, u64>,
    pub quads: BTreeSet<[u64; 4]>,
}

impl Builder {
    pub fn id(&mut self, term: &Term) -> TermId {
        if let Some(id) = self.ids.get(term) {
            return *id;
        }
        let mut scratch = Vec::new();
        let id = match dict::place(&term.as_ref(), self.format, &mut self.codes, &mut scratch) {
            Place::Inline(id) => id,
            Place::Blank(label) => {
                let next = self.blanks.len() as u64;
                TermId::blank(*self.blanks.entry(label.to_owned()).or_insert(next))
            }
            Place::Entry(entry) => {
                let tree = entry.tree() as usize;
                let number = self.strings[tree].len() as u64;
                self.strings[tree].push(entry.string.to_vec());
                let bits = self.hash_bits.unwrap_or(dict::HASH_BITS as u8);
                self.hashes[tree].insert([entry.hash() >> (64 - bits), number, entry.code.into()]);
                entry.id(number)
            }
            Place::Unknown => unreachable!("a growing table knows all"),
            Place::Triple(_) => unreachable!("the lists have no triple terms"),
        };
        self.ids.insert(term.clone(), id);
        id
    }

    pub fn quad(&mut self, (subject, predicate, object, graph): &Quad) {
        let graph = graph.as_ref().map_or(TermId::DEFAULT_GRAPH, |graph| self.id(graph));
        let quad = [self.id(subject).0, self.id(predicate).0, self.id(object).0, graph.0];
        self.quads.insert(quad);
    }

    /// The rows of a hash tree, to be spoiled for a check.
    pub fn hashes(&mut self, tree: Tree) -> &mut BTreeSet<[u64; 3]> {
        &mut self.hashes[tree as usize]
    }

    /// Rows of an index.
    pub fn rows(&self, index: Index) -> BTreeSet<Vec<u64>> {
        self.quads.iter().map(|quad| index.row(*quad)[..index.arity()].to_vec()).collect()
    }

    /// Writes the database; `change` may first spoil the rows of the indexes.
    pub fn write(&self, store: &Arc<Store>, change: impl FnOnce(&mut BTreeMap<Index, BTreeSet<Vec<u64>>>)) {
        let build = store.begin_build().unwrap();
        for tree in Tree::ALL {
            self.write_strings(&build, tree);
            let rows = &self.hashes[tree as usize];
            write_tuples(&build, tree.hash_name(), tree.hash_arity(), rows.iter().map(|row| &row[..]));
        }
        let mut indexes = Index::ALL.into_iter().map(|index| (index, self.rows(index))).collect();
        change(&mut indexes);
        for (index, rows) in &indexes {
            write_tuples(&build, index.name(), index.arity(), rows.iter().map(|row| &row[..]));
        }
        let meta = GraphMeta {
            format: self.format,
            quads: indexes[&Index::Psog].len() as u64,
            blank_nodes: self.blanks.len() as u64,
            hash_bits: self.hash_bits.unwrap_or(dict::HASH_BITS as u8),
            plain: false,
        };
        build.put_record(dict::RECORD_META, 0, &meta.to_bytes());
        build.put_record(dict::RECORD_CODES, 0, &self.codes.to_bytes());
        build.commit().unwrap();
    }

    fn write_strings(&self, build: &Build, tree: Tree) {
        let mut prefixes = PrefixEncoder::new();
        let mut encoded = Vec::new();
        let strings: Vec<Vec<u8>> = self.strings[tree as usize]
            .iter()
            .map(|string| match tree {
                Tree::Iri => {
                    prefixes.encode(std::str::from_utf8(string).unwrap(), &mut encoded);
                    encoded.clone()
                }
                _ => string.clone(),
            })
            .collect();
        let sample: Vec<&[u8]> = strings.iter().take(1000).map(|string| &string[..]).collect();
        let mut builder = StringTreeBuilder::new(build.new_tree(tree.name()), &sample).unwrap();
        for (number, string) in strings.iter().enumerate() {
            assert_eq!(builder.push(string).unwrap(), number as u64);
        }
        build.put_record(tree.name(), 0, &builder.finish().unwrap().to_bytes());
        if tree == Tree::Iri {
            build.put_record(dict::RECORD_PREFIXES, 0, &prefixes.finish().to_bytes());
        }
    }
}

fn write_tuples<'a>(build: &Build, name: &str, arity: usize, rows: impl Iterator<Item = &'a [u64]>) {
    let mut builder = TupleTreeBuilder::new(build.new_tree(name), arity);
    let mut last: Option<&[u64]> = None;
    for row in rows {
        // Spoiled rows may be equal in the stored columns.
        if last.is_none_or(|last| last[..arity] < row[..arity]) {
            builder.push(&row[..arity]).unwrap();
        }
        last = Some(row);
    }
    build.put_record(name, 0, &builder.finish().unwrap().to_bytes());
}

/// A database of these quads in `dir`.
pub fn database(dir: &Path, quads: &[Quad]) -> (Arc<GraphDatabase>, Builder) {
    let mut builder = Builder::default();
    quads.iter().for_each(|quad| builder.quad(quad));
    (build(dir, &builder), builder)
}

/// A database of what the builder holds, closed and opened again.
pub fn build(dir: &Path, builder: &Builder) -> Arc<GraphDatabase> {
    let store = Store::create(dir, &[], options()).unwrap();
    builder.write(&store, |_| {});
    drop(store);
    GraphDatabase::open(dir, &options()).unwrap()
}
