//! A database of random quads of every kind, changed at random, and a model of its contents.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_base::test_seed;
use snowmelt_database::OpenOptions;
use snowmelt_graph::dict::blank_number;
use snowmelt_graph::load::LoadSizes;
use snowmelt_graph::{
    BaseDirection, BatchTerm, BlankNodes, CompactOptions, CompactTerms, DumpFormat, GraphDatabase, Graphs,
    QuadBatch, Session, Term, TermId, TermRef, TermsCompacted,
};
use tempfile::TempDir;

pub const INTEGER: &str = "http://www.w3.org/2001/XMLSchema#integer";

/// splitmix64
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(snowmelt_base::random::GOLDEN);
        (snowmelt_base::random::mix(self.0) % n as u64) as usize
    }
}

/// Subject, predicate, object and graph (`None` is the default graph).
pub type Quad = (Term, Term, Term, Option<Term>);

pub fn options() -> OpenOptions {
    OpenOptions { memory_bytes: 256 << 20, extent_pages: 8, direct: false, ..OpenOptions::default() }
}

/// Sizes that cover every path.
pub fn small() -> CompactOptions {
    let sizes = LoadSizes {
        batch_rows: Some(300),
        run_bytes: Some(8 << 10),
        fan_in: Some(4),
        ..LoadSizes::default()
    };
    CompactOptions { terms: CompactTerms::Always, threads: 2, sizes, renew_rows: Some(700) }
}

pub fn iri(text: String) -> Term {
    Term::Iri(text)
}

/// A term of each kind: short, long and tagged strings, inline and other numbers, terms of
/// datatypes with codes.
pub fn object(random: &mut Random, n: usize) -> Term {
    let m = random.below(n);
    match random.below(9) {
        0 => TermRef::string(&format!("a string of the number {m}")).to_owned(),
        1 => TermRef::tagged(&format!("Wort {m}"), ["de", "en", "fr"][m % 3]).to_owned(),
        2 => TermRef::string(&format!("{m} {}", "and so on ".repeat(8 + m % 30))).to_owned(),
        3 => TermRef::typed(&m.to_string(), INTEGER).to_owned(),
        4 => TermRef::typed(&format!("0{m}"), INTEGER).to_owned(),
        5 => TermRef::typed(&format!("{m}.25"), &format!("http://e.org/money/{}", m % 97)).to_owned(),
        6 => TermRef::typed(&format!("unlike {m}"), &format!("http://e.org/type/{}", m % 41)).to_owned(),
        _ => iri(format!("http://e.org/{}/{m}", m % 5)),
    }
}

/// A triple term.
pub fn triple(subject: &Term, predicate: &Term, object: &Term) -> Term {
    let subject = match oxrdf::Term::from(subject) {
        oxrdf::Term::NamedNode(node) => oxrdf::NamedOrBlankNode::from(node),
        oxrdf::Term::BlankNode(node) => node.into(),
        other => panic!("{other} is no subject"),
    };
    let oxrdf::Term::NamedNode(predicate) = oxrdf::Term::from(predicate) else { panic!("it is no IRI") };
    Term::Triple(Box::new(oxrdf::Triple { subject, predicate, object: object.into() }))
}

/// The term as the object of up to so many triple terms. Few different ones, so that they repeat.
pub fn within_triples(random: &mut Random, n: usize, term: Term, levels: usize) -> Term {
    let mut term = match &term {
        Term::Literal { lexical, lang: Some(lang), .. } if levels > 0 && random.below(2) == 0 => {
            let direction = [BaseDirection::Ltr, BaseDirection::Rtl][random.below(2)];
            TermRef::directed(lexical, lang, direction).to_owned()
        }
        _ => term,
    };
    for _ in 0..random.below(levels + 1) {
        let subject = iri(format!("http://e.org/s/{}", random.below(n / 8 + 1)));
        term = triple(&subject, &iri(format!("http://e.org/p#{}", random.below(3))), &term);
    }
    term
}

/// A term of a batch. In a batch, a label means another node than the stored one of that name.
pub fn batch_term(batch: &mut QuadBatch, term: TermRef<'_>) -> BatchTerm {
    match term {
        TermRef::Blank(label) => batch.id(TermId::blank(blank_number(label).unwrap())),
        TermRef::Triple(triple) => {
            let subject = batch_term(batch, triple.subject.as_ref().into());
            let predicate = batch.term(triple.predicate.as_ref().into());
            let object = batch_term(batch, triple.object.as_ref().into());
            batch.triple([subject, predicate, object])
        }
        term => batch.term(term),
    }
}

pub fn quad(random: &mut Random, n: usize) -> Quad {
    let subject = iri(format!("http://e.org/s/{}", random.below(n)));
    let predicate = iri(format!("http://e.org/p#{}", random.below(9)));
    let graph = (random.below(4) == 0).then(|| iri(format!("http://e.org/g/{}", random.below(6))));
    (subject, predicate, object(random, n), graph)
}

pub fn line((s, p, o, g): &Quad) -> String {
    let graph = g.as_ref().map_or(String::new(), |g| format!(" {}", g.as_ref()));
    format!("{} {} {}{graph} .", s.as_ref(), p.as_ref(), o.as_ref())
}

pub fn lines_of(session: Session) -> BTreeSet<String> {
    let mut out = Vec::new();
    session.dump(DumpFormat::NQuads, None, &mut out, &AtomicBool::new(false)).unwrap();
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

pub fn lines(database: &Arc<GraphDatabase>) -> BTreeSet<String> {
    lines_of(database.session().unwrap())
}

/// A database and its expected contents.
pub struct World {
    pub database: Arc<GraphDatabase>,
    pub model: BTreeMap<String, Quad>,
    pub random: Random,
    /// range of the random numbers in names and values
    pub range: usize,
    /// prefix of the names of all subjects and graphs
    pub name: &'static str,
    /// most levels of triple terms in objects; 0: there are none
    pub levels: usize,
}

impl World {
    pub fn new(database: Arc<GraphDatabase>, seed: u64) -> Self {
        World { database, model: BTreeMap::new(), random: Random(seed), range: 300, name: "", levels: 0 }
    }

    pub fn quads(&mut self, many: usize) -> Vec<Quad> {
        let named = |term: Term, name: &str| match term {
            Term::Iri(iri) => Term::Iri(format!("{iri}{name}")),
            other => other,
        };
        let quads = (0..many).map(|_| {
            let (s, p, o, g) = quad(&mut self.random, self.range);
            let o = within_triples(&mut self.random, self.range, o, self.levels);
            (named(s, self.name), p, o, g.map(|g| named(g, self.name)))
        });
        quads.collect()
    }

    pub fn insert(&mut self, quads: Vec<Quad>) {
        let mut txn = self.database.begin().unwrap();
        let mut batch = QuadBatch::new(0);
        for (s, p, o, g) in &quads {
            let [s, p, o] = [s, p, o].map(|term| batch_term(&mut batch, term.as_ref()));
            let g = g.as_ref().map_or(batch.id(TermId::DEFAULT_GRAPH), |g| batch.term(g.as_ref()));
            batch.push([s, p, o, g]);
        }
        txn.insert(&batch, &mut BlankNodes::default()).unwrap();
        txn.commit().unwrap();
        self.model.extend(quads.into_iter().map(|quad| (line(&quad), quad)));
    }

    /// Inserts a quad about a new blank node, and one that points to it.
    pub fn insert_blank(&mut self) {
        let mut txn = self.database.begin().unwrap();
        let node = txn.new_blank_node();
        let mut batch = QuadBatch::new(0);
        let blank = Term::Blank(format!("b{}", node.number()));
        let (_, p, o, _) = quad(&mut self.random, self.range);
        let s = iri(format!("http://e.org/s/of-blank{}", self.name));
        let ids = [&p, &o, &s].map(|t| batch.term(t.as_ref()));
        let (node, graph) = (batch.id(node), batch.id(TermId::DEFAULT_GRAPH));
        batch.push([node, ids[0], ids[1], graph]);
        batch.push([ids[2], ids[0], node, graph]);
        if self.levels > 0 {
            let about = triple(&blank, &p, &o);
            let quad = (s.clone(), p.clone(), about, None);
            let about = batch_term(&mut batch, quad.2.as_ref());
            batch.push([ids[2], ids[0], about, graph]);
            self.model.insert(line(&quad), quad);
        }
        txn.insert(&batch, &mut BlankNodes::default()).unwrap();
        txn.commit().unwrap();
        for quad in [(blank.clone(), p.clone(), o, None), (s, p, blank, None)] {
            self.model.insert(line(&quad), quad);
        }
    }

    pub fn delete(&mut self, many: usize) {
        let keys: Vec<String> = self.model.keys().cloned().collect();
        if keys.is_empty() {
            return;
        }
        let doomed: BTreeSet<&String> = (0..many).map(|_| &keys[self.random.below(keys.len())]).collect();
        let mut txn = self.database.begin().unwrap();
        let mut session = txn.session();
        let mut ids = Vec::new();
        for key in doomed {
            let (s, p, o, g) = self.model.remove(key).unwrap();
            let found = session.resolve(&[s.as_ref(), p.as_ref(), o.as_ref()]).unwrap();
            let g = match g {
                Some(g) => session.resolve_one(g.as_ref()).unwrap(),
                None => Some(TermId::DEFAULT_GRAPH),
            };
            ids.push([found[0].unwrap(), found[1].unwrap(), found[2].unwrap(), g.unwrap()]);
        }
        drop(session);
        assert_eq!(txn.delete(&ids).unwrap().deleted, ids.len() as u64);
        txn.commit().unwrap();
    }

    pub fn clear(&mut self, graph: usize) {
        let graph = iri(format!("http://e.org/g/{graph}{}", self.name));
        let mut txn = self.database.begin().unwrap();
        if let Some(id) = txn.session().resolve_one(graph.as_ref()).unwrap() {
            txn.clear(Graphs::One(id), &AtomicBool::new(false)).unwrap();
        }
        txn.commit().unwrap();
        self.model.retain(|_, (.., g)| g.as_ref() != Some(&graph));
    }

    pub fn clear_all(&mut self) {
        let mut txn = self.database.begin().unwrap();
        txn.clear(Graphs::All, &AtomicBool::new(false)).unwrap();
        txn.commit().unwrap();
        self.model.clear();
    }

    /// Makes a random commit.
    pub fn change(&mut self) {
        match self.random.below(12) {
            0 => self.insert_blank(),
            1 => {
                let graph = self.random.below(6);
                self.clear(graph);
            }
            2..=4 => self.delete(40),
            5 => {
                // An aborted transaction leaves nothing.
                let mut txn = self.database.begin().unwrap();
                let mut batch = QuadBatch::new(0);
                let [s, p, o] = ["urn:given", "urn:up", "urn:soon"].map(|t| batch.term(TermRef::Iri(t)));
                batch.push([s, p, o, batch.id(TermId::DEFAULT_GRAPH)]);
                txn.insert(&batch, &mut BlankNodes::default()).unwrap();
            }
            6 => {
                // Deleted quads are inserted again.
                let again: Vec<Quad> = self.model.values().take(30).cloned().collect();
                self.delete(60);
                self.insert(again);
            }
            _ => {
                let many = 1 + self.random.below(60);
                let quads = self.quads(many);
                self.insert(quads);
            }
        }
    }

    /// Leaves two dead terms or more for each live one.
    pub fn churn(&mut self) {
        for round in 0..8 {
            self.range = 300 + 900 * round;
            let quads = self.quads(400);
            self.insert(quads);
            self.insert_blank();
            self.delete(self.model.len());
        }
    }

    pub fn compact(&mut self) -> TermsCompacted {
        self.database.compact(&small(), |_| ControlFlow::Continue(())).unwrap().terms
    }

    pub fn want(&self) -> BTreeSet<String> {
        self.model.keys().cloned().collect()
    }

    pub fn is_right(&self) {
        let (got, want) = (lines(&self.database), self.want());
        let wrong: Vec<&String> = got.symmetric_difference(&want).take(3).collect();
        assert!(wrong.is_empty(), "{} quads instead of {}: {wrong:?}", got.len(), want.len());
        assert_eq!(self.database.state().unwrap().quads(), want.len() as u64);
        is_sound(&self.database);
        nothing_is_left(&self.database);
    }
}

pub fn is_sound(database: &Arc<GraphDatabase>) {
    let report = database.check(&mut |_| {}).unwrap();
    assert!(report.is_sound(), "{:#?}", report.problems);
}

/// Checks that no tree or record of a half-made generation is left.
pub fn nothing_is_left(database: &Arc<GraphDatabase>) {
    let catalog = database.database().store().catalog_all();
    let names: Vec<&String> = catalog.trees.values().chain(catalog.records.keys()).collect();
    assert!(names.iter().all(|name| !name.contains("next")), "{names:?}");
    let triples = database.state().unwrap().triple_terms() > 0;
    assert_eq!(catalog.trees.len(), if triples { 15 } else { 11 });
}

pub fn database() -> (TempDir, Arc<GraphDatabase>) {
    let dir = tempfile::tempdir().unwrap();
    let database = GraphDatabase::create(&dir.path().join("db"), &[], &options()).unwrap();
    (dir, database)
}

pub fn over_seeds(many: u64, run: impl Fn(u64)) {
    let first = test_seed(11);
    for seed in first..first + many {
        eprintln!("SNOWMELT_SEED={seed}");
        run(seed);
    }
}
