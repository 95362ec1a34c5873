//! Hash join, on columns that may be unbound.
//!
//! The right side is read whole, once, and grouped by its *mask*: which of the join columns are
//! bound. A left row meets a group on the columns both have bound, for which the group has a
//! hash table (made when first needed). Where nothing is ever unbound there is one group with
//! one table, and this is the ordinary hash join; without common columns it is the product.
//!
//! Over the memory share both sides go to temporary files by the hash of their keys (GRACE
//! join), and file after file is joined in memory. Not where columns may be unbound: a row
//! without a key has no file.

use snowmelt_graph::{TermId, from_boolean};

use super::distinct::first_of_each;
use super::mask::Mask;
use super::nested::either;
use super::rows::{Queue, append, columns, hash_row, same_row};
use super::spill::{Partitions, Reader};
use super::{Boxed, Operator, Result, Run};
use crate::algebra::ExistsKind;
use crate::bounds::{Held, Limits};
use crate::exec::Batch;
use crate::plan::JoinKind;

const NONE: u32 = u32::MAX;

/// From so many right rows on, an existence test keeps one row of each key.
const DISTINCT_ROWS: usize = 4096;

/// Bytes a row takes beside its columns: its number, its link, and two to four heads of chains.
const TABLE_BYTES: usize = 24;

pub(super) struct HashJoin {
    pub left: Boxed,
    pub right: Boxed,
    pub left_on: Vec<usize>,
    pub right_on: Vec<usize>,
    pub loose: bool,
    /// columns of `on` that do not count as common for MINUS
    pub apart: Vec<u16>,
    /// the right side depends on a context: it is built again after a reset
    pub again: bool,
    pub kind: JoinKind,
    pub keep_left: Vec<u16>,
    pub keep_right: Vec<(u16, Option<u16>)>,
    pub built: Option<Built>,
    /// memory of what is built
    pub held: Held,
    pub files: Option<Files>,
    pub current: Option<JoinProbe>,
    pub queue: Queue,
}

/// The right side.
pub(super) struct Built {
    rows: Batch,
    groups: Vec<MaskGroup>,
}

/// Both sides in files: the right ones stay for the next seed, the left ones are read once.
pub(super) struct Files {
    right: Vec<Reader>,
    left: Option<Vec<Reader>>,
    at: usize,
}

/// The right rows with the same columns bound.
struct MaskGroup {
    mask: Mask,
    rows: Vec<u32>,
    /// by the columns that a left row has in common
    tables: Vec<(Mask, JoinTable)>,
}

/// Chained buckets: `next[i]` is the row of the group after its i-th in the same bucket.
struct JoinTable {
    heads: Vec<u32>,
    next: Vec<u32>,
    shift: u32,
}

impl JoinTable {
    fn new(rows: &[u32], cols: &[&[TermId]], limits: &Limits) -> Result<Self> {
        assert!(rows.len() < NONE as usize, "the rows of a table have numbers");
        let bits = (rows.len() * 2).next_power_of_two().trailing_zeros().max(1);
        let shift = 64 - bits;
        let mut heads = vec![NONE; 1 << bits];
        let mut next = vec![NONE; rows.len()];
        // backwards, so that a chain keeps the rows' order
        for i in (0..rows.len()).rev() {
            if i % (1 << 16) == 0 {
                limits.check()?;
            }
            let bucket = bucket(hash_row(cols, rows[i] as usize), shift);
            next[i] = heads[bucket];
            heads[bucket] = i as u32;
        }
        debug_assert_eq!(
            heads.iter().chain(&next).filter(|row| **row != NONE).count(),
            rows.len(),
            "each row is in one chain"
        );
        Ok(Self { heads, next, shift })
    }
}

fn bucket(hash: u64, shift: u32) -> usize {
    (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> shift) as usize
}

/// A left batch, and the position of the join in it and in the chains.
pub(super) struct JoinProbe {
    batch: Batch,
    row: usize,
    group: usize,
    chain: u32,
    /// the chain of the current row and group has been entered
    entered: bool,
}

/// Rows of a left batch, and the right row that each of them meets.
#[derive(Default)]
struct Pairs {
    left: Vec<u32>,
    right: Vec<u32>,
}

fn mask(cols: &[&[TermId]], row: usize) -> Mask {
    cols.iter().enumerate().filter(|(_, c)| !c[row].is_undef()).map(|(i, _)| i).collect()
}

fn pick(all: &[usize], mask: &Mask) -> Vec<usize> {
    all.iter().enumerate().filter(|(i, _)| mask.has(*i)).map(|(_, c)| *c).collect()
}

impl HashJoin {
    fn build(&mut self, run: &mut Run) -> Result<()> {
        assert_eq!(self.left_on.len(), self.right_on.len(), "both sides have all columns of the key");
        self.held.clear();
        let mut rows = Batch::empty(0);
        let can_spill = !self.loose && !self.right_on.is_empty();
        let mut distinct_at = DISTINCT_ROWS;
        while let Some(batch) = self.right.next(run)? {
            run.check()?;
            append(&mut rows, batch);
            if self.kind.asks_only_whether() && rows.rows > 0 {
                if self.right_on.is_empty() {
                    // one row says it for all
                    rows = rows.slice(0..1);
                    break;
                }
                if rows.rows >= distinct_at && !self.held.is_tight(2 * rows.bytes()) {
                    rows = first_of_each(rows, &self.right_on);
                    distinct_at = (2 * rows.rows).max(DISTINCT_ROWS);
                }
            }
            let bytes = rows.bytes() + rows.rows * TABLE_BYTES;
            if can_spill && self.held.is_tight(bytes) {
                return self.spill_right(rows, run);
            }
            self.held.set(bytes.max(self.held.bytes()), "hash join")?;
        }
        self.group(rows);
        Ok(())
    }

    fn spill_right(&mut self, rows: Batch, run: &mut Run) -> Result<()> {
        assert!(self.files.is_none(), "the right side is spilled once");
        let mut files = Partitions::new(run)?;
        files.add(&rows, &self.right_on)?;
        drop(rows);
        self.held.clear();
        while let Some(batch) = self.right.next(run)? {
            run.check()?;
            files.add(&batch, &self.right_on)?;
        }
        self.files = Some(Files { right: files.into_readers()?, left: None, at: 0 });
        self.group(Batch::empty(0));
        Ok(())
    }

    /// The next left batch: from the left side, or from the next file, whose right rows are
    /// built first.
    fn next_left(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        let Some(mut files) = self.files.take() else { return self.left.next(run) };
        let batch = self.next_from(&mut files, run);
        self.files = Some(files);
        batch
    }

    fn next_from(&mut self, files: &mut Files, run: &mut Run) -> Result<Option<Batch>> {
        if files.left.is_none() {
            let mut spread = Partitions::new(run)?;
            while let Some(batch) = self.left.next(run)? {
                run.check()?;
                spread.add(&batch, &self.left_on)?;
            }
            files.left = Some(spread.into_readers()?);
            files.at = 0;
        }
        let left = files.left.as_mut().expect("just written");
        loop {
            // file `at - 1` is the one whose right rows are built
            if files.at > 0
                && let Some(batch) = left[files.at - 1].next()?
            {
                return Ok(Some(batch));
            }
            if files.at == left.len() {
                return Ok(None);
            }
            self.built = None;
            self.held.clear();
            assert_eq!(left.len(), files.right.len(), "both sides are spread over the same parts");
            let right = &mut files.right[files.at];
            right.rewind();
            let mut rows = Batch::empty(0);
            while let Some(batch) = right.next()? {
                run.check()?;
                append(&mut rows, batch);
                self.held.set(rows.bytes() + rows.rows * TABLE_BYTES, "hash join")?;
            }
            self.group(rows);
            files.at += 1;
        }
    }

    fn group(&mut self, rows: Batch) {
        let all = Mask::all(self.right_on.len());
        let mut groups: Vec<MaskGroup> = Vec::new();
        if rows.rows > 0 {
            if self.loose {
                let of = columns(&rows, &self.right_on);
                for row in 0..rows.rows {
                    let mask = mask(&of, row);
                    match groups.iter_mut().find(|g| g.mask == mask) {
                        Some(group) => group.rows.push(row as u32),
                        None => groups.push(MaskGroup { mask, rows: vec![row as u32], tables: Vec::new() }),
                    }
                }
            } else {
                groups.push(MaskGroup {
                    mask: all,
                    rows: (0..rows.rows as u32).collect(),
                    tables: Vec::new(),
                });
            }
        }
        debug_assert_eq!(
            groups.iter().map(|g| g.rows.len()).sum::<usize>(),
            rows.rows,
            "each row is in one group"
        );
        self.built = Some(Built { rows, groups });
    }

    /// The next pairs of rows, until `most` of them; true when the left batch is done.
    fn pairs(&mut self, most: usize, limits: &Limits) -> Result<(Pairs, bool)> {
        let mut pairs = Pairs::default();
        let done = if self.loose {
            self.probe(most, &mut pairs, limits)?
        } else {
            self.probe_plain(most, &mut pairs, limits)?
        };
        assert_eq!(pairs.left.len(), pairs.right.len(), "a pair has two rows");
        assert!(pairs.left.len() <= most, "{} pairs are more than {most}", pairs.left.len());
        debug_assert!(pairs.left.is_sorted(), "pairs come in the order of the left rows");
        Ok((pairs, done))
    }

    /// Fills pairs of rows until `most` of them; true when the left batch is done.
    fn probe(&mut self, most: usize, pairs: &mut Pairs, limits: &Limits) -> Result<bool> {
        let built = self.built.as_mut().expect("built before probing");
        let probe = self.current.as_mut().expect("probing a batch");
        let left = columns(&probe.batch, &self.left_on);
        let all = Mask::all(self.left_on.len());
        let first_only = self.kind.asks_only_whether();
        let overlap = self.kind == JoinKind::Minus;
        let apart: Mask = self.apart.iter().map(|i| usize::from(*i)).collect();
        while probe.row < probe.batch.rows {
            let bound = if self.loose { mask(&left, probe.row) } else { all.clone() };
            let mut found = false;
            while probe.group < built.groups.len() && !found {
                let group = &mut built.groups[probe.group];
                let common = group.mask.and(&bound);
                if overlap && common.is_within(&apart) {
                    probe.group += 1;
                    continue;
                }
                let right = columns(&built.rows, &pick(&self.right_on, &common));
                let mine = columns(&probe.batch, &pick(&self.left_on, &common));
                let table = table(group, &common, &right, &mut self.held, limits)?;
                if !probe.entered {
                    probe.chain = table.1.heads[bucket(hash_row(&mine, probe.row), table.1.shift)];
                    probe.entered = true;
                }
                while probe.chain != NONE {
                    let i = probe.chain as usize;
                    let r = table.0[i];
                    probe.chain = table.1.next[i];
                    if same_row(&mine, probe.row, &right, r as usize) {
                        pairs.left.push(probe.row as u32);
                        pairs.right.push(r);
                        if first_only {
                            found = true;
                            break;
                        }
                        if pairs.left.len() >= most {
                            return Ok(false);
                        }
                    }
                }
                if !found {
                    probe.group += 1;
                    probe.entered = false;
                }
            }
            probe.row += 1;
            probe.group = 0;
            probe.entered = false;
        }
        Ok(true)
    }

    /// The ordinary case: one group, all columns bound. Same result as [`HashJoin::probe`],
    /// without its bookkeeping per row.
    fn probe_plain(&mut self, most: usize, pairs: &mut Pairs, limits: &Limits) -> Result<bool> {
        let built = self.built.as_mut().expect("built before probing");
        let probe = self.current.as_mut().expect("probing a batch");
        let Some(group) = built.groups.first_mut() else { return Ok(true) };
        let left = columns(&probe.batch, &self.left_on);
        let right = columns(&built.rows, &self.right_on);
        let all = Mask::all(self.left_on.len());
        let (rows, table) = table(group, &all, &right, &mut self.held, limits)?;
        let first_only = self.kind.asks_only_whether();
        while probe.row < probe.batch.rows {
            if !probe.entered {
                probe.chain = table.heads[bucket(hash_row(&left, probe.row), table.shift)];
                probe.entered = true;
            }
            while probe.chain != NONE {
                let i = probe.chain as usize;
                probe.chain = table.next[i];
                if same_row(&left, probe.row, &right, rows[i] as usize) {
                    pairs.left.push(probe.row as u32);
                    pairs.right.push(rows[i]);
                    if first_only {
                        break;
                    }
                    if pairs.left.len() >= most {
                        return Ok(false);
                    }
                }
            }
            probe.row += 1;
            probe.entered = false;
        }
        Ok(true)
    }

    /// The product with a single row: the left columns as they are, the right ones repeated.
    fn join_one(&mut self, run: &Run) {
        let built = self.built.as_ref().expect("built before probing");
        assert_eq!(built.rows.rows, 1, "a product with one row repeats that row");
        let probe = self.current.take().expect("probing a batch");
        let rows = probe.batch.rows;
        let mut out = probe.batch.project(&self.keep_left);
        out.cols.extend(self.keep_right.iter().map(|(c, _)| vec![built.rows.cols[*c as usize][0]; rows]));
        self.queue.push(out, run);
    }

    fn join(&mut self, run: &Run) -> Result<bool> {
        let (pairs, done) = self.pairs(run.query.batch.most.max(1), &run.limits)?;
        let built = self.built.as_ref().expect("built before probing");
        let probe = self.current.as_ref().expect("probing a batch");
        let mut out = probe.batch.gather(&self.keep_left, &pairs.left);
        for (c, left) in &self.keep_right {
            let other = left.map(|l| (&probe.batch.cols[l as usize][..], &pairs.left[..]));
            // an empty build has no columns, and then no pair either
            let right = built.rows.cols.get(*c as usize);
            out.cols.push(right.map_or_else(Vec::new, |right| either(right, &pairs.right, other)));
        }
        self.queue.push(out, run);
        Ok(done)
    }

    /// Semi, anti, mark and minus: whether each left row has a match.
    fn exists(&mut self, run: &Run) -> Result<()> {
        let (Pairs { left: matched, .. }, done) = self.pairs(usize::MAX, &run.limits)?;
        let probe = self.current.as_ref().expect("probing a batch");
        assert!(done && matched.len() <= probe.batch.rows, "each left row is asked once");
        debug_assert!(matched.is_sorted_by(|a, b| a < b), "a left row matches once");
        let out = match self.kind {
            JoinKind::Exists(ExistsKind::Semi) => probe.batch.gather(&self.keep_left, &matched),
            JoinKind::Exists(ExistsKind::Mark(_)) => {
                let mut marks = vec![from_boolean(false); probe.batch.rows];
                matched.iter().for_each(|r| marks[*r as usize] = from_boolean(true));
                let all: Vec<u32> = (0..probe.batch.rows as u32).collect();
                let mut out = probe.batch.gather(&self.keep_left, &all);
                out.cols.push(marks);
                out
            }
            _ => {
                let mut hit = vec![false; probe.batch.rows];
                matched.iter().for_each(|r| hit[*r as usize] = true);
                let rows: Vec<u32> = (0..probe.batch.rows as u32).filter(|r| !hit[*r as usize]).collect();
                probe.batch.gather(&self.keep_left, &rows)
            }
        };
        self.queue.push(out, run);
        Ok(())
    }
}

/// A group's rows and its table for the columns in common.
fn table<'g>(
    group: &'g mut MaskGroup,
    common: &Mask,
    right: &[&[TermId]],
    held: &mut Held,
    limits: &Limits,
) -> Result<(&'g [u32], &'g JoinTable)> {
    debug_assert!(common.is_within(&group.mask), "a table is of columns that its group has bound");
    let at = match group.tables.iter().position(|t| t.0 == *common) {
        Some(at) => at,
        None => {
            // the first one was counted with the rows
            if !group.tables.is_empty() {
                held.add(group.rows.len() * TABLE_BYTES, "hash join")?;
            }
            group.tables.push((common.clone(), JoinTable::new(&group.rows, right, limits)?));
            group.tables.len() - 1
        }
    };
    Ok((&group.rows, &group.tables[at].1))
}

impl Operator for HashJoin {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        if self.built.is_none() {
            self.build(run)?;
        }
        loop {
            if let Some(batch) = self.queue.pop() {
                return Ok(Some(batch));
            }
            run.check()?;
            if self.current.is_none() {
                let nothing = self.files.is_none() && self.built.as_ref().is_some_and(|b| b.rows.rows == 0);
                if nothing && matches!(self.kind, JoinKind::Inner | JoinKind::Exists(ExistsKind::Semi)) {
                    return Ok(None);
                }
                let Some(batch) = self.next_left(run)? else { return Ok(None) };
                self.current = Some(JoinProbe { batch, row: 0, group: 0, chain: NONE, entered: false });
            }
            let one = self.right_on.is_empty() && self.built.as_ref().is_some_and(|b| b.rows.rows == 1);
            let done = match self.kind {
                JoinKind::Inner if one => {
                    self.join_one(run);
                    true
                }
                JoinKind::Inner | JoinKind::Left => self.join(run)?,
                JoinKind::Minus | JoinKind::Exists(_) => {
                    self.exists(run)?;
                    true
                }
            };
            if done {
                self.current = None;
            }
        }
    }

    fn reset(&mut self, seed: &Batch) {
        self.left.reset(seed);
        self.current = None;
        self.queue.clear();
        if self.again {
            self.right.reset(seed);
            self.built = None;
            self.files = None;
        }
        if let Some(files) = &mut self.files {
            files.left = None;
        }
    }
}
