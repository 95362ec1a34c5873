//! Checks a whole database: pages, trees, the indexes against each other, the dictionary.
//!
//! 1. *pages*: every written page is read: checksum, page id, tree, the transaction that wrote
//!    it last;
//! 2. *nodes*: each tree from its root, as the catalog names it: levels, separators, the row
//!    count of every child; every page in use in the extent map is reached exactly once, by the
//!    tree it belongs to, and no other (`check_trees`);
//! 3. *trees*: rows strictly ascending, as many as the catalog says, distinct prefixes as the
//!    catalog says;
//! 4. *indexes*: POSG holds the quads of PSOG, and SP, OP, GS are their distinct pairs;
//! 5. *triple terms*: the four orders hold the same, each of them numbered and made of stored terms
//!    (`check_triple_terms`);
//! 6. *terms*: every id in the indexes stands for a term (`check_dict`);
//! 7. *dictionary*: every string is found by its hash, and every hash leads to a string that
//!    has it (`check_dict`).
//!
//! Pages that are only in the journal are read from it. The check sees all trees as of one commit;
//! opening the database has already read the rest of the journal.
//!
//! Sets are compared by their [`Sum`]s, so nothing is sorted or kept in memory. A problem does not
//! end the check: it is noted, and the check goes on with the parts that can still be read.

mod dict;
mod trees;
mod triple_terms;

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use snowmelt_store::{Columns, Keys, Matches, TupleTree};

use crate::database::GraphDatabase;
use crate::database::state::GraphState;
use crate::dict::Tree;
use crate::error::{GraphError, Result};
use crate::index::Index;
use crate::interrupt::go_on;
use crate::session::Session;
use crate::session::pairs::Pairs;
use crate::term::TermId;

/// Most problems described; further ones are only counted.
const DESCRIBED: usize = 100;
/// Rows read at a time.
const BATCH: usize = 16_384;

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Pages read.
    pub pages: u64,
    /// Rows of tuple trees read.
    pub rows: u64,
    /// Strings read.
    pub strings: u64,
    /// The first problems, one line each.
    pub problems: Vec<String>,
    /// Number of problems, described or not.
    pub problem_count: u64,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problem_count == 0
    }

    pub(crate) fn problem(&mut self, text: impl Into<String>) {
        self.problem_count += 1;
        if self.problems.len() < DESCRIBED {
            self.problems.push(text.into());
        }
    }

    /// Notes damage and goes on; other errors (a device that does not answer) end the check.
    pub(crate) fn unless_damaged<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(GraphError::Store(error)) if !error.is_damage() => Err(error.into()),
            Err(GraphError::Stopped) => Err(GraphError::Stopped),
            Err(error) => {
                self.problem(error.to_string());
                Ok(None)
            }
        }
    }
}

/// Progress of a check.
#[derive(Clone, Copy, Debug)]
pub struct CheckProgress {
    /// The step of the check.
    pub step: &'static str,
    /// Units (pages, rows or strings) done in this step.
    pub done: u64,
    /// Units to do in this step.
    pub total: u64,
}

/// Called from time to time during a check; may end it.
pub type Progress<'a> = &'a mut dyn FnMut(CheckProgress) -> ControlFlow<()>;

/// An order-independent sum over rows: equal for equal multisets, and different for different
/// ones except with a probability of 2^-64.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sum {
    pub rows: u64,
    hashes: u64,
}

impl Sum {
    pub fn add(&mut self, row: &[u64]) {
        // Each value passes through a full mixer (that of splitmix64), so a difference in one
        // column cannot cancel one in another.
        let mut hash = row.len() as u64;
        for value in row {
            hash = (hash ^ value).wrapping_add(0x9E37_79B9_7F4A_7C15);
            hash = (hash ^ hash >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            hash = (hash ^ hash >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            hash ^= hash >> 31;
        }
        self.rows += 1;
        self.hashes = self.hashes.wrapping_add(hash);
    }
}

impl GraphDatabase {
    /// Checks the whole database. Problems are listed in the report; an error means that the check
    /// could not be finished.
    pub fn check(self: &Arc<Self>, progress: &mut dyn FnMut(CheckProgress)) -> Result<CheckReport> {
        self.check_until(&mut |at| {
            progress(at);
            ControlFlow::Continue(())
        })
    }

    /// Checks everything as [`GraphDatabase::check`] does; ends in [`GraphError::Stopped`] when
    /// `progress` says so.
    pub fn check_until(self: &Arc<Self>, progress: Progress<'_>) -> Result<CheckReport> {
        // The extent map as of the same commit as the trees.
        let (snapshot, pages) = self.database().store().page_use()?;
        let state = self.state_of(&snapshot)?;
        let mut session = Session::new(self.clone(), state, snapshot);
        let mut report = CheckReport::default();
        if let Err(lost) = self.database().store().look() {
            report.problem(lost.to_string());
        }
        check_pages(&mut session, &mut report, progress)?;
        crate::check::trees::check_trees(&mut session, pages, &mut report, progress)?;
        let sums = check_indexes(&mut session, &mut report, progress)?;
        compare(&session.state.clone(), &sums, &mut report);
        check_graph_subjects(&mut session, &sums, &mut report, progress)?;
        crate::check::triple_terms::check_triple_terms(&mut session, &mut report, progress)?;
        crate::check::dict::check_dictionary(&mut session, &mut report, progress)?;
        Ok(report)
    }
}

fn check_pages(session: &mut Session, report: &mut CheckReport, progress: Progress<'_>) -> Result<()> {
    let store = session.db.database().store().clone();
    let (mut damaged, mut said) = (Vec::new(), ControlFlow::Continue(()));
    let done = store.check_pages_until(
        |error| damaged.push(error.to_string()),
        |at| {
            said = progress(CheckProgress { step: "extents", done: at.extents_done, total: at.extents });
            said
        },
    );
    report.pages = done.pages;
    damaged.into_iter().for_each(|problem| report.problem(problem));
    go_on(said)
}

/// Sums of the scans of the indexes.
#[derive(Default)]
struct Sums {
    /// By index: its rows, as quads or pairs.
    rows: [Option<Sum>; Index::ALL.len()],
    /// Distinct leading pairs of PSOG as (subject, predicate).
    psog_pairs: Sum,
    /// Distinct leading pairs of POSG as (object, predicate).
    posg_pairs: Sum,
}

fn check_indexes(session: &mut Session, report: &mut CheckReport, progress: Progress<'_>) -> Result<Sums> {
    let state = session.state.clone();
    let mut sums = Sums::default();
    for index in Index::ALL {
        let mut rows = Sum::default();
        let mut pairs = Sum::default();
        let done =
            check_tree(session, index.name(), state.index(index), report, progress, |row, new_pair| {
                match index {
                    Index::Psog => rows.add(&[row[1], row[0], row[2], row[3]]),
                    Index::Posg => rows.add(&[row[2], row[0], row[1], row[3]]),
                    _ => rows.add(row),
                }
                if new_pair {
                    pairs.add(&[row[1], row[0]]);
                }
            })?;
        sums.rows[index as usize] = done.then_some(rows);
        match index {
            Index::Psog => sums.psog_pairs = pairs,
            Index::Posg => sums.posg_pairs = pairs,
            _ => {}
        }
    }
    for tree in Tree::ALL {
        check_tree(session, tree.hash_name(), state.hashes(tree), report, progress, |_, _| {})?;
    }
    Ok(sums)
}

/// Scans a tuple tree; calls `row` with each row and whether its first two columns are new.
/// False if it could not be read to the end.
fn check_tree(
    session: &mut Session,
    name: &'static str,
    tree: Option<&TupleTree>,
    report: &mut CheckReport,
    progress: Progress<'_>,
    mut row: impl FnMut(&[u64], bool),
) -> Result<bool> {
    let Some(tree) = tree else { return Ok(true) };
    let mut last: Option<[u64; 4]> = None;
    let mut distinct = [0; 4];
    let mut unsorted = 0u64;
    let arity = tree.arity();
    let read = each_row(session, tree, name, progress, |current| {
        let same = last.map_or(0, |last| last.iter().zip(current).take_while(|(a, b)| a == b).count());
        if last.is_some_and(|last| last[..arity] >= current[..arity]) {
            unsorted += 1;
        }
        distinct[same.min(arity - 1)..arity].iter_mut().for_each(|count| *count += 1);
        row(&current[..arity], same < 2);
        last = Some(*current);
        report.rows += 1;
    });
    if unsorted > 0 {
        report.problem(format!("tree {name}: {unsorted} rows are not above the row before"));
    }
    if report.unless_damaged(read)?.is_none() {
        return Ok(false);
    }
    for columns in 1..=arity {
        let (found, said) = (distinct[columns - 1], tree.distinct(columns));
        if unsorted == 0 && found != said {
            report.problem(format!(
                "tree {name}: {found} distinct values of the first {columns} columns, the catalog says {said}"
            ));
        }
    }
    if distinct[arity - 1] != tree.rows() {
        report.problem(format!(
            "tree {name}: {} rows, the catalog says {}",
            distinct[arity - 1],
            tree.rows()
        ));
    }
    Ok(true)
}

/// Calls `row` with every row of a tree.
pub(crate) fn each_row(
    session: &mut Session,
    tree: &TupleTree,
    step: &'static str,
    progress: Progress<'_>,
    mut row: impl FnMut(&[u64; 4]),
) -> Result<()> {
    let mut scan = tree.scan(Default::default());
    let mut columns = Columns::new(tree.arity());
    let mut current = [0; 4];
    let mut done = 0;
    while scan.next(&mut session.reader, &mut columns, BATCH)? {
        for at in 0..columns.rows {
            for (value, column) in current.iter_mut().zip(&columns.cols) {
                *value = column[at];
            }
            row(&current);
        }
        done += columns.rows as u64;
        columns.clear();
        go_on(progress(CheckProgress { step, done, total: tree.rows() }))?;
    }
    Ok(())
}

/// Compares the indexes where both sides could be read.
fn compare(state: &GraphState, sums: &Sums, report: &mut CheckReport) {
    let rows = |index: Index| sums.rows[index as usize];
    let mut same = |left: Option<Sum>, right: Option<Sum>, what: &str| {
        if let (Some(left), Some(right)) = (left, right)
            && left != right
        {
            report.problem(format!("{what} do not agree: {} and {} rows", left.rows, right.rows));
        }
    };
    same(rows(Index::Psog), rows(Index::Posg), "the quads of psog and posg");
    same(
        rows(Index::Psog).map(|_| sums.psog_pairs),
        rows(Index::Sp),
        "the subject-predicate pairs of psog and sp",
    );
    same(
        rows(Index::Posg).map(|_| sums.posg_pairs),
        rows(Index::Op),
        "the object-predicate pairs of posg and op",
    );
    if let Some(quads) = rows(Index::Psog).filter(|quads| quads.rows != state.quads()) {
        report.problem(format!("psog has {} quads, the catalog says {}", quads.rows, state.quads()));
    }
}

/// Compares GS with PSOG: for each subject of SP, the graphs of its quads in PSOG. All quads of
/// a subject are seen together, so its distinct graphs are counted exactly.
fn check_graph_subjects(
    session: &mut Session,
    sums: &Sums,
    report: &mut CheckReport,
    progress: Progress<'_>,
) -> Result<()> {
    let readable = [Index::Psog, Index::Sp, Index::Gs].map(|index| sums.rows[index as usize]);
    let [Some(_), Some(all), Some(stored)] = readable else { return Ok(()) };
    let found = graph_subjects(session, &mut |at| progress(CheckProgress { total: all.rows, ..at }))?;
    if session.state().meta().plain && session.any(Index::Gs, TermId::DEFAULT_GRAPH.0 + 1..=u64::MAX)? {
        report.problem("the catalog says that all quads are in the default graph, gs has others".to_owned());
    }
    if found != stored {
        report.problem(format!(
            "the graph-subject pairs of psog and gs do not agree: {} and {} rows",
            found.rows, stored.rows
        ));
    }
    Ok(())
}

/// Sum of the distinct graph-subject pairs of PSOG, read by the subjects of SP.
pub(crate) fn graph_subjects(session: &mut Session, progress: Progress<'_>) -> Result<Sum> {
    let mut found = Sum::default();
    let mut scan = session.scan(Index::Sp, &[], None);
    let mut pairs = Columns::new(2);
    let mut done = 0;
    let mut seen = HashSet::new();
    while scan.next(session, &mut pairs, BATCH)? {
        done += pairs.rows as u64;
        go_on(progress(CheckProgress { step: "graphs", done, total: done }))?;
        // A subject that may go on in the next batch keeps its graphs in `seen` until it ends.
        graphs_of(session, &pairs, &mut seen, &mut found)?;
        let last = pairs.cols[0].last().copied();
        seen.retain(|(_, subject)| Some(*subject) == last);
        pairs.clear();
    }
    Ok(found)
}

/// Adds the graphs of these subjects' quads that were not seen before.
fn graphs_of(
    session: &mut Session,
    pairs: &Columns,
    seen: &mut HashSet<(u64, u64)>,
    found: &mut Sum,
) -> Result<()> {
    let pairs = Pairs::of_rows(pairs);
    let columns = pairs.columns();
    let mut lookup = session.lookup(Index::Psog, Keys::new(&columns, None));
    let mut matches = Matches::with_wanted(4, 2, 0b10);
    while lookup.next(session, &mut matches, BATCH)? {
        for (&key, &graph) in matches.key.iter().zip(&matches.cols[1]) {
            let pair = (graph, pairs.subject(key));
            if seen.insert(pair) {
                found.add(&[pair.0, pair.1]);
            }
        }
        matches.clear();
    }
    Ok(())
}
