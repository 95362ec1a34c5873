//! The dictionary part of a check.
//!
//! Ids in the indexes: an inline id must have a value; the number of any other id must be below
//! the length of its tree.
//!
//! Strings and hash trees are checked one window of numbers at a time, so that memory is bounded:
//! (1) the rows of the hash tree whose number is in the window give each number its code, exactly
//! once; (2) the strings are read in order, and each is decoded to a term and placed again: it must
//! come to the same tree, code and string, and the hashes must add up to those of the rows;
//! (3) the objects in use, of quads and triple terms, must have the kind and code of their number.

use std::ops::Range;

use crate::check::{CheckProgress, CheckReport, Progress, Sum, each_row};
use crate::database::state::GraphState;
use crate::dict::code::PLAIN;
use crate::dict::{Entry, Place, Tree, dictionary_error, index_hash_of, literal, place};
use crate::error::{GraphError, Result};
use crate::index::triple::TripleIndex;
use crate::index::{Column, Index};
use crate::interrupt::go_on;
use crate::session::Session;
use crate::term::lexical::Lexical;
use crate::term::{TermId, TermKind};

/// Numbers of a window: 24 MB of memory.
const WINDOW: u64 = 8 << 20;
/// Strings read at a time.
const BATCH: u64 = 4096;

pub(crate) fn check_dictionary(
    session: &mut Session,
    report: &mut CheckReport,
    progress: Progress<'_>,
) -> Result<()> {
    check_ids(session, report, progress)?;
    let state = session.state.clone();
    for tree in Tree::ALL {
        let len = state.strings(tree).map_or(0, |strings| strings.len());
        let rows = state.hashes(tree).map_or(0, |hashes| hashes.rows());
        if len != rows {
            report.problem(format!("tree {}: {len} strings, but {rows} hashes", tree.name()));
        }
        let mut begin = 0;
        while begin < len {
            let window = Window::new(tree, begin..len.min(begin + WINDOW));
            begin = window.numbers.end;
            check_window(session, window, report, progress)?;
        }
    }
    Ok(())
}

/// Checks that every id in a column of an index stands for a term.
fn check_ids(session: &mut Session, report: &mut CheckReport, progress: Progress<'_>) -> Result<()> {
    let state = session.state.clone();
    for (index, column) in [(Index::Sp, 0), (Index::Sp, 1), (Index::Op, 0), (Index::Gs, 0)] {
        let Some(tree) = state.index(index) else { continue };
        let mut last = None;
        let mut problems = Vec::new();
        let read = each_row(session, tree, "ids", progress, |row| {
            let id = TermId(row[column]);
            if last != Some(id)
                && let Some(why) = wrong_id(&state, id, index.columns()[column])
            {
                problems.push(format!("tree {}: {id:?} {why}", index.name()));
            }
            last = Some(id);
        });
        problems.into_iter().for_each(|problem| report.problem(problem));
        report.unless_damaged(read)?;
    }
    Ok(())
}

/// The fault of an id in a column, if it has one.
pub(super) fn wrong_id(state: &GraphState, id: TermId, column: Column) -> Option<&'static str> {
    let kind = id.kind();
    let allowed = match column {
        Column::Subject => matches!(kind, TermKind::Iri | TermKind::Blank),
        Column::Predicate => kind == TermKind::Iri,
        Column::Object => !matches!(kind, TermKind::Special | TermKind::Local),
        Column::Graph => id == TermId::DEFAULT_GRAPH || matches!(kind, TermKind::Iri | TermKind::Blank),
    };
    if !allowed {
        return Some("is of a kind that cannot be there");
    }
    if let Some(tree) = Tree::holding(kind) {
        let len = state.strings(tree).map_or(0, |strings| strings.len());
        return (id.number() >= len).then_some("is not in the dictionary");
    }
    match kind {
        TermKind::Triple => (id.number() >= state.triple_terms()).then_some("is beyond the triple terms"),
        TermKind::Blank => (id.number() >= state.meta().blank_nodes).then_some("is beyond the blank nodes"),
        TermKind::Special => None,
        _ => {
            let datatype = state.inline_datatype(id);
            (Lexical::new().write(id).is_none() || datatype.is_none()).then_some("has no value")
        }
    }
}

/// Facts about the strings of a window.
struct Window {
    tree: Tree,
    numbers: Range<u64>,
    codes: Vec<u16>,
    /// Kind of each number; `Special` while it is not known.
    kinds: Vec<TermKind>,
    from_hashes: Sum,
    from_strings: Sum,
}

impl Window {
    fn new(tree: Tree, numbers: Range<u64>) -> Self {
        let len = (numbers.end - numbers.start) as usize;
        Window {
            tree,
            codes: vec![0; len],
            kinds: vec![TermKind::Special; len],
            numbers,
            from_hashes: Sum::default(),
            from_strings: Sum::default(),
        }
    }

    fn place(&self, number: u64) -> Option<usize> {
        self.numbers.contains(&number).then(|| (number - self.numbers.start) as usize)
    }
}

fn check_window(
    session: &mut Session,
    mut window: Window,
    report: &mut CheckReport,
    progress: Progress<'_>,
) -> Result<()> {
    let state = session.state.clone();
    let read = read_hashes(session, &state, &mut window, report, progress);
    if report.unless_damaged(read)?.is_none() {
        return Ok(());
    }
    let read = read_strings(session, &state, &mut window, report, progress);
    if report.unless_damaged(read)?.is_none() {
        return Ok(());
    }
    if window.from_hashes != window.from_strings {
        report.problem(format!(
            "tree {}: the strings {} to {} do not have the hashes that {} says",
            window.tree.name(),
            window.numbers.start,
            window.numbers.end - 1,
            window.tree.hash_name()
        ));
    }
    let read = check_objects(session, &state, &window, report, progress);
    report.unless_damaged(read).map(drop)
}

fn read_hashes(
    session: &mut Session,
    state: &GraphState,
    window: &mut Window,
    report: &mut CheckReport,
    progress: Progress<'_>,
) -> Result<()> {
    let Some(tree) = state.hashes(window.tree) else { return Ok(()) };
    let mut seen = vec![false; window.codes.len()];
    each_row(session, tree, window.tree.hash_name(), progress, |&[hash, number, code, _]| {
        let Some(place) = window.place(number) else { return };
        if std::mem::replace(&mut seen[place], true) {
            report.problem(format!("tree {}: number {number} occurs twice", window.tree.hash_name()));
        }
        window.codes[place] = code as u16;
        window.from_hashes.add(&[hash, number, code]);
    })
}

fn read_strings(
    session: &mut Session,
    state: &GraphState,
    window: &mut Window,
    report: &mut CheckReport,
    progress: Progress<'_>,
) -> Result<()> {
    let Some(strings) = state.strings(window.tree) else { return Ok(()) };
    let mut begin = window.numbers.start;
    while begin < window.numbers.end {
        let numbers: Vec<u64> = (begin..window.numbers.end.min(begin + BATCH)).collect();
        begin += numbers.len() as u64;
        strings.get(&mut session.reader, &numbers, |at, string| {
            report.strings += 1;
            if let Err(error) = check_string(state, window, numbers[at], string) {
                report.problem(error.to_string());
            }
        })?;
        go_on(progress(CheckProgress { step: window.tree.name(), done: begin, total: strings.len() }))?;
    }
    Ok(())
}

/// Decodes a string to its term and places the term again.
fn check_string(state: &GraphState, window: &mut Window, number: u64, string: &[u8]) -> Result<()> {
    let tree = window.tree;
    let at = window.place(number).expect("asked for by number");
    let code = window.codes[at];
    let mut iri = String::new();
    let mut scratch = Vec::new();
    let entry = if tree == Tree::Iri {
        let id = TermId::new(TermKind::Iri, number);
        let (prefix, local) = state.prefixes().split(string).map_err(|why| dictionary_error(id, why))?;
        iri.extend([prefix, local]);
        Entry { kind: TermKind::Iri, code: 0, string: iri.as_bytes() }
    } else {
        let kind = if tree == Tree::Text { TermKind::Text } else { TermKind::Literal };
        let id = if code == PLAIN && tree == Tree::Literal {
            TermId::new(TermKind::String, number)
        } else {
            TermId::coded(kind, code, number)
        };
        let term = literal(id, string, state.codes())?;
        match place(&term, state.meta().format, &mut state.codes(), &mut scratch) {
            Place::Entry(entry) if entry.tree() == tree && entry.code == code && entry.string == string => {
                Entry { string, ..entry }
            }
            _ => return Err(misplaced(tree, number)),
        }
    };
    let hash = index_hash_of(entry.hash(), state.meta().hash_bits);
    window.kinds[at] = entry.kind;
    window.from_strings.add(&[hash, number, code.into()]);
    Ok(())
}

fn misplaced(tree: Tree, number: u64) -> GraphError {
    let why = "the term does not belong there".to_owned();
    GraphError::Dictionary { tree: tree.name(), number, why }
}

/// Checks that the literal ids in use have the kind and code of their strings.
fn check_objects(
    session: &mut Session,
    state: &GraphState,
    window: &Window,
    report: &mut CheckReport,
    progress: Progress<'_>,
) -> Result<()> {
    if window.tree == Tree::Iri {
        return Ok(());
    }
    for tree in [state.index(Index::Op), state.triple(TripleIndex::Osp)].into_iter().flatten() {
        let mut last = None;
        each_row(session, tree, "objects", progress, |row| {
            let id = TermId(row[0]);
            if Tree::holding(id.kind()) == Some(window.tree)
                && last != Some(id)
                && let Some(at) = window.place(id.number())
            {
                let entry = Entry { kind: window.kinds[at], code: window.codes[at], string: &[] };
                if window.kinds[at] != TermKind::Special && entry.id(id.number()) != id {
                    let is = entry.id(id.number());
                    report.problem(format!("an object is {id:?}, but the string is {is:?}"));
                }
            }
            last = Some(id);
        })?;
    }
    Ok(())
}
