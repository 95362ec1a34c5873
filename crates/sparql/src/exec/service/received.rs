//! Answers: terms become ids, and rows are paired with those of the input.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use oxrdf::{BlankNode, NamedOrBlankNode, Term, Triple};
use rustc_hash::FxHashMap;
use snowmelt_graph::{MOST_TRIPLE_LEVELS, TermId, TermRef, triple_levels};

use super::question::Question;
use super::seeds::{SeedRows, ServiceSpec};
use crate::bounds::Held;
use crate::error::QueryError;
use crate::exec::Batch;
use crate::exec::nested::either;
use crate::exec::{Result, Run};
use crate::remote::{RemoteAnswer, RemoteFault};
use crate::value::TermStore;

/// Rows of an answer that are kept back until its end, where errors are passed over.
const KEPT_BACK: usize = 1 << 16;
/// Bytes of their values: rows with few of them are most.
const KEPT_BACK_BYTES: usize = 4 << 20;

/// Numbers of answers: a label of a blank node means something in one of them only.
static ANSWERS: AtomicU64 = AtomicU64::new(0);

/// The answer to a question, or why it was not sent.
pub(super) type Asked = std::result::Result<Box<dyn RemoteAnswer>, RemoteFault>;

/// A question that was sent.
pub(super) struct UnderWay {
    pub question: Question,
    pub answer: Asked,
    /// rows that came
    pub rows: usize,
    /// rows that wait for the end of the answer
    pub kept_back: Vec<Received>,
    /// bytes of them
    pub kept_bytes: usize,
    /// some rows were used before the end
    pub is_streamed: bool,
    number: u64,
}

/// Rows of an answer on their way to be paired.
pub(super) struct Received {
    seeds: Arc<SeedRows>,
    right: Batch,
    /// the seed of each row
    of: Vec<u32>,
    /// the next row, and how many of its input's rows are done
    row: usize,
    done: usize,
    /// of the values
    held: Held,
}

impl Received {
    fn new(seeds: &Arc<SeedRows>, right: Batch, of: Vec<u32>, held: Held) -> Self {
        assert_eq!(right.rows, of.len(), "each row is of a seed");
        Self { seeds: Arc::clone(seeds), right, of, row: 0, done: 0, held }
    }

    /// Memory for so many rows of an answer.
    fn held(rows: usize, columns: usize, run: &Run) -> Result<Held> {
        /// Of an allocator, about.
        const BESIDE: usize = 64;
        let row = size_of::<u32>() + columns * size_of::<TermId>();
        let part = size_of::<Received>() + BESIDE + columns * size_of::<Vec<TermId>>();
        let mut held = run.memory.held();
        held.set(rows.saturating_mul(row).saturating_add(part), "rows of a SERVICE")?;
        Ok(held)
    }

    /// Seeds that go on as they are.
    pub fn unmatched(
        seeds: &Arc<SeedRows>,
        numbers: VecDeque<u32>,
        columns: usize,
        run: &Run,
    ) -> Result<Self> {
        let held = Self::held(numbers.len(), columns, run)?;
        let of: Vec<u32> = numbers.into();
        let cols = vec![vec![TermId::UNDEF; of.len()]; columns];
        Ok(Self::new(seeds, Batch { cols, rows: of.len() }, of, held))
    }

    pub fn is_done(&self) -> bool {
        self.row >= self.right.rows
    }

    /// The next pairs, at most so many.
    pub fn pair(&mut self, spec: &ServiceSpec, most: usize) -> Batch {
        let expected = (self.right.rows - self.row).min(most);
        let (mut left_rows, mut right_rows) = (Vec::with_capacity(expected), Vec::with_capacity(expected));
        while self.row < self.right.rows && left_rows.len() < most {
            let of = self.seeds.of(self.of[self.row]);
            let end = of.len().min(self.done + (most - left_rows.len()));
            left_rows.extend_from_slice(&of[self.done..end]);
            right_rows.resize(left_rows.len(), self.row as u32);
            (self.row, self.done) = if end < of.len() { (self.row, end) } else { (self.row + 1, 0) };
        }
        let left = &self.seeds.batch;
        let mut out = left.gather(&spec.keep, &left_rows);
        for (right, (_, first)) in self.right.cols.iter().zip(&spec.new) {
            let Some(first) = first else {
                out.cols.push(either(right, &right_rows, None));
                continue;
            };
            // the input's own term, where it has one
            let col = &left.cols[usize::from(*first)];
            out.cols.push(either(col, &left_rows, Some((right, &right_rows))));
        }
        out
    }
}

impl UnderWay {
    pub fn new(question: Question, answer: Asked) -> Self {
        let number = ANSWERS.fetch_add(1, Ordering::Relaxed);
        let (kept_back, kept_bytes) = (Vec::new(), 0);
        Self { question, answer, rows: 0, kept_back, kept_bytes, is_streamed: false, number }
    }

    /// Keeps rows back; false once they are more than may wait for the end of the answer.
    pub fn keep(&mut self, rows: Received) -> bool {
        let bytes = rows.held.bytes();
        let is_tight = rows.held.is_tight(bytes);
        self.kept_bytes += bytes;
        self.kept_back.push(rows);
        !is_tight && self.rows <= KEPT_BACK && self.kept_bytes <= KEPT_BACK_BYTES
    }

    /// Rows of the answer as ids. The inner error is one of the answer.
    pub fn resolve(
        &mut self,
        rows: Vec<Vec<Option<Term>>>,
        spec: &ServiceSpec,
        run: &mut Run,
    ) -> Result<std::result::Result<Received, RemoteFault>> {
        if is_too_deep(&rows) {
            let why = format!("a triple term of its answer has more than {MOST_TRIPLE_LEVELS} levels");
            return Ok(Err(RemoteFault::failed(why)));
        }
        let question = &self.question;
        let first = usize::from(question.has_numbers);
        let (mut of, mut kept) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        for row in rows {
            let number = match question.has_numbers {
                true => row.first().and_then(Option::as_ref).and_then(as_number),
                false => Some(0),
            };
            let Some(seed) = number.and_then(|n| question.numbers.get(n as usize)) else {
                let why = "a row of its answer has no number that was sent";
                return Ok(Err(RemoteFault::failed(why)));
            };
            let blank = number.and_then(|n| question.blank.get(&n));
            let is_bound = |column: &u16| row.get(first + usize::from(*column)).is_some_and(Option::is_some);
            if blank.is_some_and(|columns| columns.iter().any(is_bound)) {
                continue;
            }
            of.push(*seed);
            kept.push(row);
        }
        self.rows += of.len();
        let held = Received::held(of.len(), spec.new.len(), run)?;
        let cols = ids(&kept, first..first + spec.new.len(), self.number, spec.stored, run)?;
        let right = Batch { cols, rows: of.len() };
        Ok(Ok(Received::new(&self.question.seeds, right, of, held)))
    }
}

fn as_number(term: &Term) -> Option<u32> {
    match term {
        Term::Literal(literal) => literal.value().parse().ok(),
        _ => None,
    }
}

/// The ids of some columns of an answer. Each distinct term is looked up once.
fn ids(
    rows: &[Vec<Option<Term>>],
    columns: std::ops::Range<usize>,
    answer: u64,
    stored: bool,
    run: &mut Run,
) -> Result<Vec<Vec<TermId>>> {
    let mut places: FxHashMap<&Term, usize> = FxHashMap::default();
    let mut terms: Vec<&Term> = Vec::new();
    let mut cols: Vec<Vec<usize>> = Vec::with_capacity(columns.len());
    for column in columns {
        let mut col = Vec::with_capacity(rows.len());
        for row in rows {
            col.push(match row.get(column).and_then(Option::as_ref) {
                None => usize::MAX,
                Some(term) => *places.entry(term).or_insert_with(|| {
                    terms.push(term);
                    terms.len() - 1
                }),
            });
        }
        cols.push(col);
    }
    let of_terms = of_terms(&terms, answer, stored, run)?;
    let id = |place: usize| of_terms.get(place).copied().unwrap_or(TermId::UNDEF);
    Ok(cols.into_iter().map(|col| col.into_iter().map(id).collect()).collect())
}

fn of_terms(terms: &[&Term], answer: u64, stored: bool, run: &mut Run) -> Result<Vec<TermId>> {
    let seed = run.query.locals.seed();
    let label = |name: &str| {
        let hash = |half: u8| seed.hash_one((half, answer, name));
        format!("s{:016x}{:016x}", hash(0), hash(1))
    };
    // copies of those that have blank nodes, with labels of this answer alone
    let relabelled: Vec<Option<Term>> = terms.iter().map(|term| relabelled(term, &label)).collect();
    let refs: Vec<TermRef<'_>> = terms
        .iter()
        .zip(&relabelled)
        .map(|(term, copy)| copy.as_ref().unwrap_or(term).as_ref().into())
        .collect();
    for term in &refs {
        let bytes = longest_text(*term);
        if bytes > run.query.longest {
            return Err(QueryError::TermTooLong { bytes: bytes as u64, most: run.query.longest });
        }
    }
    let mut known: Vec<Option<TermId>> = vec![None; refs.len()];
    if stored {
        // blank nodes of others are none of ours, whatever their labels
        let asked: Vec<usize> = (0..refs.len()).filter(|at| relabelled[*at].is_none()).collect();
        let asked_refs: Vec<TermRef<'_>> = asked.iter().map(|at| refs[*at]).collect();
        let found = TermStore::resolve(&mut run.source.session, &asked_refs)?;
        for (at, id) in asked.into_iter().zip(found) {
            known[at] = id;
        }
    }
    let ids =
        refs.iter().zip(known).map(|(term, id)| id.unwrap_or_else(|| run.terms.intern(*term))).collect();
    run.terms.fault()?;
    Ok(ids)
}

/// The term with other labels of the blank nodes in it; `None` if there are none.
fn relabelled(term: &Term, label: &impl Fn(&str) -> String) -> Option<Term> {
    let blank = |node: &BlankNode| BlankNode::new_unchecked(label(node.as_str()));
    let (mut outer, mut at) = (Vec::new(), term);
    while let Term::Triple(triple) = at {
        outer.push(&**triple);
        at = &triple.object;
    }
    let has_blank = at.is_blank_node() || outer.iter().any(|triple| triple.subject.is_blank_node());
    if !has_blank {
        return None;
    }
    let innermost = match at {
        Term::BlankNode(node) => blank(node).into(),
        other => other.clone(),
    };
    let around = |object: Term, triple: &&Triple| {
        let subject = match &triple.subject {
            NamedOrBlankNode::BlankNode(node) => blank(node).into(),
            NamedOrBlankNode::NamedNode(node) => NamedOrBlankNode::from(node.clone()),
        };
        Triple { subject, predicate: triple.predicate.clone(), object }.into()
    };
    Some(outer.iter().rev().fold(innermost, around))
}

/// Bytes of the longest text in a term.
fn longest_text(term: TermRef<'_>) -> usize {
    let mut longest = 0;
    let mut term = term;
    loop {
        match term {
            TermRef::Iri(text) | TermRef::Blank(text) | TermRef::Literal { lexical: text, .. } => {
                return longest.max(text.len());
            }
            TermRef::Triple(triple) => {
                let subject = longest_text(triple.subject.as_ref().into());
                longest = longest.max(subject).max(triple.predicate.as_str().len());
                term = triple.object.as_ref().into();
            }
        }
    }
}

/// Whether some value of an answer has more levels of triple terms than there may be.
fn is_too_deep(rows: &[Vec<Option<Term>>]) -> bool {
    rows.iter().flatten().flatten().any(|term| match term {
        Term::Triple(triple) => triple_levels(triple) > MOST_TRIPLE_LEVELS,
        Term::NamedNode(_) | Term::BlankNode(_) | Term::Literal(_) => false,
    })
}
