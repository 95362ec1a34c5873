//! The next generation of all trees, written beside readers and writers: terms without quads are
//! left out, the others are numbered as a load would number them.
//!
//! 1. *mark*: a sweep over PSOG marks the terms that occur (`live`), one over the triple terms
//!    those in them;
//! 2. *number*: a sweep subject by subject gives new numbers by first occurrence, as in a load
//!    of a dump; if there is too little memory for that, terms keep their order;
//! 3. *terms*: the strings go to the new string trees in the order of the new numbers, their
//!    hashes to the sorters;
//! 4. *quads*: a sweep over PSOG maps ids and hands the rows to the sorters; the rest is as in
//!    a load (`index`).
//!
//! Commits go on meanwhile, and each step may see newer ones than the step before, because it
//! reads new snapshots now and then: an old one would hold the checkpointer back. So a
//! step may miss rows that an earlier one saw, or meet a term that has no number. All of these are
//! in quads that were changed since the begin. Their changes are in the log, and the final state of
//! a quad in the log is the one that counts ([`crate::database::change_log`]).

mod live;
mod sweep;
mod triple_terms;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_store::{Build, StoreError, Waiter};

use self::live::{LiveTerms, NewNumbers};
use self::sweep::Sweep;
use self::triple_terms::TripleRow;
use super::account::LoadMemory;
use super::dictionary::{Dictionary, HashSorters, RECORD_KIND};
use super::index::Indexer;
use super::options::{LoadSizes, Sizes};
use super::progress::{LoadProgress, Phase, Teller};
use super::read::GraphsSeen;
use super::runs::{Run, RunReader, RunStore, RunWriter};
use super::sorter::{Merge, Sorter};
use super::strings::{MANY_STRINGS, SAMPLE_BYTES};
use super::temp::TempSpace;
use crate::database::GraphDatabase;
use crate::database::state::GraphState;
use crate::dict::{self, GraphMeta, Tree, dictionary_error};
use crate::error::GraphError;
use crate::index::triple::TripleIndex;
use crate::input::cancelled;
use crate::input::error::LoadError;
use crate::session::Session;
use crate::term::{TermId, TermKind};

/// Least memory of a rewrite, in bytes: with less, samples are poor and runs are many.
pub(crate) const LEAST_MEMORY: u64 = 8 << 20;

/// Most terms read together, and most bytes of their strings.
const STEP_TERMS: usize = 8192;
const MOST_STEP_BYTES: u64 = 4 << 20;

/// Terms of the new generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keep {
    /// Terms that occur in quads, under new numbers.
    Live,
    /// All terms, under their old numbers: only the place of the trees changes.
    All,
}

/// Inputs of a rewrite.
pub(crate) struct Rewrite<'a> {
    pub(crate) database: &'a Arc<GraphDatabase>,
    pub(crate) keep: Keep,
    pub(crate) memory_bytes: u64,
    pub(crate) threads: usize,
    pub(crate) sizes: LoadSizes,
    /// Rows after which a sweep renews its snapshot.
    pub(crate) renew_rows: u64,
    /// Waits for the turn to commit.
    pub(crate) waiter: &'a Waiter<'a>,
    pub(crate) cancel: &'a AtomicBool,
}

/// The terms of a tree in the order of their new numbers.
enum Order {
    /// Ids of the old generation, by first occurrence.
    First(RunReader<1>),
    /// By old number, with the annotation codes of literals.
    Old { next: u64, len: u64, codes: Option<Merge<2>> },
}

impl Rewrite<'_> {
    /// Writes the new generation with `build`, which was begun beside the writers, after the log of
    /// changes. When it returns, the generation is durable, under names of its own.
    pub(crate) fn run(&self, build: Build, progress: &dyn LoadProgress) -> Result<(), LoadError> {
        let teller = &mut Teller::new(progress, None);
        let sizes = Sizes::within(self.memory_bytes, self.threads, self.sizes);
        let temp = TempSpace::create(&self.database.database().work_dir())?;
        let account = LoadMemory::new(sizes.run_bytes);
        let run_store = |name| RunStore::new(name, &temp, &account);
        let hash_rows = (sizes.batch_rows / 2).max(1);
        let hashes = HashSorters::new(run_store, hash_rows, sizes.fan_in);
        // Newer terms and codes than these belong to quads in the log.
        let begun = self.database.state()?;
        let is_much = begun.string_bytes() >= MANY_STRINGS;
        let mut dictionary = Dictionary::new(&build, &hashes, self.sample_bytes(), is_much);
        dictionary.keep_codes_of(&begun);

        let (mut numbers, orders) = self.numbers(&begun, sizes.table_bytes, &run_store, teller)?;
        teller.phase(Phase::Terms, Some(numbers.terms()));
        let mut done = 0;
        for (tree, order) in Tree::ALL.into_iter().zip(orders) {
            let order = match order {
                Some(order) => Order::First(RunReader::new(&order.store, order.run)?),
                None => {
                    let codes = |name| Sorter::new(run_store(name), hash_rows, sizes.fan_in);
                    self.old_order(tree, &numbers, &codes)?
                }
            };
            self.write_terms(tree, order, &numbers, &mut dictionary, &mut |terms| {
                done += terms;
                teller.done(done);
            })?;
        }
        let quads = Sorter::new(run_store("psog"), sizes.batch_rows, sizes.fan_in);
        let (rows, graphs) = self.sort_quads(&quads, &numbers, &begun, teller)?;
        self.write_triples(&mut numbers, &begun, &mut dictionary)?;
        drop(numbers);

        let format = dictionary.format();
        let terms = dictionary.finish(&build)?;
        let mut indexer = Indexer {
            build: &build,
            sizes,
            threads: self.threads,
            store: &run_store,
            cancel: self.cancel,
            teller,
        };
        indexer.hashes(&hashes, terms.iris + terms.literals + terms.texts)?;
        if terms.triple_terms > 0 {
            indexer.triple_terms(&hashes.triple, terms.triple_terms)?;
        }
        let distinct = indexer.quads(quads, rows, graphs)?;
        assert!(distinct <= rows, "no quad was made up");
        teller.phase(Phase::Commit, None);
        let meta = GraphMeta {
            format,
            quads: distinct,
            blank_nodes: begun.meta().blank_nodes,
            plain: graphs.is_plain(),
            ..GraphMeta::default()
        };
        build.put_record(dict::RECORD_META, RECORD_KIND, &meta.to_bytes());
        cancelled(self.cancel)?;
        if !build.commit_for(self.waiter)? {
            return Err(LoadError::Cancelled);
        }
        teller.end_phase();
        Ok(())
    }

    /// Hands the quads to the sorter, under their new ids; returns their number and the graphs that
    /// occur.
    fn sort_quads(
        &self,
        quads: &Arc<Sorter<4>>,
        numbers: &NewNumbers,
        begun: &GraphState,
        teller: &mut Teller<'_>,
    ) -> Result<(u64, GraphsSeen), LoadError> {
        teller.phase(Phase::Quads, Some(begun.quads()));
        let mut batch = quads.batch();
        let mut graphs = GraphsSeen::None;
        let mut rows = 0;
        self.sweep().quads(|_, columns| {
            rows += columns.rows as u64;
            teller.done(rows);
            for row in 0..columns.rows {
                let row = [0, 1, 2, 3].map(|c| numbers.map(TermId(columns.cols[c][row]), begun));
                // A row with an unnumbered term was inserted since the begin.
                if let [Some(p), Some(s), Some(o), Some(g)] = row {
                    graphs.add(g.0);
                    batch.push([p.0, s.0, o.0, g.0])?;
                }
            }
            Ok(())
        })?;
        batch.finish()?;
        Ok((rows, graphs))
    }

    /// Hands the live triple terms to the dictionary, under their new ids.
    fn write_triples(
        &self,
        numbers: &mut NewNumbers,
        begun: &GraphState,
        dictionary: &mut Dictionary,
    ) -> Result<(), LoadError> {
        let write = |numbers: &mut NewNumbers, rows: &[TripleRow]| {
            for row in rows {
                let new = row.map(|id| numbers.map(id, begun));
                let [Some(id), Some(s), Some(p), Some(o)] = new else {
                    let why = format!("{:?} has a term without a number", row[0]);
                    return Err(GraphError::record(TripleIndex::Id.name(), why).into());
                };
                let number = dictionary.next_triple();
                assert_eq!(number, id.number(), "numbers are ranks");
                dictionary.triple_row([id.0, s.0, p.0, o.0])?;
            }
            Ok(())
        };
        self.sweep().live_triples(write, numbers)
    }

    /// Bytes of each sample for a codec: the three are at most half of the memory.
    fn sample_bytes(&self) -> usize {
        SAMPLE_BYTES.min((self.memory_bytes / 6) as usize)
    }

    /// Bytes of strings read together.
    fn step_bytes(&self) -> usize {
        MOST_STEP_BYTES.min(self.memory_bytes / 8) as usize
    }

    fn sweep(&self) -> Sweep<'_> {
        Sweep { database: self.database, renew_rows: self.renew_rows, cancel: self.cancel }
    }

    /// The new numbers, and by tree the list of its terms in their order where that is not the
    /// old one.
    fn numbers(
        &self,
        begun: &GraphState,
        most_bytes: u64,
        run_store: &dyn Fn(&'static str) -> Arc<RunStore>,
        teller: &mut Teller<'_>,
    ) -> Result<(NewNumbers, [Option<OrderRun>; 3]), LoadError> {
        if self.keep == Keep::All {
            return Ok((NewNumbers::same(begun), [None, None, None]));
        }
        let mut live = LiveTerms::new(begun);
        if live.bytes() > most_bytes {
            let wanted = self.memory_bytes / most_bytes.max(1) * live.bytes();
            let (what, free) = ("rewriting the terms".to_owned(), self.memory_bytes);
            return Err(StoreError::Memory { what, wanted, free, total: self.memory_bytes }.into());
        }
        teller.phase(Phase::Mark, Some(begun.quads()));
        let mut rows = 0;
        self.sweep().quads(|_, columns| {
            rows += columns.rows as u64;
            teller.done(rows);
            columns.cols.iter().flatten().for_each(|id| live.mark(TermId(*id)));
            Ok(())
        })?;
        self.sweep().mark_triples(&mut live)?;
        let live = live.count();
        let bytes = live.bytes() + NewNumbers::first_bytes(&live);
        if bytes > most_bytes {
            return Ok((NewNumbers::in_order(live), [None, None, None]));
        }
        let mut numbers = NewNumbers::by_first(live);
        let names = ["order-iri", "order-lit", "order-text"];
        let stores = names.map(run_store);
        let mut writers = stores.each_ref().map(RunWriter::<1>::new);
        let mut fresh: [Vec<[u64; 1]>; 3] = Default::default();
        teller.phase(Phase::Number, Some(begun.quads()));
        let mut rows = 0;
        self.sweep().by_subject(|quads| {
            for quad in quads {
                for id in quad.map(TermId) {
                    if let Some(tree) = numbers.meet(id) {
                        fresh[tree as usize].push([id.0]);
                    }
                }
            }
            for (writer, fresh) in writers.iter_mut().zip(&mut fresh) {
                writer.push(fresh)?;
                fresh.clear();
            }
            rows += quads.len() as u64;
            teller.done(rows);
            Ok(())
        })?;
        let meet = |numbers: &mut NewNumbers, rows: &[TripleRow]| {
            for id in rows.iter().flat_map(|row| &row[1..]) {
                if let Some(tree) = numbers.meet(*id) {
                    writers[tree as usize].push(&[[id.0]])?;
                }
            }
            Ok(())
        };
        self.sweep().live_triples(meet, &mut numbers)?;
        let mut runs = [None, None, None];
        for ((slot, writer), store) in runs.iter_mut().zip(writers).zip(stores) {
            *slot = Some(OrderRun { run: writer.finish()?, store });
        }
        Ok((numbers, runs))
    }

    /// The terms of a tree in their old order.
    fn old_order(
        &self,
        tree: Tree,
        numbers: &NewNumbers,
        codes: &dyn Fn(&'static str) -> Arc<Sorter<2>>,
    ) -> Result<Order, LoadError> {
        let len = numbers.old_len(tree);
        let name = match tree {
            Tree::Iri => return Ok(Order::Old { next: 0, len, codes: None }),
            Tree::Literal => "old-literal-codes",
            Tree::Text => "old-text-codes",
        };
        let sorter = codes(name);
        let mut batch = sorter.batch();
        self.sweep().hashes(tree, |columns| {
            let pairs = columns.cols[1].iter().zip(&columns.cols[2]);
            let live = pairs.filter(|(number, _)| numbers.number(tree, **number).is_some());
            live.into_iter().try_for_each(|(number, code)| batch.push([*number, *code]))
        })?;
        batch.finish()?;
        Ok(Order::Old { next: 0, len, codes: Some(sorter.merge()?) })
    }

    /// Writes the strings of a tree in the order of their new numbers.
    fn write_terms(
        &self,
        tree: Tree,
        mut order: Order,
        numbers: &NewNumbers,
        dictionary: &mut Dictionary,
        told: &mut dyn FnMut(u64),
    ) -> Result<(), LoadError> {
        let mut session = self.sweep().session()?;
        let (mut terms, mut read) = (Vec::new(), 0);
        let mut written = 0;
        while order.next(tree, numbers, &mut terms)? {
            for terms in terms.chunks(STEP_TERMS) {
                cancelled(self.cancel)?;
                let mut rest = terms;
                while !rest.is_empty() {
                    let most = self.step_bytes();
                    let many = write_step(&mut session, tree, most, rest, dictionary, written)?;
                    written += many as u64;
                    told(many as u64);
                    rest = &rest[many..];
                }
                read += terms.len() as u64;
                if read >= self.renew_rows {
                    (session, read) = (self.sweep().session()?, 0);
                }
            }
            terms.clear();
        }
        if written != numbers.len(tree) {
            let why = format!("it leads to {written} of {} terms", numbers.len(tree));
            return Err(GraphError::record(tree.hash_name(), why).into());
        }
        Ok(())
    }
}

/// A list of terms, and where it is kept.
struct OrderRun {
    run: Run,
    store: Arc<RunStore>,
}

impl Order {
    /// Appends terms, (old number, code) each, in the order of their new numbers; false at the end.
    fn next(
        &mut self,
        tree: Tree,
        numbers: &NewNumbers,
        out: &mut Vec<(u64, u16)>,
    ) -> Result<bool, LoadError> {
        match self {
            Order::First(run) => {
                let mut block = Vec::new();
                if !run.next_block(&mut block)? {
                    return Ok(false);
                }
                let ids = block.iter().map(|[id]| TermId(*id));
                out.extend(ids.map(|id| {
                    (id.number(), if id.kind().has_code() { id.code() } else { dict::code::PLAIN })
                }));
            }
            Order::Old { codes: Some(codes), .. } => {
                let mut rows = Vec::new();
                if !codes.next(&mut rows, STEP_TERMS)? {
                    return Ok(false);
                }
                out.extend(rows.iter().map(|[number, code]| (*number, *code as u16)));
            }
            Order::Old { next, len, codes: None } => {
                if next == len {
                    return Ok(false);
                }
                let end = (*next + STEP_TERMS as u64).min(*len);
                let live = (*next..end).filter(|number| numbers.number(tree, *number).is_some());
                out.extend(live.map(|number| (number, 0)));
                *next = end;
            }
        }
        Ok(true)
    }
}

/// Writes the first of some terms, as many as may be held together in so many bytes, and answers
/// how many. The first of them gets the number `first`.
fn write_step(
    session: &mut Session,
    tree: Tree,
    most_bytes: usize,
    terms: &[(u64, u16)],
    dictionary: &mut Dictionary,
    first: u64,
) -> Result<usize, LoadError> {
    let state = session.state().clone();
    let missing =
        |number| GraphError::Dictionary { tree: tree.name(), number, why: "there is no such string".into() };
    let mut many = terms.len();
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    loop {
        let mut by_number: Vec<usize> = (0..many).collect();
        by_number.sort_unstable_by_key(|at| terms[*at].0);
        let numbers: Vec<u64> = by_number.iter().map(|at| terms[*at].0).collect();
        let last = numbers[many - 1];
        let strings =
            state.strings(tree).filter(|strings| last < strings.len()).ok_or_else(|| missing(last))?;
        bytes.clear();
        spans.clear();
        spans.resize(many, (0, 0));
        let all = strings
            .get_while(session.reader(), &numbers, |at, string| {
                spans[by_number[at]] = (bytes.len(), string.len());
                bytes.extend_from_slice(string);
                many == 1 || bytes.len() <= most_bytes
            })
            .map_err(GraphError::from)?;
        if all {
            break;
        }
        many = many.div_ceil(2);
    }
    let mut iri = Vec::new();
    for (at, ((number, code), (start, len))) in terms[..many].iter().zip(&spans).enumerate() {
        let string = &bytes[*start..*start + *len];
        let got = if tree == Tree::Iri {
            let id = TermId::new(TermKind::Iri, *number);
            let (prefix, local) = state.prefixes().split(string).map_err(|why| dictionary_error(id, why))?;
            iri.clear();
            iri.extend_from_slice(prefix.as_bytes());
            iri.extend_from_slice(local.as_bytes());
            dictionary.stored(tree, 0, &iri)?
        } else {
            dictionary.stored(tree, *code, string)?
        };
        assert_eq!(got, first + at as u64, "numbers are dealt out in the order of the strings");
    }
    Ok(many)
}
