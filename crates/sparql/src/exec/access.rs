//! A visit to an index with this query's constants: what scans and look-ups have in common.

use snowmelt_graph::{AnyIndex, TermId};

use super::Run;
use crate::exec::Batch;
use crate::plan::{Access, Copies, Src, Test};

/// The source of a part of a key.
#[derive(Clone, Copy)]
pub(super) enum Key {
    Is(TermId),
    Col(usize),
}

/// A test on the columns after the key.
pub(super) enum Check {
    Is(usize, TermId),
    Col(usize, usize),
    Same(usize, usize),
    Named(usize),
    OneOf(usize, Vec<TermId>),
}

/// A visit whose constants are ids.
pub(super) struct ResolvedVisit {
    pub index: AnyIndex,
    pub key: Vec<Key>,
    pub range: Option<(u64, u64)>,
    pub checks: Vec<Check>,
    pub new: Vec<usize>,
    pub merge_graphs: bool,
    /// whether rows that are equal in what is put out come as one
    pub copies: Copies,
    /// bit per column after the key: whether it is read
    pub wanted: u8,
    /// columns after the key
    pub width: usize,
}

impl ResolvedVisit {
    /// `None`: some constant is not in the data, so nothing can be found.
    pub fn resolve(access: &Access, run: &Run) -> Option<Self> {
        let mut key = Vec::with_capacity(access.key.len());
        for src in &access.key {
            key.push(match src {
                Src::Const(c) => Key::Is(run.constant(*c)?),
                Src::Fixed(id) => Key::Is(*id),
                Src::Col(c) => Key::Col(*c as usize),
            });
        }
        let mut checks = Vec::with_capacity(access.tests.len());
        for (col, test) in &access.tests {
            let col = *col as usize;
            checks.push(match test {
                Test::Equals(Src::Const(c)) => Check::Is(col, run.constant(*c)?),
                Test::Equals(Src::Fixed(id)) => Check::Is(col, *id),
                Test::Equals(Src::Col(c)) => Check::Col(col, *c as usize),
                Test::SameAs(other) => Check::Same(col, *other as usize),
                Test::NotDefaultGraph => Check::Named(col),
                Test::OneOf(list) => {
                    Check::OneOf(col, list.iter().filter_map(|c| run.constant(*c)).collect())
                }
            });
        }
        let width = access.index.arity() - access.key.len();
        let new: Vec<usize> = access.new.iter().map(|c| *c as usize).collect();
        assert!(new.iter().all(|c| *c < width), "a visit gives columns after its key");
        let mut wanted = new.iter().fold(0, |w, c| w | 1u8 << c);
        for check in &checks {
            wanted |= match check {
                Check::Is(c, _) | Check::Col(c, _) | Check::Named(c) | Check::OneOf(c, _) => 1 << c,
                Check::Same(a, b) => 1 << a | 1 << b,
            };
        }
        if access.merge_graphs {
            wanted = u8::MAX;
        }
        let range = access.default_graph.then_some((TermId::DEFAULT_GRAPH.0, TermId::DEFAULT_GRAPH.0));
        Some(Self {
            index: access.index,
            key,
            range,
            checks,
            new,
            merge_graphs: access.merge_graphs,
            copies: access.copies,
            wanted,
            width,
        })
    }

    /// The rows that pass the checks that need no input; `None`: all.
    pub fn select(&self, cols: &[Vec<u64>], rows: usize) -> Option<Vec<u32>> {
        let mut selected: Option<Vec<u32>> = None;
        for check in &self.checks {
            let keep: Box<dyn Fn(u32) -> bool + '_> = match check {
                Check::Is(c, id) => Box::new(move |r| cols[*c][r as usize] == id.0),
                Check::Same(a, b) => Box::new(move |r| cols[*a][r as usize] == cols[*b][r as usize]),
                Check::Named(c) => Box::new(move |r| cols[*c][r as usize] != TermId::DEFAULT_GRAPH.0),
                Check::OneOf(c, list) => {
                    Box::new(move |r| list.iter().any(|id| id.0 == cols[*c][r as usize]))
                }
                Check::Col(..) => continue,
            };
            selected = Some(match selected {
                None => (0..rows as u32).filter(|r| keep(*r)).collect(),
                Some(list) => list.into_iter().filter(|r| keep(*r)).collect(),
            });
        }
        selected
    }

    /// Whether a row passes the checks against the input.
    pub fn fits(&self, cols: &[Vec<u64>], row: usize, input: &Batch, input_row: usize) -> bool {
        self.checks.iter().all(|check| match check {
            Check::Col(c, i) => cols[*c][row] == input.cols[*i][input_row].0,
            _ => true,
        })
    }

    pub fn has_input_checks(&self) -> bool {
        self.checks.iter().any(|c| matches!(c, Check::Col(..)))
    }

    /// The rows that begin a run of rows that are equal in their key, if they have different ones,
    /// and in what is put out, and how long each run is.
    pub fn fold(
        &self,
        cols: &[Vec<u64>],
        selected: Option<Vec<u32>>,
        rows: usize,
        key: Option<&[u32]>,
    ) -> Runs {
        let same_key = |a: usize, b: usize| key.is_none_or(|key| key[a] == key[b]);
        match (selected, &self.new[..]) {
            // a loop without others within it, for what is most often asked
            (None, []) => Runs::of_all(rows, same_key),
            (None, [new]) => {
                let col = &cols[*new][..rows];
                Runs::of_all(rows, |a, b| same_key(a, b) && col[a] == col[b])
            }
            (selected, new) => {
                let list = selected.unwrap_or_else(|| (0..rows as u32).collect());
                Runs::of(list, |a, b| same_key(a, b) && new.iter().all(|c| cols[*c][a] == cols[*c][b]))
            }
        }
    }

    /// Whether all rows with one value in the first column pass the checks, or none.
    pub fn checks_first_column(&self) -> bool {
        self.checks.iter().all(|check| match check {
            Check::Is(c, _) | Check::Named(c) | Check::OneOf(c, _) => *c == 0,
            Check::Col(..) | Check::Same(..) => false,
        })
    }

    /// Drops rows that differ from the one before in the graph alone. `key(row)`: the number of its
    /// key; `last`: the last triple kept, to which further rows are compared.
    pub fn merge(
        &self,
        cols: &[Vec<u64>],
        selected: Option<Vec<u32>>,
        rows: usize,
        key: impl Fn(u32) -> u32,
        last: &mut Option<KeyedTriple>,
    ) -> Option<Vec<u32>> {
        if !self.merge_graphs {
            return selected;
        }
        assert!(self.width > 0, "graphs are merged where the graph is a column after the key");
        let triple = &cols[..self.width - 1];
        let list = selected.unwrap_or_else(|| (0..rows as u32).collect());
        let mut kept: Vec<u32> = Vec::with_capacity(list.len());
        for r in list {
            let again = match (kept.last(), &*last) {
                (Some(p), _) => key(*p) == key(r) && triple.iter().all(|c| c[*p as usize] == c[r as usize]),
                (None, Some((of, last))) => {
                    *of == key(r) && triple.iter().zip(last).all(|(c, value)| c[r as usize] == *value)
                }
                (None, None) => false,
            };
            if !again {
                kept.push(r);
            }
        }
        if let Some(r) = kept.last() {
            *last = Some((key(*r), triple.iter().map(|c| c[*r as usize]).collect()));
        }
        Some(kept)
    }
}

/// The number of a key, and the columns after it without the graph.
pub(super) type KeyedTriple = (u32, Vec<u64>);

/// Runs of rows that are equal in what is put out.
pub(super) struct Runs {
    /// `None`: all rows
    pub firsts: Option<Vec<u32>>,
    pub lengths: Vec<u64>,
}

impl Runs {
    /// The runs of so many rows, each of which is compared with the one before it.
    fn of_all(rows: usize, equal: impl Fn(usize, usize) -> bool) -> Self {
        let is_first = |row: &usize| *row == 0 || !equal(row - 1, *row);
        let begins: Vec<u32> = (0..rows).filter(is_first).map(|row| row as u32).collect();
        if begins.len() == rows {
            return Self { firsts: None, lengths: vec![1; rows] };
        }
        let ends = begins.iter().skip(1).copied().chain([rows as u32]);
        let lengths = begins.iter().zip(ends).map(|(begin, end)| u64::from(end - begin)).collect();
        Self { firsts: Some(begins), lengths }
    }

    /// The runs of some rows.
    fn of(rows: Vec<u32>, equal: impl Fn(usize, usize) -> bool) -> Self {
        let row = |place: usize| rows[place] as usize;
        let Self { firsts, lengths } = Self::of_all(rows.len(), |a, b| equal(row(a), row(b)));
        let firsts = firsts.map(|places| places.into_iter().map(|place| rows[place as usize]).collect());
        Self { firsts: Some(firsts.unwrap_or(rows)), lengths }
    }
}

/// Ids from the numbers of an index.
pub(super) fn ids(col: Vec<u64>) -> Vec<TermId> {
    col.into_iter().map(TermId).collect()
}

/// The ids of some rows of an index's column.
pub(super) fn ids_at(col: &[u64], rows: &[u32]) -> Vec<TermId> {
    rows.iter().map(|r| TermId(col[*r as usize])).collect()
}
