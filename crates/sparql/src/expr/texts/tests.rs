//! Expressions over stored terms, from a store that counts what is asked of it.

use std::sync::Arc;

use snowmelt_graph::{GraphError, TermId, TermKind, TermRef, TermSink, TripleIds};

use crate::aggregate::Aggregate;
use crate::algebra::{Expression, Function, GroupFunction, Var};
use crate::bounds::Limits;
use crate::expr::{Expr, compile};
use crate::functions::{CustomFunctions, Patterns};
use crate::value::{CommittedStrings, LocalTerms, TermBounds, TermError, TermStore, Terms};

/// Strings by number, some of them with a language.
#[derive(Default)]
struct CountingStore {
    texts: Vec<(String, Option<&'static str>)>,
    /// terms read
    read: usize,
    /// terms looked up
    resolved: usize,
}

impl CountingStore {
    /// Texts with their numbers, each `bytes` long.
    fn numbered(count: usize, bytes: usize) -> Self {
        let text = |n: usize| format!("{n:05} {}", "x".repeat(bytes));
        let texts = (0..count).map(|n| (text(n), (n % 2 == 1).then_some("en"))).collect();
        Self { texts, ..Self::default() }
    }

    fn id(&self, number: usize) -> TermId {
        match self.texts[number].1 {
            None => TermId::new(TermKind::String, number as u64),
            Some(_) => TermId::coded(TermKind::Literal, 7, number as u64),
        }
    }

    /// A column of so many rows, in which each term comes again and again.
    fn column(&self, rows: usize) -> Vec<TermId> {
        (0..rows).map(|row| self.id(row * 7 % self.texts.len())).collect()
    }
}

impl TermStore for CountingStore {
    fn resolve(&mut self, terms: &[TermRef<'_>]) -> Result<Vec<Option<TermId>>, GraphError> {
        self.resolved += terms.len();
        let stored = |term: &TermRef<'_>| {
            let place = self.texts.iter().position(|(text, tag)| *term == term_of(text, *tag))?;
            Some(self.id(place))
        };
        Ok(terms.iter().map(|term| TermId::inline(term).or_else(|| stored(term))).collect())
    }

    fn decode(&mut self, ids: &[TermId], sink: &mut dyn TermSink) -> Result<(), GraphError> {
        for (place, id) in ids.iter().enumerate() {
            self.read += 1;
            let (text, tag) = &self.texts[id.number() as usize];
            if !sink.take(place, term_of(text, *tag)) {
                break;
            }
        }
        Ok(())
    }

    fn components(&mut self, _: &[TermId]) -> Result<Vec<TripleIds>, GraphError> {
        unreachable!("there are no triple terms")
    }

    fn find_triples(&mut self, _: &[TripleIds]) -> Result<Vec<Option<TermId>>, GraphError> {
        unreachable!("there are no triple terms")
    }

    fn lang_of(&self, id: TermId) -> Option<&str> {
        (id.kind() == TermKind::Literal).then_some("en")
    }

    fn datatype_of(&self, _: TermId) -> Option<&str> {
        None
    }

    fn committed_strings(&self) -> Option<CommittedStrings> {
        None
    }
}

fn term_of<'t>(text: &'t str, tag: Option<&'t str>) -> TermRef<'t> {
    tag.map_or(TermRef::string(text), |tag| TermRef::tagged(text, tag))
}

fn terms(room: usize) -> Terms {
    let now = "2011-01-10T14:45:13".parse().unwrap();
    let bounds = TermBounds { room, ..TermBounds::for_test(Limits::default()) };
    Terms::new(Arc::new(LocalTerms::new()), now, None, 1 << 20).guarded(bounds)
}

const X: Expression = Expression::Var(Var(0));

fn call(function: Function, args: Vec<Expression>) -> Expression {
    Expression::Call(function, args)
}

fn str_of_x() -> Expression {
    call(Function::Str, vec![X])
}

fn compiled(expression: &Expression, terms: &mut Terms, store: &mut CountingStore) -> Expr {
    let (patterns, functions) = (&mut Patterns::default(), CustomFunctions::default());
    let slot = |v: Var| Some(v.0 as usize);
    let expr = compile(expression, &slot, &[], terms, store, patterns, &functions).unwrap();
    store.resolved = 0;
    expr
}

fn contains(text: Expression, part: &str) -> Expression {
    call(Function::Contains, vec![text, Expression::literal(part)])
}

#[test]
fn a_text_is_read_once_for_all_rows_and_not_kept() {
    for condition in [
        contains(str_of_x(), "7 x"),
        contains(X, "7 x"),
        contains(call(Function::LCase, vec![str_of_x()]), "7 x"),
        call(Function::Regex, vec![X, Expression::literal("7 X"), Expression::literal("i")]),
        Expression::Or(vec![contains(X, "7 x"), contains(str_of_x(), "7 x")]),
    ] {
        let mut store = CountingStore::numbered(50, 100);
        let mut terms = terms(usize::MAX);
        let expr = compiled(&condition, &mut terms, &mut store);
        let cols = [store.column(1000)];
        let passed = expr.filter(&mut terms, &mut store, &cols, 1000).unwrap();
        assert_eq!(passed.len(), 100, "5 of 50 texts, 20 times: {expr:?}");
        assert!(passed.iter().all(|row| cols[0][*row as usize].number() % 10 == 7));
        assert_eq!(store.read, 50, "{expr:?}");
        assert!(terms.held_bytes() < 5000, "{} bytes of texts are kept", terms.held_bytes());
    }
}

#[test]
fn a_condition_on_another_variable_goes_another_way() {
    let y = Expression::Var(Var(1));
    let of_both = call(Function::Contains, vec![X, call(Function::Str, vec![y])]);
    let mut store = CountingStore::numbered(50, 100);
    let mut terms = terms(usize::MAX);
    let expr = compiled(&of_both, &mut terms, &mut store);
    let cols = [store.column(1000), store.column(1000)];
    let passed = expr.filter(&mut terms, &mut store, &cols, 1000).unwrap();
    assert_eq!(passed.len(), 1000, "a text contains itself");
}

#[test]
fn plain_strings_equal_others_by_their_ids() {
    let mut store = CountingStore::numbered(50, 100);
    let mut terms = terms(usize::MAX);
    let pair = [str_of_x(), Expression::literal("not there")];
    let equal = Expression::Binary(crate::algebra::BinaryOperator::Equal, Box::new(pair));
    let expr = compiled(&equal, &mut terms, &mut store);
    let cols = [store.column(1000)];
    assert!(expr.filter(&mut terms, &mut store, &cols, 1000).unwrap().is_empty());
    assert_eq!(store.read, 25, "those with a language");
}

#[test]
fn a_list_is_searched_without_looking_its_texts_up() {
    let mut store = CountingStore::numbered(500, 100);
    let mut terms = terms(usize::MAX);
    let list = (0..200).map(|n| Expression::literal(store.texts[2 * n].0.as_str())).collect();
    let expr = compiled(&Expression::In(Box::new(str_of_x()), list), &mut terms, &mut store);
    let cols = [store.column(1000)];
    let passed = expr.filter(&mut terms, &mut store, &cols, 1000).unwrap();
    assert_eq!(passed.len(), 400, "200 of 500 texts, twice");
    assert_eq!(store.resolved, 0);
    assert!(store.read <= 500, "{} texts are read for 500", store.read);
}

#[test]
fn results_without_room_are_made_in_parts() {
    let mut store = CountingStore::numbered(400, 1000);
    let mut terms = terms(64 << 10);
    let expr = compiled(&call(Function::UCase, vec![str_of_x()]), &mut terms, &mut store);
    let cols = [store.column(400)];
    let ids = expr.eval_column(&mut terms, &mut store, &cols, 400).unwrap();
    assert!(store.read > 400 && ids.iter().all(|id| !id.is_undef()));
    for (id, of) in ids.into_iter().zip(&cols[0]) {
        terms.begin_batch();
        terms.prefetch_whole(&mut store, [id]).unwrap();
        let expected = store.texts[of.number() as usize].0.to_uppercase();
        assert_eq!(terms.value(id).unwrap().text(), expected);
    }
}

#[test]
fn the_best_text_alone_is_kept() {
    for (function, expected) in [(GroupFunction::Min, "00000"), (GroupFunction::Max, "00999")] {
        for expression in [str_of_x(), X] {
            let mut store = CountingStore::numbered(1000, 1000);
            // far less than the texts
            let mut terms = terms(64 << 10);
            let expr = compiled(&expression, &mut terms, &mut store);
            let mut aggregate = Aggregate::new(&function, false);
            aggregate.resize(1);
            let cols = [store.column(1000)];
            let done = aggregate.update_texts(&mut terms, &mut store, &[0; 1000], &expr, &cols);
            assert!(done.unwrap() && store.read == 1000, "{} texts are read", store.read);
            assert!(terms.held_bytes() < 5000, "{} bytes of texts are kept", terms.held_bytes());
            let best = aggregate.finish(&mut terms)[0];
            terms.prefetch(&mut store, [best]).unwrap();
            let text = terms.value(best).unwrap().text().into_owned();
            // with a language they come behind those without
            let expected = if expression == X && expected == "00000" { "00000" } else { expected };
            assert!(text.starts_with(expected), "{text}");
        }
    }
}

#[test]
fn an_error_of_one_text_is_the_groups() {
    let mut store = CountingStore::numbered(100, 10);
    let mut terms = terms(usize::MAX);
    // of a text with a language only
    let expr = compiled(&call(Function::StrLang, vec![X, Expression::literal("de")]), &mut terms, &mut store);
    for (groups, unbound) in
        [(vec![0; 100], vec![true]), ((0..100).map(|n| n % 2).collect(), vec![false, true])]
    {
        let mut aggregate = Aggregate::new(&GroupFunction::Max, false);
        aggregate.resize(unbound.len());
        let cols = [(0..100).map(|n| store.id(n)).collect::<Vec<_>>()];
        assert!(aggregate.update_texts(&mut terms, &mut store, &groups, &expr, &cols).unwrap());
        let best = aggregate.finish(&mut terms);
        assert_eq!(best.iter().map(|id| id.is_undef()).collect::<Vec<_>>(), unbound);
    }
}

#[test]
fn reading_ends_when_the_query_has_to() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let cancel = Arc::new(AtomicBool::new(false));
    let limits = Limits { cancel: Some(cancel.clone()), ..Limits::default() };
    let mut terms = terms(usize::MAX).guarded(TermBounds::for_test(limits));
    let mut store = CountingStore::numbered(1000, 100_000);
    let expr = compiled(&contains(X, "no"), &mut terms, &mut store);
    cancel.store(true, Ordering::Relaxed);
    let cols = [store.column(1000)];
    let ended = expr.filter(&mut terms, &mut store, &cols, 1000);
    assert!(matches!(ended, Err(TermError::Cancelled)), "{ended:?}");
    assert!(store.read < 100, "{} texts are read after the end", store.read);
}
