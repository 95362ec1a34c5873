//! Slow or long documents keep no writer waiting: they are parsed before their turn.

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use snowmelt_database::OpenOptions;
use snowmelt_graph::load::{LoadError, Source};
use snowmelt_graph::{
    BlankNodes, ChangeFor, ChangePhase, ChangeProgress, DumpFormat, GraphDatabase, GraphDocument,
    GraphStored, GraphWrite, QuadBatch, TermRef,
};

fn database(memory_bytes: u64) -> (tempfile::TempDir, Arc<GraphDatabase>) {
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions { memory_bytes, direct: false, ..OpenOptions::default() };
    let db = GraphDatabase::create(dir.path(), &[], &options).unwrap();
    (dir, db)
}

/// A text whose parts arrive when the test sends them.
struct Gated {
    parts: Receiver<Vec<u8>>,
    part: Vec<u8>,
    asked: Sender<()>,
}

impl Read for Gated {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        while self.part.is_empty() {
            let _ = self.asked.send(());
            match self.parts.recv() {
                Ok(part) => self.part = part,
                Err(_) => return Ok(0),
            }
        }
        let len = self.part.len().min(buf.len());
        buf[..len].copy_from_slice(&self.part[..len]);
        self.part.drain(..len);
        Ok(len)
    }
}

fn document(read: impl Read + Send + 'static) -> GraphDocument {
    let source = Source::Reader { name: "a text".into(), read: Box::new(read) };
    let contexts = snowmelt_graph::load::Contexts::default();
    GraphDocument { source, format: Some(oxrdfio::RdfFormat::Turtle), contexts }
}

fn store(
    db: &Arc<GraphDatabase>,
    write: GraphWrite,
    document: GraphDocument,
    (stop, progress): (&AtomicBool, &ChangeProgress),
) -> Result<GraphStored, LoadError> {
    let account = db.database().account("test");
    let wanted = ChangeFor { account: &account, interrupt: stop, progress };
    db.store_graph(Some("http://garden/beds"), write, vec![document], "http://garden/", &wanted)
}

/// A change of one quad, given up if it does not soon get its turn.
fn small_change(db: &Arc<GraphDatabase>, number: u32) -> bool {
    let asked = AtomicU32::new(0);
    let begun = db.begin_while(&|| asked.fetch_add(1, Ordering::Relaxed) < 50).unwrap();
    let Some(mut txn) = begun else { return false };
    let mut batch = QuadBatch::new(0);
    let iri = format!("http://garden/plant/{number}");
    let [s, p] = [batch.term(TermRef::Iri(&iri)), batch.term(TermRef::Iri("http://garden/grows"))];
    let graph = batch.id(snowmelt_graph::TermId::DEFAULT_GRAPH);
    batch.push([s, p, s, graph]);
    txn.insert(&batch, &mut BlankNodes::default()).unwrap();
    txn.commit().unwrap();
    true
}

#[test]
fn a_document_in_its_parsing_phase_delays_no_change() {
    let (_dir, db) = database(64 << 20);
    let ((parts, received), (asked, asks)) = (channel(), channel());
    let (stop, progress) = (AtomicBool::new(false), ChangeProgress::default());
    std::thread::scope(|scope| {
        let gated = Gated { parts: received, part: Vec::new(), asked };
        let stored = scope.spawn(|| store(&db, GraphWrite::Replace, document(gated), (&stop, &progress)));
        for number in 0..4 {
            asks.recv().unwrap();
            assert_eq!(progress.now().unwrap().0, ChangePhase::Parsing);
            assert!(small_change(&db, number), "the document has the turn while it is parsed");
            let part = format!("<http://garden/bed/{number}> <http://garden/holds> _:plant .\n");
            parts.send(part.into_bytes()).unwrap();
        }
        drop(parts);
        assert_eq!(stored.join().unwrap().unwrap().changed.inserted, 4);
    });
    assert_eq!(progress.now(), Some((ChangePhase::Writing, 4)));
    assert_eq!(db.state().unwrap().quads(), 8);
    assert_eq!(db.state().unwrap().meta().blank_nodes, 1, "a label is one node throughout a document");
}

#[test]
fn each_phase_can_be_ended_and_leaves_nothing() {
    for phase in [ChangePhase::Parsing, ChangePhase::Waiting] {
        let (_dir, db) = database(64 << 20);
        let ((parts, received), (asked, asks)) = (channel(), channel());
        let (stop, progress) = (AtomicBool::new(false), ChangeProgress::default());
        std::thread::scope(|scope| {
            let turn = (phase == ChangePhase::Waiting).then(|| db.begin().unwrap());
            let gated = Gated { parts: received, part: Vec::new(), asked };
            let stored = scope.spawn(|| store(&db, GraphWrite::Add, document(gated), (&stop, &progress)));
            asks.recv().unwrap();
            parts.send(b"<urn:bed> <urn:holds> 1 .\n".to_vec()).unwrap();
            if turn.is_some() {
                drop(parts);
                while progress.now().unwrap().0 != phase {
                    std::thread::yield_now();
                }
                stop.store(true, Ordering::Relaxed);
            } else {
                asks.recv().unwrap();
                stop.store(true, Ordering::Relaxed);
                // Endless white space: no statement after which the parser could stop.
                parts.send(b" ".repeat(1 << 20)).unwrap();
                drop(parts);
            }
            let ended = stored.join().unwrap();
            assert!(matches!(ended, Err(LoadError::Cancelled)), "{phase:?}: {ended:?}");
        });
        assert_eq!(db.state().unwrap().quads(), 0);
        assert!(small_change(&db, 0));
    }
}

/// Documents of sizes around the bounds of chunks and of the chunks kept in memory.
#[test]
fn what_was_staged_is_what_was_sent() {
    for (memory, statements) in [(64 << 20, 1), (64 << 20, 40_000), (32 << 20, 150_000), (512 << 20, 150_000)]
    {
        let (_dir, db) = database(memory);
        let text: String = (0..statements)
            .map(|n| match n % 4 {
                0 => format!("<urn:s{}> <urn:p> _:b{} .\n", n / 3, n % 1000),
                1 => format!("<urn:s{n}> <urn:q> \"a text that is too long for an id {n}\"@de .\n"),
                2 => format!("_:b{} <urn:p> \"{n}\"^^<urn:type> .\n", n % 1000),
                _ => format!("<urn:s{n}> <urn:p> {n} .\n"),
            })
            .collect();
        let stop = AtomicBool::new(false);
        let watch = (&stop, &ChangeProgress::default());
        let stored =
            store(&db, GraphWrite::Add, document(std::io::Cursor::new(text.clone())), watch).unwrap();
        let mut expected: Vec<String> = text.lines().map(str::to_owned).collect();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(stored.changed.inserted as usize, expected.len(), "{memory}, {statements}");
        let labels: BTreeSet<&str> = text.split_whitespace().filter(|word| word.starts_with("_:")).collect();
        assert_eq!(db.state().unwrap().meta().blank_nodes as usize, labels.len());
        let mut dumped = Vec::new();
        db.dump(DumpFormat::NQuads, &mut dumped).unwrap();
        let dumped = String::from_utf8(dumped).unwrap();
        for wanted in ["<urn:p> \"2\"^^<urn:type>", "<urn:q> \"a text that is too long for an id 1\"@de"] {
            assert!(statements < 3 || dumped.contains(wanted), "{wanted}");
        }
        assert!(db.check(&mut |_| {}).unwrap().problems.is_empty());
        // A document stored again replaces itself: only its blank nodes are new.
        let watch = (&stop, &ChangeProgress::default());
        store(&db, GraphWrite::Replace, document(std::io::Cursor::new(text)), watch).unwrap();
        assert_eq!(db.state().unwrap().quads() as usize, expected.len());
    }
}
