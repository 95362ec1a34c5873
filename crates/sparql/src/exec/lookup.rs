//! Batched index nested-loop join: for each input row the index rows under its key.
//!
//! 1. The keys of the batch are sorted and made distinct, so that the index is walked once, in
//!    order.
//! 2. The first look-up of a star announces the keys of the others, so that the pages of all
//!    its trees are read together. While a batch is worked on, the pages of the next one are on
//!    their way.
//! 3. Where the keys lie dense in the index, they are merged with the rows between the first
//!    and the last instead (exact counts tell): a merge join, chosen batch by batch.
//! 4. Found rows are tested and filtered on the new columns alone; only then are they paired
//!    with their input rows.
//!
//! Every batch that comes out is bounded, however many rows a key has and however many input rows
//! ask for it: the join stops in the middle of a key's matches and goes on there when it is asked
//! again. If the caller stops, nothing more is read.

use snowmelt_graph::{AnyIndex, Keys, LookupWay, Matches, MergeKeys, MergeWay, TermId, from_boolean};

use super::access::{Key, KeyedTriple, ResolvedVisit};
use super::{Boxed, Operator, Result, Run};
use crate::algebra::ExistsKind;
use crate::exec::Batch;
use crate::exec::batch::gather;
use crate::expr::Expr;
use crate::plan::{Copies, Finds};

/// A chunk of fewer keys is always looked up.
const MERGE_KEYS: usize = 128;

/// Most rows per key for which a merge is cheaper than look-ups. Measured in memory, finding one
/// key costs as much as moving over 2000 to 5000 rows; the limit is lower, because between keys
/// that lie in clusters a merge visits leaves for nothing.
const ROWS_PER_KEY: u64 = 1000;

/// The limit where leaves may have to be read: lower, since a merge reads them all.
const ROWS_PER_KEY_COLD: u64 = 100;

/// Fewer keys are announced one by one: to count the rows between them takes reads that are waited
/// for.
const CLOSE_KEYS: usize = 1024;

pub(super) struct LookupJoin {
    pub input: Boxed,
    pub visit: Option<ResolvedVisit>,
    pub finds: Finds,
    pub keep: Vec<u16>,
    pub emit: Vec<u16>,
    /// a weight comes behind them
    pub weighs: bool,
    pub conditions: Vec<Expr>,
    pub star: Vec<(AnyIndex, Vec<Key>)>,
    /// keys per visit, adapted to what they find
    pub chunk: usize,
    /// pulled early, its pages announced
    pub ahead: Option<Batch>,
    /// what is left of the current input: its rows in key order, and how many are done
    pub current: Option<Sorted>,
    /// the visit under way
    pub under_way: Option<Chunk>,
    /// found rows that are not all paired yet
    pub found: Option<FoundRows>,
    /// rows of the current input that a found row fits, where that is asked
    pub matched: Vec<bool>,
}

/// A visit under way: some of the distinct keys.
pub(super) struct Chunk {
    from: usize,
    to: usize,
    /// rows found so far
    found: usize,
    way: Way,
    /// The last triple found, where graphs are merged.
    last: Option<KeyedTriple>,
}

enum Way {
    Lookup(LookupWay),
    /// a merge on this column of the key
    Merge(MergeWay, usize),
}

/// Found rows that passed, as far as they are not paired.
pub(super) struct FoundRows {
    /// first distinct key of the visit
    first: usize,
    matches: Matches,
    /// rows of `matches` that passed; all where absent
    selected: Option<Vec<u32>>,
    /// how many rows each that passed stands for, where they are folded
    weights: Vec<u64>,
    /// the new columns of the rows that passed, where conditions made them
    new: Vec<Vec<TermId>>,
    rows: usize,
    /// the next row to be paired, and how many of its input rows are done
    row: usize,
    done: usize,
}

/// An input batch in key order.
pub(super) struct Sorted {
    batch: Batch,
    /// input rows, sorted by key
    order: Vec<u32>,
    /// distinct keys, column by column
    keys: Vec<Vec<u64>>,
    /// where each distinct key's rows begin in `order`; one more at the end
    starts: Vec<u32>,
    done: usize,
}

impl Sorted {
    /// Whether each key has one row.
    fn is_one_to_one(&self) -> bool {
        self.starts.len() == self.order.len() + 1
    }
}

impl LookupJoin {
    /// Begins to visit the next keys.
    fn begin_chunk(&mut self, run: &mut Run) -> Result<()> {
        let visit = self.visit.as_ref().expect("called with a visit");
        let sorted = self.current.as_ref().expect("called with an input");
        let from = sorted.done;
        let to = (from + self.chunk).min(sorted.starts.len() - 1);
        assert!(from < to && to < sorted.starts.len(), "a chunk has keys of the input");
        let way = match dense(visit, sorted, from, to, run)? {
            Some(col) => with_merge_keys(sorted, visit, col, from, to, |keys| {
                Way::Merge(run.source.merge_way(visit.index, keys), col)
            }),
            None => with_keys(sorted, visit, from, to, |keys| {
                Way::Lookup(run.source.lookup_way(visit.index, keys))
            }),
        };
        self.under_way = Some(Chunk { from, to, found: 0, way, last: None });
        Ok(())
    }

    /// Goes on with the visit under way until some rows are found that pass; false at its end.
    fn find(&mut self, run: &mut Run) -> Result<bool> {
        let visit = self.visit.as_ref().expect("called with a visit");
        let sorted = self.current.as_ref().expect("called with an input");
        let chunk = self.under_way.as_mut().expect("called with a visit under way");
        let most = run.query.batch.matches;
        while self.found.is_none() {
            run.check()?;
            let mut matches = Matches::with_wanted(visit.index.arity(), visit.key.len(), visit.wanted);
            let more = match &mut chunk.way {
                Way::Merge(way, col) => with_merge_keys(sorted, visit, *col, chunk.from, chunk.to, |keys| {
                    run.source.merge_way_next(way, keys, &mut matches, most)
                })?,
                Way::Lookup(way) => with_keys(sorted, visit, chunk.from, chunk.to, |keys| {
                    run.source.lookup_way_next(way, keys, &mut matches, most)
                })?,
            };
            if !more {
                return Ok(false);
            }
            debug_assert!(
                matches.key.iter().all(|k| (*k as usize) < chunk.to - chunk.from),
                "a match is of a key of the chunk"
            );
            chunk.found += matches.key.len();
            self.found = select(visit, &self.conditions, chunk, matches, run)?;
        }
        Ok(true)
    }

    fn finish_chunk(&mut self, run: &Run) {
        let Chunk { from, to, found, .. } = self.under_way.take().expect("a visit was under way");
        let most = run.query.batch.most;
        // aim at half a full batch per visit
        let per_key = (found / (to - from).max(1)).max(1);
        self.chunk = (most / 2 / per_key).clamp(64.min(most), most).max(1);
        let sorted = self.current.as_mut().expect("still there");
        assert!(sorted.done == from, "chunks follow each other");
        sorted.done = to;
        if sorted.done + 1 == sorted.starts.len() {
            self.current = None;
        }
    }

    /// The next input batch; where pages may be absent it and the one after it are announced.
    fn pull(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        let (batch, announced) = match self.ahead.take() {
            Some(batch) => (Some(batch), true),
            None => (self.input.next(run)?, false),
        };
        let Some(batch) = batch else { return Ok(None) };
        batch.check();
        if !self.star.iter().any(|(index, _)| run.source.is_cold(*index)) {
            return Ok(Some(batch));
        }
        if !announced {
            self.announce(&batch, run)?;
        }
        self.ahead = self.input.next(run)?;
        if let Some(next) = &self.ahead {
            self.announce(next, run)?;
        }
        Ok(Some(batch))
    }

    fn announce(&self, batch: &Batch, run: &mut Run) -> Result<()> {
        let mut sets: Vec<AnnouncedKeys> = Vec::with_capacity(self.star.len());
        for (index, key) in &self.star {
            sets.push(match close_keys(*index, key, batch, run)? {
                Some(keys) => keys,
                None => AnnouncedKeys { index: *index, cols: sort_keys(key, batch, false).1, range: None },
            });
        }
        let slices: Vec<Vec<&[u64]>> =
            sets.iter().map(|set| set.cols.iter().map(|c| &c[..]).collect()).collect();
        let lookups: Vec<(AnyIndex, Keys<'_>)> =
            sets.iter().zip(&slices).map(|(set, cols)| (set.index, Keys::new(cols, set.range))).collect();
        run.source.announce(&lookups)
    }
}

/// Keys whose leaves are about to be read.
struct AnnouncedKeys {
    index: AnyIndex,
    cols: Vec<Vec<u64>>,
    range: Option<(u64, u64)>,
}

/// The keys of a batch as one range of their last column, the only one that varies, where they lie
/// so close to each other that most leaves between them are read: finding each of them again, for
/// a leaf that hundreds share, would take longer than the look-ups.
fn close_keys(index: AnyIndex, key: &[Key], batch: &Batch, run: &mut Run) -> Result<Option<AnnouncedKeys>> {
    let Some((Key::Col(last), first)) = key.split_last() else { return Ok(None) };
    let constants = first.iter().map(|k| if let Key::Is(id) = k { Some(*id) } else { None });
    let Some(prefix) = constants.collect::<Option<Vec<TermId>>>() else { return Ok(None) };
    let col = &batch.cols[*last];
    let (Some(low), Some(high)) = (col.iter().min(), col.iter().max()) else { return Ok(None) };
    if prefix.is_empty() || batch.rows < CLOSE_KEYS {
        return Ok(None);
    }
    let rows = run.source.count(index, &prefix, Some((low.0, high.0)))?;
    let is_close = rows < ROWS_PER_KEY_COLD * batch.rows as u64;
    let cols = prefix.iter().map(|id| vec![id.0]).collect();
    Ok(is_close.then_some(AnnouncedKeys { index, cols, range: Some((low.0, high.0)) }))
}

/// The key's one varying column, if a merge of the chunk with the rows from its first to its last
/// key is cheaper than look-ups.
fn dense(
    visit: &ResolvedVisit,
    sorted: &Sorted,
    from: usize,
    to: usize,
    run: &mut Run,
) -> Result<Option<usize>> {
    if to - from < MERGE_KEYS || visit.range.is_some() || visit.merge_graphs {
        return Ok(None);
    }
    let mut varying = (0..visit.key.len()).filter(|c| matches!(visit.key[*c], Key::Col(_)));
    let (Some(col), None) = (varying.next(), varying.next()) else { return Ok(None) };
    let rows_per_key = if run.source.is_cold(visit.index) { ROWS_PER_KEY_COLD } else { ROWS_PER_KEY };
    let (low, high) = (sorted.keys[col][from], sorted.keys[col][to - 1]);
    assert!(low <= high, "keys of a batch ascend");
    let rows = run.source.count(visit.index, &prefix(visit, col), Some((low, high)))?;
    Ok((rows < rows_per_key * (to - from) as u64).then_some(col))
}

/// The constant parts of the key before a column.
fn prefix(visit: &ResolvedVisit, col: usize) -> Vec<TermId> {
    visit.key[..col].iter().filter_map(|k| if let Key::Is(id) = k { Some(*id) } else { None }).collect()
}

/// Calls `f` with the distinct keys of a visit that is merged on column `col`.
fn with_merge_keys<R>(
    sorted: &Sorted,
    visit: &ResolvedVisit,
    col: usize,
    from: usize,
    to: usize,
    f: impl FnOnce(&MergeKeys<'_>) -> R,
) -> R {
    let constants: Vec<u64> = sorted.keys.iter().map(|column| column[from]).collect();
    let varying = &sorted.keys[col][from..to];
    assert!(varying.first() <= varying.last(), "keys of a merge ascend");
    debug_assert!(varying.is_sorted(), "keys of a merge ascend");
    debug_assert_eq!(constants.len(), visit.key.len(), "a column of keys for each of the visit's");
    f(&MergeKeys { before: &constants[..col], varying, behind: &constants[col + 1..] })
}

/// Sorts a batch by key: the rows in order, the distinct keys, and where each begins.
fn sort_keys(key: &[Key], batch: &Batch, want_rows: bool) -> (Vec<u32>, Vec<Vec<u64>>, Vec<u32>) {
    let rows = batch.rows;
    let of: Vec<&[TermId]> = key
        .iter()
        .filter_map(|k| if let Key::Col(c) = k { Some(&batch.cols[*c][..]) } else { None })
        .collect();
    let mut order: Vec<u32> = (0..rows as u32).collect();
    if let [a] = &of[..]
        && a.is_sorted_by(|x, y| x < y)
    {
        let keys = key.iter().map(|k| match k {
            Key::Is(id) => vec![id.0; rows],
            Key::Col(_) => a.iter().map(|id| id.0).collect(),
        });
        return (if want_rows { order } else { Vec::new() }, keys.collect(), (0..=rows as u32).collect());
    }
    match &of[..] {
        [] => {}
        [a] => {
            if !a.is_sorted() {
                sort_by_one(&mut order, a);
            }
        }
        [a, b] => order.sort_unstable_by_key(|r| (a[*r as usize], b[*r as usize])),
        many => order.sort_unstable_by(|x, y| {
            let differing = many.iter().map(|c| c[*x as usize].cmp(&c[*y as usize]));
            differing.into_iter().find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        }),
    }
    let mut starts = Vec::with_capacity(rows + 1);
    for (i, r) in order.iter().enumerate() {
        let differs = i == 0 || of.iter().any(|c| c[*r as usize] != c[order[i - 1] as usize]);
        if differs {
            starts.push(i as u32);
        }
    }
    let keys = key.iter().map(|k| match k {
        Key::Is(id) => vec![id.0; starts.len()],
        Key::Col(c) => starts.iter().map(|s| batch.cols[*c][order[*s as usize] as usize].0).collect(),
    });
    let keys = keys.collect();
    debug_assert!(starts.is_sorted_by(|a, b| a < b), "keys begin one after the other");
    starts.push(rows as u32);
    if !want_rows {
        order.clear();
    }
    (order, keys, starts)
}

/// Sorts rows by one column: pairs sort without looking back into the column. What a look-up
/// puts out ascends in stretches, and a stable sort merges those.
fn sort_by_one(order: &mut [u32], col: &[TermId]) {
    let mut pairs: Vec<(u64, u32)> = col.iter().zip(0..).map(|(id, r)| (id.0, r)).collect();
    pairs.sort();
    assert_eq!(order.len(), pairs.len(), "a row for each entry of the column");
    for (o, p) in order.iter_mut().zip(pairs) {
        *o = p.1;
    }
}

/// Calls `f` with the distinct keys of a visit.
fn with_keys<R>(
    sorted: &Sorted,
    visit: &ResolvedVisit,
    from: usize,
    to: usize,
    f: impl FnOnce(&Keys<'_>) -> R,
) -> R {
    let slices: Vec<&[u64]> = sorted.keys.iter().map(|k| &k[from..to]).collect();
    f(&Keys { cols: &slices, rows: to - from, range: visit.range })
}

/// The found rows that pass the tests and conditions on the new columns; `None` if no row does.
fn select(
    visit: &ResolvedVisit,
    conditions: &[Expr],
    chunk: &mut Chunk,
    matches: Matches,
    run: &mut Run,
) -> Result<Option<FoundRows>> {
    let first = chunk.from;
    let Matches { key, mut cols, wanted } = matches;
    let is_whole = |c: &usize| cols[*c].len() == key.len();
    assert!(visit.new.iter().all(is_whole), "a match has a value in each new column");
    let mut selected = visit.select(&cols, key.len());
    // the graphs of a triple may come in several matches
    selected = visit.merge(&cols, selected, key.len(), |row| key[row as usize], &mut chunk.last);
    let mut weights = Vec::new();
    if visit.copies != Copies::Count {
        let runs = visit.fold(&cols, selected, key.len(), Some(&key));
        (selected, weights) = (runs.firsts, runs.lengths);
    }
    let mut new: Vec<Vec<TermId>> = Vec::new();
    if !conditions.is_empty() {
        // the columns as ids, of the rows that passed
        let keep = visit.has_input_checks();
        new = visit.new.iter().map(|c| take(&mut cols[*c], selected.as_deref(), keep)).collect();
        let rows = selected.as_ref().map_or(key.len(), Vec::len);
        let mut batch = Batch { cols: new, rows };
        for condition in conditions {
            let pass = condition.filter(&mut run.terms, &mut run.source.session, &batch.cols, batch.rows)?;
            if pass.len() < batch.rows {
                batch.retain(&pass);
                if !weights.is_empty() {
                    weights = pass.iter().map(|p| weights[*p as usize]).collect();
                }
                selected = Some(match selected {
                    None => pass,
                    Some(list) => pass.iter().map(|p| list[*p as usize]).collect(),
                });
            }
        }
        new = batch.cols;
    }
    let rows = selected.as_ref().map_or(key.len(), Vec::len);
    assert!(rows <= key.len(), "conditions make no rows");
    let matches = Matches { key, cols, wanted };
    Ok((rows > 0).then_some(FoundRows { first, matches, selected, weights, new, rows, row: 0, done: 0 }))
}

impl FoundRows {
    /// Pairs of input rows and found rows, by their place among those that passed: up to `most`,
    /// from where the last call ended. The flag says whether each found row has exactly one pair;
    /// their places are then left out.
    fn pairs(&mut self, visit: &ResolvedVisit, sorted: &Sorted, most: usize) -> (Vec<u32>, Vec<u32>, bool) {
        let is_begun = self.row > 0 || self.done > 0;
        if !is_begun && self.rows <= most && sorted.is_one_to_one() && !visit.has_input_checks() {
            self.row = self.rows;
            return (self.only_rows(sorted), Vec::new(), true);
        }
        let expected = (self.rows - self.row).min(most);
        let mut left: Vec<u32> = Vec::with_capacity(expected);
        let mut right: Vec<u32> = Vec::with_capacity(expected);
        let input_checks = visit.has_input_checks();
        let mut straight = self.row == 0 && self.done == 0 && !input_checks;
        while self.row < self.rows && left.len() < most {
            let row = self.selected.as_ref().map_or(self.row, |s| s[self.row] as usize);
            let k = self.first + self.matches.key[row] as usize;
            let (s, e) = (sorted.starts[k] as usize, sorted.starts[k + 1] as usize);
            straight &= e - s == 1;
            let end = e.min(s + self.done + (most - left.len()));
            for r in &sorted.order[s + self.done..end] {
                if !input_checks || visit.fits(&self.matches.cols, row, &sorted.batch, *r as usize) {
                    left.push(*r);
                    right.push(self.row as u32);
                }
            }
            if end < e {
                self.done = end - s;
            } else {
                (self.row, self.done) = (self.row + 1, 0);
            }
        }
        assert!(
            self.row <= self.rows && left.len() <= most,
            "pairs are of found rows, no more than asked for"
        );
        assert_eq!(left.len(), right.len(), "a pair has two rows");
        straight &= self.row == self.rows;
        (left, right, straight)
    }

    /// The input row of each found row, where each key has one.
    fn only_rows(&self, sorted: &Sorted) -> Vec<u32> {
        let (order, key) = (&sorted.order[self.first..], &self.matches.key[..]);
        match &self.selected {
            None => key.iter().map(|k| order[*k as usize]).collect(),
            Some(list) => list.iter().map(|row| order[key[*row as usize] as usize]).collect(),
        }
    }

    fn is_paired(&self) -> bool {
        self.row == self.rows
    }

    /// A new column. If pairs are one to one (`straight`), the whole column is moved out; else its
    /// entries at `right` are copied.
    fn column(&mut self, visit: &ResolvedVisit, of: usize, right: &[u32], straight: bool) -> Vec<TermId> {
        let has_new = !self.new.is_empty();
        if straight {
            return match has_new {
                true => std::mem::take(&mut self.new[of]),
                false => take(&mut self.matches.cols[visit.new[of]], self.selected.as_deref(), false),
            };
        }
        if has_new {
            return gather(&self.new[of], right);
        }
        let col = &self.matches.cols[visit.new[of]];
        match &self.selected {
            Some(list) => right.iter().map(|r| TermId(col[list[*r as usize] as usize])).collect(),
            None => right.iter().map(|r| TermId(col[*r as usize])).collect(),
        }
    }
}

/// A column as ids, of the selected rows; `keep`: the numbers are needed again.
fn take(col: &mut Vec<u64>, selected: Option<&[u32]>, keep: bool) -> Vec<TermId> {
    match selected {
        Some(list) => super::access::ids_at(col, list),
        None if keep => col.iter().map(|v| TermId(*v)).collect(),
        None => super::access::ids(std::mem::take(col)),
    }
}

impl LookupJoin {
    /// The next pairs of what was found.
    fn pair(&mut self, run: &Run) -> Option<Batch> {
        let found = self.found.as_mut().expect("called with found rows");
        let visit = self.visit.as_ref().expect("called with a visit");
        let sorted = self.current.as_ref().expect("called with an input");
        let (left, right, straight) = found.pairs(visit, sorted, run.query.batch.most.max(1));
        let mut batch = None;
        if self.finds != Finds::Rows {
            left.iter().for_each(|r| self.matched[*r as usize] = true);
        }
        if !left.is_empty() && !matches!(self.finds, Finds::Whether(_)) {
            let mut cols = Vec::with_capacity(self.keep.len() + self.emit.len());
            let is_whole = left.len() == sorted.batch.rows && left.iter().zip(0..).all(|(l, r)| *l == r);
            cols.extend(self.keep.iter().map(|c| match &sorted.batch.cols[*c as usize] {
                col if is_whole => col.clone(),
                col => gather(col, &left),
            }));
            cols.extend(self.emit.iter().map(|e| found.column(visit, *e as usize, &right, straight)));
            if self.weighs && straight {
                cols.push(super::access::ids(std::mem::take(&mut found.weights)));
            } else if self.weighs {
                cols.push(right.iter().map(|r| TermId(found.weights[*r as usize])).collect());
            }
            let paired = Batch { cols, rows: left.len() };
            paired.check();
            batch = Some(paired);
        }
        if found.is_paired() {
            self.found = None;
        }
        batch
    }
}

impl LookupJoin {
    /// Rows of the chunk under way that come by whether there was a match for them.
    fn by_match(&self) -> Option<Batch> {
        let sorted = self.current.as_ref().expect("called with an input");
        let chunk = self.under_way.as_ref().expect("called at the end of a visit");
        let (from, to) = (sorted.starts[chunk.from] as usize, sorted.starts[chunk.to] as usize);
        let rows = &sorted.order[from..to];
        let having = |is_matched: bool| -> Vec<u32> {
            rows.iter().copied().filter(|r| self.matched[*r as usize] == is_matched).collect()
        };
        match self.finds {
            Finds::Rows => None,
            Finds::Optional | Finds::Whether(ExistsKind::Anti) => self.alone(&sorted.batch, &having(false)),
            Finds::Whether(ExistsKind::Semi) => self.alone(&sorted.batch, &having(true)),
            Finds::Whether(ExistsKind::Mark(_)) => self.alone(&sorted.batch, rows),
        }
    }

    /// Input rows by themselves: with unbound columns after OPTIONAL, with a mark if one is asked
    /// for.
    fn alone(&self, batch: &Batch, rows: &[u32]) -> Option<Batch> {
        if rows.is_empty() {
            return None;
        }
        let mut cols: Vec<Vec<TermId>> =
            self.keep.iter().map(|c| gather(&batch.cols[*c as usize], rows)).collect();
        match self.finds {
            Finds::Optional => {
                let unbound = self.emit.len() + usize::from(self.weighs);
                cols.extend(std::iter::repeat_n(vec![TermId::UNDEF; rows.len()], unbound));
            }
            Finds::Whether(ExistsKind::Mark(_)) => {
                let mark = |r: &u32| from_boolean(self.matched.get(*r as usize).copied().unwrap_or(false));
                cols.push(rows.iter().map(mark).collect());
            }
            _ => {}
        }
        let alone = Batch { cols, rows: rows.len() };
        alone.check();
        Some(alone)
    }

    /// Input rows where a constant of the visit is not in the data, so that nothing is found.
    fn without_visit(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        if matches!(self.finds, Finds::Rows | Finds::Whether(ExistsKind::Semi)) {
            return Ok(None);
        }
        let Some(batch) = self.input.next(run)? else { return Ok(None) };
        let rows: Vec<u32> = (0..batch.rows as u32).collect();
        Ok(self.alone(&batch, &rows))
    }
}

impl Operator for LookupJoin {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        if self.visit.is_none() {
            return self.without_visit(run);
        }
        loop {
            run.check()?;
            if self.found.is_some() {
                if let Some(batch) = self.pair(run) {
                    return Ok(Some(batch));
                }
            } else if self.under_way.is_some() {
                if !self.find(run)? {
                    let batch = self.by_match();
                    self.finish_chunk(run);
                    if batch.is_some() {
                        return Ok(batch);
                    }
                }
            } else if self.current.is_some() {
                self.begin_chunk(run)?;
            } else {
                let Some(batch) = self.pull(run)? else { return Ok(None) };
                let visit = self.visit.as_ref().expect("checked above");
                let (order, keys, starts) = sort_keys(&visit.key, &batch, true);
                assert_eq!(order.len(), batch.rows, "each input row is looked up");
                if self.finds != Finds::Rows {
                    self.matched = vec![false; batch.rows];
                }
                self.current = Some(Sorted { batch, order, keys, starts, done: 0 });
            }
        }
    }

    fn reset(&mut self, seed: &Batch) {
        self.input.reset(seed);
        self.found = None;
        self.under_way = None;
        self.current = None;
        self.ahead = None;
    }
}
